/* Floors: see bound.h. The step is lowered with a policy that keeps all that has a name; its ops
 * are those of every policy, but for copies and recomputation, which count as nothing
 * (hb_segment_optional_ops). Tests compare floors with every policy of the menus. */
#include "solver/bound.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/names.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/cost.h"
#include "sim/engine/lend.h"
#include "sim/engine/live.h"
#include "sim/graph/link.h"
#include "sim/ir/habits.h"
#include "sim/ir/lower.h"
#include "solver/brute.h"
#include "solver/merged.h"
#include "solver/op_floor.h"
#include "solver/trip_floor.h"

/* Inside of a loop over layers or pipeline iterations: not merely in that over microbatches. */
static bool is_of_layers(const struct hb_spec *spec, const struct hb_program *p, uint32_t op)
{
    uint32_t loop = p->ops[op].loop;
    if (loop == HB_NONE)
        return false;
    return spec->batch.accumulate == 1 || p->loops[loop].parent != HB_NONE;
}

struct bound_ask {
    const struct hb_spec *cell_spec;
    const struct hb_device *device;
    int64_t budget_bytes; /* of what takes more the times are not wanted */
    int64_t known_bytes;  /* up to this much the bytes may be less than what is known */
    bool whole;           /* with the ends, else the layers alone */
    bool backward;        /* of the forward pass the arithmetic alone */
};

/* Sequences that a device goes through in a step, in layers of no pipeline and in a stage, whose
 * iterations begin and end with some that are thrown away. */
struct work {
    double whole, staged;
    double at_once; /* the most in one product */
};

static struct work work_of(const struct hb_spec *spec)
{
    int64_t stages = spec->mesh[HB_AX_PIPELINE];
    int64_t split = spec->sharding.ends_over_pipeline ? stages : 1;
    int64_t ways =
        spec->mesh[HB_AX_DATA] * spec->mesh[HB_AX_FSDP] * spec->mesh[HB_AX_EXPERT] * split;
    int64_t batch = hb_div_up(hb_div_up(spec->batch.global, spec->batch.accumulate), ways);
    int64_t microbatches = spec->pipeline.microbatches;
    int64_t iterations = microbatches * spec->pipeline.repeats + stages - 1;
    double steps = (double)spec->batch.accumulate;
    int64_t own = hb_div_up(batch * split, microbatches);
    return (struct work){steps * (double)batch, steps * (double)iterations * (double)own,
                         (double)hb_larger(batch, own)};
}

/* Kernels' times are rounded to ns: what is shorter than this for one sequence is left out, of the
 * rest that is less than such a part. */
enum { SHORTEST_NS = 1000 };
static const double rounding = 1e-3;

/* A product of the layers that every policy makes, or their attention: nothing makes it in less
 * than its arithmetic takes at the best rate. */
static double least_ns(const struct hb_cost *cost, const bool *optional,
                       const struct bound_ask *ask, uint32_t op)
{
    bool compute = cost->p->ops[op].stream == HB_STREAM_COMPUTE;
    bool counts = compute && !optional[op] && is_of_layers(ask->cell_spec, cost->p, op);
    return counts ? hb_cost_least_ns(cost, op) : 0;
}

/* Of all products by that name one: where memory is short a gradient is made more than once. */
static double products_ns(struct hb_arena *scratch, const struct hb_cost *cost,
                          const bool *optional, const struct bound_ask *ask)
{
    const struct hb_program *p = cost->p;
    double sum = 0, at_once = work_of(ask->cell_spec).at_once;
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct hb_names known;
    hb_names_init(&known, scratch, p->op_count);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        double ns = least_ns(cost, optional, ask, i);
        if (ns < SHORTEST_NS * at_once || known.names[hb_names_place(&known, op->name, 0)])
            continue;
        hb_names_put(&known, op->name, 0);
        sum += ns * (double)hb_program_times(p, op);
    }
    hb_arena_rewind(scratch, mark);
    return sum;
}

/* Of the forward pass, whoever makes there what inside of whom (merged.h). */
static int64_t forward_ns(const struct hb_cost *cost, const bool *optional,
                          const struct bound_ask *ask)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < cost->p->op_count; i++) {
        const struct hb_op *op = &cost->p->ops[i];
        if (op->phase != HB_PHASE_FORWARD)
            continue;
        double ns = fmin(least_ns(cost, optional, ask, i), (double)HB_COST_MAX_NS);
        sum = hb_add_sat(sum, hb_mul_sat((int64_t)ns, hb_program_times(cost->p, op)));
    }
    return sum;
}

