/* RMSNorm in single ops: see ops.h. torch's own rms_norm is float(), pow, mean, rsqrt, mul, mul by
 * the weight, type_as; what models write out (Llama's code, Hugging Face's) is narrow before its
 * weight comes. */
#include "base/size.h"
#include "sim/eager/ops.h"
#include "sim/eager/zero3.h"

static uint32_t copied_input_back(struct hb_tape *t, uint32_t direct, uint32_t square,
                                  int64_t whole)
{
    uint32_t both = hb_ops_work(t, "add", "gradient of the norm's input, whole", whole);
    hb_tape_drop(t, direct);
    hb_tape_drop(t, square);
    uint32_t dx = hb_ops_work(t, "to bf16", "gradient of the norm's input in bf16", whole / 2);
    hb_tape_drop(t, both);
    return dx;
}

enum { NORM_INPUT, NORM_SCALE, NORM_SCALED, NORM_FRAME }; /* that a norm's node saves */

/* Of what the weight weighs, in f32; out_weight: the weight's. */
static uint32_t weighed_back(struct hb_tape *t, struct hb_taped *n, uint32_t grad, int64_t whole,
                             uint32_t *out_weight)
{
    uint32_t g = hb_ops_convert_work(t, grad, "to f32", "norm's gradient in f32", whole);
    hb_tape_drop(t, grad);
    uint32_t by_scaled = HB_NONE;
    if (t->split)
        hb_ops_owe(t, n,
                   (struct hb_owed){.kind = HB_OWED_NORM, .grad = g, .places = 1u << NORM_SCALED});
    else
        by_scaled = hb_ops_work(t, "mul", "norm's gradient times its output", whole);
    uint32_t by_weight = hb_ops_work(t, "mul", "norm's gradient times its weight", whole);
    if (!t->split)
        *out_weight = hb_ops_work(t, "sum", "gradient of a norm's weight",
                                  hb_tape_size(t, n->number[1], 4, 1));
    hb_tape_drop(t, by_scaled);
    hb_tape_drop(t, g);
    if (t->split)
        t->split->with = hb_ops_owed_weight(n);
    hb_tape_give_up(t, n, NORM_SCALED);
    if (t->split)
        t->split->with = NULL;
    return by_weight;
}

/* The same where the model weighs it once it is narrow: what comes before the weight is wide. */
static uint32_t written_back(struct hb_tape *t, struct hb_taped *n, uint32_t grad, int64_t whole,
                             uint32_t *out_weight)
{
    int64_t bytes = hb_tape_bytes(t, n->saved[NORM_SCALED]), width = n->number[1];
    uint32_t by_scaled = hb_ops_work(t, "mul", "norm's gradient times its output", bytes);
    uint32_t by_weight = hb_ops_work(t, "mul", "norm's gradient times its weight", bytes);
    *out_weight = hb_ops_work(t, "sum", "gradient of a norm's weight",
                              hb_tape_size(t, width, bytes == whole ? 4 : 2, 1));
    hb_tape_drop(t, by_scaled);
    hb_tape_drop(t, grad);
    hb_tape_give_up(t, n, NORM_SCALED);
    uint32_t wide = hb_ops_convert_work(t, by_weight, "to f32", "norm's gradient in f32", whole);
    hb_tape_drop(t, by_weight);
    return wide;
}

/* An input in f32 already is not copied, and autograd adds up what it gets one by one. */
static void back_norm(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    int64_t rows = n->number[0], width = n->number[1];
    bool uncopied = n->number[2] != 0;
    int64_t whole = hb_tape_size(t, rows, width, 4), each = hb_tape_size(t, rows, 4, 1);
    uint32_t weight = HB_NONE;
    hb_zero3_enter_back(n->thing);
    uint32_t by_weight = t->written_norms ? written_back(t, n, grad, whole, &weight)
                                          : weighed_back(t, n, grad, whole, &weight);
    uint32_t by_input = hb_ops_work(t, "mul", "gradient of the norm's scale", whole);
    uint32_t direct = hb_ops_work(t, "mul", "gradient of the norm's input", whole);
    uint32_t sum = hb_ops_work(t, "sum", "gradient of the norm's scale, a token", each);
    hb_tape_drop(t, by_input);
    hb_tape_drop(t, by_weight);
    if (uncopied)
        hb_tape_give(t, n->in[0], direct);
    uint32_t scale = hb_ops_work(t, "rsqrt backward", "gradient of the norm's mean, a token", each);
    hb_tape_drop(t, sum);
    hb_tape_give_up(t, n, NORM_SCALE);
    uint32_t spread = hb_ops_work(t, "div", "gradient of the norm's mean", whole);
    hb_tape_drop(t, scale);
    uint32_t power = hb_ops_work(t, "pow", "norm's input to a power", whole);
    uint32_t twice = hb_ops_work(t, "mul", "norm's input, twice", whole);
    uint32_t square = hb_ops_work(t, "mul", "gradient of the norm's square", whole);
    hb_tape_drop(t, twice);
    hb_tape_drop(t, power);
    hb_tape_drop(t, spread);
    hb_tape_give_up(t, n, NORM_INPUT);
    hb_tape_give_up(t, n, NORM_FRAME);
    uint32_t dx = uncopied ? square : copied_input_back(t, direct, square, whole);
    if (!t->split)
        hb_ops_weight_grad(t, (struct hb_weight *)(uintptr_t)n->thing, weight);
    hb_tape_give(t, n->in[0], dx);
    hb_zero3_leave(n->thing);
}

