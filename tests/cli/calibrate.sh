# hbmsim calibrate: its real code path for both kinds of GPU, over stand-in libraries that have the
# drivers' entry points and a clock of their own, with each of their troubles; and for the
# processor of this machine. Needs a C compiler.
. tests/tap.sh

: "${CC:=cc}"
if ! command -v "$CC" >/dev/null 2>&1; then
    skip 'calibrate over stand-in libraries' 'no C compiler'
    finish
fi
CC=$CC sh tests/standin/build.sh "$work/libs"
file=$work/profile.yaml
seconds=5

# with FOLDER...: the stand-ins that are looked in from here on.
with() {
    folders=
    for folder in "$@"; do folders="$folders --libs $work/libs/$folder"; done
}

# measure BACKEND TROUBLES OPTIONS...
measure() {
    backend=$1
    troubles=$2
    shift 2
    rm -f "$file"
    # shellcheck disable=SC2086
    run env HBM_STANDIN="$troubles" "$HBMSIM" calibrate --backend "$backend" $folders \
        --seconds "$seconds" --date 2026-01-02 -o "$file" "$@"
    last="calibrate --backend $backend with ${troubles:-no trouble} $*"
}

# Nothing was lost, freed twice or used beyond its end.
clean() { ! grep -q -e standin: -e Sanitizer -e 'runtime error' "$work/err"; }
has() { grep -qF -e "$1" "$file"; }
nothing_written() { [ ! -e "$file" ]; }

# Ends well and says TEXT; the file reads as a profile.
fine() {
    ok "status 0: $last" [ "$status" = 0 ]
    ok "the stand-ins are content: $last" clean
    [ -z "$1" ] || err_has "$1"
    run hbmsim devices "$file"
    ok "its profile reads: $last" [ "$status" = 0 ]
}

# Ends with status 3, says TEXT and writes nothing.
refused() {
    ok "status 3: $last" [ "$status" = 3 ]
    ok "the stand-ins are content: $last" clean
    err_has "$1"
    ok "nothing is written: $last" nothing_written
}

