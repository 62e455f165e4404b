/* Cells of compiler torch: see torch_space.h. What goes with an axis as its framework has it:
 * tensor parallelism with sequence parallelism and a split vocabulary, torchtitan's context ranks
 * share FSDP's shards; a pipeline has a schedule. */
#include "solver/torch_space.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/size.h"
#include "base/str.h"
#include "hw/device.h"
#include "models/schema.h"
#include "models/support.h"
#include "solver/values.h"

/* --- policies --- */

enum { MOST_POLICIES = 4 };

static bool same_policy(const struct hb_remat *a, const struct hb_remat *b)
{
    bool names = a->policy == HB_POLICY_NAMES;
    return a->policy == b->policy && (!names || a->save == b->save) && a->offload == b->offload;
}

static bool is_own(const struct hb_spec *base, const struct hb_remat *policy)
{
    for (int i = 0; i < base->model.block_count; i++)
        if (!same_policy(&base->model.blocks[i].remat, policy))
            return false;
    return true;
}

/* Of each framework's own options; torchtitan's selective list is every second product. */
static uint32_t list_policies(const struct hb_spec *base, bool remat, struct hb_remat *out)
{
    const struct hb_remat known[] = {
        {HB_POLICY_NONE, 0, 0},
        {HB_POLICY_FULL, 0, 0},
        {HB_POLICY_NAMES, HB_TITANS_LIST, 0},
    };
    uint32_t count = 1; /* the file's own, by block */
    uint32_t most = base->runtime.framework == HB_FW_MEGATRON ? 2 : 3;
    for (uint32_t i = 0; i < most && remat; i++)
        if (!is_own(base, &known[i]))
            out[count++] = known[i];
    return count;
}

static const struct hb_run *make_runs(struct hb_arena *arena, const struct hb_spec *base,
                                      uint32_t policy)
{
    size_t blocks = (size_t)base->model.block_count;
    struct hb_run *runs = hb_arena_alloc(arena, blocks, sizeof *runs);
    for (uint32_t i = 0; i < blocks; i++)
        runs[i] = (struct hb_run){i, policy, hb_block_steps(&base->model.blocks[i])};
    return runs;
}

void hb_torch_policies_make(struct hb_arena *arena, const struct hb_spec *base, bool remat,
                            struct hb_torch_policies *out)
{
    struct hb_remat list[MOST_POLICIES] = {{HB_POLICY_NONE, 0, 0}};
    size_t count = list_policies(base, remat, list), blocks = (size_t)base->model.block_count;
    struct hb_menu *menus = hb_arena_alloc(arena, blocks, sizeof *menus);
    const struct hb_run **runs = hb_arena_alloc(arena, count, sizeof(const struct hb_run *));
    const struct hb_block **turned = hb_arena_alloc(arena, count, sizeof(const struct hb_block *));
    for (size_t b = 0; b < blocks; b++) {
        struct hb_remat *own = hb_arena_alloc(arena, count, sizeof *own);
        for (size_t p = 0; p < count; p++)
            own[p] = p ? list[p] : base->model.blocks[b].remat;
        menus[b] = (struct hb_menu){.policies = own, .count = (uint32_t)count};
    }
    for (size_t p = 0; p < count; p++) {
        struct hb_block *copy = hb_arena_alloc(arena, blocks, sizeof *copy);
        for (size_t b = 0; b < blocks; b++) {
            copy[b] = base->model.blocks[b];
            copy[b].remat = menus[b].policies[p];
        }
        turned[p] = copy;
        runs[p] = make_runs(arena, base, (uint32_t)p);
    }
    *out = (struct hb_torch_policies){menus, runs, turned, (uint32_t)count};
}

/* --- a cell's spec --- */

