/* Pictures of characters: see term.h. Each picture is a grid of cells, a cell one character with
 * an ink, written row by row; so no line can be wider than its grid. */
#include "plots/term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

enum { ROWS = 12, GUTTER = 10, MOST_ROWS = 25 };

/* ANSI colours (SGR codes) that stay readable on light and on dark. */
enum ink {
    INK_PLAIN = 0,
    INK_FITS = 34,
    INK_LACKS = 33,
    INK_BUDGET = 31,
    INK_BEST = 1,
    INK_FAINT = 2
};

enum sign {
    SIGN_BLOCK,
    SIGN_BUDGET,
    SIGN_BEST,
    SIGN_LACKS,
    SIGN_TIGHT,
    SIGN_NONE,
    SIGN_POINT,
    SIGN_OVER,
    SIGN_BAR,
    SIGN_EDGE
};

static const char *const signs[][2] = {
    [SIGN_BLOCK] = {"\xE2\x96\x88", "#"}, [SIGN_BUDGET] = {"\xE2\x94\x80", "-"},
    [SIGN_BEST] = {"\xE2\x98\x85", "*"},  [SIGN_LACKS] = {"\xE2\x96\x91", "x"},
    [SIGN_TIGHT] = {"\xE2\x96\x93", "~"}, [SIGN_NONE] = {"?", "?"},
    [SIGN_POINT] = {"\xC2\xB7", "."},     [SIGN_OVER] = {"\xE2\x96\xB4", "^"},
    [SIGN_BAR] = {"\xE2\x94\x82", "|"},   [SIGN_EDGE] = {"\xE2\x94\x94", "+"},
};

struct cell {
    const char *text; /* null: blank */
    enum ink ink;
};

struct grid {
    struct hb_arena *arena;
    const struct hb_term *term;
    int columns;
    int rows;
    struct cell *cells;
};

static struct grid make_grid(struct hb_arena *arena, const struct hb_term *t, int columns, int rows)
{
    struct grid g = {arena, t, columns, rows, NULL};
    g.cells = hb_arena_alloc(arena, (size_t)columns * (size_t)rows, sizeof *g.cells);
    return g;
}

static void put_cell(struct grid *g, int row, int column, const char *text, enum ink ink)
{
    if (row >= 0 && row < g->rows && column >= 0 && column < g->columns)
        g->cells[row * g->columns + column] = (struct cell){text, ink};
}

static const char *sign_text(const struct hb_term *t, enum sign sign)
{
    return signs[sign][t->unicode ? 0 : 1];
}

static size_t letter_bytes(const char *text)
{
    size_t n = 1;
    while (((unsigned char)text[n] & 0xC0) == 0x80)
        n++;
    return n;
}

/* One letter a cell, as many as there is room for; letters beyond ASCII become '?' where the
 * terminal does not show them. */
static void put_text(struct grid *g, int row, int column, const char *text, enum ink ink)
{
    for (; *text && column < g->columns; column++) {
        size_t n = letter_bytes(text);
        const char *letter = hb_arena_strndup(g->arena, text, n);
        bool times = n == 2 && memcmp(text, "\xC3\x97", 2) == 0;
        if (n > 1 && !g->term->unicode)
            letter = times ? "x" : "?";
        put_cell(g, row, column, letter, ink);
        text += n;
    }
}

static int text_columns(const char *text)
{
    int n = 0;
    for (; *text; text += letter_bytes(text))
        n++;
    return n;
}

static void set_ink(struct hb_str *out, const struct hb_term *t, enum ink ink)
{
    if (t->colour)
        hb_str_addf(out, "\x1b[%dm", (int)ink);
}

static void write_row(struct hb_str *out, const struct grid *g, int row)
{
    const struct cell *cells = &g->cells[row * g->columns];
    enum ink ink = INK_PLAIN;
    int last = g->columns;
    while (last > 0 && !cells[last - 1].text)
        last--;
    for (int i = 0; i < last; i++) {
        if (cells[i].ink != ink) {
            if (ink != INK_PLAIN)
                set_ink(out, g->term, INK_PLAIN);
            if (cells[i].ink != INK_PLAIN)
                set_ink(out, g->term, cells[i].ink);
            ink = cells[i].ink;
        }
        hb_str_add(out, cells[i].text ? cells[i].text : " ");
    }
    if (ink != INK_PLAIN)
        set_ink(out, g->term, INK_PLAIN);
    hb_str_add(out, "\n");
}

