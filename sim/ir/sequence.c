/* The choice of a sequence: see sequence.h. DefaultMemoryScheduler (xla/hlo/transforms/
 * simplifiers/hlo_memory_scheduler.cc) makes a list schedule, a depth-first and a post-order one
 * and keeps the one with the least heap simulation; of equals the list. The scheduler's own log
 * (hlo_memory_scheduler=2) has the three figures; what is alive at their peaks (heap_simulator=3):
 *
 *   list    zeros of all gradients and the head's accumulators, which have no operands, from the
 *           start: beside both logits and the gathered head; both stacks at the first loop
 *   depth   the backward loop's gradients beside the zeros they start from, and the f32 logits; or
 *           the loss, with the head's ring
 *   post    the same with both logits
 *
 * MiB above the arguments, list, depth, post: 8B/base 10587 11417 12451. The forms below give each
 * within 3 %, without the casts and one stack, which are alive in all three. */
#include "sim/ir/sequence.h"

#include <math.h>

#include "base/size.h"
#include "sim/ir/copies.h"
#include "sim/ir/head.h"
#include "sim/ir/loss_pass.h"
#include "sim/ir/order.h"
#include "sim/ir/saved.h"
#include "sim/ir/stack.h"
#include "sim/ir/weight.h"

/* Layers over fsdp, with or without tensor parallelism, without experts; a head of its own, or
 * MaxText's between late gathers (gemma-7b, v6e-128: list 8.0, the others 9.0; list it is). */
static bool is_plain_over_fsdp(const struct hb_lower *lo)
{
    bool own = hb_head_own_loss(lo) && hb_gathers_late(lo);
    return (own || !lo->spec->model.tied_embeddings) && !hb_begins_mixed(lo);
}

bool hb_sequence_known(const struct hb_lower *lo)
{
    bool loop = hb_accumulates(lo) && !lo->p->labels_alone;
    return hb_fsdp_ways(lo, false) >= HB_SEQUENCE_LEAST_WAYS && hb_head_ring(lo) &&
           hb_ways(lo, HB_AX_TENSOR) == 1 && lo->local.batch == 1 && !loop &&
           hb_gathers_labels(lo) && is_plain_over_fsdp(lo);
}

/* Widths of a layer's backward pass: eight of d_ff a token in bf16 with two whole weights of the
 * MLP and one of the attention, or nineteen of the features in the attention's part (tinyS/head3d
 * with d_ff=1408 and 8 sequences: 613 MiB). */
enum { BACK_WIDTHS = 8, BACK_WEIGHTS = 2, BACK_FEATURES = 19 };

/* Of the first block, a device's tokens. */
struct sizes {
    double d, tokens, ff, heads, q, k;
};

static struct sizes find_sizes(const struct hb_lower *lo)
{
    const struct hb_block *b = &lo->spec->model.blocks[0];
    const struct hb_attention *a = &b->attention;
    double d = (double)lo->spec->model.d_model, tokens = (double)lo->local.tokens;
    double width = (double)a->head_dim, heads = (double)a->heads, kv = (double)a->kv_heads;
    return (struct sizes){d, tokens, (double)b->mlp.d_ff, heads, heads * width, kv * width};
}

/* What a layer's backward pass holds beside gradients. */
static double layer_bytes(const struct hb_lower *lo)
{
    struct sizes z = find_sizes(lo);
    double sum = 2 * z.ff * (BACK_WIDTHS * z.tokens + BACK_WEIGHTS * z.d) + 2 * z.d * z.q;
    return fmax(sum, 2 * BACK_FEATURES * z.tokens * z.d);
}

/* Where no product of a gradient ends in its own update, post-order is all that depth-first finds
 * (8B/opt=muon 12451 both; 8B,f16,adafactor,master 5883 both; adafactor,clip; opt_host,master), and
 * with a product in bf16 (8B/base with eight layers and logits_dot=bf16: 5749 both). */
bool hb_sequence_depth_is_post(const struct hb_lower *lo)
{
    enum hb_optimizer name = lo->spec->optimizer.name;
    return name == HB_OPT_MUON || lo->spec->precision.params == lo->compute ||
           lo->spec->loss.dot != HB_DT_F32;
}

