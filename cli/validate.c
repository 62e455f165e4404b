/* Printing what validate found: see validate.h. */
#include "cli/validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/validate_pairs.h"
#include "cli/validate_verdicts.h"
#include "models/schema.h"

enum { MIB = 1 << 20, LIST_LIMIT = 40, NAME_WIDTH = 56 };

void hb_report_add(struct hb_report *r, const struct hb_case *c)
{
    r->cases = hb_grow(r->arena, r->cases, r->count, &r->cap, sizeof *r->cases);
    r->cases[r->count++] = *c;
}

struct hb_stats hb_report_stats(struct hb_arena *scratch, const struct hb_report *r,
                                const char *group, bool usual)
{
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    const struct hb_case **list =
        hb_arena_alloc(scratch, r->count + 1, sizeof(const struct hb_case *));
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (!group || hb_str_same(r->cases[i].group, group))
            list[n++] = &r->cases[i];
    struct hb_stats s = hb_validate_stats(scratch, list, n, usual);
    hb_arena_rewind(scratch, mark);
    return s;
}

/* Names of the groups in order of appearance. */
static const char **list_groups(const struct hb_report *r, uint32_t *out_count)
{
    const char **groups = hb_arena_alloc(r->arena, r->count + 1, sizeof *groups);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t k = 0;
        while (k < n && !hb_str_same(groups[k], r->cases[i].group))
            k++;
        if (k == n)
            groups[n++] = r->cases[i].group;
    }
    *out_count = n;
    return groups;
}

/* --- speeds by device --- */

struct device_speeds {
    const char *name;
    const struct hb_case **cases;
    uint32_t count;
    struct hb_stats stats;
    bool ranked;
    double rank;
};

/* Records of speed by the device they ran on, in order of appearance. */
static struct device_speeds *list_speeds(const struct hb_report *r, uint32_t *out_count)
{
    struct device_speeds *list = hb_arena_alloc(r->arena, r->count + 1, sizeof *list);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct hb_case *c = &r->cases[i];
        uint32_t k = 0;
        if (!c->speed || !c->device)
            continue;
        while (k < n && !hb_str_same(list[k].name, c->device))
            k++;
        if (k == n)
            list[n++] = (struct device_speeds){
                .name = c->device,
                .cases = hb_arena_alloc(r->arena, r->count, sizeof(const struct hb_case *))};
        list[k].cases[list[k].count++] = c;
    }
    for (uint32_t k = 0; k < n; k++) {
        struct device_speeds *d = &list[k];
        d->stats = hb_validate_stats(r->arena, d->cases, d->count, false);
        d->ranked = hb_validate_rank(r->arena, d->cases, d->count, &d->rank);
    }
    *out_count = n;
    return list;
}

static void print_speeds(const struct hb_report *r, FILE *to)
{
    uint32_t n;
    const struct device_speeds *list = list_speeds(r, &n);
    if (n)
        fprintf(to, "\n%-34s %5s %6s %8s %8s %8s %8s %8s\n", "speed on", "n", "failed", "median %",
                "p95 %", "max %", "bias %", "rank");
    for (uint32_t i = 0; i < n; i++) {
        const struct hb_stats *s = &list[i].stats;
        fprintf(to, "%-34.34s %5u %6u %8.2f %8.2f %8.2f %+8.2f", list[i].name, s->n, s->failed,
                s->median_abs_pct, s->p95_abs_pct, s->max_abs_pct, s->bias_pct);
        if (list[i].ranked)
            fprintf(to, " %8.3f\n", list[i].rank);
        else
            fputs("        -\n", to);
    }
    if (n)
        fputs("rank: Spearman's correlation of measured and predicted seconds\n", to);
}

/* --- explain --- */

static const char *shape_text(struct hb_arena *arena, const struct hb_buf *b)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    hb_str_addf(&s, "%s[", hb_dtype_name(b->dtype));
    for (int i = 0; i < b->rank; i++)
        hb_str_addf(&s, "%s%lld", i ? "," : "", (long long)b->dim[i]);
    hb_str_add(&s, "]");
    return s.text;
}

