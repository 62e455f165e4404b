/* Levers as a table: each turns its knob on a copy of the configuration, or says why it is turned
 * already. */
#include "solver/levers.h"

#include "base/arena.h"

const char *hb_turn_named(struct hb_turn *t, const char *name)
{
    t->name = name;
    return NULL;
}

const char *hb_turn_numbered(struct hb_turn *t, const char *key, int64_t value)
{
    t->name = hb_arena_printf(t->arena, "%s = %lld", key, (long long)value);
    return NULL;
}

/* --- 1: shard more --- */

const char *hb_turn_shard_params(struct hb_turn *t)
{
    int64_t *m = t->s->mesh;
    if (m[HB_AX_DATA] == 1)
        return "no axis is left that holds copies of the parameters (mesh.data is 1)";
    m[HB_AX_FSDP] *= m[HB_AX_DATA];
    m[HB_AX_DATA] = 1;
    return hb_turn_numbered(t, "mesh.data = 1, mesh.fsdp", m[HB_AX_FSDP]);
}

const char *hb_turn_shard_states(struct hb_turn *t)
{
    if (t->s->mesh[HB_AX_DATA] == 1)
        return "there is no data axis to split optimizer states over";
    if (t->s->sharding.optimizer_over_data)
        return "optimizer states are split over data already";
    t->s->sharding.optimizer_over_data = true;
    return hb_turn_named(t, "sharding.optimizer_over_data = true");
}

/* --- 2: checkpoint --- */

static const char *checkpoint(struct hb_turn *t)
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
    return hb_turn_named(t, "remat.policy = full");
}

/* --- 3: offload activations --- */

static const char *offload_inputs(struct hb_turn *t)
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
    return hb_turn_named(t, "remat.offload = [layer_in]");
}

static const char *offload_saved(struct hb_turn *t)
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
    return hb_turn_named(t, "remat.offload = what is saved");
}

/* --- 4: offload optimizer, parameters --- */

static const char *offload_states(struct hb_turn *t)
{
    if (t->s->optimizer.offload == HB_PLACE_PINNED_HOST)
        return "optimizer states are on the host already";
    if (t->s->optimizer.name == HB_OPT_SGD && !t->s->precision.master)
        return "the optimizer keeps no states";
    t->s->optimizer.offload = HB_PLACE_PINNED_HOST;
    return hb_turn_named(t, "optimizer.offload = pinned_host");
}

static const char *offload_params(struct hb_turn *t)
{
    if (t->s->optimizer.params_offload == HB_PLACE_PINNED_HOST)
        return "parameters are on the host already";
    t->s->optimizer.params_offload = HB_PLACE_PINNED_HOST;
    return hb_turn_named(t, "optimizer.params_offload = pinned_host");
}

/* --- 5: model parallel --- */

static const char *split_tensors(struct hb_turn *t)
{
    int64_t *m = t->s->mesh;
    bool own = t->s->sharding.expert_tensor == m[HB_AX_TENSOR];
    if (m[HB_AX_FSDP] % 2)
        return "mesh.fsdp cannot be halved";
    m[HB_AX_FSDP] /= 2;
    m[HB_AX_TENSOR] *= 2;
    if (own)
        t->s->sharding.expert_tensor = m[HB_AX_TENSOR];
    return hb_turn_numbered(t, "half the fsdp, mesh.tensor", m[HB_AX_TENSOR]);
}

const char *hb_turn_split_sequence(struct hb_turn *t)
{
    if (t->s->sharding.residual_over_tensor)
        return "the residual is split over tensor already";
    if (t->s->mesh[HB_AX_TENSOR] == 1)
        return "there is no tensor axis to split the residual over";
    t->s->sharding.residual_over_tensor = true;
    return hb_turn_named(t, "sharding.residual_over_tensor = true");
}

static const char *constrain_activations(struct hb_turn *t)
{
    if (t->s->sharding.activation_constraints)
        return "activations have sharding constraints already";
    t->s->sharding.activation_constraints = true;
    return hb_turn_named(t, "sharding.activation_constraints = true");
}

/* --- 6, 7: stacks --- */

static const char *scan_layers(struct hb_turn *t)
{
    if (t->s->stack.form != HB_FORM_LOOP)
        return "the layers are scanned already";
    t->s->stack.form = HB_FORM_SCAN;
    return hb_turn_named(t, "stack.form = scan");
}

static const char *nest_scans(struct hb_turn *t)
{
    if (t->s->stack.form == HB_FORM_NESTED)
        return "the scans are nested already";
    for (int i = 0; i < t->s->model.block_count; i++)
        if (t->blocks[i].remat.policy == HB_POLICY_NONE)
            return "nothing is rematerialised (remat.policy: none)";
    t->s->stack.form = HB_FORM_NESTED;
    t->s->stack.outer = 0;
    return hb_turn_named(t, "stack.form = nested");
}

/* --- 8: smaller batches --- */

const char *hb_turn_accumulate(struct hb_turn *t)
{
    t->s->batch.accumulate *= 2;
    return hb_turn_numbered(t, "batch.accumulate", t->s->batch.accumulate);
}

/* --- 9: donation --- */

static const char *donate(struct hb_turn *t)
{
    if (t->s->step.donate)
        return "the state is donated already";
    t->s->step.donate = true;
    return hb_turn_named(t, "step.donate = true");
}

/* --- 10: leaner optimizer --- */

static const char *lean_optimizer(struct hb_turn *t)
{
    struct hb_optim *o = &t->s->optimizer;
    if (o->name == HB_OPT_ADAFACTOR || o->name == HB_OPT_SGD)
        return "the optimizer keeps no full-size states already";
    o->name = HB_OPT_ADAFACTOR;
    o->moment_count = 0;
    return hb_turn_named(t, "optimizer.name = adafactor");
}