for backend in cuda hip; do
    with $backend
    measure $backend ''
    fine 'error correction (ECC) is on'
    for line in 'hbm_bytes: [4294967296, ' 'page_bytes: [2097152, ' 'cores: [100, ' \
        'hbm_bytes_per_s: [2.048e+12, ' 'clock_hz: [1.5e+09, ' 'context_bytes: [314572800, ' \
        'library_bytes: [67108864, ' 'matmul_curve_f32: [[[512, ' 'matmul_curve_bf16: [[[512, ' \
        'matmul_curve_fp8: [[[512, ' 'matmul_curve_int8: [[[512, ' 'hbm_curve: [[[' \
        'date: "2026-01-02"' 'host_duplex: [0.8' 'name: "measured-stand-in-gpu"' \
        'softmax_part: [0.' 'norm_part: [0.7' 'adam_part: [0.8' 'product_burst: [1.0' \
        'by the other library' '1400 MHz, memory 2000 MHz at the lowest under work' \
        'held back by power' 'power: "limit 700 W; 6'; do
        ok "profile of $backend has $line" has "$line"
    done
    ok "attention is not made up for $backend" sh -c "! grep -q '^attention' '$file'"
    cp "$file" "$work/good.$backend"

    # All that was granted, with what the context and the libraries took, is the whole memory.
    ok "memory of $backend adds up" awk '
        /^context_bytes/ { gsub(/[^0-9 ]/, " "); split($0, f, " "); sum += f[1] }
        /^library_bytes/ { gsub(/[^0-9 ]/, " "); split($0, f, " "); sum += f[1] }
        /^reserve_bytes/ { match($0, /"[0-9]+ bytes were granted/)
                           sum += substr($0, RSTART + 1, RLENGTH - 1) + 0; reserve = $2 }
        # and 32 MiB are the workspace, which frameworks own
        END { exit !(sum == 4294967296 - 33554432 && reserve ~ /^\[0,$/) }' "$file"

    # What the stand-ins pretend to is found: 20 GB/s up, 25 down, 1.8 TB/s, 20 TFLOP/s, 1.5 us
    # between kernels, which no curve holds: 2 us of each product are those and 0.5.
    ok "rates of $backend are those of the stand-in" awk '
        function value(line) { gsub(/[][,]/, " ", line); split(line, f, " "); return f[2] + 0 }
        function near(x, want) { return x > 0.97 * want && x < 1.03 * want }
        /^host_up_bytes_per_s/ { up = value($0) }
        /^host_down_bytes_per_s/ { down = value($0) }
        /^vector_f32_flops/ { vector = value($0) }
        /^host_efficiency/ { beside = value($0) }
        /^op_latency_ns/ { gap = value($0) }
        /^peak_f32_flops/ { peak = value($0) }
        /^matmul_curve_f32/ { gsub(/[][,]/, " "); split($0, f, " "); part = f[3] + 0 }
        END { exit !(near(up, 2e10) && near(down, 2.5e10) && near(vector, 2e13) &&
                     near(beside, 0.8) && gap > 1000 && gap < 2000 &&
                     near(part * peak, 2 * 512 ^ 3 / (500 + 4 * 512 ^ 3 / 20e12 * 1e9) * 1e9)) }' \
        "$file"

    measure $backend '' --json
    ok "JSON of $backend reads as a profile too" sh -c "'$HBMSIM' devices '$file' >/dev/null"
    measure $backend '' --base nvidia-h100
    fine ''
    ok "links of $backend come from the base" has 'link_topology'
    ok "with --base memory is still the measured one" has 'hbm_bytes: [4294967296, '

    measure $backend multi
    fine 'links go into no profile without a --base that joins so many'
    ok "copies of all devices of $backend share the way" grep -qE '^host_shared: \[0\.(49|50)' "$file"
    measure $backend mig
    fine 'a slice of a device (MIG)'
    measure $backend busy
    fine 'how much is granted is not measured: the device is in use'
    measure $backend shared
    err_has 'the device shares its memory with the host'
    fine "how much is granted is not measured: this device's memory is the host's too"
    ok "a shared memory of $backend is left to the others" has '"not measured: taken as nothing"'
    measure $backend '' --no-capacity
    fine 'how much is granted is not measured: as wished'
    measure $backend throttle
    fine ''
    ok "$backend that slows down is told from one that does not" grep -qE '^product_burst: \[1\.(09|1)' "$file"
    measure $backend nosmi
    fine 'power, clocks and partitions are not told: lib'
    ok "without AMD SMI or NVML $backend has no power" has 'power: "not told"'
    measure $backend slow
    fine 'clocks drifted'
    measure $backend frag
    fine ''
    ok "$backend tells that scattered pages do not serve" has 'page_bytes: [2097152, '
    ok "$backend with frag differs from without" sh -c "
        ! grep -F 'scattered free pages can serve one large block' '$file'"
    measure $backend interrupt=200
    fine 'stopped early: what was measured until then is written'
    measure $backend interrupt=4
    refused 'stopped before the essentials were measured'

    measure $backend nodevice
    refused 'cannot calibrate: the driver shows no device'
    measure $backend compile
    refused 'hbmsim.c(1): error: no'
    measure $backend blas
    refused 'cannot start (status 1)'
    measure $backend oom=1
    refused 'no workspace for matrix products (2)'
    measure $backend oom=2
    refused 'memory that is told to be free is not granted'
    measure $backend '' --device 3
    refused 'there is no device 3; the driver shows 1, from 0'
    for launch in 1 5 300; do
        measure $backend launch=$launch
        refused 'unspecified launch failure (719)'
    done

    # Any call of any library may fail once, each of those of the beginning and many later ones:
    # never a crash, a leak or half a file.
    wrong=
    seconds=1
    for n in $(seq 1 120) $(seq 150 197 1500) 5000 20000; do
        measure $backend fail="$n"
        case $status in
        0) hbmsim devices "$file" >/dev/null 2>&1 || wrong="$wrong $n" ;;
        3) nothing_written || wrong="$wrong $n" ;;
        *) wrong="$wrong $n" ;;
        esac
        clean || wrong="$wrong $n"
    done
    seconds=5
    for trouble in oom event; do
        for n in 2 4 7 20 400; do
            measure $backend $trouble=$n
            case $status in
            0) hbmsim devices "$file" >/dev/null 2>&1 || wrong="$wrong $trouble=$n" ;;
            3) nothing_written || wrong="$wrong $trouble=$n" ;;
            *) wrong="$wrong $trouble=$n" ;;
            esac
            clean || wrong="$wrong $trouble=$n"
        done
    done
    ok "each failure of $backend is whole or nothing$wrong" [ -z "$wrong" ]
