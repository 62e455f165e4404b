/* sim/ir/lower on MaxText's own step: what sets it apart from the lab's, each by the measured
 * record that shows it (ids without their "maxtext-"). A buffer's life is read off the positions of
 * the ops that write and read it. */
#include "tests/unit/lowered.h"

static const char dense[] = "model:\n"
                            "  d_model: 1024\n"
                            "  vocab: 32000\n"
                            "  blocks:\n"
                            "    - name: block\n"
                            "      repeat: 4\n"
                            "      attention: {heads: 8, kv_heads: 8, head_dim: 128}\n"
                            "      mlp: {d_ff: 2816}\n"
                            "precision: {params: f32, compute: bf16}\n"
                            "optimizer: {clip: true}\n"
                            "batch: {global: 64, seq: 2048}\n"
                            "mesh: {fsdp: 8}\n"
                            "sharding: {norms: tensor}\n"
                            "stack: {axis: 1}\n"
                            "loss: {dot: bf16, onehot: true}\n"
                            "hardware: {device: tpu-v5p}\n";
static const char experts[] = "model:\n"
                              "  d_model: 1024\n"
                              "  vocab: 32000\n"
                              "  blocks:\n"
                              "    - name: block\n"
                              "      repeat: 4\n"
                              "      attention: {heads: 8, kv_heads: 8, head_dim: 128}\n"
                              "      moe: {experts: 8, top_k: 2, d_ff: 1408, dispatch: ragged}\n"
                              "batch: {global: 64, seq: 2048}\n"
                              "sharding: {norms: tensor, dense_over_expert: true}\n"
                              "mesh: {fsdp: 2, expert: 4}\n";

#define DENSE(...)   lower_text(dense, (const char *const[]){__VA_ARGS__, NULL})
#define EXPERTS(...) lower_text(experts, (const char *const[]){__VA_ARGS__, NULL})

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

/* deepseek3-671b-v5p512--mu_bf16: f32[6,58,128,192] lies without padding. */
static void stacks_keep_heads_apart(void **state)
{
    (void)state;
    struct low l = DENSE("mesh.fsdp=8");
    const struct hb_buf *q = &l.p.bufs[find(&l, "block.wq")];
    const struct hb_buf *o = &l.p.bufs[find(&l, "block.wo")];
    assert_int_equal(q->rank, 4);
    assert_int_equal(q->dim[2], 8);
    assert_int_equal(q->dim[3], 128);
    assert_int_equal(o->rank, 4);
    assert_int_equal(o->dim[1], 8);
    assert_int_equal(o->dim[3], 1024 / 8);
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
    struct low full = DENSE("remat.policy=full");
    struct low host = DENSE("remat.policy=names", "remat.offload=[q,k,v]");
    assert_false(any_lives_at(&full, "logits", "backward of flash attention"));
    assert_true(any_lives_at(&host, "logits", "backward of flash attention"));
    struct low kept =
        DENSE("mesh.fsdp=64", "batch.global=256", "remat.policy=names", "remat.save=[attn_out]");
    struct low split = DENSE("mesh.fsdp=64", "mesh.sequence=2", "batch.global=256",
                             "remat.policy=names", "remat.save=[attn_out]");
    assert_false(any_lives_at(&kept, "logits", "backward of flash attention"));
    assert_true(any_lives_at(&split, "logits", "backward of flash attention"));
}

/* llama3-70b-v5p128--remat_minimal_offloaded against --remat_qkv_proj_offloaded; llama3-8b over 8
 * devices, between rings: no copy. */
static void inputs_are_turned_whole(void **state)
{
    (void)state;
    struct low out = DENSE("mesh.fsdp=64", "remat.policy=names", "remat.offload=[attn_out]");
    struct low qkv = DENSE("mesh.fsdp=64", "remat.policy=names", "remat.offload=[q,k,v]");
    struct low ring = DENSE("remat.policy=names", "remat.offload=[attn_out]");
    assert_int_equal(bytes_of(&out, "layer inputs in another layout"), 4LL * 2048 * 1024 * 2);
    assert_int_equal(find(&qkv, "layer inputs in another layout"), HB_NONE);
    assert_int_equal(find(&ring, "layer inputs in another layout"), HB_NONE);
}

