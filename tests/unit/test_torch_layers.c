/* sim/eager/titan_layer, titan_weights, pieces: what layers of GPT-2's and DeepSeek's kind allocate
 * under torch, storage by storage, against arithmetic by hand. The records of the bench are in
 * tests/golden/torch-layers.jsonl. */
#include "tests/unit/each.h"

#include "models/params.h"
#include "models/support.h"
#include "sim/engine/check.h"
#include "sim/eager/memory.h"
#include "tests/unit/unit_spec.h"

enum { LAYERS = 3, WIDTH = 256, HEADS = 4, TOKENS = 2 * 512 };

static struct hb_spec read_spec(const char *block, const char *more)
{
    return unit_spec(&u, hb_arena_printf(u.env.arena,
                                         "model:\n  d_model: 256\n  vocab: 1000\n%s\n"
                                         "batch: {global: 2, seq: 512}\n"
                                         "hardware: {device: nvidia-h100, count: 1}\n"
                                         "compiler: torch\n%s",
                                         block, more));
}

static struct hb_program lower(const char *block, const char *more)
{
    struct hb_program p;
    struct hb_spec spec = read_spec(block, more);
    assert_true(hb_spec_supported(&u.diag, NULL, &spec));
    assert_true(hb_step_lower(u.env.arena, &u.diag, &spec, &(struct hb_rank_ask){0}, &p));
    hb_program_check(&p);
    return p;
}

/* Of one size all: returns how many there are. */
static int count_of(const struct hb_program *p, const char *name, int64_t bytes)
{
    int count = 0;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        if (!strstr(p->bufs[i].name, name))
            continue;
        assert_int_equal(p->bufs[i].bytes, bytes);
        count++;
    }
    return count;
}

static const char gpt[] =
    "  positions: 1024\n  tied_embeddings: true\n  blocks:\n"
    "    - {repeat: 3, norm: layernorm, dropout: 0.1,\n"
    "       attention: {heads: 4, kv_heads: 4, head_dim: 64, rope: false, bias: true, "
    "fused_qkv: true},\n"
    "       mlp: {kind: gelu, d_ff: 1024, bias: true}}\n";

/* Two steps; a layer that is checkpointed is run again, its second dropout and the product before
 * it too, as the mask is kept. */
static void gpt_layers_keep_masks_and_norms(void **state)
{
    (void)state;
    enum { STEPS = 2, RESIDUAL = TOKENS * WIDTH };
    struct hb_program none = lower(gpt, "remat: {policy: none}\n"),
                      full = lower(gpt, "remat: {policy: full}\n");
    assert_int_equal(count_of(&none, "dropout's mask", RESIDUAL), STEPS * (2 * LAYERS + 1));
    assert_int_equal(count_of(&full, "dropout's mask", RESIDUAL), STEPS * (4 * LAYERS + 1));
    assert_int_equal(count_of(&none, "norm's mean", 4 * TOKENS), STEPS * (2 * LAYERS + 1));
    assert_int_equal(count_of(&full, "norm's mean", 4 * TOKENS), STEPS * (4 * LAYERS + 1));
    assert_int_equal(count_of(&none, "gradient of all pieces", 2 * 3 * RESIDUAL), STEPS * LAYERS);
    assert_int_equal(count_of(&none, "gradient of positions, summed", 4 * 512 * WIDTH), STEPS);
    assert_int_equal(count_of(&none, "table of rope", 0), 0);
}

static int64_t param_bytes(const struct hb_program *p)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->buf_count; i++)
        if (p->bufs[i].argument && p->bufs[i].category == HB_CAT_PARAMS)
            sum += p->bufs[i].bytes;
    return sum;
}

static int64_t count_params(const struct hb_spec *spec)
{
    struct hb_params p;
    hb_params_count(spec, &p);
    return p.total;
}

