/* See titan_parts.h. DeepSpeed's ZeRO 1 and 2 (deepspeed/runtime/zero/stage_1_and_2.py): weights
 * are whole, in bf16; of an f32 copy, the states and the reduced gradients a rank has its part.
 * ZeRO 3 (stage3.py): of the weights, too, and its part of the gradients is there from the start,
 * as is the buffer in which they are reduced; modules are those of Hugging Face's llama. */
#include "base/arena.h"
#include "base/size.h"
#include "sim/eager/titan.h"
#include "sim/eager/titan_parts.h"

enum { MASTER_BYTES = 4 };

/* Elements of the rank's part under ZeRO. */
static int64_t zero_count(struct hb_titan *e)
{
    return hb_div_up(hb_titan_elements(e), e->spec->mesh[HB_AX_DATA]);
}

/* The first rank keeps the whole gradients of all weights that begin in its part, be it the
 * embedding's. Of a short program no more than is known. */
static int64_t kept_count(struct hb_titan *e)
{
    int64_t own = zero_count(e), sum = hb_mul_sat(e->end_weights->rows, e->end_weights->cols);
    for (int64_t i = 0; i < e->layer_count && sum < own && !e->cut; i++)
        for (int w = 0; w < e->layers[i].unit.count && sum < own; w++)
            sum = hb_add_sat(
                sum, hb_mul_sat(e->layers[i].weights[w].rows, e->layers[i].weights[w].cols));
    return sum < own ? own : sum;
}

/* ZeRO-Offload: offload_param, */
static bool has_weights_away(const struct hb_titan *e)
{
    return e->spec->optimizer.params_offload != HB_PLACE_NONE;
}

/* and offload_optimizer, whose update runs on the host. */
static bool has_states_away(const struct hb_titan *e)
{
    return e->spec->optimizer.offload != HB_PLACE_NONE;
}

static void add_zero3(struct hb_titan *e)
{
    const struct {
        const char *name;
        int64_t bytes; /* an element */
        enum hb_category category;
        bool away; /* on the host */
    } told[] = {
        {"own part of the weights", e->fsdp.param_bytes, HB_CAT_PARAMS, has_weights_away(e)},
        {"own part of the weights in f32", MASTER_BYTES, HB_CAT_PARAMS, has_states_away(e)},
        {"own part of the gradients", e->fsdp.grad_bytes, HB_CAT_GRADIENTS, has_states_away(e)}};
    int64_t count = hb_zero3_own_count(e->zero3);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (!told[i].away)
            hb_tape_argument(e->t, told[i].name, hb_tape_size(e->t, count, told[i].bytes, 1),
                             told[i].category);
    e->zero->buffer = hb_tape_argument(e->t, "buffer of gradients to reduce",
                                       hb_tape_size(e->t, e->zero->room, e->zero->element_bytes, 1),
                                       HB_CAT_COMMUNICATION);
}

void hb_titan_add_zero(struct hb_titan *e)
{
    if (e->zero3) {
        add_zero3(e);
        return;
    }
    int64_t count = zero_count(e);
    e->zero->part_bytes = hb_tape_size(e->t, kept_count(e), e->fsdp.grad_bytes, 1);
    hb_tape_argument(e->t, "own part of the weights in f32",
                     hb_tape_size(e->t, count, MASTER_BYTES, 1), HB_CAT_PARAMS);
}

static bool is_last(const struct hb_titan *e)
{
    return e->microbatch + 1 >= e->spec->batch.accumulate || e->microbatch == 2;
}

/* ZeRO-1 reduces after the last microbatch alone. */
static bool reduces_now(const struct hb_titan *e)
{
    return e->zero3 || e->spec->sharding.grads_over_data || is_last(e);
}

void hb_titan_begin_zero(struct hb_titan *e)
{
    if (!e->zero)
        return;
    hb_zero3_begin(e->zero3);
    bool reduces = reduces_now(e);
    for (int i = 0; i < e->end_count; i++)
        e->end_weights[i].updates = reduces;
    for (int64_t i = 0; i < e->layer_count; i++)
        for (int w = 0; w < e->layers[i].unit.count; w++)
            e->layers[i].weights[w].updates = reduces;
}

