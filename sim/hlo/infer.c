/* Shapes that a text leaves out, from operands and attributes, as ShapeInference does
 * (xla/service/shape_inference.cc). What is made has no layout: the default one. What does not
 * follow here, or where the operands do not fit each other, is an error that says so. */
#include <string.h>

#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/reader.h"

enum {
    MAX_RANK = 16,
    /* What all inferred shapes of a module may take as text: a tuple of tuples doubles at each
       step. */
    MAX_TEXT_BYTES = 1 << 26
};

struct array {
    enum hb_hlo_type type;
    int rank;
    int64_t dim[MAX_RANK];
};

struct infer {
    struct hb_hlo_reader *r;
    struct hb_hlo_module *m;
    const struct hb_hlo_inst *inst;
    uint32_t *out;
};

static uint32_t operand_shape(const struct infer *x, uint32_t i)
{
    return x->m->insts[x->m->args[x->inst->args_at + i]].shape;
}

/* An operand that is an array; false: there is none such. */
static bool get_array(const struct infer *x, uint32_t i, struct array *out)
{
    if (i >= x->inst->operand_count)
        return false;
    uint32_t shape = operand_shape(x, i);
    const struct hb_hlo_shape *s = &x->m->shapes.items[shape];
    if (s->type == HB_HLO_TUPLE || s->rank > MAX_RANK)
        return false;
    *out = (struct array){.type = s->type, .rank = s->rank};
    for (int d = 0; d < s->rank; d++)
        out->dim[d] = hb_hlo_shape_dim(&x->m->shapes, shape, d);
    return true;
}

/* ---- shapes are made by their text, so that equal ones are one ---- */

static void add_array(struct hb_str *text, const struct array *a)
{
    hb_str_addf(text, "%s[", hb_hlo_type_name(a->type));
    for (int d = 0; d < a->rank; d++)
        hb_str_addf(text, "%s%lld", d ? "," : "", (long long)a->dim[d]);
    hb_str_add(text, "]");
}

static bool make_shape(const struct infer *x, const struct hb_str *text)
{
    struct hb_hlo_lex lex = {text->text, text->text + text->len};
    return hb_hlo_shape_read(&x->m->shapes, &lex, x->out);
}

static bool make_array(const struct infer *x, const struct array *a)
{
    struct hb_str text;
    hb_str_init(&text, x->m->arena);
    add_array(&text, a);
    return make_shape(x, &text);
}

/* A tuple of operands' shapes. */
static bool make_tuple(const struct infer *x, const uint32_t *operands, uint32_t count)
{
    struct hb_str text;
    hb_str_init(&text, x->m->arena);
    hb_str_add(&text, "(");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t from = operands ? operands[i] : i;
        if (from >= x->inst->operand_count)
            return false;
        struct hb_hlo_span span = x->m->shapes.items[operand_shape(x, from)].text;
        if (span.len + text.len > MAX_TEXT_BYTES)
            return false;
        hb_str_addf(&text, "%s%.*s", i ? ", " : "", (int)span.len, span.at);
    }
    hb_str_add(&text, ")");
    return make_shape(x, &text);
}

/* count arrays, as many as one: alone without a tuple around. */
static bool make_arrays(const struct infer *x, const struct array *first, uint32_t count)
{
    struct hb_str text;
    if (count == 1)
        return make_array(x, first);
    hb_str_init(&text, x->m->arena);
    for (uint32_t i = 0; i < count; i++) {
        struct array one = *first, own;
        if (!get_array(x, i, &own))
            return false;
        one.type = own.type;
        hb_str_add(&text, i ? ", " : "(");
        add_array(&text, &one);
    }
    hb_str_add(&text, ")");
    return make_shape(x, &text);
}

static bool take_operand(const struct infer *x, uint32_t i)
{
    if (i >= x->inst->operand_count)
        return false;
    *x->out = operand_shape(x, i);
    return true;
}

