/* See mcore_parts.h: last norm, head and loss. */
#include "base/arena.h"
#include "base/size.h"
#include "sim/eager/mcore_parts.h"

/* --- the loss --- */

static uint32_t wide(struct hb_mcore *e, const char *name, int64_t width)
{
    int64_t words = hb_mcore_split(e, e->spec->model.vocab);
    return hb_tape_make(e->t, (struct hb_made){"cross entropy", name,
                                               hb_tape_size(e->t, e->plan.tokens, words, width),
                                               HB_CAT_LOGITS, 0});
}

static void back_loss(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_mcore *e = (struct hb_mcore *)(uintptr_t)n->thing;
    (void)grad;
    if (e->spec->loss.kernel == HB_LOSS_FUSED) {
        hb_tape_hold(t, n->saved[0]);
        hb_tape_give(t, n->in[0], n->saved[0]);
        return;
    }
    uint32_t narrow = wide(e, "gradient of the logits", 2);
    hb_tape_drop(t, n->saved[0]);
    n->saved[0] = HB_NONE;
    hb_tape_give(t, n->in[0], narrow);
}

/* Megatron's own cross entropy: a copy in f32 becomes the probabilities and then the gradient, in
 * place; the logits are held to the end of the forward pass. Compiled (core/fusions/
 * fused_cross_entropy.py under torch.compile) the exponentials are made beside the copy, and copied
 * into it: its CI's tp2_pp2 takes 394 MiB more with it, as large as the copy is. A fused kernel: a
 * gradient alone. */
static void run_loss(struct hb_mcore *e, uint32_t logits)
{
    enum hb_loss_kernel kernel = e->spec->loss.kernel;
    uint32_t copy = kernel == HB_LOSS_FUSED ? wide(e, "gradient of the logits", 2)
                                            : wide(e, "logits in f32, then their gradient", 4);
    if (kernel == HB_LOSS_JIT)
        hb_tape_drop(e->t, wide(e, "exponentials of the logits", 4));
    struct hb_taped *n = hb_tape_node(e->t, back_loss, HB_NONE);
    n->in[0] = logits;
    n->thing = e;
    hb_tape_save(e->t, n, copy);
    hb_tape_drop(e->t, copy);
    hb_tape_drop_value(e->t, logits);
}

/* The head on rows that are normed: its logits and their loss. Consumes h. */
static uint32_t run_logits(struct hb_mcore *e, uint32_t h)
{
    uint32_t logits = hb_tape_value(e->t, wide(e, "logits", 2));
    struct hb_taped *n = hb_tape_node(e->t, hb_mcore_back_op, logits);
    n->in[0] = h;
    n->number[0] = hb_tape_size(e->t, e->rows, e->d, 2);
    n->number[1] = e->spec->runtime.grad_fusion ? 0 : 2 * hb_mcore_table_count(&e->plan);
    hb_tape_save(e->t, n, e->t->values[h].storage);
    hb_tape_drop_value(e->t, h);
    run_loss(e, logits);
    return logits;
}

static void back_join(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t parts[2] = {HB_NONE, HB_NONE};
    for (int i = 0; i < 2; i++)
        parts[i] = hb_tape_make(
            t, (struct hb_made){"narrow", "gradient of a half", n->number[0], HB_CAT_WORKING, 0});
    hb_tape_drop(t, grad);
    for (int i = 0; i < 2; i++)
        hb_tape_give(t, n->in[i], parts[i]);
}

/* A depth of multi-token prediction: the next tokens' embedding and the hidden states, each normed,
 * side by side through a product into one layer more and a norm of its own
 * (megatron/core/transformer/multi_token_prediction.py). */
static uint32_t run_depth(struct hb_mcore *e, const struct hb_block *b, bool again, uint32_t h)
{
    struct hb_tape *t = e->t;
    uint32_t next = hb_tape_value(t, hb_mcore_make(e, "next tokens, embedded", e->rows, 2 * e->d));
    uint32_t parts[2] = {hb_mcore_norm(e, next), HB_NONE};
    if (t->grad) /* its gradient goes into the embedding's at once */
        t->nodes[t->node_count - 1].in[0] = HB_NONE;
    parts[1] = hb_mcore_norm(e, h);
    hb_tape_drop_value(t, next);
    uint32_t both =
        hb_tape_value(t, hb_mcore_make(e, "embedding and hidden states", e->rows, 4 * e->d));
    struct hb_taped *n = hb_tape_node(t, back_join, both);
    n->number[0] = hb_tape_bytes(t, t->values[both].storage) / 2;
    for (int i = 0; i < 2; i++) {
        n->in[i] = parts[i];
        hb_tape_drop_value(t, parts[i]);
    }
    int64_t weight = 2 * e->d * hb_mcore_split(e, e->d);
    uint32_t x = hb_mcore_op(e, (struct hb_mcore_op){"product of both", both, e->rows, 2 * e->d,
                                                     weight, true, true, true});
    x = hb_mcore_run_layer(e, b, again, x);
    uint32_t out = hb_mcore_norm(e, x);
    hb_tape_drop_value(t, x);
    return out;
}

/* The gradients of all depths in one, as the hidden states were. */
static void back_parts(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    const uint32_t *parts = n->thing;
    int count = (int)n->number[0];
    uint32_t all = hb_tape_make(
        t, (struct hb_made){"cat", "gradients of all depths", n->number[1], HB_CAT_WORKING, 0});
    (void)grad;
    for (int i = 0; i < count; i++) {
        hb_tape_drop(t, t->values[parts[count + i]].grad);
        t->values[parts[count + i]].grad = HB_NONE;
        hb_tape_hold(t, all);
        hb_tape_give(t, parts[i], all);
    }
    hb_tape_drop(t, all);
}

/* All depths' hidden states are put into one, of which each pass of the head takes its part: the
 * further depths first, the model's own last (gpt_model.py, _postprocess). */
static uint32_t run_depths(struct hb_mcore *e, uint32_t h)
{
    struct hb_tape *t = e->t;
    const struct hb_model *m = &e->spec->model;
    const struct hb_block *b = &m->blocks[m->block_count - 1];
    int count = (int)m->mtp + 1;
    bool again = b->remat.policy != HB_POLICY_NONE;
    uint32_t *parts = hb_arena_alloc(t->arena, 2 * (size_t)count, sizeof *parts);
    parts[0] = h;
    for (int i = 1; i < count; i++)
        parts[i] = run_depth(e, b, again, parts[i - 1]);
    uint32_t all = hb_mcore_make(e, "hidden states of all depths", e->rows, 2 * e->d * count);
    struct hb_taped *n = hb_tape_node(t, back_parts, HB_NONE);
    n->thing = parts;
    n->number[0] = count;
    n->number[1] = hb_tape_bytes(t, all);
    for (int i = 0; i < count; i++) {
        hb_tape_drop_value(t, parts[i]);
        parts[count + i] = hb_tape_value(t, all);
        hb_tape_hold(t, all);
    }
    hb_tape_drop(t, all);
    t->phase = HB_PHASE_LOSS;
    for (int i = 1; i < count; i++)
        run_logits(e, parts[count + i]);
    return run_logits(e, parts[count]);
}

uint32_t hb_mcore_head(struct hb_mcore *e, uint32_t x)
{
    uint32_t h = hb_mcore_norm(e, x);
    hb_tape_drop_value(e->t, x);
    if (e->spec->model.mtp)
        return run_depths(e, h);
    e->t->phase = HB_PHASE_LOSS;
    return run_logits(e, h);
}
