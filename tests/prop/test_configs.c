/* What must hold of every configuration, from its YAML to its memory and its time, on random valid
 * ones: 2,000 by default, HB_LAWS=n for n, HB_SEED=n to begin elsewhere. A configuration that
 * breaks a law is told with its seed and as YAML, after every key that is not needed for it was
 * left out. HB_SHOW_REJECTED=1 shows which draws were no valid configurations, and why. */
#include "tests/prop/seed.h"
#include "tests/unit/unit.h"

#include <signal.h>

#include "tests/prop/config_laws.h"

/* For the moment when the program dies inside a law. */
static uint64_t current_seed;
static bool is_running;
static uint64_t cases;
static uint64_t draws; /* configurations drawn, invalid ones included */

static void tell_seed(void)
{
    if (is_running)
        fprintf(stderr, "# died at HB_SEED=%llu\n", (unsigned long long)current_seed);
}

static void die_with_seed(int number)
{
    tell_seed();
    is_running = false;
    signal(number, SIG_DFL);
    raise(number);
}

/* --- running them --- */

static const char *try_sets(law_fn *law, uint64_t seed, const char *const *sets, uint32_t count)
{
    struct subject s = {.arena = hb_arena_new(), .rng = hb_rng_seed(~seed)};
    struct hb_spec spec;
    const char *why;
    const char *broken = NULL;
    if (read_sets(s.arena, sets, count, &spec, &why))
        broken = run_spec(s.arena, &spec, &s.r) ? law(&s) : "it cannot be lowered";
    hb_arena_free(s.arena);
    return broken;
}

/* Leaves out every key without which the law is broken as well. */
static void shrink(struct config *c, law_fn *law, uint64_t seed)
{
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (uint32_t i = c->count; i-- > 0;) {
            const char *out = c->sets[i];
            memmove(c->sets + i, c->sets + i + 1, (c->count - i - 1) * sizeof *c->sets);
            c->count--;
            if (try_sets(law, seed, c->sets, c->count)) {
                smaller = true;
                continue;
            }
            memmove(c->sets + i + 1, c->sets + i, (c->count - i) * sizeof *c->sets);
            c->sets[i] = out;
            c->count++;
        }
    }
}

static void tell(struct config *c, law_fn *law, uint64_t seed)
{
    struct hb_spec spec;
    struct hb_str text;
    const char *why;
    shrink(c, law, seed);
    hb_str_init(&text, c->arena);
    if (read_sets(c->arena, c->sets, c->count, &spec, &why))
        hb_schema_emit_yaml(&text, &spec, false);
    fprintf(stderr, "# HB_SEED=%llu, as little as breaks it: %s\n%s", (unsigned long long)seed,
            try_sets(law, seed, c->sets, c->count), text.text);
}

static uint64_t asked_number(const char *name, uint64_t otherwise)
{
    const char *asked = getenv(name);
    return asked && *asked ? strtoull(asked, NULL, 10) : otherwise;
}

/* Sanitizers cost tenfold. */
static uint64_t case_count(void)
{
#ifdef __SANITIZE_ADDRESS__
    return asked_number("HB_LAWS", prop_cases(200));
#else
    return asked_number("HB_LAWS", prop_cases(2000));
#endif
}

/* --- what is drawn --- */

/* A key of the schema, and what of it valid configurations had. */
struct seen {
    const char *path;
    const struct hb_key *key;
    uint32_t words; /* mask over key->words */
    bool drawn;
};
enum { KEYS = 256 };
static struct seen seen[KEYS];
static uint32_t seen_count;

/* Sections of other steps than these, and keys that are refused or belong to files. */
static bool is_out_of_scope(enum hb_section_id id, const struct hb_key *key)
{
    static const char *const names[] = {"include",    "preset",    "import", "per_device",
                                        "tokens",     "hbmsim",    "fp8",    "fp8_gather",
                                        "fp8_params", "per_block", "held",   "reshard_ranks",
                                        "reference",  "entropy",   "value"};
    if (id == HB_SEC_RUNTIME || id >= HB_SEC_PLAN || key->kind == HB_KEY_SECTION ||
        (id == HB_SEC_LOSS && (hb_str_same(key->name, "kernel") || hb_str_same(key->name, "kind"))))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hb_str_same(names[i], key->name))
            return true;
    return false;
}

static void list_keys(struct hb_arena *arena)
{
    for (int id = 0; id < HB_SEC_COUNT; id++) {
        const struct hb_section *s = hb_section((enum hb_section_id)id);
        for (int i = 0; i < s->key_count; i++) {
            if (is_out_of_scope((enum hb_section_id)id, &s->keys[i]))
                continue;
            assert_true(seen_count < KEYS);
            seen[seen_count++] =
                (struct seen){.path = hb_arena_printf(arena, "%s%s%s", s->path, *s->path ? "." : "",
                                                      s->keys[i].name),
                              .key = &s->keys[i]};
        }
    }
}

