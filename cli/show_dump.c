/* The program, its buffers, its heap and its run as plain lists: see show.h. Fixed columns, one
 * line an item, indices and bytes in full, so that two dumps can be compared line by line. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/str.h"
#include "cli/show.h"
#include "sim/engine/event.h"
#include "sim/engine/live.h"

static int loop_depth(const struct hb_program *p, uint32_t loop)
{
    int depth = 0;
    for (; loop != HB_NONE; loop = p->loops[loop].parent)
        depth++;
    return depth;
}

static void show_refs(FILE *out, const struct hb_program *p, const char *word, const uint32_t *ref,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%s%u %s", i ? ", " : word, ref[i], p->bufs[ref[i]].name);
}

static void show_op(FILE *out, const struct hb_program *p, uint32_t op)
{
    const struct hb_op *o = &p->ops[op];
    const uint32_t *ref = p->refs + o->refs_at;
    fprintf(out, "%5u %*s%s %s %s: %s", op, 2 * loop_depth(p, o->loop), "", hb_phase_name(o->phase),
            hb_stream_name(o->stream), hb_op_kind_name(o->kind), o->name);
    if (o->kind == HB_OP_DONE)
        fprintf(out, " of %u", o->start);
    show_refs(out, p, " | reads ", ref, o->read_count);
    show_refs(out, p, " | writes ", ref + o->read_count, o->write_count);
    if (o->flops > 0)
        fprintf(out, " | %.6g FLOP", o->flops);
    if (o->sent_bytes > 0 && o->group > 1)
        fprintf(out, " | %.6g B over %lld", o->sent_bytes, (long long)o->group);
    else if (o->moved_bytes > 0)
        fprintf(out, " | %.6g B", o->moved_bytes);
    fputc('\n', out);
}

void hb_show_graph(FILE *out, const struct hb_result *r)
{
    const struct hb_program *p = &r->program;
    for (uint32_t op = 0; op < p->op_count; op++) {
        for (uint32_t loop = 0; loop < p->loop_count; loop++)
            if (p->loops[loop].first_op == op && p->loops[loop].end_op > op)
                fprintf(out, "      %*sloop %u %s: %lld trips, ops %u to %u\n",
                        2 * loop_depth(p, p->loops[loop].parent), "", loop, p->loops[loop].name,
                        (long long)p->loops[loop].trips, op, p->loops[loop].end_op - 1);
        show_op(out, p, op);
    }
}

static const char *space_name(enum hb_space space)
{
    switch (space) {
    case HB_SPACE_HBM:
        return "hbm";
    case HB_SPACE_HOST:
        return "host";
    case HB_SPACE_CHIP:
        return "chip";
    }
    return "";
}

static void show_buffer(FILE *out, const struct hb_program *p, uint32_t i,
                        const struct hb_live *live)
{
    const struct hb_buf *b = &p->bufs[i];
    char text[32];
    struct hb_arena_mark mark = hb_arena_mark(p->arena);
    fprintf(out, "%5u %14lld %14lld %-4s %-13s", i, (long long)b->bytes, (long long)b->plain_bytes,
            space_name(b->space), hb_category_name(b->category));
    if (b->alias_of != HB_NONE)
        snprintf(text, sizeof text, "in %u", b->alias_of);
    else if (live)
        snprintf(text, sizeof text, "%d..%d", live->start, live->end);
    else
        snprintf(text, sizeof text, "unused");
    fprintf(out, " %-12s %s%s%s %s%s%s\n", text, b->argument ? "argument " : "",
            b->output ? "output " : "", b->name, hb_show_shape(p->arena, b),
            b->why && *b->why ? " | " : "", b->why ? b->why : "");
    hb_arena_rewind(p->arena, mark);
}

void hb_show_buffers(FILE *out, const struct hb_result *r)
{
    const struct hb_memory *m = &r->memory;
    uint32_t at = 0;
    fprintf(out, "%5s %14s %14s %-4s %-13s %-12s %s\n", "index", "bytes", "unpadded", "in",
            "category", "alive", "name");
    for (uint32_t i = 0; i < r->program.buf_count; i++) {
        bool has_life = at < m->live_count && m->live[at].buf == i;
        show_buffer(out, &r->program, i, has_life ? &m->live[at++] : NULL);
    }
}

struct place {
    int64_t offset;
    const struct hb_live *live;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    if (left->live->start != right->live->start)
        return left->live->start < right->live->start ? -1 : 1;
    return left->live->buf < right->live->buf ? -1 : left->live->buf > right->live->buf;
}

void hb_show_heap(FILE *out, struct hb_arena *arena, const struct hb_result *r)
{
    const struct hb_memory *m = &r->memory;
    struct place *places = hb_arena_alloc(arena, m->live_count, sizeof *places);
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->live_count; i++)
        if (m->offset_of[m->live[i].buf] >= 0)
            places[count++] = (struct place){m->offset_of[m->live[i].buf], &m->live[i]};
    if (count)
        qsort(places, count, sizeof *places, compare_places);
    fprintf(out, "%14s %14s %6s %6s %s\n", "offset", "bytes", "first", "last", "name");
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, "%14lld %14lld %6d %6d %u %s\n", (long long)places[i].offset,
                (long long)places[i].live->bytes, places[i].live->start, places[i].live->end,
                places[i].live->buf, r->program.bufs[places[i].live->buf].name);
    fprintf(out, "%14lld height, %lld alive at op %d\n", (long long)m->temp_bytes,
            (long long)m->live_temp_bytes, m->peak_op);
}

void hb_show_events(FILE *out, struct hb_arena *arena, const struct hb_result *r)
{
    struct hb_event *events;
    uint32_t count = hb_event_list(arena, &r->timing, &events);
    fprintf(out, "%16s %-5s %5s %6s %s\n", "time_ns", "event", "op", "trip", "stream and name");
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_op *op = &r->program.ops[events[i].op];
        fprintf(out, "%16lld %-5s %5u %6lld %s %s\n", (long long)events[i].time_ns,
                events[i].end ? "end" : "start", events[i].op, (long long)events[i].trip,
                hb_stream_name(op->stream), op->name);
    }
}

/* text in the quotes of Graphviz. */
static void show_quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void show_edges(FILE *out, const struct hb_program *p, uint32_t *writer, uint32_t op)
{
    const struct hb_op *o = &p->ops[op];
    const uint32_t *ref = p->refs + o->refs_at;
    for (uint32_t i = 0; i < o->read_count; i++) {
        uint32_t from = writer[hb_program_root(p, ref[i])];
        if (from == HB_NONE)
            continue;
        fprintf(out, "  op%u -> op%u [label=", from, op);
        show_quoted(out, p->bufs[ref[i]].name);
        fputs("];\n", out);
    }
    for (uint32_t i = 0; i < o->write_count; i++)
        writer[hb_program_root(p, ref[o->read_count + i])] = op;
}

void hb_show_dot(FILE *out, struct hb_arena *arena, const struct hb_result *r)
{
    const struct hb_program *p = &r->program;
    uint32_t *writer = hb_arena_alloc(arena, p->buf_count, sizeof *writer);
    for (uint32_t i = 0; i < p->buf_count; i++)
        writer[i] = HB_NONE;
    fputs("digraph step {\n  node [shape=box];\n", out);
    for (uint32_t op = 0; op < p->op_count; op++) {
        fprintf(out, "  op%u [label=", op);
        show_quoted(out, p->ops[op].name);
        fprintf(out, "%s];\n", (int32_t)op == r->memory.peak_op ? ", color=red" : "");
    }
    for (uint32_t op = 0; op < p->op_count; op++) {
        show_edges(out, p, writer, op);
        if (p->ops[op].kind == HB_OP_DONE)
            fprintf(out, "  op%u -> op%u [style=dashed];\n", p->ops[op].start, op);
    }
    fputs("}\n", out);
}
