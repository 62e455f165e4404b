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
    *out = hb_arena_alloc(r->arena, r->count + 1, sizeof **out);
    for (uint32_t i = 0; i < r->count; i++) {
        const struct hb_case *c = &r->cases[i];
        if (!c->failed && !c->speed && !c->verdict && c->predicted_bytes > 0 &&
            c->measured_bytes > 0 && hb_interval_is_known(c->kind))
            (*out)[n++] = (struct hb_interval_error){
                c->kind, (double)c->measured_bytes / (double)c->predicted_bytes - 1, c->loose};
    }
    return n;
}

static void print_scales(struct hb_arena *arena, const struct hb_interval_fit *f, FILE *to)
{
    fputs("static const struct hb_interval_scale scales[] = {\n", to);
    for (uint32_t i = 0; i < f->scale_count; i++) {
        const struct hb_interval_scale *s = &f->scales[i];
        fprintf(to, "    {%u, 0x%06x, %d, %u},", s->level, s->kind, s->scale_ppm, s->records);
        if (s->level == HB_INTERVAL_LEVELS)
            fprintf(to, " /* %s */", hb_interval_kind_words(arena, s->kind));
        fputs("\n", to);
    }
    fputs("};\n", to);
}

static void print_scores(const struct hb_interval_fit *f, FILE *to)
{
    fputs("static const int32_t scores_ppm[] = {\n", to);
    for (uint32_t i = 0; i < f->count; i++)
        fprintf(to, "%s%d,%s", i % IN_LINE ? " " : "    ", f->scores_ppm[i],
                i % IN_LINE == IN_LINE - 1 || i + 1 == f->count ? "\n" : "");
    fputs(f->count ? "};\n" : "    0,\n};\n", to);
}

bool hb_report_calibration(const struct hb_report *golden, const struct hb_report *r, FILE *to)
{
    struct hb_interval_error *known, *unseen;
    struct hb_interval_fit f;
    uint32_t known_count = list_errors(golden, &known), count = list_errors(r, &unseen);
    if (!known_count)
        return false;
    hb_interval_fit(r->arena, known, known_count, unseen, count, &f);
    fprintf(to,
            "/* Written by `make calibration`: scales from %u records, scores from %u. See "
            "interval.h. */\n"
            "/* clang-format off */\n"
            "#include \"sim/engine/interval.h\"\n\n",
            known_count, count);
    print_scales(r->arena, &f, to);
    print_scores(&f, to);
    fprintf(to,
            "const struct hb_interval_table hb_interval_table = {\n"
            "    scales, %u, scores_ppm, %u, %d, \"%s\", \"%s\"};\n",
            f.scale_count, f.count, f.usual_ppm, r->first_date ? r->first_date : "",
            r->last_date ? r->last_date : "");
    return true;
}
