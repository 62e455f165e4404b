/* Leaves of both ends, and the embedding: see ends.h. */
#include "sim/ir/ends.h"

#include "base/size.h"
#include "base/str.h"
#include "sim/ir/chunks.h"
#include "sim/ir/head.h"
#include "sim/ir/loss.h"
#include "sim/ir/optim.h"
#include "sim/ir/order.h"
#include "sim/ir/weight.h"

/* Of words and features, which fsdp splits; in either order. */
static struct hb_leaf make_table(const struct hb_lower *lo, const char *name, struct hb_split words,
                                 bool turned)
{
    int64_t fsdp = hb_fsdp_ways(lo, false);
    struct hb_leaf l = {.name = name,
                        .rank = 2,
                        .copies = 1,
                        .matrix = true,
                        .end = true,
                        .gather_dim = fsdp > 1 ? !turned : -1,
                        .fsdp_ways = fsdp};
    l.dim[turned] = words;
    l.dim[!turned] = (struct hb_split){lo->spec->model.d_model, fsdp};
    return l;
}

void hb_ends_leaves(struct hb_lower *lo)
{
    const struct hb_model *m = &lo->spec->model;
    struct hb_split words = {m->vocab,
                             lo->spec->sharding.vocab_over_tensor ? hb_ways(lo, HB_AX_TENSOR) : 1};
    struct hb_leaf norm = {.name = "final norm",
                           .rank = 1,
                           .copies = 1,
                           .gather_dim = -1,
                           .fsdp_ways = 1,
                           .end = true};
    norm.dim[0] = (struct hb_split){m->d_model, 1};
    if (lo->spec->sharding.norms == HB_NORMS_FSDP)
        norm.dim[0].ways = hb_fsdp_ways(lo, false);
    lo->embed = hb_leaf_add(lo, make_table(lo, "embedding", words, false));
    lo->norm = hb_leaf_add(lo, norm);
    norm.name = "final norm's bias";
    if (m->blocks[m->block_count - 1].norm == HB_NORM_LAYER)
        hb_leaf_add(lo, norm);
    lo->head =
        m->tied_embeddings ? lo->embed : hb_leaf_add(lo, make_table(lo, "head", words, true));
    lo->positions = HB_NONE;
    if (m->positions > 0)
        lo->positions = hb_leaf_add(
            lo, make_table(lo, "position table", (struct hb_split){m->positions, 1}, false));
}

struct hb_shape hb_ends_residual(const struct hb_lower *lo)
{
    return hb_shape_make(lo->compute, (const int64_t[]){lo->local.batch, lo->local.resid_seq,
                                                        lo->local.resid_width, -1});
}

/* A learned position table is added to the embedded tokens. */
static uint32_t add_positions(struct hb_lower *lo, uint32_t x)
{
    if (lo->positions == HB_NONE)
        return x;
    uint32_t sum = hb_temp_in_place(lo, "embedded tokens and positions", HB_CAT_WORKING, x);
    hb_emit_sum(lo, "add positions", x, lo->leaves[lo->positions].arg, sum);
    return sum;
}

/* XLA:GPU keeps the indices that it compares with; of one sequence or in an accumulation
 * loop the result (8B/base with embed=onehot: pred[1,4096,128256]; tinyS/embed=onehot:
 * s32[8,2048,32000], with accum=2 pred[4,2048,32000]). */
static struct hb_shape onehot_shape(const struct hb_lower *lo)
{
    /* Tokens that the embedding sees: its batch is not split over the stages of a pipeline. */
    int64_t tokens = hb_mul_sat(lo->local.tokens, lo->local.batch_ways / lo->local.input_ways);
    bool compared = tokens <= lo->local.seq || hb_accumulates(lo);
    enum hb_dtype dtype = compared ? HB_DT_PRED : HB_DT_S32;
    return hb_shape_make(dtype, (const int64_t[]){tokens, lo->local.vocab, -1});
}

/* Between a device's columns of all tokens' rows and its own tokens' rows, the same number of
 * bytes, XLA:TPU has two copies and the exchange (8B-L16,f64,b3: bf16[786432,64], then thrice
 * bf16[64,3,4096,64]; at the end the other way round). Rows are looked up and scattered with their
 * columns along the lanes, padded where they are fewer (192 MiB, the others 96). */
