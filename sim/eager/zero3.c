/* See zero3.h. Numbers of visits are DeepSpeed's step ids. */
#include "sim/eager/zero3.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/eager/ops.h"

enum { ELEMENT_BYTES = 2 };

/* Several parameters that are gathered together. */
struct bunch {
    uint32_t *params;
    uint32_t count;
    uint32_t waiting; /* of them, for which nobody has waited */
    uint32_t flat;    /* storage; HB_NONE: of one, which is gathered where it stays */
    bool copied;
};

enum state { AWAY, COMING, HERE };

struct param {
    const char *name;
    int64_t count;
    uint32_t more; /* parameters of its module behind it: a bias */
    enum state state;
    uint32_t whole; /* storage; HB_NONE */
    struct bunch *bunch;
    bool persists;
    bool entered;        /* its module is, and was not left */
    bool early;          /* its backward pass was entered before its op's */
    int64_t last_visit;  /* of its module; -1 */
    int64_t fetched_for; /* latest visit that it was gathered for; -1: none of this pass */
};

enum { MOST_OF_A_MODULE = 2 };
struct visit {
    uint32_t first; /* parameter of the module; HB_NONE: it has none */
    uint32_t count;
    int64_t before; /* elements of the visits before it */
    uint32_t again; /* the next of the same module; HB_NONE */
    enum { UNKNOWN, STAYS, GOES } after[MOST_OF_A_MODULE]; /* decided when it was left first */
};

/* What is asked for ahead, in this order. */
struct wanted {
    uint32_t param;
    uint32_t visit;
};

struct hb_zero3 {
    struct hb_tape *t;
    struct hb_zero3_limits limits;
    struct param *params;
    uint32_t count, cap;
    struct visit *visits; /* of a pass */
    uint32_t visit_count, visit_cap;
    struct wanted *order;
    uint32_t order_count, order_cap;
    bool known;     /* they are all written down */
    uint32_t step;  /* the next visit */
    uint32_t queue; /* the first of `order` that is not asked for */
    int64_t there;  /* elements that are there or coming */
};

struct hb_zero3 *hb_zero3_new(struct hb_tape *t, struct hb_zero3_limits limits)
{
    struct hb_zero3 *z = hb_arena_alloc(t->arena, 1, sizeof *z);
    z->t = t;
    z->limits = limits;
    return z;
}

void hb_zero3_add(struct hb_zero3 *z, struct hb_weight *w)
{
    int64_t count = hb_tape_size(z->t, w->rows, w->cols, 1);
    z->params = hb_grow(z->t->arena, z->params, z->count, &z->cap, sizeof *z->params);
    z->params[z->count] = (struct param){.name = w->name,
                                         .count = count,
                                         .more = w->bias != NULL,
                                         .whole = HB_NONE,
                                         .persists = count <= z->limits.persists,
                                         .last_visit = -1,
                                         .fetched_for = -1};
    w->zero3 = z;
    w->at = z->count++;
}

static int64_t own_count(const struct hb_zero3 *z, const struct param *p)
{
    return hb_div_up(p->count, z->limits.ranks);
}

int64_t hb_zero3_own_count(const struct hb_zero3 *z)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < z->count; i++)
        sum = hb_add_sat(sum, own_count(z, &z->params[i]));
    return sum;
}

/* --- gathers --- */

static uint32_t make(struct hb_zero3 *z, const char *op, const char *name, int64_t count)
{
    z->t->pool = z->limits.pool;
    uint32_t storage =
        hb_tape_make(z->t, (struct hb_made){op, name, hb_tape_size(z->t, count, ELEMENT_BYTES, 1),
                                            HB_CAT_COMMUNICATION, 0});
    z->t->pool = 0;
    return storage;
}

static int64_t gathered_count(const struct hb_zero3 *z, const struct param *p)
{
    return hb_mul_sat(own_count(z, p), z->limits.ranks);
}

static void gather(struct hb_zero3 *z, const uint32_t *which, uint32_t count)
{
    struct bunch *b = hb_arena_alloc(z->t->arena, 1, sizeof *b);
    int64_t sum = 0;
    *b = (struct bunch){.params = hb_arena_alloc(z->t->arena, count, sizeof *b->params),
                        .count = count,
                        .waiting = count,
                        .flat = HB_NONE,
                        .copied = count == 1};
    for (uint32_t i = 0; i < count; i++) {
        struct param *p = &z->params[which[i]];
        b->params[i] = which[i];
        p->state = COMING;
        p->bunch = b;
        sum = hb_add_sat(sum, gathered_count(z, p));
        z->there = hb_add_sat(z->there, p->count);
    }
    uint32_t own = z->limits.on_host ? make(z, "copy from the host", "own weights to gather",
                                            sum / z->limits.ranks)
                                     : HB_NONE;
    if (count > 1)
        b->flat = make(z, "all-gather over fsdp", "gathered weights in one buffer", sum);
    else
        z->params[*which].whole = make(z, "all-gather over fsdp", z->params[*which].name, sum);
    hb_tape_drop(z->t, own);
}

