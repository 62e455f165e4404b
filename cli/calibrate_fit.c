/* See calibrate_fit.h. Peaks that a device reported count; what a compiler planned (xla_total) does
 * not, since it leaves out what the runtime takes. */
#include "cli/calibrate_fit.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/size.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/cmd.h"
#include "models/record.h"
#include "models/support.h"
#include "sim/engine/overhead.h"
#include "sim/engine/run.h"
#include "sim/engine/step.h"

enum { MIB = 1 << 20 };

struct fit_run {
    struct hb_env *env;
    const struct hb_fit_ask *ask;
    struct hb_overhead_point *points;
    uint32_t count;
    uint32_t cap;
    uint32_t read;      /* records of the file */
    const char *device; /* of them all; null: none yet */
};

static bool leave_out(struct fit_run *f, const char *id, const char *why)
{
    hb_utf8_say(f->env->err, "%s: does not count: %s\n", id, why);
    return true;
}

static void add_point(struct fit_run *f, const struct hb_record *r, int64_t predicted_bytes)
{
    struct hb_arena *arena = f->env->arena;
    f->points = hb_grow(arena, f->points, f->count, &f->cap, sizeof *f->points);
    f->points[f->count++] = (struct hb_overhead_point){.id = hb_arena_strdup(arena, r->id),
                                                       .predicted_bytes = (double)predicted_bytes,
                                                       .measured_bytes = (double)r->peak_bytes};
}

/* One machine: all records name the same device. */
static bool check_device(struct fit_run *f, const struct hb_node *node, const struct hb_record *r)
{
    const char *name = r->spec.hardware.device;
    if (!f->device)
        f->device = hb_arena_strdup(f->env->arena, name);
    return hb_str_same(f->device, name) ||
           hb_error(f->env->diag, node->loc,
                    "record '%s' is of the device '%s', those before it of '%s'; --fit takes the "
                    "records of one machine",
                    r->id, name, f->device);
}

static bool take_record(struct fit_run *f, struct hb_arena *own, const struct hb_node *node)
{
    struct hb_diag diag;
    struct hb_record r;
    struct hb_program p;
    struct hb_memory m;
    hb_diag_init(&diag, own);
    bool read = hb_record_read(own, &diag, node, f->env->data_dir, &r);
    if (!*r.id)
        return hb_error(f->env->diag, node->loc, "a measured record needs an 'id'");
    if (!read)
        return leave_out(f, r.id, diag.entries[0].text);
    if (!check_device(f, node, &r))
        return false;
    if (r.peak_bytes <= 0)
        return leave_out(f, r.id, "it has no measured.peak_bytes");
    if (hb_str_same(r.kind, "xla_total"))
        return leave_out(f, r.id, "xla_total is the compiler's figure, not the device's");
    if (r.fits == 0)
        return leave_out(f, r.id, "it did not fit");
    if (!hb_spec_supported(&diag, NULL, &r.spec) || !hb_step_run(own, &diag, &r.spec, &p, &m))
        return leave_out(f, r.id, diag.entries[0].text);
    if (m.peak_bytes <= 0)
        return leave_out(f, r.id, "its prediction is nothing");
    add_point(f, &r, m.peak_bytes);
    return true;
}

static bool read_records(struct fit_run *f)
{
    struct hb_jsonl file;
    struct hb_arena *line = hb_arena_new();
    struct hb_arena_mark mark = hb_arena_mark(line);
    bool ok = hb_jsonl_open(f->env->arena, f->env->diag, f->ask->records, &file);
    while (ok && f->count < HB_OVERHEAD_MOST) {
        struct hb_node *node;
        ok = hb_jsonl_next(&file, line, f->env->diag, &node);
        if (!ok || !node)
            break;
        f->read++;
        ok = take_record(f, line, node);
        hb_arena_rewind(line, mark);
    }
    hb_arena_free(line);
    if (!ok)
        return false;
    return f->count >= HB_OVERHEAD_FEWEST ||
           hb_error(f->env->diag, (struct hb_loc){.file = f->ask->records},
                    "%u of %u records count; --fit needs at least %d", f->count, f->read,
                    (int)HB_OVERHEAD_FEWEST);
}

