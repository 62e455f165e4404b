/* Completion scripts for shells, written from the command tables, so that they know every command
 * and option: `make install` puts them where bash and zsh look. */
#ifndef HB_CLI_COMPLETE_H
#define HB_CLI_COMPLETE_H

struct hb_env;

void hb_complete_bash(struct hb_env *env);
void hb_complete_zsh(struct hb_env *env);

#endif
