# hbmsim explain: texts out of public issue threads, each with what is to be said of it: wanted and
# available bytes, cause, first advice, set from what solved it where the thread tells. A block begins with `@ THREAD wanted available cause advice`
# (-: not told; nothing: no message is known); behind a `|` what the thread or the text's reader would have had instead.
#
# What a text is worth goes by what stands in it, not by who wrote it:
# - a line that a program printed (a refusal, with or without figures, a container's status, frames of a stack) is told,
#   in a guide, a README or a quote as well;
# - so is what somebody says of his own case, and what he is told of it ("you are running out of memory");
# - text that explains such errors to anybody (what they are, when they occur, what helps), or only names them, is nothing;
# - what a library warns of or a tracker's form asks for ("You should ...") makes no guide of a text, except in a refusal's own line;
# - where a sentence leaves open which of these it is, the answer is supposed.
. tests/tap.sh

table=tests/golden/logs/wild.txt

# What the last run says, as in the table: a line for each advice that comes first for its kind of program. A cause that is
# only supposed has a ? behind it; advice for the case that it was the host's memory stands for that cause.
said() {
    awk '/^  "known": false/ { print "- - nothing -"; exit }
        function value() { v = $2; gsub(/[",]/, "", v); return v == "null" ? "-" : v }
        /^  "wanted_bytes":/ { wanted = value() }
        /^  "available_bytes":/ { available = value() }
        /^  "cause":/ { cause = value() (supposed ? "?" : "") }
        /^  "supposed": true/ { supposed = 1 }
        /^      "knob":/ { knob = value() }
        /^      "when":/ { when = value(); if (!count++ || (when != "-" && parted)) { knobs[count] = knob; whose[count] = when }
                           parted = when != "-" }
        END { if (!cause) exit
              if (!count) knobs[count = 1] = "-"
              for (i = 1; i <= count; i++) if (i in knobs) print wanted, available, whose[i] == "host" ? "host_memory" (supposed ? "?" : "") : cause, knobs[i] }' "$1"
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
ok "the table has its $count texts" test "$count" -ge 6305
ok "the manual tells how many" grep -q "\[$count texts\]" docs/manual.md
# What nothing was advised of is not said otherwise, but not said.
ended=$(grep '^@ .* | ' $table)
ok "few are said otherwise than they ended" test "$(echo "$ended" | grep -vc '? - | ')" -le $((count * 65 / 1000))
ok "few that ended are not said" test "$(echo "$ended" | grep -c '? - | ')" -le $((count * 29 / 1000))

# Rows `KEY=VALUE ...|text`: what the answer has for the text, whose lines are parted by \n; first=KNOB: the first
# advice, no=KNOB: none such, unsure: nothing that is more than supposed, silent: nothing is known.
rows() {
    while IFS='|' read -r wanted text; do
        case $wanted in '#'*) continue ;; esac
        printf '%b\n' "$text" >"$work/row.log"
        run hbmsim explain --json "$work/row.log"
        missed=
        for pair in $wanted; do
            case $pair in
            silent) [ "$status" = 1 ] ;;
            first=*) [ "$(grep -m 1 '"knob":' "$work/out" | tr -d ' ",')" = "knob:${pair#*=}" ] ;;
            no=*) [ "$status" = 0 ] && ! grep -q "\"knob\": \"${pair#*=}\"" "$work/out" ;;
            unsure) ! grep -q '"supposed": false' "$work/out" ;;
            *) [ "$status" = 0 ] && grep -qE "\"${pair%%=*}\": \"?${pair#*=}\"?,?\$" "$work/out" ;;
            esac || missed="$missed $pair"
        done
        ok "$wanted: ${text%%\\n*}" test -z "$missed"
    done
}

# All figures zero: no record, and said so.
printf 'CompiledMemoryStats(generated_code_size_in_bytes=2856, argument_size_in_bytes=0, output_size_in_bytes=0, alias_size_in_bytes=0, temp_size_in_bytes=0)\n' >"$work/zero.log"
expect 1 hbmsim record --config examples/quickstart/model.yaml --id x "$work/zero.log"
err_has 'all figures of memory_analysis() are zero'
expect 0 hbmsim explain "$work/zero.log"
out_has 'All figures are zero: this backend does not tell them.'
printf 'MA 0.0 GB         Max_MA 0.0 GB         CA 0.0 GB         Max_CA 0 GB\n' >"$work/zero.log"
expect 1 hbmsim record --config examples/quickstart/model.yaml --id x "$work/zero.log"
expect 1 hbmsim explain "$work/zero.log"

# The text of a change of a program: what it mentions is nothing, what it says is supposed, what a program
# printed is told.
rows <<'EOF'
silent|# Add handling of OOM\nThe handler is called where a GPU may run out of memory.
EOF
printf '# fix: chunks of the loss\nWithout it this model OOMs on eight devices.\n' >"$work/change.log"
expect 0 hbmsim explain "$work/change.log"
out_has 'Memory that runs out is spoken of; nothing here says that it did.'
printf '# Large batches\nWithout it this model OOMs on eight devices.\n' >"$work/change.log"
expect 0 hbmsim explain "$work/change.log"
out_has 'out of memory, without figures'
printf '# fix: chunks of the loss\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n' >"$work/change.log"
expect 0 hbmsim explain "$work/change.log"
out_has 'wanted           2.00 GiB'
rows <<'EOF'
silent|retry\n-        throw new GpuOOM("GPU OutOfMemory: could not split inputs")
silent|PyTorch does not raise an OOM error here.
# A message's size is none of a request, what a device has at some other time none of what was free.
wanted_bytes=null|# x\nout of memory error when running all_reduce with 16G message size
available_bytes=null|CUDA error: out of memory\nTotal memory: 4.63GiB\nFree memory: 4.57GiB
cause=corrupt_size|MemoryError: Unable to allocate 48.9 PiB for an array
EOF

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
rows <<'EOF'
wanted_bytes=null|cudaMalloc failed: out of memory - ubuntu server - 4 16 GB GPUs & 768 GB RAM
wanted_bytes=null|CUDA malloc fails (dual-GPU setup with 72GB VRAM and 128GB RAM)
# Sentences of anybody: who ran short, and of how much.
cause=host_memory|The paging file is too small for this operation to complete.
cause=host_memory|memory allocation of 8589934592 bytes failed
cause=host_memory|my process was killed by the system when loading the dataset
cause=host_memory|The phase is Killed every time
EOF
printf 'Model requires 24 GB of memory but only 16 GB are available\n' >"$work/but.log"
expect 0 hbmsim explain "$work/but.log"
out_has 'wanted          24.00 GiB'
out_has 'there was       16.00 GiB'
printf 'The model is too large to fit in GPU memory\n' >"$work/fit.log"
expect 0 hbmsim explain "$work/fit.log"
out_has 'out of memory, without figures'
out_has 'Why: not told.'
ok 'what is said in the first line is not said again' test "$(grep -c 'without figures' "$work/out")" = 1
rows <<'EOF'
silent|the trousers fit\nthe server was killed by hand
EOF

# Words of running a model, as a person writes them and within the names of a program.
for text in 'Running the inference script' 'File "run_inference.py"' 'class FluxInferencePipeline'; do
    printf '%s\nCUDA error: out of memory\n' "$text" >"$work/runs.log"
    expect 0 hbmsim explain "$work/runs.log"
    out_has '1. fewer or shorter sequences'
