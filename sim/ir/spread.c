/* XLA:CUDA has no ragged product: each operand is spread over all experts and masked, once by
 * expert for the gradient of a weight, [experts, rows, width], and once as rows for the product
 * that reads it, [rows, experts, width], which is turned from the other (plain-h100-032-phimoe, a
 * layer's backward pass of 229 ops; M of the model's width, H of the hidden one, bf16):
 *
 *   90  tokens and the gradient of the outputs, by expert, in one fusion       2 M to 193
 *   93  the gradient, 95 the tokens, as rows; gate and up again, the           + 2 M to 110
 *       activation's gradient
 *  114  activation, gradients of gate and up, by expert, in one fusion         + 3 H to 193
 *  118  the activation as rows, for the outputs again (the router's gradient)  + H to 123
 *  126, 129  gradients of gate and up as rows, for that of the tokens          + 2 H to 137
 *  193  the weights' gradients wait for their sums over the devices
 *
 * Without a collective to hide the turned ones come one after the other (cal-cudaA--0061), and so
 * they do where both would exceed the compiler's limit (mixtral, fsdp 16 with expert 2, 32 layers:
 * four H, with 16 five); above that what waits is spread again (plain-h100-009: .remat4). */
#include "sim/ir/spread.h"

#include <limits.h>
#include <stddef.h>

#include "sim/ir/again.h"
#include "sim/ir/body_step.h"
#include "sim/ir/weight.h"

static struct hb_shape spread_shape(const struct hb_body *b, const struct hb_step_op *s, int v,
                                    bool rows)
{
    const struct hb_shape *own = &b->y->values[v].shape;
    int64_t count = own->dim[0], width = own->dim[own->rank - 1];
    const int64_t as_rows[] = {count, s->spread, width, -1};
    const int64_t by_expert[] = {s->spread, count, width, -1};
    return hb_shape_make(b->lo->compute, rows ? as_rows : by_expert);
}

/* In a pipeline's stage one fusion makes both (pr85/pp8/good,batch=64,ragged:
 * bf16[1,16,65536,2048] and bf16[1,65536,16,2048]), which is made again beyond the limit in one way
 * only: with the layer's backward pass, not from its forward pass on. */
static bool makes_both(const struct hb_body *b)
{
    return b->y->together > 1;
}

/* By expert, or as rows; of a value or its gradient. */
static uint32_t write_spread(struct hb_body *b, struct hb_emit *e, const struct hb_step_op *s,
                             int v, bool rows, bool gradient)
{
    static const char *const what[2][2] = {{", by expert", ", as rows of all experts"},
                                           {", gradient by expert", ", gradient as rows"}};
    uint32_t out = hb_temp(b->lo, hb_body_name(b, v, what[gradient][rows]), HB_CAT_WORKING,
                           spread_shape(b, s, v, rows));
    b->lo->p->bufs[out].fenced = makes_both(b);
    hb_emit_write(e, out);
    return out;
}

static void end_fusion(struct hb_body *b, struct hb_emit *e)
{
    if (e->write_count > 0)
        hb_emit(b->lo, e);
    e->read_count = e->write_count = 0;
}

static struct hb_emit begin_fusion(const char *name)
{
    return (struct hb_emit){.name = name, .kind = HB_OP_ELEMENTWISE};
}

static void join_value(struct hb_body *b, struct hb_emit *e, const struct hb_step_op *s)
{
    int v = s->in[0];
    if (b->spread[v] != HB_NONE)
        return;
    hb_body_bring(b, v);
    hb_body_read(b, e, v);
    b->spread[v] = write_spread(b, e, s, v, false, false);
    if (makes_both(b) && b->rows[v] == HB_NONE)
        b->rows[v] = write_spread(b, e, s, v, true, false);
}

static void join_gradient(struct hb_body *b, struct hb_emit *e, const struct hb_step_op *s, int v,
                          uint32_t g)
{
    if (b->spread_grad[v] != HB_NONE)
        return;
    hb_emit_read(e, g);
    b->spread_grad[v] = write_spread(b, e, s, v, false, true);
    if (makes_both(b) && b->rows_grad[v] == HB_NONE)
        b->rows_grad[v] = write_spread(b, e, s, v, true, true);
}

