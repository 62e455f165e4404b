/* The grammar is that of ShapeUtil::HumanStringWithLayout (xla/shape_util.cc, layout.cc):
 *
 *   shape  = "(" [shape {"," shape}] ")" | type "[" dims "]" ["{" layout "}"] | "b(" shape ")"
 *   layout = order [":" {tile list | "S(n)" | "E(n)" | others in brackets}]
 *
 * Bytes with tiles (rule 11): tiles are applied one after another to the physical dimensions,
 * major first, as Layout's tiling says: dimensions below a tile are divided, rounded up, and the
 * tile's own are put behind; `*` merges a dimension with the next. */
#include "sim/hlo/shape.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

enum {
    MAX_DEPTH = 64, /* of tuples in tuples */
    MAX_RANK = 32,
    MAX_TILES = 8,
    COMBINE = -1 /* `*` in a tile */
};

static const struct {
    const char *name;
    int bits;
} types[] = {
#define HB_ENUM(name, text, bits) {text, bits},
    HB_HLO_TYPES(HB_ENUM)
#undef HB_ENUM
};
_Static_assert(sizeof types / sizeof *types == HB_HLO_TYPE_COUNT, "one row a type");

const char *hb_hlo_type_name(enum hb_hlo_type type)
{
    return types[type].name;
}

int hb_hlo_type_bits(enum hb_hlo_type type)
{
    return types[type].bits;
}

void hb_hlo_shapes_init(struct hb_hlo_shapes *shapes, struct hb_arena *arena)
{
    *shapes = (struct hb_hlo_shapes){.arena = arena};
}

static uint32_t add_num(struct hb_hlo_shapes *s, int64_t num)
{
    s->nums = hb_grow(s->arena, s->nums, s->num_count, &s->num_cap, sizeof *s->nums);
    s->nums[s->num_count] = num;
    return s->num_count++;
}

/* ---- what was read before: a hash table over the text ---- */