/* Without `change` (merged.h), which changes the forward pass alone, of that only the arithmetic of
 * its products counts. */
static void sum_streams(struct hb_arena *scratch, const struct bound_ask *ask,
                        const struct hb_program *p, const int64_t *change, const bool *optional,
                        struct hb_floor *out)
{
    int64_t busy[HB_STREAM_COUNT] = {0};
    struct hb_cost cost;
    hb_cost_init(&cost, p, ask->device);
    for (uint32_t i = 0; i < p->op_count; i++)
        if (!optional[i] && (change || p->ops[i].phase != HB_PHASE_FORWARD) &&
            (ask->whole || is_of_layers(ask->cell_spec, p, i))) {
            const struct hb_op *op = &p->ops[i];
            int64_t once_ns = hb_merged_ns(hb_cost_op_ns(&cost, i), change ? change[i] : 0);
            int64_t ns = hb_mul_sat(once_ns, hb_program_times(p, op));
            busy[op->stream] = hb_add_sat(busy[op->stream], ns);
            if (op->stream == HB_STREAM_COMPUTE && op->phase == HB_PHASE_FORWARD)
                out->forward_ns = hb_add_sat(out->forward_ns, ns);
        }
    if (!change)
        busy[HB_STREAM_COMPUTE] =
            hb_add_sat(busy[HB_STREAM_COMPUTE], forward_ns(&cost, optional, ask));
    if (ask->backward && hb_bound_is_dense(ask->cell_spec))
        out->products_ns = products_ns(scratch, &cost, optional, ask);
    for (int s = 0; s < HB_STREAM_COUNT; s++) {
        out->bound_ns = busy[s] > out->bound_ns ? busy[s] : out->bound_ns;
        if (s >= HB_STREAM_COLLECTIVE)
            out->links_ns = hb_add_sat(out->links_ns, busy[s]);
    }
}

/* --- the path of a pipeline --- */

/* What each op takes under every policy, and which are of none. */
static struct hb_op_costs least_costs(struct hb_arena *scratch, const struct hb_program *p,
                                      const struct hb_device *device, const int64_t *change,
                                      bool *optional)
{
    struct hb_op_costs costs = {
        .usual_ns = hb_arena_alloc(scratch, p->op_count, sizeof *costs.usual_ns),
        .by_steps = hb_arena_alloc(scratch, p->op_count, sizeof *costs.by_steps)};
    struct hb_cost cost;
    hb_cost_init(&cost, p, device);
    for (uint32_t i = 0; i < p->op_count; i++) {
        optional[i] |= change[i] == HB_MERGED_AWAY;
        costs.usual_ns[i] = optional[i] ? 0 : hb_merged_ns(hb_cost_op_ns(&cost, i), change[i]);
    }
    return costs;
}

/* As a floor's segment has it (step_bound.h): loops without loops inside take no less than their
 * trips do (trip_floor.h), of what is between them the compute stream counts. */
static int64_t path_ns(struct hb_arena *scratch, const struct bound_ask *ask,
                       const struct hb_program *p, const struct hb_op_costs *costs,
                       const bool *optional)
{
    int64_t sum = 0;
    struct hb_trip_floor trips;
    hb_trip_floor_init(&trips, scratch, p, hb_program_roots(scratch, p), costs, optional);
    trips.any_order = true; /* pipelines follow policies' orders */
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        if (!ask->whole && !is_of_layers(ask->cell_spec, p, i))
            continue;
        int64_t ns = 0, times = hb_program_times(p, op);
        if (op->loop != HB_NONE && !hb_trip_floor_has_inner(p, op->loop)) {
            const struct hb_loop *l = &p->loops[op->loop];
            ns = hb_trip_floor_ns(&trips, op->loop, 1, l->trips);
            times /= hb_larger(l->trips, 1);
            i = l->end_op - 1;
        } else if (op->stream == HB_STREAM_COMPUTE) {
            ns = costs->usual_ns[i];
        }
        sum = hb_add_sat(sum, hb_mul_sat(ns, times));
    }
    return sum;
}

