/* The search for the best configuration that fits, with its proof. Everything waits in one queue in
 * the order of what it can be at best; whatever comes out is looked at more closely and put back
 * with a better bound, or is given up:
 *
 *   node (mesh, batch, accumulation)   floor of its layers' loops           bound.h
 *     cell (chunks, stack, place)      floor of the whole step
 *       cell, with its policies        optimum of its integer program       ilp.h
 *         configuration                its own bound                        segment.h
 *           configuration              run by the engine: exact
 *
 * Bounds never exceed what they bound, so the first run configuration that comes out is the best:
 * nothing that is left can be better. Configurations whose packed peak exceeds the budget are cut
 * by the engine, and the search goes on. */
#ifndef HB_SOLVER_PLAN_H
#define HB_SOLVER_PLAN_H

#include "solver/brute.h"
#include "solver/lessons.h"

struct hb_arena;
struct hb_env;
struct hb_device;
struct hb_search_node;
struct hb_stop;

struct hb_plan_ask {
    struct hb_env *env;
    const struct hb_spec *spec;
    const struct hb_device *device;
    int64_t devices;
    enum hb_objective objective; /* DEVICES counts as TOKENS here: see hb_plan_find */
    int64_t budget_bytes;        /* of the peak; INT64_MAX: whatever it takes */
    int64_t whole_bytes;         /* the device's: the same but for a margin */
    double confidence;         /* the peak's upper end of this is within whole_bytes, too; 0: no */
    int64_t host_bytes;        /* of host memory for one device; INT64_MAX: no limit */
    struct hb_lessons lessons; /* kinds of cells that take more than predicted */
    const char *lp_stem;       /* "plan": plan-1.lp, plan-2.lp, ...; null: none are written */
    uint32_t most_alternatives;
    uint32_t most_policies;      /* of each block's menu; 0: HB_MENU_MOST */
    const struct hb_menu *menus; /* searched as they are; null: they are made */
    bool polish;          /* what the menus have not is looked for around the best (polish.h),
                           * and the gap is that to all policies (whole.h) */
    bool as_written;      /* no step is made otherwise for want of memory */
    uint32_t most_runs;   /* the engine's, before the search gives up with HB_PLAN_LIMIT; 0: none */
    uint64_t most_priced; /* the same of configurations that are priced */
    uint32_t most_effort; /* in runs of the engine (search.h), once something was found: then the
                           * best so far is the plan; 0: until nothing of the menus is better */
    double beat;          /* only a plan with a lower value is looked for; 0: any */
    struct hb_stop *stop; /* likewise, with the best so far; null: none */
    const struct hb_plan *like;  /* the same question with at most this budget, answered: its space,
                                  * policies and plan are taken over; or null */
    bool keep_runs;              /* for the certificate: all that was run (hb_plan.ran) */
    bool near;                   /* with like: only the mesh, batch and accumulation of its plan */
    bool value_only;             /* how far its plan is from the whole space is not asked */
    const struct hb_plan *other; /* the same space under other policies, or for another objective,
                                  * answered: its floors, which hold of every policy, are taken
                                  * over; or null */
    const struct hb_plan *above; /* with like: the same again with at least this budget, answered:
                                  * what it excluded stays excluded; or null */
};

/* OPTIMAL: nothing of the space is better. BEST: nothing of the menus' policies is or, where cells
 * are left (counts.left), nothing that was looked at; no other is better by more than the gap.
 * LIMIT: the search was cut off; where something was found by then, nothing of the space is better
 * by more than the gap. */
enum hb_plan_status { HB_PLAN_OPTIMAL, HB_PLAN_BEST, HB_PLAN_INFEASIBLE, HB_PLAN_LIMIT };

/* A configuration that the engine has run. */
struct hb_candidate {
    uint32_t cell;
    const struct hb_run *runs;
    uint32_t run_count;
    int64_t step_ns;
    int64_t peak_bytes; /* packed */
    int64_t live_bytes; /* by the fast path; 0 where there is none */
    int64_t bound_ns;
    double value; /* of the objective: less is better */
};

/* A run of the engine, whether or not it fits. */
struct hb_ran {
    uint32_t cell;
    uint32_t part_count;
    struct hb_ran_part {
        uint32_t block;
        int32_t steps;
        struct hb_remat remat;
    } * parts;
    bool fits;
    int64_t step_ns; /* where it fits */
    int64_t peak_bytes;
    int64_t limit_bytes; /* of its peak */
    int64_t high_bytes; /* its interval's upper end, no more than all of the budget; 0: not asked */
    int64_t host_bytes;
};

