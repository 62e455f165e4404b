/* See calibrate_step.h. One process a step, so that each has a peak of its own. */
#include "cli/calibrate_step.h"

#include <math.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/size.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/calibrate_fit.h"
#include "cli/keep.h"
#include "cli/script.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/overhead.h"
#include "sim/engine/result.h"

/* Models of one kind that differ in depth, batch, length, what is kept and the attention. */
static const struct rung {
    const char *policy;
    int layers, batch, longer;
    bool flash;
} rungs[] = {
    {"none", 2, 2, 1, false}, {"none", 4, 2, 1, true},  {"none", 4, 4, 1, true},
    {"full", 4, 4, 2, true},  {"full", 8, 2, 1, false}, {"full", 8, 4, 1, true},
};
enum { RUNGS = sizeof rungs / sizeof rungs[0], HEAD = 128 };
/* Less is not worth starting a process for. */
static const int64_t least_ns = 1000000000;

static const struct size {
    int64_t least_bytes; /* of the device */
    int width, vocab, seq;
} sizes[] = {
    {INT64_C(30) << 30, 2048, 32000, 2048},
    {INT64_C(8) << 30, 1024, 32000, 2048},
    {0, 256, 2048, 256},
};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

struct step_run {
    struct hb_env *env;
    const struct hb_step_ask *ask;
    struct hb_device dev;
    const struct size *size;
    int64_t end_ns;
    struct hb_overhead_point points[RUNGS]; /* peaks that the device told */
    uint32_t count;
    int ran;
    double worst_memory, worst_time;
    const char *platform;
    int signal;
};

/* What one step was predicted to be, and was. */
struct step {
    struct hb_spec spec;
    struct hb_result predicted;
    const char *id;
    int64_t peak_bytes;
    bool by_device;
    const char *told_by; /* where not the device told the peak */
    double seconds;
};

/* JAX's step has whole f32 parameters and both kinds of attention; PyTorch's on one device bf16
 * ones, since it has no autocast, and its own kernel. */
static const char *make_config(const struct step_run *r, const struct rung *x)
{
    bool tpu = r->dev.kind == HB_KIND_TPU, torch = r->ask->torch;
    bool flash = x->flash && r->dev.vendor != HB_VENDOR_AMD && r->dev.kind != HB_KIND_CPU;
    struct hb_str device;
    hb_str_init(&device, r->env->arena);
    hb_json_quote(&device, r->ask->base);
    return hb_arena_printf(
        r->env->arena,
        "{\"model\": {\"name\": \"step\", \"d_model\": %d, \"vocab\": %d, \"blocks\": [{\"name\": "
        "\"b\", \"repeat\": %d, \"attention\": {\"heads\": %d, \"head_dim\": %d, \"kernel\": "
        "\"%s\"}, \"mlp\": {\"kind\": \"swiglu\", \"d_ff\": %d}}]}, \"batch\": {\"global\": %d, "
        "\"seq\": %d}, \"optimizer\": {\"name\": \"adamw\"%s}, \"remat\": {\"policy\": \"%s\"}, "
        "\"hardware\": {\"device\": %s, \"count\": 1}, \"compiler\": \"%s\"%s}",
        r->size->width, r->size->vocab, x->layers, r->size->width / HEAD, HEAD,
        flash || torch ? "flash" : "naive", r->size->width * 7 / 2, x->batch,
        r->size->seq * x->longer, torch ? ", \"moments\": [\"bf16\", \"bf16\"]" : "", x->policy,
        device.text,
        torch ? "torch"
        : tpu ? "xla-tpu"
              : "xla-gpu",
        torch ? ", \"precision\": {\"params\": \"bf16\"}" : "");
}

