# Predictions against the measured records kept in tests/golden, within the bounds that hold
# (tests/golden/bounds.tsv), and the forms of `hbmsim validate`.
. tests/tap.sh

tab=$(printf '\t')
grep -v '^#' tests/golden/bounds.tsv >"$work/bounds"
while IFS=$tab read -r name median p95 <&3; do
    case $name in
    pairs:*) continue ;;
    esac
    expect 0 hbmsim validate "tests/golden/$name.jsonl" --max-median "$median" --max-p95 "$p95"
    case $name in
    lab-*) out_has 'argument 0, output 0, host 0 of' ;;
    esac
done 3<"$work/bounds"

# The last line: N pairs; above 500 MB: sign right in A of B, within 15 % in C; others: ...
pairs_hold() {
    awk -v sign="$1" -v close_to="$2" '
        /^[0-9]+ pairs; / {
            split($0, n, /[^0-9]+/)
            found = n[1] > 0 && n[4] > 0 && 100 * n[3] >= sign * n[4] &&
                100 * n[6] >= close_to * n[4]
        }
        END { exit !found }' "$work/out"
}
while IFS=$tab read -r name sign close_to <&3; do
    case $name in
    pairs:*) ;;
    *) continue ;;
    esac
    expect 0 hbmsim validate "tests/golden/${name#pairs:}.jsonl" --pairs --worst 0
    ok "$name: sign right in $sign %, close in $close_to %" pairs_hold "$sign" "$close_to"
done 3<"$work/bounds"

first=tests/golden/lab-tpu.jsonl
expect 1 hbmsim validate "$first" --max-median 0.001
expect 1 hbmsim validate "$first" --max-p95 0.001
expect 0 hbmsim validate "$first" --json --worst 0
for key in '"cases": [' '"fits_measured": true' '"fits_predicted": true' '"error_pct": ' \
    '"summary": {' '"median_abs_pct": ' '"p95_abs_pct": ' '"max_abs_pct": ' '"bias_pct": ' \
    '"fit_agreement": ' '"groups": {' '"argument": {' '"host": {'; do
    out_has "$key"
done
if command -v python3 >/dev/null 2>&1; then
    ok 'the summary follows from the cases' python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
