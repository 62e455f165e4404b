/* See plan_emit.h. MaxText and Levanter have one policy for their stack: each that they can say,
 * named ones and those of the planner's own menu that read back as they are, is searched alone; the
 * best of them is the best of their space. Of PyTorch's frameworks the planner has the policies
 * itself. */
#include "cli/plan_emit.h"

#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "models/emit.h"
#include "models/maxtext.h"
#include "sim/engine/result.h"
#include "solver/menu.h"

/* ---- the search */

enum { MOST_WAYS = 64, MOST_OF_MENU = 8 };

/* Policies for the whole stack. */
struct ways {
    struct hb_remat list[MOST_WAYS];
    int count;
};

static void add_way(struct ways *w, struct hb_remat remat)
{
    for (int i = 0; i < w->count; i++)
        if (hb_remat_same(&w->list[i], &remat))
            return;
    if (w->count < MOST_WAYS)
        w->list[w->count++] = remat;
}

/* What any block of the model has. */
static uint32_t model_has(const struct hb_model *m, bool *out_dense, bool *out_experts)
{
    uint32_t has = 0;
    for (int i = 0; i < m->block_count; i++) {
        *(m->blocks[i].moe.experts ? out_experts : out_dense) = true;
        has |= hb_maxtext_has(&m->blocks[i]);
    }
    return has;
}

static void add_named(const struct hb_spec *spec, struct ways *w)
{
    bool dense = false, experts = false;
    uint32_t has = model_has(&spec->model, &dense, &experts);
    for (int i = 0; i < HB_MAXTEXT_POLICIES; i++) {
        const struct hb_maxtext_policy *p = &hb_maxtext_policies[i];
        add_way(w, (struct hb_remat){p->policy, hb_maxtext_mask(p->save, dense, experts) & has,
                                     hb_maxtext_mask(p->offload, dense, experts) & has});
    }
}

static struct hb_spec *spec_with(struct hb_arena *arena, const struct hb_spec *spec,
                                 const struct hb_remat *remat)
{
    struct hb_spec *s = hb_arena_alloc(arena, 1, sizeof *s);
    struct hb_block *blocks =
        hb_arena_alloc(arena, (size_t)spec->model.block_count, sizeof *blocks);
    *s = *spec;
    memcpy(blocks, spec->model.blocks, (size_t)spec->model.block_count * sizeof *blocks);
    for (int i = 0; i < spec->model.block_count; i++)
        blocks[i].remat = *remat;
    s->model.blocks = blocks;
    s->remat.all = *remat;
    s->plan.whole_stack = true;
    return s;
}

/* Those of the planner's menu for this model that read back as they are. */
static void add_menu(enum hb_emit what, const struct hb_plan_ask *ask, struct ways *w)
{
    struct hb_env *env = ask->env;
    struct hb_arena *scratch = hb_arena_new();
    uint32_t tried = 0;
    const struct hb_menu *menus =
        hb_menu_make(env->arena, scratch, ask->spec, ask->device, MOST_OF_MENU, &tried);
    for (uint32_t i = 0; i < menus[ask->spec->model.block_count - 1].count; i++) {
        const struct hb_remat *r = &menus[ask->spec->model.block_count - 1].policies[i];
        struct hb_spec back;
        struct hb_remat own = *r;
        if (r->policy == HB_POLICY_NAMES && !(r->offload & 1u << HB_TN_LAYER_IN))
            own.save |= 1u << HB_TN_LAYER_IN; /* custom keeps it by name */
        const struct hb_spec *s = spec_with(env->arena, ask->spec, &own);
        if (hb_emit_back(env->arena, what, s, env->data_dir, &back) &&
            hb_remat_same(&back.model.blocks[back.model.block_count - 1].remat, &own))
            add_way(w, own);
    }
    hb_arena_free(scratch);
}

/* What MaxText does with axes, of whatever size the search makes them. */
static void take_habits(struct hb_spec *s)
{
    struct hb_sharding *h = &s->sharding;
    h->residual_over_tensor = h->dense_over_expert = h->states_over_sequence = true;
    h->sequence_balance = h->ends_over_pipeline = true;
    h->residual_split = HB_SPLIT_FEATURES;
    h->sequence_kind = HB_SEQ_ALL_GATHER;
    s->loss.chunk_over = HB_CHUNK_TOKENS;
    s->pipeline.shift = HB_SHIFT_SHARD_MAP;
    s->pipeline.constraints = HB_CONS_ALL;
    s->pipeline.outputs = HB_OUT_BUFFER;
    s->pipeline.remat_iteration = true;
    s->pipeline.remat_layer = false;
}

