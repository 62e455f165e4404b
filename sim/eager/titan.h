/* torchtitan's step under FSDP2, two times, as a program of storages: embedding, layers, norm and
 * head, loss, backward, update. Tensor parallelism with sequence parallelism and a loss over the
 * split vocabulary; checkpointing of every k-th layer, whole or op by op (every second product and
 * attention's output are kept). The second step finds the optimizer's states in the holes that the
 * first one left. Private to sim/eager. */
#ifndef HB_SIM_EAGER_TITAN_H
#define HB_SIM_EAGER_TITAN_H

#include "models/spec.h"
#include "sim/eager/tape.h"

struct hb_rank_ask;

/* DeepSpeed's: parameters in the compute type, sharded, with a master copy. FSDP's are f32. */
bool hb_titan_is_zero3(const struct hb_spec *spec);
/* Models of Hugging Face (ZeRO-3, GRPO) write RMSNorm out, whatever torch has. */
bool hb_titan_norms_fused(const struct hb_spec *spec);
/* Sequences of a microbatch that a device has. */
int64_t hb_titan_sequences(const struct hb_spec *spec);
void hb_titan_lower(struct hb_tape *t, const struct hb_spec *spec, const struct hb_rank_ask *ask);

#endif
