/* The heap of a compiler's dump in the words of who wrote the program: for each buffer the kind of
 * operation that made it, and where that stands in the source, as far as the dump tells. */
#ifndef HB_CLI_HLO_HEAP_H
#define HB_CLI_HLO_HEAP_H

#include "plots/outcome.h"
#include "sim/hlo/report.h"

struct hb_outcome hb_hlo_heap(struct hb_arena *arena, const struct hb_hlo_report *report);

#endif