static void write_grid(struct hb_str *out, const struct grid *g)
{
    for (int row = 0; row < g->rows; row++)
        write_row(out, g, row);
}

/* One line of text, cut at the terminal's width. */
static void write_line(struct hb_str *out, const struct hb_term *t, const char *text, enum ink ink)
{
    struct grid g = make_grid(out->arena, t, t->width, 1);
    put_text(&g, 0, 0, text, ink);
    write_row(out, &g, 0);
}

/* A finding on as many lines as it takes, broken between words. */
static void write_title(struct hb_str *out, const struct hb_term *t, enum ink ink, const char *text)
{
    while (*text) {
        size_t taken = 0;
        int columns = 0;
        for (size_t at = 0; text[at] && columns < t->width; at += letter_bytes(text + at)) {
            columns++;
            size_t next = at + letter_bytes(text + at);
            if (!text[next] || text[next] == ' ')
                taken = next;
        }
        taken = taken ? taken : strlen(text); /* a long word is cut by write_line */
        write_line(out, t, hb_arena_strndup(out->arena, text, taken), ink);
        text += taken;
        text += strspn(text, " ");
    }
}

/* Right-aligned at the left of the axis. */
static void put_label(struct grid *g, int row, const char *text)
{
    int width = text_columns(text);
    put_text(g, row, width < GUTTER - 1 ? GUTTER - 1 - width : 0, text, INK_FAINT);
}

static void put_axis(struct grid *g, int rows)
{
    for (int row = 0; row < rows; row++)
        put_cell(g, row, GUTTER, sign_text(g->term, SIGN_BAR), INK_FAINT);
}

/* The highest total in each column of time. */
static void find_heights(const struct hb_outcome *o, double *heights, int columns)
{
    double end = o->step_seconds > 0 ? o->step_seconds : 1;
    for (uint32_t i = 0; i < o->sample_count; i++) {
        double until = i + 1 < o->sample_count ? o->seconds[i + 1] : end;
        double from = floor(o->seconds[i] / end * columns);
        double to = ceil(until / end * columns);
        double total = (double)hb_outcome_total(o, i);
        int end_column = (int)fmin(columns, fmax(from + 1, to));
        for (int c = (int)fmax(0, from); c < end_column; c++)
            heights[c] = fmax(heights[c], total);
    }
}

/* A column of blocks, its top in eighths where the terminal has them. */
static void put_column(struct grid *g, int column, double rows_high, double budget_rows)
{
    static const char *const eighths[] = {"\xE2\x96\x81", "\xE2\x96\x82", "\xE2\x96\x83",
                                          "\xE2\x96\x84", "\xE2\x96\x85", "\xE2\x96\x86",
                                          "\xE2\x96\x87", "\xE2\x96\x88"};
    for (int i = 0; i < ROWS; i++) {
        double full = rows_high - i;
        enum ink ink = budget_rows > 0 && i + 0.5 > budget_rows ? INK_BUDGET : INK_FITS;
        const char *text = sign_text(g->term, SIGN_BLOCK);
        int part = (int)ceil(fmin(1, full) * 8) - 1;
        if (full <= 0)
            return;
        if (full < 1 && g->term->unicode)
            text = eighths[part < 0 ? 0 : part];
        else if (full < 0.4)
            text = ".";
        put_cell(g, ROWS - 1 - i, column, text, ink);
    }
}

static int row_of(double share)
{
    return ROWS - 1 - (int)floor(fmin(share, 0.9999) * ROWS);
}

static void put_budget(struct grid *g, double share, const char *label)
{
    int row = row_of(share);
    for (int column = GUTTER + 1; column < g->columns; column++)
        if (!g->cells[row * g->columns + column].text)
            put_cell(g, row, column, sign_text(g->term, SIGN_BUDGET), INK_BUDGET);
    put_label(g, row, label);
}

