/* hbmsim simulate: one configuration, lowered and run. */
#include <string.h>

#include "base/arena.h"
#include "base/out.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "cli/input.h"
#include "cli/show.h"
#include "plots/picture.h"
#include "plots/term.h"
#include "sim/graph/link.h"

struct options {
    struct hb_common common;
    const char *model;
    const char *explain;
    const char *timeline;
    const char *rank;
    struct hb_draw_options plot;
    double confidence;
    bool full;
    bool strict;
    bool orders;
    int dump;
    bool dot;
};

enum dump { DUMP_NONE = -1, DUMP_GRAPH, DUMP_BUFFERS, DUMP_HEAP, DUMP_EVENTS };

/* One answer is printed; two that exclude each other are a mistake. */
static bool check_outputs(struct hb_env *env, const struct options *o)
{
    int count = o->common.json + (o->explain != NULL) + (o->dump != DUMP_NONE) + o->dot;
    return count <= 1 || hb_error(env->diag, (struct hb_loc){0},
                                  "--json, --explain, --dump and --dot exclude each other");
}

/* Null where they are not asked for. */
static const struct hb_step_orders *orders_of(struct hb_env *env, const struct options *o,
                                              const struct hb_result *r)
{
    if (!o->orders)
        return NULL;
    struct hb_step_orders *orders = hb_arena_alloc(env->arena, 1, sizeof *orders);
    hb_step_orders_find(env->arena, &r->program, orders);
    return orders;
}

static void print_json(struct hb_env *env, FILE *out, const struct options *o,
                       const struct hb_result *r)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, out, true);
    struct hb_head head = hb_head_of(env, r->spec);
    hb_show_json(&j, env->arena, r, o->full, orders_of(env, o, r), &head);
    hb_json_end(&j);
}

static void print_dump(struct hb_env *env, FILE *out, enum dump what, const struct hb_result *r)
{
    switch (what) {
    case DUMP_NONE:
        return;
    case DUMP_GRAPH:
        hb_show_graph(out, r);
        return;
    case DUMP_BUFFERS:
        hb_show_buffers(out, r);
        return;
    case DUMP_HEAP:
        hb_show_heap(out, env->arena, r);
        return;
    case DUMP_EVENTS:
        hb_show_events(out, env->arena, r);
        return;
    }
}

/* In a terminal the picture comes first, so that the figures stay in sight. */
static void print_text(struct hb_env *env, FILE *out, const struct options *o,
                       const struct hb_result *r)
{
    struct hb_term term;
    struct hb_outcome outcome;
    struct hb_str text;
    hb_str_init(&text, env->arena);
    if (hb_draw_in_terminal(env, o->common.output, &term)) {
        hb_outcome_make(env->arena, r, &outcome);
        hb_term_timeline(&text, &term, &outcome);
        fprintf(out, "%s\n", text.text);
    }
    hb_show_text(env, out, r);
    const struct hb_step_orders *orders = orders_of(env, o, r);
    if (orders)
        hb_show_orders(out, orders);
}

static void draw_picture(struct hb_env *env, const struct hb_draw_options *o,
                         const struct hb_result *r)
{
    struct hb_outcome outcome;
    struct hb_picture picture = {
        .kind = HB_PICTURE_TIMELINE, .outcomes = &outcome, .outcome_count = 1};
    hb_outcome_make(env->arena, r, &outcome);
    hb_draw_picture(env, &picture, o);
}

static bool print_answer(struct hb_env *env, FILE *out, const struct options *o,
                         const struct hb_result *r)
{
    if (o->explain)
        return hb_show_explain(env, out, r, o->explain);
    if (o->common.json)
        print_json(env, out, o, r);
    else if (o->dump != DUMP_NONE)
        print_dump(env, out, (enum dump)o->dump, r);
    else if (o->dot)
        hb_show_dot(out, env->arena, r);
    else
        print_text(env, out, o, r);
    return true;
}

