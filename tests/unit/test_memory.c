/* sim/engine/memory: figures of small programs by hand, then random programs against sums over
 * every event, made from lives that were found the slow way. */
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "sim/engine/check.h"
#include "sim/engine/run.h"
#include "tests/unit/random_program.h"
#include "tests/unit/slow_live.h"

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

static uint32_t add_buf(struct hb_program *p, const char *name, int64_t bytes,
                        enum hb_category category)
{
    return hb_program_add_buf(p, (struct hb_buf){.name = name,
                                                 .why = "",
                                                 .bytes = bytes,
                                                 .plain_bytes = bytes,
                                                 .category = category,
                                                 .alias_of = HB_NONE});
}

/* params (donated) and batch come in; h is made of both, g of h, loss and params go out. */
static void make_step(struct hb_program *p, enum hb_compiler compiler)
{
    hb_program_init(p, arena, "step", compiler);
    uint32_t params = add_buf(p, "params", 1000, HB_CAT_PARAMS);
    uint32_t batch = add_buf(p, "batch", 100, HB_CAT_INPUTS);
    uint32_t h = add_buf(p, "h", 20000, HB_CAT_SAVED), g = add_buf(p, "g", 900, HB_CAT_GRADIENTS);
    uint32_t loss = add_buf(p, "loss", 4, HB_CAT_WORKING);
    uint32_t host = add_buf(p, "host copy of h", 20000, HB_CAT_SAVED);
    p->bufs[params].argument = p->bufs[params].output = p->bufs[batch].argument = true;
    p->bufs[loss].output = true;
    p->bufs[host].space = HB_SPACE_HOST;
    p->bufs[h].plain_bytes = 15000;
    p->argument_extra_bytes = 7;
    uint32_t in_place = add_buf(p, "gradient in h's place", 20000, HB_CAT_GRADIENTS);
    p->bufs[in_place].alias_of = h;
    const uint32_t refs[][3] = {{params, batch, h}, {h, h, host},          {h, h, g},
                                {g, g, in_place},   {in_place, g, params}, {params, params, loss}};
    for (int i = 0; i < 6; i++) {
        hb_program_add_op(p, (struct hb_op){.name = "op", .start = HB_NONE});
        hb_program_read(p, refs[i][0]);
        hb_program_read(p, refs[i][1]);
        hb_program_write(p, refs[i][2]);
    }
    hb_program_check(p);
}

static void tpu_rounds_leaves_and_slots(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m;
    make_step(&p, HB_XLA_TPU);
    hb_run_memory(arena, &p, &m);
    assert_int_equal(m.argument_bytes, 1024 + 512 + 7);
    assert_int_equal(m.output_bytes, 1024 + 512);
    assert_int_equal(m.alias_bytes, 1024);
    assert_int_equal(m.temp_bytes, 32768 + 16384);
    assert_int_equal(m.live_temp_bytes, m.temp_bytes);
    assert_int_equal(m.host_bytes, 20480);
    assert_int_equal(m.peak_bytes, 1024 + 512 + 7 + 512 + 49152);
    assert_int_equal(m.peak_op, 2);
    assert_int_equal(m.category_bytes[HB_CAT_PARAMS], 1000);
    assert_int_equal(m.category_bytes[HB_CAT_INPUTS], 100);
    assert_int_equal(m.category_bytes[HB_CAT_SAVED], 15000);
    assert_int_equal(m.category_bytes[HB_CAT_GRADIENTS], 900);
    assert_int_equal(m.category_bytes[HB_CAT_WORKING], 4);
    assert_int_equal(m.category_bytes[HB_CAT_RUNTIME], 7);
    assert_int_equal(m.category_bytes[HB_CAT_FRAGMENTATION], 0);
    assert_int_equal(m.category_bytes[HB_CAT_PADDING],
                     24 + 412 + (32768 - 15000) + (16384 - 900) + 508);
    assert_int_equal(m.at_peak_count, 5);
    assert_string_equal(p.bufs[m.at_peak[0].buf].name, "h");
    assert_int_equal(m.at_peak[0].bytes, 32768);
    assert_string_equal(p.bufs[m.at_peak[1].buf].name, "g");
    assert_string_equal(p.bufs[m.at_peak[2].buf].name, "params");
}

