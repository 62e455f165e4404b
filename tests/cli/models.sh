# hbmsim models: list, one card, JSON, output file, and what is said of a wrong name.
. tests/tap.sh

expect 0 hbmsim models
ls models/zoo | sed -n 's/\.yaml$//p' | sort >"$work/zoo"
sed -n '2,/^$/s/ .*//p' "$work/out" | grep . >"$work/listed"
ok 'lists each card of the zoo, in order' cmp -s "$work/listed" "$work/zoo"
cp "$work/out" "$work/list"
expect 0 hbmsim models mixtral-8x7b
out_has 'mixtral-8x7b: 46702792704 parameters, 12879925248 active'
out_has 'experts: 2 of 8, each 14336 wide'
out_has 'models/zoo/mixtral-8x7b.yaml'
expect 0 hbmsim models --json llama3-8b
out_has '"parameters": 8030261248,'
for part in '"layers": 32,' '"d_model": 4096,' '"vocab": 128256,' '"head": 525336576,'; do
    out_has "$part"
done
ok 'the parts sum to the whole' sh -c 'awk "/\"parameters\"/ { whole = \$2 + 0 }
    /\"parts\"/ { inside = 1 } inside { sum += \$2 } END { exit sum != whole }" "$1"' sh "$work/out"
if command -v python3 >/dev/null 2>&1; then
    hbmsim models --json >"$work/all.json"
    ok 'all of it is JSON' python3 -c 'import json, sys
names = [m["name"] for m in json.load(open(sys.argv[1]))["models"]]
assert names == open(sys.argv[2]).read().split()' "$work/all.json" "$work/zoo"
else
    skip 'all of it is JSON' 'no python3'
fi
expect 0 hbmsim models -o "$work/file"
out_is ''
same "$work/file" "$work/list"
expect 2 hbmsim models lama3-8b nothing-of-the-kind
err_is "hbmsim: error: the zoo has no model 'lama3-8b'; did you mean 'llama3-8b'?
hbmsim: error: the zoo has no model 'nothing-of-the-kind'; 'hbmsim models' lists them"
out_is ''
expect 3 hbmsim models -o "$work/no/such"
err_is "hbmsim: fatal: cannot write $work/no/such: No such file or directory"
expect 0 hbmsim help model batch
out_has 'sequences of a step over all devices'
mv "$work/out" "$work/batch"
expect 0 hbmsim help batch
same "$work/out" "$work/batch"
expect 2 hbmsim help rmat
err_is "hbmsim: error: there is no command 'rmat'; did you mean 'remat'?"
expect 0 hbmsim help remat
out_has 'what is kept, recomputed or offloaded'
expect 2 hbmsim help model btch
err_is "hbmsim: error: the input has no section or key 'btch'; did you mean 'batch'?"
# A key is found as well, with its section or without, also one that several sections have.
expect 0 hbmsim help loss.chunks
out_is '  loss.chunks              chunks of the logits
                           1 to 1099511627776; default: 1'
expect 0 hbmsim help model mlp.d_ff
out_has '  model.blocks[].mlp.d_ff  '
expect 0 hbmsim help offload
out_has '  optimizer.offload '
out_has '  remat.offload '
expect 2 hbmsim help chnks
err_is "hbmsim: error: there is no command 'chnks'; did you mean 'chunks'?"
expect 2 hbmsim help loss.chnks
err_is "hbmsim: error: there is no command 'loss.chnks'; did you mean 'loss.chunks'?"
expect 2 hbmsim help models batch
err_is "hbmsim: error: only 'hbmsim help model' and 'hbmsim help json' take a section"
finish
