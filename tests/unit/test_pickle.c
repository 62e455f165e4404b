/* base/pickle: values of each protocol, what would run code is refused, files that end too early.
 */
#include "tests/unit/each.h"

#include "base/pickle.h"
#include "tests/unit/pickled.h"

#define READ(text, p) hb_pickle_read(u.env.arena, &u.diag, "t", text, sizeof(text) - 1, p)

static void maps_lists_and_numbers(void **state)
{
    (void)state;
    struct hb_pickle p;
    uint32_t len;
    assert_true(READ(pickled, &p));
    uint32_t a = hb_pickle_find(&p, p.root, "a"), b = hb_pickle_find(&p, p.root, "b");
    assert_int_equal(hb_pickle_length(&p, a), 4);
    assert_int_equal(hb_pickle_int(&p, hb_pickle_at(&p, a, 0), 0), 1);
    assert_int_equal(hb_pickle_int(&p, hb_pickle_at(&p, a, 1), 0), 300);
    assert_int_equal(hb_pickle_int(&p, hb_pickle_at(&p, a, 2), 0), -2);
    assert_int_equal(hb_pickle_int(&p, hb_pickle_at(&p, a, 3), 0), INT64_C(1) << 40);
    assert_int_equal(hb_pickle_length(&p, b), 4);
    assert_string_equal(hb_pickle_is_text(&p, hb_pickle_at(&p, b, 0), "x") ? "x" : "", "x");
    hb_pickle_text(&p, hb_pickle_at(&p, b, 0), &len);
    assert_int_equal(len, 1);
    assert_int_equal(hb_pickle_int(&p, hb_pickle_at(&p, b, 2), 7), 1);
    assert_true(p.values[hb_pickle_at(&p, b, 3)].is.real > 1.4);
    assert_int_equal(hb_pickle_at(&p, b, 4), HB_PICKLE_ABSENT);
    assert_int_equal(hb_pickle_find(&p, p.root, "c"), HB_PICKLE_ABSENT);
    assert_int_equal(hb_pickle_find(&p, a, "c"), HB_PICKLE_ABSENT);
    assert_int_equal(hb_pickle_int(&p, b, 7), 7);
    /* what a list holds twice is one value */
    static const char shared[] = "\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94(]\x94h\x01"
                                 "e.";
    assert_true(READ(shared, &p));
    assert_int_equal(hb_pickle_at(&p, p.root, 0), hb_pickle_at(&p, p.root, 1));
}

static void protocols_2_to_5(void **state)
{
    (void)state;
    struct hb_pickle p;
    char text[] = "\x80 N.";
    for (int version = 0; version < 256; version++) {
        bool known = version >= 2 && version <= 5;
        text[1] = (char)version;
        assert_int_equal(hb_pickle_is(text, 2), known);
        assert_int_equal(READ(text, &p), known);
    }
    assert_false(hb_pickle_is("\x80", 1));
    assert_false(hb_pickle_is("N\x02", 2));
}

/* Whatever stands behind its end. */
static void what_is_cut_off_is_refused(void **state)
{
    (void)state;
    struct hb_pickle p;
    static const char text[] = "\x80\x02"
                               "ctorch.jit._pickle\nrestore_type_tag\nK\x07U\x01t\x86R.";
    for (size_t len = 0; len + 1 < sizeof text; len++) {
        bool whole = len + 2 == sizeof text;
        hb_diag_init(&u.diag, u.env.arena);
        assert_int_equal(hb_pickle_read(u.env.arena, &u.diag, "t", text, len + whole, &p), whole);
        bool within_name = len > 2 && len < 38;
        assert_int_equal(!whole && strstr(u.diag.entries[0].text, "import a name"), within_name);
    }
}

static void numbers_beyond_64_bits(void **state)
{
    (void)state;
    struct hb_pickle p;
    assert_true(READ("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", &p));
    assert_true(hb_pickle_int(&p, p.root, 0) == INT64_MAX);
    assert_true(READ("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff.", &p));
    assert_true(hb_pickle_int(&p, p.root, 0) == INT64_MIN);
    assert_true(READ("\x80\x02\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", &p));
    assert_true(hb_pickle_int(&p, p.root, 0) == INT64_MIN);
    assert_true(READ("\x80\x02\x8a\x00.", &p));
    assert_int_equal(hb_pickle_int(&p, p.root, 9), 0);
}

