/* Defaults that follow from other keys: the rows of the table whose default begins with '='.
 * Runs after every section was read without an error, before the cross-checks. */
#include "models/schema_key.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "models/schema.h"
#include "models/spec_names.h"

enum { DEFAULT_DEVICES = 8 };

static void set_if_unset(int64_t *field, int64_t value)
{
    if (*field == HB_KEY_UNSET)
        *field = value;
}

/* Head sizes; a width that d_model does not give is left at 0 for the checks to name. */
static void fill_attention(const struct hb_model *model, struct hb_attention *a)
{
    int64_t head_dim = a->kind == HB_ATTN_MLA           ? a->qk_nope_head_dim + a->qk_rope_head_dim
                       : model->d_model % a->heads == 0 ? model->d_model / a->heads
                                                        : 0;
    set_if_unset(&a->kv_heads, a->heads);
    set_if_unset(&a->head_dim, head_dim);
}

static bool name_taken(const struct hb_model *model, const char *name)
{
    for (int i = 0; i < model->block_count; i++)
        if (model->blocks[i].name && hb_str_same(model->blocks[i].name, name))
            return true;
    return false;
}

/* dense, moe, and where that is taken dense2, moe2, ... n: the first that may be free. */
static const char *default_name(struct hb_arena *arena, const struct hb_model *model,
                                const char *stem, int *n)
{
    for (;; ++*n) {
        const char *name = *n == 1 ? stem : hb_arena_printf(arena, "%s%d", stem, *n);
        if (!name_taken(model, name))
            return name;
    }
}

static void fill_blocks(struct hb_reading *r, struct hb_block *blocks)
{
    const struct hb_model *model = &r->spec->model;
    int dense = 1, moe = 1;
    for (int i = 0; i < model->block_count; i++) {
        struct hb_block *b = &blocks[i];
        fill_attention(model, &b->attention);
        if (b->moe.experts)
            set_if_unset(&b->moe.shared_d_ff, hb_mul_sat(b->moe.shared_experts, b->moe.d_ff));
        if (!b->name)
            b->name = b->moe.experts ? default_name(r->arena, model, "moe", &moe)
                                     : default_name(r->arena, model, "dense", &dense);
        b->remat = r->spec->remat.all;
    }
}

/* One entry of remat.per_block. With a policy of its own, save and offload begin empty. */
static bool fill_own_remat(struct hb_reading *r, const struct hb_scope *scope,
                           const struct hb_node *node, struct hb_remat *remat)
{
    struct hb_remat own = *remat;
    if (hb_node_find(node, "policy"))
        own = (struct hb_remat){.policy = remat->policy};
    if (!hb_section_read(r, scope, HB_SEC_OWN_REMAT, node, node->loc, &own))
        return false;
    *remat = own;
    return true;
}

