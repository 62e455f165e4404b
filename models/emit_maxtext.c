/* MaxText: keys of src/maxtext/configs/base.yml at e591f30 (August 2026): the mesh (ici_*), the
 * batch, remat_policy with its list of tensors that each take device, offload or remat, host
 * offload of optimizer and parameters, num_vocab_tiling for loss chunks, the pipeline. */
#include <inttypes.h>

#include "base/size.h"
#include "models/emit.h"
#include "models/emit_parts.h"
#include "models/maxtext.h"
#include "models/spec_names.h"

/* How many of an axis lie between hosts of a GPU or slices: the outer axes take what there is. */
static void emit_mesh(struct hb_str *out, const struct hb_spec *s, int64_t hosts)
{
    static const char *const axes[] = {"data", "fsdp", "tensor", "context", "expert", "pipeline"};
    static const enum hb_axis outer[] = {HB_AX_DATA, HB_AX_PIPELINE, HB_AX_FSDP};
    int64_t between[HB_AX_COUNT] = {1, 1, 1, 1, 1, 1};
    int64_t nodes = s->compiler == HB_XLA_GPU ? hosts : 1;
    for (int i = 0; i < 3; i++) {
        int64_t part = nodes;
        while (part > 1 && (nodes % part || s->mesh[outer[i]] % part))
            part--;
        between[outer[i]] = part > 1 ? part : 1;
        nodes /= between[outer[i]];
    }
    bool rows = s->sharding.residual_over_tensor && s->sharding.residual_split == HB_SPLIT_SEQUENCE;
    for (int a = 0; a < HB_AX_COUNT; a++)
        hb_str_addf(out, "ici_%s_parallelism=%" PRId64 "\n",
                    a == HB_AX_TENSOR && rows ? "tensor_sequence" : axes[a],
                    s->mesh[a] / between[a]);
    for (int a = 0; a < HB_AX_COUNT; a++)
        if (a == HB_AX_DATA || between[a] > 1)
            hb_str_addf(out, "dcn_%s_parallelism=%" PRId64 "\n", axes[a], between[a]);
    if (s->sharding.optimizer_over_data)
        hb_str_add(out, "shard_optimizer_over_data=true\n");
    if (s->mesh[HB_AX_SEQUENCE] > 1) {
        static const char *const ways[] = {[HB_SEQ_RING] = "ring",
                                           [HB_SEQ_ALL_TO_ALL] = "ulysses",
                                           [HB_SEQ_ALL_GATHER] = "all_gather"};
        hb_str_addf(out, "context_parallel_strategy=%s\ncontext_parallel_load_balance=%s\n",
                    ways[s->sharding.sequence_kind],
                    s->sharding.sequence_balance ? "true" : "false");
    }
}

static void emit_batch(struct hb_str *out, const struct hb_spec *s)
{
    double each =
        (double)s->batch.global / ((double)s->hardware.count * (double)s->batch.accumulate);
    hb_str_addf(out, "per_device_batch_size=%.10g\nmax_target_length=%" PRId64 "\n", each,
                s->batch.seq);
    hb_str_addf(out, "gradient_accumulation_steps=%" PRId64 "\n", s->batch.accumulate);
    hb_str_addf(out, "num_vocab_tiling=%" PRId64 "\n", s->loss.chunks);
    hb_str_addf(out, "optimizer_memory_host_offload=%s\n",
                s->optimizer.offload == HB_PLACE_PINNED_HOST ? "true" : "false");
    hb_str_addf(out, "parameter_memory_host_offload=%s\n",
                s->optimizer.params_offload == HB_PLACE_PINNED_HOST ? "true" : "false");
}

/* `custom`: a place for each tensor. */
static void emit_tensors(struct hb_str *out, const struct hb_block *b)
{
    const struct hb_remat *r = &b->remat;
    uint32_t has = hb_maxtext_has(b);
    uint32_t known = 0;
    hb_str_add(out, "remat_policy=custom\n");
    for (int i = 0; i < HB_MAXTEXT_TENSORS; i++) {
        const struct hb_maxtext_tensor *t = &hb_maxtext_tensors[i];
        uint32_t bits = (b->moe.experts ? t->experts : t->dense) & has;
        bool offload = bits && (bits & r->offload) == bits;
        bool save = bits && (bits & r->save) == bits;
        if (i == 0 || offload || (save && (bits & ~known)))
            hb_str_addf(out, "%s=%s\n", t->key, offload ? "offload" : "device");
        known |= i == 0 || offload || save ? bits : 0;
    }
    for (int t = 0; t < HB_TN_ITER_IN; t++)
        if ((r->save | r->offload) & ~known & 1u << t)
            hb_str_addf(out, "# cannot be said: %s is kept; MaxText has no name for it\n",
                        hb_tensor_names[t]);
}

