/* Findings at the edge of the program: arguments that every device holds whole, results that could
 * lie in arguments, copies between host and device that nothing runs beside; and what a loop stacks
 * although it is the same in each trip. */
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/finder.h"

/* ---- replicated arguments ---- */

/* `{replicated}`, or tiles that only repeat: `{devices=[1,1,8]<=[8] last_tile_dim_replicate}`. */
static bool is_replicated(const struct hb_hlo_module *m, uint32_t inst)
{
    enum { MOST = 16 };
    int64_t parts[MOST];
    int rank = hb_hlo_shape_of(m, inst)->rank;
    struct hb_hlo_span sharding = hb_hlo_attr(m, inst, "sharding");
    if (sharding.at && hb_hlo_span_find(sharding, "{replicated}"))
        return true;
    if (rank > MOST || !hb_hlo_sharding_parts(m, inst, rank, parts))
        return false;
    for (int d = 0; d < rank; d++)
        if (parts[d] != 1)
            return false;
    return rank > 0;
}

static void find_replicated(struct hb_hlo_finder *x)
{
    const struct hb_program *p = &x->hp->program;
    struct hb_hlo_catch c = hb_hlo_catch_begin(x);
    bool *whole = hb_arena_alloc(x->arena, p->buf_count, sizeof *whole);
    for (uint32_t i = 0; i < p->buf_count && x->m->partitions > 1; i++) {
        if (!p->bufs[i].argument || p->bufs[i].bytes < x->least_bytes)
            continue;
        if (!is_replicated(x->m, hb_hlo_finder_inst(x, i)))
            continue;
        hb_hlo_catch_add(x, &c, i);
        whole[i] = true;
    }
    for (uint32_t i = 0; i < p->buf_count && c.count; i++) /* what is updated in place as well */
        if (whole[hb_program_root(p, i)])
            hb_hlo_edit_shrink(c.edit, i, hb_div_up(p->bufs[i].bytes, x->m->partitions));
    hb_hlo_catch_end(x, &c, HB_HLO_FIND_REPLICATED,
                     hb_arena_printf(x->arena, "large arguments lie whole on each of %lld devices",
                                     (long long)x->m->partitions),
                     "shard them over the mesh: PartitionSpec or out_shardings of what makes them");
}

/* ---- results that want a place of their own ---- */

/* An argument of the same shape that nobody has been given; HB_NONE. */
static uint32_t find_free_argument(const struct hb_hlo_finder *x, const bool *given, uint32_t shape)
{
    const struct hb_program *p = &x->hp->program;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument && !p->bufs[i].output && !given[i] &&
            hb_hlo_shape_same(&x->m->shapes, x->f->values[x->hp->value_of[i]].shape, shape))
            return i;
    return HB_NONE;
}

static void find_undonated(struct hb_hlo_finder *x)
{
    const struct hb_program *p = &x->hp->program;
    struct hb_hlo_catch c = hb_hlo_catch_begin(x);
    bool *given = hb_arena_alloc(x->arena, p->buf_count, sizeof *given);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        uint32_t root = hb_program_root(p, i);
        if (!p->bufs[i].output || p->bufs[root].argument ||
            p->bufs[i].bytes < x->least_bytes / 16 || c.edit->alias_of[root] != HB_NONE ||
            p->bufs[i].bytes < p->bufs[root].bytes)
            continue;
        uint32_t shape = x->f->values[x->hp->value_of[i]].shape;
        uint32_t argument = find_free_argument(x, given, shape);
        if (argument == HB_NONE || argument >= root)
            continue;
        given[argument] = true;
        c.edit->alias_of[root] = argument;
        hb_hlo_catch_add(x, &c, i);
    }
    hb_hlo_catch_end(x, &c, HB_HLO_FIND_UNDONATED,
                     "results of the shape of arguments get memory of their own",
                     "donate the state: jax.jit(step, donate_argnums=...); the arguments are then "
                     "gone after the call");
}

/* ---- copies over the host link ---- */

static bool touches_host(const struct hb_hlo_module *m, uint32_t shape)
{
    enum { HOST_SPACE = 5 };
    const struct hb_hlo_shape *s = &m->shapes.items[shape];
    for (uint32_t i = 0; i < s->child_count; i++)
        if (touches_host(m, hb_hlo_shape_child(&m->shapes, shape, i)))
            return true;
    return s->type != HB_HLO_TUPLE && s->space == HOST_SPACE;
}

static bool works(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_FUSION || op == HB_HLO_OP_DOT || op == HB_HLO_OP_CONVOLUTION ||
           op == HB_HLO_OP_CUSTOM_CALL || op == HB_HLO_OP_WHILE || op == HB_HLO_OP_REDUCE;
}

/* Whether anything is computed between two times. */
static bool works_between(const struct hb_hlo_finder *x, int32_t from, int32_t to)
{
    for (int32_t t = from + 1; t < to; t++)
        if (works(hb_hlo_op_of(x->m, hb_hlo_node_inst(x->f, x->hp->node_at[t]))))
            return true;
    return false;
}

/* Bytes that a node moves between host and device while nothing runs; 0: none such. */
static int64_t idle_copy_bytes(const struct hb_hlo_finder *x, uint32_t node)
{
    uint32_t inst = hb_hlo_node_inst(x->f, node);
    enum hb_hlo_op op = hb_hlo_op_of(x->m, inst);
    if (!x->m->insts[inst].operand_count)
        return 0;
    uint32_t from = hb_hlo_node_operand(x->f, node, 0);
    uint32_t from_shape = x->m->insts[hb_hlo_node_inst(x->f, from)].shape;
    const struct hb_hlo_shape *shape = hb_hlo_shape_of(x->m, inst);
    if (op == HB_HLO_OP_COPY)
        return shape->type != HB_HLO_TUPLE &&
                       touches_host(x->m, x->m->insts[inst].shape) != touches_host(x->m, from_shape)
                   ? shape->bytes
                   : 0;
    if ((op != HB_HLO_OP_COPY_DONE && op != HB_HLO_OP_ASYNC_DONE) || shape->type == HB_HLO_TUPLE ||
        !touches_host(x->m, from_shape) || works_between(x, x->f->time[from], x->f->time[node]))
        return 0;
    return shape->bytes;
}