done
for text in 'the conference code=if it trains: fewer' 'after training, inference=if it trains: fewer' 'after training, inference of images=if it trains: fewer' 'Epoch 3, optimizer, generate()=fewer sequences at once'; do
    printf '%s\nCUDA error: out of memory\n' "${text%=*}" >"$work/trains.log"
    expect 0 hbmsim explain "$work/trains.log"
    out_has "1. ${text#*=}"
done

# Whose memory it was is left open where no device is named, or the host's beside it: then both come first.
rows <<'EOR'
when=device when=host first=fewer_requests|Out of memory when parsing a long document\nsample: infer, server
when=trains when=runs when=host|I'm getting "out of memory" errors on a droplet.
when=host|OOM on 8 samples\nThe GPU is free, the machine has 16 GB of RAM.
cause=unknown no=host_memory|OOM on 8 samples\nThe GPU is free.
no=host_memory|CUDA out of memory on a machine with 16 GB of RAM
cause=host_memory|when i train it often come error : MemoryError , then it quit
cause=unknown|it often come error : OutOfMemoryError , then it quit
wanted_bytes=20971520 cause=host_memory|not enough memory: you tried to allocate 20971520 bytes
# PyTorch's pool holds what the program's tensors took: less at once leaves a library its room; other pools are set.
first=smaller_batch cause=communicator|Epoch 3, optimizer\nCUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\nloss.backward()
first=smaller_pool cause=communicator|failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED
# No figures: a shape, what somebody added before a process was killed. A fault that a change speaks of is nothing.
wanted_bytes=null|OOM with an input of (128,128,128) on the GPU
wanted_bytes=null cause=host_memory|I added a 6GB swap to the 4GB of memory, but it gets killed by the OOM killer
silent|# fix: surface the loss of a device\nA large model can trigger a device lost, a watchdog reset.
EOR

# Of a server the share comes first; what nobody is said to hold is told.
printf 'vLLM worker: gpu_memory_utilization=0.9\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 15.77 GiB of which 514.19 MiB is free. Of the allocated memory 13.73 GiB is allocated by PyTorch, and 736.86 MiB is reserved by PyTorch but unallocated.\n' >"$work/serve.log"
expect 0 hbmsim explain "$work/serve.log"
out_has '1. another share of the device for the server'
out_has 'neither PyTorch'

# Hosts' allocators and schedulers, by their own messages; what is kept from happening, or asked for, is none.
rows <<'EOF'
cause=host_memory|cudaMallocHost failed: cudaErrorMemoryAllocation: out of memory
wanted_bytes=3994319585 cause=host_memory|Allocator (cuda_host_bfc) ran out of memory trying to allocate 3.72GiB.
wanted_bytes=192000000 cause=host_memory|OOM when allocating tensor with shape[3,4000,4000] and type float on /device:GPU:0 by allocator gpu_host_bfc
cause=host_memory|job 7 exceeds job hard limit "h_vmem" of queue "q" - sending SIGKILL
cause=host_memory|Job 7 caused action: Job exceeds limit of h_vmem
wanted_bytes=4294967296 cause=host_memory|pyarrow.lib.ArrowMemoryError: malloc of size 4294967296 failed
wanted_bytes=3972844749 available_bytes=2254857830|running beyond virtual memory limits. Current usage: 348.4 MB of 1 GB physical memory used; 3.7 GB of 2.1 GB virtual memory used.
silent|export NCCL_BUFFSIZE=2097152 # Prevent Cuda failure 'out of memory'
available_bytes=null|slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch\nRaise the request: #SBATCH --mem=64G
cause=other_processes|CUDA out of memory. Tried to allocate 768.00 MiB. GPU 0 has a total capacity of 83.05 GiB of which 140.38 MiB is free. Including non-PyTorch memory, this process has 23.33 GiB memory in use.
cause=size|CUDA out of memory. Tried to allocate 768.00 MiB. GPU 0 has a total capacity of 83.05 GiB of which 140.38 MiB is free. Including non-PyTorch memory, this process has 79.
first=look_closer|RuntimeError: could not allocate 4000000000000 bytes
EOF

# Amounts as kernels' linkers print them, and pairs of what was expected and got.
rows <<'EOF'
cause=on_chip|Note the OutOfResources error on shared memory
wanted_bytes=200000 available_bytes=49152 cause=on_chip|ptxas error   : Entry function 'k' uses too much shared data (0x30d40 bytes, 0xc000 max)
wanted_bytes=null|mapped at 0x7fa4c6800000 to 0x7fa4c6900000, out of memory
available_bytes=314240|runtime error: not enough space: expected 318080, got 314240
wanted_bytes=null|with a block size of 3072 I get OOM
wanted_bytes=2304 cause=host_memory|could not allocate pinned host memory of size: 2304\nfailed to alloc 2073 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory
# What the host's systems say, by their own numbers, in any language; where a limit stands.
cause=host_memory|OSError: [WinError 1455] \0351\0241\0265
cause=host_memory|OSError: [Errno 12] nope
cause=host_memory|NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory
cause=host_memory|shmget failed: error 28 (No space left on device)
cause=host_memory|unable to open shared memory object </torch_1_2> in read-write mode
cause=host_memory|Pods getting OOM
EOF
printf '%s\n' '      Reason:       OOMKilled' '    Limits:' '      cpu:     100m' '      memory:  30Mi' '    Requests:' '      memory:  20Mi' >"$work/pod.log"
expect 0 hbmsim explain "$work/pod.log"
out_has 'there was       30.00 MiB'
out_has 'the limit that container or job were given'
rows <<'EOF'
silent|unable to open shared memory object: Too many open files (24)
EOF

# A fault is no lack of memory, and is said to be none; a refusal beside it comes first.
for text in 'CUDA error: an illegal memory access was encountered' 'CUDA error: device-side assert triggered' 'Segmentation fault (core dumped)'; do
    printf '%s\n' "$text" >"$work/fault.log"
    expect 0 hbmsim explain "$work/fault.log"
    out_has 'the log has no lack of memory'
    ok 'no advice about batches' test -z "$(grep -i 'smaller batch' "$work/out")"
