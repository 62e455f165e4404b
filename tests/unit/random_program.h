/* Random programs that keep every rule of sim/ir/program.h: nested loops, aliases, donated
 * arguments, host buffers, asynchronous ops with and without DONE. Equal seed, equal program. */
#ifndef HB_TESTS_RANDOM_PROGRAM_H
#define HB_TESTS_RANDOM_PROGRAM_H

#include "base/rng.h"
#include "sim/engine/check.h"
#include "sim/ir/program.h"

struct random_shape {
    int most_ops;   /* of one block */
    int most_depth; /* of loops in loops */
    int most_trips;
    int64_t most_bytes;
};

struct random_maker {
    struct hb_program *p;
    struct hb_rng *rng;
    struct random_shape shape;
    uint32_t open[8]; /* asynchronous ops of this block without their DONE */
    int open_count;
};

static inline int64_t roll(struct random_maker *m, int64_t low, int64_t high)
{
    return hb_rng_range(m->rng, low, high);
}

static inline uint32_t random_buf(struct random_maker *m, bool argument)
{
    struct hb_buf b = {.why = "", .alias_of = HB_NONE, .argument = argument};
    b.name = hb_arena_printf(m->p->arena, "%s%u", argument ? "arg" : "tmp", m->p->buf_count);
    b.plain_bytes = roll(m, 0, m->shape.most_bytes);
    b.bytes = b.plain_bytes + (roll(m, 0, 3) ? 0 : roll(m, 0, m->shape.most_bytes / 8 + 1));
    b.category = (enum hb_category)roll(m, 0, HB_CAT_COMMUNICATION);
    b.space = roll(m, 0, 9) ? HB_SPACE_HBM : roll(m, 0, 2) ? HB_SPACE_HOST : HB_SPACE_CHIP;
    b.output = roll(m, 0, argument ? 1 : 15) == 0;
    return hb_program_add_buf(m->p, b);
}

static inline uint32_t random_alias(struct random_maker *m, uint32_t of)
{
    struct hb_buf b = m->p->bufs[of];
    b.name = hb_arena_printf(m->p->arena, "in_place%u", m->p->buf_count);
    b.alias_of = of;
    b.argument = b.output = false;
    b.category = (enum hb_category)roll(m, 0, HB_CAT_COMMUNICATION);
    if (roll(m, 0, 2) == 0)
        b.bytes = b.bytes / 2 + roll(m, 0, 1) * b.bytes;
    b.plain_bytes = b.bytes - roll(m, 0, b.bytes / 4);
    return hb_program_add_buf(m->p, b);
}

/* Reads come from what exists; a write makes a buffer, or goes over one. */
static inline uint32_t random_op(struct random_maker *m, enum hb_op_kind kind,
                                 enum hb_stream stream)
{
    uint32_t reads = (uint32_t)roll(m, 0, 3), exists = m->p->buf_count;
    struct hb_op op = {.name = "op",
                       .kind = kind,
                       .stream = stream,
                       .start = HB_NONE,
                       .phase = HB_PHASE_FORWARD,
                       .group = 4,
                       .batch = 1};
    uint32_t at = hb_program_add_op(m->p, op);
    uint32_t read[4] = {0};
    for (uint32_t r = 0; r < reads; r++) {
        read[r] = (uint32_t)roll(m, roll(m, 0, 1) ? 0 : exists * 3 / 4, exists - 1);
        hb_program_read(m->p, read[r]);
    }
    for (int64_t writes = roll(m, 1, 6) / 5 + 1; writes > 0; writes--) {
        int64_t way = roll(m, 0, 9);
        if (way < 2 && reads)
            hb_program_write(m->p, random_alias(m, read[0]));
        else if (way < 4)
            hb_program_write(m->p, (uint32_t)roll(m, 0, exists - 1));
        else
            hb_program_write(m->p, random_buf(m, false));
    }
    return at;
}

static inline void random_done(struct random_maker *m)
{
    uint32_t start = m->open[--m->open_count];
    hb_program_add_op(
        m->p, (struct hb_op){.name = "done",
                             .kind = HB_OP_DONE,
                             .stream = roll(m, 0, 4) ? HB_STREAM_COMPUTE : m->p->ops[start].stream,
                             .start = start,
                             .batch = 1});
}

static inline void random_step(struct random_maker *m)
{
    int64_t way = roll(m, 0, 19);
    if (way < 12) {
        enum hb_op_kind kind = (enum hb_op_kind)roll(m, HB_OP_MATMUL, HB_OP_COPY);
        random_op(m, kind, HB_STREAM_COMPUTE);
    } else if (way < 14) {
        random_op(m, HB_OP_MARK, HB_STREAM_COMPUTE);
    } else if (way < 16) {
        random_op(m, HB_OP_HOST_COPY, roll(m, 0, 1) ? HB_STREAM_D2H : HB_STREAM_H2D);
    } else if (way < 18 || m->open_count == 8) {
        random_op(m, HB_OP_ALL_GATHER,
                  (enum hb_stream)roll(m, HB_STREAM_COLLECTIVE, HB_STREAM_COUNT - 1));
    } else {
        m->open[m->open_count++] = random_op(
            m, HB_OP_PERMUTE, (enum hb_stream)roll(m, HB_STREAM_D2H, HB_STREAM_COUNT - 1));
    }
    if (m->open_count && roll(m, 0, 5) == 0)
        random_done(m);
}

static inline void random_block(struct random_maker *m, int depth)
{
    struct random_maker inside = *m;
    inside.open_count = 0;
    int steps = (int)roll(m, 1, m->shape.most_ops);
    for (int i = 0; i < steps; i++) {
        random_step(&inside);
        if (depth < m->shape.most_depth && roll(m, 0, 6) == 0) {
            uint32_t loop = hb_program_open_loop(m->p, "loop", roll(m, 1, m->shape.most_trips));
            random_block(&inside, depth + 1);
            hb_program_close_loop(m->p, loop);
        }
    }
    while (inside.open_count)
        random_done(&inside);
}

static inline void random_program(struct hb_arena *arena, struct hb_rng *rng,
                                  struct random_shape shape, struct hb_program *p)
{
    struct random_maker m = {.p = p, .rng = rng, .shape = shape};
    hb_program_init(p, arena, "random", roll(&m, 0, 1) ? HB_XLA_TPU : HB_XLA_GPU);
    p->argument_extra_bytes = roll(&m, 0, 1) ? 0 : roll(&m, 0, 1000);
    for (int64_t i = roll(&m, 1, 6); i > 0; i--)
        random_buf(&m, true);
    random_block(&m, 0);
    hb_program_check(p);
}

#endif