static void emit_remat(struct hb_str *out, const struct hb_block *b)
{
    const struct hb_maxtext_policy *named = hb_maxtext_policy_of(b);
    if (named) {
        hb_str_addf(out, "remat_policy=%s\n", named->name);
        return;
    }
    switch (b->remat.policy) {
    case HB_POLICY_FULL:
    case HB_POLICY_NAMES:
        emit_tensors(out, b);
        return;
    case HB_POLICY_NONE:
        hb_str_add(out, "remat_policy=none\n");
        return;
    case HB_POLICY_DOTS:
    case HB_POLICY_DOTS_NO_BATCH:
        hb_str_add(out, "# cannot be said: results of all products are kept; nearest:\n"
                        "remat_policy=minimal\n");
        return;
    }
}

/* MaxText has one policy: that of the block with most layers. */
static void emit_policies(struct hb_str *out, const struct hb_model *m)
{
    const struct hb_block *most = &m->blocks[0];
    for (int i = 1; i < m->block_count; i++)
        if (m->blocks[i].repeat > most->repeat)
            most = &m->blocks[i];
    emit_remat(out, most);
    for (int i = 0; i < m->block_count; i++)
        if (!hb_remat_same(&m->blocks[i].remat, &most->remat))
            hb_str_addf(out,
                        "# cannot be said: the %" PRId64 " layers of '%s' have another policy; "
                        "MaxText has one for all\n",
                        m->blocks[i].repeat, m->blocks[i].name);
}

/* ---- types, kernels, loss */

static const char *type_name(enum hb_dtype type)
{
    return type == HB_DT_BF16 ? "bfloat16" : type == HB_DT_F16 ? "float16" : "float32";
}

static void emit_types(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_precision *p = &s->precision;
    const struct hb_optim *o = &s->optimizer;
    bool narrow =
        p->grads == HB_GRADS_BF16 || (p->grads == HB_GRADS_PARAMS && p->params == HB_DT_BF16);
    const char *name = o->name == HB_OPT_SGD ? "sgd" : o->name == HB_OPT_MUON ? "muon" : "adamw";
    hb_str_addf(out, "weight_dtype=%s\ndtype=%s\ngrad_dtype=%s\nopt_type=%s\n",
                type_name(p->params), type_name(p->compute), narrow ? "bfloat16" : "float32", name);
    if (o->moment_count)
        hb_str_addf(out, "mu_dtype=%s\n", type_name(o->moments[0]));
    hb_str_addf(out, "gradient_clipping_threshold=%s\n", o->clip ? "1.0" : "0.0");
    if (o->name != HB_OPT_ADAMW && o->name != HB_OPT_SGD && o->name != HB_OPT_MUON)
        hb_str_add(out, "# cannot be said: this optimizer\n");
}

/* qwix: scales of rows and columns, or a fixed range, without which no weight is gathered in 8
 * bit. */
