/* The linear relaxation over all policies, row by row: see relax.h. */
#include "solver/relax.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "hw/link.h"
#include "sim/engine/lend.h"
#include "sim/engine/live.h"
#include "sim/graph/link.h"
#include "sim/ir/lower.h"
#include "solver/bound.h"
#include "solver/menu.h"
#include "solver/merged.h"
#include "solver/relax_build.h"
#include "solver/segment.h"

/* --- what is the same for all --- */

/* Inside of a loop over layers: not merely in that over microbatches. */
static bool is_of_layers(const struct hb_relax_build *x, const struct hb_program *p,
                         const struct hb_op *op)
{
    if (op->loop == HB_NONE)
        return false;
    return x->ask->cell_spec->batch.accumulate == 1 || p->loops[op->loop].parent != HB_NONE;
}

/* change: by op, what is added to its cost, if that is less; null: nothing. */
static void sum_program(const struct hb_relax_build *x, const struct hb_program *p,
                        const bool *optional, const int64_t *change, int64_t busy[HB_STREAM_COUNT])
{
    struct hb_cost cost;
    hb_cost_init(&cost, p, x->ask->device);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        if (optional[i] || (x->ask->layers_only && !is_of_layers(x, p, op)))
            continue;
        int64_t less = change && change[i] < 0 ? change[i] : 0;
        int64_t once_ns = hb_merged_ns(hb_cost_op_ns(&cost, i), less);
        busy[op->stream] =
            hb_add_sat(busy[op->stream], hb_mul_sat(once_ns, hb_program_times(p, op)));
    }
}

/* What is fused into an op of every policy follows from what is kept. A policy may have each op of
 * the forward pass as either of the programs has it, in whatever mixture (test_any_keys.c, seed
 * 706227), those of the backward pass as one of them (seed 4714). */
static void sum_streams(const struct hb_relax_build *x, int64_t busy[HB_STREAM_COUNT])
{
    const int64_t *change = hb_merged_find(x->arena, &x->all, &x->full, x->ask->device);
    int64_t other[HB_STREAM_COUNT] = {0};
    sum_program(x, &x->all, x->optional, change, busy);
    sum_program(x, &x->full, x->again, NULL, other);
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        busy[s] = hb_smaller(busy[s], other[s]);
}

/* The ops between the last loop of the forward pass and the first op of the backward pass. */
static void find_loss(const struct hb_relax_build *x, const struct hb_program *p, int32_t *first,
                      int32_t *end)
{
    *first = 0;
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].phase == HB_PHASE_FORWARD && is_of_layers(x, p, &p->ops[i]))
            *first = (int32_t)i + 1;
    *end = *first;
    while (*end < (int32_t)p->op_count && p->ops[*end].phase != HB_PHASE_BACKWARD)
        ++*end;
}

/* Whether zeros of gradients are there before the loss follows on GPUs from the policy only where
 * scores of attention are kept, or the step may be more than the compiler's share (hb_order_zeros).
 */
static bool knows_zeros(const struct hb_spec *spec)
{
    for (int i = 0; i < spec->model.block_count; i++)
        if (spec->model.blocks[i].attention.kernel != HB_KERNEL_FLASH)
            return false;
    return spec->compiler == HB_XLA_GPU && spec->share == HB_SHARE_KEPT;
}

/* What gradients are added up in lives around the loop over microbatches. Others are made before
 * the forward pass under one policy and after the loss under another, unless that is known. */
static bool is_accumulator(const struct hb_program *p, const struct hb_live *live)
{
    if (p->bufs[live->buf].category != HB_CAT_GRADIENTS)
        return false;
    for (uint32_t l = 0; l < p->loop_count; l++) {
        const struct hb_loop *loop = &p->loops[l];
        if (loop->parent == HB_NONE && live->start < (int64_t)loop->first_op &&
            live->end >= (int64_t)loop->end_op)
            return true;
    }
    return false;
}

/* Zeros that nan is replaced by are one for all gradients of a shape, and runs of as many layers
 * share them: less is there than of one run. */
static bool is_shared(const struct hb_buf *b)
{
    return hb_str_ends(b->name, ", zeros for nan_to_num");
}

/* Of a program: arguments and outputs, and by op of the loss what lives then of logits and of sums
 * over microbatches; unaligned. */
