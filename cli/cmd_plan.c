/* hbmsim plan: the best configuration that fits, proven. */
#include "base/arena.h"
#include "base/out.h"
#include "base/size.h"
#include "base/utf8.h"
#include "cli/cmd.h"
#include "cli/draw.h"
#include "cli/draw_plan.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/plan_verify.h"
#include "cli/show_plan.h"
#include "cli/plan_emit.h"
#include "models/schema.h"
#include "plots/picture.h"
#include "plots/term.h"
#include "solver/advise.h"
#include "solver/margin.h"
#include "solver/remedy.h"

/* Brute force is for checks: beyond this it would take hours. */
static const double most_exhaustive = 1e6;
enum { MOST_DEVICES_FACTOR = 64 };
static const int64_t second_ns = 1000000000;
/* Policies of a block, the leanest among them, that the search for the smallest peak looks at. */
enum { LEAN_POLICIES = 3 };
/* Configurations that a picture shows; a terminal's is small. */
enum { POINTS_DRAWN = 160, POINTS_IN_TERMINAL = 40 };
/* Rows of the price list: each is a search of its own; of a space that is large, or was not
 * searched to its end, only where the plan is. */
enum { MOST_PRICES = 3, LARGE_SPACE_NODES = 1000 };

struct options {
    struct hb_common common;
    const char *model;
    const char *certificate;
    const char *write_lp;
    struct hb_draw_options plot;
    int objective;
    int emit;
    int64_t budget_bytes;
    struct hb_verify_ask verify;
    const char *margin;
    const char *prefer;
    double confidence;
    int64_t seconds;
    bool exhaustive;
    bool thorough;
    bool prices;
    bool full;
    struct hb_planned planned;
};

/* More than settings. */
static bool is_told(const struct options *o)
{
    return o->emit == HB_EMIT_NONE || o->common.json;
}

static void fill_ask(struct hb_env *env, const struct options *o, const struct hb_spec *spec,
                     const struct hb_device *device, struct hb_plan_ask *ask)
{
    hb_plan_ask_make(env, spec, device, ask);
    ask->lp_stem = o->write_lp;
    ask->keep_runs = true;
    if (o->objective >= 0)
        ask->objective = (enum hb_objective)o->objective;
    if (o->budget_bytes > 0)
        ask->budget_bytes = o->budget_bytes;
    if (o->thorough || o->exhaustive)
        ask->most_effort = 0;
}

/* Fewest devices: the first of the divisors of the count for which there is a plan. */
static bool find_plan(struct hb_plan_ask *ask, struct hb_plan *plan)
{
    int64_t count = ask->spec->hardware.count;
    for (int64_t n = 1; ask->objective == HB_OBJ_DEVICES && n < count; n++) {
        if (count % n)
            continue;
        struct hb_diag quiet;
        struct hb_env env = *ask->env;
        struct hb_plan_ask some = *ask;
        hb_diag_init(&quiet, env.arena);
        env.diag = &quiet;
        some.env = &env;
        some.devices = n;
        if (hb_plan_find(env.arena, &some, plan) && plan->found) {
            ask->devices = n;
            return true;
        }
    }
    return hb_plan_find(ask->env->arena, ask, plan);
}

static bool run_spec(struct hb_env *env, const struct hb_plan *plan, const struct hb_candidate *c,
                     struct hb_plan_answer *a)
{
    struct hb_spec *spec = hb_arena_alloc(env->arena, 1, sizeof *spec);
    struct hb_result *result = hb_arena_alloc(env->arena, 1, sizeof *result);
    hb_plan_spec(env->arena, plan, c, spec);
    spec->plan.present = false;
    if (!hb_result_run(env->arena, env->diag, spec, a->ask->device, result))
        return false;
    a->spec = spec;
    a->result = result;
    return true;
}

/* What is printed of the plans that were found: the best, or one that is hardly worse. */
static bool choose(const struct hb_plan_ask *ask, struct hb_plan_answer *a)
{
    hb_show_choose(ask->env, a);
    return !a->plan->found || run_spec(ask->env, hb_show_chosen_plan(a), hb_show_chosen(a), a);
}

