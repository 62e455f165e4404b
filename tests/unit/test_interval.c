/* sim/engine/interval: ends and verdicts against a second count of the table's scores, the laws
 * that a search relies on, and how a table is made. */
#include "tests/unit/unit.h"

#include <math.h>

#include "base/yaml.h"
#include "models/schema.h"
#include "sim/engine/interval_fit.h"
#include "sim/engine/run.h"

static struct unit u;

static int start(void **state)
{
    (void)state;
    unit_start(&u);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unit_end(&u);
    return 0;
}

static struct hb_spec read_layers(int layers, const char *device, const char *more)
{
    const char *text = hb_arena_printf(u.env.arena,
                                       "model:\n"
                                       "  d_model: 128\n"
                                       "  vocab: 512\n"
                                       "  blocks:\n"
                                       "    - name: block\n"
                                       "      repeat: %d\n"
                                       "      attention: {heads: 2}\n"
                                       "      mlp: {d_ff: 256}\n"
                                       "batch: {global: 8, seq: 128}\n"
                                       "mesh: {fsdp: 2}\n"
                                       "hardware: {device: %s}\n%s",
                                       layers, device, more);
    struct hb_spec spec;
    struct hb_node *root;
    assert_true(hb_yaml_parse(u.env.arena, &u.diag, "test", text, strlen(text), &root));
    assert_true(hb_schema_from_node(u.env.arena, &u.diag, root, HB_SOURCE_DIR, &spec));
    return spec;
}

/* 32 layers with one key set. */
static struct hb_spec set_one(const char *set)
{
    const char *text = "model: {d_model: 128, vocab: 512, blocks: [{repeat: 32, attention: {heads: "
                       "2}, mlp: {d_ff: 256}}]}\n"
                       "batch: {global: 8, seq: 128}\n"
                       "mesh: {fsdp: 2}\n"
                       "hardware: {device: nvidia-h100}\n";
    struct hb_spec spec;
    struct hb_node *root;
    assert_true(hb_yaml_parse(u.env.arena, &u.diag, "test", text, strlen(text), &root));
    assert_true(hb_schema_set(u.env.arena, &u.diag, root, set));
    if (!hb_schema_from_node(u.env.arena, &u.diag, root, HB_SOURCE_DIR, &spec))
        fail_msg("%s: %s", set, u.diag.entries[0].text);
    return spec;
}

static struct hb_spec read_spec(const char *device, const char *more)
{
    return read_layers(3, device, more);
}

/* Of which a part is what a layer's pass alone needs, half of it gathered. */
static struct hb_memory memory_of(int64_t peak, double working)
{
    struct hb_memory m = {.peak_bytes = peak};
    m.category_bytes[HB_CAT_WORKING] = (int64_t)((double)peak * working / 2);
    m.category_bytes[HB_CAT_COMMUNICATION] = m.category_bytes[HB_CAT_WORKING];
    return m;
}

static struct hb_interval make(const struct hb_spec *spec, double confidence, int64_t peak,
                               double working)
{
    struct hb_interval i;
    struct hb_memory m = memory_of(peak, working);
    hb_interval_make(u.env.arena, spec, confidence, &m, &i);
    return i;
}

static int64_t high_of(const struct hb_spec *spec, int64_t peak, double working)
{
    struct hb_memory m = memory_of(peak, working);
    return hb_interval_high(spec, 0.95, &m);
}

static void the_table_is_sorted_and_dated(void **state)
{
    (void)state;
    const struct hb_interval_table *t = &hb_interval_table;
    assert_true(t->count > 0 && t->scale_count > 0 && t->usual_ppm > 0);
    for (uint32_t i = 1; i < t->count; i++)
        assert_true(t->scores_ppm[i - 1] <= t->scores_ppm[i]);
    assert_int_equal(t->scales[0].level, 0);
    for (uint32_t i = 1; i < t->scale_count; i++)
        assert_true(t->scales[i - 1].level < t->scales[i].level ||
                    (t->scales[i - 1].level == t->scales[i].level &&
                     t->scales[i - 1].kind < t->scales[i].kind));
    assert_int_equal(strlen(t->first_date), strlen("2026-11-22"));
    assert_true(strcmp(t->first_date, t->last_date) <= 0);
}

