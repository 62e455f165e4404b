/* How long one configuration takes inside: lowering, memory, time; beside a lower bound in the
 * same run, one walk over the program's ops, references and buffers. Prints, gives no verdict. */
#include <stdio.h>
#include <time.h>

#include "base/arena.h"
#include "base/diag.h"
#include "hw/device.h"
#include "models/schema.h"
#include "sim/engine/run.h"
#include "sim/ir/lower.h"

enum { RUNS = 300 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

struct best {
    double lower_us, memory_us, timing_us, walk_us;
};

static void keep_least(double *best, double us)
{
    if (us < *best)
        *best = us;
}

static double walk(const struct hb_program *p)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->op_count; i++)
        for (uint32_t r = 0; r < p->ops[i].read_count + p->ops[i].write_count; r++)
            sum += (double)p->bufs[p->refs[p->ops[i].refs_at + r]].bytes;
    return sum;
}

static void run_once(const struct hb_spec *spec, const struct hb_device *device, struct best *b,
                     uint32_t *ops, double *sink)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_diag diag;
    struct hb_program program;
    struct hb_memory memory;
    struct hb_timing timing;
    hb_diag_init(&diag, arena);
    double t0 = now_us();
    hb_lower(arena, &diag, spec, &program);
    double t1 = now_us();
    hb_run_memory(arena, &program, &memory);
    double t2 = now_us();
    hb_run_timing(arena, &program, device, &timing);
    double t3 = now_us();
    *sink += walk(&program);
    double t4 = now_us();
    keep_least(&b->lower_us, t1 - t0);
    keep_least(&b->memory_us, t2 - t1);
    keep_least(&b->timing_us, t3 - t2);
    keep_least(&b->walk_us, t4 - t3);
    *ops = program.op_count;
    hb_arena_free(arena);
}

static int bench_file(const char *path, const char *data_dir)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_diag diag;
    struct hb_spec spec;
    struct hb_device device;
    hb_diag_init(&diag, arena);
    struct hb_schema_source source = {
        .arena = arena, .diag = &diag, .path = path, .data_dir = data_dir};
    bool ok =
        hb_schema_read(&source, &spec) &&
        hb_device_load(arena, &diag, data_dir, spec.hardware.device, (struct hb_loc){0}, &device);
    struct best b = {1e12, 1e12, 1e12, 1e12};
    uint32_t ops = 0;
    double sink = 0;
    for (int i = 0; ok && i < RUNS; i++)
        run_once(&spec, &device, &b, &ops, &sink);
    hb_diag_print(&diag, stderr);
    if (ok)
        printf("%s (%u ops): lower %.0f us, memory %.0f us, time %.0f us; together %.0f x one walk "
               "over the program (%.2f us)\n",
               spec.model.name, ops, b.lower_us, b.memory_us, b.timing_us,
               (b.lower_us + b.memory_us + b.timing_us) / b.walk_us, b.walk_us);
    hb_arena_free(arena);
    return ok && sink > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    int status = argc < 3;
    for (int i = 2; i < argc; i++)
        status |= bench_file(argv[i], argv[1]);
    return status;
}
