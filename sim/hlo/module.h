/* An HLO module as printed by XLA: computations of instructions, with the text kept beside them:
 * names and attributes that few ask for are looked up in it when they are asked for.
 *
 *   HloModule name, is_scheduled=true, input_output_alias={...}
 *   %body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
 *     %p = (s32[], f32[8]{0}) parameter(0)
 *     ROOT %t = ... tuple(%a, %b), metadata={op_name="..."}
 *   }
 *   ENTRY %main (...) -> ... { ... }
 *
 * It reads what XLA's own parser does (hlo_parser.cc): line ends count as blanks, `//` comments,
 * results' shapes left out where operands tell them, operations among operands, computations in
 * braces for their names, computations without a head; and computations that are named before they
 * stand. Parts refer to each other by index. Operands stand before their users, in one computation,
 * computations before those that call them. */
#ifndef HB_SIM_HLO_MODULE_H
#define HB_SIM_HLO_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/hlo/dialect.h"
#include "sim/hlo/opcode.h"
#include "sim/hlo/shape.h"
#include "sim/hlo/text.h"
#include "sim/ir/program.h"

struct hb_hlo_inst {
    uint32_t name_at;  /* offset of the name in the text, without % */
    uint32_t attrs_at; /* offset behind the closing bracket of the operands */
    uint32_t attrs_len;
    uint32_t shape;
    uint32_t comp;
    uint32_t args_at; /* into args: operands, control predecessors, called computations */
    uint32_t operand_count;
    uint32_t number;   /* of a parameter; index of a get-tuple-element */
    uint16_t name_len; /* a longer name is an error */
    uint16_t pred_count;
    uint16_t call_count; /* while: condition, body; conditional: branches in order */
    uint8_t op;          /* enum hb_hlo_op */
    uint8_t fusion;      /* enum hb_hlo_fusion */
};

enum hb_hlo_fusion { HB_HLO_NO_FUSION, HB_HLO_LOOP, HB_HLO_INPUT, HB_HLO_OUTPUT, HB_HLO_CUSTOM };

struct hb_hlo_comp {
    struct hb_hlo_span name;
    uint32_t first_inst;
    uint32_t inst_count;
    uint32_t root;      /* instruction; the last one where none is marked */
    uint32_t params_at; /* into params: instruction by number */
    uint32_t param_count;
    bool nameless; /* written where its name might stand */
};

enum { HB_HLO_MAX_PATH = 8 };

/* Output at out_path may lie in parameter param at param_path. */
struct hb_hlo_donation {
    uint32_t out_path[HB_HLO_MAX_PATH], param_path[HB_HLO_MAX_PATH];
    uint32_t out_len, param_len;
    uint32_t param;
};

struct hb_hlo_frame {
    uint32_t file; /* into files, from 1; 0: none */
    int64_t line;
    uint32_t parent; /* into frames, from 1; 0: none */
};

struct hb_hlo_module {
    struct hb_arena *arena;
    struct hb_hlo_text text;
    struct hb_hlo_span name;
    bool scheduled;
    bool partitioned;                     /* an entry named _spmd: shapes are per device */
    int64_t partitions;                   /* devices it is for; 1: one */
    const struct hb_hlo_dialect *dialect; /* guessed; whoever knows better may set it, */
    bool dialect_given;                   /* and then this */
    struct hb_hlo_shapes shapes;
    struct hb_hlo_comp *comps;
    uint32_t comp_count, comp_cap;
    struct hb_hlo_inst *insts;
    uint32_t inst_count, inst_cap;
    uint32_t *args;
    uint32_t arg_count, arg_cap;
    uint32_t *params;
    uint32_t param_count, param_cap;
    uint32_t entry; /* computation */
    struct hb_hlo_donation *donations;
    uint32_t donation_count, donation_cap;
    struct hb_hlo_span *files; /* FileNames, from 1 */
    uint32_t file_count, file_cap;
    struct hb_hlo_frame *locations; /* FileLocations, from 1; parent unused */
    uint32_t location_count, location_cap;
    struct hb_hlo_frame *frames; /* StackFrames, from 1 */
    uint32_t frame_count, frame_cap;
};

/* Reads a module; false with errors in diag. */
bool hb_hlo_module_read(struct hb_arena *arena, struct hb_diag *diag,
                        const struct hb_hlo_text *text, struct hb_hlo_module *out_module);

static inline enum hb_hlo_op hb_hlo_op_of(const struct hb_hlo_module *m, uint32_t inst)
{
    return (enum hb_hlo_op)m->insts[inst].op;
}
static inline uint32_t hb_hlo_operand(const struct hb_hlo_module *m, uint32_t inst, uint32_t i)
{
    return m->args[m->insts[inst].args_at + i];
}
static inline uint32_t hb_hlo_pred(const struct hb_hlo_module *m, uint32_t inst, uint32_t i)
{
    return m->args[m->insts[inst].args_at + m->insts[inst].operand_count + i];
}
static inline uint32_t hb_hlo_called(const struct hb_hlo_module *m, uint32_t inst, uint32_t i)
{
    const struct hb_hlo_inst *at = &m->insts[inst];
    return m->args[at->args_at + at->operand_count + at->pred_count + i];
}
static inline const struct hb_hlo_shape *hb_hlo_shape_of(const struct hb_hlo_module *m,
                                                         uint32_t inst)
{
    return &m->shapes.items[m->insts[inst].shape];
}
static inline struct hb_hlo_span hb_hlo_name_of(const struct hb_hlo_module *m, uint32_t inst)
{
    return (struct hb_hlo_span){m->text.bytes + m->insts[inst].name_at, m->insts[inst].name_len};
}

/* The value of an attribute; at null if there is none. */
struct hb_hlo_span hb_hlo_attr_of(const struct hb_hlo_module *m, const struct hb_hlo_inst *at,
                                  const char *key);
struct hb_hlo_span hb_hlo_attr(const struct hb_hlo_module *m, uint32_t inst, const char *key);
/* What stands in a constant's brackets, and behind; at null: it is no constant. */
struct hb_hlo_span hb_hlo_constant(const struct hb_hlo_module *m, uint32_t inst);
/* A text in metadata={...}, without quotes: op_name, source_file, ... */
struct hb_hlo_span hb_hlo_metadata(const struct hb_hlo_module *m, uint32_t inst, const char *key);
/* Where in the user's program: file and line, from metadata or the stack frame. */
bool hb_hlo_source(const struct hb_hlo_module *m, uint32_t inst, struct hb_hlo_span *out_file,
                   int64_t *out_line);
/* `{0,1}`: tuple indices, at most HB_HLO_MAX_PATH; false if there is none. */
bool hb_hlo_take_path(struct hb_hlo_lex *lex, uint32_t *path, uint32_t *out_len);
/* Numbers in a span, in order: `{0,2}`, `0_1x2_3`, `[2,4]`; at most max; returns how many. */
uint32_t hb_hlo_numbers(struct hb_hlo_span span, int64_t *out, uint32_t max);

#endif
