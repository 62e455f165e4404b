/* What all configurations of a cell, or of all cells of one mesh, batch and accumulation, need at
 * least: what prunes the search before any policy is looked at. */
#ifndef HB_SOLVER_BOUND_H
#define HB_SOLVER_BOUND_H

#include "solver/space.h"

struct hb_floor {
    int64_t bound_ns;
    int64_t live_bytes;  /* arguments and outputs, and what lives beside them whatever the policy */
    int64_t ends_ns;     /* of bound_ns of a cell with segments: the path through the ends ... */
    int64_t layers_ns;   /* ... through the layers; 0 without segments ... */
    int64_t wait_ns;     /* ... of those, where the backward loops wait and may make values again */
    int64_t idle_ns;     /* ... where the forward loops do, which copies into stacks may fill ... */
    int64_t again_ns;    /* ... of those, what nested scans take once more for the forward loops,
                          * waits and all, where each outer step is made again ... */
    int64_t tail_ns;     /* ... and what a stream does after the last loop beyond that path */
    int64_t fixed_bytes; /* of live_bytes: arguments and outputs, less what of them may hold
                          * temporaries for a while (lend.h) */
    int64_t state_bytes; /* of these, of a node: parameters and what the optimizer keeps, which
                          * batch and accumulation do not change */
    int64_t spread_bytes; /* of a node: what one op spreads over experts, of what lies in no
                           * argument and no output */
    int64_t forward_ns;   /* of bound_ns of a node: the layers' forward pass on the compute stream;
                           * 0 before that is known, again_ns of a cell once that is */
    int64_t links_ns;     /* of a node: what the layers move over all axes of the mesh */
    double products_ns;   /* of a node: what the arithmetic of the layers' products and attention
                           * takes at the best rate; 0 where that is not known */
};

/* For cells that differ in chunks, stack form and the optimizer's place only: what the layers'
 * loops do on the busiest stream. cell_spec has one loss chunk, and the optimizer on the host where
 * one of the cells has. Where the bytes are above the budget there are no times; up to known_bytes
 * they are not asked after closely. False: sizes beyond the range. */
struct hb_bound_limits {
    int64_t budget_bytes;
    int64_t known_bytes;
};
bool hb_bound_node(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                   const struct hb_device *device, struct hb_bound_limits limits,
                   struct hb_floor *out);
/* The same, and of the times those of the backward pass and what the arithmetic of the forward pass
 * takes at the best rate, which takes half as long to find; the bytes are not asked after closely.
 */
bool hb_bound_backward(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                       const struct hb_device *device, int64_t budget_bytes, struct hb_floor *out);
/* Of what a node's sums count no order changes anything; and layers alone have least as they are
 * written: what is zero to begin with just before its loop. */
struct hb_spec hb_bound_written(const struct hb_spec *cell_spec);
/* Whether XLA's schedulers have their say, of the ends' ops or inside of layers. */
bool hb_bound_reordered(const struct hb_spec *cell_spec);
/* Whether no block has experts. */
bool hb_bound_is_dense(const struct hb_spec *spec);
/* Of another node of the mesh, from what that found of the first: its layers take no less for their
 * arithmetic alone, which follows from the sequences that a device goes through. 0:
 * nothing is known, as of experts, whose rows do not follow so. */
int64_t hb_bound_alike(const struct hb_floor *first, const struct hb_spec *first_spec,
                       const struct hb_spec *spec);
/* The same of the bytes that it has at least, of another with as many sequences at once or more:
 * what is kept from step to step, and what of one microbatch is spread over experts. 0: nothing is
 * known. */
int64_t hb_bound_spread(const struct hb_floor *first, const struct hb_spec *first_spec,
                        const struct hb_spec *spec);
struct hb_layers_ask {
    const struct hb_spec *cell_spec;
    const struct hb_menu *menus;
    const struct hb_device *device;
    int64_t fixed_bytes;
    int64_t budget_bytes;
    int64_t host_bytes;   /* INT64_MAX: no limit */
    int64_t most_ns;      /* above this it need not be known; INT64_MAX: it must */
    struct hb_stop *stop; /* then nothing is known: 0; null: none */
    bool any_share;       /* of dense layers: as written, or beyond XLA:GPU's share */
};

/* The layers' part of the fastest configuration that could fit: their path under the policies of
 * the menus, split as anywhere, with nothing beside them but fixed_bytes, and on the host what
 * they keep there. For scans of whatever chunks and place. Above most_ns: most_ns + 1; with no such
 * limit INT64_MAX where none could. */
int64_t hb_bound_layers(struct hb_arena *scratch, const struct hb_layers_ask *ask);
/* The same more closely, of such a cell's segment without odd items: what the groups' turns take
 * on the compute stream, replayed. */
int64_t hb_bound_turns(struct hb_arena *scratch, const struct hb_segment *segment,
                       const struct hb_layers_ask *ask);
/* Of one cell the layers' path alone (layers_ns, again_ns): no order of the step is below what it
 * is as written. False: it has no segments. */
bool hb_bound_path(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                   const struct hb_device *device, struct hb_floor *out);
/* For one cell; no less than its node's. Bytes up to known_bytes are not asked after closely. */
bool hb_bound_cell(struct hb_arena *scratch, const struct hb_spec *cell_spec,
                   const struct hb_device *device, int64_t known_bytes, struct hb_floor *out);

#endif
