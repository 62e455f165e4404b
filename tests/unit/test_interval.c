/* sim/engine/interval: ends and verdicts against a second count of the table's scores, the laws
 * that a search relies on, and how a table is made. */
#include "tests/unit/each.h"

#include <math.h>

#include "base/yaml.h"
#include "models/schema.h"
#include "sim/engine/interval_fit.h"

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

static const struct hb_interval_family *family_of(const struct hb_spec *spec)
{
    return &hb_interval_table.families[hb_interval_family_of(hb_interval_kind(spec))];
}

static struct hb_interval make(const struct hb_spec *spec, double confidence, int64_t peak)
{
    struct hb_interval i;
    hb_interval_make(u.env.arena, spec, confidence, peak, &i);
    return i;
}

/* Scores beyond either end, counted one by one. */
static void count_outside(const struct hb_spec *spec, const struct hb_interval *i, int64_t peak,
                          uint32_t *below, uint32_t *above)
{
    const struct hb_interval_family *f = family_of(spec);
    double spread = hb_interval_spread(f, hb_interval_kind(spec));
    *below = *above = 0;
    for (uint32_t k = 0; k < f->count; k++) {
        double truth = (double)peak * (1 + spread * f->scores_ppm[k] * 1e-6);
        *below += truth < (double)i->low_bytes - 1;
        *above += truth > (double)i->high_bytes + 1;
    }
}

static void the_table_is_sorted_and_dated(void **state)
{
    (void)state;
    const struct hb_interval_table *t = &hb_interval_table;
    for (int k = 0; k < HB_INTERVAL_FAMILIES; k++) {
        const struct hb_interval_family *f = &t->families[k];
        assert_true(f->count > 100 && f->spread_ppm > 0);
        for (uint32_t i = 1; i < f->count; i++)
            assert_true(f->scores_ppm[i - 1] <= f->scores_ppm[i]);
        for (int fact = 0; fact < HB_FACT_COUNT; fact++)
            for (int v = 0; v < HB_INTERVAL_VALUES; v++)
                assert_in_range(f->factors_ppm[fact][v], 200000, 5000000);
    }
    assert_int_equal(strlen(t->first_date), strlen("2026-11-22"));
    assert_true(strcmp(t->first_date, t->last_date) <= 0);
}

/* A third of what is outside is below. */
static void ends_hold_their_share_of_the_records(void **state)
{
    (void)state;
    static const char *const devices[] = {"tpu-v5p", "nvidia-h100", "amd-mi300x"};
    static const double sures[] = {0.5, 0.8, 0.95};
    const int64_t peak = INT64_C(50) << 30;
    for (int d = 0; d < 3; d++) {
        struct hb_spec spec = read_spec(devices[d], "");
        struct hb_interval before = {.low_bytes = peak, .high_bytes = peak};
        for (int k = 0; k < 3; k++) {
            struct hb_interval i = make(&spec, sures[k], peak);
            uint32_t below, above;
            assert_true(i.low_bytes < before.low_bytes && before.high_bytes < i.high_bytes);
            assert_true(i.confidence > sures[k] - 1e-9 && i.confidence < sures[k] + 1e-9);
            assert_int_equal(i.records, family_of(&spec)->count);
            count_outside(&spec, &i, peak, &below, &above);
            double outside = (1 - sures[k]) * (i.records + 1) + 1e-9;
            assert_true(below + above + 2 <= outside && below + above + 3 > outside);
            assert_true(above >= 2 * below && above <= 2 * below + 3);
            before = i;
        }
    }
}

/* With few records less is promised: of n, two may lie outside. */
static void what_is_not_reached_is_said(void **state)
{
    (void)state;
    struct hb_spec spec = read_spec("nvidia-h100", "");
    struct hb_interval i = make(&spec, 0.9999, INT64_C(1) << 40);
    const struct hb_interval_family *f = family_of(&spec);
    double reached = 1 - 2 / (f->count + 1.0);
    assert_true(i.confidence > reached - 1e-9 && i.confidence < reached + 1e-9);
    uint32_t below, above;
    count_outside(&spec, &i, INT64_C(1) << 40, &below, &above);
    assert_int_equal(below + above, 0);
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
            assert_true(hb_interval_high(&spec, 0.95, most - 2) <= budget);
            for (int64_t peak = most + 2; peak < budget; peak += budget / 50 + 1)
                assert_true(hb_interval_high(&spec, 0.95, peak) > budget);
        }
        for (int64_t peak = 3; peak < INT64_C(1) << 52; peak += peak / 3)
            assert_true(hb_interval_most_peak(&spec, 0.95, hb_interval_high(&spec, 0.95, peak)) >=
                        peak);
        assert_int_equal(hb_interval_most_peak(&spec, 0.95, INT64_MAX), INT64_MAX);
    }
}

