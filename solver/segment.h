/* What each choice adds to a step, summed up so that a configuration is priced by a few additions:
 * one record for the ends of the model and one for each (block, policy), read off a pair of
 * programs in which every such choice stands once (outline.h). Layers in a row compose:
 *
 *   slot of the ends:  live(t) = ends(t) + sum of rest[g](n_g)
 *   slot of turns:     live(g) = ends + own[g](n_g) + sum over groups whose turn is over of after
 *                                                   + sum over those whose turn comes of before
 *
 * and the peak is the largest of them. Every term is a table over the number of layers, made from
 * the shapes of the program's buffers, so that tiles and alignment are exact: the sum equals the
 * engine's live bytes to the byte (tests/prop/test_segment.c). */
#ifndef HB_SOLVER_SEGMENT_H
#define HB_SOLVER_SEGMENT_H

#include <stddef.h>

#include "models/spec.h"
#include "solver/outline.h"

struct hb_diag;
struct hb_device;
struct hb_link;
struct hb_live;
struct hb_replay;
struct hb_segment_orders;
struct hb_timed;

/* The policies that a block may take. */
struct hb_menu {
    const struct hb_remat *policies;
    uint32_t count;
};

/* Layers of one block under one policy: a run of them in a configuration, in the model's order. */
struct hb_part {
    uint32_t item;
    int32_t steps; /* scan steps: layers / unit */
};

enum { HB_PART_BEFORE, HB_PART_OWN, HB_PART_AFTER, HB_PART_STATES };
enum { HB_BYTES_DEVICE, HB_BYTES_HOST, HB_BYTES_KINDS };

/* Lower bounds of the step's time: the longest of these sums (step_bound.h). */
enum { HB_BOUND_TAILS = 1 + HB_STREAM_COUNT, HB_BOUNDS = 1 + 2 * HB_STREAM_COUNT };

struct hb_item {
    uint32_t block;
    uint32_t policy;
    int64_t *fixed[HB_BYTES_KINDS]; /* [hb_segment_at(steps)]: arguments and outputs */
    /* [(slot x HB_PART_STATES + state) x hb_segment_row + hb_segment_at(steps)] */
    int64_t *live[HB_BYTES_KINDS];
    int64_t *bound_ns[HB_BOUNDS]; /* by steps; null where it is 0 */
    int64_t *wait_ns; /* of a floor, by steps: of its path, the waits of the backward loops; null */
    int64_t *idle_ns; /* the same of the forward loops */
    int64_t *again_ns; /* of a floor, by steps: the trips of the forward loops, however cut */
};

struct hb_segment {
    struct hb_slot *slots;
    uint32_t slot_count;
    struct hb_item *items;
    uint32_t item_count;
    /* By block: its items lie together, in the order of its menu. A block whose steps make no loop
     * has none: it counts among the ends, with the first policy of its menu. */
    uint32_t *first_item;
    /* By item: configurations in which all of the block is under it, or in which it comes first of
     * two runs, are not what the sums say (the head's gradient is scheduled by the first block's
     * policy, for one): the walk passes them over. */
    bool *odd_whole;
    bool *odd_split;
    bool *odd_last;                   /* likewise where it comes last of two runs */
    struct hb_segment_orders *orders; /* segment_order.h; null: there is but one */
    int64_t least_steps;              /* 1; where the blocks are whole the least of their own */
    int64_t max_steps;
    bool has_host; /* some buffer lies there; else the items' tables of it are null */
    bool *admits;  /* by steps: so many make a loop, cut as the spec asks for; by no means 1 */
    int64_t fixed[HB_BYTES_KINDS];  /* of the ends */
    int64_t lent_bytes;             /* of a floor: temporaries that outputs may hold (lend.h) */
    int64_t scratch_bytes;          /* of a floor: hb_segment_scratch_bytes */
    int64_t *live[HB_BYTES_KINDS];  /* of the ends, by slot */
    uint32_t *high[HB_BYTES_KINDS]; /* slots that may have the peak: see hb_segment_find_high */
    uint32_t high_count[HB_BYTES_KINDS];
    int64_t bound_ns[HB_BOUNDS];
    uint8_t bounds[HB_BOUNDS]; /* those that may be the longest: see hb_segment_find_bounds */
    uint32_t bound_count;
    const struct hb_timed *timed; /* for replay.h; null: bytes only */
    struct hb_replay *replay;     /* where the sums were tried by it; else null */
};

static inline size_t hb_segment_at(const struct hb_segment *s, int64_t steps)
{
    return (size_t)(steps - s->least_steps) + 1;
}

/* Whether a block in two runs, of these items, is not what the sums say. */
static inline bool hb_segment_is_odd(const struct hb_segment *s, uint32_t one, uint32_t other)
{
    return s->odd_split[one] || s->odd_last[other];
}

static inline size_t hb_segment_row(const struct hb_segment *s)
{
    return hb_segment_at(s, s->max_steps) + 1;
}

struct hb_price {
    int64_t live_bytes; /* argument + output - alias + live temporaries at the peak */
    int64_t host_bytes;
    int64_t bound_ns;   /* the step takes no less */
    uint32_t peak_slot; /* where the live bytes are */
};

