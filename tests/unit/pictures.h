/* Random pictures for the tests of plots, and the checks that hold for every picture. Include it
 * after tests/unit/unit.h. */
#ifndef HB_TESTS_PICTURES_H
#define HB_TESTS_PICTURES_H

#include <math.h>

#include "base/rng.h"
#include "plots/picture.h"

static const char *const picture_words[] = {"llama3-8b",
                                            "blocks.mlp.gate, saved for backward",
                                            "x",
                                            "remat.policy=full",
                                            "\xC3\x9Clauf \xE2\x89\xA4 4",
                                            "a name that is a good deal longer than there is room",
                                            ""};

static inline const char *picture_word(struct hb_rng *rng)
{
    return picture_words[hb_rng_range(rng, 0, 6)];
}

static inline double picture_real(struct hb_rng *rng, double low, double high)
{
    return low + (high - low) * (double)hb_rng_range(rng, 0, 1000000) / 1e6;
}

static inline int64_t picture_bytes(struct hb_rng *rng)
{
    int bits = (int)hb_rng_range(rng, 0, 41);
    return hb_rng_range(rng, 0, INT64_C(1) << bits);
}

static inline void picture_curves(struct hb_arena *a, struct hb_rng *rng, struct hb_outcome *o)
{
    static const char *const names[] = {"forward", "loss", "backward", "optimizer"};
    uint32_t n = (uint32_t)hb_rng_range(rng, 1, 300);
    o->sample_count = n;
    o->seconds = hb_arena_alloc(a, n, sizeof *o->seconds);
    for (uint32_t i = 1; i < n; i++)
        o->seconds[i] = o->seconds[i - 1] + picture_real(rng, 0, 0.01);
    o->step_seconds = o->seconds[n - 1] + picture_real(rng, 0, 0.01);
    for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
        if (hb_rng_range(rng, 0, 2) == 0)
            continue;
        o->category_curve[c] = hb_arena_alloc(a, n, sizeof(int64_t));
        int64_t base = picture_bytes(rng);
        for (uint32_t i = 0; i < n; i++)
            o->category_curve[c][i] = hb_rng_range(rng, 0, base);
    }
    o->phase_count = (uint32_t)hb_rng_range(rng, 0, 4);
    o->phases = hb_arena_alloc(a, 4, sizeof *o->phases);
    for (uint32_t i = 0; i < o->phase_count; i++)
        o->phases[i] = (struct hb_shown_span){names[i], o->step_seconds * i / o->phase_count,
                                              o->step_seconds * (i + 1) / o->phase_count};
}

static inline void picture_streams(struct hb_arena *a, struct hb_rng *rng, struct hb_outcome *o)
{
    static const char *const names[] = {"compute", "fsdp", "device-to-host", "host-to-device"};
    o->stream_count = (uint32_t)hb_rng_range(rng, 0, 4);
    o->streams = hb_arena_alloc(a, 4, sizeof *o->streams);
    for (uint32_t i = 0; i < o->stream_count; i++) {
        struct hb_shown_stream *s = &o->streams[i];
        s->name = names[i];
        s->span_count = (uint32_t)hb_rng_range(rng, 0, 50);
        s->spans = hb_arena_alloc(a, s->span_count, sizeof *s->spans);
        for (uint32_t k = 0; k < s->span_count; k++) {
            double at = o->step_seconds * k / s->span_count;
            s->spans[k] = (struct hb_shown_span){
                "matmul", at, at + picture_real(rng, 0, o->step_seconds / s->span_count)};
        }
    }
}

static inline void picture_heap(struct hb_arena *a, struct hb_rng *rng, struct hb_outcome *o)
{
    o->buffer_count = (uint32_t)hb_rng_range(rng, 1, 60);
    o->buffers = hb_arena_alloc(a, o->buffer_count, sizeof *o->buffers);
    o->heap_bytes = 0;
    for (uint32_t i = 0; i < o->buffer_count; i++) { /* one above the other: never overlapping */
        struct hb_shown_buffer *b = &o->buffers[i];
        b->name = picture_word(rng);
        b->why = picture_word(rng);
        b->category = (enum hb_category)hb_rng_range(rng, 0, HB_CATEGORY_COUNT - 1);
        b->offset_bytes = o->heap_bytes;
        b->bytes = picture_bytes(rng) / 64;
        b->start_op = hb_rng_range(rng, 0, 500);
        b->end_op = b->start_op + hb_rng_range(rng, 0, 500);
        o->heap_bytes += b->bytes;
    }
}

