/* sim/ir/lower: what each knob does to the program of buffers. The base is the lab's tinyS model
 * (4 layers, d 1024, d_ff 2816, 8 heads of 128, V 32000, 8 x 2048 tokens, one device); each test
 * names the measured pair that it mirrors (ids of lab records without their "lab-"), or the rule.
 */
#include "tests/unit/lowered.h"

enum {
    D = 1024,
    FF = 2816,
    HEADS = 8,
    HD = 128,
    LAYERS = 4,
    VOCAB = 32000,
    BATCH = 8,
    SEQ = 2048,
    TOKENS = BATCH * SEQ
};

static const char base[] = FOUR_LAYERS(DENSE_MLP);

#define LOWER(...) lower_text(base, (const char *const[]){__VA_ARGS__, NULL})

/* The first buffer of its own with this text in its name; null: none. */
static const struct hb_buf *find_buf(const struct low *l, const char *text)
{
    for (uint32_t i = 0; i < l->p.buf_count; i++)
        if (l->p.bufs[i].alias_of == HB_NONE && strstr(l->p.bufs[i].name, text))
            return &l->p.bufs[i];
    return NULL;
}

/* Bytes of all buffers of their own with this text in their names. */
static int64_t total_of(const struct low *l, const char *text)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->p.buf_count; i++)
        if (l->p.bufs[i].alias_of == HB_NONE && strstr(l->p.bufs[i].name, text))
            sum += l->p.bufs[i].plain_bytes;
    return sum;
}

/* Bytes that wait for the backward pass, of one token in one layer. */
static int64_t residual(const struct low *l)
{
    return saved(l, HB_SPACE_HBM) / TOKENS / LAYERS;
}

/* --- attention --- */

/* tpu-tinyS--base against tpu-tiny--base: the kernel makes a result and a log-sum-exp, and no
 * tensor of positions x positions. */
static void flash_keeps_result_and_log_sum_exp(void **state)
{
    (void)state;
    struct low l = LOWER(TPU, "remat.policy=none");
    assert_int_equal(bytes_of(&l, "attention result of the kernel, saved"),
                     INT64_C(2) * TOKENS * HEADS * HD * LAYERS);
    assert_int_equal(bytes_of(&l, "attention log-sum-exp, saved"),
                     INT64_C(4) * TOKENS * HEADS * LAYERS);
    for (uint32_t i = 0; i < l.p.buf_count; i++)
        for (int k = 1; k < l.p.bufs[i].rank; k++)
            assert_false(l.p.bufs[i].dim[k] == SEQ && l.p.bufs[i].dim[k - 1] == SEQ);
}

/* tpu-tiny--base: f32 scores [B,H,S,S] and probabilities in the compute dtype. */
/* Arithmetic of the attention kernels of one pass through the layers' ops. */
static double attention_work(const struct low *l, enum hb_phase phase)
{
    double flops = 0;
    for (uint32_t i = 0; i < l->p.op_count; i++)
        if (l->p.ops[i].kind == HB_OP_ATTENTION && l->p.ops[i].phase == phase)
            flops += l->p.ops[i].flops;
    return flops;
}

/* A kernel computes whole blocks (512 x 512 on TPU, splash): those that the mask does not hide. Of
 * 2048 keys in 4 blocks, rows meet 1, 2, 3 and 4; a window of 512 reaches back into one block.
 * The backward pass makes the forward pass again and then seven products (five where they are one
 * kernel) for its two. */
static void flash_computes_whole_blocks(void **state)
{
    (void)state;
    const double score = 4.0 * BATCH * HEADS * SEQ * HD; /* of one key */
    struct low full = LOWER(TPU, "model.blocks[0].attention.mask=none");
    struct low causal = LOWER(TPU);
    struct low window = LOWER(TPU, "model.blocks[0].attention.window=512");
    struct low pattern =
        LOWER(TPU, "model.blocks[0].attention.window=[512, 0]", "model.blocks[0].unit=2");
    struct low fused = LOWER(TPU, "model.blocks[0].attention.fused_backward=true");
    assert_true(attention_work(&full, HB_PHASE_FORWARD) == score * 2048);
    assert_true(attention_work(&causal, HB_PHASE_FORWARD) == score * 1280);
    assert_true(attention_work(&window, HB_PHASE_FORWARD) == score * 512 * 7 / 4);
    assert_true(attention_work(&pattern, HB_PHASE_FORWARD) == score * (1280 + 512.0 * 7 / 4));
    assert_true(attention_work(&causal, HB_PHASE_BACKWARD) == (1 + 3.5) * score * 1280);
    assert_true(attention_work(&fused, HB_PHASE_BACKWARD) == (1 + 2.5) * score * 1280);
}