/* As models/params counts them, from other formulas. */
static void weights_are_the_models(void **state)
{
    (void)state;
    struct hb_program p = lower(gpt, "");
    struct hb_spec spec = read_spec(gpt, "");
    assert_int_equal(param_bytes(&p), 4 * count_params(&spec));
}

/* q and k are put together of a part that rope turns and one that it does not; v and that of k are
 * views of one product. */
static void latent_attention_is_put_together(void **state)
{
    (void)state;
    enum { STEPS = 2, NOPE = 64, ROPE = 32, V = 48, LOW = 128, Q_LOW = 192 };
    static const char block[] =
        "  blocks:\n    - {repeat: 3, mlp: {d_ff: 1024}, attention: {kind: mla, heads: 4,\n"
        "       q_lora_rank: 192, kv_lora_rank: 128, qk_nope_head_dim: 64, qk_rope_head_dim: 32, "
        "v_head_dim: 48}}\n";
    const char *more = "remat: {policy: none}\nprecision: {params: bf16}\n";
    struct hb_program p = lower(block, more);
    struct hb_spec spec = read_spec(block, more);
    const int64_t head = 2 * TOKENS * HEADS;
    assert_int_equal(count_of(&p, "q, whole", head * (NOPE + ROPE)), STEPS * LAYERS);
    assert_int_equal(count_of(&p, "k, whole", head * (NOPE + ROPE)), STEPS * LAYERS);
    assert_int_equal(count_of(&p, ".k and v", head * (NOPE + V)), STEPS * LAYERS);
    assert_int_equal(count_of(&p, "attention output", head * V), STEPS * LAYERS);
    assert_int_equal(count_of(&p, "low rank of k and v", 2 * TOKENS * (LOW + ROPE)),
                     STEPS * LAYERS);
    assert_int_equal(count_of(&p, "gradient over repeated heads", 2 * TOKENS * ROPE),
                     STEPS * LAYERS);
    assert_int_equal(count_of(&p, "table of rope", 512 * ROPE / 2 * 8), 1);
    assert_int_equal(param_bytes(&p), 2 * count_params(&spec) + 512 * ROPE / 2 * 8);
}

/* Two steps of gpt-oss: rope's table of each layer, by position; a weight of each head by its sink;
 * two biases of each row of experts, and what their gate keeps. A layer that is checkpointed is run
 * again for all of it; torchtitan's list keeps the products, which have biases, all. */
