/* A fuzz target is one file tests/fuzz/fuzz_NAME.c that defines this function, its corpus
 * tests/fuzz/corpus/NAME, and perhaps a dictionary tests/fuzz/NAME.dict. `make fuzz T=NAME` mutates
 * with libFuzzer; `make test` replays the corpus, so what once failed is tried for ever. */
#ifndef HB_TESTS_FUZZ_H
#define HB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Runs the code under test on len bytes; returns 0. Aborts where a promise is broken. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#endif
