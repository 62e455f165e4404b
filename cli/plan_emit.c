/* See plan_emit.h. MaxText has one policy for its stack and one scan: each of its named policies,
 * and those of the planner's own menu that its tensors can say, is searched alone; the best of them
 * is the best of its space. */
#include "cli/plan_emit.h"

#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/size.h"
#include "models/emit.h"
#include "models/import/import.h"
#include "models/maxtext.h"
#include "models/schema.h"
#include "sim/engine/result.h"
#include "solver/menu.h"

void hb_plan_emit_text(struct hb_env *env, enum hb_emit what, const struct hb_spec *spec,
                       struct hb_str *out)
{
    switch (what) {
    case HB_EMIT_NONE:
        return;
    case HB_EMIT_MAXTEXT:
        hb_emit_maxtext_model(out, spec, env->data_dir);
        hb_emit_maxtext(out, spec);
        return;
    case HB_EMIT_LEVANTER:
        hb_emit_levanter(out, spec);
        return;
    case HB_EMIT_YAML:
        hb_schema_emit_yaml(out, spec, false);
        return;
    case HB_EMIT_TORCHTITAN:
        hb_emit_torchtitan(out, spec);
        return;
    case HB_EMIT_MEGATRON:
        hb_emit_megatron(out, spec);
        return;
    }
}

bool hb_plan_emit_back(struct hb_env *env, enum hb_emit what, const struct hb_spec *spec,
                       struct hb_spec *out_back)
{
    static const char *const own[] = {"hardware",       "plan", "compiler",
                                      "force_compiler", "step", "load"};
    struct hb_diag unheard;
    struct hb_str text;
    struct hb_node *tree = NULL;
    struct hb_import import;
    struct hb_import_source source = {
        .arena = env->arena, .diag = &unheard, .path = "-", .data_dir = env->data_dir};
    if (what != HB_EMIT_MAXTEXT)
        return false;
    hb_diag_init(&unheard, env->arena);
    hb_str_init(&text, env->arena);
    hb_plan_emit_text(env, what, spec, &text);
    if (!hb_import_parse(env->arena, &unheard, "emitted", text.text, text.len, &tree) ||
        !hb_import_tree(&source, tree, &import))
        return false;
    struct hb_node *mine = hb_schema_emit(env->arena, spec, true);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        struct hb_node *section = hb_node_find(mine, own[i]);
        if (section)
            hb_node_put(import.root, own[i], section->loc, hb_node_copy(env->arena, section));
    }
    return hb_schema_from_node(env->arena, &unheard, import.root, env->data_dir, out_back);
}

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
        if (hb_menu_same(&w->list[i], &remat))
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
static void add_menu(const struct hb_plan_ask *ask, struct ways *w)
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
        if (hb_plan_emit_back(env, HB_EMIT_MAXTEXT, s, &back) &&
            hb_menu_same(&back.model.blocks[back.model.block_count - 1].remat, &own))
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
    if (s->mesh[HB_AX_EXPERT] > 1)
        s->sharding.dense_over_expert = own.dense_over_expert;
    s->pipeline = s->mesh[HB_AX_PIPELINE] > 1 ? pipe : as->pipeline;
}

bool hb_plan_emit_find(enum hb_emit what, struct hb_plan_ask *ask, struct hb_plan *out)
{
    struct hb_spec *back = hb_arena_alloc(ask->env->arena, 1, sizeof *back);
    struct ways ways = {.count = 0};
    bool remat = !ask->spec->plan.present || ask->spec->plan.remat;
    if (!hb_plan_emit_back(ask->env, what, ask->spec, back))
        return hb_plan_find(ask->env->arena, ask, out);
    bool any = false;
    take_habits(back);
    struct hb_plan_ask best = *ask;
    best.spec = back;
    add_way(&ways, back->remat.all);
    if (remat) {
        add_named(back, &ways);
        add_menu(&best, &ways);
    }
    for (int i = 0; i < ways.count; i++) {
        struct hb_plan plan;
        struct hb_plan_ask one = *ask;
        one.spec = spec_with(ask->env->arena, back, &ways.list[i]);
        one.polish = false;
        one.most_alternatives = i ? 0 : ask->most_alternatives;
        if (!hb_plan_find(ask->env->arena, &one, &plan))
            return false;
        if (!any || (plan.found && (!out->found || plan.best.value < out->best.value))) {
            *out = plan;
            best = one;
        }
        any = true;
    }
    *ask = best;
    return true;
}

/* ---- what is printed */

static void add_comment(struct hb_env *env, struct hb_str *out, const struct hb_spec *spec,
                        const struct hb_device *device)
{
    struct hb_result *r = hb_arena_alloc(env->arena, 1, sizeof *r);
    char peak[HB_SIZE_TEXT], budget[HB_SIZE_TEXT], step[HB_SIZE_TEXT], rate[HB_SIZE_TEXT];
    if (!hb_result_run(env->arena, env->diag, spec, device, r))
        return;
    hb_str_addf(out,
                "# Read back and simulated: peak %s of %s, %s a step, %s tokens/s on %lld x %s.\n",
                hb_size_print(r->memory.peak_bytes, peak), hb_size_print(r->budget_bytes, budget),
                hb_time_print((int64_t)(r->step_seconds * 1e9), step),
                hb_count_print(r->tokens_per_second, rate), (long long)spec->hardware.count,
                spec->hardware.device);
}

static const char *plain(struct hb_env *env, const struct hb_spec *spec)
{
    struct hb_str text;
    hb_str_init(&text, env->arena);
    hb_schema_emit_json(&text, spec, true);
    return text.text;
}

void hb_plan_emit_print(struct hb_env *env, FILE *out, enum hb_emit what,
                        const struct hb_spec *spec, const struct hb_device *device)
{
    struct hb_str text;
    struct hb_spec back;
    hb_str_init(&text, env->arena);
    if (hb_plan_emit_back(env, what, spec, &back)) {
        add_comment(env, &text, &back, device);
        struct hb_spec named = back;
        named.model.name = spec->model.name;
        named.plan = spec->plan;
        struct hb_spec own = *spec;
        forget_habits(&own, &named);
        if (!hb_str_same(plain(env, &named), plain(env, &own)))
            hb_str_add(&text, "# It is not all that was planned: see 'cannot be said' below.\n");
    }
    hb_plan_emit_text(env, what, spec, &text);
    fputs(text.text, out);
}
