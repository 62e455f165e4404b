# Builds the stand-in libraries into the folders $1/cuda and $1/hip: sh build.sh DIR
set -eu
here=$(dirname "$0")
: "${CC:=cc}"
part() { # folder, soname, flags...
    folder=$1 name=$2
    shift 2
    $CC -std=gnu11 -O1 -fPIC -shared -Wl,-soname,"$name" -o "$folder/$name" \
        "$here/gpu.c" "$@" \
        -lm -pthread
}
kind() { # folder, flag, driver, compiler, products
    mkdir -p "$1"
    part "$1" "$3" "$2" -DPART_DRIVER
    for rest in "$4 -DPART_RTC" "$5 -DPART_BLAS" ${6:+"$6 -DPART_LT"}; do
        # shellcheck disable=SC2086
        set -- "$1" "$2" "$3" "$4" "$5" "${6:-}"
        part "$1" "${rest% *}" "$2" "${rest#* }" -L"$1" -l:"$3" '-Wl,-rpath,$ORIGIN'
    done
}
kind "$1/cuda" -DSTANDIN_CUDA libcuda.so.1 libnvrtc.so.12 libcublas.so.12 libcublasLt.so.12
kind "$1/hip" -DSTANDIN_HIP libamdhip64.so.6 libhiprtc.so.6 librocblas.so.4
