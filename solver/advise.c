/* What hb_schema_check refuses has no effect for the reason that it gives. */
#include "solver/advise.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/env.h"
#include "base/size.h"
#include "models/schema.h"
#include "models/support.h"
#include "sim/engine/measure.h"
#include "sim/engine/result.h"
#include "solver/levers.h"

enum { MOST_PAIRS = 8 };

struct measure {
    int64_t peak_bytes;
    int64_t step_ns;
};

struct advise {
    struct hb_env *env;
    struct hb_arena *scratch;
    const struct hb_spec *spec;
    const struct hb_device *device;
    const struct hb_lever *levers;
    uint32_t count;
    struct measure base;
};

static struct hb_turn open_turn(struct hb_arena *arena, const struct hb_spec *spec)
{
    struct hb_turn t = {.arena = arena};
    size_t blocks = (size_t)spec->model.block_count;
    t.s = hb_arena_alloc(arena, 1, sizeof *t.s);
    *t.s = *spec;
    t.blocks = hb_arena_alloc(arena, blocks, sizeof *t.blocks);
    memcpy(t.blocks, spec->model.blocks, blocks * sizeof *t.blocks);
    t.s->model.blocks = t.blocks;
    return t;
}

/* False: *out_why says what stands against it. */
static bool run_turned(struct advise *a, const struct hb_spec *spec, struct measure *out,
                       const char **out_why)
{
    struct hb_diag diag;
    struct measure m;
    hb_diag_init(&diag, a->scratch);
    if (!hb_schema_check(a->scratch, &diag, NULL, spec) || !hb_spec_supported(&diag, NULL, spec) ||
        !hb_measure_both(a->scratch, &diag, spec, a->device, &m.peak_bytes, &m.step_ns)) {
        *out_why = hb_arena_strdup(a->env->arena, diag.entries[0].text);
        return false;
    }
    *out = m;
    return true;
}

static void fill_effect(const struct advise *a, const struct measure *m, struct hb_advice *out)
{
    out->freed_bytes = a->base.peak_bytes - m->peak_bytes;
    out->cost_ns = m->step_ns - a->base.step_ns;
    out->applies = out->freed_bytes != 0 || out->cost_ns != 0;
    if (!out->applies)
        out->why = "what it changes is not alive at the peak, and costs no time";
}

static struct hb_advice pull(struct advise *a, uint32_t knob)
{
    struct hb_advice advice = {.lever = a->levers[knob].lever,
                               .title = a->levers[knob].title,
                               .name = a->levers[knob].title,
                               .why = a->levers[knob].does,
                               .outside = a->levers[knob].outside};
    struct hb_arena_mark mark = hb_arena_mark(a->scratch);
    struct hb_turn t = open_turn(a->scratch, a->spec);
    struct measure m;
    const char *why = a->levers[knob].turn(&t);
    if (t.name)
        advice.name = hb_arena_strdup(a->env->arena, t.name);
    if (why || !run_turned(a, t.s, &m, &why))
        advice.why = why;
    else
        fill_effect(a, &m, &advice);
    hb_arena_rewind(a->scratch, mark);
    return advice;
}

static struct hb_advice pull_both(struct advise *a, uint32_t first, uint32_t second)
{
    struct hb_advice advice = {.lever = a->levers[first].lever,
                               .why =
                                   hb_arena_printf(a->env->arena, "%s; %s", a->levers[first].does,
                                                   a->levers[second].does)};
    struct hb_arena_mark mark = hb_arena_mark(a->scratch);
    struct hb_turn t = open_turn(a->scratch, a->spec);
    struct measure m;
    const char *why = a->levers[first].turn(&t);
    const char *one = t.name;
    if (!why)
        why = a->levers[second].turn(&t);
    if (!why && run_turned(a, t.s, &m, &why)) {
        advice.name = hb_arena_printf(a->env->arena, "%s, %s", one, t.name);
        advice.title = advice.name;
        fill_effect(a, &m, &advice);
    }
    hb_arena_rewind(a->scratch, mark);
    return advice;
}

static int compare_advice(const void *x, const void *y)
{
    const struct hb_advice *a = x, *b = y;
    if (a->applies != b->applies)
        return a->applies ? -1 : 1;
    if (a->freed_bytes != b->freed_bytes)
        return a->freed_bytes > b->freed_bytes ? -1 : 1;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns ? -1 : 1;
    return a->lever - b->lever;
}

