/* See edit.h. */
#include "sim/hlo/edit.h"

#include <string.h>

#include "base/arena.h"
#include "base/size.h"

struct hb_hlo_edit hb_hlo_edit_begin(struct hb_arena *arena, const struct hb_hlo_program *hp)
{
    uint32_t count = hp->program.buf_count;
    struct hb_hlo_edit edit = {hp, hb_arena_alloc(arena, count, sizeof *edit.bytes),
                               hb_arena_alloc(arena, count, sizeof *edit.alias_of),
                               hb_arena_alloc(arena, count, sizeof *edit.start),
                               hb_arena_alloc(arena, count, sizeof *edit.end)};
    for (uint32_t i = 0; i < count; i++) {
        edit.bytes[i] = hp->program.bufs[i].bytes;
        edit.alias_of[i] = hp->program.bufs[i].alias_of;
        edit.start[i] = hp->start[i];
        edit.end[i] = hp->end[i];
    }
    return edit;
}

void hb_hlo_edit_copy(struct hb_hlo_edit *to, const struct hb_hlo_edit *from)
{
    uint32_t count = from->hp->program.buf_count;
    if (!count)
        return;
    memcpy(to->bytes, from->bytes, count * sizeof *to->bytes);
    memcpy(to->alias_of, from->alias_of, count * sizeof *to->alias_of);
    memcpy(to->start, from->start, count * sizeof *to->start);
    memcpy(to->end, from->end, count * sizeof *to->end);
}

void hb_hlo_edit_shrink(struct hb_hlo_edit *edit, uint32_t buf, int64_t bytes)
{
    if (bytes < edit->bytes[buf])
        edit->bytes[buf] = bytes;
}

void hb_hlo_edit_keep(struct hb_hlo_edit *edit, uint32_t buf, int32_t end)
{
    if (buf != HB_NONE && edit->end[buf] < end)
        edit->end[buf] = end;
}

int64_t hb_hlo_edit_run(struct hb_arena *scratch, const struct hb_hlo_edit *edit)
{
    const struct hb_hlo_program *hp = edit->hp;
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct hb_program p;
    struct hb_memory memory;
    struct hb_hlo_figures figures;
    hb_program_init(&p, scratch, hp->program.name, hp->program.compiler);
    for (uint32_t i = 0; i < hp->program.buf_count; i++) {
        struct hb_buf buf = hp->program.bufs[i];
        buf.bytes = edit->bytes[i];
        buf.plain_bytes = buf.plain_bytes < buf.bytes ? buf.plain_bytes : buf.bytes;
        buf.alias_of = edit->alias_of[i];
        hb_program_add_buf(&p, buf);
    }
    hb_hlo_program_add_ops(scratch, hp, &p, edit->start, edit->end);
    hb_hlo_program_run(scratch, hp, &p, &memory, &figures);
    hb_arena_rewind(scratch, mark);
    return figures.total_bytes;
}

/* Memory of its own: a buffer that is no alias, with all that lie in it. */
struct places {
    uint32_t *root;  /* by buffer */
    int64_t *bytes;  /* by root */
    bool *still;     /* by root: an argument or an output */
    int32_t *filled; /* by root: counted up to here */
};

static int64_t find_places(struct hb_arena *arena, const struct hb_hlo_edit *edit,
                           struct places *out)
{
    const struct hb_program *p = &edit->hp->program;
    int64_t align = edit->hp->placing.heap_align_bytes, still = 0;
    *out = (struct places){hb_arena_alloc(arena, p->buf_count, sizeof *out->root),
                           hb_arena_alloc(arena, p->buf_count, sizeof *out->bytes),
                           hb_arena_alloc(arena, p->buf_count, sizeof *out->still),
                           hb_arena_alloc(arena, p->buf_count, sizeof *out->filled)};
    for (uint32_t i = 0; i < p->buf_count; i++) {
        uint32_t root = edit->alias_of[i] == HB_NONE ? i : out->root[edit->alias_of[i]];
        int64_t bytes = p->bufs[i].space == HB_SPACE_HBM ? hb_round_up(edit->bytes[i], align) : 0;
        out->root[i] = root;
        out->bytes[root] = bytes > out->bytes[root] ? bytes : out->bytes[root];
        out->still[root] = out->still[root] || p->bufs[i].argument || p->bufs[i].output;
    }
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (out->root[i] == i && out->still[i])
            still = hb_add_sat(still, out->bytes[i]);
    return still;
}

int64_t hb_hlo_edit_live(struct hb_arena *scratch, const struct hb_hlo_edit *edit)
{
    const struct hb_hlo_program *hp = edit->hp;
    struct hb_arena_mark mark = hb_arena_mark(scratch);
    struct places places;
    int64_t still = find_places(scratch, edit, &places), live = 0, most = 0;
    int64_t *steps = hb_arena_alloc(scratch, (size_t)hp->flow.end_time + 2, sizeof *steps);
    for (uint32_t i = 0; i < hp->program.buf_count; i++) {
        uint32_t root = places.root[i];
        int32_t start = edit->start[i], end = edit->end[i];
        if (!edit->bytes[i] || places.still[root])
            continue;
        if (start < places.filled[root])
            start = places.filled[root];
        if (start > end)
            continue;
        steps[start] += places.bytes[root];
        steps[end + 1] -= places.bytes[root];
        places.filled[root] = end + 1;
    }
    for (int32_t t = 0; t <= hp->flow.end_time; t++) {
        live += steps[t];
        most = live > most ? live : most;
    }
    hb_arena_rewind(scratch, mark);
    return hb_add_sat(still, most);
}
