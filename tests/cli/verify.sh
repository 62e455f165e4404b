# hbmsim verify: the compiler is a stand-in interpreter that answers well, badly or not at all;
# what the reference program refuses is asked of the real one, where there is a Python.
. tests/tap.sh

cat >"$work/m.yaml" <<'YAML'
model: {preset: llama3-8b}
mesh: {fsdp: 64}
batch: {global: 64, seq: 2048}
hardware: {device: tpu-v5e, count: 64}
YAML
model=$work/m.yaml

# interpreter NAME: a program of this name whose body is standard input.
interpreter() {
    { echo '#!/bin/sh'; cat; } >"$work/$1"
    chmod +x "$work/$1"
}

# answers NAME JSON: prints it, having read all of its input.
answers() {
    echo "$2" >"$work/$1.json"
    interpreter "$1" <<SH
cat >"$work/$1.stdin"
echo "\$@" >"$work/$1.args"
cat "$work/$1.json"
SH
}

# verify NAME OPTIONS...: with that interpreter.
verify() {
    tap_name=$1
    shift
    hbmsim verify "$model" --python "$work/$tap_name" "$@"
}

about='"compiler": "libtpu 9.9", "device": "tpu-v5e", "devices": 64, "topology": "v5e:8x8", "versions": {"jax": "1.2", "libtpu": "9.9"}'
gib=1073741824
parts() {
    echo "\"argument_bytes\": $1, \"output_bytes\": $2, \"alias_bytes\": $3, \"temp_bytes\": $4, \"host_bytes\": 0, \"total_bytes\": $5"
}

# --- it fits, it does not
answers good "{$about, $(parts $gib $gib $gib $((7 * gib)) $((8 * gib)))}"
expect 0 verify good
err_is ''
out_has 'compiled by libtpu 9.9 for v5e:8x8: 8.00 GiB of 15.75; predicted 7.05'
out_has 'temp           7.00 GiB     5.64 GiB'
out_has 'FITS: 7.75 GiB free; the prediction is -11.9 % off'
ok 'no shell, no bytecode' grep -qx -e '-B .*/examples/verify/verify.py' "$work/good.args"
expect 0 hbmsim verify "$model" --input
{ cat "$work/good.stdin" && echo; } >"$work/line"
same "$work/out" "$work/line"
out_has '"reshard_after_forward": true'

answers large "{$about, $(parts $gib $gib $gib $((16 * gib)) $((17 * gib)))}"
expect 1 verify large
out_has '17.00 GiB of 15.75; predicted 7.05'
out_has 'DOES NOT FIT: 1.25 GiB too much'
expect 0 verify large --set hardware.hbm=20GiB
# A chip of v7 is two devices.
answers two "{\"compiler\": \"libtpu 9.9\", \"device\": \"tpu-v7\", \"devices\": 64, \"topology\": \"tpu7x:2x4x4\", \"versions\": {}, $(parts $gib $gib $gib $((7 * gib)) $((8 * gib)))}"
expect 0 verify two --set hardware.device=tpu-v7
answers bare "{$about, \"total_bytes\": 18253611008}"
expect 1 verify bare
out_has 'argument       not told     1.41 GiB'