static void naive_materialises_scores(void **state)
{
    (void)state;
    struct low l = LOWER(TPU, "model.blocks[0].attention.kernel=naive");
    assert_int_equal(bytes_of(&l, "attention scores"), INT64_C(4) * TOKENS * HEADS * SEQ);
    assert_int_equal(bytes_of(&l, "attention probabilities"), INT64_C(2) * TOKENS * HEADS * SEQ);
    assert_null(find_buf(&l, "log-sum-exp"));
    struct low half = LOWER(TPU, "model.blocks[0].attention.kernel=naive",
                            "model.blocks[0].attention.softmax=bf16");
    assert_int_equal(2 * bytes_of(&half, "attention scores"), bytes_of(&l, "attention scores"));
}

/* cuda-tiny--base: the causal mask and its fill value are made for all heads before the scan;
 * cuda--pr85--pp8--mask,naive,causal_mat: not where the mask is given. */
static void a_hoisted_mask_is_materialised(void **state)
{
    (void)state;
    static const char naive[] = "model.blocks[0].attention.kernel=naive";
    struct low l = LOWER(CUDA, naive);
    assert_int_equal(bytes_of(&l, "causal mask"), INT64_C(1) * TOKENS * HEADS * SEQ);
    assert_int_equal(bytes_of(&l, "fill value"), INT64_C(4) * TOKENS * HEADS * SEQ);
    struct low given = LOWER(CUDA, naive, "model.blocks[0].attention.mask=causal_materialised");
    assert_null(find_buf(&given, "fill value"));
    struct low tpu = LOWER(TPU, naive);
    assert_null(find_buf(&tpu, "fill value"));
}

/* rocm--attn--naive and the blocked rows: scores of one block of queries at a time. */
static void blocked_holds_one_block_of_scores(void **state)
{
    (void)state;
    struct low l = LOWER(ROCM, "model.blocks[0].attention.kernel=blocked",
                         "model.blocks[0].attention.block=256");
    assert_int_equal(bytes_of(&l, "attention by query blocks, scratch"),
                     INT64_C(4) * BATCH * HEADS * 256 * SEQ);
    assert_null(find_buf(&l, "attention scores"));
}
static double moved_by(const struct low *l, const char *op)
{
    for (uint32_t i = 0; i < l->p.op_count; i++)
        if (strcmp(l->p.ops[i].name, op) == 0)
            return l->p.ops[i].moved_bytes;
    return -1;
}
/* xla-h100/11-mistral7b and 20-qwen3-4b: bytes a score of all kernels, and of the softmax's. */
static void scores_are_read_by_each_kernel(void **state)
{
    (void)state;
    const double scores = (double)TOKENS * HEADS * SEQ;
    struct low blocks = LOWER(CUDA, "model.blocks[0].attention.kernel=blocked");
    assert_true(moved_by(&blocks, "attention by query blocks") == 20 * scores);
    assert_true(moved_by(&blocks, "backward of attention by query blocks") == 54 * scores);
    struct low naive = LOWER(CUDA, "model.blocks[0].attention.kernel=naive");
    assert_true(moved_by(&naive, "softmax") + moved_by(&naive, "backward of softmax") ==
                42 * scores);
}

/* tpu-mix--seq rows: keys and values are gathered over the sequence; all_to_all exchanges heads for
 * positions instead (rule of the schema's additions; no record has it). */
static void the_sequence_is_crossed_in_two_ways(void **state)
{
    (void)state;
    struct low gathered = LOWER(TPU, "mesh.sequence=2");
    assert_true(count_kind(&gathered, HB_OP_ALL_GATHER, HB_AX_SEQUENCE) > 0);
    assert_int_equal(count_kind(&gathered, HB_OP_ALL_TO_ALL, HB_AX_SEQUENCE), 0);
    assert_int_equal(bytes_of(&gathered, "k, gathered over sequence"),
                     INT64_C(2) * TOKENS * HEADS * HD);
    struct low exchanged = LOWER(TPU, "mesh.sequence=2", "sharding.sequence_kind=all_to_all");
    assert_int_equal(count_kind(&exchanged, HB_OP_ALL_GATHER, HB_AX_SEQUENCE), 0);
    /* q, k, v and the result forward; all four again, and their gradients, in the backward pass */
    assert_true(count_kind(&exchanged, HB_OP_ALL_TO_ALL, HB_AX_SEQUENCE) >= 11);
    assert_int_equal(bytes_of(&exchanged, "q, exchanged over sequence"),
                     INT64_C(2) * TOKENS * HEADS * HD / 2);
}

