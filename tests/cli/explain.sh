# hbmsim explain: what it says of the samples, as text and as JSON; inputs of all kinds.
. tests/tap.sh

logs=tests/golden/logs

expect 0 hbmsim explain $logs/tpu-hbm.log
out_has 'The compiler refused the program'
out_has 'too much        33.05 GiB'
out_has '2 x 2.00 GiB  f32[32,4096,4096]'
out_has 'attention scores'
out_has 'easydel/modules/attention_module.py:1059'
out_has 'Why: plain size.'
out_has '1. flash attention: the scores are never stored (up to 4.00 GiB)'
out_has "hbmsim: --set 'model.blocks[0].attention.kernel=flash'"
out_has 'hbmsim advise model.yaml --set compiler=xla-tpu --set hardware.device=tpu-v4'
err_is ''

expect 0 hbmsim explain --model my.yaml $logs/torch-fragmented.log
out_has 'Why: fragmentation.'
out_has 'PyTorch holds 6.50 GiB that no tensor uses'
out_has 'torch: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True'
out_has 'hbmsim simulate my.yaml --set compiler=torch'

expect 0 hbmsim explain $logs/multihost-load.log
out_has 'Why: replication over processes.'
out_has 'jax.make_array_from_callback'

expect 0 hbmsim explain $logs/ocean-gpu.log
out_has 'on top           6.57 GiB  at the peak'
out_has '6.57 GiB and 256 bytes.'

# The autotuner's want of memory, by name, unless it failed of something else or long before.
expect 0 hbmsim explain $logs/jax-autotuner.log
out_has "XLA's autotuner found no room"
out_has 'wanted          272.0 MiB'
out_has 'jax: XLA_FLAGS=--xla_gpu_autotune_level=0'
printf 'NOT_FOUND: All configs failed during profiling.\nFailures (1):\nWRONG RESULTS: mismatch\n' >"$work/tuner.log"
expect 1 hbmsim explain "$work/tuner.log"
yes 'step done' | head -n 200 >>"$work/tuner.log"
echo 'RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5368709120 bytes.' >>"$work/tuner.log"
expect 0 hbmsim explain "$work/tuner.log"
out_has 'The runtime could not get what the program asked for.'

expect 0 hbmsim explain $logs/maxtext.log
out_has 'model: {preset: llama3-8b}'
out_has 'maxtext: num_vocab_tiling: 8'

# Outputs that are most of a program are named.
printf 'Total memory size: 14.4 GB, Output size: 9.6 GB, Temp size: 2.4 GB, Argument size: 2.4 GB\n' >"$work/outputs.log"
expect 0 hbmsim explain "$work/outputs.log"
out_has '17 % of it is the state that stays, 17 % are temporaries, 67 % are outputs.'

# What dmesg says of the card counts before PyTorch's message and behind it.
dmesg='amdgpu 0000:c5:00.0: amdgpu: VRAM: 98304M 0x0000008000000000 - 0x00000097FFFFFFFF (98304M used)'
hip='torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 15.24 GiB of which 15.09 GiB is free.'
ready='[drm] amdgpu: 98304M of VRAM memory ready'
for order in "$dmesg|$hip" "$hip|$dmesg" "$hip|$ready"; do
    echo "$order" | tr '|' '\n' >"$work/card.log"
    expect 0 hbmsim explain --json "$work/card.log"
    out_has '"cause": "limit",'
    out_has '"knob": "other_driver",'
done

# A slice's name is evidence of the device; a version that looks like one is not.
reserve='RESOURCE_EXHAUSTED: Attempting to reserve 9.64G at the bottom of memory. That was not possible. There are 8.02G free, 0B reserved, and 8.02G reservable.'
for slice in v5litepod-8:tpu-v5e v5e-8:tpu-v5e tpu-v5p-128:tpu-v5p v6e-8:tpu-v6e; do
    printf 'Running on %s\n%s\n' "${slice%:*}" "$reserve" >"$work/slice.log"
    expect 0 hbmsim explain --json "$work/slice.log"
    out_has "\"device\": \"${slice#*:}\","
