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
 * MiB above the arguments, list, depth, post: 8B/base 10587 11417 12451; seq=6144 12635 12963
 * 14509; seq=8192 14683 14509 16578; d_ff=7168 8578 8056 9090; L=8 6077 6251 5688;
 * 8B,f16,b1 7842 7259 8293; 1B/batch=8 4737 4778 4604; d8k,f8,b1,L4 8840 9219 8574;
 * ring/v6e4x4,f16 1821 2087 2404, v5e 1903 1554 2343; 8B/remat=names:q,k,v,attn_ctx 15810 15011
 * 16045. The forms below give each within 3 %, without the casts and one stack, which are alive in
 * all three. */
#include "sim/ir/sequence.h"

#include <limits.h>

#include "base/size.h"
#include "sim/ir/copies.h"
#include "sim/ir/head.h"
#include "sim/ir/order.h"

bool hb_sequence_known(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    return lo->habits->rings && !lo->maxtext && lo->fsdp_mode == HB_WEIGHT_RING &&
           hb_fsdp_ways(lo, false) >= HB_SEQUENCE_LEAST_WAYS && hb_head_ring(lo) &&
           hb_ways(lo, HB_AX_TENSOR) == 1 && lo->local.batch == 1 && s->batch.accumulate == 1 &&
           s->loss.chunks == 1 && !s->model.tied_embeddings && !s->loss.onehot &&
           s->stack.form != HB_FORM_LOOP && s->model.blocks[0].moe.experts == 0;
}

/* Widths of a layer's backward pass: eight of d_ff a token in bf16 with two whole weights of the
 * MLP and one of the attention, or nineteen of the features in the attention's part (tinyS/head3d
 * with d_ff=1408 and 8 sequences: 613 MiB); scores without a kernel in f32 and bf16. */
enum { BACK_WIDTHS = 8, BACK_WEIGHTS = 2, BACK_FEATURES = 19, SCORE_BYTES = 6 };

int64_t hb_sequence_layer_bytes(const struct hb_lower *lo)
{
    const struct hb_block *b = &lo->spec->model.blocks[0];
    const struct hb_attention *a = &b->attention;
    int64_t d = lo->spec->model.d_model, tokens = lo->local.tokens;
    int64_t sum = hb_mul_sat(2 * BACK_WIDTHS, hb_mul_sat(tokens, b->mlp.d_ff));
    sum = hb_add_sat(sum, hb_mul_sat(2 * BACK_WEIGHTS, hb_mul_sat(d, b->mlp.d_ff)));
    sum = hb_add_sat(sum, hb_mul_sat(2 * d, hb_mul_sat(a->heads, a->head_dim)));
    sum = hb_larger(sum, hb_mul_sat(2 * BACK_FEATURES, hb_mul_sat(tokens, d)));
    if (a->kernel == HB_KERNEL_NAIVE)
        sum = hb_add_sat(
            sum, hb_mul_sat(SCORE_BYTES * a->heads, hb_mul_sat(tokens, lo->spec->batch.seq)));
    return sum;
}

/* Where no product of a gradient ends in its own update, post-order is all that depth-first finds
 * (8B/opt=muon 12451 both; 8B,f16,adafactor,master 5883 both; adafactor,clip; opt_host,master), and
 * with a product in bf16 (8B/base with eight layers and logits_dot=bf16: 5749 both). */
static bool is_depth_post(const struct hb_lower *lo)
{
    enum hb_optimizer name = lo->spec->optimizer.name;
    return name == HB_OPT_MUON || name == HB_OPT_ADAFACTOR || lo->spec->precision.master ||
           lo->spec->precision.params == lo->compute || lo->spec->loss.dot != HB_DT_F32;
}

/* Both stacks of what the layers keep, beside the one that is alive in all three. */
int64_t hb_sequence_kept_bytes(const struct hb_lower *lo)
{
    int64_t width = hb_order_kept_width(lo, &lo->spec->model.blocks[0]);
    return hb_mul_sat(lo->input_bytes / lo->local.resid_width, width);
}

/* Bytes of a parameter's state as an update writes it. */
static int64_t state_bytes(const struct hb_lower *lo, int64_t parameters)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    int64_t bits = hb_dtype_bits(lo->spec->precision.params);
    if (lo->spec->precision.master)
        bits += hb_dtype_bits(HB_DT_F32);
    for (int i = 0; i < o->moment_count; i++)
        bits += hb_dtype_bits(o->moments[i]);
    return hb_mul_sat(bits / CHAR_BIT, parameters);
}

