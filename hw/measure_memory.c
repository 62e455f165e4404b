/* Steps about host copies and about how much memory there is. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "hw/measure_run.h"

enum { MOST_BLOCKS = 2048 };

/* ---- host copies ---- */

struct copies {
    void *up, *down; /* host memory */
    int64_t bytes;
    double up_rate, down_rate;
};

static bool measure_copy(struct hb_run *r, struct hb_task t, double *out_rate,
                         const char **out_note)
{
    struct hb_sample s;
    if (!hb_run_measure(r, hb_task_run, &t, &s))
        return false;
    *out_rate = (double)t.bytes / s.median * 1e9;
    if (out_note)
        *out_note = hb_run_describe(r, &s);
    return true;
}

static void measure_pinned(struct hb_run *r, struct copies *c)
{
    const char *note;
    if (measure_copy(r, hb_task_copy(r, HB_COPY_UP, c->up, c->bytes), &c->up_rate, &note)) {
        r->dev->host_up_bytes_per_s = c->up_rate;
        hb_run_fact(r, "host_up_bytes_per_s", r->source, note);
    }
    if (measure_copy(r, hb_task_copy(r, HB_COPY_DOWN, c->down, c->bytes), &c->down_rate, &note)) {
        r->dev->host_down_bytes_per_s = c->down_rate;
        hb_run_fact(r, "host_down_bytes_per_s", r->source, note);
    }
    struct hb_task small = hb_task_copy(r, HB_COPY_UP, c->up, 4096);
    struct hb_sample s;
    if (hb_run_measure(r, hb_task_run_waited, &small, &s)) {
        r->dev->host_latency_ns = (int64_t)llround(s.median);
        hb_run_fact(r, "host_latency_ns", r->source, "4 KiB up, waited for");
    }
}

static void measure_duplex(struct hb_run *r, const struct copies *c)
{
    struct hb_pair both = {hb_task_copy(r, HB_COPY_UP, c->up, c->bytes),
                           hb_task_copy(r, HB_COPY_DOWN, c->down, c->bytes)};
    struct hb_sample s;
    if (!hb_run_measure(r, hb_task_run_pair, &both, &s))
        return;
    double sum = 2 * (double)c->bytes / s.median * 1e9;
    r->dev->host_duplex = fmax(0.01, fmin(1, sum / (c->up_rate + c->down_rate)));
    hb_run_fact(r, "host_duplex", r->source,
                hb_arena_printf(r->env->arena, "both at once: %.4g bytes a second in sum", sum));
}

/* What overlap is worth to offload: a copy while products run, against a copy alone. */
static void measure_overlap(struct hb_run *r, const struct copies *c)
{
    struct hb_pair under = {hb_task_product(r, hb_run_reference(r)),
                            hb_task_copy(r, HB_COPY_DOWN, c->down, c->bytes / 8)};
    struct hb_sample s;
    double alone;
    under.first.product.batch = 1;
    if (!hb_product_fits(r, &under.first.product) || !measure_copy(r, under.second, &alone, NULL) ||
        !hb_run_measure(r, hb_task_run_under, &under, &s))
        return;
    double rate = (double)under.second.bytes / s.median * 1e9;
    r->dev->host_efficiency = fmax(0.01, fmin(1, rate / alone));
    hb_run_fact(r, "host_efficiency", r->source, "a copy down while a product runs, against alone");
}

static void measure_pageable(struct hb_run *r, int64_t bytes)
{
    void *host;
    double rate[2] = {0};
    if (!r->p->ops->host_alloc(r->p, bytes, false, &host))
        return;
    memset(host, 1, (size_t)bytes);
    if (measure_copy(r, hb_task_copy(r, HB_COPY_UP, host, bytes), &rate[0], NULL) &&
        measure_copy(r, hb_task_copy(r, HB_COPY_DOWN, host, bytes), &rate[1], NULL))
        hb_str_addf(&r->out->remarks, "pageable host memory: %.4g bytes a second up, %.4g down\n",
                    rate[0], rate[1]);
    r->p->ops->host_release(r->p, host, false);
}