/* By root: argument or output. */
static bool *find_fixed(struct hb_arena *scratch, const struct hb_program *p)
{
    bool *fixed = hb_arena_alloc(scratch, p->buf_count, sizeof *fixed);
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument || p->bufs[i].output)
            fixed[hb_program_root(p, i)] = true;
    return fixed;
}

/* When the first optimizer op runs; op_count: there is none. */
static uint32_t first_update(const struct hb_program *p)
{
    uint32_t op = 0;
    while (op < p->op_count && p->ops[op].phase != HB_PHASE_OPTIMIZER)
        op++;
    return op;
}

/* In an order of XLA's schedulers a block's updates may come before the next block's loop. */
static bool is_apart(const struct bound_ask *ask)
{
    return hb_habits_ordered(ask->cell_spec) && ask->cell_spec->batch.accumulate == 1;
}

/* Gradients that are there when the optimizer begins, whatever a policy does: those of the layers,
 * which their loops have written, or all where they were added up over microbatches. The ends' own
 * may come before or after. Where blocks' updates come apart, those of one after another are there
 * (seed 1007174). */
static int64_t gradient_bytes(struct hb_arena *scratch, const struct bound_ask *ask,
                              const struct hb_program *p, const struct hb_live *live,
                              uint32_t count)
{
    int32_t update = (int32_t)first_update(p);
    bool apart = is_apart(ask);
    uint32_t *loop = hb_arena_alloc(scratch, p->buf_count, sizeof *loop); /* and 1; 0: in none */
    int64_t *sums = hb_arena_alloc(scratch, (size_t)p->loop_count + 1, sizeof *sums), most = 0;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        for (uint32_t w = 0; w < op->write_count && op->loop != HB_NONE; w++)
            loop[hb_program_root(p, hb_op_writes(p, op)[w])] = op->loop + 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_buf *b = &p->bufs[live[i].buf];
        int64_t *sum = &sums[apart ? loop[live[i].buf] : 0];
        if (b->category == HB_CAT_GRADIENTS && b->space == HB_SPACE_HBM && !b->argument &&
            !b->output && loop[live[i].buf] && live[i].start < update && live[i].end >= update)
            *sum = hb_add_sat(*sum, live[i].bytes);
    }
    for (uint32_t i = 0; i <= p->loop_count; i++)
        most = hb_larger(most, sums[i]);
    return most;
}

/* The logits' bytes that live at once beside what is fixed, which alone lives from before the first
 * op or beyond the last; without alignment. */
static int64_t logits_at_once(struct hb_arena *scratch, const struct hb_program *p,
                              const struct hb_live *live, uint32_t count)
{
    const bool *fixed = find_fixed(scratch, p);
    int64_t *change = hb_arena_alloc(scratch, (size_t)p->op_count + 1, sizeof *change);
    int64_t now = 0, most = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_buf *b = &p->bufs[live[i].buf];
        if (b->category != HB_CAT_LOGITS || b->space != HB_SPACE_HBM || fixed[live[i].buf])
            continue;
        change[live[i].start] += live[i].bytes;
        change[live[i].end + 1] -= live[i].bytes;
    }
    for (uint32_t t = 0; t < p->op_count; t++) {
        now += change[t];
        most = now > most ? now : most;
    }
    return most;
}

/* Arguments and outputs lie there for the whole step; without alignment, to be below any. Runs of
 * layers are padded each in its own way: without padding, to be below any split of them. */
static int64_t fixed_bytes(struct hb_arena *scratch, const struct hb_program *p,
                           const struct hb_live *live, uint32_t count, bool padded)
{
    const bool *fixed = find_fixed(scratch, p);
    int64_t sum = p->argument_extra_bytes;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_buf *b = &p->bufs[live[i].buf];
        if (fixed[live[i].buf] && b->space == HB_SPACE_HBM)
            sum = hb_add_sat(sum, padded ? live[i].bytes : b->plain_bytes);
    }
    return sum;
}

static int64_t state_bytes(const struct hb_program *p, const struct hb_live *live, uint32_t count)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_buf *b = &p->bufs[live[i].buf];
        if (b->argument && b->category != HB_CAT_INPUTS && b->space == HB_SPACE_HBM)
            sum = hb_add_sat(sum, b->bytes);
    }
    return sum;
}

