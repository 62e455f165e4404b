/* The loss in chunks of the tokens, one after the other. */
#ifndef HB_SIM_IR_CHUNKS_H
#define HB_SIM_IR_CHUNKS_H

#include "sim/ir/ends.h"

/* Whether the own part of the head is cast once for all chunks. */
bool hb_chunks_cast(const struct hb_lower *lo);
void hb_chunks_turn(struct hb_lower *lo);
/* The loss of the last residual x, and back: the gradient of x. */
uint32_t hb_chunks_pass(struct hb_lower *lo, struct hb_ends *ends, uint32_t x);
/* Adds up their loss, where that comes last of all. */
void hb_chunks_finish(struct hb_lower *lo, const struct hb_ends *ends);
/* Where that loop stands in a trip of the layers: what it holds, the head and a chunk's logits. */
void hb_chunks_room(struct hb_lower *lo);

#endif
