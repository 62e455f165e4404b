/* sim/engine/cost: each kind of op on a device with round numbers, and absurd inputs. */
#include "tests/unit/unit.h"

#include <math.h>

#include "base/rng.h"
#include "hw/link.h"
#include "sim/engine/cost.h"
#include "sim/engine/dating.h"

static struct hb_arena *arena;
static struct hb_device dev;
static struct hb_program prog;

static int start(void **state)
{
    (void)state;
    arena = hb_arena_new();
    hb_device_init(arena, &dev);
    dev.vendor = HB_VENDOR_NVIDIA;
    dev.hbm_bytes_per_s = 1e12;
    dev.peak_flops[HB_RATE_BF16] = 1e14;
    dev.peak_flops[HB_RATE_TF32] = 5e13;
    dev.peak_flops[HB_RATE_F32] = 1e13;
    dev.vector_flops = 1e12;
    dev.op_latency_ns = 7;
    dev.link_topology = HB_TOPOLOGY_SWITCH;
    dev.link_domain = 8;
    dev.link_count = 10;
    dev.link_bytes_per_s = 1e10;
    dev.net_bytes_per_s = 1e10;
    dev.net_efficiency = 1;
    dev.host_up_bytes_per_s = dev.host_down_bytes_per_s = 1e10;
    dev.host_efficiency = 1;
    dev.host_duplex = 0.5;
    hb_program_init(&prog, arena, "test", HB_XLA_GPU);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hb_arena_free(arena);
    return 0;
}

static uint32_t add(struct hb_op op)
{
    op.name = "op";
    op.start = HB_NONE;
    return hb_program_add_op(&prog, op);
}

static int64_t ns_of(uint32_t op)
{
    struct hb_cost cost;
    hb_cost_init(&cost, &prog, &dev);
    return hb_cost_op_ns(&cost, op);
}

static int64_t ns(struct hb_op op)
{
    return ns_of(add(op));
}

static void the_longer_of_arithmetic_and_memory(void **state)
{
    (void)state;
    struct hb_op op = {.kind = HB_OP_MATMUL, .dtype = HB_DT_BF16, .flops = 1e11};
    assert_int_equal(ns(op), 1000000 + 7);
    op.moved_bytes = 1e9;
    assert_int_equal(ns(op), 1000000 + 7);
    op.moved_bytes = 3e9;
    assert_int_equal(ns(op), 3000000 + 7);
    op.kind = HB_OP_ELEMENTWISE;
    assert_int_equal(ns(op), 100000000 + 7);
}

static void products_follow_the_curve(void **state)
{
    (void)state;
    dev.matmul_curve[HB_RATE_BF16] = (struct hb_curve){2, {1000, 4000}, {0.25, 0.5}};
    struct hb_op op = {.kind = HB_OP_MATMUL, .dtype = HB_DT_BF16, .flops = 1e11, .batch = 1};
    op.rows = op.cols = op.depth = 1000;
    assert_int_equal(ns(op), 4000000 + 7);
    op.batch = 64; /* fills the device as 64000 rows do */
    assert_int_equal(ns(op), 2000000 + 7);
    op.rows = 0; /* unknown: a cube of as many operations */
    op.flops = 2e9;
    assert_int_equal(ns(op), 80000 + 7);
    op.flops = 128e9; /* of 4000, as long as one of the sides is not known */
    for (int side = 0; side < 3; side++) {
        op.rows = side == 0 ? 0 : 1000;
        op.cols = side == 1 ? 0 : 1000;
        op.depth = side == 2 ? 0 : 1000;
        assert_int_equal(ns(op), 2560000 + 7);
    }
}