/* A computation in braces is read later: the shape that stands at its ROOT. */
static bool take_root_of_body(const struct infer *x, struct hb_hlo_span body)
{
    struct hb_hlo_lex lex = hb_hlo_lex_span(body);
    hb_hlo_take(&lex, '{');
    while (lex.at < lex.end) {
        const char *at = lex.at;
        bool root = hb_hlo_span_is(hb_hlo_take_name(&lex), "ROOT");
        hb_hlo_skip_space(&lex);
        if (root) {
            hb_hlo_take_name(&lex);
            hb_hlo_skip_space(&lex);
            bool is = hb_hlo_take(&lex, '=');
            hb_hlo_skip_space(&lex);
            return is && hb_hlo_shape_read(&x->m->shapes, &lex, x->out);
        }
        if (lex.at == at && !hb_hlo_skip_brackets(&lex))
            return false;
    }
    return false;
}

static bool take_root(const struct infer *x)
{
    if (!x->inst->call_count)
        return false;
    uint32_t arg = x->inst->args_at + x->inst->operand_count + x->inst->pred_count;
    uint32_t comp = x->m->args[arg];
    for (uint32_t i = x->r->pending_count; comp == HB_NONE && i-- > 0;)
        if (x->r->pending[i].arg == arg)
            return x->r->pending[i].body && take_root_of_body(x, x->r->pending[i].text);
    if (comp == HB_NONE)
        return false;
    *x->out = x->m->insts[x->m->comps[comp].root].shape;
    return true;
}

/* ---- attributes ---- */

static uint32_t get_numbers(const struct infer *x, const char *key, int64_t *out, uint32_t max)
{
    return hb_hlo_numbers(hb_hlo_attr_of(x->m, x->inst, key), out, max);
}

/* The numbers of a part of window={size=2x2 stride=1x1}; count 0: it is not there. */
static uint32_t get_window(const struct infer *x, const char *key, int64_t *out, uint32_t max)
{
    struct hb_hlo_span window = hb_hlo_attr_of(x->m, x->inst, "window");
    const char *at = window.at ? hb_hlo_span_find(window, key) : NULL;
    if (!at)
        return 0;
    at += strlen(key);
    const char *end = at;
    while (end < window.at + window.len && *end != ' ' && *end != '}')
        end++;
    return hb_hlo_numbers((struct hb_hlo_span){at, (size_t)(end - at)}, out, max);
}

static bool has(const int64_t *list, uint32_t count, int64_t one)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == one)
            return true;
    return false;
}

static bool add_dim(struct array *a, int64_t dim)
{
    if (a->rank == MAX_RANK)
        return false;
    a->dim[a->rank++] = dim;
    return true;
}

/* ---- by operation ---- */

/* Of what is made of elements of a type. */
static enum hb_hlo_type type_made(enum hb_hlo_op op, enum hb_hlo_type of)
{
    bool wide = of == HB_HLO_C128 || of == HB_HLO_F64;
    if (op == HB_HLO_OP_COMPARE || op == HB_HLO_OP_IS_FINITE)
        return HB_HLO_PRED;
    if (op == HB_HLO_OP_COMPLEX)
        return wide ? HB_HLO_C128 : HB_HLO_C64;
    if ((op == HB_HLO_OP_REAL || op == HB_HLO_OP_IMAG || op == HB_HLO_OP_ABS) &&
        (of == HB_HLO_C64 || of == HB_HLO_C128))
        return wide ? HB_HLO_F64 : HB_HLO_F32;
    return of;
}

