/* hbmsim sweep: a grid of configurations, what fits and with which peak. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "cli/head.h"
#include "cli/input.h"
#include "models/schema.h"
#include "plots/picture.h"
#include "plots/place.h"
#include "plots/term.h"
#include "solver/sweep.h"

struct options {
    struct hb_common common;
    const char *model;
    const char *x;
    const char *y;
    struct hb_words facets;
    struct hb_words merge;
    const char *journal;
    const char *shard;
    struct hb_draw_options plot;
    int64_t jobs;
    double confidence;
    bool csv;
    bool lines;
};

struct answer {
    struct hb_env *env;
    const struct hb_sweep *sweep;
    const struct hb_sweep_cell *cells;
    struct hb_fit_map map; /* of them */
};

/* --- JSON --- */

/* A value as it would be in JSON: a number where it is one. */
static void put_value(struct hb_json *j, const char *text)
{
    struct hb_node node = {.kind = HB_NODE_SCALAR, .text = text};
    hb_json_node(j, &node);
}

static void put_axis(struct hb_json *j, const char *name, const struct hb_sweep_axis *axis)
{
    hb_json_key(j, name);
    hb_json_object(j);
    hb_json_put_text(j, "key", axis ? axis->key : "");
    hb_json_key(j, "values");
    hb_json_array(j);
    for (uint32_t i = 0; axis && i < axis->count; i++)
        put_value(j, axis->values[i]);
    if (!axis)
        hb_json_text(j, "");
    hb_json_array_end(j);
    hb_json_object_end(j);
}

static uint32_t cells_of_facet(const struct hb_sweep *s)
{
    return s->axes[0].count * (s->axis_count > 1 ? s->axes[1].count : 1);
}

static void put_place(struct hb_json *j, const struct hb_sweep *s, uint32_t cell)
{
    hb_json_key(j, "x");
    put_value(j, hb_sweep_value(s, cell, 0));
    hb_json_key(j, "y");
    if (s->axis_count > 1)
        put_value(j, hb_sweep_value(s, cell, 1));
    else
        hb_json_text(j, "");
    hb_json_put_int(j, "facet", cell / cells_of_facet(s));
}

static void put_cell(struct hb_json *j, const struct answer *a, uint32_t index)
{
    const struct hb_sweep_cell *c = &a->cells[index];
    if (!c->done)
        return;
    hb_json_object(j);
    put_place(j, a->sweep, index);
    if (c->error) {
        hb_json_put_text(j, "error", c->error);
    } else {
        hb_json_put_int(j, "peak_bytes", c->peak_bytes);
        hb_json_put_int(j, "low_bytes", c->low_bytes);
        hb_json_put_int(j, "high_bytes", c->high_bytes);
        hb_json_put_int(j, "budget_bytes", c->budget_bytes);
        hb_json_put_bool(j, "fits", c->fits);
        hb_json_put_real(j, "step_seconds", (double)c->step_ns / 1e9);
        hb_json_put_real(j, "tokens_per_second", c->tokens_per_second);
    }
    hb_json_object_end(j);
}

/* What varies is not what a configuration of all cells has: name, compiler and device are null
 * where a cell may have another. */
static struct hb_head find_head(const struct answer *a)
{
    struct hb_spec spec;
    if (!hb_sweep_spec(a->env->arena, a->sweep, a->env->data_dir, &spec))
        return (struct hb_head){.name = a->map.name, .version = a->env->version};
    struct hb_head head = hb_head_of(a->env, &spec);
    head.name = a->map.name;
    for (uint32_t i = 0; i < a->sweep->axis_count; i++) {
        const char *key = a->sweep->axes[i].key;
        bool device = hb_str_same(key, "hardware.device");
        if (device)
            head.device = NULL;
        if (device || hb_str_same(key, "compiler"))
            head.compiler = NULL;
    }
    return head;
}

/* Of all cells; "" where they run on several. */
static const char *find_place(const struct answer *a)
{
    struct hb_spec spec;
    enum hb_where most = HB_WHERE_MESH;
    for (uint32_t i = 0; i < a->sweep->axis_count; i++)
        if (hb_place_with(a->sweep->axes[i].key) < most)
            most = hb_place_with(a->sweep->axes[i].key);
    if (!hb_sweep_spec(a->env->arena, a->sweep, a->env->data_dir, &spec))
        return "";
    return hb_place_of(a->env->arena, &spec, most);
}

