/* Coverage and width of intervals, by the records that they are from: see validate.h. */
#include "base/arena.h"
#include "base/str.h"
#include "cli/validate.h"

static bool is_first(const struct hb_report *r, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (r->cases[i].like && hb_str_same(r->cases[i].like, r->cases[at].like))
            return false;
    return true;
}

void hb_report_intervals_text(const struct hb_report *r, FILE *to)
{
    struct hb_arena_mark mark = hb_arena_mark(r->arena);
    const struct hb_case **list =
        hb_arena_alloc(r->arena, r->count + 1, sizeof(const struct hb_case *));
    fprintf(to, "\n%5s %9s %8s  intervals from records like\n", "n", "within %", "width %");
    for (uint32_t i = 0; i < r->count; i++) {
        const char *like = r->cases[i].like;
        uint32_t n = 0;
        if (!like || !is_first(r, i))
            continue;
        for (uint32_t k = i; k < r->count; k++)
            if (r->cases[k].like && hb_str_same(r->cases[k].like, like))
                list[n++] = &r->cases[k];
        struct hb_stats s = hb_validate_stats(r->arena, list, n, false);
        fprintf(to, "%5u %9.1f %8.1f  %s\n", n, 100 * s.coverage, s.median_width_pct,
                *like ? like : "none");
    }
    hb_arena_rewind(r->arena, mark);
}
