/* The system's monotonic clock: see clock.h. */
#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/diag.h"

int64_t hb_clock_ns(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        hb_die("no monotonic clock: %s", strerror(errno));
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