/* What a cell's floors are read off, before it is put in one of the orders: lowered once. */
enum hb_floor_program { HB_FLOOR_FIRST, HB_FLOOR_SECOND, HB_FLOOR_MERGED, HB_FLOOR_WHOLE };
enum { HB_FLOOR_PROGRAMS = HB_FLOOR_WHOLE + 1 };
struct hb_floor_programs {
    struct hb_program lowered[HB_FLOOR_PROGRAMS];
    bool known[HB_FLOOR_PROGRAMS];
};

struct hb_segment_ask {
    const struct hb_spec *spec;  /* a cell's: mesh, batch, chunks and stack form are its */
    const struct hb_menu *menus; /* by block; where floor is set, null */
    const struct hb_device *device;
    /* One item a block, below every policy: nothing that a policy keeps, no op that copies to or
     * from where it is kept or makes a value again. */
    bool floor;
    bool unchecked;       /* the caller only compares policies: what the sums say is not tried */
    bool untried;         /* the same, but times are replayed */
    bool bytes_only;      /* no times at all */
    bool path_only;       /* of the bounds of the time only the first is wanted */
    bool zeros_free;      /* gradients' zeros take no time: their place is not known */
    struct hb_link *link; /* what is known of the cell's orders, of which more may be; or null */
    struct hb_floor_programs *programs; /* of a floor; null: not kept */
    bool whole; /* tables at the blocks' own numbers of steps alone; as for a floor */
};

/* False (with *out_why) where the program has no such form: a pipeline, an unrolled stack, or a
 * program whose form follows from the whole model otherwise than the sums say, which is tried:
 * every item in one whole and one split configuration. */
bool hb_segment_build(struct hb_arena *arena, const struct hb_segment_ask *ask,
                      struct hb_segment *out, const char **out_why);

/* Which slots may have the peak, whatever the configuration: another has no less in each table of
 * those that are left out. For who made the tables. */
void hb_segment_find_high(struct hb_arena *arena, struct hb_segment *s);
/* The same of the sums of time. */
void hb_segment_find_bounds(struct hb_segment *s);

enum { HB_PARTS_MAX = 64 };
/* parts in the model's order, at most HB_PARTS_MAX; blocks without items are left out. */
void hb_segment_price(const struct hb_segment *s, const struct hb_part *parts, uint32_t count,
                      struct hb_price *out);
/* The same but for the time, and the host where there is no room on the device; false: there is
 * none in *slot, which is looked at first: that of the last that did not fit. */
bool hb_segment_fits(const struct hb_segment *s, const struct hb_part *parts, uint32_t count,
                     int64_t budget_bytes, uint32_t *slot, struct hb_price *out);
/* Its bound alone, which costs less. */
int64_t hb_segment_bound_ns(const struct hb_segment *s, const struct hb_part *parts,
                            uint32_t count);
/* One block's split between two items at any step, behind parts of the blocks before it and with
 * none after it: of each cut, for a few additions, the path and what lives in one slot. */
struct hb_cuts_ask {
    const struct hb_segment *segment;
    const struct hb_part *before;
    uint32_t before_count;
    uint32_t one, other;
};
struct hb_segment_cuts {
    const struct hb_segment *segment;
    uint32_t slot;
    int64_t path_ns, base_bytes; /* without the two */
    int64_t high_bytes;          /* the most of the parts before, seen from base_bytes */
    const int64_t *ns[2], *fixed[2], *live[2]; /* of the two */
};
void hb_segment_cuts_open(const struct hb_cuts_ask *ask, uint32_t slot,
                          struct hb_segment_cuts *out);
/* So many steps under the first, and under the second; the path is no more than the bound, the
 * bytes are no more than the peak. */
int64_t hb_segment_cut_ns(const struct hb_segment_cuts *c, int32_t steps, int32_t rest);
int64_t hb_segment_cut_bytes(const struct hb_segment_cuts *c, int32_t steps, int32_t rest);
/* Of a floor's segment: what each configuration of the cell needs at least. */
void hb_segment_floor(const struct hb_segment *s, const struct hb_spec *spec, struct hb_price *out);
/* All layers that a policy may keep, for the floor. */
struct hb_remat hb_segment_floor_policy(void);
/* The spec with all its layers under the policy. False: sizes beyond the range. */
bool hb_segment_lower_under(struct hb_arena *arena, const struct hb_spec *spec,
                            struct hb_remat policy, struct hb_program *out);
/* The same spec. */
struct hb_spec hb_segment_under(struct hb_arena *arena, const struct hb_spec *spec,
                                struct hb_remat policy);
/* With all of them under the floor's. */
bool hb_segment_lower_floor(struct hb_arena *arena, const struct hb_spec *spec,
                            struct hb_program *out);
/* The same but for what readers would make themselves (merged.h). */
bool hb_segment_lower_merged(struct hb_arena *arena, const struct hb_spec *spec,
                             struct hb_program *out);
/* By op of a program with that policy: others may do without it. */
bool *hb_segment_optional_ops(struct hb_arena *arena, const struct hb_program *p);
/* The most that one of the others works in, and spreads over experts, with the gradients that are
 * there all through the loop over microbatches around it, where there is one. */
int64_t hb_segment_scratch_bytes(const struct hb_program *p, const struct hb_live *live,
                                 uint32_t live_count, const bool *optional, bool accumulates);
/* The most that one of them spreads over experts, of what no argument and no output has room for
 * (lend.h). */
int64_t hb_segment_spread_bytes(const struct hb_program *p, const bool *optional);

#endif