struct at_loss {
    int64_t fixed;
    int64_t *now;
    int32_t count;
};

static struct at_loss look_at_loss(const struct hb_relax_build *x, const struct hb_program *p)
{
    struct at_loss a = {.fixed = p->argument_extra_bytes};
    struct hb_live *live;
    uint32_t count = hb_live_find(x->arena, p, &live);
    int32_t first, end;
    bool zeros = knows_zeros(x->ask->cell_spec);
    bool *stays = hb_arena_alloc(x->arena, p->buf_count, sizeof *stays);
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument || p->bufs[i].output)
            stays[hb_program_root(p, i)] = true;
    find_loss(x, p, &first, &end);
    a.count = end - first;
    a.now = hb_arena_alloc(x->arena, (size_t)a.count + 1, sizeof *a.now);
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_buf *b = &p->bufs[live[i].buf];
        bool counts = b->category == HB_CAT_LOGITS ||
                      (zeros && b->category == HB_CAT_GRADIENTS && !is_shared(b)) ||
                      (x->ask->cell_spec->batch.accumulate > 1 && is_accumulator(p, &live[i]));
        if (b->space != HB_SPACE_HBM)
            continue;
        if (stays[live[i].buf]) {
            a.fixed = hb_add_sat(a.fixed, live[i].bytes);
        } else if (counts && live[i].start < end && live[i].end >= first) {
            a.now[live[i].start < first ? 0 : live[i].start - first] += live[i].bytes;
            a.now[(live[i].end < end ? live[i].end + 1 : end) - first] -= live[i].bytes;
        }
    }
    for (int32_t t = 1; t < a.count; t++)
        a.now[t] += a.now[t - 1];
    return a;
}

static int64_t lent_before_end(const struct hb_relax_build *x, const struct hb_program *p)
{
    int32_t first, end;
    struct hb_live *live;
    find_loss(x, p, &first, &end);
    uint32_t count = hb_live_find(x->arena, p, &live);
    return hb_lend_room(x->arena, p, live, count, end);
}

/* What temporaries may lie in what is updated before the loss ends. Where casts of the weights are
 * kept, which policy none does, the weights themselves are not read behind the forward pass. */
static int64_t lent_bytes(const struct hb_relax_build *x)
{
    struct hb_remat policy = {HB_POLICY_NONE, 0, 0};
    struct hb_program none;
    int64_t lent = lent_before_end(x, &x->all);
    if (!x->all.outputs_lend || !hb_segment_lower_under(x->arena, x->ask->cell_spec, policy, &none))
        return lent;
    return hb_larger(lent, lent_before_end(x, &none));
}

/* What is there at the loss whatever a policy does: of the two programs the less. */
static int64_t fixed_bytes(const struct hb_relax_build *x)
{
    struct at_loss all = look_at_loss(x, &x->all), full = look_at_loss(x, &x->full);
    int64_t most = 0;
    for (int32_t t = 0; t < all.count && t < full.count && !x->ask->layers_only; t++) {
        int64_t now = full.now[t] < all.now[t] ? full.now[t] : all.now[t];
        most = now > most ? now : most;
    }
    return hb_add_sat(all.fixed, most) - lent_bytes(x);
}

/* --- rows --- */

void hb_relax_entry(struct hb_relax_build *x, uint32_t column, double value)
{
    struct hb_lp *lp = &x->lp;
    lp->entries =
        hb_grow(x->arena, lp->entries, lp->entry_count, &x->entry_cap, sizeof *lp->entries);
    lp->entries[lp->entry_count++] = (struct hb_lp_entry){column, value};
}

void hb_relax_close(struct hb_relax_build *x, double least)
{
    struct hb_lp *lp = &x->lp;
    lp->rows = hb_grow(x->arena, lp->rows, lp->row_count, &x->row_cap, sizeof *lp->rows);
    lp->rows[lp->row_count++] = (struct hb_lp_row){least, lp->entry_count};
}

/* How often something of the name is made again in a trip: layers of one trip have the same. */
static uint32_t count_made(const struct hb_relax_build *x, const char *name)
{
    const struct hb_program *p = &x->full;
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->op_count; i++)
        for (uint32_t w = 0; x->again[i] && w < p->ops[i].write_count; w++)
            count += hb_str_same(p->bufs[hb_op_writes(p, &p->ops[i])[w]].name, name);
    return count;
}

