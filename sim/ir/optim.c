/* The update: each leaf in one fused pass, in place where the state is donated (measured: sgd,
 * momentum, adamw in any dtype and lion leave the temporaries as they are), with what stands out:
 * clipping needs every gradient at once, muon works on whole matrices, states on the host come to
 * the device for the update and go back. */
#include "sim/ir/optim.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/ir/copies.h"
#include "sim/ir/head.h"
#include "sim/ir/muon.h"
#include "sim/ir/order.h"
#include "sim/ir/sequence.h"
#include "sim/ir/trip.h"
#include "sim/ir/weight.h"

/* In a row: each is there before anything else begins. */
static void fetch_state(struct hb_lower *lo, struct hb_leaf *l, int k, bool in_a_row)
{
    if (!hb_leaf_on_host(lo, l, k))
        return;
    uint32_t host = *hb_leaf_state(l, k);
    struct hb_buf copy = lo->p->bufs[host];
    copy.name = hb_name(lo, copy.name, ", copy on the device");
    copy.space = HB_SPACE_HBM;
    copy.argument = false;
    uint32_t device = hb_program_add_buf(lo->p, copy);
    struct hb_emit e = {.name = "state from the host",
                        .kind = HB_OP_HOST_COPY,
                        .stream = HB_STREAM_H2D,
                        .moved_bytes = (double)copy.bytes};
    hb_emit_read(&e, host);
    hb_emit_write(&e, device);
    uint32_t op = hb_emit(lo, &e);
    if (in_a_row) {
        uint32_t done = hb_emit_simple(lo, HB_OP_DONE, "state is there", HB_NONE, HB_NONE);
        lo->p->ops[done].start = op;
    }
    l->host[k] = host;
    *hb_leaf_state(l, k) = device;
}

static void fetch_leaf(struct hb_lower *lo, struct hb_leaf *l, bool in_a_row)
{
    for (int k = 0; k < HB_LEAF_STATES; k++)
        fetch_state(lo, l, k, in_a_row);
}

static void fetch_leaves(struct hb_lower *lo, bool in_a_row)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        fetch_leaf(lo, &lo->leaves[i], in_a_row);
}

/* Ops of one weight's leaves, of another's next: each run of layers takes its turn once between. */
static void part_weights(struct hb_lower *lo)
{
    hb_emit_mark(lo, "next weight", HB_NONE, HB_NONE);
}

/* XLA:GPU has the copies at the beginning, one behind the other, and the first layer waits for
 * them: on an H100 all moments stand beside the whole step (gpt2-xl's width, four layers: 2.46 GiB
 * alive at the first op, 0.91 of them arguments). */
void hb_optim_fetch_first(struct hb_lower *lo)
{
    if (!lo->habits->rings)
        fetch_leaves(lo, true);
}

/* The new state: in place of the donated one, or an output of its own. */
static uint32_t new_state(struct hb_lower *lo, uint32_t old)
{
    if (old == HB_NONE)
        return HB_NONE;
    struct hb_buf b = lo->p->bufs[old];
    bool fetched = !b.argument && b.space == HB_SPACE_HBM && b.alias_of == HB_NONE;
    if (fetched && hb_copies_queued(lo)) {
        b.name = hb_name(lo, b.name, ", new");
        return hb_program_add_buf(lo->p, b);
    }
    if (lo->spec->step.donate || !b.argument) {
        uint32_t n = hb_temp_in_place(lo, b.name, b.category, old);
        lo->p->bufs[n].output = b.argument;
        return n;
    }
    b.name = hb_name(lo, b.name, ", new");
    b.argument = false;
    b.output = true;
    return hb_program_add_buf(lo->p, b);
}

/* What was fetched from the host goes back: into the donated argument, or to a place of its own. */
static void send_back(struct hb_lower *lo, uint32_t state, uint32_t host)
{
    if (state == HB_NONE || host == HB_NONE)
        return;
    uint32_t back = new_state(lo, host);
    struct hb_emit e = {.name = "state to the host",
                        .kind = HB_OP_HOST_COPY,
                        .stream = HB_STREAM_D2H,
                        .moved_bytes = (double)lo->p->bufs[host].bytes};
    hb_emit_read(&e, state);
    hb_emit_write(&e, back);
    hb_emit(lo, &e);
}

static void read_gradients(struct hb_emit *e, const struct hb_leaf *l)
{
    hb_emit_read(e, l->grad);
    hb_emit_read(e, l->grad_half);
    hb_emit_read(e, l->accum);
}

