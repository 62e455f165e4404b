# hbmsim plan --verify: a stand-in compiler says what the plans take; the search learns from it.
. tests/tap.sh

cat >"$work/m.yaml" <<'YAML'
model:
  name: small
  d_model: 1024
  vocab: 32000
  blocks:
    - {repeat: 4, attention: {heads: 16}, mlp: {d_ff: 4096}}
batch: {global: 16, seq: 2048}
hardware: {device: tpu-v5e, count: 8, hbm: 2GiB}
remat: {policy: dots}
plan:
  margin: none
  search: {mesh: [{fsdp: 8}, {fsdp: 4, tensor: 2}], remat: false, loss_chunks: [1, 2], stack: [scan]}
YAML

# The k-th compilation's answer is line k of $work/totals, or "error STATUS TEXT"; the last line is
# for all that follow. $work/asked has what was asked, a line each.
cat >"$work/compiler" <<SH
#!/bin/sh
cat >>"$work/asked"
echo >>"$work/asked"
n=\$(wc -l <"$work/asked")
line=\$(sed -n "\${n}p" "$work/totals")
[ -n "\$line" ] || line=\$(tail -n 1 "$work/totals")
case \$line in
error*)
    set -- \$line
    status=\$2
    shift 2
    printf '{"error": "%s"}\n' "\$*"
    exit "\$status"
    ;;
hang) sleep 1000 ;;
esac
printf '{"compiler": "libtpu 9.9", "device": "tpu-v5e", "devices": 8, "topology": "v5e:2x4", "versions": {"libtpu": "9.9"}, "total_bytes": %s}\n' "\$line"
SH
chmod +x "$work/compiler"

# plan TOTALS OPTIONS...: totals separated by commas.
plan() {
    echo "$1" | tr , '\n' >"$work/totals"
    rm -f "$work/asked"
    shift
    hbmsim plan "$work/m.yaml" --verify --python "$work/compiler" "$@"
}
asked() { wc -l <"$work/asked"; }
gib=1073741824
too_much=$((3 * gib))

# --- the first fits
expect 0 hbmsim plan "$work/m.yaml" --json
sed '/"verified"/,/^  }/d; /"seconds"/d' "$work/out" >"$work/plain"
expect 0 plan $gib --json
ok 'one compilation' test "$(asked)" -eq 1
out_has '"compiled_bytes": 1073741824'
out_has '"rounds": 1'
out_has '"by": "libtpu 9.9"'
sed '/"verified"/,/^  }/d; /"seconds"/d' "$work/out" >"$work/verified"
ok 'the plan is the same' test "$(sed -n 's/"plan_name"//p' "$work/plain" | head -n 1)" = \
    "$(sed -n 's/"plan_name"//p' "$work/verified" | head -n 1)"
expect 0 plan $gib
out_has 'VERIFIED: compiled by libtpu 9.9 for v5e:2x4: 1.00 GiB of 2.00; predicted'
out_has '; 1 compilation, '

# --- the second fits: it is another plan, and what brute force finds with the same lesson
expect 0 plan $too_much,$gib --json --exhaustive --keep "$work/runs.jsonl"
ok 'two compilations' test "$(asked)" -eq 2
ok 'of two plans' test "$(sort -u "$work/asked" | wc -l)" -eq 2
out_has '"rounds": 2'
out_has '"exhaustive_agrees": true'
ok 'both are kept' test "$(wc -l <"$work/runs.jsonl")" -eq 2
ok 'one with the verdict that it does not fit' \
    test "$(grep -c '"fits": false' "$work/runs.jsonl")" -eq 1
expect 0 hbmsim validate "$work/runs.jsonl"
expect 0 plan $too_much,$gib
out_has 'VERIFIED: compiled by libtpu 9.9 for v5e:2x4: 1.00 GiB of 2.00; predicted'
out_has 'compiled by libtpu 9.9 for v5e:2x4: 3.00 GiB of 2.00; predicted'
out_has 'does not fit: what resembles it counts'
out_has '; 2 compilations, '
expect 0 plan $too_much,$gib --emit yaml -o "$work/plan.yaml"
hbmsim verify "$work/plan.yaml" --input | sed 's/, "plan": .*//' >"$work/emitted"
sed -n '2s/, "plan": .*//p' "$work/asked" >"$work/second"
same "$work/emitted" "$work/second"

# A lesson takes its size from what resembles it: there the predictions stay below the rest.
expect 0 plan $((2 * gib + gib / 4)),$gib --json
awk -F'[:,]' '/"predicted_bytes"/ {p[n++] = $2} END {exit !(n == 2 && p[0] <= 2147483648)}' \
    "$work/out" >"$work/trash" && found=0 || found=1
ok 'predictions within the budget' test "$found" -eq 0

# --- none fits
rm -f "$work/plan.yaml"
expect 1 plan $too_much --verify-most 3
ok 'three compilations' test "$(asked)" -eq 3
out_has 'NOT VERIFIED: --verify-most; 3 compilations'
expect 1 plan $too_much --verify-most 2 --json
out_has '"fits": false'
expect 1 plan $too_much --verify-most 1 --emit yaml -o "$work/plan.yaml"
ok 'nothing is emitted' test ! -e "$work/plan.yaml"
err_is 'hbmsim plan: no plan was verified: nothing is emitted'
expect 1 plan $((90 * gib)) --verify-most 50
out_has 'NOT VERIFIED: nothing is left that may fit'
out_has 'no plan fits'
ok 'each kind at most twice' test "$(asked)" -le 16

# --- refused, failing, interrupted
expect 2 plan 'error 2 optimizer.clip: cannot be'
err_has 'm.yaml: error: --verify: optimizer.clip: cannot be'
expect 3 plan "$too_much,error 3 libtpu is missing"
err_is 'hbmsim plan: --verify: libtpu is missing'
expect 3 hbmsim plan "$work/m.yaml" --verify --python "$work/none"
err_has 'install Python 3, then JAX with: pip install'
expect 3 plan hang --compile-seconds 1
err_has 'stopped after 1 s'
echo "$too_much" >"$work/totals"
echo hang >>"$work/totals"
rm -f "$work/asked"
"$HBMSIM" plan "$work/m.yaml" --verify --python "$work/compiler" >"$work/out" 2>"$work/err" \
    </dev/null &
child=$!
while { [ ! -s "$work/asked" ] || [ "$(asked)" -lt 2 ]; } && kill -0 "$child" 2>/dev/null; do
    sleep 0.1
done
sleep 0.2
kill -TERM "$child" 2>/dev/null || :
status=0
wait "$child" || status=$?
last='plan, interrupted'
ok 'an interrupted one says so' test "$status" -eq 1
out_has 'NOT VERIFIED: interrupted; 2 compilations'
expect 2 hbmsim plan "$work/m.yaml" --verify-most 0
finish
