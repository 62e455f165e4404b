/* sim/ir/lower on MaxText's own step: what sets it apart from the lab's, each by the measured
 * record that shows it (ids without their "maxtext-"). A buffer's life is read off the positions of
 * the ops that write and read it. */
#include "tests/unit/lowered.h"

#define MOE_RAGGED "moe: {experts: 8, top_k: 2, d_ff: 1408, dispatch: ragged}"

static const char dense[] = LAYERS_OF("4", DENSE_MLP) "precision: {params: f32, compute: bf16}\n"
                                                      "optimizer: {clip: true}\n"
                                                      "batch: {global: 64, seq: 2048}\n"
                                                      "mesh: {fsdp: 8}\n"
                                                      "sharding: {norms: tensor}\n"
                                                      "stack: {axis: 1}\n"
                                                      "loss: {dot: bf16, onehot: true}\n"
                                                      "hardware: {device: tpu-v5p}\n";
static const char experts[] =
    LAYERS_OF("4", MOE_RAGGED) "batch: {global: 64, seq: 2048}\n"
                               "sharding: {norms: tensor, dense_over_expert: true}\n"
                               "mesh: {fsdp: 2, expert: 4}\n";

static const char stem[] = "model:\n"
                           "  d_model: 2048\n"
                           "  vocab: 160000\n"
                           "  blocks:\n"
                           "    - name: first\n"
                           "      repeat: 1\n"
                           "      attention: {heads: 8, kv_heads: 8, head_dim: 128}\n"
                           "      mlp: {d_ff: 2816}\n"
                           "    - name: block\n"
                           "      repeat: 4\n"
                           "      attention: {heads: 8, kv_heads: 8, head_dim: 128}\n"
                           "      moe: {experts: 8, top_k: 2, d_ff: 1408, dispatch: ragged}\n"
                           "optimizer: {clip: true}\n"
                           "batch: {global: 64, seq: 2048}\n"
                           "sharding: {norms: tensor, dense_over_expert: true}\n"
                           "mesh: {fsdp: 8}\n"
                           "loss: {dot: bf16, onehot: true}\n"
                           "hardware: {device: tpu-v5p}\n";

#define DENSE(...)   lower_text(dense, (const char *const[]){__VA_ARGS__, NULL})
#define STEM(...)    lower_text(stem, (const char *const[]){__VA_ARGS__, NULL})
#define EXPERTS(...) lower_text(experts, (const char *const[]){__VA_ARGS__, NULL})

/* The last op of exactly this name. */
static uint32_t last_op(const struct low *l, const char *name)
{
    uint32_t last = HB_NONE;
    for (uint32_t i = 0; i < l->p.op_count; i++)
        if (!strcmp(l->p.ops[i].name, name))
            last = i;
    assert_int_not_equal(last, HB_NONE);
    return last;
}

/* Whether one of the buffers of that name is alive at the op. */
static bool any_lives_at(const struct low *l, const char *buffer, const char *op)
{
    uint32_t at = find_op(l, op);
    bool lives = false;
    assert_int_not_equal(find(l, buffer), HB_NONE);
    for (uint32_t i = 0; i < l->p.buf_count; i++) {
        uint32_t first;
        uint32_t last;
        if (l->p.bufs[i].alias_of != HB_NONE || !strstr(l->p.bufs[i].name, buffer))
            continue;
        life(l, i, &first, &last);
        lives = lives || (first <= at && at <= last);
    }
    return lives;
}

/* base--llama3-8b--v5p-512: five s32[4,8192]. */
static void a_batch_is_five_arrays(void **state)
{
    (void)state;
    struct low l = DENSE("sharding.norms=tensor"), lab = DENSE("runtime.framework=jax");
    int five = 0, two = 0;
    for (uint32_t i = 0; i < l.p.buf_count; i++)
        five += l.p.bufs[i].argument && l.p.bufs[i].bytes == 8 * 2048 * 4;
    for (uint32_t i = 0; i < lab.p.buf_count; i++)
        two += lab.p.bufs[i].argument && lab.p.bufs[i].bytes == 8 * 2048 * 4;
    assert_int_equal(five, 5);
    assert_int_equal(two, 2);
}

