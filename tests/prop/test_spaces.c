/* The planner over every kind of model and every family of devices: random small spaces against
 * brute force, and what lies around the plans of real models against the plans. HB_LONG=1 in the
 * environment compares 5,000 spaces instead of a few and turns 2,000 neighbours of each of 40
 * plans; HB_SEED begins elsewhere. */
#include <math.h>

#include "tests/prop/seed.h"
#include "tests/prop/spaces.h"

#include "sim/engine/run.h"
#include "sim/graph/link.h"
#include "solver/menu.h"
#include "solver/polish.h"

/* --- against brute force --- */

enum { SPACES = 50, LONG_SPACES = 5000, MOST_RUN = 4000 };

struct tally {
    int agreed;
    int large; /* passed over */
    int infeasible;
    int odd; /* whose splits are not sums: the plan is the best that was found */
    int by_kind[SPACE_KINDS];
    int by_device[SPACE_DEVICES];
    double configurations;
};

static void compare(struct hb_arena *arena, struct hb_rng *rng, struct unit *u, struct space *space,
                    struct tally *tally)
{
    struct hb_plan plan;
    struct hb_candidate best = {0};
    bool found = false;
    struct hb_plan_ask ask = {.env = &u->env,
                              .spec = &space->spec,
                              .device = &space->device,
                              .devices = space->spec.hardware.count,
                              .objective = space->spec.plan.objective,
                              .host_bytes = INT64_MAX,
                              .most_policies = (uint32_t)hb_rng_range(rng, 2, 4)};
    ask.budget_bytes = random_budget(arena, rng, ask);
    draw_memory(rng, &space->spec, ask.budget_bytes);
    assert_true(hb_plan_find(arena, &ask, &plan));
    if (!hb_plan_exhaust(arena, &ask, &plan, MOST_RUN, &best, &found)) {
        tally->large++;
        return;
    }
    if (found && plan.found && plan.counts.odd) {
        assert_true(plan.status == HB_PLAN_BEST);
        assert_true(best.value >= plan.best.value * (1 - plan.gap));
        tally->odd++;
        return;
    }
    if (found != plan.found ||
        (found && (best.value < plan.best.value || best.value > plan.best.value)))
        print_error("%s\nbudget %lld: plan %d value %.17g, brute force %d value %.17g\n",
                    space->text, (long long)ask.budget_bytes, plan.found, plan.best.value, found,
                    best.value);
    if (found && (!plan.found || best.value < plan.best.value)) {
        const struct hb_cell_row *row = &plan.rows[best.cell];
        print_error("it is of cell %u: %s, not below %.17g, %u runs;", best.cell,
                    hb_cell_fate_name(row->fate), row->value, row->runs);
        for (uint32_t i = 0; i < best.run_count; i++) {
            const struct hb_remat *r =
                &plan.searched[best.runs[i].block].policies[best.runs[i].policy];
            print_error(" %d of block %u: policy %d, save %x, offload %x;", best.runs[i].steps,
                        best.runs[i].block, (int)r->policy, r->save, r->offload);
        }
        print_error("\n");
    }
    assert_true(found == plan.found);
    assert_true(plan.status == (found ? HB_PLAN_OPTIMAL : HB_PLAN_INFEASIBLE));
    assert_true(!found || (best.value <= plan.best.value && best.value >= plan.best.value));
    if (found) {
        struct hb_plan tight;
        ask.budget_bytes = best.peak_bytes;
        assert_true(hb_plan_find(arena, &ask, &tight));
        if (!tight.found)
            print_error("%s\n%lld bytes do not fit into as many\n", space->text,
                        (long long)best.peak_bytes);
        assert_true(tight.found && tight.best.peak_bytes <= best.peak_bytes);
    }
    tally->agreed++;
    tally->infeasible += !found;
    tally->by_kind[space->kind]++;
    tally->by_device[space->device_index]++;
    tally->configurations += plan.counts.raw;
}

