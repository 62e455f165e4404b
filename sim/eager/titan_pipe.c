/* See titan_parts.h: a rank of a pipeline, pass by pass (torch/distributed/pipelining, torch 2.15:
 * schedules.py says what is held by which name, stage.py what a microbatch leaves).
 *
 *   an input     held by its microbatch until its pass backwards is over; of the last stage until
 *                the step is, as each loss keeps its graph, and that the leaf
 *   an output    held by its microbatch until it is sent; the logits until their pass backwards
 *   a gradient   of an input is held until it is sent: with several stages a rank, to the end
 *
 * Each stage is an FSDP root of its own, with streams of its own. Its weights stay whole after a
 * pass backwards, their gradients are added up whole, and all is reduced after its last pass.
 * Without FSDP weights are there whole, and gradients stay. */
#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/eager/actions.h"
#include "sim/eager/alike.h"
#include "sim/eager/titan_parts.h"

/* A microbatch of a stage that has run forwards. */
struct alive {
    struct hb_taped *nodes;
    uint32_t node_count;
    uint32_t in; /* values */
    uint32_t out;
    uint32_t received; /* storages: an input that nobody took yet; */
    uint32_t grad;     /* a gradient of the output, likewise; */
    uint32_t input;    /* held; */
    uint32_t output;
    uint32_t sent;  /* gradient of the input */
    uint32_t later; /* gradient of the output, held for the weights; */
    uint32_t root;  /* the output, as it is not sent yet where the input's pass begins */
    struct hb_split split;
    struct hb_titan_chunk *chunks;
};

/* What names of the code hold beyond that, where it is written out. */
struct names {
    uint32_t received; /* fwd_recvs */
    uint32_t grad;     /* bwd_recvs */
    uint32_t sent;     /* bwd_sends */
    uint32_t dw;
};

struct pipe {
    struct hb_titan *e;
    struct hb_pipeline p;
    int64_t stages;
    struct alive *alive; /* by chunk, then microbatch */
    uint32_t *leaves;    /* of the last stage, by microbatch */
    struct names names;
    int64_t left_bytes; /* of storages left out, in the end */
};

static struct alive *find(struct pipe *w, int64_t chunk, int64_t microbatch)
{
    return &w->alive[chunk * w->p.microbatches + microbatch];
}

static int64_t chunk_of(const struct pipe *w, int64_t rank, int64_t stage)
{
    int64_t k = 0;
    while (hb_pipeline_stage(&w->p, rank, k) != stage)
        k++;
    return k;
}

/* The chunk with that stage on this rank; -1: another rank has it. */
static int64_t own_chunk(const struct pipe *w, int64_t stage)
{
    if (stage < 0 || stage >= w->stages || hb_pipeline_rank(&w->p, stage) != w->e->rank)
        return -1;
    return chunk_of(w, w->e->rank, stage);
}

static void replace(struct hb_tape *t, uint32_t *name, uint32_t by)
{
    hb_tape_drop(t, *name);
    *name = by;
}

static uint32_t take(uint32_t *place)
{
    uint32_t storage = *place;
    *place = HB_NONE;
    return storage;
}

static uint32_t receive(struct hb_titan *e, const char *name)
{
    int64_t bytes = hb_tape_size(e->t, e->rows, e->spec->model.d_model, e->stream_bytes);
    e->t->where = "";
    return hb_tape_make(e->t, (struct hb_made){"receive", name, bytes, HB_CAT_COMMUNICATION, 0});
}

/* --- units of a stage --- */

static void each_unit(struct hb_titan *e, const struct hb_titan_stage *s, bool backwards,
                      void (*visit)(struct hb_fsdp *, struct hb_unit *))
{
    int64_t count = s->end - s->first;
    if (s->embeds && !backwards)
        visit(&e->fsdp, &e->first);
    if (s->heads && backwards)
        visit(&e->fsdp, &e->last);
    for (int64_t i = 0; i < count; i++)
        visit(&e->fsdp, &e->layers[backwards ? s->end - 1 - i : s->first + i].unit);
    if (s->heads && !backwards)
        visit(&e->fsdp, &e->last);
    if (s->embeds && backwards)
        visit(&e->fsdp, &e->first);
}

