/* What the page may ask for: nothing that makes the program read a file. A configuration of the
 * page names none (include, model.import, a device's profile), nor does a range of a fit map. */
#ifndef HB_CLI_SERVE_GATE_H
#define HB_CLI_SERVE_GATE_H

#include "base/diag.h"
#include "base/node.h"

/* device: the profile file that the command line's configuration names, which may be named again;
 * null: none. False, with an error. */
bool hb_gate_config(struct hb_diag *diag, const struct hb_node *root, const char *device);
/* An axis of a sweep, "batch.global=8..64*2". */
bool hb_gate_axis(struct hb_diag *diag, const char *text);

#endif
