/* sim/hlo/alias: which operand an instruction works in, and which it may, backend by backend: the
 * cases of GetInPlaceInputOutputPairs and CanShareOperandBufferWithUser in XLA's alias_info.cc
 * and hlo_dataflow_analysis.cc. */
#include "tests/unit/unit.h"

#include "base/str.h"
#include "sim/hlo/alias.h"
#include "sim/hlo/module.h"

struct fixture {
    struct unit u;
    struct hb_hlo_text text;
    struct hb_hlo_module m;
    struct hb_hlo_alias a;
};

static void read_module(struct fixture *f, const char *text, const char *backend)
{
    unit_start(&f->u);
    f->text = (struct hb_hlo_text){"t.hlo", text, strlen(text), 0};
    if (!hb_hlo_module_read(f->u.env.arena, &f->u.diag, &f->text, &f->m))
        fail_msg("%s", f->u.diag.entries[0].text);
    f->m.dialect = hb_hlo_dialect_find(backend);
    hb_hlo_alias_init(&f->a, f->u.env.arena, &f->m);
}

/* The instruction of the entry that is last, or the so many before it. */
static uint32_t from_end(const struct fixture *f, uint32_t before)
{
    const struct hb_hlo_comp *entry = &f->m.comps[f->m.entry];
    return entry->first_inst + entry->inst_count - 1 - before;
}

/* What in_place says of the last instruction, as "operand.slot>slot", one behind the other. */
static const char *pairs_of(struct fixture *f, const char *text)
{
    struct hb_hlo_in_place pairs[HB_HLO_MAX_IN_PLACE];
    struct hb_str said;
    read_module(f, text, "gpu");
    hb_str_init(&said, f->u.env.arena);
    uint32_t count = hb_hlo_in_place(&f->a, from_end(f, 0), pairs, HB_HLO_MAX_IN_PLACE);
    for (uint32_t i = 0; i < count; i++)
        hb_str_addf(&said, "%s%u.%u>%u", i ? " " : "", pairs[i].operand, pairs[i].operand_slot,
                    pairs[i].output_slot);
    return said.text ? said.text : "";
}

#define HEAD "HloModule m, is_scheduled=true\n"
#define ADDS                                                                                       \
    "%add (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] "               \
    "parameter(1)\n  ROOT %s = f32[] add(%x, %y)\n}\n"
#define ADDS_TWO                                                                                   \
    "%two (x: f32[], y: f32[], v: f32[], w: f32[]) -> (f32[], f32[]) {\n"                          \
    "  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"                                       \
    "  %v = f32[] parameter(2)\n  %w = f32[] parameter(3)\n"                                       \
    "  ROOT %t = (f32[], f32[]) tuple(%v, %w)\n}\n"
#define P(name, shape, nth) "  %" name " = " shape " parameter(" nth ")\n"

