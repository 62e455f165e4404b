#!/bin/sh
# Of each compiled step whose log tells what XLA's three orders need (sequences*.tsv): what the
# simulator says of them and which it takes, then the log. GiB; where they differ tells which
# conditions of sim/graph the next change has moved.
set -eu
cat tests/golden/sequences.tsv tests/golden/sequences-tpu.tsv | grep -v '^#' |
    while IFS='	' read -r id list depth post kept; do
        grep -hF -e "\"id\":\"$id\"," -e "\"id\": \"$id\"," tests/golden/*.jsonl | head -n 1 |
            sed 's/.*"config": *\(.*\), *"measured":.*/\1/' >"$work/step.json"
        "$HBMSIM" simulate "$work/step.json" --orders --json >"$work/step.out" || [ $? = 1 ]
        awk -v id="$id" -v log_of="$list $depth $post $kept" '
            /"orders": \{/ { on = 1 }
            on { gsub(/[",:]/, ""); got[$1] = $2 }
            END {
                printf "%s: %.3f %.3f %.3f %s; %s\n", id, got["list"] / 1024 ^ 3, got["depth"] / 1024 ^ 3,
                    got["post"] / 1024 ^ 3, got["least"], log_of
            }' "$work/step.out"
    done
