/* The orders in which XLA would put a module (sim/graph/order.h), beside the one that it has: a
 * scheduled module is compared with them, one before optimisation, which has none, is given one. */
#ifndef HB_SIM_HLO_SCHEDULE_H
#define HB_SIM_HLO_SCHEDULE_H

#include "sim/graph/choose.h"
#include "sim/hlo/module.h"

/* How far an order agrees with the text: the most instructions that stand in the same order in
 * both; parameters, constants and what only hands on are left out. */
struct hb_hlo_common {
    uint32_t same, of;
};

struct hb_hlo_orders {
    uint32_t *insts[HB_ORDER_KINDS]; /* as hb_hlo_flow_find takes them */
    int64_t bytes[HB_ORDER_KINDS];   /* XLA's estimate: all that is alive at once, arguments too */
    struct hb_hlo_common entry[HB_ORDER_KINDS], inside[HB_ORDER_KINDS]; /* of called ones */
    enum hb_order_kind least;
    int64_t printed_bytes;
};

/* False with an error in diag, as hb_hlo_flow_find. */
bool hb_hlo_orders_find(struct hb_arena *arena, struct hb_diag *diag, const struct hb_hlo_module *m,
                        struct hb_hlo_orders *out);

/* 0 to 1; 1 where there is nothing. */
double hb_hlo_common_part(const struct hb_hlo_common *common);
/* "as printed", or an order's name. HB_ORDER_KINDS: as printed. */
const char *hb_hlo_order_title(enum hb_order_kind kind);

#endif
