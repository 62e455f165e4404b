/* What the searches for pathologies share: the dump, who uses which value, and how a finding is
 * tried and written down. Inside of sim/hlo. */
#ifndef HB_SIM_HLO_FINDER_H
#define HB_SIM_HLO_FINDER_H

#include "sim/hlo/edit.h"
#include "sim/hlo/finding.h"

/* A piece of the text. */
struct hb_hlo_known {
    uint32_t at;
    uint32_t len_and_one; /* 0: not looked for yet */
};

struct hb_hlo_finder {
    struct hb_arena *arena;
    const struct hb_hlo_program *hp;
    const struct hb_hlo_module *m;
    const struct hb_hlo_flow *f;
    int64_t total_bytes;
    int64_t live_bytes;  /* of what is alive at once at most, by hb_hlo_edit_live */
    int64_t least_bytes; /* of a finding, all in all */
    uint32_t *first_use; /* by value, one more at the end: into uses */
    uint32_t *uses;      /* nodes that take the value as an operand */
    uint32_t *loop_of;   /* by value: node of a while whose body it enters unchanged; HB_NONE */
    struct hb_hlo_edit plain;      /* the program as it is */
    struct hb_hlo_edit edit;       /* of the catch at work */
    struct hb_hlo_known *op_names; /* by instruction, as they are asked for */
    struct hb_hlo_findings *out;
};

/* Buffers that a finding is about. */
struct hb_hlo_catch {
    uint32_t *bufs;
    uint32_t count, cap;
    struct hb_hlo_edit *edit; /* the program without them; one at a time */
};

struct hb_hlo_catch hb_hlo_catch_begin(struct hb_hlo_finder *x);
void hb_hlo_catch_add(struct hb_hlo_finder *x, struct hb_hlo_catch *c, uint32_t buf);
/* Bytes of the memory that its buffers lie in, each place once. */
int64_t hb_hlo_catch_held(struct hb_hlo_finder *x, const struct hb_hlo_catch *c);
/* Tries the edited program and adds the finding, if what it holds is worth it; what and advice
 * may be formatted texts of the arena. */
void hb_hlo_catch_end(struct hb_hlo_finder *x, struct hb_hlo_catch *c,
                      enum hb_hlo_finding_kind kind, const char *what, const char *advice);
/* Adds it, whatever it holds: total_bytes is what the program would take. */
void hb_hlo_catch_tell(struct hb_hlo_finder *x, struct hb_hlo_catch *c,
                       enum hb_hlo_finding_kind kind, int64_t total_bytes, const char *what,
                       const char *advice);
/* The total of the program as edited. */
int64_t hb_hlo_finder_try(struct hb_hlo_finder *x, const struct hb_hlo_edit *edit);
/* A finding whose bytes are known. insts: who makes it. */
void hb_hlo_finder_add(struct hb_hlo_finder *x, struct hb_hlo_finding finding,
                       const uint32_t *insts, uint32_t count);

/* The instruction, shape and name of a buffer's value. */
uint32_t hb_hlo_finder_inst(const struct hb_hlo_finder *x, uint32_t buf);
const struct hb_hlo_shape *hb_hlo_finder_shape(const struct hb_hlo_finder *x, uint32_t buf);
struct hb_hlo_span hb_hlo_finder_op_name(const struct hb_hlo_finder *x, uint32_t inst);
bool hb_hlo_finder_op_name_has(const struct hb_hlo_finder *x, uint32_t inst, const char *word);
/* The buffer of what a node takes as its nth operand, at its top; HB_NONE. */
uint32_t hb_hlo_finder_operand(const struct hb_hlo_finder *x, uint32_t node, uint32_t nth);
/* "1.5 GiB" in the arena. */
const char *hb_hlo_finder_size(const struct hb_hlo_finder *x, int64_t bytes);
/* Into how many parts the sharding written at an instruction cuts each of rank dimensions:
 * `sharding={devices=[4,2,8]<=[64] last_tile_dim_replicate}`. False: it says none. */
bool hb_hlo_sharding_parts(const struct hb_hlo_module *m, uint32_t inst, int rank,
                           int64_t *out_parts);

/* The searches, each in its file. */
void hb_hlo_find_values(struct hb_hlo_finder *x);
void hb_hlo_find_entry(struct hb_hlo_finder *x);
void hb_hlo_find_gradients(struct hb_hlo_finder *x);
void hb_hlo_find_halo(struct hb_hlo_finder *x);
void hb_hlo_find_forecast(struct hb_hlo_finder *x);

#endif
