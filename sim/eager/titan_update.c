/* See titan_parts.h: the optimizer's states and what its step makes, weight by weight, and
 * torchtitan's average of the parameters. Order and holders were read off torch's own code on fake
 * tensors (2.15: torch/optim; torchtitan/components/ema.py; lion-pytorch 0.2.5). Fused AdamW, SGD,
 * and Lion's kernels of DeepSpeed and bitsandbytes make nothing but states.
 *
 *   Lion of shards    for each: a copy of the average, and one with the gradient in it
 *   Muon              momentum of all matrices; for each: momentum ahead, a copy in bf16, and five
 *                     times its square, the square's square, the next copy; then AdamW's states
 *   Adafactor         factors of all; for each: two norms and a whole estimate, which are let go
 *                     once the next one's are there */
#include "base/arena.h"
#include "base/size.h"
#include "sim/eager/eager_layer.h"
#include "sim/eager/titan_parts.h"

/* Elements of a rank's part of a weight; of FSDP1, whose units have one, all of the unit's at its
 * first. */
static int64_t shard_count(struct hb_titan *e, const struct hb_weight *w)
{
    if (!e->fsdp.flat)
        return hb_tape_size(e->t, hb_fsdp_rows(&e->fsdp, w), w->cols, 1);
    if (w == e->end_weights)
        return hb_fsdp_part(&e->fsdp, &e->root);
    for (int64_t i = 0; i < e->layer_count; i++)
        if (w == e->layers[i].weights)
            return hb_fsdp_part(&e->fsdp, &e->layers[i].unit);
    return 0;
}

int64_t hb_titan_shard_bytes(struct hb_titan *e, const struct hb_weight *w, int64_t width)
{
    return hb_tape_size(e->t, shard_count(e, w), width, 1);
}

/* --- states --- */

int64_t hb_titan_state_bytes(struct hb_titan *e, int64_t count, enum hb_dtype dtype, int64_t plain)
{
    enum { BLOCK = 256, SMALLEST = 4096, SCALE_BYTES = 4 };
    int64_t bits = hb_dtype_bits(dtype);
    if (dtype != HB_DT_Q8)
        return hb_tape_size(e->t, count, bits < 8 ? 1 : bits / 8, 1);
    if (count < SMALLEST || count % BLOCK != 0)
        return hb_tape_size(e->t, count, plain, 1);
    return hb_add_sat(count, (count / BLOCK + BLOCK) * SCALE_BYTES);
}

static int64_t state_bytes(struct hb_titan *e, const struct hb_weight *w, enum hb_dtype dtype)
{
    return hb_titan_state_bytes(e, hb_titan_shard_bytes(e, w, 1), dtype, e->fsdp.param_bytes);
}

static int moment_count(const struct hb_titan *e)
{
    return e->spec->optimizer.moment_count < 2 ? e->spec->optimizer.moment_count : 2;
}

static void keep_state(struct hb_titan *e, const char *op, const char *name, int64_t bytes)
{
    hb_tape_keep(e->t, hb_tape_make(e->t, (struct hb_made){op, name, bytes, HB_CAT_OPTIMIZER, 0}));
}

void hb_titan_add_state(struct hb_titan *e, int which, int64_t bytes)
{
    keep_state(e, "zeros_like", which ? "second moment" : "first moment", bytes);
}

void hb_titan_add_states(struct hb_titan *e, const struct hb_weight *w)
{
    for (int i = 0; i < moment_count(e) && shard_count(e, w); i++)
        hb_titan_add_state(e, i, state_bytes(e, w, e->spec->optimizer.moments[i]));
}

/* Of the layers that are not run. */
static void add_other_states(struct hb_titan *e)
{
    for (int i = 0; i < moment_count(e); i++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < e->layer_count; k++) {
            const struct hb_titan_layer *l = &e->layers[k];
            for (int w = 0; w < hb_titan_weight_count(l); w++) {
                int64_t each =
                    state_bytes(e, hb_titan_weight_at(l, w), e->spec->optimizer.moments[i]);
                sum = hb_add_sat(sum, hb_tape_size(e->t, each, l->left_out, 1));
            }
        }
        if (sum)
            hb_titan_add_state(e, i, sum);
    }
}

