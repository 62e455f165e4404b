/* hbmsim calibrate: measures the device of this machine and writes its profile. */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "cli/calibrate_attention.h"
#include "cli/calibrate_fit.h"
#include "cli/calibrate_step.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "hw/calib.h"
#include "hw/libs.h"
#include "hw/measure.h"

enum { QUICK_SECONDS = 20, USUAL_SECONDS = 120, STEP_SECONDS = 1200, MOST_SECONDS = 3600 };
/* Of the time, for a framework's attention. */
enum { ATTENTION_PART = 4 };
static const int64_t second_ns = 1000000000;

static const char backend_words[] = "cuda|hip|cpu";
static const char *const backends[] = {"cuda", "hip", "cpu"};

struct options {
    struct hb_common common;
    int backend; /* index in backends; -1: whichever is there */
    int64_t device;
    bool quick;
    int64_t seconds; /* 0: by quick */
    const char *base;
    struct hb_words libs;
    const char *python;
    bool no_capacity;
    bool with_torch;
    bool with_jax;
    bool step;
    bool dry_run;
    const char *keep;
    const char *date;
    const char *fit;
    struct hb_draw_options plot;
};

static const char *today(struct hb_arena *arena)
{
    struct timespec now;
    struct tm day;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0 || !gmtime_r(&now.tv_sec, &day))
        hb_die("this machine does not tell the date; give it with --date");
    return hb_arena_printf(arena, "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1,
                           day.tm_mday);
}

static int64_t seconds_of(const struct options *o)
{
    int64_t usual = o->step ? STEP_SECONDS : USUAL_SECONDS;
    return o->seconds ? o->seconds : o->quick && !o->step ? QUICK_SECONDS : usual;
}

static struct hb_measure_wish make_wish(struct hb_env *env, const struct options *o)
{
    int64_t ns = seconds_of(o) * second_ns;
    return (struct hb_measure_wish){
        .budget_ns = o->with_torch || o->with_jax ? ns - ns / ATTENTION_PART : ns,
        .date = o->date ? o->date : today(env->arena),
        .no_capacity = o->no_capacity,
    };
}

/* JSON is the profile itself: as YAML it reads the same. */
static void write_result(struct hb_env *env, const struct options *o, const struct hb_device *dev,
                         struct hb_out *out)
{
    struct hb_str text;
    struct hb_str json;
    hb_str_init(&text, env->arena);
    hb_str_init(&json, env->arena);
    hb_device_write(dev, &text);
    if (o->common.json) {
        struct hb_node *root;
        if (!hb_yaml_parse(env->arena, env->diag, "profile", text.text, text.len, &root))
            HB_BUG("a profile that was written does not read");
        struct hb_json j = hb_json_begin(&json, hb_out_file(out), true);
        hb_json_node(&j, root);
        hb_json_end(&j);
    } else {
        fputs(text.text, hb_out_file(out));
    }
    hb_out_close(out);
}

/* No device is opened: what was measured is in the records. */
static int fit(struct hb_env *env, const struct options *o)
{
    struct hb_device dev;
    struct hb_fit_ask ask = {o->fit, o->base, o->date ? o->date : today(env->arena)};
    if (!hb_calibrate_fit(env, &ask, &dev))
        return HB_EXIT_INPUT;
    write_result(env, o, &dev, hb_out_open(env, o->common.output));
    return HB_EXIT_YES;
}

/* A framework's own kernels, once the device is given back; a signal ends the command after it. */
static void add_attention(struct hb_env *env, const struct options *o, struct hb_device *dev,
                          int *out_signal)
{
    struct hb_attention_ask ask = {
        .python = o->python,
        .framework = o->with_torch ? "torch" : "jax",
        .source = hb_arena_printf(env->arena, "hbmsim calibrate by %s, %s",
                                  o->with_torch ? "torch" : "jax", dev->measured_date),
        .most_ns = seconds_of(o) * second_ns / ATTENTION_PART,
    };
    *out_signal = 0;
    if (o->with_torch || o->with_jax)
        hb_calibrate_attention(env, &ask, dev, out_signal);
    if (dev->kind == HB_KIND_GPU && !dev->attention_forward_curve.count)
        fputs("the profile has no attention, which is then taken at the peak of products: "
              "--with-torch or --with-jax measures it, --base gives it\n",
              env->err);
}