static void gpu_leaves_arguments_as_they_are(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m;
    make_step(&p, HB_XLA_GPU);
    hb_run_memory(arena, &p, &m);
    assert_int_equal(m.argument_bytes, 1107);
    assert_int_equal(m.output_bytes, 1004);
    assert_int_equal(m.alias_bytes, 1000);
    assert_int_equal(m.temp_bytes, 20224 + 1024);
    assert_int_equal(m.host_bytes, 20000);
}

/* Ops that read the first two of refs and write the third. */
static void add_ops(struct hb_program *p, const uint32_t (*refs)[3], int count)
{
    for (int i = 0; i < count; i++) {
        hb_program_add_op(p, (struct hb_op){.name = "op", .start = HB_NONE});
        hb_program_read(p, refs[i][0]);
        hb_program_read(p, refs[i][1]);
        hb_program_write(p, refs[i][2]);
    }
}

/* The new state is made last: until then its 20000 bytes hold h, and no other beside it; the
 * larger x and what lives with h are left to the heap. cuda-opt--donate=False. */
static void outputs_lend_their_room(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m;
    hb_program_init(&p, arena, "step", HB_XLA_GPU);
    p.outputs_lend = true;
    uint32_t in = add_buf(&p, "state", 20000, HB_CAT_PARAMS);
    uint32_t h = add_buf(&p, "h", 20000, HB_CAT_SAVED), g = add_buf(&p, "g", 900, HB_CAT_SAVED);
    uint32_t x = add_buf(&p, "x", 20001, HB_CAT_SAVED);
    uint32_t late = add_buf(&p, "late", 600, HB_CAT_WORKING);
    uint32_t out = add_buf(&p, "new state", 20000, HB_CAT_PARAMS);
    p.bufs[in].argument = p.bufs[out].output = true;
    const uint32_t refs[][3] = {{in, in, h}, {h, h, g}, {g, h, x}, {x, x, late}, {late, in, out}};
    add_ops(&p, refs, 5);
    hb_run_memory(arena, &p, &m);
    assert_true(m.lent[h] && !m.lent[g] && !m.lent[x] && !m.lent[late]);
    assert_int_equal(m.temp_bytes, 1024 + 20224);
    assert_int_equal(m.output_bytes, 20000);
    p.outputs_lend = false;
    hb_run_memory(arena, &p, &m);
    assert_false(m.lent[h]);
    assert_int_equal(m.temp_bytes, 20224 + 1024 + 20224);
}

/* A donated state that the update does not read is empty from its last reader on, which may be
 * anywhere in a loop: h has its room, x, which is there with it, not. pr85/pp8/good,noclip with a
 * master copy of the parameters. */
static void arguments_lend_their_room_once_read(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m;
    hb_program_init(&p, arena, "step", HB_XLA_GPU);
    p.outputs_lend = true;
    uint32_t in = add_buf(&p, "state", 20000, HB_CAT_PARAMS);
    uint32_t x = add_buf(&p, "x", 20000, HB_CAT_SAVED), y = add_buf(&p, "y", 500, HB_CAT_SAVED);
    uint32_t h = add_buf(&p, "h", 20000, HB_CAT_SAVED);
    uint32_t out = add_buf(&p, "new state", 20000, HB_CAT_PARAMS);
    p.bufs[in].argument = p.bufs[out].output = true;
    p.bufs[out].alias_of = in;
    const uint32_t refs[][3] = {{in, in, x}, {x, x, y}, {x, y, h}, {h, y, out}};
    uint32_t loop = hb_program_open_loop(&p, "loop", 2);
    add_ops(&p, refs, 2);
    hb_program_close_loop(&p, loop);
    add_ops(&p, refs + 2, 2);
    hb_run_memory(arena, &p, &m);
    assert_true(m.lent[h] && !m.lent[x] && !m.lent[y]);
    p.refs[p.ops[3].refs_at + 1] = in; /* the update reads the old state */
    hb_run_memory(arena, &p, &m);
    assert_false(m.lent[h]);
}

