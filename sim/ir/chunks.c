/* The loss in chunks: see chunks.h. */
#include "sim/ir/chunks.h"

#include "base/size.h"
#include "sim/ir/head.h"
#include "sim/ir/loss_pass.h"
#include "sim/ir/order.h"
#include "sim/ir/sequence.h"
#include "sim/ir/turn.h"
#include "sim/ir/weight.h"

/* Shorter rings gather and scatter. */
static bool gathers_head(const struct hb_lower *lo)
{
    return hb_head_split(lo) && !hb_head_goes_round(lo);
}

static bool is_gpu(const struct hb_lower *lo)
{
    return lo->habits->logits_copies == 2;
}

/* A device casts its part of a head that chunks gather once, before the layers (v5e6e/1B,f8,b8 on
 * ROCm: bf16[256,128256] from 76 to 287 of 635), and turns one that is the table, too. */
bool hb_chunks_cast(const struct hb_lower *lo)
{
    bool cast = lo->spec->precision.params != lo->compute;
    return hb_in_chunks(lo) && (cast ? gathers_head(lo) : lo->head == lo->embed);
}

/* A table that is the head, too, is turned for chunks and for gathers, outside of the loop over
 * microbatches as it is (gemma-9b over data 16 and fsdp 2 with four microbatches: f32[1792,256000]
 * and bf16 of it; llama1b over fsdp 16, a loss as one; not so over data or expert alone). */
void hb_chunks_turn(struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    bool wanted = hb_in_chunks(lo) || hb_head_split(lo);
    if (!wanted || lo->head != lo->embed || l->transposed != HB_NONE)
        return;
    l->transposed = hb_temp(lo, "head, turned", HB_CAT_PARAMS,
                            hb_leaf_layer_shape(l, lo->spec->precision.params, false));
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "turn head", l->arg, l->transposed);
}

/* Each step of the ring adds the product with what came round, of two parts of the head, while
 * the next is on its way (the same dumps: fusion f32[1,2048,151936,1] and an add in place). */
static void add_parts(struct hb_lower *lo, const struct hb_loss_pass *c)
{
    struct hb_emit e = {.name = "sum of the ring's products", .kind = HB_OP_MARK};
    struct hb_shape part = hb_leaf_layer_shape(&lo->leaves[lo->head], lo->compute, false);
    hb_emit_read(&e, c->logits);
    hb_emit_write(&e, hb_temp(lo, "logits of two parts of the head", HB_CAT_LOGITS,
                              hb_buf_shape(lo, c->logits)));
    for (int i = 0; i < 2; i++)
        hb_emit_write(&e, hb_temp(lo, "head, part going round", HB_CAT_COMMUNICATION, part));
    hb_emit(lo, &e);
}

/* A ring collects a chunk's gradient in f32, half in each direction, which are added to the sum of
 * a device's own part (35 dumps: two f32[128,151936] beside bf16[128,151936]). Their room is there
 * before the logits on v5e (13 of 15), else behind their gradient (19 of 22). */
struct halves {
    uint32_t buf[2];
};

static struct halves make_room(struct hb_lower *lo)
{
    struct hb_shape own = hb_leaf_layer_shape(&lo->leaves[lo->head], HB_DT_F32, false);
    struct hb_emit e = {.name = "room for the ring's sums", .kind = HB_OP_MARK};
    struct halves h;
    for (int i = 0; i < 2; i++) {
        h.buf[i] = hb_temp(lo, "head, gradient of a chunk", HB_CAT_GRADIENTS, own);
        hb_emit_write(&e, h.buf[i]);
    }
    hb_emit(lo, &e);
    return h;
}

static void add_ring(struct hb_lower *lo, struct hb_emit *product, struct halves h, uint32_t sum)
{
    struct hb_emit add = {.name = "add gradient of the chunk", .kind = HB_OP_ELEMENTWISE};
    for (int i = 0; i < 2; i++) {
        hb_emit_write(product, h.buf[i]);
        hb_emit_read(&add, h.buf[i]);
    }
    hb_loss_add_step(lo, product, h.buf[0]);
    hb_emit(lo, product);
    hb_emit_write(&add, sum);
    hb_emit(lo, &add);
}

/* v7's sparse cores sum beside the gathered head and the gradient (qwen3-8b over 8, 8 chunks: three
 * of bf16[4096,151936], v5p one); of fewer tokens than the head has rows nothing is gathered. */
