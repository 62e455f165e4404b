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
    return lo->habits->rings && !lo->maxtext && o->offload == HB_PLACE_PINNED_HOST &&
           o->name != HB_OPT_MUON;
}

int64_t hb_copies_bytes(const struct hb_lower *lo)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    int64_t bits = lo->spec->precision.master ? hb_dtype_bits(HB_DT_F32) : 0, sum = 0;
    for (int k = 0; k < o->moment_count; k++)
        bits += hb_dtype_bits(o->moments[k]);
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        uint32_t first = 0; /* of the runs of layers that have this weight */
        while (first < i && !hb_leaf_is_same(&lo->leaves[first], &lo->leaves[i]))
            first++;
        if (first == i)
            sum = hb_add_sat(sum, lo->leaves[i].all_bytes);
    }
    return hb_mul_sat(bits, sum / hb_dtype_bits(HB_DT_F32));
}

/* Where a step is no ring's: a list makes the zeros of all gradients before the loss, post-order
 * has them twice beside the logits (MiB above the arguments, list and post; without states on the
 * host depth-first is less than both, but their copies change its walk. 1B over fsdp 4: 10367 9835,
 * fsdp 2: 14120 15001, data 8: 23120 25864; sequence 2 and fsdp 4 on v5p, 4096 tokens: 7541 7490,
 * on v6e, 1024: 5759 both). */
static bool is_list(const struct hb_lower *lo)
{
    const struct hb_leaf *head = &lo->leaves[lo->head];
    int64_t logits = hb_logit_bytes(lo, 4);
    struct hb_shape whole = hb_leaf_layer_shape(head, HB_DT_F32, true);
    int64_t grad = hb_shape_plain_bytes(&whole);
    if (logits <= grad / 2 && lo->spec->loss.chunks == 1)
        return true;
    return hb_add_sat(lo->stacked_grad_bytes, lo->input_bytes) > hb_add_sat(grad, grad / 2);
}

/* Scores without a kernel, f32 and bf16 of them, that exceed the logits: beside these, which wait,
 * and the zeros of all gradients a list is least (1B, naive, list, depth, post, MiB above the
 * arguments: fsdp 4 and tensor 2 10110 12035 14154, with sp_residual 9721 11554 13858, data 2 and
 * fsdp 4 11842 14658 15754, tensor 8 12996 13734 17922). */
static bool are_scores_larger(const struct hb_lower *lo)
{
    enum { SCORE_BYTES = 6, LOGIT_BYTES = 4 };
    const struct hb_attention *a = &lo->spec->model.blocks[0].attention;
    int64_t heads = hb_div_up(a->heads, hb_ways(lo, HB_AX_TENSOR));
    return a->kernel == HB_KERNEL_NAIVE && a->kind != HB_ATTN_NONE &&
           hb_mul_sat(SCORE_BYTES * heads, lo->spec->batch.seq) > LOGIT_BYTES * lo->local.vocab;
}

/* Between rings, with a head that is gathered: its whole gradient in f32 and the sum, in bf16, come
 * late in a list, which is least unless the layers' gradients exceed them (8B of 1024 tokens over
 * 8, list, depth, post: bf16 with bf16 moments 8622 9124 9861, 8 layers 5671 6828 6173, 32 layers
 * 16763 all, depth-first; 1B 3198 3669 3402). */
static bool is_gathered_head_largest(const struct hb_lower *lo)
{
    enum { GRAD_BYTES = 6 };
    const struct hb_spec *s = lo->spec;
    bool plain = s->loss.chunks == 1 && s->stack.form == HB_FORM_SCAN && !s->model.tied_embeddings;
    if (lo->fsdp_mode != HB_WEIGHT_RING || hb_head_ring(lo) || hb_ways(lo, HB_AX_TENSOR) > 1)
        return false;
    int64_t head = hb_mul_sat(s->model.d_model, lo->local.vocab);
    return plain && lo->stacked_grad_bytes < hb_mul_sat(GRAD_BYTES, head);
}

