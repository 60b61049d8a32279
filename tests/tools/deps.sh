#!/bin/sh
# deps: installs, by the system's package manager, what is missing to build, show or test rlock.
#
#     tests/tools/deps.sh build|demo|test|ci|bench|distros
#
# Each of the first four includes those before it. bench is what rlock is compared with, and what
# that needs; of those as many as can be had. distros is what makes roots of other systems. What is
# there already, in whatever version and from whatever source, is left alone; if nothing is
# missing, nothing is done and nothing is said. What no system has as a package comes by npm, into
# build/node; and an /etc/hosts, which no package has either, is written where there is none.

set -eu

# What for; the commands (any will do), the header or the module of Python's that it is recognised
# by; the package that has it for apt-get, and for other package managers, with exceptions. Where
# they have none, which is `-`, its tests are skipped.
table() {
    cat <<'END'
build  cc                          gcc             gcc
build  make                        make            make
build  <stdio.h>                   libc6-dev       glibc-devel   apk=musl-dev pacman=glibc
build  <hiredis/hiredis.h>         libhiredis-dev  hiredis-devel apk=hiredis-dev pacman=hiredis
build  <openssl/ssl.h>             libssl-dev      openssl-devel apk=openssl-dev pacman=openssl
demo   redis-server,valkey-server  redis-server    valkey
test   redis-cli,valkey-cli        redis-tools     valkey        apk=valkey-cli
test   bash                        bash            bash
test   bats                        bats            bats          pacman=bash-bats
test   mandoc                      mandoc          mandoc
test   shellcheck                  shellcheck      ShellCheck    apk=shellcheck pacman=shellcheck
test   ps                          procps          procps-ng     zypper=procps
test   ip                          iproute2        iproute2      dnf=iproute
test   script                      bsdutils        util-linux    apk=util-linux-misc
test   openssl                     openssl         openssl
test   strace                      strace          strace
test   python3                     python3         python3       zypper=python3-base
test   sqlite3                     sqlite3         sqlite        zypper=sqlite3
test   perl                        perl-base       perl
test   python:redis                python3-redis   python3-redis apk=py3-redis pacman=python-redis
test   node                        nodejs          nodejs
test   npm                         npm             npm           dnf=nodejs-npm
test   zsh                         zsh             zsh
test   fish                        fish            fish
test   spin                        spin            -
test   haproxy                     haproxy         haproxy
bench  redis-cli,valkey-cli        redis-tools     valkey        apk=valkey-cli
bench  flock                       util-linux      util-linux    apk=flock
bench  etcd                        etcd-server     etcd
bench  etcdctl                     etcd-client     etcd          apk=etcd-ctl
bench  python:redis                python3-redis   python3-redis apk=py3-redis pacman=python-redis
bench  node                        nodejs          nodejs
bench  npm                         npm             npm           dnf=nodejs-npm
distros debootstrap                debootstrap     debootstrap
distros /usr/share/keyrings/debian-archive-keyring.gpg debian-archive-keyring -
ci     clang                       clang           clang
ci     clang-format                clang-format    clang         dnf=clang-tools-extra
END
}

say() { echo "deps: $*" >&2; }
die() {
    say "$@"
    exit 1
}

case ${1:-} in
    build) groups='build' ;;
    demo) groups='build demo' ;;
    test) groups='build demo test' ;;
    ci) groups='build demo test ci' ;;
    bench) groups='build demo bench' ;;
    distros) groups=distros ;;
    *) die 'usage: deps.sh build|demo|test|ci|bench|distros' ;;
esac

find_manager() {
    for manager in apt-get dnf apk pacman zypper; do
        command -v "$manager" >/dev/null && return
    done
    manager=none
}

