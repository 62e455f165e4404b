# hbmsim import, model.import and foreign files in place of a model.yaml: what is printed, what other
# commands make of them, and what is said of files that cannot be read.
. tests/tap.sh

cp examples/import/config.json "$work/config.json"
expect 0 hbmsim import "$work/config.json"
out_has '# Imported: Hugging Face config.json, model_type qwen3.'
out_has 'attention: {kind: gqa, heads: 32, kv_heads: 8, head_dim: 128, qk_norm: true}'
cp "$work/out" "$work/model.yaml"
expect 0 hbmsim simulate --json --set batch.global=8 "$work/model.yaml"
cp "$work/out" "$work/by-hand.json"
expect 0 hbmsim simulate --json --set batch.global=8 "$work/config.json"
same "$work/out" "$work/by-hand.json"
err_has 'warning: read as Hugging Face config.json, model_type qwen3; assumed 1, not expressed 0'
# A config.json says no machine and no batch: who is simulated on defaults hears of it, and of what says them.
err_has 'warning: says nothing of these, and defaults are taken; say your own, as in: --set hardware.device=h100 --set hardware.count=8 --set batch.seq=4096'
run hbmsim simulate "$work/config.json" --set hardware.device=h100 --set hardware.count=8 --set batch.per_device=1 --set batch.seq=2048
ok 'who says them hears nothing' sh -c '! grep -q defaults "$1"' sh "$work/err"
expect 0 hbmsim simulate examples/torch/titan.yaml
ok 'a file of hbmsim is not warned of' test ! -s "$work/err"
# What the input asks for and that program has no words for is told, where it moves anything.
expect 0 hbmsim plan examples/quickstart/model.yaml --set 'plan={search: {mesh: [fsdp], remat: true}}' \
    --set optimizer.name=lion --emit maxtext
out_has '# Of what was asked for MaxText has no words for this:'
out_has '# cannot be said: optimizer.name: "lion"; it runs with "adamw"'
expect 0 hbmsim plan examples/quickstart/model.yaml --set 'plan={search: {mesh: [fsdp], remat: true}}' --emit maxtext
ok 'else nothing is' sh -c '! grep -q "asked for\|cannot be said" "$1"' sh "$work/out"
expect 0 hbmsim plan examples/quickstart/model.yaml --set 'plan={search: {remat: true}}' --objective devices --emit maxtext
out_has '# It is not all that was planned: that has peak '
# Whose settings are asked for decides whose step it is, where the input does not.
small='plan={search: {mesh: [fsdp], remat: true}}'
for what in torchtitan hf-trainer megatron; do
    expect 0 hbmsim plan "$work/config.json" --set hardware.device=h100 --set batch.seq=2048 --set "$small" --emit $what
    out_has '# Read back and simulated: peak '
    [ $what != hf-trainer ] || cp "$work/out" "$work/hf.yaml"
done
# Hugging Face's own name of the model, which is read again.
peak=$(sed -n 's/^# Read back and simulated: peak \([0-9.]* GiB\) .*/\1/p' "$work/hf.yaml")
ok 'the model is named' grep -q '^model_name_or_path: Qwen/Qwen3-8B ' "$work/hf.yaml"
expect 0 hbmsim import "$work/hf.yaml" -o "$work/again.yaml"
expect 0 hbmsim simulate "$work/again.yaml"
out_has "FITS: $peak "
expect 2 hbmsim plan "$work/config.json" --set hardware.device=h100 --set compiler=xla-gpu --emit torchtitan
err_has '--emit: the file is of compiler xla; allowed: maxtext, levanter, yaml'
echo 'model: {import: config.json, name: mine, tied_embeddings: true}' >"$work/card.yaml"
echo 'batch: {global: 8}' >>"$work/card.yaml"
expect 0 hbmsim simulate "$work/card.yaml"
out_has 'mine on 8 x tpu-v5p'
expect 0 hbmsim simulate examples/quickstart/model.yaml --set model.import="$work/config.json" \
    --set model.preset=llama3-8b
# What a loss takes over of it; nothing is no file.
sed -e 's/"qwen3"/"gemma2"/' -e 's/{/{"final_logit_softcapping": 30.0, /' "$work/config.json" >"$work/gemma.json"
expect 0 hbmsim simulate examples/quickstart/model.yaml --set model.import="$work/gemma.json" \
    --set model.preset=llama3-8b --json
