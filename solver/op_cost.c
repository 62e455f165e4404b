/* An op's cost follows the layers through the bytes it moves (its operands' bytes, times a constant
 * that both programs agree on) and its FLOPs, which are linear in the layers. What follows in any
 * other way is not known and counts as nothing: costs only go into lower bounds. */
#include "solver/op_cost.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"

enum { MOST_TABLES = 48, CHAINS = 256, OWN_WORDS = 17, KEY_WORDS = OWN_WORDS + MOST_TABLES };

/* How an op's cost follows the layers; equal rules share a table. */
struct rule {
    uint32_t next;     /* of its chain, from 1; 0: the last */
    double moved_part; /* moved bytes / bytes of all operands */
    double flops_a;
    double flops_step; /* per step */
    int64_t still_bytes;
    const int64_t *tables[MOST_TABLES];
    uint32_t table_count;
    uint64_t key[KEY_WORDS]; /* all that its cost follows from: key_words of them */
    int64_t *ns;
};

static uint32_t key_words(const struct rule *r)
{
    return OWN_WORDS + r->table_count;
}

struct find {
    struct hb_arena *arena;
    struct hb_sized *sized;
    struct hb_program p; /* the first program, with ops that may be changed */
    struct hb_cost cost;
    struct rule *rules;
    uint32_t rule_count, rule_cap;
    uint32_t chains[CHAINS]; /* by hash: the last rule of it, from 1; 0: none */
    double *least_part;      /* by buffer: see least_part_of; 0: not asked yet */
};

static double operand_bytes(const struct hb_program *p, const struct hb_op *op)
{
    double bytes = 0;
    for (uint32_t i = 0; i < op->read_count + op->write_count; i++)
        bytes += (double)p->bufs[p->refs[op->refs_at + i]].bytes;
    return bytes;
}

static bool same_but_size(const struct hb_op *a, const struct hb_op *b)
{
    return a->rows == b->rows && a->cols == b->cols && a->depth == b->depth &&
           a->group == b->group && a->over_data == b->over_data && !(a->batch < b->batch) &&
           !(a->batch > b->batch) && !(a->sent_bytes < b->sent_bytes) &&
           !(a->sent_bytes > b->sent_bytes);
}

