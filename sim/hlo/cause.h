/* Why memory was refused: one decision for the messages of all compilers, allocators and runtimes,
 * by arithmetic on what their figures are: what was asked for, what there was, who held the rest.
 * First what is not the program's (a card set smaller, a limit, memory that others hold or that
 * lies in pieces): it is the cause if without it the request would have been met. Then the part of
 * the program without which it would fit, or that is most of it. Last its size. */
#ifndef HB_SIM_HLO_CAUSE_H
#define HB_SIM_HLO_CAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/hlo/story.h"

/* Above any device of today, and what no program means. */
#define HB_ABSURD_BYTES ((int64_t)2 << 40)

/* More than a device has that is to be had today. */
#define HB_LARGEST_BYTES ((int64_t)300 << 30)

/* Bytes; -1: not told. A sentence names one as {asked}. */
#define HB_LEDGER(X)                                                                               \
    X(asked)     /* one request, or all that a program keeps */                                    \
    X(capacity)  /* of the device, or of the pool that refused */                                  \
    X(card)      /* what the device is set to have */                                              \
    X(allowed)   /* a limit below the capacity */                                                  \
    X(room)      /* what was free for the request, told or reckoned */                             \
    X(piece)     /* the largest free piece */                                                      \
    X(live)      /* used by this program */                                                        \
    X(idle)      /* held by its allocator, used by nothing */                                      \
    X(others)    /* held by other processes */                                                     \
    X(lost)      /* neither free nor this program's, and nobody says whose */                      \
    X(padding)   /* of the program: added by layouts */                                            \
    X(packing)   /* of the program: left unused between buffers */                                 \
    X(buffer)    /* of the program: the largest buffer that it makes */                            \
    X(arguments) /* of the program */                                                              \
    X(outputs)   /* of the program: those that take no argument's place */                         \
    X(total)     /* of the program: all of which these are parts */                                \
    X(copies)    /* the request, where one array's copies of all processes are gathered */

struct hb_ledger {
#define HB_FIELD(name) int64_t name;
    HB_LEDGER(HB_FIELD)
#undef HB_FIELD
    int64_t blur;   /* figures are rounded to this */
    bool one_piece; /* the allocator could give nothing else than one piece of its pool */
    bool tensor;    /* the request is one tensor's */
    bool named;     /* the text says what was refused, if not how large it is */
    bool fresh;     /* the program held nothing yet */
    bool share;     /* the program, a server, was given a share of the device */
    bool pieces;    /* the text says that free memory lies in pieces */
    bool limited;   /* the text says that a limit refused */
    bool reckoned;  /* room is not told */
    bool context;   /* the driver had no room for a context of this process */
    bool loads;     /* weights are being loaded */
    bool updates;   /* the optimizer's states are being made */
};

