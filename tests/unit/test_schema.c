/* The input's reader: defaults, includes, presets, sets, what is computed, and that writing a
 * spec and reading it back changes nothing. What is refused is in test_bad_inputs.c. */
#include "tests/unit/each.h"

#include <ctype.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/yaml.h"
#include "models/schema.h"
#include "models/schema_key.h"
#include "models/support.h"

static bool read_text(const char *text, struct hb_spec *out_spec)
{
    struct hb_node *root = NULL;
    hb_diag_init(&u.diag, u.env.arena);
    return hb_yaml_parse(u.env.arena, &u.diag, "t.yaml", text, strlen(text), &root) &&
           hb_schema_from_node(u.env.arena, &u.diag, root, HB_SOURCE_DIR, out_spec);
}

/* Reads text, which has no fault. */
static struct hb_spec spec_of(const char *text)
{
    struct hb_spec spec = {0};
    if (!read_text(text, &spec)) {
        hb_diag_print(&u.diag, stderr);
        fail_msg("refused: %s", text);
    }
    return spec;
}

#define SMALL                                                                                      \
    "model:\n  d_model: 64\n  vocab: 128\n  blocks:\n"                                             \
    "    - {repeat: 4, attention: {heads: 8}, mlp: {d_ff: 256}}\n"                                 \
    "    - {repeat: 2, unit: 2, attention: {heads: 4, kv_heads: 2, window: [16, 0]},\n"            \
    "       moe: {experts: 8, top_k: 2, d_ff: 32, shared_experts: 2}}\n"

static void fills_defaults(void **state)
{
    (void)state;
    struct hb_spec s = spec_of(SMALL);
    assert_int_equal(s.batch.global, 64);
    assert_int_equal(s.batch.seq, 8192);
    assert_int_equal(s.batch.accumulate, 1);
    assert_int_equal(s.mesh[HB_AX_FSDP], 8);
    assert_int_equal(s.hardware.count, 8);
    assert_string_equal(s.hardware.device, "tpu-v5p");
    assert_int_equal(s.hardware.reserve_bytes, -1);
    assert_int_equal(s.compiler, HB_XLA_TPU);
    assert_int_equal(s.precision.params, HB_DT_F32);
    assert_int_equal(s.precision.compute, HB_DT_BF16);
    assert_true(s.precision.norm_f32);
    assert_int_equal(s.optimizer.moment_count, 2);
    assert_int_equal(s.optimizer.moments[1], HB_DT_F32);
    assert_int_equal(s.pipeline.iteration_save, 1u << HB_TN_LAYER_IN);
    assert_int_equal(s.pipeline.rank, -1);
    assert_int_equal(s.sharding.expert_tensor, 1);
    assert_true(s.sharding.vocab_over_tensor && s.sharding.router_over_expert);
    assert_true(s.step.donate && !s.step.cast_upfront);
    assert_false(s.load.present || s.plan.present);
    const struct hb_block *b = s.model.blocks;
    assert_string_equal(b[0].name, "dense");
    assert_int_equal(b[0].attention.kv_heads, 8);
    assert_int_equal(b[0].attention.head_dim, 8);
    assert_int_equal(b[0].attention.window_count, 1);
    assert_int_equal(b[0].attention.windows[0], 0);
    assert_int_equal(b[0].moe.experts, 0);
    assert_int_equal(b[0].remat.policy, HB_POLICY_FULL);
    assert_string_equal(b[1].name, "moe");
    assert_int_equal(b[1].attention.head_dim, 16);
    assert_int_equal(b[1].attention.windows[0], 16);
    assert_int_equal(b[1].moe.shared_d_ff, 64);
    assert_true(b[1].moe.capacity_factor == 1.25);
}

