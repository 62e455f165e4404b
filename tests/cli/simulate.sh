# hbmsim simulate: the verdict as text, JSON and status; that the parts add up; the other outputs.
. tests/tap.sh

model=examples/quickstart/model.yaml

# A number of the last run's JSON by its key.
number() {
    sed -n "s/.*\"$1\": \\([-0-9.e]*\\),*\$/\\1/p" "$work/out" | head -n 1
}

expect 0 hbmsim simulate $model
out_has 'llama3-8b on 8 x nvidia-h100, xla-gpu; fsdp 8; 32 sequences of 8192 tokens a step'
out_has 'FITS: '
out_has 'The largest of it'
out_has 'As MaxText prints it'
out_has 'Total memory size: '
out_has 'tokens/s ('
out_has 'exposed: compute stands still and waits for it'
err_is ''

# A measured profile may beat the data sheet: what it says it reaches is the peak, and no fault.
sed -e 's/^name: .*/name: mine/' -e 's/^\(matmul_curve_bf16\): .*/\1: [[[1024, 1.9]], ds]/' \
    -e 's/^\(attention_[a-z]*_curve\): .*/\1: [[[1024, 1.9]], ds]/' hw/db/nvidia-h100.yaml >"$work/mine.yaml"
expect 0 hbmsim simulate $model --set "hardware.device=$work/mine.yaml"
ok 'MFU is of what the profile reaches' grep -q ', MFU [1-9][0-9][.]' "$work/out"
# An op that takes longer than the clock counts has no time: said, not cut off.
sed -e 's/^name: .*/name: mine/' -e 's/^peak_bf16_flops: .*/peak_bf16_flops: [1e4, ds]/' \
    hw/db/nvidia-h100.yaml >"$work/mine.yaml"
for compiler in xla-gpu torch; do
    expect 2 hbmsim simulate $model --set "hardware.device=$work/mine.yaml" --set compiler=$compiler
    err_has "takes more than 2^53 ns (104 days) on this device"
done
# A step of more has one where no op does.
sed -i 's/^peak_bf16_flops: .*/peak_bf16_flops: [2e8, ds]/' "$work/mine.yaml"
expect 0 hbmsim simulate $model --set "hardware.device=$work/mine.yaml"
out_has 'Step  17911686.4 s'

# A key as `plan` names it, of every block that has the way to it: the dense one has no experts.
expect 0 hbmsim simulate tests/cli/bad/base/good.yaml --json \
    --set 'model.blocks[].moe.dispatch=einsum' --set 'blocks[].repeat=2'
out_has '"dispatch": "einsum"'
ok 'both stacks are of two layers' [ "$(grep -c '"repeat": 2' "$work/out")" = 2 ]
expect 1 hbmsim simulate $model --set hardware.hbm=10GiB
out_has 'DOES NOT FIT: '
out_has ' of 10.00 GiB on each device, '
out_has ' too much'
# What the host has no room for does not fit, however much of the device is free.
expect 1 hbmsim simulate $model --set optimizer.offload=pinned_host --set hardware.host_memory=16GiB
out_has "DOES NOT FIT into the host's memory: "
out_has ': MORE THAN ITS 16.00 GiB'
ok 'no more of the device is advised' sh -c '! grep -q runtime.memory_fraction= "$1"' - "$work/out"
expect 1 hbmsim simulate $model --set optimizer.offload=pinned_host --set hardware.host_memory=16GiB --json
out_has '"verdict": "does not fit"'

expect 0 hbmsim simulate $model --json
ok 'argument + output - alias + temp is the peak' test "$(number peak_bytes)" = \
    $(($(number argument_bytes) + $(number output_bytes) - $(number alias_bytes) + $(number temp_bytes)))
