/* What the format can say and the simulator cannot simulate yet. */
#ifndef HB_MODELS_SUPPORT_H
#define HB_MODELS_SUPPORT_H

#include <stdbool.h>

#include "base/diag.h"
#include "models/spec.h"

struct hb_node;

/* True if the whole step can be simulated; else an error for each key that cannot, where it stands
 * in root, which may be null. */
bool hb_spec_supported(struct hb_diag *diag, const struct hb_node *root,
                       const struct hb_spec *spec);
/* The same for its time alone, of which more is known. */
bool hb_spec_timed(struct hb_diag *diag, const struct hb_node *root, const struct hb_spec *spec);

#endif
