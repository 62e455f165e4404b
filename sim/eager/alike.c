#include "sim/eager/alike.h"

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"

/* What runs by itself: a microbatch, or its part at one of the rank's stages where no stage hands
 * what it makes to the next by hand. */
struct parts {
    const struct hb_pipeline *p;
    int64_t rank;
    bool by_stage;
};

static struct parts part(const struct hb_pipeline *p, int64_t rank)
{
    struct parts of = {p, rank, true};
    for (int64_t k = 0; k + 1 < p->chunks; k++)
        if (hb_pipeline_rank(p, hb_pipeline_stage(p, rank, k) + 1) == rank)
            of.by_stage = false;
    return of;
}

static size_t part_of(const struct parts *of, const struct hb_action *a)
{
    int64_t k = 0;
    if (!of->by_stage)
        return (size_t)a->microbatch;
    while (hb_pipeline_stage(of->p, of->rank, k) != a->stage)
        k++;
    return (size_t)(a->microbatch * of->p->chunks + k);
}

/* Actions by part, each one's in order: those of m stand from first[m] to first[m + 1]. */
struct table {
    const struct hb_actions *a;
    uint32_t *first;
    uint32_t *at; /* places in the list */
};

static struct table by_part(struct hb_arena *arena, const struct hb_actions *a,
                            const struct parts *of, size_t count)
{
    struct table t = {.a = a};
    t.first = hb_arena_alloc(arena, count + 2, sizeof *t.first);
    t.at = hb_arena_alloc(arena, a->count, sizeof *t.at);
    for (uint32_t i = 0; i < a->count; i++)
        if (hb_action_is_of_one(&a->list[i]))
            t.first[part_of(of, &a->list[i]) + 2]++;
    for (size_t m = 2; m <= count; m++)
        t.first[m] += t.first[m - 1];
    for (uint32_t i = 0; i < a->count; i++)
        if (hb_action_is_of_one(&a->list[i]))
            t.at[t.first[part_of(of, &a->list[i]) + 1]++] = i;
    return t;
}

static bool do_the_same(const struct table *t, size_t m, size_t other)
{
    uint32_t count = t->first[m + 1] - t->first[m];
    if (t->first[other + 1] - t->first[other] != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct hb_action *a = &t->a->list[t->at[t->first[m] + i]];
        const struct hb_action *b = &t->a->list[t->at[t->first[other] + i]];
        if (a->kind != b->kind || a->stage != b->stage)
            return false;
    }
    return true;
}

static void mark(const struct table *t, size_t m, size_t model, struct hb_alike *out)
{
    enum hb_alike_kind kind = m == model ? HB_ALIKE_MODEL : HB_ALIKE_LEFT_OUT;
    for (uint32_t i = 0; i < t->first[m + 1] - t->first[m]; i++)
        out[t->at[t->first[m] + i]] = (struct hb_alike){kind, t->at[t->first[model] + i]};
}

struct hb_alike *hb_alike_find(struct hb_arena *arena, const struct hb_pipeline *p, int64_t rank,
                               const struct hb_actions *a)
{
    struct hb_alike *out = hb_arena_alloc(arena, a->count, sizeof *out);
    struct hb_arena *scratch = hb_arena_new();
    struct parts of = part(p, rank);
    size_t count = (size_t)(p->microbatches * p->chunks), kinds = 0;
    struct table t = by_part(scratch, a, &of, count);
    struct kind {
        size_t first, model;
    } *kind = hb_arena_alloc(scratch, count, sizeof *kind);
    for (size_t m = 0; m < count; m++) {
        size_t k = 0;
        while (k < kinds && !do_the_same(&t, m, kind[k].first))
            k++;
        if (k == kinds) {
            kind[kinds++] = (struct kind){m, 0};
            continue;
        }
        kind[k].model = kind[k].model ? kind[k].model : m;
        mark(&t, m, kind[k].model, out);
    }
    hb_arena_free(scratch);
    return out;
}

struct hb_stretch hb_stretch_begin(struct hb_sums *sums)
{
    struct hb_stretch before = {sums->alive_bytes, sums->most_bytes, sums->asked_bytes,
                                sums->asked_count};
    sums->most_bytes = sums->alive_bytes;
    sums->repeats = true;
    return before;
}

void hb_stretch_end(struct hb_sums *sums, struct hb_stretch *s)
{
    struct hb_stretch before = *s;
    *s = (struct hb_stretch){
        sums->alive_bytes - before.change_bytes, sums->most_bytes - before.change_bytes,
        sums->asked_bytes - before.asked_bytes, sums->asked_count - before.asked_count};
    sums->most_bytes = hb_larger(sums->most_bytes, before.most_bytes);
    sums->repeats = false;
}

void hb_stretch_add(struct hb_sums *sums, const struct hb_stretch *s)
{
    sums->most_bytes = hb_larger(sums->most_bytes, hb_add_sat(sums->alive_bytes, s->most_bytes));
    sums->alive_bytes = hb_add_sat(sums->alive_bytes, s->change_bytes);
    sums->asked_bytes = hb_add_sat(sums->asked_bytes, s->asked_bytes);
    sums->asked_count += s->asked_count;
    sums->left_out = true;
}
