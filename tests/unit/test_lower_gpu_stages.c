/* sim/ir/lower for XLA:GPU, a pipeline's stages with their layers side by side: what their loops
 * carry, what iterations that run again make, in which order weight gradients come. Names are lab
 * records without their "lab-". */
#include "tests/unit/lowered.h"

#include "sim/engine/live.h"

static const char stages[] = GPU_STAGES;

#define SPLIT  "sharding.ends_over_pipeline=true"
#define NAIVE  "model.blocks[0].attention.kernel=naive"
#define BLOCKS "model.blocks[0].attention.kernel=blocked", "model.blocks[0].attention.block=512"

#define STAGES(...) lower_text(stages, (const char *const[]){__VA_ARGS__, NULL})

/* rocm-pr85--pp8--good: the place of the state's gradient is empty while the layers run backwards.
 */
static void a_state_that_was_read_leaves_its_place(void **state)
{
    (void)state;
    struct low l = STAGES(ROCM, BLOCKS);
    uint32_t place = find(&l, "gradient of the state"),
             at = find_op(&l, "gradient through block.wq");
    uint32_t parts = 0, alive = 0;
    for (uint32_t i = 0; i < l.m.part_count; i++) {
        const struct hb_live_part *part = &l.m.parts[i];
        if (l.m.live[part->live].buf != place)
            continue;
        parts++;
        alive += part->span.start <= (int32_t)at && part->span.end >= (int32_t)at;
    }
    assert_int_equal(parts, 3);
    assert_int_equal(alive, 0);
}

/* pr85--pp8--good: the last norm's gradient reads the stack of outputs again, and what it makes on
 * each stage is joined; ep2pp4--good: after an exchange. */
static void a_loss_over_stages_reads_the_stack(void **state)
{
    (void)state;
    struct low l = STAGES(CUDA, SPLIT), whole = STAGES(CUDA);
    const char *join = "gradients of outputs of all stages";
    assert_true(lives_at(&l, "outputs of the iterations", "backward of the last norm"));
    assert_int_equal(bytes_of(&l, join), 2LL * 32 * 2048 * 1024);
    assert_int_equal(find(&whole, join), HB_NONE);
    struct low two = STAGES(CUDA, SPLIT, "mesh.expert=2");
    assert_true(lives_at(&two, "outputs of the pipeline, exchanged", "backward of the last norm"));
    assert_false(lives_at(&two, "outputs of the iterations", "softmax cross-entropy"));
}

static uint32_t count_ops(const struct low *l, const char *name, enum hb_phase phase)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->p.op_count; i++)
        n += l->p.ops[i].phase == phase && strcmp(l->p.ops[i].name, name) == 0;
    return n;
}

/* codellama-34b on H100, fsdp 16 with two stages, dots: bf16[8,16,4096,8192] of the outputs'
 * gradients is gathered and an iteration's taken before its layers run again, in a loop; of layers
 * side by side while the last one does. */
static void an_iteration_s_gradient_is_taken_first(void **state)
{
    (void)state;
    struct low l = STAGES(CUDA, "stack.form=scan", "mesh.fsdp=2", "hardware.count=8");
    const char *whole = "outputs, gathered", *again = "input out of its stack";
    assert_true(lives_at(&l, whole, "gradient of an iteration's output"));
    assert_false(lives_at(&l, whole, again));
    assert_true(find_op(&l, "gradient of an iteration's output") < find_op(&l, again));
}

/* llama3-8b on H100, four stages with fsdp 8, chunks of a product in bf16: bf16[4096,128256] once,
 * from 2 to 24 of 31; in f32 twice. */
static void stages_gather_a_narrow_head_once(void **state)
{
    (void)state;
    const char *scan = "stack.form=scan", *fsdp = "mesh.fsdp=2", *two = "loss.chunks=2";
    struct low narrow = STAGES(CUDA, scan, fsdp, two, "loss.dot=bf16");
    struct low wide = STAGES(CUDA, scan, fsdp, two);
    assert_int_equal(count_ops(&narrow, "gather head", HB_PHASE_BACKWARD), 1);
    assert_int_equal(count_ops(&wide, "gather head", HB_PHASE_BACKWARD), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_state_that_was_read_leaves_its_place),
        TEST(a_loss_over_stages_reads_the_stack),
        TEST(an_iteration_s_gradient_is_taken_first),
        TEST(stages_gather_a_narrow_head_once),
    };
    return cmocka_run_group_tests_name("lower_gpu_stages", tests, NULL, NULL);
}
