/* sim/engine/caching: programs of random buffers, against a walk over their ops beside the slow
 * allocator: when each buffer is asked for and given back, what stands at the peak, where. */
#include "tests/unit/unit.h"

#include "base/rng.h"
#include "sim/engine/check.h"
#include "sim/engine/live.h"
#include "sim/engine/run.h"
#include "tests/unit/slow_cuda.h"

enum { OPS = 30, BUFS = 60 };

static struct hb_arena *arena;
static struct slow_cuda slow;

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

static uint32_t add_buf(struct hb_program *p, struct hb_rng *rng, bool argument)
{
    struct hb_buf b = {.name = "b", .why = "", .alias_of = HB_NONE, .argument = argument};
    b.bytes = hb_rng_range(rng, 0, 5) ? hb_rng_range(rng, 1, 40 << hb_rng_range(rng, 0, 20)) : 0;
    b.plain_bytes = b.bytes - hb_rng_range(rng, 0, b.bytes / 8);
    b.category = (enum hb_category)hb_rng_range(rng, 0, HB_CAT_COMMUNICATION);
    b.output = hb_rng_range(rng, 0, argument ? 1 : 7) == 0;
    return hb_program_add_buf(p, b);
}

static bool touches(const struct hb_program *p, uint32_t op, uint32_t buf)
{
    const struct hb_op *o = &p->ops[op];
    for (uint32_t k = 0; k < o->read_count + o->write_count; k++)
        if (p->refs[o->refs_at + k] == buf)
            return true;
    return false;
}

static int32_t first_of(const struct hb_program *p, uint32_t buf)
{
    int32_t op = 0;
    while (!p->bufs[buf].argument && op < OPS && !touches(p, (uint32_t)op, buf))
        op++;
    return p->bufs[buf].argument ? -1 : op;
}

static int32_t last_of(const struct hb_program *p, uint32_t buf)
{
    int32_t op = OPS;
    while (!p->bufs[buf].output && op-- > 0 && !touches(p, (uint32_t)op, buf))
        ;
    return op;
}

/* The first op reads all arguments, each other some of what exists, and writes a buffer or two. */
static void make_program(struct hb_rng *rng, struct hb_program *p)
{
    hb_program_init(p, arena, "random", HB_TORCH);
    uint32_t arguments = (uint32_t)hb_rng_range(rng, 1, 5);
    for (uint32_t i = 0; i < arguments; i++)
        add_buf(p, rng, true);
    for (uint32_t op = 0; op < OPS; op++) {
        uint32_t exists = p->buf_count;
        hb_program_add_op(
            p,
            (struct hb_op){.name = "op", .kind = HB_OP_ELEMENTWISE, .start = HB_NONE, .batch = 1});
        for (uint32_t i = 0; i < (op ? (uint32_t)hb_rng_range(rng, 0, 2) : arguments); i++)
            hb_program_read(p, op ? (uint32_t)hb_rng_range(rng, 0, exists - 1) : i);
        if (hb_rng_range(rng, 0, 5) == 0)
            hb_program_write(p, (uint32_t)hb_rng_range(rng, 0, exists - 1));
        for (int64_t i = hb_rng_range(rng, 0, 3) ? 1 : 2; i > 0 && p->buf_count < BUFS; i--)
            hb_program_write(p, add_buf(p, rng, false));
    }
    p->caching = (struct hb_caching){.on = true,
                                     .expandable = hb_rng_range(rng, 0, 1),
                                     .reserved = hb_rng_range(rng, 0, 1),
                                     .captures = hb_rng_range(rng, 0, 1),
                                     .limit_bytes = hb_rng_range(rng, 0, 2) * (40 * SLOW_MIB),
                                     .second_op = OPS / 2};
    hb_program_check(p);
    p->lives = hb_arena_alloc(arena, p->buf_count, sizeof *p->lives);
    for (uint32_t i = 0; i < p->buf_count; i++)
        p->lives[i] = (struct hb_live){i, first_of(p, i), last_of(p, i),
                                       (uint8_t)hb_rng_range(rng, 0, 1), p->bufs[i].bytes};
}

/* What a walk over the ops finds. */
struct found {
    int64_t argument_bytes;
    int32_t peak_op;
    struct {
        uint32_t segment;
        int64_t at;
    } place[BUFS];
};

static void take(const struct hb_program *p, uint32_t buf, struct found *f)
{
    if (!p->bufs[buf].bytes)
        return;
    const struct slow_used *u = slow_take(&slow, p->bufs[buf].bytes, p->lives[buf].pool);
    f->place[buf].segment = u->segment;
    f->place[buf].at = u->at;
}

static void give(const struct hb_program *p, uint32_t buf, const struct found *f)
{
    for (uint32_t i = 0; p->bufs[buf].bytes && i < slow.used_count; i++)
        if (slow.used[i].segment == f->place[buf].segment && slow.used[i].at == f->place[buf].at) {
            slow_give(&slow, i);
            return;
        }
}

