/* Finds what compilers and allocators say about memory in a log of any size and any bytes:
 * dates, `W0000 ...`, `[rank3]:`, frames and colour codes around a message do not matter, nor do
 * messages that were quoted, escaped ("\n" as two characters) or wrapped. Memory is bounded: of
 * each kind of message one is kept (see the policies in log.c), the others are counted.
 * What is a message is said by the tables in log_xla.c, log_bfc.c, log_torch.c, log_other.c,
 * log_run.c and log_program.c, and by the grammar in log_any.c. */
#ifndef HB_SIM_HLO_LOG_H
#define HB_SIM_HLO_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/hlo/evidence.h"

struct hb_arena;

/* Kinds of message: name in JSON. */
#define HB_LOG_KINDS(X)                                                                            \
    X(REMAT, "rematerialization")  /* XLA's rematerialization warning */                           \
    X(TPU, "tpu_compile")          /* XLA:TPU: the program does not fit */                         \
    X(TPU_SCOPED, "tpu_scoped")    /* an on-chip memory is full */                                 \
    X(TPU_ALLOC, "tpu_allocation") /* XLA:TPU: one allocation above the memory's size */           \
    X(TPU_BUFFER, "tpu_buffer")    /* TPU runtime: no room for a buffer */                         \
    X(TPU_PROGRAM, "tpu_program")  /* TPU runtime: no room to load a program */                    \
    X(TUNER, "xla_autotuner") /* XLA:GPU's autotuner: no kernel that was tried could be run */     \
    X(XLA_ALLOC, "xla_allocation")  /* XLA runtime: an allocation failed */                        \
    X(BUFFERS, "buffer_assignment") /* XLA's buffer assignment */                                  \
    X(BFC, "bfc")                   /* BFC allocator: out of memory */                             \
    X(BFC_SOFT, "bfc_warning")      /* BFC allocator: a request that was given up without harm */  \
    X(BFC_DUMP, "bfc_dump")         /* BFC allocator's dump */                                     \
    X(STATS, "allocator_stats")     /* allocator statistics */                                     \
    X(ASYNC, "cuda_async")          /* cudaMallocAsync allocator: out of memory */                 \
    X(DRIVER, "driver_allocation")  /* the driver refused an allocation */                         \
    X(PLAIN, "driver_error")        /* out of memory, as the driver says it */                     \
    X(ANALYSIS, "memory_analysis")  /* memory_analysis() of a compiled program */                  \
    X(MAXTEXT, "maxtext")           /* MaxText's memory line */                                    \
    X(TORCH, "torch_oom")           /* PyTorch: out of memory */                                   \
    X(TORCH_CORRUPT, "torch_corrupt_size") /* PyTorch: an absurd size was asked for */             \
    X(TORCH_STATS, "torch_stats")          /* PyTorch's memory statistics */                       \
    X(LIBRARY, "library")                  /* cuBLAS, cuDNN, ...: no room for a workspace */       \
    X(NCCL, "nccl")                        /* NCCL/RCCL: out of memory */                          \
    X(GRAPH, "tf_oom")                     /* TensorFlow: a tensor found no room */                \
    X(GATHER, "host_gather")               /* an array gathered over all processes */              \
    X(RESHARD, "reshard")        /* XLA: involuntary full rematerialization of a sharded tensor */ \
    X(CORRUPT, "corrupt_size")   /* an absurd size was asked for */                                \
    X(SERVE, "serving_cache")    /* a server: no room for the cache of keys and values */          \
    X(TACTIC, "tensorrt_tactic") /* TensorRT: a tactic passed over for want of memory */           \
    X(RUNTIME, "runtime_allocation") /* a runtime: a buffer found no room */                       \
    X(HOST, "host_oom")              /* the host's memory ran out */                               \
    X(ANY, "other_refusal")          /* out of memory, in other words */                           \
    X(FAULT, "fault")                /* a fault that is no lack of memory */

enum hb_log_kind {
#define HB_ENUM(name, key) HB_LOG_##name,
    HB_LOG_KINDS(HB_ENUM)
#undef HB_ENUM
        HB_LOG_KIND_COUNT
};

