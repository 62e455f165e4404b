/* Memory of a program as its compiler would report it: arguments, outputs, what of the output
 * lies in donated arguments, and the heap of temporaries; peak = argument + output - alias +
 * temp. Every byte of that peak is then given to a category:
 *
 *   plain bytes of each buffer alive at the peak  -> the buffer's own category
 *   tiles, slots and rounding around them         -> padding
 *   height of the heap above its live sum         -> fragmentation
 *   index tables among the arguments              -> runtime
 *
 * Arguments and outputs stay for the whole step, as the compiler allocates them. Roundings:
 * rule 12 of the scheduled modules (read in dumps of libtpu 0.0.51 and jaxlib 0.10.2). */
#include <stdlib.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "sim/engine/caching.h"
#include "sim/engine/heap.h"
#include "sim/engine/lend.h"
#include "sim/engine/live.h"
#include "sim/engine/run.h"

static const struct hb_placing habits[] = {
    [HB_XLA_TPU] = {HB_HEAP_IN_ORDER, 16384, 512, false, false, 0},
    [HB_XLA_GPU] = {HB_HEAP_SORTED, 256, 1, false, false, 0},
    [HB_TORCH] = {HB_HEAP_CACHING, 512, 512, false, false, 0},
};

struct measure {
    const struct hb_program *p;
    struct hb_placing habit;
    struct hb_memory *out;
    struct hb_arena *arena;
    const uint32_t *roots; /* by buffer */
    bool *is_argument;     /* by root */
    bool *is_output;
    bool known; /* what lives at once */
};

static int64_t peak_of(const struct hb_memory *out)
{
    return out->argument_bytes + out->output_bytes - out->alias_bytes + out->temp_bytes;
}

static void list_lives(struct measure *m)
{
    struct hb_memory *out = m->out;
    out->live_count = hb_live_find(m->arena, m->p, &out->live);
    if (m->habit.apart)
        out->part_count = hb_live_apart(m->arena, m->p, out->live, out->live_count, &out->parts);
    else if (m->habit.heap == HB_HEAP_SORTED)
        out->part_count = hb_live_carried(m->arena, m->p, out->live, out->live_count, &out->parts);
    else
        out->part_count = hb_live_whole(m->arena, out->live, out->live_count, &out->parts);
}

static void mark_roots(struct measure *m)
{
    const struct hb_program *p = m->p;
    m->is_argument = hb_arena_alloc(m->arena, p->buf_count, sizeof *m->is_argument);
    m->is_output = hb_arena_alloc(m->arena, p->buf_count, sizeof *m->is_output);
    m->roots = hb_program_roots(m->arena, p);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        m->is_argument[m->roots[i]] |= p->bufs[i].argument;
        m->is_output[m->roots[i]] |= p->bufs[i].output;
    }
}

static bool is_temporary(const struct measure *m, const struct hb_live *live)
{
    return m->p->bufs[live->buf].space == HB_SPACE_HBM && !m->is_argument[live->buf] &&
           !m->is_output[live->buf];
}

static void count_leaves(struct measure *m)
{
    struct hb_memory *out = m->out;
    out->argument_bytes = m->p->argument_extra_bytes;
    for (uint32_t i = 0; i < out->live_count; i++) {
        const struct hb_live *live = &out->live[i];
        if (m->p->bufs[live->buf].space != HB_SPACE_HBM || is_temporary(m, live))
            continue;
        int64_t bytes = hb_round_up(live->bytes, m->habit.leaf_align_bytes);
        if (m->is_argument[live->buf])
            out->argument_bytes = hb_add_sat(out->argument_bytes, bytes);
        if (m->is_output[live->buf])
            out->output_bytes = hb_add_sat(out->output_bytes, bytes);
        if (m->is_argument[live->buf] && m->is_output[live->buf])
            out->alias_bytes = hb_add_sat(out->alias_bytes, bytes);
    }
}

static uint32_t list_items(const struct measure *m, struct hb_heap_item *items)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->out->live_count; i++) {
        const struct hb_live *live = &m->out->live[i];
        if (is_temporary(m, live))
            items[count++] = (struct hb_heap_item){
                .bytes = live->bytes, .start = live->start, .end = live->end, .order = i};
    }
    return count;
}