/* What is not told as beyond 2^62 is below it, to the last. */
static void ends_beyond_the_range_are_told(void **state)
{
    (void)state;
    struct hb_spec spec = read_spec("tpu-v5p", "");
    int64_t low = 1, high = INT64_C(1) << 62;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (hb_interval_high(&spec, 0.95, middle) == INT64_MAX)
            high = middle;
        else
            low = middle;
    }
    assert_true(low > INT64_C(1) << 60);
    assert_true(hb_interval_high(&spec, 0.95, low) < INT64_C(1) << 62);
}

static uint32_t value_of(const struct hb_spec *spec, enum hb_interval_fact fact)
{
    return hb_interval_value(hb_interval_kind(spec), fact);
}

static void kinds_are_known_by_their_facts(void **state)
{
    (void)state;
    static const struct {
        const char *set;
        enum hb_interval_fact fact;
    } rows[] = {{"optimizer.offload=pinned_host", HB_FACT_HOST},
                {"optimizer.params_offload=pinned_host", HB_FACT_HOST},
                {"optimizer.ema=pinned_host", HB_FACT_HOST},
                {"mesh={fsdp: 2, sequence: 2}", HB_FACT_FORM},
                {"mesh={fsdp: 1, pipeline: 2}", HB_FACT_FORM},
                {"stack.form=loop", HB_FACT_FORM},
                {"optimizer.name=lion", HB_FACT_KNOBS},
                {"model.blocks[0].attention.kernel=naive", HB_FACT_KNOBS},
                {"sharding.activation_constraints=false", HB_FACT_FREE}};
    static const char *const chips[] = {"tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e"};
    struct hb_spec usual = read_layers(32, "nvidia-h100", "");
    struct hb_spec shallow = read_layers(15, "nvidia-h100", "");
    struct hb_spec deep = read_layers(16, "nvidia-h100", "");
    assert_int_equal(value_of(&shallow, HB_FACT_LAYERS), 1);
    assert_int_equal(value_of(&deep, HB_FACT_LAYERS), 0);
    assert_int_equal(hb_interval_kind(&deep), hb_interval_kind(&usual));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hb_spec spec = set_one(rows[i].set);
        assert_int_equal(value_of(&usual, rows[i].fact), 0);
        for (int k = HB_FACT_LAYERS; k < HB_FACT_SEQUENCES; k++)
            assert_int_equal(value_of(&spec, (enum hb_interval_fact)k),
                             k == (int)rows[i].fact ? 1 : 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        struct hb_spec spec = read_layers(32, chips[i], "");
        assert_int_equal(value_of(&spec, HB_FACT_CHIP), i);
        assert_int_equal(hb_interval_family_of(hb_interval_kind(&spec)), 0);
    }
    struct hb_spec amd = read_layers(32, "amd-mi300x", "");
    assert_int_equal(hb_interval_family_of(hb_interval_kind(&usual)), 1);
    assert_int_equal(hb_interval_family_of(hb_interval_kind(&amd)), 2);
    assert_string_equal(make(&amd, 0.95, 1 << 30).like, "xla-gpu on AMD, dense");
}

