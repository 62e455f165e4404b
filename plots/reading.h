/* Optional keys of a JSON object, with a type each: absent or null leaves *out as it was; a value
 * of another type is an error at its place, and false. */
#ifndef HB_PLOTS_READING_H
#define HB_PLOTS_READING_H

#include "base/diag.h"
#include "base/node.h"
#include "sim/ir/program.h"

/* What a reader carries along; ok is false once anything was wrong. */
struct hb_reading {
    struct hb_arena *arena;
    struct hb_diag *diag;
    bool ok;
};

void hb_reading_int(struct hb_reading *f, const struct hb_node *map, const char *key, int64_t *out);
/* Bytes: an integer that is at least low and below a quarter of the range. */
void hb_reading_bytes(struct hb_reading *f, const struct hb_node *map, const char *key, int64_t low,
                      int64_t *out);
void hb_reading_real(struct hb_reading *f, const struct hb_node *map, const char *key, double *out);
void hb_reading_bool(struct hb_reading *f, const struct hb_node *map, const char *key, bool *out);
void hb_reading_text(struct hb_reading *f, const struct hb_node *map, const char *key,
                     const char **out);
void hb_reading_category(struct hb_reading *f, const struct hb_node *map, const char *key,
                         enum hb_category *out);
/* Null where absent; an error where it is there and not of that kind. */
const struct hb_node *hb_reading_list(struct hb_reading *f, const struct hb_node *map,
                                      const char *key);
const struct hb_node *hb_reading_map(struct hb_reading *f, const struct hb_node *map,
                                     const char *key);
/* Items of a list; bad ones are errors and 0. */
double *hb_reading_reals(struct hb_reading *f, const struct hb_node *list);
int64_t *hb_reading_sizes(struct hb_reading *f, const struct hb_node *list);
/* The category of that name, or HB_CATEGORY_COUNT. */
enum hb_category hb_category_find(const char *name);
/* Records what is wrong with node. */
void hb_reading_wrong(struct hb_reading *f, const struct hb_node *node, const char *key,
                      const char *wanted);

#endif
