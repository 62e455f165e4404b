/* cli/opt: every kind of option, every form, and what is said of a wrong line. */
#include "tests/unit/unit.h"

#include "cli/cmd.h"

struct record {
    struct hb_common common;
    bool fast;
    const char *name;
    int64_t jobs;
    int64_t count;
    int64_t budget_bytes;
    double ratio;
    int form;
    int dump;
    struct hb_words axes;
    const char *file;
    struct hb_words rest;
};

static const struct hb_opt rows[] = {
    {"FILE", 0, HB_OPT_OPERAND, NULL, "the file", NULL, offsetof(struct record, file), 0, 0},
    {"MORE", 0, HB_OPT_OPERANDS_MAYBE, NULL, "more", NULL, offsetof(struct record, rest), 0, 0},
    {"fast", 'f', HB_OPT_FLAG, NULL, "be quick", NULL, offsetof(struct record, fast), 0, 0},
    {"name", 0, HB_OPT_STRING, "NAME", "a name", NULL, offsetof(struct record, name), 0, 0},
    {"jobs", 'j', HB_OPT_INT, "N", "how many", "2", offsetof(struct record, jobs), 1, 64},
    {"count", 0, HB_OPT_INT, "N", "any", NULL, offsetof(struct record, count), 0, 0},
    {"budget", 0, HB_OPT_SIZE, "SIZE", "bytes", NULL, offsetof(struct record, budget_bytes), 0, 0},
    {"ratio", 0, HB_OPT_DOUBLE, "X", "ratio", "1.5", offsetof(struct record, ratio), 0, 0},
    {"form", 0, HB_OPT_CHOICE, "text|json|csv", "form", "json", offsetof(struct record, form), 0,
     0},
    {"dump", 0, HB_OPT_CHOICE, "graph|heap", "dump", NULL, offsetof(struct record, dump), 0, 0},
    {"axis", 'x', HB_OPT_WORDS, "AXIS", "axis", NULL, offsetof(struct record, axes), 0, 0},
    {0},
};

static const struct hb_cmd cmd = {
    .name = "try",
    .summary = "tries the parser",
    .about = "A paragraph.",
    .example = "hbmsim try a.yaml",
    .options = rows,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT | HB_COMMON_SET,
};

enum { MAX_WORDS = 40 };

/* Parses the words of a line that are apart by one blank. */
static int parse(struct unit *u, const char *line, struct record *record)
{
    static char copy[1000];
    char *argv[MAX_WORDS + 1] = {0};
    int argc = 0;
    snprintf(copy, sizeof copy, "try %s", line);
    for (char *word = copy; word && argc < MAX_WORDS;) {
        argv[argc++] = word;
        word = strchr(word, ' ');
        if (word)
            *word++ = '\0';
    }
    if (argv[argc - 1][0] == '\0')
        argv[--argc] = NULL;
    memset(record, 0, sizeof *record);
    return hb_opt_parse(&u->env, &cmd, argc, argv, record);
}

static void every_kind_is_read(void **state)
{
    (void)state;
    struct unit u;
    struct record r;
    unit_start(&u);
    assert_int_equal(parse(&u,
                           "a.yaml --fast --name n --jobs 7 --count=900 --budget 95GiB "
                           "--ratio -0.25 --form csv --dump heap -x p --axis=q -o out.json "
                           "--json b c",
                           &r),
                     HB_GO_ON);
    assert_true(r.fast && r.common.json);
    assert_string_equal(r.name, "n");
    assert_int_equal(r.jobs, 7);
    assert_int_equal(r.count, 900);
    assert_int_equal(r.budget_bytes, INT64_C(95) << 30);
    assert_true(r.ratio == -0.25);
    assert_int_equal(r.form, 2);
    assert_int_equal(r.dump, 1);
    assert_int_equal(r.axes.count, 2);
    assert_string_equal(r.axes.items[0], "p");
    assert_string_equal(r.axes.items[1], "q");
    assert_string_equal(r.common.output, "out.json");
    assert_string_equal(r.file, "a.yaml");
    assert_int_equal(r.rest.count, 2);
    assert_string_equal(r.rest.items[1], "c");
    unit_end(&u);
}

