/* The table that intervals are made from, out of calibration records: see sim/engine/interval.h. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/validate.h"
#include "sim/engine/interval.h"

enum { PPM = 1000000, ROWS_IN_LINE = 4 };

void hb_report_date(struct hb_report *r, const struct hb_node *record)
{
    const struct hb_node *date = hb_node_find(record, "date");
    if (!date || !date->text)
        return;
    if (!r->first_date || strcmp(date->text, r->first_date) < 0)
        r->first_date = hb_arena_strdup(r->arena, date->text);
    if (!r->last_date || strcmp(date->text, r->last_date) > 0)
        r->last_date = hb_arena_strdup(r->arena, date->text);
}

static int by_ratio(const void *a, const void *b)
{
    const struct hb_interval_row *x = a, *y = b;
    if (x->ratio_ppm != y->ratio_ppm)
        return (x->ratio_ppm > y->ratio_ppm) - (x->ratio_ppm < y->ratio_ppm);
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static uint32_t list_rows(const struct hb_report *r, struct hb_interval_row *rows)
{
    static const double most = 2000; /* off by more is as bad; a ratio stays within its type */
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct hb_case *c = &r->cases[i];
        if (c->failed || c->speed || c->predicted_bytes <= 0 || c->measured_bytes <= 0)
            continue;
        double ratio = (double)c->measured_bytes / (double)c->predicted_bytes;
        ratio = ratio < most ? ratio : most;
        rows[n++] = (struct hb_interval_row){c->kind, (int32_t)(ratio * PPM + 0.5)};
    }
    qsort(rows, n, sizeof *rows, by_ratio);
    return n;
}

void hb_report_calibration(const struct hb_report *r, FILE *to)
{
    struct hb_interval_row *rows = hb_arena_alloc(r->arena, r->count + 1, sizeof *rows);
    uint32_t n = list_rows(r, rows);
    fprintf(to,
            "/* Written by `make calibration` from %u records: see interval.h. */\n"
            "/* clang-format off */\n"
            "#include \"sim/engine/interval.h\"\n\n"
            "static const struct hb_interval_row rows[] = {\n",
            n);
    for (uint32_t i = 0; i < n; i++)
        fprintf(to, "%s{0x%05x, %d},%s", i % ROWS_IN_LINE ? " " : "    ", rows[i].kind,
                rows[i].ratio_ppm, i % ROWS_IN_LINE == ROWS_IN_LINE - 1 || i + 1 == n ? "\n" : "");
    if (!n)
        fputs("    {0, 1000000},\n", to);
    fprintf(to,
            "};\n"
            "const struct hb_interval_table hb_interval_table = {rows, %u, \"%s\", \"%s\"};\n",
            n, r->first_date ? r->first_date : "", r->last_date ? r->last_date : "");
}