static void experts_and_sequences_tell(void **state)
{
    (void)state;
    static const char *const experts[] = {"ragged", "einsum"};
    for (uint32_t i = 0; i < 2; i++) {
        struct hb_spec spec = set_one(hb_arena_printf(
            u.env.arena,
            "model.blocks[0]={repeat: 32, attention: {heads: 2}, moe: {experts: 4, top_k: 1, d_ff: "
            "128, dispatch: %s}}",
            experts[i]));
        assert_int_equal(value_of(&spec, HB_FACT_EXPERTS), i + 1);
        assert_string_equal(make(&spec, 0.95, 1 << 30).like, "xla-gpu on NVIDIA, experts");
    }
    static const struct {
        const char *batch;
        uint32_t value;
    } rows[] = {{"batch={global: 2, seq: 128}", 0},
                {"mesh={fsdp: 1, expert: 4}", 1},
                {"batch={global: 4, seq: 128}", 1},
                {"batch={global: 6, seq: 128}", 1},
                {"batch={global: 8, seq: 128}", 2},
                {"batch={global: 64, seq: 128}", 2},
                {"batch={global: 8, seq: 128, accumulate: 2}", 1},
                {"batch={global: 8, seq: 128, accumulate: 4}", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hb_spec spec = set_one(rows[i].batch);
        assert_int_equal(value_of(&spec, HB_FACT_SEQUENCES), rows[i].value);
    }
}

/* --- how a table is made --- */

enum { DENSE = 0x000, EXPERT = 0x10, CUDA = 1 };

static struct hb_interval_error *errors_of(uint32_t count, double dense, double expert)
{
    struct hb_interval_error *e = hb_arena_alloc(u.env.arena, count, sizeof *e);
    for (uint32_t i = 0; i < count; i++) /* a quarter are experts, in all folds */
        e[i] = i / 8 % 4 ? (struct hb_interval_error){DENSE, i % 2 ? dense : -dense}
                         : (struct hb_interval_error){EXPERT, i % 2 ? expert : -expert};
    return e;
}

/* Spreads are the mean errors of those alike, but for what pulls them together. */
static void factors_are_what_its_records_are_off_by(void **state)
{
    (void)state;
    struct hb_interval_family f;
    hb_interval_fit(u.env.arena, errors_of(3200, 0.01, 0.05), 3200, 0, &f);
    assert_int_equal(f.count, 3200);
    assert_int_equal(f.spread_ppm, 23000); /* 3/4 of 0.013, 1/4 of 0.053 */
    assert_true(fabs(hb_interval_spread(&f, DENSE) - 0.013) < 2e-4);
    assert_true(fabs(hb_interval_spread(&f, EXPERT) - 0.053) < 2e-4);
    /* half of the scores on each side, all of them near the error in spreads */
    for (uint32_t i = 0; i < f.count; i++)
        assert_in_range(abs(f.scores_ppm[i]), 740000, 960000);
    assert_true(f.scores_ppm[1599] < 0 && f.scores_ppm[1600] > 0);
    /* of few records each is nearly a usual one */
    hb_interval_fit(u.env.arena, errors_of(32, 0.01, 0.05), 32, 0, &f);
    assert_true(hb_interval_spread(&f, EXPERT) > 0.03 && hb_interval_spread(&f, EXPERT) < 0.05);
}

/* A score does not know its own record: of a kind that no other has it is in usual spreads. */
static void scores_are_of_those_left_out(void **state)
{
    (void)state;
    struct hb_interval_error errors[33];
    for (int i = 0; i < 33; i++)
        errors[i] = (struct hb_interval_error){DENSE, 0.017};
    errors[32] = (struct hb_interval_error){EXPERT, 0.1};
    struct hb_interval_family f;
    hb_interval_fit(u.env.arena, errors, 33, 0, &f);
    assert_true(f.factors_ppm[HB_FACT_EXPERTS][1] > 1200000);
    assert_int_equal(f.scores_ppm[32], 5000000); /* 0.1 of 0.017 + 0.003 */
}

static void families_are_apart_and_errors_bounded(void **state)
{
    (void)state;
    const struct hb_interval_error errors[] = {
        {DENSE, 0.007}, {DENSE | CUDA, 1e9}, {DENSE, -0.007}, {DENSE | 2, 0.4}};
    struct hb_interval_family f;
    hb_interval_fit(u.env.arena, errors, 4, 0, &f);
    assert_int_equal(f.count, 2);
    assert_int_equal(f.spread_ppm, 10000);
    assert_int_equal(f.scores_ppm[0], -700000);
    assert_int_equal(f.scores_ppm[1], 700000);
    hb_interval_fit(u.env.arena, errors, 4, CUDA, &f);
    assert_int_equal(f.count, 1);
    assert_int_equal(f.spread_ppm, 153000);
    assert_int_equal(f.scores_ppm[0], 2000000000); /* off by more is as bad */
    hb_interval_fit(u.env.arena, errors, 0, 0, &f);
    assert_int_equal(f.count, 0);
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
    struct hb_interval i;
    hb_interval_make(u.env.arena, &spec, 0.95, 12345, &i);
    assert_int_equal(i.records, 0);
    assert_int_equal(i.low_bytes, 12345);
    assert_int_equal(i.high_bytes, 12345);
    assert_int_equal(hb_interval_most_peak(&spec, 0.95, 777), 777);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_table_is_sorted_and_dated),     TEST(ends_hold_their_share_of_the_records),
        TEST(a_search_may_exclude_by_most_peak), TEST(ends_beyond_the_range_are_told),
        TEST(what_is_not_reached_is_said),       TEST(kinds_are_known_by_their_facts),
        TEST(experts_and_sequences_tell),        TEST(factors_are_what_its_records_are_off_by),
        TEST(scores_are_of_those_left_out),      TEST(families_are_apart_and_errors_bounded),
        TEST(verdicts_have_three_words),         TEST(torch_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
