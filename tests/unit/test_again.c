/* sim/ir/again: programs worked by hand, and one step whose embedding's indices wait. */
#include "tests/unit/lowered.h"

#include "sim/engine/check.h"
#include "sim/engine/live.h"
#include "sim/ir/again.h"

enum { BIG = 1000, SMALL = 10 };

static struct hb_program prog;

static void open_prog(void)
{
    hb_program_init(&prog, u.env.arena, "test", HB_XLA_GPU);
}

static uint32_t buf(const char *name, int64_t bytes)
{
    return hb_program_add_buf(
        &prog,
        (struct hb_buf){
            .name = name, .why = "", .bytes = bytes, .plain_bytes = bytes, .alias_of = HB_NONE});
}

static uint32_t op_of(enum hb_op_kind kind, uint32_t read, uint32_t also, uint32_t write)
{
    uint32_t at =
        hb_program_add_op(&prog, (struct hb_op){.name = "op", .kind = kind, .start = HB_NONE});
    if (read != HB_NONE)
        hb_program_read(&prog, read);
    if (also != HB_NONE)
        hb_program_read(&prog, also);
    if (write != HB_NONE)
        hb_program_write(&prog, write);
    return at;
}

static uint32_t op(uint32_t read, uint32_t write)
{
    return op_of(HB_OP_ELEMENTWISE, read, HB_NONE, write);
}

static void assert_life(uint32_t b, int32_t first, int32_t last)
{
    struct hb_live *live;
    uint32_t count = hb_live_find(u.env.arena, &prog, &live);
    for (uint32_t i = 0; i < count; i++) {
        if (live[i].buf != b)
            continue;
        assert_int_equal(live[i].start, first);
        assert_int_equal(live[i].end, last);
        return;
    }
    fail_msg("buffer %u has no life", b);
}

static void assert_no_life(uint32_t b)
{
    for (uint32_t i = 0; i < prog.ref_count; i++)
        assert_int_not_equal(prog.refs[i], b);
}

/* a is made of x and read; then b stands alone with it; then both are read. Returns a. */
static uint32_t waiting(enum hb_op_kind kind, uint32_t x, uint32_t first_reader)
{
    uint32_t a = buf("a", BIG), b = buf("b", BIG), c = buf("c", SMALL);
    op_of(kind, x, HB_NONE, a);
    if (first_reader != HB_NONE)
        op(a, first_reader);
    op(HB_NONE, b);
    op(b, c);
    op_of(HB_OP_ELEMENTWISE, a, c, HB_NONE);
    return a;
}

static void below_the_limit_nothing_changes(void **state)
{
    (void)state;
    open_prog();
    waiting(HB_OP_ELEMENTWISE, HB_NONE, buf("r", SMALL));
    assert_false(hb_again_exceeds(&prog, 2 * BIG + SMALL));
    assert_true(hb_again_exceeds(&prog, 2 * BIG - 1));
    hb_again_run(&prog, 2 * BIG + SMALL);
    assert_int_equal(prog.op_count, 5);
    assert_int_equal(prog.buf_count, 4);
}

static void what_waits_is_made_again(void **state)
{
    (void)state;
    open_prog();
    uint32_t a = waiting(HB_OP_MATMUL, HB_NONE, buf("r", SMALL));
    hb_again_run(&prog, 2 * BIG - 1);
    assert_int_equal(prog.op_count, 6);
    assert_life(a, 0, 1);
    assert_life(prog.buf_count - 1, 4, 5);
    assert_int_equal(prog.ops[4].kind, HB_OP_MATMUL);
    hb_program_check(&prog);
}

static void what_nobody_read_yet_moves(void **state)
{
    (void)state;
    open_prog();
    uint32_t a = waiting(HB_OP_ELEMENTWISE, HB_NONE, HB_NONE);
    hb_again_run(&prog, 2 * BIG - 1);
    assert_int_equal(prog.op_count, 4);
    assert_no_life(a);
    assert_life(prog.buf_count - 1, 2, 3);
}

