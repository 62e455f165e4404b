/* A step in the order of XLA's schedulers: the same ops, whatever order they were written down in.
 */
#include "tests/unit/lowered.h"

#include <stdlib.h>

#include "sim/engine/check.h"
#include "sim/graph/link.h"
#include "sim/ir/habits.h"

static const char base[] = FOUR_LAYERS(DENSE_MLP);

#define LOWER(...) lower_text(base, (const char *const[]){__VA_ARGS__, NULL})

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of the ops in their order, then sorted. */
static const char **names_of(const struct hb_program *p, bool sorted)
{
    const char **names = hb_arena_alloc(u.env.arena, p->op_count, sizeof *names);
    for (uint32_t i = 0; i < p->op_count; i++)
        names[i] = p->ops[i].name;
    if (sorted)
        qsort(names, p->op_count, sizeof *names, compare_names);
    return names;
}

static bool is_same(const char *const *a, const char *const *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

/* Loops are numbered as they come now; ops of layers stay in theirs as they were. */
static void check_loops(const struct hb_program *p, const struct hb_program *before)
{
    assert_int_equal(p->loop_count, before->loop_count);
    for (uint32_t i = 0; i < p->loop_count; i++) {
        const struct hb_loop *l = &p->loops[i], *old = before->loops;
        while (strcmp(old->name, l->name) != 0)
            old++;
        assert_int_equal(l->trips, old->trips);
        assert_int_equal(l->end_op - l->first_op, old->end_op - old->first_op);
        assert_true(i == 0 || l->first_op >= p->loops[i - 1].first_op);
        if (strncmp(l->name, "block", strlen("block")) == 0)
            assert_string_equal(p->ops[l->first_op].name, before->ops[old->first_op].name);
    }
}

static void link_twice(struct low *l)
{
    struct hb_program before = l->p;
    uint32_t count = before.op_count;
    before.ops = hb_arena_alloc(u.env.arena, count, sizeof *before.ops);
    before.loops = hb_arena_alloc(u.env.arena, before.loop_count + 1, sizeof *before.loops);
    memcpy(before.ops, l->p.ops, count * sizeof *before.ops);
    memcpy(before.loops, l->p.loops, before.loop_count * sizeof *before.loops);
    assert_true(hb_habits_ordered(&l->spec));
    hb_link_order(u.env.arena, &l->spec, &l->p);
    hb_program_check(&l->p);
    assert_int_equal(l->p.op_count, count);
    assert_true(is_same(names_of(&l->p, true), names_of(&before, true), count));
    check_loops(&l->p, &before);
    const char **once = names_of(&l->p, false);
    hb_link_order(u.env.arena, &l->spec, &l->p);
    assert_true(is_same(names_of(&l->p, false), once, count));
}

static void steps_keep_their_ops(void **state)
{
    (void)state;
    struct low steps[] = {LOWER(ROCM, "mesh.fsdp=8"),
                          LOWER(ROCM, "mesh.fsdp=8", "optimizer.clip=true", "loss.chunks=4"),
                          LOWER(ROCM, "mesh.tensor=4", "model.tied_embeddings=true"),
                          LOWER(ROCM, "mesh.fsdp=4", "batch.accumulate=2", "batch.global=8"),
                          LOWER(CUDA, "mesh.fsdp=1", "batch.global=2"),
                          LOWER(CUDA, "mesh.fsdp=1", "optimizer.name=muon"),
                          LOWER(CUDA, "mesh.fsdp=1", "loss.chunks=4")};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        link_twice(&steps[i]);
}

static void others_stay_as_they_are(void **state)
{
    (void)state;
    struct low steps[] = {LOWER(CUDA, "mesh.fsdp=8"), LOWER(ROCM, "stack.form=loop"),
                          LOWER(CUDA, "model.blocks[0].attention.kernel=naive")};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const char **names = names_of(&steps[i].p, false);
        assert_false(hb_habits_ordered(&steps[i].spec));
        hb_link_order(u.env.arena, &steps[i].spec, &steps[i].p);
        assert_true(is_same(names_of(&steps[i].p, false), names, steps[i].p.op_count));
    }
}

/* The planner's floors are those of each: every one is a step of the same ops, and its own is among
 * them. */
