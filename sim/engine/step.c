#include "sim/engine/step.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "sim/eager/memory.h"
#include "sim/eager/tape.h"
#include "sim/engine/caching.h"
#include "sim/engine/heap_cuda.h"
#include "sim/graph/link.h"

enum { ROUND_BYTES = 16384 };

static bool check_total(struct hb_diag *diag, int64_t total, const char *name)
{
    return hb_size_ok(total) || hb_error(diag, (struct hb_loc){0},
                                         "the tensors of '%s' together exceed 2^61 bytes", name);
}

bool hb_step_check_total(struct hb_diag *diag, const struct hb_program *p)
{
    int64_t total = p->argument_extra_bytes;
    for (uint32_t i = 0; i < p->buf_count; i++)
        total = hb_add_sat(total, hb_round_up(p->bufs[i].bytes, ROUND_BYTES));
    return check_total(diag, total, p->name);
}

static bool run_rank(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                     const struct hb_rank_ask *ask, struct hb_program *p, struct hb_memory *m)
{
    if (!hb_step_lower(arena, diag, spec, ask, p) || !hb_step_check_total(diag, p))
        return false;
    hb_link_order(arena, spec, p);
    hb_run_memory(arena, p, m);
    return true;
}

/* --- peaks alone --- */

struct asked {
    struct hb_cuda *cuda;
    int64_t total; /* of what was asked for, as hb_step_check_total has it */
    uint32_t count;
};

static uint32_t take(void *context, int64_t bytes, uint8_t pool)
{
    struct asked *a = context;
    int64_t address;
    a->total = hb_add_sat(a->total, hb_round_up(bytes, ROUND_BYTES));
    a->count++;
    return hb_cuda_take(a->cuda, bytes, pool, &address);
}

static void give(void *context, uint32_t block)
{
    struct asked *a = context;
    hb_cuda_give(a->cuda, block);
}

/* ask->storages becomes known. */
static bool rank_peak(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                      struct hb_rank_ask *ask, int64_t *out_bytes)
{
    struct hb_caching c = hb_step_caching(spec);
    struct asked a = {.cuda = hb_cuda_new(arena, hb_caching_limits(&c))};
    ask->server = &(struct hb_server){&a, take, give};
    bool ok = hb_step_serve(arena, diag, spec, ask) && check_total(diag, a.total, spec->model.name);
    ask->server = NULL;
    ask->storages = a.count;
    struct hb_cuda_stats stats = hb_cuda_stats(a.cuda);
    *out_bytes = c.reserved ? stats.peak_reserved_bytes : stats.peak_allocated_bytes;
    return ok;
}

/* Of all ranks, and what to ask for the one that is told: that of pipeline.rank, or the heaviest.
 */
static bool all_peaks(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                      int64_t *peaks, struct hb_rank_ask *out_told)
{
    struct hb_rank_ask ask = {.actions = hb_step_actions(arena, spec)};
    int64_t count = hb_step_ranks(spec), own = count > 1 ? spec->pipeline.rank : -1;
    for (int64_t r = 0; r < count; r++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        ask.rank = r;
        if (hb_step_is_like_before(spec, r))
            peaks[r] = peaks[r - 1];
        else if (!rank_peak(arena, diag, spec, &ask, &peaks[r]))
            return false;
        hb_arena_rewind(arena, mark);
        if (!r || r == own || (own < 0 && peaks[r] > peaks[out_told->rank]))
            *out_told = ask;
    }
    return true;
}

bool hb_step_run(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                 struct hb_program *out_program, struct hb_memory *out_memory)
{
    struct hb_rank_ask told = {0};
    int64_t count = hb_step_ranks(spec), *peaks = NULL;
    if (count > 1) {
        peaks = hb_arena_alloc(arena, (size_t)count, sizeof *peaks);
        if (!all_peaks(arena, diag, spec, peaks, &told))
            return false;
    }
    if (!run_rank(arena, diag, spec, &told, out_program, out_memory))
        return false;
    if (peaks && peaks[told.rank] != out_memory->peak_bytes)
        HB_BUG("rank %lld has a peak of %lld bytes, and of %lld without a program",
               (long long)told.rank, (long long)out_memory->peak_bytes,
               (long long)peaks[told.rank]);
    out_memory->rank_peaks = peaks;
    out_memory->rank_count = count > 1 ? count : 0;
    out_memory->rank = told.rank;
    return true;
}

bool hb_step_peak(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                  int64_t *out_bytes)
{
    struct hb_rank_ask told = {0};
    struct hb_program p;
    struct hb_memory m;
    if (spec->compiler == HB_TORCH) {
        int64_t *peaks = hb_arena_alloc(arena, (size_t)hb_step_ranks(spec), sizeof *peaks);
        if (!all_peaks(arena, diag, spec, peaks, &told))
            return false;
        *out_bytes = peaks[told.rank];
        return true;
    }
    if (!run_rank(arena, diag, spec, &told, &p, &m))
        return false;
    *out_bytes = m.peak_bytes;
    return true;
}