done
rows <<'EOF'
cause=unknown|CUDA error: an illegal memory access was encountered\nCUDA error: out of memory
# What somebody reckons is no figure, unless it is needed; a count of something is none either.
wanted_bytes=null available_bytes=null|I get CUDA out of memory though jobs that work use ~10Gb
wanted_bytes=null available_bytes=null|cuda oom: it should be around 18GiB per GPU
wanted_bytes=null available_bytes=null|killed for lack of memory: each uses between 250 and 400 MB of RAM
wanted_bytes=null available_bytes=null|OOM on a 36 GB machine
available_bytes=null|RuntimeError: Decode out of memory.\nAvailable tokens: 2048\navailable_size()=2048
wanted_bytes=null|OOM on TPU: per device HBM is only 31.25GB and it needed around 41GB
wanted_bytes=10529419660|Allocator ran out of memory trying to allocate 10529419660 Bytes (rounded to 10529419776 Bytes)
silent|keep the batch small, else you will see a CUDA Out Of Memory error\nHow to avoid the OOM error?
silent|Add OOM howto\nLog OOMs\nx.reason == "OOMKilled"\nthe arena does not free memory
cause=corrupt_size|CUDA out of memory. Tried to allocate 17179869183.95 GiB (GPU 0; 23.65 GiB total capacity)
known=true|How to solve the OOM problem?
# Words for memory and for too little of it, in other languages.
known=true|Fehler: nicht gen\0303\0274gend Speicher
known=true|memoria insuficiente
known=true|\0353\0251\0224\0353\0252\0250\0353\0246\0254 \0353\0266\0200\0354\0241\0261
# What the last draws taught: who is meant, what is on, what stands beside.
cause=host_memory|RuntimeError: If there is none then your RAM was full and the worker was killed by the OS.
no=remat|gradient_checkpointing: true\nper_device_train_batch_size: 1\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.47 GiB. GPU 2 has a total capacity of 79.10 GiB of which 1.66 GiB is free. Of the allocated memory 75.55 GiB is allocated by PyTorch
cause=fault|CudaAPIError: [719] Call to cuMemAlloc results in CUDA_ERROR_LAUNCH_FAILED
cause=single_giant|Created TensorFlow device (/device:GPU:0 with 8000 MB memory)\nOOM when allocating tensor with shape[1024,1024,1024] and type float on /device:GPU:0 by allocator GPU_0_bfc
available_bytes=47590277120|plugin node x requires 56405524864 bytes of scratch space, but only 47590277120 is available.
knob=server_share|UNSUPPORTED_STATE\nvLLM worker\nCUDA error: out of memory
wanted_bytes=6063398400|Running out of GPU memory\nCan't reduce memory use below 2.12GiB (2278089352 bytes) by rematerialization; only reduced to 5.65GiB (6063398400 bytes), down from 5.70GiB (6125699228 bytes) originally
cause=communicator|Failed to launch CUDA kernel: fusion_29 with block dimensions: 128x1x1: CUDA_ERROR_OUT_OF_MEMORY: out of memory
cause=limit wanted_bytes=null|I still cannot allocate over 4 GB on this device
available_bytes=null|Given vmem_limit_bytes=64MB, the compiler sets the limit to ~120MB, still not enough, causing vmem OOM
cause=host_memory|node CPU memory exhaustion rather than a plain CUDA OOM: a worker was killed after node memory reached 250.04GB / 251.54GB
knob=server_share|a CUDA out-of-memory error on 16 machines\nthe value of rollout.gpu_memory_utilization should be reduced
no=server_share|mlx-serve was asked for 97 frames\nInsufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)
# First advice by what the log tells of the program: what it does, what is at its least already.
first=smaller_batch|Epoch 3, loss 2.1\nRuntimeError: CUDA error: out of memory
first=smaller_batch|RuntimeError: CUDA error: out of memory
when=trains when=runs|RuntimeError: CUDA error: out of memory
first=remat|--per_device_train_batch_size 1\nper_device_eval_batch_size: 8\ntrainer.train()\nCUDA out of memory
first=smaller_batch|--per_device_train_batch_size 4\nper_device_eval_batch_size: 1\ntrainer.train()\nCUDA out of memory
first=smaller_batch|epoch 1, batch 1/300\nCUDA out of memory
first=shard_state|micro_batch_size: 1\ngradient_checkpointing: true\nCUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. Of the allocated memory 7.21 GiB is allocated by PyTorch
first=sharded_checkpoint|training went well, CUDA out of memory when saving the final checkpoint
first=smaller_batch|train with --save_steps 500\nCUDA out of memory
first=server_share|GRPO training, OOM when waking up vLLM
first=fewer_bits|model = Dia.from_pretrained("x")\nRuntimeError: Native API failed: UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
first=sharded_checkpoint|x/fsdp/_state_dict_utils.py:312: Failed to clone() tensor\nepoch 1\nCUDA out of memory. Tried to allocate 270.00 MiB (GPU 1; 79.35 GiB total capacity; 76.93 GiB already allocated; 72.19 MiB free; 77.38 GiB reserved in total by PyTorch)
first=smaller_batch|Megatron goes OOM after the first step
first=server_share|model_runner.py:1025] took 19 GB\nOOM when it profiles
first=smaller_batch|per_device_batch_size=13\nit fails with an OOM
first=look_closer|--batch-size 1 --grad-checkpoint\ntrainer.train()\nOOM
first=remat|--batch_size 1\n--token_batch 10\ntrainer.train()\nCUDA out of memory
first=smaller_pool|cudnnFindConvolutionForwardAlgorithm: CUDNN_STATUS_ALLOC_FAILED
# In the optimizer's step its states are what is too much, figures or none; a backward pass beside it tells nothing.
first=shard_state cause=state|self.optimizer.step()\ndeepspeed.initialize fails with an OOM
first=shard_state cause=state|OOM when allocating tensor with shape[512,769954] and type float on /device:GPU:0 by allocator GPU_0_bfc\n[[node trainer/logits/W/Adam/Assign]]
first=smaller_batch cause=unknown|loss.backward()\noptimizer.step()\nepoch 1: CUDA error: out of memory
# Whose memory, where only the whole text tells; not by what a machine has of it.
cause=host_memory|the dataloader workers take huge amounts of RAM\nit fails: out of memory
cause=unknown|I have 16 GB of RAM\nit fails: out of memory
cause=unknown|the dataloader workers take huge amounts of RAM\nit fails on the GPU\nit fails: out of memory
cause=unknown|the dataloader workers take huge amounts of RAM\nit fails: out of GPU memory
cause=host_memory|Finally my CPU memory used up and the program crashed
cause=host_memory|the data loader worker killed after running for a while
cause=unknown|the gpu memory explodes
cause=unknown|I run into memory capacity issues
cause=unknown|I am wondering if it is possible to train on gpus, I get an OOM
wanted_bytes=null|CUDA out of memory error, stating that 100 MB failed to get allocated
wanted_bytes=null available_bytes=null|OOM, though I only need 405GB VRAM
wanted_bytes=null available_bytes=null|on Kaggle GPUs (14GB available) I run out of memory
cause=fragmentation available_bytes=14942208|Could not allocate 10485760 bytes in memory 0x0x0_HBM0; 4374528 bytes allocatable, 14942208 bytes available
# A checkpoint that is saved, whoever saves it; a batch that "has been" set.
first=sharded_checkpoint|it only OOMs when saving the checkpoint
first=remat|my batch size has been set to 1 for training\nOOM
first=look_closer|"batch_size": 1, "checkpoint_activations": true\ntrainer.train()\nOOM
cause=host_memory|Reports about the existence of CPU Memory Peaks, OOM issues
cause=host_memory|the host memory: still reports of OOM issues
cause=unknown|students observe an out of memory error with the versions of the project
wanted_bytes=null|I could train a LoRA at size 768,768 without running out of VRAM, now I get an out of memory error
silent|This introduces 2GB GPU memory overhead, which will cause OOM if utilization is high.
# Broken by a window's width, within a word, the rest padded; before the shape.
wanted_bytes=19805393664|W bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to alloca\nte 18.44GiB (rounded to 19805393664)requested by op                             
wanted_bytes=752640000|ResourceExhaustedError: OOM when allocating tensor with shape\n[6272,30000] and type float on /device:GPU:0 by allocator GPU_0_bfc
first=smaller_batch|Qwen3-30B OOMs at every config (TP1/EP8 and TP2/EP8, mbs4 and mbs2)
# A page's number is no amount; the first sentence may stand in a line alone.
wanted_bytes=null|see https://stackoverflow.com/questions/59394947/oom-when-allocating-tensor/59395251, the gpu is running out of memory
wanted_bytes=1610612736|torch.OutOfMemoryError: CUDA out of memory.\nTried to allocate 1.50 GiB.\nGPU 0 has a total capacity of 23.65 GiB of which 1.36 GiB is free.
# Whose memory: the sentence of the refusal tells, not another in its line.
cause=host_memory|On discrete GPUs this is no issue. The system crashed when the system memory was almost full.
cause=host_memory|[ERROR] cudaHostAlloc failed, ret[2], out of memory
cause=unknown|slapped with OOM even when I block swap
cause=host_memory|Your session crashed after using all available RAM
cause=host_memory|the notebook crashes, all RAM has been consumed
cause=host_memory|Dataloader OOM during pretraining
cause=host_memory|one of your nodes had out of memory
cause=host_memory|ray object-store memory is not sufficient
cause=host_memory wanted_bytes=15515189248|ggml_aligned_malloc: insufficient memory (attempted to allocate 14796.44 MB)\nalloc_tensor_range: failed to allocate CPU buffer of size 15515189248
wanted_bytes=null available_bytes=134217728|It was OOM-killed: the limits (64Mi request / 128Mi limit) were insufficient
available_bytes=null|RuntimeError: CUDA out of memory. It used 6G/24G of the card
available_bytes=null|RuntimeError: CUDA out of memory. (But I have 24G memory available)
cause=host_memory|initialization failed (cannot allocate memory)\nthe problem is out of main memory
cause=size|CUDA out of memory. Tried to allocate 42.00 MiB. GPU 0 has a total capacty of 39.39 GiB of which 31.94 MiB is free. Process 75 has 39.23 GiB memory in use. Of the allocated memory 37.21 GiB is allo
cause=padding|Total hbm usage >= 11.47G:\n    HLO temp 10.96G (1.2% utilization: Unpadded (140.25M) Padded (10.96G), 0.0% fragmentation (0B))\n  1. Size: 8.77G\n     Shape: f32[8,2176,1056,2]
wanted_bytes=null|Some instances do not have enough system RAM (~13-14 GiB are required)
wanted_bytes=null|16GB of RAM is not enough for this. I had to upgrade to 32GB using a larger one.
cause=unknown|The scope is reduced, for the wider one OOMs 16 cards
cause=size|CUDA out of memory. Tried to allocate 984.00 MiB. GPU 0 has a total capacity of 39.38 GiB of which 209.38 MiB is free. Process 275 has 39.17 GiB memory in use. Of the allocated memory 37.68 GiB is allocated by PyTorch, and 867.
# Figures: equipment, what was requested of a scheduler, what exceeds what, a shape without a type.
wanted_bytes=null|everything OOMs, though it is made for a 24 GB 4090
wanted_bytes=null|pods are killed by OOM. I requested 100GB of mem
wanted_bytes=null available_bytes=null|OOM when I train on v5p, which uses 400G memory, exceeding the 95G memory limit
wanted_bytes=39349633024 available_bytes=34359738368|=>> PBS: job killed: mem 38427376kb exceeded limit 33554432kb
wanted_bytes=78118912|OOM when allocating tensor with shape[128,1,596,256]
cause=corrupt_size|error: (-4:Insufficient memory) Failed to allocate 512956604754240 bytes
available_bytes=536870912|Memory cgroup out of memory: Killed process 4182 (w) total-vm:812044kB, anon-rss:518420kB\nmemory.max: 536870912
wanted_bytes=10450108416|| Allocated memory      |    5821 MB |    9773 MB |\n| GPU reserved memory   |    8208 MB |    9966 MB |
cause=unknown|ResourceExhaustedError   Traceback (most recent call last)
cause=host_memory|cgroup causing OOMkilled
known=true|but I was getting OOMed
# A state that is resumed, a card's name before its size, figures of a dump that was cut.
first=sharded_checkpoint|CUDA out of memory when resuming training from a checkpoint
first=sharded_checkpoint|Training requires more memory after restoring from checkpoint: CUDA out of memory
first=smaller_batch|resume_from_checkpoint: latest\nepoch 1\nCUDA out of memory
wanted_bytes=null|I use one 1080ti 11Gb with a batch size 8, OOM occurred
available_bytes=null|Allocator (GPU_0_bfc) ran out of memory trying to allocate 128.00MiB.  Current allocation summary follows.\nBin (256):  Total Chunks: 96, Chunks in use: 93. 24.0KiB allocated for chunks. 23.3KiB in use in bin. 484B client-requested in use in bin.
wanted_bytes=452399642706|deepsea_compiler_base.cc:3882] Failed to verify buffer assignment.\nPeak HBM: 421.33GiB
cause=communicator wanted_bytes=20289079296|NCCL WARN Cuda failure 2 out of memory\nstream_executor_allocator.cc:66] could not allocate collective of size: 20289079296
first=look_closer|--micro_batch_size 1 --recompute_granularity full\ntrainer.train()\nOOM
first=remat|fine-tuning, bs=1\nOOM
cause=unknown|Vision fine-tuning takes impossibly high VRam (OOM error)
cause=unknown|T4: \0345\0206\0205\0345\0255\0230\0346\0272\0242\0345\0207\0272
cause=unknown|I am getting memory errors with the nested unet
wanted_bytes=null|for example 30M samples, the RAM crashes with OOM error
first=remat|fine-tuning with bs1 is OOM
first=shard_state|after backward it is at 61 GB and during the step function it goes out of memory\nsft, --micro_train_batch_size 1
first=smaller_batch|llama DPO training with zero3, each ending in OOM
available_bytes=null|it runs out of memory:\nFound device 0 with properties:\nTotal memory: 7.92GiB\nFree memory: 7.81GiB
cause=host_memory|it seems to be RAM, which fills up completely
cause=host_memory|memory accumulates so that I get RAM problems
# In the wrong order, what cannot be had without it, whose memory is filled, how to solve it.
known=true|RuntimeError: cuda of out memory
known=true|I cannot train it at all without OOM
cause=unknown|the GPU memory gets filled and training crashes with OOM
known=true|How to split a model over two GPUs to solve CUDA out of memory?
wanted_bytes=2147483648|OutOfMemory: no room on the device. Requested size was 2147483648 bytes
first=remat|fine-tuning, train_bs = 1\nOOM
# Evidence: who prints, reports in a headline, in the past or of himself; else it is only supposed, and figures are none.
supposed=false|# Notes\nE0101 12:30:59 worker: out of memory
supposed=false|# Notes\n# CUDA OOM in distributed training
supposed=false|# Notes\nThe step crashes with CUDA out of memory
supposed=false|# Notes\nRuntimeError: out of memory
supposed=false|# Notes\nTraining stopped, but OOM
supposed=false|# Notes\nthe OOM occurred in the second epoch
unsure|# Notes\nLong inputs causing OOM are relevant
unsure|# Notes\nlower the batch size in a loop if the CUDA OOM occurs
unsure|# Notes\nExceeding the quota surfaces as a CUDA OOM inside
cause=unknown|# Notes\nLong inputs causing OOM are relevant
supposed=false|# Notes\nLong inputs causing OOM are relevant\nI tried it at home
wanted_bytes=null|# Notes\nit gave OOM on a GPU with 24GB memory, it needs a little more than 24GB
silent|# Notes\nYou may have OOM issues above that size
first=remat|trainer.train(), loss, epoch, a batch size of one each\nCUDA out of memory
# A container's status alone tells nothing of memory; with a word of it, or a shell's, it does.
supposed=true cause=unknown no=host_memory|# Notes\ncommand terminated with exit code 137\nI do not set a limit
supposed=true cause=unknown no=host_memory|# Notes\nJob failed: exit code 137\nI do not set a limit
cause=host_memory|# Notes\nterminated with exit status 137\nline 4: 7537 Killed sort
cause=host_memory|# Notes\nterminated with exit status 137\nReason: OOMKilled
cause=other_processes|CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.25 GiB of which 2.27 GiB is free. Including non-PyTorch memory, this process has 0 bytes memory in use. Of the allocated memory 36.46 GiB is allocated by PyTorch, and 20.98 MiB is reserved by PyTorch but unallocated.
known=true|# Notes\nthe job was hitting the memory limits of the node
supposed=false|# Notes\nFixes an HBM OOM issue during inference
# What is only named is none: instead of what, a test, a function, the title of a change, none of it.
silent|include/alloc.h:102 NCCL WARN Cuda failure invalid argument
silent|no occurrence of GPU memory exceeding its limit
silent|A pod may fail due to OOM
silent|the kubelet would OOM-kill it
silent|did it fail with an out of memory error?
silent|MPS OOM handling
silent|so it is easy to exceed the gpu memory
silent|XPU: fatal RuntimeErrors instead of recoverable OutOfMemoryError
silent|it peaked under its 512 MiB limit, with zero high, max, OOM or OOM-kill events
silent|always check your system logs for an "Out of Memory" event
silent|def test_warmup_oom_defers():
silent|A warmup CUDA OOM must not take the function down
silent|# Enable OOMKillStep in slurm config
silent|# docs: Add comprehensive OOM resolution guide
silent|Adam can take a large amount of memory, potentially causing OOM errors
silent|README.md#out-of-memory-issues
silent|| with previews | OOM-prone |
silent|Have you ever been stopped dead by a "CUDA out of memory" error?
silent|I just disabled vmem OOM test for v5e
silent|  File "/x/spill.py", line 559, in oom
silent|# 4bit models for 4x faster downloading + no OOMs.
silent|# [BUG] Catch and propagate rmm out of memory errors up to Python
silent|the memory limit shall be exceeded and the pod should be killed
silent|The status "OOMKilled" never occurs.
silent|# Reserve allocation should be displayed when erroring due to lack of memory
silent|Each node has an OOM killer that preemptively kills workers
silent|a metric of OOM kills
silent|How many tasks were killed by OOM
silent|it frees memory by killing a process that would OOM
silent|What's the OOM threshold
silent|For some models, it will almost certainly lead to out of memory problems.
silent|# Notes\n# oc status should report oom kill
silent|# Notes\nx <- get_oomKill_arrayindex(job)
silent|# Notes\nWhat is OOMKilled (exit code 137)
silent|# Notes\nit runs without being killed
silent|Unable to generate TEXTURE, is 12GB vram not enough
# Who asks, plans or tells of anybody has met nothing; who guesses has met what he supposes.
silent|Will it run out of memory with longer inputs?
silent|When does the pod get OOMKilled?
supposed=true|# Notes\nThe kernel died.\nany chance it's running out of memory?
silent|Here is what to try when you're running low on CUDA memory.
silent|--batch-size auto backs off on OOM.
silent|Cgroup OOM controller\n- Monitoring OOM events
silent|# Intermittent KilledWorker Error
# A limit of another record: what a manifest asks for, what was set instead.
available_bytes=null|my pod was OOMKilled\nspec:\n  resources:\n    limits:\n      memory: 30Mi
available_bytes=null cause=host_memory|I get OOMKilled with 30 instead of 50 Mi memory limit
# Whose memory: the clause of the refusal tells; a node of a graph is no machine.
cause=unknown|your ComfyUI node runs out of memory
cause=host_memory|my node runs out of memory
EOF

