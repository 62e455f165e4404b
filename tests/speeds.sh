#!/bin/sh
# The table of speeds: step times against published ones, by device and by program, as Markdown.
# Without arguments the records kept in tests/golden.
set -eu
cd "$(dirname "$0")/.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}"
[ $# -gt 0 ] || set -- tests/golden/speed.jsonl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat "$@" >"$work/all.jsonl"
grep -F -e '"compiler":"torch"' -e '"compiler": "torch"' "$work/all.jsonl" >"$work/torch.jsonl" || true
grep -vF -e '"compiler":"torch"' -e '"compiler": "torch"' "$work/all.jsonl" >"$work/xla.jsonl" || true

echo '| speeds | records | priced | median % | p95 % | worst % | bias % | rank correlation |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|'
"$HBMSIM" validate "$work/all.jsonl" --worst 0 | awk '
    /^speed on / { on = 1; next }
    /^rank: / { on = 0 }
    on && NF == 8 { printf "| %s | %d | %d | %.1f | %.1f | %.1f | %+.1f | %s |\n",
                    $1, $2 + $3, $2, $4, $5, $6, $7, $8 }'
for part in xla torch all; do
    [ -s "$work/$part.jsonl" ] || continue
    "$HBMSIM" validate "$work/$part.jsonl" --worst 0 | awk -v name="$part" '
        /^all / { printf "| **%s** | %d | %d | %.1f | %.1f | %.1f | %+.1f | |\n",
                  name, $2 + $3, $2, $4, $6, $7, $8 }'
done
