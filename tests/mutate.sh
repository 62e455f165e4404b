#!/bin/sh
# Which predicates of sim/ir a measured record needs. In a copy of the sources each function of type
# bool gets a switch that forces its answer; all are then forced, one at a time, to no and to yes,
# over the records kept in tests. One that moves no prediction in one of the two ways says nothing
# that these records ask for: it is deleted, or brings the record that it was written for.
#   predicate   file   records moved by "no", by "yes" (crash: the program needs it)
# Fails where more than the ceiling `idle` of tests/lint/ceilings move nothing. MUTANTS="A B": only
# these functions.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
: "${BUILD:=build}"
: "${MAKE:=make}"
tree=$PWD/$BUILD/mutate
limit=
if command -v timeout >/dev/null 2>&1; then limit='timeout 20'; fi
mkdir -p "$tree"
for folder in base hw models sim solver plots cli lib python; do
    rm -rf "${tree:?}/$folder"
    cp -R "$folder" "$tree/$folder"
done
cp Makefile "$tree"
: >"$tree/list"
for file in sim/ir/*.c; do
    case $file in
    */eager*) continue ;;
    esac
    awk -v list="$tree/list" -v count="$(wc -l <"$tree/list")" '
        FNR == 1 { print "extern int hb_mutant, hb_mutant_value;" }
        /^(static )?bool [a-z_0-9]+\(/ && !/;[ ]*$/ {
            match($0, /[a-z_0-9]+\(/)
            name = substr($0, RSTART, RLENGTH - 1)
        }
        { print }
        /^\{/ && name != "" {
            print ++count, name, FILENAME >>list
            print "    if (hb_mutant == " count ")\n        return hb_mutant_value;"
        }
        /^[{}]/ { name = "" }' "$file" >"$tree/$file"
done
cat >>"$tree/sim/ir/why.c" <<'C'
#include <stdlib.h>
int hb_mutant, hb_mutant_value;
__attribute__((constructor)) static void read_mutant(void)
{
    const char *which = getenv("HB_MUTANT"), *value = getenv("HB_MUTANT_VALUE");
    hb_mutant = which ? atoi(which) : 0;
    hb_mutant_value = value ? atoi(value) : 0;
}
C
"$MAKE" --no-print-directory -C "$tree" all >"$tree/made" 2>&1 || { tail "$tree/made"; exit 1; }

predict() {
    # shellcheck disable=SC2086
    HB_MUTANT=$1 HB_MUTANT_VALUE=$2 $limit "$tree/build/fast/hbmsim" validate --json --worst 0 \
        tests/golden/fresh-*.jsonl tests/golden/lab-*.jsonl tests/golden/maxtext.jsonl \
        tests/calibration/*.jsonl 2>/dev/null |
        awk '/^      "id":/ { id = $2 } /^      "predicted_bytes":/ { print id, $2 }'
}
# moved VALUE: how many predictions differ from those of the program as it is.
moved() {
    predict "$number" "$1" >"$tree/after"
    if [ "$(wc -l <"$tree/after")" = "$(wc -l <"$tree/before")" ]; then
        paste -d ' ' "$tree/before" "$tree/after" | awk '$2 != $4 { n++ } END { print n + 0 }'
    else
        echo crash
    fi
}
predict 0 0 >"$tree/before"
[ -s "$tree/before" ] || { echo 'no predictions'; exit 1; }
: >"$tree/found"
while read -r number name file; do
    case " ${MUTANTS:-$name} " in
    *" $name "*) printf '%-34s %-26s %6s %6s\n' "$name" "$file" "$(moved 0)" "$(moved 1)" ;;
    esac
done <"$tree/list" | tee "$tree/found"
awk -v most="$(awk '$1 == "idle" { print $2 }' tests/lint/ceilings)" '
    { n++; idle += $3 == "0" || $4 == "0" }
    END {
        printf "%d predicates, %d idle (ceiling %d)\n", n, idle, most
        exit idle > most
    }' "$tree/found"
