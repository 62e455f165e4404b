/* See titan_parts.h: a mixture of experts as torchtitan has it (models/common/moe.py and
 * token_dispatcher.py): each token's experts by a router in f32, its copies sorted by expert, sent
 * to the ranks that have them and sorted again, through grouped products, and all the way back.
 * Rows of a rank's experts are those of balanced routing: as many as it sends.
 *
 *   tokens ─ router ─ sorted copies ─ all-to-all ─ sorted again ─ experts ─┐
 *   sum ◄─ scores ◄─ all-to-all ◄─ order of the sender ◄───────────────────┘
 *
 * A python name holds its tensor until its function returns: the copies until they are sent and
 * sorted, what goes into the experts and what comes out of them until all is summed. Counts by
 * expert, which are a few hundred bytes, are left out. */
#include "base/size.h"
#include "sim/eager/titan_parts.h"

struct routed {
    uint32_t scores;   /* value: of each copy, sorted */
    uint32_t indices;  /* storage: the token of each copy, sorted */
    uint32_t weights;  /* storage: scores of the chosen, by token */
    uint32_t all;      /* storage: scores of all experts */
    uint32_t chosen;   /* storage: the experts of each token */
    uint32_t map;      /* storage: who goes where */
    uint32_t permuted; /* storage: where each row received goes; HB_NONE */
};

/* --- the router --- */

static int64_t experts_of(const struct hb_titan_layer *l)
{
    return l->block->moe.experts;
}

/* Tokens that the rank routes. */
static int64_t rows_of(const struct hb_titan_layer *l)
{
    return l->parted ? l->e->tokens : l->e->rows;
}

int64_t hb_titan_chosen(const struct hb_titan_layer *l)
{
    return hb_tape_size(l->e->t, rows_of(l), l->block->moe.top_k, 1);
}

enum { R_WEIGHT, R_INPUT };

static uint32_t narrowed(struct hb_tape *t, uint32_t wide, const char *name)
{
    uint32_t narrow = hb_ops_work(t, "to bf16", name, hb_tape_bytes(t, wide) / 2);
    hb_tape_drop(t, wide);
    return narrow;
}

static uint32_t router_input_back(struct hb_tape *t, const struct hb_taped *n)
{
    return hb_ops_work(t, "mm, input's gradient", "gradient of the router's input",
                       hb_tape_size(t, n->number[0], n->number[1], n->number[4]));
}

/* addmm's gradients: the input's is first. */
static void back_biased_router(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_weight *w = (struct hb_weight *)(uintptr_t)n->thing;
    int64_t each = n->number[4];
    uint32_t dx = router_input_back(t, n);
    uint32_t dw = hb_ops_work(t, "mm, weight's gradient", "gradient of the router",
                              hb_tape_size(t, n->number[2], n->number[1], each));
    uint32_t db = hb_ops_work(t, "sum", w->bias->name, n->number[2] * each);
    hb_tape_drop(t, grad);
    hb_ops_give_up_all(t, n);
    if (each > 2) {
        db = narrowed(t, db, "gradient of the router's bias in bf16");
        dw = narrowed(t, dw, "gradient of the router in bf16");
        dx = narrowed(t, dx, "gradient of the router's input in bf16");
    }
    hb_ops_weight_grad(t, w->bias, db);
    hb_ops_weight_grad(t, w, dw);
    hb_tape_give(t, n->in[0], dx);
}

