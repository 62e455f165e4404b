/* Shapes as compilers print them: `bf16[8,128]{1,0:T(8,128)(2,1)S(1)}`, tuples of such, what they
 * take in memory. A text that comes again is read once: shapes are referred to by index. */
#ifndef HB_SIM_HLO_SHAPE_H
#define HB_SIM_HLO_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/hlo/lex.h"

struct hb_arena;

/* Element types and their bits (xla_data.proto; primitive_util.cc). A pred is a byte. */
#define HB_HLO_TYPES(X)                                                                            \
    X(PRED, "pred", 8)                                                                             \
    X(S1, "s1", 1)                                                                                 \
    X(U1, "u1", 1)                                                                                 \
    X(S2, "s2", 2)                                                                                 \
    X(U2, "u2", 2)                                                                                 \
    X(S4, "s4", 4)                                                                                 \
    X(U4, "u4", 4)                                                                                 \
    X(S8, "s8", 8)                                                                                 \
    X(U8, "u8", 8)                                                                                 \
    X(S16, "s16", 16)                                                                              \
    X(U16, "u16", 16)                                                                              \
    X(S32, "s32", 32)                                                                              \
    X(U32, "u32", 32)                                                                              \
    X(S64, "s64", 64)                                                                              \
    X(U64, "u64", 64)                                                                              \
    X(F4E2M1FN, "f4e2m1fn", 4)                                                                     \
    X(F8E3M4, "f8e3m4", 8)                                                                         \
    X(F8E4M3, "f8e4m3", 8)                                                                         \
    X(F8E4M3FN, "f8e4m3fn", 8)                                                                     \
    X(F8E4M3B11, "f8e4m3b11fnuz", 8)                                                               \
    X(F8E4M3FNUZ, "f8e4m3fnuz", 8)                                                                 \
    X(F8E5M2, "f8e5m2", 8)                                                                         \
    X(F8E5M2FNUZ, "f8e5m2fnuz", 8)                                                                 \
    X(F8E8M0FNU, "f8e8m0fnu", 8)                                                                   \
    X(F16, "f16", 16)                                                                              \
    X(BF16, "bf16", 16)                                                                            \
    X(F32, "f32", 32)                                                                              \
    X(F64, "f64", 64)                                                                              \
    X(C64, "c64", 64)                                                                              \
    X(C128, "c128", 128)                                                                           \
    X(TOKEN, "token", 0)                                                                           \
    X(OPAQUE, "opaque", 0)                                                                         \
    X(TUPLE, "tuple", 0)

enum hb_hlo_type {
#define HB_ENUM(name, text, bits) HB_HLO_##name,
    HB_HLO_TYPES(HB_ENUM)
#undef HB_ENUM
        HB_HLO_TYPE_COUNT
};

struct hb_hlo_shape {
    enum hb_hlo_type type;
    int rank;
    int space;            /* S(n): 0 HBM, 1 on-chip, 5 host */
    bool tiled;           /* T(...) was there: a TPU's */
    bool huge;            /* it, or one inside, takes 2^60 bytes or more: counts are clamped */
    uint32_t dims_at;     /* into nums: rank dimensions, then as many, minor to major */
    uint32_t child_at;    /* into nums: of a tuple, shape and first slot of each child */
    uint32_t child_count; /* of a tuple */
    uint32_t slots;       /* itself and all inside, tuples before their children */
    int64_t elements;     /* of an array; saturating */
    int64_t plain_bytes;  /* without tiles; a tuple's is its table of pointers */
    int64_t bytes;        /* with tiles; saturating */
    struct hb_hlo_span text;
};

struct hb_hlo_shapes {
    struct hb_arena *arena;
    struct hb_hlo_shape *items;
    uint32_t count, cap;
    int64_t *nums;
    uint32_t num_count, num_cap;
    uint32_t *found; /* hash table: index + 1 */
    uint32_t found_cap;
};

void hb_hlo_shapes_init(struct hb_hlo_shapes *shapes, struct hb_arena *arena);
/* Reads a shape at lex; false (lex where it went wrong) if none is there. */
bool hb_hlo_shape_read(struct hb_hlo_shapes *shapes, struct hb_hlo_lex *lex, uint32_t *out_shape);

/* Over a shape; false: its brackets do not close. */
bool hb_hlo_shape_skip(struct hb_hlo_lex *lex);

/* Of a tuple. */
uint32_t hb_hlo_shape_child(const struct hb_hlo_shapes *shapes, uint32_t shape, uint32_t child);
uint32_t hb_hlo_shape_child_slot(const struct hb_hlo_shapes *shapes, uint32_t shape,
                                 uint32_t child);
/* The shape in a slot: 0 itself, then what is inside in order. */
uint32_t hb_hlo_shape_at_slot(const struct hb_hlo_shapes *shapes, uint32_t shape, uint32_t slot);
int64_t hb_hlo_shape_dim(const struct hb_hlo_shapes *shapes, uint32_t shape, int dim);
/* Same type, dimensions, order, tiles and memory space. */
bool hb_hlo_shape_same(const struct hb_hlo_shapes *shapes, uint32_t a, uint32_t b);

const char *hb_hlo_type_name(enum hb_hlo_type type);
int hb_hlo_type_bits(enum hb_hlo_type type);

#endif