static bool infer_elementwise(const struct infer *x)
{
    struct array a, b;
    enum hb_hlo_op op = (enum hb_hlo_op)x->inst->op;
    uint32_t first = op == HB_HLO_OP_SELECT || op == HB_HLO_OP_CLAMP ? 1 : 0;
    if (!get_array(x, first, &a))
        return false;
    bool changed = false;
    if (x->inst->operand_count == 2 && get_array(x, 1, &b)) {
        if (b.rank != a.rank)
            return false;
        for (int d = 0; d < a.rank; d++) /* a dimension of one is stretched */
            if (a.dim[d] == 1 && b.dim[d] != 1) {
                a.dim[d] = b.dim[d];
                changed = true;
            }
    }
    enum hb_hlo_type type = type_made(op, a.type);
    if (type == a.type && !changed)
        return take_operand(x, first);
    a.type = type;
    return make_array(x, &a);
}

static bool infer_map(const struct infer *x)
{
    struct array a;
    if (!take_root(x) || !get_array(x, 0, &a))
        return false;
    a.type = x->m->shapes.items[*x->out].type;
    return a.type != HB_HLO_TUPLE && make_array(x, &a);
}

static bool infer_transpose(const struct infer *x)
{
    struct array a, b = {0};
    int64_t dims[MAX_RANK];
    if (!get_array(x, 0, &a) || get_numbers(x, "dimensions", dims, MAX_RANK) != (uint32_t)a.rank)
        return false;
    b.type = a.type;
    for (int d = 0; d < a.rank; d++)
        if (dims[d] < 0 || dims[d] >= a.rank || !add_dim(&b, a.dim[dims[d]]))
            return false;
    return make_array(x, &b);
}

static bool infer_broadcast(const struct infer *x)
{
    struct array a, b = {0};
    int64_t sizes[MAX_RANK];
    uint32_t count = get_numbers(x, "dimensions", sizes, MAX_RANK);
    if (!get_array(x, 0, &a))
        return false;
    b.type = a.type;
    for (uint32_t i = 0; i < count; i++)
        if (sizes[i] < 0 || !add_dim(&b, sizes[i]))
            return false;
    for (int d = 0; d < a.rank; d++)
        if (!add_dim(&b, a.dim[d]))
            return false;
    return make_array(x, &b);
}

static bool infer_concatenate(const struct infer *x)
{
    struct array a, b;
    int64_t dim;
    if (!get_array(x, 0, &a) || get_numbers(x, "dimensions", &dim, 1) != 1 || dim < 0 ||
        dim >= a.rank)
        return false;
    for (uint32_t i = 1; i < x->inst->operand_count; i++)
        if (!get_array(x, i, &b) || b.rank != a.rank ||
            !hb_add_i64(a.dim[dim], b.dim[dim], &a.dim[dim]))
            return false;
    return make_array(x, &a);
}

/* Operands' dimensions without those of the attribute; a reduction of several gives several. */
static bool infer_reduce(const struct infer *x)
{
    struct array a, b = {0};
    int64_t dims[MAX_RANK];
    uint32_t count = get_numbers(x, "dimensions", dims, MAX_RANK);
    if (!get_array(x, 0, &a))
        return false;
    b.type = a.type;
    for (int d = 0; d < a.rank; d++)
        if (!has(dims, count, d))
            add_dim(&b, a.dim[d]);
    return make_arrays(x, &b, x->inst->operand_count / 2);
}

static bool infer_dot(const struct infer *x)
{
    struct array a, b, c = {0};
    int64_t out[4][MAX_RANK];
    uint32_t count[4];
    static const char *const keys[] = {"lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims",
                                       "rhs_contracting_dims"};
    if (!get_array(x, 0, &a) || !get_array(x, 1, &b))
        return false;
    for (int i = 0; i < 4; i++)
        count[i] = get_numbers(x, keys[i], out[i], MAX_RANK);
    c.type = a.type;
    for (uint32_t i = 0; i < count[0]; i++)
        if (out[0][i] < 0 || out[0][i] >= a.rank || !add_dim(&c, a.dim[out[0][i]]))
            return false;
    for (int d = 0; d < a.rank; d++)
        if (!has(out[0], count[0], d) && !has(out[2], count[2], d) && !add_dim(&c, a.dim[d]))
            return false;
    for (int d = 0; d < b.rank; d++)
        if (!has(out[1], count[1], d) && !has(out[3], count[3], d) && !add_dim(&c, b.dim[d]))
            return false;
    return make_array(x, &c);
}

