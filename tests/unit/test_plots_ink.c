/* What a reader sees of real runs, in both themes and three sizes: no line through a text, no large
 * part bare, no mark over nothing. */
#include "tests/unit/unit.h"
#include "tests/unit/ink.h"

#include "base/json.h"
#include "cli/cmd.h"
#include "cli/report_runs.h"
#include "hw/device.h"
#include "models/schema.h"
#include "plots/html.h"
#include "plots/picture.h"

static const struct {
    double width, height;
} pages[] = {{480, 320}, {960, 540}, {1900, 1000}};

static const double most_bare = 0.4;
static int wrong;

/* Three that have little in common. */
enum { MODELS = 3 };
static const char *const models[MODELS] = {
    "{model: {preset: llama3.2-1b}, hardware: {device: nvidia-a100-80gb, count: 1},"
    " batch: {global: 8, seq: 4096}}",
    "{model: {preset: llama3-70b}, hardware: {device: nvidia-h100, count: 64},"
    " mesh: {fsdp: 8, tensor: 2, pipeline: 4}, batch: {global: 128, seq: 8192},"
    " remat: {policy: full}}",
    "{model: {preset: deepseek-v3}, hardware: {device: tpu-v5p, count: 1024},"
    " mesh: {fsdp: 128, expert: 8}, batch: {global: 1024, seq: 4096}, remat: {policy: full}}",
};

static const char *describe(struct hb_arena *a, const struct hb_picture *p,
                            const struct hb_look *look, int model)
{
    return hb_arena_printf(a, "%s of model %d on %g x %g", hb_picture_name(p->kind), model,
                           look->width, look->height);
}

static void check_peak(const struct hb_canvas *c, const struct hb_trace *t, const char *what)
{
    for (uint32_t i = 0; i < c->layout.point_count; i++) {
        const struct hb_layout_point *q = &c->layout.points[i];
        if (strcmp(q->curve, "peak") != 0)
            continue;
        for (uint32_t k = 0; k < t->count; k++) {
            struct hb_box box = ink_bounds(&t->items[k]);
            bool mark = t->items[k].kind == HB_TRACED_MARK &&
                        fabs(box.x + box.w / 2 - q->at.x) < 0.1 &&
                        fabs(box.y + box.h / 2 - q->at.y) < 0.1;
            if (mark && !ink_stands(c, t, k))
                ink_complain(&wrong, what, "the peak's mark stands over nothing");
        }
    }
}

/* A label that tells of a mark or a bar stands at it. */
static void check_labels(const struct hb_canvas *c, const struct hb_trace *t, const char *what)
{
    static const char *const roles[] = {"peak",  "curve",      "point", "worst",
                                        "total", "difference", "value", "budget"};
    for (uint32_t i = 0; i < c->layout.label_count; i++)
        for (size_t r = 0; r < sizeof roles / sizeof roles[0]; r++)
            if (strcmp(c->layout.labels[i].role, roles[r]) == 0 &&
                !ink_beside(c, t, c->layout.labels[i].box, c->em * 1.2))
                ink_complain(
                    &wrong, what,
                    hb_arena_printf(c->arena, "'%s' stands by itself", c->layout.labels[i].text));
}

/* Names of budgets stand beside the data, nothing is listed that is not there, and on pages of a
 * usual size no name of a lever or in a legend is cut. */
static void check_words(const struct hb_canvas *c, const struct hb_trace *t, const char *what)
{
    for (uint32_t i = 0; i < c->layout.label_count; i++) {
        const struct hb_layout_label *label = &c->layout.labels[i];
        bool legend = strcmp(label->role, "legend") == 0;
        const char *why = NULL;
        if (strcmp(label->role, "budget") == 0 && ink_on_data(c, t, label->box))
            why = "lies on the data";
        if (legend && strcmp(label->text, "0 B") == 0)
            why = "tells of nothing";
        if ((legend || strcmp(label->role, "lever") == 0) && c->look.width >= 960 &&
            strstr(label->text, "\xE2\x80\xA6"))
            why = "is cut";
        if (why)
            ink_complain(&wrong, what, hb_arena_printf(c->arena, "'%s' %s", label->text, why));
    }
}