out_has '"softcap": 30'
expect 2 hbmsim simulate examples/quickstart/model.yaml --set model.import=
err_has 'model.import: nothing stands where a file'
expect 2 hbmsim simulate examples/quickstart/model.yaml --set 'model.import=[]'
err_has 'model.import: a list stands where a file'
expect 0 hbmsim import --json "$work/config.json"
out_has '"imported": "Hugging Face config.json, model_type qwen3",'
out_has '"missing": []'

# MaxText: a file, its command line, its base and the yml of the model beside it
mkdir "$work/configs" "$work/configs/models"
cat >"$work/configs/base.yml" <<'END'
model_name: "default"
base_emb_dim: 2048
per_device_batch_size: 12.0
remat_policy: 'full'
logical_axis_rules: [['norm', ['tensor']]]
steps: 150_001
END
printf 'base_emb_dim: 1024\nvocab_size: 32000\nbase_num_decoder_layers: 4\n' \
    >"$work/configs/models/tiny.yml"
expect 0 hbmsim import "$work/configs/base.yml" model_name=tiny per_device_batch_size=2 \
    compile_topology=v5p-16 remat_policy=save_qkv_proj
out_has '  d_model: 1024'
out_has 'save: [q, k, v]'
out_has 'batch: {global: 16, seq: 2048, accumulate: 1}'
expect 0 hbmsim import "$work/configs/base.yml" model_name=tiny compile_topology=tpu7x-128 \
    max_target_length=8192 sa_use_fused_bwd_kernel=true sa_block_kv_dkv=2048
out_has 'hardware: {device: tpu-v7, count: 128}'
out_has 'dq_parts: 4'
expect 0 hbmsim import "$work/configs/base.yml" model_name=tiny compile_topology=tpu7x-128 \
    max_target_length=8192 use_tokamax_splash=true dq_reduction_steps=3
out_has 'dq_parts: 3'
printf 'base_config: base.yml\nmodel_name: llama2-7b\nmax_target_length: 4096\n' \
    >"$work/configs/run.yml"
expect 0 hbmsim import "$work/configs/run.yml" base_num_decoder_layers=8 moba=true
out_has 'name: llama2-7b'
out_has 'repeat: 8'
out_has '#   moba: '
out_has "model_name llama2-7b: the model zoo's card llama2-7b"
expect 0 hbmsim import "$work/configs/run.yml" -o "$work/file.yaml"
expect 0 hbmsim simulate "$work/file.yaml"

# MaxText's words that the help names are those that are taken.
expect 0 hbmsim import --help
policies=$(sed -n '/remat_policy (/,/)/p' "$work/out" | tr '\n' ' ' | sed 's/.*policy (//; s/).*//; s/, */ /g')
ok 'all 14 of its policies are in the help' test "$(printf '%s\n' $policies | wc -l)" -eq 14
for policy in $policies; do
    expect 0 hbmsim import "$work/configs/base.yml" model_name=tiny compile_topology=v5p-16 remat_policy="$policy"
done
expect 2 hbmsim import "$work/configs/base.yml" model_name=tiny compile_topology=v5p-16 remat_policy=nonsense
expect 0 hbmsim import "$work/configs/base.yml" model_name=tiny compile_topology=v5p-16 num_vocab_tiling=4 use_iota_embed=true
out_has 'chunks: 4'
out_has 'lookup: onehot'

# torchtitan, Megatron, Levanter, Trainer
printf '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 8_192\n[parallelism]\n' \
    >"$work/t.toml"
expect 0 hbmsim import "$work/t.toml" NGPU=64 -- --training.local_batch_size 2 --compile.enable
out_has 'mesh: {data: 1, fsdp: 64, tensor: 1, sequence: 1, expert: 1, pipeline: 1}'
out_has 'batch: {accumulate: 1, global: 128, seq: 8192}'
out_has 'runtime: {compile: true, framework: torchtitan}'
expect 2 hbmsim import "$work/t.toml" -- --model.flavor 9B
err_has "model llama3: no flavor '9B' is known; known: 1B, 3B, 8B, 70B, 405B"
expect 2 hbmsim import "$work/t.toml" NGPU=64 -- --parallelism.tensor_parallel_degree 5
err_has "parallelism: the degrees' product is not the 64 devices"
printf '[model]\nname = \n' >"$work/bad.toml"
expect 2 hbmsim import "$work/bad.toml"
err_is "$work/bad.toml:2:8: error: not TOML: '\\n' where a value is wanted"
cat >"$work/run.sh" <<'END'
#!/bin/bash
NUM=24   # layers
ARGS=(--num-layers $NUM --hidden-size ${HIDDEN:-1024}
    "--num-attention-heads 16" --seq-length 2048
    # --swiglu
    --micro-batch-size 4 --bf16)
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py ${ARGS[@]} \
    --global-batch-size=128 --vocab-size 50257 --max-position-embeddings 2048 --funny-flag 3
