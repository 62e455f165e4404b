#!/bin/sh
# builds.sh: `make builds`. All sources under the warnings of the house, as errors, by each compiler
# that is here: gcc, clang, with the C library musl, where long has 32 bits, where the highest byte
# comes first. Only compiled, since those systems' GLPK, libyaml and cairo are not here; their headers
# are the same. Prints TAP.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
warnings=$(sed -n '/^WARN  *:=/,/[^\\]$/p' Makefile | tr -d '\\\n' | sed 's/^WARN *:=//')
flags="-std=c11 -fsyntax-only -Werror $warnings -I. -D_XOPEN_SOURCE=700 -DHB_VERSION=\"\" -DHB_SOURCE_DIR=\"\" -DHB_DATADIR=\"\""
find base hw models sim solver plots cli lib -name '*.c' ! -name '*.inc.c' | sort >"$work/sources"
count=0
failed=0

# compile NAME COMPILER [FLAG...]
compile() {
    count=$((count + 1))
    name=$1
    shift
    if ! command -v "$1" >/dev/null 2>&1 || ! echo '#include <stdint.h>' | "$@" -fsyntax-only -x c - 2>/dev/null; then
        echo "ok $count - $name # SKIP $* is not here"
        return
    fi
    # shellcheck disable=SC2046,SC2086
    if xargs -n 40 "$@" $flags $others <"$work/sources" >"$work/log" 2>&1; then
        echo "ok $count - $name"
    else
        failed=1
        echo "not ok $count - $name"
        grep -E 'error|warning' "$work/log" | head -n 20 | sed 's/^/# /'
    fi
}

here=$(pkg-config --cflags yaml-0.1 cairo)
others=$here
compile 'gcc' gcc
compile 'clang' clang
# The other libraries' headers come after the system's own.
mkdir "$work/include"
for header in glpk.h yaml.h zlib.h zconf.h cairo; do
    for folder in /usr/include "/usr/include/$(gcc -print-multiarch 2>/dev/null)"; do
        [ ! -e "$folder/$header" ] || ln -sf "$folder/$header" "$work/include/$header"
    done
done
others="-idirafter $work/include -idirafter $work/include/cairo"
compile 'the C library musl' musl-gcc
compile 'a long of 32 bits (i386)' gcc -m32 -idirafter "/usr/include/$(gcc -print-multiarch 2>/dev/null)"
compile 'the highest byte first (s390x)' s390x-linux-gnu-gcc
echo "1..$count"
exit "$failed"
