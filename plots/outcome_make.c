/* From the engine's run to what is shown: see outcome.h. The engine records the first, second and
 * last trip of each loop and says where it jumped over trips like the second; those are laid out
 * again here, so that the picture shows every trip (or, of very many, evenly chosen ones).
 * What is alive at a position of the schedule is shown from the start of the compute op there; a
 * position of another stream counts with the compute op that follows it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "plots/outcome.h"
#include "plots/place.h"
#include "sim/engine/live.h"
#include "sim/engine/timeline.h"
#include "sim/engine/why.h"

enum { BINS = 480, SPAN_BINS = 1200, MOST_EVENTS = 400000, MOST_PHASES = 400 };

/* One run of an op. */
struct event {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t op;
};

struct maker {
    struct hb_arena *arena;
    const struct hb_result *r;
    struct hb_outcome *o;
    struct hb_timeline line;
    uint32_t *position; /* by compute op: the fullest position since the compute op before */
    struct event *events;
    uint32_t event_count, event_cap;
};

static int compare_events(const void *a, const void *b)
{
    const struct event *x = a;
    const struct event *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

static void add_event(struct maker *m, struct event e)
{
    m->events = hb_grow(m->arena, m->events, m->event_count, &m->event_cap, sizeof *m->events);
    m->events[m->event_count++] = e;
}

static int compare_skips(const void *a, const void *b)
{
    const struct hb_skip *x = a;
    const struct hb_skip *y = b;
    int64_t dx = x->end_ns - x->start_ns;
    int64_t dy = y->end_ns - y->start_ns;
    if (dx != dy)
        return dx < dy ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Lays the trip before the jump out again over the time that was jumped. */
static void fill_skip(struct maker *m, const struct hb_skip *skip)
{
    int64_t trips = m->r->program.loops[skip->loop].trips - 3;
    uint32_t known = m->event_count;
    uint32_t count = 0;
    if (trips < 1)
        return;
    int64_t period = (skip->end_ns - skip->start_ns) / trips;
    uint32_t *body = hb_arena_alloc(m->arena, known, sizeof *body);
    for (uint32_t i = 0; i < known; i++)
        if (m->events[i].start_ns >= skip->start_ns - period &&
            m->events[i].start_ns < skip->start_ns)
            body[count++] = i;
    int64_t room = count ? (MOST_EVENTS - (int64_t)known) / count : 0;
    int64_t drawn = trips < room ? trips : room;
    for (int64_t k = 0; k < drawn; k++) {
        int64_t trip = k * trips / drawn + 1;
        double shift = (double)(skip->end_ns - skip->start_ns) * (double)trip / (double)trips;
        for (uint32_t i = 0; i < count; i++) {
            struct event e = m->events[body[i]];
            e.start_ns += (int64_t)shift;
            e.end_ns += (int64_t)shift;
            add_event(m, e);
        }
    }
}

/* Inner loops first: what is laid out again holds its inner trips already. */
static void list_events(struct maker *m)
{
    const struct hb_timing *t = &m->r->timing;
    for (uint32_t i = 0; i < t->span_count; i++)
        add_event(m, (struct event){t->spans[i].start_ns, t->spans[i].end_ns, t->spans[i].op});
    struct hb_skip *skips = hb_arena_alloc(m->arena, t->skip_count, sizeof *skips);
    if (t->skip_count)
        memcpy(skips, t->skips, t->skip_count * sizeof *skips);
    qsort(skips, t->skip_count, sizeof *skips, compare_skips);
    for (uint32_t i = 0; i < t->skip_count; i++)
        fill_skip(m, &skips[i]);
    qsort(m->events, m->event_count, sizeof *m->events, compare_events);
}

static void find_positions(struct maker *m)
{
    const struct hb_program *p = &m->r->program;
    uint32_t fullest = 0;
    m->position = hb_arena_alloc(m->arena, p->op_count, sizeof *m->position);
    for (uint32_t op = 0; op < p->op_count; op++) {
        if (m->line.total_bytes[op] >= m->line.total_bytes[fullest])
            fullest = op;
        m->position[op] = fullest;
        if (p->ops[op].stream == HB_STREAM_COMPUTE)
            fullest = op + 1;
    }
}

static void add_sample(struct maker *m, int64_t time_ns, uint32_t op)
{
    struct hb_outcome *o = m->o;
    const int64_t *bytes = m->line.category_bytes[m->position[op]];
    uint32_t i = o->sample_count++;
    o->seconds[i] = (double)time_ns * 1e-9;
    o->positions[i] = m->position[op];
    for (int c = 0; c < HB_CATEGORY_COUNT; c++)
        o->category_curve[c][i] = bytes[c];
    o->category_curve[HB_CAT_FRAGMENTATION][i] +=
        m->r->memory.temp_bytes - m->r->memory.live_temp_bytes;
}

static int64_t total_at(const struct maker *m, uint32_t op)
{
    return m->line.total_bytes[m->position[op]];
}

/* Of the compute ops that start in one bin of time, the fullest and the last. */
static void list_samples(struct maker *m)
{
    struct hb_outcome *o = m->o;
    const struct hb_program *p = &m->r->program;
    double bin_ns = fmax(1, (double)m->r->timing.step_ns / BINS);
    const struct event *fullest = NULL;
    const struct event *last = NULL;
    o->seconds = hb_arena_alloc(m->arena, 2 * BINS + 4, sizeof *o->seconds);
    o->positions = hb_arena_alloc(m->arena, 2 * BINS + 4, sizeof *o->positions);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++)
        o->category_curve[c] = hb_arena_alloc(m->arena, 2 * BINS + 4, sizeof(int64_t));
    for (uint32_t i = 0; i <= m->event_count; i++) {
        const struct event *e = i < m->event_count ? &m->events[i] : NULL;
        if (e && p->ops[e->op].stream != HB_STREAM_COMPUTE)
            continue;
        bool next = last && (!e || floor((double)e->start_ns / bin_ns) >
                                       floor((double)last->start_ns / bin_ns));
        if (next) {
            add_sample(m, fullest->start_ns, fullest->op);
            if (last != fullest)
                add_sample(m, last->start_ns, last->op);
            fullest = NULL;
        }
        if (e && (!fullest || total_at(m, e->op) > total_at(m, fullest->op)))
            fullest = e;
        last = e;
    }
}

static void list_phases(struct maker *m)
{
    struct hb_outcome *o = m->o;
    const struct hb_program *p = &m->r->program;
    double least = (double)m->r->timing.step_ns * 1e-9 / MOST_PHASES;
    struct hb_shown_span *open = NULL;
    o->phases = hb_arena_alloc(m->arena, MOST_PHASES, sizeof *o->phases);
    for (uint32_t i = 0; i < m->event_count; i++) {
        const struct event *e = &m->events[i];
        const struct hb_op *op = &p->ops[e->op];
        double start = (double)e->start_ns * 1e-9;
        if (op->stream != HB_STREAM_COMPUTE || op->kind == HB_OP_MARK)
            continue;
        const char *name = hb_phase_name(op->phase);
        if (!open || (strcmp(open->name, name) != 0 && o->phase_count < MOST_PHASES)) {
            if (open && open->end_seconds - open->start_seconds < least)
                o->phase_count--; /* too short to be seen: the next takes its place */
            open = &o->phases[o->phase_count++];
            *open = (struct hb_shown_span){name, start, start};
        }
        open->end_seconds = fmax(open->end_seconds, (double)e->end_ns * 1e-9);
    }
}

/* Runs of one stream with next to no time between them become one span, named by the longest. */
static void list_spans(struct maker *m, enum hb_stream stream, struct hb_shown_stream *out)
{
    const struct hb_program *p = &m->r->program;
    double least = (double)m->r->timing.step_ns * 1e-9 / SPAN_BINS;
    double longest = 0;
    uint32_t joined = 0;
    uint32_t cap = 0;
    for (uint32_t i = 0; i < m->event_count; i++) {
        const struct event *e = &m->events[i];
        double start = (double)e->start_ns * 1e-9;
        double end = (double)e->end_ns * 1e-9;
        if (p->ops[e->op].stream != stream || e->end_ns <= e->start_ns)
            continue;
        struct hb_shown_span *s = out->span_count ? &out->spans[out->span_count - 1] : NULL;
        if (s && start - s->end_seconds < least && end - s->start_seconds < 8 * least) {
            joined++;
        } else {
            out->spans = hb_grow(m->arena, out->spans, out->span_count, &cap, sizeof *out->spans);
            s = &out->spans[out->span_count++];
            *s = (struct hb_shown_span){"", start, end};
            longest = joined = 0;
        }
        s->end_seconds = fmax(s->end_seconds, end);
        if (end - start > longest) {
            longest = end - start;
            s->name = p->ops[e->op].name;
        }
    }
}

static void list_streams(struct maker *m)
{
    struct hb_outcome *o = m->o;
    o->streams = hb_arena_alloc(m->arena, HB_STREAM_COUNT, sizeof *o->streams);
    for (int s = 0; s < HB_STREAM_COUNT; s++) {
        if (m->r->timing.busy_ns[s] <= 0)
            continue;
        struct hb_shown_stream *stream = &o->streams[o->stream_count++];
        stream->name = hb_stream_name((enum hb_stream)s);
        stream->busy_seconds = (double)m->r->timing.busy_ns[s] * 1e-9;
        list_spans(m, (enum hb_stream)s, stream);
    }
}

static void list_buffers(struct hb_arena *arena, const struct hb_program *p,
                         const struct hb_memory *mem, struct hb_outcome *o)
{
    /* a caching allocator's addresses are those of all that it holds from the device */
    o->heap_bytes = p->caching.on ? mem->reserved_bytes : mem->temp_bytes;
    o->buffers = hb_arena_alloc(arena, mem->live_count, sizeof *o->buffers);
    for (uint32_t i = 0; i < mem->live_count; i++) {
        const struct hb_live *live = &mem->live[i];
        int64_t last = (int64_t)p->op_count - 1;
        if (mem->offset_of[live->buf] < 0 || p->bufs[live->buf].space != HB_SPACE_HBM)
            continue;
        o->buffers[o->buffer_count++] =
            (struct hb_shown_buffer){.name = p->bufs[live->buf].name,
                                     .why = hb_why(&p->bufs[live->buf]),
                                     .category = p->bufs[live->buf].category,
                                     .offset_bytes = mem->offset_of[live->buf],
                                     .bytes = live->bytes,
                                     .start_op = live->start < 0 ? 0 : live->start,
                                     .end_op = live->end > last ? last : live->end,
                                     .buf = live->buf};
    }
}

void hb_outcome_make_heap(struct hb_arena *arena, const struct hb_program *p,
                          const struct hb_memory *memory, struct hb_outcome *out)
{
    *out = (struct hb_outcome){.name = p->name ? p->name : "",
                               .fits = true,
                               .peak_bytes = memory->peak_bytes,
                               .peak_at = "",
                               .temp_bytes = memory->temp_bytes};
    list_buffers(arena, p, memory, out);
}

static void list_tensors(struct maker *m)
{
    const struct hb_memory *mem = &m->r->memory;
    struct hb_outcome *o = m->o;
    o->tensors = hb_arena_alloc(m->arena, mem->at_peak_count, sizeof *o->tensors);
    o->tensor_count = mem->at_peak_count;
    for (uint32_t i = 0; i < mem->at_peak_count; i++) {
        const struct hb_buf *buf = &m->r->program.bufs[mem->at_peak[i].buf];
        o->tensors[i] =
            (struct hb_shown_tensor){buf->name, hb_why(buf), buf->category, mem->at_peak[i].bytes};
    }
}

static void list_loads(struct maker *m)
{
    const struct hb_result *r = m->r;
    struct hb_outcome *o = m->o;
    o->loads = hb_arena_alloc(m->arena, r->load_row_count, sizeof *o->loads);
    o->load_count = r->load_row_count;
    for (uint32_t i = 0; i < r->load_row_count; i++)
        o->loads[i] =
            (struct hb_shown_load){r->load_rows[i].processes, r->load_rows[i].device_peak_bytes,
                                   r->load_rows[i].host_peak_bytes};
}

static const char *name_peak(const struct maker *m)
{
    const struct hb_program *p = &m->r->program;
    int32_t op = m->r->memory.peak_op;
    if (op < 0 || op >= (int32_t)p->op_count)
        return "";
    return hb_arena_printf(m->arena, "%s, %s", hb_phase_name(p->ops[op].phase), p->ops[op].name);
}

static void take_totals(struct maker *m)
{
    const struct hb_result *r = m->r;
    struct hb_outcome *o = m->o;
    *o = (struct hb_outcome){.name = r->program.name,
                             .place = hb_place_of(m->arena, r->spec, HB_WHERE_MESH),
                             .fits = r->fits,
                             .peak_bytes = r->memory.peak_bytes,
                             .low_bytes = r->interval.records ? r->interval.low_bytes : 0,
                             .high_bytes = r->interval.records ? r->interval.high_bytes : 0,
                             .confidence = r->interval.confidence,
                             .records = r->interval.records,
                             .budget_bytes = r->budget_bytes,
                             .argument_bytes = r->memory.argument_bytes,
                             .output_bytes = r->memory.output_bytes,
                             .alias_bytes = r->memory.alias_bytes,
                             .temp_bytes = r->memory.temp_bytes,
                             .host_bytes = r->memory.host_bytes,
                             .step_seconds = r->step_seconds,
                             .tokens_per_second = r->tokens_per_second,
                             .mfu = r->mfu};
    memcpy(o->category_bytes, r->memory.category_bytes, sizeof o->category_bytes);
    o->peak_at = name_peak(m);
}

void hb_outcome_make(struct hb_arena *arena, const struct hb_result *r, struct hb_outcome *out)
{
    struct maker m = {.arena = arena, .r = r, .o = out};
    take_totals(&m);
    list_tensors(&m);
    list_buffers(arena, &r->program, &r->memory, out);
    list_loads(&m);
    if (r->program.op_count == 0)
        return;
    hb_timeline_make(arena, &r->program, &r->memory, &m.line);
    find_positions(&m);
    list_events(&m);
    list_samples(&m);
    list_phases(&m);
    list_streams(&m);
}
