/* What must hold of every configuration, from its YAML to its memory and its time: the laws, for
 * the random configurations of tests/prop/test_configs.c and the fuzzer's of
 * tests/fuzz/fuzz_simulate.c. A law changes its subject in one way and compares. */
#ifndef HB_TESTS_CONFIG_LAWS_H
#define HB_TESTS_CONFIG_LAWS_H

#include <math.h>

#include "base/str.h"
#include "base/yaml.h"
#include "hw/device.h"
#include "sim/engine/live.h"
#include "sim/engine/result.h"
#include "sim/engine/run.h"
#include "sim/engine/load.h"
#include "sim/ir/lower.h"
#include "tests/prop/random_config.h"

/* A configuration that was lowered and run. */
struct run {
    struct hb_spec spec;
    struct hb_program p;
    struct hb_memory m;
};

struct subject {
    struct hb_arena *arena;
    struct hb_rng rng; /* for what the law changes */
    struct run r;
};

/* Null where the law holds, else how it is broken. */
typedef const char *law_fn(struct subject *s);

enum { DEVICES = 16 };

static uint64_t compared; /* cases in which a law had two programs to compare */
static struct hb_arena *profiles;
static struct hb_device devices[DEVICES];
static int device_count;

static const struct hb_device *find_device(const char *name)
{
    for (int i = 0; i < device_count; i++)
        if (strcmp(devices[i].name, name) == 0)
            return &devices[i];
    struct hb_diag diag;
    hb_diag_init(&diag, profiles);
    if (device_count == DEVICES || !hb_device_load(profiles, &diag, HB_SOURCE_DIR, name,
                                                   (struct hb_loc){0}, &devices[device_count]))
        abort();
    return &devices[device_count++];
}

/* False where it is not valid; what is valid is lowered. */
static bool run_spec(struct hb_arena *arena, const struct hb_spec *spec, struct run *out)
{
    struct hb_diag diag;
    hb_diag_init(&diag, arena);
    *out = (struct run){.spec = *spec};
    if (!hb_schema_check(arena, &diag, NULL, spec) || !hb_spec_supported(&diag, NULL, spec) ||
        !hb_lower(arena, &diag, &out->spec, &out->p))
        return false;
    hb_run_memory(arena, &out->p, &out->m);
    return true;
}

static struct hb_block *copy_blocks(struct hb_arena *arena, struct hb_spec *spec)
{
    size_t count = (size_t)spec->model.block_count;
    struct hb_block *blocks = hb_arena_alloc(arena, count, sizeof *blocks);
    memcpy(blocks, spec->model.blocks, count * sizeof *blocks);
    spec->model.blocks = blocks;
    return blocks;
}

/* Whether both are the same list of ops on the same buffers, sizes apart: what a compiler holds of
 * another type or of more dimensions is another value (ROCm fuses the turn of a block's scores by
 * its size, sim/ir/attention_kernel.c). */
static bool same_ops(const struct run *a, const struct run *b)
{
    const struct hb_program *p = &a->p, *q = &b->p;
    if (p->op_count != q->op_count || p->buf_count != q->buf_count ||
        p->ref_count != q->ref_count || p->loop_count != q->loop_count ||
        memcmp(p->refs, q->refs, p->ref_count * sizeof *p->refs) != 0)
        return false;
    for (uint32_t i = 0; i < p->op_count; i++)
        if (p->ops[i].kind != q->ops[i].kind || p->ops[i].loop != q->ops[i].loop ||
            !hb_str_same(p->ops[i].name, q->ops[i].name))
            return false;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].alias_of != q->bufs[i].alias_of || p->bufs[i].space != q->bufs[i].space ||
            p->bufs[i].dtype != q->bufs[i].dtype || p->bufs[i].rank != q->bufs[i].rank)
            return false;
    return true;
}

