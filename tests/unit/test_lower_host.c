/* sim/ir/lower for XLA:TPU, what lies on the host: optimizer states, averages, what layers send
 * there. Names are lab records without their "lab-tpu-". */
#include "sim/ir/copies.h"
#include "tests/unit/lowered.h"

#define HOST        "mesh.fsdp=8", "batch.global=64", "remat.policy=names"
#define SUMS        HOST, "batch.accumulate=2"
#define DENSE(...)  lower_text(TPU_DENSE, (const char *const[]){__VA_ARGS__, NULL})
#define STAGES(...) lower_text(TPU_STAGES, (const char *const[]){__VA_ARGS__, NULL})
#define SAME        "batch.accumulate=1" /* where nothing is changed */

/* tinyS/opt_host; tinyS/batch=16,clip,opt_host; 1B over fsdp 2 and tensor 4 and over tensor 8 with
 * clip and opt_host: five copies are under way at a time, those of the first updates. */
static void states_come_from_the_host(void **state)
{
    (void)state;
    const char *backward = "gradient through block.w_down";
    const char *host = "optimizer.offload=pinned_host", *clip = "optimizer.clip=true";
    struct low one = DENSE(host);
    assert_true(lives_at(&one, "w_up, first moment, copy", backward));
    struct low clipped = DENSE(host, clip);
    assert_true(lives_at(&clipped, "w_up, first moment, copy", backward));
    struct low some = DENSE(host, clip, "mesh.fsdp=2", "mesh.tensor=4");
    assert_false(lives_at(&some, "w_down, first moment, copy", backward));
}

/* xla-h100/13-gpt2xl and three more that ran: all moments are there before the first layer begins,
 * which waits for them, and stay; the new ones go back after their updates. */
static void states_are_all_there_first_on_gpus(void **state)
{
    (void)state;
    const char *host = "optimizer.offload=pinned_host";
    struct low one = DENSE(CUDA, host);
    static const char *const leaves[] = {"w_up", "w_down", "wq", "head", "embedding"};
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        const char *first = hb_arena_printf(u.env.arena, "%s, first moment, copy", leaves[i]);
        assert_true(lives_at(&one, first, "embed"));
        assert_true(lives_at(&one, first, "softmax"));
    }
    uint32_t last = find_last_op(&one, "state is there"), layer = find_op(&one, "embed");
    assert_true(last != HB_NONE && last < layer);
    struct low loop = DENSE(CUDA, host, "batch.accumulate=2");
    assert_true(find_last_op(&loop, "state is there") < find_op(&loop, "embed"));
    struct low here = DENSE(CUDA, SAME);
    assert_int_equal(find(&here, "copy on the device"), HB_NONE);
}

/* Phi-4 over fsdp 16 and data 2, gemma2-9b over 4 and 4 of v5e: what it ends last are the longest
 * copies, so that small states come first, and none of the largest over the layers' pass. */
static void the_longest_copies_end_last(void **state)
{
    (void)state;
    const char *host = "optimizer.offload=pinned_host", *clip = "optimizer.clip=true";
    const char *fsdp = "mesh.fsdp=2", *tensor = "mesh.tensor=4";
    const char *back = "gradient through block.w_down", *down = "w_down, first moment, copy";
    struct low row = DENSE(host, clip, fsdp, tensor);
    struct low long_ = DENSE(host, clip, fsdp, tensor, "hardware.device=tpu-v5e");
    assert_true(find_op(&row, "update final norm") > find_op(&row, "update block.w_down"));
    assert_true(find_op(&long_, "update final norm") < find_op(&long_, "update block.w_down"));
    assert_false(lives_at(&long_, down, back));
}

/* tinyS/accum=2 and 8; mistral24b over 64 v5e, accum=2 with opt_host: the largest states are under
 * way through the loop. */
static void loops_leave_casts_and_large_states(void **state)
{
    (void)state;
    const char *backward = "gradient through block.w_down", *host = "optimizer.offload=pinned_host";
    const char *micro = "batch.accumulate=2";
    struct low one = DENSE(SAME), loop = DENSE(micro);
    assert_int_equal(find(&one, "head, cast once"), HB_NONE);
    assert_true(find(&loop, "head, cast once") != HB_NONE);
    assert_true(find(&loop, "embedding, cast once") != HB_NONE);
    struct low states = DENSE(host, micro);
    assert_true(lives_at(&states, "w_up, first moment, copy", backward));
}

/* 8B,v6e,f16: q on the host and mlp_up kept: f32[8192,128256] and its bf16 gradient through the
 * layers; of two sequences the gradient alone (host/v6e,f16,b2,q+ctx), and in an accumulation loop
 * (12 layers of 5,120, v6e, f16, a2, q, k and v on the host; copies of 10 steps: plan-tpuA-006 7.7
 * -> 0.0); mlp_up kept and none on the host: neither. */
