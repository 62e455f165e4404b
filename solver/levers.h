/* The knobs that advise turns, by compiler: private to advise.c and the tables. */
#ifndef HB_SOLVER_LEVERS_H
#define HB_SOLVER_LEVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "models/spec.h"

struct hb_arena;

/* What a turn works on. */
struct hb_turn {
    struct hb_arena *arena;
    struct hb_spec *s; /* a copy; its blocks too */
    struct hb_block *blocks;
    const char *name; /* of the knob at its new value */
};

/* Returns null where it was turned, else why not. */
typedef const char *hb_turn_fn(struct hb_turn *t);

struct hb_lever {
    int lever;
    bool outside; /* of what plan searches by default */
    const char *title;
    const char *does;
    hb_turn_fn *turn;
};

enum { HB_LEVERS_MOST = 32 };

const struct hb_lever *hb_levers_of(const struct hb_spec *spec, uint32_t *out_count);
const struct hb_lever *hb_levers_torch(uint32_t *out_count);

/* The knob's name, once it is turned. */
const char *hb_turn_named(struct hb_turn *t, const char *name);
const char *hb_turn_numbered(struct hb_turn *t, const char *key, int64_t value);

/* Turns of more than one table. */
const char *hb_turn_shard_params(struct hb_turn *t);
const char *hb_turn_shard_states(struct hb_turn *t);
const char *hb_turn_split_sequence(struct hb_turn *t);
const char *hb_turn_accumulate(struct hb_turn *t);
const char *hb_turn_short_moments(struct hb_turn *t);
const char *hb_turn_chunk_loss(struct hb_turn *t);
const char *hb_turn_flash_kernel(struct hb_turn *t);

#endif
