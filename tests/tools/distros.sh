#!/usr/bin/env bash
# distros: runs both commands of the README in clean root directories of Debian releases.
#
#     tests/tools/distros.sh [--quick | --deb 'FILE ...'] [SUITE[:chroot]]... [-- COMMAND]
#                                                              as root; needs debootstrap
#
# SUITE is a release of Debian. Its root directory is a mount point of its own, as in a container;
# with `:chroot` a plain folder, where the propagation of mounts can't be changed. Default: bookworm
# and trixie:chroot, with --quick: trixie.
#
# The commands are `make demo` and `make test`; with --quick `make demo`, `make static` and the
# build of all that tests need; with --deb deb.sh with these packages; after `--` COMMAND alone,
# whose release is copied to build/distros/SUITE-release. They run on a clone of HEAD, with git,
# make and a C compiler installed, in namespaces of their own. Results are TAP; build/distros has
# the output. ~/.cache/rlock-roots keeps the root directories as debootstrap makes them for a week.
#
#     DISTROS_MIRROR=URL    the mirror; default: http://deb.debian.org/debian
#     DISTROS_KEYRING=FILE  the keys; default: the file of the package debian-archive-keyring

set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."
. tests/tools/tap.sh distros

mirror=${DISTROS_MIRROR:-http://deb.debian.org/debian}
keyring=${DISTROS_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
bases=${XDG_CACHE_HOME:-$HOME/.cache}/rlock-roots
folder=$PWD/build/distros
root=

# make_base SUITE: makes the root directory $bases/SUITE, with the local CA certificates of this
# machine, unless there is one that is at most a week old. An older one is kept if the mirror can't
# be reached.
make_base() {
    local base=$bases/$1 new=$bases/$1.new.$$
    [[ -z $(find "$base" -maxdepth 0 -mtime -7 2>/dev/null) ]] || return 0
    if debootstrap --force-check-gpg --keyring="$keyring" --variant=minbase \
        --include=ca-certificates,git,make,gcc,libc6-dev \
        "$1" "$new" "$mirror" >"$folder/$1.base.log" 2>&1; then
        [[ ! -d /usr/local/share/ca-certificates ]] ||
            cp -a /usr/local/share/ca-certificates "$new/usr/local/share/"
        chroot "$new" update-ca-certificates >/dev/null 2>&1
        rm -rf --one-file-system "$new"/var/cache/apt/archives/*.deb "$base"
        touch "$new"
        mv -T "$new" "$base"
    else
        rm -rf --one-file-system "$new"
        [[ -d $base ]] && echo "# $1: debootstrap failed; the root directory is older than a week"
    fi
}

# make_root SUITE: makes the root directory $root, a copy of $bases/SUITE, with the DNS settings of
# this machine and the source.
make_root() {
    root=$(mktemp -d "$folder/root.XXXXXX")
    cp -a "$bases/$1/." "$root"
    cp /etc/resolv.conf "$root/etc/"
    git clone -q . "$root/src/rlock"
    ((${#debs[@]} == 0)) || cp "${debs[@]}" "$root/src/"
    ! command -v qemu-aarch64-static >/dev/null ||
        cp "$(command -v qemu-aarch64-static)" "$root/src/qemu-arm64"
}
remove_root() { [[ -z $root ]] || rm -rf --one-file-system "$root"; }
trap remove_root EXIT
trap 'exit 1' HUP INT TERM

# inside KIND COMMAND: runs the shell command COMMAND with the root directory $root, in the source
# there. When COMMAND ends, the kernel kills all processes of its process namespace.
inside() {
    # shellcheck disable=SC2016 # the variables are for the shell in the namespace
    unshare --mount --pid --fork --kill-child bash -c '
        set -e
        mount --make-rprivate /
        [[ $1 == chroot ]] || mount --bind "$0" "$0"
        mount -t proc proc "$0/proc"
        mount -t sysfs sysfs "$0/sys"
        mount --rbind /dev "$0/dev"
        exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            TERM="${TERM:-dumb}" DEBIAN_FRONTEND=noninteractive \
            NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
            sh -c "cd /src/rlock && $2"' "$root" "$1" "$2" </dev/null
}

# counts LOG: prints how many tests passed, failed and were skipped, if any ran.
counts() { sed -n 's/^[0-9]* passed, .*/: &/p' "$1" | tail -n 1; }

# run_in SUITE KIND: runs the commands, until one fails.
run_in() {
    local log command from status i=0
    make_root "$1"
    for command in "${commands[@]}"; do
        log=$folder/$1-$2.$((++i)).log
        from=$SECONDS status=0
        inside "$2" "$command" >"$log" 2>&1 || status=$?
        result "$status" "$1, $2: $command, $((SECONDS - from)) s$(counts "$log")"
        ((status == 0)) || {
            grep '^not ok' "$log" | sed 's/^/# /' || tail -n 5 "$log" | sed 's/^/# /'
            break
        }
    done
    [[ ! -d $root/src/rlock/build/release ]] ||
        { rm -rf "$folder/$1-release" && mv "$root/src/rlock/build/release" "$folder/$1-release"; }
    remove_root
    root=
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
mkdir -p "$folder" "$bases"
commands=('make demo' 'make test')
systems=(bookworm trixie:chroot)
debs=()
if [[ ${1:-} == --deb ]]; then
    read -ra debs <<<"$2"
    [[ -e ${debs[0]} ]] || { echo 'distros: no package to install (make release)' >&2 && exit 1; }
    shift 2
    commands=("apt-get update && tests/tools/deb.sh $(printf '/src/%s ' "${debs[@]##*/}")")
fi
if [[ ${1:-} == --quick ]]; then
    shift
    commands=('make demo' 'make static' 'tests/tools/deps.sh test && make -j2 WERROR=1 tests-built')
    systems=(trixie)
fi
(($# == 0)) || systems=()
while (($# > 0)) && [[ $1 != -- ]]; do systems+=("$1") && shift; done
(($# < 2)) || commands=("${*:2}")
echo '# left out: Ubuntu, Alpine, Fedora, as the mirror has only releases of Debian'
for each in "${systems[@]}"; do
    suite=${each%%:*} kind=mount
    [[ $each != *:chroot ]] || kind=chroot
    make_base "$suite" || {
        result 1 "$suite: debootstrap failed; see $folder/$suite.base.log"
        continue
    }
    run_in "$suite" "$kind"
done
end_of_results
