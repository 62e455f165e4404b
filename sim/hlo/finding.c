/* See finding.h and finder.h. */
#include "sim/hlo/finding.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/str.h"
#include "sim/hlo/finder.h"

enum {
    LEAST_BYTES = 64 << 10, /* what costs less is not told; */
    LEAST_SHARE = 500,      /* nor what is less than 1/500 of the total */
    NAMES_SHOWN = 20,
    LARGE_PROGRAM = 30000 /* buffers; more are not packed again for each finding */
};

static const char *const kind_names[] = {
#define HB_ENUM(name, text) text,
    HB_HLO_FINDINGS(HB_ENUM)
#undef HB_ENUM
};

const char *hb_hlo_finding_name(enum hb_hlo_finding_kind kind)
{
    return kind_names[kind];
}

/* ---- a finding ---- */

static int compare_insts(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

void hb_hlo_finder_add(struct hb_hlo_finder *x, struct hb_hlo_finding finding,
                       const uint32_t *insts, uint32_t count)
{
    uint32_t *sorted = hb_arena_alloc(x->arena, count, sizeof *sorted);
    uint32_t shown = 0, distinct = 0;
    finding.ops = hb_arena_alloc(x->arena, NAMES_SHOWN, sizeof *finding.ops);
    if (count) {
        memcpy(sorted, insts, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, compare_insts);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (i && sorted[i] == sorted[i - 1])
            continue;
        distinct++;
        struct hb_hlo_span name = hb_hlo_name_of(x->m, sorted[i]);
        if (shown < NAMES_SHOWN)
            finding.ops[shown++] = hb_arena_strndup(x->arena, name.at, name.len);
    }
    finding.op_count = shown;
    finding.count = finding.count ? finding.count : distinct;
    struct hb_hlo_findings *out = x->out;
    out->items = hb_grow(x->arena, out->items, out->count, &out->cap, sizeof *out->items);
    out->items[out->count++] = finding;
}

struct hb_hlo_catch hb_hlo_catch_begin(struct hb_hlo_finder *x)
{
    hb_hlo_edit_copy(&x->edit, &x->plain);
    return (struct hb_hlo_catch){.edit = &x->edit};
}

void hb_hlo_catch_add(struct hb_hlo_finder *x, struct hb_hlo_catch *c, uint32_t buf)
{
    c->bufs = hb_grow(x->arena, c->bufs, c->count, &c->cap, sizeof *c->bufs);
    c->bufs[c->count++] = buf;
}

int64_t hb_hlo_catch_held(struct hb_hlo_finder *x, const struct hb_hlo_catch *c)
{
    const struct hb_program *p = &x->hp->program;
    struct hb_arena_mark mark = hb_arena_mark(x->arena);
    bool *seen = hb_arena_alloc(x->arena, p->buf_count, sizeof *seen);
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t root = hb_program_root(p, c->bufs[i]);
        if (!seen[root])
            sum = hb_add_sat(sum, p->bufs[c->bufs[i]].bytes);
        seen[root] = true;
    }
    hb_arena_rewind(x->arena, mark);
    return sum;
}

void hb_hlo_catch_tell(struct hb_hlo_finder *x, struct hb_hlo_catch *c,
                       enum hb_hlo_finding_kind kind, int64_t total_bytes, const char *what,
                       const char *advice)
{
    struct hb_hlo_finding finding = {
        .kind = kind,
        .bytes = total_bytes < x->total_bytes ? x->total_bytes - total_bytes : 0,
        .held_bytes = hb_hlo_catch_held(x, c),
        .total_bytes = total_bytes,
        .what = what,
        .advice = advice};
    uint32_t *insts = hb_arena_alloc(x->arena, c->count, sizeof *insts);
    for (uint32_t i = 0; i < c->count; i++)
        insts[i] = hb_hlo_finder_inst(x, c->bufs[i]);
    hb_hlo_finder_add(x, finding, insts, c->count);
}

