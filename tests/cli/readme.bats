#!/usr/bin/env bats
# readme: each block of the README does what the page says. Its picture is the one that make draws.

load ../helpers/common
load ../helpers/server
load ../helpers/blocks
load ../helpers/systems

DOCUMENT=$ROOT/README.md

setup() { systems_setup; }

@test "readme: it has at most 150 lines, and a test runs each of its blocks" {
    (($(wc -l <"$DOCUMENT") <= 150)) || fail "more than 150 lines: $(wc -l "$DOCUMENT")"
    assert_eq "$(blocks_of_page | sort)" "$(tested_blocks)"
    (($(blocks_of_page | wc -l) >= 8))
}

@test "readme: each file that the documents link to is there" {
    local file target
    for file in README.md docs/comparison.md docs/cost.md docs/recipes.md; do
        for target in $(grep -oE '\]\([^)#]+' "$ROOT/$file" | sed 's/](//' | grep -v '^https:'); do
            [[ -e $ROOT/$(dirname "$file")/$target ]] || fail "$file: no such file: $target"
        done
    done
}

@test "readme: make demo shows three jobs, one after the other, with higher and higher fences" {
    local fences
    unset RLOCK_URL
    run -0 --separate-stderr env RLOCK="$RLOCK" "$ROOT/tests/tools/demo.sh"
    mapfile -t fences < <(grep -oE 'fence [0-9]+' <<<"$output" | cut -d ' ' -f 2)
    ((${#fences[@]} == 2 && fences[1] > fences[0])) || fail "fences: ${fences[*]}"
    assert_eq "$(sed -nE 's/^   ([a-z]+: [a-z]+).*/\1/p' <<<"$output" | xargs)" \
        'first: has first: ready third: has'
    assert_match "$output" 'its exit status is 75: the lock is held'
}

@test "readme: the first try, in two terminals: the second one waits for the first" {
    unset RLOCK_URL
    mkfifo go
    here 'Try it' 1 's/sleep 10/read -r go <go/'
    start first sh ./block
    eventually 10 file_has "$DIR/first.out" 'my turn'
    start second sh ./block
    never 1 test -s "$DIR/second.out"
    echo go >go
    ended 0 first
    eventually 10 file_has "$DIR/second.out" 'my turn'
    echo go >go
    ended 0 second
}

@test "readme: --explain says what would happen, and runs nothing" {
    unset RLOCK_URL
    here 'Try it' 2
    run -0 sh ./block
    assert_match "$output" 'The lease lasts 5m00s'
    refute_match "$output" 'my turn'
}

@test "readme: the line for cron runs the job once, and is silent for the others" {
    script backup 'echo backed up'
    here 'Use it' 1 "$COMMANDS"
    sed -i "1i PATH=$DIR/bin:$BASE\nRLOCK_URL=$RLOCK_URL" block
    cron_run 1
    assert_eq "$status:$output:$stderr" '0:backed up:'
    cron_run 1
    assert_eq "$status:$output:$stderr" 0::
}

@test "readme: the step for CI deploys, and ends with 75 if another deploy takes too long" {
    script deploy.sh 'echo deployed'
    here 'Use it' 2 's/ 30m / 2 /'
    github_step 0.run
    run -0 github_run RLOCK_URL="$RLOCK_URL"
    assert_eq "$output" deployed
    held_by_other deploy
    run -75 github_run RLOCK_URL="$RLOCK_URL"
}

# bats test_tags=long
@test "readme: the systemd unit runs the daemon on one host at a time" {
    script mailer 'echo mailer; exec sleep 60'
    here 'Use it' 3 "$COMMANDS" "s,/usr/bin/rlock,$RLOCK,"
    sed -i "1a Environment=RLOCK_URL=$RLOCK_URL" block
    unit_start first
    local first=$pid
    eventually 10 file_has "$DIR/first.out" mailer
    unit_start second
    eventually 10 in_line 1 daemon:mailer
    kill -TERM "$first"
    eventually 10 file_has "$DIR/second.out" mailer
}

@test "readme: a terminal of 100 columns shows the history as the README does" {
    /usr/bin/python3 -c 'import pyte' 2>/dev/null || skip_or_fail 'the Python module pyte'
    here 'Use it' 4
    note 1 2 2026-11-24T02:15 'status=0 reason=exited held=1421000'
    note 2 612000 2026-11-25T02:25:12 'status=0 reason=exited held=1390000'
    note 3 3 2026-11-26T02:15
    note 1 3 2026-11-27T02:15 'status=124 reason=max-hold held=3600000'
    assert_eq "$(head -n 1 block)" '$ rlock history -k job:nightly'
    TZ=CET-1 LC_ALL=C.UTF-8 /usr/bin/python3 "$ROOT/tests/tools/screen.py" \
        --until max-hold 100 -- "$RLOCK" history -k job:nightly >rows
    assert_eq "$(sed -n 's/^100\t//p' rows)" "$(sed 1d block)"
}
# note N WAITED_MS GRANTED [END]: notes a run of the job on the host webN.
note() {
    local words="token=00000000000$1 fence=$1"
    redis_cli rpush '{job:nightly}:rlock:history' \
        "grant v1 $words ttl=30000 waited=$2 since=$(TZ=CET-1 date -d "$3" +%s000) \
user=root host=web$1 command=backup pid=4711" ${4:+"end v1 $words $4"} >/dev/null
}

# without_numbers: copies standard input, with N for each number, and without what differs from
# machine to machine.
without_numbers() {
    sed -E 's/[0-9]+([.][0-9]+)*/N/g; s/(ahead of|behind) this/ahead of this/; s/^(.* host:).*/\1/'
}

@test "readme: doctor says of a Redis as it is installed what the README shows" {
    here 'Is the server safe?' 1
    assert_eq "$(head -n 1 block)" '$ rlock doctor -k job:nightly'
    run --separate-stderr on_its_clock sh -c "$(sed -n '1s/^. //p' block)"
    assert_status 78
    assert_eq "$(without_numbers <<<"$output")" "$(sed 1d block | without_numbers)"
}

@test "readme: the program is downloaded, checked and installed; a wrong one is not" {
    need curl
    need ssh-keygen
    local version key program release=$DIR/release
    version=$(sed -n 's/^#define RLOCK_VERSION "\(.*\)"/\1/p' "$ROOT/lib/rlock.h")
    program=rlock-$version-linux-amd64
    mkdir "$release"
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$DIR/key"
    key=$(cut -d ' ' -f 1-2 "$DIR/key.pub")
    cp "$RLOCK" "$release/$program"
    (cd "$release" && sha256sum "$program" >SHA256SUMS &&
        ssh-keygen -q -Y sign -n rlock-release -f "$DIR/key" SHA256SUMS)
    here 'Install' 1 "s,https://.*/v$version ,file://$release ," "s,ssh-ed25519 [^']*,$key," \
        "s,/usr/local/bin,$DIR,"
    run -0 sh ./block
    assert_match "$("$DIR/rlock" --version)" "^rlock $version "
    rm "$DIR/rlock"
    echo more >>"$release/$program"
    run ! sh ./block
    [[ ! -e $DIR/rlock ]]
    # The same check, as SECURITY.md has it.
    block "$ROOT/SECURITY.md" 'How to check a release' 2
    cp "$RLOCK" "$release/$program"
    cp rlock.signers "$release/"
    cd "$release"
    run -0 sh "$DIR/here/block"
    echo more >>"$program"
    run ! sh "$DIR/here/block"
}

# ---- docs/cheatsheet.md ----

@test "cheatsheet: it is one screen of ten commands, and each does what its comment says" {
    local line command n=0
    for line in backup.sh deploy.sh report render; do script "$line" 'echo "$0 $RLOCK_SLOT"'; done
    block "$ROOT/docs/cheatsheet.md" 'Ten commands'
    while IFS= read -r line; do
        printf '%s\n' "$line" >line
        n=$((n + 1))
        run --separate-stderr sh ./line
        case $line in
            *-n\ --*) assert_status 0 && hold other -k job:nightly && run -75 sh ./line ;;
            *status*) assert_status 75 && let_go other ;;
            *doctor*) assert_status 78 && assert_match "$output" 'persistence' ;;
            *) assert_status 0 ;;
        esac
    done <block
    assert_eq "$n" 10
    gone deploy
    (($(wc -l <"$ROOT/docs/cheatsheet.md") <= 40))
    ! grep -nE '.{100}' "$ROOT/docs/cheatsheet.md"
}

# ---- the picture ----

# The row of the waiting rlock has the holder's pid only where it fits, and pids differ in length.
without_pid() { without_numbers | sed 's/, pid N//'; }

# bats test_tags=long
@test "pictures: docs/terminals.svg shows what two terminals show" {
    /usr/bin/python3 -c 'import pyte' 2>/dev/null || skip_or_fail pyte
    assert_match "$(make -s -n -C "$ROOT" pictures)" 'two_terminals.py docs/terminals.svg'
    "$ROOT/tests/tools/two_terminals.py" "$DIR/terminals.svg" 3>&-
    assert_eq "$(without_pid <"$DIR/terminals.svg")" "$(without_pid <"$ROOT/docs/terminals.svg")"
    grep -q 'prefers-color-scheme: dark' "$ROOT/docs/terminals.svg"
}
