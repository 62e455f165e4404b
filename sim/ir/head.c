/* Places of the head's gradient: see head.h. */
#include "sim/ir/head.h"

#include "base/size.h"
#include "sim/ir/copies.h"
#include "sim/ir/layer.h"
#include "sim/ir/order.h"
#include "sim/ir/sequence.h"
#include "sim/ir/stack.h"
#include "sim/ir/weight.h"

/* What is asked again and again. */
static bool over_tensor(const struct hb_lower *lo)
{
    return hb_ways(lo, HB_AX_TENSOR) > 1;
}

static bool is_tied(const struct hb_lower *lo)
{
    return lo->spec->model.tied_embeddings;
}

/* v5p: MaxText's, unless something of it waits for another reason. */
static bool is_loss_at_once(const struct hb_lower *lo)
{
    return lo->chip->own_loss_at_once;
}

/* v5e, whose collectives run beside the products. */
bool hb_head_room_early(const struct hb_lower *lo)
{
    return lo->chip->ring_room_early;
}

bool hb_head_parts_lie(const struct hb_lower *lo)
{
    int64_t lanes = lo->chip->ring_lanes, own = lo->spec->model.d_model / hb_fsdp_ways(lo, false);
    return lanes != 0 && own % lanes == 0;
}

bool hb_head_rooms_at_once(const struct hb_lower *lo)
{
    enum { FEW_DEVICES = 16 };
    return lo->spec->hardware.count > FEW_DEVICES;
}

/* The head's products go round in rings from this many tokens of all devices of the axis on (8
 * ways: 4096 a device yes, 1024 no; 32: 512 yes); of a chunk's tokens where the loss goes in
 * chunks; not beside a pipeline (8B,pp2f8,m4,names: f32[4096,128256]), nor a sequence axis, over
 * which it is summed, too (fsdp 8 to 32 and sequence 2 and 4, 16 of 16). Beside tensor parallelism
 * that does not split the words each device has all of the gradient, and no ring makes it. */
enum { HEAD_RING_TOKENS = 16384 };

int64_t hb_head_own_tokens(const struct hb_lower *lo)
{
    return lo->local.tokens / lo->spec->loss.chunks;
}

int64_t hb_head_tokens(const struct hb_lower *lo)
{
    return hb_mul_sat(hb_fsdp_ways(lo, false), hb_head_own_tokens(lo));
}

bool hb_head_ring(const struct hb_lower *lo)
{
    bool whole = over_tensor(lo) && !lo->spec->sharding.vocab_over_tensor;
    return hb_in_rings(lo) && hb_ways(lo, HB_AX_PIPELINE) == 1 && !whole &&
           !hb_splits_sequence(lo) &&
           hb_head_tokens(lo) >= lo->chip->head_ring_times * HEAD_RING_TOKENS;
}

bool hb_head_split(const struct hb_lower *lo)
{
    return lo->leaves[lo->head].gather_dim >= 0;
}

/* The stages of a pipeline would all make the same gradient: where they divide into as many parts
 * as fsdp, XLA's partitioner gives each the rows of one (8B,pp4f4,m8,iter: f32[1024,128256] and its
 * sum in bf16, then permuted; not two stages of eight parts). */
bool hb_head_grad_staged(const struct hb_lower *lo)
{
    int64_t stages = hb_ways(lo, HB_AX_PIPELINE);
    return hb_head_split(lo) && stages > 1 && stages % hb_fsdp_ways(lo, false) == 0;
}

/* When the head's gradient is made after the layers' backward pass, so that the logits (or their
 * gradient) wait through it, read off 130 schedules: inside an accumulation loop (8B/f16,a4); whole
 * (opt/base) or split over at least 8, when the head is wide against the tokens, not over a
 * sequence axis alone; between gathers over fsdp alone see sequence.c, of XLA:GPU order.c; not with
 * 2 to 7 ways (gate/f5, f7), with a data axis beside (ring/f8dp32), in mixtures. */
enum {
    POSTPONE_WAYS = 8,
    POSTPONE_WIDTH = 12,
    POSTPONE_RING_TOKENS = 4096 /* between rings from 8192 tokens on nothing waits: 28 of 30 rows */
};

