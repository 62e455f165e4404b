/* The JSON of a sweep, and what it finds: see fit.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/str.h"
#include "plots/reading.h"
#include "plots/fit.h"
#include "plots/place.h"

enum { MAX_CELLS = 1 << 20 };

static void read_value(struct hb_reading *f, const struct hb_node *node, struct hb_fit_axis *axis,
                       uint32_t i)
{
    if (node->kind == HB_NODE_SCALAR)
        hb_fit_set_value(f->arena, axis, i, node->text);
    else
        hb_reading_wrong(f, node, "values", "a number or text");
}

static bool read_axis(struct hb_reading *f, const struct hb_node *json, const char *key,
                      struct hb_fit_axis *axis)
{
    const struct hb_node *map = hb_reading_map(f, json, key);
    const struct hb_node *values = map ? hb_reading_list(f, map, "values") : NULL;
    *axis = (struct hb_fit_axis){.key = key};
    if (!values || values->count == 0) {
        hb_reading_wrong(f, json, key, "an axis {key, values} with at least one value");
        return false;
    }
    hb_reading_text(f, map, "key", &axis->key);
    axis->raw = hb_arena_alloc(f->arena, values->count, sizeof *axis->raw);
    axis->text = hb_arena_alloc(f->arena, values->count, sizeof *axis->text);
    axis->value = hb_arena_alloc(f->arena, values->count, sizeof *axis->value);
    axis->count = values->count;
    uint32_t i = 0;
    for (const struct hb_node *node = values->first; node; node = node->next)
        read_value(f, node, axis, i++);
    return f->ok;
}

static bool find_value(const struct hb_fit_axis *axis, const struct hb_node *node, uint32_t *out)
{
    double value;
    bool number = node && hb_node_real(node, &value);
    if (!node || node->kind != HB_NODE_SCALAR)
        return false;
    for (uint32_t i = 0; i < axis->count; i++)
        if ((number && axis->value[i] == value) || strcmp(axis->raw[i], node->text) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* Index of the cell that node names by x, y and facet. */
static bool find_cell(struct hb_reading *f, const struct hb_fit_map *m, const struct hb_node *node,
                      uint32_t *out)
{
    uint32_t x;
    uint32_t y;
    int64_t facet = 0;
    hb_reading_int(f, node, "facet", &facet);
    if (!find_value(&m->x, hb_node_find(node, "x"), &x) ||
        !find_value(&m->y, hb_node_find(node, "y"), &y) || facet < 0 || facet >= m->facet_count) {
        hb_reading_wrong(f, node, "cell", "x and y that are values of the axes, and a known facet");
        return false;
    }
    *out = ((uint32_t)facet * m->y.count + y) * m->x.count + x;
    return true;
}

static void read_cells(struct hb_reading *f, const struct hb_node *list, struct hb_fit_map *m)
{
    for (const struct hb_node *node = list ? list->first : NULL; node; node = node->next) {
        uint32_t i;
        if (!find_cell(f, m, node, &i))
            return;
        hb_reading_bytes(f, node, "peak_bytes", -1, &m->cells[i].peak_bytes);
        hb_reading_bytes(f, node, "low_bytes", 0, &m->cells[i].low_bytes);
        hb_reading_bytes(f, node, "high_bytes", 0, &m->cells[i].high_bytes);
        hb_reading_bytes(f, node, "budget_bytes", 1, &m->cells[i].budget_bytes);
        bool fits = true;
        hb_reading_bool(f, node, "fits", &fits);
        m->cells[i].refused = !fits && m->cells[i].peak_bytes <= hb_fit_budget(m, &m->cells[i]);
        hb_reading_real(f, node, "step_seconds", &m->cells[i].step_seconds);
        hb_reading_real(f, node, "tokens_per_second", &m->cells[i].tokens_per_second);
        hb_reading_text(f, node, "error", &m->cells[i].error);
    }
}

static void read_marks(struct hb_reading *f, const struct hb_node *json, struct hb_fit_map *m)
{
    const struct hb_node *best = hb_reading_map(f, json, "best");
    const struct hb_node *own = hb_reading_map(f, json, "own");
    const struct hb_node *each =
        hb_node_find(json, "best_of_each") ? hb_reading_list(f, json, "best_of_each") : NULL;
    uint32_t cell;
    if (best)
        find_cell(f, m, best, &m->best);
    if (own && find_cell(f, m, own, &cell))
        m->cells[cell].own = true;
    for (const struct hb_node *node = each ? each->first : NULL; node; node = node->next)
        if (find_cell(f, m, node, &cell))
            m->cells[cell].best = true;
}

