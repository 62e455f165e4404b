# hbmsim advise: the fourteen levers, each with its effect or why it has none; pairs.
. tests/tap.sh

model=examples/quickstart/model.yaml

expect 0 hbmsim advise $model
out_has 'remat.offload = [layer_in]'
out_has 'loss.chunks = 8'
out_has 'Pairs that free more than either:'
out_has 'No effect here:'
out_has 'checkpoint, because all layers are recomputed already'
out_has 'a separate evaluation step, because this is the training step alone'

expect 0 hbmsim advise $model --json
for lever in 'shard more' checkpoint 'offload activations' 'offload optimizer or parameters' \
    'model parallel instead of more FSDP' 'scanned stack' 'nested checkpointing' \
    'smaller batch with accumulation' donation 'leaner optimizer' \
    'logits in chunks, attention kernels' 'EMA off the device' 'lower precision' \
    'a separate evaluation step'; do
    out_has "\"lever\": \"$lever\""
done
cp "$work/out" "$work/advice.json"
base=$(sed -n 's/^  "peak_bytes": \([0-9]*\),/\1/p' "$work/out")
freed=$(awk '/"name": "loss.chunks = 8"/ { on = 1 } on && /freed_bytes/ { gsub(/[^0-9-]/, ""); print; exit }' "$work/out")
expect 0 hbmsim simulate $model --json --set loss.chunks=8
ok 'a lever frees what simulate says' test "$((base - freed))" = \
    "$(sed -n 's/^  "peak_bytes": \([0-9]*\),/\1/p' "$work/out")"
expect 0 hbmsim plot "$work/advice.json" -o "$work/advice.svg"
ok 'it draws' test -s "$work/advice.svg"

expect 0 hbmsim advise $model --set remat.policy=none --set step.donate=false --set stack.form=loop
out_has 'remat.policy = full'
out_has 'step.donate = true'
out_has 'stack.form = scan'

expect 0 hbmsim advise examples/quickstart/model.yaml --set model.preset=olmoe-1b-7b
out_has 'moe.dispatch = einsum'

finish
