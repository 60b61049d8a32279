#!/usr/bin/env bats
# install: make install says which file it installs where, and how to remove all files; make
# uninstall leaves none.

load ../helpers/common

in_root() { make -s -C "$ROOT" FLAVOUR=plain "$@" DESTDIR="$DIR/root" PREFIX=/opt/rlock; }
files() { find "$DIR/root" -mindepth 1 ! -type d | sort; }

@test "install: it prints the place of each file, and how to remove all" {
    ! is_sanitized || skip 'make install installs the plain build'
    run -0 in_root install
    assert_eq "$(sed -n 's/^installed //p' <<<"$output" | sort)" "$(files)"
    assert_match "$(files)" '/opt/rlock/bin/rlock'
    assert_match "$(files)" '/opt/rlock/share/man/man1/rlock.1'
    assert_match "$(files)" '/opt/rlock/share/bash-completion/completions/rlock'
    assert_eq "$(tail -n 1 <<<"$output")" \
        "to remove it: make uninstall PREFIX=/opt/rlock DESTDIR=$DIR/root"
}

@test "install: make uninstall removes each file and folder of rlock, and no others" {
    ! is_sanitized || skip 'make install installs the plain build'
    run -0 in_root install
    touch "$DIR/root/opt/rlock/share/man/man1/other.1"
    run -0 in_root uninstall
    assert_eq "$(files)" "$DIR/root/opt/rlock/share/man/man1/other.1"
    rm "$DIR/root/opt/rlock/share/man/man1/other.1"
    run -0 in_root uninstall
    assert_eq "$(find "$DIR/root/opt/rlock" -mindepth 1 -printf '%P\n' | sort)" \
        $'bin\nshare\nshare/man'
}