/* "|forward    |loss|backward  |": each name where its phase begins, if it fits there. */
static void put_phases(struct grid *g, const struct hb_outcome *o, int row)
{
    double end = o->step_seconds > 0 ? o->step_seconds : 1;
    int columns = g->columns - GUTTER - 1;
    for (uint32_t i = 0; i < o->phase_count; i++) {
        int from = (int)(o->phases[i].start_seconds / end * columns);
        int to = (int)(o->phases[i].end_seconds / end * columns);
        put_cell(g, row, GUTTER + 1 + from, sign_text(g->term, SIGN_BAR), INK_FAINT);
        if (text_columns(o->phases[i].name) < to - from)
            put_text(g, row, GUTTER + 2 + from, o->phases[i].name, INK_FAINT);
    }
}

void hb_term_timeline(struct hb_str *out, const struct hb_term *t, const struct hb_outcome *o)
{
    char text[HB_TICK_TEXT];
    struct grid g = make_grid(out->arena, t, t->width, ROWS + 1);
    int columns = t->width - GUTTER - 1;
    double *heights = hb_arena_alloc(out->arena, (size_t)columns, sizeof *heights);
    double peak = (double)hb_outcome_total(o, hb_outcome_peak_sample(o));
    double budget = (double)o->budget_bytes;
    double top = budget > 0 && budget < 2 * peak ? fmax(peak, budget) * 1.02 : peak;
    top = top > 0 ? top : 1;
    find_heights(o, heights, columns);
    put_axis(&g, ROWS);
    for (int column = 0; column < columns; column++)
        put_column(&g, GUTTER + 1 + column, heights[column] / top * ROWS,
                   budget > 0 ? budget / top * ROWS : 0);
    put_label(&g, ROWS - 1, "0");
    int row = row_of(peak / top);
    if (budget > 0 && row == row_of(budget / top)) /* one label a row */
        row += budget > peak ? 1 : -1;
    put_label(&g, row, hb_unit_print(HB_UNIT_BYTES, peak, text));
    if (budget > 0 && budget / top < 1)
        put_budget(&g, budget / top, hb_unit_print(HB_UNIT_BYTES, budget, text));
    put_phases(&g, o, ROWS);
    char *step = hb_arena_alloc(out->arena, HB_TICK_TEXT, 1);
    if (o->step_seconds > 0)
        put_label(&g, ROWS, hb_unit_print(HB_UNIT_SECONDS, o->step_seconds, step));
    write_grid(out, &g);
}

struct map {
    struct grid *g;
    const struct hb_fit_map *m;
    uint32_t facet;
    int left;         /* columns of row names */
    int cell;         /* columns a cell */
    uint32_t every_x; /* only each so-manieth column of the sweep is shown */
    uint32_t every_y;
    bool lettered_x; /* letters stand for names that are too long, and are told below */
    bool lettered_y;
    double unit_bytes;
};

/* Whether a best cell, or the input's own, is this one, or one of those that it stands for. */
static bool holds(const struct map *map, uint32_t y, uint32_t x, bool own)
{
    const struct hb_fit_map *m = map->m;
    for (uint32_t i = y; i < y + map->every_y && i < m->y.count; i++)
        for (uint32_t k = x; k < x + map->every_x && k < m->x.count; k++) {
            const struct hb_fit_cell *cell = hb_fit_cell(m, map->facet, i, k);
            if (own ? cell->own : hb_fit_is_best(m, (uint32_t)(cell - m->cells)))
                return true;
        }
    return false;
}

/* a, b ... z, aa, ab ... */
static const char *letter_text(struct hb_arena *arena, uint32_t i, char first)
{
    const char *end = hb_arena_printf(arena, "%c", first + (char)(i % 26));
    return i < 26 ? end
                  : hb_arena_printf(arena, "%s%s", letter_text(arena, i / 26 - 1, first), end);
}

static const char *column_name(const struct map *map, uint32_t x)
{
    return map->lettered_x ? letter_text(map->g->arena, x, 'a') : map->m->x.text[x];
}

static const char *row_name(const struct map *map, uint32_t y)
{
    return map->lettered_y ? letter_text(map->g->arena, y, 'A') : map->m->y.text[y];
}

/* Around the cell of the input as it stands: [55.4#]. */
static void put_brackets(struct map *map, int row, int left, int right)
{
    put_cell(map->g, row, left, "[", INK_BEST);
    put_cell(map->g, row, right, "]", INK_BEST);
}