static void read_facets(struct hb_reading *f, const struct hb_node *json, struct hb_fit_map *m)
{
    const struct hb_node *list = hb_reading_list(f, json, "facets");
    m->facet_count = 1;
    if (!list || list->count == 0)
        return;
    m->facet_count = list->count;
    m->facets = hb_arena_alloc(f->arena, list->count, sizeof *m->facets);
    uint32_t i = 0;
    for (const struct hb_node *node = list->first; node; node = node->next) {
        m->facets[i++] = node->kind == HB_NODE_SCALAR ? node->text : "";
        if (node->kind != HB_NODE_SCALAR)
            hb_reading_wrong(f, node, "facets", "text");
    }
}

static void read_place(struct hb_reading *f, const struct hb_node *json, struct hb_fit_map *m)
{
    const char *const keys[] = {m->x.key, m->y.key, m->facets ? m->facets[0] : ""};
    enum hb_where most = HB_WHERE_MESH;
    for (int i = 0; i < 3; i++)
        if (hb_place_with(keys[i]) < most)
            most = hb_place_with(keys[i]);
    m->place = hb_place_read(f->arena, json, most);
}

bool hb_fit_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                 struct hb_fit_map *out)
{
    struct hb_reading f = {arena, diag, true};
    *out = (struct hb_fit_map){.name = "", .best = HB_NONE};
    hb_reading_text(&f, json, "name", &out->name);
    hb_reading_bytes(&f, json, "budget_bytes", 1, &out->budget_bytes);
    if (out->budget_bytes <= 0 && f.ok)
        hb_reading_wrong(&f, json, "budget_bytes", "a number of bytes above 0");
    read_facets(&f, json, out);
    if (!read_axis(&f, json, "x", &out->x) || !read_axis(&f, json, "y", &out->y))
        return false;
    read_place(&f, json, out);
    double cells = (double)out->x.count * out->y.count * out->facet_count;
    if (cells > MAX_CELLS) {
        hb_reading_wrong(&f, json, "cells", "at most a million cells");
        return false;
    }
    out->cells = hb_arena_alloc(arena, (size_t)cells, sizeof *out->cells);
    for (uint32_t i = 0; i < (uint32_t)cells; i++)
        out->cells[i].peak_bytes = -1;
    read_cells(&f, hb_reading_list(&f, json, "cells"), out);
    read_marks(&f, json, out);
    return f.ok;
}

const struct hb_fit_cell *hb_fit_cell(const struct hb_fit_map *m, uint32_t facet, uint32_t y,
                                      uint32_t x)
{
    return &m->cells[(facet * m->y.count + y) * m->x.count + x];
}

int64_t hb_fit_budget(const struct hb_fit_map *m, const struct hb_fit_cell *cell)
{
    return cell->budget_bytes > 0 ? cell->budget_bytes : m->budget_bytes;
}

bool hb_fit_fits(const struct hb_fit_map *m, const struct hb_fit_cell *cell)
{
    return cell->peak_bytes >= 0 && cell->peak_bytes <= hb_fit_budget(m, cell) && !cell->refused;
}

bool hb_fit_tight(const struct hb_fit_map *m, const struct hb_fit_cell *cell)
{
    int64_t budget = hb_fit_budget(m, cell);
    return cell->peak_bytes >= 0 && cell->high_bytes > 0 && cell->low_bytes <= budget &&
           budget < cell->high_bytes && !cell->refused;
}

/* What a cell asks for: the product of its numbers; its place where they are texts. */
static double load_of(const struct hb_fit_map *m, uint32_t y, uint32_t x)
{
    double a = isnan(m->x.value[x]) ? x + 1 : m->x.value[x];
    double b = isnan(m->y.value[y]) ? y + 1 : m->y.value[y];
    return a * b;
}

struct spot {
    uint32_t x, y;
    bool found;
};

static bool is_better(const struct hb_fit_map *m, const struct hb_fit_cell *cell,
                      const struct hb_fit_cell *held)
{
    const struct hb_fit_cell *best = m->best == HB_NONE ? NULL : &m->cells[m->best];
    if (cell == best || held == best)
        return cell == best;
    return cell->peak_bytes < held->peak_bytes;
}

