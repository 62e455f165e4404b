/* The choice of a sequence on XLA:GPU: see sequence_gpu.h and sequence.c. The scheduler's log
 * (hlo_memory_scheduler=2) has the three figures, heap_simulator=3 what is alive at their peaks:
 *
 *   list   zeros of all gradients, and of the table's, beside both logits and the gathered head;
 *          then the layers' backward pass without logits
 *   depth  both logits; then the backward pass beside the logits' gradient
 *
 * The layers' gradients count twice at the end of a layer: what the loop's body writes is not
 * shared with its start there. MiB above the arguments, list and depth: 8B/base 10833 10997;
 * 8B,v5e16x16,dp4f64 with 32000 words 3433 3750, 50304 4010 4030, 64000 4657 4247, 128256 7673
 * 6260; data 8 and fsdp 8 with two microbatches 15532 14826. The forms below give the difference
 * of the two within 5 %. */
#include "sim/ir/sequence_gpu.h"

#include <limits.h>

#include "base/size.h"
#include "sim/ir/order.h"

bool hb_sequence_gpu_known(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    bool batch = !hb_alone(lo) && hb_ways(lo, HB_AX_TENSOR) == 1 &&
                 hb_ways(lo, HB_AX_SEQUENCE) == 1 && hb_ways(lo, HB_AX_PIPELINE) == 1;
    return lo->habits->logits_copies == 2 && !lo->habits->gathers_timed && batch &&
           s->stack.form == HB_FORM_SCAN && s->loss.chunks == 1 && !s->optimizer.clip &&
           s->step.donate && !s->model.tied_embeddings;
}

/* Of a product in bf16 with one-hot labels there are no others (8B,f64,b4,onehot with one sequence
 * a device: bf16[4096,128256] thrice, in turn). */
static int64_t logit_bytes(const struct hb_lower *lo)
{
    enum hb_dtype dtype = lo->spec->loss.onehot ? lo->spec->loss.dot : HB_DT_F32;
    return hb_mul_sat(hb_dtype_bits(dtype) / CHAR_BIT,
                      hb_mul_sat(lo->local.tokens, lo->local.vocab));
}

static int64_t head_bytes(const struct hb_lower *lo, enum hb_dtype dtype)
{
    struct hb_shape s = hb_leaf_layer_shape(&lo->leaves[lo->head], dtype, true);
    return hb_shape_plain_bytes(&s);
}

/* Scores of a layer's attention, of `part` bytes a word: all of them, or those of a block. */
static int64_t score_bytes(const struct hb_lower *lo, int64_t naive, int64_t block)
{
    const struct hb_attention *a = &lo->spec->model.blocks[0].attention;
    int64_t rows = a->kernel == HB_KERNEL_BLOCKED ? a->block : lo->local.seq;
    int64_t words = hb_mul_sat(a->heads, hb_mul_sat(lo->local.tokens, lo->spec->batch.seq));
    if (a->kernel == HB_KERNEL_BLOCKED)
        return hb_mul_sat(block, words / lo->local.seq * rows);
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
    return hb_mul_sat(2 * lo->spec->model.d_model, hb_mul_sat(lo->local.tokens, experts * fsdp));
}

/* A layer's backward pass: whole gradients of its weights beside four of d_ff, or beside the
 * attention's scores (naive in f32 twice and bf16, a block's three in f32 and, of one sequence,
 * one in bf16), and nine of the features. */
static int64_t layer_bytes(const struct hb_lower *lo)
{
    enum { HIDDEN = 8, FEATURES = 18, NAIVE_BYTES = 10, BLOCK_BYTES = 12 };
    int64_t tokens = lo->local.tokens, d = lo->spec->model.d_model;
    int64_t hidden = hb_mul_sat(HIDDEN, hb_mul_sat(tokens, token_width(lo)));
    int64_t scores =
        score_bytes(lo, NAIVE_BYTES, lo->local.batch == 1 ? BLOCK_BYTES + 2 : BLOCK_BYTES);
    int64_t sum = hb_add_sat(weight_bytes(lo), hb_larger(hidden, scores));
    return hb_add_sat(hb_add_sat(sum, gathered_bytes(lo)), hb_mul_sat(FEATURES * d, tokens));
}