void hb_torch_cell_spec(const struct hb_spec *base, const struct hb_cell *cell, struct hb_spec *out)
{
    bool titan = base->runtime.framework != HB_FW_MEGATRON;
    out->hardware.memory_bytes = 0; /* a plan leans on no memory that is given back in need */
    out->remat.every = cell->torch.every;
    if (cell->torch.policy) { /* modules and a budget go with what is written */
        out->remat.modules = 0;
        out->remat.budget = 1;
    }
    out->sharding.reshard_after_forward = cell->torch.reshard;
    if (!cell->torch.reshard) /* a number of ranks goes with it */
        out->sharding.reshard_ranks = 0;
    out->pipeline.repeats = cell->torch.repeats;
    out->pipeline.schedule = cell->torch.schedule;
    if (base->mesh[HB_AX_TENSOR] == 1 && cell->mesh[HB_AX_TENSOR] > 1)
        out->sharding.residual_over_tensor = out->sharding.vocab_over_tensor = true;
    if (titan && base->mesh[HB_AX_SEQUENCE] == 1 && cell->mesh[HB_AX_SEQUENCE] > 1)
        out->sharding.states_over_sequence = true;
}

/* --- values --- */

enum { MOST_ACCUMULATE = 64, MOST_ROUNDS = 16, MOST_REPEATS = 8 };

static void add_powers(struct hb_values *v, int64_t first, int64_t most)
{
    for (int64_t n = first; n <= most; n = hb_mul_sat(n, 2))
        hb_values_add(v, n);
}

struct make {
    struct hb_arena *arena;
    struct hb_arena *scratch;
    const struct hb_spec *base;
    const struct hb_device *device;
    struct hb_plan_space *space;
    struct hb_torch_policies policies;
    uint32_t free_axes;
    bool all; /* no plan.search: what can be is free */
};

static bool admits(const struct make *m, const struct hb_cell *cell)
{
    struct hb_spec spec;
    struct hb_diag diag;
    struct hb_arena_mark mark = hb_arena_mark(m->scratch);
    hb_diag_init(&diag, m->scratch);
    hb_space_cell_spec(m->base, cell, &spec);
    spec.model.blocks = m->policies.blocks[cell->torch.policy];
    bool ok =
        hb_schema_check(m->scratch, &diag, NULL, &spec) && hb_spec_supported(&diag, NULL, &spec);
    hb_arena_rewind(m->scratch, mark);
    return ok;
}

/* --- cells of one shape --- */

static void add_cell(struct make *m, const struct hb_cell *cell)
{
    struct hb_plan_space *s = m->space;
    s->cells = hb_grow(m->arena, s->cells, s->cell_count, &s->cell_cap, sizeof *cell);
    s->cells[s->cell_count++] = *cell;
}

/* Full checkpointing of all layers, or of every second, third ... one; else as written. */
static struct hb_values every_values(const struct make *m, uint32_t policy)
{
    static const int64_t some[] = {1, 2, 3, 4, 6, 8};
    struct hb_values v = {.count = 0};
    bool full = m->policies.menus[0].policies[policy].policy == HB_POLICY_FULL;
    hb_values_add(&v, policy ? 1 : m->base->remat.every);
    for (size_t i = 0; i < sizeof some / sizeof *some && full && m->space->remat; i++)
        if (m->base->runtime.framework != HB_FW_MEGATRON)
            hb_values_add(&v, some[i]);
    return v;
}

static bool parts(const struct hb_cell *cell)
{
    return cell->mesh[HB_AX_PIPELINE] > 1 && hb_schedule_parts(cell->torch.schedule);
}

/* Whether the framework runs it with its policy, and the one that the plan is for can say it. */
static bool can_be_said(const struct make *m, const struct hb_cell *cell)
{
    struct hb_spec spec;
    if (parts(cell) && !admits(m, cell))
        return false;
    if (!m->base->plan.says)
        return true;
    hb_space_cell_spec(m->base, cell, &spec);
    spec.model.blocks = m->policies.blocks[cell->torch.policy];
    return spec.plan.says(&spec);
}

static void add_policies(struct make *m, struct hb_cell cell)
{
    for (cell.torch.policy = 0; cell.torch.policy < m->policies.count; cell.torch.policy++) {
        struct hb_values every = every_values(m, cell.torch.policy);
        for (int i = 0; i < every.count; i++) {
            cell.torch.every = every.list[i];
            if (can_be_said(m, &cell))
                add_cell(m, &cell);
        }
    }
}

