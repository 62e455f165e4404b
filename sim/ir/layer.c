/* The frame of a layer: norms, residual sums, products, and the order of its parts. The order is
 * that of the lab program and of MaxText's decoder layer: norm, attention, sum, norm, MLP, sum. */
#include "sim/ir/layer.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"

struct hb_value hb_layer_tensor(const struct hb_lower *lo, const char *name, uint32_t tags,
                                struct hb_shape shape)
{
    return (struct hb_value){
        .name = name, .tags = tags, .shape = shape, .tiling = lo->habits->tiling};
}

struct hb_value hb_layer_dot(const struct hb_lower *lo, const char *name, uint32_t tags,
                             const int64_t *dims)
{
    struct hb_value v = hb_layer_tensor(lo, name, tags, hb_shape_make(lo->compute, dims));
    v.dot = true;
    return v;
}

int hb_layer_value(struct hb_lower *lo, struct hb_layer *y, struct hb_value v)
{
    y->values = hb_grow(lo->arena, y->values, y->value_count, &y->value_cap, sizeof v);
    y->values[y->value_count] = v;
    return (int)y->value_count++;
}

struct hb_step_op *hb_layer_step(struct hb_lower *lo, struct hb_layer *y, struct hb_step_op s)
{
    y->steps = hb_grow(lo->arena, y->steps, y->step_count, &y->step_cap, sizeof s);
    y->steps[y->step_count] = s;
    for (int i = 0; i < s.out_count; i++)
        y->values[s.out[i]].producer = (int)y->step_count;
    return &y->steps[y->step_count++];
}

int hb_layer_make(struct hb_lower *lo, struct hb_layer *y, struct hb_value v, struct hb_step_op s)
{
    s.name = s.name ? s.name : v.name;
    s.out[0] = hb_layer_value(lo, y, v);
    s.out_count = 1;
    s.leaf = HB_NONE;
    hb_layer_step(lo, y, s);
    return s.out[0];
}

int hb_layer_move(struct hb_lower *lo, struct hb_layer *y, enum hb_op_kind op, enum hb_axis axis,
                  int in, struct hb_value v)
{
    enum hb_op_kind back = op == HB_OP_ALL_GATHER ? HB_OP_REDUCE_SCATTER : HB_OP_ALL_GATHER;
    return hb_layer_make(lo, y, v,
                         (struct hb_step_op){.kind = HB_STEP_MOVE,
                                             .op = op,
                                             .back_op = op == HB_OP_ALL_TO_ALL ? op : back,
                                             .axis = axis,
                                             .in = {in},
                                             .in_count = 1});
}

static struct hb_leaf make_leaf(struct hb_lower *lo, const struct hb_layer *y, const char *name,
                                const struct hb_split *dims, int rank)
{
    struct hb_leaf l = {.name = hb_name_of(lo, (const char *const[]){y->name, ".", name}, 3),
                        .rank = rank,
                        .gather_dim = -1,
                        .fsdp_ways = 1,
                        .copies = 1};
    for (int i = 0; i < rank; i++)
        l.dim[i] = dims[i];
    return l;
}

static uint32_t add_leaf(struct hb_lower *lo, const struct hb_layer *y, struct hb_leaf l,
                         int gather_dim)
{
    for (int i = 0; i < 2; i++)
        l.stack[i] = y->stack[i];
    int64_t ways = hb_fsdp_ways(lo, y->expert_leaf);
    if (gather_dim >= 0 && ways > 1) {
        l.gather_dim = gather_dim;
        l.fsdp_ways = ways;
        l.dim[gather_dim].ways *= ways;
    }
    return hb_leaf_add(lo, l);
}

uint32_t hb_layer_matrix(struct hb_lower *lo, struct hb_layer *y, const char *name,
                         const struct hb_split *dims, int rank, int gather_dim)
{
    struct hb_leaf l = make_leaf(lo, y, name, dims, rank);
    l.matrix = true;
    l.narrow = lo->spec->precision.fp8 != HB_FP8_NONE;
    l.experts = y->expert_leaf && rank == HB_LEAF_RANK;
    return add_leaf(lo, y, l, gather_dim);
}

