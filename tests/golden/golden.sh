#!/bin/sh
# What the program says, line by line, against what it said when someone last looked: each line of
# tests/golden/commands is a name and a command line of hbmsim; tests/golden/NAME.out has its
# standard output, of plans (plan-*) their certificate's figures, of steps, searches and orders what their
# script makes of their list. `golden.sh update` writes the files anew, and those of tests/unit/test_told_*.c; the
# diff is then read in review, for it is the history of what hbmsim believes. `golden.sh check START`: only names that begin so. TAP.
set -euf
cd "$(dirname "$0")/../.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}"
mode=${1:-check}
only=${2:-}
work=$(mktemp -d)
export HBMSIM work
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
count=0
bad=0

complain() {
    bad=$((bad + 1))
    echo "not ok $count - $name: $command"
    echo "# $1"
    [ -z "${HB_FIRST:-}" ] || exit 1
}

check() {
    file=tests/golden/$name.out
    status=0
    filter=cat
    case $name in
    plan-*)
        command="$command -o /dev/null --certificate /dev/stdout"
        filter="sh tests/golden/certificate.sh"
        ;;
    esac
    # shellcheck disable=SC2086
    case $name in
    steps | searches | orders) sh "tests/golden/$name.sh" >"$work/raw" 2>"$work/err" </dev/null || status=$? ;;
    *) "$HBMSIM" $command >"$work/raw" 2>"$work/err" </dev/null || status=$? ;;
    esac
    $filter <"$work/raw" >"$work/out"
    if [ "$status" -gt 1 ]; then
        complain "status $status: $(head -n 1 "$work/err")"
    elif [ "$mode" = update ]; then
        cmp -s "$work/out" "$file" || echo "# $file is new or changed"
        cp "$work/out" "$file"
        echo "ok $count - $name: written"
    elif cmp -s "$work/out" "$file"; then
        echo "ok $count - $name: $command"
    else
        complain "differs from $file; if that is right: make golden-update"
        diff "$file" "$work/out" | head -n 40 | sed 's/^/# /'
    fi
}

while read -r name command; do
    case $name in
    '' | '#'*) continue ;;
    "$only"*) ;;
    *) continue ;;
    esac
    count=$((count + 1))
    check
done <tests/golden/commands
set +f
[ -n "$only" ] || for file in tests/golden/*.out; do
    name=$(basename "$file" .out)
    grep -q "^$name " tests/golden/commands || { count=$((count + 1)) && command=none &&
        complain "no line of tests/golden/commands makes $file"; }
done
[ "$mode" = check ] || for told in "${HBMSIM%/*}"/tests/unit/test_told_*s; do
    HB_UPDATE=1 "$told" >"$work/told" || cat "$work/told"
done
echo "1..$count"
[ "$bad" = 0 ]
