# What is written where: outputs that would take an input's or each other's place, links, what a
# killed run leaves, limits, streams that are closed.
. tests/tap.sh

model=examples/quickstart/model.yaml
cp $model "$work/in.yaml"
cd "$work" || exit 1

# Refused before anything is written or run; the input stays as it was.
refused() {
    expect 2 hbmsim "$@"
    err_has 'nothing is written'
    out_is ''
}
refused simulate in.yaml -o in.yaml
err_is "hbmsim: error: --output: 'in.yaml' is also read as MODEL.yaml: nothing is written"
ln -s in.yaml link.yaml
refused simulate in.yaml -o link.yaml
refused simulate link.yaml -o in.yaml
refused plan in.yaml -o ./in.yaml
ok 'the input is as it was' cmp -s in.yaml "$OLDPWD/$model"
refused simulate in.yaml -o a --timeline a
refused simulate in.yaml --json --timeline -
refused simulate in.yaml -o q.svg --plot q.svg
err_is "hbmsim: error: --plot: 'q.svg' is also the output of --output: nothing is written"
ln -s new.txt dangling
refused simulate in.yaml -o new.txt --timeline dangling
refused plan in.yaml -o a --certificate a
refused plan in.yaml --verify --keep a -o a
refused sweep in.yaml --x batch.global=8 --journal j -o j
refused sweep in.yaml --x batch.global=8 --merge j --merge k -o k
refused plot r.json -o r.json --format svg
refused plot r.json q.json -o x.svg --layout q.json
refused record log --config in.yaml -o in.yaml
refused validate r.jsonl --peaks p.jsonl -o p.jsonl
refused report in.yaml --plan p.json -o p.json
refused verify in.yaml --keep k.jsonl -o k.jsonl
ok 'nothing was written' [ "$(echo *)" = 'dangling err in.yaml link.yaml out' ]

# What is no file does not collide.
expect 0 hbmsim simulate in.yaml -o /dev/null --timeline /dev/null

# A link is followed, also one to a file that is not there yet.
expect 0 hbmsim simulate in.yaml -o dangling
ok 'the link is still one' [ -L dangling ]
ok 'its file was made' grep -q '^FITS' new.txt

# The half that a killed run left is named and removed; that of a running one is not.
sh -c 'echo $$' >pid
dead=$(cat pid)
echo half >"out.txt.part-$dead"
echo half >"out.txt.part-$$"
echo mine >out.txt.part-mine
echo mine >"other.txt.part-$dead"
expect 0 hbmsim simulate in.yaml -o out.txt
err_is "out.txt.part-$dead: warning: the half of a run that was killed while it wrote: removed"
ok 'only that one is gone' [ "$(echo *.part-*)" = "$(echo other.txt.part-$dead out.txt.part-$$ out.txt.part-mine)" ]
expect 0 hbmsim simulate in.yaml -o dangling
err_is ''

# A limit of the file's size is a full disk: status 3, and no half.
small() { (ulimit -f 1 && exec "$HBMSIM" "$@"); }
expect 3 small simulate in.yaml --json --full -o big.json
err_has 'cannot write big.json: File too large'
ok 'no half is left' [ "$(echo big*)" = 'big*' ]

# Streams that the caller closed: of no matter where they are not needed, else a failure.
closed() { "$HBMSIM" "$@" >&-; }
expect 0 closed simulate in.yaml -o closed.txt
ok 'it is whole' cmp -s closed.txt out.txt
expect 3 closed simulate in.yaml
err_has 'cannot write standard output: Bad file descriptor'
mute() { "$HBMSIM" "$@" 2>&-; }
expect 2 mute simulate in.yaml -o mute.txt --set batch.global=-1
expect 2 mute simulate no.yaml -o mute.txt
ok 'no message in a file' [ ! -e mute.txt ]
deaf() { "$HBMSIM" "$@" <&-; }
expect 0 deaf simulate in.yaml -o deaf.txt
ok 'a file that is descriptor 0 is one' cmp -s deaf.txt out.txt
expect 0 deaf simulate in.yaml -o /dev/null
expect 2 deaf simulate -
err_has 'cannot be read: Bad file descriptor'

cd "$OLDPWD" || exit 1
finish