static int finish(struct hb_env *env, const struct options *o, struct hb_out *out,
                  struct hb_measure_result *result)
{
    int signal = 0;
    fputs(result->remarks.text, env->err);
    if (!result->complete) {
        hb_out_drop(out);
        fprintf(env->err, "hbmsim: %s: nothing is written\n",
                result->lost          ? "the device failed"
                : result->interrupted ? "stopped before the essentials were measured"
                                      : "failed before the essentials were measured");
        return HB_EXIT_MACHINE;
    }
    if (!result->interrupted)
        add_attention(env, o, &result->device, &signal);
    if (result->interrupted || signal)
        fputs("stopped early: what was measured until then is written\n", env->err);
    write_result(env, o, &result->device, out);
    if (o->plot.path)
        hb_draw_rates(env, &result->device, &o->plot);
    return HB_EXIT_YES;
}

/* The processor needs none. */
static void find_libraries(struct hb_env *env, const struct options *o, struct hb_libs *out)
{
    bool cpu = o->backend >= 0 && hb_str_same(backends[o->backend], "cpu");
    struct hb_libs_ask ask = {.given = o->libs.items,
                              .given_count = o->libs.count,
                              .python = cpu ? NULL : o->python,
                              .root = "",
                              .now_ns = env->now_ns};
    hb_libs_find(env->arena, &ask, out);
    if (out->signal)
        raise(out->signal);
}

static int calibrate(struct hb_env *env, const struct options *o, struct hb_measure_wish *wish)
{
    struct hb_libs libs;
    struct hb_probe_wish choice = {
        .backend = o->backend >= 0 ? backends[o->backend] : NULL,
        .device = (int)o->device,
        .libs = &libs,
    };
    const char *reason = "";
    find_libraries(env, o, &libs);
    struct hb_out *out = hb_out_open(env, o->common.output);
    hb_calib_hold();
    struct hb_probe *probe = hb_probe_open(env, &choice, &reason);
    if (!probe) {
        hb_out_drop(out);
        hb_utf8_say(env->err, "hbmsim: cannot calibrate: %s\n", reason);
        return HB_EXIT_MACHINE;
    }
    struct hb_measure_result *result = hb_arena_alloc(env->arena, 1, sizeof *result);
    hb_measure_run(env, probe, wish, result);
    hb_probe_close(probe);
    return finish(env, o, out, result);
}

/* Nothing is opened, nothing is written but what would be. */
static int dry_run(struct hb_env *env, const struct options *o, const struct hb_measure_wish *wish)
{
    struct hb_str s;
    struct hb_libs libs;
    struct hb_probe_wish choice = {.backend = o->backend >= 0 ? backends[o->backend] : NULL,
                                   .libs = &libs};
    hb_str_init(&s, env->arena);
    find_libraries(env, o, &libs);
    hb_measure_list(wish, &s);
    hb_probe_list(env, &choice, &s);
    hb_utf8_show(env->out, s.text, s.len, false);
    return HB_EXIT_YES;
}

static int step(struct hb_env *env, const struct options *o)
{
    struct hb_device dev;
    int signal = 0;
    struct hb_step_ask ask = {.base = o->base,
                              .python = o->python,
                              .keep = o->keep,
                              .date = o->date ? o->date : today(env->arena),
                              .most_ns = seconds_of(o) * second_ns,
                              .torch = o->with_torch,
                              .small = o->quick};
    if (!o->base)
        return hb_error(env->diag, (struct hb_loc){0},
                        "--step goes with --base: the profile that is compared"),
               HB_EXIT_INPUT;
    switch (hb_calibrate_step(env, &ask, &dev, &signal)) {
    case HB_STEP_FITTED:
        write_result(env, o, &dev, hb_out_open(env, o->common.output));
        return HB_EXIT_YES;
    case HB_STEP_SHOWN:
        return HB_EXIT_YES;
    case HB_STEP_BAD:
        return HB_EXIT_INPUT;
    case HB_STEP_STOPPED:
        raise(signal);
        return HB_EXIT_MACHINE;
    case HB_STEP_NONE:
        break;
    }
    fputs("hbmsim: no step ran: nothing is written\n", env->err);
    return HB_EXIT_MACHINE;
}

