#!/bin/sh
# one.sh NAME: runs one of the tests of tests/all.sh, shows how its TAP came out, and leaves
# `passed failed skipped` in $HB_COUNTS. A program that ends early, or with a status that does
# not agree with its lines, counts as one failure more.
set -eu
name=$1
counts=$HB_COUNTS/$(echo "$name" | tr / _)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' INT TERM

case $name in
tests/unit/* | tests/prop/*) set -- "$HB_BUILD/$name" ;;
tests/fuzz/*) set -- "$HB_BUILD/$name" tests/fuzz/corpus/"${name#tests/fuzz/fuzz_}"/* ;;
tests/cli/*) set -- sh "$name.sh" ;;
tests/golden) set -- sh tests/golden/golden.sh ;;
tests/golden_*) set -- sh tests/golden/golden.sh check "${name#tests/golden_}" ;;
tests/readme) set -- sh tests/readme.sh check ;;
tests/lint) set -- sh tests/lint/lint.sh shape ;;
esac

# Seconds that one program may take; who ends it by its processor time gives it more.
limit=${HB_LIMIT_S:-300}
if command -v timeout >/dev/null 2>&1; then limited="timeout $limit"; else limited=; fi

count_lines() {
    grep -c -e "$1" "$log" || true
}

status=0
$limited "$@" >"$log" 2>&1 </dev/null || status=$?
all=$(count_lines '^ok ')
ok_skips=$(count_lines '^ok .*# SKIP')
cmocka_skips=$(count_lines '^not ok [0-9]* # SKIP')
skips=$((ok_skips + cmocka_skips))
good=$((all - ok_skips))
bad=$(($(count_lines '^not ok ') - cmocka_skips))
planned=$(sed -n 's/^1\.\.\([0-9]*\).*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
early=0
[ "$planned" = $((all + bad + cmocka_skips)) ] || early=1
[ "$status" = 0 ] || [ "$bad" != 0 ] || early=1
echo "$good $((bad + early)) $skips" >"$counts"
# One write each, since others print beside it.
if [ $((bad + early)) = 0 ]; then
    echo "  $name: $good passed"
else
    shown=$(
        echo "  $name: $good passed, $bad failed (status $status)"
        [ "$early" = 0 ] ||
            echo "    it ended early: $((all + bad + cmocka_skips)) of $planned tests, status $status"
        grep -v '^ok ' "$log" | tail -n 60 | sed 's/^/    /'
    )
    echo "$shown"
fi
