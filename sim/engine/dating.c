#include "sim/engine/dating.h"

#include "base/arena.h"
#include "sim/engine/cost.h"

void hb_dating_make(struct hb_arena *arena, const struct hb_program *p,
                    const struct hb_device *device, struct hb_timing *timing)
{
    struct hb_cost cost;
    double whole = 0, at = 0;
    uint32_t first = p->caching.second_op;
    hb_cost_init(&cost, p, device);
    timing->op_start_ns = hb_arena_alloc(arena, p->op_count, sizeof *timing->op_start_ns);
    timing->op_end_ns = hb_arena_alloc(arena, p->op_count, sizeof *timing->op_end_ns);
    timing->spans = hb_arena_alloc(arena, p->op_count - first, sizeof *timing->spans);
    timing->span_count = timing->skip_count = 0;
    for (uint32_t op = first; op < p->op_count; op++)
        whole += (double)hb_cost_op_ns(&cost, op);
    double share = whole > 0 ? (double)timing->step_ns / whole : 0;
    for (uint32_t op = first; op < p->op_count; op++) {
        timing->op_start_ns[op] = (int64_t)(at * share);
        at += (double)hb_cost_op_ns(&cost, op);
        timing->op_end_ns[op] = (int64_t)(at * share);
        timing->spans[timing->span_count++] =
            (struct hb_span){op, timing->op_start_ns[op], timing->op_end_ns[op], 0};
    }
}