/* numbers: rows, width, experts, one group, bytes of an element. */
static void back_router(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    int64_t each = n->number[4];
    uint32_t dw = HB_NONE;
    if (t->split)
        hb_ops_owe(t, n, (struct hb_owed){.grad = grad, .wide = each > 2, .places = UINT8_MAX});
    else
        dw = hb_ops_work(t, "mm, weight's gradient", "gradient of the router",
                         hb_tape_size(t, n->number[2], n->number[1], each));
    uint32_t dx = router_input_back(t, n);
    hb_tape_drop(t, grad);
    if (t->split)
        t->split->with = n->thing;
    hb_tape_give_up(t, n, R_WEIGHT);
    hb_tape_give_up(t, n, R_INPUT);
    if (t->split)
        t->split->with = NULL;
    if (each > 2 && !t->split)
        dw = narrowed(t, dw, "gradient of the router in bf16");
    if (each > 2)
        dx = narrowed(t, dx, "gradient of the router's input in bf16");
    if (!t->split)
        hb_ops_weight_grad(t, (struct hb_weight *)(uintptr_t)n->thing, dw);
    hb_tape_give(t, n->in[0], dx);
}

enum { S_SORTED, S_CHOSEN, S_SCORES };

/* From the gradient of the sorted scores to the logits'. numbers: copies, bytes of all scores, of
 * the logits. */
static void back_scores(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    int64_t each = 4 * n->number[0], all = n->number[1];
    uint32_t by_token = hb_ops_work(t, "index, backward", "gradient of the scores", each);
    hb_tape_drop(t, grad);
    hb_tape_give_up(t, n, S_SORTED);
    uint32_t scaled = hb_ops_work(t, "mul, backward", "gradient before the scale", each);
    hb_tape_drop(t, by_token);
    uint32_t spread = hb_ops_work(t, "gather, backward", "gradient of all scores", all);
    hb_tape_drop(t, scaled);
    hb_tape_give_up(t, n, S_CHOSEN);
    uint32_t logits = hb_ops_work(t, "sigmoid, backward", "gradient of the router's logits", all);
    hb_tape_drop(t, spread);
    hb_tape_give_up(t, n, S_SCORES);
    if (n->number[2] < all)
        logits = narrowed(t, logits, "gradient of the router's logits");
    hb_tape_give(t, n->in[0], logits);
}

/* A choice is kept, so that it is the same when a layer is run again (SelectiveAC's list). */
static uint32_t choose(struct hb_titan_layer *l, uint32_t scores, struct hb_kept *kept,
                       uint32_t *out_best)
{
    struct hb_tape *t = l->e->t;
    int64_t copies = hb_titan_chosen(l);
    uint32_t biased =
        hb_ops_work(t, "add", "scores with the balancing bias", hb_tape_bytes(t, scores));
    *out_best = hb_ops_make_or_take(
        t, kept, (struct hb_made){"topk", "best scores", 4 * copies, HB_CAT_WORKING, 0});
    uint32_t indices = hb_ops_make_or_take(
        t, kept, (struct hb_made){"topk", "chosen experts", 8 * copies, HB_CAT_WORKING, 0});
    hb_tape_drop(t, biased);
    return indices;
}

/* The value of the router's logits, and a storage of them in f32, in which a wide product is. One
 * with a bias is an addmm, which selective checkpoints keep. */
static uint32_t run_router(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept,
                           uint32_t *out_logits)
{
    struct hb_tape *t = l->e->t;
    int64_t rows = rows_of(l), d = l->e->spec->model.d_model;
    int64_t all = hb_tape_size(t, rows, experts_of(l), 4);
    bool wide = l->block->moe.router_dtype == HB_DT_F32;
    uint32_t saved[] = {[R_WEIGHT] = HB_NONE, [R_INPUT] = t->values[x].storage};
    if (wide) {
        saved[R_INPUT] =
            hb_ops_work(t, "to f32", "router's input in f32", hb_tape_size(t, rows, d, 4));
        saved[R_WEIGHT] = hb_ops_work(t, "to f32", "router's weight in f32",
                                      hb_tape_size(t, experts_of(l), d, 4));
    } else {
        hb_tape_hold(t, saved[R_INPUT]);
    }
    const struct hb_weight *w = l->by_role[HB_TITAN_W_ROUTER];
    struct hb_made made = {w->bias ? "addmm" : "mm", "router's logits", wide ? all : all / 2,
                           HB_CAT_WORKING, 0};
    *out_logits = hb_ops_make_or_take(t, w->bias ? kept : NULL, made);
    uint32_t value = hb_tape_value(t, *out_logits);
    struct hb_taped *n = hb_tape_node(t, w->bias ? back_biased_router : back_router, value);
    if (n) {
        n->in[0] = x;
        n->number[0] = rows;
        n->number[1] = d;
        n->number[2] = experts_of(l);
        n->number[3] = 1;
        n->number[4] = wide ? 4 : 2;
        n->thing = w;
        hb_tape_save_in_order(t, n, saved, 2);
    }
    hb_tape_drop(t, saved[R_INPUT]);
    hb_tape_drop(t, saved[R_WEIGHT]);
    if (!wide) {
        uint32_t converted = hb_ops_work(t, "to f32", "router's logits in f32", all);
        hb_tape_drop(t, *out_logits);
        *out_logits = converted;
    }
    return value;
}