static void computes_from_other_keys(void **state)
{
    (void)state;
    struct hb_spec s = spec_of(SMALL "mesh: {data: 2, tensor: 4}\nbatch: {seq: 1024}\n"
                                     "optimizer: {name: lion}\n");
    assert_int_equal(s.mesh[HB_AX_FSDP], 1);
    assert_int_equal(s.hardware.count, 8);
    assert_int_equal(s.sharding.expert_tensor, 4);
    assert_int_equal(s.optimizer.moment_count, 1);
    s = spec_of(SMALL "hardware: {count: 32}\n");
    assert_int_equal(s.mesh[HB_AX_FSDP], 32);
    s = spec_of("model:\n  d_model: 64\n  vocab: 8\n  blocks:\n"
                "    - {repeat: 1, attention: {kind: mla, heads: 4, kv_lora_rank: 16,"
                " qk_nope_head_dim: 8, qk_rope_head_dim: 4, v_head_dim: 8}, mlp: {d_ff: 8}}\n"
                "    - {repeat: 1, attention: {heads: 4}, mlp: {d_ff: 8}}\n");
    assert_int_equal(s.model.blocks[0].attention.head_dim, 12);
    assert_int_equal(s.model.blocks[0].attention.kv_heads, 4);
    assert_string_equal(s.model.blocks[1].name, "dense2");
}

/* Refuses text with this message. */
static void refuses(const char *text, const char *says)
{
    struct hb_spec spec;
    assert_false(read_text(text, &spec));
    const char *got = u.diag.entries[0].text;
    if (strcmp(got, says) != 0)
        fail_msg("wanted '%s', got '%s'", says, got);
    assert_true(u.diag.entries[0].loc.line > 0 && u.diag.entries[0].loc.column > 1);
}

static void the_compiler_is_the_devices(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum hb_compiler compiler;
        const char *device;
    } cases[] = {
        {SMALL, HB_XLA_TPU, "tpu-v5p"},
        {SMALL "hardware: {device: v6e}\n", HB_XLA_TPU, "tpu-v6e"},
        {SMALL "hardware: {device: h100}\n", HB_XLA_GPU, "nvidia-h100"},
        {SMALL "hardware: {device: amd-mi300x}\n", HB_XLA_GPU, "amd-mi300x"},
        {SMALL "hardware: {device: mi300x}\ncompiler: torch\n", HB_TORCH, "amd-mi300x"},
        {SMALL "hardware: {device: " HB_SOURCE_DIR "/hw/db/nvidia-b200.yaml}\n", HB_XLA_GPU,
         HB_SOURCE_DIR "/hw/db/nvidia-b200.yaml"},
        {SMALL "hardware: {device: h100}\ncompiler: xla-tpu\nforce_compiler: true\n", HB_XLA_TPU,
         "nvidia-h100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hb_spec s = spec_of(cases[i].text);
        assert_int_equal(s.compiler, cases[i].compiler);
        assert_string_equal(s.hardware.device, cases[i].device);
    }
}

static void another_devices_compiler_is_refused(void **state)
{
    (void)state;
    refuses(SMALL "hardware: {device: h100}\ncompiler: xla-tpu\n",
            "compiler: xla-tpu does not compile for hardware.device: nvidia-h100; allowed: "
            "xla-gpu, torch, or force_compiler: true to simulate it all the same; without compiler "
            "it follows the device");
    refuses(SMALL "compiler: xla-gpu\n",
            "compiler: xla-gpu does not compile for hardware.device: tpu-v5p (the default); "
            "allowed: xla-tpu, or force_compiler: true to simulate it all the same; without "
            "compiler it follows the device");
    refuses(SMALL "hardware: {device: " HB_SOURCE_DIR "/hw/db/tpu-v4.yaml}\ncompiler: torch\n",
            "compiler: torch does not compile for hardware.device: " HB_SOURCE_DIR
            "/hw/db/tpu-v4.yaml; allowed: xla-tpu, or force_compiler: true to simulate it all the "
            "same; without compiler it follows the device");
    refuses(SMALL "hardware: {device: h10}\n",
            "hardware.device: there is no device 'h10'; did you mean 'nvidia-h100'?");
}

