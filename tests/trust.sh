#!/bin/sh
# The short table of trust, as Markdown: errors on records that guided the rules beside errors on
# those that did not (tests/calibration). tests/accuracy.sh has the long one.
set -eu
cd "$(dirname "$0")/.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}"

# n, median, p95 and worst of files, as cells.
cells() {
    "$HBMSIM" validate "$@" --worst 0 | awk '/^all / { printf "%d | %s | %s | %s", $2, $4, $6, $7 }'
}

echo '| compiler | n | median % | p95 % | worst % | unseen: n | median % | p95 % | worst % |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|--:|'
for kind in tpu cuda rocm; do
    case $kind in
    tpu) name='XLA for TPU v5e, v5p, v6e (unseen: v4, v7 too)' ;;
    cuda) name='XLA for H100 (unseen: B200, A100 too)' ;;
    rocm) name='XLA for MI300X' ;;
    esac
    echo "| $name | $(cells "tests/golden/lab-$kind.jsonl") | $(cells "tests/calibration/$kind.jsonl") |"
done
# JAX compiles and runs on the device; the unseen ones were drawn by a seed and compared once.
echo "| XLA on a real H100 | $(cells tests/golden/xla-h100.jsonl) | $(cells tests/golden/h100-drawn.jsonl) |"
echo "| MaxText on TPU | $(cells tests/golden/maxtext.jsonl tests/golden/maxtext-read.jsonl) | $(cells tests/calibration/maxtext.jsonl) |"
echo "| Levanter on TPU | $(cells tests/golden/levanter-read.jsonl) | $(cells tests/calibration/levanter.jsonl) |"
# Drawn before anybody looked, and measured once.
guided=$(find tests/golden -name 'torch-*.jsonl' ! -name torch-h100.jsonl | sort)
# shellcheck disable=SC2086
echo "| PyTorch (unseen: on fake tensors) | $(cells $guided) | $(cells tests/golden/fresh-torch*.jsonl) |"
# Drawn before any was run; two causes were read off them.
echo "| PyTorch on a real H100 | $(cells tests/golden/torch-h100.jsonl) | | | | |"