/* --- what waits for the backward pass --- */

/* tpu-tinyS--base, --remat=names:mlp_act, --remat=names:q,k,v,attn_ctx,mlp_gate,mlp_up,
 * tpu-bwd--remat=names:..., tpu-bwd--L=8,remat=none: bytes per token and layer, exact. */
static void policies_keep_their_residuals(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *save;
        int64_t bytes;
    } rows[] = {
        {"full", "[]", 2 * D},
        {"names", "[layer_in]", 2 * D},
        {"names", "[mlp_down]", 2 * D},
        {"names", "[q, k, v]", 2 * D + 6 * HEADS * HD},
        {"names", "[attn_out]", 4 * D},
        {"names", "[attn_ctx]", 2 * D + 4 * HEADS * HD + 4 * HEADS},
        {"names", "[mlp_gate, mlp_up]", 2 * D + 4 * FF},
        {"names", "[mlp_act]", 2 * D + 2 * FF},
        {"dots", "[]", 4 * D + 6 * HEADS * HD + 4 * FF},
        {"dots_no_batch", "[]", 4 * D + 6 * HEADS * HD + 4 * FF},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct low l = LOWER(TPU, hb_arena_printf(u.env.arena, "remat.policy=%s", rows[i].policy),
                             hb_arena_printf(u.env.arena, "remat.save=%s", rows[i].save));
        if (residual(&l) != rows[i].bytes)
            fail_msg("%s %s: %lld, not %lld", rows[i].policy, rows[i].save, (long long)residual(&l),
                     (long long)rows[i].bytes);
    }
}

/* tpu-bwd--L=8,remat=none: the compiler keeps 64,560 bytes, all that the trace reads: six tensors
 * of FF, f32 inputs of the norms. What is kept here may be two tensors of d more, which it drops.
 */
static void without_remat_the_trace_is_kept(void **state)
{
    (void)state;
    enum { MEASURED = 64560 };
    struct low l = LOWER(TPU, "remat.policy=none");
    assert_in_range(residual(&l), MEASURED - 32, MEASURED + 4 * D);
    assert_int_equal(total_of(&l, "norm1 in f32, saved"), INT64_C(4) * TOKENS * D * LAYERS);
    assert_int_equal(total_of(&l, "silu of the gate, saved"), INT64_C(2) * TOKENS * FF * LAYERS);
}

/* tpu-tiny--remat=dots against dots_nb: f32 scores are the result of a product with a batch. */
static void dots_keep_scores_where_they_are_products(void **state)
{
    (void)state;
    static const char naive[] = "model.blocks[0].attention.kernel=naive";
    struct low all = LOWER(TPU, naive, "remat.policy=dots");
    struct low plain = LOWER(TPU, naive, "remat.policy=dots_no_batch");
    assert_int_equal(total_of(&all, "attention scores, saved"),
                     INT64_C(4) * TOKENS * HEADS * SEQ * LAYERS);
    assert_int_equal(total_of(&plain, "attention scores, saved"), 0);
}

/* tpu-tiny--layers=loop,remat=none: an unrolled program prunes what no backward step reads. */
static void a_loop_prunes_residuals(void **state)
{
    (void)state;
    struct low scan = LOWER(TPU, "remat.policy=none");
    struct low loop = LOWER(TPU, "remat.policy=none", "stack.form=loop");
    assert_true(residual(&loop) < residual(&scan));
    assert_int_equal(loop.p.loop_count, 0);
    assert_non_null(find_buf(&loop, "block[3].wq"));
    assert_int_equal(params(&loop), params(&scan));
}

