/* Muon: see muon.h. */
#include "sim/ir/muon.h"

#include "base/arena.h"
#include "base/size.h"
#include "sim/ir/again.h"
#include "sim/ir/head.h"
#include "sim/ir/sequence.h"
#include "sim/ir/weight.h"

enum { MUON_MIN = 128 };

bool hb_muon_takes(const struct hb_lower *lo, const struct hb_leaf *l)
{
    if (lo->spec->optimizer.name != HB_OPT_MUON || l->rank < 2)
        return false;
    if (lo->spec->optimizer.others == HB_OTHERS_ADAMW && l->end)
        return false;
    return l->dim[l->rank - 1].size >= MUON_MIN && l->dim[l->rank - 2].size >= MUON_MIN;
}

/* The dimension that a matrix's product with its transpose sums over: the longer one. */
static int summed_dim(const struct hb_leaf *l)
{
    int rows = l->rank - 2, cols = l->rank - 1;
    return l->dim[rows].size > l->dim[cols].size ? rows : cols;
}

static int kept_dim(const struct hb_leaf *l)
{
    return 2 * l->rank - 3 - summed_dim(l);
}

static bool is_by_dimension(const struct hb_lower *lo)
{
    return lo->habits->muon_sums_squares;
}

/* Where that one is split XLA:GPU sums squares of the parts and gathers nothing for it (8B,f16,
 * muon,clip: wk's and wv's all-reduce bf16[32,1024,1024]; experts of 2048 and 1024 over fsdp 16:
 * bf16[8,64,1024,1024], of 4096 and 6400 none). */
static bool sums_squares(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return is_by_dimension(lo) && l->dim[summed_dim(l)].ways > 1;
}

static bool is_gathered(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return hb_weight_mode(lo, l) == HB_WEIGHT_GATHER;
}

static bool gathers_rows(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return is_by_dimension(lo) ? l->dim[kept_dim(l)].ways > 1 : is_gathered(lo, l);
}

static struct hb_shape gathered_momentum(const struct hb_lower *lo, const struct hb_leaf *l)
{
    struct hb_leaf whole = *l;
    if (is_by_dimension(lo))
        whole.dim[kept_dim(l)].ways = 1;
    else if (l->gather_dim >= 0 && gathers_rows(lo, l)) /* experts may lie in no parts */
        whole.dim[whole.gather_dim].ways /= whole.fsdp_ways;
    return hb_leaf_shape(&whole, HB_DT_BF16);
}

static uint32_t muon_temp(struct hb_lower *lo, const struct hb_leaf *l, const char *what,
                          struct hb_shape shape)
{
    return hb_temp(lo, hb_name(lo, l->name, what), HB_CAT_OPTIMIZER, shape);
}

/* The product of a matrix with its transpose: square, of the dimension that is shorter over all
 * devices (8B,v5e16x16,f64t4: bf16[32,4096,4096] of bf16[32,4096,3584]). */
static struct hb_shape square_of(const struct hb_leaf *l, struct hb_shape x)
{
    int a = x.rank - 2, b = x.rank - 1;
    bool rows = l->dim[l->rank - 2].size <= l->dim[l->rank - 1].size;
    x.dim[a] = x.dim[b] = rows ? x.dim[a] : x.dim[b];
    return x;
}

/* Of one pass over the elements of x: its products with its transpose, of that square with itself
 * and with x. Where x is split, along whichever dimension, each device makes its part of them: the
 * square is of the whole matrix. */
static double pass_flops(const struct hb_leaf *l, struct hb_shape x)
{
    enum { PRODUCTS = 6 };
    int64_t a = l->dim[l->rank - 2].size, b = l->dim[l->rank - 1].size;
    return PRODUCTS * (double)hb_shape_elements(&x) * (double)hb_smaller(a, b);
}

/* Newton-Schulz on the momentum. XLA:GPU's products take the gathered stack or its transpose, one
 * of the two at a time (70B,f64,muon,s2k on ROCm: 35840), CUDA's with the square beside (35840 +
 * 10240); XLA:TPU's gathers are passes of their own (see below); rings work on the shards, from
 * turned copies of the momentum; on one device stack, next iterate and square stand together. */