/* The scores are added to by a bias that balances, not by it weighed; a map of who goes where is
 * made to count. */
static void route(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept, struct routed *r)
{
    struct hb_tape *t = l->e->t;
    int64_t copies = hb_titan_chosen(l), all = hb_tape_size(t, rows_of(l), experts_of(l), 4);
    uint32_t best, in_f32, logits = run_router(l, x, kept, &in_f32);
    r->all = hb_ops_work(t, "sigmoid", "router's scores", all);
    hb_tape_drop(t, in_f32);
    struct hb_taped *n = hb_tape_node(t, back_scores, HB_NONE);
    uint32_t at = n ? t->node_count - 1 : 0;
    uint32_t indices = choose(l, r->all, kept, &best);
    uint32_t picked = hb_ops_work(t, "gather", "scores of the chosen", 4 * copies);
    r->weights = hb_ops_work(t, "mul", "scores of the chosen, scaled", 4 * copies);
    hb_tape_drop(t, picked);
    hb_tape_drop(t, best);
    r->map = hb_ops_work(t, "zeros_like", "map of the chosen", all / 4);
    hb_tape_drop(t, hb_ops_work(t, "sort", "chosen experts, sorted", 8 * copies));
    uint32_t order = hb_ops_work(t, "sort", "order of the copies", 8 * copies);
    r->scores =
        hb_tape_new(t, (struct hb_made){"index", "scores, sorted", 4 * copies, HB_CAT_WORKING, 0});
    r->indices = hb_ops_work(t, "floor_divide", "token of each copy", 8 * copies);
    if (n) {
        const uint32_t saved[] = {[S_SORTED] = order, [S_CHOSEN] = indices, [S_SCORES] = r->all};
        n = &t->nodes[at];
        n->out = r->scores;
        n->in[0] = logits;
        n->number[0] = copies;
        n->number[1] = all;
        n->number[2] = l->block->moe.router_dtype == HB_DT_F32 ? all : all / 2;
        n->under = l;
        hb_tape_save_in_order(t, n, saved, (int)(sizeof saved / sizeof *saved));
    }
    hb_tape_drop(t, order);
    r->chosen = indices;
}

/* --- copies to the experts' ranks and back --- */

/* numbers: bytes of the gradient that the copies come together in. */
static void back_copies(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t dx = hb_ops_work(t, "index, backward", "gradient of what was copied", n->number[0]);
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
}

/* x[indices], which are kept. */
static uint32_t copy_rows(struct hb_titan_layer *l, uint32_t x, uint32_t indices, const char *name)
{
    struct hb_tape *t = l->e->t;
    int64_t bytes = hb_tape_size(t, hb_titan_chosen(l), l->e->spec->model.d_model, 2);
    uint32_t out = hb_tape_value(t, hb_ops_work(t, "index", name, bytes));
    struct hb_taped *n = hb_tape_node(t, back_copies, out);
    if (n) {
        n->in[0] = x;
        n->number[0] = hb_tape_bytes(t, t->values[x].storage);
    }
    hb_tape_save(t, n, indices);
    return out;
}