# A guide's prose is nothing; a line within it that a program printed is told, and so is what somebody says of himself.
rows <<'EOF'
silent|The RuntimeError: CUDA out of memory occurs when your GPU doesn't have enough memory.\nHere's how to resolve it:
silent|When a container exceeds its limit, the kernel's OOM killer ends it.\nThis usually means that your pod got too little.
cause=host_memory|When I loaded it, the kernel's OOM killer ended it.
wanted_bytes=536870912|How to fix CUDA errors: a guide\nThis occurs when your GPU is full:\nRuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB
cause=unknown|How to fix CUDA errors: a guide\nThis occurs when your GPU is full:\nRuntimeError: CUDA out of memory.
cause=host_memory|The complete guide to exit codes\nThis usually means too little memory:\n      Reason:       OOMKilled
cause=unknown|A guide to your GPU, read by me\nI tried it and my GPU is out of memory
cause=unknown|You are running out of memory on your GPU.\nYou can lower the batch size, see this guide.
cause=host_memory|WARNING: You should consider upgrading pip.\nYou may see the guide of this model.\nKilled
cause=host_memory|You should train this model.\nYou can ignore this.\nrun.sh: line 3:  4711 Killed   python train.py
cause=unknown|CUDA out of memory\nPlease read our contributing guide before filing. You can also join the channel.
cause=host_memory|MemoryError\nThis error is of your allocator. You can lower the batch size.
silent|You can run out of memory, as this guide tells.
silent|# A question about VRAM\nThe README states "Addressing OOM - tuning requires about 7 x 4 x 4 = 112 GB of VRAM."
EOF

