/* Laws of eager frameworks' steps on random models, meshes and keys: time covers each stream,
 * faster devices and smaller types are never slower, rematerialisation never computes less. */
#include "tests/prop/seed.h"
#include "tests/unit/unit.h"

#include "hw/device.h"
#include "sim/engine/run.h"
#include "sim/eager/timed.h"
#include "tests/prop/zoo_specs.h"

enum { TRIES = 1500 };

static struct hb_timing time_of(struct hb_arena *arena, const struct hb_spec *spec,
                                const struct hb_device *device)
{
    struct hb_diag diag;
    struct hb_program p;
    struct hb_timing t;
    hb_diag_init(&diag, arena);
    assert_true(hb_spec_timed(&diag, NULL, spec));
    assert_true(hb_timed_lower(arena, &diag, spec, &p));
    hb_run_timing(arena, &p, device, &t);
    return t;
}

static void make_eager(struct hb_arena *arena, struct hb_rng *rng, struct hb_spec *s)
{
    static const int64_t stages[] = {1, 1, 2, 4}, counts[] = {4, 8, 16};
    struct hb_block *blocks = hb_arena_alloc(arena, (size_t)s->model.block_count, sizeof *blocks);
    s->compiler = HB_TORCH;
    s->runtime.framework = (enum hb_framework)hb_rng_range(rng, 0, 2);
    s->runtime.compile = chance(rng, 50);
    s->runtime.grad_fusion = chance(rng, 50);
    s->precision.grads = (enum hb_grads)hb_rng_range(rng, 0, 2);
    s->loss.kernel = (enum hb_loss_kernel)hb_rng_range(rng, 0, 4);
    s->sharding.reshard_after_forward = chance(rng, 50);
    s->sharding.dense_over_expert = chance(rng, 30);
    s->sharding.states_over_sequence = chance(rng, 30);
    s->sharding.sequence_kind = (enum hb_sequence_kind)hb_rng_range(rng, 0, 2);
    s->remat.every = hb_rng_range(rng, 1, 3);
    s->mesh[HB_AX_PIPELINE] = pick(rng, stages, 4);
    s->hardware.count *= s->mesh[HB_AX_PIPELINE];
    s->pipeline.schedule = (enum hb_schedule)hb_rng_range(rng, 1, 4);
    s->pipeline.microbatches = pick(rng, counts, 3);
    s->pipeline.repeats = s->pipeline.schedule == HB_SCHED_INTERLEAVED ? 2 : 1;
    struct hb_remat remat = zoo_remat(rng);
    for (int i = 0; i < s->model.block_count; i++) {
        blocks[i] = s->model.blocks[i];
        blocks[i].remat = remat;
    }
    s->model.blocks = blocks;
    s->model.mtp = 0;
}

static void check_laws(struct hb_arena *arena, const struct hb_spec *spec,
                       const struct hb_device *device)
{
    struct hb_device calm = *device, fast;
    calm.overlap_slowdown = 0;
    fast = calm;
    for (int i = 0; i < HB_RATE_COUNT; i++)
        fast.peak_flops[i] *= 2;
    fast.hbm_bytes_per_s *= 2;
    fast.link_bytes_per_s *= 2;
    fast.net_bytes_per_s *= 2;
    struct hb_timing t = time_of(arena, spec, &calm);
    assert_true(t.step_ns > 0 && t.flops > 0);
    for (int i = 0; i < HB_STREAM_COUNT; i++)
        assert_true(t.busy_ns[i] >= 0 && t.busy_ns[i] <= t.step_ns);
    assert_true(time_of(arena, spec, &fast).step_ns <= t.step_ns);
    assert_true(time_of(arena, spec, device).step_ns >= t.step_ns);
    struct hb_spec other = *spec;
    struct hb_block *blocks =
        hb_arena_alloc(arena, (size_t)spec->model.block_count, sizeof *blocks);
    for (int i = 0; i < spec->model.block_count; i++) {
        blocks[i] = spec->model.blocks[i];
        blocks[i].remat = (struct hb_remat){.policy = HB_POLICY_NONE};
    }
    other.model.blocks = blocks;
    struct hb_timing kept = time_of(arena, &other, &calm);
    assert_true(kept.flops <= t.flops * (1 + 1e-12));
    assert_true(kept.step_ns <= t.step_ns);
}

static void test_laws(void **state)
{
    (void)state;
    struct hb_arena *arena = hb_arena_new();
    struct hb_rng rng = hb_rng_seed(prop_seed(11));
    for (uint64_t i = 0; i < prop_cases(TRIES); i++) {
        struct hb_arena_mark mark = hb_arena_mark(arena);
        struct hb_diag diag;
        struct hb_spec spec;
        struct hb_device device;
        hb_diag_init(&diag, arena);
        zoo_spec(arena, &rng, &spec);
        assert_true(hb_device_load(arena, &diag, HB_SOURCE_DIR, spec.hardware.device,
                                   (struct hb_loc){0}, &device));
        make_eager(arena, &rng, &spec);
        check_laws(arena, &spec, &device);
        hb_arena_rewind(arena, mark);
    }
    hb_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_laws)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
