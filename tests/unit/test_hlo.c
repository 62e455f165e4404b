/* sim/hlo: shapes and what they take, errors and their places, small modules reckoned by hand, what
 * if, halo exchanges against measured ones, and samples cut off at every byte. The compilers' own
 * figures are in tests/cli/hlo.sh. */
#include "tests/unit/unit.h"

#include "base/file.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "sim/hlo/edit.h"
#include "sim/hlo/halo.h"
#include "sim/hlo/report.h"

struct fixture {
    struct unit u;
    struct hb_hlo_text text;
    struct hb_hlo_module m;
    struct hb_hlo_report r;
};

static bool read_module(struct fixture *f, const char *text, size_t len, const char *backend)
{
    f->text = (struct hb_hlo_text){"t.hlo", text, len, 0};
    if (!hb_hlo_module_read(f->u.env.arena, &f->u.diag, &f->text, &f->m))
        return false;
    if (backend)
        f->m.dialect = hb_hlo_dialect_find(backend);
    return true;
}

static bool report(struct fixture *f, const char *text, const char *backend)
{
    unit_start(&f->u);
    return read_module(f, text, strlen(text), backend) &&
           hb_hlo_report_make(f->u.env.arena, &f->u.diag, &f->m, HB_HLO_ASK_NONE, &f->r);
}

/* ---- shapes ---- */

/* Bytes worked by hand: tiles round up their dimensions, `*` joins one with the next. */
static void shapes_take_what_their_tiles_do(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes, plain;
        int space;
    } rows[] = {
        {"f32[]", 4, 4, 0},
        {"f32[3,5]{1,0}", 60, 60, 0},
        {"pred[7]", 7, 7, 0},
        {"f64[826,3068]{0,1}", 826 * 3068 * 8, 826 * 3068 * 8, 0},
        {"s4[8,128]{1,0}", 1024, 1024, 0},
        {"s4[8,128]{1,0:E(4)}", 512, 512, 0},
        {"f32[8,128]{1,0:T(8,128)}", 4096, 4096, 0},
        {"f32[9,129]{1,0:T(8,128)}", 16 * 256 * 4, 9 * 129 * 4, 0},
        {"f32[9,129]{0,1:T(8,128)}", 136 * 128 * 4, 9 * 129 * 4, 0},
        {"bf16[3,129]{1,0:T(8,128)(2,1)}", 8 * 256 * 2, 3 * 129 * 2, 0},
        {"f32[2,3,5]{2,1,0:T(8,128)S(1)}", 2 * 8 * 128 * 4, 120, 1},
        {"s32[10]{0:T(128)}", 512, 40, 0},
        {"pred[3]{0:T(512)S(5)}", 512, 3, 5},
        {"f32[]{:T(128)}", 512, 4, 0},
        {"(f32[2], (s32[], bf16[4]))", 16, 16, 0},
        {"f32[2,4,128]{2,1,0:T(*,128)}", 2 * 4 * 128 * 4, 2 * 4 * 128 * 4, 0},
        {"token[]", 0, 0, 0},
        {"f32[?,5]{1,0}", 0, 0, 0},
        {"f32[<=3,5]{1,0}", 60, 60, 0},
        {"f32[4]{0:T(128)SC(2)(1)M(7)#(u32)}", 512, 16, 0},
    };
    struct unit u;
    unit_start(&u);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hb_hlo_shapes shapes;
        uint32_t shape;
        hb_hlo_shapes_init(&shapes, u.env.arena);
        struct hb_hlo_lex lex = {rows[i].text, rows[i].text + strlen(rows[i].text)};
        assert_true(hb_hlo_shape_read(&shapes, &lex, &shape));
        assert_ptr_equal(lex.at, lex.end);
        assert_int_equal(shapes.items[shape].bytes, rows[i].bytes);
        assert_int_equal(shapes.items[shape].plain_bytes, rows[i].plain);
        assert_int_equal(shapes.items[shape].space, rows[i].space);
    }
    unit_end(&u);
}