/* a, then b in its place, with a hole in which other has it; together, other must lie beside. */
static void aliases_apart_leave_room_between(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory together, apart;
    hb_program_init(&p, arena, "apart", HB_XLA_GPU);
    uint32_t a = add_buf(&p, "a", 512, HB_CAT_WORKING), b = add_buf(&p, "b", 512, HB_CAT_WORKING);
    uint32_t other = add_buf(&p, "other", 512, HB_CAT_WORKING);
    p.bufs[b].alias_of = a;
    const uint32_t bufs[] = {a, a, other, other, b, b};
    for (int i = 0; i < 6; i++) {
        hb_program_add_op(&p, (struct hb_op){.name = "op", .start = HB_NONE});
        if (i % 2)
            hb_program_read(&p, bufs[i]);
        else
            hb_program_write(&p, bufs[i]);
    }
    hb_program_check(&p);
    struct hb_placing placing = {HB_HEAP_SORTED, 256, 1, false, false, 0};
    hb_run_memory_placed(arena, &p, &placing, &together);
    assert_int_equal(together.temp_bytes, 1024);
    placing.apart = true;
    hb_run_memory_placed(arena, &p, &placing, &apart);
    assert_int_equal(apart.temp_bytes, 512);
    assert_int_equal(apart.live_temp_bytes, 512);
    assert_int_equal(apart.peak_op, 0);
    assert_int_equal(apart.at_peak_count, 1);
    assert_int_equal(apart.offset_of[other], apart.offset_of[a]);
}

/* Where two buffers share memory, the one that was written last before the peak is named. */
static void the_tenant_at_the_peak_is_named(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m;
    make_step(&p, HB_XLA_TPU);
    uint32_t late = add_buf(&p, "late", 900, HB_CAT_WORKING);
    hb_program_add_op(&p, (struct hb_op){.name = "op", .start = HB_NONE});
    hb_program_read(&p, 3);
    hb_program_write(&p, late);
    hb_program_add_op(&p, (struct hb_op){.name = "op", .start = HB_NONE});
    hb_program_read(&p, 6);
    hb_run_memory(arena, &p, &m);
    assert_int_equal(m.peak_op, 6);
    assert_string_equal(p.bufs[m.at_peak[0].buf].name, "gradient in h's place");
    assert_int_equal(m.category_bytes[HB_CAT_GRADIENTS], 20000 + 900);
    assert_int_equal(m.offset_of[6], m.offset_of[2]);
    assert_int_equal(m.offset_of[0], -1);
}

static void a_program_without_temporaries(void **state)
{
    (void)state;
    struct hb_program p;
    struct hb_memory m;
    hb_program_init(&p, arena, "still", HB_XLA_GPU);
    hb_run_memory(arena, &p, &m);
    assert_int_equal(m.peak_bytes, 0);
    assert_int_equal(m.peak_op, -1);
    uint32_t a = add_buf(&p, "a", 50, HB_CAT_EMA);
    p.bufs[a].argument = true;
    hb_run_memory(arena, &p, &m);
    assert_int_equal(m.peak_bytes, 50);
    assert_int_equal(m.category_bytes[HB_CAT_EMA], 50);
    assert_int_equal(m.at_peak_count, 1);
}

/* ---- random programs ---- */

struct slow_sums {
    int64_t argument, output, alias;
    int64_t live_peak, host_peak;
    int32_t peak_op;
};

static bool any_in_group(const struct hb_program *p, uint32_t root, bool output)
{
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (hb_program_root(p, i) == root && (output ? p->bufs[i].output : p->bufs[i].argument))
            return true;
    return false;
}

static int64_t round_to(int64_t bytes, int64_t step)
{
    return (bytes + step - 1) / step * step;
}

static void sum_event(const struct hb_program *p, const struct hb_live *lives, uint32_t count,
                      int32_t at, struct slow_sums *sums)
{
    bool tpu = p->compiler == HB_XLA_TPU;
    int64_t live = 0, host = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t root = lives[i].buf;
        bool callers = any_in_group(p, root, false) || any_in_group(p, root, true);
        bool whole = callers && p->bufs[root].space == HB_SPACE_HOST;
        if (!whole && (lives[i].start > at || lives[i].end < at))
            continue;
        if (p->bufs[root].space == HB_SPACE_HOST)
            host += round_to(lives[i].bytes, tpu ? 512 : 1);
        else if (p->bufs[root].space == HB_SPACE_HBM && !callers)
            live += round_to(lives[i].bytes, tpu ? 16384 : 256);
    }
    if (live > sums->live_peak) {
        sums->live_peak = live;
        sums->peak_op = at;
    }
    sums->host_peak = host > sums->host_peak ? host : sums->host_peak;
}