/* What the forward pass has beside one stack of what the layers keep: another one, or a layer's
 * weights, gathered ahead, and its scores without a kernel, with the mask and its fill value. */
static int64_t forward_bytes(const struct hb_lower *lo)
{
    enum { NAIVE_BYTES = 11 };
    int64_t width = hb_order_kept_width(lo, &lo->spec->model.blocks[0]);
    int64_t kept = hb_mul_sat(lo->input_bytes / lo->local.resid_width, width);
    int64_t scores = score_bytes(lo, NAIVE_BYTES, 0);
    return hb_larger(kept, scores > 0 ? hb_add_sat(weight_bytes(lo), scores) : 0);
}

/* In an accumulation loop, depth-first, the head's gradient comes before layers whose scores
 * without a kernel are larger than the logits (1B,f8,a4,offload with attn=naive, two and one
 * sequences a device: f32[2,4096,128256] from 237 to 248 of 642; 8B,f64,b4; of 1024 tokens to the
 * end, so with a block's scores and without a loop). */
static bool is_head_before(const struct hb_lower *lo)
{
    return lo->spec->batch.accumulate > 1 && score_bytes(lo, 4, 0) > logit_bytes(lo);
}

static bool is_freeing(const struct hb_lower *lo)
{
    return head_bytes(lo, lo->spec->loss.dot) <= hb_add_sat(logit_bytes(lo), layer_bytes(lo));
}

static int64_t table_bytes(const struct hb_lower *lo)
{
    struct hb_shape s =
        hb_leaf_layer_shape(&lo->leaves[lo->embed], lo->compute, hb_order_table_whole(lo));
    return lo->spec->lookup == HB_LOOKUP_GATHER ? hb_shape_plain_bytes(&s) : 0;
}

bool hb_sequence_gpu_gathers_twice(const struct hb_lower *lo)
{
    return lo->spec->loss.dot == HB_DT_F32;
}

bool hb_sequence_gpu_list(const struct hb_lower *lo)
{
    enum { NORM_TENSORS = 5 }; /* of the features, beside the head's own gradient */
    int64_t logits = logit_bytes(lo), grads = lo->stacked_grad_bytes;
    int64_t head = head_bytes(lo, lo->compute), own = head_bytes(lo, lo->spec->loss.dot);
    int64_t resid = hb_mul_sat(2 * lo->spec->model.d_model, lo->local.tokens);
    bool twice = hb_sequence_gpu_gathers_twice(lo);
    int64_t second = lo->spec->loss.onehot ? 0 : logits;
    int64_t loss = hb_add_sat(head, hb_add_sat(logits, 2 * resid));
    loss = hb_add_sat(loss, hb_larger(second, twice ? head : 0));
    int64_t back = hb_larger(hb_mul_sat(2, grads), hb_add_sat(grads, layer_bytes(lo)));
    int64_t waits = hb_add_sat(resid, hb_order_dot_narrow(lo) ? logits / 2 : logits);
    bool frees = is_freeing(lo);
    int64_t first = hb_add_sat(forward_bytes(lo), twice ? hb_mul_sat(2, head) : head);
    first = hb_larger(first, loss);
    int64_t made = hb_add_sat(own, (own + head) / hb_fsdp_ways(lo, false));
    made = hb_add_sat(made, hb_add_sat(waits, (NORM_TENSORS - 1) * resid));
    first = hb_larger(first, frees ? made : 0);
    int64_t list = hb_larger(hb_add_sat(grads, first), hb_add_sat(frees ? 0 : waits, back));
    int64_t depth = hb_larger(loss, hb_add_sat(is_head_before(lo) ? 0 : waits, back));
    depth = hb_larger(depth, forward_bytes(lo));
    return hb_add_sat(table_bytes(lo), list) <= depth;
}

bool hb_sequence_gpu_waits(const struct hb_lower *lo)
{
    return hb_sequence_gpu_list(lo) ? !is_freeing(lo) : !is_head_before(lo);
}
