/* PCG-XSH-RR 64/32: see rng.h. */
#include "base/rng.h"

enum { PCG_STREAM = 1442695041 };

static const uint64_t pcg_multiplier = 6364136223846793005ULL;

struct hb_rng hb_rng_seed(uint64_t seed)
{
    struct hb_rng rng = {.state = seed * pcg_multiplier + PCG_STREAM};
    hb_rng_next(&rng);
    return rng;
}

uint32_t hb_rng_next(struct hb_rng *rng)
{
    uint64_t old = rng->state;
    rng->state = old * pcg_multiplier + PCG_STREAM;
    uint32_t mixed = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t turn = (uint32_t)(old >> 59);
    return (mixed >> turn) | (mixed << ((32 - turn) & 31));
}

int64_t hb_rng_range(struct hb_rng *rng, int64_t low, int64_t high)
{
    uint64_t span = (uint64_t)high - (uint64_t)low + 1;
    uint64_t draw = ((uint64_t)hb_rng_next(rng) << 32) | hb_rng_next(rng);
    return (int64_t)((uint64_t)low + (span ? draw % span : draw));
}