static inline struct hb_outcome picture_outcome(struct hb_arena *a, struct hb_rng *rng)
{
    struct hb_outcome o = {.name = picture_word(rng), .peak_at = "backward, dW"};
    for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
        o.category_bytes[c] = hb_rng_range(rng, 0, 2) ? picture_bytes(rng) : 0;
        o.peak_bytes += o.category_bytes[c];
    }
    o.budget_bytes = hb_rng_range(rng, 0, 3) ? picture_bytes(rng) : 0;
    o.fits = o.budget_bytes == 0 || o.peak_bytes <= o.budget_bytes;
    o.tensor_count = (uint32_t)hb_rng_range(rng, 0, 9);
    o.tensors = hb_arena_alloc(a, 9, sizeof *o.tensors);
    for (uint32_t i = 0; i < o.tensor_count; i++)
        o.tensors[i] = (struct hb_shown_tensor){
            picture_word(rng), "because <it> is \"needed\" & kept",
            (enum hb_category)hb_rng_range(rng, 0, HB_CATEGORY_COUNT - 1), picture_bytes(rng)};
    picture_curves(a, rng, &o);
    picture_streams(a, rng, &o);
    picture_heap(a, rng, &o);
    o.load_count = (uint32_t)hb_rng_range(rng, 1, 9);
    o.loads = hb_arena_alloc(a, 9, sizeof *o.loads);
    for (uint32_t i = 0; i < o.load_count; i++)
        o.loads[i] =
            (struct hb_shown_load){INT64_C(1) << i, picture_bytes(rng), picture_bytes(rng) - 1};
    return o;
}

static inline struct hb_fit_axis picture_axis(struct hb_arena *a, struct hb_rng *rng,
                                              const char *key)
{
    struct hb_fit_axis axis = {.key = key};
    char text[HB_TICK_TEXT];
    bool words = hb_rng_range(rng, 0, 4) == 0;
    bool doubling = hb_rng_range(rng, 0, 1);
    axis.count = (uint32_t)hb_rng_range(rng, 1, doubling ? 9 : 40);
    axis.raw = hb_arena_alloc(a, axis.count, sizeof *axis.raw);
    axis.text = hb_arena_alloc(a, axis.count, sizeof *axis.text);
    axis.value = hb_arena_alloc(a, axis.count, sizeof *axis.value);
    for (uint32_t i = 0; i < axis.count; i++) {
        axis.value[i] = words ? (double)NAN : doubling ? 512.0 * (1 << i) : 96.0 * (i + 1);
        axis.text[i] =
            words ? picture_word(rng) : hb_arena_strdup(a, hb_human_print(axis.value[i], text));
        axis.raw[i] = axis.text[i];
    }
    return axis;
}

static inline struct hb_fit_map picture_map(struct hb_arena *a, struct hb_rng *rng)
{
    static const char *facets[] = {"remat.policy=none", "remat.policy=full", "c", "d"};
    struct hb_fit_map m = {.name = picture_word(rng), .best = HB_NONE};
    m.budget_bytes = picture_bytes(rng) + 1;
    m.x = picture_axis(a, rng, "batch.global");
    m.y = picture_axis(a, rng, "batch.seq");
    m.facet_count = (uint32_t)hb_rng_range(rng, 1, 4);
    m.facets = m.facet_count > 1 ? facets : NULL;
    uint32_t count = m.x.count * m.y.count * m.facet_count;
    m.cells = hb_arena_alloc(a, count, sizeof *m.cells);
    for (uint32_t i = 0; i < count; i++) {
        bool answered = hb_rng_range(rng, 0, 9) > 0;
        m.cells[i].peak_bytes =
            answered ? (int64_t)((double)m.budget_bytes * picture_real(rng, 0, 4)) : -1;
        if (hb_fit_fits(&m, &m.cells[i]) && hb_rng_range(rng, 0, 9) == 0)
            m.best = i;
        if (!answered && hb_rng_range(rng, 0, 1))
            m.cells[i].error = "batch.global: 9 sequences cannot be split";
        m.cells[i].best = hb_fit_fits(&m, &m.cells[i]) && hb_rng_range(rng, 0, 19) == 0;
    }
    if (hb_rng_range(rng, 0, 1))
        m.cells[hb_rng_range(rng, 0, (int64_t)count - 1)].own = true;
    return m;
}

static inline struct hb_pareto picture_pareto(struct hb_arena *a, struct hb_rng *rng)
{
    struct hb_pareto p = {.name = picture_word(rng), .plan = HB_NONE};
    p.count = (uint32_t)hb_rng_range(rng, 1, 120);
    p.budget_bytes = hb_rng_range(rng, 0, 3) ? picture_bytes(rng) : 0;
    p.points = hb_arena_alloc(a, p.count, sizeof *p.points);
    for (uint32_t i = 0; i < p.count; i++)
        p.points[i] = (struct hb_pareto_point){
            picture_word(rng), picture_bytes(rng), picture_real(rng, 1e-6, 10),
            hb_rng_range(rng, 0, 9) ? HB_RANK_OTHER : HB_RANK_RUNNER_UP};
    if (hb_rng_range(rng, 0, 3)) {
        p.plan = (uint32_t)hb_rng_range(rng, 0, p.count - 1);
        p.points[p.plan].rank = HB_RANK_PLAN;
    }
    return p;
}

