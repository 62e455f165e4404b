/* Levers as a table: each turns its knob on a copy of the configuration, or says why it is turned
 * already. What hb_schema_check refuses has no effect for the reason that it gives. */
#include "solver/advise.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/env.h"
#include "base/size.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/result.h"
#include "sim/ir/lower.h"

/* What a turn works on. Returns null where it was turned, else why not. */
struct turn {
    struct hb_arena *arena;
    struct hb_spec *s; /* a copy; its blocks too */
    struct hb_block *blocks;
    const char *name; /* of the knob at its new value */
};

typedef const char *turn_fn(struct turn *t);

static const char *named(struct turn *t, const char *name)
{
    t->name = name;
    return NULL;
}

static const char *numbered(struct turn *t, const char *key, int64_t value)
{
    t->name = hb_arena_printf(t->arena, "%s = %lld", key, (long long)value);
    return NULL;
}

/* --- 1: shard more --- */

static const char *shard_params(struct turn *t)
{
    int64_t *m = t->s->mesh;
    if (m[HB_AX_DATA] == 1)
        return "no axis is left that holds copies of the parameters (mesh.data is 1)";
    m[HB_AX_FSDP] *= m[HB_AX_DATA];
    m[HB_AX_DATA] = 1;
    return numbered(t, "mesh.data = 1, mesh.fsdp", m[HB_AX_FSDP]);
}

static const char *shard_states(struct turn *t)
{
    if (t->s->mesh[HB_AX_DATA] == 1)
        return "there is no data axis to split optimizer states over";
    if (t->s->sharding.optimizer_over_data)
        return "optimizer states are split over data already";
    t->s->sharding.optimizer_over_data = true;
    return named(t, "sharding.optimizer_over_data = true");
}

/* --- 2: checkpoint --- */

static const char *checkpoint(struct turn *t)
{
    bool changed = false;
    for (int i = 0; i < t->s->model.block_count; i++) {
        struct hb_remat *r = &t->blocks[i].remat;
        changed = changed || r->policy != HB_POLICY_FULL;
        *r = (struct hb_remat){HB_POLICY_FULL, 0, 0};
    }
    t->s->remat.all = (struct hb_remat){HB_POLICY_FULL, 0, 0};
    if (!changed)
        return "all layers are recomputed already";
    return named(t, "remat.policy = full");
}

/* --- 3: offload activations --- */

static const char *offload_inputs(struct turn *t)
{
    uint32_t input = 1u << HB_TN_LAYER_IN;
    bool changed = false;
    for (int i = 0; i < t->s->model.block_count; i++) {
        struct hb_remat *r = &t->blocks[i].remat;
        if (r->policy == HB_POLICY_NONE || r->offload & input)
            continue;
        r->offload |= input;
        r->save &= ~input;
        changed = true;
    }
    if (!changed)
        return "nothing is rematerialised, or the layers' inputs are on the host already";
    return named(t, "remat.offload = [layer_in]");
}

static const char *offload_saved(struct turn *t)
{
    bool changed = false;
    for (int i = 0; i < t->s->model.block_count; i++) {
        struct hb_remat *r = &t->blocks[i].remat;
        if (r->policy != HB_POLICY_NAMES || !r->save)
            continue;
        r->offload |= r->save;
        r->save = 0;
        changed = true;
    }
    if (!changed)
        return "no tensor is saved by name (remat.policy: names)";
    return named(t, "remat.offload = what is saved");
}

/* --- 4: offload optimizer, parameters --- */

static const char *offload_states(struct turn *t)
{
    if (t->s->optimizer.offload == HB_PLACE_PINNED_HOST)
        return "optimizer states are on the host already";
    if (t->s->optimizer.name == HB_OPT_SGD && !t->s->precision.master)
        return "the optimizer keeps no states";
    t->s->optimizer.offload = HB_PLACE_PINNED_HOST;
    return named(t, "optimizer.offload = pinned_host");
}

static const char *offload_params(struct turn *t)
{
    if (t->s->optimizer.params_offload == HB_PLACE_PINNED_HOST)
        return "parameters are on the host already";
    t->s->optimizer.params_offload = HB_PLACE_PINNED_HOST;
    return named(t, "optimizer.params_offload = pinned_host");
}

/* --- 5: model parallel --- */