/* The largest budget first: what it excludes, the smaller ones exclude. */
static void price_budgets(const struct hb_plan_ask *ask, struct hb_plan_answer *a)
{
    struct hb_plan plans[MOST_PRICES];
    const struct hb_plan *above = NULL;
    if (ask->objective == HB_OBJ_MEMORY)
        return;
    for (int i = MOST_PRICES - 1; i >= 0; i--) {
        struct hb_plan_ask again = *ask;
        int64_t more = INT64_C(1) << (30 + 2 * i);
        again.budget_bytes = hb_add_sat(ask->budget_bytes, more);
        again.whole_bytes = hb_add_sat(ask->whole_bytes, more);
        again.most_alternatives = 0;
        again.lp_stem = NULL;
        again.polish = false;
        again.value_only = true;
        again.like = a->plan;
        again.above = above;
        again.near = a->near;
        if (!hb_plan_find(ask->env->arena, &again, &plans[i]) || !plans[i].found ||
            plans[i].status == HB_PLAN_LIMIT)
            continue;
        above = &plans[i];
        a->prices[i] = (struct hb_price_row){more, plans[i].best.step_ns};
    }
    while (a->price_count < MOST_PRICES && a->prices[a->price_count].more_bytes > 0)
        a->price_count++;
}

/* What the margin costs: against the best that fills the budget; null: none, or not asked. */
static const struct hb_plan *price_margin(const struct hb_plan_ask *ask, struct hb_plan_answer *a)
{
    struct hb_plan *bare = hb_arena_alloc(ask->env->arena, 1, sizeof *bare);
    if (a->margin.kind == HB_MARGIN_NONE || ask->objective == HB_OBJ_MEMORY)
        return NULL;
    struct hb_plan_ask again = hb_margin_without(ask, a->plan);
    again.near = a->near;
    if (!hb_plan_find(ask->env->arena, &again, bare) || !bare->found ||
        bare->status == HB_PLAN_LIMIT)
        return NULL;
    a->bare = &bare->best;
    return bare;
}

/* The smallest peak, and the fewest devices on which one fits. */
static bool explain_none(const struct hb_plan_ask *ask, struct hb_plan_answer *a)
{
    struct hb_plan *smallest = hb_arena_alloc(ask->env->arena, 1, sizeof *smallest);
    struct hb_plan_ask least = *ask;
    least.objective = HB_OBJ_MEMORY;
    least.budget_bytes = least.whole_bytes = INT64_MAX;
    least.confidence = 0;
    least.most_alternatives = 0;
    least.most_policies = LEAN_POLICIES;
    least.lp_stem = NULL;
    least.polish = false;
    least.other = a->plan;
    if (!hb_plan_find(ask->env->arena, &least, smallest) || !smallest->found ||
        smallest->status == HB_PLAN_LIMIT || !run_spec(ask->env, smallest, &smallest->best, a)) {
        struct hb_env env = *ask->env; /* the input's own mesh may be none for its batch */
        struct hb_diag quiet;
        hb_diag_init(&quiet, env.arena);
        env.diag = &quiet;
        a->advice = hb_advise_best_freer(&env, ask->spec, ask->device);
        return false;
    }
    a->smallest = smallest;
    a->advice = hb_advise_best_freer(ask->env, a->spec, ask->device);
    int64_t budget = ask->budget_bytes;
    if (ask->confidence > 0)
        budget = hb_interval_most_peak(a->spec, ask->confidence, ask->whole_bytes);
    a->least_devices =
        hb_remedy_devices(ask->env->arena, a->spec, ask->device, budget, MOST_DEVICES_FACTOR);
    return true;
}

/* In a terminal the picture comes first, so that the figures stay in sight. */
static void print_text(struct hb_env *env, FILE *out, const struct options *o,
                       const struct hb_plan_answer *a)
{
    struct hb_term term;
    struct hb_pareto pareto;
    struct hb_str text;
    hb_str_init(&text, env->arena);
    if (hb_draw_in_terminal(env, o->common.output, &term)) {
        hb_draw_plan(env, a, POINTS_IN_TERMINAL, &pareto);
        if (pareto.count) {
            hb_term_pareto(&text, &term, &pareto);
            fprintf(out, "%s\n", text.text);
        }
    }
    hb_show_plan_text(env, out, a);
    if (a->verified)
        hb_verified_text(env, out, a);
}

