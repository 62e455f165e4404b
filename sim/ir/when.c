/* When a layer's backward pass makes a weight's gradient (when.h), read in the schedules named. */
#include "sim/ir/when.h"

#include <limits.h>

#include "base/size.h"
#include "sim/ir/moe_experts.h"
#include "sim/ir/sequence.h"
#include "sim/ir/spread.h"
#include "sim/ir/weight.h"

enum { EARLY_TOKENS = 4096 };

static bool is_timed(const struct hb_body *b, enum hb_kernel kernel)
{
    const struct hb_lower *lo = b->lo;
    return lo->habits->gathers_timed && hb_gathers_weights(lo) &&
           b->y->block->attention.kernel == kernel;
}

/* CUDA hides the exchanges of a residual that is split over tensor behind weight gradients, where
 * attention is a kernel: all come after the last gradient through a weight, and the parts of an
 * input's gradient are added at once (70B,f64t4,lin,spres: three bf16[16384,8192] and their sum
 * from 364 to 370, four bf16[4,4096,7168] and the gathered gradients to 377 and 394; rnd/044, whose
 * scores are naive, not). */
static bool ends_late(const struct hb_body *b)
{
    return b->lo->local.resid_seq < b->lo->local.seq && is_timed(b, HB_KERNEL_FLASH);
}

static bool is_gathered_experts(const struct hb_body *b, const struct hb_leaf *l)
{
    return b->lo->habits->rings && l->held && l->rank == HB_LEAF_RANK;
}

/* XLA:TPU's ragged experts sum their gradients in calls of their own, no rings, which in unrolled
 * layers do not wait (phimoe,f8,loop,ragged: psum in each layer). */
static bool is_summed_apart(const struct hb_body *b, const struct hb_leaf *l)
{
    return is_gathered_experts(b, l) && hb_layer_sorts_rows(&b->y->block->moe) && b->own_stacks;
}

/* On v6e rings of dense layers' weights whose columns are split into whole lanes do not wait for
 * the unrolled layers, but in a loop over microbatches (four layers over 16, 4,096 and 6,144 wide:
 * w_down's and wo's in their layer, others behind all; 5,120 and 7,168 wide, parts of 320 and 448:
 * all behind, as qwen3-4b in four microbatches, over 4 and v5p). */
static bool is_ring_at_once(const struct hb_body *b, const struct hb_leaf *l)
{
    bool dense = !hb_block_mixes(b->y->block);
    return b->lo->chip->ring_columns_at_once && l->gather_dim > 0 && dense &&
           l->dim[l->gather_dim].size / l->fsdp_ways % HB_TPU_LANES == 0 &&
           !hb_accumulates(b->lo) && hb_weight_ring_room(b->lo, l) > 0;
}

/* Whether it waits for the layer's end whatever follows. */
static bool is_put_by(const struct hb_body *b, const struct hb_leaf *l)
{
    const struct hb_lower *lo = b->lo;
    enum hb_weight_mode mode = hb_weight_mode(lo, l);
    bool mlp = l->held;
    /* MaxText's rings: the MLP's come last of all, its activations wait through the attention's
     * backward pass (llama3-8b, qwen3-8b, llama2-13b: dkv, dq, then the rings of wq, wk, wv, wo,
     * w_down, gate and up, from 8192 tokens on; some earlier with 4096 and 2048). */
    bool ring = mode == HB_WEIGHT_RING && lo->maxtext && mlp && lo->local.tokens > EARLY_TOKENS;
    bool split = ends_late(b);
    /* CUDA's between gathers, which a kernel's small tensors do not show: gate, up and a gradient
     * of theirs beside the scores of the attention's backward pass (gemma-2b over fsdp 8, b8:
     * products of weights at 94, 101 and 129 of 186, scores at 98 to 108). */
    bool scores = mlp && is_timed(b, HB_KERNEL_NAIVE);
    return (b->defer && !is_summed_apart(b, l) && !is_ring_at_once(b, l)) || ring || split ||
           scores || (b->meets_loss && mlp);
}

