# hbmsim sweep under mpirun: any number of ranks gives the bytes of one process. And killed: what was
# done stays, nothing is done twice, nothing is lost.
. tests/tap.sh

model=examples/quickstart/model.yaml
grid="--x batch.global=8..256+8 --y batch.seq=1024..32768+1024"
cells=1024

expect 0 hbmsim sweep $model $grid --csv
cp "$work/out" "$work/one.csv"

# Each cell stands once in the journal.
stand_once() {
    [ "$(sed -n 's/^{"cell": *\([0-9]*\),.*/\1/p' "$1" | sort -u | wc -l)" = $cells ] &&
        [ "$(grep -c '"cell"' "$1")" = $cells ]
}

# kill_at JOURNAL LINES WORDS...: runs, and kills once the journal has so many lines.
kill_at() {
    journal=$1
    lines=$2
    shift 2
    "$@" >/dev/null 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        [ ! -f "$journal" ] || [ "$(wc -l <"$journal")" -lt "$lines" ] || break
    done
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
}

round=0
for jobs in 1 3; do
    for lines in 2 100 500; do
        round=$((round + 1))
        journal=$work/journal$round
        kill_at "$journal" $lines "$HBMSIM" sweep $model $grid --jobs $jobs --journal "$journal"
        kept=$(grep -c '"cell"' "$journal")
        expect 0 hbmsim sweep $model $grid --csv --jobs $jobs --journal "$journal"
        same "$work/out" "$work/one.csv"
        ok "each cell once, $kept of them before the kill" stand_once "$journal"
    done
done

if [ "${HB_BUILD##*/}" != fast ] || ! pkg-config --exists ompi-c 2>/dev/null ||
    ! command -v mpirun >/dev/null 2>&1; then
    skip 'ranks' 'no Open MPI here, or a build with instruments'
    finish
fi

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
expect 0 make -s MPI=1 BUILD="${HB_BUILD%/*}" "$HB_BUILD/mpi/hbmsim"
mpi=$PWD/$HB_BUILD/mpi/hbmsim
expect 0 "$mpi" sweep $model $grid --csv
same "$work/out" "$work/one.csv"
for count in 1 2 3; do
    expect 0 mpirun --oversubscribe -n $count "$mpi" sweep $model $grid --csv -o "$work/ranks$count"
    same "$work/ranks$count" "$work/one.csv"
done
head -c 20000 "$work/journal1" >"$work/part"
expect 0 mpirun --oversubscribe -n 3 "$mpi" sweep $model $grid --csv --journal "$work/part"
same "$work/out" "$work/one.csv"
ok 'each cell once' stand_once "$work/part"

# What is wrong is said once.
run mpirun --oversubscribe -n 3 "$mpi" sweep $model --x batch.global=12 --y batch.seq=2048
ok 'status 2' test "$status" = 2
ok 'said once' test "$(grep -c 'none of 1 cells can be' "$work/err")" = 1
run sh -c "mpirun --oversubscribe -n 2 '$mpi' sweep - --x batch.global=8,16 <$model"
ok 'standard input is that of one process' test "$status" = 2
err_has 'not all of 2 processes could read it'
run mpirun --oversubscribe -n 2 "$mpi" sweep $model $grid --jobs 2
err_has '--jobs: 2 processes of MPI are there already'

finish
