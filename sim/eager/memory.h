/* A step of an eager framework as a program of storages under its caching allocator: two steps, op
 * by op; or a short program with the same ends, to bound its memory by (short.h). */
#ifndef HB_SIM_EAGER_MEMORY_H
#define HB_SIM_EAGER_MEMORY_H

#include "models/spec.h"
#include "sim/ir/program.h"

struct hb_diag;

struct hb_actions;
struct hb_server;
struct hb_short;

/* What is asked of a rank's step. */
struct hb_rank_ask {
    int64_t rank;
    uint32_t storages;                /* of it, about; 0: not known */
    struct hb_short *cut;             /* null: all of it, no short program */
    const struct hb_server *server;   /* null: a program */
    const struct hb_actions *actions; /* by rank; null: they are worked out where they are needed */
};

/* The program of a step whose memory is asked: with compiler torch that of one rank of the
 * pipeline, else hb_lower's. False (with a message) if a size leaves the range of int64. spec has
 * passed hb_spec_supported. */
bool hb_step_lower(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   const struct hb_rank_ask *ask, struct hb_program *out);
/* Of compiler torch: there is a short program; of torchtitan's pipelines there is none. */
bool hb_step_has_short(const struct hb_spec *spec);
/* The same shortened, of compiler torch alone. */
bool hb_step_lower_short(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                         int64_t rank, struct hb_program *out, struct hb_short *out_short);
/* The same, with compiler torch, asked of ask->server as it comes: no program is made. */
bool hb_step_serve(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                   const struct hb_rank_ask *ask);
/* What all ranks share: hb_rank_ask.actions. */
const struct hb_actions *hb_step_actions(struct hb_arena *arena, const struct hb_spec *spec);
/* The rank runs what the one before it does: of GPipe, between the ends, with layers alike. */
bool hb_step_is_like_before(const struct hb_spec *spec, int64_t rank);
/* The allocator that serves it. */
struct hb_caching hb_step_caching(const struct hb_spec *spec);
/* Ranks that run programs of their own. */
int64_t hb_step_ranks(const struct hb_spec *spec);

#endif
