/* The operations of HLO (xla/hlo/ir/hlo_opcode.h) and what the buffer rules ask of them.
 * One table: name as printed, and whether it is elementwise (HloInstruction::IsElementwiseImpl). */
#ifndef HB_SIM_HLO_OPCODE_H
#define HB_SIM_HLO_OPCODE_H

#include <stdbool.h>

#include "sim/hlo/text.h"

/* Traits. */
enum {
    HB_HLO_ELEMENTWISE = 1,
    HB_HLO_CALLS = 2,     /* its computations run as part of the schedule: control flow */
    HB_HLO_COLLECTIVE = 4 /* exchanges data between devices */
};

#define HB_HLO_OPS(X)                                                                              \
    X(ABS, "abs", 1)                                                                               \
    X(ACOS, "acos", 1)                                                                             \
    X(ACOSH, "acosh", 1)                                                                           \
    X(ADD, "add", 1)                                                                               \
    X(ADD_DEPENDENCY, "add-dependency", 0)                                                         \
    X(AFTER_ALL, "after-all", 0)                                                                   \
    X(ALL_GATHER, "all-gather", 4)                                                                 \
    X(ALL_GATHER_DONE, "all-gather-done", 4)                                                       \
    X(ALL_GATHER_START, "all-gather-start", 4)                                                     \
    X(ALL_REDUCE, "all-reduce", 4)                                                                 \
    X(ALL_REDUCE_DONE, "all-reduce-done", 4)                                                       \
    X(ALL_REDUCE_START, "all-reduce-start", 4)                                                     \
    X(ALL_TO_ALL, "all-to-all", 4)                                                                 \
    X(AND, "and", 1)                                                                               \
    X(ASIN, "asin", 1)                                                                             \
    X(ASINH, "asinh", 1)                                                                           \
    X(ASYNC_DONE, "async-done", 2)                                                                 \
    X(ASYNC_START, "async-start", 2)                                                               \
    X(ASYNC_UPDATE, "async-update", 2)                                                             \
    X(ATAN, "atan", 1)                                                                             \
    X(ATAN2, "atan2", 1)                                                                           \
    X(ATANH, "atanh", 1)                                                                           \
    X(BATCH_NORM_GRAD, "batch-norm-grad", 0)                                                       \
    X(BATCH_NORM_INFERENCE, "batch-norm-inference", 0)                                             \
    X(BATCH_NORM_TRAINING, "batch-norm-training", 0)                                               \
    X(BITCAST, "bitcast", 0)                                                                       \
    X(BITCAST_CONVERT, "bitcast-convert", 1)                                                       \
    X(BROADCAST, "broadcast", 0)                                                                   \
    X(CALL, "call", 2)                                                                             \
    X(CBRT, "cbrt", 1)                                                                             \
    X(CEIL, "ceil", 1)                                                                             \
    X(CHOLESKY, "cholesky", 0)                                                                     \
    X(CLAMP, "clamp", 1)                                                                           \
    X(CLZ, "count-leading-zeros", 1)                                                               \
    X(COLLECTIVE_BROADCAST, "collective-broadcast", 4)                                             \
    X(COLLECTIVE_PERMUTE, "collective-permute", 4)                                                 \
    X(COLLECTIVE_PERMUTE_DONE, "collective-permute-done", 4)                                       \
    X(COLLECTIVE_PERMUTE_START, "collective-permute-start", 4)                                     \
    X(COLLECTIVE_REDUCE, "collective-reduce", 4)                                                   \
    X(COMPARE, "compare", 1)                                                                       \
    X(COMPLEX, "complex", 1)                                                                       \
    X(CONCATENATE, "concatenate", 0)                                                               \
    X(CONDITIONAL, "conditional", 2)                                                               \
    X(CONSTANT, "constant", 1)                                                                     \
    X(CONVERT, "convert", 1)                                                                       \
    X(CONVOLUTION, "convolution", 0)                                                               \
    X(COPY, "copy", 1)                                                                             \
    X(COPY_DONE, "copy-done", 0)                                                                   \
    X(COPY_START, "copy-start", 0)                                                                 \
    X(COSINE, "cosine", 1)                                                                         \
    X(COSH, "cosh", 1)                                                                             \
    X(CUSTOM_CALL, "custom-call", 0)                                                               \
    X(DIVIDE, "divide", 1)                                                                         \
    X(DOMAIN, "domain", 0)                                                                         \
    X(DOT, "dot", 0)                                                                               \
    X(DYNAMIC_RESHAPE, "dynamic-reshape", 0)                                                       \
    X(DYNAMIC_SLICE, "dynamic-slice", 0)                                                           \
    X(DYNAMIC_UPDATE_SLICE, "dynamic-update-slice", 0)                                             \
    X(ERF, "erf", 1)                                                                               \
    X(EXP, "exponential", 1)                                                                       \
    X(EXPM1, "exponential-minus-one", 1)                                                           \
    X(FFT, "fft", 0)                                                                               \
    X(FLOOR, "floor", 1)                                                                           \
    X(FUSION, "fusion", 0)                                                                         \
    X(GATHER, "gather", 0)                                                                         \
    X(GET_DIMENSION_SIZE, "get-dimension-size", 0)                                                 \
    X(GET_TUPLE_ELEMENT, "get-tuple-element", 0)                                                   \
    X(IMAG, "imag", 1)                                                                             \
    X(INFEED, "infeed", 0)                                                                         \
    X(IOTA, "iota", 0)                                                                             \
    X(IS_FINITE, "is-finite", 1)                                                                   \
    X(LOG, "log", 1)                                                                               \
    X(LOG1P, "log-plus-one", 1)                                                                    \
    X(LOGISTIC, "logistic", 1)                                                                     \
    X(MAP, "map", 1)                                                                               \
    X(MAXIMUM, "maximum", 1)                                                                       \
    X(MINIMUM, "minimum", 1)                                                                       \
    X(MULHI, "mulhi", 1)                                                                           \
    X(MULTIPLY, "multiply", 1)                                                                     \
    X(NEGATE, "negate", 1)                                                                         \
    X(NOT, "not", 1)                                                                               \
    X(OPT_BARRIER, "opt-barrier", 0)                                                               \
    X(OR, "or", 1)                                                                                 \
    X(OUTFEED, "outfeed", 0)                                                                       \
    X(PAD, "pad", 0)                                                                               \
    X(PARAMETER, "parameter", 0)                                                                   \
    X(PARTITION_ID, "partition-id", 0)                                                             \
    X(POPCNT, "popcnt", 1)                                                                         \
    X(POWER, "power", 1)                                                                           \
    X(RAGGED_ALL_TO_ALL, "ragged-all-to-all", 4)                                                   \
    X(RAGGED_DOT, "ragged-dot", 0)                                                                 \
    X(REAL, "real", 1)                                                                             \
    X(RECV, "recv", 4)                                                                             \
    X(RECV_DONE, "recv-done", 4)                                                                   \
    X(REDUCE, "reduce", 0)                                                                         \
    X(REDUCE_PRECISION, "reduce-precision", 1)                                                     \
    X(REDUCE_SCATTER, "reduce-scatter", 4)                                                         \
    X(REDUCE_WINDOW, "reduce-window", 0)                                                           \
    X(REMAINDER, "remainder", 1)                                                                   \
    X(REPLICA_ID, "replica-id", 0)                                                                 \
    X(RESHAPE, "reshape", 0)                                                                       \
    X(REVERSE, "reverse", 0)                                                                       \
    X(RNG, "rng", 1)                                                                               \
    X(RNG_BIT_GENERATOR, "rng-bit-generator", 0)                                                   \
    X(RNG_STATE, "rng-get-and-update-state", 0)                                                    \
    X(ROUND_AFZ, "round-nearest-afz", 1)                                                           \
    X(ROUND_EVEN, "round-nearest-even", 1)                                                         \
    X(RSQRT, "rsqrt", 1)                                                                           \
    X(SCALED_DOT, "scaled-dot", 0)                                                                 \
    X(SCAN, "scan", 0)                                                                             \
    X(SCATTER, "scatter", 0)                                                                       \
    X(SELECT, "select", 1)                                                                         \
    X(SELECT_AND_SCATTER, "select-and-scatter", 0)                                                 \
    X(SEND, "send", 4)                                                                             \
    X(SEND_DONE, "send-done", 4)                                                                   \
    X(SET_DIMENSION_SIZE, "set-dimension-size", 0)                                                 \
    X(SHIFT_LEFT, "shift-left", 1)                                                                 \
    X(SHIFT_RIGHT_ARITHMETIC, "shift-right-arithmetic", 1)                                         \
    X(SHIFT_RIGHT_LOGICAL, "shift-right-logical", 1)                                               \
    X(SHUFFLE, "shuffle", 0)                                                                       \
    X(SIGN, "sign", 1)                                                                             \
    X(SINE, "sine", 1)                                                                             \
    X(SINH, "sinh", 1)                                                                             \
    X(SLICE, "slice", 0)                                                                           \
    X(SORT, "sort", 0)                                                                             \
    X(SQRT, "sqrt", 1)                                                                             \
    X(STOCHASTIC_CONVERT, "stochastic-convert", 1)                                                 \
    X(SUBTRACT, "subtract", 1)                                                                     \
    X(TAN, "tan", 1)                                                                               \
    X(TANH, "tanh", 1)                                                                             \
    X(TOPK, "topk", 0)                                                                             \
    X(TRANSPOSE, "transpose", 0)                                                                   \
    X(TRIANGULAR_SOLVE, "triangular-solve", 0)                                                     \
    X(TUPLE, "tuple", 0)                                                                           \
    X(WHILE, "while", 2)                                                                           \
    X(XOR, "xor", 1)                                                                               \
    X(UNKNOWN, "", 0) /* no operation of HLO */

enum hb_hlo_op {
#define HB_ENUM(name, text, traits) HB_HLO_OP_##name,
    HB_HLO_OPS(HB_ENUM)
#undef HB_ENUM
        HB_HLO_OP_COUNT
};

/* `dynamic-slice-start(...)` and the like are async-start and its companions in short: of what is
 * an operation itself, and has no start of its own (hlo_parser.cc: ParseOpcode). */
enum hb_hlo_op hb_hlo_op_find(struct hb_hlo_span name);
const char *hb_hlo_op_name(enum hb_hlo_op op);
bool hb_hlo_op_has(enum hb_hlo_op op, int trait);

#endif
