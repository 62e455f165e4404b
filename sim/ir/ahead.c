/* What MaxText makes again of a layer that is no loop: see ahead.h. */
#include "sim/ir/ahead.h"

#include "sim/ir/head.h"
#include "sim/ir/layer.h"

/* MaxText's single dense layer before layers of experts is no loop either. Its wrapper holds: all
 * of it is made again, the MLP's two products where they are needed (deepseek2-16b with
 * dense_cf1.0, over 8 and 16, and over 32); not so before ragged experts (/base, over 8). */
void hb_ahead_find(const struct hb_lower *lo, struct hb_group *g)
{
    const struct hb_model *m = &lo->spec->model;
    if (hb_layer_sorts_rows(&m->blocks[m->block_count - 1].moe))
        return;
    uint32_t tags = 1u << HB_TN_MLP_GATE | 1u << HB_TN_MLP_UP | 1u << HB_TN_MLP_ACT;
    for (uint32_t v = 0; v < g->layer.value_count; v++)
        if ((g->layer.values[v].tags & tags) && g->saved.keep[v] == HB_KEEP_DEVICE) {
            g->saved.keep[v] = HB_KEEP_NO;
            g->saved.remake[v] = true;
        }
}
