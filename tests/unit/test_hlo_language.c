/* sim/hlo: every form of HLO text that XLA's own parser takes, in small modules; figures worked by
 * hand. What is refused has its place and the feature's name. */
#include "tests/unit/unit.h"

#include "sim/hlo/report.h"

struct fixture {
    struct unit u;
    struct hb_hlo_module m;
    struct hb_hlo_report r;
};

static bool read_text(struct fixture *f, const char *text, const char *backend)
{
    unit_start(&f->u);
    struct hb_hlo_text whole = {"t.hlo", text, strlen(text), 0};
    if (!hb_hlo_module_read(f->u.env.arena, &f->u.diag, &whole, &f->m))
        return false;
    f->m.dialect = hb_hlo_dialect_find(backend);
    return hb_hlo_report_make(f->u.env.arena, &f->u.diag, &f->m, HB_HLO_ASK_NONE, &f->r);
}

/* The shape of the entry's result, as text. */
static void check_root(const struct fixture *f, const char *wanted, size_t row)
{
    const struct hb_hlo_shape *shape = hb_hlo_shape_of(&f->m, f->m.comps[f->m.entry].root);
    if (!hb_hlo_span_is(shape->text, wanted))
        fail_msg("row %zu: '%.*s' is not '%s'", row, (int)shape->text.len, shape->text.at, wanted);
}

#define ADD "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) } "