enum hb_sequence hb_sequence_find(const struct hb_lower *lo)
{
    enum { RING_PARTS = 3 }; /* accumulators, and what is on its way, twice as much */
    struct hb_leaf *l = &lo->leaves[lo->head];
    struct hb_shape part = hb_leaf_layer_shape(l, HB_DT_F32, false);
    struct hb_shape gathered = hb_leaf_layer_shape(l, lo->compute, true);
    int64_t sums = hb_mul_sat(2, hb_shape_plain_bytes(&part));
    int64_t head = hb_shape_plain_bytes(&gathered);
    int64_t logits = hb_logit_bytes(lo, 4);
    int64_t narrow = logits / 2, both = hb_add_sat(logits, narrow);
    int64_t grads = lo->stacked_grad_bytes, layer = hb_sequence_layer_bytes(lo);
    int64_t loss = hb_add_sat(both, head);
    int64_t begun = hb_add_sat(grads, hb_add_sat(head, sums));
    int64_t list = hb_add_sat(begun, hb_larger(both, hb_sequence_kept_bytes(lo)));
    list = hb_larger(list, hb_add_sat(grads, hb_add_sat(narrow, layer)));
    int64_t twice = hb_mul_sat(2, grads);
    int64_t post = hb_add_sat(hb_larger(twice, hb_add_sat(grads, layer)), both);
    post = hb_larger(post, loss);
    /* v5e runs a layer's rings one after the other. */
    int64_t own = lo->chip->gathers_beside ? layer / 2 : layer;
    int64_t depth = hb_add_sat(hb_larger(twice, hb_add_sat(grads, own)), logits);
    bool fetches = lo->spec->model.blocks[0].remat.offload != 0;
    depth = hb_larger(depth, hb_add_sat(loss, fetches ? 0 : hb_mul_sat(RING_PARTS, sums)));
    depth = is_depth_post(lo) ? post : depth;
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

/* Rings beside tensor parallelism: the list has zeros of all gradients beside the loss, and is the
 * least where the layers' backward pass is larger all the same (list, depth, post: ring/f8t2 1821
 * 1698 2015, f32t2 1476 1446 1763; f8t4 1079 1110 1304, f16t4 985 1026 1210, f32t4 943 984 1179,
 * f8t4,b8 3536 3751 4509). */
bool hb_sequence_depth_tensor(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    bool ring = lo->habits->rings && !lo->maxtext && lo->fsdp_mode == HB_WEIGHT_RING &&
                hb_fsdp_ways(lo, false) >= HB_SEQUENCE_LEAST_WAYS && hb_head_ring(lo);
    if (!ring || hb_ways(lo, HB_AX_TENSOR) == 1 || lo->local.resid_seq < lo->local.seq ||
        s->loss.chunks > 1 || s->loss.dot != HB_DT_F32 || s->model.tied_embeddings ||
        s->model.blocks[0].moe.experts > 0)
        return false;
    struct hb_leaf *l = &lo->leaves[lo->head];
    struct hb_shape part = hb_leaf_layer_shape(l, HB_DT_F32, false);
    struct hb_shape gathered = hb_leaf_layer_shape(l, lo->compute, true);
    int64_t loss = hb_logit_bytes(lo, 6);
    loss = hb_add_sat(loss, hb_mul_sat(2, hb_shape_plain_bytes(&part)));
    loss = hb_add_sat(loss, hb_shape_plain_bytes(&gathered));
    loss = hb_add_sat(loss, hb_mul_sat(4, hb_mul_sat(lo->local.tokens, s->model.d_model)));
    return loss > tensor_layer_bytes(lo);
}

bool hb_sequence_tensor_known(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    return !lo->maxtext && lo->fsdp_mode == HB_WEIGHT_LOCAL && hb_ways(lo, HB_AX_TENSOR) > 1 &&
           hb_ways(lo, HB_AX_SEQUENCE) == 1 && hb_ways(lo, HB_AX_PIPELINE) == 1 &&
           lo->local.resid_seq == lo->local.seq && s->batch.accumulate == 1 &&
           !s->model.tied_embeddings && s->stack.form == HB_FORM_SCAN;
}

/* Depth-first visits first what has more bytes above it, by the sum over its operands, theirs
 * included twice where there are two ways to them, but no more than post-order has counted up to
 * there. So the head's update, second in that, has all of the embedding's and its own; a layer's
 * weight has its own on top of the backward loop's: the larger comes first, and where it is a
 * layer's, the logits wait (8B,t8: states 752 of each end and 125 for the lookup's gradient against
 * 2688 of w_gate: f32[8,4096,16032] to the end; not with 16 layers, 1344, nor 256128 words, 1500
 * of each end and 250). Seen in the order that the compiler writes down, all of it. */
static bool is_depth_late(const struct hb_lower *lo)
{
    int64_t head = hb_mul_sat(lo->spec->model.d_model, lo->local.vocab);
    int64_t ends = hb_add_sat(hb_mul_sat(2, state_bytes(lo, head)), hb_mul_sat(2, head));
    return state_bytes(lo, lo->largest_bytes / 4) > ends;
}

/* Tensor parallelism without fsdp. All have one stack and the casts; what is beside them, of r, a
 * residual: at the forward loop the other stack and three r, in post-order two; at the loss the
 * logits, three r and what the head's gradient ends in, its update or, beside data, a sum in bf16;
 * in the backward loop gradients twice and three r, or once and a layer's work, with that or the
 * logits, where they wait. The list has the zeros of all gradients all along, and takes the head's
 * gradient late if it writes more than the logits free. MiB, list, depth, post: 8B,t8 22148 19281
 * 19291, with 32000 words 22150 18812 18556, 16 sequences 39300 35972 35460, 4 13567 13803 13803;
 * 1B,t8 9949 9478 10574, 32 layers 18551 17619 17363; 1B,t4d2 8082 7027 8758, with 32000 words 5872
 * 5810 5749. */
bool hb_sequence_tensor_waits(const struct hb_lower *lo)
{
    return is_depth_late(lo);
}

/* Layers over fsdp, with or without tensor parallelism, that keep their inputs, a whole loss, a
 * head of its own. */
static bool is_plain_over_fsdp(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    const struct hb_remat *r = &s->model.blocks[0].remat;
    bool inputs = r->policy == HB_POLICY_FULL ||
                  (r->policy == HB_POLICY_NAMES && r->save == 0 && r->offload == 0);
    return inputs && !lo->maxtext && s->stack.form == HB_FORM_SCAN && s->batch.accumulate == 1 &&
           s->loss.chunks == 1 && !s->model.tied_embeddings && !s->loss.onehot &&
           s->model.blocks[0].moe.experts == 0;
}

bool hb_sequence_gathers_known(const struct hb_lower *lo)
{
    bool gathers = lo->gather_form == HB_GATHER_PADDED || lo->gather_form == HB_GATHER_LATE;
    return gathers && is_plain_over_fsdp(lo) && hb_ways(lo, HB_AX_TENSOR) == 1;
}

/* One sequence's waits for its sum to the end (gate/f48,d6k: f32[6144,32256] from 173 to 475 of
 * 490; ring/f64,s1024; 8B,f64,s2k,bf16 dot: bf16[4096,128256] from 308 to 845 of 860; not on v6e,
 * ring/v6e8x8,f64: from 167 to 168 of 541). */
static bool is_sum_late(const struct hb_lower *lo)
{
    return lo->local.batch == 1 && !lo->chip->head_summed_at_once;
}

/* At the forward loop stand both stacks and two residuals, in the list's order the zeros of all
 * gradients, too, and padded gathers of three weights of the MLP that post-order has not yet
 * (70B,f64 with adafactor, 4 sequences of 4096 tokens, 32000 words: list, depth, post 49453 44856
 * 43524). Without the stack that all have. */
struct floors {
    int64_t list, depth, post;
};

static struct floors find_floors(const struct hb_lower *lo)
{
    int64_t d = lo->spec->model.d_model, d_ff = lo->spec->model.blocks[0].mlp.d_ff;
    struct floors f = {.post = hb_add_sat(lo->input_bytes, hb_mul_sat(4 * d, lo->local.tokens))};
    bool padded = lo->gather_form == HB_GATHER_PADDED;
    f.depth = hb_add_sat(f.post, padded ? hb_mul_sat(6 * d, d_ff) : 0);
    f.list = hb_add_sat(f.depth, lo->stacked_grad_bytes);
    return f;
}

/* Gathers. The list makes the head's whole gradient, f32, at once where it frees more: the logits
 * and the last norm's input (f33,d4.2k; not gate/f48,d6k), beside both stacks; depth-first always,
 * beside the gathered head and its sum; post-order after the layers. MiB, list, depth, post:
 * 8B64/batch=128 8956 10471 8648; 8B,f64,b4 15201 16655 16215, b8 27704 29035 31349; 8B-L16,f64
 * with one sequence 4942 4737 4276, three 10195 11895 10553; f64,b2,v32k,L16 3117 3291 4274, v256k
 * 13572 17299 12332; v6e16x16,f256,b512 8424 10257 8086; gate/v6e,f8,s1024 1336 1183 1398,
 * f16,s512 879 1186 920; f33,d4.2k 1388 1839 1951. */
struct hb_sequence_gathers hb_sequence_gathers_find(const struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->head];
    struct hb_shape part = hb_leaf_layer_shape(l, HB_DT_F32, false);
    struct hb_shape gathered = hb_leaf_layer_shape(l, lo->compute, true);
    int64_t head = hb_shape_plain_bytes(&gathered), whole = hb_mul_sat(2, head);
    int64_t logits = hb_logit_bytes(lo, 4);
    int64_t resid = hb_mul_sat(2 * lo->spec->model.d_model, lo->local.tokens);
    int64_t stacks = hb_add_sat(lo->stacked_grad_bytes, lo->input_bytes);
    int64_t back = hb_add_sat(stacks, hb_sequence_layer_bytes(lo));
    int64_t held = hb_add_sat(logits, hb_mul_sat(2, resid));
    bool early = whole <= hb_add_sat(logits, resid);
    int64_t loss = hb_add_sat(hb_add_sat(stacks, whole), hb_add_sat(held, resid));
    int64_t list = early ? hb_larger(loss, back) : hb_add_sat(back, held);
    bool waits = is_sum_late(lo);
    int64_t sum = hb_head_sum_scattered(lo) ? hb_shape_plain_bytes(&part) : head;
    int64_t depth = hb_add_sat(hb_add_sat(lo->input_bytes, whole), held);
    depth = hb_add_sat(depth, waits ? 0 : hb_add_sat(head, sum));
    depth = hb_larger(depth, waits ? hb_add_sat(back, whole) : back);
    int64_t post = hb_add_sat(hb_add_sat(lo->stacked_grad_bytes, whole), held);
    post = hb_larger(post, hb_add_sat(back, held));
    struct floors f = find_floors(lo); /* beside the stack that these have */
    list = hb_larger(list, hb_add_sat(f.list, lo->input_bytes));
    depth = hb_larger(depth, hb_add_sat(f.depth, lo->input_bytes));
    post = hb_larger(post, hb_add_sat(f.post, lo->input_bytes));
    if (depth < list && depth < post)
        return (struct hb_sequence_gathers){.depth = true, .sum_waits = waits};
    return (struct hb_sequence_gathers){.logits_wait = post < list || !early, .post = post < list};
}

