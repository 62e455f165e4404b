/* XLA's rematerialization: where the scheduled step needs more than the compiler's share of the
 * device's memory, values that wait are made again just before their next use. */
#ifndef HB_SIM_IR_AGAIN_H
#define HB_SIM_IR_AGAIN_H

#include "sim/ir/program.h"

/* Of a device with so much memory, what XLA leaves the temporaries of a program; >= 0. host: those
 * on the host are counted. */
int64_t hb_again_limit(const struct hb_program *p, int64_t hbm_bytes, bool host);

/* Whether its temporaries are more than that. */
bool hb_again_exceeds(struct hb_program *p, int64_t limit_bytes);

/* Rewrites the program so that its temporaries come below the limit, as far as that goes. One that
 * is below it already stays as it is. */
void hb_again_run(struct hb_program *p, int64_t limit_bytes);

#endif
