/* See titan_parts.h: embedding, last norm and head, and the loss on their logits. */
#include "base/size.h"
#include "sim/eager/titan.h"
#include "sim/eager/titan_parts.h"

uint32_t hb_titan_own_table(struct hb_titan *e, uint32_t table)
{
    struct hb_tape *t = e->t;
    uint32_t own =
        hb_tape_make(t, (struct hb_made){"clone", "own part of the gradient",
                                         hb_tape_bytes(t, table) / e->ways, HB_CAT_GRADIENTS, 0});
    hb_tape_drop(t, table);
    return own;
}

/* Summed over the sequences. */
static void back_positions(struct hb_titan *e, struct hb_taped *n)
{
    struct hb_tape *t = e->t;
    struct hb_weight *w = &e->end_weights[1];
    int64_t token = hb_tape_size(t, w->cols, e->stream_bytes, 1);
    uint32_t sum = hb_ops_work(t, "sum", "gradient of positions, summed",
                               hb_tape_size(t, e->spec->batch.seq, token, 1));
    uint32_t grad =
        hb_tape_make(t, (struct hb_made){"embedding, backward", "gradient of positions",
                                         hb_tape_size(t, w->rows, token, 1), HB_CAT_GRADIENTS, 0});
    hb_tape_drop(t, sum);
    hb_ops_give_up_all(t, n);
    hb_ops_weight_grad(t, w, grad);
}

/* DTensor leaves each rank's gradient of all words until the update asks for the own ones. */
void hb_titan_share_table(struct hb_titan *e)
{
    uint32_t whole = e->end_weights[0].grad;
    hb_tape_hold(e->t, whole);
    hb_tape_drop(e->t, hb_titan_own_table(e, whole));
}

static void back_embedding(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan *e = (struct hb_titan *)(uintptr_t)n->thing;
    int64_t whole = hb_tape_size(t, e->spec->model.vocab, e->spec->model.d_model, e->stream_bytes);
    t->where = e->first.where;
    if (!e->has_root)
        hb_fsdp_before_backward(&e->fsdp, &e->first, NULL);
    hb_zero3_enter_back(&e->end_weights[0]);
    uint32_t all = grad;
    if (e->spec->model.positions)
        back_positions(e, n);
    if (e->ways > 1) {
        all = hb_ops_gather_storage(t, grad, e->gather);
        hb_tape_drop(t, grad);
    }
    uint32_t table =
        hb_tape_make(t, (struct hb_made){"embedding, backward", "gradient of the embedding", whole,
                                         HB_CAT_GRADIENTS, 0});
    if (e->ways > 1 || !e->fsdp.defers) {
        hb_tape_drop(t, all); /* before autograd adds what it has of the table already */
        all = HB_NONE;
    }
    if (e->ways > 1 && !e->fsdp.defers && !e->fsdp.plain)
        table = hb_titan_own_table(e, table);
    hb_ops_weight_grad(t, &e->end_weights[0], table);
    hb_tape_drop(t, all); /* of a pipeline it is there while that is widened (torch-pipes) */
}

/* GPT-2's: learnt positions are added, then dropout. FSDP has them in its root. */
static uint32_t embed_positions(struct hb_titan *e, uint32_t rows)
{
    struct hb_tape *t = e->t;
    int64_t seq = e->spec->batch.seq, bytes = hb_tape_bytes(t, rows);
    uint32_t ids = hb_ops_work(t, "arange", "positions' numbers", 8 * seq);
    uint32_t at = hb_ops_work(t, "embedding", "embedded positions", bytes / e->sequences);
    uint32_t x =
        hb_tape_new(t, (struct hb_made){"add", "tokens at positions", bytes, HB_CAT_WORKING, 0});
    hb_tape_drop(t, at);
    hb_tape_drop(t, rows);
    struct hb_taped *n = hb_tape_node(t, back_embedding, x);
    hb_titan_set_thing(n, e);
    hb_tape_save(t, n, ids);
    hb_tape_drop(t, ids);
    if (e->spec->model.blocks[0].dropout == 0)
        return x;
    uint32_t out = hb_ops_dropout(t, x, hb_tape_size(t, e->tokens, e->spec->model.d_model, 1));
    hb_tape_drop_value(t, x);
    return out;
}

