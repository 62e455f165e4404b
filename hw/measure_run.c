/* What the steps of a calibration share: see measure_run.h. */
#include "hw/measure_run.h"

#include <math.h>

#include "base/arena.h"
#include "base/env.h"

/* Products issued before a copy whose time beside them counts, so that they outlast it. */
enum { UNDER = 4 };

void hb_run_remark(struct hb_run *r, const char *text)
{
    hb_str_addf(&r->out->remarks, "%s\n", text);
}

void hb_run_failure(struct hb_run *r, const char *what)
{
    if (r->p->error)
        hb_str_addf(&r->out->remarks, "%s: %s\n", what, r->p->error);
    r->p->error = NULL;
}

void hb_run_fact(struct hb_run *r, const char *key, const char *source, const char *note)
{
    int count;
    const struct hb_field *fields = hb_device_fields(&count);
    for (int i = 0; i < count; i++)
        if (hb_str_same(fields[i].key, key)) {
            r->dev->facts[i] = (struct hb_fact){.source = source, .note = note};
            return;
        }
    HB_BUG("no field %s", key);
}

const char *hb_run_describe(struct hb_run *r, const struct hb_sample *s)
{
    return hb_arena_printf(r->env->arena,
                           "median of %d; 5 to 95 %% are %.4g to %.4g of it; drift %+.2g %%",
                           s->count, s->low / s->median, s->high / s->median, s->drift * 100);
}

bool hb_run_measure(struct hb_run *r, hb_calib_work *work, void *ctx, struct hb_sample *out)
{
    if (!hb_calib_measure(&r->calib, work, ctx, out))
        return false;
    r->worst_spread = fmax(r->worst_spread, out->spread);
    r->samples += out->count;
    r->outliers += out->outliers;
    return true;
}

static bool issue(const struct hb_task *t)
{
    struct hb_probe *p = t->r->p;
    const uintptr_t *b = t->r->buffer;
    switch (t->kind) {
    case HB_TASK_KERNEL:
        return p->ops->kernel(p, t->kernel, b[0], b[1], b[2], t->n);
    case HB_TASK_PRODUCT:
        return p->ops->product(p, &t->product);
    case HB_TASK_COPY:
        return p->ops->copy(p, t->lane, t->way, b[t->way == HB_COPY_DOWN], t->host, t->bytes);
    }
    return false;
}

static enum hb_lane lane_of(const struct hb_task *t)
{
    return t->kind == HB_TASK_COPY ? t->lane : HB_LANE_COMPUTE;
}

bool hb_task_run(void *ctx, int repeats, double *out_ns)
{
    const struct hb_task *t = ctx;
    struct hb_probe *p = t->r->p;
    enum hb_lane lane = lane_of(t);
    if (!p->ops->mark(p, lane, 0))
        return false;
    for (int i = 0; i < repeats; i++)
        if (!issue(t))
            return false;
    return p->ops->mark(p, lane, 1) && p->ops->elapsed(p, lane, lane, out_ns);
}

bool hb_task_run_pair(void *ctx, int repeats, double *out_ns)
{
    struct hb_pair *x = ctx;
    struct hb_probe *p = x->first.r->p;
    enum hb_lane a = lane_of(&x->first);
    enum hb_lane b = lane_of(&x->second);
    double ns[2];
    if (!p->ops->wait(p) || !p->ops->mark(p, a, 0) || !p->ops->mark(p, b, 0))
        return false;
    for (int i = 0; i < repeats; i++)
        if (!issue(&x->first) || !issue(&x->second))
            return false;
    if (!p->ops->mark(p, a, 1) || !p->ops->mark(p, b, 1) || !p->ops->elapsed(p, a, a, &ns[0]) ||
        !p->ops->elapsed(p, a, b, &ns[1]))
        return false;
    *out_ns = fmax(ns[0], ns[1]);
    return true;
}

/* The time of one second task while several of the first are under way. */
static bool under_once(struct hb_pair *x, double *out_ns)
{
    struct hb_probe *p = x->first.r->p;
    enum hb_lane b = lane_of(&x->second);
    if (!p->ops->wait(p))
        return false;
    for (int i = 0; i < UNDER; i++)
        if (!issue(&x->first))
            return false;
    return p->ops->mark(p, b, 0) && issue(&x->second) && p->ops->mark(p, b, 1) &&
           p->ops->elapsed(p, b, b, out_ns);
}

bool hb_task_run_under(void *ctx, int repeats, double *out_ns)
{
    struct hb_pair *x = ctx;
    struct hb_probe *p = x->first.r->p;
    double total = 0;
    for (int i = 0; i < repeats; i++) {
        double ns;
        if (!under_once(x, &ns))
            return false;
        total += ns;
    }
    *out_ns = total;
    return p->ops->wait(p);
}

bool hb_task_run_waited(void *ctx, int repeats, double *out_ns)
{
    const struct hb_task *t = ctx;
    struct hb_probe *p = t->r->p;
    int64_t begin = t->r->env->now_ns();
    for (int i = 0; i < repeats; i++)
        if (!issue(t) || !p->ops->wait(p))
            return false;
    *out_ns = (double)(t->r->env->now_ns() - begin);
    return true;
}

struct hb_task hb_task_kernel(struct hb_run *r, enum hb_kernel kernel, int64_t n)
{
    return (struct hb_task){.r = r, .kind = HB_TASK_KERNEL, .kernel = kernel, .n = n};
}

struct hb_task hb_task_product(struct hb_run *r, struct hb_product x)
{
    x.a = r->buffer[1];
    x.b = r->buffer[2];
    x.c = r->buffer[0];
    return (struct hb_task){.r = r, .kind = HB_TASK_PRODUCT, .product = x};
}

struct hb_task hb_task_copy(struct hb_run *r, enum hb_copy way, void *host, int64_t bytes)
{
    enum hb_lane lane = way == HB_COPY_UP ? HB_LANE_UP : HB_LANE_DOWN;
    return (struct hb_task){
        .r = r, .kind = HB_TASK_COPY, .lane = lane, .way = way, .host = host, .bytes = bytes};
}

double hb_product_flops(const struct hb_product *x)
{
    return 2. * x->m * x->n * x->k * x->batch;
}

bool hb_product_fits(const struct hb_run *r, const struct hb_product *x)
{
    double largest = fmax(fmax((double)x->m * x->k, (double)x->k * x->n), (double)x->m * x->n);
    int bytes = x->rate == HB_RATE_FP8 ? 2 : hb_rate_bytes(x->rate); /* its result is bf16 */
    return largest * x->batch * bytes <= (double)r->room;
}

struct hb_product hb_run_reference(struct hb_run *r)
{
    bool half = r->p->ops->can(r->p, HB_RATE_BF16);
    int side = r->p->info.kind == HB_KIND_CPU ? 256 : 4096;
    struct hb_product x = {half ? HB_RATE_BF16 : HB_RATE_F32, side, side, side, 1, 0, 0, 0};
    return x;
}
