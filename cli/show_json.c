/* simulate's JSON, and the words that several outputs share: see show.h. */
#include "base/str.h"
#include "cli/show.h"
#include "plots/outcome.h"
#include "sim/engine/why.h"

const char *hb_show_shape(struct hb_arena *arena, const struct hb_buf *buf)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    int bits = hb_dtype_bits(buf->dtype);
    if (buf->rank == 0 && buf->plain_bytes > (bits < 8 ? 1 : bits / 8))
        return "";
    hb_str_addf(&s, "%s[", hb_dtype_name(buf->dtype));
    for (int i = 0; i < buf->rank; i++)
        hb_str_addf(&s, "%s%lld", i ? "," : "", (long long)buf->dim[i]);
    hb_str_add(&s, "]");
    return s.text;
}

const char *hb_show_place(struct hb_arena *arena, const struct hb_program *p, int32_t op)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    if (op < 0)
        return "the arguments alone";
    if (op >= (int32_t)p->op_count)
        return "the end of the step";
    const struct hb_op *o = &p->ops[op];
    hb_str_addf(&s, "%s, op %d of %u: %s", hb_phase_name(o->phase), op + 1, p->op_count, o->name);
    for (uint32_t loop = o->loop; loop != HB_NONE; loop = p->loops[loop].parent)
        hb_str_addf(&s, "%s of %s (%lld trips)", loop == o->loop ? ", in each trip" : "",
                    p->loops[loop].name, (long long)p->loops[loop].trips);
    return s.text;
}

static void show_tensors(struct hb_json *j, const struct hb_result *r)
{
    hb_json_array(j);
    for (uint32_t i = 0; i < r->memory.at_peak_count; i++) {
        const struct hb_buf *buf = &r->program.bufs[r->memory.at_peak[i].buf];
        hb_json_object(j);
        hb_json_put_text(j, "name", buf->name);
        hb_json_put_text(j, "category", hb_category_name(buf->category));
        hb_json_put_int(j, "bytes", r->memory.at_peak[i].bytes);
        hb_json_put_text(j, "why", hb_why(buf));
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

void hb_show_categories_json(struct hb_json *j, const struct hb_memory *m)
{
    hb_json_key(j, "categories");
    hb_json_object(j);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++)
        hb_json_put_int(j, hb_category_name((enum hb_category)c), m->category_bytes[c]);
    hb_json_object_end(j);
}

static void show_peak(struct hb_json *j, struct hb_arena *arena, const struct hb_result *r)
{
    hb_json_object(j);
    hb_json_put_text(j, "at", hb_show_place(arena, &r->program, r->memory.peak_op));
    hb_show_categories_json(j, &r->memory);
    hb_json_key(j, "tensors");
    show_tensors(j, r);
    hb_json_object_end(j);
}

static void show_ranks(struct hb_json *j, const struct hb_result *r)
{
    hb_json_key(j, "ranks");
    hb_json_array(j);
    for (int64_t i = 0; i < r->memory.rank_count; i++) {
        hb_json_object(j);
        hb_json_put_int(j, "rank", i);
        hb_json_put_int(j, "peak_bytes", r->memory.rank_peaks[i]);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void show_sizes(struct hb_json *j, const struct hb_result *r)
{
    const struct {
        const char *key;
        int64_t bytes;
    } sizes[] = {
        {"peak_bytes", r->memory.peak_bytes},         {"budget_bytes", r->budget_bytes},
        {"argument_bytes", r->memory.argument_bytes}, {"output_bytes", r->memory.output_bytes},
        {"alias_bytes", r->memory.alias_bytes},       {"temp_bytes", r->memory.temp_bytes},
        {"host_bytes", r->memory.host_bytes}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        hb_json_put_int(j, sizes[i].key, sizes[i].bytes);
    if (!r->program.caching.on)
        return;
    if (r->memory.rank_count)
        show_ranks(j, r);
    /* No storage waits for another stream: what is active is what is allocated. */
    hb_json_put_int(j, "allocated_bytes", r->memory.allocated_bytes);
    hb_json_put_int(j, "active_bytes", r->memory.allocated_bytes);
    hb_json_put_int(j, "reserved_bytes", r->memory.reserved_bytes);
    hb_json_put_int(j, "allocator_retries", r->memory.retries);
}

/* Where budget_bytes comes from. host_bytes, of a device's share, is null where it is not known. */
static void show_budget(struct hb_json *j, const struct hb_budget *b)
{
    hb_json_key(j, "budget");
    hb_json_object(j);
    hb_json_put_int(j, "device_bytes", b->device_bytes);
    hb_json_put_real(j, "memory_fraction", b->fraction);
    hb_json_put_int(j, "beside_bytes", b->beside_bytes);
    hb_json_key(j, "host_bytes");
    if (b->host_bytes < INT64_MAX)
        hb_json_int(j, b->host_bytes);
    else
        hb_json_null(j);
    hb_json_put_int(j, "host_reserve_bytes", b->host_reserve_bytes);
    hb_json_object_end(j);
}

/* Null where nothing is known. */
static void show_interval(struct hb_json *j, const struct hb_interval *i)
{
    hb_json_key(j, "interval");
    if (!i->records) {
        hb_json_null(j);
        return;
    }
    hb_json_object(j);
    hb_json_put_int(j, "low_bytes", i->low_bytes);
    hb_json_put_int(j, "high_bytes", i->high_bytes);
    hb_json_put_real(j, "confidence", i->confidence);
    hb_json_put_int(j, "records", i->records);
    hb_json_put_text(j, "like", i->like);
    hb_json_object_end(j);
}

void hb_show_json(struct hb_json *j, struct hb_arena *arena, const struct hb_result *r, bool full,
                  const struct hb_step_orders *orders, const struct hb_head *head)
{
    struct hb_outcome outcome = {0};
    if (full || r->spec->load.present)
        hb_outcome_make(arena, r, &outcome);
    hb_json_object(j);
    if (head)
        hb_head_json(j, head);
    hb_json_put_bool(j, "fits", r->fits);
    hb_json_put_text(j, "verdict", hb_verdict_name(r->verdict));
    show_sizes(j, r);
    show_interval(j, &r->interval);
    show_budget(j, &r->budget);
    hb_json_put_real(j, "step_seconds", r->step_seconds);
    hb_json_put_real(j, "tokens_per_second", r->tokens_per_second);
    hb_json_put_real(j, "mfu", r->mfu);
    hb_json_key(j, "peak");
    show_peak(j, arena, r);
    if (r->spec->load.present) {
        hb_json_key(j, "load");
        hb_json_object(j);
        hb_json_put_int(j, "device_peak_bytes", r->load.device_peak_bytes);
        hb_json_put_int(j, "host_peak_bytes", r->load.host_peak_bytes);
        hb_outcome_write_loads(j, &outcome);
        hb_json_object_end(j);
    }
    if (orders)
        hb_show_orders_json(j, orders);
    if (full)
        hb_outcome_write_curves(j, &outcome);
    hb_json_object_end(j);
}