uint32_t hb_titan_embed(struct hb_titan *e)
{
    struct hb_tape *t = e->t;
    int64_t bytes = hb_tape_size(t, e->tokens, e->spec->model.d_model, e->stream_bytes);
    t->where = "embedding.";
    if (!e->has_root)
        hb_fsdp_before_forward(&e->fsdp, &e->first);
    hb_zero3_enter_plain(e->zero3); /* the model with its head ... */
    hb_zero3_enter_plain(e->zero3); /* ... and without */
    hb_zero3_enter(&e->end_weights[0]);
    uint32_t rows = hb_ops_work(t, "embedding", "embedded tokens", bytes);
    hb_zero3_leave(&e->end_weights[0]);
    hb_zero3_enter_plain(e->zero3); /* rope's table */
    if (e->ways > 1) {
        uint32_t chunks = hb_ops_work(t, "cat", "embedded tokens, by rank", bytes);
        uint32_t part =
            hb_ops_work(t, "reduce-scatter over tensor", "summed part", bytes / e->ways);
        hb_tape_drop(t, chunks);
        hb_tape_drop(t, rows);
        rows = part;
    }
    if (e->spec->model.positions)
        return embed_positions(e, rows);
    uint32_t x = hb_tape_value(t, rows);
    hb_titan_set_thing(hb_tape_node(t, back_embedding, x), e);
    if (!e->has_root)
        hb_fsdp_after_forward(&e->fsdp, &e->first);
    return x;
}

static void back_before_last(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan *e = (struct hb_titan *)(uintptr_t)n->thing;
    struct hb_titan_layer *l = &e->layers[e->layer_count - 1];
    (void)grad;
    t->phase = HB_PHASE_BACKWARD;
    hb_fsdp_before_backward(&e->fsdp, e->has_root ? &e->root : &e->last, &l->unit);
}

