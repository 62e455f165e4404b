/* The choice of a sequence on XLA:GPU: see sequence_gpu.h and sequence.c. The scheduler's log
 * (hlo_memory_scheduler=2) has the three figures, heap_simulator=3 what is alive at their peaks:
 *
 *   list   zeros of all gradients, and of the table's, beside both logits and the gathered head;
 *          then the layers' backward pass without logits
 *   depth  both logits; then the backward pass beside the logits' gradient
 *   post   both logits; with clip the head's gradient, whole, beside the logits' and the gathered
 *          head, whereupon the backward pass is without; there, of several sequences, the MLP's
 *          tensors stand beside the attention's
 *
 * The layers' gradients count twice at the end of a layer: what the loop's body writes is not
 * shared with its start there. MiB above the arguments, list and depth: 8B/base 10833 10997;
 * 8B,v5e16x16,dp4f64 with 32000 words 3433 3750, 50304 4010 4030, 64000 4657 4247, 128256 7673
 * 6260; data 8 and fsdp 8 with two microbatches 15532 14826. The forms below give the difference
 * of the two within 5 %. */
#include "sim/ir/sequence_gpu.h"

#include <limits.h>

#include "base/diag.h"
#include "base/size.h"
#include "sim/ir/order.h"

/* A sequence axis beside fsdp's on one host (1B,sp2f4 with one-hot labels: -8.3 -> -0.3 %); over
 * several hosts and without fsdp the figures lie elsewhere (8B,sp2f32,s4k; 1B,sp8,bf16,adafactor).
 */
static bool is_sequence_near(const struct hb_lower *lo)
{
    int64_t ways = hb_ways(lo, HB_AX_SEQUENCE), fsdp = hb_fsdp_ways(lo, false);
    return ways == 1 || (fsdp > 1 && ways * fsdp <= HB_HOST_DEVICES &&
                         hb_ways(lo, HB_AX_DATA) == 1 && lo->spec->batch.accumulate == 1);
}

/* Post-order is another where the norm of all gradients comes before the updates, which have states
 * (8B/base with clip: list 10833, depth 10997, post 9215, its head's gradient from 179 to 183 of
 * 640, so with momentum, lion and adafactor; with sgd 10833 10997 11120, and 8B,f16 8468 7096 7158,
 * at 510), and in the same loop (8B/base with clip and two microbatches: 14663 14826 14949). */
static bool has_post(const struct hb_lower *lo)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    return o->clip && o->name != HB_OPT_SGD && lo->spec->batch.accumulate == 1;
}

bool hb_sequence_gpu_known(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    /* Beside tensor parallelism post-order is known to be as without, and a product in bf16 (8B
     * over fsdp 4, tensor 4 and data 2: -6.9 -> -1.2 %, fsdp 8 and tensor 8: -9.3 -> -5.3; 8B/base
     * with clip over fsdp 4 and tensor 2: +12.8 -> -2.1 %; opt/8B,f4,bf16all,s1k: +16.6 -> -1.2;
     * not with sgd). */
    bool tensor = hb_ways(lo, HB_AX_TENSOR) == 1 ||
                  (hb_fsdp_ways(lo, false) > 1 && (has_post(lo) || hb_order_dot_narrow(lo)));
    bool batch =
        !hb_alone(lo) && tensor && is_sequence_near(lo) && hb_ways(lo, HB_AX_PIPELINE) == 1;
    return lo->habits->logits_copies == 2 && !lo->habits->gathers_timed && batch &&
           s->stack.form == HB_FORM_SCAN && s->loss.chunks == 1 && s->step.donate &&
           !s->model.tied_embeddings;
}

/* Of a product in bf16 with one-hot labels there are no others (8B,f64,b4,onehot with one sequence
 * a device: bf16[4096,128256] thrice, in turn). */
static int64_t logit_bytes(const struct hb_lower *lo)
{
    enum hb_dtype dtype = lo->spec->loss.onehot ? lo->spec->loss.dot : HB_DT_F32;
    return hb_logit_bytes(lo, hb_dtype_bits(dtype) / CHAR_BIT);
}

static int64_t head_bytes(const struct hb_lower *lo, enum hb_dtype dtype)
{
    struct hb_shape s = hb_leaf_layer_shape(&lo->leaves[lo->head], dtype, true);
    return hb_shape_plain_bytes(&s);
}

/* Scores of a layer's attention: all of them, of so many bytes each without a kernel, or those of a
 * block. */
