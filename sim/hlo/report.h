/* What is told of a dump: its figures, what stands at the peak by operation, the live bytes over
 * the schedule, and what was found in it. */
#ifndef HB_SIM_HLO_REPORT_H
#define HB_SIM_HLO_REPORT_H

#include "sim/hlo/finding.h"
#include "sim/hlo/program.h"
#include "sim/hlo/schedule.h"

/* Temporaries alive at the peak that the same operation makes in the same shape. */
struct hb_hlo_group {
    struct hb_hlo_span name;    /* of the largest */
    struct hb_hlo_span op_name; /* in the user's program; empty where none is told */
    struct hb_hlo_span shape;
    const char *opcode;
    struct hb_hlo_span file; /* of the user's source; at null: not told */
    int64_t line;
    int64_t bytes; /* of all */
    uint32_t count;
};

struct hb_hlo_point {
    int32_t op;         /* position in the schedule */
    int64_t live_bytes; /* the most between here and the next point, arguments and outputs too */
};

/* An order to run it in: none asked for (a scheduled module runs as printed, another as needs
 * least), one of XLA's, or the one that XLA would keep. */
enum hb_hlo_ask {
    HB_HLO_ASK_NONE,
    HB_HLO_ASK_LIST,
    HB_HLO_ASK_DEPTH,
    HB_HLO_ASK_POST,
    HB_HLO_ASK_LEAST
};

struct hb_hlo_report {
    struct hb_hlo_program hp;
    enum hb_order_kind order;    /* in which it runs; HB_ORDER_KINDS: as printed */
    bool ordered;                /* that was asked for: */
    struct hb_hlo_orders orders; /* what there is to choose from */
    struct hb_memory memory;
    struct hb_hlo_figures figures;
    struct hb_hlo_group *groups; /* the largest first */
    uint32_t group_count;
    struct hb_hlo_point *curve;
    uint32_t curve_count;
    struct hb_hlo_findings findings;
};

/* Fills the report of a module, whose dialect is decided. False with an error in diag. */
bool hb_hlo_report_make(struct hb_arena *arena, struct hb_diag *diag, const struct hb_hlo_module *m,
                        enum hb_hlo_ask ask, struct hb_hlo_report *out_report);

/* The instruction whose value a buffer of the program is. */
uint32_t hb_hlo_report_inst(const struct hb_hlo_program *hp, uint32_t buf);

#endif
