/* sim/eager/reel: a stretch that is played is the one that is issued, in a program and for a
 * server, op by op; one that touches what was there before is never played. */
#include "tests/unit/unit.h"

#include "sim/eager/reel.h"
#include "sim/eager/tape.h"

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

/* What a server is asked for, in order: sizes that are taken, and negative ones that go. */
struct asked {
    int64_t list[64];
    int count;
};

static uint32_t take(void *context, int64_t bytes, uint8_t pool)
{
    struct asked *a = context;
    (void)pool;
    a->list[a->count++] = bytes;
    return 7;
}

static void give(void *context, const struct hb_storage *s)
{
    struct asked *a = context;
    a->list[a->count++] = -s->bytes;
}

static void back(struct hb_tape *t, struct hb_taped *n, uint32_t grad)
{
    (void)t;
    (void)n;
    (void)grad;
}

static uint32_t made(struct hb_tape *t, const char *name, int64_t bytes)
{
    return hb_tape_new(t, (struct hb_made){"op", name, bytes, HB_CAT_WORKING, 0});
}

/* Two ops whose second result stays, held by a node with the input; `other` is a storage. */
static uint32_t issue(struct hb_tape *t, uint32_t in, uint32_t other)
{
    uint32_t a = made(t, "a", 1000), b = made(t, "b", 3000), c = made(t, "c", 5000);
    struct hb_taped *n = hb_tape_node(t, back, b);
    n->in[0] = in;
    hb_tape_save(t, n, t->values[in].storage);
    hb_tape_save(t, n, t->values[b].storage);
    hb_tape_drop_value(t, a);
    uint32_t d = made(t, "d", 700);
    hb_tape_drop_value(t, b);
    hb_tape_drop_value(t, c);
    hb_tape_drop(t, other);
    return d;
}

struct both {
    struct hb_program p;
    struct hb_tape t;
    struct asked asked;
    struct hb_server server;
};

/* Three times, of an input each; the later two are played where `plays`. */
static void run(struct both *b, bool serves, bool plays, bool drops)
{
    struct hb_reels reels = {{NULL}};
    *b = (struct both){.server = {.context = &b->asked, .take = take, .give = give}};
    hb_program_init(&b->p, arena, "reel", HB_TORCH);
    hb_tape_init(&b->t, arena, &b->p);
    b->t.server = serves ? &b->server : NULL;
    b->t.grad = true;
    for (int i = 0; i < 3; i++) {
        uint32_t in = made(&b->t, "in", 2048), marks[HB_REEL_MARKS] = {in, HB_NONE, HB_NONE};
        uint32_t other = drops ? b->t.values[made(&b->t, "other", 512)].storage : HB_NONE;
        struct hb_reel *r = hb_reels_find(&b->t, &reels, 1, in);
        if (plays && hb_reel_is_new(r)) {
            hb_reel_begin(&b->t, r, in);
            marks[1] = issue(&b->t, in, other);
            hb_reel_end(&b->t, r, marks);
        } else if (!plays || !hb_reel_play(&b->t, r, in, marks)) {
            marks[1] = issue(&b->t, in, other);
        } else {
            assert_false(drops);
        }
        assert_int_equal(marks[0], in);
        hb_tape_drop_value(&b->t, marks[1]);
        hb_tape_drop_value(&b->t, in);
    }
    hb_tape_end(&b->t);
}

static void same_tapes(const struct hb_tape *a, const struct hb_tape *b)
{
    assert_int_equal(a->storage_count, b->storage_count);
    assert_int_equal(a->value_count, b->value_count);
    assert_int_equal(a->node_count, b->node_count);
    for (uint32_t i = 0; i < a->storage_count; i++) {
        assert_int_equal(a->storages[i].bytes, b->storages[i].bytes);
        assert_int_equal(a->storages[i].holders, b->storages[i].holders);
    }
    for (uint32_t i = 0; i < a->value_count; i++)
        assert_int_equal(a->values[i].storage, b->values[i].storage);
    for (uint32_t i = 0; i < a->node_count; i++) {
        assert_int_equal(a->nodes[i].in[0], b->nodes[i].in[0]);
        assert_int_equal(a->nodes[i].out, b->nodes[i].out);
        assert_memory_equal(a->nodes[i].saved, b->nodes[i].saved, sizeof a->nodes[i].saved);
    }
}

static void a_program_is_the_same(void **state)
{
    struct both issued, played;
    (void)state;
    run(&issued, false, false, false);
    run(&played, false, true, false);
    same_tapes(&issued.t, &played.t);
    assert_int_equal(issued.p.op_count, 15);
    assert_int_equal(played.p.op_count, 15);
    assert_int_equal(issued.p.ref_count, played.p.ref_count);
    assert_memory_equal(issued.p.refs, played.p.refs, issued.p.ref_count * sizeof *issued.p.refs);
    for (uint32_t i = 0; i < issued.p.op_count; i++) {
        assert_string_equal(issued.p.bufs[i].name, played.p.bufs[i].name);
        assert_int_equal(issued.p.bufs[i].category, played.p.bufs[i].category);
        assert_int_equal(issued.p.ops[i].refs_at, played.p.ops[i].refs_at);
        assert_int_equal(issued.p.ops[i].read_count, played.p.ops[i].read_count);
        assert_int_equal(issued.p.lives[i].buf, played.p.lives[i].buf);
        assert_int_equal(issued.p.lives[i].start, played.p.lives[i].start);
        assert_int_equal(issued.p.lives[i].end, played.p.lives[i].end);
    }
    assert_int_equal(played.p.bufs[10].category, HB_CAT_SAVED); /* the last input, by its node */
}

