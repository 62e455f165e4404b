/* What no set of saved, offloaded and recomputed tensors can go below: a linear relaxation over all
 * of them at once, whatever the runs of the layers, and of other policies too. It is read off two
 * programs of the cell: one that keeps all that has a name, whose ops every policy has
 * (hb_segment_optional_ops: C_s is what stream s does there, each op of the forward pass as the
 * shorter of the two has it; F what is fixed, L the logits at the loss) and one that makes
 * everything again, whose ops `a` of the backward loops that repeat the forward pass are what there
 * is to make again.
 *
 * For each block, per layer: r_a: how many of its layers make op a again, k_v and h_v: how many
 * keep value v (whatever such an op writes, named or not) on the device or on the host, as
 * fractions.
 *
 *   min  T
 *   s.t. k_v + h_v + r_a >= 1              an op of every policy reads v, which a writes
 *        k_v + h_v + r_a >= r_b            op b, which may be made again, does
 *        k_i + h_i       >= 1              the layers' input i
 *        k_v <= n + m, h_v = 0             v has no name: n of the layers are under policy none, m
 *                                          under those of products, where these keep v
 *        k_v >= n + m                      they keep v, which an op of every policy reads
 *        h_v = 0                           v is not sent where all is that a compiler takes there
 *        h_v <= 1 - n                      where E is known: nothing of a layer under policy none
 *                                          is on the host
 *        F + L + sum_v b_v k_v + E n <= B  while the loss is taken all that is kept is there
 *        sum_v b_v h_v <= H                on the host
 *        C_s + sum_{a on s} t_a r_a <= T   for each stream s; of compute beside the copies
 *                                          sum_v (i_v + o_v) k_v
 *        P + sum_{a on compute} t_a r_a + sum_v o_v k_v <= T
 *        P - W + sum_{a on compute} t_a r_a + sum_v (i_v + o_v) k_v <= T
 *        P + G + sum_{a on compute} t_a r_a <= T
 *        sum_v (d_v + u_v) h_v <= T + S    host copies, down and then up, but for one layer's
 *        P - P_X + sum_{a on compute, not before X} t_a r_a + sum_{v read up to X} u_v h_v <= T
 *                                          for each op X of every policy (relax_cut.c)
 *        0 <= r_a, k_v, h_v <= 1
 *
 * F has the sums of gradients over microbatches, too. E is what layers under policy none hold there
 * beside all that may be kept, read off a third program; not known where that is less than nothing.
 * Copies: the layers' way back begins with what was sent last, so no value comes up before all
 * layers' part of it is down, and then only others of that layer may still be on their way; S is
 * one layer's.
 *
 * P is the path of the cell's floor (bound.h), with the work alone of the backward loops, whose
 * waits may be filled with what is made again; W what the forward loops wait in it, which copies
 * may fill. G is what compute stands still in the backward loops for gathers of weights whose
 * operand is made just before and that are read just behind (stops_ns): nothing that is made again
 * comes in between, but copies may. i_v and o_v are what the compute stream's copies of v into its
 * stack and out of it take (where ops of every policy read it), read off the program that keeps
 * all: a value on the device costs them whatever the policy.
 *
 * A policy is a 0-1 point of it: what is read is kept or made again, and what makes it reads in its
 * turn. A configuration is a mean of such points over its layers, so the linear program is below
 * all of them. What it leaves out (where else streams wait for each other, what else lives, how the
 * heap packs) only adds. Tests compare it with the engine on random policies. */
#ifndef HB_SOLVER_RELAX_H
#define HB_SOLVER_RELAX_H

#include <stdbool.h>
#include <stdint.h>

struct hb_arena;
struct hb_device;
struct hb_floor;
struct hb_spec;

struct hb_relax_ask {
    const struct hb_spec *cell_spec;
    const struct hb_device *device;
    int64_t budget_bytes;
    int64_t host_bytes;           /* INT64_MAX: no limit */
    const struct hb_floor *floor; /* the cell's (bound.h); null: its waits do not count */
    bool layers_only; /* for all cells of a node: of the ends, and of the logits, nothing counts */
};

struct hb_relax {
    int64_t bound_ns; /* the step takes no less; INT64_MAX: nothing fits; 0: nothing is known */
    uint32_t rows;
    uint32_t columns;
};

/* For scans without a pipeline, of which no block is unrolled whole; of others the bound is 0. */
void hb_relax_find(struct hb_arena *scratch, const struct hb_relax_ask *ask, struct hb_relax *out);

#endif
