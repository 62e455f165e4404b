# The certificate of a plan and its checker: it holds for each plan, and whatever is changed of it is
# noticed. HB_LONG=1: of the larger plans too.
. tests/tap.sh

checker=examples/verify/check_certificate.py
if ! command -v python3 >/dev/null 2>&1; then
    skip 'certificates' 'no python3'
    finish
fi

cp tests/cli/small.yaml "$work/small.yaml"

# certify FILE [OPTIONS]: the plan of a file, and its certificate in $work/proof.json
certify() {
    file=$1
    shift
    "$HBMSIM" plan "$file" --certificate "$work/proof.json" "$@" >"$work/plan.out" 2>&1 || test $? = 1
}

# holds NAME [OPTIONS]: the certificate in $work/proof.json does.
holds() {
    name=$1
    shift
    ok "$name: the certificate holds" sh -c 'python3 "$@" >"$0"' "$work/out" "$checker" \
        "$work/proof.json" "$@"
}

certify examples/quickstart/model.yaml
holds quickstart --hbmsim "$HBMSIM"
out_has 'checked'
out_has 'meshes enumerated again'
out_has 'trusted'
out_has 'the plan simulated again'

certify "$work/small.yaml" --budget 500MiB
holds 'more room than the fastest'
out_has 'what is taken for its room'
certify "$work/small.yaml" --set 'plan.search={mesh: [fsdp, tensor]}'
holds 'written policies'
certify "$work/small.yaml" --objective memory
holds 'least memory'
certify "$work/small.yaml" --objective devices
holds 'fewest devices'
certify "$work/small.yaml" --budget 64MiB --margin none
holds 'nothing fits'
out_has 'infeasible'
certify "$work/small.yaml" --thorough --set 'plan.search={mesh: [fsdp, tensor, pipeline, data], remat: true, stack: [scan, nested], loss_chunks: [1, 3, 4], optimizer_offload: [none, pinned_host]}'
holds 'stages, nests and places'
certify tests/cli/plans/moe-wrong_43.yaml
holds 'a mixture'
# One run more of layers is taken where it is worth it; an integer program is proven by linear ones.
cat >"$work/remat.yaml" <<END
model: {preset: llama3-8b}
batch: {global: 32, seq: 8192}
hardware: {device: nvidia-h100, count: 8}
mesh: {fsdp: 8}
plan: {search: {remat: true}}
END
certify "$work/remat.yaml" --margin none --budget 61GiB --write-lp "$work/program"
holds 'policies alone'
out_has 'runs that are better by less than what one part more is worth'
ok 'its integer program is proven' grep -q '1 integer programs (1 proven' "$work/plan.out"
# A cell is excluded by the optimum of the program that was solved for it.
sed 's/^mesh:.*//; s/search: {/&mesh: [fsdp, tensor, data], /' "$work/remat.yaml" >"$work/meshes.yaml"
certify "$work/meshes.yaml" --margin none --write-lp "$work/program"
holds 'programs of meshes'
out_has 'that linear programs proved integer ones'
certify tests/cli/plans/moe-wrong_43.yaml
ok 'no more than 600 bytes for each of its nodes and runs' awk '
    { n += gsub(/"rows":/, "") + gsub(/"fits":/, ""); size += length($0) + 0 }
    END { exit !(n > 50 && size < 600 * n + 20000) }' "$work/proof.json"

certify "$work/small.yaml" --margin none
holds small
python3 tests/cli/corrupt_certificate.py "$checker" "$work/proof.json" >"$work/out" 2>&1
ok 'whatever is changed is noticed' sh -c '! grep missed: "$1"' sh "$work/out"
ok 'hundreds of changes were' awk '/^noticed: / { exit !($2 > 800) }' "$work/out"

echo '{"certificate": 1}' >"$work/old.json"
ok 'another form is refused' sh -c '! python3 "$1" "$2" 2>/dev/null' sh "$checker" "$work/old.json"

if [ -n "${HB_LONG:-}" ]; then
    for file in tests/cli/plans/*.yaml; do
        certify "$file"
        holds "$(basename "$file" .yaml)" --hbmsim "$HBMSIM"
    done
fi

finish