/* MaxText's loss has a backward rule of its own: its logits wait for the head's gradient, except
 * between rings, unless the layers keep something on the device (llama3-70b/mu_bf16: the bf16
 * logits to the end; not llama3-8b/base, llama3-70b/remat_save_out_proj). Not in pipelines. */
bool hb_head_own_loss(const struct hb_lower *lo)
{
    return lo->maxtext;
}

bool hb_head_own_rule(const struct hb_lower *lo)
{
    return hb_head_own_loss(lo) && hb_ways(lo, HB_AX_PIPELINE) == 1;
}

static bool keeps_nothing(const struct hb_lower *lo)
{
    const struct hb_remat *r = &lo->spec->model.blocks[0].remat;
    return r->policy == HB_POLICY_FULL;
}

bool hb_head_goes_round(const struct hb_lower *lo)
{
    return hb_head_ring(lo) && !hb_in_short_ring(lo);
}

/* What the layers keep makes no difference where the sequence or the features are split, too
 * (save_out_proj, fsdp64 and context 2; llama3-8b/fsdp4_tp2: bf16 logits to the end); experts
 * between rings do not wait, nor gathers of dense layers over fsdp and data (llama3-8b, v5p, 4 and
 * 4: the gradient at 244 of 497). */
static bool is_own_rule_late(const struct hb_lower *lo)
{
    bool split = hb_ways(lo, HB_AX_DATA) > 1 && !lo->spec->sharding.optimizer_over_data &&
                 !hb_begins_mixed(lo);
    bool twice = over_tensor(lo) || hb_ways(lo, HB_AX_SEQUENCE) > 1;
    return hb_in_rings(lo) ? twice : keeps_nothing(lo) && !split;
}

/* Sparse cores gather what a table's gradient adds up by word, where a device has more rows than
 * words: bf16 rows of 8 to 16 KiB on v5p, on v6e from 36,864 rows; of 4 to 8 KiB on v5p alone, from
 * 34,816. The ring of the head's gradient hides it, so that the logits' gradient waits for the
 * layers, where no update does: all wait for a clipped gradient's norm, and an accumulation loop
 * has none (13B over 8 to 32). Without either it waits where rows are many (7B over 8, 36,864). */
enum { SORTED_MOST = 16 << 10, SORTED_LEAST = 4 << 10, SORTED_MANY = 32769 };

static bool hides_rows(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    int64_t tokens = lo->local.tokens;
    int64_t row = hb_mul_sat(s->model.d_model, hb_dtype_bits(lo->compute)) / 8;
    if (row <= SORTED_LEAST || row >= SORTED_MOST || tokens < lo->chip->sorted_long ||
        tokens <= lo->local.vocab)
        return false;
    return hb_updates_wait(lo) || tokens >= SORTED_MANY;
}

/* Between rings logits wait where a device has one sequence, whose logits lie as a matrix (ring/f8:
 * to the end; not with two sequences, nor beside tensor parallelism, f8t2,b1); MaxText's wait. */
static bool is_ring_early(const struct hb_lower *lo)
{
    return hb_in_rings(lo) && !hb_head_own_loss(lo) && !hides_rows(lo);
}

/* Beside tensor parallelism a ring's gradient of the head comes last where no fused update takes it
 * at once: adafactor's needs its rows' and columns' means (ring/f8t2,opt=adafactor: bf16 logits to
 * the end; not ring/f8t2, nor in an accumulation loop, where it is added to the others). */
static bool is_update_slow(const struct hb_lower *lo)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    return !hb_in_short_ring(lo) && over_tensor(lo) && !hb_accumulates(lo) &&
           o->name == HB_OPT_ADAFACTOR;
}

/* Tied heads that do not wait. Where devices share the batch the gradient is made with the loss,
 * whatever orders it; only its sum with the lookup's follows the layers (granite-8b, v5e, fsdp 256;
 * with tensor parallelism alone after it). MaxText's on v5p and v5e (13 of 13 dumps), but in v5e's
 * rings beside tensor parallelism, and between gathers where it frees less than it makes
 * (gemma3-27b, v5e, one of 2,048). */
