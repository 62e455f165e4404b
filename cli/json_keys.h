/* The keys of every result as JSON: `hbmsim help json` in words, as a JSON Schema, and the manual
 * page's list. Tests hold each output against the schema, where a key that no row has is an error:
 * a writer cannot gain or lose one unseen. */
#ifndef HB_CLI_JSON_KEYS_H
#define HB_CLI_JSON_KEYS_H

#include <stdio.h>

#include "base/json_write.h"

/* One object: a schema that any result meets, with a definition for each kind. */
void hb_json_keys_schema(struct hb_json *j);
/* A line for each key. kind: of one command's result; null: of all. False: no such result. */
bool hb_json_keys_text(FILE *out, const char *kind);

#endif
