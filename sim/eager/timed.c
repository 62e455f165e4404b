/* See timed.h. Of XLA programs: 8-bit products run at the 8-bit rate (the quantising is fused into
 * what makes the operand, or is a pass of its own before a kernel), quantised gathers send half the
 * bytes; each depth of multi-token prediction is a further layer and a further pass through the
 * head (DeepSeek-V3, arXiv:2412.19437, section 2.2). Head, router and attention stay as they are,
 * as in MaxText's and Transformer Engine's recipes. */
#include "sim/eager/timed.h"

#include "base/arena.h"
#include "base/size.h"
#include "sim/eager/eager.h"
#include "sim/ir/lower.h"

static bool is_head(const struct hb_spec *s, const struct hb_op *op)
{
    int64_t ways = s->sharding.vocab_over_tensor ? s->mesh[HB_AX_TENSOR] : 1;
    int64_t vocab = hb_div_up(s->model.vocab, ways);
    return op->rows == vocab || op->cols == vocab || op->depth == vocab ||
           op->phase == HB_PHASE_LOSS;
}

/* Attention without a kernel multiplies many small matrices side by side; linear layers do not. */
static bool is_linear(const struct hb_spec *s, const struct hb_op *op)
{
    bool layer = op->phase == HB_PHASE_FORWARD || op->phase == HB_PHASE_BACKWARD;
    return op->kind == HB_OP_MATMUL && layer && op->rows > 0 && !is_head(s, op);
}

/* Experts' weights, gathered or their gradient. */
static bool leads_with_experts(const struct hb_spec *s, const struct hb_buf *b)
{
    for (int i = 0; i < s->model.block_count; i++)
        if (b->rank == 3 && s->model.blocks[i].moe.experts > 0 &&
            b->dim[0] * s->mesh[HB_AX_EXPERT] == s->model.blocks[i].moe.experts)
            return true;
    return false;
}

static bool is_of_experts(const struct hb_spec *s, const struct hb_program *p,
                          const struct hb_op *op)
{
    for (uint32_t i = 0; i < op->read_count + op->write_count; i++)
        if (leads_with_experts(s, &p->bufs[p->refs[op->refs_at + i]]))
            return true;
    return false;
}

/* The kernel of all experts' products takes quantised operands. What a fusion makes leaves it in
 * eight bits; rows that a gather sorted and weights that came over the links take a pass: two
 * bytes read, one written (MaxText, src/MaxText/kernels/megablox/ops.py: qpl.quantize on either
 * operand and on the gradient). writer: by buffer, the op that wrote it and whose result no
 * product took yet; HB_NONE. */
static double passes_bytes(const struct hb_program *p, const struct hb_op *op, uint32_t *writer)
{
    enum { PASS = 3 };
    double bytes = 0;
    for (uint32_t i = 0; i < op->read_count; i++) {
        uint32_t buf = p->refs[op->refs_at + i];
        if (writer[buf] == HB_NONE)
            continue;
        bytes += PASS * (double)p->bufs[buf].plain_bytes / 2;
        writer[buf] = HB_NONE;
    }
    return bytes;
}

static void set_passes(struct hb_arena *arena, const struct hb_spec *s, struct hb_program *p)
{
    struct hb_arena_mark mark = hb_arena_mark(arena);
    uint32_t *writer = hb_arena_alloc(arena, p->buf_count, sizeof *writer);
    for (uint32_t i = 0; i < p->buf_count; i++)
        writer[i] = HB_NONE;
    for (uint32_t i = 0; i < p->op_count; i++) {
        struct hb_op *op = &p->ops[i];
        bool links = op->kind == HB_OP_ALL_GATHER && !s->precision.fp8_gather;
        for (uint32_t w = 0; w < op->write_count; w++)
            if (links || op->kind == HB_OP_GATHER)
                writer[hb_op_writes(p, op)[w]] = i;
        if (is_linear(s, op) && is_of_experts(s, p, op))
            op->ahead_bytes = passes_bytes(p, op, writer);
    }
    hb_arena_rewind(arena, mark);
}

static void set_quantised(const struct hb_spec *s, struct hb_program *p)
{
    static const double narrow = 0.5; /* 8 bits of 16 */
    for (uint32_t i = 0; i < p->op_count; i++) {
        struct hb_op *op = &p->ops[i];
        if (is_linear(s, op))
            op->dtype = s->precision.fp8 == HB_FP8_NVFP4 ? HB_DT_F4 : HB_DT_F8;
        if (s->precision.fp8_gather && op->kind == HB_OP_ALL_GATHER && op->axis == HB_AX_FSDP)
            op->sent_bytes *= narrow;
    }
}

bool hb_timed_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                    struct hb_program *out)
{
    if (spec->compiler == HB_TORCH) {
        hb_eager_lower(arena, spec, out);
        return true;
    }
    if (!hb_lower(arena, diag, spec, out))
        return false;
    if (spec->precision.fp8 != HB_FP8_NONE) {
        set_passes(arena, spec, out);
        set_quantised(spec, out);
    }
    return true;
}