uint32_t hb_layer_vector(struct hb_lower *lo, struct hb_layer *y, const char *name,
                         const struct hb_split *dims, int rank, int gather_dim)
{
    return add_leaf(lo, y, make_leaf(lo, y, name, dims, rank), gather_dim);
}

void hb_layer_bias(struct hb_lower *lo, struct hb_layer *y, const char *name, int64_t size,
                   int64_t ways)
{
    struct hb_split dim = {size, ways};
    hb_layer_vector(lo, y, name, &dim, 1, -1);
}

/* MaxText splits it over fsdp as it does the weights (base/gpt3-6b: f32[384,48] of 3072). */
void hb_layer_output_bias(struct hb_lower *lo, struct hb_layer *y, const char *name)
{
    struct hb_split dim = {lo->spec->model.d_model, 1};
    hb_layer_vector(lo, y, name, &dim, 1, 0);
}

uint32_t hb_layer_find_leaf(const struct hb_lower *lo, const struct hb_layer *y, const char *name)
{
    size_t prefix = 0;
    while (y->name[prefix])
        prefix++;
    for (uint32_t i = y->first_leaf; i < y->end_leaf; i++)
        if (hb_str_starts(lo->leaves[i].name, y->name) &&
            hb_str_same(lo->leaves[i].name + prefix + 1, name))
            return i;
    return HB_NONE;
}

static void norm_leaf(struct hb_lower *lo, struct hb_layer *y, const char *name, int64_t width)
{
    enum hb_norms_over over = lo->spec->sharding.norms;
    bool split = over == HB_NORMS_TENSOR && lo->spec->sharding.residual_over_tensor;
    struct hb_split d = {width, split ? hb_ways(lo, HB_AX_TENSOR) : 1};
    hb_layer_vector(lo, y, name, &d, 1, over == HB_NORMS_FSDP ? 0 : -1);
    if (y->block->norm == HB_NORM_LAYER)
        hb_layer_bias(lo, y, hb_name(lo, name, "_bias"), d.size, d.ways);
}

/* The name of one of a unit's layers; a unit of one is the layer itself. */
static const char *unit_name(struct hb_lower *lo, const char *name, const struct hb_block *block,
                             int64_t u)
{
    return block->unit > 1 ? hb_arena_printf(lo->arena, "%s.%lld", name, (long long)u) : name;
}

/* What joins a hidden state and the next tokens' embedding, where the layer is a depth of
 * multi-token prediction: a norm of each, and a product of both side by side. */
static const char *const joint_names[] = {"hidden_norm", "embed_norm", "w_joint"};

static void joint_leaves(struct hb_lower *lo, struct hb_layer *y)
{
    int64_t d = lo->spec->model.d_model;
    struct hb_split dims[2] = {{hb_mul_sat(2, d), 1}, {d, 1}};
    norm_leaf(lo, y, joint_names[0], d);
    norm_leaf(lo, y, joint_names[1], d);
    uint32_t wide = hb_layer_matrix(lo, y, joint_names[2], dims, 2, 0);
    lo->leaves[wide].narrow = false;
}

static void unit_leaves(struct hb_lower *lo, struct hb_layer *y)
{
    int64_t d = lo->spec->model.d_model;
    if (y->block->joins)
        joint_leaves(lo, y);
    norm_leaf(lo, y, "norm1", d);
    hb_layer_attention_leaves(lo, y);
    norm_leaf(lo, y, "norm2", d);
    if (y->block->post_norm) {
        norm_leaf(lo, y, "post_norm1", d);
        norm_leaf(lo, y, "post_norm2", d);
    }
    uint32_t first = lo->leaf_count;
    if (hb_block_mixes(y->block))
        hb_layer_moe_leaves(lo, y);
    else
        hb_mlp_leaves(lo, y, &y->block->mlp, "");
    for (uint32_t i = first; i < lo->leaf_count; i++)
        lo->leaves[i].held = true;
}

