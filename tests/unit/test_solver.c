/* Parts of the search that golden plans hardly tell apart: whether a floor's program has the form
 * that its sums take for granted, which policies a menu offers, what a cell's axes bring, what
 * stands beside an op in all programs. */
#include "tests/unit/unit.h"
#include "tests/unit/unit_spec.h"

#include "hw/device.h"
#include "sim/engine/live.h"
#include "sim/engine/measure.h"
#include "sim/ir/lower.h"
#include "solver/menu.h"
#include "solver/op_floor.h"
#include "solver/plan.h"
#include "solver/remedy.h"
#include "solver/sample.h"
#include "solver/segment_build.h"
#include "solver/space.h"
#include "solver/stop.h"
#include "solver/torch_space.h"
#include "tests/unit/each.h"

#define BLOCK(more)                                                                                \
    "model:\n  d_model: 256\n  vocab: 1024\n  blocks:\n    - {name: a, repeat: 4, " more "}\n"     \
    "batch: {global: 8, seq: 256}\nmesh: {fsdp: 4}\nhardware: {device: tpu-v5p, count: 4}\n"
#define SMALL BLOCK("attention: {heads: 4}, mlp: {d_ff: 512}")

#define TORCH                                                                                      \
    "model:\n  d_model: 256\n  vocab: 1024\n  blocks:\n"                                           \
    "    - {name: a, repeat: 4, attention: {heads: 4}, mlp: {d_ff: 512}}\n"                        \
    "batch: {global: 8, seq: 256}\nmesh: {fsdp: 4}\ncompiler: torch\n"                             \
    "hardware: {device: nvidia-h100, count: 4}\n"

/* With the whole program of the kept ones. */
static bool builds(const struct hb_spec *spec, struct hb_floor_programs *programs)
{
    struct hb_device device = unit_device(&u, spec);
    struct hb_segment_ask ask = {
        .spec = spec, .device = &device, .floor = true, .programs = programs};
    struct hb_segment segment;
    const char *why;
    return hb_segment_build(u.env.arena, &ask, &segment, &why);
}

static void a_floor_has_the_form_of_its_sums(void **state)
{
    (void)state;
    struct hb_spec spec = unit_spec(&u, SMALL);
    struct hb_floor_programs programs = {.known = {false}};
    assert_true(builds(&spec, &programs));
    struct hb_program *p = &programs.lowered[HB_FLOOR_WHOLE];
    assert_true(programs.known[HB_FLOOR_WHOLE] && p->op_count > 20);
    assert_true(builds(&spec, &programs));
    for (uint32_t i = 0; i < p->op_count; i += 7) {
        struct hb_op *op = &p->ops[i], was = *op;
        op->kind = was.kind == HB_OP_MARK ? HB_OP_ELEMENTWISE : HB_OP_MARK;
        assert_false(builds(&spec, &programs));
        *op = was;
        op->stream = was.stream == HB_STREAM_COMPUTE ? HB_STREAM_COLLECTIVE : HB_STREAM_COMPUTE;
        assert_false(builds(&spec, &programs));
        *op = was;
    }
    p->op_count--;
    assert_false(builds(&spec, &programs));
    p->op_count++;
    assert_true(builds(&spec, &programs));
}

static struct hb_menu menu_of(const char *text, uint32_t most, uint32_t *out_tried)
{
    struct hb_spec spec = unit_spec(&u, text);
    struct hb_device device = unit_device(&u, &spec);
    struct hb_arena *scratch = hb_arena_new();
    struct hb_menu menu = hb_menu_make(u.env.arena, scratch, &spec, &device, most, out_tried)[0];
    hb_arena_free(scratch);
    return menu;
}

/* Policies that save so many tensors, and nothing on the host. */
static uint32_t count_saving(const struct hb_menu *menu, int least, int most)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < menu->count; i++) {
        int saved = __builtin_popcount(menu->policies[i].save);
        count += !menu->policies[i].offload && saved >= least && saved <= most;
    }
    return count;
}

/* Of many tensors sets grow one by one from those that are worth it; of few all are tried. */
static void menus_try_sets(void **state)
{
    (void)state;
    uint32_t few, many, none;
    struct hb_menu small = menu_of(SMALL, HB_MENU_MOST, &few);
    struct hb_menu large =
        menu_of(BLOCK("post_norm: true, attention: {heads: 4, kind: mla, q_lora_rank: 64, "
                      "kv_lora_rank: 32, qk_nope_head_dim: 32, qk_rope_head_dim: 16, "
                      "v_head_dim: 32}, moe: {experts: 4, top_k: 2, d_ff: 128, "
                      "shared_experts: 1}"),
                HB_MENU_MOST, &many);
    struct hb_menu own = menu_of(SMALL, 1, &none);
    assert_true(few > 127 && small.count <= HB_MENU_MOST && count_saving(&small, 2, 6) > 6);
    assert_true(many > 400 && large.count <= HB_MENU_MOST && count_saving(&large, 2, 14) >= 3);
    assert_true(own.count == 1 && none == 0);
}

