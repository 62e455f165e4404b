# hbmsim compare and init, models of a file, batch.per_device, the lead of advise, pictures' options.
. tests/tap.sh

q=examples/quickstart/model.yaml
expect 0 hbmsim compare $q --vary loss.chunks=8 --vary 'remat.policy=names remat.save=[q, k]'
out_has '(3) is remat.policy=names remat.save=[q, k]'
out_has '  loss.chunks                                                       1                      8                      1'
out_has '  remat.save                                                       []                     []                 [q, k]'
out_has '  peak                                                      55.41 GiB              29.61 GiB'
expect 0 hbmsim compare --json $q examples/verify/model.yaml
for key in '"configurations": [' '"keys": [' '"tensors": [' '"key": "hardware.device",'; do
    out_has "$key"
done
expect 0 hbmsim compare $q $q
out_has 'No key differs.'
expect 0 hbmsim compare $q $q --plot "$work/c.svg" --theme dark --size 600x400
ok 'draws it' grep -q 'width="600" height="400"' "$work/c.svg"
expect 2 hbmsim compare $q
err_is 'hbmsim: error: 1 configuration; allowed: 2 to 8 files, or one with --vary KEY=VALUE (--set is of all of them)'
expect 2 hbmsim compare $q $q --vary loss.chunks=2
err_is 'hbmsim: error: --vary is of one file'
expect 2 hbmsim compare $q --vary loss.chnks=2
err_has "unknown key 'chnks'; did you mean 'chunks'?"

# pictures of other commands take the same options
expect 0 hbmsim sweep $q --x batch.global=8,16 --plot "$work/s.svg" --theme dark --size 500x300
ok 'of the size that was asked' grep -q 'width="500" height="300"' "$work/s.svg"
expect 0 hbmsim sweep $q --x batch.global=8,16 --plot "$work/l.svg" --size 500x300
ok 'in other colours' sh -c '! cmp -s "$1" "$2"' sh "$work/s.svg" "$work/l.svg"
expect 2 hbmsim simulate $q --size 500x300
err_is "hbmsim: error: --size is of --plot's picture"
expect 2 hbmsim simulate $q --plot "$work/x.svg" --size 5x300
err_has "--size: '5x300' where WIDTHxHEIGHT is wanted"

# init prints what simulates and plans
expect 0 hbmsim init -o "$work/mine.yaml"
expect 0 hbmsim simulate "$work/mine.yaml"
expect 0 hbmsim init --preset mixtral-8x7b --device v5p --devices 64 --batch 256 --seq 4096
cp "$work/out" "$work/moe.yaml"
out_has 'preset: mixtral-8x7b'
out_has '# a card of the model zoo; the keys below override its keys'
expect 0 hbmsim simulate "$work/moe.yaml"
out_has 'mixtral-8x7b on 64 x tpu-v5p, xla-tpu; fsdp 64; 256 sequences of 4096 tokens a step'
expect 2 hbmsim init --preset llama3-9b
err_has "model.preset: no card 'llama3-9b'; did you mean 'llama3-8b'?"
expect 2 hbmsim init --device h10
err_has 'h100'
expect 0 hbmsim models "$work/mine.yaml" examples/import/config.json
out_has 'mine: 1104218112 parameters'
out_has 'qwen3: 8190735360 parameters'
expect 2 hbmsim models "$work/none.yaml"
err_has 'none.yaml: error: '

