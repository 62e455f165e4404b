/* The reader of pickles and of memory snapshots in them: what is refused has a message; what is
 * told adds up. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/pickle.h"
#include "sim/hlo/snapshot.h"

static void check_device(const struct hb_snapshot_device *d)
{
    int64_t groups = 0, reserved = 0;
    for (uint32_t i = 0; i < d->group_count; i++)
        groups += d->groups[i].bytes;
    for (uint32_t i = 0; i < d->pool_count; i++)
        reserved += d->pools[i].reserved_bytes;
    if (groups != d->peak_bytes || reserved != d->reserved_bytes ||
        d->allocated_bytes > d->active_bytes || d->peak_event >= (int64_t)d->events)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct hb_arena *arena = fuzz_arena();
    struct hb_diag diag;
    struct hb_snapshot s;
    hb_diag_init(&diag, arena);
    bool ok = hb_snapshot_read(arena, &diag, "fuzz", (const char *)bytes, len, &s);
    if (ok != (diag.errors == 0))
        abort();
    for (uint32_t i = 0; ok && i < s.device_count; i++)
        check_device(&s.devices[i]);
    return 0;
}
