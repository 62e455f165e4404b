/* Which of the optimizer's states are on the device when: see copies.h. XLA:TPU's latency-hiding
 * scheduler goes through the step from its end, keeps five copies between host and device on their
 * way at a time, and puts a long product or loop over each five. What is before that follows from
 * the sequence that the memory scheduler chose (sequence.h): a list begins with what has no
 * operands, all copies from the host; depth-first and post-order have each leaf's beside its
 * update. Read in the schedules of the records named below. */
#include "sim/ir/copies.h"

#include <limits.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/ir/head.h"
#include "sim/ir/sequence.h"

bool hb_copies_queued(const struct hb_lower *lo)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    return lo->habits->rings && o->offload == HB_PLACE_PINNED_HOST && o->name != HB_OPT_MUON;
}

bool hb_copies_first(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    bool tensor = hb_ways(lo, HB_AX_TENSOR) > 1;
    if (hb_sequence_known(lo))
        return hb_sequence_find(lo) == HB_SEQUENCE_LIST;
    if (s->batch.accumulate > 1)
        return false;
    if (s->model.blocks[0].moe.experts > 0)
        return !s->optimizer.clip;
    if (hb_alone(lo))
        return true;
    /* 1B over fsdp 4 and tensor 2, tied, of 2048 tokens: 5760 5258 6221, over tensor 8 in
     * chunks 10981 10367 10438; rnd/054 in chunks not. */
    bool ring = lo->fsdp_mode == HB_WEIGHT_RING;
    if (tensor && s->model.tied_embeddings)
        return true;
    if (ring || lo->gather_form != HB_GATHER_PLAIN)
        return false;
    /* 1B over tensor 8: 11378 12003 and depth-first 10907, with clip 11092 12003 11911. */
    if (tensor)
        return s->loss.chunks == 1 && hb_fsdp_ways(lo, false) == 1;
    return true;
}

/* Over the layers' backward pass four; three more over the head's product before it where a leaf
 * has three (1B over 8 of bf16 with a master copy: twelve; 8B,f16t4,opthost,master: nine). Before
 * an accumulation loop as many as fly at a time, of the largest (accum/1B,dp8,a4 with opt_host: six
 * of f32[16,8192,2048]; 70B, v5p, data 8 and fsdp 32, four microbatches: six of
 * f32[80,28672,256]). */
uint32_t hb_copies_early(const struct hb_lower *lo)
{
    enum { LEAVES = 4, MANY_STATES = 3 };
    const struct hb_spec *s = lo->spec;
    bool many = s->optimizer.moment_count + s->precision.master >= MANY_STATES;
    if (many)
        return HB_COPIES_AT_ONCE + HB_COPIES_OVER_LOSS;
    return s->batch.accumulate > 1 ? HB_COPIES_AT_ONCE : LEAVES;
}

/* A leaf's part in the order of updates. */
enum part { PART_TABLE, PART_HEAD, PART_GATE, PART_MLP, PART_OUT, PART_QUERIES, PART_KEYS, PARTS };

static enum part find_part(const struct hb_lower *lo, uint32_t i)
{
    static const struct {
        const char *name;
        enum part part;
    } parts[] = {{"wv", PART_KEYS},     {"wk", PART_KEYS},     {"wq", PART_QUERIES},
                 {"w_gate", PART_GATE}, {"e_gate", PART_GATE}, {"e_up", PART_MLP},
                 {"e_down", PART_MLP}};
    const struct hb_leaf *l = &lo->leaves[i];
    const char *name = strrchr(l->name, '.');
    if (i == lo->embed || i == lo->head)
        return i == lo->embed ? PART_TABLE : PART_HEAD;
    if (!l->matrix || !name)
        return PARTS;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        if (hb_str_same(name + 1, parts[k].name))
            return parts[k].part;
    return l->held ? PART_MLP : PART_OUT;
}

/* In a list small leaves first; else those whose gradients are there first: the table's, or the
 * head's where all wait for a norm. */
static const enum part *find_parts(const struct hb_lower *lo)
{
    static const enum part clip[] = {PART_HEAD, PART_GATE, PART_KEYS, PART_QUERIES,
                                     PART_OUT,  PART_MLP,  PART_TABLE};
    static const enum part plain[] = {PART_TABLE, PART_MLP,     PART_GATE, PART_HEAD,
                                      PART_OUT,   PART_QUERIES, PART_KEYS};
    static const enum part largest[] = {PART_MLP,     PART_GATE, PART_HEAD, PART_OUT,
                                        PART_QUERIES, PART_KEYS, PART_TABLE};
    if (lo->spec->optimizer.clip)
        return clip;
    return lo->spec->batch.accumulate > 1 ? largest : plain;
}

/* An order that grows: a weight's leaves of all runs of layers stand together. */
struct growing {
    const struct hb_lower *lo;
    uint32_t *order;
    bool *listed;
    uint32_t count;
};

static void list_weight(struct growing *g, uint32_t leaf)
{
    const struct hb_leaf *leaves = g->lo->leaves;
    for (uint32_t i = 0; i < g->lo->leaf_count; i++) {
        if (!hb_leaf_is_same(&leaves[i], &leaves[leaf]))
            continue;
        g->listed[i] = true;
        g->order[g->count++] = i;
    }
}

static void list_part(struct growing *g, enum part part)
{
    for (uint32_t i = g->lo->leaf_count; i-- > 0;)
        if (find_part(g->lo, i) == part && !g->listed[i])
            list_weight(g, i);
}

static void list_smallest(struct growing *g)
{
    uint32_t least = HB_NONE;
    for (uint32_t i = 0; i < g->lo->leaf_count; i++)
        if (!g->listed[i] &&
            (least == HB_NONE || g->lo->leaves[i].all_bytes < g->lo->leaves[least].all_bytes))
            least = i;
    list_weight(g, least);
}

uint32_t *hb_copies_order(struct hb_lower *lo)
{
    struct growing g = {.lo = lo,
                        .order = hb_arena_alloc(lo->arena, lo->leaf_count, sizeof(uint32_t)),
                        .listed = hb_arena_alloc(lo->arena, lo->leaf_count, sizeof(bool))};
    const enum part *parts = find_parts(lo);
    bool first = hb_copies_first(lo);
    while (first && g.count < lo->leaf_count)
        list_smallest(&g);
    for (int k = 0; k <= PARTS; k++)
        list_part(&g, k < PARTS ? parts[k] : PARTS);
    return g.order;
}

uint32_t hb_copies_end(const struct hb_lower *lo, const uint32_t *order, uint32_t i)
{
    uint32_t end = i + 1;
    while (end < lo->leaf_count && hb_leaf_is_same(&lo->leaves[order[i]], &lo->leaves[order[end]]))
        end++;
    return end;
}
