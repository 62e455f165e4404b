/* What torch's partitioner keeps of a compiled layer at an activation memory budget below 1
 * (torch/_functorch/partitioners.py: choose_saved_values_set, dp_knapsack). */
#ifndef HB_SIM_EAGER_KNAPSACK_H
#define HB_SIM_EAGER_KNAPSACK_H

#include <stdbool.h>
#include <stdint.h>

#include "models/spec.h"

struct hb_arena;

/* Its own policy, or, of a layer that so many tokens pass, of elements of so many bytes, the one
 * that the budget comes to. */
struct hb_remat hb_knapsack_remat(struct hb_arena *arena, const struct hb_spec *s,
                                  const struct hb_block *b, int64_t tokens, int64_t width);
/* What it keeps is told by name, not counted: a budget's, or a list of its own. */
bool hb_knapsack_has_names(const struct hb_spec *s, const struct hb_remat *r);
/* Whether the layer keeps what its product number `at`, from q on, or its attention made. */
bool hb_knapsack_keeps(const struct hb_remat *r, int at);
bool hb_knapsack_keeps_attention(const struct hb_remat *r);

#endif
