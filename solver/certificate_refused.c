/* What of a space is refused: see certificate_refused.h. */
#include "solver/certificate_refused.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/size.h"
#include "base/str.h"
#include "solver/nodes.h"

/* --- numbers --- */

void hb_variants_make(struct hb_arena *arena, const struct hb_spec *base, struct hb_variants *out)
{
    struct hb_space_axes a = hb_space_axes_of(base);
    uint32_t cap = 0;
    *out = (struct hb_variants){.count = 0};
    for (int place = 0; place <= HB_PLACE_PINNED_HOST; place++)
        for (int form = 0; form <= HB_FORM_NESTED; form++) {
            int outers = form == HB_FORM_NESTED ? a.outers.count : 1;
            bool tried = a.offloads >> place & a.forms >> form & 1;
            for (int k = 0; tried && k < outers * a.chunks.count; k++) {
                int64_t outer = form == HB_FORM_NESTED ? a.outers.list[k / a.chunks.count] : 0;
                out->list = hb_grow(arena, out->list, out->count, &cap, sizeof *out->list);
                out->list[out->count++] =
                    (struct hb_variant){(enum hb_place)place, (enum hb_form)form, outer,
                                        a.chunks.list[k % a.chunks.count]};
            }
        }
}

uint32_t hb_variants_find(const struct hb_variants *v, const struct hb_cell *cell)
{
    for (uint32_t i = 0; i < v->count; i++) {
        const struct hb_variant *x = &v->list[i];
        if (x->place == cell->optimizer_offload && x->form == cell->form &&
            x->outer == cell->outer && x->chunks == cell->loss_chunks)
            return i;
    }
    HB_BUG("a cell that is no variant");
}

void hb_ranges_add(struct hb_str *text, uint32_t number)
{
    const char *comma = strrchr(text->text, ',');
    char *last = text->text + (comma ? comma + 1 - text->text : 0);
    char *dash = strchr(last, '-');
    uint32_t end = (uint32_t)strtoul(dash ? dash + 1 : last, NULL, 10);
    if (text->len && end + 1 == number) {
        if (dash) {
            text->len = (size_t)(dash - text->text);
            *dash = 0;
        }
        hb_str_addf(text, "-%" PRIu32, number);
    } else {
        hb_str_addf(text, "%s%" PRIu32, text->len ? "," : "", number);
    }
}

/* --- what is refused --- */

/* For one reason, of one mesh. */
struct entry {
    uint32_t reason;
    const char *cells; /* null: all */
    struct hb_str combos;
};

/* Of the mesh, batch, accumulation and microbatches that is enumerated. */
struct variant_entry {
    uint32_t reason;
    struct hb_str cells;
};

struct refused {
    struct hb_arena *arena; /* of texts for one mesh */
    struct hb_arena_mark start;
    struct hb_arena *kept;
    struct hb_json *j;
    const struct hb_plan_ask *ask;
    const struct hb_spec *base;
    const struct hb_variants *variants;
    struct hb_space_axes axes;
    struct hb_cell last;
    bool any;
    const char **reasons;
    uint32_t reason_count, reason_cap;
    struct entry *entries;
    uint32_t entry_count, entry_cap;
    struct variant_entry *parts;
    uint32_t part_count, part_cap;
};

static uint32_t reason_of(struct refused *r, const char *why)
{
    for (uint32_t i = 0; i < r->reason_count; i++)
        if (hb_str_same(r->reasons[i], why))
            return i;
    r->reasons = hb_grow(r->kept, r->reasons, r->reason_count, &r->reason_cap, sizeof *r->reasons);
    r->reasons[r->reason_count] = hb_arena_printf(r->kept, "%s", why);
    return r->reason_count++;
}

static int place_in(const struct hb_values *v, int64_t value)
{
    for (int i = 0; i < v->count; i++)
        if (v->list[i] == value)
            return i;
    HB_BUG("a value that is not tried");
}

static uint32_t combo_of(const struct refused *r, const struct hb_cell *cell)
{
    struct hb_values microbatches = hb_space_microbatches(r->base, cell);
    int batch = place_in(&r->axes.batch, cell->batch_global);
    int accumulate = place_in(&r->axes.accumulate, cell->accumulate);
    int at = (batch * r->axes.accumulate.count + accumulate) * microbatches.count;
    return (uint32_t)(at + place_in(&microbatches, cell->microbatches));
}

