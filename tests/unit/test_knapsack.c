/* What torch 2.15's partitioner saved of a compiled Llama layer at each budget, on fake tensors in
 * bf16 (min_cut_rematerialization_partition of the joint graph, inductor's decompositions). */
#include "tests/unit/unit.h"

#include "base/str.h"
#include "base/yaml.h"
#include "models/schema.h"
#include "sim/eager/knapsack.h"

static struct hb_arena *arena;

static int start(void **state)
{
    (void)state;
    arena = hb_arena_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    hb_arena_free(arena);
    return 0;
}

static const struct {
    int64_t d, ff, heads, kv, head, seq, batch;
    double budget;
    const char *kept; /* of q, k, v, o, gate, up and a: attention */
} seen[] = {
    {4096, 14336, 32, 8, 128, 8192, 1, 0.9, "qkvogua"},
    {4096, 14336, 32, 8, 128, 8192, 1, 0.6, "qkvogua"},
    {4096, 14336, 32, 8, 128, 8192, 1, 0.5, "qgua"},
    {4096, 14336, 32, 8, 128, 8192, 1, 0.3, "qga"},
    {4096, 14336, 32, 8, 128, 8192, 1, 0.2, "qkvoa"},
    {4096, 14336, 32, 8, 128, 8192, 1, 0.1, "kva"},
    {4096, 14336, 32, 8, 128, 8192, 1, 0.05, "kv"},
    {4096, 14336, 32, 8, 128, 8192, 1, 0, ""},
    {8192, 28672, 64, 8, 128, 4096, 1, 0.6, "qkvogua"},
    {8192, 28672, 64, 8, 128, 4096, 1, 0.4, "kvgu"},
    {8192, 28672, 64, 8, 128, 4096, 1, 0.2, "kg"},
    {2048, 8192, 16, 16, 128, 32768, 1, 0.6, "qkgua"},
    {2048, 8192, 16, 16, 128, 32768, 1, 0.4, "qkga"},
    {2048, 8192, 16, 16, 128, 32768, 1, 0.2, "qka"},
    /* Drawn and told before torch was asked. */
    {2048, 8192, 32, 8, 64, 4096, 2, 0.57, "qkogua"},
    {2048, 8192, 32, 8, 64, 4096, 2, 0.43, "qkvoga"},
    {2048, 8192, 32, 8, 64, 4096, 2, 0.28, "kvga"},
    {2048, 8192, 32, 8, 64, 4096, 2, 0.17, "qkoa"},
    {2048, 8192, 32, 8, 64, 4096, 2, 0.09, "kva"},
    {5120, 14336, 32, 8, 128, 32768, 1, 0.57, "qkvogua"},
    {5120, 14336, 32, 8, 128, 32768, 1, 0.43, "kgua"},
    {5120, 14336, 32, 8, 128, 32768, 1, 0.28, "kvga"},
    {5120, 14336, 32, 8, 128, 32768, 1, 0.17, "qoa"},
    {5120, 14336, 32, 8, 128, 32768, 1, 0.09, "kva"},
    {1024, 2816, 16, 4, 64, 2048, 4, 0.57, "qkvogua"},
    {1024, 2816, 16, 4, 64, 2048, 4, 0.43, "kgua"},
    {1024, 2816, 16, 4, 64, 2048, 4, 0.28, "kvga"},
    {1024, 2816, 16, 4, 64, 2048, 4, 0.17, "qkva"},
    {1024, 2816, 16, 4, 64, 2048, 4, 0.09, "ka"},
    {3072, 24576, 16, 16, 256, 8192, 1, 0.57, "qgua"},
    {3072, 24576, 16, 16, 256, 8192, 1, 0.43, "qkvoga"},
    {3072, 24576, 16, 16, 256, 8192, 1, 0.28, "ga"},
    {3072, 24576, 16, 16, 256, 8192, 1, 0.17, "qkva"},
    {3072, 24576, 16, 16, 256, 8192, 1, 0.09, "qa"},
};

static struct hb_spec spec_of(size_t at)
{
    struct hb_diag diag;
    struct hb_node *root = NULL;
    struct hb_spec spec;
    hb_diag_init(&diag, arena);
    const char *text = hb_arena_printf(
        arena,
        "model: {d_model: %lld, vocab: 1000, blocks: [{repeat: 1, attention: {heads: %lld, "
        "kv_heads: %lld, "
        "head_dim: %lld}, mlp: {d_ff: %lld}}]}\nbatch: {global: %lld, seq: %lld}\n"
        "compiler: torch\nhardware: {device: nvidia-h100, count: 1}\nruntime: {compile: true}\n"
        "remat: {policy: none, budget: %g}\n",
        (long long)seen[at].d, (long long)seen[at].heads, (long long)seen[at].kv,
        (long long)seen[at].head, (long long)seen[at].ff, (long long)seen[at].batch,
        (long long)seen[at].seq, seen[at].budget);
    bool ok = hb_yaml_parse(arena, &diag, "t.yaml", text, strlen(text), &root) &&
              hb_schema_from_node(arena, &diag, root, ".", &spec);
    hb_diag_print(&diag, stderr);
    assert_true(ok);
    return spec;
}

static void keeps_what_torch_does(void **state)
{
    static const char letters[] = "qkvogu";
    (void)state;
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        struct hb_spec spec = spec_of(i);
        int64_t tokens = seen[i].batch * seen[i].seq;
        struct hb_remat r = hb_knapsack_remat(arena, &spec, &spec.model.blocks[0], tokens, 2);
        struct hb_str kept;
        hb_str_init(&kept, arena);
        for (int k = 0; letters[k]; k++)
            if (hb_knapsack_keeps(&r, k))
                hb_str_addf(&kept, "%c", letters[k]);
        if (hb_knapsack_keeps_attention(&r))
            hb_str_add(&kept, "a");
        assert_string_equal(kept.text, seen[i].kept);
        assert_int_equal(r.policy, *seen[i].kept ? HB_POLICY_NAMES : HB_POLICY_FULL);
    }
}

static void leaves_other_policies_alone(void **state)
{
    (void)state;
    struct hb_spec spec = spec_of(0);
    struct hb_block b = spec.model.blocks[0];
    spec.remat.budget = 1;
    assert_int_equal(hb_knapsack_remat(arena, &spec, &b, 8192, 2).policy, HB_POLICY_NONE);
    spec.remat.budget = 0.5;
    b.remat.policy = HB_POLICY_FULL;
    assert_int_equal(hb_knapsack_remat(arena, &spec, &b, 8192, 2).save, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_torch_does),
        cmocka_unit_test(leaves_other_policies_alone),
    };
    return cmocka_run_group_tests(tests, start, end);
}
