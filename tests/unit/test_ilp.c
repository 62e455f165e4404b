/* The integer programs against another solver, CBC: each is written in CPLEX LP form, solved by
 * both, and the optima agree to 1e-6. And against the walk over all configurations: the optimum is
 * below the best of them, and infeasible ones have none. Where all tables are lines it is the best
 * itself. */
#include "tests/prop/zoo_specs.h"

#include <math.h>

#include "hw/device.h"
#include "solver/brute.h"
#include "solver/ilp.h"
#include "solver/menu.h"
#include "tests/prop/seed.h"
#include "tests/unit/made_segment.h"

enum { PROGRAMS = 40, POLICIES = 6 };

struct sample {
    struct hb_arena *arena;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_menu *menus;
    struct hb_segment segment;
    struct hb_ilp_ask ask;
    uint32_t policies; /* of each block; 0: POLICIES */
};

/* Random policies for its spec. */
static bool finish_sample(struct sample *s, struct hb_rng *rng)
{
    struct hb_diag diag;
    const char *why;
    hb_diag_init(&diag, s->arena);
    assert_true(hb_device_load(s->arena, &diag, HB_SOURCE_DIR, s->spec.hardware.device,
                               (struct hb_loc){0}, &s->device));
    s->menus = zoo_menus(s->arena, rng, &s->spec.model, s->policies ? s->policies : POLICIES);
    struct hb_segment_ask ask = {.spec = &s->spec, .menus = s->menus, .device = &s->device};
    return hb_segment_build(s->arena, &ask, &s->segment, &why);
}

static bool draw_sample(struct sample *s, struct hb_rng *rng)
{
    zoo_spec(s->arena, rng, &s->spec);
    return finish_sample(s, rng);
}

static uint32_t best_of(struct sample *s, const struct hb_brute_limits *limits,
                        struct hb_brute_choice *out)
{
    return hb_brute_best(s->arena, &s->segment, &s->spec, limits, 1, out);
}

/* A budget that some configurations meet and some do not; sometimes one that none meets. False
 * where all are above the compiler's share. */
static bool draw_limits(struct sample *s, struct hb_rng *rng)
{
    struct hb_brute_choice least, fastest;
    struct hb_brute_limits l = {.goal = HB_GOAL_MEMORY,
                                .time = HB_TIME_SUMS,
                                .budget_bytes = INT64_MAX,
                                .host_bytes = INT64_MAX,
                                .most_value = INT64_MAX,
                                .after_value = -1};
    if (best_of(s, &l, &least) == 0)
        return false;
    l.goal = HB_GOAL_TIME;
    assert_int_equal(best_of(s, &l, &fastest), 1);
    int64_t low = least.price.live_bytes - (INT64_C(1) << 30), high = fastest.price.live_bytes;
    s->ask.segment = &s->segment;
    s->ask.spec = &s->spec;
    s->ask.limits = l;
    s->ask.limits.goal = chance(rng, 25) ? HB_GOAL_MEMORY : HB_GOAL_TIME;
    s->ask.limits.budget_bytes = hb_rng_range(rng, low > 0 ? low : 1, high > low ? high : low + 1);
    return true;
}

static bool has_cbc(void)
{
    return system("command -v cbc >/dev/null 2>&1") == 0;
}

/* CBC's optimum; NAN where it finds the program infeasible. */
static double ask_cbc(struct hb_arena *arena, const char *path)
{
    char line[512];
    double value = NAN;
    FILE *f = popen(
        hb_arena_printf(arena, "cbc %s ratio 0 allow 0 sec 120 solve 2>/dev/null", path), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "Objective value:");
        if (at)
            value = strtod(at + strlen("Objective value:"), NULL);
    }
    pclose(f);
    return value;
}

static void check_walk(struct sample *s, const struct hb_ilp_answer *a)
{
    struct hb_brute_choice best;
    uint32_t found = best_of(s, &s->ask.limits, &best);
    if (found)
        assert_true(a->status == HB_ILP_OPTIMAL && a->bound <= best.value);
    if (a->status == HB_ILP_INFEASIBLE)
        assert_int_equal(found, 0);
}

