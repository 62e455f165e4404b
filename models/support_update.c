/* What of compiler: torch has no memory yet of the update: see support_torch.h. */
#include "models/refusal.h"
#include "models/schema.h"
#include "models/support_torch.h"

bool hb_model_has_experts(const struct hb_model *m)
{
    for (int i = 0; i < m->block_count; i++)
        if (m->blocks[i].moe.experts)
            return true;
    return false;
}

/* A hook of each parameter's: of one device, or of FSDP2's shards, whose gradients are whole after
 * one pass. */
static bool check_in_backward(const struct hb_refusing *r, const struct hb_spec *s)
{
    static const char *const key = "optimizer.in_backward";
    bool fsdp = s->mesh[HB_AX_FSDP] > 1, mega = s->runtime.framework == HB_FW_MEGATRON;
    const struct hb_refusal gaps[] = {
        {mega, key, "is torchtitan's and torchtune's; use false"},
        {!mega && s->precision.master, key, "ZeRO updates after the pass; use false"},
        {!fsdp && s->mesh[HB_AX_DATA] > 1, key,
         "not simulated with DistributedDataParallel; use false, or mesh.fsdp"},
        {s->batch.accumulate > 1, key, "updates after each pass; use batch.accumulate: 1"},
        {!mega && s->mesh[HB_AX_PIPELINE] > 1, key,
         "torchtitan has none with pipelines; use false"},
        {!mega && hb_titan_expert_ways(s) > 1, key,
         "torchtitan has none with expert parallelism; use false"},
        {fsdp && !mega && hb_model_has_experts(&s->model), key,
         "not simulated with experts and FSDP yet; use false"},
        {s->runtime.fsdp1, key, "FSDP1 has one parameter a unit; use false, or FSDP2"},
        {fsdp && s->loss.chunks > 1, key, "not simulated with loss.chunks and FSDP yet; use false"},
        {fsdp && s->loss.kind != HB_LOSS_LM, key,
         "not simulated with this loss.kind yet; use false"},
        {fsdp && s->optimizer.params_offload != HB_PLACE_NONE, key,
         "not simulated with params_offload yet; use false"},
    };
    return !s->optimizer.in_backward || HB_REFUSE(r, gaps);
}

static bool has_mla(const struct hb_model *m)
{
    for (int i = 0; i < m->block_count; i++)
        if (m->blocks[i].attention.kind == HB_ATTN_MLA)
            return true;
    return false;
}

/* Rules that torch runs op by op: Muon and Adafactor of whole weights, where nothing is split. */
static bool check_rule(const struct hb_refusing *r, const struct hb_spec *s, bool split, bool zero)
{
    static const char *const key = "optimizer.name";
    const struct hb_optim *o = &s->optimizer;
    bool muon = o->name == HB_OPT_MUON, factors = o->name == HB_OPT_ADAFACTOR;
    bool like = o->moment_count == 0 || o->moments[0] == s->precision.params;
    const struct hb_refusal gaps[] = {
        {muon && split, key,
         "torch.optim.Muon is simulated of whole weights only (one device, or copies), as DTensor "
         "chooses how each product of shards is exchanged; use adamw or lion, or mesh.fsdp and "
         "mesh.tensor 1"},
        {factors && split, key,
         "torch.optim.Adafactor refuses shards of FSDP2 and tensor parallelism (their norms are "
         "partial); use adamw or lion, or mesh.fsdp and mesh.tensor 1"},
        {zero || s->runtime.fsdp1, key, "is simulated without ZeRO and FSDP1 only; use adamw"},
        {muon && o->others != HB_OTHERS_ADAMW, "optimizer.others",
         "torch.optim.Muon takes no norms and is not for tables; use adamw"},
        {hb_model_has_experts(&s->model), key, "is not simulated with experts yet; use adamw"},
        {muon && has_mla(&s->model), key, "muon is not simulated with mla yet; use adamw"},
        {factors && o->moment_count > 0, "optimizer.moments",
         "torch.optim.Adafactor has no momentum; use []"},
        {!like, "optimizer.moments", "torch keeps its state as the parameters; use their dtype"},
        {o->offload != HB_PLACE_NONE, "optimizer.offload",
         "is simulated with adamw only; use none"},
        {o->in_backward, "optimizer.in_backward", "is simulated with adamw only yet; use false"},
        {s->loss.kind != HB_LOSS_LM, "loss.kind", "only lm is simulated with this rule yet"},
    };
    return HB_REFUSE(r, gaps);
}

