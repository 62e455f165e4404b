/* Pictures in a terminal: never wider than it, plain where it is plain, and saying what the data
 * say. */
#include "tests/unit/unit.h"
#include "tests/unit/pictures.h"

#include <math.h>

#include "plots/term.h"

/* Columns of the widest line, escape sequences taken out. */
static int widest_line(const char *text)
{
    int widest = 0;
    int columns = 0;
    for (; *text; text++) {
        if (*text == '\x1b') {
            while (*text != 'm')
                text++;
            continue;
        }
        if (*text == '\n')
            columns = 0;
        else if (((unsigned char)*text & 0xC0) != 0x80)
            columns++;
        widest = columns > widest ? columns : widest;
    }
    return widest;
}

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text > 0x7E || ((unsigned char)*text < 0x20 && *text != '\n'))
            return false;
    return true;
}

static void check_page(uint64_t seed, int width, int kind)
{
    struct hb_arena *a = hb_arena_new();
    struct hb_rng rng = hb_rng_seed(seed);
    struct hb_term t = {width, seed % 2, seed % 3 == 0};
    struct hb_outcome o = picture_outcome(a, &rng);
    struct hb_fit_map m = picture_map(a, &rng);
    struct hb_pareto p = picture_pareto(a, &rng);
    struct hb_str s;
    hb_str_init(&s, a);
    if (kind == 0)
        hb_term_timeline(&s, &t, &o);
    else if (kind == 1)
        hb_term_fit(&s, &t, &m);
    else
        hb_term_pareto(&s, &t, &p);
    assert_true(s.len > 0 && s.text[s.len - 1] == '\n');
    if (widest_line(s.text) > t.width)
        fail_msg("%d columns of %d:\n%s", widest_line(s.text), t.width, s.text);
    if (!t.unicode && !t.colour && !is_plain(s.text))
        fail_msg("not plain:\n%s", s.text);
    if (!t.colour)
        assert_null(strchr(s.text, '\x1b'));
    hb_arena_free(a);
}

static void pictures_keep_to_the_terminal(void **state)
{
    (void)state;
    static const int widths[] = {40, 57, 80, 133, 400};
    for (uint64_t seed = 1; seed <= 60; seed++)
        for (int i = 0; i < 5; i++)
            for (int kind = 0; kind < 3; kind++)
                check_page(seed, widths[i], kind);
}

static void a_map_is_drawn(void **state)
{
    (void)state;
    static const char *xs[] = {"8", "16", "32"};
    static const char *ys[] = {"2k", "4k"};
    static double xv[] = {8, 16, 32}, yv[] = {2048, 4096};
    static struct hb_fit_cell cells[6];
    static const int64_t gib[6] = {20, 35, 70, 36, 69, -1};
    for (int i = 0; i < 6; i++)
        cells[i].peak_bytes = gib[i] < 0 ? -1 : gib[i] << 30;
    struct hb_fit_map m = {.name = "",
                           .budget_bytes = INT64_C(60) << 30,
                           .x = {"batch.global", 3, xs, xs, xv},
                           .y = {"batch.seq", 2, ys, ys, yv},
                           .facet_count = 1,
                           .cells = cells,
                           .best = 3};
    struct hb_arena *a = hb_arena_new();
    struct hb_str s;
    hb_str_init(&s, a);
    hb_term_fit(&s, &(struct hb_term){40, false, false}, &m);
    assert_string_equal(s.text, "fits up to 8 x 4k; 16 x 4k lacks 9 GiB\n"
                                "4k    36.0*   69.0x       ?\n"
                                "2k    20.0#   35.0#   70.0x\n"
                                "          8      16      32\n"
                                "across: batch.global, up: batch.seq\n"
                                "# fits  x does not  * best  ? cannot be;\n"
                                "peak in GiB\n");
    hb_arena_free(a);
}

static void check_words(int width, const char *wanted)
{
    static const char *xs[] = {"none", "dots_with_no_batch_dims"};
    static const char *ys[] = {"[q,k,v]", "[mlp_up,mlp_gate,attn_out]"};
    static double value[] = {(double)NAN, (double)NAN};
    static struct hb_fit_cell cells[4];
    cells[0] = (struct hb_fit_cell){.peak_bytes = INT64_C(70) << 30, .own = true};
    cells[1] = (struct hb_fit_cell){.peak_bytes = INT64_C(50) << 30, .best = true};
    cells[2] = (struct hb_fit_cell){.peak_bytes = INT64_C(40) << 30, .best = true};
    cells[3] = (struct hb_fit_cell){.peak_bytes = -1, .error = "no"};
    struct hb_fit_map m = {.name = "",
                           .budget_bytes = INT64_C(60) << 30,
                           .x = {"remat.policy", 2, xs, xs, value},
                           .y = {"remat.save", 2, ys, ys, value},
                           .facet_count = 1,
                           .cells = cells,
                           .best = 1};
    struct hb_arena *a = hb_arena_new();
    struct hb_str s;
    hb_str_init(&s, a);
    hb_term_fit(&s, &(struct hb_term){width, false, false}, &m);
    assert_string_equal(s.text, wanted);
    hb_arena_free(a);
}

