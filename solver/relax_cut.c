/* What a trip of a backward loop waits for. A value that comes from the host comes in the trip that
 * reads it: the engine begins no copy before the trip's edge, and copies up run one at a time. So
 * for any op X of a trip that every policy has,
 *
 *   trip >= sum of the copies that ops of every policy up to X read
 *           + what runs on the compute stream from X on,
 *
 * since the last of those copies is waited for by X or by an op before it. From X on run the ops of
 * every policy that follow X and, of those made again, all that follow X in the program that makes
 * everything again: under a policy that keeps more an op is wanted by fewer, and so no earlier.
 * Where a layer is made again as a whole before its backward pass (habit recompute_first), what
 * products and kernels that are made again read is there before any X, too; on TPU what kernels of
 * attention read (70B over 512 of v5p: q, k and v from the host are 8 % of the step). The path of
 * the floor crosses all trips on the compute stream: with the ops before X taken off it, and the
 * copies put in their place, it is a bound for each X. */
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "hw/link.h"
#include "sim/ir/habits.h"
#include "sim/ir/lower.h"
#include "solver/bound.h"
#include "solver/relax_build.h"

/* --- where something is waited for --- */

static bool is_listed(const struct hb_relax_build *x, uint32_t first, uint32_t end, uint32_t buf)
{
    for (uint32_t i = first; i < end; i++)
        if (x->reads[i] == buf)
            return true;
    return false;
}

/* Products and kernels where all of a layer is made again first; elsewhere the kernels, but for
 * MaxText's that keep what comes out of the projection behind them. */
static bool is_made_first(const struct hb_relax_build *x, const struct hb_op *op)
{
    const struct hb_spec *spec = x->ask->cell_spec;
    if (hb_habits_find(spec)->recompute_first)
        return op->kind == HB_OP_MATMUL || op->kind == HB_OP_ATTENTION;
    return op->kind == HB_OP_ATTENTION && !hb_lower_is_maxtext(spec);
}

static void add_early(struct hb_relax_build *x, uint32_t index)
{
    const struct hb_op *op = &x->full.ops[index];
    if (x->op_column[index] == HB_NONE || !is_made_first(x, op))
        return;
    for (uint32_t r = 0; r < op->read_count; r++) {
        uint32_t buf = x->full.refs[op->refs_at + r];
        if (x->kept_column[buf] == HB_NONE)
            continue;
        x->early = hb_grow(x->arena, x->early, x->early_count, &x->early_cap, sizeof *x->early);
        x->early[x->early_count++] = (struct hb_relax_early){op->loop, buf, index};
    }
}

void hb_relax_look(struct hb_relax_build *x, uint32_t index, uint32_t first_read)
{
    const struct hb_op *op = &x->full.ops[index];
    uint32_t before = x->read_count;
    if (!hb_op_is_work(op))
        return;
    if (x->again[index]) {
        if (before == first_read)
            add_early(x, index);
        return;
    }
    for (uint32_t r = 0; r < op->read_count; r++) {
        uint32_t buf = x->full.refs[op->refs_at + r];
        if (x->kept_column[buf] == HB_NONE || is_listed(x, first_read, x->read_count, buf))
            continue;
        x->reads = hb_grow(x->arena, x->reads, x->read_count, &x->read_cap, sizeof *x->reads);
        x->reads[x->read_count++] = buf;
    }
    if (x->read_count == before)
        return;
    x->cuts = hb_grow(x->arena, x->cuts, x->cut_count, &x->cut_cap, sizeof *x->cuts);
    x->cuts[x->cut_count++] = (struct hb_relax_cut){op->loop, index, first_read, x->read_count};
}

/* --- rows --- */

/* The next op from `from` on that every policy has; the loop's end: none. */
static uint32_t next_work(const struct hb_program *p, const bool *optional, uint32_t from,
                          uint32_t end)
{
    while (from < end && (optional[from] || !hb_op_is_work(&p->ops[from])))
        from++;
    return from;
}

/* How much of the path lies before a cut, at most: what the floor's program does there, and what
 * ops from the cut on take less where everything is made again. False: the programs' ops are not
 * the same. */