static void back_exchange(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t dx =
        hb_ops_work(t, "all-to-all over expert", "gradient sent back", hb_tape_bytes(t, grad));
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
}

static uint32_t exchange(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept,
                         const char *name)
{
    struct hb_tape *t = l->e->t;
    int64_t bytes = hb_tape_bytes(t, t->values[x].storage);
    uint32_t out =
        hb_tape_value(t, hb_ops_make_or_take(t, kept,
                                             (struct hb_made){"all-to-all over expert", name, bytes,
                                                              HB_CAT_WORKING, 0}));
    struct hb_taped *n = hb_tape_node(t, back_exchange, out);
    if (n)
        n->in[0] = x;
    return out;
}

/* Where each row received goes: from ranks' order to experts'. */
static uint32_t find_order(struct hb_titan_layer *l)
{
    struct hb_tape *t = l->e->t;
    int64_t bytes = 8 * hb_titan_chosen(l);
    uint32_t repeats = hb_ops_work(t, "repeat_interleave", "segment of each row", bytes);
    uint32_t segments = hb_ops_work(t, "index_select", "segment of each row", bytes);
    hb_tape_drop(t, repeats);
    uint32_t starts = hb_ops_work(t, "index", "start of its segment", bytes);
    uint32_t range = hb_ops_work(t, "arange", "rows", bytes);
    uint32_t sum = hb_ops_work(t, "add", "start and row", bytes);
    hb_tape_drop(t, starts);
    hb_tape_drop(t, range);
    uint32_t ends = hb_ops_work(t, "index", "start where it goes", bytes);
    uint32_t order = hb_ops_work(t, "sub", "where each row received comes from", bytes);
    hb_tape_drop(t, sum);
    hb_tape_drop(t, ends);
    hb_tape_drop(t, segments);
    return order;
}

static void back_order(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t dx = hb_ops_work(t, "index", "gradient in experts' order", hb_tape_bytes(t, grad));
    hb_tape_drop(t, grad);
    hb_tape_give(t, n->in[0], dx);
}

/* out[order] = x, into a new one. */
static uint32_t order_back(struct hb_titan_layer *l, uint32_t x, uint32_t order)
{
    struct hb_tape *t = l->e->t;
    int64_t bytes = hb_tape_bytes(t, t->values[x].storage);
    uint32_t out = hb_tape_value(t, hb_ops_work(t, "new_empty", "experts' output, by rank", bytes));
    struct hb_taped *n = hb_tape_node(t, back_order, out);
    if (n)
        n->in[0] = x;
    hb_tape_save(t, n, order);
    return out;
}

static uint32_t dispatch(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept,
                         struct routed *r)
{
    struct hb_tape *t = l->e->t;
    uint32_t copies = copy_rows(l, x, r->indices, "copies, sorted by expert");
    hb_titan_hold_last(l, HB_TITAN_W_EXPERT_UP);
    if (!l->sends)
        return copies;
    uint32_t received = exchange(l, copies, kept, "rows received");
    r->permuted = find_order(l);
    uint32_t rows = copy_rows(l, received, r->permuted, "rows received, by expert");
    hb_titan_hold_last(l, HB_TITAN_W_EXPERT_UP);
    hb_tape_drop_value(t, received);
    hb_tape_drop_value(t, copies);
    return rows;
}

enum { C_INPUT, C_SCORES, C_INDICES };