static void put_peak(struct map *map, int row, int column, uint32_t y, uint32_t x)
{
    const struct hb_fit_cell *cell = hb_fit_cell(map->m, map->facet, y, x);
    const struct hb_term *t = map->g->term;
    bool fits = hb_fit_fits(map->m, cell);
    bool best = holds(map, y, x, false), own = holds(map, y, x, true);
    enum ink ink = best ? INK_BEST : fits ? INK_FITS : INK_LACKS;
    enum sign sign = cell->peak_bytes < 0         ? SIGN_NONE
                     : best                       ? SIGN_BEST
                     : hb_fit_tight(map->m, cell) ? SIGN_TIGHT
                     : fits                       ? SIGN_BLOCK
                                                  : SIGN_LACKS;
    int end = column + map->cell - 1;
    put_cell(map->g, row, end, sign_text(t, sign), ink);
    if (map->cell < 6 || cell->peak_bytes < 0) {
        if (own && map->cell > 1)
            put_brackets(map, row, end - 1, end + 1);
        return;
    }
    double shown = (double)cell->peak_bytes / map->unit_bytes;
    const char *text = hb_arena_printf(map->g->arena, "%.*f", shown < 99.95 ? 1 : 0, shown);
    int width = text_columns(text);
    if (width > map->cell - 2)
        text = t->unicode ? "\xE2\x80\xA6" : ">";
    width = text_columns(text);
    put_text(map->g, row, end - width, text, ink);
    if (own)
        put_brackets(map, row, end - width - 1, end + 1);
}

static void put_map(struct map *map)
{
    const struct hb_fit_map *m = map->m;
    int row = 0;
    for (uint32_t y = m->y.count; y-- > 0;) {
        if (y % map->every_y)
            continue;
        int width = text_columns(row_name(map, y));
        put_text(map->g, row, width < map->left - 1 ? map->left - 1 - width : 0, row_name(map, y),
                 INK_FAINT);
        for (uint32_t x = 0; x < m->x.count; x += map->every_x)
            put_peak(map, row, map->left + (int)(x / map->every_x) * map->cell, y, x);
        row++;
    }
    int end = 0; /* of the last column name: one blank stays between two */
    for (uint32_t x = 0; x < m->x.count; x += map->every_x) {
        int width = text_columns(column_name(map, x));
        int at = map->left + (int)(x / map->every_x + 1) * map->cell - width;
        if (at < end + 1)
            continue;
        put_text(map->g, row, at, column_name(map, x), INK_FAINT);
        end = at + width;
    }
}

static int widest_name(const struct hb_fit_axis *axis)
{
    int widest = 0;
    for (uint32_t i = 0; i < axis->count; i++)
        if (text_columns(axis->text[i]) > widest)
            widest = text_columns(axis->text[i]);
    return widest;
}

/* Of numbers some may go without their name; of words each is told whole: wider cells where there
 * is room for them, else letters. */
static void lay_columns(struct map *map, int room)
{
    const struct hb_fit_map *m = map->m;
    int columns = (int)((m->x.count + map->every_x - 1) / map->every_x);
    int needed = widest_name(&m->x) + 2;
    if (!hb_fit_is_words(&m->x) || needed <= map->cell)
        return;
    if (needed <= room / columns)
        map->cell = needed;
    else
        map->lettered_x = true;
}

/* Cells with numbers where the width allows, signs alone where not, and only some of the columns
 * where even those are too many. */
static void lay_map(struct map *map, int width)
{
    const struct hb_fit_map *m = map->m;
    map->left = widest_name(&m->y) + 1 > 2 ? widest_name(&m->y) + 1 : 2;
    map->lettered_y = map->left > width / 3;
    if (map->lettered_y)
        map->left = 4;
    int room = width - map->left - 1; /* a bracket may stand at the end */
    map->every_y = (m->y.count + MOST_ROWS - 1) / MOST_ROWS;
    map->every_x = (m->x.count + (uint32_t)room - 1) / (uint32_t)room;
    map->cell = room / (int)((m->x.count + map->every_x - 1) / map->every_x);
    map->cell = map->cell >= 8 ? 8 : map->cell >= 6 ? map->cell : map->cell >= 2 ? 2 : 1;
    lay_columns(map, room);
}

