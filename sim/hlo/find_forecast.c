/* A module before partitioning: what its pads of sharded arrays will become. The shapes are of
 * whole arrays and the shardings stand beside them, so each pad is written out as the partitioner
 * would have it, and as permutes of slabs, for each direction and for all. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/finder.h"
#include "sim/hlo/halo.h"

enum { MAX_STEPS = 256, MAX_KINDS = 64 };

/* Pads of the same kind. */
struct kind {
    struct hb_hlo_halo halo;
    uint32_t inst; /* the first */
    uint32_t count;
};

struct search {
    struct hb_hlo_finder *x;
    struct kind kinds[MAX_KINDS];
    uint32_t kind_count;
    uint32_t *insts;
    uint32_t inst_count, inst_cap;
};

/* ---- what is padded ---- */

static bool keeps_sharding(enum hb_hlo_op op)
{
    return hb_hlo_op_has(op, HB_HLO_ELEMENTWISE) || op == HB_HLO_OP_CUSTOM_CALL ||
           op == HB_HLO_OP_OPT_BARRIER || op == HB_HLO_OP_SLICE || op == HB_HLO_OP_PAD;
}

/* Where the sharding of a node's first operand is written down: there, or further back through
 * operations that leave it as it is; HB_NONE. */
static uint32_t find_sharded(const struct hb_hlo_finder *x, uint32_t node, int64_t *out_parts)
{
    const struct hb_hlo_module *m = x->m;
    uint32_t v = x->f->value_at[x->f->first_slot[hb_hlo_node_operand(x->f, node, 0)]];
    int rank = m->shapes.items[x->f->values[v].shape].rank;
    for (int step = 0; step < MAX_STEPS; step++) {
        uint32_t at = x->f->values[v].node, inst = hb_hlo_node_inst(x->f, at);
        const struct hb_hlo_shape *shape = hb_hlo_shape_of(m, inst);
        if (shape->type == HB_HLO_TUPLE || shape->rank != rank)
            return HB_NONE;
        if (hb_hlo_sharding_parts(m, inst, rank, out_parts))
            return at;
        if (!keeps_sharding(hb_hlo_op_of(m, inst)) || !m->insts[inst].operand_count)
            return HB_NONE;
        v = x->f->value_at[x->f->first_slot[hb_hlo_node_operand(x->f, at, 0)]];
    }
    return HB_NONE;
}

/* `padding=low_high[_interior]x...`; false: none, or what this does not foretell. */
static bool read_padding(const struct hb_hlo_module *m, uint32_t inst, struct hb_hlo_halo *h)
{
    struct hb_hlo_span text = hb_hlo_attr(m, inst, "padding");
    struct hb_hlo_lex lex = hb_hlo_lex_span(text);
    for (int d = 0; d < h->rank; d++) {
        int64_t interior = 0;
        if (!text.at || (d && !hb_hlo_take(&lex, 'x')) || !hb_hlo_take_int(&lex, &h->low[d]) ||
            !hb_hlo_take(&lex, '_') || !hb_hlo_take_int(&lex, &h->high[d]) ||
            (hb_hlo_take(&lex, '_') && !hb_hlo_take_int(&lex, &interior)))
            return false;
        if (interior || h->low[d] < 0 || h->high[d] < 0)
            return false;
    }
    return true;
}

static bool read_pad(const struct hb_hlo_finder *x, uint32_t node, struct hb_hlo_halo *out)
{
    uint32_t inst = hb_hlo_node_inst(x->f, node);
    const struct hb_hlo_shape *shape = hb_hlo_shape_of(x->m, inst);
    bool sharded = false;
    if (hb_hlo_op_of(x->m, inst) != HB_HLO_OP_PAD || !x->m->insts[inst].operand_count ||
        shape->type == HB_HLO_TUPLE || shape->rank < 1 || shape->rank > HB_HLO_HALO_RANK)
        return false;
    uint32_t from = x->m->insts[hb_hlo_operand(x->m, inst, 0)].shape;
    *out = (struct hb_hlo_halo){.type = shape->type, .rank = shape->rank};
    if (x->m->shapes.items[from].rank != shape->rank || !read_padding(x->m, inst, out) ||
        find_sharded(x, node, out->parts) == HB_NONE)
        return false;
    for (int d = 0; d < out->rank; d++) {
        out->dims[d] = hb_hlo_shape_dim(&x->m->shapes, from, d);
        sharded = sharded || (out->parts[d] > 1 && (out->low[d] || out->high[d]));
    }
    return sharded;
}

static void note_pad(struct search *s, uint32_t inst, const struct hb_hlo_halo *halo)
{
    s->insts = hb_grow(s->x->arena, s->insts, s->inst_count, &s->inst_cap, sizeof *s->insts);
    s->insts[s->inst_count++] = inst;
    for (uint32_t k = 0; k < s->kind_count; k++) {
        const struct hb_hlo_halo *h = &s->kinds[k].halo;
        if (h->type == halo->type && h->rank == halo->rank &&
            memcmp(h->dims, halo->dims, sizeof h->dims) == 0 &&
            memcmp(h->parts, halo->parts, sizeof h->parts) == 0 &&
            memcmp(h->low, halo->low, sizeof h->low) == 0 &&
            memcmp(h->high, halo->high, sizeof h->high) == 0) {
            s->kinds[k].count++;
            return;
        }
    }
    if (s->kind_count < MAX_KINDS)
        s->kinds[s->kind_count++] = (struct kind){*halo, inst, 1};
}

/* ---- what it becomes ---- */

