/* Head and loss: see loss.h.
 * Measured: one device keeps one f32 logits tensor (tinyS/base: f32[8,2048,32000] and nothing
 * else of that width); with a split head a gradient in the compute dtype stands beside it, with
 * the gathered head (1B/base: 4008 + 2004 + 501 MiB); XLA:GPU keeps two in f32 (habits). */
#include "sim/ir/loss.h"

#include "base/size.h"
#include "sim/ir/head.h"
#include "sim/ir/order.h"
#include "sim/ir/sequence.h"
#include "sim/ir/weight.h"

/* One pass of head and loss over a chunk of the tokens. */
struct loss_pass {
    int64_t seq;     /* positions of the chunk on this device */
    uint32_t x;      /* normalised input, compute dtype */
    uint32_t w;      /* head as the products read it */
    uint32_t before; /* logits before a cast that the gradient reads; HB_NONE */
    uint32_t logits;
    uint32_t dlogits;
};

static struct hb_shape logit_shape(const struct hb_lower *lo, int64_t seq, enum hb_dtype dtype)
{
    return hb_shape_make(dtype, (const int64_t[]){lo->local.batch, seq, lo->local.vocab, -1});
}

static double head_flops(const struct hb_lower *lo, int64_t seq)
{
    return 2.0 * (double)lo->local.batch * (double)seq * (double)lo->local.vocab *
           (double)lo->spec->model.d_model;
}

/* A chunk's products read and write its own part of what is there whole. */
static double chunk_bytes(const struct hb_lower *lo, int64_t seq)
{
    double m = (double)lo->local.batch * (double)seq, n = (double)lo->local.vocab;
    double k = (double)lo->spec->model.d_model;
    return lo->spec->loss.chunks > 1 ? 2 * (m * k + k * n + m * n) : 0;
}

static struct hb_emit head_product(const struct hb_lower *lo, int64_t seq, const char *name)
{
    return (struct hb_emit){.name = name,
                            .moved_bytes = chunk_bytes(lo, seq),
                            .kind = HB_OP_MATMUL,
                            .flops = head_flops(lo, seq),
                            .rows = lo->local.batch * seq,
                            .cols = lo->local.vocab,
                            .depth = lo->spec->model.d_model};
}

/* Shards whose rows fill no tile are gathered side by side, then joined (MaxText, qwen3-32b over
 * 256: bf16[256,20,151936] and bf16[5120,151936,1]; gemma2-9b over 256, shards of 14; not llama3-8b
 * over 256, of 16). */
enum { TILE_ROWS = 8 };

static bool is_ragged_shard(const struct hb_lower *lo, const struct hb_leaf *l)
{
    const struct hb_split *split = &l->dim[l->gather_dim];
    return lo->maxtext && hb_div_up(split->size, split->ways) % TILE_ROWS != 0;
}

/* The head in the compute dtype: read where it lies, cast, or gathered. */
static uint32_t use_head(struct hb_lower *lo, bool in_loop)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    if (l->gathered != HB_NONE) {
        uint32_t early = l->gathered;
        l->gathered = HB_NONE;
        return early;
    }
    uint32_t w = l->cast != HB_NONE ? l->cast : l->arg;
    bool cast = l->cast == HB_NONE && lo->spec->precision.params != lo->compute;
    if (cast && (hb_head_split(lo) || in_loop || !lo->habits->casts_hoisted)) {
        w = hb_temp(lo, "head, cast", HB_CAT_WORKING, hb_leaf_layer_shape(l, lo->compute, false));
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "cast head", l->arg, w);
    }
    if (!hb_head_split(lo))
        return w;
    uint32_t whole = hb_temp(lo, "head, gathered", HB_CAT_COMMUNICATION,
                             hb_leaf_layer_shape(l, lo->compute, true));
    if (!is_ragged_shard(lo, l)) {
        hb_weight_gather(lo, "gather head", w, whole);
        return whole;
    }
    uint32_t parts =
        hb_temp(lo, "head, gathered shard by shard", HB_CAT_COMMUNICATION, hb_buf_shape(lo, whole));
    hb_weight_gather(lo, "gather head", w, parts);
    hb_emit_simple(lo, HB_OP_COPY, "join the head's shards", parts, whole);
    return whole;
}

/* A product in bf16 followed by a cast keeps the bf16 logits alone where the labels come in as
 * one-hot masks (rnd/064, 8B,f64,b4,onehot: one bf16[4,4096,128256]); gathered labels read the
 * f32 ones, which then stand beside (tinyS/logits_dot=bf16: +968 MiB). XLA:GPU makes the cast in
 * the readers: bf16 logits and their f32 gradient (tinyS/logits_dot=bf16 on ROCm: 1000 + 2000),
 * with one-hot labels one bf16 tensor for both (8B,f64,b4,onehot). */
static enum hb_dtype logits_dtype(const struct hb_lower *lo)
{
    bool narrow = lo->spec->loss.dot != HB_DT_F32 &&
                  (lo->spec->loss.onehot || lo->habits->logits_copies == 2);
    return narrow ? lo->spec->loss.dot : HB_DT_F32;
}

/* One sequence on one device: the gradient of the labels' gather stays a scatter, into a tensor of
 * its own (opt/base: two f32[512,32000]; rnd/079: f32[1,4096,32000] and f32[131072000]; tinyS, with
 * 8: one). */