/* What decided: its cause, and the sentence that says so. */
#define HB_REASONS(X)                                                                              \
    X(CARD, LIMIT,                                                                                 \
      "The card is set to {card}, of which the program is shown {capacity}: a setting of driver "  \
      "or kernel, not the model.")                                                                 \
    X(ABSURD, CORRUPT,                                                                             \
      "{asked} is more than any device has and no program's wish: a size overflowed, a kernel "    \
      "gave back garbage for one (mostly an extension that was compiled for another GPU or CUDA "  \
      "than runs it), or the driver told a free memory that it does not have.")                    \
    X(COPIES, REPLICATION, "")                                                                     \
    X(LIMITED, LIMIT,                                                                              \
      "A limit refused, not what was left: the most that an arena or a pool may hold "             \
      "(gpu_mem_limit, max_mem, maximum_pool_size), or the largest size of one allocation.")       \
    X(SERVER, LIMIT,                                                                               \
      "Weights and the largest batch are laid out first; what the server's share of the device "   \
      "leaves is for the cache. This is a setting, or a model that is too large for the device.")  \
    X(SHARE, LIMIT,                                                                                \
      "The device had {room} free, but the program may use only {allowed}: "                       \
      "set_per_process_memory_fraction, or a scheduler's share.")                                  \
    X(LARGEST, LIMIT,                                                                              \
      "This platform gives at most {allowed} in one piece. On Intel Arc "                          \
      "UR_L0_USE_RELAXED_ALLOCATION_LIMITS=1 lifts that.")                                         \
    X(ROOM, LIMIT,                                                                                 \
      "{room} were free, more than was asked: the driver refused for another reason (number of "   \
      "mappings, a limit on one allocation, on locked or shared memory, a share of the device), "  \
      "or the memory lay in pieces or was taken in between.")                                      \
    X(RECKONED, LIMIT,                                                                             \
      "PyTorch holds {live} and little more of the device's {capacity}, so there should have "     \
      "been room: a largest size of one allocation (4 GiB on Intel Arc unless "                    \
      "UR_L0_USE_RELAXED_ALLOCATION_LIMITS=1), or memory that others hold.")                       \
    X(PIECE, FRAGMENTATION,                                                                        \
      "{room} were free in the pool, but the largest piece was {piece}: the free memory is "       \
      "scattered between chunks in use.")                                                          \
    X(PIECES, FRAGMENTATION,                                                                       \
      "{room} were free: either not in one piece, or taken between that print and the failure.")   \
    X(IDLE, FRAGMENTATION,                                                                         \
      "PyTorch holds {idle} that no tensor uses, more than the {asked} that were asked: it lies "  \
      "in pieces too small for the request.")                                                      \
    X(SAID, FRAGMENTATION, "The log has no figures of it, but says that memory was fragmented.")   \
    X(LOST, OTHERS,                                                                                \
      "{lost} of the device are neither free nor this program's: another process, one of an "      \
      "earlier start, or another library in this one (NCCL, contexts) holds them.")                \
    X(OTHERS, OTHERS,                                                                              \
      "Other processes hold {others} of this device; without them the request would have been "    \
      "met.")                                                                                      \
    X(CONTEXT, OTHERS,                                                                             \
      "The driver found no room even for a context of its own: other processes hold the device.")  \
    X(ABOVE, GIANT,                                                                                \
      "One tensor of {asked} is larger than the whole memory: a shape that went wrong, scores or " \
      "logits of a long sequence, or a tensor that must be sharded. No setting of the allocator "  \
      "helps.")                                                                                    \
    X(PADDING, PADDING,                                                                            \
      "{padding} of what is listed is padding: shapes whose last dimensions do not fill the "      \
      "tiles (8 x 128).")                                                                          \
    X(HALF, GIANT,                                                                                 \
      "One buffer of {buffer} is more than half of the memory: more often a missing sharding or "  \
      "a tensor that need not exist than a model that is too large.")                              \
    X(BUFFER, GIANT, "One buffer of {buffer} is most of the request.")                             \
    X(PACKING, FRAGMENTATION, "Without the {packing} that packing leaves unused it would fit.")    \
    X(ARGUMENTS, STATE,                                                                            \
      "The arguments alone (parameters, optimizer states, inputs) take {arguments}, {part} of "    \
      "{whole}: little is left for the step itself.")                                              \
    X(OUTPUTS, OUTPUTS,                                                                            \
      "The outputs alone take {outputs}, {part} of all: results that are returned whole, or a "    \
      "state that does not take its arguments' place.")                                            \
    X(LOADS, STATE,                                                                                \
      "It failed while weights were loaded or made: they are more than what was left for them.")   \
    X(UPDATES, STATE,                                                                              \
      "It failed in the optimizer's step: its states, which the first step makes, come on top of " \
      "weights and gradients; activations are gone by then.")                                      \
    X(TENSOR, GIANT,                                                                               \
      "A single tensor of {asked}, {part} of the memory: logits, attention scores or a flattened " \
      "state.")                                                                                    \
    X(LARGE, GIANT,                                                                                \
      "A single tensor of {asked}, a large part of any device: logits, attention scores or a "     \
      "flattened state.")                                                                          \
    X(NOTHING, UNKNOWN, "The log has nothing that tells how much was wanted, or by what.")         \
    X(POOL, SIZE, "Even an empty pool of {capacity} could not hold it.")                           \
    X(PROGRAM, SIZE,                                                                               \
      "What lives at the same time is too much; no single buffer, padding or fragmentation in "    \
      "the log explains the excess.")                                                              \
    X(LIVE, SIZE,                                                                                  \
      "Tensors take {live}, {part} of the device: what is reserved beside them would not help "    \
      "for long.")                                                                                 \
    X(LITTLE, SIZE,                                                                                \
      "So little was asked that the memory was full before: by the state, by what earlier "        \
      "programs left, or by another process.")                                                     \
    X(HELD, SIZE,                                                                                  \
      "What is held already (weights, caches, buffers that are still referenced, other programs) " \
      "left too little for the request.")

enum hb_reason {
#define HB_ENUM(name, cause, text) HB_REASON_##name,
    HB_REASONS(HB_ENUM)
#undef HB_ENUM
        HB_REASON_COUNT
};

struct hb_ledger hb_ledger_untold(void);
/* Pure arithmetic. */
enum hb_reason hb_ledger_reason(const struct hb_ledger *ledger);
enum hb_cause hb_reason_cause(enum hb_reason reason);
/* The sentence, with its figures. */
const char *hb_reason_text(struct hb_arena *arena, const struct hb_ledger *ledger,
                           enum hb_reason reason);

#endif
