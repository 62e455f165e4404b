/* What a user can change about the memory of a training step: in hbmsim's keys and in the words of
 * the frameworks. One table. */
#ifndef HB_SIM_HLO_KNOB_H
#define HB_SIM_HLO_KNOB_H

#include "sim/hlo/log.h"

/* Name, key in JSON, what `--set` says of it ("" where hbmsim's input has no such key). */
#define HB_KNOBS(X)                                                                                \
    X(FLASH, "flash_attention", "model.blocks[0].attention.kernel=flash",                          \
      "flash attention: the scores are never stored")                                              \
    X(LOSS_CHUNKS, "loss_chunks", "loss.chunks=8",                                                 \
      "the loss in chunks: an eighth of the logits lives at a time")                               \
    X(ONEHOT, "no_onehot", "loss.onehot=false",                                                    \
      "index instead of multiplying with a one-hot encoding")                                      \
    X(REMAT, "remat", "remat.policy=full",                                                         \
      "recompute a layer's activations in the backward pass instead of keeping them")              \
    X(BATCH, "smaller_batch", "batch.accumulate=2",                                                \
      "fewer sequences at once: smaller batch per device, or the same in more microbatches")       \
    X(SEQUENCE, "sequence_parallel", "mesh.sequence=2", "split the sequence over devices")         \
    X(FSDP, "shard_state", "mesh.fsdp=8",                                                          \
      "split parameters and optimizer states over more devices")                                   \
    X(OFFLOAD, "offload_optimizer", "optimizer.offload=pinned_host",                               \
      "keep the optimizer states in host memory between steps")                                    \
    X(MOMENTS, "smaller_moments", "optimizer.moments=[bf16,bf16]", "optimizer states in 16 bit")   \
    X(DONATE, "donate", "step.donate=true",                                                        \
      "donate the state: new parameters take the old ones' place")                                 \
    X(EXPERTS, "expert_capacity", "model.blocks[0].moe.dispatch=ragged",                           \
      "sorted (dropless) dispatch or a lower capacity for the experts")                            \
    X(GATHER, "gather_in_layer", "sharding.reshard_after_forward=true",                            \
      "gather a layer's weights when it runs, not all at once")                                    \
    X(PADDING, "align_shapes", "",                                                                 \
      "shapes that fill the tiles: the last dimension a multiple of 128, the one before of 8")     \
    X(HALO, "halo_exchange", "",                                                                   \
      "exchange slabs with a collective permute (or concatenate) instead of padding")              \
    X(CALLBACK, "build_from_callback", "load.method=callback",                                     \
      "build replicated arrays from each host's own copy, without the check over all hosts")       \
    X(SEGMENTS, "expandable_segments", "runtime.expandable_segments=true",                         \
      "let the allocator grow its segments instead of splitting fixed ones")                       \
    X(FRACTION, "larger_pool", "", "give the allocator more of the device")                        \
    X(SMALLER_POOL, "smaller_pool", "",                                                            \
      "leave more of the device to what allocates beside the framework's pool")                    \
    X(OTHERS, "free_device", "", "end the other processes on the device, or take another device")  \
    X(LIMIT, "lift_limit", "", "lift the limit that the program has set for itself")               \
    X(UNREPLICATE, "shard_tensor", "",                                                             \
      "give the large tensor a sharding: it stands whole on each device")                          \
    X(ORDER, "same_collectives", "", "make all ranks call the same collectives in the same order") \
    X(HOST_MEMORY, "host_memory", "",                                                              \
      "fewer loader workers, less pinned or offloaded memory, or a larger host")                   \
    X(SERVER, "server_share", "",                                                                  \
      "another share of the device for the server (more for its cache, less beside a trainer), "   \
      "or fewer, shorter sequences")                                                               \
    X(FEWER, "fewer_requests", "", "fewer or shorter sequences (smaller inputs) at once")          \
    X(WEIGHTS, "shard_weights", "mesh.tensor=2", "split the weights over more devices")            \
    X(QUANTIZE, "fewer_bits", "",                                                                  \
      "hold the weights in fewer bits, or a part of them in host memory")                          \
    X(RELEASE, "release_memory", "",                                                               \
      "let go of what earlier runs and copies left on the device: drop references, restart")       \
    X(BLOCKS, "smaller_blocks", "",                                                                \
      "smaller blocks or fewer stages in the kernel, or a chip with more of that memory")          \
    X(CHECKPOINT, "sharded_checkpoint", "",                                                        \
      "save and load the state in shards, or gather it in the host's memory")                      \
    X(TUNER, "no_autotuning", "",                                                                  \
      "compile without trying kernels on the device, or before the state stands there")            \
    X(WORKSPACE, "smaller_workspace", "", "give the builder a smaller workspace")                  \
    X(DRIVER, "other_driver", "",                                                                  \
      "check driver and runtime versions, and what of the device's memory they report")            \
    X(FAULT, "find_fault", "",                                                                     \
      "find the call or the rank that fails first (CUDA_LAUNCH_BLOCKING=1, compute-sanitizer)")    \
    X(DUMP, "look_closer", "",                                                                     \
      "dump the program and let hbmsim say which buffers stand at the peak")

enum hb_knob {
#define HB_ENUM(name, key, set, title) HB_KNOB_##name,
    HB_KNOBS(HB_ENUM)
#undef HB_ENUM
        HB_KNOB_COUNT
};

const char *hb_knob_key(enum hb_knob knob);
const char *hb_knob_title(enum hb_knob knob);
/* KEY=VALUE for --set; null where there is no such key. */
const char *hb_knob_set(enum hb_knob knob);
/* What to write in the framework's own words; null where nothing is known. */
const char *hb_knob_words(enum hb_knob knob, enum hb_log_framework framework);

#endif