void hb_muon_orthogonalise(struct hb_lower *lo, const struct hb_leaf *l, struct hb_emit *e)
{
    struct hb_shape x = gathered_momentum(lo, l);
    bool timed = is_gathered(lo, l) && lo->habits->gathers_timed;
    e->kind = HB_OP_MATMUL;
    e->flops = HB_MUON_ALL * pass_flops(l, x);
    if (l->iterate[0] != HB_NONE) {
        struct hb_shape share = hb_leaf_shape(l, HB_DT_BF16);
        hb_emit_write(e, muon_temp(lo, l, ", last muon iterate", share));
        e->flops = (HB_MUON_ALL - l->muon_passes) * pass_flops(l, share);
        return;
    }
    hb_emit_write(e, muon_temp(lo, l, ", muon iterate", x));
    /* Beside its transpose where the limit allows it, else beside its square. */
    int64_t both = hb_mul_sat(2, hb_shape_plain_bytes(&x));
    if (timed && both <= hb_again_limit(lo->p, lo->hbm_bytes, false))
        hb_emit_write(e, muon_temp(lo, l, ", muon iterate, transposed", x));
    else if (timed)
        hb_emit_write(e, muon_temp(lo, l, ", muon square", square_of(l, x)));
}

static uint32_t gather_iterate(struct hb_lower *lo, const struct hb_leaf *l, uint32_t part,
                               struct hb_shape whole)
{
    uint32_t result = muon_temp(lo, l, ", muon iterate, gathered", whole);
    hb_emit_collective(lo, HB_OP_ALL_GATHER, HB_AX_FSDP, hb_name(lo, "gather iterate of ", l->name),
                       part, result);
    lo->p->ops[lo->p->op_count - 1].group = l->fsdp_ways;
    return result;
}

/* Zeros that a padded gather's own part goes into, there before it. */
static uint32_t zero_whole(struct hb_lower *lo, const struct hb_leaf *l, struct hb_shape whole)
{
    if (!hb_gathers_padded(lo))
        return HB_NONE;
    uint32_t zeros = muon_temp(lo, l, ", muon iterate, padded with zeros", whole);
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "zeros for an iterate", HB_NONE, zeros);
    return zeros;
}

static uint32_t new_share(struct hb_lower *lo, const struct hb_leaf *l)
{
    return muon_temp(lo, l, ", share of the muon iterate", hb_leaf_shape(l, HB_DT_BF16));
}

/* The next share, from the last one or the momentum, its gathered stack and the polynomial of the
 * square. Returns what is gathered. */
static uint32_t next_iterate(struct hb_lower *lo, struct hb_leaf *l, uint32_t zeros)
{
    struct hb_emit e = {.name = hb_name(lo, "iterate of ", l->name), .kind = HB_OP_ELEMENTWISE};
    hb_emit_read(&e, l->grad != HB_NONE ? l->grad : l->moment[0]);
    hb_emit_read(&e, l->iterate[0]);
    hb_emit_read(&e, l->iterate[1]);
    hb_emit_read(&e, zeros);
    l->grad = new_share(lo, l);
    hb_emit_write(&e, l->grad);
    hb_emit(lo, &e);
    return zeros == HB_NONE ? l->grad : zeros;
}

/* A pass of XLA:TPU between gathers: of the iterate, then of its square, one at a time (8B,v6e8x8,
 * f64: bf16[32,4096,14336], then bf16[32,4096,4096] beside it). Padded with zeros and summed, both
 * twice, the next beside the last (8B,f64: bf16[32,4096,14336] from 1005 to 1018 and 1016 to 1020,
 * 1020 to 1033; bf16[32,4096,4096] from 1007 to 1012 and to 1014, its share from 1008 to 1017). */