# A full disk is no lack of memory; figures that a program told before it failed of something else are none either.
rows <<'EOF'
silent|InternalError (see above for traceback): Error writing (tmp) checkpoint file: /home/x/model.ckpt-6: Resource exhausted: /home/x/model.ckpt-6
silent|errors_impl.ResourceExhaustedError: /home/x/model.ckpt-6.tempstate; No space left on device
silent|Write failed: Resource exhausted: C:\\data\\model.ckpt
known=true|Resource exhausted: OOM when allocating tensor
cause=fault wanted_bytes=null|MA 2.84 GB Max_MA 28.95 GB\n[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5) ran for 600013 milliseconds
cause=fault|# NCCL timeout error\niter:  130/3000 MA 2.84 GB         Max_MA 28.95 GB         CA 51.92 GB         Max_CA 52 GB
cause=none|iter:  130/3000 MA 2.84 GB         Max_MA 28.95 GB         CA 51.92 GB         Max_CA 52 GB
cause=unknown|Watchdog caught collective operation timeout\nCUDA error: out of memory
EOF
printf 'Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)\n' >"$work/timeout.log"
expect 0 hbmsim explain "$work/timeout.log"
out_has 'A collective operation timed out; the log has no lack of memory.'

# What the set after it taught.
rows <<'EOF'
silent|ncclSystemError: System call (socket, malloc, munmap, etc) failed
cause=host_memory|I saw that it consumes the whole RAM and freezes the system
cause=host_memory|the terminal shows "killed" after a long time
wanted_bytes=1879048192|ROCm model arena alloc failed for tensor-span:128 (1792.00 MiB chunk): out of memory
silent|keep such jobs at low quota, then allow it OOM
silent|OOM on a device\nWhy this matters\nWhat it is: Out-of-memory (OOM) errors occur when more is asked for.
silent|OOM on a device\nOOM errors happen if a model exceeds its memory
known=true|OOM on a device\nOOM errors happen when the batch is 8
known=true|where should i change the batch size since cuda out of memory?
cause=host_memory|the process saturates RAM and gets kill by OS
cause=host_memory|Low memory! mem avail: 327 of 5875 MiB\nInvoking oom killer: done
silent|# FR: Find OOM incident where a specific process was killed\nAdd a flag to find them.
no=host_memory|# OOM when allocating tensor\nThe OOM error happens when your computer runs out of memory while training.
EOF