static bool is_looked_up(const struct hb_lower *lo)
{
    return lo->habits->rings;
}

static uint32_t own_columns(struct hb_lower *lo, const char *name)
{
    struct hb_shape s = hb_ends_residual(lo);
    int64_t ways = hb_fsdp_ways(lo, false);
    if (!is_looked_up(lo))
        return hb_temp(lo, name, HB_CAT_COMMUNICATION, s);
    int64_t columns = hb_div_up(s.dim[2], ways);
    s = hb_shape_make(s.dtype,
                      (const int64_t[]){hb_mul_sat(s.dim[0], ways), s.dim[1], columns, -1});
    return hb_temp_tiled(lo, name, HB_CAT_COMMUNICATION, s, HB_TILE_MINOR);
}

static void exchange_rows(struct hb_lower *lo, uint32_t from, uint32_t to)
{
    uint32_t part[2];
    for (int i = 0; i < 2; i++)
        part[i] =
            hb_temp(lo, "embedding rows by device", HB_CAT_COMMUNICATION, hb_ends_residual(lo));
    hb_emit_mark(lo, "embedding rows by device", from, part[0]);
    hb_emit_collective(lo, HB_OP_ALL_TO_ALL, HB_AX_FSDP, "exchange embedding rows", part[0],
                       part[1]);
    hb_emit_mark(lo, "embedding rows by token", part[1], to);
}

static uint32_t cast_table(struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->embed];
    if (l->cast != HB_NONE || lo->spec->precision.params == lo->compute)
        return l->cast != HB_NONE ? l->cast : l->arg;
    uint32_t table =
        hb_temp(lo, "embedding, cast", HB_CAT_WORKING, hb_leaf_layer_shape(l, lo->compute, false));
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "cast embedding", l->arg, table);
    return table;
}

uint32_t hb_ends_embed(struct hb_lower *lo, struct hb_ends *ends)
{
    ends->iota = HB_NONE;
    if (lo->spec->lookup == HB_LOOKUP_ONEHOT && lo->habits->onehot_iota) {
        ends->iota =
            hb_temp(lo, "index tensor of the one-hot embedding", HB_CAT_WORKING, onehot_shape(lo));
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "one-hot indices", HB_NONE, ends->iota);
    }
    uint32_t table = cast_table(lo);
    uint32_t x = hb_temp(lo, "embedded tokens", HB_CAT_WORKING, hb_ends_residual(lo));
    uint32_t rows = x;
    if (hb_head_split(lo))
        rows = own_columns(lo, "embedding rows, own columns of all tokens");
    struct hb_emit e = {.name = "look up embedding", .kind = HB_OP_GATHER};
    if (lo->spec->lookup == HB_LOOKUP_ONEHOT) {
        e.kind = HB_OP_MATMUL;
        e.flops = 2.0 * (double)lo->local.tokens * (double)lo->local.vocab *
                  (double)lo->spec->model.d_model;
    }
    e.moved_bytes = 2.0 * (double)lo->p->bufs[x].bytes;
    hb_emit_read(&e, table);
    hb_emit_read(&e, lo->tokens);
    hb_emit_read(&e, ends->iota);
    hb_emit_write(&e, rows);
    hb_emit(lo, &e);
    if (rows != x)
        exchange_rows(lo, rows, x);
    return add_positions(lo, x);
}

/* Where another axis over the batch stands beside fsdp each device scatters its tokens' rows into
 * the whole table, whose sum over all devices lies in another place (4 layers of 5,120, 151,936
 * words, data 2 and 8 beside fsdp 128 and 32 of v5e, v5p and v6e: two bf16[151936,5120]; not with
 * fewer rows than words), beside tensor in the columns of its device (over 4: bf16[64000,1024]). */
static struct hb_shape table_grad_shape(const struct hb_lower *lo)
{
    bool whole = hb_order_rows_stay(lo);
    struct hb_shape s = hb_leaf_layer_shape(&lo->leaves[lo->embed], lo->compute, whole);
    s.dim[0] = hb_order_words(lo);
    if (whole)
        s.dim[1] = hb_div_up(s.dim[1], hb_div_up(s.dim[0], lo->local.vocab));
    return s;
}

