/* A program that a test makes op by op; all its buffers are alike. */
#ifndef HB_TESTS_MADE_OPS_H
#define HB_TESTS_MADE_OPS_H

#include "tests/unit/unit.h"

#include "sim/ir/program.h"

static struct hb_arena *arena;
static struct hb_program prog;

static inline void start_ops(void)
{
    arena = hb_arena_new();
    hb_program_init(&prog, arena, "test", HB_XLA_GPU);
}

static inline int end_ops(void **state)
{
    (void)state;
    hb_arena_free(arena);
    return 0;
}

static inline uint32_t buf(const char *name)
{
    return hb_program_add_buf(&prog, (struct hb_buf){.name = name,
                                                     .why = "",
                                                     .bytes = 8,
                                                     .plain_bytes = 8,
                                                     .alias_of = HB_NONE,
                                                     .category = HB_CAT_WORKING});
}

#endif
