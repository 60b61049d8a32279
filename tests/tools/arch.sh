#!/usr/bin/env bash
# arch: builds rlock for other architectures with Debian's cross compilers, and runs its unit tests
# and its main job in the emulator qemu-user. `make test-arch` runs it.
#
#     tests/tools/arch.sh [ARCH]...       default: arm64 armhf i386 riscv64 s390x
#
# ARCH is Debian's name of an architecture. The headers and libraries of an architecture come from
# Debian 13: apt-get downloads the packages, and dpkg unpacks them into build/arch/ARCH/root. The
# packages are not installed on this system. Results are TAP.
#
#     ARCH_MIRROR=URL    the mirror; default: http://deb.debian.org/debian
#     ARCH_KEYRING=FILE  the keys; default: the file of the package debian-archive-keyring
#
# Only rlock is emulated. redis-server, sh and all commands are programs of this machine: when the
# emulated rlock calls execve(2), the kernel starts the program without the emulator.

set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1

mirror=${ARCH_MIRROR:-http://deb.debian.org/debian}
keyring=${ARCH_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}

# Each row: Debian's name of the architecture, the prefix of its compiler, and its name in qemu.
# s390x is the big-endian one. libc of armhf and i386 has a time_t of 32 bits unless it is asked for
# one of 64 bits, as the Makefile does.
table() {
    cat <<'ROWS'
arm64    aarch64-linux-gnu    aarch64
armhf    arm-linux-gnueabihf  arm      -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64
i386     i686-linux-gnu       i386
riscv64  riscv64-linux-gnu    riscv64
s390x    s390x-linux-gnu      s390x
ROWS
}

# Unit tests that can't pass in qemu-user, each with the reason.
skipped() {
    cat <<'ROWS'
test_cmd_proctree  qemu-user does not implement PR_SET_CHILD_SUBREAPER
ROWS
}

n=0
failed=0

# result STATUS TEXT [LOG]: prints one result; after a failure also the end of the log.
result() {
    n=$((n + 1))
    if (($1 == 0)); then
        echo "ok $n - arch: $2"
    else
        echo "not ok $n - arch: $2"
        [[ -z ${3:-} ]] || tail -n 40 "$3" | sed 's/^/# /'
        failed=$((failed + 1))
    fi
}

# make_root ARCH FOLDER: unpacks libc, hiredis and OpenSSL of the architecture into FOLDER/root.
make_root() {
    local folder=$2 package
    [[ ! -e $folder/root/ready ]] || return 0
    rm -rf "$folder"
    mkdir -p "$folder"/apt/etc/apt/{apt.conf.d,preferences.d,sources.list.d} \
        "$folder"/apt/var/{lib/apt/lists,cache/apt/archives}/partial "$folder"/apt/var/lib/dpkg \
        "$folder/root/usr/lib"
    ln -s usr/lib "$folder/root/lib"
    : >"$folder/apt/var/lib/dpkg/status"
    echo "deb [signed-by=$keyring] $mirror trixie main" >"$folder/apt/etc/apt/sources.list"
    cat >"$folder/apt.conf" <<END_OF_CONF
Dir "$folder/apt";
Dir::State::status "$folder/apt/var/lib/dpkg/status";
APT::Architecture "$1";
APT::Architectures { "$1"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
END_OF_CONF
    export APT_CONFIG=$folder/apt.conf
    apt-get -q update &&
        apt-get -q install -y --download-only --no-install-recommends \
            libc6-dev libc-bin libhiredis-dev libssl-dev || return
    for package in "$folder"/apt/var/cache/apt/archives/*.deb; do
        dpkg -x "$package" "$folder/root" || return
    done
    touch "$folder/root/ready"
}

# free_port: prints a TCP port of 127.0.0.1 on which nothing listens.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# main_job FOLDER: runs the tests main-job and signals of the Debian package, with the emulated
# `rlock` in FOLDER/bin and a server on a TCP port.
main_job() {
    local test
    for test in main-job signals; do
        TEST_PORT=$(free_port) PATH=$1/bin:$PATH timeout -k 5 120 packaging/debian/tests/$test ||
            return
    done
}

# test_arch ARCH COMPILER QEMU: builds rlock for the architecture, and runs its tests.
test_arch() {
    local arch=$1 compiler=$2 qemu=qemu-$3 folder=$PWD/build/arch/$1
    local log=$folder.log root=$folder/root name reason libraries unit=()
    ! command -v "$qemu-static" >/dev/null || qemu+=-static # a newer qemu-user has no such suffix
    { command -v "$compiler-gcc" && command -v "$qemu"; } >/dev/null || {
        result 1 "$arch: $compiler-gcc or $qemu is not installed"
        return
    }
    mkdir -p "${log%/*}"
    make_root "$arch" "$folder" >"$log" 2>&1 || {
        result 1 "$arch: libraries of Debian 13" "$log"
        return
    }
    mkdir -p "$folder/bin"
    printf '#!/bin/sh\nexec %s -0 rlock %s "$@"\n' "$qemu" "$PWD/build/$arch/rlock" \
        >"$folder/bin/rlock"
    chmod +x "$folder/bin/rlock"
    # The programs name their dynamic linker and libraries, so that qemu needs no option -L: with -L
    # qemu would also open the folder ROOT when a program opens "/".
    libraries=$(echo "$root"/usr/lib/*-linux-gnu*)
    make -j2 WERROR=1 FLAVOUR="$arch" TLS=yes PKG_CONFIG=false \
        CC="$compiler-gcc --sysroot=$root" \
        LDFLAGS="-L$libraries -Wl,--disable-new-dtags,-rpath,$libraries \
            -Wl,--dynamic-linker,$(echo "$libraries"/ld*.so.[0-9])" tests-built >"$log" 2>&1
    result $? "$arch: builds without warnings" "$log"
    while read -r name reason; do
        n=$((n + 1))
        echo "ok $n - arch: $arch: $name # skip $reason"
    done < <(skipped)
    for name in "build/$arch"/unit/*; do
        [[ $name == *.[do] ]] || skipped | grep -q "^${name##*/} " || unit+=("$name")
    done
    # LOCPATH: the emulated programs can't read this machine's locales, whose files may have another
    # byte order.
    LOCPATH=$root/usr/lib/locale RLOCK_TEST_EMULATOR=$qemu RLOCK_TEST_FLAVOUR=$arch \
        JOBS=2 tests/tools/run_tests.sh "${unit[@]}" >"$log" 2>&1
    result $? "$arch: unit tests: $(grep -c '^ok' "$log") passed" <(grep -A3 '^not ok' "$log")
    "$folder/bin/rlock" --version >"$log" 2>&1
    result $? "$arch: $(head -n 1 "$log")" "$log"
    main_job "$folder" >"$log" 2>&1
    result $? "$arch: the main job and the signals" "$log"
}

(($# > 0)) || mapfile -t wanted < <(table | cut -d ' ' -f 1)
(($# == 0)) || wanted=("$@")
for each in "${wanted[@]}"; do
    row=$(table | grep "^$each ") || {
        echo "arch: $each: unknown architecture; known are: $(table | cut -d ' ' -f 1 | xargs)" >&2
        exit 64
    }
    # shellcheck disable=SC2086 # a row is several arguments
    test_arch $row </dev/null
done
echo "1..$n"
((failed == 0))