/* What of these has no effect where an axis is 1, as the other has it. */
static void forget_habits(struct hb_spec *s, const struct hb_spec *as)
{
    const struct hb_sharding own = s->sharding;
    const struct hb_pipe pipe = s->pipeline;
    s->sharding = as->sharding;
    if (s->mesh[HB_AX_TENSOR] > 1) {
        s->sharding.residual_over_tensor = own.residual_over_tensor;
        s->sharding.residual_split = own.residual_split;
    }
    if (s->mesh[HB_AX_SEQUENCE] > 1) {
        s->sharding.sequence_kind = own.sequence_kind;
        s->sharding.states_over_sequence = own.states_over_sequence;
    }
    if (s->mesh[HB_AX_EXPERT] > 1) {
        s->sharding.dense_over_expert = own.dense_over_expert;
        s->sharding.router_over_expert = own.router_over_expert;
    }
    if (s->loss.chunks == 1)
        s->loss.chunk_over = as->loss.chunk_over;
    s->pipeline = s->mesh[HB_AX_PIPELINE] > 1 ? pipe : as->pipeline;
}

/* ---- what a program can say of a cell */

static bool maxtext_says(const struct hb_spec *s)
{
    return s->stack.form != HB_FORM_NESTED;
}

static bool levanter_says(const struct hb_spec *s)
{
    return s->mesh[HB_AX_SEQUENCE] == 1 && s->mesh[HB_AX_EXPERT] == 1 &&
           s->mesh[HB_AX_PIPELINE] == 1 && s->optimizer.offload == HB_PLACE_NONE &&
           s->stack.form != HB_FORM_LOOP;
}

/* Dense layers lie over the ranks of experts where those are ranks of FSDP, and only there. */
static bool splits_as_fsdp(const struct hb_spec *s)
{
    return s->mesh[HB_AX_EXPERT] == 1 || s->sharding.dense_over_expert == (s->mesh[HB_AX_FSDP] > 1);
}

/* One switch for parameters and states. */
static bool titan_says(const struct hb_spec *s)
{
    return s->loss.chunks == 1 && s->optimizer.offload == s->optimizer.params_offload;
}

/* Without checkpointing of every so many-th layer, an update in the backward pass, experts split
 * over tensor ranks, and any float8 but by rows. */
static bool recipe_says(const struct hb_spec *s)
{
    return s->optimizer.offload == s->optimizer.params_offload && s->remat.every == 1 &&
           !s->optimizer.in_backward && s->optimizer.name == HB_OPT_ADAMW &&
           (s->mesh[HB_AX_TENSOR] == 1 || s->sharding.expert_tensor == 1 ||
            hb_titan_expert_ways(s) == 1) &&
           (s->precision.fp8 == HB_FP8_NONE || s->precision.fp8 == HB_FP8_ROWWISE);
}

static bool megatron_says(const struct hb_spec *s)
{
    return s->loss.chunks == 1 && (s->mesh[HB_AX_DATA] == 1 || s->mesh[HB_AX_FSDP] == 1) &&
           splits_as_fsdp(s);
}

static bool trainer_says(const struct hb_spec *s)
{
    int64_t others = s->mesh[HB_AX_TENSOR] * s->mesh[HB_AX_SEQUENCE] * s->mesh[HB_AX_EXPERT];
    return others * s->mesh[HB_AX_PIPELINE] == 1 && s->loss.chunks == 1 && s->remat.every == 1 &&
           (s->mesh[HB_AX_DATA] == 1 || s->mesh[HB_AX_FSDP] == 1) &&
           s->model.blocks[0].remat.policy <= HB_POLICY_FULL;
}

static bool (*const says[])(const struct hb_spec *cell) = {[HB_EMIT_MAXTEXT] = maxtext_says,
                                                           [HB_EMIT_LEVANTER] = levanter_says,
                                                           [HB_EMIT_YAML] = NULL,
                                                           [HB_EMIT_TORCHTITAN] = titan_says,
                                                           [HB_EMIT_MEGATRON] = megatron_says,
                                                           [HB_EMIT_TRAINER] = trainer_says,
                                                           [HB_EMIT_RECIPE] = recipe_says};