static void equal_shapes_are_one(void **state)
{
    (void)state;
    struct unit u;
    struct hb_hlo_shapes shapes;
    uint32_t a, b, c;
    unit_start(&u);
    hb_hlo_shapes_init(&shapes, u.env.arena);
    const char *text = "(f32[2]{0}, f32[2]{0}) (f32[2]{0}, f32[2]{0}) f32[2]{0}";
    struct hb_hlo_lex lex = {text, text + strlen(text)};
    assert_true(hb_hlo_shape_read(&shapes, &lex, &a));
    hb_hlo_skip_space(&lex);
    assert_true(hb_hlo_shape_read(&shapes, &lex, &b));
    hb_hlo_skip_space(&lex);
    assert_true(hb_hlo_shape_read(&shapes, &lex, &c));
    assert_int_equal(a, b);
    assert_int_equal(hb_hlo_shape_child(&shapes, a, 1), c);
    assert_int_equal(shapes.items[a].slots, 3);
    assert_int_equal(hb_hlo_shape_at_slot(&shapes, a, 2), c);
    unit_end(&u);
}

static bool read_shape(struct hb_hlo_shapes *shapes, const char *text, uint32_t *out)
{
    struct hb_hlo_lex lex = {text, text + strlen(text)};
    return hb_hlo_shape_read(shapes, &lex, out) && lex.at == lex.end;
}

/* However they are written: a layout left out is the usual one. */
static void same_is_what_lies_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {"f32[2,3]", "f32[2,3]{1,0}", true},
        {"f32[2,3]", "f32[2,3]{0,1}", false},
        {"f32[2,3]", "f32[3,2]", false},
        {"f32[2,3]", "s32[2,3]", false},
        {"f32[2,3]", "f32[2,3,1]", false},
        {"f32[]", "f32[]{}", true},
        {"f32[8,128]{1,0}", "f32[8,128]{1,0:S(1)}", false},
        {"f32[8,128]{1,0}", "f32[8,128]{1,0:T(8,128)}", false},
        {"f32[8,128]{1,0:T(8,128)}", "f32[8,128]{1,0:T(8,128)D(D)}", true},
        {"(f32[2,3], s32[])", "(f32[2,3]{1,0}, s32[])", true},
        {"(f32[2,3], s32[])", "(f32[2,3]{0,1}, s32[])", false},
        {"(f32[2,3], s32[])", "(f32[2,3], s32[], s32[])", false},
        {"(f32[2,3], (s32[]))", "((f32[2,3]), s32[])", false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct unit u;
        struct hb_hlo_shapes shapes;
        uint32_t a, b;
        unit_start(&u);
        hb_hlo_shapes_init(&shapes, u.env.arena);
        assert_true(read_shape(&shapes, pairs[i].a, &a) && read_shape(&shapes, pairs[i].b, &b));
        if (hb_hlo_shape_same(&shapes, a, b) != pairs[i].same ||
            hb_hlo_shape_same(&shapes, b, a) != pairs[i].same)
            fail_msg("row %zu: %s, %s", i, pairs[i].a, pairs[i].b);
        unit_end(&u);
    }
}

static void broken_shapes_are_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "f32",
        "f32[",
        "f32[2",
        "f32[2,",
        "f32[2,3]{1}",
        "f32[2,3]{1,1}",
        "f32[2,3]{2,0}",
        "f32[2]{0",
        "f32[2]{0:",
        "f32[2]{0:T}",
        "f32[2]{0:T(}",
        "f32[2]{0:T()}",
        "f32[2]{0:T(0)}",
        "f32[2]{0:T(8,)}",
        "f32[2]{0:T(8}",
        "f32[2]{0:T(8,*)}",
        "f32[2]{0:T(8)(}",
        "f32[2]{0:T(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)(2)}",
        "f32[2]{0:S}",
        "f32[2]{0:S(}",
        "f32[2]{0:S(x)}",
        "f32[2]{0:S(1}",
        "f32[2]{0:S(999)}",
        "f32[2]{0:SC}",
        "f32[2]{0:SD(1)}",
        "f32[2]{0:SC(1)(}",
        "f32[2]{0:E(999)}",
        "f32[2]{0:D}",
        "f32[2]{0:D(}",
        "f32[2]{0:!}",
        "f32[<2",
        "f32[<2]",
        "f32[2,3]{1,0,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28}",
        "f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
        "(f32[2]",
        "(f32[2],",
        "(f32[2] s32[])",
        "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct unit u;
        struct hb_hlo_shapes shapes;
        uint32_t shape;
        unit_start(&u);
        hb_hlo_shapes_init(&shapes, u.env.arena);
        if (read_shape(&shapes, texts[i], &shape))
            fail_msg("'%s' was read", texts[i]);
        unit_end(&u);
    }
}