/* Null where both have the same memory and time, buffer by buffer but for their names. */
static const char *compare_runs(struct hb_arena *arena, const struct run *a, const struct run *b)
{
    const struct hb_memory *m = &a->m, *n = &b->m;
    struct hb_timing t, u;
    if (a->p.op_count != b->p.op_count || a->p.buf_count != b->p.buf_count)
        return "another program";
    if (m->peak_bytes != n->peak_bytes || m->argument_bytes != n->argument_bytes ||
        m->output_bytes != n->output_bytes || m->alias_bytes != n->alias_bytes ||
        m->live_temp_bytes != n->live_temp_bytes || m->host_bytes != n->host_bytes ||
        m->peak_op != n->peak_op ||
        memcmp(m->category_bytes, n->category_bytes, sizeof m->category_bytes) != 0)
        return "another memory";
    if (memcmp(m->offset_of, n->offset_of, a->p.buf_count * sizeof *m->offset_of) != 0)
        return "other addresses";
    hb_run_timing(arena, &a->p, find_device(a->spec.hardware.device), &t);
    hb_run_timing(arena, &b->p, find_device(a->spec.hardware.device), &u);
    if (t.step_ns != u.step_ns || memcmp(t.busy_ns, u.busy_ns, sizeof t.busy_ns) != 0)
        return "another time";
    return NULL;
}

static int64_t category_total(const struct run *r, enum hb_category category)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < r->p.buf_count; i++)
        if (r->p.bufs[i].category == category && r->p.bufs[i].alias_of == HB_NONE)
            sum += r->p.bufs[i].plain_bytes;
    return sum;
}

/* --- the laws --- */

/* 1, 7: kinds and tensors sum to the peak; what lives is no more than the heap holds. */
static const char *parts_sum_to_the_peak(struct subject *s)
{
    const struct hb_memory *m = &s->r.m;
    int64_t kinds = 0;
    int64_t tensors = s->r.p.argument_extra_bytes + m->temp_bytes - m->live_temp_bytes;
    for (int c = 0; c < HB_CATEGORY_COUNT; c++) {
        if (m->category_bytes[c] < 0)
            return "a category below zero";
        kinds += m->category_bytes[c];
    }
    for (uint32_t i = 0; i < m->at_peak_count; i++)
        tensors += m->at_peak[i].bytes;
    if (kinds != m->peak_bytes || tensors != m->peak_bytes)
        return "kinds or tensors do not sum to the peak";
    bool none = m->live_temp_bytes <= 0 && !(s->r.p.outputs_lend && !s->r.spec.step.donate);
    if (m->live_temp_bytes > m->temp_bytes || none)
        return "live bytes above the heap, or none";
    if (m->peak_bytes != m->argument_bytes + m->output_bytes - m->alias_bytes + m->temp_bytes)
        return "the parts are not the whole";
    return NULL;
}

static int by_start(const void *a, const void *b)
{
    const struct hb_live_part *x = *(const struct hb_live_part *const *)a;
    const struct hb_live_part *y = *(const struct hb_live_part *const *)b;
    return (x->span.start > y->span.start) - (x->span.start < y->span.start);
}

/* Who had these bytes last. */
struct tenant {
    int64_t from;
    int64_t end;
    const struct hb_live_part *part;
};

/* Puts a part that starts no sooner than all before it among the tenants, which are in order of
 * address and have no byte in common: in place of whom it meets. False: one of these still lives.
 */
static bool move_in(struct tenant *tenants, uint32_t *count, struct tenant one)
{
    uint32_t low = 0, high = *count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (tenants[middle].end > one.from)
            high = middle;
        else
            low = middle + 1;
    }
    for (; high < *count && tenants[high].from < one.end; high++) {
        const struct hb_live_part *other = tenants[high].part;
        if (other->span.end >= one.part->span.start && other->live != one.part->live)
            return false;
    }
    memmove(tenants + low + 1, tenants + high, (*count - high) * sizeof *tenants);
    tenants[low] = one;
    *count = *count - (high - low) + 1;
    return true;
}

/* 2: no two buffers that live at one time overlap, none leaves the heap, all are aligned. A place
 * that is empty between two parts of a life may be another's. */
static const char *buffers_never_overlap(struct subject *s)
{
    const struct hb_memory *m = &s->r.m;
    const struct hb_live_part **list = hb_arena_alloc(s->arena, m->part_count, sizeof *list);
    struct tenant *tenants = hb_arena_alloc(s->arena, (size_t)m->part_count + 1, sizeof *tenants);
    uint32_t n = 0, count = 0;
    for (uint32_t i = 0; i < m->part_count; i++)
        if (m->offset_of[m->live[m->parts[i].live].buf] >= 0)
            list[n++] = &m->parts[i];
    qsort(list, n, sizeof *list, by_start);
    for (uint32_t i = 0; i < n; i++) {
        const struct hb_live *life = &m->live[list[i]->live];
        int64_t from = m->offset_of[life->buf], end = from + life->bytes;
        if (from % m->heap_align_bytes || end > m->temp_bytes)
            return "a buffer not aligned, or outside the heap";
        if (end > from && !move_in(tenants, &count, (struct tenant){from, end, list[i]}))
            return "two live buffers overlap";
    }
    return NULL;
}

