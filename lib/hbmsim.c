/* The C API: each function runs a command in memory, its options checked against what a library
 * may do. See hbmsim.h. */
#include "lib/hbmsim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/json.h"
#include "base/mem_file.h"
#include "base/out.h"
#include "base/owned.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/opt.h"
#include "lib/call.h"

struct hbmsim_result {
    struct hb_arena *arena; /* holds this as well */
    const char *text;
    size_t text_bytes;
    const char *messages;
    const char *verdict;
    int64_t peak_bytes;
    double step_seconds;
    char why[HB_CALL_WHY];
};

/* A command, and those of its options that neither name a file nor start a process. */
struct door {
    const struct hb_cmd *command;
    const char *options; /* "|set|x|" */
    const char *always[3];
};

static const struct door simulate = {
    &hb_cmd_simulate, "|set|confidence|full|orders|rank|strict|", {"--json"}};
static const struct door plan = {
    &hb_cmd_plan,
    "|set|confidence|full|objective|budget|margin|seconds|thorough|prices|",
    {"--json"}};
static const struct door sweep = {&hb_cmd_sweep, "|set|confidence|x|y|facet|", {"--json"}};
static const struct door advise = {&hb_cmd_advise, "|set|", {"--json"}};
static const struct door import = {&hb_cmd_import, "|set|", {"--json"}};
static const struct door plot = {
    &hb_cmd_plot, "|kind|format|theme|size|scale|font|text|", {"--format=svg"}};

/* An output in memory. */
struct sink {
    FILE *file;
    char *text;
    size_t len;
    struct hb_owned owned;
};

struct call {
    const struct door *door;
    const struct hbmsim_input *in;
    const char *const *options;
    struct hbmsim_result *result;
    struct hb_env env;
    struct hb_diag diag;
    struct sink out;
    struct sink err;
    int status;
};

static void drop_sink(void *what)
{
    struct sink *s = what;
    fclose(s->file);
    free(s->text);
}

static void open_sink(struct sink *s)
{
    s->file = hb_mem_open(&s->text, &s->len);
    if (!s->file)
        hb_die("out of memory: no room for an output");
    hb_own(&s->owned, drop_sink, s);
}

/* What was written, in the result's memory. */
static const char *close_sink(struct sink *s, struct hb_arena *arena, size_t *out_len)
{
    bool lost = fflush(s->file) != 0 || ferror(s->file) != 0 || !s->text;
    if (lost)
        hb_die("out of memory: an output is lost");
    const char *text = hb_arena_strndup(arena, s->text, s->len);
    *out_len = s->len;
    hb_disown(&s->owned);
    drop_sink(s);
    return text;
}

/* The name of an option between bars; null: no option. */
static const char *barred_name(struct hb_arena *arena, const char *word)
{
    if (!hb_str_starts(word, "--") || !word[2])
        return NULL;
    return hb_arena_printf(arena, "|%.*s|", (int)strcspn(word + 2, "=|"), word + 2);
}

/* Whether the caller says that option (as "--format=svg") itself. */
static bool says(const struct call *c, const char *option)
{
    size_t len = strcspn(option, "=");
    for (const char *const *o = c->options; o && *o; o++)
        if (strncmp(*o, option, len) == 0 && ((*o)[len] == '=' || !(*o)[len]))
            return true;
    return false;
}

static bool read_options(struct call *c, struct hb_words *argv)
{
    struct hb_arena *arena = c->env.arena;
    hb_words_add(argv, arena, c->door->command->name);
    for (const char *const *o = c->options; o && *o; o++) {
        const char *name = barred_name(arena, *o);
        if (!name || !strstr(c->door->options, name))
            return hb_error(&c->diag, (struct hb_loc){0},
                            "'%s' is no option that the library takes", *o);
        hb_words_add(argv, arena, *o);
    }
    for (const char *const *o = c->door->always; *o; o++)
        if (!says(c, *o))
            hb_words_add(argv, arena, *o);
    hb_words_add(argv, arena, "--");
    hb_words_add(argv, arena, c->env.given.name);
    hb_words_add(argv, arena, NULL);
    return true;
}

static bool read_input(struct call *c)
{
    const struct hbmsim_input *in = c->in;
    if (!in || (!in->text && in->text_bytes))
        return hb_error(&c->diag, (struct hb_loc){0}, "no input is given");
    c->env.given = (struct hb_given){
        .name = in->name && in->name[0] ? in->name : "model.yaml",
        .text = hb_arena_strndup(c->env.arena, in->text ? in->text : "", in->text_bytes),
        .len = in->text_bytes};
    c->env.data_dir = in->data_dir ? in->data_dir : HB_DATADIR;
    return true;
}

