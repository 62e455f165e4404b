/* Time counts ops: a computation runs just before the op that runs it. At each op first all that
 * is made there is added, then what is over is taken off. */
#include "sim/graph/choose.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/size.h"

struct life {
    int32_t start, end;
    uint32_t place;
    uint32_t value;
};

struct replay {
    const struct hb_graph *g;
    const uint32_t *order;
    int32_t *time;        /* by op */
    int32_t *start, *end; /* by computation */
    int32_t now;
};

static void time_comp(struct replay *r, uint32_t comp)
{
    const struct hb_graph *g = r->g;
    const struct hb_graph_comp *of = &g->comps[comp];
    r->start[comp] = r->now;
    for (uint32_t i = of->first_op; i < of->first_op + of->op_count; i++) {
        uint32_t op = r->order[i];
        for (uint32_t c = 0; c < hb_graph_ref_count(g, op, HB_GRAPH_RUNS); c++)
            time_comp(r, hb_graph_refs(g, op, HB_GRAPH_RUNS)[c]);
        r->time[op] = r->now++;
    }
    r->end[comp] = r->now;
}

static int32_t touch_time(const struct replay *r, const struct hb_graph_touch *t)
{
    switch (t->until) {
    case HB_GRAPH_START:
        return r->start[t->at];
    case HB_GRAPH_END:
        return r->end[t->at];
    case HB_GRAPH_OP:
        break;
    }
    return r->time[t->at];
}

/* By value. */
static struct life *find_lives(struct hb_arena *scratch, const struct replay *r)
{
    const struct hb_graph *g = r->g;
    struct life *lives = hb_arena_alloc(scratch, g->value_count, sizeof *lives);
    for (uint32_t v = 0; v < g->value_count; v++) {
        uint32_t op = g->values[v].op;
        int32_t at = g->ops[op].early ? r->start[g->ops[op].comp] : r->time[op];
        lives[v] = (struct life){at, r->time[op], g->values[v].place, v};
    }
    for (uint32_t t = 0; t < g->touch_count; t++) {
        struct life *life = &lives[g->touches[t].value];
        int32_t at = touch_time(r, &g->touches[t]);
        life->end = at > life->end ? at : life->end;
    }
    return lives;
}

static int compare_lives(const void *a, const void *b)
{
    const struct life *left = a, *right = b;
    int place = (left->place > right->place) - (left->place < right->place);
    int start = (left->start > right->start) - (left->start < right->start);
    int end = (left->end > right->end) - (left->end < right->end);
    int value = (left->value > right->value) - (left->value < right->value);
    return 8 * place + 4 * start + 2 * end + value;
}

/* Of one place: each ends where the next begins, and hands on a later end. *out_size: by value,
 * what its place takes; *out_alone: whether it has its place for itself. */
static void follow_places(const struct hb_graph *g, struct life *lives, int64_t *out_bytes,
                          bool *out_alone)
{
    for (uint32_t i = 0, n; i < g->value_count; i = n) {
        int64_t most = 0;
        for (n = i; n < g->value_count && lives[n].place == lives[i].place; n++)
            most = hb_larger(most, g->values[lives[n].value].bytes);
        for (uint32_t k = i; k < n; k++) {
            out_bytes[lives[k].value] = most;
            out_alone[lives[k].value] = n - i == 1;
        }
        for (uint32_t k = i; k + 1 < n; k++) {
            struct life *one = &lives[k], *two = &lives[k + 1];
            two->end = one->end > two->end ? one->end : two->end;
            one->end = one->end < two->start ? one->end : two->start;
        }
    }
}

/* Values that die as another is made which may take one's place: the pair counts once then. */
static void inherit(const struct hb_graph *g, const struct life *by_value, const bool *alone,
                    bool *gone_early)
{
    uint32_t last = HB_NONE; /* that has its place */
    for (uint32_t h = 0; h < g->heir_count; h++) {
        uint32_t value = g->heirs[h].value, from = g->heirs[h].from;
        if (value != last && alone[value] && alone[from] && !gone_early[from] &&
            by_value[from].end == by_value[value].start) {
            gone_early[from] = true;
            last = value;
        }
    }
}

int64_t hb_graph_estimate(struct hb_arena *scratch, const struct hb_graph *g, const uint32_t *order)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct replay r = {.g = g, .order = order};
    r.time = hb_arena_alloc(scratch, g->op_count, sizeof *r.time);
    r.start = hb_arena_alloc(scratch, g->comp_count, sizeof *r.start);
    r.end = hb_arena_alloc(scratch, g->comp_count, sizeof *r.end);
    time_comp(&r, g->entry);
    struct life *lives = find_lives(scratch, &r);
    struct life *by_value = hb_arena_alloc(scratch, g->value_count, sizeof *by_value);
    int64_t *bytes = hb_arena_alloc(scratch, g->value_count, sizeof *bytes);
    bool *alone = hb_arena_alloc(scratch, g->value_count, sizeof *alone);
    bool *early = hb_arena_alloc(scratch, g->value_count, sizeof *early);
    if (g->value_count)
        qsort(lives, g->value_count, sizeof *lives, compare_lives);
    follow_places(g, lives, bytes, alone);
    for (uint32_t i = 0; i < g->value_count; i++)
        by_value[lives[i].value] = lives[i];
    inherit(g, by_value, alone, early);
    int64_t *change = hb_arena_alloc(scratch, (size_t)r.now + 2, sizeof *change);
    for (uint32_t v = 0; v < g->value_count; v++) {
        if (g->values[v].constant)
            continue;
        int32_t end = by_value[v].end + !early[v];
        change[by_value[v].start] += bytes[v];
        change[hb_smaller(end, r.now + 1)] -= bytes[v];
    }
    int64_t live = 0, most = 0;
    for (int32_t t = 0; t <= r.now; t++) {
        live += change[t];
        most = hb_larger(most, live);
    }
    hb_arena_rewind(scratch, mark);
    return most;
}

uint32_t *hb_graph_order_make(struct hb_arena *arena, const struct hb_graph *g,
                              enum hb_order_kind kind)
{
    uint32_t *order = hb_arena_alloc(arena, g->op_count, sizeof *order);
    if (kind == HB_ORDER_LIST) {
        hb_graph_order_list(arena, g, order);
        return order;
    }
    for (uint32_t c = 0; c < g->comp_count; c++) {
        uint32_t *row = order + g->comps[c].first_op;
        (kind == HB_ORDER_DEPTH ? hb_graph_order_depth : hb_graph_order_post)(arena, g, c, row);
        hb_graph_order_async(arena, g, c, row);
    }
    return order;
}

const char *hb_graph_order_name(enum hb_order_kind kind)
{
    static const char *const names[] = {"list", "depth", "post"};
    return names[kind];
}

void hb_graph_choose(struct hb_arena *arena, const struct hb_graph *g, struct hb_order_choice *out)
{
    for (int kind = 0; kind < HB_ORDER_KINDS; kind++) {
        out->orders[kind] = hb_graph_order_make(arena, g, (enum hb_order_kind)kind);
        out->bytes[kind] = hb_graph_estimate(arena, g, out->orders[kind]);
        if (kind == 0 || out->bytes[kind] < out->bytes[out->least])
            out->least = (enum hb_order_kind)kind;
    }
}
