/* From messages to a measured record: see measured.h. */
#include "sim/hlo/measured.h"

#include "base/arena.h"
#include "base/size.h"

struct reading {
    struct hb_arena *arena;
    const struct hb_log *log;
    struct hb_measured *out;
};

static int64_t fact(const struct reading *r, enum hb_log_fact f)
{
    return hb_log_fact(r->log, r->out->from, f);
}

static void set_peak(const struct reading *r, enum hb_log_fact f)
{
    r->out->peak_bytes = fact(r, f);
    r->out->step_bytes = r->log->message[r->out->from].step[f];
}

/* argument + output - alias + temp. */
static void read_analysis(const struct reading *r)
{
    struct hb_measured *m = r->out;
    int64_t alias = fact(r, HB_FACT_HOST_ALIAS);
    int64_t host[] = {fact(r, HB_FACT_HOST_ARGUMENT), fact(r, HB_FACT_HOST_OUTPUT),
                      fact(r, HB_FACT_HOST_TEMP)};
    m->kind = HB_MEASURED_XLA_TOTAL;
    m->argument_bytes = fact(r, HB_FACT_ARGUMENT);
    m->output_bytes = fact(r, HB_FACT_OUTPUT);
    m->alias_bytes = fact(r, HB_FACT_ALIAS);
    m->temp_bytes = fact(r, HB_FACT_TEMP);
    if (host[0] >= 0 && host[1] >= 0 && host[2] >= 0)
        m->host_bytes = host[0] + host[1] + host[2] - (alias > 0 ? alias : 0);
    if (m->host_bytes < 0)
        m->host_bytes = fact(r, HB_FACT_HOST_TEMP);
    set_peak(r, HB_FACT_TOTAL);
}

/* The total that the compiler wanted; its list of parts is by other boundaries than
 * memory_analysis(), except arguments and outputs. */
static void read_tpu(const struct reading *r)
{
    struct hb_measured *m = r->out;
    m->kind = HB_MEASURED_XLA_TOTAL;
    m->compiler = "xla-tpu";
    m->argument_bytes = fact(r, HB_FACT_ARGUMENT);
    m->output_bytes = fact(r, HB_FACT_OUTPUT);
    m->alias_bytes = fact(r, HB_FACT_ALIAS);
    set_peak(r, HB_FACT_NEEDED);
    if (m->peak_bytes < 0)
        set_peak(r, HB_FACT_TOTAL);
}

static void read_buffers(const struct reading *r)
{
    struct hb_measured *m = r->out;
    m->kind = HB_MEASURED_XLA_TOTAL;
    m->compiler = "xla-gpu";
    m->argument_bytes = fact(r, HB_FACT_ARGUMENT);
    m->output_bytes = fact(r, HB_FACT_OUTPUT);
    m->temp_bytes = fact(r, HB_FACT_TEMP);
    set_peak(r, HB_FACT_TOTAL);
}

static void read_stats(const struct reading *r)
{
    struct hb_measured *m = r->out;
    m->kind = HB_MEASURED_RUNTIME_PEAK;
    m->static_bytes = fact(r, HB_FACT_IN_USE);
    set_peak(r, HB_FACT_PEAK);
}

/* What was in use and what was asked on top of it: at least that much was wanted. */
static void read_refusal(const struct reading *r)
{
    struct hb_measured *m = r->out;
    int64_t in_use = hb_log_fact(r->log, HB_LOG_BFC_DUMP, HB_FACT_IN_USE);
    if (in_use < 0)
        in_use = hb_log_fact(r->log, HB_LOG_STATS, HB_FACT_IN_USE);
    m->kind = HB_MEASURED_RUNTIME_PEAK;
    m->compiler = "xla-gpu";
    m->static_bytes = in_use;
    set_peak(r, HB_FACT_ASKED);
    m->temp_bytes = hb_log_asked(r->log, m->from);
    if (m->temp_bytes != m->peak_bytes)
        m->step_bytes = 1;
    m->peak_bytes = in_use >= 0 && m->temp_bytes >= 0 ? in_use + m->temp_bytes : -1;
    m->note =
        "the peak is what was in use and the request that failed: at least so much was wanted";
}

static void read_torch(const struct reading *r)
{
    struct hb_measured *m = r->out;
    int64_t allocated = fact(r, HB_FACT_ALLOCATED);
    int64_t unallocated = fact(r, HB_FACT_UNALLOCATED);
    int64_t before = hb_log_fact(r->log, HB_LOG_TORCH_STATS, HB_FACT_PEAK_ALLOCATED);
    m->kind = HB_MEASURED_MAX_ALLOCATED;
    m->compiler = "torch";
    m->reserved_bytes = fact(r, HB_FACT_RESERVED);
    if (m->reserved_bytes < 0 && allocated >= 0 && unallocated >= 0)
        m->reserved_bytes = allocated + unallocated;
    set_peak(r, HB_FACT_ASKED);
    m->peak_bytes = allocated >= 0 && m->peak_bytes >= 0 ? allocated + m->peak_bytes : -1;
    if (before > m->peak_bytes)
        m->peak_bytes = before;
    m->note = "the peak is what tensors took and the request that failed: at least so much was "
              "wanted";
}

static void read_torch_stats(const struct reading *r)
{
    struct hb_measured *m = r->out;
    bool both = fact(r, HB_FACT_PEAK_ALLOCATED) >= 0;
    m->kind = both ? HB_MEASURED_MAX_ALLOCATED : HB_MEASURED_MAX_RESERVED;
    m->compiler = "torch";
    m->static_bytes = fact(r, HB_FACT_ALLOCATED);
    m->reserved_bytes = fact(r, HB_FACT_PEAK_RESERVED);
    m->active_bytes = fact(r, HB_FACT_PEAK_ACTIVE);
    set_peak(r, both ? HB_FACT_PEAK_ALLOCATED : HB_FACT_PEAK_RESERVED);
    if (fact(r, HB_FACT_OOMS) > 0)
        m->note = "the statistics count refused requests: the peak may be less than was wanted";
}

