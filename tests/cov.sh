#!/bin/sh
# cov.sh FOLDER: lines and branches reached, file by file, from gcov's counts in FOLDER after the
# tests have run. A file that no test reaches counts as 0.
set -eu
cd "$(dirname "$0")/.."
for object in "$1"/base "$1"/hw "$1"/models "$1"/sim "$1"/solver "$1"/plots "$1"/cli; do
    [ -d "$object" ] || continue
    find "$object" -name '*.gcno'
done | sort | while read -r notes; do
    file=${notes#"$1"/}
    gcov -b -n -o "${notes%/*}" "$notes" 2>/dev/null | awk -v want="${file%.gcno}.c" '
        /^File/ { this = $2; gsub("\047", "", this) }
        this != want { next }
        /^Lines executed/ { split($0, p, /[:% ]+/); lines = p[3]; of = p[5] }
        /^Taken at least/ { split($0, p, /[:% ]+/); taken = p[5]; branches = p[7] }
        END { if (of) print want, lines + 0, of, taken + 0, branches + 0 }'
done | awk '
    { printf "%-32s lines %6.1f %% of %4d   branches %6.1f %% of %4d\n", $1, $2, $3, $4, $5
      l += $2 * $3; ln += $3; b += $4 * $5; bn += $5 }
    END { printf "%-32s lines %6.1f %% of %4d   branches %6.1f %% of %4d\n", "all",
          ln ? l / ln : 0, ln, bn ? b / bn : 0, bn }'