static void back_combine(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    int64_t narrow = n->number[0], each = n->number[1];
    uint32_t spread = hb_ops_work(t, "gather", "gradient of each copy", narrow);
    hb_tape_drop(t, grad);
    uint32_t wide = hb_ops_work(t, "to f32", "gradient of each copy in f32", 2 * narrow);
    hb_tape_drop(t, spread);
    uint32_t by_output = hb_ops_work(t, "mul, backward", "gradient of each output", 2 * narrow);
    uint32_t by_score = hb_ops_work(t, "mul, backward", "gradient times output", 2 * narrow);
    uint32_t scores = hb_ops_work(t, "sum", "gradient of the sorted scores", each);
    hb_tape_drop(t, by_score);
    hb_tape_drop(t, wide);
    hb_tape_give_up(t, n, C_SCORES);
    hb_tape_give_up(t, n, C_INPUT);
    uint32_t output = hb_ops_work(t, "to bf16", "gradient of each output in bf16", narrow);
    hb_tape_drop(t, by_output);
    hb_tape_give(t, n->in[1], scores);
    hb_tape_give(t, n->in[0], output);
}

/* Outputs times their scores in f32, added up where their tokens are. */
static uint32_t combine(struct hb_titan_layer *l, uint32_t out, struct hb_kept *kept,
                        const struct routed *r)
{
    struct hb_tape *t = l->e->t;
    int64_t narrow = hb_tape_bytes(t, t->values[out].storage);
    int64_t rows = hb_tape_size(t, rows_of(l), l->e->spec->model.d_model, 2);
    uint32_t from = out;
    if (l->sends) {
        uint32_t ordered = order_back(l, out, r->permuted);
        from = exchange(l, ordered, kept, "outputs returned");
        hb_tape_drop_value(t, ordered);
    }
    uint32_t zeros = hb_ops_work(t, "zeros_like", "sum of the outputs, before", rows);
    uint32_t wide = hb_ops_work(t, "to f32", "outputs in f32", 2 * narrow);
    uint32_t weighed = hb_ops_work(t, "mul", "outputs times scores", 2 * narrow);
    struct hb_taped *n = hb_tape_node(t, back_combine, HB_NONE);
    uint32_t at = n ? t->node_count - 1 : 0;
    hb_tape_save(t, n, wide);
    hb_tape_save(t, n, t->values[r->scores].storage);
    hb_tape_save(t, n, r->indices);
    hb_tape_drop(t, wide);
    uint32_t again = hb_ops_work(t, "to bf16", "outputs times scores in bf16", narrow);
    hb_tape_drop(t, weighed);
    if (from != out)
        hb_tape_drop_value(t, from);
    uint32_t sum = hb_tape_value(t, hb_ops_work(t, "scatter_add", "sum of the outputs", rows));
    hb_tape_drop(t, zeros);
    hb_tape_drop(t, again);
    if (n) {
        n = &t->nodes[at];
        n->out = sum;
        n->in[0] = from;
        n->in[1] = r->scores;
        n->number[0] = narrow;
        n->number[1] = hb_tape_bytes(t, t->values[r->scores].storage);
    }
    return sum;
}

/* --- the experts --- */

uint32_t hb_titan_grouped(struct hb_titan_layer *l, int role, uint32_t x, const char *name)
{
    int64_t d = l->e->spec->model.d_model, ff = hb_titan_expert_width(l);
    bool down = role == HB_TITAN_W_EXPERT_DOWN, both = l->block->moe.bias && !down;
    return hb_ops_linear(l->e->t, x,
                         (struct hb_linear){.name = name,
                                            .rows = hb_titan_chosen(l),
                                            .in = down ? ff : d,
                                            .out = down   ? d
                                                   : both ? 2 * ff
                                                          : ff,
                                            .groups = hb_titan_own_experts(l),
                                            .weight = l->by_role[role]});
}

/* Of experts that are sent to, whose weights are DTensors: to_local() comes before all products,
 * one weight after the other, and so its gradient, the last weight's first, behind all of theirs.
 */
static void back_to_local(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_titan_layer *l = (struct hb_titan_layer *)(uintptr_t)n->thing;
    (void)grad;
    for (int i = l->experts.count; i-- > 0;)
        hb_ops_late_gradient(t, &l->expert_weights[i]);
}

