# Nothing that a file, a name or an option holds steers the terminal that it is shown on.
. tests/tap.sh

esc=$(printf '\033')
bell=$(printf '\007')
model=examples/quickstart/model.yaml

# Messages, wherever they go. As functions: their words are not for a test's name.
file_name() { hbmsim simulate "no${esc}]0;title$bell.yaml"; }
command_name() { hbmsim "simulate${esc}[2J"; }
option_name() { hbmsim simulate $model "--${esc}[2J"; }
output_name() { hbmsim simulate $model -o "no${esc}[2J/x"; }
value() { hbmsim simulate $model --set "batch.global=$(printf '\302\233')2J$(printf '\377')"; }
silent_err() { ! LC_ALL=C grep -q "[${esc}${bell}]" "$work/err"; }
expect 2 file_name
err_has 'no\x1b]0;title\x07.yaml'
expect 2 command_name
err_has '\x1b[2J'
ok 'no raw one' silent_err
expect 2 option_name
err_has '\x1b[2J'
expect 3 output_name
err_has 'no\x1b[2J/x'
expect 2 value
err_has '\xc2\x9b2J\xff'
ok 'no raw one is left' silent_err

# What is printed: to a terminal escaped, but for hbmsim's own colours; else as it is.
sed 's/^name: .*/name: "a\\e[2Jb"/' hw/db/nvidia-h100.yaml >"$work/d.yaml"
head -n 1 tests/golden/lab-tpu.jsonl | sed 's/"id": *"/&a\\u001b[2J\\u0007b/' >"$work/r.jsonl"
on_terminal() { TERM=xterm script -qec "'$HBMSIM' $*" /dev/null; }
steers() { LC_ALL=C grep -q "${esc}\[2J\|${esc}]\|$bell" "$work/out"; }
not() { ! "$@"; }
if ! TERM=xterm script -qec true /dev/null >"$work/out" 2>&1 </dev/null; then
    skip 'on a terminal' 'no program "script" here'
else
    run on_terminal simulate $model
    ok 'colours are kept' grep -q "${esc}\[1;3[123]m" "$work/out"
    ok 'nothing is escaped' not grep -qF '\x1b' "$work/out"
    for command in "devices $work/d.yaml" "validate $work/r.jsonl"; do
        # shellcheck disable=SC2086
        run hbmsim $command
        ok "to a file as it is: ${command%% *}" steers
        run on_terminal "$command"
        ok "on a terminal it does not steer: ${command%% *}" not steers
        ok "it is readable: ${command%% *}" grep -qF 'a\x1b[2J' "$work/out"
    done
fi
finish
