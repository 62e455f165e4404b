/* See halo.h. The partitioner's way is that of PartitionedHlo::PadWithValue and
 * ReshardAsWindowedInput (xla/service/spmd/spmd_partitioner.cc): for each sharded dimension slabs
 * of the neighbours are fetched where shards move by more than they grow, what was fetched is
 * joined, padded, cut at the device's place, and masked. A padded dimension that its axis does not
 * divide any more is gathered at the end, since results are divided evenly (Shardy's
 * updateNonDivisibleInputOutputShardings). Seen in after_spmd dumps of CPU and H100. */
#include "sim/hlo/halo.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

enum {
    SOURCES = 2 + 2 * HB_HLO_HALO_RANK,
    ON_CHIP_BYTES = 48 << 20 /* TPU: what is larger is not put into the 128 MiB of VMEM */
};

struct array {
    int id;
    int64_t dims[HB_HLO_HALO_RANK];
};

struct writer {
    struct hb_str text;
    const struct hb_hlo_halo *halo;
    const struct hb_hlo_dialect *dialect;
    enum hb_hlo_type type; /* of the parts: f64 is two f32 on TPU */
    int count;             /* instructions so far */
    /* What the array is computed of, and what it would look like: not stored yet. */
    int sources[SOURCES];
    int source_count;
    struct array now;
};

/* One instruction. */
struct line {
    const char *op;
    const char *attrs; /* null: none */
    enum hb_hlo_type type;
    bool stays; /* it may lie on chip */
    int operands[SOURCES];
    int operand_count;
};

static bool is_tpu(const struct writer *w)
{
    return w->dialect->backend == HB_HLO_TPU;
}

/* ---- text ---- */

static int64_t count_bytes(const struct writer *w, enum hb_hlo_type type, const int64_t *dims)
{
    int64_t bytes = hb_hlo_type_bits(type);
    for (int d = 0; d < w->halo->rank; d++)
        bytes = hb_mul_sat(bytes, dims[d]);
    return bytes / 8;
}

static void add_shape(struct writer *w, const struct line *line, const int64_t *dims)
{
    struct hb_str *s = &w->text;
    hb_str_addf(s, "%s[", hb_hlo_type_name(line->type));
    for (int d = 0; d < w->halo->rank; d++)
        hb_str_addf(s, "%s%lld", d ? "," : "", (long long)dims[d]);
    hb_str_add(s, "]{");
    for (int d = w->halo->rank - 1; d >= 0; d--)
        hb_str_addf(s, "%d%s", d, d ? "," : "");
    if (is_tpu(w)) {
        hb_str_add(s, hb_hlo_type_bits(line->type) == 16 ? ":T(8,128)(2,1)" : ":T(8,128)");
        if (line->stays && count_bytes(w, line->type, dims) <= ON_CHIP_BYTES)
            hb_str_add(s, "S(1)");
    }
    hb_str_add(s, "}");
}

static struct array add_line(struct writer *w, const struct line *line, const int64_t *dims)
{
    struct array made = {.id = ++w->count};
    memcpy(made.dims, dims, sizeof made.dims);
    hb_str_addf(&w->text, "  %%v%d = ", made.id);
    add_shape(w, line, dims);
    hb_str_addf(&w->text, " %s(", line->op);
    for (int i = 0; i < line->operand_count; i++)
        hb_str_addf(&w->text, "%s%%v%d", i ? ", " : "", line->operands[i]);
    hb_str_addf(&w->text, ")%s%s\n", line->attrs ? ", " : "", line->attrs ? line->attrs : "");
    return made;
}

static struct array add_unary(struct writer *w, const char *op, struct array from,
                              const int64_t *dims, const char *attrs)
{
    struct line line = {op, attrs, w->type, true, {from.id}, 1};
    return add_line(w, &line, dims);
}

/* A small number that depends on the device: dynamic-slice of a table. */
static int add_place(struct writer *w)
{
    int id = w->count + 1;
    w->count += 4;
    hb_str_addf(&w->text,
                "  %%v%d = s32[] constant(0)\n  %%v%d = u32[] partition-id()\n"
                "  %%v%d = s32[1]{0} dynamic-slice(%%v%d, %%v%d), dynamic_slice_sizes={1}\n"
                "  %%v%d = s32[] reshape(%%v%d)\n",
                id, id + 1, id + 2, id, id + 1, id + 3, id + 2);
    return id + 3;
}