static const struct {
    const char *text;
    size_t len;
    const char *says;
} refused[] = {
#define CASE(text, says)                                                                           \
    {                                                                                              \
        text, sizeof(text) - 1, says                                                               \
    }
    CASE("\x80\x02"
         "cos\nsystem\nU\x04true\x85R.",
         "import a name"),
    CASE("\x80\x04\x8c\x02os\x8c\x06system\x93.", "builds objects"),
    CASE("\x80\x02N)R.", "call a function"),
    CASE("\x80\x02N\x4e\x85R.", "call a function"), /* none of the names, and an argument */
    CASE("\x80\x02"
         "ctorch.jit._pickle\nrestore_type_tag\n)R.",
         "call a function"),
    CASE("\x80\x02"
         "ctorch.jit._pickle\nrestore_type_tag\nNR.",
         "call a function"),
    CASE("\x80\x02N}b.", "builds objects"),
    CASE("\x80\x02N)\x81.", "builds objects"),
    CASE("\x80\x02", "ends within"),
    CASE("\x80\x02X\xff\xff\xff\x7f", "ends within"),
    CASE("\x80\x02.", "stack is empty"),
    CASE("\x80\x02h\x00.", "memo"),
    CASE("\x80\x02Nr\x00\x00\x00\x10.", "memo"),
    CASE("\x80\x02]Nu.", "no mark"),
    CASE("\x80\x02](NNu.", "no list or dictionary"),
    CASE("\x80\x02}(Nu.", "key without a value"),
    CASE("\x80\x09.", "protocol"),
    CASE("\x80\x02\xff.", "builds objects"),
    CASE("\x80", "ends within"),
    CASE("\x80\x01.", "protocol"),
    /* numbers and texts that end within, by their widths */
    CASE("\x80\x02K", "ends within"),
    CASE("\x80\x02M\x01", "ends within"),
    CASE("\x80\x02J\x01\x02\x03", "ends within"),
    CASE("\x80\x02G\x01\x02\x03\x04\x05\x06\x07", "ends within"),
    CASE("\x80\x02\x8a\x02\x01", "ends within"),
    CASE("\x80\x02\x8b\x01\x00\x00", "ends within"),
    CASE("\x80\x04\x8c", "ends within"),
    CASE("\x80\x04\x8d\x01\x00\x00", "ends within"),
    CASE("\x80\x04\x8d\x00\x00\x00\x00\x01\x00\x00\x00", "2^32 bytes or more"),
    CASE("\x80\x04\x95\x00\x00", "ends within"),
    CASE("\x80\x02h", "ends within"),
    CASE("\x80\x02j\x00\x00\x00", "ends within"),
    CASE("\x80\x02Nq", "ends within"),
    CASE("\x80\x02Nr\x00\x00", "ends within"),
    /* the same, where what is there could be read as the next instructions */
    CASE("\x80\x02JN.", "ends within"),
    CASE("\x80\x02GN.", "ends within"),
    CASE("\x80\x02XN.", "ends within"),
    CASE("\x80\x02X\x03\x00\x00\x00N.", "ends within"),
    CASE("\x80\x02\x8a\x03N.", "ends within"),
    CASE("\x80\x02\x8bN.", "ends within"),
    CASE("\x80\x02\x8b\x03\x00\x00\x00N.", "ends within"),
    CASE("\x80\x04\x8c\x03N.", "ends within"),
    CASE("\x80\x04\x8dN.", "ends within"),
    CASE("\x80\x04\x95N.", "ends within"),
    CASE("\x80\x02jN.", "ends within"),
    CASE("\x80\x02NrN.", "ends within"),
    /* what the stack lacks, above a mark too */
    CASE("\x80\x02\x85.", "stack is empty"),
    CASE("\x80\x02N(\x85.", "stack is empty"),
    CASE("\x80\x02NN\x87.", "stack is empty"),
    CASE("\x80\x02q\x00.", "stack is empty"),
    CASE("\x80\x04\x94.", "stack is empty"),
    CASE("\x80\x02]a.", "stack is empty"),
    CASE("\x80\x02](Nat.", "stack is empty"),
    CASE("\x80\x02}(NNst.", "stack is empty"),
    CASE("\x80\x02}Ns.", "stack is empty"),
    CASE("\x80\x02(e.", "stack is empty"),
    CASE("\x80\x02(NNu.", "stack is empty"),
    CASE("\x80\x02N(0.", "stack is empty"),
    CASE("\x80\x02(2.", "stack is empty"),
    CASE("\x80\x02R.", "stack is empty"),
    CASE("\x80\x02NR.", "stack is empty"),
    CASE("\x80\x02"
         "1.",
         "no mark"),
    CASE("\x80\x02t.", "no mark"),
    CASE("\x80\x02l.", "no mark"),
    CASE("\x80\x02"
         "d.",
         "no mark"),
    CASE("\x80\x02"
         "e.",
         "no mark"),
    CASE("\x80\x02NNa.", "no list or dictionary"),
    CASE("\x80\x02]NNs.", "no list or dictionary"),
    CASE("\x80\x02(Nd.", "key without a value"),
#undef CASE
};

