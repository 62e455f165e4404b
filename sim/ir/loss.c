/* Head and loss: see loss.h.
 * Measured: one device keeps one f32 logits tensor (tinyS/base: f32[8,2048,32000] and nothing
 * else of that width); with a split head a gradient in the compute dtype stands beside it, with
 * the gathered head (1B/base: 4008 + 2004 + 501 MiB); XLA:GPU keeps two in f32 (habits). */
#include "sim/ir/loss.h"

#include "base/size.h"
#include "sim/ir/chunks.h"
#include "sim/ir/copies.h"
#include "sim/ir/head.h"
#include "sim/ir/loss_pass.h"
#include "sim/ir/optim.h"
#include "sim/ir/order.h"
#include "sim/ir/sequence.h"
#include "sim/ir/stack.h"
#include "sim/ir/turn.h"
#include "sim/ir/weight.h"

static struct hb_shape logit_shape(const struct hb_lower *lo, int64_t seq, enum hb_dtype dtype)
{
    return hb_shape_make(dtype, (const int64_t[]){lo->local.batch, seq, lo->local.vocab, -1});
}

static uint32_t logits_temp(struct hb_lower *lo, const char *name, int64_t seq, enum hb_dtype dtype)
{
    return hb_temp(lo, name, HB_CAT_LOGITS, logit_shape(lo, seq, dtype));
}

static struct hb_shape input_shape(const struct hb_lower *lo, int64_t seq)
{
    int64_t d = lo->spec->model.d_model;
    return hb_shape_make(lo->compute, (const int64_t[]){lo->local.batch, seq, d, -1});
}

/* A chunk's products read and write its own part of what is there whole. */
static double chunk_bytes(const struct hb_lower *lo, int64_t seq)
{
    double m = (double)lo->local.batch * (double)seq, n = (double)lo->local.vocab;
    double k = (double)lo->spec->model.d_model;
    return hb_in_chunks(lo) ? 2 * (m * k + k * n + m * n) : 0;
}

struct hb_emit hb_loss_head_product(const struct hb_lower *lo, int64_t seq, const char *name)
{
    return (struct hb_emit){.name = name,
                            .moved_bytes = chunk_bytes(lo, seq),
                            .kind = HB_OP_MATMUL,
                            .flops = 2.0 * (double)lo->local.batch * (double)seq *
                                     (double)lo->local.vocab * (double)lo->spec->model.d_model,
                            .rows = lo->local.batch * seq,
                            .cols = lo->local.vocab,
                            .depth = lo->spec->model.d_model};
}

uint32_t hb_loss_own_head(struct hb_lower *lo, bool in_loop)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    uint32_t own = l->transposed != HB_NONE ? l->transposed : l->arg;
    uint32_t w = l->cast != HB_NONE ? l->cast : own;
    bool cast = l->cast == HB_NONE && lo->spec->precision.params != lo->compute;
    if (cast && (hb_head_split(lo) || in_loop || !lo->habits->casts_hoisted)) {
        w = hb_temp(lo, "head, cast", HB_CAT_WORKING, hb_leaf_layer_shape(l, lo->compute, false));
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "cast head", own, w);
    }
    return w;
}

/* Where shards are no whole number of sublanes XLA:TPU gathers each into rows of its own, which a
 * copy then joins (gemma3-4b, v5e-256: bf16[256,10,262144], 2048 MiB, reshape.4445, 1280; 2,304 to
 * 5,120 wide over 64 to 256, v5e and v6e, in chunks or not: 14 of 14), but where it sums what is
 * padded with zeros (v5p: none of six). */
bool hb_loss_gathers_rows(const struct hb_lower *lo)
{
    const struct hb_leaf *l = &lo->leaves[lo->head];
    struct hb_shape part = hb_leaf_layer_shape(l, lo->compute, false);
    return lo->p->compiler == HB_XLA_TPU && hb_head_split(lo) && !hb_gathers_padded(lo) &&
           part.dim[l->gather_dim] % HB_TPU_SUBLANES != 0;
}

static uint32_t gather_rows(struct hb_lower *lo, uint32_t own)
{
    const struct hb_leaf *l = &lo->leaves[lo->head];
    if (!hb_loss_gathers_rows(lo))
        return own;
    struct hb_shape part = hb_leaf_layer_shape(l, lo->compute, false);
    int64_t rows = part.dim[l->gather_dim], cols = part.dim[1 - l->gather_dim];
    uint32_t parts = hb_temp_tiled(
        lo, "head, gathered by rows", HB_CAT_COMMUNICATION,
        hb_shape_make(lo->compute, (const int64_t[]){l->fsdp_ways, rows, cols, -1}), HB_TILE_MINOR);
    hb_weight_gather(lo, "gather head by rows", own, parts);
    return parts;
}