/* All but the cells. */
static void put_head(struct hb_json *j, const struct answer *a)
{
    const struct hb_sweep *s = a->sweep;
    struct hb_head head = find_head(a);
    hb_head_json(j, &head);
    hb_json_put_int(j, "budget_bytes", a->map.budget_bytes);
    put_axis(j, "x", &s->axes[0]);
    put_axis(j, "y", s->axis_count > 1 ? &s->axes[1] : NULL);
    if (s->axis_count > 2) {
        hb_json_key(j, "facets");
        hb_json_array(j);
        for (uint32_t i = 0; i < a->map.facet_count; i++)
            hb_json_text(j, a->map.facets[i]);
        hb_json_array_end(j);
    }
}

static void put_marked(struct hb_json *j, const struct answer *a, const char *key, uint32_t cell)
{
    if (key)
        hb_json_key(j, key);
    if (cell == HB_NONE) {
        hb_json_null(j);
        return;
    }
    hb_json_object(j);
    put_place(j, a->sweep, cell);
    hb_json_object_end(j);
}

static void put_json(struct hb_json *j, const struct answer *a)
{
    const struct hb_sweep *s = a->sweep;
    hb_json_object(j);
    put_head(j, a);
    hb_json_key(j, "cells");
    hb_json_array(j);
    for (uint32_t i = 0; i < s->cell_count; i++)
        put_cell(j, a, i);
    hb_json_array_end(j);
    put_marked(j, a, "best", a->map.best);
    hb_json_key(j, "best_of_each");
    hb_json_array(j);
    for (uint32_t i = 0; i < s->cell_count; i++)
        if (a->map.cells[i].best)
            put_marked(j, a, NULL, i);
    hb_json_array_end(j);
    put_marked(j, a, "own", hb_fit_own(&a->map));
    hb_json_object_end(j);
}

static void print_json(const struct answer *a, FILE *out, bool pretty)
{
    struct hb_str text;
    hb_str_init(&text, a->env->arena);
    struct hb_json j = hb_json_begin(&text, out, pretty);
    put_json(&j, a);
    hb_json_end(&j);
}

/* --- CSV --- */

