/* Kinds of cells, and what was learnt of them: see lessons.h. */
#include "solver/lessons.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "models/spec_names.h"

/* Bits of a kind beyond the axes of the mesh. */
enum {
    KIND_CHUNKS = 1 << HB_AX_COUNT,
    KIND_ACCUMULATED = KIND_CHUNKS << 1,
    KIND_FORM = KIND_CHUNKS << 2,  /* times the form */
    KIND_PLACE = KIND_CHUNKS << 4, /* times the place */
};

uint32_t hb_cell_kind(const struct hb_cell *cell)
{
    uint32_t kind = (uint32_t)KIND_FORM * (uint32_t)cell->form +
                    (uint32_t)KIND_PLACE * (uint32_t)cell->optimizer_offload;
    for (int a = 0; a < HB_AX_COUNT; a++)
        kind |= cell->mesh[a] > 1 ? 1u << a : 0;
    return kind | (cell->loss_chunks > 1 ? KIND_CHUNKS : 0) |
           (cell->accumulate > 1 ? KIND_ACCUMULATED : 0);
}

const char *hb_cell_kind_name(struct hb_arena *arena, const struct hb_cell *cell)
{
    static const char *const forms[] = {"scan", "loop", "nested scans"};
    struct hb_str s;
    hb_str_init(&s, arena);
    for (int a = 0; a < HB_AX_COUNT; a++)
        if (cell->mesh[a] > 1)
            hb_str_addf(&s, "%s%s", s.len ? " and " : "", hb_axis_names[a]);
    if (!s.len)
        hb_str_add(&s, "one device");
    hb_str_addf(&s, ", %s, %s, %s", forms[cell->form],
                cell->loss_chunks > 1 ? "a loss in chunks" : "whole logits",
                cell->accumulate > 1 ? "accumulation" : "no accumulation");
    if (cell->optimizer_offload == HB_PLACE_PINNED_HOST)
        hb_str_add(&s, ", optimizer states on the host");
    return s.text;
}

int64_t hb_lessons_more(const struct hb_lessons *lessons, uint32_t kind)
{
    int64_t more = 0;
    for (uint32_t i = 0; i < lessons->count; i++)
        if (lessons->items[i].kind == kind)
            more = hb_larger(more, lessons->items[i].more_bytes);
    return more;
}