/* Two wait, the first of so many bytes, each read before the peak and behind it. */
static void run_two(int64_t bytes, uint32_t *one, uint32_t *two)
{
    open_prog();
    *one = buf("one", bytes);
    *two = buf("two", BIG);
    uint32_t peak = buf("peak", BIG);
    op(HB_NONE, *one);
    op(HB_NONE, *two);
    op_of(HB_OP_ELEMENTWISE, *one, *two, HB_NONE);
    op(HB_NONE, peak);
    op_of(HB_OP_ELEMENTWISE, *one, *two, HB_NONE);
    hb_again_run(&prog, 2 * BIG);
}

/* Of two that wait the larger. */
static void the_most_bytes_come_first(void **state)
{
    (void)state;
    uint32_t small, big;
    run_two(BIG / 2, &small, &big);
    assert_life(big, 1, 2);
    assert_life(small, 0, 5);
}

/* Of two that free as much the one that is made first. */
static void of_equals_the_earlier_comes_first(void **state)
{
    (void)state;
    uint32_t first, second;
    run_two(BIG, &first, &second);
    assert_life(first, 0, 2);
    assert_life(second, 1, 5);
}

/* Two ops with a result each that nobody reads: where it is too much throughout they would give way
 * to each other for ever, were they not tired of it. */
static void what_moves_is_tired_soon(void **state)
{
    (void)state;
    open_prog();
    uint32_t x = buf("x", SMALL), a = buf("a", BIG), b = buf("b", BIG);
    op(HB_NONE, x);
    op(x, a);
    hb_program_write(&prog, buf("nobody's", SMALL));
    op(x, b);
    hb_program_write(&prog, buf("nobody's", SMALL));
    op(HB_NONE, buf("c", BIG));
    op(x, HB_NONE);
    op_of(HB_OP_ELEMENTWISE, a, b, HB_NONE);
    hb_again_run(&prog, BIG / 2);
    assert_in_range(prog.op_count, 6, 8);
    hb_program_check(&prog);
}

/* What reads x may be made again once more as soon as x is alive again for another's sake. */
static void what_wakes_is_asked_again(void **state)
{
    (void)state;
    open_prog();
    uint32_t x = buf("x", BIG), a = buf("a", BIG), b = buf("b", 2 * BIG), c = buf("c", 3 * BIG);
    op_of(HB_OP_ATTENTION, HB_NONE, HB_NONE, x);
    op(x, a);
    op(x, b);
    op_of(HB_OP_ELEMENTWISE, a, b, HB_NONE);
    op(HB_NONE, c);
    op(c, HB_NONE);
    op_of(HB_OP_ELEMENTWISE, a, b, HB_NONE);
    hb_again_run(&prog, 4 * BIG);
    assert_life(b, 2, 3);
    assert_life(a, 1, 3);
    assert_life(x, 0, 7);
    hb_program_check(&prog);
}

/* x is read once more before a is: a is made there, x does not wait for a. */
static void it_comes_before_the_next_use_of_what_it_reads(void **state)
{
    (void)state;
    open_prog();
    uint32_t x = buf("x", SMALL), a = buf("a", BIG), b = buf("b", BIG);
    op(HB_NONE, x);
    op(x, a);
    op(a, HB_NONE);
    op(HB_NONE, b);
    op(x, HB_NONE);
    op(HB_NONE, HB_NONE);
    op(a, HB_NONE);
    hb_again_run(&prog, 2 * BIG);
    assert_life(prog.buf_count - 1, 4, 7);
    assert_life(x, 0, 5);
}