/* Of the stacks of all blocks: what they come to; what stands at a forward loop where that is most,
 * which has its own twice, since its start is not shared with its result; and at a backward loop,
 * with the sums of those behind it. Nested scans keep the inputs of outer blocks alone; one that
 * runs backwards has what its layers keep, and slices of weights and gradients. */
struct stacks {
    double kept, forward, backward;
    double outer; /* what stands in the run of an outer block that is made again */
};

static double outer_bytes(const struct hb_lower *lo, double layers, double width, double count)
{
    double kept = 2 * width * (double)lo->local.batch * (double)lo->local.resid_seq;
    double slices = 1.5 * (double)lo->stacked_grad_bytes; /* in f32, of weights in bf16 */
    return (layers * kept + slices) / count;
}

static struct stacks find_stacks(const struct hb_lower *lo)
{
    const struct hb_model *m = &lo->whole->model;
    int64_t layers = 0, done = 0;
    for (int i = 0; i < m->block_count; i++)
        layers += hb_block_steps(&m->blocks[i]);
    layers = hb_larger(layers, 1);
    int64_t blocks = hb_stack_outer(lo, layers);
    double resid = (double)lo->local.resid_width, of = (double)layers;
    double input = (double)lo->input_bytes / of, sum = (double)lo->stacked_grad_bytes / of;
    struct stacks s = {0};
    for (int i = 0; i < m->block_count; i++) {
        double own_layers = (double)hb_block_steps(&m->blocks[i]);
        double kept = (double)hb_order_kept_width(lo, &lo->spec->model.blocks[i]);
        double own = input * own_layers / resid * (blocks ? resid : kept);
        s.kept += own;
        s.forward = fmax(s.forward, s.kept + own);
        s.backward = fmax(s.backward, s.kept + sum * (double)(layers - done));
        done += hb_block_steps(&m->blocks[i]);
        if (blocks)
            s.outer = fmax(s.outer, outer_bytes(lo, of, kept, (double)blocks));
    }
    return s;
}

static double resid_bytes(const struct hb_lower *lo)
{
    return 2 * (double)lo->spec->model.d_model * (double)lo->local.tokens;
}

static double head_bytes(const struct hb_lower *lo)
{
    struct hb_shape s = hb_leaf_layer_shape(&lo->leaves[lo->head], lo->compute, true);
    return (double)hb_shape_plain_bytes(&s); /* gathered */
}

/* What the ring of its gradient accumulates in, in either direction. */
static double ring_bytes(const struct hb_lower *lo)
{
    struct hb_shape s = hb_leaf_layer_shape(&lo->leaves[lo->head], HB_DT_F32, false);
    return 2 * (double)hb_shape_plain_bytes(&s);
}

/* Of these: they, and what is on its way, twice as much. */
enum { RING_PARTS = 3 };

/* In a loop over microbatches the logits' gradient alone waits in post-order (list, depth, post on
 * v6e: phi-4 over 16 with 8192 tokens 26.03 26.40 24.95 GiB, here 26.03 26.48 24.94). Unrolled,
 * depth-first alone ends each weight's gradient at once (12 layers of v5p 33.28 16.63 47.23). */
static enum hb_sequence find_rings(const struct hb_lower *lo)
{
    if (hb_is_unrolled(lo))
        return HB_SEQUENCE_DEPTH;
    struct stacks s = find_stacks(lo);
    double sums = ring_bytes(lo), head = head_bytes(lo), grads = (double)lo->stacked_grad_bytes;
    double logits = (double)hb_logit_bytes(lo, 4), narrow = logits / 2, both = logits + narrow;
    double layer = layer_bytes(lo) + s.outer, loss = both + head, forward = s.forward - s.kept;
    bool loop = hb_accumulates(lo);
    double list = head + fmax(both, forward) + grads + sums;
    list = fmax(list, grads + narrow + layer);
    double post = fmax(grads + fmax(grads, layer) + (loop ? narrow : both), loss);
    post = fmax(post, forward + head);
    /* v5e runs a layer's rings one after the other. */
    double own = lo->chip->gathers_beside ? layer_bytes(lo) / 2 + s.outer : layer;
    double depth = fmax(grads + fmax(grads, own) + logits, loss + RING_PARTS * sums);
    depth = !loop && hb_sequence_depth_is_post(lo) ? post : depth;
    /* 8B/opt=lion: the list is taken, its head's gradient is made at once all the same. */
    if (list <= depth && list <= post)
        return HB_SEQUENCE_LIST;
    return depth < post ? HB_SEQUENCE_DEPTH : HB_SEQUENCE_POST;
}