static void a_cell_has_a_few_orders(void **state)
{
    (void)state;
    struct low l = LOWER(ROCM, "mesh.fsdp=8", "model.vocab=128000");
    struct hb_link link;
    hb_link_open(u.env.arena, &l.spec, &link);
    int orders[HB_LINK_ORDERS], count = hb_link_all(&link, orders), same = 0;
    assert_true(count >= 2 && count <= HB_LINK_ORDERS);
    const char **own = names_of(&l.p, false), **sorted = names_of(&l.p, true);
    for (int i = 0; i < count; i++) {
        struct hb_spec spec = l.spec;
        struct hb_program p;
        spec.as_order = orders[i];
        assert_true(hb_link_lower(u.env.arena, &u.diag, &spec, &p));
        hb_program_check(&p);
        assert_int_equal(p.op_count, l.p.op_count);
        assert_true(is_same(names_of(&p, true), sorted, p.op_count));
        same += is_same(names_of(&p, false), own, p.op_count);
    }
    assert_int_equal(same, 1);
    struct low cuda = LOWER(CUDA, "mesh.fsdp=8");
    hb_link_open(u.env.arena, &cuda.spec, &link);
    assert_int_equal(hb_link_all(&link, orders), 0);
}

/* Of all orders of steps whose states come from the host: none waits for a copy that is to start.
 */
static void copies_start_before_they_end(void **state)
{
    (void)state;
    const char *host = "optimizer.offload=pinned_host", *clip = "optimizer.clip=true";
    const char *ema = "optimizer.ema=pinned_host";
    struct low steps[] = {LOWER(ROCM, "mesh.fsdp=8", host), LOWER(ROCM, "mesh.fsdp=8", host, clip),
                          LOWER(ROCM, "mesh.fsdp=8", ema, "optimizer.name=adafactor"),
                          LOWER(ROCM, "mesh.tensor=2", "mesh.fsdp=4", host, ema),
                          LOWER(CUDA, "mesh.fsdp=1", host, ema)};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        struct hb_link link;
        int orders[HB_LINK_ORDERS];
        hb_link_open(u.env.arena, &steps[k].spec, &link);
        for (int i = hb_link_all(&link, orders); i-- > 0;) {
            struct hb_spec spec = steps[k].spec;
            struct hb_program p;
            spec.as_order = orders[i];
            assert_true(hb_link_lower(u.env.arena, &u.diag, &spec, &p));
            hb_program_check(&p);
        }
    }
}

/* tied/1B,t8,tied,chunk8: bf16[8,16,512,2048] to the end: what adds up the loss of the chunks is a
 * result as any other. */
static void the_loss_of_the_chunks_is_a_result(void **state)
{
    (void)state;
    struct low l = LOWER(ROCM, "loss.chunks=4");
    bool result = false;
    for (uint32_t i = 0; i < l.p.op_count; i++)
        for (uint32_t w = 0; w < l.p.ops[i].write_count; w++) {
            uint32_t buf = l.p.refs[l.p.ops[i].refs_at + l.p.ops[i].read_count + w];
            result = result || (l.p.bufs[buf].output && strcmp(l.p.bufs[buf].name, "loss") == 0 &&
                                l.p.ops[i].loop != HB_NONE);
        }
    assert_true(result);
}

/* A step hands back optax's tree and the weights: all first moments, all second ones, the weights
 * in the same order, and the rest. An update's three stand beside each other. */
static void outputs_come_in_their_trees(void **state)
{
    (void)state;
    enum { LEAVES = 12, REST = 3, NEAR = 2 };
    struct low l = LOWER(ROCM, "mesh.fsdp=8");
    struct hb_step_graph step;
    hb_step_graph_make(u.env.arena, &l.p, &step);
    const struct hb_graph *g = &step.graph;
    const struct hb_graph_op *root = &g->ops[g->comps[g->entry].root];
    const uint32_t *made_by = g->refs + root->refs_at[HB_GRAPH_OPERAND];
    uint32_t count = root->refs_at[HB_GRAPH_OPERAND + 1] - root->refs_at[HB_GRAPH_OPERAND];
    assert_int_equal(count, 3 * LEAVES + REST);
    for (uint32_t i = 0; i < LEAVES; i++) {
        int64_t first = made_by[i], weight = made_by[2 * LEAVES + i];
        assert_int_equal(made_by[LEAVES + i], first + 1);
        assert_true(llabs(weight - first) <= NEAR);
    }
}

/* Of the graph: the first op without a name of its own that reads what the named one makes. */
static uint32_t part_of(const struct low *l, const struct hb_step_graph *s, const char *name)
{
    for (uint32_t i = 0; i < s->graph.op_count; i++) {
        const struct hb_graph_op *o = &s->graph.ops[i];
        for (uint32_t r = o->refs_at[HB_GRAPH_OPERAND]; r < o->refs_at[HB_GRAPH_OPERAND + 1]; r++) {
            uint32_t from = s->item[s->graph.refs[r]];
            if (s->item[i] == HB_NONE && from < l->p.op_count && strstr(l->p.ops[from].name, name))
                return i;
        }
    }
    return HB_NONE;
}

