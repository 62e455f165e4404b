/* sim/ir/lower: what moves over an expert axis, by dispatch, program and compiler: the weights of a
 * plain program's ragged experts, MaxText's rows, all tokens of the axis. The figures in comments
 * are programs compiled ahead of time for v5p, H100 and MI300X. */
#include "tests/unit/lowered.h"

static const char plain[] =
    "hbmsim: 1\n"
    "model: {name: m, d_model: 1024, vocab: 32000, blocks: [{name: block, repeat: 4,\n"
    "  attention: {kind: gqa, heads: 16, kv_heads: 16, head_dim: 64, kernel: flash},\n"
    "  moe: {experts: 16, top_k: 2, d_ff: 2048, dispatch: ragged}}]}\n"
    "batch: {global: 32, seq: 2048}\n"
    "mesh: {fsdp: 2, expert: 4}\n"
    "hardware: {count: 8}\n";

#define ON_TPU       TPU, "hardware.device=tpu-v5p"
#define EXPERTS(...) lower_text(plain, (const char *const[]){__VA_ARGS__, NULL})

enum { TOKENS = 4 * 2048, D = 1024, F = 2048, ALL = 16 };

/* How many ops of a kind work on the axis; the group and the bytes of the last. */
struct traffic {
    int count;
    int64_t group;
    double sent_bytes;
};

static struct traffic over(const struct low *l, enum hb_axis axis, enum hb_op_kind kind)
{
    struct traffic t = {0};
    for (uint32_t i = 0; i < l->p.op_count; i++) {
        const struct hb_op *op = &l->p.ops[i];
        if (op->kind != kind || op->axis != axis)
            continue;
        assert_int_equal(op->stream, HB_STREAM_COLLECTIVE + (int)axis);
        t = (struct traffic){t.count + 1, op->group, op->sent_bytes};
    }
    return t;
}

/* Experts of 64 over fsdp 2 and expert 4: all-gather to bf16[64,2048,1408], and the sum of the
 * whole gradient. No exchange of rows. */
static void a_plain_programs_weights_come(void **state)
{
    (void)state;
    double whole = 2.0 * ALL * D * F;
    struct low tpu = EXPERTS(ON_TPU), cuda = EXPERTS(CUDA);
    const struct low *both[] = {&tpu, &cuda};
    for (int i = 0; i < 2; i++) {
        struct traffic gather = over(both[i], HB_AX_EXPERT, HB_OP_ALL_GATHER);
        struct traffic sum = over(both[i], HB_AX_EXPERT, HB_OP_ALL_REDUCE);
        assert_true(gather.count >= 6 && sum.count == 3);
        assert_true(gather.group == 8 && sum.group == 8);
        assert_true(gather.sent_bytes == whole && sum.sent_bytes == whole);
        assert_int_equal(over(both[i], HB_AX_EXPERT, HB_OP_ALL_TO_ALL).count, 0);
        assert_int_equal(bytes_of(both[i], "e_down, gathered"), whole);
    }
}

/* ragged_all_to_all: there and back, again, and the gradients of both. What is sent is the rows
 * that there are, not the buffer of the worst case. */
static void maxtexts_rows_are_exchanged(void **state)
{
    (void)state;
    struct low l = EXPERTS(ON_TPU, "runtime.framework=maxtext");
    struct traffic rows = over(&l, HB_AX_EXPERT, HB_OP_ALL_TO_ALL);
    assert_true(rows.count >= 4);
    assert_int_equal(rows.group, 4);
    assert_true(rows.sent_bytes == 4.0 * TOKENS * 2 * D * 2);
    assert_int_equal(over(&l, HB_AX_EXPERT, HB_OP_ALL_GATHER).count, 0);
    assert_int_equal(bytes_of(&l, "tokens sorted by expert"), 2LL * TOKENS * 2 * 4 * D);
}

