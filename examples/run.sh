#!/bin/sh
# run.sh NAME: the commands of examples/NAME/README.md, each with what it prints.
set -eu
cd "$(dirname "$0")/.."
: "${HBMSIM:=$PWD/build/fast/hbmsim}"
page=examples/${1:-levers}/README.md
[ -e "$page" ] || { echo "run.sh: no story '$1'; examples/README.md lists them" >&2; exit 2; }
hbmsim() { "$HBMSIM" "$@"; }
sed -n 's/^<!-- run: \(.*\) -->$/\1/p' "$page" | while IFS= read -r command; do
    printf '\n$ %s\n' "$command"
    (eval "$command") </dev/null || true
done
