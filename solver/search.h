/* What the parts of the search share: private to the files of the search; the way in is
 * plan.h. */
#ifndef HB_SOLVER_SEARCH_H
#define HB_SOLVER_SEARCH_H

#include "base/arena.h"
#include "sim/engine/run.h"
#include "solver/bound.h"
#include "solver/plan.h"
#include "base/queue.h"
#include "solver/stop.h"

/* Of the scans of a node with so many chunks and the optimizer there. */
struct hb_node_floor {
    int64_t loss_chunks;
    enum hb_form form;
    enum hb_place place;
    struct hb_floor floor;
    bool refused; /* sizes beyond the range */
};

/* Of a node's nested scans in so many outer steps: nothing of them may fit in most_bytes and be
 * below what was the best then. */
struct hb_nested_out {
    int64_t outer;
    int64_t most_bytes; /* 0: not looked at */
    bool out;
};

/* See nodes.h. */
enum hb_node_stage { HB_STAGE_TIMES, HB_STAGE_FLOOR, HB_STAGE_FITS, HB_STAGE_OPEN };

/* Cells that stand together: they differ in chunks, form and place only. */
struct hb_search_node {
    uint32_t first;
    uint32_t end;
    struct hb_node_floor *floors; /* those that were asked for; whatever the policies and budget */
    uint32_t floor_count, floor_cap;
    struct hb_nested_out *nested;
    uint32_t nested_count, nested_cap;
    struct hb_floor floor; /* of its leanest cell: bound_ns is its layers' loops on the busiest
                              stream; only state_bytes is known where it was not measured */
    int64_t waits_ns;      /* of its leanest scan: compute waits; where the dive looked (dive.h) */
    bool measured;         /* else its bytes are those of another node of its mesh */
    bool alike;            /* its bytes are, and its times follow from that node (hb_bound_alike) */
    bool timed;            /* else its times are not known: it takes more than the budget */
    bool forward;          /* else of its times only those of hb_bound_backward */
    bool refused;          /* sizes beyond the range */
    int64_t floor_ns;      /* the layers' path at least */
    bool relaxed;          /* relax_ns is known */
    int64_t relax_ns;      /* its scans take no less, whatever their policies (whole.h) */
    int64_t layers_ns;     /* the same of what could fit, where they are scanned */
    int64_t turns_ns[HB_PLACE_COUNT][2]; /* and more closely, by place, of whole logits and of
                                            chunks; 0: not looked at */
    enum hb_node_stage stage;            /* what is to be looked at next */
    double value;
    double floor_value; /* of the floor alone */
};

/* A cell whose policies are being looked at. */
struct hb_open_cell {
    uint32_t cell;
    uint32_t node;
    enum hb_share share; /* of what its configurations are priced as */
    double bound;
    int64_t ends_ns; /* of its floor: what comes to the layers' time */
    uint32_t batch;
    int64_t after_value; /* of the last configuration that was taken out */
    uint64_t after_place;
};

struct hb_choice {
    uint32_t cell;
    const struct hb_run *runs;
    uint32_t run_count;
    enum hb_share share; /* what was priced: the step as written, or beyond the compiler's share */
    enum hb_share made;  /* what was run */
    int64_t live_bytes;
    int64_t bound_ns;
    int64_t floor_bytes; /* its peak is no lower; 0: not looked at, or live_bytes says it */
    int64_t step_ns;     /* once it was run */
    int64_t peak_bytes;  /* of one that does not fit by its live bytes alone, these */
    bool fills_layers;   /* once it was run: hb_search_fills_layers */
};

enum hb_entry_kind {
    HB_ENTRY_NODE,
    HB_ENTRY_BARE, /* a cell without a floor of its own */
    HB_ENTRY_CELL,
    HB_ENTRY_SEGMENT,
    HB_ENTRY_CHOICE,
    HB_ENTRY_RUN
};

/* What was run of a cell and did not fit. */
struct hb_cuts {
    uint32_t count;
    int64_t least_bytes; /* the least live bytes of those */
};

/* Segments that were built last: a search comes back to cells, which are some at a time. */
enum { HB_KEPT_SEGMENTS = 16 };
struct hb_kept_segment {
    struct hb_arena *arena; /* its own; null: nothing was kept here */
    struct hb_arena_mark start;
    const struct hb_menu *menus; /* it was built with */
    uint32_t cell;
    enum hb_share share;
    uint64_t turn;       /* when it was asked for */
    bool built;          /* else the cell has none */
    struct hb_spec spec; /* the cell's, which the segment points to */
    struct hb_segment segment;
};

enum { HB_FULL_LAYERS = 1, HB_FULL_ENDS = 2 };

struct hb_search {
    struct hb_arena *arena;
    struct hb_arena *scratch;
    struct hb_kept_segment kept[HB_KEPT_SEGMENTS];
    uint64_t turns;
    const struct hb_plan_ask *ask;
    struct hb_plan *plan;
    struct hb_queue queue;
    struct hb_search_node *nodes;
    uint32_t node_count, node_cap;
    struct hb_open_cell *open;
    uint32_t open_count, open_cap;
    struct hb_choice *choices;
    uint32_t choice_count, choice_cap;
    const char *lp_stem;
    uint32_t lp_count;
    double incumbent; /* the best value that was run and fits: what is above is not looked for */
    bool *relaxed;    /* by cell: the plan's relax_ns is known */
    double *polished; /* by cell: the best that a search around one came to; 0: none yet */
    bool beside;      /* another cell's best than the plan's was searched around */
    double cut_short; /* the value of what was tried in short runs last (polish.h); 0: nothing */
    double carried;   /* the value of what was tried in other cells last (carry.h); 0: nothing */
    uint64_t effort;  /* spent so far, in engine runs: see hb_search_spend */
    struct hb_cuts *cuts;    /* by cell, of steps as written and of those beyond the share */
    struct hb_choice *dives; /* what the first dive found, best first */
    uint32_t dive_count;
    const struct hb_menu *dive_menus; /* that their runs are of */
    unsigned full; /* where what the last dive tried in vain had its peaks: HB_FULL_... */
    bool done;
    bool given_up;     /* more is to be run or priced than is allowed */
    bool filling;      /* the plan is there: alternatives are looked for */
    bool spreads;      /* steps beyond the compiler's share are in part made again (spread.h) */
    bool unwritten;    /* of the menus no step as it is written fits */
    bool probing;      /* only looks for the cell of the first configuration that may fit */
    uint32_t probed;   /* that cell */
    double open_value; /* where the search was cut off: of what was left of the menus, at least */
};