static void emit_fp8(struct hb_str *out, const struct hb_precision *p)
{
    const char *method = p->fp8 == HB_FP8_TENSORWISE ? "fixed,-224,224" : "absmax";
    if (p->fp8 == HB_FP8_NONE)
        return;
    hb_str_addf(out,
                "quantization=fp8_full\nuse_qwix_quantization=True\n"
                "weight_quantization_calibration_method=%s\n"
                "act_quantization_calibration_method=%s\n",
                method, method);
    if (p->fp8_gather)
        hb_str_add(out, "use_tokamax_gmm=True\nshard_exp_on_fsdp=True\n");
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void emit_kernels(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_attention *a = &s->model.blocks[0].attention;
    bool naive = a->kernel == HB_KERNEL_NAIVE;
    hb_str_addf(out, "attention=%s\n", naive ? "dot_product" : "flash");
    if (naive)
        hb_str_addf(out, "float32_logits=%s\n", truth(a->softmax == HB_DT_F32));
    if (a->flash == HB_FLASH_TOKAMAX)
        hb_str_add(out, "use_tokamax_splash=true\n");
    if (a->fused_backward)
        hb_str_add(out, "sa_use_fused_bwd_kernel=true\n");
    if (a->dq_parts == 3 && a->flash == HB_FLASH_TOKAMAX)
        hb_str_add(out, "dq_reduction_steps=3\n");
    else if (a->dq_parts)
        hb_str_addf(out, "sa_block_kv_dkv=%" PRId64 "\n", hb_div_up(s->batch.seq, a->dq_parts));
    hb_str_addf(out, "logits_dot_in_fp32=%s\ncast_logits_to_fp32=%s\nuse_iota_embed=%s\n",
                truth(s->loss.dot == HB_DT_F32), truth(s->loss.softmax == HB_DT_F32),
                truth(s->lookup == HB_LOOKUP_ONEHOT));
}

static void emit_experts(struct hb_str *out, const struct hb_model *m)
{
    const struct hb_moe *e = &m->blocks[m->block_count - 1].moe;
    bool ragged = e->dispatch == HB_DISPATCH_RAGGED || e->dispatch == HB_DISPATCH_ALLGATHER;
    if (!e->experts)
        return;
    hb_str_addf(out, "sparse_matmul=%s\n", truth(ragged));
    if (ragged)
        hb_str_addf(out, "megablox=%s\nuse_tokamax_gmm=%s\n", truth(e->kernel != HB_MOE_RAGGED_DOT),
                    truth(e->kernel == HB_MOE_TOKAMAX));
    if (e->dispatch == HB_DISPATCH_EINSUM)
        hb_str_addf(out, "capacity_factor=%.10g\n", e->capacity_factor);
    if (ragged && e->buffer_factor > 0)
        hb_str_addf(out, "ragged_buffer_factor=%.10g\n", e->buffer_factor);
    hb_str_addf(out, "float32_gate_logits=%s\nfloat32_weight_sum=%s\n",
                truth(e->router_dtype == HB_DT_F32), truth(e->weight_sum == HB_ACT_F32));
}

static void emit_pipeline(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_pipe *p = &s->pipeline;
    int64_t layers = 0;
    for (int i = 0; i < s->model.block_count; i++)
        layers += s->model.blocks[i].repeat;
    int64_t each = layers / (s->mesh[HB_AX_PIPELINE] * p->repeats);
    hb_str_addf(out,
                "num_pipeline_microbatches=%" PRId64 "\nnum_pipeline_repeats=%" PRId64
                "\nnum_layers_per_pipeline_stage=%" PRId64 "\n",
                p->microbatches, p->repeats, each > 0 ? each : 1);
    hb_str_addf(out,
                "scan_layers_per_stage=%s\nset_remat_policy_on_pipeline_iterations=%s\n"
                "set_remat_policy_on_layers_per_stage=%s\n",
                truth(s->stack.form == HB_FORM_SCAN), truth(p->remat_iteration),
                truth(p->remat_layer));
    if (p->gather != HB_GATHER_ITERATION)
        hb_str_addf(out, "pipeline_fsdp_ag_%s=true\n",
                    p->gather == HB_GATHER_ONCE ? "once" : "per_repeat");
    if (p->delay)
        hb_str_add(out, "pipeline_delay_activation_forwarding=true\n");
    if (p->unroll)
        hb_str_add(out, "scan_pipeline_iterations=false\n");
}

void hb_emit_maxtext(struct hb_str *out, const struct hb_spec *spec, const char *data_dir)
{
    hb_emit_maxtext_model(out, spec, data_dir);
    hb_emit_maxtext_run(out, spec, data_dir);
}

void hb_emit_maxtext_run(struct hb_str *out, const struct hb_spec *s, const char *data_dir)
{
    emit_mesh(out, s, hb_hosts_of(out->arena, s, data_dir).count);
    emit_batch(out, s);
    emit_types(out, s);
    emit_fp8(out, &s->precision);
    emit_kernels(out, s);
    emit_experts(out, &s->model);
    emit_policies(out, &s->model);
    if (s->mesh[HB_AX_PIPELINE] > 1)
        emit_pipeline(out, s);
    else
        hb_str_addf(out, "scan_layers=%s\nparam_scan_axis=%" PRId64 "\n",
                    truth(s->stack.form != HB_FORM_LOOP), s->stack.axis);
    if (s->stack.form == HB_FORM_NESTED)
        hb_str_add(out, "# cannot be said: nested scans; MaxText scans once over the layers\n");
}
