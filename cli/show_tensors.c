#include "cli/show_tensors.h"

#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/engine/cost.h"
#include "solver/segment.h"

/* Of what is made again, what takes a smaller part of the step is in one line with the rest. */
enum { LEAST_PART = 1000 };

struct page {
    FILE *out;
    const struct hb_program *p;
    struct hb_cost cost;
    const char *prefix; /* "dense." */
    int64_t least_ns;
};

static int64_t whole_ns(const struct page *g, uint32_t index)
{
    return hb_mul_sat(hb_cost_op_ns(&g->cost, index), hb_program_times(g->p, &g->p->ops[index]));
}

static bool touches(const struct page *g, const struct hb_op *op, uint32_t root)
{
    for (uint32_t r = 0; r < op->read_count + op->write_count; r++)
        if (hb_program_root(g->p, g->p->refs[op->refs_at + r]) == root)
            return true;
    return false;
}

/* Copies into the stack and out of it, on the device or over the host link. */
static int64_t copies_ns(const struct page *g, uint32_t root)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < g->p->op_count; i++) {
        const struct hb_op *op = &g->p->ops[i];
        if ((op->kind == HB_OP_COPY || op->kind == HB_OP_HOST_COPY) && touches(g, op, root))
            sum = hb_add_sat(sum, whole_ns(g, i));
    }
    return sum;
}

static void show_row(const struct page *g, const char *name, int len, const char *fate,
                     const char *bytes, int64_t ns)
{
    char time[HB_SIZE_TEXT];
    fprintf(g->out, "      %-30.*s %-10s %10s  %10s\n", len, name, fate, bytes,
            ns ? hb_time_print(ns, time) : "");
}

static void show_kept(const struct page *g)
{
    size_t skip = strlen(g->prefix);
    for (uint32_t i = 0; i < g->p->buf_count; i++) {
        const struct hb_buf *b = &g->p->bufs[i];
        char bytes[HB_SIZE_TEXT];
        if (b->category != HB_CAT_SAVED || b->alias_of != HB_NONE ||
            !hb_str_starts(b->name, g->prefix) || !hb_str_ends(b->name, ", saved for backward"))
            continue;
        show_row(g, b->name + skip, (int)strcspn(b->name + skip, ","),
                 b->space == HB_SPACE_HOST ? "offloaded" : "saved", hb_size_print(b->bytes, bytes),
                 copies_ns(g, i));
    }
}

/* An op of the backward pass that repeats one of the forward pass for this block. */
static bool is_remade(const struct page *g, const bool *optional, uint32_t index)
{
    const struct hb_op *op = &g->p->ops[index];
    return optional[index] && op->phase == HB_PHASE_BACKWARD && op->loop != HB_NONE &&
           op->stream == HB_STREAM_COMPUTE && op->kind != HB_OP_COPY && op->write_count > 0 &&
           hb_str_starts(g->p->bufs[g->p->refs[op->refs_at + op->read_count]].name, g->prefix);
}

static void show_remade(const struct page *g, const bool *optional)
{
    int64_t rest_ns = 0;
    for (uint32_t i = 0; i < g->p->op_count; i++) {
        if (!is_remade(g, optional, i))
            continue;
        int64_t ns = whole_ns(g, i);
        if (ns >= g->least_ns)
            show_row(g, g->p->ops[i].name, 30, "made again", "", ns);
        else
            rest_ns = hb_add_sat(rest_ns, ns);
    }
    if (rest_ns)
        show_row(g, "smaller ones", 30, "made again", "", rest_ns);
}

void hb_show_tensors(const struct hb_env *env, FILE *out, const struct hb_result *result,
                     const struct hb_device *device, const char *block)
{
    struct page g = {.out = out, .p = &result->program};
    g.prefix = hb_arena_printf(env->arena, "%s.", block);
    g.least_ns = result->timing.step_ns / LEAST_PART;
    hb_cost_init(&g.cost, g.p, device);
    show_kept(&g);
    show_remade(&g, hb_segment_optional_ops(env->arena, g.p));
}