/* A layer's backward pass over tensor: four of d_ff, three and the row sums of the heads, two
 * weights; with a residual that is not split, four and a half of the features. */
static double tensor_layer_bytes(const struct hb_lower *lo)
{
    struct sizes z = find_sizes(lo);
    double split = z.tokens * (8 * z.ff + 4 * HB_TPU_LANES * z.heads + 6 * z.q) + 4 * z.d * z.ff;
    return split / (double)hb_ways(lo, HB_AX_TENSOR) + 9 * z.tokens * z.d;
}

/* Plain gathers in an accumulation loop, where depth-first holds but one form of the head's sum, if
 * that is whole, and post-order the product and the logits alone (16 layers of 4,096, data 4 and
 * fsdp 16, four microbatches, v5p: list, depth, post 31.78 29.01 29.99 GiB). */
static bool is_accumulated(const struct hb_lower *lo)
{
    return hb_weight_gathers_plain(lo) && hb_accumulates(lo);
}

bool hb_sequence_both_by_rows(const struct hb_lower *lo)
{
    return lo->head == lo->embed && hb_loss_gathers_rows(lo) && !hb_gathers_beside(lo) &&
           !hb_head_own_loss(lo) && !hb_copies_queued(lo) && !hb_begins_mixed(lo) &&
           !hb_block_mixes(&lo->spec->model.blocks[lo->spec->model.block_count - 1]);
}

/* Whatever the policy. */
static bool may_ask_gathers(const struct hb_lower *lo)
{
    bool gathers = hb_weight_gathers_apart(lo) || is_accumulated(lo);
    return gathers && hb_ways(lo, HB_AX_TENSOR) == 1;
}

bool hb_sequence_gathers_known(const struct hb_lower *lo)
{
    bool known = is_plain_over_fsdp(lo) || hb_sequence_both_by_rows(lo);
    return known && may_ask_gathers(lo);
}

/* Nothing but the layers' inputs is kept. */
static bool keeps_inputs(const struct hb_lower *lo)
{
    return find_stacks(lo).kept < (double)lo->input_bytes + 1;
}

/* At the forward loop stand both stacks and two residuals, in the list's order the zeros of all
 * gradients and the gathered head, too, and depth-first, where layers keep their inputs alone,
 * gathers of three weights of the MLP that post-order has not yet (70B,f64 with adafactor: list,
 * depth, post 49453 44856 43524). There a layer's own gate and up stand, too, of several one. */
struct floors {
    double list, depth, post;
};

static struct floors find_floors(const struct hb_lower *lo)
{
    struct stacks s = find_stacks(lo);
    struct sizes z = find_sizes(lo);
    double hidden = keeps_inputs(lo) ? z.ff : 0;
    double width = 2 * z.d + (lo->local.batch == 1 ? 2 * hidden : hidden);
    struct floors f = {.post = s.forward + 2 * width * z.tokens};
    f.depth = f.post + 6 * z.d * hidden;
    f.list = f.depth + (double)lo->stacked_grad_bytes + head_bytes(lo);
    return f;
}

static bool keeps_contexts(const struct hb_block *b)
{
    return (b->remat.save & 1u << HB_TN_ATTN_CTX) != 0;
}

/* What a layer's backward pass holds between gathers: three of d_ff a token, five of the features,
 * two of the queries and their row sums over lanes, three of the keys, beside all of its weights
 * (post-order without stacks, zeros and what waits, 4,096 and 14,336 wide, 8,192 tokens: 1679 MiB,
 * here 1712). Where contexts are kept the kernel does not run again. */
