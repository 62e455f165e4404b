/* Why a buffer is there, in a sentence for people, with the key of the input that changes it where
 * there is one. A rule that knows more sets buf.why itself; for the others the last part of the
 * name, which the lowering gives by role, tells. */
#ifndef HB_SIM_ENGINE_WHY_H
#define HB_SIM_ENGINE_WHY_H

#include "sim/ir/program.h"

/* Never empty for buffers of the lowering and of loading. */
const char *hb_why(const struct hb_buf *buf);

#endif