static bool predict(struct step_run *r, const struct rung *x, struct step *out)
{
    struct hb_env *env = r->env;
    struct hb_node *root;
    struct hb_loc start = {"the step", 1, 1};
    struct hb_str text;
    hb_str_init(&text, env->arena);
    hb_str_add(&text, make_config(r, x));
    if (!hb_json_parse(env->arena, env->diag, start, text.text, text.len, &root) ||
        !hb_schema_from_node(env->arena, env->diag, root, env->data_dir, &out->spec) ||
        !hb_spec_supported(env->diag, root, &out->spec))
        return false;
    out->spec.hardware.memory_bytes = hb_budget_found_bytes(&out->spec, &r->dev);
    out->id = hb_arena_printf(env->arena, "step-%dx%d-%d-%d-%s-%s", r->size->width, x->layers,
                              x->batch, r->size->seq * x->longer, x->policy, r->ask->date);
    return hb_result_brief(env->arena, env->diag, &out->spec, &r->dev, &out->predicted);
}

static void say_row(struct step_run *r, const struct rung *x, const char *rest)
{
    hb_utf8_say(r->env->err, "%d layers, batch %d x %d, remat %s: %s\n", x->layers, x->batch,
                r->size->seq * x->longer, x->policy, rest);
}

static bool read_answer(struct step_run *r, const struct hb_script *s, struct step *step,
                        const char **out_why)
{
    const char *error = hb_script_error(r->env, s);
    *out_why = error ? error : "the answer has no peak or no time";
    const char *by = hb_script_word(r->env, s->answer, "peak_by");
    step->by_device = hb_str_same(by, "device");
    step->told_by = hb_str_same(by, "requests") ? " (by its tensors)" : " (by the compiler)";
    return !error && hb_node_int(hb_node_find(s->answer, "peak_bytes"), &step->peak_bytes) &&
           step->peak_bytes > 0 && hb_size_ok(step->peak_bytes) &&
           hb_node_real(hb_node_find(s->answer, "step_seconds"), &step->seconds) &&
           step->seconds > 0 && isfinite(step->seconds);
}

static bool ran_elsewhere(const struct step_run *r)
{
    return r->dev.kind != HB_KIND_CPU && hb_str_same(r->platform, "cpu");
}

/* False: it could not be run, which is said. */
static bool run_script(struct step_run *r, const struct rung *x, struct step *step,
                       struct hb_script *s)
{
    struct hb_env *env = r->env;
    struct hb_str config;
    const char *argv[] = {r->ask->python, "-B",
                          hb_arena_printf(env->arena, "%s/examples/verify/%s", env->data_dir,
                                          r->ask->torch ? "run_torch.py" : "run_step.py"),
                          NULL};
    const char *why = "";
    hb_str_init(&config, env->arena);
    hb_schema_emit_json(&config, &step->spec, true);
    struct hb_script_ask ask = {.argv = argv,
                                .input = config.text,
                                .most_ns = r->end_ns - env->now_ns(),
                                .name = "the step",
                                .longer = "--seconds",
                                .install = r->ask->torch ? "PyTorch for this device"
                                                         : "JAX for this device"};
    if (hb_script_run(env, &ask, s) && read_answer(r, s, step, &why))
        return true;
    if (s->end == HB_SCRIPT_INTERRUPTED)
        r->signal = s->signal;
    else
        say_row(r, x, s->end == HB_SCRIPT_FAILED ? s->reason : why);
    return false;
}

static void compare(struct step_run *r, const struct rung *x, const struct step *step)
{
    char a[HB_SIZE_TEXT], b[HB_SIZE_TEXT];
    double predicted = (double)step->predicted.memory.peak_bytes;
    double memory = 100 * (predicted / (double)step->peak_bytes - 1);
    double time = 100 * (step->predicted.step_seconds / step->seconds - 1);
    say_row(r, x,
            hb_arena_printf(r->env->arena,
                            "predicted %s and %.4g ms, measured %s%s and %.4g ms: %+.1f %% and "
                            "%+.1f %%",
                            hb_size_print(step->predicted.memory.peak_bytes, a),
                            step->predicted.step_seconds * 1e3, hb_size_print(step->peak_bytes, b),
                            step->by_device ? "" : step->told_by, step->seconds * 1e3, memory,
                            time));
    r->worst_memory = fmax(r->worst_memory, fabs(memory));
    r->worst_time = fmax(r->worst_time, fabs(time));
    r->ran++;
    if (step->by_device && !ran_elsewhere(r) && !r->ask->torch)
        r->points[r->count++] =
            (struct hb_overhead_point){.id = step->id,
                                       .predicted_bytes = predicted,
                                       .measured_bytes = (double)step->peak_bytes};
}

