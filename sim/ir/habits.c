/* The compilers' habits as data. Names in comments are measured records (lab-tpu, lab-cuda,
 * lab-rocm) that differ in the one knob that shows the habit. */
#include "sim/ir/habits.h"

#include "base/size.h"
#include "base/str.h"

static const struct hb_habits xla_tpu = {
    .name = "xla-tpu",
    .tiling = HB_TILE_COMPACT,
    /* 1B/base: q of head_dim 64 lies as bf16[2,32,4096,64]{3,2,1,0}, 64 MiB instead of 32. */
    .kernel_tiling = HB_TILE_MINOR,
    /* 1B/base: splash_mha_fwd_residuals f32[2,32,4096,128]. */
    .lse_lanes = 128,
    /* MaxText's defaults: sa_block_q, sa_block_kv 512 and sa_use_fused_bwd_kernel false. */
    .attention_block = 512,
    /* MaxText's default wi_tile_fwd_batch_seq; see ragged in moe.c. */
    .group_tile = 512,
    .attention_split = true,
    .kernel_names_result = true,
    /* opt/base against opt/param_dtype=bf16: 1382 -> 566 MiB. */
    .casts_hoisted = true,
    .rings = true,
    /* moeT/base: pred[8,2048,8,640] from the masks to the end of the experts' backward. */
    .masks_narrow = true,
    /* bwd/remat=names:attn_out, bwd/remat=dots. */
    .norms_fused = true,
    /* bwd/base: four bf16[8,2048,2816] together; 70B/base (gathered): three. */
    .act_stored_for_dw = true,
    .logits_copies = 1,
    .naive_score_copies = 1,
};

static const struct hb_habits xla_cuda = {
    .name = "xla-gpu (CUDA)",
    .tiling = HB_TILE_NONE,
    .kernel_tiling = HB_TILE_NONE,
    .lse_lanes = 1,
    .attention_block = 128, /* FlashAttention-2, cuDNN: tiles of 128 queries */
    /* tinyS/base: 2 x 2.097 GB of f32 logits. */
    .logits_copies = 2,
    .zeros_hoisted = true,
    .gathers_timed = true,
    /* bwd/remat=names:attn_out: q, k, v and the kernel's result stand at the MLP's peak. */
    .recompute_first = true,
    .constraints_needed = true,
    /* pr85/ep2pp4/mask,naive: four layers keep f32[2,32,4096,4096] each and no bf16 of it. */
    .probabilities_remade = true,
    .output_grads_gathered = true,
    .parts_apart = true,
    /* PP/base: two bf16[11,2,2048,2048] beside the logits, outputs and zeros for the gradients of
     * the inputs; none where the loss is split over the stages. */
    .outputs_in_place = true,
    .muon_sums_squares = true,
    .transposed_stacks = true,
    /* opt/donate=False: temp 0.067 against 1.103 GB; 70B,f128,b256: sim/engine/lend.c. */
    .donated_reuse = true,
    .mask_hoisted = true,
    /* xla-h100/20-qwen3-4b, 11-mistral7b: a maximum, a sum, a quotient. */
    .softmax_apart = true,
    .naive_score_copies = 2,
    .nan_zero_per_shape = true,
    .ragged_dense = true,
    .onehot_iota = true,
};

static const struct hb_habits xla_rocm = {
    .name = "xla-gpu (ROCm)",
    .tiling = HB_TILE_NONE,
    .kernel_tiling = HB_TILE_NONE,
    .lse_lanes = 1,
    .attention_block = 128, /* FlashAttention-2, cuDNN: tiles of 128 queries */
    .logits_copies = 2,
    .recompute_first = true,
    .constraints_needed = true,
    .probabilities_remade = true,
    .output_grads_gathered = true,
    .parts_apart = true,
    .sums_remade = true,
    .outputs_in_place = true,
    .muon_sums_squares = true,
    .weights_last = true, /* moe.c */
    .transposed_stacks = true,
    .donated_reuse = true,
    .mask_hoisted = true,
    .softmax_apart = true,
    .naive_score_copies = 2,
    .nan_zero_per_shape = true,
    .onehot_iota = true,
};

const struct hb_habits *hb_habits_find(const struct hb_spec *spec)
{
    if (spec->compiler == HB_XLA_TPU)
        return &xla_tpu;
    return hb_str_starts(spec->hardware.device, "amd-") ? &xla_rocm : &xla_cuda;
}

int64_t hb_habits_devices(const struct hb_spec *spec)
{
    int64_t n = 1;
    for (int i = 0; i < HB_AX_COUNT; i++)
        n = hb_mul_sat(n, spec->mesh[i]);
    return n;
}

