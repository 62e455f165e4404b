/* How long one configuration takes inside: lowering, memory, time; beside a lower bound in the
 * same run, one walk over the program's ops, references and buffers; and the memory of a torch
 * pipeline's ranks. Prints, gives no verdict. */
#include <stdio.h>
#include <time.h>

#include "base/arena.h"
#include "base/diag.h"
#include "hw/device.h"
#include "models/schema.h"
#include "sim/engine/run.h"
#include "sim/engine/step.h"
#include "sim/ir/lower.h"
#include "solver/brute.h"
#include "solver/menu.h"
#include "solver/replay.h"

enum { RUNS = 300, RANK_RUNS = 10 };

/* Of the processor: what else runs here does not count. */
static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
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

struct pricing {
    const struct hb_segment *s;
    struct hb_replay *replay; /* null: by the sums */
    double count, sum;
};

static bool visit_price(void *context, const struct hb_part *parts, uint32_t count)
{
    struct pricing *p = context;
    struct hb_price price;
    hb_segment_price(p->s, parts, count, &price);
    p->sum += (double)price.live_bytes;
    if (p->replay)
        p->sum += (double)hb_replay_bound_ns(p->replay, parts, count);
    p->count++;
    return true;
}

/* Live bytes and the bound of the time of every configuration of a cell: each policy of the menus,
 * each split. */
static void bench_pricing(struct hb_arena *arena, const struct hb_spec *spec,
                          const struct hb_device *device)
{
    struct hb_segment s;
    const char *why;
    uint32_t tried;
    const struct hb_menu *menus = hb_menu_make(arena, arena, spec, device, HB_MENU_MOST, &tried);
    struct hb_segment_ask ask = {.spec = spec, .menus = menus, .device = device};
    double t0 = now_us();
    if (!hb_segment_build(arena, &ask, &s, &why))
        return;
    double t1 = now_us();
    struct pricing sums = {.s = &s}, both = {.s = &s, .replay = hb_replay_open(arena, &s)};
    hb_brute_each(&s, spec, visit_price, &sums);
    double t2 = now_us();
    hb_brute_each(&s, spec, visit_price, &both);
    double t3 = now_us();
    printf("%s: %.0f configurations of a cell, summed up in %.1f ms, %.0f priced a second; with "
           "the step replayed %.0f\n",
           spec->model.name, sums.count, (t1 - t0) / 1e3, sums.count / (t2 - t1) * 1e6,
           both.count / (t3 - t2) * 1e6);
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
    if (ok)
        bench_pricing(arena, &spec, &device);
    hb_arena_free(arena);
    return ok && sink > 0 ? 0 : 1;
}

/* Memory of all ranks of a pipeline, schedule by schedule, and what of it the one that is told
 * takes. */
static void bench_schedule(const struct hb_spec *base, enum hb_schedule schedule, bool full)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_spec spec = *base;
    struct hb_block block = base->model.blocks[0];
    struct hb_diag diag;
    struct hb_program p;
    struct hb_memory m;
    double best_us = 1e12;
    size_t most_bytes = 0;
    block.remat.policy = full ? HB_POLICY_FULL : HB_POLICY_NONE;
    spec.model.blocks = &block;
    spec.pipeline.schedule = schedule;
    spec.pipeline.repeats = schedule == HB_SCHED_GPIPE || schedule == HB_SCHED_1F1B ? 1 : 2;
    hb_diag_init(&diag, arena);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    for (int i = 0; i < RANK_RUNS; i++) {
        double start = now_us();
        bool ok = hb_step_run(arena, &diag, &spec, &p, &m);
        keep_least(&best_us, ok ? now_us() - start : 0);
        most_bytes = hb_arena_held_bytes(arena);
        hb_arena_rewind(arena, mark);
    }
    printf("  %s%s: %.1f ms, told rank (%u ops) held in %.1f MiB\n", hb_schedule_name(schedule),
           full ? ", full checkpoints" : "", best_us * 1e-3, p.op_count,
           (double)most_bytes / 1048576);
    hb_arena_free(arena);
}

static int bench_ranks(const char *path, const char *data_dir)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_diag diag;
    struct hb_spec spec;
    hb_diag_init(&diag, arena);
    struct hb_schema_source source = {
        .arena = arena, .diag = &diag, .path = path, .data_dir = data_dir};
    bool ok = hb_schema_read(&source, &spec);
    hb_diag_print(&diag, stderr);
    if (ok)
        printf("torch, %d layers on %d stages x %d microbatches, memory of all ranks (of the "
               "processor, least of %d):\n",
               (int)spec.model.blocks[0].repeat, (int)spec.mesh[HB_AX_PIPELINE],
               (int)spec.pipeline.microbatches, RANK_RUNS);
    for (int s = HB_SCHED_GPIPE; ok && s <= HB_SCHED_DUALPIPE_V; s++)
        for (int full = 0; full < 2; full++)
            bench_schedule(&spec, (enum hb_schedule)s, full);
    hb_arena_free(arena);
    return !ok;
}

int main(int argc, char **argv)
{
    int status = argc < 4;
    for (int i = 3; i < argc; i++)
        status |= bench_file(argv[i], argv[1]);
    if (argc > 2)
        status |= bench_ranks(argv[2], argv[1]);
    return status;
}
