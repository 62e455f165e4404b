/* sim/hlo/flow: which value stands in each part of a module's result, as XLA's dataflow analysis
 * says: what is handed on and what is made anew. */
#include "tests/unit/unit.h"

#include "base/str.h"
#include "sim/hlo/flow.h"
#include "sim/hlo/module.h"

struct row {
    const char *text;
    const char *wanted; /* by slot of the result: the instruction that makes the value, its slot */
};

#define BODY(name, result)                                                                         \
    name " {\n  p = (f32[4], s32[]) parameter(0)\n  x = f32[4] get-tuple-element(p), index=0\n"    \
         "  i = s32[] get-tuple-element(p), index=1\n  o = s32[] constant(1)\n"                    \
         "  n = s32[] add(i, o)\n  y = f32[4] negate(x)\n"                                         \
         "  ROOT r = (f32[4], s32[]) tuple(" result ")\n}\n"
#define TEST                                                                                       \
    "test {\n  p = (f32[4], s32[]) parameter(0)\n  i = s32[] get-tuple-element(p), index=1\n"      \
    "  o = s32[] constant(9)\n  ROOT l = pred[] compare(i, o), direction=LT\n}\n"
#define SCHEDULED "HloModule m, is_scheduled=true\n" /* no copies are added */
#define ENTRY                                                                                      \
    "ENTRY e {\n  a = f32[4] parameter(0)\n  b = s32[] parameter(1)\n  c = pred[] parameter(2)\n"  \
    "  t = (f32[4], s32[]) tuple(a, b)\n"

static const struct row rows[] = {
    {ENTRY "  ROOT r = (s32[], (f32[4], s32[])) tuple(b, t)\n}\n", "r.0 b.0 t.0 a.0 b.0"},
    {ENTRY "  ROOT r = s32[] get-tuple-element(t), index=1\n}\n", "b.0"},
    /* a copy makes its own table, or array; an asynchronous one too */
    {ENTRY "  ROOT r = (f32[4], s32[]) copy(t)\n}\n", "r.0 a.0 b.0"},
    {ENTRY "  s = (f32[4], f32[4], u32[]) copy-start(a)\n  ROOT r = f32[4] copy-done(s)\n}\n",
     "s.1"},
    {ENTRY "  s = (f32[4], f32[4], u32[]) copy-start(a)\n"
           "  ROOT r = f32[4] get-tuple-element(s), index=1\n}\n",
     "a.0"},
    {ENTRY "  s = (f32[4], f32[8]) all-gather-start(a), dimensions={0}\n"
           "  ROOT r = f32[8] all-gather-done(s)\n}\n",
     "s.2"},
    {ENTRY "  s = ((f32[4], s32[]), (f32[8], s32[2])) all-gather-start(a, b), dimensions={0}\n"
           "  ROOT r = (f32[4], s32[]) get-tuple-element(s), index=0\n}\n",
     "s.1 a.0 b.0"},
    /* an all-reduce as older dumps have it, (given, made); a newer one has what is made alone */
    {ENTRY "  s = (f32[4], f32[4]) all-reduce-start(a), to_apply=f\n"
           "  ROOT r = f32[4] all-reduce-done(s)\n}\nf {\n  p = f32[] parameter(0)\n"
           "  q = f32[] parameter(1)\n  ROOT n = f32[] add(p, q)\n}\n",
     "s.2"},
    {ENTRY "  s = ((f32[4], s32[]), (f32[4], s32[])) all-reduce-start(a, b), to_apply=f\n"
           "  ROOT r = (f32[4], s32[]) get-tuple-element(s), index=0\n}\nf {\n"
           "  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT n = f32[] add(p, q)\n}\n",
     "s.1 a.0 b.0"},
    {ENTRY "  s = f32[4] all-reduce-start(a), to_apply=f\n  ROOT r = f32[4] all-reduce-done(s)\n"
           "}\nf {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n"
           "  ROOT n = f32[] add(p, q)\n}\n",
     "s.0"},
    {ENTRY "  s = (f32[4], u32[], token[]) send(a, b), channel_id=1\n"
           "  ROOT r = f32[4] get-tuple-element(s), index=0\n}\n",
     "a.0"},
    {ENTRY "  k = token[] after-all()\n  s = (f32[4], u32[], token[]) recv(k), channel_id=1\n"
           "  ROOT r = (f32[4], token[]) recv-done(s), channel_id=1\n}\n",
     "r.0 s.1 r.2"},
    /* an asynchronous call: its operands are handed on, its result is that of what it wraps */
    {"f {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}\n" ENTRY
     "  s = ((f32[4]), f32[4], u32[]) async-start(a), calls=f\n"
     "  u = ((f32[4]), f32[4], u32[]) async-update(s)\n  ROOT r = f32[4] async-done(u)\n}\n",
     "n.0"},
    {"f {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}\n" ENTRY
     "  s = ((f32[4]), f32[4], u32[]) async-start(a), calls=f\n"
     "  ROOT r = (f32[4]) get-tuple-element(s), index=0\n}\n",
     "s.1 a.0"},
    /* a call, one that lacks an operand too */
    {"f {\n  p = f32[4] parameter(0)\n  q = s32[] parameter(1)\n"
     "  ROOT n = (s32[], f32[4]) tuple(q, p)\n}\n" ENTRY
     "  ROOT r = (s32[], f32[4]) call(a, b), to_apply=f\n}\n",
     "n.0 b.0 a.0"},
    {"f {\n  p = f32[4] parameter(0)\n  q = s32[] parameter(1)\n"
     "  ROOT n = (s32[], f32[4]) tuple(q, p)\n}\n" ENTRY
     "  ROOT r = (s32[], f32[4]) call(a), to_apply=f\n}\n",
     "n.0 q.0 a.0"},
    /* what a loop hands on unchanged is what it was given; what it makes is a value of its own */
    {SCHEDULED TEST BODY("body", "x, n") ENTRY
     "  ROOT w = (f32[4], s32[]) while(t), condition=test, body=body\n}\n",
     "w.0 a.0 w.2"},
    {SCHEDULED TEST BODY("body", "y, n") ENTRY
     "  ROOT w = (f32[4], s32[]) while(t), condition=test, body=body\n}\n",
     "w.0 w.1 w.2"},
    {SCHEDULED TEST BODY(
         "inner", "x, n") "body {\n  p = (f32[4], s32[]) parameter(0)\n"
                          "  ROOT v = (f32[4], s32[]) while(p), condition=test, "
                          "body=inner\n}\n" ENTRY
                          "  ROOT w = (f32[4], s32[]) while(t), condition=test, body=body\n}\n",
     "w.0 a.0 w.2"},
    /* branches that agree, and that do not */
    {"f {\n  p = (f32[4], s32[]) parameter(0)\n  ROOT x = f32[4] get-tuple-element(p), index=0\n}\n"
     "g {\n  q = f32[4] parameter(0)\n  ROOT z = f32[4] copy(q)\n}\n"
     "h {\n  q = f32[4] parameter(0)\n  ROOT z = f32[4] bitcast(q)\n}\n" ENTRY
     "  ROOT r = f32[4] conditional(c, t, a), true_computation=f, false_computation=h\n}\n",
     "a.0"},
    {"f {\n  p = (f32[4], s32[]) parameter(0)\n  ROOT x = f32[4] get-tuple-element(p), index=0\n}\n"
     "g {\n  q = f32[4] parameter(0)\n  ROOT z = f32[4] copy(q)\n}\n" ENTRY
     "  ROOT r = f32[4] conditional(c, t, a), true_computation=f, false_computation=g\n}\n",
     "r.0"},
};

