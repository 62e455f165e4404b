/* sim/ir/hide: small graphs, placed by hand as XLA's latency-hiding scheduler places them; sim/ir/
 * tail: ends of steps whose scheduler's log was read. */
#include "tests/unit/lowered.h"

#include "sim/ir/hide.h"

static struct hb_hide h;

static uint32_t op(double cost_us, uint32_t read)
{
    uint32_t at = hb_hide_add(&h, HB_HIDE_OP, cost_us);
    if (read != HB_NONE)
        hb_hide_read(&h, read);
    return at;
}

static void assert_before(uint32_t first, uint32_t second)
{
    assert_true(h.ops[first].place > h.ops[second].place);
}

/* What takes as long as there is to fill comes first (from the end), what is longer last. */
static void a_gap_is_filled_by_what_fits(void **state)
{
    (void)state;
    hb_hide_init(&h, u.env.arena);
    uint32_t x = op(10, HB_NONE), done = hb_hide_send(&h, x, 100), last = op(10, done);
    uint32_t small = op(5, HB_NONE), fits = op(90, HB_NONE), large = op(500, HB_NONE);
    uint32_t all = op(1, last);
    hb_hide_read(&h, small);
    hb_hide_read(&h, fits);
    hb_hide_read(&h, large);
    hb_hide_run(&h);
    uint32_t start = done - 1;
    assert_int_equal(h.ops[all].place, 0);
    assert_before(fits, done);
    assert_before(small, fits);
    assert_before(large, small);
    assert_before(start, large);
    assert_true(hb_hide_send(&h, x, 0) == x);
}

/* One collective at a time: the second starts when the first is done. */
static void collectives_do_not_overlap(void **state)
{
    (void)state;
    hb_hide_init(&h, u.env.arena);
    uint32_t a = hb_hide_send(&h, op(10, HB_NONE), 100);
    uint32_t b = hb_hide_send(&h, op(10, HB_NONE), 50);
    op(1, a);
    hb_hide_read(&h, b);
    hb_hide_run(&h);
    bool first = h.ops[a].place > h.ops[b].place;
    assert_before(first ? a : b, first ? b - 1 : a - 1);
}

/* A loop with collectives is taken as soon as all its readers stand, before what is longer on its
 * way. */
static void a_loop_does_not_wait(void **state)
{
    (void)state;
    hb_hide_init(&h, u.env.arena);
    uint32_t x = op(10, hb_hide_send(&h, op(1, HB_NONE), 100));
    uint32_t loop = hb_hide_add(&h, HB_HIDE_LOOP, 2);
    uint32_t product = op(50, x), root = op(1, loop);
    hb_hide_read(&h, product);
    hb_hide_run(&h);
    assert_int_equal(h.ops[root].place, 0);
    assert_before(product, loop);
}

static const char base[] = FOUR_LAYERS(DENSE_MLP);

#define DENSE(heads, kv)                                                                           \
    "model.blocks[0].attention.heads=" heads, "model.blocks[0].attention.kv_heads=" kv
#define LOWER(...) lower_text(base, (const char *const[]){CUDA, __VA_ARGS__, NULL})

struct ends {
    uint32_t product, sum, loop, zeros, softmax, gather;
};

static struct ends find_ends(const struct low *l)
{
    return (struct ends){.product = find_op(l, "gradient of the head"),
                         .sum = find_op(l, "sum gradient of the head"),
                         .loop = find_op(l, "backward of "),
                         .zeros = find_op(l, "zero gradient of block.w_up"),
                         .softmax = find_op(l, "softmax cross-entropy"),
                         .gather = find_last_op(l, "gather head")};
}

/* plain-h100-030-olmo7b: the sum over tensor of what goes back is hidden behind the head's product
 * (gemm_fusion_dot.67 before while.37, reduce-scatter.2 after it), zeros fill what is left. */
static void a_sum_over_tensor_is_hidden_by_the_head(void **state)
{
    (void)state;
    struct low l =
        LOWER("model.d_model=4096", "model.vocab=100352", DENSE("32", "32"),
              "model.blocks[0].mlp.d_ff=11008", "model.blocks[0].repeat=32", "batch.global=4",
              "batch.seq=4096", "mesh.fsdp=2", "mesh.tensor=4", "hardware.count=8");
    struct ends e = find_ends(&l);
    assert_true(e.softmax < e.zeros && e.zeros < e.product);
    assert_true(e.product < e.loop && e.loop < e.sum);
}

