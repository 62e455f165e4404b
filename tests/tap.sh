# Sourced by tests/cli/*.sh, which run in the root of the source tree and print TAP.
#   run COMMAND...                   keeps its exit status in $status, its output in $work/out, err
#   ok NAME COMMAND...               passes where COMMAND succeeds
#   expect STATUS COMMAND...         runs, passes where the exit status is STATUS
#   out_is TEXT, err_is TEXT         the whole output (less a last newline) of the last run
#   out_has TEXT, err_has TEXT       a part of it, one line
#   same FILE FILE                   two files are equal
#   skip NAME REASON                 counts neither way
#   finish                           the last line of each script
# With HB_FIRST=1 the first failure ends the script.
# $HBMSIM is the program; `hbmsim` runs it. $work is a folder of the script's own.

: "${HB_BUILD:=build/fast}" "${HBMSIM:=$PWD/$HB_BUILD/hbmsim}"
export HB_BUILD HBMSIM
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
tap_count=0
tap_failed=0

hbmsim() {
    "$HBMSIM" "$@"
}

run() {
    status=0
    last="$*"
    "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
}

tap() {
    tap_count=$((tap_count + 1))
    echo "$1 $tap_count - $2"
    [ "$1" = ok ] && return
    tap_failed=$((tap_failed + 1))
    [ -z "${HB_FIRST:-}" ] || exit 1
}

ok() {
    tap_name=$1
    shift
    if "$@"; then tap ok "$tap_name"; else tap 'not ok' "$tap_name"; fi
}

show() {
    sed 's/^/#   /' "$1" | head -n 20
}

expect() {
    tap_want=$1
    shift
    run "$@"
    if [ "$status" = "$tap_want" ]; then
        tap ok "status $tap_want: $*"
    else
        tap 'not ok' "status $tap_want: $*"
        echo "# status was $status; it said:"
        show "$work/out"
        show "$work/err"
    fi
}

compare_text() {
    if [ "$(cat "$work/$1")" = "$2" ]; then
        tap ok "$1 of: $last"
    else
        tap 'not ok' "$1 of: $last"
        echo "# wanted:"
        echo "$2" | sed 's/^/#   /'
        echo "# found:"
        show "$work/$1"
    fi
}

find_text() {
    if grep -qF -e "$2" "$work/$1"; then
        tap ok "$1 of: $last: $2"
    else
        tap 'not ok' "$1 of: $last: $2"
        echo "# found:"
        show "$work/$1"
    fi
}

out_is() { compare_text out "$1"; }
err_is() { compare_text err "$1"; }
out_has() { find_text out "$1"; }
err_has() { find_text err "$1"; }

same() {
    if cmp -s "$1" "$2"; then
        tap ok "$1 equals $2"
    else
        tap 'not ok' "$1 equals $2"
        diff "$1" "$2" | head -n 20 | sed 's/^/#   /'
    fi
}

skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

finish() {
    echo "1..$tap_count"
    [ "$tap_failed" = 0 ]
    exit
}
