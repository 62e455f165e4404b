/* Every configuration of a cell, one after another: each block under one policy, or one of the
 * blocks split into two runs under two. The same walk serves the exhaustive check and the planner,
 * which takes the best few at a time. */
#ifndef HB_SOLVER_BRUTE_H
#define HB_SOLVER_BRUTE_H

#include "solver/space.h"
#include "solver/stop.h"

/* parts in the model's order; false ends the walk. */
typedef bool hb_brute_visit(void *context, const struct hb_part *parts, uint32_t count);

/* Runs of one block stand in the order of its menu. Those that the segment's sums hold for: no
 * split, nor a whole block beside one, that is odd. */
void hb_brute_each(const struct hb_segment *s, const struct hb_spec *spec, hb_brute_visit *visit,
                   void *context);
/* The others: whole blocks under policies that make the program another one. They have no price. */
void hb_brute_each_odd(const struct hb_segment *s, const struct hb_spec *spec,
                       hb_brute_visit *visit, void *context);
/* Parts as runs, with the blocks that have no items; out has room for HB_PARTS_MAX. */
uint32_t hb_brute_runs(const struct hb_segment *s, const struct hb_spec *spec,
                       const struct hb_part *parts, uint32_t count, struct hb_run *out);
const struct hb_run *hb_brute_copy_runs(struct hb_arena *arena, const struct hb_run *runs,
                                        uint32_t count);
/* How many configurations there are, at most. */
double hb_brute_count(const struct hb_spec *spec, const struct hb_menu *menus, bool splits);

typedef void hb_brute_visit_runs(void *context, const struct hb_run *runs, uint32_t count);

/* Of a cell without segments: whole blocks under a few policies of each menu, evenly apart, the
 * leanest and the last (the file's own, where it is not worth it) among them. */
void hb_brute_each_combination(const struct hb_spec *spec, const struct hb_menu *menus,
                               hb_brute_visit_runs *visit, void *context);
double hb_brute_count_combinations(const struct hb_spec *spec, const struct hb_menu *menus);

enum hb_brute_goal { HB_GOAL_TIME, HB_GOAL_MEMORY };

/* Of the time: the whole step replayed; the sums alone; the sums, and the groups' turns replayed
 * one slot after another (replay.h). */
enum hb_brute_time { HB_TIME_REPLAY, HB_TIME_SUMS, HB_TIME_TURNS };

struct hb_brute_limits {
    enum hb_brute_goal goal;
    enum hb_brute_time time;
    int64_t budget_bytes;
    int64_t host_bytes; /* INT64_MAX: no limit */
    int64_t most_value; /* only those up to this one; INT64_MAX: all */
    /* Only those beyond this one, in the order of (value, place in the walk). */
    int64_t after_value; /* -1: all */
    uint64_t after_place;
    struct hb_stop *stop; /* null: none; what was found by then */
};

struct hb_brute_choice {
    int64_t value;  /* the bound in ns, or the live bytes */
    uint64_t place; /* in the walk */
    struct hb_price price;
    struct hb_part *parts;
    uint32_t count;
};

/* The best `most` of the configurations within the limits by their price, best first; returns how
 * many there are. */
uint32_t hb_brute_best(struct hb_arena *arena, const struct hb_segment *s,
                       const struct hb_spec *spec, const struct hb_brute_limits *limits,
                       uint32_t most, struct hb_brute_choice *out);

/* Another walk over configurations of the segment. */
struct hb_brute_walk {
    void (*each)(void *context, hb_brute_visit *visit, void *visit_context);
    void *context;
};
/* The same of those. */
uint32_t hb_brute_best_of(struct hb_arena *arena, const struct hb_segment *s,
                          const struct hb_brute_walk *walk, const struct hb_brute_limits *limits,
                          uint32_t most, struct hb_brute_choice *out);

#endif
