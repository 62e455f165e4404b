# Time by size: 2,000 unrolled layers on a GPU, whose temporaries once asked every parameter for room
# (7 s), and every output where the state is not donated (7 s); on a TPU, where each weight once asked
# all others for their names (3 s); 2,000 that do not fit, where each op once asked all that wait (79 s)
# and each gradient looked at all that it meets (3.3 s), and more than 2,048 are refused; 512 blocks of
# many sizes where layers go in the order of XLA's schedulers, which once compared each part of the
# program with each, and more are refused.
. tests/tap.sh

# layers COUNT: a model of that many equal layers, each in the program.
layers() {
    cat >"$work/$1.yaml" <<YAML
model: {d_model: 512, vocab: 1000, blocks: [{name: d, repeat: $1, attention: {heads: 8, head_dim: 64}, mlp: {d_ff: 1024}}]}
batch: {global: 8, seq: 128}
hardware: {device: nvidia-h100, count: 1}
compiler: xla-gpu
stack: {form: loop}
YAML
}

# blocks COUNT: as many blocks of their own widths.
blocks() {
    {
        echo 'model: {d_model: 512, vocab: 1000, blocks: ['
        awk -v n="$1" 'BEGIN { while (i++ < n)
            printf "{name: b%d, repeat: 1, attention: {heads: 8, head_dim: 64}, mlp: {d_ff: %d}}%s\n", i,
                1024 + 128 * (i % 7), i < n ? "," : "" }'
        echo ']}'
        echo 'batch: {global: 8, seq: 128}'
        echo 'hardware: {device: amd-mi300x, count: 1}'
    } >"$work/blocks.yaml"
}

# in_less MILLISECONDS NAME FILE: of the processor's time, where the build is the plain one.
in_less() {
    if [ "$(basename "$HB_BUILD")" != fast ] || ! command -v bash >/dev/null 2>&1; then
        skip "$2" 'no plain build, or no bash'
        return
    fi
    spent=$(bash -c 'TIMEFORMAT=%U; time "$HBMSIM" simulate --json "$1" >/dev/null 2>&1' bash "$3" 2>&1 |
        tr -d ., | sed 's/^0*//')
    echo "# $2: $spent ms"
    ok "$2 in less than $1 ms of the processor" test "${spent:-0}" -lt "$1"
}

for count in 2000 2048 2049; do
    layers $count
done
# Two thousand layers of Llama 3 8B's width that need 90 times the memory: nearly all is made again.
cat >"$work/again.yaml" <<'YAML'
model: {d_model: 4096, vocab: 128256, blocks: [{repeat: 2000, attention: {heads: 32, kv_heads: 8}, mlp: {d_ff: 14336}}]}
batch: {global: 64, seq: 8192}
mesh: {fsdp: 8}
hardware: {device: tpu-v5p, count: 8}
stack: {form: loop}
YAML
in_less 6000 '2000 layers that do not fit' "$work/again.yaml"
blocks 512
in_less 4000 '2000 layers' "$work/2000.yaml"
sed 's/nvidia-h100/tpu-v5p/; s/xla-gpu/xla-tpu/' "$work/2000.yaml" >"$work/host.yaml"
echo 'optimizer: {offload: pinned_host}' >>"$work/host.yaml"
in_less 1500 '2000 layers of a TPU with states on the host' "$work/host.yaml"
cp "$work/2000.yaml" "$work/kept.yaml"
echo 'step: {donate: false}' >>"$work/kept.yaml"
in_less 3000 '2000 layers whose state is not donated' "$work/kept.yaml"
in_less 2000 '512 blocks on MI300X' "$work/blocks.yaml"
blocks 513
expect 2 hbmsim simulate "$work/blocks.yaml"
err_has '513 blocks; allowed: at most 512 (layers that are equal are one block, with repeat)'
expect 0 hbmsim simulate "$work/blocks.yaml" --set compiler=torch --set hardware.device=nvidia-h100
run hbmsim simulate --json "$work/2048.yaml"
ok "2048 are answered" test "$status" -lt 2
expect 2 hbmsim simulate "$work/2049.yaml"
err_has '2049 layers stand side by side in the program; allowed: at most 2048'
expect 1 hbmsim simulate "$work/2049.yaml" --set stack.form=scan
expect 2 hbmsim simulate "$work/2049.yaml" --set stack.form=scan --set stack.unroll=4000
err_has '2049 layers stand side by side in the program; allowed: at most 2048'
finish
