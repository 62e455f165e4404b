# hbmsim calibrate --step and --with-torch: the user's Python is a stand-in that answers well, badly,
# late or not at all; what a step is said to take is what hbmsim predicts, and a known reserve and
# slack more. The reference step itself is run where there is a JAX (on a processor).
. tests/tap.sh

file=$work/profile.yaml
runs=$work/runs.jsonl

# interpreter NAME: a program of this name whose body is standard input.
interpreter() {
    { echo '#!/bin/sh'; cat; } >"$work/$1"
    chmod +x "$work/$1"
}

# step NAME OPTIONS...: with that interpreter.
step() {
    tap_name=$1
    shift
    rm -f "$file"
    hbmsim calibrate --step --python "$work/$tap_name" --date 2026-01-02 "$@"
}

# Peak and time of the configuration that it is sent, by hbmsim itself: 1 GiB and 4 % more, 25 %
# slower.
interpreter good <<SH
cat >"$work/config.json"
echo "\$@" >"$work/args"
"$HBMSIM" simulate "$work/config.json" --json >"$work/told" || exit 1
peak=\$(sed -n 's/^  "peak_bytes": \([0-9]*\),/\1/p' "$work/told")
time=\$(sed -n 's/^  *"step_seconds": \([0-9.e-]*\),*/\1/p' "$work/told" | head -n 1)
awk -v p="\$peak" -v t="\$time" 'BEGIN {
    printf "{\"by\": \"jax 9.9\", \"platform\": \"gpu\", \"device\": \"Stand-in\", "
    printf "\"peak_by\": \"device\", \"peak_bytes\": %.0f, ", 1073741824 + 1.04 * p
    printf "\"step_seconds\": %.9g, \"steps\": 5, \"versions\": {\"jax\": \"9.9\"}}\n", 1.25 * t }'
SH

expect 0 step good --base nvidia-h100 --keep "$runs" -o "$file"
err_has '2 layers, batch 2 x 2048, remat none: predicted '
err_has ' and -20.0 %'
err_has 'this profile predicts these 6 steps within '
err_has '% (memory) and 20.0 % (time)'
err_has '6 records, 0 outliers: a device takes 1024.0 MiB'
err_has 'and 4.00 % (95 %'
ok 'the reserve is in the profile' grep -q '^allocator_slack: \[0.0[34]' "$file"
ok 'no shell, no bytecode' grep -qx -e '-B .*/examples/verify/run_step.py' "$work/args"
ok 'six records' [ "$(grep -c '"kind": *"runtime_peak"' "$runs")" = 6 ]
expect 0 hbmsim calibrate --fit "$runs" --date 2026-01-02 -o "$work/again.yaml"
ok 'a fit to the records is that profile' sh -c "
    grep '^allocator_slack' '$work/again.yaml' | cut -d, -f1 >'$work/a'
    grep '^allocator_slack' '$file' | cut -d, -f1 | cmp -s - '$work/a'"
expect 0 hbmsim validate "$runs"
expect 0 step good --base nvidia-h100 --quick --json
err_has '2 layers, batch 2 x 256'
expect 0 step good --base tpu-v5e
ok 'a TPU is told of its own compiler' grep -q '"xla-tpu"' "$work/config.json"
expect 0 step good --base amd-mi300x
ok 'no cuDNN on AMD' sh -c "! grep -q '\"kernel\": *\"flash\"' '$work/config.json'"

# What a compiler told is no peak of the device, and a processor is not the profile's device.
sed 's/"device\\"/"compiler\\"/; s/\\"peak_by\\": \\"device\\"/\\"peak_by\\": \\"compiler\\"/' \
    "$work/good" >"$work/compiled"
chmod +x "$work/compiled"
rm -f "$runs"
expect 0 step compiled --base nvidia-h100 -o "$file"
err_has '(by the compiler)'
err_has 'reserve and slack are not fitted: that needs 3 steps whose peak the device told'
ok 'nothing is written' [ ! -e "$file" ]
sed 's/\\"platform\\": \\"gpu\\"/\\"platform\\": \\"cpu\\"/' "$work/good" >"$work/slow"
chmod +x "$work/slow"
expect 0 step slow --base nvidia-h100 --keep "$runs" -o "$file"
err_has 'that tests the path alone, and no record is kept'
ok 'no record of another device' [ ! -e "$runs" ]