END
expect 0 hbmsim import "$work/run.sh"
out_has '# Imported: '"Megatron's arguments"
out_has 'repeat: 24'
out_has '  d_model: 1024'
out_has 'mesh: {data: 16,'
out_has "funny_flag: '3'"
expect 0 hbmsim simulate "$work/run.sh"
expect 2 hbmsim import "$work/run.sh" -- --tensor-model-parallel-size 3
err_has '16 devices are no multiple of tensor x pipeline x context = 3'
expect 2 hbmsim import "$work/run.sh" -- --global-batch-size 100
err_has 'global-batch-size 100 is no multiple'
printf 'data: !include data.yaml\nmodel:\n  type: llama\n  hidden_dim: 2048\n  num_layers: 4\ntrainer:\n' \
    >"$work/l.yaml"
printf '  train_batch_size: 64\n' >>"$work/l.yaml"
expect 2 hbmsim import "$work/l.yaml"
err_has 'add vocab_size=N to the command'
expect 0 hbmsim import "$work/l.yaml" vocab_size=32000 devices=16
out_has 'mesh: {data: 1, fsdp: 16, tensor: 1}'
echo '{"zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}' >"$work/ds.json"
expect 2 hbmsim import "$work/ds.json"
err_has 'these files say nothing of the model'
expect 0 hbmsim import "$work/config.json" "$work/ds.json" per_device_train_batch_size=1
out_has 'grads_over_data: true'
# "auto" of DeepSpeed's is what the Trainer's file says, whichever comes first; a file that is only named is told.
cat >"$work/sft.yaml" <<'END'
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
finetuning_type: full
deepspeed: examples/deepspeed/ds_z3_config.json
cutoff_len: 2048
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
fp16: true
END
echo '{"gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"},
    "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
    "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e8, "sub_group_size": 1e9}}' \
    >"$work/ds3.json"
expect 0 hbmsim import "$work/sft.yaml" "$work/ds3.json"
out_has 'batch: {global: 16, accumulate: 2, seq: 2048}'
out_has 'compute: f16'
out_has 'mesh: {data: 1, fsdp: 8}'
out_has 'reduce_bucket: 16777216'
out_has 'prefetch_bucket: 15099494'
out_has 'persist_below: 40960'
out_has 'live_parameters: 100000000'
ok 'it is all expressed' sh -c '! grep -q "Not expressed" "$1"' sh "$work/out"
expect 0 hbmsim import "$work/sft.yaml"
out_has '#   deepspeed: examples/deepspeed/ds_z3_config.json is a file of its own; name it beside this one'
# NeMo's sections trainer and model are not Levanter's.
cat >"$work/nemo.yaml" <<'END'
trainer: {num_nodes: 2, devices: 8, precision: bf16, gradient_clip_val: 1.0}
model:
  micro_batch_size: 1
  global_batch_size: 64
  tensor_model_parallel_size: 2
  encoder_seq_length: 4096
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 24
  hidden_size: 1024
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  num_attention_heads: 16
  megatron_amp_O2: true
  activations_checkpoint_granularity: selective
  activation: fast-geglu
  bias: false
  fsdp: true
  fsdp_sharding_strategy: grad
  tokenizer: {library: megatron, type: GPT2BPETokenizer}
  optim: {name: mcore_distributed_optim, grad_sync_dtype: bf16}
END
expect 0 hbmsim import "$work/nemo.yaml"
out_has "# Imported: NeMo's configuration."
out_has '  positions: 4096'
out_has 'mlp: {kind: geglu, d_ff: 4096}'
out_has 'mesh: {data: 8, fsdp: 1, tensor: 2, sequence: 1, expert: 1, pipeline: 1}'
out_has 'grads_over_data: true'
out_has 'remat: {policy: none, modules: [core_attn]}'
expect 0 hbmsim import "$work/nemo.yaml" model.micro_batch_size=2 model.activation=reglu model.megatron_amp_O2=false
out_has 'batch: {global: 64, seq: 4096, accumulate: 4}'
out_has '#   activation: reglu; gelu is counted'
out_has '#   megatron_amp_O2: false; '

