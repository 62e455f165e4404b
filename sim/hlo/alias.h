/* Which outputs of an instruction must lie, or may lie, in the memory of its operands (rules 6
 * and 8; xla/hlo/analysis/alias_info.cc, CanShareOperandBufferWithUser in
 * hlo_dataflow_analysis.cc, xla/service/gpu/alias_info.cc). */
#ifndef HB_SIM_HLO_ALIAS_H
#define HB_SIM_HLO_ALIAS_H

#include "sim/hlo/flow.h"

/* Users of every instruction, fused ones included; may hold one twice. */
struct hb_hlo_users {
    uint32_t *first; /* by instruction, one more at the end */
    uint32_t *list;
};

struct hb_hlo_alias {
    const struct hb_hlo_module *m;
    struct hb_arena *arena;
    struct hb_hlo_users users;
    uint32_t *mark; /* by instruction: the search that met it last */
    uint32_t search;
    uint32_t *queue; /* room for all instructions */
};

/* Output slot of an instruction that must lie where a slot of an operand lies. */
struct hb_hlo_in_place {
    uint32_t operand, operand_slot, output_slot;
};

enum { HB_HLO_MAX_IN_PLACE = 64 };

void hb_hlo_alias_init(struct hb_hlo_alias *a, struct hb_arena *arena,
                       const struct hb_hlo_module *m);
/* Fills out, at most max; returns how many there are to fill. */
uint32_t hb_hlo_in_place(const struct hb_hlo_alias *a, uint32_t inst, struct hb_hlo_in_place *out,
                         uint32_t max);
/* Whether user's output slot may take the place of the operand's slot, which dies there. */
bool hb_hlo_may_share(struct hb_hlo_alias *a, uint32_t operand, uint32_t operand_slot,
                      uint32_t user, uint32_t user_slot);

#endif