static uint32_t turn(struct hb_body *b, const struct hb_step_op *s, int v, bool gradient)
{
    struct hb_emit e = {.name = hb_name(b->lo, "turn ", b->y->values[v].name), .kind = HB_OP_COPY};
    hb_emit_read(&e, gradient ? b->spread_grad[v] : b->spread[v]);
    uint32_t out = write_spread(b, &e, s, v, true, gradient);
    hb_emit(b->lo, &e);
    return out;
}

/* Where the least is wanted that a step beyond the limit can need (a planner's price), nothing
 * spread waits: what it was spread from does. */
static bool waits(const struct hb_body *b)
{
    return b->lo->spec->share != HB_SHARE_EXCEEDED || b->lo->made_again;
}

uint32_t hb_spread_rows(struct hb_body *b, const struct hb_step_op *s)
{
    int v = s->in[0];
    struct hb_emit e = begin_fusion(hb_name(b->lo, "spread ", b->y->values[v].name));
    if (b->rows[v] != HB_NONE)
        return b->rows[v];
    if (b->spread[v] == HB_NONE) {
        hb_body_read(b, &e, v);
        b->rows[v] = write_spread(b, &e, s, v, true, false);
    }
    end_fusion(b, &e);
    if (b->rows[v] == HB_NONE)
        b->rows[v] = turn(b, s, v, false);
    return b->rows[v];
}

/* Of the result of s, whose gradient is g. */
static uint32_t gradient_rows(struct hb_body *b, const struct hb_step_op *s, uint32_t g)
{
    int v = s->out[0];
    struct hb_emit e = begin_fusion(hb_name(b->lo, "spread gradient of ", b->y->values[v].name));
    join_gradient(b, &e, s, v, g);
    end_fusion(b, &e);
    if (b->rows_grad[v] == HB_NONE)
        b->rows_grad[v] = turn(b, s, v, true);
    b->spread_grad[v] = waits(b) ? b->spread_grad[v] : HB_NONE;
    return b->rows_grad[v];
}

bool hb_spread_is_down(const struct hb_body *b, const struct hb_step_op *s)
{
    int maker = b->y->values[s->in[0]].producer;
    return maker >= 0 && b->y->steps[maker].op == HB_OP_ELEMENTWISE;
}

/* The dimension that was gathered last lies outermost in a gathered weight. A product sums over the
 * experts and, inside of these, over the weight's input, or its output on the way back: it reads
 * what lies otherwise turned (plain-h100-032-phimoe, over fsdp: bf16[16,4096,6400] at 96, 103 and,
 * down's for the activation's gradient, 105; rfew-075, the experts gathered last: none on the way
 * forward, all three back; each of eight more dumps turns the same). */
static bool is_read_turned(const struct hb_leaf *l, bool back)
{
    return l->expert_ways > 1 ? back : l->gather_dim == l->rank - (back ? 1 : 2);
}

uint32_t hb_spread_weight(struct hb_body *b, const struct hb_step_op *s, uint32_t w, bool back)
{
    uint32_t *turned = &b->turned[s->leaf - b->y->first_leaf];
    if (s->spread == 0 || b->lo->p->bufs[w].category != HB_CAT_COMMUNICATION)
        return w;
    uint32_t out = w;
    if (is_read_turned(&b->lo->leaves[s->leaf], back))
        out = back && *turned != HB_NONE ? *turned : hb_body_turn_weight(b, s->leaf, w);
    *turned = back ? out : HB_NONE;
    return out;
}

static bool hides(const struct hb_body *b, const struct hb_step_op *s)
{
    return b->own_stacks ? makes_both(b) : hb_weight_grad_partial(b->lo, &b->lo->leaves[s->leaf]);
}

/* Whether half of what the compiler's limit leaves beside arguments is taken: by what is spread, of
 * all layers of a unit (gpt-oss-20b, fsdp 32: ten by expert, two as rows, 48.2 GiB), all layers'
 * gradients, their sums, stacks turned for gathers, layers' inputs and what they keep. */
