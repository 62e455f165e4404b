# hbmsim plan: a plan as text, JSON, YAML and other programs' settings; the certificate; brute force
# agrees; when nothing fits; integer programs that another solver reads.
. tests/tap.sh

model=examples/quickstart/model.yaml

cp tests/cli/small.yaml "$work/small.yaml"

number() {
    sed -n "s/.*\"$1\": \\([-0-9.e+]*\\),*\$/\\1/p" "$work/out" | head -n 1
}

expect 0 hbmsim plan "$work/small.yaml" --exhaustive
out_has 'Best of '
out_has ' policies: every other cell is excluded by a bound or searched with them.'
out_has 'Over all policies nothing is better by more than '
out_has 'Brute force over all of them agrees.'
out_has 'tokens/s, MFU'
err_is ''
# Within budgets at which it looks for its policies in another cell: of the same menus.
for budget in 261743360 270894568; do
    expect 0 hbmsim plan "$work/small.yaml" --exhaustive --margin none --budget $budget
    out_has 'Brute force over all of them agrees.'
done
# A pipeline takes 2.00 s; the best without one less.
expect 0 hbmsim plan tests/cli/plans/pipeline-wins.yaml --exhaustive
out_has '1.84 s a step'
out_has 'fsdp 4 x tensor 8'
out_has 'Brute force over all of them agrees.'

expect 0 hbmsim plan "$work/small.yaml" --json --certificate "$work/proof.json"
out_has '"status": "best"'
ok 'the gap to all policies is a fraction' \
    awk -v gap="$(number gap)" 'BEGIN { exit !(gap > 0 && gap < 0.5) }'
ok 'it tells the defaults that it filled in' python3 -c "
import json, sys
filled = json.load(open('$work/out'))['filled_in']
sys.exit(filled.get('precision.params') != 'f32' or filled.get('compiler') != 'xla-tpu' or 'batch.seq' in filled)"
keys=$(sed -n 's/^  "\([a-z_]*\)":.*/\1/p' "$work/out" | tr '\n' ' ')
ok 'the keys are the promised ones' test "$keys" = 'name version compiler device configuration status gap objective budget_bytes margin filled_in considered pruned seconds counts plan_name plan prediction alternatives refused roomier fastest prices '
ok 'each cell has its line in the certificate' test \
    "$(grep -o '"by":' "$work/proof.json" | wc -l)" = "$(number cells)"
step=$(number step_seconds)
peak=$(number peak_bytes)

# What is faster and refused for memory: each is what simulate says of it, and needs more than the
# one before it.
expect 0 hbmsim plan "$work/small.yaml" --json --budget 264000000
cp "$work/out" "$work/refused.json"
cat >"$work/refused.py" <<'END'
import json, subprocess, sys
answer = json.load(open(sys.argv[1]))
step, more = answer["prediction"]["step_seconds"], 0
for r in answer["refused"]:
    said = subprocess.run([sys.argv[2], "simulate", "-", "--json"], input=json.dumps(r["plan"]), text=True,
                          stdout=subprocess.PIPE).stdout
    s = json.loads(said)
    assert s["peak_bytes"] == r["peak_bytes"] and s["interval"]["high_bytes"] == r["high_bytes"], r
    assert abs(s["step_seconds"] / r["step_seconds"] - 1) < 1e-9, r
    assert r["too_much_bytes"] > more and r["high_bytes"] > answer["budget_bytes"], r
    assert r["step_seconds"] < step * 0.999 and r["better_by"] > 0, r
    tight = s["interval"]["low_bytes"] <= answer["budget_bytes"]
    assert r["verdict"] == ("tight" if tight else "does not fit"), r
    step, more = r["step_seconds"], r["too_much_bytes"]
print(len(answer["refused"]))
fast = answer["fastest"]
for r in [r for r in (answer["roomier"], fast) if r]:
    said = subprocess.run([sys.argv[2], "simulate", "-", "--json"], input=json.dumps(r["plan"]), text=True,
                          stdout=subprocess.PIPE).stdout
    s = json.loads(said)
    assert s["peak_bytes"] == r["peak_bytes"] and abs(s["step_seconds"] / r["step_seconds"] - 1) < 1e-9, r
    less = answer["prediction"]["peak_bytes"] - r["peak_bytes"]
    assert 0 <= (-r["worse_by"] if r == fast else r["worse_by"]) <= 0.01, r
    assert (-less if r == fast else less) > answer["budget_bytes"] // 50, r
    print("fastest" if r == fast else "roomier")