static void test_agrees(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(31);
    char folder[] = "/tmp/hbmsim-ilp-XXXXXX", lp[64];
    bool cbc = has_cbc();
    int programs = (int)prop_cases(PROGRAMS), compared = 0, infeasible = 0, proven = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(lp, sizeof lp, "%s/program.lp", folder);
    for (int tries = 0; compared + infeasible < programs && tries < 10 * programs; tries++) {
        struct sample s = {.arena = hb_arena_new()};
        struct hb_ilp_answer answer;
        if (draw_sample(&s, &rng) && draw_limits(&s, &rng)) {
            s.ask.lp_file = lp;
            hb_ilp_solve(s.arena, &s.ask, &answer);
            assert_true(answer.status != HB_ILP_LIMIT);
            check_walk(&s, &answer);
            double theirs = cbc ? ask_cbc(s.arena, lp) : NAN;
            infeasible += answer.status == HB_ILP_INFEASIBLE;
            proven += answer.proven;
            compared += answer.status == HB_ILP_OPTIMAL;
            if (cbc && answer.status == HB_ILP_OPTIMAL)
                assert_true(fabs(theirs - answer.objective) <= 1e-6 * fabs(theirs) + 1e-9);
        }
        hb_arena_free(s.arena);
    }
    unlink(lp);
    rmdir(folder);
    print_message("# %d integer programs agree with the walk%s; %d without a solution; %d proven\n",
                  compared, cbc ? " and with CBC" : " (CBC is not installed: not compared with it)",
                  infeasible, proven);
    assert_true(compared >= programs / 2);
    assert_true(proven >= (compared + infeasible) * 8 / 10);
}

/* With a budget of no more than a choice takes, that choice stays: rows of memory that are too
 * tight anywhere would put the bound above it. */
static int check_tight(struct sample *s, int *out_close)
{
    enum { TOP = 6 };
    struct hb_brute_choice top[TOP];
    struct hb_ilp_answer answer;
    s->ask.limits.goal = HB_GOAL_TIME;
    s->ask.limits.budget_bytes = INT64_MAX;
    uint32_t count = hb_brute_best(s->arena, &s->segment, &s->spec, &s->ask.limits, TOP, top);
    for (uint32_t i = 0; i < count; i++) {
        s->ask.limits.budget_bytes = top[i].price.live_bytes;
        hb_ilp_solve(s->arena, &s->ask, &answer);
        check_walk(s, &answer);
        assert_true(answer.status == HB_ILP_OPTIMAL);
        assert_true(answer.bound <= top[i].price.bound_ns);
    }
    s->ask.limits.goal = HB_GOAL_MEMORY;
    s->ask.limits.budget_bytes = INT64_MAX;
    assert_int_equal(best_of(s, &s->ask.limits, top), 1);
    hb_ilp_solve(s->arena, &s->ask, &answer);
    double least = (double)top[0].price.live_bytes;
    assert_true((double)answer.bound <= least);
    if ((double)answer.bound > least * 0.999) {
        ++*out_close;
        s->ask.limits.goal = HB_GOAL_TIME;
        s->ask.limits.budget_bytes = (int64_t)(least * 0.99);
        hb_ilp_solve(s->arena, &s->ask, &answer);
        assert_true(answer.status == HB_ILP_INFEASIBLE);
    }
    return (int)count;
}

/* Of one policy each there is one configuration: every second one. */
static void test_keeps_what_just_fits(void **state)
{
    (void)state;
    int specs = (int)prop_cases(40);
    struct hb_rng rng = hb_rng_seed(53);
    int compared = 0, close = 0;
    for (int tries = 0; tries < specs; tries++) {
        struct sample s = {.arena = hb_arena_new(), .policies = tries % 2 ? 1 : POLICIES};
        if (draw_sample(&s, &rng) && draw_limits(&s, &rng))
            compared += check_tight(&s, &close);
        hb_arena_free(s.arena);
    }
    print_message("# %d kept; %d of %d bounds of memory close\n", compared, close, specs);
    assert_true(compared > specs);
    assert_true(close > specs / 2);
}

/* What is said of a program is proven, and a little more than that is not, and nothing once the
 * search is to end. */
static void test_proves_no_more(void **state)
{
    (void)state;
    int specs = (int)prop_cases(100);
    struct hb_rng rng = hb_rng_seed(61);
    int optimal = 0, proven = 0;
    struct hb_stop over = {.stopped = true};
    for (int tries = 0; tries < specs; tries++) {
        struct sample s = {.arena = hb_arena_new()};
        struct hb_ilp_answer answer;
        if (draw_sample(&s, &rng) && draw_limits(&s, &rng)) {
            hb_ilp_solve(s.arena, &s.ask, &answer);
            if (answer.status == HB_ILP_OPTIMAL) {
                optimal++;
                proven += hb_ilp_proves(s.arena, &s.ask, answer.objective * 0.999);
                assert_false(hb_ilp_proves(s.arena, &s.ask, answer.objective * 1.001));
                assert_false(hb_ilp_proves(s.arena, &s.ask, INFINITY));
                s.ask.limits.stop = &over;
                assert_false(hb_ilp_proves(s.arena, &s.ask, answer.objective * 0.999));
            }
        }
        hb_arena_free(s.arena);
    }
    print_message("# %d of %d proven\n", proven, optimal);
    assert_true(optimal > specs / 2 && proven > optimal * 17 / 20);
}