/* What a copy of a kept value takes in all layers, in the program that keeps all: the op has the
 * value's name and how. 0: there is none, since who makes or reads it does so in its stack. */
static int64_t copy_ns(const struct hb_relax_build *x, const char *name, const char *how)
{
    const struct hb_program *all = &x->all;
    int64_t least = INT64_MAX;
    uint32_t count = 0;
    for (uint32_t i = 0; i < all->op_count; i++) {
        const struct hb_op *op = &all->ops[i];
        if (op->kind != HB_OP_COPY || op->loop == HB_NONE || !hb_str_starts(op->name, name) ||
            !hb_str_same(op->name + strlen(name), how))
            continue;
        int64_t ns = hb_mul_sat(hb_cost_op_ns(&x->all_cost, i), hb_program_times(all, op));
        least = hb_smaller(least, ns);
        count++;
    }
    return count > 0 && count >= count_made(x, name) ? least : 0;
}

static bool is_sent(const struct hb_relax_build *x, const char *name)
{
    for (uint32_t i = 0; i < x->sent.op_count; i++) {
        const struct hb_op *op = &x->sent.ops[i];
        if (op->kind == HB_OP_HOST_COPY && hb_str_starts(op->name, name) &&
            hb_str_same(op->name + strlen(name), " to the host"))
            return true;
    }
    return false;
}

/* The value of a stack, or of what is made again: a buffer's name up to what is said of it. */
static const char *value_name(const struct hb_relax_build *x, uint32_t buf)
{
    const char *name = x->full.bufs[buf].name, *said = ", saved for backward";
    return hb_str_ends(name, said)
               ? hb_arena_printf(x->arena, "%.*s", (int)(strlen(name) - strlen(said)), name)
               : name;
}

static void name_kept(struct hb_relax_build *x, uint32_t buf, int64_t layers, uint32_t loop)
{
    const char *name = value_name(x, buf);
    if (x->kept_column[buf] != HB_NONE)
        return;
    x->layers[buf] = layers;
    x->kept_loop[buf] = loop;
    x->in_ns[buf] = copy_ns(x, name, " into its stack");
    x->out_ns[buf] = copy_ns(x, name, " out of its stack");
    x->kept_column[buf] = x->lp.columns;
    x->lp.columns += 2;
    if (is_sent(x, name))
        return;
    hb_relax_entry(x, x->kept_column[buf] + 1, -1);
    hb_relax_close(x, 0);
}

static bool is_kept_by(const struct hb_buf *b, enum hb_policy policy)
{
    return (b->kept_by >> policy & 1) != 0;
}

/* What has no name is kept on the device by policies without names alone. */
static void add_nameless(struct hb_relax_build *x, uint32_t buf)
{
    const struct hb_buf *b = &x->full.bufs[buf];
    if (!b->kept_by || is_kept_by(b, HB_POLICY_NAMES))
        return;
    hb_relax_entry(x, x->kept_column[buf] + 1, -1);
    hb_relax_close(x, 0);
    hb_relax_entry(x, x->kept_column[buf], -1);
    if (is_kept_by(b, HB_POLICY_NONE))
        hb_relax_entry(x, x->none_column, 1);
    if (is_kept_by(b, HB_POLICY_DOTS))
        hb_relax_entry(x, x->dots_column, 1);
    hb_relax_close(x, 0);
}

/* What an op of every policy reads those policies keep. */
static void add_whole(struct hb_relax_build *x, uint32_t buf)
{
    const struct hb_buf *b = &x->full.bufs[buf];
    bool none = is_kept_by(b, HB_POLICY_NONE), dots = is_kept_by(b, HB_POLICY_DOTS_NO_BATCH);
    if (!none && !dots)
        return;
    hb_relax_entry(x, x->kept_column[buf], 1);
    if (none)
        hb_relax_entry(x, x->none_column, -1);
    if (dots)
        hb_relax_entry(x, x->dots_column, -1);
    hb_relax_close(x, 0);
}