/* ---- errors ---- */

static void errors_have_line_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"", "t.hlo:1:1: error: "},
        {"garbage", "t.hlo:1:8: error: the file ends too early: an HLO text begins with"},
        {"HloModule m\n", "t.hlo:"},
        {"HloModule m\nENTRY e {\n  a = f32[] parameter(0)\n  b = f32[] add(a, c)\n}\n",
         "t.hlo:4:20: error: operand 'c' is not defined above"},
        {"HloModule m\nENTRY e {\n  a = f32[8] parameter(0)\n  b = f32[8] negate(f32[8])\n}\n",
         "t.hlo:4:21: error: an operand is a shape without a name"},
        {"HloModule m\nENTRY e {\n  a = f99[] parameter(0)\n}\n", "t.hlo:3:7: error: "},
        {"HloModule m\nENTRY e {\n  a = f32[4]{1} parameter(0)\n}\n", "t.hlo:3:7: error: "},
        {"HloModule m\nENTRY e {\n  a = f32[] parameter(x)\n}\n",
         "t.hlo:3:23: error: a parameter number is wanted here"},
        {"HloModule m\nENTRY e {\n  a = f32[] fusion(), calls=f\n}\n", "t.hlo:3:"},
        {"HloModule m\nENTRY e {\n  a = f32[] parameter(0)\n  a = f32[] parameter(1)\n}\n",
         "t.hlo:4:"},
        {"HloModule m\nENTRY e {\n  a = f32[] parameter(0)\n", "ends too early"},
        {"HloModule m\nENTRY e {\n  a = f32[9223372036854775807] parameter(0)\n"
         "  b = f32[9223372036854775807] negate(a)\n}\n",
         "t.hlo:3:7: error: this shape takes 2^60 bytes or more"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        assert_false(report(&f, rows[i].text, "cpu"));
        hb_diag_print(&f.u.diag, f.u.env.err);
        if (!strstr(unit_err(&f.u), rows[i].wanted))
            fail_msg("row %zu: '%s' lacks '%s'", i, unit_err(&f.u), rows[i].wanted);
        unit_end(&f.u);
    }
}

/* ---- small modules, by hand ---- */

#define TWO_STEPS                                                                                  \
    "HloModule m, is_scheduled=true\nENTRY e {\n  a = f32[1000]{0} parameter(0)\n"                 \
    "  b = f32[1000]{0} reverse(a), dimensions={0}\n"                                              \
    "  c = f32[1000]{0} %s\n  ROOT d = f32[10]{0} slice(c), slice={[0:10]}\n}\n"
#define EXCHANGE(HOW, MORE)                                                                        \
    "HloModule m, is_scheduled=true\n" MORE "ENTRY e {\n  a = f32[1024] parameter(0)\n"            \
    "  b = f32[1024] reverse(a), dimensions={0}\n  c = f32[1024] reverse(b), dimensions={0}\n"     \
    "  s = ((f32[1024]), f32[1024]) " HOW "\n  d = f32[1024] all-to-all-done(s)\n"                 \
    "  f = f32[1024] reverse(d), dimensions={0}\n  g = f32[1024] reverse(f), dimensions={0}\n"     \
    "  h = f32[1024] reverse(g), dimensions={0}\n"                                                 \
    "  ROOT r = f32[1024] reverse(h), dimensions={0}\n}\n"
#define CARRY                                                                                      \
    "HloModule m, is_scheduled=true\n"                                                             \
    "cond {\n  p = (f32[1000]{0}, s32[]) parameter(0)\n"                                           \
    "  i = s32[] get-tuple-element(p), index=1\n  k = s32[] constant(3)\n"                         \
    "  ROOT l = pred[] compare(i, k), direction=LT\n}\n"                                           \
    "body {\n  p = (f32[1000]{0}, s32[]) parameter(0)\n"                                           \
    "  x = f32[1000]{0} get-tuple-element(p), index=0\n"                                           \
    "  i = s32[] get-tuple-element(p), index=1\n  k = s32[] constant(1)\n"                         \
    "  y = f32[1000]{0} reverse(x), dimensions={0}\n  n = s32[] add(i, k)\n"                       \
    "  ROOT r = (f32[1000]{0}, s32[]) tuple(y, n)\n}\n"                                            \
    "ENTRY e {\n  a = f32[1000]{0} parameter(0)\n  z = s32[] constant(0)\n"                        \
    "  b = f32[1000]{0} reverse(a), dimensions={0}\n  j = s32[] copy(z)\n"                         \
    "  t = (f32[1000]{0}, s32[]) tuple(b, j)\n"                                                    \
    "  w = (f32[1000]{0}, s32[]) while(t), condition=cond, body=body\n"                            \
    "  v = f32[1000]{0} get-tuple-element(w), index=0\n"                                           \
    "  ROOT d = f32[10]{0} slice(v), slice={[0:10]}\n}\n"

