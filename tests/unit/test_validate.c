/* sim/engine/validate and pairs: quantiles, verdicts, parts, the usual formula, and differences
 * between records, each on figures worked out by hand. */
#include "tests/unit/unit.h"

#include <math.h>

#include "base/yaml.h"
#include "models/schema.h"
#include "sim/engine/pairs.h"
#include "sim/graph/link.h"

static struct unit u;
static struct hb_arena *scratch;

static int start(void **state)
{
    (void)state;
    unit_start(&u);
    scratch = hb_arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    unit_end(&u);
    hb_arena_free(scratch);
    return 0;
}

static void assert_near(double got, double wanted)
{
    if (got < wanted - 1e-9 || got > wanted + 1e-9)
        fail_msg("%.12g, not %.12g", got, wanted);
}

/* --- one record --- */

static const char model[] = "model:\n"
                            "  d_model: 128\n"
                            "  vocab: 512\n"
                            "  blocks:\n"
                            "    - name: block\n"
                            "      repeat: 3\n"
                            "      attention: {heads: 2}\n"
                            "      mlp: {d_ff: 256}\n"
                            "batch: {global: 2, seq: 128}\n"
                            "mesh: {data: 1}\n"
                            "hardware: {device: nvidia-h100}\n"
                            "compiler: xla-gpu\n";

/* A record of that model; sets ends with null. */
static struct hb_record make_record(const char *id, const char *const *sets)
{
    struct hb_record r = {.id = id,
                          .group = "g",
                          .kind = "xla_total",
                          .argument_bytes = -1,
                          .output_bytes = -1,
                          .temp_bytes = -1,
                          .host_bytes = -1,
                          .peak_bytes = INT64_C(1) << 30,
                          .fits = -1};
    struct hb_node *root;
    assert_true(hb_yaml_parse(u.env.arena, &u.diag, "model", model, strlen(model), &root));
    for (; *sets; sets++)
        assert_true(hb_schema_set(u.env.arena, &u.diag, root, *sets));
    assert_true(hb_schema_from_node(u.env.arena, &u.diag, root, HB_SOURCE_DIR, &r.spec));
    return r;
}

#define RECORD(id, ...) make_record(id, (const char *const[]){__VA_ARGS__, NULL})

static struct hb_case run_case(const struct hb_record *r)
{
    struct hb_case c;
    struct hb_program p;
    struct hb_memory m;
    hb_validate_case(u.env.arena, r, NULL, &c, &p, &m);
    return c;
}

static void a_case_has_both_sides(void **state)
{
    (void)state;
    struct hb_record r = RECORD("a", "hardware.hbm=1GiB");
    struct hb_program p;
    struct hb_memory m;
    assert_true(hb_link_lower(u.env.arena, &u.diag, &r.spec, &p));
    hb_run_memory(u.env.arena, &p, &m);
    r.peak_bytes = 2 * m.peak_bytes;
    r.temp_bytes = 12345;
    r.fits = 1;
    struct hb_case c = run_case(&r);
    assert_null(c.failed);
    assert_int_equal(c.predicted_bytes, m.peak_bytes);
    assert_near(c.error_pct, -50);
    assert_int_equal(c.predicted_part[HB_PART_ARGUMENT], m.argument_bytes);
    assert_int_equal(c.predicted_part[HB_PART_OUTPUT], m.output_bytes);
    assert_int_equal(c.predicted_part[HB_PART_TEMP], m.temp_bytes);
    assert_int_equal(c.predicted_part[HB_PART_HOST], m.host_bytes);
    assert_int_equal(c.measured_part[HB_PART_TEMP], 12345);
    assert_int_equal(c.measured_part[HB_PART_HOST], -1);
    assert_int_equal(c.fits_measured, 1);
    assert_int_equal(c.fits_predicted, 1);
    r.spec.hardware.memory_bytes = 4 * m.peak_bytes; /* the budget is less than the device has */
    r.spec.hardware.hbm_bytes = m.peak_bytes - 1;
    assert_int_equal(run_case(&r).fits_predicted, 0);
    r.spec.hardware.hbm_bytes = m.peak_bytes;
    assert_int_equal(run_case(&r).fits_predicted, 1);
    r.spec.hardware.hbm_bytes = 0; /* not told */
    assert_int_equal(run_case(&r).fits_predicted, -1);
    r.peak_bytes = 0;
    assert_near(run_case(&r).error_pct, 0);
}