/* --- what a step makes --- */

/* Held by the code under that name until the next one takes it. */
static void name(struct hb_titan *e, enum hb_titan_update_name which, const char *op,
                 const char *what, int64_t bytes)
{
    uint32_t *held = &e->update_names[which];
    uint32_t made = hb_tape_make(e->t, (struct hb_made){op, what, bytes, HB_CAT_WORKING, 0});
    hb_tape_drop(e->t, *held);
    *held = made;
}

static void forget(struct hb_titan *e, enum hb_titan_update_name which)
{
    hb_tape_drop(e->t, e->update_names[which]);
    e->update_names[which] = HB_NONE;
}

static void forget_all(struct hb_titan *e)
{
    for (int i = 0; i < HB_TITAN_UPDATE_NAMES; i++)
        forget(e, (enum hb_titan_update_name)i);
}

static void update_lion(struct hb_titan *e, const struct hb_weight *w)
{
    int64_t bytes = hb_titan_shard_bytes(e, w, e->fsdp.param_bytes);
    if (e->first_step)
        hb_titan_add_states(e, w);
    name(e, HB_TITAN_UPDATE, "clone", "average of the gradients, copied", bytes);
    name(e, HB_TITAN_UPDATE, "add", "update", bytes);
    forget(e, HB_TITAN_UPDATE);
}

/* Of a layer; embeddings, positions and the head are AdamW's. */
static bool is_muons(const struct hb_titan *e, const struct hb_weight *w)
{
    for (int i = 0; i < HB_TITAN_ENDS; i++)
        if (w == &e->end_weights[i])
            return false;
    return w->cols > 1;
}

static void add_momentum(struct hb_titan *e, const struct hb_weight *w)
{
    if (is_muons(e, w))
        hb_titan_add_states(e, w);
}

static void add_adamw(struct hb_titan *e, const struct hb_weight *w)
{
    for (int i = 0; i < 2 && !is_muons(e, w); i++)
        hb_titan_add_state(e, i, hb_titan_shard_bytes(e, w, e->fsdp.param_bytes));
}

/* _zeropower_via_newtonschulz: of the longer side's products. */
static void update_muon(struct hb_titan *e, const struct hb_weight *w)
{
    enum { PASSES = 5, ITERATE_BYTES = 2 };
    int64_t side = w->rows < w->cols ? w->rows : w->cols;
    int64_t square = hb_tape_size(e->t, side, side, ITERATE_BYTES);
    int64_t bytes = hb_titan_shard_bytes(e, w, ITERATE_BYTES);
    if (!is_muons(e, w))
        return;
    uint32_t ahead = hb_tape_make(
        e->t, (struct hb_made){"lerp", "momentum, a step ahead",
                               hb_titan_shard_bytes(e, w, e->fsdp.param_bytes), HB_CAT_WORKING, 0});
    forget(e, HB_TITAN_UPDATE);
    name(e, HB_TITAN_UPDATE, "to bf16", "muon iterate", bytes);
    for (int i = 0; i < PASSES; i++) {
        name(e, HB_TITAN_SQUARE, "mm", "muon square", square);
        name(e, HB_TITAN_FOURTH, "addmm", "square of the muon square", square);
        name(e, HB_TITAN_UPDATE, "addmm", "muon next iterate", bytes);
    }
    forget(e, HB_TITAN_SQUARE);
    forget(e, HB_TITAN_FOURTH);
    hb_tape_drop(e->t, ahead);
}

static void add_factors(struct hb_titan *e, const struct hb_weight *w)
{
    int64_t width = e->fsdp.param_bytes;
    if (w->cols == 1) {
        keep_state(e, "zeros_like", "variances", w->rows * width);
        return;
    }
    keep_state(e, "new_zeros", "variance of the rows", w->rows * width);
    keep_state(e, "new_zeros", "variance of the columns", w->cols * width);
}

