/* The one intermediate form: a training step (or its loading, or a compiler's dump) as a list of
 * ops in schedule order over named buffers. Three front ends make it (lower, sim/hlo, load);
 * everything after it does not know which one did.
 *
 * Loops are not unrolled: the ops of a body stand once, between first_op and end_op of its loop,
 * and a buffer that a body makes is alive only inside one trip. What a trip carries or stacks is
 * a buffer that is written before the loop (or by HB_OP_MARK at its start) and read after it.
 *
 *   op:      0    1    2 [ 3    4    5 ] 6    7        [ ] = loop 0, trips = 32
 *   stack         |-------------------------|          made before, read after: alive throughout
 *   body tmp           .  |----|                       alive at 3..4 of every trip
 *
 * A buffer lives from its first writer to its last reader, both included. Arguments live from
 * the start; outputs to the end. Graph parts refer to each other by index, which growth keeps. */
#ifndef HB_SIM_IR_PROGRAM_H
#define HB_SIM_IR_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "models/dtype.h"
#include "models/spec.h"
#include "sim/ir/shape.h"

struct hb_arena;

#define HB_NONE UINT32_MAX

/* The kinds in which the bytes at the peak are told; they sum to the peak. */
#define HB_CATEGORIES(X)                                                                           \
    X(PARAMS, "params")                                                                            \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(GRADIENTS, "gradients")                                                                      \
    X(SAVED, "saved")                                                                              \
    X(WORKING, "working")                                                                          \
    X(LOGITS, "logits")                                                                            \
    X(COMMUNICATION, "communication")                                                              \
    X(PADDING, "padding")                                                                          \
    X(FRAGMENTATION, "fragmentation")                                                              \
    X(EMA, "ema")                                                                                  \
    X(INPUTS, "inputs")                                                                            \
    X(RUNTIME, "runtime")

enum hb_category {
#define HB_ENUM(name, text) HB_CAT_##name,
    HB_CATEGORIES(HB_ENUM)
#undef HB_ENUM
        HB_CATEGORY_COUNT
};

enum hb_space {
    HB_SPACE_HBM,
    HB_SPACE_HOST,
    HB_SPACE_CHIP /* on-chip: in no HBM figure */
};

#define HB_PHASES(X)                                                                               \
    X(SETUP, "setup")                                                                              \
    X(FORWARD, "forward")                                                                          \
    X(LOSS, "loss")                                                                                \
    X(BACKWARD, "backward")                                                                        \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(LOAD, "load")

enum hb_phase {
#define HB_ENUM(name, text) HB_PHASE_##name,
    HB_PHASES(HB_ENUM)
#undef HB_ENUM
        HB_PHASE_COUNT
};

/* What an op does: this decides how its time is counted, never what it holds. */
#define HB_OP_KINDS(X)                                                                             \
    X(MARK, "mark") /* takes no time: pins the life of a buffer */                                 \
    X(MATMUL, "matmul")                                                                            \
    X(ATTENTION, "attention") /* a fused kernel over scores */                                     \
    X(ELEMENTWISE, "elementwise")                                                                  \
    X(REDUCE, "reduce")                                                                            \
    X(GATHER, "gather") /* embedding rows, sorted tokens, scatters */                              \
    X(COPY, "copy")                                                                                \
    X(ALL_GATHER, "all-gather")                                                                    \
    X(REDUCE_SCATTER, "reduce-scatter")                                                            \
    X(ALL_REDUCE, "all-reduce")                                                                    \
    X(ALL_TO_ALL, "all-to-all")                                                                    \
    X(PERMUTE, "collective-permute")                                                               \
    X(HOST_COPY, "host-copy")                                                                      \
    X(DONE, "done")   /* waits for the asynchronous op `start` */                                  \
    X(OTHER, "other") /* read from a dump */

enum hb_op_kind {
#define HB_ENUM(name, text) HB_OP_##name,
    HB_OP_KINDS(HB_ENUM)
#undef HB_ENUM
        HB_OP_KIND_COUNT
};

