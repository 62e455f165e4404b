/* solver/lessons: which cells resemble each other, what they are called, what was learnt of them.
 */
#include "tests/unit/unit.h"

#include "solver/lessons.h"
#include "solver/search.h"

static struct hb_cell plain_cell(void)
{
    struct hb_cell c = {.batch_global = 16,
                        .accumulate = 1,
                        .loss_chunks = 1,
                        .form = HB_FORM_SCAN,
                        .optimizer_offload = HB_PLACE_NONE};
    for (int a = 0; a < HB_AX_COUNT; a++)
        c.mesh[a] = 1;
    return c;
}

/* Each cell of a few values of what counts, by a number. */
static struct hb_cell cell_of(uint32_t number)
{
    struct hb_cell c = plain_cell();
    for (int a = 0; a < HB_AX_COUNT; a++, number /= 2)
        c.mesh[a] = 1 + (int64_t)(number % 2);
    c.loss_chunks = 1 + (int64_t)(number % 2);
    c.accumulate = 1 + (int64_t)(number / 2 % 2);
    c.optimizer_offload = number / 4 % 2 ? HB_PLACE_PINNED_HOST : HB_PLACE_NONE;
    c.form = (enum hb_form)(number / 8 % 3);
    return c;
}

enum { CELLS = 64 * 8 * 3 };

static void no_two_kinds_are_one(void **state)
{
    (void)state;
    uint32_t kinds[CELLS];
    for (uint32_t i = 0; i < CELLS; i++) {
        struct hb_cell c = cell_of(i);
        kinds[i] = hb_cell_kind(&c);
        for (uint32_t k = 0; k < i; k++)
            assert_int_not_equal(kinds[k], kinds[i]);
    }
}

/* Sizes of axes, of the batch, of chunks and of accumulation are not asked, nor is the policy. */
static void sizes_are_not_asked(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CELLS; i++) {
        struct hb_cell c = cell_of(i), more = c;
        for (int a = 0; a < HB_AX_COUNT; a++)
            more.mesh[a] *= c.mesh[a] > 1 ? 3 : 1;
        more.loss_chunks *= c.loss_chunks > 1 ? 4 : 1;
        more.accumulate *= c.accumulate > 1 ? 5 : 1;
        more.batch_global *= 2;
        assert_int_equal(hb_cell_kind(&c), hb_cell_kind(&more));
    }
}

static void kinds_have_names(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_cell c = plain_cell();
    assert_string_equal(hb_cell_kind_name(u.env.arena, &c),
                        "one device, scan, whole logits, no accumulation");
    c.mesh[HB_AX_FSDP] = 8;
    c.loss_chunks = 2;
    assert_string_equal(hb_cell_kind_name(u.env.arena, &c),
                        "fsdp, scan, a loss in chunks, no accumulation");
    c.mesh[HB_AX_PIPELINE] = c.mesh[HB_AX_DATA] = 2;
    c.form = HB_FORM_NESTED;
    c.accumulate = 2;
    c.optimizer_offload = HB_PLACE_PINNED_HOST;
    assert_string_equal(hb_cell_kind_name(u.env.arena, &c),
                        "data and fsdp and pipeline, nested scans, a loss in chunks, accumulation, "
                        "optimizer states on the host");
    c.form = HB_FORM_LOOP;
    for (int a = 0; a < HB_AX_COUNT; a++)
        c.mesh[a] = a == HB_AX_TENSOR || a == HB_AX_SEQUENCE || a == HB_AX_EXPERT ? 2 : 1;
    c.optimizer_offload = HB_PLACE_NONE;
    assert_string_equal(hb_cell_kind_name(u.env.arena, &c),
                        "tensor and sequence and expert, loop, a loss in chunks, accumulation");
    unit_end(&u);
}

static void the_most_of_a_kind_counts(void **state)
{
    (void)state;
    static const struct hb_lesson items[] = {{3, 10}, {7, 5}, {3, 40}, {3, 20}, {9, 1}};
    const struct hb_lessons some = {items, 5}, first = {items, 2}, none = {NULL, 0};
    assert_int_equal(hb_lessons_more(&some, 3), 40);
    assert_int_equal(hb_lessons_more(&first, 3), 10);
    assert_int_equal(hb_lessons_more(&some, 7), 5);
    assert_int_equal(hb_lessons_more(&some, 9), 1);
    assert_int_equal(hb_lessons_more(&first, 9), 0);
    assert_int_equal(hb_lessons_more(&some, 4), 0);
    assert_int_equal(hb_lessons_more(&none, 3), 0);
}

/* Cells of a node: whichever of them has most is what the node may have. */
static void a_node_has_what_its_best_cell_has(void **state)
{
    (void)state;
    enum { COUNT = 6 };
    struct hb_cell cells[COUNT];
    struct hb_lesson items[COUNT];
    struct hb_plan plan = {.space = {.cells = cells, .cell_count = COUNT}};
    struct hb_plan_ask ask = {.budget_bytes = 100, .lessons = {items, COUNT}};
    struct hb_search s = {.ask = &ask, .plan = &plan};
    const struct hb_search_node all = {.first = 0, .end = COUNT}, some = {.first = 2, .end = 4};
    for (uint32_t i = 0; i < COUNT; i++) {
        cells[i] = plain_cell();
        cells[i].form = i < 3 ? HB_FORM_SCAN : HB_FORM_LOOP;
        cells[i].optimizer_offload = i % 3 == 1 ? HB_PLACE_PINNED_HOST : HB_PLACE_NONE;
        cells[i].loss_chunks = i % 3 == 2 ? 4 : 1;
    }
    for (uint32_t best = 0; best < COUNT; best++) {
        for (uint32_t i = 0; i < COUNT; i++)
            items[i] = (struct hb_lesson){hb_cell_kind(&cells[i]), i == best ? 1 : 50};
        for (uint32_t i = 0; i < COUNT; i++)
            assert_int_equal(hb_search_peak_bytes(&s, i), i == best ? 99 : 50);
        assert_int_equal(hb_search_node_peak_bytes(&s, &all), 99);
        assert_int_equal(hb_search_node_peak_bytes(&s, &some), best == 2 || best == 3 ? 99 : 50);
    }
    items[COUNT - 1].more_bytes = 101; /* more than there is */
    assert_int_equal(hb_search_peak_bytes(&s, COUNT - 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_two_kinds_are_one), cmocka_unit_test(sizes_are_not_asked),
        cmocka_unit_test(kinds_have_names), cmocka_unit_test(the_most_of_a_kind_counts),
        cmocka_unit_test(a_node_has_what_its_best_cell_has)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
