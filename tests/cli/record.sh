# hbmsim record: one line of JSON for `validate` from each print; what is not told is null.
. tests/tap.sh

logs=tests/golden/logs
cat >"$work/m.yaml" <<'YAML'
hbmsim: 1
model: {preset: llama3-8b}
mesh: {fsdp: 8}
hardware: {device: tpu-v5e, count: 8}
compiler: xla-tpu
YAML

# The measured part of the last record.
measured() {
    sed 's/.*"measured": //; s/, "note".*//' "$work/out"
}

# measured_is TEXT
measured_is() {
    tap_found=$(measured)
    if [ "$tap_found" = "$1" ]; then
        tap ok "measured of: $last"
    else
        tap 'not ok' "measured of: $last"
        echo "# wanted $1"
        echo "# found  $tap_found"
    fi
}

record() {
    log=$1
    shift
    expect 0 hbmsim record "$logs/$log.log" --config "$work/m.yaml" --id "$log" "$@"
}

record memory-analysis --source me --group a/b --version jax=0.10.2 --version libtpu=0.0.51 \
    --note 'first try' --step-seconds 1.25
measured_is '{"kind": "xla_total", "argument_bytes": 3221225472, "output_bytes": 1073741824, "alias_bytes": 1073741824, "temp_bytes": 6979321856, "host_bytes": 0, "peak_bytes": 10200547328, "fits": true, "step_seconds": 1.25}'
out_has '{"id": "memory-analysis", "source": "me", "group": "a/b", "versions": {"jax": "0.10.2", "libtpu": "0.0.51"}, "name": "llama3-8b", "version": "'
out_has '"hardware": {"device": "tpu-v5e", "count": 8'
out_has '"compiler": "xla-tpu"}'
out_has '"note": "first try"}'
ok 'a record is one line' test "$(wc -l <"$work/out")" -eq 1
err_is ''

record tpu-e1000
measured_is '{"kind": "xla_total", "argument_bytes": null, "output_bytes": null, "alias_bytes": null, "temp_bytes": null, "host_bytes": null, "peak_bytes": 30687541330, "fits": false, "step_seconds": null}'
out_has '"note": "printed to the nearest 10.24 MiB"}'
record maxtext
measured_is '{"kind": "xla_total", "argument_bytes": 15676630630, "output_bytes": 15676630630, "alias_bytes": null, "temp_bytes": 48425756262, "host_bytes": 0, "peak_bytes": 64209761075, "fits": true, "step_seconds": null}'
record ocean-gpu --set compiler=xla-gpu --set hardware.device=nvidia-h100
measured_is '{"kind": "runtime_peak", "argument_bytes": null, "output_bytes": null, "alias_bytes": null, "temp_bytes": 51712165888, "host_bytes": null, "peak_bytes": 73606532864, "static_bytes": 21894366976, "fits": false, "step_seconds": null}'
record jax-memory-stats
measured_is '{"kind": "runtime_peak", "argument_bytes": null, "output_bytes": null, "alias_bytes": null, "temp_bytes": null, "host_bytes": null, "peak_bytes": 2353927680, "static_bytes": 2353927680, "fits": true, "step_seconds": null}'

record torch-fragmented --set compiler=torch --set hardware.device=nvidia-h100
measured_is '{"kind": "max_allocated", "argument_bytes": null, "output_bytes": null, "alias_bytes": null, "temp_bytes": null, "host_bytes": null, "peak_bytes": 77438260347, "reserved_bytes": 82270098555, "fits": false, "step_seconds": null}'
err_is ''
record megatron --kind max_reserved --fits no
measured_is '{"kind": "max_reserved", "argument_bytes": null, "output_bytes": null, "alias_bytes": null, "temp_bytes": null, "host_bytes": null, "peak_bytes": 18331205632, "static_bytes": 10748500992, "reserved_bytes": 18331205632, "fits": false, "step_seconds": null}'
err_is 'hbmsim: warning: the log is of torch, the configuration says compiler: xla-tpu'