/* Streams run side by side, each in the order of its ops. */
enum hb_stream {
    HB_STREAM_COMPUTE,
    HB_STREAM_D2H,
    HB_STREAM_H2D,
    HB_STREAM_COLLECTIVE, /* + enum hb_axis: one for each axis of the mesh */
    HB_STREAM_COUNT = HB_STREAM_COLLECTIVE + HB_AX_COUNT
};

/* Whose flash kernel attention runs: the vendor's library (cuDNN, Transformer Engine, AITER),
 * torch's own (FlashAttention-2, AOTriton), the first one in Triton. */
enum hb_flash_kernel { HB_FLASH_LIBRARY, HB_FLASH_TORCH, HB_FLASH_TRITON };

enum { HB_MAX_RANK = 6 };

struct hb_buf {
    const char *name;         /* "blocks[1].mlp.gate, saved for backward" */
    const char *why;          /* the rule that put it there; "" where the name says it */
    int64_t bytes;            /* as placed: padded to tiles, before the heap's alignment */
    int64_t plain_bytes;      /* without padding; <= bytes */
    int64_t dim[HB_MAX_RANK]; /* per device, as the compiler sees it */
    int64_t slices; /* of a stack: parts that ops inside its loop touch one by one; 0: none */
    int rank;       /* 0 with plain_bytes > element: shape not known */
    enum hb_dtype dtype : 8;
    enum hb_tiling tiling : 8; /* bytes = hb_shape_bytes of dim, dtype and tiling */
    enum hb_category category : 8;
    enum hb_space space : 8;
    uint32_t alias_of; /* lies in this buffer's memory (an earlier index); HB_NONE: its own */
    bool renews;       /* an alias: what a loop's next trip finds there, once the last was read */
    bool argument;     /* given by the caller, alive from the start */
    bool output;       /* handed back, alive to the end */
    bool fenced;       /* passes a barrier of the step's own: the compiler makes it once */
    bool unseen;       /* comes behind the pass that makes values again */
    bool early;        /* there as soon as there is memory for it */
    uint8_t kept_by;   /* a layer's value: mask of 1u << enum hb_policy (saved.h); 0: not known */
};

struct hb_op {
    const char *name;
    enum hb_op_kind kind : 8;
    enum hb_phase phase : 8;
    enum hb_dtype dtype : 8; /* of the arithmetic: picks the peak rate */
    enum hb_axis axis : 8;   /* of a collective */
    bool over_data;          /* of a collective: then its result is summed over mesh.data, too */
    bool grouped; /* rows, cols, depth are those of one of several products in one kernel */
    bool adjoint; /* of attention: the kernel of the backward pass, not the other one run again */
    enum hb_stream stream;
    uint32_t refs_at; /* into program.refs: reads, then writes */
    uint32_t read_count, write_count;
    uint32_t start; /* of a DONE: the op that it waits for; else HB_NONE */
    uint32_t loop;  /* innermost loop around it; HB_NONE */
    double flops;
    double moved_bytes; /* read and written in HBM (or over the host link) */
    double sent_bytes;  /* payload of a collective: the bytes of the full (gathered) tensor */
    int64_t group;      /* devices that take part; 0: no collective */
    int64_t rows, cols, depth; /* of a matmul, for the efficiency curve; 0: not known */
    double batch;              /* products side by side, >= 1 */
};

/* When a buffer is there. */
struct hb_live {
    uint32_t buf;       /* a root: not an alias */
    int32_t start, end; /* ops that make it (-1: argument) and need it last (op_count: output) */
    uint8_t pool;       /* of a caching allocator: the stream that it was asked for on */
    int64_t bytes;      /* the largest of its aliases */
};

struct hb_loop {
    const char *name;
    uint32_t first_op, end_op; /* one past its last op */
    uint32_t parent;           /* HB_NONE: outermost */
    int64_t trips;             /* >= 1 */
    bool ordered;              /* its own ops go as XLA's schedulers have them (link.h) */
};