static bool is_scattered(const struct hb_lower *lo)
{
    bool sharded = lo->local.batch_ways > 1 || hb_ways(lo, HB_AX_TENSOR) > 1 ||
                   hb_ways(lo, HB_AX_SEQUENCE) > 1 || hb_ways(lo, HB_AX_PIPELINE) > 1;
    return lo->habits->logits_copies == 1 && !sharded && lo->local.batch == 1 &&
           !lo->spec->loss.onehot;
}

/* Logits of one sequence before they are cast lie as a matrix that the gradient reads beside the
 * f32 ones (ring/f16,d2k with logits_dot=bf16: f32[1,4096,32000] and two bf16; 8B,f64,lin,gate with
 * it the same; with two sequences one, ring/dl,f8,b2,v128k, and between gathers that send nothing
 * to the host: dl,8B-L16,f64,b1,v128k; ring/v6e8x8,f64). */
static bool reads_before(const struct hb_lower *lo)
{
    bool apart = hb_head_ring(lo) || lo->spec->model.blocks[0].remat.offload != 0;
    return hb_head_split(lo) && apart && lo->local.batch == 1 && lo->habits->logits_copies == 1 &&
           lo->spec->loss.chunks == 1 && !lo->maxtext;
}

static void make_logits(struct hb_lower *lo, struct loss_pass *c)
{
    uint32_t narrow = HB_NONE;
    enum hb_dtype dtype = logits_dtype(lo);
    bool cast = lo->spec->loss.dot != HB_DT_F32 && dtype == HB_DT_F32;
    if (cast && (!hb_head_split(lo) || reads_before(lo)) && !is_scattered(lo)) {
        narrow = hb_temp(lo, "logits before the cast", HB_CAT_LOGITS,
                         logit_shape(lo, c->seq, lo->spec->loss.dot));
        hb_emit_mark(lo, "logits before the cast", HB_NONE, narrow);
    }
    c->before = reads_before(lo) ? narrow : HB_NONE;
    c->logits = hb_temp(lo, "logits", HB_CAT_LOGITS, logit_shape(lo, c->seq, dtype));
    struct hb_emit e = head_product(lo, c->seq, "logits");
    hb_emit_read(&e, c->x);
    hb_emit_read(&e, c->w);
    hb_emit_read(&e, narrow);
    hb_emit_write(&e, c->logits);
    hb_emit(lo, &e);
}

/* A split head's gradient is collected in f32 (1B/base), MaxText's in the dtype of its product
 * (llama3-8b/base: two bf16[512,128256]; f32 with logits_dot_in_fp32). */
static enum hb_dtype split_grad_dtype(const struct hb_lower *lo)
{
    return hb_head_own_rule(lo) ? lo->spec->loss.dot : HB_DT_F32;
}

/* A short ring that waits has one part in each direction (gate/v5e,f4: two f32[1024,32000] beside
 * the logits). */
static struct hb_shape half_shape(const struct hb_lower *lo, const struct hb_leaf *l)
{
    struct hb_shape s = hb_leaf_layer_shape(l, split_grad_dtype(lo), false);
    if (hb_head_short_ring(lo) && !(hb_ways(lo, HB_AX_TENSOR) == 1 && hb_head_waits(lo)))
        s.dim[0] *= 3;
    return s;
}

/* Where the head's gradient is collected. A ring runs both ways and collects in two halves
 * (1B/base: f32[256,128256] each). */
static void add_accumulators(struct hb_lower *lo, struct hb_leaf *l)
{
    bool split = hb_head_split(lo);
    if (l->grad == HB_NONE)
        l->grad =
            hb_temp(lo, "head, gradient", HB_CAT_GRADIENTS,
                    hb_leaf_layer_shape(l, split ? split_grad_dtype(lo) : lo->compute, false));
    if (split && hb_head_ring(lo) && l->grad_half == HB_NONE)
        l->grad_half = hb_temp(lo, "head, gradient of the ring's other direction", HB_CAT_GRADIENTS,
                               half_shape(lo, l));
}

/* The accumulators of a ring that waits are there from the start (8B/base: two f32[512,128256] from
 * 98 to 2583 of 2713; 1B/base, which does not wait, has none at the loss; nor have MaxText's tied
 * heads). */
static void zero_ring(struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    add_accumulators(lo, l);
    struct hb_emit e = {.name = "zero gradient of the head", .kind = HB_OP_MARK};
    hb_emit_write(&e, l->grad);
    hb_emit_write(&e, l->grad_half);
    hb_emit(lo, &e);
}

static bool gathers_in_chunks(const struct hb_lower *lo)
{
    return hb_head_split(lo) && !hb_head_ring(lo);
}

/* XLA:GPU casts its part of a head that chunks gather once, before the layers (v5e6e/1B,f8,b8 on
 * ROCm: bf16[256,128256] from 76 to 287 of 635 beside the gathered ones; 1B,sp2f4,chunk8 on both).
 */
static bool is_cast_for_chunks(const struct hb_lower *lo)
{
    return lo->spec->loss.chunks > 1 && gathers_in_chunks(lo) && lo->habits->logits_copies == 2 &&
           lo->spec->precision.params != lo->compute;
}

static void prepare_ring(struct hb_lower *lo)
{
    if (hb_head_split(lo) && hb_head_ring(lo) && hb_head_waits(lo) && !hb_head_post_order(lo) &&
        !(lo->maxtext && lo->spec->model.tied_embeddings))
        zero_ring(lo);
}

void hb_loss_prepare(struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    if (is_cast_for_chunks(lo)) {
        l->cast =
            hb_temp(lo, "head, cast", HB_CAT_WORKING, hb_leaf_layer_shape(l, lo->compute, false));
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "cast head", l->arg, l->cast);
    }
    prepare_ring(lo);
    if (hb_head_gathered_first(lo))
        lo->leaves[lo->head].gathered = use_head(lo, false);
}

