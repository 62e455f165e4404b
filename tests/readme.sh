#!/bin/sh
# What README.md shows is what the program says. A line `<!-- run: COMMAND -->` is followed by a
# fenced block with the output of that command line (`hbmsim` is the built program), a line
# `<!-- insert: COMMAND -->` by the bare output, up to `<!-- end -->`.
# `readme.sh check` (TAP) compares, `readme.sh update` writes them anew.
set -eu
cd "$(dirname "$0")/.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}"
export HBMSIM
mode=${1:-check}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
hbmsim() { "$HBMSIM" "$@"; }

output_of() {
    (eval "$1") 2>&1 </dev/null || true
}

# README.md with its outputs filled in. last: the line at which the old output ends.
fill() {
    last=
    while IFS= read -r line; do
        if [ -n "$last" ]; then
            [ "$line" = "$last" ] || continue
            last=
        fi
        printf '%s\n' "$line"
        command=${line#*: }
        command=${command% -->}
        case $line in
        '<!-- run: '*' -->')
            read -r opening
            printf '%s\n' "$opening"
            output_of "$command"
            last='```'
            ;;
        '<!-- insert: '*' -->')
            output_of "$command"
            last='<!-- end -->'
            ;;
        esac
    done <README.md
}

fill >"$work/README.md"
if [ "$mode" = update ]; then
    cat "$work/README.md" >README.md
elif cmp -s README.md "$work/README.md"; then
    echo "ok 1 - what README.md shows is what the program says"
else
    echo "not ok 1 - what README.md shows is what the program says (tests/readme.sh update)"
    diff README.md "$work/README.md" | head -n 40 | sed 's/^/# /'
fi
echo "1..1"