/* Leaves in items what outputs do not lend room to. */
static uint32_t lend_outputs(struct measure *m, struct hb_heap_item *items, uint32_t count)
{
    if (!m->p->outputs_lend)
        return count;
    struct hb_lend_slot *slots;
    uint32_t slot_count = hb_lend_slots(m->arena, m->p, m->out->live, m->out->live_count, &slots);
    for (uint32_t i = 0; i < count; i++)
        m->out->lent[m->out->live[items[i].order].buf] = true;
    count = hb_lend(m->arena, items, count, slots, slot_count);
    for (uint32_t i = 0; i < count; i++)
        m->out->lent[m->out->live[items[i].order].buf] = false;
    return count;
}

/* Spans of temporaries, in the order of their parts, and the item that each belongs to. */
struct parts {
    struct hb_heap_span *spans;
    uint32_t *item;
    uint32_t count;
};

static struct parts list_parts(const struct measure *m, const struct hb_heap_item *items,
                               uint32_t count)
{
    const struct hb_memory *out = m->out;
    uint32_t *item_of = hb_arena_alloc(m->arena, out->live_count, sizeof *item_of);
    struct parts parts = {hb_arena_alloc(m->arena, out->part_count, sizeof *parts.spans),
                          hb_arena_alloc(m->arena, out->part_count, sizeof *parts.item), 0};
    for (uint32_t i = 0; i < count; i++)
        item_of[items[i].order] = i + 1;
    for (uint32_t i = 0; i < out->part_count; i++) {
        uint32_t item = item_of[out->parts[i].live];
        if (!item)
            continue;
        parts.spans[parts.count] = out->parts[i].span;
        parts.item[parts.count++] = item - 1;
    }
    return parts;
}

/* Gives each item its spans, next to each other, and their hull as its life. */
static void attach_parts(const struct measure *m, const struct parts *parts,
                         struct hb_heap_item *items, uint32_t count)
{
    uint32_t *next = hb_arena_alloc(m->arena, (size_t)count + 1, sizeof *next);
    struct hb_heap_span *spans = hb_arena_alloc(m->arena, parts->count, sizeof *spans);
    for (uint32_t i = 0; i < parts->count; i++)
        next[parts->item[i] + 1]++;
    for (uint32_t i = 0; i < count; i++) {
        items[i].span_count = next[i + 1];
        next[i + 1] += next[i];
        items[i].spans = spans + next[i];
        items[i].end = -1;
    }
    for (uint32_t i = 0; i < parts->count; i++) {
        struct hb_heap_item *item = &items[parts->item[i]];
        struct hb_heap_span *span = &spans[next[parts->item[i]]++];
        *span = parts->spans[i];
        if (span == item->spans)
            item->start = span->start;
        item->end = span->end > item->end ? span->end : item->end;
    }
}

static void keep_offsets(const struct measure *m, const struct hb_heap_item *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        m->out->offset_of[m->out->live[items[i].order].buf] = items[i].offset;
}

/* Heaps that would leave little are packed anew, by size (hb_chip_repack_bytes): 0 to 0.5 % of idle
 * memory in all records above 0.92 of the device's own, up to 19 % below 0.83
 * (v5e,remat=full,batch=48; llama3-70b, v6e-256 with 8192 tokens; gemma3-12b, v6e-256 with 32768).
 */
static void repack_heap(const struct measure *m, struct hb_heap_item *items, uint32_t count)
{
    if (!m->habit.repack_bytes || m->habit.heap != HB_HEAP_IN_ORDER ||
        peak_of(m->out) <= m->habit.repack_bytes)
        return;
    m->out->temp_bytes =
        hb_heap_pack(m->arena, items, count, HB_HEAP_SORTED, m->habit.heap_align_bytes);
    keep_offsets(m, items, count);
}

