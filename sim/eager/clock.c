#include "sim/eager/clock.h"

#include "base/arena.h"
#include "base/size.h"

enum { NOT_YET = -1 };

struct clock {
    const struct hb_pipeline *p;
    struct hb_pass_times times;
    int64_t stages;
    struct hb_actions *todo; /* by rank */
    uint32_t *at;
    int64_t *now;
    int64_t
        *made[2]; /* by stage, then microbatch: when output, or gradient of the input, is there */
};

static int64_t duration(const struct clock *c, enum hb_action_kind kind)
{
    if (kind == HB_ACT_FORWARD)
        return c->times.forward;
    if (kind == HB_ACT_BACKWARD)
        return hb_add_sat(c->times.input, c->times.weight);
    if (kind == HB_ACT_INPUT)
        return c->times.input;
    return hb_add_sat(c->times.weight, c->times.again);
}

/* When what the pass needs is there; NOT_YET. */
static int64_t needs(const struct clock *c, const struct hb_action *a)
{
    bool back = a->kind == HB_ACT_BACKWARD || a->kind == HB_ACT_INPUT;
    int64_t from = a->stage + (back ? 1 : -1);
    if (a->kind == HB_ACT_WEIGHT || from < 0 || from >= c->stages)
        return 0;
    return c->made[back][from * c->p->microbatches + a->microbatch];
}

static bool step(struct clock *c, int64_t rank)
{
    const struct hb_action *a = &c->todo[rank].list[c->at[rank]];
    int64_t from = needs(c, a), *now = &c->now[rank];
    if (from == NOT_YET)
        return false;
    *now = hb_add_sat(hb_larger(*now, from), duration(c, a->kind));
    if (a->kind != HB_ACT_WEIGHT)
        c->made[a->kind != HB_ACT_FORWARD][a->stage * c->p->microbatches + a->microbatch] = *now;
    c->at[rank]++;
    return true;
}

int64_t hb_pipeline_bubble(struct hb_arena *arena, const struct hb_pipeline *p,
                           struct hb_pass_times t)
{
    size_t ranks = (size_t)p->ranks;
    struct clock c = {.p = p, .times = t, .stages = p->ranks * p->chunks};
    size_t all = (size_t)(c.stages * p->microbatches);
    c.todo = hb_arena_alloc(arena, ranks, sizeof *c.todo);
    c.at = hb_arena_alloc(arena, ranks, sizeof *c.at);
    c.now = hb_arena_alloc(arena, ranks, sizeof *c.now);
    for (int k = 0; k < 2; k++) {
        c.made[k] = hb_arena_alloc(arena, all, sizeof *c.made[k]);
        for (size_t i = 0; i < all; i++)
            c.made[k][i] = NOT_YET;
    }
    for (int64_t r = 0; r < p->ranks; r++)
        c.todo[r] = hb_pipeline_passes(arena, p, r);
    bool progress = true;
    while (progress) {
        progress = false;
        for (int64_t r = 0; r < p->ranks; r++)
            while (c.at[r] < c.todo[r].count && step(&c, r))
                progress = true;
    }
    int64_t end = 0, one = hb_add_sat(t.forward, hb_add_sat(t.input, t.weight));
    for (int64_t r = 0; r < p->ranks; r++) {
        if (c.at[r] < c.todo[r].count)
            return -1;
        end = hb_larger(end, c.now[r]);
    }
    return end - hb_mul_sat(hb_mul_sat(p->chunks, p->microbatches), one);
}
