/* sim/ir/lower for XLA:TPU: muon's iterations between gathers (8B,f64,muon on v5p and v6e). */
#include "tests/unit/lowered.h"

#define MUON(...)                                                                                  \
    lower_text(TPU_DENSE,                                                                          \
               (const char *const[]){"model.blocks[0].attention.kv_heads=4", "batch.global=64",    \
                                     "mesh={fsdp: 64}", "optimizer={name: muon, moments: [f32]}",  \
                                     __VA_ARGS__, NULL})
#define SAME  "batch.accumulate=1"
#define V6E   "hardware.device=tpu-v6e"
#define ZEROS "w_up, muon iterate, padded with zeros"
#define WHOLE "w_up, muon iterate, gathered"

static int count_ops(const struct low *l, const char *text_in_name)
{
    int n = 0;
    for (uint32_t i = 0; i < l->p.op_count; i++)
        n += strstr(l->p.ops[i].name, text_in_name) != NULL;
    return n;
}

/* Padded: zeros of the whole stack, then their sum; else one gathered stack. Five passes each. */
static void iterates_are_gathered(void **state)
{
    (void)state;
    struct low padded = MUON(SAME), plain = MUON(V6E);
    assert_int_equal(bytes_of(&padded, ZEROS), 2LL * 4 * 1024 * 2816);
    assert_int_equal(bytes_of(&padded, WHOLE), 2LL * 4 * 1024 * 2816);
    assert_true(lives_at(&padded, ZEROS, "gather iterate of block.w_up"));
    assert_int_equal(find(&plain, ZEROS), HB_NONE);
    assert_int_equal(bytes_of(&plain, WHOLE), 2LL * 4 * 1024 * 2816);
    assert_int_equal(count_ops(&padded, "square of block.w_up"), 5);
    assert_int_equal(count_ops(&plain, "square of block.w_up"), 5);
    assert_int_equal(bytes_of(&padded, "w_up, share of the muon square"), 2LL * 4 * 16 * 1024);
}

static double flops_of(const struct low *l, const char *text_in_name)
{
    double flops = 0;
    for (uint32_t i = 0; i < l->p.op_count; i++)
        if (strstr(l->p.ops[i].name, text_in_name))
            flops += l->p.ops[i].flops;
    return flops;
}

/* Each device makes its share of the products, whichever dimension is split (4 layers of 2048 and
 * 8192 on v5p:2x2x2, f8: bf16[4,256,2048] of bf16[4,256,8192] and bf16[4,2048,8192], fourteen
 * times); a data axis repeats them. */
static void products_are_shared(void **state)
{
    (void)state;
    double whole = 5 * 6 * 4.0 * 1024 * 2816 * 1024;
    struct low gathered = MUON(SAME), plain = MUON(V6E), rings = MUON("mesh={fsdp: 8}"),
               data = MUON("mesh={data: 64}");
    assert_true(flops_of(&gathered, "square of block.w_up") == whole / 64);
    assert_true(flops_of(&plain, "square of block.w_up") == whole / 64);
    assert_true(flops_of(&rings, "update block.w_up") == whole / 8);
    assert_true(flops_of(&rings, "update block.w_down") == whole / 8);
    assert_true(flops_of(&data, "update block.w_up") == whole);
}

/* One sequence's logits wait, those of two do not, whose head's gradient is made while the gathered
 * head is there, a bf16 product's summed in its place (8B,f64,b4,onehot). */
static void logits_of_one_sequence_wait(void **state)
{
    (void)state;
    const char *back = "gradient through block.w_down", *two = "batch.global=128";
    struct low one = MUON(SAME), more = MUON(two), dot = MUON(two, "loss.dot=bf16");
    assert_true(lives_at(&one, "logits", back));
    assert_false(lives_at(&more, "logits", back));
    assert_int_not_equal(find(&more, "head, gradient summed"), HB_NONE);
    assert_int_equal(find(&dot, "head, gradient summed"), HB_NONE); /* not a place of its own */
}

/* All momenta are renewed, and the head's gradient made, before any iteration. */
static void gradients_are_gone_before(void **state)
{
    (void)state;
    struct low v6e = MUON(V6E, "batch.seq=512");
    assert_true(find_op(&v6e, "gradient of the head") < find_op(&v6e, "iterate of block.wq"));
    assert_false(lives_at(&v6e, "w_up, gradient", "iterate of block.wq"));
    assert_true(find_op(&v6e, "momentum of block.w_up") < find_op(&v6e, "iterate of block.wq"));
}

/* Those of one sequence in the list's order, and with depth-first gathers none: 8B/opt=muon,
 * clipped 8B,f16,muon,clip; rnd/070 over data 2 and fsdp 8, with eight layers; rnd/041. */
