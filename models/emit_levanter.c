/* Levanter as it is in marin-community/marin (lib/levanter): TrainerConfig, whose mesh is the
 * MeshConfig of utils/mesh.py (axes data, replica and model; heads and mlp lie over model, weights'
 * embed over data), and haliax's ScanCheckpointPolicy (haliax/_src/scan.py) for
 * model.gradient_checkpointing: true, "offload", "nested", or a map of save_carries,
 * save_block_internals, offload_block_internals and nested. Other axes cannot be said. */
#include <inttypes.h>

#include "models/emit.h"

static const char *const names[] = {
#define HB_ENUM(name, text) text,
    HB_TENSOR_NAMES(HB_ENUM)
#undef HB_ENUM
};

static void emit_trainer(struct hb_str *out, const struct hb_spec *s)
{
    static const enum hb_axis missing[] = {HB_AX_SEQUENCE, HB_AX_EXPERT, HB_AX_PIPELINE};
    static const char *const words[] = {"sequence", "expert", "pipeline"};
    int64_t ranks = s->mesh[HB_AX_DATA] * s->mesh[HB_AX_FSDP];
    int64_t each = s->batch.global / (ranks * s->batch.accumulate);
    hb_str_addf(out, "trainer:\n  train_batch_size: %" PRId64 "\n", s->batch.global);
    hb_str_addf(out, "  per_device_parallelism: %" PRId64 "\n", each);
    hb_str_addf(
        out, "  mesh:\n    axes: {replica: %" PRId64 ", data: %" PRId64 ", model: %" PRId64 "}\n",
        s->mesh[HB_AX_DATA], s->mesh[HB_AX_FSDP], s->mesh[HB_AX_TENSOR]);
    for (int i = 0; i < 3; i++)
        if (s->mesh[missing[i]] > 1)
            hb_str_addf(out, "  # cannot be said: mesh.%s = %" PRId64 "\n", words[i],
                        s->mesh[missing[i]]);
    if (s->optimizer.offload == HB_PLACE_PINNED_HOST)
        hb_str_add(out, "  # cannot be said: optimizer states on the host\n");
    if (s->loss.chunks > 1)
        hb_str_addf(out,
                    "  # cannot be said: %" PRId64 " loss chunks (its fused loss has blocks "
                    "over the vocabulary)\n",
                    s->loss.chunks);
}

static void emit_names(struct hb_str *out, const char *key, uint32_t mask)
{
    const char *comma = "";
    if (!mask)
        return;
    hb_str_addf(out, "    %s: [", key);
    for (int t = 0; t < HB_TN_COUNT; t++)
        if (mask >> t & 1) {
            hb_str_addf(out, "%s%s", comma, names[t]);
            comma = ", ";
        }
    hb_str_add(out, "]\n");
}

static void emit_policy(struct hb_str *out, const struct hb_spec *s, const struct hb_remat *r)
{
    uint32_t input = 1u << HB_TN_LAYER_IN;
    bool nested = s->stack.form == HB_FORM_NESTED, offload = (r->offload & input) != 0;
    hb_str_add(out, "  gradient_checkpointing:\n");
    if (nested && s->stack.outer == 0)
        hb_str_add(out, "    nested: true\n");
    else if (nested)
        hb_str_addf(out, "    nested: %" PRId64 "\n", s->stack.outer);
    hb_str_addf(out, "    save_carries: %s\n", offload ? "offload" : "true");
    emit_names(out, "save_block_internals", r->save & ~input);
    emit_names(out, "offload_block_internals", r->offload & ~input);
    if ((r->save | r->offload) & ~input)
        hb_str_add(out, "    # these names must be given in the model (tree_checkpoint_name); they "
                        "are hbmsim's\n");
}

static void emit_model(struct hb_str *out, const struct hb_spec *s)
{
    const struct hb_model *m = &s->model;
    const struct hb_remat *r = &m->blocks[0].remat;
    hb_str_addf(out, "model:  # sequences of %" PRId64 " tokens\n", s->batch.seq);
    switch (r->policy) {
    case HB_POLICY_FULL:
    case HB_POLICY_NAMES:
        emit_policy(out, s, r);
        break;
    case HB_POLICY_NONE:
        hb_str_add(out, "  gradient_checkpointing: false\n");
        break;
    case HB_POLICY_DOTS:
    case HB_POLICY_DOTS_NO_BATCH:
        hb_str_add(out, "  # cannot be said: results of all products are kept\n"
                        "  gradient_checkpointing: save_all\n");
        break;
    }
    if (m->block_count > 1)
        hb_str_add(out, "  # cannot be said: policies of further blocks; Levanter has one for its "
                        "stack\n");
}

void hb_emit_levanter(struct hb_str *out, const struct hb_spec *spec)
{
    emit_trainer(out, spec);
    emit_model(out, spec);
}
