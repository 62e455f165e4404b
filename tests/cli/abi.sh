# What hw/probe_cuda.c and hw/probe_hip.c say of the vendors' libraries without their headers,
# against those headers where this machine has them: numbers of attributes and types, and how each
# function is called. HIP's are looked for in $HIP_INCLUDE, /opt/rocm/include and /usr/include,
# CUDA's in $CUDA_INCLUDE and /usr/local/cuda/include.
. tests/tap.sh

: "${CXX:=c++}"

# extract SOURCE: its records of functions and its numbers, as C++ can read them; then a CHECK for
# each row of its tables.
extract() {
    echo '#include "tests/abi/abi.hh"'
    sed -n '/^struct hb_gpu_calls {/,/^};/p; /^struct hb_rtc_calls {/,/^};/p' hw/probe_gpu.h
    sed -n '/^struct lt_choice {/,/^};/p; /^struct lt_calls {/,/^};/p' "$1"
    sed -n '/^struct hb_blas {/,/^};/p' hw/probe_gpu.h
    sed -n '/^struct [a-z]*blas {/,/^};/p' "$1"
    echo 'namespace ours {'
    sed -n '/^enum {/,/};/p' "$1"
    echo '}'
    awk '
        /^#define [A-Z]+\(member\)/ { macro = $2; sub(/\(.*/, "", macro)
                                      record[macro] = $5 == "" ? $4 : $4 " " $5
                                      gsub(/.*struct |,.*/, "", record[macro]) }
        /^    {"[A-Za-z_0-9]+", [A-Z]+\(/ {
            split($0, part, "\""); split($2, call, /[()]/)
            if (part[2] ~ /^rocblas/) print "#ifdef HAS_ROCBLAS"
            printf "CHECK(%s, %s, %s)\n", record[call[1]], call[2], part[2]
            if (part[2] ~ /^rocblas/) print "#endif" }' "$1"
    awk '/^    \.attribute_/ { gsub(/[.,]/, ""); print "enum { our_" $1 " = " $3 " };" }' "$1"
}

# compare NAME SOURCE FOLDER FLAGS...
compare() {
    what=$1
    source=$2
    folder=$3
    shift 3
    extract "$source" >"$work/ours.h"
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
    sed 's/our_attribute_bus = /our_attribute_bus = 1/' "$work/ours.h" >"$work/new"
    mv "$work/new" "$work/ours.h"
    ok "another number of $what is noticed" fails "$@" -isystem "$folder" "$work/$what.cc"
    extract "$source" | sed 's/(\*event_wait)(void \*event)/(*event_wait)(void *event, int x)/' \
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
    exit
fi
if find_header cublasLt.h "${CUDA_INCLUDE:-}" /usr/local/cuda/include; then
    compare cuda hw/probe_cuda.c "$found"
else
    skip 'calls of cuda' 'its headers are not on this machine'
fi
if find_header hip/hip_runtime_api.h "${HIP_INCLUDE:-}" /opt/rocm/include /usr/include; then
    compare hip hw/probe_hip.c "$found" -D__HIP_PLATFORM_AMD__
else
    skip 'calls of hip' 'its headers are not on this machine'
fi
finish