# sequences by device, or by tokens
expect 0 hbmsim simulate $q --set batch='{per_device: 4, seq: 8192}'
out_has 'fsdp 8; 32 sequences of 8192 tokens a step'
expect 0 hbmsim simulate $q --set batch='{tokens: 262144, seq: 8192}'
out_has 'fsdp 8; 32 sequences of 8192 tokens a step'
# What init writes is asked about other counts of devices and other ways of saying a batch as it is.
expect 0 hbmsim sweep "$work/mine.yaml" --x hardware.count=8,16,32
out_has '3 of 3 cells fit'
expect 0 hbmsim init --devices 8 --batch 64 -o "$work/batch.yaml"
expect 0 hbmsim sweep "$work/batch.yaml" --set batch.per_device=1 --x hardware.count=8,16,32
out_has '3 of 3 cells fit'
expect 0 hbmsim sweep "$work/batch.yaml" --x batch.per_device=1,2 --y hardware.count=8,16
out_has '4 of 4 cells fit'
expect 0 hbmsim simulate "$work/batch.yaml" --set mesh.tensor=2 --set hardware.count=16
out_has 'on 16 x nvidia-h100, xla-gpu; fsdp 8, tensor 2; 64 sequences'
expect 0 hbmsim simulate $q --set batch.per_device=4
out_has '; 32 sequences of 8192 tokens a step'
expect 0 hbmsim simulate $q --set batch.tokens=131072
out_has '; 16 sequences of 8192 tokens a step'
expect 0 hbmsim simulate $q --set batch.per_device=0
out_has '; 32 sequences of 8192 tokens a step'
echo 'batch: {per_device: 2}' >"$work/over.yaml"
echo 'include: batch.yaml' >>"$work/over.yaml"
expect 0 hbmsim simulate "$work/over.yaml"
out_has '; 16 sequences of 8192 tokens a step'
expect 2 hbmsim simulate $q --set batch.per_device=4 --set batch.global=8
err_has 'batch.per_device: is said beside batch.global; allowed: one of global, per_device, tokens'
# rest: what the other axes leave
expect 2 hbmsim simulate "$work/batch.yaml" --set mesh.tensor=3
err_has 'batch.yaml:33:9: error: mesh.fsdp: hardware.count 8 is no multiple of the 3 devices of the other axes'
expect 2 hbmsim simulate $q --set mesh.data=rest
err_has 'mesh.fsdp: rest stands at mesh.data already'
expect 2 hbmsim simulate $q --set 'hardware={device: h100}'
err_has 'mesh.fsdp: the rest of how many devices? hardware.count says it'
expect 2 hbmsim simulate $q --set mesh.fsdp=-1
err_has "mesh.fsdp: '-1' is out of range; allowed: 1 to 16777216, or rest"
expect 2 hbmsim plan $q --set 'plan={search: {mesh: [{fsdp: rest}]}}'
err_has 'plan.search.mesh[0]: rest stands in mesh alone; allowed here: numbers'
# Whose compiler it is follows the device, also where the word is xla.
expect 0 hbmsim simulate $q --set hardware.device=v5p --set compiler=xla
out_has 'on 8 x tpu-v5p, xla-tpu;'
expect 0 hbmsim simulate $q --set compiler=xla
out_has 'on 8 x nvidia-h100, xla-gpu;'
expect 2 hbmsim simulate $q --set compiler=xla-tpu
err_has 'to simulate it all the same; without compiler it follows the device'
# Defaults of a section that the other file has not are no difference.
expect 0 hbmsim compare $q "$work/batch.yaml"
out_has 'plan.search.mesh '
ok 'defaults of plan.search are left out' sh -c '! grep -q "plan.search.repeats" "$1"' sh "$work/out"
expect 2 hbmsim simulate $q --set batch='{per_device: 4, tokens: 5}'
err_has 'batch.per_device: is said beside batch.tokens'
expect 2 hbmsim simulate $q --set batch='{per_device: 0.3}'
err_has 'batch.per_device: makes 2.4 sequences a step; allowed: a whole number from 1'

# advise begins with what is enough
expect 0 hbmsim advise $q --set batch.global=64
out_has '32.64 GiB too much; the cheapest that suffices: '
expect 0 hbmsim advise --json $q --set batch.global=64
ok 'and says so in JSON' grep -q '"suffices": "[a-z]' "$work/out"
expect 0 hbmsim advise --json $q
out_has '"suffices": null,'

# a system that does not tell a program's path
cat >"$work/nolink.c" <<'END'
#include <stddef.h>
long readlink(const char *path, char *to, size_t room) { (void)path, (void)to, (void)room; return -1; }
END
if ${CC:-cc} -shared -fPIC -o "$work/nolink.so" "$work/nolink.c" 2>/dev/null &&
    ! nm -D "$HBMSIM" 2>/dev/null | grep -q __asan; then
    expect 0 env -u HBMSIM_DATA LD_PRELOAD="$work/nolink.so" "$HBMSIM" models llama3-8b
    out_has 'llama3-8b: 8030261248 parameters'
else
    skip 'without /proc' 'no compiler, or a sanitizer'
fi
finish
