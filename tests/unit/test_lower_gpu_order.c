/* sim/ir/lower for XLA:GPU: the order of layers side by side, of a pipeline's stage in an iteration
 * that runs again or of an unrolled program, and of a layer's gradients. Ids of lab records without
 * their "lab-". */
#include "tests/unit/lowered.h"

static const char dense[] = "model:\n"
                            "  d_model: 1024\n"
                            "  vocab: 8192\n"
                            "  blocks:\n"
                            "    - name: block\n"
                            "      repeat: 12\n"
                            "      attention: {heads: 16, kv_heads: 8, head_dim: 64,\n"
                            "                  kernel: blocked}\n"
                            "      mlp: {d_ff: 4096}\n"
                            "batch: {global: 16, seq: 4096}\n"
                            "mesh: {data: 1}\n";

#define DENSE(...) lower_text(dense, (const char *const[]){__VA_ARGS__, NULL})
#define STAGES(...)                                                                                \
    lower_text(GPU_STAGES, (const char *const[]){"model.blocks[0].repeat=12",                      \
                                                 "model.blocks[0].attention.kernel=blocked",       \
                                                 __VA_ARGS__, NULL})

/* Buffers of that name, their bytes, and how many of them the n-th op with the text meets. */
static int count_at(const struct low *l, const char *name, const char *op, int n, int64_t bytes)
{
    int met = 0;
    uint32_t at = 0;
    for (; at < l->p.op_count && (!strstr(l->p.ops[at].name, op) || n-- > 0); at++)
        ;
    for (uint32_t i = 0; i < l->p.buf_count; i++) {
        uint32_t first;
        uint32_t last;
        if (l->p.bufs[i].alias_of != HB_NONE || !strstr(l->p.bufs[i].name, name))
            continue;
        life(l, i, &first, &last);
        met += first <= at && at <= last && (!bytes || l->p.bufs[i].plain_bytes == bytes);
    }
    return met;
}

/* pr85/ep2pp4/good: bf16[1,1,8,4096,2048] of all layers from the first one's experts on. */
static void slices_of_a_stack_come_together(void **state)
{
    (void)state;
    struct low l = STAGES(ROCM);
    const char *cast = "e_down, cast for one layer", *back = "backward of attention by";
    assert_int_equal(count_at(&l, cast, back, 0, 0), 2);
    assert_int_equal(count_at(&l, cast, back, 1, 0), 1);
    assert_int_equal(count_at(&l, cast, back, 2, 0), 0);
    struct low saved = STAGES(ROCM, "pipeline.iteration_save=[iter_in, layer_in]");
    assert_int_equal(count_at(&saved, cast, back, 0, 0), 2);
    assert_int_equal(count_at(&saved, cast, "gradient of the iteration's output", 0, 0), 0);
}

/* pr85/pp8/good on ROCm: f32[1,4,4096,4096] of an input, one of the gradient handed on. On CUDA
 * they are bf16. */
static void residuals_are_handed_on_in_f32(void **state)
{
    (void)state;
    int64_t wide = INT64_C(4) * 8 * 2048 * 1024;
    struct low rocm = STAGES(ROCM), cuda = STAGES(CUDA);
    const char *in = "layer input, saved", *back = "backward of attention by", *handed = "in f32";
    assert_int_equal(count_at(&rocm, in, back, 0, wide), 3);
    assert_int_equal(count_at(&rocm, in, back, 0, 0), 3);
    assert_int_equal(count_at(&cuda, in, back, 0, wide / 2), 3);
    assert_int_equal(count_at(&rocm, handed, back, 0, wide), 1);
    assert_int_equal(count_at(&cuda, handed, back, 0, 0), 0);
}

/* cuda-8B,f64,b4,v32k without clip; bwd/base on one device. */
static void gate_and_up_wait_for_the_last_gradient(void **state)
{
    (void)state;
    struct low sharded = DENSE(CUDA, "mesh.fsdp=16"), alone = DENSE(CUDA, "batch.global=1");
    int64_t hidden = INT64_C(2) * 4096 * 4096;
    const char *down = "backward of mlp activation";
    assert_int_equal(count_at(&sharded, "mlp ", down, 0, hidden),
                     count_at(&alone, "mlp ", down, 0, hidden) + 1);
}

/* rocm-8B,f16,b4,v32k with one sequence a device, of 32 heads (256 MiB) and of 16. */
static void turns_are_fused_in_between(void **state)
{
    (void)state;
    const char *back = "backward of attention by", *scratch = "by query blocks, scratch";
    int64_t block = INT64_C(512) * 4096;
    struct low fused = DENSE(ROCM, "mesh.fsdp=16", "model.blocks[0].attention.heads=32");
    assert_int_equal(count_at(&fused, scratch, back, 0, 4 * 32 * block), 3);
    assert_int_equal(count_at(&fused, scratch, back, 0, 2 * 32 * block), 1);
    struct low small = DENSE(ROCM, "mesh.fsdp=16");
    assert_int_equal(count_at(&small, scratch, back, 0, 4 * 16 * block), 3);
    assert_int_equal(count_at(&small, scratch, back, 0, 2 * 16 * block), 0);
}