expect 0 verify good --json
sed '/"error_pct"/,$d; /^  "name"/,/^  }/d' "$work/out" >"$work/head"
cat >"$work/wanted" <<'JSON'
{
  "fits": true,
  "by": "libtpu 9.9",
  "topology": "v5e:8x8",
  "compiled_bytes": 8589934592,
  "predicted_bytes": 7567148032,
  "budget_bytes": 16911433728,
  "argument_bytes": 1073741824,
  "output_bytes": 1073741824,
  "alias_bytes": 1073741824,
  "temp_bytes": 7516192768,
  "host_bytes": 0,
JSON
same "$work/head" "$work/wanted"
out_has '"libtpu": "9.9"'

# --- the record
expect 0 verify good --keep "$work/runs.jsonl" --id one
cp "$work/runs.jsonl" "$work/one"
printf '%s' "$(cat "$work/one")" >"$work/runs.jsonl" # without its last line feed
expect 1 verify large --keep "$work/runs.jsonl"
ok 'two records, a line each' test "$(wc -l <"$work/runs.jsonl")" -eq 2
head -n 1 "$work/runs.jsonl" >"$work/first"
same "$work/first" "$work/one"
ok 'the first is the one asked for' grep -q '^{"id": "one", "source": "xla-tpu-aot/verify"' \
    "$work/runs.jsonl"
ok 'the second names itself' grep -q '^{"id": "verify-llama3-8b-tpu-v5e-64-[0-9a-f]*"' \
    "$work/runs.jsonl"
expect 0 hbmsim validate "$work/runs.jsonl" --json
out_has '"measured_bytes": 18253611008'
cp "$work/runs.jsonl" "$work/before"
expect 3 verify good --keep "$work/none/runs.jsonl"
expect 3 verify missing --keep "$work/runs.jsonl"
same "$work/runs.jsonl" "$work/before"

# --- refused, failing
answers refuses '{"error": "stack.axis: 1 is not in the reference step; allowed: 0"}'
echo 'exit 2' >>"$work/refuses"
expect 2 verify refuses
err_has "m.yaml: error: stack.axis: 1 is not in the reference step; allowed: 0; --maxtext DIR compiles"
answers lacks '{"error": "libtpu is missing; install it with: pip install \"jax[tpu]\""}'
echo 'exit 3' >>"$work/lacks"
expect 3 verify lacks
err_is 'hbmsim verify: libtpu is missing; install it with: pip install "jax[tpu]"'
interpreter traceback <<'SH'
echo 'Traceback (most recent call last):' >&2
echo 'ImportError: no such thing' >&2
exit 1
SH
expect 3 verify traceback
err_is "hbmsim verify: '$work/traceback' gave no answer (status 1): ImportError: no such thing"
answers late "{$about, $(parts $gib $gib $gib $gib $((2 * gib)))}"
echo 'exit 7' >>"$work/late"
expect 3 verify late
err_has 'ended with status 7'
expect 3 hbmsim verify "$model" --python "$work/missing"
err_has "missing' is not there: install Python 3, then JAX with: pip install \"jax[tpu]\""
expect 3 hbmsim verify "$model" --python "$work/missing" --set hardware.device=nvidia-h100 \
    --set compiler=xla-gpu
err_has 'pip install "jax[cuda12]"'
echo 'no program' >"$work/plain"
expect 3 hbmsim verify "$model" --python "$work/plain"
err_has 'cannot be run: Permission denied'

# --- killed, hanging, long
interpreter killed <<'SH'
kill -9 $$
SH
expect 3 verify killed
err_has 'the compiler was killed by signal 9'
interpreter hangs <<SH
sleep 1000 &
echo \$! >"$work/sleeper"
wait
SH
gone() {
    tap_tries=0
    while kill -0 "$1" 2>/dev/null && [ $tap_tries -lt 50 ]; do
        sleep 0.1
        tap_tries=$((tap_tries + 1))
    done
    ! kill -0 "$1" 2>/dev/null
}
expect 3 verify hangs --compile-seconds 1
err_has 'the compiler was stopped after 1 s; a longer time can be given with --compile-seconds'
ok 'with what it had started' gone "$(cat "$work/sleeper")"
interpreter stubborn <<SH
trap '' TERM
echo \$\$ >"$work/sleeper"
while :; do sleep 1; done
SH
expect 3 verify stubborn --compile-seconds 1
err_has 'stopped after 1 s'
ok 'also one that will not end' gone "$(cat "$work/sleeper")"
interpreter talks <<'SH'
exec yes '{"total_bytes": 1}'
SH
expect 3 verify talks --compile-seconds 60
err_has 'printed more than an answer: it was stopped'
interpreter shouts <<SH
yes 'a long message on stderr' | head -c 3000000 >&2
echo 'the end' >&2
exit 1
SH
expect 3 verify shouts
err_has 'gave no answer (status 1): the end'
interpreter deaf <<SH
exec <&-
cat "$work/good.json"
SH
expect 0 verify deaf
rm -f "$work/sleeper"
"$HBMSIM" verify "$model" --python "$work/hangs" >"$work/out" 2>"$work/err" </dev/null &
child=$!
while [ ! -s "$work/sleeper" ] && kill -0 "$child" 2>/dev/null; do sleep 0.1; done
kill -TERM "$child" 2>/dev/null || :
status=0
wait "$child" 2>/dev/null || status=$?
ok 'a signal ends it' test "$status" -eq 143
ok 'and what it had started' gone "$(cat "$work/sleeper")"

# --- lying
lies() {
    answers liar "$1"
    expect 3 verify liar
    err_has "$2"
}
lies "{$about, $(parts $gib $gib $gib $gib $gib)}" \
    "the answer's parts do not sum to its total_bytes 1073741824"
lies "{$about}" 'the answer has no total_bytes'
lies "{$about, \"total_bytes\": -5}" 'the answer has no total_bytes'
lies "{$about, \"total_bytes\": 1e30}" 'the answer has no total_bytes'
lies "{$about, \"total_bytes\": \"8\"}" 'the answer has no total_bytes'
sums=$(parts $gib $gib $gib $gib $((2 * gib)))
lies "{\"compiler\": \"x\", \"device\": \"tpu-v6e\", \"devices\": 64, \"topology\": \"v6e:8x8\", $sums}" \
    "the answer is of 0 x 'tpu-v6e' ('v6e:8x8'), not of 64 x tpu-v5e"
lies "{\"compiler\": \"x\", \"device\": \"tpu-v5e\", \"devices\": 8, \"topology\": \"v5e:2x4\", $sums}" \
    "the answer is of 8 x 'tpu-v5e' ('v5e:2x4'), not of 64 x tpu-v5e"
lies "{\"compiler\": \"x\", \"device\": \"tpu-v5e\", \"devices\": 64, \"topology\": \"v5e:4x4\", $sums}" \
    "not of 64 x tpu-v5e"
lies 'no JSON at all' 'gave no answer (status 0)'
lies "{$about, $sums} {}" 'gave no answer (status 0)'
lies '[1]' 'gave no answer (status 0)'
lies '' 'gave no answer (status 0)'
printf '{"error": "bell\\u0007and\\u001b[31m red"}\n' >"$work/liar.json"
echo 'exit 3' >>"$work/liar"
expect 3 verify liar
err_is 'hbmsim verify: bell and [31m red'

# --- usage
expect 2 hbmsim verify
expect 2 hbmsim verify "$model" --compile-seconds 0
expect 2 hbmsim verify "$work/none.yaml"

# --- the reference program itself: what it refuses, before it looks for JAX
refuses() {
    expect 2 hbmsim verify "$model" --python python3 --set "$1"
    err_has "$2"
}
if command -v python3 >/dev/null 2>&1; then
    refuses sharding.optimizer_over_data=true \
        'error: sharding.optimizer_over_data: true is not in the reference step; allowed: false'
    expect 2 hbmsim verify "$model" --python python3 --set model.vocab=128257 \
        --set 'mesh={fsdp: 32, tensor: 2}'
    err_has 'model.vocab: 128257 words are not split evenly over tensor 2'
    expect 2 hbmsim verify "$model" --python python3 --set 'model={preset: phi-3-medium}' \
        --set 'mesh={fsdp: 16, tensor: 4}' --set hardware.device=nvidia-h100 --set compiler=xla-gpu
    err_has "kv_heads: 10 are not split evenly over tensor 4, as JAX's call of cuDNN wants it"
    refuses remat.every=2 'remat.every: 2 is not in the reference step; allowed: 1'
    refuses 'remat={policy: none, modules: [mlp]}' 'remat.modules: parts of a layer'
    refuses model.positions=16 'model.positions: 16 learnt positions, and sequences of'
    refuses 'model.blocks[0].attention.fused_qkv=true' 'model.blocks[0].attention.fused_qkv: true'
    model=$work/shared.yaml
    sed 's/llama3-8b/deepseek-v2-lite/' "$work/m.yaml" >"$model"
    refuses 'model.blocks[1].moe.bias=true' 'model.blocks[1].moe.bias: true is not in the reference step; allowed: false'
    refuses 'model.blocks[0].attention.bias=true' 'model.blocks[0].attention.bias: true is not in the reference step; allowed: false'
    model=$work/m.yaml
    refuses 'model.blocks[0].mlp.fused=true' 'model.blocks[0].mlp.fused: true'
    refuses 'model.blocks[0].pipelined=false' 'model.blocks[0].pipelined: false'
    refuses precision.params=f16 'precision.params: f16 is not in the reference step; allowed: f32, bf16'
    refuses hardware.device=nvidia-gb200 'hardware.device: the reference step is not compiled for nvidia-gb200'
    model=$work/gpu.yaml
    cat >"$model" <<'YAML'
model: {preset: llama3-8b}
mesh: {fsdp: 8}
batch: {global: 8, seq: 2048}
hardware: {device: amd-mi300x, count: 8}
compiler: xla-gpu
YAML
    refuses remat.every=1 'allowed: naive, blocked (--set model.blocks[0].attention.kernel=blocked)'
    sed 's/amd-mi300x/nvidia-h100/' "$model" >"$work/h100.yaml"
    model=$work/h100.yaml
    refuses optimizer.offload=pinned_host \
        'optimizer.offload: pinned_host cannot be judged without a device on GPUs'
    refuses 'model.blocks[0].attention.sinks=true' \
        'model.blocks[0].attention.kernel: flash is not in the reference step; allowed: naive, blocked'
    sed 's/llama3-8b/deepseek-v2-lite/' "$work/h100.yaml" >"$work/mla.yaml"
    model=$work/mla.yaml
    refuses remat.every=1 \
        'model.blocks[0].attention.kernel: flash is not in the reference step; allowed: naive, blocked'
    for card in deepseek-v2-lite deepseek-v3 gpt-oss-20b mixtral-8x7b gemma3-4b bloom-176b; do
        printf 'model: {preset: %s}\nhardware: {device: tpu-v5p, count: 1}\n' $card >"$work/card.yaml"
        expect 0 hbmsim models $card --json
        sed -n 's/^      "parameters": \([0-9]*\),$/\1/p' "$work/out" >"$work/wanted"
        expect 0 hbmsim verify "$work/card.yaml" --input
        ok "$card has its card's parameters" sh -c "python3 -B tests/cli/verify_weights.py <'$work/out' >'$work/counted'"
        same "$work/counted" "$work/wanted"
    done
    interpreter bare_python <<'SH'
exec python3 -S -E -s "$@"
SH
    model=$work/m.yaml
    expect 3 verify bare_python
    err_is 'hbmsim verify: JAX is missing; install it with: pip install "jax[tpu]"'
    mkdir "$work/tmp"
    TMPDIR=$work/tmp expect 3 verify bare_python
    ok 'it leaves no folder behind' test -z "$(ls "$work/tmp")"
    ok 'the program parses' python3 -c 'import ast, glob, sys
for f in glob.glob("examples/verify/*.py"): ast.parse(open(f).read(), f)'
    # JAX asks this machine's GPU what cuDNN has; the answer is the target's.
    ok 'the GPU that is compiled for says what cuDNN has' python3 -c 'import sys, types
name = "jax._src.cudnn.fused_attention_stablehlo"
for n in ("jax", "jax._src", "jax._src.cudnn", name):
    sys.modules[n] = types.ModuleType(n)
asked = sys.modules["jax._src.cudnn"].fused_attention_stablehlo = sys.modules[name]
sys.path.insert(0, "examples/verify")
import target
target.tell_capability(9)
answers = [asked.check_compute_capability(c) for c in ("8.0", "9.0", "10.0")]
sys.exit(answers != [True, True, False])'
else
    skip 'what the reference program refuses' 'no python3'
fi

# --- MaxText's own program, of a checkout: a stand-in for both
expect 0 verify good --maxtext "$work" --setting model_name=llama3-8b --set 'remat={policy: dots}'
ok 'the settings of --emit maxtext, then those given' grep -q \
    "run_maxtext.py $work model_name=llama3-8b ici_data_parallelism=1 .* scan_layers=true .*model_name=llama3-8b\$" \
    "$work/good.args"
out_has '# cannot be said: results of all products are kept; nearest:'
expect 2 verify good --setting model_name=llama3-8b
err_has '--setting goes with --maxtext'
if command -v python3 >/dev/null 2>&1; then
    mkdir "$work/empty"
    expect 2 hbmsim verify "$model" --maxtext "$work/empty"
    err_has 'is no checkout of MaxText: it has no src/maxtext/trainers/pre_train/train_compile.py'
    # Modules of these names, and a train_compile that leaves what the compiler leaves.
    at=$work/checkout/src/maxtext
    mkdir -p "$at/trainers/pre_train" "$at/configs" "$work/modules/libtpu" "$work/modules/jax" \
        "$work/modules/jaxlib" "$work/modules/numpy"
    for module in libtpu jax jaxlib numpy; do : >"$work/modules/$module/__init__.py"; done
    cat >"$at/trainers/pre_train/train_compile.py" <<'PY'
import sys
print('chatter on standard output')
keys = dict(a.split('=', 1) for a in sys.argv[2:])
assert sys.argv[1].endswith('src/maxtext/configs/base.yml'), sys.argv
assert keys['compile_topology'] == 'v5e-64' and keys['model_name'] == 'llama3-8b', keys
assert keys['ici_fsdp_parallelism'] == '64' and keys['per_device_batch_size'] == '1', keys
if keys.get('fail') == 'import':
    import nothing_of_this_name
if keys.get('fail') == 'syntax':
    exec('type Context = ', {})
if keys.get('fail') == 'raise':
    raise ValueError('unknown setting')
if keys.get('fail') == 'exit':
    sys.exit(4)
folder = keys['compile_xla_flags'].split('=')[1]
name = folder + '/module_0001.jit_train_step.cl_1.after_optimizations-'
open(name + 'buffer-assignment.txt', 'w').write("""BufferAssignment:
allocation 0: size 3221225472, color 0, parameter 0, shape |f32[8]| at ShapeIndex {}, maybe-live-out:
 value: <1 p @0> (size=3221225472,offset=0): f32[8]
allocation 1: size 1024, color 0, output shape is |f32[8]|, maybe-live-out:
allocation 2: size 4294967296, color 0, preallocated-temp:
allocation 3: size 512, color 1, preallocated-temp:
allocation 4: size 2048, color 5, parameter 1, shape |f32[8]| at ShapeIndex {}:
allocation 5: size 64, thread-local:
allocation 6: size 32, constant:

Total bytes used: 1
""")
if keys.get('fail') != 'early':
    open(name + 'memory-usage-report.txt', 'w').write('x')
PY
    interpreter fake <<SH
PYTHONPATH=$work/modules exec python3 "\$@"
SH
    expect 0 verify fake --maxtext "$work/checkout"
    # predicted is what MaxText makes of its settings
    out_has 'for v5e:8x8: 7.00 GiB of 15.75; predicted 6.07'
    out_has 'argument       3.00 GiB'
    out_has 'temp           4.00 GiB'
    out_has 'host           2.00 KiB'
    expect 3 verify fake --maxtext "$work/checkout" --setting fail=import
    err_has "MaxText lacks a package: No module named 'nothing_of_this_name'"
    expect 3 verify fake --maxtext "$work/checkout" --setting fail=syntax
    err_has 'does not read that MaxText (<string>, line 1); --python names another'
    expect 3 verify fake --maxtext "$work/checkout" --setting fail=raise
    err_has 'train_compile failed: unknown setting'
    expect 3 verify fake --maxtext "$work/checkout" --setting fail=exit
    err_has 'train_compile ended with 4'
    expect 3 verify fake --maxtext "$work/checkout" --setting fail=early
    err_has 'train_compile ended without a compiled step'
    expect 2 verify fake --maxtext "$work/checkout" --set hardware.device=nvidia-h100 \
        --set compiler=xla-gpu
    err_has 'hardware.device: MaxText is not compiled for nvidia-h100 here'
else
    skip 'MaxText in a stand-in checkout' 'no python3'
fi

# --- the real compiler, once
python=${HB_PYTHON:-python3}
if [ -n "${HB_LONG:-}" ] && "$python" -c 'import jax, libtpu' 2>/dev/null; then
    expect 0 hbmsim verify "$model" --python "$python" --json
    out_has '"topology": "v5e:8x8"'
    out_has '"compiled_bytes": 75'
else
    skip 'the TPU compiler' 'HB_LONG is not set, or python3 (HB_PYTHON) has no JAX with libtpu'
fi
finish