static void update_adafactor(struct hb_titan *e, const struct hb_weight *w)
{
    int64_t width = e->fsdp.param_bytes;
    if (w->cols > 1) {
        name(e, HB_TITAN_SQUARE, "vector_norm", "norms of the rows", w->rows * width);
        name(e, HB_TITAN_FOURTH, "vector_norm", "norms of the columns", w->cols * width);
    } else {
        name(e, HB_TITAN_SQUARED, "mul", "squares of the gradient", w->rows * width);
    }
    name(e, HB_TITAN_UPDATE, w->cols > 1 ? "mm" : "clone", "estimate of the variance",
         hb_titan_shard_bytes(e, w, width));
}

/* Where no kernel has its own way. */
static void run_optimizer(struct hb_titan *e)
{
    switch (e->spec->optimizer.name) {
    case HB_OPT_LION:
        hb_titan_each_weight(e, update_lion);
        break;
    case HB_OPT_MUON:
        if (e->first_step)
            hb_titan_each_weight(e, add_momentum);
        hb_titan_each_weight(e, update_muon);
        forget_all(e);
        if (e->first_step)
            hb_titan_each_weight(e, add_adamw);
        break;
    case HB_OPT_ADAFACTOR:
        if (e->first_step)
            hb_titan_each_weight(e, add_factors);
        hb_titan_each_weight(e, update_adafactor);
        forget_all(e);
        break;
    case HB_OPT_SGD:
    case HB_OPT_MOMENTUM:
    case HB_OPT_ADAMW:
        break;
    }
}

/* --- the average of the parameters --- */

static const char *averaged(struct hb_titan *e, const struct hb_weight *w)
{
    return hb_arena_printf(e->t->p->arena, "%s, ema", w->name);
}

static void add_average(struct hb_titan *e, const struct hb_weight *w)
{
    hb_tape_argument(e->t, averaged(e, w), hb_titan_shard_bytes(e, w, e->fsdp.param_bytes),
                     HB_CAT_EMA);
}

/* Copies of all, which go to the host one by one. */
static void copy_away(struct hb_titan *e, const struct hb_weight *w)
{
    uint32_t copy = hb_tape_make(
        e->t, (struct hb_made){"clone", averaged(e, w),
                               hb_titan_shard_bytes(e, w, e->fsdp.param_bytes), HB_CAT_EMA, 0});
    e->copies[e->copy_count++] = copy;
}

/* The first average is made in storages that stay (_get_scratch). */
static void add_scratch(struct hb_titan *e, const struct hb_weight *w)
{
    uint32_t scratch = hb_tape_make(
        e->t, (struct hb_made){"empty_like", averaged(e, w),
                               hb_titan_shard_bytes(e, w, e->fsdp.param_bytes), HB_CAT_EMA, 0});
    hb_tape_keep(e->t, scratch);
}

static void count_weight(struct hb_titan *e, const struct hb_weight *w)
{
    (void)w;
    e->copy_count++;
}

void hb_titan_add_average(struct hb_titan *e, int64_t left_out)
{
    enum hb_place place = e->spec->optimizer.ema;
    if (place == HB_PLACE_DEVICE) {
        hb_titan_each_weight(e, add_average);
        if (left_out)
            hb_tape_argument(e->t, "weights of other layers, ema",
                             hb_tape_size(e->t, left_out, e->fsdp.param_bytes, 1), HB_CAT_EMA);
    }
    if (place != HB_PLACE_PINNED_HOST)
        return;
    hb_titan_each_weight(e, count_weight);
    e->copies = hb_arena_alloc(e->t->arena, e->copy_count, sizeof *e->copies);
    e->copy_count = 0;
    hb_titan_each_weight(e, copy_away);
    for (uint32_t i = 0; i < e->copy_count; i++)
        hb_tape_drop(e->t, e->copies[i]);
}

/* --- the update --- */

void hb_titan_update(struct hb_titan *e)
{
    if (hb_eager_has_rule(e->spec))
        run_optimizer(e);
    else if (e->first_step && !e->fsdp.update && e->spec->optimizer.offload == HB_PLACE_NONE)
        hb_titan_each_weight(e, hb_titan_add_states);
    /* Paged states and those of parameters on the host are no memory of the allocator's. */
    if (e->first_step && e->spec->optimizer.offload == HB_PLACE_NONE)
        add_other_states(e);
    if (e->first_step && e->spec->optimizer.ema == HB_PLACE_PINNED_HOST)
        hb_titan_each_weight(e, add_scratch);
}
