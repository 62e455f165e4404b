/* sim/ir/lower for XLA:TPU, a head that is the embedding's table: when its gradient is made and
 * what of the logits waits for it. Names are lab records without their "lab-tpu-". */
#include "tests/unit/lowered.h"

static const char text[] = "model:\n"
                           "  d_model: 1024\n"
                           "  vocab: 32000\n"
                           "  tied_embeddings: true\n"
                           "  blocks:\n"
                           "    - name: block\n"
                           "      repeat: 4\n"
                           "      attention: {heads: 8, kv_heads: 8, head_dim: 128}\n"
                           "      mlp: {d_ff: 2816}\n"
                           "batch: {global: 8, seq: 2048}\n"
                           "mesh: {data: 1}\n"
                           "hardware: {device: tpu-v5p}\n"
                           "compiler: xla-tpu\n";

#define TIED(...) lower_text(text, (const char *const[]){__VA_ARGS__, NULL})
#define UNTIED    "model.tied_embeddings=false"
#define BACKWARD  "gradient through block.w_down"

/* tinyS/tied: in f32 the logits wait; in bf16, and with a master copy, the head's gradient does,
 * into which the lookup's is scattered; a bf16 product's logits wait before their cast. */
static void a_narrow_gradient_is_made_at_once(void **state)
{
    (void)state;
    const char *narrow = "precision.params=bf16", *master = "precision.master=f32";
    struct low wide = TIED("batch.accumulate=1"), low = TIED(narrow), copy = TIED(narrow, master);
    struct low dot = TIED(narrow, "loss.dot=bf16"), loop = TIED(narrow, "batch.accumulate=2");
    assert_true(lives_at(&wide, "logits", BACKWARD));
    assert_false(lives_at(&low, "logits", BACKWARD));
    assert_true(lives_at(&low, "head, gradient", BACKWARD));
    assert_false(lives_at(&copy, "logits", BACKWARD));
    assert_true(lives_at(&dot, "logits before the cast", BACKWARD) ||
                lives_at(&dot, "gradient of the logits", BACKWARD));
    assert_true(lives_at(&loop, "logits", BACKWARD));
}

/* gate/f16,s512 with tied: last of all, with the lookup's; not where a norm waits for it. */
static void few_tokens_leave_the_table_to_the_end(void **state)
{
    (void)state;
    const char *sets[] = {"mesh.fsdp=16", "batch.global=16", "batch.seq=512", NULL};
    struct low last = lower_text(text, sets);
    assert_true(find_op(&last, "gradient of the head") > find_op(&last, "update block.w_up"));
    assert_true(find_op(&last, "scatter embedding") > find_op(&last, "gradient of the head"));
    assert_true(find_op(&last, "update embedding") > find_op(&last, "scatter embedding"));
    struct low clip = TIED(sets[0], sets[1], sets[2], "optimizer.clip=true");
    assert_true(find_op(&clip, "gradient of the head") < find_op(&clip, "update block.w_up"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_narrow_gradient_is_made_at_once),
        TEST(few_tokens_leave_the_table_to_the_end),
    };
    return cmocka_run_group_tests_name("lower_tied", tests, NULL, NULL);
}
