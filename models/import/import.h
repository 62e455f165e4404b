/* Configurations of other programs as this one's: Hugging Face config.json, MaxText yml,
 * torchtitan toml and dumps, Megatron arguments, Levanter yml, the trainers of Hugging Face. Each
 * importer takes the keys it knows, writes ours, and tells what it understood, what it assumed and
 * what it could not express. Nothing is guessed in silence: what is left over is in `missing`. */
#ifndef HB_MODELS_IMPORT_IMPORT_H
#define HB_MODELS_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/node.h"
#include "base/str.h"

struct hb_arena;
struct hb_given;

struct hb_notes {
    const char **items;
    uint32_t count;
    uint32_t cap;
};

/* What came of it. */
struct hb_import {
    const char *what;           /* "Hugging Face config.json, model_type llama" */
    struct hb_node *root;       /* a configuration, not checked yet */
    struct hb_notes understood; /* keys of the file */
    struct hb_notes assumed;    /* sentences */
    struct hb_notes missing;    /* "key: why it is not expressed" */
};

struct hb_import_source {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const char *path; /* "-": standard input */
    /* Further files of the same run (accelerate's, DeepSpeed's), and KEY=VALUE of its command
     * line, in order. */
    const char *const *more;
    int more_count;
    const char *data_dir;
};

/* The tree that a file holds: YAML, JSON, TOML, or the arguments of a command line (a map whose
 * keys begin with "--"). */
bool hb_import_load(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                    struct hb_node **out_root);
/* The same of what a caller gave as text, or where given is null or nameless, of the file. */
bool hb_import_load_given(struct hb_arena *arena, struct hb_diag *diag,
                          const struct hb_given *given, const char *path,
                          struct hb_node **out_root);
/* The same of text; text[len] is 0. */
bool hb_import_parse(struct hb_arena *arena, struct hb_diag *diag, const char *name,
                     const char *text, size_t len, struct hb_node **out_root);
/* Whether it is another program's: told by its keys, not by the file's name. */
bool hb_import_is_foreign(const struct hb_node *root);
/* Root, with source->more laid over it, as a configuration. False: the errors are in the diag. */
bool hb_import_tree(const struct hb_import_source *source, struct hb_node *root,
                    struct hb_import *out_import);
/* The notes as comment lines, wrapped. */
void hb_import_comment(struct hb_str *out, const struct hb_import *import);

#endif
