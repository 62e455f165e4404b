/* Bytes of per-device shapes: see shape.h. */
#include "sim/ir/shape.h"

#include "base/size.h"

enum { TPU_VECTOR_TILE = 1024, TPU_SCALAR_BYTES = 512 };

struct hb_shape hb_shape_make(enum hb_dtype dtype, const int64_t *dims)
{
    struct hb_shape s = {.dtype = dtype};
    while (s.rank < HB_SHAPE_RANK && dims[s.rank] >= 0) {
        s.dim[s.rank] = dims[s.rank];
        s.rank++;
    }
    return s;
}

bool hb_shape_same_dims(const struct hb_shape *a, const struct hb_shape *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

int64_t hb_shape_elements(const struct hb_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n = hb_mul_sat(n, s->dim[i]);
    return n;
}

static int64_t to_bytes(int64_t elements, enum hb_dtype dtype)
{
    int bits = hb_dtype_bits(dtype);
    return bits >= 8 ? hb_mul_sat(elements, bits / 8) : hb_div_up(elements, 8 / bits);
}

int64_t hb_shape_plain_bytes(const struct hb_shape *s)
{
    return to_bytes(hb_shape_elements(s), s->dtype);
}

/* Rows in whole tiles of as many sublanes: fewer than eight in the least power of two. */
static int64_t in_sublanes(int64_t dim)
{
    int64_t tile = 1;
    if (dim >= HB_TPU_SUBLANES)
        return hb_round_up(dim, HB_TPU_SUBLANES);
    while (tile < dim)
        tile *= 2;
    return dim > 0 ? tile : dim;
}

static int64_t others(const struct hb_shape *s, int minor, int second, int64_t n)
{
    for (int i = 0; i < s->rank; i++)
        if (i != minor && i != second)
            n = hb_mul_sat(n, s->dim[i]);
    return n;
}

/* Elements with dimension `minor` along the lanes and `second` along the sublanes. */
static int64_t padded_elements(const struct hb_shape *s, int minor, int second)
{
    return others(
        s, minor, second,
        hb_mul_sat(hb_round_up(s->dim[minor], HB_TPU_LANES), in_sublanes(s->dim[second])));
}

/* The least of all pairs; none is below what is there without padding. */
static int64_t compact_elements(const struct hb_shape *s, int64_t plain)
{
    int last = s->rank - 1;
    if (s->dim[last] % HB_TPU_LANES == 0 && in_sublanes(s->dim[last - 1]) == s->dim[last - 1])
        return plain;
    int64_t best = INT64_MAX, sublanes[HB_SHAPE_RANK] = {0};
    for (int i = 0; i < s->rank; i++)
        sublanes[i] = in_sublanes(s->dim[i]);
    for (int minor = last; minor >= 0 && best > plain; minor--) {
        int64_t lanes = hb_round_up(s->dim[minor], HB_TPU_LANES);
        for (int second = last; second >= 0 && best > plain; second--) {
            int64_t n = second == minor
                            ? INT64_MAX
                            : others(s, minor, second, hb_mul_sat(lanes, sublanes[second]));
            best = n < best ? n : best;
        }
    }
    return best;
}

static int64_t vector_elements(int64_t n)
{
    int64_t tile = HB_TPU_LANES;
    while (tile < n && tile < TPU_VECTOR_TILE)
        tile *= 2;
    return hb_round_up(n, tile);
}

int64_t hb_shape_bytes(const struct hb_shape *s, enum hb_tiling tiling)
{
    if (tiling == HB_TILE_NONE)
        return hb_shape_plain_bytes(s);
    if (s->rank == 0)
        return TPU_SCALAR_BYTES;
    int64_t plain = hb_shape_elements(s);
    if (plain == 0)
        return 0;
    if (s->rank == 1)
        return to_bytes(vector_elements(s->dim[0]), s->dtype);
    if (tiling == HB_TILE_MINOR)
        return to_bytes(padded_elements(s, s->rank - 1, s->rank - 2), s->dtype);
    return to_bytes(compact_elements(s, plain), s->dtype);
}
