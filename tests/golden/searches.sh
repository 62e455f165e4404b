#!/bin/sh
# Searches of small spaces, a line each of tests/golden/searches.list: how the best of them does, how
# far it is from its bound, what the search did to know it, and a checksum of its certificate's
# figures. A search that changed has another count; where a bound changed, plan-*.out say how.
# HB_FIRST: no further than the first that differs.
set -euf
: "${HBMSIM:=$PWD/build/fast/hbmsim}"
: "${work:=$(mktemp -d)}"
: >"$work/known"
[ -z "${HB_FIRST:-}" ] || cp "${0%.sh}.out" "$work/known"
grep -v '^#' "${0%.sh}.list" | while read -r model device sets; do
    set -- "tests/$model.yaml" --set "hardware.device=$device"
    for one in $sets; do
        case $one in
        --*=*) set -- "$@" "${one%%=*}" "${one#*=}" ;;
        --*) set -- "$@" "$one" ;;
        *) set -- "$@" --set "$one" ;;
        esac
    done
    "$HBMSIM" plan "$@" --json -o "$work/json" --certificate "$work/certificate" || [ $? = 1 ]
    awk -v what="$model $device $sets" -v sum="$(
        sh tests/golden/certificate.sh <"$work/certificate" | cksum | cut -d ' ' -f 1)" '
        /^  "status": / { line = line " " $2 }
        /^  "gap": / || (/^    "step_seconds": / && !done++) { line = line sprintf(" %.7g", $2) }
        /^    "peak_bytes": / && !peak++ { line = line " " $2 }
        /^  "counts": / { counts = 1 }
        counts && /^    "/ { line = line " " $2 }
        /^  }/ { counts = 0 }
        END { gsub(/[",]/, "", line); print what ":" line "; " sum }' "$work/json" >"$work/line"
    cat "$work/line"
    [ ! -s "$work/known" ] || grep -qxFf "$work/line" "$work/known" || break
done
