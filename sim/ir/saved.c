/* Policies applied to one layer: see saved.h. */
#include "sim/ir/saved.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"

struct find {
    const struct hb_layer *y;
    const struct hb_remat *remat;
    bool vmapped;
    bool pruned;
    bool merged; /* names keep nothing that readers would make */
    struct hb_saved *saved;
    bool *seen;
};

/* Inside a unit of several layers layer_in can be saved, but is offloaded only as the unit's own
 * input (gemma2-9b/inputoff: host bytes of 21 inputs, not 42). */
static enum hb_keep by_name(const struct hb_remat *r, uint32_t tags)
{
    if (tags & r->offload & ~(1u << HB_TN_LAYER_IN))
        return HB_KEEP_HOST;
    return tags & r->save ? HB_KEEP_DEVICE : HB_KEEP_NO;
}

/* What the policy says of a value, needed or not. */
static enum hb_keep wish(const struct find *f, int v)
{
    const struct hb_value *value = &f->y->values[v];
    if (v == f->y->input)
        return f->remat->offload & 1u << HB_TN_LAYER_IN ? HB_KEEP_HOST : HB_KEEP_DEVICE;
    switch (f->remat->policy) {
    case HB_POLICY_NONE:
        if (value->dots_only || value->unseen || value->relaid)
            return HB_KEEP_NO;
        if (f->pruned && (value->fused || (value->cheap && f->vmapped)))
            return HB_KEEP_NO;
        return HB_KEEP_DEVICE;
    case HB_POLICY_FULL:
        return HB_KEEP_NO;
    case HB_POLICY_DOTS:
        return value->dot || value->batch_dot ? HB_KEEP_DEVICE : HB_KEEP_NO;
    case HB_POLICY_DOTS_NO_BATCH:
        return value->dot && !f->vmapped ? HB_KEEP_DEVICE : HB_KEEP_NO;
    case HB_POLICY_NAMES:
        if (f->merged && value->fused)
            return HB_KEEP_NO;
        return by_name(f->remat, value->tags);
    }
    HB_BUG("policy %d", (int)f->remat->policy);
}

/* Keeps the value or marks what must be made again for it. */
static void need(struct find *f, int v)
{
    if (f->seen[v])
        return;
    f->seen[v] = true;
    enum hb_keep keep = wish(f, v);
    f->saved->keep[v] = keep;
    if (keep != HB_KEEP_NO)
        return;
    const struct hb_value *value = &f->y->values[v];
    if (value->producer < 0)
        HB_BUG("'%s' has no producer and is not kept", value->name);
    f->saved->remake[v] = true;
    const struct hb_step_op *s = &f->y->steps[value->producer];
    for (int i = 0; i < s->in_count; i++)
        need(f, s->in[i]);
}

static void need_of_step(struct find *f, const struct hb_step_op *s)
{
    bool traces = f->remat->policy == HB_POLICY_NONE && !f->pruned;
    for (int i = 0; i < s->in_count; i++)
        if ((s->back_in & 1u << i) && !(s->trace_serves && traces))
            need(f, s->in[i]);
    for (int i = 0; i < s->out_count; i++) {
        bool traced = f->y->values[s->out[i]].trace_only && f->remat->policy == HB_POLICY_NONE;
        bool product = f->y->values[s->out[i]].dots_only && f->remat->policy == HB_POLICY_DOTS;
        if (traced || product || s->back_out & 1u << i)
            need(f, s->out[i]);
    }
}

void hb_saved_find(struct hb_lower *lo, const struct hb_layer *y, const struct hb_remat *remat,
                   bool vmapped, bool pruned, struct hb_saved *out)
{
    out->keep = hb_arena_alloc(lo->arena, y->value_count, sizeof *out->keep);
    out->remake = hb_arena_alloc(lo->arena, y->value_count, sizeof *out->remake);
    struct find f = {.y = y, .remat = remat, .vmapped = vmapped, .pruned = pruned, .saved = out};
    f.merged = lo->spec->merged;
    f.seen = hb_arena_alloc(lo->arena, y->value_count, sizeof *f.seen);
    for (uint32_t i = 0; i < y->step_count; i++)
        need_of_step(&f, &y->steps[i]);
    if (remat->policy != HB_POLICY_NONE)
        need(&f, y->input);
}

int64_t hb_saved_bytes(const struct hb_saved *s, const struct hb_layer *y)
{
    int64_t sum = 0;
    for (uint32_t v = 0; v < y->value_count; v++)
        if (s->keep[v] == HB_KEEP_DEVICE)
            sum = hb_add_sat(sum, hb_shape_plain_bytes(&y->values[v].shape));
    return sum;
}

/* Whether a policy may keep a part of what the value's own op makes: then less is made again. */
static bool is_made_in_parts(const struct hb_layer *y, const struct hb_value *value)
{
    const struct hb_step_op *s = value->producer < 0 ? NULL : &y->steps[value->producer];
    for (int i = 0; s && i < s->in_count; i++) {
        const struct hb_value *in = &y->values[s->in[i]];
        if (in->fused && (in->tags || in->dot || in->batch_dot || is_made_in_parts(y, in)))
            return true;
    }
    return false;
}

uint8_t hb_saved_by(const struct hb_layer *y, int v)
{
    const struct hb_value *value = &y->values[v];
    uint32_t by = value->dots_only || value->relaid ? 0 : 1u << HB_POLICY_NONE;
    if (value->unseen || is_made_in_parts(y, value))
        return 0;
    by |= value->dot || value->batch_dot || value->dots_only ? 1u << HB_POLICY_DOTS : 0;
    by |= value->dot ? 1u << HB_POLICY_DOTS_NO_BATCH : 0;
    by |= value->tags ? 1u << HB_POLICY_NAMES : 0;
    return (uint8_t)by;
}

/* A product for a weight's gradient takes the slice of an activation that nothing else reads inside
 * (cuda-bwd/remat=names:mlp_act; not the attention's context). So do XLA:GPU's fusions (mistral-7b
 * of two layers, fsdp 2, names:mlp_gate,mlp_up: three bf16[4,4096,14336] of the activation and both
 * gradients, no slice; dots, none, and fsdp 8 without constraints alike), unless an einsum's rows
 * are turned: the activation that is made again has a place beside them. */
bool hb_saved_inside(const struct hb_layer *y, const struct hb_saved *saved, int v, bool fused)
{
    int products = 0, fusions = 0, others = 0, maker = y->values[v].producer;
    for (uint32_t i = 0; i < y->step_count; i++) {
        const struct hb_step_op *s = &y->steps[i];
        bool again = saved->remake[s->out[0]];
        bool beside = !again || s->grad_in_place || !y->values[s->out[0]].fused;
        bool fusion = s->op == HB_OP_ELEMENTWISE && beside;
        int *readers = s->kind == HB_STEP_PRODUCT ? &products : fusion ? &fusions : &others;
        for (int k = 0; k < s->in_count; k++)
            *readers += s->in[k] == v && (s->back_in & 1u << k || again);
        for (int k = 0; k < s->out_count; k++)
            *readers += s->out[k] == v && (s->back_out & 1u << k);
    }
    bool made = maker >= 0 && y->steps[maker].op == HB_OP_ELEMENTWISE;
    return others == 0 && (products > 0 ? products == 1 && fusions == 0 && made : fused);
}
