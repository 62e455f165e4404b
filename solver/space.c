/* Cells: see space.h. What a mesh must admit is asked of hb_schema_check, which is what a user's
 * own file would have to pass. */
#include "solver/space.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "hw/device.h"
#include "models/schema.h"
#include "models/support.h"
#include "solver/torch_space.h"
#include "solver/values.h"

/* --- a cell's spec, and a configuration's --- */

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
    out->stack.outer = cell->form == HB_FORM_NESTED ? cell->outer : 0;
    out->optimizer.offload = cell->optimizer_offload;
    out->pipeline.microbatches = cell->microbatches;
    if (base->compiler == HB_TORCH)
        hb_torch_cell_spec(base, cell, out);
}

const char *hb_space_run_name(struct hb_arena *arena, const struct hb_spec *spec, uint32_t block,
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
                         const struct hb_menu *menus, const struct hb_run *runs, uint32_t count,
                         struct hb_spec *out)
{
    *out = *cell_spec;
    struct hb_block *blocks = hb_arena_alloc(arena, count, sizeof *blocks);
    int run = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_block *own = &cell_spec->model.blocks[runs[i].block];
        run = i && runs[i - 1].block == runs[i].block ? run + 1 : 0;
        blocks[i] = *own;
        blocks[i].name = hb_space_run_name(arena, cell_spec, runs[i].block, run);
        blocks[i].repeat = runs[i].steps * own->unit;
        blocks[i].remat = menus[runs[i].block].policies[runs[i].policy];
    }
    out->model.blocks = blocks;
    out->model.block_count = (int)count;
}

/* --- values of a key --- */

/* What is tried without `plan.search`: powers of two, the user's own value first. */
static struct hb_values powers(int64_t own, int64_t most)
{
    struct hb_values v = {.count = 0};
    hb_values_add(&v, own);
    for (int64_t n = 1; n <= most; n *= 2)
        hb_values_add(&v, n);
    return v;
}

enum { MOST_ACCUMULATE = 64, MOST_CHUNKS = 16 };

static uint32_t bit(int n)
{
    return 1u << n;
}

/* 0, and the divisors of the deepest block. */
static struct hb_values outer_values(const struct hb_spec *s)
{
    struct hb_values v = {.count = 0};
    int64_t steps = 0;
    for (int i = 0; i < s->model.block_count; i++) {
        int64_t own = hb_block_steps(&s->model.blocks[i]);
        steps = own > steps ? own : steps;
    }
    hb_values_add(&v, 0);
    if (s->stack.outer > 0)
        hb_values_add(&v, s->stack.outer);
    for (int64_t d = 2; d < steps; d++)
        if (steps % d == 0)
            hb_values_add(&v, d);
    return v;
}

/* Whether the optimizer's place is searched where nobody says so: XLA:GPU brings all states at the
 * beginning of the step, which frees nothing (four steps that ran on an H100: xla-h100). */
static bool places_states(const struct hb_spec *s)
{
    return s->compiler != HB_XLA_GPU;
}

struct hb_space_axes hb_space_axes_of(const struct hb_spec *s)
{
    const struct hb_plan_axes *p = &s->plan;
    struct hb_space_axes a = {
        .batch = hb_values_listed(p->batch_global, p->batch_global_count, s->batch.global),
        .accumulate = hb_values_listed(p->accumulate, p->accumulate_count, s->batch.accumulate),
        .chunks = hb_values_listed(p->loss_chunks, p->loss_chunks_count, s->loss.chunks),
        .microbatches =
            hb_values_listed(p->microbatches, p->microbatches_count, s->pipeline.microbatches),
        .outers = outer_values(s),
        .forms = p->stack_forms ? p->stack_forms : bit((int)s->stack.form),
        .offloads = p->optimizer_offload ? p->optimizer_offload : bit((int)s->optimizer.offload)};
    if (p->whole_stack && a.forms != bit(HB_FORM_NESTED))
        a.forms &= ~bit(HB_FORM_NESTED);
    if (p->present)
        return a;
    a.accumulate = powers(s->batch.accumulate, MOST_ACCUMULATE);
    a.chunks = powers(s->loss.chunks, MOST_CHUNKS);
    if (s->stack.form != HB_FORM_LOOP)
        a.forms = bit(HB_FORM_SCAN) | (p->whole_stack ? 0 : bit(HB_FORM_NESTED));
    a.offloads |= bit(HB_PLACE_NONE);
    if (places_states(s))
        a.offloads |= bit(HB_PLACE_PINNED_HOST);
    return a;
}