done
ok 'eight bit products with sums in fewer bits' \
    grep -q 'matmul_curve_fp8.*with fast accumulation 6.7' "$work/good.cuda"

# Collectives against the model of links: half of its rate was pretended.
with cuda
measure cuda multi --base nvidia-h100
fine 'reduce-scatter of 256.0 MiB over 4 devices: '
ok 'the link curve is the one of the stand-in' sh -c \
    "grep -qE '^link_curve: .*\[2.684355e\+08, 0\.(49|50)' '$file'"
measure cuda multi,noccl --base nvidia-h100
fine 'libnccl.so.2 does not start (2)'
with hip
measure hip multi --base amd-mi300x
fine 'permute of 256.0 MiB over 4 devices: '
ok 'a link curve by RCCL' has 'link_curve: [[['
wrong=
with cuda
for n in 1 2 3 7 40 300; do
    measure cuda "multi,ccl=$n" --base nvidia-h100
    case $status in
    0) hbmsim devices "$file" >/dev/null 2>&1 || wrong="$wrong $n" ;;
    3) nothing_written || wrong="$wrong $n" ;;
    *) wrong="$wrong $n" ;;
    esac
    clean || wrong="$wrong $n"
done
ok "each failure of NCCL is whole or nothing$wrong" [ -z "$wrong" ]

# Libraries of one version: those that fit the driver first, all of them or none.
chosen() { ok "chosen: $1" has "$1"; }
with cuda13 cuda cuda11
measure cuda ''
fine ''
chosen 'libnvrtc.so.12 12.8 (sm_90), libcublas.so.12 120805, libcublasLt.so.12"'
measure cuda driver=13
fine ''
chosen 'libnvrtc.so.13 13.8 (sm_90), libcublas.so.13 130805, libcublasLt.so.13"'
measure cuda compile=12
fine ''
chosen 'libnvrtc.so.11.2 11.8 (sm_90), libcublas.so.11 110805'
measure cuda newdevice
fine ''
chosen 'libnvrtc.so.12 12.8 (PTX of compute_90)'
mkdir "$work/libs/bare" "$work/libs/half"
cp "$work/libs/cuda/libcuda.so.1" "$work/libs/bare"
cp "$work/libs/cuda/libnvrtc.so.12" "$work/libs/half"
with bare half cuda11
measure cuda ''
fine ''
chosen 'libnvrtc.so.11.2 11.8 (sm_90), libcublas.so.11'
with bare cuda13
measure cuda ''
refused 'version 13: the driver does not take the kernels of libnvrtc.so.13 (sm_90): device kernel image is invalid (200)'
measure cuda newdevice
refused 'libnvrtc.so.13 (PTX of compute_90): the provided PTX was compiled with an unsupported toolchain (222)'
with hip hip7
measure hip ''
fine ''
chosen 'libhiprtc.so.7 7.8 (gfx942:sramecc+:xnack-), librocblas.so.5, libhipblaslt.so.1'
rm "$work/libs/hip7/librocblas.so.5" "$work/libs/hip7/libhipblaslt.so.1"
measure hip ''
fine ''
chosen 'libhiprtc.so.6 6.8 (gfx942:sramecc+:xnack-), librocblas.so.4, libhipblaslt.so.0'

