/* How long a large dump takes: reading it, and all of `hlo`. The dump is written here, in the form
 * of a GPU's: a training step of as many unrolled layers as it takes, each forward operation with
 * its fused computation, its weight gathered, every sixth result kept until its backward twin;
 * gradients reduced; parameters and momentum donated and updated. Then the heap alone, on random
 * lives.
 *
 *   hlo MEGABYTES      writes the dump to a file in TMPDIR, reads it from there, and removes it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "sim/hlo/report.h"

enum { KEPT_EVERY = 6, BODY = 7 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* not disturbed by what else the machine does */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the dump ---- */

#define ACT     "bf16[8,1024,1024]{2,1,0}"
#define ACT_F32 "f32[8,1024,1024]{2,1,0}"
#define SHARD   "f32[128,1024]{1,0}"
#define WHOLE   "bf16[1024,1024]{1,0}"
#define META                                                                                       \
    ", metadata={op_name=\"jit(step)/%s(jvp())/layer/dot_general\" source_file=\"/home/user/"      \
    "train/model.py\" source_line=%d}"
#define CONFIG                                                                                     \
    ", backend_config={\"operation_queue_id\":\"0\",\"force_earliest_schedule\":false,"            \
    "\"reification_cost\":[],\"device_type\":\"DEVICE_TYPE_INVALID\"}"

/* What a fusion computes: a chain of elementwise operations over its two parameters. */
static void write_fused(FILE *f, const char *kind, int id, const char *shape)
{
    fprintf(f, "%%fused_%s.%d (param_0.%d: bf16[8], param_1.%d: bf16[8]) -> bf16[8] {\n", kind, id,
            id, id);
    fprintf(f, "  %%param_0.%d = %s parameter(0)\n  %%param_1.%d = %s parameter(1)\n", id, shape,
            id, shape);
    fprintf(f, "  %%multiply.%d.0 = %s multiply(%%param_0.%d, %%param_1.%d)" META "\n", id, shape,
            id, id, kind, id % 977);
    for (int i = 1; i < BODY; i++)
        fprintf(f, "  %s%%multiply.%d.%d = %s multiply(%%multiply.%d.%d, %%param_1.%d)" META "\n",
                i + 1 == BODY ? "ROOT " : "", id, i, shape, id, i - 1, id, kind, i);
    fprintf(f, "}\n\n");
}

static void write_forward(FILE *f, int id)
{
    fprintf(f,
            "  %%gather-start.%d = (" SHARD ", " WHOLE ") all-gather-start(%%p.%d), channel_id=%d, "
            "replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true" META CONFIG
            "\n",
            id, id, id + 1, "forward", id % 977);
    fprintf(f, "  %%gather.%d = " WHOLE " all-gather-done(%%gather-start.%d)\n", id, id);
    fprintf(f,
            "  %%gemm.%d = " ACT " dot(%%forward.%d, %%gather.%d), lhs_contracting_dims={2}, "
            "rhs_contracting_dims={0}" META "\n",
            id, id - 1, id, "forward", id % 977);
    fprintf(f,
            "  %%forward.%d = " ACT " fusion(%%gemm.%d, %%forward.%d), kind=kLoop, "
            "calls=%%fused_forward.%d" META CONFIG "\n",
            id, id, id - 1, id, "forward", id % 977);
}

/* The backward twin reads what was kept, and leaves a gradient; the update is made at once. */
static void write_backward(FILE *f, int id)
{
    int kept = id - id % KEPT_EVERY;
    fprintf(f,
            "  %%backward.%d = " ACT " fusion(%%backward.%d, %%forward.%d), kind=kLoop, "
            "calls=%%fused_backward.%d" META CONFIG "\n",
            id, id + 1, kept, id, "transpose", id % 977);
    fprintf(f,
            "  %%wgrad.%d = f32[1024,1024]{1,0} dot(%%forward.%d, %%backward.%d), "
            "lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}" META "\n",
            id, kept, id, "transpose", id % 977);
    fprintf(f,
            "  %%grad.%d = " SHARD " reduce-scatter(%%wgrad.%d), channel_id=%d, "
            "replica_groups=[1,8]<=[8], dimensions={0}, to_apply=%%add" META CONFIG "\n",
            id, id, id + 1000000, "transpose", id % 977);
    fprintf(f,
            "  %%update.%d = " SHARD " fusion(%%p.%d, %%grad.%d), kind=kLoop, "
            "calls=%%fused_update.%d" META "\n",
            id, id, id, id, "update", id % 977);
}

