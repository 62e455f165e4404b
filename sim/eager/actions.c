/* See actions.h. Names of torch's functions stand at what follows them. */
#include "sim/eager/actions.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

/* Stages whose weights may be there at once (_PipelineScheduleRuntime, max_active_stages). */
enum { MOST_ACTIVE = 3 };

static bool is_vee(const struct hb_pipeline *p)
{
    return p->schedule == HB_SCHED_ZBV || p->schedule == HB_SCHED_DUALPIPE_V;
}

bool hb_pipeline_is_many(const struct hb_pipeline *p)
{
    return p->schedule != HB_SCHED_GPIPE && p->schedule != HB_SCHED_1F1B;
}

int64_t hb_pipeline_rank(const struct hb_pipeline *p, int64_t stage)
{
    if (is_vee(p) && stage >= p->ranks)
        return 2 * p->ranks - 1 - stage;
    return stage % p->ranks;
}

int64_t hb_pipeline_stage(const struct hb_pipeline *p, int64_t rank, int64_t k)
{
    return is_vee(p) && k ? 2 * p->ranks - 1 - rank : k * p->ranks + rank;
}

/* Of interleaved ones: microbatches that run through a chunk before the next one does; 0: torch
 * refuses so many. */
static int64_t find_round(const struct hb_pipeline *p)
{
    int64_t rounds = p->microbatches / p->ranks;
    rounds = rounds < 1 ? 1 : rounds;
    return p->microbatches % rounds ? 0 : p->microbatches / rounds;
}

static int64_t count_layers(const struct hb_spec *spec)
{
    int64_t sum = 0;
    for (int i = 0; i < spec->model.block_count; i++)
        sum = hb_add_sat(sum, spec->model.blocks[i].repeat);
    return sum;
}

int64_t hb_stage_start(const struct hb_spec *spec, int64_t stage)
{
    int64_t stages = spec->mesh[HB_AX_PIPELINE] * spec->pipeline.repeats;
    int64_t layers = count_layers(spec), start = 0;
    if (spec->mesh[HB_AX_PIPELINE] == 1)
        return stage ? layers : 0;
    if (!spec->pipeline.layers)
        return layers * stage / stages;
    for (int64_t i = 0; i < stage && i < spec->pipeline.layer_count; i++)
        start = hb_add_sat(start, spec->pipeline.layers[i]);
    return start < layers ? start : layers;
}

struct hb_pipeline hb_pipeline_of(const struct hb_spec *s)
{
    return (struct hb_pipeline){s->pipeline.schedule, s->mesh[HB_AX_PIPELINE], s->pipeline.repeats,
                                s->pipeline.microbatches};
}

static struct hb_actions room_for(struct hb_arena *arena, uint32_t count)
{
    return (struct hb_actions){.list = hb_arena_raw(arena, count, sizeof(struct hb_action)),
                               .cap = count};
}

static void push(struct hb_arena *arena, struct hb_actions *to, struct hb_action a)
{
    to->list = hb_grow(arena, to->list, to->count, &to->cap, sizeof *to->list);
    to->list[to->count++] = a;
}

/* --- passes --- */

struct maker {
    struct hb_arena *arena;
    const struct hb_pipeline *p;
    int64_t rank;
    struct hb_actions out;
    int64_t *forwards; /* by chunk: microbatches so far */
    int64_t *inputs;
    int64_t *weights;
    struct hb_actions owed; /* inputs' passes whose weights' have not run */
    uint32_t paid;
};

static struct maker new_maker(struct hb_arena *arena, const struct hb_pipeline *p, int64_t rank)
{
    struct maker m = {.arena = arena, .p = p, .rank = rank};
    m.forwards = hb_arena_alloc(arena, (size_t)p->chunks, sizeof *m.forwards);
    m.inputs = hb_arena_alloc(arena, (size_t)p->chunks, sizeof *m.inputs);
    m.weights = hb_arena_alloc(arena, (size_t)p->chunks, sizeof *m.weights);
    return m;
}