static void fetching_layers_keep_the_logits(void **state)
{
    (void)state;
    const char *down = "gradient through block.w_down";
    const char *off = "remat.offload=[q]", *up = "remat.save=[mlp_up]";
    const char *one = "batch.global=16";
    struct low both = DENSE(HOST, "batch.global=8", off, up), several = DENSE(SUMS, off, up);
    struct low sent = DENSE(SUMS, one, off), kept = DENSE(SUMS, one, up);
    assert_true(lives_at(&both, "logits", down));
    assert_false(lives_at(&several, "logits", down));
    assert_true(lives_at(&several, "gradient of the logits", down));
    assert_false(lives_at(&sent, "logits", down));
    assert_true(lives_at(&sent, "gradient of the logits", down));
    assert_false(lives_at(&kept, "logits", down));
}

/* rows/f8,b64 and rows/f8,b72: more than 32768 rows of 8 KiB of the table's gradient are sorted
 * beside the head's ring, where the table has fewer words than these; of 10 KiB any number, where
 * the gradient is clipped or an accumulation loop has no updates; not on v6e, not of 4 KiB. */
static void sorted_rows_keep_the_logits(void **state)
{
    (void)state;
    const char *down = "gradient through block.w_down", *narrow = "gradient of the logits";
    const char *ways = "mesh.fsdp=8", *seq = "batch.seq=4096", *many = "batch.global=72";
    const char *few = "batch.global=64", *clip = "optimizer.clip=true", *d = "model.d_model=4096";
    const char *d5 = "model.d_model=5120", *d2 = "model.d_model=2048";
    const char *micro = "batch.accumulate=2", *twice = "batch.global=128";
    struct low more = DENSE(ways, seq, many, clip, d);
    struct low wide = DENSE(ways, seq, many, clip, d, "model.vocab=40960");
    struct low rows = DENSE(ways, seq, few, clip, d5);
    struct low fed = DENSE(ways, seq, twice, micro, d5), short_ = DENSE(ways, seq, many, clip, d2);
    assert_true(lives_at(&more, narrow, down));
    assert_false(lives_at(&wide, narrow, down));
    assert_true(lives_at(&rows, narrow, down));
    assert_true(lives_at(&fed, narrow, down));
    assert_false(lives_at(&short_, narrow, down));
}

/* 1B/remat=offload:layer_in against tinyS/remat=offload:layer_in. */
static void the_last_layer_is_sent_late(void **state)
{
    (void)state;
    const char *names = "remat.policy=names", *host = "remat.offload=[layer_in]";
    const char *last = "layer input, on its way to the host", *loss = "softmax cross-entropy";
    struct low several = DENSE("mesh.fsdp=8", names, host), one = DENSE(names, host);
    assert_true(lives_at(&several, last, loss));
    assert_int_equal(bytes_of(&several, last), 2LL * 2048 * 1024);
    assert_int_equal(find(&one, "on its way to the host"), HB_NONE);
}

/* 8B,f16,qkv+ctx: contexts on the host and q as well, a second stack of attn_ctx; layer inputs on
 * the host: none. laid--v5p,16,4096,1x8192,up,c8: one of layer inputs, in microbatches, too; 4096
 * over 16 of v6e, where they lie turned anyway: none (8B,v6e,f16,a2); two sequences of 2048 there:
 * one (laid--v6e,16,4096,2x2048,up,c8), not on v5p. */
static void a_fetching_loop_turns_its_inputs(void **state)
{
    (void)state;
    const char *copy = "a stack in another layout", *up = "remat.offload=[mlp_up]";
    const char *v6e = "hardware.device=tpu-v6e", *seq = "batch.seq=512";
    struct low in = DENSE(HOST, "remat.offload=[layer_in]");
    struct low both = DENSE(HOST, "remat.offload=[layer_in,q]", "remat.save=[attn_ctx]");
    struct low kept = DENSE(HOST, up), sums = DENSE(SUMS, up), turned = DENSE(HOST, up, v6e);
    struct low few = DENSE(HOST, up, seq), straight = DENSE(HOST, up, seq, v6e);
    assert_int_equal(find(&in, copy), HB_NONE);
    assert_int_equal(bytes_of(&both, copy), 4LL * 8 * 2048 * 1024 * 2);
    assert_int_equal(bytes_of(&kept, copy), 4LL * 8 * 2048 * 1024 * 2);
    assert_int_equal(bytes_of(&sums, copy), 4LL * 4 * 2048 * 1024 * 2);
    assert_int_equal(find(&turned, copy), HB_NONE);
    assert_int_equal(find(&few, copy), HB_NONE);
    assert_int_equal(bytes_of(&straight, copy), 4LL * 8 * 512 * 1024 * 2);
}

