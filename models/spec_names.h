/* The words of the schema for what a spec has as numbers, by number. */
#ifndef HB_MODELS_SPEC_NAMES_H
#define HB_MODELS_SPEC_NAMES_H

#include "models/spec.h"

extern const char *const hb_axis_names[HB_AX_COUNT];
extern const char *const hb_tensor_names[HB_TN_COUNT];
extern const char *const hb_form_names[HB_FORM_NESTED + 1];
extern const char *const hb_policy_names[HB_POLICY_NAMES + 1];

#endif