static struct slow_sums sum_slowly(const struct hb_program *p)
{
    struct slow_sums sums = {.argument = p->argument_extra_bytes, .peak_op = -1};
    struct hb_live *lives = hb_arena_alloc(arena, p->buf_count, sizeof *lives);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        if (hb_program_root(p, i) != i || !slow_live(p, i, &lives[count]))
            continue;
        int64_t bytes = round_to(lives[count++].bytes, p->compiler == HB_XLA_TPU ? 512 : 1);
        if (p->bufs[i].space != HB_SPACE_HBM)
            continue;
        bool argument = any_in_group(p, i, false), output = any_in_group(p, i, true);
        sums.argument += argument ? bytes : 0;
        sums.output += output ? bytes : 0;
        sums.alias += argument && output ? bytes : 0;
    }
    for (int32_t at = -1; at <= (int32_t)p->op_count; at++)
        sum_event(p, lives, count, at, &sums);
    return sums;
}

static void assert_heap_holds(const struct hb_program *p, const struct hb_memory *m)
{
    for (uint32_t i = 0; i < m->live_count; i++) {
        const struct hb_live *a = &m->live[i];
        int64_t at = m->offset_of[a->buf];
        bool placed = p->bufs[a->buf].space == HB_SPACE_HBM && !any_in_group(p, a->buf, false) &&
                      !any_in_group(p, a->buf, true);
        assert_int_equal(at >= 0, placed);
        assert_true(!placed || at + a->bytes <= m->temp_bytes);
        for (uint32_t j = 0; placed && j < i; j++) {
            const struct hb_live *b = &m->live[j];
            int64_t other = m->offset_of[b->buf];
            if (other >= 0 && a->start <= b->end && b->start <= a->end && a->bytes && b->bytes)
                assert_true(at + a->bytes <= other || other + b->bytes <= at);
        }
    }
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].alias_of != HB_NONE)
            assert_int_equal(m->offset_of[i], m->offset_of[p->bufs[i].alias_of]);
}

static void assert_tells_the_peak(const struct hb_program *p, const struct hb_memory *m)
{
    int64_t categories = 0, listed = 0;
    for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
        assert_true(m->category_bytes[c] >= 0);
        categories += m->category_bytes[c];
    }
    assert_int_equal(categories, m->peak_bytes);
    for (uint32_t i = 0; i < m->at_peak_count; i++) {
        listed += m->at_peak[i].bytes;
        assert_true(i == 0 || m->at_peak[i].bytes <= m->at_peak[i - 1].bytes);
        assert_true(m->at_peak[i].bytes >= p->bufs[m->at_peak[i].buf].bytes);
    }
    assert_int_equal(listed + p->argument_extra_bytes + m->temp_bytes - m->live_temp_bytes,
                     m->peak_bytes);
}

static void random_programs_sum_up(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(41);
    for (int round = 0; round < 300; round++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_program p;
        struct hb_memory m;
        struct random_shape shape = {12, 2, 4, round % 2 ? 100000 : 300};
        random_program(arena, &rng, shape, &p);
        struct slow_sums slow = sum_slowly(&p);
        bool tpu = p.compiler == HB_XLA_TPU;
        const struct hb_placing caching = {
            HB_HEAP_CACHING, tpu ? 16384 : 256, tpu ? 512 : 1, false, false, 0};
        if (round % 3 == 0)
            hb_run_memory_placed(arena, &p, &caching, &m);
        else
            hb_run_memory(arena, &p, &m);
        assert_int_equal(m.argument_bytes, slow.argument);
        assert_int_equal(m.output_bytes, slow.output);
        assert_int_equal(m.alias_bytes, slow.alias);
        assert_int_equal(m.live_temp_bytes, slow.live_peak);
        assert_int_equal(m.host_bytes, slow.host_peak);
        if (slow.live_peak)
            assert_int_equal(m.peak_op, slow.peak_op);
        assert_true(m.temp_bytes >= m.live_temp_bytes);
        assert_int_equal(m.peak_bytes, slow.argument + slow.output - slow.alias + m.temp_bytes);
        assert_heap_holds(&p, &m);
        assert_tells_the_peak(&p, &m);
        hb_arena_rewind(arena, mark);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tpu_rounds_leaves_and_slots),
        cmocka_unit_test(gpu_leaves_arguments_as_they_are),
        cmocka_unit_test(outputs_lend_their_room),
        cmocka_unit_test(arguments_lend_their_room_once_read),
        cmocka_unit_test(aliases_apart_leave_room_between),
        cmocka_unit_test(the_tenant_at_the_peak_is_named),
        cmocka_unit_test(a_program_without_temporaries),
        cmocka_unit_test(random_programs_sum_up),
    };
    return cmocka_run_group_tests_name("memory", tests, start, end);
}
