/* Results as JSON: what an outcome writes reads back as the same picture; what is wrong is told
 * with its place. */
#include "tests/unit/unit.h"
#include "tests/unit/pictures.h"

#include "base/json.h"
#include "base/json_write.h"
#include "hw/device.h"
#include "models/schema.h"
#include "plots/stepview.h"
#include "tests/prop/seed.h"

static const struct hb_node *parse(struct unit *u, const char *text)
{
    struct hb_node *root = NULL;
    struct hb_loc start = {"r.json", 1, 1};
    assert_true(hb_json_parse(u->env.arena, &u->diag, start, text, strlen(text), &root));
    return root;
}

static bool read_text(struct unit *u, const char *text, struct hb_picture *out)
{
    struct hb_picture_input input = {parse(u, text), "r"};
    return hb_picture_read(u->env.arena, &u->diag, &input, 1, HB_PICTURE_COUNT, out);
}

static void wrong_results_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *message;
    } cases[] = {
        {"{}", "is no result of"},
        {"[1]", "is no result of"},
        {"{\"peak_bytes\": \"x\"}", "peak_bytes: 'x' where a number of bytes is wanted"},
        {"{\"peak_bytes\": -1}", "peak_bytes: '-1' where a number of bytes is wanted"},
        {"{\"peak_bytes\": 9223372036854775807}", "where a number of bytes is wanted"},
        {"{\"peak_bytes\": 5, \"peak\": {\"categories\": {\"params\": 4}}}",
         "sum to 4 bytes, but peak_bytes is 5"},
        {"{\"peak_bytes\": 4, \"peak\": {\"categories\": {\"paramz\": 4}}}", "paramz"},
        {"{\"peak_bytes\": 4, \"fits\": 1}", "fits: '1' where true or false is wanted"},
        {"{\"peak_bytes\": 4, \"timeline\": {\"seconds\": [0, 2, 1]}}", "no earlier time"},
        {"{\"peak_bytes\": 4, \"timeline\": {\"seconds\": [0, 1], \"categories\": {\"saved\": "
         "[1]}}}",
         "a value for each of the seconds"},
        {"{\"peak_bytes\": 4, \"timeline\": {\"seconds\": [0, 1e40]}}", "a number is wanted"},
        {"{\"peak_bytes\": 4, \"timeline\": {\"seconds\": [0], \"streams\": [{\"spans\": [[2, 1, "
         "\"x\"]]}]}}",
         "[start, end, name]"},
        {"{\"peak_bytes\": 4, \"heap\": {\"bytes\": 10, \"buffers\": [{\"offset_bytes\": 8, "
         "\"bytes\": 4}]}}",
         "inside the heap"},
        {"{\"peak_bytes\": 4, \"load\": {\"by_processes\": [{\"processes\": 0}]}}",
         "at least one process"},
        {"{\"cells\": [], \"budget_bytes\": 0}", "budget_bytes"},
        {"{\"cells\": [], \"budget_bytes\": 1}", "an axis {key, values}"},
        {"{\"cells\": [{\"x\": 3, \"y\": 2}], \"budget_bytes\": 1, \"x\": {\"values\": [1]}, "
         "\"y\": "
         "{\"values\": [2]}}",
         "values of the axes"},
        {"{\"cells\": [{\"x\": 1, \"y\": 2, \"facet\": 1}], \"budget_bytes\": 1, \"x\": "
         "{\"values\": "
         "[1]}, \"y\": {\"values\": [2]}}",
         "a known facet"},
        {"{\"cases\": []}", "at least one case"},
        {"{\"cases\": [{\"id\": \"a\"}]}", "measured_bytes and predicted_bytes"},
        {"{\"levers\": []}", "at least one lever"},
        {"{\"points\": []}", "a prediction, alternatives or points"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct unit u;
        struct hb_picture p;
        unit_start(&u);
        assert_false(read_text(&u, cases[i].json, &p));
        assert_true(u.diag.errors > 0);
        hb_diag_print(&u.diag, u.env.err);
        if (!strstr(unit_err(&u), cases[i].message))
            fail_msg("%s: no '%s' in '%s'", cases[i].json, cases[i].message, unit_err(&u));
        assert_non_null(strstr(unit_err(&u), "r.json:1:"));
        unit_end(&u);
    }
}

