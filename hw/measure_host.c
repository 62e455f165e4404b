/* Steps about copies between host and device. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "hw/measure_run.h"

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

static void drop_pinned(struct hb_run *r, struct copies *c)
{
    if (c->up)
        r->p->ops->host_release(r->p, c->up, true);
    if (c->down)
        r->p->ops->host_release(r->p, c->down, true);
    c->up = c->down = NULL;
}

static bool take_pinned(struct hb_run *r, struct copies *c)
{
    struct hb_probe *p = r->p;
    if (!p->ops->host_alloc(p, c->bytes, true, &c->up) ||
        !p->ops->host_alloc(p, c->bytes, true, &c->down)) {
        drop_pinned(r, c);
        return false;
    }
    memset(c->up, 1, (size_t)c->bytes);
    memset(c->down, 2, (size_t)c->bytes);
    return true;
}

/* Both ways with pinned memory of one node; 0: it cannot be had there. */
static double measure_node(struct hb_run *r, struct copies c, int node)
{
    const struct hb_probe_ops *ops = r->p->ops;
    double sum = 0;
    if (!ops->host_prefer(r->p, node) || !take_pinned(r, &c))
        return 0;
    int got = ops->host_node(r->p, c.up);
    if ((got < 0 || got == node) &&
        measure_copy(r, hb_task_copy(r, HB_COPY_UP, c.up, c.bytes), &c.up_rate, NULL) &&
        measure_copy(r, hb_task_copy(r, HB_COPY_DOWN, c.down, c.bytes), &c.down_rate, NULL)) {
        sum = c.up_rate + c.down_rate;
        hb_str_addf(&r->out->remarks,
                    "pinned memory of the host's node %d%s: %.4g bytes a second up, %.4g down\n",
                    node, node == r->p->info.host_node_beside ? " (beside the device)" : "",
                    c.up_rate, c.down_rate);
    }
    drop_pinned(r, &c);
    return sum;
}

/* The profile has the best node's rates, as a process has that is bound to it; memory is taken
 * there from here on. */
static void choose_node(struct hb_run *r, struct copies c)
{
    const struct hb_probe_info *info = &r->p->info;
    double best = 0;
    int node = -1;
    for (int i = 0; i < info->host_node_count && !hb_calib_stopped(&r->calib); i++) {
        double sum = measure_node(r, c, info->host_nodes[i]);
        if (sum > best) {
            best = sum;
            node = info->host_nodes[i];
        }
    }
    hb_run_failure(r, "copies by node");
    r->p->ops->host_prefer(r->p, node);
    if (node >= 0)
        hb_str_addf(&r->out->remarks,
                    "host copies are those with node %d: bind the device's process to it\n", node);
    else if (!hb_calib_stopped(&r->calib))
        hb_run_remark(r, "pinned memory cannot be placed on a node of this host: copies are as it "
                         "comes");
}

void hb_step_host(struct hb_run *r)
{
    struct copies c = {.bytes = r->room < (64 << 20) ? r->room : 64 << 20};
    bool nodes = r->p->info.host_node_count > 1;
    if (nodes)
        choose_node(r, c);
    if (take_pinned(r, &c)) {
        measure_pinned(r, &c);
        if (r->p->info.kind == HB_KIND_GPU && c.up_rate > 0 && c.down_rate > 0) {
            measure_duplex(r, &c);
            measure_overlap(r, &c);
        }
    }
    hb_run_failure(r, "host copies");
    drop_pinned(r, &c);
    if (nodes)
        r->p->ops->host_prefer(r->p, -1);
    measure_pageable(r, c.bytes < (16 << 20) ? c.bytes : 16 << 20);
    hb_run_failure(r, "pageable copies");
}
