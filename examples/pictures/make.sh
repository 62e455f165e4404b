#!/bin/sh
# Makes the pictures of the README from runs made now: sh make.sh HBMSIM, in the source tree.
set -eu
hbmsim=$1
to=examples/pictures
model=examples/quickstart/model.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs something whose answer may be "does not fit", which is no failure here.
ask() {
    "$hbmsim" "$@" || [ $? = 1 ]
}
draw() {
    out=$1
    shift
    "$hbmsim" plot "$@" --text -o "$to/$out"
}

ask simulate $model --json --full -o "$work/as written.json"
ask simulate $model --set loss.chunks=8 --json -o "$work/8 loss chunks.json"
ask simulate $model --set loss.chunks=8 --set 'remat.offload=[layer_in]' --json \
    -o "$work/8 chunks, offload.json"
draw timeline.svg "$work/as written.json"
draw addressmap.svg "$work/as written.json" --kind addressmap
draw breakdown.svg "$work/as written.json" "$work/8 loss chunks.json" \
    "$work/8 chunks, offload.json"
ask sweep $model --x 'batch.global=8..128*2' --y 'batch.seq=2048..32768*2' \
    --facet loss.chunks=1,8 --json -o "$work/sweep.json"
draw fit.svg "$work/sweep.json" --size 960x400
ask plan $model --json --full -o "$work/plan.json"
draw pareto.svg "$work/plan.json"
ask advise $model --set batch.global=64 --json -o "$work/advise.json"
draw tornado.svg "$work/advise.json"
ask simulate examples/loading/model.yaml --json -o "$work/load.json"
draw load.svg "$work/load.json" --kind load --size 960x420
ask validate tests/golden/lab-tpu.jsonl tests/golden/lab-cuda.jsonl tests/golden/lab-rocm.jsonl \
    tests/golden/maxtext.jsonl --json -o "$work/validate.json"
draw scatter.svg "$work/validate.json"