done
printf 'Loading model-v5e-large and yolov6e-8\n%s\n' "$reserve" >"$work/slice.log"
expect 0 hbmsim explain --json "$work/slice.log"
ok 'no device of a version' sh -c '! grep -q "\"device\": \"tpu" "$1"' - "$work/out"

# Input without end.
expect 2 hbmsim explain /dev/zero
err_has '/dev/zero: error: no end after 64 MiB'
expect 2 hbmsim record --config examples/quickstart/model.yaml --id x /dev/zero
err_has 'no end after 64 MiB'

expect 1 hbmsim explain $logs/nothing.log
out_is "Nothing that is known about memory in 3 lines of $logs/nothing.log."
err_is ''
expect 1 hbmsim explain -
out_is 'Nothing that is known about memory in 0 lines of -.'
run sh -c 'printf "\000\377garbage\n\000" | "$HBMSIM" explain -'
ok 'bytes that are no text are passed over' test "$status" = 1

# The same from standard input, from gzip, from a file with all in one line, into a file.
hbmsim explain $logs/tpu-padding.log >"$work/want"
run sh -c '"$HBMSIM" explain - <tests/golden/logs/tpu-padding.log'
same "$work/out" "$work/want"
# From a pipe what is taken first lies in pieces of 1 MiB: a message over two of them.
run sh -c '{ yes xxxxxxx | head -c 1048568; echo "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"; } | "$HBMSIM" explain -'
out_has 'wanted           2.00 GiB'
if command -v gzip >/dev/null 2>&1; then
    gzip -c $logs/tpu-padding.log >"$work/log.gz"
    expect 0 hbmsim explain "$work/log.gz"
    same "$work/out" "$work/want"
    head -c 60 "$work/log.gz" >"$work/cut.gz"
    expect 1 hbmsim explain "$work/cut.gz"
    err_has 'cut.gz: warning: the gzip file ends early'
    printf '\037\213\010\000garbagegarbagegarbage' >"$work/bad.gz"
    expect 2 hbmsim explain "$work/bad.gz"
    err_has 'bad.gz: error: cannot be read: '
else
    skip 'gzip' 'gzip is not installed'
fi
expect 0 hbmsim explain $logs/tpu-padding.log -o "$work/told"
out_is ''
same "$work/told" "$work/want"

expect 2 hbmsim explain
err_has "'explain' wants LOG"
expect 2 hbmsim explain "$work/no.log"
err_is "$work/no.log: error: cannot be read: No such file or directory"
expect 2 hbmsim explain tests
err_is 'tests: error: cannot be read: Is a directory'

expect 0 hbmsim explain --json $logs/gemma-logits.log
out_has '"known": true,'
out_has '"cause": "single_giant",'
out_has '"wanted_bytes": 2110783616,'
out_has '"over_bytes": null,'
out_has '"what": "logits",'
out_has '"op_name": "jit(dot)/jit(main)/dot_general'
out_has '"knob": "loss_chunks",'
out_has '"set": "loss.chunks=8",'
out_has '"kind": "buffer_assignment",'
out_has '"total_bytes": 8461085573'
expect 1 hbmsim explain --json $logs/nothing.log
out_has '"known": false,'
out_has '"messages": []'
if command -v python3 >/dev/null 2>&1; then
    for log in $logs/*.log; do
        hbmsim explain --json "$log" >"$work/json" || true
        ok "valid JSON: $log" python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/json"
    done
else
    skip 'valid JSON' 'python3 is not installed'
fi

# A narrow and a wide terminal are the library's affair; a pipe gets 80 columns at most, but for
# what is to be pasted or quoted.
hbmsim explain $logs/cuda-async.log | sed '/^What helps/,$d' >"$work/head"
ok 'sentences keep within 80 columns' test -z "$(awk 'length > 80' "$work/head")"
finish
