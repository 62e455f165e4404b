/* Whether bytes are text: well-formed UTF-8 without NUL and control characters. */
#ifndef HB_BASE_UTF8_H
#define HB_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

/* True if text is UTF-8 of the characters that YAML 1.1 allows. Else an error with the place:
 * start is that of text[0] (line and column from 1). */
bool hb_utf8_check(struct hb_diag *diag, struct hb_loc start, const char *text, size_t len);
/* Writes code as UTF-8 (1 to 4 bytes, no terminator); returns their number. */
int hb_utf8_put(uint32_t code, char *text);

#endif
