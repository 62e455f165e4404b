/* In which of XLA:TPU's orders the configurations of a cell are (sim/ir/sequence.h). The compiler
 * chooses it by what all runs of a configuration keep, together, and the sums of a segment hold in
 * one: that of most policies. The others are odd, or no splits of the space. */
#ifndef HB_SOLVER_SEGMENT_ORDER_H
#define HB_SOLVER_SEGMENT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct hb_part;
struct hb_segment;

/* The order of a segment that has one, as spec.as_order says it. */
int hb_segment_as_order(const struct hb_segment *s);
bool hb_segment_in_order(const struct hb_segment *s, const struct hb_part *parts, uint32_t count);

#endif