static void copy_out(struct hb_zero3 *z, struct bunch *b)
{
    for (uint32_t i = 0; i < b->count && !b->copied; i++) {
        struct param *p = &z->params[b->params[i]];
        p->whole = make(z, "copy out", p->name, p->count);
    }
    b->copied = true;
    for (uint32_t i = 0; i < b->count; i++)
        if (z->params[b->params[i]].state == COMING)
            z->params[b->params[i]].state = HERE;
}

static void wait_for(struct hb_zero3 *z, struct param *p)
{
    struct bunch *b = p->bunch;
    if (!b)
        return;
    p->bunch = NULL;
    copy_out(z, b);
    if (--b->waiting == 0)
        hb_tape_drop(z->t, b->flat);
}

static void give_back(struct hb_zero3 *z, struct param *p)
{
    if (p->state != HERE || p->entered)
        return;
    hb_tape_drop(z->t, p->whole);
    p->whole = HB_NONE;
    p->state = AWAY;
    z->there -= p->count;
}

/* --- a pass --- */

static int64_t visited_count(const struct hb_zero3 *z, const struct visit *v)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < v->count; i++)
        sum = hb_add_sat(sum, z->params[v->first + i].count);
    return sum;
}

static void write_down(struct hb_zero3 *z, uint32_t first, uint32_t count)
{
    struct visit v = {.first = first, .count = count, .again = HB_NONE};
    if (z->visit_count) {
        const struct visit *last = &z->visits[z->visit_count - 1];
        v.before = hb_add_sat(last->before, visited_count(z, last));
    }
    z->visits = hb_grow(z->t->arena, z->visits, z->visit_count, &z->visit_cap, sizeof *z->visits);
    z->visits[z->visit_count++] = v;
    for (uint32_t i = 0; i < count; i++) {
        z->order = hb_grow(z->t->arena, z->order, z->order_count, &z->order_cap, sizeof *z->order);
        z->order[z->order_count++] = (struct wanted){first + i, z->visit_count - 1};
    }
    if (count && z->params[first].last_visit >= 0)
        z->visits[z->params[first].last_visit].again = z->visit_count - 1;
}

/* The parameters that are used now are not asked for again. */
static void skip_asked(struct hb_zero3 *z, uint32_t first, uint32_t count)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++)
        left += z->params[first + i].fetched_for < (int64_t)z->step;
    for (; left; left--) {
        if (z->queue == z->order_count || z->order[z->queue].visit != z->step)
            HB_BUG("visit %u of a pass is not what was written down", z->step);
        z->params[z->order[z->queue++].param].fetched_for = z->step;
    }
}

static void prefetch(struct hb_zero3 *z)
{
    int64_t room = z->limits.live - z->there, sum = 0;
    uint32_t *which = NULL, count = 0, cap = 0;
    room = room < z->limits.prefetch ? room : z->limits.prefetch;
    for (; z->queue < z->order_count && sum < room; z->queue++) {
        uint32_t at = z->order[z->queue].param;
        struct param *p = &z->params[at];
        bool asked = p->state != AWAY;
        for (uint32_t i = 0; i < count; i++)
            asked = asked || which[i] == at;
        p->fetched_for = z->order[z->queue].visit;
        if (asked)
            continue;
        which = hb_grow(z->t->arena, which, count, &cap, sizeof *which);
        which[count++] = at;
        sum = hb_add_sat(sum, p->count);
    }
    if (count)
        gather(z, which, count);
}

/* What of the module is away comes in one. */
static void fetch(struct hb_zero3 *z, uint32_t first, uint32_t count)
{
    uint32_t away[MOST_OF_A_MODULE], away_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (z->params[first + i].state == AWAY)
            away[away_count++] = first + i;
    if (away_count)
        gather(z, away, away_count);
    for (uint32_t i = 0; i < count; i++) {
        struct param *p = &z->params[first + i];
        wait_for(z, p);
        p->entered = true;
        p->last_visit = z->step;
    }
}