/* What is as large as the value and would have to wait in its place frees nothing. */
static void a_dead_operand_counts_against_it(void **state)
{
    (void)state;
    open_prog();
    uint32_t x = buf("x", BIG), r = buf("r", SMALL);
    op(HB_NONE, x);
    waiting(HB_OP_ELEMENTWISE, x, r);
    hb_again_run(&prog, 2 * BIG - 1);
    assert_int_equal(prog.op_count, 6);
}

static void kernels_and_overwritten_operands_are_left(void **state)
{
    (void)state;
    open_prog();
    waiting(HB_OP_ATTENTION, HB_NONE, buf("r", SMALL));
    hb_again_run(&prog, BIG);
    assert_int_equal(prog.op_count, 5);
    open_prog();
    uint32_t x = buf("x", SMALL);
    op(HB_NONE, x);
    waiting(HB_OP_ELEMENTWISE, x, x); /* x is written over */
    hb_again_run(&prog, 2 * BIG - 1);
    assert_int_equal(prog.op_count, 6);
}

/* A loop reads a: it waits; what its body holds has what is left of the limit. */
static void bodies_come_after_what_is_around_them(void **state)
{
    (void)state;
    open_prog();
    uint32_t a = buf("a", BIG), r = buf("r", SMALL);
    op(HB_NONE, a);
    uint32_t loop = hb_program_open_loop(&prog, "loop", 3);
    op(a, HB_NONE);
    uint32_t inside = waiting(HB_OP_ELEMENTWISE, HB_NONE, r);
    hb_program_close_loop(&prog, loop);
    op(HB_NONE, HB_NONE);
    hb_again_run(&prog, 3 * BIG - 1);
    assert_life(a, 0, 7);
    assert_life(inside, 2, 3);
    assert_life(prog.buf_count - 1, 6, 7);
    assert_int_equal(prog.loops[0].first_op, 1);
    assert_int_equal(prog.loops[0].end_op, 8);
    hb_program_check(&prog);
}

static void what_is_waited_for_keeps_its_op(void **state)
{
    (void)state;
    open_prog();
    uint32_t a = waiting(HB_OP_ELEMENTWISE, HB_NONE, buf("r", SMALL)), sent = buf("s", SMALL);
    uint32_t start = op_of(HB_OP_ALL_REDUCE, HB_NONE, HB_NONE, sent);
    prog.ops[start].stream = HB_STREAM_COLLECTIVE;
    uint32_t done = op_of(HB_OP_DONE, HB_NONE, HB_NONE, HB_NONE);
    prog.ops[done].start = start;
    hb_again_run(&prog, 2 * BIG - 1);
    assert_life(a, 0, 1);
    assert_int_equal(prog.ops[done + 1].start, start + 1);
}

static void the_limit_leaves_arguments_and_results_out(void **state)
{
    (void)state;
    open_prog();
    uint32_t arg = buf("arg", 1000), out = buf("out", 500), next = buf("next", 1000);
    prog.bufs[arg].argument = prog.bufs[out].output = prog.bufs[next].output = true;
    prog.bufs[next].alias_of = arg;
    assert_int_equal(hb_again_limit(&prog, 100000, false), (80000 - 1500) / 100 * 95);
    assert_int_equal(hb_again_limit(&prog, 1000, false), 0);
}

/* lab-cuda/pr85/pp8 with a one-hot embedding, 64 layers and above the limit: s32[32,4096,32000] at
 * the peak is gone, wrapped_iota.remat stands before the table's gradient (50.9 -> 34.3 GiB). */
