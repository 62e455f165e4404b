/* What holds for every picture, over random data and pages from a stamp to a poster: labels stay
 * on the page and apart, and everything stands where the data say. */
#include "tests/unit/unit.h"
#include "tests/unit/ink.h"
#include "tests/unit/pictures.h"
#include "tests/prop/seed.h"

#include "base/json_write.h"

static const struct {
    double width, height;
} pages[] = {{64, 64},   {120, 90},   {200, 150},  {340, 240},  {560, 900},
             {960, 560}, {1600, 300}, {300, 1600}, {2400, 1500}};

enum { PAGES = sizeof pages / sizeof pages[0], ROUNDS = 12 };

static const double near_px = 0.011; /* the record has hundredths */

static void check_labels(const struct hb_canvas *c)
{
    const struct hb_layout *r = &c->layout;
    for (uint32_t i = 0; i < r->label_count; i++) {
        const struct hb_box *a = &r->labels[i].box;
        if (a->x < -near_px || a->y < -near_px || a->x + a->w > c->look.width + near_px ||
            a->y + a->h > c->look.height + near_px)
            fail_msg("'%s' leaves the page", r->labels[i].text);
        if (a->w <= 0 || a->h <= 0)
            fail_msg("'%s' has no size", r->labels[i].text);
        for (uint32_t k = i + 1; k < r->label_count; k++) {
            const struct hb_box *b = &r->labels[k].box;
            bool apart = a->x + a->w <= b->x + near_px || b->x + b->w <= a->x + near_px ||
                         a->y + a->h <= b->y + near_px || b->y + b->h <= a->y + near_px;
            if (!apart)
                fail_msg("'%s' (%s) lies over '%s' (%s) on %g x %g", r->labels[i].text,
                         r->labels[i].role, r->labels[k].text, r->labels[k].role, c->look.width,
                         c->look.height);
        }
    }
}

static void check_cells_on_page(const struct hb_canvas *c)
{
    for (uint32_t i = 0; i < c->layout.cell_count; i++) {
        const struct hb_layout_cell *cell = &c->layout.cells[i];
        const struct hb_box *b = &cell->box;
        if (!(b->x >= -0.31 && b->y >= -0.31 && b->x + b->w <= c->look.width + 0.31 &&
              b->y + b->h <= c->look.height + 0.31 && b->w >= 0 && b->h >= 0))
            fail_msg("%s '%s' leaves the page: %g %g %g %g", cell->group, cell->name, b->x, b->y,
                     b->w, b->h);
    }
}

/* Where a value belongs, written apart from hb_scale_at. */
static double expected_px(const struct hb_scale *s, double value)
{
    double share = s->logarithmic ? log(value / s->low) / log(s->high / s->low)
                                  : (value - s->low) / (s->high - s->low);
    return s->from_px * (1 - share) + s->to_px * share;
}

/* Each point stands where its axes say. */
static void check_points(const struct hb_canvas *c)
{
    const struct hb_layout *r = &c->layout;
    for (uint32_t i = 0; i < r->point_count; i++) {
        const struct hb_layout_point *q = &r->points[i];
        if (strcmp(q->curve, "contour") == 0)
            continue;
        double x = expected_px(&r->axes[q->axis].scale, q->x);
        double y = expected_px(&r->axes[q->axis + 1].scale, q->y);
        if (fabs(x - q->at.x) > 0.01 || fabs(y - q->at.y) > 0.01)
            fail_msg("%s (%g, %g) stands at %g %g, not at %g %g", q->curve, q->x, q->y, q->at.x,
                     q->at.y, x, y);
    }
}

static const struct hb_layout_cell *find_cell(const struct hb_layout *r, const char *group,
                                              uint32_t index)
{
    for (uint32_t i = 0; i < r->cell_count; i++)
        if (strcmp(r->cells[i].group, group) == 0 && index-- == 0)
            return &r->cells[i];
    return NULL;
}