static void attention_follows_its_own(void **state)
{
    (void)state;
    dev.attention_forward_curve = (struct hb_curve){1, {1000}, {0.5}};
    dev.attention_backward_curve = (struct hb_curve){2, {1000, 4000}, {0.25, 0.125}};
    struct hb_op op = {.kind = HB_OP_ATTENTION, .dtype = HB_DT_BF16, .flops = 1e11, .cols = 4000};
    assert_int_equal(ns(op), 2000000 + 7);
    op.phase = HB_PHASE_BACKWARD; /* run again */
    assert_int_equal(ns(op), 2000000 + 7);
    op.adjoint = true;
    assert_int_equal(ns(op), 8000000 + 7);
    op.rows = 4000; /* the longer side counts */
    op.cols = 1;
    assert_int_equal(ns(op), 8000000 + 7);
    op.rows = op.cols = 0; /* unknown: as 4096 */
    assert_int_equal(ns(op), 8000000 + 7);
}

static void heads_fill_the_unit_or_not(void **state)
{
    (void)state;
    struct hb_op op = {.kind = HB_OP_ATTENTION, .dtype = HB_DT_BF16, .flops = 1e11, .depth = 128};
    int64_t whole = ns(op) - 7;
    dev.mxu_dim = 256;
    assert_int_equal(ns(op), 2 * whole + 7);
    op.depth = 192;
    assert_int_equal(ns(op), llround((double)whole * 256 / 192) + 7);
    op.depth = 256;
    assert_int_equal(ns(op), whole + 7);
    op.depth = 0; /* unknown */
    assert_int_equal(ns(op), whole + 7);
}

static void narrow_heads_are_slower(void **state)
{
    (void)state;
    struct hb_op op = {.kind = HB_OP_ATTENTION, .dtype = HB_DT_BF16, .flops = 1e11, .depth = 64};
    int64_t whole = ns(op) - 7;
    dev.attention_width64 = 0.8;
    assert_int_equal(ns(op), llround((double)whole / 0.8) + 7);
    op.depth = 32;
    assert_int_equal(ns(op), llround((double)whole / 0.64) + 7);
    op.depth = 128;
    assert_int_equal(ns(op), whole + 7);
    op.depth = 0; /* unknown */
    assert_int_equal(ns(op), whole + 7);
}

/* The vendor's library, torch's own kernel, the one in Triton: 69 % of torch's forwards, 47.5
 * backwards. */
static void kernels_of_attention(void **state)
{
    (void)state;
    dev.attention_forward_curve = (struct hb_curve){1, {1000}, {0.5}};
    dev.sdpa_forward_curve = (struct hb_curve){1, {1000}, {0.25}};
    dev.attention_width64 = 0.8;
    struct hb_op op = {
        .kind = HB_OP_ATTENTION, .dtype = HB_DT_BF16, .flops = 1e11, .cols = 4096, .depth = 128};
    assert_int_equal(ns(op), 2000000 + 7);
    prog.flash = HB_FLASH_TORCH;
    assert_int_equal(ns(op), 4000000 + 7);
    prog.flash = HB_FLASH_TRITON;
    assert_int_equal(ns(op), llround(4000000 / 0.69) + 7);
    op.depth = 64;
    assert_int_equal(ns(op), llround(4000000 / 0.69) + 7);
    dev.sdpa_backward_curve = dev.sdpa_forward_curve;
    op.adjoint = true;
    assert_int_equal(ns(op), llround(4000000 / 0.475) + 7);
}

static void experts_products_have_a_curve(void **state)
{
    (void)state;
    dev.matmul_curve[HB_RATE_BF16] = (struct hb_curve){2, {1000, 4000}, {0.25, 0.5}};
    dev.grouped_curve = (struct hb_curve){1, {1000}, {0.125}};
    struct hb_op op = {.kind = HB_OP_MATMUL, .dtype = HB_DT_BF16, .flops = 1e11, .batch = 1};
    op.rows = op.cols = op.depth = 1000;
    assert_int_equal(ns(op), 4000000 + 7);
    op.grouped = true;
    assert_int_equal(ns(op), 8000000 + 7);
    op.rows = op.cols = op.depth = 4000;
    assert_int_equal(ns(op), 8000000 + 7);
}

