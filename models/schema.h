/* The input format: reads a YAML or JSON configuration into struct hb_spec, with its defaults
 * and every check, and writes one back. One table of keys (schema_table.c) drives reader,
 * defaults, messages, help and writer. Each error names file, line, column and the key's path,
 * what is wrong and what is allowed; up to 20 are collected. */
#ifndef HB_MODELS_SCHEMA_H
#define HB_MODELS_SCHEMA_H

#include <stdbool.h>
#include <stdio.h>

#include "base/json_write.h"
#include "base/node.h"
#include "base/str.h"
#include "models/spec.h"

struct hb_arena;
struct hb_given;
struct hb_json;

/* Where a configuration comes from. */
struct hb_schema_source {
    struct hb_arena *arena;
    struct hb_diag *diag;
    const char *path;        /* "-": standard input */
    const char *const *sets; /* KEY=VALUE of the command line, in order */
    int set_count;
    const char *data_dir;         /* holds models/zoo */
    const struct hb_given *given; /* text in place of the file at path; null or nameless: none */
    bool searched; /* a mesh that plan.search frees need not divide the batch as written */
    const char *const *if_open; /* null, or KEY=VALUE of keys that nothing says; a null ends them */
    struct hb_node **out_written; /* null, or where the tree is left as it was before defaults */
};

/* File, includes and sets as a checked step. False: the errors are in the diag. */
bool hb_schema_read(const struct hb_schema_source *source, struct hb_spec *out_spec);
/* The same before it is checked: one tree with includes, preset and sets applied. For commands
 * that vary keys (hb_schema_set) and read each variant with hb_schema_from_node. */
bool hb_schema_load(const struct hb_schema_source *source, struct hb_node **out_root);
/* The tree of a record's `config`, or of hb_schema_load. config is not changed. */
bool hb_schema_from_node(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *config,
                         const char *data_dir, struct hb_spec *out_spec);
/* Applies one KEY=VALUE to a tree: dots between keys, blocks[0] or blocks.0 for an item; maps
 * that are missing on the way are made. The value is YAML. */
bool hb_schema_set(struct hb_arena *arena, struct hb_diag *diag, struct hb_node *root,
                   const char *set);
/* The same at a place of one's own: where the path or the value is not from --set. */
bool hb_schema_set_at(struct hb_arena *arena, struct hb_diag *diag, struct hb_loc loc,
                      struct hb_node *root, const char *set);
/* Whether the table has the key that a path names ("model.blocks[0].mlp.d_ff"); false with an
 * error at loc that names what is near. */
bool hb_schema_check_key(struct hb_arena *arena, struct hb_diag *diag, struct hb_loc loc,
                         const char *path);
/* Whether all keys of two blocks are the same, and what is kept of them. */
bool hb_schema_same_block(const struct hb_block *a, const struct hb_block *b);
/* The combinations that cannot be (heads over the tensor axis, batch over the mesh, ...). For a
 * spec that a program changed; root, for places, may be null. */
bool hb_schema_check(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *root,
                     const struct hb_spec *spec);
/* The same of what is to be searched: what its own mesh does to the batch does not matter where
 * the mesh is free. */
bool hb_schema_check_searched(struct hb_arena *arena, struct hb_diag *diag,
                              const struct hb_node *root, const struct hb_spec *spec);

/* spec as a complete configuration: with full every key, else those that differ from their
 * default and those whose default is computed. Reading it gives the same spec. */
struct hb_node *hb_schema_emit(struct hb_arena *arena, const struct hb_spec *spec, bool full);
void hb_schema_emit_yaml(struct hb_str *out, const struct hb_spec *spec, bool full);
/* On one line, without a line feed. */
void hb_schema_emit_json(struct hb_str *out, const struct hb_spec *spec, bool full);

/* A default that was filled in. */
struct hb_schema_filled {
    const char *path; /* "model.blocks[].attention.kernel" */
    const char *value;
};
enum { HB_SCHEMA_MOST_FILLED = 24 };
/* Those that matter to most steps; written: the tree before defaults. Returns how many. */
uint32_t hb_schema_filled(struct hb_arena *arena, const struct hb_node *written,
                          const struct hb_spec *spec, struct hb_schema_filled *out);
/* "precision.params=f32 optimizer.name=adamw"; "": none. */
const char *hb_schema_filled_text(struct hb_arena *arena, const struct hb_node *written,
                                  const struct hb_spec *spec);

/* The keys of a section ("batch", "model.blocks[].moe"), or of all with null; else the keys of that
 * name ("loss.chunks", "chunks"). False: there is neither; *out_nearest is one of like spelling, or
 * null. */
bool hb_schema_help(FILE *out, struct hb_arena *arena, const char *section,
                    const char **out_nearest);
/* "xla-tpu", as the key `compiler` says it. */
const char *hb_compiler_name(enum hb_compiler compiler);
/* "zbv", as the key `pipeline.schedule` says it. */
const char *hb_schedule_name(enum hb_schedule schedule);
/* It runs the pass backwards of the weights apart from that of the input. */
bool hb_schedule_parts(enum hb_schedule schedule);
/* The format as a JSON Schema, an object; its parts, for schemas that refer to it: a member for
 * each section, and the members of an open object that is the whole file. */
void hb_schema_json(struct hb_json *j);
void hb_schema_json_sections(struct hb_json *j);
void hb_schema_json_root(struct hb_json *j);
/* The line that says what a key is ("batch.global"); null: there is no such key. */
const char *hb_schema_doc(const char *path);
/* The table of keys as a JSON value, for a form: a list of sections with their keys. */
void hb_schema_form(struct hb_json *j);
/* The words that a key takes ("scan loop nested"), for completion; null: it takes others. */
const char *hb_schema_choices(struct hb_arena *arena, const char *path);
/* Calls visit with the path of each key ("model.blocks[].attention.heads"), in order. */
void hb_schema_each_key(void (*visit)(void *context, const char *path), void *context);

#endif
