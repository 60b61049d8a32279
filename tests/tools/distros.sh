#!/usr/bin/env bash
# distros: runs `make demo` and `make test` in new root directories of Debian releases.
#
#     tests/tools/distros.sh [SUITE[:SERVER]]...       as root; needs debootstrap
#
# SUITE is a release of Debian, SERVER the server program to test with. Without arguments the script
# tests bookworm and trixie with their redis-server, and trixie with its valkey-server.
#
# Each root directory gets what the README asks for: git, make and a C compiler. `make demo` and
# `make test` install the rest. The commit that is checked out here is cloned into the root, so
# changes that are not committed are not tested. Results are TAP. build/distros keeps the output of
# each command. build/distros also keeps a copy of each root directory from before the tests: making
# a root directory takes a minute. Each command runs in new mount and process namespaces, so the
# kernel kills all processes that the command leaves behind.
#
# debootstrap checks the packages with the keys of Debian's archive, so the mirror may be http.
#
#     DISTROS_MIRROR=URL    the mirror; default: http://deb.debian.org/debian
#     DISTROS_KEYRING=FILE  the keys; default: the file of the package debian-archive-keyring
#     DISTROS_TEST=COMMAND  the test; default: `make test`

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

# make_base SUITE: makes the root directory $folder/SUITE.base, with git, make and a compiler, if it
# doesn't exist yet.
make_base() {
    local root=$folder/$1.base
    [[ ! -e $root/ready ]] || return 0
    rm -rf "$root"
    debootstrap --force-check-gpg --keyring="$keyring" --variant=minbase \
        --include=ca-certificates,git,make,gcc,libc6-dev \
        "$1" "$root" "$mirror" >"$folder/$1.base.log" 2>&1 || return
    rm -rf "$root"/var/cache/apt/archives/*.deb
    touch "$root/ready"
}

# inside ROOT COMMAND [SERVER]: runs the shell command COMMAND with the root directory ROOT, in the
# cloned source there. The tests start SERVER, by default redis-server. When COMMAND ends, the
# kernel kills all processes of its process namespace.
inside() {
    # shellcheck disable=SC2016 # the variables are for the shell in the namespace
    unshare --mount --pid --fork --kill-child bash -c '
        set -e
        mount --make-rprivate /
        # After the chroot $0 is /. Tests call unshare(1) there, which changes the propagation of
        # mounts in /, and fails if / is not a mount point.
        mount --bind "$0" "$0"
        mount -t proc proc "$0/proc"
        mount -t sysfs sysfs "$0/sys"
        mount --rbind /dev "$0/dev"
        exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            LANG=C.UTF-8 TERM="${TERM:-dumb}" DEBIAN_FRONTEND=noninteractive \
            NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
            RLOCK_TEST_SERVER="$2" sh -c "cd /src/rlock && $1"' "$1" "$2" "${3:-}" </dev/null
}

# copy_network_settings ROOT: copies the DNS settings and the local CA certificates of this machine.
copy_network_settings() {
    cp /etc/resolv.conf "$1/etc/"
    [[ ! -d /usr/local/share/ca-certificates ]] ||
        cp -a /usr/local/share/ca-certificates "$1/usr/local/share/"
    chroot "$1" update-ca-certificates >/dev/null 2>&1
}

# counts LOG: prints how many tests passed, failed and were skipped.
counts() {
    awk '/^ *(ok|not ok) / { seen[$1 == "ok" ? "passed" : "failed"]++ }
        /^ok .*# skip/ { seen["skipped"]++ }
        END { printf "%d passed, %d failed, %d skipped", seen["passed"], seen["failed"],
            seen["skipped"] }' "$1"
}

# test_in SUITE SERVER: runs `make demo` and `make test` in a copy of the root directory of SUITE.
test_in() {
    local suite=$1 server=$2 root=$folder/root log=$folder/$1-${2:-default} status
    make_base "$suite" || {
        result 1 "$suite: debootstrap failed; see $folder/$suite.base.log"
        return
    }
    rm -rf --one-file-system "$root"
    cp -a "$folder/$suite.base" "$root"
    copy_network_settings "$root"
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
    result "$status" \
        "$suite: ${DISTROS_TEST:-make test}${server:+ with $server}: $(counts "$log.test.log")"
    grep '^not ok' "$log.test.log" | sed 's/^/# /' || :
    rm -rf --one-file-system "$root"
}

((EUID == 0)) || {
    echo '1..0 # SKIP distros: only root can make a root directory of another system'
    exit 0
}
command -v debootstrap >/dev/null || {
    echo 'distros: debootstrap is not installed; on Debian: apt-get install debootstrap' >&2
    exit 1
}
[[ -r $keyring ]] || {
    echo "distros: $keyring: not readable; the package debian-archive-keyring has this file" >&2
    exit 1
}
mkdir -p "$folder"
(($# > 0)) || set -- bookworm trixie trixie:valkey-server
for each; do
    [[ $each == *:* ]] || each=$each:
    test_in "${each%%:*}" "${each#*:}"
done
echo "1..$n"
((failed == 0))