static void defaults_stand_where_nothing_is_said(void **state)
{
    (void)state;
    struct unit u;
    struct record r;
    unit_start(&u);
    assert_int_equal(parse(&u, "a.yaml", &r), HB_GO_ON);
    assert_false(r.fast || r.common.json);
    assert_null(r.name);
    assert_int_equal(r.jobs, 2);
    assert_int_equal(r.count, 0);
    assert_true(r.ratio == 1.5);
    assert_int_equal(r.form, 1);
    assert_int_equal(r.dump, -1);
    assert_int_equal(r.axes.count, 0);
    assert_string_equal(r.common.output, "-");
    unit_end(&u);
}

static void short_forms_and_the_dash(void **state)
{
    (void)state;
    struct unit u;
    struct record r;
    unit_start(&u);
    assert_int_equal(parse(&u, "-f -j3 -oX -x a -xb -", &r), HB_GO_ON);
    assert_true(r.fast);
    assert_int_equal(r.jobs, 3);
    assert_string_equal(r.common.output, "X");
    assert_int_equal(r.axes.count, 2);
    assert_string_equal(r.file, "-");
    assert_int_equal(parse(&u, "-- --fast -x", &r), HB_GO_ON);
    assert_false(r.fast);
    assert_string_equal(r.file, "--fast");
    assert_string_equal(r.rest.items[0], "-x");
    assert_int_equal(parse(&u, "a --set k=v --set=a.b=c=d", &r), HB_GO_ON);
    assert_string_equal(r.common.set.items[0], "k=v");
    assert_string_equal(r.common.set.items[1], "a.b=c=d");
    unit_end(&u);
}

static const struct {
    const char *line;
    const char *message;
} bad[] = {
    {"", "'try' wants FILE; try 'hbmsim try --help'"},
    {"a --fats", "'try' has no option '--fats'; did you mean '--fast'?"},
    {"a --jbos=3", "'try' has no option '--jbos'; did you mean '--jobs'?"},
    {"a --zzzzzzz", "'try' has no option '--zzzzzzz'; 'hbmsim try --help' lists them"},
    {"a -q", "'try' has no option '-q'; 'hbmsim try --help' lists them"},
    {"a -fx", "'try' has no option '-fx'; 'hbmsim try --help' lists them"},
    {"a --fast=1", "--fast takes no value"},
    {"a --name", "--name wants a value: --name NAME"},
    {"a -j", "--jobs wants a value: --jobs N"},
    {"a --jobs 0", "--jobs: '0' is not a whole number from 1 to 64"},
    {"a --jobs 65", "--jobs: '65' is not a whole number from 1 to 64"},
    {"a --jobs 3x", "--jobs: '3x' is not a whole number from 1 to 64"},
    {"a --jobs=", "--jobs: '' is not a whole number from 1 to 64"},
    {"a --count 99999999999999999999",
     "--count: '99999999999999999999' is not a whole number of 0 or more"},
    {"a --count -1", "--count: '-1' is not a whole number of 0 or more"},
    {"a --budget lots", "--budget: 'lots' is not a size; write bytes, or \"95GiB\", \"512 MB\""},
    {"a --ratio x", "--ratio: 'x' is not a number"},
    {"a --ratio nan", "--ratio: 'nan' is not a number"},
    {"a --form jsno", "--form: 'jsno' is not one of text|json|csv; did you mean 'json'?"},
    {"a --form yellow", "--form: 'yellow' is not one of text|json|csv"},
    {"a --jobs 2 -j 3", "--jobs is given twice"},
};