/* Pipelines, layers side by side and steps of whatever memory (HB_SHARE_ASKED), of which XLA:GPU
 * makes some again where it is short (again.h). A policy that keeps less may need no op to be made
 * again, so none counts. The step that is made again has every op that the step as written has, the
 * same bytes in their operands, in another order and some of them twice; so it takes no less on any
 * stream, and what an op works in is there while it runs. What is fixed, and what loops leave
 * behind, is never made again; what is read again lends no more room; what merely waits may be made
 * again and is not counted (is_never_again). */
static struct hb_spec with_room(const struct hb_spec *cell_spec)
{
    struct hb_spec roomy = *cell_spec;
    if (cell_spec->mesh[HB_AX_PIPELINE] > 1 || cell_spec->stack.form == HB_FORM_LOOP ||
        cell_spec->share == HB_SHARE_ASKED)
        roomy.hardware.memory_bytes = roomy.hardware.hbm_bytes = 0;
    return roomy;
}

/* Scans within what the compiler leaves a step, of which it makes nothing again. */
static bool is_never_again(const struct hb_spec *spec)
{
    return spec->share == HB_SHARE_KEPT && spec->mesh[HB_AX_PIPELINE] == 1 &&
           spec->stack.form != HB_FORM_LOOP;
}

/* A program's lives. */
struct lives {
    const struct hb_program *p;
    struct hb_live *list;
    uint32_t count;
    int64_t lent_bytes; /* what of arguments and outputs may hold temporaries for a while */
};

static struct lives find_lives(struct hb_arena *scratch, const struct hb_program *p)
{
    struct lives l = {.p = p};
    l.count = hb_live_find(scratch, p, &l.list);
    l.lent_bytes = hb_lend_room(scratch, p, l.list, l.count, INT32_MAX);
    return l;
}

/* Arguments and outputs, less what of them is lent. */
static int64_t unlent_bytes(struct hb_arena *scratch, const struct lives *l, bool padded)
{
    return fixed_bytes(scratch, l->p, l->list, l->count, padded) - l->lent_bytes;
}

static void find_bytes(struct hb_arena *scratch, const struct bound_ask *ask, const struct lives *l,
                       const bool *optional, struct hb_floor *out)
{
    int64_t gradients = gradient_bytes(scratch, ask, l->p, l->list, l->count);
    int64_t fixed = fixed_bytes(scratch, l->p, l->list, l->count, true);
    out->fixed_bytes = fixed - l->lent_bytes;
    out->state_bytes = state_bytes(l->p, l->list, l->count);
    out->spread_bytes = hb_segment_spread_bytes(l->p, optional);
    bool accumulates = ask->cell_spec->batch.accumulate > 1;
    int64_t works_in = hb_segment_scratch_bytes(l->p, l->list, l->count, optional, accumulates);
    int64_t beside = hb_larger(gradients, works_in);
    out->live_bytes =
        hb_larger(hb_add_sat(fixed, out->spread_bytes), hb_add_sat(out->fixed_bytes, beside));
}

/* By op: whether it is the ask's. */
static bool *counted_ops(struct hb_arena *scratch, const struct bound_ask *ask,
                         const struct hb_program *p)
{
    bool *counts = hb_arena_alloc(scratch, p->op_count, sizeof *counts);
    for (uint32_t i = 0; i < p->op_count; i++)
        counts[i] = ask->whole || is_of_layers(ask->cell_spec, p, i);
    return counts;
}

/* What ops of every policy work on, where that may be more than what is known: more programs. Which
 * arguments hold temporaries follows from the policy, too (seed 307). */