void hb_hlo_catch_end(struct hb_hlo_finder *x, struct hb_hlo_catch *c,
                      enum hb_hlo_finding_kind kind, const char *what, const char *advice)
{
    if (c->count && hb_hlo_catch_held(x, c) >= x->least_bytes)
        hb_hlo_catch_tell(x, c, kind, hb_hlo_finder_try(x, c->edit), what, advice);
}

int64_t hb_hlo_finder_try(struct hb_hlo_finder *x, const struct hb_hlo_edit *edit)
{
    if (!x->out->by_liveness)
        return hb_hlo_edit_run(x->arena, edit);
    return x->total_bytes - (x->live_bytes - hb_hlo_edit_live(x->arena, edit));
}

/* ---- questions ---- */

uint32_t hb_hlo_finder_inst(const struct hb_hlo_finder *x, uint32_t buf)
{
    return hb_hlo_node_inst(x->f, x->f->values[x->hp->value_of[buf]].node);
}

const struct hb_hlo_shape *hb_hlo_finder_shape(const struct hb_hlo_finder *x, uint32_t buf)
{
    return &x->m->shapes.items[x->f->values[x->hp->value_of[buf]].shape];
}

struct hb_hlo_span hb_hlo_finder_op_name(const struct hb_hlo_finder *x, uint32_t inst)
{
    struct hb_hlo_known *known = &x->op_names[inst];
    if (!known->len_and_one) {
        struct hb_hlo_span name = hb_hlo_metadata(x->m, inst, "op_name");
        known->at = name.at ? (uint32_t)(name.at - x->m->text.bytes) : 0;
        known->len_and_one = (uint32_t)(name.at ? name.len : 0) + 1;
    }
    return (struct hb_hlo_span){x->m->text.bytes + known->at, known->len_and_one - 1};
}

bool hb_hlo_finder_op_name_has(const struct hb_hlo_finder *x, uint32_t inst, const char *word)
{
    return hb_hlo_span_find(hb_hlo_finder_op_name(x, inst), word) != NULL;
}

uint32_t hb_hlo_finder_operand(const struct hb_hlo_finder *x, uint32_t node, uint32_t nth)
{
    uint32_t from = hb_hlo_node_operand(x->f, node, nth);
    return x->hp->buf_of[x->f->value_at[x->f->first_slot[from]]];
}

const char *hb_hlo_finder_size(const struct hb_hlo_finder *x, int64_t bytes)
{
    return hb_size_print(bytes, hb_arena_alloc(x->arena, HB_SIZE_TEXT, 1));
}

bool hb_hlo_sharding_parts(const struct hb_hlo_module *m, uint32_t inst, int rank,
                           int64_t *out_parts)
{
    enum { MOST = 16 };
    int64_t numbers[MOST];
    struct hb_hlo_span sharding = hb_hlo_attr(m, inst, "sharding");
    const char *at = sharding.at ? hb_hlo_span_find(sharding, "devices=[") : NULL;
    const char *close = at ? memchr(at, ']', (size_t)(sharding.at + sharding.len - at)) : NULL;
    if (!close)
        return false;
    uint32_t count = hb_hlo_numbers((struct hb_hlo_span){at, (size_t)(close - at)}, numbers, MOST);
    if (rank < 0 || rank > MOST || count < (uint32_t)rank)
        return false;
    for (int d = 0; d < rank; d++) {
        if (numbers[d] < 1)
            return false;
        out_parts[d] = numbers[d];
    }
    return true;
}

/* ---- all ---- */

/* Counts the uses of each value, or where they are known, notes who uses it. */
static void pass_uses(struct hb_hlo_finder *x)
{
    const struct hb_hlo_flow *f = x->f;
    for (uint32_t node = 0; node < f->node_count; node++) {
        uint32_t operands = x->m->insts[hb_hlo_node_inst(f, node)].operand_count;
        for (uint32_t i = 0; i < operands; i++) {
            uint32_t v = f->value_at[f->first_slot[hb_hlo_node_operand(f, node, i)]];
            if (x->uses)
                x->uses[x->first_use[v]] = node;
            x->first_use[v]++;
        }
    }
}