/* The objective of a configuration of the cell: less is better. */
double hb_search_value(const struct hb_search *s, uint32_t cell, int64_t ns, int64_t bytes);
/* Of a choice that was run. */
double hb_search_value_of(const struct hb_search *s, const struct hb_choice *c);
/* In the units of the walk (ns, or bytes): what a configuration of the cell must not exceed to be
 * as good as the incumbent. */
int64_t hb_search_ceiling(const struct hb_search *s, uint32_t cell);
/* What the predicted peaks of a cell's configurations must not exceed: the budget less what was
 * learnt of the cell's kind, and what leaves room for the upper end, whose factor policies do not
 * change. */
int64_t hb_search_peak_bytes(const struct hb_search *s, uint32_t cell);
/* Of all cells of the node the most. */
int64_t hb_search_node_peak_bytes(const struct hb_search *s, const struct hb_search_node *node);
/* For a spec of the cell; without fixed_bytes. */
struct hb_layers_ask hb_search_layers_ask(const struct hb_search *s, uint32_t cell,
                                          const struct hb_spec *cell_spec, int64_t peak_bytes);
bool hb_search_by_memory(const struct hb_search *s);
void hb_search_settle(struct hb_search *s, uint32_t cell, enum hb_cell_fate fate, double value);
void hb_search_cell_spec(const struct hb_search *s, uint32_t cell, struct hb_spec *out);
/* The same, to be priced: as written, or as it is beyond the compiler's share. */
void hb_search_priced_spec(const struct hb_search *s, uint32_t cell, enum hb_share share,
                           struct hb_spec *out);
/* Whether XLA:GPU may make some of the steps otherwise than they are written, for want of memory:
 * floors hold for either, a price for one of the two, and the engine says which one a step is. Of
 * experts' products that are spread no price holds beyond the share: there it only says what to run
 * first. */
bool hb_search_is_asked(const struct hb_search *s);
/* What cells are priced as first, and in polishing what was run. */
enum hb_share hb_search_first_share(const struct hb_search *s, enum hb_share made);
/* Whether its price is of what was run: of a step as written, or of one that is lowered otherwise
 * beyond the share, not of one that is made again there. */
bool hb_search_is_priced(const struct hb_choice *c);
/* Whether what comes near the best by its price is kept, though it is no better: a search around it
 * may find more than one around the best. Of steps that XLA:GPU makes otherwise than they are
 * priced some are run that turn out to be near. */
bool hb_search_keeps_near(const struct hb_search *s);
/* In per cent of the value: around a plan, and of what a dive has found. */
enum { HB_NEAR_PLAN = 1, HB_NEAR_DIVE = 2 };
/* The ceiling, or so much more where that is kept. */
int64_t hb_search_near(const struct hb_search *s, int64_t ceiling, int64_t percent);
/* Whether the peak is in a loop over layers: then it is no less in any number of chunks. */
bool hb_search_fills_layers(const struct hb_program *p, const struct hb_memory *memory);
/* Lowers and runs it; false: it does not fit (its time is not set then). The price of another step
 * than it is goes. */
bool hb_search_run(struct hb_search *s, struct hb_choice *c, struct hb_memory *memory,
                   int64_t *out_step_ns);
/* What is wrong with what a run took, beside what was said of it before it ran; null: nothing. Its
 * own bound, and the bounds of its cell: of any policy the floors; where it is of the menus that
 * were searched (listed) also what was found of their layers. */
const char *hb_search_fault(const struct hb_search *s, const struct hb_choice *c, bool listed);
/* Costs nothing beside the run; a fault is HB_BUG. */
void hb_search_check(const struct hb_search *s, const struct hb_choice *c, bool listed);
/* In runs of the engine: a look at layers counts as so many, a segment by its policies, and what is
 * priced. */
enum { HB_EFFORT_LAYERS = 6 };
void hb_search_spend(struct hb_search *s, uint64_t runs);
void hb_search_spend_segment(struct hb_search *s);
void hb_search_spend_prices(struct hb_search *s, double prices);
/* All of the menus is to be searched, however long. */
bool hb_search_is_whole(const struct hb_search *s);
/* Or there is but one policy. */
bool hb_search_is_exact(const struct hb_search *s);
/* Live bytes that are not tried again in the cell after several with no more did not fit once
 * packed; INT64_MAX: none yet. The heap's packing is no law: where all is to be searched, none. */
int64_t hb_search_cut_bytes(const struct hb_search *s, uint32_t cell, enum hb_share share);
struct hb_cuts *hb_search_cuts(const struct hb_search *s, uint32_t cell, enum hb_share share);
/* Runs of some menus as runs of the plan's, in the search's arena: policies that are new to those
 * are appended. */
const struct hb_run *hb_search_adopt(struct hb_search *s, const struct hb_menu *menus,
                                     const struct hb_run *runs, uint32_t count);
struct hb_candidate hb_search_candidate(const struct hb_choice *c, double value);

#endif
