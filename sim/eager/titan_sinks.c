/* See titan_parts.h: gpt-oss as torchtitan has it (models/gpt_oss/model.py and moe.py, the rope and
 * attention of models/common, at b5bcd76 of August 2026). Every layer turns q and k by a table of
 * cosines and sines of its own, a kernel takes key heads as few as they are, and what it makes is
 * weighed by sigmoid(log-sum-exp - the head's sink). Experts have biases, gate and up are one
 * product whose columns alternate, and both are clamped:
 *
 *   rows x w1 + b1 ─► glu, linear, clamped ─► glu x sigmoid(a glu) x (linear + 1) ─► x w2 + b2
 *
 * A value of the code that a node takes the gradient of beside its `out` is one of its inputs. */
#include "base/size.h"
#include "sim/eager/titan_parts.h"

static uint32_t take_gradient(struct hb_tape *t, uint32_t value)
{
    uint32_t grad = t->values[value].grad;
    t->values[value].grad = HB_NONE;
    return grad;
}

static uint32_t new_value(struct hb_tape *t, const char *op, const char *name, int64_t bytes)
{
    return hb_tape_value(t, hb_ops_work(t, op, name, bytes));
}

/* --- q, k and v of one product, each copied --- */

static void back_apart(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t whole = hb_ops_work(t, "cat", "gradient of q, k, v", n->number[0]);
    hb_tape_drop(t, grad);
    hb_tape_drop(t, take_gradient(t, n->in[1]));
    hb_tape_drop(t, take_gradient(t, n->in[2]));
    hb_tape_give(t, n->in[0], whole);
}

void hb_titan_copy_apart(struct hb_tape *t, uint32_t whole, uint32_t out[3], const int64_t bytes[3])
{
    static const char *const names[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++)
        out[i] = new_value(t, "clone", names[i], bytes[i]);
    struct hb_taped *n = hb_tape_node(t, back_apart, out[0]);
    if (!n)
        return;
    n->in[0] = whole;
    n->in[1] = out[1];
    n->in[2] = out[2];
    n->number[0] = hb_ops_value_bytes(t, whole);
}

/* --- rope: x cos + (-x2, x1) sin, in f32 --- */

static uint32_t turned(struct hb_tape *t, uint32_t wide)
{
    int64_t bytes = hb_tape_bytes(t, wide);
    uint32_t by_cos = hb_ops_work(t, "mul", "times cosines", bytes);
    uint32_t negative = hb_ops_work(t, "neg", "second half, negative", bytes / 2);
    uint32_t half_turned = hb_ops_work(t, "cat", "halves exchanged", bytes);
    hb_tape_drop(t, negative);
    uint32_t by_sin = hb_ops_work(t, "mul", "times sines", bytes);
    hb_tape_drop(t, half_turned);
    uint32_t sum = hb_ops_work(t, "add", "turned by rope", bytes);
    hb_tape_drop(t, by_cos);
    hb_tape_drop(t, by_sin);
    return sum;
}

/* n: gives up its table with the last of both; null: not yet. */
static uint32_t turned_back(struct hb_tape *t, struct hb_taped *n, uint32_t wide)
{
    int64_t bytes = hb_tape_bytes(t, wide);
    uint32_t by_sin = hb_ops_work(t, "mul, backward", "gradient times sines", bytes);
    uint32_t negative = hb_ops_work(t, "neg", "its first half, negative", bytes / 2);
    uint32_t second = hb_ops_work(t, "slice, backward", "gradient of the second half", bytes);
    hb_tape_drop(t, negative);
    uint32_t first = hb_ops_work(t, "slice, backward", "gradient of the first half", bytes);
    hb_tape_drop(t, by_sin);
    uint32_t both = hb_ops_work(t, "add", "gradient of both halves", bytes);
    hb_tape_drop(t, second);
    hb_tape_drop(t, first);
    uint32_t by_cos = hb_ops_work(t, "mul, backward", "gradient times cosines", bytes);
    hb_tape_drop(t, wide);
    if (n)
        hb_tape_give_up(t, n, 0);
    uint32_t sum = hb_ops_work(t, "add", "gradient before rope, f32", bytes);
    hb_tape_drop(t, both);
    hb_tape_drop(t, by_cos);
    return sum;
}

