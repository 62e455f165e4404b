/* Writing JSON piece by piece into a growing text: the writer keeps commas, line breaks and
 * indents right; the caller keeps the order of calls right (asserted). One line without spaces
 * or one item a line with two-space indents; short leaf objects are not folded. */
#ifndef HB_BASE_JSON_WRITE_H
#define HB_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/node.h"
#include "base/str.h"

struct hb_json {
    struct hb_str *out;
    FILE *file;   /* null, or where out is emptied to whenever it is long, and at the end */
    bool pretty;  /* one item a line */
    bool keyed;   /* a key was written, its value is due */
    int depth;    /* open brackets */
    uint64_t any; /* bit per depth: something stands there already */
};

/* Into out; with file, hb_json_end passes the rest of it on and empties it. */
struct hb_json hb_json_begin(struct hb_str *out, FILE *file, bool pretty);
/* Ends the document with a line feed. */
void hb_json_end(struct hb_json *j);

void hb_json_object(struct hb_json *j);
void hb_json_object_end(struct hb_json *j);
void hb_json_array(struct hb_json *j);
void hb_json_array_end(struct hb_json *j);
void hb_json_key(struct hb_json *j, const char *key);
/* Null text is written as null. */
void hb_json_text(struct hb_json *j, const char *text);
void hb_json_int(struct hb_json *j, int64_t value);
/* The shortest digits that read back as the same value; a value that is not finite is our fault. */
void hb_json_real(struct hb_json *j, double value);
void hb_json_bool(struct hb_json *j, bool value);
void hb_json_null(struct hb_json *j);
/* A key with its value, of an object. */
void hb_json_put_text(struct hb_json *j, const char *key, const char *text);
void hb_json_put_int(struct hb_json *j, const char *key, int64_t value);
void hb_json_put_real(struct hb_json *j, const char *key, double value);
void hb_json_put_bool(struct hb_json *j, const char *key, bool value);
/* null below 0: not known. */
void hb_json_put_known(struct hb_json *j, const char *key, int64_t value);
/* A whole tree. Plain scalars that are JSON numbers, booleans or null are written as such. */
void hb_json_node(struct hb_json *j, const struct hb_node *node);

enum { HB_REAL_TEXT = 32 };
/* The shortest decimal text that reads back as value; text has HB_REAL_TEXT bytes. */
const char *hb_real_print(double value, char *text);
/* text in double quotes with JSON's escapes, for other writers. */
void hb_json_quote(struct hb_str *out, const char *text);

#endif
