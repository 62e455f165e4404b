/* base/arena: what is handed out is zero, aligned, apart from the rest, and given back. */
#include "tests/unit/unit.h"

static struct hb_arena *arena;

static int start(void **state)
{
    (void)state;
    arena = hb_arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hb_arena_free(arena);
    return 0;
}

static void pieces_are_aligned_and_zero(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < 3000; bytes += 7) {
        unsigned char *piece = hb_arena_alloc(arena, bytes, 1);
        assert_int_equal((uintptr_t)piece % 16, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(piece[i], 0);
        memset(piece, 0xa5, bytes);
    }
}

static void pieces_do_not_overlap(void **state)
{
    (void)state;
    enum { PIECES = 400 };
    unsigned char *pieces[PIECES];
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = hb_arena_alloc(arena, (size_t)i + 1, 1);
        memset(pieces[i], i & 0xff, (size_t)i + 1);
    }
    for (int i = 0; i < PIECES; i++)
        for (int j = 0; j <= i; j++)
            assert_int_equal(pieces[i][j], i & 0xff);
}

static void rewinding_reuses_and_clears(void **state)
{
    (void)state;
    char *kept = hb_arena_strdup(arena, "kept");
    struct hb_arena_mark mark = hb_arena_mark(arena);
    size_t held = hb_arena_held_bytes(arena);
    unsigned char *first = hb_arena_alloc(arena, 100, 1);
    memset(first, 0xff, 100);
    for (int i = 0; i < 100; i++)
        hb_arena_alloc(arena, 1000, 100);
    assert_true(hb_arena_held_bytes(arena) >= 100 * 1000 * 100);
    hb_arena_rewind(arena, mark);
    assert_int_equal(hb_arena_held_bytes(arena), held);
    unsigned char *again = hb_arena_alloc(arena, 100, 1);
    assert_ptr_equal(again, first);
    for (int i = 0; i < 100; i++)
        assert_int_equal(again[i], 0);
    assert_string_equal(kept, "kept");
}

static void texts_are_copied(void **state)
{
    (void)state;
    char source[] = "abcdef";
    char *whole = hb_arena_strdup(arena, source);
    char *part = hb_arena_strndup(arena, source, 3);
    source[0] = 'X';
    assert_string_equal(whole, "abcdef");
    assert_string_equal(part, "abc");
    assert_string_equal(hb_arena_strndup(arena, source, 0), "");
    assert_string_equal(hb_arena_printf(arena, "%s-%d", "x", 42), "x-42");
}

static void a_piece_may_exceed_a_block(void **state)
{
    (void)state;
    size_t bytes = (size_t)9 << 20;
    char *big = hb_arena_alloc(arena, bytes, 1);
    big[0] = big[bytes - 1] = 1;
    char *small = hb_arena_alloc(arena, 8, 1);
    small[0] = 2;
    assert_int_equal(big[bytes - 1], 1);
}

static void ask_for_everything(const void *arg)
{
    (void)arg;
    hb_arena_alloc(arena, SIZE_MAX / 2, 3);
}

static void ask_for_half(const void *arg)
{
    (void)arg;
    hb_arena_alloc(arena, SIZE_MAX / 8, 1);
}

static void running_out_ends_with_status_3(void **state)
{
    (void)state;
    char text[512];
    assert_int_equal(unit_child(ask_for_everything, NULL, text, sizeof text), 3);
    assert_non_null(strstr(text, "hbmsim: fatal: out of memory"));
#ifndef __SANITIZE_ADDRESS__ /* it ends the program by itself */
    assert_int_equal(unit_child(ask_for_half, NULL, text, sizeof text), 3);
    assert_non_null(strstr(text, "hbmsim: fatal: out of memory"));
#else
    (void)ask_for_half;
#endif
}