static uint32_t widened(struct hb_tape *t, uint32_t narrow)
{
    uint32_t wide =
        hb_ops_work(t, "to f32", "gradient of what rope turned, f32", 2 * hb_tape_bytes(t, narrow));
    hb_tape_drop(t, narrow);
    return wide;
}

static uint32_t narrowed(struct hb_tape *t, uint32_t wide)
{
    uint32_t narrow = hb_ops_work(t, "to bf16", "gradient before rope", hb_tape_bytes(t, wide) / 2);
    hb_tape_drop(t, wide);
    return narrow;
}

/* Of k first; in: q, k, k turned. */
static void back_turn(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    uint32_t k = widened(t, take_gradient(t, n->in[2]));
    uint32_t q = widened(t, grad);
    k = turned_back(t, NULL, k);
    q = turned_back(t, n, q);
    hb_tape_give(t, n->in[1], narrowed(t, k));
    hb_tape_give(t, n->in[0], narrowed(t, q));
}

/* q and k of `at`, which are turned; the table is taken by position, and kept. */
static void turn(struct hb_titan_layer *l, uint32_t at[2])
{
    struct hb_tape *t = l->e->t;
    uint32_t wide[2], sums[2], out[2];
    uint32_t table =
        hb_ops_work(t, "index", "table of rope, by position",
                    hb_tape_size(t, l->e->tokens, 2 * l->block->attention.head_dim, 4));
    for (int i = 0; i < 2; i++)
        wide[i] = hb_ops_work(t, "to f32", "before rope, f32", 2 * hb_ops_value_bytes(t, at[i]));
    for (int i = 0; i < 2; i++)
        sums[i] = turned(t, wide[i]);
    for (int i = 0; i < 2; i++)
        out[i] = new_value(t, "to bf16", i ? "k after rope" : "q after rope",
                           hb_ops_value_bytes(t, at[i]));
    struct hb_taped *n = hb_tape_node(t, back_turn, out[0]);
    for (int i = 0; n && i < 2; i++)
        n->in[i] = at[i];
    if (n)
        n->in[2] = out[1];
    hb_tape_save(t, n, table);
    hb_tape_drop(t, table);
    for (int i = 0; i < 2; i++) {
        hb_tape_drop(t, wide[i]);
        hb_tape_drop(t, sums[i]);
        hb_tape_drop_value(t, at[i]);
        at[i] = out[i];
    }
}

/* --- attention --- */

/* Autograd makes a gradient of the log-sum-exp, too, which there is none of. */
static void back_kernel(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    static const char *const names[] = {"gradient of q", "gradient of k", "gradient of v"};
    uint32_t out[3];
    uint32_t zeros = hb_ops_work(t, "zeros", "gradient of the log-sum-exp", n->number[2]);
    for (int i = 0; i < 3; i++)
        out[i] = hb_ops_work(t, "flash attention, backward", names[i], n->number[i > 0]);
    hb_tape_drop(t, zeros);
    hb_ops_give_up_all(t, n);
    hb_tape_drop(t, grad);
    for (int i = 0; i < 3; i++)
        hb_tape_give(t, n->in[i], out[i]);
}

