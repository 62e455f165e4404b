/* The section COMMANDS of hbmsim(1), written from the command tables. */
#ifndef HB_CLI_MAN_H
#define HB_CLI_MAN_H

struct hb_env;

/* Prints roff for the place that cli/hbmsim.1 leaves open. */
void hb_man_commands(struct hb_env *env);

#endif