/* How many scores lie within the ends, counted one by one. */
static uint32_t count_within(const struct hb_spec *spec, const struct hb_interval *i, int64_t peak)
{
    const struct hb_interval_table *t = &hb_interval_table;
    struct hb_memory m = memory_of(peak, 0.2);
    double spread = hb_interval_loose(&m) *
                    hb_interval_scale(t->scales, t->scale_count, hb_interval_kind(spec));
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->count; k++) {
        double truth = (double)peak + t->scores_ppm[k] * 1e-6 * spread;
        n += truth >= (double)i->low_bytes - 1 && truth <= (double)i->high_bytes + 1;
    }
    return n;
}

static void ends_hold_their_share_of_the_records(void **state)
{
    (void)state;
    static const char *const devices[] = {"tpu-v5p", "nvidia-h100", "amd-mi300x"};
    const int64_t peak = INT64_C(50) << 30;
    for (int d = 0; d < 3; d++) {
        struct hb_spec spec = read_spec(devices[d], "");
        struct hb_interval narrow = make(&spec, 0.5, peak, 0.2);
        struct hb_interval wide = make(&spec, 0.95, peak, 0.2);
        assert_true(wide.low_bytes < narrow.low_bytes && narrow.low_bytes < peak);
        assert_true(peak < narrow.high_bytes && narrow.high_bytes < wide.high_bytes);
        assert_true(narrow.confidence > 0.499 && narrow.confidence < 0.501);
        assert_true(wide.confidence > 0.949 && wide.confidence < 0.951);
        assert_int_equal(wide.records, hb_interval_table.count);
        assert_true(count_within(&spec, &narrow, peak) * 2 >= narrow.records);
        assert_true(count_within(&spec, &wide, peak) * 20 >= wide.records * 19);
        assert_true(count_within(&spec, &wide, peak) * 100 <= wide.records * 96);
    }
}

/* A quarter of what lies outside is below. */
static void more_lies_above_than_below(void **state)
{
    (void)state;
    const struct hb_interval_table *t = &hb_interval_table;
    struct hb_spec spec = read_spec("nvidia-h100", "");
    const int64_t peak = INT64_C(1) << 40;
    struct hb_interval i = make(&spec, 0.9, peak, 0);
    struct hb_memory m = memory_of(peak, 0);
    double spread = hb_interval_loose(&m) *
                    hb_interval_scale(t->scales, t->scale_count, hb_interval_kind(&spec));
    uint32_t below = 0, above = 0;
    for (uint32_t k = 0; k < t->count; k++) {
        double truth = (double)peak + t->scores_ppm[k] * 1e-6 * spread;
        below += truth < (double)i.low_bytes - 1;
        above += truth > (double)i.high_bytes + 1;
    }
    assert_true(below * 10 >= above * 3 - 20 && below * 3 <= above);
}

static void a_search_may_exclude_by_most_peak(void **state)
{
    (void)state;
    static const char *const mores[] = {"", "optimizer: {name: adamw, offload: pinned_host}\n",
                                        "remat: {policy: names, offload: [q]}\n",
                                        "stack: {form: nested}\n", "loss: {chunks: 4}\n"};
    for (int i = 0; i < 5; i++) {
        struct hb_spec spec = read_spec("tpu-v5p", mores[i]);
        for (int64_t budget = 1000003; budget < INT64_C(1) << 40; budget = budget * 3 + 1) {
            int64_t most = hb_interval_most_peak(&spec, 0.95, budget);
            assert_true(most <= budget);
            assert_true(high_of(&spec, most - 2, 0) <= budget);
            for (int64_t peak = most + 2; peak < budget; peak += budget / 50 + 1) {
                assert_true(high_of(&spec, peak, 0) > budget);
                assert_true(high_of(&spec, peak, 0.4) >= high_of(&spec, peak, 0.1));
            }
        }
        assert_int_equal(hb_interval_most_peak(&spec, 0.95, INT64_MAX), INT64_MAX);
    }
}