/* Malformed input to GLPK must not end the process: the hook gives a LIMIT. Budgets at the ends of
 * the range are the nearest that a caller can come to it. */
static void test_survives_extremes(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(7);
    struct sample s = {.arena = hb_arena_new()};
    struct hb_ilp_answer answer;
    while (!draw_sample(&s, &rng))
        ;
    draw_limits(&s, &rng);
    s.ask.limits.budget_bytes = 0;
    hb_ilp_solve(s.arena, &s.ask, &answer);
    assert_true(answer.status == HB_ILP_INFEASIBLE || s.ask.limits.goal == HB_GOAL_MEMORY);
    s.ask.limits.goal = HB_GOAL_TIME;
    s.ask.limits.budget_bytes = INT64_MAX;
    hb_ilp_solve(s.arena, &s.ask, &answer);
    assert_int_equal(answer.status, HB_ILP_OPTIMAL);
    hb_arena_free(s.arena);
}

/* --- where all tables are lines --- */

struct least {
    const struct made *m;
    const struct hb_ilp_ask *ask;
    int64_t value; /* INT64_MAX: none fits */
};

static void take_least(void *context, const struct hb_part *parts, uint32_t count)
{
    struct least *x = context;
    const struct hb_brute_limits *l = &x->ask->limits;
    int64_t bytes = made_bytes(x->m, parts, count, HB_BYTES_DEVICE);
    for (uint32_t i = 0; i < count; i++)
        if (x->ask->leave_out && x->ask->leave_out[parts[i].item])
            return;
    if ((l->goal == HB_GOAL_TIME && bytes > l->budget_bytes) ||
        made_bytes(x->m, parts, count, HB_BYTES_HOST) > l->host_bytes)
        return;
    int64_t value = l->goal == HB_GOAL_TIME ? made_ns(x->m, parts, count) : bytes;
    x->value = value < x->value ? value : x->value;
}

/* Fours of MiB and one: a limit is taken up by one MiB. */
static int64_t made_limit(struct hb_rng *rng)
{
    return (4 * hb_rng_range(rng, 0, 150) + 1) << 20;
}

static void check_made(const struct made *m, struct hb_rng *rng, int *out_counts, int *out_proven)
{
    bool left_out[MADE_BLOCKS * MADE_ITEMS];
    struct hb_ilp_ask ask = {.segment = &m->s, .spec = &m->spec};
    struct hb_ilp_answer answer;
    struct least best = {m, &ask, INT64_MAX};
    struct made_walk walk = {.m = m, .visit = take_least, .context = &best};
    for (uint32_t i = 0; i < m->s.item_count; i++)
        left_out[i] = chance(rng, 20);
    ask.leave_out = chance(rng, 30) ? left_out : NULL;
    ask.limits =
        (struct hb_brute_limits){.goal = chance(rng, 30) ? HB_GOAL_MEMORY : HB_GOAL_TIME,
                                 .time = HB_TIME_SUMS,
                                 .budget_bytes = chance(rng, 80) ? made_limit(rng) : INT64_MAX,
                                 .host_bytes = chance(rng, 50) ? made_limit(rng) : INT64_MAX};
    made_each(&walk);
    hb_ilp_solve(m->arena, &ask, &answer);
    assert_int_equal(answer.status, best.value == INT64_MAX ? HB_ILP_INFEASIBLE : HB_ILP_OPTIMAL);
    out_counts[answer.status]++;
    *out_proven += answer.proven;
    if (answer.status != HB_ILP_OPTIMAL)
        return;
    double unit = ask.limits.goal == HB_GOAL_MEMORY ? 1048576.0 : 1e6;
    double value = (double)best.value / unit;
    assert_true(fabs(answer.objective - value) <= 1e-6 * value);
    assert_true(answer.bound <= best.value &&
                (double)answer.bound >= (double)best.value * (1 - 3e-6) - 1);
}