uint32_t hb_loss_gather_head(struct hb_lower *lo, uint32_t own)
{
    uint32_t parts = gather_rows(lo, own);
    uint32_t whole = hb_temp(lo, "head, gathered", HB_CAT_COMMUNICATION,
                             hb_leaf_layer_shape(&lo->leaves[lo->head], lo->compute, true));
    if (parts == own)
        hb_weight_gather(lo, "gather head", own, whole);
    else
        hb_emit_simple(lo, HB_OP_COPY, "join the head's rows", parts, whole);
    return whole;
}

uint32_t hb_loss_use_head(struct hb_lower *lo, bool in_loop)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    if (l->gathered != HB_NONE) {
        uint32_t early = l->gathered;
        l->gathered = HB_NONE;
        return early;
    }
    uint32_t own = hb_loss_own_head(lo, in_loop);
    return hb_head_split(lo) ? hb_loss_gather_head(lo, own) : own;
}

/* A product in bf16 followed by a cast keeps the bf16 logits alone where the labels come in as
 * one-hot masks; gathered labels read the f32 ones, which then stand beside (tinyS/logits_dot=bf16:
 * +968 MiB). XLA:GPU makes the cast in the readers: bf16 logits and their f32 gradient. Those of a
 * chunk's backward pass stay narrow (v5e: one bf16[8,2048,128256]). */
static enum hb_dtype logits_dtype(const struct hb_lower *lo, const struct hb_loss_pass *c)
{
    bool narrow = c->unread || !hb_gathers_labels(lo) || lo->habits->logits_copies == 2;
    return narrow ? lo->spec->loss.dot : HB_DT_F32;
}

/* One sequence on one device: the gradient of the labels' gather stays a scatter, into a tensor of
 * its own (opt/base: two f32[512,32000]; tinyS, with 8: one). */
static bool is_scattered(const struct hb_lower *lo)
{
    bool sharded = lo->local.batch_ways > 1;
    return !sharded && lo->local.batch == 1 && hb_gathers_labels(lo);
}

/* Features that are split over fsdp meet the head's rows that are split likewise: products of all
 * sequences, summed into each device's own (fsdp 8, 32 sequences, 131,072 words, without
 * constraints: f32[131072,131072] and the f32[4,4096,131072] of its reduce-scatter). */
static bool is_head_summed(const struct hb_lower *lo)
{
    return lo->batch_whole;
}

void hb_loss_make_logits(struct hb_lower *lo, struct hb_loss_pass *c)
{
    uint32_t narrow = HB_NONE;
    enum hb_dtype dtype = logits_dtype(lo, c);
    bool cast = lo->spec->loss.dot != HB_DT_F32 && dtype == HB_DT_F32;
    if (cast && !is_scattered(lo)) {
        narrow = logits_temp(lo, "logits before the cast", c->seq, lo->spec->loss.dot);
        hb_emit_mark(lo, "logits before the cast", HB_NONE, narrow);
    }
    /* Logits of one sequence before they are cast lie as a matrix that the gradient reads beside
     * the f32 ones (ring/f16,d2k with logits_dot=bf16: f32[1,4096,32000] and two bf16). */
    c->before = hb_head_ring(lo) && lo->local.batch == 1 ? narrow : HB_NONE;
    struct hb_shape all = logit_shape(lo, c->seq, dtype);
    uint32_t parts = HB_NONE;
    all.dim[0] = hb_mul_sat(all.dim[0], lo->leaves[lo->head].fsdp_ways);
    if (is_head_summed(lo))
        parts =
            hb_temp(lo, "logits of all sequences, by this device's features", HB_CAT_LOGITS, all);
    c->logits = logits_temp(lo, "logits", c->seq, dtype);
    struct hb_emit e = hb_loss_head_product(lo, c->seq, "logits");
    hb_emit_read(&e, c->x);
    hb_emit_read(&e, c->w);
    hb_emit_read(&e, narrow);
    hb_emit_write(&e, parts == HB_NONE ? c->logits : parts);
    hb_emit(lo, &e);
    if (parts != HB_NONE)
        hb_emit_collective(lo, HB_OP_REDUCE_SCATTER, HB_AX_FSDP, "sum logits", parts, c->logits);
}

/* A split head's gradient is collected in f32 (1B/base), MaxText's in the dtype of its product
 * (llama3-8b/base: two bf16[512,128256]; f32 with logits_dot_in_fp32). */
static enum hb_dtype split_grad_dtype(const struct hb_lower *lo)
{
    return hb_head_own_rule(lo) ? lo->spec->loss.dot : HB_DT_F32;
}

