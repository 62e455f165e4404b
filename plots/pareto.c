/* The Pareto picture: see pareto.h. */
#include "plots/pareto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/size.h"
#include "base/str.h"
#include "plots/reading.h"
#include "plots/frame.h"
#include "plots/place.h"

enum { LISTED = 6 };

/* A point from an object that has both numbers, or has them in its "prediction". */
static bool read_point(struct hb_reading *f, const struct hb_node *node, enum hb_pareto_rank rank,
                       struct hb_pareto_point *out)
{
    const struct hb_node *from = hb_node_find(node, "prediction");
    from = from && from->kind == HB_NODE_MAP ? from : node;
    *out = (struct hb_pareto_point){.name = "", .peak_bytes = -1, .rank = rank};
    hb_reading_text(f, node, "name", &out->name);
    hb_reading_bytes(f, from, "peak_bytes", 0, &out->peak_bytes);
    hb_reading_real(f, from, "step_seconds", &out->step_seconds);
    return out->peak_bytes >= 0 && out->step_seconds > 0;
}

static void read_list(struct hb_reading *f, const struct hb_node *list, enum hb_pareto_rank rank,
                      struct hb_pareto *out)
{
    for (const struct hb_node *node = list ? list->first : NULL; node; node = node->next)
        out->count += read_point(f, node, rank, &out->points[out->count]);
}

bool hb_pareto_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                    struct hb_pareto *out)
{
    struct hb_reading f = {arena, diag, true};
    *out = (struct hb_pareto){.name = "", .plan = HB_NONE};
    const struct hb_node *points = hb_reading_list(&f, json, "points");
    const struct hb_node *others = hb_reading_list(&f, json, "alternatives");
    const struct hb_node *prediction = hb_reading_map(&f, json, "prediction");
    const struct hb_node *fastest = hb_reading_map(&f, json, "fastest");
    size_t room = (points ? points->count : 0) + (others ? others->count : 0) + 2;
    out->points = hb_arena_alloc(arena, room, sizeof *out->points);
    hb_reading_text(&f, json, "name", &out->name);
    out->place = hb_place_read(arena, json, HB_WHERE_COUNT);
    const char *status = "";
    hb_reading_text(&f, json, "status", &status);
    out->cut_off = strcmp(status, "limit") == 0;
    hb_reading_real(&f, json, "considered", &out->considered);
    hb_reading_bytes(&f, json, "budget_bytes", 0, &out->budget_bytes);
    if (prediction)
        hb_reading_bytes(&f, prediction, "budget_bytes", 0, &out->budget_bytes);
    read_list(&f, points, HB_RANK_OTHER, out);
    read_list(&f, others, HB_RANK_RUNNER_UP, out);
    if (prediction && read_point(&f, json, HB_RANK_PLAN, &out->points[out->count])) {
        out->points[out->count].name = "plan";
        hb_reading_text(&f, json, "plan_name", &out->points[out->count].name);
        out->plan = out->count++;
    }
    if (fastest)
        out->count += read_point(&f, fastest, HB_RANK_RUNNER_UP, &out->points[out->count]);
    if (out->count == 0 && f.ok)
        hb_reading_wrong(&f, json, "plan", "a prediction, alternatives or points to draw");
    return f.ok;
}

