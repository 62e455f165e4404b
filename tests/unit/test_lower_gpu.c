/* sim/ir/lower for XLA:GPU: habits of the two GPU compilers, each by the measured pair that shows
 * it (ids of lab records without their "lab-"). A buffer's life is read off the positions of the
 * ops that write and read it. */
#include "tests/unit/lowered.h"

static const char dense[] = FOUR_LAYERS(DENSE_MLP);
static const char stages[] = GPU_STAGES;

#define DENSE(...)  lower_text(dense, (const char *const[]){__VA_ARGS__, NULL})
#define STAGES(...) lower_text(stages, (const char *const[]){__VA_ARGS__, NULL})

static int count(const struct low *l, const char *text)
{
    int n = 0;
    for (uint32_t i = 0; i < l->p.buf_count; i++)
        n += l->p.bufs[i].alias_of == HB_NONE && strstr(l->p.bufs[i].name, text);
    return n;
}

/* Buffers of that name alive at the op. */
static int count_at(const struct low *l, const char *buffer, const char *op)
{
    int n = 0;
    uint32_t at = find_op(l, op);
    for (uint32_t i = 0; i < l->p.buf_count; i++) {
        uint32_t first;
        uint32_t last;
        if (l->p.bufs[i].alias_of != HB_NONE || !strstr(l->p.bufs[i].name, buffer))
            continue;
        life(l, i, &first, &last);
        n += first <= at && at <= last;
    }
    return n;
}

/* Whether the op of just that name comes after the first with the other text in its name. */
static bool is_made_after(const struct low *l, const char *name, const char *text)
{
    for (uint32_t i = find_op(l, text); i < l->p.op_count; i++)
        if (strcmp(l->p.ops[i].name, name) == 0)
            return true;
    return false;
}

/* cuda-opt--base against cuda-tinyS--base: zeros first where the loss is not the peak;
 * cuda-1B--base against rocm-1B--base: before the loss with fsdp; cuda-PP--base: late. */
static void zeros_come_where_they_cost_nothing(void **state)
{
    (void)state;
    struct low few = DENSE(CUDA, "batch.global=1", "batch.seq=512"), many = DENSE(CUDA);
    assert_true(lives_at(&few, "w_up, gradient", "look up embedding"));
    assert_true(lives_at(&few, "embedding, zeros", "softmax cross-entropy"));
    assert_false(lives_at(&many, "w_up, gradient", "softmax cross-entropy"));
    struct low cuda = DENSE(CUDA, "mesh.fsdp=8", "batch.global=64");
    struct low rocm = DENSE(ROCM, "mesh.fsdp=8", "batch.global=64");
    assert_true(lives_at(&cuda, "w_up, gradient", "softmax cross-entropy"));
    assert_false(lives_at(&rocm, "w_up, gradient", "softmax cross-entropy"));
}

/* cuda-8B--base against cuda-1B--base: the head's second gather hides behind the pass over the
 * logits where there are more tokens than features; rocm-1B--base: before them. */
static void the_head_is_gathered_early_or_in_time(void **state)
{
    (void)state;
    struct low many = DENSE(CUDA, "mesh.fsdp=8", "batch.global=64");
    struct low rocm = DENSE(ROCM, "mesh.fsdp=8", "batch.global=64");
    assert_int_equal(count(&many, "head, gathered"), 2);
    assert_int_equal(count_at(&many, "head, gathered", "logits"), 1);
    assert_true(lives_at(&rocm, "head, gathered", "logits"));
    struct low micro = DENSE(CUDA, "mesh.fsdp=16", "batch.global=32", "batch.accumulate=2");
    assert_int_equal(count_at(&micro, "head, gathered", "logits"), 1);
}

/* rocm-tinyS--logits_dot=bf16, 8B,f64,b4,onehot. */
static void narrow_logits_stay_narrow(void **state)
{
    (void)state;
    struct low gather = DENSE(ROCM, "loss.dot=bf16");
    struct low onehot = DENSE(ROCM, "loss.dot=bf16", "loss.onehot=true");
    int64_t logits = INT64_C(8) * 2048 * 32000;
    assert_int_equal(bytes_of(&gather, "logits"), 2 * logits);
    assert_int_equal(bytes_of(&gather, "gradient of the logits"), 4 * logits);
    assert_int_equal(find(&onehot, "gradient of the logits"), HB_NONE);
}

