/* hbmsim devices: the table of device profiles; one explained, or several side by side. */
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/size.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "cli/head.h"
#include "hw/device.h"
#include "plots/rates.h"

enum { MOST_SIDE_BY_SIDE = 6 };

struct options {
    struct hb_common common;
    struct hb_words names;
    struct hb_draw_options plot;
};

/* "989.4 T", "3.35 G": a rate with a decimal prefix. */
static const char *print_rate(struct hb_arena *arena, double value)
{
    static const char *const prefix[] = {"", " k", " M", " G", " T", " P", " E"};
    int step = 0;
    while (value >= 999.95 && step < 6) {
        value /= 1000;
        step++;
    }
    return hb_arena_printf(arena, "%.4g%s", value, prefix[step]);
}

static const char *rate_unit(const struct hb_field *f)
{
    if (hb_str_ends(f->key, "bytes_per_s"))
        return "B/s";
    return hb_str_ends(f->key, "hz") ? "Hz" : "/s";
}

static const char *print_curve(struct hb_arena *arena, const struct hb_curve *curve)
{
    struct hb_str s;
    hb_str_init(&s, arena);
    for (int i = 0; i < curve->count; i++)
        hb_str_addf(&s, "%s%.3g at %.6g", i ? ", " : "", curve->y[i], curve->x[i]);
    return s.text;
}

/* A value with its unit, for people. */
static const char *print_value(struct hb_arena *arena, const struct hb_device *dev,
                               const struct hb_field *f)
{
    const void *at = (const char *)dev + f->offset;
    char *text = hb_arena_alloc(arena, HB_SIZE_TEXT, 1);
    switch (f->type) {
    case HB_FIELD_BYTES:
        return hb_size_print(*(const int64_t *)at, text);
    case HB_FIELD_COUNT_:
        return hb_arena_printf(arena, "%lld", (long long)*(const int64_t *)at);
    case HB_FIELD_NS:
        return hb_time_print(*(const int64_t *)at, text);
    case HB_FIELD_RATE:
        return hb_arena_printf(arena, "%s%s", print_rate(arena, *(const double *)at), rate_unit(f));
    case HB_FIELD_PART:
        return hb_arena_printf(arena, "%.3g", *(const double *)at);
    case HB_FIELD_LINK:
        return hb_link_kind_name(dev->link_kind);
    case HB_FIELD_TOPOLOGY:
        return hb_topology_name(dev->link_topology);
    case HB_FIELD_CURVE:
        return print_curve(arena, at);
    }
    return "";
}

static void write_json_curve(struct hb_json *j, const struct hb_curve *curve)
{
    hb_json_array(j);
    for (int i = 0; i < curve->count; i++) {
        hb_json_array(j);
        hb_json_real(j, curve->x[i]);
        hb_json_real(j, curve->y[i]);
        hb_json_array_end(j);
    }
    hb_json_array_end(j);
}

static void write_json_value(struct hb_json *j, const struct hb_device *dev,
                             const struct hb_field *f)
{
    const void *at = (const char *)dev + f->offset;
    switch (f->type) {
    case HB_FIELD_BYTES:
    case HB_FIELD_COUNT_:
    case HB_FIELD_NS:
        hb_json_int(j, *(const int64_t *)at);
        break;
    case HB_FIELD_RATE:
    case HB_FIELD_PART:
        hb_json_real(j, *(const double *)at);
        break;
    case HB_FIELD_LINK:
        hb_json_text(j, hb_link_kind_name(dev->link_kind));
        break;
    case HB_FIELD_TOPOLOGY:
        hb_json_text(j, hb_topology_name(dev->link_topology));
        break;
    case HB_FIELD_CURVE:
        write_json_curve(j, at);
        break;
    }
}

static void write_json_head(struct hb_json *j, const struct hb_device *dev)
{
    hb_json_put_text(j, "name", dev->name);
    hb_json_put_text(j, "title", dev->title);
    hb_json_put_text(j, "vendor", hb_vendor_name(dev->vendor));
    hb_json_put_text(j, "kind", hb_kind_name(dev->kind));
    hb_json_put_int(j, "usable_bytes", hb_device_usable_bytes(dev));
    hb_json_put_text(j, "measured_date", dev->measured_date);
}

