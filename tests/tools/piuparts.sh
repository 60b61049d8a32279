#!/usr/bin/env bash
# piuparts: builds the Debian packages, and lets piuparts install and purge them in a clean root
# directory of this system's release. `make test-piuparts` runs it in new root directories.
#
#     tests/tools/piuparts.sh       as root
#
# piuparts fails if a package leaves files behind, or doesn't purge. Results are TAP.

set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/../.." || exit 1
. tests/tools/tap.sh piuparts

# Files that piuparts must not count, because no package of rlock's writes them: dpkg-preconfigure
# of debconf makes tmp.ci when apt-get installs packages, and never removes it.
ignored=(-i /var/cache/debconf/tmp.ci)

log=build/piuparts.log
status=0
mkdir -p build
{
    # shellcheck source=/dev/null
    . /etc/os-release
    # nocheck: `make test-packages` builds the same packages with their unit tests.
    tests/tools/deps.sh piuparts && DEB_BUILD_OPTIONS=nocheck make deb &&
        find build/release -name '*.deb' ! -name '*dbgsym*' -print0 |
        xargs -0 piuparts -d "$VERSION_CODENAME" \
            -m 'http://deb.debian.org/debian main' "${ignored[@]}"
} >"$log" 2>&1 </dev/null || status=$?
result "$status" "$(tail -n 1 "$log")" <(grep -A9 -E ' (ERROR|FAIL)' "$log" || cat "$log")
end_of_results