/* What a module takes: argument, output, alias, temp. */
static void assert_takes(const char *text, const char *backend, const int64_t *wanted)
{
    struct fixture f;
    assert_true(report(&f, text, backend));
    const struct hb_hlo_figures *g = &f.r.figures;
    assert_int_equal(g->argument_bytes, wanted[0]);
    assert_int_equal(g->output_bytes, wanted[1]);
    assert_int_equal(g->alias_bytes, wanted[2]);
    assert_int_equal(g->temp_bytes, wanted[3]);
    assert_int_equal(g->total_bytes, wanted[0] + wanted[1] - wanted[2] + wanted[3]);
    assert_true(g->liveness_bound_bytes <= g->total_bytes);
    unit_end(&f.u);
}

static void small_modules_take_what_the_rules_say(void **state)
{
    (void)state;
    char share[1024], copy[1024];
    snprintf(share, sizeof share, TWO_STEPS, "negate(b)");
    snprintf(copy, sizeof copy, TWO_STEPS, "copy(b)");
    assert_takes(share, "cpu", (const int64_t[]){4000, 40, 0, 4000}); /* c in b's place */
    assert_takes(copy, "cpu",
                 (const int64_t[]){4000, 40, 0, 8032}); /* 4032 + 4000: multiples of 64 */
    assert_takes(copy, "gpu", (const int64_t[]){4000, 40, 0, 8096});
    /* What is carried is one buffer; its next value is made beside it; the counter and the tests.
     */
    assert_takes(CARRY, "cpu", (const int64_t[]){4000, 40, 0, 4032 + 64 + 1});
    assert_takes(
        "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }\n"
        "ENTRY e {\n  a = f32[1000]{0} parameter(0)\n  ROOT b = f32[1000]{0} negate(a)\n}\n",
        "cpu", (const int64_t[]){4000, 4000, 4000, 0});
    assert_takes(
        "HloModule m, is_scheduled=true\nENTRY e {\n  a = f32[1000]{0} parameter(0)\n"
        "  b = f32[1000]{0} negate(a)\n  ROOT t = (f32[1000]{0}, f32[1000]{0}) tuple(a, b)\n}\n",
        "gpu", (const int64_t[]){4000, 4000 + 4000 + 16, 4000, 0});
    assert_takes("HloModule m, is_scheduled=true\nENTRY e {\n  a = f32[9,129]{1,0:T(8,128)} "
                 "parameter(0)\n  b = f32[9,129]{1,0:T(8,128)} reverse(a), dimensions={0}\n"
                 "  ROOT c = f32[]{:T(128)} custom-call(b), custom_call_target=\"f\"\n}\n",
                 "tpu-v5e", (const int64_t[]){16384, 512, 0, 16384});
    /* An argument that a loop in a loop begins anew, with a constant; as the root its results are
     * outputs. XLA's own for CPU: 8, 24, 0. */
    assert_takes("HloModule m\nstep {\n  p = (s32[], s32[]) parameter(0)\n"
                 "  a = s32[] get-tuple-element(p), index=0\n"
                 "  b = s32[] get-tuple-element(p), index=1\n  s = s32[] add(a, b)\n"
                 "  ROOT t = (s32[], s32[]) tuple(a, s)\n}\n"
                 "ends {\n  p = (s32[], s32[]) parameter(0)\n"
                 "  a = s32[] get-tuple-element(p), index=0\n"
                 "  b = s32[] get-tuple-element(p), index=1\n"
                 "  ROOT c = pred[] compare(a, b), direction=LT\n}\n"
                 "steps {\n  q = (s32[], s32[]) parameter(0)\n"
                 "  x = s32[] get-tuple-element(q), index=0\n  k = s32[] constant(3)\n"
                 "  i = (s32[], s32[]) tuple(x, k)\n"
                 "  ROOT w = (s32[], s32[]) while(i), condition=ends, body=step\n}\n"
                 "ENTRY e {\n  a = (s32[], s32[]) parameter(0)\n"
                 "  ROOT w = (s32[], s32[]) while(a), condition=ends, body=steps\n}\n",
                 "cpu", (const int64_t[]){8, 24, 0, 0});
    /* What is exchanged is placed last, written out or not, so that f lies in the result's place
     * and g must lie beside h. */
    const int64_t exchanged[] = {4096, 4096, 0, 2 * 4096 + 512};
    assert_takes(EXCHANGE("all-to-all-start(c), dimensions={0}", ""), "gpu", exchanged);
    assert_takes(EXCHANGE("async-start(c), calls=x",
                          "x {\n  p = f32[1024] parameter(0)\n"
                          "  ROOT q = f32[1024] all-to-all(p), dimensions={0}\n}\n"),
                 "gpu", exchanged);
}

