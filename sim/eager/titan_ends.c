/* See titan_parts.h: embedding, last norm and head, and the loss on their logits. */
#include "base/size.h"
#include "sim/eager/titan_parts.h"

static uint32_t plain(struct hb_tape *t, const char *op, const char *name, int64_t bytes)
{
    return hb_tape_make(
        t, (struct hb_made){.op = op, .name = name, .bytes = bytes, .category = HB_CAT_WORKING});
}

static void back_embedding(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct hb_titan *e = (struct hb_titan *)(uintptr_t)n->thing;
    int64_t whole = hb_tape_size(t, e->spec->model.vocab, e->spec->model.d_model, 2);
    t->where = e->first.where;
    if (!e->has_root)
        hb_fsdp_before_backward(&e->fsdp, &e->first, NULL);
    uint32_t all = grad;
    if (e->ways > 1) {
        all = hb_ops_gather_storage(t, grad, e->ways);
        hb_tape_drop(t, grad);
    }
    uint32_t table =
        hb_tape_make(t, (struct hb_made){"embedding, backward", "gradient of the embedding", whole,
                                         HB_CAT_GRADIENTS, 0});
    hb_tape_drop(t, all);
    if (e->ways > 1) {
        uint32_t own = hb_tape_make(t, (struct hb_made){"clone", "own part of the gradient",
                                                        whole / e->ways, HB_CAT_GRADIENTS, 0});
        hb_tape_drop(t, table);
        table = own;
    }
    hb_ops_weight_grad(t, e->first.weights ? &e->first.weights[0] : &e->root.weights[0], table);
}

uint32_t hb_titan_embed(struct hb_titan *e)
{
    struct hb_tape *t = e->t;
    int64_t bytes = hb_tape_size(t, e->tokens, e->spec->model.d_model, 2);
    t->where = "embedding.";
    if (!e->has_root)
        hb_fsdp_before_forward(&e->fsdp, &e->first);
    uint32_t rows = plain(t, "embedding", "embedded tokens", bytes);
    if (e->ways > 1) {
        uint32_t chunks = plain(t, "cat", "embedded tokens, by rank", bytes);
        uint32_t part = plain(t, "reduce-scatter over tensor", "summed part", bytes / e->ways);
        uint32_t out = plain(t, "wait", "embedded part of the sequence", bytes / e->ways);
        hb_tape_drop(t, chunks);
        hb_tape_drop(t, part);
        hb_tape_drop(t, rows);
        rows = out;
    }
    uint32_t x = hb_tape_value(t, rows);
    hb_titan_set_thing(hb_tape_node(t, back_embedding, x), e);
    if (!e->has_root)
        hb_fsdp_after_forward(&e->fsdp, &e->first);
    return x;
}

static void back_before_last(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct hb_titan *e = (struct hb_titan *)(uintptr_t)n->thing;
    struct hb_titan_layer *l = &e->layers[e->layer_count - 1];
    (void)grad;
    t->phase = HB_PHASE_BACKWARD;
    hb_fsdp_before_backward(&e->fsdp, e->has_root ? &e->root : &e->last, &l->unit);
}