struct ranked {
    double seconds;
    int64_t bytes;
    uint32_t index;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a;
    const struct ranked *y = b;
    if (x->seconds < y->seconds || x->seconds > y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

uint32_t hb_pareto_front(struct hb_arena *arena, const struct hb_pareto *p, uint32_t **out)
{
    struct ranked *sorted = hb_arena_alloc(arena, p->count, sizeof *sorted);
    uint32_t count = 0;
    int64_t least = INT64_MAX;
    *out = hb_arena_alloc(arena, p->count, sizeof **out);
    for (uint32_t i = 0; i < p->count; i++)
        sorted[i] = (struct ranked){p->points[i].step_seconds, p->points[i].peak_bytes, i};
    qsort(sorted, p->count, sizeof *sorted, compare_ranked);
    for (uint32_t i = 0; i < p->count; i++)
        if (sorted[i].bytes < least) {
            least = sorted[i].bytes;
            (*out)[count++] = sorted[i].index;
        }
    return count;
}

static const struct hb_pareto_point *find_runner_up(const struct hb_pareto *p)
{
    const struct hb_pareto_point *best = NULL;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->points[i].rank == HB_RANK_RUNNER_UP &&
            (!best || p->points[i].step_seconds < best->step_seconds))
            best = &p->points[i];
    return best;
}

static const char *title_without_plan(struct hb_arena *arena, const struct hb_pareto *p)
{
    char least[HB_TICK_TEXT];
    char budget[HB_TICK_TEXT];
    int64_t bytes = INT64_MAX;
    for (uint32_t i = 0; i < p->count; i++)
        bytes = p->points[i].peak_bytes < bytes ? p->points[i].peak_bytes : bytes;
    hb_unit_print(HB_UNIT_BYTES, (double)bytes, least);
    hb_unit_print(HB_UNIT_BYTES, (double)p->budget_bytes, budget);
    if (p->budget_bytes == 0)
        return hb_arena_printf(arena, "the smallest of %u takes %s", p->count, least);
    if (p->cut_off)
        return hb_arena_printf(
            arena, "no plan yet: the search was cut off; the smallest drawn takes %s of %s", least,
            budget);
    return hb_arena_printf(arena, "nothing fits into %s%s: the smallest%s takes %s", budget,
                           bytes <= p->budget_bytes ? " with its margin" : "",
                           find_runner_up(p) ? "" : " drawn", least);
}

const char *hb_pareto_title(struct hb_arena *arena, const struct hb_pareto *p)
{
    char step[HB_TICK_TEXT];
    char peak[HB_TICK_TEXT];
    char budget[HB_TICK_TEXT];
    if (p->plan == HB_NONE)
        return title_without_plan(arena, p);
    const struct hb_pareto_point *plan = &p->points[p->plan];
    const struct hb_pareto_point *next = find_runner_up(p);
    hb_unit_print(HB_UNIT_SECONDS, plan->step_seconds, step);
    hb_unit_print(HB_UNIT_BYTES, (double)plan->peak_bytes, peak);
    hb_unit_print(HB_UNIT_BYTES, (double)p->budget_bytes, budget);
    const char *title =
        hb_arena_printf(arena, "plan%s: %s a step at %s%s%s", p->cut_off ? " so far" : "", step,
                        peak, p->budget_bytes > 0 ? " of " : "", p->budget_bytes > 0 ? budget : "");
    if (!next)
        return title;
    double slower = 100 * (next->step_seconds / plan->step_seconds - 1);
    return hb_arena_printf(arena, "%s; the next takes %.*f %% %s", title, fabs(slower) < 10 ? 1 : 0,
                           fabs(slower), slower < 0 ? "less time" : "longer");
}

struct view {
    struct hb_canvas *c;
    const struct hb_pareto *p;
    struct hb_frame frame;
    uint32_t rows;       /* of the list below */
    double list_size;    /* of its names */
    double most_seconds; /* slower ones are not drawn ... */
    uint32_t outside;    /* ... and are so many */
};

static struct hb_point point_at(const struct view *v, uint32_t i)
{
    return hb_frame_at(&v->frame, v->p->points[i].step_seconds, (double)v->p->points[i].peak_bytes);
}

static void draw_front(struct view *v)
{
    uint32_t *front;
    uint32_t count = hb_pareto_front(v->c->arena, v->p, &front);
    struct hb_point *path = hb_arena_alloc(v->c->arena, (size_t)count * 2 + 1, sizeof *path);
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (v->p->points[front[i]].step_seconds > v->most_seconds)
            continue;
        struct hb_point at = point_at(v, front[i]);
        if (n > 0) {
            path[n] = (struct hb_point){at.x, path[n - 1].y};
            n++;
        }
        path[n++] = at;
        hb_canvas_add_point(
            v->c, (struct hb_layout_point){"front", at, v->p->points[front[i]].step_seconds,
                                           (double)v->p->points[front[i]].peak_bytes, NULL, 0});
    }
    hb_draw_path(v->c->draw, path, n,
                 (struct hb_pen){hb_ink_group(v->c->look.theme, 0), 1.6, false});
    hb_canvas_keep_path_free(v->c, path, n);
}

static const char *note_of(const struct view *v, const struct hb_pareto_point *q)
{
    char step[HB_TICK_TEXT];
    char peak[HB_TICK_TEXT];
    return hb_arena_printf(v->c->arena, "%s%s%s, %s", q->name, *q->name ? ": " : "",
                           hb_unit_print(HB_UNIT_SECONDS, q->step_seconds, step),
                           hb_unit_print(HB_UNIT_BYTES, (double)q->peak_bytes, peak));
}