/* --- meshes --- */

struct make {
    struct hb_arena *arena;
    struct hb_arena *scratch; /* for messages of what is refused */
    const struct hb_device *device;
    struct hb_plan_space *space;
    struct hb_space_axes axes;
    uint32_t free_axes;
    hb_space_refused *told; /* null: cells are made; else what is refused is told */
    void *context;
};

static bool admits(const struct make *m, const struct hb_cell *cell, bool variant)
{
    struct hb_spec spec;
    struct hb_diag diag;
    struct hb_arena_mark mark = hb_arena_mark(m->scratch);
    hb_diag_init(&diag, m->scratch);
    diag.quiet = !m->told;
    hb_space_cell_spec(m->space->base, cell, &spec);
    bool ok =
        hb_schema_check(m->scratch, &diag, NULL, &spec) && hb_spec_supported(&diag, NULL, &spec);
    bool said = !ok || !spec.plan.says || spec.plan.says(&spec);
    if (!(ok && said) && m->told)
        m->told(m->context, cell, variant,
                ok ? "what it is emitted for cannot say it" : diag.entries[0].text);
    hb_arena_rewind(m->scratch, mark);
    return ok && said;
}

static void add_cell(struct make *m, struct hb_cell cell)
{
    struct hb_plan_space *s = m->space;
    if (m->told)
        return;
    s->cells = hb_grow(m->arena, s->cells, s->cell_count, &s->cell_cap, sizeof cell);
    s->cells[s->cell_count++] = cell;
}

/* A nested scan with one outer block is none. */
static bool is_cut(const struct hb_spec *base, const struct hb_cell *cell)
{
    for (int i = 0; i < base->model.block_count && cell->form == HB_FORM_NESTED; i++) {
        int64_t steps = hb_block_steps(&base->model.blocks[i]);
        bool cut = cell->outer > 1;
        for (int64_t d = 2; cell->outer == 0 && d * d <= steps; d++)
            cut = cut || steps % d == 0;
        if (!cut && steps > 1)
            return false;
    }
    return true;
}

/* Layers of a pipeline's stages stand in one loop whatever the form says. */
static bool has_layers_outside(const struct hb_spec *base, const struct hb_cell *cell)
{
    bool any = cell->mesh[HB_AX_PIPELINE] == 1;
    for (int i = 0; i < base->model.block_count && !any; i++)
        any = !base->model.blocks[i].pipelined;
    return any;
}

/* Chunks, in a cell that is else complete. */
static void add_chunked(struct make *m, struct hb_cell cell)
{
    for (int c = 0; c < m->axes.chunks.count; c++) {
        cell.loss_chunks = m->axes.chunks.list[c];
        if (admits(m, &cell, true))
            add_cell(m, cell);
    }
}

static void add_forms(struct make *m, struct hb_cell cell)
{
    for (int form = 0; form <= HB_FORM_NESTED; form++) {
        bool nested = form == HB_FORM_NESTED;
        bool as_scan = nested && !has_layers_outside(m->space->base, &cell);
        if (!(m->axes.forms & bit(form)) || (as_scan && (m->axes.forms & bit(HB_FORM_SCAN))))
            continue;
        cell.form = (enum hb_form)form;
        for (int o = 0; o < (nested && !as_scan ? m->axes.outers.count : 1); o++) {
            cell.outer = nested ? m->axes.outers.list[o] : 0;
            if (is_cut(m->space->base, &cell))
                add_chunked(m, cell);
        }
    }
}