/* The axis's tokens come, their outputs are summed; backwards the other way round. */
static void gathered_tokens_are_summed(void **state)
{
    (void)state;
    struct low l = EXPERTS(ON_TPU, "model.blocks[0].moe.dispatch=allgather");
    double all = 2.0 * TOKENS * 4 * D;
    struct traffic gather = over(&l, HB_AX_EXPERT, HB_OP_ALL_GATHER);
    struct traffic sum = over(&l, HB_AX_EXPERT, HB_OP_REDUCE_SCATTER);
    assert_true(gather.count >= 2 && sum.count >= 2);
    assert_true(gather.sent_bytes == all && sum.sent_bytes == all);
    assert_int_equal(over(&l, HB_AX_EXPERT, HB_OP_ALL_TO_ALL).count, 0);
}

/* H100: bf16[98304,131072] times bf16[131072,1408] where a row is 2048 wide and experts are 64. */
static void spread_operands_multiply_zeros(void **state)
{
    (void)state;
    struct low cuda = EXPERTS(CUDA), tpu = EXPERTS(ON_TPU, "model.blocks[0].moe.kernel=ragged_dot");
    double spread = cuda.p.ops[find_op(&cuda, "expert gate")].flops;
    assert_true(spread == ALL * tpu.p.ops[find_op(&tpu, "expert gate")].flops);
}

/* olmoe, einsum over fsdp 32 and expert 2: on v6e and v5p all of the batch, of which a device's are
 * cut, when no product of the experts is left (1024 sequences: bf16[1024,2048,2048] at 1300 of
 * 1755); a device's tokens come before, to all of the axis (bf16[32,2048,2048] of 16). */
static void the_batch_is_gathered_last(void **state)
{
    (void)state;
    static const char *const set[] = {"model.blocks[0].moe.dispatch=einsum", "mesh.fsdp=8"};
    static const char batch[] = "backward of tokens of the expert axis";
    struct low late = EXPERTS(ON_TPU, set[0], set[1], "hardware.count=32", "batch.global=128");
    int64_t sequence = 2LL * 2048 * D;
    assert_int_equal(bytes_of(&late, "tokens of the expert axis, scratch"), 128 * sequence);
    assert_int_equal(bytes_of(&late, "block.tokens of the expert axis"), 16 * sequence);
    assert_false(lives_at(&late, "block.expert up", batch));
    assert_false(lives_at(&late, "expert inputs", batch));
}

/* XLA:TPU's list runs a ring once nothing frees memory. Where a weight is less than its rows the
 * next product frees none (olmoe, fsdp 32 with expert 2, 16 sequences, v6e: rings at 299, 307 and
 * 317, outputs made again at 322); where it is more that comes first (mixtral, fsdp 16 with expert
 * 4, two sequences, v5p: 294, rings from 355 on, all of the batch at 379). */
static void rings_wait_for_what_frees(void **state)
{
    (void)state;
    static const char einsum[] = "model.blocks[0].moe.dispatch=einsum";
    static const char combine[] = "moe combine weights, gradient";
    struct low many =
        EXPERTS(ON_TPU, einsum, "mesh.fsdp=8", "hardware.count=32", "batch.global=512");
    struct low few = EXPERTS(ON_TPU, einsum, "mesh.fsdp=8", "hardware.count=32", "batch.global=32",
                             "batch.seq=512");
    assert_true(find_op(&many, combine) > find_op(&many, "gradient of block.e_up"));
    assert_true(find_op(&few, combine) < find_op(&few, "gradient of block.e_up"));
    assert_true(find_op(&few, "gradient of block.e_up") <
                find_op(&few, "backward of tokens of the expert axis"));
}

/* What a product with gathered weights adds against the masks' gradient decides which is first
 * (olmoe, v6e: over 8 and 4, 640 places, that before both products at 1508 and 1647; over 16 and 2,
 * 1280 places, behind them and the tokens', at 1449 to 1454). Rings leave no whole gradient. */
static void masks_and_products_come_by_size(void **state)
{
    (void)state;
    static const char einsum[] = "model.blocks[0].moe.dispatch=einsum";
    static const char wide[] = "moe combine weights, gradient";
    static const char product[] = "gradient through block.e_up";
#define NARROW(k, s)                                                                               \
    EXPERTS(TPU, "hardware.device=tpu-v6e", einsum, "mesh.fsdp=8", "hardware.count=32",            \
            "batch.global=128", "model.blocks[0].moe.experts=64", "model.blocks[0].moe.d_ff=512",  \
            "model.blocks[0].moe.top_k=" k, "batch.seq=" s)
    struct low few = NARROW("16", "2048"), many = NARROW("8", "4096");
    assert_true(find_op(&few, wide) < find_op(&few, product));
    assert_true(find_op(&many, wide) > find_op(&many, product));
    assert_int_equal(find(&many, "e_up, gradient before its sum"), HB_NONE);
    assert_true(find(&many, "expert inputs, turned") != HB_NONE);
}