static uint32_t run_kernel(struct hb_titan_layer *l, const uint32_t qkv[3], struct hb_kept *kept,
                           uint32_t *out_lse)
{
    struct hb_tape *t = l->e->t;
    int64_t bytes = hb_ops_value_bytes(t, qkv[0]);
    int64_t sums = hb_tape_size(t, l->e->tokens, l->block->attention.heads, 4);
    struct hb_made made = {"flash attention", "attention output", bytes, HB_CAT_WORKING, 0};
    uint32_t out = hb_tape_value(t, hb_ops_make_or_take(t, kept, made));
    made.name = "attention's log-sum-exp";
    made.bytes = sums;
    *out_lse = hb_ops_make_or_take(t, kept, made);
    struct hb_taped *n = hb_tape_node(t, back_kernel, out);
    for (int i = 0; n && i < 3; i++) {
        n->in[i] = qkv[i];
        hb_tape_save(t, n, t->values[qkv[i]].storage);
    }
    if (n) {
        n->number[0] = bytes;
        n->number[1] = hb_ops_value_bytes(t, qkv[1]);
        n->number[2] = sums;
    }
    hb_tape_save(t, n, t->values[out].storage);
    hb_tape_save(t, n, *out_lse);
    return out;
}

enum { S_OUTPUT, S_WEIGHT, S_NARROW };

/* number: bytes of a value in f32 for each head of each token. */
static void back_weigh(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_weight *sinks = (struct hb_weight *)(uintptr_t)n->thing;
    int64_t whole = hb_tape_bytes(t, grad), each = n->number[0];
    uint32_t times = hb_ops_work(t, "mul, backward", "gradient times output", whole);
    uint32_t dx = hb_ops_work(t, "mul, backward", "gradient of attention's output", whole);
    uint32_t sum = hb_ops_work(t, "sum", "gradient of the head's weight", each / 2);
    hb_tape_drop(t, times);
    hb_tape_drop(t, grad);
    hb_tape_give_up(t, n, S_NARROW);
    hb_tape_give_up(t, n, S_OUTPUT);
    uint32_t wide = hb_ops_work(t, "to f32", "gradient of the head's weight, f32", each);
    hb_tape_drop(t, sum);
    uint32_t before = hb_ops_work(t, "sigmoid, backward", "gradient before the sigmoid", each);
    hb_tape_drop(t, wide);
    hb_tape_give_up(t, n, S_WEIGHT);
    uint32_t negative = hb_ops_work(t, "neg", "gradient of the sinks, by token", each);
    uint32_t dw = hb_ops_work(t, "sum", "gradient of the sinks", 4 * sinks->rows);
    hb_tape_drop(t, negative);
    uint32_t narrow = hb_ops_work(t, "to bf16", sinks->name, 2 * sinks->rows);
    hb_tape_drop(t, dw);
    hb_tape_drop(t, before);
    hb_ops_weight_grad(t, sinks, narrow);
    hb_tape_give(t, n->in[0], dx);
}

static uint32_t weigh(struct hb_titan_layer *l, uint32_t o, uint32_t lse)
{
    struct hb_tape *t = l->e->t;
    int64_t each = hb_tape_bytes(t, lse);
    uint32_t less = hb_ops_work(t, "sub", "log-sum-exp less the sink", each);
    uint32_t weight = hb_ops_work(t, "sigmoid", "the head's weight", each);
    hb_tape_drop(t, less);
    uint32_t narrow = hb_ops_work(t, "to bf16", "the head's weight in bf16", each / 2);
    uint32_t out = new_value(t, "mul", "attention output, weighed", hb_ops_value_bytes(t, o));
    struct hb_taped *n = hb_tape_node(t, back_weigh, out);
    if (n) {
        const uint32_t all[] = {
            [S_OUTPUT] = t->values[o].storage, [S_WEIGHT] = weight, [S_NARROW] = narrow};
        n->in[0] = o;
        n->number[0] = each;
        n->thing = l->by_role[HB_TITAN_W_SINKS];
        hb_tape_save_in_order(t, n, all, 3);
    }
    hb_tape_drop(t, weight);
    hb_tape_drop(t, narrow);
    return out;
}

uint32_t hb_titan_run_sinks(struct hb_titan_layer *l, uint32_t qkv[3], struct hb_kept *kept)
{
    struct hb_tape *t = l->e->t;
    uint32_t lse;
    turn(l, qkv);
    uint32_t o = run_kernel(l, qkv, kept, &lse), weighed = weigh(l, o, lse);
    hb_tape_drop_value(t, o);
    hb_tape_drop(t, lse);
    uint32_t out =
        hb_ops_linear(t, weighed, hb_titan_linear(l, HB_TITAN_W_O, "attention projected", kept));
    for (int i = 0; i < 3; i++)
        hb_tape_drop_value(t, qkv[i]);
    hb_tape_drop_value(t, weighed);
    return out;
}