bool hb_body_sorts_beside(const struct hb_body *b)
{
    const struct hb_block *block = b->y->block;
    return hb_gathers_beside(b->lo) && hb_block_mixes(block) && hb_layer_sorts_rows(&block->moe);
}

/* XLA:TPU's list puts off what adds most. Gathered experts of the einsum: a weight's gradient comes
 * before the gradient of its rows where it is the smaller of the two (olmoe over 4, 64:
 * bf16[64,2048,1024] before bf16[64,8,640,2048]), after it where it is not, and at the layer's end
 * where it is more than its rows of both widths, which it sets free (mixtral over 64: 896 MiB
 * behind 80 and 280). Those in rings wait as well. v5e's sorted ones, whose sums come behind all
 * three, do not: down's behind the first gradient of rows, that one's own, then the others. Rings
 * in the list's order run at once where no product that is ready frees memory, its weight being
 * less than its rows (olmoe over 32), else behind those (mixtral over 16 and expert 4). */
static enum hb_when place_experts(const struct hb_body *b, const struct hb_step_op *s)
{
    const struct hb_lower *lo = b->lo;
    const struct hb_value *in = &b->y->values[s->in[0]], *out = &b->y->values[s->out[0]];
    struct hb_shape weight = hb_leaf_layer_shape(&lo->leaves[s->leaf], lo->compute, true);
    int64_t made = hb_shape_plain_bytes(&weight);
    int64_t rows = hb_shape_plain_bytes(&in->shape);
    int64_t both = hb_add_sat(hb_shape_plain_bytes(&in->shape), hb_shape_plain_bytes(&out->shape));
    if (hb_body_sorts_beside(b))
        return hb_spread_is_down(b, s) ? HB_WHEN_LATE : HB_WHEN_AFTER;
    if (hb_moe_in_list(lo, b->y) && !hb_spread_is_down(b, s))
        return made < rows ? HB_WHEN_FIRST : HB_WHEN_LATE;
    if (!s->grad_by_size || made > both)
        return HB_WHEN_LATE;
    return made < rows ? HB_WHEN_FIRST : HB_WHEN_AFTER;
}

/* MaxText's attention output is kept or fetched, what leads to it made again behind the MLP. */
static bool postpones_attention(const struct hb_body *b)
{
    uint32_t names = b->y->block->remat.save | b->y->block->remat.offload;
    return (names & 1u << HB_TN_ATTN_OUT) && !(names & 1u << HB_TN_Q);
}

/* The MLP's activation, where products of split features are summed over devices: it is made in one
 * fusion with the gradients of gate and up, and what an all-reduce has written is not written over
 * (fsdp 8, 32 sequences, remat full without constraints: bf16[32,4096,12288] six times). */
static bool waits_for_fusion(const struct hb_body *b, const struct hb_step_op *s)
{
    int maker = b->y->values[s->in[0]].producer;
    return b->lo->batch_whole && maker >= 0 && b->y->steps[maker].kind == HB_STEP_MIX &&
           b->saved->keep[s->in[0]] == HB_KEEP_NO;
}

/* XLA:CUDA's stages near the compiler's limit: gate's and up's before the tokens' gradient, and
 * down's at the end (pr85/pp8/good,batch=64,ragged: at 202 and 203, and 342). */
static bool is_spread_at_once(const struct hb_body *b, const struct hb_step_op *s)
{
    return s->spread > 0 && b->lo->spec->share >= HB_SHARE_TIGHT && b->y->together > 1 &&
           b->y->values[s->in[0]].producer >= 0 && !hb_spread_is_down(b, s);
}

/* v5e hides the fetch of what the next trip begins with behind a product that only the trip's end
 * waits for, one of the MLP's: its two of d_ff wait through the attention (yi-6b over 64, layer
 * inputs on the host: fusion.553, bf16[4096,11008], behind the fetch; six of eight such dumps, the
 * gate's in two; what attention or the MLP fetches for itself, q or attn_out, is hidden there). */