/* A sort may take its operand's place, but not an argument's that is kept; a fusion of any kind
 * may take that of an operand that is only met element by element. */
static void places_are_taken_where_it_is_allowed(void **state)
{
    (void)state;
    static const char sort[] =
        "HloModule m, is_scheduled=true\nless {\n  p = f32[] parameter(0)\n  q = f32[] "
        "parameter(1)\n"
        "  ROOT l = pred[] compare(p, q), direction=LT\n}\nENTRY e {\n  a = f32[1000]{0} "
        "parameter(0)\n"
        "  ROOT s = f32[1000]{0} sort(a), dimensions={0}, to_apply=less\n}\n";
    static const char custom[] =
        "HloModule m, is_scheduled=true\nfused {\n  p = f32[1000]{0} parameter(0)\n"
        "  q = f32[1000]{0} parameter(1)\n  r = f32[1000]{0} reverse(q), dimensions={0}\n"
        "  ROOT s = f32[1000]{0} add(p, r)\n}\nENTRY e {\n  a = f32[1000]{0} parameter(0)\n"
        "  b = f32[1000]{0} reverse(a), dimensions={0}\n"
        "  c = f32[1000]{0} fusion(%s), kind=kCustom, calls=fused\n"
        "  ROOT d = f32[10]{0} slice(c), slice={[0:10]}\n}\n";
    /* An update in a fusion in a fusion is in place. */
    static const char nested[] =
        "HloModule m, is_scheduled=true\ninner {\n  p = f32[1000]{0:T(1024)} parameter(0)\n"
        "  q = f32[10]{0:T(128)} parameter(1)\n  i = s32[]{:T(128)} constant(0)\n"
        "  ROOT d = f32[1000]{0:T(1024)} dynamic-update-slice(p, q, i)\n}\n"
        "outer {\n  p = f32[1000]{0:T(1024)} parameter(0)\n  q = f32[10]{0:T(128)} parameter(1)\n"
        "  ROOT d = f32[1000]{0:T(1024)} fusion(p, q), kind=kCustom, calls=inner\n}\n"
        "ENTRY e {\n  a = f32[1000]{0:T(1024)} parameter(0)\n"
        "  b = f32[10]{0:T(128)} parameter(1)\n  c = f32[1000]{0:T(1024)} copy(a)\n"
        "  ROOT d = f32[1000]{0:T(1024)} fusion(c, b), kind=kCustom, calls=outer\n}\n";
    assert_takes(nested, "tpu-v5e", (const int64_t[]){4096 + 512, 4096, 0, 0});
    char taken[1024], kept[1024];
    snprintf(taken, sizeof taken, custom, "b, a");
    snprintf(kept, sizeof kept, custom, "a, b");
    assert_takes(sort, "cpu", (const int64_t[]){4000, 4000, 0, 0});
    assert_takes(sort, "gpu", (const int64_t[]){4000, 4000, 0, 0});
    assert_takes(taken, "cpu", (const int64_t[]){4000, 40, 0, 4000});
    assert_takes(kept, "cpu", (const int64_t[]){4000, 40, 0, 8032});
}