/* Rows and columns of a panel in order, each cell with its own peak in it where one is written. */
static void check_panel(const struct hb_canvas *c, const struct hb_fit_map *m, uint32_t facet)
{
    const struct hb_layout *r = &c->layout;
    uint32_t nx = m->x.count;
    uint32_t base = facet * nx * m->y.count;
    for (uint32_t i = 0; i < nx * m->y.count; i++) {
        const struct hb_layout_cell *cell = find_cell(r, "cell", base + i);
        const struct hb_layout_cell *right = find_cell(r, "cell", base + i + 1);
        const struct hb_layout_cell *above = find_cell(r, "cell", base + i + nx);
        assert_true(cell->value == (double)m->cells[base + i].peak_bytes);
        if (i % nx + 1 < nx) {
            assert_true(fabs(cell->box.x + cell->box.w - right->box.x) < near_px);
            assert_true(cell->box.y == right->box.y && cell->box.h == right->box.h);
        }
        if (i / nx + 1 < m->y.count)
            assert_true(fabs(above->box.y + above->box.h - cell->box.y) < near_px);
    }
}

static uint32_t is_edge(const struct hb_fit_map *m, uint32_t a, uint32_t b)
{
    int64_t p = m->cells[a].peak_bytes, q = m->cells[b].peak_bytes;
    return p >= 0 && q >= 0 && (p <= m->budget_bytes) != (q <= m->budget_bytes);
}

/* As many edges as there are neighbours of which one fits and one does not. */
static uint32_t count_edges(const struct hb_fit_map *m)
{
    uint32_t edges = 0;
    uint32_t nx = m->x.count, ny = m->y.count;
    for (uint32_t i = 0; i < m->facet_count * nx * ny; i++) {
        if (i % nx + 1 < nx)
            edges += is_edge(m, i, i + 1);
        if (i / nx % ny + 1 < ny)
            edges += is_edge(m, i, i + nx);
    }
    return edges;
}

static void check_map(const struct hb_canvas *c, const struct hb_fit_map *m)
{
    const struct hb_layout *r = &c->layout;
    uint32_t cells = m->x.count * m->y.count * m->facet_count;
    uint32_t contour = 0;
    if (r->cell_count == 0)
        return; /* less than a unit a cell: the title alone */
    if (r->cell_count != cells) {
        assert_true(r->cell_count % (m->x.count * m->y.count) == 0);
        return;
    }
    for (uint32_t f = 0; f < m->facet_count; f++)
        check_panel(c, m, f);
    for (uint32_t i = 0; i < r->point_count; i++)
        contour += strcmp(r->points[i].curve, "contour") == 0;
    assert_int_equal(contour, 2 * count_edges(m));
}

/* The text in a cell is the cell's own peak. */
static void check_cell_texts(const struct hb_canvas *c)
{
    const struct hb_layout *r = &c->layout;
    for (uint32_t i = 0; i < r->label_count; i++) {
        const struct hb_layout_label *label = &r->labels[i];
        if (strcmp(label->role, "cell") != 0 || (unsigned char)label->text[0] > 0x7F)
            continue;
        uint32_t k = 0;
        double x = label->box.x + label->box.w / 2, y = label->box.y + label->box.h / 2;
        while (k < r->cell_count && !(x > r->cells[k].box.x && y > r->cells[k].box.y &&
                                      x < r->cells[k].box.x + r->cells[k].box.w &&
                                      y < r->cells[k].box.y + r->cells[k].box.h))
            k++;
        assert_true(k < r->cell_count);
        double shown = strtod(label->text, NULL);
        bool found = false;
        for (double unit = 1; unit <= 0x1p40; unit *= 1024)
            found = found || fabs(r->cells[k].value / unit - shown) <= 0.5001;
        if (!found)
            fail_msg("'%s' stands in the cell of %.0f bytes", label->text, r->cells[k].value);
    }
}

static void check_bars(const struct hb_canvas *c, const struct hb_picture *p)
{
    const struct hb_layout *r = &c->layout;
    if (r->cell_count == 0)
        return;
    const struct hb_scale *x = &r->axes[0].scale;
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->outcome_count; i++) {
        double sum = 0;
        for (int k = 0; k < HB_CATEGORY_COUNT; k++) {
            int64_t bytes = p->outcomes[i].category_bytes[hb_stack_order[k]];
            if (bytes == 0)
                continue;
            const struct hb_layout_cell *bar = find_cell(r, "bar", at++);
            assert_true(bar->value == (double)bytes);
            assert_true(fabs(bar->box.x - expected_px(x, sum)) < 0.01);
            sum += (double)bytes;
            assert_true(fabs(bar->box.x + bar->box.w - expected_px(x, sum)) < 0.01);
        }
    }
    assert_null(find_cell(r, "bar", at));
}