static void add_loop_policies(struct hb_relax_build *x)
{
    x->none_column = x->lp.columns++;
    x->dots_column = x->lp.columns++;
    hb_relax_entry(x, x->none_column, -1);
    hb_relax_entry(x, x->dots_column, -1);
    hb_relax_close(x, -1);
}

static void add_kept(struct hb_relax_build *x, uint32_t buf)
{
    hb_relax_entry(x, x->kept_column[buf], 1);
    hb_relax_entry(x, x->kept_column[buf] + 1, 1);
}

/* What op `index` of a backward loop reads is kept, or made again by `writer`. */
static void add_need(struct hb_relax_build *x, uint32_t index, uint32_t buf, uint32_t writer)
{
    bool optional = x->op_column[index] != HB_NONE, is_new = x->kept_column[buf] == HB_NONE;
    uint32_t loop = x->full.ops[writer].loop;
    name_kept(x, buf, x->full.loops[loop].trips, loop);
    if (is_new)
        add_nameless(x, buf);
    if (!optional)
        add_whole(x, buf);
    add_kept(x, buf);
    hb_relax_entry(x, x->op_column[writer], 1);
    if (optional)
        hb_relax_entry(x, x->op_column[index], -1);
    hb_relax_close(x, optional ? 0 : 1);
}

/* A weight is gathered once for its gradient's product; whether once more for what is made again
 * depends on where that stands. */
static bool gathers_weight(const struct hb_program *p, const struct hb_op *op)
{
    return op->kind == HB_OP_ALL_GATHER && op->write_count > 0 &&
           p->bufs[hb_op_writes(p, op)[0]].category == HB_CAT_COMMUNICATION;
}

/* An op of a backward loop: what it may be spared, what it reads, what it writes. */
static void add_op(struct hb_relax_build *x, uint32_t index)
{
    const struct hb_program *p = &x->full;
    const struct hb_op *op = &p->ops[index];
    bool copy = op->kind == HB_OP_COPY || op->kind == HB_OP_HOST_COPY || op->kind == HB_OP_MARK;
    bool made = x->again[index] && !copy && !gathers_weight(p, op);
    if (made)
        x->op_column[index] = x->lp.columns++;
    for (uint32_t r = 0; r < op->read_count && (made || !x->again[index]); r++) {
        uint32_t buf = p->refs[op->refs_at + r], writer = x->writer[buf];
        if (writer != HB_NONE && x->op_column[writer] != HB_NONE)
            add_need(x, index, buf, writer);
    }
    for (uint32_t w = 0; w < op->write_count; w++)
        x->writer[hb_op_writes(p, op)[w]] = index;
}

static bool is_leaf(const struct hb_program *p, uint32_t loop)
{
    for (uint32_t i = loop + 1; i < p->loop_count; i++)
        if (p->loops[i].parent == loop)
            return false;
    return true;
}

static void add_loops(struct hb_relax_build *x)
{
    const struct hb_program *p = &x->full;
    for (uint32_t l = 0; l < p->loop_count; l++) {
        const struct hb_loop *loop = &p->loops[l];
        bool backward = p->ops[loop->first_op].phase == HB_PHASE_BACKWARD;
        if (!backward || !is_leaf(p, l))
            continue;
        for (uint32_t i = 0; i < p->buf_count; i++)
            x->writer[i] = HB_NONE;
        uint32_t first_read = x->read_count;
        add_loop_policies(x);
        x->loop_none[l] = x->none_column;
        for (uint32_t i = loop->first_op; i < loop->end_op; i++) {
            add_op(x, i);
            hb_relax_look(x, i, first_read);
        }
    }
}

/* Stacks of the full program: the layers' inputs, which every policy keeps. */
static void add_inputs(struct hb_relax_build *x)
{
    for (uint32_t i = 0; i < x->full.buf_count; i++)
        if (x->full.bufs[i].category == HB_CAT_SAVED && x->full.bufs[i].slices > 0 &&
            x->full.bufs[i].alias_of == HB_NONE) {
            name_kept(x, i, x->full.bufs[i].slices, HB_NONE);
            x->out_ns[i] = 0; /* not known to be read by an op of every policy */
            add_kept(x, i);
            hb_relax_close(x, 1);
        }
}

static double slice_bytes(const struct hb_buf *b)
{
    return (double)b->plain_bytes / (double)(b->slices > 0 ? b->slices : 1);
}

