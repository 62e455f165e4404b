/* What a compiler taught: a configuration took more than was predicted, so what resembles it is
 * counted as that much larger. Two cells resemble each other if they use the same axes of the mesh
 * (whatever their sizes), the same form of stack, whole logits or chunks, accumulation or none, and
 * keep the optimizer in the same place: whatever batch and policies. These are what the schedule of
 * a compiler, and so its error, hangs on; a policy is not among them, so that the search knows
 * before it looks at policies how much of the budget a cell has. */
#ifndef HB_SOLVER_LESSONS_H
#define HB_SOLVER_LESSONS_H

#include "solver/space.h"

struct hb_lesson {
    uint32_t kind;
    int64_t more_bytes; /* than predicted; > 0 */
};

struct hb_lessons {
    const struct hb_lesson *items;
    uint32_t count;
};

/* Equal for cells that resemble each other. */
uint32_t hb_cell_kind(const struct hb_cell *cell);
/* "fsdp and tensor, scan, whole logits, 2 or more microbatches". */
const char *hb_cell_kind_name(struct hb_arena *arena, const struct hb_cell *cell);
/* The most that any lesson says of this kind; 0: nothing is known. */
int64_t hb_lessons_more(const struct hb_lessons *lessons, uint32_t kind);

#endif