/* Lion of DTensors, by torch's own ops (lion-pytorch). */
static bool check_lion(const struct hb_refusing *r, const struct hb_spec *s)
{
    const struct hb_optim *o = &s->optimizer;
    const struct hb_refusal gaps[] = {
        {o->moments[0] != s->precision.params, "optimizer.moments",
         "of shards Lion is lion-pytorch's, which keeps its state as the parameters; use their "
         "dtype"},
        {o->params_offload != HB_PLACE_NONE, "optimizer.params_offload",
         "not simulated with lion yet; use none"},
        {o->in_backward, "optimizer.in_backward", "not simulated with lion and shards yet"},
        {s->loss.kind != HB_LOSS_LM, "loss.kind", "only lm is simulated with lion and shards yet"},
    };
    return HB_REFUSE(r, gaps);
}

/* Updates that make nothing but their states: Adam's fused one, torch.optim.SGD (Megatron's
 * FusedSGD, which its distributed optimizer refuses), and Lion's kernels of DeepSpeed and
 * bitsandbytes, which take plain tensors. */
static bool check_optimizer(const struct hb_refusing *r, const struct hb_spec *s)
{
    static const char *const key = "optimizer.name";
    enum hb_optimizer name = s->optimizer.name;
    bool mega = s->runtime.framework == HB_FW_MEGATRON;
    bool shared = s->sharding.optimizer_over_data || s->mesh[HB_AX_FSDP] > 1;
    bool split = hb_titan_shard_ranks(s) > 1 || s->mesh[HB_AX_TENSOR] > 1;
    bool zero = s->precision.master;
    const struct hb_refusal gaps[] = {
        {mega && name == HB_OPT_ADAFACTOR, key, "adafactor is not megatron's; use adamw or sgd"},
        {mega && name == HB_OPT_MUON, key,
         "muon's temporaries are not simulated with megatron; use adamw or sgd"},
        {mega && (name == HB_OPT_SGD || name == HB_OPT_MOMENTUM) && shared, key,
         "Megatron's distributed optimizer and FSDP take Adam alone; use adamw, or "
         "sharding.optimizer_over_data: false and mesh.fsdp 1"},
        {mega && name == HB_OPT_LION, key, "megatron's is not simulated; use adamw"},
    };
    bool ok = HB_REFUSE(r, gaps);
    if (!mega && (name == HB_OPT_MUON || name == HB_OPT_ADAFACTOR))
        ok = check_rule(r, s, split, zero) && ok;
    if (hb_titan_lion_is_eager(s))
        ok = check_lion(r, s) && ok;
    return ok;
}

/* torchtitan's average (components/ema.py): a copy of each parameter, or, kept on the host, one to
 * make it in. */
static bool check_ema(const struct hb_refusing *r, const struct hb_spec *s)
{
    static const char *const key = "optimizer.ema";
    const struct hb_refusal gaps[] = {
        {s->runtime.framework == HB_FW_MEGATRON || s->runtime.framework == HB_FW_TORCHTUNE, key,
         "is simulated as torchtitan has it; use none, or runtime.framework: torchtitan"},
        {s->precision.master || s->runtime.fsdp1, key,
         "is simulated with FSDP2 and whole copies only; use none"},
        {s->optimizer.params_offload != HB_PLACE_NONE, key,
         "not simulated with params_offload yet; use none"},
        {s->optimizer.in_backward, key,
         "torchtitan makes it after the optimizer's step, which in_backward has not; use none"},
        {s->loss.kind != HB_LOSS_LM, key, "not simulated with this loss.kind yet; use none"},
    };
    return s->optimizer.ema == HB_PLACE_NONE || HB_REFUSE(r, gaps);
}

bool hb_support_torch_update(const struct hb_refusing *r, const struct hb_spec *s)
{
    bool ok = check_optimizer(r, s);
    ok &= check_ema(r, s);
    return check_in_backward(r, s) && ok;
}
