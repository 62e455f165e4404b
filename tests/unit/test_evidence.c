/* Words of a log and what they weigh: which words there are, that each counts once. */
#include "tests/unit/unit.h"

#include <string.h>

#include "base/arena.h"
#include "sim/hlo/evidence.h"

static struct hb_evidence evidence_of(const char *const *lines, size_t count)
{
    struct hb_arena *arena = hb_arena_new();
    struct hb_evidence_reader *reader = hb_evidence_begin(arena);
    for (size_t i = 0; i < count; i++)
        hb_evidence_take(reader, hb_span_of(lines[i]));
    struct hb_evidence sum = hb_evidence_sum(reader);
    hb_arena_free(arena);
    return sum;
}

static struct hb_evidence evidence_of_line(const char *line)
{
    return evidence_of(&line, 1);
}

static int64_t trains_beside_bias(const char *line)
{
    return evidence_of_line(line).trains - hb_evidence_bias.trains;
}

static void words_are_in_order_and_weigh_something(void **state)
{
    (void)state;
    assert_true(hb_evidence_word_count > 100);
    for (size_t i = 0; i < hb_evidence_word_count; i++) {
        const struct hb_evidence_word *word = &hb_evidence_words[i];
        assert_true(word->trains || word->teaches || word->mentions);
        assert_true(i == 0 || strcmp(hb_evidence_words[i - 1].text, word->text) < 0);
    }
}

/* Each word of the table is met where it stands alone. */
static void each_word_is_met(void **state)
{
    (void)state;
    for (size_t i = 0; i < hb_evidence_word_count; i++) {
        char text[128];
        const struct hb_evidence_word *word = &hb_evidence_words[i];
        size_t len = strlen(word->text);
        assert_true(len < sizeof text);
        memcpy(text, word->text, len + 1);
        if (text[len - 1] == '*')
            text[len - 1] = 'x'; /* a stem, in a longer word */
        struct hb_evidence sum = evidence_of_line(text);
        struct hb_evidence none = evidence_of_line("");
        bool met = sum.words > 0 || sum.told > 0 || sum.teaches != none.teaches;
        if (!met)
            print_error("%s\n", word->text);
        assert_true(met);
    }
}

static void words_count_once(void **state)
{
    (void)state;
    const char *twice[] = {"the training of it", "TRAINING"};
    assert_int_equal(evidence_of(twice, 2).trains, evidence_of(twice, 1).trains);
    assert_int_equal(evidence_of_line("").trains, hb_evidence_bias.trains);
    assert_int_equal(evidence_of_line("").teaches, hb_evidence_bias.teaches);
    assert_int_equal(evidence_of_line("").mentions, hb_evidence_bias.mentions);
    assert_int_equal(evidence_of_line("").words, 0);
    assert_int_equal(evidence_of_line("").told, 0);
}

/* As in prose, so in the names of a program. */
static void parts_of_names_are_words(void **state)
{
    (void)state;
    int64_t weight = trains_beside_bias("training");
    assert_true(weight > 0);
    assert_int_equal(trains_beside_bias("3.training(7"), weight);
    assert_int_equal(trains_beside_bias("x_training_x"), weight);
    assert_int_equal(trains_beside_bias("XyTraining"), weight);
    assert_int_equal(trains_beside_bias("XYTraining"), weight);
    assert_true(trains_beside_bias("constraining") < weight);
}

static void text_may_end_anywhere(void **state)
{
    (void)state;
    char text[] = "train HTTPTrain \345\206\205\345\255\230\346\272 x\345";
    for (size_t len = 0; len < sizeof text; len++) {
        struct hb_arena *arena = hb_arena_new();
        struct hb_evidence_reader *reader = hb_evidence_begin(arena);
        char *copy = hb_arena_alloc(arena, len + 1, 1);
        memcpy(copy, text, len);
        hb_evidence_take(reader, (struct hb_span){copy, copy + len});
        assert_true(hb_evidence_sum(reader).words >= 0);
        hb_arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_in_order_and_weigh_something),
        cmocka_unit_test(each_word_is_met),
        cmocka_unit_test(words_count_once),
        cmocka_unit_test(parts_of_names_are_words),
        cmocka_unit_test(text_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
