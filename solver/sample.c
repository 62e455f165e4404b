/* Cells and policies, evenly chosen: see sample.h. Blocks take the same place of their menus, the
 * last where theirs is shorter. */
#include "solver/sample.h"

#include "base/arena.h"
#include "base/diag.h"
#include "sim/engine/measure.h"
#include "sim/engine/run.h"
#include "sim/engine/step.h"

/* Ops of all programs that are run: bounds the time, whatever the machine. */
enum { POLICIES_OF_A_CELL = 3, MOST_OPS = 40000 };
/* What a configuration of compiler torch takes, in ops of others. */
enum { TORCH_OPS = 400 };

struct sample {
    struct hb_arena *arena;
    struct hb_arena *scratch;
    const struct hb_plan_ask *ask;
    const struct hb_plan *plan;
    struct hb_candidate *items;
    uint32_t count;
    uint32_t most;
    uint32_t policies; /* of the longest menu */
    uint32_t ops;      /* run so far */
};

static uint32_t longest_menu(const struct hb_plan_ask *ask, const struct hb_plan *plan)
{
    uint32_t most = 1;
    for (int i = 0; i < ask->spec->model.block_count; i++)
        most = plan->menus[i].count > most ? plan->menus[i].count : most;
    return most;
}

static bool run_candidate(struct sample *s, struct hb_candidate *c)
{
    struct hb_spec spec;
    struct hb_program p;
    struct hb_diag diag;
    struct hb_memory memory;
    struct hb_arena_mark mark = hb_arena_mark(s->scratch);
    hb_plan_spec(s->scratch, s->plan, c, &spec);
    hb_diag_init(&diag, s->scratch);
    if (spec.compiler == HB_TORCH) {
        bool measured =
            hb_measure_both(s->scratch, &diag, &spec, s->ask->device, &c->peak_bytes, &c->step_ns);
        s->ops += TORCH_OPS;
        hb_arena_rewind(s->scratch, mark);
        return measured;
    }
    bool ok = hb_step_link(s->scratch, &diag, &spec, &p);
    if (ok) {
        hb_run_memory(s->scratch, &p, &memory);
        c->peak_bytes = memory.peak_bytes;
        c->step_ns = hb_run_step_ns(s->scratch, &p, s->ask->device);
        s->ops += p.op_count;
    }
    hb_arena_rewind(s->scratch, mark);
    return ok;
}

static void add_candidate(struct sample *s, uint32_t cell, uint32_t policy)
{
    const struct hb_model *m = &s->ask->spec->model;
    if (s->count == s->most || s->plan->rows[cell].fate == HB_FATE_REFUSED)
        return;
    struct hb_candidate c = {.cell = cell, .run_count = (uint32_t)m->block_count};
    struct hb_run *runs = hb_arena_alloc(s->arena, c.run_count, sizeof *runs);
    c.runs = runs;
    for (uint32_t i = 0; i < c.run_count; i++) {
        uint32_t last = s->plan->menus[i].count - 1;
        if (s->ask->spec->compiler == HB_TORCH)
            policy = s->plan->space.cells[cell].torch.policy;
        runs[i] = (struct hb_run){i, policy < last ? policy : last, hb_block_steps(&m->blocks[i])};
    }
    if (run_candidate(s, &c))
        s->items[s->count++] = c;
}

/* How many more are run, by the size of those that were. */
static uint32_t room_left(struct sample *s)
{
    if (s->count == 0)
        add_candidate(s, 0, 0);
    uint32_t each = s->count ? s->ops / s->count : 1;
    uint32_t room = MOST_OPS / each;
    room = room < s->most ? room : s->most;
    return room > s->count ? room - s->count : 0;
}

uint32_t hb_plan_sample(struct hb_arena *arena, const struct hb_plan_ask *ask,
                        const struct hb_plan *plan, uint32_t most, struct hb_candidate **out)
{
    struct sample s = {.arena = arena,
                       .scratch = hb_arena_new(),
                       .ask = ask,
                       .plan = plan,
                       .items = hb_arena_alloc(arena, most, sizeof **out),
                       .most = most,
                       .policies = ask->spec->compiler == HB_TORCH ? 1 : longest_menu(ask, plan)};
    for (uint32_t k = 0; plan->found && k < s.policies && k < most / 2; k++)
        add_candidate(&s, plan->best.cell, k);
    uint32_t each = s.policies < POLICIES_OF_A_CELL ? s.policies : POLICIES_OF_A_CELL;
    uint32_t room = each ? room_left(&s) / each : 0;
    uint32_t cells = plan->space.cell_count < room ? plan->space.cell_count : room;
    for (uint32_t i = 0; i < cells; i++)
        for (uint32_t k = 0; k < each; k++)
            add_candidate(&s, (uint32_t)((uint64_t)i * plan->space.cell_count / cells),
                          each > 1 ? k * (s.policies - 1) / (each - 1) : 0);
    hb_arena_free(s.scratch);
    *out = s.items;
    return s.count;
}