static const struct {
    const char *text, *wanted;
} in_place[] = {
    {HEAD "ENTRY %e {\n" P("a", "f32[8]{0}", "0") P("u", "f32[2]{0}", "1")
         P("i", "s32[]", "2") "  ROOT %r = f32[8]{0} dynamic-update-slice(%a, %u, %i)\n}\n",
     "0.0>0"},
    {HEAD "ENTRY %e {\n" P("a", "f32[<=8]{0}", "0")
         P("n", "s32[]", "1") "  ROOT %r = f32[<=8]{0} set-dimension-size(%a, %n), "
                              "dimensions={0}\n}\n",
     "0.0>0"},
    {HEAD ADDS "ENTRY %e {\n" P("a", "f32[8]{0}", "0") P("i", "s32[2,1]{1,0}", "1")
         P("u", "f32[2]{0}", "2") "  ROOT %r = f32[8]{0} scatter(%a, %i, %u), "
                                  "to_apply=%add\n}\n",
     "0.0>0"},
    {HEAD ADDS_TWO "ENTRY %e {\n" P("a", "f32[8]{0}", "0") P("b", "f32[8]{0}", "1")
         P("i", "s32[2,1]{1,0}", "2") P("u", "f32[2]{0}", "3")
             P("v", "f32[2]{0}", "4") "  ROOT %r = (f32[8]{0}, f32[8]{0}) scatter(%a, %b, %i, "
                                      "%u, %v), to_apply=%two\n}\n",
     "0.0>1 1.0>2"},
    {HEAD ADDS "ENTRY %e {\n" P("a", "f32[8]{0}", "0")
         P("b", "f32[4]{0}", "1") "  ROOT %r = (f32[8]{0}, f32[4]{0}) all-reduce-start(%a, "
                                  "%b), to_apply=%add\n}\n",
     "0.0>1 1.0>2"},
    /* of an older dump: what is given, and what is made */
    {HEAD ADDS "ENTRY %e {\n" P("a", "f32[8]{0}", "0") "  ROOT %r = (f32[8]{0}, f32[8]{0}) "
                                                       "all-reduce-start(%a), to_apply=%add\n}\n",
     ""},
    {HEAD "ENTRY %e {\n" P("a", "f32[8]{0}", "0") P("b", "f32[8]{0}", "1") P("i", "s32[]", "2")
         P("j", "s32[]", "3") "  ROOT %r = f32[8]{0} collective-permute(%a, %b, %i, %j), "
                              "source_target_pairs={{0,1}}\n"
                              "}\n",
     "1.0>0"},
    {HEAD "ENTRY %e {\n" P(
         "a", "f32[8]{0}",
         "0") "  ROOT %r = f32[8]{0} collective-permute(%a), source_target_pairs={{0,1}}\n}\n",
     ""},
    {HEAD "ENTRY %e {\n" P("a", "f32[8]{0}", "0") P("b", "f32[8]{0}", "1")
         P("i", "s32[2]{0}", "2") "  ROOT %r = f32[8]{0} ragged-all-to-all(%a, %b, %i, %i, %i, "
                                  "%i)\n}\n",
     "1.0>0"},
    {HEAD "ENTRY %e {\n" P("a", "f32[8]{0}", "0")
         P("b", "(f32[4]{0}, f32[8]{0})",
           "1") "  ROOT %r = (f32[8]{0}, f32[8]{0}) custom-call(%a, %b), "
                "custom_call_target=\"x\", "
                "output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {1})}\n}\n",
     "0.0>1 1.2>2"},
    /* an operand or a part that is not there */
    {HEAD "ENTRY %e {\n" P(
         "a", "f32[8]{0}",
         "0") "  ROOT %r = (f32[8]{0}, f32[8]{0}) custom-call(%a), custom_call_target=\"x\", "
              "output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {})}\n}\n",
     "0.0>1"},
    {HEAD "ENTRY %e {\n" P(
         "a", "f32[8]{0}",
         "0") "  ROOT %r = (f32[8]{0}, f32[8]{0}) custom-call(%a), custom_call_target=\"x\", "
              "output_to_operand_aliasing={{0}: (0, {3}), {5}: (0, {})}\n}\n",
     ""},
    /* a fusion works where the operation at its root does: through a tuple, an element of one,
     * a bitcast, a fusion inside */
    {HEAD "%f {\n" P("p", "f32[2]{0}", "0") P("q", "(s32[], f32[8]{0})", "1")
         P("i", "s32[]",
           "2") "  %g = f32[8]{0} get-tuple-element(%q), index=1\n"
                "  %d = f32[8]{0} dynamic-update-slice(%g, %p, %i)\n"
                "  ROOT %t = (f32[2]{0}, f32[8]{0}) tuple(%p, %d)\n}\n"
                "ENTRY %e {\n" P("u", "f32[2]{0}", "0") P("a", "(s32[], f32[8]{0})", "1")
                    P("i", "s32[]", "2") "  ROOT %r = (f32[2]{0}, f32[8]{0}) fusion(%u, %a, %i), "
                                         "kind=kLoop, calls=%f\n}\n",
     "1.2>2"},
    {HEAD "%f {\n" P("p", "f32[2]{0}", "0") P("q", "f32[2,4]{1,0}", "1")
         P("i", "s32[]",
           "2") "  %b = f32[8]{0} bitcast(%q)\n"
                "  ROOT %d = f32[8]{0} dynamic-update-slice(%b, %p, %i)\n}\n"
                "%g {\n" P("p", "f32[2]{0}", "0") P("q", "f32[2,4]{1,0}", "1")
                    P("i", "s32[]",
                      "2") "  %f = f32[8]{0} fusion(%p, %q, %i), kind=kLoop, calls=%f\n"
                           "  ROOT %b = f32[2,4]{1,0} bitcast(%f)\n}\n"
                           "ENTRY %e {\n" P("u", "f32[2]{0}", "0") P("a", "f32[2,4]{1,0}", "1")
                               P("i", "s32[]", "2") "  ROOT %r = f32[2,4]{1,0} fusion(%u, %a, "
                                                    "%i), kind=kLoop, calls=%g\n}\n",
     "1.0>0"},
    /* what the update goes into is made inside */
    {HEAD "%f {\n" P("p", "f32[2]{0}", "0") P("q", "f32[8]{0}", "1")
         P("i", "s32[]", "2") "  %n = f32[8]{0} negate(%q)\n"
                              "  ROOT %d = f32[8]{0} dynamic-update-slice(%n, %p, %i)\n}\n"
                              "ENTRY %e {\n" P("u", "f32[2]{0}", "0") P("a", "f32[8]{0}", "1")
                                  P("i", "s32[]",
                                    "2") "  ROOT %r = f32[8]{0} fusion(%u, %a, %i), kind=kLoop, "
                                         "calls=%f\n}\n",
     ""},
};