/* Figures of a message; bytes unless the name ends in _count or _ordinal. */
#define HB_LOG_FACTS(X)                                                                            \
    X(ASKED, "asked_bytes")                                                                        \
    X(NEEDED, "needed_bytes")                                                                      \
    X(CAPACITY, "capacity_bytes")                                                                  \
    X(OVER, "over_bytes")                                                                          \
    X(FREE, "free_bytes")                                                                          \
    X(RESERVED, "reserved_bytes")                                                                  \
    X(RESERVABLE, "reservable_bytes")                                                              \
    X(PROGRAM, "program_bytes")                                                                    \
    X(ARGUMENT, "argument_bytes")                                                                  \
    X(OUTPUT, "output_bytes")                                                                      \
    X(ALIAS, "alias_bytes")                                                                        \
    X(TEMP, "temp_bytes")                                                                          \
    X(CONSTANT, "constant_bytes")                                                                  \
    X(CODE, "code_bytes")                                                                          \
    X(TOTAL, "total_bytes")                                                                        \
    X(FRAGMENTATION, "fragmentation_bytes")                                                        \
    X(TEMP_FRAGMENTATION, "temp_fragmentation_bytes")                                              \
    X(UNPADDED, "unpadded_bytes")                                                                  \
    X(PADDED, "padded_bytes")                                                                      \
    X(HOST_ARGUMENT, "host_argument_bytes")                                                        \
    X(HOST_OUTPUT, "host_output_bytes")                                                            \
    X(HOST_ALIAS, "host_alias_bytes")                                                              \
    X(HOST_TEMP, "host_temp_bytes")                                                                \
    X(TARGET, "target_bytes")                                                                      \
    X(REACHED, "reached_bytes")                                                                    \
    X(ORIGINAL, "original_bytes")                                                                  \
    X(IN_USE, "in_use_bytes")                                                                      \
    X(PEAK, "peak_bytes")                                                                          \
    X(LARGEST, "largest_allocation_bytes")                                                         \
    X(LARGEST_FREE, "largest_free_bytes")                                                          \
    X(BIN_FREE, "bin_free_bytes")                                                                  \
    X(BIN_LARGEST, "bin_largest_free_bytes")                                                       \
    X(LIMIT, "limit_bytes")                                                                        \
    X(POOL, "pool_bytes")                                                                          \
    X(UNALLOCATED, "unallocated_bytes")                                                            \
    X(ALLOWED, "allowed_bytes")                                                                    \
    X(PROCESS, "process_bytes")                                                                    \
    X(OTHERS, "other_processes_bytes")                                                             \
    X(LEAST_OTHER, "smallest_process_bytes")                                                       \
    X(MOST_OTHER, "largest_process_bytes")                                                         \
    X(ALLOCATED, "allocated_bytes")                                                                \
    X(PEAK_ALLOCATED, "peak_allocated_bytes")                                                      \
    X(ACTIVE, "active_bytes")                                                                      \
    X(PEAK_ACTIVE, "peak_active_bytes")                                                            \
    X(REQUESTED, "requested_bytes")                                                                \
    X(PEAK_RESERVED, "peak_reserved_bytes")                                                        \
    X(UNRELEASABLE, "unreleasable_bytes")                                                          \
    X(POOLS, "private_pools_bytes")                                                                \
    X(TENSORCORE, "tensorcore_bytes")                                                              \
    X(SPARSECORE, "sparsecore_bytes")                                                              \
    X(RESIDENT, "resident_bytes")                                                                  \
    X(ALLOCS, "allocation_count")                                                                  \
    X(BINS, "bins")                                                                                \
    X(FREE_CHUNKS, "free_chunk_count")                                                             \
    X(OOMS, "oom_count")                                                                           \
    X(RETRIES, "retry_count")                                                                      \
    X(DEVICE, "device_ordinal")

enum hb_log_fact {
#define HB_ENUM(name, key) HB_FACT_##name,
    HB_LOG_FACTS(HB_ENUM)
#undef HB_ENUM
        HB_FACT_COUNT
};

/* What the log tells of the run itself, as it stood there. */
enum hb_log_setting {
    HB_SET_MODEL,
    HB_SET_DEVICE,
    HB_SET_DEVICES,
    HB_SET_PROCESSES,
    HB_SET_SEQ,
    HB_SET_GLOBAL_BATCH,
    HB_SET_DEVICE_BATCH,
    HB_SET_ACCUMULATE,
    HB_SET_REMAT,
    HB_SET_DATA,
    HB_SET_FSDP,
    HB_SET_TENSOR,
    HB_SET_SEQUENCE,
    HB_SET_EXPERT,
    HB_SET_PIPELINE,
    HB_SET_COUNT
};

