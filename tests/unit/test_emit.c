/* What emit writes, and what is read back of it: steps of many kinds, each with the words that
 * must stand in its file, and the keys that these words lose. Whole plans are emitted by tests/cli,
 * published files read by test_import.c. */
#include "tests/unit/unit.h"

#include "base/str.h"
#include "base/yaml.h"
#include "models/emit.h"
#include "models/schema.h"

#define ATTENTION     "attention: {heads: 8, kv_heads: 4}"
#define DENSE         "{name: a, repeat: 4, " ATTENTION ", mlp: {d_ff: 2048}}"
#define EXPERTS       "{name: e, repeat: 4, " ATTENTION ", moe: {experts: 8, top_k: 2, d_ff: 512}}"
#define MODEL(blocks) "model: {name: own, d_model: 512, vocab: 32000, blocks: [" blocks "]}\n"
#define RUN                                                                                        \
    "batch: {global: 64, seq: 2048}\nmesh: {fsdp: 8}\n"                                            \
    "hardware: {device: h100, count: 8}\n"
#define LLAMA "model: {preset: llama3-8b}\n"
#define RUN8  "batch: {global: 64, seq: 2048}\nhardware: {device: h100, count: 8}\n"
#define PIPE                                                                                       \
    "batch: {global: 64, seq: 2048}\nmesh: {fsdp: 4, pipeline: 2}\nhardware: {device: h100, "      \
    "count: 8}\n"
#define TPU   "batch: {global: 64, seq: 2048}\nmesh: {fsdp: 8}\nhardware: {device: v5p, count: 8}\n"
#define TORCH RUN "compiler: torch\n"
#define TORCHTP                                                                                    \
    "batch: {global: 64, seq: 2048}\nmesh: {fsdp: 4, tensor: 2}\nhardware: {device: h100, count: " \
    "8}\ncompiler: torch\n"

/* What these programs do whatever they are told, where the step does otherwise. */
#define PIPELINE_HABITS                                                                            \
    "sharding.ends_over_pipeline pipeline.shift pipeline.constraints pipeline.outputs "
#define TORCH_HABITS "precision.grads stack.form loss.dot runtime.framework "

struct row {
    enum hb_emit what;
    const char *yaml;
    const char *says[5]; /* lines, whole */
    const char *lost;    /* keys that come back otherwise, a blank behind each */
};

