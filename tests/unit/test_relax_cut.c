/* solver/relax_cut: rows of what a trip waits for, of programs made by hand. */
#include <math.h>

#include "tests/unit/unit.h"

#include "hw/device.h"
#include "hw/link.h"
#include "solver/relax_build.h"

enum { TRIPS = 4, AGAIN_COLUMN = 7, KEPT_COLUMN = 3, EARLY_COLUMN = 9, PATH_NS = 1000000 };
enum { BEFORE, AGAIN, CUT, BEHIND, OPS }; /* of the program that makes everything again */

struct made {
    struct hb_arena *arena;
    struct hb_diag diag;
    struct hb_device device;
    struct hb_spec spec;
    struct hb_relax_ask ask;
    struct hb_relax_build x;
    bool optional[OPS], again[OPS];
    uint32_t op_column[OPS], kept_column[3], early_column[3], reads[1];
    struct hb_relax_cut cuts[1];
    struct hb_relax_early early[4];
};

static void work(struct hb_program *p, const char *name, double bytes)
{
    hb_program_add_op(p, (struct hb_op){.name = name,
                                        .kind = HB_OP_ELEMENTWISE,
                                        .stream = HB_STREAM_COMPUTE,
                                        .start = HB_NONE,
                                        .moved_bytes = bytes});
}

/* The cut's op takes less where everything is made again, the one behind it more. */
static void make_programs(struct made *m)
{
    struct hb_relax_build *x = &m->x;
    hb_program_init(&x->full, m->arena, "full", HB_XLA_TPU);
    hb_program_init(&x->all, m->arena, "all", HB_XLA_TPU);
    for (uint32_t i = 0; i < 3; i++)
        hb_program_add_buf(
            &x->full,
            (struct hb_buf){
                .name = "kept", .why = "", .bytes = 1 << 20, .plain_bytes = 1 << 20, .slices = 1});
    uint32_t loop = hb_program_open_loop(&x->full, "backward", TRIPS);
    work(&x->full, "before", 1e9);
    work(&x->full, "again", 3e9);
    work(&x->full, "cut", 2e9);
    work(&x->full, "behind", 5e9);
    hb_program_close_loop(&x->full, loop);
    loop = hb_program_open_loop(&x->all, "backward", TRIPS);
    work(&x->all, "before", 1.5e9);
    work(&x->all, "cut", 6e9);
    work(&x->all, "choice", 7e9);
    work(&x->all, "behind", 4e9);
    hb_program_close_loop(&x->all, loop);
}

static void start(struct made *m)
{
    *m = (struct made){.arena = hb_arena_new()};
    struct hb_relax_build *x = &m->x;
    hb_diag_init(&m->diag, m->arena);
    assert_true(hb_device_load(m->arena, &m->diag, HB_SOURCE_DIR, "tpu-v5p", (struct hb_loc){0},
                               &m->device));
    make_programs(m);
    m->ask = (struct hb_relax_ask){.cell_spec = &m->spec, .device = &m->device};
    m->optional[2] = m->again[AGAIN] = true;
    for (uint32_t i = 0; i < OPS; i++)
        m->op_column[i] = i == AGAIN ? AGAIN_COLUMN : HB_NONE;
    for (uint32_t i = 0; i < 3; i++) {
        m->kept_column[i] = KEPT_COLUMN + 2 * i;
        m->early_column[i] = EARLY_COLUMN + i;
    }
    m->cuts[0] = (struct hb_relax_cut){.op = CUT, .end_read = 1};
    x->arena = m->arena;
    x->ask = &m->ask;
    x->optional = m->optional;
    x->again = m->again;
    x->op_column = m->op_column;
    x->kept_column = m->kept_column;
    x->early_column = m->early_column;
    x->reads = m->reads;
    x->cuts = m->cuts;
    x->cut_count = 1;
    x->early = m->early;
}

static uint32_t rows_of(struct made *m)
{
    struct hb_relax_build *x = &m->x;
    hb_cost_init(&x->cost, &x->full, &m->device);
    hb_cost_init(&x->all_cost, &x->all, &m->device);
    hb_relax_add_cuts(x, PATH_NS);
    return x->lp.row_count;
}

static void assert_entry(const struct made *m, uint32_t at, uint32_t column, double value)
{
    assert_true(at < m->x.lp.entry_count);
    assert_int_equal(m->x.lp.entries[at].column, column);
    assert_true(fabs(m->x.lp.entries[at].value - value) <= 1e-9 * fabs(value));
}

/* The path without what lies before the cut: what is before it whole, and what those from it on
 * take less where everything is made again. */
