/* A segment while it is built: private to segment.c (the pair of programs, and the whole),
 * segment_roots.c (whose each buffer is, and how its bytes follow the layers), segment_sums.c (the
 * tables) and segment_check.c (whether what the sums say holds). */
#ifndef HB_SOLVER_SEGMENT_BUILD_H
#define HB_SOLVER_SEGMENT_BUILD_H

#include "sim/engine/lend.h"
#include "sim/graph/link.h"
#include "solver/segment.h"
#include "solver/sized.h"

struct hb_building {
    struct hb_arena *arena;
    const struct hb_spec *spec;
    const struct hb_menu *menus;
    const struct hb_device *device;
    struct hb_segment *s;
    const char *why;
    struct hb_link *link;
    int *order;                         /* by item: which the steps that it leads are in */
    struct hb_floor_programs *programs; /* null: not kept */
    struct hb_program a;
    struct hb_program b;
    struct hb_outline_pair pair;
    struct hb_outline o;
    struct hb_sized sized;
    int64_t heap_align[HB_BYTES_KINDS];
    int64_t leaf_align;
    bool *is_fixed;             /* by root: argument or output */
    uint32_t *next_alias;       /* by buffer: the next of the same root; HB_NONE */
    uint32_t *roots_of;         /* roots sorted by owner, groups first, ends last */
    uint32_t *first_root;       /* by group (ends: group_count) */
    uint32_t *slot_of;          /* by op */
    const int64_t **moving;     /* by root: its table, once it was asked for */
    struct hb_lend_slot *lends; /* by root: when it holds nothing; null: none ever does */
    struct hb_item *items;
    bool floor;
    bool untried;   /* see the ask */
    bool unordered; /* all in the order of the sample, whatever that is */
};

/* --- segment.c --- */

/* A spec of the cell, in its order; of a floor the part that it is. */
bool hb_building_lower(struct hb_building *w, const struct hb_spec *spec,
                       enum hb_floor_program part, struct hb_program *out);

/* --- segment_roots.c --- */

/* By owner, with what the rest here asks. */
void hb_building_find_roots(struct hb_building *w);
/* Device or host. */
int hb_building_kind(const struct hb_building *w, uint32_t root);
/* Whether it is counted at all, and whether for the whole step. */
bool hb_building_counts(const struct hb_building *w, uint32_t root);
bool hb_building_is_static(const struct hb_building *w, uint32_t root);
/* Whether temporaries may lie in it during a slot; not in a floor, which has that apart. */
bool hb_building_lends(const struct hb_building *w, uint32_t root, uint32_t slot);
/* Whether it follows its group's layers; its bytes where it does not, and by steps where it does:
 * the largest of its aliases. */
bool hb_building_moves(const struct hb_building *w, uint32_t root);
int64_t hb_building_still_bytes(const struct hb_building *w, uint32_t root);
const int64_t *hb_building_moving_bytes(struct hb_building *w, uint32_t root);

/* --- segment_sums.c --- */

/* Fills the tables of bytes. False, with w->why: they do not add up so. */
bool hb_building_sum(struct hb_building *w);

/* --- segment_order.c --- */

/* Chooses the segment's order, once its items are named. */
void hb_building_choose_order(struct hb_building *w);

/* --- segment_check.c --- */

/* One item whole, the other blocks under their first ones; their number. */
uint32_t hb_building_whole(const struct hb_building *w, uint32_t item, struct hb_part *parts);

/* False where it does not hold at all; else what is odd is marked. */
bool hb_building_check(struct hb_building *w);

#endif