static const struct {
    const char *text, *root;
} forms[] = {
    /* Line ends count as blanks. */
    {"HloModule\n m,\n  is_scheduled=true,\n  num_partitions=\n 1\nENTRY\n e\n (a: f32[8])\n -> "
     "f32[8]\n{\n"
     "a\n =\n f32[8]{0}\n parameter(\n0)\n ROOT\n b = f32[8]{0}\n negate(\n a\n),\n  "
     "metadata={op_name=\"x\"\n"
     " source_line=1},\n  backend_config={\"a\":\n\"b\"}\n}\n",
     "f32[8]{0}"},
    /* Comments before, between and behind. */
    {"// RUN: x\n/* y */ HloModule m // z\n// w\nENTRY e { // \"open (\n  a = f32[8] parameter(0) "
     "// b\n"
     "  // ROOT c = f32[9] negate(a)\n  ROOT b = f32[8] negate(/*x=1*/a), // {\n    "
     "sharding={replicated // }\n"
     "  } // end\n} // main\n// -----\n",
     "f32[8]"},
    /* All in one line; a colon behind a module's name; a layout behind a blank. */
    {"HloModule m: ENTRY e { a = f32[8,8] {1,0} parameter(0), sharding={replicated} ROOT b = "
     "f32[8,8] {0,1} "
     "copy(a) }",
     "f32[8,8] {0,1}"},
    /* The closing brace behind the last instruction; attributes behind it. */
    {"HloModule m\n" ADD
     ", execution_thread=\"main\"\nENTRY e {\n a = f32[4] parameter(0)\n z = f32[] constant(0)\n"
     " ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=f}",
     "f32[]"},
    /* One instruction, with a name or without: what it reads are parameters. */
    {"%x = f32[9] add(f32[9]{0} %a, f32[9] %a)", "f32[9]"},
    {"f32[5]{0} fusion(f32[9], /*index=1*/(f32[], s32[2])), kind=kLoop, calls={\n"
     " a = f32[9] parameter(0)\n b = (f32[], s32[2]) parameter(1)\n"
     " ROOT s = f32[5] slice(a), slice={[0:5]}\n}",
     "f32[5]{0}"},
    {"(f32[8], f32[4]) tuple(f32[8], f32[4])", "(f32[8], f32[4])"},
    {"ROOT a = add(f32[7] x, f32[7] y)", "f32[7]"},
    /* Computations without a head: the last one is the entry where none is marked. */
    {"%f (p: f32[2]) -> f32[2] {\n p = f32[2] parameter(0)\n ROOT q = f32[2] negate(p)\n}\n",
     "f32[2]"},
    {"ENTRY %e (p: f32[2]) -> (f32[2], s32[]) {\n p = f32[2] parameter(0)\n q = s32[] constant(1)\n"
     " ROOT t = (f32[2], s32[]) tuple(p, q)\n}\n",
     "(f32[2], s32[])"},
    /* A computation that stands below its caller, and one in braces for its name. */
    {"HloModule m\nENTRY e { a = f32[4] parameter(0) ROOT r = f32[4] call(a), to_apply=g }\n"
     "g { a = f32[4] parameter(0) ROOT r = f32[4] call(a), to_apply=h }\n"
     "h { a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }\n",
     "f32[4]"},
    {"HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n z = f32[] constant(0)\n"
     " ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply={\n x = f32[] parameter(0)\n"
     " y = f32[] parameter(1)\n ROOT s = f32[] call(x, y), to_apply={ u = f32[] parameter(0)\n"
     " v = f32[] parameter(1)\n ROOT w = f32[] add(u, v) } }\n}\n",
     "f32[]"},
    /* Operations among operands; elements behind a mark; handles of buffers; a string in ticks. */
    {"ENTRY e { a = f32[8] parameter(0) ROOT b = f32[8] add(a, f32[8] negate(f32[8] %a)) }",
     "f32[8]"},
    {"ENTRY e { a = f32[8] parameter(0) ROOT b = add(multiply(a, a), add(a, a)) }", "f32[8]"},
    {"ENTRY e { t = (f32[8], (s32[], f32[4])) parameter(0) ROOT b = f32[4] negate(f32[4] t#1#1) }",
     "f32[4]"},
    {"ENTRY e { a = b(f32[8]{0}) parameter(0) ROOT c = b(f32[8]{0}) copy(b(f32[8]{0}) a), "
     "frontend_attributes={x='('} }",
     "f32[8]{0}"},
    {"ENTRY e { a = f32[2] parameter(0) ROOT c = f32[2] custom-call(a), literal=f32[] -0.5, "
     "custom_call_target=\"x\\\"(\" }",
     "f32[2]"},
    {"ENTRY e { a = f32[<=8,?]{1,0:T(8,128)S(1)} parameter(0) ROOT c = token[] after-all() }",
     "token[]"},
    /* Operations that XLA has had since 2025; any may be wrapped to run beside others. */
    {"ENTRY e { a = f32[8] parameter(0) ROOT b = mulhi(acos(a), sinh(a)) }", "f32[8]"},
    {"ENTRY e { a = f32[8] parameter(0) b = ((f32[8]), f32[8]) sinh-start(a) ROOT c = f32[8] "
     "sinh-done(b) }",
     "f32[8]"},
};

static void every_form_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct fixture f;
        if (!read_text(&f, forms[i].text, "gpu")) {
            hb_diag_print(&f.u.diag, f.u.env.err);
            fail_msg("row %zu: %s", i, unit_err(&f.u));
        }
        check_root(&f, forms[i].root, i);
        unit_end(&f.u);
    }
}

/* ---- shapes left out ---- */

#define IN                                                                                         \
    ADD "ENTRY e { a = f32[8,4]{0,1} parameter(0) b = f32[4,6] parameter(1) c = pred[8,4] "        \
        "parameter(2)"                                                                             \
        " z = f32[] constant(0) i = s32[5,1] parameter(3) t = (f32[2], (s32[])) parameter(4)"      \
        " w = c64[3] parameter(5) p = s32[] constant(0) k = f32[3,3,4,7] parameter(6)"             \
        " l = f32[2,9,9,4] parameter(7) u = f32[1,6] parameter(8) g = f64[2] parameter(9)"         \
        " h = c128[2] parameter(10) o = f32[4] parameter(11) n = pred[576460752303423488] "        \
        "parameter(12) ROOT r = "