/* Frameworks that a log can be told to come from, most telling first. */
#define HB_LOG_FRAMEWORKS(X)                                                                       \
    X(MAXTEXT, "maxtext")                                                                          \
    X(LEVANTER, "levanter")                                                                        \
    X(TORCHTITAN, "torchtitan")                                                                    \
    X(MEGATRON, "megatron")                                                                        \
    X(DEEPSPEED, "deepspeed")                                                                      \
    X(TORCHTUNE, "torchtune")                                                                      \
    X(JAX, "jax")                                                                                  \
    X(TORCH, "torch")                                                                              \
    X(TENSORFLOW, "tensorflow")                                                                    \
    X(TENSORRT, "tensorrt")                                                                        \
    X(GGML, "llama.cpp")                                                                           \
    X(ONNX, "onnxruntime")

enum hb_log_framework {
#define HB_ENUM(name, key) HB_FW_LOG_##name,
    HB_LOG_FRAMEWORKS(HB_ENUM)
#undef HB_ENUM
        HB_FW_LOG_COUNT
};

/* What the words around messages tell of the program. */
enum hb_log_mark {
    HB_MARK_STEP_NAMED, /* a compiled program is called a step of training */
    HB_MARK_RUN_NAMED,  /* ... what runs a model */
    HB_MARK_NO_GRADS, /* a frame of PyTorch's no_grad(), of an evaluation or an optimizer's step */
    HB_MARK_TPU,
    HB_MARK_METAL,  /* Apple's devices, of which no server takes a share */
    HB_MARK_SERVES, /* a server of models */
    HB_MARK_SHARE,  /* somebody advises to lower a server's share of the device */
    HB_MARK_LOADS,  /* weights are being loaded */
    HB_MARK_SCORES, /* attention's scores or mask are made */
    HB_MARK_LOGITS,
    HB_MARK_WHOLE_LOGITS, /* somebody says that they are made for all words and tokens */
    HB_MARK_PLACES,       /* a model is put onto its device: nothing of a batch is there yet */
    HB_MARK_UNSHARDED,    /* FSDP says that it divides nothing */
    HB_MARK_MANY,         /* several processes train together */
    HB_MARK_ONE,          /* weights are put onto one device by its name */
    HB_MARK_HELD,         /* a process that is gone or somebody's holds the device */
    HB_MARK_DEVICE_ALLOC, /* C++'s bad_alloc, thrown by the device's allocator */
    HB_MARK_IMAGES,       /* convolutions and samplers of images */
    HB_MARK_INPUTS,       /* how large an input is */
    HB_MARK_NO_ENGINE,    /* TensorRT gave up */
    HB_MARK_BACKWARD,
    HB_MARK_UPDATES,    /* the optimizer's step */
    HB_MARK_SAVES,      /* a checkpoint is written */
    HB_MARK_GATHERS,    /* FSDP's state is gathered whole, to load or to save it */
    HB_MARK_PIECES,     /* somebody says that it is fragmentation */
    HB_MARK_NARRATED,   /* somebody tells of himself: "I tried ..." */
    HB_MARK_FILLS_HOST, /* what fills the host's memory */
    HB_MARK_HOST,       /* the host's memory is named */
    HB_MARK_OF_DEVICE,  /* a refusal that names a device */
    HB_MARK_DEVICE,     /* a device, or what only runs on one, is named anywhere */
    HB_MARK_CHANGE,     /* of a program's source: what is done about memory, not what happened */
    HB_MARK_DEFINES,    /* it is said what such a refusal is, whoever meets it */
    HB_MARK_ENDED_BY,   /* what ends processes, but for memory: a deadline, a probe, somebody */
    HB_MARK_PRINTED,    /* a refusal, or a process that was ended, is a line of its own */
    HB_MARK_SHOWN,      /* ... that a program printed, no title */
    HB_MARK_COUNT
};

enum {
    HB_LOG_ITEMS = 48, /* entries of a list of buffers that are kept */
    HB_LOG_OP_CAP = 200,
    HB_LOG_SOURCE_CAP = 160,
    HB_LOG_SHAPE_CAP = 112,
    HB_LOG_WORD_CAP = 96,
    HB_LOG_RANKS = 4096 /* ranks beyond are not told apart */
};

/* Names that messages carry for the story: of the host an allocation that was refused, a worker
 * that nears its share; of a server its largest batch; of a driver that not even a context was
 * made; of anybody that a limit refused; of what failed that it was waited for in vain. */