static void pack_heap(struct measure *m)
{
    struct hb_memory *out = m->out;
    for (uint32_t i = 0; i < m->p->buf_count; i++)
        out->offset_of[i] = -1;
    struct hb_arena_mark mark = hb_arena_mark(m->arena);
    struct hb_heap_item *items = hb_arena_alloc(m->arena, out->live_count, sizeof *items);
    uint32_t count = lend_outputs(m, items, list_items(m, items));
    int64_t align = m->habit.heap_align_bytes;
    struct parts parts = {.count = 0};
    if (m->habit.apart || m->habit.heap == HB_HEAP_SORTED) {
        parts = list_parts(m, items, count);
        attach_parts(m, &parts, items, count);
    }
    if (!m->known)
        out->live_temp_bytes = hb_heap_live_peak(m->arena, items, count, align, &out->peak_op);
    if (!count)
        out->peak_op = -1;
    if (m->habit.unpacked) {
        out->temp_bytes = hb_larger(out->live_temp_bytes, m->p->filled_bytes);
        hb_arena_rewind(m->arena, mark);
        return;
    }
    if (m->habit.apart) { /* the heap counts in events, not in places */
        hb_heap_count_events(m->arena, parts.spans, parts.count);
        attach_parts(m, &parts, items, count);
    }
    out->temp_bytes = hb_heap_pack(m->arena, items, count, m->habit.heap, align);
    keep_offsets(m, items, count);
    repack_heap(m, items, count);
    out->temp_bytes = hb_larger(out->temp_bytes, m->p->filled_bytes);
    hb_arena_rewind(m->arena, mark);
    for (uint32_t i = 0; i < m->p->buf_count; i++)
        if (m->p->bufs[i].alias_of != HB_NONE)
            out->offset_of[i] = out->offset_of[m->p->bufs[i].alias_of];
}

static void count_host(struct measure *m)
{
    struct hb_memory *out = m->out;
    struct hb_arena_mark mark = hb_arena_mark(m->arena);
    struct hb_heap_item *items = hb_arena_alloc(m->arena, out->live_count, sizeof *items);
    uint32_t count = 0;
    for (uint32_t i = 0; i < out->live_count; i++) {
        struct hb_live live = out->live[i];
        const struct hb_buf *b = &m->p->bufs[live.buf];
        if (b->space != HB_SPACE_HOST)
            continue;
        items[count] = (struct hb_heap_item){
            .bytes = live.bytes, .start = live.start, .end = live.end, .order = i};
        if (m->is_argument[live.buf] || m->is_output[live.buf]) { /* the caller's throughout */
            items[count].start = -1;
            items[count].end = (int32_t)m->p->op_count;
        }
        count++;
    }
    out->host_bytes = hb_heap_live_peak(m->arena, items, count, m->habit.leaf_align_bytes, NULL);
    hb_arena_rewind(m->arena, mark);
}

/* Who stands in each root's memory at the peak: of its largest buffers the one written last
 * before the peak; the argument itself for an argument. */
static uint32_t *find_tenants(const struct measure *m)
{
    const struct hb_program *p = m->p;
    uint32_t *tenant = hb_arena_alloc(m->arena, p->buf_count, sizeof *tenant);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        uint32_t root = m->roots[i];
        if (root == i || p->bufs[i].bytes > p->bufs[tenant[root]].bytes)
            tenant[root] = i;
    }
    for (int32_t op = 0; op <= m->out->peak_op; op++) {
        const struct hb_op *writer = &p->ops[op];
        const uint32_t *written = hb_op_writes(p, writer);
        for (uint32_t w = 0; w < writer->write_count; w++) {
            uint32_t root = m->roots[written[w]];
            if (!m->is_argument[root] && p->bufs[written[w]].bytes >= p->bufs[tenant[root]].bytes)
                tenant[root] = written[w];
        }
    }
    return tenant;
}

static int compare_at_peak(const void *a, const void *b)
{
    const struct hb_at_peak *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes > right->bytes ? -1 : 1;
    return left->buf < right->buf ? -1 : left->buf > right->buf;
}

