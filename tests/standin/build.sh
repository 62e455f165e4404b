# Builds the stand-in libraries, a folder for each version of CUDA and ROCm, below $1:
# cuda (the driver and version 12), cuda11, cuda13, hip (6), hip7.
set -eu
here=$(dirname "$0")
: "${CC:=cc}"
part() { # soname, source, flags...
    name=$1 source=$2
    shift 2
    $CC -std=gnu11 -O1 -fPIC -shared -Wl,-soname,"$name" -o "$folder/$name" "$here/$source" \
        -I"$here/../.." "$kind" -DMAJOR="$major" "$@" -lm -pthread
}
after() { # soname, source, flags...: one that needs the driver's library
    part "$@" -L"$driver" -l:"$runtime" "-Wl,-rpath,$driver"
}
version() { # folder, major, compiler, products, planned products
    folder=$root/$1 major=$2
    mkdir -p "$folder"
    [ "$kind" = -DSTANDIN_CUDA ] || driver=$folder
    [ "$1" = cuda11 ] || [ "$1" = cuda13 ] || part "$runtime" driver.c
    after "$3" rtc.c
    after "$4" blas.c -DPART_BLAS
    after "$5" blas.c -DPART_LT
}
mkdir -p "$1"
root=$(cd "$1" && pwd)
kind=-DSTANDIN_CUDA driver=$root/cuda runtime=libcuda.so.1
version cuda 12 libnvrtc.so.12 libcublas.so.12 libcublasLt.so.12
after libnvidia-ml.so.1 smi.c
after libnccl.so.2 ccl.c
version cuda11 11 libnvrtc.so.11.2 libcublas.so.11 libcublasLt.so.11
version cuda13 13 libnvrtc.so.13 libcublas.so.13 libcublasLt.so.13
kind=-DSTANDIN_HIP runtime=libamdhip64.so.6
version hip 6 libhiprtc.so.6 librocblas.so.4 libhipblaslt.so.0
after libamd_smi.so.25 smi.c
after librccl.so.1 ccl.c
runtime=libamdhip64.so.7
version hip7 7 libhiprtc.so.7 librocblas.so.5 libhipblaslt.so.1