/* The largest load that fits; of equals the best cell, else the one with more room. */
static struct spot find_largest(const struct hb_fit_map *m, uint32_t facet)
{
    struct spot best = {0};
    for (uint32_t y = 0; y < m->y.count; y++)
        for (uint32_t x = 0; x < m->x.count; x++) {
            const struct hb_fit_cell *cell = hb_fit_cell(m, facet, y, x);
            if (!hb_fit_fits(m, cell))
                continue;
            double more = best.found ? load_of(m, y, x) - load_of(m, best.y, best.x) : 1;
            const struct hb_fit_cell *held = hb_fit_cell(m, facet, best.y, best.x);
            if (more > 0 || (more >= 0 && is_better(m, cell, held)))
                best = (struct spot){x, y, true};
        }
    return best;
}

uint32_t hb_fit_main_facet(const struct hb_fit_map *m)
{
    uint32_t main = m->best == HB_NONE ? 0 : m->best / (m->x.count * m->y.count);
    struct spot held = find_largest(m, main);
    for (uint32_t facet = 0; facet < m->facet_count; facet++) {
        struct spot at = find_largest(m, facet);
        if (at.found && (!held.found || load_of(m, at.y, at.x) > load_of(m, held.y, held.x))) {
            main = facet;
            held = at;
        }
    }
    return main;
}

/* The cell that lacks least among those next to `at`, or of the whole facet. */
static struct spot find_nearest_lack(const struct hb_fit_map *m, uint32_t facet, struct spot at)
{
    struct spot best = {0};
    for (uint32_t y = 0; y < m->y.count; y++)
        for (uint32_t x = 0; x < m->x.count; x++) {
            const struct hb_fit_cell *cell = hb_fit_cell(m, facet, y, x);
            bool beside = !at.found || (abs((int)x - (int)at.x) + abs((int)y - (int)at.y) == 1);
            if (cell->peak_bytes <= hb_fit_budget(m, cell) || !beside)
                continue;
            if (!best.found || cell->peak_bytes < hb_fit_cell(m, facet, best.y, best.x)->peak_bytes)
                best = (struct spot){x, y, true};
        }
    return best;
}

static const char *lack_text(struct hb_arena *arena, const struct hb_fit_map *m, uint32_t facet,
                             struct spot at)
{
    char bytes[HB_TICK_TEXT];
    const struct hb_fit_cell *cell = hb_fit_cell(m, facet, at.y, at.x);
    int64_t lack = cell->peak_bytes - hb_fit_budget(m, cell);
    hb_unit_print(HB_UNIT_BYTES, (double)lack, bytes);
    return hb_arena_printf(arena, "%s lacks %s", hb_fit_place(arena, m, at.y, at.x), bytes);
}

const char *hb_fit_place(struct hb_arena *arena, const struct hb_fit_map *m, uint32_t y, uint32_t x)
{
    if (!*m->y.key)
        return m->x.text[x];
    return hb_arena_printf(arena, "%s \xC3\x97 %s", m->x.text[x], m->y.text[y]);
}

bool hb_fit_is_words(const struct hb_fit_axis *axis)
{
    for (uint32_t i = 0; i < axis->count; i++)
        if (isnan(axis->value[i]) && *axis->key)
            return true;
    return false;
}

static uint32_t count_fitting(const struct hb_fit_map *m, uint32_t facet)
{
    uint32_t count = 0;
    for (uint32_t y = 0; y < m->y.count; y++)
        for (uint32_t x = 0; x < m->x.count; x++)
            count += hb_fit_fits(m, hb_fit_cell(m, facet, y, x));
    return count;
}

const char *hb_fit_reach(struct hb_arena *arena, const struct hb_fit_map *m, uint32_t facet)
{
    struct spot largest = find_largest(m, facet);
    uint32_t all = m->x.count * m->y.count;
    uint32_t fit = count_fitting(m, facet);
    if (!largest.found)
        return find_nearest_lack(m, facet, largest).found ? "nothing fits" : "no answer";
    const char *place = hb_fit_place(arena, m, largest.y, largest.x);
    if (all == 1)
        return hb_arena_printf(arena, "%s fits", place);
    if (hb_fit_is_words(&m->x) || hb_fit_is_words(&m->y))
        return hb_arena_printf(arena, "%u of %u fit", fit, all);
    if (fit == all)
        return hb_arena_printf(arena, "all %u fit, up to %s", all, place);
    return hb_arena_printf(arena, "fits up to %s", place);
}

const char *hb_fit_finding(struct hb_arena *arena, const struct hb_fit_map *m, uint32_t facet)
{
    struct spot lack = find_nearest_lack(m, facet, find_largest(m, facet));
    const char *reach = hb_fit_reach(arena, m, facet);
    if (!lack.found)
        return reach;
    return hb_arena_printf(arena, "%s; %s", reach, lack_text(arena, m, facet, lack));
}
