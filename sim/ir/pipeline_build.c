/* What a pipeline is made of: its stages' groups, their weights, what they keep. See pipeline.h. */
#include "sim/ir/pipeline.h"

#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"

bool hb_pipeline_wanted(const struct hb_lower *lo)
{
    return hb_ways(lo, HB_AX_PIPELINE) > 1;
}

static struct hb_group *add_group(struct hb_lower *lo, struct hb_pipeline *pl)
{
    pl->groups = hb_grow(lo->arena, pl->groups, pl->count, &pl->cap, sizeof *pl->groups);
    struct hb_group *g = &pl->groups[pl->count++];
    *g = (struct hb_group){.trips = 1, .outer_stack = HB_NONE};
    return g;
}

/* Scan steps of a block that one stage runs in one iteration. */
static int64_t stage_steps(const struct hb_lower *lo, const struct hb_block *b)
{
    return hb_div_up(hb_div_up(hb_block_steps(b), hb_ways(lo, HB_AX_PIPELINE)),
                     lo->spec->pipeline.repeats);
}

void hb_pipeline_leaves(struct hb_lower *lo, struct hb_pipeline *pl)
{
    *pl = (struct hb_pipeline){.iter_stack = HB_NONE, .layer_stack = HB_NONE, .state = HB_NONE};
    int64_t repeats = lo->spec->pipeline.repeats;
    for (int i = 0; i < lo->spec->model.block_count; i++) {
        const struct hb_block *b = &lo->spec->model.blocks[i];
        if (!b->pipelined)
            continue;
        int64_t steps = stage_steps(lo, b);
        int64_t stack[2] = {repeats > 1 ? repeats : steps, repeats > 1 ? steps : 0};
        struct hb_group *g = add_group(lo, pl);
        hb_layer_leaves(lo, b, b->name, stack, &g->layer);
        g->looped =
            lo->spec->stack.form != HB_FORM_LOOP && steps > 1; /* a scan of one step is unrolled */
        g->trips = steps;
        for (int64_t k = 1; k < steps && !g->looped; k++) {
            struct hb_group *more = add_group(lo, pl);
            *more = pl->groups[pl->count - 2]; /* the same leaves, another layer of them */
        }
        if (!g->looped)
            for (uint32_t k = 0; k < pl->count; k++)
                pl->groups[k].trips = 1;
    }
}

static struct hb_remat no_remat(void)
{
    return (struct hb_remat){.policy = HB_POLICY_NONE};
}

/* Without constraints in the body the partitioner leaves the batch whole over the expert axis, in
 * the stacks of the iterations too (ep2pp4--good,constraints=none: bf16[7,1,8,4096,4096], masks of
 * the 8 experts here); forced replication gathers it in the layers alone, masks of all experts
 * (ep2pp4--good,replicate: bf16[32768,16,640]). Returns the sequences in a layer. */
static int64_t spread_batch(struct hb_lower *lo, struct hb_pipeline *pl)
{
    int64_t ep = hb_ways(lo, HB_AX_EXPERT);
    int64_t whole = hb_mul_sat(pl->batch, ep);
    if (lo->expert_batch != HB_EXPERTS_JOINED)
        return pl->batch;
    switch (lo->spec->pipeline.constraints) {
    case HB_CONS_NONE:
        lo->expert_batch = HB_EXPERTS_LOCAL;
        pl->batch = whole;
        return whole;
    case HB_CONS_REPLICATE:
        lo->expert_batch = HB_EXPERTS_GATHERED;
        return whole;
    case HB_CONS_STATE:
    case HB_CONS_ALL:
        lo->expert_batch = HB_EXPERTS_EXCHANGED;
        return pl->batch;
    }
    HB_BUG("constraints %d", (int)lo->spec->pipeline.constraints);
}

bool hb_pipeline_saves_inputs(const struct hb_lower *lo)
{
    return (lo->spec->pipeline.iteration_save & 1u << HB_TN_LAYER_IN) != 0;
}

/* Whether the layers of a rematerialised iteration are made again one by one, from inputs
 * of their own, saved or behind the barrier of a rematerialisation of their own. */
