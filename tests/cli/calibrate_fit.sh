# hbmsim calibrate --fit: records made with a known reserve (1 GiB) and slack (4 %) give them back,
# an outlier among them is named, what does not count is said, and bad input is refused.
. tests/tap.sh

records=$work/runs.jsonl
file=$work/profile.yaml

# config BATCH: a step of so many sequences on one device
config() {
    printf '%s' '{"model": {"d_model": 1024, "vocab": 32000, "blocks": [{"name": "b", "repeat": 4, '
    printf '%s' '"attention": {"heads": 16}, "mlp": {"kind": "swiglu", "d_ff": 4096}}]}, '
    printf '"batch": {"global": %d, "seq": 2048}, "optimizer": {"name": "adamw"}, ' "$1"
    printf '%s' '"hardware": {"device": "nvidia-h100", "count": 1}, "compiler": "xla-gpu"}'
}

# record ID BATCH RESERVE SLACK [KIND]: as measured on a machine with these
record() {
    config "$2" >"$work/config.json"
    peak=$("$HBMSIM" simulate "$work/config.json" --json | sed -n 's/^  "peak_bytes": \([0-9]*\),/\1/p')
    bytes=$(awk -v p="$peak" -v r="$3" -v s="$4" 'BEGIN { printf "%.0f", r + (1 + s) * p }')
    printf '{"id": "%s", "config": %s, "measured": {"kind": "%s", "peak_bytes": %s}}\n' \
        "$1" "$(cat "$work/config.json")" "${5:-runtime_peak}" "$bytes"
}

gib=1073741824
for batch in 1 2 3 4 6 8 12; do
    record "run-$batch" "$batch" $gib 0.04
done >"$records"

# value KEY: the number that the profile has
value() { sed -n "s/^$1: \[\([^,]*\),.*/\1/p" "$file"; }
# about KEY WANT BY
about() {
    awk -v x="$(value "$1")" -v want="$2" -v by="$3" 'BEGIN { exit !(x > want - by && x < want + by) }'
}

before=$("$HBMSIM" devices nvidia-h100 --json | sed -n 's/.*"reserve_bytes": \([0-9]*\).*/\1/p' | head -n 1)
[ -n "$before" ] || before=577830912
expect 0 hbmsim calibrate --fit "$records" --date 2026-01-02 -o "$file"
err_has '7 records, 0 outliers: a device takes 1024.0 MiB'
err_has 'and 4.00 % (95 %: 4.00 to 4.00) of it more'
err_has 'each record from the others:'
ok 'the reserve is added to that of the base' about reserve_bytes $((before + gib)) 2000
ok 'the slack is there' about allocator_slack 0.04 0.0001
ok 'with its source' grep -qF 'hbmsim calibrate --fit of 7 records, 2026-01-02' "$file"
ok 'what the base has is kept' grep -qF 'peak_bf16_flops: [9.894e+14' "$file"

# The profile decides what fits: the measured peak of a run is what it is asked for.
config 12 >"$work/config.json"
run hbmsim simulate "$work/config.json" --json --set "hardware.device=$file"
budget=$(sed -n 's/^  "budget_bytes": \([0-9]*\),/\1/p' "$work/out")
ok 'the budget has room for both' [ "$budget" -lt $(((81559 * 1048576 - before - gib) / 104 * 100 + 200)) ]
ok 'and not for more' [ "$budget" -gt $(((81559 * 1048576 - before - gib) / 104 * 100 - 2000)) ]
expect 0 hbmsim calibrate --fit "$records" --json --date 2026-01-02
out_has '"allocator_slack": ['
expect 0 hbmsim devices "$file"
out_has 'allocator_slack'

# One run beside another program's: it is named and moves nothing.
{
    cat "$records"
    record beside 5 $((7 * gib)) 0.04
} >"$work/more.jsonl"
expect 0 hbmsim calibrate --fit "$work/more.jsonl" --date 2026-01-02 -o "$file"
err_has '8 records, 1 outliers: a device takes 1024.0 MiB'
err_has 'outlier: beside: predicted'
ok 'the outlier moves no slack' about allocator_slack 0.04 0.001

# No slack: it is left out, the profile says 0.
for batch in 1 2 3 4 6 8 12; do
    record "flat-$batch" "$batch" $gib 0
done >"$work/flat.jsonl"
expect 0 hbmsim calibrate --fit "$work/flat.jsonl" --date 2026-01-02 -o "$file"
err_has 'which is not told from nothing and left out'
ok 'no slack is written' about allocator_slack 0 0.000001

# Three records: a reserve alone.
head -n 3 "$records" >"$work/few.jsonl"
expect 0 hbmsim calibrate --fit "$work/few.jsonl" --date 2026-01-02 -o "$file"
err_has 'slack cannot be told: it needs five records of different sizes'
ok 'there is no slack' [ -z "$(value allocator_slack)" ]

# What does not count.
{
    cat "$records"
    record planned 9 0 0 xla_total
    printf '{"id": "odd", "config": {"model": 7}, "measured": {"peak_bytes": 1}}\n'
    record refused 5 0 0 | sed 's/"xla-gpu"/"torch"/; s/"swiglu"/"relu2"/'
    record quick 5 0 0 | sed 's/"measured": .*/"measured": {"kind": "speed", "step_seconds": 2}}/'
} >"$work/mixed.jsonl"
expect 0 hbmsim calibrate --fit "$work/mixed.jsonl" --date 2026-01-02 -o "$file"
err_has "planned: does not count: xla_total is the compiler's figure"
err_has 'odd: does not count: '
err_has 'refused: does not count: compiler: torch: '
err_has 'quick: does not count: it has no measured.peak_bytes'
err_has '7 records, 0 outliers'

# Bad input: refused, and nothing is written.
rm -f "$file"
head -n 2 "$records" >"$work/two.jsonl"
expect 2 hbmsim calibrate --fit "$work/two.jsonl" -o "$file"
err_has 'two.jsonl: error: 2 of 2 records count; --fit needs at least 3'
: >"$work/none.jsonl"
expect 2 hbmsim calibrate --fit "$work/none.jsonl" -o "$file"
err_has '0 of 0 records count'
expect 2 hbmsim calibrate --fit "$work/nosuch.jsonl" -o "$file"
err_has 'nosuch.jsonl'
{
    cat "$records"
    record other 5 0 0 | sed 's/nvidia-h100/nvidia-h200/'
} >"$work/two-machines.jsonl"
expect 2 hbmsim calibrate --fit "$work/two-machines.jsonl" -o "$file"
err_has "record 'other' is of the device 'nvidia-h200', those before it of 'nvidia-h100'"
for batch in 1 2 3 4 6; do
    record "huge-$batch" "$batch" $((90 * gib)) 0
done >"$work/huge.jsonl"
expect 2 hbmsim calibrate --fit "$work/huge.jsonl" -o "$file"
err_has "the records take more beside their programs than 'nvidia-h100' has"
printf '{"config": {}}\n' >"$work/noid.jsonl"
expect 2 hbmsim calibrate --fit "$work/noid.jsonl" -o "$file"
err_has "noid.jsonl:1:1: error: a measured record needs an 'id'"
expect 2 hbmsim calibrate --fit "$records" --base nvidia-h1000 -o "$file"
err_has 'nvidia-h1000'
ok 'nothing is written' [ ! -e "$file" ]
finish
