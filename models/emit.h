/* A configuration in another program's words: settings to paste, and a line for each decision that
 * they cannot express. Only settings that exist where each file says it read them. */
#ifndef HB_MODELS_EMIT_H
#define HB_MODELS_EMIT_H

#include "base/str.h"
#include "models/spec.h"

/* Words of MaxText's command line, key=value, one a line: model_name where it is one of MaxText's
 * (as the zoo's card has it), else its sizes; the hardware; the run. */
void hb_emit_maxtext(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
/* Its parts: model and hardware, and the run. */
void hb_emit_maxtext_model(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
void hb_emit_maxtext_run(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
/* A YAML file for Levanter. */
void hb_emit_levanter(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
/* A TOML file for torchtitan up to 0.2.1; of compiler torch. */
void hb_emit_torchtitan(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
/* A function in Python for torchtitan since; of compiler torch. */
void hb_emit_recipe(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
/* A command with Megatron's options; of compiler torch. */
void hb_emit_megatron(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
/* TrainingArguments of Hugging Face as a YAML file; of compiler torch. */
void hb_emit_trainer(struct hb_str *out, const struct hb_spec *spec, const char *data_dir);
/* Its models write their norms out, in most cases: runtime.written_norm, where spec has single ops.
 */
void hb_emit_trainer_norms(struct hb_spec *spec);

enum hb_emit {
    HB_EMIT_NONE = -1,
    HB_EMIT_MAXTEXT,
    HB_EMIT_LEVANTER,
    HB_EMIT_YAML,
    HB_EMIT_TORCHTITAN,
    HB_EMIT_MEGATRON,
    HB_EMIT_TRAINER,
    HB_EMIT_RECIPE
};
const char *hb_emit_title(enum hb_emit what);
/* spec in a program's words, or (YAML) in ours. */
void hb_emit_program(enum hb_emit what, struct hb_str *out, const struct hb_spec *spec,
                     const char *data_dir);
/* What the program makes of its words: spec emitted and imported, with what the words do not speak
 * of as spec has it (hardware, plan, compiler; the Trainer's model). False: it has no name for the
 * model, or the words do not read. */
bool hb_emit_back(struct hb_arena *arena, enum hb_emit what, const struct hb_spec *spec,
                  const char *data_dir, struct hb_spec *out_back);
/* A comment line for each key that is another in back than in spec. */
void hb_emit_lost(struct hb_str *out, const struct hb_spec *spec, const struct hb_spec *back);

#endif