static bool find_before(const struct hb_relax_build *x, const struct hb_relax_cut *cut,
                        int64_t *out_ns)
{
    const struct hb_program *full = &x->full, *all = &x->all;
    const struct hb_loop *loop = &full->loops[cut->loop], *other = &all->loops[cut->loop];
    int64_t sum = 0;
    if (all->loop_count != full->loop_count || other->trips != loop->trips)
        return false;
    uint32_t k = next_work(all, x->optional, other->first_op, other->end_op);
    uint32_t i = next_work(full, x->again, loop->first_op, loop->end_op);
    while (i < loop->end_op && k < other->end_op) {
        int64_t all_ns = hb_cost_op_ns(&x->all_cost, k), full_ns = hb_cost_op_ns(&x->cost, i);
        if (!hb_str_same(all->ops[k].name, full->ops[i].name))
            return false;
        sum =
            hb_add_sat(sum, i < cut->op ? all_ns : all_ns - (full_ns < all_ns ? full_ns : all_ns));
        k = next_work(all, x->optional, k + 1, other->end_op);
        i = next_work(full, x->again, i + 1, loop->end_op);
    }
    *out_ns = hb_mul_sat(sum, hb_program_times(full, &full->ops[cut->op]));
    return i == loop->end_op && k == other->end_op;
}

/* e_v >= h_v + r_a - 1. */
void hb_relax_add_early(struct hb_relax_build *x)
{
    for (uint32_t i = 0; i < x->early_count; i++) {
        uint32_t buf = x->early[i].buf;
        if (x->early_column[buf] == HB_NONE)
            x->early_column[buf] = x->lp.columns++;
        hb_relax_entry(x, x->early_column[buf], 1);
        hb_relax_entry(x, x->kept_column[buf] + 1, -1);
        hb_relax_entry(x, x->op_column[x->early[i].op], -1);
        hb_relax_close(x, -1);
    }
}

static void add_copy(struct hb_relax_build *x, uint32_t buf, uint32_t column, double times)
{
    double bytes = hb_relax_layer_bytes(x, buf);
    double ns = (double)hb_link_host_ns(x->ask->device, bytes, true, false);
    hb_relax_entry(x, column, -ns * times / HB_RELAX_MS);
}

static void add_copies(struct hb_relax_build *x, const struct hb_relax_cut *cut)
{
    double times = (double)hb_program_times(&x->full, &x->full.ops[cut->op]);
    for (uint32_t i = cut->first_read; i < cut->end_read; i++)
        add_copy(x, x->reads[i], x->kept_column[x->reads[i]] + 1, times);
    for (uint32_t i = 0; i < x->early_count; i++) {
        uint32_t buf = x->early[i].buf;
        bool known = is_listed(x, cut->first_read, cut->end_read, buf);
        for (uint32_t k = 0; k < i && !known; k++)
            known = x->early[k].buf == buf;
        if (!known && x->early[i].loop == cut->loop)
            add_copy(x, buf, x->early_column[buf], times);
    }
}

static void add_row(struct hb_relax_build *x, const struct hb_relax_cut *cut, int64_t rest_ns)
{
    const struct hb_program *p = &x->full;
    hb_relax_entry(x, 0, 1);
    add_copies(x, cut);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        if (x->op_column[i] == HB_NONE || op->stream != HB_STREAM_COMPUTE ||
            (op->loop == cut->loop && i < cut->op))
            continue;
        double ns = (double)hb_cost_op_ns(&x->cost, i) * (double)hb_program_times(p, op);
        hb_relax_entry(x, x->op_column[i], -ns / HB_RELAX_MS);
    }
    hb_relax_close(x, (double)rest_ns / HB_RELAX_MS);
}

void hb_relax_add_cuts(struct hb_relax_build *x, int64_t path_ns)
{
    int64_t before_ns;
    for (uint32_t i = 0; i < x->cut_count; i++)
        if (find_before(x, &x->cuts[i], &before_ns))
            add_row(x, &x->cuts[i], path_ns - before_ns);
}