/* base--gpt3-6b--v5p-16: f32[384,48] of d 3072, and a final norm with a bias. */
static void biases_of_outputs_are_split(void **state)
{
    (void)state;
    struct low l = DENSE("model.blocks.0.norm=layernorm", "model.blocks.0.attention.bias=true",
                         "model.blocks.0.mlp.bias=true");
    assert_int_equal(bytes_of(&l, "block.bo"), 4 * 4 * 1024 / 8);
    assert_int_equal(bytes_of(&l, "block.b_down"), 4 * 4 * 1024 / 8);
    assert_int_equal(bytes_of(&l, "final norm's bias"), 4 * 1024);
}

/* mixtral-8x7b-v5p-64--ep4: 65536 rows of 8192 tokens, top 2; over 8 devices, one expert each, as
 * many: no token goes to one expert twice. */
static void rows_are_those_that_can_come(void **state)
{
    (void)state;
    struct low four = EXPERTS("mesh.expert=4"), eight = EXPERTS("mesh.fsdp=1", "mesh.expert=8");
    const struct hb_buf *a = &four.p.bufs[find(&four, "tokens sorted by expert")];
    const struct hb_buf *b = &eight.p.bufs[find(&eight, "tokens sorted by expert")];
    assert_int_equal(a->dim[0], 8 * 2048 * 2 * 4);
    assert_int_equal(b->dim[0], 8 * 2048 * 2 * 4);
}

/* llama3-8b-v5p16--base against qkv_proj_offloaded: the logits wait for the head's gradient where
 * values go to the host; rand027--qwen3-8b: and where the sequence is split, whatever is kept. */
static void logits_wait_for_what_comes_late(void **state)
{
    (void)state;
    struct low full = DENSE("model.vocab=64000");
    assert_false(any_lives_at(&full, "logits", "backward of flash attention"));
    struct low kept =
        DENSE("mesh.fsdp=64", "batch.global=256", "remat.policy=names", "remat.save=[attn_out]");
    assert_false(any_lives_at(&kept, "logits", "backward of flash attention"));
}

/* llama3-70b-v5p128--remat_qkv_proj_offloaded; llama3-8b over 8 devices, between rings: no copy. */
static void inputs_are_turned_whole(void **state)
{
    (void)state;
    struct low qkv =
        DENSE("mesh.fsdp=64", "batch.global=128", "remat.policy=names", "remat.offload=[q,k,v]");
    struct low ring = DENSE("remat.policy=names", "remat.offload=[attn_out]");
    assert_int_equal(find(&qkv, "a stack in another layout"), HB_NONE);
    assert_int_equal(find(&ring, "a stack in another layout"), HB_NONE);
    struct low v6e =
        DENSE("hardware.device=tpu-v6e", "remat.policy=names", "remat.offload=[layer_in,attn_out]");
    assert_true(any_lives_at(&v6e, "a stack from the host", "turn a stack from the host"));
    assert_true(any_lives_at(&qkv, "q, on its way to the host", "softmax cross-entropy"));
}

/* deepseek3-671b-v5p512--ep16: three tensors of the hidden width stand with five of the model's. */
static void travelling_rows_stand_together(void **state)
{
    (void)state;
    struct low l = EXPERTS("mesh.expert=4");
    int64_t rows = 8 * 2048 * 2 * 4;
    const struct hb_buf *scratch = &l.p.bufs[find(&l, "backward of tokens in order of expert")];
    assert_int_equal(scratch->dim[0] * scratch->dim[1], 3 * rows);
    const char *back = "backward of tokens in order of expert";
    assert_true(any_lives_at(&l, "block.expert activation", back));
    assert_true(any_lives_at(&l, "expert output, gradient", back));
}

/* llama3-8b, num_vocab_tiling=4: tokens are exchanged between the chunks' sharding and the batch's;
 * with 2 microbatches their gradient is gathered: bf16[4,16384,4096], twice. */
