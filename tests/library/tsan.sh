#!/bin/sh
# tsan.sh: what `make tsan` runs: eight threads in the library, and a sweep by processes, both under
# ThreadSanitizer, which ends with a report where two threads touch one thing.
set -eu
cd "$(dirname "$0")/../.."
: "${BUILD:=build/tsan}" "${CC:=cc}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$PWD/$BUILD/lib/libhbmsim.so.1" "$work/libhbmsim.so"
$CC -std=c11 -D_XOPEN_SOURCE=700 -g -fsanitize=thread -Ilib -o "$work/threads" tests/library/threads.c \
    -L"$work" -lhbmsim -lpthread -Wl,-rpath,"$PWD/$BUILD/lib"
TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" "$work/threads" "$PWD" de_DE.UTF-8 "${ROUNDS:-1}"
model=examples/quickstart/model.yaml
"$BUILD/hbmsim" sweep --json --jobs 4 "$model" --x batch.seq=2048..8192*2 --y batch.global=16,32 >"$work/four"
"$BUILD/hbmsim" sweep --json "$model" --x batch.seq=2048..8192*2 --y batch.global=16,32 >"$work/one"
cmp "$work/one" "$work/four"
echo "ThreadSanitizer: nothing found"
