/* The programme of calibrate: see measure.h. The essentials come first and quickly, so that whoever
 * stops it early has a profile; the finer steps overwrite them. */
#include "hw/measure.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/progress.h"
#include "base/size.h"
#include "hw/measure_run.h"

static const struct {
    const char *name;
    void (*step)(struct hb_run *r);
} steps[] = {
    {"memory rate", hb_step_memory_essentials},
    {"launches", hb_step_launch},
    {"first products", hb_step_product_essentials},
    {"arithmetic rate", hb_step_vector},
    {"host copies", hb_step_host},
    {"memory rate by size", hb_step_memory},
    {"element-wise kernels", hb_step_elementwise},
    {"matrix products", hb_step_products},
    {"clocks at the end", hb_step_last_reference},
};
enum { STEPS = sizeof steps / sizeof steps[0], ESSENTIALS = 4 };
/* Parts of the time: large products run for so long, and what comes last has so much left. */
enum { STRETCH_PART = 60, LAST_PART = 20 };
static const double longest_stretch_ns = 3e9;

/* A third of what is free for three buffers, within limits. */
static bool take_buffers(struct hb_run *r)
{
    int64_t free_bytes;
    int64_t total;
    bool cpu = r->p->info.kind == HB_KIND_CPU;
    if (!r->p->ops->memory(r->p, &free_bytes, &total))
        return false;
    int64_t most = cpu ? 32 << 20 : INT64_C(1) << 30;
    r->room = free_bytes / 9 < most ? free_bytes / 9 / (1 << 20) * (1 << 20) : most;
    if (r->room < 1 << 20) {
        r->p->error = "hardly any memory is free: is the device in use?";
        return false;
    }
    for (int i = 0; i < HB_RUN_BUFFERS; i++)
        if (!r->p->ops->alloc(r->p, r->room, &r->buffer[i])) {
            if (!r->p->error)
                r->p->error = "memory that is told to be free is not granted";
            return false;
        }
    return hb_run_fill(r, HB_RATE_F32);
}

static void drop_buffers(struct hb_run *r)
{
    for (int i = 0; i < HB_RUN_BUFFERS; i++)
        if (r->buffer[i])
            r->p->ops->release(r->p, r->buffer[i]);
}

/* What the user must know before believing a figure. */
static void say_about(struct hb_run *r)
{
    const struct hb_probe_info *info = &r->p->info;
    char text[HB_SIZE_TEXT];
    if (info->ecc)
        hb_run_remark(r, "error correction (ECC) is on");
    if (info->slice)
        hb_run_remark(r, "this is a slice of a device (MIG): the figures are the slice's");
    if (*info->partition)
        hb_str_addf(&r->out->remarks,
                    "the device is cut into partitions (%s): the figures are one partition's\n",
                    info->partition);
    if (info->shared)
        hb_run_remark(r, "the device shares its memory with the host");
    if (*info->untold)
        hb_str_addf(&r->out->remarks, "power, clocks and partitions are not told: %s\n",
                    info->untold);
    if (r->in_use)
        hb_str_addf(&r->out->remarks,
                    "the device is in use: %s were taken before anything was allocated\n",
                    hb_size_print(r->context_bytes, text));
    if (info->device_count > 1)
        hb_str_addf(&r->out->remarks,
                    "%d devices: the profile is of one, links are measured over all\n",
                    info->device_count);
}

static void note_device(struct hb_run *r)
{
    const struct hb_probe_info *info = &r->p->info;
    r->total_bytes = info->total_bytes;
    r->context_bytes = info->context_bytes;
    r->library_bytes = info->library_bytes;
    r->in_use = info->kind == HB_KIND_GPU && !info->shared &&
                r->context_bytes > r->total_bytes / 40 + (512 << 20);
    say_about(r);
}

/* A name of letters, digits and dashes. */
static const char *slug(struct hb_arena *arena, const char *text)
{
    char *s = hb_arena_printf(arena, "measured-%s", text);
    char *to = s;
    for (const char *c = s; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9');
        bool capital = *c >= 'A' && *c <= 'Z';
        if (letter || capital)
            *to++ = (char)(capital ? *c - 'A' + 'a' : *c);
        else if (to > s && to[-1] != '-')
            *to++ = '-';
    }
    *to = '\0';
    return s;
}

static void begin_profile(struct hb_run *r)
{
    const struct hb_probe_info *info = &r->p->info;
    struct hb_device *dev = r->dev;
    hb_device_init(r->env->arena, dev);
    if (r->wish->base) {
        int count;
        struct hb_fact *facts = dev->facts;
        hb_device_fields(&count);
        memcpy(facts, r->wish->base->facts, (size_t)count * sizeof *facts);
        *dev = *r->wish->base;
        dev->facts = facts;
    }
    dev->name = slug(r->env->arena, info->name);
    dev->title = info->name;
    dev->vendor = info->vendor;
    dev->kind = info->kind;
    dev->hbm_bytes = r->total_bytes;
    hb_run_fact(r, "hbm_bytes", r->source, "as the driver tells it");
    if (!r->wish->base) {
        dev->reserve_bytes = 0;
        hb_run_fact(r, "reserve_bytes", r->source, "not measured: taken as nothing");
    }
    if (info->kind == HB_KIND_GPU) {
        dev->context_bytes = r->context_bytes;
        hb_run_fact(r, "context_bytes", r->source,
                    "taken once the device was opened, by others too if it was in use");
    }
    dev->cores = info->cores;
    hb_run_fact(r, "cores", r->source, "as the driver tells it");
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) {
        dev->host_memory_bytes = (int64_t)pages * page / info->device_count;
        hb_run_fact(r, "host_memory_bytes", r->source, "memory of this host by its devices");
    }
    if (info->clock_hz > 0) {
        dev->clock_hz = info->clock_hz;
        hb_run_fact(r, "clock_hz", r->source, "as the driver tells it");
    }
}