static bool fail_block_name(struct hb_reading *r, const struct hb_scope *scope,
                            const struct hb_node *node)
{
    const struct hb_model *model = &r->spec->model;
    const char **names =
        hb_arena_alloc(r->arena, (size_t)model->block_count + 1, sizeof(const char *));
    struct hb_str known;
    hb_str_init(&known, r->arena);
    for (int i = 0; i < model->block_count; i++) {
        names[i] = model->blocks[i].name;
        hb_str_addf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = hb_str_nearest(node->key, names);
    if (near)
        return hb_reading_fail(r, scope, node->key_loc,
                               "no block has this name; did you mean '%s'?", near);
    return hb_reading_fail(r, scope, node->key_loc, "no block has this name; allowed: %s",
                           known.text);
}

static bool fill_per_block(struct hb_reading *r, struct hb_block *blocks)
{
    struct hb_scope remat = {NULL, "remat", 0};
    struct hb_scope per_block = {&remat, "per_block", 0};
    bool ok = true;
    const struct hb_node *node = r->per_block ? r->per_block->first : NULL;
    for (; node; node = node->next) {
        struct hb_scope scope = {&per_block, node->key, 0};
        struct hb_block *found = NULL;
        for (int i = 0; i < r->spec->model.block_count && !found; i++)
            if (hb_str_same(blocks[i].name, node->key))
                found = &blocks[i];
        ok &= found ? fill_own_remat(r, &scope, node, &found->remat)
                    : fail_block_name(r, &scope, node);
    }
    return ok;
}

static int64_t mesh_product(const int64_t *mesh)
{
    int64_t product = 1;
    for (int a = 0; a < HB_AX_COUNT; a++)
        product = hb_mul_sat(product, mesh[a]);
    return product;
}

/* `rest` becomes what the other axes leave of the devices. */
static bool fill_rest(struct hb_reading *r, const struct hb_node *map)
{
    int64_t *mesh = r->spec->mesh, count = r->spec->hardware.count;
    struct hb_scope mesh_scope = {NULL, "mesh", 0};
    int rest = -1;
    for (int a = 0; a < HB_AX_COUNT; a++) {
        if (mesh[a] != HB_KEY_REST)
            continue;
        struct hb_scope scope = {&mesh_scope, hb_axis_names[a], 0};
        struct hb_loc loc = hb_node_find(map, hb_axis_names[a])->loc;
        if (count == HB_KEY_UNSET)
            return hb_reading_fail(r, &scope, loc,
                                   "the rest of how many devices? hardware.count says it");
        if (rest >= 0)
            return hb_reading_fail(r, &scope, loc, "rest stands at mesh.%s already",
                                   hb_axis_names[rest]);
        rest = a;
        mesh[a] = 1;
    }
    if (rest < 0)
        return true;
    int64_t others = mesh_product(mesh);
    struct hb_scope scope = {&mesh_scope, hb_axis_names[rest], 0};
    if (count % others)
        return hb_reading_fail(r, &scope, hb_node_find(map, hb_axis_names[rest])->loc,
                               "hardware.count %" PRId64 " is no multiple of the %" PRId64
                               " devices of the other axes",
                               count, others);
    mesh[rest] = count / others;
    return true;
}

/* Without a mesh all devices are fsdp. */
static bool fill_mesh(struct hb_reading *r, const struct hb_node *root)
{
    struct hb_spec *spec = r->spec;
    const struct hb_node *mesh = hb_node_find(root, "mesh");
    int64_t devices = spec->hardware.count == HB_KEY_UNSET ? DEFAULT_DEVICES : spec->hardware.count;
    set_if_unset(&spec->mesh[HB_AX_FSDP], mesh && mesh->count ? 1 : devices);
    if (!fill_rest(r, mesh))
        return false;
    set_if_unset(&spec->hardware.count, mesh_product(spec->mesh));
    set_if_unset(&spec->sharding.expert_tensor, spec->mesh[HB_AX_TENSOR]);
    return true;
}

/* Sequences that are told by device or by tokens. */
static bool fill_batch(struct hb_reading *r, const struct hb_node *root)
{
    struct hb_batch *b = &r->spec->batch;
    const struct hb_node *map = hb_node_find(root, "batch");
    const struct hb_node *global = hb_node_find(map, "global");
    struct hb_scope batch = {NULL, "batch", 0};
    struct hb_scope each = {&batch, "per_device", 0};
    struct hb_scope tokens = {&batch, "tokens", 0};
    bool by_device = b->per_device > 0;
    const struct hb_scope *scope = by_device ? &each : &tokens;
    if (!by_device && !b->tokens)
        return true;
    struct hb_loc loc = hb_node_find(map, scope->name)->loc;
    if (global || (by_device && b->tokens))
        return hb_reading_fail(
            r, scope, loc, "is said beside batch.%s; allowed: one of global, per_device, tokens",
            global ? "global" : "tokens");
    double all = by_device ? b->per_device * (double)r->spec->hardware.count * (double)b->accumulate
                           : (double)b->tokens / (double)b->seq;
    if (!(all >= 1) || all > 0x1p40 || all > floor(all))
        return hb_reading_fail(r, scope, loc,
                               "makes %.10g sequences a step; allowed: a whole number from 1", all);
    b->global = (int64_t)all;
    b->per_device = 0;
    b->tokens = 0;
    return true;
}

/* torch.optim makes states like its parameters (zeros_like); who has a master copy updates that. */
static enum hb_dtype state_dtype(const struct hb_spec *spec)
{
    bool like = spec->compiler == HB_TORCH && spec->runtime.framework != HB_FW_MEGATRON &&
                !spec->precision.master;
    return like ? spec->precision.params : HB_DT_F32;
}

static void fill_moments(struct hb_optim *optimizer, enum hb_dtype dtype)
{
    static const int counts[] = {[HB_OPT_SGD] = 0,  [HB_OPT_MOMENTUM] = 1,  [HB_OPT_ADAMW] = 2,
                                 [HB_OPT_LION] = 1, [HB_OPT_ADAFACTOR] = 0, [HB_OPT_MUON] = 1};
    if (optimizer->moment_count == HB_KEY_UNSET) {
        optimizer->moment_count = counts[optimizer->name];
        optimizer->moments[0] = dtype;
        optimizer->moments[1] = dtype;
    }
}

bool hb_schema_fill(struct hb_reading *r, const struct hb_node *root)
{
    struct hb_spec *spec = r->spec;
    /* The reader made the blocks, so they may be written here. */
    struct hb_block *blocks =
        hb_arena_alloc(r->arena, (size_t)spec->model.block_count, sizeof *blocks);
    memcpy(blocks, spec->model.blocks, (size_t)spec->model.block_count * sizeof *blocks);
    spec->model.blocks = blocks;
    if (!fill_mesh(r, root) || !fill_batch(r, root))
        return false;
    fill_moments(&spec->optimizer, state_dtype(spec));
    fill_blocks(r, blocks);
    return fill_per_block(r, blocks);
}