/* A short ring that waits has one part in each direction (gate/v5e,f4: two f32[1024,32000]). */
static struct hb_shape half_shape(const struct hb_lower *lo, const struct hb_leaf *l)
{
    struct hb_shape s = hb_leaf_layer_shape(l, split_grad_dtype(lo), false);
    if (hb_in_short_ring(lo) && !hb_head_waits(lo))
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
    if (split && l->grad_half == HB_NONE)
        l->grad_half = hb_temp(lo, "head, gradient of the ring's other direction", HB_CAT_GRADIENTS,
                               half_shape(lo, l));
}

/* The accumulators of a ring that waits are there from the start (8B/base: two f32[512,128256] from
 * 98 to 2583 of 2713; 1B/base, which does not wait, has none at the loss), those of a tied head in
 * the list's order alone. */
static void zero_ring(struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    add_accumulators(lo, l);
    struct hb_emit e = {.name = "zero gradient of the head", .kind = HB_OP_MARK};
    hb_emit_write(&e, l->grad);
    hb_emit_write(&e, l->grad_half);
    hb_emit(lo, &e);
}

void hb_loss_prepare(struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    uint32_t from = l->transposed != HB_NONE ? l->transposed : l->arg;
    if (hb_chunks_cast(lo)) {
        l->cast =
            hb_temp(lo, "head, cast", HB_CAT_WORKING, hb_leaf_layer_shape(l, lo->compute, false));
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "cast head", from, l->cast);
    }
    if (hb_head_ring(lo) && hb_head_waits(lo) && !hb_head_post_order(lo))
        zero_ring(lo);
    if (hb_head_gathered_first(lo))
        lo->leaves[lo->head].gathered = hb_loss_use_head(lo, false);
}

/* MaxText's backward rule makes the gradient of the logits a tensor that both products read (v5p
 * over 8 to 256 devices: two bf16[4,8192,128256]; in pipelines, too), except where gathers are late
 * or beside the products, which make it of the logits then, but for late ones of one sequence,
 * whose exponentials come with their sums (qwen2.5-7b, v6e-64: fusion.200), and for a hyperbolic
 * tangent's (gemma2-2b, v6e-64; beside the products of one sequence alone). */
static bool has_own_gradient(const struct hb_lower *lo)
{
    bool late = hb_gathers_late(lo);
    bool one = lo->local.batch == 1, capped = lo->spec->loss.softcap > 0;
    bool apart = late ? capped || one : capped && one;
    return hb_head_own_loss(lo) && (apart || !(late || hb_gathers_beside(lo)));
}

/* A ring's products read the logits' gradient in the compute dtype (1B/base, 8B/base), and so do
 * those of a product in bf16 (rnd/016, rnd/077: f32[2,2048,64128] and bf16 of it). */
static bool has_narrow_dlogits(const struct hb_lower *lo, const struct hb_loss_pass *c)
{
    bool narrow_dot = lo->spec->loss.dot != HB_DT_F32 && hb_gathers_labels(lo) && !c->unread;
    return hb_head_goes_round(lo) || narrow_dot || has_own_gradient(lo);
}

/* What waits for a postponed head gradient. */
static uint32_t waiting_logits(const struct hb_lower *lo, const struct hb_loss_pass *c)
{
    return hb_in_short_ring(lo) && c->before != HB_NONE ? c->logits : c->turned;
}

/* XLA:GPU reads logits in several passes, so that they live longer than their gradient and are
 * placed before it (1B/loss=chunk,loss_chunks=8 on ROCm: f32[1024,128256] from 224 to 231). Each
 * adds to what is found of a token: along all paths there are more users above the gradient than
 * ops, and depth-first the head's update comes before the layers (yi-34b, fsdp 8, pipeline 4). */
static uint32_t read_logits(struct hb_lower *lo, const struct hb_loss_pass *c, bool apart)
{
    enum { PASSES = 4 };
    struct hb_shape row = hb_shape_make(HB_DT_F32, (const int64_t[]){lo->local.batch, c->seq, -1});
    uint32_t found = apart ? hb_temp(lo, "found in the logits", HB_CAT_WORKING, row) : HB_NONE;
    for (int i = 0; i < PASSES; i++)
        hb_emit_mark(lo, "pass over the logits", c->logits, found);
    return found;
}

/* XLA:GPU scatters the labels' part into the gradient: another value in the same place, so that
 * heaps place the logits first (rocm-pipe/pp2t2f2,m4,clip: f32[16384,16000] below, its gradient
 * from 1000 MiB on, though longer alive: -6.1 -> -2.7 %). */