/* Whether gathered weights stay until the backward pass: they do where it is parted. */
static void add_gathered(struct make *m, struct hb_cell cell)
{
    bool both = (m->all || m->base->plan.reshard) && m->base->runtime.framework != HB_FW_MEGATRON;
    for (int reshard = !parts(&cell); reshard >= 0; reshard--) {
        cell.torch.reshard = reshard;
        if (both || reshard == m->base->sharding.reshard_after_forward)
            add_policies(m, cell);
    }
}

static bool keeps_tokens(const struct make *m, const struct hb_cell *c)
{
    int64_t ways = hb_mul_sat(c->mesh[HB_AX_DATA], c->mesh[HB_AX_FSDP]);
    ways = hb_mul_sat(hb_mul_sat(ways, c->mesh[HB_AX_EXPERT]), c->mesh[HB_AX_SEQUENCE]);
    return hb_mul_sat(c->batch_global, m->base->batch.seq) / hb_mul_sat(ways, c->accumulate) >=
           m->base->plan.min_tokens_per_device;
}

/* Whatever is refused for one policy is refused for all, and asked once, but where passes are
 * parted. */
static void add_shape(struct make *m, struct hb_cell cell)
{
    cell.torch.every = m->base->remat.every;
    cell.torch.reshard = m->base->sharding.reshard_after_forward;
    cell.torch.policy = 0;
    if (keeps_tokens(m, &cell) && (parts(&cell) || admits(m, &cell)))
        add_gathered(m, cell);
}

/* Of schedules whose passes are whole. */
static enum hb_schedule usual_schedule(const struct hb_spec *base, int64_t repeats)
{
    bool gpipe = base->pipeline.schedule == HB_SCHED_GPIPE;
    if (repeats > 1)
        return HB_SCHED_INTERLEAVED;
    return gpipe ? HB_SCHED_GPIPE : HB_SCHED_1F1B;
}

static bool goes_with(enum hb_schedule schedule, int64_t repeats)
{
    bool vee = schedule == HB_SCHED_ZBV || schedule == HB_SCHED_DUALPIPE_V;
    return vee ? repeats == 2 : hb_schedule_parts(schedule) && repeats > 1;
}

/* One that parts its passes is a choice where it is written, beside the usual one; a search that
 * is written frees no schedule. */
static void add_schedules(struct make *m, struct hb_cell cell)
{
    enum hb_schedule own = m->base->pipeline.schedule;
    bool stays = goes_with(own, cell.torch.repeats);
    cell.torch.schedule = own;
    if (stays)
        add_shape(m, cell);
    cell.torch.schedule = usual_schedule(m->base, cell.torch.repeats);
    if (!stays || m->all)
        add_shape(m, cell);
}

static struct hb_values microbatch_values(const struct make *m, const struct hb_cell *cell)
{
    const struct hb_plan_axes *p = &m->base->plan;
    int64_t stages = cell->mesh[HB_AX_PIPELINE];
    struct hb_values v =
        hb_values_listed(p->microbatches, p->microbatches_count, m->base->pipeline.microbatches);
    if (m->all)
        add_powers(&v, stages, hb_mul_sat(stages, MOST_ROUNDS));
    return v;
}

static struct hb_values repeat_values(const struct make *m)
{
    const struct hb_plan_axes *p = &m->base->plan;
    struct hb_values v = hb_values_listed(p->repeats, p->repeats_count, m->base->pipeline.repeats);
    if (m->all && !m->base->pipeline.layers)
        add_powers(&v, 1, MOST_REPEATS);
    return v;
}

/* Of a pipeline accumulation is further microbatches: it stays as written. */
static void add_pipelined(struct make *m, struct hb_cell cell)
{
    struct hb_values microbatches = microbatch_values(m, &cell), repeats = repeat_values(m);
    cell.accumulate = m->base->batch.accumulate;
    for (int i = 0; i < microbatches.count; i++)
        for (int k = 0; k < repeats.count; k++) {
            cell.microbatches = microbatches.list[i];
            cell.torch.repeats = repeats.list[k];
            add_schedules(m, cell);
        }
}

