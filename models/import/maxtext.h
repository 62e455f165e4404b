/* Inside of MaxText's importer: what its keys say of the run, not of the model. */
#ifndef HB_MODELS_IMPORT_MAXTEXT_H
#define HB_MODELS_IMPORT_MAXTEXT_H

#include "models/import/source.h"

/* Batch, mesh, precision, optimizer, remat, stack, loss, pipeline, device out of c, the model
 * having been put already; and what is left over of c. */
bool hb_maxtext_run(struct hb_foreign *f, const struct hb_node *c);

#endif
