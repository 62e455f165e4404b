/* The readers of JSON, TOML and pickles: what each says of texts that are one byte away from good
 * ones, or end early. Of thousands only sums are kept: how many are taken, where the others are
 * refused, and a hash of all trees and words, in which any change shows. A reader that is meant to
 * change: take the new sums, with the number that changed in mind. */
#include "tests/unit/each.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/pickle.h"
#include "base/toml.h"
#include "tests/unit/pickled.h"

struct sums {
    int taken;
    int refused;
    int64_t places; /* lines and columns of what was refused */
    uint64_t hash;
};

typedef bool reader(struct sums *s, const char *text, size_t len);

static void add_text(struct sums *s, const char *text)
{
    s->hash = hb_hash_bytes(s->hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void add_loc(struct sums *s, struct hb_loc loc)
{
    s->hash = hb_hash(hb_hash(s->hash, (uint64_t)loc.line), (uint64_t)loc.column);
}

static void add_tree(struct sums *s, const struct hb_node *node)
{
    s->hash = hb_hash(hb_hash(s->hash, node->kind), (uint64_t)node->quoted + 2 * node->count);
    add_loc(s, node->loc);
    add_loc(s, node->key_loc);
    add_text(s, node->text);
    add_text(s, node->key);
    for (const struct hb_node *child = node->first; child; child = child->next)
        add_tree(s, child);
}

static bool read_json(struct sums *s, const char *text, size_t len)
{
    struct hb_node *root = NULL;
    bool ok = hb_json_parse(u.env.arena, &u.diag, (struct hb_loc){"t", 1, 1}, text, len, &root);
    if (ok)
        add_tree(s, root);
    return ok;
}

static bool read_toml(struct sums *s, const char *text, size_t len)
{
    struct hb_node *root = NULL;
    bool ok = hb_toml_parse(u.env.arena, &u.diag, "t", text, len, &root);
    if (ok)
        add_tree(s, root);
    return ok;
}

static bool read_pickle(struct sums *s, const char *text, size_t len)
{
    struct hb_pickle p;
    bool ok = hb_pickle_read(u.env.arena, &u.diag, "t", text, len, &p);
    s->hash = hb_hash(s->hash, hb_pickle_is(text, len));
    for (uint32_t i = 0; ok && i < p.count; i++) {
        const struct hb_pickle_value *v = &p.values[i];
        s->hash = hb_hash(hb_hash(s->hash, v->kind), v->count);
        if (v->kind == HB_PICKLE_TEXT)
            s->hash = hb_hash_bytes(s->hash, v->is.text, v->count);
        for (uint32_t k = 0; k < v->count && v->kind == HB_PICKLE_LIST; k++)
            s->hash = hb_hash(s->hash, v->is.items[k]);
        for (uint32_t k = 0; k < 2 * v->count && v->kind == HB_PICKLE_MAP; k++)
            s->hash = hb_hash(s->hash, v->is.items[k]);
        if (v->kind == HB_PICKLE_BOOL || v->kind == HB_PICKLE_INT)
            s->hash = hb_hash(s->hash, (uint64_t)v->is.number);
    }
    return ok;
}

/* At its own size, so that a sanitizer sees who reads beyond it. */
static void read_one(struct sums *s, reader *read, const char *text, size_t len)
{
    struct hb_arena_mark mark = hb_arena_mark(u.env.arena);
    char *own = malloc(len + 1);
    assert_non_null(own);
    memcpy(own, text, len);
    own[len] = '\0';
    hb_diag_init(&u.diag, u.env.arena);
    bool ok = read(s, own, len);
    assert_int_equal(ok, u.diag.errors == 0);
    s->taken += ok;
    s->refused += !ok;
    for (int i = 0; i < u.diag.count; i++) {
        s->places += 1000 * u.diag.entries[i].loc.line + u.diag.entries[i].loc.column;
        add_text(s, u.diag.entries[i].text);
        add_loc(s, u.diag.entries[i].loc);
    }
    free(own);
    hb_arena_rewind(u.env.arena, mark);
}

/* Each beginning of the text; each byte left out, twice, and as each of others. */
static struct sums turn(reader *read, const char *text, size_t len, const char *others,
                        size_t other_count)
{
    struct sums s = {.hash = HB_HASH_START};
    char *turned = malloc(len + 1);
    assert_non_null(turned);
    read_one(&s, read, text, len);
    for (size_t at = 0; at < len; at++) {
        read_one(&s, read, text, at);
        memcpy(turned, text, len);
        for (size_t k = 0; k < other_count; k++) {
            turned[at] = others[k];
            read_one(&s, read, turned, len);
        }
        memcpy(turned + at, text + at + 1, len - at - 1);
        read_one(&s, read, turned, len - 1);
        memcpy(turned, text, at + 1);
        memcpy(turned + at + 1, text + at, len - at);
        read_one(&s, read, turned, len + 1);
    }
    free(turned);
    return s;
}

static void assert_sums(struct sums s, struct sums wanted)
{
    if (s.hash != wanted.hash)
        print_error("{%d, %d, %lld, UINT64_C(0x%llx)}\n", s.taken, s.refused, (long long)s.places,
                    (unsigned long long)s.hash);
    assert_int_equal(s.taken, wanted.taken);
    assert_int_equal(s.refused, wanted.refused);
    assert_true(s.places == wanted.places);
    assert_true(s.hash == wanted.hash);
}

static void json_turned(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\": [1, -2.5e3, 0.25E-1, true, null, \"x\\u00e9\\n\\\"\\ud83d\\ude00\"],\n"
        " \"b\": {\"c\": {}, \"d\": []},\r\n\t\"\xc3\xa9\": \"\xf0\x9f\x98\x80\", \"l\": [[[]]]}";
    static const char others[] = "{}[]:,\"\\u0159deE.+-tf\n \x01\x7f\xc3\xa9/b";
    assert_sums(turn(read_json, text, sizeof text - 1, others, sizeof others - 1),
                (struct sums){513, 3360, 5872656, UINT64_C(0x6ebce079f2401e1)});
}

static void toml_turned(void **state)
{
    (void)state;
    static const char text[] =
        "# words\na = 1_000\nb.\"c d\" = -2.5e+3 # more\n"
        "s = \"x\\t\\u00e9\\\\\"\nl = 'C:\\x'\nm = \"\"\"\none\\\n  two\"\"\"\n"
        "n = '''\nthree'''\nflags = [true, false, [1, 2,], {x = 1, y.z = 2}]\n"
        "d = 1979-05-27T07:32:00Z\nh = 0xff\ni = inf\n\n[t.u]\nv = 3\n[[w]]\nk = 1\n[[w]]\nk = "
        "2\r\n";
    static const char others[] = "{}[]=,\"'\\u01_.-+xen#\n\t \x01\x7f\xc3\xa9T:b";
    assert_sums(turn(read_toml, text, sizeof text - 1, others, sizeof others - 1),
                (struct sums){3012, 4909, 52518169, UINT64_C(0xd8695cf12b1176d0)});
}

static void pickles_turned(void **state)
{
    (void)state;
    static const char four[] =
        "\x80\x04\x95\x66\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
        "a\x94]\x94(K\x01\x85\x94K\x02K\x03\x86\x94\x89\x88N]\x94(K\x01K\x02"
        "eh\x05"
        "e\x8c\x01"
        "b\x94)\x8c\x01"
        "c\x94K\x07K\x08K\x09\x87\x94\x8c\x01"
        "d\x94G\xbf\xf8\x00\x00\x00\x00\x00\x00\x8c\x01"
        "e\x94}\x94(\x8c\x01"
        "f\x94\x8a\x06\x00\x00\x00\x00\x00\x01\x8c\x01g\x94M,\x01\x8c\x01h\x94J\x90\xee\xfe\xffuu.";
    static const char others[] = "\x80\x02\x04\x95}q(X]KMJ\x8a"
                                 "eNGtu.\x94\x8c\x85\x86\x87\x89hj\x81R\x90sa0)C\xff\x01\x05\x20";
    assert_sums(turn(read_pickle, pickled, sizeof pickled - 1, others, sizeof others - 1),
                (struct sums){1039, 1902, 0, UINT64_C(0xcfa7d4b69a954354)});
    assert_sums(turn(read_pickle, four, sizeof four - 1, others, sizeof others - 1),
                (struct sums){2070, 2677, 0, UINT64_C(0xfc58f25848176ea1)});
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(json_turned), TEST(toml_turned), TEST(pickles_turned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