/* What is kept may be less than what was made: of a kernel that runs over a whole
 * sequence each device keeps its own part (TPU, sequence 64: relaxed up to 14 % above the step). */
double hb_relax_layer_bytes(const struct hb_relax_build *x, uint32_t buf)
{
    const struct hb_program *all = &x->all;
    const char *name = x->full.bufs[buf].name;
    double least = slice_bytes(&x->full.bufs[buf]);
    for (uint32_t i = 0; i < all->buf_count && x->ask->cell_spec->mesh[HB_AX_SEQUENCE] > 1; i++) {
        const struct hb_buf *b = &all->bufs[i];
        if (b->category == HB_CAT_SAVED && b->slices > 0 && hb_str_starts(b->name, name) &&
            b->name[strlen(name)] == ',')
            least = fmin(least, slice_bytes(b));
    }
    return least;
}

static bool is_backward_of(const char *name, const char *loop)
{
    return hb_str_starts(name, loop) && hb_str_same(name + strlen(loop), ", backward");
}

/* What the loss finds of what the loop's layers keep under policy none. */
static double find_stacks(const struct hb_relax_build *x, const struct hb_program *none,
                          const char *loop)
{
    struct hb_live *live;
    uint32_t count = hb_live_find(x->arena, none, &live);
    int32_t first, end;
    bool *own = hb_arena_alloc(x->arena, none->buf_count, sizeof *own);
    double sum = 0;
    find_loss(x, none, &first, &end);
    for (uint32_t i = 0; i < none->op_count; i++) {
        const struct hb_op *op = &none->ops[i];
        if (op->loop == HB_NONE || !is_backward_of(loop, none->loops[op->loop].name))
            continue;
        for (uint32_t w = 0; w < op->write_count; w++)
            own[hb_program_root(none, hb_op_writes(none, op)[w])] = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_buf *b = &none->bufs[live[i].buf];
        if (own[live[i].buf] && b->category == HB_CAT_SAVED && b->slices > 0 &&
            b->space == HB_SPACE_HBM && live[i].start < first && live[i].end >= end)
            sum += slice_bytes(b) * (double)b->slices;
    }
    return sum;
}

/* A layer under policy none keeps what its trace reads, named or not, and nothing on the host. At
 * its point all that may be kept is, and makes nothing again: that is within its stacks, or the
 * program tells nothing. */
static void add_none(struct hb_relax_build *x)
{
    struct hb_remat policy = {HB_POLICY_NONE, 0, 0};
    struct hb_program none;
    if (!hb_segment_lower_under(x->arena, x->ask->cell_spec, policy, &none))
        return;
    for (uint32_t l = 0; l < x->full.loop_count; l++) {
        if (x->loop_none[l] == HB_NONE)
            continue;
        double more = find_stacks(x, &none, x->full.loops[l].name);
        for (uint32_t i = 0; i < x->full.buf_count; i++)
            if (x->kept_column[i] != HB_NONE &&
                (x->kept_loop[i] == l || x->kept_loop[i] == HB_NONE))
                more -= hb_relax_layer_bytes(x, i) * (double)x->layers[i];
        if (more < 0)
            continue;
        x->none_bytes[l] = more;
        for (uint32_t i = 0; i < x->full.buf_count; i++)
            if (x->kept_column[i] != HB_NONE && x->kept_loop[i] == l) {
                hb_relax_entry(x, x->kept_column[i] + 1, -1);
                hb_relax_entry(x, x->loop_none[l], -1);
                hb_relax_close(x, -1);
            }
    }
}

/* Bytes on the device (h: 0) or on the host (1) of all that is kept. */
static void add_memory_row(struct hb_relax_build *x, int h, double room_mib)
{
    for (uint32_t i = 0; i < x->full.buf_count; i++)
        if (x->kept_column[i] != HB_NONE) {
            double bytes = hb_relax_layer_bytes(x, i) * (double)x->layers[i];
            hb_relax_entry(x, x->kept_column[i] + (uint32_t)h, -bytes / HB_RELAX_MIB);
        }
    for (uint32_t l = 0; l < x->full.loop_count && h == 0; l++)
        if (x->none_bytes[l] > 0)
            hb_relax_entry(x, x->loop_none[l], -x->none_bytes[l] / HB_RELAX_MIB);
    hb_relax_close(x, -room_mib);
}

