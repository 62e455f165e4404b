#include "models/spec_names.h"

const char *const hb_axis_names[] = {"data", "fsdp", "tensor", "sequence", "expert", "pipeline"};
const char *const hb_form_names[] = {"scan", "loop", "nested"};
const char *const hb_policy_names[] = {"none", "full", "dots", "dots_no_batch", "names"};
#define HB_ENUM(name, text) text,
const char *const hb_tensor_names[] = {HB_TENSOR_NAMES(HB_ENUM)};
#undef HB_ENUM