/* tpu-bwd--remat=offload:layer_in: the stack is on the host, a layer at a time comes back. */
static void offload_moves_the_stack(void **state)
{
    (void)state;
    struct low on = LOWER(TPU);
    struct low off = LOWER(TPU, "remat.offload=[layer_in]");
    int64_t stack = INT64_C(2) * TOKENS * D * LAYERS;
    assert_int_equal(saved(&on, HB_SPACE_HBM), stack);
    assert_int_equal(saved(&on, HB_SPACE_HOST), 0);
    assert_int_equal(saved(&off, HB_SPACE_HBM), 0);
    assert_int_equal(saved(&off, HB_SPACE_HOST), stack);
    assert_int_equal(off.m.host_bytes - on.m.host_bytes, stack);
}

/* tpu-tinyS--n_layers=16,layers=nested: as 4 x 4, 512 -> 128 + 128 MiB. */
static void nested_scans_keep_two_short_stacks(void **state)
{
    (void)state;
    struct low flat = LOWER(TPU, "model.blocks[0].repeat=16");
    struct low nested = LOWER(TPU, "model.blocks[0].repeat=16", "stack.form=nested");
    int64_t layer = INT64_C(2) * TOKENS * D;
    assert_int_equal(saved(&flat, HB_SPACE_HBM), 16 * layer);
    assert_int_equal(saved(&nested, HB_SPACE_HBM), 8 * layer);
    assert_int_equal(trips_of(&nested, "inner"), 4);
    struct low inner_only =
        LOWER(TPU, "model.blocks[0].repeat=16", "stack.form=nested", "remat.outer=false");
    /* tpu-1B/o4,inner-only: an outer block runs backwards on a slice of what it keeps. */
    assert_int_equal(saved(&inner_only, HB_SPACE_HBM), (16 + 4) * layer);
    struct low two = LOWER(TPU, "model.blocks[0].repeat=16", "stack.form=nested", "stack.outer=2");
    assert_int_equal(saved(&two, HB_SPACE_HBM), 10 * layer);
}

/* tpu-tinyS--n_layers=1 and tiny/unroll=4 (17451 against 4067 MiB): a scan that is unrolled whole,
 * or of one step, keeps what a loop with policy none keeps; tpu-tiny--unroll=2 does not. */
static void a_scan_unrolled_whole_loses_its_remat(void **state)
{
    (void)state;
    struct low scan = LOWER(TPU);
    struct low none = LOWER(TPU, "stack.form=loop", "remat.policy=none");
    struct low half = LOWER(TPU, "stack.unroll=2"), whole = LOWER(TPU, "stack.unroll=4");
    assert_int_equal(saved(&half, HB_SPACE_HBM), saved(&scan, HB_SPACE_HBM));
    assert_int_equal(saved(&whole, HB_SPACE_HBM), saved(&none, HB_SPACE_HBM));
    struct low one = LOWER(TPU, "model.blocks[0].repeat=1");
    assert_int_equal(one.p.loop_count, 0);
    assert_true(saved(&one, HB_SPACE_HBM) > INT64_C(8) * TOKENS * FF);
}

/* maxtext-base--gemma2-9b: two layers a scan step, one input kept for both. */
static void a_unit_keeps_one_input(void **state)
{
    (void)state;
    struct low one = LOWER(TPU);
    struct low two = LOWER(TPU, "model.blocks[0].unit=2");
    assert_int_equal(2 * saved(&two, HB_SPACE_HBM), saved(&one, HB_SPACE_HBM));
    assert_int_equal(trips_of(&two, "block"), LAYERS / 2);
    assert_non_null(find_buf(&two, "block.1.wq"));
    assert_int_equal(params(&two), params(&one));
}

/* --- state and update --- */

/* tpu-tinyS--donate=False, cuda opt/donate=False: the state goes out beside the one that came in;
 * XLA:GPU puts gradients there, and what else finds room. */
static void without_donation_outputs_are_new(void **state)
{
    (void)state;
    struct low given = LOWER(TPU);
    struct low kept = LOWER(TPU, "step.donate=false");
    int64_t all = 12 * params(&given);
    assert_int_equal(given.m.argument_bytes, kept.m.argument_bytes);
    assert_true(given.m.alias_bytes >= all);
    assert_true(kept.m.alias_bytes < 4096);
    assert_true(given.m.output_bytes - given.m.alias_bytes < 4096);
    assert_true(kept.m.output_bytes >= all);
    struct low gpu = LOWER(CUDA), gpu_kept = LOWER(CUDA, "step.donate=false");
    assert_true(gpu.m.temp_bytes > gpu_kept.m.temp_bytes);
    assert_int_equal(total_of(&gpu, ", gradient"), total_of(&gpu_kept, ", gradient"));
}

