/* The keys of results as rows of tables, for json_keys.c, which makes words and a schema of them.
 */
#ifndef HB_CLI_JSON_ROWS_H
#define HB_CLI_JSON_ROWS_H

#include <stdbool.h>

/* Of the last row of a table all are null. */
struct hb_json_row {
    const char *path, *type, *doc;
};

struct hb_json_kind {
    const char *name;
    const char *title; /* of a part: as types call it; null: the name */
    const struct hb_json_row *rows;
    const struct hb_json_row *base; /* further rows; null: none */
    bool headed;                    /* hb_json_head's rows stand in it too */
};

const struct hb_json_row *hb_json_head(void);
/* A command's each. */
const struct hb_json_kind *hb_json_results(int *out_count);
/* Used by several results. The first is what simulate has as its own. */
const struct hb_json_kind *hb_json_parts(int *out_count);

#endif
