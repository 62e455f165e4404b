/* Element-wise work over all gradients that ends in one number and comes back: a clip by the global
 * norm, a check that all is finite. Each gradient is read for the number and again with it, so all
 * of them are alive at once, where each could have been used up by its own update.
 *
 *   g1 -> reduce --\                  g1 is kept from its reduction to its update, for the sake
 *   g2 -> reduce ---> + -> sqrt -> x  of x: scaled where x is known
 *   g1 ------------------------^                                                              */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "sim/hlo/finder.h"

/* Partial sums travel in small arrays: collectives are combined. */
enum { SMALL = 16, SMALL_ARRAY = 65536, LEAST_TENSORS = 3 };

struct search {
    struct hb_hlo_finder *x;
    uint32_t *mark; /* by value: the tensor that reached it last, + 1 */
    uint32_t *queue;
};

static bool is_small(const struct hb_hlo_finder *x, uint32_t v, int64_t most)
{
    const struct hb_hlo_shape *s = &x->m->shapes.items[x->f->values[v].shape];
    return s->type != HB_HLO_TUPLE && s->elements <= most;
}

/* Small values that a node makes are met. */
static void meet_small(struct search *s, uint32_t node, uint32_t tensor, uint32_t *count)
{
    const struct hb_hlo_flow *f = s->x->f;
    enum hb_hlo_op op = hb_hlo_op_of(s->x->m, hb_hlo_node_inst(f, node));
    if (op == HB_HLO_OP_WHILE || op == HB_HLO_OP_CONDITIONAL || op == HB_HLO_OP_CALL)
        return;
    for (uint32_t i = f->first_slot[node]; i < f->first_slot[node + 1]; i++) {
        uint32_t v = f->value_at[i];
        if (f->values[v].node != node || !is_small(s->x, v, SMALL_ARRAY) ||
            s->mark[v] == tensor + 1)
            continue;
        s->mark[v] = tensor + 1;
        s->queue[(*count)++] = v;
    }
}

static bool is_copy(const struct hb_hlo_finder *x, uint32_t node)
{
    enum hb_hlo_op op = hb_hlo_op_of(x->m, hb_hlo_node_inst(x->f, node));
    return op == HB_HLO_OP_COPY || op == HB_HLO_OP_COPY_START;
}

/* The tensor, and copies of it that are read in its stead: on TPU through memory on the chip. */
struct faces {
    uint32_t value[8];
    uint32_t count;
};

static struct faces find_faces(const struct hb_hlo_finder *x, uint32_t tensor)
{
    enum { MOST = sizeof(struct faces) / sizeof(uint32_t) - 1 };
    struct faces faces = {{tensor}, 1};
    for (uint32_t u = x->first_use[tensor]; u < x->first_use[tensor + 1]; u++) {
        uint32_t node = x->uses[u];
        if (!is_copy(x, node))
            continue;
        for (uint32_t i = x->f->first_slot[node]; i < x->f->first_slot[node + 1]; i++) {
            uint32_t v = x->f->value_at[i];
            if (x->f->values[v].node == node && faces.count < MOST && !is_small(x, v, SMALL) &&
                x->m->shapes.items[x->f->values[v].shape].type != HB_HLO_TUPLE)
                faces.value[faces.count++] = v;
        }
    }
    return faces;
}

static bool takes_number(const struct search *s, uint32_t node, uint32_t tensor)
{
    const struct hb_hlo_finder *x = s->x;
    uint32_t inst = hb_hlo_node_inst(x->f, node);
    for (uint32_t i = 0; i < x->m->insts[inst].operand_count; i++) {
        uint32_t v = x->f->value_at[x->f->first_slot[hb_hlo_node_operand(x->f, node, i)]];
        if (is_small(x, v, SMALL) && s->mark[v] == tensor + 1)
            return true;
    }
    return false;
}

/* A user of the tensor that also takes a number made from it, and the time of the last use that
 * needs no such number; false: there is none. */
