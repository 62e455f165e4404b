/* The scatter picture: see scatter.h. */
#include "plots/scatter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/str.h"
#include "plots/reading.h"
#include "plots/frame.h"

enum { WORST_NAMED = 5, MAX_KEYS = 14, BINS = 24 };

static uint32_t find_group(struct hb_arena *arena, struct hb_scatter *s, const char *name)
{
    for (uint32_t i = 0; i < s->group_count; i++)
        if (hb_str_same(s->groups[i], name))
            return i;
    s->groups = hb_grow(arena, s->groups, s->group_count, &s->group_cap, sizeof(const char *));
    s->groups[s->group_count] = name;
    return s->group_count++;
}

void hb_scatter_add(struct hb_arena *arena, struct hb_scatter *s, struct hb_scatter_case one,
                    const char *group)
{
    if (one.measured_bytes <= 0 || one.predicted_bytes <= 0) {
        s->failed++;
        return;
    }
    one.group = find_group(arena, s, group);
    one.error_pct = 100 * ((double)one.predicted_bytes / (double)one.measured_bytes - 1);
    s->cases = hb_grow(arena, s->cases, s->count, &s->cap, sizeof *s->cases);
    s->cases[s->count++] = one;
}

bool hb_scatter_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                     struct hb_scatter *out)
{
    struct hb_reading f = {arena, diag, true};
    const struct hb_node *list = hb_reading_list(&f, json, "cases");
    *out = (struct hb_scatter){0};
    if (!list || list->count == 0) {
        hb_reading_wrong(&f, json, "cases", "at least one case");
        return false;
    }
    for (const struct hb_node *node = list->first; node; node = node->next) {
        struct hb_scatter_case one = {.id = ""};
        const char *group = "";
        if (hb_node_find(node, "measured_step_seconds"))
            continue; /* a case of speed: it has no bytes */
        hb_reading_text(&f, node, "id", &one.id);
        hb_reading_text(&f, node, "group", &group);
        hb_reading_bytes(&f, node, "measured_bytes", 0, &one.measured_bytes);
        hb_reading_bytes(&f, node, "predicted_bytes", 0, &one.predicted_bytes);
        hb_scatter_add(arena, out, one, group);
    }
    if (out->count == 0 && f.ok)
        hb_reading_wrong(&f, json, "cases", "a case with measured_bytes and predicted_bytes");
    return f.ok;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The q-quantile (0 to 1) of the errors' magnitudes: the smallest that is not below q of them. */
static double find_quantile(struct hb_arena *arena, const struct hb_scatter *s, double q)
{
    double *errors = hb_arena_alloc(arena, s->count, sizeof *errors);
    for (uint32_t i = 0; i < s->count; i++)
        errors[i] = fabs(s->cases[i].error_pct);
    qsort(errors, s->count, sizeof *errors, compare_doubles);
    double at = ceil(q * s->count) - 1;
    return errors[(uint32_t)fmax(0, fmin(at, s->count - 1.0))];
}

struct ranked {
    double size;
    uint32_t index;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    if (x->size > y->size || x->size < y->size)
        return x->size > y->size ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Cases by the magnitude of their errors, worst first. */
static struct ranked *rank_cases(struct hb_arena *arena, const struct hb_scatter *s)
{
    struct ranked *ranked = hb_arena_alloc(arena, s->count, sizeof *ranked);
    for (uint32_t i = 0; i < s->count; i++)
        ranked[i] = (struct ranked){fabs(s->cases[i].error_pct), i};
    qsort(ranked, s->count, sizeof *ranked, compare_ranked);
    return ranked;
}

/* Percent with the digits that matter: "0.83", "4.2", "38". */
static const char *print_pct(struct hb_arena *arena, double pct, bool sign)
{
    double size = fabs(pct);
    int digits = size < 0.995 ? 2 : size < 9.95 ? 1 : 0;
    const char *mark = !sign ? "" : pct < 0 ? "\xE2\x88\x92" : "+";
    return hb_arena_printf(arena, "%s%.*f %%", mark, digits, size);
}

const char *hb_scatter_title(struct hb_arena *arena, const struct hb_scatter *s)
{
    if (!s->cases)
        return "no record that could be predicted";
    const struct hb_scatter_case *worst = &s->cases[rank_cases(arena, s)[0].index];
    const char *title =
        hb_arena_printf(arena, "error: median %s, 95 %% of cases within %s; worst %s",
                        print_pct(arena, find_quantile(arena, s, 0.5), false),
                        print_pct(arena, find_quantile(arena, s, 0.95), false),
                        print_pct(arena, worst->error_pct, true));
    if (*worst->id)
        title = hb_arena_printf(arena, "%s (%s)", title, worst->id);
    return title;
}

struct view {
    struct hb_canvas *c;
    const struct hb_scatter *s;
    struct hb_frame frame;
};

/* The band between (1 - share) and (1 + share) of the measured bytes, as steps fine enough for a
 * logarithmic page. */
static void draw_wedge(struct view *v, double share, double alpha)
{
    enum { STEPS = 48 };
    struct hb_point outline[2 * STEPS];
    const struct hb_scale *x = &v->frame.x;
    for (int i = 0; i < STEPS; i++) {
        double t = (double)i / (STEPS - 1);
        double at =
            x->logarithmic ? x->low * pow(x->high / x->low, t) : x->low + (x->high - x->low) * t;
        outline[i] = hb_frame_at(&v->frame, at, at * (1 + share));
        outline[2 * STEPS - 1 - i] = hb_frame_at(&v->frame, at, at * (1 - share));
    }
    hb_draw_add_area(v->c->draw, outline, 2 * STEPS);
    hb_draw_fill(v->c->draw, hb_canvas_ink(v->c, HB_INK_AXIS), alpha);
}

static void draw_bands(struct view *v)
{
    const struct hb_scale *x = &v->frame.x;
    draw_wedge(v, 0.10, 0.16);
    draw_wedge(v, 0.05, 0.20);
    hb_draw_line(v->c->draw, hb_frame_at(&v->frame, x->low, x->low),
                 hb_frame_at(&v->frame, x->high, x->high),
                 (struct hb_pen){hb_canvas_ink(v->c, HB_INK_TEXT), 0.9, false});
}

static struct hb_point case_at(const struct view *v, uint32_t i)
{
    return hb_frame_at(&v->frame, (double)v->s->cases[i].measured_bytes,
                       (double)v->s->cases[i].predicted_bytes);
}

static enum hb_mark mark_of(uint32_t group)
{
    return (enum hb_mark)(group % HB_MARK_COUNT); /* 4 marks and 7 colours: 28 pairs */
}

static void draw_cases(struct view *v)
{
    struct hb_canvas *c = v->c;
    for (uint32_t i = 0; i < v->s->count; i++) {
        const struct hb_scatter_case *one = &v->s->cases[i];
        struct hb_point at = case_at(v, i);
        hb_draw_mark(c->draw, at, mark_of(one->group), c->em * (v->s->count > 400 ? 0.22 : 0.3),
                     hb_ink_group(c->look.theme, (int)one->group), hb_canvas_ink(c, HB_INK_BACK));
        const char *note =
            hb_arena_printf(c->arena, "%s: %s", one->id, print_pct(c->arena, one->error_pct, true));
        hb_canvas_add_point(c, (struct hb_layout_point){"case", at, (double)one->measured_bytes,
                                                        (double)one->predicted_bytes, note, 0});
    }
}

/* No name stands over a mark, or over the diagonal. */
static void keep_marks_free(struct view *v)
{
    double half = v->c->em * 0.3;
    const struct hb_scale *x = &v->frame.x;
    const struct hb_point diagonal[2] = {hb_frame_at(&v->frame, x->low, x->low),
                                         hb_frame_at(&v->frame, x->high, x->high)};
    hb_canvas_keep_path_free(v->c, diagonal, 2);
    for (uint32_t i = 0; i < v->s->count; i++) {
        struct hb_point at = case_at(v, i);
        hb_canvas_keep_free(v->c, (struct hb_box){at.x - half, at.y - half, 2 * half, 2 * half});
    }
}

static void name_worst(struct view *v)
{
    struct hb_canvas *c = v->c;
    struct ranked *ranked = rank_cases(c->arena, v->s);
    struct hb_style style = hb_canvas_style(c, "worst");
    keep_marks_free(v);
    style.plated = true;
    style.plate = hb_canvas_ink(c, HB_INK_PANEL);
    style.size = fmax(6, c->em * 0.88);
    for (uint32_t i = 0; i < v->s->count && i < WORST_NAMED; i++) {
        const struct hb_scatter_case *one = &v->s->cases[ranked[i].index];
        const char *text =
            hb_arena_printf(c->arena, "%s %s", one->id, print_pct(c->arena, one->error_pct, true));
        text = hb_canvas_shorten(c, text, v->frame.area.w * 0.45, &style);
        if (*text)
            hb_canvas_label_near(c, text, case_at(v, ranked[i].index), v->frame.area, style);
    }
}

/* "error", and how many are larger than what is shown and so stand at its ends. */
static const char *name_error(const struct view *v, double reach)
{
    uint32_t beyond = 0;
    for (uint32_t i = 0; i < v->s->count; i++)
        beyond += fabs(v->s->cases[i].error_pct) > reach;
    return beyond ? hb_arena_printf(v->c->arena, "error, %u beyond", beyond) : "error";
}

/* Errors against the measured peak, where the bands are as wide as the figures deserve. */
static void draw_errors(struct view *v, struct hb_box box)
{
    struct hb_canvas *c = v->c;
    double usual = fmax(12, 1.15 * find_quantile(c->arena, v->s, 0.98));
    double worst = 1.08 * find_quantile(c->arena, v->s, 1);
    double reach = worst < 2.5 * usual ? fmax(usual, worst) : usual;
    struct hb_frame f = {
        .x_name = "measured peak", .y_name = name_error(v, reach), .x = v->frame.x};
    f.y = (struct hb_scale){.low = -reach, .high = reach, .unit = HB_UNIT_PERCENT};
    if (!hb_frame_make(c, box, &f))
        return;
    hb_frame_draw(c, &f);
    for (int i = 2; i > 0; i--) {
        double top = hb_scale_at(&f.y, i * 5);
        double bottom = hb_scale_at(&f.y, i * -5);
        hb_draw_add_box(c->draw, (struct hb_box){f.area.x, top, f.area.w, bottom - top});
        hb_draw_fill(c->draw, hb_canvas_ink(c, HB_INK_AXIS), i == 2 ? 0.16 : 0.20);
    }
    for (uint32_t i = 0; i < v->s->count; i++) {
        const struct hb_scatter_case *one = &v->s->cases[i];
        double most = reach * 0.97; /* those beyond stand at the edge */
        double shown = fmax(-most, fmin(most, one->error_pct));
        struct hb_point at = hb_frame_at(&f, (double)one->measured_bytes, shown);
        hb_draw_mark(c->draw, at, mark_of(one->group), c->em * (v->s->count > 400 ? 0.18 : 0.24),
                     hb_ink_group(c->look.theme, (int)one->group), hb_canvas_ink(c, HB_INK_BACK));
        hb_canvas_add_point(c, (struct hb_layout_point){"error", at, (double)one->measured_bytes,
                                                        shown, one->id, 2});
    }
}

/* Bars of how many cases have which error, from -reach to +reach; the outermost take the rest. */
static void draw_histogram(struct view *v, struct hb_box box)
{
    struct hb_canvas *c = v->c;
    double reach = fmax(1, find_quantile(c->arena, v->s, 0.98));
    int counts[BINS] = {0};
    int most = 1;
    reach = reach <= 2 ? 2 : reach <= 5 ? 5 : reach <= 12 ? 12 : reach <= 25 ? 25 : 60;
    for (uint32_t i = 0; i < v->s->count; i++) {
        int bin = (int)floor((v->s->cases[i].error_pct + reach) / (2 * reach) * BINS);
        bin = bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin;
        most = ++counts[bin] > most ? counts[bin] : most;
    }
    struct hb_frame f = {.x_name = name_error(v, reach), .y_name = "cases"};
    f.x = (struct hb_scale){.low = -reach, .high = reach, .unit = HB_UNIT_PERCENT};
    f.y = (struct hb_scale){.low = 0, .high = most * 1.08};
    if (!hb_frame_make(c, box, &f))
        return;
    hb_frame_draw(c, &f);
    for (int i = 0; i < BINS; i++) {
        double low = -reach + 2 * reach * i / BINS;
        struct hb_point corner = hb_frame_at(&f, low, counts[i]);
        double right = hb_scale_at(&f.x, low + 2 * reach / BINS);
        struct hb_box bar = {corner.x + 0.5, corner.y, fmax(0.3, right - corner.x - 1),
                             f.y.from_px - corner.y};
        hb_draw_add_box(c->draw, bar);
        const char *name =
            hb_arena_printf(c->arena, "%.3g to %.3g %%", low, low + 2 * reach / BINS);
        hb_canvas_add_cell(c, (struct hb_layout_cell){"histogram", name, NULL, bar, counts[i]});
    }
    hb_draw_fill(c->draw, hb_ink_group(c->look.theme, 0), 1);
}

static int make_keys(const struct view *v, struct hb_key *keys)
{
    struct hb_canvas *c = v->c;
    uint32_t axis = hb_canvas_ink(c, HB_INK_AXIS);
    uint32_t panel = hb_canvas_ink(c, HB_INK_PANEL);
    uint32_t groups = v->s->group_count < MAX_KEYS ? v->s->group_count : MAX_KEYS;
    int count = 0;
    keys[count++] = (struct hb_key){
        .rgb = hb_colour_mix(panel, axis, 0.33), .text = "within 5 %", .mark = HB_KEY_SWATCH};
    keys[count++] = (struct hb_key){
        .rgb = hb_colour_mix(panel, axis, 0.16), .text = "within 10 %", .mark = HB_KEY_SWATCH};
    if (groups == 1 && !*v->s->groups[0])
        return count;
    for (uint32_t i = 0; i < groups; i++)
        keys[count++] = (struct hb_key){.rgb = hb_ink_group(c->look.theme, (int)i),
                                        .text = v->s->groups[i],
                                        .mark = (int)mark_of(i)};
    return count;
}

/* Errors by size of the case, how often each error is, and what the marks mean. */
static void draw_side(struct view *v, struct hb_box side)
{
    struct hb_key keys[MAX_KEYS + 2];
    double em = v->c->em;
    int count = make_keys(v, keys);
    double legend = hb_legend_height(v->c, side.w - em, keys, count);
    legend = fmin(legend, side.h * 0.3);
    double panel = (side.h - legend - em * 1.6) / 2;
    draw_errors(v, (struct hb_box){side.x, side.y, side.w, panel});
    draw_histogram(v, (struct hb_box){side.x, side.y + panel + em * 0.8, side.w, panel});
    hb_legend_draw(v->c,
                   (struct hb_box){side.x + em, side.y + side.h - legend, side.w - em, legend},
                   keys, count);
}

static void make_scales(struct view *v)
{
    double low = INFINITY;
    double high = 0;
    for (uint32_t i = 0; i < v->s->count; i++) {
        const struct hb_scatter_case *one = &v->s->cases[i];
        low = fmin(low, fmin((double)one->measured_bytes, (double)one->predicted_bytes));
        high = fmax(high, fmax((double)one->measured_bytes, (double)one->predicted_bytes));
    }
    v->frame.x = hb_scale_make(high > 8 * low ? low : 0, high, HB_UNIT_BYTES, high > 8 * low);
    v->frame.y = v->frame.x;
    v->frame.x_name = "measured peak";
    v->frame.y_name = "predicted peak";
}

/* Groups by what stands before their first '/', where they are more than the legend has room for.
 */
static struct hb_scatter fold_groups(struct hb_arena *arena, const struct hb_scatter *s)
{
    struct hb_scatter folded = {.failed = s->failed};
    if (s->group_count <= MAX_KEYS)
        return *s;
    for (uint32_t i = 0; i < s->count; i++) {
        const char *name = s->groups[s->cases[i].group];
        hb_scatter_add(arena, &folded, s->cases[i],
                       hb_arena_strndup(arena, name, strcspn(name, "/")));
    }
    return folded;
}

void hb_scatter_draw(struct hb_canvas *c, const struct hb_scatter *all)
{
    struct hb_scatter folded = fold_groups(c->arena, all);
    const struct hb_scatter *s = &folded;
    struct view v = {.c = c, .s = s};
    const char *below = hb_arena_printf(c->arena, "%u cases%s", s->count + s->failed,
                                        s->failed ? hb_arena_printf(c->arena,
                                                                    ", %u without an "
                                                                    "answer (not drawn)",
                                                                    s->failed)
                                                  : "");
    double top = hb_canvas_title(c, hb_scatter_title(c->arena, s), below);
    struct hb_box page = {c->em, top, c->look.width - 2 * c->em, c->look.height - top - c->em};
    struct hb_box side = {0};
    if (page.w > c->em * 42 && page.h > c->em * 14) {
        side = page;
        side.w = fmin(page.w * 0.36, c->em * 28);
        side.x = page.x + page.w - side.w;
        page.w -= side.w + c->em * 1.5;
    }
    make_scales(&v);
    if (!hb_frame_make(c, page, &v.frame))
        return;
    hb_frame_draw(c, &v.frame);
    hb_draw_clip(c->draw, v.frame.area);
    draw_bands(&v);
    draw_cases(&v);
    hb_draw_unclip(c->draw);
    name_worst(&v);
    if (side.w > 0)
        draw_side(&v, side);
}