static void chunks_are_gathered_in_a_loop_only(void **state)
{
    (void)state;
    struct low one = DENSE("loss.chunks=4", "loss.chunk_over=tokens");
    struct low two = DENSE("loss.chunks=4", "loss.chunk_over=tokens", "batch.accumulate=2");
    int64_t all = 32LL * 2048 * 1024 * 2;
    assert_int_equal(bytes_of(&one, "last norm's result"), 8LL * 2048 * 1024 * 2);
    assert_int_equal(bytes_of(&two, "chunks, gathered"), all);
    assert_int_equal(bytes_of(&two, "chunks, turned"), all);
}

/* base--llama3-8b--v5p-512: two bf16[4,8192,128256] at the loss; base--llama3-8b--v6e-64, of two
 * sequences: one; maxnew-013 (qwen2.5-7b, v6e-64), of one: two bf16[8192,152064]. */
static void the_own_rule_makes_a_gradient(void **state)
{
    (void)state;
    struct low v5p = DENSE("mesh.fsdp=256", "batch.global=256");
    struct low two = DENSE("mesh.fsdp=256", "batch.global=512", "hardware.device=tpu-v6e");
    struct low one = DENSE("mesh.fsdp=256", "batch.global=256", "hardware.device=tpu-v6e");
    assert_int_equal(bytes_of(&v5p, "gradient of the logits"), 2048LL * 32000 * 2);
    assert_int_equal(bytes_of(&one, "gradient of the logits"), 2048LL * 32000 * 2);
    for (uint32_t i = 0; i < two.p.buf_count; i++)
        if (!strcmp(two.p.bufs[i].name, "gradient of the logits"))
            assert_int_not_equal(two.p.bufs[i].alias_of, HB_NONE);
}

/* maxtwo-041 (gemma3-4b, v5e-256): bf16[256,10,262144] in 2048 MiB beside reshape.4445; maxtwo-003
 * (qwen2.5-7b, v6e-64, 56): none. */
static void a_narrow_shard_comes_by_rows(void **state)
{
    (void)state;
    struct low ten =
        DENSE("mesh.fsdp=256", "batch.global=512", "hardware.device=tpu-v6e", "model.d_model=2560");
    struct low whole =
        DENSE("mesh.fsdp=256", "batch.global=512", "hardware.device=tpu-v6e", "model.d_model=4096");
    assert_int_equal(buf_of(&ten, "head, gathered by rows")->bytes, 256LL * 16 * 32000 * 2);
    assert_true(any_lives_at(&ten, "head, gathered by rows", "join the head's rows"));
    assert_int_equal(find(&whole, "head, gathered by rows"), HB_NONE);
}

/* base--llama3-8b--v5p-128: all-gather bf16[1,4096,14336]; rand027--qwen3-8b: zeros and a sum. */
static void narrow_weights_are_padded(void **state)
{
    (void)state;
    struct low wide = DENSE("mesh.fsdp=64", "batch.global=64");
    struct low narrow = DENSE("mesh.fsdp=64", "batch.global=64", "precision.params=bf16");
    assert_int_equal(find(&wide, "padded with zeros"), HB_NONE);
    assert_int_not_equal(find(&narrow, "padded with zeros"), HB_NONE);
}

/* llama3-8b-v5p16--dp8_zero1: f32[4096,32,14336] of the parameters, f32[32,512,14336] of their
 * gradients. */
static void gradients_follow_split_states(void **state)
{
    (void)state;
    struct low l = DENSE("mesh.fsdp=1", "mesh.data=8", "sharding.optimizer_over_data=true");
    assert_int_equal(bytes_of(&l, "block.w_up, in the layout"), 4LL * 4 * 1024 * 2816);
    assert_int_equal(bytes_of(&l, "block.w_up, gradient"), 4LL * 4 * 1024 * 2816 / 8);
    assert_true(any_lives_at(&l, "block.w_up, in the layout", "backward of flash attention"));
}

/* base--llama3.1-405b--v6e-256: the whole gradient of w_down, bf16[53248,16384], through the
 * layer's backward pass. */
static void the_last_gradient_comes_first(void **state)
{
    (void)state;
    struct low l = DENSE("mesh.fsdp=64", "batch.global=64", "hardware.device=tpu-v6e");
    assert_true(find_op(&l, "gradient of block.w_down") <
                find_op(&l, "gradient through block.w_down"));
}