static void say_result(const struct fit_run *f, const struct hb_overhead *o)
{
    FILE *to = f->env->err;
    fprintf(to,
            "%u records, %u outliers: a device takes %.1f MiB (95 %%: %.1f to %.1f) beside the "
            "program",
            f->count, o->outliers, o->reserve_bytes.value / MIB, o->reserve_bytes.low / MIB,
            o->reserve_bytes.high / MIB);
    if (o->slack_known)
        fprintf(to, "\nand %.2f %% (95 %%: %.2f to %.2f) of it more%s", 100 * o->slack.value,
                100 * o->slack.low, 100 * o->slack.high,
                o->used_slack > 0 ? "" : ", which is not told from nothing and left out");
    else
        fputs("; slack cannot be told: it needs five records of different sizes", to);
    fprintf(to,
            "\nerrors of predictions: median %.2f %%, worst %.2f %%; with this, each record from "
            "the others:\nmedian %.2f %%, worst %.2f %%\n",
            o->before.median_pct, o->before.max_pct, o->crossed.median_pct, o->crossed.max_pct);
    for (uint32_t i = 0; i < f->count; i++)
        if (f->points[i].outlier)
            fprintf(to, "outlier: %s: predicted %.1f MiB, measured %.1f MiB\n", f->points[i].id,
                    f->points[i].predicted_bytes / MIB, f->points[i].measured_bytes / MIB);
}

static void write_profile(const struct fit_run *f, const struct hb_overhead *o,
                          struct hb_device *dev)
{
    struct hb_arena *arena = f->env->arena;
    const char *source =
        hb_arena_printf(arena, HB_DEVICE_FIT_SOURCE " of %u records, %s", f->count, f->ask->date);
    double reserve = o->reserve_bytes.value > 0 ? o->reserve_bytes.value : 0;
    const char *note = hb_arena_printf(
        arena,
        "%lld before; and %.1f MiB (95 %%: %.1f to %.1f) that the runtime takes, Theil-Sen; error "
        "of a record from the others: median %.2f %%, worst %.2f %%",
        (long long)dev->reserve_bytes, reserve / MIB, o->reserve_bytes.low / MIB,
        o->reserve_bytes.high / MIB, o->crossed.median_pct, o->crossed.max_pct);
    dev->reserve_bytes = hb_add_sat(dev->reserve_bytes, llround(reserve));
    hb_device_set_fact(dev, "reserve_bytes", source, note);
    if (!o->slack_known)
        return;
    dev->allocator_slack = o->used_slack < 1 ? o->used_slack : 1;
    note = hb_arena_printf(arena, "%.4f (95 %%: %.4f to %.4f)%s", o->slack.value, o->slack.low,
                           o->slack.high, o->used_slack > 0 ? "" : ": not told from none");
    hb_device_set_fact(dev, "allocator_slack", source, note);
}

static bool fit(const struct fit_run *f, struct hb_device *dev)
{
    struct hb_overhead o;
    hb_overhead_fit(f->env->arena, f->points, f->count, &o);
    say_result(f, &o);
    if (o.reserve_bytes.value >= (double)hb_device_usable_bytes(dev))
        return hb_error(f->env->diag, (struct hb_loc){.file = f->ask->records},
                        "the records take more beside their programs than '%s' has; are they of "
                        "this device?",
                        dev->name);
    write_profile(f, &o, dev);
    return true;
}

bool hb_calibrate_fit(struct hb_env *env, const struct hb_fit_ask *ask, struct hb_device *out_dev)
{
    struct fit_run f = {.env = env, .ask = ask};
    return read_records(&f) &&
           hb_device_load(env->arena, env->diag, env->data_dir, ask->base ? ask->base : f.device,
                          (struct hb_loc){0}, out_dev) &&
           fit(&f, out_dev);
}

bool hb_calibrate_fit_points(struct hb_env *env, struct hb_overhead_point *points, uint32_t count,
                             const char *date, struct hb_device *dev)
{
    struct hb_fit_ask ask = {.records = "the steps", .date = date};
    struct fit_run f = {.env = env, .ask = &ask, .points = points, .count = count};
    return fit(&f, dev);
}
