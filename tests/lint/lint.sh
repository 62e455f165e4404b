#!/bin/sh
# The rules of the house as tests, in TAP: `lint.sh shape` has those that need a compiler and awk
# alone; `lint.sh` adds clang-format and cppcheck, DEEP=1 clang-tidy, each where installed. A
# finding that has to stand is waived by a line of tests/lint/waivers; a waiver that no finding
# needs fails.
set -eu
cd "$(dirname "$0")/../.."
export LC_ALL=C
mode=${1:-full}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
count=0
failed=0
: "${CC:=cc}"
flags="-std=c11 -I. -D_XOPEN_SOURCE=700 -DHB_VERSION=\"\" -DHB_SOURCE_DIR=\"\" -DHB_DATADIR=\"/none\""

find base hw models sim solver plots cli lib tests -name '*.[ch]' 2>/dev/null | sort >"$work/sources"
grep '\.h$' "$work/sources" >"$work/headers"
grep '\.c$' "$work/sources" | grep -v '^tests/' >"$work/program"

# say NAME FILE: one test, passed where FILE, its findings, is empty.
say() {
    count=$((count + 1))
    if [ -s "$2" ]; then
        failed=$((failed + 1))
        echo "not ok $count - $1"
        head -n 50 "$2" | sed 's/^/# /'
    else
        echo "ok $count - $1"
    fi
}

# skip NAME TOOL
skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2 is not installed"
}

# Takes waived findings out of $work/all; what is left of the waivers is $work/unneeded. A finding
# is `file:line: check name: text`, a waiver `file check name reason`.
apply_waivers() {
    awk -v unneeded="$work/unneeded" '
        FILENAME != "-" && FNR == NR {
            if ($0 ~ /^#/ || NF == 0) next
            if (NF < 4) print $0 ": a waiver wants a reason" >unneeded
            line[$1 " " $2 " " $3] = $0
            next
        }
        {
            file = $1; sub(/:.*/, "", file); name = $3; sub(/:$/, "", name)
            key = file " " $2 " " name
            if (key in line) { used[key] = 1; next }
            print
        }
        END { for (k in line) if (!(k in used)) print "no finding needs: " line[k] >unneeded }
    ' tests/lint/waivers "$work/all" >"$work/findings"
    [ -e "$work/unneeded" ] || : >"$work/unneeded"
}

check_shape() {
    xargs awk -f tests/lint/shape.awk <"$work/sources" >"$work/all"
    apply_waivers
    for check in 'include include direction: base < hw < models < sim < solver < plots < cli < lib' \
        'owner a foreign library is included by one file' 'banned no banned function is called' 'global nothing that changes is shared' \
        'function functions of at most 60 lines' 'file files of at most 800 lines' \
        'parameters at most 6 parameters' 'line lines of at most 100 columns' \
        'nesting at most 3 levels of control'; do
        awk -v check="${check%% *}" '$2 == check' "$work/findings" >"$work/these"
        say "${check#* }" "$work/these"
    done
    say 'every waiver is needed and has a reason' "$work/unneeded"
}

check_family() {
    sh tests/lint/family.sh check >"$work/these" 2>&1 || true
    say 'tests on family below their ceiling' "$work/these"
}

check_headers() {
    while read -r header; do
        case $header in
        tests/*) continue ;;
        esac
        $CC $flags -fsyntax-only -x c "$header" 2>&1 || true
    done <"$work/headers" >"$work/these"
    say 'each header compiles alone' "$work/these"
}

check_scripts() {
    for script in examples/*.sh tests/*.sh tests/*/*.sh; do
        sh -n "$script" 2>&1 || true
    done >"$work/these"
    say 'shell scripts parse' "$work/these"
    awk 'END { if (NR >= 150) print FILENAME ": " NR " lines (ceiling 149)" }' Makefile >"$work/these"
    say 'the Makefile has less than 150 lines' "$work/these"
}

# What stands at the top of the house: anything else that is tracked there came by accident.
check_top() {
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files | sed 's,/.*,,' | sort -u | grep -vxE \
            '\..*|CHANGELOG\.md|COPYING|HACKING\.md|Makefile|README\.md|base|cli|debian|docs|examples|hw|lib|models|plots|python|sim|solver|tests' \
            >"$work/these" || true
        say 'nothing stands at the top by accident' "$work/these"
    else
        skip 'nothing stands at the top by accident' 'a git tree'
    fi
}

# Of the last commit: older ones are as they are.
check_subject() {
    { git log -1 --format=%s 2>/dev/null || true; } | awk 'length > 72 { print length ": " $0 }' >"$work/these"
    say 'the subject of the last commit has at most 72 characters' "$work/these"
}

# Paths that a page names, in backticks or as a link; NAME and * stand for any.
check_pages() {
    for page in README.md HACKING.md docs/*.md; do
        [ -e "$page" ] || continue
        grep -oE '(`|]\()(\.\./)?(base|hw|models|sim|solver|plots|cli|lib|tests|examples|docs)/[A-Za-z0-9_./*-]+' "$page" |
            sed 's/^`//; s/^](//; s/^\.\.\///; s/NAME/*/' | sort -u | while read -r path; do
            # shellcheck disable=SC2086
            set -- $path
            [ -e "$1" ] || echo "$page: $path is not there"
        done
    done >"$work/these"
    say 'paths that a page names are there' "$work/these"
    for page in README.md HACKING.md CHANGELOG.md docs/*.md; do
        [ ! -e "$page" ] || awk '/^ *```/ { code = !code } length > 100 && !code && seen[$0]++ {
            print FILENAME ":" FNR ": " $0 }' "$page"
    done >"$work/these"
    say 'no line of a page stands twice' "$work/these"
}

# Versions lay out code differently: only the one the sources were laid out by is asked.
check_format() {
    if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
        xargs clang-format --dry-run <"$work/sources" >"$work/these" 2>&1 || true
        say 'clang-format agrees' "$work/these"
    else
        skip 'clang-format agrees' 'clang-format 14'
    fi
}

check_cppcheck() {
    if command -v cppcheck >/dev/null 2>&1; then
        xargs cppcheck -q --std=c11 --enable=warning,portability,performance --inline-suppr -I. \
            '-D_Noreturn=__attribute__((noreturn))' -DNDEBUG --suppress=missingIncludeSystem \
            <"$work/program" >"$work/these" 2>&1 || true
        say 'cppcheck finds nothing' "$work/these"
    else
        skip 'cppcheck finds nothing' cppcheck
    fi
}

# Versions find differently: only the one the sources are clean under is asked.
check_tidy() {
    if clang-tidy --version 2>/dev/null | grep -q 'version 14\.'; then
        packages=$(pkg-config --cflags yaml-0.1 cairo)
        # shellcheck disable=SC2086
        xargs -P 2 -n 8 sh -c 'flags=$1; shift; clang-tidy --quiet "$@" -- $flags' tidy \
            "$flags $packages" <"$work/program" 2>&1 | grep -E '(error|warning):' >"$work/these" || true
        say 'clang-tidy finds nothing' "$work/these"
    else
        skip 'clang-tidy finds nothing' 'clang-tidy 14'
    fi
}

check_shape
check_family
check_headers
check_scripts
check_top
check_subject
check_pages
if [ "$mode" = full ]; then
    check_format
    check_cppcheck
    [ "${DEEP:-0}" = 0 ] || check_tidy
fi
echo "1..$count"
[ "$failed" = 0 ]