static void what_must_lie_in_an_operand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++) {
        struct fixture f;
        const char *said = pairs_of(&f, in_place[i].text);
        if (strcmp(said, in_place[i].wanted) != 0)
            fail_msg("row %zu: '%s', not '%s'", i, said, in_place[i].wanted);
        unit_end(&f.u);
    }
}

/* Whether the last instruction's slot may lie in the parameter of that number. */
struct share {
    const char *text;
    const char *backend;
    uint32_t operand, slot;
    bool wanted;
};

static void check_shares(const struct share *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct fixture f;
        read_module(&f, rows[i].text, rows[i].backend);
        uint32_t operand = f.m.params[f.m.comps[f.m.entry].params_at + rows[i].operand];
        bool may = hb_hlo_may_share(&f.a, operand, 0, from_end(&f, 0), rows[i].slot);
        if (may != rows[i].wanted)
            fail_msg("row %zu: %s", i, may ? "shares" : "does not share");
        unit_end(&f.u);
    }
}

#define SHARES(rows) check_shares(rows, sizeof(rows) / sizeof *(rows))

#define TWO "ENTRY %e {\n" P("a", "f32[4,4]{1,0}", "0") P("b", "f32[4,4]{1,0}", "1")
#define OUTPUT_FUSION(inside, call)                                                                \
    HEAD "%f {\n" P("p", "f32[4,4]{1,0}", "0")                                                     \
        P("q", "f32[4,4]{1,0}", "1") "  %d = f32[4,4]{1,0} dot(%p, %p), "                          \
                                     "lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"        \
                                     "  ROOT %s = f32[4,4]{1,0} add(" inside ")\n}\n" TWO          \
                                     "  ROOT %r = f32[4,4]{1,0} fusion(" call                      \
                                     "), kind=kOutput, calls=%f\n}\n"
#define CALL(inside, before)                                                                       \
    HEAD "%f {\n" P("p", "f32[4,4]{1,0}", "0") inside                                              \
        "}\n" TWO before "  ROOT %r = f32[4,4]{1,0} call(%a), to_apply=%f\n}\n"
static const struct share on_cpu[] = {
    {HEAD TWO "  ROOT %r = f32[4,4]{1,0} add(%a, %b)\n}\n", "cpu", 1, 0, true},
    {HEAD TWO "  ROOT %r = f32[4,4]{0,1} add(%a, %b)\n}\n", "cpu", 1, 0, false},
    {HEAD TWO "  ROOT %r = f32[4,4]{1,0} dot(%a, %b), lhs_contracting_dims={1}, "
              "rhs_contracting_dims={0}\n}\n",
     "cpu", 0, 0, false},
    /* the second operand is solved in place, the first never */
    {HEAD TWO "  ROOT %r = f32[4,4]{1,0} triangular-solve(%a, %b), left_side=true, lower=true, "
              "transpose_a=NO_TRANSPOSE\n}\n",
     "cpu", 1, 0, true},
    {HEAD TWO "  ROOT %r = f32[4,4]{1,0} triangular-solve(%a, %b), left_side=true, lower=true, "
              "transpose_a=NO_TRANSPOSE\n}\n",
     "cpu", 0, 0, false},
    /* add(dot, x) in x, not in what the product reads; nor in x where the product reads it */
    {OUTPUT_FUSION("%d, %q", "%a, %b"), "cpu", 1, 0, true},
    {OUTPUT_FUSION("%q, %d", "%a, %b"), "cpu", 1, 0, true},
    {OUTPUT_FUSION("%d, %q", "%a, %b"), "cpu", 0, 0, false},
    {OUTPUT_FUSION("%d, %p", "%a, %b"), "cpu", 0, 0, false},
    {OUTPUT_FUSION("%q, %q", "%a, %b"), "cpu", 1, 0, false},
    /* a call in an operand that it alone uses, elementwise, at once */
    {CALL("  ROOT %n = f32[4,4]{1,0} negate(%p)\n", ""), "cpu", 0, 0, true},
    {CALL("  ROOT %n = f32[4,4]{1,0} negate(%p)\n", "  %x = f32[4,4]{1,0} negate(%a)\n"), "cpu", 0,
     0, false},
    {CALL("  ROOT %n = f32[4,4]{1,0} add(%p, %p)\n", ""), "cpu", 0, 0, false},
    {CALL("  %m = f32[4,4]{1,0} negate(%p)\n  ROOT %n = f32[4,4]{1,0} exponential(%m)\n", ""),
     "cpu", 0, 0, false},
    {CALL("  ROOT %n = f32[4,4]{1,0} transpose(%p), dimensions={1,0}\n", ""), "cpu", 0, 0, false},
};