static void types_without_a_unit(void **state)
{
    (void)state;
    struct hb_op op = {.kind = HB_OP_MATMUL, .dtype = HB_DT_F32, .flops = 1e11};
    assert_int_equal(ns(op), 2000000 + 7); /* TF32: JAX's default on NVIDIA */
    dev.vendor = HB_VENDOR_AMD;
    assert_int_equal(ns(op), 10000000 + 7);
    op.dtype = HB_DT_F8; /* no such unit here: as bf16 */
    assert_int_equal(ns(op), 1000000 + 7);
    op.dtype = HB_DT_F64; /* none at all: the vector unit */
    assert_int_equal(ns(op), 100000000 + 7);
    struct hb_cost cost;
    hb_cost_init(&cost, &prog, &dev);
    assert_true(hb_cost_peak_flops(&cost, HB_DT_F64) == 1e12);
    assert_true(hb_cost_peak_flops(&cost, HB_DT_BF16) == 1e14);
}

static void collectives_by_axis_and_group(void **state)
{
    (void)state;
    struct hb_op op = {.kind = HB_OP_ALL_GATHER, .sent_bytes = 8e9, .axis = HB_AX_FSDP};
    op.group = 1;
    assert_int_equal(ns(op), 0);
    op.group = 2;
    assert_int_equal(ns(op), 40000000);
    op.group = 8;
    prog.mesh[HB_AX_FSDP] = 8;
    int64_t near = ns(op);
    assert_int_equal(near, 70000000); /* 7/8 of 8 GB over 10 links of 10 GB/s */
    prog.mesh[HB_AX_TENSOR] = 8;      /* now neighbours on fsdp are in different domains */
    int64_t far = ns(op);
    struct hb_link_group apart = {8, 8, 64};
    assert_int_equal(far, hb_link_collective_ns(&dev, HB_COLL_ALL_GATHER, 8e9, apart));
    assert_true(far > near);
}

/* Over eight that share it, then its part over two copies in different domains. */
static void sums_go_on_over_copies(void **state)
{
    (void)state;
    struct hb_op op = {.kind = HB_OP_REDUCE_SCATTER, .sent_bytes = 8e9, .axis = HB_AX_FSDP};
    op.group = prog.mesh[HB_AX_FSDP] = 8;
    prog.mesh[HB_AX_DATA] = 2;
    int64_t shared = ns(op);
    struct hb_link_group copies = {2, 8, 16};
    op.over_data = true;
    assert_int_equal(ns(op), shared + hb_link_collective_ns(&dev, HB_COLL_ALL_REDUCE, 1e9, copies));
    op.group = 1;
    assert_int_equal(ns(op), hb_link_collective_ns(&dev, HB_COLL_ALL_REDUCE, 8e9, copies));
    prog.mesh[HB_AX_DATA] = 1;
    assert_int_equal(ns(op), 0);
}

/* Where the mesh is not given, the groups of the ops tell it. */
static void groups_tell_the_mesh(void **state)
{
    (void)state;
    add((struct hb_op){.kind = HB_OP_ALL_REDUCE, .axis = HB_AX_TENSOR, .group = 4});
    add((struct hb_op){.kind = HB_OP_ALL_REDUCE, .axis = HB_AX_DATA, .group = 16});
    add((struct hb_op){.kind = HB_OP_ALL_REDUCE, .axis = HB_AX_FSDP, .group = 2});
    struct hb_cost cost;
    hb_cost_init(&cost, &prog, &dev);
    assert_int_equal(cost.total, 128);
    assert_int_equal(cost.stride[HB_AX_TENSOR], 1);
    assert_int_equal(cost.stride[HB_AX_FSDP], 4);
    assert_int_equal(cost.stride[HB_AX_DATA], 8);
}

static void host_copies_share_the_link(void **state)
{
    (void)state;
    struct hb_op down = {.kind = HB_OP_HOST_COPY, .stream = HB_STREAM_D2H, .moved_bytes = 1e9};
    struct hb_op up = {.kind = HB_OP_HOST_COPY, .stream = HB_STREAM_H2D, .moved_bytes = 1e9};
    uint32_t alone = add(down);
    assert_int_equal(ns_of(alone), 100000000);
    uint32_t loop = hb_program_open_loop(&prog, "loop", 2);
    uint32_t first = add(down), second = add(up);
    hb_program_close_loop(&prog, loop);
    assert_int_equal(ns_of(alone), 100000000);
    assert_int_equal(ns_of(first), 200000000);
    assert_int_equal(ns_of(second), 200000000);
    dev.host_up_bytes_per_s = 5e9;
    assert_int_equal(ns_of(first), 200000000);
    assert_int_equal(ns_of(second), 400000000);
}

