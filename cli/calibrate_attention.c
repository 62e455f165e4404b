/* See calibrate_attention.h. */
#include "cli/calibrate_attention.h"

#include <math.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/script.h"
#include "hw/device.h"

/* Of the time for all, so much is the script's measuring; the rest is for starting and compiling.
 */
static const double measuring_part = 0.6;

static const char *make_question(struct hb_env *env, const struct hb_attention_ask *ask)
{
    struct hb_str s;
    hb_str_init(&s, env->arena);
    struct hb_json j = hb_json_begin(&s, NULL, false);
    hb_json_object(&j);
    hb_json_put_text(&j, "framework", ask->framework);
    hb_json_key(&j, "sequences");
    hb_json_array(&j);
    for (int seq = 512; seq <= 16384; seq *= 2)
        hb_json_int(&j, seq);
    hb_json_array_end(&j);
    hb_json_put_int(&j, "width", 128);
    hb_json_put_int(&j, "heads", 16);
    hb_json_put_int(&j, "tokens", 16384);
    hb_json_put_real(&j, "seconds", measuring_part * 1e-9 * (double)ask->most_ns);
    hb_json_object_end(&j);
    hb_json_end(&j);
    return s.text;
}

static bool read_point(const struct hb_node *pair, double *out_x, double *out_y)
{
    return pair->kind == HB_NODE_LIST && pair->count == 2 && hb_node_real(pair->first, out_x) &&
           hb_node_real(pair->last, out_y) && *out_x >= 1 && isfinite(*out_x) && *out_y > 0 &&
           isfinite(*out_y);
}

/* Parts of the peak, by sequence length. False: it is no such list. */
static bool read_curve(const struct hb_node *list, double peak, struct hb_curve *out)
{
    struct hb_curve curve = {0};
    if (!list || list->kind != HB_NODE_LIST || !list->count || list->count > HB_CURVE_POINTS)
        return false;
    for (const struct hb_node *n = list->first; n; n = n->next) {
        double x, y;
        if (!read_point(n, &x, &y) || (curve.count && x <= curve.x[curve.count - 1]))
            return false;
        curve.x[curve.count] = x;
        curve.y[curve.count++] = fmax(1e-6, fmin(2, y / peak));
    }
    *out = curve;
    return true;
}

struct both {
    struct hb_curve forward, backward;
    const char *note;
};

static void set_curves(struct hb_device *dev, const struct hb_attention_ask *ask,
                       const struct both *both, bool sdpa)
{
    *(sdpa ? &dev->sdpa_forward_curve : &dev->attention_forward_curve) = both->forward;
    *(sdpa ? &dev->sdpa_backward_curve : &dev->attention_backward_curve) = both->backward;
    hb_device_set_fact(dev, sdpa ? "sdpa_forward_curve" : "attention_forward_curve", ask->source,
                       both->note);
    hb_device_set_fact(dev, sdpa ? "sdpa_backward_curve" : "attention_backward_curve", ask->source,
                       both->note);
}

static const char *take_answer(struct hb_env *env, const struct hb_attention_ask *ask,
                               const struct hb_script *s, struct hb_device *dev)
{
    struct both both;
    double peak = dev->peak_flops[HB_RATE_BF16];
    const char *error = hb_script_error(env, s);
    if (error)
        return error;
    if (!(peak > 0) || !read_curve(hb_node_find(s->answer, "forward"), peak, &both.forward) ||
        !read_curve(hb_node_find(s->answer, "backward"), peak, &both.backward))
        return "the answer has no curves";
    both.note = hb_arena_printf(env->arena, "%s on %s, heads 128 wide",
                                hb_script_word(env, s->answer, "by"),
                                hb_script_word(env, s->answer, "device"));
    bool torch = hb_str_same(ask->framework, "torch");
    if (torch)
        set_curves(dev, ask, &both, true);
    if (!torch || !dev->attention_forward_curve.count)
        set_curves(dev, ask, &both, false);
    hb_utf8_say(env->err, "attention by %s\n", both.note);
    return NULL;
}

void hb_calibrate_attention(struct hb_env *env, const struct hb_attention_ask *ask,
                            struct hb_device *dev, int *out_signal)
{
    struct hb_script script;
    const char *argv[] = {
        ask->python, "-B",
        hb_arena_printf(env->arena, "%s/examples/verify/attention.py", env->data_dir), NULL};
    struct hb_script_ask run = {.argv = argv,
                                .input = make_question(env, ask),
                                .most_ns = ask->most_ns,
                                .name = ask->framework,
                                .longer = "--seconds",
                                .install = ask->framework};
    *out_signal = 0;
    const char *why =
        hb_script_run(env, &run, &script) ? take_answer(env, ask, &script, dev) : script.reason;
    if (script.end == HB_SCRIPT_INTERRUPTED)
        *out_signal = script.signal;
    if (why)
        hb_utf8_say(env->err, "attention is not measured: %s\n", why);
}