static void iterate_once(struct hb_lower *lo, struct hb_leaf *l)
{
    struct hb_shape whole = gathered_momentum(lo, l);
    l->iterate[0] = gather_iterate(lo, l, next_iterate(lo, l, zero_whole(lo, l, whole)), whole);
    struct hb_shape square = square_of(l, whole), part = square;
    part.dim[part.rank - 2] = hb_div_up(part.dim[part.rank - 2], l->fsdp_ways);
    uint32_t zeros = zero_whole(lo, l, square);
    struct hb_emit e = {.name = hb_name(lo, "square of ", l->name),
                        .kind = HB_OP_MATMUL,
                        .flops = pass_flops(l, whole) / (double)l->fsdp_ways};
    hb_emit_read(&e, l->iterate[0]);
    hb_emit_read(&e, zeros);
    l->iterate[1] = muon_temp(lo, l, ", share of the muon square", part);
    hb_emit_write(&e, l->iterate[1]);
    hb_emit(lo, &e);
    uint32_t part_or_zeros = zeros == HB_NONE ? l->iterate[1] : zeros;
    hb_emit_mark(lo, "polynomial of the square", gather_iterate(lo, l, part_or_zeros, square),
                 HB_NONE);
    l->muon_passes++;
}

/* A matrix that is split along the dimension summed over is not gathered: a device's part of the
 * square is summed in its place, and the next share is made of that (experts of olmoe, fsdp 16 of
 * v5p: bf16[16,64,1024,1024] ten times from 649 on, none of 2048 by 1024). */
static void iterate_summed(struct hb_lower *lo, struct hb_leaf *l)
{
    struct hb_shape share = hb_leaf_shape(l, HB_DT_BF16), own = square_of(l, share);
    uint32_t square = muon_temp(lo, l, ", muon square", own);
    struct hb_emit e = {.name = hb_name(lo, "square of ", l->name),
                        .kind = HB_OP_MATMUL,
                        .flops = (2 * pass_flops(l, share) + pass_flops(l, own)) / 3};
    hb_emit_read(&e, l->grad != HB_NONE ? l->grad : l->moment[0]);
    hb_emit_write(&e, square);
    hb_emit(lo, &e);
    l->iterate[1] =
        hb_temp_in_place(lo, hb_name(lo, l->name, ", muon square"), HB_CAT_OPTIMIZER, square);
    hb_emit_collective(lo, HB_OP_ALL_REDUCE, HB_AX_FSDP, hb_name(lo, "sum square of ", l->name),
                       square, l->iterate[1]);
    l->iterate[0] = next_iterate(lo, l, HB_NONE);
    l->muon_passes++;
}

void hb_muon_iterate(struct hb_lower *lo, struct hb_leaf *l)
{
    if (!hb_muon_takes(lo, l) || !is_gathered(lo, l) || !lo->habits->rings)
        return;
    while (l->muon_passes < HB_MUON_ALL)
        if (l->gather_dim == summed_dim(l))
            iterate_summed(lo, l);
        else
            iterate_once(lo, l);
}

/* --- XLA:CUDA: together --- */

/* A leaf on its way through a pass. */
struct together {
    struct hb_leaf *leaf;
    uint32_t share;    /* of the iterate */
    uint32_t whole[2]; /* gathered for the square, and for its product with the iterate; HB_NONE */
    uint32_t square;   /* or the polynomial of it; HB_NONE */
};

static bool goes_together(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return hb_muon_takes(lo, l) && (sums_squares(lo, l) || gathers_rows(lo, l));
}

/* What the polynomial's product with the iterate reads of it: all rows or, where the data axis has
 * no fewer devices than those over which they lie, one's part of them, and the products are summed
 * over data (8 layers of 8B over data 4 and fsdp 2 or 4, data 8 and fsdp 4: bf16[8,14336,4096]
 * three times for the squares, none of bf16[8,4096,14336]; over data 2 and fsdp 4 both). */
static struct hb_shape product_rows(const struct hb_lower *lo, const struct hb_leaf *l)
{
    struct hb_shape x = gathered_momentum(lo, l);
    int at = x.rank - l->rank + kept_dim(l);
    int64_t data = hb_ways(lo, HB_AX_DATA);
    if (data >= l->dim[kept_dim(l)].ways)
        x.dim[at] = hb_div_up(x.dim[at], data);
    return x;
}

/* The iterate with its square. */
static int64_t standing_bytes(const struct hb_lower *lo, const struct hb_leaf *l)
{
    struct hb_shape x = gathered_momentum(lo, l), square = square_of(l, x);
    return hb_add_sat(hb_shape_plain_bytes(&x), hb_shape_plain_bytes(&square));
}

