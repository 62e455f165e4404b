/* A stretch of a tape that comes again: the ops that a layer's pass forwards issues are the same
 * ones for each microbatch, and for each of its weights whose gradient runs it again. The first
 * time they are recorded; later their ops, storages, values and nodes are copies, moved to where
 * the tape stands. A stretch is only played that takes one value from outside and touches nothing
 * else of what was there before: hb_reel_end looks. Numbers of a node are copied as they are, so
 * none may be the index of a value.
 *
 *   recorded   storages first .. end     values, nodes, ops: likewise
 *   played              + moved          where one refers to what the stretch made; else as it is
 */
#ifndef HB_SIM_EAGER_REEL_H
#define HB_SIM_EAGER_REEL_H

#include <stdbool.h>
#include <stdint.h>

struct hb_arena;
struct hb_tape;
struct hb_taped;
struct hb_reel;

/* Reels of one piece of code, by the tape's state where they begin. */
enum { HB_REELS = 8 };
struct hb_reels {
    struct hb_reel *list[HB_REELS];
};

/* The one that was recorded in the tape's state with a value of the same size, or a new one to be
 * recorded; null: there is no room for another. kind: of what the code is asked for. */
struct hb_reel *hb_reels_find(struct hb_tape *t, struct hb_reels *reels, int kind, uint32_t in);
/* Nothing was recorded yet. */
bool hb_reel_is_new(const struct hb_reel *r);
/* What the tape issues from here on is recorded, up to hb_reel_end; others may be within. */
void hb_reel_begin(struct hb_tape *t, struct hb_reel *r, uint32_t in);
/* marks: values that the code asks for later. */
enum { HB_REEL_MARKS = 3 };
void hb_reel_end(struct hb_tape *t, struct hb_reel *r, const uint32_t marks[HB_REEL_MARKS]);
/* Marks become those in their place; what was not made in the stretch stays. False, and nothing is
 * done, where what was recorded touched more than its value. */
bool hb_reel_play(struct hb_tape *t, const struct hb_reel *r, uint32_t in,
                  uint32_t marks[HB_REEL_MARKS]);
/* What nodes hold, from the first node on. */
struct hb_saved {
    uint32_t node; /* counted from the first */
    uint32_t place;
    uint32_t storage;
    const void *under; /* as the node's */
};
struct hb_saves {
    struct hb_saved *list;
    uint32_t count, cap;
    const struct hb_taped *nodes;
    uint32_t node_count;
};

void hb_saves_list(struct hb_arena *arena, struct hb_saves *out, const struct hb_taped *nodes,
                   uint32_t count);
/* The same without values and nodes, of which what they would hold is handed out, held: until it is
 * played again. Null: as false. */
const struct hb_saves *hb_reel_play_saves(struct hb_tape *t, struct hb_reel *r, uint32_t in);
/* An op is over; the tape tells, with what dies under it. */
void hb_reel_note(struct hb_tape *t);

/* A stretch that leaves no values or nodes may hold and let go of these from outside, too: each
 * time as many, of the same sizes and holders. */
enum { HB_REEL_OUTER = 40 };
struct hb_outer {
    uint32_t storages[HB_REEL_OUTER];
    uint32_t count;
};

void hb_reel_begin_closed(struct hb_tape *t, struct hb_reel *r, uint32_t in,
                          const struct hb_outer *outer);
/* results: storages that its code asks for later, its own or from outside; null: it did what
 * playing it would not. */
void hb_reel_end_closed(struct hb_tape *t, struct hb_reel *r, const uint32_t *results,
                        uint32_t count);
/* Those in their place, until it is played again; null: as false. */
const uint32_t *hb_reel_play_closed(struct hb_tape *t, struct hb_reel *r, uint32_t in,
                                    const struct hb_outer *outer, uint32_t *out_count);

#endif