static const char *split_tensors(struct turn *t)
{
    int64_t *m = t->s->mesh;
    bool own = t->s->sharding.expert_tensor == m[HB_AX_TENSOR];
    if (m[HB_AX_FSDP] % 2)
        return "mesh.fsdp cannot be halved";
    m[HB_AX_FSDP] /= 2;
    m[HB_AX_TENSOR] *= 2;
    if (own)
        t->s->sharding.expert_tensor = m[HB_AX_TENSOR];
    return numbered(t, "half the fsdp, mesh.tensor", m[HB_AX_TENSOR]);
}

static const char *split_sequence(struct turn *t)
{
    if (t->s->sharding.residual_over_tensor)
        return "the residual is split over tensor already";
    if (t->s->mesh[HB_AX_TENSOR] == 1)
        return "there is no tensor axis to split the residual over";
    t->s->sharding.residual_over_tensor = true;
    return named(t, "sharding.residual_over_tensor = true");
}

/* --- 6, 7: stacks --- */

static const char *scan_layers(struct turn *t)
{
    if (t->s->stack.form != HB_FORM_LOOP)
        return "the layers are scanned already";
    t->s->stack.form = HB_FORM_SCAN;
    return named(t, "stack.form = scan");
}

static const char *nest_scans(struct turn *t)
{
    if (t->s->stack.form == HB_FORM_NESTED)
        return "the scans are nested already";
    for (int i = 0; i < t->s->model.block_count; i++)
        if (t->blocks[i].remat.policy == HB_POLICY_NONE)
            return "nothing is rematerialised (remat.policy: none)";
    t->s->stack.form = HB_FORM_NESTED;
    t->s->stack.outer = 0;
    return named(t, "stack.form = nested");
}

/* --- 8: smaller batches --- */

static const char *accumulate(struct turn *t)
{
    t->s->batch.accumulate *= 2;
    return numbered(t, "batch.accumulate", t->s->batch.accumulate);
}

/* --- 9: donation --- */

static const char *donate(struct turn *t)
{
    if (t->s->step.donate)
        return "the state is donated already";
    t->s->step.donate = true;
    return named(t, "step.donate = true");
}

/* --- 10: leaner optimizer --- */

static const char *lean_optimizer(struct turn *t)
{
    struct hb_optim *o = &t->s->optimizer;
    if (o->name == HB_OPT_ADAFACTOR || o->name == HB_OPT_SGD)
        return "the optimizer keeps no full-size states already";
    o->name = HB_OPT_ADAFACTOR;
    o->moment_count = 0;
    return named(t, "optimizer.name = adafactor");
}

static const char *short_moments(struct turn *t)
{
    struct hb_optim *o = &t->s->optimizer;
    bool changed = false;
    for (int i = 0; i < o->moment_count; i++) {
        changed = changed || o->moments[i] == HB_DT_F32;
        o->moments[i] = o->moments[i] == HB_DT_F32 ? HB_DT_BF16 : o->moments[i];
    }
    if (!changed)
        return "no moments are kept in f32";
    return named(t, "optimizer.moments = bf16");
}

/* --- 11: logits, attention --- */

static const char *chunk_loss(struct turn *t)
{
    t->s->loss.chunks *= 8;
    return numbered(t, "loss.chunks", t->s->loss.chunks);
}

static const char *flash_kernel(struct turn *t)
{
    bool changed = false;
    for (int i = 0; i < t->s->model.block_count; i++) {
        struct hb_attention *a = &t->blocks[i].attention;
        changed = changed || (a->kind != HB_ATTN_NONE && a->kernel != HB_KERNEL_FLASH);
        a->kernel = HB_KERNEL_FLASH;
    }
    if (!changed)
        return "attention is a flash kernel already";
    return named(t, "attention.kernel = flash");
}

/* --- 12: EMA --- */

static const char *move_ema(struct turn *t)
{
    if (t->s->optimizer.ema != HB_PLACE_DEVICE)
        return "no moving average is kept on the device";
    t->s->optimizer.ema = HB_PLACE_PINNED_HOST;
    return named(t, "optimizer.ema = pinned_host");
}

/* --- 13: lower precision --- */

static const char *short_params(struct turn *t)
{
    if (t->s->precision.params != HB_DT_F32)
        return "parameters are not in f32";
    t->s->precision.params = HB_DT_BF16;
    return named(t, "precision.params = bf16");
}

static const char *short_logits(struct turn *t)
{
    if (t->s->loss.dot != HB_DT_F32)
        return "the logits' product is not in f32";
    t->s->loss.dot = HB_DT_BF16;
    return named(t, "loss.dot = bf16");
}

/* --- 14: evaluation --- */

