/* See titan.h. What a python name holds, and until when, follows torchtitan's model code: a layer's
 * input is let go when its output has taken the name, attention's locals when it returns. */
#include "sim/eager/titan.h"

#include "base/arena.h"
#include "base/size.h"
#include "models/params.h"
#include "sim/eager/fsdp.h"
#include "sim/eager/short.h"

/* Where a layer's checkpoint stands. */
enum mode { MODE_PLAIN, MODE_FULL, MODE_OPS };

enum { W_Q, W_K, W_V, W_O, W_QN, W_KN, W_GATE, W_DOWN, W_UP, W_NORM1, W_NORM2, W_COUNT };

struct titan;

struct layer {
    struct titan *e;
    const struct hb_block *block;
    struct hb_unit unit;
    struct hb_weight weights[W_COUNT];
    struct hb_weight *by_role[W_COUNT]; /* null: not there */
    enum mode mode;
    int64_t at; /* of the model's layers */
    struct hb_kept kept;
    struct hb_unit *before; /* whose gather follows in the backward pass; null */
    uint32_t in;            /* values of the microbatch that runs */
    uint32_t out;
    uint32_t half; /* run again: the residual after attention, the last product */
    uint32_t last;
    int64_t left_out;   /* of a short program: layers of its kind that are not run ... */
    int64_t rest_bytes; /* ... and what each leaves for the backward pass */
};

struct titan {
    struct hb_tape *t;
    const struct hb_spec *spec;
    struct hb_fsdp fsdp;
    struct layer *layers;
    int64_t layer_count;
    struct hb_weight table, norm, head;
    struct hb_weight end_weights[3];
    struct hb_unit first, last, root;
    bool has_root;  /* the ends are the root's own, whole all through */
    int64_t tokens; /* of a microbatch, on the device */
    int64_t rows;   /* of the residual: a part of them under sequence parallelism */
    int64_t ways;   /* tensor axis */
    int64_t microbatch;
    struct hb_short *cut;        /* null: the program is a whole one */
    int64_t left_out_grad_bytes; /* sharded gradients of layers that are not run */
};

/* --- a short program --- */

/* What the layers left out hold between their forward and their backward pass. */
static int64_t left_out_rest(const struct titan *e)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < e->layer_count; i++)
        sum = hb_add_sat(sum, hb_mul_sat(e->layers[i].left_out, e->layers[i].rest_bytes));
    return sum;
}

/* rest: the layers left out have run forwards; grads: they have run backwards, too. */
static void mark(struct titan *e, bool rest, bool grads)
{
    int64_t more = grads ? e->left_out_grad_bytes : 0; /* plain ones are the default stream's */
    if (e->cut)
        hb_short_mark(e->cut, e->t,
                      hb_add_sat(rest ? left_out_rest(e) : 0, e->fsdp.plain ? more : 0),
                      e->fsdp.plain ? 0 : more);
}

/* --- a layer --- */

static struct hb_linear linear(struct layer *l, int role, const char *name, struct hb_kept *kept)
{
    const struct hb_weight *w = l->by_role[role];
    return (struct hb_linear){name, l->e->tokens, w->cols, w->rows, l->by_role[role], kept};
}

static uint32_t rotate(struct layer *l, uint32_t x, const char *name)
{
    const struct hb_attention *a = &l->block->attention;
    if (!a->rope)
        return x;
    if (l->e->spec->runtime.compile)
        return hb_ops_map_fused(l->e->t, x, name);
    return hb_ops_rope(l->e->t, x, l->e->spec->batch.seq * a->head_dim / 2 * 8, name);
}

static void replace(struct hb_tape *t, uint32_t *value, uint32_t by)
{
    if (*value != by)
        hb_tape_drop_value(t, *value);
    *value = by;
}

static uint32_t norm(struct titan *e, uint32_t x, int64_t rows, int64_t width, struct hb_weight *w)
{
    if (e->spec->runtime.compile)
        return hb_ops_norm_fused(e->t, x, rows, width, w);
    return hb_ops_norm(e->t, x, rows, width, w);
}