void hb_titan_close_bucket(struct hb_titan *e)
{
    if (!e->zero || !reduces_now(e))
        return;
    if (!e->zero->ranks || e->zero->count > 0)
        hb_ops_reduce_bucket(e->t, e->zero);
    hb_zero3_end(e->zero3);
    if (e->zero3)
        return;
    if (e->zero->sum == HB_NONE)
        e->zero->sum = e->zero->part;
    else
        hb_tape_drop(e->t, e->zero->part);
    e->zero->part = HB_NONE;
    hb_tape_drop(e->t, e->zero->buffer);
    e->zero->buffer = HB_NONE;
}

/* Its own gradients in one, then in f32; the states, where they are not there yet. */
static void update_part(struct hb_titan *e, int64_t count, bool first)
{
    struct hb_tape *t = e->t;
    uint32_t flat = hb_tape_make(t, (struct hb_made){"cat", "own gradients in one",
                                                     hb_tape_size(t, count, e->fsdp.grad_bytes, 1),
                                                     HB_CAT_GRADIENTS, 0});
    uint32_t wide =
        hb_tape_make(t, (struct hb_made){"to f32", "own gradients in f32",
                                         hb_tape_size(t, count, 4, 1), HB_CAT_GRADIENTS, 0});
    hb_tape_drop(t, flat);
    hb_tape_drop(t, e->zero->sum);
    e->zero->sum = HB_NONE;
    for (int i = 0; first && i < e->spec->optimizer.moment_count; i++)
        hb_titan_add_state(e, i, hb_titan_state_bytes(e, count, e->spec->optimizer.moments[i], 4));
    hb_tape_drop(t, wide);
}

static void update_first(void *context, int64_t count)
{
    update_part(context, count, true);
}

static void update_again(void *context, int64_t count)
{
    update_part(context, count, false);
}

void hb_titan_update_zero(struct hb_titan *e, bool first)
{
    if (e->zero3)
        hb_zero3_step(e->zero3, first ? update_first : update_again, e);
    else
        update_part(e, zero_count(e), first);
}

static void gather_by_module(struct hb_titan *e)
{
    const struct hb_runtime *r = &e->spec->runtime;
    e->zero->ranks = e->spec->mesh[HB_AX_FSDP];
    e->zero3 = hb_zero3_new(e->t, (struct hb_zero3_limits){.ranks = e->zero->ranks,
                                                           .prefetch = r->prefetch_bucket,
                                                           .live = r->live_parameters,
                                                           .reuse = r->reuse_distance,
                                                           .persists = r->persist_below,
                                                           .group = r->update_group,
                                                           .pool = HB_POOL_GATHER,
                                                           .on_host = has_weights_away(e),
                                                           .updates_there = has_states_away(e)});
    hb_zero3_add(e->zero3, &e->end_weights[0]);
    for (int64_t i = 0; i < e->layer_count; i++)
        for (int w = 0; w < e->layers[i].unit.count; w++)
            hb_zero3_add(e->zero3, &e->layers[i].weights[w]);
    for (int i = 1; i < e->end_count - e->spec->model.tied_embeddings; i++)
        hb_zero3_add(e->zero3, &e->end_weights[i]);
}

void hb_titan_reduce_in_buckets(struct hb_titan *e)
{
    e->zero = hb_arena_alloc(e->t->arena, 1, sizeof *e->zero);
    *e->zero = (struct hb_zero){.room = e->spec->runtime.reduce_bucket,
                                .element_bytes = e->fsdp.grad_bytes,
                                .large = HB_NONE,
                                .buffer = HB_NONE,
                                .part = HB_NONE,
                                .sum = HB_NONE};
    for (int i = 0; i < e->end_count; i++)
        e->end_weights[i].zero = e->zero;
    for (int64_t i = 0; i < e->layer_count; i++)
        for (int w = 0; w < e->layers[i].unit.count; w++)
            e->layers[i].weights[w].zero = e->zero;
    if (hb_titan_is_zero3(e->spec))
        gather_by_module(e);
}
