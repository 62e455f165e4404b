/* Whether a sentence that has the words of a refusal, at its word i, gives evidence that memory was
 * refused: a program printed it, it stands where a headline has it, or somebody tells what
 * happened. Without, it only speaks of such refusals. */
#ifndef HB_SIM_HLO_LOGREPORT_H
#define HB_SIM_HLO_LOGREPORT_H

#include "sim/hlo/evidence.h"
#include "sim/hlo/logsentence.h"

enum hb_report hb_report_of(const struct hb_sentence *l, int i);
/* Of any word of it: as programs write, with an error's class, a level or a time. */
bool hb_report_is_printed(const struct hb_sentence *l);
/* Whether the refusal at word i is the line, as a program prints it or a thread's title has it: no
 * prose goes on behind it. */
bool hb_report_is_line(const struct hb_sentence *l, int i);

#endif