/* deepseek3-671b-v5p512--ep16: three tensors of the hidden width stand with five of the model's. */
static void travelling_rows_stand_together(void **state)
{
    (void)state;
    struct low l = EXPERTS("mesh.expert=4");
    int64_t rows = 8 * 2048 * 2 * 4;
    const struct hb_buf *scratch = &l.p.bufs[find(&l, "backward of tokens sorted by expert")];
    assert_int_equal(scratch->dim[0] * scratch->dim[1], 2 * rows);
    assert_true(any_lives_at(&l, "block.expert activation", "backward of tokens sorted by expert"));
    assert_true(any_lives_at(&l, "expert output, gradient", "backward of tokens sorted by expert"));
}

/* llama3-8b-v5p16--opt_host_offload: moments of three weights beside the new ones of the first. */
static void states_come_two_leaves_ahead(void **state)
{
    (void)state;
    struct low l = DENSE("optimizer.offload=pinned_host");
    static const char *const ahead[] = {"block.w_gate, first moment, copy",
                                        "block.w_up, second moment, copy",
                                        "block.w_down, second moment, copy",
                                        "block.w_gate, second moment, copy on the device, new"};
    for (int i = 0; i < 4; i++)
        assert_true(any_lives_at(&l, ahead[i], "update block.w_gate"));
    assert_false(any_lives_at(&l, ahead[1], "update block.wq"));
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
    assert_int_equal(find(&one, "chunks, gathered"), HB_NONE);
    assert_int_equal(bytes_of(&two, "chunks, gathered"), all);
    assert_int_equal(bytes_of(&two, "chunks, turned"), all);
}

/* base--llama3-8b--v5p-512: two bf16[4,8192,128256] at the loss; base--llama3-8b--v6e-64: one. */
static void the_own_rule_makes_a_gradient(void **state)
{
    (void)state;
    struct low v5p = DENSE("mesh.fsdp=256", "batch.global=256");
    struct low v6e = DENSE("mesh.fsdp=256", "batch.global=256", "hardware.device=tpu-v6e");
    assert_int_equal(bytes_of(&v5p, "gradient of the logits"), 2048LL * 32000 * 2);
    for (uint32_t i = 0; i < v6e.p.buf_count; i++)
        if (!strcmp(v6e.p.bufs[i].name, "gradient of the logits"))
            assert_int_not_equal(v6e.p.bufs[i].alias_of, HB_NONE);
}

/* base--llama3-8b--v5p-128: logits end with the loss, where that is the peak, and the head's whole
 * gradient waits, summed in its place; base--llama3-70b--v5p-128: the logits wait. */
static void logits_or_a_gradient_wait(void **state)
{
    (void)state;
    struct low loss = DENSE("mesh.fsdp=64", "batch.global=64", "model.vocab=256000");
    struct low back = DENSE("mesh.fsdp=64", "batch.global=64", "model.vocab=8000");
    assert_false(any_lives_at(&loss, "logits", "backward of flash attention"));
    assert_true(
        any_lives_at(&loss, "head, gradient before its sum", "backward of flash attention"));
    assert_true(any_lives_at(&back, "logits", "backward of flash attention"));
    assert_int_equal(find(&loss, "head, gradient summed"), HB_NONE);
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
    assert_true(any_lives_at(&l, "w_down, gradient before its sum", "backward of flash attention"));
}


int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_is_five_arrays),
        TEST(stacks_keep_heads_apart),
        TEST(biases_of_outputs_are_split),
        TEST(rows_are_those_that_can_come),
        TEST(logits_wait_for_what_comes_late),
        TEST(inputs_are_turned_whole),
        TEST(travelling_rows_stand_together),
        TEST(states_come_two_leaves_ahead),
        TEST(chunks_are_gathered_in_a_loop_only),
        TEST(the_own_rule_makes_a_gradient),
        TEST(gradients_follow_split_states),
        TEST(the_last_gradient_comes_first),
        TEST(logits_or_a_gradient_wait),
        TEST(narrow_weights_are_padded),
    };
    return cmocka_run_group_tests_name("lower_maxtext", tests, NULL, NULL);
}
