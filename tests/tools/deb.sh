#!/usr/bin/env bash
# deb: builds the Debian packages, checks them with lintian, installs them, runs their tests against
# what is installed, and removes them. `make test-packages` runs it in new root directories.
#
#     tests/tools/deb.sh            as root; it installs and removes rlock on this system
#     tests/tools/deb.sh FILE.deb   the same with a package of the release, which is not built here
#
# A package for another architecture is tried in the emulator /src/qemu-ARCH, if that is there.
#
# Results are TAP. The tests are those of packaging/debian/tests, which autopkgtest would run.

set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1
. tests/tools/tap.sh deb

log=$(mktemp)
trap 'rm -f "$log" "$log".*' EXIT
export DEBIAN_FRONTEND=noninteractive MANPAGER=cat

# check TEXT COMMAND...: runs the command, and reports whether it succeeded.
check() {
    "${@:2}" </dev/null >"$log" 2>&1
    result $? "$1" "$log"
}

# files: prints all files of the system that a package could leave behind.
files() { find /etc /usr /var/lib /opt /srv -path /var/lib/apt -prune -o -print | grep -i rlock; }

# install_all: installs the packages, not those with debug symbols, and what their tests need.
install_all() {
    local packages
    mapfile -t packages < <(find "$PWD/build/release" -name '*.deb' ! -name '*dbgsym*')
    # shellcheck disable=SC2046 # each word is a package
    apt-get install -y --no-install-recommends "${packages[@]}" \
        $(sed -n 's/^Depends: //p' packaging/debian/tests/control | tr -d , | tr ' ' '\n' |
            grep -v rlock | sort -u) man-db bash-completion
}
lint() { lintian -EvIL +pedantic --allow-root --fail-on error,warning build/deb/*.changes; }
remove_all() { apt-get purge -y rlock librlock0 librlock-dev; }
completes() {
    bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader rlock
             complete -p rlock'
}

# release_package FILE: installs, tests and removes a package of the release.
release_package() {
    local file=$1 arch bin=/tmp/bin
    arch=$(dpkg-deb -f "$file" Architecture)
    check "$arch: what the tests need" \
        apt-get install -y --no-install-recommends redis-server procps man-db bash-completion
    dpkg --add-architecture "$arch"
    check "$arch: it can be installed, and needs no other package" dpkg -i "$file"
    mkdir -p "$bin"
    if [[ $arch == "$(dpkg --print-architecture)" ]]; then
        ln -sf /usr/bin/rlock "$bin/rlock"
    else
        printf '#!/bin/sh\nexec /src/qemu-%s -0 rlock /usr/bin/rlock "$@"\n' "$arch" >"$bin/rlock"
        chmod +x "$bin/rlock"
    fi
    for test in main-job signals wait-and-loss; do
        TEST_PORT=6390 PATH=$bin:$PATH check "$arch: autopkgtest: $test" \
            "packaging/debian/tests/$test"
    done
    check "$arch: man rlock" man rlock
    check "$arch: bash finds the completions" completes
    check "$arch: it can be removed" dpkg --purge rlock:"$arch"
    rm -r "$bin"
}

files >"$log.before"
if (($# > 0)); then
    for file; do release_package "$file"; done
else
    check 'make deb' make deb
    check 'lintian has no error and no warning' lint
    check 'the packages can be installed' install_all
    check 'rlock --version' rlock --version
    check 'bash finds the completions' completes
    check 'man rlock' man rlock
    check 'man 3 rlock_acquire' man 3 rlock_acquire
    for test in main-job signals wait-and-loss library; do
        check "autopkgtest: $test" "packaging/debian/tests/$test"
    done
    check 'the packages can be removed' remove_all
fi
files >"$log.after"
check 'nothing of the packages is left' diff "$log.before" "$log.after"
end_of_results