/* The policies of a program that has one for its stack, each searched alone. */
static void find_ways(enum hb_emit what, const struct hb_plan_ask *ask, struct ways *ways)
{
    add_way(ways, ask->spec->model.blocks[0].remat);
    if (ask->spec->plan.present && !ask->spec->plan.remat)
        return;
    if (what == HB_EMIT_MAXTEXT) {
        add_named(ask->spec, ways);
    } else {
        add_way(ways, (struct hb_remat){.policy = HB_POLICY_FULL});
        add_way(ways, (struct hb_remat){.policy = HB_POLICY_NONE});
    }
    add_menu(what, ask, ways);
}

/* What a step takes where a plan has another policy; INT64_MAX: it does not fit. */
static int64_t step_under(const struct hb_plan_ask *ask, const struct hb_spec *place,
                          const struct hb_remat *remat)
{
    struct hb_arena *scratch = hb_arena_new();
    struct hb_result *r = hb_arena_alloc(scratch, 1, sizeof *r);
    struct hb_diag quiet;
    hb_diag_init(&quiet, scratch);
    bool fits = hb_result_run(scratch, &quiet, spec_with(scratch, place, remat), ask->device, r) &&
                r->memory.peak_bytes <= ask->budget_bytes;
    int64_t step_ns = fits ? r->timing.step_ns : INT64_MAX;
    hb_arena_free(scratch);
    return step_ns;
}

/* The rest by their steps in this place: the sooner a good plan is there, the less is looked at of
 * the others. */
static void sort_ways(const struct hb_plan_ask *ask, const struct hb_spec *place, struct ways *w,
                      int from)
{
    int64_t steps[MOST_WAYS];
    for (int i = from; i < w->count; i++) { /* insertion: stable */
        struct hb_remat own = w->list[i];
        int64_t step = step_under(ask, place, &own);
        int k = i;
        for (; k > from && step < steps[k - 1]; k--) {
            steps[k] = steps[k - 1];
            w->list[k] = w->list[k - 1];
        }
        steps[k] = step;
        w->list[k] = own;
    }
}

/* One after the other: a plan has to be better than the best of those before. */
static bool search_ways(struct ways *ways, const struct hb_spec *spec, struct hb_plan_ask *ask,
                        struct hb_plan *out)
{
    struct hb_plan_ask best = *ask;
    struct hb_plan first;
    struct hb_spec place;
    bool any = false;
    sort_ways(ask, spec, ways, 0);
    for (int i = 0; i < ways->count; i++) {
        struct hb_plan plan;
        struct hb_plan_ask one = *ask;
        one.spec = spec_with(ask->env->arena, spec, &ways->list[i]);
        one.polish = false;
        one.most_alternatives = i ? 0 : ask->most_alternatives;
        one.beat = any && out->found ? out->best.value : 0;
        one.other = any ? &first : NULL;
        if (!hb_plan_find(ask->env->arena, &one, &plan))
            return false;
        if (!any)
            first = plan;
        if (plan.found) {
            hb_plan_spec(ask->env->arena, &plan, &plan.best, &place);
            sort_ways(ask, &place, ways, i + 1);
        }
        if (!any || (plan.found && (!out->found || plan.best.value < out->best.value))) {
            *out = plan;
            best = one;
        }
        any = true;
    }
    *ask = best;
    ask->other = NULL; /* of this budget and objective alone */
    return true;
}

/* The input as that program would run it. Its own mesh may be one that the program has not, or that
 * its batch cannot be split over, which a search turns: then what else it says is read over a plain
 * mesh, if need be with a sequence for each device. */
static bool read_input(enum hb_emit what, const struct hb_plan_ask *ask, struct hb_spec *out_back)
{
    struct hb_env *env = ask->env;
    struct hb_spec each = *ask->spec;
    if (hb_emit_back(env->arena, what, ask->spec, env->data_dir, out_back))
        return true;
    for (int a = 0; a < HB_AX_COUNT; a++)
        each.mesh[a] = a == HB_AX_FSDP ? each.hardware.count : 1;
    each.sharding.expert_tensor = 1;
    if (hb_emit_back(env->arena, what, &each, env->data_dir, out_back))
        return true;
    each.batch.global = hb_mul_sat(each.hardware.count, each.batch.accumulate);
    return hb_emit_back(env->arena, what, &each, env->data_dir, out_back);
}