static inline struct hb_scatter picture_scatter(struct hb_arena *a, struct hb_rng *rng)
{
    static const char *groups[] = {"llama3", "gemma2", "mixtral", "gpt-oss", "a",
                                   "b",      "c",      "d",       "e"};
    struct hb_scatter s = {.groups = groups, .failed = (uint32_t)hb_rng_range(rng, 0, 3)};
    s.group_count = (uint32_t)hb_rng_range(rng, 1, 9);
    s.count = (uint32_t)hb_rng_range(rng, 1, 200);
    s.cases = hb_arena_alloc(a, s.count, sizeof *s.cases);
    for (uint32_t i = 0; i < s.count; i++) {
        int64_t measured = picture_bytes(rng) + 1000;
        bool wild = hb_rng_range(rng, 0, 40) == 0;
        double error = wild ? picture_real(rng, -0.9, 3) : picture_real(rng, -0.1, 0.1);
        int64_t predicted = (int64_t)((double)measured * (1 + error));
        s.cases[i] = (struct hb_scatter_case){
            picture_word(rng), (uint32_t)hb_rng_range(rng, 0, s.group_count - 1), measured,
            predicted, 100 * ((double)predicted / (double)measured - 1)};
    }
    return s;
}

static inline struct hb_tornado picture_tornado(struct hb_arena *a, struct hb_rng *rng)
{
    struct hb_tornado t = {.name = picture_word(rng), .peak_bytes = picture_bytes(rng)};
    t.budget_bytes = hb_rng_range(rng, 0, 1) ? picture_bytes(rng) : 0;
    t.step_seconds = hb_rng_range(rng, 0, 1) ? picture_real(rng, 1e-3, 5) : 0;
    t.count = (uint32_t)hb_rng_range(rng, 1, 30);
    t.levers = hb_arena_alloc(a, t.count, sizeof *t.levers);
    for (uint32_t i = 0; i < t.count; i++)
        t.levers[i] =
            (struct hb_lever){picture_word(rng), "why",
                              hb_rng_range(rng, 0, 3) ? picture_bytes(rng) : -picture_bytes(rng),
                              picture_real(rng, -0.2, 1), hb_rng_range(rng, 0, 4) == 0};
    return t;
}

static inline struct hb_curve picture_curve(struct hb_rng *rng)
{
    struct hb_curve c = {.count = (int)hb_rng_range(rng, 0, HB_CURVE_POINTS)};
    double x = picture_real(rng, 1, 1e6);
    for (int i = 0; i < c.count; i++) {
        c.x[i] = x;
        c.y[i] = picture_real(rng, 0.01, 1.2);
        x *= picture_real(rng, 1.1, 8);
    }
    return c;
}

static inline const struct hb_device *picture_device(struct hb_arena *a, struct hb_rng *rng)
{
    struct hb_device *d = hb_arena_alloc(a, 1, sizeof *d);
    hb_device_init(a, d);
    d->name = d->title = picture_word(rng);
    for (int i = 0; i < HB_RATE_COUNT; i++) {
        d->peak_flops[i] = hb_rng_range(rng, 0, 1) ? picture_real(rng, 1e9, 1e16) : 0;
        d->matmul_curve[i] = picture_curve(rng);
    }
    d->attention_forward_curve = picture_curve(rng);
    d->hbm_curve = picture_curve(rng);
    d->link_curve = picture_curve(rng);
    return d;
}

static inline struct hb_picture picture_random(struct hb_arena *a, struct hb_rng *rng,
                                               enum hb_picture_kind kind)
{
    struct hb_picture p = {.kind = kind, .outcome_count = 1};
    if (kind == HB_PICTURE_BREAKDOWN)
        p.outcome_count = (uint32_t)hb_rng_range(rng, 1, 6);
    p.outcomes = hb_arena_alloc(a, p.outcome_count, sizeof *p.outcomes);
    for (uint32_t i = 0; i < p.outcome_count; i++)
        p.outcomes[i] = picture_outcome(a, rng);
    p.fit = picture_map(a, rng);
    p.pareto = picture_pareto(a, rng);
    p.scatter = picture_scatter(a, rng);
    p.tornado = picture_tornado(a, rng);
    p.device = picture_device(a, rng);
    return p;
}

#endif
