/* Kinds of pictures and the JSON that they are made from: see picture.h. */
#include "plots/picture.h"

#include <math.h>

#include "base/arena.h"
#include "base/node.h"
#include "base/str.h"
#include "plots/addressmap.h"
#include "plots/loadview.h"
#include "plots/stepview.h"

static const char *const kind_names[] = {
#define HB_ENUM(name, text) text,
    HB_PICTURES(HB_ENUM)
#undef HB_ENUM
};

const char *hb_picture_name(enum hb_picture_kind kind)
{
    return kind_names[kind];
}

/* The first key that a result has decides. */
static const struct {
    const char *key;
    const char *inside; /* within that key's object; null: the key alone */
    enum hb_picture_kind kind;
} signs[] = {
    {"hbmsim_device", NULL, HB_PICTURE_RATES},    {"cells", NULL, HB_PICTURE_FIT},
    {"cases", NULL, HB_PICTURE_SCATTER},          {"levers", NULL, HB_PICTURE_TORNADO},
    {"alternatives", NULL, HB_PICTURE_PARETO},    {"points", NULL, HB_PICTURE_PARETO},
    {"timeline", "seconds", HB_PICTURE_TIMELINE}, {"load", "by_processes", HB_PICTURE_LOAD},
    {"heap", "buffers", HB_PICTURE_ADDRESSMAP},   {"peak_bytes", NULL, HB_PICTURE_BREAKDOWN},
};

/* The picture that JSON of this form has by itself; HB_PICTURE_COUNT: no result known here. */
static enum hb_picture_kind guess_kind(const struct hb_picture_input *inputs, uint32_t count)
{
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        const struct hb_node *node = hb_node_find(inputs[0].json, signs[i].key);
        if (node && (!signs[i].inside || hb_node_find(node, signs[i].inside)))
            return count > 1 && hb_node_find(inputs[0].json, "peak_bytes") ? HB_PICTURE_BREAKDOWN
                                                                           : signs[i].kind;
    }
    return HB_PICTURE_COUNT;
}

static bool lacks(struct hb_diag *diag, const struct hb_node *json, const char *kind,
                  const char *key)
{
    return hb_error(diag, json->loc, "no %s in this result: a picture '%s' needs it", key, kind);
}

static bool read_outcomes(struct hb_arena *arena, struct hb_diag *diag,
                          const struct hb_picture_input *inputs, struct hb_picture *p)
{
    bool ok = true;
    p->outcomes = hb_arena_alloc(arena, p->outcome_count, sizeof *p->outcomes);
    for (uint32_t i = 0; i < p->outcome_count; i++) {
        ok = hb_outcome_read(arena, diag, inputs[i].json, &p->outcomes[i]) && ok;
        if (p->outcome_count > 1) /* one model, several times: the files tell them apart */
            p->outcomes[i].name = inputs[i].name;
    }
    if (!ok)
        return false;
    const char *kind = hb_picture_name(p->kind);
    if (p->kind == HB_PICTURE_TIMELINE && p->outcomes[0].sample_count == 0)
        return lacks(diag, inputs[0].json, kind, "timeline.seconds");
    if (p->kind == HB_PICTURE_ADDRESSMAP && p->outcomes[0].buffer_count == 0)
        return lacks(diag, inputs[0].json, kind, "heap.buffers");
    if (p->kind == HB_PICTURE_LOAD && p->outcomes[0].load_count == 0)
        return lacks(diag, inputs[0].json, kind, "load.by_processes");
    return true;
}