bool hb_copies_first(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    bool tensor = hb_ways(lo, HB_AX_TENSOR) > 1;
    if (hb_sequence_known(lo))
        return hb_sequence_find(lo) == HB_SEQUENCE_LIST;
    if (s->batch.accumulate > 1 || hb_ways(lo, HB_AX_PIPELINE) > 1)
        return false;
    if (s->model.blocks[0].moe.experts > 0)
        return !s->optimizer.clip;
    if (hb_alone(lo))
        return hb_sequence_hosted_find(lo) == HB_SEQUENCE_LIST;
    /* 1B over fsdp 4 and tensor 2, tied, of 2048 tokens: 5760 5258 6221, over tensor 8 in
     * chunks 10981 10367 10438; rnd/054 in chunks not. */
    bool ring = lo->fsdp_mode == HB_WEIGHT_RING;
    bool chunks = s->loss.chunks > 1 && lo->fsdp_mode != HB_WEIGHT_LOCAL;
    if (tensor && s->model.tied_embeddings && (ring || chunks))
        return true;
    if (is_gathered_head_largest(lo))
        return true;
    if (ring || lo->gather_form != HB_GATHER_PLAIN)
        return false;
    if (are_scores_larger(lo))
        return true;
    /* 1B over tensor 8: 11378 12003 and depth-first 10907, with clip 11092 12003 11911. */
    if (tensor)
        return s->optimizer.clip && s->loss.chunks == 1 && hb_fsdp_ways(lo, false) == 1;
    return is_list(lo);
}

/* Five on one device, over tensor or data alone, in rings of one sequence a device: see find_parts.
 * Elsewhere over the layers' backward pass, not where the head's product, a chunk's or a padded
 * gather's comes after it, which then hides them (1B over 8 with clip and 8 chunks, 8B over 64 with
 * clip: none); three more over the head's product before it, unless the head's own are there then
 * (1B over sequence 2 and fsdp 4: eight, with 4 chunks, too; over fsdp 4, tensor 2 and fsdp 4: two
 * of the table and two of the head), and where a leaf has three (1B over 8 of bf16 with a master
 * copy: twelve; 8B,f16t4,opthost,master: nine). A tied
 * table comes after them (gemma2b,v6e,f8,chunk8,onehot: two of w_down). Before an accumulation loop
 * the table's two or the clipped MLP's four (1B over sequence 2 and fsdp 4, over fsdp 4 and tensor
 * 2; 8B over 64 with clip). */
uint32_t hb_copies_early(const struct hb_lower *lo)
{
    enum { LEAF = 2, LEAVES = 4, MANY_STATES = 3 };
    const struct hb_spec *s = lo->spec;
    bool chunks = s->loss.chunks > 1;
    if (s->batch.accumulate > 1)
        return s->optimizer.clip ? LEAVES : LEAF;
    if (s->optimizer.clip)
        return chunks || lo->gather_form == HB_GATHER_PADDED ? 0 : LEAVES;
    if (s->model.tied_embeddings)
        return LEAF;
    if (lo->fsdp_mode == HB_WEIGHT_LOCAL || hb_sequence_known(lo))
        return HB_COPIES_AT_ONCE;
    bool many = s->optimizer.moment_count + s->precision.master >= MANY_STATES;
    if (chunks || many || (hb_ways(lo, HB_AX_SEQUENCE) > 1 && !hb_head_waits(lo)))
        return HB_COPIES_AT_ONCE + HB_COPIES_OVER_LOSS;
    return LEAVES;
}

/* What follows the layers hides the last copies where the update of an attention weight moves so
 * much: then the head's product, on one device, goes to the end (tinyS/opt_host with four layers,
 * and of d_ff=1408, eight of adamw_bf16 and six, sixteen of lion and of momentum; at once with two
 * and three layers, four of adamw_bf16, adamw_bf16mu, momentum, lion), twice as much depth-first
 * (eight of lion: at once), and with bf16 parameters. */
enum { HIDING_BYTES = 104000000 };

static bool are_hidden_late(const struct hb_lower *lo, int64_t least)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    const struct hb_precision *p = &lo->spec->precision;
    int64_t bits = hb_dtype_bits(HB_DT_F32) + 2 * hb_dtype_bits(p->params), most = 0;
    bits += p->master ? 2 * hb_dtype_bits(HB_DT_F32) : 0;
    for (int k = 0; k < o->moment_count; k++)
        bits += 2 * hb_dtype_bits(o->moments[k]);
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        const struct hb_leaf *l = &lo->leaves[i];
        if (l->matrix && !l->end && !l->held)
            most = hb_larger(most, l->all_bytes);
    }
    int64_t count = most / (hb_dtype_bits(HB_DT_F32) / CHAR_BIT);
    return p->params == lo->compute || hb_mul_sat(bits / CHAR_BIT, count) >= least;
}