static void add_ops_bytes(struct hb_arena *scratch, const struct bound_ask *ask,
                          const struct hb_spec *roomy, const struct lives *l, const bool *optional,
                          struct hb_floor *out)
{
    static const enum hb_policy others[] = {HB_POLICY_FULL, HB_POLICY_NONE};
    enum { OTHERS = sizeof others / sizeof others[0] };
    struct hb_op_floor_ask own = {.all = l->p,
                                  .live = l->list,
                                  .live_count = l->count,
                                  .optional = optional,
                                  .counts = counted_ops(scratch, ask, l->p),
                                  .split = ask->cell_spec->mesh[HB_AX_PIPELINE] == 1,
                                  .apart = is_apart(ask)};
    own.lasting = own.split || hb_habits_ordered(ask->cell_spec);
    own.late = ask->cell_spec->share == HB_SHARE_ASKED && ask->cell_spec->compiler == HB_XLA_GPU;
    own.waits = is_never_again(ask->cell_spec);
    struct hb_op_floor *ops = hb_op_floor_open(scratch, &own);
    int64_t fixed = own.split ? unlent_bytes(scratch, l, false) : out->fixed_bytes;
    int64_t most = hb_add_sat(fixed, hb_op_floor_bytes(ops));
    hb_op_floor_forget(ops, hb_larger(out->live_bytes, ask->known_bytes) - fixed);
    for (int i = 0; i < OTHERS && most > out->live_bytes && most > ask->known_bytes; i++) {
        struct hb_program *other = hb_arena_alloc(scratch, 1, sizeof *other);
        struct hb_remat policy = {others[i], 0, 0};
        if (!hb_segment_lower_under(scratch, roomy, policy, other))
            return;
        struct lives lives = find_lives(scratch, other);
        hb_op_floor_join(ops, other, lives.list, lives.count);
        fixed = hb_smaller(fixed, unlent_bytes(scratch, &lives, !own.split));
        most = hb_add_sat(fixed, hb_op_floor_bytes(ops));
        if (i + 1 == OTHERS)
            out->live_bytes = hb_larger(out->live_bytes, most);
    }
}

static bool bound_program(struct hb_arena *scratch, const struct bound_ask *ask,
                          struct hb_floor *out)
{
    struct hb_spec roomy = with_room(ask->cell_spec);
    struct hb_program p, merged;
    *out = (struct hb_floor){0};
    if (!hb_segment_lower_floor(scratch, &roomy, &p))
        return false;
    bool *optional = hb_segment_optional_ops(scratch, &p);
    struct lives lives = find_lives(scratch, &p);
    find_bytes(scratch, ask, &lives, optional, out);
    if (ask->known_bytes < INT64_MAX)
        add_ops_bytes(scratch, ask, &roomy, &lives, optional, out);
    if (out->live_bytes > ask->budget_bytes)
        return true;
    if (ask->backward) {
        sum_streams(scratch, ask, &p, NULL, optional, out);
        return true;
    }
    if (!hb_segment_lower_merged(scratch, &roomy, &merged))
        return false;
    const int64_t *change = hb_merged_find(scratch, &p, &merged, ask->device);
    sum_streams(scratch, ask, &p, change, optional, out);
    if (ask->cell_spec->mesh[HB_AX_PIPELINE] > 1) {
        struct hb_op_costs costs = least_costs(scratch, &p, ask->device, change, optional);
        out->bound_ns = hb_larger(out->bound_ns, path_ns(scratch, ask, &p, &costs, optional));
    }
    return true;
}

struct hb_spec hb_bound_written(const struct hb_spec *cell_spec)
{
    struct hb_spec spec = *cell_spec;
    if (spec.as_order == HB_OWN_ORDER)
        spec.as_order = HB_AS_WRITTEN;
    return spec;
}

bool hb_bound_reordered(const struct hb_spec *cell_spec)
{
    return hb_habits_ordered(cell_spec) || hb_link_is_inside(cell_spec);
}

/* A floor of a spec. */
typedef bool bound_one(struct hb_arena *scratch, const void *ask, const struct hb_spec *spec,
                       struct hb_floor *out);

static bool bound_program_of(struct hb_arena *scratch, const void *ask, const struct hb_spec *spec,
                             struct hb_floor *out)
{
    struct bound_ask own = *(const struct bound_ask *)ask;
    own.cell_spec = spec;
    return bound_program(scratch, &own, out);
}

static void keep_less(struct hb_floor *least, const struct hb_floor *other)
{
    least->bound_ns = hb_smaller(least->bound_ns, other->bound_ns);
    least->live_bytes = hb_smaller(least->live_bytes, other->live_bytes);
    least->ends_ns = hb_smaller(least->ends_ns, other->ends_ns);
    least->layers_ns = hb_smaller(least->layers_ns, other->layers_ns);
    least->again_ns = hb_smaller(least->again_ns, other->again_ns);
    least->tail_ns = hb_smaller(least->tail_ns, other->tail_ns);
    least->fixed_bytes = hb_smaller(least->fixed_bytes, other->fixed_bytes);
    least->wait_ns = hb_larger(least->wait_ns, other->wait_ns); /* are taken off */
    least->idle_ns = hb_larger(least->idle_ns, other->idle_ns);
}