static bool is_tied_early(const struct hb_lower *lo)
{
    if (!is_tied(lo))
        return false;
    bool rings = hb_in_rings(lo), round = over_tensor(lo) && !hb_in_short_ring(lo);
    bool beside = hb_head_room_early(lo) && !round;
    if (hb_head_own_loss(lo))
        return (is_loss_at_once(lo) || beside) &&
               (rings || lo->local.tokens >= lo->spec->model.d_model);
    return lo->local.batch_ways > 1;
}

/* By sizes: see above. */
static bool is_wide(const struct hb_lower *lo)
{
    int64_t ways = hb_fsdp_ways(lo, false);
    bool few = lo->local.vocab >= hb_mul_sat(POSTPONE_WIDTH, lo->local.tokens);
    bool whole = ways == 1 && hb_ways(lo, HB_AX_SEQUENCE) == 1;
    return (whole || ways >= POSTPONE_WAYS) && few;
}

static bool is_ring_late(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    if (!hb_head_own_loss(lo))
        return !is_ring_early(lo);
    /* deepseek2-16b/base: logits wait where a scan of experts follows one of dense layers. On v5p
     * one scan's never do, however few the tokens (llama3-8b/s2048: none), but behind unrolled
     * layers, whose rings come last of all, does the head's (llama3-8b/L4_noscan). */
    bool scan = s->stack.form == HB_FORM_SCAN && s->model.block_count == 1;
    return !scan || !is_loss_at_once(lo);
}

/* Between rings of four logits wait beside tensor parallelism from 16384 tokens on (v5e4x4,f4t4;
 * not ring/f4t4, 8192, nor in an accumulation loop), without it where a device has one sequence, as
 * in longer rings (gate/v5e,f4: f32[4096,32000] through the layers; not gate/f4,b4,P8). Where
 * layers send, beside tensor those of 4096 tokens do, tied or not (llama3.2-3b over 4 and 4 of v6e,
 * v on the host: f32 to 1842 of 2870; not of 16384 or 32768, on v5e, nor if none is sent). */
static bool is_short_ring_late(const struct hb_lower *lo)
{
    if (over_tensor(lo))
        return lo->local.tokens > 2 * POSTPONE_RING_TOKENS && !hb_accumulates(lo);
    return lo->local.batch == 1 && hb_head_ring(lo);
}

static bool sorts_rows(const struct hb_lower *lo)
{
    const struct hb_model *m = &lo->spec->model;
    const struct hb_block *b = &m->blocks[m->block_count - 1];
    return hb_block_mixes(b) && hb_layer_sorts_rows(&b->moe);
}

/* Sorted experts of one sequence that fetch: the f32 logits stay to the end (qwen3-30b over 64; not
 * of two sequences, nor of the einsum), on v5e and v5p with the head's gradient, which between late
 * gathers comes at once. */
static bool sorts_and_fetches(const struct hb_lower *lo)
{
    return hb_offloads(lo) && lo->local.batch == 1 && sorts_rows(lo);
}

static bool is_label_alone(const struct hb_lower *lo)
{
    return sorts_and_fetches(lo) && hb_gathers_late(lo);
}

/* Where layers keep values and fetch others from the host, between rings (8B,v6e,f16 with q on the
 * host and mlp_up kept: both logits; of several sequences the gradient alone) and, of a tied head
 * or in an accumulation loop, between late gathers; between padded and plain ones, and over data
 * alone, with q alone, too, but not with layer inputs alone, nor beside the products. */
static bool keeps_and_fetches(const struct hb_lower *lo)
{
    const struct hb_remat *r = &lo->spec->model.blocks[hb_first_run(lo)].remat;
    if (!hb_offloads(lo) || hb_sequence_gathers_known(lo) || hb_sequence_tensor_known(lo))
        return false;
    if (sorts_and_fetches(lo))
        return !is_label_alone(lo);
    if (hb_in_rings(lo) || hb_gathers_late(lo))
        return r->save != 0;
    return lo->habits->rings && !hb_gathers_beside(lo) && lo->local.batch_ways > 1 &&
           (r->offload & ~(1u << HB_TN_LAYER_IN)) != 0;
}

