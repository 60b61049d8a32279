#!/usr/bin/env bash
# distros: the two commands of the README, each in a clean root of a Debian release.
#
#     tests/tools/distros.sh [SUITE[:SERVER]]...       as root; needs debootstrap
#
# Without arguments: bookworm and trixie with the redis-server they have, and trixie with its
# valkey-server. A root has what the README asks for, git, make and a C compiler, and installs the
# rest by itself. What is committed is tested, nothing else. Results are TAP; what each printed is
# kept in build/distros, and so are the roots before anything was installed, which take a minute
# each to make. Each root is a mount and a process namespace of its own: nothing is left running.
#
# What the mirror sends is checked against the keys of Debian's archive, so it may come by http.
#
#     DISTROS_MIRROR=URL    instead of http://deb.debian.org/debian
#     DISTROS_KEYRING=FILE  instead of that of the package debian-archive-keyring
#     DISTROS_TEST=COMMAND  instead of `make test`

set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

mirror=${DISTROS_MIRROR:-http://deb.debian.org/debian}
keyring=${DISTROS_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
folder=$PWD/build/distros
n=0
failed=0

say() { echo "# $*"; }

result() { # STATUS TEXT
    n=$((n + 1))
    if (($1 == 0)); then
        echo "ok $n - distros: $2"
    else
        echo "not ok $n - distros: $2"
        failed=$((failed + 1))
    fi
}

# base SUITE: a root with git, make and a compiler; made once.
base() {
    local root=$folder/$1.base
    [[ ! -e $root/ready ]] || return 0
    rm -rf "$root"
    debootstrap --force-check-gpg --keyring="$keyring" --variant=minbase \
        --include=ca-certificates,git,make,gcc,libc6-dev \
        "$1" "$root" "$mirror" >"$folder/$1.base.log" 2>&1 || return
    rm -rf "$root"/var/cache/apt/archives/*.deb
    touch "$root/ready"
}

# inside ROOT COMMAND: as a shell in that root, in the source; all it started ends with it.
inside() {
    # shellcheck disable=SC2016 # it is for the shell inside
    unshare --mount --pid --fork --kill-child bash -c '
        set -e
        mount --make-rprivate /
        mount --bind "$0" "$0" # so that what is started inside can make mounts of its own
        mount -t proc proc "$0/proc"
        mount -t sysfs sysfs "$0/sys"
        mount --rbind /dev "$0/dev"
        exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            LANG=C.UTF-8 TERM="${TERM:-dumb}" DEBIAN_FRONTEND=noninteractive \
            NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
            RLOCK_TEST_SERVER="$2" sh -c "cd /src/rlock && $1"' "$1" "$2" "${3:-}" </dev/null
}

# trust_as_here ROOT: the way to the network is that of this machine.
trust_as_here() {
    cp /etc/resolv.conf "$1/etc/"
    [[ ! -d /usr/local/share/ca-certificates ]] ||
        cp -a /usr/local/share/ca-certificates "$1/usr/local/share/"
    chroot "$1" update-ca-certificates >/dev/null 2>&1
}

# counts LOG: what the tests in it came to.
counts() {
    awk '/^ *(ok|not ok) / { seen[$1 == "ok" ? "passed" : "failed"]++ }
        /^ok .*# skip/ { seen["skipped"]++ }
        END { printf "%d passed, %d failed, %d skipped", seen["passed"], seen["failed"],
            seen["skipped"] }' "$1"
}

# try_in SUITE SERVER: `make demo` and `make test` in a fresh copy.
try_in() {
    local suite=$1 server=$2 root=$folder/root log=$folder/$1-${2:-default} status
    base "$suite" || {
        result 1 "$suite: no root ($folder/$suite.base.log)"
        return
    }
    rm -rf --one-file-system "$root"
    cp -a "$folder/$suite.base" "$root"
    trust_as_here "$root"
    git clone -q . "$root/src/rlock"
    status=0
    inside "$root" 'make demo' >"$log.demo.log" 2>&1 || status=$?
    result "$status" "$suite: make demo"
    if [[ $server == valkey-server ]]; then
        inside "$root" 'apt-get install -y valkey-server' >"$log.install.log" 2>&1 || :
    fi
    status=0
    inside "$root" "${DISTROS_TEST:-make test}" "$server" >"$log.test.log" 2>&1 || status=$?
    say "$(inside "$root" "${server:-redis-server} --version" 2>/dev/null | cut -c 1-60)"
    result "$status" "$suite: make test${server:+ with $server}: $(counts "$log.test.log")"
    grep '^not ok' "$log.test.log" | sed 's/^/# /' || :
    rm -rf --one-file-system "$root"
}

((EUID == 0)) || {
    echo '1..0 # SKIP distros: a root of another system can be made by root only'
    exit 0
}
command -v debootstrap >/dev/null || {
    echo 'distros: debootstrap is needed, which Debian has as a package' >&2
    exit 1
}
[[ -r $keyring ]] || {
    echo "distros: $keyring is needed, which Debian has in debian-archive-keyring" >&2
    exit 1
}
mkdir -p "$folder"
(($# > 0)) || set -- bookworm trixie trixie:valkey-server
for each; do
    [[ $each == *:* ]] || each=$each:
    try_in "${each%%:*}" "${each#*:}"
done
echo "1..$n"
((failed == 0))
