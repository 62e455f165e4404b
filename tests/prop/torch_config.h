/* Random configurations of compiler torch, small enough to be run by the thousand: text of a file,
 * framework by framework, most of which are admitted. */
#ifndef TESTS_PROP_TORCH_CONFIG_H
#define TESTS_PROP_TORCH_CONFIG_H

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/yaml.h"
#include "models/schema.h"
#include "models/support.h"

static bool torch_chance(struct hb_rng *rng, int percent)
{
    return hb_rng_range(rng, 1, 100) <= percent;
}

static int64_t torch_power(struct hb_rng *rng, int most)
{
    return INT64_C(1) << hb_rng_range(rng, 0, most);
}

static const char *torch_one_of(struct hb_rng *rng, const char *const *words, int count)
{
    return words[hb_rng_range(rng, 0, count - 1)];
}

#define TORCH_ONE_OF(rng, ...)                                                                     \
    torch_one_of(rng, (const char *const[]){__VA_ARGS__},                                          \
                 (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

/* GPT-2's. */
static void torch_gpt_block(struct hb_str *s, struct hb_rng *rng, int at)
{
    hb_str_addf(
        s,
        "    - {name: b%d, repeat: %lld, norm: layernorm, dropout: %s, attention: {heads: 8, "
        "kv_heads: %s, head_dim: 32, rope: %s, bias: %s, fused_qkv: %s}, mlp: {kind: gelu, "
        "d_ff: 512, bias: %s}}\n",
        at, (long long)hb_rng_range(rng, 1, 6), TORCH_ONE_OF(rng, "0", "0.1"),
        TORCH_ONE_OF(rng, "8", "8", "1"), TORCH_ONE_OF(rng, "false", "true"),
        TORCH_ONE_OF(rng, "true", "false"), TORCH_ONE_OF(rng, "true", "false"),
        TORCH_ONE_OF(rng, "true", "false"));
}

/* gpt-oss's. */
static void torch_sinks_block(struct hb_str *s, struct hb_rng *rng, int at)
{
    hb_str_addf(s,
                "    - {name: b%d, repeat: %lld, norm: rmsnorm, attention: {heads: 8, kv_heads: "
                "%lld, head_dim: 32, bias: true, sinks: true, fused_qkv: %s}, moe: {experts: %lld, "
                "top_k: 2, d_ff: 256, kind: swiglu, bias: true, router_bias: true, router_dtype: "
                "%s}}\n",
                at, (long long)hb_rng_range(rng, 1, 6), (long long)torch_power(rng, 3),
                TORCH_ONE_OF(rng, "true", "false"), (long long)(8 * torch_power(rng, 2)),
                TORCH_ONE_OF(rng, "f32", "bf16"));
}

/* Blocks of one kind, or two; other kinds of attention and of dispatch with megatron alone. */
static void torch_blocks(struct hb_str *s, struct hb_rng *rng, bool megatron, bool experts)
{
    int blocks = torch_chance(rng, 30) ? 2 : 1;
    for (int i = 0; i < blocks; i++) {
        struct hb_rng side = *rng; /* what it draws moves nothing else */
        int64_t kv = torch_power(rng, 3);
        if (!megatron && torch_chance(&side, 12)) {
            torch_gpt_block(s, &side, i);
            continue;
        }
        if (!megatron && experts && torch_chance(&side, 15)) {
            torch_sinks_block(s, &side, i);
            continue;
        }
        hb_str_addf(s, "    - {name: b%d, repeat: %lld, norm: rmsnorm", i,
                    (long long)hb_rng_range(rng, 1, torch_chance(rng, 20) ? 14 : 6));
        if (megatron && torch_chance(rng, 30))
            hb_str_addf(s, ", dropout: 0.1");
        if (!megatron && torch_chance(&side, 6))
            hb_str_add(s, ", post_norm: true");
        if (megatron ? torch_chance(rng, 20) : torch_chance(&side, 12))
            hb_str_addf(s,
                        ", attention: {kind: mla, heads: 8, q_lora_rank: %d, kv_lora_rank: 64, "
                        "qk_nope_head_dim: 32, qk_rope_head_dim: 16, v_head_dim: 32}",
                        megatron || torch_chance(&side, 60) ? 96 : 0);
        else
            hb_str_addf(s,
                        ", attention: {heads: 8, kv_heads: %lld, head_dim: %lld, rope: %s, "
                        "qk_norm: %s, kernel: %s%s}",
                        (long long)kv, (long long)(32 * torch_power(rng, 2)),
                        TORCH_ONE_OF(rng, "true", "true", "false"),
                        TORCH_ONE_OF(rng, "true", "false", "false"),
                        megatron ? TORCH_ONE_OF(rng, "flash", "naive") : "flash",
                        !megatron && torch_chance(&side, 15) ? ", bias: qkv" : "");
        if (megatron && torch_chance(rng, 30))
            hb_str_addf(s,
                        ", moe: {experts: 8, top_k: 2, d_ff: 256, kind: swiglu, dispatch: %s}}\n",
                        TORCH_ONE_OF(rng, "ragged", "allgather"));
        else if (experts && torch_chance(rng, 60))
            hb_str_addf(s,
                        ", moe: {experts: %lld, top_k: 2, d_ff: 256, kind: swiglu, "
                        "shared_experts: %s, router_dtype: %s, router_bias: %s}}\n",
                        (long long)(8 * torch_power(rng, 2)), TORCH_ONE_OF(rng, "0", "1"),
                        TORCH_ONE_OF(rng, "f32", "bf16"), TORCH_ONE_OF(&side, "true", "false"));
        else
            hb_str_addf(s, ", mlp: {kind: %s, d_ff: %lld}}\n",
                        megatron ? TORCH_ONE_OF(rng, "swiglu", "gelu")
                                 : TORCH_ONE_OF(&side, "swiglu", "geglu"),
                        (long long)(256 * hb_rng_range(rng, 1, 8)));
    }
}

static void torch_titan_runtime(struct hb_str *s, struct hb_rng *rng, const char *framework,
                                bool plain, bool experts, bool fsdp1)
{
    struct hb_rng side = *rng, norms = *rng; /* what they draw moves nothing else */
    hb_str_addf(s,
                "runtime: {framework: %s, compile: %s, wrap: %s, allocator: %s, fsdp1: %s, "
                "expandable_segments: %s, max_split_size: %s, reduce_bucket: %lld, cuda_graphs: "
                "%s",
                framework, experts ? "false" : TORCH_ONE_OF(rng, "true", "false"),
                plain || experts || fsdp1 ? "split" : TORCH_ONE_OF(rng, "split", "split", "root"),
                TORCH_ONE_OF(rng, "max_allocated", "max_reserved", "max_reserved"),
                fsdp1 ? "true" : "false", TORCH_ONE_OF(rng, "true", "false"),
                TORCH_ONE_OF(rng, "0", "0", "32MiB", "256MiB"),
                (long long)(100000 * torch_power(rng, 12)),
                torch_chance(&side, 15) ? "true" : "false");
    bool written = strstr(s->text, "compile: false") && torch_chance(&norms, 20);
    hb_str_addf(s, "%s}\n", written ? ", written_norm: true" : "");
}

static void torch_loss(struct hb_str *s, struct hb_rng *rng, bool plain)
{
    struct hb_rng side = *rng; /* what it draws moves nothing else */
    const char *kernel = TORCH_ONE_OF(rng, "eager", "eager", "compiled", "compiled", "linear");
    const char *held = TORCH_ONE_OF(rng, "none", "none", "compute", "f32");
    int64_t chunks = plain && torch_chance(rng, 40) ? hb_rng_range(rng, 2, 9) : 1;
    if (!plain && !hb_str_same(kernel, "linear") && hb_str_same(held, "none") &&
        torch_chance(&side, 30))
        chunks = hb_rng_range(&side, 2, 9);
    hb_str_addf(s, "loss: {kernel: %s, held: %s, chunks: %lld}\n", kernel, held, (long long)chunks);
}

/* A budget is of compiled layers alone. */
static void torch_titan_remat(struct hb_str *s, struct hb_rng *rng, struct hb_rng side, bool plain)
{
    const char *policy = plain && torch_chance(rng, 15)
                             ? "names, save: [], offload: [layer_in]"
                             : TORCH_ONE_OF(rng, "none", "full", "full",
                                            "names, save: [q, v, attn_ctx, mlp_gate, mlp_down]");
    bool budget = hb_str_same(policy, "none") && torch_chance(&side, 10);
    bool dense = !strstr(s->text, "moe:"); /* with experts a list of its own is refused */
    if (dense && strstr(policy, "save: [q") && torch_chance(&side, 30))
        policy =
            TORCH_ONE_OF(&side, "names, save: [layer_in, attn_ctx]", "names, save: [k, mlp_up]",
                         "names, save: [q, k, v, attn_ctx, attn_out, mlp_gate, mlp_up, "
                         "mlp_down]");
    hb_str_addf(s, "remat: {policy: %s, every: %lld%s}\n", policy,
                (long long)(torch_chance(rng, 40) ? hb_rng_range(rng, 1, 4) : 1),
                budget ? TORCH_ONE_OF(&side, ", budget: 0", ", budget: 0.3", ", budget: 0.7") : "");
}

static void torch_titan_loss(struct hb_str *s, struct hb_rng *rng, bool plain)
{
    if (torch_chance(rng, 15))
        hb_str_addf(s, "loss: {kind: grpo, reference: %s%s}\n", TORCH_ONE_OF(rng, "true", "false"),
                    TORCH_ONE_OF(rng, "", ", value: true", ", entropy: false", ", entropy: true"));
    else
        torch_loss(s, rng, plain);
}

static const char *torch_average(struct hb_rng *rng)
{
    hb_rng_range(rng, 0, 1);
    return TORCH_ONE_OF(rng, "", "", "", "", "", "ema: device, ", "ema: pinned_host, ");
}

/* own: of a rule that says itself what it keeps. */
static const char *torch_moments(struct hb_rng *rng, bool own)
{
    const char *told = TORCH_ONE_OF(rng, "moments: [f32, f32], ", "moments: [bf16, bf16], ",
                                    "moments: [q8, q8], ");
    return own ? "" : told;
}

/* plain: without FSDP, one device or copies. What side draws moves nothing else. */
static void torch_titan(struct hb_str *s, struct hb_rng *rng, struct hb_rng side, bool plain,
                        bool experts)
{
    int64_t sequence = plain || torch_chance(rng, 60) ? 1 : 2 * torch_power(rng, 3);
    int64_t fsdp = plain                      ? 1
                   : sequence > 1 && !experts ? torch_power(rng, 4)
                                              : 2 * torch_power(rng, 4);
    int64_t tensor = plain ? 1 + torch_chance(&side, 15) : torch_power(rng, experts ? 1 : 3);
    int64_t expert = experts ? torch_power(rng, 3) : 1, accumulate = hb_rng_range(rng, 1, 4);
    int64_t data = torch_power(rng, plain ? 3 : 1);
    bool tune = plain && data == 1 && torch_chance(rng, 50);
    bool zero = plain && data > 1 && torch_chance(rng, 50);
    struct hb_rng rule = side; /* what it draws moves nothing else */
    const char *averaged = torch_average(&rule);
    const char *own = TORCH_ONE_OF(&rule, "", "", "", "name: muon, others: adamw, ",
                                   "name: adafactor, ", "name: lion, ");
    hb_str_addf(s,
                "batch: {global: %lld, seq: %lld, accumulate: %lld}\n"
                "mesh: {data: %lld, fsdp: %lld, tensor: %lld, sequence: %lld, expert: %lld}\n",
                (long long)(data * fsdp * expert * accumulate * hb_rng_range(rng, 1, 3)),
                (long long)(256 * torch_power(rng, 4)), (long long)accumulate, (long long)data,
                (long long)fsdp, (long long)tensor, (long long)sequence, (long long)expert);
    hb_str_addf(
        s,
        "sharding: {%sdense_over_expert: %s, residual_over_tensor: %s, states_over_sequence: %s, "
        "reshard_after_forward: %s, reshard_ranks: %s, sequence_kind: %s, sequence_balance: %s, "
        "optimizer_over_data: %s, grads_over_data: %s}\n",
        tensor > 1 && experts ? TORCH_ONE_OF(rng, "", "expert_tensor: 1, ") : "",
        expert > 1 ? "true" : "false", tensor > 1 ? "true" : "false",
        sequence > 1 ? "true" : "false", TORCH_ONE_OF(rng, "true", "true", "false"),
        plain || experts ? "0" : TORCH_ONE_OF(rng, "0", "0", "0", "2", "4"),
        TORCH_ONE_OF(rng, "ring", "all_gather"), TORCH_ONE_OF(rng, "true", "false"),
        zero ? "true" : "false", zero ? TORCH_ONE_OF(rng, "true", "false") : "false");
    torch_titan_remat(s, rng, side, plain);
    if (plain)
        hb_str_addf(s,
                    "precision: {params: %s, grads: params%s}\n"
                    "optimizer: {%s%sin_backward: %s, %soffload: %s}\n",
                    TORCH_ONE_OF(&side, "bf16", "bf16", "f32", "f32, compute: f32"),
                    zero ? ", master: f32" : "", averaged, own,
                    data == 1 && accumulate == 1 ? TORCH_ONE_OF(rng, "true", "false") : "false",
                    torch_moments(rng, *own),
                    tune ? TORCH_ONE_OF(rng, "none", "none", "pinned_host") : "none");
    else
        hb_str_addf(
            s, "precision: {params: %s, grads: %s%s}\noptimizer: {%s%s%s}\n",
            TORCH_ONE_OF(&side, "f32", "f32", "f32", "f32", "bf16", "bf16", "f32, compute: f32"),
            TORCH_ONE_OF(rng, "f32", "f32", "bf16"),
            TORCH_ONE_OF(rng, "", "", ", fp8: tensorwise, fp8_gather: true"), averaged,
            *own ? "name: lion, "
                 : TORCH_ONE_OF(&side, "", "", "", "name: sgd, ", "name: momentum, "),
            TORCH_ONE_OF(rng, "", "", "", "in_backward: true",
                         "offload: pinned_host, params_offload: pinned_host"));
    torch_titan_loss(s, rng, plain);
    bool fsdp1 = fsdp > 1 && data * tensor * sequence == 1 && !experts && torch_chance(rng, 40);
    hb_str_addf(s, "hardware: {device: nvidia-h100, count: %lld}\n",
                (long long)(data * fsdp * tensor * sequence * expert));
    torch_titan_runtime(s, rng, tune ? "torchtune" : "torchtitan", plain, experts, fsdp1);
}

/* DeepSpeed's third stage. */
static void torch_zero3(struct hb_str *s, struct hb_rng *rng)
{
    int64_t ranks = hb_rng_range(rng, 2, 16), accumulate = hb_rng_range(rng, 1, 4);
    hb_str_addf(s, "batch: {global: %lld, seq: %lld, accumulate: %lld}\nmesh: {fsdp: %lld}\n",
                (long long)(ranks * accumulate * hb_rng_range(rng, 1, 3)),
                (long long)(256 * torch_power(rng, 4)), (long long)accumulate, (long long)ranks);
    hb_str_addf(s,
                "remat: {policy: %s, every: %lld}\nloss: {kernel: %s, held: %s}\n"
                "precision: {params: bf16, master: f32, grads: params}\n"
                "hardware: {device: nvidia-h100, count: %lld}\n"
                "optimizer: {%soffload: %s, params_offload: %s}\n",
                TORCH_ONE_OF(rng, "none", "full"), (long long)hb_rng_range(rng, 1, 3),
                TORCH_ONE_OF(rng, "eager", "compiled"), TORCH_ONE_OF(rng, "none", "compute"),
                (long long)ranks, TORCH_ONE_OF(rng, "", "", "name: lion, ", "moments: [q8, q8], "),
                TORCH_ONE_OF(rng, "none", "none", "pinned_host"),
                TORCH_ONE_OF(rng, "none", "none", "pinned_host"));
    hb_str_addf(s,
                "runtime: {framework: torchtitan, reduce_bucket: %lld, prefetch_bucket: %lld, "
                "live_parameters: %lld, reuse_distance: %lld, persist_below: %lld, "
                "update_group: %lld}\n",
                (long long)(1000 * torch_power(rng, 18)), (long long)(1000 * torch_power(rng, 16)),
                (long long)(10000 * torch_power(rng, 16)),
                (long long)(10000 * torch_power(rng, 16)), (long long)(100 * torch_power(rng, 14)),
                (long long)(1000 * torch_power(rng, 18)));
}

/* torchtitan's pipelines. */
static void torch_pipes(struct hb_str *s, struct hb_rng *rng, bool experts)
{
    struct hb_rng side = *rng; /* what it draws moves nothing else */
    int64_t data = torch_chance(&side, 30) ? 2 : 1;
    int64_t fsdp = 2 * torch_power(rng, 2), tensor = torch_power(rng, 1);
    struct hb_rng bare = side; /* nor this */
    bool whole_weights = !experts && hb_rng_range(&bare, 0, 99) % 3 == 0;
    int64_t expert = experts ? torch_power(rng, 1) : 1;
    int64_t sequence = torch_chance(rng, 70) ? 1 : 2 * torch_power(rng, 2);
    int64_t stages = 2 * torch_power(rng, 1), microbatches = stages * hb_rng_range(rng, 1, 3);
    const char *schedule = experts ? TORCH_ONE_OF(rng, "gpipe", "1f1b", "interleaved")
                                   : TORCH_ONE_OF(rng, "gpipe", "1f1b", "interleaved",
                                                  "zero_bubble", "zbv", "dualpipe_v");
    if (whole_weights)
        data = fsdp = sequence = 1;
    bool single = hb_str_same(schedule, "gpipe") || hb_str_same(schedule, "1f1b");
    bool whole = single || hb_str_same(schedule, "interleaved");
    hb_str_addf(s,
                "batch: {global: %lld, seq: %lld}\n"
                "mesh: {data: %lld, fsdp: %lld, tensor: %lld, sequence: %lld, pipeline: %lld}\n"
                "pipeline: {schedule: %s, microbatches: %lld, repeats: %d}\n",
                (long long)(data * fsdp * microbatches * hb_rng_range(rng, 1, 2)),
                (long long)(256 * torch_power(rng, 3)), (long long)data, (long long)fsdp,
                (long long)tensor, (long long)sequence, (long long)stages, schedule,
                (long long)microbatches, single ? 1 : 2);
    hb_str_addf(s,
                "sharding: {residual_over_tensor: %s, states_over_sequence: %s, sequence_kind: %s, "
                "sequence_balance: %s, dense_over_expert: %s, reshard_after_forward: %s}\n",
                tensor > 1 ? "true" : "false", sequence > 1 ? "true" : "false",
                TORCH_ONE_OF(rng, "ring", "all_gather"), TORCH_ONE_OF(rng, "true", "false"),
                expert > 1 ? "true" : "false",
                whole ? TORCH_ONE_OF(rng, "true", "false") : "false");
    hb_str_addf(s, "remat: {policy: %s, every: %lld}\nprecision: {%sgrads: %s}\n",
                whole ? TORCH_ONE_OF(rng, "none", "full",
                                     "names, save: [q, v, attn_ctx, mlp_gate, mlp_down]")
                      : TORCH_ONE_OF(rng, "none", "full"),
                (long long)hb_rng_range(rng, 1, 2),
                whole_weights ? TORCH_ONE_OF(&bare, "params: bf16, ", "params: f32, compute: f32, ")
                              : TORCH_ONE_OF(&bare, "", "", "", "compute: f32, "),
                whole_weights ? "params" : TORCH_ONE_OF(rng, "f32", "bf16"));
    hb_str_addf(s,
                "loss: {kernel: %s, chunks: %lld}\nhardware: {device: nvidia-h100, count: %lld}\n"
                "runtime: {framework: torchtitan, compile: %s}\n",
                TORCH_ONE_OF(rng, "eager", "compiled"),
                (long long)(torch_chance(&side, 40) ? hb_rng_range(&side, 2, 5) : 1),
                (long long)(data * fsdp * tensor * sequence * stages),
                whole ? TORCH_ONE_OF(rng, "false", "false", "true") : "false");
}

static void torch_megatron(struct hb_str *s, struct hb_rng *rng)
{
    int64_t data = torch_power(rng, 3), tensor = torch_power(rng, 2), stages = torch_power(rng, 2);
    int64_t sequence = torch_power(rng, 1), experts = torch_power(rng, 1);
    int64_t microbatches = stages * torch_power(rng, 2), accumulate = hb_rng_range(rng, 1, 4);
    if (stages > 1)
        accumulate = 1;
    hb_str_addf(s,
                "batch: {global: %lld, seq: %lld, accumulate: %lld}\n"
                "mesh: {data: %lld, tensor: %lld, sequence: %lld, expert: %lld, pipeline: %lld}\n",
                (long long)(data * experts * accumulate * microbatches * hb_rng_range(rng, 1, 2)),
                (long long)(256 * torch_power(rng, 3)), (long long)accumulate, (long long)data,
                (long long)tensor, (long long)sequence, (long long)experts, (long long)stages);
    const char *schedule = TORCH_ONE_OF(rng, "gpipe", "1f1b", "interleaved");
    const char *fp8 = TORCH_ONE_OF(rng, "none", "none", "tensorwise", "blockwise", "mxfp8");
    hb_str_addf(s, "pipeline: {schedule: %s, microbatches: %lld, repeats: %d, group: %lld}\n",
                schedule, (long long)microbatches,
                hb_str_same(schedule, "interleaved") ? (int)hb_rng_range(rng, 1, 3) : 1,
                (long long)(torch_chance(rng, 20) ? microbatches : 0));
    hb_str_addf(s, "sharding: {residual_over_tensor: %s, optimizer_over_data: %s}\n",
                tensor > 1 ? TORCH_ONE_OF(rng, "true", "false") : "false",
                TORCH_ONE_OF(rng, "true", "false"));
    hb_str_addf(s, "remat: {policy: %s, every: %lld, modules: %s}\n",
                TORCH_ONE_OF(rng, "none", "none", "full"), (long long)hb_rng_range(rng, 1, 3),
                TORCH_ONE_OF(rng, "[]", "[core_attn]", "[mlp, layernorm, mla_up_proj, moe_act]",
                             "[moe, layernorm]"));
    hb_str_addf(s, "precision: {params: bf16, master: %s, grads: %s, fp8: %s, fp8_params: %s}\n",
                TORCH_ONE_OF(rng, "f32", "none"), TORCH_ONE_OF(rng, "f32", "params"), fp8,
                hb_str_same(fp8, "none") ? "false" : TORCH_ONE_OF(rng, "true", "false"));
    hb_str_addf(s, "loss: {kernel: %s}\n", TORCH_ONE_OF(rng, "eager", "jit", "fused"));
    hb_str_addf(s,
                "runtime: {framework: megatron, grad_fusion: %s}\n"
                "hardware: {device: nvidia-h100, count: %lld}\n",
                TORCH_ONE_OF(rng, "true", "false"),
                (long long)(data * tensor * sequence * experts * stages));
}

/* False: it is not admitted. */
static bool torch_draw(struct hb_arena *arena, struct hb_rng *rng, struct hb_spec *out,
                       const char **out_text)
{
    struct hb_str s;
    struct hb_diag diag;
    struct hb_node *root;
    bool megatron = torch_chance(rng, 50), pipes = !megatron && torch_chance(rng, 25);
    bool zero3 = !megatron && !pipes && torch_chance(rng, 15);
    bool plain = !megatron && !pipes && !zero3 && torch_chance(rng, 30);
    struct hb_rng side = *rng; /* what it draws moves nothing else */
    hb_str_init(&s, arena);
    hb_str_addf(&s,
                "model:\n  positions: %s\n  d_model: %lld\n  vocab: %lld\n  tied_embeddings: %s\n"
                "  mtp: %d\n  blocks:\n",
                megatron || pipes || torch_chance(&side, 88) ? "0" : "4096",
                (long long)(128 * hb_rng_range(rng, 1, 8)),
                (long long)(torch_chance(rng, 50) ? 32000 : 1000 * hb_rng_range(rng, 1, 60)),
                pipes ? "false" : TORCH_ONE_OF(rng, "true", "false"),
                megatron && torch_chance(rng, 20) ? (int)hb_rng_range(rng, 1, 2) : 0);
    bool experts = !megatron && !plain && !zero3 && torch_chance(rng, 30);
    torch_blocks(&s, rng, megatron, experts);
    hb_str_add(&s, "compiler: torch\n");
    if (megatron)
        torch_megatron(&s, rng);
    else if (pipes)
        torch_pipes(&s, rng, experts);
    else if (zero3)
        torch_zero3(&s, rng);
    else
        torch_titan(&s, rng, *rng, plain, experts);
    hb_diag_init(&diag, arena);
    *out_text = s.text;
    return hb_yaml_parse(arena, &diag, "random", s.text, s.len, &root) &&
           hb_schema_from_node(arena, &diag, root, HB_SOURCE_DIR, out) &&
           hb_spec_supported(&diag, NULL, out);
}

#endif
