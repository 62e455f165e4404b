/* Where a configuration runs, in a few words for a picture's subtitle. */
#ifndef HB_PLOTS_PLACE_H
#define HB_PLOTS_PLACE_H

#include "base/node.h"
#include "models/spec.h"

/* How much of it holds for all that is drawn: "nvidia-h100", "8 × nvidia-h100", "8 × nvidia-h100,
 * fsdp 8". */
enum hb_where { HB_WHERE_NONE, HB_WHERE_DEVICE, HB_WHERE_COUNT, HB_WHERE_MESH };

const char *hb_place_of(struct hb_arena *arena, const struct hb_spec *spec, enum hb_where most);
/* The same of a result's JSON, by its head; "" where it does not tell. */
const char *hb_place_read(struct hb_arena *arena, const struct hb_node *json, enum hb_where most);
/* Behind the configuration's name; either may be null or "". */
const char *hb_place_under(struct hb_arena *arena, const char *name, const char *place);
/* What holds still where this key varies. */
enum hb_where hb_place_with(const char *key);

#endif