static const struct {
    const char *right, *root;
} following[] = {
    {"negate(a)", "f32[8,4]{0,1}"},
    {"call(a), to_apply={ u = f32[8,4] parameter(0), sharding={replicated} ROOT v = s32[8,4] "
     "convert(u) }",
     "s32[8,4]"},
    {"add(a, a)", "f32[8,4]{0,1}"},
    {"compare(a, a), direction=LT", "pred[8,4]"},
    {"is-finite(a)", "pred[8,4]"},
    {"select(c, a, a)", "f32[8,4]{0,1}"},
    {"clamp(z, a, z)", "f32[8,4]{0,1}"},
    {"imag(w)", "f32[3]"},
    {"abs(w)", "f32[3]"},
    {"complex(z, z)", "c64[]"},
    {"dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[8,6]"},
    {"dot(a, a), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
     "rhs_contracting_dims={1}",
     "f32[8]"},
    {"transpose(a), dimensions={1,0}", "f32[4,8]"},
    {"broadcast(b), dimensions={2,3}", "f32[2,3,4,6]"},
    {"concatenate(a, a, a), dimensions={0}", "f32[24,4]"},
    {"pad(a, z), padding=1_2x0_-1_3", "f32[11,12]"},
    {"reduce(a, z), dimensions={0}, to_apply=f", "f32[4]"},
    {"reduce-window(a, z), window={size=2x3 stride=2x1 pad=0_0x1_1}, to_apply=f", "f32[4,4]"},
    {"convolution(l, k), window={size=3x3 stride=2x1 pad=1_1x0_0}, dim_labels=b01f_01io->b01f",
     "f32[2,5,7,7]"},
    {"gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=1, slice_sizes={1,4}",
     "f32[5,4]"},
    {"scatter(a, i, a), update_window_dims={1}, to_apply=f", "f32[8,4]{0,1}"},
    {"sort(a, a), dimensions={0}, to_apply=f", "(f32[8,4]{0,1}, f32[8,4]{0,1})"},
    {"tuple(z, t)", "(f32[], (f32[2], (s32[])))"},
    {"get-tuple-element(t), index=1", "(s32[])"},
    {"map(z, z), dimensions={}, to_apply=f", "f32[]"},
    {"call(z, z), to_apply=f", "f32[]"},
    {"while(z), condition=f, body=f", "f32[]"},
    {"after-all()", "token[]"},
    {"partition-id()", "u32[]"},
    {"get-dimension-size(a), dimensions={0}", "s32[]"},
    {"opt-barrier(t)", "(f32[2], (s32[]))"},
    {"add(u, b)", "f32[4,6]"}, /* a dimension of one is stretched */
    {"complex(g, g)", "c128[2]"},
    {"real(h)", "f64[2]"},
    {"abs(a)", "f32[8,4]{0,1}"},
    {"reduce(a, p, z, p), dimensions={1}, to_apply=f", "(f32[8], s32[8])"},
    {"scatter(a, a, i, a, a), update_window_dims={1}, to_apply=f",
     "(f32[8,4]{0,1}, f32[8,4]{0,1})"},
    {"sort(a), dimensions={0}", "f32[8,4]{0,1}"},
    {"batch-norm-training(l, o, o), epsilon=1, feature_index=3", "(f32[2,9,9,4], f32[4], f32[4])"},
    {"convolution(l, k), window={size=3x3 lhs_dilate=2x1 rhs_dilate=1x2}, "
     "dim_labels=b01f_01io->b01f, batch_group_count=2",
     "f32[1,15,5,7]"},
    {"pad(a, z), padding=0_0x0_0_1", "f32[8,7]"},
};

static void left_out_shapes_follow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof following / sizeof *following; i++) {
        struct fixture f;
        char text[1024];
        snprintf(text, sizeof text, IN "%s }", following[i].right);
        unit_start(&f.u);
        struct hb_hlo_text whole = {"t.hlo", text, strlen(text), 0};
        if (!hb_hlo_module_read(f.u.env.arena, &f.u.diag, &whole, &f.m)) {
            hb_diag_print(&f.u.diag, f.u.env.err);
            fail_msg("row %zu: %s", i, unit_err(&f.u));
        }
        check_root(&f, following[i].root, i);
        unit_end(&f.u);
    }
}