static void reads_each_kind_of_value(void **state)
{
    (void)state;
    struct hb_spec s =
        spec_of(SMALL "hardware: {hbm: 95GiB, reserve: 1.5 MiB, device: ./my.yaml}\n"
                      "remat: {policy: names, save: [q, attn_ctx], offload: [layer_in]}\n"
                      "precision: {master: f32, norm: compute}\n"
                      "optimizer: {moments: [bf16, q8]}\n"
                      "step: {cast: upfront, donate: false}\n"
                      "loss: {softcap: 30}\n"
                      "load: {method: device_put, processes: 64, largest_array: 1GiB}\n"
                      "pipeline: {rank: 0, iteration_save: []}\n");
    assert_int_equal(s.hardware.hbm_bytes, 95LL << 30);
    assert_int_equal(s.hardware.reserve_bytes, 3 << 19);
    assert_string_equal(s.hardware.device, "./my.yaml");
    assert_int_equal(s.model.blocks[1].remat.save, 1u << HB_TN_Q | 1u << HB_TN_ATTN_CTX);
    assert_int_equal(s.model.blocks[0].remat.offload, 1u << HB_TN_LAYER_IN);
    assert_true(s.precision.master && !s.precision.norm_f32);
    assert_int_equal(s.optimizer.moments[0], HB_DT_BF16);
    assert_int_equal(s.optimizer.moments[1], HB_DT_Q8);
    assert_true(s.step.cast_upfront && !s.step.donate);
    assert_true(s.loss.softcap == 30);
    assert_true(s.load.present);
    assert_int_equal(s.load.largest_array, 1 << 30);
    assert_int_equal(s.pipeline.rank, 0);
    assert_int_equal(s.pipeline.iteration_save, 0);
}

static void reads_per_block_remat(void **state)
{
    (void)state;
    struct hb_spec s = spec_of(SMALL "remat:\n  policy: names\n  save: [q]\n  per_block:\n"
                                     "    dense: {offload: [k]}\n    moe: {policy: dots}\n");
    const struct hb_remat *dense = &s.model.blocks[0].remat;
    const struct hb_remat *moe = &s.model.blocks[1].remat;
    assert_int_equal(dense->policy, HB_POLICY_NAMES);
    assert_int_equal(dense->save, 1u << HB_TN_Q);
    assert_int_equal(dense->offload, 1u << HB_TN_K);
    assert_int_equal(moe->policy, HB_POLICY_DOTS);
    assert_int_equal(moe->save, 0);
    assert_int_equal(s.remat.all.save, 1u << HB_TN_Q);
}

static void reads_the_plan(void **state)
{
    (void)state;
    struct hb_spec s = spec_of(
        SMALL "plan:\n  search:\n    mesh: [data, tensor]\n    remat: true\n"
              "    stack: [scan, nested]\n    optimizer_offload: [none, pinned_host]\n"
              "    batch: {global: [64, 128], accumulate: [1, 2]}\n    loss_chunks: [1, 8]\n"
              "  keep: {tensor_max: 8, min_tokens_per_device: 1024}\n  objective: memory\n");
    assert_true(s.plan.present && s.plan.remat);
    assert_int_equal(s.plan.mesh_axes, 1u << HB_AX_DATA | 1u << HB_AX_TENSOR);
    assert_int_equal(s.plan.stack_forms, 1u << HB_FORM_SCAN | 1u << HB_FORM_NESTED);
    assert_int_equal(s.plan.batch_global_count, 2);
    assert_int_equal(s.plan.batch_global[1], 128);
    assert_int_equal(s.plan.loss_chunks[1], 8);
    assert_int_equal(s.plan.axis_max[HB_AX_TENSOR], 8);
    assert_int_equal(s.plan.min_tokens_per_device, 1024);
    assert_int_equal(s.plan.objective, HB_OBJ_MEMORY);
    s = spec_of(SMALL "plan: {search: {mesh: [{fsdp: 8}, {data: 2, tensor: 4}]}}\n");
    assert_int_equal(s.plan.mesh_count, 2);
    assert_int_equal(s.plan.meshes[0][HB_AX_FSDP], 8);
    assert_int_equal(s.plan.meshes[1][HB_AX_FSDP], 1);
    assert_int_equal(s.plan.meshes[1][HB_AX_TENSOR], 4);
    s = spec_of(SMALL "plan: {objective: devices}\n");
    assert_false(s.plan.present);
}

static void overrides_a_preset(void **state)
{
    (void)state;
    struct hb_spec s = spec_of("model: {preset: llama3-8b, vocab: 1024}\n");
    assert_string_equal(s.model.name, "llama3-8b");
    assert_int_equal(s.model.d_model, 4096);
    assert_int_equal(s.model.vocab, 1024);
    assert_int_equal(s.model.blocks[0].repeat, 32);
    s = spec_of("model: {preset: llama3-8b, blocks: [{repeat: 2, attention: {heads: 16},"
                " mlp: {d_ff: 64}}]}\n");
    assert_int_equal(s.model.block_count, 1);
    assert_int_equal(s.model.blocks[0].attention.kv_heads, 16);
}