/* *out becomes the less of itself and of this one, the first of all just that. */
static bool take_less(struct hb_arena *scratch, bound_one *one, const void *ask,
                      const struct hb_spec *spec, bool first, struct hb_floor *out)
{
    struct hb_floor own;
    if (!one(scratch, ask, spec, &own))
        return false;
    if (first)
        *out = own;
    else
        keep_less(out, &own);
    return true;
}

/* A policy decides in which order the layers' own ops go, so what all need at least is the least
 * of the three. */
static bool least_of_three(struct hb_arena *scratch, bound_one *one, const void *ask,
                           const struct hb_spec *cell_spec, struct hb_floor *out)
{
    struct hb_spec spec = *cell_spec;
    if (!hb_link_is_inside(&spec))
        return one(scratch, ask, &spec, out);
    for (spec.as_layers = 1; spec.as_layers <= HB_ORDER_KINDS; spec.as_layers++)
        if (!take_less(scratch, one, ask, &spec, spec.as_layers == 1, out))
            return false;
    return true;
}

/* The same of the orders in which XLA:TPU has them otherwise. */
static bool least_of_kinds(struct hb_arena *scratch, bound_one *one, const void *ask,
                           const struct hb_spec *cell_spec, struct hb_floor *out)
{
    int kinds[HB_LOWER_KINDS], count = hb_lower_kinds(scratch, cell_spec, kinds);
    struct hb_spec spec = *cell_spec;
    for (int i = 0; i < count; i++) {
        spec.as_order = kinds[i];
        if (!take_less(scratch, one, ask, &spec, i == 0, out))
            return false;
    }
    return true;
}

static bool bound_in_layers(struct hb_arena *scratch, const struct bound_ask *ask,
                            struct hb_floor *out)
{
    return least_of_three(scratch, bound_program_of, ask, ask->cell_spec, out);
}

static bool bound_node_of(struct hb_arena *scratch, const void *ask, const struct hb_spec *spec,
                          struct hb_floor *out)
{
    struct hb_spec written = hb_bound_written(spec);
    struct bound_ask own = *(const struct bound_ask *)ask;
    own.cell_spec = &written;
    return bound_in_layers(scratch, &own, out);
}

bool hb_bound_node(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                   const struct hb_device *device, struct hb_bound_limits limits,
                   struct hb_floor *out)
{
    struct bound_ask ask = {
        .device = device, .budget_bytes = limits.budget_bytes, .known_bytes = limits.known_bytes};
    if (limits.known_bytes == INT64_MAX) /* sums alone */
        return bound_node_of(scratch, &ask, cell_spec, out);
    return least_of_kinds(scratch, bound_node_of, &ask, cell_spec, out);
}

bool hb_bound_backward(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                       const struct hb_device *device, int64_t budget_bytes, struct hb_floor *out)
{
    struct bound_ask ask = {
        .device = device, .budget_bytes = budget_bytes, .known_bytes = INT64_MAX, .backward = true};
    return bound_node_of(scratch, &ask, cell_spec, out);
}

bool hb_bound_is_dense(const struct hb_spec *spec)
{
    bool dense = true;
    for (int i = 0; i < spec->model.block_count; i++)
        dense = dense && !hb_block_mixes(&spec->model.blocks[i]);
    return dense;
}

/* Proof. Every product of a dense layer, and its attention, has the sequences of a
 * microbatch in one of its dimensions once, and the others follow from model and mesh: so its
 * operations are as many times more as there are more sequences, over all trips those of the whole
 * step. Each of them is made at least once, and of those of one name but one is counted (gemma3-12b
 * with 3 sequences a device makes gradients again that it makes once with 12). No product of any
 * size is faster than the best of the device's curve; attention's part of the peak follows from the
 * length of the sequences alone. */
