/* Microbatches of a rank that do at a stage what an earlier one did, action by action, and what an
 * action comes to: of the third and later ones of a kind nothing need be run where only sums are
 * asked.
 *
 *   microbatch   0  F B      run: the first gradients are made, not added to
 *                1  F B      run, and measured action by action
 *                2  F B      as 1
 *                3  F I W    run: another kind */
#ifndef HB_SIM_EAGER_ALIKE_H
#define HB_SIM_EAGER_ALIKE_H

#include "sim/eager/actions.h"
#include "sim/eager/tape.h"

struct hb_alike {
    enum hb_alike_kind { HB_ALIKE_RUN, HB_ALIKE_MODEL, HB_ALIKE_LEFT_OUT } kind;
    uint32_t model; /* of one left out: the action that it does again */
};

/* What an action does to the sums of a server. */
struct hb_stretch {
    int64_t change_bytes; /* of what is alive, from its start to its end */
    int64_t most_bytes;   /* alive beyond the start */
    int64_t asked_bytes;
    uint32_t asked_count;
};

/* By action. */
struct hb_alike *hb_alike_find(struct hb_arena *arena, const struct hb_pipeline *p, int64_t rank,
                               const struct hb_actions *a);
/* What happens between the two is measured; the first returns the sums before it. */
struct hb_stretch hb_stretch_begin(struct hb_sums *sums);
void hb_stretch_end(struct hb_sums *sums, struct hb_stretch *s);
/* It is done once more, without storages. */
void hb_stretch_add(struct hb_sums *sums, const struct hb_stretch *s);

#endif