/* `0_1x2_3_1`: low, high and between, by dimension. */
static bool infer_pad(const struct infer *x)
{
    struct array a;
    struct hb_hlo_span padding = hb_hlo_attr_of(x->m, x->inst, "padding");
    if (!get_array(x, 0, &a) || !padding.at)
        return false;
    const char *at = padding.at, *end = at + padding.len;
    for (int d = 0; d < a.rank; d++) {
        const char *next = memchr(at, 'x', (size_t)(end - at));
        int64_t p[3] = {0}, more = 0;
        next = next ? next : end;
        if (hb_hlo_numbers((struct hb_hlo_span){at, (size_t)(next - at)}, p, 3) < 2)
            return false;
        if (a.dim[d] > 1 && !hb_mul_i64(a.dim[d] - 1, p[2], &more))
            return false;
        if (!hb_add_i64(a.dim[d], more, &a.dim[d]) || !hb_add_i64(a.dim[d], p[0], &a.dim[d]) ||
            !hb_add_i64(a.dim[d], p[1], &a.dim[d]) || a.dim[d] < 0)
            return false;
        at = next < end ? next + 1 : end;
    }
    return make_array(x, &a);
}

struct window {
    int64_t size[MAX_RANK], stride[MAX_RANK], pad[2 * MAX_RANK];
    int64_t spread_in[MAX_RANK], spread_window[MAX_RANK];
    uint32_t rank;
};

static bool get_whole_window(const struct infer *x, struct window *w)
{
    static const char *const keys[] = {" stride=", " lhs_dilate=", " rhs_dilate="};
    int64_t *const parts[] = {w->stride, w->spread_in, w->spread_window};
    memset(w, 0, sizeof *w);
    w->rank = get_window(x, "size=", w->size, MAX_RANK);
    for (int i = 0; i < 3; i++) {
        uint32_t count = get_window(x, keys[i], parts[i], MAX_RANK);
        if (count && count != w->rank)
            return false;
        for (uint32_t d = count; d < w->rank; d++)
            parts[i][d] = 1;
        for (uint32_t d = 0; d < w->rank; d++)
            if (parts[i][d] < 1)
                return false;
    }
    uint32_t pads = get_window(x, " pad=", w->pad, 2 * MAX_RANK);
    return pads == 0 || pads == 2 * w->rank;
}

/* How far size elements reach with gaps between. */
static bool spread(int64_t size, int64_t by, int64_t *out)
{
    *out = 0;
    return size <= 0 || (hb_mul_i64(size - 1, by, out) && hb_add_i64(*out, 1, out));
}

static bool slide(const struct window *w, uint32_t d, int64_t in, int64_t *out)
{
    int64_t room, reach;
    if (!spread(in, w->spread_in[d], &room) || !spread(w->size[d], w->spread_window[d], &reach) ||
        !hb_add_i64(room, w->pad[2 * d], &room) || !hb_add_i64(room, w->pad[2 * d + 1], &room))
        return false;
    *out = room < reach || reach <= 0 ? 0 : (room - reach) / w->stride[d] + 1;
    return true;
}

static bool infer_reduce_window(const struct infer *x)
{
    struct array a;
    struct window w;
    if (!get_array(x, 0, &a) || !get_whole_window(x, &w) || w.rank != (uint32_t)a.rank)
        return false;
    for (uint32_t d = 0; d < w.rank; d++)
        if (!slide(&w, d, a.dim[d], &a.dim[d]))
            return false;
    return make_arrays(x, &a, x->inst->operand_count / 2);
}

