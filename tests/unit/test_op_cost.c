/* What a segment takes its ops to cost, against the engine's cost of the same op in both of the
 * programs that it was read off: never more, and hardly ever less. */
#include "tests/prop/zoo_specs.h"

#include "hw/device.h"
#include "sim/engine/cost.h"
#include "solver/replay.h"

enum { SPECS = 60, POLICIES = 3 };

struct sample {
    struct hb_arena *arena;
    struct hb_spec spec;
    struct hb_device device;
    struct hb_segment segment;
};

static bool draw_sample(struct sample *s, struct hb_rng *rng)
{
    struct hb_diag diag;
    const char *why;
    zoo_spec(s->arena, rng, &s->spec);
    hb_diag_init(&diag, s->arena);
    assert_true(hb_device_load(s->arena, &diag, HB_SOURCE_DIR, s->spec.hardware.device,
                               (struct hb_loc){0}, &s->device));
    struct hb_menu *menus = zoo_menus(s->arena, rng, &s->spec.model, POLICIES);
    struct hb_segment_ask ask = {.spec = &s->spec, .menus = menus, .device = &s->device};
    return hb_segment_build(s->arena, &ask, &s->segment, &why) && s->segment.timed;
}

struct counts {
    int compared, close, copies;
};

/* In the program whose groups' loops make so many trips, where so many steps are cut like that. */
static void check_program(const struct sample *s, const struct hb_program *p, int64_t outer,
                          const int64_t *inner, struct counts *c)
{
    const struct hb_timed *t = s->segment.timed;
    struct hb_cost cost;
    hb_cost_init(&cost, p, &s->device);
    for (uint32_t i = 0; i < p->op_count; i++) {
        uint32_t owner = t->outline->op_owner[i];
        if (owner >= t->outline->pair.group_count)
            continue;
        int64_t n = outer ? outer * inner[owner] : inner[owner];
        if (n > s->segment.max_steps || t->sized->outer[n] != (outer ? outer : 1) ||
            t->sized->inner[n] != inner[owner])
            continue;
        int64_t own = hb_cost_op_ns(&cost, i), said = hb_op_cost_at(&t->costs, i, n);
        assert_true(said <= own);
        c->compared++;
        c->close += said + 1 >= own || (double)said > 0.95 * (double)own;
        c->copies += p->ops[i].kind == HB_OP_HOST_COPY && said > 0;
    }
}

static void no_op_costs_more_than_it_does(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(83);
    struct counts c = {0};
    for (int specs = 0; specs < SPECS;) {
        struct sample s = {.arena = hb_arena_new()};
        if (draw_sample(&s, &rng)) {
            const struct hb_outline_pair *pair = &s.segment.timed->outline->pair;
            int64_t *inner_a = hb_arena_alloc(s.arena, pair->group_count, sizeof *inner_a);
            for (uint32_t g = 0; g < pair->group_count; g++)
                inner_a[g] = pair->inner_a;
            check_program(&s, pair->a, pair->outer_a, inner_a, &c);
            check_program(&s, pair->b, pair->outer_b, pair->inner_b, &c);
            specs++;
        }
        hb_arena_free(s.arena);
    }
    print_message("# of %d ops %d close, %d copies\n", c.compared, c.close, c.copies);
    assert_true(c.compared > SPECS * 100 && c.copies > SPECS / 2);
    assert_true(c.close > c.compared * 19 / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_op_costs_more_than_it_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