# PyTorch's own step: bf16 parameters, its kernel; what it allocated is no reserve of the runtime.
rm -f "$runs"
expect 0 step good --with-torch --base nvidia-h100 --keep "$runs" -o "$file"
ok 'the step is PyTorch'"'"'s' grep -qx -e '-B .*/examples/verify/run_torch.py' "$work/args"
ok 'the prediction too' sh -c "grep -q '\"compiler\": *\"torch\"' '$work/config.json' &&
    grep -q '\"params\": *\"bf16\"' '$work/config.json'"
err_has 'this profile predicts these 6 steps within '
err_has 'reserve and slack are not fitted: PyTorch tells what it allocated'
ok 'six records of what was allocated' [ "$(grep -c '"kind": *"max_allocated"' "$runs")" = 6 ]
expect 0 hbmsim validate "$runs"
ok 'no profile is written' [ ! -e "$file" ]
sed 's/\\"device\\", "$/\\"requests\\", "/; s/\\"peak_by\\": \\"device\\"/\\"peak_by\\": \\"requests\\"/' "$work/good" >"$work/counted"
chmod +x "$work/counted"
expect 0 step counted --with-torch --base nvidia-h100
err_has '(by its tensors)'
# The step itself, where there is a PyTorch: its tensors are those that are predicted.
torch=${HB_TORCH_PYTHON:-python3}
if "$torch" -c 'import torch' 2>/dev/null; then
    run hbmsim calibrate --step --with-torch --quick --base nvidia-h100 --python "$torch" --seconds 60
    ok 'PyTorch ran steps' [ "$status" = 0 ]
    ok 'their memory is predicted within 1 %' sh -c "grep -qE 'within 0\.[0-9] % \(memory\)' '$work/err'"
else
    skip 'the step by PyTorch' 'no PyTorch'
fi
for change in 's/"policy": *"[a-z]*"/"policy": "dots"/' 's/"params": *"bf16"/"params": "f32"/'; do
    sed "$change" "$work/config.json" >"$work/other.json"
    python3 - "$work/other.json" >"$work/out" 2>&1 <<'PY' || true
import json, sys
sys.path.insert(0, "examples/verify")
import run_torch
from config import Refused, tree
try:
    run_torch.check(tree(json.load(open(sys.argv[1]))))
except Refused as e:
    print("refused:", e)
PY
    ok "what it has not is refused ($change)" grep -q '^refused: .*: the PyTorch step has nothing else' "$work/out"
done

# It answers badly, or not.
interpreter refuses <<'SH'
cat >/dev/null
echo '{"error": "attention.kernel: no"}'
exit 2
SH
expect 3 step refuses --base nvidia-h100 -o "$file"
err_has 'attention.kernel: no'
err_has 'no step ran: nothing is written'
for answer in '' '{' '[]' '{}' '{"peak_bytes": -5, "step_seconds": 1}' \
    '{"peak_bytes": 5, "step_seconds": "x"}' '{"peak_bytes": 1e400, "step_seconds": 1}' \
    '{"peak_bytes": 99999999999999999999, "step_seconds": 1}' '{"peak_bytes": 5, "step_seconds": 0}'; do
    echo "$answer" >"$work/answer"
    interpreter odd <<SH
cat >/dev/null
cat "$work/answer"
SH
    expect 3 step odd --base nvidia-h100 -o "$file"
    ok "nothing is written after $answer" [ ! -e "$file" ]
done
expect 3 step absent --base nvidia-h100
err_has 'is not there: install Python 3, then JAX for this device'

# Late: it is stopped, with what it started.
interpreter late <<SH
sleep 1000 &
echo \$! >"$work/pid"
wait
SH
expect 3 step late --base nvidia-h100 --seconds 2
err_has 'the step was stopped after '
err_has 'not run: time was up'
# gone PID: it ends soon; who has ended and is not waited for counts too.
gone() {
    tries=0
    while kill -0 "$1" 2>/dev/null && [ $tries -lt 50 ]; do
        case $(ps -o stat= -p "$1" 2>/dev/null) in Z*) return 0 ;; esac
        tries=$((tries + 1))
        sleep 0.1
    done
    ! kill -0 "$1" 2>/dev/null
}
ok 'and what it started is gone' gone "$(cat "$work/pid")"