/* MaxText's backward rule makes the gradient of the logits a tensor that both products read (v5p
 * over 8, 64, 128 and 256 devices: base/llama3-8b, v5p-512: two bf16[4,8192,128256]; in pipelines,
 * too: pp8_lps4, pp4_lps2 with 8 microbatches: two bf16[4,4096,128256]), except where
 * gathers are late or beside the products (v6e-64, v5e-256: one). */
static bool has_own_gradient(const struct hb_lower *lo)
{
    return hb_head_own_loss(lo) && lo->spec->loss.chunks == 1 &&
           lo->gather_form != HB_GATHER_LATE && lo->gather_form != HB_GATHER_BESIDE;
}

/* A ring's products read the logits' gradient in the compute dtype (1B/base, 8B/base), and so do
 * those of a product in bf16 (rnd/016, rnd/077: f32[2,2048,64128] and bf16 of it). */
static bool has_narrow_dlogits(const struct hb_lower *lo)
{
    /* Capped logits are read once more by the cap's gradient (rand012/gemma2-27b, 256 ways: two
     * bf16[4,1024,256128]). */
    bool narrow_dot = lo->spec->loss.dot != HB_DT_F32 && !lo->spec->loss.onehot;
    bool ring = hb_head_ring(lo) && !hb_head_short_ring(lo);
    bool split = hb_head_split(lo) && (ring || lo->spec->loss.softcap > 0);
    return lo->habits->logits_copies == 1 && (split || narrow_dot || has_own_gradient(lo));
}

/* What waits for a postponed head gradient: that narrow copy, or, where the ring is wide or long,
 * the f32 logits (8B/base against 8B/seq=8192 and batch/8B,f16,b1), not beside tensor parallelism
 * (ring/f32t4,tied,opt_host: bf16[2,4096,8000]). */
enum { RING_COPY_WAYS = 8 };

static uint32_t waiting_logits(const struct hb_lower *lo, const struct loss_pass *c)
{
    if (hb_head_short_ring(lo) && c->before != HB_NONE && hb_head_ring(lo))
        return c->logits;
    bool narrow = hb_fsdp_ways(lo, false) <= RING_COPY_WAYS || hb_ways(lo, HB_AX_TENSOR) > 1 ||
                  hb_head_copy_waits(lo);
    return has_narrow_dlogits(lo) && !narrow ? c->logits : c->dlogits;
}

/* The gradient of a tied table has the words for rows: its product reads the narrow gradient in
 * another layout where it is no ring on v5p (gemma2b,v5e4x4,f16: f32[4096,256128] and two bf16 of
 * it, untied one; gemma2b,f8: one; dslite,f64,ragged,bf16dot: two bf16[4096,102400]). */
static bool has_turned_dlogits(const struct hb_lower *lo)
{
    return lo->spec->model.tied_embeddings && has_narrow_dlogits(lo) && hb_head_split(lo) &&
           !lo->maxtext && (lo->gather_form == HB_GATHER_PADDED || lo->chip->tied_grad_turned);
}

/* XLA:GPU reads a chunk's logits in several passes, so that they live longer than their gradient
 * and are placed before it (1B/loss=chunk,loss_chunks=8 on ROCm: f32[1024,128256] from 224 to 231,
 * the gradient to 237; gemma2b,f8,chunk8 with gathered labels: 215 to 222, to 228). */
enum { LOGIT_PASSES = 4 };

static void read_logits(struct hb_lower *lo, const struct loss_pass *c)
{
    bool several = lo->habits->logits_copies == 2 && lo->spec->loss.chunks > 1;
    for (int i = 0; several && i < LOGIT_PASSES; i++)
        hb_emit_mark(lo, "pass over the logits", c->logits, HB_NONE);
}

static void make_dlogits(struct hb_lower *lo, struct loss_pass *c)
{
    c->dlogits = c->logits;
    bool two = lo->habits->logits_copies == 2 && !lo->spec->loss.onehot;
    if (two || is_scattered(lo))
        c->dlogits = hb_temp(lo, "gradient of the logits", HB_CAT_LOGITS,
                             logit_shape(lo, c->seq, HB_DT_F32));
    else if (has_narrow_dlogits(lo))
        c->dlogits = hb_temp(lo, "gradient of the logits", HB_CAT_LOGITS,
                             logit_shape(lo, c->seq, lo->compute));
    read_logits(lo, c);
    struct hb_emit e = {.name = "softmax cross-entropy", .kind = HB_OP_REDUCE};
    hb_emit_read(&e, c->logits);
    hb_emit_read(&e, c->before);
    hb_emit_read(&e, lo->labels);
    if (c->dlogits == c->logits)
        c->dlogits = hb_temp_in_place(lo, "gradient of the logits", HB_CAT_LOGITS, c->logits);
    hb_emit_write(&e, c->dlogits);
    if (has_turned_dlogits(lo))
        hb_emit_write(&e, hb_temp(lo, "gradient of the logits, turned", HB_CAT_LOGITS,
                                  logit_shape(lo, c->seq, lo->compute)));
    hb_emit(lo, &e);
    if (!two || !hb_order_dot_narrow(lo))
        return;
    uint32_t wide = c->dlogits;
    c->dlogits = hb_temp(lo, "gradient of the logits, cast", HB_CAT_LOGITS,
                         logit_shape(lo, c->seq, lo->spec->loss.dot));
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "cast gradient of the logits", wide, c->dlogits);
}