/* Budgets at 0.8, 0.9, 1.1 and 1.25 of the measured peak. */
static void verdicts_are_counted(void **state)
{
    (void)state;
    static const struct {
        double of_measured; /* the prediction */
        int right;
    } rows[] = {{1, 4}, {0.91, 4}, {0.89, 3}, {0.79, 2}, {1.09, 4}, {1.11, 3}, {1.26, 2}, {0.1, 2}};
    struct hb_record r = RECORD("a", "step.donate=true");
    int64_t predicted = run_case(&r).predicted_bytes;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        r.peak_bytes = (int64_t)((double)predicted / rows[i].of_measured);
        assert_int_equal(run_case(&r).verdicts_right, rows[i].right);
    }
}

/* Just the budget fits it. */
static void what_takes_all_of_a_budget_fits(void **state)
{
    (void)state;
    int tried = 0;
    for (int layers = 1; layers < 12; layers++) {
        const char *sets[] = {hb_arena_printf(u.env.arena, "model.blocks[0].repeat=%d", layers),
                              NULL};
        struct hb_record r = make_record("a", sets);
        int64_t predicted = run_case(&r).predicted_bytes;
        if (predicted % 5 != 0)
            continue;
        r.peak_bytes = predicted / 5 * 4;
        assert_int_equal(run_case(&r).verdicts_right, 3);
        tried++;
    }
    assert_true(tried > 0);
}

static void what_is_not_simulated_has_failed(void **state)
{
    (void)state;
    struct hb_record r = RECORD("a", "compiler=torch", "loss.chunks=2");
    assert_non_null(strstr(run_case(&r).failed, "torch"));
    r = RECORD("a", "step.donate=true");
    r.kind = "max_reserved";
    assert_non_null(strstr(run_case(&r).failed, "'max_reserved' is not predicted yet"));
    r.kind = "runtime_peak";
    assert_null(run_case(&r).failed);
    r.kind = "speed";
    r.peak_bytes = -1;
    r.step_seconds = 1;
    assert_non_null(strstr(run_case(&r).failed, "no profile"));
}

static void rematerialised_records_stand_apart(void **state)
{
    (void)state;
    struct hb_record r = RECORD("a", "step.donate=true");
    assert_string_equal(run_case(&r).group, "g");
    r.rematerialised = true;
    assert_string_equal(run_case(&r).group, "compiler rematerialised");
}

/* State, gradients like parameters, saved inputs of three layers, f32 logits. */
/* Logits of which no other tensor is as large, and of which the products are larger. */
static void the_usual_formula_is_that_of_people(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{512, 256}, {128, 1024}}; /* vocab, d_ff */
    for (int i = 0; i < 2; i++) {
        int64_t vocab = sizes[i][0], ff = sizes[i][1];
        struct hb_record r =
            RECORD("a", hb_arena_printf(u.env.arena, "model.vocab=%lld", (long long)vocab),
                   hb_arena_printf(u.env.arena, "model.blocks[0].mlp.d_ff=%lld", (long long)ff));
        struct hb_case c = run_case(&r);
        int64_t layer = 4 * 128 * 128 + 3 * 128 * ff + 2 * 128;
        int64_t count = 3 * layer + 2 * vocab * 128 + 128;
        int64_t inputs = 2 * (4 * 2 * 128) + 4; /* tokens, labels, step counter */
        int64_t saved = 3 * (2 * 2 * 128 * 128);
        int64_t logits = 4 * 2 * 128 * vocab;
        assert_int_equal(c.predicted_part[HB_PART_ARGUMENT], 12 * count + inputs);
        assert_int_equal(c.usual_bytes, 16 * count + inputs + saved + logits);
        double of_gib = (double)c.usual_bytes / (double)(INT64_C(1) << 30);
        assert_near(c.usual_error_pct, 100 * (of_gib - 1));
    }
}

/* --- statistics --- */

static struct hb_stats stats_of(const double *errors, int count)
{
    struct hb_case *cases = hb_arena_alloc(u.env.arena, (size_t)count + 1, sizeof *cases);
    const struct hb_case **list = hb_arena_alloc(u.env.arena, (size_t)count + 1, sizeof *list);
    for (int i = 0; i < count; i++) {
        cases[i] = (struct hb_case){.error_pct = errors[i], .usual_error_pct = 2 * errors[i]};
        list[i] = &cases[i];
    }
    return hb_validate_stats(u.env.arena, list, (uint32_t)count, false);
}

