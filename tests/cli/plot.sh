# plot, report and the --plot of other commands: files by their ending, whole or not at all, the
# same each time; what cannot be drawn is told.
. tests/tap.sh

none=examples/pictures/none.json
full=examples/pictures/full.json
model=examples/quickstart/model.yaml

starts() { [ "$(head -c "$2" "$1")" = "$3" ]; }
for format in svg pdf png; do
    expect 0 hbmsim plot "$none" "$full" -o "$work/a.$format"
    run hbmsim plot "$none" "$full" --format $format
    ok "$format on standard output is the file" cmp -s "$work/out" "$work/a.$format"
done
ok 'an svg is one' starts "$work/a.svg" 5 '<?xml'
ok 'a pdf is one' starts "$work/a.pdf" 5 '%PDF-'
ok 'a png is one' sh -c "head -c 4 '$work/a.png' | grep -q PNG"

run hbmsim plot - -o "$work/one.svg" --kind breakdown --theme dark --size 500x300 --font Serif
ok 'standard input must be JSON' test "$status" = 2
expect 0 sh -c "'$HBMSIM' plot - -o '$work/one.svg' --size 500x300 --text <'$full'"
ok 'the size is as asked' grep -q 'width="500px" height="300px"' "$work/one.svg"
ok 'text is text' grep -q '<text .*memory of a device' "$work/one.svg"

expect 0 hbmsim plot "$full" -o "$work/l.svg" --layout "$work/l.json"
ok 'the layout has labels' grep -q '"role": "title"' "$work/l.json"

# simulate draws itself as plot draws its JSON
expect 0 hbmsim simulate "$model" --json --full --plot "$work/direct.svg" -o "$work/r.json"
expect 0 hbmsim plot "$work/r.json" -o "$work/again.svg"
ok 'the picture is the same from its JSON' cmp -s "$work/direct.svg" "$work/again.svg"
for kind in timeline breakdown addressmap; do
    run hbmsim plot "$work/r.json" --kind $kind --text --size 900x600 -o "$work/heap.svg"
    ok "$kind says device and mesh" grep -q '8 × nvidia-h100, fsdp 8' "$work/heap.svg"
done
printf '%s\n' 'model: {preset: llama3-8b}' 'batch: {global: 32, seq: 8192}' 'mesh: {fsdp: 8}' \
    'hardware: {device: nvidia-h100}' >"$work/free.yaml"
for axis in batch.seq=4096,8192:'8 × nvidia-h100, fsdp 8  ·' mesh.fsdp=4,8:'b  ·  nvidia-h100  ·' \
    hardware.device=nvidia-h100,nvidia-h200:'b  ·  batch.global'; do
    run hbmsim sweep "$work/free.yaml" --x batch.global=32,64 --y "${axis%%:*}" --json -o "$work/s.json"
    run hbmsim plot "$work/s.json" --text -o "$work/s.svg"
    ok "a map of ${axis%%=*} says what it is of" grep -q "${axis#*:}" "$work/s.svg"
done
expect 0 hbmsim simulate "$model" --set runtime.memory_fraction=0.92 --set load.method=device_put --set load.processes=8 --json -o "$work/l.json"
expect 0 hbmsim plot "$work/l.json" --kind load -o "$work/load.pdf"

expect 0 hbmsim validate tests/golden/lab-tpu.jsonl --json --plot "$work/direct.pdf" -o "$work/v.json"
expect 0 hbmsim plot "$work/v.json" -o "$work/again.pdf"
ok 'so is the picture of a validation' cmp -s "$work/direct.pdf" "$work/again.pdf"

expect 2 hbmsim simulate "$model" --plot "$work/x.gif"
err_has "where a name that ends in .svg, .pdf or .png is wanted"
expect 2 hbmsim plot "$full"
err_has 'no format: end the output'
expect 2 hbmsim plot "$full" -o "$work/x.svg" --size 10x10
err_has "--size: '10x10' where WIDTHxHEIGHT is wanted, each from 64 to 32767"
expect 2 hbmsim plot "$full" -o "$work/x.svg" --size 500x300x2
expect 2 hbmsim plot "$full" -o "$work/x.png" --size 20000x64 --scale 2
err_has 'at most 32767 pixels'
expect 2 hbmsim plot "$full" -o "$work/x.svg" --kind timeline
err_has "no timeline.seconds in this result: a picture 'timeline' needs it"
expect 2 hbmsim plot "$full" "$none" -o "$work/x.svg" --kind load
err_has "a picture 'load' is drawn from one result, not 2"
expect 2 hbmsim plot "$work/none-such.json" -o "$work/x.svg"
echo '{"a": 1}' >"$work/other.json"
expect 2 hbmsim plot "$work/other.json" -o "$work/x.svg"
err_has 'is no result of simulate, sweep, plan, advise, validate, hlo or calibrate'
ok 'what went wrong left nothing' test ! -e "$work/x.svg" -a ! -e "$work/x.gif"

