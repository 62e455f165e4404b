/* One pass of head and loss, for the whole loss (loss.c) and its chunks (chunks.c) only. */
#ifndef HB_SIM_IR_LOSS_PASS_H
#define HB_SIM_IR_LOSS_PASS_H

#include "sim/ir/lowering.h"

/* One pass of head and loss over a chunk of the tokens. */
struct hb_loss_pass {
    int64_t seq;     /* positions of the chunk on this device */
    bool unread;     /* nothing but the gradient reads the logits */
    uint32_t x;      /* normalised input, compute dtype */
    uint32_t w;      /* head as the products read it */
    uint32_t before; /* logits before a cast that the gradient reads; HB_NONE */
    uint32_t logits;
    uint32_t dlogits;
    uint32_t turned; /* the gradient as the head's ring reads it */
};

/* The head in the compute dtype: a device's own, read where it lies or cast; the whole of it; and
 * what of these the products read. */
uint32_t hb_loss_own_head(struct hb_lower *lo, bool in_loop);
bool hb_loss_gathers_rows(const struct hb_lower *lo);
uint32_t hb_loss_gather_head(struct hb_lower *lo, uint32_t own);
uint32_t hb_loss_use_head(struct hb_lower *lo, bool in_loop);
/* A product of the head without what it reads and writes. */
struct hb_emit hb_loss_head_product(const struct hb_lower *lo, int64_t seq, const char *name);
/* c->logits from c->x and c->w; their gradient, c->dlogits; that of c->x, which is returned. */
void hb_loss_make_logits(struct hb_lower *lo, struct hb_loss_pass *c);
void hb_loss_make_dlogits(struct hb_lower *lo, struct hb_loss_pass *c);
uint32_t hb_loss_grad_through(struct hb_lower *lo, const struct hb_loss_pass *c);
/* A step of the ring that collects the head's gradient makes the product of two parts, beside what
 * came and what goes in both directions (16 layers of 4,096, fsdp 16 of v5e, 131,072 words:
 * f32[2,256,131072] and four f32[256,131072]; of a chunk as well). */
void hb_loss_add_step(struct hb_lower *lo, struct hb_emit *e, uint32_t sum);
/* Back through the last norm, whose input was x: the gradient of the last residual. */
uint32_t hb_loss_norm_back(struct hb_lower *lo, uint32_t g, uint32_t x, double moved_bytes);

#endif
