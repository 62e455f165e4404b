/* List scheduling, computation by computation: an instruction's cost is what it makes less what
 * dies with it. Costs only fall, when an operand is left with one user; that user is then put in
 * the queue anew and its older entries are passed over. What an instruction only hands on (bitcast,
 * tuple, element) lives as long as the hand-over does. */
#include "sim/hlo/schedule.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/order.h"

struct ready {
    int64_t cost;
    uint32_t inst;
};

struct lister {
    const struct hb_hlo_module *m;
    struct hb_arena *arena;
    uint32_t first, count;
    uint32_t *first_user, *users; /* of each, by place in the computation; operands counted once */
    uint32_t *waits;              /* operands that have not run */
    uint32_t *uses;               /* users that have not run, or hand it on and live */
    int64_t *made;                /* bytes that die with the users */
    uint32_t *stack;              /* room for all operands, while something dies */
    bool *done;
    struct ready *queue; /* a heap: the least on top */
    uint32_t queue_count, queue_cap;
};

static bool hands_on(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_BITCAST || op == HB_HLO_OP_GET_TUPLE_ELEMENT || op == HB_HLO_OP_TUPLE ||
           op == HB_HLO_OP_OPT_BARRIER || op == HB_HLO_OP_DOMAIN;
}

static int64_t shape_bytes(const struct hb_hlo_module *m, uint32_t shape)
{
    const struct hb_hlo_shape *s = &m->shapes.items[shape];
    int64_t sum = s->type == HB_HLO_TUPLE ? 0 : s->bytes;
    for (uint32_t i = 0; i < s->child_count; i++)
        sum = hb_add_sat(sum, shape_bytes(m, hb_hlo_shape_child(&m->shapes, shape, i)));
    return hb_size_ok(sum) ? sum : INT64_MAX / 8;
}

/* What an instruction makes that dies with its users. */
static int64_t made_bytes(const struct hb_hlo_module *m, uint32_t inst)
{
    enum hb_hlo_op op = hb_hlo_op_of(m, inst);
    if (hands_on(op) || op == HB_HLO_OP_PARAMETER || op == HB_HLO_OP_CONSTANT)
        return 0;
    return shape_bytes(m, m->insts[inst].shape);
}

static bool is_first_mention(const struct lister *l, uint32_t inst, uint32_t nth)
{
    for (uint32_t i = 0; i < nth && i < 64; i++)
        if (hb_hlo_operand(l->m, inst, i) == hb_hlo_operand(l->m, inst, nth))
            return false;
    return true;
}

/* What dies if the operand's last user has run; through what hands on, too. */
static int64_t freed_bytes(const struct lister *l, uint32_t operand, int depth)
{
    enum { MAX_DEPTH = 16 };
    if (l->uses[operand - l->first] != 1)
        return 0;
    int64_t sum = l->made[operand - l->first];
    if (!hands_on(hb_hlo_op_of(l->m, operand)) || depth == MAX_DEPTH)
        return sum;
    for (uint32_t i = 0; i < l->m->insts[operand].operand_count && i < 64; i++)
        sum = hb_add_sat(sum, freed_bytes(l, hb_hlo_operand(l->m, operand, i), depth + 1));
    return sum;
}

static int64_t cost_of(const struct lister *l, uint32_t inst)
{
    int64_t cost = l->made[inst - l->first];
    for (uint32_t i = 0; i < l->m->insts[inst].operand_count; i++)
        if (is_first_mention(l, inst, i) && !hands_on(hb_hlo_op_of(l->m, inst)))
            cost -= freed_bytes(l, hb_hlo_operand(l->m, inst, i), 0);
    return cost;
}

static bool comes_before(struct ready a, struct ready b)
{
    return a.cost < b.cost || (a.cost == b.cost && a.inst < b.inst);
}

static void push_ready(struct lister *l, uint32_t inst)
{
    struct ready entry = {cost_of(l, inst), inst};
    l->queue = hb_grow(l->arena, l->queue, l->queue_count, &l->queue_cap, sizeof *l->queue);
    uint32_t at = l->queue_count++;
    for (; at && comes_before(entry, l->queue[(at - 1) / 2]); at = (at - 1) / 2)
        l->queue[at] = l->queue[(at - 1) / 2];
    l->queue[at] = entry;
}

static uint32_t pop_ready(struct lister *l)
{
    uint32_t top = l->queue[0].inst, at = 0;
    struct ready last = l->queue[--l->queue_count];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= l->queue_count)
            break;
        child += child + 1 < l->queue_count && comes_before(l->queue[child + 1], l->queue[child]);
        if (!comes_before(l->queue[child], last))
            break;
        l->queue[at] = l->queue[child];
        at = child;
    }
    l->queue[at] = last;
    return top;
}

/* Counts the users of each, or where next tells their places, notes them. */
static void pass_users(struct lister *l, uint32_t *next)
{
    for (uint32_t i = l->first; i < l->first + l->count; i++)
        for (uint32_t k = 0; k < l->m->insts[i].operand_count; k++) {
            uint32_t operand = hb_hlo_operand(l->m, i, k) - l->first;
            bool counts = is_first_mention(l, i, k);
            if (counts && next)
                l->users[next[operand]++] = i;
            else if (counts)
                l->uses[operand]++;
        }
}