is_there() {
    case $1 in
        /*) [ -r "$1" ] ;;
        '<'*) echo "#include $1" | ${CC:-cc} -E - >/dev/null 2>&1 ;;
        python:*) /usr/bin/python3 -c "import ${1#*:}" 2>/dev/null ;;
        *)
            for name in $(echo "$1" | tr , ' '); do
                command -v "$name" >/dev/null && return
            done
            return 1
            ;;
    esac
}

# package APT OTHERS [EXCEPTION...]: the name for our package manager.
package() {
    name=$2
    [ "$manager" = apt-get ] && name=$1
    shift 2
    for exception; do
        case $exception in "$manager="*) name=${exception#*=} ;; esac
    done
    echo "$name"
}

# Prints `SIGN PACKAGE` for each row up to the group asked for that is not met.
missing() {
    table | while read -r group sign packages; do
        case " $groups " in *" $group "*) ;; *) continue ;; esac
        # shellcheck disable=SC2086 # words
        wanted=$(package $packages)
        [ "$wanted" = - ] || is_there "$sign" || echo "$sign $wanted"
    done
}

signs() { echo "$1" | cut -d ' ' -f 1 | tr '\n' ' '; }

# Debian starts a service as soon as it is installed, unless this file forbids it.
policy=/usr/sbin/policy-rc.d
apt_install() {
    if [ ! -e "$policy" ]; then
        trap '$as_root rm -f "$policy"' EXIT
        trap 'exit 1' HUP INT TERM
        printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
        $as_root chmod 755 "$policy"
    fi
    apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120"
    # The lists are fetched only if what they say can't be installed, or can't any more.
    if ! $apt install --simulate --no-install-recommends "$@" >/dev/null 2>&1 ||
        ! $apt install -y --no-install-recommends "$@"; then
        $apt update
        $apt install -y --no-install-recommends "$@"
    fi
}

install() {
    case $manager in
        apt-get) apt_install "$@" ;;
        dnf) $as_root dnf install -y "$@" ;;
        apk) $as_root apk add "$@" ;;
        pacman) $as_root pacman -S --needed --noconfirm "$@" ;;
        zypper) $as_root zypper --non-interactive install "$@" ;;
    esac
}

# Clients that rlock is tested beside, in the versions that were tried, to the byte: each package in
# the lock file has its hash.
node_modules() {
    case $groups in *test* | *bench*) ;; *) return 0 ;; esac
    cd "$(dirname "$0")/../.."
    ! cmp -s tests/interop/package-lock.json build/node/package-lock.json ||
        [ ! -d build/node/node_modules/redlock ] || return 0
    mkdir -p build/node
    cp tests/interop/package.json tests/interop/package-lock.json build/node/
    (cd build/node && npm ci --ignore-scripts --no-audit --no-fund >&2) ||
        say 'could not install by npm: what tests/interop/package-lock.json names'
}

# An installer writes it, but not debootstrap; without it the libc of Debian 12 knows no localhost.
hosts() {
    case $groups in *test*) ;; *) return 0 ;; esac
    [ ! -e /etc/hosts ] && [ "$(id -u)" -eq 0 ] || return 0
    say 'there is no /etc/hosts: writing one, with localhost'
    printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n' >/etc/hosts
}

rest() {
    node_modules
    hosts
}

find_manager
lacking=$(missing)
[ -n "$lacking" ] || {
    rest
    exit 0
}

[ "$manager" != none ] || die "no package manager known here; needed: $(signs "$lacking")"
packages=$(echo "$lacking" | awk '!seen[$2]++ { printf "%s ", $2 }')
as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "neither root nor sudo; as root: $manager install $packages"
    as_root=sudo
fi

# Nothing here depends on all that is compared: what can't be had is missing at the end.
install_each() {
    for name; do
        install "$name" || say "could not install: $name"
    done
}

say "missing for '$1', installing by $manager: $packages"
# shellcheck disable=SC2086 # one word a package
case $1 in
    bench) install_each $packages </dev/null >&2 ;;
    *) install $packages </dev/null >&2 || die "could not install: $packages" ;;
esac

lacking=$(missing)
[ -z "$lacking" ] || die "installed, but still missing: $(signs "$lacking")"
rest