static bool has_each_kind(const struct tally *tally)
{
    for (int i = 0; i < SPACE_KINDS; i++)
        if (tally->by_kind[i] == 0)
            return false;
    for (int i = 0; i < SPACE_DEVICES; i++)
        if (tally->by_device[i] == 0)
            return false;
    return true;
}

static void test_agrees_with_brute_force(void **state)
{
    (void)state;
    struct unit u;
    struct tally tally = {0};
    struct hb_rng rng = hb_rng_seed(prop_seed(1717));
    int wanted = prop_cases_or(SPACES, LONG_SPACES);
    unit_start(&u);
    bool all = false;
    for (int tries = 0; !all && tries < 20 * wanted; tries++) {
        struct hb_arena_mark mark = hb_arena_mark(u.env.arena);
        struct space space;
        if (draw_space(u.env.arena, &rng, &space))
            compare(u.env.arena, &rng, &u, &space, &tally);
        hb_arena_rewind(u.env.arena, mark);
        all = tally.agreed >= wanted && (wanted < SPACES || has_each_kind(&tally));
    }
    print_message("# %d spaces agree (%d without a plan; %d too large, %d odd), %.0f "
                  "configurations;",
                  tally.agreed, tally.infeasible, tally.large, tally.odd, tally.configurations);
    for (int i = 0; i < SPACE_KINDS; i++)
        print_message(" %s %d,", space_kind_names[i], tally.by_kind[i]);
    for (int i = 0; i < SPACE_DEVICES; i++)
        print_message(" %s %d%s", space_devices[i], tally.by_device[i],
                      i + 1 < SPACE_DEVICES ? "," : "\n");
    assert_true(all);
    assert_true(tally.odd <= wanted / 50 + (wanted < SPACES));
    unit_end(&u);
}

/* --- what lies around plans --- */

enum { PLANS = 2, LONG_PLANS = 40, NEIGHBOURS = 150, LONG_NEIGHBOURS = 2000, MOST_MOVES = 3 };
enum { MOST_PARTS = HB_PARTS_MAX - 4 };
/* A plan is called the best that was found, not the best there is: by so much it may be off. */
static const double allowed = 0.005;

struct part {
    uint32_t block;
    int32_t steps;
    struct hb_remat remat;
};

struct point {
    uint32_t cell;
    uint32_t count;
    struct part parts[HB_PARTS_MAX];
    double value; /* INFINITY: it does not fit */
};

static void run_point(struct hb_arena *arena, const struct hb_plan_ask *ask,
                      const struct hb_plan *plan, struct point *at)
{
    struct hb_spec cell, spec;
    struct hb_diag diag;
    struct hb_program p;
    struct hb_memory m;
    struct hb_run runs[HB_PARTS_MAX];
    size_t blocks = (size_t)ask->spec->model.block_count;
    struct hb_menu *menus = hb_arena_alloc(arena, blocks, sizeof *menus);
    struct hb_remat *list = hb_arena_alloc(arena, at->count, sizeof *list);
    at->value = INFINITY;
    hb_space_cell_spec(plan->space.base, &plan->space.cells[at->cell], &cell);
    for (uint32_t i = 0; i < at->count; i++) {
        list[i] = at->parts[i].remat;
        runs[i] = (struct hb_run){at->parts[i].block, i, at->parts[i].steps};
        if (list[i].policy == HB_POLICY_NAMES && !hb_menu_compiles(&cell, &list[i]))
            return;
    }
    for (size_t i = 0; i < blocks; i++)
        menus[i] = (struct hb_menu){list, at->count};
    hb_space_parts_spec(arena, &cell, menus, runs, at->count, &spec);
    hb_diag_init(&diag, arena);
    if (!hb_link_lower(arena, &diag, &spec, &p))
        return;
    hb_run_memory(arena, &p, &m);
    if (m.peak_bytes > ask->budget_bytes || m.host_bytes > ask->host_bytes)
        return;
    double tokens = (double)cell.batch.global * (double)cell.batch.seq;
    at->value = (double)hb_run_step_ns(arena, &p, ask->device) / tokens;
}

