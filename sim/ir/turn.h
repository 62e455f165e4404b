/* Stacks that are copied whole between the passes: which, and when. */
#ifndef HB_SIM_IR_TURN_H
#define HB_SIM_IR_TURN_H

#include "sim/ir/stack.h"

/* Whether the forward loop's residual has the tokens along the lanes. */
bool hb_turn_residual(const struct hb_lower *lo);
/* After the forward pass: the copies that come before the loss, into g->turned. */
void hb_turn_early(struct hb_lower *lo, struct hb_group *g);
/* Before the group runs backwards: those that come before its loop, into the same. */
void hb_turn_begun(struct hb_lower *lo, struct hb_group *g);
/* Those of the stacks that come whole from the host which do so here; between: what else would hide
 * behind the loss stands between the head's products. */
enum hb_turn_at { HB_TURN_BEFORE_LOSS, HB_TURN_IN_LOSS, HB_TURN_BEHIND_LOSS };
void hb_turn_sent(struct hb_lower *lo, enum hb_turn_at at, bool between);
/* One group's, here: those of an outer block that is made again, before it runs backwards. */
void hb_turn_group_sent(struct hb_lower *lo, const struct hb_group *g);
/* After the group ran backwards: the other copies, or what is read with those made early. */
void hb_turn_last(struct hb_lower *lo, const struct hb_group *g);

#endif