static int64_t total_steps(int64_t outer, int64_t inner)
{
    return outer ? outer * inner : inner;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* What an op costs in the first program stands for what it follows from beside the op itself: a
 * copy that has others the other way beside it takes longer than one that is waited for at once. */
static void make_key(const struct find *f, uint32_t index, struct rule *r)
{
    const struct hb_op *op = &f->p.ops[index];
    const uint64_t words[OWN_WORDS] = {(uint64_t)op->kind,
                                       (uint64_t)op->stream,
                                       (uint64_t)op->dtype,
                                       (uint64_t)op->axis,
                                       op->over_data,
                                       op->grouped,
                                       op->adjoint,
                                       (uint64_t)op->group,
                                       (uint64_t)op->rows,
                                       (uint64_t)op->cols,
                                       (uint64_t)op->depth,
                                       bits_of(op->batch),
                                       bits_of(r->flops_a),
                                       bits_of(r->flops_step),
                                       bits_of(r->moved_part),
                                       (uint64_t)r->still_bytes,
                                       (uint64_t)hb_cost_op_ns(&f->cost, index)};
    memcpy(r->key, words, sizeof words);
    for (uint32_t i = 0; i < r->table_count; i++)
        r->key[OWN_WORDS + i] = (uintptr_t)r->tables[i];
}

static uint32_t chain_of(const struct rule *r)
{
    uint64_t hash = HB_HASH_START;
    for (uint32_t i = 0; i < key_words(r); i++)
        hash = hb_hash(hash, r->key[i]);
    return (uint32_t)(hash >> 32) % CHAINS;
}

/* False: the cost is not known. */
static bool make_rule(struct find *f, uint32_t index, struct rule *r)
{
    const struct hb_outline *o = f->sized->outline;
    const struct hb_op *a = &o->pair.a->ops[index], *b = &o->pair.b->ops[index];
    uint32_t owner = o->op_owner[index];
    double all_a = operand_bytes(o->pair.a, a), all_b = operand_bytes(o->pair.b, b);
    r->next = r->table_count = 0;
    r->still_bytes = 0;
    r->flops_a = a->flops;
    if (owner >= HB_ENDS || !same_but_size(a, b) || !(all_a > 0) || !(all_b > 0))
        return false;
    r->moved_part = a->moved_bytes / all_a;
    double part_b = b->moved_bytes / all_b;
    if (r->moved_part < part_b || r->moved_part > part_b)
        return false;
    int64_t steps_a = total_steps(o->pair.outer_a, o->pair.inner_a);
    int64_t steps_b = total_steps(o->pair.outer_b, o->pair.inner_b[owner]);
    r->flops_step = (b->flops - a->flops) / (double)(steps_b - steps_a);
    for (uint32_t i = 0; i < a->read_count + a->write_count; i++) {
        uint32_t buf = o->pair.a->refs[a->refs_at + i];
        if (!hb_sized_moves(f->sized, buf))
            r->still_bytes += o->pair.a->bufs[buf].bytes;
        else if (r->table_count == MOST_TABLES)
            return false;
        else
            r->tables[r->table_count++] = hb_sized_bytes(f->sized, buf, 1);
    }
    make_key(f, index, r);
    return true;
}

static bool same_real(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* FLOPs that follow the layers come out of a division: a nanosecond less than they give. */
static void fill_rule(struct find *f, uint32_t index, struct rule *r)
{
    const struct hb_outline *o = f->sized->outline;
    int64_t steps_a = total_steps(o->pair.outer_a, o->pair.inner_a);
    bool straight = same_real(r->flops_step, 0);
    struct hb_op *op = &f->p.ops[index], saved = *op;
    r->ns = hb_arena_alloc(f->arena, (size_t)f->sized->max_steps + 1, sizeof *r->ns);
    for (int64_t n = f->sized->least_steps; n <= f->sized->max_steps; n++) {
        if (!f->sized->wanted[n])
            continue;
        int64_t bytes = r->still_bytes;
        for (uint32_t i = 0; i < r->table_count; i++)
            bytes += r->tables[i][n];
        op->moved_bytes = (double)bytes * r->moved_part;
        op->flops = r->flops_a + r->flops_step * (double)(n - steps_a);
        int64_t ns = hb_cost_op_ns(&f->cost, index);
        r->ns[n] = straight || ns == 0 ? ns : ns - 1;
    }
    *op = saved;
}

/* A collective's time does not follow what its operands are slices of. */
static bool is_flat(const struct find *f, const int64_t *ns)
{
    int64_t first = -1;
    for (int64_t n = f->sized->least_steps; n <= f->sized->max_steps; n++) {
        if (!f->sized->wanted[n])
            continue;
        if (first >= 0 && ns[n] != first)
            return false;
        first = ns[n];
    }
    return true;
}

static bool is_same_rule(const struct rule *a, const struct rule *b)
{
    return a->table_count == b->table_count &&
           memcmp(a->key, b->key, key_words(a) * sizeof *a->key) == 0;
}

static const int64_t *find_table(struct find *f, uint32_t index)
{
    struct rule rule;
    if (!make_rule(f, index, &rule))
        return NULL;
    uint32_t *chain = &f->chains[chain_of(&rule)];
    for (uint32_t i = *chain; i; i = f->rules[i - 1].next)
        if (is_same_rule(&f->rules[i - 1], &rule))
            return f->rules[i - 1].ns;
    fill_rule(f, index, &rule);
    rule.next = *chain;
    f->rules = hb_grow(f->arena, f->rules, f->rule_count, &f->rule_cap, sizeof rule);
    f->rules[f->rule_count++] = rule;
    *chain = f->rule_count;
    return rule.ns;
}

static bool stays(const struct hb_outline *o, uint32_t index)
{
    const struct hb_op *a = &o->pair.a->ops[index], *b = &o->pair.b->ops[index];
    return same_but_size(a, b) && same_real(a->moved_bytes, b->moved_bytes) &&
           same_real(a->flops, b->flops);
}

/* A layer's part of a stack: how much less that may be for another number of layers than in the
 * first program. Padding does not follow the layers: gpt3-13b over four devices has 1285 rows a
 * layer, 1288 in tiles of eight, and 1285 where two layers make tiles of two. Of numbers that make
 * a loop: a run has no others, and their tables say nothing. */
static double least_part_of(struct find *f, uint32_t buf)
{
    const struct hb_outline *o = f->sized->outline;
    double least = 1;
    if (f->least_part[buf] > 0)
        return f->least_part[buf];
    if (hb_sized_moves(f->sized, buf)) {
        const int64_t *bytes = hb_sized_bytes(f->sized, buf, 1);
        double part = (double)o->pair.a->bufs[buf].bytes /
                      (double)total_steps(o->pair.outer_a, o->pair.inner_a);
        for (int64_t n = f->sized->least_steps; n <= f->sized->max_steps; n++)
            if (f->sized->wanted[n] && f->sized->admits[n] &&
                (double)bytes[n] / (double)n < least * part)
                least = (double)bytes[n] / (double)n / part;
    }
    f->least_part[buf] = least;
    return least;
}

static double least_part(struct find *f, uint32_t index)
{
    const struct hb_program *a = f->sized->outline->pair.a;
    const struct hb_op *op = &a->ops[index];
    double least = 1;
    for (uint32_t i = 0; i < op->read_count + op->write_count; i++) {
        double part = least_part_of(f, a->refs[op->refs_at + i]);
        least = part < least ? part : least;
    }
    return least;
}

/* The cost of an op that both programs agree on. */
static int64_t still_ns(struct find *f, uint32_t index)
{
    struct hb_op *op = &f->p.ops[index];
    double moved = op->moved_bytes;
    op->moved_bytes *= least_part(f, index);
    int64_t ns = hb_cost_op_ns(&f->cost, index);
    op->moved_bytes = moved;
    return ns;
}

void hb_op_costs_find(struct hb_arena *arena, struct hb_sized *sized,
                      const struct hb_device *device, struct hb_op_costs *out)
{
    const struct hb_outline *o = sized->outline;
    uint32_t count = o->pair.a->op_count;
    struct find f = {.arena = arena, .sized = sized, .p = *o->pair.a};
    f.least_part = hb_arena_alloc(arena, o->pair.a->buf_count, sizeof *f.least_part);
    f.p.ops = hb_arena_alloc(arena, count, sizeof *f.p.ops);
    if (count)
        memcpy(f.p.ops, o->pair.a->ops, count * sizeof *f.p.ops);
    hb_cost_init(&f.cost, &f.p, device);
    out->usual_ns = hb_arena_alloc(arena, count, sizeof *out->usual_ns);
    out->by_steps = hb_arena_alloc(arena, count, sizeof *out->by_steps);
    for (uint32_t i = 0; i < count; i++) {
        if (stays(o, i)) {
            out->usual_ns[i] = still_ns(&f, i);
            continue;
        }
        const int64_t *ns = find_table(&f, i);
        int64_t usual = (sized->max_steps + 1) / 2;
        out->usual_ns[i] = ns ? ns[sized->wanted[usual] ? usual : sized->max_steps] : 0;
        out->by_steps[i] = ns && !is_flat(&f, ns) ? ns : NULL;
    }
}

int64_t hb_op_cost_at(const struct hb_op_costs *costs, uint32_t op, int64_t n)
{
    return costs->by_steps[op] ? costs->by_steps[op][n] : costs->usual_ns[op];
}
