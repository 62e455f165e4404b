# hbmsim explain: texts out of public issue threads, each with what is to be said of it: wanted and
# available bytes, cause, first advice, set from what solved it where the thread tells. A block begins with `@ THREAD wanted available cause advice`
# (-: not told; nothing: no message is known); behind a `|` what the thread or the text's reader would have had instead.
. tests/tap.sh

table=tests/golden/logs/wild.txt

# What the last run says, as in the table: a line for each advice that comes first for its kind of program. A cause that is
# only supposed has a ? behind it.
said() {
    awk '/^  "known": false/ { print "- - nothing -"; exit }
        function value() { v = $2; gsub(/[",]/, "", v); return v == "null" ? "-" : v }
        /^  "wanted_bytes":/ { wanted = value() }
        /^  "available_bytes":/ { available = value() }
        /^  "cause":/ { cause = value() (supposed ? "?" : "") }
        /^  "supposed": true/ { supposed = 1 }
        /^      "knob":/ { knob = value() }
        /^      "when":/ { when = value(); if (!count++ || (when != "-" && parted)) knobs[count] = knob; parted = when != "-" }
        END { if (!cause) exit
              if (!count) knobs[count = 1] = "-"
              for (i = 1; i <= count; i++) if (i in knobs) print wanted, available, cause, knobs[i] }' "$1"
}

awk -v dir="$work" '/^@ / { file = sprintf("%s/wild.%03d", dir, ++n)
        print > (file ".row"); next } { print > (file ".log") }' $table
for row in "$work"/wild.*.row; do
    log=${row%.row}.log
    read -r _ thread wanted <"$row"
    wanted=${wanted%% |*}
    hbmsim explain --json "$log" >"$work/json" 2>/dev/null || true
    found=$(said "$work/json")
    case "
$found
" in *"
$wanted
"*) tap ok "$thread" ;;
    *)
        tap 'not ok' "$thread"
        echo "# wanted $wanted, found $found"
        ;;
    esac
done
count=$(grep -c '^@ ' $table)
ok "the table has its $count texts" test "$count" -ge 4113
ok "the manual tells how many" grep -q "\[$count texts\]" docs/manual.md
ok "few are said otherwise than they ended" test "$(grep -c '^@ .* | ' $table)" -le $((count * 74 / 1000))

# All figures zero: no record, and said so.
printf 'CompiledMemoryStats(generated_code_size_in_bytes=2856, argument_size_in_bytes=0, output_size_in_bytes=0, alias_size_in_bytes=0, temp_size_in_bytes=0)\n' >"$work/zero.log"
expect 1 hbmsim record --config examples/quickstart/model.yaml --id x "$work/zero.log"
err_has 'all figures of memory_analysis() are zero'
expect 0 hbmsim explain "$work/zero.log"
out_has 'All figures are zero: this backend does not tell them.'

# The text of a change of a program: what it mentions is nothing, what it says is supposed, what a program
# printed is told.
printf '# Add handling of OOM\nThe handler is called where a GPU may run out of memory.\n' >"$work/change.log"
expect 1 hbmsim explain "$work/change.log"
printf '# fix: chunks of the loss\nWithout it this model OOMs on eight devices.\n' >"$work/change.log"
expect 0 hbmsim explain "$work/change.log"
out_has 'Memory that runs out is spoken of; nothing here says that it did.'
printf '# Large batches\nWithout it this model OOMs on eight devices.\n' >"$work/change.log"
expect 0 hbmsim explain "$work/change.log"
out_has 'out of memory, without figures'
printf '# fix: chunks of the loss\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n' >"$work/change.log"
expect 0 hbmsim explain "$work/change.log"
out_has 'wanted           2.00 GiB'
printf 'retry\n-        throw new GpuOOM("GPU OutOfMemory: could not split inputs")\n' >"$work/change.log"
expect 1 hbmsim explain "$work/change.log"
printf 'PyTorch does not raise an OOM error here.\n' >"$work/change.log"
expect 1 hbmsim explain "$work/change.log"

# A message's size is none of a request, what a device has at some other time none of what was free.
printf '# x\nout of memory error when running all_reduce with 16G message size\n' >"$work/size.log"
expect 0 hbmsim explain --json "$work/size.log"
out_has '"wanted_bytes": null'
printf 'CUDA error: out of memory\nTotal memory: 4.63GiB\nFree memory: 4.57GiB\n' >"$work/size.log"
expect 0 hbmsim explain --json "$work/size.log"
out_has '"available_bytes": null'
printf 'MemoryError: Unable to allocate 48.9 PiB for an array\n' >"$work/size.log"
expect 0 hbmsim explain --json "$work/size.log"
out_has '"cause": "corrupt_size"'

# No advice of training for a program that makes text.
printf "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 48318382080 bytes. [executable_name='jit_generate']\n" >"$work/generate.log"
expect 0 hbmsim explain "$work/generate.log"
for word in microbatch offload recompute moments optimizer; do
    ok "no $word for jit(generate)" test -z "$(sed -n '/^What helps/,$p' "$work/out" | grep -i $word)"
done
ok "no training step is proposed for it" test -z "$(grep 'hbmsim simulate' "$work/out")"

# Figures in a list behind a refusal, one a line, each with its key.
printf 'CUDA error: out of memory\n  Required memory: 5.5 GiB\n  Free memory: 2 GiB\n  model size: 9 GiB\n' >"$work/list.log"
expect 0 hbmsim explain "$work/list.log"
out_has 'wanted           5.50 GiB'
out_has 'there was        2.00 GiB'

# What a machine has is no request, nor is a word far before an amount.
for text in 'cudaMalloc failed: out of memory - ubuntu server - 4 16 GB GPUs & 768 GB RAM' 'CUDA malloc fails (dual-GPU setup with 72GB VRAM and 128GB RAM)'; do
    printf '%s\n' "$text" >"$work/has.log"
    expect 0 hbmsim explain "$work/has.log"
    ok 'no figure of a machine is taken for a request' test -z "$(grep '^  wanted' "$work/out")"
done

# Sentences of anybody: who ran short, and of how much.
hosts='The paging file is too small for this operation to complete.
memory allocation of 8589934592 bytes failed
my process was killed by the system when loading the dataset
The phase is Killed every time'
printf '%s\n' "$hosts" | while read -r text; do
    printf '%s\n' "$text" | hbmsim explain --json - | grep -q '"cause": "host_memory"' || echo "$text"
done >"$work/missed"
ok 'words for the memory of a host' test ! -s "$work/missed"
printf 'Model requires 24 GB of memory but only 16 GB are available\n' >"$work/but.log"
expect 0 hbmsim explain "$work/but.log"
out_has 'wanted          24.00 GiB'
out_has 'there was       16.00 GiB'
printf 'The model is too large to fit in GPU memory\n' >"$work/fit.log"
expect 0 hbmsim explain "$work/fit.log"
out_has 'out of memory, without figures'
out_has 'Why: not told.'
ok 'what is said in the first line is not said again' test "$(grep -c 'without figures' "$work/out")" = 1
printf 'the trousers fit\nthe server was killed by hand\n' >"$work/fits.log"
expect 1 hbmsim explain "$work/fits.log"

# Words of running a model, as a person writes them and within the names of a program.
for text in 'Running the inference script' 'File "run_inference.py"' 'class FluxInferencePipeline'; do
    printf '%s\nCUDA error: out of memory\n' "$text" >"$work/runs.log"
    expect 0 hbmsim explain "$work/runs.log"
    out_has '1. fewer or shorter sequences'
done
for text in 'the conference code=if it trains: fewer' 'after training, inference=if it trains: fewer' 'Epoch 3, optimizer, generate()=fewer sequences at once'; do
    printf '%s\nCUDA error: out of memory\n' "${text%=*}" >"$work/trains.log"
    expect 0 hbmsim explain "$work/trains.log"
    out_has "1. ${text#*=}"
done

# Of a server the share comes first; what nobody is said to hold is told.
printf 'vLLM worker: gpu_memory_utilization=0.9\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 15.77 GiB of which 514.19 MiB is free. Of the allocated memory 13.73 GiB is allocated by PyTorch, and 736.86 MiB is reserved by PyTorch but unallocated.\n' >"$work/serve.log"
expect 0 hbmsim explain "$work/serve.log"
out_has '1. another share of the device for the server'
out_has 'neither PyTorch'

# Amounts as kernels' linkers print them, and pairs of what was expected and got.
printf "ptxas error   : Entry function 'k' uses too much shared data (0x30d40 bytes, 0xc000 max)\n" >"$work/hex.log"
expect 0 hbmsim explain --json "$work/hex.log"
out_has '"wanted_bytes": 200000'
out_has '"available_bytes": 49152'
out_has '"cause": "on_chip"'
printf 'mapped at 0x7fa4c6800000 to 0x7fa4c6900000, out of memory\n' >"$work/address.log"
expect 0 hbmsim explain --json "$work/address.log"
out_has '"wanted_bytes": null'
printf 'runtime error: not enough space: expected 318080, got 314240\n' >"$work/got.log"
expect 0 hbmsim explain --json "$work/got.log"
out_has '"available_bytes": 314240'
printf 'with a block size of 3072 I get OOM\n' >"$work/block.log"
expect 0 hbmsim explain --json "$work/block.log"
out_has '"wanted_bytes": null'

printf 'could not allocate pinned host memory of size: 2304\nfailed to alloc 2073 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n' >"$work/pinned.log"
expect 0 hbmsim explain --json "$work/pinned.log"
out_has '"wanted_bytes": 2304'
out_has '"cause": "host_memory"'

# What the host's systems say, by their own numbers, in any language; where a limit stands.
printf '%s\n' 'OSError: [WinError 1455] \351\241\265' 'OSError: [Errno 12] nope' 'NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory' \
    'shmget failed: error 28 (No space left on device)' 'unable to open shared memory object </torch_1_2> in read-write mode' 'Pods getting OOM' |
    while read -r text; do
        printf '%s\n' "$text" | hbmsim explain --json - | grep -q '"cause": "host_memory"' || echo "$text"
    done >"$work/missed"
ok 'numbers and words of the host' test ! -s "$work/missed"
printf '%s\n' '      Reason:       OOMKilled' '    Limits:' '      cpu:     100m' '      memory:  30Mi' '    Requests:' '      memory:  20Mi' >"$work/pod.log"
expect 0 hbmsim explain "$work/pod.log"
out_has 'there was       30.00 MiB'
out_has 'the limit that container or job were given'
printf 'unable to open shared memory object: Too many open files (24)\n' >"$work/files.log"
expect 1 hbmsim explain "$work/files.log"

# A fault is no lack of memory, and is said to be none; a refusal beside it comes first.
for text in 'CUDA error: an illegal memory access was encountered' 'CUDA error: device-side assert triggered' 'Segmentation fault (core dumped)'; do
    printf '%s\n' "$text" >"$work/fault.log"
    expect 0 hbmsim explain "$work/fault.log"
    out_has 'the log has no lack of memory'
    ok 'no advice about batches' test -z "$(grep -i 'smaller batch' "$work/out")"
done
printf 'CUDA error: an illegal memory access was encountered\nCUDA error: out of memory\n' >"$work/both.log"
expect 0 hbmsim explain --json "$work/both.log"
out_has '"cause": "unknown"'

# What somebody reckons is no figure, unless it is needed; a count of something is none either.
for text in 'I get CUDA out of memory though jobs that work use ~10Gb' 'cuda oom: it should be around 18GiB per GPU' \
    'killed for lack of memory: each uses between 250 and 400 MB of RAM' 'OOM on a 36 GB machine'; do
    printf '%s\n' "$text" >"$work/reckoned.log"
    expect 0 hbmsim explain --json "$work/reckoned.log"
    ok 'no figure' test "$(grep -c '_bytes": null' "$work/out")" -ge 3
done
printf 'RuntimeError: Decode out of memory.\nAvailable tokens: 2048\navailable_size()=2048\n' >"$work/tokens.log"
expect 0 hbmsim explain --json "$work/tokens.log"
out_has '"available_bytes": null'
printf 'OOM on TPU: per device HBM is only 31.25GB and it needed around 41GB\n' >"$work/needed.log"
expect 0 hbmsim explain --json "$work/needed.log"
out_has '"wanted_bytes": 44023414784'
printf 'Allocator ran out of memory trying to allocate 10529419660 Bytes (rounded to 10529419776 Bytes)\n' >"$work/rounded.log"
expect 0 hbmsim explain --json "$work/rounded.log"
out_has '"wanted_bytes": 10529419660'
printf 'keep the batch small, else you will see a CUDA Out Of Memory error\nHow to avoid the OOM error?\n' >"$work/will.log"
expect 1 hbmsim explain "$work/will.log"
printf '%s\n' 'Add OOM howto' 'Log OOMs' 'x.reason == "OOMKilled"' 'the arena does not free memory' >"$work/change.log"
expect 1 hbmsim explain "$work/change.log"
printf 'CUDA out of memory. Tried to allocate 17179869183.95 GiB (GPU 0; 23.65 GiB total capacity)\n' >"$work/eib.log"
expect 0 hbmsim explain --json "$work/eib.log"
out_has '"cause": "corrupt_size"'
printf "How to solve the OOM problem?\n" >"$work/solve.log"
expect 0 hbmsim explain "$work/solve.log"

# Words for memory and for too little of it, in other languages.
for text in 'Fehler: nicht gen\303\274gend Speicher' 'memoria insuficiente' '\353\251\224\353\252\250\353\246\254 \353\266\200\354\241\261'; do
    printf "$text\n" >"$work/tongue.log"
    expect 0 hbmsim explain --json "$work/tongue.log"
    out_has '"known": true'
done

# What the last draws taught: who is meant, what is on, what stands beside.
taught() { printf '%s\n' "$@" >"$work/taught.log"; expect 0 hbmsim explain --json "$work/taught.log"; }
taught 'RuntimeError: If there is none then your RAM was full and the worker was killed by the OS.'
out_has '"cause": "host_memory"'
taught 'gradient_checkpointing: true' 'per_device_train_batch_size: 1' 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.47 GiB. GPU 2 has a total capacity of 79.10 GiB of which 1.66 GiB is free. Of the allocated memory 75.55 GiB is allocated by PyTorch'
ok 'what is on is not advised' test -z "$(grep '"knob": "remat"' "$work/out")"
taught 'CudaAPIError: [719] Call to cuMemAlloc results in CUDA_ERROR_LAUNCH_FAILED'
out_has '"cause": "fault"'
taught 'Created TensorFlow device (/device:GPU:0 with 8000 MB memory)' 'OOM when allocating tensor with shape[1024,1024,1024] and type float on /device:GPU:0 by allocator GPU_0_bfc'
out_has '"cause": "single_giant"'
taught 'plugin node x requires 56405524864 bytes of scratch space, but only 47590277120 is available.'
out_has '"available_bytes": 47590277120'
taught 'UNSUPPORTED_STATE' 'vLLM worker' 'CUDA error: out of memory'
out_has '"knob": "server_share"'
taught 'Running out of GPU memory' "Can't reduce memory use below 2.12GiB (2278089352 bytes) by rematerialization; only reduced to 5.65GiB (6063398400 bytes), down from 5.70GiB (6125699228 bytes) originally"
out_has '"wanted_bytes": 6063398400'
taught 'Failed to launch CUDA kernel: fusion_29 with block dimensions: 128x1x1: CUDA_ERROR_OUT_OF_MEMORY: out of memory'
out_has '"cause": "communicator"'
taught 'I still cannot allocate over 4 GB on this device'
out_has '"cause": "limit"'
out_has '"wanted_bytes": null'
taught 'Given vmem_limit_bytes=64MB, the compiler sets the limit to ~120MB, still not enough, causing vmem OOM'
out_has '"available_bytes": null'
taught 'node CPU memory exhaustion rather than a plain CUDA OOM: a worker was killed after node memory reached 250.04GB / 251.54GB'
out_has '"cause": "host_memory"'
taught 'a CUDA out-of-memory error on 16 machines' 'the value of rollout.gpu_memory_utilization should be reduced'
out_has '"knob": "server_share"'
taught 'mlx-serve was asked for 97 frames' 'Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)'
ok 'no server takes a share of a Metal device' test -z "$(grep '"knob": "server_share"' "$work/out")"
# First advice by what the log tells of the program: what it does, what is at its least already.
first() {
    wanted=$1
    shift
    taught "$@"
    ok "first advice: $wanted" grep -q -m 1 "\"knob\": \"$wanted\"" "$work/out"
    ok "  before any other" test "$(grep -m 1 '"knob":' "$work/out" | tr -d ' ",')" = "knob:$wanted"
}
first smaller_batch 'Epoch 3, loss 2.1' 'RuntimeError: CUDA error: out of memory'
first smaller_batch 'RuntimeError: CUDA error: out of memory'
taught 'RuntimeError: CUDA error: out of memory'
out_has '"when": "trains"'
out_has '"when": "runs"'
first remat '--per_device_train_batch_size 1' 'per_device_eval_batch_size: 8' 'trainer.train()' 'CUDA out of memory'
first smaller_batch '--per_device_train_batch_size 4' 'per_device_eval_batch_size: 1' 'trainer.train()' 'CUDA out of memory'
first smaller_batch 'epoch 1, batch 1/300' 'CUDA out of memory'
first shard_state 'micro_batch_size: 1' 'gradient_checkpointing: true' 'CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. Of the allocated memory 7.21 GiB is allocated by PyTorch'
first sharded_checkpoint 'training went well, CUDA out of memory when saving the final checkpoint'
first smaller_batch 'train with --save_steps 500' 'CUDA out of memory'
first server_share 'GRPO training, OOM when waking up vLLM'
first fewer_bits 'model = Dia.from_pretrained("x")' 'RuntimeError: Native API failed: UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY'
first sharded_checkpoint 'x/fsdp/_state_dict_utils.py:312: Failed to clone() tensor' 'epoch 1' 'CUDA out of memory. Tried to allocate 270.00 MiB (GPU 1; 79.35 GiB total capacity; 76.93 GiB already allocated; 72.19 MiB free; 77.38 GiB reserved in total by PyTorch)'
first smaller_batch 'Megatron goes OOM after the first step'
first server_share 'model_runner.py:1025] took 19 GB' 'OOM when it profiles'
first smaller_batch 'per_device_batch_size=13' 'it fails with an OOM'
first look_closer '--batch-size 1 --grad-checkpoint' 'trainer.train()' 'OOM'
first remat '--batch_size 1' '--token_batch 10' 'trainer.train()' 'CUDA out of memory'
first smaller_pool 'cudnnFindConvolutionForwardAlgorithm: CUDNN_STATUS_ALLOC_FAILED'
# In the optimizer's step its states are what is too much, figures or none; a backward pass beside it tells nothing.
first shard_state 'self.optimizer.step()' 'deepspeed.initialize fails with an OOM'
out_has '"cause": "state"'
first shard_state 'OOM when allocating tensor with shape[512,769954] and type float on /device:GPU:0 by allocator GPU_0_bfc' '[[node trainer/logits/W/Adam/Assign]]'
out_has '"cause": "state"'
first smaller_batch 'loss.backward()' 'optimizer.step()' 'epoch 1: CUDA error: out of memory'
out_has '"cause": "unknown"'
# Whose memory, where only the whole text tells; not by what a machine has of it.
taught 'the dataloader workers take huge amounts of RAM' 'it fails: out of memory'
out_has '"cause": "host_memory"'
taught 'I have 16 GB of RAM' 'it fails: out of memory'
out_has '"cause": "unknown"'
taught 'the dataloader workers take huge amounts of RAM' 'it fails on the GPU' 'it fails: out of memory'
out_has '"cause": "unknown"'
for text in 'Finally my CPU memory used up and the program crashed' 'the data loader worker killed after running for a while'; do
    taught "$text"
    out_has '"cause": "host_memory"'
done
for text in 'the gpu memory explodes' 'I run into memory capacity issues' 'I am wondering if it is possible to train on gpus, I get an OOM'; do
    taught "$text"
    out_has '"cause": "unknown"'
done
taught 'CUDA out of memory error, stating that 100 MB failed to get allocated'
out_has '"wanted_bytes": 104857600'
for text in 'OOM, though I only need 405GB VRAM' 'on Kaggle GPUs (14GB available) I run out of memory'; do
    taught "$text"
    ok 'no figure' test "$(grep -c '_bytes": null' "$work/out")" -ge 3
done
taught 'Could not allocate 10485760 bytes in memory 0x0x0_HBM0; 4374528 bytes allocatable, 14942208 bytes available'
out_has '"cause": "fragmentation"'
out_has '"available_bytes": 14942208'
# A checkpoint that is saved, whoever saves it; a batch that "has been" set.
first sharded_checkpoint 'it only OOMs when saving the checkpoint'
first remat 'my batch size has been set to 1 for training' 'OOM'
first look_closer '"batch_size": 1, "checkpoint_activations": true' 'trainer.train()' 'OOM'
for text in 'Reports about the existence of CPU Memory Peaks, OOM issues' 'the host memory: still reports of OOM issues'; do
    taught "$text"
    out_has '"cause": "host_memory"'
done
taught 'students observe an out of memory error with the versions of the project'
out_has '"cause": "unknown"'
taught 'I could train a LoRA at size 768,768 without running out of VRAM, now I get an out of memory error'
out_has '"wanted_bytes": null'
printf '%s\n' 'This introduces 2GB GPU memory overhead, which will cause OOM if utilization is high.' >"$work/coming.log"
expect 1 hbmsim explain "$work/coming.log"
# Broken by a window's width, within a word, the rest padded; before the shape.
taught 'W bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to alloca' \
    'te 18.44GiB (rounded to 19805393664)requested by op                             '
out_has '"wanted_bytes": 19805393664'
taught 'ResourceExhaustedError: OOM when allocating tensor with shape' '[6272,30000] and type float on /device:GPU:0 by allocator GPU_0_bfc'
out_has '"wanted_bytes": 752640000'
first smaller_batch 'Qwen3-30B OOMs at every config (TP1/EP8 and TP2/EP8, mbs4 and mbs2)'
# A page's number is no amount; the first sentence may stand in a line alone.
taught 'see https://stackoverflow.com/questions/59394947/oom-when-allocating-tensor/59395251, the gpu is running out of memory'
out_has '"wanted_bytes": null'
taught 'torch.OutOfMemoryError: CUDA out of memory.' 'Tried to allocate 1.50 GiB.' 'GPU 0 has a total capacity of 23.65 GiB of which 1.36 GiB is free.'
out_has '"wanted_bytes": 1610612736'
# Whose memory: the sentence of the refusal tells, not another in its line.
taught 'On discrete GPUs this is no issue. The system crashed when the system memory was almost full.'
out_has '"cause": "host_memory"'
taught '[ERROR] cudaHostAlloc failed, ret[2], out of memory'
out_has '"cause": "host_memory"'
taught 'slapped with OOM even when I block swap'
out_has '"cause": "unknown"'
for text in 'Your session crashed after using all available RAM' 'the notebook crashes, all RAM has been consumed' \
    'Dataloader OOM during pretraining' 'one of your nodes had out of memory' 'ray object-store memory is not sufficient'; do
    taught "$text"
    out_has '"cause": "host_memory"'
done
taught 'ggml_aligned_malloc: insufficient memory (attempted to allocate 14796.44 MB)' 'alloc_tensor_range: failed to allocate CPU buffer of size 15515189248'
out_has '"cause": "host_memory"'
out_has '"wanted_bytes": 15515189248'
taught 'It was OOM-killed: the limits (64Mi request / 128Mi limit) were insufficient'
out_has '"wanted_bytes": null'
out_has '"available_bytes": 134217728'
taught 'RuntimeError: CUDA out of memory. It used 6G/24G of the card'
out_has '"available_bytes": null'
taught 'RuntimeError: CUDA out of memory. (But I have 24G memory available)'
out_has '"available_bytes": null'
taught 'initialization failed (cannot allocate memory)' 'the problem is out of main memory'
out_has '"cause": "host_memory"'
taught 'CUDA out of memory. Tried to allocate 42.00 MiB. GPU 0 has a total capacty of 39.39 GiB of which 31.94 MiB is free. Process 75 has 39.23 GiB memory in use. Of the allocated memory 37.21 GiB is allo'
out_has '"cause": "size"'
taught 'Total hbm usage >= 11.47G:' '    HLO temp 10.96G (1.2% utilization: Unpadded (140.25M) Padded (10.96G), 0.0% fragmentation (0B))' '  1. Size: 8.77G' '     Shape: f32[8,2176,1056,2]'
out_has '"cause": "padding"'
taught 'Some instances do not have enough system RAM (~13-14 GiB are required)'
out_has '"wanted_bytes": null'
taught '16GB of RAM is not enough for this. I had to upgrade to 32GB using a larger one.'
out_has '"wanted_bytes": null'
taught 'The scope is reduced, for the wider one OOMs 16 cards'
out_has '"cause": "unknown"'
taught 'CUDA out of memory. Tried to allocate 984.00 MiB. GPU 0 has a total capacity of 39.38 GiB of which 209.38 MiB is free. Process 275 has 39.17 GiB memory in use. Of the allocated memory 37.68 GiB is allocated by PyTorch, and 867.'
out_has '"cause": "size"'
# Figures: equipment, what was requested of a scheduler, what exceeds what, a shape without a type.
taught 'everything OOMs, though it is made for a 24 GB 4090'
out_has '"wanted_bytes": null'
taught 'pods are killed by OOM. I requested 100GB of mem'
out_has '"wanted_bytes": null'
taught 'OOM when I train on v5p, which uses 400G memory, exceeding the 95G memory limit'
out_has '"wanted_bytes": 429496729600'
out_has '"available_bytes": 102005473280'
taught '=>> PBS: job killed: mem 38427376kb exceeded limit 33554432kb'
out_has '"wanted_bytes": 39349633024'
out_has '"available_bytes": 34359738368'
taught 'OOM when allocating tensor with shape[128,1,596,256]'
out_has '"wanted_bytes": 78118912'
taught 'error: (-4:Insufficient memory) Failed to allocate 512956604754240 bytes'
out_has '"cause": "corrupt_size"'
taught 'Memory cgroup out of memory: Killed process 4182 (w) total-vm:812044kB, anon-rss:518420kB' 'memory.max: 536870912'
out_has '"available_bytes": 536870912'
taught '| Allocated memory      |    5821 MB |    9773 MB |' '| GPU reserved memory   |    8208 MB |    9966 MB |'
out_has '"wanted_bytes": 10450108416'
taught 'ResourceExhaustedError   Traceback (most recent call last)'
out_has '"cause": "unknown"'
taught 'cgroup causing OOMkilled'
out_has '"cause": "host_memory"'
taught 'but I was getting OOMed'
out_has '"known": true'
# A state that is resumed, a card's name before its size, figures of a dump that was cut.
first sharded_checkpoint 'CUDA out of memory when resuming training from a checkpoint'
first sharded_checkpoint 'Training requires more memory after restoring from checkpoint: CUDA out of memory'
first smaller_batch 'resume_from_checkpoint: latest' 'epoch 1' 'CUDA out of memory'
taught 'I use one 1080ti 11Gb with a batch size 8, OOM occurred'
out_has '"wanted_bytes": null'
taught 'Allocator (GPU_0_bfc) ran out of memory trying to allocate 128.00MiB.  Current allocation summary follows.' \
    'Bin (256):  Total Chunks: 96, Chunks in use: 93. 24.0KiB allocated for chunks. 23.3KiB in use in bin. 484B client-requested in use in bin.'
out_has '"available_bytes": null'
taught 'deepsea_compiler_base.cc:3882] Failed to verify buffer assignment.' 'Peak HBM: 421.33GiB'
out_has '"wanted_bytes": 452399642706'
taught 'NCCL WARN Cuda failure 2 out of memory' 'stream_executor_allocator.cc:66] could not allocate collective of size: 20289079296'
out_has '"cause": "communicator"'
out_has '"wanted_bytes": 20289079296'
first look_closer '--micro_batch_size 1 --recompute_granularity full' 'trainer.train()' 'OOM'
first remat 'fine-tuning, bs=1' 'OOM'
for text in 'Vision fine-tuning takes impossibly high VRam (OOM error)' 'T4: \345\206\205\345\255\230\346\272\242\345\207\272'; do
    printf "$text\n" >"$work/whose.log"
    expect 0 hbmsim explain --json "$work/whose.log"
    out_has '"cause": "unknown"'
done
taught 'VRAM usage for a simple lora has gone above 4090 capacity'
out_has '"cause": "unknown"'
taught 'I am getting memory errors with the nested unet'
out_has '"cause": "unknown"'
taught 'for example 30M samples, the RAM crashes with OOM error'
out_has '"wanted_bytes": null'
first remat 'fine-tuning with bs1 is OOM'
first shard_state 'after backward it is at 61 GB and during the step function it goes out of memory' 'sft, --micro_train_batch_size 1'
first smaller_batch 'llama DPO training with zero3, each ending in OOM'
taught 'it runs out of memory:' 'Found device 0 with properties:' 'Total memory: 7.92GiB' 'Free memory: 7.81GiB'
out_has '"available_bytes": null'
for text in 'it seems to be RAM, which fills up completely' 'memory accumulates so that I get RAM problems'; do
    taught "$text"
    out_has '"cause": "host_memory"'
done
# In the wrong order, what cannot be had without it, whose memory is filled, how to solve it.
taught 'RuntimeError: cuda of out memory'
out_has '"known": true'
taught 'I cannot train it at all without OOM'
out_has '"known": true'
taught 'the GPU memory gets filled and training crashes with OOM'
out_has '"cause": "unknown"'
taught 'How to split a model over two GPUs to solve CUDA out of memory?'
out_has '"known": true'
taught 'OutOfMemory: no room on the device. Requested size was 2147483648 bytes'
out_has '"wanted_bytes": 2147483648'
first remat 'fine-tuning, train_bs = 1' 'OOM'
# Evidence: who prints, reports in a headline, in the past or of himself; else it is only supposed, and figures are none.
for text in 'E0101 12:30:59 worker: out of memory' '# CUDA OOM in distributed training' 'The step crashes with CUDA out of memory' \
    'RuntimeError: out of memory' 'Training stopped, but OOM' 'the OOM occurred in the second epoch'; do
    taught '# Notes' "$text"
    out_has '"supposed": false'
done
for text in 'Long inputs causing OOM are relevant' 'lower the batch size in a loop if the CUDA OOM occurs' 'Exceeding the quota surfaces as a CUDA OOM inside'; do
    printf '# Notes\n%s\n' "$text" | hbmsim explain --json - >"$work/out" || true
    ok "supposed at most: $text" test -z "$(grep '"supposed": false' "$work/out")"
done
taught '# Notes' 'Long inputs causing OOM are relevant'
out_has '"cause": "unknown"'
taught '# Notes' 'Long inputs causing OOM are relevant' 'I tried it at home'
out_has '"supposed": false'
taught '# Notes' 'it gave OOM on a GPU with 24GB memory, it needs a little more than 24GB'
out_has '"wanted_bytes": null'
printf '# Notes\nYou may have OOM issues above that size\n' >"$work/may.log"
expect 1 hbmsim explain "$work/may.log"
first remat 'trainer.train(), loss, epoch, a batch size of one each' 'CUDA out of memory'
# A container's status alone tells nothing of memory; with a word of it, or a shell's, it does.
for text in 'command terminated with exit code 137' 'Job failed: exit code 137'; do
    taught '# Notes' "$text" 'I do not set a limit'
    out_has '"supposed": true'
    out_has '"knob": "host_memory"'
done
for more in 'line 4: 7537 Killed sort' 'Reason: OOMKilled'; do
    taught '# Notes' 'terminated with exit status 137' "$more"
    out_has '"cause": "host_memory"'
done
taught 'CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.25 GiB of which 2.27 GiB is free. Including non-PyTorch memory, this process has 0 bytes memory in use. Of the allocated memory 36.46 GiB is allocated by PyTorch, and 20.98 MiB is reserved by PyTorch but unallocated.'
out_has '"cause": "other_processes"'
taught '# Notes' 'the job was hitting the memory limits of the node'
out_has '"known": true'
taught '# Notes' 'Fixes an HBM OOM issue during inference'
out_has '"supposed": false'
# What is only named is none: instead of what, a test, a function, the title of a change, none of it.
for named in 'include/alloc.h:102 NCCL WARN Cuda failure invalid argument' 'no occurrence of GPU memory exceeding its limit' \
    'A pod may fail due to OOM' 'the kubelet would OOM-kill it' 'did it fail with an out of memory error?' 'MPS OOM handling' 'so it is easy to exceed the gpu memory' 'XPU: fatal RuntimeErrors instead of recoverable OutOfMemoryError' \
    'it peaked under its 512 MiB limit, with zero high, max, OOM or OOM-kill events' \
    'always check your system logs for an "Out of Memory" event' 'def test_warmup_oom_defers():' \
    'A warmup CUDA OOM must not take the function down' '# Enable OOMKillStep in slurm config' \
    '# docs: Add comprehensive OOM resolution guide' \
    'Adam can take a large amount of memory, potentially causing OOM errors' 'README.md#out-of-memory-issues' \
    '| with previews | OOM-prone |' 'Have you ever been stopped dead by a "CUDA out of memory" error?' \
    'I just disabled vmem OOM test for v5e' '  File "/x/spill.py", line 559, in oom' \
    '# 4bit models for 4x faster downloading + no OOMs.' \
    '# [BUG] Catch and propagate rmm out of memory errors up to Python' \
    'the memory limit shall be exceeded and the pod should be killed' 'The status "OOMKilled" never occurs.' \
    '# Reserve allocation should be displayed when erroring due to lack of memory' \
    'Each node has an OOM killer that preemptively kills workers' 'a metric of OOM kills' 'How many tasks were killed by OOM' \
    'it frees memory by killing a process that would OOM' "What's the OOM threshold" \
    'For some models, it will almost certainly lead to out of memory problems.' \
    'Install the latest version, as it is giving OOM without it' 'version 4.32, as earlier versions results in OOM'; do
    printf '%s\n' "$named" >"$work/named.log"
    expect 1 hbmsim explain "$work/named.log"
done
for named in '# oc status should report oom kill' 'x <- get_oomKill_arrayindex(job)' \
    'What is OOMKilled (exit code 137)' 'The OOMKilled status signifies that a container surpassed its memory limit.' \
    'it runs without being killed'; do
    printf '# Notes\n%s\n' "$named" >"$work/named.log"
    expect 1 hbmsim explain "$work/named.log"
done
printf 'Unable to generate TEXTURE, is 12GB vram not enough\n' >"$work/asked.log"
expect 1 hbmsim explain "$work/asked.log"
finish
