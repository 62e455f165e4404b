/* What the command tables say of themselves: the overview, --help of a command, completion
 * scripts for shells, the command section of the manual page. */
#ifndef HB_CLI_HELP_H
#define HB_CLI_HELP_H

#include <stdio.h>

struct hb_arena;
struct hb_cmd;
struct hb_env;

/* All commands, in the order of cli/commands.h; the last is null. */
const struct hb_cmd *const *hb_help_commands(void);
/* The command of that name, or null. */
const struct hb_cmd *hb_help_find(const char *name);
/* Leaves an error in env->diag about a name that is no command; section: one of the input file's
 * that it may mean, or null. */
void hb_help_unknown(struct hb_env *env, const char *name, const char *section);

/* `hbmsim help`: what there is, with exit statuses. */
void hb_help_overview(FILE *to);
/* `hbmsim COMMAND --help`. */
void hb_help_command(struct hb_env *env, const struct hb_cmd *cmd);

#endif