static void enter(struct pipe *w, int64_t chunk)
{
    struct hb_titan *e = w->e;
    e->fsdp.first_pool = (uint8_t)(chunk * HB_POOL_ALL_REDUCE);
    if (e->stages[chunk].waits)
        each_unit(e, &e->stages[chunk], false, hb_fsdp_wait_unshard);
    e->stages[chunk].waits = false;
}

static void unshard(struct pipe *w, int64_t chunk)
{
    w->e->fsdp.first_pool = (uint8_t)(chunk * HB_POOL_ALL_REDUCE);
    each_unit(w->e, &w->e->stages[chunk], false, hb_fsdp_unshard);
    w->e->stages[chunk].waits = true;
}

/* The table's gradients were added up over the whole vocabulary, each rank's its share of a sum. */
static void reduce(struct pipe *w, int64_t chunk)
{
    struct hb_titan *e = w->e;
    struct hb_titan_stage rest = e->stages[chunk];
    struct hb_weight *table = &e->end_weights[0];
    rest.embeds = false;
    rest.heads = rest.heads && !e->by_chunk;
    e->t->where = "";
    e->fsdp.first_pool = (uint8_t)(chunk * HB_POOL_ALL_REDUCE);
    if (e->stages[chunk].heads && e->by_chunk) { /* its norm is left */
        hb_fsdp_reshard(&e->fsdp, &e->last);
        hb_fsdp_reduce(&e->fsdp, &e->norm_alone, &e->last);
    }
    each_unit(e, &rest, true, hb_fsdp_reduce_whole);
    if (e->stages[chunk].embeds) {
        if (e->ways > 1)
            table->grad = hb_titan_own_table(e, table->grad);
        hb_fsdp_reduce_whole(&e->fsdp, &e->first);
    }
}

/* --- passes --- */

static void set_aside(struct hb_tape *t, struct alive *a)
{
    a->node_count = t->node_count;
    a->nodes = hb_arena_raw(t->arena, (size_t)t->node_count + 1, sizeof *a->nodes);
    for (uint32_t i = 0; i < t->node_count; i++)
        a->nodes[i] = t->nodes[i];
    t->node_count = 0;
}

static void put_back(struct hb_tape *t, const struct alive *a)
{
    for (uint32_t i = 0; i < a->node_count; i++) {
        t->nodes = hb_grow(t->arena, t->nodes, t->node_count, &t->node_cap, sizeof *t->nodes);
        t->nodes[t->node_count++] = a->nodes[i];
    }
}

static void run_head(struct pipe *w, struct alive *a, uint32_t x)
{
    struct hb_titan *e = w->e;
    if (!e->by_chunk)
        e->chunks = a->chunks;
    hb_titan_head(e, x);
    a->out = e->by_chunk ? e->hidden : e->chunks[0].logits;
    a->output = e->t->values[a->out].storage;
    if (!e->by_chunk)
        hb_tape_hold(e->t, a->output);
    hb_titan_loss(e);
    set_aside(e->t, a);
}

static void forward(struct pipe *w, int64_t chunk, int64_t microbatch)
{
    struct hb_titan *e = w->e;
    struct hb_tape *t = e->t;
    const struct hb_titan_stage *s = &e->stages[chunk];
    struct alive *a = find(w, chunk, microbatch);
    enter(w, chunk);
    t->phase = HB_PHASE_FORWARD;
    t->grad = true;
    if (s->embeds) {
        a->in = hb_titan_embed(e);
    } else {
        a->input = take(&a->received);
        hb_tape_hold(t, a->input);
        a->in = hb_tape_value(t, a->input);
    }
    uint32_t x = a->in;
    for (int64_t i = s->first; i < s->end; i++)
        x = hb_titan_run_layer(&e->layers[i], x);
    if (s->heads) {
        run_head(w, a, x);
        return;
    }
    t->where = "";
    hb_fsdp_forward_end(&e->fsdp);
    a->out = x;
    a->output = t->values[x].storage; /* the code's own hold becomes the microbatch's */
    int64_t next = own_chunk(w, s->stage + 1);
    if (next >= 0) {
        hb_tape_hold(t, a->output);
        find(w, next, microbatch)->received = a->output;
    }
    set_aside(t, a);
}