/* Unrolled layers are in no segment: the file's own policy, the others by their names, and sets
 * that keep one tensor, or all of them, are offered unseen. */
static void menus_without_segments_are_plain(void **state)
{
    (void)state;
    static const enum hb_policy first[] = {HB_POLICY_FULL, HB_POLICY_NONE, HB_POLICY_DOTS,
                                           HB_POLICY_DOTS_NO_BATCH};
    uint32_t tried;
    struct hb_menu menu = menu_of(SMALL "stack: {form: loop}\n", HB_MENU_MOST, &tried);
    for (uint32_t i = 0; i < menu.count; i++)
        assert_int_equal(menu.policies[i].policy, i < 4 ? first[i] : HB_POLICY_NAMES);
    assert_int_equal(menu.count, 14);
    assert_int_equal(count_saving(&menu, 1, 1), 8);
}

struct lives {
    struct hb_live *list;
    uint32_t count;
};

/* Gradients that are there where their last reader is, not before. */
static struct lives cut_short(const struct hb_program *p, struct lives from)
{
    struct lives cut = {hb_arena_alloc(u.env.arena, from.count, sizeof *cut.list), from.count};
    for (uint32_t i = 0; i < from.count; i++) {
        cut.list[i] = from.list[i];
        if (p->bufs[from.list[i].buf].category == HB_CAT_GRADIENTS)
            cut.list[i].start = cut.list[i].end;
    }
    return cut;
}

/* By a program that keeps all, and another that has the same ops. */
static int64_t op_floor(const struct hb_program *p, struct lives all, struct lives other)
{
    bool *optional = hb_arena_alloc(u.env.arena, p->op_count, sizeof *optional);
    bool *counts = hb_arena_alloc(u.env.arena, p->op_count, sizeof *counts);
    for (uint32_t i = 0; i < p->op_count; i++)
        counts[i] = true;
    struct hb_op_floor_ask ask = {.all = p,
                                  .live = all.list,
                                  .live_count = all.count,
                                  .optional = optional,
                                  .counts = counts};
    struct hb_op_floor *floor = hb_op_floor_open(u.env.arena, &ask);
    int64_t before = hb_op_floor_bytes(floor);
    hb_op_floor_join(floor, p, other.list, other.count);
    int64_t bytes = hb_op_floor_bytes(floor);
    assert_true(bytes <= before);
    return bytes;
}

/* It counts beside an op in the floor when it is there beside that op in each of the programs. */
static void gradients_are_there_in_all_programs(void **state)
{
    (void)state;
    struct hb_spec spec = unit_spec(&u, SMALL);
    struct hb_program p;
    struct lives whole;
    assert_true(hb_lower(u.env.arena, &u.diag, &spec, &p));
    whole.count = hb_live_find(u.env.arena, &p, &whole.list);
    struct lives cut = cut_short(&p, whole);
    int64_t least = op_floor(&p, cut, cut);
    assert_true(op_floor(&p, whole, whole) > least);
    assert_true(op_floor(&p, cut, whole) == least);
    assert_true(op_floor(&p, whole, cut) == least);
}

/* Of a file that splits neither heads nor sequences. */
static struct hb_spec torch_cell(int64_t tensor, int64_t sequence)
{
    struct hb_spec base = unit_spec(&u, TORCH), out;
    struct hb_cell cell = {.batch_global = base.batch.global, .accumulate = 1};
    memcpy(cell.mesh, base.mesh, sizeof cell.mesh);
    cell.mesh[HB_AX_FSDP] = 1;
    cell.mesh[HB_AX_TENSOR] = tensor;
    cell.mesh[HB_AX_SEQUENCE] = sequence;
    hb_space_cell_spec(&base, &cell, &out);
    return out;
}

/* What an axis brings with it under torchtitan comes where there is more than one of it. */
static void axes_bring_what_they_split(void **state)
{
    (void)state;
    struct hb_spec s = torch_cell(1, 1);
    assert_false(s.sharding.residual_over_tensor || s.sharding.states_over_sequence);
    s = torch_cell(4, 1);
    assert_true(s.sharding.residual_over_tensor && s.sharding.vocab_over_tensor);
    assert_false(s.sharding.states_over_sequence);
    s = torch_cell(1, 4);
    assert_true(s.sharding.states_over_sequence && !s.sharding.residual_over_tensor);
}

