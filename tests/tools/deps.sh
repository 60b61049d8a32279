#!/bin/sh
# deps: installs the packages that are missing to build, demonstrate or test rlock.
#
#     tests/tools/deps.sh GROUP
#
# GROUP is build, demo, test or ci, each of which includes those before it; static, what `make
# static` links with, which the tests need, too; bench, the programs that rlock is compared with, of
# which those that can't be installed are left out; or the name of the script or target of make that
# needs it: abi, arch, deb, distros, messages, mutants, piuparts, publish, release, reproducible or
# rpm.
#
# The system's package manager installs the packages. The script installs nothing for a command,
# header or module that is there already, whatever its version. If nothing is missing, it prints
# nothing. npm installs two packages for node, which systems don't package, into build/node. The
# script writes an /etc/hosts if there is none.

set -eu

# table: prints a row for each package, with these columns:
# 1. the groups;
# 2. the sign that the package is installed: a command, a list of commands of which one is enough, a
#    header, a Python module, a file, a library that cc can link a static program with, or an option
#    that clang can link a program with;
# 3. the package for apt-get;
# 4. the package for other package managers;
# 5. exceptions, as MANAGER=PACKAGE.
# `-` stands for no package: with that package manager, tests that need the package are skipped.
table() {
    cat <<'END'
build            cc                         gcc             gcc
build            make                       make            make
build            <stdio.h>                  libc6-dev       glibc-devel   apk=musl-dev pacman=glibc
build            <hiredis/hiredis.h> libhiredis-dev hiredis-devel apk=hiredis-dev pacman=hiredis
build            <openssl/ssl.h> libssl-dev openssl-devel apk=openssl-dev pacman=openssl
static,deb       pkg-config pkgconf pkgconf-pkg-config apk=pkgconf pacman=pkgconf
static           -lz                        zlib1g-dev      -
static           -lzstd                     libzstd-dev     -
demo,arch        redis-server,valkey-server redis-server    valkey
test,bench,arch  redis-cli,valkey-cli       redis-tools     valkey        apk=valkey-cli
test             bash                       bash            bash
test             c++                        g++             gcc-c++       apk=g++ pacman=gcc
test             bats                       bats            bats          pacman=bash-bats
test             mandoc                     mandoc          mandoc
test             groff                      groff-base      groff
test             shellcheck shellcheck ShellCheck apk=shellcheck pacman=shellcheck
test             ps                         procps          procps-ng     zypper=procps
test             ip                         iproute2        iproute2      dnf=iproute
test             script                     bsdutils        util-linux    apk=util-linux-misc
test,arch        openssl                    openssl         openssl
test             strace                     strace          strace
test,bench,arch  python3                    python3         python3       zypper=python3-base
test             sqlite3                    sqlite3         sqlite        zypper=sqlite3
test             perl                       perl-base       perl
test,bench       python:redis python3-redis python3-redis apk=py3-redis pacman=python-redis
test             python:pyte                python3-pyte    python3-pyte  apk=- pacman=- zypper=-
test python:jsonschema python3-jsonschema python3-jsonschema pacman=python-jsonschema apk=-
test python:yaml python3-yaml python3-pyyaml apk=py3-yaml pacman=python-yaml zypper=python3-PyYAML
test             node                       nodejs          nodejs
test             npm                        npm             npm           dnf=nodejs-npm
test             zsh                        zsh             zsh
test             fish                       fish            fish
test             spin                       spin            -
test             <lua5.1/lua.h>             liblua5.1-0-dev -
test,abi         git                        git             git
test             curl                       curl            curl
test,release     ssh-keygen openssh-client openssh-clients apk=openssh-keygen pacman=openssh
test,abi         abidiff                    abigail-tools   -
test,distros,arch /usr/share/keyrings/debian-archive-keyring.gpg debian-archive-keyring -
bench            flock                      util-linux      util-linux    apk=flock
bench            etcd                       etcd-server     etcd
bench            etcdctl                    etcd-client     etcd          apk=etcd-ctl
distros,piuparts debootstrap                debootstrap     debootstrap
deb              dh                         debhelper       -
deb              /usr/share/build-essential/essential-packages-list build-essential -
deb,release      lintian                    lintian         -
deb,reproducible faketime                   faketime        libfaketime
messages         xgettext                   gettext         gettext
mutants          python:clang               python3-clang   python3-clang
rpm              rpmbuild                   rpm             rpm-build
rpm              rpmlint                    rpmlint         rpmlint
arch             qemu-s390x-static,qemu-s390x qemu-user-static -
arch             x86_64-linux-gnu-gcc       gcc-x86-64-linux-gnu -
arch             aarch64-linux-gnu-gcc      gcc-aarch64-linux-gnu -
arch             arm-linux-gnueabihf-gcc    gcc-arm-linux-gnueabihf -
arch             i686-linux-gnu-gcc         gcc-i686-linux-gnu -
arch             riscv64-linux-gnu-gcc      gcc-riscv64-linux-gnu -
arch             s390x-linux-gnu-gcc        gcc-s390x-linux-gnu -
piuparts         piuparts                   piuparts        -
publish          gh                         gh              gh            apk=github-cli
ci               clang                      clang           clang
ci               clang:-fsanitize=address   libclang-rt-dev compiler-rt   pacman=- zypper=-
ci               clang-format               clang-format    clang         dnf=clang-tools-extra
ci               promtool                   prometheus      -
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
    static) groups='build static' ;;
    test) groups='build static demo test' ;;
    ci) groups='build static demo test ci' ;;
    bench) groups='build demo bench' ;;
    deb) groups='build deb' ;;
    rpm) groups='build rpm' ;;
    abi) groups='build abi' ;;
    reproducible) groups='build reproducible' ;;
    mutants) groups='build static demo test mutants' ;;
    release) groups='arch release' ;;
    publish) groups='publish release' ;;
    distros | arch | messages | piuparts) groups=$1 ;;
    *) die 'usage: deps.sh GROUP; its first lines name the groups' ;;
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
        -l*) echo 'int main(void) { return 0; }' |
            ${CC:-cc} -static -x c -o /dev/null - -x none "$1" >/dev/null 2>&1 ;;
        clang:*) echo 'int main(void) { return 0; }' |
            clang "${1#*:}" -x c -o /dev/null - >/dev/null 2>&1 ;;
        python:*) /usr/bin/python3 -c "import ${1#*:}" 2>/dev/null ;;
        *)
            for name in $(echo "$1" | tr , ' '); do
                command -v "$name" >/dev/null && return
            done
            return 1
            ;;
    esac
}