static uint32_t hash_text(struct hb_hlo_span text)
{
    uint64_t hash = 14695981039346656037u ^ text.len;
    size_t i = 0;
    for (; i + 8 <= text.len; i += 8) {
        uint64_t eight;
        memcpy(&eight, text.at + i, sizeof eight);
        hash = (hash ^ eight) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    for (; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * 1099511628211u;
    return (uint32_t)(hash ^ hash >> 29);
}

static uint32_t *find_slot(struct hb_hlo_shapes *s, struct hb_hlo_span text)
{
    uint32_t mask = s->found_cap - 1;
    for (uint32_t i = hash_text(text) & mask;; i = (i + 1) & mask) {
        uint32_t at = s->found[i];
        if (!at)
            return &s->found[i];
        struct hb_hlo_span known = s->items[at - 1].text;
        if (known.len == text.len && memcmp(known.at, text.at, text.len) == 0)
            return &s->found[i];
    }
}

static void grow_table(struct hb_hlo_shapes *s)
{
    s->found_cap = s->found_cap ? s->found_cap * 2 : 1024;
    s->found = hb_arena_alloc(s->arena, s->found_cap, sizeof *s->found);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->items[i].text.len)
            *find_slot(s, s->items[i].text) = i + 1;
}

static uint32_t add_shape(struct hb_hlo_shapes *s, struct hb_hlo_shape shape)
{
    if ((s->count + 1) * 2 > s->found_cap)
        grow_table(s);
    s->items = hb_grow(s->arena, s->items, s->count, &s->cap, sizeof *s->items);
    s->items[s->count] = shape;
    *find_slot(s, shape.text) = s->count + 1;
    return s->count++;
}

/* ---- bytes ---- */

struct tile {
    int64_t dim[MAX_RANK];
    int rank;
};

struct layout {
    int64_t order[MAX_RANK]; /* minor to major */
    int order_count;
    struct tile tile[MAX_TILES];
    int tile_count;
    int64_t space;
    int64_t elem_bits; /* E(n); 0: the type's */
};

/* Applies a tile to dims (major first) in place; false if it gets too many. */
static bool apply_tile(const struct tile *tile, int64_t *dims, int *rank)
{
    int64_t wide[2 * MAX_RANK], merged[MAX_RANK], below[MAX_RANK];
    int missing = tile->rank > *rank ? tile->rank - *rank : 0;
    int n = 0, below_count = 0;
    for (int i = 0; i < missing; i++)
        wide[n++] = 1;
    for (int i = 0; i < *rank; i++)
        wide[n++] = dims[i];
    int kept = n - tile->rank, m = 0;
    int64_t carry = 1;
    for (int i = 0; i < n; i++) {
        int64_t part = i < kept ? 0 : tile->dim[i - kept];
        if (i >= kept && part == COMBINE) {
            carry = hb_mul_sat(carry, wide[i]);
            continue;
        }
        int64_t dim = hb_mul_sat(carry, wide[i]);
        carry = 1;
        merged[m++] = part ? hb_div_up(dim, part) : dim;
        if (part)
            below[below_count++] = part;
    }
    if (m + below_count > MAX_RANK)
        return false;
    memcpy(dims, merged, (size_t)m * sizeof *dims);
    memcpy(dims + m, below, (size_t)below_count * sizeof *dims);
    *rank = m + below_count;
    return true;
}

static int64_t bits_to_bytes(int64_t bits)
{
    return bits / 8 + (bits % 8 != 0);
}

/* Whether an array takes so much that products of its dimensions, an empty one left out, would not
 * fit 63 bits: 2^60 bytes. */
static bool is_huge(const int64_t *dims, int rank, int64_t bits)
{
    int64_t product = bits > 8 ? bits : 8;
    for (int i = 0; i < rank; i++)
        if (!hb_mul_i64(product, dims[i] > 1 ? dims[i] : 1, &product))
            return true;
    return false;
}

static bool count_bytes(struct hb_hlo_shapes *s, struct hb_hlo_shape *shape,
                        const struct layout *layout)
{
    int64_t dims[MAX_RANK], padded = 1;
    int rank = shape->rank, bits = types[shape->type].bits;
    shape->elements = 1;
    for (int i = 0; i < rank; i++) {
        int64_t major = layout->order_count ? layout->order[rank - 1 - i] : i;
        dims[i] = s->nums[shape->dims_at + (uint32_t)major];
        shape->elements = hb_mul_sat(shape->elements, dims[i]);
    }
    shape->huge = is_huge(dims, rank, bits);
    for (int t = 0; t < layout->tile_count; t++)
        if (!apply_tile(&layout->tile[t], dims, &rank))
            return false;
    shape->huge = shape->huge || is_huge(dims, rank, bits);
    for (int i = 0; i < rank; i++)
        padded = hb_mul_sat(padded, dims[i]);
    if (layout->elem_bits > 0)
        bits = (int)layout->elem_bits;
    else if (bits > 0 && bits < 8)
        bits = 8; /* unpacked unless the layout says E(n) */
    shape->plain_bytes = bits_to_bytes(hb_mul_sat(shape->elements, bits));
    shape->bytes = bits_to_bytes(hb_mul_sat(padded, bits));
    return true;
}

/* ---- grammar ---- */

static bool read_tile(struct hb_hlo_lex *lex, struct tile *tile)
{
    tile->rank = 0;
    do {
        int64_t dim = COMBINE;
        if (tile->rank == MAX_RANK ||
            (!hb_hlo_take(lex, '*') && (!hb_hlo_take_int(lex, &dim) || dim <= 0)))
            return false;
        tile->dim[tile->rank++] = dim;
    } while (hb_hlo_take(lex, ','));
    return hb_hlo_take(lex, ')') && tile->dim[tile->rank - 1] != COMBINE;
}

static bool read_number_in_brackets(struct hb_hlo_lex *lex, int64_t *out)
{
    return hb_hlo_take(lex, '(') && hb_hlo_take_int(lex, out) && hb_hlo_take(lex, ')');
}

/* S(1), E(4); SC(...) is something else, and passed over. */
static bool read_numbered(struct hb_hlo_lex *lex, int64_t *out)
{
    bool is_number = lex->end - lex->at > 1 && lex->at[1] == '(';
    lex->at++;
    if (is_number)
        return read_number_in_brackets(lex, out);
    if (!hb_hlo_take(lex, 'C'))
        return false;
    do {
        if (lex->at >= lex->end || *lex->at != '(' || !hb_hlo_skip_brackets(lex))
            return false;
    } while (lex->at < lex->end && *lex->at == '(');
    return true;
}

static bool read_tiles(struct hb_hlo_lex *lex, struct layout *layout)
{
    do {
        if (layout->tile_count == MAX_TILES || !hb_hlo_take(lex, '(') ||
            !read_tile(lex, &layout->tile[layout->tile_count++]))
            return false;
    } while (lex->at < lex->end && *lex->at == '(');
    return true;
}

/* What stands behind the colon: tiles, memory space, element size; other marks are passed over. */
static bool read_marks(struct hb_hlo_lex *lex, struct layout *layout)
{
    while (lex->at < lex->end && *lex->at != '}') {
        char mark = *lex->at;
        if (mark == 'T' || mark == '(') {
            lex->at += mark == 'T';
            if (!read_tiles(lex, layout))
                return false;
        } else if (mark == 'S' || mark == 'E') {
            if (!read_numbered(lex, mark == 'S' ? &layout->space : &layout->elem_bits))
                return false;
        } else if ((mark >= 'A' && mark <= 'Z') || mark == '#' || mark == '*') {
            lex->at++;
            if (lex->at >= lex->end || *lex->at != '(' || !hb_hlo_skip_brackets(lex))
                return false;
        } else {
            return false;
        }
    }
    return true;
}

/* The order must name each dimension once. */
static bool check_order(const struct layout *layout, int rank)
{
    uint64_t seen = 0;
    for (int i = 0; i < layout->order_count; i++) {
        if (layout->order[i] >= rank || seen & 1u << layout->order[i])
            return false;
        seen |= 1u << layout->order[i];
    }
    return layout->order_count == 0 || layout->order_count == rank;
}

/* Whether a layout stands here: a brace, with a number or a colon behind, maybe after blanks. A
 * brace that closes at once counts where nothing is between; another one opens a computation. */
static bool is_layout(struct hb_hlo_lex lex)
{
    const char *first = lex.at;
    if (!hb_hlo_take(&lex, '{'))
        return false;
    bool near = lex.at == first + 1;
    hb_hlo_skip_space(&lex);
    return lex.at < lex.end && ((*lex.at >= '0' && *lex.at <= '9') || *lex.at == ':' ||
                                (near && lex.at == first + 1 && *lex.at == '}'));
}

static bool read_layout(struct hb_hlo_lex *lex, int rank, struct layout *layout)
{
    if (!is_layout(*lex))
        return true;
    hb_hlo_take(lex, '{');
    hb_hlo_skip_space(lex);
    while (lex->at < lex->end && *lex->at != '}' && *lex->at != ':') {
        if (layout->order_count == MAX_RANK ||
            !hb_hlo_take_int(lex, &layout->order[layout->order_count]))
            return false;
        layout->order_count++;
        if (!hb_hlo_take(lex, ','))
            break;
    }
    if (hb_hlo_take(lex, ':') && !read_marks(lex, layout))
        return false;
    return hb_hlo_take(lex, '}') && check_order(layout, rank) && layout->elem_bits <= 128 &&
           layout->space < 256;
}

static bool read_type(struct hb_hlo_lex *lex, enum hb_hlo_type *out)
{
    const char *first = lex->at;
    struct hb_hlo_span name = hb_hlo_take_name(lex);
    for (int t = 0; t < HB_HLO_TUPLE; t++)
        if (hb_hlo_span_is(name, types[t].name)) {
            *out = (enum hb_hlo_type)t;
            return true;
        }
    lex->at = first;
    return false;
}

static bool read_dims(struct hb_hlo_shapes *s, struct hb_hlo_lex *lex, struct hb_hlo_shape *shape)
{
    if (!hb_hlo_take(lex, '['))
        return false;
    shape->dims_at = s->num_count;
    while (!hb_hlo_take(lex, ']')) {
        int64_t dim = 0;
        if (shape->rank == MAX_RANK || (shape->rank && !hb_hlo_take(lex, ',')))
            return false;
        hb_hlo_skip_space(lex);
        if (lex->at < lex->end && *lex->at == '?')
            lex->at++; /* not bounded: counted as empty */
        else if ((hb_hlo_take(lex, '<') && !hb_hlo_take(lex, '=')) || !hb_hlo_take_int(lex, &dim))
            return false;
        add_num(s, dim);
        shape->rank++;
    }
    return true;
}

static bool read_array(struct hb_hlo_shapes *s, struct hb_hlo_lex *lex, uint32_t *out)
{
    struct hb_hlo_shape shape = {.slots = 1, .text.at = lex->at};
    struct layout layout = {.order_count = 0};
    if (!read_type(lex, &shape.type) || !read_dims(s, lex, &shape) ||
        !read_layout(lex, shape.rank, &layout))
        return false;
    for (int i = 0; i < shape.rank; i++)
        add_num(s, layout.order_count ? layout.order[i] : shape.rank - 1 - i);
    shape.space = (int)layout.space;
    shape.tiled = layout.tile_count > 0;
    if (!count_bytes(s, &shape, &layout))
        return false;
    shape.text.len = (size_t)(lex->at - shape.text.at);
    *out = add_shape(s, shape);
    return true;
}

static bool read_any(struct hb_hlo_shapes *s, struct hb_hlo_lex *lex, int depth, uint32_t *out);

/* The children are gathered apart first: nums may grow while they are read. */
static bool read_tuple(struct hb_hlo_shapes *s, struct hb_hlo_lex *lex, int depth, uint32_t *out)
{
    enum { POINTER_BYTES = 8 };
    struct hb_hlo_shape shape = {.type = HB_HLO_TUPLE, .slots = 1, .text.at = lex->at};
    uint32_t *children = NULL, cap = 0;
    lex->at++;
    while (!hb_hlo_take(lex, ')')) {
        uint32_t child;
        if (shape.child_count && !hb_hlo_take(lex, ','))
            return false;
        hb_hlo_skip_space(lex);
        if (!read_any(s, lex, depth + 1, &child))
            return false;
        children = hb_grow(s->arena, children, shape.child_count, &cap, sizeof *children);
        children[shape.child_count++] = child;
    }
    shape.child_at = s->num_count;
    for (uint32_t i = 0; i < shape.child_count; i++) {
        add_num(s, children[i]);
        add_num(s, shape.slots);
        if (s->items[children[i]].slots > UINT32_MAX / 4 - shape.slots)
            return false;
        shape.huge = shape.huge || s->items[children[i]].huge;
        shape.slots += s->items[children[i]].slots;
    }
    shape.bytes = shape.plain_bytes = (int64_t)shape.child_count * POINTER_BYTES;
    shape.text.len = (size_t)(lex->at - shape.text.at);
    *out = add_shape(s, shape);
    return true;
}

/* `b(shape)`: a handle of a buffer, which takes what the buffer does. */
static bool is_handle(const struct hb_hlo_lex *lex)
{
    return lex->end - lex->at > 2 && lex->at[0] == 'b' && lex->at[1] == '(';
}

bool hb_hlo_shape_skip(struct hb_hlo_lex *lex)
{
    bool handle = is_handle(lex);
    lex->at += handle;
    if (handle || (lex->at < lex->end && *lex->at == '('))
        return hb_hlo_skip_brackets(lex);
    hb_hlo_take_name(lex);
    struct hb_hlo_lex dims = *lex;
    hb_hlo_skip_blanks(&dims);
    if (dims.at < dims.end && *dims.at == '[') {
        *lex = dims;
        if (!hb_hlo_skip_brackets(lex))
            return false;
    }
    if (!is_layout(*lex))
        return true;
    hb_hlo_skip_space(lex);
    return hb_hlo_skip_brackets(lex);
}

/* The text of the shape at lex, found without reading it. False: it has no end. */
static bool measure_text(struct hb_hlo_lex lex, struct hb_hlo_span *out)
{
    const char *first = lex.at;
    bool closed = hb_hlo_shape_skip(&lex);
    *out = (struct hb_hlo_span){first, (size_t)(lex.at - first)};
    return closed;
}

static bool read_handle(struct hb_hlo_shapes *s, struct hb_hlo_lex *lex, int depth, uint32_t *out)
{
    lex->at += 2;
    hb_hlo_skip_space(lex);
    return read_any(s, lex, depth + 1, out) && hb_hlo_take(lex, ')');
}

/* What was read before is found again by its text. Within a tuple only a short one is looked for:
 * a text in so many brackets is not to be measured once for each of them. */
static bool read_any(struct hb_hlo_shapes *s, struct hb_hlo_lex *lex, int depth, uint32_t *out)
{
    enum { SHORT_TEXT = 1024 };
    if (depth > MAX_DEPTH || lex->at >= lex->end)
        return false;
    struct hb_hlo_span text;
    struct hb_hlo_lex near = *lex;
    if (depth > 0 && near.end - near.at > SHORT_TEXT)
        near.end = near.at + SHORT_TEXT;
    bool measured = measure_text(near, &text);
    if (!measured && depth == 0)
        return false;
    uint32_t known = measured && s->found_cap ? *find_slot(s, text) : 0;
    if (known) {
        lex->at += text.len;
        *out = known - 1;
        return true;
    }
    if (is_handle(lex))
        return read_handle(s, lex, depth, out);
    return *lex->at == '(' ? read_tuple(s, lex, depth, out) : read_array(s, lex, out);
}

bool hb_hlo_shape_read(struct hb_hlo_shapes *shapes, struct hb_hlo_lex *lex, uint32_t *out_shape)
{
    return read_any(shapes, lex, 0, out_shape);
}

/* ---- questions ---- */

uint32_t hb_hlo_shape_child(const struct hb_hlo_shapes *shapes, uint32_t shape, uint32_t child)
{
    return (uint32_t)shapes->nums[shapes->items[shape].child_at + 2 * child];
}

uint32_t hb_hlo_shape_child_slot(const struct hb_hlo_shapes *shapes, uint32_t shape, uint32_t child)
{
    return (uint32_t)shapes->nums[shapes->items[shape].child_at + 2 * child + 1];
}

uint32_t hb_hlo_shape_at_slot(const struct hb_hlo_shapes *shapes, uint32_t shape, uint32_t slot)
{
    while (slot) {
        uint32_t low = 0, high = shapes->items[shape].child_count - 1;
        while (low < high) { /* the last child that begins at or before the slot */
            uint32_t middle = (low + high + 1) / 2;
            if (hb_hlo_shape_child_slot(shapes, shape, middle) <= slot)
                low = middle;
            else
                high = middle - 1;
        }
        slot -= hb_hlo_shape_child_slot(shapes, shape, low);
        shape = hb_hlo_shape_child(shapes, shape, low);
    }
    return shape;
}

int64_t hb_hlo_shape_dim(const struct hb_hlo_shapes *shapes, uint32_t shape, int dim)
{
    return shapes->nums[shapes->items[shape].dims_at + (uint32_t)dim];
}

bool hb_hlo_shape_same(const struct hb_hlo_shapes *shapes, uint32_t a, uint32_t b)
{
    const struct hb_hlo_shape *left = &shapes->items[a], *right = &shapes->items[b];
    if (a == b)
        return true;
    if (left->type != right->type || left->rank != right->rank ||
        left->child_count != right->child_count || left->slots != right->slots)
        return false;
    if (left->type == HB_HLO_TUPLE) {
        for (uint32_t i = 0; i < left->child_count; i++)
            if (!hb_hlo_shape_same(shapes, hb_hlo_shape_child(shapes, a, i),
                                   hb_hlo_shape_child(shapes, b, i)))
                return false;
        return true;
    }
    size_t nums = (size_t)left->rank * 2 * sizeof *shapes->nums;
    if (left->space != right->space || left->tiled != right->tiled || left->bytes != right->bytes)
        return false;
    return nums == 0 ||
           memcmp(shapes->nums + left->dims_at, shapes->nums + right->dims_at, nums) == 0;
}