static int64_t *counter(struct maker *m, enum hb_action_kind kind, int64_t chunk)
{
    if (kind == HB_ACT_FORWARD)
        return &m->forwards[chunk];
    return kind == HB_ACT_WEIGHT ? &m->weights[chunk] : &m->inputs[chunk];
}

/* The next microbatch of a chunk; schedules of a fixed shape have more than there are. */
static void add(struct maker *m, enum hb_action_kind kind, int64_t chunk, bool joined)
{
    int64_t stage = hb_pipeline_stage(m->p, m->rank, chunk), at = (*counter(m, kind, chunk))++;
    if (at < m->p->microbatches)
        push(m->arena, &m->out, (struct hb_action){kind, joined, stage, at});
}

static void make_single(struct maker *m)
{
    bool gpipe = m->p->schedule == HB_SCHED_GPIPE;
    int64_t all = m->p->microbatches, warm = gpipe ? all : m->p->ranks - m->rank;
    warm = warm < all ? warm : all;
    for (int64_t i = 0; i < warm; i++)
        add(m, HB_ACT_FORWARD, 0, false);
    for (int64_t i = 0; i < all; i++) {
        add(m, HB_ACT_BACKWARD, 0, false);
        if (warm + i < all)
            add(m, HB_ACT_FORWARD, 0, false);
    }
}

static int64_t round_of(const struct hb_pipeline *p)
{
    int64_t round = find_round(p);
    return round ? round : p->microbatches;
}

/* _get_1f1b_rank_ops: the chunk of the k-th pass of a direction. */
static int64_t chunk_at(const struct maker *m, int64_t k, bool backward)
{
    int64_t at = k / round_of(m->p) % m->p->chunks;
    return backward ? m->p->chunks - 1 - at : at;
}

/* The k-th pass backwards; split ones owe their weights' from the first `rank` on. */
static void add_back(struct maker *m, int64_t k, int64_t *paid)
{
    bool split = m->p->schedule == HB_SCHED_ZERO_BUBBLE;
    add(m, split ? HB_ACT_INPUT : HB_ACT_BACKWARD, chunk_at(m, k, true), false);
    if (split && k >= m->rank)
        add(m, HB_ACT_WEIGHT, chunk_at(m, (*paid)++, true), false);
}

/* ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble */
static void make_interleaved(struct maker *m)
{
    bool split = m->p->schedule == HB_SCHED_ZERO_BUBBLE;
    int64_t all = m->p->microbatches * m->p->chunks, paid = 0;
    int64_t warm =
        (m->p->chunks - 1) * round_of(m->p) + (split ? 1 : 2) * (m->p->ranks - 1 - m->rank);
    warm = warm < all ? warm : all;
    for (int64_t k = 0; k < warm; k++)
        add(m, HB_ACT_FORWARD, chunk_at(m, k, false), false);
    for (int64_t k = 0; k < all; k++) {
        if (warm + k < all)
            add(m, HB_ACT_FORWARD, chunk_at(m, warm + k, false), false);
        add_back(m, k, &paid);
    }
    while (split && paid < all)
        add(m, HB_ACT_WEIGHT, chunk_at(m, paid++, true), false);
}

/* F of one chunk, then the backward pass of it in two. */
static void add_three(struct maker *m, int64_t chunk, bool forward)
{
    if (forward)
        add(m, HB_ACT_FORWARD, chunk, false);
    add(m, HB_ACT_INPUT, chunk, false);
    add(m, HB_ACT_WEIGHT, chunk, false);
}

static void end_zbv(struct maker *m)
{
    int64_t behind = m->p->ranks - m->rank;
    for (int64_t i = 0; i < m->rank; i++) {
        add(m, HB_ACT_INPUT, 0, false);
        add(m, HB_ACT_INPUT, 1, false);
    }
    for (int64_t i = 0; i < behind; i++) {
        add(m, HB_ACT_INPUT, 0, false);
        add(m, HB_ACT_WEIGHT, 0, false);
    }
    while (m->weights[1] < m->inputs[1])
        add(m, HB_ACT_WEIGHT, 1, false);
    while (m->weights[0] < m->inputs[0])
        add(m, HB_ACT_WEIGHT, 0, false);
}