/* All of it where the scheduler's limit holds the iterates of all leaves; else what the device has
 * beside the largest with its square: the limit, a fifth less, is exceeded then (llama70b, fsdp 32:
 * 71.6 GiB; phimoe, fsdp 64: 68.6). */
enum { OVER = 5 };

static int64_t room_together(const struct hb_lower *lo)
{
    int64_t limit = hb_again_limit(lo->p, lo->hbm_bytes, false), most = 0, all = 0;
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        const struct hb_leaf *l = &lo->leaves[i];
        if (!goes_together(lo, l))
            continue;
        all = hb_add_sat(all, standing_bytes(lo, l));
        most = hb_larger(most, standing_bytes(lo, l));
    }
    return all <= limit ? all : limit + lo->hbm_bytes / OVER - most;
}

static uint32_t gather_over(struct hb_lower *lo, const struct hb_leaf *l, uint32_t part,
                            const char *what, struct hb_shape whole)
{
    enum hb_axis axis = l->gather_dim == kept_dim(l) ? HB_AX_FSDP : HB_AX_TENSOR;
    uint32_t out = muon_temp(lo, l, what, whole);
    hb_emit_collective(lo, HB_OP_ALL_GATHER, axis, hb_name(lo, "gather iterate of ", l->name), part,
                       out);
    return out;
}

/* The new momentum lies where the old one did, or where rows are gathered beside it, turned, to the
 * end (llama3b, fsdp 8: f32[384,28,8192] and bf16[384,28,8192] of w_gate and w_up). */
static void renew_momentum(struct hb_lower *lo, struct together *t)
{
    struct hb_leaf *l = t->leaf;
    struct hb_emit e = {.name = hb_name(lo, "momentum of ", l->name), .kind = HB_OP_ELEMENTWISE};
    hb_emit_read(&e, l->grad);
    hb_emit_read(&e, l->accum);
    hb_emit_read(&e, l->moment[0]);
    t->share = new_share(lo, l);
    hb_emit_write(&e, t->share);
    if (!l->end && l->gather_dim == l->rank - 2 && gathers_rows(lo, l)) {
        l->momentum_copy = muon_temp(lo, l, ", new momentum, turned", hb_leaf_shape(l, HB_DT_F32));
        hb_emit_write(&e, l->momentum_copy);
    }
    hb_emit(lo, &e);
    l->grad = l->accum = HB_NONE;
}

/* The iterate times its transpose: of gathered rows each device's own, of split columns summed. */
static void make_square(struct hb_lower *lo, struct together *t)
{
    struct hb_leaf *l = t->leaf;
    struct hb_shape s = square_of(l, gathered_momentum(lo, l));
    s.dim[s.rank - 2] = hb_div_up(s.dim[s.rank - 2], l->dim[kept_dim(l)].ways);
    t->square = muon_temp(lo, l, ", muon square", s);
    hb_emit_simple(lo, HB_OP_MATMUL, hb_name(lo, "square of ", l->name),
                   t->whole[0] == HB_NONE ? t->share : t->whole[0], t->square);
    t->whole[0] = HB_NONE;
    if (!sums_squares(lo, l))
        return;
    enum hb_axis axis = l->gather_dim == summed_dim(l) ? HB_AX_FSDP : HB_AX_TENSOR;
    uint32_t sum =
        hb_temp_in_place(lo, hb_name(lo, l->name, ", muon square"), HB_CAT_OPTIMIZER, t->square);
    hb_emit_collective(lo, HB_OP_ALL_REDUCE, axis, hb_name(lo, "sum square of ", l->name),
                       t->square, sum);
    t->square = sum;
}

/* b A + c A A: of gathered rows each device's own, with all of A. */
static void make_polynomial(struct hb_lower *lo, struct together *t)
{
    struct hb_leaf *l = t->leaf;
    struct hb_emit e = {.name = hb_name(lo, "polynomial of ", l->name), .kind = HB_OP_MATMUL};
    hb_emit_read(&e, t->square);
    if (gathers_rows(lo, l))
        hb_emit_read(&e, gather_over(lo, l, t->square, ", muon square, gathered",
                                     square_of(l, gathered_momentum(lo, l))));
    t->square = muon_temp(lo, l, ", muon polynomial", hb_buf_shape(lo, t->square));
    hb_emit_write(&e, t->square);
    hb_emit(lo, &e);
}

