/* base/queue: what is least first, of equals by their order, against all there is looked through.
 */
#include "tests/unit/unit.h"

#include "base/queue.h"
#include "base/rng.h"

static struct unit u;

static bool is_less(const struct hb_queue_entry *a, const struct hb_queue_entry *b)
{
    return a->value < b->value || (!(b->value < a->value) && a->order < b->order);
}

static void the_least_comes_first(void **state)
{
    enum { DRAWS = 3000, VALUES = 40 };
    (void)state;
    struct hb_queue q = {.arena = u.env.arena};
    struct hb_queue_entry *in = hb_arena_alloc(u.env.arena, DRAWS, sizeof *in), out;
    struct hb_rng rng = hb_rng_seed(7);
    uint32_t count = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        if (hb_rng_range(&rng, 0, 2) > 0) {
            double value = (double)hb_rng_range(&rng, 0, VALUES);
            in[count] =
                (struct hb_queue_entry){value, (uint64_t)hb_rng_range(&rng, 0, DRAWS), 0, i};
            hb_queue_add(&q, in[count++]);
            continue;
        }
        assert_int_equal(hb_queue_take(&q, &out), count > 0);
        uint32_t least = 0;
        for (uint32_t k = 1; k < count; k++)
            least = is_less(&in[k], &in[least]) ? k : least;
        if (count == 0)
            continue;
        assert_false(is_less(&in[least], &out) || is_less(&out, &in[least]));
        for (least = 0; in[least].index != out.index; least++)
            assert_in_range(least, 0, count - 1);
        in[least] = in[--count];
    }
    assert_int_equal(q.count, count);
}

static void of_equals_what_was_put_first(void **state)
{
    enum { COUNT = 100 };
    (void)state;
    struct hb_queue q = {.arena = u.env.arena};
    struct hb_queue_entry out;
    for (uint32_t i = 0; i < COUNT; i++)
        hb_queue_put(&q, 1, (int)i, i);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(hb_queue_take(&q, &out));
        assert_int_equal(out.index, i);
        assert_int_equal(out.kind, i);
    }
    assert_false(hb_queue_take(&q, &out));
}

int main(void)
{
    unit_start(&u);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_comes_first),
        cmocka_unit_test(of_equals_what_was_put_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
