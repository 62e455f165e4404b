#!/bin/sh
# Runs what has been built in $HB_BUILD: unit and property programs, command-line scripts, the
# shape of the sources; as many at once as there are cores, or HB_JOBS. Each prints TAP and is
# counted by tests/one.sh. The last line is `N passed, N failed`.
set -eu
cd "$(dirname "$0")/.."
: "${HB_BUILD:=build/fast}"
HBMSIM=$PWD/$HB_BUILD/hbmsim
export HB_BUILD HBMSIM
export CMOCKA_MESSAGE_OUTPUT=TAP
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
export LSAN_OPTIONS="${LSAN_OPTIONS:-suppressions=$PWD/tests/lsan.supp:print_suppressions=0}"
unset HBMSIM_DATA HBM_TRACE NO_COLOR
HB_COUNTS=$(mktemp -d)
export HB_COUNTS
trap 'rm -rf "$HB_COUNTS"' EXIT
trap 'exit 1' INT TERM
jobs=${HB_JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}

# A line each: what is run, by name.
list_tests() {
    # The longest first, so that none of them ends alone.
    for name in prop/test_segment prop/test_plan prop/test_spaces cli/calibrate cli/verify cli/plan cli/hlo; do
        echo "tests/$name"
    done
    for source in tests/unit/test_*.c tests/prop/test_*.c tests/fuzz/fuzz_*.c; do
        [ ! -e "$source" ] || echo "${source%.c}"
    done
    for script in tests/cli/*.sh; do
        echo "${script%.sh}"
    done
    printf '%s\n' tests/golden tests/readme tests/lint
}

list_tests | awk '!seen[$0]++' | xargs -n 1 -P "$jobs" sh tests/one.sh ||
    echo "  a runner of tests ended early"
cat "$HB_COUNTS"/* | awk -v tests="$(list_tests | sort -u | wc -l)" '
    { passed += $1; failed += $2; skipped += $3 }
    END {
        failed += tests - NR
        if (skipped) printf "  (%d skipped: what they need is not on this machine)\n", skipped
        printf "%d passed, %d failed\n", passed, failed
        exit failed != 0
    }'
