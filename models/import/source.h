/* Inside of the importers: a foreign tree while it is read, and the configuration that grows. A
 * key that is taken counts as understood; at the end each key that was neither taken nor is known
 * to change no memory is told. Not for other modules: they use import.h. */
#ifndef HB_MODELS_IMPORT_SOURCE_H
#define HB_MODELS_IMPORT_SOURCE_H

#include <stdint.h>

#include "models/import/import.h"

struct hb_foreign {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const char *data_dir;
    const char *path;
    const struct hb_node *said; /* KEY=VALUE of its command line, as a map; null: none */
    struct hb_import *out;
    const struct hb_node **taken;
    uint32_t taken_count;
    uint32_t taken_cap;
};

void hb_note(struct hb_foreign *f, struct hb_notes *notes, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define hb_assume(f, ...)  hb_note(f, &(f)->out->assumed, __VA_ARGS__)
#define hb_missing(f, ...) hb_note(f, &(f)->out->missing, __VA_ARGS__)

/* The value of a key, now understood; null where it is absent or null. */
const struct hb_node *hb_take(struct hb_foreign *f, const struct hb_node *map, const char *key);
/* The same of the first name of "a|b|c" that is there. */
const struct hb_node *hb_take_any(struct hb_foreign *f, const struct hb_node *map,
                                  const char *names);
/* Values, or what stands for an absent one. A value of another type is an error in the diag. */
int64_t hb_take_int(struct hb_foreign *f, const struct hb_node *map, const char *names,
                    int64_t absent);
double hb_take_real(struct hb_foreign *f, const struct hb_node *map, const char *names,
                    double absent);
bool hb_take_bool(struct hb_foreign *f, const struct hb_node *map, const char *names, bool absent);
const char *hb_take_text(struct hb_foreign *f, const struct hb_node *map, const char *names,
                         const char *absent);
/* A whole number, also where it is written 4.0, 1_000 or 1e3. */
bool hb_number(const struct hb_node *node, double *out_value);
/* Without its fraction and at most 2^53 either way, beyond what any key of ours allows. */
int64_t hb_clipped(double value);

/* Writes a key of ours: "loss.softcap", "model.name". */
void hb_put(struct hb_foreign *f, const char *path, const char *text);
void hb_put_int(struct hb_foreign *f, const char *path, int64_t value);
void hb_put_real(struct hb_foreign *f, const char *path, double value);
void hb_put_bool(struct hb_foreign *f, const char *path, bool value);
/* A list of words "[a, b]". */
void hb_put_words(struct hb_foreign *f, const char *path, const char *const *words, int count);

/* The node is not told, though it was not understood. */
void hb_quiet(struct hb_foreign *f, const struct hb_node *node);
/* Keys left over in map: those of quiet (names, or prefixes that end in '*'; ended by null) change
 * no memory, all others are told with where before them. */
void hb_tell_rest(struct hb_foreign *f, const struct hb_node *map, const char *where,
                  const char *const *quiet);

/* Words of the tokenizer of this name, told as assumed; 0: it is not known. */
int64_t hb_take_tokenizer(struct hb_foreign *f, const char *name);

/* ---- layers */

/* One layer as a foreign file has it. */
struct hb_layer {
    int64_t window; /* 0: full */
    bool moe;
};

/* What all layers have in common. 0, null and false are absent. */
struct hb_shape {
    int64_t d_model, vocab, positions, layers, heads, kv_heads, head_dim, d_ff, mtp;
    bool tied, layernorm, post_norm, no_rope, sinks, fused_qkv, mlp_bias, router_bias;
    const char *bias;    /* "qkv", "true" */
    const char *qk_norm; /* "true", "l2" */
    const char *mlp;     /* kind */
    double softcap, dropout, attention_dropout;
    /* mla where kv_lora_rank is not 0 */
    int64_t q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
    /* of the layers with experts */
    int64_t experts, top_k, moe_d_ff, shared_experts, shared_d_ff;
    const char *name;
    struct hb_layer *each; /* layers of them; null: all alike, without experts or window */
};

/* The model of f's configuration. False, with an error: a size is missing or no layers. */
bool hb_put_model(struct hb_foreign *f, const struct hb_shape *shape, struct hb_loc at);
/* Adds KEY: VALUE to each block's map under section ("attention"), or to the block itself. */
void hb_put_in_blocks(struct hb_foreign *f, const char *section, const char *key,
                      const char *value);

/* ---- one importer a file: whether a tree is its own, and its reading */

bool hb_import_is_hf(const struct hb_node *root);
bool hb_import_hf(struct hb_foreign *f, const struct hb_node *root);
bool hb_import_is_maxtext(const struct hb_node *root);
bool hb_import_maxtext(struct hb_foreign *f, const struct hb_node *root);
bool hb_import_is_megatron(const struct hb_node *root);
bool hb_import_megatron(struct hb_foreign *f, const struct hb_node *root);
/* Megatron's arguments as one map, without dashes. */
bool hb_import_megatron_flat(struct hb_foreign *f, const struct hb_node *flat, const char *what);
bool hb_import_is_nemo(const struct hb_node *root);
bool hb_import_nemo(struct hb_foreign *f, const struct hb_node *root);
bool hb_import_is_titan(const struct hb_node *root);
bool hb_import_titan(struct hb_foreign *f, const struct hb_node *root);
bool hb_import_is_levanter(const struct hb_node *root);
bool hb_import_levanter(struct hb_foreign *f, const struct hb_node *root);
bool hb_import_is_trainer(const struct hb_node *root);
bool hb_import_trainer(struct hb_foreign *f, const struct hb_node *root);
/* The zoo's card of this name as the model. False, with an error at loc: there is none. */
bool hb_put_card(struct hb_foreign *f, const char *zoo, struct hb_loc loc);

#endif
