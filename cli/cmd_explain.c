/* hbmsim explain: from a log or its excerpt, what ran out of memory, why, and what helps. */
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/pickle.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/head.h"
#include "cli/show_snapshot.h"
#include "cli/wrap.h"
#include "sim/hlo/logfile.h"
#include "sim/hlo/story.h"

struct options {
    struct hb_common common;
    const char *log;
    const char *model;
};

struct printer {
    struct hb_env *env;
    FILE *out;
    const char *file; /* of the log */
    const struct hb_log *log;
    const struct hb_story *story;
    const char *const *commands;
    int command_count;
};

static void print_figure(const struct printer *p, const char *name, int64_t bytes, const char *note)
{
    char size[HB_SIZE_TEXT];
    if (bytes >= 0)
        fprintf(p->out, "  %-13s %11s%s%s\n", name, hb_size_print(bytes, size), note ? "  " : "",
                note ? note : "");
}

static void print_figures(const struct printer *p)
{
    const struct hb_story *s = p->story;
    bool failed = s->cause != HB_CAUSE_NONE;
    bool any = s->wanted_bytes >= 0 || s->available_bytes >= 0 || s->state_bytes >= 0;
    if (any)
        fputc('\n', p->out);
    print_figure(p, failed ? "wanted" : "takes", s->wanted_bytes, s->wanted_of);
    print_figure(p, failed ? "there was" : "there is", s->available_bytes, s->available_of);
    print_figure(p, "too much", s->over_bytes, NULL);
    print_figure(p, "held", s->state_bytes, "between steps, as far as the log tells");
    print_figure(p, "on top", s->transient_bytes, "at the peak");
}

static void print_parts(const struct printer *p)
{
    char size[HB_SIZE_TEXT];
    if (p->story->part_count)
        fputs("\nOf it:\n", p->out);
    for (int i = 0; i < p->story->part_count; i++) {
        const struct hb_story_part *part = &p->story->parts[i];
        fprintf(p->out, "  %11s  %s%s\n", hb_size_print(part->bytes, size),
                part->inside ? "  of that: " : "", part->name);
    }
}

/* The end of an operation's path, without what stands in brackets behind it. */
static const char *shorten_op(struct hb_arena *arena, const char *op)
{
    size_t len = strcspn(op, "[;");
    size_t start = len;
    for (int slashes = 0; start > 0; start--)
        if (op[start - 1] == '/' && ++slashes == 3)
            break;
    return hb_arena_strndup(arena, op + start, len - start);
}

static void print_group(const struct printer *p, const struct hb_story_group *g)
{
    char size[HB_SIZE_TEXT];
    const struct hb_log_item *item = g->item;
    fprintf(p->out, "  %11s  ", hb_size_print(g->bytes, size));
    if (g->count > 1)
        fprintf(p->out, "%d x %s  ", g->count, hb_size_print(item->bytes, size));
    fprintf(p->out, "%s", item->shape[0] ? item->shape : item->label);
    if (g->padding_bytes > 0)
        fprintf(p->out, "  (%s of it padding)", hb_size_print(g->padding_bytes, size));
    fputc('\n', p->out);
    if (g->what != HB_WHAT_OTHER)
        fprintf(p->out, "               %s\n", hb_what_title(g->what));
    if (item->op[0])
        fprintf(p->out, "               %s\n", shorten_op(p->env->arena, item->op));
    if (item->source[0])
        fprintf(p->out, "               %s\n", item->source);
}

enum { GROUPS_SHOWN = 6 };

static void print_groups(const struct printer *p)
{
    const struct hb_story *s = p->story;
    if (s->group_count)
        fputs("\nBy what (the largest that the log lists):\n", p->out);
    for (int i = 0; i < s->group_count && i < GROUPS_SHOWN; i++)
        print_group(p, &s->groups[i]);
    if (s->group_count > GROUPS_SHOWN)
        fprintf(p->out, "  and %d more\n", s->group_count - GROUPS_SHOWN);
}

