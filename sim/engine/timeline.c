/* One sweep over the positions with the sum by category in hand: lives that begin are added, ops
 * that write hand a root's memory to what they wrote, lives that are over are taken out. */
#include "sim/engine/timeline.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "sim/engine/live.h"

struct sweep {
    const struct hb_program *p;
    const struct hb_memory *memory;
    int64_t sum[HB_CATEGORY_COUNT];
    uint32_t *root;              /* by buffer */
    uint32_t *tenant;            /* by root: the buffer that its memory is counted as */
    const struct hb_live **live; /* by root; null: none, or not in HBM */
    bool *counted;               /* by root: in the sum now */
    bool *argument;              /* by root: stays what it is */
};

static void count_root(struct sweep *s, uint32_t root, int sign)
{
    const struct hb_memory *m = s->memory;
    const struct hb_buf *buf = &s->p->bufs[s->tenant[root]];
    int64_t align = m->offset_of[root] >= 0 ? m->heap_align_bytes : m->leaf_align_bytes;
    int64_t bytes = hb_round_up(s->live[root]->bytes, align);
    s->sum[buf->category] += sign * buf->plain_bytes;
    s->sum[HB_CAT_PADDING] += sign * (bytes - buf->plain_bytes);
    s->counted[root] = sign > 0;
}

/* Tenants as in memory.c: the largest of those that share the memory, the earliest of equals
 * until a later one is written. */
static void find_roots(struct sweep *s)
{
    for (uint32_t i = 0; i < s->p->buf_count; i++) {
        const struct hb_buf *buf = &s->p->bufs[i];
        uint32_t root = buf->alias_of == HB_NONE ? i : s->root[buf->alias_of];
        s->root[i] = root;
        s->argument[root] = s->argument[root] || buf->argument;
        if (root == i || buf->bytes > s->p->bufs[s->tenant[root]].bytes)
            s->tenant[root] = i;
    }
    for (uint32_t i = 0; i < s->memory->live_count; i++) {
        const struct hb_live *live = &s->memory->live[i];
        if (s->p->bufs[live->buf].space == HB_SPACE_HBM)
            s->live[live->buf] = live;
    }
}

static void hand_over(struct sweep *s, uint32_t op)
{
    const struct hb_op *o = &s->p->ops[op];
    const uint32_t *written = hb_op_writes(s->p, o);
    for (uint32_t w = 0; w < o->write_count; w++) {
        uint32_t root = s->root[written[w]];
        bool counted = s->counted[root];
        if (s->argument[root] || s->p->bufs[written[w]].bytes < s->p->bufs[s->tenant[root]].bytes)
            continue;
        if (counted)
            count_root(s, root, -1);
        s->tenant[root] = written[w];
        if (counted)
            count_root(s, root, 1);
    }
}

/* Parts of lives in lists by position: of begin or of end. */
struct lists {
    uint32_t *first; /* by position; HB_NONE */
    uint32_t *next;  /* by part */
};

static struct lists make_lists(struct hb_arena *arena, const struct sweep *s)
{
    struct lists l = {hb_arena_alloc(arena, s->p->op_count, sizeof *l.first),
                      hb_arena_alloc(arena, s->memory->part_count, sizeof *l.next)};
    for (uint32_t i = 0; i < s->p->op_count; i++)
        l.first[i] = HB_NONE;
    return l;
}

static void push_part(struct lists *l, int32_t position, uint32_t part)
{
    l->next[part] = l->first[position];
    l->first[position] = part;
}

static void count_list(struct sweep *s, const struct lists *l, uint32_t position, int sign)
{
    for (uint32_t part = l->first[position]; part != HB_NONE; part = l->next[part])
        count_root(s, s->memory->live[s->memory->parts[part].live].buf, sign);
}

static bool is_placed(const struct sweep *s, uint32_t root)
{
    return s->live[root] && !s->memory->lent[root] && s->memory->offset_of[root] >= 0;
}

static void list_parts(struct sweep *s, struct lists *begins, struct lists *ends)
{
    const struct hb_memory *m = s->memory;
    for (uint32_t i = 0; i < s->p->buf_count;
         i++) /* arguments and outputs are there all the time */
        if (s->live[i] && !m->lent[i] && m->offset_of[i] < 0)
            count_root(s, i, 1);
    for (uint32_t i = 0; i < m->part_count; i++)
        if (is_placed(s, m->live[m->parts[i].live].buf)) {
            push_part(begins, m->parts[i].span.start, i);
            push_part(ends, m->parts[i].span.end, i);
        }
}

static void run_sweep(struct hb_arena *arena, struct sweep *s, struct hb_timeline *out)
{
    struct lists begins = make_lists(arena, s), ends = make_lists(arena, s);
    list_parts(s, &begins, &ends);
    for (uint32_t at = 0; at < s->p->op_count; at++) {
        count_list(s, &begins, at, 1);
        hand_over(s, at);
        memcpy(out->category_bytes[at], s->sum, sizeof s->sum);
        for (int c = 0; c < HB_CATEGORY_COUNT; c++)
            out->total_bytes[at] += s->sum[c];
        count_list(s, &ends, at, -1);
    }
}

void hb_timeline_make(struct hb_arena *arena, const struct hb_program *p,
                      const struct hb_memory *memory, struct hb_timeline *out)
{
    *out = (struct hb_timeline){.count = p->op_count};
    out->total_bytes = hb_arena_alloc(arena, p->op_count, sizeof *out->total_bytes);
    out->category_bytes = hb_arena_alloc(arena, p->op_count, sizeof *out->category_bytes);
    struct hb_arena_mark mark = hb_arena_mark(arena);
    struct sweep s = {.p = p, .memory = memory};
    s.root = hb_arena_alloc(arena, p->buf_count, sizeof *s.root);
    s.tenant = hb_arena_alloc(arena, p->buf_count, sizeof *s.tenant);
    s.live = hb_arena_alloc(arena, p->buf_count, sizeof(const struct hb_live *));
    s.counted = hb_arena_alloc(arena, p->buf_count, sizeof *s.counted);
    s.argument = hb_arena_alloc(arena, p->buf_count, sizeof *s.argument);
    find_roots(&s);
    s.sum[HB_CAT_RUNTIME] = p->argument_extra_bytes;
    run_sweep(arena, &s, out);
    hb_arena_rewind(arena, mark);
}