/* Nearest rank: the ceil(q n)-th smallest magnitude. */
static void quantiles_are_nearest_rank(void **state)
{
    (void)state;
    double errors[100];
    for (int i = 0; i < 100; i++)
        errors[i] = (i % 2 ? -1 : 1) * (double)((37 * i) % 100 + 1);
    struct hb_stats s = stats_of(errors, 100);
    assert_int_equal(s.n, 100);
    assert_near(s.median_abs_pct, 50);
    assert_near(s.p90_abs_pct, 90);
    assert_near(s.p95_abs_pct, 95);
    assert_near(s.max_abs_pct, 100);
    s = stats_of((const double[]){-3, 1, 2}, 3);
    assert_near(s.median_abs_pct, 2);
    assert_near(s.p90_abs_pct, 3);
    assert_near(s.bias_pct, 0);
    s = stats_of((const double[]){4, -2}, 2);
    assert_near(s.median_abs_pct, 2);
    assert_near(s.bias_pct, 1);
    s = stats_of((const double[]){-7}, 1);
    assert_near(s.median_abs_pct, 7);
    assert_near(s.p95_abs_pct, 7);
    s = stats_of(NULL, 0);
    assert_int_equal(s.n, 0);
    assert_near(s.median_abs_pct, 0);
    assert_near(s.fit_agreement, 0);
}

static void failed_cases_are_counted_apart(void **state)
{
    (void)state;
    struct hb_case good = {.error_pct = 5, .usual_error_pct = -30, .verdicts_right = 3};
    struct hb_case fast = {.error_pct = 9, .speed = true};
    struct hb_case bad = {.failed = "why", .error_pct = 1000, .verdicts_right = 4};
    const struct hb_case *list[] = {&good, &bad, &fast};
    struct hb_stats s = hb_validate_stats(u.env.arena, list, 3, false);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.failed, 1);
    assert_near(s.max_abs_pct, 9);
    assert_near(s.fit_agreement, 0.75); /* records of speed are asked nothing */
    assert_near(hb_validate_stats(u.env.arena, list, 2, true).max_abs_pct, 30);
}

static bool rank_of(const double (*pairs)[2], uint32_t count, double *out)
{
    struct hb_case cases[8] = {{0}};
    const struct hb_case *list[8];
    for (uint32_t i = 0; i < count; i++) {
        cases[i] = (struct hb_case){
            .speed = true, .measured_seconds = pairs[i][0], .predicted_seconds = pairs[i][1]};
        list[i] = &cases[i];
    }
    return hb_validate_rank(u.env.arena, list, count, out);
}

/* Known values: no ties, d = {0, 1, -1, 0}: 1 - 6 x 2 / (4 x 15); ties share their mean rank. */
static void ranks_are_spearman(void **state)
{
    (void)state;
    double rank = -9;
    assert_true(rank_of((const double[][2]){{1, 10}, {2, 30}, {3, 20}, {4, 99}}, 4, &rank));
    assert_near(rank, 0.8);
    assert_true(rank_of((const double[][2]){{1, 5}, {2, 6}, {3, 7e9}}, 3, &rank));
    assert_near(rank, 1);
    assert_true(rank_of((const double[][2]){{3, 5}, {2, 6}, {1, 7}}, 3, &rank));
    assert_near(rank, -1);
    assert_true(rank_of((const double[][2]){{1, 1}, {1, 1}, {2, 3}, {2, 2}}, 4, &rank));
    assert_near(rank, 4 / sqrt(4 * 4.5));
    rank = 7;
    assert_false(rank_of((const double[][2]){{1, 5}, {2, 6}}, 2, &rank));
    assert_false(rank_of((const double[][2]){{1, 5}, {2, 5}, {3, 5}}, 3, &rank));
    assert_near(rank, 7);
    struct hb_case bytes = {0}, failed = {.speed = true, .failed = "why"};
    const struct hb_case *others[] = {&bytes, &failed, &bytes, &failed};
    assert_false(hb_validate_rank(u.env.arena, others, 4, &rank));
    assert_false(hb_validate_rank(u.env.arena, others, 0, &rank));
}