/* Where the compiler was asked, it agrees. */
static bool may_stand(const struct hb_plan_answer *a)
{
    return !a->verified || a->verified->end == HB_VERIFY_FITS;
}

static void print_answer(struct hb_env *env, const struct options *o,
                         const struct hb_plan_answer *a)
{
    struct hb_picture picture = {.kind = HB_PICTURE_PARETO};
    struct hb_out *out = hb_out_open(env, o->common.output);
    if (o->plot.path || o->full)
        hb_draw_plan(env, a, POINTS_DRAWN, &picture.pareto);
    if (o->common.json)
        hb_show_plan_json(env, hb_out_file(out), a, o->full ? &picture.pareto : NULL);
    else if (o->emit != HB_EMIT_NONE && a->plan->found && may_stand(a))
        hb_plan_emit_print(env, hb_out_file(out), (enum hb_emit)o->emit, a->spec, a->asked,
                           a->ask->device);
    else
        print_text(env, hb_out_file(out), o, a);
    hb_out_close(out);
    if (o->plot.path)
        hb_draw_picture(env, &picture, &o->plot);
    if (!o->certificate)
        return;
    out = hb_out_open(env, o->certificate);
    hb_show_certificate(env, hb_out_file(out), a);
    hb_out_close(out);
}

/* Of the menus alone: what was found beside them may be better than all that they have. False: the
 * check cannot be made (an error says so). */
static bool check_exhaustive(const struct options *o, const struct hb_plan_ask *ask,
                             struct hb_plan_answer *a)
{
    if (!o->exhaustive)
        return true;
    struct hb_plan plain;
    struct hb_candidate best;
    bool found = false;
    struct hb_plan_ask alone = *ask;
    alone.polish = false;
    alone.most_alternatives = 0;
    alone.menus = a->plan->searched;
    if (!hb_plan_exhaust(ask->env->arena, ask, a->plan, most_exhaustive, &best, &found))
        return hb_error(ask->env->diag, (struct hb_loc){0},
                        "--exhaustive: %.3g configurations; allowed: spaces of at most %.0e "
                        "(narrow plan.search)",
                        a->plan->counts.raw, most_exhaustive);
    if (!a->plan->space.remat) /* nothing is found beside them */
        plain = *a->plan;
    else if (!hb_plan_find(ask->env->arena, &alone, &plain))
        return false;
    a->exhaust_ran = true;
    a->exhaust_agrees = found == plain.found && found == a->plan->found;
    if (found && a->exhaust_agrees)
        a->exhaust_agrees = best.value >= plain.best.value && best.value <= plain.best.value &&
                            a->plan->best.value <= plain.best.value;
    return true;
}

/* The plan, and its run. False: errors are in the diag. */
static bool search(const struct options *o, struct hb_plan_ask *ask, struct hb_plan *plan,
                   struct hb_plan_answer *a)
{
    sigset_t before;
    ask->devices = ask->spec->hardware.count;
    if (ask->stop)
        hb_stop_start(ask->stop, hb_mul_sat(o->seconds, second_ns));
    hb_interrupt_hold(ask->env, &before);
    bool made =
        o->emit != HB_EMIT_NONE && o->emit != HB_EMIT_YAML && ask->objective != HB_OBJ_DEVICES
            ? hb_plan_emit_find((enum hb_emit)o->emit, ask, plan)
            : find_plan(ask, plan);
    hb_interrupt_release(ask->env, &before);
    return made && check_exhaustive(o, ask, a) && choose(ask, a);
}

