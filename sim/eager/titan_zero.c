/* See titan_parts.h. DeepSpeed's ZeRO 1 and 2 (deepspeed/runtime/zero/stage_1_and_2.py): weights
 * are whole, in bf16; of an f32 copy, the states and the reduced gradients a rank has its part. */
#include "base/arena.h"
#include "base/size.h"
#include "sim/eager/titan_parts.h"

/* Elements of the rank's part under ZeRO. */
static int64_t zero_count(struct hb_titan *e)
{
    return hb_div_up(hb_titan_elements(e), e->spec->mesh[HB_AX_DATA]);
}

/* The first rank keeps the whole gradients of all weights that begin in its part, be it the
 * embedding's. Of a short program no more than is known. */
static int64_t kept_count(struct hb_titan *e)
{
    int64_t own = zero_count(e), sum = hb_mul_sat(e->table.rows, e->table.cols);
    for (int64_t i = 0; i < e->layer_count && sum < own && !e->cut; i++)
        for (int w = 0; w < e->layers[i].unit.count && sum < own; w++)
            sum = hb_add_sat(
                sum, hb_mul_sat(e->layers[i].weights[w].rows, e->layers[i].weights[w].cols));
    return sum < own ? own : sum;
}

void hb_titan_add_zero(struct hb_titan *e)
{
    enum { MASTER_BYTES = 4 };
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
void hb_titan_begin_zero(struct hb_titan *e)
{
    if (!e->zero)
        return;
    bool reduces = e->spec->sharding.grads_over_data || is_last(e);
    for (int i = 0; i < 3; i++)
        e->end_weights[i].updates = reduces;
    for (int64_t i = 0; i < e->layer_count; i++)
        for (int w = 0; w < e->layers[i].unit.count; w++)
            e->layers[i].weights[w].updates = reduces;
}

void hb_titan_close_bucket(struct hb_titan *e)
{
    if (!e->zero || !(e->spec->sharding.grads_over_data || is_last(e)))
        return;
    hb_ops_reduce_bucket(e->t, e->zero);
    if (e->zero->sum == HB_NONE)
        e->zero->sum = e->zero->part;
    else
        hb_tape_drop(e->t, e->zero->part);
    e->zero->part = HB_NONE;
    hb_tape_drop(e->t, e->zero->buffer);
    e->zero->buffer = HB_NONE;
}

/* Its own gradients in one, then in f32. */
void hb_titan_update_zero(struct hb_titan *e, bool first)
{
    struct hb_tape *t = e->t;
    int64_t count = zero_count(e);
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
        hb_titan_add_state(
            e, i, hb_tape_size(t, count, hb_dtype_bits(e->spec->optimizer.moments[i]) / 8, 1));
    hb_tape_drop(t, wide);
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
    for (int i = 0; i < 3; i++)
        e->end_weights[i].zero = e->zero;
    for (int64_t i = 0; i < e->layer_count; i++)
        for (int w = 0; w < e->layers[i].unit.count; w++)
            e->layers[i].weights[w].zero = e->zero;
}