# Guides go by the weights of their words; whose memory it was, by what is said to fill it.
rows <<'EOF'
silent|OOMKilled is one of the most common reasons why pods restart. OOMKilled means the Linux kernel ended it: understanding the limits of a container is here.
known=true|my pod got OOMKilled, one of the most common reasons they restart
cause=host_memory|# OOM in the preparation\nThe CPU memory usage increases from step to step.
cause=host_memory|# OOM in the preparation\nLoading consumes more than 100 GB of RAM.
cause=unknown|# OOM in the training\nMy machine has 64 GB of RAM.
cause=unknown|# CUDA OOM in the training\nThe CPU memory usage increases from step to step.
cause=unknown|# OOM in the training\nfrom_pretrained(path, low_cpu_mem_usage=True, use_cache=False)
cause=host_memory|Evaluation goes OOM.\nThe processes are being terminated by the operating system.
cause=unknown|the run is killed at epoch 800 due to CUDA memory usage
silent|I need to ask: did the "Out of Memory" problem occur with a batch of 2?
cause=unknown|why did the training run out of GPU memory?
first=remat|training\nCUDA out of memory\n  batch size per device / \0343\0203\0220\0343\0203\0203\0343\0203\0201: 1
EOF

# What the set after these taught: a server's figures before somebody's word, scratch space before it, what was fixed
# has happened, rules of a cluster are no report, pictures are made one at a time.
rows <<'EOF'
cause=limit wanted_bytes=4756676280|frequent OOM (Out of Memory) occurs\nValueError: To serve at least one request with the models's max seq len (116160), (4.43 GB KV cache is needed, which is larger than the available KV cache memory (3.48 GB).
cause=none wanted_bytes=238288896|# x\non my GPU it runs into memory problems\nAllocator (GPU_0_bfc) ran out of memory trying to allocate 227.25MiB. The caller indicates that this is not a failure
unsure|# Fix cuda out of memory error during inference
cause=unknown|When I give a batch size I get a memory error.
silent|Jobs which exceed the requested memory will be automatically killed by the scheduler.
cause=host_memory|my job will be killed by the scheduler: out of memory on the host
first=fewer_requests cause=size|# a workflow of ComfyUI\nCUDA out of memory. Tried to allocate 952.00 MiB. GPU 0 has a total capacity of 24.00 GiB of which 0 bytes is free. Of the allocated memory 23.50 GiB is allocated by PyTorch, and 20.00 MiB is reserved by PyTorch but unallocated.
EOF

# The script that was run tells what the program does, before all words; a model is loaded by its name.
rows <<'EOF'
first=fewer_requests|# a model that trains well\npython eval.py mbv2\nCUDA error: out of memory\nwhich batch size of training?
first=smaller_batch|# inference\n  File "train.py", line 8\nCUDA error: out of memory
first=smaller_batch|# training\n  File "/packages/eval.py", line 8\nCUDA error: out of memory
first=fewer_bits|# RESOURCE_EXHAUSTED when loading 'gemma2_instruct_2b_en'
# Who is killed for memory is so by the host, whatever device is named beside.
cause=host_memory|# x\nthe process was killed because there is not enough memory, VRAM or RAM
cause=unknown|# x\nit crashed because there is not enough VRAM
EOF

# What a drawn set of 92 taught: a clause behind a but, whose memory is named beside, a verb, a time, what no batch helps, what came
# of memory that was filled, inputs before weights.
rows <<'EOF'
cause=unknown|# x\nI can run it there without OOM, but here it became out of memory
cause=host_memory|# The dataset OOM\nPre-training out-of-memory (CPU memory)
cause=unknown|# OOM of the GPU\nPre-training out-of-memory (CPU memory) was before
silent|# x\nit doesn't free RAM after offloading
silent|\0345\0220\0216\0345\0217\0260\0350\0256\0255\0347\0273\0203\0347\0232\0204\0350\0277\0233\0347\0250\0213\0350\0242\0253kill\0345\0220\0216\0357\0274\0214\0344\0273\0215\0347\0204\0266\0345\0215\0240\0347\0224\0250GPU\0345\0206\0205\0345\0255\0230
cause=host_memory|\0345\0220\0216\0345\0217\0260\0350\0256\0255\0347\0273\0203\0347\0232\0204\0350\0277\0233\0347\0250\0213\0350\0242\0253kill\0344\0272\0206
first=remat|# x\nfine-tuning, epoch\nRuntimeError: CUDA out of memory regardless of batch size
first=smaller_batch|# x\nfine-tuning, epoch\nRuntimeError: CUDA out of memory no matter batch size is 2 or 4
cause=host_memory|# x\nthe ram usage goes up constantly (like 20GB) until it crashes
wanted_bytes=null|# x\nthe ram usage goes up constantly (like 20GB) until it crashes
silent|# x\nthe ram usage goes up but it does not crash
first=fewer_requests|# x\npython demo.py\nfrom 512x512 images to 2x, 1024x1024\nCUDA out of memory. Tried to allocate 72.00 MiB (GPU 0; 11.00 GiB total capacity; 10.15 GiB already allocated; 0 bytes free; 10.30 GiB reserved in total by PyTorch)
EOF

# What the set after it taught: a source's text, what does not run out, two memories, what a client should do, what is saved.
rows <<'EOF'
silent|# x\nraise RuntimeError(f"Not enough memory to handle {len(ids)} tokens")
silent|# x\n(it doesn't OOM)
known=true|# x\nSystem is out of GPU and shared host memory
silent|# The client should detect cuda out of memory
known=true|# x\nthe 500GB RAM on our server are not enough for it
silent|# x\nMemory required by task is not available
cause=unknown|# x\nthey crash the session for memory problem
first=sharded_checkpoint|# x\nerror on saving the model as GGUF\nCUDA out of memory. Tried to allocate 280.00 MiB. GPU 0 has a total capacity of 14.74 GiB of w
cause=other_processes|CUDA out of memory. Tried to allocate 2.36 GiB. GPU 0 has a total capacity of 79.15 GiB of which 2.32 GiB is free. Process 956580 has 2.66 GiB memory in use. Process 502567 has 41.94 GiB memory in use. Process 3496351 has 13.08 GiB memory in use. Of the allocated memory 9.02 GiB is allocated by PyTorch, and 3.57 GiB is reserved by PyTorch but unallocated.
EOF