/* llama3-8b-v5p16 with 65536 tokens: 16384 words wait, 17000 do not; --s2048 on v5p: none. */
static void logits_wait_from_four_tokens_a_word_on(void **state)
{
    (void)state;
    struct low end = DENSE("model.vocab=32896");
    struct low few = DENSE("batch.global=8"),
               v6e = DENSE("batch.global=8", "hardware.device=tpu-v6e");
    assert_false(any_lives_at(&end, "logits", "backward of flash attention"));
    assert_false(any_lives_at(&few, "logits", "backward of flash attention"));
    assert_true(any_lives_at(&v6e, "logits", "backward of flash attention"));
}

/* llama3-8b-v5p16--base: two bf16[512,128256]; --ldot32: f32. */
static void a_split_head_keeps_its_dtype(void **state)
{
    (void)state;
    struct low narrow = DENSE("mesh.fsdp=8"), wide = DENSE("loss.dot=f32");
    assert_int_equal(bytes_of(&narrow, "gradient of the ring's other"), 2LL * 128 * 32000);
    assert_int_equal(bytes_of(&wide, "gradient of the ring's other"), 4LL * 128 * 32000);
}

/* llama3-8b-v5p16--base: dkv, dq, then the rings of w_down, gate and up; --s2048: some before. */
static void the_mlp_comes_last_between_rings(void **state)
{
    (void)state;
    struct low many = DENSE("batch.global=64"), few = DENSE("batch.global=8");
    assert_true(last_op(&many, "gradient of block.w_down") >
                last_op(&many, "backward of flash attention"));
    assert_true(last_op(&few, "gradient of block.w_down") <
                last_op(&few, "backward of flash attention"));
}

/* llama3-8b-v5p16--tokamax_splash: f32[2,8,32,4096,128]; l8--fusedbwd: bf16 of it. Three
 * parts of them (dq_reduction_steps=3). */
static void fused_kernels_leave_parts(void **state)
{
    (void)state;
    int64_t parts = 8LL * 4 * 8 * 2048 * 128;
    struct low two = DENSE("mesh.fsdp=8");
    struct low one = DENSE("model.blocks.0.attention.fused_backward=true");
    struct low own = DENSE("model.blocks.0.attention.flash=tokamax");
    struct low set =
        DENSE("model.blocks.0.attention.flash=tokamax", "model.blocks.0.attention.dq_parts=3");
    const struct low *all[] = {&two, &one, &own, &set};
    const int64_t bytes[] = {0, 2 * parts, 4 * parts, 3 * parts};
    for (int k = 0; k < 4; k++) {
        bool found = false;
        for (uint32_t i = 0; i < all[k]->p.buf_count; i++)
            found = found || all[k]->p.bufs[i].plain_bytes == bytes[k];
        assert_int_equal(found, k > 0);
    }
}

/* llama3-8b--v5p-64 and llama3-70b--v5p-128, 128 features a device: bf16 stacks of gate and up. */
static void one_lane_row_is_cast_in_place(void **state)
{
    (void)state;
    struct low one = DENSE("mesh.fsdp=8"), two = DENSE("mesh.fsdp=4");
    assert_int_equal(find(&one, "w_down, cast once"), HB_NONE);
    assert_int_not_equal(find(&one, "w_up, cast once"), HB_NONE);
    assert_int_not_equal(find(&two, "w_down, cast once"), HB_NONE);
}

/* llama3-8b-v5p16--remat_custom_outdev: no kernel's results beside the MLP; --remat_custom_qkvdev:
 * f32[2,32,4096,128]. */
static void a_kept_output_postpones_attention(void **state)
{
    (void)state;
    struct low out = DENSE("remat.policy=names", "remat.save=[attn_out]");
    struct low qkv = DENSE("remat.policy=names", "remat.save=[q,k,v]");
    assert_int_equal(bytes_of(&qkv, "attention log-sum-exp"), 4LL * 8 * 8 * 2048 * 128);
    assert_true(any_lives_at(&qkv, "attention log-sum-exp", "gradient through block.w_down"));
    assert_false(any_lives_at(&out, "attention log-sum-exp", "gradient through block.w_down"));
}