/* llama3.2-3b, names:attn_out over eight H100: q is made again before the MLP runs backwards (its
 * gate's 56th instruction of the loop), the kernel behind it (74th). */
static void a_kernel_runs_again_before_its_backward(void **state)
{
    (void)state;
    struct low gpu = DENSE(CUDA, "remat.policy=names", "remat.save=[attn_out]");
    uint32_t mlp = find_op(&gpu, "gradient through block.w_down"), q = HB_NONE;
    for (uint32_t i = 0; i < mlp; i++)
        q = strncmp(gpu.p.ops[i].name, "q", 1) == 0 ? i : q;
    assert_int_not_equal(q, HB_NONE);
    assert_true(gpu.p.ops[q].phase == HB_PHASE_BACKWARD);
    assert_true(find_last_op(&gpu, "flash attention") > mlp);
}

/* 8B,v6e8x8,f64,b128 on CUDA: one stack of contexts; two on TPU, whose kernel names its own. */
static void the_kernel_has_no_name_for_its_result(void **state)
{
    (void)state;
    static const char *const names[] = {"remat.policy=names", "remat.save=[attn_ctx]"};
    struct low gpu = DENSE(CUDA, names[0], names[1]), tpu = DENSE(TPU, names[0], names[1]);
    assert_int_equal(find(&gpu, "result of the kernel, saved"), HB_NONE);
    assert_int_not_equal(find(&tpu, "result of the kernel, saved"), HB_NONE);
}

/* cuda-tiny--unroll=2: two layers are made again before the first of them runs backwards. */
static void layers_of_a_trip_are_made_again_together(void **state)
{
    (void)state;
    struct low one = DENSE(CUDA), two = DENSE(CUDA, "stack.unroll=2");
    uint32_t ops[2] = {0, 0};
    const struct low *l[2] = {&one, &two};
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < find_op(l[k], "gradient through block.w_down"); i++)
            ops[k] += strstr(l[k]->p.ops[i].name, "flash attention") != NULL;
    assert_int_equal(ops[0], 2);
    assert_int_equal(ops[1], 3);
}

/* cuda-pr85--pp8: stacks of experts are transposed for a stage's einsum, none in moeT/base; bf16 of
 * each layer's experts waits for its backward pass; the mask is made again. */
static void a_stage_keeps_its_weights(void **state)
{
    (void)state;
    struct low l = STAGES(CUDA);
    assert_int_not_equal(find(&l, "e_up, transposed"), HB_NONE);
    assert_int_equal(find(&l, "dispatch mask, saved"), HB_NONE);
    assert_int_not_equal(find(&l, "expert activation, saved"), HB_NONE);
    struct low tpu = STAGES(TPU);
    assert_int_equal(find(&tpu, "e_up, transposed"), HB_NONE);
}

/* 8B,pp4f4,m8,iter: the gradients of all outputs are gathered over fsdp in each iteration; with
 * more devices than microbatches they are padded (70B,pp4f16t4,m8). */
static void gradients_of_outputs_are_gathered(void **state)
{
    (void)state;
    static const char *const many[] = {"mesh.fsdp=4", "batch.global=128"};
    struct low split = STAGES(CUDA, many[0], many[1]), whole = STAGES(CUDA);
    int64_t state_bytes = INT64_C(2) * 2048 * 1024;
    assert_int_equal(bytes_of(&split, "outputs, gathered"), 7 * 32 * state_bytes);
    assert_int_equal(find(&whole, "outputs, gathered"), HB_NONE);
    struct low padded = STAGES(CUDA, "mesh.fsdp=8", "batch.global=256");
    assert_int_equal(bytes_of(&padded, "outputs, gathered"), 8 * 64 * state_bytes);
}

/* cuda-PP--base, cuda-pr85/pp8/good: the loss reads the outputs in their stack, split over the
 * stages or not. The gradients of the inputs are taken out of theirs in both. */
static void outputs_are_read_in_place(void **state)
{
    (void)state;
    struct low whole = STAGES(CUDA), split = STAGES(CUDA, "sharding.ends_over_pipeline=true");
    assert_int_equal(count(&whole, "outputs of the pipeline"), 1);
    assert_int_equal(count(&split, "outputs of the pipeline"), 1);
    assert_true(lives_at(&split, "outputs of the iterations", "softmax cross-entropy"));
    assert_true(lives_at(&whole, "outputs of the iterations", "softmax cross-entropy"));
}

