#include "sim/engine/dating.h"

#include <string.h>

#include "base/arena.h"
#include "sim/engine/cost.h"

/* Ops of an eager step are few kinds many times over (hb_tape_make: all but these are the same):
 * how long one takes is kept by what it does. */
enum { KEPT = 512 };
struct kept {
    double flops, moved_bytes;
    int64_t ns; /* 0: of no op */
    enum hb_op_kind kind;
};

static struct kept *place_of(struct kept *all, const struct hb_op *op)
{
    uint64_t a, b;
    memcpy(&a, &op->flops, sizeof a);
    memcpy(&b, &op->moved_bytes, sizeof b);
    return &all[((a ^ b ^ a >> 31) * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - 9)];
}

static bool is_of(const struct kept *k, const struct hb_op *op)
{
    return k->ns && k->kind == op->kind && k->flops == op->flops &&
           k->moved_bytes == op->moved_bytes;
}

static int64_t op_ns(const struct hb_cost *cost, struct kept *all, uint32_t index)
{
    const struct hb_op *op = &cost->p->ops[index];
    struct kept *k = place_of(all, op);
    if (!is_of(k, op))
        *k = (struct kept){op->flops, op->moved_bytes, hb_cost_op_ns(cost, index), op->kind};
    return k->ns;
}

bool hb_dating_make(struct hb_arena *arena, const struct hb_program *p,
                    const struct hb_device *device, struct hb_timing *timing)
{
    struct hb_cost cost;
    struct kept kept[KEPT] = {0};
    double whole = 0, at = 0;
    bool ends = true;
    uint32_t first = p->caching.second_op;
    hb_cost_init(&cost, p, device);
    timing->op_start_ns = hb_arena_alloc(arena, p->op_count, sizeof *timing->op_start_ns);
    timing->op_end_ns = hb_arena_alloc(arena, p->op_count, sizeof *timing->op_end_ns);
    timing->spans = hb_arena_raw(arena, p->op_count - first, sizeof *timing->spans);
    timing->span_count = timing->skip_count = 0;
    for (uint32_t op = first; op < p->op_count; op++) {
        int64_t ns = op_ns(&cost, kept, op);
        ends = ends && ns < HB_COST_MAX_NS;
        whole += (double)ns;
    }
    double share = whole > 0 ? (double)timing->step_ns / whole : 0;
    for (uint32_t op = first; op < p->op_count; op++) {
        timing->op_start_ns[op] = (int64_t)(at * share);
        at += (double)op_ns(&cost, kept, op);
        timing->op_end_ns[op] = (int64_t)(at * share);
        timing->spans[timing->span_count++] =
            (struct hb_span){op, timing->op_start_ns[op], timing->op_end_ns[op], 0};
    }
    return ends;
}