/* What is working widens, whatever the kind; and the width is told in a word with its reason. */
static void what_works_widens(void **state)
{
    (void)state;
    struct hb_spec spec = read_layers(32, "nvidia-h100", "");
    struct hb_interval still = make(&spec, 0.95, 1 << 30, 0.02);
    struct hb_interval busy = make(&spec, 0.95, 1 << 30, 0.6);
    assert_true(busy.high_bytes > still.high_bytes && busy.low_bytes < still.low_bytes);
    assert_string_equal(still.width, "narrow");
    assert_string_equal(still.like, "xla-gpu on NVIDIA, dense, 2 % working");
    assert_string_equal(busy.like, "xla-gpu on NVIDIA, dense, 60 % working");
    assert_string_not_equal(busy.width, "narrow");
    struct hb_spec tpu = read_layers(32, "tpu-v6e", "");
    assert_string_equal(make(&tpu, 0.95, 1 << 30, 0.6).width, "wide");
}

static void kinds_are_told_in_words(void **state)
{
    (void)state;
    struct hb_spec spec = read_layers(15, "tpu-v5e",
                                      "stack: {form: nested}\n"
                                      "optimizer: {name: muon}\n");
    assert_string_equal(hb_interval_kind_words(u.env.arena, hb_interval_kind(&spec)),
                        "xla-tpu, v5e, dense, hard form, few layers, rare knobs");
}

/* Each alone makes a step another kind; of two groups, what is rare and what is hard. */
static void each_knob_tells(void **state)
{
    (void)state;
    static const char *const rare[] = {"optimizer.name=lion",
                                       "optimizer.moments=[bf16, f32]",
                                       "optimizer.moments=[f32, bf16]",
                                       "optimizer.ema=device",
                                       "step.cast=upfront",
                                       "step.donate=false",
                                       "step.nan_to_num=true",
                                       "precision.grads=bf16",
                                       "embedding.lookup=onehot",
                                       "model.blocks[0].attention.kernel=naive"};
    static const char *const hard[] = {"mesh={fsdp: 2, sequence: 2}",
                                       "mesh={fsdp: 1, pipeline: 2}",
                                       "stack.form=loop",
                                       "optimizer.offload=pinned_host",
                                       "optimizer.params_offload=pinned_host",
                                       "sharding.activation_constraints=false"};
    struct hb_spec usual = read_layers(32, "nvidia-h100", "");
    struct hb_spec shallow = read_layers(15, "nvidia-h100", "");
    struct hb_spec deep = read_layers(16, "nvidia-h100", "");
    struct hb_spec experts = set_one("model.blocks[0]={repeat: 32, attention: {heads: 2}, moe: "
                                     "{experts: 4, top_k: 1, d_ff: 128}}");
    uint32_t kinds[] = {hb_interval_kind(&usual), hb_interval_kind(&experts),
                        hb_interval_kind(&shallow), 0, 0};
    for (size_t i = 0; i < sizeof rare / sizeof rare[0]; i++) {
        struct hb_spec spec = set_one(rare[i]);
        assert_true(i == 0 || hb_interval_kind(&spec) == kinds[3]);
        kinds[3] = hb_interval_kind(&spec);
    }
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        struct hb_spec spec = set_one(hard[i]);
        assert_true(i == 0 || hb_interval_kind(&spec) == kinds[4]);
        kinds[4] = hb_interval_kind(&spec);
    }
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < i; k++)
            assert_true(kinds[i] != kinds[k]);
    assert_true(hb_interval_kind(&deep) == kinds[0]);
}

/* --- how a table is made --- */

enum { SOFT = 0x000000, EXPERT = 0x000100, RARE_KIND = 0x100000 };