/* cuda-pr85--ep2pp4--good,constraints=none and ,replicate. */
static void constraints_split_the_batch(void **state)
{
    (void)state;
    static const char *const ep[] = {"mesh.expert=2", "batch.global=64"};
    struct low with = STAGES(CUDA, ep[0], ep[1], "pipeline.constraints=state");
    struct low none = STAGES(CUDA, ep[0], ep[1], "pipeline.constraints=none");
    struct low all = STAGES(CUDA, ep[0], ep[1], "pipeline.constraints=replicate");
    int64_t mask = bytes_of(&with, "moe combine weights");
    assert_int_equal(bytes_of(&none, "moe combine weights"), mask);
    assert_int_equal(bytes_of(&all, "moe combine weights"), 2 * mask);
    int64_t stack = bytes_of(&with, "inputs of the iterations, saved");
    assert_int_equal(bytes_of(&none, "inputs of the iterations, saved"), 2 * stack);
    assert_int_equal(bytes_of(&all, "inputs of the iterations, saved"), stack);
}

/* 8B,f16,muon,clip: CUDA gathers the momenta and their transposes of all leaves together while they
 * fit; ROCm one at a time. */
static void momenta_are_gathered_together(void **state)
{
    (void)state;
    static const char *const muon[] = {"mesh.fsdp=8", "batch.global=64", "optimizer.name=muon"};
    struct low cuda = DENSE(CUDA, muon[0], muon[1], muon[2], "hardware.hbm=80GiB");
    struct low full = DENSE(CUDA, muon[0], muon[1], muon[2], "hardware.hbm=1MiB");
    assert_true(count(&cuda, ", muon iterate, gathered") >= 14);
    assert_int_equal(count(&full, ", muon iterate, gathered"), 0);
    struct low rocm = DENSE(ROCM, muon[0], muon[1], muon[2], "hardware.hbm=80GiB");
    assert_int_equal(count(&rocm, ", muon iterate, gathered"), 0);
}

/* cuda-bwd--remat=none: six stacks of the MLP's width, four of the norms in f32, three more of the
 * model's (two norms' results and the context), q, k, v, the kernel's result and its log-sum-exp.
 */
static void no_policy_keeps_what_the_trace_reads(void **state)
{
    (void)state;
    struct low l = DENSE(CUDA, "remat.policy=none");
    int64_t sum = 0;
    for (uint32_t i = 0; i < l.p.buf_count; i++)
        if (l.p.bufs[i].category == HB_CAT_SAVED && !strstr(l.p.bufs[i].name, ", cast"))
            sum += l.p.bufs[i].plain_bytes;
    int64_t token = 12 * 2816 + 4 * 4 * 1024 + 3 * 2 * 1024 + 4 * 2 * 8 * 128 + 4 * 8;
    assert_int_equal(sum, 4 * 8 * 2048 * token);
}

/* rocm-bwd--base against cuda-bwd--base: what came in stays while attention runs backwards. */
static void parts_of_a_sum_stay(void **state)
{
    (void)state;
    static const char at[] = "backward of flash attention";
    struct low rocm = DENSE(ROCM), cuda = DENSE(CUDA);
    assert_int_equal(count_at(&rocm, "block.norm2, gradient", at),
                     count_at(&cuda, "block.norm2, gradient", at) + 1);
    assert_int_equal(count_at(&cuda, "block.after attention", at), 0);
    assert_int_equal(count_at(&rocm, "block.after attention", at), 1);
}

/* tiny--remat=none, tiny with remat=dots. */
static void stacks_of_scores_are_copied(void **state)
{
    (void)state;
    static const char naive[] = "model.blocks[0].attention.kernel=naive";
    struct low none = DENSE(CUDA, naive, "remat.policy=none");
    struct low dots = DENSE(ROCM, naive, "remat.policy=dots");
    struct low tpu = DENSE(TPU, naive, "remat.policy=none");
    assert_int_equal(count(&none, "saved for backward, transposed"), 2);
    assert_int_equal(count(&dots, "saved for backward, transposed"), 1);
    assert_int_equal(count(&tpu, "saved for backward, transposed"), 0);
}

/* Pairs drawn before they were compiled (none over fsdp and tensor, on both): f32 over the wire,
 * kept as the products read it. */