/* --- experts with biases --- */

/* number: bytes of the bias with a row of zeros behind it, as rows were taken of. */
static void back_bias(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    struct hb_weight *bias = (struct hb_weight *)(uintptr_t)n->thing;
    uint32_t zeros = hb_ops_work(t, "zeros", "gradient of a bias, before", n->number[0]);
    uint32_t db = hb_tape_make(
        t, (struct hb_made){"index_add", bias->name, n->number[0], HB_CAT_GRADIENTS, 0});
    hb_tape_drop(t, zeros);
    hb_tape_give_up(t, n, 0);
    hb_ops_weight_grad(t, bias, db);
    hb_tape_give(t, n->in[0], grad);
}

/* What the function's names hold until it returns. */
struct biased {
    uint32_t bias, rows; /* storages */
};

/* x + the bias of each row's expert. */
static uint32_t add_bias(struct hb_titan_layer *l, uint32_t x, int role, struct biased *names)
{
    struct hb_tape *t = l->e->t;
    const struct hb_weight *b = l->by_role[role];
    int64_t rows = hb_titan_chosen(l), bytes = hb_ops_value_bytes(t, x);
    int64_t all = hb_tape_size(t, hb_titan_own_experts(l) + 1, bytes / rows, 1);
    names->bias = hb_ops_work(t, "cat", "bias and zeros", all);
    uint32_t indices = hb_ops_work(t, "repeat_interleave", "expert of each row", 8 * rows);
    names->rows = hb_ops_work(t, "index_select", "bias of each row", bytes);
    uint32_t sum = new_value(t, "add", "product and bias", bytes);
    struct hb_taped *n = hb_tape_node(t, back_bias, sum);
    if (n) {
        n->in[0] = x;
        n->number[0] = all;
        n->thing = b;
    }
    hb_tape_save(t, n, indices);
    hb_tape_drop(t, indices);
    return sum;
}

enum { G_SUM, G_GLU, G_LINEAR, G_WEIGHT, G_WEIGHED };

/* Which of a clamp's inputs were within; both: it has two limits. */
static uint32_t clamped_back(struct hb_tape *t, uint32_t grad, bool both)
{
    int64_t bytes = hb_tape_bytes(t, grad);
    uint32_t above = both ? hb_ops_work(t, "gt", "above the lower limit", bytes / 2) : HB_NONE;
    uint32_t below = hb_ops_work(t, "lt", "below the limit", bytes / 2);
    uint32_t out = hb_ops_work(t, "where", "gradient before the clamp", bytes);
    hb_tape_drop(t, above);
    hb_tape_drop(t, below);
    hb_tape_drop(t, grad);
    return out;
}

/* Of glu, from that of what it weighs: times its sigmoid, and by way of it. */
static uint32_t weighed_back(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    int64_t bytes = hb_tape_bytes(t, grad);
    uint32_t by_weight = hb_ops_work(t, "mul, backward", "gradient of the sigmoid", bytes);
    uint32_t direct = hb_ops_work(t, "mul, backward", "gradient of glu", bytes);
    hb_tape_drop(t, grad);
    hb_tape_give_up(t, n, G_GLU);
    uint32_t before = hb_ops_work(t, "sigmoid, backward", "gradient before the sigmoid", bytes);
    hb_tape_drop(t, by_weight);
    hb_tape_give_up(t, n, G_WEIGHT);
    uint32_t scaled = hb_ops_work(t, "mul", "gradient before the scale", bytes);
    hb_tape_drop(t, before);
    uint32_t sum = hb_ops_work(t, "add", "gradient of glu, whole", bytes);
    hb_tape_drop(t, direct);
    hb_tape_drop(t, scaled);
    return sum;
}

