#!/bin/sh
# install.sh install|uninstall DESTDIR PREFIX: what `make install` and `make uninstall` do. Writes
# nothing outside DESTDIR/PREFIX; uninstalling removes what installing put there, no more.
set -eu
umask 022
what=$1
to=$2$3
prefix=$3
: "${HBMSIM:=build/fast/hbmsim}" "${LIBDIR:=$prefix/lib}"
library=$(dirname "$HBMSIM")/lib
abi=$(sed -n 's/^ABI *:= *//p' lib/rules.mk)
lib=$2$LIBDIR
data=$to/share/hbmsim
bash=$to/share/bash-completion/completions
zsh=$to/share/zsh/site-functions
man=$to/share/man/man1

case $prefix in
/*) ;;
*) echo "hbmsim: PREFIX must be an absolute path, not '$prefix'" >&2 && exit 2 ;;
esac

put() {
    mode=$1
    from=$2
    target=$3
    mkdir -p "$(dirname "$target")"
    cp "$from" "$target.part"
    chmod "$mode" "$target.part"
    mv "$target.part" "$target"
}

put_all() {
    for file in "$1"/*."$2"; do
        [ ! -e "$file" ] || put 644 "$file" "$data/$file"
    done
}

# Of a build that has it: not that for MPI, nor with sanitizers.
install_library() {
    put 755 "$library/libhbmsim.so.$abi" "$lib/libhbmsim.so.$VERSION"
    ln -sf "libhbmsim.so.$VERSION" "$lib/libhbmsim.so.$abi"
    ln -sf "libhbmsim.so.$abi" "$lib/libhbmsim.so"
    put 644 "$library/libhbmsim.a" "$lib/libhbmsim.a"
    put 644 lib/hbmsim.h "$to/include/hbmsim.h"
    sed "s|@PREFIX@|$prefix|; s|@LIBDIR@|$LIBDIR|; s|@VERSION@|$VERSION|" lib/hbmsim.pc.in >"$page"
    put 644 "$page" "$lib/pkgconfig/hbmsim.pc"
}

install_all() {
    page=$(mktemp)
    trap 'rm -f "$page"' EXIT
    put_all models/zoo yaml
    put_all hw/db yaml
    put_all examples/verify py
    put_all examples/record py
    put 644 COPYING "$to/share/doc/hbmsim/COPYING"
    "$HBMSIM" help --completion bash >"$page"
    put 644 "$page" "$bash/hbmsim"
    "$HBMSIM" help --completion zsh >"$page"
    put 644 "$page" "$zsh/_hbmsim"
    commands=$("$HBMSIM" help --man)
    while IFS= read -r line; do
        case $line in
        '.\" COMMANDS') printf '%s\n' "$commands" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <cli/hbmsim.1 | sed "s|@VERSION@|$VERSION|; s|@DATADIR@|$prefix/share/hbmsim|" >"$page"
    put 644 "$page" "$man/hbmsim.1"
    put 755 "$HBMSIM" "$to/bin/hbmsim"
    [ ! -e "$library/libhbmsim.so.$abi" ] || install_library
}

uninstall_all() {
    rm -f "$to/bin/hbmsim" "$bash/hbmsim" "$zsh/_hbmsim" "$man/hbmsim.1" \
        "$to/share/doc/hbmsim/COPYING" "$to/include/hbmsim.h" "$lib/pkgconfig/hbmsim.pc" \
        "$lib/libhbmsim.a" "$lib/libhbmsim.so" "$lib/libhbmsim.so".*
    for file in models/zoo/*.yaml hw/db/*.yaml examples/verify/*.py examples/record/*.py; do
        rm -f "$data/$file"
    done
    for folder in "$data/models/zoo" "$data/models" "$data/hw/db" "$data/hw" \
        "$data/examples/verify" "$data/examples/record" "$data/examples" "$data" "$to/share/doc/hbmsim"; do
        rmdir "$folder" 2>/dev/null || true
    done
}

case $what in
install) install_all ;;
uninstall) uninstall_all ;;
esac