#define PIPED                                                                                      \
    "mesh.pipeline=4", "mesh.fsdp=2", "pipeline.microbatches=4", "pipeline.shift=shard_map",       \
        "pipeline.outputs=buffer", "pipeline.constraints=all", "pipeline.remat_iteration=true",    \
        "pipeline.remat_layer=false", "sharding.ends_over_pipeline=true"

/* llama3-8b/pp8_lps1: no bf16[8,4,4096,4096]; two bf16[4,4096,128256]; pp8_lps4, one repeat: casts
 * and accumulators stand at the loss. */
static void a_stage_has_its_share(void **state)
{
    (void)state;
    struct low four = DENSE(PIPED, "model.blocks.0.repeat=16", "pipeline.repeats=4");
    struct low one = DENSE(PIPED, "model.blocks.0.repeat=4");
    assert_int_equal(bytes_of(&four, "inputs of the iterations"), 8LL * 2048 * 1024 * 2);
    assert_int_equal(bytes_of(&four, "gradient of the logits"), 8LL * 2048 * 32000 * 2);
    assert_true(any_lives_at(&one, "w_up, cast once", "softmax cross-entropy"));
}

/* llama3-8b/pp4_lps2: gradients of both layers after the backward pass of the first. */
static void stages_of_two_sum_late(void **state)
{
    (void)state;
    struct low two = DENSE(PIPED, "model.blocks.0.repeat=8", "stack.form=loop");
    uint32_t first = 0;
    while (strcmp(two.p.ops[first].name, "gradient of block.w_down"))
        first++;
    assert_true(first > last_op(&two, "backward of flash attention"));
}

/* mixtral--dense_cf1.5: the activation waits with gate's and up's gradients. */
static void an_expert_s_activation_waits(void **state)
{
    (void)state;
    struct low l = EXPERTS("mesh.expert=1", "mesh.fsdp=8", "model.blocks.0.moe.dispatch=einsum",
                           "model.blocks.0.moe.capacity_factor=1.0");
    assert_true(any_lives_at(&l, "block.expert activation", "gradient through block.e_up"));
}

/* llama3-8b, fsdp 4 and context 2, context 8: rings over both as one; fsdp4_tp2 and ctx4_fsdp2
 * wait, tensor 8 and context 8 do not. */
static void two_axes_go_round_as_one(void **state)
{
    (void)state;
#define CONTEXT "sharding.states_over_sequence=true", "sharding.sequence_kind=all_gather"
    struct low two = DENSE("mesh.fsdp=4", "mesh.sequence=2", "model.vocab=64000", CONTEXT);
    assert_true(any_lives_at(&two, "logits", "backward of flash attention"));
}

/* llama3-8b-v5e8--L8_noscan: bf16[2,4096,14336] of all layers at the loss; v5p: none. In
 * microbatches the forward rings have theirs before the first layer, too (unrolled--14b,f16,a2). */
static void unrolled_rings_have_room_on_v5e(void **state)
{
    (void)state;
    struct low v5e = DENSE("stack.form=loop", "hardware.device=tpu-v5e");
    struct low v5p = DENSE("stack.form=loop");
    struct low two = DENSE("stack.form=loop", "hardware.device=tpu-v5e", "batch.accumulate=2");
    int64_t sum = 8LL * 2048 * 2816 + 2LL * (3 * 2816 + 4 * 1024) * 128;
    assert_int_equal(bytes_of(&v5e, "room for its backward rings"), sum * 2);
    assert_true(any_lives_at(&v5e, "room for its backward rings", "softmax cross-entropy"));
    assert_int_equal(find(&v5p, "room for its backward rings"), HB_NONE);
    assert_int_equal(find(&v5e, "mlp gate, room for its ring"), HB_NONE);
    assert_true(any_lives_at(&two, "mlp gate, room for its ring", "flash attention"));
}