static void take_labels(struct hb_lower *lo, const struct hb_loss_pass *c)
{
    hb_emit_mark(lo, "labels out of the gradient", c->dlogits,
                 hb_temp_in_place(lo, "gradient of the logits", HB_CAT_LOGITS, c->dlogits));
}

/* Each token's sum and its logarithm, at which the logits wait, so that they can be made again if
 * what can be at the sum is not enough (gemma2-9b, v5e-16, four of 4,096). */
static uint32_t log_sums(struct hb_lower *lo, const struct hb_loss_pass *c)
{
    struct hb_shape s = hb_shape_make(HB_DT_F32, (const int64_t[]){lo->local.batch, c->seq, -1});
    uint32_t sums = hb_temp(lo, "sums of the exponentials", HB_CAT_WORKING, s);
    uint32_t logs = hb_temp(lo, "their logarithms", HB_CAT_WORKING, s);
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "sums of the exponentials", c->logits, sums);
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "logarithms of the sums", sums, logs);
    return logs;
}

/* A split vocabulary's labels are read first, the gradient reads what is before the cast (Qwen 3
 * 8B, fsdp 32, tensor 2, v6e: f32 to 165, the gradient at 184; tensor 1: 174, 159). */
static bool reads_labels_first(const struct hb_lower *lo, const struct hb_loss_pass *c)
{
    return c->before != HB_NONE && lo->local.vocab != lo->spec->model.vocab;
}

void hb_loss_make_dlogits(struct hb_lower *lo, struct hb_loss_pass *c)
{
    c->dlogits = c->logits;
    bool two = lo->habits->logits_copies == 2 && hb_gathers_labels(lo);
    if (two || is_scattered(lo))
        c->dlogits = logits_temp(lo, "gradient of the logits", c->seq, HB_DT_F32);
    else if (has_narrow_dlogits(lo, c))
        c->dlogits = logits_temp(lo, "gradient of the logits", c->seq, lo->compute);
    struct hb_emit e = {.name = "softmax cross-entropy", .kind = HB_OP_REDUCE};
    hb_emit_read(&e, read_logits(lo, c, two));
    if (!reads_labels_first(lo, c))
        hb_emit_read(&e, c->logits);
    if (hb_head_own_loss(lo))
        hb_emit_read(&e, log_sums(lo, c));
    hb_emit_read(&e, c->before);
    hb_emit_read(&e, lo->labels);
    if (c->dlogits == c->logits)
        c->dlogits = hb_temp_in_place(lo, "gradient of the logits", HB_CAT_LOGITS, c->logits);
    hb_emit_write(&e, c->dlogits);
    hb_emit(lo, &e);
    if (!two)
        return;
    take_labels(lo, c);
    if (!hb_order_dot_narrow(lo))
        return;
    uint32_t wide = c->dlogits;
    c->dlogits = logits_temp(lo, "gradient of the logits, cast", c->seq, lo->spec->loss.dot);
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "cast gradient of the logits", wide, c->dlogits);
}

/* A product in bf16 has gradients in bf16 (8B,f64,b4,onehot: bf16[4096,128256]). */
static uint32_t whole_grad(struct hb_lower *lo, uint32_t dlogits)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    enum hb_dtype dtype = lo->p->bufs[dlogits].dtype;
    return hb_temp(lo, "head, gradient before its sum", HB_CAT_GRADIENTS,
                   hb_leaf_layer_shape(l, dtype, !hb_head_grad_staged(lo)));
}

/* In an accumulation loop each device adds its part of what is summed to the microbatches' before
 * at once (8 layers of 4,096, v6e, fsdp 64, 8192 tokens: f32[4096,32000] at 118, its sum at 132,
 * added at 141). Between gathers of their own its update takes it at once where no norm is due
 * (mistral-24b, v6e, fsdp 64, nested scans: the sum from 221 to 238; not beside fetches). */
static bool is_own_at_once(const struct hb_lower *lo)
{
    bool updated = hb_weight_gathers_apart(lo) && !hb_updates_wait(lo) && !hb_offloads(lo);
    bool added = lo->leaves[lo->head].accum != HB_NONE && !hb_gathers_beside(lo);
    return added || updated;
}