static bool try_way(struct hb_hlo_finder *x, const struct hb_hlo_halo *halo, uint32_t dims,
                    enum hb_hlo_halo_way way, struct hb_hlo_way *out)
{
    struct hb_hlo_figures figures;
    struct hb_hlo_halo part = *halo;
    for (int d = 0; d < halo->rank; d++)
        if (!(dims >> d & 1))
            part.low[d] = part.high[d] = 0;
    if (!hb_hlo_halo_try(x->arena, x->m->dialect, &part, way, &figures, &out->ops))
        return false;
    out->temp_bytes = figures.temp_bytes;
    out->output_bytes = figures.output_bytes;
    return true;
}

/* Adds the forecast of one direction; false if it cannot be said. */
static bool foretell(struct search *s, const struct kind *kind, uint32_t dims, const char *name,
                     struct hb_hlo_forecast *out)
{
    const struct hb_hlo_shape *from =
        hb_hlo_shape_of(s->x->m, hb_hlo_operand(s->x->m, kind->inst, 0));
    struct hb_hlo_span padding = hb_hlo_attr(s->x->m, kind->inst, "padding");
    *out = (struct hb_hlo_forecast){
        .direction = name, .shape = from->text, .padding = padding, .pads = kind->count};
    memcpy(out->parts, kind->halo.parts, sizeof out->parts);
    out->rank = kind->halo.rank;
    return try_way(s->x, &kind->halo, dims, HB_HLO_HALO_PAD, &out->fused) &&
           try_way(s->x, &kind->halo, dims, HB_HLO_HALO_KEPT, &out->kept) &&
           try_way(s->x, &kind->halo, dims, HB_HLO_HALO_PERMUTE, &out->permuted);
}

static void foretell_kind(struct search *s, const struct kind *kind, struct hb_hlo_finding *finding,
                          uint32_t *cap)
{
    int padded[HB_HLO_HALO_RANK] = {0}, count = 0;
    for (int d = 0; d < kind->halo.rank; d++)
        if (kind->halo.low[d] || kind->halo.high[d])
            padded[count++] = d;
    uint32_t all = 0;
    for (int i = 0; i < count; i++)
        all |= 1u << padded[i];
    for (int i = count - 1; i >= -1; i--) {
        int from_last = kind->halo.rank - 1 - (i < 0 ? 0 : padded[i]);
        const char *name = from_last == 0   ? "east-west"
                           : from_last == 1 ? "north-south"
                                            : "up-down";
        if (i < 0 && count < 2)
            continue;
        struct hb_hlo_forecast forecast;
        if (!foretell(s, kind, i < 0 ? all : 1u << padded[i], i < 0 ? "both" : name, &forecast))
            return;
        finding->forecasts = hb_grow(s->x->arena, finding->forecasts, finding->forecast_count, cap,
                                     sizeof *finding->forecasts);
        finding->forecasts[finding->forecast_count++] = forecast;
    }
}

/* What one pad takes more than its permutes. */
static int64_t find_excess(const struct hb_hlo_forecast *f)
{
    int64_t pad = hb_add_sat(f->fused.temp_bytes, f->fused.output_bytes);
    int64_t permute = hb_add_sat(f->permuted.temp_bytes, f->permuted.output_bytes);
    return pad > permute ? pad - permute : 0;
}

static const char *advise(const struct hb_hlo_finding *finding)
{
    for (uint32_t i = 0; i < finding->forecast_count; i++)
        if (finding->forecasts[i].fused.ops.all_gathers)
            return "pad to sizes that the mesh axes divide: a result that they do not divide is "
                   "gathered whole on every device; or keep a halo in each shard, exchanged by "
                   "ppermute inside of shard_map";
    return finding->bytes ? "keep a halo in each shard, exchanged by ppermute inside of shard_map"
                          : "nothing, as long as the compiler fuses what it makes of it; where it "
                            "does not, keep a halo in each shard, exchanged by ppermute";
}

void hb_hlo_find_forecast(struct hb_hlo_finder *x)
{
    if (x->m->partitions < 2 || x->m->partitioned || x->m->scheduled)
        return;
    struct search *s = hb_arena_alloc(x->arena, 1, sizeof *s);
    struct hb_hlo_finding finding = {.kind = HB_HLO_FIND_PAD_FORECAST};
    struct hb_hlo_halo halo;
    uint32_t cap = 0;
    s->x = x;
    for (uint32_t node = 0; node < x->f->node_count; node++)
        if (read_pad(x, node, &halo))
            note_pad(s, hb_hlo_node_inst(x->f, node), &halo);
    for (uint32_t k = 0; k < s->kind_count; k++)
        foretell_kind(s, &s->kinds[k], &finding, &cap);
    if (!finding.forecast_count)
        return;
    for (uint32_t i = 0; i < finding.forecast_count; i++) {
        int64_t excess = find_excess(&finding.forecasts[i]);
        int64_t kept = finding.forecasts[i].kept.temp_bytes;
        finding.bytes = excess > finding.bytes ? excess : finding.bytes;
        finding.held_bytes = kept > finding.held_bytes ? kept : finding.held_bytes;
    }
    finding.total_bytes = x->total_bytes;
    finding.what = hb_arena_printf(
        x->arena,
        "a forecast from shapes and shardings: %u pads of sharded arrays (%u kinds) are to be "
        "partitioned; the worst takes %s more on %s than collective permutes of slabs, and %s of "
        "temporaries where nothing fuses",
        s->inst_count, s->kind_count, hb_hlo_finder_size(x, finding.bytes), x->m->dialect->name,
        hb_hlo_finder_size(x, finding.held_bytes));
    finding.advice = advise(&finding);
    hb_hlo_finder_add(x, finding, s->insts, s->inst_count);
}
