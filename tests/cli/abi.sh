# What hw/gpu_kinds.c and hw/gpu_blas.c say of the vendors' libraries without their headers,
# against those headers where this machine has them: numbers of attributes and types, and how each
# function is called. HIP's are looked for in $HIP_INCLUDE, /opt/rocm/include and /usr/include,
# CUDA's in $CUDA_INCLUDE and /usr/local/cuda/include.
. tests/tap.sh

: "${CXX:=c++}"

# extract KIND: the records of functions and the numbers, as C++ can read them; then a CHECK for
# each row of the tables of that kind, cuda or hip.
extract() {
    case $1 in
    cuda) own='^(cu|nvrtc)' ;;
    hip) own='^(hip|rocblas)' ;;
    esac
    echo '#include "tests/abi/abi.hh"'
    sed -n '/^struct hb_gpu_calls {/,/^};/p' hw/probe_gpu.h
    sed -n '/^struct hb_rtc_calls {/,/^};/p' hw/gpu_rtc.h
    sed -n '/^struct hb_blas_calls {/,/^};/p; /^struct hb_lt_choice {/,/^};/p
        /^struct hb_lt_calls {/,/^};/p' hw/gpu_blas.h
    echo 'namespace ours {'
    awk '/^enum \{/ { on = 1 } on; /\};/ { on = 0 }' hw/gpu_kinds.c hw/gpu_blas.c
    echo '}'
    awk -v own="$own" '
        /^#define [A-Z]+\(member\)/ { macro = $2; sub(/\(.*/, "", macro)
                                      record[macro] = $5 == "" ? $4 : $4 " " $5
                                      gsub(/.*struct |,.*/, "", record[macro]) }
        /^    {"[A-Za-z_0-9]+", [A-Z]+\(/ {
            split($0, part, "\""); split($2, call, /[()]/)
            if (part[2] !~ own) next
            guard = part[2] ~ /^rocblas/ ? "HAS_ROCBLAS" : part[2] ~ /^hipblasLt/ ? "HAS_HIPBLASLT" \
                : part[2] ~ /R0600$/ ? "hipGetDeviceProperties" : ""
            if (guard != "") print "#ifdef " guard
            printf "CHECK(%s, %s, %s)\n", record[call[1]], call[2], part[2]
            if (guard != "") print "#endif" }' hw/gpu_kinds.c
    awk -v kind="^const struct hb_gpu_kind hb_gpu_$1 " '
        $0 ~ kind { on = 1 }
        on { line = $0
             while (match(line, /\.[a-z_0-9]+ = -?[0-9]+/)) {
                 split(substr(line, RSTART + 1, RLENGTH - 1), part, " = ")
                 print "enum { our_" part[1] " = " part[2] " };"
                 line = substr(line, RSTART + RLENGTH) } }
        /^};/ { on = 0 }' hw/gpu_kinds.c
}

# compare KIND FOLDER FLAGS...
compare() {
    what=$1
    folder=$2
    shift 2
    extract "$what" >"$work/ours.h"
    {
        cat "tests/abi/$what.cc"
        echo '#include "ours.h"'
        echo '#include "numbers.h"'
    } >"$work/$what.cc"
    cp "tests/abi/$what-numbers.h" "$work/numbers.h"
    ok "calls and numbers of $what are those of the headers" \
        "$CXX" -std=c++17 -fsyntax-only -w -I. -I"$work" -isystem "$folder" "$@" "$work/$what.cc"
    rows=$(grep -c '^CHECK' "$work/ours.h")
    ok "$rows functions of $what stand in the tables" [ "$rows" -gt 25 ]

    # The check can fail: with a number changed, and with an argument more.
    sed 's/our_bus = /our_bus = 1/' "$work/ours.h" >"$work/new"
    mv "$work/new" "$work/ours.h"
    ok "another number of $what is noticed" fails "$@" -isystem "$folder" "$work/$what.cc"
    extract "$what" | sed 's/(\*event_wait)(void \*event)/(*event_wait)(void *event, int x)/' \
        >"$work/ours.h"
    ok "another call of $what is noticed" fails "$@" -isystem "$folder" "$work/$what.cc"
}

fails() {
    ! "$CXX" -std=c++17 -fsyntax-only -w -I. -I"$work" "$@" >/dev/null 2>&1
}

# find_header NAME FOLDERS...: the first folder that has it, in $found.
find_header() {
    header=$1
    shift
    for found in "$@"; do
        [ -n "$found" ] && [ -e "$found/$header" ] && return 0
    done
    return 1
}

if ! command -v "$CXX" >/dev/null 2>&1; then
    skip 'calls as in the headers' 'no C++ compiler'
    finish
fi
if find_header cublasLt.h "${CUDA_INCLUDE:-}" /usr/local/cuda/include; then
    compare cuda "$found"
else
    skip 'calls of cuda' 'its headers are not on this machine'
fi
if find_header hip/hip_runtime_api.h "${HIP_INCLUDE:-}" /opt/rocm/include /usr/include; then
    compare hip "$found" -D__HIP_PLATFORM_AMD__
else
    skip 'calls of hip' 'its headers are not on this machine'
fi
finish