/* Where figures are taken from, the best first. */
static const struct origin {
    enum hb_log_kind kind;
    void (*read)(const struct reading *r);
} origins[] = {
    {HB_LOG_ANALYSIS, read_analysis}, {HB_LOG_TPU, read_tpu},
    {HB_LOG_BUFFERS, read_buffers},   {HB_LOG_MAXTEXT, read_analysis},
    {HB_LOG_TORCH, read_torch},       {HB_LOG_TORCH_STATS, read_torch_stats},
    {HB_LOG_XLA_ALLOC, read_refusal}, {HB_LOG_BFC, read_refusal},
    {HB_LOG_ASYNC, read_refusal},     {HB_LOG_STATS, read_stats},
};

static const enum hb_log_kind failures[] = {HB_LOG_TPU,         HB_LOG_TPU_ALLOC, HB_LOG_TPU_BUFFER,
                                            HB_LOG_TPU_PROGRAM, HB_LOG_XLA_ALLOC, HB_LOG_BFC,
                                            HB_LOG_ASYNC,       HB_LOG_TORCH,     HB_LOG_GRAPH};

static bool has_failed(const struct hb_log *log)
{
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        if (hb_log_seen(log, failures[i]))
            return true;
    return false;
}

/* Who printed statistics had run; where they count failures, who knows of what. What was only
 * compiled is left open. */
static int find_fits(const struct hb_log *log)
{
    if (has_failed(log))
        return 0;
    if (hb_log_fact(log, HB_LOG_TORCH_STATS, HB_FACT_OOMS) > 0)
        return -1;
    return hb_log_seen(log, HB_LOG_STATS) || hb_log_seen(log, HB_LOG_TORCH_STATS) ? 1 : -1;
}

static void clear(struct hb_measured *m)
{
    *m = (struct hb_measured){.argument_bytes = -1,
                              .output_bytes = -1,
                              .alias_bytes = -1,
                              .temp_bytes = -1,
                              .host_bytes = -1,
                              .peak_bytes = -1,
                              .static_bytes = -1,
                              .reserved_bytes = -1,
                              .active_bytes = -1,
                              .step_bytes = 1,
                              .fits = -1};
}

/* The peak of reserved memory as the figure to compare, where both are told. */
static void turn_to_reserved(struct hb_measured *m)
{
    if (m->kind != HB_MEASURED_MAX_ALLOCATED || m->reserved_bytes < 0)
        return;
    m->kind = HB_MEASURED_MAX_RESERVED;
    m->peak_bytes = m->reserved_bytes;
}

static void add_rounding(const struct reading *r)
{
    char size[HB_SIZE_TEXT];
    const char *rounded;
    if (r->out->step_bytes <= 1)
        return;
    rounded = hb_arena_printf(r->arena, "printed to the nearest %s",
                              hb_size_print(r->out->step_bytes, size));
    r->out->note =
        r->out->note ? hb_arena_printf(r->arena, "%s; %s", r->out->note, rounded) : rounded;
}

static bool try_origin(struct reading *r, const struct origin *o, enum hb_measured_kind want)
{
    if (!hb_log_seen(r->log, o->kind))
        return false;
    clear(r->out);
    r->out->from = o->kind;
    o->read(r);
    if (want == HB_MEASURED_MAX_RESERVED)
        turn_to_reserved(r->out);
    return want == HB_MEASURED_KIND_COUNT || want == r->out->kind;
}

static bool tells_request(const struct hb_log *log)
{
    for (int kind = 0; kind < HB_LOG_KIND_COUNT; kind++)
        if (hb_log_seen(log, (enum hb_log_kind)kind) &&
            hb_log_fact(log, (enum hb_log_kind)kind, HB_FACT_ASKED) >= 0)
            return true;
    return false;
}

static const char refused_alone[] =
    "the log tells the request that failed, not what stood beside it";

bool hb_measured_read(struct hb_arena *arena, const struct hb_log *log, enum hb_measured_kind want,
                      struct hb_measured *out_measured, const char **out_reason)
{
    struct reading r = {arena, log, out_measured};
    *out_reason = want == HB_MEASURED_KIND_COUNT
                      ? "the log has no figure that a prediction can be compared with"
                      : "the log has no figure of the kind asked for";
    if (want == HB_MEASURED_KIND_COUNT && tells_request(log))
        *out_reason = refused_alone;
    if (hb_log_seen(log, HB_LOG_GATHER) && has_failed(log)) {
        *out_reason = "the failure is of gathering an array over all processes while the state is "
                      "loaded, not of the step";
        return false;
    }
    for (size_t i = 0; i < sizeof origins / sizeof origins[0]; i++) {
        if (!try_origin(&r, &origins[i], want))
            continue;
        if (origins[i].kind == HB_LOG_ANALYSIS && out_measured->peak_bytes == 0) {
            *out_reason = "all figures of memory_analysis() are zero: this backend tells none";
            continue;
        }
        if (out_measured->peak_bytes >= 0) {
            out_measured->fits = find_fits(log);
            add_rounding(&r);
            return true;
        }
        *out_reason = refused_alone;
    }
    return false;
}

#define HB_ENUM(name, key) key,
static const char *const kind_keys[] = {HB_MEASURED_KINDS(HB_ENUM)};
#undef HB_ENUM

const char *hb_measured_kind_key(enum hb_measured_kind kind)
{
    return kind_keys[kind];
}
