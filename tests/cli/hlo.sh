# hbmsim hlo: the compiler's own figures, to the byte; findings; forecasts; inputs of all kinds.
. tests/tap.sh

dumps=tests/golden/hlo

# field KEY: its number in the JSON of the last run, at the top level.
field() {
    sed -n "s/^  \"$1\": \([0-9]*\),*\$/\1/p" "$work/out"
}

figures() {
    run hbmsim hlo --json "$dumps/$1.hlo.gz"
    found="$(field total_bytes) $(field argument_bytes) $(field output_bytes)"
    found="$found $(field alias_bytes) $(field temp_bytes)"
    [ "$7" = - ] || found="$found $(field memory_analysis_temp_bytes)"
    wanted="$2 $3 $4 $5 $6"
    [ "$7" = - ] || wanted="$wanted $7"
    if [ "$found" = "$wanted" ]; then
        tap ok "figures of $1"
    else
        tap 'not ok' "figures of $1"
        echo "# wanted $wanted, found $found"
    fi
}

while read -r name total argument output alias temp analysis; do
    case $name in
    '#'*) ;;
    *) figures "$name" "$total" "$argument" "$output" "$alias" "$temp" "$analysis" ;;
    esac
done <$dumps/figures.tsv

# The order that XLA kept, made again.
order() {
    run hbmsim hlo --order least --json "$dumps/$1.hlo.gz"
    found=$(awk -v least="$2" '
        { gsub(/[",:{]/, "") }
        $1 == "least" { kept = $2 } $1 == "printed_bytes" { printed = $2 }
        $1 == "list" || $1 == "depth" || $1 == "post" { kind = $1 }
        kind == least && $1 == "bytes" && !bytes { bytes = $2 }
        kind == least && $1 == "entry_ops" { of = $2 }
        kind == least && $1 == "entry_in_order" { same = $2; kind = "" }
        END { print kept, bytes, printed, same, of }' "$work/out")
    ok "order of $1: $found" test "$found" = "$2 $3 $4 $5 $6"
}
while read -r name least bytes printed same of; do
    case $name in
    '#'*) ;;
    *) order "$name" "$least" "$bytes" "$printed" "$same" "$of" ;;
    esac
done <$dumps/orders.tsv
ok 'as much as the compiler takes, within 1 %, in more than four of five' awk '
    !/^#/ { n++; good += $3 <= 1.01 * $4 && $3 >= .99 * $4 } END { exit good < .8 * n }' \
    $dumps/orders.tsv
for order in list depth post; do
    expect 0 hbmsim hlo --order $order $dumps/mi300x_xf_full_1.hlo.gz
    out_has 'kept by XLA'
done
out_has 'post-order        649.6 MiB   0.56 of 43     0.62 of 92  shown here'
expect 2 hbmsim hlo --order breadth $dumps/mi300x_xf_full_1.hlo.gz
err_has 'list|depth|post|least'

# What is found: each finding of the list, to the byte. The modules in made/ have one pathology each,
# so small that what it costs can be reckoned by hand.
findings_of() {
    run hbmsim hlo --json "$@"
    awk '/^      "kind":/ { gsub(/[",]/, ""); kind = $2 }
        /^      "count":/ { gsub(/,/, ""); count = $2 }
        /^      "bytes":/ { gsub(/,/, ""); bytes = $2 }
        /^      "held_bytes":/ { gsub(/,/, ""); print kind, bytes, $2, count }' "$work/out"
}
grep -v '^#' $dumps/findings.tsv | cut -f 1 | sort -u | while read -r name; do
    case $name in
    made/*) findings_of --backend gpu "$dumps/$name" ;;
    *) findings_of "$dumps/$name" ;;
    esac | sed "s|^|$name |"
done | sort >"$work/findings"
grep -v '^#' $dumps/findings.tsv | tr '\t' ' ' | sort >"$work/wanted"
same "$work/findings" "$work/wanted"

# Nothing is found where nothing is wrong: each of these is a way to do it well.
for name in cpu_donate cpu_halo_ew_cperm cpu_halo_ns_cperm h100_donate h100_halo_all_cperm \
    mi300x_halo_all_cperm v5e_donate v5e_halo_all_cperm; do
    expect 0 hbmsim hlo $dumps/$name.hlo.gz
    out_has 'Nothing was found that costs memory and need not.'
done

# What the partitioner made of a pad: counted, taken out, and done by permutes instead.
expect 0 hbmsim hlo $dumps/cpu_4x4_all_pad.hlo.gz
out_has 'total             727.7 MiB         763087904'
out_has 'temp              394.5 MiB         413660800'
out_has '1. halo-exchange: 658.6 MiB freed of 472.2 MiB held'
out_has 'became 8 broadcasts, 2 pads, 4'
out_has '315.60  43.37      1  f64[3304,12520]{1,0}  %all-gather.1'
out_has 'Most is alive at operation 19 of 20, %all-gather.1 (all-gather)'
err_is ''

# Before partitioning: the three directions, and that such a module is no predictor.
expect 0 hbmsim hlo --backend cpu $dumps/cpu_4x4_all_pad.before.hlo.gz
out_has 'without a schedule'
out_has 'A module before optimisation is no predictor'
out_has 'Its shapes are those of whole arrays'
out_has 'east-west: 1 of f64[3056,12272]{1,0}, cut 4x4, padding 123_123x123_123'
out_has 'north-south: 1 of f64[3056,12272]{1,0}, cut 4x4'
out_has 'both: 1 of f64[3056,12272]{1,0}, cut 4x4'
out_has 'the partitioner makes 8 broadcasts, 2 pads, 4 dynamic-slices, 2 selects'
out_has 'if these fuse              temp   394.5 MiB  output   315.4 MiB'
expect 0 hbmsim hlo --json $dumps/cpu_4x4_all_pad.before.hlo.gz
out_has '"scheduled": false,'
out_has '"kind": "sharded-pad-forecast",'
out_has '"direction": "both",'
out_has '"temp_bytes": 413660800,'
out_has '"output_bytes": 330675488,'
expect 0 hbmsim hlo $dumps/v5e_halo_all_pad.before.hlo.gz
out_has 'if these fuse              temp         0 B  output   78.84 MiB'

# The sources of temporaries, where the dump tells them.
expect 0 hbmsim hlo --top 3 $dumps/h100_moe8.hlo.gz
out_has 'jit(f)/jvp(nec,nd->ecd)/dot_general  hlo_cases.py:156'
out_has 'more'

expect 0 hbmsim hlo $dumps/h100_nodonate.hlo.gz
out_has 'missing-donation: 64.00 MiB freed of 64.00 MiB held'
expect 0 hbmsim hlo $dumps/lab_tinyS_remat-offload-layer_in.hlo.gz
out_has 'host-copy-overlaps-nothing: 32.00 MiB moved'
out_has 'convert-hoisted-out-of-loop'
out_has 'full-f32-logits'
out_has 'rules of tpu-v5p'
expect 0 hbmsim hlo $dumps/lab_cuda_PP_base.hlo.gz
out_has 'replicated-tensor: 1.10 GiB freed of 1.46 GiB held'

# Plain, packed, from standard input, into a file.
hbmsim hlo --json $dumps/h100_cond.hlo.gz | sed '/"file"/d' >"$work/want"
if command -v gzip >/dev/null 2>&1; then
    gzip -dc $dumps/h100_cond.hlo.gz >"$work/plain.hlo"
    hbmsim hlo --json "$work/plain.hlo" | sed '/"file"/d' >"$work/plain"
    same "$work/plain" "$work/want"
    run sh -c '"$HBMSIM" hlo --json - <"$1" | sed "/\"file\"/d"' sh "$work/plain.hlo"
    same "$work/out" "$work/want"
    head -c 700 "$work/plain.hlo" >"$work/cut.hlo"
    expect 2 hbmsim hlo "$work/cut.hlo"
    err_has 'cut.hlo:'
    sed 's/^  ROOT %/  ROOT %%%/' "$work/plain.hlo" >"$work/bad.hlo"
    expect 2 hbmsim hlo "$work/bad.hlo"
    err_has 'bad.hlo:8:8: error: an instruction is wanted here'
    { cat "$work/plain.hlo" && printf '\000\377\n'; } >"$work/nul.hlo"
    expect 2 hbmsim hlo "$work/nul.hlo"
    err_has 'nul.hlo:'
    head -c 300 $dumps/h100_cond.hlo.gz >"$work/cut.gz"
    expect 2 hbmsim hlo "$work/cut.gz"
    err_has 'cut.gz: error: ends in the middle of its packed data'
else
    skip 'gzip' 'gzip is not installed'
fi
run sh -c '"$HBMSIM" hlo --json - <"$1" | sed "/\"file\"/d"' sh $dumps/h100_cond.hlo.gz
same "$work/out" "$work/want"
expect 0 hbmsim hlo $dumps/h100_cond.hlo.gz -o "$work/told"
out_is ''
ok 'a file is written' grep -q 'liveness bound' "$work/told"

expect 2 hbmsim hlo
err_has "'hlo' wants FILE"
expect 2 hbmsim hlo "$work/no.hlo"
err_is "$work/no.hlo: error: cannot be opened: No such file or directory"
expect 2 hbmsim hlo tests
err_has 'tests: error: '
expect 2 hbmsim hlo -
err_has '<stdin>:1:1: error: '
expect 2 hbmsim hlo --backend cuda $dumps/h100_cond.hlo.gz
err_has 'cpu|gpu|tpu-v4|tpu-v5e|tpu-v5p|tpu-v6e|tpu-v7'
printf 'HloModule deep\nENTRY e {\n  a = ' >"$work/deep.hlo"
awk 'BEGIN { for (i = 0; i < 300000; i++) printf "("; print "" }' >>"$work/deep.hlo"
expect 2 hbmsim hlo "$work/deep.hlo"
err_has 'deep.hlo:3:'
awk 'BEGIN { print "HloModule long"; for (i = 0; i < 3000000; i++) printf "x"; print "" }' \
    >"$work/long.hlo"
expect 2 hbmsim hlo "$work/long.hlo"
err_has 'long.hlo:3:1: error: the file ends too early'

# Several modules in a file: named, and one chosen by name or number; its lines are the file's.
{
    printf '// RUN: nothing\nHloModule one\nENTRY e { ROOT a = f32[8] parameter(0) }\n// -----\n'
    printf 'HloModule two, is_scheduled=true\nENTRY e {\n  a = f32[16] parameter(0)\n'
    printf '  ROOT b = f32[16] negate(a)\n}\nHloModule three:\nENTRY e { ROOT a = f32[] add(b) }\n'
} >"$work/several.hlo"
expect 2 hbmsim hlo "$work/several.hlo"
err_has '3 modules in one file; --module NAME chooses one, or its number: one, two, three'
expect 0 hbmsim hlo --backend gpu --module two "$work/several.hlo"
out_has 'two, 2 instructions, scheduled; rules of gpu'
out_has 'argument + output - alias + temp'
if grep -q "on each device" "$work/out"; then tap "not ok" "an undivided module has no devices"; else tap ok "an undivided module has no devices"; fi
expect 0 hbmsim hlo --module 1 "$work/several.hlo"
out_has 'one, 2 instructions, without a schedule'
expect 2 hbmsim hlo --module 3 "$work/several.hlo"
err_has 'several.hlo:11:30: error: '
expect 2 hbmsim hlo --module four "$work/several.hlo"
err_has "no module 'four', by name or number; there are 3: one, two, three"
expect 2 hbmsim hlo --module four "$work/empty.hlo"

# A module as text within quotes is none of the file's.
printf 'HloModule m, entry_computation_layout={()->f32[2]}, origin_recovery_table={\n  {"c"} : {"c0"},\n  "\n    HloModule inner\n\n    ENTRY e { ROOT p = f32[2] parameter(0) }\n  "\n}\nENTRY e { ROOT c = f32[2] constant({1, 2}) }\n' >"$work/quoted.hlo"
expect 0 hbmsim hlo --backend gpu "$work/quoted.hlo"

if command -v python3 >/dev/null 2>&1; then
    for dump in $dumps/*.gz; do
        hbmsim hlo --json "$dump" >"$work/json" || true
        ok "valid JSON: $dump" python3 -c 'import json,sys; json.load(open(sys.argv[1]))' "$work/json"
    done
else
    skip 'valid JSON' 'python3 is not installed'
fi
# a dump folder: its largest module, or the one that is named; protos by their text
dir=$work/dump
mkdir "$dir"
cp $dumps/h100_cond.hlo.gz "$dir/module_0007.jit_step.sm_9.0_gpu_after_optimizations.txt.gz"
gzip -dc $dumps/cpu_donate.hlo.gz >"$dir/module_0001.jit_small.cpu_after_optimizations.txt"
cp "$dir/module_0001.jit_small.cpu_after_optimizations.txt" "$dir/module_0001.jit_small.before_optimizations.txt"
echo x >"$dir/module_0001.jit_small.cpu_after_optimizations.hlo.pb"
echo x >"$dir/module_0002.jit_none.after_optimizations.hlo.pb"
expect 0 hbmsim hlo "$dir"
err_has ': the largest of 2 modules; --module chooses another'
cp "$work/out" "$work/whole"
expect 0 hbmsim hlo "$dir" --module jit_small
cp "$work/out" "$work/small"
expect 0 hbmsim hlo "$dir/module_0001.jit_small.cpu_after_optimizations.hlo.pb"
same "$work/out" "$work/small"
expect 0 hbmsim hlo "$dir/module_0001.jit_small.cpu_after_optimizations.txt"
same "$work/out" "$work/small"
expect 2 hbmsim hlo "$dir" --module jit_other
err_has "none of 2 modules has 'jit_other' in its name"
expect 2 hbmsim hlo "$dir/module_0002.jit_none.after_optimizations.hlo.pb"
err_has 'is a proto, and its text is not beside it; XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text" writes it'
mkdir "$work/none"
expect 2 hbmsim hlo "$work/none"
err_has 'no *after_optimizations.txt in this folder; XLA_FLAGS='

# The heap in the user's words: kinds of operations and where they stand, in JSON, picture and again
# from JSON.
expect 0 hbmsim hlo tests/golden/hlo/h100_big3.hlo.gz --json --full -o "$work/heap.json" --plot "$work/heap.svg"
ok 'a buffer has kind, label and all that is told' python3 -c "
import json, sys
buffers = {b['name']: b for b in json.load(open('$work/heap.json'))['heap']['buffers']}
b = buffers['gemm_fusion_dot.65']
sys.exit(b['kind'] != 'matrix products' or b['label'] != 'dot_general' or
         b['why'] != 'gemm_fusion_dot.65\njit(step)/jvp()/dot_general' or
         buffers['loop_multiply_fusion.7']['label'] != 'mul (backward)' or
         buffers['loop_multiply_fusion.7']['kind'] != 'element by element' or
         buffers['all-gather-start.10{1}']['kind'] != 'collectives')"
expect 0 hbmsim plot "$work/heap.json" --kind addressmap --text -o "$work/again.svg"
ok 'the picture has them too' grep -q 'matrix products' "$work/again.svg"
ok 'and the labels' grep -q 'convert_element_type (backward)' "$work/again.svg"
expect 0 hbmsim plot "$work/heap.json" --kind addressmap -o "$work/again.svg"
same "$work/heap.svg" "$work/again.svg"
printf 'HloModule m, is_scheduled=true\n\nENTRY %%e (p: f32[1024,1024]) -> f32[1024,1024] {\n  %%p = f32[1024,1024]{1,0} parameter(0)\n  %%d = f32[1024,1024]{1,0} dot(%%p, %%p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  %%n = f32[1024,1024]{1,0} negate(%%d), metadata={op_name="jit(f)/transpose(jvp(M))/layers_3/mlp/neg" source_file="/home/u/model.py" source_line=12}\n  ROOT %%r = f32[1024,1024]{1,0} add(%%n, %%d)\n}\n' >"$work/m.hlo"
expect 0 hbmsim hlo "$work/m.hlo" --json --full
out_has '"label": "model.py:12 layers_3/mlp/neg (backward)"'

# Of unknown length, several MiB: the same as from a file.
{ cat "$work/m.hlo" && awk 'BEGIN { for (i = 0; i < 60000; i++) print "// of a pipe there is no end to see before it comes" }'; } >"$work/long.hlo"
expect 0 hbmsim hlo "$work/long.hlo" -o "$work/of_file"
expect 0 sh -c 'cat "$1" | "$HBMSIM" hlo - -o "$2"' sh "$work/long.hlo" "$work/of_pipe"
sed -i 's/^<stdin>/FILE/' "$work/of_pipe"
sed -i "s|^$work/long.hlo|FILE|" "$work/of_file"
same "$work/of_file" "$work/of_pipe"

# Branches that hand on different arguments do not make one buffer of these.
printf 'HloModule c\nsame { ROOT x = f32[1024] parameter(0) }\nENTRY e {\n  p = pred[] parameter(0)\n  a = f32[1024] parameter(1)\n  b = f32[1024] parameter(2)\n  c = f32[1024] conditional(p, a, b), true_computation=same, false_computation=same\n  ROOT r = f32[1024] add(b, c)\n}\n' >"$work/cond.hlo"
expect 0 hbmsim hlo "$work/cond.hlo" --json
out_has '"argument_bytes": 8193'
finish