/* Down and then up. A stack comes up layer by layer, the last first, and waits for what wrote it
 * last: that layer's copy, before which each stream of copies did all of the layers before it, and
 * the runs before. The next microbatch sends what it made after all of this one was read. */
static void add_copy_row(struct hb_relax_build *x)
{
    const struct hb_program *p = &x->full;
    double times = (double)x->ask->cell_spec->batch.accumulate, one_layer_ns = 0;
    hb_relax_entry(x, 0, 1);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        if (x->kept_column[i] == HB_NONE)
            continue;
        double bytes = hb_relax_layer_bytes(x, i);
        double down_ns = (double)hb_link_host_ns(x->ask->device, bytes, false, false) * times;
        double up_ns = (double)hb_link_host_ns(x->ask->device, bytes, true, false) * times;
        hb_relax_entry(x, x->kept_column[i] + 1,
                       -(down_ns + up_ns) * (double)x->layers[i] / HB_RELAX_MS);
        one_layer_ns += down_ns;
    }
    hb_relax_close(x, -one_layer_ns / HB_RELAX_MS);
}

/* All that a stream makes again, and of compute the copies of what is kept, beside so much. */
enum copies { NO_COPIES, COPIES_OUT, ALL_COPIES };
static void add_stream_row(struct hb_relax_build *x, enum hb_stream stream, enum copies copies,
                           int64_t beside_ns)
{
    const struct hb_program *p = &x->full;
    hb_relax_entry(x, 0, 1);
    for (uint32_t i = 0; i < p->buf_count && copies != NO_COPIES; i++) {
        int64_t ns = x->out_ns[i] + (copies == ALL_COPIES ? x->in_ns[i] : 0);
        if (x->kept_column[i] != HB_NONE && ns > 0)
            hb_relax_entry(x, x->kept_column[i], -(double)ns / HB_RELAX_MS);
    }
    for (uint32_t i = 0; i < p->op_count; i++)
        if (x->op_column[i] != HB_NONE && p->ops[i].stream == stream) {
            double ns =
                (double)hb_cost_op_ns(&x->cost, i) * (double)hb_program_times(p, &p->ops[i]);
            hb_relax_entry(x, x->op_column[i], -ns / HB_RELAX_MS);
        }
    hb_relax_close(x, (double)beside_ns / HB_RELAX_MS);
}

/* The next op of the loop on the compute stream; the loop's end: none. */
static uint32_t next_on_compute(const struct hb_program *p, const struct hb_loop *l, uint32_t from)
{
    while (from < l->end_op &&
           (p->ops[from].stream != HB_STREAM_COMPUTE || p->ops[from].kind == HB_OP_MARK))
        from++;
    return from;
}

static bool reads_of(const struct hb_program *p, uint32_t reader, uint32_t writer)
{
    const struct hb_op *r = &p->ops[reader], *w = &p->ops[writer];
    for (uint32_t i = 0; i < r->read_count; i++)
        for (uint32_t k = 0; k < w->write_count; k++)
            if (p->refs[r->refs_at + i] == hb_op_writes(p, w)[k])
                return true;
    return false;
}

/* Whether the compute stream stands still for the gather: the op before it on that stream makes its
 * operand, and the one behind it reads what it gathers. */
static bool stops_compute(const struct hb_program *p, const struct hb_loop *l, uint32_t gather)
{
    uint32_t before = gather, behind = next_on_compute(p, l, gather + 1);
    while (before > l->first_op && (before == gather || next_on_compute(p, l, before) != before))
        before--;
    return behind < l->end_op && reads_of(p, gather, before) && reads_of(p, behind, gather);
}

/* A gather of that name in the loop for which compute stands still; HB_NONE: it does not, or
 * somewhere only for another of the name. */
static uint32_t find_stop(const struct hb_program *p, const struct hb_loop *l, const char *name)
{
    for (uint32_t i = l->first_op; i < l->end_op; i++)
        if (p->ops[i].kind == HB_OP_ALL_GATHER && hb_str_same(p->ops[i].name, name))
            return stops_compute(p, l, i) ? i : HB_NONE;
    return HB_NONE;
}