static bool any_tight(const struct hb_fit_map *m)
{
    uint32_t count = m->x.count * m->y.count * m->facet_count;
    for (uint32_t i = 0; i < count; i++)
        if (hb_fit_tight(m, &m->cells[i]))
            return true;
    return false;
}

/* A line for each letter that stands for a name. */
static void write_letters(struct hb_str *out, const struct hb_term *t,
                          const struct hb_fit_axis *axis, char first)
{
    for (uint32_t i = 0; i < axis->count; i++)
        write_title(out, t, INK_PLAIN,
                    hb_arena_printf(out->arena, "  %s  %s", letter_text(out->arena, i, first),
                                    axis->text[i]));
}

static bool any_missing(const struct hb_fit_map *m)
{
    for (uint32_t i = 0; i < m->x.count * m->y.count * m->facet_count; i++)
        if (m->cells[i].peak_bytes < 0)
            return true;
    return false;
}

static void write_legend(struct hb_str *out, const struct hb_term *t, const struct map *map)
{
    const char *unit = hb_unit_for(HB_UNIT_BYTES, (double)map->m->budget_bytes, &(double){0});
    bool tight = any_tight(map->m);
    bool own = hb_fit_own(map->m) != HB_NONE && map->cell > 1;
    const char *text = hb_arena_printf(
        out->arena, "%s fits  %s%s%s does not  %s best%s%s%s%s", sign_text(t, SIGN_BLOCK),
        tight ? sign_text(t, SIGN_TIGHT) : "", tight ? " may not  " : "", sign_text(t, SIGN_LACKS),
        sign_text(t, SIGN_BEST), any_missing(map->m) ? "  ? cannot be" : "",
        own ? "  [ ] as it stands" : "", map->cell >= 6 ? "; peak in " : "",
        map->cell >= 6 ? unit : "");
    if (map->every_x > 1 || map->every_y > 1)
        text = hb_arena_printf(out->arena, "%s; 1 of %u columns and of %u rows", text, map->every_x,
                               map->every_y);
    write_title(out, t, INK_PLAIN, text);
}

void hb_term_fit(struct hb_str *out, const struct hb_term *t, const struct hb_fit_map *m)
{
    struct map map = {.m = m};
    lay_map(&map, t->width);
    hb_unit_for(HB_UNIT_BYTES, (double)m->budget_bytes, &map.unit_bytes);
    for (map.facet = 0; map.facet < m->facet_count; map.facet++) {
        uint32_t rows = (m->y.count + map.every_y - 1) / map.every_y;
        struct grid g = make_grid(out->arena, t, t->width, (int)rows + 1);
        const char *finding = hb_fit_finding(out->arena, m, map.facet);
        if (m->facets)
            finding = hb_arena_printf(out->arena, "%s: %s", m->facets[map.facet], finding);
        write_title(out, t, INK_BEST, finding);
        map.g = &g;
        put_map(&map);
        write_grid(out, &g);
    }
    write_line(out, t,
               hb_arena_printf(out->arena, "across: %s%s%s", m->x.key, *m->y.key ? ", up: " : "",
                               m->y.key),
               INK_FAINT);
    if (map.lettered_x)
        write_letters(out, t, &m->x, 'a');
    if (map.lettered_y)
        write_letters(out, t, &m->y, 'A');
    write_legend(out, t, &map);
}

struct field {
    struct grid *g;
    const struct hb_pareto *p;
    double low_s, high_s, low_b, high_b;
};

static void put_point(struct field *f, uint32_t i, const char *text, enum ink ink)
{
    const struct hb_pareto_point *q = &f->p->points[i];
    int columns = f->g->columns - GUTTER - 1;
    double x = (q->step_seconds - f->low_s) / (f->high_s - f->low_s);
    double y = ((double)q->peak_bytes - f->low_b) / (f->high_b - f->low_b);
    int column = GUTTER + 1 + (int)(x * (columns - 1) + 0.5);
    int row = ROWS - 1 - (int)(y * (ROWS - 1) + 0.5);
    put_cell(f->g, row, column, text, ink);
}