/* q, k = f(q), f(k): both old ones go once both new ones are there. */
static void norm_heads(struct layer *l, uint32_t *q, uint32_t *k)
{
    const struct hb_attention *a = &l->block->attention;
    struct hb_tape *t = l->e->t;
    if (a->qk_norm == HB_QKN_NONE)
        return;
    int64_t heads = a->heads / l->e->ways, own = hb_div_up(a->kv_heads, l->e->ways);
    uint32_t nq = norm(l->e, *q, l->e->tokens * heads, a->head_dim, l->by_role[W_QN]);
    uint32_t nk = norm(l->e, *k, l->e->tokens * own, a->head_dim, l->by_role[W_KN]);
    replace(t, k, nk);
    replace(t, q, nq);
}

static uint32_t run_attention(struct layer *l, uint32_t x, struct hb_kept *kept)
{
    const struct hb_attention *a = &l->block->attention;
    struct hb_tape *t = l->e->t;
    int64_t own = hb_div_up(a->kv_heads, l->e->ways);
    uint32_t q = hb_ops_linear(t, x, linear(l, W_Q, "q", kept));
    uint32_t k = hb_ops_linear(t, x, linear(l, W_K, "k", kept));
    uint32_t v = hb_ops_linear(t, x, linear(l, W_V, "v", kept));
    norm_heads(l, &q, &k);
    uint32_t rq = rotate(l, q, "q after rope"), rk = rotate(l, k, "k after rope");
    replace(t, &k, rk);
    replace(t, &q, rq);
    if (a->heads != a->kv_heads && !l->e->spec->runtime.compile) {
        int64_t times = a->heads / a->kv_heads;
        replace(t, &k, hb_ops_repeat(t, k, times, own == 1, "k repeated"));
        replace(t, &v, hb_ops_repeat(t, v, times, own == 1, "v repeated"));
    }
    uint32_t o = hb_ops_sdpa(
        t, (struct hb_sdpa){q, k, v, l->e->tokens, a->heads / l->e->ways, a->head_dim, kept});
    uint32_t out = hb_ops_linear(t, o, linear(l, W_O, "attention projected", kept));
    if (l->e->ways > 1) {
        uint32_t part = hb_ops_scatter(t, out, l->e->ways, kept);
        replace(t, &out, part);
    }
    hb_tape_drop_value(t, q);
    hb_tape_drop_value(t, k);
    hb_tape_drop_value(t, v);
    hb_tape_drop_value(t, o);
    return out;
}

static uint32_t normed(struct layer *l, uint32_t x, int role)
{
    return norm(l->e, x, l->e->rows, l->e->spec->model.d_model, l->by_role[role]);
}

static uint32_t gathered(struct titan *e, uint32_t x)
{
    return e->ways > 1 ? hb_ops_gather(e->t, x, e->ways) : x;
}

static void drop_both(struct hb_tape *t, uint32_t a, uint32_t b)
{
    if (a != b)
        hb_tape_drop_value(t, a);
    hb_tape_drop_value(t, b);
}

/* Up to the product that the last weight takes. */
static uint32_t run_mlp(struct layer *l, uint32_t x, struct hb_kept *kept)
{
    struct hb_tape *t = l->e->t;
    uint32_t gate = hb_ops_linear(t, x, linear(l, W_GATE, "mlp gate", kept));
    if (l->e->spec->runtime.compile) {
        uint32_t other = hb_ops_linear(t, x, linear(l, W_UP, "mlp up", kept));
        uint32_t both = hb_ops_gated_fused(t, gate, other);
        hb_tape_drop_value(t, gate);
        hb_tape_drop_value(t, other);
        return both;
    }
    uint32_t act = hb_ops_silu(t, gate);
    hb_tape_drop_value(t, gate);
    uint32_t up = hb_ops_linear(t, x, linear(l, W_UP, "mlp up", kept));
    uint32_t product = hb_ops_mul(t, act, up);
    hb_tape_drop_value(t, act);
    hb_tape_drop_value(t, up);
    return product;
}