expect 2 hbmsim calibrate --step
err_has '--step goes with --base'
expect 2 hbmsim calibrate --keep "$runs"
err_has '--keep goes with --step'
expect 2 hbmsim calibrate --step --base nvidia-h1000
expect 2 hbmsim calibrate --with-torch --with-jax
err_has 'not both'

# What would be done.
expect 0 hbmsim calibrate --dry-run --backend cuda --libs "$work" --quick
out_has 'in 20 s, large products 0.33 s each:'
out_has '  libnvrtc.so.12: in none of the folders'
: >"$work/libnvrtc.so.12"
expect 0 hbmsim calibrate --dry-run --libs "$work" --no-capacity
out_has "  $work/libnvrtc.so.12"
out_has 'hip: libraries of one version'
out_has 'granted: not, as wished'

# A framework's attention, beside a stand-in device.
: "${CC:=cc}"
if command -v "$CC" >/dev/null 2>&1; then
    CC=$CC sh tests/standin/build.sh "$work/libs"
    # attention NAME OPTIONS...
    attention() {
        tap_name=$1
        shift
        rm -f "$file"
        hbmsim calibrate --backend cuda --libs "$work/libs/cuda" --seconds 4 --date 2026-01-02 \
            --python "$work/$tap_name" -o "$file" "$@"
    }
    echo '{"by": "torch 9.9, fused", "device": "Stand-in", "forward": [[512, 1e14], [4096, 2e14]],
        "backward": [[512, 0.5e14], [4096, 1.5e14]]}' >"$work/answer"
    interpreter torch <<SH
cat >"$work/question"
cat "$work/answer"
SH
    expect 0 attention torch --with-torch
    err_has 'attention by torch 9.9, fused on Stand-in, heads 128 wide'
    ok 'it was asked for torch' grep -q '"framework": *"torch"' "$work/question"
    for line in 'sdpa_forward_curve: [[[512, 0.3' 'sdpa_backward_curve: [[[512, 0.1' \
        'attention_forward_curve: [[[512, 0.3' 'hbmsim calibrate by torch, 2026-01-02'; do
        ok "the profile has $line" grep -qF "$line" "$file"
    done
    expect 0 hbmsim devices "$file"
    expect 0 attention torch --with-torch --base nvidia-h100
    ok "another kernel's curve stays the base's" grep -q '^attention_forward_curve: \[\[\[512, 0.318' "$file"
    expect 0 attention torch --with-jax --base nvidia-h100
    ok "but for JAX's own" sh -c "! grep -q '^attention_forward_curve: \[\[\[512, 0.318' '$file'"
    for answer in '{"error": "no fused kernel"}' '{"forward": [[512, 1]]}' \
        '{"forward": [[512, -1]], "backward": [[512, 1]]}' '{"forward": [], "backward": []}' \
        '{"forward": [[512, 1], [512, 2]], "backward": [[512, 1]]}' 'no'; do
        echo "$answer" >"$work/answer"
        expect 0 attention torch --with-torch
        err_has 'attention is not measured: '
        err_has 'the profile has no attention'
        ok "no curve is made up of $answer" sh -c "! grep -q '^attention\|^sdpa' '$file'"
    done
else
    skip 'attention beside a device' 'no C compiler'
fi

# The scripts themselves, with the JAX and the torch that python3 has.
if python3 -c 'import jax' 2>/dev/null; then
    JAX_PLATFORMS=cpu
    export JAX_PLATFORMS
    expect 0 hbmsim calibrate --step --quick --base nvidia-h100 --seconds 280
    err_has 'this profile predicts these 2 steps within '
    err_has 'flash does not run on a processor'
    unset JAX_PLATFORMS
else
    skip 'real steps on a processor' 'python3 has no jax'
fi
if command -v python3 >/dev/null 2>&1; then
    echo '{"framework": "jax", "sequences": [128], "width": 64, "heads": 2, "tokens": 128, "seconds": 1}' \
        >"$work/question"
    run sh -c "JAX_PLATFORMS=cpu python3 -B examples/verify/attention.py <'$work/question'"
    ok 'without a fused kernel there is none' [ "$status" = 3 ]
    out_has '{"error": "jax '
else
    skip 'the script for attention' 'no Python'
fi
finish
