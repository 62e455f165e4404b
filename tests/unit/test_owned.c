/* base/owned: what a call that ends in its middle gives back, and in which order. */
#include "tests/unit/unit.h"

#include "base/owned.h"

static char dropped[10]; /* names, in their order */

static void drop(void *what)
{
    size_t count = strlen(dropped);
    dropped[count] = *(const char *)what;
    dropped[count + 1] = '\0';
}

/* Newest first; who took leave, whether oldest, newest or between, is left alone. */
static void what_is_left_is_dropped(void **state)
{
    (void)state;
    static const char *const leave[] = {"", "a", "b", "c", "ac", "cb", "abc"};
    static const char *const left[] = {"cba", "cb", "ca", "ba", "b", "a", ""};
    char names[3][2] = {"a", "b", "c"};
    for (size_t i = 0; i < sizeof leave / sizeof leave[0]; i++) {
        struct hb_owned owned[3];
        dropped[0] = '\0';
        hb_owned_begin();
        for (int k = 0; k < 3; k++)
            hb_own(&owned[k], drop, names[k]);
        for (const char *c = leave[i]; *c; c++)
            hb_disown(&owned[*c - 'a']);
        hb_owned_end();
        assert_string_equal(dropped, left[i]);
    }
}

/* In the program, which ends with its memory, nothing is kept. */
static void nothing_is_kept_outside_of_a_call(void **state)
{
    (void)state;
    char name[] = "x";
    struct hb_owned before, within, after;
    dropped[0] = '\0';
    hb_own(&before, drop, name);
    hb_owned_begin();
    hb_own(&within, drop, name);
    hb_disown(&before);
    hb_owned_end();
    assert_string_equal(dropped, "x");
    hb_own(&after, drop, name);
    hb_disown(&after);
    hb_owned_begin();
    hb_owned_end();
    assert_string_equal(dropped, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_is_dropped),
        cmocka_unit_test(nothing_is_kept_outside_of_a_call),
    };
    return cmocka_run_group_tests_name("owned", tests, NULL, NULL);
}
