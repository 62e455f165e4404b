#!/bin/sh
# package.sh [SUITE]: `make package`. The tarball of `make dist`, from it Debian's packages, what
# lintian says of them, and their own tests (debian/tests) in a bare chroot made by debootstrap, in
# which nothing of this machine is. Prints TAP. Needs root for the chroot and a mirror (the one that
# apt uses here); what is not there is skipped with its reason. Minutes: no part of `make test`.
set -eu
cd "$(dirname "$0")/.."
suite=${1:-$(. /etc/os-release && echo "${VERSION_CODENAME:-}")}
work=${HB_PACKAGE_WORK:-$(mktemp -d)}
count=0
failed=0

cleanup() {
    for place in proc dev; do
        mountpoint -q "$work/root/$place" && umount "$work/root/$place"
    done
    [ -n "${HB_PACKAGE_WORK:-}" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

say() {
    count=$((count + 1))
    if [ "$2" = 0 ]; then
        echo "ok $count - $1"
    else
        failed=$((failed + 1))
        echo "not ok $count - $1"
        tail -n 40 "$work/log" | sed 's/^/# /'
    fi
}

# step NAME COMMAND...
step() {
    name=$1
    shift
    status=0
    "$@" >"$work/log" 2>&1 || status=$?
    say "$name" "$status"
    return "$status"
}

finish() {
    echo "1..$count"
    exit "$((failed != 0))"
}

# need TOOL...
need() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 && continue
        count=$((count + 1))
        echo "ok $count - the rest # SKIP $tool is not installed"
        finish
    done
}

version=$(sed -n 's/^VERSION *:= *//p' Makefile)
step 'make dist' make -s dist BUILD="$work" || finish
step 'it unpacks' tar -C "$work" -xzf "$work/hbmsim-$version.tar.gz" || finish
tree=$work/hbmsim-$version
step 'again from what it holds, it is the same' sh -c \
    'sh "$1/cli/dist.sh" "$2" "$3/again" && cmp "$3/again/hbmsim-$2.tar.gz" "$3/hbmsim-$2.tar.gz"' \
    sh "$tree" "$version" "$work" || true
need dpkg-buildpackage dh lintian
step 'Debian packages are built from it' sh -c 'cd "$1" && dpkg-buildpackage -us -uc -b' sh "$tree" ||
    finish
for name in hbmsim hbmsim-data libhbmsim1 libhbmsim-dev python3-hbmsim; do
    step "$name" sh -c 'ls "$1/$2"_*.deb' sh "$work" "$name" || true
done
# What only who uploads the packages has: a bug to close and an address.
step 'lintian finds nothing' sh -c \
    'lintian --allow-root --fail-on error,warning --suppress-tags "$2" "$1"/*.changes' sh "$work" \
    initial-upload-closes-no-bugs,bogus-mail-host,bogus-mail-host-in-debian-changelog || true

need debootstrap
if [ "$(id -u)" != 0 ] || [ -z "$suite" ]; then
    count=$((count + 1))
    echo "ok $count - the rest # SKIP a chroot needs root and a suite's name"
    finish
fi
mirror=${HB_MIRROR:-$(apt-get indextargets --format '$(SITE)' 2>/dev/null | grep -v security | head -n 1)}
step 'a bare chroot' debootstrap --variant=minbase "$suite" "$work/root" "${mirror:-http://deb.debian.org/debian}" ||
    finish
mount -t proc proc "$work/root/proc" 2>/dev/null || true
cp "$work"/*.deb "$work/root/root/"
# install NAME...: packages of that chroot's /root, or of its mirror where no file has the name.
install() {
    # shellcheck disable=SC2016
    chroot "$work/root" env DEBIAN_FRONTEND=noninteractive sh -c '
        for name; do
            set -- "$@" "$(ls /root/"$name"_*.deb 2>/dev/null || echo "$name")"
            shift
        done
        exec apt-get install -y -qq --no-install-recommends "$@"' sh "$@"
}
step 'its own tests need no more than it says: packages install' install hbmsim hbmsim-data libhbmsim1 \
    python3-hbmsim || finish
cp -r "$tree/debian/tests" "$work/root/root/tests"
for name in program python; do
    step "debian/tests/$name" chroot "$work/root" sh "/root/tests/$name" || true
done
step 'the headers install' install libhbmsim-dev gcc libc6-dev pkg-config &&
    step 'debian/tests/library' chroot "$work/root" sh /root/tests/library || true
step 'all of it is removed' chroot "$work/root" sh -c \
    'apt-get purge -y -qq hbmsim hbmsim-data libhbmsim1 libhbmsim-dev python3-hbmsim && ! find /usr -name "*hbmsim*" | grep .' ||
    true
finish