static int beside(const struct hb_lower *lo)
{
    int most = lo->chip->chunk_beside;
    return most > 1 && hb_head_tokens(lo) < lo->spec->model.d_model ? 0 : most;
}

/* A chunk's gradient of the head, whole, and its sum over the devices; none where nothing is
 * gathered. */
struct whole {
    uint32_t full, part;
};

/* With a gathered head each chunk's gradient is summed over the devices at once: whole in f32, then
 * whole in the compute dtype (real/70B,f128: f32[8192,128256] and bf16 of it beside the head);
 * XLA:GPU's sum is each device's part in f32. */
static struct whole chunk_head_grad(struct hb_lower *lo, const struct hb_loss_pass *c,
                                    struct halves room, uint32_t sum)
{
    struct whole w = {HB_NONE, HB_NONE};
    struct hb_leaf *l = &lo->leaves[lo->head];
    struct hb_emit e = hb_loss_head_product(lo, c->seq, "gradient of the head");
    hb_emit_read(&e, c->dlogits);
    hb_emit_read(&e, c->x);
    if (hb_head_goes_round(lo)) {
        add_ring(lo, &e, room.buf[0] != HB_NONE ? room : make_room(lo), sum);
        return w;
    }
    if (!gathers_head(lo)) {
        hb_emit_write(&e, sum);
        hb_emit(lo, &e);
        return w;
    }
    /* XLA:TPU scatters the sum beside tensor parallelism (8B,v6e4x4,f4t4: f32[1024,32064]) into
     * shards of whole rows of lanes (70B,f64t4,chunk8; 8B,f64t4,chunk4: bf16[4096,32064]). */
    bool scattered =
        is_gpu(lo) || hb_ways(lo, HB_AX_TENSOR) > 1 || hb_weight_sums_own(lo, lo->local.vocab);
    enum hb_dtype dtype = lo->p->bufs[c->dlogits].dtype;
    w.full = hb_temp(lo, "head, gradient of a chunk", HB_CAT_GRADIENTS,
                     hb_leaf_layer_shape(l, dtype, true));
    /* One in the compute dtype in its place (MaxText's llama3-8b over 256, num_vocab_tiling=4;
     * 1B,v5e2x4,f8,b8 tied with logits_dot=bf16: the gathered head and one more). */
    bool same = !scattered && dtype == lo->compute && beside(lo) < 2;
    w.part =
        same ? hb_temp_in_place(lo, "head, gradient of a chunk, summed", HB_CAT_GRADIENTS, w.full)
             : hb_temp(lo, "head, gradient of a chunk, summed", HB_CAT_GRADIENTS,
                       scattered ? hb_leaf_layer_shape(l, HB_DT_F32, false)
                                 : hb_leaf_layer_shape(l, lo->compute, true));
    hb_emit_write(&e, w.full);
    hb_emit(lo, &e);
    return w;
}

/* Once. */
static void sum_chunk(struct hb_lower *lo, struct whole *w, uint32_t sum)
{
    if (w->full == HB_NONE)
        return;
    hb_emit_grad_sum(lo, "sum gradient of the head", w->full, w->part);
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "add gradient of the chunk", w->part, sum);
    w->full = HB_NONE;
}

/* A gathered head's own gradient before that of its input: on GPUs, on v5e and v7 (beside), in
 * post-order, and where each device sums its part, which is then on its way (3,584 wide, fsdp 128
 * of v6e, 152,064 words: products at 34 and 89 of a chunk; over 64 or of 151,936 words behind it).
 */
static bool is_grad_first(const struct hb_lower *lo)
{
    return is_gpu(lo) || beside(lo) > 0 || hb_weight_sums_own(lo, lo->local.vocab) ||
           (hb_sequence_gathers_taken(lo) & HB_GATHERS_FIRST);
}

/* One chunk's backward pass: into sum and the stack gx. XLA:GPU gathers the head a second time for
 * the gradient through it, beside the head's own, which comes first (qwen32,f256: f32[5120,151936]
 * and bf16 of the gathered head), but once where products are in bf16 (qwen3-14b, fsdp 32, H100).
 * On v5e the head's own comes first as well (3B and 8B over 64, 4 chunks), but not its sum where
 * the head came by rows (3,584 wide, fsdp 128: products at 496 and 498, all-reduce.49 at 501) or
 * the sequence is split (8B, v5e, fsdp 8 to 32 and sequence 2 and 4: five of five). */
