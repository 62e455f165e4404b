/* A fast strict JSON reader (RFC 8259) that gives the same tree as the YAML reader, and a walk
 * over files of one record a line. Limits: those of base/node.h; duplicate keys are errors. */
#ifndef HB_BASE_JSON_H
#define HB_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "base/node.h"

struct hb_arena;

/* The value that text is. start: file name and place of text[0], line and column from 1.
 * Columns count characters. text[len] is 0 or a line feed; the tree does not point into text. */
bool hb_json_parse(struct hb_arena *arena, struct hb_diag *diag, struct hb_loc start,
                   const char *text, size_t len, struct hb_node **out_root);

/* A file of records, one JSON value a line; empty lines are passed over. */
struct hb_jsonl {
    const char *path;
    const char *text; /* the whole file */
    size_t len;
    size_t at; /* start of the next line */
    int line;  /* of the record given last */
};

/* Reads the file into arena ("-": standard input). */
bool hb_jsonl_open(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                   struct hb_jsonl *out_file);
/* The next record's tree, or null at the end. False: the line is no JSON; the walk can go on
 * with the line after it. arena may be another than that of the file, rewound for each record. */
bool hb_jsonl_next(struct hb_jsonl *file, struct hb_arena *arena, struct hb_diag *diag,
                   struct hb_node **out_record);

#endif
