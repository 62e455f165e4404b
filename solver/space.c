/* Cells and menus: see space.h. */
#include "solver/space.h"

#include "base/arena.h"
#include "base/str.h"

void hb_space_cell_spec(const struct hb_spec *base, const struct hb_cell *cell, struct hb_spec *out)
{
    *out = *base;
    bool own_tensor = base->sharding.expert_tensor == base->mesh[HB_AX_TENSOR];
    out->hardware.count = 1;
    for (int a = 0; a < HB_AX_COUNT; a++) {
        out->mesh[a] = cell->mesh[a];
        out->hardware.count *= cell->mesh[a];
    }
    if (own_tensor) /* its default: it follows the axis */
        out->sharding.expert_tensor = cell->mesh[HB_AX_TENSOR];
    out->batch.global = cell->batch_global;
    out->batch.accumulate = cell->accumulate;
    out->loss.chunks = cell->loss_chunks;
    out->stack.form = cell->form;
    out->stack.outer = cell->form == HB_FORM_NESTED ? cell->outer : base->stack.outer;
    out->optimizer.offload = cell->optimizer_offload;
    out->pipeline.microbatches = cell->microbatches;
}

static const char *run_name(struct hb_arena *arena, const struct hb_spec *spec, uint32_t block,
                            int run)
{
    const char *name = spec->model.blocks[block].name;
    for (int k = run + 1; run > 0; k++) {
        bool taken = false;
        name = hb_arena_printf(arena, "%s_%d", spec->model.blocks[block].name, k);
        for (int i = 0; i < spec->model.block_count; i++)
            taken = taken || hb_str_same(name, spec->model.blocks[i].name);
        if (!taken)
            break;
    }
    return name;
}

void hb_space_parts_spec(struct hb_arena *arena, const struct hb_spec *cell_spec,
                         const struct hb_segment *s, const struct hb_menu *menus,
                         const struct hb_part *parts, uint32_t count, struct hb_spec *out)
{
    *out = *cell_spec;
    struct hb_block *blocks = hb_arena_alloc(arena, count, sizeof *blocks);
    int run = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_item *item = &s->items[parts[i].item];
        const struct hb_block *own = &cell_spec->model.blocks[item->block];
        run = i && s->items[parts[i - 1].item].block == item->block ? run + 1 : 0;
        blocks[i] = *own;
        blocks[i].name = run_name(arena, cell_spec, item->block, run);
        blocks[i].repeat = parts[i].steps * own->unit;
        blocks[i].remat = menus[item->block].policies[item->policy];
    }
    out->model.blocks = blocks;
    out->model.block_count = (int)count;
}