/* ScheduleZBVZeroBubble */
static void make_zbv(struct maker *m)
{
    int64_t ranks = m->p->ranks, behind = ranks - m->rank, least = 2 * ranks - 1;
    int64_t all = m->p->microbatches > least ? m->p->microbatches : least;
    for (int64_t i = 0; i < 2 * behind - 1; i++)
        add(m, HB_ACT_FORWARD, 0, false);
    for (int64_t i = 0; i < m->rank; i++) {
        add(m, HB_ACT_FORWARD, 1, false);
        add(m, HB_ACT_FORWARD, 0, false);
    }
    for (int64_t i = 0; i < behind; i++)
        add_three(m, 1, true);
    while (m->forwards[1] < m->forwards[0] || m->forwards[0] < all) {
        add_three(m, 0, m->forwards[0] < all);
        add_three(m, 1, true);
    }
    end_zbv(m);
}

/* DualPipeV: a pass backwards, whole or of the input alone, which then owes. */
static void add_dual(struct maker *m, int64_t chunk, bool split)
{
    add(m, split ? HB_ACT_INPUT : HB_ACT_BACKWARD, chunk, false);
    if (split)
        push(m->arena, &m->owed, m->out.list[m->out.count - 1]);
    else
        m->weights[chunk]++;
}

static void pay(struct maker *m)
{
    if (m->paid == m->owed.count)
        return;
    struct hb_action a = m->owed.list[m->paid++];
    a.kind = HB_ACT_WEIGHT;
    push(m->arena, &m->out, a);
}

static void add_both(struct maker *m, int64_t forward, bool joined)
{
    add(m, HB_ACT_FORWARD, forward, joined);
    add_dual(m, 1 - forward, false);
}

static void end_dual(struct maker *m)
{
    int64_t behind = m->p->ranks - m->rank - 1, last = m->rank + 1;
    bool split = false;
    for (int64_t i = 0; i < last; i++) {
        split = split || (i == last / 2 && m->rank % 2 == 1);
        add_dual(m, 1, split);
        split = split || (i == last / 2 && m->rank % 2 == 0);
        add_dual(m, 0, split);
    }
    for (int64_t i = 0; i < behind; i++) {
        pay(m);
        add_dual(m, 0, split);
    }
    for (int64_t i = 0; i < last; i++)
        pay(m);
}

/* ScheduleDualPipeV */
static void make_dual(struct maker *m)
{
    int64_t ranks = m->p->ranks, behind = ranks - m->rank - 1;
    int64_t steady = m->p->microbatches - 2 * ranks + m->rank + 1;
    for (int64_t i = 0; i < 2 * behind; i++)
        add(m, HB_ACT_FORWARD, 0, false);
    for (int64_t i = 0; i < m->rank + 1; i++) {
        add(m, HB_ACT_FORWARD, 0, false);
        add(m, HB_ACT_FORWARD, 1, false);
    }
    for (int64_t i = 0; i < behind; i++) {
        add_dual(m, 1, true);
        pay(m);
        add(m, HB_ACT_FORWARD, 1, false);
    }
    for (int64_t i = 0; i < steady; i++) {
        add_both(m, 0, i > 0 || m->rank != ranks - 1);
        add_both(m, 1, true);
    }
    for (int64_t i = 0; i < behind; i++) {
        add_dual(m, 1, false);
        add_both(m, 1, true);
    }
    end_dual(m);
}

struct hb_actions hb_pipeline_passes(struct hb_arena *arena, const struct hb_pipeline *p,
                                     int64_t rank)
{
    struct maker m = new_maker(arena, p, rank);
    switch (p->schedule) {
    case HB_SCHED_SPMD:
    case HB_SCHED_GPIPE:
    case HB_SCHED_1F1B:
        make_single(&m);
        break;
    case HB_SCHED_INTERLEAVED:
    case HB_SCHED_ZERO_BUBBLE:
        make_interleaved(&m);
        break;
    case HB_SCHED_ZBV:
        make_zbv(&m);
        break;
    case HB_SCHED_DUALPIPE_V:
        make_dual(&m);
        break;
    }
    return m.out;
}

