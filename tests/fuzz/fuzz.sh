#!/bin/sh
# fuzz.sh: builds tests/fuzz/fuzz_$T.c with clang's libFuzzer and both sanitizers, and runs it for
# $S seconds. Finds grow in $BUILD/fuzz/corpus/$T; a crash is kept in $BUILD/fuzz and is to be
# copied to tests/fuzz/corpus/$T together with its repair.
set -eu
cd "$(dirname "$0")/../.."
: "${T:=}" "${S:=60}" "${BUILD:=build}"
target=tests/fuzz/fuzz_$T.c
if [ -z "$T" ] || [ ! -e "$target" ]; then
    echo "make fuzz T=NAME S=SECONDS, where NAME is one of:" >&2
    for file in tests/fuzz/fuzz_*.c; do
        basename "$file" .c | sed 's/fuzz_/  /' >&2
    done
    exit 2
fi
command -v clang >/dev/null 2>&1 || { echo "make fuzz needs clang" >&2 && exit 3; }
out=$BUILD/fuzz
kind=1
built=$out
entropic=
# Weighing inputs by what is rare in them is a third of the time where each reaches thousands of edges,
# more where the corpus is of long texts.
case $T in
device | log | simulate) kind=drawn built=${out}drawn entropic=-entropic=0 ;;
hlo) entropic=-entropic=0 ;;
esac
# What reads only bytes is linked with an archive of those folders that it needs, PARTS, which has a name of its
# own, NEEDS: the whole takes minutes under the sanitizers.
set --
case $T in
json | text | yaml) set -- NEEDS=base- PARTS=base ;;
log) set -- NEEDS=log- PARTS='base sim/hlo' ;;
esac
mkdir -p "$out/corpus/$T"
${MAKE:-make} --no-print-directory FUZZ=$kind "$@" "$built/libfuzzer/$T"
dictionary=
[ ! -e "tests/fuzz/$T.dict" ] || dictionary=-dict=tests/fuzz/$T.dict
# shellcheck disable=SC2086
exec "$built/libfuzzer/$T" -max_total_time="$S" -artifact_prefix="$out/$T-" $dictionary $entropic \
    -print_final_stats=1 -timeout=10 "$out/corpus/$T" "tests/fuzz/corpus/$T"