static void chunk_backward(struct hb_lower *lo, struct hb_loss_pass *c, uint32_t sum, uint32_t gx)
{
    bool inside = gathers_head(lo);
    bool first = hb_head_goes_round(lo) || (inside && is_grad_first(lo));
    struct halves room = {{HB_NONE, HB_NONE}};
    if (hb_head_goes_round(lo) && hb_head_room_early(lo))
        room = make_room(lo);
    if (inside)
        c->w = hb_loss_use_head(lo, true);
    else if (hb_head_goes_round(lo))
        c->w = hb_loss_gather_head(lo, c->w);
    c->unread = !is_gpu(lo);
    hb_loss_make_logits(lo, c);
    hb_loss_make_dlogits(lo, c);
    bool once = hb_order_dot_narrow(lo) && lo->local.vocab == lo->spec->model.vocab;
    if (inside && is_gpu(lo) && !once)
        c->w = hb_loss_use_head(lo, true);
    struct whole w = {HB_NONE, HB_NONE};
    bool behind = hb_loss_gathers_rows(lo) || hb_splits_sequence(lo);
    bool at_once = is_gpu(lo) || beside(lo) > 1 || !behind;
    if (first)
        w = chunk_head_grad(lo, c, room, sum);
    if (at_once)
        sum_chunk(lo, &w, sum);
    uint32_t part = hb_loss_grad_through(lo, c);
    uint32_t op = hb_emit_simple(lo, HB_OP_COPY, "gradient of the chunk into its stack", part, gx);
    lo->p->ops[op].moved_bytes = 2.0 * (double)lo->p->bufs[part].bytes;
    if (!first)
        w = chunk_head_grad(lo, c, room, sum);
    sum_chunk(lo, &w, sum);
}

/* Chunks of batch and sequence together cross the batch's sharding. Tokens are exchanged for them
 * (llama3-8b/num_vocab_tiling=4), and back; but inside an accumulation loop their gradient is
 * gathered from all devices and turned (with 2 microbatches bf16[4,16384,4096] twice). */
static uint32_t unchunk(struct hb_lower *lo, uint32_t gx)
{
    if (lo->spec->loss.chunk_over != HB_CHUNK_TOKENS || !hb_accumulates(lo))
        return gx;
    struct hb_shape all = hb_buf_shape(lo, gx);
    all.dim[0] = hb_mul_sat(all.dim[0], lo->local.batch_ways);
    uint32_t whole = hb_temp(lo, "gradient of the chunks, gathered", HB_CAT_COMMUNICATION, all);
    hb_emit_collective(lo, HB_OP_ALL_GATHER, HB_AX_FSDP, "make gradient of the chunks, gathered",
                       gx, whole);
    uint32_t turned = hb_temp(lo, "gradient of the chunks, turned", HB_CAT_COMMUNICATION,
                              hb_buf_shape(lo, whole));
    hb_emit_simple(lo, HB_OP_COPY, "turn gradient of the chunks", whole, turned);
    return turned;
}

static struct hb_loss_pass pass_over(const struct hb_lower *lo, uint32_t x)
{
    int64_t chunks = lo->spec->loss.chunks;
    return (struct hb_loss_pass){.seq = (lo->local.seq + chunks - 1) / chunks, .x = x};
}

/* Adds up the loss. A gathered head is gathered in each chunk; one that goes round is not. */
static void add_loss(struct hb_lower *lo, struct hb_loss_pass *c)
{
    bool inside = gathers_head(lo);
    uint32_t loop = hb_program_open_loop(lo->p, "loss chunks", lo->spec->loss.chunks);
    if (inside)
        c->w = hb_loss_use_head(lo, true);
    hb_loss_make_logits(lo, c);
    if (hb_head_goes_round(lo) &&
        lo->spec->loss.dot == HB_DT_F32) /* narrow ones are cast when summed */
        add_parts(lo, c);
    hb_emit_simple(lo, HB_OP_REDUCE, "softmax cross-entropy", c->logits, lo->loss);
    hb_program_close_loop(lo->p, loop);
}

