/* Part of support.h: the refusals of compiler: torch. */
#ifndef HB_MODELS_SUPPORT_TORCH_H
#define HB_MODELS_SUPPORT_TORCH_H

#include "models/support.h"

/* Of a step with compiler torch whose memory is asked. */
bool hb_support_torch(struct hb_diag *diag, const struct hb_node *root, const struct hb_spec *spec);

#endif
