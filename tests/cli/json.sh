# Each result as JSON begins with name, version, compiler, device and configuration, and the
# configuration is the whole one: read again it gives the same result.
. tests/tap.sh

model=examples/quickstart/model.yaml
small='plan={search: {loss_chunks: [1, 8]}}'

# The value of a key of the result itself, as it is written.
value() { sed -n "s/^  \"$1\": \(.*[^,]\),\{0,1\}\$/\1/p" "$work/r.json" | head -n 1; }

# The first five keys, in order.
head_of() { sed -n 's/^  "\([a-z_]*\)":.*/\1/p' "$work/r.json" | head -n 5 | tr '\n' ' '; }

# head_is COMPILER DEVICE COMMAND...: as they are written, with their quotes.
head_is() {
    compiler=$1 device=$2
    shift 2
    hbmsim "$@" --json >"$work/r.json" 2>"$work/err" || true
    ok "$1: its head" test "$(head_of)" = 'name version compiler device configuration '
    ok "$1: version" test "$(value version)" = "\"$("$HBMSIM" --version | sed 's/hbmsim //')\""
    ok "$1: compiler $compiler" test "$(value compiler)" = "$compiler"
    ok "$1: device $device" test "$(value device)" = "$device"
}

# The configuration of the result just read, as a file, simulated: the peak that it has.
again() {
    sed -n '/^  "configuration": {/,/^  }/p' "$work/r.json" |
        sed '1s/.*/{/; $s/.*/}/' >"$work/again.json"
    hbmsim simulate "$work/again.json" --json | sed -n 's/^  "peak_bytes": \([0-9]*\),/\1/p'
}

head_is '"xla-gpu"' '"nvidia-h100"' simulate $model --set loss.chunks=8
ok 'simulate: its configuration again' test "$(again)" = "$(value peak_bytes)"
ok 'simulate: the mesh is told' grep -q '^      "fsdp": 8,$' "$work/r.json"
head_is '"xla-gpu"' '"nvidia-h100"' advise $model
ok 'advise: its configuration again' test "$(again)" = "$(value peak_bytes)"
head_is '"xla-gpu"' '"nvidia-h100"' plan $model --set "$small"
ok 'plan: what was asked' test "$(again)" = \
    "$(hbmsim simulate $model --json | sed -n 's/^  "peak_bytes": \([0-9]*\),/\1/p')"
head_is '"xla-gpu"' '"nvidia-h100"' compare $model --vary loss.chunks=8
ok 'compare: each side has a configuration' \
    test "$(grep -c '^      "configuration": {$' "$work/r.json")" = 2
head_is null null compare $model examples/verify/model.yaml
head_is '"xla-gpu"' '"nvidia-h100"' sweep $model --x batch.global=8,16
ok 'sweep: its configuration' test -n "$(again)"
head_is null null sweep $model --x hardware.device=h100,v5p
head_is null '"nvidia-h100"' sweep $model --x compiler=xla-gpu,torch
head_is '"xla-cpu"' null hlo tests/golden/hlo/cpu_4x4_all_pad.hlo.gz
head_is '"xla-tpu"' '"tpu-v4"' explain tests/golden/logs/tpu-hbm.log
head_is null null explain tests/golden/logs/nothing.log
head_is '"torch"' null explain tests/golden/snapshots/step.pickle
head_is '"torch"' null validate tests/golden/torch-titan.jsonl
head_is null '"nvidia-h100"' devices h100
head_is null null models llama3-8b
head_is '"xla-gpu"' '"nvidia-h100"' import examples/import/config.json --set hardware.device=h100
ok 'import: its configuration again' test -n "$(again)"

# A record's configuration is `config`.
run hbmsim record tests/golden/logs/memory-analysis.log --config $model --id my-run
out_has '"name": "llama3-8b", "version": "'
out_has '"compiler": "xla-gpu", "device": "nvidia-h100", "config": {'
finish