/* The head as chunks read it that do not gather it one by one; HB_NONE where they do. */
static uint32_t shared_head(struct hb_lower *lo)
{
    return gathers_head(lo) ? HB_NONE : hb_loss_own_head(lo, true);
}

void hb_chunks_room(struct hb_lower *lo)
{
    struct hb_loss_pass c = pass_over(lo, HB_NONE);
    const int64_t logits[] = {lo->local.batch, c.seq, lo->local.vocab, -1};
    struct hb_emit e = {.name = "the loss is added up", .kind = HB_OP_MARK};
    if (gathers_head(lo))
        hb_emit_write(&e, hb_temp(lo, "head, gathered", HB_CAT_COMMUNICATION,
                                  hb_leaf_layer_shape(&lo->leaves[lo->head], lo->compute, true)));
    hb_emit_write(&e, hb_temp(lo, "logits", HB_CAT_LOGITS, hb_shape_make(HB_DT_F32, logits)));
    hb_emit(lo, &e);
}

void hb_chunks_finish(struct hb_lower *lo, const struct hb_ends *ends)
{
    if (ends->loss_x == HB_NONE)
        return;
    enum hb_phase phase = lo->phase;
    struct hb_loss_pass c = pass_over(lo, ends->loss_x);
    lo->phase = HB_PHASE_LOSS;
    c.w = ends->loss_w != HB_NONE ? ends->loss_w : shared_head(lo);
    add_loss(lo, &c);
    lo->phase = phase;
}

/* Chunks: a loop that only adds up the loss, where that does not come last, then one that makes the
 * logits and their gradients; the head's gradient is carried by the second in the compute dtype
 * (bwd/base). A gathered head is done with before its gradient is made (8B64/loss=chunk); on v5e
 * that comes first (8B,v5e8x8,chunk16). */
uint32_t hb_chunks_pass(struct hb_lower *lo, struct hb_ends *ends, uint32_t x)
{
    int64_t chunks = lo->spec->loss.chunks;
    int64_t d = lo->spec->model.d_model;
    struct hb_shape all =
        hb_shape_make(lo->compute, (const int64_t[]){lo->local.batch, lo->local.seq, d, -1});
    struct hb_loss_pass c = pass_over(lo, hb_temp(lo, "last norm's result", HB_CAT_WORKING, all));
    double own_bytes = 2.0 * (double)lo->p->bufs[x].bytes; /* of them all, a device's own tokens */
    uint32_t norm = hb_emit_simple(lo, HB_OP_ELEMENTWISE, "last norm", x, c.x);
    lo->p->ops[norm].moved_bytes = own_bytes;
    c.w = shared_head(lo);
    bool last = lo->tail.known ? lo->tail.value_late : hb_sequence_loss_last(lo);
    ends->loss_x = last ? c.x : HB_NONE;
    ends->loss_w = last && is_gpu(lo) ? c.w : HB_NONE;
    if (!last)
        add_loss(lo, &c);
    struct hb_leaf *l = &lo->leaves[lo->head];
    bool partial = !hb_head_split(lo) && hb_weight_grad_partial(lo, l);
    uint32_t sum = hb_temp(lo, "head, gradient over the chunks", HB_CAT_GRADIENTS,
                           hb_leaf_layer_shape(l, lo->compute, false));
    hb_emit_mark(lo, "zero gradient of the head", HB_NONE, sum);
    uint32_t gx = hb_temp(lo, "gradient of the last norm's result", HB_CAT_WORKING, all);
    hb_emit_mark(lo, "gradients of the chunks", HB_NONE, gx);
    lo->phase = HB_PHASE_BACKWARD;
    uint32_t loop = hb_program_open_loop(lo->p, "loss chunks, backward", chunks);
    chunk_backward(lo, &c, sum, gx);
    hb_program_close_loop(lo->p, loop);
    l->grad = sum;
    if (partial) {
        l->grad = hb_temp_in_place(lo, "head, gradient summed", HB_CAT_GRADIENTS, sum);
        hb_weight_reduce_grad(lo, lo->head, sum);
    }
    ends->head_done = true;
    hb_turn_sent(lo, HB_TURN_IN_LOSS, false);
    gx = unchunk(lo, gx);
    return hb_loss_norm_back(lo, gx, x, own_bytes + (double)lo->p->bufs[x].bytes);
}
