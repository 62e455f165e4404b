/* FNV-1a of 64 bits: no two texts of a length that differ in one byte have the same. Files keep
 * such sums, so it stays as it is; names.h is for a table in memory. */
#ifndef HB_BASE_HASH_H
#define HB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HB_HASH_START UINT64_C(14695981039346656037)
#define HB_HASH_PRIME UINT64_C(1099511628211)

static inline uint64_t hb_hash(uint64_t hash, uint64_t part)
{
    return (hash ^ part) * HB_HASH_PRIME;
}

static inline uint64_t hb_hash_bytes(uint64_t hash, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = hb_hash(hash, (unsigned char)text[i]);
    return hash;
}

#endif
