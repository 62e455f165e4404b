# Input without an end: devices that never stop, pipes that nobody writes to. Each command says so
# soon, in little memory.
. tests/tap.sh

small=$PWD/tests/torture/small.yaml
command -v timeout >/dev/null 2>&1 || {
    skip 'endless input' 'no program "timeout" here'
    finish
}

# Four GiB of addresses; the sanitizers want more for themselves.
bounded() {
    (
        [ "$(basename "$HB_BUILD")" != fast ] || ulimit -v 4000000
        exec timeout 20 "$HBMSIM" "$@"
    )
}
if [ -r /dev/zero ]; then
    for words in 'simulate /dev/zero' 'plan /dev/zero' 'import /dev/zero' 'devices /dev/zero' \
        'validate /dev/zero' 'plot /dev/zero' 'report /dev/zero' 'hlo /dev/zero' 'explain /dev/zero' \
        "record /dev/zero --id x --config $small" "simulate $small --set hardware.device=/dev/zero" \
        "report $small --plan /dev/zero" "compare $small /dev/zero"; do
        # shellcheck disable=SC2086
        expect 2 bounded $words
        err_has 'error: '
    done
else
    skip 'endless devices' 'no /dev/zero'
fi

# Pipes whose writer never stops: told as soon as so much of them is taken, before any of it is read.
for words in 'explain -' "record - --id x --config $small" 'hlo -' "simulate -" "validate -"; do
    run sh -c 'words=$1; shift; yes "$@" | timeout 60 "$HBMSIM" $words' sh "$words" 'CUDA out of memory'
    ok "$words: status 2" test "$status" = 2
    err_has 'error: '
done
run sh -c 'yes | timeout 60 "$HBMSIM" explain -'
ok 'yes | explain: status 2' test "$status" = 2
err_has 'no end after 256 MiB: a log is read from a file, or from a pipe that ends'
run sh -c 'yes | timeout 60 "$HBMSIM" hlo -'
ok 'yes | hlo: status 2' test "$status" = 2
err_has 'no end after 512 MiB: a dump is read from a file, or from a pipe that ends'

# More keys than a configuration has, of which each would be looked for among all; names of a script
# that stand for each other, 2^40 times.
keys() { awk -v n=30000 -v before="$1" -v between="$2" 'BEGIN { while (i++ < n) print before "key" i between i }'; }
{
    echo 'num_layers: 12'
    echo 'num_attention_heads: 8'
    keys '' ': '
} >"$work/many.yaml"
{
    echo '[model]'
    keys '' ' = '
} >"$work/many.toml"
{
    printf 'torchrun pretrain_gpt.py --num-layers 12 '
    keys '--' ' ' | tr '\n' ' '
} >"$work/many.sh"
{
    echo 'ARGS="--num-layers 12'
    keys '--' ' '
    echo '"'
} >"$work/quoted.sh"
{
    echo 'A=xxxxxxxx'
    awk 'BEGIN { while (i++ < 40) print "A=$A$A" }'
    echo 'torchrun pretrain_gpt.py --num-layers 12 --hidden-size $A'
} >"$work/names.sh"
expect 2 bounded import "$work/many.yaml"
err_has 'holds more than 20000 values, as no configuration does'
expect 2 bounded import examples/import/config.json "$work/many.yaml"
err_has 'many.yaml:1:1: error: holds more than 20000 values'
expect 2 bounded import "$work/many.toml"
err_has 'more than 2000 keys in one table'
expect 2 bounded import "$work/many.sh"
err_has 'more than 10000 arguments and assignments'
expect 2 bounded import "$work/quoted.sh"
err_has 'more than 10000 arguments and assignments'
expect 2 bounded import "$work/names.sh"
err_has 'what its names stand for takes more than 1 MiB'

# A pipe among the data is no profile and no card.
data=$work/data
mkdir -p "$data/hw" "$data/models"
cp -R hw/db "$data/hw/db"
cp -R models/zoo "$data/models/zoo"
mkfifo "$data/hw/db/aaa.yaml"
rm "$data/models/zoo/llama3-8b.yaml"
mkfifo "$data/models/zoo/llama3-8b.yaml"
HBMSIM_DATA=$data
export HBMSIM_DATA
expect 0 bounded devices
out_has nvidia-h100
expect 0 bounded models
expect 2 bounded models llama3-8b
expect 2 bounded simulate examples/quickstart/model.yaml
err_has "no card 'llama3-8b'"
expect 2 bounded simulate "$small" --set hardware.device=aaa
err_has "there is no device 'aaa'"
printf 'batch: {global: 8}\n' >"$data/models/zoo/empty.yaml"
printf 'model: {d_model: 1\n' >"$data/models/zoo/torn.yaml"
expect 2 bounded simulate "$small" --set model.preset=empty
err_has 'empty.yaml:1:1: error: model: a card of the zoo needs it'
expect 2 bounded simulate "$small" --set model.preset=torn
err_has 'torn.yaml:'
unset HBMSIM_DATA
finish