/* A product in bf16 has gradients in bf16: 70B/base at 2048 tokens, logits_dot=bf16:
 * bf16[8192,128256], not f32; 8B,f64,b4,onehot: bf16[4096,128256]. */
static uint32_t whole_grad(struct hb_lower *lo, uint32_t dlogits)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    enum hb_dtype dtype = lo->p->bufs[dlogits].dtype;
    if (lo->spec->loss.dot != HB_DT_F32 && lo->habits->logits_copies == 1)
        dtype = lo->spec->loss.dot;
    return hb_temp(lo, "head, gradient before its sum", HB_CAT_GRADIENTS,
                   hb_leaf_layer_shape(l, dtype, true));
}

static void sum_whole(struct hb_lower *lo, uint32_t full)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    bool gpu = lo->habits->logits_copies == 2;
    /* XLA:TPU: summed over data alone it stays in f32, in the same place (llama3-8b/dp8_zero1), as
     * MaxText's does in bf16 (v5e-256/base).
     * XLA:GPU: pr85/ep2pp4, f32[4096,32000] from the loss to the update; with fsdp each device's
     * part. */
    bool same = !gpu && (!hb_head_split(lo) || hb_head_own_rule(lo));
    /* MaxText's in a pipeline is scattered over fsdp, then summed over the stages (llama3-8b/
     * pp4_lps2: bf16[2048,128256]). */
    bool scattered = lo->maxtext && hb_ways(lo, HB_AX_PIPELINE) > 1;
    enum hb_dtype dtype = hb_order_dot_narrow(lo) ? lo->spec->loss.dot : HB_DT_F32;
    uint32_t sum = same ? hb_temp_in_place(lo, "head, gradient summed", HB_CAT_GRADIENTS, full)
                        : hb_temp(lo, "head, gradient summed", HB_CAT_GRADIENTS,
                                  gpu ? hb_leaf_layer_shape(l, dtype, false)
                                      : hb_leaf_layer_shape(l, lo->compute, !scattered));
    hb_emit_collective(lo, HB_OP_REDUCE_SCATTER, HB_AX_FSDP, "sum gradient of the head", full, sum);
    l->grad = sum;
    /* 1B,sp8: nothing as wide as the vocabulary in the layers' backward pass; the update takes the
     * gradient at once, on ROCm too (1B,sp8,bf16,adafactor: the new head from 152 of 531 on). */
    bool early = same || (gpu && !lo->habits->gathers_timed && hb_fsdp_ways(lo, false) == 1 &&
                          hb_ways(lo, HB_AX_PIPELINE) == 1);
    bool taken = early && hb_ways(lo, HB_AX_SEQUENCE) > 1 && lo->spec->batch.accumulate == 1 &&
                 !lo->spec->optimizer.clip && !lo->spec->model.tied_embeddings;
    if (taken) {
        hb_emit_mark(lo, "update takes the head's gradient", sum, HB_NONE);
        l->grad = HB_NONE;
    }
    /* gate/f64,b4,v32k,L16: the sum is there from 302 to 306 of 821, then each device's part. */
    if (gpu || same || lo->gather_form != HB_GATHER_PADDED || hb_head_own_rule(lo) ||
        lo->spec->model.tied_embeddings || lo->phase == HB_PHASE_OPTIMIZER)
        return;
    l->grad =
        hb_temp(lo, "head, gradient", HB_CAT_GRADIENTS, hb_leaf_layer_shape(l, lo->compute, false));
    hb_emit_simple(lo, HB_OP_COPY, "own part of the head's gradient", sum, l->grad);
}

/* The head's gradient: at once, or its operands wait until the layers are done. */
static void head_grad(struct hb_lower *lo, int64_t seq, uint32_t x, uint32_t dlogits)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    struct hb_emit e = head_product(lo, seq, "gradient of the head");
    hb_emit_read(&e, dlogits);
    hb_emit_read(&e, x);
    if (l->grad_fused) {
        hb_emit_read(&e, l->arg);
        hb_emit(lo, &e);
        return;
    }
    /* Between rings a head with too few tokens is gathered, and its gradient whole, all the same
     * (opt/8B,f4,bf16all,s1k: f32[4096,128256] at the end). */
    bool whole = hb_weight_grad_partial(lo, l) ||
                 (hb_head_split(lo) && !hb_head_ring(lo) && lo->habits->rings);
    if (!whole) {
        add_accumulators(lo, l);
        hb_emit_write(&e, l->grad);
        hb_emit_write(&e, l->grad_half);
        hb_emit(lo, &e);
        return;
    }
    hb_emit_write(&e, whole_grad(lo, dlogits));
    hb_emit(lo, &e);
    sum_whole(lo, e.write[0]);
}

/* CUDA sums the parts of a head over tensor as its product makes them (rnd/031, tied: the sum of
 * f32[32,2048,2048] beside f32[32,2048,4000]; pp2t2f2,m4,clip). */
static bool is_through_wide(const struct hb_lower *lo)
{
    return lo->habits->gathers_timed && lo->spec->loss.dot == HB_DT_F32 &&
           hb_ways(lo, HB_AX_TENSOR) > 1 && lo->local.resid_seq == lo->local.seq;
}

static uint32_t grad_through_head(struct hb_lower *lo, const struct loss_pass *c)
{
    struct hb_shape s = hb_shape_make(
        lo->compute, (const int64_t[]){lo->local.batch, c->seq, lo->spec->model.d_model, -1});
    if (is_through_wide(lo))
        s.dtype = HB_DT_F32;
    uint32_t g = hb_temp(lo, "gradient of the last norm's result", HB_CAT_WORKING, s);
    struct hb_emit e = head_product(lo, c->seq, "gradient through the head");
    hb_emit_read(&e, c->dlogits);
    hb_emit_read(&e, c->w);
    hb_emit_write(&e, g);
    hb_emit(lo, &e);
    return g;
}