/* ---- files */

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void includes_and_sets(void **state)
{
    (void)state;
    char folder[] = "/tmp/hbmsim-test-XXXXXX";
    struct hb_arena *arena = u.env.arena;
    assert_non_null(mkdtemp(folder));
    const char *run = hb_arena_printf(arena, "%s/run.yaml", folder);
    const char *cards = hb_arena_printf(arena, "%s/cards", folder);
    const char *card = hb_arena_printf(arena, "%s/card.yaml", cards);
    const char *base = hb_arena_printf(arena, "%s/base.yaml", cards);
    assert_int_equal(mkdir(cards, 0700), 0);
    write_file(base, "batch: {seq: 512, global: 8}\nstack: {form: loop}\n");
    write_file(card, "include: ./base.yaml\n" SMALL "batch: {global: 32}\n");
    write_file(run,
               "include: cards/../cards/card.yaml\nbatch: {accumulate: 2}\nmodel: {name: x}\n");
    const char *const sets[] = {"batch.global=16",
                                "model.blocks[0].repeat=6",
                                "blocks.1.moe={experts: 4, top_k: 1, d_ff: 16}",
                                "remat.per_block.dense.policy=none",
                                "hardware.device='a=b.c/d'",
                                "loss.chunks = 4"};
    struct hb_schema_source source = {
        arena,         &u.diag, run,   sets, sizeof sets / sizeof sets[0],
        HB_SOURCE_DIR, NULL,    false, NULL, NULL};
    struct hb_spec s;
    assert_false(hb_schema_read(&source, &s)); /* the blank in "loss.chunks " is no key */
    hb_diag_init(&u.diag, arena);
    source.set_count--;
    bool ok = hb_schema_read(&source, &s);
    hb_diag_print(&u.diag, stderr);
    assert_true(ok);
    assert_int_equal(s.batch.seq, 512);
    assert_int_equal(s.batch.global, 16);
    assert_int_equal(s.batch.accumulate, 2);
    assert_int_equal(s.stack.form, HB_FORM_LOOP);
    assert_string_equal(s.model.name, "x");
    assert_int_equal(s.model.blocks[0].repeat, 6);
    assert_int_equal(s.model.blocks[0].remat.policy, HB_POLICY_NONE);
    assert_int_equal(s.model.blocks[1].moe.experts, 4);
    assert_int_equal(s.model.blocks[1].moe.shared_experts, 0);
    assert_string_equal(s.hardware.device, "a=b.c/d");
    const char *const paths[] = {run, card, base, cards, folder};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_int_equal(remove(paths[i]), 0);
}

/* A loaded tree can be varied and read again and again. */
static void varies_a_tree(void **state)
{
    (void)state;
    struct hb_arena *arena = u.env.arena;
    const char *const sets[] = {"model.preset=llama3-8b", "batch.global=8"};
    struct hb_schema_source source = {arena, &u.diag, HB_SOURCE_DIR "/tests/cli/bad/base/good.yaml",
                                      sets,  2,       HB_SOURCE_DIR,
                                      NULL,  false,   NULL,
                                      NULL};
    struct hb_node *root = NULL;
    assert_true(hb_schema_load(&source, &root));
    for (int64_t n = 8; n <= 64; n *= 2) {
        struct hb_spec s;
        assert_true(
            hb_schema_set(arena, &u.diag, root, hb_arena_printf(arena, "batch.global=%d", (int)n)));
        assert_true(hb_schema_from_node(arena, &u.diag, root, HB_SOURCE_DIR, &s));
        assert_int_equal(s.batch.global, n);
        assert_int_equal(s.model.d_model, 64); /* the file's own keys are stronger than a card */
    }
}

/* ---- writing */

static const char *full_json(const struct hb_spec *spec)
{
    struct hb_str s;
    hb_str_init(&s, u.env.arena);
    hb_schema_emit_json(&s, spec, true);
    return s.text;
}