/* --- weights --- */

/* Stages of the next passes, each once, no more than MOST_ACTIVE unless two are joined; the rank
 * has no more than `all`. */
static int next_stages(const struct hb_actions *a, uint32_t from, int64_t *stages, int64_t all)
{
    int count = 0;
    for (uint32_t i = from; i < a->count; i++) {
        int k = 0;
        while (k < count && stages[k] != a->list[i].stage)
            k++;
        if (k == count)
            stages[count++] = a->list[i].stage;
        if (count == all || (count >= MOST_ACTIVE && !a->list[i].joined))
            break;
    }
    return count;
}

static bool is_among(const int64_t *stages, int count, int64_t stage)
{
    for (int i = 0; i < count; i++)
        if (stages[i] == stage)
            return true;
    return false;
}

struct active {
    int64_t stages[MOST_ACTIVE + 2];
    int count;
    int64_t all; /* of the rank */
};

static void hold_next(struct hb_arena *arena, const struct hb_actions *passes, uint32_t at,
                      struct active *now, struct hb_actions *out)
{
    int64_t next[MOST_ACTIVE + 2];
    int count = next_stages(passes, at, next, now->all), kept = 0;
    struct active before = *now;
    for (int i = 0; i < before.count; i++) {
        if (is_among(next, count, before.stages[i]))
            now->stages[kept++] = before.stages[i];
        else
            push(arena, out, (struct hb_action){HB_ACT_RESHARD, false, before.stages[i], 0});
    }
    now->count = kept;
    for (int i = 0; i < count; i++) {
        if (is_among(before.stages, before.count, next[i]))
            continue;
        now->stages[now->count++] = next[i];
        push(arena, out, (struct hb_action){HB_ACT_UNSHARD, false, next[i], 0});
    }
}

/* _add_unshard_reshard, then _add_reduce_grad: after the last pass that makes weights' gradients.
 */
static struct hb_actions add_weights(struct hb_arena *arena, const struct hb_pipeline *p,
                                     const struct hb_actions *passes)
{
    struct hb_actions out = {0};
    struct active now = {.all = p->chunks};
    int64_t stages = p->ranks * p->chunks;
    int64_t *seen = hb_arena_alloc(arena, (size_t)stages, sizeof *seen);
    for (uint32_t i = 0; i < passes->count; i++) {
        bool first = i == 0 || !passes->list[i - 1].joined;
        uint32_t start = first ? i : i - 1;
        const struct hb_action *a = &passes->list[i];
        if (first)
            hold_next(arena, passes, i, &now, &out);
        push(arena, &out, *a);
        if (a->joined)
            continue;
        for (uint32_t k = start; k <= i; k++) {
            const struct hb_action *of = &passes->list[k];
            bool makes = of->kind == HB_ACT_BACKWARD || of->kind == HB_ACT_WEIGHT;
            if (!makes || ++seen[of->stage] != p->microbatches)
                continue;
            push(arena, &out, (struct hb_action){HB_ACT_REDUCE, false, of->stage, 0});
            push(arena, &out, (struct hb_action){HB_ACT_WAIT_REDUCE, false, of->stage, 0});
        }
    }
    for (int i = 0; i < now.count; i++)
        push(arena, &out, (struct hb_action){HB_ACT_RESHARD, false, now.stages[i], 0});
    return out;
}

/* --- sends and receives --- */

enum { HAS_INPUT = 1, HAS_GRAD = 2 };

struct wiring {
    struct hb_arena *arena;
    const struct hb_pipeline *p;
    int64_t stages;
    struct hb_actions *from; /* by rank */
    uint32_t *at;
    struct hb_actions *to;
    uint8_t *has; /* by stage, then microbatch: HAS_... */
};

static uint8_t *state_of(struct wiring *w, int64_t stage, int64_t microbatch)
{
    return &w->has[stage * w->p->microbatches + microbatch];
}