static bool point_fits(const struct hb_pareto *p, const struct hb_pareto_point *q)
{
    return p->budget_bytes == 0 || q->peak_bytes <= p->budget_bytes;
}

static void draw_points(struct view *v, enum hb_pareto_rank rank)
{
    struct hb_canvas *c = v->c;
    uint32_t back = hb_canvas_ink(c, HB_INK_BACK);
    for (uint32_t i = 0; i < v->p->count; i++) {
        const struct hb_pareto_point *q = &v->p->points[i];
        if (q->rank != rank || q->step_seconds > v->most_seconds)
            continue;
        struct hb_point at = point_at(v, i);
        bool over = !point_fits(v->p, q);
        uint32_t rgb = hb_ink_group(c->look.theme, over ? 1 : 0);
        if (rank == HB_RANK_PLAN)
            hb_draw_star(c->draw, at, c->em * 0.85, hb_canvas_ink(c, HB_INK_BEST), back);
        else if (rank == HB_RANK_RUNNER_UP)
            hb_draw_mark(c->draw, at, HB_MARK_DIAMOND, c->em * 0.42, rgb, back);
        else
            hb_draw_mark(c->draw, at, over ? HB_MARK_TRIANGLE : HB_MARK_DISC, fmax(2, c->em * 0.25),
                         hb_colour_mix(rgb, back, 0.2), back);
        static const char *const names[] = {"points", "runners-up", "plan"};
        hb_canvas_add_point(c, (struct hb_layout_point){names[rank], at, q->step_seconds,
                                                        (double)q->peak_bytes, note_of(v, q), 0});
    }
}

/* The index of the n-th runner-up, from 0, or HB_NONE. */
static uint32_t find_ranked(const struct hb_pareto *p, uint32_t n)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->points[i].rank == HB_RANK_RUNNER_UP && n-- == 0)
            return i;
    return HB_NONE;
}

/* Whether two marks stand so close that a name cannot be told to be of one of them. */
static bool are_one(const struct view *v, uint32_t i, uint32_t k)
{
    struct hb_point a = point_at(v, i), b = point_at(v, k);
    return hypot(a.x - b.x, a.y - b.y) < v->c->em * 1.5;
}

/* The name of a mark with those of the listed ones that stand on it: "plan, 1, 2". */
static const char *name_with_near(struct view *v, const char *name, uint32_t at, bool *named)
{
    for (uint32_t n = 0; n + 1 < v->rows; n++) {
        uint32_t i = find_ranked(v->p, n);
        if (i == HB_NONE || named[n] || !are_one(v, i, at))
            continue;
        named[n] = true;
        name = hb_arena_printf(v->c->arena, "%s%s%u", name, *name ? ", " : "", n + 1);
    }
    return name;
}

/* Numbers, which the list below the picture explains. */
static void name_points(struct view *v)
{
    struct hb_canvas *c = v->c;
    bool named[LISTED] = {false};
    struct hb_style style = hb_canvas_style(c, "point");
    style.plated = true;
    style.plate = hb_canvas_ink(c, HB_INK_PANEL);
    style.bold = true;
    if (v->p->plan != HB_NONE)
        hb_canvas_label_near(c, name_with_near(v, "plan", v->p->plan, named),
                             point_at(v, v->p->plan), v->frame.area, style);
    style.size = fmax(6, c->em * 0.9);
    for (uint32_t n = 0; n + 1 < v->rows; n++) {
        uint32_t i = find_ranked(v->p, n);
        if (i != HB_NONE && !named[n])
            hb_canvas_label_near(c, name_with_near(v, "", i, named), point_at(v, i), v->frame.area,
                                 style);
    }
}

/* Of the list's names, one for all: a little smaller where they would be cut. */
static double choose_list_size(struct view *v, double width)
{
    struct hb_style style = hb_canvas_style(v->c, "list");
    double widest = 1, room = width - v->c->em * 16;
    for (uint32_t i = 0; i < v->p->count; i++)
        if (v->p->points[i].rank != HB_RANK_OTHER)
            widest = fmax(widest, hb_canvas_width(v->c, v->p->points[i].name, &style));
    return fmax(6, style.size * fmax(0.8, fmin(1, room / widest)));
}

static double list_line(const struct hb_canvas *c)
{
    struct hb_style style = hb_canvas_style(c, "list");
    return hb_canvas_line(c, &style) * 1.05;
}

