# The dispatcher: what is said where no command, a wrong one or a wrong option is given; that
# each command explains itself and that its example works as pasted.
. tests/tap.sh

expect 2 hbmsim
err_has 'usage: hbmsim COMMAND'
out_is ''
expect 0 hbmsim help
out_has 'usage: hbmsim COMMAND'
cp "$work/out" "$work/overview"
expect 0 hbmsim --help
same "$work/out" "$work/overview"
expect 0 hbmsim --version
ok 'a version is a number' grep -Eq '^hbmsim [0-9]+\.[0-9]+$' "$work/out"
expect 2 hbmsim modls
err_is "hbmsim: error: there is no command 'modls'; did you mean 'models'?"
expect 2 hbmsim frobnicate
err_is "hbmsim: error: there is no command 'frobnicate'; 'hbmsim help' lists them"
expect 2 hbmsim help modls
err_is "hbmsim: error: there is no command 'modls'; did you mean 'models'?"
expect 2 hbmsim models --jsno
err_is "hbmsim: error: 'models' has no option '--jsno'; did you mean '--json'?"
expect 2 hbmsim help one two three
err_is "hbmsim: error: 'help' does not take a further argument 'three'"

# Examples run as pasted in the source tree; what they write goes to a folder that mirrors it.
mkdir "$work/bin" "$work/tree"
for file in *; do
    [ "$file" = build ] || ln -s "$PWD/$file" "$work/tree/$file"
done
ln -s "$HBMSIM" "$work/bin/hbmsim"
PATH=$work/bin:$PATH
for command in $(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/overview"); do
    expect 0 hbmsim "$command" --help
    out_has "usage: hbmsim $command"
    cp "$work/out" "$work/help"
    expect 0 hbmsim help "$command"
    same "$work/out" "$work/help"
    [ "$command" != serve ] || continue # runs until it is ended: tests/cli/serve.sh
    example=$(sed -n '/^example:/,$s/^  //p' "$work/help")
    run sh -c "cd '$work/tree' && $example"
    ok "the example of $command works: $example" test "$status" -le 1
done

if [ -w /dev/full ]; then
    run sh -c '"$HBMSIM" help >/dev/full'
    ok 'a full disk is status 3' test "$status" = 3
    err_has 'cannot write standard output: No space left on device'
    run sh -c '"$HBMSIM" models --json >/dev/full'
    ok 'and so with an output larger than its buffer' test "$status" = 3
    err_has 'cannot write standard output: No space left on device'
else
    skip 'a full disk is status 3' 'no /dev/full'
fi
run sh -c '"$HBMSIM" help >&-'
ok 'a closed output is status 3' test "$status" = 3
mkfifo "$work/pipe"
for words in help 'models --json'; do
    rm -f "$work/gone"
    (exec 3<"$work/pipe"; exec 3<&-; : >"$work/gone") &
    run sh -c 'exec >"$1/pipe"; while [ ! -e "$1/gone" ]; do sleep 0.05; done; "$HBMSIM" $2' \
        sh "$work" "$words"
    ok "a reader of '$words' that went away is status 3" test "$status" = 3
    err_is ''
    wait
done
finish