static void check_page(struct hb_arena *a, const struct hb_picture *p, int model, int page,
                       enum hb_theme theme)
{
    struct hb_trace trace = {.arena = a};
    struct hb_look look = {
        .theme = theme, .width = pages[page].width, .height = pages[page].height, .trace = &trace};
    struct hb_str none;
    hb_str_init(&none, a);
    struct hb_canvas *c = hb_picture_draw(a, p, &look, HB_FORMAT_NONE);
    hb_canvas_finish(c, &none);
    const char *what = describe(a, p, &look, model);
    ink_check_texts(c, &trace, what, &wrong);
    ink_check_contrast(c, &trace, what, &wrong);
    check_peak(c, &trace, what);
    check_labels(c, &trace, what);
    check_words(c, &trace, what);
    double bare = ink_bare(c, &trace);
    if (bare > most_bare)
        ink_complain(&wrong, what, hb_arena_printf(a, "%.0f %% are bare", 100 * bare));
}

static bool has_label(struct hb_arena *a, const struct hb_picture *p, const char *text)
{
    struct hb_look look = {.width = 960, .height = 540};
    struct hb_canvas *c = hb_picture_draw(a, p, &look, HB_FORMAT_NONE);
    struct hb_str none;
    hb_str_init(&none, a);
    hb_canvas_finish(c, &none);
    for (uint32_t i = 0; i < c->layout.label_count; i++)
        if (strcmp(c->layout.labels[i].text, text) == 0)
            return true;
    return false;
}

static void check_picture(struct hb_arena *a, const struct hb_picture *p, int model)
{
    for (int page = 0; page < 3; page++)
        for (int theme = 0; theme < HB_THEME_COUNT; theme++) {
            struct hb_arena_mark mark = hb_arena_mark(a);
            check_page(a, p, model, page, (enum hb_theme)theme);
            hb_arena_rewind(a, mark);
        }
}

struct run {
    struct hb_spec spec;
    struct hb_device device;
    struct hb_result result;
    struct hb_outcome outcome;
};

static void run_model(struct unit *u, int model, struct run *run)
{
    struct hb_given given = {"model.yaml", models[model], strlen(models[model])};
    struct hb_schema_source source = {.arena = u->env.arena,
                                      .diag = &u->diag,
                                      .path = given.name,
                                      .given = &given,
                                      .data_dir = HB_SOURCE_DIR};
    u->env.data_dir = HB_SOURCE_DIR;
    bool good = hb_schema_read(&source, &run->spec) &&
                hb_device_load(u->env.arena, &u->diag, HB_SOURCE_DIR, run->spec.hardware.device,
                               (struct hb_loc){0}, &run->device) &&
                hb_result_run(u->env.arena, &u->diag, &run->spec, &run->device, &run->result);
    if (!good)
        hb_diag_print(&u->diag, stderr);
    assert_true(good);
    hb_outcome_make(u->env.arena, &run->result, &run->outcome);
}

static void runs_can_be_read(void **state)
{
    (void)state;
    wrong = 0;
    static const enum hb_picture_kind kinds[] = {HB_PICTURE_TIMELINE, HB_PICTURE_BREAKDOWN,
                                                 HB_PICTURE_ADDRESSMAP};
    for (int model = 0; model < MODELS; model++) {
        struct unit u;
        struct run run;
        unit_start(&u);
        run_model(&u, model, &run);
        for (int k = 0; k < 3; k++)
            check_picture(u.env.arena,
                          &(struct hb_picture){
                              .kind = kinds[k], .outcomes = &run.outcome, .outcome_count = 1},
                          model);
        unit_end(&u);
    }
    assert_int_equal(wrong, 0);
}

static void comparisons_can_be_read(void **state)
{
    (void)state;
    wrong = 0;
    struct unit u;
    struct run runs[MODELS];
    struct hb_outcome outcomes[MODELS];
    unit_start(&u);
    for (int model = 0; model < MODELS; model++) {
        run_model(&u, model, &runs[model]);
        outcomes[model] = runs[model].outcome;
    }
    for (uint32_t count = 2; count <= MODELS; count++)
        check_picture(u.env.arena,
                      &(struct hb_picture){.kind = HB_PICTURE_BREAKDOWN,
                                           .outcomes = outcomes,
                                           .outcome_count = count},
                      (int)count);
    unit_end(&u);
    assert_int_equal(wrong, 0);
}

static void answers_can_be_read(void **state)
{
    (void)state;
    wrong = 0;
    for (int model = 0; model < MODELS; model++) {
        struct unit u;
        struct run run;
        struct hb_html report = {0};
        unit_start(&u);
        run_model(&u, model, &run);
        hb_report_sweep(&u.env, &run.spec, &report);
        hb_report_levers(&u.env, &run.spec, &run.device, &report);
        struct hb_picture fit = {.kind = HB_PICTURE_FIT, .fit = *report.sweep};
        struct hb_picture levers = {.kind = HB_PICTURE_TORNADO, .tornado = *report.advise};
        check_picture(u.env.arena, &fit, model);
        check_picture(u.env.arena, &levers, model);
        unit_end(&u);
    }
    assert_int_equal(wrong, 0);
}