/* Rows of more than 2^31 bytes are made one after another (mixtral, fsdp 8, 4 sequences of 8192:
 * gate, up, their gradients and the activation of 2240 MiB each at 340 of 745), others in one
 * fusion, in the places of what it reads (dbrx, 2 sequences: three of 1344 MiB). */
static void large_rows_have_places_of_their_own(void **state)
{
    (void)state;
    static const char wide[] = "model.blocks[0].moe.d_ff=14336";
    struct low large = EXPERTS(ON_TPU, "model.blocks[0].moe.dispatch=einsum", "mesh.fsdp=8",
                               "mesh.expert=1", wide, "batch.global=128");
    struct low small = EXPERTS(ON_TPU, "model.blocks[0].moe.dispatch=einsum", "mesh.fsdp=8",
                               "mesh.expert=1", "batch.global=64");
    static const char back[] = "backward of expert activation";
    assert_true(bytes_of(&large, "block.expert up") > INT32_MAX);
    assert_true(lives_at(&large, "expert activation, gradient", back));
    assert_true(bytes_of(&small, "block.expert up") < INT32_MAX);
    assert_int_equal(find(&small, "expert activation, gradient"), HB_NONE);
}

/* Over fsdp 2 and expert 4, v5p, the combine weights' gradient comes before the experts', at 185
 * of 524. */
static void combine_weights_of_few_ways_come_first(void **state)
{
    (void)state;
    struct low few = EXPERTS(ON_TPU, "model.blocks[0].moe.dispatch=einsum", "mesh.fsdp=2");
    assert_true(lives_at(&few, "moe combine weights, gradient", "backward of moe output"));
}

/* Products of gathered tokens are ragged as well: over an axis of one the same step, over four each
 * device spreads four times the rows over a fourth of the experts. */
static void gathered_rows_are_ragged(void **state)
{
    (void)state;
    static const char gathered[] = "model.blocks[0].moe.dispatch=allgather";
    struct low ragged = EXPERTS(CUDA, "mesh.expert=1", "mesh.fsdp=8");
    struct low alone = EXPERTS(CUDA, "mesh.expert=1", "mesh.fsdp=8", gathered);
    struct low four = EXPERTS(CUDA, gathered), own = EXPERTS(CUDA);
    double spread = own.p.ops[find_op(&own, "expert gate")].flops;
    assert_int_equal(alone.p.op_count, ragged.p.op_count);
    for (uint32_t i = 0; i < ragged.p.op_count; i++)
        assert_true(alone.p.ops[i].flops <= ragged.p.ops[i].flops &&
                    alone.p.ops[i].flops >= ragged.p.ops[i].flops);
    assert_int_equal(bytes_of(&alone, "scratch"), bytes_of(&ragged, "scratch"));
    assert_true(four.p.ops[find_op(&four, "expert gate")].flops == spread);
}

#define EINSUM "model.blocks[0].moe.dispatch=einsum"

/* Masks of an einsum on CUDA, 64 experts of one device with a sequence of 8192: the dispatch mask
 * is made inside the products that read it and has no gradient, the weights' gradient comes when
 * the weights are gone (bf16[8192,64,1280] from 296 to 319, bf16[8192,81920] from 322); of two
 * sequences beside them (both at 334), of gathered experts taken at once (olmoe, fsdp 64, two of
 * 2048: from 111 to 117, the tokens' at 128), above the memory limit not (qwen30b, fsdp 32). */
