# hbmsim sweep: ranges, map, CSV, JSON; journals that survive a kill; shards and processes give the
# same bytes as one process.
. tests/tap.sh

model=examples/quickstart/model.yaml
grid="--x batch.global=8..64*2 --y batch.seq=2048..16384*2"

expect 0 hbmsim sweep $model $grid
out_has 'fits up to 32 x 8k'
out_has 'across: batch.global, up: batch.seq'
expect 0 hbmsim sweep $model $grid --csv
out_has 'batch.global,batch.seq,fits,peak_bytes,low_bytes,high_bytes,budget_bytes,step_seconds,tokens_per_second,error'
ok 'a line a cell' test "$(wc -l <"$work/out")" = 17
cp "$work/out" "$work/one.csv"

# A cell is what simulate says of it.
cell=$(sed -n 's/^32,8192,[a-z]*,\([0-9]*\),.*/\1/p' "$work/one.csv")
expect 0 hbmsim simulate $model --json --set batch.global=32 --set batch.seq=8192
ok 'a cell is what simulate says' test "$cell" = "$(sed -n 's/^  "peak_bytes": \([0-9]*\),/\1/p' "$work/out")"

expect 0 hbmsim sweep $model $grid --csv --jobs 2
same "$work/out" "$work/one.csv"
expect 0 hbmsim sweep $model $grid --csv --jobs 7 --journal "$work/journal"
same "$work/out" "$work/one.csv"

# A text that a spreadsheet would run is one that it shows.
expect 0 hbmsim sweep $model --x "remat.policy==1+1,full" --csv
out_has "\"'=1+1\","

# A journal whose figures were changed is refused, its line named.
sed '5s/"peak_bytes": *[0-9]/&7/' "$work/journal" >"$work/changed"
expect 2 hbmsim sweep $model $grid --csv --journal "$work/changed"
err_has 'changed:5: error: this line is not as it was written'

# Killed in the middle of a line: what is whole stays, the rest is run again.
head -c 900 "$work/journal" >"$work/killed"
kept=$(grep -c '"cell"' "$work/killed")
expect 0 hbmsim sweep $model $grid --csv --journal "$work/killed"
same "$work/out" "$work/one.csv"
ok 'no cell stands twice in the journal' test "$(grep -c '"cell"' "$work/killed")" = 16
ok 'some were kept' test "$kept" -gt 0
expect 0 hbmsim sweep $model $grid --csv --journal "$work/killed"
same "$work/out" "$work/one.csv"
expect 2 hbmsim sweep $model --x batch.global=8,16 --journal "$work/killed"
err_has 'the journal is of another sweep'

for i in 1 2 3; do
    expect 0 hbmsim sweep $model $grid --csv --shard $i/3 --journal "$work/part$i"
done
expect 0 hbmsim sweep $model $grid --csv --merge "$work/part1" --merge "$work/part2" --merge "$work/part3"
same "$work/out" "$work/one.csv"
expect 2 hbmsim sweep $model $grid --csv --merge "$work/part1"
err_has 'of 16 cells are in none of the journals'

# Values that cannot be are cells with their reason.
expect 0 hbmsim sweep $model --x batch.global=8..12+1 --csv
out_has '9,,,,,,'
out_has 'batch.global: 9 sequences cannot be split'
expect 0 hbmsim sweep $model $grid --facet remat.policy=full,dots --json
out_has '"remat.policy=dots"'
out_has '"best": {'
expect 0 hbmsim sweep $model $grid --json -o "$work/fit.json" --plot "$work/fit.svg"
ok 'it draws' test -s "$work/fit.svg"
expect 0 hbmsim plot "$work/fit.json" -o "$work/again.svg"

# The input as it stands is marked, in text and in JSON; each sequence has its own best cell.
expect 0 hbmsim sweep $model $grid
out_has '[55.4*]'
out_has 'as it stands: batch.global=32 batch.seq=8192: 55.41 GiB'
out_has 'best of batch.seq=2048: batch.global=64: 35.50 GiB'
out_has 'best of batch.seq=16384: batch.global=16: 55.41 GiB'
expect 0 hbmsim sweep $model $grid --json -o "$work/fit.json"
ok 'own and best of each in JSON' python3 -c "
import json, sys
j = json.load(open('$work/fit.json'))
own = {'x': 32, 'y': 8192, 'facet': 0}
sys.exit(j['own'] != own or j['best'] != own or
         [(c['x'], c['y']) for c in j['best_of_each']] != [(64, 2048), (64, 4096), (32, 8192), (16, 16384)])"
