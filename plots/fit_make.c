/* A fit map from what was swept: see fit.h. */
#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/str.h"
#include "plots/fit.h"
#include "solver/sweep.h"

void hb_fit_set_value(struct hb_arena *arena, struct hb_fit_axis *axis, uint32_t i,
                      const char *text)
{
    const struct hb_node node = {.kind = HB_NODE_SCALAR, .text = text};
    char human[HB_TICK_TEXT];
    double value;
    bool number = hb_node_real(&node, &value);
    axis->raw[i] = text;
    axis->value[i] = number ? value : (double)NAN;
    axis->text[i] = number ? hb_arena_strdup(arena, hb_human_print(value, human)) : text;
}

static struct hb_fit_axis make_axis(struct hb_arena *arena, const struct hb_sweep_axis *from)
{
    uint32_t count = from ? from->count : 1;
    struct hb_fit_axis axis = {.key = from ? from->key : "", .count = count};
    axis.raw = hb_arena_alloc(arena, count, sizeof *axis.raw);
    axis.text = hb_arena_alloc(arena, count, sizeof *axis.text);
    axis.value = hb_arena_alloc(arena, count, sizeof *axis.value);
    for (uint32_t i = 0; i < count; i++)
        hb_fit_set_value(arena, &axis, i, from ? from->values[i] : "");
    return axis;
}

static const char *facet_name(struct hb_arena *arena, const struct hb_sweep *s, uint32_t cell)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    for (uint32_t i = 2; i < s->axis_count; i++)
        hb_str_addf(&text, "%s%s=%s", text.len ? ", " : "", s->axes[i].key,
                    hb_sweep_value(s, cell, i));
    return text.text;
}

/* What fits with the confidence that was asked for is better than what may not; then the faster. */
static bool is_better(const struct hb_sweep_cell *c, const struct hb_sweep_cell *than)
{
    bool sure = c->high_bytes <= c->budget_bytes;
    if (sure != (than->high_bytes <= than->budget_bytes))
        return sure;
    return c->tokens_per_second > than->tokens_per_second;
}

static void fill_cells(const struct hb_sweep_cell *cells, uint32_t count, struct hb_fit_map *m)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_sweep_cell *c = &cells[i];
        bool run = c->done && !c->error;
        m->cells[i] =
            (struct hb_fit_cell){.peak_bytes = run ? c->peak_bytes : -1,
                                 .low_bytes = run ? c->low_bytes : 0,
                                 .high_bytes = run ? c->high_bytes : 0,
                                 .budget_bytes = c->budget_bytes,
                                 .refused = run && !c->fits && c->peak_bytes <= c->budget_bytes,
                                 .step_seconds = (double)c->step_ns / 1e9,
                                 .tokens_per_second = c->tokens_per_second,
                                 .error = c->error};
        if (run && !m->budget_bytes)
            m->budget_bytes = c->budget_bytes;
        if (c->fits && (m->best == HB_NONE || is_better(c, &cells[m->best])))
            m->best = i;
    }
    m->budget_bytes = m->budget_bytes > 0 ? m->budget_bytes : 1;
}

/* Which question a cell asks: its place among the values of the axes that are questions. */
static uint32_t question_of(const struct hb_sweep *s, uint32_t cell)
{
    uint32_t question = 0, stride = 1;
    for (uint32_t i = 0; i < s->axis_count; i++) {
        if (hb_sweep_is_question(s->axes[i].key)) {
            question += cell % s->axes[i].count * stride;
            stride *= s->axes[i].count;
        }
        cell /= s->axes[i].count;
    }
    return question;
}

static void mark_bests(struct hb_arena *arena, const struct hb_sweep *s,
                       const struct hb_sweep_cell *cells, uint32_t own, struct hb_fit_map *m)
{
    uint32_t *best = hb_arena_alloc(arena, s->cell_count, sizeof *best); /* index + 1 */
    for (uint32_t i = 0; i < s->cell_count; i++) {
        uint32_t *held = &best[question_of(s, i)];
        if (cells[i].fits && (!*held || is_better(&cells[i], &cells[*held - 1])))
            *held = i + 1;
    }
    for (uint32_t i = 0; i < s->cell_count; i++)
        m->cells[i].best = hb_sweep_has_ways(s) && best[question_of(s, i)] == i + 1;
    if (own != HB_NONE && best[question_of(s, own)])
        m->best = best[question_of(s, own)] - 1;
}

void hb_fit_make(struct hb_arena *arena, const struct hb_sweep *sweep,
                 const struct hb_sweep_cell *cells, uint32_t own, struct hb_fit_map *out)
{
    uint32_t each = 1, facets = 1;
    for (uint32_t i = 0; i < sweep->axis_count; i++)
        *(i < 2 ? &each : &facets) *= sweep->axes[i].count;
    *out =
        (struct hb_fit_map){.name = hb_sweep_name(sweep),
                            .x = make_axis(arena, &sweep->axes[0]),
                            .y = make_axis(arena, sweep->axis_count > 1 ? &sweep->axes[1] : NULL),
                            .facet_count = facets,
                            .best = HB_NONE};
    out->cells = hb_arena_alloc(arena, sweep->cell_count, sizeof *out->cells);
    if (sweep->axis_count > 2)
        out->facets = hb_arena_alloc(arena, out->facet_count, sizeof *out->facets);
    for (uint32_t i = 0; out->facets && i < out->facet_count; i++)
        out->facets[i] = facet_name(arena, sweep, i * each);
    fill_cells(cells, sweep->cell_count, out);
    mark_bests(arena, sweep, cells, own, out);
    if (own != HB_NONE)
        out->cells[own].own = true;
}