/* Beside tensor parallelism the forward loop has a residual less in post-order, which is least
 * where that is the most of all (8B,v6e8x8,f32t2 with lion, four sequences of 4096 tokens, 32000
 * words: list, depth, post 9345 8782 8659, bf16[4,4096,16000] to the end). */
bool hb_sequence_post_tensor(const struct hb_lower *lo)
{
    bool apart = lo->gather_form == HB_GATHER_PADDED || lo->gather_form == HB_GATHER_LATE;
    bool rings = lo->fsdp_mode == HB_WEIGHT_RING && hb_head_ring(lo);
    if ((!apart && !rings) || !is_plain_over_fsdp(lo) || hb_ways(lo, HB_AX_TENSOR) == 1 ||
        lo->local.batch_ways != hb_fsdp_ways(lo, false) || lo->local.resid_seq < lo->local.seq)
        return false;
    int64_t grads = lo->stacked_grad_bytes, d = lo->spec->model.d_model;
    int64_t logits = hb_logit_bytes(lo, 4);
    int64_t three = hb_mul_sat(6 * d, lo->local.tokens);
    int64_t back = hb_larger(hb_add_sat(hb_mul_sat(2, grads), three),
                             hb_add_sat(grads, tensor_layer_bytes(lo)));
    return find_floors(lo).post > hb_add_sat(hb_add_sat(back, logits), three);
}