expect 0 hbmsim plot "$work/fit.json" -o "$work/fit.svg" --theme dark --size 900x700 --text
ok 'the picture says which cell the input is' grep -q 'as it stands: 32' "$work/fit.svg"
expect 0 hbmsim sweep $model --x batch.seq=2048,4096 --set batch.global=8
out_has 'at batch.seq=2048: '
expect 0 hbmsim sweep $model --x model.preset=llama3-8b,gemma2-9b --y batch.global=8,32 --set batch.seq=2048
out_has 'as it stands: model.preset=llama3-8b batch.global=32'
expect 0 hbmsim sweep $model --x hardware.device=h100,b200 --y loss.chunks=1,8
out_has 'as it stands: hardware.device=h100 loss.chunks=1'
expect 0 hbmsim sweep $model --x batch.global=8,16
ok 'an input that is not in the grid is not marked' sh -c "! grep -q 'as it stands' '$work/out'"

# What cannot be is told once for each reason, words of an axis are whole.
expect 0 hbmsim sweep $model --x mesh.fsdp=1..8*2 --y remat.policy=full,dots_with_no_batch_dims
out_has 'dots_with_no_batch_dims'
out_has '7 of 8 cells cannot be:'
out_has '  4  remat.policy: '
out_has '  3  mesh: 1 x 1 x 1 x 1 x 1 x 1 = 1 devices, but hardware.count is 8'
out_has '     at mesh.fsdp=1 remat.policy=full, and others like it'

# Keys are looked up before anything is run, where they stand.
expect 2 hbmsim sweep $model --x batch.gobal=8,16
err_is "--x batch.gobal=8,16: error: batch: unknown key 'gobal'; did you mean 'global'?"
expect 2 hbmsim sweep $model --x batch.global=8 --y 'model.blocks[0].attention.heds=8,16'
err_is "--y model.blocks[0].attention.heds=8,16: error: model.blocks.attention: unknown key 'heds'; did you mean 'heads'?"
expect 2 hbmsim sweep $model --x batch.global=8 --y batch.seq=2048 --facet remat.per_block.dense.polic=full
err_is "--facet remat.per_block.dense.polic=full: error: remat.per_block: unknown key 'polic'; did you mean 'policy'?"
expect 0 hbmsim sweep $model --x remat.per_block.dense.policy=full,dots --y blocks.0.repeat=8,16

for bad in 8 batch.global batch.global= batch.global=8.. batch.global=8..4*2 batch.global=1..8*1 =1,2; do
    expect 2 hbmsim sweep $model --x "$bad"
    err_has 'is no range'
done
expect 2 hbmsim sweep $model
err_has '--x is missing'
expect 2 hbmsim sweep $model --x a=1..1000000*2 --facet b=1,2
expect 2 hbmsim sweep $model --x batch.seq=1..9000+1 --y batch.global=1..9000+1
err_has 'cells; allowed: at most'
expect 2 hbmsim sweep $model $grid --shard 4/3
err_has '--shard:'

refuse() {
    expect 2 hbmsim sweep "$model" $1
    err_has "$2"
    out_is ''
}
refuse '--x batch.global=8,16,8 --y batch.seq=2048' 'the value 8 is there twice'
refuse '--x batch.global=8,8.0 --y batch.seq=2048' 'the value 8.0 is there twice'
refuse '--x batch.global=8 --y batch.global=16' 'batch.global varies twice'
refuse '--x batch.globl=8,16 --y batch.seq=2048' "did you mean 'global'"
refuse '--x batch.global=12 --y batch.seq=2048' 'none of 1 cells can be; of the first: '
refuse '--x batch.global=8 --y batch.seq=2048 --json --csv' 'exclude each other'
refuse '--x batch.global=8 --y batch.seq=2048 --plot x.gif' '.svg, .pdf or .png'
expect 3 hbmsim sweep $model $grid -o "$work/no/such/file"
ok 'what cannot be written leaves nothing' test ! -e "$work/no"

# Nothing fits.
expect 1 hbmsim sweep $model $grid --set hardware.hbm=1GiB
out_has '0 of 16 cells fit'
expect 1 hbmsim sweep $model $grid --set hardware.hbm=1GiB --json
out_has '"best": null'

# A number of a file's JSON by its key.
number() {
    sed -n "s/.*\"$1\": \\([-0-9.e+]*\\),*\$/\\1/p" "$2" | head -n 1
}

