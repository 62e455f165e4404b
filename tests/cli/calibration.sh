# The intervals of peaks on the calibration records: the third of them that the table was not made
# from, at three confidences, of all and of each compiler within three standard deviations of what
# chance gives; how wide they are; and the table itself, which a change of the model makes stale:
# `make calibration` takes seconds.
. tests/tap.sh

records=$(find tests/calibration -name '*.jsonl' | sort)

# "coverage" and "n" of the summary of all.
summary() {
    sed -n '/^  "summary"/,/^  }/s/.*"'"$1"'": \([-0-9.e+]*\),*$/\1/p' "$work/out" | head -n 1
}

# What lies outside of an interval of confidence $1: no more, and no less, than chance explains. The
# prediction itself is always inside, which takes some from the outside. Four deviations: a plan and
# its neighbours, a model drawn several times are not as many independent records.
covers() {
    awk -v n="$(summary n)" -v got="$(summary coverage)" -v want="$1" -v least="$2" 'BEGIN {
        slack = 4 * sqrt(want * (1 - want) / n)
        exit !(n > 0 && got >= want - slack && got <= want + slack + least)
    }'
}

# The median interval is at most that wide, in per cent of the prediction.
is_narrow() {
    awk -v got="$(summary median_width_pct)" -v most="$1" 'BEGIN { exit !(got > 0 && got <= most) }'
}

for percent in 50 80 95; do
    # shellcheck disable=SC2086 # a list of files
    expect 0 hbmsim validate --json --part hold-out --confidence $percent $records
    cp "$work/out" "$work/kept"
    ok "unseen records: $percent % within ($(summary coverage) of $(summary n))" \
        covers 0.$percent 0.1
done
ok 'no interval is made of nothing' grep -q '"low_bytes": [1-9]' "$work/kept"
ok "half of them are at most 16 % wide ($(summary median_width_pct))" is_narrow 16
while read -r compiler most; do
    expect 0 hbmsim validate --json --part hold-out "tests/calibration/$compiler.jsonl"
    ok "$compiler: 95 % within ($(summary coverage) of $(summary n))" covers 0.95 0.02
    ok "$compiler: half are at most $most % wide ($(summary median_width_pct))" is_narrow "$most"
done <<END
tpu 19.4
cuda 13.2
rocm 11.2
END

# Of the records that the table is from, those outside were counted when it was made: once a change
# of the model lets more than that out, it is time for a new one.
# shellcheck disable=SC2086
expect 0 hbmsim validate --json --part learn $records
ok "the table is not stale, else: make calibration ($(summary coverage) of $(summary n))" \
    covers 0.95 0.05
learned=$(summary n)
# shellcheck disable=SC2086
expect 0 hbmsim validate --calibration --part learn $records
cp "$work/out" "$work/table.c"
ok 'the table has a score for each record, else: make calibration' \
    grep -q "^/\* .* from $learned records" "$work/table.c"
ok 'it is the one of the program, but for what the model has learnt since' \
    test "$(sed -n '1p;$p' "$work/table.c")" = "$(sed -n '1p;$p' sim/engine/interval_table.c)"
# shellcheck disable=SC2086
expect 0 hbmsim validate --calibration --part learn $records -o "$work/again.c"
same "$work/table.c" "$work/again.c"

expect 2 hbmsim validate --confidence 20 tests/calibration/tpu.jsonl
err_has "--confidence: '20'; allowed: per cent from 50 to 99.9"
finish
