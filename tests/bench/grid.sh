#!/bin/sh
# The planner on 60 instances, default search: models of 8 to 671 billion parameters on 8 to 16,384
# devices of five kinds. One line each: seconds of processor time (user), peak memory (where there
# is a time(1) that tells it), status, gap to the whole space, linear programs, step, MFU; then the
# median and the worst. Print, no verdict.
#   sh tests/bench/grid.sh [WORD]    only the instances whose line has the word
set -eu
cd "$(dirname "$0")/../.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}" "${GRID_SECONDS:=120}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
wanted=${1:-}

# field JSON KEY: the first value of a key.
field() {
    sed -n "s/^ *\"$2\": *\"\{0,1\}\([^\",]*\).*/\1/p" "$1" | head -n 1
}

# instance MODEL DEVICES BATCH SEQ MESH DEVICE COMPILER
instance() {
    line="$1 on $2 x $6"
    case $line in *"$wanted"*) ;; *) return ;; esac
    {
        echo "hbmsim: 1"
        echo "model: {preset: $1}"
        echo "batch: {global: $3, seq: $4}"
        echo "hardware: {device: $6, count: $2}"
        echo "compiler: $7"
        echo "mesh: {$5}"
    } >"$dir/m.yaml"
    status=0
    peak=-
    (ulimit -t "$GRID_SECONDS" && exec $teller "$HBMSIM" plan "$dir/m.yaml" --json) \
        >"$dir/out.json" 2>"$dir/err" || status=$?
    [ -z "$teller" ] || peak=$(awk '{ printf "%.0f MiB", $1 / 1024 }' "$dir/peak")
    times >"$dir/times"
    # The second line is what the children took so far: user, system.
    now=$(sed -n '2s/^\([0-9]*\)m\([0-9.,]*\)s.*/\1 \2/p' "$dir/times" |
        awk '{ sub(",", ".", $2); printf "%.2f", $1 * 60 + $2 }')
    seconds=$(echo "$now $before" | awk '{ printf "%.2f", $1 - $2 }')
    before=$now
    echo "$seconds" >>"$dir/all"
    if [ "$status" -gt 1 ]; then
        printf '%-44s %7s s %9s  ended with status %s\n' "$line" "$seconds" "$peak" "$status"
        return
    fi
    printf '%-44s %7s s %9s  %-10s gap %-8.8s lps %-5s step %-9.9s mfu %.6s\n' "$line" \
        "$seconds" "$peak" "$(field "$dir/out.json" status)" "$(field "$dir/out.json" gap)" \
        "$(field "$dir/out.json" linear_programs)" "$(field "$dir/out.json" step_seconds)" \
        "$(field "$dir/out.json" mfu)"
}

before=0
teller=
if command -v /usr/bin/time >/dev/null && /usr/bin/time -q -f %M true 2>/dev/null; then
    teller="/usr/bin/time -q -f %M -o $dir/peak"
fi
for device in tpu-v5p:xla-tpu tpu-v6e:xla-tpu nvidia-h100:xla-gpu amd-mi300x:xla-gpu \
    nvidia-b200:xla-gpu; do
    set -- "${device%:*}" "${device#*:}"
    instance llama3-8b 8 32 8192 'fsdp: 8' "$@"
    instance llama3-8b 64 128 8192 'fsdp: 64' "$@"
    instance llama3-8b 512 1024 8192 'fsdp: 512' "$@"
    instance llama3-70b 64 128 8192 'fsdp: 64' "$@"
    instance llama3-70b 512 1024 8192 'fsdp: 512' "$@"
    instance llama3-70b 4096 2048 8192 'fsdp: 1024, tensor: 4' "$@"
    instance llama3.1-405b 1024 1024 8192 'fsdp: 1024' "$@"
    instance llama3.1-405b 16384 2048 8192 'fsdp: 2048, tensor: 8' "$@"
    instance deepseek-v3 2048 4096 4096 'fsdp: 2048' "$@"
    instance deepseek-v3 8192 8192 4096 'fsdp: 8192' "$@"
    instance mixtral-8x22b 256 512 8192 'fsdp: 256' "$@"
    instance qwen3-235b-a22b 1024 1024 8192 'fsdp: 1024' "$@"
done
sort -n "$dir/all" | awk '
    { v[NR] = $1; sum += $1; over += $1 > 5 }
    END { if (NR) printf "%d instances: median %.2f s, worst %.2f s, %d above 5 s, sum %.0f s\n",
          NR, v[int((NR + 1) / 2)], v[NR], over, sum }'
