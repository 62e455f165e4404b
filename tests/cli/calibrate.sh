# hbmsim calibrate: its real code path for both kinds of GPU, over stand-in libraries that have the
# drivers' entry points and a clock of their own, with each of their troubles; and for the
# processor of this machine. Needs a C compiler.
. tests/tap.sh

: "${CC:=cc}"
if ! command -v "$CC" >/dev/null 2>&1; then
    skip 'calibrate over stand-in libraries' 'no C compiler'
    finish
    exit
fi
CC=$CC sh tests/standin/build.sh "$work/libs"
file=$work/profile.yaml

# measure BACKEND TROUBLES OPTIONS...
measure() {
    backend=$1
    troubles=$2
    shift 2
    rm -f "$file"
    run env HBM_STANDIN="$troubles" "$HBMSIM" calibrate --backend "$backend" \
        --libs "$work/libs/$backend" --seconds 5 --date 2026-01-02 -o "$file" "$@"
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
    measure $backend ''
    fine 'error correction (ECC) is on'
    for line in 'hbm_bytes: [4294967296, ' 'page_bytes: [2097152, ' 'cores: [100, ' \
        'hbm_bytes_per_s: [2.048e+12, ' 'clock_hz: [1.5e+09, ' 'context_bytes: [314572800, ' \
        'matmul_curve_f32: [[[512, ' 'matmul_curve_bf16: [[[512, ' 'hbm_curve: [[[' \
        'attention_forward_curve: [[[512, ' 'date: "2026-01-02"' 'host_duplex: [0.8' \
        'name: "measured-stand-in-gpu"'; do
        ok "profile of $backend has $line" has "$line"
    done
    cp "$file" "$work/good.$backend"

    # All that was granted, with what the context and the libraries took, is the whole memory.
    ok "memory of $backend adds up" awk '
        /^context_bytes/ { gsub(/[^0-9 ]/, " "); split($0, f, " "); sum += f[1] }
        /^library_bytes/ { gsub(/[^0-9 ]/, " "); split($0, f, " "); sum += f[1] }
        /^reserve_bytes/ { match($0, /"[0-9]+ bytes were granted/)
                           sum += substr($0, RSTART + 1, RLENGTH - 1) + 0; reserve = $2 }
        END { exit !(sum == 4294967296 && reserve ~ /^\[0,$/) }' "$file"

    # What the stand-ins pretend to is found: 20 GB/s up, 25 down, 1.8 TB/s, 20 TFLOP/s.
    ok "rates of $backend are those of the stand-in" awk '
        function value(line) { gsub(/[][,]/, " ", line); split(line, f, " "); return f[2] + 0 }
        function near(x, want) { return x > 0.97 * want && x < 1.03 * want }
        /^host_up_bytes_per_s/ { up = value($0) }
        /^host_down_bytes_per_s/ { down = value($0) }
        /^vector_f32_flops/ { vector = value($0) }
        /^host_efficiency/ { beside = value($0) }
        END { exit !(near(up, 2e10) && near(down, 2.5e10) && near(vector, 2e13) &&
                     near(beside, 0.8)) }' "$file"

    measure $backend '' --json
    ok "JSON of $backend reads as a profile too" sh -c "'$HBMSIM' devices '$file' >/dev/null"
    measure $backend '' --base nvidia-h100
    fine ''
    ok "links of $backend come from the base" has 'link_topology'
    ok "with --base memory is still the measured one" has 'hbm_bytes: [4294967296, '

    measure $backend multi
    fine '4 devices: links between them are not measured'
    measure $backend mig
    fine 'a slice of a device (MIG)'
    measure $backend busy
    fine 'the device is in use'
    measure $backend slow
    fine 'clocks drifted'
    measure $backend frag
    fine ''
    ok "$backend tells that scattered pages do not serve" has 'page_bytes: [2097152, '
    ok "$backend with frag differs from without" sh -c "
        ! grep -F 'scattered free pages can serve one large block' '$file'"
    measure $backend interrupt=30
    fine 'stopped early: what was measured until then is written'
    measure $backend interrupt=4
    refused 'stopped before the essentials were measured'

    measure $backend nodevice
    refused 'cannot calibrate: the driver shows no device'
    measure $backend compile
    refused 'cannot compile the kernels: hbmsim.c(1): error: no'
    measure $backend blas
    refused 'cannot start (status 1)'
    measure $backend oom=1
    refused 'memory that is told to be free is not granted'
    measure $backend '' --device 3
    refused 'there is no device 3; the driver shows 1, from 0'
    for launch in 1 5 300; do
        measure $backend launch=$launch
        refused 'unspecified launch failure (719)'
    done

    # Any allocation or event may fail once: never a crash, a leak or half a file.
    wrong=
    for trouble in oom event; do
        for n in 2 4 5 7 10 20 80 400; do
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
ok 'with eight bit products' grep -q 'matmul_curve_fp8' "$work/good.cuda"

measure cuda version
refused 'the driver is version 9000; 11000 or newer is needed'

# A library without a function, and none at all.
$CC -std=gnu11 -O1 -fPIC -shared -Wl,-soname,libcuda.so.1 -o "$work/libs/cuda/libcuda.so.1" \
    tests/standin/gpu.c -DPART_DRIVER -DSTANDIN_CUDA -DWITHOUT_ELAPSED -lm -pthread
measure cuda ''
refused 'libcuda.so.1 has no function cuEventElapsedTime; is its version too old?'
rm -r "$work/libs/cuda"
if ldconfig -p 2>/dev/null | grep -qe libcuda.so -e libamdhip64; then
    skip 'a machine without a driver' 'this one has a driver'
else
    measure cuda ''
    refused 'none of libcuda.so.1, libcuda.so can be loaded'
    expect 3 hbmsim calibrate
    err_has 'no device was found; for CUDA: none of libcuda.so.1'
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
