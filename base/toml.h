/* TOML (1.0) into the tree that YAML and JSON give: tables, arrays of tables, dotted and quoted
 * keys, strings of all four kinds, numbers, inline tables. Dates are text. Numbers keep their
 * spelling (8_192); limits are those of base/node.h, and 2,000 keys in a table. */
#ifndef HB_BASE_TOML_H
#define HB_BASE_TOML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "base/node.h"

struct hb_arena;

/* The document that text is; name stands for the file in messages. text[len] is 0. */
bool hb_toml_parse(struct hb_arena *arena, struct hb_diag *diag, const char *name, const char *text,
                   size_t len, struct hb_node **out_root);

#endif