int64_t hb_bound_alike(const struct hb_floor *first, const struct hb_spec *first_spec,
                       const struct hb_spec *spec)
{
    bool alike = memcmp(first_spec->mesh, spec->mesh, sizeof spec->mesh) == 0 &&
                 first_spec->pipeline.repeats == spec->pipeline.repeats && hb_bound_is_dense(spec);
    if (!alike || !(first->products_ns > 0))
        return 0;
    struct work from = work_of(first_spec), to = work_of(spec);
    double times = to.whole / from.whole;
    if (spec->mesh[HB_AX_PIPELINE] > 1)
        times = fmin(times, to.staged / from.staged);
    double ns = first->products_ns * times * (1 - rounding);
    return ns < 9e18 ? (int64_t)ns : INT64_MAX / 2;
}

/* Proof. The rows of a layer's tokens are those of its sequences at once, times what follows from
 * model and mesh, rounded up: with more sequences there are no fewer, and so no less is written by
 * the op that spreads the tokens and the gradient of the outputs over the experts, which every
 * backward pass has (spread_ends in spread.c). It lies beside what is kept from step to step, since
 * none of that is as large, here or there. */
int64_t hb_bound_spread(const struct hb_floor *first, const struct hb_spec *first_spec,
                        const struct hb_spec *spec)
{
    bool holds = memcmp(first_spec->mesh, spec->mesh, sizeof spec->mesh) == 0 &&
                 first_spec->pipeline.repeats == spec->pipeline.repeats &&
                 first_spec->pipeline.microbatches == spec->pipeline.microbatches &&
                 first_spec->batch.global == spec->batch.global &&
                 first_spec->batch.accumulate >= spec->batch.accumulate;
    return holds ? hb_add_sat(first->state_bytes, first->spread_bytes) : 0;
}

/* A cell without segments. */
static bool bound_whole_cell(struct hb_arena *scratch, const struct bound_ask *ask,
                             struct hb_floor *out)
{
    struct hb_program p;
    struct hb_live *live;
    if (!bound_in_layers(scratch, ask, out) || !hb_segment_lower_floor(scratch, ask->cell_spec, &p))
        return false;
    uint32_t count = hb_live_find(scratch, &p, &live);
    int64_t at_loss = hb_add_sat(out->fixed_bytes, logits_at_once(scratch, &p, live, count));
    out->live_bytes = at_loss > out->live_bytes ? at_loss : out->live_bytes;
    return true;
}

/* Of one sum, as a configuration of all items has it. */
static int64_t sum_at(const struct hb_segment *s, const struct hb_spec *spec, int variant)
{
    int64_t sum = s->bound_ns[variant];
    for (uint32_t i = 0; i < s->item_count; i++) {
        const struct hb_block *b = &spec->model.blocks[s->items[i].block];
        if (s->items[i].bound_ns[variant])
            sum += s->items[i].bound_ns[variant][hb_block_steps(b)];
    }
    return sum;
}

/* False: it has no segments. */
static bool bound_as(struct hb_arena *scratch, const struct hb_segment_ask *ask,
                     struct hb_floor *out)
{
    const struct hb_spec *cell_spec = ask->spec;
    struct hb_segment s;
    struct hb_price price;
    const char *why;
    if (!hb_segment_build(scratch, ask, &s, &why))
        return false;
    hb_segment_floor(&s, cell_spec, &price);
    *out = (struct hb_floor){.bound_ns = price.bound_ns,
                             .live_bytes = price.live_bytes,
                             .ends_ns = s.bound_ns[0],
                             .fixed_bytes = s.fixed[HB_BYTES_DEVICE]};
    int64_t path_ns = sum_at(&s, cell_spec, 0);
    out->layers_ns = path_ns - s.bound_ns[0];
    for (int v = HB_BOUND_TAILS; v < HB_BOUNDS; v++) {
        int64_t tail_ns = sum_at(&s, cell_spec, v) - path_ns;
        out->tail_ns = tail_ns > out->tail_ns ? tail_ns : out->tail_ns;
    }
    /* In an order of XLA's schedulers what is made again may run beside the backward pass, waits
     * and all (test_floors with seeds 5 and 6: olmo3-7b over tensor 8 on an MI300X, 2 and 12 %
     * less). */
    for (uint32_t i = 0; i < s.item_count; i++) {
        const struct hb_block *b = &cell_spec->model.blocks[s.items[i].block];
        out->fixed_bytes += s.items[i].fixed[HB_BYTES_DEVICE][hb_segment_at(&s, hb_block_steps(b))];
        out->wait_ns += s.items[i].wait_ns ? s.items[i].wait_ns[hb_block_steps(b)] : 0;
        out->idle_ns += s.items[i].idle_ns ? s.items[i].idle_ns[hb_block_steps(b)] : 0;
        if (s.items[i].again_ns && !hb_bound_reordered(cell_spec))
            out->again_ns += s.items[i].again_ns[hb_block_steps(b)];
    }
    out->live_bytes = hb_larger(out->fixed_bytes, out->live_bytes - s.lent_bytes);
    out->fixed_bytes -= s.lent_bytes;
    out->live_bytes = hb_larger(out->live_bytes, hb_add_sat(out->fixed_bytes, s.scratch_bytes));
    return true;
}

