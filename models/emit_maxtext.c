/* MaxText: keys of src/maxtext/configs/base.yml at e591f30 (August 2026): the mesh (ici_*), the
 * batch, remat_policy with its list of tensors that each take device, offload or remat, host
 * offload of optimizer and parameters, num_vocab_tiling for loss chunks, the pipeline. */
#include <inttypes.h>

#include "models/emit.h"

#define BIT(name) (1u << HB_TN_##name)

/* A tensor's key; the pairs that MaxText names in mixtures otherwise than in dense layers. */
static const struct {
    uint32_t tensor;
    const char *dense;
    const char *experts;
} tensors[] = {{BIT(Q), "query_proj", "query_proj"},
               {BIT(K), "key_proj", "key_proj"},
               {BIT(V), "value_proj", "value_proj"},
               {BIT(QKV), "qkv_proj", "qkv_proj"},
               {BIT(MLA_Q), "mla_q", "mla_q"},
               {BIT(MLA_KV), "mla_kv", "mla_kv"},
               {BIT(ATTN_CTX), "context", "context"},
               {BIT(ATTN_OUT), "out_proj", "out_proj"},
               {BIT(MLP_GATE), "mlpwi_0", "moe_mlpwi_0"},
               {BIT(MLP_UP), "mlpwi_1", "moe_mlpwi_1"},
               {BIT(MLP_DOWN), "mlpwo", "mlpwo"},
               {BIT(SHARED_GATE), NULL, "mlpwi_0"},
               {BIT(SHARED_UP), NULL, "mlpwi_1"},
               {BIT(SHARED_DOWN), NULL, "mlpwo"},
               {BIT(MOE_OUT), NULL, "moe_mlpwo"}};

static const char *const names[] = {
#define HB_ENUM(name, text) text,
    HB_TENSOR_NAMES(HB_ENUM)
#undef HB_ENUM
};

static void emit_mesh(struct hb_str *out, const struct hb_spec *s)
{
    static const char *const axes[] = {"ici_data_parallelism",   "ici_fsdp_parallelism",
                                       "ici_tensor_parallelism", "ici_context_parallelism",
                                       "ici_expert_parallelism", "ici_pipeline_parallelism"};
    for (int a = 0; a < HB_AX_COUNT; a++)
        hb_str_addf(out, "%s=%" PRId64 "\n", axes[a], s->mesh[a]);
    hb_str_add(out, "dcn_data_parallelism=1\n");
    if (s->sharding.residual_over_tensor)
        hb_str_add(out, "# residual_over_tensor: move the tensor axis to "
                        "ici_tensor_sequence_parallelism\n");
    if (s->sharding.optimizer_over_data)
        hb_str_add(out, "shard_optimizer_over_data=true\n");
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

static void emit_tensors(struct hb_str *out, const struct hb_block *b)
{
    const struct hb_remat *r = &b->remat;
    uint32_t known = BIT(LAYER_IN);
    hb_str_add(out, "remat_policy=custom\n");
    hb_str_addf(out, "decoder_layer_input=%s\n", r->offload & known ? "offload" : "device");
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        const char *key = b->moe.experts ? tensors[i].experts : tensors[i].dense;
        if (!key)
            continue;
        known |= tensors[i].tensor;
        if (r->offload & tensors[i].tensor)
            hb_str_addf(out, "%s=offload\n", key);
        else if (r->save & tensors[i].tensor)
            hb_str_addf(out, "%s=device\n", key);
    }
    for (int t = 0; t < HB_TN_ITER_IN; t++)
        if ((r->save | r->offload) & ~known & 1u << t)
            hb_str_addf(out, "# cannot be said: %s is kept; MaxText has no name for it\n",
                        names[t]);
}

static void emit_remat(struct hb_str *out, const struct hb_block *b)
{
    switch (b->remat.policy) {
    case HB_POLICY_FULL:
        if (b->remat.offload)
            emit_tensors(out, b);
        else
            hb_str_add(out, "remat_policy=full\n");
        return;
    case HB_POLICY_NAMES:
        emit_tensors(out, b);
        return;
    case HB_POLICY_NONE:
        hb_str_add(out, "# cannot be said: nothing is rematerialised; nearest:\n"
                        "remat_policy=minimal_with_context\n");
        return;
    case HB_POLICY_DOTS:
    case HB_POLICY_DOTS_NO_BATCH:
        hb_str_add(out, "# cannot be said: results of all products are kept; nearest:\n"
                        "remat_policy=minimal\n");
        return;
    }
}

static bool same_remat(const struct hb_remat *a, const struct hb_remat *b)
{
    return a->policy == b->policy && a->save == b->save && a->offload == b->offload;
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
        if (!same_remat(&m->blocks[i].remat, &most->remat))
            hb_str_addf(out,
                        "# cannot be said: the %" PRId64 " layers of '%s' have another policy; "
                        "MaxText has one for all\n",
                        m->blocks[i].repeat, m->blocks[i].name);
}

void hb_emit_maxtext(struct hb_str *out, const struct hb_spec *s)
{
    emit_mesh(out, s);
    emit_batch(out, s);
    emit_policies(out, &s->model);
    hb_str_addf(out, "scan_layers=%s\n", s->stack.form == HB_FORM_LOOP ? "false" : "true");
    if (s->stack.form == HB_FORM_NESTED)
        hb_str_add(out, "# cannot be said: nested scans; MaxText scans once over the layers\n");
    if (s->mesh[HB_AX_PIPELINE] > 1)
        hb_str_addf(out,
                    "num_pipeline_microbatches=%" PRId64 "\nnum_pipeline_repeats=%" PRId64 "\n",
                    s->pipeline.microbatches, s->pipeline.repeats);
}