/* Where the router lies beside an axis of experts is the decoder's (DeepSeek's has it whole). */
static void take_router(const struct hb_plan_ask *ask, struct hb_spec *back)
{
    struct hb_spec probe = *back, read;
    for (int a = 0; a < HB_AX_COUNT; a++)
        probe.mesh[a] = a == HB_AX_EXPERT ? 2 : 1;
    probe.hardware.count = 2;
    probe.batch.global = hb_mul_sat(2, probe.batch.accumulate);
    if (hb_emit_back(ask->env->arena, HB_EMIT_MAXTEXT, &probe, ask->env->data_dir, &read))
        back->sharding.router_over_expert = read.sharding.router_over_expert;
}

/* The mesh and the batch that were asked for, whatever was read. */
static void take_place(struct hb_spec *back, const struct hb_spec *asked)
{
    back->batch.global = asked->batch.global;
    memcpy(back->mesh, asked->mesh, sizeof back->mesh);
    back->sharding.expert_tensor = asked->sharding.expert_tensor;
}

/* Where dense layers lie over the ranks of experts follows from the mesh (splits_as_fsdp) and is no
 * part of the space: what it is not is searched after what it is. */
static bool search_torch(struct hb_plan_ask *ask, struct hb_plan *out)
{
    bool dense = false, experts = false;
    struct hb_plan_ask other = *ask;
    struct hb_env env = *ask->env;
    struct hb_diag quiet;
    struct hb_plan plan;
    if (!hb_plan_find(ask->env->arena, ask, out))
        return false;
    model_has(&ask->spec->model, &dense, &experts);
    if (!experts)
        return true;
    struct hb_spec *spec = hb_arena_alloc(env.arena, 1, sizeof *spec);
    hb_diag_init(&quiet, env.arena);
    env.diag = &quiet;
    *spec = *ask->spec;
    spec->sharding.dense_over_expert = !spec->sharding.dense_over_expert;
    other.spec = spec;
    other.env = &env;
    if (hb_plan_find(env.arena, &other, &plan) && plan.found &&
        (!out->found || plan.best.value < out->best.value)) {
        *out = plan;
        ask->spec = spec;
    }
    return true;
}

bool hb_plan_emit_find(enum hb_emit what, struct hb_plan_ask *ask, struct hb_plan *out)
{
    struct hb_env *env = ask->env;
    struct hb_spec *back = hb_arena_alloc(env->arena, 1, sizeof *back);
    struct ways ways = {.count = 0};
    if (!read_input(what, ask, back))
        return hb_plan_find(env->arena, ask, out);
    back->plan.says = says[what];
    if (what == HB_EMIT_MAXTEXT) {
        take_habits(back);
        take_router(ask, back);
    }
    struct hb_plan_ask own = *ask;
    own.spec = back;
    if (back->compiler == HB_TORCH) {
        take_place(back, ask->spec);
        *ask = own;
        return search_torch(ask, out);
    }
    find_ways(what, &own, &ways);
    take_place(back, ask->spec);
    return search_ways(&ways, back, ask, out);
}

/* ---- what is printed */

static void add_comment(struct hb_str *out, const struct hb_result *r)
{
    char peak[HB_SIZE_TEXT], budget[HB_SIZE_TEXT], step[HB_SIZE_TEXT], rate[HB_SIZE_TEXT];
    const struct hb_spec *spec = r->spec;
    hb_str_addf(out,
                "# Read back and simulated: peak %s of %s, %s a step, %s tokens/s on %lld x %s.\n",
                hb_size_print(r->memory.peak_bytes, peak), hb_size_print(r->budget_bytes, budget),
                hb_time_print((int64_t)(r->step_seconds * 1e9), step),
                hb_count_print(r->tokens_per_second, rate), (long long)spec->hardware.count,
                spec->hardware.device);
}

