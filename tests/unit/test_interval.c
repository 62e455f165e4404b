/* sim/engine/interval: ends and verdicts against a second count of the table's rows, and the laws
 * that a search relies on. */
#include "tests/unit/unit.h"

#include "base/yaml.h"
#include "models/schema.h"
#include "sim/engine/interval.h"

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

/* Inside of the table: how many rows of the widest group lie within the ends. */
static uint32_t count_within(const struct hb_interval *i, int64_t peak)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < hb_interval_table.count; k++) {
        double truth = (double)peak * hb_interval_table.rows[k].ratio_ppm / 1e6;
        n += truth >= (double)i->low_bytes - 1 && truth <= (double)i->high_bytes + 1;
    }
    return n;
}

static void the_table_is_sorted_and_dated(void **state)
{
    (void)state;
    const struct hb_interval_table *t = &hb_interval_table;
    assert_true(t->count > 0);
    for (uint32_t i = 1; i < t->count; i++)
        assert_true(t->rows[i - 1].ratio_ppm <= t->rows[i].ratio_ppm);
    assert_int_equal(strlen(t->first_date), strlen("2026-11-22"));
    assert_true(strcmp(t->first_date, t->last_date) <= 0);
}

static void ends_hold_their_share_of_the_records(void **state)
{
    (void)state;
    static const char *const devices[] = {"tpu-v5p", "nvidia-h100", "amd-mi300x"};
    const int64_t peak = INT64_C(50) << 30;
    for (int d = 0; d < 3; d++) {
        struct hb_spec spec = read_spec(devices[d], "");
        struct hb_interval narrow, wide;
        hb_interval_make(u.env.arena, &spec, 0.5, peak, &narrow);
        hb_interval_make(u.env.arena, &spec, 0.95, peak, &wide);
        assert_true(narrow.low_bytes <= peak && peak <= narrow.high_bytes);
        /* of few records an end can be the same one's in both */
        assert_true(wide.low_bytes <= narrow.low_bytes && narrow.high_bytes < wide.high_bytes);
        assert_true(narrow.records > 0 && narrow.confidence > 0.499 && narrow.confidence < 0.501);
        assert_true(wide.confidence <= 0.95 + 1e-9);
        /* of its group at least half, so of all rows no less than that */
        assert_true(count_within(&narrow, peak) * 2 >= narrow.records - 1);
        assert_true(count_within(&wide, peak) >= count_within(&narrow, peak));
        assert_true(*wide.like != '\0');
    }
}

/* More than any records can tell: what the widest of groups tells, and how much that is. */
static void too_much_is_asked_of_the_widest(void **state)
{
    (void)state;
    struct hb_interval usual, most;
    struct hb_spec spec = read_spec("tpu-v5p", "");
    hb_interval_make(u.env.arena, &spec, 0.9, INT64_C(1) << 33, &usual);
    hb_interval_make(u.env.arena, &spec, 0.999999, INT64_C(1) << 33, &most);
    assert_true(most.confidence > 0.95 && most.confidence < 0.999999);
    assert_true(most.records >= usual.records);
    assert_true(most.low_bytes <= usual.low_bytes && most.high_bytes > usual.high_bytes);
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
        assert_int_equal(hb_interval_most_peak(&spec, 0.95, INT64_MAX), INT64_MAX);
    }
}

/* What is known to be hard does not widen what is usual. */
static void the_usual_and_the_hard_are_apart(void **state)
{
    (void)state;
    static const char *const hard[] = {"stack: {form: nested}\n", "optimizer: {name: muon}\n",
                                       "sharding: {activation_constraints: false}\n"};
    struct hb_spec usual = read_layers(32, "nvidia-h100", "");
    uint32_t kind = hb_interval_kind(&usual);
    struct hb_interval i, other;
    hb_interval_make(u.env.arena, &usual, 0.95, 1 << 30, &i);
    assert_non_null(strstr(i.like, "usual dense steps"));
    for (int k = 0; k < 3; k++) {
        struct hb_spec spec = read_layers(32, "nvidia-h100", hard[k]);
        assert_true(hb_interval_kind(&spec) != kind);
        hb_interval_make(u.env.arena, &spec, 0.95, 1 << 30, &other);
        assert_true(other.high_bytes - other.low_bytes > i.high_bytes - i.low_bytes);
    }
    struct hb_spec shallow = read_layers(15, "nvidia-h100", "");
    struct hb_spec deep = read_layers(16, "nvidia-h100", "");
    struct hb_spec clipped = read_layers(64, "nvidia-h100", "optimizer: {clip: true}\n");
    assert_true(hb_interval_kind(&shallow) != kind);
    assert_true(hb_interval_kind(&deep) == kind);
    assert_true(hb_interval_kind(&clipped) == kind);
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
    static const char *const hard[] = {"mesh={fsdp: 2, sequence: 2}", "mesh={fsdp: 1, pipeline: 2}",
                                       "stack.form=loop", "optimizer.offload=pinned_host",
                                       "optimizer.params_offload=pinned_host"};
    struct hb_spec usual = read_layers(32, "nvidia-h100", "");
    struct hb_spec experts = set_one("model.blocks[0]={repeat: 32, attention: {heads: 2}, moe: "
                                     "{experts: 4, top_k: 1, d_ff: 128}}");
    uint32_t kind = hb_interval_kind(&usual), other = hb_interval_kind(&experts);
    assert_true(kind != other);
    for (size_t i = 0; i < sizeof rare / sizeof rare[0]; i++) {
        struct hb_spec spec = set_one(rare[i]);
        struct hb_spec first = set_one(rare[0]);
        assert_true(hb_interval_kind(&spec) != kind && hb_interval_kind(&spec) != other);
        assert_true(hb_interval_kind(&spec) == hb_interval_kind(&first));
    }
    for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
        struct hb_spec spec = set_one(hard[i]);
        struct hb_spec first = set_one(hard[0]);
        assert_true(hb_interval_kind(&spec) != kind && hb_interval_kind(&spec) != other);
        assert_true(hb_interval_kind(&spec) == hb_interval_kind(&first));
    }
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
        cmocka_unit_test_setup_teardown(the_table_is_sorted_and_dated, start, end),
        cmocka_unit_test_setup_teardown(ends_hold_their_share_of_the_records, start, end),
        cmocka_unit_test_setup_teardown(too_much_is_asked_of_the_widest, start, end),
        cmocka_unit_test_setup_teardown(a_search_may_exclude_by_most_peak, start, end),
        cmocka_unit_test_setup_teardown(the_usual_and_the_hard_are_apart, start, end),
        cmocka_unit_test_setup_teardown(each_knob_tells, start, end),
        cmocka_unit_test_setup_teardown(verdicts_have_three_words, start, end),
        cmocka_unit_test_setup_teardown(torch_has_none, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
