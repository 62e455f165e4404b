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
