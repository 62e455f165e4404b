/* The bytes of a compiler's dump: read whole, plain or gzip, and places in it for messages. */
#ifndef HB_SIM_HLO_TEXT_H
#define HB_SIM_HLO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct hb_arena;

/* The largest dump that is read, after unpacking. Offsets into it are 32 bits. */
#define HB_HLO_MAX_BYTES ((int64_t)2 << 30)

struct hb_hlo_text {
    const char *file;  /* for messages */
    const char *bytes; /* len of them, then a zero; may hold zeros before */
    size_t len;
    size_t from; /* where the module that is meant begins */
};

/* A piece of the text; at null: none. */
struct hb_hlo_span {
    const char *at;
    size_t len;
};

/* Reads path ("-": standard input); what is gzip is unpacked. */
bool hb_hlo_text_load(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                      struct hb_hlo_text *out_text);
/* Where modules begin, by their heads; none where a text has no head. Returns how many, at most max
 * of them in out, each with its name. */
struct hb_hlo_part {
    struct hb_hlo_span name;
    size_t from, to; /* bytes */
};
uint32_t hb_hlo_text_parts(const struct hb_hlo_text *text, struct hb_hlo_part *out, uint32_t max);
/* Line and column, from 1, of a byte of the text. */
struct hb_loc hb_hlo_text_loc(const struct hb_hlo_text *text, const char *at);

#endif