static const char *values_of(struct unit *u, const char *text)
{
    struct hb_hlo_text whole = {"t.hlo", text, strlen(text), 0};
    struct hb_hlo_module m;
    struct hb_hlo_flow f;
    struct hb_str said;
    if (!hb_hlo_module_read(u->env.arena, &u->diag, &whole, &m) ||
        !hb_hlo_flow_find(u->env.arena, &u->diag, &m, NULL, &f))
        fail_msg("%s: %s", text, u->diag.entries[0].text);
    hb_str_init(&said, u->env.arena);
    uint32_t root = hb_hlo_scope_root(&f, 0);
    for (uint32_t s = f.first_slot[root]; s < f.first_slot[root + 1]; s++) {
        const struct hb_hlo_value *v = &f.values[f.value_at[s]];
        const struct hb_hlo_inst *maker = &m.insts[hb_hlo_node_inst(&f, v->node)];
        hb_str_addf(&said, "%s%.*s.%u", said.len ? " " : "", (int)maker->name_len,
                    text + maker->name_at, v->slot);
    }
    return said.text;
}

static void what_stands_in_a_result(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct unit u;
        unit_start(&u);
        const char *said = values_of(&u, rows[i].text);
        if (strcmp(said, rows[i].wanted) != 0)
            fail_msg("row %zu: '%s', not '%s'", i, said, rows[i].wanted);
        unit_end(&u);
    }
}

/* Each computation calls the next twice: 2^40 calls. */
static void what_unrolls_without_end_is_refused(void **state)
{
    (void)state;
    struct unit u;
    struct hb_str text;
    struct hb_hlo_module m;
    struct hb_hlo_flow f;
    unit_start(&u);
    hb_str_init(&text, u.env.arena);
    hb_str_add(&text, "f0 {\n  ROOT p = s32[] parameter(0)\n}\n");
    for (int i = 1; i < 40; i++)
        hb_str_addf(&text,
                    "f%d {\n  p = s32[] parameter(0)\n  q = s32[] call(p), to_apply=f%d\n"
                    "  ROOT r = s32[] call(q), to_apply=f%d\n}\n",
                    i, i - 1, i - 1);
    hb_str_add(&text,
               "ENTRY e {\n  p = s32[] parameter(0)\n  ROOT r = s32[] call(p), to_apply=f39\n}\n");
    struct hb_hlo_text whole = {"t.hlo", text.text, text.len, 0};
    assert_true(hb_hlo_module_read(u.env.arena, &u.diag, &whole, &m));
    assert_false(hb_hlo_flow_find(u.env.arena, &u.diag, &m, NULL, &f));
    assert_non_null(strstr(u.diag.entries[0].text, "calls unroll to more than"));
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_in_a_result),
        cmocka_unit_test(what_unrolls_without_end_is_refused),
    };
    return cmocka_run_group_tests_name("hlo_flow", tests, NULL, NULL);
}