static void devices_can_be_read(void **state)
{
    (void)state;
    wrong = 0;
    static const char *const names[] = {"nvidia-h100", "tpu-v5p", "amd-mi300x"};
    for (int i = 0; i < 3; i++) {
        struct unit u;
        struct hb_device device;
        unit_start(&u);
        assert_true(hb_device_load(u.env.arena, &u.diag, HB_SOURCE_DIR, names[i],
                                   (struct hb_loc){0}, &device));
        check_picture(u.env.arena,
                      &(struct hb_picture){.kind = HB_PICTURE_RATES, .device = &device}, i);
        unit_end(&u);
    }
    assert_int_equal(wrong, 0);
}

/* What a command says of its words, as plot reads it. given: a model in the place of a file. */
static void ask(struct unit *u, const struct hb_cmd *cmd, const char *given,
                const char *const *words, struct hb_picture *out)
{
    char *argv[16] = {0};
    int argc = 0;
    u->env.data_dir = HB_SOURCE_DIR;
    if (given)
        u->env.given = (struct hb_given){"model.yaml", given, strlen(given)};
    for (; words[argc]; argc++)
        argv[argc] = hb_arena_strdup(u->env.arena, words[argc]);
    assert_true(cmd->run(&u->env, argc, argv) <= HB_EXIT_NO);
    struct hb_node *root;
    const char *text = unit_out(u);
    assert_true(hb_json_parse(u->env.arena, &u->diag, (struct hb_loc){"answer", 1, 1}, text,
                              strlen(text), &root));
    struct hb_picture_input input = {root, "answer"};
    bool read = hb_picture_read(u->env.arena, &u->diag, &input, 1, HB_PICTURE_COUNT, out);
    if (!read)
        hb_diag_print(&u->diag, stderr);
    assert_true(read);
}

static void check_answer(const struct hb_cmd *cmd, const char *given, const char *const *words,
                         int number)
{
    struct unit u;
    struct hb_picture picture = {0};
    unit_start(&u);
    ask(&u, cmd, given, words, &picture);
    check_picture(u.env.arena, &picture, number);
    unit_end(&u);
}

/* Of small spaces, searched to their end. */
static void plans_can_be_read(void **state)
{
    (void)state;
    wrong = 0;
    static const char *const words[] = {"plan", "-", "--json", "--full", NULL};
    static const char *const small[MODELS] = {
        "{model: {preset: llama3.2-1b}, hardware: {device: nvidia-a100-80gb, count: 1},"
        " batch: {global: 8, seq: 4096}, plan: {search: {remat: true, loss_chunks: [1, 8]}}}",
        "{model: {preset: llama3-70b}, hardware: {device: nvidia-h100, count: 64},"
        " batch: {global: 128, seq: 8192}, plan: {search: {mesh: [fsdp, tensor],"
        " loss_chunks: [1, 8]}}}",
        "{model: {preset: deepseek-v3}, hardware: {device: tpu-v5p, count: 1024},"
        " batch: {global: 1024, seq: 4096}, plan: {search: {mesh: [fsdp, expert],"
        " loss_chunks: [1]}}}",
    };
    for (int model = 0; model < MODELS; model++)
        check_answer(&hb_cmd_plan, small[model], words, model);
    assert_int_equal(wrong, 0);
}

static void errors_can_be_read(void **state)
{
    (void)state;
    wrong = 0;
    static const char *const files[][3] = {
        {HB_SOURCE_DIR "/tests/golden/lab-tpu.jsonl", HB_SOURCE_DIR "/tests/golden/maxtext.jsonl"},
        {HB_SOURCE_DIR "/tests/golden/torch-lab.jsonl"},
        {HB_SOURCE_DIR "/tests/golden/lab-cuda.jsonl"}};
    for (int i = 0; i < 3; i++) {
        const char *const words[] = {"validate", "--json", files[i][0], files[i][1], NULL};
        check_answer(&hb_cmd_validate, NULL, words, i);
    }
    assert_int_equal(wrong, 0);
}

