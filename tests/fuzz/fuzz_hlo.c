/* The reader of dumps and all that follows on any bytes: a module or errors, and of a module
 * figures that hang together, a curve that ends at them, findings that free no more than there is.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/hlo/report.h"

static void check_figures(const struct hb_hlo_figures *f)
{
    int64_t sum = f->argument_bytes + f->output_bytes - f->alias_bytes + f->temp_bytes;
    if (f->total_bytes != sum || f->argument_bytes < 0 || f->output_bytes < 0 ||
        f->alias_bytes < 0 || f->temp_bytes < 0 || f->fragmentation_bytes < 0 ||
        f->host_bytes < 0 || f->fragmentation_bytes > f->temp_bytes ||
        f->liveness_bound_bytes > f->total_bytes || !hb_size_ok(f->total_bytes))
        abort();
}

static void check_report(const struct hb_hlo_report *r)
{
    int64_t at_peak = 0;
    check_figures(&r->figures);
    for (uint32_t i = 0; i < r->group_count; i++) {
        if (r->groups[i].bytes < 0 || !r->groups[i].count ||
            (i && r->groups[i].bytes > r->groups[i - 1].bytes))
            abort();
        at_peak += r->groups[i].bytes;
    }
    if (at_peak > r->memory.live_temp_bytes)
        abort();
    for (uint32_t i = 0; i < r->curve_count; i++)
        if (r->curve[i].live_bytes < 0 || (i && r->curve[i].op <= r->curve[i - 1].op))
            abort();
    for (uint32_t i = 0; i < r->findings.count; i++) {
        const struct hb_hlo_finding *f = &r->findings.items[i];
        bool other = f->kind == HB_HLO_FIND_PAD_FORECAST || f->kind == HB_HLO_FIND_OFFLOAD;
        if (!f->what || !f->advice || f->bytes < 0 || f->held_bytes < 0 ||
            (!other && f->bytes > r->figures.total_bytes))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct hb_arena *arena = fuzz_arena();
    struct hb_diag diag;
    struct hb_hlo_module *m = hb_arena_alloc(arena, 1, sizeof *m);
    struct hb_hlo_report *r = hb_arena_alloc(arena, 1, sizeof *r);
    char *copy = malloc(len + 1); /* of its own: a sanitizer sees what is read beyond */
    if (!copy)
        abort();
    if (len)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    struct hb_hlo_text text = {"fuzz", copy, len, 0};
    hb_diag_init(&diag, arena);
    bool ok = hb_hlo_module_read(arena, &diag, &text, m) &&
              hb_hlo_report_make(arena, &diag, m, HB_HLO_ASK_LEAST, r);
    if (ok != (diag.errors == 0))
        abort();
    if (ok)
        check_report(r);
    free(copy);
    return 0;
}