static void sinks_and_biases_are_gpt_oss(void **state)
{
    (void)state;
    enum { STEPS = 2, WAYS = 2, ROWS = 2 * TOKENS, FF = WIDTH / 2, HEAD = 64 };
    static const char block[] =
        "  blocks:\n    - {repeat: 3, moe: {experts: 4, top_k: 2, d_ff: 128, kind: swiglu, bias: "
        "true,\n       router_bias: true}, attention: {heads: 4, kv_heads: 2, head_dim: 64, bias: "
        "true,\n       sinks: true, fused_qkv: true}}\n";
    static const struct {
        const char *policy;
        int runs, products;
    } cases[] = {{"none", 1, 1},
                 {"full", 2, 2},
                 {"names, save: [q, v, attn_ctx, mlp_gate, mlp_down]", 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hb_spec spec =
            unit_spec(&u, hb_arena_printf(u.env.arena,
                                          "model:\n  d_model: 256\n  vocab: 1000\n%s"
                                          "batch: {global: 4, seq: 512}\nmesh: {fsdp: %d}\n"
                                          "hardware: {device: nvidia-h100, count: %d}\n"
                                          "compiler: torch\nremat: {policy: %s}\n",
                                          block, WAYS, WAYS, cases[i].policy));
        struct hb_program p;
        assert_true(hb_spec_supported(&u.diag, NULL, &spec));
        assert_true(hb_step_lower(u.env.arena, &u.diag, &spec, &(struct hb_rank_ask){0}, &p));
        int all = STEPS * LAYERS, runs = cases[i].runs * all;
        assert_int_equal(count_of(&p, "log-sum-exp less the sink", 4 * TOKENS * HEADS), runs);
        assert_int_equal(count_of(&p, "table of rope, by position", 4 * TOKENS * 2 * HEAD), runs);
        assert_int_equal(count_of(&p, "expert of each row", 8 * ROWS), 2 * runs);
        assert_int_equal(count_of(&p, "bias of each row", 2 * ROWS * WIDTH), 2 * runs);
        assert_int_equal(count_of(&p, "glu, clamped", 2 * ROWS * FF), runs);
        assert_int_equal(count_of(&p, "attention projected", 2 * TOKENS * WIDTH),
                         cases[i].products * all);
        assert_int_equal(count_of(&p, "tables of rope", 512 * 2 * HEAD * 4 * LAYERS), 1);
        assert_int_equal(param_bytes(&p),
                         4 * count_params(&spec) / WAYS + 512 * 2 * HEAD * 4 * LAYERS);
    }
}

/* DTensor's gradient of a table that is split by words has all of them until the update. */
static void a_tables_gradient_waits_whole(void **state)
{
    (void)state;
    enum { STEPS = 2, MICROBATCHES = 2, WORDS = 1000 };
    struct hb_spec spec =
        unit_spec(&u, "model:\n  d_model: 256\n  vocab: 1000\n  blocks:\n"
                      "    - {repeat: 2, mlp: {d_ff: 1024}, attention: {heads: 4}}\n"
                      "mesh: {tensor: 2}\nsharding: {residual_over_tensor: true}\n"
                      "batch: {global: 4, seq: 512, accumulate: 2}\nprecision: {params: bf16}\n"
                      "hardware: {device: nvidia-h100, count: 2}\ncompiler: torch\n");
    struct hb_program p;
    assert_true(hb_spec_supported(&u.diag, NULL, &spec));
    assert_true(hb_step_lower(u.env.arena, &u.diag, &spec, &(struct hb_rank_ask){0}, &p));
    assert_int_equal(count_of(&p, "gradient of the embedding", 2 * WORDS * WIDTH),
                     STEPS * MICROBATCHES);
    assert_int_equal(count_of(&p, "own part of the gradient", WORDS * WIDTH), STEPS);
}

static int joined_gathers(const char *bias)
{
    const char *block = hb_arena_printf(
        u.env.arena, "  blocks:\n    - {repeat: 3, mlp: {d_ff: 1024}, attention: {heads: 4%s}}\n",
        bias);
    struct hb_spec spec =
        unit_spec(&u, hb_arena_printf(u.env.arena,
                                      "model:\n  d_model: 256\n  vocab: 1000\n%s\nmesh: {fsdp: 4}\n"
                                      "batch: {global: 4, seq: 512}\ncompiler: torch\n"
                                      "precision: {params: bf16, master: f32, grads: params}\n"
                                      "runtime: {persist_below: 1, prefetch_bucket: 1}\n"
                                      "hardware: {device: nvidia-h100, count: 4}\n",
                                      block));
    struct hb_program p;
    int count = 0;
    assert_true(hb_spec_supported(&u.diag, NULL, &spec));
    assert_true(hb_step_lower(u.env.arena, &u.diag, &spec, &(struct hb_rank_ask){0}, &p));
    for (uint32_t i = 0; i < p.buf_count; i++)
        count += strstr(p.bufs[i].name, "gathered weights in one buffer") != NULL;
    return count;
}

/* ZeRO-3 that asks for one parameter ahead: only those of one module come together. */
static void a_bias_comes_with_its_weight(void **state)
{
    (void)state;
    assert_int_equal(joined_gathers(""), 0);
    assert_true(joined_gathers(", bias: qkv") > 0);
}

/* How often a storage of that name is made, whatever its size. */
static int times(const struct hb_program *p, const char *name)
{
    int count = 0;
    for (uint32_t i = 0; i < p->buf_count; i++) {
        const char *dot = strrchr(p->bufs[i].name, '.');
        count += strcmp(dot ? dot + 1 : p->bufs[i].name, name) == 0;
    }
    return count;
}

/* What the list names is made once, of the rest all but the layer's last product twice. Every
 * second product is torchtitan's list, not anyone's that names no product. */
static void what_is_listed_is_made_once(void **state)
{
    (void)state;
    enum { STEPS = 2, KINDS = 8 };
    static const char *const block = "  blocks:\n    - {repeat: 3, attention: {heads: 4, kv_heads: "
                                     "2, head_dim: 64}, mlp: {d_ff: 512}}\n";
    static const struct {
        const char *key, *name;
    } kinds[KINDS] = {{"q", "q"},
                      {"k", "k"},
                      {"v", "v"},
                      {"attn_ctx", "attention output"},
                      {"attn_out", "attention projected"},
                      {"mlp_gate", "mlp gate"},
                      {"mlp_up", "mlp up"},
                      {"mlp_down", "mlp down"}};
    for (uint32_t list = 0; list < 1u << KINDS; list += 3) {
        const char *names = "layer_in";
        for (int i = 0; i < KINDS; i++)
            if (list >> i & 1)
                names = hb_arena_printf(u.env.arena, "%s, %s", names, kinds[i].key);
        struct hb_program p =
            lower(block, hb_arena_printf(u.env.arena,
                                         "precision: {params: bf16}\nremat: {policy: names, "
                                         "save: [%s]}\n",
                                         names));
        for (int i = 0; i < KINDS; i++)
            assert_int_equal(times(&p, kinds[i].name),
                             STEPS * LAYERS * (list >> i & 1 || i == KINDS - 1 ? 1 : 2));
    }
}

static void lists_and_norms_not_known_are_refused(void **state)
{
    (void)state;
    static const char own[] = "remat: {policy: names, save: [q, k]}\nprecision: {params: bf16}\n";
    static const struct {
        const char *block, *more;
    } refused[] = {
        {"  blocks:\n    - {repeat: 3, attention: {heads: 4}, mlp: {d_ff: 512}}\n",
         "remat: {policy: names, save: [mlp_act]}\nprecision: {params: bf16}\n"},
        {"  blocks:\n    - {repeat: 3, attention: {heads: 4, bias: qkv}, mlp: {d_ff: 512}}\n", own},
        {"  blocks:\n    - {repeat: 3, attention: {heads: 4}, moe: {experts: 4, top_k: 2, d_ff: "
         "128}}\n",
         own},
        {"  blocks:\n    - {repeat: 3, attention: {heads: 4}, mlp: {d_ff: 512}}\n",
         "remat: {policy: names, save: [q, k]}\nprecision: {params: bf16}\n"
         "runtime: {compile: true}\n"},
        {"  blocks:\n    - {repeat: 3, attention: {heads: 4}, mlp: {d_ff: 512}}\n",
         "precision: {params: bf16}\nruntime: {compile: true, written_norm: true}\n"},
        {"  blocks:\n    - {repeat: 3, post_norm: true, attention: {heads: 4}, mlp: {d_ff: 512}}\n",
         "precision: {params: bf16}\nruntime: {written_norm: true}\n"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct hb_spec spec = read_spec(refused[i].block, refused[i].more);
        assert_false(hb_spec_supported(&u.diag, NULL, &spec));
        const char *key = strstr(refused[i].more, "written_norm") ? "written_norm" : "remat.save";
        assert_non_null(strstr(u.diag.entries[0].text, key));
        hb_diag_init(&u.diag, u.env.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_listed_is_made_once),      TEST(lists_and_norms_not_known_are_refused),
        TEST(gpt_layers_keep_masks_and_norms),  TEST(weights_are_the_models),
        TEST(latent_attention_is_put_together), TEST(sinks_and_biases_are_gpt_oss),
        TEST(a_tables_gradient_waits_whole),    TEST(a_bias_comes_with_its_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