static double rest_of(const struct made *m)
{
    int64_t before = hb_cost_op_ns(&m->x.all_cost, 0), cut = hb_cost_op_ns(&m->x.all_cost, 1),
            less = hb_cost_op_ns(&m->x.cost, CUT);
    assert_true(before > 0 && less > 0 && cut > less);
    assert_true(hb_cost_op_ns(&m->x.cost, BEHIND) > hb_cost_op_ns(&m->x.all_cost, 3));
    return (double)(PATH_NS - TRIPS * (before + cut - less)) / HB_RELAX_MS;
}

static double copy_of(const struct made *m)
{
    double ns = (double)hb_link_host_ns(&m->device, hb_relax_layer_bytes(&m->x, 0), true, false);
    assert_true(ns > 0);
    return -ns * TRIPS / HB_RELAX_MS;
}

/* What is made again counts from the cut on, and in any place of another loop. */
static void a_cut_is_a_row(void **state)
{
    (void)state;
    struct made m;
    start(&m);
    assert_int_equal(rows_of(&m), 1);
    assert_true(fabs(m.x.lp.rows[0].least - rest_of(&m)) < 1e-9);
    assert_int_equal(m.x.lp.entry_count, 2); /* what is made again lies before the cut */
    assert_entry(&m, 0, 0, 1);
    assert_entry(&m, 1, KEPT_COLUMN + 1, copy_of(&m));
    hb_arena_free(m.arena);
    start(&m);
    m.op_column[CUT] = AGAIN_COLUMN;
    m.op_column[BEHIND] = AGAIN_COLUMN + 1;
    m.x.full.ops[BEHIND].stream = HB_STREAM_COLLECTIVE;
    m.x.all.ops[3].stream = HB_STREAM_COLLECTIVE;
    assert_int_equal(rows_of(&m), 1);
    assert_int_equal(m.x.lp.entry_count, 3);
    assert_entry(&m, 2, AGAIN_COLUMN, -(double)hb_cost_op_ns(&m.x.cost, CUT) * TRIPS / HB_RELAX_MS);
    hb_arena_free(m.arena);
}

/* What is there before all others is copied once, by what is read of it or for itself, and in its
 * own loop. */
static void what_is_early_is_copied_once(void **state)
{
    (void)state;
    struct made m;
    start(&m);
    m.early[0] = (struct hb_relax_early){.buf = 0};
    m.early[1] = (struct hb_relax_early){.buf = 1};
    m.early[2] = (struct hb_relax_early){.buf = 1};
    m.early[3] = (struct hb_relax_early){.buf = 2, .loop = 1};
    m.x.early_count = 4;
    assert_int_equal(rows_of(&m), 1);
    assert_int_equal(m.x.lp.entry_count, 3);
    assert_entry(&m, 1, KEPT_COLUMN + 1, copy_of(&m));
    assert_entry(&m, 2, EARLY_COLUMN + 1, copy_of(&m));
    hb_arena_free(m.arena);
}

/* A column each of those that are early, and rows that say when: e >= h + r - 1. */
static void early_columns_are_shared(void **state)
{
    (void)state;
    struct made m;
    start(&m);
    m.early[0] = m.early[1] = (struct hb_relax_early){.buf = 1, .op = AGAIN};
    m.x.early_count = 2;
    m.early_column[1] = HB_NONE;
    m.x.lp.columns = 20;
    hb_relax_add_early(&m.x);
    assert_int_equal(m.x.lp.columns, 21);
    assert_int_equal(m.early_column[1], 20);
    assert_int_equal(m.x.lp.row_count, 2);
    assert_int_equal(m.x.lp.entry_count, 6);
    assert_true(m.x.lp.rows[1].least == -1);
    assert_entry(&m, 3, 20, 1);
    assert_entry(&m, 4, KEPT_COLUMN + 3, -1);
    assert_entry(&m, 5, AGAIN_COLUMN, -1);
    hb_arena_free(m.arena);
}

/* Programs whose ops are not the same say nothing of the cut. */
static void unlike_programs_have_no_row(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct made m;
        start(&m);
        m.x.all.ops[1].name = i == 0 ? "another" : "cut";
        m.x.all.loops[0].trips += i == 1;
        m.x.all.loops[0].end_op -= i == 2;
        m.x.full.loops[0].end_op -= i == 3;
        m.x.all.loop_count += i == 4;
        assert_int_equal(rows_of(&m), i == 5);
        hb_arena_free(m.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_is_a_row), cmocka_unit_test(what_is_early_is_copied_once),
        cmocka_unit_test(early_columns_are_shared), cmocka_unit_test(unlike_programs_have_no_row)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