static void expect_same(const struct hb_spec *spec)
{
    const char *wanted = full_json(spec);
    for (int full = 0; full < 2; full++) {
        struct hb_str yaml;
        struct hb_str json;
        hb_str_init(&yaml, u.env.arena);
        hb_str_init(&json, u.env.arena);
        hb_schema_emit_yaml(&yaml, spec, full);
        hb_schema_emit_json(&json, spec, full);
        struct hb_spec from_yaml = spec_of(yaml.text);
        struct hb_spec from_json = spec_of(json.text);
        assert_string_equal(full_json(&from_yaml), wanted);
        assert_string_equal(full_json(&from_json), wanted);
    }
}

static const char rich[] =
    SMALL "precision: {params: bf16, master: f32, grads: f32, fp8: mxfp8, fp8_gather: true}\n"
          "batch: {global: 32, seq: 2048, accumulate: 2}\n"
          "optimizer: {name: muon, others: adamw, offload: pinned_host, ema: device}\n"
          "mesh: {data: 2, fsdp: 2, tensor: 2, expert: 2}\n"
          "sharding: {expert_tensor: 1, norms: fsdp, sequence_kind: all_gather}\n"
          "stack: {form: nested, outer: 1}\n"
          "remat:\n  policy: names\n  save: [q, k]\n  per_block: {moe: {policy: dots_no_batch}}\n"
          "loss: {chunks: 4, softcap: 0.1, chunk_over: tokens, kernel: fused}\n"
          "pipeline: {rank: 0, layers: even, iteration_save: [iter_in]}\n"
          "load: {}\n"
          "hardware: {device: h100, hbm: 95GiB, reserve: 1GiB}\n"
          "compiler: xla-gpu\n"
          "plan: {search: {mesh: [{fsdp: 8}], batch: {global: [1, 2]}}, keep: {data_max: 4}}\n";

static void writes_what_it_reads(void **state)
{
    (void)state;
    static const char *const texts[] = {
        SMALL,
        rich,
        "model: {preset: deepseek-v3, mtp: 1}\nmesh: {expert: 8}\n",
        "model: {preset: gemma2-9b, name: 'a: b #\"x\"'}\ncompiler: torch\nhardware: {device: "
        "b200}\n",
        SMALL "mesh: {pipeline: 2}\npipeline: {schedule: 1f1b, layers: [4, 2]}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct hb_spec spec = spec_of(texts[i]);
        expect_same(&spec);
    }
}

/* A spec that a program changed, as the planner does. */
static void writes_own_remat_of_blocks(void **state)
{
    (void)state;
    struct hb_spec spec = spec_of(SMALL);
    struct hb_block blocks[2] = {spec.model.blocks[0], spec.model.blocks[1]};
    blocks[1].remat = (struct hb_remat){HB_POLICY_NAMES, 1u << HB_TN_Q, 1u << HB_TN_MOE_OUT};
    spec.model.blocks = blocks;
    assert_true(hb_schema_check(u.env.arena, &u.diag, NULL, &spec));
    expect_same(&spec);
    blocks[1].remat.offload |= 1u << HB_TN_Q;
    assert_false(hb_schema_check(u.env.arena, &u.diag, NULL, &spec));
    assert_string_equal(u.diag.entries[0].text, "remat.per_block.moe.offload: 'q' is listed under "
                                                "save as well; allowed: one of the two");
}

static void copy_keys(enum hb_section_id id, struct hb_block *to, const struct hb_block *from)
{
    for (int i = 0; i < hb_section(id)->key_count; i++) {
        const struct hb_key *k = &hb_section(id)->keys[i];
        if (k->kind == HB_KEY_SECTION)
            copy_keys(k->section, to, from);
        else if (k->offset != HB_KEY_NOWHERE)
            memcpy((char *)to + k->offset, (const char *)from + k->offset, k->size_bytes);
    }
}

static void expect_told_apart(enum hb_section_id id, const struct hb_block *block)
{
    for (int i = 0; i < hb_section(id)->key_count; i++) {
        const struct hb_key *k = &hb_section(id)->keys[i];
        struct hb_block other = *block;
        if (k->kind == HB_KEY_SECTION)
            expect_told_apart(k->section, block);
        if (k->kind == HB_KEY_SECTION || k->offset == HB_KEY_NOWHERE)
            continue;
        ((char *)&other)[k->offset] ^= 1;
        assert_false(hb_schema_same_block(block, &other));
    }
}

