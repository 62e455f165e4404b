/* Certificates: see certificate.h. */
#include "solver/certificate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/json_write.h"
#include "base/size.h"
#include "hw/device.h"
#include "models/schema.h"
#include "models/spec_names.h"
#include "solver/certificate_refused.h"
#include "solver/menu.h"
#include "solver/proof.h"

static const char *const place_names[] = {"none", "pinned_host", "device"};

struct writer {
    struct hb_json j;
    struct hb_arena *arena;
    const struct hb_plan_ask *ask;
    const struct hb_plan *plan;
    const struct hb_spec *spec;
    struct hb_variants variants;
    struct hb_remat *policies; /* each once */
    uint32_t policy_count, policy_cap;
    uint32_t *run_counts; /* by cell */
};

/* --- lists --- */

static void put_ints(struct hb_json *j, const char *key, const int64_t *list, int count)
{
    if (key)
        hb_json_key(j, key);
    hb_json_array(j);
    for (int i = 0; i < count; i++)
        hb_json_int(j, list[i]);
    hb_json_array_end(j);
}

static void put_values(struct hb_json *j, const char *key, const struct hb_values *v)
{
    put_ints(j, key, v->list, v->count);
}

/* Names of the bits of a mask. */
static void put_mask(struct hb_json *j, const char *key, uint32_t mask, const char *const *names,
                     int count)
{
    hb_json_key(j, key);
    hb_json_array(j);
    for (int i = 0; i < count; i++)
        if (mask >> i & 1)
            hb_json_text(j, names[i]);
    hb_json_array_end(j);
}

/* What is not known is left out. */
static void put_term(struct hb_json *j, const char *key, int64_t ns)
{
    if (ns == INT64_MAX)
        hb_json_put_text(j, key, "none fits");
    else if (ns > 0)
        hb_json_put_int(j, key, ns);
}

static void put_limit(struct hb_json *j, const char *key, int64_t bytes)
{
    hb_json_put_known(j, key, bytes == INT64_MAX ? -1 : bytes);
}

static void put_value(struct hb_json *j, const char *key, double value)
{
    hb_json_key(j, key);
    if (value < INFINITY)
        hb_json_real(j, value);
    else
        hb_json_null(j);
}

/* --- policies --- */

static uint32_t intern(struct writer *w, const struct hb_remat *r)
{
    for (uint32_t i = 0; i < w->policy_count; i++)
        if (w->policies[i].policy == r->policy && w->policies[i].save == r->save &&
            w->policies[i].offload == r->offload)
            return i;
    w->policies =
        hb_grow(w->arena, w->policies, w->policy_count, &w->policy_cap, sizeof *w->policies);
    w->policies[w->policy_count] = *r;
    return w->policy_count++;
}

static void put_menus(struct writer *w)
{
    struct hb_json *j = &w->j;
    hb_json_key(j, "menus");
    hb_json_array(j);
    for (int b = 0; b < w->spec->model.block_count; b++) {
        hb_json_array(j);
        for (uint32_t i = 0; i < w->plan->searched[b].count; i++)
            hb_json_int(j, intern(w, &w->plan->searched[b].policies[i]));
        hb_json_array_end(j);
    }
    hb_json_array_end(j);
}

