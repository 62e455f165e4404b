#include "sim/engine/step.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "sim/eager/memory.h"
#include "sim/graph/link.h"

bool hb_step_check_total(struct hb_diag *diag, const struct hb_program *p)
{
    int64_t total = p->argument_extra_bytes;
    for (uint32_t i = 0; i < p->buf_count; i++)
        total = hb_add_sat(total, hb_round_up(p->bufs[i].bytes, 16384));
    return hb_size_ok(total) || hb_error(diag, (struct hb_loc){0},
                                         "the tensors of '%s' together exceed 2^61 bytes", p->name);
}

static bool run_rank(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                     int64_t rank, struct hb_program *p, struct hb_memory *m)
{
    if (!hb_step_lower(arena, diag, spec, rank, p) || !hb_step_check_total(diag, p))
        return false;
    hb_link_order(arena, spec, p);
    hb_run_memory(arena, p, m);
    return true;
}

/* Peaks of all ranks; returns the heaviest, -1 on an error. */
static int64_t run_ranks(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                         int64_t *peaks, int64_t count)
{
    int64_t heaviest = 0;
    for (int64_t r = 0; r < count; r++) {
        struct hb_program p;
        struct hb_memory m;
        struct hb_arena_mark mark = hb_arena_mark(arena);
        if (!run_rank(arena, diag, spec, r, &p, &m))
            return -1;
        peaks[r] = m.peak_bytes;
        hb_arena_rewind(arena, mark);
        if (peaks[r] > peaks[heaviest])
            heaviest = r;
    }
    return heaviest;
}

bool hb_step_run(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                 struct hb_program *out_program, struct hb_memory *out_memory)
{
    int64_t count = hb_step_ranks(spec), rank = 0, *peaks = NULL;
    if (count > 1) {
        peaks = hb_arena_alloc(arena, (size_t)count, sizeof *peaks);
        rank = run_ranks(arena, diag, spec, peaks, count);
        if (rank >= 0 && spec->pipeline.rank >= 0)
            rank = spec->pipeline.rank;
    }
    if (rank < 0 || !run_rank(arena, diag, spec, rank, out_program, out_memory))
        return false;
    out_memory->rank_peaks = peaks;
    out_memory->rank_count = count > 1 ? count : 0;
    out_memory->rank = rank;
    return true;
}