/* By their keys: what stands between fields is nothing. */
static void compares_blocks(void **state)
{
    (void)state;
    struct hb_spec spec = spec_of(SMALL);
    const struct hb_block *a = &spec.model.blocks[1];
    struct hb_block b;
    memset(&b, 0xff, sizeof b);
    copy_keys(HB_SEC_BLOCK, &b, a);
    b.remat = a->remat;
    b.attention.window_count = a->attention.window_count;
    assert_true(hb_schema_same_block(a, &b));
    expect_told_apart(HB_SEC_BLOCK, a);
    b.attention.window_count++;
    assert_false(hb_schema_same_block(a, &b));
    b.attention.window_count--;
    b.remat.save ^= 1;
    assert_false(hb_schema_same_block(a, &b));
}

/* The compact form says nothing that the reader would say itself. */
static void writes_short_files(void **state)
{
    (void)state;
    struct hb_spec spec = spec_of(SMALL);
    struct hb_str s;
    hb_str_init(&s, u.env.arena);
    hb_schema_emit_yaml(&s, &spec, false);
    assert_string_equal(
        s.text, "hbmsim: 1\n"
                "model:\n"
                "  d_model: 64\n"
                "  vocab: 128\n"
                "  blocks:\n"
                "    - name: dense\n"
                "      repeat: 4\n"
                "      attention: {heads: 8, kv_heads: 8, head_dim: 8}\n"
                "      mlp: {d_ff: 256}\n"
                "    - name: moe\n"
                "      repeat: 2\n"
                "      unit: 2\n"
                "      attention: {heads: 4, kv_heads: 2, head_dim: 16, window: [16, 0]}\n"
                "      moe: {experts: 8, top_k: 2, d_ff: 32, shared_experts: 2, shared_d_ff: 64}\n"
                "optimizer: {moments: [f32, f32]}\n"
                "mesh: {fsdp: 8}\n"
                "hardware: {count: 8}\n"
                "compiler: xla-tpu\n");
}

/* ---- the table itself */

struct path_list {
    int count;
    bool documented;
    const char *help;
};

static void visit_path(void *context, const char *path)
{
    struct path_list *list = context;
    const char *dot = strrchr(path, '.');
    list->count++;
    if (!strstr(list->help, hb_arena_printf(u.env.arena, "\n  %s ", dot ? dot + 1 : path)))
        list->documented = false;
}

static void describes_every_key(void **state)
{
    (void)state;
    const char *nearest = NULL;
    assert_true(hb_schema_help(u.env.out, u.env.arena, NULL, &nearest));
    struct path_list list = {0, true, unit_out(&u)};
    hb_schema_each_key(visit_path, &list);
    assert_true(list.count > 150);
    assert_true(list.documented);
    assert_false(hb_schema_help(u.env.out, u.env.arena, "bacth", &nearest));
    assert_string_equal(nearest, "batch");
    assert_true(hb_schema_help(u.env.out, u.env.arena, "moe", &nearest));
}

static void check_row(const struct hb_section *s, const struct hb_key *k)
{
    assert_true(k->doc && k->doc[0] && k->low <= k->high);
    for (const struct hb_key *other = s->keys; other < k; other++)
        assert_string_not_equal(k->name, other->name);
    for (const struct hb_word *w = k->words; w && w->text; w++)
        for (const struct hb_word *v = k->words; v != w; v++)
            assert_true(v->value != w->value && strcmp(v->text, w->text) != 0);
}

/* Names once a section, ranges the right way round, words told apart. */
static void has_a_sound_table(void **state)
{
    (void)state;
    for (int id = 0; id < HB_SEC_COUNT; id++) {
        const struct hb_section *s = hb_section((enum hb_section_id)id);
        assert_true(s->key_count > 0 && s->key_count < 64);
        for (int i = 0; i < s->key_count; i++)
            check_row(s, &s->keys[i]);
    }
}

/* ---- what is not simulated yet */