/* Of the loops past the first 64 as of the others: two ways share the link, one way has it alone,
 * and a copy of another loop or one that is waited for at once is not beside. */
static void host_copies_share_the_link_in_the_last_of_many_loops(void **state)
{
    (void)state;
    struct hb_op down = {.kind = HB_OP_HOST_COPY, .stream = HB_STREAM_D2H, .moved_bytes = 1e9};
    struct hb_op up = {.kind = HB_OP_HOST_COPY, .stream = HB_STREAM_H2D, .moved_bytes = 1e9};
    for (int i = 0; i < 70; i++) {
        uint32_t loop = hb_program_open_loop(&prog, "loop", 2);
        add((struct hb_op){.kind = HB_OP_MARK});
        hb_program_close_loop(&prog, loop);
    }
    uint32_t both = hb_program_open_loop(&prog, "both ways", 2);
    uint32_t first = add(down), second = add(up);
    hb_program_close_loop(&prog, both);
    uint32_t one = hb_program_open_loop(&prog, "one way", 2);
    uint32_t alone = add(down), waited = add(up);
    hb_program_add_op(&prog, (struct hb_op){.name = "op", .kind = HB_OP_DONE, .start = waited});
    hb_program_close_loop(&prog, one);
    assert_int_equal(ns_of(first), 200000000);
    assert_int_equal(ns_of(second), 200000000);
    assert_int_equal(ns_of(alone), 100000000);
    assert_int_equal(ns_of(waited), 100000000);
}

/* The 64th is the first of those past: no bit of a word stands for it, the first least of all. */
static void a_copy_in_the_64th_loop_is_not_beside_the_step(void **state)
{
    (void)state;
    struct hb_op down = {.kind = HB_OP_HOST_COPY, .stream = HB_STREAM_D2H, .moved_bytes = 1e9};
    struct hb_op up = {.kind = HB_OP_HOST_COPY, .stream = HB_STREAM_H2D, .moved_bytes = 1e9};
    uint32_t last = HB_NONE;
    for (int i = 0; i < 64; i++) {
        uint32_t loop = hb_program_open_loop(&prog, "loop", 2);
        last = add(i < 63 ? (struct hb_op){.kind = HB_OP_MARK} : down);
        hb_program_close_loop(&prog, loop);
    }
    uint32_t step = add(up);
    assert_int_equal(ns_of(last), 100000000);
    assert_int_equal(ns_of(step), 100000000);
}

/* What is waited for at once is beside nothing, the first op of all too; the last is waited for by
 * none. */
static void the_first_copy_may_be_waited_for(void **state)
{
    (void)state;
    struct hb_op down = {.kind = HB_OP_HOST_COPY, .stream = HB_STREAM_D2H, .moved_bytes = 1e9};
    struct hb_op up = {.kind = HB_OP_HOST_COPY, .stream = HB_STREAM_H2D, .moved_bytes = 1e9};
    uint32_t waited = add(up);
    hb_program_add_op(&prog, (struct hb_op){.name = "op", .kind = HB_OP_DONE, .start = waited});
    uint32_t last = add(down);
    assert_int_equal(ns_of(waited), 100000000);
    assert_int_equal(ns_of(last), 100000000);
}

static void marks_and_waits_take_no_time(void **state)
{
    (void)state;
    assert_int_equal(ns((struct hb_op){.kind = HB_OP_MARK, .moved_bytes = 1e9}), 0);
    assert_int_equal(ns((struct hb_op){.kind = HB_OP_DONE, .flops = 1e9}), 0);
}