/* Each number with its source and, where there is one, its note. */
static void write_json_device(struct hb_json *j, const struct hb_device *dev)
{
    int count;
    const struct hb_field *fields = hb_device_fields(&count);
    hb_json_object(j);
    write_json_head(j, dev);
    hb_json_key(j, "values");
    hb_json_object(j);
    for (int i = 0; i < count; i++) {
        hb_json_key(j, fields[i].key);
        hb_json_object(j);
        hb_json_key(j, "value");
        write_json_value(j, dev, &fields[i]);
        hb_json_put_text(j, "source", dev->facts[i].source);
        hb_json_put_text(j, "note", dev->facts[i].note);
        hb_json_object_end(j);
    }
    hb_json_object_end(j);
    hb_json_object_end(j);
}

static void print_json(struct hb_env *env, const struct hb_device *devs, uint32_t count)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, env->out, true);
    const char *only = count == 1 ? devs[0].name : NULL;
    struct hb_head head = {.name = only, .version = env->version, .device = only};
    hb_json_object(&j);
    hb_head_json(&j, &head);
    hb_json_key(&j, "devices");
    hb_json_array(&j);
    for (uint32_t i = 0; i < count; i++)
        write_json_device(&j, &devs[i]);
    hb_json_array_end(&j);
    hb_json_object_end(&j);
    hb_json_end(&j);
}

static void print_list(struct hb_env *env, const struct hb_device *devs, uint32_t count)
{
    fprintf(env->out, "%-18s %11s %11s %9s %9s %9s %10s  %s\n", "device", "memory", "usable",
            "memory/s", "bf16/s", "fp8/s", "link/s", "joined");
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_device *d = &devs[i];
        char memory[HB_SIZE_TEXT];
        char usable[HB_SIZE_TEXT];
        double link = (double)d->link_count * d->link_bytes_per_s;
        double fp8 = d->peak_flops[HB_RATE_FP8];
        fprintf(env->out, "%-18s %11s %11s %8sB %9s %9s %9sB  %lld %s %s\n", d->name,
                hb_size_print(d->hbm_bytes, memory),
                hb_size_print(hb_device_usable_bytes(d), usable),
                print_rate(env->arena, d->hbm_bytes_per_s),
                print_rate(env->arena, d->peak_flops[HB_RATE_BF16]),
                fp8 > 0 ? print_rate(env->arena, fp8) : "-", print_rate(env->arena, link),
                (long long)d->link_domain, hb_link_kind_name(d->link_kind),
                hb_topology_name(d->link_topology));
    }
    fputs("\nPer device; rates are peaks, links one direction. 'hbmsim devices NAME' gives each "
          "number\nwith its source.\n",
          env->out);
}

static const char *fact_text(struct hb_arena *arena, const struct hb_fact *fact)
{
    if (!fact->source)
        return "default";
    return fact->note[0] ? hb_arena_printf(arena, "%s; %s", fact->source, fact->note)
                         : fact->source;
}

static void explain_device(struct hb_env *env, const struct hb_device *dev)
{
    int count;
    const struct hb_field *fields = hb_device_fields(&count);
    char usable[HB_SIZE_TEXT];
    fprintf(env->out, "%s: %s\n%s, %s; a program may use %s", dev->name, dev->title,
            hb_vendor_name(dev->vendor), hb_kind_name(dev->kind),
            hb_size_print(hb_device_usable_bytes(dev), usable));
    if (dev->measured_date)
        fprintf(env->out, "\nmeasured %s; driver %s; clocks %s; spread %s", dev->measured_date,
                dev->measured_driver, dev->measured_clocks, dev->measured_spread);
    fputc('\n', env->out);
    for (int i = 0; i < count; i++) {
        const struct hb_field *f = &fields[i];
        if (f->type == HB_FIELD_CURVE && !dev->facts[i].source)
            continue;
        fprintf(env->out, "%s%-25s %-14s %s\n%27s%s\n", f->starts ? "\n" : "", f->key,
                print_value(env->arena, dev, f), f->meaning, "",
                fact_text(env->arena, &dev->facts[i]));
    }
}

static bool same_value(struct hb_arena *arena, const struct hb_device *devs, uint32_t count,
                       const struct hb_field *f)
{
    for (uint32_t i = 1; i < count; i++)
        if (!hb_str_same(print_value(arena, &devs[0], f), print_value(arena, &devs[i], f)))
            return false;
    return true;
}