/* On TPU the norm's parts come in the order of the parameters: embedding, layers, head. */
static void parts_of_a_norm_follow_the_parameters(void **state)
{
    (void)state;
    struct low steps[] = {
        LOWER(TPU, "hardware.device=tpu-v5p", "optimizer.clip=true"),
        LOWER(TPU, "hardware.device=tpu-v5p", "optimizer.clip=true", "mesh.fsdp=8")};
    for (int i = 0; i < 2; i++) {
        struct hb_step_graph step;
        hb_step_graph_make(u.env.arena, &steps[i].p, &step);
        uint32_t table = part_of(&steps[i], &step, "scatter embedding gradients");
        uint32_t norm = part_of(&steps[i], &step, "zero gradient of block.norm1");
        uint32_t head = part_of(&steps[i], &step, "gradient of the head");
        assert_true(table < norm && head < step.graph.op_count);
        assert_true(norm < head || i == 1); /* of a ring both directions come first */
    }
}

/* 20 layers of 8B on one H100, 16384 tokens, list and depth-first by the compiler's
 * log: 56.78 63.37 GiB with sgd, 56.79 55.42 with adafactor, whose update reads the head's gradient
 * four times. */
static void factored_updates_come_at_once(void **state)
{
    (void)state;
    const char *const names[] = {"optimizer.name=sgd", "optimizer.name=adafactor"};
    for (int i = 0; i < 2; i++) {
        struct low l = LOWER(CUDA, "mesh.fsdp=1", "model.d_model=4096", "model.vocab=128256",
                             "model.blocks[0].repeat=20", "model.blocks[0].mlp.d_ff=14336",
                             "batch.seq=8192", "batch.global=2", "optimizer.clip=false", names[i]);
        struct hb_step_orders o;
        hb_step_orders_find(u.env.arena, &l.p, &o);
        const int64_t *bytes = o.choice.bytes;
        assert_int_equal(bytes[HB_ORDER_DEPTH] < bytes[HB_ORDER_LIST], i == 1);
    }
}

/* GiB, by the compiler's log: list, depth, post. Logits of one sequence in f32 stand to the end,
 * and the head's gradient comes first of all where its ring has most above it, in f32; a
 * microbatch's labels are in the loss's fusion; a layer's end waits for its input's way into the
 * stack, behind which tensor parallelism has a residual more depth-first. */
static void tpus_orders_are_as_logged(void **state)
{
    (void)state;
#define HOST "optimizer.offload=pinned_host", "optimizer.clip=true", "mesh.fsdp=8"
#define SMALL                                                                                      \
    "hardware.device=tpu-v5p", "model.d_model=2048", "model.vocab=32000", "batch.seq=4096",        \
        "model.blocks[0].repeat=16", "model.blocks[0].attention.heads=16",                         \
        "model.blocks[0].attention.kv_heads=4", "model.blocks[0].attention.head_dim=128",          \
        "model.blocks[0].mlp.d_ff=8192", "optimizer.moments=[bf16,bf16]"
    const struct {
        double gib[HB_ORDER_KINDS];
        struct low low;
    } steps[] = {
        {{2.91, 2.99, 3.25}, LOWER(TPU, HOST, SMALL, "batch.global=8", "optimizer.clip=false")},
        {{2.45, 2.79, 2.80},
         LOWER(TPU, HOST, SMALL, "batch.global=8", "optimizer.clip=false", "precision.params=bf16",
               "optimizer.moments=[bf16,f32]")},
        {{3.45, 3.04, 3.31},
         LOWER(TPU, HOST, SMALL, "batch.global=32", "batch.accumulate=4", "optimizer.clip=false")},
        {{15.88, 15.13, 14.89},
         LOWER(TPU, HOST, "hardware.device=tpu-v6e", "mesh.tensor=2", "hardware.count=16",
               "model.d_model=4096", "model.vocab=32000", "model.blocks[0].repeat=24",
               "model.blocks[0].attention.heads=32", "model.blocks[0].attention.kv_heads=32",
               "model.blocks[0].attention.head_dim=128", "model.blocks[0].mlp.d_ff=11008",
               "precision.params=bf16", "batch.global=32", "batch.seq=8192",
               "optimizer.moments=[bf16,f32]")}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct hb_step_orders o;
        int least = 0;
        hb_step_orders_find(u.env.arena, &steps[i].low.p, &o);
        for (int k = 0; k < HB_ORDER_KINDS; k++) {
            double got = (double)o.choice.bytes[k] / (1 << 30), off = got / steps[i].gib[k] - 1;
            assert_true(off < 0.02 && off > -0.02);
            least = steps[i].gib[k] < steps[i].gib[least] ? k : least;
        }
        assert_int_equal(o.choice.least, least);
    }
}

