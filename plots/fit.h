/* The fit map: for each cell of a sweep whether it fits, with its peak, the line between what fits
 * and what does not, and the best cell. One panel a facet.
 * JSON, as `sweep --json` writes it:
 *   {"name": text, "budget_bytes": bytes,
 *    "x": {"key": "batch.global", "values": [8, 16, ...]}, "y": {...},   numbers or texts
 *    "facets": ["remat.policy=full", ...],                               optional
 *    "cells": [{"x": 8, "y": 2048, "facet": 0, "peak_bytes": bytes, "fits": bool,
 *               "low_bytes": bytes, "high_bytes": bytes of its interval, optional,
 *               "budget_bytes": bytes where it is not that of the map,
 *               "step_seconds": s, "tokens_per_second": r, "error": text}, ...],  in any order;
 *               x and y are values of the axes; a cell may be missing, or have an error instead
 *    "best": {"x": 16, "y": 8192, "facet": 0},                           null: nothing fits
 *    "best_of_each": [{...}, ...],       of each question (hb_sweep_is_question), optional
 *    "own": {...}}                       the input as it stands; null or absent: not in the grid */
#ifndef HB_PLOTS_FIT_H
#define HB_PLOTS_FIT_H

#include "plots/canvas.h"

struct hb_node;
struct hb_diag;
struct hb_sweep;
struct hb_sweep_cell;

struct hb_fit_axis {
    const char *key; /* "": a map of one axis; then one value, "" */
    uint32_t count;
    const char **raw;  /* values as written */
    const char **text; /* for people: 8k, 128k */
    double *value;     /* NAN: not a number */
};

struct hb_fit_cell {
    int64_t peak_bytes; /* -1: no answer */
    int64_t low_bytes;  /* of its interval; 0, as high_bytes: not told */
    int64_t high_bytes;
    int64_t budget_bytes;     /* 0: that of the map */
    bool refused;             /* does not fit for another reason than its peak: loading */
    double step_seconds;      /* 0: not told */
    double tokens_per_second; /* 0: not told */
    const char *error;        /* null: none */
    bool best;                /* of its question: another sequence or device is another one */
    bool own;                 /* the input as it stands */
};

struct hb_fit_map {
    const char *name;
    const char *place;    /* see plots/place.h; null or "": not told, or it varies */
    int64_t budget_bytes; /* > 0 */
    struct hb_fit_axis x;
    struct hb_fit_axis y;
    uint32_t facet_count;      /* >= 1 */
    const char **facets;       /* null: one, without a name */
    struct hb_fit_cell *cells; /* [(facet * y.count + y) * x.count + x] */
    uint32_t best;             /* index into cells; HB_NONE */
};

/* Why cells cannot be: those that differ in nothing but numbers and quoted words are one. */
struct hb_fit_reason {
    const char *text; /* of the first of them */
    uint32_t first;   /* index into cells */
    uint32_t count;
};

bool hb_fit_read(struct hb_arena *arena, struct hb_diag *diag, const struct hb_node *json,
                 struct hb_fit_map *out);
/* From what was swept; the best cell of each question has most tokens a second of those that fit,
 * the map's best is that of the question that the input itself asks, or the fastest of them. own:
 * the cell of the input as it stands, or HB_NONE. */
void hb_fit_make(struct hb_arena *arena, const struct hb_sweep *sweep,
                 const struct hb_sweep_cell *cells, uint32_t own, struct hb_fit_map *out);
/* The reasons, most cells first. */
struct hb_fit_reason *hb_fit_reasons(struct hb_arena *arena, const struct hb_fit_map *m,
                                     uint32_t *out_count);
/* Index of the cell of the input as it stands; HB_NONE. */
uint32_t hb_fit_own(const struct hb_fit_map *m);
/* Whether the cell is the map's best, or the best of its question. */
bool hb_fit_is_best(const struct hb_fit_map *m, uint32_t cell);
/* Values without an order, so that "up to" says nothing and none may go without its name. */
bool hb_fit_is_words(const struct hb_fit_axis *axis);
/* A value as it is written in the input. */
void hb_fit_set_value(struct hb_arena *arena, struct hb_fit_axis *axis, uint32_t i,
                      const char *text);
const struct hb_fit_cell *hb_fit_cell(const struct hb_fit_map *m, uint32_t facet, uint32_t y,
                                      uint32_t x);
int64_t hb_fit_budget(const struct hb_fit_map *m, const struct hb_fit_cell *cell);
bool hb_fit_fits(const struct hb_fit_map *m, const struct hb_fit_cell *cell);
/* The budget lies within its interval. */
bool hb_fit_tight(const struct hb_fit_map *m, const struct hb_fit_cell *cell);
/* "16 x 8k", "16" where there is one axis. */
const char *hb_fit_place(struct hb_arena *arena, const struct hb_fit_map *m, uint32_t y,
                         uint32_t x);
/* "fits up to 16 x 8k; 32 x 8k lacks 11.3 GiB", for one facet; of axes of words "3 of 12 fit". */
const char *hb_fit_finding(struct hb_arena *arena, const struct hb_fit_map *m, uint32_t facet);
/* "fits up to 16 x 8k" alone. */
const char *hb_fit_reach(struct hb_arena *arena, const struct hb_fit_map *m, uint32_t facet);
/* The facet in which most fits (of equals that of the best cell): the one that titles speak of. */
uint32_t hb_fit_main_facet(const struct hb_fit_map *m);
void hb_fit_draw(struct hb_canvas *c, const struct hb_fit_map *m);

#endif
