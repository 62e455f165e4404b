/* Parameter counts worked out by hand, part by part; the published ones are in test_zoo.c. */
#include "tests/unit/unit.h"

#include "base/str.h"
#include "base/yaml.h"
#include "models/params.h"
#include "models/schema.h"

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

/* The counts of a model of width 8 and 10 words with these blocks and further keys. */
static struct hb_params count(const char *keys, const char *blocks)
{
    struct hb_diag diag;
    struct hb_node *root = NULL;
    struct hb_spec spec;
    struct hb_params params;
    hb_diag_init(&diag, arena);
    const char *text =
        hb_arena_printf(arena, "model: {d_model: 8, vocab: 10, %s blocks: [%s]}\n", keys, blocks);
    bool ok = hb_yaml_parse(arena, &diag, "t.yaml", text, strlen(text), &root) &&
              hb_schema_from_node(arena, &diag, root, ".", &spec);
    hb_diag_print(&diag, stderr);
    assert_true(ok);
    hb_params_count(&spec, &params);
    return params;
}

#define ATTENTION "attention: {heads: 4, kv_heads: 2, head_dim: 3}"
#define MLP       "mlp: {d_ff: 5}"

static void counts_a_dense_model(void **state)
{
    (void)state;
    struct hb_params p = count("", "{repeat: 3, " ATTENTION ", " MLP "}");
    assert_int_equal(p.embedding, 80);
    assert_int_equal(p.head, 80);
    /* q and o 8 x 12, k and v 8 x 6 */
    assert_int_equal(p.attention, 3 * (2 * 96 + 2 * 48));
    assert_int_equal(p.mlp, 3 * 3 * 8 * 5);
    assert_int_equal(p.norm, 3 * 16 + 8);
    assert_int_equal(p.experts + p.router + p.mtp, 0);
    assert_int_equal(p.total, 80 + 80 + 864 + 360 + 56);
    assert_int_equal(p.active, p.total);
}

static void counts_the_ends(void **state)
{
    (void)state;
    struct hb_params p =
        count("tied_embeddings: true, positions: 7,", "{repeat: 1, " ATTENTION ", " MLP "}");
    assert_int_equal(p.embedding, 80 + 56);
    assert_int_equal(p.head, 0);
}

static void counts_biases_and_norms(void **state)
{
    (void)state;
    struct hb_params p = count("", "{repeat: 1, norm: layernorm, post_norm: true, attention: "
                                   "{heads: 4, kv_heads: 2, head_dim: 3, bias: true, qk_norm: true,"
                                   " sinks: true}, mlp: {kind: gelu, d_ff: 5, bias: true}}");
    assert_int_equal(p.attention, 288 + (12 + 6 + 6 + 8) + 2 * 3 + 4);
    assert_int_equal(p.mlp, 2 * 8 * 5 + 5 + 8);
    assert_int_equal(p.norm, 4 * 16 + 16);
    p = count("", "{repeat: 1, attention: {heads: 4, kv_heads: 2, head_dim: 3, bias: qkv,"
                  " qk_norm: l2}, mlp: {kind: geglu, d_ff: 5, bias: true}}");
    assert_int_equal(p.attention, 288 + 12 + 6 + 6);
    assert_int_equal(p.mlp, 3 * 8 * 5 + 10 + 8);
}

static void counts_mla(void **state)
{
    (void)state;
    struct hb_params p = count("", "{repeat: 1, attention: {kind: mla, heads: 2, q_lora_rank: 3,"
                                   " kv_lora_rank: 5, qk_nope_head_dim: 4, qk_rope_head_dim: 2,"
                                   " v_head_dim: 7}, " MLP "}");
    /* q: 8 x 3, 3 x 2 x 6; kv: 8 x (5 + 2), 5 x 2 x (4 + 7); o: 2 x 7 x 8; norms 3 and 5 */
    assert_int_equal(p.attention, 24 + 36 + 56 + 110 + 112 + 8);
    p = count("", "{repeat: 1, attention: {kind: mla, heads: 2, kv_lora_rank: 5,"
                  " qk_nope_head_dim: 4, qk_rope_head_dim: 2, v_head_dim: 7}, " MLP "}");
    assert_int_equal(p.attention, 8 * 12 + 56 + 110 + 112 + 5);
}

static void counts_experts(void **state)
{
    (void)state;
    struct hb_params p =
        count("", "{repeat: 2, " ATTENTION ", moe: {experts: 6, top_k: 2, d_ff: 3,"
                  " shared_experts: 2, router_bias: true}}, {repeat: 1, " ATTENTION ", " MLP "}");
    assert_int_equal(p.experts, 2 * 6 * 72);
    assert_int_equal(p.router, 2 * (48 + 6));
    assert_int_equal(p.mlp, 2 * 3 * 8 * 6 + 120);
    assert_int_equal(p.total - p.active, 2 * (6 - 2) * 72);
}

static void counts_further_predictions(void **state)
{
    (void)state;
    struct hb_params p = count("mtp: 2,", "{repeat: 1, " ATTENTION ", " MLP "}");
    assert_int_equal(p.mtp, 2 * (288 + 120 + 16 + 2 * 64 + 3 * 8));
    assert_int_equal(p.total - p.active, p.mtp);
}

/* A model that no int64 holds; the reader refuses it, so it is made here. */
static void saturates(void **state)
{
    (void)state;
    struct hb_block block = {.repeat = INT64_MAX / 2,
                             .attention = {.heads = INT64_MAX / 2, .kv_heads = 1, .head_dim = 128},
                             .mlp = {.d_ff = INT64_MAX / 3}};
    struct hb_spec spec = {
        .model = {
            .d_model = INT64_MAX / 2, .vocab = INT64_MAX, .blocks = &block, .block_count = 1}};
    struct hb_params p;
    hb_params_count(&spec, &p);
    assert_true(p.total == INT64_MAX);
    assert_true(p.attention == INT64_MAX);
    assert_true(p.active == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_a_dense_model, start, end),
        cmocka_unit_test_setup_teardown(counts_the_ends, start, end),
        cmocka_unit_test_setup_teardown(counts_biases_and_norms, start, end),
        cmocka_unit_test_setup_teardown(counts_mla, start, end),
        cmocka_unit_test_setup_teardown(counts_experts, start, end),
        cmocka_unit_test_setup_teardown(counts_further_predictions, start, end),
        cmocka_unit_test_setup_teardown(saturates, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
