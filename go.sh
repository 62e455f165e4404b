cd /work/bench
L() { LD_LIBRARY_PATH=$PWD/stubs JAX_PLATFORMS=cpu XLA_FLAGS=--xla_gpu_autotune_level=0 LAB_PLATFORM=rocm TMPDIR=/tmp/gg/tmp nice -n 15 r/bin/python labrun_gpu.py /tmp/gg/$1.jsonl /tmp/gg/$1.rows.jsonl; }
C() { JAX_PLATFORMS=cpu JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1 XLA_FLAGS=--xla_gpu_autotune_level=0 LAB_PLATFORM=cuda TMPDIR=/tmp/gg/tmp nice -n 15 c/bin/python labrun_gpu.py /tmp/gg/$1.jsonl /tmp/gg/$1.rows.jsonl; }
for a in $*; do case $a in c*) C $a;; r*) L $a;; esac; done
