/* Ctrl-C while something runs that can end early: it is held back, looked at, and taken at the end.
 * A SIGINT that is ignored (nohup) stays ignored. */
#ifndef HB_CLI_INTERRUPT_H
#define HB_CLI_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

struct hb_env;

/* Neither does anything for a guest. */
void hb_interrupt_hold(const struct hb_env *env, sigset_t *out_before);
/* Whether it came since; it stays held. */
bool hb_interrupt_came(void);
/* One that came is taken; the signals are as they were before. */
void hb_interrupt_release(const struct hb_env *env, const sigset_t *before);

#endif