/* Off: by more than 4 KiB and by more than a thousandth. */
static void parts_off_are_counted(void **state)
{
    (void)state;
    static const struct {
        int64_t measured;
        int64_t predicted;
        uint32_t off;
    } rows[] = {{-1, 1 << 20, 0},
                {0, 4096, 0},
                {0, 4097, 1},
                {1 << 20, (1 << 20) - 4096, 0},
                {1 << 20, (1 << 20) - 4097, 1},
                {10000000, 10010000, 0},
                {10000000, 10010001, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int part = 0; part < HB_PART_COUNT; part++) {
            struct hb_case c = {.measured_part = {-1, -1, -1, -1}};
            const struct hb_case *list[] = {&c};
            c.measured_part[part] = rows[i].measured;
            c.predicted_part[part] = rows[i].predicted;
            struct hb_stats s = hb_validate_stats(u.env.arena, list, 1, false);
            for (int k = 0; k < HB_PART_COUNT; k++)
                assert_int_equal(s.part_off[k], k == part ? rows[i].off : 0);
        }
}

/* --- pairs --- */

static void add(struct hb_pairs *pairs, struct hb_record r, int64_t measured, int64_t predicted)
{
    struct hb_case c = {.id = r.id, .measured_bytes = measured, .predicted_bytes = predicted};
    hb_pairs_add(pairs, scratch, &r, &c);
}

/* Pairs between the model and the model with these sets. */
static const char *key_between(const char *const *sets)
{
    struct hb_pairs pairs;
    struct hb_pair *list;
    hb_pairs_init(&pairs, u.env.arena);
    add(&pairs, RECORD("a", "step.donate=true"), 1, 1);
    add(&pairs, make_record("b", sets), 2, 2);
    return hb_pairs_find(&pairs, &list) ? list[0].key : NULL;
}

#define KEY_BETWEEN(...) key_between((const char *const[]){__VA_ARGS__, NULL})

static void one_key_makes_a_pair(void **state)
{
    (void)state;
    assert_string_equal(KEY_BETWEEN("batch.seq=256"), "batch.seq");
    assert_string_equal(KEY_BETWEEN("model.blocks[0].repeat=4"), "model.blocks[0].repeat");
    assert_string_equal(KEY_BETWEEN("remat.policy=none"), "remat.policy");
    assert_string_equal(KEY_BETWEEN("optimizer.moments=[bf16, bf16]"), "optimizer.name");
    assert_null(KEY_BETWEEN("batch.seq=256", "remat.policy=none"));
    assert_null(KEY_BETWEEN("batch.seq=128"));
}

/* What a key brings with it, a list, names and the machine's memory. */
static void what_follows_a_key_is_part_of_it(void **state)
{
    (void)state;
    assert_string_equal(KEY_BETWEEN("remat.policy=names", "remat.save=[q, k]"), "remat.policy");
    assert_string_equal(KEY_BETWEEN("optimizer.name=sgd", "optimizer.moments=[]"),
                        "optimizer.name");
    assert_string_equal(KEY_BETWEEN("mesh.data=2", "hardware.count=2"), "mesh.data");
    assert_string_equal(KEY_BETWEEN("model.name=other", "hardware.hbm=9GiB",
                                    "model.blocks[0].name=z", "step.nan_to_num=true"),
                        "step.nan_to_num");
    assert_string_equal(
        KEY_BETWEEN("remat.per_block.block.policy=names", "remat.per_block.block.save=[v]"),
        "remat.per_block");
    assert_string_equal(KEY_BETWEEN("model.blocks[0].attention.window=[64]"),
                        "model.blocks[0].attention.window");
}

/* A key that the second lacks, among others that both have. */
static void a_key_of_the_first_alone_makes_a_pair(void **state)
{
    (void)state;
    struct hb_pairs pairs;
    struct hb_pair *list;
    hb_pairs_init(&pairs, u.env.arena);
    add(&pairs, RECORD("a", "step.donate=true", "remat.per_block.block.policy=none"), 1, 1);
    add(&pairs, RECORD("b", "step.donate=true"), 2, 2);
    assert_int_equal(hb_pairs_find(&pairs, &list), 1);
    assert_string_equal(list[0].key, "remat.per_block");
    hb_pairs_init(&pairs, u.env.arena); /* the key comes last: the second has ended there */
    add(&pairs, RECORD("a", "step.donate=true"), 1, 1);
    add(&pairs, RECORD("b", "step.donate=true", "remat.per_block.block.policy=none"), 2, 2);
    add(&pairs, RECORD("c", "step.donate=true"), 3, 3);
    assert_int_equal(hb_pairs_find(&pairs, &list), 2);
    assert_string_equal(list[0].key, "remat.per_block");
    assert_string_equal(list[1].key, "remat.per_block");
    assert_string_equal(list[1].first, "b");
}

static void only_the_like_are_paired(void **state)
{
    (void)state;
    struct hb_pairs pairs;
    struct hb_pair *list;
    struct hb_record other = RECORD("other", "batch.seq=512");
    struct hb_record r = RECORD("r", "step.donate=true");
    hb_pairs_init(&pairs, u.env.arena);
    assert_int_equal(hb_pairs_find(&pairs, &list), 0);
    add(&pairs, r, 1, 1);
    other.kind = "runtime_peak";
    add(&pairs, other, 2, 2);
    struct hb_case failed = {.id = "f", .failed = "why"}, fast = {.id = "s", .speed = true};
    other.kind = r.kind;
    hb_pairs_add(&pairs, scratch, &other, &failed);
    hb_pairs_add(&pairs, scratch, &other, &fast);
    assert_int_equal(hb_pairs_find(&pairs, &list), 0);
    add(&pairs, other, 7, 3);
    add(&pairs, RECORD("third", "batch.seq=1024"), 5, 5);
    assert_int_equal(hb_pairs_find(&pairs, &list), 3);
    assert_string_equal(list[0].first, "r");
    assert_string_equal(list[0].second, "other");
    assert_int_equal(list[0].measured_bytes, 6);
    assert_int_equal(list[0].predicted_bytes, 2);
    assert_string_equal(list[2].first, "other");
    assert_int_equal(list[2].measured_bytes, -2);
    assert_int_equal(list[2].predicted_bytes, 2);
}

/* Of three that have an interval two hold the truth, at its ends; widths of 10, 20 and 50 %. */
static void intervals_are_counted(void **state)
{
    (void)state;
    struct hb_case row[] = {
        {.predicted_bytes = 100, .low_bytes = 95, .high_bytes = 105, .measured_bytes = 105},
        {.predicted_bytes = 200, .low_bytes = 100, .high_bytes = 200, .measured_bytes = 100},
        {.predicted_bytes = 100, .low_bytes = 90, .high_bytes = 110, .measured_bytes = 111},
        {.predicted_bytes = 0, .low_bytes = 0, .high_bytes = 100, .measured_bytes = 1},
        {.predicted_bytes = 1, .high_bytes = 9, .measured_bytes = 1, .verdict = true},
    };
    const struct hb_case *list[sizeof row / sizeof row[0]];
    for (uint32_t i = 0; i < sizeof row / sizeof row[0]; i++)
        list[i] = &row[i];
    struct hb_stats s = hb_validate_stats(u.env.arena, list, sizeof row / sizeof row[0], false);
    assert_true(s.coverage > 0.666 && s.coverage < 0.667);
    assert_true(s.median_width_pct > 19.9 && s.median_width_pct < 20.1);
}

static void differences_are_judged(void **state)
{
    (void)state;
    const int64_t mb = 1000000;
    const struct hb_pair list[] = {
        {"", "", "", 1000 * mb, 1150 * mb, false},  /* right, and close */
        {"", "", "", 1000 * mb, 1151 * mb, false},  /* right */
        {"", "", "", -1000 * mb, -850 * mb, false}, /* right, and close */
        {"", "", "", -1000 * mb, 10 * mb, false},   /* wrong */
        {"", "", "", 501 * mb, 0, false},           /* wrong: nothing is no sign */
        {"", "", "", 500 * mb, 0, false},           /* small, and within */
        {"", "", "", -100 * mb, 400 * mb, false},   /* small, and within */
        {"", "", "", -100 * mb, 401 * mb, false},   /* small */
        {"", "", "", 1000 * mb, 0, true},           /* the compiler rematerialised: stands apart */
    };
    struct hb_pair_stats s = hb_pairs_stats(list, sizeof list / sizeof list[0], false);
    assert_int_equal(s.n, 8);
    assert_int_equal(s.large, 5);
    assert_int_equal(s.sign_right, 3);
    assert_int_equal(s.within_close, 2);
    assert_int_equal(s.small_within, 2);
    s = hb_pairs_stats(list, sizeof list / sizeof list[0], true);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.large, 1);
    assert_int_equal(s.sign_right, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_case_has_both_sides),
        TEST(verdicts_are_counted),
        TEST(what_takes_all_of_a_budget_fits),
        TEST(what_is_not_simulated_has_failed),
        TEST(rematerialised_records_stand_apart),
        TEST(the_usual_formula_is_that_of_people),
        TEST(quantiles_are_nearest_rank),
        TEST(failed_cases_are_counted_apart),
        TEST(ranks_are_spearman),
        TEST(parts_off_are_counted),
        TEST(one_key_makes_a_pair),
        TEST(what_follows_a_key_is_part_of_it),
        TEST(a_key_of_the_first_alone_makes_a_pair),
        TEST(only_the_like_are_paired),
        TEST(differences_are_judged),
        TEST(intervals_are_counted),
    };
    return cmocka_run_group_tests_name("validate", tests, NULL, NULL);
}