/* plain-h100-0325-codellama34b: more tokens than words, so that the table's gradient is summed and
 * its scatter fills the norm's sum; the head's product has no place after the loop. */
static void the_head_is_at_once_beside_a_scatter(void **state)
{
    (void)state;
    struct low l = LOWER("model.d_model=8192", DENSE("64", "8"), "model.blocks[0].mlp.d_ff=22016",
                         "model.blocks[0].repeat=6", "batch.global=64", "batch.seq=8192",
                         "mesh.fsdp=8", "hardware.count=8");
    struct ends e = find_ends(&l);
    assert_true(e.zeros < e.softmax && e.product < e.loop && e.loop < e.sum);
}

/* drawA-011: 32 devices of four hosts, whose norm's sum takes 332 us: the head's product fills it
 * (gemm_fusion_dot.98 after the layers' loop). */
static void the_head_fills_a_slow_sum(void **state)
{
    (void)state;
    struct low l = LOWER("model.d_model=5120", DENSE("40", "40"), "model.blocks[0].mlp.d_ff=13824",
                         "model.blocks[0].repeat=40", "batch.global=64", "batch.seq=8192",
                         "mesh.fsdp=32", "hardware.count=32");
    struct ends e = find_ends(&l);
    assert_true(e.loop < e.product && e.product < e.sum);
}

/* 8B/base gathers the head again before the softmax's gradient, 1B/base after it: the scatter of
 * one sequence's labels takes 1663 us, of two's 2507, the gathers 2690 and 1362. */
static void the_second_gather_hides_behind_the_labels(void **state)
{
    (void)state;
    struct low eight = LOWER("model.d_model=4096", "model.vocab=128256", DENSE("32", "8"),
                             "model.blocks[0].mlp.d_ff=14336", "model.blocks[0].repeat=32",
                             "batch.global=8", "batch.seq=4096", "mesh.fsdp=8", "hardware.count=8");
    struct low one = LOWER("model.d_model=2048", "model.vocab=128256", DENSE("32", "8"),
                           "model.blocks[0].attention.head_dim=64", "model.blocks[0].mlp.d_ff=8192",
                           "model.blocks[0].repeat=16", "batch.global=16", "batch.seq=4096",
                           "mesh.fsdp=8", "hardware.count=8");
    struct ends a = find_ends(&eight), b = find_ends(&one);
    assert_true(a.gather < a.softmax || find_op(&eight, "gather head") == a.gather);
    assert_true(b.gather > b.softmax);
}

/* granite8b over data 2 and fsdp 32: the table's rows are scattered into the tied head's gradient
 * where both are bf16 (all-gather.19, gemm_fusion_dot.100 before while.114), into zeros where the
 * weights are f32. */
static void rows_are_scattered_into_a_tied_gradient(void **state)
{
    (void)state;
#define GRANITE                                                                                    \
    "model.d_model=4096", "model.vocab=49155", DENSE("32", "8"), "model.blocks[0].mlp.d_ff=12800", \
        "model.blocks[0].repeat=40", "model.tied_embeddings=true", "batch.global=256",             \
        "batch.seq=8192", "mesh.data=2", "mesh.fsdp=32", "hardware.count=64", "loss.dot=bf16",     \
        "optimizer.name=adafactor", "optimizer.moments=[]"
    struct low narrow = LOWER(GRANITE, "precision.params=bf16"), wide = LOWER(GRANITE);
    struct ends a = find_ends(&narrow), b = find_ends(&wide);
    assert_true(a.product < a.loop);
    assert_true(b.loop < b.product);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_gap_is_filled_by_what_fits),
        TEST(collectives_do_not_overlap),
        TEST(a_loop_does_not_wait),
        TEST(a_sum_over_tensor_is_hidden_by_the_head),
        TEST(the_head_is_at_once_beside_a_scatter),
        TEST(the_head_fills_a_slow_sum),
        TEST(the_second_gather_hides_behind_the_labels),
        TEST(rows_are_scattered_into_a_tied_gradient),
    };
    return cmocka_run_group_tests_name("latency hiding", tests, NULL, NULL);
}