static void back_after_last(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct hb_titan *e = (struct hb_titan *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    hb_fsdp_after_backward(&e->fsdp, &e->last);
}

uint32_t hb_titan_head(struct hb_titan *e, uint32_t x)
{
    struct hb_tape *t = e->t;
    int64_t d = e->spec->model.d_model;
    t->where = "";
    if (!e->has_root)
        hb_fsdp_before_forward(&e->fsdp, &e->last);
    if (!e->has_root)
        hb_titan_set_thing(hb_tape_node(t, back_after_last, HB_NONE), e);
    struct hb_weight *w = e->has_root ? &e->root.weights[1] : &e->last.weights[0];
    uint32_t h = hb_ops_norm(t, x, e->rows, d, w);
    hb_tape_drop_value(t, x);
    uint32_t whole = hb_titan_gathered(e, h);
    t->phase = HB_PHASE_LOSS;
    w = e->spec->model.tied_embeddings ? &e->end_weights[0] : w + 1;
    uint32_t logits =
        hb_ops_linear(t, whole, (struct hb_linear){"logits", e->tokens, d, w->rows, w, NULL});
    t->p->bufs[t->storages[t->values[logits].storage].buf].category = HB_CAT_LOGITS;
    hb_titan_drop_both(t, whole, h);
    hb_titan_set_thing(hb_tape_node(t, back_before_last, HB_NONE), e);
    hb_fsdp_forward_end(&e->fsdp);
    return logits;
}

/* --- the loss --- */

static uint32_t wide(struct hb_titan *e, const char *op, const char *name, int64_t width)
{
    int64_t bytes = hb_tape_size(e->t, e->tokens, e->head.rows, width);
    return hb_tape_make(e->t, (struct hb_made){op, name, bytes, HB_CAT_LOGITS, 0});
}

/* cross_entropy on f32 logits keeps the log-probabilities alone. */
static uint32_t eager_loss(struct hb_titan *e, uint32_t logits)
{
    struct hb_tape *t = e->t;
    uint32_t converted = wide(e, "to f32", "logits in f32", 4);
    uint32_t log = wide(e, "log_softmax", "log-probabilities", 4);
    hb_tape_drop(t, converted);
    hb_tape_drop_value(t, logits);
    uint32_t picked = wide(e, "nll_loss, backward", "gradient of the log-probabilities", 4);
    uint32_t grad = wide(e, "log_softmax, backward", "gradient of the logits in f32", 4);
    hb_tape_drop(t, picked);
    hb_tape_drop(t, log);
    uint32_t narrow = wide(e, "to bf16", "gradient of the logits", 2);
    hb_tape_drop(t, grad);
    return narrow;
}

/* The same of a vocabulary split over the tensor axis. */
static uint32_t parallel_loss(struct hb_titan *e, uint32_t logits)
{
    struct hb_tape *t = e->t;
    uint32_t converted = wide(e, "to f32", "logits in f32", 4);
    uint32_t shifted = wide(e, "sub", "logits less their maximum", 4);
    uint32_t power = wide(e, "exp", "exponentials", 4);
    hb_tape_drop(t, power);
    uint32_t log = wide(e, "sub", "log-probabilities", 4);
    hb_tape_drop(t, shifted);
    hb_tape_drop(t, converted);
    hb_tape_drop_value(t, logits);
    uint32_t picked = wide(e, "zeros_like", "gradient of the picked ones", 4);
    uint32_t back = wide(e, "exp", "probabilities", 4);
    uint32_t sum = wide(e, "add", "gradient before its scale", 4);
    hb_tape_drop(t, back);
    uint32_t grad = wide(e, "mul", "gradient of the logits in f32", 4);
    hb_tape_drop(t, sum);
    hb_tape_drop(t, picked);
    hb_tape_drop(t, log);
    uint32_t narrow = wide(e, "to bf16", "gradient of the logits", 2);
    hb_tape_drop(t, grad);
    return narrow;
}

/* Compiled: no converted copy; one gradient in f32 beside the logits, then in their dtype. */
static uint32_t compiled_loss(struct hb_titan *e, uint32_t logits)
{
    struct hb_tape *t = e->t;
    uint32_t grad = wide(e, "loss and its gradient", "gradient of the logits in f32", 4);
    hb_tape_drop_value(t, logits);
    uint32_t narrow = wide(e, "to bf16", "gradient of the logits", 2);
    hb_tape_drop(t, grad);
    return narrow;
}

uint32_t hb_titan_loss(struct hb_titan *e, uint32_t logits)
{
    if (e->spec->loss.kernel == HB_LOSS_COMPILED)
        return compiled_loss(e, logits);
    return e->ways > 1 ? parallel_loss(e, logits) : eager_loss(e, logits);
}
