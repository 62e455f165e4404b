# simulate --orders: XLA's three estimates and its choice, against those of the compiler's own log.
. tests/tap.sh

model=examples/quickstart/model.yaml
expect 0 hbmsim simulate $model --orders
out_has 'Orders, by what is alive at once'
out_has 'XLA takes the least'
expect 0 hbmsim simulate $model --orders --json
out_has '"orders": {'
for key in least list depth post simulated argument_bytes; do
    out_has "\"$key\": "
done
expect 0 hbmsim simulate $model --explain 'gradient of the logits'
out_has 'last use  '
out_has "Of XLA's three orders "
expect 2 hbmsim simulate $model --orders --set compiler=torch
err_has '--orders: torch runs ops as they are issued'

# The aim is 90 and 95 %, which the first 21 steps reach: the graph was made with them at hand. Of the
# 13 called unseen the figures were first looked at afterwards.
# A line for each step: estimates within 3 % (of what is above the arguments, as far as the log's
# two digits tell), and whether the choice is right (or as good, by the log).
compare() {
    awk -v id="$1" -v list="$2" -v depth="$3" -v post="$4" -v kept="$5" '
        /"orders": \{/ { on = 1 }
        on { gsub(/[",:]/, ""); got[$1] = $2 }
        END {
            true["list"] = list; true["depth"] = depth; true["post"] = post
            for (kind in true) {
                wanted = true[kind] * 1024 ^ 3 - got["argument_bytes"]
                off = got[kind] - got["argument_bytes"] - wanted
                off = off < 0 ? -off : off
                near += off <= .03 * wanted + .005 * 1024 ^ 3
            }
            right = true[got["least"]] <= true[kept]
            print near + 0, right + 0, id
        }' "$work/out"
}
# Of a file of such lines into $work/compared.
compare_all() {
    grep -v '^#' "$1" >"$work/measured"
    while IFS='	' read -r id list depth post kept; do
        grep -hF -e "\"id\":\"$id\"," -e "\"id\": \"$id\"," tests/golden/*.jsonl | head -n 1 |
            sed 's/.*"config": *\(.*\), *"measured":.*/\1/' >"$work/step.json"
        run hbmsim simulate "$work/step.json" --orders --json
        compare "$id" "$list" "$depth" "$post" "$kept"
    done <"$work/measured" >"$work/compared"
}
tell() {
    awk '{ n++; near += $1; right += $2; if ($1 < 3 || !$2) print "#", $0 }
        END { printf "# %d of %d estimates within 3 %%, %d of %d choices\n", near, 3 * n, right, n }' \
        "$work/compared"
}
compare_all tests/golden/sequences.tsv
tell
ok 'nine of ten estimates within 3 %' \
    awk '/ fresh/ { n++; near += $1 } END { exit n == 0 || near < .9 * 3 * n }' "$work/compared"
ok '19 of 20 choices' \
    awk '/ fresh/ { n++; right += $2 } END { exit n == 0 || right < .95 * n }' "$work/compared"
ok 'of all: 85 % of the estimates, nine of ten choices' \
    awk '{ n++; near += $1; right += $2 } END { exit near < .85 * 3 * n || right < .9 * n }' \
    "$work/compared"

# TPU: behind, and told: 569 and 212 of 251; 531 and 182 before labels' logits, control edges of what
# trips hand on and both directions of the head's ring were as in the log.
compare_all tests/golden/sequences-tpu.tsv
tell
ok 'TPU: seven of ten estimates, eight of ten choices' \
    awk '{ n++; near += $1; right += $2 } END { exit near < .7 * 3 * n || right < .8 * n }' \
    "$work/compared"
finish