static void run_layer(struct layer *l, bool again)
{
    struct hb_tape *t = l->e->t;
    struct hb_kept *kept = l->mode == MODE_OPS ? &l->kept : NULL;
    l->kept.again = again;
    l->kept.next = l->kept.products = 0;
    if (!again)
        l->kept.count = 0;
    uint32_t x = normed(l, l->in, W_NORM1), whole = gathered(l->e, x);
    uint32_t attn = run_attention(l, whole, kept);
    drop_both(t, whole, x);
    l->half = hb_ops_add(t, l->in, attn);
    hb_tape_drop_value(t, attn);
    x = normed(l, l->half, W_NORM2);
    whole = gathered(l->e, x);
    uint32_t product = run_mlp(l, whole, kept);
    if (again) {
        l->last = hb_ops_linear_left_out(t, product, linear(l, W_DOWN, "mlp down", NULL));
        hb_tape_drop_value(t, product);
        drop_both(t, whole, x);
        hb_tape_drop_value(t, l->half);
        return;
    }
    /* Its output is no one's to read: a compiled layer keeps it not (torchao's 8B on eight H100,
     * bf16, every second product: +4.1 % with it, 0 without). */
    if (l->e->spec->runtime.compile)
        kept = NULL;
    uint32_t down = hb_ops_linear(t, product, linear(l, W_DOWN, "mlp down", kept));
    if (l->e->ways > 1)
        replace(t, &down, hb_ops_scatter(t, down, l->e->ways, kept));
    hb_tape_drop_value(t, product);
    drop_both(t, whole, x);
    l->out = hb_ops_add(t, l->half, down);
    hb_tape_drop_value(t, down);
    hb_tape_drop_value(t, l->half);
}