static void write_dump(FILE *f, int count)
{
    fprintf(f, "HloModule jit_step, is_scheduled=true, input_output_alias={ ");
    for (int i = 0; i < count; i++)
        fprintf(f, "{%d}: (%d, {}, may-alias), ", i, i);
    fprintf(f, "{%d}: (%d, {}, may-alias) }, num_partitions=8\n\n", count, count);
    fprintf(f, "%%add (x: f32[], y: f32[]) -> f32[] {\n  %%x = f32[] parameter(0)\n"
               "  %%y = f32[] parameter(1)\n  ROOT %%z = f32[] add(%%x, %%y)\n}\n\n");
    for (int i = 0; i < count; i++) {
        write_fused(f, "forward", i, ACT);
        write_fused(f, "backward", i, ACT);
        write_fused(f, "update", i, SHARD);
    }
    fprintf(f, "ENTRY %%main (p: f32[8]) -> f32[8] {\n");
    for (int i = 0; i < count; i++)
        fprintf(f, "  %%p.%d = " SHARD " parameter(%d), sharding={devices=[8,1]<=[8]}\n", i, i);
    fprintf(f, "  %%forward.-1 = " ACT " parameter(%d)\n", count);
    for (int i = 0; i < count; i++)
        write_forward(f, i);
    fprintf(f, "  %%backward.%d = " ACT " negate(%%forward.%d)\n", count, count - 1);
    for (int i = count - 1; i >= 0; i--)
        write_backward(f, i);
    fprintf(f, "  ROOT %%out = (");
    for (int i = 0; i < count; i++)
        fprintf(f, SHARD ", ");
    fprintf(f, ACT ") tuple(");
    for (int i = 0; i < count; i++)
        fprintf(f, "%%update.%d, ", i);
    fprintf(f, "%%backward.0)\n}\n");
}

/* Bytes that `count` operations take, to find how many make a dump of the size asked for. */
static long measure(int count)
{
    FILE *f = tmpfile();
    if (!f)
        return -1;
    write_dump(f, count);
    long bytes = ftell(f);
    fclose(f);
    return bytes;
}

static long peak_rss_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static int bench_dump(const char *path)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_diag diag;
    struct hb_hlo_text text;
    struct hb_hlo_module m;
    struct hb_hlo_report *r = hb_arena_alloc(arena, 1, sizeof *r);
    hb_diag_init(&diag, arena);
    double t0 = now_s();
    bool ok = hb_hlo_text_load(arena, &diag, path, &text);
    double t1 = now_s();
    ok = ok && hb_hlo_module_read(arena, &diag, &text, &m);
    double t2 = now_s();
    ok = ok && hb_hlo_report_make(arena, &diag, &m, HB_HLO_ASK_NONE, r);
    double t3 = now_s();
    hb_diag_print(&diag, stderr);
    if (ok)
        printf(
            "hlo, a dump of %.0f MB, %u instructions: loaded in %.2f s, read in %.2f s (together "
            "%.0f MB/s), told in %.2f s; %.2f s and %ld MB of memory in all\n",
            (double)text.len / 1e6, m.inst_count, t1 - t0, t2 - t1,
            (double)text.len / 1e6 / (t2 - t0), t3 - t2, t3 - t0, peak_rss_mb());
    hb_arena_free(arena);
    return !ok;
}

static int bench_dumps(long megabytes)
{
    enum { FEW = 1000 };
    const char *dir = getenv("TMPDIR");
    char path[1024];
    snprintf(path, sizeof path, "%s/hbmsim-bench-XXXXXX", dir ? dir : "/tmp");
    long bytes = measure(FEW);
    int fd = bytes > 0 ? mkstemp(path) : -1;
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f)
        return 1;
    write_dump(f, (int)((double)megabytes * 1e6 / (double)bytes * FEW) + 1);
    int status = fclose(f) != 0 || bench_dump(path);
    unlink(path);
    return status;
}

/* ---- the heap ---- */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Lives as a training step has them: most are short, one in sixteen is long, a thousand at once. */
static void bench_heap(uint32_t count, enum hb_heap_kind kind, const char *name)
{
    enum { LONGEST = 32768 };
    struct hb_arena *arena = hb_arena_new();
    struct hb_heap_item *items = hb_arena_alloc(arena, count, sizeof *items);
    uint64_t state = count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t longest = i % 16 ? 32 : count < LONGEST ? count : LONGEST;
        items[i].start = (int32_t)i;
        items[i].end = (int32_t)(i + next_random(&state) % longest);
        items[i].bytes = (int64_t)(next_random(&state) % 4096 + 1) << (next_random(&state) % 12);
        items[i].order = i;
    }
    double t0 = now_s();
    int64_t height = hb_heap_pack(arena, items, count, kind, 256);
    double t1 = now_s();
    printf("heap, %u lives, %s: %.1f ms, %.2f times the most alive\n", count, name, (t1 - t0) * 1e3,
           (double)height / (double)hb_heap_live_peak(arena, items, count, 1, NULL));
    hb_arena_free(arena);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    long megabytes = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    if (megabytes < 1 || megabytes > 2000)
        return 2;
    int status = bench_dumps(megabytes);
    for (uint32_t count = 10000; count <= 100000; count *= 10) {
        bench_heap(count, HB_HEAP_SORTED, "sorted");
        bench_heap(count, HB_HEAP_IN_ORDER, "in order");
    }
    return status;
}
