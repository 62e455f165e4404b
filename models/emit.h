/* A configuration in another program's words: settings to paste, and a line for each decision that
 * they cannot express. Only settings that exist where each file says it read them. */
#ifndef HB_MODELS_EMIT_H
#define HB_MODELS_EMIT_H

#include "base/str.h"
#include "models/spec.h"

/* key=value, one a line, for MaxText's command line. */
void hb_emit_maxtext(struct hb_str *out, const struct hb_spec *spec);
/* The model and the hardware before them: model_name where it is one of MaxText's (as the zoo's
 * card has it), else its sizes. */
void hb_emit_maxtext_model(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
/* A part of a YAML file for Levanter. */
void hb_emit_levanter(struct hb_str *out, const struct hb_spec *spec);
/* A part of a TOML file for torchtitan; of compiler torch. */
void hb_emit_torchtitan(struct hb_str *out, const struct hb_spec *spec);
/* Options of Megatron's command line, one a line; of compiler torch. */
void hb_emit_megatron(struct hb_str *out, const struct hb_spec *spec);

#endif