static void code_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct hb_pickle p;
        hb_diag_init(&u.diag, u.env.arena);
        bool ok = hb_pickle_read(u.env.arena, &u.diag, "t", refused[i].text, refused[i].len, &p);
        if (ok || !strstr(u.diag.entries[0].text, refused[i].says))
            fail_msg("case %zu: %s", i, ok ? "was read" : u.diag.entries[0].text);
        if (strcmp(refused[i].says, "ends within") == 0 || refused[i].len < 4)
            continue;
        /* nor does a value behind it mend that */
        char text[100];
        memcpy(text, refused[i].text, refused[i].len - 1);
        memcpy(text + refused[i].len - 1, "N.", 2);
        assert_false(hb_pickle_read(u.env.arena, &u.diag, "t", text, refused[i].len + 1, &p));
    }
    hb_diag_init(&u.diag, u.env.arena);
}

/* Of so many values above a mark, and others below it, an instruction takes its own or none. */
static void a_mark_holds_what_is_below(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        int wants;
    } ops[] = {{"\x85", 1}, {"\x86", 2}, {"\x87", 3}, {"0", 1}, {"2", 1}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (int below = 0; below < 5; below++)
            for (int above = 0; above < 5; above++) {
                char text[32];
                struct hb_pickle p;
                int len = snprintf(text, sizeof text, "\x80\x02%.*s(%.*s%sN.", below, "NNNNN",
                                   above, "NNNNN", ops[i].op);
                hb_diag_init(&u.diag, u.env.arena);
                assert_int_equal(hb_pickle_read(u.env.arena, &u.diag, "t", text, (size_t)len, &p),
                                 above >= ops[i].wants);
            }
}

/* Popped, doubled, cut to a mark, put in one by one; numbers below 0 of few bytes. */
static void the_stack_is_worked_on(void **state)
{
    (void)state;
    struct hb_pickle p;
    /* [7, 7]: doubled; what is above a mark is dropped, then a value */
    assert_true(READ("\x80\x02](K\x07"
                     "2(NN1K\x09"
                     "0e.",
                     &p));
    assert_int_equal(hb_pickle_length(&p, p.root), 2);
    assert_int_equal(hb_pickle_int(&p, hb_pickle_at(&p, p.root, 1), 0), 7);
    /* {'a': -2} by d, {'b': -256} put in by s */
    assert_true(READ("\x80\x02(U\x01"
                     "a\x8a\x01\xfe"
                     "dU\x01"
                     "b\x8b\x02\x00\x00\x00\x00\xff"
                     "s.",
                     &p));
    assert_int_equal(hb_pickle_int(&p, hb_pickle_find(&p, p.root, "a"), 0), -2);
    assert_int_equal(hb_pickle_int(&p, hb_pickle_find(&p, p.root, "b"), 0), -256);
    /* the long forms of the memo: [x, x] */
    assert_true(READ("\x80\x02(K\x05r\x00\x00\x00\x00j\x00\x00\x00\x00l.", &p));
    assert_int_equal(hb_pickle_at(&p, p.root, 0), hb_pickle_at(&p, p.root, 1));
    /* the one call that is known gives what it was given */
    assert_true(READ("\x80\x02"
                     "ctorch.jit._pickle\nrestore_type_tag\nK\x07U\x01t\x86R.",
                     &p));
    assert_int_equal(hb_pickle_int(&p, p.root, 0), 7);
    /* a value put again in the same place of the memo */
    assert_true(READ("\x80\x02K\x05q\x00K\x06q\x00"
                     "0h\x00.",
                     &p));
    assert_int_equal(hb_pickle_int(&p, p.root, 0), 6);
}

static void a_list_may_hold_itself(void **state)
{
    (void)state;
    struct hb_pickle p;
    assert_true(READ("\x80\x02]q\x00h\x00"
                     "a.",
                     &p));
    assert_int_equal(hb_pickle_at(&p, p.root, 0), p.root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(maps_lists_and_numbers), TEST(numbers_beyond_64_bits),
        TEST(protocols_2_to_5),       TEST(what_is_cut_off_is_refused),
        TEST(code_is_refused),        TEST(a_mark_holds_what_is_below),
        TEST(the_stack_is_worked_on), TEST(a_list_may_hold_itself),
    };
    return cmocka_run_group_tests_name("pickle", tests, NULL, NULL);
}
