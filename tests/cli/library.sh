# The installed library: what it shows, that programs compile against it (shared and static), that
# it gives the very bytes of the commands, says what is wrong as they do, and prints nothing; many
# threads; no memory; valgrind.
. tests/tap.sh

so=$(ls "$HB_BUILD"/lib/libhbmsim.so.? 2>/dev/null || true)
if [ "$(basename "$HB_BUILD")" != fast ] || [ -z "$so" ]; then
    skip 'the library' 'it is of the plain build'
    finish
fi
: "${CC:=cc}"
unset HBMSIM_DATA
to=$work/dest/opt/hb
run env HBMSIM="$HBMSIM" VERSION=0.0 sh cli/install.sh install "$work/dest" /opt/hb
ok 'installs' test "$status" = 0
for file in lib/libhbmsim.so lib/libhbmsim.so.1 lib/libhbmsim.so.0.0 lib/libhbmsim.a \
    lib/pkgconfig/hbmsim.pc include/hbmsim.h; do
    ok "installs $file" test -s "$to/$file"
done
ok 'the version is filled in' grep -q '^Version: 0.0$' "$to/lib/pkgconfig/hbmsim.pc"

# --- what can be seen from outside

seen() {
    nm --defined-only -g "$@" | awk '$2 ~ /^[A-Z]$/ {print $3}' | sort -u
}
sed -n 's/.*[ *]\(hbmsim_[a-z_]*\)(.*/\1/p' lib/hbmsim.h | grep -v '^hbmsim_\(text\|free\)$' | sort -u >"$work/api"
if command -v nm >/dev/null 2>&1; then
    seen -D "$to/lib/libhbmsim.so" >"$work/shared"
    seen "$to/lib/libhbmsim.a" >"$work/static"
    ok 'the shared library shows its functions alone' \
        sh -c '! grep -v "^hbmsim_" "$1" && [ "$(wc -l <"$1")" = 13 ]' sh "$work/shared"
    ok 'so does the static one' same "$work/shared" "$work/static"
    ok 'the header declares each' \
        sh -c 'while read -r name; do grep -q "$name(" lib/hbmsim.h || exit 1; done <"$1"' sh "$work/shared"
    nm -D --undefined-only "$to/lib/libhbmsim.so" | sed 's/.* //; s/@.*//' >"$work/wanted"
    ok 'it neither ends the process, nor prints, nor reads the environment' \
        sh -c '! grep -xE "exit|quick_exit|stdout|stderr|printf|puts|putchar|perror|getenv|secure_getenv|setlocale|signal|srand|rand|strtok|localtime|gmtime" "$1"' \
        sh "$work/wanted"
    ok 'who links it needs no web server' \
        sh -c '! nm --undefined-only "$1" | grep -q MHD_' sh "$to/lib/libhbmsim.a"
else
    skip 'what the library shows' 'no nm'
fi
if command -v readelf >/dev/null 2>&1; then
    ok 'nor does the shared one' \
        sh -c '! readelf -d "$1" | grep -q "NEEDED.*microhttpd"' sh "$to/lib/libhbmsim.so"
fi
if command -v objdump >/dev/null 2>&1; then
    objdump -t "$to/lib/libhbmsim.so" "$HB_BUILD/libhbmsim.a" |
        awk '/[ \t]\.(data|bss|tdata|tbss)[ \t]/ && $NF !~ /^(completed\.|__dso_handle|__TMC_END__|_edata|_end|__bss_start|\.(data|bss|tdata|tbss)$)/ {print $NF}' |
        sort -u >"$work/state"
    # A list of what a call owns and the call itself, a thread's own; a lock around a GLPK without
    # thread-local storage.
    printf '%s\n' list one_at_a_time running >"$work/known"
    ok 'nothing that changes is shared' same "$work/state" "$work/known"
    ok 'its name is that of its ABI' \
        sh -c 'objdump -p "$1" | grep -q "SONAME *libhbmsim.so.1$"' sh "$to/lib/libhbmsim.so"
else
    skip 'nothing that changes is shared' 'no objdump'
fi

# --- programs against it

if ! command -v pkg-config >/dev/null 2>&1 || ! command -v "$CC" >/dev/null 2>&1; then
    skip 'programs compile against the library' 'no compiler or no pkg-config'
    finish
fi
flags() {
    PKG_CONFIG_PATH="$to/lib/pkgconfig" pkg-config --define-variable=prefix="$to" \
        --define-variable=libdir="$to/lib" "$@" hbmsim
}
# build NAME SOURCE [LINKER FLAGS]
build() {
    name=$1
    source=$2
    shift 2
    # shellcheck disable=SC2046
    run "$CC" -std=c11 -D_XOPEN_SOURCE=700 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -O1 -g \
        $(flags --cflags) -o "$work/$name" "$source" "$@" -lpthread
    ok "$source compiles" test "$status" = 0
    show "$work/err"
}
# shellcheck disable=SC2046
set -- $(flags --libs) -Wl,-rpath,"$to/lib"
build fits examples/library/fits.c "$@"
build threads tests/library/threads.c "$@"
build faults tests/library/faults.c "$@"
build answer tests/library/answer.c "$@"
# shellcheck disable=SC2046
build still examples/library/fits.c -Wl,-Bstatic -L"$to/lib" -lhbmsim -Wl,-Bdynamic \
    $(flags --static --libs-only-l | sed 's/-lhbmsim//')
