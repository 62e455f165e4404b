/* Nodes of the search: cells of one mesh, batch and accumulation. Each is looked at in stages, of
 * which every one raises its value: the busiest stream of its layers' loops on the way back; the
 * same of all that they do; the path through its layers; that path with the policies of what could
 * fit; then its cells are put into the queue. The first that is opened says what the layers take in
 * the others, too, all but exactly: most of those that differ in their chunks are never opened. */
#ifndef HB_SOLVER_NODES_H
#define HB_SOLVER_NODES_H

#include "solver/search.h"

bool hb_nodes_same(const struct hb_cell *a, const struct hb_cell *b);
/* Of nodes in the order of their cells, the one that has the cell. */
const struct hb_search_node *hb_nodes_around(const struct hb_search_node *nodes, uint32_t count,
                                             uint32_t cell);
/* Fills s->nodes. */
void hb_nodes_find(struct hb_search *s);
/* What that search knows of them whatever the policies; nothing where its space is another. */
void hb_nodes_take_floors(struct hb_search *s, const struct hb_plan *other);
/* Into the queue with its first floor, or out of the search. */
void hb_nodes_put(struct hb_search *s, uint32_t index);
/* Whether nothing of it can be. */
bool hb_nodes_is_out(const struct hb_search *s, const struct hb_search_node *node);
/* Of one that is in the queue its own floor or, where that is known, the times of the forward pass
 * too, and its bytes closely: it may be out then. */
void hb_nodes_time(struct hb_search *s, struct hb_search_node *node);
/* All of them again with the floors that they have: other policies, or another budget. */
void hb_nodes_restart(struct hb_search *s);
/* Of one that was taken out of the queue: else it is put back, by its own floor or by what was
 * found of it since. */
bool hb_nodes_is_next(const struct hb_search *s, uint32_t index);
/* Its next stage. */
void hb_nodes_take(struct hb_search *s, uint32_t index);
/* What all cells of the node have in common at least. */
void hb_nodes_floor_spec(const struct hb_search *s, const struct hb_search_node *node,
                         struct hb_spec *out);
/* The floor of a cell's scan. Nested scans hold no less beside what they keep and take longer: by
 * the whole forward pass, where the outer blocks are made again. */
const struct hb_node_floor *hb_nodes_find_floor(struct hb_search *s, struct hb_search_node *node,
                                                const struct hb_cell *cell);
/* An open node's cell gets a floor of its own: back into the queue, or out of the search. */
void hb_nodes_floor_cell(struct hb_search *s, uint32_t index);
/* Whether layers' prices hold for what may be run: of spread experts none does beyond the share. */
bool hb_nodes_has_layers(const struct hb_search *s);
/* Where they do, what layers take at least under the menus: INT64_MAX, none fits. Where the step
 * may be made otherwise, 0 as well: no more than known_ns. */
int64_t hb_nodes_layers_ns(const struct hb_search *s, const struct hb_layers_ask *ask,
                           int64_t known_ns);
/* What a cell takes at least by what is known of its node's layers by now; INFINITY: none fits. */
double hb_nodes_cell_bound(const struct hb_search *s, const struct hb_open_cell *o);

#endif
