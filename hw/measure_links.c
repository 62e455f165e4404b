/* Devices of one host together: how fast they pass data to each other, and what is left of a
 * device's way to the host while all use theirs. Figures go into the model of links (hw/link.h),
 * whose kind, count and latencies a base gives. */
#include <math.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "hw/link.h"
#include "hw/measure_run.h"

static const int64_t most_bytes = 256 << 20;
static const int64_t least_bytes = 1 << 20;

struct together_task {
    struct hb_run *r;
    struct hb_together what;
};

static bool run_task(void *ctx, int repeats, double *out_ns)
{
    struct together_task *t = ctx;
    return t->r->p->ops->together(t->r->p, &t->what, repeats, out_ns);
}

static bool measure(struct hb_run *r, enum hb_together_kind what, int64_t bytes, double *out_ns)
{
    struct together_task t = {.r = r};
    struct hb_sample s;
    t.what.what = what;
    t.what.bytes = bytes;
    if (!hb_run_measure(r, run_task, &t, &s))
        return false;
    *out_ns = s.median;
    return true;
}

/* The part of the link rate that explains a time: the model's time is latency + work / part, which
 * two parts tell. 0: the time is shorter than the latencies. */
static double part_of(const struct hb_device *dev, enum hb_collective what, double bytes,
                      int devices, double ns)
{
    struct hb_device whole = *dev;
    struct hb_link_group group = {devices, 1, devices};
    whole.link_curve = (struct hb_curve){.count = 1, .x = {1}, .y = {1}};
    double one = (double)hb_link_collective_ns(&whole, what, bytes, group);
    whole.link_curve.y[0] = 0.5;
    double work = (double)hb_link_collective_ns(&whole, what, bytes, group) - one;
    return ns > one - work ? work / (ns - (one - work)) : 0;
}

static void measure_curve(struct hb_run *r, int devices)
{
    struct hb_curve curve = {0};
    for (int64_t bytes = least_bytes; bytes <= most_bytes && curve.count < HB_CURVE_POINTS;
         bytes *= 4) {
        double ns;
        if (!measure(r, HB_TOGETHER_ALL_GATHER, bytes, &ns))
            break;
        double part = part_of(r->dev, HB_COLL_ALL_GATHER, (double)bytes, devices, ns);
        if (!(part > 0))
            continue;
        curve.x[curve.count] = (double)bytes;
        curve.y[curve.count++] = fmax(1e-6, fmin(2, part));
    }
    hb_run_failure(r, "all-gathers");
    if (!curve.count)
        return;
    r->dev->link_curve = curve;
    hb_run_fact(r, "link_curve", r->source,
                hb_arena_printf(r->env->arena,
                                "all-gathers over %d devices; latencies of the base taken off",
                                devices));
}

/* The others are held against what the curve of all-gathers says of them. */
static void say_others(struct hb_run *r, int devices)
{
    static const struct {
        enum hb_together_kind what;
        enum hb_collective model;
        const char *name;
    } others[] = {
        {HB_TOGETHER_REDUCE_SCATTER, HB_COLL_REDUCE_SCATTER, "reduce-scatter"},
        {HB_TOGETHER_ALL_TO_ALL, HB_COLL_ALL_TO_ALL, "all-to-all"},
        {HB_TOGETHER_PERMUTE, HB_COLL_PERMUTE, "permute"},
    };
    struct hb_link_group group = {devices, 1, devices};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        for (int64_t bytes = most_bytes / 64; bytes <= most_bytes; bytes *= 64) {
            double ns;
            char text[HB_SIZE_TEXT];
            if (!measure(r, others[i].what, bytes, &ns))
                break;
            hb_str_addf(
                &r->out->remarks, "%s of %s over %d devices: %.4g us, predicted %.4g\n",
                others[i].name, hb_size_print(bytes, text), devices, ns / 1e3,
                (double)hb_link_collective_ns(r->dev, others[i].model, (double)bytes, group) / 1e3);
        }
    hb_run_failure(r, "collectives");
}

static void measure_copies(struct hb_run *r, int devices)
{
    double ns;
    if (measure(r, HB_TOGETHER_PEER, most_bytes, &ns))
        hb_str_addf(&r->out->remarks, "from one device to the next: %.4g bytes a second\n",
                    (double)most_bytes / ns * 1e9);
    double up, down;
    if (measure(r, HB_TOGETHER_UP, most_bytes, &up) &&
        measure(r, HB_TOGETHER_DOWN, most_bytes, &down) && r->dev->host_up_bytes_per_s > 0 &&
        r->dev->host_down_bytes_per_s > 0) {
        double part_up = (double)most_bytes / up * 1e9 / r->dev->host_up_bytes_per_s;
        double part_down = (double)most_bytes / down * 1e9 / r->dev->host_down_bytes_per_s;
        r->dev->host_shared = fmax(0.01, fmin(1, fmin(part_up, part_down)));
        hb_run_fact(r, "host_shared", r->source,
                    hb_arena_printf(r->env->arena, "%d devices at once: %.3g up, %.3g down",
                                    devices, part_up, part_down));
    }
    hb_run_failure(r, "copies of all devices");
}

/* Whether the base's links are those of this host. */
static bool has_model(const struct hb_run *r, int devices)
{
    return r->wish->base && r->dev->link_domain >= devices && r->dev->link_count > 0 &&
           r->dev->link_bytes_per_s > 0;
}

void hb_step_links(struct hb_run *r)
{
    int devices = 0;
    if (!r->p->ops->together_open || r->p->info.device_count < 2 || r->in_use)
        return;
    bool open = r->p->ops->together_open(r->p, most_bytes, &devices);
    hb_run_failure(r, "devices together");
    if (open && devices > 1) {
        measure_copies(r, devices);
        if (has_model(r, devices)) {
            measure_curve(r, devices);
            say_others(r, devices);
        } else {
            hb_run_remark(r, "links go into no profile without a --base that joins so many");
        }
    }
    r->p->ops->together_close(r->p);
}