static bool is_timed(const struct hb_program *p, const struct hb_loop *l)
{
    for (uint32_t i = l->first_op; i < l->end_op; i++)
        if (p->ops[i].kind == HB_OP_DONE)
            return true;
    return false;
}

/* Of layers, which the loss's chunks are not. */
static bool is_of_block(const struct hb_relax_build *x, uint32_t loop)
{
    const struct hb_model *m = &x->ask->cell_spec->model;
    for (int i = 0; i < m->block_count; i++)
        if (is_backward_of(x->full.loops[loop].name, m->blocks[i].name))
            return is_leaf(&x->full, loop);
    return false;
}

/* How long compute stands still in the backward loops whatever is made again: a weight is gathered
 * when it is wanted, and its operand made just before, by the first product that reads it, be that
 * one which is made again or that of its gradient. Not where gathers are put elsewhere. */
static int64_t stops_ns(const struct hb_relax_build *x)
{
    const struct hb_program *full = &x->full, *all = &x->all;
    int64_t sum = 0;
    for (uint32_t l = 0; l < full->loop_count && full->loop_count == all->loop_count; l++) {
        const struct hb_loop *loop = &full->loops[l];
        if (!is_of_block(x, l) || is_timed(full, loop))
            continue;
        for (uint32_t i = loop->first_op; i < loop->end_op; i++) {
            if (x->again[i] || !stops_compute(full, loop, i))
                continue;
            uint32_t k = find_stop(all, &all->loops[l], full->ops[i].name);
            if (k == HB_NONE)
                continue;
            int64_t ns = hb_smaller(hb_cost_op_ns(&x->cost, i), hb_cost_op_ns(&x->all_cost, k));
            sum = hb_add_sat(sum, hb_mul_sat(ns, hb_program_times(full, &full->ops[i])));
        }
    }
    return sum;
}

static void add_time_rows(struct hb_relax_build *x, const int64_t busy[HB_STREAM_COUNT])
{
    const struct hb_floor *f = x->ask->floor;
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        add_stream_row(x, (enum hb_stream)s, s == HB_STREAM_COMPUTE ? ALL_COPIES : NO_COPIES,
                       busy[s]);
    add_copy_row(x);
    if (!f)
        return;
    int64_t path_ns = f->ends_ns + f->layers_ns - f->wait_ns + f->tail_ns;
    add_stream_row(x, HB_STREAM_COMPUTE, COPIES_OUT, path_ns);
    add_stream_row(x, HB_STREAM_COMPUTE, ALL_COPIES, path_ns - f->idle_ns);
    add_stream_row(x, HB_STREAM_COMPUTE, NO_COPIES, hb_add_sat(path_ns, stops_ns(x)));
    if (x->ask->cell_spec->stack.unroll == 1)
        hb_relax_add_cuts(x, path_ns);
}

/* --- the whole --- */

static uint32_t *none_list(struct hb_arena *arena, uint32_t count)
{
    uint32_t *list = hb_arena_alloc(arena, count, sizeof *list);
    for (uint32_t i = 0; i < count; i++)
        list[i] = HB_NONE;
    return list;
}

static int64_t solve(struct hb_relax_build *x, const int64_t busy[HB_STREAM_COUNT])
{
    const struct hb_relax_ask *ask = x->ask;
    if (ask->budget_bytes < INT64_MAX) {
        double room = (double)ask->budget_bytes - (double)fixed_bytes(x);
        add_memory_row(x, 0, room / HB_RELAX_MIB + 1);
    }
    if (ask->host_bytes < INT64_MAX)
        add_memory_row(x, 1, (double)ask->host_bytes / HB_RELAX_MIB + 1);
    add_time_rows(x, busy);
    enum hb_ilp_status status = hb_ilp_linear(x->arena, &x->lp);
    if (status == HB_ILP_INFEASIBLE)
        return INT64_MAX;
    return status == HB_ILP_OPTIMAL ? (int64_t)floor(x->lp.bound * HB_RELAX_MS) : 0;
}

/* Layers that stand in the program one by one are no loops: what is copied or made again there is
 * not told from what the ends do (unroll 4 of 4 layers: the copies of a policy that keeps all were
 * taken for those of any, 1.5 % above the step). A block of one step has one policy. */