static int64_t score_bytes(const struct hb_lower *lo, int64_t naive, int64_t block)
{
    const struct hb_attention *a = &lo->spec->model.blocks[0].attention;
    int64_t rows = a->kernel == HB_KERNEL_BLOCKED ? a->block : lo->local.seq;
    int64_t words = hb_mul_sat(a->heads, hb_mul_sat(lo->local.tokens, lo->spec->batch.seq));
    if (a->kernel == HB_KERNEL_BLOCKED)
        return hb_mul_sat(block, hb_mul_sat(words / lo->local.seq, rows));
    return a->kernel == HB_KERNEL_NAIVE ? hb_mul_sat(naive, words) : 0;
}

/* Hidden features of a layer's weights on a device, gathered, and of a token. */
static int64_t weight_width(const struct hb_lower *lo)
{
    const struct hb_block *b = &lo->spec->model.blocks[0];
    int64_t experts = hb_mul_sat(b->moe.experts, b->moe.d_ff) / hb_ways(lo, HB_AX_EXPERT);
    return hb_add_sat(b->mlp.d_ff, hb_add_sat(experts, b->moe.shared_d_ff));
}

static int64_t token_width(const struct hb_lower *lo)
{
    const struct hb_block *b = &lo->spec->model.blocks[0];
    int64_t routed = hb_mul_sat(b->moe.top_k, b->moe.d_ff);
    return hb_add_sat(b->mlp.d_ff, hb_add_sat(routed, b->moe.shared_d_ff));
}

/* A layer's weights, whole. */
static int64_t weight_bytes(const struct hb_lower *lo)
{
    const struct hb_attention *a = &lo->spec->model.blocks[0].attention;
    int64_t heads = hb_mul_sat(2 * (a->heads + a->kv_heads), a->head_dim);
    int64_t width = hb_add_sat(hb_mul_sat(3, weight_width(lo)), heads);
    return hb_mul_sat(2 * lo->spec->model.d_model, width);
}

/* The batch of all devices, gathered where the experts' inputs are made (moe.c). */
static int64_t gathered_bytes(const struct hb_lower *lo)
{
    enum { GLOBAL_GATHER_WAYS = 8 };
    const struct hb_moe *m = &lo->spec->model.blocks[0].moe;
    int64_t experts = hb_ways(lo, HB_AX_EXPERT), fsdp = hb_ways(lo, HB_AX_FSDP);
    if (experts == 1 || fsdp < GLOBAL_GATHER_WAYS || m->dispatch == HB_DISPATCH_RAGGED)
        return 0;
    return hb_mul_sat(2 * lo->spec->model.d_model,
                      hb_mul_sat(lo->local.tokens, hb_mul_sat(experts, fsdp)));
}

/* A layer's backward pass: whole gradients of its weights beside four of d_ff, or beside the
 * attention's scores (naive in f32 twice and bf16, a block's three in f32 and, of one sequence,
 * one in bf16), and nine of the features. */
static int64_t layer_bytes(const struct hb_lower *lo, bool together)
{
    enum { HIDDEN = 8, FEATURES = 18, NAIVE_BYTES = 10, BLOCK_BYTES = 12 };
    int64_t tokens = lo->local.tokens, d = lo->spec->model.d_model;
    int64_t hidden = hb_mul_sat(HIDDEN, hb_mul_sat(tokens, token_width(lo)));
    int64_t scores =
        score_bytes(lo, NAIVE_BYTES, lo->local.batch == 1 ? BLOCK_BYTES + 2 : BLOCK_BYTES);
    int64_t most = together ? hb_add_sat(hidden, scores) : hb_larger(hidden, scores);
    int64_t sum = hb_add_sat(weight_bytes(lo), most) / hb_ways(lo, HB_AX_TENSOR);
    return hb_add_sat(hb_add_sat(sum, gathered_bytes(lo)), hb_mul_sat(FEATURES * d, tokens));
}

/* What the forward pass has beside one stack of what the layers keep: another one, or a layer's
 * weights, gathered ahead, and its scores without a kernel, with the mask and its fill value. */
static int64_t forward_bytes(const struct hb_lower *lo)
{
    enum { NAIVE_BYTES = 11 };
    int64_t scores = score_bytes(lo, NAIVE_BYTES, 0);
    int64_t layer = hb_add_sat(weight_bytes(lo), scores) / hb_ways(lo, HB_AX_TENSOR);
    return hb_larger(hb_sequence_kept_bytes(lo), scores > 0 ? layer : 0);
}

static bool is_freeing(const struct hb_lower *lo)
{
    return head_bytes(lo, lo->spec->loss.dot) <=
           hb_add_sat(logit_bytes(lo), layer_bytes(lo, false));
}