# package APT OTHERS [EXCEPTION...]: prints the name that a package has for $manager. The arguments
# are a row of table() from column 3 on.
package() {
    name=$2
    [ "$manager" = apt-get ] && name=$1
    shift 2
    for exception; do
        case $exception in "$manager="*) name=${exception#*=} ;; esac
    done
    echo "$name"
}

# is_wanted GROUP,GROUP...: is one of these groups wanted?
is_wanted() {
    for group in $(echo "$1" | tr , ' '); do
        case " $groups " in *" $group "*) return ;; esac
    done
    return 1
}

# missing: prints `SIGN PACKAGE` for each row of the wanted groups whose sign isn't found.
missing() {
    table | while read -r its_groups sign packages; do
        is_wanted "$its_groups" || continue
        # shellcheck disable=SC2086 # $packages is several arguments
        wanted=$(package $packages)
        [ "$wanted" = - ] || is_there "$sign" || echo "$sign $wanted"
    done
}

signs() { echo "$1" | cut -d ' ' -f 1 | tr '\n' ' '; }

# Debian starts the service of a package (such as redis-server) as soon as it is installed, unless
# policy-rc.d exists and exits with 101. This script creates such a policy-rc.d, and removes it when
# the script ends.
policy=/usr/sbin/policy-rc.d
apt_install() {
    if [ ! -e "$policy" ]; then
        trap '$as_root rm -f "$policy"' EXIT
        trap 'exit 1' HUP INT TERM
        printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
        $as_root chmod 755 "$policy"
    fi
    apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120"
    # Fetching the package lists takes a while. So fetch them only if the local lists don't have a
    # package, or if they name a version that is no longer on the mirror.
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

# install_node_packages: installs redlock and ioredis, which interop tests run beside rlock,
# in the versions of tests/interop/package-lock.json. npm checks each against its hash there.
install_node_packages() {
    case $groups in *test*) ;; *) return 0 ;; esac
    cd "$(dirname "$0")/../.."
    ! cmp -s tests/interop/package-lock.json build/node/package-lock.json ||
        [ ! -d build/node/node_modules/redlock ] || return 0
    mkdir -p build/node
    cp tests/interop/package.json tests/interop/package-lock.json build/node/
    (cd build/node && npm ci --ignore-scripts --no-audit --no-fund >&2) ||
        say 'npm could not install the packages of tests/interop/package-lock.json'
}

# write_hosts: writes /etc/hosts if there is none. debootstrap makes no /etc/hosts, and without it
# the libc of Debian 12 can't resolve `localhost`, to which some tests connect.
write_hosts() {
    case $groups in *test*) ;; *) return 0 ;; esac
    [ ! -e /etc/hosts ] && [ "$(id -u)" -eq 0 ] || return 0
    say '/etc/hosts is missing: writing one with localhost'
    printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n' >/etc/hosts
}

install_without_package_manager() {
    install_node_packages
    write_hosts
}

find_manager
lacking=$(missing)
[ -n "$lacking" ] || {
    install_without_package_manager
    exit 0
}

[ "$manager" != none ] ||
    die "no known package manager found; please install: $(signs "$lacking")"
packages=$(echo "$lacking" | awk '!seen[$2]++ { printf "%s ", $2 }')
as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
        die "only root can install, and sudo is missing; as root: $manager install $packages"
    as_root=sudo
fi

# install_each PACKAGE...: installs one package at a time, so that a package that can't be installed
# doesn't keep out the others.
install_each() {
    for name; do
        install "$name" || say "could not install: $name"
    done
}

say "installing what '$1' needs, by $manager: $packages"
# shellcheck disable=SC2086 # each package is an argument
case $1 in
    bench) install_each $packages </dev/null >&2 ;;
    *) install $packages </dev/null >&2 || die "could not install: $packages" ;;
esac

lacking=$(missing)
[ -z "$lacking" ] || die "the packages are installed, but these are missing: $(signs "$lacking")"
install_without_package_manager