static bool is_half_full(const struct hb_body *b, const struct hb_step_op *s)
{
    const struct hb_lower *lo = b->lo;
    const struct hb_optim *o = &lo->spec->optimizer;
    const struct hb_shape *in = &b->y->values[s->in[0]].shape;
    const struct hb_shape *out = &b->y->values[s->out[0]].shape;
    double width = (double)in->dim[in->rank - 1], hidden = (double)out->dim[out->rank - 1];
    double unit = (double)b->y->block->unit * hb_dtype_bits(lo->compute);
    double taken = unit * (double)in->dim[0] * (double)s->spread * (3 * hidden + 2 * width);
    int grad = hb_dtype_bits(hb_weight_grad_dtype(lo));
    int weight = hb_dtype_bits(lo->spec->precision.params), states = weight;
    for (int i = 0; i < o->moment_count; i++)
        states += hb_dtype_bits(o->moments[i]);
    int sum = lo->leaves[s->leaf].accum != HB_NONE ? hb_dtype_bits(HB_DT_F32) : 0;
    double elements = (double)lo->stacked_grad_bytes * CHAR_BIT / grad;
    double input = (double)hb_shape_plain_bytes(&b->y->values[b->y->input].shape);
    double layers = (double)lo->input_bytes / input;
    taken += elements * (grad + sum + weight);
    taken += layers * (double)hb_saved_bytes(b->saved, b->y) * CHAR_BIT;
    const struct hb_program none = {.compiler = lo->spec->compiler};
    double limit = (double)hb_again_limit(&none, lo->hbm_bytes, false) * CHAR_BIT;
    return taken > (limit - elements * states) / 2;
}

/* What attention makes again for its own backward pass alone stands ready then, too: the router's
 * product, which is short, fills a wait for its gathers, and is not there later. */
static bool keeps_attention(const struct hb_body *b)
{
    static const unsigned attention = 1u << HB_TN_ATTN_OUT | 1u << HB_TN_ATTN_CTX;
    const struct hb_remat *r = &b->y->block->remat;
    return r->policy == HB_POLICY_NAMES && ((r->save | r->offload) & attention) &&
           b->y->block->moe.shared_experts == 0;
}

/* What comes between the products through up and gate, which are as long as each other, is decided
 * by what is short enough for the microsecond after which the first one's rows could be made: the
 * router's gradient, or nothing if it came before; then the second product is next, and both rows
 * stand. So it is where a weight comes by two collectives, where the tokens' gradients are summed,
 * where half of the limit is taken, from when on XLA defers what makes more (its log,
 * kDecreaseMemory), and where attention is kept (of 62 layers three differ). */
static bool turns_siblings(const struct hb_body *b, const struct hb_step_op *s)
{
    return b->lo->leaves[s->leaf].expert_ways > 1 || hb_ways(b->lo, HB_AX_TENSOR) > 1 ||
           keeps_attention(b) || is_half_full(b, s);
}

/* The products whose results the activation is made of that s reads, one after the other. */
static const struct hb_step_op *next_hidden(const struct hb_body *b, const struct hb_step_op *s,
                                            int *at)
{
    int maker = b->y->values[s->in[0]].producer;
    const struct hb_step_op *act = maker >= 0 ? &b->y->steps[maker] : NULL;
    while (act && *at < act->in_count) {
        int from = b->y->values[act->in[(*at)++]].producer;
        if (from >= 0 && b->y->steps[from].spread > 0)
            return &b->y->steps[from];
    }
    return NULL;
}

static void bring_hidden(struct hb_body *b, const struct hb_step_op *s)
{
    const struct hb_step_op *product;
    for (int at = 0; (product = next_hidden(b, s, &at)) != NULL;)
        hb_body_bring(b, product->out[0]);
}

/* The gradient of the outputs, and the tokens. */
static void spread_ends(struct hb_body *b, const struct hb_step_op *s, uint32_t g)
{
    struct hb_emit e = begin_fusion(hb_body_name(b, s->out[0], ", gradient by expert"));
    const struct hb_step_op *product;
    for (int at = 0; (product = next_hidden(b, s, &at)) != NULL;)
        join_value(b, &e, product);
    join_gradient(b, &e, s, s->out[0], g);
    end_fusion(b, &e);
}