/* Rings that wait by an order of their own. Those whose layers fetch from the host by that of the
 * scheduler which hides the fetches (76 dumps of dense models, fsdp 8 to 32, tensor 1 to 8). Those
 * of experts where scans keep nothing (nine of ten dumps of fsdp 8 to 32). */
static bool waits_in_ring(const struct hb_lower *lo)
{
    bool sends = hb_sends(lo, lo->spec->model.block_count - 1);
    bool nothing = lo->spec->stack.form == HB_FORM_SCAN && (keeps_nothing(lo) || sends);
    bool experts = nothing && !over_tensor(lo) && !(sorts_rows(lo) && lo->local.batch > 1);
    return hb_head_goes_round(lo) && (hb_begins_mixed(lo) ? experts : sends);
}

/* They come behind the layers, but dense ones of v5e (49 of 54 on v5p and v6e). */
static bool is_behind(const struct hb_lower *lo)
{
    return hb_begins_mixed(lo) || !hb_head_room_early(lo);
}

/* A head in an accumulation loop: not over data alone, not between rings (8B,f16,a4: one
 * bf16[1,4096,128256], gone with the head's ring), not between gathers where the order taken makes
 * it first (sequence.c). Beside tensor parallelism those alone that fetch from the host, of one-hot
 * labels, or where nothing else is split. */
static bool is_microbatch_early(const struct hb_lower *lo)
{
    bool waits =
        over_tensor(lo) && (hb_offloads(lo) || lo->local.batch_ways == 1 || !hb_gathers_labels(lo));
    return hb_accumulates(lo) && hb_ways(lo, HB_AX_SEQUENCE) == 1 && !hides_rows(lo) && !waits;
}

/* Where neither what is kept nor the update decides. */
static bool waits_by_weights(const struct hb_lower *lo)
{
    bool ring = hb_in_rings(lo);
    if (ring && hb_in_short_ring(lo))
        return is_short_ring_late(lo);
    if (hb_accumulates(lo) || is_tied(lo))
        return !is_ring_early(lo) && !is_microbatch_early(lo);
    if (hb_alone(lo) && hb_copies_queued(lo) && lo->spec->optimizer.moment_count > 0)
        return true;
    if (hb_head_own_rule(lo) && is_own_rule_late(lo))
        return true;
    if (hb_ways(lo, HB_AX_DATA) > 1 || hb_begins_mixed(lo))
        return false;
    if (ring)
        return is_ring_late(lo);
    return is_wide(lo);
}

static bool is_sequence(const struct hb_lower *lo, enum hb_sequence sequence)
{
    return hb_sequence_known(lo) && hb_sequence_find(lo) == sequence;
}

bool hb_head_post_order(const struct hb_lower *lo)
{
    return is_sequence(lo, HB_SEQUENCE_POST);
}

/* v5e puts the ring of a tied head's gradient behind the layers, not with tensor parallelism. */
static bool is_ring_behind(const struct hb_lower *lo)
{
    return hb_head_room_early(lo) && is_tied(lo) && !hb_head_own_loss(lo) && hb_head_ring(lo) &&
           !over_tensor(lo) && !hb_accumulates(lo);
}

/* With both logits of one sequence; where states come from the host only if all wait for the
 * gradients' norm, which then shares a collective with the loss (smollm3 over 8 and 16). */
static bool is_ring_behind_both(const struct hb_lower *lo)
{
    return is_ring_behind(lo) && lo->local.batch == 1 &&
           (hb_updates_wait(lo) || !hb_copies_queued(lo));
}

bool hb_head_both_wait(const struct hb_lower *lo)
{
    /* Beside such a ring the f32 logits of one sequence stay, but in accumulation loops. */
    if (waits_in_ring(lo))
        return is_behind(lo) && lo->local.batch == 1 && !over_tensor(lo) && !hb_accumulates(lo) &&
               (hb_offloads(lo) || !sorts_rows(lo));
    return (keeps_and_fetches(lo) && lo->local.batch == 1) || is_ring_behind_both(lo) ||
           (hb_head_post_order(lo) && !hb_accumulates(lo));
}

bool hb_head_label_waits(const struct hb_lower *lo)
{
    return is_sequence(lo, HB_SEQUENCE_DEPTH) || is_label_alone(lo);
}