static void what_may_on_cpu(void **state)
{
    (void)state;
    SHARES(on_cpu);
}

#define GEMM(target, config, operands)                                                             \
    HEAD TWO P("c", "f32[4,4]{1,0}", "2") "  ROOT %r = (f32[4,4]{1,0}, s8[64]{0}) custom-call("    \
                                          "%a, %b" operands "), custom_call_target=\"" target      \
                                          "\", backend_config={" config "}\n}\n"
#define UPDATE(read, at, made, root)                                                               \
    HEAD "%f {\n" P("p", "f32[8,4]{1,0}", "0") P("i", "s32[]", "1")                                \
        P("z", "s32[]",                                                                            \
          "2") "  %q = f32[8,4]{1,0} negate(%p)\n  %s = " read " dynamic-slice(%q, " at            \
               ", %z), dynamic_slice_sizes={1,1}\n" made                                           \
               "  ROOT %u = f32[8,4]{1,0} dynamic-update-slice(%q, " root ", %i, %z)\n}\n"         \
               "ENTRY %e {\n" P("a", "f32[8,4]{1,0}", "0") P("i", "s32[]", "1") P(                 \
                   "z", "s32[]",                                                                   \
                   "2") "  ROOT %r = f32[8,4]{1,0} fusion(%a, %i, %z), kind=kLoop, calls=%f\n}\n"
#define LOOP(inside, out)                                                                          \
    HEAD ADDS "%f {\n" P("p", "f32[4,4]{1,0}", "0") P("q", "f32[4,4]{1,0}", "1") inside            \
        "}\n" TWO "  ROOT %r = " out " fusion(%a, %b), kind=kLoop, calls=%f\n}\n"