static bool is_backward(const struct hb_action *a)
{
    return a->kind == HB_ACT_BACKWARD || a->kind == HB_ACT_INPUT;
}

static bool is_ready(struct wiring *w, const struct hb_action *a)
{
    if (a->kind == HB_ACT_FORWARD && a->stage > 0)
        return *state_of(w, a->stage, a->microbatch) & HAS_INPUT;
    if (is_backward(a) && a->stage < w->stages - 1)
        return *state_of(w, a->stage, a->microbatch) & HAS_GRAD;
    return true;
}

/* What follows a pass: the next stage has what it made, on another rank by a send and a receive. */
static void hand_on(struct wiring *w, const struct hb_action *a)
{
    bool forward = a->kind == HB_ACT_FORWARD;
    int64_t next = a->stage + (forward ? 1 : -1);
    if ((!forward && !is_backward(a)) || next < 0 || next >= w->stages)
        return;
    int64_t here = hb_pipeline_rank(w->p, a->stage), there = hb_pipeline_rank(w->p, next);
    *state_of(w, next, a->microbatch) |= forward ? HAS_INPUT : HAS_GRAD;
    if (here == there)
        return;
    struct hb_action send = {forward ? HB_ACT_SEND_F : HB_ACT_SEND_B, false, a->stage,
                             a->microbatch};
    struct hb_action receive = {forward ? HB_ACT_RECV_F : HB_ACT_RECV_B, false, next,
                                a->microbatch};
    push(w->arena, &w->to[here], send);
    push(w->arena, &w->to[there], receive);
}

/* One action, or two that are joined: false where what it needs is not there. */
static bool step(struct wiring *w, int64_t rank)
{
    struct hb_actions *from = &w->from[rank];
    uint32_t first = w->at[rank], end = first + 1;
    while (end < from->count && from->list[end - 1].joined)
        end++;
    for (uint32_t i = first; i < end; i++)
        if (!is_ready(w, &from->list[i]))
            return false;
    for (uint32_t i = first; i < end; i++)
        push(w->arena, &w->to[rank], from->list[i]);
    for (uint32_t i = first; i < end; i++)
        hand_on(w, &from->list[i]);
    w->at[rank] = end;
    return true;
}

/* _add_send_recv: rank by rank, each as far as one action, round after round. */
static void wire(struct wiring *w)
{
    bool progress = true;
    while (progress) {
        progress = false;
        for (int64_t r = 0; r < w->p->ranks; r++)
            if (w->at[r] < w->from[r].count)
                progress = step(w, r) || progress;
    }
}

/* What a rank has sent, and where in the list of it the output of a stage and microbatch is. */
struct sent {
    struct hb_actions list;
    uint32_t *at; /* by stage, then microbatch: place in the list from 1 on; 0: not there */
    int64_t microbatches;
};

static uint32_t *place_of(struct sent *s, const struct hb_action *a)
{
    return &s->at[a->stage * s->microbatches + a->microbatch];
}

/* The output of that stage and microbatch, where it was sent and is not let go. */
static void let_go(struct hb_arena *arena, struct hb_actions *out, struct sent *s,
                   const struct hb_action *back)
{
    uint32_t *at = place_of(s, back);
    if (!*at)
        return;
    struct hb_action *of = &s->list.list[*at - 1];
    of->kind = HB_ACT_WAIT_F;
    push(arena, out, *of);
    *at = 0;
}

static void note_sent(struct hb_arena *arena, struct sent *s, const struct hb_action *a)
{
    if (a->kind != HB_ACT_SEND_F && a->kind != HB_ACT_SEND_B)
        return;
    push(arena, &s->list, *a);
    if (a->kind == HB_ACT_SEND_F)
        *place_of(s, a) = s->list.count;
}

/* _add_wait_send: an output is let go after its stage's own pass backwards, a gradient in the end.
 */