/* No argument is overwritten by two results. */
static bool has_twins(struct hb_arena *arena, const struct hb_program *p)
{
    bool *taken = hb_arena_alloc(arena, p->buf_count + 1, sizeof *taken);
    for (uint32_t i = 0; i < p->buf_count; i++) {
        uint32_t in = p->bufs[i].alias_of;
        if (!p->bufs[i].output || in == HB_NONE || !p->bufs[in].argument)
            continue;
        if (taken[in])
            return true;
        taken[in] = true;
    }
    return false;
}

/* The state goes out as it came in: with donation it lies in the arguments, without it is new. */
static const char *donation_moves_the_state(struct subject *s)
{
    struct run other;
    struct hb_spec spec = s->r.spec;
    spec.step.donate = !spec.step.donate;
    if (!run_spec(s->arena, &spec, &other))
        return "no program with the other donation";
    const struct run *given = s->r.spec.step.donate ? &s->r : &other;
    const struct run *kept = s->r.spec.step.donate ? &other : &s->r;
    int64_t slack = 2 * given->m.leaf_align_bytes + 512; /* the loss; the step counter */
    if (given->m.argument_bytes != kept->m.argument_bytes)
        return "donation changes the arguments";
    if (has_twins(s->arena, &given->p))
        return "two outputs in one argument";
    if (llabs(given->m.output_bytes - kept->m.output_bytes) > slack)
        return "donation changes what is handed out";
    if (given->m.output_bytes - given->m.alias_bytes > slack)
        return "a donated state has outputs of its own";
    if (kept->m.alias_bytes > slack)
        return "outputs lie in arguments that were not donated";
    return NULL;
}

/* What lives before outputs lend room: who fits where is a greedy choice, which may go the other
 * way for a larger model (sim/engine/lend.h). */
static int64_t live_bytes(struct hb_arena *arena, const struct run *r)
{
    struct hb_memory alone;
    struct hb_program p = r->p;
    if (!p.outputs_lend)
        return r->m.live_temp_bytes;
    p.outputs_lend = false;
    hb_run_memory(arena, &p, &alone);
    return alone.live_temp_bytes;
}

/* XLA:GPU scatters a table's rows where they are into a whole table, if they are as many as words,
 * and gathers fewer, for each device's own columns. */
static int64_t table_bytes(const struct run *r)
{
    for (uint32_t i = 0; i < r->p.buf_count; i++)
        if (hb_str_same(r->p.bufs[i].name, "embedding, zeros for its gradient"))
            return r->p.bufs[i].bytes;
    return 0;
}

/* What more is padded of buffers that did not grow: between padded gathers a stack of weights lies
 * otherwise with one sequence than with two (sim/ir/weight.c: 56 MiB, then 112). */
static int64_t padded_anew(const struct run *small, const struct run *large)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < small->p.buf_count; i++) {
        const struct hb_buf *a = &small->p.bufs[i], *b = &large->p.bufs[i];
        if (a->plain_bytes == b->plain_bytes && b->bytes > a->bytes)
            sum += b->bytes - a->bytes;
    }
    return sum;
}

static const char *check_growth(struct hb_arena *arena, const struct run *small,
                                const struct run *large, bool linear)
{
    if (!same_ops(small, large))
        return NULL;
    compared++;
    if (large->m.argument_bytes < small->m.argument_bytes)
        return "grown, and fewer arguments";
    int64_t small_bytes = live_bytes(arena, small), large_bytes = live_bytes(arena, large);
    if (large_bytes < small_bytes)
        return "grown, and a lower live peak";
    /* One-hot rows of one sequence are predicates on XLA:GPU, of more they are indices. */
    linear = linear && (large->spec.lookup != HB_LOOKUP_ONEHOT || !large->p.outputs_lend);
    linear = linear && table_bytes(large) == table_bytes(small);
    if (linear && large_bytes > 2 * small_bytes + padded_anew(small, large))
        return "twice the batch, and more than twice the live peak";
    return NULL;
}