/* One tensor of it in another state. False: it has no tensors to turn. */
static bool turn(const struct hb_plan *plan, struct hb_rng *rng, struct part *part)
{
    const struct hb_block *b = &plan->space.base->model.blocks[part->block];
    uint32_t tensors = hb_menu_tensors(b) | 1u << HB_TN_LAYER_IN;
    int tensor = (int)hb_rng_range(rng, 0, HB_TN_COUNT - 1);
    int64_t to = hb_rng_range(rng, 0, 2);
    struct hb_remat *r = &part->remat;
    if (b->repeat <= b->unit || (r->policy != HB_POLICY_NAMES && r->policy != HB_POLICY_FULL))
        return false;
    while (!(tensors >> tensor & 1))
        tensor = (int)hb_rng_range(rng, 0, HB_TN_COUNT - 1);
    r->save = (r->save & ~(1u << tensor)) | (to == 1 ? 1u << tensor : 0);
    r->offload = (r->offload & ~(1u << tensor)) | (to == 2 ? 1u << tensor : 0);
    r->policy = r->save | r->offload ? HB_POLICY_NAMES : HB_POLICY_FULL;
    return true;
}

static void split(const struct hb_plan *plan, struct hb_rng *rng, struct point *at, uint32_t i)
{
    if (at->count == MOST_PARTS || at->parts[i].steps < 4) /* one step is no loop */
        return;
    memmove(&at->parts[i + 1], &at->parts[i], (at->count - i) * sizeof at->parts[0]);
    at->count++;
    at->parts[i].steps = (int32_t)hb_rng_range(rng, 2, at->parts[i].steps - 2);
    at->parts[i + 1].steps -= at->parts[i].steps;
    turn(plan, rng, &at->parts[i + (uint32_t)hb_rng_range(rng, 0, 1)]);
}

static void shift(struct hb_rng *rng, struct point *at, uint32_t i)
{
    int32_t by = (int32_t)hb_rng_range(rng, -3, 3);
    if (i + 1 == at->count || at->parts[i].block != at->parts[i + 1].block ||
        at->parts[i].steps + by < 2 || at->parts[i + 1].steps - by < 2)
        return;
    at->parts[i].steps += by;
    at->parts[i + 1].steps -= by;
}

/* Nested scans have steps that divide, and a pipeline's layers are one run. */
static bool may_split(const struct hb_plan *plan, uint32_t cell)
{
    const struct hb_cell *c = &plan->space.cells[cell];
    return c->form == HB_FORM_SCAN && c->mesh[HB_AX_PIPELINE] == 1;
}

static bool same_mesh(const struct hb_cell *a, const struct hb_cell *b)
{
    return memcmp(a->mesh, b->mesh, sizeof a->mesh) == 0 && a->batch_global == b->batch_global;
}

static struct point neighbour(const struct hb_plan *plan, struct hb_rng *rng,
                              const struct point *from)
{
    struct point at = *from;
    int64_t moves = hb_rng_range(rng, 1, MOST_MOVES);
    for (int64_t k = 0; k < moves; k++) {
        uint32_t i = (uint32_t)hb_rng_range(rng, 0, (int64_t)at.count - 1);
        int64_t kind = hb_rng_range(rng, 0, 9);
        if (kind < 6 || !may_split(plan, at.cell))
            turn(plan, rng, &at.parts[i]);
        else if (kind < 8)
            shift(rng, &at, i);
        else
            split(plan, rng, &at, i);
    }
    if (chance(rng, 15) && may_split(plan, at.cell)) {
        uint32_t cell = (uint32_t)hb_rng_range(rng, 0, (int64_t)plan->space.cell_count - 1);
        for (int tries = 0;
             tries < 200 && !(may_split(plan, cell) &&
                              same_mesh(&plan->space.cells[cell], &plan->space.cells[at.cell]));
             tries++)
            cell = (uint32_t)hb_rng_range(rng, 0, (int64_t)plan->space.cell_count - 1);
        at.cell = may_split(plan, cell) ? cell : at.cell;
    }
    return at;
}

