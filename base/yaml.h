/* YAML into a tree, and a tree into YAML. The only user of libyaml, which lets pass what is
 * refused here with a place: duplicate keys, deep nesting, alias bombs, several documents,
 * foreign tags, bytes that are not text. A text that is JSON is read as JSON. */
#ifndef HB_BASE_YAML_H
#define HB_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "base/node.h"
#include "base/str.h"

struct hb_arena;

/* The document in the file ("-": standard input). */
bool hb_yaml_read_file(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                       struct hb_node **out_root);
/* The document that text is; name stands for the file in messages. text[len] is 0. */
bool hb_yaml_parse(struct hb_arena *arena, struct hb_diag *diag, const char *name, const char *text,
                   size_t len, struct hb_node **out_root);
/* The same as the readers of other programs take it: of a key written twice the last counts, and
 * merge keys ("<<") merge. */
bool hb_yaml_parse_loose(struct hb_arena *arena, struct hb_diag *diag, const char *name,
                         const char *text, size_t len, struct hb_node **out_root);
/* The tree as YAML, with short leaves on one line; reading it gives an equal tree. */
void hb_yaml_write(struct hb_str *out, const struct hb_node *root);

#endif