/* Only what differs; curves as their value at one middle size. */
static void compare_devices(struct hb_env *env, const struct hb_device *devs, uint32_t count)
{
    int field_count;
    const struct hb_field *fields = hb_device_fields(&field_count);
    fprintf(env->out, "%-25s", "");
    for (uint32_t d = 0; d < count; d++)
        fprintf(env->out, " %18s", devs[d].name);
    fputc('\n', env->out);
    for (int i = 0; i < field_count; i++) {
        if (same_value(env->arena, devs, count, &fields[i]))
            continue;
        fprintf(env->out, "%-25s", fields[i].key);
        for (uint32_t d = 0; d < count; d++) {
            const void *at = (const char *)&devs[d] + fields[i].offset;
            bool curve = fields[i].type == HB_FIELD_CURVE;
            const char *text = print_value(env->arena, &devs[d], &fields[i]);
            if (curve)
                text = devs[d].facts[i].source
                           ? hb_arena_printf(env->arena, "%.3g at 4096", hb_curve_at(at, 4096))
                           : "-";
            fprintf(env->out, " %18s", text);
        }
        fputc('\n', env->out);
    }
    fputs("\nWhat is equal in all is left out.\n", env->out);
}

/* All that were asked for, or the whole database. */
static struct hb_device *load_devices(struct hb_env *env, const struct hb_words *names,
                                      uint32_t *out_count)
{
    const char *const *items = names->items;
    uint32_t count = names->count;
    if (!count) {
        int listed;
        items = hb_device_list(env->arena, env->data_dir, &listed);
        if (!listed)
            hb_die("cannot read the device profiles in %s/hw/db; HBMSIM_DATA can name another "
                   "place",
                   env->data_dir);
        count = (uint32_t)listed;
    }
    struct hb_device *devs = hb_arena_alloc(env->arena, count, sizeof *devs);
    bool ok = true;
    for (uint32_t i = 0; i < count; i++)
        ok &= hb_device_load(env->arena, env->diag, env->data_dir, items[i], (struct hb_loc){0},
                             &devs[i]);
    *out_count = count;
    return ok ? devs : NULL;
}

static bool check_plot(struct hb_env *env, const struct options *o, const struct hb_device *devs,
                       uint32_t count)
{
    if (!o->plot.path || (count == 1 && hb_rates_any(devs)))
        return true;
    return hb_error(env->diag, (struct hb_loc){0},
                    count == 1 ? "--plot: the profile has no curves" : "--plot: of one device");
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    int status = hb_opt_parse(env, &hb_cmd_devices, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (o.names.count > MOST_SIDE_BY_SIDE && !o.common.json) {
        hb_error(env->diag, (struct hb_loc){0}, "at most %d devices stand side by side",
                 MOST_SIDE_BY_SIDE);
        return HB_EXIT_INPUT;
    }
    uint32_t count;
    if (!hb_draw_check(env, &o.plot))
        return HB_EXIT_INPUT;
    const struct hb_device *devs = load_devices(env, &o.names, &count);
    if (!devs || !check_plot(env, &o, devs, count))
        return HB_EXIT_INPUT;
    if (o.common.json)
        print_json(env, devs, count);
    else if (!o.names.count)
        print_list(env, devs, count);
    else if (count == 1)
        explain_device(env, devs);
    else
        compare_devices(env, devs, count);
    if (o.plot.path)
        hb_draw_rates(env, devs, &o.plot);
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"NAME", 0, HB_OPT_OPERANDS_MAYBE, NULL,
     "a device of the table, or a profile file; none: the whole table", NULL,
     offsetof(struct options, names), 0, 0},
    HB_DRAW_OPTIONS(offsetof(struct options, plot)),
    {0},
};

const struct hb_cmd hb_cmd_devices = {
    .name = "devices",
    .run = run,
    .summary = "the table of device profiles; one explained, several compared",
    .about = "Without a name it lists the table. With one name it says of each number what it\n"
             "means and which document or measurement it comes from. With several names it\n"
             "shows side by side in what they differ. A profile that calibrate wrote is named\n"
             "by its path.",
    .example = "hbmsim devices nvidia-h100 amd-mi300x",
    .options = options,
    .common = HB_COMMON_JSON,
};
