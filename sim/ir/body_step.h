/* What the forward pass of a layer (body.c) and its backward pass (body_back.c) share: values and
 * how ops read them; spread.c is a part of both. */
#ifndef HB_SIM_IR_BODY_STEP_H
#define HB_SIM_IR_BODY_STEP_H

#include "sim/ir/body.h"

/* "layer.value" and what. */
const char *hb_body_name(struct hb_body *b, int v, const char *what);
/* A step's op without what it reads and writes. */
struct hb_emit hb_body_emit(const struct hb_step_op *s);
/* Working tensors of the op. */
void hb_body_scratch(struct hb_body *b, struct hb_emit *e, const struct hb_shape *scratch,
                     int count);
/* Sums buf over the axis, in its place; the op. */
uint32_t hb_body_sum(struct hb_body *b, enum hb_axis axis, enum hb_op_kind kind, uint32_t buf);

/* Makes sure that v can be read: loaded, made again, or fused from what can be read. */
void hb_body_bring(struct hb_body *b, int v);
/* A copy of v's buffer in the layout that a ring wants. */
uint32_t hb_body_turn(struct hb_body *b, uint32_t from, int v);
/* A copy of a gathered weight in the layout that a product wants, kept as its turned one. */
uint32_t hb_body_turn_weight(struct hb_body *b, uint32_t leaf, uint32_t from);
/* Reads a value by a forward step: its buffer, or what it is fused from. */
void hb_body_read(struct hb_body *b, struct hb_emit *e, int v);

/* Whether the backward pass of s reads in[i]; reads all that it does. */
bool hb_body_reads_input(const struct hb_body *b, const struct hb_step_op *s, int i);
/* What a backward pass reads as v: it, or what was made of it in another layout. */
int hb_body_back_as(const struct hb_body *b, int v);
void hb_body_read_back(struct hb_body *b, struct hb_emit *e, const struct hb_step_op *s);

/* Layers side by side share a leaf: what each has gathered is put by, and taken up again. */
void hb_body_unstow(struct hb_body *b);

#endif