static bool bound_segment_of(struct hb_arena *scratch, const void *ask, const struct hb_spec *spec,
                             struct hb_floor *out)
{
    struct hb_segment_ask own = *(const struct hb_segment_ask *)ask;
    own.spec = spec;
    return bound_as(scratch, &own, out);
}

/* A policy decides in which of the orders its step is, so what all need at least is the least of
 * them. False: it has no segments. */
static bool bound_in_orders(struct hb_arena *scratch, const struct bound_ask *ask,
                            struct hb_floor_programs *programs, struct hb_floor *out)
{
    struct hb_spec spec = with_room(ask->cell_spec);
    struct hb_link link;
    hb_link_open(scratch, ask->cell_spec, &link);
    int orders[HB_LINK_ORDERS], count = hb_link_all(&link, orders);
    struct hb_segment_ask own = {
        .spec = &spec, .device = ask->device, .floor = true, .link = &link, .programs = programs};
    if (count == 0)
        return least_of_three(scratch, bound_segment_of, &own, &spec, out);
    for (int i = 0; i < count; i++) {
        spec.as_order = orders[i];
        if (!take_less(scratch, bound_segment_of, &own, &spec, i == 0, out))
            return false;
    }
    return true;
}

static bool bound_path_of(struct hb_arena *scratch, const void *ask, const struct hb_spec *spec,
                          struct hb_floor *out)
{
    struct hb_spec written = hb_bound_written(spec), roomy = with_room(&written);
    return least_of_three(scratch, bound_segment_of, ask, &roomy, out);
}

bool hb_bound_path(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                   const struct hb_device *device, struct hb_floor *out)
{
    struct hb_segment_ask ask = {.device = device, .floor = true, .path_only = true};
    return least_of_kinds(scratch, bound_path_of, &ask, cell_spec, out);
}

static bool bound_cell_of(struct hb_arena *scratch, const void *cell_ask,
                          const struct hb_spec *cell_spec, struct hb_floor *out)
{
    struct bound_ask ask = *(const struct bound_ask *)cell_ask;
    struct hb_floor_programs programs = {0};
    struct hb_spec written = hb_bound_written(cell_spec);
    ask.cell_spec = cell_spec;
    bool segments = bound_in_orders(scratch, &ask, &programs, out);
    ask.cell_spec = &written;
    if (!segments)
        return bound_whole_cell(scratch, &ask, out);
    if (hb_link_is_inside(cell_spec)) /* whose layers are not as written */
        return true;
    const struct hb_program *p = &programs.lowered[HB_FLOOR_WHOLE];
    struct lives lives = find_lives(scratch, p);
    struct hb_spec roomy = with_room(&written);
    ask.whole = true;
    add_ops_bytes(scratch, &ask, &roomy, &lives, hb_segment_optional_ops(scratch, p), out);
    return true;
}

bool hb_bound_cell(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                   const struct hb_device *device, int64_t known_bytes, struct hb_floor *out)
{
    /* Layers side by side in no loop: their copies are not told from the ends' (seed 402886). */
    struct bound_ask ask = {.device = device,
                            .budget_bytes = INT64_MAX,
                            .known_bytes = known_bytes,
                            .whole = cell_spec->mesh[HB_AX_PIPELINE] > 1};
    return least_of_kinds(scratch, bound_cell_of, &ask, cell_spec, out);
}