static void make_zeros(struct hb_lower *lo, struct hb_ends *ends)
{
    ends->table_grad =
        hb_temp(lo, "embedding, zeros for its gradient", HB_CAT_GRADIENTS, table_grad_shape(lo));
    hb_emit_simple(lo, HB_OP_ELEMENTWISE, "zero gradient of the embedding", HB_NONE,
                   ends->table_grad);
}

/* XLA:GPU adds rows to a tied head's gradient, where that is in the weight's dtype: 28 of 28 dumps
 * (gemma2-9b over data 2, bf16: loop_select_fusion.1 casts all-reduce-done.8, f32, to the
 * bf16[256000,3584] that the scatter writes over). */
static bool takes_head(const struct hb_lower *lo)
{
    return lo->head == lo->embed && hb_weight_grad_dtype(lo) == lo->compute;
}

/* Cast, and of all devices where the table is whole. */
static uint32_t make_table_of_head(struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->embed];
    uint32_t from = l->grad;
    l->grad = HB_NONE;
    if (lo->p->bufs[from].dtype != lo->compute) {
        uint32_t cast = hb_temp(lo, "embedding, gradient of its head", HB_CAT_GRADIENTS,
                                hb_leaf_layer_shape(l, lo->compute, false));
        hb_emit_simple(lo, HB_OP_ELEMENTWISE, "cast gradient of the head", from, cast);
        from = cast;
    }
    struct hb_shape s = table_grad_shape(lo);
    if (hb_shape_plain_bytes(&s) == lo->p->bufs[from].plain_bytes)
        return from;
    uint32_t whole = hb_temp(lo, "embedding, gradient of its head, gathered", HB_CAT_GRADIENTS, s);
    enum hb_axis axis = hb_order_words(lo) > lo->local.vocab ? HB_AX_TENSOR : HB_AX_FSDP;
    hb_emit_collective(lo, HB_OP_ALL_GATHER, axis, "gather gradient of the head", from, whole);
    return whole;
}

/* None of a one-hot lookup, whose gradient is a product (qwen14b on one H100: gemm_fusion_dot.39,
 * bf16[151936,5120] at the end). */
void hb_ends_start_table(struct hb_lower *lo, struct hb_ends *ends)
{
    if (lo->spec->lookup == HB_LOOKUP_ONEHOT)
        return;
    if (!takes_head(lo))
        make_zeros(lo, ends);
    else if (lo->leaves[lo->embed].grad != HB_NONE)
        ends->table_grad = make_table_of_head(lo);
}

static void sum_table(struct hb_lower *lo, uint32_t whole)
{
    struct hb_leaf *l = &lo->leaves[lo->embed];
    l->grad = hb_temp(lo, "embedding, gradient summed", HB_CAT_GRADIENTS,
                      hb_leaf_layer_shape(l, lo->compute, true));
    hb_emit_grad_sum(lo, "sum gradient of the embedding", whole, l->grad);
}

static void sum_words(struct hb_lower *lo)
{
    struct hb_leaf *l = &lo->leaves[lo->embed];
    struct hb_shape s = hb_buf_shape(lo, l->grad);
    s.dim[0] = lo->local.vocab;
    uint32_t own = hb_temp(lo, "embedding, gradient of own words", HB_CAT_GRADIENTS, s);
    hb_emit_collective(lo, HB_OP_REDUCE_SCATTER, HB_AX_TENSOR, "sum gradient of own words", l->grad,
                       own);
    l->grad = own;
}

/* Where another axis over the batch stands beside fsdp, a device that scatters into its own columns
 * gathers the rows of all (2,048 wide, data 2 and fsdp 8, a sequence of 8,192 each, 128,256 words:
 * bf16[16,8192,2048] behind the layers, v5e, H100 and MI300X). */
static uint32_t gather_rows(struct hb_lower *lo, uint32_t from)
{
    struct hb_shape s = hb_ends_residual(lo);
    s.dim[0] = hb_mul_sat(s.dim[0], lo->local.batch_ways);
    uint32_t all = hb_temp(lo, "gradient of all embedding rows", HB_CAT_COMMUNICATION, s);
    uint32_t op = hb_emit_collective(lo, HB_OP_ALL_GATHER, HB_AX_FSDP,
                                     "gather gradient of embedding rows", from, all);
    struct hb_op *o = &lo->p->ops[op];
    o->group = lo->local.batch_ways;
    o->sent_bytes = hb_payload_bytes(o->kind, lo->p->bufs[all].plain_bytes, o->group);
    return all;
}

