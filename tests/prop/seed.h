/* Where a property test begins: HB_SEED of the environment, else the test's own seed. It is
 * printed, so that what fails can be drawn again. HB_CASES of the environment: how many it draws,
 * or a share of its own (5%). HB_LONG: many. */
#ifndef HB_TESTS_PROP_SEED_H
#define HB_TESTS_PROP_SEED_H

#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static inline uint64_t prop_seed(uint64_t own)
{
    const char *asked = getenv("HB_SEED");
    uint64_t seed = asked ? strtoull(asked, NULL, 10) : own;
    print_message("# HB_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static inline uint64_t prop_cases(uint64_t own)
{
    const char *asked = getenv("HB_CASES");
    uint64_t number = asked ? strtoull(asked, NULL, 10) : own;
    if (asked && strchr(asked, '%'))
        number = number * own / 100;
    return number ? number : 1;
}

static inline int prop_cases_or(int own, int many)
{
    return (int)prop_cases((uint64_t)(getenv("HB_LONG") ? many : own));
}

#endif
