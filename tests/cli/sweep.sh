# hbmsim sweep: ranges, map, CSV, JSON; journals that survive a kill; shards and processes give the
# same bytes as one process.
. tests/tap.sh

model=examples/quickstart/model.yaml
grid="--x batch.global=8..64*2 --y batch.seq=2048..16384*2"

expect 0 hbmsim sweep $model $grid
out_has 'fits up to 64 x 4k'
out_has 'across: batch.global, up: batch.seq'
expect 0 hbmsim sweep $model $grid --csv
out_has 'batch.global,batch.seq,fits,peak_bytes,budget_bytes,step_seconds,tokens_per_second,error'
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

finish
