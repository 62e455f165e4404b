# make install and uninstall: what lands where below DESTDIR, that the installed program finds its
# data by itself, also when the installation was moved, and that the shells take the completions.
. tests/tap.sh

unset HBMSIM_DATA
to=$work/dest
install_with() {
    run env HBMSIM="$HBMSIM" VERSION=0.0 sh cli/install.sh "$1" "$to" /opt/hb
}

install_with install
ok 'installs' test "$status" = 0
for file in bin/hbmsim share/man/man1/hbmsim.1 share/bash-completion/completions/hbmsim \
    share/zsh/site-functions/_hbmsim share/doc/hbmsim/COPYING \
    share/hbmsim/models/zoo/llama3-8b.yaml share/hbmsim/examples/verify/verify.py; do
    ok "installs $file" test -s "$to/opt/hb/$file"
done
ok 'nothing outside PREFIX' test "$(ls "$to")" = opt
ok 'the page names its version and its data' \
    grep -q '/opt/hb/share/hbmsim' "$to/opt/hb/share/man/man1/hbmsim.1"
page=$to/opt/hb/share/man/man1/hbmsim.1
ok 'the page names no file that is not installed' sh -c '
    ! grep "tests/\|examples/" "$1" | grep -v "examples/verify\|examples/record"' sh "$page"
ok 'the page has the keys of the input' grep -q 'per_device  *instead of global' "$page"
ok 'the page has the keys of results' grep -q 'peak_bytes  *int  *most that is alive' "$page"
ok 'no place is left open in the page' \
    sh -c '! grep -q "@\|^\.\\\\\" COMMANDS" "$1"' sh "$to/opt/hb/share/man/man1/hbmsim.1"
hbmsim help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' >"$work/names"
ok 'there are commands' test -s "$work/names"
for name in $(cat "$work/names"); do
    ok "the page has $name" grep -q "^\.SS hbmsim $name$" "$to/opt/hb/share/man/man1/hbmsim.1"
done
if command -v man >/dev/null 2>&1; then
    run env LC_ALL=C man --warnings -l "$to/opt/hb/share/man/man1/hbmsim.1"
    ok 'man reads the page' test "$status" = 0
    err_is ''
else
    skip 'man reads the page' 'no man'
fi

# guard NAME OPTION TEXT: what readelf says of the installed program with that option.
guard() {
    ok "the installed program has $1" \
        sh -c 'readelf -W "$1" "$2" | grep -q "$3"' sh "$2" "$to/opt/hb/bin/hbmsim" "$3"
}
if [ "$(basename "$HB_BUILD")" = fast ] && command -v readelf >/dev/null 2>&1; then
    guard 'a stack protector' --syms __stack_chk_fail
    if readelf -W --syms "$to/opt/hb/bin/hbmsim" | grep -q GLIBC_; then
        guard 'checked calls (_FORTIFY_SOURCE)' --syms __snprintf_chk
    fi
    guard 'read-only relocations' --program-headers GNU_RELRO
    guard 'all of them bound at the start' --dynamic BIND_NOW
else
    skip 'guards of the installed program' 'no plain build, or no readelf'
fi