/* cuda-1B,f8 with layers=loop,remat=none: whole weights and activations of all layers at the loss,
 * one copy of the kernel's result each. */
static void layers_that_keep_all_gather_once(void **state)
{
    (void)state;
    static const char flash[] = "model.blocks[0].attention.kernel=flash";
    struct low none = DENSE(CUDA, flash, "mesh.fsdp=8", "stack.form=loop", "remat.policy=none");
    struct low full = DENSE(CUDA, flash, "mesh.fsdp=8", "stack.form=loop");
    const char *loss = "softmax cross-entropy";
    assert_int_equal(count_at(&none, "w_gate, gathered", loss, 0, 0), 12);
    assert_int_equal(count_at(&none, "wq, gathered", loss, 0, 0), 12);
    assert_int_equal(count_at(&none, "mlp activation, saved", loss, 0, 0), 12);
    assert_int_equal(count_at(&none, "attention result", loss, 0, 0), 12);
    assert_int_equal(count_at(&full, "w_gate, gathered", loss, 0, 0), 0);
}

/* A norm's result is gathered in f32 (70B,f64t4,lin,spres). */
static void a_norm_is_gathered_as_the_axes_say(void **state)
{
    (void)state;
    static const char split[] = "sharding.residual_over_tensor=true";
    struct low both = DENSE(ROCM, split, "mesh.tensor=4", "mesh.fsdp=2");
    assert_int_equal(bytes_of(&both, "norm2, gathered"), INT64_C(4) * 8 * 4096 * 1024);
}

/* joined-granite3b-f4e8: no rows are exchanged; tokens and the places of their choices come to a
 * device of the expert axis, and both masks and the inputs' weight gradients wait beside the
 * gradient of the combine weights. */
static void tokens_join_their_experts(void **state)
{
    (void)state;
    static const char *const sets[] = {"mesh.fsdp=8", "mesh.expert=2", "mesh.pipeline=1",
                                       "stack.form=scan", "batch.global=64"};
    struct low l = STAGES(CUDA, sets[0], sets[1], sets[2], sets[3], sets[4]);
    struct low one = STAGES(CUDA, sets[0], sets[2], sets[3], sets[4]);
    const char *places = "places of the choices, gathered", *made = "combine weights, gradient of";
    assert_int_equal(find(&l, "expert inputs, exchanged"), HB_NONE);
    assert_int_equal(find(&one, places), HB_NONE);
    assert_int_equal(count_at(&l, places, made, 0, 0), 1);
    assert_int_equal(count_at(&l, "moe output, gradient", made, 0, INT64_C(2) * 8 * 2048 * 1024),
                     1);
    assert_int_equal(count_at(&l, "expert output, gradient", made, 0, 0), 1);
    assert_int_equal(count_at(&l, "expert output, gradient", "backward of attention by", 0, 0), 1);
}

/* MI300X, blocked attention, what policy dots keeps of the blocks: f32[4,8,1,8,4096,512,2] and
 * turned for the backward loop, of an outer block of nested scans too; with one head of keys and
 * one sequence once; over a sequence axis the blocks of all its tokens. */
static void kept_blocks_are_turned(void **state)
{
    (void)state;
    static const char blocked[] = "model.blocks[0].attention.kernel=blocked";
    static const char dots[] = "remat.policy=dots",
                      turned[] = "all blocks, saved for backward, tran";
    static const char kept[] = "scores of all blocks, saved for backward";
    struct low scan = DENSE(ROCM, blocked, dots, "mesh.fsdp=8");
    struct low single =
        DENSE(ROCM, blocked, dots, "mesh.fsdp=16", "model.blocks[0].attention.kv_heads=1");
    struct low nested =
        DENSE(ROCM, blocked, dots, "mesh.fsdp=8", "stack.form=nested", "stack.outer=2");
    struct low split = DENSE(ROCM, blocked, dots, "mesh.fsdp=4", "mesh.sequence=2");
    assert_int_not_equal(find(&scan, turned), HB_NONE);
    assert_int_equal(find(&single, turned), HB_NONE);
    assert_int_not_equal(find(&nested, turned), HB_NONE);
    assert_int_equal(bytes_of(&split, kept), 2 * bytes_of(&scan, kept));
}

/* Above its limit XLA makes zeros again just before the layers' backward pass (qwen32b, fsdp 8, 32k
 * tokens: no f32[29,640,17408] beside two f32[32768,151936]). */
static void zeros_move_above_the_limit(void **state)
{
    (void)state;
    struct low roomy = DENSE(CUDA, "mesh.fsdp=8", "batch.global=64", "hardware.hbm=80GiB");
    struct low tight = DENSE(CUDA, "mesh.fsdp=8", "batch.global=64", "hardware.hbm=2GiB");
    assert_true(lives_at(&roomy, "w_up, gradient", "softmax cross-entropy"));
    assert_false(lives_at(&tight, "w_up, gradient", "softmax cross-entropy"));
    assert_true(lives_at(&tight, "w_up, gradient", "backward of mlp"));
}