static void begin_turn(struct hb_lower *lo, struct together *t)
{
    for (int k = 0; k < 2 && gathers_rows(lo, t->leaf); k++)
        t->whole[k] = gather_over(lo, t->leaf, t->share, ", muon iterate, gathered",
                                  k ? product_rows(lo, t->leaf) : gathered_momentum(lo, t->leaf));
    if (!gathers_rows(lo, t->leaf))
        make_square(lo, t);
}

static void finish_turn(struct hb_lower *lo, struct together *t)
{
    struct hb_leaf *l = t->leaf;
    if (!gathers_rows(lo, l))
        make_polynomial(lo, t);
    struct hb_emit e = {.name = hb_name(lo, "iterate of ", l->name), .kind = HB_OP_MATMUL};
    hb_emit_read(&e, t->share);
    hb_emit_read(&e, t->square);
    hb_emit_read(&e, t->whole[1]);
    t->share = new_share(lo, l);
    hb_emit_write(&e, t->share);
    e.flops = pass_flops(l, hb_leaf_shape(l, HB_DT_BF16));
    hb_emit(lo, &e);
    t->square = t->whole[1] = HB_NONE;
    l->muon_passes++;
}

/* A pass over leaves of one kind: each ends as the next one's collectives are under way. */
static void pass_in_turn(struct hb_lower *lo, struct together *all, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].square != HB_NONE)
            finish_turn(lo, &all[i]);
        begin_turn(lo, &all[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        if (gathers_rows(lo, all[i].leaf))
            make_square(lo, &all[i]);
    for (uint32_t i = 0; i < count; i++)
        if (gathers_rows(lo, all[i].leaf))
            make_polynomial(lo, &all[i]);
}

/* What is left of the last pass is the update's. */
static void leave_last(struct together *all, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        all[i].leaf->grad = all[i].share;
        all[i].leaf->iterate[0] = all[i].square;
        all[i].leaf->iterate[1] = all[i].whole[1];
    }
}

/* CUDA's scheduler, which has collectives to hide, takes the leaves in turn. Gathered are all
 * iterates and their transposes before a square is made of one (qwen7b, fsdp 32: three times each);
 * of summed squares each stands beside the square of one (qwen3-30b, fsdp 8 with expert 2: three
 * bf16[48,64,768,768]), in all five passes, while the last transposes of the others wait. */
static void iterate_in_turn(struct hb_lower *lo, struct together *all, uint32_t gathered,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        renew_momentum(lo, &all[i]);
    for (int pass = 0; pass < HB_MUON_ALL; pass++)
        pass_in_turn(lo, all, gathered);
    for (int pass = 0; pass < HB_MUON_ALL; pass++)
        pass_in_turn(lo, all + gathered, count - gathered);
    leave_last(all, count);
}

/* The smallest leaf that is not among them; HB_NONE. */
static uint32_t next_smallest(const struct hb_lower *lo, const bool *chosen)
{
    uint32_t next = HB_NONE;
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        const struct hb_leaf *l = &lo->leaves[i];
        if (chosen[i] || !goes_together(lo, l))
            continue;
        if (next == HB_NONE || standing_bytes(lo, l) < standing_bytes(lo, &lo->leaves[next]))
            next = i;
    }
    return next;
}

void hb_muon_gather(struct hb_lower *lo)
{
    if (!lo->habits->gathers_timed)
        return;
    int64_t room = room_together(lo);
    bool *chosen = hb_arena_alloc(lo->arena, lo->leaf_count, sizeof *chosen);
    for (uint32_t i; (i = next_smallest(lo, chosen)) != HB_NONE;) {
        room -= standing_bytes(lo, &lo->leaves[i]);
        if (room < 0)
            break;
        chosen[i] = true;
    }
    struct together *all = hb_arena_alloc(lo->arena, lo->leaf_count, sizeof *all);
    uint32_t gathered = 0, count = 0;
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < lo->leaf_count; i++)
            if (chosen[i] && gathers_rows(lo, &lo->leaves[i]) == (turn == 0))
                all[count++] = (struct together){
                    .leaf = &lo->leaves[i], .whole = {HB_NONE, HB_NONE}, .square = HB_NONE};
        gathered = turn == 0 ? count : gathered;
    }
    iterate_in_turn(lo, all, gathered, count);
}