# Each cell is what simulate says, in every column; 12 sequences are not divided by 8 devices.
facets="$model --x batch.global=8,12,32 --y batch.seq=2048..32768*4 --facet remat.policy=full,none --facet loss.chunks=1,8"
expect 0 hbmsim sweep $facets --csv -o "$work/cells.csv"
out_is ''
lines=0
bad=0
while IFS=, read -r x y policy chunks fits peak low high budget step rate error; do
    lines=$((lines + 1))
    [ "$lines" -gt 1 ] || continue
    run hbmsim simulate "$model" --set batch.global="$x" --set batch.seq="$y" \
        --set remat.policy="$policy" --set loss.chunks="$chunks" --json
    if [ "$status" = 2 ]; then
        [ "$x,$fits,$peak,$step" = 12,,, ] && [ -n "$error" ] || bad=$((bad + 1))
        continue
    fi
    cp "$work/out" "$work/one"
    fit=$(sed -n 's/^  "fits": \([a-z]*\),/\1/p' "$work/one")
    [ "$fits,$peak,$low,$high,$budget,$step,$rate,$error" = "$fit,$(number peak_bytes "$work/one"),$(number low_bytes "$work/one"),$(number high_bytes "$work/one"),$(number budget_bytes "$work/one"),$(number step_seconds "$work/one"),$(number tokens_per_second "$work/one")," ] ||
        bad=$((bad + 1))
done <"$work/cells.csv"
ok 'each cell is what simulate says' test "$lines $bad" = '37 0'
expect 0 hbmsim sweep $facets
out_has 'remat.policy=none, loss.chunks=8: '
out_has '12 of 36 cells cannot be:'
cp "$work/out" "$work/first"
expect 0 hbmsim sweep $facets --jobs 3
same "$work/first" "$work/out"

# The picture is the same from the JSON: with facets and cells that cannot be, with words and a
# budget that varies, with loading that refuses what the step's peak alone would let pass.
same_picture() {
    expect 0 hbmsim sweep $2 --json --plot "$work/direct.$1" -o "$work/s.json"
    expect 0 hbmsim plot "$work/s.json" -o "$work/again.$1"
    same "$work/direct.$1" "$work/again.$1"
}
same_picture svg "$facets"
keys=$(sed -n 's/^  "\([a-z_]*\)":.*/\1/p' "$work/s.json" | tr '\n' ' ')
ok 'the keys are the promised ones' test "$keys" = 'name version compiler device configuration budget_bytes x y facets cells best best_of_each own '
expect 0 hbmsim report $model --sweep "$work/s.json" -o "$work/r.html"
ok 'the report has the map' grep -q 'Fit map' "$work/r.html"
words="$model --x remat.policy=full,none --y hardware.hbm=20GiB,80GiB,1TiB"
same_picture pdf "$words"
expect 0 hbmsim sweep $words
out_has '3 of 6 cells fit'
ok 'the map has as many' test "$(sed '/^across/,$d' "$work/out" | tr -cd '#*' | wc -c)" = 3
load="$model --x batch.global=32,64 --y load.processes=32,64 --set load.method=device_put --set load.largest_array=1050673152 --set hardware.hbm=60GiB"
same_picture svg "$load"
expect 0 hbmsim sweep $load
out_has '1 of 4 cells fit'
ok 'the map has one too' test "$(sed '/^across/,$d' "$work/out" | tr -cd '#*' | wc -c)" = 1

# What may not fit is never best beside what does, and more confidence asks for more.
grid="$model --x hardware.hbm=56GiB,400GiB --y batch.global=16,32"
expect 0 hbmsim sweep $grid --confidence 50 --csv
low=$(sed -n 's/^56GiB,32,//p' "$work/out" | cut -d, -f4)
expect 0 hbmsim sweep $grid --confidence 95 --csv
high=$(sed -n 's/^56GiB,32,//p' "$work/out" | cut -d, -f4)
ok 'more confidence, a higher end' test "$low" -lt "$high"
expect 0 hbmsim sweep $model --x hardware.hbm=56GiB --y batch.global=8,32 --confidence 95
out_has 'best: hardware.hbm=56GiB batch.global=8:'
expect 2 hbmsim sweep $grid --confidence 20
err_has "--confidence: '20'; allowed: per cent from 50 to 99.9"

# The preset can vary: its card is read for each. The input need not be complete by itself.
expect 0 hbmsim sweep $model --x model.preset=llama3-8b,llama3-70b --y batch.seq=2048,4096 --csv
cp "$work/out" "$work/presets"
run hbmsim simulate $model --set model.preset=llama3-70b --set batch.seq=4096 --json
ok 'a preset is that of simulate' grep -q "^llama3-70b,4096,[a-z]*,$(number peak_bytes "$work/out")," "$work/presets"
expect 2 hbmsim sweep $model --x model.preset=llama3-8b,none-such --y batch.seq=2048
err_has "no card 'none-such'"
sed 's/^batch:.*/batch: {seq: 2048}/' $model >"$work/part.yaml"
expect 0 hbmsim sweep "$work/part.yaml" --x batch.global=8,16
expect 0 sh -c "'$HBMSIM' sweep - --x batch.global=8,16 <'$model'"
expect 2 sh -c "'$HBMSIM' sweep - --x model.preset=llama3-8b <'$model'"
err_has 'not standard input'

finish
