#!/bin/sh
# What README.md and the other pages show is what the program says. A line `<!-- run: COMMAND -->` is followed by a
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

# The page on stdin with its outputs filled in. last: the line at which the old output ends.
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
    done
}

count=0
for page in README.md HACKING.md docs/*.md examples/*/README.md; do
    [ -e "$page" ] || continue
    count=$((count + 1))
    fill <"$page" >"$work/page.md"
    if [ "$mode" = update ]; then
        cat "$work/page.md" >"$page"
    elif cmp -s "$page" "$work/page.md"; then
        echo "ok $count - what $page shows is what the program says"
    else
        echo "not ok $count - what $page shows is what the program says (tests/readme.sh update)"
        diff "$page" "$work/page.md" | head -n 40 | sed 's/^/# /'
    fi
done
echo "1..$count"