static void update_leaf(struct hb_lower *lo, struct hb_leaf *l)
{
    fetch_leaf(lo, l, false);
    hb_trip_update(lo, (uint32_t)(l - lo->leaves));
    hb_weight_copy_param(lo, l);
    hb_muon_iterate(lo, l);
    struct hb_emit e = {.name = hb_name(lo, "update ", l->name), .kind = HB_OP_ELEMENTWISE};
    read_gradients(&e, l);
    hb_emit_read(&e, l->momentum_copy);
    hb_emit_read(&e, l->param_copy);
    hb_emit_read(&e, l->iterate[0]);
    hb_emit_read(&e, l->iterate[1]);
    hb_emit_read(&e, l->nan_zero);
    for (int i = 0; i < HB_LEAF_STATES; i++)
        if (i > 0 || l->master == HB_NONE) /* a master copy stands for the parameter */
            hb_emit_read(&e, *hb_leaf_state(l, i));
    for (int i = 0; i < HB_LEAF_STATES; i++) {
        if (lo->kinds[l->kind].apart & 1u << i)
            continue;
        l->renewed[i] = new_state(lo, *hb_leaf_state(l, i));
        hb_emit_write(&e, l->renewed[i]);
    }
    if (hb_muon_takes(lo, l))
        hb_muon_orthogonalise(lo, l, &e);
    hb_emit(lo, &e);
    for (int i = 0; i < HB_LEAF_STATES && !hb_copies_queued(lo); i++)
        send_back(lo, l->renewed[i], l->host[i]);
}

/* Its own state of the gradient alone. */
static void renew_apart(struct hb_lower *lo, struct hb_leaf *l, int state)
{
    struct hb_emit e = {.name = hb_name(lo, "update a state of ", l->name),
                        .kind = HB_OP_ELEMENTWISE};
    read_gradients(&e, l);
    hb_emit_read(&e, *hb_leaf_state(l, state));
    l->renewed[state] = new_state(lo, *hb_leaf_state(l, state));
    hb_emit_write(&e, l->renewed[state]);
    hb_emit(lo, &e);
}

/* Of the weight's leaves. */
static void follow_event(struct hb_lower *lo, const struct hb_copies_event *e)
{
    part_weights(lo);
    for (uint32_t i = e->leaf; i < lo->leaf_count; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (hb_leaf_first(lo, i) != e->leaf)
            continue;
        if (e->kind == HB_COPIES_FETCH)
            fetch_state(lo, l, e->state, false);
        else if (e->kind == HB_COPIES_UPDATE && e->state)
            renew_apart(lo, l, e->state);
        else if (e->kind == HB_COPIES_UPDATE)
            update_leaf(lo, l);
        else if (e->kind == HB_COPIES_SEND)
            send_back(lo, l->renewed[e->state], l->host[e->state]);
    }
}

/* Up to a place in the step, or the update of the head where that comes last. */
static void follow_copies(struct hb_lower *lo, enum hb_copies_kind place)
{
    struct hb_copies *c = lo->copies;
    for (; c->next < c->count; c->next++) {
        const struct hb_copies_event *e = &c->events[c->next];
        if (e->leaf == HB_NONE && e->kind == place)
            break;
        if (e->leaf != HB_NONE)
            follow_event(lo, e);
    }
    part_weights(lo);
}

void hb_optim_order(struct hb_lower *lo)
{
    if (hb_copies_queued(lo) && !lo->copies)
        hb_copies_find(lo);
}

void hb_optim_fetch_before_loss(struct hb_lower *lo)
{
    if (hb_copies_queued(lo) && !hb_accumulates(lo))
        follow_copies(lo, HB_COPIES_LOSS);
}

void hb_optim_fetch(struct hb_lower *lo)
{
    if (!hb_copies_queued(lo)) {
        fetch_leaves(lo, false);
        return;
    }
    hb_optim_order(lo);
    follow_copies(lo, HB_COPIES_LAYERS);
}

/* XLA:GPU: the norm is that of gradients without nan, which it makes where it adds them up, all of
 * one shape in a fusion, for the update to read (opt/clip=True,nan_to_num=True: two
 * f32[16,1024,2816] beside the loop's two; opt/nan_to_num alone has none). */
