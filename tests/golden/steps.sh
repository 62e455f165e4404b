#!/bin/sh
# Steps of small models with a knob or two turned, a line each of tests/golden/steps.list: peak and
# step as --json tells them, what XLA's three orders would need, and checksums of the program, of
# its heap and of its events. The lines that a change moves say what it is about.
set -euf
: "${HBMSIM:=$PWD/build/fast/hbmsim}"
: "${work:=$(mktemp -d)}"
sum() { "$HBMSIM" simulate "$@" | cksum | cut -d ' ' -f 1; }
grep -v '^#' "${0%.sh}.list" | while read -r model device sets; do
    set -- "tests/$model.yaml" --set "hardware.device=$device"
    for one in $sets; do
        set -- "$@" --set "$one"
    done
    orders=--orders
    case $sets in *compiler=torch*) orders= ;; esac
    # shellcheck disable=SC2086
    "$HBMSIM" simulate "$@" --json $orders >"$work/json" || [ $? = 1 ]
    awk -v what="$model $device $sets" -v sums="$(
        sum "$@" --dump=graph) $(sum "$@" --dump=heap) $(sum "$@" --dump=events)" '
        /^  "(peak_bytes|step_seconds)": / || /^    "(list|depth|post|simulated)": / {
            gsub(/[ ",]/, "")
            line = line " " substr($0, index($0, ":") + 1)
        }
        END { print what ":" line "; " sums }' "$work/json"
done