static void add_compiler_row(struct hb_str *s, const struct hb_node *row)
{
    int64_t bytes = 0;
    const struct hb_node *size = hb_node_at(row, 0);
    const struct hb_node *shape = hb_node_at(row, 1);
    if (!size || !shape || !hb_node_int(size, &bytes) || !shape->text)
        return;
    size_t plain = strcspn(shape->text, "{");
    hb_str_addf(s, "%9.1f  %-38.*s", (double)bytes / MIB, (int)plain, shape->text);
}

void hb_report_explain(struct hb_report *r, const struct hb_case *c, const struct hb_program *p,
                       const struct hb_memory *m)
{
    struct hb_str s;
    hb_str_init(&s, r->arena);
    hb_str_addf(&s, "%s: measured %lld bytes, predicted %lld (%+.2f %%)\n", c->id,
                (long long)c->measured_bytes, (long long)c->predicted_bytes, c->error_pct);
    hb_str_addf(&s, "peak at '%s'\n\n", m->peak_op >= 0 ? p->ops[m->peak_op].name : "no op");
    hb_str_addf(&s, "%-49s%s\n", r->compiler_list ? "compiler (MiB)" : "compiler: no list",
                "hbmsim (MiB)");
    uint32_t shown = 0;
    const struct hb_node *row = r->compiler_list ? r->compiler_list->first : NULL;
    for (uint32_t i = 0; shown < LIST_LIMIT && (row || i < m->at_peak_count); i++) {
        while (i < m->at_peak_count && p->bufs[m->at_peak[i].buf].argument)
            i++;
        if (!row && i >= m->at_peak_count)
            break;
        size_t before = s.len;
        if (row)
            add_compiler_row(&s, row);
        hb_str_addf(&s, "%*s", (int)(before + 49 - s.len), "");
        if (i < m->at_peak_count) {
            const struct hb_buf *b = &p->bufs[m->at_peak[i].buf];
            hb_str_addf(&s, "%9.1f  %s %s", (double)m->at_peak[i].bytes / MIB,
                        shape_text(r->arena, b), b->name);
        }
        hb_str_add(&s, "\n");
        row = row ? row->next : NULL;
        shown++;
    }
    r->explanation = s.text;
}

/* --- text --- */

static void print_stats(FILE *to, const char *name, const struct hb_stats *s)
{
    fprintf(to, "%-34.34s %5u %6u %8.2f %8.2f %8.2f %8.2f %+8.2f", name, s->n, s->failed,
            s->median_abs_pct, s->p90_abs_pct, s->p95_abs_pct, s->max_abs_pct, s->bias_pct);
    if (s->peaks)
        fprintf(to, " %7.1f\n", 100 * s->fit_agreement);
    else
        fprintf(to, " %7s\n", "-");
}

static int by_error(const void *a, const void *b)
{
    double x = fabs((*(const struct hb_case *const *)a)->error_pct);
    double y = fabs((*(const struct hb_case *const *)b)->error_pct);
    return (x < y) - (x > y);
}

static void print_case(FILE *to, const struct hb_case *c)
{
    char measured[HB_SIZE_TEXT];
    char predicted[HB_SIZE_TEXT];
    if (c->speed)
        fprintf(to, "  %+8.2f %%  %-*s %10.3f s %10.3f s\n", c->error_pct, NAME_WIDTH, c->id,
                c->measured_seconds, c->predicted_seconds);
    else
        fprintf(to, "  %+8.2f %%  %-*s %12s %12s\n", c->error_pct, NAME_WIDTH, c->id,
                hb_size_print(c->measured_bytes, measured),
                hb_size_print(c->predicted_bytes, predicted));
}

static void print_worst(const struct hb_report *r, FILE *to)
{
    const struct hb_case **list =
        hb_arena_alloc(r->arena, r->count + 1, sizeof(const struct hb_case *));
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (!r->cases[i].failed && !r->cases[i].verdict)
            list[n++] = &r->cases[i];
    qsort(list, n, sizeof(const struct hb_case *), by_error);
    if (n && r->worst)
        fputs("\nworst (error, record, measured, predicted)\n", to);
    for (uint32_t i = 0; i < n && i < r->worst; i++)
        print_case(to, list[i]);
}

