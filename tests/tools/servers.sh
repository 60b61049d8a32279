#!/usr/bin/env bash
# servers: gets the servers that rlock is tried with, from the packages of several Debian releases.
#
#     servers.sh list              prints a row for each server: its name, and its version
#     servers.sh get [NAME...]     downloads the servers that the cache lacks; default: all
#     servers.sh program NAME      prints the path of the program that starts the server
#
# Nothing is installed, and nothing needs root: apt-get downloads the package and what it needs, and
# dpkg-deb unpacks them. The program is a shell script that starts the server by the dynamic loader
# of its own release. To get newer packages, remove the server's folder in the cache.
#
#     RLOCK_SERVERS=FOLDER  the cache; default: ~/.cache/rlock-servers
#     DISTROS_MIRROR=URL, DISTROS_KEYRING=FILE   as for distros.sh
#
# A server that can't be had is named in a line `left out: NAME (why)`; then the exit status is 1.

set -euo pipefail

cache=${RLOCK_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/rlock-servers}
mirror=${DISTROS_MIRROR:-http://deb.debian.org/debian}
keyring=${DISTROS_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}

# table: a row for each server: its name, the release, and the package that has the program. (In
# Debian, redis-server is a link to redis-check-rdb, which is in the package redis-tools.)
table() {
    cat <<'END'
redis-6.0   bullseye  redis-tools
redis-7.0   bookworm  redis-tools
redis-8.0   trixie    redis-tools
redis-8     sid       redis-tools
valkey-8.1  trixie    valkey-tools
valkey-9.1  sid       valkey-tools
END
}

die() {
    echo "servers: $*" >&2
    exit 1
}

program() { echo "$cache/$1/${1%%-*}-server"; } # NAME

# version NAME: prints the version that the server says it has.
version() { "$(program "$1")" --version | sed -n 's/.* v=\([^ ]*\).*/\1/p'; }

# why_not: prints why this machine can't get servers; nothing if it can.
why_not() {
    if [[ $(uname -m) != x86_64 ]]; then
        echo "servers are had for x86_64 only, and this is $(uname -m)"
    elif ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
        echo 'no apt-get and dpkg-deb here'
    elif [[ ! -r $keyring ]]; then
        echo "$keyring is missing; the package debian-archive-keyring has it"
    fi
}

# lists SUITE: makes apt's configuration and package lists for this release, in $work/SUITE. The
# lists may be old: a mirror may be a snapshot, and their signature is checked all the same.
lists() {
    local apt=$work/$1
    export APT_CONFIG=$apt/apt.conf
    [[ ! -d $apt ]] || return 0
    mkdir -p "$apt"/{etc/apt/{apt.conf,preferences,sources.list}.d,var/lib/apt/lists/partial} \
        "$apt/var/cache/apt/archives/partial"
    : >"$apt/status"
    echo "deb [signed-by=$keyring] $mirror $1 main" >"$apt/etc/apt/sources.list"
    {
        env -u APT_CONFIG apt-config dump | grep -E '^Acquire::https?::' || : # proxies
        cat <<END
Dir "$apt";
Dir::State::status "$apt/status";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Immediate-Configure "false";
APT::Install-Recommends "false";
APT::Sandbox::User "";
END
    } >"$apt/apt.conf"
    apt-get -q update -o APT::Update::Error-Mode=any
}

# unpack NAME SUITE PACKAGE: unpacks the server into the folder $work/NAME.
unpack() {
    local to=$work/$1 program=${1%%-*}-server deb loader
    lists "$2" && apt-get clean && apt-get -qy --download-only install "$3" || return
    mkdir -p "$to/root" "$to/bin"
    for deb in "$work/$2"/var/cache/apt/archives/*.deb; do
        dpkg-deb -x "$deb" "$to/root" || return
    done
    rm -rf "$to"/root/{etc,usr/share,var}
    ln -s "../root/usr/bin/${1%%-*}-check-rdb" "$to/bin/$program" # the program looks at its name
    loader=$(cd "$to" && ls -d root/{usr/,}lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 2>/dev/null)
    cat >"$to/$program" <<END
#!/bin/sh
here=\${0%/*}
exec "\$here/$loader" --library-path \\
    "\$here/root/usr/lib/x86_64-linux-gnu:\$here/root/lib/x86_64-linux-gnu" \\
    "\$here/bin/$program" "\$@"
END
    chmod 755 "$to/$program" && "$to/$program" --version
}

# get NAME SUITE PACKAGE: puts the server into the cache. Its folder gets its name when it is
# complete: a run that ends early leaves nothing half, and of two runs the first one wins.
get() {
    local log=$work/$1.log why
    [[ ! -x $(program "$1") ]] || return 0
    why=$(why_not)
    if [[ -z $why ]] && unpack "$@" >"$log" 2>&1; then
        mv -T "$work/$1" "$cache/$1" 2>/dev/null || [[ -x $(program "$1") ]]
        return
    fi
    echo "left out: $1 (${why:-$(grep -m 1 '^E: ' "$log" || tail -n 1 "$log")})"
    return 1
}

# rows [NAME...]: prints the rows of these servers; without names, of all.
rows() {
    local name
    (($# > 0)) || { table && return; }
    for name; do
        table | grep "^$name " || die "$name: no such server; servers.sh list prints them"
    done
}

wanted=$(rows "${@:2}")
case ${1:-} in
    list)
        while read -r name _; do
            printf '%-11s %s\n' "$name" "$(version "$name" 2>/dev/null || echo 'not in the cache')"
        done <<<"$wanted"
        ;;
    get)
        mkdir -p "$cache"
        work=$(mktemp -d "$cache/.new.XXXXXX")
        trap 'rm -rf "$work"' EXIT
        trap 'exit 1' HUP INT TERM
        failed=0
        while read -r name suite package; do
            get "$name" "$suite" "$package" </dev/null || failed=1
        done <<<"$wanted"
        exit "$failed"
        ;;
    program)
        (($# == 2)) || die 'usage: servers.sh program NAME'
        program "$2"
        ;;
    *) die 'usage: servers.sh list | get [NAME...] | program NAME' ;;
esac
