/* The transient of building the state before step 1, as a program of its own: the last array, the
 * largest, is put on the devices while the other parameters are already there. How it gets there
 * is load.method; what it costs depends on the number of processes.
 *
 *   sharded      each process reads its devices' parts: a part on each device
 *   callback     each process holds the array, each device asks for its part
 *   device_put   the array goes to every device whole; since each process gave its own, they are
 *                first compared: all processes' arrays are gathered on every device and on every
 *                host, processes x array */
#ifndef HB_SIM_ENGINE_LOAD_H
#define HB_SIM_ENGINE_LOAD_H

#include "models/spec.h"
#include "sim/ir/program.h"

struct hb_diag;

struct hb_load_plan {
    int64_t array_bytes;       /* the largest array, whole */
    int64_t part_bytes;        /* of it on one device */
    int64_t others_bytes;      /* parameters on one device that are there before */
    int64_t states_bytes;      /* optimizer states and averages, made after */
    int64_t devices;           /* of all processes together */
    int64_t item_bytes;        /* of one element: the comparison makes a byte of each */
    enum hb_compiler compiler; /* whose roundings hold */
};

/* From the step's own program: what one device holds before its first step. */
struct hb_load_plan hb_load_plan_make(const struct hb_spec *spec, const struct hb_program *step);
/* The program for so many processes (>= 1). False, with a message, if a size leaves the range. */
bool hb_load_program(struct hb_arena *arena, struct hb_diag *diag, const struct hb_load_plan *plan,
                     enum hb_load_method method, int64_t processes, struct hb_program *out);

#endif