bool hb_sequence_gathers_post(const struct hb_lower *lo)
{
    return hb_sequence_gathers_known(lo) && hb_sequence_gathers_find(lo).post;
}

/* What the head's update writes, and the norm's input and result beside it. */
static int64_t update_bytes(const struct hb_lower *lo)
{
    int64_t d = lo->spec->model.d_model;
    int64_t state = state_bytes(lo, hb_mul_sat(d, lo->local.vocab));
    return hb_add_sat(state, hb_mul_sat(6 * d, lo->local.tokens));
}

/* Heads apart: the walk's ties go by the names of fusions, which other optimizers, casts at the
 * start, nan_to_num and narrow heads change. */
static bool are_heads_first(const struct hb_spec *s)
{
    const struct hb_attention *a = &s->model.blocks[0].attention;
    return a->split_heads && a->head_dim % HB_TPU_LANES == 0 && !s->step.nan_to_num;
}

static bool is_head_late(const struct hb_spec *s)
{
    return s->precision.master || are_heads_first(s);
}

static bool is_known_alone(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    bool whole = s->loss.chunks == 1 && s->loss.dot == HB_DT_F32 && !s->loss.onehot;
    return lo->habits->rings && !lo->maxtext && hb_alone(lo) && whole && s->batch.accumulate == 1 &&
           !s->model.tied_embeddings && s->stack.form == HB_FORM_SCAN &&
           s->model.blocks[0].moe.experts == 0;
}

