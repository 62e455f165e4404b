/* See program.h. Values are taken in the order of their first moment, so that aliases point to
 * earlier buffers and equal ones are placed in that order. */
#include "sim/hlo/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/ir/habits.h"
#include "sim/engine/live.h"

/* S(5): pinned host memory (xla/layout.h, Layout::kHostMemorySpace). S(1): on TPU the chip's own,
 * outside of HBM; on GPU the collectives' (gpu_memory_space_assignment.h), which is device memory:
 * it shares no buffer with the rest, and lies here in the same heap. */
enum { HOST_SPACE = 5, FAST_SPACE = 1 };

struct maker {
    struct hb_hlo_program *hp;
    const struct hb_hlo_flow *f;
    const struct hb_hlo_buffers *b;
    uint32_t *values; /* in order */
    uint32_t count;
    uint32_t *root; /* by value: whose memory it lies in; HB_NONE: its own */
    bool *taken;    /* by value: its place was taken over as it died */
};

static bool is_constant(const struct hb_hlo_buffer *buffer, const struct hb_hlo_buffers *b)
{
    return buffer->alloc != HB_NONE && b->allocs[buffer->alloc].kind == HB_HLO_CONSTANT_DATA;
}

static bool is_device_space(const struct maker *k, int space)
{
    return space == 0 || (space == FAST_SPACE && k->f->m->dialect->backend == HB_HLO_GPU);
}

/* Whether a value becomes a buffer of the program. */
static bool is_wanted(const struct maker *k, uint32_t v)
{
    const struct hb_hlo_buffer *buffer = &k->b->items[k->b->buffer_of[v]];
    bool table = buffer->table ||
                 (buffer->alloc != HB_NONE && k->b->allocs[buffer->alloc].kind == HB_HLO_CONTEXT);
    return (is_device_space(k, buffer->space) || buffer->space == HOST_SPACE) && !table &&
           !is_constant(buffer, k->b);
}

struct ordered {
    int32_t start, end;
    uint32_t value;
};

static int compare_ordered(const void *a, const void *b)
{
    const struct ordered *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    if (left->end != right->end)
        return left->end < right->end ? -1 : 1;
    return left->value < right->value ? -1 : left->value > right->value;
}

static void list_values(struct maker *k)
{
    struct ordered *sorted = hb_arena_alloc(k->hp->arena, k->f->value_count, sizeof *sorted);
    for (uint32_t v = 0; v < k->f->value_count; v++) {
        const struct hb_hlo_buffer *buffer = &k->b->items[k->b->buffer_of[v]];
        if (!is_wanted(k, v))
            continue;
        sorted[k->count] = (struct ordered){k->b->ranges[v].start, k->b->ranges[v].end, v};
        if (buffer->argument == v) /* before all that lies in it */
            sorted[k->count].start = -1;
        k->count++;
    }
    if (k->count)
        qsort(sorted, k->count, sizeof *sorted, compare_ordered);
    k->values = hb_arena_alloc(k->hp->arena, k->count, sizeof *k->values);
    for (uint32_t i = 0; i < k->count; i++)
        k->values[i] = sorted[i].value;
}

/* ---- whose memory ---- */

static bool is_alone(const struct maker *k, uint32_t v)
{
    const struct hb_hlo_buffer *buffer = &k->b->items[k->b->buffer_of[v]];
    return buffer->alloc == HB_NONE && buffer->count == 1;
}

/* An operand whose value dies as v is made, in a place that v may take; HB_NONE: none. */
static uint32_t find_dying_operand(struct maker *k, uint32_t v)
{
    const struct hb_hlo_module *m = k->hp->m;
    uint32_t node = k->f->values[v].node, inst = hb_hlo_node_inst(k->f, node);
    if (hb_hlo_op_of(m, inst) == HB_HLO_OP_COPY)
        return HB_NONE;
    for (uint32_t i = 0; i < m->insts[inst].operand_count; i++) {
        uint32_t from = hb_hlo_node_operand(k->f, node, i);
        uint32_t w = k->f->value_at[k->f->first_slot[from]], maker = k->f->values[w].node;
        if (k->taken[w] || !is_alone(k, w) || !is_wanted(k, w) ||
            k->b->ranges[w].end != k->b->ranges[v].start ||
            k->f->scope_of[maker] != k->f->scope_of[node] ||
            k->b->items[k->b->buffer_of[w]].space != k->b->items[k->b->buffer_of[v]].space)
            continue;
        if (hb_hlo_may_share(&k->hp->alias, hb_hlo_node_inst(k->f, maker), k->f->values[w].slot,
                             inst, k->f->values[v].slot))
            return w;
    }
    return HB_NONE;
}