static void indices_of_a_one_hot_embedding_come_twice(void **state)
{
    (void)state;
    static const char text[] = "model:\n"
                               "  d_model: 512\n"
                               "  vocab: 32000\n"
                               "  blocks:\n"
                               "    - name: block\n"
                               "      repeat: 8\n"
                               "      attention: {heads: 4, kv_heads: 4, head_dim: 128}\n"
                               "      mlp: {d_ff: 1024}\n"
                               "batch: {global: 32, seq: 1024}\n"
                               "mesh: {pipeline: 4}\n"
                               "pipeline: {microbatches: 4}\n"
                               "embedding: {lookup: onehot}\n";
    struct low wide = lower_text(text, (const char *[]){CUDA, "hardware.hbm=80GiB", NULL});
    struct low tight = lower_text(text, (const char *[]){CUDA, "hardware.hbm=12GiB", NULL});
    assert_int_equal(tight.p.op_count, wide.p.op_count + 1);
    assert_string_equal(tight.p.bufs[tight.p.buf_count - 1].name,
                        "index tensor of the one-hot embedding, made again");
    assert_true(tight.m.peak_bytes < wide.m.peak_bytes - (1 << 30));
}

/* tiny/layers=loop,remat=dots with 32 x 8192 tokens: 107.4 GiB before and after, where remat none
 * goes from 73.2 to 59.9 GiB with 24 of them. */
static void what_a_checkpoint_keeps_is_kept(void **state)
{
    (void)state;
    for (int dots = 0; dots < 2; dots++) {
        struct low l = lower_text(
            TPU_DENSE, (const char *[]){CUDA, "hardware.hbm=4GiB", "stack.form=loop",
                                        dots ? "remat.policy=dots" : "remat.policy=none", NULL});
        int again = 0;
        for (uint32_t i = 0; i < l.p.buf_count; i++) {
            bool made_again = strstr(l.p.bufs[i].name, "saved for backward, made again") != NULL;
            again += made_again;
            assert_false(made_again && l.p.bufs[i].category == HB_CAT_SAVED);
        }
        assert_int_equal(again == 0, dots);
    }
}

/* tiny/layers=loop,remat=none with attn=naive: the first layers' scores are made again. The
 * backward pass makes probabilities of them, inside. */
static void scores_are_made_again(void **state)
{
    (void)state;
    static const char *const naive = "model.blocks[0].attention.kernel=naive";
    static const char scores[] = "attention scores, saved for backward, made again";
    for (int i = 0; i < 2; i++) {
        const char *rocm = i ? "hardware.device=amd-mi300x" : "hardware.device=nvidia-h100";
        struct low l = lower_text(
            TPU_DENSE, (const char *[]){"compiler=xla-gpu", rocm, naive, "hardware.hbm=8GiB",
                                        "stack.form=loop", "remat.policy=none", NULL});
        assert_int_not_equal(find(&l, scores), HB_NONE);
        const char *last = "block[3].attention probabilities, saved for backward";
        assert_false(lives_at(&l, last, "backward of softmax"));
    }
}

/* Bytes alive at op `at` of buffers with the text in their names. */
static int64_t spread_at(const struct low *l, uint32_t at, const char *text)
{
    struct hb_live *live;
    uint32_t count = hb_live_find(u.env.arena, &l->p, &live);
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_buf *b = &l->p.bufs[live[i].buf];
        if (strstr(b->name, text) && live[i].start <= (int32_t)at && live[i].end >= (int32_t)at)
            sum += b->plain_bytes;
    }
    return sum;
}

/* Two layers of a stage, two rows of 1408 and 1024 a token, spread over 8 experts. Where the
 * gradients of the first layer's gate and up are spread six of the hidden width and four of the
 * model's stand by expert, two as rows (pr85/pp8/good,ragged,f32sum: six and two
 * bf16[1,16,32768,2048], four of 4096), four and three beyond the limit, where the first layer's
 * come again with its backward pass (pr85/pp8/good,batch=64,ragged). */
