/* A small reproducible random source for tests and property laws: same seed, same stream, on
 * any machine (PCG-XSH-RR by M. O'Neill, 2014). */
#ifndef HB_BASE_RNG_H
#define HB_BASE_RNG_H

#include <stdint.h>

struct hb_rng {
    uint64_t state;
};

struct hb_rng hb_rng_seed(uint64_t seed);
uint32_t hb_rng_next(struct hb_rng *rng);
/* Uniform in [low, high], both included. */
int64_t hb_rng_range(struct hb_rng *rng, int64_t low, int64_t high);

#endif