END
expect 0 python3 "$work/refused.py" "$work/refused.json" "$HBMSIM"
out_has 3
expect 0 hbmsim plan "$work/small.yaml" --budget 264000000
out_has 'Faster, and refused for memory:'
out_has ' MiB too much)'
# Hardly slower, and smaller: what is taken, unless speed is preferred or the budget is to be filled.
expect 0 hbmsim plan "$work/small.yaml" --json --budget 500MiB
cp "$work/out" "$work/refused.json"
taken=$(number peak_bytes)
expect 0 python3 "$work/refused.py" "$work/refused.json" "$HBMSIM"
out_has fastest
expect 0 hbmsim plan "$work/small.yaml" --budget 500MiB
out_has 'more than with the fastest that fits, 0.'
out_has '% slower (plan.prefer=speed takes that)'
out_has 'Fastest:'
out_has 'All this is said of the fastest'
expect 0 hbmsim plan "$work/small.yaml" --budget 500MiB --emit yaml -o "$work/taken.yaml"
expect 0 hbmsim simulate "$work/taken.yaml" --json
ok 'what is emitted is what was taken' test "$(number peak_bytes)" = "$taken"
expect 0 hbmsim plan "$work/small.yaml" --json --budget 500MiB --prefer speed
cp "$work/out" "$work/refused.json"
expect 0 python3 "$work/refused.py" "$work/refused.json" "$HBMSIM"
out_has roomier
expect 0 hbmsim plan "$work/small.yaml" --budget 500MiB --set plan.prefer=speed
out_has 'With more room:'
expect 0 hbmsim plan "$work/small.yaml" --budget 500MiB --margin none --json
out_has '"fastest": null'
expect 2 hbmsim plan "$work/small.yaml" --prefer memory
err_has 'plan.prefer'
expect 0 hbmsim plan "$work/small.yaml" --json --budget 261743360 --margin none
out_has '"verdict": "tight"'
expect 0 hbmsim plan "$work/small.yaml" --json --margin 90%
out_has '"verdict": "fits"'
expect 0 hbmsim plan "$work/small.yaml" --json --objective memory
out_has '"refused": []'

# The plan is a configuration like any other.
expect 0 hbmsim plan "$work/small.yaml" --emit yaml -o "$work/plan.yaml"
expect 0 hbmsim simulate "$work/plan.yaml" --json
ok 'run again it has the same peak' test "$(number peak_bytes)" = "$peak"
ok 'and the same step' test "$(number step_seconds)" = "$step"
# What the compiler does for what waits on the host is of the plan, too.
expect 0 hbmsim plan tests/cli/experts-on-host.yaml --json
step=$(number step_seconds)
peak=$(number peak_bytes)
expect 0 hbmsim plan tests/cli/experts-on-host.yaml --emit yaml -o "$work/host.yaml"
expect 0 hbmsim simulate "$work/host.yaml" --json
ok 'run again it has the same peak' test "$(number peak_bytes)" = "$peak"
ok 'and the same step' test "$(number step_seconds)" = "$step"

expect 0 hbmsim plan "$work/small.yaml" --emit maxtext
out_has 'ici_fsdp_parallelism='
out_has 'remat_policy='
out_has '# Read back and simulated: peak '
ok 'all of it can be said' sh -c '! grep -q "cannot be said\|not all that was planned" "$1"' sh "$work/out"
cp "$work/out" "$work/settings.txt"
sed -n 's/^# Read back and simulated: peak \([0-9.]* .iB\) of.*/\1/p' "$work/settings.txt" >"$work/told"
ok 'a figure is told' test -s "$work/told"
device=$(sed -n 's/.* x \([a-z0-9-]*\)\.$/\1/p' "$work/settings.txt")
expect 0 hbmsim simulate "$work/settings.txt" --set hardware.device="$device"
out_has "FITS: $(cat "$work/told") "
expect 0 hbmsim plan "$work/small.yaml" --emit levanter
out_has 'axes: {replica: '
out_has 'gradient_checkpointing:'
# Also where the file's own mesh is none of that program's, or not one for the batch.
said() {
    out_has '# Read back and simulated: peak '
    ok 'all of it can be said' sh -c '! grep -q "cannot be said\|not all that was planned" "$1"' sh "$work/out"
}
expect 0 hbmsim plan "$work/small.yaml" --set 'mesh={pipeline: 4}' --emit levanter \
    --set 'plan={search: {mesh: [fsdp, tensor, pipeline], remat: true}}'