bool hb_muon_goes_first(const struct hb_lower *lo, const struct hb_leaf *l)
{
    return lo->habits->gathers_timed && goes_together(lo, l) && l->muon_passes == 0;
}

/* Whether the step runs in the list's order (sequence.h). Between plain gathers: where the layers'
 * gradients beside the zeros that they start from exceed the loss, the logits and the head's whole
 * gradient (list, depth: rnd/070 over data 2 and fsdp 8, chunked, 14193 14531). */
static bool is_list(const struct hb_lower *lo)
{
    if (hb_in_rings(lo))
        return hb_head_copy_waits(lo);
    if (!lo->habits->rings)
        return false;
    int64_t vocab = hb_mul_sat(4, lo->local.vocab);
    int64_t loss = hb_mul_sat(vocab, lo->local.tokens) / lo->spec->loss.chunks;
    loss = hb_add_sat(loss, hb_mul_sat(vocab, lo->spec->model.d_model));
    return hb_mul_sat(2, lo->stacked_grad_bytes) >= loss;
}

/* Matrices whose rows fsdp splits, and the table, but square ones and the head. */
static bool is_turned(const struct hb_lower *lo, uint32_t i)
{
    const struct hb_leaf *l = &lo->leaves[i];
    if (!hb_muon_takes(lo, l))
        return false;
    bool rows = l->gather_dim == l->rank - 2 && i != lo->head;
    bool square = l->dim[l->rank - 1].size == l->dim[l->rank - 2].size;
    return i == lo->embed || (rows && !square);
}

static uint32_t copy_state(struct hb_lower *lo, const struct hb_leaf *l, const char *what,
                           uint32_t state)
{
    uint32_t copy = muon_temp(lo, l, what, hb_leaf_shape(l, HB_DT_F32));
    hb_emit_simple(lo, HB_OP_COPY, "copy to another layout", state, copy);
    return copy;
}

/* Weights and momenta that the iterations read in another layout; one of several alike has its
 * momentum from the gradient, where that is updated as it is made (8B,muon: three f32[32,512,14336]
 * of gate and up). Depth-first only when all gradients are there. */
static void copy_turned(struct hb_lower *lo)
{
    bool fused = !hb_updates_wait(lo);
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (!is_turned(lo, i))
            continue;
        if (!fused || i == 0 || !hb_leaf_is_alike(l, &lo->leaves[i - 1]))
            l->momentum_copy = copy_state(lo, l, ", momentum in another layout", l->moment[0]);
        if (l->param_copy == HB_NONE)
            l->param_copy = copy_state(lo, l, ", weight in another layout",
                                       l->master != HB_NONE ? l->master : l->arg);
    }
}

void hb_muon_copy_first(struct hb_lower *lo)
{
    if (is_list(lo))
        copy_turned(lo);
}

/* Where XLA:TPU gathers the iterates, all momenta are renewed first, in place, and the gradients
 * are gone (8B,f64: f32[32,64,14336] to 676 of 1558). Those of shards with a row of lanes come in
 * another layout and are turned at the end (70B,f64: two f32[80,128,28672] from 680 to 1377). */
void hb_muon_begin(struct hb_lower *lo)
{
    for (uint32_t i = 0; i < lo->leaf_count; i++) {
        struct hb_leaf *l = &lo->leaves[i];
        if (!hb_muon_takes(lo, l) || !is_gathered(lo, l) || !lo->habits->rings ||
            l->grad == HB_NONE)
            continue;
        struct hb_emit e = {.name = hb_name(lo, "momentum of ", l->name),
                            .kind = HB_OP_ELEMENTWISE};
        hb_emit_read(&e, l->grad);
        hb_emit_read(&e, l->moment[0]);
        if (l->momentum_copy == HB_NONE && is_turned(lo, i)) {
            l->momentum_copy =
                muon_temp(lo, l, ", new momentum, turned", hb_leaf_shape(l, HB_DT_F32));
            hb_emit_write(&e, l->momentum_copy);
        }
        hb_emit(lo, &e);
        l->grad = HB_NONE;
    }
}