static const char *part_evaluation(struct turn *t)
{
    (void)t;
    return "this is the training step alone: an evaluation step compiled apart holds no gradients "
           "and no saved tensors, and lies below its peak";
}

static const struct {
    int lever;
    bool outside;
    const char *title;
    const char *does;
    turn_fn *turn;
} levers[] = {
    {1, false, "shard more", "parameters, gradients and states are split further", shard_params},
    {1, true, "shard more", "optimizer states are split over the data axis too", shard_states},
    {2, false, "checkpoint", "layers are run again in the backward pass", checkpoint},
    {3, false, "offload activations", "the layers' inputs wait on the host", offload_inputs},
    {3, false, "offload activations", "what is saved by name waits on the host", offload_saved},
    {4, false, "offload optimizer or parameters", "states come to the device for the update",
     offload_states},
    {4, true, "offload optimizer or parameters", "parameters lie on the host between steps",
     offload_params},
    {5, false, "model parallel instead of more FSDP",
     "layers' weights, activations and logits are halved", split_tensors},
    {5, true, "model parallel instead of more FSDP", "the residual is split over tensor",
     split_sequence},
    {6, false, "scanned stack", "one layer's buffers serve all layers", scan_layers},
    {7, false, "nested checkpointing",
     "inputs of outer blocks are kept, of the inner one at a time", nest_scans},
    {8, false, "smaller batch with accumulation", "half the tokens are in flight", accumulate},
    {9, true, "donation", "the new state lies in the place of the old", donate},
    {10, true, "leaner optimizer", "factored second moments, no first", lean_optimizer},
    {10, true, "leaner optimizer", "moments in half the bytes", short_moments},
    {11, false, "logits in chunks, attention kernels", "an eighth of the logits at a time",
     chunk_loss},
    {11, true, "logits in chunks, attention kernels", "scores are never materialised",
     flash_kernel},
    {12, true, "EMA off the device", "the moving average lies on the host", move_ema},
    {13, true, "lower precision", "parameters and gradients in half the bytes", short_params},
    {13, true, "lower precision", "the logits' product in bf16", short_logits},
    {14, true, "a separate evaluation step", "", part_evaluation},
};

enum { KNOBS = sizeof levers / sizeof levers[0], MOST_PAIRS = 8 };

struct measure {
    int64_t peak_bytes;
    int64_t step_ns;
};

struct advise {
    struct hb_env *env;
    struct hb_arena *scratch;
    const struct hb_spec *spec;
    const struct hb_device *device;
    struct measure base;
};

static struct turn open_turn(struct hb_arena *arena, const struct hb_spec *spec)
{
    struct turn t = {.arena = arena};
    size_t blocks = (size_t)spec->model.block_count;
    t.s = hb_arena_alloc(arena, 1, sizeof *t.s);
    *t.s = *spec;
    t.blocks = hb_arena_alloc(arena, blocks, sizeof *t.blocks);
    memcpy(t.blocks, spec->model.blocks, blocks * sizeof *t.blocks);
    t.s->model.blocks = t.blocks;
    return t;
}

/* False: *out_why says what stands against it. */
static bool run_turned(struct advise *a, const struct hb_spec *spec, struct measure *out,
                       const char **out_why)
{
    struct hb_diag diag;
    struct hb_program p;
    struct hb_memory m;
    hb_diag_init(&diag, a->scratch);
    if (!hb_schema_check(a->scratch, &diag, NULL, spec) ||
        !hb_spec_supported(&diag, (struct hb_loc){0}, spec) ||
        !hb_lower(a->scratch, &diag, spec, &p)) {
        *out_why = hb_arena_strdup(a->env->arena, diag.entries[0].text);
        return false;
    }
    hb_run_memory(a->scratch, &p, &m);
    *out = (struct measure){m.peak_bytes, hb_run_step_ns(a->scratch, &p, a->device)};
    return true;
}

static void fill_effect(const struct advise *a, const struct measure *m, struct hb_advice *out)
{
    out->freed_bytes = a->base.peak_bytes - m->peak_bytes;
    out->cost_ns = m->step_ns - a->base.step_ns;
    out->applies = out->freed_bytes != 0 || out->cost_ns != 0;
    if (!out->applies)
        out->why = "what it changes is not alive at the peak, and costs no time";
}