/* 3: more sequences never live in less, twice as many at most in twice as much, but for padding. */
static const char *batch_grows_the_peak(struct subject *s)
{
    struct run large;
    struct hb_spec spec = s->r.spec;
    spec.batch.global *= 2;
    return run_spec(s->arena, &spec, &large) ? check_growth(s->arena, &s->r, &large, true) : NULL;
}

static const char *sequence_grows_the_peak(struct subject *s)
{
    struct run large;
    struct hb_spec spec = s->r.spec;
    spec.batch.seq *= hb_rng_range(&s->rng, 2, 4);
    return run_spec(s->arena, &spec, &large) ? check_growth(s->arena, &s->r, &large, false) : NULL;
}

static bool run_layers(struct hb_arena *arena, const struct hb_spec *base, int64_t steps,
                       struct run *out)
{
    struct hb_spec spec = *base;
    struct hb_block *blocks = copy_blocks(arena, &spec);
    for (int i = 0; i < spec.model.block_count; i++)
        blocks[i].repeat = steps * blocks[i].unit;
    return run_spec(arena, &spec, out);
}

/* 5: scanned layers cost arguments in proportion, and neither ops nor spans. Multiples of a
 * vector's tile, so that padding is proportional too. What a compiler does only where it fits
 * (v5e: sums that wait beside the logits) or in one of its orders (muon's turned copies of weights
 * and momenta, pass by pass) may come or go with the size: up to an eighth of the ops. XLA:GPU is
 * not asked to bring what does not fit below its limit: that makes ops again as often as it takes.
 */
static const char *layers_cost_no_ops(struct subject *s)
{
    enum { TILE = 1024, CHOICES = 8 };
    struct run runs[4];
    struct hb_timing times[4];
    struct hb_spec spec = s->r.spec;
    if (spec.stack.form == HB_FORM_LOOP || spec.mesh[HB_AX_PIPELINE] > 1)
        return NULL;
    spec.share = HB_SHARE_KEPT;
    spec.stack.outer = spec.stack.form == HB_FORM_NESTED ? 4 : 0;
    int64_t outer = spec.stack.outer ? spec.stack.outer : 1;
    for (int i = 0; i < 4; i++) {
        /* a scan no longer than its unroll is another program */
        int64_t steps =
            i ? i * outer * TILE : 2 * outer * (spec.stack.unroll ? spec.stack.unroll : 1);
        if (!run_layers(s->arena, &spec, steps, &runs[i]))
            return NULL; /* too large for the schema */
        hb_run_timing(s->arena, &runs[i].p, find_device(spec.hardware.device), &times[i]);
        if (runs[i].p.op_count > runs[0].p.op_count + runs[0].p.op_count / CHOICES)
            return "more layers, more ops";
        if (times[i].span_count > times[0].span_count * 2)
            return "more layers, more spans";
    }
    compared++;
    if (runs[3].m.argument_bytes - runs[2].m.argument_bytes !=
        runs[2].m.argument_bytes - runs[1].m.argument_bytes)
        return "arguments are not linear in the layers";
    if (times[3].step_ns < times[2].step_ns || times[2].step_ns < times[1].step_ns)
        return "more layers, less time";
    return NULL;
}

static bool run_saved(struct subject *s, uint32_t save, struct run *out)
{
    struct hb_spec spec = s->r.spec;
    struct hb_block *blocks = copy_blocks(s->arena, &spec);
    spec.remat.modules = 0;
    spec.remat.all = (struct hb_remat){.policy = HB_POLICY_NAMES, .save = save};
    for (int i = 0; i < spec.model.block_count; i++)
        blocks[i].remat = spec.remat.all;
    return run_spec(s->arena, &spec, out);
}

/* 5: to save more tensors saves no fewer bytes. Unless the further ones are all that was made from
 * an earlier one: a saved k leaves nobody who reads the saved qkv (6.7 GB with qkv, q, v and 6.1
 * with k as well), a saved input of the next layer of a unit nobody who reads this one's output. So
 * q, k and v are not added to what they are made from, and the layers' inputs are in both. Nor is
 * the context, whose name has a TPU kernel's log-sum-exp kept without its 128 lanes. */