# what cannot be read
expect 2 hbmsim import "$work/nothing.json"
echo '{"model_type": "lama", "hidden_size": 8}' >"$work/bad.json"
expect 2 hbmsim import "$work/bad.json"
err_is "$work/bad.json:1:16: error: model_type: 'lama' is not known; did you mean 'llama'?"
echo '{"model_type": "rwkv", "hidden_size": 8}' >"$work/bad.json"
printf 'colour: blue\n' >"$work/other.yml"
expect 2 hbmsim import "$work/other.yml"
err_has 'other.yml:1:1: error: is none of the files that are known: Hugging Face config.json, '
expect 2 hbmsim import "$work/config.json" --set 'batch=['
expect 2 hbmsim import "$work/config.json" --help-me
expect 2 hbmsim import "$work/configs/base.yml" 'remat_policy=[full'
expect 2 hbmsim import "$work/configs/base.yml" remat_policy
err_has "'remat_policy' is no file and no KEY=VALUE of that program's command line"
printf 'a: [1\n' >"$work/broken.yml"
expect 2 hbmsim import "$work/configs/base.yml" "$work/broken.yml"
expect 0 hbmsim import "$work/configs/base.yml" model_name=llama3-8b run_name=
expect 2 hbmsim import examples/quickstart/model.yaml
err_has 'is an input of hbmsim itself: every command takes it as it is'
expect 2 hbmsim import "$work/bad.json"
err_has 'layers without attention are not simulated'
echo '{"model_type": "llama", "hidden_size": 8}' >"$work/bad.json"
expect 2 hbmsim import "$work/bad.json"
err_has 'num_hidden_layers is missing'
echo '{"model_type": "llama", "hidden_size": "wide", "num_hidden_layers": 2}' >"$work/bad.json"
expect 2 hbmsim import "$work/bad.json"
err_has "hidden_size: 'wide' stands where a whole number is wanted"
expect 2 hbmsim import "$work/configs/base.yml" remat_policy=save_qkv_pro
err_has "remat_policy: MaxText has no 'save_qkv_pro'; did you mean save_qkv_proj"
expect 2 hbmsim import "$work/configs/base.yml" nothing
err_has "'nothing' is no file and no KEY=VALUE"
expect 2 hbmsim import "$work/configs/base.yml" model_name=llama9
err_has 'model.preset: no card '
expect 2 hbmsim import "$work/configs/base.yml" ici_fsdp_parallelism=0
err_has 'ici_fsdp_parallelism: 0; allowed: -1, or 1 and more'
echo 'model: {import: ../config.json}' >"$work/configs/up.yaml"
expect 2 hbmsim simulate "$work/configs/up.yaml"
err_has 'leaves the folder of the file that names it'
echo 'model: {import: up.yaml}' >"$work/configs/own.yaml"
expect 2 hbmsim simulate "$work/configs/own.yaml"
err_has "is no file of another program"
echo '{"model_type": "llama", "hidden_size": 8}' >"$work/configs/none.json"
echo 'model: {import: none.json}' >"$work/configs/own.yaml"
expect 2 hbmsim simulate "$work/configs/own.yaml"
# Levanter's data in a file of its own, beside; what leaves the folder is not read.
mkdir -p "$work/lev/data"
printf 'tokenizer: EleutherAI/gpt-neox-20b\n' >"$work/lev/data/pile.yaml"
printf 'data: !include data/pile.yaml\nmodel: {type: llama}\ntrainer: {train_batch_size: 8}\n' >"$work/lev/run.yaml"
expect 0 hbmsim import "$work/lev/run.yaml"
out_has 'vocab: 50277'
printf 'data: !include data/none.yaml\nmodel: {type: llama}\ntrainer: {train_batch_size: 8}\n' >"$work/lev/run.yaml"
expect 2 hbmsim import "$work/lev/run.yaml"
err_has 'the vocabulary stands in the tokenizer alone; add vocab_size=N to the command'
printf 'data: !include ../lev/data/pile.yaml\nmodel: {type: llama}\ntrainer: {train_batch_size: 8}\n' >"$work/lev/run.yaml"
expect 2 hbmsim import "$work/lev/run.yaml"
printf 'def llama3_8b(): pass\n' >"$work/config_registry.py"
expect 2 hbmsim import "$work/config_registry.py"
err_has 'config_registry.py: error: is a program; of torchtitan'
printf '#!/bin/sh\necho nothing\n' >"$work/run.sh"
expect 2 hbmsim import "$work/run.sh"
err_has 'is none of the files that are known'
# Our own input stays strict.
printf 'hbmsim: 1\nmodel: {preset: llama3-8b}\nmodel: {preset: llama2-7b}\n' >"$work/twice.yaml"
expect 2 hbmsim simulate "$work/twice.yaml"
err_has "key 'model' is written twice; first at line 2, column 1"
finish