static void walk(const struct hb_program *p, struct found *f)
{
    const struct hb_caching *c = &p->caching;
    slow = (struct slow_cuda){.limits = {c->expandable, c->limit_bytes, 0, 0}};
    *f = (struct found){.peak_op = -1};
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument)
            take(p, i, f);
    int64_t most = slow.stats.allocated_bytes;
    for (int32_t op = 0; op < OPS; op++) {
        if (op == OPS / 2 && c->captures)
            slow_release(&slow);
        if (op == OPS / 2)
            f->argument_bytes = slow.stats.allocated_bytes;
        for (uint32_t i = 0; i < p->buf_count; i++)
            if (first_of(p, i) == op)
                take(p, i, f);
        if (slow.stats.allocated_bytes > most)
            f->peak_op = op;
        most = hb_larger(most, slow.stats.allocated_bytes);
        for (uint32_t i = 0; i < p->buf_count; i++)
            if (last_of(p, i) == op)
                give(p, i, f);
    }
}

static void check_sums(const struct hb_program *p, const struct found *f, const struct hb_memory *m)
{
    int64_t peak = slow.stats.peak_allocated_bytes;
    assert_int_equal(m->allocated_bytes, peak);
    assert_int_equal(m->reserved_bytes, slow.stats.peak_reserved_bytes);
    assert_int_equal(m->retries, slow.stats.retries);
    assert_int_equal(m->peak_op, f->peak_op);
    assert_int_equal(m->argument_bytes, f->argument_bytes);
    assert_int_equal(m->alias_bytes, f->argument_bytes);
    assert_int_equal(m->output_bytes, f->argument_bytes);
    assert_int_equal(m->live_temp_bytes, peak - f->argument_bytes);
    peak = p->caching.reserved ? m->reserved_bytes : peak;
    assert_int_equal(m->peak_bytes, peak);
    assert_int_equal(m->temp_bytes, peak - f->argument_bytes);
}

/* Each buffer that is alive there, rounded, the largest first; what they do not fill is
 * fragmentation. */
static void check_peak(const struct hb_program *p, const struct hb_memory *m)
{
    int64_t category[HB_CATEGORY_COUNT] = {[HB_CAT_FRAGMENTATION] = m->peak_bytes};
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const struct hb_buf *b = &p->bufs[i];
        if (!b->bytes || first_of(p, i) > m->peak_op || last_of(p, i) < m->peak_op)
            continue;
        int64_t bytes = (b->bytes + 511) / 512 * 512;
        category[b->category] += b->plain_bytes;
        category[HB_CAT_PADDING] += bytes - b->plain_bytes;
        category[HB_CAT_FRAGMENTATION] -= bytes;
        count++;
    }
    assert_int_equal(m->at_peak_count, count);
    assert_memory_equal(m->category_bytes, category, sizeof category);
    for (uint32_t i = 1; i < count; i++) {
        const struct hb_at_peak *a = &m->at_peak[i - 1];
        assert_true(a->bytes > a[1].bytes || (a->bytes == a[1].bytes && a->buf < a[1].buf));
    }
}

static void check_lives(const struct hb_program *p, const struct hb_memory *m)
{
    assert_int_equal(m->live_count, p->buf_count);
    assert_int_equal(m->part_count, p->buf_count);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        int32_t first = first_of(p, i), last = last_of(p, i);
        assert_int_equal(m->live[i].buf, i);
        assert_int_equal(m->live[i].bytes, p->bufs[i].bytes);
        assert_int_equal(m->live[i].start, first);
        assert_int_equal(m->live[i].end, last);
        assert_int_equal(m->parts[i].live, i);
        assert_int_equal(m->parts[i].span.start, first < 0 ? 0 : first);
        assert_int_equal(m->parts[i].span.end, last < OPS ? last : OPS - 1);
    }
}

/* Segments side by side, in the order in which they came, each as high as what lay in it. */
static void check_places(const struct hb_program *p, const struct found *f,
                         const struct hb_memory *m)
{
    static int64_t top[SLOW_SEGMENTS + 1];
    memset(top, 0, sizeof top);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        int64_t *above = &top[f->place[i].segment + 1];
        if (p->bufs[i].bytes)
            *above = hb_larger(*above, f->place[i].at + (p->bufs[i].bytes + 511) / 512 * 512);
    }
    for (uint32_t s = 0; s < slow.segment_count; s++)
        top[s + 1] += top[s];
    for (uint32_t i = 0; i < p->buf_count; i++)
        assert_int_equal(m->offset_of[i],
                         p->bufs[i].bytes ? top[f->place[i].segment] + f->place[i].at : -1);
}

static void a_walk_over_the_ops_finds_the_same(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(23);
    for (int i = 0; i < 300; i++) {
        struct hb_program p;
        struct hb_memory m;
        struct found f;
        make_program(&rng, &p);
        walk(&p, &f);
        hb_run_memory(arena, &p, &m);
        check_sums(&p, &f, &m);
        check_peak(&p, &m);
        check_lives(&p, &m);
        check_places(&p, &f, &m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_over_the_ops_finds_the_same),
    };
    return cmocka_run_group_tests_name("caching", tests, start, end);
}