static void back_before(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct layer *l = (struct layer *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    hb_fsdp_before_backward(&l->e->fsdp, &l->unit, l->before);
}

static void back_after(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct layer *l = (struct layer *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    hb_fsdp_after_backward(&l->e->fsdp, &l->unit);
    if (l == &l->e->layers[l->e->layer_count - 1])
        mark(l->e, false, l->e->microbatch > 0);
    if (l == l->e->layers)
        mark(l->e, false, true);
}

/* What needs nothing kept runs before the layer is: the sum's gradient is gathered first. What was
 * kept of it beyond what is taken again goes with the checkpoint. */
static void back_checkpoint(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct layer *l = (struct layer *)(uintptr_t)n->thing;
    uint32_t first = t->node_count, last = grad;
    if (l->e->ways > 1)
        last = hb_ops_gather_storage(t, grad, l->e->ways);
    else
        hb_tape_hold(t, grad);
    t->grad = true;
    l->in = n->in[0];
    run_layer(l, true);
    t->values[l->last].grad = last;
    t->values[l->half].grad = grad;
    hb_tape_back(t, first);
    for (int i = l->kept.next; i < l->kept.count; i++)
        hb_tape_drop(t, l->kept.storages[i]);
    l->kept.count = 0;
}

static void set_thing(struct hb_node *n, const void *thing)
{
    if (n)
        n->thing = thing;
}

static void run_checkpointed(struct layer *l)
{
    struct hb_tape *t = l->e->t;
    t->grad = false;
    run_layer(l, false);
    t->grad = true;
    struct hb_node *n = hb_tape_node(t, back_checkpoint, l->out);
    n->in[0] = l->in;
    n->thing = l;
    hb_tape_save(t, n, t->values[l->in].storage);
}

static uint32_t run_unit(struct layer *l, uint32_t x)
{
    struct hb_tape *t = l->e->t;
    int64_t before = l->left_out ? hb_tape_held_bytes(t) : 0;
    t->where = l->unit.where;
    l->in = x;
    if (l == &l->e->layers[l->e->layer_count - 1])
        mark(l->e, true, l->e->microbatch > 0);
    hb_fsdp_before_forward(&l->e->fsdp, &l->unit);
    set_thing(hb_tape_node(t, back_after, HB_NONE), l);
    if (l->mode == MODE_PLAIN)
        run_layer(l, false);
    else
        run_checkpointed(l);
    set_thing(hb_tape_node(t, back_before, HB_NONE), l);
    hb_fsdp_after_forward(&l->e->fsdp, &l->unit);
    hb_tape_drop_value(t, x);
    if (l->left_out)
        l->rest_bytes = hb_tape_held_bytes(t) - before;
    return l->out;
}

/* --- the ends --- */

static uint32_t plain(struct hb_tape *t, const char *op, const char *name, int64_t bytes)
{
    return hb_tape_make(
        t, (struct hb_made){.op = op, .name = name, .bytes = bytes, .category = HB_CAT_WORKING});
}

static void back_embedding(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct titan *e = (struct titan *)(uintptr_t)n->thing;
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

static uint32_t embed(struct titan *e)
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
    set_thing(hb_tape_node(t, back_embedding, x), e);
    if (!e->has_root)
        hb_fsdp_after_forward(&e->fsdp, &e->first);
    return x;
}

static void back_before_last(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct titan *e = (struct titan *)(uintptr_t)n->thing;
    struct layer *l = &e->layers[e->layer_count - 1];
    (void)grad;
    t->phase = HB_PHASE_BACKWARD;
    hb_fsdp_before_backward(&e->fsdp, e->has_root ? &e->root : &e->last, &l->unit);
}

static void back_after_last(struct hb_tape *t, struct hb_node *n, uint32_t grad)
{
    struct titan *e = (struct titan *)(uintptr_t)n->thing;
    (void)t;
    (void)grad;
    hb_fsdp_after_backward(&e->fsdp, &e->last);
}

static uint32_t run_head(struct titan *e, uint32_t x)
{
    struct hb_tape *t = e->t;
    int64_t d = e->spec->model.d_model;
    t->where = "";
    if (!e->has_root)
        hb_fsdp_before_forward(&e->fsdp, &e->last);
    if (!e->has_root)
        set_thing(hb_tape_node(t, back_after_last, HB_NONE), e);
    struct hb_weight *w = e->has_root ? &e->root.weights[1] : &e->last.weights[0];
    uint32_t h = hb_ops_norm(t, x, e->rows, d, w);
    hb_tape_drop_value(t, x);
    uint32_t whole = gathered(e, h);
    t->phase = HB_PHASE_LOSS;
    w = e->spec->model.tied_embeddings ? &e->end_weights[0] : w + 1;
    uint32_t logits =
        hb_ops_linear(t, whole, (struct hb_linear){"logits", e->tokens, d, w->rows, w, NULL});
    t->p->bufs[t->storages[t->values[logits].storage].buf].category = HB_CAT_LOGITS;
    drop_both(t, whole, h);
    set_thing(hb_tape_node(t, back_before_last, HB_NONE), e);
    hb_fsdp_forward_end(&e->fsdp);
    return logits;
}

/* --- the loss --- */

static uint32_t wide(struct titan *e, const char *op, const char *name, int64_t width)
{
    int64_t bytes = hb_tape_size(e->t, e->tokens, e->head.rows, width);
    return hb_tape_make(e->t, (struct hb_made){op, name, bytes, HB_CAT_LOGITS, 0});
}

/* cross_entropy on f32 logits keeps the log-probabilities alone. */
static uint32_t eager_loss(struct titan *e, uint32_t logits)
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
static uint32_t parallel_loss(struct titan *e, uint32_t logits)
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
static uint32_t compiled_loss(struct titan *e, uint32_t logits)
{
    struct hb_tape *t = e->t;
    uint32_t grad = wide(e, "loss and its gradient", "gradient of the logits in f32", 4);
    hb_tape_drop_value(t, logits);
    uint32_t narrow = wide(e, "to bf16", "gradient of the logits", 2);
    hb_tape_drop(t, grad);
    return narrow;
}

static uint32_t run_loss(struct titan *e, uint32_t logits)
{
    if (e->spec->loss.kernel == HB_LOSS_COMPILED)
        return compiled_loss(e, logits);
    return e->ways > 1 ? parallel_loss(e, logits) : eager_loss(e, logits);
}

/* --- the step --- */

static void run_microbatch(struct titan *e)
{
    struct hb_tape *t = e->t;
    uint32_t tokens =
        hb_tape_make(t, (struct hb_made){"zeros", "tokens", 8 * e->tokens, HB_CAT_INPUTS, 0});
    uint32_t labels =
        hb_tape_make(t, (struct hb_made){"zeros", "labels", 8 * e->tokens, HB_CAT_INPUTS, 0});
    t->phase = HB_PHASE_FORWARD;
    t->grad = true;
    if (e->has_root)
        hb_fsdp_before_forward(&e->fsdp, &e->root);
    uint32_t x = embed(e);
    for (int64_t i = 0; i < e->layer_count; i++)
        x = run_unit(&e->layers[i], x);
    uint32_t logits = run_head(e, x);
    uint32_t grad = run_loss(e, logits);
    t->values[logits].grad = grad;
    hb_tape_back(t, 0);
    t->where = "";
    hb_fsdp_after_backward(&e->fsdp, e->has_root ? &e->root : &e->first);
    hb_fsdp_backward_end(&e->fsdp);
    hb_tape_drop(t, tokens);
    hb_tape_drop(t, labels);
    t->value_count = 0;
}

static void free_gradients(struct titan *e)
{
    struct hb_unit *ends[] = {&e->first, &e->last, &e->root};
    for (int64_t i = 0; i < e->layer_count + 3; i++) {
        struct hb_unit *u = i < 3 ? ends[i] : &e->layers[i - 3].unit;
        hb_tape_drop(e->t, u->sharded);
        u->sharded = HB_NONE;
        for (int w = 0; e->fsdp.plain && w < u->count; w++) {
            hb_tape_drop(e->t, u->weights[w].grad);
            u->weights[w].grad = HB_NONE;
        }
    }
}

/* Each unit's weights, in the order of the model's parameters. */
static void each_weight(struct titan *e, void (*visit)(struct titan *, const struct hb_weight *))
{
    visit(e, &e->table);
    for (int64_t i = 0; i < e->layer_count; i++) {
        e->t->where = e->layers[i].unit.where;
        for (int w = 0; w < e->layers[i].unit.count; w++)
            visit(e, &e->layers[i].unit.weights[w]);
    }
    e->t->where = "";
    visit(e, &e->norm);
    if (!e->spec->model.tied_embeddings)
        visit(e, &e->head);
}

static int64_t shard_bytes(struct titan *e, const struct hb_weight *w, int64_t width)
{
    return hb_tape_size(e->t, hb_fsdp_rows(&e->fsdp, w), w->cols, width);
}

static void add_param(struct titan *e, const struct hb_weight *w)
{
    hb_tape_argument(e->t, w->name, shard_bytes(e, w, e->fsdp.param_bytes), HB_CAT_PARAMS);
}

static void add_states(struct titan *e, const struct hb_weight *w)
{
    const struct hb_optim *o = &e->spec->optimizer;
    for (int i = 0; i < o->moment_count && i < 2; i++) {
        int64_t bits = hb_dtype_bits(o->moments[i]);
        int64_t bytes = shard_bytes(e, w, bits < 8 ? 1 : bits / 8);
        uint32_t s =
            hb_tape_make(e->t, (struct hb_made){"zeros_like", i ? "second moment" : "first moment",
                                                bytes, HB_CAT_OPTIMIZER, 0});
        hb_tape_keep(e->t, s);
    }
}

/* Elements of the weights of a layer on the rank. */
static int64_t part_count(struct titan *e, const struct layer *l)
{
    int64_t sum = 0;
    for (int w = 0; w < l->unit.count; w++)
        sum = hb_add_sat(sum, shard_bytes(e, &l->weights[w], 1));
    return sum;
}

/* Elements of the layers that are not run. */
static int64_t left_out_count(struct titan *e)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < e->layer_count; i++)
        sum = hb_add_sat(
            sum, hb_tape_size(e->t, part_count(e, &e->layers[i]), e->layers[i].left_out, 1));
    return sum;
}

