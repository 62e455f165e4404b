/* Element types: one table of names and widths for the schema, the program and the dump reader. */
#ifndef HB_MODELS_DTYPE_H
#define HB_MODELS_DTYPE_H

#include <stdbool.h>

#define HB_DTYPES(X)                                                                               \
    X(F32, "f32", 32)                                                                              \
    X(BF16, "bf16", 16)                                                                            \
    X(F16, "f16", 16)                                                                              \
    X(F64, "f64", 64)                                                                              \
    X(F8, "f8", 8)                                                                                 \
    X(F4, "f4", 4)                                                                                 \
    X(Q8, "q8", 8)                                                                                 \
    X(Q4, "q4", 4)                                                                                 \
    X(S32, "s32", 32)                                                                              \
    X(U8, "u8", 8)                                                                                 \
    X(PRED, "pred", 8)                                                                             \
    X(S64, "s64", 64)

enum hb_dtype {
#define HB_ENUM(name, text, bits) HB_DT_##name,
    HB_DTYPES(HB_ENUM)
#undef HB_ENUM
        HB_DTYPE_COUNT
};

const char *hb_dtype_name(enum hb_dtype dtype);
int hb_dtype_bits(enum hb_dtype dtype);

#endif
