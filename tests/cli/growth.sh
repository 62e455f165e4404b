# Time by size: 2,000 unrolled layers on a GPU, whose temporaries once asked every parameter for room
# (7 s), and more than 2,048 are refused.
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

# The time of the processor that a run takes, in milliseconds.
spent() {
    bash -c 'TIMEFORMAT=%U; time "$HBMSIM" simulate --json "$1" >/dev/null' bash "$1" 2>&1 | tr -d .,
}

for count in 2000 2048 2049; do
    layers $count
done
if [ "$(basename "$HB_BUILD")" = fast ] && command -v bash >/dev/null 2>&1; then
    spent=$(spent "$work/2000.yaml" | sed 's/^0*//')
    echo "# 2000 layers: $spent ms"
    ok '2000 layers in less than 4 s of the processor' test "${spent:-0}" -lt 4000
else
    skip 'time by size' 'no plain build, or no bash'
fi
run hbmsim simulate --json "$work/2048.yaml"
ok "2048 are answered" test "$status" -lt 2
expect 2 hbmsim simulate "$work/2049.yaml"
err_has '2049 layers stand side by side in the program; allowed: at most 2048'
expect 1 hbmsim simulate "$work/2049.yaml" --set stack.form=scan
finish
