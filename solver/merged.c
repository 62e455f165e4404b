/* Ops of two programs by name and loop: see merged.h. */
#include "solver/merged.h"

#include "base/arena.h"
#include "base/names.h"
#include "sim/engine/cost.h"

/* Ops of the forward pass with one name in one loop. */
struct place {
    uint32_t kept_count;
    uint32_t merged_count;
    uint32_t first; /* of the merged program's, not yet taken; where it has some */
    uint32_t last;
};

struct places {
    struct hb_names names;
    struct place *list;
    uint32_t *next; /* by op of the merged program */
};

static bool is_counted(const struct hb_op *op)
{
    return op->phase == HB_PHASE_FORWARD && op->kind != HB_OP_MARK && op->kind != HB_OP_DONE;
}

static struct place *find_place(struct places *p, const struct hb_op *op)
{
    return &p->list[hb_names_put(&p->names, op->name, op->loop)];
}

static struct places list_places(struct hb_arena *arena, const struct hb_program *kept,
                                 const struct hb_program *merged)
{
    struct places p;
    hb_names_init(&p.names, arena, (size_t)kept->op_count + merged->op_count);
    p.list = hb_arena_alloc(arena, p.names.room, sizeof *p.list);
    p.next = hb_arena_alloc(arena, merged->op_count, sizeof *p.next);
    for (uint32_t i = 0; i < kept->op_count; i++)
        if (is_counted(&kept->ops[i]))
            find_place(&p, &kept->ops[i])->kept_count++;
    for (uint32_t i = 0; i < merged->op_count; i++) {
        if (!is_counted(&merged->ops[i]))
            continue;
        struct place *place = find_place(&p, &merged->ops[i]);
        *(place->merged_count++ ? &p.next[place->last] : &place->first) = i;
        place->last = i;
        p.next[i] = HB_NONE;
    }
    return p;
}

/* A layer's part of a stack may be less for another number of layers: what it adds is not known. */
static bool touches_stack(const struct hb_program *p, const struct hb_op *op)
{
    for (uint32_t r = 0; r < op->read_count + op->write_count; r++)
        if (p->bufs[p->refs[op->refs_at + r]].slices > 0)
            return true;
    return false;
}

int64_t *hb_merged_find(struct hb_arena *arena, const struct hb_program *kept,
                        const struct hb_program *merged, const struct hb_device *device)
{
    int64_t *change = hb_arena_alloc(arena, kept->op_count, sizeof *change);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct places places = list_places(arena, kept, merged);
    struct hb_cost kept_cost, merged_cost;
    hb_cost_init(&kept_cost, kept, device);
    hb_cost_init(&merged_cost, merged, device);
    for (uint32_t i = 0; i < kept->op_count; i++) {
        const struct hb_op *op = &kept->ops[i];
        if (!is_counted(op))
            continue;
        struct place *place = find_place(&places, op);
        change[i] = HB_MERGED_AWAY;
        if (place->kept_count != place->merged_count || kept->loop_count != merged->loop_count)
            continue;
        uint32_t other = place->first;
        place->first = places.next[other];
        change[i] = hb_cost_op_ns(&merged_cost, other) - hb_cost_op_ns(&kept_cost, i);
        if (change[i] > 0 && touches_stack(merged, &merged->ops[other]))
            change[i] = 0;
    }
    hb_arena_rewind(arena, mark);
    return change;
}

int64_t hb_merged_ns(int64_t ns, int64_t change_ns)
{
    if (change_ns == HB_MERGED_AWAY || ns + change_ns < 0)
        return 0;
    return ns + change_ns;
}
