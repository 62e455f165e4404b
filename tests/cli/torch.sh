# compiler: torch from the command line: plan with its proof and other programs' settings, advise,
# report, pictures; what is of other compilers is refused.
. tests/tap.sh

titan=examples/torch/titan.yaml
megatron=examples/torch/megatron.yaml

# Small enough to be run whole.
cat >"$work/small.yaml" <<'END'
model:
  d_model: 1024
  vocab: 32000
  blocks:
    - {name: a, repeat: 6, attention: {heads: 16, kv_heads: 4}, mlp: {d_ff: 4096}}
batch: {global: 32, seq: 4096}
mesh: {fsdp: 8}
remat: {policy: full}
hardware: {device: nvidia-h100, count: 8, hbm: 8GiB}
compiler: torch
runtime: {framework: torchtitan, allocator: max_reserved}
END

number() {
    sed -n "s/.*\"$1\": \\([-0-9.e+]*\\),*\$/\\1/p" "$work/out" | head -n 1
}

expect 0 hbmsim plan "$work/small.yaml" --exhaustive
out_has 'Optimal: every other configuration is slower, or what a rank takes at least exceeds'
out_has 'the budget, or it was run and does not fit (gap 0).'
out_has 'Brute force over all of them agrees.'
out_has 'predictions for torch are not calibrated'
err_is ''

expect 0 hbmsim plan "$work/small.yaml" --json --certificate "$work/proof.json"
out_has '"status": "optimal"'
out_has '"gap": 0'
peak=$(number peak_bytes)
step=$(number step_seconds)
ok 'each configuration has its line in the certificate' test \
    "$(grep -o '"by":' "$work/proof.json" | wc -l)" = "$(number cells)"
ok 'some are excluded by a floor' grep -q 'what a rank takes at least exceeds the budget' \
    "$work/proof.json"
expect 0 hbmsim plan "$work/small.yaml" --emit yaml -o "$work/plan.yaml"
expect 0 hbmsim simulate "$work/plan.yaml" --json
ok 'run again it has the same peak' test "$(number peak_bytes)" = "$peak"
ok 'and the same step' test "$(number step_seconds)" = "$step"
expect 0 hbmsim plan "$work/small.yaml" --json --objective memory
ok 'the least memory is the least' test "$(number peak_bytes)" -le "$peak"
expect 0 hbmsim plan "$work/small.yaml" --margin 20%
out_has 'stays free'
expect 1 hbmsim plan "$work/small.yaml" --set hardware.hbm=500MiB
out_has 'no plan fits in 500.0 MiB'
out_has 'Smallest peak: '
out_has 'What would do: a budget of '

# Too many for brute force; no mesh within the limits.
expect 2 hbmsim plan "$work/small.yaml" --set plan.search.mesh='[data, fsdp, tensor]' \
    --set plan.keep='{data_max: 1, fsdp_max: 1, tensor_max: 1}'
err_has 'plan: no mesh of 8 devices that the model and the limits of plan.keep admit'

# Searched as the file says.
expect 0 hbmsim plan "$work/small.yaml" --set 'plan.search.reshard=true'
out_has 'Searched whether gathered weights stay:'
out_has '2 configurations'

# A schedule that parts its passes stays a choice where it is written, and is told where chosen.
pipe="$work/small.yaml --set mesh.fsdp=2 --set mesh.pipeline=2 --set model.blocks[0].repeat=8 \
--set hardware.count=4 --set batch.global=16 --set remat.policy=none \
--set sharding.reshard_after_forward=false --set pipeline.microbatches=8 --set pipeline.repeats=2"
for schedule in zbv zero_bubble dualpipe_v; do
    expect 0 hbmsim plan $pipe --set pipeline.schedule=$schedule --exhaustive \
        --certificate "$work/proof.json"
    out_has 'Brute force over all of them agrees.'
    ok "$schedule is a choice" grep -q "\"schedule\": \"$schedule\"" "$work/proof.json"
    ok 'beside the usual ones' grep -q '"schedule": "1f1b"' "$work/proof.json"
    expect 0 hbmsim plan $pipe --set pipeline.schedule=$schedule --set plan.search.remat=true
    out_has "  pipeline    $schedule, 8 microbatches, 2 chunks a rank"
    ok 'a written search frees no schedule' sh -c '! grep -q "1f1b\|interleaved" "$1"' sh "$work/out"