/* Where operands and attributes do not fit each other the shape is asked for, not guessed. */
static const char *const unfitting[] = {
    "add(t, a)",
    "add(a, z)",
    "select(c)",
    "transpose(a), dimensions={1}",
    "transpose(a), dimensions={1,2}",
    "transpose(t), dimensions={0}",
    "broadcast(t), dimensions={2}",
    "broadcast(b), dimensions={-2}",
    "broadcast(b), dimensions={1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}",
    "concatenate(a, a), dimensions={2}",
    "concatenate(a, z), dimensions={0}",
    "concatenate(a, a)",
    "concatenate(n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n), dimensions={0}",
    "reduce(t, z), dimensions={0}, to_apply=f",
    "reduce(a, t, z, z), dimensions={0}, to_apply=f",
    "dot(a, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "dot(a, a), lhs_batch_dims={2}, rhs_batch_dims={0}",
    "pad(a, z)",
    "pad(t, z), padding=0_0",
    "pad(a, z), padding=1",
    "pad(a, z), padding=1_1x1",
    "pad(a, z), padding=-9_0x0_0",
    "pad(a, z), padding=9223372036854775807_1x0_0",
    "pad(a, z), padding=0_0_9223372036854775807x0_0",
    "reduce-window(a, z), window={size=2 stride=2}, to_apply=f",
    "reduce-window(a, z), window={size=2x3 stride=2}, to_apply=f",
    "reduce-window(a, z), window={size=2x3 stride=0x1}, to_apply=f",
    "reduce-window(a, z), window={size=2x3 pad=0_0}, to_apply=f",
    "reduce-window(a, z), window={size=2x3 pad=9223372036854775807_1x0_0}, to_apply=f",
    "reduce-window(a, z), window={size=2x3 rhs_dilate=9223372036854775807x1}, to_apply=f",
    "convolution(l, k), window={size=3x3}, dim_labels=b01f_01io",
    "convolution(l, k), window={size=3x3}, dim_labels=b0f_01io->b01f",
    "convolution(l, k), window={size=3x3}, dim_labels=b01f_0io->b01f",
    "convolution(l, k), window={size=3x3}, dim_labels=b01f_01io->b02f",
    "convolution(l, k), window={size=3}, dim_labels=b01f_01io->b01f",
    "convolution(l, k), window={size=3x3}, dim_labels=b01f_01io->b0f",
    "convolution(l, k), window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=0",
    "gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, index_vector_dim=1, "
    "slice_sizes={1}",
    "gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, slice_sizes={1,4}",
    "gather(a, i), offset_dims={0,1,2}, index_vector_dim=1, slice_sizes={1,4}",
    "map(t), dimensions={}, to_apply=f",
    "get-tuple-element(t), index=2",
    "get-tuple-element(a), index=0",
    "triangular-solve(a)",
    "convert(a)",
    "rng(z, z), distribution=rng_uniform",
    "custom-call(a), custom_call_target=\"x\"",
    "batch-norm-grad(l)",
};

static void others_do_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unfitting / sizeof *unfitting; i++) {
        struct fixture f;
        char text[1024];
        snprintf(text, sizeof text, IN "%s }", unfitting[i]);
        unit_start(&f.u);
        struct hb_hlo_text whole = {"t.hlo", text, strlen(text), 0};
        if (hb_hlo_module_read(f.u.env.arena, &f.u.diag, &whole, &f.m))
            fail_msg("'%s' was read", unfitting[i]);
        if (!strstr(f.u.diag.entries[0].text, "the result's shape is left out"))
            fail_msg("'%s': %s", unfitting[i], f.u.diag.entries[0].text);
        unit_end(&f.u);
    }
}

/* ---- what is refused ---- */

