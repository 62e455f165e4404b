/* The model.yaml of a command: read with its --set, checked, with its device. */
#ifndef HB_CLI_INPUT_H
#define HB_CLI_INPUT_H

#include "cli/opt.h"
#include "hw/device.h"
#include "models/schema.h"
#include "models/spec.h"

/* The file at path with its --set; or the text that a caller of the library gives in its place. */
struct hb_schema_source hb_input_source(struct hb_env *env, const char *path,
                                        const struct hb_words *sets);

/* False: the errors are in env->diag. */
bool hb_input_read(struct hb_env *env, const char *path, const struct hb_words *sets,
                   struct hb_spec *out_spec, struct hb_device *out_device);

/* The same of what plans: where the mesh is free the written one need not divide the batch.
 * if_open: null, or KEY=VALUE of keys that the input leaves open, ended by null. */
struct hb_planned {
    const char *const *if_open;
    struct hb_node *written; /* filled: the input before its defaults */
};
bool hb_input_read_planned(struct hb_env *env, const char *path, const struct hb_words *sets,
                           struct hb_spec *out_spec, struct hb_device *out_device,
                           struct hb_planned *planned);

/* As hb_input_read, with the input before its defaults. */
bool hb_input_read_written(struct hb_env *env, const char *path, const struct hb_words *sets,
                           struct hb_spec *out_spec, struct hb_device *out_device,
                           struct hb_node **out_written);

/* The row that a command's table takes, of a double that is 0 where it is absent. */
#define HB_CONFIDENCE_OPTION(at)                                                                   \
    {                                                                                              \
        "confidence", 0, HB_OPT_DOUBLE, "PERCENT", "of the interval of a peak (default 95)", NULL, \
            at, 0, 0                                                                               \
    }
/* 95 and 0.95 are the same. False, with an error: out of range. */
bool hb_input_part(struct hb_env *env, double value, double *out);
/* --confidence, where it was given (not 0), as one more --set. */
bool hb_input_confidence(struct hb_env *env, double value, struct hb_words *sets);

#endif
