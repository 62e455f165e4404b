#!/bin/sh
# How often sim/ir and sim/graph ask for a step's family (its mesh, its optimizer, its form ...)
# instead of reading the answer from the program, and how long they are; comments and the lowering
# for torch apart. `family.sh` prints both; `family.sh check` says where a figure exceeds its
# ceiling in tests/lint/ceilings. A ceiling is lowered with what is deleted, never raised.
set -eu
cd "$(dirname "$0")/../.."
export LC_ALL=C

list() {
    find sim/ir sim/graph -name "$1" ! -name 'eager*' 2>/dev/null | sort
}

# The program text without comments, of headers the bodies of inline functions. No string in it holds
# a comment's signs.
code() {
    {
        list '*.c' | xargs cat
        list '*.h' | xargs sed -n '/^{/,/^}/p'
    } | awk '
        { text = text $0 "\n" }
        END {
            while ((at = index(text, "/*")) > 0) {
                printf "%s", substr(text, 1, at - 1)
                text = substr(text, at)
                text = substr(text, index(text, "*/") + 2)
            }
            printf "%s", text
        }'
}

stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
trap 'exit 1' INT TERM
code >"$stripped"
tests=0
for asked in 'habits->' 'chip->' 'hb_ways\(|hb_fsdp_ways\(' '->maxtext' 'tied' 'batch\.accumulate' \
    'loss\.chunks' '->clip|\.clip' 'onehot' 'HB_OPT_' 'HB_FORM_' 'HB_WEIGHT_|HB_GATHER_' \
    'moe\.experts'; do
    tests=$((tests + $(grep -oE -e "$asked" "$stripped" | wc -l)))
done
lines=$(list '*.[ch]' | xargs cat | wc -l)
if [ "${1:-}" != check ]; then
    echo "tests $tests"
    echo "lines $lines"
    exit 0
fi
while read -r what most; do
    case $what in
    tests) got=$tests ;;
    lines) got=$lines ;;
    *) continue ;;
    esac
    [ "$got" -le "$most" ] || echo "sim/ir and sim/graph: $got $what (ceiling $most)"
done <tests/lint/ceilings
