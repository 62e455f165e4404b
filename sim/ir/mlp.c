/* The dense MLP (also a MoE layer's shared experts) as values and steps. */
#include "sim/ir/layer.h"

#include "base/size.h"
#include "sim/ir/sequence.h"
#include "sim/ir/when.h"

void hb_mlp_leaves(struct hb_lower *lo, struct hb_layer *y, const struct hb_mlp *m,
                   const char *prefix)
{
    int64_t d = lo->spec->model.d_model;
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    struct hb_split up[2] = {{d, 1}, {m->d_ff, tp}};
    struct hb_split both[2] = {{d, 1}, {m->d_ff * 2, tp}};
    struct hb_split down[2] = {{m->d_ff, tp}, {d, 1}};
    if (hb_mlp_is_gated(m->kind) && m->fused) {
        hb_layer_matrix(lo, y, hb_name(lo, prefix, "w_gate_up"), both, 2, 0);
    } else {
        if (hb_mlp_is_gated(m->kind))
            hb_layer_matrix(lo, y, hb_name(lo, prefix, "w_gate"), up, 2, 0);
        hb_layer_matrix(lo, y, hb_name(lo, prefix, "w_up"), up, 2, 0);
    }
    hb_layer_matrix(lo, y, hb_name(lo, prefix, "w_down"), down, 2, 1);
    if (m->bias) {
        if (hb_mlp_is_gated(m->kind))
            hb_layer_bias(lo, y, hb_name(lo, prefix, "b_gate"), m->d_ff, tp);
        hb_layer_bias(lo, y, hb_name(lo, prefix, "b_up"), m->d_ff, tp);
        hb_layer_output_bias(lo, y, hb_name(lo, prefix, "b_down"));
    }
}

static struct hb_value wide_value(const struct hb_lower *lo, const char *name, uint32_t tag,
                                  int64_t batch, int64_t width)
{
    return hb_layer_dot(lo, name, 1u << tag, (const int64_t[]){batch, lo->local.seq, width, -1});
}

static int wide_product(struct hb_lower *lo, struct hb_layer *y, int in, const char *leaf,
                        struct hb_value v)
{
    int out = hb_layer_product(lo, y, in, leaf, v);
    y->steps[y->step_count - 1].grad_sum_parts = hb_ways(lo, HB_AX_TENSOR) > 1;
    y->steps[y->step_count - 1].axis = HB_AX_TENSOR;
    return out;
}

/* What JAX's derivative of an activation reads, which remat none under a scan keeps beside gate, up
 * and the product: of silu(gate) x up three parts (tinyS/remat=none: six tensors of width d_ff), of
 * gelu's tanh form four and, where up multiplies it, its result (gemma2-9b over 8 of v5p: eight of
 * bf16[21,1,2048,14336] a layer; gpt3-1.3b: six), of a squared relu where it is none (nemotron-15b:
 * pred[32,1,2048,24576] beside two in bf16). What XLA:GPU made of a unit for the products that lead
 * to its next layer it keeps, and the gate's sigmoid or tanh, which it does not make twice
 * (gemma3-27b, fsdp 32, six layers: beside gate and up two bf16[1,4096,21504] of each). */
static void add_parts(struct hb_lower *lo, struct hb_layer *y, enum hb_mlp_kind kind,
                      struct hb_step_op *step)
{
    enum { PARTS = HB_STEP_OUT - 1 };
    static const char *const parts[][PARTS] = {
        [HB_MLP_SWIGLU] = {"sigmoid of the gate", "derivative of silu", "silu of the gate"},
        [HB_MLP_GEGLU] = {"tanh of the gate", "one less that tanh", "gate squared",
                          "share of the gate", "gelu of the gate"},
        [HB_MLP_GELU] = {"tanh of up", "one less that tanh", "up squared", "share of up"},
        [HB_MLP_RELU2] = {"mask of relu"}};
    const struct hb_value *like = &y->values[step->in[0]];
    bool whole = hb_layer_made_whole(lo, y);
    step->back_out = whole ? 1u << 1 : 0;
    for (int i = 0; i < PARTS && parts[kind][i]; i++) {
        struct hb_value part = {.name = parts[kind][i],
                                .shape = like->shape,
                                .tiling = like->tiling,
                                .fused = !whole || i > 0,
                                .trace_only = true};
        part.shape.dtype = kind == HB_MLP_RELU2 ? HB_DT_PRED : part.shape.dtype;
        step->out[step->out_count++] = hb_layer_value(lo, y, part);
        like = &y->values[step->in[0]];
    }
}