/* DistributedDataParallel copies gradients into buckets to reduce them in: of 25 MiB or more, made
 * once, of the parameters from the last to the first; the last made has 1 MiB
 * (torch/csrc/distributed/c10d/reducer.cpp, gradient_as_bucket_view false). Together they are as
 * large as the gradients. */
static void add_buckets(struct titan *e, int64_t left_out)
{
    enum { BUCKET_BYTES = 25 << 20 };
    int64_t elements = left_out;
    struct hb_weight *ends[] = {&e->table, &e->norm, &e->head};
    for (int i = 0; i < (e->spec->model.tied_embeddings ? 2 : 3); i++)
        elements = hb_add_sat(elements, shard_bytes(e, ends[i], 1));
    for (int64_t i = 0; i < e->layer_count; i++)
        elements = hb_add_sat(elements, part_count(e, &e->layers[i]));
    int64_t bytes = hb_tape_size(e->t, elements, e->fsdp.reduce_bytes, 1);
    for (int64_t left = bytes; left > 0; left -= BUCKET_BYTES)
        hb_tape_argument(e->t, "DDP's bucket", left < BUCKET_BYTES ? left : BUCKET_BYTES,
                         HB_CAT_COMMUNICATION);
}

static void add_all_params(struct titan *e)
{
    int64_t more = left_out_count(e);
    each_weight(e, add_param);
    if (e->fsdp.plain && e->spec->mesh[HB_AX_DATA] > 1)
        add_buckets(e, more);
    e->left_out_grad_bytes =
        hb_tape_size(e->t, more, e->spec->optimizer.in_backward ? 0 : e->fsdp.reduce_bytes, 1);
    if (more)
        hb_tape_argument(e->t, "weights of other layers",
                         hb_tape_size(e->t, more, e->fsdp.param_bytes, 1), HB_CAT_PARAMS);
}