ok 'the categories sum to the peak' test "$(number peak_bytes)" = "$(awk '
    /"categories"/ { on = 1; next } /}/ { on = 0 } on { gsub(/[",:]/, ""); sum += $2 }
    END { printf "%.0f", sum }' "$work/out")"
ok 'the tensors and what is between them sum to the peak' test "$(number peak_bytes)" = \
    "$(awk '/"bytes":/ { gsub(/,/, ""); sum += $2 } END { printf "%.0f", sum + '"$(number fragmentation)"' + '"$(number runtime)"' }' "$work/out")"
keys=$(sed -n 's/^  "\([a-z_]*\)":.*/\1/p' "$work/out" | tr '\n' ' ')
ok 'the keys are the promised ones' test "$keys" = 'name version compiler device configuration fits verdict peak_bytes budget_bytes argument_bytes output_bytes alias_bytes temp_bytes host_bytes interval budget step_seconds tokens_per_second mfu peak '
keys=$(sed -n '/"categories"/,/}/s/^      "\([a-z]*\)":.*/\1/p' "$work/out" | tr '\n' ' ')
ok 'and those of the categories' test "$keys" = 'params optimizer gradients saved working logits communication padding fragmentation ema inputs runtime '
peak=$(number peak_bytes)
lost=$(($(number fragmentation) + $(number runtime)))

expect 0 hbmsim simulate $model --explain ''
ok 'explaining all tensors sums to the peak' test "$peak" = \
    $(($(sed -n 's/.*(\([0-9]*\) bytes)\.$/\1/p' "$work/out") + lost))
expect 0 hbmsim simulate $model --explain 'LAYER INPUT, saved'
out_has 'dense.layer input, saved for backward'
out_has '  at peak   yes, at '
out_has '1 tensor; at the peak 1, with 8.00 GiB (8589934592 bytes).'
expect 2 hbmsim simulate $model --explain 'dense.w_gaet'
err_has "no tensor has 'dense.w_gaet' in its name; nearest: 'dense.w_gate'"
expect 2 hbmsim simulate $model --explain qqqqqqqqqqqqqqqqqqqqqqqq
err_has 'in its name; the largest at the peak is'

# every tensor has a reason, and the keys that reasons name are keys
for more in remat.policy=none loss.chunks=4 batch.accumulate=2 stack.form=nested optimizer.name=muon; do
    run hbmsim simulate $model --json --set $more
    cat "$work/out" >>"$work/reasons"
done
ok 'no tensor at the peak lacks its reason' sh -c "! grep -q '\"why\": \"\"' '$work/reasons'"
sed -n 's/.*"why": //p' "$work/reasons" | grep -oE '[a-z]+\.[a-z_]+' | sort -u >"$work/keys"
ok 'reasons name keys' test "$(wc -l <"$work/keys")" -ge 5
hbmsim help model >"$work/help"
ok 'they are keys of the input' sh -c \
    "while read -r key; do grep -q \"^  \${key##*.} \" '$work/help' || exit 1; done <'$work/keys'"

# where nobody says how much a program may use, the device does: XLA:GPU makes values again
unrolled="--set stack.form=loop --set remat.policy=none --set batch.global=16"
peak_at() {
    # shellcheck disable=SC2086
    run hbmsim simulate $model --json $unrolled "$@"
    number peak_bytes
}
ok 'a device without hbm is as one whose memory is given' test "$(peak_at)" = \
    "$(peak_at --set hardware.hbm=84942979072)"
ok 'with much more memory nothing is made again' test "$(peak_at)" -lt \
    "$(peak_at --set hardware.hbm=1TiB)"

printf '%s\n' 'model: {preset: llama3-70b}' 'batch: {global: 256, seq: 4096}' 'mesh: {fsdp: 256}' \
    'hardware: {device: tpu-v5p, count: 256}' >"$work/large.yaml"
expect 2 hbmsim simulate "$work/large.yaml" --set load.method=device_put --set load.processes=16777216
err_has "the tensors of 'load' together exceed 2^61 bytes"
ok 'and nothing else is said' test ! -s "$work/out"
expect 1 hbmsim simulate $model --json --set load.method=device_put --set load.processes=64 \
    --set load.largest_array=1050673152 --set hardware.hbm=60GiB
out_has '"load": {'
out_has '"device_peak_bytes": '
out_has '"host_peak_bytes": '
expect 0 hbmsim simulate $model --set load.method=device_put --set load.processes=32 \
    --set load.largest_array=1050673152 --set hardware.hbm=60GiB
out_has 'Loading with device_put before step 1, 32 processes: FITS'
ok 'the row of 64 processes does not fit' grep -Eq '^ +64 .*does not fit' "$work/out"

for what in graph buffers heap events; do
    expect 0 hbmsim simulate $model --dump $what
    cp "$work/out" "$work/first"
    expect 0 hbmsim simulate $model --dump=$what
    same "$work/first" "$work/out"
done
expect 0 hbmsim simulate $model --dump heap
ok 'the heap is as high as temp' grep -q "height, " "$work/out"
expect 0 hbmsim simulate $model --dot
out_has 'digraph step {'
ok 'the peak is marked' grep -q 'color=red' "$work/out"
expect 2 hbmsim simulate $model --json --dot
err_has '--json, --explain, --dump and --dot exclude each other'
expect 2 hbmsim simulate $model --dump tree

expect 0 hbmsim simulate $model --timeline "$work/trace.json" -o "$work/answer"
out_is ''
ok 'the answer went to its file' grep -q FITS "$work/answer"
for part in '{"displayTimeUnit": "ms", "traceEvents": [' '"ph": "X"' '"ph": "C"' '"thread_name"' \
    'like the second"'; do
    ok "the trace has $part" grep -qF -e "$part" "$work/trace.json"
done
expect 3 hbmsim simulate $model --timeline "$work/no/such/folder"
ok 'what cannot be written leaves nothing' test ! -e "$work/no"

expect 2 hbmsim simulate
expect 2 hbmsim simulate "$work/absent.yaml"
expect 2 hbmsim simulate $model --set hardware.device=tpu-v9
err_has 'tpu-v9'
expect 2 hbmsim simulate $model --set compiler=torch --set optimizer.offload=pinned_host
err_has 'compiler: torch: '
cat >"$work/torch.yaml" <<'END'
model: {preset: llama3-8b}
batch: {global: 64, seq: 8192}
precision: {params: bf16, master: f32, compute: bf16, grads: f32}
mesh: {data: 2, tensor: 4, pipeline: 4}
sharding: {residual_over_tensor: true, optimizer_over_data: true}
pipeline: {schedule: 1f1b, microbatches: 16}
remat: {policy: none}
hardware: {device: nvidia-h100, count: 32}
compiler: torch
runtime: {framework: megatron}
END
expect 0 hbmsim simulate "$work/torch.yaml"
out_has 'the heaviest  told above'
out_has "As PyTorch's allocator counts it"
expect 0 hbmsim simulate "$work/torch.yaml" --rank 2
ok 'the rank is told' grep -q '^ *2 .*  told above' "$work/out"
expect 0 hbmsim simulate "$work/torch.yaml" --json
for key in '"ranks": [' '"allocated_bytes": ' '"active_bytes": ' '"reserved_bytes": '; do
    out_has "$key"
done
expect 2 hbmsim simulate "$work/torch.yaml" --rank 4
err_has 'pipeline.rank: 4 is no stage'
sed 's/^batch:.*/batch: {global: 64, seq: 8192}/' $model >"$work/model.yaml"
run sh -c "'$HBMSIM' simulate - --json <'$work/model.yaml'"
ok 'standard input is read' grep -q '"peak_bytes"' "$work/out"

# Twice the same, elsewhere the same.
run hbmsim simulate $model --json
cp "$work/out" "$work/first"
mkdir "$work/elsewhere"
run env LC_ALL=de_DE.UTF-8 sh -c "cd '$work/elsewhere' && '$HBMSIM' simulate '$PWD/$model' --json"
same "$work/first" "$work/out"
# Units of four layers that keep most of what they name, with a turned stack beside them: more than one
# op has room for.
cat >"$work/units.yaml" <<'END'
model: {preset: olmo3-7b}
batch: {global: 64, seq: 1024}
mesh: {fsdp: 8}
hardware: {device: tpu-v5e, count: 8}
compiler: xla-tpu
remat: {policy: names, save: [k, v, attn_ctx, attn_out, mlp_up, mlp_act], offload: [q]}
END
run hbmsim simulate "$work/units.yaml" --dump=graph
ok 'units of layers with a turned stack are lowered' grep -q 'mark: beside a turned stack' "$work/out"

# What a policy names and a block does not have keeps nothing and is not fetched: one list may be
# for blocks of several kinds.
for offload in '[]' '[moe_out, mla_q, qkv, shared_up]'; do
    expect 0 hbmsim simulate tests/cli/small.yaml --set hardware.device=tpu-v6e --set remat.policy=names \
        --set remat.save=[q] --set "remat.offload=$offload" --json
    grep -E '"(peak|low|host)_bytes|"step_seconds' "$work/out" >"$work/named-${#offload}"
done
same "$work/named-2" "$work/named-32"

# A thousand unrolled layers that need five times the compiler's share, in seconds of processor time.
cat >"$work/unrolled.yaml" <<'END'
model: {d_model: 4096, vocab: 128256,
        blocks: [{repeat: 1000, attention: {heads: 32, kv_heads: 8}, mlp: {d_ff: 14336}}]}
batch: {global: 64, seq: 8192}
mesh: {fsdp: 8}
hardware: {device: nvidia-h100, count: 8}
compiler: xla-gpu
stack: {form: loop}
END
most_seconds() { (ulimit -t "$1" && shift && exec "$HBMSIM" "$@"); }
expect 1 most_seconds 30 simulate "$work/unrolled.yaml" --dump=buffers
ok 'what waits in a thousand unrolled layers is made again' grep -q 'made again' "$work/out"

# A table's gradient beside tensor has its part of the columns, where words are not split evenly, too.
cat >"$work/columns.yaml" <<'END'
model: {d_model: 2048, vocab: 50257,
        blocks: [{repeat: 4, attention: {heads: 32, kv_heads: 8}, mlp: {d_ff: 8192}}]}
batch: {global: 64, seq: 4096}
mesh: {data: 2, fsdp: 8, tensor: 4}
hardware: {device: tpu-v5e, count: 64}
compiler: xla-tpu
END
expect 0 hbmsim simulate "$work/columns.yaml" --dump=buffers
out_has 'embedding, gradient bf16[50257,512]'

finish
