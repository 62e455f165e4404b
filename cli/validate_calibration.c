/* The table that intervals are made from, out of calibration records: see sim/engine/interval.h. */
#include <string.h>

#include "base/arena.h"
#include "cli/validate.h"
#include "sim/engine/interval_fit.h"

enum { IN_LINE = 8 };

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

static uint32_t list_errors(const struct hb_report *r, struct hb_interval_error **out)
{
    uint32_t n = 0;
    *out = hb_arena_alloc(r->arena, (size_t)r->count + 1, sizeof **out);
    for (uint32_t i = 0; i < r->count; i++) {
        const struct hb_case *c = &r->cases[i];
        if (!c->failed && !c->speed && !c->verdict && c->predicted_bytes > 0 &&
            c->measured_bytes > 0 && hb_interval_family_of(c->kind) < HB_INTERVAL_FAMILIES)
            (*out)[n++] = (struct hb_interval_error){
                c->kind, (double)c->measured_bytes / (double)c->predicted_bytes - 1};
    }
    return n;
}

static void print_scores(const struct hb_interval_family *f, uint32_t family, FILE *to)
{
    fprintf(to, "static const int32_t scores_%u[] = {\n", family);
    for (uint32_t i = 0; i < f->count; i++)
        fprintf(to, "%s%d,%s", i % IN_LINE ? " " : "    ", f->scores_ppm[i],
                i % IN_LINE == IN_LINE - 1 || i + 1 == f->count ? "\n" : "");
    fputs(f->count ? "};\n" : "    0,\n};\n", to);
}

static void print_family(const struct hb_interval_family *f, uint32_t family, FILE *to)
{
    fprintf(to, "    {%d,\n     {", f->spread_ppm);
    for (int k = 0; k < HB_FACT_COUNT; k++) {
        fputs(k ? ",\n      {" : "{", to);
        for (int v = 0; v < HB_INTERVAL_VALUES; v++)
            fprintf(to, "%s%d", v ? ", " : "", f->factors_ppm[k][v]);
        fputs("}", to);
    }
    fprintf(to, "},\n     scores_%u, %u},\n", family, f->count);
}

void hb_report_calibration(const struct hb_report *r, FILE *to)
{
    struct hb_interval_error *errors;
    struct hb_interval_family families[HB_INTERVAL_FAMILIES];
    uint32_t count = list_errors(r, &errors);
    fprintf(to,
            "/* Written by `make calibration` from %u records: see interval.h. */\n"
            "/* clang-format off */\n"
            "#include \"sim/engine/interval.h\"\n\n",
            count);
    for (uint32_t i = 0; i < HB_INTERVAL_FAMILIES; i++) {
        hb_interval_fit(r->arena, errors, count, i, &families[i]);
        print_scores(&families[i], i, to);
    }
    fputs("/* chip; experts; layers; form; knobs; free; host; sequences */\n"
          "static const struct hb_interval_family families[] = {\n",
          to);
    for (uint32_t i = 0; i < HB_INTERVAL_FAMILIES; i++)
        print_family(&families[i], i, to);
    fprintf(to,
            "};\n"
            "const struct hb_interval_table hb_interval_table = {families, \"%s\", \"%s\"};\n",
            r->first_date ? r->first_date : "", r->last_date ? r->last_date : "");
}
