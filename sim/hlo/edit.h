/* What if: the buffers of a dump's program and their times, to be changed and run again. */
#ifndef HB_SIM_HLO_EDIT_H
#define HB_SIM_HLO_EDIT_H

#include "sim/hlo/program.h"

struct hb_hlo_edit {
    const struct hb_hlo_program *hp;
    int64_t *bytes;     /* by buffer; 0: it is gone */
    uint32_t *alias_of; /* by buffer: an earlier one; HB_NONE */
    int32_t *start, *end;
};

/* The program as it is. */
struct hb_hlo_edit hb_hlo_edit_begin(struct hb_arena *arena, const struct hb_hlo_program *hp);
void hb_hlo_edit_copy(struct hb_hlo_edit *to, const struct hb_hlo_edit *from);
/* A buffer takes no more than so many bytes. */
void hb_hlo_edit_shrink(struct hb_hlo_edit *edit, uint32_t buf, int64_t bytes);
/* A buffer is needed until then, at least; buf may be HB_NONE. */
void hb_hlo_edit_keep(struct hb_hlo_edit *edit, uint32_t buf, int32_t end);
/* The total of the program as edited, run by the engine. scratch is rewound. */
int64_t hb_hlo_edit_run(struct hb_arena *scratch, const struct hb_hlo_edit *edit);
/* Of its buffers what is alive at once at most, arguments and outputs too: cheaper, not packed. */
int64_t hb_hlo_edit_live(struct hb_arena *scratch, const struct hb_hlo_edit *edit);

#endif
