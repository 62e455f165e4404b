/* What holds of every program that is run. */
#ifndef HB_SIM_ENGINE_CHECK_H
#define HB_SIM_ENGINE_CHECK_H

#include "sim/ir/program.h"

/* Invariants: indices in range, aliases point backwards, loops nest, reads after a write or of an
 * argument, sizes not negative and below HB_SIZE limits. HB_BUG names the first that fails. */
void hb_program_check(const struct hb_program *p);

#endif
