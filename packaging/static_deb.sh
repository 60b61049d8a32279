#!/usr/bin/env bash
# static_deb: makes a Debian package of a static program, the manual and the completions. It depends
# on no other package, so it installs on each release of Debian and Ubuntu. `make release` runs it.
#
#     SOURCE_DATE_EPOCH=SECONDS packaging/static_deb.sh ARCH PROGRAM FOLDER
#
# writes FOLDER/rlock_VERSION_ARCH.deb. It may write in this tree. The texts are those of
# packaging/debian. The version has no revision behind it, so a package of a distribution, such as
# VERSION-1, replaces this one.

set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."
umask 022

arch=$1 folder=$3 root=build/static-deb/$1
version=$(sed -n 's/^#define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
doc=$root/usr/share/doc/rlock
rm -rf "$root"
mkdir -p "$root/DEBIAN" "$doc" "$root/usr/share/lintian/overrides"

cp "$2" rlock
make -s -o all install DESTDIR="$root" PREFIX=/usr >/dev/null
gzip -9n "$root"/usr/share/man/man*/*
cp README.md packaging/debian/copyright "$doc/"
sed "1s/-[^-)]*)/)/" packaging/debian/changelog | gzip -9n >"$doc/changelog.gz"
printf '# The program is static on purpose: so the package needs no other one.
rlock: statically-linked-binary [usr/bin/rlock]\n' >"$root/usr/share/lintian/overrides/rlock"

# field NAME: prints a field of the first paragraph, that of the source, in packaging/debian/control.
field() { sed -n "/^\$/q; s/^$1: //p" packaging/debian/control; }
{
    echo "Package: rlock"
    echo "Version: $version"
    echo "Architecture: $arch"
    echo "Maintainer: $(field Maintainer)"
    echo "Installed-Size: $(find "$root/usr" -type f -printf '%s\n' |
        awk '{ kb += int(($1 + 1023) / 1024) } END { print kb }')"
    echo "Recommends: ca-certificates"
    echo "Section: $(field Section)"
    echo "Priority: $(field Priority)"
    echo "Homepage: $(field Homepage)"
    sed -n '/^Package: rlock$/,/^$/p' packaging/debian/control | sed -n '/^Suggests/p'
    sed -n '/^Package: rlock$/,/^$/p' packaging/debian/control | sed -n '/^Description/,/^$/{/./p}'
} >"$root/DEBIAN/control"
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
dpkg-deb -Zxz --build --root-owner-group "$root" "$folder/rlock_${version}_$arch.deb" >/dev/null