/* The head's gradient before that of its input: where the head was gathered between layers and
 * loss, with tensor parallelism between plain gathers (1B/fsdp=4,tp=2,sp_residual: f32[2048,64128]
 * and bf16 of its sum beside the gathered head; not in nested scans), and, of MaxText's, where
 * gathers are late or beside the products (v5e-256/base, v6e-64: bf16[4096,128256] beside the
 * gathered head and the logits). */
static bool is_grad_first(const struct hb_lower *lo)
{
    bool late = lo->gather_form == HB_GATHER_LATE || lo->gather_form == HB_GATHER_BESIDE;
    bool plain = lo->habits->rings && lo->fsdp_mode == HB_WEIGHT_GATHER &&
                 lo->gather_form == HB_GATHER_PLAIN && hb_ways(lo, HB_AX_TENSOR) > 1 &&
                 hb_ways(lo, HB_AX_PIPELINE) == 1 && lo->spec->stack.form != HB_FORM_NESTED;
    bool first = hb_head_gathered_between(lo) || (plain && !lo->maxtext);
    return !hb_head_waits(lo) && (hb_head_own_rule(lo) ? late : first);
}

/* XLA:GPU gathers a split residual's last norm as those of the layers: f32[2,4096,5120] to the end
 * (qwen32,f16t4). */
static enum hb_dtype last_norm_dtype(const struct hb_lower *lo)
{
    bool gathered = lo->habits->logits_copies == 2 && lo->local.resid_seq < lo->local.seq;
    return gathered && lo->spec->precision.norm_f32 ? HB_DT_F32 : lo->compute;
}

/* tinyS/base, 1B/dp=8: the last norm's input stands in f32 beside the logits unless the head is
 * split, or the layers are a pipeline (PP/base: three bf16[16,2048,2048], no f32); with padded
 * gathers there too, alone, for logits and gradient (8B64/base: f32[1,4096,4096] to the end);
 * MaxText's wherever it is split (llama3-8b, v6e-64, weight_dtype=bfloat16 over 8:
 * f32[2,4096,4096] beside one bf16 of it) but on v5e (v5e-256: none). */
static uint32_t wide_input(struct hb_lower *lo, uint32_t x, struct hb_shape s)
{
    bool padded = lo->gather_form == HB_GATHER_PADDED;
    bool own = hb_head_own_rule(lo) && lo->gather_form != HB_GATHER_BESIDE;
    if (lo->habits->logits_copies != 1 || hb_ways(lo, HB_AX_PIPELINE) > 1 ||
        (hb_head_split(lo) && !padded && !own))
        return HB_NONE;
    s.dtype = HB_DT_F32;
    uint32_t wide = hb_temp(lo, "last norm's input in f32", HB_CAT_WORKING, s);
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "last norm's input in f32", x, wide);
    return wide;
}

/* The head's gradient after that of its input: now, or what of it waits for the layers. */
static void finish_loss(struct hb_lower *lo, struct hb_ends *ends, const struct loss_pass *c)
{
    if (hb_head_sum_waits(lo) || hb_order_sum_waits(lo)) {
        struct hb_emit e = head_product(lo, c->seq, "gradient of the head");
        hb_emit_read(&e, c->x);
        hb_emit_read(&e, c->dlogits);
        ends->pending_full = whole_grad(lo, c->dlogits);
        /* 8B,v5e16x16,f256 with ce=onehot: the logits end with the product, not with its sum. */
        bool read = !hb_order_sum_waits(lo) && !lo->spec->loss.onehot;
        ends->pending_logits = read ? c->logits : HB_NONE;
        hb_emit_write(&e, ends->pending_full);
        hb_emit(lo, &e);
    } else if (hb_head_logits_again(lo)) {
        ends->pending_x = c->x;
    } else if (hb_head_waits(lo)) {
        ends->pending_logits = waiting_logits(lo, c);
        ends->pending_before = ends->pending_logits == c->logits ? c->before : HB_NONE;
        if (hb_head_both_wait(lo)) {
            ends->pending_logits = c->logits;
            ends->pending_before = c->dlogits;
        }
        ends->pending_x = c->x;
    } else {
        head_grad(lo, c->seq, c->x, c->dlogits);
        ends->head_done = true;
        ends->pending_logits = hb_head_label_waits(lo) ? c->logits : HB_NONE;
    }
}

/* XLA:GPU's pipelines that split the batch make the last norm's own gradient at the end of the
 * step, where the norm of all waits for it: on ROCm (pr85/ep2pp4/good,no_loss_stage: its operands
 * from 633 and 687 to 2059 of 2157; pp2t2f2,m4,clip), on CUDA beside tensor parallelism (the
 * latter; not the former). */
static bool is_norm_late(const struct hb_lower *lo)
{
    return lo->habits->logits_copies == 2 && hb_ways(lo, HB_AX_PIPELINE) > 1 &&
           lo->local.input_ways > 1 && !lo->spec->sharding.ends_over_pipeline &&
           lo->spec->optimizer.clip &&
           (!lo->habits->gathers_timed || hb_ways(lo, HB_AX_TENSOR) > 1);
}