static bool is_kept_for_number(struct search *s, uint32_t tensor, int32_t *out_last)
{
    const struct hb_hlo_finder *x = s->x;
    const struct hb_hlo_flow *f = x->f;
    struct faces faces = find_faces(x, tensor);
    uint32_t count = 0;
    bool kept = false;
    meet_small(s, f->values[tensor].node, tensor, &count); /* reduced where it is made */
    for (uint32_t i = 0; i < faces.count; i++)
        for (uint32_t u = x->first_use[faces.value[i]]; u < x->first_use[faces.value[i] + 1]; u++)
            meet_small(s, x->uses[u], tensor, &count);
    for (uint32_t at = 0; at < count; at++)
        for (uint32_t u = x->first_use[s->queue[at]]; u < x->first_use[s->queue[at] + 1]; u++)
            meet_small(s, x->uses[u], tensor, &count);
    *out_last = f->time[f->values[tensor].node];
    for (uint32_t i = 0; i < faces.count; i++)
        for (uint32_t u = x->first_use[faces.value[i]]; u < x->first_use[faces.value[i] + 1]; u++) {
            bool with_number = takes_number(s, x->uses[u], tensor);
            kept = kept || with_number;
            if (!with_number && !is_copy(x, x->uses[u]) && f->time[x->uses[u]] > *out_last)
                *out_last = f->time[x->uses[u]];
        }
    return kept;
}

/* Whether a value is made in a loop or a branch, and not in an asynchronous call or a plain one. */
static bool is_in_loop(const struct hb_hlo_finder *x, uint32_t v)
{
    uint32_t scope = x->f->scope_of[x->f->values[v].node];
    for (; scope; scope = x->f->scope_of[x->f->scopes[scope].caller]) {
        enum hb_hlo_op op = hb_hlo_op_of(x->m, hb_hlo_node_inst(x->f, x->f->scopes[scope].caller));
        if (op == HB_HLO_OP_WHILE || op == HB_HLO_OP_CONDITIONAL)
            return true;
    }
    return false;
}

static void find_numbers(struct hb_hlo_finder *x)
{
    const struct hb_program *p = &x->hp->program;
    struct search s = {.x = x,
                       .mark = hb_arena_alloc(x->arena, x->f->value_count, sizeof *s.mark),
                       .queue = hb_arena_alloc(x->arena, x->f->value_count, sizeof *s.queue)};
    struct hb_hlo_catch c = hb_hlo_catch_begin(x);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        int32_t last;
        uint32_t v = x->hp->value_of[i];
        if (p->bufs[i].space != HB_SPACE_HBM || p->bufs[i].argument || p->bufs[i].output ||
            p->bufs[i].bytes < x->least_bytes / 16 || is_in_loop(x, v) ||
            !is_kept_for_number(&s, v, &last) || last >= c.edit->end[i])
            continue;
        c.edit->end[i] = last > c.edit->start[i] ? last : c.edit->start[i];
        hb_hlo_catch_add(x, &c, i);
    }
    if (c.count >= LEAST_TENSORS)
        hb_hlo_catch_end(
            x, &c, HB_HLO_FIND_GRADIENTS,
            hb_arena_printf(x->arena,
                            "%u tensors are kept for one number made from all of them (a global "
                            "norm, a check for finite values), to be read again with it",
                            c.count),
            "clip each gradient by its own norm or where the optimizer uses it, take the norm of "
            "the step before, or keep gradients sharded until then");
}

static void find_cleanups(struct hb_hlo_finder *x)
{
    static const char *const words[] = {"nan_to_num", "isnan", "is_finite", "isinf", "isfinite"};
    const struct hb_program *p = &x->hp->program;
    struct hb_hlo_catch c = hb_hlo_catch_begin(x);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        bool named = false;
        if (p->bufs[i].space != HB_SPACE_HBM || p->bufs[i].argument || p->bufs[i].output ||
            p->bufs[i].bytes < x->least_bytes / 16)
            continue;
        for (size_t w = 0; w < sizeof words / sizeof *words && !named; w++)
            named = hb_hlo_finder_op_name_has(x, hb_hlo_finder_inst(x, i), words[w]);
        if (!named)
            continue;
        hb_hlo_edit_shrink(c.edit, i, 0);
        hb_hlo_catch_add(x, &c, i);
    }
    hb_hlo_catch_end(x, &c, HB_HLO_FIND_GRADIENTS,
                     "buffers of element-wise clean-ups (nan_to_num, isnan, isfinite)",
                     "drop them, or do them where each gradient is used, inside of its update");
}

void hb_hlo_find_gradients(struct hb_hlo_finder *x)
{
    find_numbers(x);
    find_cleanups(x);
}