/* Compiles, learns and searches on. */
static bool verify(const struct options *o, struct hb_plan_ask *ask, struct hb_plan *plan,
                   struct hb_plan_answer *a)
{
    struct hb_verified *v = hb_arena_alloc(ask->env->arena, 1, sizeof *v);
    if (!o->verify.asked)
        return true;
    while (plan->found) {
        if (!hb_plan_verify(ask->env, &o->verify, a, v))
            return false;
        a->verified = v;
        if (v->end != HB_VERIFY_LEARNT)
            return true;
        ask->lessons = (struct hb_lessons){v->lessons, v->count};
        if (!search(o, ask, plan, a))
            return false;
    }
    return true;
}

/* What ends the command without an answer; HB_EXIT_YES: nothing does. */
static int check_verified(struct hb_env *env, const struct options *o,
                          const struct hb_plan_answer *a)
{
    if (!a->verified)
        return HB_EXIT_YES;
    const struct hb_verified *v = a->verified;
    const char *reason = v->rounds[v->count - 1].compiled.reason;
    if (v->end == HB_VERIFY_REFUSED) {
        hb_error(env->diag, (struct hb_loc){.file = o->model}, "--verify: %s", reason);
        return HB_EXIT_INPUT;
    }
    if (v->end == HB_VERIFY_FAILED) {
        hb_utf8_say(env->err, "hbmsim plan: --verify: %s\n", reason);
        return HB_EXIT_MACHINE;
    }
    if (o->emit != HB_EMIT_NONE && !o->common.json && v->end != HB_VERIFY_FITS) {
        fprintf(env->err, "hbmsim plan: no plan was verified: nothing is emitted\n");
        return HB_EXIT_NO;
    }
    return HB_EXIT_YES;
}

/* What else is asked once the plan is there, or none; where time is left. False: errors are in the
 * diag. */
static bool explain(const struct options *o, const struct hb_plan_ask *ask,
                    struct hb_plan_answer *a)
{
    sigset_t before;
    bool made = true;
    if (a->plan->found)
        a->faster = hb_advise_best_faster(ask->env, a->spec, ask->device, ask->budget_bytes);
    if (a->plan->status == HB_PLAN_LIMIT && (a->plan->found || !a->plan->counts.left)) {
        a->advice = a->plan->found ? NULL : hb_advise_best_freer(ask->env, ask->spec, ask->device);
        return true;
    }
    a->near = a->plan->node_count > LARGE_SPACE_NODES || a->plan->counts.left > 0;
    hb_interrupt_hold(ask->env, &before);
    if (a->plan->found && o->prices)
        price_budgets(ask, a);
    if (!a->plan->found)
        made = explain_none(ask, a) || !ask->env->diag->errors;
    const struct hb_plan *bare = price_margin(ask, a);
    if (a->plan->found && ask->objective != HB_OBJ_MEMORY && ask->spec->compiler != HB_TORCH)
        hb_nearly_find(ask->env->arena, ask, a->plan, bare, &a->nearly);
    hb_interrupt_release(ask->env, &before);
    return made;
}

static int answer_plan(struct hb_env *env, const struct options *o, struct hb_plan_ask *ask)
{
    struct hb_plan plan;
    struct hb_plan_answer answer = {
        .ask = ask, .plan = &plan, .written = o->planned.written, .asked = ask->spec};
    if (!hb_margin_apply(ask, &answer.margin) || !search(o, ask, &plan, &answer) ||
        !verify(o, ask, &plan, &answer))
        return HB_EXIT_INPUT;
    int status = check_verified(env, o, &answer);
    if (status != HB_EXIT_YES)
        return status;
    if ((is_told(o) || !plan.found) && !explain(o, ask, &answer))
        return HB_EXIT_INPUT;
    print_answer(env, o, &answer);
    if (answer.exhaust_ran && !answer.exhaust_agrees)
        HB_BUG("brute force finds another optimum");
    return plan.found && may_stand(&answer) ? HB_EXIT_YES : HB_EXIT_NO;
}

/* In toml or in Python. */
static bool is_titan(enum hb_emit emit)
{
    return emit == HB_EMIT_TORCHTITAN || emit == HB_EMIT_RECIPE;
}

