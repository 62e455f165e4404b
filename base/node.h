/* A document as a tree: what the YAML and the JSON reader both produce. Children form a list in
 * the order written; every node knows its place. Plain records in an arena; a tree is bounded
 * in depth and count by its readers, so recursion over it is safe. */
#ifndef HB_BASE_NODE_H
#define HB_BASE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

struct hb_arena;

enum hb_node_kind { HB_NODE_SCALAR, HB_NODE_MAP, HB_NODE_LIST };

/* Limits of every reader. */
enum { HB_NODE_MAX_DEPTH = 64, HB_NODE_MAX_COUNT = 1000000 };

struct hb_node {
    enum hb_node_kind kind;
    bool quoted;           /* scalar written in quotes: text, never a number */
    uint32_t count;        /* children of a map or list */
    struct hb_loc loc;     /* of the value */
    const char *text;      /* of a scalar; without NUL bytes inside */
    const char *key;       /* name in the map that holds it; null in a list */
    struct hb_loc key_loc; /* where key is set */
    struct hb_node *first; /* children, in order */
    struct hb_node *last;
    struct hb_node *next; /* sibling */
};

struct hb_node *hb_node_new(struct hb_arena *arena, enum hb_node_kind kind, struct hb_loc loc);
/* A scalar; text is kept, not copied. */
struct hb_node *hb_node_scalar(struct hb_arena *arena, struct hb_loc loc, const char *text,
                               bool quoted);
/* A copy of the whole tree under node, without its key. */
struct hb_node *hb_node_copy(struct hb_arena *arena, const struct hb_node *node);

/* Adds child, which is in no other tree, at the end. */
void hb_node_append(struct hb_node *list, struct hb_node *child);
/* Gives map the key, in place of what has it already. */
void hb_node_put(struct hb_node *map, const char *key, struct hb_loc key_loc,
                 struct hb_node *child);
/* Takes the key away. */
void hb_node_drop(struct hb_node *map, const char *key);
/* Puts over's keys into base; maps in both are merged key by key, all else is replaced. Children
 * move: over is not to be used after. */
void hb_node_overlay(struct hb_node *base, struct hb_node *over);
/* Null where map is null, no map, or has no such key. */
struct hb_node *hb_node_find(const struct hb_node *map, const char *key);
/* Null where there are not that many. */
struct hb_node *hb_node_at(const struct hb_node *list, int64_t index);

/* Scalars as values. False: not of that type; quoted text is neither number nor boolean. */
bool hb_node_int(const struct hb_node *node, int64_t *out_value);
bool hb_node_real(const struct hb_node *node, double *out_value);
bool hb_node_bool(const struct hb_node *node, bool *out_value);
/* Nothing, `null` or `~`, without quotes. */
bool hb_node_is_null(const struct hb_node *node);
/* What was found, for a message: 'text' shortened and without control characters, "a list". */
const char *hb_node_show(struct hb_arena *arena, const struct hb_node *node);

/* Errors for keys that a map holds twice, with both places; true if there are none. */
bool hb_node_check_keys(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *map);

#endif