static void add_batches(struct make *m, struct hb_cell cell)
{
    const struct hb_plan_axes *p = &m->base->plan;
    struct hb_values batch =
        hb_values_listed(p->batch_global, p->batch_global_count, m->base->batch.global);
    struct hb_values accumulate =
        hb_values_listed(p->accumulate, p->accumulate_count, m->base->batch.accumulate);
    if (m->all)
        add_powers(&accumulate, 1, MOST_ACCUMULATE);
    cell.microbatches = m->base->pipeline.microbatches;
    cell.torch.repeats = m->base->pipeline.repeats;
    cell.torch.schedule = m->base->pipeline.schedule;
    for (int i = 0; i < batch.count; i++) {
        cell.batch_global = batch.list[i];
        if (cell.mesh[HB_AX_PIPELINE] > 1) {
            add_pipelined(m, cell);
            continue;
        }
        for (int k = 0; k < accumulate.count; k++) {
            cell.accumulate = accumulate.list[k];
            add_shape(m, cell);
        }
    }
}

/* --- meshes --- */

static bool is_free(const struct make *m, int axis)
{
    return m->free_axes >> axis & 1;
}

static bool has_experts(const struct hb_spec *s)
{
    for (int i = 0; i < s->model.block_count; i++)
        if (s->model.blocks[i].moe.experts)
            return true;
    return false;
}

/* The tensor axis stays within a domain of fast links. */
static int64_t most_of(const struct make *m, int axis, int64_t left)
{
    int64_t most = left, limit = m->base->plan.axis_max[axis];
    if (axis == HB_AX_TENSOR && m->device->link_domain > 1 && most > m->device->link_domain)
        most = m->device->link_domain;
    return limit && most > limit ? limit : most;
}

static void add_meshes(struct make *m, struct hb_cell *cell, int axis, int64_t left)
{
    if (axis == HB_AX_COUNT) {
        if (left == 1)
            add_batches(m, *cell);
        return;
    }
    int64_t own = m->base->mesh[axis], most = most_of(m, axis, left);
    for (int64_t n = is_free(m, axis) ? 1 : own; n <= (is_free(m, axis) ? most : own); n++)
        if (left % n == 0) {
            cell->mesh[axis] = n;
            add_meshes(m, cell, axis + 1, left / n);
        }
}

/* Axes that the framework has; Megatron's own FSDP where the file has it. */
static uint32_t free_axes(const struct hb_spec *base)
{
    uint32_t axes = 1u << HB_AX_DATA | 1u << HB_AX_TENSOR | 1u << HB_AX_SEQUENCE;
    if (base->plan.present)
        return base->plan.mesh_axes;
    if (base->runtime.framework != HB_FW_MEGATRON)
        return axes | 1u << HB_AX_FSDP;
    axes |= 1u << HB_AX_PIPELINE | (has_experts(base) ? 1u << HB_AX_EXPERT : 0);
    return axes | (base->mesh[HB_AX_FSDP] > 1 ? 1u << HB_AX_FSDP : 0);
}

bool hb_torch_space_make(struct hb_arena *arena, const struct hb_spec *base,
                         const struct hb_device *device, int64_t devices, struct hb_plan_space *out)
{
    const struct hb_plan_axes *p = &base->plan;
    *out = (struct hb_plan_space){
        .base = base, .written = p->present, .remat = !p->present || p->remat};
    struct make m = {.arena = arena,
                     .scratch = hb_arena_new(),
                     .base = base,
                     .device = device,
                     .space = out,
                     .free_axes = free_axes(base),
                     .all = !p->present};
    struct hb_cell cell = {.loss_chunks = base->loss.chunks,
                           .form = base->stack.form,
                           .outer = base->stack.outer,
                           .optimizer_offload = base->optimizer.offload};
    hb_torch_policies_make(arena, base, out->remat, &m.policies);
    if (!p->present || !p->mesh_count)
        add_meshes(&m, &cell, 0, devices);
    for (int i = 0; p->present && i < p->mesh_count; i++) {
        for (int a = 0; a < HB_AX_COUNT; a++)
            cell.mesh[a] = p->meshes[i][a];
        add_batches(&m, cell);
    }
    hb_arena_free(m.scratch);
    return out->cell_count > 0;
}
