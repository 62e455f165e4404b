#include "sim/engine/step.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "sim/eager/memory.h"
#include "sim/eager/tape.h"
#include "sim/engine/caching.h"
#include "sim/engine/heap_cuda.h"
#include "sim/graph/link.h"
#include "sim/graph/step.h"
#include "sim/ir/lower.h"

enum { ROUND_BYTES = 16384 };

static bool check_total(struct hb_diag *diag, int64_t total, const char *name)
{
    return hb_size_ok(total) || hb_error(diag, (struct hb_loc){0},
                                         "the tensors of '%s' together exceed 2^61 bytes", name);
}

bool hb_step_check_total(struct hb_diag *diag, const struct hb_program *p)
{
    int64_t total = p->argument_extra_bytes;
    for (uint32_t i = 0; i < p->buf_count; i++)
        total = hb_add_sat(total, hb_round_up(p->bufs[i].bytes, ROUND_BYTES));
    return check_total(diag, total, p->name);
}

/* Where products are spread XLA:GPU's second pass keeps what its first order begins with: lowers
 * the step anew where that is not the list's, for which p was made. */
static bool lower_spread(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                         struct hb_program *p)
{
    struct hb_step_orders orders;
    struct hb_spec own = *spec;
    if (!p->spreads || spec->share != HB_SHARE_ASKED || p->share != HB_SHARE_ASKED)
        return true;
    hb_step_orders_find(arena, p, &orders);
    own.depth_first = orders.choice.bytes[HB_ORDER_POST] < orders.choice.bytes[HB_ORDER_LIST];
    return !own.depth_first || hb_lower(arena, diag, &own, p);
}

bool hb_step_link(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                  struct hb_program *out)
{
    return hb_link_lower(arena, diag, spec, out) && lower_spread(arena, diag, spec, out);
}

static bool run_rank(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                     const struct hb_rank_ask *ask, struct hb_program *p, struct hb_memory *m)
{
    if (!hb_step_lower(arena, diag, spec, ask, p) || !lower_spread(arena, diag, spec, p))
        return false;
    if (!ask->storages && !hb_step_check_total(diag, p)) /* of others it was, as they were served */
        return false;
    hb_link_order(arena, spec, p);
    hb_run_memory(arena, p, m);
    return true;
}

/* --- peaks alone --- */

struct asked {
    struct hb_cuda *cuda; /* null: each block is as large as its request */
    struct hb_sums sums;  /* of requests; asked: as hb_step_check_total has it */
    int64_t rest_bytes;   /* that blocks in use have beyond their requests */
    int64_t most_bytes;   /* alive, with these */
    bool unsure;          /* what is left out may have such blocks */
    uint32_t taken;       /* requests, without what was left out */
};

/* What is cut off a block of a whole number of such steps leaves such a one, or nothing, and none
 * is larger than its request; of small requests' blocks all that is left is cut off. */
static bool is_even(int64_t bytes)
{
    const int64_t small = 1 << 20, step = 2 << 20;
    return bytes <= small || hb_cuda_round(bytes) % step == 0;
}

static uint32_t take_block(struct asked *a, int64_t bytes, uint8_t pool)
{
    int64_t address;
    uint32_t block = hb_cuda_take(a->cuda, bytes, pool, &address);
    a->rest_bytes += hb_cuda_block_bytes(a->cuda, block) - hb_cuda_round(bytes);
    return block;
}

static uint32_t take(void *context, int64_t bytes, uint8_t pool)
{
    struct asked *a = context;
    a->taken++;
    uint32_t block = a->cuda ? take_block(a, bytes, pool) : 0;
    hb_sums_take(&a->sums, hb_cuda_round(bytes), hb_round_up(bytes, ROUND_BYTES));
    a->most_bytes = hb_larger(a->most_bytes, hb_add_sat(a->sums.alive_bytes, a->rest_bytes));
    if (a->sums.repeats && (a->rest_bytes || !is_even(bytes)))
        a->unsure = true;
    return block;
}

static void give(void *context, const struct hb_storage *s)
{
    struct asked *a = context;
    int64_t size = hb_cuda_round(s->bytes);
    a->sums.alive_bytes -= size;
    if (!a->cuda)
        return;
    a->rest_bytes -= hb_cuda_block_bytes(a->cuda, s->served) - size;
    hb_cuda_give(a->cuda, s->served);
}

static void release(void *context)
{
    struct asked *a = context;
    if (a->cuda)
        hb_cuda_release(a->cuda);
}

struct rank {
    int64_t peak_bytes;
    uint32_t storages;
    uint32_t served; /* of them */
    bool exact;  /* each storage was asked for; else what repeats was added up: no more than that */
    bool unsure; /* that may have left out what blocks take beyond their requests */
};

/* Of segments that grow each block is cut to its request, so that only what is held from the device
 * takes an allocator. */
