/* Whether a sentence says, at its word i, that a process was ended for memory: "signal 9",
 * "SIGKILL", "exit code 137", "OOMKilled". Whoever ended it, it was the memory that a host or a
 * container gives in all but few cases. */
#ifndef HB_SIM_HLO_LOGKILL_H
#define HB_SIM_HLO_LOGKILL_H

#include "sim/hlo/logsentence.h"

bool hb_kill_is(const struct hb_sentence *l, int i);
/* "exit code 137", "signal 9" */
bool hb_kill_is_number(const struct hb_sentence *l, int i);
/* Whether all that the line says of it is the status of a container that was ended, 137: by whom,
 * and for what, it does not say. */
bool hb_kill_is_status(const struct hb_sentence *l, int i);

#endif