static void gathers_are_kept_narrow(void **state)
{
    (void)state;
    static const char *const chips[][2] = {{CUDA}, {ROCM}};
    for (int i = 0; i < 2; i++) {
        struct low l = DENSE(chips[i][0], chips[i][1], "remat.policy=none", "mesh.tensor=2",
                             "mesh.fsdp=2", "sharding.residual_over_tensor=true");
        static const char stack[] = "norm1, gathered, saved for backward";
        assert_int_equal(count(&l, "gathered, saved for backward, transposed"), 2);
        assert_int_equal(bytes_of(&l, stack), 4 * 4 * INT64_C(2048) * 1024 * 2);
    }
}

/* cuda-bwd--remat=none: bf16[4,1024,2816] through both loops. */
static void no_policy_keeps_cast_weights(void **state)
{
    (void)state;
    struct low none = DENSE(CUDA, "remat.policy=none"), full = DENSE(CUDA);
    assert_int_equal(bytes_of(&none, "w_up, cast, saved"), 2 * 4 * 1024 * 2816);
    assert_int_equal(find(&full, "w_up, cast, saved"), HB_NONE);
}

/* 1B/base with logits_dot=bf16: the cast waits, on one device too, and one gathered head serves. */
static void a_narrow_product_has_narrow_gradients(void **state)
{
    (void)state;
    static const char at[] = "backward of flash attention";
    struct low one = DENSE(CUDA, "loss.dot=bf16"), wide = DENSE(CUDA);
    assert_true(lives_at(&one, "gradient of the logits, cast", at));
    assert_int_equal(find(&wide, "gradient of the logits, cast"), HB_NONE);
    struct low split = DENSE(CUDA, "loss.dot=bf16", "mesh.fsdp=8", "batch.global=64");
    assert_int_equal(count(&split, "head, gathered"), 1);
    assert_int_equal(bytes_of(&split, "head, gradient before its sum"), 2 * 1024 * 32000);
}

/* 8B/layers=nested: f32[1,16,512,14336] beside the stacks; TPU's are cast slices. */
static void an_outer_block_has_its_weights_copied(void **state)
{
    (void)state;
    struct low cuda = DENSE(CUDA, "stack.form=nested"), tpu = DENSE(TPU, "stack.form=nested");
    assert_int_equal(count(&cuda, "w_up, part of an outer block"), 2);
    assert_int_equal(bytes_of(&cuda, "w_up, part of an outer block"), 4 * 2 * 1024 * 2816);
    assert_int_equal(find(&tpu, "part of an outer block"), HB_NONE);
}

/* 8B/base, 1B/base with embed=onehot: predicates for one sequence a device, else indices. */
static void one_hot_rows_of_one_sequence_are_predicates(void **state)
{
    (void)state;
    struct low one = DENSE(CUDA, "embedding.lookup=onehot", "batch.global=1");
    struct low two = DENSE(CUDA, "embedding.lookup=onehot", "batch.global=2");
    assert_int_equal(bytes_of(&one, "index tensor"), 2048 * 32000);
    assert_int_equal(bytes_of(&two, "index tensor"), INT64_C(4) * 2 * 2048 * 32000);
    /* tinyS/embed=onehot with accum=2: pred[4,2048,32000]. */
    struct low loop = DENSE(CUDA, "embedding.lookup=onehot", "batch.accumulate=2");
    assert_int_equal(bytes_of(&loop, "index tensor"), INT64_C(4) * 2048 * 32000);
}

/* cuda-8B/fsdp=1,tp=8,sp_residual=True: norms are gathered in f32, gradients whole for wo, w_down.
 */
static void a_split_residual_is_gathered_wide(void **state)
{
    (void)state;
    static const char *const sp[] = {"mesh.tensor=8", "sharding.residual_over_tensor=true"};
    int64_t whole = INT64_C(8) * 2048 * 1024;
    struct low cuda = DENSE(CUDA, sp[0], sp[1]), tpu = DENSE(TPU, sp[0], sp[1]);
    assert_int_equal(bytes_of(&cuda, "norm1, gathered"), 4 * whole);
    assert_int_equal(bytes_of(&tpu, "norm1, gathered"), 2 * whole);
    assert_int_equal(bytes_of(&cuda, "last norm's result"), 4 * whole);
    assert_int_equal(bytes_of(&cuda, "norm1, gathered, gradient"), 2 * whole);
    assert_int_equal(bytes_of(&cuda, "mlp output, gradient gathered"), 2 * whole);
    assert_int_equal(count(&cuda, "gradient gathered"), 2);
    assert_int_equal(count(&tpu, "gradient gathered"), 2);
}

