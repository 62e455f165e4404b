# The Python package: from the source tree, and from a wheel in a clean virtual environment, which
# has neither this tree nor a network.
. tests/tap.sh

unset PYTHONPATH HBMSIM_PREFIX
if [ ! -e "$HB_BUILD/lib/libhbmsim.so.1" ] || [ "$(basename "$HB_BUILD")" != fast ]; then
    skip 'the Python package' 'its library is of the plain build'
    finish
fi
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
    skip 'the Python package' 'no Python of 3.8 or later'
    finish
fi

# checks NAME PYTHON: tests/python/checks.py, of what that interpreter imports.
checks() {
    (cd / && PYTHONDONTWRITEBYTECODE=1 "$2" "$3/tests/python/checks.py" "$HBMSIM" "$3") >"$work/checks" 2>&1 ||
        true
    ok "$1: the checks ran to their end" \
        test "$(grep -c '^\(not \)\?ok ' "$work/checks")" = "$(sed -n 's/^1\.\.//p' "$work/checks")"
    ok "$1: $(grep -c '^ok ' "$work/checks") checks" sh -c '! grep -A 20 "^not ok" "$1" | sed "s/^/# /" | grep .' sh "$work/checks"
}
tree=$PWD
PYTHONPATH=$tree/python
export PYTHONPATH
checks 'the source tree' python3 "$tree"
unset PYTHONPATH

for word in python3 strip objdump ldd "${CC:-cc}"; do
    if ! command -v "$word" >/dev/null 2>&1; then
        skip 'the wheel' "no $word"
        finish
    fi
done
run make -s BUILD="$(dirname "$HB_BUILD")" wheel
ok 'make wheel' test "$status" = 0
show "$work/err"
wheel=$(tail -n 1 "$work/out")
ok 'it is a wheel of this glibc or an older one' \
    sh -c 'case $1 in */hbmsim-*-py3-none-manylinux_2_[0-9]*_*.whl) ;; *) exit 1 ;; esac' sh "$wheel"
run python3 - "$wheel" <<'PY'
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
names = wheel.namelist()
assert wheel.testzip() is None
for wanted in ("hbmsim/__init__.py", "hbmsim/native/lib/libhbmsim.so.1", "hbmsim/native/bin/hbmsim",
               "hbmsim/native/share/hbmsim/models/zoo/llama3-8b.yaml", "hbmsim/py.typed"):
    assert wanted in names, wanted
metadata = wheel.read(next(n for n in names if n.endswith("METADATA"))).decode()
for bundled in (n.split("/")[-1] for n in names if n.startswith("hbmsim/native/libs/")):
    assert bundled in metadata, bundled
PY
ok 'it has the program, the library, its data, and tells what is bundled' test "$status" = 0
show "$work/err"
cp "$wheel" "$work/first.whl"
run make -s BUILD="$(dirname "$HB_BUILD")" wheel
ok 'made again it is the same' same "$wheel" "$work/first.whl"

if ! python3 -m venv "$work/venv" >"$work/out" 2>&1; then
    skip 'the wheel in a clean environment' 'no venv with pip'
    finish
fi
run "$work/venv/bin/pip" install --no-index --no-deps --disable-pip-version-check "$wheel"
ok 'pip installs it without a network' test "$status" = 0
show "$work/err"
# The tree and the build are out of sight: what the checks need of examples is copied.
mkdir -p "$work/tree/tests"
cp -r examples "$work/tree/examples"
cp -r tests/python "$work/tree/tests/python"
checks 'the wheel' "$work/venv/bin/python" "$work/tree"
run env -u HBMSIM_DATA sh -c 'cd / && "$1" -c "import hbmsim; print(hbmsim.program)"' sh "$work/venv/bin/python"
out_has "$work/venv/"
run env PATH="$work/venv/bin:$PATH" sh -c 'cd / && hbmsim models'
ok 'the program comes with it' test "$status" = 0
out_has llama3-8b
run sh -c 'cd / && "$1" -m hbmsim --version' sh "$work/venv/bin/python"
out_is "$(hbmsim --version)"
lib=$(ls -d "$work"/venv/lib/python3*/site-packages/hbmsim/native)
for file in bin/hbmsim lib/libhbmsim.so.1; do
    run ldd "$lib/$file"
    ok "$file takes its libraries from the wheel" \
        sh -c 'grep -c "/native/[a-z]*/\.\./libs/libglpk" "$1" && ! grep -E "lib(glpk|yaml|cairo|z|png16)[-.]" "$1" | grep -v "/native/[a-z]*/\.\./libs/"' sh "$work/out" >&2
done
finish
