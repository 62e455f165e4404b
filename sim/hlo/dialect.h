/* Whose text a module is: what its compiler rounds to and how it packs, one row each. The text does
 * not say it; tiles, names, operations and the file's name give it away. */
#ifndef HB_SIM_HLO_DIALECT_H
#define HB_SIM_HLO_DIALECT_H

#include <stdint.h>

#include "sim/engine/heap.h"

struct hb_hlo_module;

enum hb_hlo_backend { HB_HLO_CPU, HB_HLO_GPU, HB_HLO_TPU };

struct hb_hlo_dialect {
    const char *name; /* as --backend takes it */
    enum hb_hlo_backend backend;
    enum hb_heap_kind heap;
    int64_t heap_align_bytes;  /* a temporary begins at a multiple of it */
    int64_t leaf_align_bytes;  /* an array takes a multiple of it */
    int64_t pointer_bytes;     /* a tuple's table holds so much for each element, */
    int64_t table_align_bytes; /* and takes a multiple of this */
};

/* Null: no such name. */
const struct hb_hlo_dialect *hb_hlo_dialect_find(const char *name);
const char *const *hb_hlo_dialect_names(void);
/* By the signs in the text and the name of its file; where there are none, GPU. */
const struct hb_hlo_dialect *hb_hlo_dialect_guess(const struct hb_hlo_module *m);

#endif
