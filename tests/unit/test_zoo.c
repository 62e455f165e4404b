/* Each card of the model zoo reads, and has the parameters of the published weights
 * (tests/zoo/params.tsv names the source of each count). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"
#include "models/params.h"
#include "models/schema.h"

enum { LEAST_CARDS = 40 };

static bool read_preset(struct hb_arena *arena, const char *name, struct hb_spec *out_spec)
{
    struct hb_diag diag;
    struct hb_node *root = hb_node_new(arena, HB_NODE_MAP, (struct hb_loc){.file = "test"});
    hb_diag_init(&diag, arena);
    const char *set = hb_arena_printf(arena, "model.preset=%s", name);
    bool ok = hb_schema_set(arena, &diag, root, set) &&
              hb_schema_from_node(arena, &diag, root, HB_SOURCE_DIR, out_spec);
    hb_diag_print(&diag, stderr);
    return ok;
}

/* One line of params.tsv; false if the card has another count. */
static bool check_line(struct hb_arena *arena, char *line)
{
    char *name = line;
    char *count = strchr(name, '\t');
    char *tolerance = count ? strchr(count + 1, '\t') : NULL;
    char *source = tolerance ? strchr(tolerance + 1, '\t') : NULL;
    assert_non_null(source);
    *count++ = *tolerance++ = *source++ = '\0';
    double published = strtod(count, NULL);
    double most = strtod(tolerance, NULL);
    assert_true(published > 0 && most > 0 && most <= 0.001 && *source);
    struct hb_spec spec;
    struct hb_params params;
    assert_true(read_preset(arena, name, &spec));
    assert_string_equal(spec.model.name, name);
    hb_params_count(&spec, &params);
    double error = (double)params.total / published - 1;
    if (error <= most && error >= -most)
        return true;
    fprintf(stderr, "%s: %.0f published, %lld counted, %+.3f %%\n", name, published,
            (long long)params.total, error * 100);
    return false;
}

static void counts_the_published_weights(void **state)
{
    (void)state;
    struct hb_arena *arena = hb_arena_new();
    struct hb_text table;
    const char *reason = NULL;
    assert_true(
        hb_file_load(arena, HB_SOURCE_DIR "/tests/zoo/params.tsv", 1 << 20, &table, &reason));
    char *text = hb_arena_strndup(arena, table.text, table.len);
    int cards = 0;
    int wrong = 0;
    for (char *next = text, *line; (line = next) && *line;) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (*line == '#' || !*line)
            continue;
        struct hb_arena_mark mark = hb_arena_mark(arena);
        wrong += !check_line(arena, line);
        hb_arena_rewind(arena, mark);
        cards++;
    }
    assert_int_equal(wrong, 0);
    assert_true(cards >= LEAST_CARDS);
    hb_arena_free(arena);
}

/* No card without a published count, none without a card. */
static void has_a_line_for_each_card(void **state)
{
    (void)state;
    struct hb_arena *arena = hb_arena_new();
    struct hb_text table;
    const char *reason = NULL;
    assert_true(
        hb_file_load(arena, HB_SOURCE_DIR "/tests/zoo/params.tsv", 1 << 20, &table, &reason));
    const char *const *names = hb_file_list(arena, HB_SOURCE_DIR "/models/zoo", ".yaml");
    int cards = 0;
    for (; *names; names++, cards++)
        if (!strstr(table.text, hb_arena_printf(arena, "\n%s\t", *names)))
            fail_msg("no published count for %s", *names);
    assert_true(cards >= LEAST_CARDS);
    hb_arena_free(arena);
}

/* Figures of the model cards: active parameters of a token. */
static void counts_active_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double active;
        double tolerance;
        const char *source;
    } cases[] = {
        {"deepseek-v3", 37e9, 0.02, "arXiv:2412.19437, abstract: 37B activated"},
        {"mixtral-8x7b", 12.9e9, 0.01, "arXiv:2401.04088, section 1: 13B active"},
        {"qwen3-30b-a3b", 3.3e9, 0.02, "model card: 3.3B activated"},
        {"gpt-oss-120b", 5.1e9, 0.15, "model card: 5.1B active, embedding not counted"},
        {"llama3-8b", 8.03e9, 0.001, "dense: all"},
    };
    struct hb_arena *arena = hb_arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hb_spec spec;
        struct hb_params params;
        assert_true(read_preset(arena, cases[i].name, &spec));
        hb_params_count(&spec, &params);
        double error = (double)params.active / cases[i].active - 1;
        if (error > cases[i].tolerance || error < -cases[i].tolerance)
            fail_msg("%s: %lld active, %s", cases[i].name, (long long)params.active,
                     cases[i].source);
    }
    hb_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_the_published_weights),
        cmocka_unit_test(has_a_line_for_each_card),
        cmocka_unit_test(counts_active_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