/* The gradient of the input goes to the stage before, by hand or by a send. */
static void hand_back(struct pipe *w, const struct hb_titan_stage *s, struct alive *a,
                      int64_t microbatch)
{
    struct hb_tape *t = w->e->t;
    uint32_t grad = take(&t->values[a->in].grad);
    int64_t before = own_chunk(w, s->stage - 1);
    if (before >= 0)
        find(w, before, microbatch)->grad = grad;
    else
        a->sent = grad;
}

static void drop_left(struct hb_tape *t, struct hb_split *s, const void *with)
{
    for (uint32_t i = 0; i < s->left_count; i++)
        if (s->left[i].with == with)
            hb_tape_drop(t, take(&s->left[i].storage));
}

static void drop_under(struct hb_tape *t, struct hb_split *s, const void *under)
{
    for (uint32_t i = 0; i < s->left_count; i++)
        if (!s->left[i].with && s->left[i].under == under)
            hb_tape_drop(t, take(&s->left[i].storage));
}

/* In its graph. Where the loss runs chunk by chunk it is not, and the norm before it gets no
 * gradient of a pass in two: its unit was given back when torch looks for the stage's weights. */
static bool has_head(const struct hb_titan *e, const struct hb_titan_stage *s)
{
    return s->heads && !e->by_chunk;
}

/* Of the input alone: nodes keep what they saved, but those beyond the last weight's. The first
 * stage has none, and runs its whole pass when its weights' turn comes. */
static void back_input(struct pipe *w, int64_t chunk, int64_t microbatch)
{
    struct hb_titan *e = w->e;
    struct hb_tape *t = e->t;
    const struct hb_titan_stage *s = &e->stages[chunk];
    struct alive *a = find(w, chunk, microbatch);
    uint32_t saved = HB_NONE;
    if (s->embeds) {
        a->root = take(&a->output);
        return;
    }
    enter(w, chunk);
    t->phase = HB_PHASE_BACKWARD;
    put_back(t, a);
    a->later = take(&a->grad);
    if (has_head(e, s)) {
        e->chunks = a->chunks;
        saved = e->chunks[0].kept;
        hb_tape_hold(t, saved);
        hb_titan_back_loss(e);
    } else if (s->heads) {
        saved = t->values[a->out].grad;
        hb_tape_hold(t, saved);
    } else {
        hb_tape_hold(t, a->later);
        t->values[a->out].grad = a->later;
    }
    a->split = (struct hb_split){.keeps = true};
    t->split = &a->split;
    hb_tape_back(t, 0);
    t->split = NULL;
    t->where = "";
    hand_back(w, s, a, microbatch);
    hb_tape_drop(t, saved);
    if (!has_head(e, s))
        drop_under(t, &a->split, &e->layers[s->end - 1]);
    if (!s->heads)
        a->root = take(&a->output);
    replace(t, &a->output, HB_NONE);
}

/* The last one made is held until the next one is (`dw` of stage_backward_weight). last: no later
 * layer, and no head, holds the graph. */
static void pay_weight(struct pipe *w, struct hb_split *split, struct hb_weight *weight, bool last)
{
    struct hb_titan *e = w->e;
    struct hb_tape *t = e->t;
    uint32_t i = 0, dw;
    while (i < split->owed_count && split->owed[i].weight != weight)
        i++;
    if (i == split->owed_count)
        return;
    struct hb_owed *o = &split->owed[i];
    if (o->run) {
        dw = hb_titan_run_for(t, o, last);
    } else {
        dw = hb_ops_owed_gradient(t, o);
        drop_left(t, split, weight);
    }
    replace(t, &w->names.dw, hb_ops_weight_grad_alone(t, o, dw));
    hb_tape_drop(t, take(&o->grad));
    if (last && o->run)
        hb_titan_forget_under(t, o);
    else if (last)
        drop_under(t, split, weight);
}