# From standard input; into a file; what is written is read again as a configuration.
hbmsim record $logs/memory-analysis.log --config "$work/m.yaml" --id x >"$work/want"
run sh -c '"$HBMSIM" record --config "$1/m.yaml" --id x <tests/golden/logs/memory-analysis.log' sh "$work"
same "$work/out" "$work/want"
expect 0 hbmsim record $logs/memory-analysis.log --config "$work/m.yaml" --id x -o "$work/told"
same "$work/told" "$work/want"
sed 's/.*"config": //; s/, "measured".*//' "$work/want" >"$work/again.yaml"
expect 0 hbmsim record $logs/memory-analysis.log --config "$work/again.yaml" --id x
same "$work/out" "$work/want"

expect 1 hbmsim record $logs/nothing.log --config "$work/m.yaml" --id x
err_is 'hbmsim record: no record: the log has no figure that a prediction can be compared with'
out_is ''
expect 1 hbmsim record $logs/cuda-async.log --config "$work/m.yaml" --id x
err_is 'hbmsim record: no record: the log tells the request that failed, not what stood beside it'
printf 'RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 1.00G on TPU, device ordinal 3\n' >"$work/refused.log"
expect 1 hbmsim record "$work/refused.log" --config "$work/m.yaml" --id x
err_is 'hbmsim record: no record: the log tells the request that failed, not what stood beside it'
expect 1 hbmsim record $logs/multihost-load.log --config "$work/m.yaml" --id x
err_has 'not of the step'
expect 1 hbmsim record $logs/memory-analysis.log --config "$work/m.yaml" --id x --kind max_allocated
err_has 'no figure of the kind asked for'

# Statistics that count a refused request leave open whether it fit.
cat >"$work/ooms.log" <<'END'
|                  PyTorch CUDA memory summary, device ID 0                 |
|            CUDA OOMs: 1            |        cudaMalloc retries: 1         |
| Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
| GPU reserved memory   |   12420 MB |   12420 MB |   16924 MB |    4504 MB |
END
expect 0 hbmsim record "$work/ooms.log" --config "$work/m.yaml" --id x
out_has '"peak_bytes": 5113905152'
out_has '"fits": null'
out_has 'the statistics count refused requests'

# DeepSpeed-Chat; axlearn's analysis of a compiled program.
printf 'MemAllocated=17.94GB, MaxMemAllocated=54.06GB\n' >"$work/chat.log"
expect 0 hbmsim record "$work/chat.log" --config "$work/m.yaml" --id x
out_has '"peak_bytes": 58046483005'
printf 'Input memory: 4.4GB\nOutput memory: 4.4GB\nTemp memory: 170.9GB\nCode memory: 0.0MB\nTotal HBM memory: 179.6GB\n' >"$work/axlearn.log"
expect 0 hbmsim record "$work/axlearn.log" --config "$work/m.yaml" --id x
out_has '"kind": "xla_total"'
out_has '"temp_bytes": 183502477722'

# `validate` takes what `record` writes.
hbmsim record $logs/memory-analysis.log --config "$work/m.yaml" --id one >"$work/runs.jsonl"
hbmsim record $logs/tpu-e1000.log --config "$work/m.yaml" --id two >>"$work/runs.jsonl"
expect 0 hbmsim validate --json "$work/runs.jsonl"
out_has '"id": "two"'
ok 'no record failed' grep -Eq '"failed": *0' "$work/out"

expect 2 hbmsim record $logs/memory-analysis.log
err_has "'record' wants --config FILE.yaml, what ran"
err_has "'record' wants --id ID, a name for the record"
expect 2 hbmsim record $logs/memory-analysis.log --config "$work/m.yaml" --id x --version jax
err_has "--version: 'jax' is not NAME=VERSION"
expect 2 hbmsim record $logs/memory-analysis.log --config "$work/m.yaml" --id x --kind all
err_has "--kind: 'all' is not one of"
expect 2 hbmsim record $logs/memory-analysis.log --config "$work/m.yaml" --id x --step-seconds -1
err_has '--step-seconds: -1 is no time'
expect 2 hbmsim record "$work/no.log" --config "$work/m.yaml" --id x
err_has 'no.log: error: cannot be read: No such file or directory'
expect 2 hbmsim record $logs/memory-analysis.log --config "$work/no.yaml" --id x
err_has 'no.yaml'
echo 'model: {preset: llama3-8b}' >"$work/bad.yaml"
echo 'mesh: {fspd: 8}' >>"$work/bad.yaml"
expect 2 hbmsim record $logs/memory-analysis.log --config "$work/bad.yaml" --id x
err_has "bad.yaml:2:8:"
finish