static void refusals_name_place_and_feature(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"ROOT [8]", "t.hlo:1:1: error: "},
        {"a = f32[8] add(f32[8] x, y)", "1:26: error: operand 'y' is not defined"},
        {"ENTRY e { a = f32[8] parameter(0) ROOT b = reshape(a) }",
         "1:44: error: the result's shape is left out"},
        {"ENTRY e { a = f32[8] parameter(0) ROOT b = dot(a) }", "1:44: error: the result's shape"},
        {"ENTRY e { a = f32[8] parameter(0) ROOT b = f32[8] negate(c) }",
         "1:58: error: operand 'c' is not defined"},
        {"ENTRY e { a = f32[8] parameter(0)\n ROOT b = f32[8] call(a), to_apply=f }",
         "2:36: error: no computation 'f' in this module"},
        {"ENTRY e { a = f32[8] parameter(0)\n ROOT b = f32[8] call(a), to_apply=e }",
         "1:7: error: computation 'e' calls itself"},
        {"ENTRY e { a = f32[8] parameter(0) ROOT b = f32[8] call(a), to_apply=f }\n"
         "f { a = f32[8] parameter(0) ROOT b = f32[8] call(a), to_apply=e }",
         "calls itself"},
        {"ENTRY e { ROOT a = f32[8] parameter(0) ROOT b = f32[8] negate(a) }",
         "1:45: error: a computation has one ROOT"},
        {"ENTRY e { ROOT a = f32[8] parameter(0) } ENTRY f { ROOT a = f32[8] parameter(0) }",
         "1:42: error: a module has one ENTRY"},
        {"HloModule m\nENTRY e { ROOT a = f32[8] parameter(0) }\nHloModule n\n",
         "3:1: error: another module begins here"},
        {"ENTRY e { a = f32[8] parameter(0) ROOT b = negate(a), metadata }",
         "error: an attribute is wanted here"},
        {"ENTRY e { ROOT a = f32[4096,9223372036854775807] parameter(0) }",
         "1:20: error: this shape takes 2^60 bytes or more"},
        {"ENTRY e { ROOT a = f32[0,4611686018427387904] parameter(0) }", "2^60 bytes"},
        {"ENTRY e { a = f32[2,1] parameter(0) ROOT b = f32[] get-tuple-element(a#0), index=0 }",
         "index beyond the operand's tuple"},
        {"ENTRY e { a = f32[8] parameter(0)\n ROOT b = f32[8] frobnicate(a) }",
         "2:18: error: HLO has no operation 'frobnicate'"},
        {"ENTRY e { a = f32[8] parameter(0) ROOT b = f32[8] frobnicate-start(a) }",
         "HLO has no operation 'frobnicate-start'"},
        {"ENTRY e { a = f32[8] parameter(0) ROOT b = f32[8] copy-update(a) }",
         "HLO has no operation 'copy-update'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        assert_false(read_text(&f, rows[i].text, "gpu"));
        hb_diag_print(&f.u.diag, f.u.env.err);
        if (!strstr(unit_err(&f.u), rows[i].wanted))
            fail_msg("row %zu: '%s' lacks '%s'", i, unit_err(&f.u), rows[i].wanted);
        unit_end(&f.u);
    }
}

/* A tuple of tuples doubles at each step: it is refused before it fills the memory. */
static void doubling_shapes_end(void **state)
{
    (void)state;
    enum { STEPS = 40 };
    static char text[STEPS * 40 + 100];
    size_t len = (size_t)snprintf(text, sizeof text, "ENTRY e { t0 = f32[8] parameter(0)\n");
    for (int i = 1; i <= STEPS; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "t%d = tuple(t%d, t%d)\n", i, i - 1,
                                i - 1);
    snprintf(text + len, sizeof text - len, "}\n");
    struct fixture f;
    assert_false(read_text(&f, text, "gpu"));
    unit_end(&f.u);
}

/* ---- what becomes memory ---- */

static void check_figures(const char *text, const char *backend, int64_t output, int64_t alias,
                          int64_t total)
{
    struct fixture f;
    assert_true(read_text(&f, text, backend));
    assert_int_equal(f.r.figures.output_bytes, output);
    assert_int_equal(f.r.figures.alias_bytes, alias);
    assert_int_equal(f.r.figures.total_bytes, total);
    unit_end(&f.u);
}