bool hb_head_label_stays(const struct hb_lower *lo)
{
    return lo->local.batch == 1 || is_loss_at_once(lo) || over_tensor(lo);
}

/* Between plain gathers, over data 2 beside fsdp, the logits stay until the layers are done where
 * updates wait for the gradients' norm, which all need the head's (16 layers of 4,096, v6e, fsdp 8
 * and 8192 tokens: to 340 of 486; without clipping to 224), where states come from the host, but in
 * a list, and where layers send, behind a trip that is taken out. */
bool hb_head_label_over_data(const struct hb_lower *lo)
{
    bool stays = hb_head_label_stays(lo) && !(lo->copies && lo->copies->list);
    return hb_weight_gathers_plain(lo) && !hb_accumulates(lo) && !is_tied(lo) &&
           !hb_begins_mixed(lo) && !hb_head_own_loss(lo) && hb_ways(lo, HB_AX_DATA) == 2 && stays &&
           (hb_updates_wait(lo) || hb_copies_queued(lo) ||
            hb_sends(lo, lo->spec->model.block_count - 1));
}

bool hb_head_ring_first(const struct hb_lower *lo)
{
    return waits_in_ring(lo) && !is_behind(lo);
}

/* The loss of several sequences, or of one in an accumulation loop, is summed in one fusion with
 * what the logits' gradient reads, but not over tensor: the labels' logits come before that (14 of
 * 14 dumps of v5e; else behind it, 6 of 8). */
bool hb_head_label_behind(const struct hb_lower *lo)
{
    return hb_head_ring_first(lo) &&
           (over_tensor(lo) || (lo->local.batch == 1 && !hb_accumulates(lo)));
}

bool hb_head_copy_waits(const struct hb_lower *lo)
{
    return is_sequence(lo, HB_SEQUENCE_LIST);
}

static int64_t bytes_of(struct hb_shape s)
{
    return hb_shape_plain_bytes(&s);
}

/* Arguments and matrices, with their copies and gradients. It is asked often. */
static int64_t weight_bytes(const struct hb_lower *lo)
{
    struct hb_waits *w = lo->waits;
    for (; w->buf_count < lo->p->buf_count; w->buf_count++) /* states on the host come over, too */
        if (lo->p->bufs[w->buf_count].argument)
            w->argument_bytes = hb_add_sat(w->argument_bytes, lo->p->bufs[w->buf_count].bytes);
    for (; w->leaf_count < lo->leaf_count; w->leaf_count++) {
        const struct hb_leaf *leaf = &lo->leaves[w->leaf_count];
        int64_t own = bytes_of(hb_leaf_shape(leaf, HB_DT_F32));
        own = hb_add_sat(own, bytes_of(hb_leaf_shape(leaf, lo->compute)));
        if (!leaf->end)
            own = hb_add_sat(own, bytes_of(hb_leaf_layer_shape(leaf, lo->compute, true)));
        w->leaf_bytes = hb_add_sat(w->leaf_bytes, own);
    }
    return hb_add_sat(w->argument_bytes, w->leaf_bytes);
}

/* What stands in the layers' backward pass if the whole gradient and the logits both wait: those
 * two, in the dtype of their product, the arguments, the stack of layer inputs, gradients and
 * casts, a layer's whole weights. */
static int64_t waiting_bytes(const struct hb_lower *lo)
{
    struct hb_shape head = hb_leaf_layer_shape(&lo->leaves[lo->head], lo->spec->loss.dot, true);
    int64_t sum = hb_logit_bytes(lo, hb_dtype_bits(head.dtype) / 8);
    sum = hb_add_sat(sum, bytes_of(head));
    sum = hb_add_sat(sum, weight_bytes(lo));
    if (lo->head == lo->embed)
        sum = hb_add_sat(sum,
                         bytes_of(hb_leaf_layer_shape(&lo->leaves[lo->head], lo->compute, true)));
    sum = hb_add_sat(sum, (int64_t)hb_sequence_layer_bytes(lo, false));
    return hb_add_sat(sum, hb_stack_input_bytes(lo));
}

/* Of two losses, between rings and of XLA:GPU, both head gradients come behind the layers; where
 * gathers are padded or late each as it would alone (8 layers of 4,096, fsdp 8 and 64 of v5p). */
