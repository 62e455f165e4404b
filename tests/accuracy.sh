#!/bin/sh
# The table of trust: predictions against measured records, as Markdown. Without arguments the
# records kept in tests/golden; `make accuracy RECORDS="a.jsonl b.jsonl"` for others.
set -eu
cd "$(dirname "$0")/.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}"
[ $# -gt 0 ] || set -- tests/golden/lab-tpu.jsonl tests/golden/lab-cuda.jsonl \
    tests/golden/lab-rocm.jsonl tests/golden/maxtext.jsonl tests/golden/torch-lab.jsonl \
    tests/golden/torch-megatron.jsonl tests/golden/torch-titan.jsonl

echo '| records | n | median % | p90 % | p95 % | worst % | bias % | right verdicts % | usual formula: median, p95 % |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|--:|'
for file in "$@"; do
    for part in learn hold-out; do
        "$HBMSIM" validate "$file" --part $part --worst 0 |
            awk -v name="$(basename "$file" .jsonl), $part" '
                /^all / { n = $2; median = $4; p90 = $5; p95 = $6; worst = $7; bias = $8; fits = $9 }
                /^the usual formula/ { usual = $7 ", " $9 }
                END { printf "| %s | %d | %.1f | %.1f | %.1f | %.1f | %+.1f | %.1f | %s |\n",
                      name, n, median, p90, p95, worst, bias, fits, usual }'
    done
done