static struct point point_of(const struct hb_plan *plan)
{
    struct point at = {.cell = plan->best.cell, .count = plan->best.run_count};
    for (uint32_t i = 0; i < at.count; i++) {
        const struct hb_run *r = &plan->best.runs[i];
        at.parts[i] = (struct part){r->block, r->steps, plan->menus[r->block].policies[r->policy]};
    }
    return at;
}

struct around {
    int neighbours; /* of each plan */
    int plans;
    int none; /* where nothing fits, or the search was cut off */
    int tried;
    int fit;
    int better; /* plans beside which something was */
    double worst;
};

static void print_point(const struct hb_plan *plan, const struct point *at)
{
    const struct hb_cell *c = &plan->space.cells[at->cell];
    print_message("# cell %u: accumulate %lld, chunks %lld, form %d, place %d;", at->cell,
                  (long long)c->accumulate, (long long)c->loss_chunks, (int)c->form,
                  (int)c->optimizer_offload);
    for (uint32_t i = 0; i < at->count; i++)
        print_message(" %d of block %u: policy %d, save %x, offload %x;", at->parts[i].steps,
                      at->parts[i].block, (int)at->parts[i].remat.policy, at->parts[i].remat.save,
                      at->parts[i].remat.offload);
    print_message("\n");
}

/* A walk that takes up whatever is better. */
static void look_around(struct hb_arena *arena, struct hb_rng *rng, const struct hb_plan_ask *ask,
                        const struct hb_plan *plan, const char *text, struct around *out)
{
    struct point best = point_of(plan), first;
    run_point(arena, ask, plan, &best);
    first = best;
    assert_true(best.value >= plan->best.value && best.value <= plan->best.value);
    for (int i = 0; i < out->neighbours; i++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct point at = neighbour(plan, rng, &best);
        run_point(arena, ask, plan, &at);
        out->tried++;
        out->fit += at.value < INFINITY;
        assert_true(at.value >= plan->best.value * (1 - plan->gap) - 1e-9);
        best = at.value < best.value ? at : best;
        hb_arena_rewind(arena, mark);
    }
    /* A walk that ends with more runs is better by what each has to be worth. */
    double runs = best.count > first.count ? (double)(best.count - first.count) : 0;
    double more = first.value / best.value - 1 - HB_POLISH_WORTH_A_RUN * runs;
    out->plans++;
    out->better += more > 0;
    out->worst = more > out->worst ? more : out->worst;
    if (more > allowed) {
        print_message("# %s# better by %.3f %%:\n", text, 100 * more);
        print_point(plan, &first);
        print_point(plan, &best);
    }
}

static const char *draw_real(struct hb_arena *arena, struct hb_rng *rng)
{
    static const char *const models[] = {
        "llama3-8b",    "qwen3-1.7b",  "gpt3-13b",         "nemotron-4-15b", "gemma2-9b",
        "olmo3-7b",     "gpt2-xl",     "llama3.2-1b",      "gemma-2b",       "deepseek-v2-lite",
        "mixtral-8x7b", "olmoe-1b-7b", "qwen3-30b-a3b",    "gpt-oss-20b",    "deepseek-moe-16b",
        "llama3-70b",   "phi-3.5-moe", "moonlight-16b-a3b"};
    const char *device = space_devices[hb_rng_range(rng, 0, SPACE_DEVICES - 1)];
    long long count = 8ll << hb_rng_range(rng, 0, 3);
    return hb_arena_printf(
        arena,
        "model: {preset: %s}\nbatch: {global: %lld, seq: %lld}\nmesh: {fsdp: %lld}\n"
        "hardware: {device: %s, count: %lld}\ncompiler: %s\n",
        models[hb_rng_range(rng, 0, (int64_t)(sizeof models / sizeof models[0]) - 1)],
        count * hb_rng_range(rng, 1, 4), 2048ll << hb_rng_range(rng, 0, 2), count, device, count,
        strncmp(device, "tpu", 3) == 0 ? "xla-tpu" : "xla-gpu");
}

struct drawn {
    struct hb_spec spec;
    struct hb_device device;
    struct hb_plan_ask ask;
    struct hb_plan plan;
};

