/* Whether a sentence that has the words of a refusal, at its word i, tells what to do, or what
 * might be, and not what was. */
#ifndef HB_SIM_HLO_LOGSUPPOSED_H
#define HB_SIM_HLO_LOGSUPPOSED_H

#include "sim/hlo/logsentence.h"

bool hb_supposed_is(const struct hb_sentence *l, int i);
/* "What it is: ...", "OOM errors occur when more is asked for than there is": what happens to
 * anybody, by a reason that says the same again. */
bool hb_supposed_defines(const struct hb_sentence *l);
/* "Is this out of memory?", "any chance that it ran out of memory?": somebody asks what he met. */
bool hb_supposed_is_guess(const struct hb_sentence *l, int i);
/* Whether a title is that of a change: "Add ...", "fix(x): ...", also of one that mends what was.
 */
bool hb_supposed_is_change(const struct hb_sentence *title);

#endif