static const struct row rows[] = {
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 2, attention: {kind: mla, heads: 8, q_lora_rank: 64, kv_lora_rank: "
           "32, qk_nope_head_dim: 32, qk_rope_head_dim: 16, v_head_dim: 32}, mlp: {d_ff: 2048}}")
         RUN,
     {"decoder_block=deepseek", "attention_type=mla", "q_lora_rank=64", "kv_lora_rank=32",
      "v_head_dim=32"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, qk_norm: l2, window: [1024, "
           "1024, 1024, 0]}, unit: 4, mlp: {d_ff: 2048}}") RUN,
     {"decoder_block=llama4", "chunk_attn_window_size=1024"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: e, repeat: 4, unit: 2, attention: {heads: 8, kv_heads: 4, sinks: true, bias: "
           "true, window: [128, 0]}, moe: {experts: 8, top_k: 2, d_ff: 512, bias: true, "
           "router_bias: true}}") RUN,
     {"decoder_block=gpt_oss", "attention_sink=true", "attention_bias=true",
      "sliding_window_size=128", "num_experts=8"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: e, repeat: 4, attention: {heads: 8, kv_heads: 4, qk_norm: true}, moe: {experts: "
           "8, top_k: 2, d_ff: 512}}") RUN,
     {"decoder_block=qwen3_moe", "base_moe_mlp_dim=512", "num_experts_per_tok=2",
      "use_qk_norm=true"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL(EXPERTS) RUN,
     {"decoder_block=mixtral", "sparse_matmul=true", "megablox=true"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, unit: 4, attention: {heads: 8, kv_heads: 4, qk_norm: true, "
           "window: [1024, 1024, 1024, 0]}, mlp: {d_ff: 2048}}") RUN,
     {"decoder_block=olmo3"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, qk_norm: true}, mlp: {d_ff: "
           "2048}}") RUN,
     {"decoder_block=qwen3"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, bias: qkv}, mlp: {d_ff: 2048}}")
         RUN,
     {"decoder_block=qwen2", "attention_bias=true"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL(
         "{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4}, mlp: {d_ff: 2048, kind: relu2}}")
         RUN,
     {"mlp_activations=[relu2]"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL(
         "{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, window: 512}, mlp: {d_ff: 2048}}")
         RUN,
     {"attention_type=local_sliding", "sliding_window_size=512"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, unit: 2, post_norm: true, attention: {heads: 8, kv_heads: 4, "
           "window: [512, 0], softcap: 50}, mlp: {d_ff: 2048, kind: geglu}}") RUN
     "loss: {softcap: 30}\n",
     {"decoder_block=gemma2", "base_num_decoder_layers=2", "attn_logits_soft_cap=50",
      "final_logits_soft_cap=30", "use_post_attn_norm=true"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, norm: layernorm, attention: {heads: 8, bias: true, rope: false}, "
           "mlp: {d_ff: "
           "2048, kind: gelu, bias: true}}") RUN,
     {"decoder_block=gpt3"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: d, repeat: 1, attention: {kind: mla, heads: 8, q_lora_rank: 64, kv_lora_rank: "
           "32, qk_nope_head_dim: 32, qk_rope_head_dim: 16, v_head_dim: 32}, mlp: {d_ff: 2048}}, "
           "{name: e, repeat: 3, attention: {kind: mla, heads: 8, q_lora_rank: 64, kv_lora_rank: "
           "32, qk_nope_head_dim: 32, qk_rope_head_dim: 16, v_head_dim: 32}, moe: {experts: 8, "
           "top_k: 2, d_ff: 512, shared_experts: 1}}") RUN,
     {"first_num_dense_layers=1", "shared_experts=1", "routed_bias=false"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, kernel: naive, softmax: bf16}, "
           "mlp: {d_ff: 2048}}") RUN,
     {"attention=dot_product", "float32_logits=false"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, flash: tokamax, "
           "fused_backward: true}, mlp: {d_ff: 2048}}") RUN,
     {"use_tokamax_splash=true", "sa_use_fused_bwd_kernel=true"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, flash: tokamax, "
           "dq_parts: 3}, mlp: {d_ff: 2048}}") RUN,
     {"dq_reduction_steps=3"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, fused_backward: true, "
           "dq_parts: 2}, mlp: {d_ff: 2048}}") RUN,
     {"sa_block_kv_dkv=1024"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: e, repeat: 4, " ATTENTION ", moe: {experts: 8, top_k: 2, d_ff: 512, dispatch: "
           "einsum, capacity_factor: 2, router_dtype: bf16}}") RUN,
     {"sparse_matmul=false", "capacity_factor=2", "float32_gate_logits=false"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: e, repeat: 4, " ATTENTION
           ", moe: {experts: 8, top_k: 2, d_ff: 512, kernel: ragged_dot, buffer_factor: 2}}") RUN,
     {"megablox=false", "ragged_buffer_factor=2"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL("{name: e, repeat: 4, " ATTENTION
           ", moe: {experts: 8, top_k: 2, d_ff: 512, kernel: tokamax}}") RUN,
     {"use_tokamax_gmm=true"},
     ""},
    {HB_EMIT_MAXTEXT, MODEL(DENSE) RUN "remat: {policy: none}\n", {"remat_policy=none"}, ""},
    {HB_EMIT_MAXTEXT,
     MODEL(DENSE) RUN "remat: {policy: dots}\n",
     {"remat_policy=minimal"},
     "remat.policy remat.save "},
    {HB_EMIT_MAXTEXT,
     MODEL(DENSE) RUN "remat: {policy: names, save: [q], offload: [mlp_up]}\n",
     {"remat_policy=custom", "query_proj=device"},
     "remat.save "},
    {HB_EMIT_MAXTEXT,
     MODEL(DENSE) RUN "remat: {policy: names, save: [mlp_act]}\n",
     {"# cannot be said: mlp_act is kept; MaxText has no name for it"},
     "remat.save "},
    {HB_EMIT_MAXTEXT,
     MODEL(DENSE) RUN "stack: {form: nested}\n",
     {"# cannot be said: nested scans; MaxText scans once over the layers"},
     "stack.form "},
    {HB_EMIT_MAXTEXT, MODEL(DENSE) RUN "stack: {form: loop}\n", {"scan_layers=false"}, ""},
    {HB_EMIT_MAXTEXT,
     MODEL(DENSE ", {name: b, repeat: 2, " ATTENTION ", mlp: {d_ff: 2048}}") RUN
     "remat: {policy: full, per_block: {b: {policy: none}}}\n",
     {"# cannot be said: the 2 layers of 'b' have another policy; MaxText has one for all"},
     "model.blocks remat.per_block "},
    {HB_EMIT_MAXTEXT,
     MODEL(DENSE) RUN "optimizer: {name: lion, clip: true, params_offload: pinned_host}\n",
     {"# cannot be said: this optimizer", "gradient_clipping_threshold=1.0",
      "parameter_memory_host_offload=true"},
     "optimizer.name optimizer.moments "},
    {HB_EMIT_MAXTEXT,
     MODEL(DENSE) RUN "optimizer: {name: sgd}\nprecision: {params: bf16, compute: f16}\n",
     {"opt_type=sgd", "weight_dtype=bfloat16", "dtype=float16", "grad_dtype=bfloat16"},
     ""},
    {HB_EMIT_MAXTEXT,
     MODEL(DENSE) PIPE
     "pipeline: {microbatches: 8, repeats: 2, gather: once, delay: true, unroll: true}\n",
     {"pipeline_fsdp_ag_once=true", "pipeline_delay_activation_forwarding=true",
      "scan_pipeline_iterations=false", "num_pipeline_repeats=2",
      "num_layers_per_pipeline_stage=1"},
     PIPELINE_HABITS},
    {HB_EMIT_MAXTEXT,
     MODEL(DENSE) PIPE "pipeline: {microbatches: 8, gather: repeat}\n",
     {"pipeline_fsdp_ag_per_repeat=true"},
     PIPELINE_HABITS},
    {HB_EMIT_MAXTEXT, MODEL(DENSE) TPU, {"hardware=tpu", "compile_topology=v5p-16"}, ""},
    {HB_EMIT_LEVANTER,
     MODEL(DENSE) RUN "remat: {policy: none}\n",
     {"  gradient_checkpointing: false"},
     ""},
    {HB_EMIT_LEVANTER,
     MODEL(DENSE) RUN "remat: {policy: dots}\n",
     {"  gradient_checkpointing: save_all"},
     "remat.policy "},
    {HB_EMIT_LEVANTER,
     MODEL(DENSE) RUN "stack: {form: nested}\n",
     {"  gradient_checkpointing: nested"},
     ""},
    {HB_EMIT_LEVANTER,
     MODEL(DENSE) RUN "stack: {form: nested, outer: 2}\n",
     {"    nested: 2", "    save_carries: true"},
     ""},
    {HB_EMIT_LEVANTER,
     MODEL(DENSE) RUN "stack: {form: nested}\nremat: {offload: [layer_in]}\n",
     {"    nested: true", "    save_carries: offload"},
     ""},
    {HB_EMIT_LEVANTER,
     MODEL(DENSE) RUN "remat: {policy: full, offload: [layer_in]}\n",
     {"  gradient_checkpointing: offload"},
     ""},
    {HB_EMIT_LEVANTER,
     MODEL(DENSE) RUN
     "remat: {policy: names, save: [q], offload: [mlp_up]}\noptimizer: {ema: device, clip: true}\n",
     {"    save_block_internals: [q]", "    offload_block_internals: [mlp_up]",
      "  model_averaging: {type: ema}", "  max_grad_norm: 1.0"},
     "remat.save "},
    {HB_EMIT_LEVANTER,
     MODEL(EXPERTS) RUN,
     {"  type: mixtral", "  n_routed_experts: 8", "  num_experts_per_tok: 2"},
     ""},
    {HB_EMIT_LEVANTER,
     MODEL("{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, head_dim: 128, qk_norm: true}, "
           "mlp: {d_ff: 2048}}") RUN,
     {"  type: qwen3", "  head_dim: 128"},
     ""},
    {HB_EMIT_LEVANTER,
     MODEL(
         "{name: a, repeat: 4, attention: {heads: 8, kv_heads: 4, window: 512}, mlp: {d_ff: 2048}}")
         RUN,
     {"  sliding_window: 512"},
     ""},
    {HB_EMIT_LEVANTER,
     MODEL("{name: a, repeat: 4, norm: layernorm, attention: {heads: 8, bias: true, rope: false, "
           "kernel: "
           "naive}, mlp: {d_ff: 2048, kind: gelu, bias: true}}") RUN,
     {"  type: gpt2", "  use_bias: true", "  attn_backend: vanilla"},
     "model.positions "},
    {HB_EMIT_TORCHTITAN,
     LLAMA TORCH "optimizer: {in_backward: true}\n",
     {"early_step_in_backward = true"},
     TORCH_HABITS},
    {HB_EMIT_TORCHTITAN,
     LLAMA TORCHTP "sharding: {residual_over_tensor: false}\n",
     {"enable_sequence_parallel = false", "tensor_parallel_degree = 2"},
     TORCH_HABITS},
    {HB_EMIT_TORCHTITAN,
     LLAMA PIPE "compiler: torch\npipeline: {schedule: zbv, microbatches: 8, repeats: 2}\n",
     {"pipeline_parallel_schedule = \"ZBVZeroBubble\"", "pipeline_parallel_degree = 2"},
     TORCH_HABITS},
    {HB_EMIT_TORCHTITAN,
     "model: {preset: llama4-scout}\n" RUN8
     "mesh: {expert: 2, fsdp: 2, tensor: 2}\ncompiler: torch\n",
     {"expert_parallel_degree = 2", "expert_tensor_parallel_degree = 2"},
     "precision.grads sharding.dense_over_expert stack.form loss.dot runtime.framework "},
    {HB_EMIT_RECIPE,
     LLAMA TORCH "loss: {chunks: 4, kernel: compiled}\nprecision: {fp8: rowwise}\n",
     {"    model_spec = model_registry(\"8B\", converters=[Float8LinearConverter.Config()])",
      "        loss=ChunkedLossWrapper.Config(loss_fn=loss, num_chunks=4),",
      "        compile=CompileConfig(enable=True, components=[\"loss\"]),"},
     TORCH_HABITS},
    {HB_EMIT_RECIPE,
     LLAMA PIPE "compiler: torch\npipeline: {schedule: zbv, microbatches: 8, repeats: 2}\n",
     {"            pipeline_parallel_schedule=\"ZBVZeroBubble\",",
      "            num_pp_microbatches=8,",
      "            num_tokens_per_microbatch_per_dp_rank=2 * 2048,"},
     TORCH_HABITS},
    {HB_EMIT_RECIPE,
     LLAMA TORCHTP "sharding: {residual_over_tensor: false}\nremat: {policy: full}\n",
     {"            enable_sequence_parallel=False,",
      "        activation_checkpoint=FullAC.Config(),",
      "from torchtitan.distributed.activation_checkpoint import FullAC"},
     TORCH_HABITS},
    {HB_EMIT_TRAINER, MODEL(DENSE) TORCH "optimizer: {name: sgd}\n", {"optim: sgd"}, TORCH_HABITS},
    {HB_EMIT_TRAINER,
     MODEL(DENSE) TORCH "optimizer: {name: lion, moments: [q8]}\n",
     {"optim: lion_8bit"},
     TORCH_HABITS},
    {HB_EMIT_TRAINER,
     MODEL(DENSE) TORCH "optimizer: {name: adamw, moments: [q8, q8]}\n",
     {"optim: adamw_bnb_8bit"},
     TORCH_HABITS},
    {HB_EMIT_TRAINER,
     MODEL(DENSE) TORCH "optimizer: {name: adafactor}\n",
     {"optim: adafactor"},
     TORCH_HABITS},
};

static bool has_line(const char *text, const char *line)
{
    size_t len = strlen(line);
    for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
        if ((at == text || at[-1] == '\n') && (at[len] == '\n' || !at[len]))
            return true;
    return false;
}

/* Names of blocks, and what MaxText's program does whatever it is told. */
static bool is_its_own(const char *key)
{
    const char *dot = strchr(key, '.');
    return hb_str_starts(key, "sharding.norms:") || hb_str_starts(key, "loss.onehot:") ||
           (dot && hb_str_starts(key, "model.blocks[") && hb_str_starts(dot, ".blocks[") &&
            strchr(dot, ']') && hb_str_starts(strchr(dot, ']'), "].name:"));
}

/* And what Levanter's does. */
static bool is_levanters(const char *key)
{
    static const char *const own[] = {
        "loss.dot:", "step.cast:", "runtime.framework:", "model.blocks[0].attention.split_heads:"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (hb_str_starts(key, own[i]))
            return true;
    return false;
}

/* "# cannot be said: KEY: ..." lines as keys. */
static const char *lost_keys(struct hb_arena *arena, enum hb_emit what, const struct hb_spec *spec,
                             const struct hb_spec *back)
{
    struct hb_str lines, keys;
    hb_str_init(&lines, arena);
    hb_str_init(&keys, arena);
    hb_emit_lost(&lines, spec, back);
    for (const char *at = lines.text; (at = strstr(at, "# cannot be said: ")) != NULL;) {
        at += strlen("# cannot be said: ");
        if (is_its_own(at) || (what == HB_EMIT_LEVANTER && is_levanters(at)))
            continue;
        hb_str_addf(&keys, "%.*s ", (int)strcspn(at, " :="), at);
    }
    return keys.text;
}

static bool read_spec(struct unit *u, const char *yaml, struct hb_spec *out)
{
    struct hb_node *root;
    return hb_yaml_parse(u->env.arena, &u->diag, "test", yaml, strlen(yaml), &root) &&
           hb_schema_from_node(u->env.arena, &u->diag, root, HB_SOURCE_DIR, out);
}

static bool check_row(const struct row *row)
{
    struct unit u;
    struct hb_spec spec, back;
    struct hb_str text;
    bool ok = true;
    unit_start(&u);
    hb_str_init(&text, u.env.arena);
    if (!read_spec(&u, row->yaml, &spec)) {
        fprintf(stderr, "%s\n  %s\n", row->yaml, u.diag.entries[0].text);
        unit_end(&u);
        return false;
    }
    hb_emit_program(row->what, &text, &spec, HB_SOURCE_DIR);
    for (int i = 0; i < 5 && row->says[i]; i++)
        if (!has_line(text.text, row->says[i])) {
            fprintf(stderr, "no line '%s' in\n%s", row->says[i], text.text);
            ok = false;
        }
    bool read = hb_emit_back(u.env.arena, row->what, &spec, HB_SOURCE_DIR, &back);
    const char *lost = read ? lost_keys(u.env.arena, row->what, &spec, &back) : "all";
    if (strcmp(lost, row->lost) != 0) {
        fprintf(stderr, "%s%slost '%s', not '%s'\n", row->yaml, text.text, lost, row->lost);
        ok = false;
    }
    unit_end(&u);
    return ok;
}

static void what_is_emitted_is_read_back(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        wrong += !check_row(&rows[i]);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_emitted_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