static void sum_whole(struct hb_lower *lo, uint32_t full)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    bool gpu = lo->habits->logits_copies == 2;
    /* Summed over data alone it stays in f32, in the same place (llama3-8b/dp8_zero1), as MaxText's
     * does in bf16 (v5e-256/base). XLA:GPU's over fsdp is each device's part. */
    bool same = !hb_head_split(lo) || hb_head_own_rule(lo);
    bool own =
        (hb_gathers_beside(lo) || hb_gathers_late(lo)) && hb_weight_sums_own(lo, lo->local.vocab);
    bool scattered = own || hb_head_grad_staged(lo) || hb_weight_head_scattered(lo);
    /* So does that of a product in bf16 (8B,f64,b4,onehot with muon: bf16[4096,128256] from 258 to
     * 269 of 1546; 8B,v6e8x8,f64 of 2048 tokens: from 995 to 1215 of 1250). */
    bool narrow = lo->p->bufs[full].dtype == lo->compute && hb_weight_gathers_apart(lo);
    /* Over data, too, in f32 and in the same place, of which each device then takes its part (8
     * layers of 4,096 and 151,936 words, v6e, fsdp 64 and data 2: all-reduce.18, f32; alone bf16
     * beside it), between plain gathers too, but on v5p and where words are split; over a sequence
     * axis on all (8B, fsdp 16 and sequence 4: all-reduce f32[4096,151936]). */
    bool data = hb_ways(lo, HB_AX_DATA) > 1, words = lo->local.vocab == lo->spec->model.vocab;
    bool plain = !lo->chip->gathers_padded && hb_weight_gathers_plain(lo) && words;
    bool shared = (data && (hb_gathers_late(lo) || plain)) || hb_splits_sequence(lo);
    bool over = shared && !scattered && !hb_accumulates(lo);
    uint32_t sum =
        same || narrow || over
            ? hb_temp_in_place(lo, "head, gradient summed", HB_CAT_GRADIENTS, full)
            : hb_temp(lo, "head, gradient summed", HB_CAT_GRADIENTS,
                      hb_leaf_layer_shape(l, gpu ? HB_DT_F32 : lo->compute, !gpu && !scattered));
    hb_emit_grad_sum(lo, "sum gradient of the head", full, sum);
    if (lo->spec->model.mtp > 0)
        hb_emit_mark(lo, "add gradients of the head", l->grad, HB_NONE);
    l->grad = sum;
    /* Of MaxText's each device takes its part before that is summed over data (gemma2-27b, v5e,
     * data 2 and fsdp 128: all-reduce.52 at 341, bf16[256128,36] of it at 346, all-reduce.53 of
     * that, the layers from 392; alone whole until its update, gemma2-9b, v5e-256). */
    bool parted = hb_head_own_rule(lo) && data;
    if (!parted && (same || gpu || (!over && !is_own_at_once(lo))))
        return;
    l->grad =
        hb_temp(lo, "head, gradient", HB_CAT_GRADIENTS, hb_leaf_layer_shape(l, lo->compute, false));
    hb_emit_simple(lo, HB_OP_COPY, "own part of the head's gradient", sum, l->grad);
}

void hb_loss_add_step(struct hb_lower *lo, struct hb_emit *e, uint32_t sum)
{
    struct hb_shape part = hb_buf_shape(lo, sum);
    for (int i = 0; i < 2; i++)
        hb_emit_write(e, hb_temp(lo, "head, part on its way", HB_CAT_GRADIENTS, part));
    part.dim[0] = hb_mul_sat(2, part.dim[0]);
    hb_emit_write(e, hb_temp(lo, "head, products of two parts", HB_CAT_GRADIENTS, part));
}

static void one_head_grad(struct hb_lower *lo, int64_t seq, uint32_t x, uint32_t dlogits)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    struct hb_emit e = hb_loss_head_product(lo, seq, "gradient of the head");
    hb_emit_read(&e, dlogits);
    hb_emit_read(&e, x);
    if (l->grad_fused) {
        hb_emit_read(&e, l->arg);
        hb_emit(lo, &e);
        return;
    }
    /* Between rings a head with too few tokens is gathered, and its gradient whole, all the same
     * (opt/8B,f4,bf16all,s1k: f32[4096,128256] at the end). */
    bool whole = hb_weight_grad_partial(lo, l) || (hb_head_split(lo) && !hb_head_ring(lo));
    if (!whole) {
        add_accumulators(lo, l);
        hb_emit_write(&e, l->grad);
        hb_emit_write(&e, l->grad_half);
        if (l->grad_half != HB_NONE)
            hb_loss_add_step(lo, &e, l->grad);
        hb_emit(lo, &e);
        return;
    }
    hb_emit_write(&e, whole_grad(lo, dlogits));
    hb_emit(lo, &e);
    sum_whole(lo, e.write[0]);
}

/* The head's gradient: at once, or its operands wait until the layers are done; those of depths
 * that waited for it come with it. */
static void head_grad(struct hb_lower *lo, int64_t seq, uint32_t x, uint32_t dlogits)
{
    for (int64_t i = 0; i < lo->further_count; i++)
        one_head_grad(lo, lo->local.seq, lo->further[i].x, lo->further[i].dlogits);
    lo->further_count = 0;
    one_head_grad(lo, seq, x, dlogits);
}