void hb_layer_leaves(struct hb_lower *lo, const struct hb_block *block, const char *name,
                     const int64_t stack[2], struct hb_layer *y)
{
    *y = (struct hb_layer){.block = block, .first_leaf = lo->leaf_count};
    y->stack[0] = stack[0];
    y->stack[1] = stack[1];
    for (int64_t u = 0; u < block->unit; u++) {
        y->name = unit_name(lo, name, block, u);
        unit_leaves(lo, y);
    }
    y->name = name;
    y->end_leaf = lo->leaf_count;
}

bool hb_layer_keeps_wide(const struct hb_lower *lo, const struct hb_layer *y)
{
    return hb_in_rings(lo) && hb_is_unrolled(lo) && y->block->remat.policy == HB_POLICY_NONE;
}

/* remat none under a scan keeps the f32 input and the f32 normalised value of each norm
 * (tinyS/remat=none: four stacks f32[4,8,2048,1024]), and the norm's result itself, but no bf16 of
 * what was normalised: three d wide in bf16 are the norms' results and the context; of those of
 * queries and keys, too (qwen3-4b, v5p, data 2 and fsdp 4: two each of f32[36,1,4096,32,128] and
 * f32[36,1,4096,8,128], one of bf16[36,1,32,4096,128]). */
void hb_layer_norm_parts(struct hb_lower *lo, struct hb_layer *y, int in, const char *name,
                         struct hb_step_op *s)
{
    static const char *const kept[] = {" in f32", " normalised in f32"};
    struct hb_shape wide = y->values[in].shape;
    wide.dtype = HB_DT_F32;
    for (int i = 0; i < 2; i++) {
        struct hb_value v = hb_layer_tensor(lo, hb_name(lo, name, kept[i]), 0, wide);
        v.fused = v.trace_only = true;
        s->out[s->out_count++] = hb_layer_value(lo, y, v);
    }
}

int hb_layer_norm(struct hb_lower *lo, struct hb_layer *y, int in, const char *name)
{
    /* A ring sends the normalised input round, so that it is a tensor (1B/base: copy-start.2 and
     * copy-start.18, bf16[2,4096,2048]); elsewhere it is made inside the products. */
    struct hb_shape shape = y->values[in].shape;
    bool f32 = lo->spec->precision.norm_f32;
    struct hb_value normed = hb_layer_tensor(lo, name, 0, shape);
    normed.fused = lo->habits->norms_fused && !hb_in_rings(lo);
    int out = hb_layer_value(lo, y, normed);
    struct hb_step_op s = {.kind = HB_STEP_MIX,
                           .op = HB_OP_ELEMENTWISE,
                           .name = name,
                           .in = {in},
                           .in_count = 1,
                           .out = {out},
                           .out_count = 1,
                           .leaf = hb_layer_find_leaf(lo, y, name),
                           .flops = 4.0 * (double)hb_shape_elements(&shape),
                           .back_in = 1,
                           .trace_serves = f32};
    bool second = f32 && hb_layer_keeps_wide(lo, y) && hb_str_same(name, "norm2");
    s.back_out = second ? 1u << 1 : 0;
    if (f32)
        hb_layer_norm_parts(lo, y, in, name, &s);
    if (second)
        y->values[s.out[1]].fused = false;
    hb_layer_step(lo, y, s);
    return out;
}

int hb_layer_product(struct hb_lower *lo, struct hb_layer *y, int in, const char *weight,
                     struct hb_value value)
{
    uint32_t leaf = hb_layer_find_leaf(lo, y, weight);
    const struct hb_leaf *l = &lo->leaves[leaf];
    struct hb_shape w = hb_leaf_layer_shape(l, lo->compute, true);
    int out = hb_layer_value(lo, y, value);
    int64_t elements = hb_shape_elements(&y->values[in].shape);
    int64_t produced = hb_shape_elements(&y->values[out].shape);
    int64_t experts = w.rank == 3 && !l->summed ? w.dim[0] : 1;
    int64_t depth = l->summed ? 1 : w.dim[w.rank - 2];
    for (int i = 0; i < l->summed; i++)
        depth = hb_mul_sat(depth, w.dim[i]);
    int64_t cols = hb_shape_elements(&w) / hb_larger(hb_mul_sat(experts, depth), 1);
    struct hb_step_op s = {.kind = HB_STEP_PRODUCT,
                           .op = HB_OP_MATMUL,
                           .name = value.name,
                           .in = {in},
                           .in_count = 1,
                           .out = {out},
                           .out_count = 1,
                           .leaf = leaf,
                           .rows = depth ? elements / depth : 0,
                           .cols = cols,
                           .depth = depth,
                           .batch = (double)experts,
                           .back_in = 1};
    s.flops = 2.0 * (double)produced * (double)depth;
    s.rows = hb_larger(s.rows / experts, 1);
    hb_layer_step(lo, y, s);
    return out;
}