said
expect 0 hbmsim plan $model --set 'batch={global: 4, seq: 8192}' --emit maxtext \
    --set 'plan={search: {mesh: [fsdp, tensor], remat: true, loss_chunks: [1, 8]}}'
said
# MaxText's habits that only other meshes and more chunks show: DeepSeek's router, chunks over tokens.
for one in 'deepseek-v2-lite h100 64 128' 'qwen3-30b-a3b b200 8 16'; do
    set -- $one
    printf 'model: {preset: %s}\nhardware: {device: %s, count: %s}\nbatch: {global: %s, seq: 4096}\n' "$@" >"$work/moe.yaml"
    expect 0 hbmsim plan "$work/moe.yaml" --emit maxtext
    said
done
expect 2 hbmsim plan "$work/small.yaml" --set 'mesh={pipeline: 4}' --set 'plan={search: {remat: true}}' --emit levanter
err_has "the limits of plan.keep admit, and that --emit's program can say"

# More budget is never worse; least memory is no more than the fastest plan's.
expect 0 hbmsim plan "$work/small.yaml" --json --objective memory
least=$(number peak_bytes)
ok 'the least memory is the least' test "$least" -le "$peak"
expect 0 hbmsim plan "$work/small.yaml" --budget "$least" --margin none --json
ok 'it fits in a budget of its size' test "$(number peak_bytes)" -le "$least"
expect 1 hbmsim plan "$work/small.yaml" --budget $((least - 1)) --margin none
out_has 'no plan fits'
out_has 'Smallest peak: '
out_has 'What would do: a budget of '
expect 1 hbmsim plan "$work/small.yaml" --budget $((least - 1)) --margin none --json
out_has '"status": "infeasible"'
ok 'the smallest peak is the least' test "$(number smallest_peak_bytes)" = "$least"

# By default the upper end of its interval fits, and brute force over the space finds nothing faster
# of which that can be said; without a margin the peak may fill the budget. Tight ones, so that all
# bind.
for margin in confident none 32MiB 10%; do
    tight=$((least * 5 / 4))
    [ $margin != confident ] || tight=$((least * 9 / 5))
    expect 0 hbmsim plan "$work/small.yaml" --budget $tight --margin $margin --exhaustive
    out_has 'Brute force over all of them agrees.'
    out_has '  margin      '
    expect 0 hbmsim plan "$work/small.yaml" --budget $tight --margin $margin --json
    case $margin in
    confident)
        ok 'what may be needed fits' test "$(number high_bytes)" -le $tight
        ok 'the margin is told' test "$(number bytes)" -gt 0
        sure=$(number step_seconds)
        expect 0 hbmsim plan "$work/small.yaml" --budget $tight --margin none --json
        full=$(number step_seconds)
        ;;
    none) ok 'the budget is filled' test "$(number peak_bytes)" -le $tight ;;
    32MiB) ok 'these bytes stay free' test $(($(number peak_bytes) + 33554432)) -le $tight ;;
    10%) ok 'this part stays free' test "$(number peak_bytes)" -le $((tight * 9 / 10)) ;;
    esac
done
ok 'a margin is never faster' awk "BEGIN { exit !($full <= $sure) }"
expect 1 hbmsim plan "$work/small.yaml" --budget $((least + 1))
out_has 'Without a margin (--margin none) '
out_has ', up to '
expect 2 hbmsim plan "$work/small.yaml" --margin some
err_has "plan.margin: 'some'; allowed: confident, none, bytes as 2GiB, or a part of the budget as 5%"

expect 0 hbmsim plan "$work/small.yaml" --objective devices --json
out_has '"status": "best"'

