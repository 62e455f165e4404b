/* Coverage and width of intervals, by kinds of steps: see validate.h. */
#include "base/arena.h"
#include "cli/validate.h"
#include "sim/engine/interval.h"

/* Compiler, chip, experts, form: with more traits there are few of each. */
enum { LEVEL = 4 };

static bool same_group(const struct hb_case *a, const struct hb_case *b)
{
    return a->like && b->like &&
           hb_interval_kind_at(a->kind, LEVEL) == hb_interval_kind_at(b->kind, LEVEL);
}

static bool is_first(const struct hb_report *r, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (same_group(&r->cases[i], &r->cases[at]))
            return false;
    return true;
}

void hb_report_intervals_text(const struct hb_report *r, FILE *to)
{
    struct hb_arena_mark mark = hb_arena_mark(r->arena);
    const struct hb_case **list =
        hb_arena_alloc(r->arena, r->count + 1, sizeof(const struct hb_case *));
    fprintf(to, "\n%5s %9s %8s  intervals by kind\n", "n", "within %", "width %");
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t n = 0;
        if (!r->cases[i].like || !is_first(r, i))
            continue;
        for (uint32_t k = i; k < r->count; k++)
            if (same_group(&r->cases[k], &r->cases[i]))
                list[n++] = &r->cases[k];
        struct hb_stats s = hb_validate_stats(r->arena, list, n, false);
        const char *words =
            hb_interval_kind_words(r->arena, hb_interval_kind_at(r->cases[i].kind, LEVEL));
        fprintf(to, "%5u %9.1f %8.1f  %s\n", n, 100 * s.coverage, s.median_width_pct,
                hb_interval_is_known(r->cases[i].kind) ? words : "none");
    }
    hb_arena_rewind(r->arena, mark);
}