/* dim_labels=b01f_01io->b01f: which dimension is which, of input, kernel and output. */
static bool infer_convolution(const struct infer *x)
{
    struct array in, kernel, out = {0};
    struct window w;
    struct hb_hlo_span labels = hb_hlo_attr_of(x->m, x->inst, "dim_labels");
    const char *arrow = labels.at ? hb_hlo_span_find(labels, "->") : NULL;
    const char *mid = arrow ? memchr(labels.at, '_', (size_t)(arrow - labels.at)) : NULL;
    int64_t groups = 1;
    get_numbers(x, "batch_group_count", &groups, 1);
    if (!mid || !get_array(x, 0, &in) || !get_array(x, 1, &kernel) || !get_whole_window(x, &w) ||
        mid - labels.at != in.rank || arrow - mid - 1 != kernel.rank || groups < 1)
        return false;
    out.type = in.type;
    for (const char *c = arrow + 2; c < labels.at + labels.len; c++) {
        const char *from = memchr(labels.at, *c, (size_t)(mid - labels.at));
        const char *o = memchr(mid + 1, 'o', (size_t)(arrow - mid - 1));
        int64_t dim = *c == 'f' && o ? kernel.dim[o - mid - 1] : 0;
        if (*c == 'b' && from)
            dim = in.dim[from - labels.at] / groups;
        else if (*c >= '0' && *c <= '9' &&
                 (!from || *c - '0' >= (int)w.rank ||
                  !slide(&w, (uint32_t)(*c - '0'), in.dim[from - labels.at], &dim)))
            return false;
        if (!add_dim(&out, dim))
            return false;
    }
    return out.rank == in.rank && make_array(x, &out);
}

/* Offsets and batches: dimensions of the slices go where offset_dims says, the rest are of the
 * indices, without the one that holds index vectors. */
static bool infer_gather(const struct infer *x)
{
    struct array in, index, out = {0};
    int64_t offsets[MAX_RANK], gone[2 * MAX_RANK], sizes[MAX_RANK], vector;
    uint32_t offset_count = get_numbers(x, "offset_dims", offsets, MAX_RANK);
    uint32_t gone_count = get_numbers(x, "collapsed_slice_dims", gone, MAX_RANK);
    gone_count += get_numbers(x, "operand_batching_dims", gone + gone_count, MAX_RANK);
    if (!get_array(x, 0, &in) || !get_array(x, 1, &index) ||
        get_numbers(x, "slice_sizes", sizes, MAX_RANK) != (uint32_t)in.rank ||
        get_numbers(x, "index_vector_dim", &vector, 1) != 1)
        return false;
    int rank = (int)offset_count + index.rank - (vector < index.rank), batch = 0, slice = 0;
    out.type = in.type;
    for (int d = 0; d < rank; d++) {
        bool offset = has(offsets, offset_count, d);
        while (offset && slice < in.rank && has(gone, gone_count, slice))
            slice++;
        batch += !offset && batch == vector;
        if ((offset ? slice >= in.rank : batch >= index.rank) ||
            !add_dim(&out, offset ? sizes[slice++] : index.dim[batch++]))
            return false;
    }
    return make_array(x, &out);
}

static bool infer_several(const struct infer *x)
{
    static const uint32_t norm[] = {0, 1, 1};
    uint32_t count = x->inst->operand_count;
    switch ((int)x->inst->op) {
    case HB_HLO_OP_TUPLE:
        return make_tuple(x, NULL, count);
    case HB_HLO_OP_SORT:
        return count == 1 ? take_operand(x, 0) : make_tuple(x, NULL, count);
    case HB_HLO_OP_SCATTER:
        return count == 3 ? take_operand(x, 0) : make_tuple(x, NULL, (count - 1) / 2);
    case HB_HLO_OP_BATCH_NORM_TRAINING:
    case HB_HLO_OP_BATCH_NORM_GRAD:
        return make_tuple(x, norm, 3);
    default:
        return false;
    }
}

static bool infer_element(const struct infer *x)
{
    if (!x->inst->operand_count)
        return false;
    uint32_t from = operand_shape(x, 0);
    if (x->inst->number >= x->m->shapes.items[from].child_count)
        return false;
    *x->out = hb_hlo_shape_child(&x->m->shapes, from, x->inst->number);
    return true;
}

