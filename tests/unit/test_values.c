/* solver/values: each once, in the order of asking, as many as there is room for. */
#include "tests/unit/unit.h"

#include "solver/values.h"

static void each_is_kept_once(void **state)
{
    (void)state;
    static const int64_t asked[] = {8, 2, 8, -1, 2, 8, 0};
    static const int64_t wanted[] = {8, 2, -1, 0};
    struct hb_values v = hb_values_listed(asked, 7, 5);
    assert_int_equal(v.count, 4);
    assert_memory_equal(v.list, wanted, sizeof wanted);
    v = hb_values_listed(asked, 0, 5);
    assert_int_equal(v.count, 1);
    assert_int_equal(v.list[0], 5);
    v = hb_values_listed(asked, 1, 5);
    assert_int_equal(v.count, 1);
    assert_int_equal(v.list[0], 8);
}

static void what_is_beyond_the_room_is_left_out(void **state)
{
    (void)state;
    struct hb_values v = {.count = 0};
    for (int i = 0; i < 2 * HB_VALUES_MOST; i++) {
        hb_values_add(&v, i);
        assert_int_equal(v.count, i < HB_VALUES_MOST ? i + 1 : HB_VALUES_MOST);
    }
    for (int i = 0; i < HB_VALUES_MOST; i++)
        assert_int_equal(v.list[i], i);
    hb_values_add(&v, 3);
    assert_int_equal(v.count, HB_VALUES_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_kept_once),
                                       cmocka_unit_test(what_is_beyond_the_room_is_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
