/* In which of XLA:TPU's orders the configurations of a cell are (sim/ir/sequence.h). The compiler
 * chooses it by what all runs of a configuration keep, together, and the sums of a segment hold in
 * one: that of most policies. The others are odd, or no splits of the space. */
#ifndef HB_SOLVER_SEGMENT_ORDER_H
#define HB_SOLVER_SEGMENT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct hb_part;
struct hb_segment;
struct hb_spec;

/* Has spec in the order of a segment that has one. */
void hb_segment_put_order(const struct hb_segment *s, struct hb_spec *spec);
bool hb_segment_in_order(const struct hb_segment *s, const struct hb_part *parts, uint32_t count);

#endif