static void add_all_states(struct titan *e)
{
    struct hb_weight rest = {
        "other layers", hb_mul_sat(left_out_count(e), e->fsdp.ranks), 1, HB_NONE, HB_NONE, false,
        false};
    each_weight(e, add_states);
    if (rest.rows)
        add_states(e, &rest);
}

static void run_step(struct titan *e, bool first)
{
    /* The third microbatch allocates as the second does. */
    int64_t count = e->spec->batch.accumulate < 3 ? e->spec->batch.accumulate : 3;
    for (e->microbatch = 0; e->microbatch < count; e->microbatch++) {
        mark(e, false, e->microbatch > 0);
        run_microbatch(e);
    }
    e->t->phase = HB_PHASE_OPTIMIZER;
    if (first)
        add_all_states(e);
    free_gradients(e);
    mark(e, false, false);
}

/* --- building it --- */

static void add_weight(struct layer *l, int role, const char *name, int64_t rows, int64_t cols)
{
    struct hb_weight *w = &l->weights[l->unit.count++];
    *w = (struct hb_weight){name, rows, cols, HB_NONE, HB_NONE, false, false};
    l->by_role[role] = w;
}

static void add_weights(struct layer *l)
{
    const struct hb_attention *a = &l->block->attention;
    int64_t d = l->e->spec->model.d_model, ways = l->e->ways;
    int64_t q = a->heads * a->head_dim / ways;
    int64_t kv = hb_div_up(a->kv_heads, ways) * a->head_dim;
    int64_t ff = hb_div_up(l->block->mlp.d_ff, ways);
    add_weight(l, W_Q, "w_q", q, d);
    add_weight(l, W_K, "w_k", kv, d);
    add_weight(l, W_V, "w_v", kv, d);
    add_weight(l, W_O, "w_o", d, q);
    if (a->qk_norm != HB_QKN_NONE) {
        add_weight(l, W_QN, "norm of q", a->head_dim, 1);
        add_weight(l, W_KN, "norm of k", a->head_dim, 1);
    }
    add_weight(l, W_GATE, "w_gate", ff, d);
    add_weight(l, W_DOWN, "w_down", d, ff);
    add_weight(l, W_UP, "w_up", ff, d);
    add_weight(l, W_NORM1, "norm before attention", d, 1);
    add_weight(l, W_NORM2, "norm before mlp", d, 1);
}

static enum mode find_mode(const struct titan *e, const struct hb_block *b, int64_t at)
{
    if (b->remat.policy == HB_POLICY_NONE || at % e->spec->remat.every != 0)
        return MODE_PLAIN;
    return b->remat.policy == HB_POLICY_FULL || !b->remat.save ? MODE_FULL : MODE_OPS;
}

/* Of a short program those are run whose kind is new, and the last two; the others count at the
 * first of their kind. */
static bool is_run(struct titan *e, const struct layer *l, int64_t all)
{
    if (!e->cut || l->at >= all - 2)
        return true;
    for (int64_t i = 0; i < e->layer_count; i++)
        if (e->layers[i].block == l->block && e->layers[i].mode == l->mode) {
            e->layers[i].left_out++;
            return false;
        }
    return true;
}

static void build_layers(struct titan *e)
{
    const struct hb_model *m = &e->spec->model;
    int64_t all = 0, at = 0;
    for (int i = 0; i < m->block_count; i++)
        all += m->blocks[i].repeat;
    e->layers = hb_arena_alloc(e->t->arena, (size_t)all, sizeof *e->layers);
    for (int i = 0; i < m->block_count; i++)
        for (int64_t k = 0; k < m->blocks[i].repeat; k++, at++) {
            struct layer l = {.e = e, .block = &m->blocks[i], .at = at};
            l.mode = find_mode(e, l.block, at);
            if (is_run(e, &l, all))
                e->layers[e->layer_count++] = l;
        }
    for (int64_t i = 0; i < e->layer_count; i++) {
        struct layer *l = &e->layers[i];
        l->unit = (struct hb_unit){
            .where = hb_arena_printf(e->t->arena, "layers[%lld].", (long long)l->at),
            .weights = l->weights,
            .keeps = !e->spec->sharding.reshard_after_forward,
            .gathered = HB_NONE,
            .sharded = HB_NONE};
        l->before = i ? &e->layers[i - 1].unit : e->has_root ? NULL : &e->first;
        add_weights(l);
    }
    if (e->has_root)
        e->layers[e->layer_count - 1].unit.keeps = true;
}