/* cuda-opt--nan_to_num=True: one zero tensor for each shape of a stacked gradient ([4,1024,1024],
 * [4,1024,2816], [4,2816,1024], the norms' [4,1024]), none on TPU. */
static void nan_to_num_keeps_a_zero_for_each_shape(void **state)
{
    (void)state;
    struct low off = LOWER(CUDA), on = LOWER(CUDA, "step.nan_to_num=true");
    int64_t zeros = 0;
    for (uint32_t i = off.p.buf_count; i-- > 0;)
        zeros -= off.p.bufs[i].category == HB_CAT_GRADIENTS && off.p.bufs[i].alias_of == HB_NONE
                     ? off.p.bufs[i].plain_bytes
                     : 0;
    for (uint32_t i = on.p.buf_count; i-- > 0;)
        zeros += on.p.bufs[i].category == HB_CAT_GRADIENTS && on.p.bufs[i].alias_of == HB_NONE
                     ? on.p.bufs[i].plain_bytes
                     : 0;
    int64_t matrices = INT64_C(4) * LAYERS * (D * D + 2 * D * FF);
    assert_true(zeros >= matrices && zeros <= matrices + 4 * LAYERS * D);
    struct low tpu_off = LOWER(TPU), tpu_on = LOWER(TPU, "step.nan_to_num=true");
    assert_int_equal(tpu_off.m.peak_bytes, tpu_on.m.peak_bytes);
    assert_int_equal(tpu_off.p.buf_count, tpu_on.p.buf_count);
}

/* cuda-1B--accum=2: f32 accumulators of all parameters, and half the tokens at a time. */
static void accumulation_adds_accumulators(void **state)
{
    (void)state;
    struct low one = LOWER(TPU), two = LOWER(TPU, "batch.accumulate=2");
    assert_int_equal(total_of(&one, "gradient accumulated"), 0);
    assert_int_equal(total_of(&two, "gradient accumulated"), 4 * params(&two));
    assert_int_equal(2 * saved(&two, HB_SPACE_HBM), saved(&one, HB_SPACE_HBM));
    assert_int_equal(trips_of(&two, "microbatches"), 2);
    struct low narrow = LOWER(TPU, "batch.accumulate=2", "precision.params=bf16");
    assert_int_equal(total_of(&narrow, "gradient accumulated"), 4 * params(&two));
}

/* tpu-opt--opt=adamw_bf16, tpu-1B--opt=sgd, cuda-1B--opt=lion: states by rule and dtype. */
static void optimizers_keep_their_states(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *moments;
        int64_t bytes; /* of each parameter */
    } rows[] = {{"sgd", "[]", 0},
                {"momentum", "[f32]", 4},
                {"adamw", "[f32, f32]", 8},
                {"adamw", "[bf16, f32]", 6},
                {"adamw", "[bf16, bf16]", 4},
                {"adamw", "[q8, q8]", 2},
                {"lion", "[bf16]", 2},
                {"muon", "[f32]", 4}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct low l = LOWER(TPU, hb_arena_printf(u.env.arena, "optimizer.name=%s", rows[i].name),
                             hb_arena_printf(u.env.arena, "optimizer.moments=%s", rows[i].moments));
        assert_int_equal(total_of(&l, "first moment") + total_of(&l, "second moment"),
                         rows[i].bytes * params(&l));
    }
}

/* rocm-opt--opt=adafactor, tpu-mixtral--opt=adafactor: a row and a column where both sides are at
 * least 128, else the full second moment. */
static void adafactor_factors_its_moments(void **state)
{
    (void)state;
    struct low l = LOWER(TPU, "optimizer.name=adafactor", "optimizer.moments=[]");
    assert_int_equal(bytes_of(&l, "block.w_gate, first moment"), INT64_C(4) * LAYERS * D);
    assert_int_equal(bytes_of(&l, "block.w_gate, second moment"), INT64_C(4) * LAYERS * FF);
    assert_int_equal(bytes_of(&l, "block.norm1, first moment"), INT64_C(4) * LAYERS * D);
    struct low narrow = LOWER(TPU, "optimizer.name=adafactor", "optimizer.moments=[]",
                              "model.blocks[0].mlp.d_ff=64");
    assert_int_equal(bytes_of(&narrow, "block.w_gate, first moment"), INT64_C(4) * LAYERS * D * 64);
}