static void print_why(const struct printer *p)
{
    const char *title = hb_cause_title(p->story->cause);
    if (p->story->cause == HB_CAUSE_NONE)
        fputc('\n', p->out);
    else
        fprintf(p->out, "\nWhy: %s.\n", title);
    hb_wrap_print(p->env, p->out, p->story->because, 2);
    for (int i = 0; i < p->story->note_count; i++)
        hb_wrap_print(p->env, p->out, p->story->notes[i], 2);
}

static const char *when_text(enum hb_story_when when)
{
    static const char *const texts[] = {[HB_WHEN_ANY] = "",
                                        [HB_WHEN_TRAINS] = "if it trains: ",
                                        [HB_WHEN_RUNS] = "if it only runs a model: ",
                                        [HB_WHEN_DEVICE] = "if it was a device's memory: ",
                                        [HB_WHEN_HOST] = "if it was the host's: "};
    return texts[when];
}

static void print_knobs(const struct printer *p)
{
    char size[HB_SIZE_TEXT];
    const struct hb_story *s = p->story;
    if (s->knob_count)
        fputs(s->cause == HB_CAUSE_NONE ? "\nIf less is wanted:\n"
                                        : "\nWhat helps, in this order:\n",
              p->out);
    for (int i = 0; i < s->knob_count; i++) {
        enum hb_knob knob = s->knobs[i].knob;
        const char *words =
            s->framework < HB_FW_LOG_COUNT ? hb_knob_words(knob, s->framework) : NULL;
        fprintf(p->out, "  %d. %s%s", i + 1, when_text(s->knobs[i].when), hb_knob_title(knob));
        if (s->knobs[i].frees_bytes > 0)
            fprintf(p->out, " (up to %s)", hb_size_print(s->knobs[i].frees_bytes, size));
        fputc('\n', p->out);
        if (words)
            fprintf(p->out, "       %s: %s\n", hb_log_framework_key(s->framework), words);
        if (hb_story_set(s, knob))
            fprintf(p->out, "       hbmsim: --set '%s'\n", hb_story_set(s, knob));
    }
}

static void print_text(const struct printer *p)
{
    hb_wrap_print(p->env, p->out, p->story->title, 0);
    print_figures(p);
    print_parts(p);
    print_groups(p);
    print_why(p);
    print_knobs(p);
    if (p->command_count)
        fputs("\nTo try it before the next run:\n", p->out);
    for (int i = 0; i < p->command_count; i++)
        fprintf(p->out, "  %s\n", p->commands[i]);
}

static void write_message(struct hb_json *j, const struct hb_log *log, enum hb_log_kind kind)
{
    const struct hb_log_message *m = &log->message[kind];
    hb_json_object(j);
    hb_json_put_text(j, "kind", hb_log_kind_key(kind));
    hb_json_put_known(j, "line", m->line);
    hb_json_put_known(j, "times", m->times);
    hb_json_put_text(j, "name", m->name[0] ? m->name : NULL);
    hb_json_key(j, "facts");
    hb_json_object(j);
    for (int f = 0; f < HB_FACT_COUNT; f++)
        if (m->fact[f] >= 0)
            hb_json_put_known(j, hb_log_fact_key((enum hb_log_fact)f), m->fact[f]);
    hb_json_object_end(j);
    hb_json_object_end(j);
}

static void write_messages(struct hb_json *j, const struct hb_log *log)
{
    hb_json_key(j, "messages");
    hb_json_array(j);
    for (int kind = 0; kind < HB_LOG_KIND_COUNT; kind++)
        if (hb_log_seen(log, (enum hb_log_kind)kind))
            write_message(j, log, (enum hb_log_kind)kind);
    hb_json_array_end(j);
}