static uint32_t run_products(struct hb_titan_layer *l, uint32_t x)
{
    struct hb_tape *t = l->e->t;
    if (l->sends)
        hb_titan_set_thing(hb_tape_node(t, back_to_local, HB_NONE), l);
    if (l->block->moe.bias)
        return hb_titan_run_biased(l, x);
    uint32_t gate = hb_titan_grouped(l, HB_TITAN_W_EXPERT_GATE, x, "experts' gate");
    uint32_t act = hb_ops_activation(t, gate, HB_SILU);
    hb_titan_hold_last(l, HB_TITAN_W_EXPERT_DOWN);
    hb_tape_drop_value(t, gate);
    uint32_t up = hb_titan_grouped(l, HB_TITAN_W_EXPERT_UP, x, "experts' up");
    uint32_t product = hb_ops_mul(t, act, up);
    hb_titan_hold_last(l, HB_TITAN_W_EXPERT_DOWN);
    hb_tape_drop_value(t, act);
    hb_tape_drop_value(t, up);
    uint32_t out = hb_titan_grouped(l, HB_TITAN_W_EXPERT_DOWN, product, "experts' output");
    hb_tape_drop_value(t, product);
    return out;
}

static void drop_routed(struct hb_tape *t, const struct routed *r)
{
    hb_tape_drop(t, r->indices);
    hb_tape_drop(t, r->permuted);
    hb_tape_drop_value(t, r->scores);
}

/* The part of the sequence that the rank's residual is of. Run again, without a shared expert, it
 * is what nothing is kept for. */
static uint32_t scattered(struct hb_titan_layer *l, uint32_t sum, struct hb_kept *kept, bool again)
{
    if (!l->parted || (again && !l->block->moe.shared_d_ff))
        return sum;
    uint32_t part = hb_ops_scatter(l->e->t, sum, hb_titan_gather(l), kept);
    hb_tape_drop_value(l->e->t, sum);
    return part;
}

/* Beside the routed ones; run again, the sum of both is left out. */
static uint32_t add_shared(struct hb_titan_layer *l, uint32_t x, uint32_t sum, struct hb_kept *kept,
                           bool again)
{
    struct hb_tape *t = l->e->t;
    bool gathers = l->e->ways > 1 && !l->parted;
    uint32_t whole = gathers ? hb_ops_gather(t, x, hb_titan_gather(l)) : x;
    l->own = hb_titan_run_mlp(l, whole, kept, again);
    uint32_t both = again ? sum : hb_ops_add(t, sum, l->own);
    hb_tape_drop_value(t, l->own);
    if (gathers)
        hb_tape_drop_value(t, whole);
    if (both != sum)
        hb_tape_drop_value(t, sum);
    return both;
}

uint32_t hb_titan_run_experts(struct hb_titan_layer *l, uint32_t x, struct hb_kept *kept,
                              bool again)
{
    struct hb_tape *t = l->e->t;
    struct routed r = {.permuted = HB_NONE};
    uint32_t whole = l->parted ? hb_ops_gather(t, x, hb_titan_gather(l)) : x;
    route(l, whole, kept, &r);
    uint32_t rows = dispatch(l, whole, kept, &r);
    uint32_t out = run_products(l, rows);
    uint32_t nodes = t->node_count, sum = combine(l, out, kept, &r);
    hb_tape_hold_under(t, nodes, l);
    drop_routed(t, &r);
    hb_tape_drop_value(t, rows);
    hb_tape_drop_value(t, out);
    sum = scattered(l, sum, kept, again);
    if (l->block->moe.shared_d_ff)
        sum = add_shared(l, whole, sum, kept, again);
    if (whole != x)
        hb_tape_drop_value(t, whole);
    hb_tape_drop(t, r.weights);
    hb_tape_drop(t, r.all);
    hb_tape_drop(t, r.chosen);
    hb_tape_drop(t, r.map);
    return sum;
}
