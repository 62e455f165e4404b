/* The run as a Chrome trace: see show.h. The format is Google's "Trace Event Format"; Perfetto
 * reads it too. Loops show their first, second and last trip, and a block for what lies between.
 * The counter follows the compute stream: at each of its ops, what is alive at that position. */
#include "base/arena.h"
#include "base/str.h"
#include "cli/show.h"
#include "sim/engine/timeline.h"

enum { PROCESS = 1 };

struct trace {
    struct hb_json j;
    const struct hb_result *r;
};

/* Microseconds, as the format wants them. */
static void put_time(struct trace *t, const char *key, int64_t ns)
{
    hb_json_key(&t->j, key);
    hb_json_real(&t->j, (double)ns / 1000);
}

static void put_text(struct trace *t, const char *key, const char *text)
{
    hb_json_key(&t->j, key);
    hb_json_text(&t->j, text);
}

static void put_int(struct trace *t, const char *key, int64_t value)
{
    hb_json_key(&t->j, key);
    hb_json_int(&t->j, value);
}

static void put_head(struct trace *t, const char *name, const char *kind)
{
    hb_json_object(&t->j);
    put_text(t, "name", name);
    put_text(t, "ph", kind);
    put_int(t, "pid", PROCESS);
}

static void put_name(struct trace *t, const char *what, const char *name, int thread)
{
    put_head(t, what, "M");
    put_int(t, "tid", thread);
    hb_json_key(&t->j, "args");
    hb_json_object(&t->j);
    put_text(t, "name", name);
    hb_json_object_end(&t->j);
    hb_json_object_end(&t->j);
}

static void put_span(struct trace *t, const struct hb_span *span)
{
    const struct hb_program *p = &t->r->program;
    const struct hb_op *op = &p->ops[span->op];
    if (op->kind == HB_OP_MARK)
        return;
    put_head(t, op->name, "X");
    put_text(t, "cat", hb_phase_name(op->phase));
    put_int(t, "tid", (int64_t)op->stream);
    put_time(t, "ts", span->start_ns);
    put_time(t, "dur", span->end_ns - span->start_ns);
    hb_json_key(&t->j, "args");
    hb_json_object(&t->j);
    put_int(t, "op", span->op);
    put_text(t, "kind", hb_op_kind_name(op->kind));
    if (op->loop != HB_NONE) {
        put_text(t, "loop", p->loops[op->loop].name);
        put_int(t, "trip", span->trip + 1);
        put_int(t, "of", p->loops[op->loop].trips);
    }
    hb_json_object_end(&t->j);
    hb_json_object_end(&t->j);
}

static void put_skip(struct trace *t, struct hb_arena *arena, const struct hb_skip *skip)
{
    const struct hb_loop *loop = &t->r->program.loops[skip->loop];
    put_head(t,
             hb_arena_printf(arena, "%s: trips 3 to %lld, like the second", loop->name,
                             (long long)loop->trips - 1),
             "X");
    put_int(t, "tid", HB_STREAM_COMPUTE);
    put_time(t, "ts", skip->start_ns);
    put_time(t, "dur", skip->end_ns - skip->start_ns);
    hb_json_object_end(&t->j);
}

static void put_counter(struct trace *t, const struct hb_timeline *line, const struct hb_span *span)
{
    put_head(t, "bytes alive", "C");
    put_time(t, "ts", span->start_ns);
    hb_json_key(&t->j, "args");
    hb_json_object(&t->j);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++)
        put_int(t, hb_category_name((enum hb_category)c), line->category_bytes[span->op][c]);
    hb_json_object_end(&t->j);
    hb_json_object_end(&t->j);
}

static void put_events(struct trace *t, struct hb_arena *arena)
{
    const struct hb_timing *timing = &t->r->timing;
    struct hb_timeline line;
    hb_timeline_make(arena, &t->r->program, &t->r->memory, &line);
    for (uint32_t i = 0; i < timing->span_count; i++)
        put_span(t, &timing->spans[i]);
    for (uint32_t i = 0; i < timing->skip_count; i++)
        put_skip(t, arena, &timing->skips[i]);
    for (uint32_t i = 0; i < timing->span_count; i++)
        if (t->r->program.ops[timing->spans[i].op].stream == HB_STREAM_COMPUTE)
            put_counter(t, &line, &timing->spans[i]);
}

void hb_show_trace(FILE *out, struct hb_arena *arena, const struct hb_result *r)
{
    struct hb_str text;
    hb_str_init(&text, arena);
    struct trace t = {.j = hb_json_begin(&text, out, false), .r = r};
    hb_json_object(&t.j);
    put_text(&t, "displayTimeUnit", "ms");
    hb_json_key(&t.j, "traceEvents");
    hb_json_array(&t.j);
    put_name(&t, "process_name", r->program.name, 0);
    for (int s = 0; s < HB_STREAM_COUNT; s++)
        if (s == HB_STREAM_COMPUTE || r->timing.busy_ns[s])
            put_name(&t, "thread_name", hb_stream_name((enum hb_stream)s), s);
    put_events(&t, arena);
    hb_json_array_end(&t.j);
    hb_json_object_end(&t.j);
    hb_json_end(&t.j);
}
