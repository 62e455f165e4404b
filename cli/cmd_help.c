/* hbmsim help [COMMAND]: the overview, or what a command or the input format says of itself. */
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/complete.h"
#include "cli/help.h"
#include "cli/man.h"
#include "models/schema.h"

struct options {
    const char *topic;
    const char *section;
    int completion;
    bool man;
};

enum { COMPLETION_BASH, COMPLETION_ZSH }; /* as the words of --completion */

/* The keys of the input file: all, or those of a section. */
static int explain_model(struct hb_env *env, const char *section)
{
    const char *near = NULL;
    if (hb_schema_help(env->out, section, &near))
        return HB_EXIT_YES;
    if (near)
        hb_error(env->diag, (struct hb_loc){0}, "the input has no section '%s'; did you mean '%s'?",
                 section, near);
    else
        hb_error(env->diag, (struct hb_loc){0},
                 "the input has no section '%s'; 'hbmsim help model' has all", section);
    return HB_EXIT_INPUT;
}

static int explain_topic(struct hb_env *env, const char *topic, const char *section)
{
    if (hb_str_same(topic, "model"))
        return explain_model(env, section);
    const struct hb_cmd *cmd = hb_help_find(topic);
    const char *near = NULL;
    if (!cmd && !section && hb_schema_help(env->out, topic, &near))
        return HB_EXIT_YES;
    if (!cmd) {
        hb_help_unknown(env, topic);
        return HB_EXIT_INPUT;
    }
    if (section) {
        hb_error(env->diag, (struct hb_loc){0}, "only 'hbmsim help model' takes a section");
        return HB_EXIT_INPUT;
    }
    hb_help_command(env, cmd);
    return HB_EXIT_YES;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    int status = hb_opt_parse(env, &hb_cmd_help, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
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
     "a command; `model`: the keys of the input file; or one of its sections", NULL,
     offsetof(struct options, topic), 0, 0},
    {"SECTION", 0, HB_OPT_OPERAND_MAYBE, NULL, "of the input file, as `batch` or `blocks[].moe`",
     NULL, offsetof(struct options, section), 0, 0},
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