/* cuda-opt--8B,f16,lion,master: the update takes the master copy, so that the parameter's memory is
 * free from the layers on; opt/base reads it last of all. */
static void a_master_copy_frees_the_parameter(void **state)
{
    (void)state;
    struct low base = DENSE(CUDA), master = DENSE(CUDA, "precision.master=f32");
    bool lent[2] = {false, false};
    for (uint32_t i = 0; i < base.p.buf_count; i++)
        lent[0] = lent[0] || base.m.lent[i];
    for (uint32_t i = 0; i < master.p.buf_count; i++)
        lent[1] = lent[1] || master.m.lent[i];
    assert_true(!lent[0] && lent[1]);
    assert_true(master.m.temp_bytes < base.m.temp_bytes);
}

/* cuda-pr85--pp8--good,layer_remat against good, bad against bad-layerin: gate and up of the layer
 * before the last come when it runs backwards; rocm-pp8--good+layerin: without a kernel the
 * experts' inputs and the casts of their weights as well. */
static void layers_with_their_own_input_are_made_again_late(void **state)
{
    (void)state;
    static const char inputs[] = "pipeline.iteration_save=[iter_in, layer_in]";
    struct low one = STAGES(CUDA), remat = STAGES(CUDA, "pipeline.remat_layer=true");
    struct low input = STAGES(CUDA, inputs);
    struct low blocked = STAGES(ROCM, inputs, "model.blocks[0].attention.kernel=blocked");
    assert_int_equal(count(&one, "expert gate, saved"), 2);
    assert_int_equal(count(&remat, "expert gate, saved"), 1);
    assert_int_equal(count(&input, "expert gate, saved"), 1);
    assert_int_equal(count(&blocked, "expert gate, saved"), 0);
    assert_int_equal(count(&input, "expert inputs, saved"), 2);
    assert_int_equal(count(&blocked, "expert inputs, saved"), 0);
    assert_int_equal(count_at(&input, "e_up, cast for one layer", "backward of flash"), 1);
    assert_int_equal(count_at(&blocked, "e_up, cast for one layer", "backward of attention"), 1);
}

/* rocm-rnd--047: scores of the blocks wait for their layer's backward pass, one set in its order.
 */
static void scores_of_blocks_wait_for_their_layer(void **state)
{
    (void)state;
    struct low loop = DENSE(ROCM, "stack.form=loop", "remat.policy=dots",
                            "model.blocks[0].attention.kernel=blocked");
    assert_int_equal(count_at(&loop, "scores of all blocks, saved", "scores in the order"), 4);
    assert_int_equal(count(&loop, "scores of all blocks, saved"), 4);
    assert_true(
        is_made_after(&loop, "backward of attention by query blocks", "scores in the order"));
    /* The same as a scan: one stack to the transposition between the passes, one from there on. */
    struct low scan = DENSE(ROCM, "remat.policy=dots", "model.blocks[0].attention.kernel=blocked");
    assert_int_equal(count(&scan, "scores of all blocks, saved"), 2);
    assert_int_equal(count_at(&scan, "scores of all blocks, saved", "transpose stack"), 2);
    assert_int_equal(count_at(&scan, "scores of all blocks, saved", "softmax cross-entropy"), 1);
    assert_int_equal(count_at(&scan, "scores of all blocks, saved", "scores in the order"), 1);
    /* A layer's come out of it for the loop that makes the result again, too, before the MLP's
     * backward pass (gpt-oss, fsdp 64 of H100: loop_dynamic_slice_transpose_fusion.1 and .3). */
    assert_true(is_made_after(&scan, "backward of mlp activation", "scores in the order"));
}

/* tiny/layers=nested with outer=2 and outer=4 of four layers. */
static void an_inner_loop_of_one_trip_has_no_mask(void **state)
{
    (void)state;
    static const char *const sets[] = {"model.blocks[0].attention.kernel=naive",
                                       "stack.form=nested"};
    struct low two = DENSE(CUDA, sets[0], sets[1], "stack.outer=2");
    struct low one = DENSE(CUDA, sets[0], sets[1], "stack.outer=4");
    assert_int_not_equal(find(&two, "causal mask"), HB_NONE);
    assert_int_equal(find(&one, "causal mask"), HB_NONE);
}