/* Cells that are a nested scan, of a block with so many layers. */
static int count_nested(int layers)
{
    struct hb_plan_space space;
    struct hb_spec spec = unit_spec(
        &u, hb_arena_printf(u.env.arena,
                            "model:\n  d_model: 256\n  vocab: 1024\n  blocks:\n"
                            "    - {name: a, repeat: %d, attention: {heads: 4}, mlp: {d_ff: 512}}\n"
                            "batch: {global: 8, seq: 256}\nmesh: {fsdp: 4}\n"
                            "hardware: {device: tpu-v5p, count: 4}\n"
                            "plan: {search: {mesh: [fsdp], stack: [scan, nested]}}\n",
                            layers));
    struct hb_device device = unit_device(&u, &spec);
    int count = 0;
    assert_true(hb_space_make(u.env.arena, &spec, &device, 4, &space));
    for (uint32_t i = 0; i < space.cell_count; i++)
        count += space.cells[i].form == HB_FORM_NESTED;
    return count;
}

/* Layers of a prime number are not cut into equal parts. */
static void scans_are_nested_where_layers_are_cut(void **state)
{
    (void)state;
    assert_int_equal(count_nested(7), 0);
    assert_true(count_nested(8) > 0);
}

/* XLA:GPU's states on the host are there all at once as the step begins, which frees nothing. */
static void places_of_states_are_searched_where_they_free_memory(void **state)
{
    (void)state;
    struct hb_spec tpu = unit_spec(&u, SMALL), gpu = tpu, torch = unit_spec(&u, TORCH);
    gpu.compiler = HB_XLA_GPU;
    assert_true(hb_space_axes_of(&tpu).offloads & 1u << HB_PLACE_PINNED_HOST);
    assert_true(hb_space_axes_of(&torch).offloads & 1u << HB_PLACE_PINNED_HOST);
    assert_false(hb_space_axes_of(&gpu).offloads & 1u << HB_PLACE_PINNED_HOST);
}

/* Cells of a pipeline of torch that have the file's own schedule, in so many parts a rank. */
static int count_own(const char *schedule, int repeats)
{
    struct hb_plan_space space;
    struct hb_spec spec = unit_spec(
        &u, hb_arena_printf(
                u.env.arena,
                "model:\n  d_model: 256\n  vocab: 1024\n  blocks:\n"
                "    - {name: a, repeat: 32, attention: {heads: 4}, mlp: {d_ff: 512}}\n"
                "batch: {global: 16, seq: 256}\nmesh: {fsdp: 2, pipeline: 2}\ncompiler: torch\n"
                "hardware: {device: nvidia-h100, count: 4}\nremat: {policy: none}\n"
                "sharding: {reshard_after_forward: false}\n"
                "pipeline: {schedule: %s, microbatches: 8, repeats: 2}\n"
                "plan: {search: {remat: true, repeats: [%d]}}\n",
                schedule, repeats));
    struct hb_device device = unit_device(&u, &spec);
    int count = 0;
    if (!hb_torch_space_make(u.env.arena, &spec, &device, 4, &space))
        return 0;
    for (uint32_t i = 0; i < space.cell_count; i++)
        count += space.cells[i].mesh[HB_AX_PIPELINE] == 2 &&
                 space.cells[i].torch.schedule == spec.pipeline.schedule;
    return count;
}

/* A V takes a rank's two parts and no other number, other schedules any above one. */
static void schedules_stay_where_their_parts_allow(void **state)
{
    (void)state;
    static const char *const vees[] = {"zbv", "dualpipe_v"};
    for (int i = 0; i < 2; i++) {
        assert_true(count_own(vees[i], 2) > 0);
        assert_int_equal(count_own(vees[i], 4), 0);
    }
    assert_true(count_own("zero_bubble", 2) > 0);
    assert_true(count_own("zero_bubble", 4) > 0);
}

static int64_t clock_ns;
static int looks;

static int64_t set_clock(void)
{
    return clock_ns;
}

static bool is_asked(void)
{
    return ++looks > 1;
}

