/* What the steps of a calibration share: see measure_run.h. */
#include "hw/measure_run.h"

#include <math.h>
#include <time.h>

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
    hb_device_set_fact(r->dev, key, source, note);
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

double hb_run_without_gap(const struct hb_run *r, double ns)
{
    return fmax(ns - r->gap_ns, ns / 2);
}

/* While the device works; ten times a second are enough for clocks. */
static void look(struct hb_run *r)
{
    struct hb_health now;
    if (r->env->now_ns() < r->next_look_ns || !r->p->ops->health(r->p, &now))
        return;
    r->next_look_ns = r->env->now_ns() + 100000000;
    struct hb_health *w = &r->worst;
    if (now.clock_hz > 0 && (w->clock_hz <= 0 || now.clock_hz < w->clock_hz))
        w->clock_hz = now.clock_hz;
    if (now.memory_hz > 0 && (w->memory_hz <= 0 || now.memory_hz < w->memory_hz))
        w->memory_hz = now.memory_hz;
    w->watts = fmax(w->watts, now.watts);
    w->limit_watts = now.limit_watts;
    w->power_held |= now.power_held;
    w->heat_held |= now.heat_held;
}

bool hb_run_stretch(struct hb_run *r, const struct hb_task *task, struct hb_stretch *out)
{
    struct hb_task t = *task;
    struct timespec rest = {0, r->stretch_ns < 1e9 ? (long)(r->stretch_ns / 5) : 200000000};
    t.watched = true;
    if (!r->p->ops->wait(r->p))
        return false;
    nanosleep(&rest, NULL); /* a burst is one of a device that was idle */
    if (!hb_calib_stretch(&r->calib, hb_task_run, &t, r->stretch_ns, out))
        return false;
    r->worst_spread = fmax(r->worst_spread, out->all.spread);
    r->samples += out->all.count;
    r->outliers += out->all.outliers;
    return true;
}

static bool issue_once(const struct hb_task *t)
{
    struct hb_probe *p = t->r->p;
    const uintptr_t *b = t->r->buffer;
    switch (t->kind) {
    case HB_TASK_KERNEL:
        return p->ops->kernel(p,
                              &(struct hb_kernel_call){
                                  .kernel = t->kernel, .a = b[0], .b = b[1], .c = b[2], .n = t->n});
    case HB_TASK_PRODUCT:
        return p->ops->product(p, &t->product);
    case HB_TASK_COPY:
        return p->ops->copy(p, t->lane, t->way, b[t->way == HB_COPY_DOWN], t->host, t->bytes);
    }
    return false;
}

static bool issue(const struct hb_task *t)
{
    for (int i = 0; i < t->pieces; i++)
        if (!issue_once(t))
            return false;
    return t->pieces || issue_once(t);
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
    if (!p->ops->mark(p, lane, 1))
        return false;
    if (t->watched)
        look(t->r);
    return p->ops->elapsed(p, lane, lane, out_ns);
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
    return 2. * x->m * x->n * x->k;
}

/* The result of narrow types is wider: bf16, and whole numbers of four bytes. */
bool hb_product_fits(const struct hb_run *r, const struct hb_product *x)
{
    double in = fmax((double)x->m * x->k, (double)x->k * x->n) * hb_rate_bytes(x->rate);
    int wide = x->rate == HB_RATE_INT8 ? 4 : hb_rate_bytes(x->rate);
    double out = (double)x->m * x->n * (wide < 2 ? 2 : wide);
    return fmax(in, out) <= (double)r->room;
}

bool hb_run_fill(struct hb_run *r, enum hb_rate rate)
{
    for (int i = 0; i < HB_RUN_BUFFERS; i++) {
        struct hb_kernel_call call = {
            .kernel = HB_KERNEL_FILL, .a = r->buffer[i], .n = r->room / 4, .rate = rate};
        if (!r->p->ops->kernel(r->p, &call))
            return false;
    }
    return r->p->ops->wait(r->p);
}

struct hb_product hb_run_reference(struct hb_run *r)
{
    bool half = r->p->ops->can(r->p, HB_RATE_BF16) != 0;
    int side = r->p->info.kind == HB_KIND_CPU ? 256 : 4096;
    return (struct hb_product){
        .rate = half ? HB_RATE_BF16 : HB_RATE_F32, .m = side, .n = side, .k = side};
}
