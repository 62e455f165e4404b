/* hbmsim advise: what each lever frees and costs on one configuration. */
#include "base/arena.h"
#include "base/json_write.h"
#include "base/out.h"
#include "base/size.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "cli/head.h"
#include "cli/input.h"
#include "plots/picture.h"
#include "plots/place.h"
#include "solver/advise.h"

struct options {
    struct hb_common common;
    const char *model;
    struct hb_draw_options plot;
};

static void put_advice(struct hb_json *j, const struct hb_advice *a)
{
    hb_json_object(j);
    hb_json_put_text(j, "name", a->name);
    hb_json_put_text(j, "lever", a->title);
    hb_json_put_bool(j, "applies", a->applies);
    hb_json_put_int(j, "freed_bytes", a->freed_bytes);
    hb_json_put_real(j, "cost_seconds", (double)a->cost_ns * 1e-9);
    hb_json_put_text(j, "why", a->why);
    hb_json_object_end(j);
}

/* Of the levers (or, where none is enough, the pairs) that free what lacks, the one that costs the
 * least time; null: none is, or nothing lacks. */
static const struct hb_advice *cheapest(const struct hb_advice_list *l)
{
    const struct hb_advice *best = NULL;
    int64_t lacking = l->peak_bytes - l->budget_bytes;
    for (int pairs = 0; lacking > 0 && pairs < 2 && !best; pairs++) {
        const struct hb_advice *all = pairs ? l->pairs : l->knobs;
        uint32_t count = pairs ? l->pair_count : l->knob_count;
        for (uint32_t i = 0; i < count; i++)
            if (all[i].applies && all[i].freed_bytes >= lacking &&
                (!best || all[i].cost_ns < best->cost_ns))
                best = &all[i];
    }
    return best;
}

static void print_json(struct hb_env *env, FILE *out, const struct hb_spec *spec,
                       const struct hb_advice_list *l)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    struct hb_json j = hb_json_begin(&text, out, true);
    hb_json_object(&j);
    struct hb_head head = hb_head_of(env, spec);
    hb_head_json(&j, &head);
    hb_json_put_int(&j, "peak_bytes", l->peak_bytes);
    hb_json_put_int(&j, "budget_bytes", l->budget_bytes);
    hb_json_put_real(&j, "step_seconds", (double)l->step_ns * 1e-9);
    const struct hb_advice *enough = cheapest(l);
    hb_json_put_text(&j, "suffices", enough ? enough->name : NULL);
    hb_json_key(&j, "levers");
    hb_json_array(&j);
    for (uint32_t i = 0; i < l->knob_count; i++)
        put_advice(&j, &l->knobs[i]);
    hb_json_array_end(&j);
    hb_json_key(&j, "pairs");
    hb_json_array(&j);
    for (uint32_t i = 0; i < l->pair_count; i++)
        put_advice(&j, &l->pairs[i]);
    hb_json_array_end(&j);
    hb_json_object_end(&j);
    hb_json_end(&j);
}

static void print_row(FILE *out, const struct hb_advice_list *l, const struct hb_advice *a)
{
    char size[HB_SIZE_TEXT];
    int64_t bytes = a->freed_bytes < 0 ? -a->freed_bytes : a->freed_bytes;
    char sign = a->freed_bytes > 0 ? '-' : a->freed_bytes < 0 ? '+' : ' ';
    double part = l->step_ns ? 100 * (double)a->cost_ns / (double)l->step_ns : 0;
    fprintf(out, "  %c%-11s %+7.2f %%  %s\n", sign, hb_size_print(bytes, size), part, a->name);
}

/* What to do first, where it does not fit. */
static void print_lead(FILE *out, const struct hb_advice_list *l)
{
    const struct hb_advice *a = cheapest(l);
    char lacking[HB_SIZE_TEXT], freed[HB_SIZE_TEXT];
    double part = a && l->step_ns ? 100 * (double)a->cost_ns / (double)l->step_ns : 0;
    if (l->peak_bytes <= l->budget_bytes)
        return;
    hb_size_print(l->peak_bytes - l->budget_bytes, lacking);
    if (a)
        fprintf(out, "%s too much; the cheapest that suffices: %s (frees %s, %+.2f %% time)\n",
                lacking, a->name, hb_size_print(a->freed_bytes, freed), part);
    else
        fprintf(out, "%s too much; no lever and no pair suffices: `hbmsim plan` searches all\n",
                lacking);
}

static void print_text(FILE *out, const struct hb_spec *spec, const struct hb_advice_list *l)
{
    char peak[HB_SIZE_TEXT], budget[HB_SIZE_TEXT], step[HB_SIZE_TEXT];
    fprintf(out, "%s: peak %s of %s, %s a step\n", spec->model.name,
            hb_size_print(l->peak_bytes, peak), hb_size_print(l->budget_bytes, budget),
            hb_time_print(l->step_ns, step));
    print_lead(out, l);
    fputs("\n  peak         step\n", out);
    for (uint32_t i = 0; i < l->knob_count && l->knobs[i].applies; i++)
        print_row(out, l, &l->knobs[i]);
    if (l->pair_count)
        fprintf(out, "\nPairs that free more than either:\n");
    for (uint32_t i = 0; i < l->pair_count; i++)
        print_row(out, l, &l->pairs[i]);
    fprintf(out, "\nNo effect here:\n");
    for (uint32_t i = 0; i < l->knob_count; i++)
        if (!l->knobs[i].applies)
            fprintf(out, "  %s, because %s\n", l->knobs[i].name, l->knobs[i].why);
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {0};
    struct hb_spec spec;
    struct hb_device device;
    struct hb_advice_list list;
    int status = hb_opt_parse(env, &hb_cmd_advise, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (!hb_draw_check(env, &o.plot) ||
        !hb_input_read(env, o.model, &o.common.set, &spec, &device) ||
        !hb_advise_find(env, &spec, &device, &list))
        return HB_EXIT_INPUT;
    struct hb_out *out = hb_out_open(env, o.common.output);
    if (o.common.json)
        print_json(env, hb_out_file(out), &spec, &list);
    else
        print_text(hb_out_file(out), &spec, &list);
    hb_out_close(out);
    if (o.plot.path) {
        struct hb_picture picture = {.kind = HB_PICTURE_TORNADO};
        hb_tornado_make(env->arena, spec.model.name, &list, &picture.tornado);
        picture.tornado.place = hb_place_of(env->arena, &spec, HB_WHERE_MESH);
        hb_draw_picture(env, &picture, &o.plot);
    }
    return HB_EXIT_YES;
}

static const struct hb_opt options[] = {
    {"MODEL.yaml", 0, HB_OPT_OPERAND, NULL, "the configuration; - is standard input", NULL,
     offsetof(struct options, model), 0, 0},
    HB_DRAW_OPTIONS(offsetof(struct options, plot)),
    {0},
};

const struct hb_cmd hb_cmd_advise = {
    .name = "advise",
    .run = run,
    .summary = "each lever pulled alone: bytes at the peak, cost in time",
    .about =
        "Turns each of the knobs that people turn when memory runs out, alone and in pairs, on\n"
        "this configuration, and ranks them by the bytes that they free at the peak. What does\n"
        "nothing here says why.",
    .example = "hbmsim advise examples/quickstart/model.yaml",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT | HB_COMMON_SET,
};
