/* Copies between layouts of XLA:GPU's products over sequences and experts: see moe_turn.h. */
#include "sim/ir/moe_turn.h"

#include "base/size.h"

/* XLA:GPU's products over sequences want these outermost, those over experts the experts, and a
 * weight's gradient what it sums over before its own dimensions: stacks of what one of them made
 * and the other reads are turned whole between the passes (phi35moe, dots, H100 and MI300X, fsdp 4
 * with expert 4: bf16[32,4,4096,4,640] to [4,4096,32,4,640]; of one sequence gate and up alone). */
void hb_moe_turn_kept(struct hb_layer *y, uint32_t first, bool both)
{
    const uint32_t hidden = 1u << HB_TN_MLP_GATE | 1u << HB_TN_MLP_UP;
    for (uint32_t v = first; v < y->value_count; v++)
        y->values[v].restacked = y->values[v].batch_dot && (both || (y->values[v].tags & hidden));
}

int hb_moe_turn_rows(struct hb_lower *lo, struct hb_layer *y, int in)
{
    struct hb_value v = {.name = hb_name(lo, y->values[in].name, ", turned"),
                         .shape = y->values[in].shape,
                         .tiling = y->values[in].tiling,
                         .turned = in};
    return hb_layer_make(
        lo, y, v,
        (struct hb_step_op){.op = HB_OP_COPY, .in = {in}, .in_count = 1, .parts_beside = true});
}

void hb_moe_order_turned(struct hb_layer *y, uint32_t first, uint32_t last)
{
    struct hb_step_op *sum = &y->steps[last];
    for (uint32_t i = first; i < last; i++) {
        struct hb_step_op *s = &y->steps[i];
        s->parts_beside = true;
        s->grad_late = s->kind == HB_STEP_PRODUCT;
        if (s->op == HB_OP_ELEMENTWISE)
            y->values[s->out[0]].fused = false;
    }
    for (uint32_t i = last - 2; i < last; i++)
        y->values[y->steps[i].out[0]].cheap = true;
    y->steps[y->values[sum->in[0]].producer].eager = true;
    sum->off_early = !sum->first_last || sum->off_early;
    sum->first_last = true;
    y->steps[last - 1].makes_off = true;
}

/* XLA:GPU scatters what is small together (xla_gpu_reduce_scatter_combine_threshold_bytes): the
 * tokens' gradient then waits for the router's, which is of the combine weights' (granite-moe, one
 * sequence of 8192 over expert 2: at 92 and 86; olmoe of 16,384: at 127, before it). */
static const int64_t SCATTERED_TOGETHER = INT64_C(30) << 20;

bool hb_moe_waits_for_router(const struct hb_lower *lo)
{
    int64_t bits = hb_mul_sat(hb_dtype_bits(lo->compute), lo->spec->model.d_model);
    return hb_mul_sat(lo->local.tokens, bits / 8) <= SCATTERED_TOGETHER;
}

/* XLA:GPU's product with the outputs reads the weights by place and expert (14 of 15 forward
 * passes: olmoe, fsdp 16 with tensor 2: bf16[16384,64,2560] turned to [1,16384,2560,64]). */
void hb_moe_turn_weights(struct hb_step_op *sum, const int64_t *masks)
{
    const int64_t turned[] = {masks[0], masks[1], masks[3], masks[2], -1};
    sum->scratch[sum->scratch_count++] = hb_shape_make(HB_DT_BF16, turned);
    sum->scratch_told = true;
}
