#!/bin/sh
# Runs what has been built in $HB_BUILD: unit and property programs, command-line scripts, the
# shape of the sources. Each prints TAP; each of its lines counts. A program that ends early, or
# with a status that does not agree with its lines, counts as one failure more.
set -eu
cd "$(dirname "$0")/.."
: "${HB_BUILD:=build/fast}"
HBMSIM=$PWD/$HB_BUILD/hbmsim
export HB_BUILD HBMSIM
export CMOCKA_MESSAGE_OUTPUT=TAP
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
unset HBMSIM_DATA HBM_TRACE NO_COLOR
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 1' INT TERM
passed=0
failed=0
skipped=0

# Seconds that one program may take.
limit=300
if command -v timeout >/dev/null 2>&1; then limited="timeout $limit"; else limited=; fi

count_lines() {
    grep -c -e "$1" "$log" || true
}

run_tap() {
    name=$1
    shift
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
    if [ $((bad + early)) = 0 ]; then
        echo "  $name: $good passed"
    else
        echo "  $name: $good passed, $bad failed (status $status)"
        [ "$early" = 0 ] || echo "    it ended early: $((all + bad + cmocka_skips)) of $planned tests, status $status"
        grep -v '^ok ' "$log" | tail -n 60 | sed 's/^/    /'
    fi
    passed=$((passed + good))
    failed=$((failed + bad + early))
    skipped=$((skipped + skips))
}

for source in tests/unit/test_*.c tests/prop/test_*.c; do
    [ -e "$source" ] || continue
    run_tap "${source%.c}" "$HB_BUILD/${source%.c}"
done
for source in tests/fuzz/fuzz_*.c; do
    target=${source%.c}
    run_tap "$target" "$HB_BUILD/$target" tests/fuzz/corpus/"${target#tests/fuzz/fuzz_}"/*
done
for script in tests/cli/*.sh; do
    run_tap "${script%.sh}" sh "$script"
done
run_tap tests/golden sh tests/golden/golden.sh
run_tap tests/readme sh tests/readme.sh check
run_tap tests/lint sh tests/lint/lint.sh shape

[ "$skipped" = 0 ] || echo "  ($skipped skipped: what they need is not on this machine)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