/* Copy insertion gives each output a buffer of its own where the module is not scheduled yet. The
 * table of a tuple takes 8 bytes for each element. */
static void outputs_of_unscheduled_modules_are_copied(void **state)
{
    (void)state;
    enum { K4 = 4096 };
    check_figures("ENTRY e { a = f32[1024] parameter(0) b = f32[1024] negate(a)"
                  " ROOT t = (f32[1024], f32[1024]) tuple(b, b) }",
                  "gpu", 2 * K4 + 16, 0, 3 * K4 + 16);
    check_figures("ENTRY e { a = f32[1024] parameter(0) ROOT t = (f32[1024]) tuple(a) }", "gpu",
                  K4 + 8, 0, 2 * K4 + 8);
    check_figures("ENTRY e { ROOT a = f32[1024] parameter(0) }", "gpu", K4, 0, 2 * K4);
    check_figures("HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
                  "ENTRY e { ROOT a = f32[1024] parameter(0) }",
                  "gpu", K4, K4, K4);
    check_figures("HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }\n"
                  "ENTRY e { a = f32[1024] parameter(0) b = f32[1024] parameter(1)"
                  " ROOT t = (f32[1024], f32[1024]) tuple(b, a) }",
                  "gpu", 2 * K4 + 16, K4, 3 * K4 + 16);
    check_figures("ENTRY e { ROOT c = f32[1024] constant({...}) }", "gpu", K4, 0, K4);
}

/* A loop works in place: what it began with is copied, unless it is donated. */
#define LOOP                                                                                       \
    "b { t = (f32[1024], f32[1024]) parameter(0) x = f32[1024] get-tuple-element(t), index=0 "     \
    "y = f32[1024] get-tuple-element(t), index=1 n = f32[1024] negate(x) "                         \
    "ROOT r = (f32[1024], f32[1024]) tuple(n, y) }\n"                                              \
    "c { t = (f32[1024], f32[1024]) parameter(0) ROOT p = pred[] constant(false) }\n"              \
    "ENTRY e { a = f32[1024] parameter(0) z = f32[1024] constant({...}) "                          \
    "i = (f32[1024], f32[1024]) tuple(z, a) "                                                      \
    "w = (f32[1024], f32[1024]) while(i), condition=c, body=b "                                    \
    "ROOT g = f32[1024] get-tuple-element(w), index=1 }"
static void outputs_of_loops_are_copied(void **state)
{
    (void)state;
    enum { K4 = 4096 };
    struct fixture f;
    assert_true(read_text(&f, "HloModule m\n" LOOP, "gpu"));
    assert_int_equal(f.r.figures.output_bytes, K4);
    assert_int_equal(f.r.figures.alias_bytes, 0);
    unit_end(&f.u);
    assert_true(
        read_text(&f, "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n" LOOP, "gpu"));
    assert_int_equal(f.r.figures.alias_bytes, K4);
    unit_end(&f.u);
}

/* S(1) is device memory on GPU, the chip's own on TPU. */
static void collective_memory_of_gpus_counts(void **state)
{
    (void)state;
    static const char text[] =
        "HloModule m, is_scheduled=true\nENTRY e {\n  a = f32[1048576]{0} parameter(0)\n"
        "  b = f32[1048576]{0:S(1)} copy(a)\n  ROOT c = f32[1048576]{0} copy(b)\n}\n";
    enum { MIB = 1 << 20 };
    check_figures(text, "gpu", 4 * MIB, 0, 12 * MIB);
    check_figures(text, "tpu-v5e", 4 * MIB, 0, 8 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(left_out_shapes_follow),
        cmocka_unit_test(others_do_not),
        cmocka_unit_test(refusals_name_place_and_feature),
        cmocka_unit_test(doubling_shapes_end),
        cmocka_unit_test(outputs_of_unscheduled_modules_are_copied),
        cmocka_unit_test(outputs_of_loops_are_copied),
        cmocka_unit_test(collective_memory_of_gpus_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
