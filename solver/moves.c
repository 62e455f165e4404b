/* Neighbours of a configuration in the runs of one block: see moves.h. */
#include "solver/moves.h"

#include <string.h>

struct walk {
    struct hb_moves *m;
    hb_brute_visit *visit;
    void *context;
    struct hb_part parts[HB_PARTS_MAX];
    uint32_t count;
    bool ended;
};

static bool is_own(const struct walk *w, uint32_t part)
{
    return w->m->segment->items[w->parts[part].item].block == w->m->block;
}

static bool makes_loops(const struct hb_moves *m, int32_t one, int32_t other)
{
    return m->segment->admits[one] && m->segment->admits[other];
}

static void restore(struct walk *w)
{
    memcpy(w->parts, w->m->now, w->m->count * sizeof *w->parts);
    w->count = w->m->count;
}

static void visit_parts(struct walk *w)
{
    if (w->ended)
        return;
    w->m->visited++;
    w->ended = !w->visit(w->context, w->parts, w->count);
}

/* Part i under each other policy. */
static void turn(struct walk *w, uint32_t i)
{
    const struct hb_segment *s = w->m->segment;
    uint32_t own = w->parts[i].item;
    for (uint32_t k = s->first_item[w->m->block]; k < s->first_item[w->m->block + 1]; k++) {
        w->parts[i].item = k;
        if (k != own)
            visit_parts(w);
    }
    w->parts[i].item = own;
}

static void turn_two(struct walk *w, uint32_t i)
{
    const struct hb_segment *s = w->m->segment;
    uint32_t own = w->parts[i].item;
    for (uint32_t k = s->first_item[w->m->block]; k < s->first_item[w->m->block + 1]; k++) {
        w->parts[i].item = k;
        for (uint32_t j = i + 1; j < w->m->count && k != own; j++)
            if (is_own(w, j))
                turn(w, j);
    }
    w->parts[i].item = own;
}

static void shift(struct walk *w, uint32_t i)
{
    int32_t own = w->parts[i].steps, both = own + w->parts[i + 1].steps;
    for (int32_t n = w->m->least_steps; n <= both - w->m->least_steps; n++) {
        w->parts[i].steps = n;
        w->parts[i + 1].steps = both - n;
        if (n != own && makes_loops(w->m, n, both - n))
            visit_parts(w);
    }
    w->parts[i].steps = own;
    w->parts[i + 1].steps = both - own;
}

/* Steps from part i to the next or back, and `turned` of the two under another policy. */
static void turn_and_shift(struct walk *w, uint32_t i, uint32_t turned)
{
    const struct hb_segment *s = w->m->segment;
    uint32_t own = w->parts[turned].item;
    for (uint32_t k = s->first_item[w->m->block]; k < s->first_item[w->m->block + 1]; k++) {
        w->parts[turned].item = k;
        if (k != own)
            shift(w, i);
    }
    w->parts[turned].item = own;
}

/* Both parts under each policy. */
static void turn_both(struct walk *w, uint32_t i)
{
    const struct hb_segment *s = w->m->segment;
    uint32_t own = w->parts[i].item;
    for (uint32_t k = s->first_item[w->m->block]; k < s->first_item[w->m->block + 1]; k++) {
        w->parts[i].item = w->parts[i + 1].item = k;
        if (k != own)
            visit_parts(w);
    }
    w->parts[i].item = w->parts[i + 1].item = own;
}

static void cut(struct walk *w, uint32_t i)
{
    int32_t steps = w->parts[i].steps;
    memmove(&w->parts[i + 1], &w->parts[i], (w->count - i) * sizeof *w->parts);
    w->count++;
    for (int32_t n = w->m->least_steps; n <= steps - w->m->least_steps && !w->ended; n++) {
        if (!makes_loops(w->m, n, steps - n))
            continue;
        w->parts[i].steps = n;
        w->parts[i + 1].steps = steps - n;
        turn(w, i);
        turn(w, i + 1);
        if (n != steps / 2)
            continue;
        turn_both(w, i);
        for (uint32_t j = 0; j < w->count; j++)
            if (j != i && j != i + 1 && is_own(w, j))
                turn(w, j);
    }
    restore(w);
}

void hb_moves_each(void *context, hb_brute_visit *visit, void *visit_context)
{
    struct walk w = {.m = context, .visit = visit, .context = visit_context};
    w.m->visited = 0;
    restore(&w);
    for (uint32_t i = 0; i < w.m->count && !w.ended; i++) {
        if (!is_own(&w, i))
            continue;
        turn(&w, i);
        turn_two(&w, i);
        if (i + 1 < w.m->count && is_own(&w, i + 1)) {
            shift(&w, i);
            turn_and_shift(&w, i, i);
            turn_and_shift(&w, i, i + 1);
        }
        if (w.m->count < w.m->most_parts)
            cut(&w, i);
    }
}