/* A text that a spreadsheet would run as a formula gets an apostrophe, which makes it text. */
static void print_csv_text(FILE *out, const char *text)
{
    char *end;
    strtod(text, &end);
    bool formula = text[0] && strchr("=+-@\t\r", text[0]) && (*end || end == text);
    if (!formula && !strpbrk(text, ",\"\n\r")) {
        fputs(text, out);
        return;
    }
    fputs(formula ? "\"'" : "\"", out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_csv(const struct answer *a, FILE *out)
{
    for (uint32_t i = 0; i < a->sweep->axis_count; i++) {
        print_csv_text(out, a->sweep->axes[i].key);
        fputc(',', out);
    }
    fputs(
        "fits,peak_bytes,low_bytes,high_bytes,budget_bytes,step_seconds,tokens_per_second,error\n",
        out);
    for (uint32_t k = 0; k < a->sweep->cell_count; k++) {
        const struct hb_sweep_cell *c = &a->cells[k];
        char real[HB_REAL_TEXT], rate[HB_REAL_TEXT];
        if (!c->done)
            continue;
        for (uint32_t i = 0; i < a->sweep->axis_count; i++) {
            print_csv_text(out, hb_sweep_value(a->sweep, k, i));
            fputc(',', out);
        }
        if (c->error) {
            fputs(",,,,,,,", out);
            print_csv_text(out, c->error);
        } else {
            fprintf(out, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%s,",
                    c->fits ? "true" : "false", c->peak_bytes, c->low_bytes, c->high_bytes,
                    c->budget_bytes, hb_real_print((double)c->step_ns / 1e9, real),
                    hb_real_print(c->tokens_per_second, rate));
        }
        fputc('\n', out);
    }
}

/* --- text and pictures --- */

/* The values of a cell, with a blank before each: of the axes that are questions, that are not, or
 * all. */
enum which { ALL, QUESTIONS, WAYS };

static void print_values(const struct answer *a, uint32_t cell, enum which which, FILE *out)
{
    const struct hb_sweep *s = a->sweep;
    for (uint32_t i = 0; i < s->axis_count; i++)
        if (which == ALL || hb_sweep_is_question(s->axes[i].key) == (which == QUESTIONS))
            fprintf(out, " %s=%s", s->axes[i].key, hb_sweep_value(s, cell, i));
}

static void print_cell(const struct answer *a, uint32_t cell, FILE *out)
{
    char peak[HB_SIZE_TEXT], budget[HB_SIZE_TEXT], step[HB_SIZE_TEXT], rate[HB_SIZE_TEXT];
    const struct hb_sweep_cell *c = &a->cells[cell];
    fprintf(out, ": %s of %s%s, %s a step, %s tokens/s\n", hb_size_print(c->peak_bytes, peak),
            hb_size_print(c->budget_bytes, budget), c->fits ? "" : ", does not fit",
            hb_time_print(c->step_ns, step), hb_count_print(c->tokens_per_second, rate));
}

/* The fastest that fits; where sequences, models or machines vary, that of each, as a shorter
 * sequence or a larger machine is faster and no answer to the question. */
static void print_bests(const struct answer *a, FILE *out)
{
    enum { MOST = 24 };
    const struct hb_sweep *s = a->sweep;
    uint32_t bests = 0, told = 0;
    for (uint32_t i = 0; i < s->cell_count; i++)
        bests += a->map.cells[i].best;
    for (uint32_t i = 0; i < s->cell_count && told < MOST; i++) {
        if (!a->map.cells[i].best)
            continue;
        fputs(bests > 1 ? "best of" : "best:", out);
        print_values(a, i, bests > 1 ? QUESTIONS : ALL, out);
        if (bests > 1) {
            fputc(':', out);
            print_values(a, i, WAYS, out);
        }
        print_cell(a, i, out);
        told++;
    }
    if (bests > told)
        fprintf(out, "and %u others: best_of_each of --json\n", bests - told);
}

/* Where all that varies are questions nothing is best: what fits, with its time. */
static void print_each(const struct answer *a, FILE *out)
{
    enum { MOST = 24 };
    uint32_t told = 0;
    for (uint32_t i = 0; i < a->sweep->cell_count && told < MOST; i++) {
        if (!a->cells[i].fits)
            continue;
        fputs("at", out);
        print_values(a, i, ALL, out);
        print_cell(a, i, out);
        told++;
    }
}

static void print_own(const struct answer *a, FILE *out)
{
    uint32_t own = hb_fit_own(&a->map);
    if (own == HB_NONE || !a->cells[own].done || a->cells[own].error)
        return;
    fputs("as it stands:", out);
    print_values(a, own, ALL, out);
    print_cell(a, own, out);
}

/* Each reason once, with the cell that it is told of. */
static void print_reasons(const struct answer *a, FILE *out)
{
    enum { MOST = 5 };
    uint32_t count, cells = 0;
    const struct hb_fit_reason *reasons = hb_fit_reasons(a->env->arena, &a->map, &count);
    for (uint32_t i = 0; i < count; i++)
        cells += reasons[i].count;
    if (!count)
        return;
    fprintf(out, "%u of %u cells cannot be:\n", cells, a->sweep->cell_count);
    for (uint32_t i = 0; i < count && i < MOST; i++) {
        fprintf(out, "  %u  %s\n     at", reasons[i].count, reasons[i].text);
        print_values(a, reasons[i].first, ALL, out);
        fputs(reasons[i].count > 1 ? ", and others like it\n" : "\n", out);
    }
    if (count > MOST)
        fprintf(out, "  and %u reasons more: --csv has that of each cell\n", count - MOST);
}

/* What the map does not say: the best cells in full, the input's own, how many fit, what could not
 * be. */
static void print_summary(const struct answer *a, FILE *out)
{
    uint32_t fit = 0;
    for (uint32_t i = 0; i < a->sweep->cell_count; i++)
        fit += a->cells[i].fits;
    fputc('\n', out);
    if (hb_sweep_has_ways(a->sweep))
        print_bests(a, out);
    else
        print_each(a, out);
    print_own(a, out);
    fprintf(out, "%u of %u cells fit\n", fit, a->sweep->cell_count);
    print_reasons(a, out);
}

static void print_text(const struct answer *a, FILE *out)
{
    struct hb_str text;
    struct hb_term term = {.width = a->env->width, .colour = a->env->colour};
    struct hb_term own;
    if (hb_draw_in_terminal(a->env, NULL, &own))
        term = own;
    hb_str_init(&text, a->env->arena);
    hb_term_fit(&text, &term, &a->map);
    fputs(text.text, out);
    print_summary(a, out);
}

/* --- options --- */

static bool read_axis(struct hb_env *env, struct hb_sweep *s, const char *option, const char *text)
{
    if (!text)
        return true;
    if (s->axis_count == HB_SWEEP_AXES)
        return hb_error(env->diag, (struct hb_loc){0}, "more than %d axes", HB_SWEEP_AXES);
    struct hb_sweep_axis *axis = &s->axes[s->axis_count++];
    struct hb_loc at = {.file = hb_arena_printf(env->arena, "%s %s", option, text)};
    return hb_sweep_parse_axis(env->arena, env->diag, text, axis) &&
           hb_schema_check_key(env->arena, env->diag, at, axis->key);
}

static bool read_shard(struct hb_env *env, const char *text, struct hb_sweep_ask *ask)
{
    char *end = NULL;
    ask->shard = ask->shards = 1;
    if (!text)
        return true;
    ask->shard = strtoll(text, &end, 10);
    bool ok = end != text && *end == '/';
    const char *rest = ok ? end + 1 : text;
    ask->shards = ok ? strtoll(rest, &end, 10) : 0;
    ok = ok && end != rest && !*end && ask->shard >= 1 && ask->shard <= ask->shards;
    return ok || hb_error(env->diag, (struct hb_loc){0},
                          "--shard: '%s' is no part; allowed: I/N with I from 1 to N", text);
}

static bool read_sweep(struct hb_env *env, const struct options *o, struct hb_sweep *s)
{
    struct hb_schema_source source = hb_input_source(env, o->model, &o->common.set);
    *s = (struct hb_sweep){0};
    if (o->common.json + o->csv + o->lines > 1)
        return hb_error(env->diag, (struct hb_loc){0},
                        "--json, --csv and --lines exclude each other");
    if (!o->x)
        return hb_error(env->diag, (struct hb_loc){0}, "--x is missing; allowed: KEY=RANGE");
    if (o->facets.count && !o->y)
        return hb_error(env->diag, (struct hb_loc){0}, "--facet needs --y");
    if (!read_axis(env, s, "--x", o->x) || !read_axis(env, s, "--y", o->y))
        return false;
    for (uint32_t i = 0; i < o->facets.count; i++)
        if (!read_axis(env, s, "--facet", o->facets.items[i]))
            return false;
    return hb_sweep_count(env->diag, s) && hb_sweep_load(&source, s);
}

/* A whole sweep without any answer is a mistake in the input; a shard may be unlucky. */
static bool check_answered(const struct answer *a, const struct options *o)
{
    for (uint32_t i = 0; i < a->sweep->cell_count; i++)
        if (o->shard || (a->cells[i].done && !a->cells[i].error))
            return true;
    return hb_error(a->env->diag, (struct hb_loc){.file = o->model},
                    "none of %u cells can be; of the first: %s", a->sweep->cell_count,
                    a->cells[0].error);
}

/* A merge needs every cell. */
static bool check_whole(const struct answer *a, const struct hb_sweep_ask *ask)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < a->sweep->cell_count; i++)
        missing += !a->cells[i].done;
    if (missing && ask->merge_count)
        return hb_error(a->env->diag, (struct hb_loc){0},
                        "--merge: %u of %u cells are in none of the journals", missing,
                        a->sweep->cell_count);
    return true;
}