uint32_t hb_loss_grad_through(struct hb_lower *lo, const struct hb_loss_pass *c)
{
    uint32_t g =
        hb_temp(lo, "gradient of the last norm's result", HB_CAT_WORKING, input_shape(lo, c->seq));
    struct hb_emit e = hb_loss_head_product(lo, c->seq, "gradient through the head");
    hb_emit_read(&e, c->dlogits);
    hb_emit_read(&e, c->w);
    hb_emit_write(&e, g);
    hb_emit(lo, &e);
    return g;
}

/* The head's gradient before that of its input: with tensor parallelism between plain gathers
 * (1B/fsdp=4,tp=2,sp_residual: f32[2048,64128] and bf16 of its sum beside the gathered head). */
static bool is_grad_first(const struct hb_lower *lo)
{
    bool plain = hb_weight_gathers_plain(lo) && hb_ways(lo, HB_AX_TENSOR) > 1;
    /* Depth-first between gathers (16 layers of 8B, f64 of v5p and v6e, 8192 tokens, 32,000 words,
     * that keep attn_ctx: the gradient from 274 on, the gathered head to 319). */
    bool depth = hb_sequence_gathers_taken(lo) & HB_GATHERS_FIRST;
    bool first = plain || hb_head_grad_staged(lo) || depth || hb_head_ring_first(lo);
    return !hb_head_waits(lo) && first;
}

/* XLA:GPU gathers a split residual's last norm as those of the layers (qwen32,f16t4). */
static enum hb_dtype last_norm_dtype(const struct hb_lower *lo)
{
    bool gathered = lo->habits->logits_copies == 2 && lo->local.resid_seq < lo->local.seq;
    return gathered && lo->spec->precision.norm_f32 ? HB_DT_F32 : lo->compute;
}

/* The last norm's input stands in f32 beside the logits (tinyS/base) unless the head is split, or
 * the layers are a pipeline (PP/base: three bf16[16,2048,2048], no f32); with padded gathers there
 * too, where the loop's residual lies turned, whose copy for the products takes the cast in. */
static uint32_t wide_input(struct hb_lower *lo, uint32_t x, struct hb_shape s)
{
    bool padded = hb_gathers_padded(lo) && hb_turn_residual(lo);
    if (lo->habits->logits_copies != 1 ||
        (!hb_head_grad_staged(lo) && hb_head_split(lo) && !padded))
        return HB_NONE;
    s.dtype = HB_DT_F32;
    uint32_t wide = hb_temp(lo, "last norm's input in f32", HB_CAT_WORKING, s);
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "last norm's input in f32", x, wide);
    return wide;
}

/* The head's whole gradient, whose sum comes later. */
static void make_whole(struct hb_lower *lo, struct hb_ends *ends, uint32_t x, uint32_t dlogits)
{
    struct hb_emit e = hb_loss_head_product(lo, lo->local.seq, "gradient of the head");
    hb_emit_read(&e, x);
    hb_emit_read(&e, dlogits);
    ends->pending_full = whole_grad(lo, dlogits);
    hb_emit_write(&e, ends->pending_full);
    hb_emit(lo, &e);
}

/* The ring of a table's gradient takes its part of the columns of what the head multiplies: where
 * the parts end with a lane's group they are taken as they lie, and the gradient of the logits is
 * turned in a copy of it, else that is (2 layers of 1024 to 4096 features, fsdp 8 and 16 of v5e and
 * v5p, 21 steps: copies of bf16[1,8192,128256]; of 2560 and 3584 features, of fewer than five ways
 * and on v6e, 30: none). */
static uint32_t turn_for_ring(struct hb_lower *lo, const struct hb_loss_pass *c)
{
    if (!hb_head_goes_round(lo) || !lo->spec->model.tied_embeddings || !hb_head_parts_lie(lo))
        return c->dlogits;
    uint32_t turned = logits_temp(lo, "gradient of the logits, turned", c->seq, lo->compute);
    hb_emit_simple(lo, HB_OP_COPY, "turn gradient of the logits", c->dlogits, turned);
    return turned;
}

/* Summed after the layers. */
static void start_grad(struct hb_lower *lo, struct hb_ends *ends, const struct hb_loss_pass *c)
{
    ends->pending_logits = hb_head_logits_beside(lo) ? c->logits : HB_NONE;
    make_whole(lo, ends, c->x, c->dlogits);
    if (!hb_head_sum_beside(lo))
        return;
    sum_whole(lo, ends->pending_full);
    ends->pending_full = HB_NONE;
    ends->head_done = true;
}

