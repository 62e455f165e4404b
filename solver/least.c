#include "solver/least.h"

#include "base/arena.h"

static int64_t path_at(const struct hb_segment *s, uint32_t item, int64_t steps)
{
    return s->items[item].bound_ns[0] ? s->items[item].bound_ns[0][steps] : 0;
}

static int64_t split_ns(const struct hb_segment *s, uint32_t one, uint32_t other, int64_t steps)
{
    int64_t least = INT64_MAX;
    for (int64_t n = 1; n < steps; n++) {
        int64_t ns = path_at(s, one, n) + path_at(s, other, steps - n);
        least = s->admits[n] && s->admits[steps - n] && ns < least ? ns : least;
    }
    return least;
}

/* Of one block, and its pairs. */
static int64_t block_ns(const struct hb_segment *s, int64_t steps, uint32_t first, uint32_t end,
                        struct hb_least *out)
{
    int64_t least = INT64_MAX;
    for (uint32_t i = first; i < end; i++) {
        int64_t whole = path_at(s, i, steps);
        least = whole < least ? whole : least;
        for (uint32_t k = i + 1; k < end; k++) {
            int64_t ns = split_ns(s, i, k, steps);
            out->pair_ns[(size_t)i * s->item_count + k] = ns;
            least = ns < least ? ns : least;
        }
    }
    return first < end ? least : 0;
}

void hb_least_find(struct hb_arena *arena, const struct hb_segment *s, const struct hb_spec *spec,
                   struct hb_least *out)
{
    int blocks = spec->model.block_count;
    size_t items = s->item_count;
    out->item_count = s->item_count;
    out->pair_ns = hb_arena_alloc(arena, items * items, sizeof *out->pair_ns);
    out->rest_ns = hb_arena_alloc(arena, (size_t)blocks + 1, sizeof *out->rest_ns);
    for (int i = blocks - 1; i >= 0; i--) {
        const struct hb_block *b = &spec->model.blocks[i];
        out->rest_ns[i] = out->rest_ns[i + 1] + block_ns(s, hb_block_steps(b), s->first_item[i],
                                                         s->first_item[i + 1], out);
    }
}