double hb_sequence_layer_bytes(const struct hb_lower *lo, bool contexts)
{
    const struct hb_model *m = &lo->spec->model;
    struct sizes z = find_sizes(lo);
    double queries = contexts ? 0 : 2 * z.q;
    double width = 3 * z.ff + 5 * z.d + queries + 3 * z.k + 2 * HB_TPU_LANES * z.heads;
    double unit = hb_gathers_late(lo) ? (double)m->blocks[0].unit : 1; /* all of it made again */
    double weights = z.d * (3 * z.ff + 2 * z.q + 2 * z.k);
    return 2 * unit * (z.tokens * width + weights);
}

static double gathers_back_bytes(const struct hb_lower *lo, const struct stacks *s)
{
    const struct hb_model *m = &lo->spec->model;
    bool contexts = keeps_contexts(&m->blocks[m->block_count - 1]);
    return s->backward + s->outer + hb_sequence_layer_bytes(lo, contexts);
}

/* The last trip of layers that fetch from the host is taken out of their backward loop. */
static bool fetches(const struct hb_lower *lo, int block)
{
    return hb_sends(lo, block) && !hb_accumulates(lo);
}

/* Stacks of contexts that are copied for that trip (turn.c): the list makes them at once. */
static double turned_bytes(const struct hb_lower *lo)
{
    double sum = 0, tokens = (double)lo->local.tokens;
    for (int i = 0; i < lo->whole->model.block_count; i++) {
        const struct hb_block *b = &lo->spec->model.blocks[i];
        if (!fetches(lo, i) || !keeps_contexts(b))
            continue;
        double width = 2 * (double)b->attention.heads * (double)b->attention.head_dim;
        sum += (double)hb_block_steps(&lo->whole->model.blocks[i]) * width * tokens;
    }
    return sum;
}

/* Depth-first visits the updates in turn, the last of a post-order first, where so many values are
 * read twice above each that they no longer tell them apart, as with a trip that is taken out. The
 * head comes last in that post-order, and so its gradient at once, unless its product reads the
 * last norm's own weights, whose update in their place waits for it: then it comes with that norm,
 * behind the layers. Then depth-first needs no less than post-order. */
static bool is_head_behind(const struct hb_lower *lo)
{
    return fetches(lo, lo->spec->model.block_count - 1) &&
           lo->spec->precision.params != lo->compute;
}

/* Whether post-order is least with a loss in chunks: it makes a chunk's gradient of the head before
 * that of its input, beside the gathered head and the logits. The f32 product is summed in bf16,
 * beside data in f32 first (70B of v6e, GiB, list, depth, post: over 128 30.81 28.65 27.78, over
 * data 2 and 128 32.84 28.30 29.52), or scattered. */
static bool is_post_chunked(const struct hb_lower *lo)
{
    bool own = hb_weight_sums_own(lo, lo->local.vocab), data = hb_weight_late_beside(lo);
    double head = head_bytes(lo), sum = (own ? 2 : data ? 5 : 3) * head;
    double logits = 4 * (double)lo->local.vocab * (double)hb_head_own_tokens(lo);
    double resid = resid_bytes(lo);
    struct stacks s = find_stacks(lo);
    struct floors f = find_floors(lo);
    double loss = s.kept + 4 * resid, back = gathers_back_bytes(lo, &s);
    double depth = fmax(loss + fmax(head + 1.5 * logits, sum), fmax(f.depth, back));
    return fmax(loss + head + logits + sum, fmax(f.post, back)) < depth;
}

/* Gathers. The list makes the head's whole gradient, f32, at once where it frees more: the logits
 * and the last norm's input (f33,d4.2k; not gate/f48,d6k), beside both stacks; depth-first always,
 * beside the gathered head and its sum; post-order after the layers (8B64/batch=128: list, depth,
 * post 8956 10471 8648 MiB). Weights in the compute dtype have no such update. */
