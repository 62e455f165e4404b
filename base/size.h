/* Checked arithmetic on sizes, and the only place where bytes, times and counts become text
 * or come from it. Memory is int64_t bytes everywhere else. */
#ifndef HB_BASE_SIZE_H
#define HB_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* out = a op b; false (and out untouched) on overflow. */
bool hb_add_i64(int64_t a, int64_t b, int64_t *out);
bool hb_mul_i64(int64_t a, int64_t b, int64_t *out);
/* Products and sums of sizes that saturate at INT64_MAX; for a, b >= 0. A saturated size can
 * not be told from a true one, so the caller checks the total once with hb_size_ok. */
static inline int64_t hb_mul_sat(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
static inline int64_t hb_add_sat(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
/* Below a quarter of the range: sums of a few such sizes cannot overflow. */
bool hb_size_ok(int64_t bytes);
/* a / b upwards, for a >= 0, b > 0. */
static inline int64_t hb_div_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}
static inline int64_t hb_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t hb_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
/* The next multiple of step at or above a, saturating; a >= 0, step > 0. Most steps are powers of
 * two, and a division takes as long as twenty additions. */
static inline int64_t hb_round_up(int64_t a, int64_t step)
{
    if ((step & (step - 1)) == 0)
        return a > INT64_MAX - (step - 1) ? INT64_MAX : (a + step - 1) & ~(step - 1);
    return hb_mul_sat(hb_div_up(a, step), step);
}

/* "12", "12 B", "95GiB", "1.5 GB", "16 MiB": bytes; KiB/MiB/GiB/TiB binary, kB/MB/GB/TB decimal. */
bool hb_size_parse(const char *text, int64_t *out_bytes);

enum { HB_SIZE_TEXT = 32 };
/* Human text: "11.22 GiB", "512 B". text has HB_SIZE_TEXT bytes; returned for use in a call. */
const char *hb_size_print(int64_t bytes, char *text);
/* "1.23 s", "45.1 ms", "17 us". */
const char *hb_time_print(int64_t ns, char *text);
/* "8.03 B", "405 M", "12.3 k": counts of parameters or tokens. */
const char *hb_count_print(double count, char *text);

#endif