/* One device has no collective for CUDA's latency hiding to move: the list's order is kept (4
 * layers of 1024 wide with remat=names:attn_out: 0.91 of 44 ops of the entry, 0.92 of 110 inside
 * loops). Not where what the graph does not know well decides: states on the host (three steps of
 * an H100 29 to 35 % too low, 0 to 23 by the rules) and scores in memory (tiny/base: 7.26 6.99
 * 8.13, where the compiler has 7.33 10.21 10.08: both loops' masks). */
static bool is_one_device(const struct hb_spec *spec)
{
    if (spec->optimizer.offload != HB_PLACE_NONE ||
        spec->model.blocks[0].attention.kernel == HB_KERNEL_NAIVE)
        return false;
    return hb_habits_devices(spec) == 1;
}

bool hb_habits_ordered(const struct hb_spec *spec)
{
    if (spec->compiler != HB_XLA_GPU || spec->stack.form == HB_FORM_LOOP)
        return false;
    return !hb_habits_find(spec)->gathers_timed || is_one_device(spec);
}

/* memory_bytes: texts of the compiler on exhausted memory; v7: AI-Hypercomputer/tpu-recipes, 94.75
 * GiB for each of a TPU7x's two devices. */
static const struct hb_chip chips[] = {
    {.device = "tpu-v5e",
     .host_flops = 15000,
     .host_passes = 100,
     .host_sums = 7.29,
     .memory_bytes = (int64_t)16128 << 20,
     .head_ring_times = 1,
     .window_least = 10,
     .ring_lanes = 128,
     .sorted_long = INT64_MAX,
     .gathers_beside = true,
     .flat = true,
     .ring_grads_at_once = true,
     .ring_room_early = true,
     .chunk_beside = 1,
     .turned_early = true,
     .longest_copy = true},
    {.device = "tpu-v5p",
     .host_flops = 12000,
     .host_passes = 130,
     .host_sums = 14.58,
     .memory_bytes = (int64_t)98028 << 20,
     .head_ring_times = 1,
     .window_least = 10,
     .ring_lanes = 128,
     .gathers_padded = true,
     .own_loss_at_once = true},
    {.device = "tpu-v6e",
     .host_flops = 29000,
     .host_passes = 229,
     .host_sums = 14.58,
     .memory_bytes = (int64_t)31990 << 20,
     .head_ring_times = 2,
     .window_least = 6,
     .sorted_long = 32769,
     .flat = true,
     .masks_turned = true,
     .mlp_turned = true,
     .updates_joined = true,
     .ring_columns_at_once = true,
     .labels_last = true,
     .recipes_block = 1024},
    {.device = "tpu-v7",
     .host_flops = 29000,
     .host_passes = 229,
     .host_sums = 14.58,
     .memory_bytes = (int64_t)97020 << 20,
     .head_ring_times = 1,
     .window_least = 10,
     .ring_lanes = 128,
     .sorted_long = INT64_MAX,
     .chunk_beside = 2,
     .labels_last = true,
     .fused_backward = true,
     .recipes_block = 1024},
    {.device = "tpu-v4",
     .host_flops = 12000,
     .host_passes = 130,
     .host_sums = 7.29,
     .memory_bytes = (int64_t)31488 << 20,
     .head_ring_times = 1,
     .window_least = 10,
     .ring_lanes = 128,
     .sorted_long = INT64_MAX},
    {.device = "another TPU",
     .host_flops = 12000,
     .host_passes = 130,
     .host_sums = 14.58,
     .head_ring_times = 1,
     .window_least = 10,
     .ring_lanes = 128,
     .sorted_long = INT64_MAX},
};

const struct hb_chip *hb_chip_find(const char *device)
{
    size_t last = sizeof chips / sizeof *chips - 1;
    for (size_t i = 0; i < last; i++)
        if (hb_str_same(device, chips[i].device))
            return &chips[i];
    return &chips[last];
}

const struct hb_chip *hb_habits_chip(const struct hb_spec *spec)
{
    static const struct hb_chip none = {.device = "no TPU",
                                        .host_flops = 1,
                                        .host_passes = 1,
                                        .host_sums = 1,
                                        .sorted_long = INT64_MAX};
    return spec->compiler == HB_XLA_TPU ? hb_chip_find(spec->hardware.device) : &none;
}

/* What would leave less than 2.5 GiB (BufferAssigner's FAST_MERGE_WITH_FALLBACK,
 * xla/service/buffer_assignment.cc; seen on v5e at 13.25 of 15.75 GiB). */
int64_t hb_chip_repack_bytes(const struct hb_chip *of)
{
    return of->memory_bytes ? of->memory_bytes - ((int64_t)2560 << 20) : 0;
}
