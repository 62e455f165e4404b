/* Plans for people and programs. */
#ifndef HB_CLI_SHOW_PLAN_H
#define HB_CLI_SHOW_PLAN_H

#include <stdio.h>

#include "base/json_write.h"
#include "plots/pareto.h"
#include "sim/engine/result.h"
#include "solver/margin.h"
#include "solver/nearly.h"

struct hb_env;
struct hb_node;
struct hb_verified;

/* What was asked and found; pointers that do not apply are null. */
struct hb_plan_answer {
    const struct hb_plan_ask *ask;
    const struct hb_plan *plan;
    struct hb_margin margin;
    const struct hb_candidate *bare;    /* the best without the margin; null: none, not asked */
    struct hb_nearly nearly;            /* faster, and refused for memory */
    struct hb_roomier roomier;          /* hardly worse, with more room ... */
    bool takes_room;                    /* ... and what is printed as the plan (plan.prefer) */
    const struct hb_spec *spec;         /* of the plan, or of the smallest configuration */
    const struct hb_result *result;     /* the engine's, of spec */
    const struct hb_plan *smallest;     /* where nothing fits: the search for the least memory */
    int64_t least_devices;              /* where nothing fits: how many would do; 0: not found */
    bool exhaust_ran;                   /* --exhaustive ... */
    bool exhaust_agrees;                /* ... finds what the search of the same menus does */
    const struct hb_verified *verified; /* --verify: the compiler's word (plan_verify.h) */
    const struct hb_spec *asked;        /* the input: ask->spec is what a program makes of it */
    const struct hb_node *written;      /* the input before its defaults */
    const char *advice;                 /* the change outside the space that frees most; null */
    const char *faster; /* ... that makes the plan's step half as long at least; null: none */
    /* What 1, 2, 4 ... GiB more would buy: values of the objective; 0: not asked. */
    struct hb_price_row {
        int64_t more_bytes;
        int64_t step_ns;
    } prices[3];
    uint32_t price_count;
    bool near; /* prices and the margin's: of the plan's own mesh, batch and accumulation alone */
};

/* Looks for a plan with more room, and takes it where that is preferred. a: with what was asked and
 * found, and the margin. */
void hb_show_choose(struct hb_env *env, struct hb_plan_answer *a);
/* What is printed as the plan, and whose menus it is of. */
const struct hb_plan *hb_show_chosen_plan(const struct hb_plan_answer *a);
const struct hb_candidate *hb_show_chosen(const struct hb_plan_answer *a);
/* "fsdp 8, 2 microbatches, nested, 8 chunks: keeps q, k, v". */
const char *hb_show_plan_name(const struct hb_env *env, const struct hb_plan *plan,
                              const struct hb_candidate *candidate);
void hb_show_plan_text(const struct hb_env *env, FILE *out, const struct hb_plan_answer *a);
/* points: null, or what hb_pareto has beside the plan and its alternatives. */
void hb_show_plan_json(struct hb_env *env, FILE *out, const struct hb_plan_answer *a,
                       const struct hb_pareto *points);
/* Each cell with what disposed of it. */
void hb_show_certificate(struct hb_env *env, FILE *out, const struct hb_plan_answer *a);

#endif
