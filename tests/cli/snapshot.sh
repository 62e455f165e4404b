# hbmsim explain of memory snapshots of PyTorch: who stands at the peak, what is stuck, what other
# settings would have done; nothing of a pickle is run.
. tests/tap.sh

snapshots=tests/golden/snapshots

# The figures are those of the allocator that made it: tests/golden/snapshots/README.md.
expect 0 hbmsim explain $snapshots/step.pickle
out_has 'A memory snapshot of PyTorch: 1 device.'
out_has 'Peak 1.18 GiB in use, at event 1389 of 2133 of the history'
out_has '500.0 MiB   41.3 %       3 blocks  train.py:240 main'
out_has '1.52 GiB reserved at most  with expandable_segments:True'
expect 0 hbmsim explain $snapshots/step.pickle --json
out_has '"peak_bytes": 1269398528'
out_has '"reserved_bytes": 1629487104'
ok 'what stands at the peak is all of it' awk '
    /"at_peak"/ { on = 1 }
    on && /"bytes":/ { gsub(/[^0-9]/, ""); sum += $0 }
    on && /\]/ { on = 0 }
    END { exit sum != 1269398528 }' "$work/out"

for protocol in 2 5; do
    expect 0 hbmsim explain $snapshots/oom-protocol$protocol.pickle
    out_has 'Peak 600.0 MiB in use'
    out_has '  stuck         240.0 MiB  free, in segments that are in use'
    out_has 'A request for 120.0 MiB failed with 30.00 MiB left on the device.'
    out_has 'Fragmentation:'
    out_has '360.0 MiB   60.0 %       6 blocks  train.py:31 main'
    out_has '40.00 MiB of 100.0 MiB in 1 hole, the largest 40.00 MiB'
done

# It would run `true`: it is not.
printf '\200\002cos\nsystem\nU\004true\205R.' >"$work/code.pickle"
expect 2 hbmsim explain "$work/code.pickle"
err_has 'pickle, byte 2: it would import a name of Python'
printf '\200\002}.' >"$work/empty.pickle"
expect 2 hbmsim explain "$work/empty.pickle"
err_has "it has no 'segments'"
head -c 50000 $snapshots/step.pickle >"$work/cut.pickle"
expect 2 hbmsim explain "$work/cut.pickle"
err_has 'the file ends within it'

finish