static void states_are_copied_at_the_start(void **state)
{
    (void)state;
    const char *mesh = "mesh.fsdp=8", *seq = "batch.seq=8192", *one = "batch.global=8";
    const char *up = "w_up, momentum in another layout", *loss = "softmax cross-entropy";
    struct low list = MUON(mesh, one, seq), clip = MUON(mesh, one, seq, "optimizer.clip=true");
    assert_true(lives_at(&list, "w_gate, momentum in another layout", loss));
    assert_true(lives_at(&list, "w_up, weight in another layout", loss));
    assert_int_equal(find(&list, up), HB_NONE);
    assert_int_equal(find(&list, "head, momentum in another layout"), HB_NONE);
    assert_int_equal(find(&list, "w_down, weight in another layout"), HB_NONE);
    assert_true(lives_at(&list, "embedding, weight in another layout", loss));
    assert_true(lives_at(&clip, up, loss));
    const char *data = "mesh.data=2", *two = "batch.global=16", *few = "batch.seq=128";
    struct low deep = MUON(mesh, data, two, few, "model.blocks[0].repeat=64", "model.vocab=2048");
    struct low flat = MUON(mesh, data, two, few, "model.vocab=32000");
    assert_true(lives_at(&deep, "w_gate, momentum in another layout", loss));
    assert_int_equal(find(&flat, "w_gate, momentum in another layout"), HB_NONE);
}

/* 8B,v5e16x16,f64t4: squares of what is shorter over all devices. */
static void squares_are_of_the_shorter_side(void **state)
{
    (void)state;
    struct low tensor = MUON("hardware.device=tpu-v5e", "mesh.tensor=4", "batch.global=256");
    assert_int_equal(bytes_of(&tensor, "w_up, share of the muon square"), 2LL * 4 * 16 * 1024);
}

/* CUDA over fsdp: w_up's longer dimension is whole, so it is gathered twice a pass, while the
 * others' are; 70B,f64,muon,s2k: what finds no room beside the largest comes one by one, before
 * them. */
static void gathers_fill_the_device(void **state)
{
    (void)state;
    struct low part = MUON(CUDA, "hardware.hbm=160MiB"), all = MUON(CUDA, "hardware.hbm=80GiB");
    assert_int_equal(count_ops(&all, "gather iterate of block.w_up"), 3 * 5);
    assert_true(lives_at(&all, "w_up, muon iterate, gathered", "square of block.w_gate"));
    assert_int_equal(count_ops(&part, "gather iterate of block.w_up"), 0);
    assert_true(find_op(&part, "update block.w_up") < find_op(&part, "update final norm"));
    assert_true(find_op(&all, "update block.w_up") > find_op(&all, "update final norm"));
}

/* Over tensor w_up's longer dimension is split: squares are summed, each beside the others
 * (llama8b, data 2 with tensor 4: bf16[8,4096,4096] of gate, up and down); wo's rows are gathered.
 */
static void squares_are_summed(void **state)
{
    (void)state;
    struct low l = MUON(CUDA, "mesh={tensor: 4, data: 16}");
    assert_int_equal(count_ops(&l, "sum square of block.w_up"), 5);
    assert_int_equal(count_ops(&l, "gather iterate of block.w_up"), 0);
    assert_int_equal(bytes_of(&l, "w_up, muon square"), 2LL * 4 * 1024 * 1024);
    assert_true(lives_at(&l, "w_up, muon square", "square of block.w_down"));
    assert_int_equal(count_ops(&l, "sum square of block.wo"), 0);
    assert_int_equal(count_ops(&l, "gather iterate of block.wo"), 3 * 5);
    struct low data = MUON(CUDA, "mesh={data: 64}");
    assert_int_equal(count_ops(&data, "square of block.w_up"), 0);
}

/* One leaf is table and head: updated once, by the passes that one matrix takes. */
static void a_tied_table_is_updated_once(void **state)
{
    (void)state;
    struct low tied = MUON("model.tied_embeddings=true"), plain = MUON(V6E);
    assert_int_equal(count_ops(&tied, "update embedding"), 1);
    assert_int_equal(count_ops(&tied, "square of embedding"),
                     count_ops(&plain, "square of embedding"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(products_are_shared),          TEST(iterates_are_gathered),
        TEST(gradients_are_gone_before),    TEST(states_are_copied_at_the_start),
        TEST(gathers_fill_the_device),      TEST(squares_are_summed),
        TEST(logits_of_one_sequence_wait),  TEST(squares_are_of_the_shorter_side),
        TEST(a_tied_table_is_updated_once),
    };
    return cmocka_run_group_tests_name("lower_muon", tests, NULL, NULL);
}