/* Places of the optimizer, forms and outer counts, chunks. */
static void add_variants(struct make *m, struct hb_cell cell)
{
    for (int place = 0; place <= HB_PLACE_PINNED_HOST; place++) {
        cell.optimizer_offload = (enum hb_place)place;
        if (m->axes.offloads & bit(place))
            add_forms(m, cell);
    }
}

static bool keeps_tokens(const struct make *m, const struct hb_cell *c)
{
    int64_t ways = hb_mul_sat(c->mesh[HB_AX_DATA], c->mesh[HB_AX_FSDP]);
    ways = hb_mul_sat(hb_mul_sat(ways, c->mesh[HB_AX_EXPERT]), c->mesh[HB_AX_SEQUENCE]);
    ways = hb_mul_sat(ways, c->accumulate);
    return hb_mul_sat(c->batch_global, m->space->base->batch.seq) / ways >=
           m->space->base->plan.min_tokens_per_device;
}

struct hb_values hb_space_microbatches(const struct hb_spec *base, const struct hb_cell *cell)
{
    const struct hb_plan_axes *p = &base->plan;
    int64_t stages = cell->mesh[HB_AX_PIPELINE], own = base->pipeline.microbatches;
    if (stages == 1)
        return hb_values_listed(NULL, 0, own);
    struct hb_values v = hb_values_listed(p->microbatches, p->microbatches_count, own);
    for (int64_t k = 1; k <= 4 && !p->present; k *= 2)
        hb_values_add(&v, k * stages);
    return v;
}

/* Whatever is refused for one variant of the values below is refused for all: asked once. */
static void add_batch(struct make *m, struct hb_cell cell)
{
    cell.loss_chunks = 1;
    cell.form = m->space->base->stack.form == HB_FORM_LOOP ? HB_FORM_LOOP : HB_FORM_SCAN;
    cell.optimizer_offload = HB_PLACE_NONE;
    if (keeps_tokens(m, &cell) && admits(m, &cell, false))
        add_variants(m, cell);
}

static void add_mesh(struct make *m, struct hb_cell cell)
{
    const struct hb_spec *base = m->space->base;
    for (int a = 0; a < HB_AX_COUNT; a++)
        if (base->plan.axis_max[a] && cell.mesh[a] > base->plan.axis_max[a])
            return;
    struct hb_values microbatches = hb_space_microbatches(base, &cell);
    int rounds = m->axes.batch.count * m->axes.accumulate.count * microbatches.count;
    for (int i = 0; i < rounds; i++) {
        int k = i / microbatches.count;
        cell.microbatches = microbatches.list[i % microbatches.count];
        cell.accumulate = m->axes.accumulate.list[k % m->axes.accumulate.count];
        cell.batch_global = m->axes.batch.list[k / m->axes.accumulate.count];
        add_batch(m, cell);
    }
}

static bool has_experts(const struct hb_spec *s)
{
    for (int i = 0; i < s->model.block_count; i++)
        if (s->model.blocks[i].moe.experts)
            return true;
    return false;
}

/* Axes from `axis` on share `left` devices. The tensor axis stays within a domain of fast links;
 * experts are split where there are some. */