static void absurd_inputs_stay_in_range(void **state)
{
    (void)state;
    static const double sizes[] = {1e18, 1e300, INFINITY, NAN, -1, 0};
    for (int kind = 0; kind < HB_OP_KIND_COUNT; kind++)
        for (int i = 0; i < 6; i++) {
            struct hb_op op = {.kind = (enum hb_op_kind)kind,
                               .flops = sizes[i],
                               .moved_bytes = sizes[i],
                               .sent_bytes = sizes[i],
                               .group = INT64_MAX,
                               .rows = INT64_MAX,
                               .cols = INT64_MAX,
                               .depth = INT64_MAX,
                               .batch = sizes[i]};
            int64_t got = ns(op);
            assert_true(got >= 0 && got <= HB_COST_MAX_NS);
        }
    struct hb_op op = {.kind = HB_OP_MATMUL, .dtype = HB_DT_BF16, .flops = 1e18};
    assert_int_equal(ns(op), INT64_C(10000000000000) + 7);
}

/* Of few sizes, so that most are as long as one before; of more than are remembered at once. */
static void ops_of_a_step_share_its_time(void **state)
{
    (void)state;
    static const enum hb_op_kind kinds[] = {HB_OP_COPY, HB_OP_ELEMENTWISE, HB_OP_MATMUL};
    enum { OPS = 8000, FIRST = 1000 };
    struct hb_rng rng = hb_rng_seed(7);
    struct hb_timing t = {.step_ns = 123456789};
    double sum = 0, at = 0;
    for (int i = 0; i < OPS; i++)
        add((struct hb_op){.kind = kinds[hb_rng_range(&rng, 0, 2)],
                           .dtype = HB_DT_BF16,
                           .flops = 1e6 * (double)hb_rng_range(&rng, 0, 30),
                           .moved_bytes = 1e4 * (double)hb_rng_range(&rng, 0, 30)});
    prog.caching.second_op = FIRST;
    assert_true(hb_dating_make(arena, &prog, &dev, &t));
    assert_int_equal(t.span_count, OPS - FIRST);
    for (uint32_t i = FIRST; i < OPS; i++)
        sum += (double)ns_of(i);
    for (uint32_t i = FIRST; i < OPS; i++) {
        assert_int_equal(t.spans[i - FIRST].op, i);
        assert_int_equal(t.op_start_ns[i], (int64_t)(at * (double)t.step_ns / sum));
        at += (double)ns_of(i);
        assert_int_equal(t.op_end_ns[i], (int64_t)(at * (double)t.step_ns / sum));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_longer_of_arithmetic_and_memory, start, end),
        cmocka_unit_test_setup_teardown(products_follow_the_curve, start, end),
        cmocka_unit_test_setup_teardown(attention_follows_its_own, start, end),
        cmocka_unit_test_setup_teardown(heads_fill_the_unit_or_not, start, end),
        cmocka_unit_test_setup_teardown(narrow_heads_are_slower, start, end),
        cmocka_unit_test_setup_teardown(kernels_of_attention, start, end),
        cmocka_unit_test_setup_teardown(experts_products_have_a_curve, start, end),
        cmocka_unit_test_setup_teardown(types_without_a_unit, start, end),
        cmocka_unit_test_setup_teardown(collectives_by_axis_and_group, start, end),
        cmocka_unit_test_setup_teardown(sums_go_on_over_copies, start, end),
        cmocka_unit_test_setup_teardown(groups_tell_the_mesh, start, end),
        cmocka_unit_test_setup_teardown(host_copies_share_the_link, start, end),
        cmocka_unit_test_setup_teardown(host_copies_share_the_link_in_the_last_of_many_loops, start,
                                        end),
        cmocka_unit_test_setup_teardown(a_copy_in_the_64th_loop_is_not_beside_the_step, start, end),
        cmocka_unit_test_setup_teardown(the_first_copy_may_be_waited_for, start, end),
        cmocka_unit_test_setup_teardown(marks_and_waits_take_no_time, start, end),
        cmocka_unit_test_setup_teardown(absurd_inputs_stay_in_range, start, end),
        cmocka_unit_test_setup_teardown(ops_of_a_step_share_its_time, start, end),
    };
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
