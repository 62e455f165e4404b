/* hbmsim help [COMMAND]: the overview, or what a command says of itself. */
#include "base/arena.h"
#include "cli/cmd.h"
#include "cli/complete.h"
#include "cli/help.h"
#include "cli/man.h"

struct options {
    const char *topic;
    int completion;
    bool man;
};

enum { COMPLETION_BASH, COMPLETION_ZSH }; /* as the words of --completion */

static int explain_topic(struct hb_env *env, const char *topic)
{
    const struct hb_cmd *cmd = hb_help_find(topic);
    if (!cmd) {
        hb_help_unknown(env, topic);
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
        return explain_topic(env, o.topic);
    else
        hb_help_overview(env->out);
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"TOPIC", 0, HB_OPT_OPERAND_MAYBE, NULL, "a command", NULL, offsetof(struct options, topic), 0,
     0},
    /* For `make install`, not shown. */
    {"completion", 0, HB_OPT_CHOICE, "bash|zsh", NULL, NULL, offsetof(struct options, completion),
     0, 0},
    {"man", 0, HB_OPT_FLAG, NULL, NULL, NULL, offsetof(struct options, man), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_help = {
    .name = "help",
    .run = run,
    .summary = "this overview, or the options and an example of a command",
    .example = "hbmsim help models",
    .options = options,
};