/* Whether the topmost band has a point of that height (and of that time, if not negative). */
static bool top_has(const struct hb_layout *r, const char *curve, double seconds, double bytes)
{
    for (uint32_t i = 0; i < r->point_count; i++)
        if (strcmp(r->points[i].curve, curve) == 0 && r->points[i].y == bytes &&
            (seconds < 0 || r->points[i].x == seconds))
            return true;
    return false;
}

static bool is_a_total(const struct hb_outcome *o, double seconds, double bytes)
{
    for (uint32_t i = 0; i < o->sample_count; i++)
        if (o->seconds[i] == seconds && (double)hb_outcome_total(o, i) == bytes)
            return true;
    return false;
}

/* The topmost band's points are totals of samples, the highest of all among them and marked. */
static void check_timeline(const struct hb_canvas *c, const struct hb_outcome *o)
{
    const struct hb_layout *r = &c->layout;
    const char *top = NULL;
    double highest = 0;
    for (uint32_t i = 0; i < o->sample_count; i++)
        highest = fmax(highest, (double)hb_outcome_total(o, i));
    for (uint32_t i = 0; i < r->point_count; i++)
        if (strcmp(r->points[i].curve, "peak") != 0)
            top = r->points[i].curve;
    if (!top)
        return;
    assert_true(top_has(r, top, -1, highest));
    assert_true(top_has(r, "peak", -1, highest));
    for (uint32_t i = 0; i < r->point_count; i++)
        if (strcmp(r->points[i].curve, top) == 0)
            assert_true(is_a_total(o, r->points[i].x, r->points[i].y));
}

static void check_buffers(const struct hb_canvas *c, const struct hb_outcome *o)
{
    const struct hb_layout *r = &c->layout;
    for (uint32_t i = 0; i < r->cell_count; i++) {
        const struct hb_shown_buffer *b = &o->buffers[i];
        const struct hb_scale *x = &r->axes[0].scale, *y = &r->axes[1].scale;
        const struct hb_box *box = &r->cells[i].box;
        assert_true(fabs(box->x - expected_px(x, (double)b->start_op)) < 0.01);
        assert_true(fabs(box->y + box->h - expected_px(y, (double)b->offset_bytes)) < 0.01);
        assert_true(fabs(box->y - expected_px(y, (double)(b->offset_bytes + b->bytes))) < 0.01);
    }
}

static bool beats(const struct hb_pareto_point *a, const struct hb_pareto_point *b)
{
    return a->step_seconds <= b->step_seconds && a->peak_bytes <= b->peak_bytes &&
           (a->step_seconds < b->step_seconds || a->peak_bytes < b->peak_bytes);
}

static void check_front(struct hb_arena *a, const struct hb_pareto *p)
{
    uint32_t *front;
    uint32_t count = hb_pareto_front(a, p, &front);
    for (uint32_t i = 0; i < p->count; i++) {
        bool beaten = false, listed = false, twin = false;
        for (uint32_t k = 0; k < p->count; k++)
            beaten = beaten || beats(&p->points[k], &p->points[i]);
        for (uint32_t k = 0; k < count; k++) {
            listed = listed || front[k] == i;
            twin = twin || (p->points[front[k]].step_seconds >= p->points[i].step_seconds &&
                            p->points[front[k]].step_seconds <= p->points[i].step_seconds &&
                            p->points[front[k]].peak_bytes == p->points[i].peak_bytes);
        }
        assert_true(beaten ? !listed : listed || twin);
    }
}

