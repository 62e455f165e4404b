/* Names and widths of element types: see dtype.h. */
#include "models/dtype.h"

#include "base/diag.h"

static const struct {
    const char *name;
    int bits;
} dtypes[] = {
#define HB_ENUM(name, text, bits) {text, bits},
    HB_DTYPES(HB_ENUM)
#undef HB_ENUM
};

_Static_assert(sizeof dtypes / sizeof dtypes[0] == HB_DTYPE_COUNT, "one row a dtype");

const char *hb_dtype_name(enum hb_dtype dtype)
{
    if (dtype >= HB_DTYPE_COUNT)
        HB_BUG("dtype %d", (int)dtype);
    return dtypes[dtype].name;
}

int hb_dtype_bits(enum hb_dtype dtype)
{
    if (dtype >= HB_DTYPE_COUNT)
        HB_BUG("dtype %d", (int)dtype);
    return dtypes[dtype].bits;
}