static uint32_t whole_loss(struct hb_lower *lo, struct hb_ends *ends, uint32_t x)
{
    struct loss_pass c = {.seq = lo->local.seq};
    int64_t d = lo->spec->model.d_model;
    struct hb_shape s =
        hb_shape_make(lo->compute, (const int64_t[]){lo->local.batch, c.seq, d, -1});
    uint32_t wide = wide_input(lo, x, s);
    c.x = wide;
    if (lo->gather_form != HB_GATHER_PADDED || hb_head_own_rule(lo)) {
        s.dtype = last_norm_dtype(lo);
        c.x = hb_temp(lo, "last norm's result", HB_CAT_WORKING, s);
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "last norm", wide == HB_NONE ? x : wide, c.x);
    }
    c.w = use_head(lo, false);
    make_logits(lo, &c);
    make_dlogits(lo, &c);
    if (hb_head_split(lo) && !hb_order_head_early(lo))
        c.w = use_head(lo, false);
    bool before = hb_order_head_first(lo) || is_grad_first(lo);
    if (before)
        head_grad(lo, c.seq, c.x, c.dlogits);
    else if (hb_head_label_waits(lo))
        zero_ring(lo);
    uint32_t g = grad_through_head(lo, &c);
    if (before)
        ends->head_done = true;
    else
        finish_loss(lo, ends, &c);
    uint32_t out =
        hb_temp(lo, "gradient of the last residual", HB_CAT_WORKING, hb_ends_residual(lo));
    struct hb_emit e = {.name = "backward of the last norm", .kind = HB_OP_ELEMENTWISE};
    hb_emit_read(&e, g);
    hb_emit_read(&e, wide == HB_NONE ? x : wide);
    hb_emit_write(&e, out);
    hb_emit(lo, &e);
    if (is_norm_late(lo)) {
        ends->norm_x = x;
        ends->norm_grad = g;
    }
    return out;
}

/* With a gathered head each chunk's gradient is summed over the devices at once: whole in f32, then
 * whole in the compute dtype (real/70B,f128: f32[8192,128256] and bf16 of it beside the head);
 * XLA:GPU's sum is each device's part in f32. */
static void chunk_head_grad(struct hb_lower *lo, const struct loss_pass *c, uint32_t sum)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    struct hb_emit e = head_product(lo, c->seq, "gradient of the head");
    hb_emit_read(&e, c->dlogits);
    hb_emit_read(&e, c->x);
    if (!gathers_in_chunks(lo)) {
        hb_emit_write(&e, sum);
        hb_emit(lo, &e);
        return;
    }
    /* XLA:TPU scatters the sum beside tensor parallelism (8B,v6e4x4,f4t4: f32[1024,32064]). */
    bool scattered = lo->habits->logits_copies == 2 || hb_ways(lo, HB_AX_TENSOR) > 1;
    uint32_t full = hb_temp(lo, "head, gradient of a chunk", HB_CAT_GRADIENTS,
                            hb_leaf_layer_shape(l, lo->p->bufs[c->dlogits].dtype, true));
    /* One in the compute dtype in its place (MaxText's llama3-8b over 256, num_vocab_tiling=4;
     * 1B,v5e2x4,f8,b8 tied with logits_dot=bf16: the gathered head and one more). */
    bool same = !scattered && lo->p->bufs[c->dlogits].dtype == lo->compute;
    uint32_t part =
        same ? hb_temp_in_place(lo, "head, gradient of a chunk, summed", HB_CAT_GRADIENTS, full)
             : hb_temp(lo, "head, gradient of a chunk, summed", HB_CAT_GRADIENTS,
                       scattered ? hb_leaf_layer_shape(l, HB_DT_F32, false)
                                 : hb_leaf_layer_shape(l, lo->compute, true));
    hb_emit_write(&e, full);
    hb_emit(lo, &e);
    hb_emit_collective(lo, HB_OP_REDUCE_SCATTER, HB_AX_FSDP, "sum gradient of the head", full,
                       part);
    struct hb_emit add = {.name = "add gradient of the chunk", .kind = HB_OP_ELEMENTWISE};
    hb_emit_read(&add, part);
    hb_emit_read(&add, lo->chip->chunk_grad_by_head && !scattered ? c->w : HB_NONE);
    hb_emit_write(&add, sum);
    hb_emit(lo, &add);
}

/* One chunk's backward pass: into sum and the stack gx. XLA:GPU gathers the head a second time for
 * the gradient through it: CUDA beside the head's own, which comes first (qwen32,f256:
 * f32[5120,151936] and bf16 of the gathered head); ROCm, that takes every collective as long, at
 * the beginning (the same record: two bf16[5120,151936] beside the logits), and as CUDA does where
 * the head is split beside fsdp as well (gemma2b,f4t2,chunk8). */
static void chunk_backward(struct hb_lower *lo, struct loss_pass *c, uint32_t sum, uint32_t gx)
{
    bool inside = gathers_in_chunks(lo);
    bool again = inside && lo->habits->logits_copies == 2;
    bool timed = again && lo->habits->gathers_timed;
    bool first =
        timed || (again && hb_order_head_beside(lo)) || (inside && hb_sequence_post_chunks(lo));
    if (inside)
        c->w = use_head(lo, true);
    uint32_t second = again && !first ? use_head(lo, true) : c->w;
    make_logits(lo, c);
    make_dlogits(lo, c);
    c->w = first && again ? use_head(lo, true) : second;
    if (first)
        chunk_head_grad(lo, c, sum);
    uint32_t part = grad_through_head(lo, c);
    uint32_t op = hb_emit_simple(lo, HB_OP_COPY, "gradient of the chunk into its stack", part, gx);
    lo->p->ops[op].moved_bytes = 2.0 * (double)lo->p->bufs[part].bytes;
    if (!first)
        chunk_head_grad(lo, c, sum);
}