double hb_layer_shares(const struct hb_lower *lo, struct hb_shape share)
{
    double whole = (double)lo->local.seq * (double)lo->spec->model.d_model;
    return whole / ((double)share.dim[1] * (double)share.dim[2]);
}

void hb_layer_sum_parts(const struct hb_lower *lo, struct hb_layer *y)
{
    struct hb_step_op *s = &y->steps[y->step_count - 1];
    s->sum_parts = hb_ways(lo, HB_AX_TENSOR) > 1;
    s->axis = HB_AX_TENSOR;
    if (lo->spec->sharding.residual_over_tensor)
        s->flops *= hb_layer_shares(lo, y->values[s->out[0]].shape);
}

bool hb_layer_made_whole(const struct hb_lower *lo, const struct hb_layer *y)
{
    return hb_fuses_slices(lo) && y->block->unit > 1 && y->block->remat.policy != HB_POLICY_NONE;
}

int hb_layer_add(struct hb_lower *lo, struct hb_layer *y, int residual, int branch,
                 const char *name)
{
    struct hb_value v = hb_layer_tensor(lo, name, 0, y->values[residual].shape);
    return hb_layer_make(lo, y, v,
                         (struct hb_step_op){.kind = HB_STEP_ADD,
                                             .op = HB_OP_ELEMENTWISE,
                                             .in = {residual, branch},
                                             .in_count = 2,
                                             .flops = (double)hb_shape_elements(&v.shape)});
}

/* With the residual split over tensor, a branch starts by gathering its normalised input. */
static int gather_sequence(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch,
                           const char *name)
{
    if (!lo->spec->sharding.residual_over_tensor || hb_ways(lo, HB_AX_TENSOR) == 1)
        return in;
    const int64_t dims[] = {batch, lo->local.seq, lo->spec->model.d_model, -1};
    struct hb_value v = hb_layer_tensor(lo, name, 0, hb_shape_make(lo->compute, dims));
    /* XLA:GPU gathers what the norm computes in (70B,f64t4,lin,spres: f32[4,4096,8192] of each
     * norm; qwen32,f16t4 on ROCm). */
    v.wide = lo->habits->recompute_first && lo->spec->precision.norm_f32;
    if (v.wide)
        v.shape.dtype = HB_DT_F32;
    /* Of several sequences the gather has the positions outermost, and so its stack, which the
     * backward loop wants by sequence (llama8b,f2t8,none: bf16[4096,32,4,4096] beside
     * bf16[32,4,4096,4096]; with one sequence they are the same). */
    v.restacked = v.wide;
    return hb_layer_move(lo, y, HB_OP_ALL_GATHER, HB_AX_TENSOR, in, v);
}

static int add_branch(struct hb_lower *lo, struct hb_layer *y, int x, int branch, const char *norm,
                      const char *name)
{
    /* A norm after the branch reads its result in the backward pass: a tensor, as is its own. */
    if (y->block->post_norm) {
        y->values[branch].fused = false;
        branch = hb_layer_norm(lo, y, branch, norm);
        y->values[branch].fused = false;
    }
    return hb_layer_add(lo, y, x, branch, name);
}

/* What flows back into the rows of the table is left to the embedding. */
static int next_rows(struct hb_lower *lo, struct hb_layer *y, int like)
{
    struct hb_value v = hb_layer_tensor(lo, "embedded next tokens", 0, y->values[like].shape);
    double moved_bytes = 2 * (double)hb_shape_plain_bytes(&v.shape);
    return hb_layer_make(
        lo, y, v,
        (struct hb_step_op){.op = HB_OP_GATHER, .moved_bytes = moved_bytes, .no_grad = true});
}