#define HB_LOG_REFUSED "allocation"
#define HB_LOG_ENDED   "status" /* of a container that was ended, for what is not said */
#define HB_LOG_SIGNAL  "signal" /* of a process, that ended it, likewise */
#define HB_LOG_WORKER  "worker"
#define HB_LOG_WARM_UP "warm-up"
#define HB_LOG_CONTEXT "context"
#define HB_LOG_LIMIT   "limit"
#define HB_LOG_TIMEOUT "timeout"

/* An entry of "Largest program allocations" or "Peak buffers". */
struct hb_log_item {
    int64_t bytes;         /* as laid out */
    int64_t padding_bytes; /* of it, added by the layout; 0 where not said */
    char op[HB_LOG_OP_CAP];
    char source[HB_LOG_SOURCE_CAP]; /* "file:line"; "" */
    char shape[HB_LOG_SHAPE_CAP];
    char label[HB_LOG_WORD_CAP]; /* XLA's own name of the instruction */
    char type[HB_LOG_WORD_CAP];  /* "HLO temp", "argument" */
};

struct hb_log_message {
    int64_t times;         /* messages of this kind in the log; 0: none, the rest is undefined */
    int64_t line;          /* where the one that is kept begins; counts from 1 */
    enum hb_report report; /* what there is to show for it */
    int64_t fact[HB_FACT_COUNT]; /* -1: not said */
    int64_t step[HB_FACT_COUNT]; /* bytes of the last printed digit; 1: exact */
    char name[HB_LOG_WORD_CAP];  /* allocator, executable, memory space, tensor; "" */
    struct hb_log_item *items;   /* null where item_count is 0 */
    int item_count;              /* kept */
    int items_seen;
};

struct hb_log {
    struct hb_log_message message[HB_LOG_KIND_COUNT];
    char setting[HB_SET_COUNT][HB_LOG_WORD_CAP]; /* "": not said */
    int64_t framework[HB_FW_LOG_COUNT];          /* times that its mark was seen */
    int64_t mark[HB_MARK_COUNT];                 /* times that its words were seen */
    struct hb_evidence evidence;
    int64_t device_used_bytes; /* of the first device in a table of nvidia-smi */
    int64_t device_bytes;      /* 0: there is none */
    int64_t card_bytes;        /* what a driver found on the device; 0: not said */
    int64_t pool_bytes;        /* what TensorFlow gives its pool; 0: not said */
    int64_t
        limit_bytes; /* of the host's memory, that a container or a job was given; 0: not said */
    int64_t denied_line;   /* that a message tells no lack of memory: "misleading"; 0: nowhere */
    int64_t glossary_line; /* where a table of what words mean begins; 0: nowhere */
    int64_t limits_line;   /* where a list of such limits begins; 0: nowhere */
    int64_t raised_line;   /* where somebody advises to raise them; 0: nowhere */
    int64_t device_batch;  /* the largest batch of a device that is told; 0: none */
    int64_t any_batch;     /* ... of nobody says what */
    int64_t lines;
    int64_t bytes;
    int rank_count; /* ranks that wrote lines with messages; 0: none said */
    int kinds_seen;
};

/* Where the text comes from: up to cap bytes into text, 0 at the end. */
struct hb_log_source {
    size_t (*read)(void *context, char *text, size_t cap);
    void *context;
};

/* Reads to the end. Never fails: what is not known is passed over. */
void hb_log_read(struct hb_arena *arena, struct hb_log_source source, struct hb_log *out_log);

const char *hb_log_kind_key(enum hb_log_kind kind);
const char *hb_log_fact_key(enum hb_log_fact fact);
const char *hb_log_framework_key(enum hb_log_framework framework);
/* The figure, or -1 where the log has no such message or the message does not say. */
int64_t hb_log_fact(const struct hb_log *log, enum hb_log_kind kind, enum hb_log_fact fact);
bool hb_log_seen(const struct hb_log *log, enum hb_log_kind kind);
/* Whether all that is told of a process is that it was ended. */
bool hb_log_is_ended(const struct hb_log_message *m);
/* Of a kind that prose may tell, not only lines that a program prints. */
static inline bool hb_log_is_prose(enum hb_log_kind kind)
{
    return kind == HB_LOG_PLAIN || kind == HB_LOG_ANY || kind == HB_LOG_HOST;
}
/* What a message of kind asked for, exact where another message tells the same request exactly
 * ("262.56GiB" and "281923031072 bytes"); -1 where it does not say. */
int64_t hb_log_asked(const struct hb_log *log, enum hb_log_kind kind);

#endif