static void spread_operands_wait_for_all_layers(void **state)
{
    (void)state;
    static const char *const hbm[] = {"hardware.hbm=80GiB", "hardware.hbm=8GiB"};
    const int64_t one = INT64_C(2) * 8 * 2 * 8 * 2048; /* bf16, experts, rows of 8 sequences */
    const int64_t by_expert[] = {6 * 1408 + 4 * 1024, 4 * 1408 + 3 * 1024};
    for (int i = 0; i < 2; i++) {
        struct low l =
            lower_text(GPU_STAGES,
                       (const char *[]){CUDA, hbm[i], "model.blocks[0].moe.dispatch=ragged", NULL});
        uint32_t at = find_last_op(&l, "expert activation and gradients by expert");
        int64_t own = spread_at(&l, at, ", by expert");
        assert_int_equal(own + spread_at(&l, at, "gradient by expert"), one * by_expert[i]);
        assert_int_equal(spread_at(&l, at, "gradient as rows"), one * 2 * 1408);
    }
}

/* XLA:TPU: a larger share of the memory, and what makes less than 10 MiB is left alone. */
static void tpus_have_a_limit_of_their_own(void **state)
{
    (void)state;
    open_prog();
    uint32_t arg = buf("arg", 1000);
    prog.bufs[arg].argument = true;
    prog.compiler = HB_XLA_TPU;
    assert_int_equal(hb_again_limit(&prog, 100000, false), 94000);
    assert_int_equal(hb_again_limit(&prog, 1000, false), 0);
    waiting(HB_OP_MATMUL, HB_NONE, buf("r", SMALL));
    hb_again_run(&prog, 2 * BIG - 1);
    assert_int_equal(prog.op_count, 5);
    open_prog();
    prog.compiler = HB_XLA_TPU;
    for (uint32_t i = 0, a = waiting(HB_OP_MATMUL, HB_NONE, buf("r", SMALL)); i < prog.buf_count;
         i++)
        prog.bufs[i].bytes *= i >= a ? 11 << 10 : 1;
    hb_again_run(&prog, (2 * (int64_t)BIG << 10) * 11 - 1);
    assert_int_equal(prog.op_count, 6);
}

/* XLA:TPU's are no starts yet when it looks. */
static void a_gathered_weight_is_made_again_on_tpu(void **state)
{
    (void)state;
    static const enum hb_compiler compilers[] = {HB_XLA_TPU, HB_XLA_GPU};
    enum { TIMES = 11 << 10 };
    for (uint32_t i = 0; i < 2; i++) {
        open_prog();
        prog.compiler = compilers[i];
        waiting(HB_OP_ALL_GATHER, HB_NONE, buf("r", SMALL));
        prog.ops[0].stream = HB_STREAM_COLLECTIVE;
        for (uint32_t b = 1; b < prog.buf_count; b++)
            prog.bufs[b].bytes *= TIMES;
        hb_again_run(&prog, 2 * (int64_t)BIG * TIMES - 1);
        assert_int_equal(prog.op_count, 6 - i);
    }
}

static void what_comes_behind_the_pass_does_not_count(void **state)
{
    (void)state;
    enum { TIMES = 11 << 10 };
    open_prog();
    prog.compiler = HB_XLA_TPU;
    uint32_t a = waiting(HB_OP_MATMUL, HB_NONE, buf("r", SMALL));
    for (uint32_t b = a; b < prog.buf_count; b++)
        prog.bufs[b].bytes *= TIMES;
    prog.bufs[a + 1].unseen = true;
    hb_again_run(&prog, 2 * (int64_t)BIG * TIMES - 1);
    assert_int_equal(prog.op_count, 5);
}

/* A copy of a stack that a loop wrote: behind the next loop, where it is read, when there is no
 * room for it beside that loop's body, or none behind it. */