/* The time that it has is all its own; once it is over it stays so, whatever the clock says. */
static void a_search_ends_behind_its_time(void **state)
{
    (void)state;
    struct hb_stop stop = {.now_ns = set_clock};
    clock_ns = 5;
    hb_stop_start(&stop, 10);
    clock_ns = 15;
    assert_false(hb_stop_now(&stop));
    clock_ns = 16;
    assert_true(hb_stop_now(&stop));
    clock_ns = 6;
    assert_true(hb_stop_now(&stop));
    stop = (struct hb_stop){.now_ns = set_clock, .is_asked = is_asked};
    clock_ns = 0;
    hb_stop_start(&stop, 0);
    assert_false(hb_stop_now(&stop)); /* too soon to ask */
    assert_int_equal(looks, 0);
    clock_ns = INT64_MAX / 4;
    assert_false(hb_stop_now(&stop));
    assert_int_equal(looks, 1);
    clock_ns = INT64_MAX / 2;
    assert_true(hb_stop_now(&stop));
    assert_false(hb_stop_now(NULL));
}

/* The second run of a block is its name's second; what another block is called is passed over. */
static void runs_have_names_of_their_own(void **state)
{
    (void)state;
    struct hb_spec spec = unit_spec(&u, SMALL);
    struct hb_block blocks[2] = {spec.model.blocks[0], spec.model.blocks[0]};
    assert_string_equal(hb_space_run_name(u.env.arena, &spec, 0, 0), "a");
    assert_string_equal(hb_space_run_name(u.env.arena, &spec, 0, 1), "a_2");
    blocks[1].name = "a_2";
    spec.model.blocks = blocks;
    spec.model.block_count = 2;
    assert_string_equal(hb_space_run_name(u.env.arena, &spec, 0, 1), "a_3");
}

/* A stack of which some trips are written out is no shorter in the sample than these. */
static void stacks_unrolled_in_part_are_sampled(void **state)
{
    (void)state;
    for (int unroll = 1; unroll <= 6; unroll++) {
        struct hb_spec spec = unit_spec(&u, SMALL);
        struct hb_block block = spec.model.blocks[0];
        block.repeat = 24;
        spec.model.blocks = &block;
        spec.stack.unroll = unroll;
        assert_true(builds(&spec, NULL));
    }
}

/* The smallest configuration over twice as many devices, of which fewer microbatches may be left.
 */
static void more_devices_are_told_where_they_do(void **state)
{
    (void)state;
    struct hb_spec spec = unit_spec(&u, SMALL), twice = spec;
    struct hb_device device = unit_device(&u, &spec);
    int64_t own_bytes, twice_bytes;
    twice.mesh[HB_AX_FSDP] = twice.hardware.count = 8;
    assert_true(hb_measure_peak(u.env.arena, &spec, &own_bytes));
    assert_true(hb_measure_peak(u.env.arena, &twice, &twice_bytes));
    assert_true(twice_bytes < own_bytes);
    assert_int_equal(hb_remedy_devices(u.env.arena, &spec, &device, twice_bytes, 4), 8);
    assert_int_equal(hb_remedy_devices(u.env.arena, &spec, &device, 1, 4), 0);
    spec.batch.accumulate = 2;
    assert_int_equal(hb_remedy_devices(u.env.arena, &spec, &device, INT64_MAX, 2), 8);
}

/* Of a cell the first policy of the menu, the last, and those that lie evenly between. */
static void samples_lie_evenly_on_the_menu(void **state)
{
    (void)state;
    enum { MOST = 40, EACH = 3 };
    struct hb_spec spec =
        unit_spec(&u, SMALL "plan: {search: {mesh: [fsdp], loss_chunks: [1, 2]}}\n");
    struct hb_device device = unit_device(&u, &spec);
    struct hb_plan_ask ask;
    struct hb_plan plan;
    struct hb_candidate *items;
    uint32_t tried;
    hb_plan_ask_make(&u.env, &spec, &device, &ask);
    struct hb_menu menu = menu_of(SMALL, HB_MENU_MOST, &tried);
    ask.menus = &menu;
    assert_true(hb_plan_find(u.env.arena, &ask, &plan) && plan.found);
    uint32_t last = plan.menus[0].count - 1;
    uint32_t count = hb_plan_sample(u.env.arena, &ask, &plan, MOST, &items);
    uint32_t first = last + 1 < MOST / 2 ? last + 1 : MOST / 2;
    assert_true(last >= EACH && count == first + 2 * EACH);
    for (uint32_t i = first, k = 0; i < count; i++, k = (k + 1) % EACH) {
        assert_int_equal(items[i].cell, items[i - k].cell);
        assert_int_equal(items[i].runs[0].policy, k == 0 ? 0 : k == 1 ? last / 2 : last);
    }
}

