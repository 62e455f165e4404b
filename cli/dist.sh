#!/bin/sh
# dist.sh VERSION FOLDER: FOLDER/hbmsim-VERSION.tar.gz, the sources as they stand, the same bytes for
# the same sources: what git tracks, or, of an unpacked tarball, all but what was built.
set -eu
cd "$(dirname "$0")/.."
name=hbmsim-$1
mkdir -p "$2"
list=$(mktemp)
trap 'rm -f "$list"' EXIT
if [ -e .git ]; then
    git ls-files
else
    find . -type f ! -path './build/*' ! -path '*/__pycache__/*' ! -path './debian/tmp/*' ! -name '*.o' |
        sed 's|^\./||'
fi | LC_ALL=C sort >"$list"
tar --create --no-recursion --files-from="$list" --transform "s|^|$name/|" --sort=name \
    --mtime='2000-01-01 00:00:00Z' --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w,a+X |
    gzip -9n >"$2/$name.tar.gz.part"
mv "$2/$name.tar.gz.part" "$2/$name.tar.gz"
echo "$2/$name.tar.gz"
