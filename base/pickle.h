/* Python's pickles as data: numbers, texts, lists, tuples and dictionaries, as pickle.dump writes
 * them (protocols 2 to 5). What would import a name, call or build an object is refused with its
 * place: nothing of the file is ever run. (One call is known to give back what it is given:
 * torch.jit._pickle.restore_type_tag, which PyTorch's own writer puts around lists.)
 *
 * A value is an index; what several places share is one value, so that a document may be a graph,
 * even one that holds itself: follow it to a depth that you know, never to its end. */
#ifndef HB_BASE_PICKLE_H
#define HB_BASE_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct hb_arena;

enum hb_pickle_kind {
    HB_PICKLE_NONE,
    HB_PICKLE_BOOL,
    HB_PICKLE_INT, /* beyond 64 bits: the nearest that is not */
    HB_PICKLE_REAL,
    HB_PICKLE_TEXT,
    HB_PICKLE_LIST, /* tuples, too */
    HB_PICKLE_MAP,
    HB_PICKLE_NAME /* of what may be called: nothing that a reader meets */
};

struct hb_pickle_value {
    uint8_t kind;
    uint32_t count; /* of a text's bytes, a list's items, a map's pairs */
    union {
        int64_t number;
        double real;
        const char *text; /* not terminated */
        uint32_t *items;  /* values; of a map key, value, key, value ... */
    } is;
};

struct hb_pickle {
    struct hb_pickle_value *values;
    uint32_t count, cap;
    uint32_t root;
};

enum { HB_PICKLE_MOST_VALUES = 1 << 27 };

/* Whether a file that begins so is one of these protocols. */
bool hb_pickle_is(const char *text, size_t len);
/* Reads the first pickle in text, which the values point into. False: an error says where. */
bool hb_pickle_read(struct hb_arena *arena, struct hb_diag *diag, const char *path,
                    const char *text, size_t len, struct hb_pickle *out);

/* The value of a key; HB_PICKLE_ABSENT where map is absent, no map, or has no such key. */
#define HB_PICKLE_ABSENT UINT32_MAX
uint32_t hb_pickle_find(const struct hb_pickle *p, uint32_t map, const char *key);
/* 0 where it is absent or no list. */
uint32_t hb_pickle_length(const struct hb_pickle *p, uint32_t list);
/* Absent where there are not that many. */
uint32_t hb_pickle_at(const struct hb_pickle *p, uint32_t list, uint32_t index);
/* other where it is absent or no number. */
int64_t hb_pickle_int(const struct hb_pickle *p, uint32_t value, int64_t other);
/* "" where it is absent or no text. */
const char *hb_pickle_text(const struct hb_pickle *p, uint32_t value, uint32_t *out_len);
bool hb_pickle_is_text(const struct hb_pickle *p, uint32_t value, const char *text);

#endif