/* Means of errors in parts of what is loose, each pulled to the wider kind's by 40 records. */
static void scales_are_pulled_to_wider_kinds(void **state)
{
    (void)state;
    struct hb_interval_error golden[50];
    for (int i = 0; i < 50; i++)
        golden[i] = (struct hb_interval_error){i < 40 ? SOFT : EXPERT, i < 40 ? 0.01 : -0.09, 0.5};
    struct hb_interval_fit f;
    hb_interval_fit(u.env.arena, golden, 50, NULL, 0, &f);
    /* 40 of 0.02 and 10 of 0.18, and 0.02 that is always added */
    double all = (40 * 0.04 + 10 * 0.20) / 50;
    double soft = all, expert = all;
    for (int level = 3; level <= HB_INTERVAL_LEVELS; level++) {
        soft = (40 * 0.04 + 40 * soft) / 80;
        expert = (10 * 0.20 + 40 * expert) / 50;
    }
    assert_true(fabs(hb_interval_scale(f.scales, f.scale_count, SOFT) - soft) < 1e-5);
    assert_true(fabs(hb_interval_scale(f.scales, f.scale_count, EXPERT) - expert) < 1e-5);
    /* of rare knobs there is none: what is alike but for them counts */
    assert_true(fabs(hb_interval_scale(f.scales, f.scale_count, RARE_KIND) -
                     f.scales[f.scale_count - 4].scale_ppm * 1e-6) < 1e-9);
    assert_int_equal(f.scales[0].records, 50);
}

static void scores_are_errors_in_spreads(void **state)
{
    (void)state;
    const struct hb_interval_error golden = {SOFT, 0.03, 0.5}; /* a scale of 0.06 + 0.02 */
    const struct hb_interval_error unseen[] = {{SOFT, 0.08, 0.5}, {SOFT, -0.04, 1}, {SOFT, 1e9, 1}};
    struct hb_interval_fit f;
    hb_interval_fit(u.env.arena, &golden, 1, unseen, 3, &f);
    assert_int_equal(f.count, 3);
    assert_int_equal(f.scores_ppm[0], -500000);
    assert_int_equal(f.scores_ppm[1], 2000000);
    assert_int_equal(f.scores_ppm[2], 2000000000); /* off by more is as bad */
    assert_int_equal(f.usual_ppm, 80000);
}

static void verdicts_have_three_words(void **state)
{
    (void)state;
    struct hb_interval i = {.low_bytes = 90, .high_bytes = 110};
    assert_string_equal(hb_verdict_name(hb_interval_verdict(&i, 110)), "fits");
    assert_string_equal(hb_verdict_name(hb_interval_verdict(&i, 109)), "tight");
    assert_string_equal(hb_verdict_name(hb_interval_verdict(&i, 90)), "tight");
    assert_string_equal(hb_verdict_name(hb_interval_verdict(&i, 89)), "does not fit");
}

static void torch_has_none(void **state)
{
    (void)state;
    struct hb_spec spec = read_spec("nvidia-h100", "compiler: torch\n");
    struct hb_interval i = make(&spec, 0.95, 12345, 0.5);
    assert_int_equal(i.records, 0);
    assert_int_equal(i.low_bytes, 12345);
    assert_int_equal(i.high_bytes, 12345);
    assert_int_equal(hb_interval_most_peak(&spec, 0.95, 777), 777);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_table_is_sorted_and_dated, start, end),
        cmocka_unit_test_setup_teardown(ends_hold_their_share_of_the_records, start, end),
        cmocka_unit_test_setup_teardown(a_search_may_exclude_by_most_peak, start, end),
        cmocka_unit_test_setup_teardown(more_lies_above_than_below, start, end),
        cmocka_unit_test_setup_teardown(what_works_widens, start, end),
        cmocka_unit_test_setup_teardown(kinds_are_told_in_words, start, end),
        cmocka_unit_test_setup_teardown(scales_are_pulled_to_wider_kinds, start, end),
        cmocka_unit_test_setup_teardown(scores_are_errors_in_spreads, start, end),
        cmocka_unit_test_setup_teardown(each_knob_tells, start, end),
        cmocka_unit_test_setup_teardown(verdicts_have_three_words, start, end),
        cmocka_unit_test_setup_teardown(torch_has_none, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