/* Printed so that both large values are alive at once; one after the other does. */
static void what_has_no_schedule_gets_a_frugal_one(void **state)
{
    (void)state;
    static const char text[] = "HloModule m\nENTRY e {\n  a = f32[16]{0} parameter(0)\n"
                               "  x = f32[100000]{0} custom-call(a), custom_call_target=\"f\"\n"
                               "  y = f32[100000]{0} custom-call(a), custom_call_target=\"g\"\n"
                               "  u = f32[16]{0} custom-call(x), custom_call_target=\"h\"\n"
                               "  v = f32[16]{0} custom-call(y), custom_call_target=\"h\"\n"
                               "  ROOT w = f32[16]{0} add(u, v)\n}\n";
    struct fixture f;
    assert_true(report(&f, text, "cpu"));
    assert_false(f.m.scheduled);
    assert_true(f.r.order != HB_ORDER_KINDS);
    assert_true(f.r.figures.temp_bytes < 2 * 400000);
    unit_end(&f.u);
}

/* ---- what if ---- */

static void an_edit_that_changes_nothing_takes_the_same(void **state)
{
    (void)state;
    struct fixture f;
    assert_true(report(&f, CARRY, "gpu"));
    struct hb_arena *arena = f.u.env.arena;
    struct hb_hlo_edit edit = hb_hlo_edit_begin(arena, &f.r.hp), other = edit;
    int64_t live = hb_hlo_edit_live(arena, &edit);
    assert_int_equal(hb_hlo_edit_run(arena, &edit), f.r.figures.total_bytes);
    assert_in_range(live, 8000, f.r.figures.total_bytes + 1024);
    uint32_t largest = f.r.memory.at_peak[0].buf;
    for (uint32_t i = 0; i < f.r.hp.program.buf_count; i++)
        if (!f.r.hp.program.bufs[i].argument && f.r.hp.program.bufs[i].bytes == 4000)
            hb_hlo_edit_shrink(&edit, i, 0);
    assert_true(hb_hlo_edit_run(arena, &edit) < f.r.figures.total_bytes - 4000 + 256);
    assert_true(hb_hlo_edit_live(arena, &edit) <= live - 4000);
    edit = hb_hlo_edit_begin(arena, &f.r.hp);
    hb_hlo_edit_copy(&other, &edit);
    assert_int_equal(hb_hlo_edit_run(arena, &other), f.r.figures.total_bytes);
    hb_hlo_edit_keep(&edit, largest, edit.end[largest]);
    assert_int_equal(hb_hlo_edit_run(arena, &edit), f.r.figures.total_bytes);
    unit_end(&f.u);
}

/* ---- halo exchanges, against what compilers made of f64[3056,12272] ---- */

static void halos_cost_what_was_measured(void **state)
{
    (void)state;
    enum { EW = 2, NS = 1, ALL = 3 };
    static const struct {
        const char *backend;
        int parts, dims;
        int64_t low, high;
        enum hb_hlo_halo_way way;
        double temp, out; /* MB, measured; out 0: not compared */
    } rows[] = {
        {"cpu", 2, ALL, 123, 123, HB_HLO_HALO_PAD, 0, 82.7},
        {"gpu", 2, ALL, 123, 123, HB_HLO_HALO_PAD, 0, 82.7},
        {"tpu-v5e", 2, ALL, 123, 123, HB_HLO_HALO_PAD, 41.6, 83.1},
        {"cpu", 2, ALL, 123, 0, HB_HLO_HALO_PAD, 473, 315},
        {"gpu", 4, ALL, 123, 123, HB_HLO_HALO_PAD, 414, 331},
        {"cpu", 2, EW, 123, 123, HB_HLO_HALO_PERMUTE, 3.0, 78.0},
        {"cpu", 2, NS, 123, 123, HB_HLO_HALO_PERMUTE, 12.1, 87.1},
        {"cpu", 2, ALL, 123, 123, HB_HLO_HALO_PERMUTE, 96.9, 90.6},
        {"gpu", 2, EW, 123, 123, HB_HLO_HALO_PERMUTE, 3.0, 78.0},
        {"gpu", 2, NS, 123, 123, HB_HLO_HALO_PERMUTE, 12.1, 87.1},
        {"gpu", 2, ALL, 123, 123, HB_HLO_HALO_PERMUTE, 15.6, 90.6},
        {"gpu", 4, ALL, 123, 123, HB_HLO_HALO_PERMUTE, 8, 0},
    };
    struct unit u;
    unit_start(&u);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hb_hlo_halo halo = {.type = HB_HLO_F64,
                                   .rank = 2,
                                   .dims = {3056, 12272},
                                   .parts = {rows[i].parts, rows[i].parts}};
        for (int d = 0; d < 2; d++) {
            halo.low[d] = rows[i].dims >> d & 1 ? rows[i].low : 0;
            halo.high[d] = rows[i].dims >> d & 1 ? rows[i].high : 0;
        }
        struct hb_hlo_figures figures;
        struct hb_hlo_halo_ops ops;
        assert_true(hb_hlo_halo_try(u.env.arena, hb_hlo_dialect_find(rows[i].backend), &halo,
                                    rows[i].way, &figures, &ops));
        double temp = (double)figures.temp_bytes / 1e6, out = (double)figures.output_bytes / 1e6;
        if (temp < 0.93 * rows[i].temp || temp > 1.01 * rows[i].temp + 0.1)
            fail_msg("row %zu: temp %.1f, measured %.1f", i, temp, rows[i].temp);
        if (rows[i].out > 0 && (out < rows[i].out - 0.6 || out > rows[i].out + 0.6))
            fail_msg("row %zu: out %.1f, measured %.1f", i, out, rows[i].out);
    }
    unit_end(&u);
}