static const char *saving_more_saves_more(struct subject *s)
{
    struct run few, many;
    uint32_t all = (1u << HB_TN_ITER_IN) - 1;
    uint32_t some = hb_rng_next(&s->rng);
    uint32_t a = (some & hb_rng_next(&s->rng) & all) | 1u << HB_TN_LAYER_IN;
    uint32_t sources = 1u << HB_TN_QKV | 1u << HB_TN_MLA_Q | 1u << HB_TN_MLA_KV;
    uint32_t made = 1u << HB_TN_Q | 1u << HB_TN_K | 1u << HB_TN_V;
    uint32_t b = a | (hb_rng_next(&s->rng) & all & ~(a & sources ? made : 0));
    if (s->r.spec.compiler == HB_XLA_TPU)
        b &= a | ~(1u << HB_TN_ATTN_CTX);
    if (!run_saved(s, a, &few) || !run_saved(s, b, &many))
        return "no program with that policy";
    return category_total(&many, HB_CAT_SAVED) < category_total(&few, HB_CAT_SAVED)
               ? "more names saved, fewer bytes"
               : NULL;
}

/* 5: microbatches of the same size keep the same for the backward pass. */
static const char *accumulation_keeps_the_same(struct subject *s)
{
    struct run more;
    struct hb_spec spec = s->r.spec;
    spec.batch.global *= 2;
    spec.batch.accumulate *= 2;
    if (!run_spec(s->arena, &spec, &more))
        return NULL; /* in_backward excludes it */
    compared++;
    int64_t inputs = category_total(&s->r, HB_CAT_INPUTS);
    if (more.m.argument_bytes - s->r.m.argument_bytes > 2 * inputs + 8192)
        return "twice the microbatches, other parameters";
    return category_total(&more, HB_CAT_SAVED) != category_total(&s->r, HB_CAT_SAVED)
               ? "twice the microbatches, other saved bytes"
               : NULL;
}

/* 4: names are only names. */
static const char *names_change_nothing(struct subject *s)
{
    struct run other;
    struct hb_spec spec = s->r.spec;
    struct hb_block *blocks = copy_blocks(s->arena, &spec);
    spec.model.name = "z";
    for (int i = 0; i < spec.model.block_count; i++)
        blocks[i].name = hb_arena_printf(s->arena, "a name that is %d", i);
    if (!run_spec(s->arena, &spec, &other))
        return "no program with other names";
    return compare_runs(s->arena, &s->r, &other);
}

static bool coin(struct subject *s)
{
    return hb_rng_range(&s->rng, 0, 1) != 0;
}

static void change_pipeline(struct subject *s, struct hb_spec *spec)
{
    struct hb_pipe *p = &spec->pipeline;
    struct hb_block *blocks = copy_blocks(s->arena, spec);
    spec->sharding.ends_over_pipeline = coin(s);
    *p = (struct hb_pipe){.microbatches = hb_rng_range(&s->rng, 1, 99),
                          .repeats = hb_rng_range(&s->rng, 1, 9),
                          .schedule = (enum hb_schedule)hb_rng_range(&s->rng, 0, 4),
                          .shift = (enum hb_shift)hb_rng_range(&s->rng, 0, 2),
                          .constraints = (enum hb_constraints)hb_rng_range(&s->rng, 0, 3),
                          .outputs = (enum hb_outputs)hb_rng_range(&s->rng, 0, 1),
                          .gather = (enum hb_pipe_gather)hb_rng_range(&s->rng, 0, 2),
                          .trivial_constraints = coin(s),
                          .remat_iteration = coin(s),
                          .iteration_save = hb_rng_range(&s->rng, 0, 1) ? 1u << HB_TN_ITER_IN : 0,
                          .remat_layer = coin(s),
                          .delay = coin(s),
                          .unroll = coin(s),
                          .rank = -1};
    for (int i = 0; i < spec->model.block_count; i++)
        blocks[i].pipelined = coin(s);
}