done
expect 0 hbmsim plan $pipe --set pipeline.schedule=zbv --set plan.search.remat=true \
    --emit torchtitan
out_has 'pipeline_parallel_schedule = "ZBVZeroBubble"'

# The size that people ask about.
expect 0 hbmsim plan $titan --json
out_has '"status": "optimal"'
out_has '"gap": 0'
expect 0 hbmsim plan $titan --emit torchtitan
out_has 'data_parallel_shard_degree = '
out_has 'mode = "'
expect 0 hbmsim plan $titan --emit torchtitan-recipe
out_has 'def plan() -> Trainer.Config:'
command -v python3 >/dev/null 2>&1 && ok 'the recipe is Python' python3 -c 'compile(open("'"$work/out"'").read(), "recipe", "exec")'
expect 0 hbmsim plan $megatron
out_has '  ranks  '
out_has 'chunk'
expect 0 hbmsim plan $megatron --emit megatron
out_has '--pipeline-model-parallel-size '
out_has '--use-distributed-optimizer'

# What is pasted is what was planned: the settings are a file of that framework's, and simulated
# with its device they have the peak and the time that their own comment tells.
pasted() {
    what=$1 name=$2
    shift 2
    expect 0 hbmsim plan "$@" --emit "$what" -o "$work/$name"
    ok "$what: all of it is said" sh -c '! grep -q "not all that was planned\|cannot be said\|Not read" "$1"' \
        sh "$work/$name"
    sed -n 's/^# Read back and simulated: peak \([0-9.]* .iB\) of.*, \([0-9.]* m*s\) a step.*/\1 \2/p' \
        "$work/$name" >"$work/told"
    ok "$what: its figures are told" test -s "$work/told"
}
pasted torchtitan titan.toml $titan
expect 0 hbmsim simulate "$work/titan.toml" --set runtime.expandable_segments=true \
    --set runtime.allocator=max_reserved --set hardware.count=512
ok 'torchtitan: simulated from there, the same time' \
    grep -q "^Step  $(cut -d' ' -f3- "$work/told")," "$work/out"
pasted megatron run.sh $megatron
ok 'megatron: hosts of eight' grep -q -- '--nproc_per_node 8 --nnodes 64' "$work/run.sh"
expect 0 hbmsim simulate "$work/run.sh" --set batch.global=1024
ok 'megatron: simulated from there, the same time' \
    grep -q "^Step  $(cut -d' ' -f3- "$work/told")," "$work/out"
pasted hf-trainer args.yaml examples/quickstart/model.yaml --set compiler=torch
ok 'hf-trainer: FSDP' grep -q '^fsdp: full_shard' "$work/args.yaml"
run hbmsim import "$work/args.yaml" num_processes=8
ok 'hf-trainer: imports' test "$status" = 0
pasted levanter levanter.yaml examples/quickstart/model.yaml
expect 0 hbmsim simulate "$work/levanter.yaml" --set hardware.device=h100 --set mesh.fsdp=8
ok 'levanter: simulated from there, the same time' \
    grep -q "^Step  $(cut -d' ' -f3- "$work/told")," "$work/out"
expect 0 hbmsim plan examples/quickstart/model.yaml --set model.name=mine --set model.d_model=2048 \
    --set compiler=torch --emit torchtitan
out_has '# Not read back: torchtitan has no name for this model'

expect 2 hbmsim plan $titan --emit megatron
err_has 'examples/torch/titan.yaml: error: --emit: the file is of compiler torch; allowed: torchtitan, torchtitan-recipe, hf-trainer, yaml'
expect 2 hbmsim plan $titan --emit maxtext
err_has 'allowed: torchtitan, torchtitan-recipe, hf-trainer, yaml'
expect 2 hbmsim plan examples/quickstart/model.yaml --set compiler=xla-gpu --emit torchtitan
err_has 'the file is of compiler xla; allowed: maxtext, levanter, yaml'
expect 2 hbmsim plan $titan --verify
err_has '--verify compiles with JAX'