/* By root: alive at the peak. */
static bool *find_alive(const struct measure *m)
{
    bool *alive = hb_arena_alloc(m->arena, m->p->buf_count, sizeof *alive);
    int32_t peak = m->out->peak_op;
    for (uint32_t i = 0; i < m->out->part_count; i++) {
        const struct hb_live_part *part = &m->out->parts[i];
        if (part->span.start <= peak && part->span.end >= peak)
            alive[m->out->live[part->live].buf] = true;
    }
    return alive;
}

static void list_at_peak(struct measure *m)
{
    struct hb_memory *out = m->out;
    out->at_peak = hb_arena_alloc(m->arena, out->live_count, sizeof *out->at_peak);
    struct hb_arena_mark mark = hb_arena_mark(m->arena);
    const uint32_t *tenant = find_tenants(m);
    const bool *alive = find_alive(m);
    for (uint32_t i = 0; i < out->live_count; i++) {
        const struct hb_live *live = &out->live[i];
        bool temporary = is_temporary(m, live);
        if (m->p->bufs[live->buf].space != HB_SPACE_HBM || (temporary && !alive[live->buf]) ||
            out->lent[live->buf])
            continue;
        int64_t align = temporary ? m->habit.heap_align_bytes : m->habit.leaf_align_bytes;
        out->at_peak[out->at_peak_count++] =
            (struct hb_at_peak){tenant[live->buf], hb_round_up(live->bytes, align)};
    }
    hb_arena_rewind(m->arena, mark);
    qsort(out->at_peak, out->at_peak_count, sizeof *out->at_peak, compare_at_peak);
}

static void sum_categories(struct measure *m)
{
    struct hb_memory *out = m->out;
    int64_t *kind = out->category_bytes, sum = 0;
    for (uint32_t i = 0; i < out->at_peak_count; i++) {
        const struct hb_buf *buf = &m->p->bufs[out->at_peak[i].buf];
        kind[buf->category] += buf->plain_bytes;
        kind[HB_CAT_PADDING] += out->at_peak[i].bytes - buf->plain_bytes;
    }
    kind[HB_CAT_RUNTIME] += m->p->argument_extra_bytes;
    kind[HB_CAT_FRAGMENTATION] += out->temp_bytes - out->live_temp_bytes;
    for (int c = 0; c < HB_CATEGORY_COUNT; c++)
        sum += kind[c];
    if (sum != out->peak_bytes)
        HB_BUG("program '%s': categories sum to %lld of %lld bytes", m->p->name, (long long)sum,
               (long long)out->peak_bytes);
}

void hb_run_memory(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out)
{
    struct hb_placing placing = habits[p->compiler];
    placing.repack_bytes = p->repack_bytes;
    hb_run_memory_placed(arena, p, &placing, out);
}

void hb_run_memory_live(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out)
{
    struct hb_placing placing = habits[p->compiler];
    placing.unpacked = true;
    hb_run_memory_placed(arena, p, &placing, out);
}

void hb_run_memory_pack(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out)
{
    struct measure m = {
        .p = p, .habit = habits[p->compiler], .out = out, .arena = arena, .known = true};
    m.habit.repack_bytes = p->repack_bytes;
    if (p->caching.on) /* is placed as it is run */
        return;
    mark_roots(&m);
    pack_heap(&m);
    out->peak_bytes = peak_of(out);
}

void hb_run_memory_placed(struct hb_arena *arena, const struct hb_program *p,
                          const struct hb_placing *placing, struct hb_memory *out)
{
    *out = (struct hb_memory){0};
    out->offset_of = hb_arena_raw(arena, p->buf_count, sizeof *out->offset_of);
    out->lent = hb_arena_alloc(arena, p->buf_count, sizeof *out->lent);
    struct measure m = {.p = p, .habit = *placing, .out = out, .arena = arena};
    out->heap_align_bytes = m.habit.heap_align_bytes;
    out->leaf_align_bytes = m.habit.leaf_align_bytes;
    if (p->caching.on) {
        hb_caching_run(arena, p, out);
        return;
    }
    list_lives(&m);
    mark_roots(&m);
    count_leaves(&m);
    pack_heap(&m);
    count_host(&m);
    out->peak_bytes = peak_of(out);
    if (placing->unpacked)
        return;
    list_at_peak(&m);
    sum_categories(&m);
}
