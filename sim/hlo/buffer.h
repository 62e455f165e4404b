/* From values to buffers, from buffers to allocations (rules 1, 3 to 6, 8 to 10;
 * buffer_assignment.cc). A buffer is a set of values that must lie in one place: what a loop
 * carries, what is updated in place, a donated argument with its output. An allocation is memory of
 * its own: an argument, an output, a constant, a table of pointers; what gets none goes to the heap
 * of temporaries. */
#ifndef HB_SIM_HLO_BUFFER_H
#define HB_SIM_HLO_BUFFER_H

#include "sim/hlo/alias.h"
#include "sim/hlo/flow.h"
#include "sim/hlo/range.h"

struct hb_hlo_buffer {
    uint32_t first; /* into the values' list */
    uint32_t count;
    int64_t bytes; /* the largest of its values */
    int space;     /* memory space */
    bool live_out; /* handed back by the entry */
    bool table;    /* holds tuples' pointers */
    bool constant;
    uint32_t argument; /* value: a parameter of the entry; HB_NONE */
    uint32_t alloc;    /* HB_NONE: on the heap */
};

enum hb_hlo_alloc_kind {
    HB_HLO_ARGUMENT,
    HB_HLO_RESULT,
    HB_HLO_CONSTANT_DATA,
    HB_HLO_CONTEXT, /* of an asynchronous call on TPU: outside of the heap, later lent to others */
    HB_HLO_TABLE    /* pointers of a tuple: never shared */
};

struct hb_hlo_alloc {
    enum hb_hlo_alloc_kind kind;
    int64_t bytes;
    int space;
    bool read_only;
    bool live_out;
    int32_t end;           /* when the last that was put in it dies */
    int32_t covered;       /* up to here it is taken at all times; at most */
    uint32_t first_buffer; /* chain of what lies in it */
};

struct hb_hlo_buffers {
    const struct hb_hlo_flow *f;
    struct hb_hlo_range *ranges; /* by value, normalised: in one buffer none overlaps the next */
    uint32_t *buffer_of;         /* by value */
    uint32_t *list;              /* values of each buffer, by number */
    uint32_t *next;              /* by buffer: in the same allocation; HB_NONE */
    struct hb_hlo_buffer *items;
    uint32_t count;
    struct hb_hlo_alloc *allocs;
    uint32_t alloc_count;
};

/* What a value takes: tiles, and on TPU rounded to 512. */
int64_t hb_hlo_value_bytes(const struct hb_hlo_flow *f, uint32_t value);
void hb_hlo_buffers_find(struct hb_arena *arena, const struct hb_hlo_flow *f,
                         struct hb_hlo_alias *alias, struct hb_hlo_buffers *out);

#endif