static bool is_started(const struct hb_lower *lo)
{
    return hb_head_sum_waits(lo) || hb_head_sum_beside(lo);
}

/* v5e makes it before that of its input (8B,v5e8x8,f64 of 2048 tokens: 393 and 398 of 1408), but
 * for a head that came by rows (four of four, 3,584 wide: at 396, that of its input at 387). */
static bool is_started_first(const struct hb_lower *lo)
{
    return is_started(lo) && !hb_loss_gathers_rows(lo);
}

/* The head's gradient after that of its input: now, or what of it waits for the layers. */
static void finish_loss(struct hb_lower *lo, struct hb_ends *ends, const struct hb_loss_pass *c)
{
    if (is_started(lo)) {
        start_grad(lo, ends, c);
    } else if (hb_head_logits_again(lo)) {
        ends->pending_x = c->x;
    } else if (hb_head_waits(lo)) {
        ends->pending_logits = waiting_logits(lo, c);
        if (hb_head_both_wait(lo) && hb_gathers_labels(lo)) {
            ends->pending_logits = c->logits;
            ends->pending_before = c->turned;
        }
        ends->pending_x = c->x;
    } else if ((hb_sequence_gathers_taken(lo) & HB_GATHERS_SUM_WAITS) || lo->tail.sum_waits) {
        make_whole(lo, ends, c->x, c->dlogits);
    } else {
        head_grad(lo, c->seq, c->x, c->turned);
        ends->head_done = true;
        bool late = hb_head_label_waits(lo) || hb_head_label_over_data(lo);
        ends->pending_logits = late && hb_gathers_labels(lo) ? c->logits : HB_NONE;
    }
}

/* XLA:GPU's scale of the last norm gets its gradient from a tensor of its own in f32, by token,
 * made beside the residual's: list schedules sum it at once, depth-first ones at the end
 * (70B,f256: f32[2,4096,8192] all through the layers' backward pass). */
static void norm_grad(struct hb_lower *lo, uint32_t wide)
{
    struct hb_leaf *l = &lo->leaves[lo->norm];
    l->grad = hb_temp(lo, "final norm, gradient", HB_CAT_GRADIENTS, hb_leaf_shape(l, HB_DT_F32));
    hb_emit_simple(lo, HB_OP_REDUCE, "gradient of the last norm", wide, l->grad);
}

uint32_t hb_loss_norm_back(struct hb_lower *lo, uint32_t g, uint32_t x, double moved_bytes)
{
    struct hb_shape s = hb_ends_residual(lo);
    uint32_t out = hb_temp(lo, "gradient of the last residual", HB_CAT_WORKING, s), wide = HB_NONE;
    struct hb_emit e = {
        .name = "backward of the last norm", .kind = HB_OP_ELEMENTWISE, .moved_bytes = moved_bytes};
    hb_emit_read(&e, g);
    hb_emit_read(&e, x);
    hb_emit_write(&e, out);
    if (hb_habits_ordered(lo->spec)) {
        s.dtype = HB_DT_F32;
        wide = hb_temp(lo, "gradient of the last norm, by token", HB_CAT_WORKING, s);
        hb_emit_write(&e, wide);
    }
    hb_emit(lo, &e);
    if (wide != HB_NONE)
        norm_grad(lo, wide);
    return out;
}

/* The head's gradient, where it comes before that of its input. */
static bool make_grad_first(struct hb_lower *lo, struct hb_ends *ends, const struct hb_loss_pass *c)
{
    if (is_grad_first(lo)) {
        head_grad(lo, c->seq, c->x, c->turned);
        ends->head_done = true;
    } else if (is_started_first(lo)) {
        start_grad(lo, ends, c);
    } else {
        if (hb_head_label_waits(lo))
            zero_ring(lo);
        return false;
    }
    return true;
}

/* Whether whole stacks come from the host between the head's products: behind a gradient of it that
 * comes first (mistral-24b over 64 of v6e, two microbatches, gates and what is up on the host:
 * fusion.723, f32[5120,131072], before copy.818), and before the ring of its input's; MaxText's
 * stay before its loss. */
static bool sends_between(const struct hb_lower *lo)
{
    return is_grad_first(lo) || is_started_first(lo) || (hb_head_ring(lo) && !hb_head_own_loss(lo));
}