static int find_whole(const struct hb_lower *lo)
{
    bool own = hb_head_own_rule(lo) && hb_weight_gathers_apart(lo);
    bool inside = own && hb_gathers_late(lo);
    double head = head_bytes(lo), whole = own ? head : 2 * head;
    double logits = (double)hb_logit_bytes(lo, inside ? 2 : 4),
           grads = (double)lo->stacked_grad_bytes;
    double resid = resid_bytes(lo);
    struct stacks s = find_stacks(lo);
    double back = gathers_back_bytes(lo, &s), layer = back - s.backward;
    double begun = grads + s.kept, held = logits + 2 * resid;
    bool early = whole <= logits + resid;
    double loss = begun + whole + held + resid + turned_bytes(lo);
    double list = early ? fmax(loss, begun + layer) : begun + layer + held;
    bool loop = is_accumulated(lo);
    /* One sequence's waits for its sum to the end (gate/f48,d6k: f32[6144,32256] from 173 to 475
     * of 490; ring/f64,s1024; not on v6e, ring/v6e8x8,f64: from 167 to 168 of 541), beside tensor
     * parallelism of several, too (v5e--te: from 483 to 1332 of 1619). */
    bool alone = lo->local.batch == 1 || hb_ways(lo, HB_AX_TENSOR) > 1;
    bool inputs = !loop && keeps_inputs(lo), waits = !loop && alone;
    /* Of several microbatches one form of the sum, unless each device has its part; beside data, of
     * one, it is in its place. */
    bool one = hb_accumulates(lo) && !hb_weight_head_scattered(lo);
    double sums = !loop && !hb_weight_late_beside(lo) ? 2 * head : one ? head : 0;
    double depth = s.kept + whole + held + (waits ? 0 : sums);
    depth = fmax(depth, waits ? back + whole : back);
    double post = fmax(whole + (loop ? logits : grads + held), back + held);
    bool last = is_head_behind(lo);
    if (last || hb_sequence_depth_is_post(lo))
        depth = fmax(depth, post);
    struct floors f = find_floors(lo);
    list = fmax(list, f.list);
    depth = fmax(depth, f.depth);
    post = fmax(post, f.post);
    if (post < list && post < depth)
        return HB_GATHERS_LOGITS_WAIT | HB_GATHERS_POST;
    if (depth >= list)
        return early ? 0 : HB_GATHERS_LOGITS_WAIT;
    if (last)
        return HB_GATHERS_DEPTH | HB_GATHERS_LOGITS_WAIT;
    if (!inputs)
        return HB_GATHERS_DEPTH | HB_GATHERS_FIRST;
    return HB_GATHERS_DEPTH | (waits ? HB_GATHERS_SUM_WAITS : 0);
}

/* In chunks FIRST is a chunk's; in a loop over microbatches none was seen. */
static int find_gathers(const struct hb_lower *lo)
{
    int whole = find_whole(lo);
    if (!hb_in_chunks(lo))
        return whole;
    bool first = !hb_accumulates(lo) && is_post_chunked(lo);
    return (whole & ~HB_GATHERS_FIRST) | (first ? HB_GATHERS_FIRST : 0);
}

/* A search prices policies by themselves: there all keep their layers' inputs. */
int64_t hb_sequence_kept_bytes(const struct hb_lower *lo)
{
    bool asked = lo->spec->share == HB_SHARE_ASKED && lo->whole == lo->spec && !hb_accumulates(lo);
    int64_t sum = asked ? 0 : lo->input_bytes;
    for (uint32_t i = 0; asked && i < lo->layers->count; i++) {
        const struct hb_group *g = &lo->layers->groups[i];
        sum = hb_add_sat(sum, hb_mul_sat(g->trips, hb_saved_bytes(&g->saved, &g->layer)));
    }
    return sum;
}

/* Plain gathers and short rings with states on the host: at the layers' backward loop stand their
 * gradients and the zeros these start from, in the list with the head's own part, depth-first with
 * the logits, whose labels come last (of chunks with their input and the head's sum); before it the
 * list has those zeros beside both stacks or the loss (8B of v5p, GiB, list, depth, post: data 2,
 * fsdp 2, tensor 4 20.53 20.93 20.93, 4 chunks 20.53 20.69 20.69; over 4 and tensor 2 with q and
 * attn_out 26.71 26.49 26.49). A head's gradient of more than the logits waits in the list; that of
 * a head that is the table comes before the last norm's update, the first of all depth-first, and
 * stands there whole, or over tensor summed (3B over data 2 and fsdp 4 17.07 17.71 18.25, over 4
 * and tensor 2 8.90 8.66 9.48). */