/* model.blocks[2].unit -> model.blocks[].unit, remat.per_block.own2.save -> ...NAME.save */
static const char *plain_path(struct hb_arena *arena, const char *set, size_t len)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    for (size_t i = 0; i < len; i++)
        if (set[i] < '0' || set[i] > '9')
            hb_str_addn(&s, set + i, 1);
    const char *own = strstr(s.text, ".own.");
    return own ? hb_arena_printf(arena, "remat.per_block.NAME.%s", own + 5) : s.text;
}

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || strchr("[ =", at[-1])) && (!at[len] || strchr(",]", at[len])))
            return true;
    return false;
}

static void see_set(struct hb_arena *arena, const char *set)
{
    const char *value = strchr(set, '=') + 1;
    const char *path = plain_path(arena, set, (size_t)(value - 1 - set));
    for (uint32_t i = 0; i < seen_count; i++) {
        if (!hb_str_same(path, seen[i].path))
            continue;
        seen[i].drawn = true;
        const struct hb_word *words = seen[i].key->words;
        for (int w = 0; words && words[w].text; w++)
            if (has_word(value, words[w].text))
                seen[i].words |= 1u << w;
    }
}

/* Every key, and every word of those that have words. */
static void everything_is_drawn(void **state)
{
    (void)state;
    int missing = 0;
    if (cases < 2000)
        skip();
    for (uint32_t i = 0; i < seen_count; i++) {
        const struct hb_word *words = seen[i].key->words;
        if (!seen[i].drawn) {
            fprintf(stderr, "# never drawn: %s\n", seen[i].path);
            missing++;
        }
        for (int w = 0; words && words[w].text; w++)
            if (!(seen[i].words >> w & 1) && !hb_str_same(words[w].text, "torch")) {
                fprintf(stderr, "# never drawn: %s=%s\n", seen[i].path, words[w].text);
                missing++;
            }
    }
    assert_int_equal(missing, 0);
    assert_true(seen_count > 100);
}

/* The generator is not blind: most of what it draws is valid. */
static void most_draws_are_valid(void **state)
{
    (void)state;
    assert_true(draws < 3 * cases);
}

/* All laws on one configuration. */
static void try_case(uint64_t seed)
{
    struct config c;
    struct run r;
    struct hb_spec spec;
    struct hb_arena *arena = hb_arena_new();
    current_seed = seed;
    is_running = true;
    draws += (uint64_t)random_config(arena, seed, &c, &spec);
    for (uint32_t i = 0; i < c.count; i++)
        see_set(arena, c.sets[i]);
    bool lowered = run_spec(arena, &spec, &r);
    for (int i = 0; i < LAW_COUNT; i++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct subject s = {.arena = arena, .rng = hb_rng_seed(~seed), .r = r};
        if (laws[i].broken)
            continue;
        compared = 0;
        laws[i].broken = lowered ? laws[i].hold(&s) : "it cannot be lowered";
        laws[i].compared += compared;
        hb_arena_rewind(arena, mark);
        if (laws[i].broken) {
            fprintf(stderr, "# %s: %s\n", laws[i].name, laws[i].broken);
            tell(&c, laws[i].hold, seed);
        }
    }
    is_running = false;
    hb_arena_free(arena);
}

static int try_all(void **state)
{
    (void)state;
    signal(SIGABRT, die_with_seed);
    signal(SIGSEGV, die_with_seed);
    atexit(tell_seed);
    profiles = hb_arena_new();
    list_keys(profiles);
    uint64_t first = prop_seed(0);
    cases = case_count();
    for (uint64_t seed = first; seed < first + cases; seed++)
        try_case(seed);
    try_case(23240398); /* twice the batch, and a stack of weights is padded otherwise */
    return 0;
}

static int free_profiles(void **state)
{
    (void)state;
    hb_arena_free(profiles);
    return 0;
}

static void check_law(void **state)
{
    const struct law *law = *state;
    if (law->broken)
        fail_msg("%s", law->broken);
    if (law->compares && cases >= 100)
        assert_true(law->compared >= cases / 5);
}

int main(void)
{
    struct CMUnitTest tests[LAW_COUNT + 2] = {0};
    for (int i = 0; i < LAW_COUNT; i++)
        tests[i] = (struct CMUnitTest){
            .name = laws[i].name, .test_func = check_law, .initial_state = &laws[i]};
    tests[LAW_COUNT] = (struct CMUnitTest)cmocka_unit_test(everything_is_drawn);
    tests[LAW_COUNT + 1] = (struct CMUnitTest)cmocka_unit_test(most_draws_are_valid);
    return cmocka_run_group_tests_name("laws of configurations", tests, try_all, free_profiles);
}
