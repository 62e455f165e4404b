/* The policies that the planner offers to each block: the file's own, none, full, dots,
 * dots_no_batch, and those sets of named tensors, saved or offloaded, that are worth it on a sample
 * cell: no other set takes at most as many bytes at every point of the step and at most as long. */
#ifndef HB_SOLVER_MENU_H
#define HB_SOLVER_MENU_H

#include "solver/space.h"

enum { HB_MENU_MOST = 32 };

/* cell_spec: the sample. At most `most` policies a block, its own always among them; with most 1,
 * its own alone. *out_tried is how many were compared. */
const struct hb_menu *hb_menu_make(struct hb_arena *arena, struct hb_arena *scratch,
                                   const struct hb_spec *cell_spec, const struct hb_device *device,
                                   uint32_t most, uint32_t *out_tried);
/* The policies of both, by block; in the order of the first, what only the second has after them.
 */
const struct hb_menu *hb_menu_join(struct hb_arena *arena, int block_count,
                                   const struct hb_menu *first, const struct hb_menu *second);
/* The tensors of a block that a policy may name, but for the layer's input: a mask. */
uint32_t hb_menu_tensors(const struct hb_block *b);
/* Whether the compiler takes it. */
bool hb_menu_compiles(const struct hb_spec *spec, const struct hb_remat *remat);
/* A few policies a block, from what keeps nothing on the device to what keeps all. */
const struct hb_menu *hb_menu_ladder(struct hb_arena *arena, const struct hb_spec *cell_spec);
/* The policy's place in the menu; HB_NONE. */
uint32_t hb_menu_place(const struct hb_menu *menu, const struct hb_remat *remat);
/* By item: some other of its block is at most as large everywhere and at most as slow. */
bool *hb_menu_find_beaten(struct hb_arena *arena, const struct hb_segment *s);

#endif