/* rocm-pr85--pp8--good,no_loss_stage against CUDA's. */
static void experts_are_transposed_after_the_loss(void **state)
{
    (void)state;
    struct low cuda = STAGES(CUDA), rocm = STAGES(ROCM);
    assert_true(lives_at(&cuda, "e_up, transposed copy", "softmax cross-entropy"));
    assert_false(lives_at(&rocm, "e_up, transposed copy", "softmax cross-entropy"));
    assert_int_not_equal(find(&rocm, "e_up, transposed copy"), HB_NONE);
}

/* cuda-mixtral--fsdp=8,ep=8: one expert a device. */
static void rows_of_one_expert_lie_as_they_are_gathered(void **state)
{
    (void)state;
    static const char *const sets[] = {"mesh.pipeline=1", "stack.form=scan", "mesh.fsdp=2",
                                       "batch.global=64"};
    struct low one = STAGES(CUDA, sets[0], sets[1], sets[2], sets[3], "mesh.expert=8");
    struct low two = STAGES(CUDA, sets[0], sets[1], sets[2], sets[3], "mesh.expert=4");
    assert_int_equal(find(&one, "e_up, transposed copy"), HB_NONE);
    assert_int_not_equal(find(&one, "e_down, transposed copy"), HB_NONE);
    assert_int_not_equal(find(&two, "e_up, transposed copy"), HB_NONE);
}

/* rocm-tinyS--ce=onehot against base. */
static void one_hot_labels_have_zeros_first(void **state)
{
    (void)state;
    struct low base = DENSE(ROCM), onehot = DENSE(ROCM, "loss.onehot=true");
    assert_true(lives_at(&onehot, "w_up, gradient", "look up embedding"));
    assert_false(lives_at(&base, "w_up, gradient", "softmax cross-entropy"));
}

/* cuda-8B,pp4f4,m8 against iter: f32[1024,1,8,4096] and [1024,1,8,14336] are made behind the loss
 * for the backward iterations (wrapped_transpose.2, .3, at 133 of 269; while.128 at 150). */
static void stages_turn_their_stacks_behind_the_loss(void **state)
{
    (void)state;
    static const char *const sets[] = {"mesh.fsdp=4", "stack.form=scan", "batch.global=64"};
    struct low kept = STAGES(CUDA, sets[0], sets[1], sets[2], "pipeline.remat_iteration=false",
                             "pipeline.remat_layer=true");
    struct low iter = STAGES(CUDA, sets[0], sets[1], sets[2]);
    assert_false(lives_at(&kept, "wo, transposed copy of the stack", "softmax cross-entropy"));
    assert_true(
        lives_at(&kept, "wo, transposed copy of the stack", "gradients of outputs, padded"));
    assert_int_equal(buf_of(&kept, "wo, transposed copy of the stack")->dtype, HB_DT_F32);
    assert_true(lives_at(&iter, "wo, transposed copy of the stack", "softmax cross-entropy"));
}

/* cuda-pr85--ep2pp4--good: the gradients of all iterations' outputs, gathered, are gone before the
 * last layer's experts run again. */
static void output_gradients_are_gathered_before_the_last_experts(void **state)
{
    (void)state;
    static const char *const sets[] = {"mesh.expert=2", "pipeline.remat_iteration=true"};
    struct low cuda = STAGES(CUDA, sets[0], sets[1]);
    struct low rocm = STAGES(ROCM, sets[0], sets[1], "optimizer.clip=true");
    assert_false(lives_at(&rocm, "outputs, gathered", "add gradient of the output"));
    const struct low *const both[] = {&cuda, &rocm};
    for (int i = 0; i < 2; i++) {
        uint32_t first, last, from, to;
        life(both[i], find(both[i], "outputs, gathered"), &from, &to);
        int experts = 0, attention = 0;
        for (uint32_t b = 0; b < both[i]->p.buf_count; b++) {
            const char *name = both[i]->p.bufs[b].name;
            if (!strstr(name, ", saved for backward"))
                continue;
            life(both[i], b, &first, &last);
            experts += strstr(name, "expert outputs, returned") && first < to;
            attention += strstr(name, "attention context") && first < to;
        }
        assert_int_equal(experts, 1);
        assert_int_equal(attention, 1);
    }
}