void hb_step_host(struct hb_run *r)
{
    struct copies c = {.bytes = r->room < (64 << 20) ? r->room : 64 << 20};
    struct hb_probe *p = r->p;
    if (p->ops->host_alloc(p, c.bytes, true, &c.up) &&
        p->ops->host_alloc(p, c.bytes, true, &c.down)) {
        memset(c.up, 1, (size_t)c.bytes);
        memset(c.down, 2, (size_t)c.bytes);
        measure_pinned(r, &c);
        if (r->p->info.kind == HB_KIND_GPU && c.up_rate > 0 && c.down_rate > 0) {
            measure_duplex(r, &c);
            measure_overlap(r, &c);
        }
    }
    hb_run_failure(r, "host copies");
    if (c.up)
        p->ops->host_release(p, c.up, true);
    if (c.down)
        p->ops->host_release(p, c.down, true);
    measure_pageable(r, c.bytes < (16 << 20) ? c.bytes : 16 << 20);
    hb_run_failure(r, "pageable copies");
}

/* ---- capacity ---- */

struct blocks {
    uintptr_t at[MOST_BLOCKS];
    int count;
};

static int64_t take_until_refused(struct hb_run *r, struct blocks *b, int64_t largest,
                                  int64_t smallest)
{
    int64_t taken = 0;
    for (int64_t bytes = largest; bytes >= smallest && b->count < MOST_BLOCKS;) {
        hb_calib_stopped(&r->calib); /* the deadline does not count here, Ctrl-C does */
        if (r->calib.interrupted)
            break;
        if (r->p->ops->alloc(r->p, bytes, &b->at[b->count])) {
            b->count++;
            taken += bytes;
        } else if (r->p->error) {
            break;
        } else {
            bytes /= 2;
        }
    }
    return taken;
}

static void give_back(struct hb_run *r, struct blocks *b)
{
    while (b->count)
        r->p->ops->release(r->p, b->at[--b->count]);
}

/* How far free memory falls for one byte. */
static int64_t find_page(struct hb_run *r)
{
    int64_t before;
    int64_t after;
    int64_t total;
    uintptr_t at;
    if (!r->p->ops->memory(r->p, &before, &total) || !r->p->ops->alloc(r->p, 1, &at))
        return 0;
    bool told = r->p->ops->memory(r->p, &after, &total);
    r->p->ops->release(r->p, at);
    return told && before > after ? before - after : 0;
}

/* All memory in equal blocks, every other one given back: is half of what is then free granted in
 * one piece? Drivers that map pages do, others do not. */
static const char *try_fragments(struct hb_run *r, struct blocks *b, int64_t page)
{
    int64_t block = hb_round_up(r->total_bytes / 512 + 1, page > 0 ? page : 1);
    uintptr_t whole;
    take_until_refused(r, b, block, block);
    int kept = 0;
    int64_t freed = 0;
    for (int i = 0; i < b->count; i++)
        if (i % 2) {
            r->p->ops->release(r->p, b->at[i]);
            freed += block;
        } else {
            b->at[kept++] = b->at[i];
        }
    b->count = kept;
    bool granted = freed > 0 && r->p->ops->alloc(r->p, freed / 2, &whole);
    if (granted)
        r->p->ops->release(r->p, whole);
    give_back(r, b);
    return granted ? "scattered free pages can serve one large block"
                   : "scattered free pages cannot serve one large block: fragments are lost";
}

void hb_step_capacity(struct hb_run *r)
{
    struct blocks *b = hb_arena_alloc(r->env->arena, 1, sizeof *b);
    if (r->p->info.kind == HB_KIND_CPU)
        return;
    int64_t page = find_page(r);
    int64_t smallest = page > 0 ? page : 1 << 20;
    int64_t usable = take_until_refused(r, b, INT64_C(1) << 30, smallest);
    give_back(r, b);
    if (r->p->error || r->calib.interrupted || usable <= 0) {
        hb_run_failure(r, "capacity");
        return;
    }
    int64_t rest = r->total_bytes - usable - r->context_bytes - r->library_bytes;
    r->dev->reserve_bytes = rest > 0 ? rest : 0;
    hb_run_fact(r, "reserve_bytes", r->source,
                hb_arena_printf(r->env->arena,
                                "%lld bytes were granted in plain allocations; context and "
                                "libraries are counted apart",
                                (long long)usable));
    if (page > 0) {
        r->dev->page_bytes = page;
        hb_run_fact(r, "page_bytes", r->source, try_fragments(r, b, page));
    }
    hb_run_failure(r, "capacity");
}
