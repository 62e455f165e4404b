#!/bin/sh
# Makes the n-th malloc, open, read, write, flush, sync, close, rename, fork, dlopen of hbmsim fail
# (tests/torture/fail.c), for each n from 1 until a run does not reach its n-th call; once alone, once with all
# calls after it failing too. Beyond the first hundred, n grows by a hundredth of itself, unless
# DEEP=1. Each run must either do what it does untouched, or end with status 2
# or 3 and a message; and its output file must be as before or complete, with nothing beside it. A sweep
# that has a journal must then go on to the same answer; a server must answer on, or end by a message.
# TAP, one test a command of tests/torture/commands.
set -eu
cd "$(dirname "$0")/../.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}" "${FAIL:=$PWD/build/fast/fail.so}"
: "${DEEP:=0}" "${COMMANDS:=tests/torture/commands}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
# Whatever fails without its data would pass here.
"$HBMSIM" devices tpu-v5p >/dev/null || exit 1
mkdir "$work/to"
cp "$FAIL" "$work/fail.so" # LD_PRELOAD takes no folder with a blank
count=0
bad=0

complain() {
    echo "# n = $n, on = $on: $1 (status $status): $(head -n 1 "$work/err")"
    wrong=1
}

check_run() {
    if [ "$status" = "$normal" ] && [ "$normal" -lt 2 ]; then
        cmp -s "$work/out" "$work/normal.out" || complain 'other output, same status'
    elif [ "$status" != 2 ] && [ "$status" != 3 ]; then
        complain 'neither done nor status 2 or 3'
    elif [ ! -s "$work/err" ]; then
        complain 'no message'
    fi
    cd "$work/to"
    for file in * .[!.]*; do
        [ -e "$file" ] || continue
        if [ "$file" != x ]; then
            complain "left $file behind"
            rm -f "$file"
        elif ! cmp -s x ../before && ! cmp -s x ../normal.file; then
            complain 'a half-written file'
        fi
    done
    [ -e x ] || complain 'the old file is gone'
    cd - >/dev/null
}

# What a cell of the journal was is there, or is run again: the answer is that of a run without one.
check_journal() {
    if [ "$status" -gt 1 ] && [ ! -s "$work/err" ]; then
        complain 'no message'
    fi
    how=$on
    n=0
    on=0
    start
    n=$at
    on=$how
    [ "$status" = "$normal" ] && cmp -s "$work/out" "$work/normal.out" || complain 'it does not go on'
    rm -f "$work/to/x"
}

# A server goes on, or ends by a message.
check_server() {
    if [ "$status" != 0 ] && [ "$status" != 2 ] && [ "$status" != 3 ]; then
        complain 'the server ended by neither'
    elif [ "$status" != 0 ] && [ ! -s "$work/err" ]; then
        complain 'no message'
    fi
}

# Runs hbmsim with the words of $command; @ stands for the output file.
start() {
    status=0
    # shellcheck disable=SC2086
    set -- $(echo "$command" | sed "s|@|$work/to/x|")
    export FAIL_AT="$n" FAIL_ON="$on" FAIL_OWN="$own" FAIL_MARK="$work/mark"
    if [ "$kind" = server ]; then
        python3 tests/torture/serve.py "$work/fail.so" "$HBMSIM" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    else
        [ "$kind" = journal ] || cp "$work/before" "$work/to/x"
        LD_PRELOAD=$work/fail.so "$HBMSIM" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    fi
}

torture() {
    echo 'what stood here before' >"$work/before"
    rm -f "$work/to/x" # a journal would go on where the command before wrote
    wrong=0
    n=0
    on=0
    runs=0
    start
    normal=$status
    cp "$work/out" "$work/normal.out"
    if [ "$kind" = run ]; then cp "$work/to/x" "$work/normal.file"; else rm -f "$work/to/x"; fi
    if [ "$kind" != run ] && [ "$normal" != 0 ]; then complain 'it does not work untouched'; fi
    for on in 0 1; do
        n=1
        while :; do
            rm -f "$work/mark"
            start
            [ -e "$work/mark" ] || break
            at=$n
            "check_$kind"
            runs=$((runs + 1))
            n=$((n + 1))
            [ "$DEEP" = 1 ] || n=$((n + n / few))
        done
    done
    [ "$runs" -gt 4 ] || { echo "# only $runs calls were made to fail"; wrong=1; }
    count=$((count + 1))
    if [ "$wrong" = 0 ]; then
        echo "ok $count - $command: $runs failures"
    else
        bad=$((bad + 1))
        echo "not ok $count - $command"
    fi
}

while read -r command; do
    own=0
    kind=run
    few=100
    case $command in
    '' | '#'*) continue ;;
    'own '*)
        own=1
        command=${command#own }
        ;;
    'journal '*)
        kind=journal
        few=10
        command=${command#journal }
        ;;
    'server '*)
        own=1
        kind=server
        few=5
        command=${command#server }
        if ! python3 -c '' 2>/dev/null || "$HBMSIM" serve --port 0 --set model.preset 2>&1 | grep -q 'built without'; then
            count=$((count + 1))
            echo "ok $count - $command # SKIP no python3, or built without libmicrohttpd"
            continue
        fi
        ;;
    esac
    torture
done <"$COMMANDS"
echo "1..$count"
[ "$bad" = 0 ]
