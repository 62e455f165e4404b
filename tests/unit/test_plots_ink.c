/* What a reader sees of real runs, in both themes and three sizes: no line through a text, no large
 * part bare, no mark over nothing. */
#include "tests/unit/unit.h"
#include "tests/unit/ink.h"

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
    check_peak(c, &trace, what);
    check_labels(c, &trace, what);
    check_words(c, &trace, what);
    double bare = ink_bare(c, &trace);
    if (bare > most_bare)
        ink_complain(&wrong, what, hb_arena_printf(a, "%.0f %% are bare", 100 * bare));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_can_be_read),
        cmocka_unit_test(comparisons_can_be_read),
        cmocka_unit_test(answers_can_be_read),
        cmocka_unit_test(devices_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