static void add_entry(struct refused *r, uint32_t reason, const char *cells, uint32_t combo)
{
    for (uint32_t i = 0; i < r->entry_count; i++) {
        struct entry *e = &r->entries[i];
        bool same = (!cells && !e->cells) || (cells && e->cells && hb_str_same(cells, e->cells));
        if (e->reason == reason && same) {
            hb_ranges_add(&e->combos, combo);
            return;
        }
    }
    r->entries = hb_grow(r->arena, r->entries, r->entry_count, &r->entry_cap, sizeof *r->entries);
    struct entry *e = &r->entries[r->entry_count++];
    *e = (struct entry){.reason = reason, .cells = cells};
    hb_str_init(&e->combos, r->arena);
    hb_ranges_add(&e->combos, combo);
}

static void end_combo(struct refused *r)
{
    for (uint32_t i = 0; i < r->part_count; i++)
        add_entry(r, r->parts[i].reason, r->parts[i].cells.text, combo_of(r, &r->last));
    r->part_count = r->part_cap = 0;
    r->parts = NULL;
}

static void end_mesh(struct refused *r)
{
    struct hb_json *j = r->j;
    for (uint32_t i = 0; i < r->entry_count; i++) {
        const struct entry *e = &r->entries[i];
        hb_json_object(j);
        hb_json_key(j, "mesh");
        hb_json_array(j);
        for (int a = 0; a < HB_AX_COUNT; a++)
            hb_json_int(j, r->last.mesh[a]);
        hb_json_array_end(j);
        hb_json_put_text(j, "batches", e->combos.text);
        if (e->cells)
            hb_json_put_text(j, "cells", e->cells);
        hb_json_put_int(j, "reason", e->reason);
        hb_json_object_end(j);
    }
    r->entries = NULL;
    r->entry_count = r->entry_cap = 0;
    hb_arena_rewind(r->arena, r->start);
}

/* By the batch's own division, which who reads it can see. */
static bool is_undivided(const struct hb_cell *c)
{
    int64_t ranks =
        hb_mul_sat(hb_mul_sat(c->mesh[HB_AX_DATA], c->mesh[HB_AX_FSDP]), c->mesh[HB_AX_EXPERT]);
    int64_t parts = hb_mul_sat(ranks, c->accumulate);
    if (c->mesh[HB_AX_PIPELINE] > 1)
        parts = hb_mul_sat(parts, c->microbatches);
    return c->batch_global % parts != 0;
}

static void add_variant(struct refused *r, uint32_t reason, uint32_t variant)
{
    for (uint32_t i = 0; i < r->part_count; i++)
        if (r->parts[i].reason == reason) {
            hb_ranges_add(&r->parts[i].cells, variant);
            return;
        }
    r->parts = hb_grow(r->arena, r->parts, r->part_count, &r->part_cap, sizeof *r->parts);
    struct variant_entry *p = &r->parts[r->part_count++];
    p->reason = reason;
    hb_str_init(&p->cells, r->arena);
    hb_ranges_add(&p->cells, variant);
}

static void tell(void *context, const struct hb_cell *cell, bool variant, const char *why)
{
    struct refused *r = context;
    if (!variant && is_undivided(cell))
        return;
    if (r->any && !hb_nodes_same(cell, &r->last))
        end_combo(r);
    if (r->any && memcmp(cell->mesh, r->last.mesh, sizeof cell->mesh) != 0)
        end_mesh(r);
    r->any = true;
    r->last = *cell;
    uint32_t reason = reason_of(r, why);
    if (variant)
        add_variant(r, reason, hb_variants_find(r->variants, cell));
    else
        add_entry(r, reason, NULL, combo_of(r, cell));
}

void hb_refused_put(struct hb_arena *arena, struct hb_json *j, const struct hb_plan_ask *ask,
                    const struct hb_plan *plan, const struct hb_variants *variants)
{
    struct refused r = {.arena = hb_arena_new(),
                        .kept = arena,
                        .j = j,
                        .ask = ask,
                        .base = plan->space.base,
                        .variants = variants,
                        .axes = hb_space_axes_of(plan->space.base)};
    r.start = hb_arena_mark(r.arena);
    hb_json_key(j, "refused");
    hb_json_array(j);
    hb_space_each_refused(r.base, ask->device, ask->devices, tell, &r);
    if (r.any) {
        end_combo(&r);
        end_mesh(&r);
    }
    hb_json_array_end(j);
    hb_json_key(j, "reasons");
    hb_json_array(j);
    for (uint32_t i = 0; i < r.reason_count; i++)
        hb_json_text(j, r.reasons[i]);
    hb_json_array_end(j);
    hb_arena_free(r.arena);
}