bool hb_copies_head_waits(const struct hb_lower *lo)
{
    enum hb_sequence sequence = hb_sequence_hosted_find(lo);
    if (sequence == HB_SEQUENCE_DEPTH && lo->spec->optimizer.moment_count > 1)
        return false;
    bool depth = sequence == HB_SEQUENCE_DEPTH;
    return sequence == HB_SEQUENCE_POST || are_hidden_late(lo, (depth ? 2 : 1) * HIDING_BYTES);
}

bool hb_copies_head_fused(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    return hb_copies_queued(lo) && hb_alone(lo) && !s->optimizer.clip && s->batch.accumulate == 1 &&
           s->loss.chunks == 1 && !s->model.tied_embeddings && s->optimizer.moment_count > 0 &&
           !hb_head_waits(lo);
}

bool hb_copies_head_at_once(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    return hb_copies_queued(lo) && !hb_alone(lo) && !hb_copies_first(lo) && !s->optimizer.clip &&
           s->batch.accumulate == 1 && s->loss.chunks == 1 && !s->model.tied_embeddings &&
           hb_ways(lo, HB_AX_SEQUENCE) == 1 && hb_ways(lo, HB_AX_PIPELINE) == 1;
}

/* Operations of a product for each byte of states from which on it is longer than their way (1B,
 * naive, over fsdp 4 and tensor 2: f32[4,4096,64128], 2900, to the end, f32[8,4096,64128], 5800,
 * not). */
enum { COPY_OPERATIONS = 4000 };

bool hb_copies_outlast_head(const struct hb_lower *lo)
{
    double tokens = (double)lo->local.tokens, d = (double)lo->spec->model.d_model;
    double operations = 2.0 * tokens * d * (double)lo->local.vocab;
    return operations < COPY_OPERATIONS * (double)hb_copies_bytes(lo);
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

static bool is_mlp_largest(const struct hb_lower *lo)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        if (lo->leaves[i].all_bytes > lo->leaves[lo->embed].all_bytes)
            return true;
    return false;
}

/* In a list small leaves first; else those whose gradients are there first: the table's, unless its
 * rows are exchanged over tensor (8B,f16t4,opthost,master), the head's where all wait for a norm;
 * the MLP's where they are larger than the table's and the sequence follows from sizes
 * (tinyS/opt_host of sixteen layers without donation, of 8B over tensor 8 and 8B/seq=8192 with
 * opt_host: w_down's, w_up's and w_gate's through the layers, no table's). */
static const enum part *find_parts(const struct hb_lower *lo)
{
    static const enum part clip[] = {PART_HEAD, PART_GATE, PART_KEYS, PART_QUERIES,
                                     PART_OUT,  PART_MLP,  PART_TABLE};
    static const enum part last[] = {PART_MLP,     PART_GATE, PART_HEAD, PART_OUT,
                                     PART_QUERIES, PART_KEYS, PART_TABLE};
    static const enum part plain[] = {PART_TABLE, PART_MLP,     PART_GATE, PART_HEAD,
                                      PART_OUT,   PART_QUERIES, PART_KEYS};
    static const enum part wide[] = {PART_MLP,     PART_GATE, PART_TABLE, PART_OUT,
                                     PART_QUERIES, PART_KEYS, PART_HEAD};
    if (lo->spec->optimizer.clip)
        return clip;
    bool known = lo->fsdp_mode == HB_WEIGHT_LOCAL || hb_sequence_known(lo);
    if (known && is_mlp_largest(lo))
        return wide;
    bool late = (lo->spec->sharding.residual_over_tensor && hb_ways(lo, HB_AX_TENSOR) > 1) ||
                lo->spec->model.tied_embeddings;
    return late ? last : plain;
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
        if (i != leaf && !hb_leaf_is_same(&leaves[i], &leaves[leaf]))
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
    for (int k = 0; k <= PARTS && g.count < lo->leaf_count; k++)
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
