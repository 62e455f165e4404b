/* Part of support.h: the refusals of compiler: torch. */
#ifndef HB_MODELS_SUPPORT_TORCH_H
#define HB_MODELS_SUPPORT_TORCH_H

#include "models/support.h"

/* Of a step with compiler torch whose memory is asked. */
bool hb_support_torch(struct hb_diag *diag, const struct hb_node *root, const struct hb_spec *spec);

struct hb_refusing;

/* Of that what the optimizer asks. */
bool hb_support_torch_update(const struct hb_refusing *r, const struct hb_spec *s);
bool hb_model_has_experts(const struct hb_model *m);

#endif