/* cuda-pr85--ep2pp4--mask,naive,causal: scores that stay are there once while they are made. */
static void what_stays_is_made_in_its_place(void **state)
{
    (void)state;
    struct low l = STAGES(CUDA, "model.blocks[0].attention.kernel=naive");
    assert_int_equal(count(&l, "attention scores, saved"), 2);
    for (uint32_t i = 0; i < l.p.op_count; i++)
        assert_null(strstr(l.p.ops[i].name, "attention scores into its stack"));
}

/* cuda-bwd--remat=names:mlp_act has no copy of the slice, names:attn_ctx has. */
static void a_kept_activation_is_sliced_inside_its_product(void **state)
{
    (void)state;
    struct low act = DENSE(CUDA, "remat.policy=names", "remat.save=[mlp_act]");
    struct low context = DENSE(CUDA, "remat.policy=names", "remat.save=[attn_ctx]");
    bool copied[2] = {false, false};
    for (uint32_t i = 0; i < act.p.op_count; i++)
        copied[0] = copied[0] || strstr(act.p.ops[i].name, "mlp activation out of its stack");
    for (uint32_t i = 0; i < context.p.op_count; i++)
        copied[1] = copied[1] || strstr(context.p.ops[i].name, "attention context out of its");
    assert_true(!copied[0] && copied[1]);
}

/* cuda-opt--clip=True,nan_to_num=True: one fusion makes those of gate and up for norm and update.
 */
static void a_norm_reads_gradients_without_nan(void **state)
{
    (void)state;
    struct low clip = DENSE(CUDA, "optimizer.clip=true", "step.nan_to_num=true");
    struct low plain = DENSE(CUDA, "step.nan_to_num=true");
    assert_true(lives_at(&clip, "w_up, gradient without nan", "update block.w_up"));
    assert_false(lives_at(&clip, "w_gate, zeros for nan", "update block.w_up"));
    assert_int_equal(find(&plain, "gradient without nan"), HB_NONE);
}

/* llama8b and mixtral in bf16 on one device and over data or tensor: bf16[1,4096,14336] twice. */
static void slices_come_out_of_their_stacks(void **state)
{
    (void)state;
    static const char slice[] = "w_gate, cast for one layer", bf16[] = "precision.params=bf16";
    struct low cuda = DENSE(CUDA, bf16), rocm = DENSE(ROCM, bf16), tpu = DENSE(bf16);
    struct low gathered = DENSE(CUDA, bf16, "mesh.fsdp=8", "batch.global=8");
    assert_int_equal(bytes_of(&cuda, slice), 2LL * 1024 * 2816);
    assert_int_equal(bytes_of(&rocm, slice), 2LL * 1024 * 2816);
    assert_int_equal(find(&tpu, slice), HB_NONE);
    assert_int_equal(find(&gathered, slice), HB_NONE);
}

/* qwen14b on one H100: gemm_fusion_dot.39 makes bf16[151936,5120], no zeros before it. */
static void a_one_hot_table_has_no_zeros(void **state)
{
    (void)state;
    struct low rows = DENSE(CUDA), onehot = DENSE(CUDA, "embedding.lookup=onehot");
    assert_int_not_equal(find(&rows, "embedding, zeros for its gradient"), HB_NONE);
    assert_int_equal(find(&onehot, "embedding, zeros for its gradient"), HB_NONE);
    assert_int_not_equal(find_op(&onehot, "gradient of the embedding"), HB_NONE);
}

/* rocm-8B,pp8f8,m16: outputs are permuted between the axes; pp2f4,m4 exchanges them. */
static void shards_are_permuted_between_equal_axes(void **state)
{
    (void)state;
    struct low equal = STAGES(ROCM, "mesh.fsdp=4", "stack.form=scan", "batch.global=64");
    struct low other = STAGES(ROCM, "mesh.fsdp=2", "stack.form=scan", "batch.global=64");
    assert_false(lives_at(&equal, "outputs of the iterations", "softmax cross-entropy"));
    assert_true(lives_at(&other, "outputs of the pipeline, exchanged", "softmax cross-entropy"));
}

/* pp2f4,m4 and pr85/ep2pp4/good,no_loss_stage: each device's share of iterations, padded, and those
 * that it takes from a neighbour. */