# What the third taught: a status and why, a factor, the host's data and workers, what records no gradients.
rows <<'EOF'
cause=host_memory|# x\nNOTE: terminated with an error exit status (137)\nIt seems you ran out of memory.
unsure|# x\nNOTE: terminated with an error exit status (137)
wanted_bytes=null|it will reserve 16384 * 12 tokens for embeddings, which causes an OOM error.
wanted_bytes=16384|it will reserve 16384 bytes for embeddings, which causes an OOM error.
known=true|# x\nBatch sizes of 128 and 256 give memory errors.
cause=host_memory|the memory of my machine runs full and it crashes
cause=host_memory|# out of memory\nLoading the dataset takes up too much memory
cause=unknown|# out of memory\nLoading the dataset takes up too much GPU memory
cause=host_memory|# x\nI get an error\nIt seems like this is due to the Ray workers not having enough memory
cause=host_memory|# OOM error with CPU
wanted_bytes=1181116006 available_bytes=536870912|Insufficient free VRAM: need ~1.1 GB, only 0.5 GB available.
wanted_bytes=null|# OOM\nit probably takes ~1.1 GB of VRAM
first=fewer_requests|# x\nThe training went well for 100 epochs\n  File "x/torch/autograd/grad_mode.py", line 28, in decorate_context\nRuntimeError: CUDA error: out of memory
first=shard_state|# x\n  File "x/torch/autograd/grad_mode.py", line 28, in decorate_context\n  File "x/torch/optim/adam.py", line 598, in step\nRuntimeError: CUDA error: out of memory
EOF

# What the next two taught: a server's cache before the signal that ended it, what somebody sets and what was not
# reached, guesses, shapes without numbers; messages that no thread of the table had.
rows <<'EOF'
cause=limit first=server_share|# x\nValueError: No available memory for the cache blocks.\nchild process died: exit code -9
wanted_bytes=null available_bytes=null|# OOM of the job\nit failed with too little memory; increasing the allocation to 200 GB helped
available_bytes=null|# OOM killed\nIt helped to increase it to 16G, --mem=16G
available_bytes=17179869184|# OOM killed\nsrun --mem=16G python x.py
available_bytes=null|# OOM killed\nModify the default memory limit to 100Mi
wanted_bytes=null|It is unclear why this OOM Kill happened, we can see it did not reach limit of 512MiB
unsure|# x\n6 GB of VRAM are likely insufficient for this model
known=true|# x\nmy GPU hasn't enough memory for this model
cause=limit first=lift_limit|Current platform can NOT allocate memory block with size larger than 4GB!
first=fewer_bits|ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.
first=fewer_bits|ValueError: The current `device_map` had weights offloaded to the disk. Please provide an `offload_folder` for them.
first=fewer_bits|ValueError: We need an `offload_dir` to dispatch this model according to this `device_map`
cause=host_memory|Error: llama runner process has terminated: signal: killed
cause=host_memory wanted_bytes=516884584|ObjectStoreFullError: Failed to put object A in object store because it is full. Object size is 516884584 bytes.
cause=host_memory wanted_bytes=null|ObjectStoreFullError: Failed to put object A in object store because it is full.
cause=host_memory|Your notebook tried to allocate more memory than is available. It has restarted.
cause=host_memory|OSError: [WinError 8] Not enough memory resources are available to process this command
cause=host_memory|it was unexpectedly terminated. This could be caused by a segmentation fault while calling the function or by an excessive memory usage causing the Operating System to kill the worker.
cause=fault|Segmentation fault (core dumped)
cause=host_memory|[ERROR] Worker (pid:30) was sent SIGKILL! Perhaps out of memory?
cause=host_memory wanted_bytes=3686400|(-4:Insufficient memory) Failed to allocate 3686400 bytes in function 'cv::OutOfMemoryError'
cause=host_memory|systemd-oomd killed 5 process(es) in this unit.
cause=communicator|ncclInternalError: Internal check failed.\nLast error:\nFailed to CUDA calloc async 1920 bytes
known=true|AssertionError: Insufficient space in device allocation
silent|ImportError: libgomp.so.1: cannot allocate memory in static TLS block
silent|RESOURCE_EXHAUSTED: Received message larger than max (5000000 vs. 4194304)
silent|429 RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Read requests'
EOF

# Round figures in anybody's sentence are no request's; a program's line, a precise figure, a key or a comparison are. A
# status and its signal, a low number.
rows <<'EOF'
wanted_bytes=null|# x\nCUDA OOM when allocating about a 30GB tensor
wanted_bytes=8053063680|# x\nCUDA OOM when allocating 7.50 GiB
wanted_bytes=25769803776 available_bytes=17179869184|# x\nout of memory: it needs 24 GB but only 16 GB are available
wanted_bytes=null|# [GPT-OSS] Not enough space to allocate DRAM buffer on 64K ISL
wanted_bytes=5805965312|# Not enough space to allocate 2.7GB of space in DRAM for the model\nOut of Memory: Not enough space to allocate 5805965312 B DRAM buffer across 12 banks
cause=host_memory|# The replica master 0 ran out-of-memory and exited with a non-zero status of 9(SIGKILL)
cause=unknown|# x\nI've tried batch sizes as low as 2 and still run into OOM issues.
cause=on_chip|[NCC_INLA001] Allocated memory out of bound {concatenate}@SB(505x512), where
cause=on_chip|[NCC_INLA001] Allocated memory out of bound in PSUM
cause=unknown|error: allocated memory out of bound of a stack
EOF

# What stands before lines, and what a tool makes of them, changes no answer.
dressed() {
    case $1 in
    crlf) sed 's/$/\r/' ;;
    colours) sed 's/^/\x1b[1;31m/; s/$/\x1b[0m/' ;;
    torchrun) sed 's/^/[rank3]: /' ;;
    ray) sed 's/^/(Worker pid=12, ip=10.0.0.7) /' ;;
    kubernetes) sed 's/^/2026-11-30T06:01:02.123456789Z stderr F /' ;;
    compose) sed 's/^/worker-1  | /' ;;
    journal) sed 's/^/Nov 30 06:01:02 node-3 app[4711]: /' ;;
    docker) sed 's/"/\\"/g; s/.*/{"log":"&\\n","stream":"stderr"}/' ;;
    quoted) sed 's/^/> /' ;;
    both) sed 's/^/  > [rank3]: /; s/$/\r/' ;;
    html) sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g' ;;
    fenced) sed '1s/^/```\n/; $s/$/\n```/' ;;
    folded) fold -w 80 ;;
    wrapped) fold -s -w 80 | sed 's/ *$//' ;;
    esac
}
for log in torch-fragmented torch-hip torch-limit tpu-e1000 tpu-hbm rocm-buffers nccl tf-graph; do
    hbmsim explain --json tests/golden/logs/$log.log >"$work/json" 2>/dev/null || true
    said "$work/json" >"$work/plain"
    ok "$log says something" test -s "$work/plain"
    hows=
    case $log in torch* | tpu-e1000 | nccl | tf-graph) hows=wrapped ;; esac # lists of buffers are cut as well
    for how in $hows crlf colours torchrun ray kubernetes compose journal docker quoted both html fenced folded; do
        dressed $how <tests/golden/logs/$log.log >"$work/dressed.log"
        hbmsim explain --json "$work/dressed.log" >"$work/json" 2>/dev/null || true
        said "$work/json" >"$work/found"
        ok "$log, $how: as without" cmp -s "$work/plain" "$work/found"
    done
done