static int64_t table_bytes(const struct hb_lower *lo)
{
    struct hb_shape s =
        hb_leaf_layer_shape(&lo->leaves[lo->embed], lo->compute, hb_order_table_whole(lo));
    return lo->spec->lookup == HB_LOOKUP_GATHER ? hb_shape_plain_bytes(&s) : 0;
}

/* What the three hold beside the arguments, the inputs of all layers and transposed stacks. */
struct held {
    int64_t loss;  /* both logits and the gathered head, or both gathers and the logits */
    int64_t grads; /* of the layers */
    int64_t back;  /* the layers' backward pass, with those */
    int64_t waits; /* for a head's gradient that comes after it */
    int64_t made;  /* with the head's own gradient, whole */
    int64_t sum;   /* each device's part of that */
};

static int64_t backward_bytes(const struct hb_lower *lo, int64_t layer)
{
    int64_t grads = lo->stacked_grad_bytes;
    return hb_larger(hb_mul_sat(2, grads), hb_add_sat(grads, layer));
}

static struct held find_held(const struct hb_lower *lo)
{
    enum { NORM_TENSORS = 4 }; /* of the features, beside the head's own gradient */
    int64_t logits = logit_bytes(lo), fsdp = hb_fsdp_ways(lo, false);
    int64_t head = head_bytes(lo, lo->compute), own = head_bytes(lo, lo->spec->loss.dot);
    int64_t resid = hb_mul_sat(2 * lo->spec->model.d_model, lo->local.tokens);
    int64_t second = lo->spec->loss.onehot ? 0 : logits;
    struct held h = {.grads = lo->stacked_grad_bytes};
    h.loss = hb_add_sat(head, hb_add_sat(logits, hb_mul_sat(2, resid)));
    h.loss = hb_add_sat(h.loss, second);
    h.back = backward_bytes(lo, layer_bytes(lo, false));
    h.waits = hb_add_sat(resid, hb_order_dot_narrow(lo) ? logits / 2 : logits);
    h.sum = own / fsdp;
    h.made = hb_add_sat(hb_add_sat(own, hb_add_sat(h.sum, head / fsdp)),
                        hb_add_sat(h.waits, hb_mul_sat(NORM_TENSORS, resid)));
    return h;
}

static int64_t list_bytes(const struct hb_lower *lo, const struct held *h)
{
    int64_t head = head_bytes(lo, lo->compute);
    int64_t first = hb_larger(h->loss, hb_add_sat(forward_bytes(lo), head));
    bool frees = is_freeing(lo);
    first = hb_larger(first, frees ? h->made : 0);
    int64_t list =
        hb_larger(hb_add_sat(h->grads, first), hb_add_sat(frees ? 0 : h->waits, h->back));
    return hb_add_sat(table_bytes(lo), list);
}

static int64_t depth_bytes(const struct hb_lower *lo, const struct held *h)
{
    int64_t depth = hb_add_sat(h->waits, h->back);
    /* Gradients of the layers wait with the head's for the norm of all (opt/8B,f4,bf16all,s1k). */
    if (lo->spec->optimizer.clip && lo->spec->batch.accumulate == 1)
        depth = hb_larger(depth, hb_add_sat(h->made, h->grads));
    return hb_larger(hb_larger(h->loss, depth), forward_bytes(lo));
}

static int64_t post_bytes(const struct hb_lower *lo, const struct held *h)
{
    int64_t made = hb_add_sat(h->made, head_bytes(lo, lo->compute));
    int64_t back = hb_add_sat(h->sum, backward_bytes(lo, layer_bytes(lo, lo->local.batch > 1)));
    return hb_larger(hb_larger(h->loss, forward_bytes(lo)), hb_larger(made, back));
}

enum hb_sequence hb_sequence_gpu_find(const struct hb_lower *lo)
{
    struct held h = find_held(lo);
    int64_t list = list_bytes(lo, &h), depth = depth_bytes(lo, &h);
    int64_t post = has_post(lo) ? post_bytes(lo, &h) : INT64_MAX;
    if (list <= depth && list <= post)
        return HB_SEQUENCE_LIST;
    return depth <= post ? HB_SEQUENCE_DEPTH : HB_SEQUENCE_POST;
}

bool hb_sequence_gpu_waits(const struct hb_lower *lo)
{
    switch (hb_sequence_gpu_find(lo)) {
    case HB_SEQUENCE_LIST:
        return false;
    case HB_SEQUENCE_DEPTH:
        return true;
    case HB_SEQUENCE_POST:
        return false;
    }
    HB_BUG("sequence out of range");
}