/* Pairs of 32 sequences over fsdp 8, with constraints and without (whole-cuda.jsonl). */
static void without_constraints_the_batch_is_whole(void **state)
{
    (void)state;
    const char *none = "sharding.activation_constraints=false", *mesh = "mesh.fsdp=8";
    const char *flash = "model.blocks[0].attention.kernel=flash", *dots = "remat.policy=dots";
    struct low split = DENSE(CUDA, mesh, flash), whole = DENSE(CUDA, mesh, flash, none);
    struct low held = DENSE(CUDA, mesh, flash, dots), kept = DENSE(CUDA, mesh, flash, none, dots);
    const char *product = "mlp up", *all = "logits of all sequences", *stack = "layer input, saved";
    const char *mix = "backward of mlp activation", *act = "mlp activation";
    assert_int_equal(bytes_of(&whole, product), 8 * bytes_of(&split, product));
    assert_int_equal(bytes_of(&whole, stack), bytes_of(&split, stack));
    assert_int_equal(find(&whole, "w_up, gathered"), HB_NONE);
    assert_int_equal(bytes_of(&whole, all), 8 * bytes_of(&split, "logits"));
    assert_int_equal(find(&split, all), HB_NONE);
    assert_int_equal(count_at(&whole, act, mix, 0, 0), count_at(&split, act, mix, 0, 0) + 1);
    assert_int_equal(count_at(&whole, product, mix, 0, 0), 2);
    const char *gate = "mlp gate";
    assert_int_equal(count_at(&held, gate, mix, 0, 0), count_at(&kept, gate, mix, 0, 0));
}

/* How many ops read or write a buffer of that name. */
static int count_touched(const struct low *l, const char *name)
{
    int ops = 0;
    for (uint32_t i = 0; i < l->p.op_count; i++) {
        const struct hb_op *op = &l->p.ops[i];
        bool touches = false;
        for (uint32_t k = 0; k < op->read_count + op->write_count; k++)
            touches = touches || strstr(l->p.bufs[l->p.refs[op->refs_at + k]].name, name);
        ops += touches;
    }
    return ops;
}

/* In a loop the zeros that gradients begin with are those that nan is replaced by; a layer alone
 * has none (found by fuzz_simulate: its update read what nothing had written). */
static void a_layer_alone_makes_no_zeros(void **state)
{
    (void)state;
    const char *one = "model.blocks[0].repeat=1", *nan = "step.nan_to_num=true";
    struct low alone = DENSE(ROCM, nan, one), looped = DENSE(ROCM, nan);
    struct low clipped = DENSE(ROCM, nan, one, "optimizer.clip=true");
    const char *zeros = "zeros for nan_to_num";
    assert_int_equal(count_touched(&alone, zeros), 0);
    assert_int_equal(count_touched(&clipped, zeros), 0);
    assert_true(count_touched(&looped, zeros) > 1);
}

/* olmo2-32b, data 4 and fsdp 4: at the loss two bf16[64,1280,27648] and a turned third, none of
 * bf16[64,1280,1024], which latency hiding has behind it. */
static void zeros_come_each_at_its_own_place(void **state)
{
    (void)state;
    struct low l =
        DENSE("hardware.device=nvidia-h100", "compiler=xla-gpu", "mesh.data=4", "mesh.fsdp=4",
              "model.d_model=5120", "model.vocab=100278", "model.blocks[0].repeat=64",
              "model.blocks[0].mlp.d_ff=27648", "model.blocks[0].attention.heads=40",
              "model.blocks[0].attention.head_dim=128", "model.blocks[0].attention.kernel=flash",
              "batch.global=32", "precision.params=bf16", "optimizer.name=adafactor",
              "optimizer.clip=false");
    const char *const early[] = {"w_gate, gradient", "w_up, gradient", "w_down, gradient"};
    for (int i = 0; i < 3; i++)
        assert_int_equal(count_at(&l, early[i], "softmax cross-entropy", 0, 0), 1);
    assert_int_equal(count_at(&l, "wk, gradient", "softmax cross-entropy", 0, 0), 0);
    assert_int_equal(count_at(&l, "wk, gradient", "gradient through block.w_down", 0, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(zeros_come_each_at_its_own_place),
        TEST(zeros_move_above_the_limit),
        TEST(kept_blocks_are_turned),
        TEST(slices_of_a_stack_come_together),
        TEST(residuals_are_handed_on_in_f32),
        TEST(gate_and_up_wait_for_the_last_gradient),
        TEST(turns_are_fused_in_between),
        TEST(layers_that_keep_all_gather_once),
        TEST(tokens_join_their_experts),
        TEST(a_norm_is_gathered_as_the_axes_say),
        TEST(without_constraints_the_batch_is_whole),
        TEST(a_layer_alone_makes_no_zeros),
    };
    return cmocka_run_group_tests_name("lower_gpu_order", tests, NULL, NULL);
}