static void write_parts(struct hb_json *j, const struct hb_story *s)
{
    hb_json_key(j, "parts");
    hb_json_array(j);
    for (int i = 0; i < s->part_count; i++) {
        hb_json_object(j);
        hb_json_put_text(j, "name", s->parts[i].name);
        hb_json_put_known(j, "bytes", s->parts[i].bytes);
        hb_json_put_bool(j, "inside", s->parts[i].inside);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void write_groups(struct hb_json *j, const struct hb_story *s)
{
    hb_json_key(j, "top");
    hb_json_array(j);
    for (int i = 0; i < s->group_count; i++) {
        const struct hb_story_group *g = &s->groups[i];
        hb_json_object(j);
        hb_json_put_text(j, "what", hb_what_key(g->what));
        hb_json_put_text(j, "op_name", g->item->op[0] ? g->item->op : NULL);
        hb_json_put_text(j, "shape", g->item->shape[0] ? g->item->shape : NULL);
        hb_json_put_text(j, "source", g->item->source[0] ? g->item->source : NULL);
        hb_json_put_known(j, "bytes", g->bytes);
        hb_json_put_known(j, "count", g->count);
        hb_json_put_known(j, "padding_bytes", g->padding_bytes);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void write_knobs(struct hb_json *j, const struct hb_story *s)
{
    hb_json_key(j, "knobs");
    hb_json_array(j);
    for (int i = 0; i < s->knob_count; i++) {
        enum hb_knob knob = s->knobs[i].knob;
        hb_json_object(j);
        hb_json_put_text(j, "knob", hb_knob_key(knob));
        hb_json_put_text(j, "when", hb_when_key(s->knobs[i].when));
        hb_json_put_text(j, "what", hb_knob_title(knob));
        hb_json_put_text(j, "set", hb_story_set(s, knob));
        hb_json_put_text(j, "words",
                         s->framework < HB_FW_LOG_COUNT ? hb_knob_words(knob, s->framework) : NULL);
        hb_json_put_known(j, "frees_bytes", s->knobs[i].frees_bytes);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void write_list(struct hb_json *j, const char *key, const char *const *texts, int count)
{
    hb_json_key(j, key);
    hb_json_array(j);
    for (int i = 0; i < count; i++)
        hb_json_text(j, texts[i]);
    hb_json_array_end(j);
}

static void write_story(struct hb_json *j, const struct printer *p)
{
    const struct hb_story *s = p->story;
    hb_json_put_bool(j, "supposed", s->supposed);
    hb_json_put_text(j, "what", s->title);
    hb_json_put_text(j, "cause", hb_cause_key(s->cause));
    hb_json_put_text(j, "why", s->because);
    write_list(j, "notes", s->notes, s->note_count);
    hb_json_put_text(j, "framework",
                     s->framework < HB_FW_LOG_COUNT ? hb_log_framework_key(s->framework) : NULL);
    hb_json_put_known(j, "wanted_bytes", s->wanted_bytes);
    hb_json_put_known(j, "available_bytes", s->available_bytes);
    hb_json_put_known(j, "over_bytes", s->over_bytes);
    hb_json_put_known(j, "capacity_bytes", s->capacity_bytes);
    hb_json_put_known(j, "state_bytes", s->state_bytes);
    hb_json_put_known(j, "transient_bytes", s->transient_bytes);
    write_parts(j, s);
    write_groups(j, s);
    write_knobs(j, s);
    write_list(j, "commands", p->commands, p->command_count);
}

static void print_json(const struct printer *p, bool known)
{
    struct hb_str text;
    hb_str_init(&text, p->env->arena);
    struct hb_json j = hb_json_begin(&text, p->out, true);
    struct hb_head head = {.name = p->file,
                           .version = p->env->version,
                           .compiler = known ? p->story->compiler : NULL,
                           .device = known ? p->story->device : NULL};
    hb_json_object(&j);
    hb_head_json(&j, &head);
    hb_json_put_bool(&j, "known", known);
    hb_json_put_known(&j, "lines", p->log->lines);
    if (known)
        write_story(&j, p);
    write_messages(&j, p->log);
    hb_json_object_end(&j);
    hb_json_end(&j);
}

static int explain(struct hb_env *env, const struct options *o, const struct hb_log *log)
{
    struct hb_story story;
    const char *commands[4];
    struct hb_out *out = hb_out_open(env, o->common.output);
    struct printer p = {env, hb_out_file(out), o->log, log, &story, commands, 0};
    const char *folder = hb_arena_printf(env->arena, "%s/models/zoo", env->data_dir);
    struct hb_story_model model = {o->model, hb_file_list(env->arena, folder, ".yaml")};
    bool known = hb_story_tell(env->arena, log, &story);
    if (known && story.of_a_step)
        p.command_count = hb_story_commands(env->arena, log, &story, model, commands);
    if (o->common.json)
        print_json(&p, known);
    else if (known)
        print_text(&p);
    else
        fprintf(p.out, "Nothing that is known about memory in %lld lines of %s.\n",
                (long long)log->lines, o->log);
    hb_out_close(out);
    return known ? HB_EXIT_YES : HB_EXIT_NO;
}

/* Snapshots of an hour's history are some 100 MB; they take several times that to read. */
#define MOST_SNAPSHOT_BYTES ((size_t)1 << 30)

/* No log begins with these bytes. */
static bool is_snapshot(const char *path)
{
    char start[2];
    return hb_pickle_is(start, hb_file_start(path, start, sizeof start));
}

static int explain_snapshot(struct hb_env *env, const struct options *o)
{
    struct hb_text text;
    struct hb_snapshot snapshot;
    const char *reason;
    if (!hb_file_load(env->arena, o->log, MOST_SNAPSHOT_BYTES, &text, &reason)) {
        hb_error(env->diag, (struct hb_loc){0}, "%s %s", o->log, reason);
        return HB_EXIT_INPUT;
    }
    if (!hb_snapshot_read(env->arena, env->diag, o->log, text.text, text.len, &snapshot))
        return HB_EXIT_INPUT;
    struct hb_out *out = hb_out_open(env, o->common.output);
    if (o->common.json)
        hb_show_snapshot_json(env, hb_out_file(out), o->log, &snapshot);
    else
        hb_show_snapshot_text(env, hb_out_file(out), &snapshot);
    hb_out_close(out);
    return HB_EXIT_YES;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct hb_log *log = hb_arena_alloc(env->arena, 1, sizeof *log);
    int status = hb_opt_parse(env, &hb_cmd_explain, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (is_snapshot(o.log))
        return explain_snapshot(env, &o);
    if (!hb_logfile_read(env->arena, env->diag, o.log, log))
        return HB_EXIT_INPUT;
    return explain(env, &o, log);
}

static const struct hb_opt options[] = {
    {"LOG", 0, HB_OPT_OPERAND, NULL,
     "a log or an excerpt of one, plain or .gz; - for stdin; or a memory snapshot of PyTorch", NULL,
     offsetof(struct options, log), 0, 0},
    {"model", 0, HB_OPT_INPUT, "FILE.yaml", "your model, for the command lines that are proposed",
     NULL, offsetof(struct options, model), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_explain = {
    .name = "explain",
    .run = run,
    .summary = "what an out-of-memory message in a log means, and what helps",
    .about =
        "Finds what XLA, its BFC allocator, PyTorch, NCCL, MaxText and others say about\n"
        "memory in a log of any size, and tells how much was wanted, by what, why it was\n"
        "not there and which knobs help, in which order. Status 1: nothing known in it.\n"
        "Lines that a program printed count in a guide or a quote, too; its prose does not.\n"
        "A memory snapshot (torch.cuda.memory._dump_snapshot) is told instead by who stands at\n"
        "its peak, line of code by line, where free memory lies, segment by segment, and what\n"
        "the same requests would have taken with other settings of the allocator.",
    .example = "hbmsim explain tests/golden/logs/tpu-hbm.log",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT,
};