static void list_row(struct view *v, struct hb_point at, double width, const char *mark, uint32_t i)
{
    struct hb_canvas *c = v->c;
    const struct hb_pareto_point *q = &v->p->points[i];
    struct hb_style style = hb_canvas_style(c, "list");
    char step[HB_TICK_TEXT], peak[HB_TICK_TEXT];
    style.bold = true;
    double left = c->em * 3.4;
    hb_canvas_label(c, mark, at, style);
    style.bold = false;
    const char *figures =
        hb_arena_printf(c->arena, "%s, %s", hb_unit_print(HB_UNIT_SECONDS, q->step_seconds, step),
                        hb_unit_print(HB_UNIT_BYTES, (double)q->peak_bytes, peak));
    double right = hb_canvas_width(c, figures, &style) + c->em;
    style.size = v->list_size;
    const char *name = hb_canvas_shorten(c, q->name, width - left - right, &style);
    hb_canvas_label(c, name, (struct hb_point){at.x + left, at.y}, style);
    style.size = c->em;
    style.across = HB_ALIGN_END;
    hb_canvas_label(c, figures, (struct hb_point){at.x + width, at.y}, style);
}

/* The plan and its runners-up in full, as many as there is room for. */
static void draw_list(struct view *v, struct hb_box box)
{
    uint32_t rows = 0;
    double line = list_line(v->c);
    if (v->rows && v->p->plan != HB_NONE)
        list_row(v, (struct hb_point){box.x, box.y + line * rows++}, box.w, "plan", v->p->plan);
    for (uint32_t n = 0; rows < v->rows; n++) {
        uint32_t i = find_ranked(v->p, n);
        if (i == HB_NONE)
            return;
        list_row(v, (struct hb_point){box.x, box.y + line * rows++}, box.w,
                 hb_arena_printf(v->c->arena, "%u", n + 1), i);
    }
}

/* Rows of the list: no more than leave the plot most of the page. */
static uint32_t count_rows(const struct hb_canvas *c, const struct hb_pareto *p, double height)
{
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < p->count; i++)
        wanted += p->points[i].rank != HB_RANK_OTHER;
    double room = floor((height - c->em * 25) / list_line(c));
    wanted = wanted < LISTED ? wanted : LISTED;
    return room < 1 ? 0 : room < wanted ? (uint32_t)room : wanted;
}

/* Marks keep their own place free of names. */
static void keep_marks_free(struct view *v)
{
    for (uint32_t i = 0; i < v->p->count; i++) {
        double reach = v->c->em * (v->p->points[i].rank == HB_RANK_PLAN ? 0.7 : 0.35);
        struct hb_point at = point_at(v, i);
        if (v->p->points[i].step_seconds <= v->most_seconds)
            hb_canvas_keep_free(v->c,
                                (struct hb_box){at.x - reach, at.y - reach, 2 * reach, 2 * reach});
    }
}

/* Nobody looks for a configuration that takes several times as long as the plan, or as the fastest
 * where there is none; what is listed stays. */
static void cut_slow(struct view *v)
{
    static const double times = 3;
    const struct hb_pareto *p = v->p;
    double fastest = INFINITY, listed = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        fastest = fmin(fastest, p->points[i].step_seconds);
        if (p->points[i].rank != HB_RANK_OTHER)
            listed = fmax(listed, p->points[i].step_seconds);
    }
    if (p->plan != HB_NONE)
        fastest = p->points[p->plan].step_seconds;
    v->most_seconds = fmax(times * fastest, listed);
    for (uint32_t i = 0; i < p->count; i++)
        v->outside += p->points[i].step_seconds > v->most_seconds;
}

static const char *make_subtitle(struct view *v)
{
    struct hb_str s;
    char text[HB_TICK_TEXT];
    hb_str_init(&s, v->c->arena);
    hb_str_add(&s, hb_place_under(v->c->arena, v->p->name, v->p->place));
    if (v->p->considered > 0)
        hb_str_addf(&s, "%s%u drawn of %s considered", s.len ? "  \xC2\xB7  " : "",
                    v->p->count - v->outside, hb_count_print(v->p->considered, text));
    if (v->outside)
        hb_str_addf(&s, "%s%u slower than %s not drawn", s.len ? "  \xC2\xB7  " : "", v->outside,
                    hb_unit_print(HB_UNIT_SECONDS, v->most_seconds, text));
    return s.len ? s.text : NULL;
}