static void find_idle_copies(struct hb_hlo_finder *x)
{
    uint32_t *insts = NULL, count = 0, cap = 0;
    int64_t sum = 0;
    for (uint32_t node = 0; node < x->f->node_count && x->m->scheduled; node++) {
        int64_t bytes = idle_copy_bytes(x, node);
        if (!bytes)
            continue;
        insts = hb_grow(x->arena, insts, count, &cap, sizeof *insts);
        insts[count++] = hb_hlo_node_inst(x->f, node);
        sum = hb_add_sat(sum, bytes);
    }
    if (sum < x->least_bytes)
        return;
    hb_hlo_finder_add(
        x,
        (struct hb_hlo_finding){
            .kind = HB_HLO_FIND_OFFLOAD,
            .bytes = sum,
            .held_bytes = sum,
            .what = "copies between host and device are waited for at once: nothing is computed "
                    "between their start and their done (bytes are moved, not held)",
            .advice = "start them earlier: offload what is needed a layer later, or let the "
                      "latency-hiding scheduler know (xla_gpu_enable_latency_hiding_scheduler, "
                      "xla_tpu_enable_async_...); else save or recompute"},
        insts, count);
}

/* ---- stacks of equals ---- */

static bool is_inside(const struct hb_hlo_flow *f, uint32_t scope, uint32_t outer)
{
    while (scope != outer && f->scopes[scope].caller != HB_NONE)
        scope = f->scope_of[f->scopes[scope].caller];
    return scope == outer;
}

/* Whether what a node takes, but for its slot `target`, was there before the loop's body. */
static bool is_given(const struct hb_hlo_finder *x, uint32_t node, uint32_t target)
{
    enum { SMALL = 16 };
    const struct hb_hlo_flow *f = x->f;
    uint32_t inst = hb_hlo_node_inst(f, node), scope = f->scope_of[node], large = 0;
    for (uint32_t i = 0; i < x->m->insts[inst].operand_count; i++) {
        uint32_t from = hb_hlo_node_operand(f, node, i);
        uint32_t v = f->value_at[f->first_slot[from]];
        if (i == target || x->m->shapes.items[f->values[v].shape].elements <= SMALL)
            continue;
        large++;
        if (is_inside(f, f->scope_of[f->values[v].node], scope))
            return false;
    }
    return large > 0;
}

/* A slice taken by the trip's number is another one each time. */
static bool slices(const struct hb_hlo_module *m, uint32_t inst)
{
    if (hb_hlo_op_of(m, inst) != HB_HLO_OP_FUSION)
        return false;
    const struct hb_hlo_comp *comp = &m->comps[hb_hlo_called(m, inst, 0)];
    for (uint32_t i = comp->first_inst; i < comp->first_inst + comp->inst_count; i++)
        if (hb_hlo_op_of(m, i) == HB_HLO_OP_DYNAMIC_SLICE || hb_hlo_op_of(m, i) == HB_HLO_OP_GATHER)
            return true;
    return false;
}

static void find_stacked(struct hb_hlo_finder *x)
{
    const struct hb_hlo_flow *f = x->f;
    const struct hb_program *p = &x->hp->program;
    struct hb_hlo_catch c = hb_hlo_catch_begin(x);
    bool *gone = hb_arena_alloc(x->arena, p->buf_count, sizeof *gone);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        uint32_t node = f->values[x->hp->value_of[i]].node, inst = hb_hlo_node_inst(f, node);
        const struct hb_hlo_scope *scope = &f->scopes[f->scope_of[node]];
        const struct hb_hlo_shape *shape = hb_hlo_finder_shape(x, i);
        struct hb_hlo_in_place pair;
        if (scope->caller == HB_NONE || scope->branch != 1 || shape->rank < 2 ||
            p->bufs[i].bytes < x->least_bytes / 16 ||
            hb_hlo_op_of(x->m, hb_hlo_node_inst(f, scope->caller)) != HB_HLO_OP_WHILE ||
            hb_hlo_in_place(&x->hp->alias, inst, &pair, 1) != 1 || slices(x->m, inst) ||
            !is_given(x, node, pair.operand))
            continue;
        uint32_t root = hb_program_root(p, i);
        int64_t trips = x->m->shapes.nums[shape->dims_at];
        gone[root] = trips > 1;
        if (gone[root])
            hb_hlo_catch_add(x, &c, i);
    }
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (gone[hb_program_root(p, i)] && hb_hlo_finder_shape(x, i)->rank)
            hb_hlo_edit_shrink(c.edit, i,
                               p->bufs[i].bytes /
                                   x->m->shapes.nums[hb_hlo_finder_shape(x, i)->dims_at]);
    hb_hlo_catch_end(x, &c, HB_HLO_FIND_STACKED,
                     "a loop stacks a value that is the same in each trip",
                     "close over it, or return it once after the loop, instead of making it a "
                     "per-trip output or a residual of scan");
}

void hb_hlo_find_entry(struct hb_hlo_finder *x)
{
    find_replicated(x);
    find_undonated(x);
    find_idle_copies(x);
    find_stacked(x);
}
