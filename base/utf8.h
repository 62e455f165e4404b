/* Whether bytes are text: well-formed UTF-8 without NUL and control characters. */
#ifndef HB_BASE_UTF8_H
#define HB_BASE_UTF8_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

/* True if text is UTF-8 of the characters that YAML 1.1 allows. Else an error with the place:
 * start is that of text[0] (line and column from 1). */
bool hb_utf8_check(struct hb_diag *diag, struct hb_loc start, const char *text, size_t len);
/* Writes text to what may be a terminal: whatever could steer one (control characters but line
 * ends and tabs, bytes that are no UTF-8) stands as \x1b. With colours, hbmsim's own codes of
 * colour pass. */
void hb_utf8_show(FILE *to, const char *text, size_t len, bool colours);
/* printf through hb_utf8_show, without colours; of the text, at most 4 KiB. */
void hb_utf8_say(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hb_utf8_vsay(FILE *to, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Writes code as UTF-8 (1 to 4 bytes, no terminator); returns their number. */
int hb_utf8_put(uint32_t code, char *text);

#endif