static bool rank_peak(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                      struct hb_rank_ask ask, bool adds_up, struct rank *out)
{
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct hb_caching c = hb_step_caching(spec);
    struct asked a = {.sums.alone = c.expandable && !c.reserved};
    if (!a.sums.alone)
        a.cuda = hb_cuda_new(arena, hb_caching_limits(&c));
    struct hb_server server = {&a, take, give, release, adds_up ? &a.sums : NULL};
    ask.server = &server;
    bool ok = hb_step_serve(arena, diag, spec, &ask) &&
              check_total(diag, a.sums.asked_bytes, spec->model.name);
    *out = (struct rank){.peak_bytes = a.most_bytes,
                         .storages = a.sums.asked_count,
                         .served = a.taken,
                         .exact = !a.sums.left_out};
    if (c.reserved)
        out->peak_bytes = hb_cuda_stats(a.cuda).peak_reserved_bytes;
    if (a.sums.left_out) {
        out->unsure = a.most_bytes > a.sums.most_bytes || (a.unsure && !c.expandable);
        out->peak_bytes = a.sums.most_bytes;
    }
    hb_arena_rewind(arena, mark);
    return ok;
}

struct ranks {
    struct rank *list;
    int64_t count;
    int64_t told; /* -1: the heaviest */
    struct hb_rank_ask ask;
};

static bool all_ranks(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                      struct ranks *out)
{
    struct hb_caching c = hb_step_caching(spec);
    bool adds_up = !c.reserved && !c.max_split_bytes;
    *out = (struct ranks){.count = hb_step_ranks(spec)};
    out->told = out->count > 1 ? spec->pipeline.rank : 0;
    out->ask.actions = hb_step_actions(arena, spec);
    out->list = hb_arena_alloc(arena, (size_t)out->count, sizeof *out->list);
    for (int64_t r = 0; r < out->count; r++) {
        out->ask.rank = r;
        out->ask.storages = r ? out->list[r - 1].served : 0; /* about as many */
        if (hb_step_is_like_before(spec, r))
            out->list[r] = out->list[r - 1];
        else if (!rank_peak(arena, diag, spec, out->ask, adds_up, &out->list[r]))
            return false;
    }
    return true;
}

/* The one that is told; the first of the heaviest. */
static struct rank *find_told(struct ranks *all)
{
    struct rank *found = &all->list[all->told < 0 ? 0 : all->told];
    for (int64_t r = 0; all->told < 0 && r < all->count; r++)
        if (all->list[r].peak_bytes > found->peak_bytes)
            found = &all->list[r];
    all->ask.rank = found - all->list;
    all->ask.storages = found->storages;
    return found;
}

static int64_t *list_peaks(struct hb_arena *arena, const struct ranks *all)
{
    int64_t *peaks = hb_arena_alloc(arena, (size_t)all->count, sizeof *peaks);
    for (int64_t r = 0; r < all->count; r++)
        peaks[r] = all->list[r].peak_bytes;
    return peaks;
}

/* Each storage of a rank is asked for that was served as a sum, to the same bytes. */
static void ask_again(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                      struct hb_rank_ask ask, struct rank *r)
{
    if (!rank_peak(arena, diag, spec, ask, false, r))
        HB_BUG("rank %lld is refused, and was not as a sum", (long long)ask.rank);
}

/* Of those of which it is not sure that what was added up is all, storages are asked for. */
static void make_sure(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                      struct ranks *all)
{
    struct hb_rank_ask ask = {.actions = all->ask.actions};
    for (ask.rank = 0; ask.rank < all->count; ask.rank++) {
        struct rank *r = &all->list[ask.rank];
        if (!r->exact && r->unsure)
            ask_again(arena, diag, spec, ask, r);
    }
}

/* The told one is run, until none is heavier. */
static bool run_ranks(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                      struct hb_program *p, struct hb_memory *m)
{
    struct ranks all;
    if (!all_ranks(arena, diag, spec, &all))
        return false;
    struct hb_arena_mark mark = hb_arena_mark(arena);
    for (struct rank *told = find_told(&all), *last = NULL; told != last; told = find_told(&all)) {
        hb_arena_rewind(arena, mark);
        if (!run_rank(arena, diag, spec, &all.ask, p, m))
            return false;
        if (told->exact && told->peak_bytes != m->peak_bytes)
            HB_BUG("rank %lld has a peak of %lld bytes, and of %lld without a program",
                   (long long)all.ask.rank, (long long)m->peak_bytes, (long long)told->peak_bytes);
        told->peak_bytes = m->peak_bytes;
        told->exact = true;
        last = told;
        make_sure(arena, diag, spec, &all);
    }
    m->rank_peaks = list_peaks(arena, &all);
    m->rank_count = all.count;
    m->rank = all.ask.rank;
    return true;
}

bool hb_step_run(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                 struct hb_program *out_program, struct hb_memory *out_memory)
{
    if (hb_step_ranks(spec) > 1)
        return run_ranks(arena, diag, spec, out_program, out_memory);
    return run_rank(arena, diag, spec, &(struct hb_rank_ask){0}, out_program, out_memory);
}

bool hb_step_peak(struct hb_arena *arena, struct hb_diag *diag, const struct hb_spec *spec,
                  int64_t *out_bytes)
{
    struct ranks all;
    struct hb_program p;
    struct hb_memory m;
    if (spec->compiler != HB_TORCH) {
        if (!run_rank(arena, diag, spec, &(struct hb_rank_ask){0}, &p, &m))
            return false;
        *out_bytes = m.peak_bytes;
        return true;
    }
    if (!all_ranks(arena, diag, spec, &all))
        return false;
    struct rank *told = find_told(&all), *last;
    do {
        if (!told->exact)
            ask_again(arena, diag, spec, all.ask, told);
        last = told;
        make_sure(arena, diag, spec, &all);
        told = find_told(&all);
    } while (told != last);
    *out_bytes = told->peak_bytes;
    return true;
}
