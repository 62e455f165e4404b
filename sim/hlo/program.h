/* A dump as the program of buffers that the engine runs: one op for each instruction of the
 * flattened schedule, one buffer for each value in device or host memory. A value that lies in
 * another's memory is its alias and lives in its own time (hb_placing.apart); what takes the place
 * of an operand that dies there is one as well (rule 6, xla/service/heap_simulator.cc). */
#ifndef HB_SIM_HLO_PROGRAM_H
#define HB_SIM_HLO_PROGRAM_H

#include "sim/engine/run.h"
#include "sim/hlo/buffer.h"

struct hb_hlo_program {
    const struct hb_hlo_module *m;
    struct hb_arena *arena;
    struct hb_hlo_flow flow;
    struct hb_hlo_alias alias;
    struct hb_hlo_buffers buffers;
    struct hb_program program;
    struct hb_placing placing;
    uint32_t *node_at;    /* by time */
    int32_t *start, *end; /* by program buffer: the ops that touch it first and last */
    uint32_t *value_of;   /* by program buffer */
    uint32_t *buf_of;     /* by value; HB_NONE: constants, tables, on-chip memory */
    int64_t tables_bytes; /* of temporaries beside the heap: tables of tuples, contexts; aligned */
    int64_t first_table_bytes;   /* of these the first, */
    int64_t first_table_aligned; /* and with its alignment */
    int64_t output_tables_bytes; /* of the results */
    bool tables_follow; /* the first table was moved behind the heap: it ends the temporaries */
};

/* What the compiler would report for a run; bytes. */
struct hb_hlo_figures {
    int64_t argument_bytes;
    int64_t output_bytes;
    int64_t alias_bytes;
    int64_t temp_bytes; /* as in the buffer assignment */
    int64_t
        rounded_temp_bytes; /* as memory_analysis() tells it on TPU: whole slots, 0 for tables */
    int64_t fragmentation_bytes;  /* of the heap, above its live sum */
    int64_t total_bytes;          /* argument + output - alias + temp */
    int64_t liveness_bound_bytes; /* total without fragmentation */
    int64_t host_bytes;
};

/* order: see hb_hlo_flow_find. False with an error in diag. */
bool hb_hlo_program_make(struct hb_arena *arena, struct hb_diag *diag,
                         const struct hb_hlo_module *m, const uint32_t *order,
                         struct hb_hlo_program *out_program);
/* Runs a program of buffers as the dialect places them. */
void hb_hlo_program_run(struct hb_arena *arena, const struct hb_hlo_program *hp,
                        const struct hb_program *program, struct hb_memory *out_memory,
                        struct hb_hlo_figures *out_figures);
/* Gives p, whose buffers are those of hp or their like, its ops: each touches what starts and what
 * ends there. A buffer without bytes is not touched. */
void hb_hlo_program_add_ops(struct hb_arena *arena, const struct hb_hlo_program *hp,
                            struct hb_program *p, const int32_t *start, const int32_t *end);

#endif