static void each_kind_is_known_by_its_keys(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum hb_picture_kind kind;
    } cases[] = {
        {"{\"peak_bytes\": 4}", HB_PICTURE_BREAKDOWN},
        {"{\"peak_bytes\": 4, \"timeline\": {\"seconds\": [0]}}", HB_PICTURE_TIMELINE},
        {"{\"peak_bytes\": 4, \"load\": {\"by_processes\": [{\"processes\": 1, "
         "\"device_peak_bytes\": 3}]}}",
         HB_PICTURE_LOAD},
        {"{\"budget_bytes\": 9, \"cells\": [{\"x\": 1, \"y\": \"a\", \"peak_bytes\": 4}], \"x\": "
         "{\"key\": \"k\", \"values\": [1]}, \"y\": {\"key\": \"l\", \"values\": [\"a\"]}, "
         "\"best\": "
         "{\"x\": 1, \"y\": \"a\"}}",
         HB_PICTURE_FIT},
        {"{\"status\": \"optimal\", \"prediction\": {\"peak_bytes\": 4, \"step_seconds\": 1}, "
         "\"alternatives\": []}",
         HB_PICTURE_PARETO},
        {"{\"peak_bytes\": 4, \"heap\": {\"bytes\": 4, \"buffers\": [{\"name\": \"b\", "
         "\"offset_bytes\": 0, \"bytes\": 4, \"start_op\": 0, \"end_op\": 1}]}}",
         HB_PICTURE_ADDRESSMAP},
        {"{\"levers\": [{\"name\": \"a\", \"freed_bytes\": -4, \"cost_seconds\": 0.5}]}",
         HB_PICTURE_TORNADO},
        {"{\"cases\": [{\"id\": \"a\", \"measured_bytes\": 4, \"predicted_bytes\": 5}, {\"id\": "
         "\"b\", \"measured_bytes\": 4, \"predicted_bytes\": null}]}",
         HB_PICTURE_SCATTER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct unit u;
        struct hb_picture p;
        unit_start(&u);
        if (!read_text(&u, cases[i].json, &p)) {
            hb_diag_print(&u.diag, stderr);
            fail_msg("not read: %s", cases[i].json);
        }
        assert_int_equal(p.kind, cases[i].kind);
        if (p.kind == HB_PICTURE_FIT)
            assert_int_equal(p.fit.best, 0);
        if (p.kind == HB_PICTURE_SCATTER)
            assert_true(p.scatter.count == 1 && p.scatter.failed == 1);
        unit_end(&u);
    }
}