/* 4: a mesh axis of size one, and every key that speaks of it, changes nothing. */
static const char *axes_of_one_change_nothing(struct subject *s)
{
    struct run other;
    struct hb_spec spec = s->r.spec;
    struct hb_sharding *sh = &spec.sharding;
    if (spec.mesh[HB_AX_TENSOR] == 1) {
        sh->vocab_over_tensor = coin(s);
        sh->residual_over_tensor = coin(s);
        sh->residual_split = (enum hb_residual_split)hb_rng_range(&s->rng, 0, 1);
        if (sh->norms != HB_NORMS_FSDP && spec.runtime.framework != HB_FW_AUTO)
            sh->norms = coin(s) ? HB_NORMS_TENSOR : HB_NORMS_REPLICATED;
    }
    if (spec.mesh[HB_AX_SEQUENCE] == 1) {
        sh->sequence_kind = (enum hb_sequence_kind)hb_rng_range(&s->rng, 0, 2);
        sh->states_over_sequence = coin(s);
        sh->sequence_balance = coin(s);
    }
    if (spec.mesh[HB_AX_DATA] == 1)
        sh->optimizer_over_data = coin(s), sh->grads_over_data = coin(s);
    if (spec.mesh[HB_AX_EXPERT] == 1)
        sh->dense_over_expert = coin(s), sh->router_over_expert = coin(s);
    if (spec.mesh[HB_AX_PIPELINE] == 1)
        change_pipeline(s, &spec);
    if (!run_spec(s->arena, &spec, &other))
        return "not valid with other keys of an axis of one";
    return compare_runs(s->arena, &s->r, &other);
}

/* 9: twice the same, also by way of the YAML that the program writes. */
static const char *runs_repeat(struct subject *s)
{
    struct run again;
    struct hb_str text;
    struct hb_spec spec;
    struct hb_diag diag;
    struct hb_node *root;
    if (!run_spec(s->arena, &s->r.spec, &again))
        return "no program the second time";
    const char *broken = compare_runs(s->arena, &s->r, &again);
    if (broken)
        return broken;
    hb_str_init(&text, s->arena);
    hb_diag_init(&diag, s->arena);
    hb_schema_emit_yaml(&text, &s->r.spec, coin(s));
    if (!hb_yaml_parse(s->arena, &diag, "emitted", text.text, text.len, &root) ||
        !hb_schema_from_node(s->arena, &diag, root, HB_SOURCE_DIR, &spec) ||
        !run_spec(s->arena, &spec, &again))
        return "what was written cannot be read";
    return compare_runs(s->arena, &s->r, &again);
}

static void make_faster(struct subject *s, struct hb_device *d)
{
    double *rates[] = {&d->hbm_bytes_per_s,          &d->vector_flops,
                       &d->link_bytes_per_s,         &d->net_bytes_per_s,
                       &d->host_up_bytes_per_s,      &d->host_down_bytes_per_s,
                       &d->peak_flops[HB_RATE_BF16], &d->peak_flops[HB_RATE_F32],
                       &d->peak_flops[HB_RATE_TF32], &d->peak_flops[HB_RATE_F16]};
    int64_t *delays[] = {&d->op_latency_ns, &d->link_latency_ns, &d->collective_latency_ns,
                         &d->net_latency_ns, &d->host_latency_ns};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        *rates[i] *= coin(s) ? 1 : 1 + (double)hb_rng_range(&s->rng, 0, 300) / 100;
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++)
        *delays[i] /= coin(s) ? 1 : hb_rng_range(&s->rng, 1, 10);
}

/* 6: a step lasts as long as each of its streams, and no longer on a faster device. */
static const char *streams_bound_the_step(struct subject *s)
{
    struct hb_timing t, fast;
    struct hb_device faster = *find_device(s->r.spec.hardware.device);
    hb_run_timing(s->arena, &s->r.p, &faster, &t);
    if (t.step_ns <= 0 || t.step_ns > INT64_MAX / 4 || !isfinite(t.flops) || !(t.flops > 0))
        return "a step without time or work, or without end";
    for (int i = 0; i < HB_STREAM_COUNT; i++)
        if (t.busy_ns[i] < 0 || t.busy_ns[i] > t.step_ns)
            return "a stream busier than the step is long";
    make_faster(s, &faster);
    hb_run_timing(s->arena, &s->r.p, &faster, &fast);
    return fast.step_ns > t.step_ns ? "a faster device, a longer step" : NULL;
}

/* Whether the buffer is a gradient of the weight of that name. */
static bool is_gradient_of(const struct hb_buf *b, const char *weight)
{
    static const char gradient[] = ", gradient";
    size_t length = strlen(weight);
    return b->category == HB_CAT_GRADIENTS && strncmp(b->name, weight, length) == 0 &&
           strncmp(b->name + length, gradient, sizeof gradient - 1) == 0;
}