static void add_meshes(struct make *m, struct hb_cell *cell, int axis, int64_t left)
{
    if (axis == HB_AX_COUNT) {
        if (left == 1)
            add_mesh(m, *cell);
        return;
    }
    bool one = axis == HB_AX_EXPERT && !has_experts(m->space->base);
    int64_t most = one ? 1 : left;
    if (axis == HB_AX_TENSOR && m->device->link_domain > 1 && most > m->device->link_domain)
        most = m->device->link_domain;
    if (!(m->free_axes & bit(axis))) {
        cell->mesh[axis] = m->space->base->mesh[axis];
        if (left % cell->mesh[axis] == 0)
            add_meshes(m, cell, axis + 1, left / cell->mesh[axis]);
        return;
    }
    for (int64_t n = 1; n <= most; n++)
        if (left % n == 0) {
            cell->mesh[axis] = n;
            add_meshes(m, cell, axis + 1, left / n);
        }
}

static void add_listed_meshes(struct make *m)
{
    const struct hb_plan_axes *p = &m->space->base->plan;
    for (int i = 0; i < p->mesh_count; i++) {
        struct hb_cell cell = {.outer = 0};
        for (int a = 0; a < HB_AX_COUNT; a++)
            cell.mesh[a] = p->meshes[i][a];
        add_mesh(m, cell);
    }
}

uint32_t hb_space_free_axes(const struct hb_spec *base)
{
    return base->plan.present ? base->plan.mesh_axes : bit(HB_AX_COUNT) - 1;
}

static void make_all(struct make *m, int64_t devices)
{
    const struct hb_spec *base = m->space->base;
    struct hb_cell cell = {.outer = 0};
    m->scratch = hb_arena_new();
    m->axes = hb_space_axes_of(base);
    m->free_axes = hb_space_free_axes(base);
    if (base->plan.present && base->plan.mesh_count)
        add_listed_meshes(m);
    else
        add_meshes(m, &cell, 0, devices);
    hb_arena_free(m->scratch);
}

bool hb_space_make(struct hb_arena *arena, const struct hb_spec *base,
                   const struct hb_device *device, int64_t devices, struct hb_plan_space *out)
{
    *out = (struct hb_plan_space){.base = base, .written = base->plan.present};
    struct make m = {.arena = arena, .device = device, .space = out};
    out->remat = !base->plan.whole_stack && (!base->plan.present || base->plan.remat);
    make_all(&m, devices);
    return out->cell_count > 0;
}

void hb_space_each_refused(const struct hb_spec *base, const struct hb_device *device,
                           int64_t devices, hb_space_refused *told, void *context)
{
    struct hb_plan_space none = {.base = base};
    struct make m = {.device = device, .space = &none, .told = told, .context = context};
    make_all(&m, devices);
}

const char *hb_space_words(struct hb_arena *arena, const struct hb_plan_space *space)
{
    const struct hb_plan_axes *p = &space->base->plan;
    struct hb_str s;
    hb_str_init(&s, arena);
    if (!space->written && space->base->compiler == HB_TORCH)
        return "mesh, checkpointing, accumulation, the pipeline's microbatches and chunks, and "
               "whether gathered\nweights stay (no plan.search in the file); batch and sequence "
               "stay";
    if (!space->written)
        return hb_arena_printf(arena,
                               "mesh, remat and offload, nesting, loss chunks%s (no plan.search in "
                               "the file); batch and sequence stay",
                               places_states(space->base)
                                   ? ", accumulation and the optimizer's place"
                                   : " and accumulation");
    const struct {
        bool free;
        const char *word;
    } rows[] = {{p->mesh_axes != 0 || p->mesh_count > 0, "mesh"},
                {p->remat, "remat and offload"},
                {p->stack_forms != 0, "nesting"},
                {p->optimizer_offload != 0, "the optimizer's place"},
                {p->batch_global_count > 0, "batch"},
                {p->accumulate_count > 0, "accumulation"},
                {p->loss_chunks_count > 0, "loss chunks"},
                {p->microbatches_count > 0, "microbatches"},
                {p->repeats_count > 0, "chunks of a pipeline's rank"},
                {p->reshard, "whether gathered weights stay"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].free)
            hb_str_addf(&s, "%s%s", s.len ? ", " : "", rows[i].word);
    return s.len ? s.text : "nothing";
}