static bool is_scanned(const struct hb_spec *spec)
{
    if (spec->mesh[HB_AX_PIPELINE] > 1 || spec->stack.form != HB_FORM_SCAN)
        return false;
    for (int i = 0; i < spec->model.block_count; i++) {
        int32_t steps = hb_block_steps(&spec->model.blocks[i]);
        if (steps > 1 && steps <= spec->stack.unroll)
            return false;
    }
    return true;
}

/* All on the host that a compiler takes there, or the file says. */
static struct hb_remat sent_policy(const struct hb_spec *spec)
{
    struct hb_remat r = {HB_POLICY_NAMES, 0, 0};
    for (int i = 0; i < spec->model.block_count; i++)
        r.offload |= spec->model.blocks[i].remat.offload;
    for (int t = 0; t < HB_TN_ITER_IN; t++) {
        struct hb_remat one = {HB_POLICY_NAMES, 0, 1u << t};
        r.offload |= hb_menu_compiles(spec, &one) ? one.offload : 0;
    }
    return r;
}

static void relax_as(struct hb_arena *scratch, const struct hb_relax_ask *ask, struct hb_relax *out)
{
    /* At the loss least is there as the step is written: zeros come behind it, what is read there
     * just before. What a compiler makes again for want of memory, it makes of this policy. */
    struct hb_spec written = hb_bound_written(ask->cell_spec);
    struct hb_relax_ask own = *ask;
    if (written.share == HB_SHARE_ASKED)
        written.share = HB_SHARE_EXCEEDED;
    own.cell_spec = &written;
    ask = &own;
    struct hb_relax_build x = {.arena = scratch, .ask = ask};
    int64_t busy[HB_STREAM_COUNT] = {0};
    *out = (struct hb_relax){0};
    if (!is_scanned(ask->cell_spec) || !hb_segment_lower_floor(scratch, ask->cell_spec, &x.all) ||
        !hb_segment_lower_under(scratch, ask->cell_spec, (struct hb_remat){HB_POLICY_FULL, 0, 0},
                                &x.full) ||
        !hb_segment_lower_under(scratch, ask->cell_spec, sent_policy(ask->cell_spec), &x.sent))
        return;
    hb_cost_init(&x.cost, &x.full, ask->device);
    hb_cost_init(&x.all_cost, &x.all, ask->device);
    x.optional = hb_segment_optional_ops(scratch, &x.all);
    x.again = hb_segment_optional_ops(scratch, &x.full);
    x.op_column = none_list(scratch, x.full.op_count);
    x.kept_column = none_list(scratch, x.full.buf_count);
    x.early_column = none_list(scratch, x.full.buf_count);
    x.writer = none_list(scratch, x.full.buf_count);
    x.layers = hb_arena_alloc(scratch, x.full.buf_count, sizeof *x.layers);
    x.in_ns = hb_arena_alloc(scratch, x.full.buf_count, sizeof *x.in_ns);
    x.out_ns = hb_arena_alloc(scratch, x.full.buf_count, sizeof *x.out_ns);
    x.kept_loop = none_list(scratch, x.full.buf_count);
    x.loop_none = none_list(scratch, x.full.loop_count);
    x.none_bytes = hb_arena_alloc(scratch, x.full.loop_count, sizeof *x.none_bytes);
    x.lp.columns = 1;
    sum_streams(&x, busy);
    add_inputs(&x);
    add_loops(&x);
    add_none(&x);
    hb_relax_add_early(&x);
    out->bound_ns = solve(&x, busy);
    out->rows = x.lp.row_count;
    out->columns = x.lp.columns;
}

void hb_relax_find(struct hb_arena *scratch, const struct hb_relax_ask *ask, struct hb_relax *out)
{
    int kinds[HB_LOWER_KINDS], count = hb_lower_kinds(scratch, ask->cell_spec, kinds);
    struct hb_spec spec = *ask->cell_spec;
    struct hb_relax_ask own = *ask;
    own.cell_spec = &spec;
    for (int i = 0; i < count; i++) {
        struct hb_relax one;
        spec.as_order = kinds[i];
        relax_as(scratch, &own, &one);
        if (i == 0 || one.bound_ns < out->bound_ns)
            *out = one;
    }
}