static void enter(struct hb_zero3 *z, uint32_t first)
{
    uint32_t count = first == HB_NONE ? 0 : 1 + z->params[first].more;
    if (!z->known)
        write_down(z, first, count);
    fetch(z, first, count);
    if (z->known) {
        skip_asked(z, first, count);
        prefetch(z);
    }
    z->step++;
}

void hb_zero3_enter_plain(struct hb_zero3 *z)
{
    if (z)
        enter(z, HB_NONE);
}

void hb_zero3_enter(const struct hb_weight *w)
{
    if (w && w->zero3)
        enter(w->zero3, w->at);
}

void hb_zero3_enter_early(const struct hb_weight *w)
{
    if (!w->zero3)
        return;
    enter(w->zero3, w->at);
    w->zero3->params[w->at].early = true;
}

void hb_zero3_enter_back(const struct hb_weight *w)
{
    if (w->zero3 && !w->zero3->params[w->at].early)
        enter(w->zero3, w->at);
}

static bool comes_again(const struct hb_zero3 *z, const struct param *p)
{
    uint32_t again = z->visits[p->last_visit].again;
    if (p->fetched_for > (int64_t)z->step)
        return true;
    if (again == HB_NONE || z->step >= z->visit_count)
        return false;
    return z->visits[again].before - z->visits[z->step].before < z->limits.reuse;
}

/* Decided in the first pass that knows, and remembered (a cache of the function's results). */
static bool goes(struct hb_zero3 *z, uint32_t at)
{
    const struct param *p = &z->params[at];
    struct visit *v = &z->visits[p->last_visit];
    if (!z->known)
        return true;
    if (v->after[at - v->first] == UNKNOWN)
        v->after[at - v->first] = p->persists || comes_again(z, p) ? STAYS : GOES;
    return v->after[at - v->first] == GOES;
}

void hb_zero3_leave(const struct hb_weight *w)
{
    if (!w || !w->zero3)
        return;
    struct hb_zero3 *z = w->zero3;
    for (uint32_t at = w->at; at <= w->at + z->params[w->at].more; at++) {
        struct param *p = &z->params[at];
        p->entered = false;
        p->early = false;
        if (goes(z, at))
            give_back(z, p);
    }
}

void hb_zero3_begin(struct hb_zero3 *z)
{
    if (!z)
        return;
    z->known = z->visit_count > 0;
    z->step = z->queue = 0;
    z->there = 0;
    for (uint32_t i = 0; i < z->count; i++)
        z->params[i].fetched_for = z->params[i].last_visit = -1;
}

void hb_zero3_end(struct hb_zero3 *z)
{
    for (uint32_t i = 0; z && i < z->count; i++) {
        struct param *p = &z->params[i];
        if (p->bunch)
            HB_BUG("parameter %u was gathered for nobody", i);
        bool left = !p->entered;
        p->entered = false;
        if (!left && !p->persists)
            give_back(z, p);
    }
}

/* --- the update --- */

/* Norms are taken of one part after the other, in f64. */
static void take_norms(struct hb_zero3 *z)
{
    enum { NORM_BYTES = 8 };
    for (uint32_t i = 0; i < z->count; i++) {
        int64_t bytes = hb_tape_size(z->t, own_count(z, &z->params[i]), NORM_BYTES, 1);
        hb_tape_drop(z->t, hb_ops_work(z->t, "to f64", "own gradient, for its norm", bytes));
    }
}

static void update_groups(struct hb_zero3 *z, void (*update)(void *, int64_t), void *context)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < z->count; i++) {
        sum = hb_add_sat(sum, own_count(z, &z->params[i]));
        if (sum < z->limits.group && i + 1 < z->count)
            continue;
        update(context, sum);
        sum = 0;
    }
}

static void gather_persistent(struct hb_zero3 *z)
{
    for (uint32_t i = 0; i < z->count; i++) {
        struct param *p = &z->params[i];
        if (!p->persists)
            continue;
        int64_t bytes = hb_tape_size(z->t, gathered_count(z, p), ELEMENT_BYTES, 1);
        p->whole = hb_tape_make(z->t, (struct hb_made){"all-gather over fsdp", p->name, bytes,
                                                       HB_CAT_COMMUNICATION, 0});
        p->state = HERE;
    }
}

void hb_zero3_forget(struct hb_zero3 *z)
{
    for (uint32_t i = 0; z && i < z->count; i++)
        give_back(z, &z->params[i]);
}

void hb_zero3_step(struct hb_zero3 *z, void (*update)(void *context, int64_t count), void *context)
{
    hb_zero3_forget(z);
    if (!z->limits.updates_there) {
        take_norms(z);
        update_groups(z, update, context);
    }
    gather_persistent(z);
}