static int join_next(struct hb_lower *lo, struct hb_layer *y, int in)
{
    int hidden = hb_layer_norm(lo, y, in, joint_names[0]);
    int rows = hb_layer_norm(lo, y, next_rows(lo, y, in), joint_names[1]);
    struct hb_value joined = hb_layer_tensor(lo, "joined", 0, y->values[in].shape);
    struct hb_value both = joined;
    both.name = "hidden state and next tokens";
    both.shape.dim[2] = hb_mul_sat(2, both.shape.dim[2]);
    int wide = hb_layer_make(
        lo, y, both, (struct hb_step_op){.op = HB_OP_COPY, .in = {rows, hidden}, .in_count = 2});
    return hb_layer_product(lo, y, wide, joint_names[2], joined);
}

/* One layer of the unit, from the residual to the residual. */
static int build_unit(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch)
{
    if (y->block->joins && y->at == 0)
        in = join_next(lo, y, in);
    int n1 = hb_layer_norm(lo, y, in, "norm1");
    n1 = gather_sequence(lo, y, n1, batch, "norm1, gathered");
    int a = hb_layer_attention(lo, y, n1, batch);
    int x = add_branch(lo, y, in, a, "post_norm1", "after attention");
    int n2 = hb_layer_norm(lo, y, x, "norm2");
    n2 = gather_sequence(lo, y, n2, batch, "norm2, gathered");
    int m =
        hb_block_mixes(y->block) ? hb_layer_moe(lo, y, n2, batch) : hb_layer_mlp(lo, y, n2, batch);
    return add_branch(lo, y, x, m, "post_norm2", "layer output");
}

/* A unit of several layers is made again as one. XLA:ROCm keeps the sums inside it as the next norm
 * reads them (gemma3-27b, fsdp 4 and tensor 8, and -12b, 4 and 4, six layers: ten
 * f32[8,8192,5376], no bf16 of them; llama4-scout, fsdp 256, four: five; XLA:CUDA has bf16). */
static void widen_sums(const struct hb_lower *lo, struct hb_layer *y)
{
    const struct hb_remat *r = &y->block->remat;
    if (!hb_layer_made_whole(lo, y) || !lo->habits->sums_remade || !lo->spec->precision.norm_f32)
        return;
    for (uint32_t i = 0; i < y->step_count; i++) {
        struct hb_value *sum = &y->values[y->steps[i].out[0]];
        if (y->steps[i].kind != HB_STEP_ADD || y->steps[i].out[0] == y->output ||
            (sum->tags & (r->save | r->offload)))
            continue;
        sum->shape.dtype = HB_DT_F32;
        sum->wide = true;
    }
}

/* As many as a layer of deepseek-v3 has. */
enum { MOST_VALUES = 64, MOST_STEPS = 64 };

static void reserve(const struct hb_lower *lo, struct hb_layer *y)
{
    y->value_cap = MOST_VALUES;
    y->step_cap = MOST_STEPS;
    y->values = hb_arena_raw(lo->arena, y->value_cap, sizeof *y->values);
    y->steps = hb_arena_raw(lo->arena, y->step_cap, sizeof *y->steps);
}

void hb_layer_build(struct hb_lower *lo, struct hb_layer *y, int64_t batch)
{
    const int64_t dims[] = {batch, lo->local.resid_seq, lo->local.resid_width, -1};
    struct hb_value in =
        hb_layer_tensor(lo, "layer input", 1u << HB_TN_LAYER_IN, hb_shape_make(lo->compute, dims));
    in.producer = -1;
    const char *name = y->name;
    reserve(lo, y);
    y->input = y->output = hb_layer_value(lo, y, in);
    for (int64_t u = 0; u < y->block->unit; u++) {
        y->at = u;
        y->name = unit_name(lo, name, y->block, u);
        y->values[y->output].tags = 1u << HB_TN_LAYER_IN;
        y->output = build_unit(lo, y, y->output, batch);
    }
    y->name = name;
    widen_sums(lo, y);
}