static void find_pairs(struct advise *a, const struct hb_advice *single, struct hb_advice_list *out)
{
    struct hb_advice *all = hb_arena_alloc(a->env->arena, (size_t)a->count * a->count, sizeof *all);
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t k = i + 1; k < a->count; k++) {
            if (!single[i].applies || !single[k].applies ||
                a->levers[i].lever == a->levers[k].lever)
                continue;
            struct hb_advice both = pull_both(a, i, k);
            int64_t more = single[i].freed_bytes > single[k].freed_bytes ? single[i].freed_bytes
                                                                         : single[k].freed_bytes;
            if (both.applies && both.freed_bytes > 0 && both.freed_bytes > more)
                all[count++] = both;
        }
    if (count)
        qsort(all, count, sizeof *all, compare_advice);
    out->pairs = all;
    out->pair_count = count < MOST_PAIRS ? count : MOST_PAIRS;
}

bool hb_advise_find(struct hb_env *env, const struct hb_spec *spec, const struct hb_device *device,
                    struct hb_advice_list *out)
{
    struct advise a = {.env = env, .scratch = hb_arena_new(), .spec = spec, .device = device};
    struct hb_advice single[HB_LEVERS_MOST];
    const char *why = NULL;
    struct hb_budget budget;
    hb_budget_make(spec, device, &budget);
    *out = (struct hb_advice_list){.budget_bytes = budget.bytes};
    a.levers = hb_levers_of(spec, &a.count);
    bool ok = run_turned(&a, spec, &a.base, &why);
    if (ok) {
        out->peak_bytes = a.base.peak_bytes;
        out->step_ns = a.base.step_ns;
        out->knobs = hb_arena_alloc(env->arena, a.count, sizeof *out->knobs);
        for (uint32_t i = 0; i < a.count; i++)
            out->knobs[out->knob_count++] = single[i] = pull(&a, i);
        qsort(out->knobs, out->knob_count, sizeof *out->knobs, compare_advice);
        find_pairs(&a, single, out);
    } else {
        hb_error(env->diag, (struct hb_loc){0}, "%s", why);
    }
    hb_arena_free(a.scratch);
    return ok;
}

const char *hb_advise_best_freer(struct hb_env *env, const struct hb_spec *spec,
                                 const struct hb_device *device)
{
    struct hb_advice_list list;
    if (!hb_advise_find(env, spec, device, &list))
        return NULL;
    for (uint32_t i = 0; i < list.knob_count; i++)
        if (list.knobs[i].applies && list.knobs[i].outside && list.knobs[i].freed_bytes > 0) {
            char size[HB_SIZE_TEXT];
            return hb_arena_printf(env->arena, "%s (%s)", list.knobs[i].name,
                                   hb_size_print(list.knobs[i].freed_bytes, size));
        }
    return NULL;
}

/* With a knob turned, in so many microbatches and fewer: what it frees may be worth that. A plan
 * that is made with it takes no longer. Returns the words of the fastest within the budget that
 * takes no longer than *least_ns, which it becomes; null: none. */
static const char *turn_faster(struct advise *a, uint32_t knob, int64_t budget_bytes,
                               int64_t *least_ns)
{
    struct hb_turn t = open_turn(a->scratch, a->spec);
    const char *words = NULL, *why = a->levers[knob].turn(&t);
    int64_t accumulate = t.s->batch.accumulate;
    for (; !why && t.s->batch.accumulate >= 1; t.s->batch.accumulate /= 2) {
        char size[HB_SIZE_TEXT], time[HB_SIZE_TEXT];
        struct measure m;
        if (!run_turned(a, t.s, &m, &why) || m.peak_bytes > budget_bytes)
            break;
        if (m.step_ns > *least_ns)
            continue;
        *least_ns = m.step_ns;
        bool fewer = t.s->batch.accumulate < accumulate;
        words = hb_arena_printf(a->env->arena,
                                "%s%s: at most %s a step, peak %s (all else as here)", t.name,
                                fewer ? hb_arena_printf(a->scratch, ", batch.accumulate = %lld",
                                                        (long long)t.s->batch.accumulate)
                                      : "",
                                hb_time_print(m.step_ns, time), hb_size_print(m.peak_bytes, size));
    }
    return words;
}

const char *hb_advise_best_faster(struct hb_env *env, const struct hb_spec *spec,
                                  const struct hb_device *device, int64_t budget_bytes)
{
    struct advise a = {.env = env, .scratch = hb_arena_new(), .spec = spec, .device = device};
    const char *why, *words = NULL;
    a.levers = hb_levers_of(spec, &a.count);
    bool ok = run_turned(&a, spec, &a.base, &why);
    int64_t least_ns = ok ? a.base.step_ns / 2 : 0;
    for (uint32_t i = 0; i < a.count && ok; i++) {
        struct hb_arena_mark mark = hb_arena_mark(a.scratch);
        const char *own = a.levers[i].outside ? turn_faster(&a, i, budget_bytes, &least_ns) : NULL;
        words = own ? own : words;
        hb_arena_rewind(a.scratch, mark);
    }
    hb_arena_free(a.scratch);
    return words;
}