static const char *clocks_under_work(struct hb_run *r)
{
    const struct hb_health *w = &r->worst;
    if (w->clock_hz <= 0)
        return "";
    return hb_arena_printf(
        r->env->arena, "; %.4g MHz, memory %.4g MHz at the lowest under work%s%s",
        w->clock_hz / 1e6, w->memory_hz / 1e6, w->power_held ? ", held back by power" : "",
        w->heat_held ? ", held back by heat" : "");
}

static const char *power_under_work(struct hb_run *r)
{
    const struct hb_health *w = &r->worst;
    if (w->limit_watts <= 0)
        return "not told";
    return hb_arena_printf(r->env->arena, "limit %.4g W; %.4g W at the most under work",
                           w->limit_watts, w->watts);
}

static void end_profile(struct hb_run *r)
{
    struct hb_arena *arena = r->env->arena;
    struct hb_device *dev = r->dev;
    double drift = r->reference_ns[0] > 0 && r->reference_ns[1] > 0
                       ? r->reference_ns[1] / r->reference_ns[0] - 1
                       : 0;
    dev->measured_date = r->wish->date;
    dev->measured_driver = r->p->info.driver;
    dev->measured_clocks =
        hb_arena_printf(arena, "%.4g MHz told%s; one product %+.2f %% in time from start to end",
                        r->p->info.clock_hz / 1e6, clocks_under_work(r), drift * 100);
    dev->measured_power = power_under_work(r);
    dev->measured_spread =
        hb_arena_printf(arena, "%d samples, %d outliers; widest median known to %.2f %%",
                        r->samples, r->outliers, r->worst_spread * 100);
    if (fabs(drift) > 0.03)
        hb_str_addf(&r->out->remarks, "clocks drifted: the same product took %+.1f %% at the end\n",
                    drift * 100);
    r->out->complete = !r->out->lost && dev->hbm_bytes_per_s > 0 &&
                       dev->peak_flops[HB_RATE_BF16] > 0 && dev->vector_flops > 0;
    r->out->interrupted = r->calib.interrupted;
}

/* After some failures, as that of a kernel, a driver refuses everything. */
static bool still_there(struct hb_run *r)
{
    if (r->p->ops->wait(r->p))
        return true;
    hb_run_failure(r, "the device no longer answers");
    r->out->lost = true;
    return false;
}

static void run_steps(struct hb_run *r)
{
    struct hb_progress progress;
    int64_t share_ns = r->calib.share_ns;
    int64_t deadline_ns = r->calib.deadline_ns;
    int64_t last_ns = r->wish->budget_ns / LAST_PART;
    r->calib.deadline_ns -= r->p->info.device_count > 1 ? 4 * last_ns : last_ns;
    r->stretch_ns = fmin(longest_stretch_ns, (double)r->wish->budget_ns / STRETCH_PART);
    hb_progress_start(&progress, r->env, "calibrate", STEPS + 1);
    for (int i = 0; i < STEPS && !r->out->lost; i++) {
        r->calib.essential = i < ESSENTIALS;
        if (hb_calib_stopped(&r->calib))
            break;
        hb_progress_at(&progress, i);
        r->calib.share_ns = i < ESSENTIALS ? share_ns / 4 : share_ns;
        steps[i].step(r);
        still_there(r);
    }
    r->calib.essential = false;
    drop_buffers(r);
    hb_progress_at(&progress, STEPS);
    r->calib.deadline_ns = deadline_ns - last_ns;
    if (!hb_calib_stopped(&r->calib) && !r->out->lost)
        hb_step_links(r);
    r->calib.deadline_ns = deadline_ns;
    if (!r->calib.interrupted && !r->out->lost)
        hb_step_capacity(r);
    hb_progress_end(&progress);
}

void hb_measure_run(struct hb_env *env, struct hb_probe *probe, const struct hb_measure_wish *wish,
                    struct hb_measure_result *out)
{
    struct hb_run r = {.env = env, .p = probe, .out = out, .dev = &out->device, .wish = wish};
    *out = (struct hb_measure_result){.complete = false};
    hb_str_init(&out->remarks, env->arena);
    r.source =
        hb_arena_printf(env->arena, "hbmsim calibrate on %s, %s", probe->info.name, wish->date);
    hb_calib_start(&r.calib, env, wish->budget_ns);
    note_device(&r);
    begin_profile(&r);
    if (take_buffers(&r))
        run_steps(&r);
    else
        hb_run_failure(&r, "memory");
    end_profile(&r);
    hb_calib_end(&r.calib);
}

void hb_measure_list(const struct hb_measure_wish *wish, struct hb_str *to)
{
    hb_str_addf(to, "in %.4g s, large products %.2g s each:\n", (double)wish->budget_ns * 1e-9,
                fmin(longest_stretch_ns, (double)wish->budget_ns / STRETCH_PART) * 1e-9);
    for (int i = 0; i < STEPS; i++)
        hb_str_addf(to, "  %s%s\n", steps[i].name, i < ESSENTIALS ? " (must be)" : "");
    hb_str_add(to, "  with several devices: copies of all at once, collectives (NCCL, RCCL)\n");
    hb_str_addf(to, "  how much memory is granted%s\n",
                wish->no_capacity ? ": not, as wished"
                                  : ", unless it is the host's or the device is in use");
}
