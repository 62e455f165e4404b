#include "sim/eager/short.h"

#include "base/arena.h"
#include "base/str.h"

void hb_short_mark(struct hb_short *s, struct hb_tape *t, int64_t rest_bytes, int64_t grad_bytes)
{
    uint32_t next = t->p->op_count + t->open;
    s->spans = hb_grow(t->arena, s->spans, s->count, &s->cap, sizeof *s->spans);
    s->spans[s->count++] = (struct hb_short_span){next, rest_bytes, grad_bytes};
}
