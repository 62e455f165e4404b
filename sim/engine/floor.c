/* The floor of a rank: of the second step, op by op,
 *
 *   floor = max over ops m of  Σ rounded bytes of what the short program holds at m
 *                            + what the layers left out hold at m (short.h)
 *
 * Why no run is below it. Take an op m of the short program, and the same op of the whole one: it
 * is there, as the short program leaves out whole layers alone. At m the allocator has served, and
 * not been given back, every storage that the whole program holds then: those of the layers that
 * both run (a storage lives from the op that makes it to the op that drops it, and both stand in
 * both programs in the same order), and those of the layers left out, of which the spans say no
 * more than what they hold. A block is as large as what was asked for, rounded up to 512 bytes, at
 * least. So allocated bytes at m are no less, nor is their peak. What is reserved covers each
 * pool's blocks apart, and is given back only where a limit is hit: where the device is not known,
 * so that there is none, it is at the end of the step no less than the sum over pools of each
 * pool's own maximum; else no less than what is allocated.
 *
 * torchtitan's pipelines have no short program. Of them the same is summed up as the storages of
 * the whole one come and go, of both steps, without a program or an allocator. */
#include "sim/engine/floor.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/eager/memory.h"
#include "sim/eager/short.h"
#include "sim/eager/tape.h"
#include "sim/engine/heap_cuda.h"

enum { POOLS = 3, DEFAULT_POOL = 0, GRAD_POOL = 2 };

struct floor {
    const struct hb_program *p;
    const struct hb_short *cut;
    /* By op, then pool: bytes that come; those that go count at the next op, an output's at the
     * second behind the last. */
    int64_t *change;
};

static void add_life(struct floor *f, const struct hb_live *l)
{
    uint32_t pool = l->pool < POOLS ? l->pool : DEFAULT_POOL;
    int64_t bytes = hb_cuda_round(l->bytes);
    int32_t first = l->start < 0 ? 0 : l->start;
    f->change[first * POOLS + (int32_t)pool] += bytes;
    f->change[(l->end + 1) * POOLS + (int32_t)pool] -= bytes;
}

/* What streams have cached stays, unless a limit makes it go back. */
static bool counts_pools(const struct hb_caching *c)
{
    return c->reserved && !c->limit_bytes;
}

static int64_t walk_ops(const struct floor *f)
{
    const struct hb_program *p = f->p;
    int64_t live[POOLS] = {0}, most[POOLS] = {0}, peak = 0;
    struct hb_short_span more = {0};
    uint32_t span = 0;
    for (uint32_t op = 0; op < p->op_count; op++) {
        while (span < f->cut->count && f->cut->spans[span].first_op <= op)
            more = f->cut->spans[span++];
        for (int i = 0; i < POOLS; i++)
            live[i] += f->change[op * POOLS + (uint32_t)i];
        if (op < p->caching.second_op)
            continue;
        int64_t now[POOLS] = {live[0], live[1], live[2]};
        now[DEFAULT_POOL] = hb_add_sat(now[DEFAULT_POOL], more.rest_bytes);
        now[GRAD_POOL] = hb_add_sat(now[GRAD_POOL], more.grad_bytes);
        int64_t sum = 0;
        for (int i = 0; i < POOLS; i++) {
            sum = hb_add_sat(sum, now[i]);
            most[i] = hb_larger(most[i], now[i]);
        }
        peak = hb_larger(peak, sum);
    }
    return counts_pools(&p->caching) ? hb_add_sat(most[0], hb_add_sat(most[1], most[2])) : peak;
}

/* --- without a short program --- */

struct held {
    struct hb_sums sums;
    int64_t pool_bytes[UINT8_MAX + 1], most_bytes[UINT8_MAX + 1]; /* by pool */
    int64_t before_bytes; /* of all pools, before what was cached went back */
};

static uint32_t take(void *context, int64_t bytes, uint8_t pool)
{
    struct held *h = context;
    int64_t size = hb_cuda_round(bytes);
    hb_sums_take(&h->sums, size, size);
    h->pool_bytes[pool] = hb_add_sat(h->pool_bytes[pool], size);
    h->most_bytes[pool] = hb_larger(h->most_bytes[pool], h->pool_bytes[pool]);
    return 0;
}

static void give(void *context, const struct hb_storage *s)
{
    struct held *h = context;
    int64_t size = hb_cuda_round(s->bytes);
    h->sums.alive_bytes -= size;
    h->pool_bytes[s->pool] -= size;
}

static int64_t sum_of_pools(const struct held *h)
{
    int64_t sum = 0;
    for (int i = 0; i <= UINT8_MAX; i++)
        sum = hb_add_sat(sum, h->most_bytes[i]);
    return sum;
}

/* Of what a pool has held only what it holds then is sure to be there still. */
static void release(void *context)
{
    struct held *h = context;
    h->before_bytes = hb_larger(h->before_bytes, sum_of_pools(h));
    memcpy(h->most_bytes, h->pool_bytes, sizeof h->most_bytes);
}

static int64_t held_floor(struct hb_arena *scratch, const struct hb_spec *spec,
                          struct hb_rank_ask ask)
{
    struct held *h = hb_arena_alloc(scratch, 1, sizeof *h);
    struct hb_caching caching = hb_step_caching(spec);
    h->sums.alone = true;
    struct hb_server server = {h, take, give, release, counts_pools(&caching) ? NULL : &h->sums};
    struct hb_diag quiet;
    hb_diag_init(&quiet, scratch);
    ask.server = &server;
    if (!hb_step_serve(scratch, &quiet, spec, &ask))
        return INT64_MAX;
    return counts_pools(&caching) ? hb_larger(h->before_bytes, sum_of_pools(h))
                                  : h->sums.most_bytes;
}

static int64_t short_floor(struct hb_arena *scratch, const struct hb_spec *spec, int64_t rank)
{
    struct hb_program p;
    struct hb_short cut;
    struct hb_diag quiet;
    hb_diag_init(&quiet, scratch);
    if (!hb_step_lower_short(scratch, &quiet, spec, rank, &p, &cut))
        return INT64_MAX;
    struct floor f = {&p, &cut,
                      hb_arena_alloc(scratch, ((size_t)p.op_count + 2) * POOLS, sizeof *f.change)};
    for (uint32_t i = 0; i < p.buf_count; i++)
        add_life(&f, &p.lives[i]);
    return walk_ops(&f);
}

int64_t hb_floor_bytes(struct hb_arena *scratch, const struct hb_spec *spec, int64_t most_bytes)
{
    int64_t ranks = hb_step_ranks(spec), told = spec->pipeline.rank, peak = 0;
    bool one = told >= 0 && told < ranks;
    bool cuts = hb_step_has_short(spec);
    struct hb_rank_ask ask = {.actions = cuts ? NULL : hb_step_actions(scratch, spec)};
    for (int64_t r = one ? told : 0; r < (one ? told + 1 : ranks) && peak <= most_bytes; r++) {
        struct hb_arena_mark mark = hb_arena_mark(scratch);
        ask.rank = r;
        if (one || !hb_step_is_like_before(spec, r))
            peak = hb_larger(peak,
                             cuts ? short_floor(scratch, spec, r) : held_floor(scratch, spec, ask));
        hb_arena_rewind(scratch, mark);
    }
    return peak;
}
