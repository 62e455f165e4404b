# The JSON Schemas of the input and of the results: every output and every example configuration
# meets them, by a validator of another hand where it is installed; and what is wrong does not.
. tests/tap.sh

quick=examples/quickstart/model.yaml
small='plan={search: {loss_chunks: [1, 8]}}'
hbmsim help model --json-schema >"$work/model.schema"
hbmsim help json --json-schema >"$work/results.schema"
: >"$work/list"

# out KIND COMMAND...: an output to be held against its schema; and, without any validator: each of
# its own keys is one that `help json` tells.
out() {
    kind=$1
    shift
    count=$((${count:-0} + 1))
    file=$work/$count.json
    hbmsim "$@" >"$file" 2>"$work/err" </dev/null || true
    echo "result $kind $file" >>"$work/list"
    hbmsim help json "$kind" | sed -n 's/^  \([a-z_]*\)?* .*/\1/p' | sort >"$work/told"
    sed -n 's/^  "\([a-z_]*\)":.*/\1/p' "$file" | sort -u >"$work/written"
    ok "$*: its keys are told" test -z "$(comm -13 "$work/told" "$work/written")" -a -s "$file"
}

out simulate simulate $quick --json --full --orders
out simulate simulate $quick --json --set load.method=device_put --set load.processes=64
out simulate simulate examples/torch/titan.yaml --json
out simulate simulate examples/torch/megatron.yaml --json --full
out simulate simulate examples/pipeline/model.yaml --json
out plan plan $quick --json --set "$small" --prices --full
out plan plan $quick --json --set "$small" --budget 2GiB
out plan plan $quick --json --set "$small" --exhaustive --margin none
out sweep sweep $quick --json --x batch.global=3,8,16 --y remat.policy=full,dots --facet loss.chunks=1,8
out sweep sweep $quick --json --x batch.global=8
out advise advise $quick --json --set batch.global=64
out compare compare $quick --json --vary loss.chunks=8 --vary hardware.device=h200
out validate validate tests/golden/lab-tpu.jsonl --json --pairs
out validate validate tests/golden/speed.jsonl --json
out validate validate tests/golden/verdicts.jsonl --json
out import import examples/import/config.json --json
out models models --json
out models models $quick --json
out devices devices --json
out record record tests/golden/logs/memory-analysis.log --config $quick --id a
# A compiler of another's: a stand-in that answers with sizes; it fits, it does not.
cat >"$work/python" <<'END'
#!/bin/sh
cat >/dev/null
cat "$0.json"
END
chmod +x "$work/python"
for size in 60000000000 90000000000; do
    echo '{"compiler": "nvcc 1", "device": "nvidia-h100", "devices": 8, "topology": "h100:8", "versions": {"jax": "1.2"},
        "argument_bytes": 12000000000, "output_bytes": 12000000000, "alias_bytes": 12000000000, "temp_bytes": '$((size - 12000000000))',
        "host_bytes": 0, "total_bytes": '$size'}' >"$work/python.json"
    out verify verify $quick --python "$work/python" --json
    out plan plan $quick --json --set "$small" --verify --verify-most 1 --python "$work/python"
done
echo '{"compiler": "nvcc 1", "device": "nvidia-h100", "devices": 8, "topology": "h100:8", "versions": {}, "total_bytes": 5}' \
    >"$work/python.json"
out verify verify $quick --python "$work/python" --json
hbmsim calibrate --backend cpu --seconds 1 --json -o "$work/bare.yaml" 2>"$work/err"
hbmsim calibrate --backend cpu --seconds 1 --json --base nvidia-h100 -o "$work/based.yaml" 2>"$work/err"
for device in hw/db/*.yaml "$work/bare.yaml" "$work/based.yaml"; do
    echo "result calibrate $device" >>"$work/list"
done
for log in tests/golden/logs/*.log; do
    out explain explain "$log" --json
done
out explain explain tests/golden/snapshots/step.pickle --json
out hlo hlo tests/golden/hlo/cpu_4x4_all_pad.hlo.gz --json --order least --full
for dump in tests/golden/hlo/cpu_*.before.hlo.gz tests/golden/hlo/h100_cond.hlo.gz; do
    out hlo hlo "$dump" --json
done

for preset in '' '--preset llama3-8b'; do
    # shellcheck disable=SC2086
    hbmsim init $preset >"$work/init$(echo "$preset" | tr -d ' ').yaml"
done
for yaml in examples/*/*.yaml models/zoo/*.yaml "$work"/init*.yaml; do
    echo "model $yaml" >>"$work/list"
done
ok 'init names the schema for editors' \
    test "$(head -n 1 "$work/init.yaml")" = '# yaml-language-server: $schema=model.schema.json'

# What is wrong must not pass: a key too many, one that is missing, a wrong type, a wrong word.
sed 's/"fits"/"fit"/' "$work/1.json" >"$work/bad1.json"
sed 's/^  "peak_bytes": \([0-9]*\),/  "peak_bytes": "\1",/' "$work/1.json" >"$work/bad2.json"
sed 's/"policy": "full"/"policy": "ful"/' "$work/1.json" >"$work/bad3.json"
sed 's/^hbm_bytes:.*/hbm_bytes: [many, smi]/' hw/db/nvidia-h100.yaml >"$work/bad7.yaml"
sed 's/^cores:/coers:/' hw/db/nvidia-h100.yaml >"$work/bad8.yaml"
printf 'model: {preset: llama3-8b}\nbatch: {globl: 8}\n' >"$work/bad4.yaml"
printf 'model: {preset: llama3-8b}\nbatch: {global: 0}\n' >"$work/bad5.yaml"
printf 'model: {d_model: 8, vocab: 9, blocks: [{name: a, attention: {heads: 1}}]}\n' >"$work/bad6.yaml"
for i in 1 2 3; do echo "result simulate $work/bad$i.json"; done >"$work/bad"
for i in 7 8; do echo "result calibrate $work/bad$i.yaml"; done >>"$work/bad"
for i in 4 5 6; do echo "model $work/bad$i.yaml"; done >>"$work/bad"

if python3 -c 'import jsonschema, yaml; jsonschema.Draft202012Validator' 2>/dev/null; then
    python3 tests/cli/schema.py "$work/model.schema" "$work/results.schema" <"$work/list" >"$work/said"
    ok 'all of them were looked at' \
        test "$(grep -c '^ok\|^not ok' "$work/said")" = "$(wc -l <"$work/list" | tr -d ' ')"
    grep -A3 '^not ok' "$work/said" | sed 's/^/# /'
    ok 'each meets its schema' test "$(grep -c '^not ok' "$work/said")" = 0
    python3 tests/cli/schema.py "$work/model.schema" "$work/results.schema" <"$work/bad" >"$work/said"
    ok 'what is wrong does not' test "$(grep -c '^not ok' "$work/said")" = 8
else
    skip 'outputs against their schema' 'python3 with jsonschema and yaml'
fi

# Every key of the input is in its schema.
ok 'each key of the input is in the schema' test \
    "$(hbmsim help model | grep -c '; default: \|keys: see ')" = "$(awk '
        /^  "\$defs"/ { inner = 1 }
        /^          "description"/ || (!inner && /^      "description"/) { n++ }
        END { print n }' "$work/model.schema")"
expect 2 hbmsim help --json-schema
err_has "--json-schema: of 'model' (the input file) or 'json' (the results)"
expect 2 hbmsim help json nothing
err_has "no result 'nothing'; 'hbmsim help json' has all"
expect 0 hbmsim help json hlo
out_has 'the compiler'
finish
