/* The order of weight gradients among layers side by side (side.h), read in the schedules named. */
#include "sim/ir/side.h"

#include "base/size.h"
#include "sim/ir/order.h"
#include "sim/ir/trip.h"
#include "sim/ir/weight.h"

/* In an unrolled program with rings the weight gradients' rings come after the whole backward pass,
 * and three tensors of width d_ff a layer wait for them (llama3-8b/L4_noscan: 12 of them); not on
 * v5e (llama3-8b/L8_noscan), not of rings of four, which are no loops (llama3-8b, fsdp 4 and tensor
 * 4, v6e: one layer's), nor where they hide states on their way from and to the host (1B with
 * layers=loop and opt_host). MaxText's do beside late gathers, too (rand015/gemma3-4b, v6e-64). On
 * one device they come with the update, which waits for states from the host (tiny/layers=loop). */
static bool defers(const struct hb_lower *lo)
{
    bool ring = hb_in_rings(lo);
    return ring ? !lo->chip->ring_grads_at_once && !hb_in_short_ring(lo) : lo->maxtext;
}

/* CUDA hides an unrolled program's collectives behind weight gradients, whose sums come last. */
void hb_side_plan(struct hb_lower *lo, struct hb_stack_plan *plan)
{
    plan->late = plan->count;
    for (uint32_t i = 0; i < plan->count; i++) {
        struct hb_group *g = &plan->groups[i];
        g->body.defer = (!g->looped && defers(lo)) || hb_order_depth(lo) || plan->held;
        g->body.meets_loss = i == 0 && hb_trip_meets_loss(lo, plan);
        g->body.sums_wait = !g->looped && lo->habits->gathers_timed;
        g->body.spread_wait = g->body.sums_wait;
    }
}

/* In an unrolled program over more than 32 devices XLA:TPU starts the gathers of all experts before
 * the first layer (olmoe,loop,einsum on v6e and v5p over 256: three of each of 2, 4 and 8 layers
 * from before the first one to their product; not on v5e, not over 4 or 8). */
void hb_side_gather(struct hb_lower *lo, const struct hb_stack_plan *plan)
{
    for (uint32_t i = 0; i < plan->count && hb_weight_gathers_apart(lo); i++) {
        const struct hb_layer *y = &plan->groups[i].layer;
        bool early = !plan->groups[i].looped && hb_block_mixes(y->block);
        for (uint32_t k = y->first_leaf; k < y->end_leaf && early; k++)
            hb_weight_use(lo, k);
    }
}

/* The weight gradients that wait of the groups not below `to`, last first. */
static void run_late(struct hb_stack_plan *plan, uint32_t to)
{
    for (; plan->late > to; plan->late--)
        if (plan->groups[plan->late - 1].body.defer && !plan->groups[plan->late - 1].looped)
            hb_body_late(&plan->groups[plan->late - 1].body);
}

void hb_side_follow(struct hb_lower *lo, struct hb_stack_plan *plan, uint32_t i)
{
    if (hb_order_depth(lo))
        run_late(plan, i);
    if (!plan->groups[i].body.defer)
        run_late(plan, plan->late - 1);
}

void hb_side_finish(struct hb_stack_plan *plan)
{
    run_late(plan, 0);
    for (uint32_t i = plan->count; i-- > 0;)
        if (plan->groups[i].body.sums_wait) {
            hb_body_late(&plan->groups[i].body);
            hb_body_sums(&plan->groups[i].body);
        }
}