/* How a cell was disposed of: the certificate has a row for each. */
enum hb_cell_fate {
    HB_FATE_NODE_BOUND,  /* the floor of its node is above the plan */
    HB_FATE_CELL_BOUND,  /* its own floor is */
    HB_FATE_LAYER_BOUND, /* the layers' part of what could fit is */
    HB_FATE_ILP_BOUND,   /* the optimum of its integer program is */
    HB_FATE_ILP_EMPTY,   /* its integer program has no solution */
    HB_FATE_MEMORY,      /* what is there whatever the policy exceeds what a peak may be */
    HB_FATE_STEP,        /* of compiler torch, a configuration: its step takes longer */
    HB_FATE_RANK_FLOOR,  /* of compiler torch: what a rank takes at least exceeds the budget */
    HB_FATE_SEARCHED,    /* all its configurations below the plan were run, none is better */
    HB_FATE_REFUSED      /* sizes beyond the range */
};

struct hb_cell_row {
    enum hb_cell_fate fate;
    double value;  /* no configuration of the cell is below */
    uint32_t runs; /* configurations that the engine ran */
    bool proven;   /* of an integer program: by branches of linear ones, not by GLPK's word */
};

struct hb_plan_counts {
    double raw; /* configurations of the space */
    uint32_t cells;
    uint32_t nodes;
    uint32_t node_floors;
    uint32_t cell_floors;
    uint32_t layer_bounds;
    uint32_t segments; /* cells whose policies were summed up */
    uint32_t ilps, ilps_proven;
    uint64_t priced; /* configurations priced one by one */
    uint32_t runs;   /* by the engine */
    uint32_t cuts;   /* of these, above the budget once packed */
    uint32_t policies_tried;
    uint32_t lps; /* linear programs over all policies (relax.h), and the largest */
    uint32_t lp_rows;
    uint32_t lp_columns;
    uint32_t polished;    /* cells whose best was searched around */
    uint32_t polish_runs; /* by the engine, for that */
    uint64_t dived;       /* configurations priced to begin with something that fits (dive.h) ... */
    uint64_t turned;      /* ... and around what was found (polish.h) */
    uint32_t odd;         /* splits that the engine found to be other than their sums: then
                           * nothing is called optimal by those */
    uint32_t left;        /* cells that may be better by their bounds and were not searched; where
                           * nothing was found, those that may have a plan by their bounds (then
                           * the status is HB_PLAN_LIMIT, though the search came to its end) */
};

/* What peaks of a kind of steps (interval.h) must not exceed, as far as was asked. */
enum { HB_PLAN_KINDS = 16 };
struct hb_plan_limits {
    uint32_t kinds[HB_PLAN_KINDS];
    int64_t bytes[HB_PLAN_KINDS];
    uint32_t count;
};

struct hb_plan {
    enum hb_plan_status status;
    double gap; /* by how much of its value the plan may be above the best of the whole space */
    struct hb_plan_space space;
    const struct hb_menu *menus;    /* those that were searched, and then what polish.h found */
    const struct hb_menu *searched; /* those that were searched */
    struct hb_candidate best;       /* where a plan was found */
    bool found;
    struct hb_candidate *alternatives;
    uint32_t alternative_count;
    struct hb_cell_row *rows; /* by cell */
    int64_t *relax_ns;        /* by cell: no policy at all is below; 0: not looked at */
    struct hb_ran *ran;       /* with ask.keep_runs */
    uint32_t ran_count, ran_cap;
    bool settled;                       /* for the best that was run: cells may be left */
    const struct hb_search_node *nodes; /* for ask.like and ask.above */
    uint32_t node_count;
    struct hb_plan_limits *limits; /* see hb_search_peak_bytes */
    const int64_t *cell_ns;        /* of compiler torch: the step of each cell */
    struct hb_plan_counts counts;
    double seconds;
};

/* What a file asks for: its own devices, objective and budget, a few alternatives. */
void hb_plan_ask_make(struct hb_env *env, const struct hb_spec *spec,
                      const struct hb_device *device, struct hb_plan_ask *out);
/* Searches. False: the space has no cell at all (an error says so). */
bool hb_plan_find(struct hb_arena *arena, const struct hb_plan_ask *ask, struct hb_plan *out);
/* The plan again by pricing and running every configuration: for spaces of at most `most`. False:
 * the space is larger. */
bool hb_plan_exhaust(struct hb_arena *arena, const struct hb_plan_ask *ask,
                     const struct hb_plan *plan, double most, struct hb_candidate *out_best,
                     bool *out_found);
/* A candidate as a whole configuration, of which the step is what `simulate` says: XLA:GPU makes
 * values between spread products again for what waits on the host, too, and a search within its
 * share prices steps as if it did not. */
void hb_plan_spec(struct hb_arena *arena, const struct hb_plan *plan,
                  const struct hb_candidate *candidate, struct hb_spec *out);

const char *hb_plan_status_name(enum hb_plan_status status);
const char *hb_cell_fate_name(enum hb_cell_fate fate);

#endif