/* What a norm made, with the code's own holds; bytes: of its input. left_out: without what comes of
 * it. */
struct normed {
    uint32_t input, scale, scaled;
    int64_t bytes, whole;
    bool left_out;
};

static struct hb_taped *weigh_wide(struct hb_tape *t, const struct normed *m, uint32_t *out)
{
    uint32_t weighed = HB_NONE, narrow = HB_NONE;
    if (!m->left_out)
        weighed = hb_ops_work(t, "mul", "norm's output in f32", m->whole);
    struct hb_taped *n = hb_tape_node(t, back_norm, HB_NONE);
    hb_tape_save(t, n, m->input);
    hb_tape_save(t, n, m->scale);
    hb_tape_save(t, n, m->scaled);
    hb_tape_drop(t, m->scaled);
    hb_tape_drop(t, m->input);
    if (!m->left_out)
        narrow = hb_ops_convert_work(t, weighed, "to bf16", "norm's output", m->bytes);
    *out = hb_tape_value(t, narrow);
    hb_tape_drop(t, weighed);
    hb_tape_drop(t, m->scale);
    return n;
}

/* The name of the input in f32 is taken by what is scaled, which has it until the norm returns. */
static struct hb_taped *weigh_narrow(struct hb_tape *t, const struct normed *m, uint32_t *out)
{
    uint32_t weighed = HB_NONE;
    struct hb_taped *n = hb_tape_node(t, back_norm, HB_NONE);
    hb_tape_save(t, n, m->input);
    hb_tape_save(t, n, m->scale);
    hb_tape_drop(t, m->input);
    hb_tape_drop(t, m->scale);
    uint32_t narrow =
        hb_ops_convert_work(t, m->scaled, "to bf16", "norm's input, scaled, in bf16", m->bytes);
    hb_tape_save(t, n, narrow);
    if (!m->left_out)
        weighed = hb_ops_work(t, "mul", "norm's output", m->bytes);
    *out = hb_tape_value(t, weighed);
    hb_tape_drop(t, narrow);
    hb_tape_drop(t, m->scaled);
    return n;
}

static uint32_t run_norm(struct hb_tape *t, uint32_t x, struct hb_weight *weight, int64_t rows,
                         bool left_out)
{
    int64_t width = weight->rows, each = hb_tape_size(t, rows, 4, 1);
    struct normed m = {.bytes = hb_ops_value_bytes(t, x),
                       .whole = hb_tape_size(t, rows, width, 4),
                       .left_out = left_out};
    m.input = hb_ops_convert_view(
        t, t->values[x].storage, m.bytes,
        (struct hb_made){"to f32", "norm's input in f32", m.whole, HB_CAT_WORKING, 0});
    uint32_t square = hb_ops_work(t, "pow", "norm's input squared", m.whole), out;
    uint32_t mean = hb_ops_work(t, "mean", "norm's mean, a token", each);
    if (t->written_norms)
        hb_tape_drop(t, square);
    m.scale = hb_ops_work(t, "rsqrt", "norm's scale, a token", each);
    hb_tape_drop(t, mean);
    if (!t->written_norms)
        hb_tape_drop(t, square);
    m.scaled = hb_ops_work(t, "mul", "norm's input, scaled", m.whole);
    struct hb_taped *n = t->written_norms ? weigh_narrow(t, &m, &out) : weigh_wide(t, &m, &out);
    if (n) {
        n->out = out;
        n->in[0] = x;
        n->number[0] = rows;
        n->number[1] = width;
        n->number[2] = m.bytes == m.whole;
        n->thing = weight;
    }
    return out;
}

uint32_t hb_ops_norm(struct hb_tape *t, uint32_t x, int64_t rows, struct hb_weight *weight)
{
    hb_zero3_enter(weight);
    uint32_t out = run_norm(t, x, weight, rows, false);
    hb_zero3_leave(weight);
    return out;
}

uint32_t hb_ops_norm_left_out(struct hb_tape *t, uint32_t x, int64_t rows, struct hb_weight *weight)
{
    hb_zero3_enter(weight);
    return run_norm(t, x, weight, rows, true);
}
