/* What an advice says of its levers, and what a margin asks of a search. */
#include "tests/unit/each.h"
#include "tests/unit/unit_spec.h"

#include "hw/device.h"
#include "sim/engine/measure.h"
#include "solver/advise.h"
#include "solver/margin.h"

#define MODEL(more)                                                                                \
    "model:\n  d_model: 512\n  vocab: 4096\n  blocks:\n"                                           \
    "    - {name: a, repeat: 4, attention: {heads: 4}, mlp: {d_ff: 2048}}\n"                       \
    "batch: {global: 16, seq: 1024}\nmesh: {fsdp: 4}\n" more

static const struct hb_advice *knob_of(const struct hb_advice_list *list, const char *name,
                                       size_t len)
{
    for (uint32_t i = 0; i < list->knob_count; i++)
        if (strlen(list->knobs[i].name) == len && memcmp(list->knobs[i].name, name, len) == 0)
            return &list->knobs[i];
    return NULL;
}

/* "ONE, TWO", of which a name may have a comma itself. Returns whether it was one of two knobs. */
static bool check_pair(const struct hb_advice_list *list, const struct hb_advice *pair)
{
    for (const char *at = strstr(pair->name, ", "); at; at = strstr(at + 1, ", ")) {
        const struct hb_advice *one = knob_of(list, pair->name, (size_t)(at - pair->name));
        const struct hb_advice *two = knob_of(list, at + 2, strlen(at + 2));
        if (!one || !two)
            continue;
        assert_true(one->lever != two->lever && one->applies && two->applies);
        assert_true(pair->freed_bytes > one->freed_bytes && pair->freed_bytes > two->freed_bytes);
        return true;
    }
    return false;
}

/* "KEY = VALUE, KEY = VALUE" set in the text. False: the name is no such thing. */
static bool set_all(struct hb_node *root, const char *name)
{
    while (*name) {
        const char *is = strstr(name, " = "), *next = is ? strstr(is, ", ") : NULL;
        while (next && !strstr(next, " = "))
            next = NULL;
        if (!is)
            return false;
        const char *end = next ? next : is + strlen(is);
        const char *set = hb_arena_printf(u.env.arena, "%.*s=%.*s", (int)(is - name), name,
                                          (int)(end - is - 3), is + 3);
        if (!hb_schema_set(u.env.arena, &u.diag, root, set))
            return false;
        name = next ? next + 2 : end;
    }
    return true;
}

/* What a knob says of itself is what the same file says with its keys set. Returns whether it was
 * asked. */
static bool check_knob(const char *text, const struct hb_device *device,
                       const struct hb_advice_list *list, const struct hb_advice *knob)
{
    struct hb_node *root;
    struct hb_spec spec;
    int64_t bytes, ns;
    assert_true(knob->applies == (knob->freed_bytes != 0 || knob->cost_ns != 0));
    assert_true(hb_yaml_parse(u.env.arena, &u.diag, "test", text, strlen(text), &root));
    if (!knob->applies || !set_all(root, knob->name) ||
        !hb_schema_from_node(u.env.arena, &u.diag, root, HB_SOURCE_DIR, &spec) ||
        !hb_measure_both(u.env.arena, &u.diag, &spec, device, &bytes, &ns))
        return false;
    assert_int_equal(knob->freed_bytes, list->peak_bytes - bytes);
    assert_int_equal(knob->cost_ns, ns - list->step_ns);
    return true;
}

/* The knob beyond what plan searches that frees most; none where none does. Returns whether one
 * does. */
static bool check_freer(const struct hb_spec *spec, const struct hb_device *device,
                        const struct hb_advice_list *list)
{
    const char *words = hb_advise_best_freer(&u.env, spec, device);
    int64_t most_bytes = 0, own_bytes = 0;
    size_t len = words ? (size_t)(strrchr(words, '(') - words) - 1 : 0;
    for (uint32_t k = 0; k < list->knob_count; k++) {
        const struct hb_advice *knob = &list->knobs[k];
        int64_t bytes = knob->outside && knob->applies ? knob->freed_bytes : 0;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
        if (words && strlen(knob->name) == len && memcmp(knob->name, words, len) == 0)
            own_bytes = bytes;
    }
    assert_int_equal(own_bytes, most_bytes);
    assert_true(!words == (most_bytes == 0));
    return words;
}