static void copies_of_what_loops_wrote_move(void **state)
{
    (void)state;
    static const int64_t limits[] = {100 * BIG, 25 * BIG, 18 * BIG};
    for (int i = 0; i < 3; i++) {
        open_prog();
        prog.compiler = HB_XLA_TPU;
        uint32_t stack = buf("stack", 0), copy = buf("copy", 0), body = buf("body", 0);
        prog.bufs[stack].bytes = prog.bufs[copy].bytes = (int64_t)8 * BIG << 20;
        prog.bufs[body].bytes = (int64_t)10 * BIG << 20;
        op(HB_NONE, stack);
        uint32_t forward = hb_program_open_loop(&prog, "forward", 3);
        op(HB_NONE, stack);
        hb_program_close_loop(&prog, forward);
        op_of(HB_OP_COPY, stack, HB_NONE, copy);
        uint32_t back = hb_program_open_loop(&prog, "backward", 3);
        op(stack, body);
        op(body, HB_NONE);
        hb_program_close_loop(&prog, back);
        op(copy, HB_NONE);
        hb_again_run(&prog, limits[i] << 20);
        assert_int_equal(prog.op_count, 6);
        assert_int_equal(prog.ops[i == 0 ? 2 : 4].kind, HB_OP_COPY);
        hb_program_check(&prog);
    }
}

/* 24 layers of 5120 features over 64 v5e, here of 8 and 12 (tests/golden/again-tpu.jsonl): of 8 the
 * stack of inputs is copied before the loss and lies beside the layers' backward pass; of 12 it
 * comes behind it, but not where a search prices steps. On v5p it comes behind it anyhow. */
static void turned_stacks_lie_where_there_is_room(void **state)
{
    (void)state;
    static const char text[] = "model:\n"
                               "  d_model: 5120\n"
                               "  vocab: 32000\n"
                               "  blocks:\n"
                               "    - name: block\n"
                               "      repeat: 8\n"
                               "      attention: {heads: 40, kv_heads: 10, head_dim: 128}\n"
                               "      mlp: {d_ff: 17920}\n"
                               "batch: {global: 64, seq: 32768}\n"
                               "mesh: {fsdp: 64}\n"
                               "remat: {policy: names, save: [], offload: [attn_out]}\n"
                               "loss: {chunks: 8}\n"
                               "hardware: {device: tpu-v5e, count: 64}\n";
    static const char copy[] = "turn the last layer's slice", loop[] = "backward of mlp activation";
    struct low few = lower_text(text, (const char *[]){TPU, NULL});
    struct low many = lower_text(text, (const char *[]){TPU, "model.blocks[0].repeat=12", NULL});
    struct low v5p = lower_text(text, (const char *[]){TPU, "hardware.device=tpu-v5p", NULL});
    assert_true(find_op(&few, copy) < find_op(&few, loop));
    assert_true(find_op(&many, copy) > find_op(&many, loop));
    assert_true(find_op(&v5p, copy) > find_op(&v5p, loop));
    many.spec.share = HB_SHARE_KEPT;
    assert_true(hb_link_lower(u.env.arena, &u.diag, &many.spec, &many.p));
    assert_true(find_op(&many, copy) < find_op(&many, loop));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(below_the_limit_nothing_changes),
        TEST(what_waits_is_made_again),
        TEST(what_nobody_read_yet_moves),
        TEST(the_most_bytes_come_first),
        TEST(of_equals_the_earlier_comes_first),
        TEST(what_moves_is_tired_soon),
        TEST(what_wakes_is_asked_again),
        TEST(it_comes_before_the_next_use_of_what_it_reads),
        TEST(a_dead_operand_counts_against_it),
        TEST(kernels_and_overwritten_operands_are_left),
        TEST(bodies_come_after_what_is_around_them),
        TEST(what_is_waited_for_keeps_its_op),
        TEST(the_limit_leaves_arguments_and_results_out),
        TEST(indices_of_a_one_hot_embedding_come_twice),
        TEST(what_a_checkpoint_keeps_is_kept),
        TEST(scores_are_made_again),
        TEST(spread_operands_wait_for_all_layers),
        TEST(tpus_have_a_limit_of_their_own),
        TEST(a_gathered_weight_is_made_again_on_tpu),
        TEST(what_comes_behind_the_pass_does_not_count),
        TEST(copies_of_what_loops_wrote_move),
        TEST(turned_stacks_lie_where_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