/* Inside of layers. Experts of an einsum between gathers: 64 of 1,024, eight sequences of 2,048
 * over 64 of v6e, in the list's order, whose backward loop the compiler has in this one (moe--q03).
 * Rings, v5e and unrolled layers keep theirs. */
static const char olmoe[] =
    FOUR_LAYERS("moe: {experts: 64, top_k: 8, d_ff: 1024, dispatch: einsum}");

#define OLMOE(...)                                                                                 \
    lower_text(olmoe, (const char *const[]){TPU, "hardware.device=tpu-v6e", "model.d_model=2048",  \
                                            "model.vocab=50304", "model.blocks[0].repeat=16",      \
                                            "model.blocks[0].attention.heads=16",                  \
                                            "model.blocks[0].attention.kv_heads=16",               \
                                            "model.blocks[0].attention.head_dim=128",              \
                                            "batch.seq=2048", "loss.chunks=4", __VA_ARGS__, NULL})
#define OVER_64 "mesh.fsdp=64", "hardware.count=64", "batch.global=512"

static uint32_t ordered_loops(const struct hb_program *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->loop_count; i++)
        count += p->loops[i].ordered;
    return count;
}

/* Of the loop that is ordered; from `at` on. */
static uint32_t find_in_layers(const struct hb_program *p, const char *name, uint32_t at)
{
    uint32_t loop = 0;
    while (!p->loops[loop].ordered)
        loop++;
    for (uint32_t i = at > p->loops[loop].first_op ? at : p->loops[loop].first_op;
         i < p->loops[loop].end_op; i++)
        if (strcmp(p->ops[i].name, name) == 0)
            return i;
    fail_msg("no '%s' behind op %u", name, at);
    return HB_NONE;
}

static void layers_follow_the_graph(void **state)
{
    (void)state;
    static const char *const listed[] = {"moe combine weights",
                                         "moe dispatch mask",
                                         "expert inputs",
                                         "expert gate",
                                         "backward of moe output",
                                         "gradient of block.e_down",
                                         "backward of expert activation",
                                         "expert output",
                                         "block.moe combine weights, gradient of",
                                         "backward of router probabilities",
                                         "gradient of block.e_gate",
                                         "gradient through block.e_up",
                                         "backward of expert inputs",
                                         "backward of flash attention"};
    struct low l = OLMOE(OVER_64);
    assert_int_equal(ordered_loops(&l.p), 1);
    uint32_t count = l.p.op_count, at = 0;
    const char **before = names_of(&l.p, true);
    hb_link_order(u.env.arena, &l.spec, &l.p);
    hb_program_check(&l.p);
    assert_true(is_same(names_of(&l.p, true), before, count));
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++)
        at = find_in_layers(&l.p, listed[i], at) + 1;
}

/* In post-order weights' gradients come behind all that leads on. */
static void an_order_inside_can_be_told(void **state)
{
    (void)state;
    struct low l = OLMOE(OVER_64);
    l.spec.as_layers = 1 + HB_ORDER_POST;
    hb_link_order(u.env.arena, &l.spec, &l.p);
    uint32_t attention = find_in_layers(&l.p, "backward of flash attention", 0);
    assert_true(find_in_layers(&l.p, "gradient of block.e_up", 0) > attention);
}

static void other_layers_are_not_ordered(void **state)
{
    (void)state;
    struct low steps[] = {OLMOE("mesh.fsdp=8", "hardware.count=8", "batch.global=64"),
                          OLMOE(OVER_64, "hardware.device=tpu-v5e"),
                          OLMOE(OVER_64, "stack.form=loop"),
                          OLMOE(OVER_64, "model.blocks[0].moe.dispatch=ragged")};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_int_equal(ordered_loops(&steps[i].p), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tpus_orders_are_as_logged),    TEST(factored_updates_come_at_once),
        TEST(steps_keep_their_ops),         TEST(layers_follow_the_graph),
        TEST(an_order_inside_can_be_told),  TEST(other_layers_are_not_ordered),
        TEST(others_stay_as_they_are),      TEST(a_cell_has_a_few_orders),
        TEST(copies_start_before_they_end), TEST(the_loss_of_the_chunks_is_a_result),
        TEST(outputs_come_in_their_trees),  TEST(parts_of_a_norm_follow_the_parameters),
    };
    return cmocka_run_group_tests_name("graph link", tests, NULL, NULL);
}