static void list_uses(struct hb_hlo_finder *x)
{
    const struct hb_hlo_flow *f = x->f;
    uint32_t at = 0;
    x->first_use = hb_arena_alloc(x->arena, (size_t)f->value_count + 1, sizeof *x->first_use);
    pass_uses(x);
    for (uint32_t v = 0; v <= f->value_count; v++) {
        uint32_t count = x->first_use[v];
        x->first_use[v] = at;
        at += count;
    }
    x->uses = hb_arena_alloc(x->arena, at + (size_t)1, sizeof *x->uses);
    pass_uses(x);
    memmove(x->first_use + 1, x->first_use, f->value_count * sizeof *x->first_use);
    x->first_use[0] = 0;
}

static void list_loops(struct hb_hlo_finder *x)
{
    const struct hb_hlo_flow *f = x->f;
    x->loop_of = hb_arena_alloc(x->arena, f->value_count, sizeof *x->loop_of);
    memset(x->loop_of, 0xff, f->value_count * sizeof *x->loop_of);
    for (uint32_t s = 1; s < f->scope_count; s++) {
        const struct hb_hlo_scope *scope = &f->scopes[s];
        const struct hb_hlo_comp *comp = &x->m->comps[scope->comp];
        enum hb_hlo_op op = hb_hlo_op_of(x->m, hb_hlo_node_inst(f, scope->caller));
        if (op != HB_HLO_OP_WHILE || scope->branch != 1 || !comp->param_count)
            continue;
        uint32_t param = scope->first_node + (x->m->params[comp->params_at] - comp->first_inst);
        for (uint32_t i = f->first_slot[param]; i < f->first_slot[param + 1]; i++)
            if (f->values[f->value_at[i]].node != param)
                x->loop_of[f->value_at[i]] = scope->caller;
    }
}

static int compare_findings(const void *a, const void *b)
{
    const struct hb_hlo_finding *left = a, *right = b;
    if (left->bytes != right->bytes)
        return left->bytes > right->bytes ? -1 : 1;
    if (left->held_bytes != right->held_bytes)
        return left->held_bytes > right->held_bytes ? -1 : 1;
    return (int)left->kind - (int)right->kind;
}

void hb_hlo_findings_make(struct hb_arena *arena, const struct hb_hlo_program *hp,
                          int64_t total_bytes, struct hb_hlo_findings *out_findings)
{
    *out_findings = (struct hb_hlo_findings){.arena = arena};
    struct hb_hlo_finder x = {.arena = arena,
                              .hp = hp,
                              .m = hp->m,
                              .f = &hp->flow,
                              .total_bytes = total_bytes,
                              .least_bytes = total_bytes / LEAST_SHARE,
                              .out = out_findings};
    if (x.least_bytes < LEAST_BYTES)
        x.least_bytes = LEAST_BYTES;
    out_findings->by_liveness = hp->program.buf_count >= LARGE_PROGRAM;
    x.plain = hb_hlo_edit_begin(arena, hp);
    x.edit = hb_hlo_edit_begin(arena, hp);
    x.live_bytes = hb_hlo_edit_live(arena, &x.plain);
    x.op_names = hb_arena_alloc(arena, hp->m->inst_count, sizeof *x.op_names);
    list_uses(&x);
    list_loops(&x);
    hb_hlo_find_forecast(&x);
    hb_hlo_find_halo(&x);
    hb_hlo_find_gradients(&x);
    hb_hlo_find_values(&x);
    hb_hlo_find_entry(&x);
    if (out_findings->count)
        qsort(out_findings->items, out_findings->count, sizeof *out_findings->items,
              compare_findings);
}