/* One device: depth-first takes the head's product as soon as it can, and is least (tinyS: list
 * 2891, depth 2697, post 3178), unless its walk meets the layers first: with a master copy, and
 * with heads apart (tinyS of 4 sequences, list, depth, post: 1785 1580 1754; head3d 1785 1754 1754,
 * with n_kv=4, ema or bf16 softmax alike; bf16 and master 1521 1419 1419; not head3d with clip,
 * sgd, momentum, nan_to_num, cast=upfront or heads of 64; tinyS/head3d, 8 sequences, 2891 3198
 * 3178). Against the list's update at the loss stands then the layers' backward pass. */
bool hb_sequence_post_alone(const struct hb_lower *lo)
{
    bool late = is_head_late(lo->spec);
    return is_known_alone(lo) && late &&
           hb_larger(lo->stacked_grad_bytes, hb_sequence_layer_bytes(lo)) < update_bytes(lo);
}

/* Scores without a kernel: in the list's order their probabilities are gone when their gradient is
 * made, but the zeros of all gradients are beside the loss (list, depth: tiny/base 4089 4960,
 * batch=4 2215 2625, tinyS/attn=naive 2891 2912; seq=1024 1785 1601, seq=512 1222 1017). */
bool hb_sequence_depth_alone(const struct hb_lower *lo)
{
    const struct hb_optim *o = &lo->spec->optimizer;
    bool hosted = o->offload == HB_PLACE_PINNED_HOST;
    if (hosted && hb_alone(lo))
        return false;
    const struct hb_attention *a = &lo->spec->model.blocks[0].attention;
    bool scatters = lo->local.batch == 1; /* tiny/batch=1: the label's gradient is another tensor */
    if (!is_known_alone(lo) || is_head_late(lo->spec) || a->kernel != HB_KERNEL_NAIVE || scatters)
        return false;
    int64_t logits = hb_logit_bytes(lo, 4);
    int64_t loss = hb_add_sat(logits, update_bytes(lo));
    int64_t back = hb_add_sat(lo->stacked_grad_bytes, hb_sequence_layer_bytes(lo));
    int64_t list = hb_larger(hb_add_sat(lo->stacked_grad_bytes, loss), back);
    int64_t more = hb_mul_sat(2 * a->heads, hb_mul_sat(lo->local.tokens, lo->spec->batch.seq));
    return hb_larger(loss, hb_add_sat(back, more)) < list;
}

/* Beside tensor parallelism between late gathers and those beside the products as well
 * (8B,f64t4,chunk4 on v5e, v6e and v5p: list, depth, post 8874 8629 8506; f64t2 9038 8679 8556; not
 * with eight layers, 2609 2445 2937). With layer inputs on the host depth-first is no more than
 * that, unless in an accumulation loop (8B,v5e,f64t4 with offload:layer_in, chunk4: 8762 both). */
static bool is_post_possible(const struct hb_lower *lo)
{
    bool apart = lo->gather_form == HB_GATHER_LATE || lo->gather_form == HB_GATHER_BESIDE;
    return lo->gather_form == HB_GATHER_PADDED || (apart && hb_ways(lo, HB_AX_TENSOR) > 1);
}

/* Between padded gathers the forward loop begins with its stacks twice, and with gathered weights
 * that post-order has not yet: where that exceeds the loss, post-order is least (real/70B,f128:
 * 25226 23015 22124, its head's gradient, f32[8192,128256], beside the gathered head and the
 * logits; 8B64/loss=chunk with 128 layers 11254 9524 9442; not with 32, 4839 4419 5679, nor
 * 8B,f64,b4,chunk8,s2048, 5976 5556 7061). A word of the head: its gradient, that
 * summed, the gathered head; three weights of the MLP. */
