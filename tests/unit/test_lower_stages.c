/* sim/ir/lower for XLA:TPU, a pipeline's stages: casts, what is gathered of the outputs, the head.
 * Names are lab records without their "lab-tpu-". */
#include "tests/unit/lowered.h"

#define STAGES(...) lower_text(TPU_STAGES, (const char *const[]){__VA_ARGS__, NULL})
#define SAME        "batch.accumulate=1" /* where nothing is changed */

/* PP/base: a second bf16 copy of each stack through the forward iterations, none where the cast is
 * made upfront. */
static void a_stage_hands_out_its_casts(void **state)
{
    (void)state;
    struct low base = STAGES(SAME), upfront = STAGES("step.cast=upfront");
    const char *copy = "w_up, cast handed out", *loss = "softmax cross-entropy";
    assert_true(lives_at(&base, copy, "shift stages"));
    assert_false(lives_at(&base, copy, loss));
    assert_int_equal(find(&upfront, copy), HB_NONE);
    assert_false(lives_at(&base, "w_up, gradient", loss));
}

/* 70B,pp4f16t4,m8 and 8B,pp2f8,m4: twice whole; pp4f4,m8 not. */
static void more_devices_than_microbatches_gather(void **state)
{
    (void)state;
    struct low few = STAGES("mesh.fsdp=4");
    struct low many = STAGES("mesh.fsdp=16", "batch.global=128");
    const char *whole = "gradients of the iterations' outputs, gathered";
    assert_int_equal(find(&few, whole), HB_NONE);
    assert_int_equal(buf_of(&many, whole)->bytes, 2LL * 16 * 16 * 2048 * 1024);
    assert_true(lives_at(&many, whole, "iterations in order"));
}

/* PP/fsdp=2: each stage makes the rows of one part; 8B,pp2f8,m4,names: two stages of eight do not.
 */
static void stages_share_the_heads_gradient(void **state)
{
    (void)state;
    const char *part = "head, gradient before its sum";
    struct low even = STAGES("mesh.fsdp=2", SAME), odd = STAGES("mesh.fsdp=8", "batch.global=64");
    assert_int_equal(2 * bytes_of(&even, part), bytes_of(&odd, part));
    assert_true(lives_at(&even, "block.w_up, cast once", "gradient of the head"));
}

/* Of the stacks of all iterations one of them moves in a trip, whatever the op. */
static void an_iteration_moves_its_part(void **state)
{
    (void)state;
    static const char *const names[] = {
        "select microbatch or state", "iteration input into its stack",
        "output of the iteration",    "input out of its stack",
        "add gradient of the output", "gradient of the input into its stack"};
    struct low l = STAGES("pipeline.remat_iteration=true");
    double state_bytes = (double)bytes_of(&l, "state from the stage before");
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        uint32_t op = 0;
        while (op < l.p.op_count && !hb_str_same(l.p.ops[op].name, names[n]))
            op++;
        assert_true(op < l.p.op_count);
        assert_true(l.p.ops[op].moved_bytes > 0 && l.p.ops[op].moved_bytes <= 3 * state_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_iteration_moves_its_part),
        TEST(a_stage_hands_out_its_casts),
        TEST(more_devices_than_microbatches_gather),
        TEST(stages_share_the_heads_gradient),
    };
    return cmocka_run_group_tests_name("lower_stages", tests, NULL, NULL);
}
