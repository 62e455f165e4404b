/* sim/ir/lower: experts, axes of the mesh and pipelines in the program of buffers; the model and
 * how a test is named are test_lower.c's. */
#include "tests/unit/lowered.h"

#include <math.h>

enum { D = 1024, FF = 2816, LAYERS = 4, VOCAB = 32000, BATCH = 8, TOKENS = BATCH * 2048 };

#define LOWER(...)     lower_text(FOUR_LAYERS(DENSE_MLP), (const char *const[]){__VA_ARGS__, NULL})
#define LOWER_MOE(...) lower_text(FOUR_LAYERS(MOE_EINSUM), (const char *const[]){__VA_ARGS__, NULL})

/* --- experts --- */

static int64_t capacity_of(const struct low *l)
{
    const struct hb_buf *b = buf_of(l, "moe dispatch mask");
    return b->dim[b->rank - 1];
}

/* tpu-moeT--base against --capacity=1.0: rows of an expert, rounded up to a multiple of 4. */
static void experts_have_a_capacity(void **state)
{
    (void)state;
    struct low l = LOWER_MOE(TPU);
    assert_int_equal(capacity_of(&l), 640); /* 2048 x 2 / 8 x 1.25 */
    struct low even = LOWER_MOE(TPU, "model.blocks[0].moe.capacity_factor=1");
    assert_int_equal(capacity_of(&even), 512);
    struct low odd = LOWER_MOE(TPU, "model.blocks[0].moe.capacity_factor=1.001");
    assert_int_equal(capacity_of(&odd), 516); /* 512.512 -> 513 -> 516 */
    assert_int_equal(bytes_of(&l, "expert up"), INT64_C(2) * BATCH * 8 * 640 * 1408);
}

/* rocm-moeT--mlp=moe_ragged,moe_sum=f32: top_k rows a token, no masks; CUDA spreads them over all
 * experts (cuda--pr85--pp8--good,ragged,f32sum). */
static void ragged_experts_have_rows(void **state)
{
    (void)state;
    static const char ragged[] = "model.blocks[0].moe.dispatch=ragged";
    struct low l = LOWER_MOE(ROCM, ragged), cuda = LOWER_MOE(CUDA, ragged);
    assert_int_equal(bytes_of(&l, "tokens sorted by expert"), INT64_C(2) * 2 * TOKENS * D);
    assert_int_equal(bytes_of(&l, "expert up"), INT64_C(2) * 2 * TOKENS * 1408);
    assert_int_equal(find(&l, "moe dispatch mask"), HB_NONE);
    assert_int_equal(find(&l, "expert up, gradient by expert"), HB_NONE);
    assert_int_equal(bytes_of(&cuda, "expert up, gradient by expert"),
                     INT64_C(8) * 2 * 2 * TOKENS * 1408);
}

/* mix--moe--dslite: shared experts are an MLP beside; an expert axis splits experts, and tokens
 * cross it. */
static void experts_are_shared_or_split(void **state)
{
    (void)state;
    struct low none = LOWER_MOE(TPU);
    struct low shared = LOWER_MOE(TPU, "model.blocks[0].moe.shared_experts=2");
    assert_int_equal(params(&shared) - params(&none), INT64_C(3) * LAYERS * D * 2 * 1408);
    struct low split = LOWER_MOE(TPU, "mesh.expert=4");
    assert_int_equal(4 * bytes_of(&split, "block.e_up"), bytes_of(&none, "block.e_up"));
    assert_true(count_kind(&split, HB_OP_ALL_TO_ALL, HB_AX_EXPERT) >= 4);
    assert_int_equal(count_kind(&none, HB_OP_ALL_TO_ALL, HB_AX_EXPERT), 0);
}

/* --- mesh and pipeline --- */

static double flops_of(const struct low *l)
{
    double flops = 0;
    for (uint32_t i = 0; i < l->p.op_count; i++)
        flops += l->p.ops[i].kind == HB_OP_MATMUL ? l->p.ops[i].flops : 0;
    return flops;
}

/* tpu-8B64--fsdp=16,tp=4,sp_residual=True: the residual's sequence is split, and gathered where a
 * branch begins. The products that are scattered into it are no less work for it, and as much goes
 * over the wire as is gathered. */