ls models/zoo | sed -n 's/\.yaml$//p' >"$work/zoo"
run sh -c 'cd / && "$1" models' sh "$to/opt/hb/bin/hbmsim"
ok 'the installed program runs' test "$status" = 0
ok 'and lists the zoo' grep -q llama3-8b "$work/out"
mkdir "$work/empty"
run env HBMSIM_DATA="$work/empty" "$to/opt/hb/bin/hbmsim" models
ok 'HBMSIM_DATA wins' test "$status" = 3
err_has "$work/empty"
run env HBMSIM_DATA="$work/empty" "$to/opt/hb/bin/hbmsim" simulate examples/quickstart/model.yaml
ok 'a preset without a zoo' test "$status" = 2
err_has 'no model zoo in'
mv "$to/opt/hb" "$work/moved"
rm "$work/moved/share/hbmsim/models/zoo/llama3-8b.yaml"
run "$work/moved/bin/hbmsim" models
ok 'a moved installation runs' test "$status" = 0
ok 'with its own data' sh -c '! grep -q "^llama3-8b " "$1"' sh "$work/out"
# macOS names the running program by a call: main.c built as there, with a stand-in for that call. The
# path that it gives may go through links and dots; where the room is too small it gives none.
mkdir -p "$work/mac/mach-o"
cat >"$work/mac/mach-o/dyld.h" <<'END'
#include <stdint.h>
int _NSGetExecutablePath(char *path, uint32_t *room);
END
cat >"$work/mac/dyld.c" <<'END'
#include <mach-o/dyld.h>
#include <stdlib.h>
#include <string.h>
int _NSGetExecutablePath(char *path, uint32_t *room)
{
    const char *said = getenv("STAND_IN_PATH");
    size_t len = said ? strlen(said) + 1 : *room + 1;
    if (len > *room)
        return *room = (uint32_t)len, -1;
    memcpy(path, said, len);
    return 0;
}
END
objects=$(find "$HB_BUILD" -maxdepth 1 -name libhbmsim.a 2>/dev/null)
if [ "$(basename "$HB_BUILD")" = fast ] && [ -n "$objects" ] && [ "$(uname)" = Linux ]; then
    libraries=$(pkg-config --libs yaml-0.1 cairo; pkg-config --libs libmicrohttpd 2>/dev/null || true)
    # shellcheck disable=SC2086
    run "${CC:-cc}" -std=c11 -D_XOPEN_SOURCE=700 -D__APPLE__ -I. -I"$work/mac" -DHB_VERSION='"0.0"' \
        -DHB_SOURCE_DIR='"/nowhere"' -DHB_DATADIR="\"$PWD\"" -o "$work/mac/hbmsim" cli/main.c "$work/mac/dyld.c" \
        "$objects" $libraries -lglpk -lz -lm -ldl
    ok 'main.c builds as on macOS' test "$status" = 0
    ln -s "$work/moved" "$work/linked"
    run env STAND_IN_PATH="$work/linked/share/../bin/hbmsim" "$work/mac/hbmsim" models
    ok 'and finds the data beside the path that macOS tells' test "$status" = 0
    ok 'of the moved installation' sh -c '! grep -q "^llama3-8b " "$1"' sh "$work/out"
    run env -u STAND_IN_PATH "$work/mac/hbmsim" models
    ok 'without a path those of the place compiled in' grep -q '^llama3-8b ' "$work/out"
    run env STAND_IN_PATH="$work/none/bin/hbmsim" "$work/mac/hbmsim" models
    ok 'so where the path is of nothing' grep -q '^llama3-8b ' "$work/out"
else
    skip 'main.c as on macOS' 'not the plain build on Linux'
fi
mv "$work/moved" "$to/opt/hb"
echo mine >"$to/opt/hb/share/hbmsim/models/zoo/mine.yaml"
install_with uninstall
ok 'uninstalls' test "$status" = 0
ok 'what others put there stays, nothing else' \
    test "$(cd "$to/opt/hb" && find . -type f)" = ./share/hbmsim/models/zoo/mine.yaml
run sh cli/install.sh install "$to" relative/prefix
ok 'a relative PREFIX is refused' test "$status" = 2

# complete WORDS...: what bash offers for the last word.
complete_bash() {
    bash -c '
        eval "$("$HBMSIM" help --completion bash)"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _hbmsim
        echo "${COMPREPLY[@]}"' bash "$@"
}
if command -v bash >/dev/null 2>&1; then
    ok 'bash completes commands' test "$(complete_bash hbmsim mod)" = models
    ok 'bash completes topics' test "$(complete_bash hbmsim help mod)" = models
    ok 'bash completes options' test "$(complete_bash hbmsim models --j)" = --json
    ok 'bash completes keys' test "$(complete_bash hbmsim sweep m.yaml --x batch.gl)" = batch.global=
    ok 'bash completes keys of --set' test "$(complete_bash hbmsim plan m.yaml --set remat.pol)" = remat.policy=
    ok 'bash completes their words' \
        test "$(complete_bash hbmsim plan m.yaml --set remat.policy = dots_)" = dots_no_batch
    ok 'bash completes devices' test "$(complete_bash hbmsim plan m.yaml --set hardware.device = nvidia-h2)" = nvidia-h200
    ok 'bash completes presets' test "$(complete_bash hbmsim init --preset llama3-8)" = llama3-8b
    ok 'bash completes names of devices' test "$(complete_bash hbmsim devices tpu-v5p)" = tpu-v5p
    ok 'bash leaves files to readline' test "$(complete_bash hbmsim models x)" = ''
else
    skip 'bash completes' 'no bash'
fi
hbmsim help --completion zsh >"$work/_hbmsim"
if command -v zsh >/dev/null 2>&1; then
    ok 'zsh parses its completion' zsh -n "$work/_hbmsim"
    run zsh -fc 'compdef() { defined=$1 }; . "$1"; [ "$defined" = _hbmsim ]' zsh "$work/_hbmsim"
    ok 'zsh takes its completion' test "$status" = 0
    err_is ''
else
    skip 'zsh parses its completion' 'no zsh'
fi
finish
