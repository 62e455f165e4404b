/* hbmsim help [COMMAND]: the overview, or what a command says of itself. */
#include "base/arena.h"
#include "cli/cmd.h"
#include "cli/help.h"

struct options {
    const char *topic;
};

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    int status = hb_opt_parse(env, &hb_cmd_help, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!o.topic) {
        hb_help_overview(env->out);
        return HB_EXIT_YES;
    }
    const struct hb_cmd *cmd = hb_help_find(o.topic);
    if (!cmd) {
        hb_help_unknown(env, o.topic);
        return HB_EXIT_INPUT;
    }
    hb_help_command(env, cmd);
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"TOPIC", 0, HB_OPT_OPERAND_MAYBE, NULL, "a command", NULL, offsetof(struct options, topic), 0,
     0},
    {0},
};

const struct hb_cmd hb_cmd_help = {
    .name = "help",
    .run = run,
    .summary = "this overview, or the options and an example of a command",
    .example = "hbmsim help models",
    .options = options,
};
