/* What the parts of the HLO reader share while a module is read: module.c (heads, computations),
 * instruction.c, infer.c (shapes left out), link.c (computations named before they stand),
 * outputs.c. */
#ifndef HB_SIM_HLO_READER_H
#define HB_SIM_HLO_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <string.h>

#include "sim/hlo/module.h"

enum { HB_HLO_OP_CACHE = 1024 };

/* A call whose computation was not there yet: its name, or its body in braces. */
struct hb_hlo_pending {
    uint32_t arg;  /* into args: to be filled in */
    uint32_t comp; /* HB_NONE until known */
    struct hb_hlo_span text;
    bool body;
};

struct hb_hlo_reader {
    struct hb_hlo_module *m;
    struct hb_diag *diag;
    struct hb_hlo_lex lex;
    uint32_t *names; /* hash table: instruction + 1, of the computation that is being read */
    uint32_t name_cap;
    uint32_t *comp_names; /* hash table: computation + 1 */
    uint32_t comp_name_cap;
    bool has_entry;
    bool single;      /* the text is one instruction: what it reads are parameters, */
    uint32_t missing; /* so many */
    uint32_t *stack;  /* operands of the instructions that are open */
    uint32_t stack_count, stack_cap;
    struct hb_hlo_pending *pending;
    uint32_t pending_count, pending_cap, bodies_read;
    size_t inferred_bytes; /* text of the shapes that were left out */
    struct {
        struct hb_hlo_span name;
        enum hb_hlo_op op;
    } op_cache[HB_HLO_OP_CACHE];
};

/* How much of the text a message shows. */
int hb_hlo_shown(struct hb_hlo_span span);
/* An error at a place of the text, or that the file ends too early; false. */
bool hb_hlo_fail(struct hb_hlo_reader *r, const char *at, const char *what);
struct hb_loc hb_hlo_place(const struct hb_hlo_reader *r, const char *at);

/* The slot of a computation's name: 0 if there is none. */
uint32_t *hb_hlo_find_comp(struct hb_hlo_reader *r, struct hb_hlo_span name);
static inline bool hb_hlo_same_text(struct hb_hlo_span a, struct hb_hlo_span b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}
uint32_t hb_hlo_hash_name(struct hb_hlo_span name);
/* Makes the table of names ready for a computation. */
void hb_hlo_begin_names(struct hb_hlo_reader *r);
/* One instruction, from its name to the end of its attributes. */
bool hb_hlo_read_inst(struct hb_hlo_reader *r);
/* The only instruction of a text, with its name or from its shape on. */
bool hb_hlo_read_single(struct hb_hlo_reader *r, bool named);

/* The shape that an instruction has by its operands and attributes; false with an error at `at`
 * where they do not tell. The instruction's arguments are in place. */
bool hb_hlo_infer(struct hb_hlo_reader *r, const struct hb_hlo_inst *inst, const char *at,
                  uint32_t *out_shape);
/* Fills in what was pending and puts computations before those that call them. */
bool hb_hlo_link(struct hb_hlo_reader *r);
/* Copies what an unscheduled module returns twice, or returns of its parameters. */
void hb_hlo_copy_outputs(struct hb_hlo_module *m);

#endif