static void the_residual_is_split_over_tensor(void **state)
{
    (void)state;
    struct low off = LOWER(TPU, "mesh.tensor=4");
    struct low on = LOWER(TPU, "mesh.tensor=4", "sharding.residual_over_tensor=true");
    assert_int_equal(4 * saved(&on, HB_SPACE_HBM), saved(&off, HB_SPACE_HBM));
    assert_int_equal(count_kind(&off, HB_OP_ALL_GATHER, HB_AX_TENSOR), 0);
    assert_true(count_kind(&on, HB_OP_ALL_GATHER, HB_AX_TENSOR) >= 2);
    assert_true(fabs(flops_of(&on) / flops_of(&off) - 1) < 1e-3);
    assert_int_equal(on.p.ops[find_op(&on, "sum over tensor")].sent_bytes,
                     on.p.ops[find_op(&on, "norm1, gathered")].sent_bytes);
    assert_int_equal(4 * bytes_of(&off, "block.w_up"), INT64_C(4) * LAYERS * D * FF);
}

#define PIPE "mesh.pipeline=2", "pipeline.microbatches=4"

/* tpu-PP--base, tpu-PP--pp=2: M + stages - 1 iterations, each with its input, output and what its
 * layers keep; circular: M x repeats + stages - 1. */
static void pipelines_stack_their_iterations(void **state)
{
    (void)state;
    struct low l = LOWER(TPU, PIPE);
    int64_t state_bytes = INT64_C(2) * TOKENS / 4 * D;
    assert_int_equal(trips_of(&l, "pipeline iterations"), 5);
    assert_int_equal(trips_of(&l, "layers of a stage"), LAYERS / 2);
    assert_int_equal(bytes_of(&l, "inputs of the iterations"), 5 * state_bytes);
    assert_int_equal(bytes_of(&l, "outputs of the iterations"), 5 * state_bytes);
    assert_int_equal(bytes_of(&l, "layer input, saved"), 5 * (LAYERS / 2) * state_bytes);
    struct low circular = LOWER(TPU, PIPE, "pipeline.repeats=2");
    assert_int_equal(trips_of(&circular, "pipeline iterations"), 9);
    assert_true(count_kind(&circular, HB_OP_PERMUTE, HB_AX_PIPELINE) > 0);
}

/* tpu-PPc--base against --pipe_iter_remat=True and --pipe_layer_remat=False. */
static void iterations_are_rematerialised(void **state)
{
    (void)state;
    struct low l = LOWER(TPU, PIPE, "pipeline.remat_iteration=true", "pipeline.iteration_save=[]");
    int64_t state_bytes = INT64_C(2) * TOKENS / 4 * D;
    assert_int_equal(bytes_of(&l, "inputs of the iterations, saved"), 5 * state_bytes);
    struct low more = LOWER(TPU, PIPE, "pipeline.remat_iteration=true");
    assert_true(saved(&more, HB_SPACE_HBM) > saved(&l, HB_SPACE_HBM));
    struct low all = LOWER(TPU, PIPE, "pipeline.remat_layer=false");
    struct low none = LOWER(TPU, PIPE);
    assert_true(saved(&all, HB_SPACE_HBM) > 8 * saved(&none, HB_SPACE_HBM));
}

/* PPc/pipe_layer_remat=False: an iteration's part of each stack is taken out before the loop over
 * its layers; a rematerialised iteration has its own. */
static void an_iteration_is_taken_out(void **state)
{
    (void)state;
    struct low l = LOWER(TPU, PIPE), again = LOWER(TPU, PIPE, "pipeline.remat_iteration=true");
    struct low gpu = LOWER(CUDA, PIPE);
    static const char part[] = "layer input, saved for backward, of an iteration";
    assert_int_equal(5 * bytes_of(&l, part), bytes_of(&l, "layer input, saved for backward"));
    assert_int_equal(5 * bytes_of(&gpu, part), bytes_of(&gpu, "layer input, saved for backward"));
    assert_true(lives_at(&l, part, "backward of flash attention"));
    assert_int_equal(find(&again, part), HB_NONE);
}

/* pr85/pp8/pipe_out=buf (- 0.94 GB): outputs of the microbatches alone. */
static void a_buffer_of_outputs_is_shorter(void **state)
{
    (void)state;
    struct low l = LOWER(TPU, PIPE, "pipeline.outputs=buffer");
    assert_int_equal(bytes_of(&l, "outputs of the iterations"), 4 * (INT64_C(2) * TOKENS / 4 * D));
}