static void build_ends(struct titan *e)
{
    int64_t d = e->spec->model.d_model, vocab = e->spec->model.vocab;
    if (e->spec->sharding.vocab_over_tensor)
        vocab = hb_div_up(vocab, e->ways);
    e->table = (struct hb_weight){"embedding", vocab, d, HB_NONE, HB_NONE, false, false};
    e->norm = (struct hb_weight){"last norm", d, 1, HB_NONE, HB_NONE, false, false};
    e->head = (struct hb_weight){"head", vocab, d, HB_NONE, HB_NONE, false, false};
    e->end_weights[0] = e->table;
    e->end_weights[1] = e->norm;
    e->end_weights[2] = e->head;
    struct hb_unit none = {.where = "", .gathered = HB_NONE, .sharded = HB_NONE};
    e->first = e->last = e->root = none;
    if (e->has_root) {
        e->root.weights = e->end_weights;
        e->root.count = 3;
        e->root.keeps = true;
        return;
    }
    e->first.weights = e->end_weights;
    e->first.count = 1;
    e->first.keeps = !e->spec->sharding.reshard_after_forward;
    e->last.weights = e->end_weights + 1;
    e->last.count = 2;
    e->last.keeps = true;
}

static void set_sizes(struct titan *e)
{
    const struct hb_spec *s = e->spec;
    int64_t copies = s->mesh[HB_AX_DATA] * s->mesh[HB_AX_FSDP] * s->mesh[HB_AX_EXPERT];
    int64_t parts = hb_mul_sat(copies, s->batch.accumulate);
    e->ways = s->mesh[HB_AX_TENSOR];
    e->tokens = hb_tape_size(e->t, hb_div_up(s->batch.global, parts),
                             hb_div_up(s->batch.seq, s->mesh[HB_AX_SEQUENCE]), 1);
    e->rows = hb_div_up(e->tokens, e->ways);
}

/* Until the update, or with the optimizer in the backward pass (a hook of each parameter's) no
 * longer than it takes; but one that two layers share waits for both. */
static void keep_gradients(struct titan *e)
{
    bool at_once = e->spec->optimizer.in_backward;
    for (int i = 0; i < 3; i++) {
        bool shared = i == 0 && e->spec->model.tied_embeddings;
        e->end_weights[i].keeps_grad = true;
        e->end_weights[i].updates = at_once && !shared;
    }
    for (int64_t i = 0; i < e->layer_count; i++)
        for (int w = 0; w < e->layers[i].unit.count; w++) {
            e->layers[i].weights[w].keeps_grad = true;
            e->layers[i].weights[w].updates = at_once;
        }
}

void hb_titan_lower(struct hb_tape *t, const struct hb_spec *spec, struct hb_short *cut)
{
    struct titan *e = hb_arena_alloc(t->arena, 1, sizeof *e);
    *e = (struct titan){.t = t, .spec = spec, .has_root = spec->runtime.wrap_root, .cut = cut};
    int64_t ranks = spec->mesh[HB_AX_FSDP];
    if (spec->sharding.states_over_sequence)
        ranks *= spec->mesh[HB_AX_SEQUENCE];
    e->fsdp = (struct hb_fsdp){.t = t,
                               .ranks = ranks,
                               .param_bytes = hb_dtype_bits(spec->precision.params) / 8,
                               .reduce_bytes = spec->precision.grads == HB_GRADS_BF16 ? 2 : 4,
                               .last_gather = HB_NONE,
                               .last_reduced = HB_NONE};
    e->fsdp.plain = ranks == 1;
    if (e->fsdp.plain) /* gradients are as their parameters */
        e->fsdp.reduce_bytes = e->fsdp.param_bytes;
    set_sizes(e);
    build_ends(e);
    build_layers(e);
    if (e->fsdp.plain)
        keep_gradients(e);
    add_all_params(e);
    hb_tape_argument(t, "table of rope",
                     spec->batch.seq * spec->model.blocks[0].attention.head_dim / 2 * 8,
                     HB_CAT_PARAMS);
    run_step(e, true);
    hb_tape_end(t);
    t->p->caching.second_op = t->p->op_count;
    run_step(e, false);
    hb_tape_end(t);
}