# Where policies are not free, the menus are the whole space.
expect 0 hbmsim plan "$work/small.yaml" --set 'plan.search={mesh: [fsdp, tensor]}' --json
out_has '"status": "optimal"'
ok 'the gap is 0' test "$(number gap)" = 0

# What is not to be searched stays.
expect 0 hbmsim plan "$work/small.yaml" --set 'plan.search={mesh: [fsdp]}' --emit yaml
out_has 'fsdp: 4'

# The integer programs, for another solver (tests/unit/test_ilp.c compares with CBC).
expect 0 hbmsim plan "$work/small.yaml" --write-lp "$work/plan"
ok 'integer programs are written' grep -q '^End$' "$work/plan-1.lp"

expect 2 hbmsim plan $model --exhaustive --set 'plan.search={mesh: [fsdp, tensor, data], remat: true, loss_chunks: [1, 2, 4, 8], batch: {accumulate: [1, 2, 4]}, stack: [scan, nested]}' --set plan.keep.tensor_max=2
err_has '--exhaustive:'
expect 2 hbmsim plan "$work/small.yaml" --set 'plan.search={mesh: [[3, 1, 1, 1, 1, 1]]}'
expect 2 hbmsim plan
expect 2 hbmsim plan $model --seconds 0

# Time that is up, and Ctrl-C: the best so far, and how much better another may be.
cat >"$work/spacious.yaml" <<'END'
model: {preset: deepseek-v3}
batch: {global: 16384, seq: 4096}
mesh: {fsdp: 8192}
hardware: {device: nvidia-h100, count: 8192}
compiler: xla-gpu
plan:
  search:
    mesh: [data, fsdp, tensor, sequence, expert, pipeline]
    remat: true
    batch: {accumulate: [1, 2, 4, 8, 16]}
    loss_chunks: [1, 2, 4, 8, 16, 32, 64]
END
expect 1 hbmsim plan "$work/spacious.yaml" --seconds 1
out_has 'no plan yet in 59.33 GiB: the search was cut off (--seconds, or Ctrl-C)'
out_has 'Of the step as the file has it, most is freed by '
expect 1 timeout --preserve-status -s INT 1 "$HBMSIM" plan "$work/spacious.yaml" --json
out_has '"status": "limit"'
out_has '"gap": null'
ok 'it ended soon' awk -v took="$(number seconds)" 'BEGIN { exit !(took < 20) }'
expect 2 hbmsim plan "$work/small.yaml" --objective speed

# XLA:GPU spreads ragged products over all experts: no policy does without that, so that none is run
# where it is too much; where it fits, the plan says how much it is and what would be faster.
sed 's/mlp: {d_ff: 2048}/moe: {experts: 32, top_k: 2, d_ff: 1024}/; s/tpu-v5p/nvidia-h100/' \
    tests/cli/small.yaml >"$work/ragged.yaml"
expect 1 hbmsim plan "$work/ragged.yaml" --margin none --budget 1GiB
out_has '0 configurations priced, 0 run (0 cut for their packed peak)'
out_has 'most is freed by moe.dispatch = einsum ('
expect 0 hbmsim plan "$work/ragged.yaml" --margin none --budget 4GiB
out_has ' times what the model needs: this compiler takes each row through all experts'
out_has '  beyond      outside of what was searched, moe.dispatch = einsum'
out_has ': at most '
out_has ' (all else as here)'
expect 0 hbmsim plan "$work/ragged.yaml" --margin none --budget 4GiB --json
out_has '"faster": "moe.dispatch = einsum'

# A mesh that is searched need not divide the batch as it is written; one that stays has to.
sed 's/global: 16/global: 18/' "$work/small.yaml" >"$work/odd.yaml"
expect 2 hbmsim simulate "$work/odd.yaml"
err_has 'batch.global: 18 sequences cannot be split'
expect 0 hbmsim plan "$work/odd.yaml"
sed 's/mesh: \[fsdp, tensor\], //' "$work/odd.yaml" >"$work/stays.yaml"
expect 2 hbmsim plan "$work/stays.yaml"
err_has 'batch.global: 18 sequences cannot be split'

# What more memory would gain is asked for.
expect 0 hbmsim plan "$work/small.yaml" --prices --json
ok 'three budgets' test "$(grep -c '"more_bytes"' "$work/out")" = 3

finish