/* Weight by weight, in the order of the model's parameters, experts before their router. */
static void pay_layer(struct pipe *w, struct hb_titan_layer *l, struct hb_split *split, bool last)
{
    struct hb_titan_payment paid;
    w->e->t->where = l->unit.where;
    if (hb_titan_pay_again(l, split, &w->names.dw, last, &paid))
        return;
    for (int k = 0; k < l->unit.count; k++) {
        bool router = &l->weights[k] == l->by_role[HB_TITAN_W_ROUTER];
        for (int x = 0; router && x < l->experts.count; x++)
            pay_weight(w, split, &l->expert_weights[x], last);
        pay_weight(w, split, &l->weights[k], last);
    }
    hb_titan_note_paid(l, &paid, w->names.dw);
}

/* The graph above a layer holds it, so what is left goes in the end. */
static void pay_weights(struct pipe *w, const struct hb_titan_stage *s, struct hb_split *split)
{
    struct hb_titan *e = w->e;
    for (int64_t i = s->first; i < s->end; i++)
        pay_layer(w, &e->layers[i], split, i == s->end - 1 && !has_head(e, s));
    e->t->where = "";
    for (int k = 0; has_head(e, s) && k < e->last.count; k++)
        pay_weight(w, split, &e->last.weights[k], false);
    replace(e->t, &w->names.dw, HB_NONE);
    for (uint32_t i = 0; i < split->owed_count; i++)
        hb_titan_forget_runs(e->t, &split->owed[i]);
    for (uint32_t i = 0; i < split->left_count; i++)
        hb_tape_drop(e->t, take(&split->left[i].storage));
}

static void backward(struct pipe *w, int64_t chunk, int64_t microbatch)
{
    struct hb_titan *e = w->e;
    struct hb_tape *t = e->t;
    const struct hb_titan_stage *s = &e->stages[chunk];
    struct alive *a = find(w, chunk, microbatch);
    enter(w, chunk);
    t->phase = HB_PHASE_BACKWARD;
    put_back(t, a);
    uint32_t grad = take(&a->grad);
    if (s->heads && !e->by_chunk) {
        e->chunks = a->chunks;
        hb_titan_back_loss(e);
    } else if (!s->heads) {
        hb_tape_hold(t, grad);
        t->values[a->out].grad = grad;
    }
    hb_tape_back(t, 0);
    t->where = "";
    if (!s->embeds)
        hand_back(w, s, a, microbatch);
    if (s->heads)
        w->leaves[microbatch] = take(&a->input);
    hb_tape_drop(t, grad);
    replace(t, &a->input, HB_NONE);
    replace(t, &a->output, HB_NONE);
    replace(t, &a->root, HB_NONE);
}

static void back_weights(struct pipe *w, int64_t chunk, int64_t microbatch)
{
    const struct hb_titan_stage *s = &w->e->stages[chunk];
    struct alive *a = find(w, chunk, microbatch);
    if (s->embeds) {
        backward(w, chunk, microbatch);
        return;
    }
    enter(w, chunk);
    w->e->t->phase = HB_PHASE_BACKWARD;
    pay_weights(w, s, &a->split);
    replace(w->e->t, &a->input, HB_NONE);
    replace(w->e->t, &a->later, HB_NONE);
    replace(w->e->t, &a->root, HB_NONE);
}

/* --- microbatches that are alike --- */

/* Null: storages are asked for one by one. A pass that gathers weights finds what the pass before
 * it gathered, so it is not alike wherever it stands; a head that is reduced after each microbatch
 * leaves more at the first ones. */
static struct hb_sums *find_sums(const struct pipe *w)
{
    const struct hb_titan *e = w->e;
    bool gives = e->spec->sharding.reshard_after_forward && !e->fsdp.plain;
    bool gathers = gives || (e->by_chunk && e->heads);
    return e->t->server && !gathers ? e->t->server->sums : NULL;
}

/* A first step has its first microbatch alone, for the gradients that its update takes: where
 * nothing but sums is asked its others need nothing that they don't need in the second step, when
 * the optimizer's states are there, too. 1F1B's ranks are exact, so they leave out no blocks that
 * the second step may find. */
static bool leaves_later(const struct pipe *w)
{
    const struct hb_titan *e = w->e;
    const struct hb_spec *s = e->spec;
    const struct hb_sums *sums = find_sums(w);
    bool once = s->batch.accumulate == 1 && !s->runtime.cuda_graphs && !s->optimizer.in_backward;
    return e->first_step && once && sums && w->p.microbatches > 1 &&
           (sums->alone || w->p.schedule != HB_SCHED_1F1B);
}