static bool check_options(struct hb_env *env, const struct options *o)
{
    const struct hb_loc nowhere = {0};
    if (o->keep && !o->step)
        return hb_error(env->diag, nowhere, "--keep goes with --step");
    if (o->with_torch && o->with_jax)
        return hb_error(env->diag, nowhere, "--with-torch or --with-jax, not both");
    return hb_draw_check(env, &o->plot);
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {.backend = -1, .python = "python3"};
    struct hb_device base;
    int status = hb_opt_parse(env, &hb_cmd_calibrate, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!check_options(env, &o))
        return HB_EXIT_INPUT;
    if (o.fit)
        return fit(env, &o);
    if (o.step)
        return step(env, &o);
    struct hb_measure_wish wish = make_wish(env, &o);
    if (o.base) {
        if (!hb_device_load(env->arena, env->diag, env->data_dir, o.base, (struct hb_loc){0},
                            &base))
            return HB_EXIT_INPUT;
        wish.base = &base;
    }
    return o.dry_run ? dry_run(env, &o, &wish) : calibrate(env, &o, &wish);
}

static const struct hb_opt options[] = {
    {"backend", 0, HB_OPT_CHOICE, backend_words,
     "which driver to use; without it CUDA, then HIP is tried", NULL,
     offsetof(struct options, backend), 0, 0},
    {"device", 0, HB_OPT_INT, "N", "which of the devices that the driver shows, from 0", "0",
     offsetof(struct options, device), 0, 1023},
    {"quick", 0, HB_OPT_FLAG, NULL, "20 seconds instead of 2 minutes", NULL,
     offsetof(struct options, quick), 0, 0},
    {"seconds", 0, HB_OPT_INT, "N", "time to spend", NULL, offsetof(struct options, seconds), 1,
     MOST_SECONDS},
    HB_DRAW_OPTIONS(offsetof(struct options, plot)),
    {"base", 0, HB_OPT_STRING, "NAME",
     "profile that gives peaks, links, network: what cannot be measured", NULL,
     offsetof(struct options, base), 0, 0},
    {"libs", 0, HB_OPT_WORDS, "DIR",
     "folder where the device's libraries are, instead of looking for them; several times", NULL,
     offsetof(struct options, libs), 0, 0},
    {"python", 0, HB_OPT_STRING, "FILE",
     "the Python whose packages have such libraries (nvidia/*/lib, torch/lib)", "python3",
     offsetof(struct options, python), 0, 0},
    {"no-capacity", 0, HB_OPT_FLAG, NULL,
     "does not take memory until it is refused, to learn how much a program gets", NULL,
     offsetof(struct options, no_capacity), 0, 0},
    {"with-torch", 0, HB_OPT_FLAG, NULL,
     "attention too: torch's fused kernel, by the Python's own torch; with --step its steps", NULL,
     offsetof(struct options, with_torch), 0, 0},
    {"with-jax", 0, HB_OPT_FLAG, NULL, "the same by its JAX (cuDNN)", NULL,
     offsetof(struct options, with_jax), 0, 0},
    {"dry-run", 0, HB_OPT_FLAG, NULL,
     "lists what would be measured, with which libraries; opens no device", NULL,
     offsetof(struct options, dry_run), 0, 0},
    {"step", 0, HB_OPT_FLAG, NULL,
     "runs six real train steps with the Python's JAX (--with-torch: PyTorch) and compares them "
     "with --base",
     NULL, offsetof(struct options, step), 0, 0},
    {"keep", 0, HB_OPT_OUTPUT, "RUNS.jsonl", "with --step: append a record of each step", NULL,
     offsetof(struct options, keep), 0, 0},
    {"date", 0, HB_OPT_STRING, "DATE", "date to write into the profile, instead of today's", NULL,
     offsetof(struct options, date), 0, 0},
    {"fit", 0, HB_OPT_INPUT, "RECORDS.jsonl",
     "measured peaks of this machine: writes what they say of its runtime into the base", NULL,
     offsetof(struct options, fit), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_calibrate = {
    .name = "calibrate",
    .run = run,
    .summary = "measures the device of this machine and writes its profile",
    .about =
        "Measures memory, matrix products, kernels and host copies through CUDA or HIP, which\n"
        "are looked for at run time; --backend cpu measures this machine's processor, on one\n"
        "thread. Allocations are plain and all given back; nothing is reset or reconfigured.\n"
        "Ctrl-C ends it early and keeps what was measured. The profile goes to -o FILE and is\n"
        "named in a model by `hardware: {device: FILE}`. Exit status 3: there is no such\n"
        "device or library, or it failed.\n"
        "--step runs train steps and says how far a profile (--base) is off; where the device\n"
        "told their peaks, its reserve and slack are fitted to them. --quick: small models.\n"
        "--fit takes measured records (hbmsim record) of one machine instead and finds what no\n"
        "kernel shows: what the runtime takes beside a program, and the allocator's slack.",
    .example = "hbmsim calibrate --backend cpu --seconds 2",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT,
};