# What the hundred and nineteenth set taught: what nearly was, a risk, a title of a change, a step of the optimizer.
rows <<'EOF'
silent|Compaction process almost caused OOM Kill.
silent|# x\nThere is no risk of OOM.
silent|# Enhance out-of-memory error messages to include memory usage details
silent|# updates and improvements to memory allocation error messages
cause=size|  20. Size: 39.06M\n     Shape: f32[2000,5000]{0,1:T(8,128)}\n     Unpadded size: 38.15M\n     Extra memory due to padding: 937.5K (1.0x expansion)\n     Allocation type: HLO temp
cause=padding|  20. Size: 39.06M\n     Shape: f32[2000,5000]{0,1:T(8,128)}\n     Unpadded size: 19.53M\n     Extra memory due to padding: 19.53M (2.0x expansion)\n     Allocation type: HLO temp
first=shard_state|# an inference server\nAdam.step -> _init_group\nstate["exp_avg"] = torch.zeros_like(...)\ntorch.OutOfMemoryError: Tried to allocate 1.16 GiB
EOF

# Where no program printed a refusal and the words are those of texts that speak of such errors, nothing is advised; a printed
# line beside them is told. What a patch adds and a name of several words are no kill.
rows <<'EOF'
cause=unknown supposed=true no=smaller_batch|# Indicate the size when constructing an array gives a MemoryError\nI've seen multiple questions now of the form "why does this give a MemoryError" when the reason is that the user allocated a bigger array than expected.\nIt would be helpful to include the shape and dtype in the error message.
cause=host_memory first=host_memory|# Indicate the size when constructing an array gives a MemoryError\nI've seen multiple questions now of the form "why does this give a MemoryError" when the reason is that the user allocated a bigger array than expected.\nIt would be helpful to include the shape and dtype in the error message.\nMemoryError: Unable to allocate 1.86 GiB for an array with shape (50, 5000000) and data type float64
silent|# Create pod-oom-killed-alert
silent|# Alerts\n+              - name: Kubernetes Pod OOM killed
EOF

# Processes that were ended: by earlyoom, by YARN with figures in the next line, after another's fault; a message that a sentence only
# names in quotation marks is that sentence's; "oom02" is a name.
rows <<'EOF'
wanted_bytes=63963136 cause=host_memory|dl earlyoom[1479]: sending SIGTERM to process 2614312 uid 1000 "simple": badness 966, VmRSS 61 MiB
wanted_bytes=3446669312 cause=host_memory|earlyoom: sending SIGKILL to process 5 uid 1 "rustc": oom_score 1331, VmRSS 3287 MiB\nearlyoom: sending SIGKILL to process 6 uid 1 "sh": oom_score 900, VmRSS 2 MiB
silent|supervisor: sending SIGTERM to process group 7
wanted_bytes=2254857830 available_bytes=2147483648 cause=host_memory|Container killed by YARN for exceeding memory limits. \n2.1 GB of 2 GB physical memory used.
wanted_bytes=2254857830 available_bytes=2147483648|Container killed by YARN for exceeding memory limits. 2.1 GB of 2 GB physical memory used. Consider boosting spark.yarn.executor.memoryOverhead.
wanted_bytes=null cause=host_memory|Container [pid=3,containerID=c] is running 1723304448B beyond the 'VIRTUAL' memory limit.\nCurrent usage: 348.4 MB of 1 GB physical memory used; 3.7 GB of 2.1 GB virtual memory used.
cause=fault|Error text: an illegal memory access was encountered\n=   RANK 0 PID 5490 RUNNING AT gn59\n=   KILLED BY SIGNAL: 9 (Killed)
cause=host_memory|=   RANK 0 PID 5490 RUNNING AT gn59\n=   KILLED BY SIGNAL: 9 (Killed)
cause=host_memory|an illegal memory access was encountered\n=   KILLED BY SIGNAL: 9 (Killed)\nslurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.batch
silent|x y\nWhen a job dies with "Container killed by YARN for exceeding memory limits," a NodeManager enforced a limit.
silent|x y\nTry to look in the log for error messages mentioning "Container killed by YARN for exceeding memory limits".
cause=unknown|# x\nWhen a finish the epoch and do the validation ,the "CUDA out of memory" appeared.
cause=host_memory|TINFO: start OOM testing for pages.\noom02 0 TINFO: thread 1, allocating 3221225472 bytes.\noom02:4583 invoked oom-killer: order=0, oom_score_adj=0
# The last limit before what was ended counts, none that is advised behind it.
available_bytes=5242880000|$ srun --mem=500M python hog.py 200M   # works\n$ srun --mem=5000M python hog.py 5000M  # fails!\nslurmstepd: error: Detected 1 oom-kill event(s) in StepId=18839905.0.
available_bytes=null cause=host_memory|Killed\nsrun: error: r1i7n0: task 0: Out Of Memory\n\nplease consider increasing memory limit for your Slurm allocation, for instance:\n\n    salloc ... --mem 32G ...
available_bytes=12884901888|Killed\nsrun: error: r1i7n0: task 0: Out Of Memory\n#SBATCH --mem=12G
wanted_bytes=4427071488 available_bytes=3221225472|=>> PBS: job killed: mem job total 4323312 kb exceeded limit 3145728 kb
silent|| Reason | Code | Meaning |\n|---|---|---|\n| `TERM_MEMLIMIT` | 16 | Job killed - exceeded memory limit (`-M`) |
EOF

# A signal tells no reason: where the text names who else ends processes nothing is advised. What is denied, misleading or a
# variable of a shell is none.
rows <<'EOF'
cause=host_memory|=   KILLED BY SIGNAL: 9 (Killed)
cause=unknown supposed=true no=host_memory|ActivityManager: Killing 7:x excessive cpu\nZygote: Process 7 exited due to signal 9
cause=unknown supposed=true|[CRITICAL] WORKER TIMEOUT (pid:9)\n[ERROR] Worker (pid:9) was sent SIGKILL!
cause=unknown supposed=true|prints `Worker (pid:2) was sent SIGKILL! Perhaps out of memory?` for every SIGKILL. Each one follows `WORKER TIMEOUT (pid:2)`
cause=host_memory|[CRITICAL] WORKER TIMEOUT (pid:9)\nMemory cgroup out of memory: Killed process 9 (gunicorn)
cause=unknown supposed=true|a container that exited with code 137, but wasn't explicitly reported as OOMKilled:\n  Reason:       Error\n  Exit Code:    137
cause=unknown supposed=true|it failed its liveness probe. The previous container exited with code 137, but its reason was `Error`, not `OOMKilled`
silent|we do not have an OOM issue on the node
cause=unknown supposed=true|it surfaces as a *misleading*\n`std::bad_alloc: cudaErrorMemoryAllocation: out of memory`
wanted_bytes=null|`cudaErrorMemoryAllocation: out of memory`; `RMM_POOL_SIZE=12GB` leaves headroom
silent|RuntimeError: DataLoader worker (pid 103) exited unexpectedly with exit code 1.
cause=host_memory|RuntimeError: DataLoader worker (pid 103) exited unexpectedly
cause=host_memory|load failed:\nDefaultCPUAllocator: not enough memory
cause=host_memory|Command '['x']' returned non-zero exit status -9
cause=unknown supposed=true|stopped at its time limit it fails with `claude: timed out after 10m`, before it said `claude: signal: killed:`
cause=host_memory|terminated with an error exit status (137)\n  .command.sh: line 4:  7537 Killed     sort x
available_bytes=14312978514 cause=other_processes|ValueError: Free memory on device cuda:0 (13.33/22.07 GiB) on startup is less than desired GPU memory utilization
silent|`Your {{.PodName}} job ran out of GPU memory.
EOF
finish