static void scatter_table(struct hb_lower *lo, struct hb_ends *ends, uint32_t grad)
{
    struct hb_leaf *l = &lo->leaves[lo->embed];
    bool whole = hb_order_rows_stay(lo), product = lo->spec->lookup == HB_LOOKUP_ONEHOT;
    uint32_t rows = grad;
    if (hb_head_split(lo) && !product && !whole && hb_order_rows_beside(lo)) {
        rows = gather_rows(lo, grad);
    } else if (hb_head_split(lo) && !product && !whole) {
        rows = own_columns(lo, "gradient of embedding rows, exchanged");
        exchange_rows(lo, grad, rows);
    }
    if (ends->table_grad == HB_NONE)
        hb_ends_start_table(lo, ends);
    if (ends->table_grad == HB_NONE && !product)
        make_zeros(lo, ends);
    uint32_t into =
        product ? hb_temp(lo, "embedding, gradient", HB_CAT_GRADIENTS, table_grad_shape(lo))
                : hb_temp_in_place(lo, "embedding, gradient", HB_CAT_GRADIENTS, ends->table_grad);
    struct hb_emit e = {.name =
                            product ? "gradient of the embedding" : "scatter embedding gradients",
                        .kind = product ? HB_OP_MATMUL : HB_OP_GATHER};
    hb_emit_read(&e, rows);
    hb_emit_read(&e, lo->tokens);
    hb_emit_read(&e, ends->iota);
    uint32_t head = l->grad; /* of a table that is tied */
    bool apart = head != HB_NONE && hb_habits_ordered(lo->spec);
    hb_emit_read(&e, apart ? HB_NONE : head);
    hb_emit_write(&e, into);
    hb_emit(lo, &e);
    l->grad = into;
    if (apart) { /* by who reads both: a list schedule and a depth-first one come there by rows */
        l->grad = hb_temp_in_place(lo, "embedding, both gradients", HB_CAT_GRADIENTS, into);
        hb_emit_sum(lo, "add the head's gradient", into, head, l->grad);
    }
    if (whole)
        sum_table(lo, into);
    else if (hb_order_words(lo) > lo->local.vocab)
        sum_words(lo);
}

void hb_ends_finish(struct hb_lower *lo, struct hb_ends *ends, uint32_t grad)
{
    if (ends->pending_before != HB_NONE)
        hb_emit_mark(lo, "end of the logits before the cast", ends->pending_before, HB_NONE);
    /* XLA:TPU scatters the table's gradient before it makes a head's that waits (ring/dl,f64,b2,
     * v128k,ce=onehot: at 680, the head's at 717). */
    bool first = is_looked_up(lo) && lo->positions == HB_NONE;
    if (!ends->head_done)
        hb_optim_update_layers(lo);
    if (first)
        scatter_table(lo, ends, grad);
    /* XLA:TPU adds the gradients of layers and table to those of the microbatches before, where the
     * table's comes first, before a head's that waits is made (16 layers of 8B, fsdp 64 of v5p:
     * adds from 778 to 831, the head's from 842 on), whose own comes behind it (v5e--k16). */
    if (hb_accumulates(lo) && first) {
        struct hb_leaf *head = &lo->leaves[lo->head];
        head->added = !ends->head_done && lo->head != lo->embed;
        hb_weight_accumulate(lo, true);
        head->added = ends->head_done;
    }
    if (first)
        hb_optim_update_table(lo);
    hb_loss_finish(lo, ends);
    if (lo->positions != HB_NONE) {
        struct hb_leaf *table = &lo->leaves[lo->positions];
        table->grad = hb_temp(lo, "position table, gradient", HB_CAT_GRADIENTS,
                              hb_leaf_layer_shape(table, lo->compute, false));
        hb_emit_simple(lo, HB_OP_REDUCE, "sum gradients of positions", grad, table->grad);
    }
    if (!first)
        scatter_table(lo, ends, grad);
    hb_chunks_finish(lo, ends);
}
