/* --keep RUNS.jsonl: what a compiler said, as a measured record at the end of a file. */
#ifndef HB_CLI_KEEP_H
#define HB_CLI_KEEP_H

#include <stdint.h>

#include "cli/compiled.h"

/* id null: one that is made of the configuration. The file appears whole or stays as it was.
 * False: it cannot be read (an error says so). */
bool hb_keep_record(struct hb_env *env, const char *path, const char *id,
                    const struct hb_spec *spec, int64_t budget_bytes,
                    const struct hb_compiled *compiled);

/* What a device did with a step. */
struct hb_kept {
    const char *id;
    const char *source;
    const char *kind; /* as hb_record has it */
    const struct hb_node *versions;
    int64_t peak_bytes;
    double step_seconds;
    const char *note;
    bool fits;
};

bool hb_keep_run(struct hb_env *env, const char *path, const struct hb_spec *spec,
                 const struct hb_kept *run);

#endif
