# Sourced by examples/quickstart.sh and tests/run.sh: set_up finds what hbmsim needs to be built
# and tested, and installs what is missing, after saying so, where there is apt. Elsewhere it says
# what to install. It is silent where nothing is missing, and touches nothing else.

# What is looked for | Debian | Fedora | Arch | Homebrew
setup_needs='
cc|gcc|gcc|gcc|gcc
libc|libc6-dev|glibc-devel|glibc|gcc
make|make|make|make|make
pkg-config|pkg-config|pkgconf-pkg-config|pkgconf|pkg-config
glpk|libglpk-dev|glpk-devel|glpk|glpk
yaml-0.1|libyaml-dev|libyaml-devel|libyaml|libyaml
cairo|libcairo2-dev|cairo-devel|cairo|cairo
cmocka|libcmocka-dev|libcmocka-devel|cmocka|cmocka
zlib|zlib1g-dev|zlib-devel|zlib|zlib
libmicrohttpd|libmicrohttpd-dev|libmicrohttpd-devel|libmicrohttpd|libmicrohttpd
'

has_program() {
    command -v "$1" >/dev/null 2>&1
}

has_header() {
    echo "#include <$1>" | cc -E - >/dev/null 2>&1
}

has_library() {
    pkg-config --exists "$1" >/dev/null 2>&1
}

# has_need NEED PACKAGE. Without a compiler the headers cannot be tried: then Debian's own list
# of what is installed is asked.
has_need() {
    case $1 in
    cc | make | pkg-config) has_program "$1" ;;
    libc | glpk)
        if has_program cc; then
            case $1 in
            libc) has_header stdio.h ;;
            glpk) has_header glpk.h ;;
            esac
        else
            dpkg-query -W -f '${Status}' "$2" 2>/dev/null | grep -q '^install ok'
        fi
        ;;
    *)
        if has_program pkg-config; then
            has_library "$1"
        else
            dpkg-query -W -f '${Status}' "$2" 2>/dev/null | grep -q '^install ok'
        fi
        ;;
    esac
}

# The packages that are missing, by the names of column $1 of the table.
missing_packages() {
    echo "$setup_needs" | while IFS='|' read -r need debian fedora arch brew; do
        [ -n "$need" ] || continue
        has_need "$need" "$debian" && continue
        case $1 in
        debian) echo "$debian" ;;
        fedora) echo "$fedora" ;;
        arch) echo "$arch" ;;
        brew) echo "$brew" ;;
        esac
    done | sort -u | tr '\n' ' ' | sed 's/ $//'
}

refuse() {
    echo "hbmsim: $1" >&2
    shift
    for line in "$@"; do
        echo "  $line" >&2
    done
    exit 3
}

# The word before apt-get: nothing for root; sudo, which may ask for a password only where there
# is someone to type it.
find_root() {
    [ "$(id -u)" = 0 ] && return 0
    has_program sudo || return 1
    if [ -t 0 ]; then
        echo sudo
    else
        sudo -n true >/dev/null 2>&1 || return 1
        echo sudo -n
    fi
}

install_by_apt() {
    as_root=$(find_root) || refuse "these packages are missing, and only root can install them:" \
        "apt-get install -y --no-install-recommends $missing"
    echo "hbmsim: installing what is missing, by apt-get: $missing"
    log=$(mktemp)
    if $as_root apt-get update -q >"$log" 2>&1 &&
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -q --no-install-recommends $missing >>"$log" 2>&1 </dev/null; then
        rm -f "$log"
    else
        tail -n 20 "$log" >&2
        rm -f "$log"
        refuse "apt-get failed (see above); this is what is missing:" \
            "apt-get install -y --no-install-recommends $missing"
    fi
    missing=$(missing_packages debian)
    [ -z "$missing" ] || refuse "still missing after apt-get: $missing"
}

set_up() {
    missing=$(missing_packages debian)
    [ -n "$missing" ] || return 0
    if has_program apt-get; then
        install_by_apt
    elif has_program dnf; then
        refuse "packages are missing; install them with:" \
            "sudo dnf install $(missing_packages fedora)"
    elif has_program pacman; then
        refuse "packages are missing; install them with:" \
            "sudo pacman -S --needed $(missing_packages arch)"
    elif has_program brew; then
        refuse "packages are missing; install them with:" "brew install $(missing_packages brew)"
    else
        refuse "a C compiler, make, pkg-config and the development files of GLPK, libyaml, cairo," \
            "zlib and cmocka are needed; missing, by their names in" \
            "Debian, Ubuntu (apt-get install): $missing" \
            "Fedora (dnf install):             $(missing_packages fedora)" \
            "Arch (pacman -S):                 $(missing_packages arch)" \
            "macOS (brew install):             $(missing_packages brew)"
    fi
}

# Builds with all processors; quiet unless it fails.
build() {
    [ -x build/fast/hbmsim ] || echo 'Building hbmsim in build/fast: a minute or two, without a word.' >&2
    make -j"$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" "$@" || exit $?
}