static uint32_t whole_loss(struct hb_lower *lo, struct hb_ends *ends, uint32_t x)
{
    struct hb_loss_pass c = {.seq = lo->local.seq};
    struct hb_shape s = input_shape(lo, c.seq);
    uint32_t wide = wide_input(lo, x, s);
    c.x = wide == HB_NONE ? x : wide;
    if (!hb_gathers_padded(lo)) { /* whose head's products make it inside */
        s.dtype = last_norm_dtype(lo);
        c.x = hb_temp(lo, "last norm's result", HB_CAT_WORKING, s);
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "last norm", wide == HB_NONE ? x : wide, c.x);
    }
    if (hb_head_room_early(lo) && hb_head_goes_round(lo) && !hb_head_waits(lo))
        zero_ring(lo);
    c.w = hb_loss_use_head(lo, false);
    hb_loss_make_logits(lo, &c);
    hb_loss_make_dlogits(lo, &c);
    if (!hb_order_head_early(lo))
        c.w = hb_loss_use_head(lo, false);
    c.turned = turn_for_ring(lo, &c);
    bool first = make_grad_first(lo, ends, &c), between = sends_between(lo);
    if (between)
        hb_turn_sent(lo, HB_TURN_IN_LOSS, true);
    uint32_t g = hb_loss_grad_through(lo, &c);
    if (hb_head_label_behind(lo) && !reads_labels_first(lo, &c))
        hb_emit_mark(lo, "the labels' logits", c.logits, HB_NONE);
    if (!between)
        hb_turn_sent(lo, HB_TURN_IN_LOSS, false);
    hb_order_put_zeros(lo, HB_ZEROS_BESIDE_HEAD);
    if (!first)
        finish_loss(lo, ends, &c);
    return hb_loss_norm_back(lo, g, wide == HB_NONE ? x : wide, 0);
}

uint32_t hb_loss_further(struct hb_lower *lo, uint32_t x, bool waits)
{
    struct hb_loss_pass c = {.seq = lo->local.seq};
    lo->phase = HB_PHASE_LOSS;
    c.x = hb_temp(lo, "last norm's result of a depth", HB_CAT_WORKING, input_shape(lo, c.seq));
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "last norm of a depth", x, c.x);
    c.w = hb_loss_use_head(lo, false);
    lo->leaves[lo->head].gathered = c.w;
    hb_loss_make_logits(lo, &c);
    hb_loss_make_dlogits(lo, &c);
    c.turned = turn_for_ring(lo, &c);
    if (waits || hb_head_waits(lo))
        lo->further[lo->further_count++] = (struct hb_further){c.x, waiting_logits(lo, &c)};
    else
        one_head_grad(lo, c.seq, c.x, c.turned);
    return hb_loss_norm_back(lo, hb_loss_grad_through(lo, &c), x, 0);
}

uint32_t hb_loss_pass(struct hb_lower *lo, struct hb_ends *ends, uint32_t x)
{
    lo->phase = HB_PHASE_LOSS;
    ends->head_done = false;
    ends->pending_logits = ends->pending_x = ends->pending_full = HB_NONE;
    ends->loss_x = ends->loss_w = HB_NONE;
    ends->pending_before = HB_NONE;
    bool whole = !hb_in_chunks(lo);
    bool between = whole && sends_between(lo);
    hb_turn_sent(lo, HB_TURN_BEFORE_LOSS, between);
    uint32_t g = whole ? whole_loss(lo, ends, x) : hb_chunks_pass(lo, ends, x);
    hb_turn_sent(lo, HB_TURN_BEHIND_LOSS, between);
    return g;
}

void hb_loss_finish(struct hb_lower *lo, struct hb_ends *ends)
{
    if (ends->pending_full != HB_NONE) {
        /* dl,8B-L16,v5e,f64: logits from 464 to 1310, the sum from 1305 on, above both. */
        sum_whole(lo, ends->pending_full);
        hb_emit_mark(lo, "end of the logits", ends->pending_logits, HB_NONE);
    } else if (!ends->head_done) {
        struct hb_loss_pass c = {.seq = lo->local.seq, .x = ends->pending_x};
        c.logits = c.dlogits = ends->pending_logits;
        if (c.logits == HB_NONE) {
            c.w = hb_loss_use_head(lo, false);
            hb_loss_make_logits(lo, &c);
            c.dlogits = c.logits;
        }
        head_grad(lo, c.seq, c.x, c.dlogits);
        /* Behind layers that fetch from the host the loss comes after the head's gradient (16
         * layers of 4,096, fsdp 64 of v6e, one of 4,096, two of the MLP's on the host:
         * f32[4096,131072] from 270 to 923 of 1000, the gradient at 794 and its sum at 796). */
        if (lo->habits->rings && hb_offloads(lo))
            hb_emit_mark(lo, "the labels' logits", c.dlogits, HB_NONE);
    } else if (ends->pending_logits != HB_NONE) {
        hb_emit_mark(lo, "the labels' logits", ends->pending_logits, HB_NONE);
    }
}