uint32_t hb_spread_gradient(struct hb_body *b, const struct hb_step_op *s, uint32_t g)
{
    enum hb_share share = hides(b, s) ? b->lo->spec->share : HB_SHARE_EXCEEDED;
    bool early = share < HB_SHARE_TIGHT;
    if (waits(b) && b->spread_grad[s->out[0]] == HB_NONE)
        spread_ends(b, s, g);
    if (!early)
        bring_hidden(b, s);
    uint32_t rows = gradient_rows(b, s, g);
    bool siblings = (early || share == HB_SHARE_TIGHT) && turns_siblings(b, s);
    if (early)
        hb_spread_weight(b, s, hb_weight_use(b->lo, s->leaf), true);
    for (uint32_t k = 0; k < b->y->step_count && siblings; k++) {
        const struct hb_step_op *other = &b->y->steps[k];
        if (b->spread_grad[other->out[0]] != HB_NONE)
            gradient_rows(b, other, HB_NONE);
    }
    bring_hidden(b, s);
    return rows;
}

static void make_activation(struct hb_body *b, const struct hb_step_op *s)
{
    struct hb_emit e = hb_body_emit(s);
    int v = s->out[0];
    hb_body_bring(b, v);
    if (b->now[v] != HB_NONE)
        return;
    hb_body_read(b, &e, v);
    b->now[v] = hb_temp(b->lo, hb_body_name(b, v, ""), HB_CAT_WORKING, b->y->values[v].shape);
    hb_emit_write(&e, b->now[v]);
    hb_emit(b->lo, &e);
}

/* Where XLA begins with the depth-first order the router's product is the last of those that are
 * ready behind the activation, and the first one's rows come before the outputs again (mixtral over
 * 8, 16: at 8 layers; over 32 and 64 with 2,048 tokens, with 4,096 the list and none: 8 of 8 logs).
 */
static void turn_ahead(struct hb_body *b, const struct hb_step_op *act,
                       const struct hb_step_op *reader)
{
    int at = 0;
    const struct hb_step_op *first = next_hidden(b, reader, &at);
    if (!b->lo->spec->depth_first || !hides(b, reader) || turns_siblings(b, first))
        return;
    b->rows[act->out[0]] = turn(b, reader, act->out[0], false);
    b->rows_grad[first->out[0]] = turn(b, first, first->out[0], true);
}

void hb_spread_hidden(struct hb_body *b, const struct hb_step_op *s, const uint32_t *made)
{
    const struct hb_step_op *reader = NULL;
    int maker = b->y->values[s->in[0]].producer;
    if (maker < 0 || b->y->steps[maker].spread == 0)
        return;
    for (uint32_t k = 0; k < b->y->step_count && !reader; k++)
        if (b->y->steps[k].spread > 0 && b->y->steps[k].in[0] == s->out[0])
            reader = &b->y->steps[k];
    if (!reader)
        return;
    make_activation(b, s);
    if (!waits(b))
        return;
    struct hb_emit e = begin_fusion(hb_body_name(b, s->out[0], " and gradients by expert"));
    join_value(b, &e, reader);
    if (makes_both(b))
        end_fusion(b, &e);
    for (int i = 0; i < s->in_count; i++)
        join_gradient(b, &e, reader, s->in[i], made[i]);
    end_fusion(b, &e);
    turn_ahead(b, s, reader);
}

void hb_spread_read_weight(struct hb_body *b, struct hb_emit *e, const struct hb_step_op *s)
{
    struct hb_emit again = begin_fusion(hb_name(b->lo, "spread again for ", s->name));
    join_value(b, &again, s);
    join_gradient(b, &again, s, s->out[0], b->grad[s->out[0]]);
    end_fusion(b, &again);
    hb_emit_read(e, b->spread_grad[s->out[0]]);
    hb_emit_read(e, b->spread[s->in[0]]);
    if (waits(b))
        return;
    b->spread_grad[s->out[0]] = b->spread[s->in[0]] = HB_NONE;
}