/* Neither a relaxation nor prices say anything of a pipeline's layers: no effort goes there. */
static void pipelines_are_asked_for_no_layers(void **state)
{
    (void)state;
    for (int stages = 1; stages <= 4; stages += 3) {
        struct hb_spec spec = unit_spec(&u, SMALL "plan: {search: {remat: true}}\n");
        struct hb_device device = unit_device(&u, &spec);
        struct hb_plan_ask ask;
        struct hb_plan plan;
        spec.mesh[HB_AX_FSDP] = 4 / stages;
        spec.mesh[HB_AX_PIPELINE] = stages;
        spec.pipeline.microbatches = 4;
        hb_plan_ask_make(&u.env, &spec, &device, &ask);
        assert_true(hb_plan_find(u.env.arena, &ask, &plan) && plan.found);
        assert_int_equal(plan.counts.layer_bounds > 0, stages == 1);
    }
}

static bool is_empty_in(const struct hb_slot *slot, const struct hb_lend_slot *lends)
{
    bool empty = false;
    for (int32_t t = (int32_t)slot->first_op; t < (int32_t)slot->end_op; t++)
        empty = empty || (t > lends->after && t <= lends->until);
    return empty;
}

/* In a slot is lent what is empty at one of its ops at least. */
static void memory_is_lent_where_it_is_empty(void **state)
{
    (void)state;
    enum { OPS = 7, LIVES = (OPS + 1) * (OPS + 2) };
    struct hb_slot slot;
    struct hb_segment segment = {.slots = &slot, .slot_count = 1};
    struct hb_lend_slot lends = {.bytes = 100};
    struct hb_building w = {.s = &segment, .lends = &lends};
    for (slot.first_op = 0; slot.first_op < OPS; slot.first_op++)
        for (slot.end_op = slot.first_op + 1; slot.end_op <= OPS; slot.end_op++)
            for (int i = 0; i < LIVES; i++) {
                lends.after = i / (OPS + 2) - 1;
                lends.until = lends.after + i % (OPS + 2);
                assert_true(hb_building_lends(&w, 0, 0) == is_empty_in(&slot, &lends));
            }
    w.lends = NULL;
    assert_false(hb_building_lends(&w, 0, 0));
}

/* Each that is free has its words, in the order of the file; nothing is free: that. */
static void what_is_free_has_words(void **state)
{
    (void)state;
    static const char *const words[] = {"mesh",
                                        "mesh",
                                        "remat and offload",
                                        "nesting",
                                        "the optimizer's place",
                                        "batch",
                                        "accumulation",
                                        "loss chunks",
                                        "microbatches",
                                        "chunks of a pipeline's rank",
                                        "whether gathered weights stay"};
    struct hb_arena *arena = hb_arena_new();
    for (int i = -1; i < 11; i++) {
        struct hb_spec spec = {0};
        struct hb_plan_axes *p = &spec.plan;
        struct hb_plan_space space = {.base = &spec, .written = true};
        p->mesh_axes = i == 0;
        p->mesh_count = i == 1;
        p->remat = i == 2;
        p->stack_forms = i == 3;
        p->optimizer_offload = i == 4;
        p->batch_global_count = i == 5;
        p->accumulate_count = i == 6;
        p->loss_chunks_count = i == 7;
        p->microbatches_count = i == 8;
        p->repeats_count = i == 9;
        p->reshard = i == 10;
        assert_string_equal(hb_space_words(arena, &space), i < 0 ? "nothing" : words[i]);
        p->remat = p->reshard = true;
        if (i < 0)
            assert_string_equal(hb_space_words(arena, &space),
                                "remat and offload, whether gathered weights stay");
        space.written = false;
        assert_non_null(strstr(hb_space_words(arena, &space), "batch and sequence stay"));
    }
    hb_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(axes_bring_what_they_split),
        TEST(a_floor_has_the_form_of_its_sums),
        TEST(menus_try_sets),
        TEST(menus_without_segments_are_plain),
        TEST(a_search_ends_behind_its_time),
        TEST(scans_are_nested_where_layers_are_cut),
        TEST(places_of_states_are_searched_where_they_free_memory),
        TEST(schedules_stay_where_their_parts_allow),
        TEST(more_devices_are_told_where_they_do),
        TEST(what_is_free_has_words),
        TEST(samples_lie_evenly_on_the_menu),
        TEST(pipelines_are_asked_for_no_layers),
        TEST(stacks_unrolled_in_part_are_sampled),
        TEST(runs_have_names_of_their_own),
        TEST(gradients_are_there_in_all_programs),
        TEST(memory_is_lent_where_it_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