static void list_users(struct lister *l)
{
    uint32_t *next = hb_arena_alloc(l->arena, l->count, sizeof *next);
    pass_users(l, NULL);
    for (uint32_t i = 0; i < l->count; i++) {
        next[i] = l->first_user[i];
        l->first_user[i + 1] = l->first_user[i] + l->uses[i];
    }
    l->users = hb_arena_alloc(l->arena, l->first_user[l->count], sizeof *l->users);
    pass_users(l, next);
}

/* The one user that is left of an operand has become cheaper. */
static void requeue_user(struct lister *l, uint32_t operand)
{
    uint32_t at = operand - l->first;
    for (uint32_t u = l->first_user[at]; u < l->first_user[at + 1]; u++) {
        uint32_t user = l->users[u] - l->first;
        if (!l->done[user] && !l->waits[user])
            push_ready(l, l->users[u]);
    }
}

/* One use less; what only handed on dies with its last, and with it a use of what it held. */
static void release(struct lister *l, uint32_t operand)
{
    uint32_t depth = 0;
    l->stack[depth++] = operand;
    while (depth) {
        uint32_t inst = l->stack[--depth];
        uint32_t *uses = &l->uses[inst - l->first];
        if (--*uses == 1)
            requeue_user(l, inst);
        if (*uses || !hands_on(hb_hlo_op_of(l->m, inst)))
            continue;
        for (uint32_t i = 0; i < l->m->insts[inst].operand_count; i++)
            if (is_first_mention(l, inst, i))
                l->stack[depth++] = hb_hlo_operand(l->m, inst, i);
    }
}

static void run_inst(struct lister *l, uint32_t inst)
{
    uint32_t at = inst - l->first;
    bool holds = hands_on(hb_hlo_op_of(l->m, inst)) && l->uses[at];
    l->done[at] = true;
    for (uint32_t i = 0; i < l->m->insts[inst].operand_count && !holds; i++)
        if (is_first_mention(l, inst, i))
            release(l, hb_hlo_operand(l->m, inst, i));
    for (uint32_t u = l->first_user[at]; u < l->first_user[at + 1]; u++)
        if (--l->waits[l->users[u] - l->first] == 0)
            push_ready(l, l->users[u]);
}

static void list_comp(struct hb_arena *arena, const struct hb_hlo_module *m,
                      const struct hb_hlo_comp *comp, uint32_t *out)
{
    struct lister l = {
        .m = m, .arena = arena, .first = comp->first_inst, .count = comp->inst_count};
    l.first_user = hb_arena_alloc(arena, (size_t)l.count + 1, sizeof *l.first_user);
    l.waits = hb_arena_alloc(arena, l.count, sizeof *l.waits);
    l.uses = hb_arena_alloc(arena, l.count, sizeof *l.uses);
    l.done = hb_arena_alloc(arena, l.count, sizeof *l.done);
    l.made = hb_arena_alloc(arena, l.count, sizeof *l.made);
    uint32_t placed = 0;
    size_t operands = 1;
    for (uint32_t i = 0; i < l.count; i++) {
        l.made[i] = made_bytes(m, l.first + i);
        operands += m->insts[l.first + i].operand_count;
        for (uint32_t k = 0; k < m->insts[l.first + i].operand_count; k++)
            l.waits[i] += is_first_mention(&l, l.first + i, k);
    }
    l.stack = hb_arena_alloc(arena, operands, sizeof *l.stack);
    list_users(&l);
    l.uses[comp->root - l.first]++; /* the caller's */
    for (uint32_t i = 0; i < l.count; i++)
        if (!l.waits[i])
            push_ready(&l, l.first + i);
    while (l.queue_count) {
        uint32_t inst = pop_ready(&l);
        if (l.done[inst - l.first])
            continue;
        out[placed++] = inst;
        run_inst(&l, inst);
    }
}

uint32_t *hb_hlo_schedule(struct hb_arena *arena, const struct hb_hlo_module *m,
                          enum hb_hlo_scheduling how)
{
    uint32_t *order = hb_arena_alloc(arena, m->inst_count, sizeof *order);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    for (uint32_t c = 0; c < m->comp_count; c++) {
        const struct hb_hlo_comp *comp = &m->comps[c];
        switch (how) {
        case HB_HLO_AS_PRINTED:
        case HB_HLO_SCHEDULINGS:
            for (uint32_t i = 0; i < comp->inst_count; i++)
                order[comp->first_inst + i] = comp->first_inst + i;
            break;
        case HB_HLO_POST_ORDER:
            hb_hlo_post_order(arena, m, c, order + comp->first_inst);
            break;
        case HB_HLO_LIST:
            list_comp(arena, m, comp, order + comp->first_inst);
            break;
        }
        hb_arena_rewind(arena, mark);
    }
    return order;
}

const char *hb_hlo_scheduling_name(enum hb_hlo_scheduling how)
{
    static const char *const names[] = {"as printed", "depth first", "list schedule", ""};
    return names[how];
}