static void loads_can_be_read(void **state)
{
    (void)state;
    wrong = 0;
    static const char *const words[] = {"simulate", HB_SOURCE_DIR "/examples/loading/model.yaml",
                                        "--json", NULL};
    struct unit u;
    struct hb_picture picture = {0};
    unit_start(&u);
    ask(&u, &hb_cmd_simulate, NULL, words, &picture);
    picture.kind = HB_PICTURE_LOAD;
    check_picture(u.env.arena, &picture, 0);
    unit_end(&u);
    assert_int_equal(wrong, 0);
}

static void dumps_can_be_read(void **state)
{
    (void)state;
    wrong = 0;
    static const char *const names[] = {"lab_70B_base", "h100_moe8", "v5e_xf_none_8"};
    for (int i = 0; i < 3; i++) {
        char path[256];
        snprintf(path, sizeof path, HB_SOURCE_DIR "/tests/golden/hlo/%s.hlo.gz", names[i]);
        const char *const words[] = {"hlo", path, "--json", "--full", NULL};
        check_answer(&hb_cmd_hlo, NULL, words, i);
    }
    assert_int_equal(wrong, 0);
}

/* Maps over devices: along an axis, and as facets. */
static void devices_side_by_side_can_be_read(void **state)
{
    (void)state;
    wrong = 0;
    static const char devices[] =
        "hardware.device=nvidia-a100-80gb,nvidia-h100,nvidia-h200,nvidia-b200";
    const char *const across[] = {
        "sweep", "-", "--json", "--x", devices, "--y", "batch.global=32..256*2", NULL};
    const char *const up[] = {
        "sweep", "-", "--json", "--y", devices, "--x", "batch.global=32..256*2", NULL};
    const char *const facets[] = {"sweep",
                                  "-",
                                  "--json",
                                  "--facet",
                                  devices,
                                  "--x",
                                  "batch.global=64..512*2",
                                  "--y",
                                  "batch.seq=2048..8192*2",
                                  NULL};
    const char *const *const asked[] = {across, up, facets};
    static const char *const told[] = {"105 GiB", "105 GiB",
                                       "nvidia-h200: fits up to 256 \xC3\x97 2k of 105 GiB"};
    for (int i = 0; i < 3; i++) {
        struct unit u;
        struct hb_picture picture = {0};
        unit_start(&u);
        ask(&u, &hb_cmd_sweep, models[1], asked[i], &picture);
        check_picture(u.env.arena, &picture, i);
        assert_true(has_label(u.env.arena, &picture, told[i])); /* each has its own budget */
        unit_end(&u);
    }
    assert_int_equal(wrong, 0);
}

static void only_what_is_there_is_listed(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_arena *a = u.env.arena;
    struct hb_pareto_point points[] = {{"a", 10LL << 30, 2, HB_RANK_OTHER},
                                       {"b", 30LL << 30, 3, HB_RANK_OTHER}};
    struct hb_picture p = {.kind = HB_PICTURE_PARETO,
                           .pareto = {.name = "m",
                                      .budget_bytes = 40LL << 30,
                                      .points = points,
                                      .count = 2,
                                      .plan = HB_NONE,
                                      .cut_off = true}};
    assert_true(has_label(a, &p, "fits"));
    assert_false(has_label(a, &p, "does not fit"));
    assert_false(has_label(a, &p, "runner-up"));
    assert_string_equal(hb_picture_title(a, &p), "no plan yet: the search was cut off; the "
                                                 "smallest drawn takes 10 GiB of 40 GiB");
    p.pareto.cut_off = false;
    assert_non_null(strstr(hb_picture_title(a, &p), "nothing fits into 40 GiB with its margin"));
    points[0].rank = HB_RANK_RUNNER_UP;
    points[1].peak_bytes = 50LL << 30;
    assert_true(has_label(a, &p, "does not fit"));
    assert_true(has_label(a, &p, "runner-up"));
    assert_false(has_label(a, &p, "fits"));
    p.pareto.plan = 0;
    p.pareto.cut_off = true;
    assert_non_null(strstr(hb_picture_title(a, &p), "plan so far: 2 s"));
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_can_be_read),
        cmocka_unit_test(comparisons_can_be_read),
        cmocka_unit_test(answers_can_be_read),
        cmocka_unit_test(devices_can_be_read),
        cmocka_unit_test(plans_can_be_read),
        cmocka_unit_test(errors_can_be_read),
        cmocka_unit_test(loads_can_be_read),
        cmocka_unit_test(dumps_can_be_read),
        cmocka_unit_test(devices_side_by_side_can_be_read),
        cmocka_unit_test(only_what_is_there_is_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