/* Of a simulation, or of the one in a plan. */
static void find_figures(struct call *c)
{
    struct hbmsim_result *r = c->result;
    struct hb_node *root = NULL;
    struct hb_diag unheard;
    hb_diag_init(&unheard, c->env.arena);
    if (r->text[0] != '{' ||
        !hb_json_parse(c->env.arena, &unheard, (struct hb_loc){"a result", 1, 1}, r->text,
                       r->text_bytes, &root))
        return;
    const struct hb_node *of = hb_node_find(root, "prediction");
    const struct hb_node *verdict = hb_node_find(of ? of : root, "verdict");
    hb_node_int(hb_node_find(of ? of : root, "peak_bytes"), &r->peak_bytes);
    hb_node_real(hb_node_find(of ? of : root, "step_seconds"), &r->step_seconds);
    if (verdict)
        r->verdict = hb_arena_strdup(r->arena, verdict->text);
}

static void run_command(void *context)
{
    struct call *c = context;
    struct hb_words argv = {0};
    size_t unused;
    c->env = (struct hb_env){.arena = hb_arena_new(),
                             .diag = &c->diag,
                             .version = HB_VERSION,
                             .trace = "",
                             .now_ns = hb_clock_ns,
                             .guest = true,
                             .width = 80};
    hb_diag_init(&c->diag, c->env.arena);
    open_sink(&c->out);
    open_sink(&c->err);
    c->env.out = c->out.file;
    c->env.err = c->err.file;
    c->status = HB_EXIT_INPUT;
    if (read_input(c) && read_options(c, &argv))
        c->status = c->door->command->run(&c->env, (int)argv.count - 1, (char **)argv.items);
    if (c->diag.errors)
        c->status = HB_EXIT_INPUT;
    hb_diag_print(&c->diag, c->env.err);
    c->result->text = close_sink(&c->out, c->result->arena, &c->result->text_bytes);
    c->result->messages = close_sink(&c->err, c->result->arena, &unused);
    if (c->status <= HB_EXIT_NO)
        find_figures(c);
    hb_arena_free(c->env.arena);
}

static void make_result(void *context)
{
    struct call *c = context;
    struct hb_arena *arena = hb_arena_new();
    c->result = hb_arena_alloc(arena, 1, sizeof *c->result);
    *c->result = (struct hbmsim_result){.arena = arena,
                                        .text = "",
                                        .messages = "",
                                        .verdict = "",
                                        .peak_bytes = -1,
                                        .step_seconds = -1};
    hb_arena_keep(arena);
}

static int enter(const struct door *door, const struct hbmsim_input *in, const char *const *options,
                 struct hbmsim_result **out)
{
    struct call c = {.door = door, .in = in, .options = options};
    char why[HB_CALL_WHY];
    *out = NULL;
    if (!hb_call(make_result, &c, why))
        return HBMSIM_MACHINE;
    struct hbmsim_result *r = c.result;
    *out = r;
    if (hb_call(run_command, &c, why))
        return c.status;
    *r = (struct hbmsim_result){
        .arena = r->arena, .text = "", .verdict = "", .peak_bytes = -1, .step_seconds = -1};
    snprintf(r->why, sizeof r->why, "hbmsim: fatal: %.*s\n", HB_CALL_WHY - 20, why);
    r->messages = r->why;
    return HBMSIM_MACHINE;
}

int hbmsim_simulate(const struct hbmsim_input *in, const char *const *options,
                    struct hbmsim_result **out)
{
    return enter(&simulate, in, options, out);
}

int hbmsim_plan(const struct hbmsim_input *in, const char *const *options,
                struct hbmsim_result **out)
{
    return enter(&plan, in, options, out);
}

int hbmsim_sweep(const struct hbmsim_input *in, const char *const *options,
                 struct hbmsim_result **out)
{
    return enter(&sweep, in, options, out);
}

int hbmsim_advise(const struct hbmsim_input *in, const char *const *options,
                  struct hbmsim_result **out)
{
    return enter(&advise, in, options, out);
}

int hbmsim_import(const struct hbmsim_input *in, const char *const *options,
                  struct hbmsim_result **out)
{
    return enter(&import, in, options, out);
}

int hbmsim_plot(const struct hbmsim_input *in, const char *const *options,
                struct hbmsim_result **out)
{
    return enter(&plot, in, options, out);
}

const char *hbmsim_text(const struct hbmsim_result *r, size_t *bytes)
{
    if (bytes)
        *bytes = r ? r->text_bytes : 0;
    return r ? r->text : "";
}

const char *hbmsim_messages(const struct hbmsim_result *r)
{
    return r ? r->messages : "hbmsim: fatal: out of memory\n";
}

int64_t hbmsim_peak_bytes(const struct hbmsim_result *r)
{
    return r ? r->peak_bytes : -1;
}

double hbmsim_step_seconds(const struct hbmsim_result *r)
{
    return r ? r->step_seconds : -1;
}

const char *hbmsim_verdict(const struct hbmsim_result *r)
{
    return r ? r->verdict : "";
}

void hbmsim_free(struct hbmsim_result *r)
{
    if (r)
        hb_arena_free(r->arena);
}

const char *hbmsim_version(void)
{
    return "hbmsim " HB_VERSION;
}
