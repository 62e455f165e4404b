# examples/setup.sh on machines that are made up: a PATH of our own with the tools of a bare system,
# a package tool that writes down how it was called, and an id that is root or not.
. tests/tap.sh

real_cc=$(command -v cc)
bin=$work/bin
calls=$work/calls

link() {
    for tool in "$@"; do
        ln -sf "$(command -v "$tool")" "$bin/$tool"
    done
}

# fake NAME LINES: a program of those shell lines.
fake() {
    printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
    chmod +x "$bin/$1"
}

# A bare machine on which the user is uid $1, and no package is there.
bare() {
    rm -rf "$bin" "$calls"
    mkdir "$bin"
    : >"$calls"
    link sh cat grep sed sort tr mktemp tail rm env
    fake id "echo $1"
    fake dpkg-query 'exit 1'
}

# apt-get that installs: afterwards all tools and libraries are there.
good_apt() {
    fake apt-get "echo \"apt-get \$*\" >>'$calls'
case \$1 in install)
    printf '#!/bin/sh\nexec \"$real_cc\" \"\$@\"\n' >'$bin/cc'
    printf '#!/bin/sh\nexit 0\n' >'$bin/make'
    printf '#!/bin/sh\nexit 0\n' >'$bin/pkg-config'
    chmod +x '$bin/cc' '$bin/make' '$bin/pkg-config' ;;
esac"
    link chmod
}

setup() {
    run env PATH="$bin" sh -c '. examples/setup.sh; set_up'
}

everything='gcc libc6-dev libcairo2-dev libcmocka-dev libglpk-dev libmicrohttpd-dev libyaml-dev make pkg-config'
everything="$everything zlib1g-dev"
install="install -y -q --no-install-recommends"

bare 0
good_apt
setup
ok 'root on a bare machine: done' test "$status" = 0
out_is "hbmsim: installing what is missing, by apt-get: $everything"
err_is ''
ok 'one update, one install' test "$(cat "$calls")" = "apt-get update -q
apt-get $install $everything"
setup
ok 'the second time is silent' test "$status$(cat "$work/out" "$work/err")" = 0
ok 'and calls nothing' test "$(wc -l <"$calls")" -eq 2

fake pkg-config '[ "$2" != cmocka ]'
setup
ok 'only what is missing' test "$(tail -n 1 "$calls")" = "apt-get $install libcmocka-dev"
ok 'and all is well' test "$status" = 0

bare 1000
good_apt
fake cc "exec $real_cc \"\$@\""
fake make 'exit 0'
fake pkg-config 'exit 0'
setup
ok 'no root is needed where nothing is missing' test "$status$(cat "$work/out" "$work/err")" = 0

bare 1000
good_apt
setup
ok 'a user without sudo is told' test "$status" = 3
err_has 'only root can install them:'
err_has "apt-get install -y --no-install-recommends $everything"
ok 'nothing was called' test ! -s "$calls"

bare 1000
good_apt
fake sudo "[ \"\$1\" = -n ] && shift; [ \"\$1\" = true ] && exit 0; echo sudo >>'$calls'; exec \"\$@\""
setup
ok 'sudo without a password is used' test "$status" = 0
ok 'for both calls' test "$(grep -c sudo "$calls")" = 2
fake sudo 'exit 1'
rm "$bin/make"
setup
ok 'sudo that would ask is not' test "$status" = 3
err_has 'only root can install them:'

bare 0
fake apt-get 'echo "E: no network" >&2; exit 100'
setup
ok 'apt-get that fails is shown' test "$status" = 3
err_has 'E: no network'
err_has "apt-get install -y --no-install-recommends $everything"
fake apt-get 'exit 0'
setup
ok 'apt-get that lies is found out' test "$status" = 3
err_has 'still missing after apt-get'

bare 0
fake dnf 'exit 1'
setup
ok 'Fedora: told, not done' test "$status" = 3
err_has 'sudo dnf install cairo-devel gcc glibc-devel glpk-devel libcmocka-devel libmicrohttpd-devel libyaml-devel make'
bare 0
fake pacman 'exit 1'
setup
err_has 'sudo pacman -S --needed cairo cmocka gcc glibc glpk libmicrohttpd libyaml make pkgconf zlib'
bare 0
fake brew 'exit 1'
setup
err_has 'brew install cairo cmocka gcc glpk libmicrohttpd libyaml make pkg-config zlib'
bare 0
setup
ok 'elsewhere: all names are given' test "$status" = 3
err_has 'Debian, Ubuntu (apt-get install): gcc'
err_has 'Fedora (dnf install):'
finish
