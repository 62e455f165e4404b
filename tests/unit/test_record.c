/* models/record: lines of measured records as they are read, and what is wrong with others. */
#include "tests/unit/each.h"

#include "base/json.h"
#include "models/record.h"

#define CONFIG                                                                                     \
    "\"config\":{\"model\":{\"d_model\":64,\"vocab\":100,\"blocks\":[{\"repeat\":2,"               \
    "\"attention\":{\"heads\":2},\"mlp\":{\"d_ff\":128}}]}}"

static bool read_text(const char *text, struct hb_record *out)
{
    struct hb_node *node;
    struct hb_loc at = {"records.jsonl", 1, 1};
    assert_true(hb_json_parse(u.env.arena, &u.diag, at, text, strlen(text), &node));
    return hb_record_read(u.env.arena, &u.diag, node, HB_SOURCE_DIR, out);
}

static void figures_are_read(void **state)
{
    (void)state;
    struct hb_record r;
    assert_true(read_text("{\"id\":\"a\",\"group\":\"g/h\"," CONFIG
                          ",\"measured\":{\"kind\":\"xla_total\",\"argument_bytes\":1,"
                          "\"output_bytes\":2,\"alias_bytes\":3,\"temp_bytes\":4,\"host_bytes\":5,"
                          "\"peak_bytes\":9007199254740993,\"fits\":false,\"step_seconds\":0.25}}",
                          &r));
    assert_string_equal(r.id, "a");
    assert_string_equal(r.group, "g/h");
    assert_string_equal(r.kind, "xla_total");
    assert_int_equal(r.argument_bytes, 1);
    assert_int_equal(r.output_bytes, 2);
    assert_int_equal(r.alias_bytes, 3);
    assert_int_equal(r.temp_bytes, 4);
    assert_int_equal(r.host_bytes, 5);
    assert_true(r.peak_bytes == INT64_C(9007199254740993)); /* 2^53 + 1: never a double */
    assert_int_equal(r.fits, 0);
    assert_true(r.step_seconds > 0.249 && r.step_seconds < 0.251);
    assert_false(r.rematerialised);
    assert_int_equal(r.spec.model.d_model, 64);
    assert_int_equal(r.spec.model.blocks[0].repeat, 2);
}

static void absent_figures_are_minus_one(void **state)
{
    (void)state;
    struct hb_record r;
    assert_true(read_text("{\"id\":\"a\"," CONFIG
                          ",\"measured\":{\"kind\":\"xla_total\",\"host_bytes\":null,"
                          "\"peak_bytes\":7,\"fits\":null,\"step_seconds\":null}}",
                          &r));
    assert_int_equal(r.argument_bytes, -1);
    assert_int_equal(r.host_bytes, -1);
    assert_int_equal(r.fits, -1);
    assert_true(r.step_seconds >= 0 && r.step_seconds <= 0);
    assert_string_equal(r.group, "");
    assert_true(read_text("{\"id\":\"a\"," CONFIG ",\"measured\":{\"kind\":\"speed\","
                          "\"peak_bytes\":null,\"step_seconds\":2}}",
                          &r));
    assert_int_equal(r.peak_bytes, -1);
    assert_false(r.verdict);
    assert_true(read_text("{\"id\":\"a\"," CONFIG ",\"measured\":{\"kind\":\"verdict\","
                          "\"fits\":false}}",
                          &r));
    assert_true(r.verdict);
    assert_int_equal(r.fits, 0);
}

static void a_note_tells_of_rematerialisation(void **state)
{
    (void)state;
    struct hb_record r;
    assert_true(read_text("{\"id\":\"a\"," CONFIG ",\"measured\":{\"peak_bytes\":7},"
                          "\"note\":\"the compiler rematerialised by itself to fit\"}",
                          &r));
    assert_true(r.rematerialised);
}

