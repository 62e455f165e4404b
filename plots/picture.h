/* Any picture from the JSON of a result: which kind it is, how large by default, and its bytes. */
#ifndef HB_PLOTS_PICTURE_H
#define HB_PLOTS_PICTURE_H

#include "plots/breakdown.h"
#include "plots/fit.h"
#include "plots/pareto.h"
#include "plots/rates.h"
#include "plots/scatter.h"
#include "plots/tornado.h"

struct hb_node;

#define HB_PICTURES(X)                                                                             \
    X(TIMELINE, "timeline")     /* simulate with a timeline */                                     \
    X(BREAKDOWN, "breakdown")   /* one or more simulate results */                                 \
    X(ADDRESSMAP, "addressmap") /* simulate with a heap */                                         \
    X(LOAD, "load")             /* simulate of a load: section */                                  \
    X(FIT, "fit")               /* sweep */                                                        \
    X(PARETO, "pareto")         /* plan */                                                         \
    X(TORNADO, "tornado")       /* advise */                                                       \
    X(SCATTER, "scatter")       /* validate */                                                     \
    X(RATES, "rates")           /* calibrate: a device's profile */

enum hb_picture_kind {
#define HB_ENUM(name, text) HB_PICTURE_##name,
    HB_PICTURES(HB_ENUM)
#undef HB_ENUM
        HB_PICTURE_COUNT
};

struct hb_picture_input {
    const struct hb_node *json;
    const char *name; /* its file: what it is called beside others */
};

struct hb_picture {
    enum hb_picture_kind kind;
    struct hb_outcome *outcomes; /* of the first four kinds */
    uint32_t outcome_count;      /* 1, but for a breakdown */
    struct hb_fit_map fit;
    struct hb_pareto pareto;
    struct hb_tornado tornado;
    struct hb_scatter scatter;
    const struct hb_device *device;
};

const char *hb_picture_name(enum hb_picture_kind kind);
/* kind HB_PICTURE_COUNT: the one it has by itself. */
bool hb_picture_read(struct hb_arena *arena, struct hb_diag *diag,
                     const struct hb_picture_input *inputs, uint32_t count,
                     enum hb_picture_kind kind, struct hb_picture *out);
/* Sets width and height where they are 0. */
void hb_picture_size(const struct hb_picture *p, struct hb_look *look);
/* The finding that its title states. */
const char *hb_picture_title(struct hb_arena *arena, const struct hb_picture *p);
/* Draws; the canvas is finished by the caller. */
struct hb_canvas *hb_picture_draw(struct hb_arena *arena, const struct hb_picture *p,
                                  const struct hb_look *look, enum hb_format format);

#endif
