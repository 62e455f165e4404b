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

#include <limits.h>

#include "base/size.h"
#include "sim/ir/copies.h"
#include "sim/ir/head.h"
#include "sim/ir/loss_pass.h"
#include "sim/ir/order.h"
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

/* What a layer's backward pass holds beside gradients. */
static int64_t layer_bytes(const struct hb_lower *lo)
{
    const struct hb_block *b = &lo->spec->model.blocks[0];
    const struct hb_attention *a = &b->attention;
    int64_t d = lo->spec->model.d_model, tokens = lo->local.tokens;
    int64_t sum = hb_mul_sat(2 * BACK_WIDTHS, hb_mul_sat(tokens, b->mlp.d_ff));
    sum = hb_add_sat(sum, hb_mul_sat(2 * BACK_WEIGHTS, hb_mul_sat(d, b->mlp.d_ff)));
    sum = hb_add_sat(sum, hb_mul_sat(2 * d, hb_mul_sat(a->heads, a->head_dim)));
    sum = hb_larger(sum, hb_mul_sat(2 * BACK_FEATURES, hb_mul_sat(tokens, d)));
    return sum;
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
 * with the sums of those behind it (phi-4 over 64 of v6e, ten layers and ten that keep attn_ctx, q
 * on the host: list, depth, post 16076 15308 15308, here 15439 14720 14720). Nested scans keep the
 * inputs of outer blocks alone; one that runs backwards has what its layers keep, and slices of
 * weights and gradients. */
struct stacks {
    int64_t kept, forward, backward;
    int64_t outer; /* what stands in the run of an outer block that is made again */
};

static int64_t part(int64_t bytes, int64_t layers, int64_t of)
{
    return hb_mul_sat(bytes, layers) / of;
}

static int64_t outer_bytes(const struct hb_lower *lo, int64_t layers, int64_t width, int64_t count)
{
    int64_t kept = hb_mul_sat(2 * width, hb_mul_sat(lo->local.batch, lo->local.resid_seq));
    int64_t slices = lo->stacked_grad_bytes / count; /* in f32, of weights in bf16 */
    return hb_add_sat(hb_mul_sat(layers, kept) / count, hb_add_sat(slices, slices / 2));
}

static struct stacks find_stacks(const struct hb_lower *lo)
{
    const struct hb_model *m = &lo->whole->model;
    int64_t layers = 0, done = 0;
    for (int i = 0; i < m->block_count; i++)
        layers += hb_block_steps(&m->blocks[i]);
    layers = hb_larger(layers, 1);
    int64_t blocks = hb_stack_outer(lo, layers);
    struct stacks s = {0};
    for (int i = 0; i < m->block_count; i++) {
        int64_t end = done + hb_block_steps(&m->blocks[i]);
        int64_t kept = hb_order_kept_width(lo, &lo->spec->model.blocks[i]);
        int64_t width = blocks ? lo->local.resid_width : kept;
        int64_t inputs = part(lo->input_bytes, end, layers) - part(lo->input_bytes, done, layers);
        int64_t own = hb_mul_sat(inputs / lo->local.resid_width, width);
        int64_t sums = part(lo->stacked_grad_bytes, layers - done, layers);
        done = end;
        s.kept = hb_add_sat(s.kept, own);
        s.forward = hb_larger(s.forward, hb_add_sat(s.kept, own));
        s.backward = hb_larger(s.backward, hb_add_sat(s.kept, sums));
        if (blocks)
            s.outer = hb_larger(s.outer, outer_bytes(lo, layers, kept, blocks));
    }
    return s;
}

static int64_t head_bytes(const struct hb_lower *lo)
{
    struct hb_shape s = hb_leaf_layer_shape(&lo->leaves[lo->head], lo->compute, true);
    return hb_shape_plain_bytes(&s); /* gathered */
}

/* What the ring of its gradient accumulates in, in either direction. */
static int64_t ring_bytes(const struct hb_lower *lo)
{
    struct hb_shape s = hb_leaf_layer_shape(&lo->leaves[lo->head], HB_DT_F32, false);
    return hb_mul_sat(2, hb_shape_plain_bytes(&s));
}

/* Of these: they, and what is on its way, twice as much. */
enum { RING_PARTS = 3 };

/* In a loop over microbatches the list gathers the head late and post-order before the layers;
 * there the logits' gradient alone waits in the latter (list, depth, post on v6e: phi-4 over 16
 * with 8192 tokens 26.03 26.40 24.95 GiB, here 26.03 26.48 24.94; 4096-wide, 32,000 words, 4096
 * tokens 11.97 12.39 12.18; qwen3-8b over 32, 2048 tokens 9.38 9.26 9.61). */
static enum hb_sequence find_rings(const struct hb_lower *lo)
{
    int64_t sums = ring_bytes(lo), head = head_bytes(lo);
    int64_t logits = hb_logit_bytes(lo, 4);
    int64_t narrow = logits / 2, both = hb_add_sat(logits, narrow);
    struct stacks s = find_stacks(lo);
    int64_t grads = lo->stacked_grad_bytes, layer = hb_add_sat(layer_bytes(lo), s.outer);
    int64_t loss = hb_add_sat(both, head), forward = s.forward - s.kept;
    bool loop = hb_accumulates(lo);
    int64_t list = loop ? hb_larger(loss, forward) : hb_add_sat(head, hb_larger(both, forward));
    list = hb_add_sat(list, hb_add_sat(grads, sums));
    list = hb_larger(list, hb_add_sat(grads, hb_add_sat(narrow, layer)));
    int64_t twice = hb_mul_sat(2, grads);
    int64_t post = hb_larger(twice, hb_add_sat(grads, layer));
    post = hb_larger(hb_add_sat(post, loop ? narrow : both), loss);
    post = loop ? hb_larger(post, hb_add_sat(forward, head)) : post;
    /* v5e runs a layer's rings one after the other. */
    int64_t own = lo->chip->gathers_beside ? hb_add_sat(layer_bytes(lo) / 2, s.outer) : layer;
    int64_t depth = hb_add_sat(hb_larger(twice, hb_add_sat(grads, own)), logits);
    depth = hb_larger(depth, hb_add_sat(loss, hb_mul_sat(RING_PARTS, sums)));
    depth = !loop && hb_sequence_depth_is_post(lo) ? post : depth;
    /* 8B/opt=lion: the list is taken, its head's gradient is made at once all the same. */
    if (list <= depth && list <= post)
        return HB_SEQUENCE_LIST;
    return depth < post ? HB_SEQUENCE_DEPTH : HB_SEQUENCE_POST;
}

/* A layer's backward pass over tensor: four of d_ff, three and the row sums of the heads, two
 * weights; with a residual that is not split, four and a half of the features. */
static int64_t tensor_layer_bytes(const struct hb_lower *lo)
{
    const struct hb_block *b = &lo->spec->model.blocks[0];
    int64_t d = lo->spec->model.d_model, tokens = lo->local.tokens, heads = b->attention.heads;
    int64_t split = hb_mul_sat(8, hb_mul_sat(tokens, b->mlp.d_ff));
    split = hb_add_sat(split, hb_mul_sat(4, hb_mul_sat(d, b->mlp.d_ff)));
    int64_t sums = hb_mul_sat(4 * HB_TPU_LANES, hb_mul_sat(tokens, heads));
    split = hb_add_sat(split, sums);
    int64_t three = hb_mul_sat(6, hb_mul_sat(tokens, hb_mul_sat(heads, b->attention.head_dim)));
    split = hb_add_sat(split, three);
    return hb_add_sat(split / hb_ways(lo, HB_AX_TENSOR), hb_mul_sat(9, hb_mul_sat(tokens, d)));
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

bool hb_sequence_gathers_known(const struct hb_lower *lo)
{
    bool gathers = hb_weight_gathers_apart(lo) || is_accumulated(lo);
    bool known = is_plain_over_fsdp(lo) || hb_sequence_both_by_rows(lo);
    return gathers && known && hb_ways(lo, HB_AX_TENSOR) == 1;
}

/* Nothing but the layers' inputs is kept. */
static bool keeps_inputs(const struct hb_lower *lo)
{
    return find_stacks(lo).kept == lo->input_bytes;
}

/* At the forward loop stand both stacks and two residuals, in the list's order the zeros of all
 * gradients and the gathered head, too, and depth-first, where layers keep their inputs alone,
 * gathers of three weights of the MLP that post-order has not yet (70B,f64 with adafactor: list,
 * depth, post 49453 44856 43524). There a layer's own gate and up stand, too, of several one. */
struct floors {
    int64_t list, depth, post;
};

static struct floors find_floors(const struct hb_lower *lo)
{
    struct stacks s = find_stacks(lo);
    int64_t d = lo->spec->model.d_model;
    int64_t hidden = keeps_inputs(lo) ? lo->spec->model.blocks[0].mlp.d_ff : 0;
    int64_t width = hb_add_sat(2 * d, lo->local.batch == 1 ? 2 * hidden : hidden);
    struct floors f = {.post = hb_add_sat(s.forward, hb_mul_sat(2 * width, lo->local.tokens))};
    f.depth = hb_add_sat(f.post, hb_mul_sat(6 * d, hidden));
    f.list = hb_add_sat(f.depth, hb_add_sat(lo->stacked_grad_bytes, head_bytes(lo)));
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
static int64_t gathers_layer_bytes(const struct hb_lower *lo)
{
    const struct hb_block *b = &lo->spec->model.blocks[0];
    const struct hb_attention *a = &b->attention;
    int64_t d = lo->spec->model.d_model, tokens = lo->local.tokens, ff = hb_mul_sat(3, b->mlp.d_ff);
    int64_t q = hb_mul_sat(a->heads, a->head_dim), k = hb_mul_sat(a->kv_heads, a->head_dim);
    int64_t width = hb_add_sat(ff, hb_add_sat(5 * d, hb_add_sat(2 * q, 3 * k)));
    width = hb_add_sat(width, hb_mul_sat(2 * HB_TPU_LANES, a->heads));
    const struct hb_model *m = &lo->spec->model;
    if (keeps_contexts(&m->blocks[m->block_count - 1]))
        width -= 2 * q;
    int64_t weights = hb_mul_sat(d, hb_add_sat(ff, hb_add_sat(2 * q, 2 * k)));
    int64_t unit = hb_gathers_late(lo) ? b->unit : 1; /* all of it made again */
    return hb_mul_sat(2 * unit, hb_add_sat(hb_mul_sat(tokens, width), weights));
}

/* The last trip of layers that fetch from the host is taken out of their backward loop. */
static bool fetches(const struct hb_lower *lo, int block)
{
    return hb_sends(lo, block) && !hb_accumulates(lo);
}

static bool fetches_trip(const struct hb_lower *lo)
{
    return fetches(lo, lo->spec->model.block_count - 1);
}

/* Stacks of contexts that are copied for that trip (turn.c): the list makes them at once. */
static int64_t turned_bytes(const struct hb_lower *lo)
{
    int64_t sum = 0;
    for (int i = 0; i < lo->whole->model.block_count; i++) {
        const struct hb_block *b = &lo->spec->model.blocks[i];
        if (!fetches(lo, i) || !keeps_contexts(b))
            continue;
        int64_t width = hb_mul_sat(2 * b->attention.heads, b->attention.head_dim);
        int64_t steps = hb_block_steps(&lo->whole->model.blocks[i]);
        sum = hb_add_sat(sum, hb_mul_sat(hb_mul_sat(steps, width), lo->local.tokens));
    }
    return sum;
}

/* Depth-first visits the updates in turn, the last of a post-order first, where so many values are
 * read twice above each that they no longer tell them apart, as with a trip that is taken out. The
 * head comes last in that post-order, and so its gradient at once (70B over 128 of v5p, bf16
 * weights: f32[8192,128256] from 364 to 395 of 1000), unless its product reads the last norm's own
 * weights, whose update in their place waits for it: then it comes with that norm, behind the
 * layers. Then depth-first needs no less than post-order. */
static bool is_head_behind(const struct hb_lower *lo)
{
    return fetches_trip(lo) && lo->spec->precision.params != lo->compute;
}

/* Gathers. The list makes the head's whole gradient, f32, at once where it frees more: the logits
 * and the last norm's input (f33,d4.2k; not gate/f48,d6k), beside both stacks; depth-first always,
 * beside the gathered head and its sum; post-order after the layers (8B64/batch=128: list, depth,
 * post 8956 10471 8648 MiB). Weights in the compute dtype have no such update. */
static int find_gathers(const struct hb_lower *lo)
{
    bool own = hb_head_own_rule(lo) && hb_weight_gathers_apart(lo);
    bool inside = own && hb_gathers_late(lo);
    int64_t head = head_bytes(lo), whole = hb_mul_sat(own ? 1 : 2, head);
    int64_t logits = hb_logit_bytes(lo, inside ? 2 : 4);
    int64_t resid = hb_mul_sat(2 * lo->spec->model.d_model, lo->local.tokens);
    struct stacks s = find_stacks(lo);
    int64_t begun = hb_add_sat(lo->stacked_grad_bytes, s.kept);
    int64_t layer = hb_add_sat(gathers_layer_bytes(lo), s.outer);
    int64_t back = hb_add_sat(s.backward, layer);
    int64_t held = hb_add_sat(logits, hb_mul_sat(2, resid));
    bool early = whole <= hb_add_sat(logits, resid);
    int64_t loss = hb_add_sat(hb_add_sat(begun, whole), hb_add_sat(held, resid));
    loss = hb_add_sat(loss, turned_bytes(lo));
    int64_t list = hb_add_sat(begun, layer);
    list = early ? hb_larger(loss, list) : hb_add_sat(list, held);
    bool loop = is_accumulated(lo);
    /* One sequence's waits for its sum to the end (gate/f48,d6k: f32[6144,32256] from 173 to 475
     * of 490; ring/f64,s1024; not on v6e, ring/v6e8x8,f64: from 167 to 168 of 541), beside tensor
     * parallelism of several, too (v5e--te: from 483 to 1332 of 1619). */
    bool alone = lo->local.batch == 1 || hb_ways(lo, HB_AX_TENSOR) > 1;
    bool inputs = !loop && keeps_inputs(lo), waits = !loop && alone;
    int64_t depth = hb_add_sat(hb_add_sat(s.kept, whole), held);
    int64_t parts = hb_weight_head_scattered(lo) ? 0 : head;
    depth = hb_add_sat(depth, waits ? 0 : loop ? parts : hb_mul_sat(2, head));
    depth = hb_larger(depth, waits ? hb_add_sat(back, whole) : back);
    int64_t post = hb_add_sat(whole, loop ? logits : hb_add_sat(lo->stacked_grad_bytes, held));
    post = hb_larger(post, hb_add_sat(back, held));
    bool last = is_head_behind(lo);
    if (last || hb_sequence_depth_is_post(lo))
        depth = hb_larger(depth, post);
    struct floors f = find_floors(lo);
    list = hb_larger(list, f.list);
    depth = hb_larger(depth, f.depth);
    post = hb_larger(post, f.post);
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

/* Both logits, the gathered head and its gradient's ring, beside the stacks. */
static int64_t find_loss(const struct hb_lower *lo)
{
    int64_t logits = hb_logit_bytes(lo, 4);
    int64_t loss = hb_add_sat(hb_add_sat(logits, logits / 2), head_bytes(lo));
    loss = hb_add_sat(loss, hb_mul_sat(RING_PARTS, ring_bytes(lo)));
    return hb_add_sat(loss, find_stacks(lo).kept);
}

/* Beside tensor parallelism the forward loop has a residual less in post-order, which is least
 * where that is the most of all (8B,v6e8x8,f32t2 with lion: list, depth, post 9345 8782 8659).
 * Between rings with one sequence depth-first has the ring of the head's gradient at the loss,
 * which post-order has after it, beside the f32 logits. */
static bool is_post_tensor(const struct hb_lower *lo)
{
    bool apart = hb_weight_gathers_apart(lo);
    bool rings = hb_head_ring(lo);
    if ((!apart && !rings) || !is_plain_over_fsdp(lo) || hb_ways(lo, HB_AX_TENSOR) == 1)
        return false;
    int64_t grads = lo->stacked_grad_bytes, d = lo->spec->model.d_model;
    struct stacks s = find_stacks(lo);
    int64_t logits = hb_logit_bytes(lo, 4), kept = s.kept;
    int64_t three = hb_mul_sat(6 * d, lo->local.tokens);
    int64_t layer = tensor_layer_bytes(lo);
    if (rings && lo->local.batch == 1) {
        int64_t back = hb_add_sat(kept, hb_add_sat(hb_add_sat(grads, layer), logits));
        return find_loss(lo) > hb_larger(back, find_floors(lo).post);
    }
    int64_t back = hb_larger(hb_add_sat(hb_mul_sat(2, grads), three), hb_add_sat(grads, layer));
    back = hb_add_sat(kept, hb_add_sat(hb_add_sat(back, logits), three));
    return keeps_inputs(lo) && find_floors(lo).post > back;
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

static int gathers_of_key(const struct hb_lower *lo)
{
    return hb_sequence_key(lo) / KEY_GATHERS;
}

int hb_sequence_gathers_taken(const struct hb_lower *lo)
{
    return hb_sequence_gathers_known(lo) ? gathers_of_key(lo) : 0;
}

bool hb_sequence_gathers_at_once(const struct hb_lower *lo)
{
    return !(gathers_of_key(lo) & (HB_GATHERS_LOGITS_WAIT | HB_GATHERS_SUM_WAITS));
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