/* Pairs free more than each of their knobs; all are in order, and what has no effect comes last. */
static void pairs_free_more_than_their_knobs(void **state)
{
    (void)state;
    static const char *const texts[] = {
        MODEL("hardware: {device: tpu-v5e, count: 4}\n"),
        MODEL("hardware: {device: tpu-v6e, count: 4}\nloss: {chunks: 8, dot: bf16}\n"
              "optimizer: {name: adafactor, offload: pinned_host}\nremat: {policy: full}\n"
              "precision: {params: bf16}\nstack: {form: nested}\n"),
        MODEL("hardware: {device: nvidia-h100, count: 4}\nremat: {policy: full}\n"
              "optimizer: {name: sgd}\nprecision: {params: bf16}\n"),
        MODEL("hardware: {device: nvidia-h100, count: 4}\nremat: {policy: full}\n"
              "step: {donate: false}\n"),
        "model:\n  d_model: 64\n  vocab: 64\n  blocks:\n"
        "    - {name: a, repeat: 1, attention: {heads: 1, kernel: flash}, mlp: {d_ff: 64}}\n"
        "batch: {global: 1, seq: 64}\nloss: {dot: bf16}\nprecision: {params: bf16}\n"
        "optimizer: {name: adafactor}\nhardware: {device: nvidia-h100, count: 1}\n",
        MODEL("hardware: {device: amd-mi300x, count: 4}\nremat: {policy: none}\n"),
    };
    int known = 0, asked = 0, freer = 0, all = sizeof texts / sizeof *texts;
    for (int i = 0; i < all; i++) {
        struct hb_spec spec = unit_spec(&u, texts[i]);
        struct hb_device device = unit_device(&u, &spec);
        struct hb_advice_list list;
        assert_true(hb_advise_find(&u.env, &spec, &device, &list));
        for (uint32_t k = 0; k < list.pair_count; k++) {
            known += check_pair(&list, &list.pairs[k]);
            assert_true(k == 0 || list.pairs[k].freed_bytes <= list.pairs[k - 1].freed_bytes);
        }
        freer += check_freer(&spec, &device, &list);
        for (uint32_t k = 0; k < list.knob_count; k++)
            asked += check_knob(texts[i], &device, &list, &list.knobs[k]);
        for (uint32_t k = 1; k < list.knob_count; k++)
            assert_true(list.knobs[k - 1].applies > list.knobs[k].applies ||
                        (list.knobs[k - 1].applies == list.knobs[k].applies &&
                         list.knobs[k - 1].freed_bytes >= list.knobs[k].freed_bytes));
    }
    assert_true(known > 20 && asked > 20 && freer > 2 && freer < all);
}

/* Peak and step of the text with what an advice says set in it. */
static void measure_with(const char *text, const struct hb_device *device, const char *words,
                         int64_t *bytes, int64_t *ns)
{
    struct hb_node *root;
    struct hb_spec spec;
    const char *end = strstr(words, ": ");
    assert_non_null(end);
    assert_true(hb_yaml_parse(u.env.arena, &u.diag, "test", text, strlen(text), &root));
    assert_true(set_all(root, hb_arena_strndup(u.env.arena, words, (size_t)(end - words))));
    assert_true(hb_schema_from_node(u.env.arena, &u.diag, root, HB_SOURCE_DIR, &spec));
    assert_true(hb_measure_both(u.env.arena, &u.diag, &spec, device, bytes, ns));
}

/* From whatever fits down to where nothing does: a step of at most half the time, within a budget
 * that is met to the byte; with less room it is no shorter. */
static void what_is_faster_fits(void **state)
{
    (void)state;
    static const char text[] =
        "model:\n  d_model: 256\n  vocab: 2048\n  blocks:\n"
        "    - {name: a, repeat: 4, attention: {heads: 2}, mlp: {d_ff: 512}}\n"
        "batch: {global: 64, seq: 4096, accumulate: 16}\nmesh: {fsdp: 4}\n"
        "hardware: {device: nvidia-h100, count: 4}\n";
    struct hb_spec spec = unit_spec(&u, text);
    struct hb_device device = unit_device(&u, &spec);
    int64_t bytes = INT64_MAX, base_bytes, base_ns, last_ns = 0;
    assert_true(hb_measure_both(u.env.arena, &u.diag, &spec, &device, &base_bytes, &base_ns));
    int found = 0;
    for (const char *words; (words = hb_advise_best_faster(&u.env, &spec, &device, bytes));) {
        int64_t most_bytes = bytes, ns;
        measure_with(text, &device, words, &bytes, &ns);
        assert_true(bytes <= most_bytes && ns <= base_ns / 2 && ns >= last_ns);
        assert_string_equal(hb_advise_best_faster(&u.env, &spec, &device, bytes), words);
        last_ns = ns;
        bytes--;
        found++;
    }
    assert_true(found > 2);
}

/* What is left of a budget; -1: the text is refused. */
static int64_t budget_with(const char *margin)
{
    enum { ALL = 1000 << 20 };
    struct hb_spec spec = {.plan = {.margin = margin, .confidence = 0.9}};
    struct hb_plan_ask ask = {.env = &u.env, .spec = &spec, .budget_bytes = ALL};
    struct hb_margin out;
    if (!hb_margin_apply(&ask, &out))
        return -1;
    assert_int_equal(ask.whole_bytes, ALL);
    assert_true((ask.confidence > 0) == (out.kind == HB_MARGIN_CONFIDENT));
    return ask.budget_bytes >> 20;
}

static void margins_are_bytes_or_parts(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",     "%",    "x%",   "5%%",  "5%x", "-1%",       "100%",
                                        "nan%", "101%", "5 %x", "NONE", "2XB", "confident "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (budget_with(wrong[i]) >= 0)
            fail_msg("'%s' is a margin", wrong[i]);
    assert_int_equal(budget_with("confident"), 1000);
    assert_int_equal(budget_with("none"), 1000);
    assert_int_equal(budget_with("0%"), 1000);
    assert_int_equal(budget_with("25%"), 750);
    assert_int_equal(budget_with("99%"), 10);
    assert_int_equal(budget_with("300MiB"), 700);
    assert_int_equal(budget_with("1000MiB"), 0);
    assert_int_equal(budget_with("2GiB"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pairs_free_more_than_their_knobs),
        TEST(what_is_faster_fits),
        TEST(margins_are_bytes_or_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
