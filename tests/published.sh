#!/bin/sh
# The table of plans beside published configurations of the same model, batch and devices, as
# Markdown: what was measured, what is told of the published configuration, what of the plan.
set -eu
cd "$(dirname "$0")/.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# field JSON KEY: the first value of a key.
field() {
    sed -n "s/^ *\"$2\": *\"\{0,1\}\([^\",]*\).*/\1/p" "$1" | head -n 1
}

echo '| published for | measured | told of it | MFU | peak | the plan | MFU | peak | told faster |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|--:|'
while IFS='|' read -r id name; do
    grep -F "{\"id\":\"speed-$id\"," tests/golden/speed.jsonl >"$work/record"
    sed 's/.*"config":\({.*}\),"measured".*/\1/' "$work/record" >"$work/run.json"
    measured=$(sed 's/.*"step_seconds":\([0-9.]*\).*/\1/' "$work/record")
    "$HBMSIM" simulate "$work/run.json" --json >"$work/told" || :
    "$HBMSIM" plan "$work/run.json" --json | sed -n '/"prediction":/,$p' >"$work/plan" || :
    for of in told plan; do
        echo "$(field "$work/$of" step_seconds) $(field "$work/$of" mfu) $(field "$work/$of" peak_bytes)"
    done | tr '\n' ' ' | awk -v name="$name" -v measured="$measured" '{
        printf "| %s | %.2f s | %.2f s | %.1f %% | %.1f GiB | %.2f s | %.1f %% | %.1f GiB | %.1f %% |\n",
               name, measured, $1, 100 * $2, $3 / 2 ^ 30, $4, 100 * $5, $6 / 2 ^ 30, 100 * (1 - $4 / $1) }'
done <<END
tpurecipes-v5p-1024-llama31-405b|Llama 3.1 405B on 512 v5p, MaxText
tpurecipes-v6e-256-llama2-70b|Llama 2 70B on 256 v6e, MaxText
tpurecipes-v7-256-llama31-70b-bf16|Llama 3.1 70B on 512 cores of TPU7x, MaxText
tpurecipes-v6e-256-mixtral-8x22b|Mixtral 8x22B on 256 v6e, MaxText
torchtitan-2412-llama3-8b-fsdp8-compile|Llama 3.1 8B on 8 H100, torchtitan
END