/* maxtext's pipeline_fsdp_ag_once: weights are gathered before the iterations and not inside. */
static void weights_are_gathered_once_for_a_pipeline(void **state)
{
    (void)state;
    static const char fsdp[] = "mesh.fsdp=4", gather[] = "pipeline.gather=once";
    struct low l =
        LOWER(TPU, "mesh.pipeline=2", fsdp, "batch.global=16", "pipeline.microbatches=4", gather);
    uint32_t loop = 0;
    while (!strstr(l.p.loops[loop].name, "pipeline iterations"))
        loop++;
    int before = 0;
    for (uint32_t i = 0; i < l.p.loops[loop].first_op; i++)
        before += l.p.ops[i].kind == HB_OP_ALL_GATHER;
    assert_true(before >= 7);
    for (uint32_t i = l.p.loops[loop].first_op; i < l.p.loops[loop].end_op; i++)
        assert_false(l.p.ops[i].kind == HB_OP_ALL_GATHER && l.p.ops[i].axis == HB_AX_FSDP);
    struct low each =
        LOWER(TPU, "mesh.pipeline=2", fsdp, "batch.global=16", "pipeline.microbatches=4");
    assert_true(l.m.live_temp_bytes > each.m.live_temp_bytes);
}

/* tpu-1B--fsdp=2,tp=4 and the like: each axis splits what the schema says it splits. */
static void axes_split_parameters_and_batch(void **state)
{
    (void)state;
    struct low one = LOWER(TPU);
    struct low fsdp = LOWER(TPU, "mesh.fsdp=8"), data = LOWER(TPU, "mesh.data=8");
    struct low tensor = LOWER(TPU, "mesh.tensor=8"), pipe = LOWER(TPU, PIPE);
    int64_t norms = (2 * LAYERS + 1) * D, matrices = params(&one) - norms;
    assert_int_equal(params(&fsdp), norms + matrices / 8);
    assert_int_equal(params(&tensor), norms + matrices / 8);
    assert_int_equal(params(&data), params(&one));
    assert_int_equal(params(&pipe),
                     D + 2 * (int64_t)VOCAB * D + (params(&one) - D - 2 * (int64_t)VOCAB * D) / 2);
    assert_int_equal(8 * bytes_of(&fsdp, "tokens"), bytes_of(&one, "tokens"));
    assert_int_equal(8 * bytes_of(&data, "tokens"), bytes_of(&one, "tokens"));
    assert_int_equal(bytes_of(&tensor, "tokens"), bytes_of(&one, "tokens"));
}

/* cuda-rnd--031, and these two compiled: gemm_fusion_dot.67 comes before while.37. */
static void a_head_over_tensor_hides_its_sum(void **state)
{
    (void)state;
    struct low alone = LOWER(CUDA, "mesh.tensor=4"),
               mixed = LOWER(CUDA, "mesh.tensor=4", "mesh.fsdp=2");
    struct low split = LOWER(CUDA, "mesh.tensor=4", "sharding.residual_over_tensor=true",
                             "optimizer.clip=true"); /* compiled: gemm_fusion_dot.67 behind it */
    static const char wait[] = "gradient of the logits";
    assert_false(lives_at(&alone, wait, "backward of flash attention"));
    assert_false(lives_at(&mixed, wait, "backward of flash attention"));
    assert_true(lives_at(&split, wait, "backward of flash attention"));
}

/* Compiled, H100: 32,768 rows of 4,096 tokens each over fsdp 4 and tensor 2 are scattered into all
 * of 32,768 words, into their own of 36,864; over 2 and 4 into two of four parts of 20,480. */
static void rows_are_scattered_into_more_words(void **state)
{
    (void)state;
    static const char *const mesh[] = {"mesh.fsdp=4", "mesh.tensor=2", "batch.seq=4096"};
    static const char zeros[] = "embedding, zeros";
    struct low all = LOWER(CUDA, mesh[0], mesh[1], mesh[2], "model.vocab=32768");
    struct low own = LOWER(CUDA, mesh[0], mesh[1], mesh[2], "model.vocab=36864");
    struct low two = LOWER(CUDA, "mesh.fsdp=2", "mesh.tensor=4", mesh[2], "model.vocab=20480");
    assert_int_equal(bytes_of(&all, zeros), INT64_C(2) * 32768 * 1024 / 4);
    assert_int_equal(bytes_of(&own, zeros), INT64_C(2) * 36864 / 2 * 1024 / 4);
    assert_int_equal(bytes_of(&two, zeros), INT64_C(2) * 20480 / 2 * 1024 / 2);
}

/* Compiled, H100: the loop that adds up the loss in chunks follows the layers' backward loop,
 * beside which the head stays (1B over tensor 8: while.108 behind while.107). */