/* maxtext-llama3-8b-v5p16--dp2_fsdp4_zero1: moments over data too, parameters not. */
static void zero1_splits_the_moments(void **state)
{
    (void)state;
    struct low off = LOWER(TPU, "mesh.data=4");
    struct low on = LOWER(TPU, "mesh.data=4", "sharding.optimizer_over_data=true");
    assert_int_equal(params(&on), params(&off));
    assert_int_equal(total_of(&off, " moment"), 8 * params(&off));
    assert_int_equal(total_of(&on, " moment"), 2 * params(&on));
}

/* tpu-opt--param_dtype=bf16,master=True and tpu-opt--ema=host: copies of 4 bytes a parameter. */
static void master_and_average_are_copies(void **state)
{
    (void)state;
    struct low plain = LOWER(TPU);
    int64_t count = params(&plain);
    struct low l = LOWER(TPU, "precision.params=bf16", "precision.master=f32");
    assert_int_equal(total_of(&l, ", f32 master"), 4 * count);
    struct low ema = LOWER(TPU, "optimizer.ema=device");
    assert_int_equal(total_of(&ema, ", ema"), 4 * count);
    assert_int_equal(ema.m.argument_bytes - plain.m.argument_bytes, 4 * count);
    struct low host = LOWER(TPU, "optimizer.ema=pinned_host");
    assert_int_equal(host.m.argument_bytes, plain.m.argument_bytes);
    assert_true(host.m.host_bytes >= 4 * count);
}

/* tpu-tinyS--opt_host=True, tpu-mix--offload--70B,f256,opthost: states leave the arguments and come
 * back as temporaries for the update. */
static void offloaded_states_come_back_for_the_update(void **state)
{
    (void)state;
    struct low on = LOWER(TPU), off = LOWER(TPU, "optimizer.offload=pinned_host");
    int64_t states = 8 * params(&on);
    assert_int_equal(on.m.argument_bytes - off.m.argument_bytes, states);
    assert_int_equal(total_of(&off, ", copy on the device"), 2 * states); /* the new ones apart */
    assert_true(off.m.host_bytes >= states);
    assert_true(count_kind(&off, HB_OP_HOST_COPY, HB_AX_DATA) >= 2 * 12 * 2);
}

/* tinyS/clip: the unembedding's gradient must wait for the norm (+ 62.5 MiB). */
static void clipping_sees_all_gradients(void **state)
{
    (void)state;
    struct low off = LOWER(TPU), on = LOWER(TPU, "optimizer.clip=true");
    assert_null(find_buf(&off, "head, gradient"));
    assert_int_equal(bytes_of(&on, "head, gradient"), INT64_C(2) * D * VOCAB);
}

/* opt/base against opt/param_dtype=bf16: the whole stack is cast once on TPU, a layer at a time on
 * GPU, not at all where the weights have the compute dtype. */
static void casts_are_hoisted_on_tpu(void **state)
{
    (void)state;
    struct low tpu = LOWER(TPU), gpu = LOWER(CUDA), same = LOWER(TPU, "precision.params=bf16");
    assert_int_equal(bytes_of(&tpu, "block.w_up, cast"), INT64_C(2) * LAYERS * D * FF);
    assert_int_equal(bytes_of(&gpu, "block.w_up, cast"), INT64_C(2) * D * FF);
    assert_null(find_buf(&same, "block.w_up, cast"));
    struct low upfront = LOWER(CUDA, "step.cast=upfront");
    assert_int_equal(bytes_of(&upfront, "block.w_up, cast"), INT64_C(2) * LAYERS * D * FF);
}

/* --- the ends --- */

/* rocm-tinyS--embed=onehot, cuda--pr85--pp8--good,embed=onehot: s32[tokens, V] on GPU. */
static void onehot_lookup_makes_an_index_tensor(void **state)
{
    (void)state;
    static const char onehot[] = "embedding.lookup=onehot";
    struct low cuda = LOWER(CUDA, onehot), rocm = LOWER(ROCM, onehot), tpu = LOWER(TPU, onehot);
    assert_int_equal(bytes_of(&cuda, "index tensor"), INT64_C(4) * TOKENS * VOCAB);
    assert_int_equal(bytes_of(&rocm, "index tensor"), INT64_C(4) * TOKENS * VOCAB);
    assert_null(find_buf(&tpu, "index tensor"));
}