static void masks_are_two_or_one(void **state)
{
    (void)state;
    static const char last[] = "combine weights, gradient of", dx[] = "backward of expert inputs";
    struct low one =
        EXPERTS(CUDA, EINSUM, "mesh.fsdp=1", "mesh.expert=1", "hardware.count=1", "batch.global=1");
    struct low two =
        EXPERTS(CUDA, EINSUM, "mesh.fsdp=1", "mesh.expert=1", "hardware.count=1", "batch.global=2");
    struct low many = EXPERTS(CUDA, EINSUM, "mesh.fsdp=8", "mesh.expert=1");
    struct low tight = EXPERTS(CUDA, EINSUM, "mesh.fsdp=8", "mesh.expert=1", "hardware.hbm=1GiB");
    const struct low *all[] = {&one, &many, &tight, &two};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(find(all[i], "dispatch mask, gradient"), HB_NONE);
        assert_int_equal(find(all[i], "dispatch mask"), HB_NONE);
        assert_int_equal(lives_at(all[i], "combine weights, gradient", dx), all[i] == &two);
    }
    assert_true(find_op(&one, last) > find_op(&one, dx));
    assert_true(find_op(&tight, last) > find_op(&tight, dx));
}

/* olmoe on H100, fsdp 64 with two sequences of 2048 each: products over sequences have these
 * outermost, those over experts the experts. Gradients come through the copies, the outputs' before
 * the outputs; the weights' wait and read what was turned in another layout, again. Of one sequence
 * nothing is turned. */
static void rows_of_several_sequences_are_turned(void **state)
{
    (void)state;
    struct low l = EXPERTS(CUDA, EINSUM, "mesh.fsdp=8", "mesh.expert=1");
    struct low one = EXPERTS(CUDA, EINSUM, "mesh.fsdp=8", "mesh.expert=1", "batch.global=8");
    const char *down = "gradient of block.e_down", *sum = "backward of moe output";
    assert_int_equal(find(&one, "turned"), HB_NONE);
    assert_int_equal(bytes_of(&l, "expert inputs, turned"), bytes_of(&l, "expert inputs"));
    assert_true(find_op(&l, sum) < find_last_op(&l, "expert output, turned"));
    assert_true(find_last_op(&l, "through block.wq") < find_last_op(&l, down));
    assert_true(lives_at(&l, "expert output, turned, gradient", "turn gradient again"));
    assert_false(lives_at(&l, "expert output, gradient", "through block.wq"));
}

/* olmoe, fsdp 2 with tensor 8: bf16[4096,64,2560] of 32768 tokens with sp_residual. */
static void masks_are_split_as_the_residual(void **state)
{
    (void)state;
    struct low whole = EXPERTS(CUDA, EINSUM, "mesh.expert=1", "mesh.tensor=4");
    struct low split = EXPERTS(CUDA, EINSUM, "mesh.expert=1", "mesh.tensor=4",
                               "sharding.residual_over_tensor=true");
    int64_t bytes = bytes_of(&whole, "moe combine weights");
    assert_true(bytes > 0);
    assert_int_equal(bytes_of(&split, "moe combine weights"), bytes / 4);
}

/* Over a pipeline's stages rows are exchanged and no tokens gathered: between the products and the
 * outputs put together there is an all-to-all, which has no weight (drawn: test_floors, 28019). */
static void a_stages_rows_are_exchanged_beside_rings(void **state)
{
    (void)state;
    struct low l = EXPERTS(ON_TPU, EINSUM, "mesh.fsdp=8", "mesh.pipeline=2",
                           "pipeline.microbatches=2", "hardware.count=64", "batch.global=128");
    assert_true(over(&l, HB_AX_EXPERT, HB_OP_ALL_TO_ALL).count > 0);
    assert_int_equal(over(&l, HB_AX_EXPERT, HB_OP_ALL_GATHER).count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plain_programs_weights_come),
        TEST(maxtexts_rows_are_exchanged),
        TEST(gathered_tokens_are_summed),
        TEST(spread_operands_multiply_zeros),
        TEST(gathered_rows_are_ragged),
        TEST(masks_are_two_or_one),
        TEST(masks_are_split_as_the_residual),
        TEST(rings_wait_for_what_frees),
        TEST(masks_and_products_come_by_size),
        TEST(large_rows_have_places_of_their_own),
        TEST(combine_weights_of_few_ways_come_first),
        TEST(the_batch_is_gathered_last),
        TEST(rows_of_several_sequences_are_turned),
        TEST(a_stages_rows_are_exchanged_beside_rings),
    };
    return cmocka_run_group_tests_name("lower: experts", tests, NULL, NULL);
}