static int64_t count_run(const struct pipe *w)
{
    return leaves_later(w) ? 1 : w->p.microbatches;
}

/* What such a first step leaves out was asked for as well. */
static void count_asked(struct pipe *w, struct hb_passed before)
{
    struct hb_titan *e = w->e;
    struct hb_sums *sums = find_sums(w);
    if (!sums)
        return;
    struct hb_passed now = {sums->asked_bytes - before.bytes, sums->asked_count - before.count};
    if (leaves_later(w)) {
        sums->left_out = true;
        e->passed = now;
    } else if (e->passed.count) {
        sums->asked_bytes = hb_add_sat(sums->asked_bytes, now.bytes - e->passed.bytes);
        sums->asked_count += now.count - e->passed.count;
    }
}

static void leave_out(struct pipe *w, struct hb_sums *sums, const struct hb_stretch *done)
{
    hb_stretch_add(sums, done);
    w->left_bytes += done->change_bytes;
}

/* --- schedules that torch writes out: one stage a rank --- */

static void receive_input(struct pipe *w, int64_t microbatch)
{
    struct hb_tape *t = w->e->t;
    struct alive *a = find(w, 0, microbatch);
    if (w->e->stages[0].embeds)
        return;
    a->received = receive(w->e, "input of the stage");
    hb_tape_hold(t, a->received);
    replace(t, &w->names.received, a->received);
}

static void receive_grad(struct pipe *w, int64_t microbatch)
{
    struct hb_tape *t = w->e->t;
    struct alive *a = find(w, 0, microbatch);
    if (w->e->stages[0].heads)
        return;
    a->grad = receive(w->e, "gradient from the next stage");
    hb_tape_hold(t, a->grad);
    replace(t, &w->names.grad, a->grad);
}

static void let_output_go(struct pipe *w, int64_t microbatch)
{
    struct alive *a = microbatch < 0 ? NULL : find(w, 0, microbatch);
    if (a && !w->e->stages[0].heads)
        replace(w->e->t, &a->output, HB_NONE);
}

static void send_grad(struct pipe *w, int64_t microbatch)
{
    replace(w->e->t, &w->names.sent, take(&find(w, 0, microbatch)->sent));
}

/* The steady state repeats but for the last stage's inputs, which stay: of those left out they are
 * there before the last one's. */
static void leave_inputs(struct pipe *w, int64_t first)
{
    for (int64_t i = first; i < w->p.microbatches && w->e->stages[0].heads; i++)
        w->leaves[i] = receive(w->e, "input of an earlier microbatch");
}

/* Schedule1F1B: an output is let go after the next microbatch's pass, or once the next gradient's
 * place is there. */
static void run_1f1b(struct pipe *w)
{
    enum { STEADY = 3 };
    struct hb_tape *t = w->e->t;
    int64_t all = count_run(w), warm = w->p.ranks - w->e->rank, done = 0;
    warm = warm < all ? warm : all;
    all = all < warm + STEADY ? all : warm + STEADY;
    for (int64_t i = 0; i < warm; i++) {
        receive_input(w, i);
        forward(w, 0, i);
        let_output_go(w, i - 1);
    }
    for (int64_t next = warm;; next++) {
        receive_grad(w, done);
        let_output_go(w, next - 1);
        replace(t, &w->names.grad, HB_NONE);
        backward(w, 0, done);
        send_grad(w, done++);
        if (next == all)
            break;
        if (next == all - 1)
            leave_inputs(w, all);
        receive_input(w, next);
        forward(w, 0, next);
    }
    for (; done < all; done++) {
        receive_grad(w, done);
        backward(w, 0, done);
        send_grad(w, done);
    }
}

static void forward_gpipe(struct pipe *w, int64_t microbatch)
{
    receive_input(w, microbatch);
    forward(w, 0, microbatch);
    replace(w->e->t, &w->names.received, HB_NONE);
}

