/* Inside of the schema: the form of its table, and the parts that its files share. A key is one
 * row; a section is the rows of one map. Not for other modules: they use schema.h. */
#ifndef HB_MODELS_SCHEMA_KEY_H
#define HB_MODELS_SCHEMA_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/node.h"
#include "base/str.h"
#include "models/spec.h"

struct hb_arena;

enum hb_key_kind {
    HB_KEY_INT,       /* int64_t within low..high */
    HB_KEY_SIZE,      /* int64_t bytes, or text with a unit */
    HB_KEY_REAL,      /* double within low..high */
    HB_KEY_BOOL,      /* bool */
    HB_KEY_TEXT,      /* const char * */
    HB_KEY_ENUM,      /* one of words: an enum, or a bool of two words */
    HB_KEY_MASK,      /* list of words: uint32_t, 1u << value */
    HB_KEY_INTS,      /* list of whole numbers within low..high: pointer and count */
    HB_KEY_EVEN_INTS, /* `even` (null) or a list as above */
    HB_KEY_ONE_INTS,  /* a number or a list as above, at least one */
    HB_KEY_RANK,      /* `max` (-1) or a number */
    HB_KEY_AXIS,      /* `rest` (HB_KEY_REST) or int64_t within low..high */
    HB_KEY_MOMENTS,   /* list of dtypes of the optimizer */
    HB_KEY_MESHES,    /* axis names, or meshes */
    HB_KEY_SECTION,   /* a map with keys of its own */
    HB_KEY_BLOCKS,    /* list of maps */
    HB_KEY_PER_BLOCK, /* block name -> map */
    HB_KEY_KIND_COUNT
};

enum hb_section_id {
    HB_SEC_ROOT,
    HB_SEC_MODEL,
    HB_SEC_BLOCK,
    HB_SEC_ATTENTION,
    HB_SEC_MLP,
    HB_SEC_MOE,
    HB_SEC_PRECISION,
    HB_SEC_BATCH,
    HB_SEC_OPTIMIZER,
    HB_SEC_MESH,
    HB_SEC_SHARDING,
    HB_SEC_STACK,
    HB_SEC_REMAT,
    HB_SEC_OWN_REMAT,
    HB_SEC_LOSS,
    HB_SEC_EMBEDDING,
    HB_SEC_PIPELINE,
    HB_SEC_STEP,
    HB_SEC_LOAD,
    HB_SEC_HARDWARE,
    HB_SEC_RUNTIME,
    HB_SEC_PLAN,
    HB_SEC_SEARCH,
    HB_SEC_SEARCH_BATCH,
    HB_SEC_KEEP,
    HB_SEC_COUNT
};

struct hb_word {
    const char *text;
    int value;
};

/* Nothing is stored: the key is read elsewhere, or only checked. */
#define HB_KEY_NOWHERE SIZE_MAX

struct hb_key {
    const char *name;
    enum hb_key_kind kind;
    size_t offset;               /* of the field in the section's record; HB_KEY_NOWHERE */
    size_t size_bytes;           /* of the field */
    size_t count_offset;         /* of the int that counts a list */
    double low;                  /* range; whole below 2^53 */
    double high;                 /* range */
    const struct hb_word *words; /* spellings, ended by null */
    enum hb_section_id section;  /* of kind SECTION, BLOCKS, PER_BLOCK */
    bool optional;               /* SECTION: absent means absent; offset is of a bool, or nowhere */
    const char *def; /* default as text; null: required; "=...": computed, told in words */
    const char *doc; /* one line */
};

struct hb_section {
    const char *path; /* "model.blocks[].attention"; "" for the root */
    const char *doc;
    const struct hb_key *keys;
    int key_count;
};

/* Value that a computed whole number has between reading and filling in. */
enum { HB_KEY_UNSET = -1 };
/* An axis of the mesh that takes what the others leave of the devices, until it is filled in. */
enum { HB_KEY_REST = -2 };

const struct hb_section *hb_section(enum hb_section_id id);
/* The word of a value, or null. */
const char *hb_word_text(const struct hb_word *words, int value);

/* A place in the tree while it is read: the chain of maps and list items above. */
struct hb_scope {
    const struct hb_scope *up;
    const char *name; /* key; null for a list item */
    int index;        /* of a list item */
};

/* One reading. */
struct hb_reading {
    struct hb_arena *arena;
    struct hb_diag *diag;
    struct hb_spec *spec;
    const struct hb_node *per_block; /* remat.per_block, read after the blocks are known */
};

/* An error about scope.key: "path: text". Returns false. */
bool hb_reading_fail(struct hb_reading *r, const struct hb_scope *scope, struct hb_loc loc,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Reads node, which stands at scope, into the field of base. */
bool hb_key_read(struct hb_reading *r, const struct hb_scope *scope, const struct hb_key *key,
                 const struct hb_node *node, void *base);
/* The value as a node; null where a list is absent. */
struct hb_node *hb_key_emit(struct hb_arena *arena, const struct hb_key *key, const void *base);
/* "1 to 64", "scan, loop, nested", "true, false": what is allowed. */
const char *hb_key_allowed(struct hb_arena *arena, const struct hb_key *key);

/* Reads a map (null: absent, all defaults) into the record of its section. at is the place to
 * blame for what is missing. */
bool hb_section_read(struct hb_reading *r, const struct hb_scope *scope, enum hb_section_id id,
                     const struct hb_node *map, struct hb_loc at, void *base);

/* Fills in what is computed from other keys; root for telling absent sections. */
bool hb_schema_fill(struct hb_reading *r, const struct hb_node *root);

/* Settles hardware.device's name and the compiler that follows from it, or an error where the one
 * given is another's. */
bool hb_schema_fill_device(struct hb_reading *r, const struct hb_node *root, const char *data_dir);

/* The whole path of the first key below a section that has this name ("batch.global" of "global"),
 * or null. */
const char *hb_schema_path_of(struct hb_arena *arena, const char *name);

/* The place of path ("mesh.tensor", "model.blocks[1].moe.d_ff") or of what is nearest above. */
struct hb_loc hb_schema_locate(const struct hb_node *root, const char *path);
/* Puts the model of `model.preset`'s card under the keys of root's model. */
bool hb_schema_apply_preset(struct hb_arena *arena, struct hb_diag *diag, struct hb_node *root,
                            const char *data_dir);

#endif