int hb_layer_activation(struct hb_lower *lo, struct hb_layer *y, const struct hb_activation *a)
{
    struct hb_shape s = y->values[a->up].shape;
    bool gathers = hb_gathers_weights(lo);
    bool stored = lo->habits->act_stored_for_dw;
    bool whole = lo->acts_stay || hb_layer_made_whole(lo, y);
    int out = hb_layer_value(lo, y,
                             (struct hb_value){.name = a->name,
                                               .tags = a->tags,
                                               .shape = s,
                                               .tiling = y->values[a->up].tiling,
                                               .fused = !whole && (!stored || gathers)});
    struct hb_step_op step = {.kind = HB_STEP_MIX,
                              .op = HB_OP_ELEMENTWISE,
                              .name = a->name,
                              .in = {a->up},
                              .in_count = 1,
                              .out = {out},
                              .out_count = 1,
                              .leaf = HB_NONE,
                              .flops = 6.0 * (double)hb_shape_elements(&s),
                              .back_in = 1,
                              .grad_in_place = 1};
    /* 70B/base: gate, up and the activation's gradient live to the end of the MLP's backward. */
    step.grad_fused = stored && gathers;
    if (a->gate >= 0) {
        step.in[step.in_count++] = a->gate;
        step.back_in = 3;
        /* gate/f48,d6k: the last weight gradient is late too, so that gate and up wait for it and
         * one of their gradients has a place of its own: four bf16[4096,16384]. So it is between
         * all gathers of v5p and v6e where a device has more tokens than features (8 layers of 2048
         * and 8192: four bf16[8,4096,8192]), and on CUDA between gathers (8B,f64,b4,v32k). */
        bool many = lo->local.tokens > lo->spec->model.d_model;
        bool tpu = lo->habits->rings && !hb_gathers_beside(lo) && many;
        bool apart = gathers && (tpu || lo->habits->gathers_timed);
        step.grad_in_place = apart ? 1 : 3;
    }
    if (lo->batch_whole) {
        step.grad_in_place = 0;
        y->values[out].fused = false;
    }
    if (a->gate >= 0 || !hb_mlp_is_gated(a->kind)) /* not of both in one */
        add_parts(lo, y, a->kind, &step);
    hb_layer_step(lo, y, step);
    return out;
}

int hb_mlp_build(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch,
                 const struct hb_mlp_part *part)
{
    const struct hb_mlp *m = part->mlp;
    const char *prefix = part->prefix;
    const uint32_t *tags = part->tags;
    int64_t tp = hb_ways(lo, HB_AX_TENSOR);
    int64_t width = hb_div_up(m->d_ff, tp);
    int gate = -1;
    int up;
    if (hb_mlp_is_gated(m->kind) && m->fused) {
        up = wide_product(lo, y, in, hb_name(lo, prefix, "w_gate_up"),
                          wide_value(lo, "mlp gate and up", tags[1], batch, 2 * width));
        y->values[up].tags |= 1u << tags[0];
    } else {
        if (hb_mlp_is_gated(m->kind))
            gate = wide_product(
                lo, y, in, hb_name(lo, prefix, "w_gate"),
                wide_value(lo, hb_name(lo, prefix, "mlp gate"), tags[0], batch, width));
        up = wide_product(lo, y, in, hb_name(lo, prefix, "w_up"),
                          wide_value(lo, hb_name(lo, prefix, "mlp up"), tags[1], batch, width));
    }
    struct hb_activation a = {m->kind, gate, up, hb_name(lo, prefix, "mlp activation"),
                              1u << tags[2]};
    int act = hb_layer_activation(lo, y, &a);
    y->values[act].shape.dim[2] = width;
    struct hb_value down = hb_layer_tensor(lo, hb_name(lo, prefix, "mlp output"), 1u << tags[3],
                                           y->values[y->input].shape);
    down.dot = down.fused = true;
    int out = hb_layer_product(lo, y, act, hb_name(lo, prefix, "w_down"), down);
    hb_layer_sum_parts(lo, y);
    return out;
}

int hb_layer_mlp(struct hb_lower *lo, struct hb_layer *y, int in, int64_t batch)
{
    static const uint32_t tags[4] = {HB_TN_MLP_GATE, HB_TN_MLP_UP, HB_TN_MLP_ACT, HB_TN_MLP_DOWN};
    struct hb_mlp_part part = {.mlp = &y->block->mlp, .prefix = "", .tags = tags};
    return hb_mlp_build(lo, y, in, batch, &part);
}