/* False: it is not simulated. */
static bool find_plan(struct unit *u, const char *text, struct drawn *out)
{
    struct hb_arena *arena = u->env.arena;
    struct hb_node *root;
    assert_true(hb_yaml_parse(arena, &u->diag, "random", text, strlen(text), &root));
    assert_true(hb_schema_from_node(arena, &u->diag, root, HB_SOURCE_DIR, &out->spec));
    if (!hb_spec_supported(&u->diag, NULL, &out->spec))
        return false;
    assert_true(hb_device_load(arena, &u->diag, HB_SOURCE_DIR, out->spec.hardware.device,
                               (struct hb_loc){0}, &out->device));
    hb_plan_ask_make(&u->env, &out->spec, &out->device, &out->ask);
    out->ask.objective = HB_OBJ_TOKENS;
    out->ask.most_alternatives = 0;
    assert_true(hb_plan_find(arena, &out->ask, &out->plan));
    return true;
}

static void try_plan(struct hb_rng *rng, struct unit *u, struct around *out)
{
    struct drawn d;
    const char *text = draw_real(u->env.arena, rng);
    if (!find_plan(u, text, &d))
        return;
    if (d.plan.found)
        look_around(u->env.arena, rng, &d.ask, &d.plan, text, out);
    else
        out->none++;
}

static void test_nothing_lies_around(void **state)
{
    (void)state;
    struct unit u;
    bool is_long = getenv("HB_LONG") != NULL;
    struct around around = {.neighbours = is_long ? LONG_NEIGHBOURS : NEIGHBOURS};
    struct hb_rng rng = hb_rng_seed(prop_seed(404));
    int wanted = prop_cases_or(PLANS, LONG_PLANS);
    unit_start(&u);
    while (around.plans < wanted && around.none < 2 * wanted) {
        struct hb_arena_mark mark = hb_arena_mark(u.env.arena);
        try_plan(&rng, &u, &around);
        hb_arena_rewind(u.env.arena, mark);
    }
    print_message("# %d plans (%d without one): %d neighbours, %d fit; beside %d something is "
                  "better, by %.3f %% at most\n",
                  around.plans, around.none, around.tried, around.fit, around.better,
                  100 * around.worst);
    assert_int_equal(around.plans, wanted);
    assert_true(around.worst <= allowed);
    unit_end(&u);
}

/* The plan of a model over 32 v5e. */
static struct hb_plan plan_on_v5e(struct unit *u, const char *model, int seq)
{
    char text[256];
    struct drawn d;
    (void)snprintf(text, sizeof text,
                   "model: {preset: %s}\n"
                   "batch: {global: 64, seq: %d}\n"
                   "mesh: {fsdp: 32}\n"
                   "hardware: {device: tpu-v5e, count: 32}\n"
                   "compiler: xla-tpu\n",
                   model, seq);
    assert_true(find_plan(u, text, &d) && d.plan.found);
    return d.plan;
}

/* A run of two layers on XLA:TPU has no price: it is found all the same. */
static void test_runs_of_two(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_plan plan = plan_on_v5e(&u, "llama3.2-1b", 8192);
    int32_t least = INT32_MAX;
    for (uint32_t i = 0; i < plan.best.run_count; i++)
        least = plan.best.runs[i].steps < least ? plan.best.runs[i].steps : least;
    assert_int_equal(least, 2);
    unit_end(&u);
}

/* Policies that keep values on the device and on the host, in a step of microbatches: on v5e marks
 * beside a turned stack stand within the turn of such a run, which has a price all the same. */
static void test_beside_a_turned_stack(void **state)
{
    (void)state;
    struct unit u;
    unit_start(&u);
    struct hb_plan plan = plan_on_v5e(&u, "llama3-8b", 4096);
    assert_true(plan.best.value < 11600); /* ns a token; 11683 without those prices */
    unit_end(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_brute_force), cmocka_unit_test(test_nothing_lies_around),
        cmocka_unit_test(test_runs_of_two), cmocka_unit_test(test_beside_a_turned_stack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
