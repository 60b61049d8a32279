#!/usr/bin/env bash
# arch: builds rlock for other architectures with Debian's cross compilers, and runs it in the
# emulator qemu-user. `make test-arch` and `make release` run it.
#
#     tests/tools/arch.sh [ARCH]...                    build all that tests need, run the unit tests
#                                                      and the main job; default: all but amd64
#     tests/tools/arch.sh --release FOLDER [ARCH]...   build the static programs with TLS in them,
#                                                      try each, and copy it to
#                                                      FOLDER/rlock-VERSION-linux-ARCH
#
# ARCH is Debian's name of an architecture. apt-get and dpkg-deb unpack its headers and libraries,
# from a release of Debian, into a folder of ~/.cache/rlock-arch that is kept for a day; its file
# `packages` tells their versions. Results are TAP. Only rlock is emulated: what it executes are
# programs of this machine.
#
#     DISTROS_MIRROR=URL, DISTROS_KEYRING=FILE   as for distros.sh
#     JOBS=N   how many compilers, or unit tests, run at the same time; default: 2

set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1
. tests/tools/tap.sh arch

mirror=${DISTROS_MIRROR:-http://deb.debian.org/debian}
keyring=${DISTROS_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rlock-arch
version=$(sed -n 's/^#define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
most_bytes=6000000 # of a static program
export JOBS=${JOBS:-2}

# Each row: Debian's name of the architecture, the prefix of its compiler, its name in qemu, and the
# release of Debian that has its libraries. s390x is the big-endian one. Debian 12's OpenSSL 3.0
# makes programs 2 MB smaller than the 3.5 of Debian 13; but only Debian 13 has riscv64.
table() {
    cat <<'ROWS'
amd64    x86_64-linux-gnu     x86_64   bookworm
arm64    aarch64-linux-gnu    aarch64  bookworm
armhf    arm-linux-gnueabihf  arm      bookworm
i386     i686-linux-gnu       i386     bookworm
riscv64  riscv64-linux-gnu    riscv64  trixie
s390x    s390x-linux-gnu      s390x    bookworm
ROWS
}

# Unit tests that can't pass in qemu-user, a whole program or one test of it, each with the reason.
skipped() {
    cat <<'ROWS'
test_cmd_proctree|qemu-user does not implement PR_SET_CHILD_SUBREAPER
test_cmd_guard: test_wait_all()|qemu-user does not implement PR_SET_CHILD_SUBREAPER
test_cmd_run: test_not_released()|qemu-user does not implement PR_SET_CHILD_SUBREAPER
test_cmd_password_lookup: test_left_behind()|qemu-user does not implement PR_SET_CHILD_SUBREAPER
test_cmd_outfile: test_filled_pipe()|qemu-user does not implement pwritev2
test_cmd_private_server|executes itself as the server, which runs without the emulator
ROWS
}

# unpack FOLDER ARCH SUITE PACKAGE...: unpacks packages of a release of Debian, and all that they
# need, into FOLDER/root. What is there already is kept for a day.
unpack() {
    local folder=$1 new=$1.new arch=$2 suite=$3 package
    shift 3
    [[ -z $(find "$folder/packages" -mmin -1440 2>/dev/null) ]] || return 0
    rm -rf "$new"
    mkdir -p "$new"/apt/etc/apt/{apt.conf.d,preferences.d,sources.list.d} \
        "$new"/apt/var/{lib/apt/lists,cache/apt/archives}/partial "$new"/apt/var/lib/dpkg \
        "$new/root/usr/lib"
    ln -s usr/lib "$new/root/lib"
    : >"$new/apt/var/lib/dpkg/status"
    cat >"$new/apt.conf" <<END_OF_CONF
Dir "$new/apt";
Dir::State::status "$new/apt/var/lib/dpkg/status";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
END_OF_CONF
    local -x APT_CONFIG=$new/apt.conf
    printf "deb [signed-by=$keyring] %s main\n" "$mirror $suite" \
        "$mirror-security $suite-security" >"$new/apt/etc/apt/sources.list"
    download "$@" || {
        echo "# $arch: without the security updates of $suite: the mirror can't give them now" >&2
        sed -i '/-security/d' "$new/apt/etc/apt/sources.list"
        download "$@"
    } || return
    for package in "$new"/apt/var/cache/apt/archives/*.deb; do
        # Debian 12 has libraries in /lib, too, which is a link here.
        dpkg-deb --fsys-tarfile "$package" |
            tar -x --keep-directory-symlink -C "$new/root" || return
        # shellcheck disable=SC2016 # the names are those of fields
        dpkg-deb -W --showformat '${source:Package} ${source:Version}\n' "$package" || return
    done | LC_ALL=C sort -u >"$new/packages" && rm -rf "$new/apt" "$folder" &&
        mv -T "$new" "$folder"
}

download() {
    apt-get -q update 2>&1 &&
        apt-get -q install -y --download-only --no-install-recommends "$@" 2>&1
}

# make_root ARCH SUITE: unpacks libc, hiredis, OpenSSL and what OpenSSL needs into
# $cache/ARCH/root.
make_root() {
    unpack "$cache/$1" "$1" "$2" \
        libc6-dev libc-bin libhiredis-dev libssl-dev zlib1g-dev libzstd-dev || return
    # The linker of Debian 12 crashes at the object files of Debian 13's riscv64. So the one of
    # Debian 13 links these. It runs with the libraries of its own release.
    [[ $2 == trixie ]] || return 0
    local host tools=$cache/$1-linker ld
    host=$(dpkg --print-architecture)
    unpack "$tools" "$host" "$2" "binutils-$1-linux-gnu" libc6 || return
    ld=$(echo "$tools"/root/usr/lib/*-linux-gnu*/ld*.so.[0-9])
    printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$ld" "${ld%/*}" \
        "$tools/root/usr/bin/$1-linux-gnu-ld" >"$tools/ld"
    chmod +x "$tools/ld"
}

# free_port: prints a TCP port of 127.0.0.1 on which nothing listens.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# try PROGRAM TEST...: runs tests of the Debian package with the emulated program, and a server on a
# TCP port.
try() {
    local program=$1 bin test
    shift
    bin=build/try/${program//\//_}
    mkdir -p "$bin"
    printf '#!/bin/sh\nexec %s -0 rlock %s "$@"\n' "$qemu" "$PWD/$program" >"$bin/rlock"
    chmod +x "$bin/rlock"
    for test; do
        TEST_PORT=$(free_port) PATH=$PWD/$bin:$PATH \
            timeout -k 5 120 packaging/debian/tests/"$test" || return
    done
}

# test_arch ARCH: builds rlock and its tests for the architecture, and runs them.
test_arch() {
    local arch=$1 name reason passed unknown unit=()
    # The programs name their dynamic linker and libraries, so that qemu needs no option -L: with -L
    # qemu would also open the folder ROOT when a program opens "/".
    make -j"$JOBS" WERROR=1 FLAVOUR="$arch" TLS=yes PKG_CONFIG=false CC="$cc" \
        LDFLAGS="-L$libraries -Wl,--disable-new-dtags,-rpath,$libraries \
            -Wl,--dynamic-linker,$(echo "$libraries"/ld*.so.[0-9])" tests-built >"$log" 2>&1
    result $? "$arch: builds without warnings" "$log"
    while IFS='|' read -r name reason; do
        result 0 "$arch: $name # skip $reason"
    done < <(skipped)
    for name in "build/$arch"/unit/*; do
        [[ $name == *.[do] ]] || skipped | grep -q "^${name##*/}|" || unit+=("$name")
    done
    # LOCPATH: the emulated programs can't read this machine's locales, whose files may have another
    # byte order.
    LOCPATH=$root/usr/lib/locale RLOCK_TEST_EMULATOR=$qemu RLOCK_TEST_FLAVOUR=$arch \
        tests/tools/run_tests.sh "${unit[@]}" >"$log" 2>&1
    passed=$(grep -c '^ok' "$log")
    unknown=$(sed -n 's/^not ok - //p' "$log" | grep -vxFf <(skipped | cut -d '|' -f 1))
    ((passed > 0)) && [[ -z $unknown ]]
    result $? "$arch: unit tests: $passed passed" <(grep -F -A3 "$unknown" "$log")
    try "build/$arch/rlock" main-job signals wait-and-loss >"$log" 2>&1
    result $? "$arch: the main job, the signals, a wait and a loss" "$log"
}

# libraries_in MAP: prints, from the linker's map of a program, the sources of the libraries that it
# contains, with their versions in Debian.
libraries_in() {
    grep -oE '/lib[a-z_]+\.a\(' "$1" | sort -u |
        sed -E 's,.*/lib(.*)\.a.$,\1,; s/^(ssl|crypto)$/openssl/; s/^zstd$/libzstd/; s/^z$/zlib/
            s/^(c|m|resolv)$/glibc/; s/^gcc.*/gcc/' |
        sort -u | while read -r name; do
        [[ $name != gcc ]] || { echo "gcc $(${cc%% *} -dumpfullversion)" && continue; }
        [[ $name == rlock ]] || grep "^$name " "$root/../packages" || echo "$name unknown"
    done
}

# release_arch ARCH: builds the static program, tries it, and copies it to the folder of the
# release.
release_arch() {
    local arch=$1 program=build/static-$1/rlock bytes name
    make -j"$JOBS" WERROR=1 FLAVOUR="static-$arch" PKG_CONFIG=false CC="$cc" CFLAGS='-O2 -g' \
        HIREDIS_A="$libraries/libhiredis.a" LDFLAGS="-L$libraries -Wl,-Map=$program.map" \
        OPENSSL_LIBS="-lssl -lcrypto -lz -lzstd" "$program" >"$log" 2>&1
    result $? "$arch: the static program builds without warnings" "$log"
    bytes=$(stat -c %s "$program" 2>/dev/null || echo none)
    [[ $bytes != none ]] && ((bytes <= most_bytes))
    result $? "$arch: the static program has $bytes bytes, at most $most_bytes"
    "$qemu" "$program" --version >"$log" 2>&1 &&
        grep -qx "rlock $version (.*, TLS yes, static)" "$log"
    result $? "$arch: $(head -n 1 "$log")" "$log"
    try "$program" main-job wait-and-loss >"$log" 2>&1
    result $? "$arch: static: the main job, a wait and a loss" "$log"
    TEST_TLS=yes try "$program" main-job >"$log" 2>&1
    result $? "$arch: static: the main job by TLS" "$log"
    libraries_in "$program.map" >"$program.libraries"
    install -D "$program" "$release/rlock-$version-linux-$arch"
}

# with_tools ACTION ARCH COMPILER QEMU SUITE: calls ACTION ARCH, with what it needs in the variables
# cc, libraries, qemu, root and log.
with_tools() {
    local action=$1 arch=$2 compiler=$3 qemu=qemu-$4 root=$cache/$2/root log=$PWD/build/arch/$2.log
    local cc libraries
    ! command -v "$qemu-static" >/dev/null || qemu+=-static # a newer qemu-user has no such suffix
    { command -v "$compiler-gcc" && command -v "$qemu"; } >/dev/null || {
        result 1 "$arch: $compiler-gcc or $qemu is not installed"
        return
    }
    mkdir -p "${log%/*}" "$cache"
    make_root "$arch" "$5" >"$log" || {
        result 1 "$arch: libraries of Debian ($5)" "$log"
        return
    }
    libraries=$(echo "$root"/usr/lib/*-linux-gnu*)
    cc="$compiler-gcc --sysroot=$root"
    [[ ! -x $root/../../$arch-linker/ld ]] || cc+=" -B$cache/$arch-linker"
    "$action" "$arch"
}

action=test_arch
if [[ ${1:-} == --release ]]; then
    action=release_arch
    mkdir -p "$2" && release=$(realpath "$2")
    shift 2
fi
(($# > 0)) || mapfile -t wanted < <(table | cut -d ' ' -f 1)
(($# > 0)) || [[ $action == release_arch ]] || wanted=("${wanted[@]:1}") # make test tests amd64
(($# == 0)) || wanted=("$@")
for each in "${wanted[@]}"; do
    row=$(table | grep "^$each ") || {
        echo "arch: $each: unknown architecture; known are: $(table | cut -d ' ' -f 1 | xargs)" >&2
        exit 64
    }
    # shellcheck disable=SC2086 # a row is several arguments
    with_tools "$action" $row </dev/null
done
end_of_results