static void outputs_are_exchanged(void **state)
{
    (void)state;
    struct low l = STAGES(ROCM, "mesh.fsdp=2", "stack.form=scan", "batch.global=64");
    int64_t one = INT64_C(2) * 64 / 4 * 2048 * 1024; /* an iteration of all devices */
    assert_int_equal(bytes_of(&l, "outputs of the pipeline, exchanged"), (4 + 1) * one);
    /* pp4f32,m8: among no more devices than there are microbatches, and so are the gradients. */
    struct low wide = STAGES(ROCM, "mesh.fsdp=8", "stack.form=scan", "batch.global=64");
    int64_t count = bytes_of(&wide, "gradients of the iterations' outputs, gathered") / one;
    assert_int_equal(count % 4, 0);
    assert_true(count < 2 * 8);
    assert_int_equal(bytes_of(&wide, "gradients of some iterations' outputs"), count / 4 * one);
    /* constrained-qwen1.7b-pp2f32: a constraint on what each iteration hands out leaves both with
     * the devices that have the batch. */
    struct low all = STAGES(ROCM, "mesh.fsdp=8", "stack.form=scan", "batch.global=64",
                            "pipeline.constraints=all");
    assert_int_equal(find(&all, "gradients of the iterations' outputs, gathered"), HB_NONE);
    assert_int_equal(bytes_of(&all, "outputs of the pipeline, exchanged"), 4 * one / 8);
}

/* With layers=loop on CUDA the sums of weight gradients lag. */
static void unrolled_gradients_wait(void **state)
{
    (void)state;
    struct low alone = DENSE(CUDA, "mesh.fsdp=2", "stack.form=loop");
    const char *last = "gradient of block[3].w_gate", *first = "gradient through block[1].w_gate";
    assert_false(is_made_after(&alone, last, first));
    assert_true(is_made_after(&alone, "sum gradient of block[3].w_gate", first));
}

/* pr85/pp8/good+layerin on ROCm: all gradients of a stage's weights after its last attention. */
static void a_stage_s_gradients_come_last(void **state)
{
    (void)state;
    struct low l = STAGES(ROCM);
    uint32_t first = HB_NONE, last = 0;
    for (uint32_t i = 0; i < l.p.op_count; i++) {
        first = first == HB_NONE && !strcmp(l.p.ops[i].name, "gradient of block.e_up") ? i : first;
        last = strstr(l.p.ops[i].name, "backward of flash attention") ? i : last;
    }
    assert_true(last > 0 && last < first && first < HB_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(zeros_come_where_they_cost_nothing),
        TEST(the_head_is_gathered_early_or_in_time),
        TEST(narrow_logits_stay_narrow),
        TEST(a_kernel_runs_again_before_its_backward),
        TEST(the_kernel_has_no_name_for_its_result),
        TEST(layers_of_a_trip_are_made_again_together),
        TEST(a_stage_keeps_its_weights),
        TEST(gradients_of_outputs_are_gathered),
        TEST(outputs_are_read_in_place),
        TEST(constraints_split_the_batch),
        TEST(momenta_are_gathered_together),
        TEST(no_policy_keeps_what_the_trace_reads),
        TEST(parts_of_a_sum_stay),
        TEST(stacks_of_scores_are_copied),
        TEST(gathers_are_kept_narrow),
        TEST(no_policy_keeps_cast_weights),
        TEST(a_narrow_product_has_narrow_gradients),
        TEST(an_outer_block_has_its_weights_copied),
        TEST(one_hot_rows_of_one_sequence_are_predicates),
        TEST(a_split_residual_is_gathered_wide),
        TEST(a_master_copy_frees_the_parameter),
        TEST(layers_with_their_own_input_are_made_again_late),
        TEST(scores_of_blocks_wait_for_their_layer),
        TEST(an_inner_loop_of_one_trip_has_no_mask),
        TEST(experts_are_transposed_after_the_loss),
        TEST(rows_of_one_expert_lie_as_they_are_gathered),
        TEST(one_hot_labels_have_zeros_first),
        TEST(stages_turn_their_stacks_behind_the_loss),
        TEST(output_gradients_are_gathered_before_the_last_experts),
        TEST(what_stays_is_made_in_its_place),
        TEST(a_kept_activation_is_sliced_inside_its_product),
        TEST(a_norm_reads_gradients_without_nan),
        TEST(slices_come_out_of_their_stacks),
        TEST(a_one_hot_table_has_no_zeros),
        TEST(shards_are_permuted_between_equal_axes),
        TEST(outputs_are_exchanged),
        TEST(unrolled_gradients_wait),
        TEST(a_stage_s_gradients_come_last),
    };
    return cmocka_run_group_tests_name("lower_gpu", tests, NULL, NULL);
}