bool hb_picture_read(struct hb_arena *arena, struct hb_diag *diag,
                     const struct hb_picture_input *inputs, uint32_t count,
                     enum hb_picture_kind kind, struct hb_picture *out)
{
    *out = (struct hb_picture){.kind = kind, .outcome_count = count};
    if (kind == HB_PICTURE_COUNT)
        out->kind = guess_kind(inputs, count);
    if (out->kind == HB_PICTURE_COUNT)
        return hb_error(
            diag, inputs[0].json->loc,
            "this JSON is no result of simulate, sweep, plan, advise, validate, hlo or calibrate");
    if (count > 1 && out->kind != HB_PICTURE_BREAKDOWN)
        return hb_error(diag, inputs[1].json->loc,
                        "a picture '%s' is drawn from one result, not %u",
                        hb_picture_name(out->kind), count);
    switch (out->kind) {
    case HB_PICTURE_FIT:
        return hb_fit_read(arena, diag, inputs[0].json, &out->fit);
    case HB_PICTURE_PARETO:
        return hb_pareto_read(arena, diag, inputs[0].json, &out->pareto);
    case HB_PICTURE_TORNADO:
        return hb_tornado_read(arena, diag, inputs[0].json, &out->tornado);
    case HB_PICTURE_SCATTER:
        return hb_scatter_read(arena, diag, inputs[0].json, &out->scatter);
    case HB_PICTURE_RATES: {
        struct hb_device *device = hb_arena_alloc(arena, 1, sizeof *device);
        out->device = device;
        return hb_rates_read(arena, diag, inputs[0].json, device);
    }
    case HB_PICTURE_TIMELINE:
    case HB_PICTURE_BREAKDOWN:
    case HB_PICTURE_ADDRESSMAP:
    case HB_PICTURE_LOAD:
    case HB_PICTURE_COUNT:
        break;
    }
    return read_outcomes(arena, diag, inputs, out);
}

enum { USUAL_WIDTH = 960, USUAL_HEIGHT = 560, MOST_ROWS = 40 };

void hb_picture_size(const struct hb_picture *p, struct hb_look *look)
{
    double height = USUAL_HEIGHT;
    uint32_t rows = p->kind == HB_PICTURE_TORNADO ? p->tornado.count : p->outcome_count;
    rows = rows < MOST_ROWS ? rows : MOST_ROWS;
    if (p->kind == HB_PICTURE_BREAKDOWN)
        height = 145 + 72.0 * rows;
    if (p->kind == HB_PICTURE_TORNADO)
        height = 150 + 26.0 * rows;
    if (p->kind == HB_PICTURE_FIT && p->fit.facet_count == 1)
        height = fmin(height, 240 + 52.0 * p->fit.y.count);
    if (look->width <= 0)
        look->width = USUAL_WIDTH;
    if (look->height <= 0)
        look->height = height;
}

const char *hb_picture_title(struct hb_arena *arena, const struct hb_picture *p)
{
    switch (p->kind) {
    case HB_PICTURE_TIMELINE:
        return hb_stepview_title(arena, p->outcomes);
    case HB_PICTURE_BREAKDOWN:
        return hb_breakdown_title(arena, p->outcomes, p->outcome_count);
    case HB_PICTURE_ADDRESSMAP:
        return hb_addressmap_title(arena, p->outcomes);
    case HB_PICTURE_LOAD:
        return hb_loadview_title(arena, p->outcomes);
    case HB_PICTURE_FIT:
        return hb_fit_finding(arena, &p->fit, hb_fit_main_facet(&p->fit));
    case HB_PICTURE_PARETO:
        return hb_pareto_title(arena, &p->pareto);
    case HB_PICTURE_TORNADO:
        return hb_tornado_title(arena, &p->tornado);
    case HB_PICTURE_SCATTER:
        return hb_scatter_title(arena, &p->scatter);
    case HB_PICTURE_RATES:
        return hb_rates_title(arena, p->device);
    case HB_PICTURE_COUNT:
        break;
    }
    return "";
}

struct hb_canvas *hb_picture_draw(struct hb_arena *arena, const struct hb_picture *p,
                                  const struct hb_look *look, enum hb_format format)
{
    struct hb_canvas *c = hb_canvas_new(arena, look, format, hb_picture_title(arena, p));
    switch (p->kind) {
    case HB_PICTURE_TIMELINE:
        hb_stepview_draw(c, p->outcomes);
        break;
    case HB_PICTURE_BREAKDOWN:
        hb_breakdown_draw(c, p->outcomes, p->outcome_count);
        break;
    case HB_PICTURE_ADDRESSMAP:
        hb_addressmap_draw(c, p->outcomes);
        break;
    case HB_PICTURE_LOAD:
        hb_loadview_draw(c, p->outcomes);
        break;
    case HB_PICTURE_FIT:
        hb_fit_draw(c, &p->fit);
        break;
    case HB_PICTURE_PARETO:
        hb_pareto_draw(c, &p->pareto);
        break;
    case HB_PICTURE_TORNADO:
        hb_tornado_draw(c, &p->tornado);
        break;
    case HB_PICTURE_SCATTER:
        hb_scatter_draw(c, &p->scatter);
        break;
    case HB_PICTURE_RATES:
        hb_rates_draw(c, p->device);
        break;
    case HB_PICTURE_COUNT:
        break;
    }
    return c;
}
