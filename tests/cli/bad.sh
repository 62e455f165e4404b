# Bad input through the program: exit status 2, nothing on stdout, exactly the expected messages.
# Small files are in tests/cli/bad; here are those that are large, or no regular files.
# `sh tests/cli/bad.sh update` writes the expectations anew; the difference is to be read.
. tests/tap.sh

if ! hbmsim help simulate >/dev/null 2>&1; then
    skip 'bad input' 'this build has no simulate'
    finish
fi
mode=${1-}
HBMSIM_DATA=../../..
export HBMSIM_DATA
cd tests/cli/bad || exit 1

simulate_file() {
    sets=$1.set
    set -- "$1.yaml"
    if [ -f "$sets" ]; then
        while IFS= read -r line; do set -- "$@" --set "$line"; done <"$sets"
    fi
    run hbmsim simulate "$@"
}

refused() {
    [ "$status" = 2 ] && [ ! -s "$work/out" ] && cmp -s "$work/err" "$1"
}

for file in *.yaml; do
    name=${file%.yaml}
    simulate_file "$name"
    [ "$mode" != update ] || cp "$work/err" "$name.expect"
    ok "bad/$name" refused "$name.expect"
    refused "$name.expect" || diff "$name.expect" "$work/err" | sed 's/^/#   /'
done
ok 'at least 130 files' test "$tap_count" -ge 130
expect 0 hbmsim simulate base/good.yaml

cd "$work" || exit 1
awk 'BEGIN { for (i = 0; i < 20000; i++) printf "[" }' >deep.yaml
expect 2 hbmsim simulate deep.yaml
err_is 'deep.yaml:1:65: error: nested deeper than 64 levels'
awk 'BEGIN { printf "{\"a\": "; for (i = 0; i < 20000; i++) printf "{\"a\": " }' >deep-json.yaml
expect 2 hbmsim simulate deep-json.yaml
err_is 'deep-json.yaml:1:380: error: nested deeper than 64 levels'
awk 'BEGIN {
    print "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"
    for (i = 1; i < 12; i++) {
        printf "a%d: &a%d [", i, i
        for (k = 0; k < 10; k++) printf "%s*a%d", k ? ", " : "", i - 1
        print "]"
    }
}' >bomb.yaml
expect 2 hbmsim simulate bomb.yaml
err_is 'bomb.yaml:6:45: error: more than 1000000 values, aliases expanded'
awk 'BEGIN { for (i = 0; i < 1100; i++) printf "k%d: &k%d 1\n", i, i }' >anchors.yaml
expect 2 hbmsim simulate anchors.yaml
err_is 'anchors.yaml:1001:8: error: more than 1000 anchors'
awk 'BEGIN { printf "x: [1"; for (i = 0; i < 1000000; i++) printf ",1"; print "]" }' >many.yaml
expect 2 hbmsim simulate many.yaml
err_has 'error: more than 1000000 values, aliases expanded'
dd if=/dev/zero of=large.yaml bs=1 count=1 seek=67108864 2>/dev/null
expect 2 hbmsim simulate large.yaml
err_is 'large.yaml: error: is larger than 64 MiB, the most that is read'
awk 'BEGIN { for (i = 0; i < 30000; i++) printf "k%d: %d\n", i % 29999, i }' >keys.yaml
expect 2 hbmsim simulate keys.yaml
err_is "keys.yaml:30000:1: error: key 'k0' is written twice; first at line 1, column 1"
mkdir folder
expect 2 hbmsim simulate folder
err_is 'folder: error: is a directory; a file is wanted'
expect 2 hbmsim simulate nowhere.yaml
err_is 'nowhere.yaml: error: cannot be read: No such file or directory'
echo 'hbmsim: 1' >secret.yaml
chmod 000 secret.yaml
if [ -r secret.yaml ]; then
    skip 'an unreadable file' 'the superuser reads everything'
else
    expect 2 hbmsim simulate secret.yaml
    err_is 'secret.yaml: error: cannot be read: Permission denied'
fi
chmod 600 secret.yaml
head -c 4096 "$HBMSIM" >program.yaml
expect 2 hbmsim simulate program.yaml
err_is 'program.yaml:1:1: error: character U+007F is not text; only text is read'
mkdir inner
ln -s ../secret.yaml inner/card.yaml
echo 'include: card.yaml' >inner/run.yaml
expect 2 hbmsim simulate inner/run.yaml
err_is "inner/run.yaml:1:10: error: include: 'card.yaml' leads by a link out of the folder of the including file; allowed: a relative path below it"
ln -s run.yaml inner/again.yaml
echo 'include: again.yaml' >inner/run.yaml
expect 2 hbmsim simulate inner/run.yaml
err_is "inner/run.yaml:1:10: error: include: 'again.yaml' is being read already: a loop"
i=0
while [ $i -lt 20 ]; do
    echo "include: chain$((i + 1)).yaml" >"chain$i.yaml"
    i=$((i + 1))
done
echo 'hbmsim: 1' >chain20.yaml
expect 2 hbmsim simulate chain0.yaml
err_is 'chain15.yaml:1:10: error: include: more than 16 files deep'
finish
