# Predictions against the measured records kept in tests/golden, within the bounds that hold
# (tests/golden/bounds.tsv), and the forms of `hbmsim validate`.
. tests/tap.sh

tab=$(printf '\t')
grep -v '^#' tests/golden/bounds.tsv >"$work/bounds"
while IFS=$tab read -r name median p95 <&3; do
    expect 0 hbmsim validate "tests/golden/$name.jsonl" --max-median "$median" --max-p95 "$p95"
    case $name in
    lab-*) out_has 'argument 0, output 0, host 0 of' ;;
    esac
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

id=$(sed -n '1s/^{"id":"\([^"]*\)".*/\1/p' "$first")
expect 0 hbmsim validate "$first" --explain "$id"
out_has "$id: measured"
out_has 'hbmsim (MiB)'
expect 2 hbmsim validate "$first" --explain no-such-record
err_has "no record has the id 'no-such-record'"

sed -n 1p "$first" | sed 's/"compiler":"xla-tpu"/"compiler":"torch"/' >"$work/torch.jsonl"
expect 0 hbmsim validate "$work/torch.jsonl"
out_has 'compiler: torch is not simulated yet'
expect 1 hbmsim validate "$work/torch.jsonl" --max-median 5
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
limit=5
[ "${HB_BUILD##*/}" = fast ] || limit=60
ok "5,000 records within $limit s" timeout $limit "$HBMSIM" validate "$work/many.jsonl" -o "$work/x"
finish