/* Whether a gradient of that weight is made by ops from one on. */
static bool is_made_from(const struct hb_program *p, uint32_t from, const char *weight)
{
    for (uint32_t i = from; i < p->op_count; i++) {
        const struct hb_op *op = &p->ops[i];
        for (uint32_t w = 0; w < op->write_count; w++)
            if (is_gradient_of(&p->bufs[p->refs[op->refs_at + op->read_count + w]], weight))
                return true;
    }
    return false;
}

/* 7: nothing of a weight's gradient is made once the weight is new. */
static const char *updates_follow_gradients(struct subject *s)
{
    static const char update[] = "update ";
    const size_t length = sizeof update - 1;
    const struct hb_program *p = &s->r.p;
    for (uint32_t i = 0; i < p->op_count; i++)
        if (strncmp(p->ops[i].name, update, length) == 0 &&
            is_made_from(p, i + 1, p->ops[i].name + length))
            return "an update before its gradient";
    return NULL;
}

/* More processes never load in less memory, and no way of loading in less than the parameters. */
static const char *loads_grow_with_processes(struct subject *s)
{
    struct hb_diag diag;
    hb_diag_init(&diag, s->arena);
    struct hb_load_plan plan = hb_load_plan_make(&s->r.spec, &s->r.p);
    int64_t before = 0, host_before = 0;
    for (int64_t n = 1; n <= 4; n *= 2) {
        struct hb_program p;
        struct hb_memory m;
        if (!hb_load_program(s->arena, &diag, &plan, s->r.spec.load.method, n, &p))
            return "no program that loads";
        hb_run_memory(s->arena, &p, &m);
        if (m.peak_bytes < before)
            return "more processes, less memory on a device";
        if (s->r.spec.load.method == HB_LOAD_DEVICE_PUT && m.host_bytes < host_before)
            return "more processes to compare, less memory on a host";
        before = m.peak_bytes;
        host_before = m.host_bytes;
    }
    return before < plan.others_bytes + plan.part_bytes ? "loaded in less than there is" : NULL;
}

/* --- all of them --- */

struct law {
    const char *name;
    law_fn *hold;
    bool compares;      /* not every configuration gives it something to compare */
    const char *broken; /* by the first case that does */
    uint64_t compared;  /* cases with something to compare */
};

/* Whether less is computed than the model needs. Keys and values of attention that is left out have
 * no gradient: at most a third of the work. */
static bool lacks_work(const struct hb_result *r)
{
    const struct hb_model *m = &r->spec->model;
    double most = 1.05;
    for (int i = 0; i < m->block_count; i++)
        most = m->blocks[i].attention.kind == HB_ATTN_NONE ? 1.5 : most;
    return r->mfu > most * r->hfu;
}

static const char *all_work_is_there(struct subject *s)
{
    struct hb_diag diag;
    struct hb_result r;
    hb_diag_init(&diag, s->arena);
    if (!hb_result_run(s->arena, &diag, &s->r.spec, find_device(s->r.spec.hardware.device), &r))
        return NULL; /* a step that takes for ever */
    if (r.mfu > 1 || r.hfu > 1)
        return "more than the device's peak";
    return lacks_work(&r) ? "less is computed than the model needs" : NULL;
}

#define LAW(fn)                                                                                    \
    {                                                                                              \
        .name = #fn, .hold = fn                                                                    \
    }
#define COMPARES(fn)                                                                               \
    {                                                                                              \
        .name = #fn, .hold = fn, .compares = true                                                  \
    }
static struct law laws[] = {LAW(parts_sum_to_the_peak),
                            LAW(buffers_never_overlap),
                            LAW(donation_moves_the_state),
                            COMPARES(batch_grows_the_peak),
                            COMPARES(sequence_grows_the_peak),
                            COMPARES(layers_cost_no_ops),
                            LAW(saving_more_saves_more),
                            COMPARES(accumulation_keeps_the_same),
                            LAW(names_change_nothing),
                            LAW(axes_of_one_change_nothing),
                            LAW(runs_repeat),
                            LAW(streams_bound_the_step),
                            LAW(all_work_is_there),
                            LAW(updates_follow_gradients),
                            LAW(loads_grow_with_processes)};
enum { LAW_COUNT = sizeof laws / sizeof laws[0] };

#endif