static bool fills_fetch(const struct hb_body *b, const struct hb_step_op *s)
{
    static const uint32_t begun =
        1u << HB_TN_LAYER_IN | 1u << HB_TN_MLP_GATE | 1u << HB_TN_MLP_UP | 1u << HB_TN_MLP_ACT;
    bool up = (b->y->values[s->out[0]].tags & 1u << HB_TN_MLP_UP) != 0;
    return up && (b->y->block->remat.offload & begun) != 0;
}

/* Depth-first goes down to the layer's input, and makes w_down's gradient with the others behind it
 * (v6e, fsdp 64, two of 16,384 tokens: four of bf16[2,16384,14336] through the attention). */
static bool goes_down_first(const struct hb_lower *lo)
{
    return hb_sequence_gathers_taken(lo) & HB_GATHERS_DEPTH;
}

/* When a weight's gradient is made: after that of the input; or, where gathers are padded sums
 * (8B64/base), the MLP's last one before its weight is gathered, and the others at the end of the
 * layer, each just before its own sum. On v5e the MLP's all come first (8B-L16,v5e,f64: three
 * beside both weights and three bf16[4096,14336]). Gate's and up's come behind the attention
 * however many the tokens, and behind one that is made again after the MLP its last one, too. */
enum hb_when hb_body_when(const struct hb_body *b, const struct hb_step_op *s)
{
    const struct hb_lower *lo = b->lo;
    const struct hb_leaf *l = &lo->leaves[s->leaf];
    if (is_spread_at_once(b, s))
        return HB_WHEN_FIRST;
    if (s->grad_late || is_put_by(b, l) || s->spread > 0)
        return HB_WHEN_LATE;
    bool sorted = l->rank == HB_LEAF_RANK && hb_layer_sorts_rows(&b->y->block->moe);
    if (hb_gathers_beside(b->lo) && l->held && !sorted && !hb_moe_in_list(lo, b->y))
        return fills_fetch(b, s) ? HB_WHEN_LATE : HB_WHEN_FIRST;
    if (is_gathered_experts(b, l))
        return is_summed_apart(b, l) ? HB_WHEN_AFTER : place_experts(b, s);
    if (waits_for_fusion(b, s))
        return HB_WHEN_LATE;
    bool padded = hb_gathers_padded(lo), late = hb_gathers_late(lo);
    bool mlp = padded && l->held;
    bool first = (padded || late) && !(mlp && postpones_attention(b)) &&
                 b->y->values[s->in[0]].fused && l->gather_dim == 1;
    if (first && (padded || !goes_down_first(lo)))
        return HB_WHEN_FIRST;
    bool waits = late || mlp, in_unit = waits && b->y->block->unit > 1;
    b->lo->unit_waits |= in_unit;
    return waits && !(in_unit && lo->spec->share == HB_SHARE_TIGHT) ? HB_WHEN_LATE : HB_WHEN_AFTER;
}

static bool is_output(const struct hb_step_op *s, int v)
{
    for (int o = 0; o < s->out_count; o++)
        if (v == s->out[o])
            return true;
    return false;
}

bool hb_body_readers_done(const struct hb_body *b, const struct hb_step_op *s, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        const struct hb_step_op *reader = &b->y->steps[k];
        for (int j = 0; j < reader->in_count && !reader->no_grad; j++)
            if (is_output(s, reader->in[j]))
                return false;
    }
    return true;
}

/* XLA:ROCm's last fusion of a layer makes the gradient of the sum after attention again, from what
 * came in, what comes back through the norm, and what that read: those three stay while attention
 * runs backwards, beside the sum itself only up to the products that read it (bwd/base: three
 * bf16[16384,1024] from 294 and 370 to 445; tied/1B,t8; moeT/base). */
bool hb_body_sum_remade(const struct hb_body *b, const struct hb_step_op *s)
{
    int from = b->y->values[s->in[0]].producer;
    return b->lo->habits->sums_remade && !b->sums_wide && s->in_count == 1 && from >= 0 &&
           b->y->steps[from].kind == HB_STEP_ADD && b->grad[s->in[0]] != HB_NONE;
}
