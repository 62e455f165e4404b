/* What is said of single cells: the input's own, the best ones, why some cannot be. See fit.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "plots/fit.h"

static uint32_t count_cells(const struct hb_fit_map *m)
{
    return m->x.count * m->y.count * m->facet_count;
}

uint32_t hb_fit_own(const struct hb_fit_map *m)
{
    for (uint32_t i = 0; i < count_cells(m); i++)
        if (m->cells[i].own)
            return i;
    return HB_NONE;
}

bool hb_fit_is_best(const struct hb_fit_map *m, uint32_t cell)
{
    return cell == m->best || m->cells[cell].best;
}

/* The reason without its numbers and quoted words. */
static const char *strip(struct hb_arena *arena, const char *reason)
{
    struct hb_str s;
    bool quoted = false;
    hb_str_init(&s, arena);
    for (const char *c = reason; *c; c++) {
        quoted = quoted != (*c == '\'');
        if (quoted || isdigit((unsigned char)*c))
            continue;
        hb_str_addn(&s, c, 1);
    }
    return s.text;
}

static int by_count(const void *a, const void *b)
{
    const struct hb_fit_reason *first = a, *second = b;
    if (first->count != second->count)
        return first->count > second->count ? -1 : 1;
    return first->first < second->first ? -1 : first->first > second->first;
}

struct hb_fit_reason *hb_fit_reasons(struct hb_arena *arena, const struct hb_fit_map *m,
                                     uint32_t *out_count)
{
    enum { MOST = 64 }; /* the rest counts as the last of them */
    struct hb_fit_reason *reasons = hb_arena_alloc(arena, MOST, sizeof *reasons);
    const char *stripped[MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < count_cells(m); i++) {
        const char *error = m->cells[i].error;
        const char *bare = error ? strip(arena, error) : "";
        uint32_t k = 0;
        while (k < count && !hb_str_same(stripped[k], bare))
            k++;
        if (!error)
            continue;
        k = k < MOST ? k : MOST - 1;
        if (k == count) {
            stripped[count] = bare;
            reasons[count++] = (struct hb_fit_reason){.text = error, .first = i};
        }
        reasons[k].count++;
    }
    qsort(reasons, count, sizeof *reasons, by_count);
    *out_count = count;
    return reasons;
}