static int add_number(struct writer *w, enum hb_hlo_type type)
{
    hb_str_addf(&w->text, "  %%v%d = %s[] constant(0)\n", ++w->count, hb_hlo_type_name(type));
    return w->count;
}

/* ---- what is not stored yet ---- */

static void start_from(struct writer *w, struct array from)
{
    w->sources[0] = from.id;
    w->source_count = 1;
    w->now = from;
}

/* A piece of the array, or all of it, computed of its sources. */
static struct array add_computed(struct writer *w, const int64_t *dims, bool stays)
{
    struct line line = {"custom-call", "custom_call_target=\"fused\"", w->type, stays, {0}, 0};
    memcpy(line.operands, w->sources, sizeof line.operands);
    line.operand_count = w->source_count;
    return add_line(w, &line, dims);
}

static bool is_stored(const struct writer *w)
{
    return w->source_count == 1 && w->sources[0] == w->now.id;
}

static void store(struct writer *w, bool stays)
{
    if (!is_stored(w))
        start_from(w, add_computed(w, w->now.dims, stays));
}

/* A slab of the neighbour; its send buffer lives until it is there. */
static struct array fetch(struct writer *w, int dim, int64_t width)
{
    int64_t dims[HB_HLO_HALO_RANK];
    memcpy(dims, w->now.dims, sizeof dims);
    dims[dim] = width;
    return add_computed(w, dims, true);
}

/* Slabs of both sides, which become sources: those below first, those above last. Sent in the
 * order in which schedules are seen to send them. */
static void fetch_slabs(struct writer *w, int dim, int64_t low, int64_t high)
{
    struct array sent_high = {0}, sent_low = {0};
    if (high > 0)
        sent_high = fetch(w, dim, high);
    if (low > 0)
        sent_low = fetch(w, dim, low);
    if (high > 0)
        w->sources[w->source_count++] =
            add_unary(w, "collective-permute", sent_high, sent_high.dims, NULL).id;
    if (low > 0) {
        memmove(w->sources + 1, w->sources, (size_t)w->source_count++ * sizeof *w->sources);
        w->sources[0] = add_unary(w, "collective-permute", sent_low, sent_low.dims, NULL).id;
    }
    w->now.id = 0;
}

/* ---- the partitioner's way ---- */

static int64_t grown(const struct hb_hlo_halo *h, int dim)
{
    return hb_div_up(h->dims[dim] + h->low[dim] + h->high[dim], h->parts[dim]);
}

static bool is_padded(const struct hb_hlo_halo *h, int dim)
{
    return h->low[dim] > 0 || h->high[dim] > 0;
}

/* How far shards reach into their neighbours: shard i begins at i * grown, its numbers lie at
 * low + i * size. */
static void find_reach(const struct writer *w, int dim, int64_t *out_left, int64_t *out_right)
{
    int64_t growth = grown(w->halo, dim) - w->now.dims[dim];
    int64_t left = w->halo->low[dim] - growth;
    int64_t right = (w->halo->parts[dim] - 1) * growth - w->halo->low[dim];
    *out_left = left > 0 ? left : 0;
    *out_right = right > 0 ? right : 0;
}

static void pad_fused(struct writer *w, int dim)
{
    int64_t left, right;
    find_reach(w, dim, &left, &right);
    if (left || right)
        fetch_slabs(w, dim, left, right);
    w->now.dims[dim] = grown(w->halo, dim);
    w->now.id = 0;
    if ((left || right) && w->dialect->backend != HB_HLO_GPU)
        store(w, true);
}

/* A mask of where the array is: iota + place, compared with its bounds. */
static int add_mask(struct writer *w, int dim, int place)
{
    const int64_t *dims = w->now.dims;
    int mask = 0;
    struct line iota = {
        "iota", dim ? "iota_dimension=1" : "iota_dimension=0", HB_HLO_S32, true, {0}, 0};
    struct line spread = {"broadcast", "dimensions={}", HB_HLO_S32, true, {place}, 1};
    int at = add_line(w, &iota, dims).id, by = add_line(w, &spread, dims).id;
    int sum = add_line(w, &(struct line){"add", NULL, HB_HLO_S32, true, {at, by}, 2}, dims).id;
    for (int side = 0; side < 2; side++) {
        if (!(side ? w->halo->high[dim] : w->halo->low[dim]))
            continue;
        spread.operands[0] = add_number(w, HB_HLO_S32);
        int bound = add_line(w, &spread, dims).id;
        struct line compare = {
            "compare", side ? "direction=LT" : "direction=GE", HB_HLO_PRED, true, {sum, bound}, 2};
        int inside = add_line(w, &compare, dims).id;
        if (mask)
            inside =
                add_line(w, &(struct line){"and", NULL, HB_HLO_PRED, true, {mask, inside}, 2}, dims)
                    .id;
        mask = inside;
    }
    return mask;
}

