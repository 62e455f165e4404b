/* Multi-token prediction: depths behind the model's layers, each a layer like the last that takes
 * in the next tokens' embedding, with the model's own head on the whole of it. Nothing of them is
 * made again, whatever the policy of the stack (MaxText's are outside of its checkpoint, too). */
#ifndef HB_SIM_IR_DEPTHS_H
#define HB_SIM_IR_DEPTHS_H

#include "sim/ir/ends.h"
#include "sim/ir/stack.h"

struct hb_depths {
    struct hb_stack_plan *layers; /* by depth, a layer each */
    int64_t count;
    uint32_t *out;  /* by depth: its residual ... */
    uint32_t *grad; /* ... and that one's gradient by its loss; HB_NONE */
    uint32_t more;  /* gradient of the model's last residual by them; HB_NONE */
};

void hb_depths_leaves(struct hb_lower *lo, struct hb_depths *d);
void hb_depths_build(struct hb_lower *lo, struct hb_depths *d);
/* What of them comes before the model's own loss, from the last residual on; and after it: returned
 * is the gradient of that residual by all losses, from that by the model's. */
void hb_depths_forward(struct hb_lower *lo, struct hb_depths *d, uint32_t x);
uint32_t hb_depths_backward(struct hb_lower *lo, struct hb_depths *d, uint32_t grad);
/* Their weights' gradients, behind the layers' backward pass. */
void hb_depths_finish(struct hb_depths *d);

#endif