static void check_levers(const struct hb_canvas *c, const struct hb_tornado *t)
{
    const struct hb_layout *r = &c->layout;
    for (uint32_t i = 0; i < r->cell_count; i++) {
        const struct hb_layout_cell *cell = &r->cells[i];
        bool freed = strcmp(cell->group, "freed") == 0;
        uint32_t axis = 0;
        while (axis < r->axis_count &&
               (strcmp(r->axes[axis].name, "freed at the peak") == 0) != freed)
            axis++;
        assert_true(axis < r->axis_count);
        double zero = expected_px(&r->axes[axis].scale, 0);
        double end = expected_px(&r->axes[axis].scale, cell->value);
        assert_true(fabs(cell->box.x - fmin(zero, end)) < 0.01);
        assert_true(fabs(cell->box.w - fabs(zero - end)) < 0.01);
    }
    (void)t;
}

static void check_histogram(const struct hb_canvas *c, const struct hb_scatter *s)
{
    double sum = 0;
    bool there = false;
    for (uint32_t i = 0; i < c->layout.cell_count; i++) {
        sum += c->layout.cells[i].value;
        there = true;
    }
    assert_true(!there || (uint32_t)sum == s->count);
}

static void check_picture(struct hb_arena *a, const struct hb_canvas *c, const struct hb_picture *p)
{
    check_labels(c);
    check_cells_on_page(c);
    check_points(c);
    switch (p->kind) {
    case HB_PICTURE_FIT:
        check_map(c, &p->fit);
        check_cell_texts(c);
        break;
    case HB_PICTURE_BREAKDOWN:
        check_bars(c, p);
        break;
    case HB_PICTURE_TIMELINE:
        check_timeline(c, p->outcomes);
        break;
    case HB_PICTURE_ADDRESSMAP:
        check_buffers(c, p->outcomes);
        break;
    case HB_PICTURE_PARETO:
        check_front(a, &p->pareto);
        break;
    case HB_PICTURE_TORNADO:
        check_levers(c, &p->tornado);
        break;
    case HB_PICTURE_SCATTER:
        check_histogram(c, &p->scatter);
        break;
    case HB_PICTURE_LOAD:
    case HB_PICTURE_RATES:
    case HB_PICTURE_COUNT:
        break;
    }
}

static void random_pictures_keep_the_rules(void **state)
{
    (void)state;
    int wrong = 0;
    struct hb_arena *a = hb_arena_new();
    for (int kind = 0; kind < HB_PICTURE_COUNT; kind++)
        for (uint64_t seed = prop_cases(ROUNDS); seed > 0; seed--) {
            struct hb_arena_mark mark = hb_arena_mark(a);
            struct hb_rng rng = hb_rng_seed(seed * 1000 + (uint64_t)kind);
            struct hb_picture p = picture_random(a, &rng, (enum hb_picture_kind)kind);
            for (int page = 0; page < PAGES; page++) {
                struct hb_look look = {.theme = seed % 2 ? HB_THEME_LIGHT : HB_THEME_DARK,
                                       .width = pages[page].width,
                                       .height = pages[page].height};
                struct hb_trace trace = {.arena = a};
                struct hb_str none;
                look.trace = &trace;
                hb_str_init(&none, a);
                struct hb_canvas *c = hb_picture_draw(a, &p, &look, HB_FORMAT_NONE);
                hb_canvas_finish(c, &none);
                check_picture(a, c, &p);
                ink_check_texts(c, &trace,
                                hb_arena_printf(a, "%s of seed %d on %g x %g",
                                                hb_picture_name(p.kind), (int)seed, look.width,
                                                look.height),
                                &wrong);
            }
            hb_arena_rewind(a, mark);
        }
    hb_arena_free(a);
    assert_int_equal(wrong, 0);
}

static bool has_role(const struct hb_canvas *c, const char *role)
{
    for (uint32_t i = 0; i < c->layout.label_count; i++)
        if (strcmp(c->layout.labels[i].role, role) == 0)
            return true;
    return false;
}