/* Room is there once it was promised: the pieces that follow take it without another block. */
static void reserved_room_is_there(void **state)
{
    (void)state;
    enum { PIECES = 100, PIECE_BYTES = 1 << 20 };
    hb_arena_alloc(arena, 8, 1);
    assert_true(hb_arena_reserve(arena, 16));
    size_t held = hb_arena_held_bytes(arena);
    assert_true(hb_arena_reserve(arena, 16));
    assert_int_equal(hb_arena_held_bytes(arena), held); /* what is there is enough */
    assert_true(hb_arena_reserve(arena, (size_t)PIECES * PIECE_BYTES));
    held = hb_arena_held_bytes(arena);
    assert_true(held >= (size_t)PIECES * PIECE_BYTES);
    hb_arena_alloc(arena, PIECES, PIECE_BYTES);
    assert_int_equal(hb_arena_held_bytes(arena), held);
    assert_false(hb_arena_reserve(arena, SIZE_MAX / 3));
}

static void printed_texts_may_be_empty(void **state)
{
    (void)state;
    assert_string_equal(hb_arena_printf(arena, "%s", ""), "");
    assert_string_equal(hb_arena_printf(arena, "%d.%s", 12, "x"), "12.x");
}

/* What was there stays, what is new is zero, whatever lay there before. */
static void pieces_grow(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    unsigned char *piece = NULL;
    struct hb_arena_mark mark = hb_arena_mark(arena);
    memset(hb_arena_raw(arena, 200 * MOST, 1), 0xff, 200 * MOST);
    hb_arena_rewind(arena, mark);
    for (size_t bytes = 0, more = 1; bytes < MOST; bytes = more, more += more / 3 + 1) {
        piece = hb_arena_grow(arena, piece, bytes, more);
        for (size_t i = 0; i < more; i++)
            assert_int_equal(piece[i], i < bytes ? (i % 251) + 1 : 0);
        for (size_t i = bytes; i < more; i++)
            piece[i] = (unsigned char)(i % 251 + 1);
        if (more % 2)
            memset(hb_arena_raw(arena, 5, 1), 0xff, 5);
    }
}

/* Of this process, as the kernel counts it; 0: it does not tell. */
static size_t mapped_bytes(void)
{
    char text[64] = "";
    FILE *f = fopen("/proc/self/statm", "r");
    size_t len = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    return len ? strtoull(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Of what is emptied so much is kept for later, and the rest given back. */
static void what_is_spare_has_a_limit(void **state)
{
    (void)state;
    enum { BLOCK = 150 << 20, BLOCKS = 4, MOST = 256 << 20, SLACK = 16 << 20 };
    struct hb_arena_mark mark = hb_arena_mark(arena);
    size_t before = mapped_bytes();
    for (int i = 0; i < BLOCKS; i++)
        hb_arena_raw(arena, BLOCK, 1);
    if (before == 0 || mapped_bytes() - before < (size_t)BLOCK * BLOCKS)
        skip(); /* it is not asked of the system block by block, as under sanitizers */
    for (int again = 0; again < 2; again++) {
        hb_arena_rewind(arena, mark);
        assert_true(mapped_bytes() - before <= MOST + SLACK);
        assert_true(mapped_bytes() - before >= BLOCK);
        hb_arena_raw(arena, BLOCK, 1); /* there still */
        assert_true(mapped_bytes() - before <= MOST + SLACK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_are_aligned_and_zero, start, end),
        cmocka_unit_test_setup_teardown(pieces_do_not_overlap, start, end),
        cmocka_unit_test_setup_teardown(rewinding_reuses_and_clears, start, end),
        cmocka_unit_test_setup_teardown(texts_are_copied, start, end),
        cmocka_unit_test_setup_teardown(printed_texts_may_be_empty, start, end),
        cmocka_unit_test_setup_teardown(reserved_room_is_there, start, end),
        cmocka_unit_test_setup_teardown(a_piece_may_exceed_a_block, start, end),
        cmocka_unit_test_setup_teardown(pieces_grow, start, end),
        cmocka_unit_test_setup_teardown(what_is_spare_has_a_limit, start, end),
        cmocka_unit_test_setup_teardown(running_out_ends_with_status_3, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