/* rand031--gemma2-27b, two microbatches of 2048 tokens, maxnew-076 (gemma2-9b, v5p, 2048 tokens):
 * no logits in the layers' backward pass; maxnew-016 (gpt3-6b, v6e): they are. */
static void tied_logits_wait_on_v6e(void **state)
{
    (void)state;
#define TIED "model.vocab=64000", "model.tied_embeddings=true"
    struct low two = DENSE("batch.global=16", "batch.accumulate=2", TIED);
    struct low v5p = DENSE("batch.global=8", TIED);
    struct low v6e = DENSE("batch.global=8", TIED, "hardware.device=tpu-v6e");
    assert_false(any_lives_at(&two, "logits", "backward of flash attention"));
    assert_false(any_lives_at(&v5p, "logits", "backward of flash attention"));
    assert_true(any_lives_at(&v6e, "logits", "backward of flash attention"));
}

/* The value whose memory that of exactly this name lies in. */
static uint32_t place_of(const struct low *l, const char *name)
{
    for (uint32_t i = 0; i < l->p.buf_count; i++)
        if (!strcmp(l->p.bufs[i].name, name))
            return hb_program_root(&l->p, i);
    return HB_NONE;
}

/* maxnew-100 (gemma2-9b, v5e-16, four of 4,096): above the limit the logits are made again for
 * their gradient, which lies in their place; below it both stand. */
static void logits_made_again_lend_their_place(void **state)
{
    (void)state;
    struct low much = DENSE(TIED, "hardware.device=tpu-v5e", "batch.global=512");
    struct low less = DENSE(TIED, "hardware.device=tpu-v5e", "batch.global=64");
    uint32_t grad = place_of(&much, "gradient of the logits");
    assert_int_equal(place_of(&much, "logits, made again"), grad);
    assert_int_not_equal(place_of(&much, "logits"), grad);
    assert_int_equal(place_of(&less, "logits, made again"), HB_NONE);
}

#define HOSTED "optimizer.offload=pinned_host"
#define LAYERS "backward of flash attention"

/* llama3-8b/opt_host_offload with 65536 tokens: 32000 words against 33000. */
static void few_words_bring_states_early(void **state)
{
    (void)state;
    struct low more = DENSE(HOSTED, "model.vocab=66048");
    static const char copy[] = "block.w_down, first moment, copy";
    assert_false(any_lives_at(&more, copy, LAYERS));
}

/* llama3-70b/base, remat_save_out_proj: between padded gathers gate's and up's gradients come
 * behind the attention, the last one's with them where that is made again after the MLP. */
static void padded_gradients_come_behind_attention(void **state)
{
    (void)state;
    struct low full = DENSE("mesh.fsdp=64", "batch.global=256");
    struct low out =
        DENSE("mesh.fsdp=64", "batch.global=256", "remat.policy=names", "remat.save=[attn_out]");
    static const char back[] = "backward of flash attention";
    assert_true(find_op(&full, back) < last_op(&full, "gradient of block.w_up"));
    assert_true(find_op(&out, back) < last_op(&out, "gradient of block.w_down"));
}

/* gemma2-9b/inputoff against /base: a tied head's logits wait where layer inputs go to the host. */
static void a_tied_head_waits_for_the_host(void **state)
{
    (void)state;
    static const char back[] = "backward of flash attention";
    struct low base = DENSE("model.tied_embeddings=true", "model.vocab=64000");
    struct low host = DENSE("model.tied_embeddings=true", "model.vocab=64000", "remat.policy=names",
                            "remat.offload=[layer_in]");
    assert_false(any_lives_at(&base, "logits", back));
    assert_true(any_lives_at(&host, "logits", back));
}

/* mixtral-8x7b, expert 4 and fsdp 8, with a capacity: all experts' weights come to the tokens. */
static void einsum_experts_come_to_tokens(void **state)
{
    (void)state;
    struct low l =
        EXPERTS("model.blocks.0.moe.dispatch=einsum", "model.blocks.0.moe.capacity_factor=1.0");
    assert_int_equal(bytes_of(&l, "block.e_up, gathered"), 8LL * 1024 * 1408 * 2);
    assert_int_equal(find(&l, "expert inputs, exchanged"), HB_NONE);
    assert_int_equal(buf_of(&l, "block.expert up")->dim[1], 8);
}