/* Over another axis beside fsdp the sum of the chunks is added up in f32, at the end of the step on
 * XLA:GPU (1B,sp2f4,chunk8: f32[512,128256] from the loss on; 8B,f16,b4,chunk8: none). */
static uint32_t widen_sum(struct hb_lower *lo, uint32_t sum)
{
    bool more = hb_ways(lo, HB_AX_SEQUENCE) > 1 || hb_ways(lo, HB_AX_DATA) > 1;
    if (lo->habits->logits_copies == 1 || !more || !hb_head_split(lo))
        return sum;
    uint32_t wide = hb_temp(lo, "head, gradient over the chunks, in f32", HB_CAT_GRADIENTS,
                            hb_leaf_layer_shape(&lo->leaves[lo->head], HB_DT_F32, false));
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "widen gradient of the head", sum, wide);
    return wide;
}

/* Chunks of batch and sequence together cross the batch's sharding. Tokens are exchanged for them
 * (llama3-8b/num_vocab_tiling=4), and back; but inside an accumulation loop their gradient is
 * gathered from all devices and turned, before each takes its own (with 2 microbatches
 * bf16[4,16384,4096] twice; rand020/deepseek2-16b: two bf16[4,131072,2048]). Where the sequence is
 * split, too, they are exchanged as long as a device has a part of one sequence alone (llama3-70b,
 * 131072 tokens, fsdp 64 and context 8 on v5p and TPU7x; llama3-8b, 8192 tokens, fsdp 4 and context
 * 4, 8 and 2, 2 and 8) or a chunk is one sequence (two, fsdp 2 and context 8); with more sequences
 * their gradient is gathered from all devices (two, fsdp 4 and context 4: bf16[4,16384,4096]),
 * between padded sums in f32 first (qwen3-8b, fsdp 128 and context 2: f32[4,2097152,4096] and bf16
 * of it). */
static bool crosses_batch(const struct hb_lower *lo)
{
    return lo->spec->loss.chunk_over == HB_CHUNK_TOKENS;
}

static bool crosses_sequences(const struct hb_lower *lo)
{
    int64_t sequences = hb_mul_sat(lo->local.batch, lo->local.batch_ways);
    return crosses_batch(lo) && hb_ways(lo, HB_AX_SEQUENCE) > 1 && lo->local.batch > 1 &&
           sequences != lo->spec->loss.chunks;
}

static uint32_t gather_chunks(struct hb_lower *lo, uint32_t x, const char *name, int64_t ways)
{
    struct hb_shape all = hb_buf_shape(lo, x);
    all.dim[0] = hb_mul_sat(all.dim[0], ways);
    all.dim[1] = hb_mul_sat(all.dim[1], hb_ways(lo, HB_AX_SEQUENCE));
    uint32_t whole = hb_temp(lo, name, HB_CAT_COMMUNICATION, all);
    uint32_t own = x;
    bool split = hb_ways(lo, HB_AX_SEQUENCE) > 1;
    if (split && lo->gather_form == HB_GATHER_PADDED && lo->phase == HB_PHASE_BACKWARD) {
        all.dtype = HB_DT_F32;
        own = hb_temp(lo, hb_name(lo, name, ", own part between zeros"), HB_CAT_COMMUNICATION, all);
        hb_emit_simple(lo, HB_OP_COPY, "own part between zeros", x, own);
    }
    hb_emit_collective(lo, HB_OP_ALL_GATHER, HB_AX_FSDP, hb_name(lo, "make ", name), own, whole);
    return whole;
}

/* From the last residual to where the last norm's result lies in chunks: of several sequences,
 * whole ones first, those of all devices where fsdp has more of them than there are chunks (fsdp 16
 * and context 2: bf16[16,8192,4096]; fsdp 4: bf16[4,4096,4096]). */
static uint32_t chunk_input(struct hb_lower *lo, uint32_t x, uint32_t chunks)
{
    bool all = lo->local.batch_ways > lo->spec->loss.chunks;
    if (crosses_sequences(lo))
        x = gather_chunks(lo, x, "chunks of whole sequences", all ? lo->local.batch_ways : 1);
    return hb_emit_simple(lo, HB_OP_ELEMENTWISE, "last norm", x, chunks);
}

static uint32_t unchunk(struct hb_lower *lo, uint32_t gx)
{
    bool accumulates = crosses_batch(lo) && lo->spec->batch.accumulate > 1;
    if (!crosses_sequences(lo) && !accumulates)
        return gx;
    uint32_t whole =
        gather_chunks(lo, gx, "gradient of the chunks, gathered", lo->local.batch_ways);
    if (hb_ways(lo, HB_AX_SEQUENCE) > 1)
        return whole;
    uint32_t turned = hb_temp(lo, "gradient of the chunks, turned", HB_CAT_COMMUNICATION,
                              hb_buf_shape(lo, whole));
    hb_emit_simple(lo, HB_OP_COPY, "turn gradient of the chunks", whole, turned);
    return turned;
}

/* Chunks: a loop that only adds up the loss, then one that makes the logits again and their
 * gradients; the head's gradient is carried by the second in the compute dtype (bwd/base). */