static void refuses_what_is_not_simulated(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", NULL},
        {"compiler: torch\nhardware: {device: nvidia-h100}\n", NULL},
        {"compiler: torch\nhardware: {device: nvidia-h100}\nremat: {policy: dots}\n",
         "compiler: torch: remat.policy: dots is of XLA; use none, full or names"},
        {"precision: {fp8: rowwise}\n", NULL},
        {"precision: {fp8: mxfp8}\n",
         "precision.fp8: only tensorwise and rowwise are simulated but with compiler: torch; use "
         "one of them, or none"},
        {"precision: {fp8: rowwise, fp8_gather: true}\n",
         "precision.fp8_gather: goes with fp8: tensorwise, one scale for all; use it, or false"},
        {"precision: {fp8: rowwise}\nhardware: {device: nvidia-h100}\n",
         "precision.fp8: not simulated for xla-gpu yet; use fp8: none"},
        {"loss: {kernel: fused}\n", "loss.kernel: only eager is simulated yet; use kernel: eager"},
        {"stack: {form: nested, unroll: 2}\n",
         "stack.unroll: of nested scans only unroll: 1 is simulated yet; use that, or form: scan"},
        {"mesh: {pipeline: 2}\npipeline: {schedule: gpipe}\n",
         "pipeline.schedule: only spmd is simulated yet, no gpipe, 1f1b, interleaved or "
         "zero_bubble; use spmd, or mesh.pipeline 1"},
        {"pipeline: {schedule: gpipe}\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct hb_spec s = spec_of(hb_arena_printf(u.env.arena, "%s%s", SMALL, cases[i].text));
        hb_diag_init(&u.diag, u.env.arena);
        bool ok = hb_spec_supported(&u.diag, NULL, &s);
        assert_int_equal(ok, cases[i].message == NULL);
        if (cases[i].message)
            assert_string_equal(u.diag.entries[0].text, cases[i].message);
    }
    struct hb_spec s = spec_of("model: {preset: deepseek-v3, mtp: 1}\n");
    hb_diag_init(&u.diag, u.env.arena);
    assert_true(hb_spec_supported(&u.diag, NULL, &s));
    s.mesh[HB_AX_PIPELINE] = 2;
    assert_false(hb_spec_supported(&u.diag, NULL, &s));
    assert_string_equal(u.diag.entries[0].text, "model.mtp: not simulated beside a pipeline yet; "
                                                "use mtp: 0, or mesh.pipeline: 1");
}

/* ---- robustness */

/* Other digits and random bytes in a valid file: refused with a message, or accepted. */
static void survives_mutation(void **state)
{
    (void)state;
    struct hb_rng rng = hb_rng_seed(3);
    int64_t last = (int64_t)sizeof rich - 2;
    int accepted = 0;
    for (int i = 0; i < 2000; i++) {
        struct hb_arena_mark mark = hb_arena_mark(u.env.arena);
        char *text = hb_arena_strndup(u.env.arena, rich, sizeof rich - 1);
        for (int64_t k = hb_rng_range(&rng, 1, 3); k > 0; k--) {
            char *at = &text[hb_rng_range(&rng, 0, last)];
            while (i % 2 && !isdigit((unsigned char)*at))
                at = &text[hb_rng_range(&rng, 0, last)];
            *at = (char)(i % 2 ? hb_rng_range(&rng, '0', '9') : hb_rng_range(&rng, 0, 255));
        }
        struct hb_spec spec;
        bool ok = read_text(text, &spec);
        assert_int_equal(ok, u.diag.errors == 0);
        if (ok) {
            accepted++;
            full_json(&spec);
        }
        hb_arena_rewind(u.env.arena, mark);
    }
    assert_in_range(accepted, 50, 1950);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fills_defaults),
        TEST(computes_from_other_keys),
        TEST(reads_each_kind_of_value),
        TEST(reads_per_block_remat),
        TEST(reads_the_plan),
        TEST(overrides_a_preset),
        TEST(includes_and_sets),
        TEST(varies_a_tree),
        TEST(writes_what_it_reads),
        TEST(writes_own_remat_of_blocks),
        TEST(compares_blocks),
        TEST(writes_short_files),
        TEST(describes_every_key),
        TEST(has_a_sound_table),
        TEST(refuses_what_is_not_simulated),
        TEST(survives_mutation),
        TEST(the_compiler_is_the_devices),
        TEST(another_devices_compiler_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