static const struct share on_gpu[] = {
    /* a product adds onto its third operand where beta is not 0 */
    {GEMM("__cublas$gemm", "\"gemm_backend_config\":{\"alpha_real\":1,\"beta\":1,\"x\":0}", ", %c"),
     "gpu", 2, 1, true},
    {GEMM("__cublas$gemm", "\"gemm_backend_config\":{\"alpha_real\":1,\"beta\":0,\"x\":1}", ", %c"),
     "gpu", 2, 1, false},
    {GEMM("__cublas$gemm", "\"gemm_backend_config\":{\"alpha_real\":1,\"beta\":0.5}", ", %c"),
     "gpu", 2, 1, true},
    {GEMM("__cublas$gemm", "\"gemm_backend_config\":{\"beta\":1}", ", %c"), "gpu", 0, 1, false},
    {GEMM("__cublas$gemm", "\"gemm_backend_config\":{\"beta\":1}", ""), "gpu", 1, 1, false},
    {GEMM("other", "\"gemm_backend_config\":{\"beta\":1}", ", %c"), "gpu", 2, 1, false},
    {HEAD TWO "  ROOT %r = (s8[64]{0}, f32[4,4]{1,0}, s32[]) custom-call(%a), "
              "custom_call_target=\"cusolver$cholesky\"\n}\n",
     "gpu", 0, 2, false},
    {HEAD TWO "  ROOT %r = (f32[4,4]{1,0}, s8[64]{0}, s32[]) custom-call(%a), "
              "custom_call_target=\"cusolver$cholesky\"\n}\n",
     "gpu", 0, 1, true},
    /* a slice is read where it is written: the same one, or of one element */
    {UPDATE("f32[1,1]{1,0}", "%i", "  %n = f32[1,1]{1,0} negate(%s)\n", "%n"), "gpu", 0, 0, true},
    {UPDATE("f32[1,1]{1,0}", "%z", "  %n = f32[1,1]{1,0} negate(%s)\n", "%n"), "gpu", 0, 0, true},
    {UPDATE("f32[2,1]{1,0}", "%i", "  %n = f32[2,1]{1,0} negate(%s)\n", "%n"), "gpu", 0, 0, true},
    {UPDATE("f32[2,1]{1,0}", "%z", "  %n = f32[2,1]{1,0} negate(%s)\n", "%n"), "gpu", 0, 0, false},
    /* elementwise, through bitcasts and tuples, but never a copy or a transposition beside */
    {LOOP("  ROOT %n = f32[4,4]{1,0} add(%p, %q)\n", "f32[4,4]{1,0}"), "gpu", 1, 0, true},
    {LOOP("  %n = f32[4,4]{1,0} add(%p, %q)\n  ROOT %b = f32[16]{0} bitcast(%n)\n", "f32[16]{0}"),
     "gpu", 1, 0, true},
    {LOOP("  %n = f32[4,4]{1,0} add(%p, %q)\n  ROOT %b = f32[4,4]{1,0} copy(%n)\n",
          "f32[4,4]{1,0}"),
     "gpu", 1, 0, false},
    {LOOP("  ROOT %n = f64[4,4]{1,0} convert(%p)\n", "f64[4,4]{1,0}"), "gpu", 0, 0, false},
    {LOOP("  ROOT %n = s32[4,4]{1,0} convert(%p)\n", "s32[4,4]{1,0}"), "gpu", 0, 0, true},
    {LOOP("  %n = f32[4,4]{1,0} add(%p, %q)\n  %m = f32[4,4]{1,0} negate(%n)\n"
          "  ROOT %t = (f32[4,4]{1,0}, f32[4,4]{1,0}) tuple(%n, %m)\n",
          "(f32[4,4]{1,0}, f32[4,4]{1,0})"),
     "gpu", 0, 1, true},
    {LOOP("  %n = f32[4,4]{1,0} add(%p, %q)\n"
          "  %m = f32[4,4]{1,0} transpose(%n), dimensions={1,0}\n"
          "  ROOT %t = (f32[4,4]{1,0}, f32[4,4]{1,0}) tuple(%n, %m)\n",
          "(f32[4,4]{1,0}, f32[4,4]{1,0})"),
     "gpu", 0, 1, false},
    /* a sum's own output beside it: the sum is computed before the others are written */
    {LOOP("  %z = f32[] constant(0)\n  %s = f32[4]{0} reduce(%p, %z), dimensions={1}, "
          "to_apply=%add\n  %n = f32[4,4]{1,0} negate(%p)\n"
          "  ROOT %t = (f32[4]{0}, f32[4,4]{1,0}) tuple(%s, %n)\n",
          "(f32[4]{0}, f32[4,4]{1,0})"),
     "gpu", 0, 2, true},
};

static void what_may_on_gpu(void **state)
{
    (void)state;
    SHARES(on_gpu);
}

#define TOLD(config)                                                                               \
    HEAD "%f {\n" P("p", "f32[4,4]{1,0}", "0") P("q", "f32[4,4]{1,0}", "1")                        \
        P("s", "f32[4,4]{1,0}",                                                                    \
          "2") "  %n = f32[4,4]{1,0} add(%p, %q)\n"                                                \
               "  ROOT %t = (f32[4,4]{1,0}, f32[4,4]{1,0}) tuple(%n, %s)\n}\n" TWO                 \
               "  ROOT %r = (f32[4,4]{1,0}, f32[4,4]{1,0}) fusion(%a, %a, %b), kind=kLoop, "       \
               "calls=%f, "                                                                        \
               "backend_config={" config "}\n}\n"
#define LISTS(lists) TOLD("\"aliasing_operands\":{\"lists\":[" lists "]}")
static const struct share on_tpu[] = {
    /* operands 0 and 1, each counted once, outputs 2 and 3 */
    {LISTS("{\"indices\":[\"0\",\"2\"]}"), "tpu", 0, 1, true},
    {LISTS("{\"indices\":[\"0\",\"2\"]}"), "tpu", 0, 2, false},
    {LISTS("{\"indices\":[\"0\",\"2\"]}"), "tpu", 1, 1, false},
    {LISTS("{\"indices\":[\"0\",\"2\"]},{\"indices\":[\"3\",\"1\"]}"), "tpu", 1, 2, true},
    {LISTS(""), "tpu", 0, 1, false},
    /* nothing told: as elsewhere */
    {TOLD("\"other\":1"), "tpu", 0, 1, true},
};

static void what_tpu_tells(void **state)
{
    (void)state;
    SHARES(on_tpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_must_lie_in_an_operand),
        cmocka_unit_test(what_may_on_cpu),
        cmocka_unit_test(what_may_on_gpu),
        cmocka_unit_test(what_tpu_tells),
    };
    return cmocka_run_group_tests_name("hlo_alias", tests, NULL, NULL);
}