expect 0 hbmsim advise $titan
out_has 'loss.kernel = compiled'
out_has 'remat.policy = full, remat.every = 2'
out_has 'checkpoint, because the layers are checkpointed so already'
expect 0 hbmsim advise $megatron --json
out_has 'mesh.pipeline = 8'
cp "$work/out" "$work/advice.json"
expect 0 hbmsim plot "$work/advice.json" -o "$work/advice.svg"
expect 0 hbmsim report "$work/small.yaml" -o "$work/report.html"
ok 'the report has settings for torchtitan' grep -q data_parallel_shard_degree "$work/report.html"
ok 'and none for MaxText' sh -c "! grep -q ici_fsdp_parallelism '$work/report.html'"
expect 0 hbmsim plan "$work/small.yaml" --json --full -o "$work/plan.json"
expect 0 hbmsim plot "$work/plan.json" -o "$work/plan.svg"
expect 0 hbmsim simulate $megatron --json --full --rank 3 -o "$work/rank.json"
for kind in timeline breakdown addressmap; do
    expect 0 hbmsim plot "$work/rank.json" --kind $kind -o "$work/$kind.svg"
done
expect 0 hbmsim sweep "$work/small.yaml" --x batch.global=8..64*2 --y remat.policy=none,full --json
cp "$work/out" "$work/sweep.json"
expect 0 hbmsim plot "$work/sweep.json" -o "$work/fit.svg"

# Symmetric memory is no figure of the allocator's: 4 sequences of 4096 x 1024 x 2 B, a half of them twice.
set -- --set mesh.fsdp=4 --set mesh.tensor=2 --set sharding.residual_over_tensor=true --set batch.global=16 \
    --set hardware.hbm=0 --set runtime.compile=true --json
expect 0 hbmsim simulate "$work/small.yaml" "$@"
peak=$(number peak_bytes) budget=$(number budget_bytes)
expect 0 hbmsim simulate "$work/small.yaml" "$@" --set runtime.async_tp=true
ok 'the same peak, of less' test "$(number peak_bytes) $(number budget_bytes)" = "$peak $((budget - (32 << 20)))"
expect 2 hbmsim simulate "$work/small.yaml" --set runtime.async_tp=true
err_has 'set runtime.async_tp=true: error: compiler: torch: runtime.async_tp: is of compiled layers'
# Userbuffers: 8 sequences of 4096 x 1024, of ten products in two bytes.
set -- --set runtime.framework=megatron --set runtime.allocator=max_allocated --set mesh.fsdp=1 --set mesh.data=4 --set mesh.tensor=2 \
    --set hardware.hbm=0 --json
expect 2 hbmsim simulate "$work/small.yaml" "$@" --set runtime.async_tp=true
err_has 'runtime.async_tp: is of a residual that is split over tensor'
set -- "$@" --set sharding.residual_over_tensor=true
expect 0 hbmsim simulate "$work/small.yaml" "$@"
peak=$(number peak_bytes) budget=$(number budget_bytes)
expect 0 hbmsim simulate "$work/small.yaml" "$@" --set runtime.async_tp=true
ok 'the same peak, of less' test "$(number peak_bytes) $(number budget_bytes)" = "$peak $((budget - (640 << 20)))"

# Cached memory goes back before a request fails.
expect 0 hbmsim simulate "$work/small.yaml" --set mesh.fsdp=8 --set hardware.hbm=100GiB
ok 'no retry' sh -c '! grep -q num_alloc_retries "$1"' sh "$work/out"
expect 2 hbmsim simulate "$work/small.yaml" --set mesh.fsdp=8 --set runtime.gc_threshold=0.8
err_has 'runtime.gc_threshold: does nothing without a limit'

# A refusal stands at the key, in the words of the file that it is from.
cat >"$work/stages.toml" <<'END'
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 8
seq_len = 4096
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 1
pipeline_parallel_degree = 2
END
expect 2 hbmsim simulate "$work/stages.toml" --set batch.global=16
err_has 'stages.toml:8:34: error: compiler: torch: mesh.data: '
expect 2 hbmsim simulate "$work/small.yaml" --set mesh.fsdp=4 --set mesh.pipeline=2 \
    --set model.tied_embeddings=true --set pipeline.microbatches=4 --set pipeline.schedule=1f1b
err_has 'set model.tied_embeddings=true: error: compiler: torch: model.tied_embeddings: '

# Dense layers over the ranks of experts: where Megatron has them there, and only there.
printf 'model: {preset: qwen3-30b-a3b}\nbatch: {global: 128, seq: 4096}\nhardware: {device: h100, count: 64}\n' >"$work/moe.yaml"
expect 0 hbmsim plan "$work/moe.yaml" --emit megatron
out_has '# Read back and simulated: peak '
ok 'what is pasted is what was planned' sh -c '! grep -q "not all that was planned" "$1"' sh "$work/out"
finish