static void print_answer(const struct answer *a, const struct options *o, struct hb_out *out)
{
    struct hb_picture picture = {.kind = HB_PICTURE_FIT, .fit = a->map};
    if (o->common.json || o->lines)
        print_json(a, hb_out_file(out), o->common.json);
    else if (o->csv)
        print_csv(a, hb_out_file(out));
    else
        print_text(a, hb_out_file(out));
    if (o->plot.path)
        hb_draw_picture(a->env, &picture, &o->plot);
}

static bool read_ask(struct hb_env *env, const struct options *o, struct hb_sweep *sweep,
                     struct hb_sweep_ask *ask)
{
    if (ask->ranks.count > 1 && o->jobs > 1)
        return hb_error(env->diag, (struct hb_loc){0},
                        "--jobs: %d processes of MPI are there already", ask->ranks.count);
    if (!hb_draw_check(env, &o->plot) || !read_sweep(env, o, sweep) ||
        !read_shard(env, o->shard, ask))
        return false;
    if (o->merge.count) /* nothing is run */
        ask->shard = ask->shards = INT64_MAX;
    return true;
}

/* At once: who reads it draws it. */
static void print_line(void *context, const char *line, size_t len)
{
    FILE *out = hb_out_file(context);
    fwrite(line, 1, len, out);
    fflush(out);
}

/* Rank 0, or the only process: runs, prints. */
static int lead(struct hb_env *env, const struct options *o, const struct hb_sweep_ask *asked)
{
    struct hb_sweep_cell *cells = NULL;
    struct hb_out *out = hb_out_open(env, o->common.output);
    struct hb_sweep_ask told = *asked;
    const struct hb_sweep_ask *ask = &told;
    told.tell = o->lines ? print_line : NULL;
    told.context = out;
    bool ok = hb_sweep_run(ask, &cells);
    struct answer a = {.env = env, .sweep = ask->sweep, .cells = cells};
    if (ok)
        hb_fit_make(env->arena, ask->sweep, cells,
                    hb_sweep_own(env->arena, ask->sweep, env->data_dir), &a.map);
    if (ok && o->plot.path)
        a.map.place = find_place(&a);
    if (!ok || !check_whole(&a, ask) || !check_answered(&a, o)) {
        hb_out_drop(out);
        return HB_EXIT_INPUT;
    }
    print_answer(&a, o, out);
    hb_out_close(out);
    return a.map.best == HB_NONE ? HB_EXIT_NO : HB_EXIT_YES;
}