static void make_scales(struct view *v)
{
    const struct hb_pareto *p = v->p;
    double low_s = INFINITY, high_s = 0, low_b = INFINITY, high_b = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->points[i].step_seconds > v->most_seconds)
            continue;
        low_s = fmin(low_s, p->points[i].step_seconds);
        high_s = fmax(high_s, p->points[i].step_seconds);
        low_b = fmin(low_b, (double)p->points[i].peak_bytes);
        high_b = fmax(high_b, (double)p->points[i].peak_bytes);
    }
    if (p->budget_bytes > 0 && (double)p->budget_bytes < 4 * high_b) {
        low_b = fmin(low_b, (double)p->budget_bytes);
        high_b = fmax(high_b, (double)p->budget_bytes * 1.02);
    }
    bool wide_s = high_s > 8 * low_s;
    bool wide_b = low_b > 0 && high_b > 8 * low_b;
    v->frame.x = hb_scale_make(low_s, high_s, HB_UNIT_SECONDS, wide_s);
    v->frame.y = hb_scale_make(low_b, high_b, HB_UNIT_BYTES, wide_b);
    v->frame.x_name = "step time";
    v->frame.y_name = "peak memory of a device";
}

enum { KEYS = 4 };

/* Of what is drawn. */
static int make_keys(const struct view *v, struct hb_key *keys)
{
    uint32_t fits = hb_ink_group(v->c->look.theme, 0);
    bool within = false, above = false, next = false;
    int count = 0;
    for (uint32_t i = 0; i < v->p->count; i++) {
        const struct hb_pareto_point *q = &v->p->points[i];
        if (q->step_seconds > v->most_seconds)
            continue;
        within |= q->rank == HB_RANK_OTHER && point_fits(v->p, q);
        above |= q->rank == HB_RANK_OTHER && !point_fits(v->p, q);
        next |= q->rank == HB_RANK_RUNNER_UP;
    }
    if (within)
        keys[count++] = (struct hb_key){fits, "fits", NULL, false, HB_MARK_DISC};
    if (above)
        keys[count++] = (struct hb_key){hb_ink_group(v->c->look.theme, 1), "does not fit", NULL,
                                        false, HB_MARK_TRIANGLE};
    if (next)
        keys[count++] = (struct hb_key){fits, "runner-up", NULL, false, HB_MARK_DIAMOND};
    keys[count++] = (struct hb_key){fits, "front of those drawn", NULL, false, HB_KEY_LINE};
    return count;
}

void hb_pareto_draw(struct hb_canvas *c, const struct hb_pareto *p)
{
    char text[HB_TICK_TEXT];
    struct view v = {.c = c, .p = p};
    cut_slow(&v);
    double top = hb_canvas_title(c, hb_pareto_title(c->arena, p), make_subtitle(&v));
    struct hb_box page = {c->em, top, c->look.width - 2 * c->em, c->look.height - top - c->em};
    struct hb_key keys[KEYS];
    int key_count = make_keys(&v, keys);
    double legend = hb_legend_height(c, page.w, keys, key_count);
    legend = page.h > legend + c->em * 14 ? legend : 0;
    page.h -= legend > 0 ? legend + c->em * 0.5 : 0;
    v.rows = count_rows(c, p, page.h);
    v.list_size = choose_list_size(&v, page.w);
    double list = v.rows * list_line(c);
    page.h -= v.rows ? list + c->em * 0.4 : 0;
    make_scales(&v);
    if (!hb_frame_make(c, page, &v.frame))
        return;
    hb_frame_draw(c, &v.frame);
    hb_draw_clip(c->draw, v.frame.area);
    draw_points(&v, HB_RANK_OTHER);
    draw_front(&v);
    draw_points(&v, HB_RANK_RUNNER_UP);
    draw_points(&v, HB_RANK_PLAN);
    hb_draw_unclip(c->draw);
    keep_marks_free(&v);
    hb_unit_print(HB_UNIT_BYTES, (double)p->budget_bytes, text);
    if (p->budget_bytes > 0)
        hb_frame_level(c, &v.frame, (double)p->budget_bytes,
                       hb_arena_printf(c->arena, "budget %s", text), "budget", 0);
    name_points(&v);
    struct hb_box foot = {page.x, page.y + page.h + c->em * 0.5, page.w, legend};
    if (legend > 0)
        hb_legend_draw(c, foot, keys, key_count);
    draw_list(&v, (struct hb_box){page.x, c->look.height - list - c->em * 0.5, page.w, list});
}
