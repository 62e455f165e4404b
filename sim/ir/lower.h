/* From a description of the step to its program of buffers. */
#ifndef HB_SIM_IR_LOWER_H
#define HB_SIM_IR_LOWER_H

#include "models/spec.h"
#include "sim/ir/program.h"

struct hb_diag;
struct hb_lower_orders;

/* False (with a message) if a size leaves the range of int64. spec has passed hb_spec_supported. */
bool hb_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
              struct hb_program *out);

/* The same of a sample of a configuration: it has other numbers of layers, but the order of its
 * schedule is to be the whole one's, and what does not fit is not asked to. */
bool hb_lower_sample(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                     const struct hb_spec *whole, struct hb_program *out);

/* Which of XLA:TPU's orders a configuration of a cell is in (sequence.h): blocks with other
 * policies and numbers of layers, but as many layers in all. Not of a pipeline. */
struct hb_lower_orders *hb_lower_orders_open(struct hb_arena *arena, struct hb_diag *diag,
                                             const struct hb_spec *cell);
int hb_lower_order(struct hb_lower_orders *o, const struct hb_model *model);
/* Where the order, which a policy decides, moves ops of the layers themselves: one of each kind as
 * spec.as_order has it; how many. Else 1, the cell's own: they stand in all as in any. */
enum { HB_LOWER_KINDS = 2 };
int hb_lower_kinds(struct hb_arena *scratch, const struct hb_spec *cell, int out[HB_LOWER_KINDS]);

/* No step that has less in all, arguments too, needs more than XLA:GPU leaves it of this device's
 * memory, and no other compiler's: INT64_MAX. */
int64_t hb_lower_share_bytes(const struct hb_spec *spec);
/* Whether its step is MaxText's own. */
bool hb_lower_is_maxtext(const struct hb_spec *spec);

#endif
