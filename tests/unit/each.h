/* For programs of tests that each get a struct unit u of their own: TEST(name). Include it first,
 * in place of unit.h. */
#ifndef HB_TESTS_UNIT_EACH_H
#define HB_TESTS_UNIT_EACH_H

#include "tests/unit/unit.h"

static struct unit u;

static inline int start(void **state)
{
    (void)state;
    unit_start(&u);
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    unit_end(&u);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

#endif