static struct hb_actions add_waits(struct wiring *w, const struct hb_actions *in)
{
    struct hb_actions out = room_for(w->arena, 2 * in->count); /* each once, and its wait */
    struct sent s = {.microbatches = w->p->microbatches};
    s.at = hb_arena_alloc(w->arena, (size_t)(w->stages * s.microbatches), sizeof *s.at);
    for (uint32_t i = 0; i < in->count; i++) {
        const struct hb_action *a = &in->list[i];
        push(w->arena, &out, *a);
        note_sent(w->arena, &s, a);
        if (!a->joined && i && in->list[i - 1].joined && is_backward(a - 1))
            let_go(w->arena, &out, &s, a - 1);
        if (!a->joined && is_backward(a))
            let_go(w->arena, &out, &s, a);
    }
    for (uint32_t i = 0; i < s.list.count; i++) {
        struct hb_action *of = &s.list.list[i];
        if (of->kind == HB_ACT_WAIT_F)
            continue;
        of->kind = of->kind == HB_ACT_SEND_F ? HB_ACT_WAIT_F : HB_ACT_WAIT_B;
        push(w->arena, &out, *of);
    }
    return out;
}

static struct hb_actions copy_list(struct hb_arena *arena, struct hb_actions of)
{
    struct hb_action *list = hb_arena_raw(arena, of.count, sizeof *list);
    for (uint32_t i = 0; i < of.count; i++)
        list[i] = of.list[i];
    return (struct hb_actions){list, of.count, of.count};
}

const struct hb_actions *hb_pipeline_actions(struct hb_arena *arena, const struct hb_pipeline *p)
{
    size_t ranks = (size_t)p->ranks, stages = ranks * (size_t)p->chunks;
    struct hb_actions *made = hb_arena_alloc(arena, ranks, sizeof *made);
    struct hb_arena *scratch = hb_arena_new();
    struct wiring w = {.arena = scratch,
                       .p = p,
                       .stages = (int64_t)stages,
                       .from = hb_arena_alloc(scratch, ranks, sizeof *w.from),
                       .at = hb_arena_alloc(scratch, ranks, sizeof *w.at),
                       .to = hb_arena_alloc(scratch, ranks, sizeof *w.to)};
    w.has = hb_arena_alloc(scratch, stages * (size_t)p->microbatches, 1);
    for (int64_t r = 0; r < p->ranks; r++) {
        struct hb_actions passes = hb_pipeline_passes(scratch, p, r);
        w.from[r] = add_weights(scratch, p, &passes);
        w.to[r] = room_for(scratch, 3 * w.from[r].count); /* with what it sends and receives */
    }
    wire(&w);
    for (int64_t r = 0; r < p->ranks; r++)
        made[r] = copy_list(arena, add_waits(&w, &w.to[r]));
    hb_arena_free(scratch);
    return made;
}

bool hb_action_is_of_one(const struct hb_action *a)
{
    return a->kind != HB_ACT_UNSHARD && a->kind != HB_ACT_RESHARD && a->kind != HB_ACT_REDUCE &&
           a->kind != HB_ACT_WAIT_REDUCE;
}

void hb_action_name(struct hb_str *out, const struct hb_action *a)
{
    static const char *const names[] = {
        [HB_ACT_FORWARD] = "F",       [HB_ACT_BACKWARD] = "B",
        [HB_ACT_INPUT] = "I",         [HB_ACT_WEIGHT] = "W",
        [HB_ACT_UNSHARD] = "UNSHARD", [HB_ACT_RESHARD] = "RESHARD",
        [HB_ACT_REDUCE] = "REDUCE",   [HB_ACT_WAIT_REDUCE] = "WAIT_REDUCE",
        [HB_ACT_RECV_F] = "RECV_F",   [HB_ACT_RECV_B] = "RECV_B",
        [HB_ACT_SEND_F] = "SEND_F",   [HB_ACT_SEND_B] = "SEND_B",
        [HB_ACT_WAIT_F] = "WAIT_F",   [HB_ACT_WAIT_B] = "WAIT_B"};
    hb_str_addf(out, "%lld%s", (long long)a->stage, names[a->kind]);
    if (hb_action_is_of_one(a))
        hb_str_addf(out, "%lld", (long long)a->microbatch);
    if (a->joined)
        hb_str_add(out, "+");
}