# A file that is there and does not load says what it lacks itself.
mkdir "$work/libs/broken"
cp "$work/libs/cuda/"* "$work/libs/broken"
echo 'int hb_lacking(void); int hb_call(void) { return hb_lacking(); }' >"$work/a.c"
echo 'int hb_lacking(void) { return 0; }' >"$work/b.c"
$CC -fPIC -shared -Wl,-soname,libneeded.so.9 -o "$work/libneeded.so.9" "$work/b.c"
$CC -fPIC -shared -Wl,-soname,libnvrtc.so.12 -o "$work/libs/broken/libnvrtc.so.12" "$work/a.c" \
    -Wl,--no-as-needed "$work/libneeded.so.9"
with broken
measure cuda ''
refused "broken/libnvrtc.so.12 is there but does not load: libneeded.so.9: cannot open"

# AMD's devices: eight bit floats by architecture, rates and caches that the driver does not tell.
with hip
measure hip gfx950
fine ''
ok 'OCP floats of gfx950, and four bits' grep -q '^matmul_curve_fp4' "$file"
measure hip gfx90a
fine ''
ok 'gfx90a has no eight bit floats' sh -c "! grep -q '^matmul_curve_fp8' '$file'"
ok 'two transfers a clock on gfx90a' has 'hbm_bytes_per_s: [2.048e+12, '
ok 'the cache of gfx90a is the one that is told' has 'cache_bytes: [4194304, '
measure hip ''
ok 'four transfers a clock on gfx942' has 'hbm_bytes_per_s: [2.048e+12, '
ok 'the cache behind the last one' has 'cache_bytes: [268435456, '
measure hip '' --base amd-mi300x
fine ''
ok "the base's rate of AMD's memory" has 'hbm_bytes_per_s: [5.325e+12, '
measure hip partition
fine 'cut into partitions (CPX/NPS4)'

with cuda
measure cuda version
refused 'the driver is version 9000; 11000 or newer is needed'

# A library without a function, and none at all.
$CC -std=gnu11 -O1 -fPIC -shared -Wl,-soname,libcuda.so.1 -o "$work/libs/cuda/libcuda.so.1" \
    tests/standin/driver.c -I. -DSTANDIN_CUDA -DWITHOUT_ELAPSED -lm -pthread
measure cuda ''
refused 'libcuda.so.1 has no function cuEventElapsedTime; is its version too old?'
rm -r "$work/libs/cuda"
if ldconfig -p 2>/dev/null | grep -qe libcuda.so -e libamdhip64; then
    skip 'a machine without a driver' 'this one has a driver'
else
    measure cuda ''
    refused 'there is no libcuda.so.1, libcuda.so'
    expect 3 hbmsim calibrate
    err_has 'no device was found; for CUDA: there is no libcuda.so.1'
    err_has '--backend cpu measures'
fi

# The processor of this machine, really. However loaded it is, and however slow the program made by
# sanitizers: what a profile must have is measured once even when time is up.
rm -f "$file"
expect 0 hbmsim calibrate --backend cpu --seconds 1 -o "$file" --plot "$work/rates.svg"
ok 'it is drawn' grep -q 'aria-label="[^"]* reach' "$work/rates.svg"
expect 0 hbmsim devices "$file"
ok 'it measured memory and products' grep -q '^peak_f32_flops: ' "$file"
if command -v timeout >/dev/null 2>&1; then
    # Ctrl-C comes before or after that: both have one outcome each.
    rm -f "$file"
    run timeout --preserve-status -s INT 3 "$HBMSIM" calibrate --backend cpu --seconds 60 -o "$file"
    last='calibrate --backend cpu, Ctrl-C after 3 seconds'
    if [ "$status" = 3 ]; then
        err_has 'stopped before the essentials were measured: nothing is written'
        ok 'nothing is written' nothing_written
    else
        ok "status 0: $last" [ "$status" = 0 ]
        err_has 'stopped early: what was measured until then is written'
        expect 0 hbmsim devices "$file"
    fi
else
    skip 'Ctrl-C' 'no timeout(1)'
fi

# Options.
expect 2 hbmsim calibrate --backend opencl
expect 2 hbmsim calibrate --seconds 0
expect 2 hbmsim calibrate --backend cpu --base nvidia-h1000
err_has 'nvidia-h100'
expect 0 hbmsim calibrate --help
out_has 'hbmsim calibrate --backend cpu'
finish