static bool is_apart(const struct hb_lower *lo, const struct hb_group *g)
{
    const struct hb_pipe *p = &lo->spec->pipeline;
    return p->remat_iteration && !g->looped && (p->remat_layer || hb_pipeline_saves_inputs(lo));
}

/* Then gate, up and activation of the first come just before its backward pass, the last of all
 * (pr85/pp8/good,layer_remat: two products bf16[16,2048,2560] more in the backward body than
 * without, and 3 x 160 MiB less at its peak; with four layers, ep2pp4, as much less). Where the
 * attention without a kernel is the peak, so does what products with a batch make, scores too, of
 * each layer (pp8/bad-trivial with attn=naive: one layer's f32[1,4,8,4096,4096,4], none of the
 * experts' inputs and masks of the other). */
static void make_late(struct hb_layer *y)
{
    uint32_t hidden = 1u << HB_TN_MLP_GATE | 1u << HB_TN_MLP_UP | 1u << HB_TN_MLP_ACT;
    bool flash = y->block->attention.kernel == HB_KERNEL_FLASH;
    for (uint32_t i = 0; i < y->value_count; i++) {
        struct hb_value *v = &y->values[i];
        v->cheap = v->cheap || (v->tags & hidden) || (v->batch_dot && !flash);
    }
}

void hb_pipeline_build(struct hb_lower *lo, struct hb_pipeline *pl)
{
    int64_t stages = hb_ways(lo, HB_AX_PIPELINE);
    const struct hb_pipe *p = &lo->spec->pipeline;
    pl->iterations = p->microbatches * p->repeats + stages - 1;
    int64_t split = lo->spec->sharding.ends_over_pipeline ? stages : 1;
    pl->batch = hb_div_up(hb_mul_sat(lo->local.batch, split), p->microbatches);
    int64_t layer_batch = spread_batch(lo, pl);
    /* Two layers side by side: the weight gradients of both come after the first one's backward
     * pass, and are made from the activations (llama3-8b/pp4_lps2: four bf16[4,4096,14336] of each
     * layer; not with four, eight or sixteen layers, pp4_lps4, pp4_lps8, pp2_lps16). */
    lo->acts_stay = pl->count == 2 && !pl->groups[0].looped;
    for (uint32_t i = 0; i < pl->count; i++) {
        struct hb_group *g = &pl->groups[i];
        struct hb_remat remat = p->remat_layer ? g->layer.block->remat : no_remat();
        if (is_apart(lo, g))
            remat = no_remat();
        g->layer.together = g->looped ? 0 : pl->count;
        g->layer.behind = pl->count - 1 - i;
        hb_layer_build(lo, &g->layer, layer_batch);
        bool flash = g->layer.block->attention.kernel == HB_KERNEL_FLASH;
        if (is_apart(lo, g) && (i == 0 || !flash))
            make_late(&g->layer);
        /* The scan over iterations stacks what its trace reads, f32 copies and all
         * (pr85/pp8/good,remat=none: eight f32[15,4,4096,4096]). */
        hb_saved_find(lo, &g->layer, &remat, true, !g->looped, &g->saved);
        hb_body_init(&g->body, lo, &g->layer, &g->saved);
        /* What a rematerialised iteration keeps for itself is read where it lies. */
        g->body.own_stacks = p->remat_iteration && !g->looped && lo->habits->recompute_first;
        /* pr85/pp8: bf16 of both layers' experts, 6 x 256 MiB, from the iteration's second forward
         * pass to the end of each layer's backward pass. */
        g->body.own_weights = g->body.own_stacks;
        /* On ROCm those of all layers of a rematerialised iteration, two (pr85/pp8/good+layerin at
         * the first layer's attention, 827 of 1102: inputs, activation and output gradients of
         * both layers' experts, 2 x (2 x 320 + 3 x 160) MiB, to 877 and on) or four (ep2pp4/good:
         * norms, attention results and experts of all four to 1834 of 2162 and on). */
        g->body.defer = !pl->groups[0].looped;
        g->body.spread_wait = !g->looped;
        g->body.sums_wide = lo->habits->sums_remade && g->body.own_stacks;
    }
}