/* As the partitioner is seen to make of one pad in two dimensions. */
static void a_pad_becomes_so_many_operations(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_hlo_halo halo = {.type = HB_HLO_F64,
                               .rank = 2,
                               .dims = {3056, 12272},
                               .parts = {4, 4},
                               .low = {123, 123},
                               .high = {123, 123}};
    struct hb_hlo_figures figures;
    struct hb_hlo_halo_ops ops;
    const struct hb_hlo_dialect *cpu = hb_hlo_dialect_find("cpu");
    assert_true(hb_hlo_halo_try(u.env.arena, cpu, &halo, HB_HLO_HALO_KEPT, &figures, &ops));
    assert_int_equal(ops.broadcasts, 8);
    assert_int_equal(ops.pads, 2);
    assert_int_equal(ops.dynamic_slices, 4);
    assert_int_equal(ops.selects, 2);
    assert_int_equal(ops.permutes, 4);
    assert_int_equal(ops.all_gathers, 2);
    halo.dims[0] = 0;
    assert_false(hb_hlo_halo_try(u.env.arena, cpu, &halo, HB_HLO_HALO_PAD, &figures, &ops));
    unit_end(&u);
}

/* ---- hostile bytes ---- */

static const char *const samples[] = {"tests/golden/hlo/made/gradient-norm.hlo",
                                      "tests/golden/hlo/made/stacked-invariant.hlo",
                                      "tests/golden/hlo/made/one-hot-and-mask.hlo"};

/* The module or an error, nothing else. */
static void try_bytes(const char *text, size_t len)
{
    static struct fixture f;
    unit_start(&f.u);
    char *copy =
        malloc(len + 1); /* exactly as long: so that a sanitizer sees what is read beyond */
    memcpy(copy, text, len);
    copy[len] = '\0';
    bool ok = read_module(&f, copy, len, NULL) &&
              hb_hlo_report_make(f.u.env.arena, &f.u.diag, &f.m, HB_HLO_ASK_NONE, &f.r);
    assert_int_equal(ok, f.u.diag.errors == 0);
    free(copy);
    unit_end(&f.u);
}

static void samples_cut_off_at_every_byte(void **state)
{
    (void)state;
    struct hb_arena *arena = hb_arena_new();
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        struct hb_text text;
        const char *reason;
        assert_true(hb_file_load(arena, samples[i], HB_FILE_MAX_BYTES, &text, &reason));
        for (size_t len = 0; len <= text.len; len++)
            try_bytes(text.text, len);
    }
    hb_arena_free(arena);
}