static void pad_kept(struct writer *w, int dim)
{
    int64_t left, right, size = w->now.dims[dim];
    find_reach(w, dim, &left, &right);
    if (left || right) {
        fetch_slabs(w, dim, left, right);
        w->now.dims[dim] += left + right;
        struct line join = {"concatenate", NULL, w->type, true, {0}, 0};
        memcpy(join.operands, w->sources, sizeof join.operands);
        join.operand_count = w->source_count;
        join.attrs = hb_arena_printf(w->text.arena, "dimensions={%d}", dim);
        start_from(w, add_line(w, &join, w->now.dims));
    }
    struct array from = w->now;
    w->now.dims[dim] = grown(w->halo, dim);
    int place = add_place(w), mask = add_mask(w, dim, place), zero = add_number(w, w->type);
    int64_t shift = (w->now.dims[dim] - size) * (w->halo->parts[dim] - 1);
    from.dims[dim] = w->now.dims[dim] + shift;
    struct line pad = {"pad", NULL, w->type, true, {from.id, zero}, 2};
    struct line cut = {"dynamic-slice", NULL, w->type, true, {0, place}, 2};
    struct line zeros = {"broadcast", "dimensions={}", w->type, true, {zero}, 1};
    cut.operands[0] = add_line(w, &pad, from.dims).id;
    int cut_id = add_line(w, &cut, w->now.dims).id, zeros_id = add_line(w, &zeros, w->now.dims).id;
    struct line select = {"select", NULL, w->type, true, {mask, cut_id, zeros_id}, 3};
    start_from(w, add_line(w, &select, w->now.dims));
}

/* What is not divided evenly any more becomes whole. */
static void gather(struct writer *w)
{
    const struct hb_hlo_halo *h = w->halo;
    int64_t whole[HB_HLO_HALO_RANK];
    bool gathered = false;
    memcpy(whole, w->now.dims, sizeof whole);
    for (int d = h->rank - 1; d >= 0; d--) {
        int64_t padded = h->dims[d] + h->low[d] + h->high[d];
        if (padded % h->parts[d] == 0)
            continue;
        store(w, true);
        w->now.dims[d] *= h->parts[d];
        start_from(w, add_unary(w, "all-gather", w->now, w->now.dims,
                                hb_arena_printf(w->text.arena, "dimensions={%d}", d)));
        if (d && !is_tpu(w)) /* it comes with d outermost */
            start_from(w, add_unary(w, "copy", w->now, w->now.dims, NULL));
        whole[d] = padded;
        gathered = true;
    }
    if (gathered)
        start_from(w, add_unary(w, "slice", w->now, whole, NULL));
}

static void pad(struct writer *w, bool fused)
{
    const struct hb_hlo_halo *h = w->halo;
    for (int d = 0; d < h->rank; d++) {
        if (!is_padded(h, d))
            continue;
        if (h->parts[d] > 1 && fused)
            pad_fused(w, d);
        else if (h->parts[d] > 1)
            pad_kept(w, d);
        else
            w->now.dims[d] += h->low[d] + h->high[d];
        w->now.id = is_stored(w) && h->parts[d] > 1 ? w->now.id : 0;
    }
    gather(w);
}

/* ---- by permutes ---- */

static void permute(struct writer *w)
{
    const struct hb_hlo_halo *h = w->halo;
    for (int d = h->rank - 1; d >= 0; d--) {
        if (!is_padded(h, d))
            continue;
        if (h->parts[d] > 1)
            fetch_slabs(w, d, h->low[d], h->high[d]);
        w->now.dims[d] += h->low[d] + h->high[d];
        w->now.id = 0;
        if (w->dialect->backend != HB_HLO_GPU)
            store(w, true);
    }
}

/* ---- all ---- */

/* The whole chain; what it ends in is stored, and returned. */
static struct array run_chain(struct writer *w, enum hb_hlo_halo_way way, struct array from,
                              bool stays)
{
    start_from(w, from);
    if (way == HB_HLO_HALO_PERMUTE)
        permute(w);
    else
        pad(w, way == HB_HLO_HALO_PAD);
    bool on_chip = is_tpu(w) && count_bytes(w, w->type, w->now.dims) <= ON_CHIP_BYTES;
    if (!is_stored(w) || (on_chip && !stays))
        start_from(w, add_computed(w, w->now.dims, stays));
    return w->now;
}