static void select_gradients(struct hb_lower *lo)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        uint32_t zero = lo->leaves[i].nan_zero;
        struct hb_emit e = {.name = "norm of gradients without nan", .kind = HB_OP_REDUCE};
        hb_emit_read(&e, zero);
        for (uint32_t k = i; k < lo->leaf_count && zero != HB_NONE; k++) {
            if (e.read_count == HB_EMIT_REFS)
                break;
            struct hb_leaf *l = &lo->leaves[k];
            if (l->nan_zero != zero || l->grad == HB_NONE || l->accum != HB_NONE)
                continue;
            hb_emit_read(&e, l->grad);
            l->grad = hb_temp(lo, hb_name(lo, l->name, ", gradient without nan"), HB_CAT_GRADIENTS,
                              hb_leaf_shape(l, hb_weight_grad_dtype(lo)));
            hb_emit_write(&e, l->grad);
            l->nan_zero = HB_NONE;
        }
        if (e.write_count)
            hb_emit(lo, &e);
    }
}

static uint32_t whole_gradient(const struct hb_leaf *l)
{
    return l->accum != HB_NONE ? l->accum : l->grad;
}

/* Summed from the last weight to the first (8B over fsdp 8 and data 2, by MI300X's compiler: the
 * head's reduction stands before the layers'). */
static void clip_gradients(struct hb_lower *lo)
{
    select_gradients(lo);
    struct hb_emit e = {.name = "global norm of the gradients", .kind = HB_OP_REDUCE};
    hb_emit_read(&e, whole_gradient(&lo->leaves[lo->head]));
    for (uint32_t i = lo->leaf_count; i-- > 0;) {
        if (e.read_count == HB_EMIT_REFS) {
            hb_emit(lo, &e);
            e.read_count = 0;
        }
        if (i != lo->head)
            hb_emit_read(&e, whole_gradient(&lo->leaves[i]));
    }
    hb_emit(lo, &e);
}

/* As the leaves lie; vectors last where they stay among what muon gathers (8B,f64,muon: two
 * f32[32,4096] at 649 MiB from the layers' backward pass to the end, at 1541 of 1558). */
static uint32_t *update_order(struct hb_lower *lo)
{
    uint32_t *order = hb_arena_alloc(lo->arena, lo->leaf_count, sizeof *order), n = 0;
    for (int first = 1; first >= 0; first--)
        for (uint32_t i = 0; i < lo->leaf_count; i++)
            if (hb_muon_goes_first(lo, &lo->leaves[i]) == first)
                order[n++] = i;
    return order;
}

static bool updates_early(const struct hb_lower *lo)
{
    return !hb_updates_together(lo) && !hb_copies_queued(lo) && lo->head != lo->embed;
}

static void update_early(struct hb_lower *lo, struct hb_leaf *l)
{
    enum hb_phase phase = lo->phase;
    lo->phase = HB_PHASE_OPTIMIZER;
    update_leaf(lo, l);
    lo->phase = phase;
}

static bool logits_wait(const struct hb_lower *lo)
{
    return updates_early(lo) && !hb_weight_sums_own(lo, lo->local.vocab) &&
           (hb_sequence_gathers_taken(lo) & HB_GATHERS_LOGITS_WAIT);
}

/* A list has them where they free the gradients (four layers of 3,584, fsdp 64 of v5p: updates from
 * 225 to 293, the head's product at 314), post-order by names, behind the last norm's: that waits
 * for the head's product, which reads the norm's weights in their place (from 290 on behind 276),
 * but where these are in the compute dtype (8B over 64 of v5p and v6e: updates, then the head). */
void hb_optim_update_layers(struct hb_lower *lo)
{
    bool list = hb_sequence_gathers_taken(lo) == HB_GATHERS_LOGITS_WAIT;
    if (!logits_wait(lo) || (!list && lo->spec->precision.params != lo->compute))
        return;
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        if (!lo->leaves[i].end)
            update_early(lo, &lo->leaves[i]);
}

/* Each of the three orders has it where it frees a gradient that is whole (4,096 wide, data 2 and
 * fsdp 64 of v6e: multiply_subtract_fusion.1 before fusion.155, the head's), or before a head's
 * that waits (the same). */
void hb_optim_update_table(struct hb_lower *lo)
{
    if (logits_wait(lo) || (updates_early(lo) && hb_order_rows_stay(lo)))
        update_early(lo, &lo->leaves[lo->embed]);
}

void hb_optim_update(struct hb_lower *lo)
{
    lo->phase = HB_PHASE_OPTIMIZER;
    hb_weight_drop_nan_zeros(lo);
    if (lo->spec->optimizer.clip)
        clip_gradients(lo);
    if (hb_copies_queued(lo)) {
        follow_copies(lo, HB_COPIES_LOSS);
        return;
    }
    hb_muon_begin(lo);
    hb_muon_gather(lo);
    uint32_t *order = update_order(lo);
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        if (lo->leaves[order[i]].renewed[0] == HB_NONE) /* else it is, ahead of the others */
            update_leaf(lo, &lo->leaves[order[i]]);
}
