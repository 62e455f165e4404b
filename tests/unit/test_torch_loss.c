/* sim/eager: what the logits, the loss and the models that a loss needs beside the policy allocate
 * under torch, against arithmetic by hand. */
#include "tests/unit/torch_step.h"

/* An eager loss: log-probabilities, their gradient and that of the logits, each in f32. */
static void logits_stand_three_times(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m = run_keys("remat: {policy: full}\n", &p);
    const int64_t once = 2048 * (int64_t)32000 * 4;
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 3 * once);
    m = run_keys("remat: {policy: full}\nloss: {kernel: compiled}\n", &p);
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 3 * once / 2);
}

/* All chunks' gradients stand before the head's first product: no f32 copy of all tokens. */
static void chunks_of_the_loss(void **state)
{
    (void)state;
    const int64_t logits = 4096 * INT64_C(32000) * 2;
    int64_t one = run_tune("optimizer: {in_backward: true}\nremat: {policy: full}\n").peak_bytes;
    struct hb_memory m = run_tune("optimizer: {in_backward: true}\nremat: {policy: full}\n"
                                  "loss: {chunks: 8}\n");
    assert_true(m.category_bytes[HB_CAT_LOGITS] <= logits + 3 * logits / 8);
    assert_true(m.category_bytes[HB_CAT_LOGITS] >= logits - logits / 4);
    assert_true(m.peak_bytes < one - logits);
}

/* Head and loss in one op: a piece of 64 tokens, as 32000 words are 32 times the width. */
static void head_and_loss_in_one(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m = run_keys("remat: {policy: full}\nloss: {kernel: linear}\n", &p);
    int pieces = 0;
    for (uint32_t b = 0; b < p.buf_count; b++) {
        if (p.bufs[b].category != HB_CAT_LOGITS)
            continue;
        pieces++;
        assert_int_equal(p.bufs[b].bytes, 64 * 32000 * 2);
    }
    assert_int_equal(pieces, 2); /* one a step */
    assert_true(m.peak_bytes < peak("remat: {policy: full}\nloss: {kernel: compiled}\n"));
}

/* GRPO: log-probabilities stay sequence by sequence in the logits' dtype, a reference stands beside
 * the policy in compute's. */
static void log_probabilities_by_sequence(void **state)
{
    (void)state;
    static const char grpo[] = "remat: {policy: full}\nbatch: {global: 32, seq: 2048}\n"
                               "loss: {kind: grpo}\n";
    static const char alone[] = "remat: {policy: full}\nbatch: {global: 32, seq: 2048}\n"
                                "loss: {kind: grpo, reference: false}\n";
    const int64_t once = 2048 * INT64_C(32000) * 2;
    struct hb_program p;
    struct hb_memory m = run_keys(grpo, &p);
    assert_int_equal(largest(&p, "log-probabilities of a sequence"), once);
    assert_int_equal(largest(&p, "a part's entropy by word"), once / 16);
    int64_t policy = 0, reference = 0, parts = 0;
    for (uint32_t i = 0; i < p.buf_count; i++) {
        if (p.bufs[i].category == HB_CAT_PARAMS && strncmp(p.bufs[i].name, "reference.", 10) == 0)
            reference += p.bufs[i].bytes;
        else if (p.bufs[i].category == HB_CAT_PARAMS)
            policy += p.bufs[i].bytes;
        parts += hb_str_ends(p.bufs[i].name, "gradient of a sequence's logits");
    }
    const int64_t table = 2048 * 32 * 8; /* of rope, of each */
    assert_int_equal(policy - table, 2 * (reference - table));
    assert_int_equal(parts, 2 * 4); /* in two steps */
    assert_true(m.category_bytes[HB_CAT_LOGITS] <= 2 * 4 * once + once / 4);
    int64_t more = m.peak_bytes - run_keys(alone, &p).peak_bytes;
    assert_in_range(more, reference, reference + 512 * 1024); /* blocks that are not split */
}

/* PPO's value model: the policy's weights again but for its head, of one row; its moments too, its
 * streams its own. */
static void value_model_beside_the_policy(void **state)
{
    (void)state;
    static const char both[] = "remat: {policy: full}\nbatch: {global: 32, seq: 2048}\n"
                               "loss: {kind: grpo, value: true}\n";
    static const char alone[] = "remat: {policy: full}\nbatch: {global: 32, seq: 2048}\n"
                                "loss: {kind: grpo}\n";
    struct hb_program p;
    int64_t before = run_keys(alone, &p).argument_bytes, value = 0, policy = 0, head = 0;
    struct hb_memory m = run_keys(both, &p);
    unsigned pools = 0;
    for (uint32_t i = 0; i < p.buf_count; i++) {
        bool own = strncmp(p.bufs[i].name, "value.", 6) == 0;
        bool other = strncmp(p.bufs[i].name, "reference.", 10) == 0;
        pools |= 1u << p.lives[i].pool;
        if (p.bufs[i].category != HB_CAT_PARAMS || other ||
            strcmp(p.bufs[i].name, "table of rope") == 0)
            continue;
        *(own ? &value : &policy) += p.bufs[i].bytes;
        if (strcmp(p.bufs[i].name, "head") == 0)
            head = p.bufs[i].bytes;
    }
    const int64_t row = 1024 * 4, rope = 2048 * 32 * 8;
    assert_int_equal(value, policy - head + row);
    assert_in_range(m.argument_bytes - before, 3 * value + rope, 3 * value + rope + 1024 * 1024);
    assert_int_equal(pools, 1u << 0 | 3u << 1 | 1u << 4 | 3u << 7);
}

/* A name that is kept holds the logits of a step until the next one's are made. */
static void logits_that_are_held(void **state)
{
    (void)state;
    struct hb_program p;
    const int64_t once = 2048 * INT64_C(32000) * 4;
    struct hb_memory m = run_keys("remat: {policy: full}\nloss: {held: f32}\n", &p);
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 4 * once);
    m = run_keys("remat: {policy: full}\nloss: {held: compute}\n", &p);
    assert_int_equal(m.category_bytes[HB_CAT_LOGITS], 3 * once + once / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(logits_stand_three_times),      TEST(chunks_of_the_loss),
        TEST(head_and_loss_in_one),          TEST(log_probabilities_by_sequence),
        TEST(value_model_beside_the_policy), TEST(logits_that_are_held),
    };
    return cmocka_run_group_tests_name("torch loss", tests, NULL, NULL);
}
