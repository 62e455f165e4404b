/* A step in the order of XLA's schedulers: the same ops, whatever order they were written down in.
 */
#include "tests/unit/lowered.h"

#include <stdlib.h>

#include "sim/graph/link.h"

static const char base[] = FOUR_LAYERS(DENSE_MLP);

#define LOWER(...) lower_text(base, (const char *const[]){__VA_ARGS__, NULL})

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the ops in their order, then sorted. */
static const char **names_of(const struct hb_program *p, bool sorted)
{
    const char **names = hb_arena_alloc(u.env.arena, p->op_count, sizeof *names);
    for (uint32_t i = 0; i < p->op_count; i++)
        names[i] = p->ops[i].name;
    if (sorted)
        qsort(names, p->op_count, sizeof *names, compare_names);
    return names;
}

static bool is_same(const char *const *a, const char *const *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

static void check_loops(const struct hb_program *p, const struct hb_program *before)
{
    for (uint32_t i = 0; i < p->loop_count; i++) {
        const struct hb_loop *l = &p->loops[i], *old = &before->loops[i];
        assert_int_equal(l->end_op - l->first_op, old->end_op - old->first_op);
        if (strcmp(l->name, "microbatches") != 0) /* whose own ops are put in order */
            assert_string_equal(p->ops[l->first_op].name, before->ops[old->first_op].name);
    }
}

static void link_twice(struct low *l)
{
    struct hb_program before = l->p;
    uint32_t count = before.op_count;
    before.ops = hb_arena_alloc(u.env.arena, count, sizeof *before.ops);
    before.loops = hb_arena_alloc(u.env.arena, before.loop_count + 1, sizeof *before.loops);
    memcpy(before.ops, l->p.ops, count * sizeof *before.ops);
    memcpy(before.loops, l->p.loops, before.loop_count * sizeof *before.loops);
    assert_true(hb_link_is_known(&l->spec));
    hb_link_order(u.env.arena, &l->spec, &l->p);
    hb_program_check(&l->p);
    assert_int_equal(l->p.op_count, count);
    assert_true(is_same(names_of(&l->p, true), names_of(&before, true), count));
    check_loops(&l->p, &before);
    const char **once = names_of(&l->p, false);
    hb_link_order(u.env.arena, &l->spec, &l->p);
    assert_true(is_same(names_of(&l->p, false), once, count));
}

static void steps_keep_their_ops(void **state)
{
    (void)state;
    struct low steps[] = {LOWER(ROCM, "mesh.fsdp=8"),
                          LOWER(ROCM, "mesh.fsdp=8", "optimizer.clip=true", "loss.chunks=4"),
                          LOWER(ROCM, "mesh.tensor=4", "model.tied_embeddings=true"),
                          LOWER(ROCM, "mesh.fsdp=4", "batch.accumulate=2", "batch.global=8")};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        link_twice(&steps[i]);
}

static void others_stay_as_they_are(void **state)
{
    (void)state;
    struct low steps[] = {LOWER(CUDA, "mesh.fsdp=8"), LOWER(ROCM, "stack.form=loop")};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const char **names = names_of(&steps[i].p, false);
        assert_false(hb_link_is_known(&steps[i].spec));
        hb_link_order(u.env.arena, &steps[i].spec, &steps[i].p);
        assert_true(is_same(names_of(&steps[i].p, false), names, steps[i].p.op_count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(steps_keep_their_ops),
        TEST(others_stay_as_they_are),
    };
    return cmocka_run_group_tests_name("graph link", tests, NULL, NULL);
}
