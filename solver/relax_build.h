/* The linear relaxation while it is built: private to relax.c (the rows of needs, bytes and times)
 * and relax_cut.c (those of what a trip waits for). */
#ifndef HB_SOLVER_RELAX_BUILD_H
#define HB_SOLVER_RELAX_BUILD_H

#include "sim/engine/cost.h"
#include "solver/ilp.h"
#include "solver/relax.h"

/* In the program, mebibytes and milliseconds. */
#define HB_RELAX_MIB 1048576.0
#define HB_RELAX_MS  1e6

/* A place in a trip of a backward loop: an op of every policy that reads what may be kept. */
struct hb_relax_cut {
    uint32_t loop;
    uint32_t op;         /* of full */
    uint32_t first_read; /* in reads: what those of the loop read up to this one */
    uint32_t end_read;
};

/* An op that may be made again, before all of a trip's that every policy has, reads what may be
 * kept. */
struct hb_relax_early {
    uint32_t loop;
    uint32_t buf;
    uint32_t op;
};

struct hb_relax_build {
    struct hb_arena *arena;
    const struct hb_relax_ask *ask;
    struct hb_program all;  /* keeps all that has a name */
    struct hb_program full; /* makes everything again */
    struct hb_program sent; /* sends all to the host that may go there */
    struct hb_cost all_cost;
    struct hb_cost cost;    /* of full */
    bool *optional;         /* by op of all: a policy may do without it */
    bool *again;            /* by op of full: likewise */
    uint32_t *op_column;    /* by op: r_a; HB_NONE */
    uint32_t *kept_column;  /* by buffer: k_v, and after it h_v; HB_NONE */
    uint32_t *early_column; /* by buffer: e_v; HB_NONE */
    uint32_t *writer;       /* by buffer: the op of the loop that wrote it last; HB_NONE */
    int64_t *layers;        /* by buffer that may be kept: how many layers have one */
    int64_t *in_ns;         /* by such a buffer: what all layers' copies into its stack take, */
    int64_t *out_ns;        /* and out of it, where an op of every policy reads it */
    uint32_t *kept_loop;    /* by such a buffer: the backward loop that reads it; HB_NONE */
    uint32_t none_column;   /* of the loop: how many of its layers are under policy none, and */
    uint32_t dots_column;   /* under one of the two of products */
    uint32_t *loop_none;    /* by loop of full: its none_column; HB_NONE */
    double *none_bytes;     /* by loop: what policy none keeps beside all that may be kept */
    struct hb_lp lp;
    uint32_t entry_cap, row_cap;
    uint32_t *reads; /* buffers that may be kept, as ops of every policy read them first */
    uint32_t read_count, read_cap;
    struct hb_relax_cut *cuts;
    uint32_t cut_count, cut_cap;
    struct hb_relax_early *early;
    uint32_t early_count, early_cap;
};

void hb_relax_entry(struct hb_relax_build *x, uint32_t column, double value);
/* A row of the entries since the last. */
void hb_relax_close(struct hb_relax_build *x, double least);
/* Of one layer. */
double hb_relax_layer_bytes(const struct hb_relax_build *x, uint32_t buf);

/* Looks at an op of a backward loop whose needs are there; first_read: of the loop's. */
void hb_relax_look(struct hb_relax_build *x, uint32_t index, uint32_t first_read);
/* Columns and rows that all budgets share. */
void hb_relax_add_early(struct hb_relax_build *x);
/* The rows of all that was looked at; path_ns: the floor's. */
void hb_relax_add_cuts(struct hb_relax_build *x, int64_t path_ns);

#endif
