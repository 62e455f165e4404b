/* The end of a local search (polish.h): what prices did not show, or what has none. The engine runs
 * each by itself: a tensor of a run turned, steps that go from one run to the next, and some steps
 * at an end of a run under a policy of their own. The prices know no run of two layers on XLA:TPU
 * (sized.h): such are cut under the run's own policy, another run's, one with a tensor turned, or
 * the richest of the menu that fits. */
#ifndef HB_SOLVER_BARE_H
#define HB_SOLVER_BARE_H

#include "solver/search.h"

enum {
    HB_POLISH_NEIGHBOURS = 64, /* of a block, in one round */
    HB_POLISH_MOVES = 3 * HB_TN_COUNT
};

/* A tensor in another state: 0 made again, 1 saved, 2 offloaded. */
struct hb_polish_move {
    int tensor;
    int state;
};

/* What that brings in a block's longest run, by the prices. */
struct hb_polish_gain {
    int64_t ns;
    int64_t bytes;
    bool known;
};

/* The policies that are tried for a block; those of the plan's menu come first, in its order. */
struct hb_polish_tries {
    struct hb_remat list[HB_POLISH_NEIGHBOURS];
    uint32_t known[HB_POLISH_NEIGHBOURS]; /* the place in the plan's menu; HB_NONE */
    uint32_t count;
};

struct hb_polish_known_run;

/* A local search around a configuration. */
struct hb_polishing {
    struct hb_search *s;
    struct hb_spec spec; /* the cell's, as it is priced */
    enum hb_share share;
    struct hb_choice now;
    double value;
    struct hb_menu *menus;         /* of this round */
    struct hb_polish_tries *tries; /* by block */
    uint32_t ran;
    int32_t least_steps; /* of a run */
    double least_part;   /* of the value: by less it is not better */
    bool fits;           /* what was run last */
    bool priced;         /* what is now has its price, and all cuts of its runs had theirs */
    struct hb_polish_gain (*gains)[HB_TN_COUNT][3]; /* by block, tensor and state */
    struct hb_polish_known_run *known;              /* what was run */
    uint32_t known_count;
};

/* Whether its policy is searched. */
bool hb_polish_is_free(const struct hb_polishing *p, uint32_t block);
struct hb_remat hb_polish_moved(struct hb_remat r, struct hb_polish_move m);
/* A policy without names as the set of tensors that it comes near to. */
struct hb_remat hb_polish_as_names(const struct hb_remat *r, uint32_t tensors);
/* At most HB_POLISH_MOVES. */
uint32_t hb_polish_list_moves(const struct hb_polishing *p, uint32_t block,
                              const struct hb_remat *own, struct hb_polish_move *out);
/* The block's own policies as tries and as this round's menu. */
void hb_polish_make_tries(struct hb_polishing *p, uint32_t block);
void hb_polish_add_try(const struct hb_polishing *p, uint32_t block, struct hb_remat r);
/* Whether the engine finds the configuration of this round's menus to fit and to be better. Of one
 * that does not fit the step is 0. */
bool hb_polish_is_better(struct hb_polishing *p, const struct hb_run *runs, uint32_t count,
                         struct hb_choice *out);
void hb_polish_take_up(struct hb_polishing *p, const struct hb_choice *better);
uint32_t hb_polish_most_runs(const struct hb_polishing *p);

/* Takes up what is better; false: nothing is. Where runs may be shorter than those that have a
 * price, what all others come to was found before. */
bool hb_bare(struct hb_polishing *p);
/* Whether some run is shorter than those that have a price. */
bool hb_bare_has_short(const struct hb_polishing *p);

#endif