# plan and advise draw themselves, too
small='plan={search: {loss_chunks: [1, 2, 4, 8]}}'
# with others to name beside the plan
more='plan={search: {loss_chunks: [1, 2, 4, 8], remat: true}}'
expect 0 hbmsim plan "$model" --set "$more" --json --full --plot "$work/direct.svg" -o "$work/p.json"
expect 0 hbmsim plot "$work/p.json" -o "$work/again.svg"
ok 'so is that of a plan' cmp -s "$work/direct.svg" "$work/again.svg"
expect 0 hbmsim plan "$model" --set "$more" --plot "$work/again.svg"
ok 'and the next time' cmp -s "$work/direct.svg" "$work/again.svg"
expect 0 hbmsim plot "$work/p.json" -o "$work/l.svg" --layout "$work/l.json"
ok 'it names the plan' grep -q '"text": "plan"' "$work/l.json"
ok 'it names the runners-up' grep -q '"text": "1"' "$work/l.json"
ok 'it draws what was searched' test "$(grep -c '"curve": "points"' "$work/l.json")" -ge 4
expect 1 hbmsim plan "$model" --set "$small" --budget 10GiB --plot "$work/none.svg"
ok 'a plan that does not exist is drawn' grep -q 'aria-label="nothing fits into 10 GiB: the smallest' "$work/none.svg"
expect 0 hbmsim advise "$model" --json --plot "$work/direct.svg" -o "$work/a.json"
expect 0 hbmsim plot "$work/a.json" -o "$work/again.svg"
ok 'so is that of levers' cmp -s "$work/direct.svg" "$work/again.svg"
expect 0 hbmsim sweep "$model" --x batch.global=8,16 --json --plot "$work/direct.svg" -o "$work/s.json"
expect 0 hbmsim plot "$work/s.json" -o "$work/again.svg"
ok 'so is that of a sweep' cmp -s "$work/direct.svg" "$work/again.svg"
ok 'one axis is told as one' grep -q 'aria-label="all 2 fit, up to 16"' "$work/again.svg"

dump=tests/golden/hlo/cpu_4x4_all_pad.hlo.gz
expect 0 hbmsim hlo "$dump" --json --full --plot "$work/direct.svg" -o "$work/h.json"
expect 0 hbmsim plot "$work/h.json" -o "$work/again.svg"
ok 'so is the heap of a dump' cmp -s "$work/direct.svg" "$work/again.svg"
expect 2 hbmsim hlo tests/golden/hlo/cpu_donate.hlo.gz --plot "$work/none-such.svg"
err_has '--plot: the module has no temporaries'

expect 0 hbmsim devices nvidia-h100 --plot "$work/rates.svg"
ok 'a device says what it reaches' grep -q 'aria-label="products of 4096 reach' "$work/rates.svg"
expect 2 hbmsim devices nvidia-h100 tpu-v5p --plot "$work/none-such.svg"
err_has '--plot: of one device'

# the report makes its own runs
has_sections() {
    file=$1
    shift
    for id; do grep -q "<section id=\"$id\"" "$file" || return 1; done
}
expect 0 hbmsim report "$model" --set "$small" --seconds 1000 -o "$work/r.html"
ok 'the report has its sections' has_sections "$work/r.html" breakdown timeline heap fitmap plan \
    levers all yaml trust
ok 'the report is small' test "$(wc -c <"$work/r.html")" -lt 600000
ok 'it has settings to paste' grep -q '<summary>MaxText</summary>' "$work/r.html"
ok 'it says that the plan is proven' grep -q '<p class="note">Proven: ' "$work/r.html"
run hbmsim report "$model" --set "$small" --seconds 1000
ok 'the report is the same each time' cmp -s "$work/out" "$work/r.html"
expect 0 hbmsim report "$model" --seconds 0.001 -o "$work/r.html"
ok 'a search that was cut off is told' grep -q 'The search was cut off after 0.001 s' "$work/r.html"
expect 0 hbmsim report "$model" --quick --confidence 80 -o "$work/r.html"
ok 'the report tells what was filled in' grep -q 'Filled in, as the input leaves it open: .*precision.params=f32' "$work/r.html"
if command -v basenc >/dev/null 2>&1; then
    hash=$(sed -n '/^<script>$/,/^<\/script>/p' "$work/r.html" | sed '1d;$d' | (echo; cat) |
        sha256sum | cut -d' ' -f1 | tr a-f A-F | basenc --base16 -d | base64)
    ok "the report runs this script alone: sha256-$hash" grep -q "script-src 'sha256-$hash'" "$work/r.html"
else
    skip 'the report runs this script alone' 'no basenc'
fi
ok 'the report loads nothing' grep -q "Content-Security-Policy\" content=\"default-src 'none';" "$work/r.html"
ok 'the report has the confidence that was asked for' grep -q '80 % of' "$work/r.html"
ok 'the quick one has what it ran' sh -c "! grep -q 'id=\"plan\"' '$work/r.html'"
printf '%s' '{"levers": [{"name": "remat.policy=full", "freed_bytes": 5, "cost_seconds": 1}]}' \
    >"$work/advise.json"
expect 0 hbmsim report "$model" --quick --advise "$work/advise.json" --theme dark -o "$work/r2.html"
ok 'levers are shown where given' grep -q 'id="levers"' "$work/r2.html"
expect 2 hbmsim report "$model" --quick --plan "$work/advise.json" -o "$work/r3.html"
ok 'a wrong result makes no report' test ! -e "$work/r3.html"
finish
