/* See report.h. Groups are sorted by what they hold, never taken out of a hash table. */
#include "sim/hlo/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/engine/live.h"

enum { CURVE_POINTS = 256 };

/* ---- groups ---- */

static bool is_passage(enum hb_hlo_op op)
{
    return op == HB_HLO_OP_PARAMETER || op == HB_HLO_OP_WHILE || op == HB_HLO_OP_CONDITIONAL ||
           op == HB_HLO_OP_CALL;
}

uint32_t hb_hlo_report_inst(const struct hb_hlo_program *hp, uint32_t buf)
{
    return hb_hlo_node_inst(&hp->flow, hp->flow.values[hp->value_of[buf]].node);
}

/* Of each root's buffers, the one to name it by: made by an operation proper, the last such that
 * starts before the peak ends; else the root itself. */
static uint32_t *find_faces(struct hb_arena *arena, const struct hb_hlo_program *hp,
                            int32_t peak_op)
{
    const struct hb_program *p = &hp->program;
    uint32_t *face = hb_arena_alloc(arena, p->buf_count, sizeof *face);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        uint32_t root = hb_program_root(p, i), v = hp->value_of[i];
        enum hb_hlo_op op = hb_hlo_op_of(hp->m, hb_hlo_report_inst(hp, i));
        if (root == i)
            face[i] = i;
        else if (!is_passage(op) && hp->buffers.ranges[v].start <= peak_op &&
                 p->bufs[i].bytes >= p->bufs[face[root]].bytes)
            face[root] = i;
    }
    return face;
}

struct member {
    struct hb_hlo_span op_name, shape;
    uint32_t inst;
    int64_t bytes;
};

static int compare_spans(struct hb_hlo_span a, struct hb_hlo_span b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.at, b.at, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_kinds(const struct member *a, const struct member *b)
{
    int order = compare_spans(a->op_name, b->op_name);
    return order ? order : compare_spans(a->shape, b->shape);
}

static int compare_members(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    int order = compare_kinds(left, right);
    if (order)
        return order;
    if (left->bytes != right->bytes)
        return left->bytes > right->bytes ? -1 : 1;
    return left->inst < right->inst ? -1 : left->inst > right->inst;
}

static int compare_groups(const void *a, const void *b)
{
    const struct hb_hlo_group *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes > right->bytes ? -1 : 1;
    int order = compare_spans(left->name, right->name);
    return order ? order : compare_spans(left->shape, right->shape);
}

static struct hb_hlo_group make_group(const struct hb_hlo_module *m, const struct member *of)
{
    struct hb_hlo_group g = {.name = hb_hlo_name_of(m, of->inst),
                             .op_name = of->op_name,
                             .shape = of->shape,
                             .opcode = hb_hlo_op_name(hb_hlo_op_of(m, of->inst))};
    if (!hb_hlo_source(m, of->inst, &g.file, &g.line))
        g.file.at = NULL;
    return g;
}

static void group_members(struct hb_arena *arena, struct hb_hlo_report *r, struct member *members,
                          uint32_t count)
{
    if (count)
        qsort(members, count, sizeof *members, compare_members);
    r->groups = hb_arena_alloc(arena, count, sizeof *r->groups);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || compare_kinds(&members[i], &members[i - 1]) != 0)
            r->groups[r->group_count++] = make_group(r->hp.m, &members[i]);
        struct hb_hlo_group *group = &r->groups[r->group_count - 1];
        group->bytes += members[i].bytes;
        group->count++;
    }
    if (r->group_count)
        qsort(r->groups, r->group_count, sizeof *r->groups, compare_groups);
}

static void make_groups(struct hb_arena *arena, struct hb_hlo_report *r)
{
    const struct hb_hlo_program *hp = &r->hp;
    const struct hb_program *p = &hp->program;
    const struct hb_memory *memory = &r->memory;
    uint32_t *face = find_faces(arena, hp, memory->peak_op), count = 0;
    struct member *members = hb_arena_alloc(arena, memory->at_peak_count, sizeof *members);
    for (uint32_t i = 0; i < memory->at_peak_count; i++) {
        uint32_t root = hb_program_root(p, memory->at_peak[i].buf);
        if (memory->offset_of[root] < 0) /* an argument or an output */
            continue;
        uint32_t inst = hb_hlo_report_inst(hp, face[root]);
        uint32_t v = hp->value_of[face[root]];
        members[count++] = (struct member){hb_hlo_metadata(hp->m, inst, "op_name"),
                                           hp->m->shapes.items[hp->flow.values[v].shape].text, inst,
                                           memory->at_peak[i].bytes};
    }
    group_members(arena, r, members, count);
}

/* ---- curve ---- */

/* Adds bytes to the differences over [start, end]. */
static void add_life(int64_t *steps, int32_t start, int32_t end, int64_t bytes)
{
    if (start <= end) {
        steps[start] += bytes;
        steps[end + 1] -= bytes;
    }
}