/* 1B over fsdp 4 and tensor 2 with attn=naive and opt_host: all states through the layers beside
 * the logits, not with a kernel; over tensor 8 without the logits. With layers=loop over fsdp 8 the
 * weights' gradients do not wait for the end. */
static void scores_and_unrolled_layers_meet_states(void **state)
{
    (void)state;
    const char *host = "optimizer.offload=pinned_host", *tensor = "mesh.tensor=2";
    const char *naive = "model.blocks[0].attention.kernel=naive", *batch = "batch.global=16";
    const char *backward = "gradient through block.w_down", *query = "wq, first moment, copy";
    struct low kernel = DENSE(host, "mesh.fsdp=4", tensor, batch);
    assert_false(lives_at(&kernel, query, backward));
    struct low many =
        DENSE(host, "mesh.fsdp=4", tensor, naive, "model.vocab=8192", "batch.global=128");
    assert_false(lives_at(&many, "logits", backward)); /* a product longer than the way back */
    struct low all = DENSE(host, "mesh.tensor=8", naive, "model.vocab=8192");
    assert_false(lives_at(&all, "logits", backward));
    struct low ring = DENSE("mesh.fsdp=8", batch, "stack.form=loop");
    const char *grad = "gradient of block[3].w_down", *first = "gradient through block[0].w_down";
    assert_true(find_op(&ring, grad) > find_op(&ring, first));
}

/* 8B over tensor 8 with opt_host: w_gate's states come over the layers; sgd has none. */
static void tensor_parallelism_meets_states(void **state)
{
    (void)state;
    const char *host = "optimizer.offload=pinned_host", *tensor = "mesh.tensor=8";
    const char *backward = "gradient through block.w_down";
    struct low small = DENSE(host, tensor);
    struct low large = DENSE(host, tensor, "model.blocks[0].repeat=32");
    assert_false(lives_at(&small, "logits", backward));
    assert_true(lives_at(&large, "w_gate, first moment, copy", backward));
    struct low sgd = DENSE(host, "optimizer.name=sgd");
    assert_false(lives_at(&sgd, "logits", backward));
}

/* llama2-13b over fsdp 32, v6e, four microbatches: in one fusion each gate and up, and wq and wv,
 * all of whose heads have keys; wk, and wo, which lies the other way, alone. On v5p each alone. */
static void weights_of_a_shape_are_updated_at_once(void **state)
{
    (void)state;
    const char *host = "optimizer.offload=pinned_host", *two = "batch.accumulate=2";
    const char *device[] = {"hardware.device=tpu-v6e", "hardware.device=tpu-v5p"};
    enum { NEXT = 2 }; /* a mark is between */
    for (int i = 0; i < 2; i++) {
        struct low l = DENSE(host, two, "mesh.fsdp=8", "batch.global=16", device[i]);
        uint32_t v = find_op(&l, "update block.wv"), q = find_op(&l, "update block.wq");
        uint32_t k = find_op(&l, "update block.wk"), up = find_op(&l, "update block.w_up");
        assert_int_equal(q == v + NEXT, i == 0);
        assert_int_equal(find_op(&l, "update block.w_gate") == up + NEXT, i == 0);
        assert_true(k != v + NEXT && k != q + NEXT);
    }
}

/* Two runs of layers, of which the last sends values to the host. */
#define TWO_RUNS                                                                                   \
    "hbmsim: 1\n"                                                                                  \
    "model:\n"                                                                                     \
    "  d_model: 4096\n"                                                                            \
    "  vocab: 32000\n"                                                                             \
    "  blocks:\n"                                                                                  \
    "    - {name: a, repeat: 12, attention: {heads: 32, kv_heads: 8, head_dim: 128},\n"            \
    "       mlp: {d_ff: 14336}}\n"                                                                 \
    "    - {name: b, repeat: 4, attention: {heads: 32, kv_heads: 8, head_dim: 128},\n"             \
    "       mlp: {d_ff: 14336}}\n"                                                                 \
    "batch: {global: 32, seq: 4096}\n"                                                             \
    "mesh: {fsdp: 16}\n"                                                                           \
    "remat:\n"                                                                                     \
    "  per_block:\n"                                                                               \
    "    a: {policy: full}\n"                                                                      \
    "    b: {policy: names, save: [], offload: [layer_in, mlp_gate]}\n"                            \
    "hardware: {device: tpu-v6e, count: 16}\n"                                                     \
    "compiler: xla-tpu\n"

#define RUNS(...) lower_text(TWO_RUNS, (const char *const[]){__VA_ARGS__, NULL})