static void a_server_is_asked_for_the_same(void **state)
{
    struct both issued, played;
    (void)state;
    run(&issued, true, false, false);
    run(&played, true, true, false);
    same_tapes(&issued.t, &played.t);
    assert_int_equal(issued.asked.count, 24);
    assert_int_equal(played.asked.count, 24);
    assert_memory_equal(issued.asked.list, played.asked.list, sizeof issued.asked.list);
}

static void what_drops_another_storage_is_issued(void **state)
{
    struct both issued, played;
    (void)state;
    run(&issued, true, false, true);
    run(&played, true, true, true);
    same_tapes(&issued.t, &played.t);
    assert_memory_equal(issued.asked.list, played.asked.list, sizeof issued.asked.list);
}

/* A stretch around a recorded one, whose second op lets `grad` go and whose last op's is asked for
 * later. */
static uint32_t issue_closed(struct hb_tape *t, struct hb_reels *reels, uint32_t in, uint32_t grad,
                             bool plays)
{
    uint32_t marks[HB_REEL_MARKS] = {in, HB_NONE, HB_NONE}, first = t->node_count;
    struct hb_reel *r = hb_reels_find(t, reels, 1, in);
    if (plays && hb_reel_is_new(r)) {
        hb_reel_begin(t, r, in);
        marks[1] = issue(t, in, HB_NONE);
        hb_reel_end(t, r, marks);
    } else if (!plays || !hb_reel_play(t, r, in, marks)) {
        marks[1] = issue(t, in, HB_NONE);
    }
    hb_tape_drop(t, grad);
    uint32_t out = t->values[made(t, "out", 9000)].storage;
    while (t->node_count > first)
        for (int k = 0, n = (int)--t->node_count; k < HB_TAPED_SAVED; k++)
            hb_tape_give_up(t, &t->nodes[n], k);
    hb_tape_drop_value(t, marks[1]);
    return out;
}

/* Each time with a gradient that is held so often; what is held at the third is let go later. */
static int run_closed(struct both *b, bool serves, bool plays, const int holders[4])
{
    struct hb_reels reels = {{NULL}};
    int played = 0;
    *b = (struct both){.server = {.context = &b->asked, .take = take, .give = give}};
    hb_program_init(&b->p, arena, "reel", HB_TORCH);
    hb_tape_init(&b->t, arena, &b->p);
    b->t.server = serves ? &b->server : NULL;
    b->t.grad = true;
    for (int i = 0; i < 4; i++) {
        uint32_t in = made(&b->t, "in", 2048), count = 0, out;
        uint32_t grad = b->t.values[made(&b->t, "grad", 4096)].storage;
        struct hb_outer outer = {{grad}, 1};
        for (int k = 1; k < holders[i]; k++)
            hb_tape_hold(&b->t, grad);
        struct hb_reel *r = hb_reels_find(&b->t, &reels, 2, in);
        const uint32_t *results = plays ? hb_reel_play_closed(&b->t, r, in, &outer, &count) : NULL;
        bool records = plays && !results && hb_reel_is_new(r);
        if (records)
            hb_reel_begin_closed(&b->t, r, in, &outer);
        out = results ? results[0] : issue_closed(&b->t, &reels, in, grad, plays);
        if (records)
            hb_reel_end_closed(&b->t, r, &out, 1);
        played += results != NULL;
        for (int k = 1; k < holders[i]; k++)
            hb_tape_drop(&b->t, grad);
        hb_tape_drop(&b->t, out);
        hb_tape_drop_value(&b->t, in);
    }
    if (!serves)
        hb_tape_end_program(&b->t);
    hb_tape_end(&b->t);
    return played;
}

static void a_stretch_with_others_in_it_is_the_same(void **state)
{
    struct both issued, played;
    const int once[4] = {1, 1, 1, 1}, twice[4] = {1, 1, 2, 1};
    (void)state;
    for (int k = 0; k < 2; k++) {
        run_closed(&issued, false, false, k ? twice : once);
        assert_int_equal(run_closed(&played, false, true, k ? twice : once), k ? 2 : 3);
        assert_int_equal(issued.p.op_count, played.p.op_count);
        assert_int_equal(issued.p.ref_count, played.p.ref_count);
        for (uint32_t i = 0; i < issued.p.buf_count; i++) {
            assert_string_equal(issued.p.bufs[i].name, played.p.bufs[i].name);
            assert_memory_equal(&issued.p.lives[i].buf, &played.p.lives[i].buf, 3 * sizeof(int));
            assert_int_equal(issued.t.storages[i].holders, played.t.storages[i].holders);
        }
        run_closed(&issued, true, false, k ? twice : once);
        assert_int_equal(run_closed(&played, true, true, k ? twice : once), k ? 2 : 3);
        assert_int_equal(issued.asked.count, played.asked.count);
        assert_memory_equal(issued.asked.list, played.asked.list, sizeof issued.asked.list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_program_is_the_same, start, end),
        cmocka_unit_test_setup_teardown(a_server_is_asked_for_the_same, start, end),
        cmocka_unit_test_setup_teardown(what_drops_another_storage_is_issued, start, end),
        cmocka_unit_test_setup_teardown(a_stretch_with_others_in_it_is_the_same, start, end),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
