/* Memory of a program whose storages a caching allocator serves as they come: see hb_caching. */
#ifndef HB_SIM_ENGINE_CACHING_H
#define HB_SIM_ENGINE_CACHING_H

#include "sim/engine/heap_cuda.h"
#include "sim/engine/run.h"

struct hb_cuda_limits hb_caching_limits(const struct hb_caching *c);
/* Of a program without loops; fills all of out but the placing's alignments. */
void hb_caching_run(struct hb_arena *arena, const struct hb_program *p, struct hb_memory *out);

#endif