static void put_policies(struct writer *w)
{
    struct hb_json *j = &w->j;
    hb_json_key(j, "policies");
    hb_json_array(j);
    for (uint32_t i = 0; i < w->policy_count; i++) {
        hb_json_object(j);
        hb_json_put_text(j, "policy", hb_policy_names[w->policies[i].policy]);
        put_mask(j, "save", w->policies[i].save, hb_tensor_names, HB_TN_COUNT);
        put_mask(j, "offload", w->policies[i].offload, hb_tensor_names, HB_TN_COUNT);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

/* --- the space --- */

static void put_blocks(struct writer *w)
{
    struct hb_json *j = &w->j;
    hb_json_key(j, "blocks");
    hb_json_array(j);
    for (int i = 0; i < w->spec->model.block_count; i++) {
        const struct hb_block *b = &w->spec->model.blocks[i];
        hb_json_object(j);
        hb_json_put_text(j, "name", b->name);
        hb_json_put_int(j, "layers", b->repeat);
        hb_json_put_int(j, "unit", b->unit);
        hb_json_put_bool(j, "pipelined", b->pipelined);
        hb_json_put_int(j, "experts", b->moe.experts);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void put_listed_meshes(struct writer *w)
{
    const struct hb_plan_axes *p = &w->spec->plan;
    if (!p->present || !p->mesh_count)
        return;
    hb_json_key(&w->j, "meshes");
    hb_json_array(&w->j);
    for (int i = 0; i < p->mesh_count; i++)
        put_ints(&w->j, NULL, p->meshes[i], HB_AX_COUNT);
    hb_json_array_end(&w->j);
}

static void put_space(struct writer *w)
{
    struct hb_json *j = &w->j;
    const struct hb_plan_axes *p = &w->spec->plan;
    struct hb_space_axes axes = hb_space_axes_of(w->spec);
    hb_json_key(j, "space");
    hb_json_object(j);
    hb_json_put_int(j, "devices", w->ask->devices);
    hb_json_put_int(j, "link_domain", w->ask->device->link_domain);
    put_mask(j, "axes", hb_space_free_axes(w->spec), hb_axis_names, HB_AX_COUNT);
    put_ints(j, "mesh", w->spec->mesh, HB_AX_COUNT);
    put_listed_meshes(w);
    put_ints(j, "axis_max", p->axis_max, HB_AX_COUNT);
    hb_json_put_int(j, "min_tokens_per_device", p->min_tokens_per_device);
    hb_json_put_bool(j, "written", p->present);
    hb_json_put_bool(j, "policies_free", w->plan->space.remat);
    hb_json_put_bool(j, "whole_stack", p->whole_stack);
    hb_json_put_int(j, "seq", w->spec->batch.seq);
    put_values(j, "batch", &axes.batch);
    put_values(j, "accumulate", &axes.accumulate);
    hb_json_put_int(j, "own_microbatches", w->spec->pipeline.microbatches);
    put_values(j, "microbatches", &axes.microbatches);
    put_mask(j, "places", axes.offloads, place_names, HB_PLACE_DEVICE);
    put_mask(j, "forms", axes.forms, hb_form_names, HB_FORM_NESTED + 1);
    put_values(j, "outers", &axes.outers);
    put_values(j, "chunks", &axes.chunks);
    put_blocks(w);
    hb_json_object_end(j);
}

/* --- nodes --- */

static void put_cell_floors(struct writer *w, const struct hb_search_node *node)
{
    struct hb_json *j = &w->j;
    if (!node->floor_count)
        return;
    hb_json_key(j, "floors");
    hb_json_array(j);
    for (uint32_t i = 0; i < node->floor_count; i++) {
        const struct hb_node_floor *f = &node->floors[i];
        hb_json_object(j);
        hb_json_put_int(j, "chunks", f->loss_chunks);
        hb_json_put_text(j, "form", hb_form_names[f->form]);
        hb_json_put_text(j, "place", place_names[f->place]);
        if (f->refused) {
            hb_json_put_bool(j, "refused", true);
        } else {
            hb_json_put_int(j, "live_bytes", f->floor.live_bytes);
            put_term(j, "bound_ns", f->floor.bound_ns);
            put_term(j, "ends_ns", f->floor.ends_ns);
            put_term(j, "tail_ns", f->floor.tail_ns);
        }
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

static void put_turns(struct hb_json *j, const struct hb_search_node *node)
{
    for (int place = 0; place < HB_PLACE_DEVICE; place++)
        for (int chunks = 0; chunks < 2; chunks++) {
            static const char *const keys[][2] = {{"turns_ns", "turns_chunked_ns"},
                                                  {"turns_host_ns", "turns_host_chunked_ns"}};
            put_term(j, keys[place][chunks], node->turns_ns[place][chunks]);
        }
}

static void put_node_terms(struct hb_json *j, const struct hb_search_node *node)
{
    hb_json_put_int(j, "live_bytes", node->floor.live_bytes);
    hb_json_put_int(j, "state_bytes", node->floor.state_bytes);
    if (!node->measured)
        hb_json_put_bool(j, "by_mesh", true);
    if (node->refused)
        hb_json_put_bool(j, "beyond_range", true);
    put_term(j, "loops_ns", node->floor.bound_ns);
    put_term(j, "forward_ns", node->floor.forward_ns);
    put_term(j, "path_ns", node->floor_ns);
    put_term(j, "relax_ns", node->relax_ns);
    put_term(j, "layers_ns", node->layers_ns);
    put_turns(j, node);
}

struct row {
    uint32_t variant;
    enum hb_cell_fate fate;
    double value;
    uint32_t runs;
    int64_t relax_ns;
    bool proven;
    int64_t limit_bytes; /* that it exceeds, where that is less than the budget; 0 */
};

static bool is_alike(const struct row *a, const struct row *b)
{
    return a->fate == b->fate && a->runs == b->runs && a->relax_ns == b->relax_ns &&
           a->proven == b->proven && a->limit_bytes == b->limit_bytes && !(a->value < b->value) &&
           !(a->value > b->value);
}

static void put_row(struct writer *w, const struct row *rows, uint32_t count, uint32_t at,
                    bool *told)
{
    struct hb_json *j = &w->j;
    struct hb_str text;
    hb_str_init(&text, w->arena);
    for (uint32_t i = at; i < count; i++)
        if (!told[i] && is_alike(&rows[i], &rows[at])) {
            hb_ranges_add(&text, rows[i].variant);
            told[i] = true;
        }
    hb_json_object(j);
    hb_json_put_text(j, "cells", text.text);
    hb_json_put_text(j, "by", hb_cell_fate_name(rows[at].fate));
    put_value(j, "not_below", rows[at].value);
    if (rows[at].runs)
        hb_json_put_int(j, "run", rows[at].runs);
    put_term(j, "relax_ns", rows[at].relax_ns);
    if (rows[at].proven)
        hb_json_put_bool(j, "proven", true);
    if (rows[at].limit_bytes)
        hb_json_put_int(j, "limit_bytes", rows[at].limit_bytes);
    hb_json_object_end(j);
}

static int64_t limit_of(const struct writer *w, uint32_t cell)
{
    int64_t limit = hb_proof_peak_bytes(w->ask, w->plan, cell);
    bool exceeded = w->plan->rows[cell].fate == HB_FATE_MEMORY;
    return exceeded && limit < w->ask->budget_bytes ? limit : 0;
}

static void put_rows(struct writer *w, const struct hb_search_node *node)
{
    uint32_t count = node->end - node->first;
    struct row *rows = hb_arena_alloc(w->arena, count, sizeof *rows);
    bool *told = hb_arena_alloc(w->arena, count, sizeof *told);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t cell = node->first + i;
        rows[i] = (struct row){hb_variants_find(&w->variants, &w->plan->space.cells[cell]),
                               w->plan->rows[cell].fate,
                               hb_proof_value(w->ask, w->plan, node, cell),
                               w->run_counts[cell],
                               w->plan->relax_ns[cell],
                               w->plan->rows[cell].proven,
                               limit_of(w, cell)};
    }
    hb_json_key(&w->j, "rows");
    hb_json_array(&w->j);
    for (uint32_t i = 0; i < count; i++)
        if (!told[i])
            put_row(w, rows, count, i, told);
    hb_json_array_end(&w->j);
}

static void put_nodes(struct writer *w)
{
    struct hb_json *j = &w->j;
    hb_json_key(j, "nodes");
    hb_json_array(j);
    for (uint32_t i = 0; i < w->plan->node_count; i++) {
        const struct hb_search_node *node = &w->plan->nodes[i];
        const struct hb_cell *cell = &w->plan->space.cells[node->first];
        hb_json_object(j);
        put_ints(j, "mesh", cell->mesh, HB_AX_COUNT);
        hb_json_put_int(j, "batch", cell->batch_global);
        hb_json_put_int(j, "accumulate", cell->accumulate);
        hb_json_put_int(j, "microbatches", cell->microbatches);
        put_node_terms(j, node);
        put_cell_floors(w, node);
        put_rows(w, node);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

/* --- runs --- */

static void put_place_of(struct writer *w, uint32_t cell)
{
    const struct hb_search_node *node = hb_proof_node(w->plan, cell);
    hb_json_put_int(&w->j, "node", node - w->plan->nodes);
    hb_json_put_int(&w->j, "cell", hb_variants_find(&w->variants, &w->plan->space.cells[cell]));
}

static void put_part(struct writer *w, uint32_t block, int32_t steps, const struct hb_remat *remat)
{
    hb_json_array(&w->j);
    hb_json_int(&w->j, block);
    hb_json_int(&w->j, steps);
    hb_json_int(&w->j, intern(w, remat));
    hb_json_array_end(&w->j);
}

static void put_runs(struct writer *w)
{
    struct hb_json *j = &w->j;
    hb_json_key(j, "runs");
    hb_json_array(j);
    for (uint32_t i = 0; i < w->plan->ran_count; i++) {
        const struct hb_ran *r = &w->plan->ran[i];
        hb_json_object(j);
        put_place_of(w, r->cell);
        hb_json_key(j, "parts");
        hb_json_array(j);
        for (uint32_t k = 0; k < r->part_count; k++)
            put_part(w, r->parts[k].block, r->parts[k].steps, &r->parts[k].remat);
        hb_json_array_end(j);
        hb_json_put_int(j, "peak_bytes", r->peak_bytes);
        put_limit(j, "limit_bytes", r->limit_bytes);
        if (r->high_bytes)
            hb_json_put_int(j, "high_bytes", r->high_bytes);
        hb_json_put_int(j, "host_bytes", r->host_bytes);
        hb_json_put_bool(j, "fits", r->fits);
        if (r->fits)
            hb_json_put_int(j, "step_ns", r->step_ns);
        hb_json_object_end(j);
    }
    hb_json_array_end(j);
}

/* menus: those that its policies are of. */
static void put_candidate(struct writer *w, const struct hb_menu *menus,
                          const struct hb_candidate *c)
{
    struct hb_json *j = &w->j;
    hb_json_object(j);
    put_place_of(w, c->cell);
    hb_json_key(j, "parts");
    hb_json_array(j);
    for (uint32_t k = 0; k < c->run_count; k++)
        put_part(w, c->runs[k].block, c->runs[k].steps,
                 &menus[c->runs[k].block].policies[c->runs[k].policy]);
    hb_json_array_end(j);
    hb_json_put_int(j, "peak_bytes", c->peak_bytes);
    hb_json_put_int(j, "step_ns", c->step_ns);
    hb_json_put_real(j, "value", c->value);
    hb_json_object_end(j);
}

static void put_found(struct writer *w, const struct hb_roomier *taken)
{
    if (!w->plan->found)
        return;
    struct hb_spec spec;
    hb_json_put_real(&w->j, "optimum", w->plan->best.value);
    hb_plan_spec(w->arena, w->plan, &w->plan->best, &spec);
    hb_json_key(&w->j, "configuration");
    hb_json_node(&w->j, hb_schema_emit(w->arena, &spec, true));
    hb_json_key(&w->j, "plan");
    put_candidate(w, w->plan->menus, &w->plan->best);
    hb_json_key(&w->j, "alternatives");
    hb_json_array(&w->j);
    for (uint32_t i = 0; i < w->plan->alternative_count; i++)
        put_candidate(w, w->plan->menus, &w->plan->alternatives[i]);
    hb_json_array_end(&w->j);
    if (taken) {
        hb_json_key(&w->j, "taken");
        put_candidate(w, taken->plan->menus, &taken->candidate);
    }
}

/* --- the whole --- */

static void put_head(struct writer *w)
{
    static const char *const units[] = {
        [HB_OBJ_TOKENS] = "ns per token", [HB_OBJ_STEP_TIME] = "ns", [HB_OBJ_MEMORY] = "bytes"};
    enum hb_objective what = w->ask->objective;
    struct hb_json *j = &w->j;
    hb_json_put_int(j, "certificate", HB_CERTIFICATE_FORM);
    hb_json_put_text(j, "model", w->spec->model.name);
    hb_json_put_text(j, "status", hb_plan_status_name(w->plan->status));
    hb_json_put_text(j, "unit", units[what == HB_OBJ_DEVICES ? HB_OBJ_TOKENS : what]);
    put_value(j, "gap", w->plan->found ? w->plan->gap : INFINITY);
    hb_json_put_bool(j, "settled", w->plan->settled);
    hb_json_put_int(j, "left", w->plan->counts.left);
    hb_json_put_real(j, "considered", w->plan->counts.raw);
    hb_json_put_int(j, "cell_count", w->plan->space.cell_count);
    put_limit(j, "budget_bytes", w->ask->budget_bytes);
    put_limit(j, "whole_bytes", w->ask->whole_bytes);
    put_limit(j, "host_bytes", w->ask->host_bytes);
    hb_json_put_bool(j, "nested_again", w->spec->remat.outer);
    hb_json_key(j, "asked");
    hb_json_node(j, hb_schema_emit(w->arena, w->spec, true));
    put_mask(j, "tensors", UINT32_MAX, hb_tensor_names, HB_TN_COUNT);
}

void hb_certificate_write(struct hb_env *env, FILE *out, const struct hb_plan_ask *ask,
                          const struct hb_plan *plan, const struct hb_roomier *taken)
{
    struct hb_str text;
    struct writer w = {.arena = env->arena, .ask = ask, .plan = plan, .spec = plan->space.base};
    hb_str_init(&text, env->arena);
    w.j = hb_json_begin(&text, out, false);
    hb_variants_make(env->arena, w.spec, &w.variants);
    w.run_counts = hb_arena_alloc(env->arena, plan->space.cell_count, sizeof *w.run_counts);
    for (uint32_t i = 0; i < plan->ran_count; i++)
        w.run_counts[plan->ran[i].cell]++;
    hb_json_object(&w.j);
    put_head(&w);
    put_found(&w, taken);
    put_space(&w);
    put_menus(&w);
    put_nodes(&w);
    hb_refused_put(env->arena, &w.j, ask, plan, &w.variants);
    put_runs(&w);
    put_policies(&w);
    hb_json_object_end(&w.j);
    hb_json_end(&w.j);
}