static bool waits_for_depths(const struct hb_lower *lo)
{
    return lo->spec->model.mtp > 0 && !hb_weight_gathers_apart(lo);
}

bool hb_head_waits(const struct hb_lower *lo)
{
    if (hb_in_chunks(lo))
        return false;
    if (waits_for_depths(lo))
        return true;
    if (lo->habits->logits_copies == 2)
        return hb_order_head_waits(lo);
    if (waits_in_ring(lo))
        return is_behind(lo);
    if (keeps_and_fetches(lo) || is_ring_behind(lo))
        return true;
    bool short_ring = hb_in_rings(lo) && hb_in_short_ring(lo) && over_tensor(lo);
    if (short_ring && hb_sends(lo, lo->spec->model.block_count - 1) && !hb_accumulates(lo))
        return is_behind(lo) && lo->local.tokens <= POSTPONE_RING_TOKENS;
    if (hb_sequence_both_by_rows(lo) && hb_sequence_gathers_known(lo))
        return hb_sequence_gathers_taken(lo) & (HB_GATHERS_POST | HB_GATHERS_DEPTH);
    if (is_tied_early(lo))
        return lo->copies && lo->copies->head_behind;
    if (is_update_slow(lo) || hb_sequence_post_tensor(lo))
        return true;
    if (hb_sequence_tensor_known(lo))
        return false;
    if (hb_sequence_known(lo))
        return hb_accumulates(lo) ? hb_head_post_order(lo) : !hb_head_label_waits(lo);
    if (lo->copies && lo->copies->head_behind)
        return true;
    if (hb_sequence_gathers_known(lo))
        return hb_sequence_gathers_taken(lo) & HB_GATHERS_LOGITS_WAIT;
    return waits_by_weights(lo);
}

/* v5e, whose collectives run beside the products, makes the head's gradient at once, f32, before
 * that of its input, not beside host copies (70B/remat=offload:layer_in). */
static bool is_made_at_once(const struct hb_lower *lo)
{
    return hb_gathers_beside(lo) && !hb_offloads(lo);
}

/* Its sum comes after the layers (8B,v5e16x16,f256: 2004 and 2004 MiB), or at once in the list's
 * order, which makes first what frees more (8 layers of 4,096, fsdp 64, 32,000 words and 4,096
 * tokens: f32[4096,32000] from 290 to 291 of 1000). Not where they do not fit: 70B/base. */
bool hb_head_sum_waits(const struct hb_lower *lo)
{
    return is_made_at_once(lo) && !hb_sequence_gathers_at_once(lo) &&
           waiting_bytes(lo) < lo->hbm_bytes;
}

bool hb_head_sum_beside(const struct hb_lower *lo)
{
    return is_made_at_once(lo) && hb_sequence_gathers_at_once(lo);
}

/* Of one sequence (of several the f32 logits end with the loss). With tensor parallelism where
 * adafactor's update asks alone (fsdp 64, tensor 2: v5e--u8 to 1549 of 1991). */
bool hb_head_logits_beside(const struct hb_lower *lo)
{
    return hb_gathers_labels(lo) && lo->local.batch == 1 && !hb_accumulates(lo) &&
           (!over_tensor(lo) || is_update_slow(lo));
}

/* 70B/base on v5e: where they do not fit beside the layers' backward pass the logits are made again
 * after it, from the head gathered once more. */
bool hb_head_logits_again(const struct hb_lower *lo)
{
    return is_made_at_once(lo) && hb_head_waits(lo) && !is_tied(lo) &&
           waiting_bytes(lo) >= lo->hbm_bytes;
}

/* Padded gathers of the head come before the layers (batch/8B,f64,b4: bf16[4096,128256] through
 * the forward pass) unless its gradient is postponed (8B64/base; with muon before them, too), the
 * loss goes in chunks, or naive scores make the layers the peak. */
bool hb_head_gathered_first(const struct hb_lower *lo)
{
    bool padded = hb_gathers_padded(lo) || !hb_head_own_rule(lo);
    return hb_weight_gathers_apart(lo) && padded && hb_head_split(lo) && !hb_in_chunks(lo) &&
           (!hb_head_waits(lo) || hb_accumulates(lo));
}