bool hb_sequence_post_chunks(const struct hb_lower *lo)
{
    enum { HEAD_BYTES = 8, WEIGHT_BYTES = 6 };
    if (!is_post_possible(lo) || lo->maxtext || lo->spec->loss.dot != HB_DT_F32)
        return false;
    int64_t d = lo->spec->model.d_model;
    int64_t logits = hb_logit_bytes(lo, 4);
    int64_t loss =
        hb_add_sat(hb_mul_sat(HEAD_BYTES * d, lo->local.vocab), logits / lo->spec->loss.chunks);
    int64_t weights = hb_mul_sat(WEIGHT_BYTES * d, lo->spec->model.blocks[0].mlp.d_ff) /
                      hb_ways(lo, HB_AX_TENSOR);
    return hb_add_sat(lo->input_bytes, weights) > loss;
}

/* As the list has both stacks of what is kept at the layers' loop (list, depth, post: bwd/base 1063
 * 1176 1176, mlp_act 1381 1442 1432; dots 3111 2845 2845, offload:q,k,v with attn_ctx 1964 1903
 * 1811). */
bool hb_sequence_stacks_exceed(const struct hb_lower *lo)
{
    return lo->habits->rings && !lo->maxtext && hb_alone(lo) && lo->spec->batch.accumulate == 1 &&
           lo->spec->stack.form == HB_FORM_SCAN &&
           hb_sequence_kept_bytes(lo) > hb_sequence_layer_bytes(lo);
}

/* Stages alone: the list has both stacks and five of an iteration's inputs and outputs beside the
 * gradients of all iterations and of one; depth-first one stack, two of those, the last norm's
 * result, an iteration's gradients twice, casts and a layer's work (list, depth, post: PPc with
 * n_micro=16 and 2048 tokens a microbatch 4354 4508 4508, 2560 4590 4785 4785, 3072 4948 5061 5061,
 * 4096 5942 5604 5809; eight of 8192 6555 5992 6432, 32 of 4096 9269 7395 9136). */
static bool are_stages_deep(const struct hb_lower *lo)
{
    const struct hb_spec *s = lo->spec;
    int64_t stages = hb_ways(lo, HB_AX_PIPELINE), micro = s->pipeline.microbatches;
    if (!lo->habits->rings)
        return false;
    const struct hb_block *b = &s->model.blocks[0];
    int64_t tokens = hb_div_up(lo->local.tokens, micro), d = s->model.d_model;
    int64_t layers = lo->input_bytes / hb_mul_sat(2 * d, lo->local.tokens) / stages;
    int64_t runs = hb_mul_sat(layers, hb_add_sat(micro, stages - 1));
    int64_t stack = hb_mul_sat(2 * hb_order_kept_width(lo, b), hb_mul_sat(tokens, runs));
    int64_t grads = lo->stacked_grad_bytes;
    int64_t work = hb_mul_sat(2 * tokens, hb_add_sat(b->mlp.d_ff, hb_mul_sat(3, d)));
    int64_t depth = hb_add_sat(hb_add_sat(grads, grads / 2), work);
    depth = hb_add_sat(depth, hb_mul_sat(2 * d, lo->local.tokens));
    return hb_add_sat(stack, hb_mul_sat(2, stack / 3)) > depth;
}

/* Sharded, nothing waits for the loss itself: its loop comes last, and reads this again
 * (70B,f128: bf16[2,4096,8192] to the end; nor between stages beside data alone, PPc/dp=2: no
 * bf16[8,2048,2048] in the backward pass; with tp=2 one). On one TPU it does depth-first
 * (bwd/remat=dots: bf16[8,2048,1024] and the head's cast from 214 and 217 to 673 of 700). */
bool hb_sequence_loss_last(const struct hb_lower *lo)
{
    bool stages = hb_ways(lo, HB_AX_PIPELINE) > 1;
    bool alone = lo->local.batch_ways == 1 && hb_ways(lo, HB_AX_TENSOR) == 1;
    if (!alone)
        return !stages || hb_fsdp_ways(lo, false) > 1 || hb_ways(lo, HB_AX_TENSOR) > 1;
    return stages ? are_stages_deep(lo) : hb_sequence_stacks_exceed(lo);
}