static void backward_gpipe(struct pipe *w, int64_t microbatch)
{
    struct hb_tape *t = w->e->t;
    receive_grad(w, microbatch);
    replace(t, &w->names.sent, HB_NONE);
    backward(w, 0, microbatch);
    send_grad(w, microbatch);
    replace(t, &w->names.grad, HB_NONE);
}

/* The first makes gradients, others add to them: from the third on as the second does. */
static void each_microbatch(struct pipe *w, void (*run)(struct pipe *, int64_t))
{
    struct hb_tape *t = w->e->t;
    int64_t count = count_run(w);
    struct hb_sums *sums = count > 2 ? find_sums(w) : NULL;
    if (!sums) {
        for (int64_t i = 0; i < count; i++)
            run(w, i);
        return;
    }
    run(w, 0);
    hb_tape_end(t);
    struct hb_stretch second = hb_stretch_begin(sums);
    run(w, 1);
    hb_tape_end(t);
    hb_stretch_end(sums, &second);
    for (int64_t i = 2; i < w->p.microbatches; i++)
        leave_out(w, sums, &second);
}

/* ScheduleGPipe: outputs are let go after all passes forwards. */
static void run_gpipe(struct pipe *w)
{
    each_microbatch(w, forward_gpipe);
    each_microbatch(w, let_output_go);
    each_microbatch(w, backward_gpipe);
}

static void run_single(struct pipe *w)
{
    if (w->p.schedule == HB_SCHED_GPIPE)
        run_gpipe(w);
    else
        run_1f1b(w);
    reduce(w, 0);
    hb_fsdp_backward_end(&w->e->fsdp);
    replace(w->e->t, &w->names.received, HB_NONE);
    replace(w->e->t, &w->names.grad, HB_NONE);
    replace(w->e->t, &w->names.sent, HB_NONE);
}

/* --- schedules that torch's runtime runs --- */

static void act(struct pipe *w, const struct hb_action *a)
{
    int64_t chunk = chunk_of(w, w->e->rank, a->stage);
    struct hb_titan_stage *s = &w->e->stages[chunk];
    struct alive *of = find(w, chunk, a->microbatch);
    switch (a->kind) {
    case HB_ACT_FORWARD:
        forward(w, chunk, a->microbatch);
        break;
    case HB_ACT_BACKWARD:
        backward(w, chunk, a->microbatch);
        break;
    case HB_ACT_INPUT:
        back_input(w, chunk, a->microbatch);
        break;
    case HB_ACT_WEIGHT:
        back_weights(w, chunk, a->microbatch);
        break;
    case HB_ACT_UNSHARD:
        unshard(w, chunk);
        break;
    case HB_ACT_RESHARD:
        each_unit(w->e, s, false, hb_fsdp_reshard);
        break;
    case HB_ACT_REDUCE:
        reduce(w, chunk);
        break;
    case HB_ACT_WAIT_REDUCE:
        hb_fsdp_backward_end(&w->e->fsdp);
        break;
    case HB_ACT_RECV_F:
        of->received = receive(w->e, "input of the stage");
        break;
    case HB_ACT_RECV_B:
        of->grad = receive(w->e, "gradient from the next stage");
        break;
    case HB_ACT_WAIT_F:
        if (!s->heads)
            replace(w->e->t, &of->output, HB_NONE);
        break;
    case HB_ACT_WAIT_B:
        replace(w->e->t, &of->sent, HB_NONE);
        break;
    case HB_ACT_SEND_F:
    case HB_ACT_SEND_B:
        break;
    }
}

/* What the stage's gathers leave to wait for is the first pass's that comes, be it left out. */
static void enter_for(struct pipe *w, const struct hb_action *a)
{
    int64_t chunk = chunk_of(w, w->e->rank, a->stage);
    bool none = a->kind == HB_ACT_INPUT && w->e->stages[chunk].embeds;
    if (a->kind <= HB_ACT_WEIGHT && !none)
        enter(w, chunk);
}

/* A server that adds up is not asked again for what microbatches before did. Of those left out the
 * last stage's inputs are there to the end: they count until then. */
