/* The keys of an outcome that only pictures need, as JSON: see outcome.h. */
#include "base/json_write.h"
#include "plots/outcome.h"

static void open_list(struct hb_json *j, const char *key)
{
    hb_json_key(j, key);
    hb_json_array(j);
}

static bool is_used(const struct hb_outcome *o, const int64_t *curve)
{
    for (uint32_t i = 0; curve && i < o->sample_count; i++)
        if (curve[i])
            return true;
    return false;
}

static void put_samples(struct hb_json *j, const struct hb_outcome *o)
{
    open_list(j, "seconds");
    for (uint32_t i = 0; i < o->sample_count; i++)
        hb_json_real(j, o->seconds[i]);
    hb_json_array_end(j);
    hb_json_key(j, "categories");
    hb_json_object(j);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
        if (!is_used(o, o->category_curve[c]))
            continue;
        open_list(j, hb_category_name((enum hb_category)c));
        for (uint32_t i = 0; i < o->sample_count; i++)
            hb_json_int(j, o->category_curve[c][i]);
        hb_json_array_end(j);
    }
    hb_json_object_end(j);
}

static void put_phases(struct hb_json *j, const struct hb_outcome *o)
{
    open_list(j, "phases");
    for (uint32_t i = 0; i < o->phase_count; i++) {
        hb_json_object(j);
        hb_json_put_text(j, "name", o->phases[i].name);
        hb_json_put_real(j, "start_seconds", o->phases[i].start_seconds);
        hb_json_put_real(j, "end_seconds", o->phases[i].end_seconds);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void put_stream(struct hb_json *j, const struct hb_shown_stream *stream)
{
    hb_json_object(j);
    hb_json_put_text(j, "name", stream->name);
    hb_json_put_real(j, "busy_seconds", stream->busy_seconds);
    open_list(j, "spans");
    for (uint32_t i = 0; i < stream->span_count; i++) {
        hb_json_array(j);
        hb_json_real(j, stream->spans[i].start_seconds);
        hb_json_real(j, stream->spans[i].end_seconds);
        hb_json_text(j, stream->spans[i].name);
        hb_json_array_end(j);
    }
    hb_json_array_end(j);
    hb_json_object_end(j);
}

void hb_outcome_write_heap(struct hb_json *j, const struct hb_outcome *o)
{
    hb_json_key(j, "heap");
    hb_json_object(j);
    hb_json_put_int(j, "bytes", o->heap_bytes);
    open_list(j, "buffers");
    for (uint32_t i = 0; i < o->buffer_count; i++) {
        const struct hb_shown_buffer *b = &o->buffers[i];
        hb_json_object(j);
        hb_json_put_text(j, "name", b->name);
        hb_json_put_text(j, "category", hb_category_name(b->category));
        hb_json_put_int(j, "offset_bytes", b->offset_bytes);
        hb_json_put_int(j, "bytes", b->bytes);
        hb_json_put_int(j, "start_op", b->start_op);
        hb_json_put_int(j, "end_op", b->end_op);
        if (b->kind != HB_SHOWN_NONE) {
            hb_json_put_text(j, "kind", hb_shown_kind_name(b->kind));
            hb_json_put_text(j, "label", b->label);
            hb_json_put_text(j, "why", b->why);
        }
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
    hb_json_object_end(j);
}

void hb_outcome_write_curves(struct hb_json *j, const struct hb_outcome *o)
{
    hb_json_key(j, "timeline");
    hb_json_object(j);
    put_samples(j, o);
    put_phases(j, o);
    open_list(j, "streams");
    for (uint32_t i = 0; i < o->stream_count; i++)
        put_stream(j, &o->streams[i]);
    hb_json_array_end(j);
    hb_json_object_end(j);
    hb_outcome_write_heap(j, o);
}

void hb_outcome_write_loads(struct hb_json *j, const struct hb_outcome *o)
{
    open_list(j, "by_processes");
    for (uint32_t i = 0; i < o->load_count; i++) {
        hb_json_object(j);
        hb_json_put_int(j, "processes", o->loads[i].processes);
        hb_json_put_int(j, "device_peak_bytes", o->loads[i].device_peak_bytes);
        hb_json_put_int(j, "host_peak_bytes", o->loads[i].host_peak_bytes);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}
