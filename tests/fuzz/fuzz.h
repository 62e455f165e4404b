/* A fuzz target is one file tests/fuzz/fuzz_NAME.c that defines this function, its corpus
 * tests/fuzz/corpus/NAME, and perhaps a dictionary tests/fuzz/NAME.dict. `make fuzz T=NAME` mutates
 * with libFuzzer; `make test` replays the corpus, so what once failed is tried for ever. */
#ifndef HB_TESTS_FUZZ_H
#define HB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Runs the code under test on len bytes; returns 0. Aborts where a promise is broken. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* One arena for all inputs, with a block that holds what most of them need, emptied for each:
 * getting memory from the system is most of the time otherwise. */
static inline struct hb_arena *fuzz_arena(void)
{
    enum { ROOM = 2 << 20 };
    static struct hb_arena *arena;
    static struct hb_arena_mark start;
    if (!arena) {
        arena = hb_arena_new();
        hb_arena_raw(arena, ROOM, 1);
        hb_arena_raw(arena, 1, 1); /* in a block of twice that */
        start = hb_arena_mark(arena);
    }
    hb_arena_rewind(arena, start);
    return arena;
}

#endif