/* What of the options is of other compilers, or of torch, or of its other framework. */
static bool check_torch(struct hb_env *env, const struct options *o, const struct hb_spec *spec)
{
    bool torch = spec->compiler == HB_TORCH, megatron = spec->runtime.framework == HB_FW_MEGATRON;
    bool titan = is_titan(o->emit), core = o->emit == HB_EMIT_MEGATRON;
    bool trainer = o->emit == HB_EMIT_TRAINER;
    bool jax = o->emit == HB_EMIT_MAXTEXT || o->emit == HB_EMIT_LEVANTER;
    if (torch && (o->verify.asked || o->write_lp))
        return hb_error(env->diag, (struct hb_loc){.file = o->model}, "compiler: torch: %s",
                        o->verify.asked ? "--verify compiles with JAX: nothing is compiled here"
                                        : "--write-lp: no integer programs are needed here");
    if ((torch && jax) || ((titan || trainer) && (!torch || megatron)) ||
        (core && (!torch || !megatron)))
        return hb_error(env->diag, (struct hb_loc){.file = o->model},
                        "--emit: the file is of compiler %s; allowed: %s, yaml (or --set "
                        "compiler=... beside it)",
                        torch ? "torch" : "xla",
                        !torch     ? "maxtext, levanter"
                        : megatron ? "megatron"
                                   : "torchtitan, torchtitan-recipe, hf-trainer");
    return true;
}

/* Whose settings are wanted says whose step it is, where the input does not. */
static const char *const *open_words(enum hb_emit emit)
{
    static const char *const torch[] = {"compiler=torch", NULL};
    static const char *const megatron[] = {"compiler=torch", "runtime.framework=megatron", NULL};
    static const char *const trainer[] = {"compiler=torch", "runtime.fused_norm=false", NULL};
    if (emit == HB_EMIT_MEGATRON)
        return megatron;
    if (emit == HB_EMIT_TRAINER) /* whose models write RMSNorm out */
        return trainer;
    return is_titan(emit) ? torch : NULL;
}

static int run(struct hb_env *env, int argc, char **argv)
{
    struct options o = {
        .emit = HB_EMIT_NONE,
        .objective = -1,
        .verify = {.python = "python3", .seconds = HB_COMPILE_SECONDS, .most = HB_VERIFY_MOST}};
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan_ask ask;
    int status = hb_opt_parse(env, &hb_cmd_plan, argc, argv, &o);
    if (status != HB_GO_ON)
        return status;
    if (o.margin)
        hb_words_add(&o.common.set, env->arena,
                     hb_arena_printf(env->arena, "plan.margin=%s", o.margin));
    if (o.prefer)
        hb_words_add(&o.common.set, env->arena,
                     hb_arena_printf(env->arena, "plan.prefer=%s", o.prefer));
    o.planned.if_open = open_words(o.emit);
    if (!hb_draw_check(env, &o.plot) || !hb_input_confidence(env, o.confidence, &o.common.set) ||
        !hb_input_read_planned(env, o.model, &o.common.set, &spec, &device, &o.planned))
        return HB_EXIT_INPUT;
    if (o.emit == HB_EMIT_TRAINER)
        hb_emit_trainer_norms(&spec);
    if (!check_torch(env, &o, &spec))
        return HB_EXIT_INPUT;
    fill_ask(env, &o, &spec, &device, &ask);
    struct hb_stop stop = {.now_ns = env->now_ns,
                           .is_asked = env->guest ? NULL : hb_interrupt_came};
    ask.stop = o.exhaustive ? NULL : &stop;
    return answer_plan(env, &o, &ask);
}