static bool is_same(const char *a, const char *b)
{
    return a && hb_str_same(a, b);
}

void hb_report_name(struct hb_report *r, const struct hb_spec *spec)
{
    const char *compiler = hb_compiler_name(spec->compiler);
    bool first = r->named++ == 0;
    if (first)
        r->device = hb_arena_strdup(r->arena, spec->hardware.device);
    else if (!is_same(r->device, spec->hardware.device))
        r->device = NULL;
    r->compiler = first || is_same(r->compiler, compiler) ? compiler : NULL;
}

void hb_report_text(const struct hb_report *r, FILE *to)
{
    uint32_t count;
    const char **groups = list_groups(r, &count);
    fprintf(to, "%-34s %5s %6s %8s %8s %8s %8s %8s %7s\n", "group", "n", "failed", "median %",
            "p90 %", "p95 %", "max %", "bias %", "fits %");
    for (uint32_t i = 0; i < count; i++) {
        struct hb_stats s = hb_report_stats(r->arena, r, groups[i], false);
        if (!s.n && !s.failed) /* verdicts alone */
            continue;
        print_stats(to, *groups[i] ? groups[i] : "(no group)", &s);
    }
    struct hb_stats all = hb_report_stats(r->arena, r, NULL, false);
    struct hb_stats usual = hb_report_stats(r->arena, r, NULL, true);
    print_stats(to, "all", &all);
    if (usual.n)
        fprintf(to, "%-34s %5u %6s %8.2f %8.2f %8.2f %8.2f %+8.2f\n", "the usual formula on these",
                usual.n, "", usual.median_abs_pct, usual.p90_abs_pct, usual.p95_abs_pct,
                usual.max_abs_pct, usual.bias_pct);
    if (all.peaks)
        fprintf(
            to,
            "off by more than 4 KiB and 0.1 %%: argument %u, output %u, host %u of %u records\n",
            all.part_off[HB_PART_ARGUMENT], all.part_off[HB_PART_OUTPUT],
            all.part_off[HB_PART_HOST], all.peaks);
    if (all.median_width_pct > 0)
        fprintf(to, "within their intervals: %.1f %% of %u; the median interval is %.1f %% wide\n",
                100 * all.coverage, all.peaks, all.median_width_pct);
    if (r->intervals)
        hb_report_intervals_text(r, to);
    print_speeds(r, to);
    hb_report_verdicts_text(r, to);
    print_worst(r, to);
    if (all.failed)
        fputs("\nfailed\n", to);
    for (uint32_t i = 0; i < r->count; i++)
        if (r->cases[i].failed)
            fprintf(to, "  %s: %s\n", r->cases[i].id, r->cases[i].failed);
    if (r->pairs)
        hb_report_pairs_text(r->pairs, to);
}

/* --- JSON --- */

static void write_bytes(struct hb_json *j, const char *key, int64_t bytes, bool known)
{
    hb_json_key(j, key);
    if (known && bytes >= 0)
        hb_json_int(j, bytes);
    else
        hb_json_null(j);
}

/* true, false, or null where it is not known. */
static void write_answer(struct hb_json *j, const char *key, int answer)
{
    hb_json_key(j, key);
    if (answer < 0)
        hb_json_null(j);
    else
        hb_json_bool(j, answer > 0);
}

static void write_stats_keys(struct hb_json *j, const struct hb_stats *s)
{
    hb_json_put_int(j, "n", s->n);
    hb_json_put_int(j, "failed", s->failed);
    hb_json_put_real(j, "median_abs_pct", s->median_abs_pct);
    hb_json_put_real(j, "p90_abs_pct", s->p90_abs_pct);
    hb_json_put_real(j, "p95_abs_pct", s->p95_abs_pct);
    hb_json_put_real(j, "max_abs_pct", s->max_abs_pct);
    hb_json_put_real(j, "bias_pct", s->bias_pct);
}

static void write_stats(struct hb_json *j, const struct hb_stats *s)
{
    hb_json_object(j);
    write_stats_keys(j, s);
    hb_json_put_real(j, "fit_agreement", s->fit_agreement);
    hb_json_put_real(j, "coverage", s->coverage);
    hb_json_put_real(j, "median_width_pct", s->median_width_pct);
    hb_json_object_end(j);
}