/* torchtitan wrapped the root until mid 2025: where no key says it, versions do. */
static void versions_tell_the_units(void **state)
{
    (void)state;
    static const struct {
        const char *runtime;
        const char *version;
        bool root;
    } cases[] = {
        {"", "torch 1963fc8 (2024-12-23)", true},
        {"", "torchtitan PR #778 (2025-01)", true},
        {"", "torchao 0.10.0; torchtitan 0.0.2", true},
        {"", "2025-09-10", false},
        {"", "torch 2.8.0a0", false},
        {"", "20-12", false},
        {"", "2025-07-01", true},
        {"", "2025-08-01", false},
        {",\"wrap\":\"split\"", "2024-12-23", false},
        {",\"wrap\":\"root\"", "2025-09-10", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hb_record r;
        const char *text = hb_arena_printf(
            u.env.arena,
            "{\"id\":\"a\",\"versions\":{\"version\":\"%s\"},%.*s,\"compiler\":\"torch\","
            "\"hardware\":{\"device\":\"nvidia-h100\"},\"runtime\":{\"framework\":"
            "\"torchtitan\"%s}},\"measured\":{\"kind\":\"max_reserved\",\"peak_bytes\":7}}",
            cases[i].version, (int)strlen(CONFIG) - 1, CONFIG, cases[i].runtime);
        assert_true(read_text(text, &r));
        assert_int_equal(r.spec.runtime.wrap_root, cases[i].root);
    }
}

/* Without a version the day of the source does; before June 2024 f32 logits had a name. */
static void sources_tell_the_age(void **state)
{
    (void)state;
    static const struct {
        const char *more;
        const char *date;
        bool root;
        enum hb_held held;
    } cases[] = {
        {"", "2024-03", true, HB_HELD_F32},
        {"", "2024-06", true, HB_HELD_NONE},
        {"", "2025-09-05", false, HB_HELD_NONE},
        {",\"loss\":{\"held\":\"none\"}", "2024-03", true, HB_HELD_NONE},
        {",\"loss\":{\"kernel\":\"compiled\"}", "2024-03", true, HB_HELD_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hb_record r;
        const char *text = hb_arena_printf(
            u.env.arena,
            "{\"id\":\"a\",\"versions\":{\"version\":null},\"provenance\":{\"date\":\"%s\"},"
            "%.*s%s,\"compiler\":\"torch\",\"hardware\":{\"device\":\"nvidia-h100\"},"
            "\"runtime\":{\"framework\":\"torchtitan\"}},"
            "\"measured\":{\"kind\":\"max_reserved\",\"peak_bytes\":7}}",
            cases[i].date, (int)strlen(CONFIG) - 1, CONFIG, cases[i].more);
        assert_true(read_text(text, &r));
        assert_int_equal(r.spec.runtime.wrap_root, cases[i].root);
        assert_int_equal(r.spec.loss.held, cases[i].held);
    }
}

static void wrong_records_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *why;
    } rows[] = {
        {"{" CONFIG ",\"measured\":{\"peak_bytes\":7}}", "needs an 'id'"},
        {"{\"id\":\"a\"," CONFIG "}", "record 'a' has no 'measured' map"},
        {"{\"id\":\"a\"," CONFIG ",\"measured\":[]}", "record 'a' has no 'measured' map"},
        {"{\"id\":\"a\",\"measured\":{\"peak_bytes\":7}}", "record 'a' has no 'config' map"},
        {"{\"id\":\"a\"," CONFIG ",\"measured\":{}}", "neither measured.peak_bytes nor"},
        {"{\"id\":\"a\"," CONFIG ",\"measured\":{\"peak_bytes\":-1}}",
         "measured.peak_bytes: a whole number of bytes"},
        {"{\"id\":\"a\"," CONFIG ",\"measured\":{\"peak_bytes\":1.5}}",
         "measured.peak_bytes: a whole number of bytes"},
        {"{\"id\":\"a\"," CONFIG ",\"measured\":{\"peak_bytes\":1,\"temp_bytes\":\"x\"}}",
         "measured.temp_bytes: a whole number of bytes"},
        {"{\"id\":\"a\"," CONFIG ",\"measured\":{\"peak_bytes\":1,\"step_seconds\":-2}}",
         "measured.step_seconds: a number of seconds"},
        {"{\"id\":\"a\",\"config\":{\"modle\":{}},\"measured\":{\"peak_bytes\":7}}", "model"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hb_record r;
        hb_diag_init(&u.diag, u.env.arena);
        assert_false(read_text(rows[i].text, &r));
        assert_true(u.diag.errors > 0);
        assert_non_null(strstr(u.diag.entries[0].text, rows[i].why));
        assert_string_equal(u.diag.entries[0].loc.file, "records.jsonl");
    }
}

/* A broken configuration still has a name to be listed under. */
static void id_and_group_survive_errors(void **state)
{
    (void)state;
    struct hb_record r;
    assert_false(read_text("{\"id\":\"a\",\"group\":\"g\",\"config\":{},\"measured\":"
                           "{\"peak_bytes\":7}}",
                           &r));
    assert_string_equal(r.id, "a");
    assert_string_equal(r.group, "g");
    assert_int_equal(r.peak_bytes, 7);
}

/* A third is held out; who is in it never changes (the hashes were worked out apart, with 64-bit
 * FNV-1a in Python). */
static void a_third_is_held_out(void **state)
{
    (void)state;
    int held = 0;
    for (int i = 0; i < 3000; i++)
        held += hb_record_held_out(hb_arena_printf(u.env.arena, "record-%d", i));
    assert_in_range(held, 900, 1100);
    assert_false(hb_record_held_out(""));
    assert_true(hb_record_held_out("a"));
    assert_true(hb_record_held_out("b"));
    assert_false(hb_record_held_out("lab-tpu-tiny--base"));
    assert_false(hb_record_held_out("lab-tpu-1B--base"));
    assert_false(hb_record_held_out("maxtext-base--gemma2-9b--v5p-16--b4--s4096"));
    assert_false(hb_record_held_out("lab-cuda--opt--base"));
    assert_true(hb_record_held_out("lab-cuda--PP--base"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(figures_are_read),
        TEST(absent_figures_are_minus_one),
        TEST(a_note_tells_of_rematerialisation),
        TEST(versions_tell_the_units),
        TEST(sources_tell_the_age),
        TEST(wrong_records_are_told),
        TEST(id_and_group_survive_errors),
        TEST(a_third_is_held_out),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