bool hb_sequence_hosted_list(const struct hb_lower *lo)
{
    bool rings = hb_in_rings(lo) && !hb_in_short_ring(lo), chunks = hb_in_chunks(lo);
    bool news = hb_updates_wait(lo) && hb_weight_grad_dtype(lo) != HB_DT_F32; /* all at once */
    bool shared = lo->head == lo->embed && !chunks;
    if (!hb_head_split(lo) || rings || hb_weight_gathers_apart(lo) || news || hb_accumulates(lo))
        return false;
    struct hb_shape part = hb_leaf_layer_shape(&lo->leaves[lo->head], HB_DT_F32, false);
    double head = head_bytes(lo), own = (double)hb_shape_plain_bytes(&part);
    double kept = (double)hb_sequence_kept_bytes(lo), grads = (double)lo->stacked_grad_bytes;
    double resid = resid_bytes(lo);
    double logits = chunks ? 0 : (double)hb_logit_bytes(lo, 4), loss = 1.5 * logits + head;
    double table = hb_order_rows_stay(lo) ? head : own / 2;
    double labels = chunks ? own + resid : hb_head_label_stays(lo) ? logits : 0;
    labels = shared ? (hb_ways(lo, HB_AX_TENSOR) > 1 ? own : 2 * head) : labels;
    double list = fmax(2 * grads + own, grads + table + fmax(loss, kept + head));
    double depth = fmax(fmax(2 * grads + labels, kept), loss);
    bool least = shared ? list < depth : list <= depth;
    return (chunks || 2 * head <= logits + resid) && least;
}

/* Both logits, the gathered head and its gradient's ring, beside the stacks. */
static double find_loss(const struct hb_lower *lo)
{
    double logits = 1.5 * (double)hb_logit_bytes(lo, 4);
    return logits + head_bytes(lo) + RING_PARTS * ring_bytes(lo) + find_stacks(lo).kept;
}

/* Over tensor alone, or beside data, depth-first has the head's gradient last, as post-order does,
 * where one of the layers' is more than twice as large (layers of 4,096 and 14,336 over tensor 8 of
 * v5p, four of 8,192, head 250 MiB: 24 layers, 672 MiB, it waits, 16, 448, not; of 2,048 to 5,120,
 * 21 of 24 dumps; it waits in three of 4 to 10 layers, too, with more logits than all else). Then
 * it is taken unless the list needs less, which has zeros and sums of all gradients beside no
 * logits, or both logits. */
static bool is_depth_late(const struct hb_lower *lo)
{
    bool sends = hb_copies_queued(lo) || hb_offloads(lo);
    if (hb_head_split(lo) || hb_accumulates(lo) || sends)
        return false;
    double head = 2 * head_bytes(lo), most = 0, grads = (double)lo->stacked_grad_bytes;
    for (uint32_t i = 0; i < lo->leaf_count; i++)
        if (!lo->leaves[i].end)
            most = fmax(most, (double)hb_leaf_all_bytes(lo, i));
    if (most <= 2 * head)
        return false;
    struct stacks s = find_stacks(lo);
    double logits = (double)hb_logit_bytes(lo, 4), layer = tensor_layer_bytes(lo);
    double resid = resid_bytes(lo);
    double list = fmax(grads + fmax(s.kept + 1.5 * logits, s.forward + 2 * resid) + head,
                       s.kept + grads + fmax(grads, layer));
    double back = s.kept + grads + logits + fmax(grads + 3 * resid, layer);
    return fmax(back, s.forward + 2 * resid) < list;
}

/* Beside tensor parallelism the forward loop has a residual less in post-order, which is least
 * where that is the most of all (8B,v6e8x8,f32t2 with lion: list, depth, post 9345 8782 8659).
 * Between rings with one sequence depth-first has the ring of the head's gradient at the loss,
 * which post-order has after it, beside the f32 logits. */