static void back_after_last(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan *e = (struct hb_titan *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    if (!e->by_chunk || e->fsdp.defers) {
        hb_fsdp_after_backward(&e->fsdp, &e->last);
        return;
    }
    hb_fsdp_reshard(&e->fsdp, &e->last);
    hb_fsdp_reduce(&e->fsdp, &e->norm_alone, &e->head_alone);
}

/* Tensors that the last norm keeps: its input in f32, its scale, its input scaled. */
enum { NORM_KEEPS = 3 };

/* h.chunk(): the gradients of the chunks are put together. */
static void back_split(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan *e = (struct hb_titan *)(uintptr_t)n->thing;
    uint32_t all = hb_ops_work(t, "cat", "gradient of the last norm's output",
                               hb_tape_size(t, e->tokens, e->spec->model.d_model, 2));
    (void)grad;
    for (int64_t i = 0; i < e->chunk_count; i++) {
        struct hb_value *v = &t->values[e->chunks[i].in];
        hb_tape_drop(t, v->grad);
        v->grad = HB_NONE;
    }
    hb_tape_give(t, n->in[0], all);
}

static void run_logits(struct hb_titan *e, struct hb_titan_chunk *c, struct hb_weight *w)
{
    c->logits = hb_ops_linear(e->t, c->in,
                              (struct hb_linear){.name = "logits",
                                                 .rows = c->rows,
                                                 .in = e->spec->model.d_model,
                                                 .out = w->rows,
                                                 .weight = w});
    hb_tape_count_as(e->t, e->t->values[c->logits].storage, HB_CAT_LOGITS);
}

static void run_chunks(struct hb_titan *e, uint32_t h, struct hb_weight *w)
{
    struct hb_tape *t = e->t;
    bool cut = e->chunk_count > 1;
    struct hb_taped *n = cut ? hb_tape_node(t, back_split, HB_NONE) : NULL;
    if (n) {
        n->in[0] = h;
        n->thing = e;
    }
    for (int64_t i = 0; i < e->chunk_count; i++) {
        struct hb_titan_chunk *c = &e->chunks[i];
        c->in = cut ? hb_tape_value(t, t->values[h].storage) : h;
        run_logits(e, c, w);
    }
}

/* --- head and loss in one op --- */

static void back_linear_loss(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    (void)grad;
    for (int i = 0; i < 2; i++)
        hb_tape_hold(t, n->saved[i]); /* they go on */
    hb_ops_weight_grad(t, (struct hb_weight *)(uintptr_t)n->thing, n->saved[1]);
    hb_tape_give(t, n->in[0], n->saved[0]);
}

/* Tokens of a piece: logits about as large as the head's input, a power of two of them. */
static int64_t piece_rows(const struct hb_titan *e)
{
    int64_t pieces = hb_div_up(e->head->rows, e->spec->model.d_model);
    int64_t least = hb_div_up(e->tokens, pieces), rows = 1;
    while (rows < least)
        rows *= 2;
    return rows < e->tokens ? rows : e->tokens;
}

/* Liger's fused linear cross-entropy (liger_kernel/ops/fused_linear_cross_entropy.py): both
 * gradients are made in the forward pass, from one piece of logits that its own gradient
 * overwrites; products are added in place. */
static void run_linear_loss(struct hb_titan *e, uint32_t h, struct hb_weight *w)
{
    struct hb_tape *t = e->t;
    int64_t d = e->spec->model.d_model;
    uint32_t dx = hb_ops_work(t, "zeros_like", "gradient of the last norm's output",
                              hb_tape_size(t, e->tokens, d, 2));
    uint32_t dw =
        hb_tape_make(t, (struct hb_made){"zeros_like", "gradient of the head",
                                         hb_tape_size(t, w->rows, d, 2), HB_CAT_GRADIENTS, 0});
    uint32_t losses =
        hb_ops_work(t, "zeros", "loss of each token", hb_tape_size(t, e->tokens, 4, 1));
    uint32_t mask = hb_ops_work(t, "ne", "tokens that count", e->tokens);
    uint32_t logits =
        hb_tape_make(t, (struct hb_made){"head and loss, piece by piece", "logits of a piece",
                                         hb_tape_size(t, piece_rows(e), w->rows, 2), HB_CAT_LOGITS,
                                         6 * (double)e->tokens * (double)d * (double)w->rows});
    hb_tape_drop(t, logits);
    hb_tape_drop(t, losses);
    hb_tape_drop(t, mask);
    struct hb_taped *n = hb_tape_node(t, back_linear_loss, HB_NONE);
    hb_tape_save(t, n, dx);
    hb_tape_save(t, n, dw);
    if (n) {
        n->in[0] = h;
        n->thing = w;
    }
    hb_tape_drop(t, dx);
    hb_tape_drop(t, dw);
}

/* --- the loss --- */

static uint32_t wide(struct hb_titan *e, int64_t rows, const char *op, const char *name,
                     int64_t width)
{
    int64_t bytes = hb_tape_size(e->t, rows, e->head->rows, width);
    return hb_tape_make(e->t, (struct hb_made){op, name, bytes, HB_CAT_LOGITS, 0});
}

/* What a model returns in f32 is what the loss takes, and what the program holds: see
 * loss.held. It is let go when the next microbatch's has taken its name. */
static uint32_t in_f32(struct hb_titan *e, struct hb_titan_chunk *c)
{
    struct hb_tape *t = e->t;
    uint32_t out = hb_ops_convert(t, t->values[c->logits].storage,
                                  (struct hb_made){"to f32", "logits in f32",
                                                   hb_tape_size(t, c->rows, e->head->rows, 4),
                                                   HB_CAT_LOGITS, 0});
    if (e->spec->loss.held != HB_HELD_F32)
        return out;
    hb_tape_drop_value(t, c->logits);
    t->values[c->logits].storage = HB_NONE;
    hb_tape_hold(t, out);
    hb_tape_drop(t, c->held);
    c->held = out;
    return out;
}

static void drop_logits(struct hb_titan *e, struct hb_titan_chunk *c)
{
    uint32_t storage = e->t->values[c->logits].storage;
    if (e->spec->loss.held == HB_HELD_COMPUTE) {
        hb_tape_drop(e->t, c->held);
        c->held = storage;
        return;
    }
    hb_tape_drop(e->t, storage);
}

/* In the logits' own dtype. */
static uint32_t narrowed(struct hb_titan *e, uint32_t grad, int64_t rows)
{
    struct hb_made made = {"to bf16", "gradient of the logits",
                           hb_tape_size(e->t, rows, e->head->rows, e->t->width), HB_CAT_LOGITS, 0};
    return hb_ops_convert(e->t, grad, made);
}

/* cross_entropy on f32 logits keeps the log-probabilities alone. */
static void eager_forward(struct hb_titan *e, struct hb_titan_chunk *c)
{
    uint32_t converted = in_f32(e, c);
    c->kept = wide(e, c->rows, "log_softmax", "log-probabilities", 4);
    hb_tape_drop(e->t, converted);
}

static uint32_t eager_backward(struct hb_titan *e, struct hb_titan_chunk *c)
{
    struct hb_tape *t = e->t;
    uint32_t picked =
        wide(e, c->rows, "nll_loss, backward", "gradient of the log-probabilities", 4);
    uint32_t grad = wide(e, c->rows, "log_softmax, backward", "gradient of the logits in f32", 4);
    hb_tape_drop(t, picked);
    hb_tape_drop(t, c->kept);
    uint32_t narrow = narrowed(e, grad, c->rows);
    hb_tape_drop(t, grad);
    return narrow;
}

/* The same of a vocabulary split over the tensor axis. */
static void parallel_forward(struct hb_titan *e, struct hb_titan_chunk *c)
{
    struct hb_tape *t = e->t;
    uint32_t converted = in_f32(e, c);
    uint32_t shifted = wide(e, c->rows, "sub", "logits less their maximum", 4);
    uint32_t power = wide(e, c->rows, "exp", "exponentials", 4);
    hb_tape_drop(t, power);
    c->kept = wide(e, c->rows, "sub", "log-probabilities", 4);
    hb_tape_drop(t, shifted);
    hb_tape_drop(t, converted);
}

static uint32_t parallel_backward(struct hb_titan *e, struct hb_titan_chunk *c)
{
    struct hb_tape *t = e->t;
    uint32_t picked = wide(e, c->rows, "zeros_like", "gradient of the picked ones", 4);
    uint32_t back = wide(e, c->rows, "exp", "probabilities", 4);
    uint32_t sum = wide(e, c->rows, "add", "gradient before its scale", 4);
    hb_tape_drop(t, back);
    uint32_t grad = wide(e, c->rows, "mul", "gradient of the logits in f32", 4);
    hb_tape_drop(t, sum);
    hb_tape_drop(t, picked);
    hb_tape_drop(t, c->kept);
    uint32_t narrow = narrowed(e, grad, c->rows);
    hb_tape_drop(t, grad);
    return narrow;
}

/* Compiled: no converted copy; the logits themselves are kept. */
static void compiled_forward(struct hb_titan *e, struct hb_titan_chunk *c)
{
    c->kept = e->t->values[c->logits].storage;
    hb_tape_hold(e->t, c->kept);
}

/* One gradient in f32 beside the logits, then in their dtype. */
static uint32_t compiled_backward(struct hb_titan *e, struct hb_titan_chunk *c)
{
    struct hb_tape *t = e->t;
    uint32_t grad = wide(e, c->rows, "loss and its gradient", "gradient of the logits in f32", 4);
    hb_tape_drop(t, c->kept);
    uint32_t narrow = narrowed(e, grad, c->rows);
    hb_tape_drop(t, grad);
    return narrow;
}

static bool is_compiled(const struct hb_titan *e)
{
    return e->spec->loss.kernel == HB_LOSS_COMPILED || (e->tune && e->spec->runtime.compile);
}

static void chunk_forward(struct hb_titan *e, struct hb_titan_chunk *c)
{
    if (c->by_sequence)
        hb_titan_log_probabilities(e, c);
    else if (is_compiled(e))
        compiled_forward(e, c);
    else if (e->ways > 1)
        parallel_forward(e, c);
    else
        eager_forward(e, c);
}

static void chunk_backward(struct hb_titan *e, struct hb_titan_chunk *c)
{
    e->t->values[c->logits].grad = c->by_sequence   ? hb_titan_back_log_probabilities(e, c)
                                   : is_compiled(e) ? compiled_backward(e, c)
                                   : e->ways > 1    ? parallel_backward(e, c)
                                                    : eager_backward(e, c);
}

/* It has run with the head already. */
static bool has_run(const struct hb_titan *e)
{
    return e->spec->loss.kernel == HB_LOSS_LINEAR || e->by_chunk;
}

void hb_titan_loss(struct hb_titan *e)
{
    if (has_run(e))
        return;
    for (int64_t i = 0; i < e->chunk_count; i++)
        chunk_forward(e, &e->chunks[i]);
    for (int64_t i = 0; i < e->chunk_count; i++)
        drop_logits(e, &e->chunks[i]);
}

void hb_titan_back_loss(struct hb_titan *e)
{
    for (int64_t i = e->chunk_count - 1; i >= 0 && !has_run(e); i--)
        chunk_backward(e, &e->chunks[i]);
}

/* --- head and loss, chunk by chunk --- */

/* A pipeline keeps the norm's gradient of the microbatches before until then. */
static void reduce_head(struct hb_titan *e)
{
    if (e->norm_alone.weights->grad == HB_NONE)
        hb_fsdp_reduce(&e->fsdp, &e->head_alone, NULL);
    else
        hb_fsdp_reduce(&e->fsdp, &e->last, &e->head_alone);
}

/* One chunk there and back; `held`: logits that the program's name for them holds. */
static void run_chunk(struct hb_titan *e, struct hb_titan_chunk *c, uint32_t h, uint32_t *held)
{
    struct hb_tape *t = e->t;
    uint32_t first = t->node_count;
    c->in = hb_tape_value(t, t->values[h].storage);
    run_logits(e, c, e->head_alone.weights);
    hb_tape_drop(t, *held);
    *held = t->values[c->logits].storage;
    chunk_forward(e, c);
    chunk_backward(e, c);
    hb_tape_back(t, first);
    if (c == &e->chunks[e->chunk_count - 1])
        reduce_head(e);
    uint32_t grad = t->values[c->in].grad;
    hb_tape_drop(t, hb_ops_work(t, "to f32", "gradient of a chunk's hidden states",
                                2 * hb_tape_bytes(t, grad)));
    hb_tape_drop(t, grad);
}

/* Returns logits that are held yet. */
static uint32_t run_all_chunks(struct hb_titan *e, uint32_t h)
{
    struct hb_weight *head = e->head_alone.weights;
    uint32_t logits = HB_NONE;
    head->wide = head->each_wide = e->fsdp.reduce_bytes > 2;
    for (int64_t i = 0; i < e->chunk_count; i++)
        run_chunk(e, &e->chunks[i], h, &logits);
    head->wide = head->each_wide = false;
    return logits;
}

/* torchtitan's ChunkedLossWrapper (components/loss.py, b5bcd76): the model ends with its last norm,
 * whose unit is given back, but the first time; the head, whole again, and the loss run there and
 * back by themselves, gradients of the hidden states put together in f32. A tied table is reduced
 * once as the head, and again behind the embedding's pass backwards. */
static void run_by_chunk(struct hb_titan *e, uint32_t h)
{
    struct hb_tape *t = e->t;
    struct hb_unit *last = e->has_root ? &e->root : &e->last;
    int64_t d = e->spec->model.d_model;
    t->phase = HB_PHASE_LOSS;
    if (!last->keeps)
        hb_fsdp_reshard(&e->fsdp, last);
    hb_fsdp_forward_end(&e->fsdp);
    uint32_t sum = hb_ops_work(t, "zeros_like", "gradient of the last norm's output in f32",
                               hb_tape_size(t, e->tokens, d, 4));
    hb_fsdp_unshard(&e->fsdp, last);
    hb_fsdp_wait_unshard(&e->fsdp, last);
    uint32_t logits = run_all_chunks(e, h);
    hb_fsdp_reshard(&e->fsdp, last);
    last->keeps = false;
    t->values[h].grad = hb_ops_work(t, "to bf16", "gradient of the last norm's output",
                                    hb_tape_size(t, e->tokens, d, 2));
    hb_tape_drop(t, sum);
    hb_tape_drop(t, logits);
    e->hidden = h;
    if (!e->stages)
        hb_tape_drop_value(t, h);
    hb_titan_set_thing(hb_tape_node(t, back_before_last, HB_NONE), e);
}

void hb_titan_head(struct hb_titan *e, uint32_t x)
{
    struct hb_tape *t = e->t;
    int64_t d = e->spec->model.d_model;
    t->where = "";
    if (!e->has_root)
        hb_fsdp_before_forward(&e->fsdp, &e->last);
    if (!e->has_root)
        hb_titan_set_thing(hb_tape_node(t, back_after_last, HB_NONE), e);
    struct hb_weight *w = e->norm;
    uint32_t first = t->node_count;
    uint32_t h = hb_titan_last_norm(e) == HB_NORM_LAYER ? hb_ops_layernorm(t, x, e->rows, w)
                 : hb_titan_norms_fused(e->spec)        ? hb_ops_norm_fused(t, x, e->rows, d, w)
                                                        : hb_ops_norm(t, x, e->rows, w);
    if (e->by_chunk) /* nothing later holds it */
        hb_tape_hold_under(t, first, &e->layers[e->layer_count - 1]);
    hb_titan_unstash(e, NORM_KEEPS); /* it has as many copied, too; they are not left out here */
    hb_tape_drop_value(t, x);
    hb_titan_note_module(e);
    uint32_t whole = hb_titan_gathered(e, h);
    if (e->by_chunk) {
        if (whole != h)
            hb_tape_drop_value(t, h);
        run_by_chunk(e, whole);
        return;
    }
    t->phase = HB_PHASE_LOSS;
    w = e->spec->model.tied_embeddings ? e->end_weights : e->head;
    if (e->spec->loss.kernel == HB_LOSS_LINEAR)
        run_linear_loss(e, whole, w);
    else
        run_chunks(e, whole, w);
    hb_titan_drop_both(t, whole, h);
    hb_titan_note_module(e);
    hb_titan_set_thing(hb_tape_node(t, back_before_last, HB_NONE), e);
    hb_fsdp_forward_end(&e->fsdp);
}

void hb_titan_forget_logits(struct hb_titan *e)
{
    for (int64_t i = 0; i < e->chunk_count; i++)
        hb_tape_drop(e->t, e->chunks[i].held);
}
