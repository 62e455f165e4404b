/* Floors: see bound.h. The step is lowered with a policy that keeps all that has a name; its ops
 * are those of every policy, but for copies and recomputation, which count as nothing
 * (hb_segment_always_runs). Tests compare floors with every policy of the menus. */
#include "solver/bound.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "sim/engine/cost.h"
#include "sim/engine/live.h"
#include "sim/ir/lower.h"
#include "solver/brute.h"

static bool lower_floor(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                        struct hb_program *out)
{
    struct hb_spec spec = *cell_spec;
    struct hb_diag diag;
    size_t count = (size_t)spec.model.block_count;
    struct hb_block *blocks = hb_arena_alloc(scratch, count, sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = cell_spec->model.blocks[i];
        blocks[i].remat = hb_segment_floor_policy();
    }
    spec.model.blocks = blocks;
    hb_diag_init(&diag, scratch);
    return hb_lower(scratch, &diag, &spec, out);
}

static int64_t times_of(const struct hb_program *p, const struct hb_op *op)
{
    int64_t times = 1;
    for (uint32_t l = op->loop; l != HB_NONE; l = p->loops[l].parent)
        times = hb_mul_sat(times, p->loops[l].trips);
    return times;
}

/* Inside of a loop over layers or pipeline iterations: not merely in that over microbatches. */
static bool is_of_layers(const struct hb_spec *spec, const struct hb_program *p, uint32_t op)
{
    uint32_t loop = p->ops[op].loop;
    if (loop == HB_NONE)
        return false;
    return spec->batch.accumulate == 1 || p->loops[loop].parent != HB_NONE;
}

static void sum_streams(const struct hb_spec *spec, const struct hb_program *p,
                        const struct hb_device *device, struct hb_floor *out)
{
    int64_t busy[HB_STREAM_COUNT] = {0};
    struct hb_cost cost;
    hb_cost_init(&cost, p, device);
    for (uint32_t i = 0; i < p->op_count; i++)
        if (is_of_layers(spec, p, i) && hb_segment_always_runs(p, i)) {
            const struct hb_op *op = &p->ops[i];
            int64_t ns = hb_mul_sat(hb_cost_op_ns(&cost, i), times_of(p, op));
            busy[op->stream] = hb_add_sat(busy[op->stream], ns);
            if (op->stream == HB_STREAM_COMPUTE && op->phase == HB_PHASE_FORWARD)
                out->forward_ns = hb_add_sat(out->forward_ns, ns);
        }
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        out->bound_ns = busy[s] > out->bound_ns ? busy[s] : out->bound_ns;
}

/* Arguments and outputs lie there for the whole step; without alignment, to be below any. */
static int64_t fixed_bytes(struct hb_arena *scratch, const struct hb_program *p)
{
    struct hb_live *live;
    uint32_t count = hb_live_find(scratch, p, &live);
    bool *fixed = hb_arena_alloc(scratch, p->buf_count, sizeof *fixed);
    int64_t sum = p->argument_extra_bytes;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument || p->bufs[i].output)
            fixed[hb_program_root(p, i)] = true;
    for (uint32_t i = 0; i < count; i++)
        if (fixed[live[i].buf] && p->bufs[live[i].buf].space == HB_SPACE_HBM)
            sum = hb_add_sat(sum, live[i].bytes);
    return sum;
}

bool hb_bound_node(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                   const struct hb_device *device, struct hb_floor *out)
{
    struct hb_program p;
    *out = (struct hb_floor){0};
    if (!lower_floor(scratch, cell_spec, &p))
        return false;
    sum_streams(cell_spec, &p, device, out);
    out->live_bytes = out->fixed_bytes = fixed_bytes(scratch, &p);
    return true;
}

/* The ends and all that is fixed are taken out of the sums. */
static void keep_layers(struct hb_arena *scratch, struct hb_segment *s, int64_t fixed)
{
    int64_t *none = hb_arena_alloc(scratch, (size_t)s->max_steps + 1, sizeof *none);
    for (int k = 0; k < HB_BYTES_KINDS; k++) {
        s->fixed[k] = 0;
        for (uint32_t q = 0; q < s->slot_count; q++)
            s->live[k][q] = 0;
        for (uint32_t i = 0; i < s->item_count; i++)
            s->items[i].fixed[k] = none;
    }
    for (int v = 0; v < HB_BOUNDS; v++) {
        s->bound_ns[v] = 0;
        for (uint32_t i = 0; i < s->item_count && v > 0; i++)
            s->items[i].bound_ns[v] = NULL;
    }
    s->fixed[HB_BYTES_DEVICE] = fixed;
}

int64_t hb_bound_layers(struct hb_arena *scratch, const struct hb_layers_ask *ask)
{
    struct hb_segment s;
    const char *why;
    struct hb_segment_ask segment = {ask->cell_spec, ask->menus, ask->device, false, true, false};
    if (!hb_segment_build(scratch, &segment, &s, &why))
        return 0;
    keep_layers(scratch, &s, ask->fixed_bytes);
    struct hb_brute_limits limits = {.goal = HB_GOAL_TIME,
                                     .rough = true,
                                     .budget_bytes = ask->budget_bytes,
                                     .host_bytes = INT64_MAX,
                                     .most_value = ask->most_ns,
                                     .after_value = -1};
    struct hb_brute_choice best;
    if (hb_brute_best(scratch, &s, ask->cell_spec, &limits, 1, &best))
        return best.value;
    return ask->most_ns < INT64_MAX ? ask->most_ns + 1 : INT64_MAX;
}

bool hb_bound_cell(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                   const struct hb_device *device, struct hb_floor *out)
{
    struct hb_segment s;
    struct hb_price price;
    const char *why;
    struct hb_segment_ask ask = {cell_spec, NULL, device, true, false, false};
    if (!hb_segment_build(scratch, &ask, &s, &why))
        return hb_bound_node(scratch, cell_spec, device, out);
    hb_segment_floor(&s, cell_spec, &price);
    *out = (struct hb_floor){.bound_ns = price.bound_ns,
                             .live_bytes = price.live_bytes,
                             .ends_ns = s.bound_ns[0],
                             .fixed_bytes = s.fixed[HB_BYTES_DEVICE]};
    for (uint32_t i = 0; i < s.item_count; i++) {
        const struct hb_block *b = &cell_spec->model.blocks[s.items[i].block];
        out->fixed_bytes += s.items[i].fixed[HB_BYTES_DEVICE][b->repeat / b->unit];
        if (s.items[i].bound_ns[0])
            out->layers_ns += s.items[i].bound_ns[0][b->repeat / b->unit];
    }
    return true;
}