/* PyTorch's caching allocator, where it serves the program: see sim/engine/heap_cuda.h. */
struct hb_caching {
    bool on;
    bool expandable;         /* segments grow */
    bool reserved;           /* the peak that is told is that of what it holds from the device */
    int64_t limit_bytes;     /* what the device gives in all; 0: no limit */
    int64_t max_split_bytes; /* larger blocks are not split; 0: all are */
    double collect_above;    /* share of the limit; 0: nothing is collected */
    bool captures;           /* what is cached goes back to the device before the second step */
    uint32_t second_op;      /* first op of the second step */
};

struct hb_program {
    struct hb_arena *arena;
    const char *name;
    enum hb_compiler compiler;
    enum hb_flash_kernel flash; /* of attention */
    int64_t mesh[HB_AX_COUNT];  /* devices along each axis; 0: not known, the groups of ops tell */
    struct hb_buf *bufs;
    uint32_t buf_count, buf_cap, life_cap;
    struct hb_op *ops;
    uint32_t op_count, op_cap;
    struct hb_loop *loops;
    uint32_t loop_count, loop_cap;
    uint32_t *refs;
    uint32_t ref_count, ref_cap;
    uint32_t open_loop;           /* while building: innermost loop that is open */
    bool outputs_lend;            /* temporaries may lie in outputs that are not there yet */
    bool labels_alone;            /* a microbatch's labels are in no fusion of the loss */
    bool spreads;                 /* it has ragged products over all experts (spread.h) */
    enum hb_share share;          /* under which it was lowered: asked where it stayed as written */
    int64_t argument_extra_bytes; /* index tables and the like, in no buffer */
    int64_t repack_bytes;         /* above it the heap is packed anew, by size; 0: never */
    int64_t filled_bytes;         /* so much of temporaries is filled with what could wait */
    struct hb_caching caching;
    struct hb_live *lives; /* with it: of each buffer, by where it starts, arguments anywhere */
};

void hb_program_init(struct hb_program *p, struct hb_arena *arena, const char *name,
                     enum hb_compiler compiler);
/* Room for an op for each of so many buffers, and two references, in one that is still empty. */
void hb_program_reserve(struct hb_program *p, uint32_t bufs);
/* Adds a buffer or an op; returns its index. The op takes the open loop as its own. */
uint32_t hb_program_add_buf(struct hb_program *p, struct hb_buf buf);
uint32_t hb_program_new_buf(struct hb_program *p); /* its caller fills it */
uint32_t hb_program_add_op(struct hb_program *p, struct hb_op op);
struct hb_op *hb_program_new_op(struct hb_program *p); /* its caller fills it and puts it */
/* The same of an op with what it reads and writes, as many as it says. */
uint32_t hb_program_put_op(struct hb_program *p, const struct hb_op *op, const uint32_t *reads,
                           const uint32_t *writes);
/* For the op added last: what it reads, then what it writes (all reads before the first write). */
void hb_program_read(struct hb_program *p, uint32_t buf);
void hb_program_write(struct hb_program *p, uint32_t buf);
uint32_t hb_program_open_loop(struct hb_program *p, const char *name, int64_t trips);
void hb_program_close_loop(struct hb_program *p, uint32_t loop);
/* The buffer whose memory it lies in: follows alias_of to its end. */
uint32_t hb_program_root(const struct hb_program *p, uint32_t buf);
/* Of every buffer: a model of a thousand layers has aliases of aliases a thousand deep. */
uint32_t *hb_program_roots(struct hb_arena *arena, const struct hb_program *p);
/* The buffers that an op writes; who reads them stands before. */
static inline const uint32_t *hb_op_writes(const struct hb_program *p, const struct hb_op *op)
{
    return p->refs + op->refs_at + op->read_count;
}
/* How often the op runs in a step: the trips of the loops around it. */
int64_t hb_program_times(const struct hb_program *p, const struct hb_op *op);
/* Whether it takes time on the compute stream. */
bool hb_op_is_work(const struct hb_op *op);

const char *hb_category_name(enum hb_category category);
const char *hb_phase_name(enum hb_phase phase);
const char *hb_op_kind_name(enum hb_op_kind kind);
const char *hb_stream_name(enum hb_stream stream); /* "compute", "device-to-host", "fsdp" ... */

#endif
