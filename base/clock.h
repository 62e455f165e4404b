/* The clock that struct hb_env carries. */
#ifndef HB_BASE_CLOCK_H
#define HB_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic, from any start. */
int64_t hb_clock_ns(void);

#endif
