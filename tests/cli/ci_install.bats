#!/usr/bin/env bats
# ci_install: GitHub's action and GitLab's template take the program from a release, and run none
# that isn't the one of SHA256SUMS, signed by the key of packaging/names. The release is a folder of
# this machine.

load ../helpers/common

setup() {
    common_setup
    need ssh-keygen
    cp -R "$ROOT/packaging" "$DIR/packaging"
    mkdir "$DIR/lib" "$DIR/release" "$DIR/job" "$DIR/bin"
    cp "$ROOT/lib/rlock.h" "$DIR/lib/"
    VERSION=$(sed -n 's/^#define RLOCK_VERSION "\(.*\)"/\1/p' "$DIR/lib/rlock.h")
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$DIR/key"
    sed -i "s,ssh-ed25519 [^']*,$(cut -d ' ' -f 1-2 "$DIR/key.pub")," \
        "$DIR"/packaging/{names,gitlab-ci.yml}
    PROGRAM=rlock-$VERSION-linux-riscv64
    printf '#!/bin/sh\necho right\n' >"$DIR/release/$PROGRAM"
    sign "$DIR/key"
    cd "$DIR/job" || return
    RELEASE=file://$DIR/release
}

# sign KEY: writes the sums of the release, and signs them.
sign() {
    (cd "$DIR/release" && sha256sum -- rlock-* >SHA256SUMS && rm -f SHA256SUMS.sig &&
        ssh-keygen -q -Y sign -n rlock-release -f "$1" SHA256SUMS)
}

# github, gitlab: install rlock from $RELEASE as a job on riscv64 (or $MACHINE) does, and run it.
# The runner keeps one folder for later jobs: tools of GitHub's runner, .rlock in GitLab's cache.
github() {
    env RUNNER_OS=Linux RUNNER_ARCH="${MACHINE:-riscv64}" RUNNER_TOOL_CACHE="$DIR/tools" \
        GITHUB_PATH="$DIR/path" INPUT_MIRROR="$RELEASE" node -e '
        require(process.argv[1] + "/install.js").install().then(console.log)' \
        "$DIR/packaging/github-action" && PATH=$(tail -n 1 "$DIR/path"):$PATH sh -c rlock
}
gitlab() {
    printf '#!/bin/sh\necho %s\n' "${MACHINE:-riscv64}" >"$DIR/bin/uname"
    chmod +x "$DIR/bin/uname"
    {
        "$ROOT/tests/tools/read_config.py" yaml "$DIR/packaging/gitlab-ci.yml" \
            .rlock.before_script | tr '\0' '\n'
        echo rlock
    } >script
    RELEASE_OF_RLOCK=$RELEASE PATH=$DIR/bin:$PATH sh -e script
}
systems() {
    command -v node >/dev/null && echo github
    if command -v curl >/dev/null && python3 -c 'import yaml' 2>/dev/null; then
        echo gitlab
    fi
}
each() {
    local each=0
    for SYSTEM in $(systems); do
        "$@"
        each=$((each + 1))
    done
    ((each > 0)) || skip_or_fail 'node, or python3-yaml and curl'
}

# refused TEXT: the job ends with a message that has the text, and rlock doesn't run.
refused() {
    rm -rf "$DIR/tools" .rlock
    run ! --separate-stderr "$SYSTEM"
    assert_match "$output$stderr" "$1"
    refute_match "$output" 'right'
}

runs() {
    run -0 --separate-stderr "$SYSTEM"
    assert_eq "${lines[-1]}" right
}

@test "install: the program runs, also when the release is away; a changed one is replaced" {
    each is_kept_and_replaced
}
is_kept_and_replaced() {
    runs
    RELEASE=file://$DIR/away runs
    find "$DIR" -path "$DIR/release" -prune -o -name "$PROGRAM" -print >kept
    [[ -s kept ]]
    while read -r file; do printf '#!/bin/sh\necho wrong\n' >"$file"; done <kept
    runs
}

@test "install: it comes over HTTP, too" {
    need python3
    start server python3 -u -m http.server --bind 127.0.0.1 --directory "$DIR/release" 0
    eventually 20 file_has "$DIR/server.out" 'port [0-9]+'
    RELEASE=http://127.0.0.1:$(grep -oE 'port [0-9]+' "$DIR/server.out" | cut -d ' ' -f 2)
    each runs
}

@test "install: another program, sums of another key, and sums that were changed are refused" {
    echo more >>"$DIR/release/$PROGRAM"
    each refused "$PROGRAM is not the file that SHA256SUMS names"
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$DIR/other"
    sign "$DIR/other"
    each refused 'SHA256SUMS is not signed by the key of rlock'
    sign "$DIR/key"
    echo "# more" >>"$DIR/release/SHA256SUMS"
    each refused 'SHA256SUMS is not signed by the key of rlock'
    sign "$DIR/key"
    ssh-keygen -q -Y sign -n other -f "$DIR/key" <"$DIR/release/SHA256SUMS" \
        >"$DIR/release/SHA256SUMS.sig"
    each refused 'SHA256SUMS is not signed by the key of rlock'
    head -c 100 "$DIR/key.pub" >"$DIR/release/SHA256SUMS.sig"
    each refused 'SHA256SUMS is not signed by the key of rlock'
}

@test "install: the job ends without a network, and on an architecture without a program" {
    RELEASE=http://127.0.0.1:1 each refused "can't be downloaded: http://127.0.0.1:1"
    MACHINE=mips each refused 'no release .*has a program for mips'
}
