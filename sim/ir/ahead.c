/* What MaxText makes again ahead of the layers that follow: see ahead.h. */
#include "sim/ir/ahead.h"

#include "sim/ir/head.h"
#include "sim/ir/layer.h"

/* MaxText's single dense layer before layers of experts is no loop either. Its wrapper holds: all
 * of it is made again, the attention ahead of the experts' backward loop, the MLP's two products
 * where they are needed (deepseek2-16b with dense_cf1.0, over 8 and 16, and over 32), those before
 * ragged experts ahead as well (/base, over 8). */
void hb_ahead_find(const struct hb_lower *lo, struct hb_group *g)
{
    const struct hb_model *m = &lo->spec->model;
    g->ahead = hb_layer_sorts_rows(&m->blocks[m->block_count - 1].moe);
    if (g->ahead)
        return;
    uint32_t tags = 1u << HB_TN_MLP_GATE | 1u << HB_TN_MLP_UP | 1u << HB_TN_MLP_ACT;
    for (uint32_t v = 0; v < g->layer.value_count; v++)
        if ((g->layer.values[v].tags & tags) && g->saved.keep[v] == HB_KEEP_DEVICE) {
            g->saved.keep[v] = HB_KEEP_NO;
            g->saved.remake[v] = true;
        }
}

/* The two weights gathered for what came ahead wait with it (/base: bf16[2048,10944] twice from
 * 2163 to 4117 of 5642; ep4, over 4 with 8192 tokens of one sequence and experts over 2: from the
 * forward pass on). */
void hb_ahead_hold(struct hb_lower *lo, struct hb_group *g)
{
    static const char *const names[] = {"w_gate", "w_up"};
    for (int i = 0; i < 2 && g->ahead; i++) {
        uint32_t leaf = hb_layer_find_leaf(lo, &g->layer, names[i]);
        g->held[i] = HB_NONE;
        if (leaf == HB_NONE)
            continue;
        const struct hb_leaf *l = &lo->leaves[leaf];
        g->held[i] = hb_temp(lo, hb_name(lo, l->name, ", gathered ahead"), HB_CAT_COMMUNICATION,
                             hb_leaf_layer_shape(l, lo->compute, true));
        hb_emit_mark(lo, "gathered ahead", HB_NONE, g->held[i]);
    }
}

void hb_ahead_end(struct hb_lower *lo, const struct hb_group *g)
{
    for (int i = 0; i < 2 && g->ahead; i++)
        hb_emit_mark(lo, "end of what was gathered ahead", g->held[i], HB_NONE);
}
