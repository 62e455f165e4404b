/* What a rematerialisation policy may name of a block's layers. */
#ifndef HB_MODELS_NAMED_H
#define HB_MODELS_NAMED_H

#include "models/spec.h"

struct hb_arena;

/* A mask: the tensors that its layers have, the layer's input among them. */
uint32_t hb_named_tensors(const struct hb_block *b);
/* The spec, of whose policies the names that a block does not have are left out: they keep and send
 * nothing (one list may be for blocks of several kinds). */
const struct hb_spec *hb_named_spec(struct hb_arena *arena, const struct hb_spec *spec);

#endif