/* Titles say what the data say, whatever their form. */
static void titles_state_the_finding(void **state)
{
    (void)state;
    static const char axes[] = "{\"budget_bytes\": 9, \"x\": {\"key\": \"k\", \"values\": ";
    static const struct {
        const char *json;
        const char *title;
    } cases[] = {
        {"[8, 16]}, \"y\": {\"key\": \"\", \"values\": [\"\"]}, \"cells\": [{\"x\": 8, \"y\": "
         "\"\", \"peak_bytes\": 4}, {\"x\": 16, \"y\": \"\", \"peak_bytes\": 14}]}",
         "fits up to 8; 16 lacks 5 B"},
        {"[8, 16]}, \"y\": {\"key\": \"\", \"values\": [\"\"]}, \"cells\": [{\"x\": 8, \"y\": "
         "\"\", \"peak_bytes\": 4}, {\"x\": 16, \"y\": \"\", \"peak_bytes\": 5}]}",
         "all 2 fit, up to 16"},
        {"[\"a\", \"b\"]}, \"y\": {\"key\": \"l\", \"values\": [2048]}, \"cells\": [{\"x\": \"a\", "
         "\"y\": 2048, \"peak_bytes\": 4}, {\"x\": \"b\", \"y\": 2048, \"peak_bytes\": 11}]}",
         "1 of 2 fit; b \xC3\x97 2k lacks 2 B"},
        {"[8]}, \"y\": {\"key\": \"l\", \"values\": [2048]}, \"cells\": [{\"x\": 8, \"y\": 2048, "
         "\"peak_bytes\": 4}]}",
         "8 \xC3\x97 2k fits"},
        {"[8]}, \"y\": {\"key\": \"l\", \"values\": [2048]}, \"cells\": [{\"x\": 8, \"y\": 2048, "
         "\"peak_bytes\": 12}]}",
         "nothing fits; 8 \xC3\x97 2k lacks 3 B"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct unit u;
        struct hb_picture p;
        unit_start(&u);
        assert_true(read_text(&u, hb_arena_printf(u.env.arena, "%s%s", axes, cases[i].json), &p));
        assert_string_equal(hb_picture_title(u.env.arena, &p), cases[i].title);
        unit_end(&u);
    }
}

static void idle_levers_are_told_but_not_drawn(void **state)
{
    (void)state;
    struct unit u;
    struct hb_picture p;
    unit_start(&u);
    assert_true(read_text(&u,
                          "{\"step_seconds\": 1, \"levers\": [{\"name\": \"idle\", \"applies\": "
                          "false, \"why\": \"w\"}, "
                          "{\"name\": \"a\", \"freed_bytes\": 4, \"cost_seconds\": 0}], "
                          "\"pairs\": [{\"name\": \"a, b\", \"freed_bytes\": 8, "
                          "\"cost_seconds\": 0}]}",
                          &p));
    assert_int_equal(p.tornado.count, 2);
    assert_int_equal(p.tornado.idle_count, 1);
    assert_string_equal(p.tornado.levers[0].name, "a, b");
    assert_string_equal(p.tornado.levers[2].name, "idle");
    assert_string_equal(hb_picture_title(u.env.arena, &p), "a, b free most: 8 B (step time 0 %)");
    unit_end(&u);
}

static const char *write_outcome(struct hb_arena *a, const struct hb_outcome *o)
{
    struct hb_str text;
    hb_str_init(&text, a);
    struct hb_json j = hb_json_begin(&text, NULL, false);
    hb_json_object(&j);
    hb_json_key(&j, "name");
    hb_json_text(&j, o->name);
    hb_json_key(&j, "fits");
    hb_json_bool(&j, o->fits);
    hb_json_key(&j, "peak_bytes");
    hb_json_int(&j, o->peak_bytes);
    hb_json_key(&j, "budget_bytes");
    hb_json_int(&j, o->budget_bytes);
    hb_json_key(&j, "step_seconds");
    hb_json_real(&j, o->step_seconds);
    hb_outcome_write_curves(&j, o);
    hb_json_key(&j, "load");
    hb_json_object(&j);
    hb_outcome_write_loads(&j, o);
    hb_json_object_end(&j);
    hb_json_object_end(&j);
    hb_json_end(&j);
    return text.text;
}

static const char *draw_outcome(struct hb_arena *a, struct hb_outcome *o, enum hb_picture_kind kind)
{
    struct hb_picture p = {.kind = kind, .outcomes = o, .outcome_count = 1};
    struct hb_look look = {.width = 700, .height = 400};
    struct hb_str svg;
    hb_str_init(&svg, a);
    hb_canvas_finish(hb_picture_draw(a, &p, &look, HB_FORMAT_SVG), &svg);
    return svg.text;
}

/* Tensors and totals at the peak are simulate's to write; the rest comes back as it was. */
static void curves_come_back(void **state)
{
    (void)state;
    static const enum hb_picture_kind kinds[] = {HB_PICTURE_TIMELINE, HB_PICTURE_ADDRESSMAP,
                                                 HB_PICTURE_LOAD};
    for (uint64_t seed = prop_cases(19); seed > 0; seed--) {
        struct unit u;
        struct hb_outcome read;
        unit_start(&u);
        struct hb_rng rng = hb_rng_seed(seed);
        struct hb_outcome o = picture_outcome(u.env.arena, &rng);
        o.tensor_count = 0;
        const struct hb_node *json = parse(&u, write_outcome(u.env.arena, &o));
        assert_true(hb_outcome_read(u.env.arena, &u.diag, json, &read));
        for (int i = 0; i < 3; i++)
            assert_string_equal(draw_outcome(u.env.arena, &o, kinds[i]),
                                draw_outcome(u.env.arena, &read, kinds[i]));
        unit_end(&u);
    }
}

static void run_model(struct unit *u, const char *const *sets, int count, struct hb_result *r)
{
    struct hb_schema_source source = {.arena = u->env.arena,
                                      .diag = &u->diag,
                                      .path = HB_SOURCE_DIR "/examples/quickstart/model.yaml",
                                      .sets = sets,
                                      .set_count = count,
                                      .data_dir = HB_SOURCE_DIR};
    struct hb_spec *spec = hb_arena_alloc(u->env.arena, 1, sizeof *spec);
    struct hb_device *device = hb_arena_alloc(u->env.arena, 1, sizeof *device);
    bool good = hb_schema_read(&source, spec) &&
                hb_device_load(u->env.arena, &u->diag, HB_SOURCE_DIR, spec->hardware.device,
                               (struct hb_loc){0}, device) &&
                hb_result_run(u->env.arena, &u->diag, spec, device, r);
    if (!good)
        hb_diag_print(&u->diag, stderr);
    assert_true(good);
}

/* The curve of a run reaches the engine's peak and no more, in rising time, and its categories
 * there are the engine's; the heap's buffers do not overlap. */
static void check_run(struct unit *u, const struct hb_result *r)
{
    struct hb_outcome o;
    hb_outcome_make(u->env.arena, r, &o);
    assert_true(o.sample_count > 2);
    uint32_t peak = hb_outcome_peak_sample(&o);
    assert_int_equal(hb_outcome_total(&o, peak), r->memory.peak_bytes);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++)
        assert_int_equal(o.category_curve[c][peak], r->memory.category_bytes[c]);
    for (uint32_t i = 1; i < o.sample_count; i++)
        assert_true(o.seconds[i] >= o.seconds[i - 1]);
    assert_true(o.seconds[o.sample_count - 1] <= r->step_seconds);
    for (uint32_t i = 1; i < o.phase_count; i++)
        assert_true(o.phases[i].start_seconds >= o.phases[i - 1].start_seconds);
    for (uint32_t i = 0; i < o.buffer_count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const struct hb_shown_buffer *a = &o.buffers[i], *b = &o.buffers[k];
            bool apart = a->end_op < b->start_op || b->end_op < a->start_op ||
                         a->offset_bytes + a->bytes <= b->offset_bytes ||
                         b->offset_bytes + b->bytes <= a->offset_bytes;
            assert_true(apart || a->bytes == 0 || b->bytes == 0);
        }
    for (uint32_t s = 0; s < o.stream_count; s++) {
        double sum = 0;
        for (uint32_t i = 0; i < o.streams[s].span_count; i++)
            sum += o.streams[s].spans[i].end_seconds - o.streams[s].spans[i].start_seconds;
        /* what lies between spans that were joined is counted in: never less than was busy */
        assert_true(sum >= o.streams[s].busy_seconds * 0.98);
        assert_true(sum <= r->step_seconds * 1.001);
    }
}

static void runs_are_shown_as_they_were(void **state)
{
    (void)state;
    static const char *const sets[][2] = {
        {"remat.policy=full", "batch.seq=8192"},
        {"remat.policy=none", "batch.seq=2048"},
        {"batch.accumulate=4", "batch.seq=2048"},
        {"stack.form=loop", "batch.seq=2048"},
    };
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        struct unit u;
        struct hb_result r;
        unit_start(&u);
        run_model(&u, sets[i], 2, &r);
        check_run(&u, &r);
        unit_end(&u);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_results_are_told),
        cmocka_unit_test(each_kind_is_known_by_its_keys),
        cmocka_unit_test(titles_state_the_finding),
        cmocka_unit_test(idle_levers_are_told_but_not_drawn),
        cmocka_unit_test(curves_come_back),
        cmocka_unit_test(runs_are_shown_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
