/* What `hbmsim hlo` prints of a dump. */
#ifndef HB_CLI_SHOW_HLO_H
#define HB_CLI_SHOW_HLO_H

#include <stdio.h>

#include "base/json_write.h"
#include "plots/outcome.h"
#include "sim/hlo/report.h"

struct hb_env;

/* How the dump was read. */
struct hb_hlo_shown {
    const char *file;
    const char *version; /* of hbmsim */
    bool backend_given;  /* else it was guessed from the text */
    int64_t top;         /* rows of the table of temporaries */
};

void hb_show_hlo_text(const struct hb_env *env, FILE *out, const struct hb_hlo_shown *shown,
                      const struct hb_hlo_report *r);
/* One JSON object. */
/* heap: null, or what plot draws (plots/outcome.h). */
void hb_show_hlo_json(struct hb_json *j, const struct hb_hlo_shown *shown,
                      const struct hb_hlo_report *r, const struct hb_outcome *heap);

#endif
