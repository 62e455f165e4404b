/* solver/journal: lines that are appended come back; whatever bit of them flips, none comes back
 * as another. */
#include "tests/unit/unit.h"

#include "base/json.h"
#include "solver/journal.h"

static const char path[] = "/tmp/hbmsim-journal-test";
static const char first[] = "{\"sweep\":1}\n";
static const char *const lines[] = {"{\"cell\":0,\"peak_bytes\":90113}\n",
                                    "{\"cell\":1,\"error\":\"no\"}\n"};

static size_t make(struct unit *u, char *bytes, size_t room)
{
    char file[64];
    snprintf(file, sizeof file, "%s-%ld", path, (long)getpid());
    unlink(file);
    struct hb_journal *j = hb_journal_open(u->env.arena, file, first);
    for (int i = 0; i < 2; i++)
        hb_journal_add(j, lines[i], strlen(lines[i]));
    hb_journal_close(j);
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    size_t len = fread(bytes, 1, room, f);
    fclose(f);
    return len;
}

/* How many lines there are after the first; -1: refused. Each must be one that was written. */
static int read_back(struct unit *u, const char *bytes, size_t len)
{
    char file[64];
    struct hb_jsonl all;
    const char *text;
    int count = 0;
    snprintf(file, sizeof file, "%s-%ld", path, (long)getpid());
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
    bool ok = hb_journal_read(u->env.arena, u->env.diag, file, &text, &all);
    unlink(file);
    if (!ok)
        return -1;
    for (text = strchr(text, '\n') + 1; *text; text = strchr(text, '\n') + 1, count++) {
        size_t body = strlen(lines[count]) - 2;
        assert_memory_equal(text, lines[count], body);
        assert_memory_equal(text + body, ",\"check\":\"", 10);
    }
    return count;
}

static void no_flipped_bit_is_believed(void **state)
{
    (void)state;
    struct unit u;
    char bytes[400];
    int refused = 0;
    unit_start(&u);
    size_t len = make(&u, bytes, sizeof bytes);
    assert_int_equal(read_back(&u, bytes, len), 2);
    assert_int_equal(u.diag.errors, 0);
    for (size_t bit = 8 * strlen(first); bit < 8 * len; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        refused += read_back(&u, bytes, len) < 0;
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    /* Without its end, the last line is that of a killed writer: cut off, and run again. */
    assert_int_equal(refused, 8 * (len - strlen(first)) - 8);
    unit_end(&u);
}

static void a_changed_line_is_named(void **state)
{
    (void)state;
    struct unit u;
    char bytes[400];
    unit_start(&u);
    size_t len = make(&u, bytes, sizeof bytes);
    *(char *)memchr(bytes, '9', len) = '8';
    assert_int_equal(read_back(&u, bytes, len), -1);
    assert_int_equal(u.diag.entries[0].loc.line, 2);
    assert_non_null(strstr(u.diag.entries[0].text, "checksum"));
    unit_end(&u);
}

static const char *put(const char *bytes, size_t len)
{
    static char file[64];
    snprintf(file, sizeof file, "%s-%ld", path, (long)getpid());
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
    return file;
}

static bool read_file(struct unit *u, const char *file, const char **text)
{
    struct hb_jsonl all;
    bool ok = hb_journal_read(u->env.arena, u->env.diag, file, text, &all);
    assert_true(!ok || !*text || (all.text == *text && all.len == strlen(*text)));
    return ok;
}

/* What is not there, or has no whole line, is no journal yet; what cannot be one is refused. */
static void files_that_are_none(void **state)
{
    (void)state;
    struct unit u;
    const char *text = first, *file;
    unit_start(&u);
    assert_true(read_file(&u, "/tmp/hbmsim-journal-none", &text) && !text);
    file = put("", 0);
    text = first;
    assert_true(read_file(&u, file, &text) && !text);
    put("{\"sweep\":1", 10);
    text = first;
    assert_true(read_file(&u, file, &text) && !text);
    put("{\"sweep\":1}\n", 12);
    assert_true(read_file(&u, file, &text));
    assert_string_equal(text, first);
    put("{\"sweep\":1}\n{\"cell", 18);
    assert_true(read_file(&u, file, &text));
    assert_string_equal(text, first);
    assert_int_equal(u.diag.errors, 0);
    put("{\"swe\0p\":1}\n", 12);
    assert_false(read_file(&u, file, &text));
    assert_non_null(strstr(u.diag.entries[0].text, "NUL"));
    unlink(file);
    assert_false(read_file(&u, "/tmp", &text));
    assert_false(read_file(&u, "/tmp/hbmsim-journal-none/x", &text) && text);
    unit_end(&u);
}

/* Lines that are shorter than a checksum, and those that are one and nothing else. */
static void short_lines_are_refused(void **state)
{
    (void)state;
    static const char whole[] = ",\"check\":\"cbf29ce484222325\"}"; /* of nothing */
    struct unit u;
    const char *text;
    char bytes[100];
    for (size_t len = 0; len < sizeof whole; len++) {
        unit_start(&u);
        int all = snprintf(bytes, sizeof bytes, "%s%.*s\n", first, (int)len, whole);
        const char *file = put(bytes, (size_t)all);
        assert_false(read_file(&u, file, &text));
        assert_int_equal(u.diag.entries[0].loc.line, 2);
        unlink(file);
        unit_end(&u);
    }
}

/* A writer goes on behind the last whole line, and names the grid where there is none. */
static void writers_go_on(void **state)
{
    (void)state;
    struct unit u;
    char bytes[400], file[64];
    const char *text;
    unit_start(&u);
    size_t len = make(&u, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= len; cut++) {
        snprintf(file, sizeof file, "%s", put(bytes, cut));
        struct hb_journal *j = hb_journal_open(u.env.arena, file, first);
        hb_journal_add(j, lines[1], strlen(lines[1]));
        hb_journal_close(j);
        assert_true(read_file(&u, file, &text));
        size_t kept = 0;
        for (size_t i = 0; i < cut; i++)
            kept = bytes[i] == '\n' ? i + 1 : kept;
        size_t start = kept ? kept : strlen(first);
        assert_memory_equal(text, bytes, start);
        assert_memory_equal(text + start, lines[1], strlen(lines[1]) - 2);
        assert_int_equal(strchr(text + start, '\n')[1], '\0');
        unlink(file);
    }
    assert_int_equal(u.diag.errors, 0);
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_flipped_bit_is_believed),
        cmocka_unit_test(a_changed_line_is_named),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(short_lines_are_refused),
        cmocka_unit_test(writers_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
