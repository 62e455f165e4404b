/* The best split of a cell's layers over its policies, as an integer program. The only user of
 * GLPK.
 *
 * Items i are pairs (block k(i), policy), in the model's order and then that of the menu; N_k are
 * the scan steps of block k. x_i: steps of the block under the policy; y_i: whether there are any.
 *
 *   min  T                                              (or P, with P in place of the budget B)
 *   s.t. sum_{i of k} x_i = N_k                         for each block k
 *        y_i <= x_i <= N_k y_i                          for each item i
 *        sum_i y_i <= blocks + 1                        at most one block is split, in two
 *        c_v + sum_i t_vi(x_i, y_i) <= T                for each lower bound v (step_bound.h)
 *        F + L_q + sum_i f_i + rest_qi <= B             for each slot q of the ends
 *        F + L_q + sum_j f_j + own_qi + sum_{j over at i} after_qj + sum_{j to come} before_qj
 *              <= B + M (1 - y_i)                       for each slot q of turns and item i
 *        sum_{block k} host_i <= H                      where something lies on the host
 *        x_i >= 0 integer, y_i in {0, 1}
 *
 * Each term, f(n) by table, enters as the straight line a x_i + b y_i below it: a is the slope from
 * one step to all, b the largest with a n + b <= f(n) for all n. So the program is a relaxation:
 * its optimum is a bound for the cell, and what it chooses is priced again in integers by the
 * caller. Bytes are given in MiB, rounded down to KiB (the budget up by 1 MiB), times in
 * milliseconds; what the tolerances of the solver may take off is taken off the optimum
 * (relative 1e-6). Rows that can never bind are left out.
 *
 * What GLPK says of it is proven anew as far as a few linear programs go: branches are made here,
 * and each ends where the weights of its rows prove (hb_ilp_linear) that nothing of it is below the
 * bound, or at all. */
#ifndef HB_SOLVER_ILP_H
#define HB_SOLVER_ILP_H

#include "solver/brute.h"

enum hb_ilp_status { HB_ILP_OPTIMAL, HB_ILP_INFEASIBLE, HB_ILP_LIMIT };

struct hb_ilp_ask {
    const struct hb_segment *segment;
    const struct hb_spec *spec; /* the cell's */
    const bool *leave_out;      /* by item; null: none */
    struct hb_brute_limits limits;
    const char *lp_file; /* written in CPLEX LP form; null: none */
};

struct hb_ilp_answer {
    enum hb_ilp_status status; /* LIMIT: GLPK gave up; nothing is known */
    double objective;          /* as the solver says: ms, or MiB */
    int64_t bound;             /* no configuration is below: ns, or bytes */
    bool proven;               /* that, or that there is none; else by GLPK's word */
    uint32_t rows;
    uint32_t columns;
};

void hb_ilp_solve(struct hb_arena *scratch, const struct hb_ilp_ask *ask,
                  struct hb_ilp_answer *out);

/* Whether a few linear programs prove that nothing of it is below so much (ms, or MiB); INFINITY:
 * that there is nothing. */
bool hb_ilp_proves(struct hb_arena *scratch, const struct hb_ilp_ask *ask, double least);

/* A linear program: column 0, at least 0, is made small; the others lie between 0 and 1. Row i has
 * the entries from the end of the row before it, and is at least `least`. */
struct hb_lp_entry {
    uint32_t column;
    double value;
};

struct hb_lp_row {
    double least;
    uint32_t end;
};

struct hb_lp {
    uint32_t columns;
    struct hb_lp_entry *entries;
    uint32_t entry_count;
    struct hb_lp_row *rows;
    uint32_t row_count;
    double bound; /* what the solver's weights of the rows prove in exact terms; rows with column 0
                   * have it with a value above 0 */
    double *values; /* of the columns, as the solver has them; null: not wanted */
};

/* Sets its bound where the status is optimal. INFEASIBLE is proven like a bound; else it is LIMIT.
 */
enum hb_ilp_status hb_ilp_linear(struct hb_arena *scratch, struct hb_lp *lp);

#endif