static const char *const roles[HB_PICTURE_COUNT][5] = {
    [HB_PICTURE_TIMELINE] = {"title", "tick", "peak", "heading", "legend"},
    [HB_PICTURE_BREAKDOWN] = {"title", "tick", "total", "legend", "title"},
    [HB_PICTURE_ADDRESSMAP] = {"title", "tick", "peak", "legend", "axis"},
    [HB_PICTURE_LOAD] = {"title", "tick", "axis", "curve", "title"},
    [HB_PICTURE_FIT] = {"title", "subtitle", "tick", "legend", "axis"},
    [HB_PICTURE_PARETO] = {"title", "tick", "axis", "legend", "title"},
    [HB_PICTURE_TORNADO] = {"title", "tick", "value", "axis", "title"},
    [HB_PICTURE_SCATTER] = {"title", "subtitle", "tick", "axis", "legend"},
    [HB_PICTURE_RATES] = {"title", "facet", "tick", "axis", "title"},
};

static void check_roles(struct hb_arena *a, enum hb_picture_kind kind, uint64_t seed)
{
    struct hb_rng rng = hb_rng_seed(seed * 7919 + (uint64_t)kind);
    struct hb_picture p = picture_random(a, &rng, kind);
    struct hb_look look = {0};
    struct hb_str none;
    hb_str_init(&none, a);
    hb_picture_size(&p, &look);
    struct hb_canvas *c = hb_picture_draw(a, &p, &look, HB_FORMAT_NONE);
    hb_canvas_finish(c, &none);
    for (int i = 0; i < 5; i++)
        if (!has_role(c, roles[kind][i]))
            fail_msg("%s of seed %d has no %s", hb_picture_name(kind), (int)seed, roles[kind][i]);
}

/* Leaving labels out would pass the test above: at the usual size what matters is there. */
static void usual_pages_say_what_matters(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    for (int kind = 0; kind < HB_PICTURE_COUNT; kind++)
        for (uint64_t seed = 1; seed <= 6; seed++)
            check_roles(a, (enum hb_picture_kind)kind, seed);
    hb_arena_free(a);
}

/* Hand-made and small: the layout file of a map of 3 x 2, against tests/golden/layout-fit.json. */
static void layout_file_is_as_recorded(void **state)
{
    (void)state;
    struct hb_arena *a = hb_arena_new();
    static const char *xs[] = {"8", "16", "32"};
    static const char *ys[] = {"2k", "4k"};
    static double xv[] = {8, 16, 32}, yv[] = {2048, 4096};
    static struct hb_fit_cell cells[6];
    static const int64_t gib[6] = {20, 35, 70, 36, 69, -1};
    for (int i = 0; i < 6; i++)
        cells[i].peak_bytes = gib[i] < 0 ? -1 : gib[i] << 30;
    struct hb_picture p = {.kind = HB_PICTURE_FIT,
                           .fit = {.name = "tiny",
                                   .budget_bytes = INT64_C(60) << 30,
                                   .x = {"batch.global", 3, xs, xs, xv},
                                   .y = {"batch.seq", 2, ys, ys, yv},
                                   .facet_count = 1,
                                   .cells = cells,
                                   .best = 3}};
    struct hb_look look = {.width = 320, .height = 200};
    struct hb_str none, text;
    hb_str_init(&none, a);
    hb_str_init(&text, a);
    struct hb_canvas *c = hb_picture_draw(a, &p, &look, HB_FORMAT_NONE);
    hb_canvas_finish(c, &none);
    struct hb_json j = hb_json_begin(&text, NULL, true);
    hb_canvas_write_layout(c, &j);
    hb_json_end(&j);
    assert_string_equal(c->title, "fits up to 8 \xC3\x97 4k; 16 \xC3\x97 4k lacks 9 GiB");
    static char wanted[1 << 16];
    FILE *file = fopen(HB_SOURCE_DIR "/tests/golden/layout-fit.json", "r");
    assert_non_null(file);
    wanted[fread(wanted, 1, sizeof wanted - 1, file)] = '\0';
    fclose(file);
    if (strcmp(wanted, text.text) != 0) {
        file = fopen("/tmp/layout-fit.json", "w");
        fputs(text.text, file);
        fclose(file);
        fail_msg("tests/golden/layout-fit.json differs from /tmp/layout-fit.json");
    }
    hb_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_pictures_keep_the_rules),
        cmocka_unit_test(usual_pages_say_what_matters),
        cmocka_unit_test(layout_file_is_as_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
