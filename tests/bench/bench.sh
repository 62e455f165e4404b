#!/bin/sh
# How long things take here: the mean of whole processes, in a quiet loop. Print, no verdict.
set -eu
cd "$(dirname "$0")/../.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}"
runs=200

now_ns() {
    date +%s%N
}

# process NAME WORDS...: the mean time of a process that does its work $runs times.
process() {
    name=$1
    shift
    start=$(now_ns)
    i=0
    while [ "$i" -lt "$runs" ]; do
        "$HBMSIM" "$@" >/dev/null
        i=$((i + 1))
    done
    echo "$name: $((($(now_ns) - start) / runs / 1000)) us a process, mean of $runs"
}

process 'start and end (hbmsim --version)' --version
process 'the zoo (hbmsim models)' models
process 'llama3-8b (hbmsim simulate --json)' simulate examples/quickstart/model.yaml --json
process 'deepseek-v3 on 2,048 devices' simulate tests/bench/deepseek-v3.yaml --json
process 'records of lab-tpu (hbmsim validate)' validate tests/golden/lab-tpu.jsonl
process 'torch on 16 stages x 64 microbatches (hbmsim simulate --json)' simulate tests/bench/pipeline.yaml --json
"${HB_BUILD:-build/fast}/tests/bench/bench" . tests/bench/pipeline.yaml examples/quickstart/model.yaml tests/bench/deepseek-v3.yaml
"${HB_BUILD:-build/fast}/tests/bench/hlo" 200