static void run_many(struct pipe *w)
{
    struct hb_tape *t = w->e->t;
    struct hb_sums *sums = find_sums(w);
    const struct hb_actions *todo = &w->e->actions[w->e->rank];
    bool adds = sums && !leaves_later(w);
    struct hb_alike *alike = adds ? hb_alike_find(t->arena, &w->p, w->e->rank, todo) : NULL;
    struct hb_stretch *done = hb_arena_alloc(t->arena, adds ? todo->count : 0, sizeof *done);
    int64_t run = count_run(w);
    for (uint32_t i = 0; i < todo->count; i++) {
        const struct hb_action *a = &todo->list[i];
        bool later = !adds && hb_action_is_of_one(a) && a->microbatch >= run;
        if (later || (adds && alike[i].kind != HB_ALIKE_RUN)) {
            enter_for(w, a);
            hb_tape_end(t);
        }
        if (later)
            continue;
        if (!adds || alike[i].kind == HB_ALIKE_RUN) {
            act(w, a);
        } else if (alike[i].kind == HB_ALIKE_MODEL) {
            done[i] = hb_stretch_begin(sums);
            act(w, a);
            hb_tape_end(t);
            hb_stretch_end(sums, &done[i]);
        } else {
            leave_out(w, sums, &done[alike[i].model]);
        }
    }
}

static void clear(struct pipe *w)
{
    for (int64_t i = 0; i < w->p.chunks * w->p.microbatches; i++) {
        struct hb_titan_chunk *chunks = w->alive[i].chunks;
        w->alive[i] = (struct alive){.received = HB_NONE,
                                     .grad = HB_NONE,
                                     .input = HB_NONE,
                                     .output = HB_NONE,
                                     .sent = HB_NONE,
                                     .later = HB_NONE,
                                     .root = HB_NONE,
                                     .chunks = chunks};
    }
}

static void init(struct hb_titan *e, struct pipe *w)
{
    struct hb_arena *arena = e->t->arena;
    *w = (struct pipe){.e = e, .p = e->pipeline, .names = {HB_NONE, HB_NONE, HB_NONE, HB_NONE}};
    w->stages = w->p.ranks * w->p.chunks;
    size_t count = (size_t)(w->p.chunks * w->p.microbatches);
    w->alive = hb_arena_alloc(arena, count, sizeof *w->alive);
    w->leaves = hb_arena_alloc(arena, (size_t)w->p.microbatches, sizeof *w->leaves);
    for (size_t i = 0; i < count; i++) {
        w->alive[i].chunks = hb_arena_alloc(arena, 1, sizeof *w->alive[i].chunks);
        w->alive[i].chunks[0] = e->chunks[0];
    }
    for (int64_t i = 0; i < w->p.microbatches; i++)
        w->leaves[i] = HB_NONE;
    clear(w);
}

void hb_titan_run_pipeline(struct hb_titan *e)
{
    struct hb_tape *t = e->t;
    struct hb_titan_chunk *chunks = e->chunks;
    struct pipe w;
    int64_t batch = hb_tape_size(t, e->tokens, e->pipeline.microbatches, 8);
    uint32_t tokens = hb_tape_make(t, (struct hb_made){"zeros", "tokens", batch, HB_CAT_INPUTS, 0});
    uint32_t labels = hb_tape_make(t, (struct hb_made){"zeros", "labels", batch, HB_CAT_INPUTS, 0});
    init(e, &w);
    e->fsdp.defers = true;
    struct hb_sums *sums = find_sums(&w);
    struct hb_passed before = {sums ? sums->asked_bytes : 0, sums ? sums->asked_count : 0};
    if (!hb_pipeline_is_many(&w.p)) {
        run_single(&w);
    } else {
        if (!e->actions)
            e->actions = hb_pipeline_actions(t->arena, &w.p);
        run_many(&w);
    }
    count_asked(&w, before);
    for (int64_t i = 0; i < w.p.microbatches; i++)
        replace(t, &w.leaves[i], HB_NONE);
    if (w.left_bytes && !e->heads)
        HB_BUG("rank %lld leaves out %lld bytes that nobody gives back", (long long)e->rank,
               (long long)w.left_bytes);
    if (w.left_bytes)
        t->server->sums->alive_bytes -= w.left_bytes;
    e->chunks = chunks;
    hb_tape_drop(t, tokens);
    hb_tape_drop(t, labels);
    t->value_count = 0;
}
