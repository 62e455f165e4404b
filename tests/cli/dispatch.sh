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
expect 2 hbmsim models --hepl
err_is "hbmsim: error: 'models' has no option '--hepl'; did you mean '--help'?"
expect 2 hbmsim help one two
err_is "hbmsim: error: 'help' does not take a further argument 'two'"

mkdir "$work/bin"
ln -s "$HBMSIM" "$work/bin/hbmsim"
PATH=$work/bin:$PATH
for command in $(sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' "$work/overview"); do
    expect 0 hbmsim "$command" --help
    out_has "usage: hbmsim $command"
    cp "$work/out" "$work/help"
    expect 0 hbmsim help "$command"
    same "$work/out" "$work/help"
    example=$(sed -n '/^example:/,$s/^  //p' "$work/help")
    run sh -c "$example"
    ok "the example of $command works: $example" test "$status" -le 1
done

if [ -w /dev/full ]; then
    run sh -c '"$HBMSIM" help >/dev/full'
    ok 'a full disk is status 3' test "$status" = 3
    err_has 'cannot write standard output: No space left on device'
else
    skip 'a full disk is status 3' 'no /dev/full'
fi
run sh -c '"$HBMSIM" help >&-'
ok 'a closed output is status 3' test "$status" = 3
mkfifo "$work/pipe"
(exec 3<"$work/pipe"; exec 3<&-; sleep 1) &
run sh -c '(trap "" PIPE; sleep 0.3; "$HBMSIM" help; echo $? >"$1/code") >"$1/pipe"' sh "$work"
ok 'a reader that went away is status 3' test "$(cat "$work/code")" = 3
err_is ''
wait
finish
