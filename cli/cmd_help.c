/* hbmsim help [COMMAND]: the overview, or what a command or the input format says of itself. */
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/complete.h"
#include "cli/help.h"
#include "cli/json_keys.h"
#include "cli/man.h"
#include "models/schema.h"

struct options {
    const char *topic;
    const char *section;
    int completion;
    bool man;
    bool schema;
};

enum { COMPLETION_BASH, COMPLETION_ZSH }; /* as the words of --completion */

/* The keys of the input file: all, or those of a section. */
static int explain_model(struct hb_env *env, const char *section)
{
    const char *near = NULL;
    if (hb_schema_help(env->out, env->arena, section, &near))
        return HB_EXIT_YES;
    if (near)
        hb_error(env->diag, (struct hb_loc){0},
                 "the input has no section or key '%s'; did you mean '%s'?", section, near);
    else
        hb_error(env->diag, (struct hb_loc){0},
                 "the input has no section or key '%s'; 'hbmsim help model' has all", section);
    return HB_EXIT_INPUT;
}

static int explain_json(struct hb_env *env, const char *kind)
{
    if (hb_json_keys_text(env->out, kind))
        return HB_EXIT_YES;
    hb_error(env->diag, (struct hb_loc){0}, "no result '%s'; 'hbmsim help json' has all", kind);
    return HB_EXIT_INPUT;
}

static int explain_topic(struct hb_env *env, const char *topic, const char *section)
{
    if (hb_str_same(topic, "model"))
        return explain_model(env, section);
    if (hb_str_same(topic, "json"))
        return explain_json(env, section);
    const struct hb_cmd *cmd = hb_help_find(topic);
    const char *near = NULL;
    if (!cmd && !section && hb_schema_help(env->out, env->arena, topic, &near))
        return HB_EXIT_YES;
    if (!cmd) {
        hb_help_unknown(env, topic, near);
        return HB_EXIT_INPUT;
    }
    if (section) {
        hb_error(env->diag, (struct hb_loc){0},
                 "only 'hbmsim help model' and 'hbmsim help json' take a section");
        return HB_EXIT_INPUT;
    }
    hb_help_command(env, cmd);
    return HB_EXIT_YES;
}

static int print_schema(struct hb_env *env, const char *topic)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, env->out, true);
    if (topic && hb_str_same(topic, "model")) {
        hb_schema_json(&j);
    } else if (topic && hb_str_same(topic, "json")) {
        hb_json_keys_schema(&j);
    } else {
        hb_error(env->diag, (struct hb_loc){0},
                 "--json-schema: of 'model' (the input file) or 'json' (the results)");
        return HB_EXIT_INPUT;
    }
    hb_json_end(&j);
    return HB_EXIT_YES;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    int status = hb_opt_parse(env, &hb_cmd_help, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (o.schema)
        return print_schema(env, o.topic);
    if (o.completion == COMPLETION_BASH)
        hb_complete_bash(env);
    else if (o.completion == COMPLETION_ZSH)
        hb_complete_zsh(env);
    else if (o.man)
        hb_man_commands(env);
    else if (o.topic)
        return explain_topic(env, o.topic, o.section);
    else
        hb_help_overview(env->out);
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"TOPIC", 0, HB_OPT_OPERAND_MAYBE, NULL,
     "a command; a section or key of the input file; `model`: all of its keys; `json`: of results",
     NULL, offsetof(struct options, topic), 0, 0},
    {"SECTION", 0, HB_OPT_OPERAND_MAYBE, NULL,
     "of the input file, as `batch`, `blocks[].moe` or `loss.chunks`; of json: a command", NULL,
     offsetof(struct options, section), 0, 0},
    {"json-schema", 0, HB_OPT_FLAG, NULL,
     "with `model`: the input file as a JSON Schema, for editors; with `json`: all results", NULL,
     offsetof(struct options, schema), 0, 0},
    /* For `make install`, not shown. */
    {"completion", 0, HB_OPT_CHOICE, "bash|zsh", NULL, NULL, offsetof(struct options, completion),
     0, 0},
    {"man", 0, HB_OPT_FLAG, NULL, NULL, NULL, offsetof(struct options, man), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_help = {
    .name = "help",
    .run = run,
    .summary = "this overview, or a command, or the input file, in detail",
    .example = "hbmsim help model batch",
    .options = options,
};