static uint32_t scaled_product(struct hb_tape *t, const char *name, int64_t bytes)
{
    uint32_t scaled = hb_ops_work(t, "mul", "gradient, scaled", bytes);
    uint32_t product = hb_ops_work(t, "mul, backward", name, bytes);
    hb_tape_drop(t, scaled);
    return product;
}

static void back_gated(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    int64_t bytes = hb_tape_bytes(t, grad);
    uint32_t by_linear = scaled_product(t, "gradient times linear", bytes);
    uint32_t linear = scaled_product(t, "gradient of linear", bytes);
    hb_tape_give_up(t, n, G_WEIGHED);
    hb_tape_give_up(t, n, G_LINEAR);
    uint32_t weighed = hb_ops_work(t, "add", "gradient of weighed glu", bytes);
    hb_tape_drop(t, grad);
    hb_tape_drop(t, by_linear);
    uint32_t glu = weighed_back(t, n, weighed);
    linear = clamped_back(t, linear, true);
    glu = clamped_back(t, glu, false);
    hb_tape_give_up(t, n, G_SUM);
    uint32_t second = hb_ops_work(t, "slice, backward", "gradient of odd columns", 2 * bytes);
    hb_tape_drop(t, linear);
    uint32_t first = hb_ops_work(t, "slice, backward", "gradient of even columns", 2 * bytes);
    hb_tape_drop(t, glu);
    uint32_t dx = hb_ops_work(t, "add", "gradient of gate and up", 2 * bytes);
    hb_tape_drop(t, second);
    hb_tape_drop(t, first);
    hb_tape_give(t, n->in[0], dx);
}

static uint32_t gate(struct hb_tape *t, uint32_t x)
{
    int64_t bytes = hb_ops_value_bytes(t, x) / 2;
    uint32_t glu = hb_ops_work(t, "clamp", "glu, clamped", bytes);
    uint32_t linear = hb_ops_work(t, "clamp", "linear, clamped", bytes);
    uint32_t scaled = hb_ops_work(t, "mul", "glu, scaled", bytes);
    uint32_t weight = hb_ops_work(t, "sigmoid", "sigmoid of glu", bytes);
    hb_tape_drop(t, scaled);
    uint32_t weighed = hb_ops_work(t, "mul", "glu, weighed", bytes);
    uint32_t out = new_value(t, "addcmul", "mlp product", bytes);
    struct hb_taped *n = hb_tape_node(t, back_gated, out);
    if (n) {
        const uint32_t all[] = {[G_SUM] = t->values[x].storage,
                                [G_GLU] = glu,
                                [G_LINEAR] = linear,
                                [G_WEIGHT] = weight,
                                [G_WEIGHED] = weighed};
        n->in[0] = x;
        hb_tape_save_in_order(t, n, all, (int)(sizeof all / sizeof *all));
    }
    const uint32_t names[] = {glu, linear, weight, weighed};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        hb_tape_drop(t, names[i]);
    return out;
}

uint32_t hb_titan_run_biased(struct hb_titan_layer *l, uint32_t rows)
{
    struct hb_tape *t = l->e->t;
    struct biased names[2];
    uint32_t both = hb_titan_grouped(l, HB_TITAN_W_EXPERT_GATE, rows, "experts' gate and up");
    uint32_t sum = add_bias(l, both, HB_TITAN_W_EXPERT_GATEB, &names[0]);
    hb_tape_drop_value(t, both);
    uint32_t product = gate(t, sum);
    uint32_t down = hb_titan_grouped(l, HB_TITAN_W_EXPERT_DOWN, product, "experts' product");
    uint32_t out = add_bias(l, down, HB_TITAN_W_EXPERT_DOWNB, &names[1]);
    hb_tape_drop_value(t, sum);
    hb_tape_drop_value(t, product);
    hb_tape_drop_value(t, down);
    for (int i = 0; i < 2; i++) {
        hb_tape_drop(t, names[i].bias);
        hb_tape_drop(t, names[i].rows);
    }
    return out;
}
