/* sim/eager/actions: what each rank of a pipeline does, against torch's own tables
 * (tests/golden/torch-schedules.txt: of several stages a rank all that its runtime does, of one
 * the passes, those of 1f1b as they ran). */
#include "tests/unit/each.h"

#include <string.h>

#include "base/str.h"
#include "models/schema.h"
#include "sim/eager/alike.h"
#include "sim/eager/clock.h"

static enum hb_schedule schedule_named(const char *name)
{
    for (int i = HB_SCHED_SPMD; i <= HB_SCHED_DUALPIPE_V; i++)
        if (strcmp(hb_schedule_name((enum hb_schedule)i), name) == 0)
            return (enum hb_schedule)i;
    fail_msg("no schedule '%s'", name);
    return HB_SCHED_SPMD;
}

static const char *told(const struct hb_pipeline *p, int64_t rank)
{
    struct hb_actions a = hb_pipeline_is_many(p) ? hb_pipeline_actions(u.env.arena, p)[rank]
                                                 : hb_pipeline_passes(u.env.arena, p, rank);
    struct hb_str out;
    hb_str_init(&out, u.env.arena);
    for (uint32_t i = 0; i < a.count; i++) {
        hb_str_add(&out, i ? " " : "");
        hb_action_name(&out, &a.list[i]);
    }
    return out.text;
}

static int64_t number(char **text)
{
    return strtoll(*text, text, 10);
}

static void ranks_do_what_torch_lists(void **state)
{
    (void)state;
    FILE *f = fopen(HB_SOURCE_DIR "/tests/golden/torch-schedules.txt", "r");
    char line[8192];
    int lines = 0;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        char *at = strchr(line, ' '), *list = strstr(line, " : ");
        assert_true(at && list);
        *at++ = '\0';
        line[strcspn(line, "\n")] = '\0';
        list[strcspn(list, "\n")] = '\0';
        struct hb_pipeline p = {.schedule = schedule_named(line)};
        p.ranks = number(&at);
        p.chunks = number(&at);
        p.microbatches = number(&at);
        assert_string_equal(told(&p, number(&at)), list + 3);
        lines++;
    }
    fclose(f);
    assert_true(lines >= 60);
}

static void check_rank(const struct hb_pipeline *p, int64_t rank)
{
    struct hb_actions a = hb_pipeline_passes(u.env.arena, p, rank);
    int64_t forwards = 0, inputs = 0, weights = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        enum hb_action_kind k = a.list[i].kind;
        assert_int_equal(hb_pipeline_rank(p, a.list[i].stage), rank);
        forwards += k == HB_ACT_FORWARD;
        inputs += k == HB_ACT_BACKWARD || k == HB_ACT_INPUT;
        weights += k == HB_ACT_BACKWARD || k == HB_ACT_WEIGHT;
        assert_true(inputs <= forwards && weights <= inputs);
    }
    assert_int_equal(forwards, p->microbatches * p->chunks);
    assert_int_equal(inputs, forwards);
    assert_int_equal(weights, forwards);
}

/* Every microbatch goes through each of a rank's stages once, forwards before backwards. */
static void every_pass_runs_once(void **state)
{
    (void)state;
    enum { MOST = 5, ROUNDS = 3 };
    for (int s = HB_SCHED_GPIPE; s <= HB_SCHED_DUALPIPE_V; s++)
        for (int64_t i = 0; i < (MOST - 1) * ROUNDS; i++) {
            int64_t ranks = 2 + i / ROUNDS, many = s != HB_SCHED_GPIPE && s != HB_SCHED_1F1B;
            struct hb_pipeline p = {(enum hb_schedule)s, ranks, 1 + many, ranks * (2 + i % ROUNDS)};
            for (int64_t r = 0; r < ranks; r++)
                check_rank(&p, r);
        }
}

static int64_t bubble(enum hb_schedule schedule, int64_t chunks, int64_t m, int64_t again)
{
    struct hb_pipeline p = {schedule, 4, chunks, m};
    return hb_pipeline_bubble(u.env.arena, &p, (struct hb_pass_times){1, 1, 1, again});
}

/* Papers' own bubbles, in passes of a chunk (F = I = W = 1): (P - 1)(F + I + W), a third of it in
 * ZB1P (Qi et al. 2023), none in ZBV; DualPipeV's chunks wait for (P / 2 - 1)(F + I + W + I - 3 W)
 * at most. */
static void bubbles_are_the_papers_own(void **state)
{
    (void)state;
    assert_int_equal(bubble(HB_SCHED_GPIPE, 1, 8, 0), 3 * 3);
    assert_int_equal(bubble(HB_SCHED_1F1B, 1, 8, 0), 3 * 3);
    assert_int_equal(bubble(HB_SCHED_INTERLEAVED, 2, 8, 0), 3 * 3);
    assert_int_equal(bubble(HB_SCHED_ZERO_BUBBLE, 1, 8, 0), 3);
    assert_int_equal(bubble(HB_SCHED_ZBV, 2, 12, 0), 3);
    assert_true(bubble(HB_SCHED_DUALPIPE_V, 2, 12, 0) < 3 * 3);
    assert_true(bubble(HB_SCHED_ZERO_BUBBLE, 1, 8, 9) >= 8 * 9);
}

static bool is_pass(const struct hb_action *a)
{
    return a->kind <= HB_ACT_WEIGHT;
}

static void check_left_out(const struct hb_pipeline *p, int64_t rank, const struct hb_actions *todo)
{
    struct hb_alike *alike = hb_alike_find(u.env.arena, p, rank, todo);
    uint32_t passes = 0, run = 0;
    for (uint32_t i = 0; i < todo->count; i++) {
        const struct hb_action *a = &todo->list[i], *as = &todo->list[alike[i].model];
        passes += is_pass(a);
        run += is_pass(a) && alike[i].kind != HB_ALIKE_LEFT_OUT;
        if (alike[i].kind == HB_ALIKE_RUN)
            continue;
        assert_true(hb_action_is_of_one(a) && alike[i].model <= i);
        assert_true(as->kind == a->kind && as->stage == a->stage && as->microbatch > 0);
        assert_int_equal(alike[alike[i].model].kind, HB_ALIKE_MODEL);
        assert_int_equal(alike[i].kind == HB_ALIKE_MODEL, alike[i].model == i);
    }
    if (run * 5 > passes)
        fail_msg("%s, rank %lld: %u of %u passes run", hb_schedule_name(p->schedule),
                 (long long)rank, run, passes);
}

/* Only of a few microbatches of each kind is anything run, and what is left out does what one of
 * these did: never the first, whose gradients are no sums. */
static void most_microbatches_do_what_one_did(void **state)
{
    (void)state;
    for (int s = HB_SCHED_INTERLEAVED; s <= HB_SCHED_DUALPIPE_V; s++) {
        struct hb_pipeline p = {(enum hb_schedule)s, 8, 2, 64};
        const struct hb_actions *all = hb_pipeline_actions(u.env.arena, &p);
        for (int64_t r = 0; r < p.ranks; r++)
            check_left_out(&p, r, &all[r]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_do_what_torch_lists),
                                       cmocka_unit_test(every_pass_runs_once),
                                       cmocka_unit_test(most_microbatches_do_what_one_did),
                                       cmocka_unit_test(bubbles_are_the_papers_own)};
    return cmocka_run_group_tests(tests, start, end);
}