static void find_roots(struct maker *k)
{
    uint32_t *of_buffer = hb_arena_alloc(k->hp->arena, k->b->count, sizeof *of_buffer);
    uint32_t *of_alloc = hb_arena_alloc(k->hp->arena, k->b->alloc_count, sizeof *of_alloc);
    memset(of_buffer, 0xff, k->b->count * sizeof *of_buffer);
    memset(of_alloc, 0xff, k->b->alloc_count * sizeof *of_alloc);
    for (uint32_t i = 0; i < k->count; i++) {
        uint32_t v = k->values[i], buffer = k->b->buffer_of[v];
        uint32_t alloc = k->b->items[buffer].alloc;
        uint32_t *first = alloc != HB_NONE ? &of_alloc[alloc] : &of_buffer[buffer];
        k->root[v] = *first;
        if (*first != HB_NONE)
            continue;
        uint32_t operand = is_alone(k, v) ? find_dying_operand(k, v) : HB_NONE;
        if (operand != HB_NONE) {
            k->taken[operand] = true;
            k->root[v] = k->root[operand] == HB_NONE ? operand : k->root[operand];
        }
        *first = k->root[v] == HB_NONE ? v : k->root[v];
    }
}

/* ---- buffers ---- */

static enum hb_dtype find_dtype(enum hb_hlo_type type)
{
    static const struct {
        enum hb_hlo_type type;
        enum hb_dtype dtype;
    } rows[] = {{HB_HLO_F32, HB_DT_F32}, {HB_HLO_BF16, HB_DT_BF16}, {HB_HLO_F16, HB_DT_F16},
                {HB_HLO_F64, HB_DT_F64}, {HB_HLO_PRED, HB_DT_PRED}, {HB_HLO_S32, HB_DT_S32},
                {HB_HLO_U32, HB_DT_S32}, {HB_HLO_S64, HB_DT_S64},   {HB_HLO_U64, HB_DT_S64},
                {HB_HLO_S4, HB_DT_Q4},   {HB_HLO_U4, HB_DT_Q4},     {HB_HLO_F4E2M1FN, HB_DT_F4},
                {HB_HLO_S8, HB_DT_U8},   {HB_HLO_U8, HB_DT_U8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == type)
            return rows[i].dtype;
    return HB_DT_F8;
}

static enum hb_category find_category(const struct maker *k, uint32_t v)
{
    const struct hb_hlo_buffer *buffer = &k->b->items[k->b->buffer_of[v]];
    uint32_t inst = hb_hlo_node_inst(k->f, k->f->values[v].node);
    if (buffer->argument != HB_NONE)
        return buffer->live_out ? HB_CAT_PARAMS : HB_CAT_INPUTS;
    return hb_hlo_op_has(hb_hlo_op_of(k->hp->m, inst), HB_HLO_COLLECTIVE) ? HB_CAT_COMMUNICATION
                                                                          : HB_CAT_WORKING;
}

static const char *make_name(const struct maker *k, uint32_t v)
{
    const struct hb_hlo_value *value = &k->f->values[v];
    struct hb_hlo_span name = hb_hlo_name_of(k->hp->m, hb_hlo_node_inst(k->f, value->node));
    if (!value->slot)
        return hb_arena_strndup(k->hp->arena, name.at, name.len);
    return hb_arena_printf(k->hp->arena, "%.*s{%u}", (int)name.len, name.at, value->slot - 1);
}

static void add_buf(struct maker *k, uint32_t v)
{
    const struct hb_hlo_buffer *buffer = &k->b->items[k->b->buffer_of[v]];
    const struct hb_hlo_shape *shape = &k->hp->m->shapes.items[k->f->values[v].shape];
    struct hb_buf buf = {.name = make_name(k, v),
                         .why = "",
                         .bytes = hb_hlo_value_bytes(k->f, v),
                         .plain_bytes = shape->plain_bytes,
                         .dtype = find_dtype(shape->type),
                         .category = find_category(k, v),
                         .space = is_device_space(k, buffer->space) ? HB_SPACE_HBM : HB_SPACE_HOST,
                         .alias_of = HB_NONE,
                         .argument = buffer->argument == v,
                         .output = buffer->live_out};
    if (k->root[v] != HB_NONE)
        buf.alias_of = k->hp->buf_of[k->root[v]];
    buf.rank = shape->rank <= HB_MAX_RANK ? shape->rank : 0;
    for (int i = 0; i < buf.rank; i++)
        buf.dim[i] = k->hp->m->shapes.nums[shape->dims_at + (uint32_t)i];
    uint32_t at = hb_program_add_buf(&k->hp->program, buf);
    k->hp->buf_of[v] = at;
    k->hp->value_of[at] = v;
}

/* ---- ops ---- */

static enum hb_op_kind find_kind(enum hb_hlo_op op)
{
    static const struct {
        enum hb_hlo_op op;
        enum hb_op_kind kind;
    } rows[] = {{HB_HLO_OP_DOT, HB_OP_MATMUL},
                {HB_HLO_OP_CONVOLUTION, HB_OP_MATMUL},
                {HB_HLO_OP_REDUCE, HB_OP_REDUCE},
                {HB_HLO_OP_GATHER, HB_OP_GATHER},
                {HB_HLO_OP_SCATTER, HB_OP_GATHER},
                {HB_HLO_OP_COPY, HB_OP_COPY},
                {HB_HLO_OP_ALL_GATHER, HB_OP_ALL_GATHER},
                {HB_HLO_OP_ALL_GATHER_START, HB_OP_ALL_GATHER},
                {HB_HLO_OP_ALL_REDUCE, HB_OP_ALL_REDUCE},
                {HB_HLO_OP_ALL_REDUCE_START, HB_OP_ALL_REDUCE},
                {HB_HLO_OP_REDUCE_SCATTER, HB_OP_REDUCE_SCATTER},
                {HB_HLO_OP_ALL_TO_ALL, HB_OP_ALL_TO_ALL},
                {HB_HLO_OP_COLLECTIVE_PERMUTE, HB_OP_PERMUTE},
                {HB_HLO_OP_COLLECTIVE_PERMUTE_START, HB_OP_PERMUTE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op)
            return rows[i].kind;
    return hb_hlo_op_has(op, HB_HLO_ELEMENTWISE) ? HB_OP_ELEMENTWISE : HB_OP_OTHER;
}

/* When a value ends. One whose place is taken over ends as the other starts: XLA counts its end
 * among the starts of that time, before those of all that merely dies then. */
static int32_t end_of(const struct maker *k, uint32_t v)
{
    return k->b->ranges[v].end - (k->taken[v] ? 1 : 0);
}

static void list_times(struct maker *k)
{
    struct hb_hlo_program *hp = k->hp;
    hp->start = hb_arena_alloc(hp->arena, k->count, sizeof *hp->start);
    hp->end = hb_arena_alloc(hp->arena, k->count, sizeof *hp->end);
    for (uint32_t i = 0; i < k->count; i++) {
        hp->start[i] = k->b->ranges[k->values[i]].start;
        hp->end[i] = end_of(k, k->values[i]);
    }
}

/* Buffers by a time: first[t] .. first[t + 1] in list. */
struct buckets {
    uint32_t *first;
    uint32_t *list;
};

static struct buckets sort_buckets(struct hb_arena *arena, const int32_t *time_of, uint32_t count,
                                   size_t times)
{
    struct buckets s = {hb_arena_alloc(arena, times + 1, sizeof *s.first),
                        hb_arena_alloc(arena, count, sizeof *s.list)};
    for (uint32_t i = 0; i < count; i++)
        s.first[time_of[i]]++;
    for (size_t t = 0, at = 0; t <= times; t++) { /* to where the next of time t goes */
        uint32_t here = s.first[t];
        s.first[t] = (uint32_t)at;
        at += here;
    }
    for (uint32_t i = 0; i < count; i++)
        s.list[s.first[time_of[i]]++] = i;
    memmove(s.first + 1, s.first, times * sizeof *s.first);
    s.first[0] = 0;
    return s;
}

void hb_hlo_program_add_ops(struct hb_arena *arena, const struct hb_hlo_program *hp,
                            struct hb_program *p, const int32_t *start, const int32_t *end)
{
    const struct hb_hlo_flow *f = &hp->flow;
    size_t times = (size_t)f->end_time + 1;
    struct buckets starts = sort_buckets(arena, start, p->buf_count, times);
    struct buckets ends = sort_buckets(arena, end, p->buf_count, times);
    for (int32_t t = 0; t <= f->end_time; t++) {
        enum hb_hlo_op op = HB_HLO_OP_UNKNOWN;
        enum hb_op_kind kind = HB_OP_MARK;
        if (t < f->end_time) {
            op = hb_hlo_op_of(hp->m, hb_hlo_node_inst(f, hp->node_at[t]));
            kind = find_kind(op);
        }
        hb_program_add_op(p, (struct hb_op){.name = t < f->end_time ? hb_hlo_op_name(op) : "end",
                                            .kind = kind,
                                            .phase = HB_PHASE_FORWARD,
                                            .start = HB_NONE,
                                            .loop = HB_NONE,
                                            .batch = 1});
        for (uint32_t i = ends.first[t]; i < ends.first[t + 1]; i++)
            if (start[ends.list[i]] < t && p->bufs[ends.list[i]].bytes)
                hb_program_read(p, ends.list[i]);
        for (uint32_t i = starts.first[t]; i < starts.first[t + 1]; i++)
            if (p->bufs[starts.list[i]].bytes)
                hb_program_write(p, starts.list[i]);
    }
}

static void list_nodes(struct hb_hlo_program *hp)
{
    hp->node_at = hb_arena_alloc(hp->arena, (size_t)hp->flow.end_time, sizeof *hp->node_at);
    for (uint32_t node = 0; node < hp->flow.node_count; node++)
        hp->node_at[hp->flow.time[node]] = node;
}

/* ---- what lies beside the heap ---- */

/* Whether any computation runs inside of instructions: a reduction's, a sort's. Their values get
 * allocations behind the heap, and the partition that divides temporaries from the rest then
 * moves the first table to the end (std::partition in BufferAssignment::CombineTempAllocations). */
static bool has_embedded(const struct hb_hlo_module *m)
{
    for (uint32_t i = 0; i < m->inst_count; i++) {
        enum hb_hlo_op op = hb_hlo_op_of(m, i);
        if (m->insts[i].call_count && op != HB_HLO_OP_FUSION && op != HB_HLO_OP_CUSTOM_CALL &&
            !hb_hlo_op_has(op, HB_HLO_CALLS))
            return true;
    }
    return false;
}

static void sum_tables(struct hb_hlo_program *hp)
{
    const struct hb_hlo_buffers *b = &hp->buffers;
    int64_t align = hp->placing.heap_align_bytes;
    for (uint32_t i = 0; i < b->alloc_count; i++) {
        const struct hb_hlo_alloc *alloc = &b->allocs[i];
        if ((alloc->kind != HB_HLO_TABLE && alloc->kind != HB_HLO_CONTEXT) || alloc->space)
            continue;
        if (alloc->live_out) {
            hp->output_tables_bytes = hb_add_sat(hp->output_tables_bytes, alloc->bytes);
            continue;
        }
        int64_t aligned = hb_round_up(alloc->bytes, align);
        if (!hp->tables_bytes) {
            hp->first_table_bytes = alloc->bytes;
            hp->first_table_aligned = aligned;
        }
        hp->tables_bytes = hb_add_sat(hp->tables_bytes, aligned);
    }
    hp->tables_follow = has_embedded(hp->m);
}

static bool check_sizes(const struct hb_hlo_program *hp, struct hb_diag *diag)
{
    int64_t sum = 0;
    for (uint32_t v = 0; v < hp->flow.value_count; v++)
        sum = hb_add_sat(
            sum, hb_round_up(hb_hlo_value_bytes(&hp->flow, v), hp->m->dialect->heap_align_bytes));
    return hb_size_ok(sum) || hb_error(diag, (struct hb_loc){hp->m->text.file, 0, 0},
                                       "its shapes take more than 2^61 bytes in all");
}

bool hb_hlo_program_make(struct hb_arena *arena, struct hb_diag *diag,
                         const struct hb_hlo_module *m, const uint32_t *order,
                         struct hb_hlo_program *out_program)
{
    struct hb_hlo_program *hp = out_program;
    const struct hb_hlo_dialect *d = m->dialect;
    *hp = (struct hb_hlo_program){.m = m, .arena = arena};
    hp->placing = (struct hb_placing){d->heap, d->heap_align_bytes, 1, true, false, 0};
    if (!hb_hlo_flow_find(arena, diag, m, order, &hp->flow) || !check_sizes(hp, diag))
        return false;
    hb_hlo_alias_init(&hp->alias, arena, m);
    hb_hlo_buffers_find(arena, &hp->flow, &hp->alias, &hp->buffers);
    hb_program_init(&hp->program, arena, hb_arena_strndup(arena, m->name.at, m->name.len),
                    d->backend == HB_HLO_TPU ? HB_XLA_TPU : HB_XLA_GPU);
    uint32_t values = hp->flow.value_count;
    struct maker k = {.hp = hp,
                      .f = &hp->flow,
                      .b = &hp->buffers,
                      .root = hb_arena_alloc(arena, values, sizeof *k.root),
                      .taken = hb_arena_alloc(arena, values, sizeof *k.taken)};
    hp->buf_of = hb_arena_alloc(arena, values, sizeof *hp->buf_of);
    memset(hp->buf_of, 0xff, values * sizeof *hp->buf_of);
    list_values(&k);
    find_roots(&k);
    hp->value_of = hb_arena_alloc(arena, k.count, sizeof *hp->value_of);
    for (uint32_t i = 0; i < k.count; i++)
        add_buf(&k, k.values[i]);
    list_nodes(hp);
    list_times(&k);
    hb_hlo_program_add_ops(arena, hp, &hp->program, hp->start, hp->end);
    sum_tables(hp);
    return true;
}

/* ---- running ---- */

/* How high the heap reaches: to the last byte, not to the next multiple. */
static int64_t find_height(const struct hb_program *p, const struct hb_memory *memory)
{
    int64_t height = 0;
    for (uint32_t i = 0; i < memory->live_count; i++) {
        const struct hb_live *live = &memory->live[i];
        int64_t top = memory->offset_of[live->buf] + live->bytes;
        if (p->bufs[live->buf].space == HB_SPACE_HBM && memory->offset_of[live->buf] >= 0)
            height = top > height ? top : height;
    }
    return height;
}

/* Tables lie beside the heap, each rounded up, but for what lies last. */
static int64_t add_tables(const struct hb_hlo_program *hp, int64_t height)
{
    int64_t align = hp->placing.heap_align_bytes;
    if (!hp->tables_bytes)
        return height;
    if (height && !hp->tables_follow)
        return hp->tables_bytes + height;
    return hb_round_up(height, align) + hp->tables_bytes - hp->first_table_aligned +
           hp->first_table_bytes;
}

static void fill_figures(const struct hb_hlo_program *hp, const struct hb_program *p,
                         const struct hb_memory *memory, struct hb_hlo_figures *out)
{
    int64_t height = find_height(p, memory), live = memory->live_temp_bytes;
    *out = (struct hb_hlo_figures){
        .argument_bytes = memory->argument_bytes,
        .output_bytes = memory->output_bytes + hp->output_tables_bytes,
        .alias_bytes = memory->alias_bytes,
        .temp_bytes = add_tables(hp, height),
        .fragmentation_bytes = height > live ? height - live : 0,
        .host_bytes = memory->host_bytes,
    };
    out->total_bytes = out->argument_bytes + out->output_bytes - out->alias_bytes + out->temp_bytes;
    out->liveness_bound_bytes = out->total_bytes - out->fragmentation_bytes;
    out->rounded_temp_bytes = out->temp_bytes;
    if (hp->m->dialect->backend == HB_HLO_TPU)
        out->rounded_temp_bytes =
            height ? hb_round_up(out->temp_bytes, hp->placing.heap_align_bytes) : 0;
}

void hb_hlo_program_run(struct hb_arena *arena, const struct hb_hlo_program *hp,
                        const struct hb_program *program, struct hb_memory *out_memory,
                        struct hb_hlo_figures *out_figures)
{
    hb_run_memory_placed(arena, program, &hp->placing, out_memory);
    fill_figures(hp, program, out_memory, out_figures);
    const struct hb_chip *chip = hb_chip_find(hp->m->dialect->name);
    int64_t limit = hb_chip_repack_bytes(chip);
    if (!limit || out_figures->total_bytes <= limit)
        return;
    struct hb_placing sorted = hp->placing;
    struct hb_memory memory;
    struct hb_hlo_figures figures;
    sorted.heap = HB_HEAP_SORTED;
    hb_run_memory_placed(arena, program, &sorted, &memory);
    fill_figures(hp, program, &memory, &figures);
    if (!hp->m->dialect_given && figures.total_bytes > chip->memory_bytes)
        return; /* it would not have compiled: the device has more than was guessed */
    *out_memory = memory;
    *out_figures = figures;
}