static void test_is_the_best_of_lines(void **state)
{
    (void)state;
    int segments = (int)prop_cases(400);
    struct hb_rng rng = hb_rng_seed(79);
    int counts[3] = {0}, proven = 0;
    for (int n = 0; n < segments; n++) {
        struct made m = {.arena = hb_arena_new(), .straight = true};
        made_draw(&m, &rng);
        check_made(&m, &rng, counts, &proven);
        hb_arena_free(m.arena);
    }
    print_message("# %d best, %d without a solution, %d proven\n", counts[HB_ILP_OPTIMAL],
                  counts[HB_ILP_INFEASIBLE], proven);
    assert_true(proven > segments * 9 / 10);
    assert_true(counts[HB_ILP_OPTIMAL] > segments / 3 && counts[HB_ILP_INFEASIBLE] > segments / 8);
}

static double part(struct hb_rng *rng)
{
    return (double)hb_rng_range(rng, 0, 1000000) / 1e6;
}

enum { LINEAR = 2000, ROWS = 12, COLUMNS = 20 };

/* A linear program with a point that it contains. */
struct linear {
    struct hb_lp lp;
    struct hb_lp_entry entries[ROWS * COLUMNS + 1];
    struct hb_lp_row rows[ROWS + 1];
    double point[COLUMNS];
};

static double put_entry(struct linear *l, uint32_t column, double value)
{
    l->entries[l->lp.entry_count++] = (struct hb_lp_entry){column, value};
    return value * l->point[column];
}

static void draw_row(struct linear *l, struct hb_rng *rng, bool has_first)
{
    double sum = has_first ? put_entry(l, 0, 1) : 0, size = pow(10, 8 * part(rng) - 2);
    for (uint32_t c = 1; c < COLUMNS; c++)
        if (hb_rng_range(rng, 0, 1))
            sum += put_entry(l, c, size * (2 * part(rng) - 1));
    l->rows[l->lp.row_count++] = (struct hb_lp_row){sum - fabs(sum) * 1e-9, l->lp.entry_count};
}

static void draw_linear(struct linear *l, struct hb_rng *rng)
{
    l->lp = (struct hb_lp){.columns = COLUMNS, .entries = l->entries, .rows = l->rows};
    l->point[0] = 1000 * part(rng);
    for (int c = 1; c < COLUMNS; c++)
        l->point[c] = hb_rng_range(rng, 0, 2) ? (double)hb_rng_range(rng, 0, 1) : part(rng);
    for (int i = 0; i < ROWS; i++)
        draw_row(l, rng, i % 2);
}

/* What they prove is not above column 0 of the point, far as their sizes are apart; and a row that
 * wants more than its column has is found. */
static void test_linear_bounds_hold(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(11);
    struct hb_arena *arena = hb_arena_new();
    struct linear l;
    int rows = (int)prop_cases(LINEAR), tight = 0, infeasible = 0;
    for (int n = 0; n < rows; n++) {
        draw_linear(&l, &rng);
        enum hb_ilp_status status = hb_ilp_linear(arena, &l.lp);
        assert_int_not_equal(status, HB_ILP_INFEASIBLE);
        assert_true(status != HB_ILP_OPTIMAL || l.lp.bound <= l.point[0]);
        tight += status == HB_ILP_OPTIMAL && l.lp.bound > 0;
        put_entry(&l, 1, 1);
        l.rows[l.lp.row_count++] = (struct hb_lp_row){1.001, l.lp.entry_count};
        infeasible += hb_ilp_linear(arena, &l.lp) == HB_ILP_INFEASIBLE;
    }
    hb_arena_free(arena);
    print_message("# %d of %d bounded, %d infeasible\n", tight, rows, infeasible);
    assert_true(tight > rows * 9 / 10 && infeasible > rows * 9 / 10);
}

/* Column 0 alone, at least as much: what is proven is below it by what rounding may have added, and
 * by no more. */
static void test_linear_bounds_are_rounded_down(void **state)
{
    (void)state;
    struct hb_arena *arena = hb_arena_new();
    static const double wanted[] = {1, 3, 7.7, 1e3, 12345.678, 1e7};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct hb_lp_entry entry = {0, 1};
        struct hb_lp_row row = {wanted[i], 1};
        struct hb_lp lp = {
            .columns = 1, .entries = &entry, .entry_count = 1, .rows = &row, .row_count = 1};
        assert_int_equal(hb_ilp_linear(arena, &lp), HB_ILP_OPTIMAL);
        assert_true(lp.bound < wanted[i] && lp.bound > wanted[i] * (1 - 1e-12));
    }
    hb_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees),
                                       cmocka_unit_test(test_keeps_what_just_fits),
                                       cmocka_unit_test(test_proves_no_more),
                                       cmocka_unit_test(test_survives_extremes),
                                       cmocka_unit_test(test_is_the_best_of_lines),
                                       cmocka_unit_test(test_linear_bounds_are_rounded_down),
                                       cmocka_unit_test(test_linear_bounds_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
