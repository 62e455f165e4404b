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

# Levers that were pulled before say so, those that were not are named by what they set.
expect 0 hbmsim advise $model --set optimizer.offload=pinned_host \
    --set optimizer.params_offload=pinned_host --set stack.form=nested \
    --set 'optimizer.moments=[bf16, bf16]' --set precision.params=bf16 --set loss.dot=bf16
for why in 'optimizer states are on the host already' 'parameters are on the host already' \
    'the scans are nested already' 'no moments are kept in f32' 'parameters are not in f32' \
    "the logits' product is not in f32" 'no moving average is kept on the device'; do
    out_has "because $why"
done
expect 0 hbmsim advise $model --set optimizer.name=sgd --set sharding.activation_constraints=false \
    --set model.blocks[0].attention.kernel=naive --set optimizer.ema=device
out_has 'because the optimizer keeps no states'
out_has 'because the optimizer keeps no full-size states already'
out_has 'sharding.activation_constraints = true'
out_has 'attention.kernel = flash'
out_has 'optimizer.ema = pinned_host'
expect 0 hbmsim advise $model --set mesh.data=2 --set mesh.fsdp=rest --set remat.policy=names \
    --set 'remat.save=[layer_in, q]'
out_has 'mesh.data = 1, mesh.fsdp = 8'
out_has 'sharding.optimizer_over_data = true'
out_has 'remat.offload = what is saved'
expect 0 hbmsim advise $model --set mesh.data=2 --set mesh.fsdp=rest \
    --set sharding.optimizer_over_data=true
out_has 'because optimizer states are split over data already'

megatron=examples/torch/megatron.yaml titan=examples/torch/titan.yaml
expect 0 hbmsim advise $megatron --set model.blocks[0].attention.kernel=naive
out_has 'remat.modules = [core_attn]'
expect 0 hbmsim advise $megatron --set model.blocks[0].attention.kernel=naive \
    --set 'remat.modules=[core_attn]' --set loss.kernel=fused --set precision.grads=bf16
for why in 'core attention is recomputed already' 'the loss is one kernel already' \
    'gradients are reduced in bf16 already' "sharding.reshard_after_forward is FSDP2's"; do
    out_has "because $why"
done
expect 0 hbmsim advise $titan --set sharding.reshard_after_forward=false
out_has 'sharding.reshard_after_forward = true'
expect 0 hbmsim advise $titan --set sharding.reshard_after_forward=true
out_has 'because gathered weights are given back after the forward pass already'

finish
