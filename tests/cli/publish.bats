#!/usr/bin/env bats
# publish: the workflows call make targets only; make publish uploads a tagged release and nothing
# else.

load ../helpers/common

# other_commands: prints the commands of workflows that can be no make target.
other_commands() {
    # The image debian:12 has neither make nor git.
    echo 'apt-get update'
    echo 'apt-get install -y --no-install-recommends ca-certificates gcc git libc6-dev make'
    # This command changes a setting of the user, which make must not do on anybody's own machine.
    echo "git config --global --add safe.directory '*'"
    # This command changes a setting of the kernel, which make must not do on anybody's own machine.
    echo 'sudo sysctl vm.mmap_rnd_bits=28'
    # The job of this command has no checkout. The job only looks at the results of other jobs, to
    # be the one job that a branch rule asks for.
    sed -n "s/^ *- run: \(test '.*\)/\1/p" "$ROOT/.github/workflows/ci.yml"
}

# workflow_commands: prints each command of the workflows. `make X` stands for each target of the
# matrix if X is ${{ matrix.target }}.
workflow_commands() {
    local targets
    targets=$(sed -nE 's/^ *target: \[(.*)\]$/\1/p' "$ROOT/.github/workflows/ci.yml" | tr -d ,)
    sed -nE 's/^ *(- )?run: //p' "$ROOT"/.github/workflows/*.yml | sed 's/ && /\n/g' |
        while read -r command; do
            case $command in
                *'${{ matrix.target }}') printf 'make %s\n' $targets ;;
                *) echo "$command" ;;
            esac
        done
}

@test "workflows: each command is a call of make, except a few that can be no make target" {
    local command n=0
    while read -r command; do
        n=$((n + 1))
        ! other_commands | grep -Fqx -e "$command" || continue
        [[ $command == 'make '* ]] || fail "not a call of make: $command"
        make_targets | grep -Fqx "$(cut -d ' ' -f 2 <<<"$command")" ||
            fail "no such make target: $command"
    done < <(workflow_commands)
    ((n >= 15)) || fail "only $n commands found"
}

# clone_of_release: makes a clone of the sources with a release in build/release, and a `gh` that
# writes its arguments to $DIR/gh.
clone_of_release() {
    need git
    need ssh-keygen
    git -C "$ROOT" rev-parse -q --verify HEAD >"$DIR/head" || skip 'the sources are not in git'
    git clone -q "$ROOT" "$DIR/clone"
    cd "$DIR/clone" || return
    VERSION=$(sed -n 's/^#define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
    git tag --list 'v[0-9]*' | xargs -r git tag -d >/dev/null
    git config user.name test && git config user.email test@test.invalid
    mkdir -p build/release "$DIR/bin"
    echo 'a package' >build/release/rlock.deb
    (cd build/release && sha256sum rlock.deb >SHA256SUMS)
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$DIR/key"
    printf '#!/bin/sh\nprintf "%%s\\n" "$@" >"%s"\n' "$DIR/gh" >"$DIR/bin/gh"
    chmod +x "$DIR/bin/gh"
    PATH=$DIR/bin:$PATH
}

# take_names: gives the project names that are no placeholders, as its owners would, and the public
# key of $DIR/key.
take_names() {
    sed -i "s,^\(KEY *= \).*,\1$(cut -d ' ' -f 1-2 "$DIR/key.pub"),
        s/placeholder\.example/owners.invalid/; s/^\(MAINTAINER *= \).* </\1Ann Owner </" \
        packaging/names
    make -s names >"$DIR/changed"
    git commit -qam 'packaging: take names'
}

@test "names: make names carries packaging/names into documents, manual pages and packages" {
    clone_of_release
    take_names
    local file
    for file in README.md SECURITY.md man/rlock.1 lib/rlock.pc.in packaging/APKBUILD \
        packaging/{Containerfile,rlock.spec,rlock.spdx.in} packaging/debian/{control,copyright}; do
        grep -Fqx "$file" "$DIR/changed" || fail "$file has none of the names"
    done
    grep -Fqx 'Maintainer: Ann Owner <rlock@owners.invalid>' packaging/debian/control
    grep -Fqx '.An Ann Owner Aq Mt rlock@owners.invalid .' man/rlock.1
    grep -Fqx 'BugURL:         https://github.com/owners.invalid/rlock/issues' packaging/rlock.spec
    grep -Fqx "rlock $(cut -d ' ' -f 1-2 "$DIR/key.pub")" SECURITY.md
    run -0 make -s check-names
    echo 'see placeholder.example' >>README.md
    run ! make -s check-names
    assert_match "$output" '^README.md:[0-9]+:see placeholder.example'
}

@test "publish: it uploads what SHA256SUMS names, if name, tag, signature and sums are right" {
    clone_of_release
    git tag v99.0.0
    refused "HEAD does not have the tag v$VERSION"
    git tag "v$VERSION"
    refused 'packaging/names:[0-9]+:HOMEPAGE .*placeholder.*edit packaging/names, run make names, '
    take_names
    git tag -f "v$VERSION"
    refused 'nothing is signed; sign by: make sign SIGN_KEY=FILE'
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$DIR/other"
    SIGN_KEY_TEXT=$(<"$DIR/other") run -0 make -s sign
    [[ ! -e build/sign_key ]]
    refused 'SHA256SUMS is not signed by the KEY of packaging/names'
    echo 'another package' >build/release/rlock.deb
    run -0 make -s sign SIGN_KEY="$DIR/key"
    refused 'rlock.deb: FAILED'
    echo 'a package' >build/release/rlock.deb
    run -0 make -s sign SIGN_KEY="$DIR/key"
    touch build/release/other
    run -0 make -s publish
    assert_eq "$(sed -n '1,4p' "$DIR/gh")" $'release\ncreate\n'"v$VERSION"$'\n--verify-tag'
    assert_eq "$(grep '^build/' "$DIR/gh" | xargs -n 1 basename | xargs)" \
        'SHA256SUMS SHA256SUMS.sig rlock.deb'
}
refused() {
    run ! make -s publish
    assert_match "$output" "$1"
    [[ ! -e $DIR/gh ]]
}