static void a_loss_in_chunks_keeps_the_head(void **state)
{
    (void)state;
    struct low l = LOWER(CUDA, "mesh.tensor=8", "loss.chunks=4");
    assert_true(lives_at(&l, "head, cast", "backward of flash attention"));
    assert_true(lives_at(&l, "last norm's result", "backward of flash attention"));
}

/* Zeros stand beside the loss where gradients outweigh its logits, and of what waits for nothing.
 */
static void zeros_come_before_small_logits(void **state)
{
    (void)state;
    static const char *const mesh[] = {"mesh.tensor=2", "mesh.fsdp=2", "model.vocab=524288",
                                       "batch.seq=64"};
    static const char small[] = "model.vocab=2048";
    struct low own = LOWER(ROCM, mesh[0], mesh[1], mesh[2], mesh[3]);
    assert_true(lives_at(&own, "gradient of the logits", "backward of flash attention"));
    struct low few = LOWER(ROCM, mesh[0], mesh[1], mesh[3], small);
    assert_true(lives_at(&few, "w_up, gradient", "softmax cross-entropy"));
    struct low seq = LOWER(ROCM, "mesh.sequence=2", mesh[1], mesh[3], small); /* 1B,v6e,sp2f4 */
    assert_false(lives_at(&seq, "w_up, gradient", "softmax cross-entropy"));
    struct low hot = LOWER(ROCM, mesh[1], "loss.onehot=true"); /* 1B/base with ce=onehot */
    assert_true(lives_at(&hot, "w_up, gradient", "softmax cross-entropy"));
    struct low far = LOWER_MOE(ROCM, "mesh.fsdp=32", "mesh.expert=2", "batch.global=256");
    assert_true(lives_at(&far, "embedding, zeros", "logits")); /* moe160,f32e8 */
}

/* Two microbatches of phi-4, v5p, over fsdp 4 and tensor 2: no gradient of the logits in the
 * layers' backward pass, nor the head's whole one (made at 137 of 282, added at 199, the layers
 * from 173); where they fetch from the host the logits' waits (16 and 2 with q, k and v), and alone
 * over eight.
 */
static void a_microbatch_has_no_logits_behind(void **state)
{
    (void)state;
    const char *gradient = "logits", *micro = "batch.accumulate=2"; /* in their place */
    const char *back = "gradient through block.w_down", *v5p = "hardware.device=tpu-v5p";
    struct low four = LOWER(v5p, "mesh.fsdp=4", "mesh.tensor=2", micro);
    assert_false(lives_at(&four, gradient, back));
    assert_false(lives_at(&four, "head, gradient before its sum", back));
    assert_false(lives_at(&four, "head, gradient summed", back));
    struct low host = LOWER(v5p, "mesh.fsdp=4", "mesh.tensor=2", micro, "remat.policy=names",
                            "remat.offload=[q]");
    struct low alone = LOWER(v5p, "mesh.tensor=8", micro);
    assert_true(lives_at(&host, gradient, back) && lives_at(&alone, gradient, back));
}

/* Late gathers, v6e: an update takes the head's sum before the layers' backward pass where no norm
 * is due (phi-3.5 over 64, four sequences of 4096). */
static void a_head_is_updated_at_once(void **state)
{
    (void)state;
    const char *sets[] = {"hardware.device=tpu-v6e", "mesh.fsdp=64", "batch.global=128"};
    const char *sum = "head, gradient summed", *back = "gradient through block.w_down";
    struct low plain = LOWER(sets[0], sets[1], sets[2]);
    struct low clip = LOWER(sets[0], sets[1], sets[2], "optimizer.clip=true");
    assert_false(lives_at(&plain, sum, back));
    assert_true(lives_at(&clip, sum, back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(experts_have_a_capacity),
        TEST(ragged_experts_have_rows),
        TEST(experts_are_shared_or_split),
        TEST(the_residual_is_split_over_tensor),
        TEST(pipelines_stack_their_iterations),
        TEST(iterations_are_rematerialised),
        TEST(an_iteration_is_taken_out),
        TEST(a_buffer_of_outputs_is_shorter),
        TEST(weights_are_gathered_once_for_a_pipeline),
        TEST(axes_split_parameters_and_batch),
        TEST(a_head_over_tensor_hides_its_sum),
        TEST(rows_are_scattered_into_more_words),
        TEST(a_loss_in_chunks_keeps_the_head),
        TEST(zeros_come_before_small_logits),
        TEST(a_microbatch_has_no_logits_behind),
        TEST(a_head_is_updated_at_once),
    };
    return cmocka_run_group_tests_name("lower_mesh", tests, NULL, NULL);
}
