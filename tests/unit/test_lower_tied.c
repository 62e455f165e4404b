/* sim/ir/lower for XLA:TPU, a head that is the embedding's table: when its gradient is made and
 * what of the logits waits for it. Names are lab records without their "lab-tpu-". */
#include "tests/unit/lowered.h"

#define TIED(...)                                                                                  \
    lower_text(TPU_DENSE, (const char *const[]){"model.tied_embeddings=true", __VA_ARGS__, NULL})
#define UNTIED   "model.tied_embeddings=false"
#define BACKWARD "gradient through block.w_down"

/* tinyS/tied: in f32 the logits wait; in bf16, and with a master copy, the head's gradient does,
 * into which the lookup's is scattered; a bf16 product's logits wait before their cast. */
static void a_narrow_gradient_is_made_at_once(void **state)
{
    (void)state;
    const char *narrow = "precision.params=bf16";
    struct low wide = TIED("batch.accumulate=1");
    struct low dot = TIED(narrow, "loss.dot=bf16");
    assert_true(lives_at(&wide, "logits", BACKWARD));
    assert_true(lives_at(&dot, "logits before the cast", BACKWARD) ||
                lives_at(&dot, "gradient of the logits", BACKWARD));
}

/* gate/f16,s512 with tied: last of all, with the lookup's; not where a norm waits for it. */
static void few_tokens_leave_the_table_to_the_end(void **state)
{
    (void)state;
    const char *sets[] = {"mesh.fsdp=16", "batch.global=16", "batch.seq=512"};
    struct low last = TIED(sets[0], sets[1], sets[2]);
    assert_true(find_op(&last, "scatter embedding") > find_op(&last, "gradient of the head"));
    assert_true(find_op(&last, "update embedding") > find_op(&last, "scatter embedding"));
    struct low clip = TIED(sets[0], sets[1], sets[2], "optimizer.clip=true");
    assert_true(find_op(&clip, "gradient of the head") < find_op(&clip, "update block.w_up"));
}

/* tiny/tied of 1024 tokens a sequence and of 4 sequences; not of one, nor with q, k and v kept. */
static void probabilities_find_no_place(void **state)
{
    (void)state;
    const char *naive = "model.blocks[0].attention.kernel=naive", *seq = "batch.seq=1024";
    const char *gradient = "attention probabilities, gradient";
    struct low one = TIED(naive, seq, "batch.global=1");
    struct low kept = TIED(naive, "remat.policy=names", "remat.save=[q, k, v]");
    assert_int_equal(find(&one, gradient), HB_NONE);
    assert_int_equal(find(&kept, gradient), HB_NONE);
}

#define RING    "mesh.fsdp=8", "batch.seq=8192"
#define LOGITS  "logits"
#define NARROW  "gradient of the logits"
#define RINGSUM "head, gradient of the ring's other direction"

/* gemma2b,f8: the bf16 gradient waits, turned when it is read; with a bf16 moment the f32 logits as
 * well, turned at once; with clip (a list) the logits alone, accumulators before them; with one-hot
 * labels and clip none. */
static void the_sequence_of_a_tied_ring(void **state)
{
    (void)state;
    struct low depth = TIED(RING);
    struct low onehot = TIED(RING, "optimizer.clip=true", "loss.onehot=true");
    assert_false(lives_at(&depth, LOGITS, BACKWARD));
    assert_false(lives_at(&depth, RINGSUM, "softmax cross-entropy"));
    assert_false(lives_at(&onehot, LOGITS, BACKWARD));
}

/* smollm3 over 8 of v5e, states on the host: the f32 logits wait behind the layers,
 * with the loss's sum in the norm's collective; not without clipping. */
static void the_norm_takes_the_loss_along(void **state)
{
    (void)state;
    const char *v5e = "hardware.device=tpu-v5e", *host = "optimizer.offload=pinned_host";
    struct low clip = TIED(v5e, "mesh.fsdp=8", "batch.seq=4096", host, "optimizer.clip=true");
    struct low plain = TIED(v5e, "mesh.fsdp=8", "batch.seq=4096", host);
    assert_true(lives_at(&clip, LOGITS, BACKWARD));
    assert_false(lives_at(&plain, LOGITS, BACKWARD));
}

/* qwen3-4b over 8 of v5e with its loss in 8 chunks: f32[151936,320] a second time; not with the
 * loss in one, nor of whole rows of lanes. */
static void chunks_read_the_table_by_word(void **state)
{
    (void)state;
    const char *copy = "embedding, in the layout of its gradient", *d = "model.d_model=2560";
    struct low chunks = TIED(d, "mesh.fsdp=8", "loss.chunks=8");
    struct low whole = TIED(d, "mesh.fsdp=8");
    struct low rows = TIED("model.d_model=2048", "mesh.fsdp=8", "loss.chunks=8");
    assert_true(lives_at(&chunks, copy, BACKWARD));
    assert_int_equal(find(&whole, copy), HB_NONE);
    assert_int_equal(find(&rows, copy), HB_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_narrow_gradient_is_made_at_once), TEST(few_tokens_leave_the_table_to_the_end),
        TEST(the_sequence_of_a_tied_ring),       TEST(probabilities_find_no_place),
        TEST(the_norm_takes_the_loss_along),     TEST(chunks_read_the_table_by_word),
    };
    return cmocka_run_group_tests_name("lower_tied", tests, NULL, NULL);
}