/* Of several ranks all read the input; rank 0 alone says what is wrong with it, and ends with the
 * status: mpirun stops the others where one of them ends with another than 0. */
static int run_ranks(struct hb_env *env, const struct options *o, struct hb_ranks ranks)
{
    struct hb_sweep sweep;
    struct hb_diag quiet;
    struct hb_env own = *env;
    struct hb_sweep_ask ask = {.env = ranks.rank ? &own : env,
                               .sweep = &sweep,
                               .journal = o->journal,
                               .merge = o->merge.items,
                               .merge_count = o->merge.count,
                               .jobs = o->merge.count ? 1 : o->jobs,
                               .ranks = ranks};
    hb_diag_init(&quiet, env->arena);
    own.diag = &quiet;
    bool ok = read_ask(ask.env, o, &sweep, &ask);
    bool agreed = hb_ranks_agree(ok);
    if (agreed && ranks.rank == 0)
        return lead(env, o, &ask);
    if (agreed)
        hb_sweep_follow(&ask);
    else if (ok && ranks.rank == 0)
        hb_error(env->diag, (struct hb_loc){.file = o->model},
                 "not all of %d processes could read it", ranks.count);
    return agreed || ranks.rank ? HB_EXIT_YES : HB_EXIT_INPUT;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    int status = hb_opt_parse(env, &hb_cmd_sweep, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!hb_input_confidence(env, o.confidence, &o.common.set))
        return HB_EXIT_INPUT;
    status = run_ranks(env, &o, hb_ranks_open());
    hb_ranks_close();
    return status;
}

static const struct hb_opt options[] = {
    {"MODEL.yaml", 0, HB_OPT_OPERAND, NULL, "the configuration; - is standard input", NULL,
     offsetof(struct options, model), 0, 0},
    {"x", 0, HB_OPT_STRING, "KEY=RANGE", "what varies along x: 8..512*2, 2048..8192+1024, a,b,c",
     NULL, offsetof(struct options, x), 0, 0},
    {"y", 0, HB_OPT_STRING, "KEY=RANGE", "what varies along y", NULL, offsetof(struct options, y),
     0, 0},
    {"facet", 0, HB_OPT_WORDS, "KEY=RANGE", "one map for each value; may be given several times",
     NULL, offsetof(struct options, facets), 0, 0},
    {"csv", 0, HB_OPT_FLAG, NULL, "print a line a cell", NULL, offsetof(struct options, csv), 0, 0},
    {"lines", 0, HB_OPT_FLAG, NULL,
     "print each cell as a line of JSON once it is run; the last line is that of --json", NULL,
     offsetof(struct options, lines), 0, 0},
    {"journal", 0, HB_OPT_OUTPUT, "FILE",
     "keep each cell here as it is done, and go on from it after an interrupt", NULL,
     offsetof(struct options, journal), 0, 0},
    {"jobs", 0, HB_OPT_INT, "N", "processes", "1", offsetof(struct options, jobs), 1, 256},
    {"shard", 0, HB_OPT_STRING, "I/N", "only this part of the cells, for a cluster's array jobs",
     NULL, offsetof(struct options, shard), 0, 0},
    {"merge", 0, HB_OPT_INPUTS, "FILE",
     "run nothing: take the cells from the shards' journals; may be given several times", NULL,
     offsetof(struct options, merge), 0, 0},
    HB_CONFIDENCE_OPTION(offsetof(struct options, confidence)),
    HB_DRAW_OPTIONS(offsetof(struct options, plot)),
    {0},
};

const struct hb_cmd hb_cmd_sweep = {
    .name = "sweep",
    .run = run,
    .summary = "a grid of configurations: what fits, with which peak",
    .about =
        "Runs the configuration for every combination of the values and prints a map of what\n"
        "fits. A combination that cannot be is a cell with its reason. With --journal, a sweep\n"
        "that was interrupted goes on where it stopped; with --shard, several machines share it,\n"
        "and --merge puts their journals together. The status is 0 where a cell fits, else 1.",
    .example = "hbmsim sweep examples/quickstart/model.yaml --x batch.global=8..64*2 --y "
               "batch.seq=2048..16384*2",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT | HB_COMMON_SET,
};