static bool is_post_tensor(const struct hb_lower *lo)
{
    bool apart = hb_weight_gathers_apart(lo);
    bool rings = hb_head_ring(lo);
    bool known = apart || rings || !(hb_gathers_weights(lo) || hb_copies_queued(lo));
    if (!known || !is_plain_over_fsdp(lo) || hb_ways(lo, HB_AX_TENSOR) == 1)
        return false;
    double grads = (double)lo->stacked_grad_bytes, kept = find_stacks(lo).kept;
    double logits = (double)hb_logit_bytes(lo, 4), layer = tensor_layer_bytes(lo);
    double three = 3 * resid_bytes(lo);
    double post = find_floors(lo).post;
    if (rings && lo->local.batch == 1)
        return find_loss(lo) > fmax(kept + grads + layer + logits, post);
    double back = kept + grads + fmax(grads + three, layer) + logits + three;
    return (keeps_inputs(lo) && post > back) || is_depth_late(lo);
}

/* --- the choice as a number --- */

enum { KEY_RINGS = 1, KEY_TENSOR = 4, KEY_GATHERS = 8 };

int hb_sequence_key(const struct hb_lower *lo)
{
    if (lo->spec->as_order > 0)
        return lo->spec->as_order - 1;
    int key = hb_sequence_known(lo) ? KEY_RINGS * (int)find_rings(lo) : 0;
    key += is_post_tensor(lo) ? KEY_TENSOR : 0;
    /* Where experts or tied heads are, v5e's first product alone asks. */
    bool gathers = hb_sequence_gathers_known(lo) || hb_gathers_beside(lo);
    return key + (gathers ? KEY_GATHERS * find_gathers(lo) : 0);
}

/* Late gathers: depth-first makes w_down's gradient with the others (when.c), and the layers' path
 * is the least where the head's sum waits for them (70B, data 2 and fsdp 256 of v6e: 15.229 s,
 * depth-first 14.485, of all that keep the same). Where the logits wait more is alive beside them.
 */
int hb_sequence_kinds(const struct hb_lower *lo, int out[HB_LOWER_KINDS])
{
    if (!hb_gathers_late(lo) || !may_ask_gathers(lo))
        return 0;
    out[0] = 0;
    out[1] = KEY_GATHERS * (HB_GATHERS_DEPTH | HB_GATHERS_SUM_WAITS);
    return HB_LOWER_KINDS;
}

enum hb_sequence hb_sequence_find(const struct hb_lower *lo)
{
    return (enum hb_sequence)(hb_sequence_key(lo) % KEY_TENSOR);
}

bool hb_sequence_tensor_known(const struct hb_lower *lo)
{
    return hb_head_ring(lo) && is_plain_over_fsdp(lo) && hb_ways(lo, HB_AX_TENSOR) > 1 &&
           lo->local.batch == 1;
}

bool hb_sequence_post_tensor(const struct hb_lower *lo)
{
    return hb_sequence_key(lo) & KEY_TENSOR;
}

int hb_sequence_gathers_taken(const struct hb_lower *lo)
{
    return hb_sequence_gathers_known(lo) ? hb_sequence_key(lo) / KEY_GATHERS : 0;
}

bool hb_sequence_gathers_at_once(const struct hb_lower *lo)
{
    return !(hb_sequence_key(lo) / KEY_GATHERS & (HB_GATHERS_LOGITS_WAIT | HB_GATHERS_SUM_WAITS));
}

/* Nothing waits for the loss itself but on one device: its loop comes last, and reads this again
 * (70B,f128: bf16[2,4096,8192] to the end; nor between stages beside data alone, PPc/dp=2). */
bool hb_sequence_loss_last(const struct hb_lower *lo)
{
    int64_t tensor = hb_ways(lo, HB_AX_TENSOR);
    bool stages = hb_ways(lo, HB_AX_PIPELINE) > 1;
    bool alone = lo->local.batch_ways == 1 && tensor == 1;
    if (hb_habits_ordered(lo->spec)) /* the graph tells */
        return false;
    if (!alone)
        return !stages || hb_fsdp_ways(lo, false) > 1 || tensor > 1;
    return stages;
}