static void find_limits(struct field *f)
{
    f->low_s = f->low_b = INFINITY;
    for (uint32_t i = 0; i < f->p->count; i++) {
        f->low_s = fmin(f->low_s, f->p->points[i].step_seconds);
        f->high_s = fmax(f->high_s, f->p->points[i].step_seconds);
        f->low_b = fmin(f->low_b, (double)f->p->points[i].peak_bytes);
        f->high_b = fmax(f->high_b, (double)f->p->points[i].peak_bytes);
    }
    if (f->high_s <= f->low_s)
        f->high_s = f->low_s + 1;
    if (f->high_b <= f->low_b)
        f->high_b = f->low_b + 1;
}

static const char *number_text(struct hb_arena *arena, int n)
{
    return n < 10 ? hb_arena_printf(arena, "%d", n) : "+";
}

static void put_points(struct field *f)
{
    const struct hb_pareto *p = f->p;
    const struct hb_term *t = f->g->term;
    int number = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        bool over = p->budget_bytes > 0 && p->points[i].peak_bytes > p->budget_bytes;
        if (p->points[i].rank == HB_RANK_OTHER)
            put_point(f, i, sign_text(t, over ? SIGN_OVER : SIGN_POINT),
                      over ? INK_LACKS : INK_FITS);
    }
    for (uint32_t i = 0; i < p->count; i++)
        if (p->points[i].rank == HB_RANK_RUNNER_UP)
            put_point(f, i, number_text(f->g->arena, ++number), INK_BEST);
    if (p->plan != HB_NONE)
        put_point(f, p->plan, sign_text(t, SIGN_BEST), INK_BEST);
}

static void write_name(struct hb_str *out, const struct hb_term *t, const struct hb_pareto_point *q,
                       const char *sign)
{
    char step[HB_TICK_TEXT];
    char peak[HB_TICK_TEXT];
    hb_unit_print(HB_UNIT_SECONDS, q->step_seconds, step);
    hb_unit_print(HB_UNIT_BYTES, (double)q->peak_bytes, peak);
    write_line(out, t, hb_arena_printf(out->arena, "  %s %10s %10s  %s", sign, step, peak, q->name),
               INK_PLAIN);
}

static void write_names(struct hb_str *out, const struct hb_term *t, const struct hb_pareto *p)
{
    int number = 0;
    if (p->plan != HB_NONE)
        write_name(out, t, &p->points[p->plan], sign_text(t, SIGN_BEST));
    for (uint32_t i = 0; i < p->count; i++)
        if (p->points[i].rank == HB_RANK_RUNNER_UP)
            write_name(out, t, &p->points[i], number_text(out->arena, ++number));
}

void hb_term_pareto(struct hb_str *out, const struct hb_term *t, const struct hb_pareto *p)
{
    char text[HB_TICK_TEXT];
    struct grid g = make_grid(out->arena, t, t->width, ROWS + 2);
    struct field f = {.g = &g, .p = p};
    find_limits(&f);
    write_title(out, t, INK_BEST, hb_pareto_title(out->arena, p));
    put_axis(&g, ROWS);
    put_points(&f);
    put_label(&g, 0, hb_arena_strdup(out->arena, hb_unit_print(HB_UNIT_BYTES, f.high_b, text)));
    put_label(&g, ROWS - 1, hb_unit_print(HB_UNIT_BYTES, f.low_b, text));
    double budget = ((double)p->budget_bytes - f.low_b) / (f.high_b - f.low_b);
    if (p->budget_bytes > 0 && budget >= 0 && budget < 1)
        put_budget(&g, budget, hb_unit_print(HB_UNIT_BYTES, (double)p->budget_bytes, text));
    put_cell(&g, ROWS, GUTTER, sign_text(t, SIGN_EDGE), INK_FAINT);
    for (int column = GUTTER + 1; column < g.columns; column++)
        put_cell(&g, ROWS, column, sign_text(t, SIGN_BUDGET), INK_FAINT);
    put_text(&g, ROWS + 1, GUTTER + 1, hb_unit_print(HB_UNIT_SECONDS, f.low_s, text), INK_FAINT);
    hb_unit_print(HB_UNIT_SECONDS, f.high_s, text);
    put_text(&g, ROWS + 1, g.columns - text_columns(text), text, INK_FAINT);
    write_grid(out, &g);
    write_names(out, t, p);
}
