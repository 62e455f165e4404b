/* Verdicts that people reported, against what is predicted: the part of `validate`'s report that
 * counts them. */
#ifndef HB_CLI_VALIDATE_VERDICTS_H
#define HB_CLI_VALIDATE_VERDICTS_H

#include <stdio.h>

#include "base/json_write.h"
#include "cli/validate.h"

/* Nothing where no record is a verdict. */
void hb_report_verdicts_text(const struct hb_report *r, FILE *to);
/* The key "verdicts": null where no record is one. */
void hb_report_verdicts_json(const struct hb_report *r, struct hb_json *j);

#endif