/* qwen3-14b, v6e-16, fsdp 8 and tensor 2 with save_out_proj: logits wait whatever is kept. */
static void logits_wait_beside_split_features(void **state)
{
    (void)state;
    static const char back[] = "backward of flash attention";
    struct low one = DENSE("remat.policy=names", "remat.save=[attn_out]", "model.vocab=64000");
    struct low two =
        DENSE("remat.policy=names", "remat.save=[attn_out]", "model.vocab=64000", "mesh.tensor=2");
    assert_false(any_lives_at(&one, "logits", back));
    assert_true(any_lives_at(&two, "logits", back));
}

/* gemma2-2b, fsdp 4 and tensor 2, maxnew-102 (qwen3-4b, v6e, fsdp 8 and tensor 2): the gradient of
 * the logits waits. */
static void a_tied_label_is_read_last(void **state)
{
    (void)state;
    static const char back[] = "backward of flash attention";
    struct low tied = DENSE("mesh.fsdp=4", "mesh.tensor=2", "model.tied_embeddings=true",
                            "hardware.device=tpu-v6e");
    struct low own = DENSE("mesh.fsdp=4", "mesh.tensor=2");
    uint32_t at = find_op(&tied, back), first, last;
    life(&tied, find(&tied, "logits"), &first, &last);
    life(&tied, find(&tied, "gradient of the logits"), &first, &last);
    assert_true(last > at);
    life(&own, find(&own, "logits"), &first, &last);
    assert_true(last < find_op(&own, back));
}

/* deepseek2-16b/base and dense_cf1.0, and over 32: the single dense layer's products are kept; the
 * logits wait up to 16 ways. */
static void a_dense_layer_before_experts_is_no_loop(void **state)
{
    (void)state;
    struct low ragged = STEM("model.blocks.1.moe.dispatch=ragged");
    struct low einsum =
        STEM("model.blocks.1.moe.dispatch=einsum", "model.blocks.1.moe.capacity_factor=1.0");
    static const char back[] = "backward of flash attention"; /* the experts' layers' */
    assert_true(any_lives_at(&ragged, "first.mlp gate", back));
    assert_true(any_lives_at(&einsum, "first.mlp gate", back));
    assert_true(any_lives_at(&einsum, "gradient of the logits", back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_is_five_arrays),
        TEST(biases_of_outputs_are_split),
        TEST(rows_are_those_that_can_come),
        TEST(logits_wait_for_what_comes_late),
        TEST(inputs_are_turned_whole),
        TEST(travelling_rows_stand_together),
        TEST(chunks_are_gathered_in_a_loop_only),
        TEST(the_own_rule_makes_a_gradient),
        TEST(a_narrow_shard_comes_by_rows),
        TEST(gradients_follow_split_states),
        TEST(the_last_gradient_comes_first),
        TEST(narrow_weights_are_padded),
        TEST(logits_wait_from_four_tokens_a_word_on),
        TEST(a_split_head_keeps_its_dtype),
        TEST(the_mlp_comes_last_between_rings),
        TEST(fused_kernels_leave_parts),
        TEST(one_lane_row_is_cast_in_place),
        TEST(a_kept_output_postpones_attention),
        TEST(a_stage_has_its_share),
        TEST(stages_of_two_sum_late),
        TEST(an_expert_s_activation_waits),
        TEST(two_axes_go_round_as_one),
        TEST(unrolled_rings_have_room_on_v5e),
        TEST(tied_logits_wait_on_v6e),
        TEST(logits_made_again_lend_their_place),
        TEST(few_words_bring_states_early),
        TEST(a_tied_label_is_read_last),
        TEST(einsum_experts_come_to_tokens),
        TEST(logits_wait_beside_split_features),
        TEST(a_tied_head_waits_for_the_host),
        TEST(padded_gradients_come_behind_attention),
        TEST(a_dense_layer_before_experts_is_no_loop),
    };
    return cmocka_run_group_tests_name("lower_maxtext", tests, NULL, NULL);
}