e = sorted(abs(c["error_pct"]) for c in d["cases"])
assert len(e) == d["summary"]["n"] and d["summary"]["failed"] == 0
assert abs(e[-1] - d["summary"]["max_abs_pct"]) < 1e-9
assert abs(e[(len(e) + 1) // 2 - 1] - d["summary"]["median_abs_pct"]) < 1e-9
for c in d["cases"]:
    p = 100 * (c["predicted_bytes"] / c["measured_bytes"] - 1)
    assert abs(p - c["error_pct"]) < 1e-9
    b = [0.8, 0.9, 1.1, 1.25]
    right = sum((c["predicted_bytes"] <= f * c["measured_bytes"]) == (f > 1) for f in b)
    assert right == c["verdicts_right"], c
v = sum(c["verdicts_right"] for c in d["cases"]) / (4 * len(e))
assert abs(v - d["summary"]["fit_agreement"]) < 1e-12' "$work/out"
else
    skip 'the summary follows from the cases' 'no python3'
fi

expect 0 hbmsim validate "$first" --pairs --json
if command -v python3 >/dev/null 2>&1; then
    ok 'pairs follow from the cases' python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
by_id = {c["id"]: c for c in d["cases"]}
p = d["pairs"]
assert p["n"] + p["rematerialised"]["n"] == len(p["list"]) > 20
large = right = close = within = 0
for q in p["list"]:
    a, b = by_id[q["first"]], by_id[q["second"]]
    m, s = q["measured_bytes"], q["predicted_bytes"]
    own = "compiler rematerialised"
    assert q["rematerialised"] == (own in (a["group"], b["group"]))
    assert m == b["measured_bytes"] - a["measured_bytes"]
    assert s == b["predicted_bytes"] - a["predicted_bytes"]
    if q["rematerialised"]:
        continue
    if abs(m) > 5e8:
        large += 1
        right += m * s > 0
        close += abs(s - m) <= 0.15 * abs(m)
    else:
        within += abs(s - m) <= 5e8
assert large == p["large"]
assert abs(p["sign_right"] - right / large) < 1e-12
assert abs(p["within_15_pct"] - close / large) < 1e-12
assert abs(p["small_within"] - within / (p["n"] - large)) < 1e-12' "$work/out"
else
    skip 'pairs follow from the cases' 'no python3'
fi
sed -n 1p "$first" >"$work/one.jsonl"
expect 0 hbmsim validate "$work/one.jsonl" --pairs
out_has '0 pairs; above 500 MB: sign right in 0 of 0'
expect 0 hbmsim validate "$work/one.jsonl" --pairs --json
out_has '"sign_right": null'

for ending in svg pdf png; do
    expect 0 hbmsim validate "$first" --plot "$work/scatter.$ending" --worst 0
    out_has 'the usual formula on these'
    ok "a picture as $ending" test -s "$work/scatter.$ending"
done
ok 'the svg is one' grep -q '^<svg\|<?xml' "$work/scatter.svg"
ok 'the pdf is one' grep -aq '^%PDF' "$work/scatter.pdf"
ok 'the png is one' grep -aq 'PNG' "$work/scatter.png"
hbmsim validate "$first" --json >"$work/cases.json"
expect 0 hbmsim plot "$work/cases.json" -o "$work/plotted.svg"
same "$work/plotted.svg" "$work/scatter.svg"
expect 2 hbmsim validate "$first" --plot "$work/scatter.gif"
err_has "--plot: '$work/scatter.gif' where a name that ends in .svg, .pdf or .png is wanted"

id=$(sed -n '1s/^{"id":"\([^"]*\)".*/\1/p' "$first")
expect 0 hbmsim validate "$first" --explain "$id"
out_has "$id: measured"
out_has 'hbmsim (MiB)'
expect 2 hbmsim validate "$first" --explain no-such-record
err_has "no record has the id 'no-such-record'"

sed -n 1p "$first" | sed 's/"compiler":"xla-tpu"/"compiler":"torch"/; s/"tpu-v5p"/"nvidia-h100"/' >"$work/torch.jsonl"
expect 0 hbmsim validate "$work/torch.jsonl"
out_has 'compiler: torch: '
expect 1 hbmsim validate "$work/torch.jsonl" --max-median 5
expect 2 hbmsim validate "$work/torch.jsonl" --plot "$work/none.svg"
err_has '--plot: no record has both figures'
echo '{"id": "x"' >"$work/broken.jsonl"
expect 2 hbmsim validate "$work/broken.jsonl"
err_has "$work/broken.jsonl:1:"
echo '{"id": "x", "config": {}}' >"$work/empty.jsonl"
expect 0 hbmsim validate "$work/empty.jsonl"
out_has "record 'x' has no 'measured' map"
expect 2 hbmsim validate "$work/absent.jsonl"

hbmsim validate "$first" --part learn --json >"$work/learn"
hbmsim validate "$first" --part hold-out --json >"$work/held"
ok 'learn and hold-out make up the whole' \
    test "$(cat "$work/learn" "$work/held" | grep -c '"id":')" = "$(grep -c . "$first")"

i=0
while [ $i -lt 45 ]; do
    cat "$first"
    i=$((i + 1))
done >"$work/many.jsonl"
# Where somebody gives tests more time than usual, speed is not what is asked.
limit=60
[ "${HB_BUILD##*/}" != fast ] || [ -n "${HB_LIMIT_S:-}" ] || limit=5
# Of processor time: a busy machine is no fault of the program.
ok "5,000 records within $limit s" sh -c 'ulimit -t "$1" && shift && exec "$@"' sh $limit \
    "$HBMSIM" validate "$work/many.jsonl" -o "$work/x"
finish