/* Both run: keys that change neither bytes nor time are not lost. */
static void add_lost(struct hb_env *env, struct hb_str *out, const struct hb_spec *spec,
                     const struct hb_result *read)
{
    struct hb_result *own = hb_arena_alloc(env->arena, 1, sizeof *own);
    if (!hb_result_run(env->arena, env->diag, spec, read->device, own) ||
        (own->memory.peak_bytes == read->memory.peak_bytes &&
         own->timing.step_ns == read->timing.step_ns))
        return;
    struct hb_spec own_spec = *spec;
    forget_habits(&own_spec, read->spec);
    char peak[HB_SIZE_TEXT], step[HB_SIZE_TEXT];
    hb_str_addf(out, "# It is not all that was planned: that has peak %s and %s a step.\n",
                hb_size_print(own->memory.peak_bytes, peak),
                hb_time_print(own->timing.step_ns, step));
    hb_emit_lost(out, &own_spec, read->spec);
}

/* Whether a line of hb_emit_lost is of a key that no search turns and no program has as its own. */
static bool is_of_input(const char *line)
{
    static const char *const kept[] = {
        "model.",          "precision.params", "precision.compute",
        "precision.fp8",   "optimizer.name",   "optimizer.moments",
        "optimizer.clip",  "optimizer.ema",    "optimizer.in_backward",
        "loss.softmax",    "loss.softcap",     "loss.kernel",
        "embedding.lookup"};
    const char *key = line + strlen("# cannot be said: ");
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (hb_str_starts(key, kept[i]))
            return !strstr(key, "].name:") && !strstr(key, ".split_heads:");
    return false;
}

/* Whether these keys move a byte or a nanosecond of the plan. */
static bool moves(struct hb_env *env, const struct hb_spec *asked, const struct hb_result *read)
{
    struct hb_spec own = *read->spec;
    struct hb_result *ran = hb_arena_alloc(env->arena, 1, sizeof *ran);
    struct hb_diag quiet;
    enum hb_place states = own.optimizer.offload, params = own.optimizer.params_offload;
    int64_t chunks = own.loss.chunks;
    own.precision = asked->precision;
    own.optimizer = asked->optimizer;
    own.optimizer.offload = states;
    own.optimizer.params_offload = params;
    own.loss = asked->loss;
    own.loss.chunks = chunks;
    own.lookup = asked->lookup;
    hb_diag_init(&quiet, env->arena);
    if (!hb_result_run(env->arena, &quiet, &own, read->device, ran))
        return true;
    return ran->memory.peak_bytes != read->memory.peak_bytes ||
           ran->timing.step_ns != read->timing.step_ns;
}

static void add_unsaid(struct hb_env *env, struct hb_str *out, enum hb_emit what,
                       const struct hb_spec *asked, const struct hb_result *read)
{
    struct hb_spec back;
    struct hb_str lost, lines;
    if (!asked || what == HB_EMIT_YAML ||
        !hb_emit_back(env->arena, what, asked, env->data_dir, &back))
        return;
    hb_str_init(&lost, env->arena);
    hb_str_init(&lines, env->arena);
    hb_emit_lost(&lost, asked, &back);
    bool model = false;
    for (const char *line = lost.text; *line;) {
        size_t len = strcspn(line, "\n") + 1;
        if (is_of_input(line))
            hb_str_addn(&lines, line, len);
        model |= is_of_input(line) && hb_str_starts(line, "# cannot be said: model.");
        line += len;
    }
    if (lines.len && (model || moves(env, asked, read)))
        hb_str_addf(out, "# Of what was asked for %s has no words for this:\n%s",
                    hb_emit_title(what), lines.text);
}

void hb_plan_emit_print(struct hb_env *env, FILE *out, enum hb_emit what,
                        const struct hb_spec *spec, const struct hb_spec *asked,
                        const struct hb_device *device)
{
    struct hb_str text;
    struct hb_spec back;
    struct hb_result *read = hb_arena_alloc(env->arena, 1, sizeof *read);
    hb_str_init(&text, env->arena);
    bool good = hb_emit_back(env->arena, what, spec, env->data_dir, &back);
    if (good && hb_result_run(env->arena, env->diag, &back, device, read)) {
        add_comment(&text, read);
        add_unsaid(env, &text, what, asked, read);
        add_lost(env, &text, spec, read);
    } else if (what != HB_EMIT_YAML) {
        hb_str_addf(&text,
                    "# Not read back: %s has no name for this model, or not for all of this.\n",
                    hb_emit_title(what));
    }
    hb_emit_program(what, &text, spec, env->data_dir);
    fputs(text.text, out);
}
