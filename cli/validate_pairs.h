/* The pairs of records in the report of `validate`. */
#ifndef HB_CLI_VALIDATE_PAIRS_H
#define HB_CLI_VALIDATE_PAIRS_H

#include <stdio.h>

#include "base/json_write.h"
#include "sim/engine/pairs.h"

void hb_report_pairs_text(const struct hb_pairs *pairs, FILE *to);
/* The key "pairs" with its value; shares are null where there is nothing to share. */
void hb_report_pairs_json(struct hb_json *j, const struct hb_pairs *pairs);

#endif