/* tpu-xlaopt--base against tpu-1B--batch=8: an eighth of the logits at a time. */
static void chunks_divide_the_logits(void **state)
{
    (void)state;
    struct low whole = LOWER(TPU), chunked = LOWER(TPU, "loss.chunks=8");
    assert_int_equal(bytes_of(&whole, "logits"), INT64_C(4) * TOKENS * VOCAB);
    assert_int_equal(bytes_of(&chunked, "logits"), INT64_C(4) * TOKENS * VOCAB / 8);
    assert_int_equal(trips_of(&chunked, "loss chunks"), 8);
}

/* cuda-tinyS--base: two sets of f32 logits on GPU, one on TPU. */
static void gpus_hold_logits_twice(void **state)
{
    (void)state;
    struct low tpu = LOWER(TPU), gpu = LOWER(CUDA);
    int64_t logits = INT64_C(4) * TOKENS * VOCAB;
    assert_int_equal(tpu.m.category_bytes[HB_CAT_LOGITS], logits);
    assert_int_equal(gpu.m.category_bytes[HB_CAT_LOGITS], 2 * logits);
}

/* tpu-opt--tied=True: no leaf for the head, and its logits wait through the backward pass. */
static void tied_embeddings_are_one_leaf(void **state)
{
    (void)state;
    struct low two = LOWER(TPU), one = LOWER(TPU, "model.tied_embeddings=true");
    assert_int_equal(params(&two) - params(&one), (int64_t)VOCAB * D);
    assert_true(one.m.live_temp_bytes > two.m.live_temp_bytes);
}

/* maxtext-base--gpt3-6b--v5p-16: a table of positions beside the embedding. */
static void positions_are_a_table(void **state)
{
    (void)state;
    struct low off = LOWER(TPU), on = LOWER(TPU, "model.positions=4096");
    assert_int_equal(params(&on) - params(&off), 4096 * D);
    assert_non_null(find_buf(&on, "position table, gradient"));
}

/* Sizes beyond the range are an error, not a fault. */
static void sizes_beyond_the_range_are_told(void **state)
{
    (void)state;
    struct low l = LOWER(TPU);
    struct hb_program p;
    l.spec.batch.global = INT64_C(1) << 50;
    assert_false(hb_link_lower(u.env.arena, &u.diag, &l.spec, &p));
    assert_non_null(strstr(u.diag.entries[0].text, "exceeds 2^61 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(flash_keeps_result_and_log_sum_exp),
        TEST(naive_materialises_scores),
        TEST(flash_computes_whole_blocks),
        TEST(a_hoisted_mask_is_materialised),
        TEST(blocked_holds_one_block_of_scores),
        TEST(scores_are_read_by_each_kernel),
        TEST(the_sequence_is_crossed_in_two_ways),
        TEST(policies_keep_their_residuals),
        TEST(without_remat_the_trace_is_kept),
        TEST(dots_keep_scores_where_they_are_products),
        TEST(a_loop_prunes_residuals),
        TEST(offload_moves_the_stack),
        TEST(nested_scans_keep_two_short_stacks),
        TEST(a_scan_unrolled_whole_loses_its_remat),
        TEST(a_unit_keeps_one_input),
        TEST(without_donation_outputs_are_new),
        TEST(nan_to_num_keeps_a_zero_for_each_shape),
        TEST(accumulation_adds_accumulators),
        TEST(optimizers_keep_their_states),
        TEST(adafactor_factors_its_moments),
        TEST(zero1_splits_the_moments),
        TEST(master_and_average_are_copies),
        TEST(offloaded_states_come_back_for_the_update),
        TEST(clipping_sees_all_gradients),
        TEST(casts_are_hoisted_on_tpu),
        TEST(onehot_lookup_makes_an_index_tensor),
        TEST(chunks_divide_the_logits),
        TEST(gpus_hold_logits_twice),
        TEST(tied_embeddings_are_one_leaf),
        TEST(positions_are_a_table),
        TEST(sizes_beyond_the_range_are_told),
    };
    return cmocka_run_group_tests_name("lower", tests, NULL, NULL);
}
