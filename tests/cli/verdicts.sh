# hbmsim validate: records of kind verdict, which say that a step fits or does not, and no more.
. tests/tap.sh

records=tests/golden/verdicts.jsonl

expect 0 hbmsim validate $records
out_has 'reported verdicts                      n failed    right'
out_has 'does not fit'
count=$(grep -c '"kind":"verdict"' $records)
ok "there are $count, of both kinds" test "$count" -ge 30 -a "$(grep -c '"fits":false' $records)" -ge 6
sources=$(grep -c '"source":"[^"]*#[0-9]*"\|"source":"[^"]* of [^"]*"' $records)
ok 'each names its thread' test "$sources" -eq "$count"

expect 0 hbmsim validate --json $records
right=$(sed -n 's/^ *"right": \([0-9]*\).*/\1/p' "$work/out")
failed=$(sed -n '/"verdicts"/,/}/s/^ *"failed": \([0-9]*\).*/\1/p' "$work/out")
ok "$right of $count are right: 96 at least" test "$right" -ge 96
ok 'all are predicted' test "$failed" -eq 0

# A verdict is counted apart: it has no error in per cent, and the gate does not count it.
expect 1 hbmsim validate --max-median 5 $records
head -n 1 tests/golden/lab-tpu.jsonl >"$work/both.jsonl"
head -n 2 $records >>"$work/both.jsonl"
expect 0 hbmsim validate --max-median 50 "$work/both.jsonl"
out_has 'all                                    1      0'
out_has 'all verdicts                           2      0'

# What a verdict needs.
sed -n '1s/"fits":[a-z]*/"fits":null/p' $records >"$work/open.jsonl"
expect 0 hbmsim validate "$work/open.jsonl"
out_has 'a verdict, needs measured.fits: true or false'
sed -n '1s/"device":"[^"]*"/"device":"nobodys-card"/p' $records >"$work/card.jsonl"
expect 0 hbmsim validate "$work/card.jsonl"
out_has 'maxtext-22b--2xv4-128--b13:'
finish