static bool make_fixed(const struct infer *x, enum hb_hlo_type type)
{
    return make_array(x, &(struct array){.type = type});
}

static bool infer(const struct infer *x)
{
    static const struct {
        enum hb_hlo_op op;
        uint32_t operand;
    } same[] = {
        {HB_HLO_OP_OPT_BARRIER, 0},
        {HB_HLO_OP_WHILE, 0},
        {HB_HLO_OP_ADD_DEPENDENCY, 0},
        {HB_HLO_OP_DOMAIN, 0},
        {HB_HLO_OP_REVERSE, 0},
        {HB_HLO_OP_CHOLESKY, 0},
        {HB_HLO_OP_TRIANGULAR_SOLVE, 1},
        {HB_HLO_OP_SET_DIMENSION_SIZE, 0},
        {HB_HLO_OP_SELECT_AND_SCATTER, 0},
        {HB_HLO_OP_BATCH_NORM_INFERENCE, 0},
        {HB_HLO_OP_COPY, 0},
    };
    static const struct {
        enum hb_hlo_op op;
        bool (*rule)(const struct infer *x);
    } rules[] = {
        {HB_HLO_OP_TRANSPOSE, infer_transpose},
        {HB_HLO_OP_BROADCAST, infer_broadcast},
        {HB_HLO_OP_CONCATENATE, infer_concatenate},
        {HB_HLO_OP_REDUCE, infer_reduce},
        {HB_HLO_OP_DOT, infer_dot},
        {HB_HLO_OP_PAD, infer_pad},
        {HB_HLO_OP_REDUCE_WINDOW, infer_reduce_window},
        {HB_HLO_OP_CONVOLUTION, infer_convolution},
        {HB_HLO_OP_GATHER, infer_gather},
        {HB_HLO_OP_MAP, infer_map},
        {HB_HLO_OP_CALL, take_root},
        {HB_HLO_OP_CONDITIONAL, take_root},
        {HB_HLO_OP_GET_TUPLE_ELEMENT, infer_element},
    };
    enum hb_hlo_op op = (enum hb_hlo_op)x->inst->op;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].op == op)
            return take_operand(x, same[i].operand);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == op)
            return rules[i].rule(x);
    if (op == HB_HLO_OP_AFTER_ALL)
        return make_fixed(x, HB_HLO_TOKEN);
    if (op == HB_HLO_OP_PARTITION_ID || op == HB_HLO_OP_REPLICA_ID)
        return make_fixed(x, HB_HLO_U32);
    if (op == HB_HLO_OP_GET_DIMENSION_SIZE)
        return make_fixed(x, HB_HLO_S32);
    bool plain = op != HB_HLO_OP_CONVERT && op != HB_HLO_OP_RNG && op != HB_HLO_OP_BITCAST_CONVERT;
    return plain && hb_hlo_op_has(op, HB_HLO_ELEMENTWISE) ? infer_elementwise(x) : infer_several(x);
}

bool hb_hlo_infer(struct hb_hlo_reader *r, const struct hb_hlo_inst *inst, const char *at,
                  uint32_t *out_shape)
{
    struct infer x = {.r = r, .m = r->m, .inst = inst};
    x.out = out_shape;
    if (!infer(&x))
        return hb_hlo_fail(r, at,
                           "the result's shape is left out, and does not follow from the "
                           "operands here; it is wanted, as in f32[8,128]");
    r->inferred_bytes += r->m->shapes.items[*out_shape].text.len;
    if (r->inferred_bytes > MAX_TEXT_BYTES)
        return hb_hlo_fail(r, at, "the shapes left out so far take more than 64 MiB as text");
    if (r->m->shapes.items[*out_shape].huge)
        return hb_hlo_fail(r, at, "this shape takes 2^60 bytes or more, which no device has");
    return true;
}