static void wrong_lines_are_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct unit u;
        struct record r;
        unit_start(&u);
        assert_int_equal(parse(&u, bad[i].line, &r), HB_EXIT_INPUT);
        assert_int_equal(u.diag.errors, 1);
        assert_string_equal(u.diag.entries[0].text, bad[i].message);
        unit_end(&u);
    }
}

static void all_errors_of_a_line_are_told(void **state)
{
    (void)state;
    struct unit u;
    struct record r;
    unit_start(&u);
    assert_int_equal(parse(&u, "--jobs x --form y --nme z", &r), HB_EXIT_INPUT);
    assert_int_equal(u.diag.errors, 3);
    unit_end(&u);
}

static void a_further_operand_is_refused(void **state)
{
    (void)state;
    struct unit u;
    struct record r = {0};
    unit_start(&u);
    struct hb_cmd one = cmd;
    static const struct hb_opt only_file[] = {
        {"FILE", 0, HB_OPT_OPERAND, NULL, "the file", NULL, offsetof(struct record, file), 0, 0},
        {0},
    };
    one.options = only_file;
    char words[3][4] = {"try", "a", "b"};
    char *argv[] = {words[0], words[1], words[2], NULL};
    assert_int_equal(hb_opt_parse(&u.env, &one, 3, argv, &r), HB_EXIT_INPUT);
    assert_string_equal(u.diag.entries[0].text, "'try' does not take a further argument 'b'");
    char set[] = "b=2";
    argv[2] = set;
    one.common = HB_COMMON_SET;
    assert_int_equal(hb_opt_parse(&u.env, &one, 3, argv, &r), HB_EXIT_INPUT);
    assert_non_null(strstr(u.diag.entries[1].text, "'b=2'; a key is set by --set KEY=VALUE"));
    assert_non_null(strstr(u.diag.entries[1].text, "`hbmsim import FILE KEY=VALUE"));
    unit_end(&u);
}

static void help_shows_the_table(void **state)
{
    (void)state;
    struct unit u;
    struct record r;
    unit_start(&u);
    assert_int_equal(parse(&u, "--help", &r), HB_EXIT_YES);
    const char *text = unit_out(&u);
    static const char *const parts[] = {"usage: hbmsim try [OPTIONS] FILE [MORE...]\n",
                                        "A paragraph.",
                                        "--jobs N",
                                        "how many [2]",
                                        "--form text|json|csv",
                                        "-o, --output FILE",
                                        "--set KEY=VALUE",
                                        "--json",
                                        "-h, --help",
                                        "example:\n  hbmsim try a.yaml\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(text, parts[i]))
            fail_msg("no '%s' in:\n%s", parts[i], text);
    unit_end(&u);
}

static void a_wrong_option_beats_help(void **state)
{
    (void)state;
    struct unit u;
    struct record r;
    unit_start(&u);
    assert_int_equal(parse(&u, "--help --wrong", &r), HB_EXIT_INPUT);
    assert_string_equal(unit_out(&u), "");
    unit_end(&u);
}

static void commands_without_options_parse(void **state)
{
    (void)state;
    struct unit u;
    char nothing = 0;
    unit_start(&u);
    const struct hb_cmd bare = {.name = "bare", .summary = "none"};
    char word[] = "bare";
    char *argv[] = {word, NULL};
    assert_int_equal(hb_opt_parse(&u.env, &bare, 1, argv, &nothing), HB_GO_ON);
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read),
        cmocka_unit_test(defaults_stand_where_nothing_is_said),
        cmocka_unit_test(short_forms_and_the_dash),
        cmocka_unit_test(wrong_lines_are_explained),
        cmocka_unit_test(all_errors_of_a_line_are_told),
        cmocka_unit_test(a_further_operand_is_refused),
        cmocka_unit_test(help_shows_the_table),
        cmocka_unit_test(a_wrong_option_beats_help),
        cmocka_unit_test(commands_without_options_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