/* HBM_TRACE: a line for each placement, for each event. */
static void print_trace(struct hb_env *env, const struct hb_result *r)
{
    if (strstr(env->trace, "alloc"))
        hb_show_heap(env->err, env->arena, r);
    if (strstr(env->trace, "event"))
        hb_show_events(env->err, env->arena, r);
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {.dump = DUMP_NONE};
    struct hb_spec spec;
    struct hb_device device;
    struct hb_result result;
    int status = hb_opt_parse(env, &hb_cmd_simulate, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (o.rank)
        hb_words_add(&o.common.set, env->arena,
                     hb_arena_printf(env->arena, "pipeline.rank=%s", o.rank));
    if (!check_outputs(env, &o) || !hb_draw_check(env, &o.plot) ||
        !hb_input_confidence(env, o.confidence, &o.common.set) ||
        !hb_input_read(env, o.model, &o.common.set, &spec, &device))
        return HB_EXIT_INPUT;
    if (o.orders && spec.compiler == HB_TORCH) {
        hb_error(env->diag, (struct hb_loc){0}, "--orders: torch runs ops as they are issued");
        return HB_EXIT_INPUT;
    }
    struct hb_out *out = hb_out_open(env, o.common.output);
    struct hb_out *trace = o.timeline ? hb_out_open(env, o.timeline) : NULL;
    bool good = hb_result_run(env->arena, env->diag, &spec, &device, &result) &&
                print_answer(env, hb_out_file(out), &o, &result);
    if (!good) {
        hb_out_drop(out);
        if (trace)
            hb_out_drop(trace);
        return HB_EXIT_INPUT;
    }
    print_trace(env, &result);
    if (trace) {
        hb_show_trace(hb_out_file(trace), env->arena, &result);
        hb_out_close(trace);
    }
    if (o.plot.path)
        draw_picture(env, &o.plot, &result);
    hb_out_close(out);
    return result.verdict == HB_VERDICT_FITS || (result.verdict == HB_VERDICT_TIGHT && !o.strict)
               ? HB_EXIT_YES
               : HB_EXIT_NO;
}

static const struct hb_opt options[] = {
    {"MODEL.yaml", 0, HB_OPT_OPERAND, NULL, "the configuration; - is standard input", NULL,
     offsetof(struct options, model), 0, 0},
    {"explain", 0, HB_OPT_STRING, "TENSOR",
     "why tensors with this text in their names are alive at the peak", NULL,
     offsetof(struct options, explain), 0, 0},
    {"rank", 0, HB_OPT_STRING, "N",
     "of a pipeline whose ranks run programs of their own, the one to tell; else the heaviest",
     NULL, offsetof(struct options, rank), 0, 0},
    {"timeline", 0, HB_OPT_OUTPUT, "FILE", "write a trace for Perfetto or chrome://tracing", NULL,
     offsetof(struct options, timeline), 0, 0},
    HB_DRAW_OPTIONS(offsetof(struct options, plot)),
    HB_CONFIDENCE_OPTION(offsetof(struct options, confidence)),
    {"strict", 0, HB_OPT_FLAG, NULL, "what may not fit counts as what does not: status 1", NULL,
     offsetof(struct options, strict), 0, 0},
    {"full", 0, HB_OPT_FLAG, NULL, "with --json: also the curve over time and where buffers lie",
     NULL, offsetof(struct options, full), 0, 0},
    {"orders", 0, HB_OPT_FLAG, NULL,
     "also what each of XLA's three orders of the step would need, and which it takes", NULL,
     offsetof(struct options, orders), 0, 0},
    {"dump", 0, HB_OPT_CHOICE, "graph|buffers|heap|events",
     "print the program or its run as a list", NULL, offsetof(struct options, dump), 0, 0},
    {"dot", 0, HB_OPT_FLAG, NULL, "print the program as a graph for Graphviz", NULL,
     offsetof(struct options, dot), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_simulate = {
    .name = "simulate",
    .run = run,
    .summary = "one configuration: peak memory, what stands in it, step time",
    .about =
        "Lowers the step to ops and buffers, places the buffers as the compiler does and\n"
        "runs the ops on the device's streams. Prints whether it fits, what peaks, when and\n"
        "why, and the time by stream. The peak has an interval, from compiled steps like this\n"
        "one: FITS says that with that confidence no more than the budget is needed, TIGHT\n"
        "that its lower end is within it. The status is 0 where it fits or is tight, and 1\n"
        "where it does not fit.",
    .example = "hbmsim simulate examples/quickstart/model.yaml",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT | HB_COMMON_SET,
};