static const struct hb_opt options[] = {
    {"MODEL.yaml", 0, HB_OPT_OPERAND, NULL, "the configuration; - is standard input", NULL,
     offsetof(struct options, model), 0, 0},
    {"objective", 0, HB_OPT_CHOICE, "tokens_per_second|step_time|memory|devices",
     "what is best; default: plan.objective of the file", NULL, offsetof(struct options, objective),
     0, 0},
    {"budget", 0, HB_OPT_SIZE, "BYTES", "memory that a program may use, in place of the device's",
     NULL, offsetof(struct options, budget_bytes), 0, 0},
    {"margin", 0, HB_OPT_STRING, "confident|none|BYTES|PERCENT%",
     "what stays free (default: plan.margin of the file, confident: what 95 % of records like it "
     "need fits)",
     NULL, offsetof(struct options, margin), 0, 0},
    {"prefer", 0, HB_OPT_STRING, "room|speed",
     "of plans at most 1 % worse than the best that with most room, or the best (default: "
     "plan.prefer of the file, room)",
     NULL, offsetof(struct options, prefer), 0, 0},
    HB_CONFIDENCE_OPTION(offsetof(struct options, confidence)),
    {"emit", 0, HB_OPT_CHOICE,
     "maxtext|levanter|yaml|torchtitan|megatron|hf-trainer|torchtitan-recipe",
     "print the plan as settings of that program, or as a file for hbmsim", NULL,
     offsetof(struct options, emit), 0, 0},
    HB_DRAW_OPTIONS(offsetof(struct options, plot)),
    {"full", 0, HB_OPT_FLAG, NULL, "with --json: also a sample of all that was searched, for plot",
     NULL, offsetof(struct options, full), 0, 0},
    {"certificate", 0, HB_OPT_OUTPUT, "FILE",
     "write each cell of the space with its optimum or the bound that excluded it", NULL,
     offsetof(struct options, certificate), 0, 0},
    {"verify", 0, HB_OPT_FLAG, NULL,
     "compile the plan (see hbmsim verify); one that does not fit teaches the search", NULL,
     offsetof(struct options, verify.asked), 0, 0},
    {"verify-most", 0, HB_OPT_INT, "N", "of compilations; default: 5", NULL,
     offsetof(struct options, verify.most), 1, HB_VERIFY_CEILING},
    {"python", 0, HB_OPT_STRING, "PATH", "the interpreter that has JAX; default: python3", NULL,
     offsetof(struct options, verify.python), 0, 0},
    {"compile-seconds", 0, HB_OPT_INT, "S", "of time for a compilation; default: 900", NULL,
     offsetof(struct options, verify.seconds), 1, 1000000},
    {"keep", 0, HB_OPT_OUTPUT, "RUNS.jsonl", "with --verify: append a record of each compilation",
     NULL, offsetof(struct options, verify.keep), 0, 0},
    {"seconds", 0, HB_OPT_INT, "N",
     "of time to search (not with --exhaustive); then, or at Ctrl-C, the best so far", "60",
     offsetof(struct options, seconds), 1, 1000000},
    {"thorough", 0, HB_OPT_FLAG, NULL,
     "search until no cell is left that may be better by its bound, however long", NULL,
     offsetof(struct options, thorough), 0, 0},
    {"prices", 0, HB_OPT_FLAG, NULL, "also what 1, 4 and 16 GiB more would gain", NULL,
     offsetof(struct options, prices), 0, 0},
    {"exhaustive", 0, HB_OPT_FLAG, NULL, "check by running every configuration (at most a million)",
     NULL, offsetof(struct options, exhaustive), 0, 0},
    {"write-lp", 0, HB_OPT_STRING, "STEM",
     "write each integer program to STEM-1.lp, STEM-2.lp, ... in CPLEX LP form", NULL,
     offsetof(struct options, write_lp), 0, 0},
    {0},
};

const struct hb_cmd hb_cmd_plan = {
    .name = "plan",
    .run = run,
    .summary = "the fastest configuration that fits, proven",
    .about =
        "Searches mesh, rematerialisation and offload by tensor, nesting, loss chunks,\n"
        "accumulation and, on TPU, the optimizer's place (or what plan.search names) for\n"
        "the best configuration within the budget, and proves it: everything else is excluded\n"
        "by a bound or was run. After --seconds (60), or at Ctrl-C, it prints the best so far\n"
        "with a bound on what could be better. The status is 0 where there is a plan and 1 where\n"
        "nothing fits; then the smallest peak is shown, with what would do.",
    .example = "hbmsim plan examples/quickstart/model.yaml",
    .options = options,
    .common = HB_COMMON_JSON | HB_COMMON_OUTPUT | HB_COMMON_SET,
};
