#!/bin/sh
# memcheck.sh [PATTERN]: `make memcheck`. The unit tests in $HB_BUILD and the commands of
# tests/torture/commands, each once under valgrind: no invalid access, no use of what was never set,
# nothing definitely lost. Of what a test draws a fifth (HB_CASES), as all is some fifty times as
# slow here. PATTERN: those alone whose name it matches. TAP; minutes, no part of `make test`.
set -eu
cd "$(dirname "$0")/.."
: "${HB_BUILD:=build/fast}" "${HBMSIM:=$PWD/build/fast/hbmsim}"
export HB_CASES="${HB_CASES:-20%}"
# Whatever fails without its data would pass here.
"$HBMSIM" devices tpu-v5p >/dev/null || exit 1
command -v valgrind >/dev/null 2>&1 || { echo 'memcheck needs valgrind' >&2 && exit 3; }
pattern=${1:-*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
count=0
bad=0

# judge NAME COMMAND...: what valgrind says goes to a file of its own, a line a process.
judge() {
    name=$1
    shift
    # shellcheck disable=SC2254
    case $name in
    $pattern) ;;
    *) return 0 ;;
    esac
    count=$((count + 1))
    rm -f "$work"/log.*
    status=0
    # Ten minutes of processor time: a busy machine is no fault of a test.
    (ulimit -t 600 && exec timeout 7200 valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --suppressions=tests/memcheck.supp \
        --child-silent-after-fork=yes --log-file="$work/log.%p" \
        "$@") >"$work/out" 2>&1 </dev/null || status=$?
    if [ "$status" -lt 124 ] && ! cat "$work"/log.* | grep -q .; then
        echo "ok $count - $name"
        return 0
    fi
    bad=1
    echo "not ok $count - $name (status $status)"
    cat "$work"/log.* | sed 's/^/# /' | head -n 60
}

for source in tests/unit/test_*.c; do
    name=${source#tests/}
    judge "${name%.c}" "$HB_BUILD/${source%.c}"
done
while read -r command; do
    case $command in
    '' | '#'*) continue ;;
    'server '*) continue ;; # tests/cli/serve.sh ends one
    'own '* | 'journal '*) command=${command#* } ;;
    esac
    # shellcheck disable=SC2046
    set -- $(echo "$command" | sed "s|@|$work/x|")
    judge "$command" "$HBMSIM" "$@"
    rm -f "$work/x"
done <tests/torture/commands
echo "1..$count"
exit "$bad"