/* split--v6e-t6ea and 16 like it: three bf16[2,4096,14336] and the operands of the attention's
 * weights, of the last of b's layers, through those of a; not where b sends nothing, nor over 64
 * devices, between gathers. */
static void a_trip_taken_out_waits_behind_other_runs(void **state)
{
    (void)state;
    const char *of_a = "gradient through a.w_down", *act = "mlp activation, of the last trip";
    const char *gate = "mlp gate, gradient of the last trip", *q = "q before rope, gradient of the";
    struct low sent = RUNS(SAME), kept = RUNS("remat.per_block.b={policy: full}");
    assert_true(lives_at(&sent, act, of_a) && lives_at(&sent, gate, of_a));
    assert_true(lives_at(&sent, q, of_a));
    assert_false(lives_at(&sent, act, "gradient through b.w_down"));
    assert_int_equal(find(&kept, act), HB_NONE);
    struct low wide = RUNS("mesh.fsdp=64", "hardware.count=64", "batch.global=128");
    assert_int_equal(find(&wide, act), HB_NONE);
}

/* pair split--v5e-w, qwen3-14b over 16 of v5e, states on the host: what each weight's gradient
 * reads stays until its own update; else all come before the first. */
static void a_trip_taken_out_meets_states(void **state)
{
    (void)state;
    const char *act = "mlp activation, of the last trip", *first = "update b.wv";
    struct low here = RUNS(SAME), host = RUNS("optimizer.offload=pinned_host");
    struct low all = RUNS("optimizer.offload=pinned_host", "optimizer.clip=true");
    assert_false(lives_at(&here, act, first) || lives_at(&all, act, first));
    assert_true(lives_at(&host, act, first));
    assert_false(lives_at(&host, act, "update a.wk"));
}

/* split--v5e-t5ed, -o00, -o03: v5e has room for that trip's rings beside the logits; v6e has none,
 * nor v5e without values on the host. */
static void v5e_makes_room_for_a_trip_taken_out(void **state)
{
    (void)state;
    const char *v5e = "hardware.device=tpu-v5e", *room = "room for its backward rings";
    struct low early = RUNS(v5e), late = RUNS(SAME);
    struct low none = RUNS(v5e, "remat.per_block.b={policy: full}");
    assert_true(lives_at(&early, room, "gradient of the head"));
    assert_false(lives_at(&early, room, "gradient through a.w_down"));
    assert_int_equal(find(&late, room), HB_NONE);
    assert_int_equal(find(&none, room), HB_NONE);
    struct low kept =
        RUNS(v5e, "remat.per_block.b={policy: names, save: [q, k, v], offload: [layer_in]}");
    assert_true(bytes_of(&kept, room) < bytes_of(&early, room)); /* nothing of them is made again */
    /* Above the memory (split--v5e-w, rings--v5e-4x8,f32): when it is needed. */
    struct low full = RUNS(v5e, "batch.global=128");
    assert_false(lives_at(&full, room, "gradient of the head"));
}

/* yi-6b over 64 of v5e: layer inputs of the next trip come while a weight's gradient is made, after
 * the attention's backward pass; where layers send nothing, or q alone, it comes with its own. */
static void a_product_fills_the_fetch(void **state)
{
    (void)state;
#define V5E(...) DENSE("hardware.device=tpu-v5e", "mesh.fsdp=64", "batch.global=64", __VA_ARGS__)
    const char *names = "remat.policy=names", *end = "backward of flash attention";
    const char *made = "gradient of block.w_up";
    struct low inputs = V5E(names, "remat.offload=[layer_in]");
    struct low query = V5E(names, "remat.offload=[q]");
    struct low none = V5E(SAME);
    assert_true(find_op(&inputs, made) > find_op(&inputs, end));
    assert_true(find_op(&query, made) < find_op(&query, end));
    assert_true(find_op(&none, made) < find_op(&none, end));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(weights_of_a_shape_are_updated_at_once),
        TEST(tensor_parallelism_meets_states),
        TEST(scores_and_unrolled_layers_meet_states),
        TEST(states_come_from_the_host),
        TEST(the_longest_copies_end_last),
        TEST(loops_leave_casts_and_large_states),
        TEST(fetching_layers_keep_the_logits),
        TEST(sorted_rows_keep_the_logits),
        TEST(the_last_layer_is_sent_late),
        TEST(states_are_all_there_first_on_gpus),
        TEST(a_fetching_loop_turns_its_inputs),
        TEST(a_trip_taken_out_waits_behind_other_runs),
        TEST(a_trip_taken_out_meets_states),
        TEST(v5e_makes_room_for_a_trip_taken_out),
        TEST(a_product_fills_the_fetch),
    };
    return cmocka_run_group_tests_name("lower_host", tests, NULL, NULL);
}