if command -v c++ >/dev/null 2>&1; then
    printf '#include <hbmsim.h>\nint main() { return hbmsim_version() == 0; }\n' >"$work/x.cc"
    # shellcheck disable=SC2046
    run c++ $(flags --cflags) -o "$work/x" "$work/x.cc" "$@"
    ok 'C++ takes the header' test "$status" = 0
else
    skip 'C++ takes the header' 'no c++'
fi

data=$to/share/hbmsim
model=examples/quickstart/model.yaml
for kind in fits still; do
    expect 0 "$work/$kind" "$model" "$data"
    out_has 'as it is: fits, 55.41 GiB'
    ok 'and as docs/manual.md has it' grep -qF "# $(cat "$work/out")" docs/manual.md
done
sed 's/seq: 8192/seq: 65536/' "$model" >"$work/long.yaml"
expect 0 "$work/fits" "$work/long.yaml" "$data"
out_has 'as it is: does not fit'
out_has 'planned: fits'
sed 's/seq: 8192/sequ: 8192/' "$model" >"$work/bad.yaml"
expect 2 "$work/fits" "$work/bad.yaml" "$data"
run hbmsim simulate "$work/bad.yaml"
cp "$work/err" "$work/said"
run "$work/fits" "$work/bad.yaml" "$data"
ok 'errors are those of the command' same "$work/err" "$work/said"
err_has "$work/bad.yaml:4:21: error: batch: unknown key 'sequ'"
expect 2 "$work/fits" "$model" "$work"
err_has "$model:3:17: error: model.preset: no model zoo in"
out_is ''

# --- the very bytes: $work/answer COMMAND DATA FILE [OPTION...]

# bytes COMMAND OPTION...
bytes() {
    command=$1
    shift
    run hbmsim "$command" --json "$@" "$model"
    sed 's/^  "seconds": .*//' "$work/out" >"$work/of_command"
    run "$work/answer" "$command" "$PWD" "$model" "$@"
    sed 's/^  "seconds": .*//' "$work/out" >"$work/of_library"
    ok "$command $*: the very bytes" \
        sh -c '[ -s "$1" ] && cmp "$1" "$2"' sh "$work/of_command" "$work/of_library"
}
bytes simulate
bytes simulate --full --orders --confidence=90 --set=batch.seq=4096
bytes sweep --x=batch.seq=2048..8192*2 --y=batch.global=16,32 --facet=remat.policy=full,none
bytes advise
bytes plan --set=plan.search.remat=true '--set=plan.search.mesh=[{fsdp: 8}]' --prices
run hbmsim import --json examples/import/config.json
cp "$work/out" "$work/of_command"
run "$work/answer" import "$PWD" examples/import/config.json
ok 'import: the very bytes' same "$work/out" "$work/of_command"
hbmsim simulate --json --full "$model" >"$work/full.json"
hbmsim plot "$work/full.json" -o "$work/picture.svg"
run "$work/answer" plot "$PWD" "$work/full.json"
ok 'plot: the very bytes' same "$work/out" "$work/picture.svg"

for option in --plot=x.svg -ox --timeline=x --jobs=2 --journal=x --verify --write-lp=x --json --help \
    --no-such --; do
    expect 2 "$work/answer" simulate "$PWD" "$model" "$option"
    err_has "'$option' is no option that the library takes"
done
expect 2 "$work/answer" simulate "$PWD" /dev/null
err_has '/dev/null: error: is empty'

# --- threads, faults

comma=$(locale -a 2>/dev/null | grep -m 1 '^de_DE' || echo de_DE.UTF-8)
"$work/threads" "$data" "$comma" 2 >"$work/out" 2>"$work/err" && status=0 || status=$?
ok 'eight threads at once' test "$status" = 0
grep '^not\|^#' "$work/out" || true
err_is ''
if [ -n "${HB_LONG:-}" ]; then step=3; else step=61; fi
"$work/faults" "$data" "$step" >"$work/out" 2>"$work/err" && status=0 || status=$?
ok 'every allocation may fail' test "$status" = 0
grep '^not\|^# .*alive' "$work/out" || true
err_is ''
ok 'and nothing else is printed' sh -c '! grep -vE "^(ok|not ok|#|1\.\.)" "$1"' sh "$work/out"
if command -v valgrind >/dev/null 2>&1; then
    expect 0 valgrind -q --error-exitcode=9 --leak-check=full "$work/fits" "$model" "$data"
else
    skip 'valgrind finds nothing' 'no valgrind'
fi
finish
