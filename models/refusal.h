/* Inside of support: a refusal is told at the key that it is about. */
#ifndef HB_MODELS_REFUSAL_H
#define HB_MODELS_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

struct hb_node;

struct hb_refusal {
    bool there;
    const char *key;  /* "mesh.tensor"; of a block it begins with a dot: ".attention.kind" */
    const char *text; /* why, and what would do */
};

/* Where refusals go. */
struct hb_refusing {
    struct hb_diag *diag;
    const struct hb_node *root; /* for places; null: none */
    const char *before;         /* of each text: "compiler: torch: ", or "" */
    int block;                  /* that keys with a dot are of */
};

/* Tells those that are there, once each. True: none is. */
bool hb_refuse(const struct hb_refusing *r, const struct hb_refusal *all, size_t count);

#define HB_REFUSE(r, all) hb_refuse(r, all, sizeof(all) / sizeof *(all))

#endif