static bool keep(struct step_run *r, const struct step *step, const struct hb_script *s)
{
    struct hb_kept kept = {
        .id = step->id,
        .source = "calibrate --step",
        .kind = r->ask->torch     ? "max_allocated"
                : step->by_device ? "runtime_peak"
                                  : "xla_total",
        .versions = hb_script_words(r->env, s->answer, "versions"),
        .peak_bytes = step->peak_bytes,
        .step_seconds = step->seconds,
        .note = hb_arena_printf(r->env->arena, "ran on %s",
                                hb_script_word(r->env, s->answer, "device")),
        .fits = true,
    };
    /* What a processor did with it is no record of this device. */
    return !r->ask->keep || ran_elsewhere(r) ||
           hb_keep_run(r->env, r->ask->keep, &step->spec, &kept);
}

/* False: nothing more is to be run. */
static bool run_rung(struct step_run *r, const struct rung *x, bool *out_bad)
{
    struct step step = {.peak_bytes = 0};
    struct hb_script s;
    *out_bad = !predict(r, x, &step);
    if (*out_bad)
        return false;
    if (step.predicted.memory.peak_bytes > step.predicted.budget_bytes) {
        say_row(r, x, "does not fit, as predicted");
        return true;
    }
    if (r->end_ns - r->env->now_ns() < least_ns) {
        say_row(r, x, "not run: time was up");
        return true;
    }
    if (!run_script(r, x, &step, &s))
        return !r->signal;
    r->platform = hb_script_word(r->env, s.answer, "platform");
    compare(r, x, &step);
    *out_bad = !keep(r, &step, &s);
    return !*out_bad;
}

static void choose_size(struct step_run *r)
{
    r->size = &sizes[SIZES - 1];
    for (int i = 0; i < SIZES && !r->ask->small; i++)
        if (r->dev.hbm_bytes >= sizes[i].least_bytes) {
            r->size = &sizes[i];
            return;
        }
}

static void say_end(const struct step_run *r)
{
    fprintf(r->env->err,
            "this profile predicts these %d steps within %.1f %% (memory) and %.1f %% (time)\n",
            r->ran, r->worst_memory, r->worst_time);
    if (ran_elsewhere(r))
        fputs("they ran on a processor, not on the profile's device: that tests the path alone, "
              "and no record is kept\n",
              r->env->err);
}

enum hb_step_end hb_calibrate_step(struct hb_env *env, const struct hb_step_ask *ask,
                                   struct hb_device *out_dev, int *out_signal)
{
    struct step_run r = {.env = env, .ask = ask, .end_ns = env->now_ns() + ask->most_ns};
    bool bad = false;
    if (!hb_device_load(env->arena, env->diag, env->data_dir, ask->base, (struct hb_loc){0},
                        &r.dev))
        return HB_STEP_BAD;
    choose_size(&r);
    for (int i = 0; i < RUNGS && run_rung(&r, &rungs[i], &bad); i++)
        ;
    *out_signal = r.signal;
    if (bad || r.signal)
        return bad ? HB_STEP_BAD : HB_STEP_STOPPED;
    if (!r.ran)
        return HB_STEP_NONE;
    say_end(&r);
    if (ask->torch) {
        fputs("reserve and slack are not fitted: PyTorch tells what it allocated, not what the "
              "runtime takes beside\n",
              env->err);
        return HB_STEP_SHOWN;
    }
    if (r.count < HB_OVERHEAD_FEWEST) {
        fprintf(
            env->err,
            "reserve and slack are not fitted: that needs %d steps whose peak the device told\n",
            (int)HB_OVERHEAD_FEWEST);
        return HB_STEP_SHOWN;
    }
    *out_dev = r.dev;
    return hb_calibrate_fit_points(env, r.points, r.count, ask->date, out_dev) ? HB_STEP_FITTED
                                                                               : HB_STEP_BAD;
}