static void write_module(struct writer *w, enum hb_hlo_halo_way way)
{
    const struct hb_hlo_halo *h = w->halo;
    struct array shard = {0};
    for (int d = 0; d < h->rank; d++)
        shard.dims[d] = hb_div_up(h->dims[d], h->parts[d]);
    hb_str_add(&w->text, "HloModule halo, is_scheduled=true\n\nENTRY %main {\n");
    w->type = h->type;
    struct line param = {"parameter", NULL, h->type, false, {0}, 0};
    hb_str_addf(&w->text, "  %%v%d = ", ++w->count);
    add_shape(w, &param, shard.dims);
    hb_str_add(&w->text, " parameter(0)\n");
    shard.id = w->count;
    if (is_tpu(w) && h->type == HB_HLO_F64 &&
        way != HB_HLO_HALO_KEPT) { /* one half's result stays on chip, one does not */
        w->type = HB_HLO_F32;
        struct array low = add_unary(w, "custom-call", shard, shard.dims, NULL);
        low = run_chain(w, way, low, false);
        struct array high = add_unary(w, "custom-call", shard, shard.dims, NULL);
        high = run_chain(w, way, high, true);
        add_line(w, &(struct line){"custom-call", NULL, h->type, false, {low.id, high.id}, 2},
                 high.dims);
    } else {
        run_chain(w, way, shard, false);
    }
    hb_str_add(&w->text, "}\n");
}

static void count_ops(const struct hb_hlo_module *m, struct hb_hlo_halo_ops *out)
{
    *out = (struct hb_hlo_halo_ops){0};
    for (uint32_t i = 0; i < m->inst_count; i++) {
        enum hb_hlo_op op = hb_hlo_op_of(m, i);
        out->broadcasts += op == HB_HLO_OP_BROADCAST;
        out->pads += op == HB_HLO_OP_PAD;
        out->dynamic_slices += op == HB_HLO_OP_DYNAMIC_SLICE;
        out->selects += op == HB_HLO_OP_SELECT;
        out->permutes += op == HB_HLO_OP_COLLECTIVE_PERMUTE;
        out->all_gathers += op == HB_HLO_OP_ALL_GATHER;
    }
}

static bool is_sane(const struct hb_hlo_halo *h)
{
    const int64_t most = (int64_t)1 << 40;
    int64_t bytes = hb_hlo_type_bits(h->type);
    for (int d = 0; d < h->rank; d++) {
        bool small = h->dims[d] > 0 && h->dims[d] < most && h->parts[d] > 0 &&
                     h->parts[d] <= h->dims[d] && h->low[d] >= 0 && h->low[d] < most &&
                     h->high[d] >= 0 && h->high[d] < most;
        if (!small)
            return false;
        bytes = hb_mul_sat(bytes, h->dims[d] + h->low[d] + h->high[d] + h->parts[d]);
    }
    return h->rank > 0 && bytes > 0 && bytes < most * 1024;
}

bool hb_hlo_halo_try(struct hb_arena *scratch, const struct hb_hlo_dialect *dialect,
                     const struct hb_hlo_halo *halo, enum hb_hlo_halo_way way,
                     struct hb_hlo_figures *out_figures, struct hb_hlo_halo_ops *out_ops)
{
    if (!is_sane(halo))
        return false;
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct writer w = {.halo = halo, .dialect = dialect};
    struct hb_diag diag;
    struct hb_hlo_module m;
    struct hb_hlo_program hp;
    struct hb_memory memory;
    hb_str_init(&w.text, scratch);
    hb_diag_init(&diag, scratch);
    write_module(&w, way);
    struct hb_hlo_text text = {.file = "halo", .bytes = w.text.text, .len = w.text.len};
    bool ok = hb_hlo_module_read(scratch, &diag, &text, &m);
    if (ok) {
        m.dialect = dialect;
        ok = hb_hlo_program_make(scratch, &diag, &m, NULL, &hp);
    }
    if (ok) {
        count_ops(&m, out_ops);
        hb_hlo_program_run(scratch, &hp, &hp.program, &memory, out_figures);
    }
    hb_arena_rewind(scratch, mark);
    return ok;
}