static void samples_with_a_byte_changed(void **state)
{
    (void)state;
    static const char bytes[] = {'\0', '(', ')', '{', '}', ',', '%', '9', '\n', '"', '\xff'};
    struct hb_arena *arena = hb_arena_new();
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        struct hb_text text;
        const char *reason;
        assert_true(hb_file_load(arena, samples[i], HB_FILE_MAX_BYTES, &text, &reason));
        char *copy = hb_arena_strndup(arena, text.text, text.len);
        for (size_t at = 0; at < text.len; at += 3) {
            char was = copy[at];
            copy[at] = bytes[at / 3 % sizeof bytes];
            try_bytes(copy, text.len);
            copy[at] = was;
        }
    }
    hb_arena_free(arena);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    struct hb_arena *arena = hb_arena_new();
    static const char *const opens[] = {"(", "{", "[", "/*", "\""};
    for (size_t i = 0; i < sizeof opens / sizeof *opens; i++) {
        struct hb_str s;
        hb_str_init(&s, arena);
        hb_str_add(&s, "HloModule m\nENTRY e {\n  a = ");
        for (int k = 0; k < DEPTH; k++)
            hb_str_add(&s, opens[i]);
        try_bytes(s.text, s.len);
        hb_str_init(&s, arena);
        hb_str_add(&s, "HloModule m, x=");
        for (int k = 0; k < DEPTH; k++)
            hb_str_add(&s, opens[i]);
        try_bytes(s.text, s.len);
    }
    hb_arena_free(arena);
}

/* ---- odds and ends ---- */

static void the_command_offers_every_backend(void **state)
{
    (void)state;
    struct hb_arena *arena = hb_arena_new();
    struct hb_str words;
    hb_str_init(&words, arena);
    for (const char *const *name = hb_hlo_dialect_names(); *name; name++) {
        hb_str_addf(&words, "%s%s", words.len ? "|" : "", *name);
        assert_string_equal(hb_hlo_dialect_find(*name)->name, *name);
    }
    assert_string_equal(hb_cmd_hlo.options[1].value, words.text);
    assert_null(hb_hlo_dialect_find("abacus"));
    hb_arena_free(arena);
}

/* Two small modules that say nothing themselves, one tiled. */
static void names_of_files_tell_the_backend(void **state)
{
    (void)state;
    static const struct {
        const char *file, *tiled, *plain;
    } rows[] = {
        {"m/module_0001.jit_f.cpu_after_optimizations.txt", "tpu-v5e", "cpu"},
        {"module_0001.jit_f.sm_9.0_gpu_after_optimizations.txt", "tpu-v5e", "gpu"},
        {"cpu/v5p_moe.hlo", "tpu-v5p", "gpu"},
        {"v6e-step.hlo.gz", "tpu-v6e", "gpu"},
        {"step-h100.hlo", "tpu-v5e", "gpu"},
        {"v5p/tcpu.hlo", "tpu-v5e", "gpu"},
    };
    static const char form[] = "HloModule m, is_scheduled=true\nENTRY e {\n"
                               "  ROOT a = f32[9,129]{1,0%s} parameter(0)\n}\n";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int tiled = 0; tiled < 2; tiled++) {
            struct fixture f;
            char text[256];
            unit_start(&f.u);
            snprintf(text, sizeof text, form, tiled ? ":T(8,128)" : "");
            f.text = (struct hb_hlo_text){rows[i].file, text, strlen(text), 0};
            assert_true(hb_hlo_module_read(f.u.env.arena, &f.u.diag, &f.text, &f.m));
            assert_string_equal(f.m.dialect->name, tiled ? rows[i].tiled : rows[i].plain);
            unit_end(&f.u);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_take_what_their_tiles_do),
        cmocka_unit_test(equal_shapes_are_one),
        cmocka_unit_test(same_is_what_lies_the_same),
        cmocka_unit_test(broken_shapes_are_none),
        cmocka_unit_test(errors_have_line_and_column),
        cmocka_unit_test(small_modules_take_what_the_rules_say),
        cmocka_unit_test(places_are_taken_where_it_is_allowed),
        cmocka_unit_test(what_has_no_schedule_gets_a_frugal_one),
        cmocka_unit_test(an_edit_that_changes_nothing_takes_the_same),
        cmocka_unit_test(halos_cost_what_was_measured),
        cmocka_unit_test(a_pad_becomes_so_many_operations),
        cmocka_unit_test(samples_cut_off_at_every_byte),
        cmocka_unit_test(samples_with_a_byte_changed),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(names_of_files_tell_the_backend),
        cmocka_unit_test(the_command_offers_every_backend),
    };
    return cmocka_run_group_tests_name("hlo", tests, NULL, NULL);
}
