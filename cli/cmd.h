/* A command of hbmsim: one file cli/cmd_<name>.c that defines `const struct hb_cmd hb_cmd_<name>`
 * and one line in cli/commands.h. The table of its options drives the parser (cli/opt.h), --help,
 * shell completion and the manual page (cli/help.h), so they cannot drift apart. */
#ifndef HB_CLI_CMD_H
#define HB_CLI_CMD_H

#include "base/env.h"
#include "cli/commands.h"
#include "cli/opt.h"

/* What a script may rely on: see `hbmsim help`. */
enum hb_exit {
    HB_EXIT_YES = 0,    /* done; it fits, a plan was found */
    HB_EXIT_NO = 1,     /* it ran, and the answer is no */
    HB_EXIT_INPUT = 2,  /* bad usage or bad input */
    HB_EXIT_MACHINE = 3 /* the machine failed, or an internal fault */
};

struct hb_cmd {
    const char *name;
    /* argv[0] is the command's name. Returns an exit status; errors of the input are left in
     * env->diag (the dispatcher prints them) and make it HB_EXIT_INPUT. */
    int (*run)(struct hb_env *env, int argc, char **argv);
    const char *summary;          /* a line for `hbmsim help`, no capital, no full stop */
    const char *about;            /* a paragraph for --help, lines broken by hand; null: none */
    const char *example;          /* a command line that works as pasted in the source tree */
    const struct hb_opt *options; /* the last row's name is null; null: none of its own */
    unsigned common;              /* mask of HB_COMMON_* */
};

#define HB_COMMAND(name) extern const struct hb_cmd hb_cmd_##name;
HB_COMMANDS(HB_COMMAND)
#undef HB_COMMAND

#endif