static struct hb_advice pull(struct advise *a, int knob)
{
    struct hb_advice advice = {.lever = levers[knob].lever,
                               .title = levers[knob].title,
                               .name = levers[knob].title,
                               .why = levers[knob].does,
                               .outside = levers[knob].outside};
    struct hb_arena_mark mark = hb_arena_mark(a->scratch);
    struct turn t = open_turn(a->scratch, a->spec);
    struct measure m;
    const char *why = levers[knob].turn(&t);
    if (t.name)
        advice.name = hb_arena_strdup(a->env->arena, t.name);
    if (why || !run_turned(a, t.s, &m, &why))
        advice.why = why;
    else
        fill_effect(a, &m, &advice);
    hb_arena_rewind(a->scratch, mark);
    return advice;
}

static struct hb_advice pull_both(struct advise *a, int first, int second)
{
    struct hb_advice advice = {
        .lever = levers[first].lever,
        .why = hb_arena_printf(a->env->arena, "%s; %s", levers[first].does, levers[second].does)};
    struct hb_arena_mark mark = hb_arena_mark(a->scratch);
    struct turn t = open_turn(a->scratch, a->spec);
    struct measure m;
    const char *why = levers[first].turn(&t);
    const char *one = t.name;
    if (!why)
        why = levers[second].turn(&t);
    if (!why && run_turned(a, t.s, &m, &why)) {
        advice.name = hb_arena_printf(a->env->arena, "%s, %s", one, t.name);
        advice.title = advice.name;
        fill_effect(a, &m, &advice);
    }
    hb_arena_rewind(a->scratch, mark);
    return advice;
}

static int compare_advice(const void *x, const void *y)
{
    const struct hb_advice *a = x, *b = y;
    if (a->applies != b->applies)
        return a->applies ? -1 : 1;
    if (a->freed_bytes != b->freed_bytes)
        return a->freed_bytes > b->freed_bytes ? -1 : 1;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns ? -1 : 1;
    return a->lever - b->lever;
}

static void find_pairs(struct advise *a, const struct hb_advice *single, struct hb_advice_list *out)
{
    struct hb_advice *all = hb_arena_alloc(a->env->arena, KNOBS * KNOBS, sizeof *all);
    uint32_t count = 0;
    for (int i = 0; i < KNOBS; i++)
        for (int k = i + 1; k < KNOBS; k++) {
            if (!single[i].applies || !single[k].applies || levers[i].lever == levers[k].lever)
                continue;
            struct hb_advice both = pull_both(a, i, k);
            int64_t more = single[i].freed_bytes > single[k].freed_bytes ? single[i].freed_bytes
                                                                         : single[k].freed_bytes;
            if (both.applies && both.freed_bytes > 0 && both.freed_bytes > more)
                all[count++] = both;
        }
    if (count)
        qsort(all, count, sizeof *all, compare_advice);
    out->pairs = all;
    out->pair_count = count < MOST_PAIRS ? count : MOST_PAIRS;
}

bool hb_advise_find(struct hb_env *env, const struct hb_spec *spec, const struct hb_device *device,
                    struct hb_advice_list *out)
{
    struct advise a = {.env = env, .scratch = hb_arena_new(), .spec = spec, .device = device};
    struct hb_advice single[KNOBS];
    const char *why = NULL;
    struct hb_budget budget;
    hb_budget_make(spec, device, &budget);
    *out = (struct hb_advice_list){.budget_bytes = budget.bytes};
    bool ok = run_turned(&a, spec, &a.base, &why);
    if (ok) {
        out->peak_bytes = a.base.peak_bytes;
        out->step_ns = a.base.step_ns;
        out->knobs = hb_arena_alloc(env->arena, KNOBS, sizeof *out->knobs);
        for (int i = 0; i < KNOBS; i++)
            out->knobs[out->knob_count++] = single[i] = pull(&a, i);
        qsort(out->knobs, out->knob_count, sizeof *out->knobs, compare_advice);
        find_pairs(&a, single, out);
    } else {
        hb_error(env->diag, (struct hb_loc){0}, "%s", why);
    }
    hb_arena_free(a.scratch);
    return ok;
}

const char *hb_advise_best_freer(struct hb_env *env, const struct hb_spec *spec,
                                 const struct hb_device *device)
{
    struct hb_advice_list list;
    if (!hb_advise_find(env, spec, device, &list))
        return NULL;
    for (uint32_t i = 0; i < list.knob_count; i++)
        if (list.knobs[i].applies && list.knobs[i].outside && list.knobs[i].freed_bytes > 0) {
            char size[HB_SIZE_TEXT];
            return hb_arena_printf(env->arena, "%s (%s)", list.knobs[i].name,
                                   hb_size_print(list.knobs[i].freed_bytes, size));
        }
    return NULL;
}