const char *hb_turn_short_moments(struct hb_turn *t)
{
    struct hb_optim *o = &t->s->optimizer;
    bool changed = false;
    for (int i = 0; i < o->moment_count; i++) {
        changed = changed || o->moments[i] == HB_DT_F32;
        o->moments[i] = o->moments[i] == HB_DT_F32 ? HB_DT_BF16 : o->moments[i];
    }
    if (!changed)
        return "no moments are kept in f32";
    const char *first = hb_dtype_name(o->moments[0]);
    return hb_turn_named(t, o->moment_count == 1
                                ? hb_arena_printf(t->arena, "optimizer.moments = [%s]", first)
                                : hb_arena_printf(t->arena, "optimizer.moments = [%s, %s]", first,
                                                  hb_dtype_name(o->moments[1])));
}

/* --- 11: logits, attention --- */

const char *hb_turn_chunk_loss(struct hb_turn *t)
{
    t->s->loss.chunks *= 8;
    return hb_turn_numbered(t, "loss.chunks", t->s->loss.chunks);
}

const char *hb_turn_flash_kernel(struct hb_turn *t)
{
    bool changed = false;
    for (int i = 0; i < t->s->model.block_count; i++) {
        struct hb_attention *a = &t->blocks[i].attention;
        changed = changed || (a->kind != HB_ATTN_NONE && a->kernel != HB_KERNEL_FLASH);
        a->kernel = HB_KERNEL_FLASH;
    }
    if (!changed)
        return "attention is a flash kernel already";
    return hb_turn_named(t, "attention.kernel = flash");
}

/* What is multiplied follows from the even share alone (XLA:GPU multiplies ragged rows with all
 * experts of a device), but rows beyond the capacity are dropped. */
static const char *even_experts(struct hb_turn *t)
{
    bool changed = false;
    for (int i = 0; i < t->s->model.block_count; i++) {
        struct hb_moe *m = &t->blocks[i].moe;
        if (m->experts == 0 || m->dispatch == HB_DISPATCH_EINSUM)
            continue;
        m->dispatch = HB_DISPATCH_EINSUM;
        changed = true;
    }
    if (!changed)
        return "no experts take rows of any number";
    return hb_turn_named(t, "moe.dispatch = einsum");
}

/* --- 12: EMA --- */

static const char *move_ema(struct hb_turn *t)
{
    if (t->s->optimizer.ema != HB_PLACE_DEVICE)
        return "no moving average is kept on the device";
    t->s->optimizer.ema = HB_PLACE_PINNED_HOST;
    return hb_turn_named(t, "optimizer.ema = pinned_host");
}

/* --- 13: lower precision --- */

static const char *short_params(struct hb_turn *t)
{
    if (t->s->precision.params != HB_DT_F32)
        return "parameters are not in f32";
    t->s->precision.params = HB_DT_BF16;
    return hb_turn_named(t, "precision.params = bf16");
}

static const char *short_logits(struct hb_turn *t)
{
    if (t->s->loss.dot != HB_DT_F32)
        return "the logits' product is not in f32";
    t->s->loss.dot = HB_DT_BF16;
    return hb_turn_named(t, "loss.dot = bf16");
}

/* --- 14: evaluation --- */

static const char *part_evaluation(struct hb_turn *t)
{
    (void)t;
    return "this is the training step alone: an evaluation step compiled apart holds no gradients "
           "and no saved tensors, and lies below its peak";
}

static const struct hb_lever levers[] = {
    {1, false, "shard more", "parameters, gradients and states are split further",
     hb_turn_shard_params},
    {1, true, "shard more", "optimizer states are split over the data axis too",
     hb_turn_shard_states},
    {1, false, "shard more", "the compiler is told to keep activations split over the batch",
     constrain_activations},
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
     hb_turn_split_sequence},
    {6, false, "scanned stack", "one layer's buffers serve all layers", scan_layers},
    {7, false, "nested checkpointing",
     "inputs of outer blocks are kept, of the inner one at a time", nest_scans},
    {8, false, "smaller batch with accumulation", "half the tokens are in flight",
     hb_turn_accumulate},
    {9, true, "donation", "the new state lies in the place of the old", donate},
    {10, true, "leaner optimizer", "factored second moments, no first", lean_optimizer},
    {10, true, "leaner optimizer", "moments in half the bytes", hb_turn_short_moments},
    {11, false, "logits in chunks, attention kernels", "an eighth of the logits at a time",
     hb_turn_chunk_loss},
    {11, true, "logits in chunks, attention kernels", "scores are never materialised",
     hb_turn_flash_kernel},
    {11, true, "logits in chunks, attention kernels",
     "experts take an even share, and drop what is more", even_experts},
    {12, true, "EMA off the device", "the moving average lies on the host", move_ema},
    {13, true, "lower precision", "parameters and gradients in half the bytes", short_params},
    {13, true, "lower precision", "the logits' product in bf16", short_logits},
    {14, true, "a separate evaluation step", "", part_evaluation},
};

enum { LEVERS = sizeof levers / sizeof *levers };
_Static_assert((int)LEVERS <= (int)HB_LEVERS_MOST, "room for all levers");

const struct hb_lever *hb_levers_of(const struct hb_spec *spec, uint32_t *out_count)
{
    if (spec->compiler == HB_TORCH)
        return hb_levers_torch(out_count);
    *out_count = LEVERS;
    return levers;
}