static void write_speeds(struct hb_json *j, const struct hb_report *r)
{
    uint32_t n;
    const struct device_speeds *list = list_speeds(r, &n);
    hb_json_key(j, "speeds");
    hb_json_object(j);
    for (uint32_t i = 0; i < n; i++) {
        hb_json_key(j, list[i].name);
        hb_json_object(j);
        write_stats_keys(j, &list[i].stats);
        hb_json_key(j, "rank_correlation");
        if (list[i].ranked)
            hb_json_real(j, list[i].rank);
        else
            hb_json_null(j);
        hb_json_object_end(j);
    }
    hb_json_object_end(j);
}

static void write_parts(struct hb_json *j, const struct hb_case *c)
{
    static const char *const names[HB_PART_COUNT] = {"argument", "output", "temp", "host"};
    hb_json_key(j, "parts");
    hb_json_object(j);
    for (int i = 0; i < HB_PART_COUNT; i++) {
        hb_json_key(j, names[i]);
        hb_json_object(j);
        write_bytes(j, "measured_bytes", c->measured_part[i], true);
        write_bytes(j, "predicted_bytes", c->predicted_part[i], !c->failed);
        hb_json_object_end(j);
    }
    hb_json_object_end(j);
}

static void write_case(struct hb_json *j, const struct hb_case *c)
{
    bool bytes = !c->failed && !c->speed;
    hb_json_object(j);
    hb_json_put_text(j, "id", c->id);
    hb_json_put_text(j, "group", c->group);
    write_bytes(j, "measured_bytes", c->measured_bytes, true);
    write_bytes(j, "predicted_bytes", c->predicted_bytes, !c->failed);
    write_bytes(j, "low_bytes", c->low_bytes, bytes);
    write_bytes(j, "high_bytes", c->high_bytes, bytes);
    if (c->like)
        hb_json_put_text(j, "like", c->like);
    hb_json_key(j, "error_pct");
    if (c->failed)
        hb_json_null(j);
    else
        hb_json_real(j, c->error_pct);
    if (c->speed) {
        hb_json_put_real(j, "measured_step_seconds", c->measured_seconds);
        if (!c->failed)
            hb_json_put_real(j, "predicted_step_seconds", c->predicted_seconds);
    }
    write_answer(j, "fits_measured", c->fits_measured);
    write_answer(j, "fits_predicted", c->fits_predicted);
    hb_json_key(j, "verdicts_right");
    if (bytes)
        hb_json_int(j, c->verdicts_right);
    else
        hb_json_null(j);
    hb_json_put_text(j, "failed", c->failed);
    hb_json_put_real(j, "seconds", c->seconds);
    write_parts(j, c);
    hb_json_object_end(j);
}

void hb_report_json(const struct hb_report *r, const struct hb_head *head, FILE *to)
{
    struct hb_str text;
    uint32_t count;
    hb_str_init(&text, r->arena);
    struct hb_json j = hb_json_begin(&text, to, true);
    hb_json_object(&j);
    hb_head_json(&j, head);
    hb_json_key(&j, "cases");
    hb_json_array(&j);
    for (uint32_t i = 0; i < r->count; i++)
        write_case(&j, &r->cases[i]);
    hb_json_array_end(&j);
    struct hb_stats all = hb_report_stats(r->arena, r, NULL, false);
    struct hb_stats usual = hb_report_stats(r->arena, r, NULL, true);
    hb_json_key(&j, "summary");
    write_stats(&j, &all);
    hb_json_key(&j, "usual_formula");
    write_stats(&j, &usual);
    hb_json_key(&j, "groups");
    hb_json_object(&j);
    const char **groups = list_groups(r, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct hb_stats s = hb_report_stats(r->arena, r, groups[i], false);
        hb_json_key(&j, *groups[i] ? groups[i] : "(no group)");
        write_stats(&j, &s);
    }
    hb_json_object_end(&j);
    hb_report_verdicts_json(r, &j);
    write_speeds(&j, r);
    if (r->pairs)
        hb_report_pairs_json(&j, r->pairs);
    hb_json_object_end(&j);
    hb_json_end(&j);
}