/* Live temporaries by position: spans of one root that meet are counted once. */
static int64_t *sum_lives(struct hb_arena *arena, const struct hb_hlo_report *r)
{
    const struct hb_program *p = &r->hp.program;
    const struct hb_heap_span *spans = hb_live_spans(arena, p);
    int64_t *steps = hb_arena_alloc(arena, (size_t)p->op_count + 1, sizeof *steps);
    int64_t *root_bytes = hb_arena_alloc(arena, p->buf_count, sizeof *root_bytes);
    int32_t *covered = hb_arena_alloc(arena, p->buf_count, sizeof *covered); /* up to, exclusive */
    for (uint32_t i = 0; i < r->memory.live_count; i++)
        root_bytes[r->memory.live[i].buf] =
            hb_round_up(r->memory.live[i].bytes, r->memory.heap_align_bytes);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        uint32_t root = hb_program_root(p, i);
        if (r->memory.offset_of[root] < 0 || spans[i].end < spans[i].start)
            continue;
        int32_t start = spans[i].start > covered[root] ? spans[i].start : covered[root];
        add_life(steps, start, spans[i].end, root_bytes[root]);
        covered[root] = spans[i].end + 1 > covered[root] ? spans[i].end + 1 : covered[root];
    }
    for (uint32_t t = 1; t < p->op_count; t++)
        steps[t] += steps[t - 1];
    return steps;
}

static void make_curve(struct hb_arena *arena, struct hb_hlo_report *r)
{
    uint32_t ops = r->hp.program.op_count;
    uint32_t stride = ops / CURVE_POINTS + 1;
    const int64_t *live = sum_lives(arena, r);
    int64_t still = r->figures.total_bytes - r->figures.temp_bytes;
    r->curve = hb_arena_alloc(arena, (size_t)ops / stride + 1, sizeof *r->curve);
    for (uint32_t t = 0; t < ops; t += stride) {
        int64_t most = 0;
        for (uint32_t k = t; k < ops && k < t + stride; k++)
            most = live[k] > most ? live[k] : most;
        r->curve[r->curve_count++] = (struct hb_hlo_point){(int32_t)t, still + most};
    }
}

/* ---- all ---- */

static void run(struct hb_arena *arena, struct hb_hlo_report *r)
{
    hb_hlo_program_run(arena, &r->hp, &r->hp.program, &r->memory, &r->figures);
}

/* Of the ways to order an unscheduled module, the one that needs least. */
static bool try_orders(struct hb_arena *arena, struct hb_diag *diag, const struct hb_hlo_module *m,
                       struct hb_hlo_report *r)
{
    int64_t least = INT64_MAX;
    const int kinds[] = {HB_ORDER_KINDS, HB_ORDER_POST, HB_ORDER_LIST, HB_ORDER_DEPTH};
    for (int i = 0; i <= HB_ORDER_KINDS; i++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        const uint32_t *order = kinds[i] == HB_ORDER_KINDS ? NULL : r->orders.insts[kinds[i]];
        if (!hb_hlo_program_make(arena, diag, m, order, &r->hp))
            return false; /* the message lies in the arena, too */
        run(arena, r);
        if (r->figures.total_bytes < least) {
            least = r->figures.total_bytes;
            r->order = (enum hb_order_kind)kinds[i];
        }
        hb_arena_rewind(arena, mark);
    }
    return true;
}

static bool find_order(struct hb_arena *arena, struct hb_diag *diag, const struct hb_hlo_module *m,
                       enum hb_hlo_ask ask, struct hb_hlo_report *r)
{
    enum { LARGE_MODULE = 200000 }; /* instructions: one order must do */
    r->ordered = ask != HB_HLO_ASK_NONE;
    r->order = HB_ORDER_KINDS;
    if (m->scheduled && !r->ordered)
        return true;
    if (!hb_hlo_orders_find(arena, diag, m, &r->orders))
        return false;
    r->order = r->orders.least;
    if (ask >= HB_HLO_ASK_LIST && ask <= HB_HLO_ASK_POST)
        r->order = (enum hb_order_kind)(ask - HB_HLO_ASK_LIST);
    return r->ordered || m->inst_count >= LARGE_MODULE || try_orders(arena, diag, m, r);
}

bool hb_hlo_report_make(struct hb_arena *arena, struct hb_diag *diag, const struct hb_hlo_module *m,
                        enum hb_hlo_ask ask, struct hb_hlo_report *out_report)
{
    struct hb_hlo_report *r = out_report;
    *r = (struct hb_hlo_report){0};
    if (!find_order(arena, diag, m, ask, r))
        return false;
    const uint32_t *order = r->order == HB_ORDER_KINDS ? NULL : r->orders.insts[r->order];
    if (!hb_hlo_program_make(arena, diag, m, order, &r->hp))
        return false;
    run(arena, r);
    make_groups(arena, r);
    make_curve(arena, r);
    hb_hlo_findings_make(arena, &r->hp, r->figures.total_bytes, &r->findings);
    return true;
}
