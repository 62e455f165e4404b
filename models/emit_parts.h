/* What several emitters need: the hosts that a run takes, a rank's share of the batch, and models
 * by the name that a framework has for the zoo's cards. */
#ifndef HB_MODELS_EMIT_PARTS_H
#define HB_MODELS_EMIT_PARTS_H

#include "models/emit.h"

/* Whether the model is that card of the zoo: layers and sizes, whatever its name. */
bool hb_is_card(struct hb_arena *arena, const struct hb_model *model, const char *zoo,
                const char *data_dir);

struct hb_hosts {
    int64_t each;  /* devices of a host that take part */
    int64_t count; /* hosts */
};
/* By the device's profile. */
struct hb_hosts hb_hosts_of(struct hb_arena *arena, const struct hb_spec *spec,
                            const char *data_dir);

/* Sequences of one microbatch (of accumulation) on a rank of the batch. */
int64_t hb_rank_batch(const struct hb_spec *spec);
/* torchtitan's words. */
const char *hb_titan_schedule(enum hb_schedule schedule);
const char *hb_titan_dtype(enum hb_dtype dtype);
/* A list of what is compiled, in toml as in Python; null: nothing is. */
const char *hb_titan_compiled(const struct hb_spec *spec);

/* The name that Hugging Face has for the model ("Qwen/Qwen3-8B"), as the zoo's card of the same
 * layers and sizes says where it is from; of several the one of its own name. Null: none. */
const char *hb_hub_name(struct hb_arena *arena, const struct hb_model *model, const char *data_dir);

/* torchtitan's words for a model; false: it has none. */
bool hb_titan_flavor(struct hb_arena *arena, const struct hb_model *model, const char *data_dir,
                     const char **out_name, const char **out_flavor);

#endif