/* Words are told whole: in wider cells, or as letters with a line each. */
static void words_are_whole(void **state)
{
    (void)state;
    check_words(88, "2 of 4 fit; none x [q,k,v] lacks 10 GiB\n"
                    "[mlp_up,mlp_gate,attn_out]                     40.0*"
                    "                        ?\n"
                    "                   [q,k,v]                    [70.0x]"
                    "                   50.0*\n"
                    "                                                none"
                    "  dots_with_no_batch_dims\n"
                    "across: remat.policy, up: remat.save\n"
                    "# fits  x does not  * best  ? cannot be  [ ] as it stands; peak in GiB\n");
    check_words(50, "2 of 4 fit; none x [q,k,v] lacks 10 GiB\n"
                    "  B    40.0*       ?\n"
                    "  A   [70.0x]  50.0*\n"
                    "           a       b\n"
                    "across: remat.policy, up: remat.save\n"
                    "  a  none\n"
                    "  b  dots_with_no_batch_dims\n"
                    "  A  [q,k,v]\n"
                    "  B  [mlp_up,mlp_gate,attn_out]\n"
                    "# fits  x does not  * best  ? cannot be  [ ] as it\n"
                    "stands; peak in GiB\n");
}

static void a_step_is_drawn(void **state)
{
    (void)state;
    double seconds[] = {0, 1, 2, 3};
    int64_t saved[] = {10, 20, 40, 5};
    struct hb_shown_span phases[] = {{"forward", 0, 2}, {"backward", 2, 4}};
    struct hb_outcome o = {.name = "",
                           .step_seconds = 4,
                           .budget_bytes = 30,
                           .sample_count = 4,
                           .seconds = seconds,
                           .phases = phases,
                           .phase_count = 2};
    o.category_curve[HB_CAT_SAVED] = saved;
    struct hb_arena *a = hb_arena_new();
    struct hb_str s;
    hb_str_init(&s, a);
    hb_term_timeline(&s, &(struct hb_term){51, false, false}, &o);
    assert_string_equal(s.text, "     40 B |                    ##########\n"
                                "          |                    ##########\n"
                                "          |                    ##########\n"
                                "     30 B |--------------------##########----------\n"
                                "          |                    ##########\n"
                                "          |                    ##########\n"
                                "          |          ####################\n"
                                "          |          ####################\n"
                                "          |          ####################\n"
                                "          |##############################\n"
                                "          |########################################\n"
                                "        0 |########################################\n"
                                "      4 s  |forward            |backward\n");
    hb_arena_free(a);
}

static void a_plan_is_drawn(void **state)
{
    (void)state;
    struct hb_pareto_point points[] = {{"", INT64_C(90) << 30, 0.5, HB_RANK_OTHER},
                                       {"full", INT64_C(20) << 30, 2, HB_RANK_RUNNER_UP},
                                       {"dots", INT64_C(70) << 30, 1, HB_RANK_PLAN}};
    struct hb_pareto p = {
        .name = "", .budget_bytes = INT64_C(80) << 30, .points = points, .count = 3, .plan = 2};
    struct hb_arena *a = hb_arena_new();
    struct hb_str s;
    hb_str_init(&s, a);
    hb_term_pareto(&s, &(struct hb_term){60, false, false}, &p);
    assert_non_null(strstr(s.text, "plan: 1 s a step at 70 GiB of 80 GiB; the next takes 100 %"));
    assert_non_null(strstr(s.text, "  *        1 s     70 GiB  dots\n"));
    assert_non_null(strstr(s.text, "  1        2 s     20 GiB  full\n"));
    assert_non_null(strstr(s.text, "  90 GiB |^"));
    assert_non_null(strstr(s.text, "  80 GiB |---"));
    hb_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_keep_to_the_terminal),
        cmocka_unit_test(a_map_is_drawn),
        cmocka_unit_test(words_are_whole),
        cmocka_unit_test(a_step_is_drawn),
        cmocka_unit_test(a_plan_is_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