static uint32_t chunked_loss(struct hb_lower *lo, struct hb_ends *ends, uint32_t x)
{
    int64_t chunks = lo->spec->loss.chunks;
    int64_t d = lo->spec->model.d_model;
    struct loss_pass c = {.seq = (lo->local.seq + chunks - 1) / chunks};
    struct hb_shape all =
        hb_shape_make(lo->compute, (const int64_t[]){lo->local.batch, lo->local.seq, d, -1});
    c.x = hb_temp(lo, "last norm's result", HB_CAT_WORKING, all);
    double own_bytes = 2.0 * (double)lo->p->bufs[x].bytes; /* of them all, a device's own tokens */
    uint32_t norm = chunk_input(lo, x, c.x);
    lo->p->ops[norm].moved_bytes = own_bytes;
    /* A gathered head is gathered in each chunk, for its logits, and done with before its gradient
     * is made (8B64/loss=chunk); on v5e that comes first (8B,v5e8x8,chunk16). */
    bool inside = gathers_in_chunks(lo);
    if (!inside)
        c.w = use_head(lo, true);
    /* Sharded, nothing waits for the loss itself: its loop comes last, and reads this again
     * (70B,f128: bf16[2,4096,8192] to the end; bwd/base, one device: at once; nor between stages
     * beside data alone, PPc/dp=2: no bf16[8,2048,2048] in the backward pass; with tp=2 one). */
    bool stages = hb_ways(lo, HB_AX_PIPELINE) > 1 && hb_fsdp_ways(lo, false) == 1;
    bool sharded = (lo->local.batch_ways > 1 && !stages) || hb_ways(lo, HB_AX_TENSOR) > 1;
    ends->loss_x = sharded ? c.x : HB_NONE;
    uint32_t loop = hb_program_open_loop(lo->p, "loss chunks", chunks);
    if (inside)
        c.w = use_head(lo, true);
    make_logits(lo, &c);
    hb_emit_simple(lo, HB_OP_REDUCE, "softmax cross-entropy", c.logits, HB_NONE);
    hb_program_close_loop(lo->p, loop);
    struct hb_leaf *l = &lo->leaves[lo->head];
    bool whole = !inside;
    uint32_t sum = hb_temp(lo, "head, gradient over the chunks", HB_CAT_GRADIENTS,
                           hb_leaf_layer_shape(l, lo->compute, whole));
    hb_emit_mark(lo, "zero gradient of the head", HB_NONE, sum);
    uint32_t gx = hb_temp(lo, "gradient of the last norm's result", HB_CAT_WORKING, all);
    hb_emit_mark(lo, "gradients of the chunks", HB_NONE, gx);
    lo->phase = HB_PHASE_BACKWARD;
    loop = hb_program_open_loop(lo->p, "loss chunks, backward", chunks);
    chunk_backward(lo, &c, sum, gx);
    hb_program_close_loop(lo->p, loop);
    if (is_cast_for_chunks(lo)) {
        hb_emit_mark(lo, "end of the head's cast", l->cast, HB_NONE);
        l->cast = HB_NONE;
    }
    if (whole && (hb_weight_grad_partial(lo, l) || hb_head_split(lo)))
        hb_weight_reduce_grad(lo, lo->head, sum);
    else
        l->grad = widen_sum(lo, sum);
    ends->head_done = true;
    gx = unchunk(lo, gx);
    uint32_t out =
        hb_temp(lo, "gradient of the last residual", HB_CAT_WORKING, hb_ends_residual(lo));
    struct hb_emit back = {.name = "backward of the last norm",
                           .kind = HB_OP_ELEMENTWISE,
                           .moved_bytes = own_bytes + (double)lo->p->bufs[x].bytes};
    hb_emit_read(&back, gx);
    hb_emit_read(&back, x);
    hb_emit_write(&back, out);
    hb_emit(lo, &back);
    return out;
}

uint32_t hb_loss_pass(struct hb_lower *lo, struct hb_ends *ends, uint32_t x)
{
    lo->phase = HB_PHASE_LOSS;
    ends->head_done = false;
    ends->pending_logits = ends->pending_x = ends->pending_full = ends->loss_x = HB_NONE;
    ends->pending_before = ends->norm_x = ends->norm_grad = HB_NONE;
    return lo->spec->loss.chunks > 1 ? chunked_loss(lo, ends, x) : whole_loss(lo, ends, x);
}

void hb_loss_finish_last(struct hb_lower *lo, const struct hb_ends *ends)
{
    /* v6e16x16,f256,b512 at 2048 tokens: its operand is fetched into the vector memory before
     * (bf16[2,2048,4096] ends at 1393, f32[4096,128256] begins at 1400, in their place). */
    uint32_t x = ends->pending_x;
    if (lo->gather_form == HB_GATHER_LATE) {
        hb_emit_mark(lo, "fetch the head's operand", x, HB_NONE);
        x = HB_NONE;
    }
    head_grad(lo, lo->local.seq, x, ends->pending_logits);
}

void hb_loss_finish(struct hb_lower *lo, const struct hb_ends *ends)
{
    if (!ends->head_done && hb_head_last(lo)) {
        lo->head_last = true;
    } else if (ends->pending_full != HB_NONE) {
        /* dl,8B-L16,v5e,f64: logits from 464 to 1310, the sum from 1305 on, above both. */
        sum_whole(lo, ends->pending_full);
        hb_emit_mark(lo, "end of the logits", ends->pending_logits, HB_NONE);
    } else if (!ends->head_done) {
        struct loss_pass c = {.seq = lo->local.seq, .x = ends->pending_x};
        c.logits = ends->pending_logits;
        if (c.logits == HB_NONE) {
            c.w = use_head(lo, false);
            make_logits(lo, &c);
        }
        head_grad(lo, c.seq, c.x, c.logits);
    } else if (ends->pending_logits != HB_NONE) {
        hb_emit_mark(lo, "the labels' logits", ends->pending_logits, HB_NONE);
    }
}
