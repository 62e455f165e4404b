/* Each file of tests/cli/bad is refused with exactly the messages beside it: NAME.yaml, the
 * KEY=VALUE lines of NAME.set if there is one, what is printed in NAME.expect. The same through
 * the program is tests/cli/bad.sh, which has the inputs that are too large to be kept as well. */
#include "tests/unit/unit.h"

#include "base/file.h"
#include "base/str.h"
#include "models/schema.h"
#include "models/support.h"

enum { LEAST_FILES = 130, MAX_SETS = 8 };

static void split_lines(char *text, const char **lines, int *out_count)
{
    int count = 0;
    for (char *line = strtok_r(text, "\n", &text); line; line = strtok_r(NULL, "\n", &text)) {
        assert_true(count < MAX_SETS);
        lines[count++] = line;
    }
    *out_count = count;
}

static void refuses(void **state)
{
    const char *name = *state;
    struct unit u;
    struct hb_text expected;
    struct hb_text set;
    const char *reason = NULL;
    const char *lines[MAX_SETS];
    int line_count = 0;
    unit_start(&u);
    struct hb_arena *arena = u.env.arena;
    assert_true(hb_file_load(arena, hb_arena_printf(arena, "%s.expect", name), 1 << 20, &expected,
                             &reason));
    if (hb_file_load(arena, hb_arena_printf(arena, "%s.set", name), 1 << 20, &set, &reason))
        split_lines(hb_arena_strndup(arena, set.text, set.len), lines, &line_count);
    struct hb_schema_source source = {.arena = arena,
                                      .diag = &u.diag,
                                      .path = hb_arena_printf(arena, "%s.yaml", name),
                                      .sets = lines,
                                      .set_count = line_count,
                                      .data_dir = "../../.."};
    struct hb_spec spec;
    struct hb_node *root = NULL;
    source.out_written = &root;
    bool ok = hb_schema_read(&source, &spec);
    assert_false(ok && hb_spec_supported(&u.diag, root, &spec));
    hb_diag_print(&u.diag, u.env.err);
    assert_string_equal(unit_err(&u), expected.text);
    unit_end(&u);
}

/* The base that the files include is itself without a fault, or they would test nothing. */
static void accepts_their_base(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_schema_source source = {
        .arena = u.env.arena, .diag = &u.diag, .path = "base/good.yaml", .data_dir = "../../.."};
    struct hb_spec spec;
    assert_true(hb_schema_read(&source, &spec));
    assert_int_equal(spec.model.block_count, 2);
    unit_end(&u);
}

int main(void)
{
    struct hb_arena *arena = hb_arena_new();
    if (chdir(HB_SOURCE_DIR "/tests/cli/bad") != 0)
        return 1;
    const char *const *names = hb_file_list(arena, ".", ".yaml");
    size_t count = 0;
    while (names[count])
        count++;
    struct CMUnitTest *tests = hb_arena_alloc(arena, count + 1, sizeof *tests);
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = refuses, .initial_state = (void *)(uintptr_t)names[i]};
    tests[count] = (struct CMUnitTest)cmocka_unit_test(accepts_their_base);
    int failed = count < LEAST_FILES;
    failed |= _cmocka_run_group_tests("tests", tests, count + 1, NULL, NULL);
    hb_arena_free(arena);
    return failed;
}
