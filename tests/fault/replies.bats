#!/usr/bin/env bats
# replies: whatever a server replies, also nothing, rlock ends with the right status, and needs
# little memory.
#
# tests/unit has each reply at its place: test_resp.c what is no RESP, test_replies.c what no script
# replies, test_error_reply.c each error, test_quorum.c when rlock asks again, test_renewer.c the
# replies to a renewal. Here one of each kind goes through the program. These cases run at the same
# time, as most of them only wait.

load ../helpers/common
load ../helpers/fake

MEMORY_KIB=16384 # limit of rlock's address space (ulimit -v)

NOW=1700000000000

bounded() {
    is_sanitized || ulimit -v "$MEMORY_KIB"
    exec "$@"
}

# Each line is NAME|STATUS|STEPS: a fake server does the STEPS on each connection, and an rlock that
# asks it ends with STATUS and a message, and runs no command. The replies are those to scripts:
# with --scripts yes rlock doesn't go on by commands after a refusal.
@test "acquire: a reply that is no grant, or none: the right status, in time and under 16 MB" {
    local name number steps failed=''
    local -A wanted
    while IFS='|' read -r name number steps; do
        wanted[$name]=$number
        fake_start "$name.fake" < <(tr ';' '\n' <<<"ACCEPT;$steps;LOOP")
        start "$name" bounded "$RLOCK" -u "redis://127.0.0.1:$FAKE_PORT" -k "$KEY:$name" -n -t 3 \
            --connect-timeout 1 --scripts yes -- touch "$DIR/ran"
    done <<END
bulk_that_comes|69|READ;BULK 1073741824;STREAM x
array_of_2_to_the_63|69|READ;SEND *9223372036854775807\r\n;STREAM :1\r\n
depth_without_end|69|READ;STREAM *1\r\n
stream_of_replies|69|READ;STREAM :1\r\n
nothing|69|READ;STALL
half_and_reset|69|READ;SEND *3\r\n:1\r\n:1700;RESET
close|69|CLOSE
http|69|READ;SEND HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n;CLOSE
fence_with_nul|69|READ;SEND *3\r\n:1\r\n:$NOW\r\n\$3\r\n5\x00x\r\n
loading|69|READ;SEND -LOADING Redis is loading the dataset in memory\r\n;STALL
noperm|77|READ;SEND -NOPERM this user has no permissions to run the 'eval' command\r\n;STALL
crossslot|78|READ;SEND -CROSSSLOT Keys in request don't hash to the same slot\r\n;STALL
END
    for name in "${!wanted[@]}"; do
        finish "$name" 30 && [[ $status == "${wanted[$name]}" ]] &&
            [[ $stderr =~ (^|$'\n')"rlock: $KEY:$name: "[a-z\ -]+:\  ]] ||
            failed+="case $name: status $status, wanted ${wanted[$name]}; stderr: $stderr"$'\n'
    done
    [[ -z $failed ]] || fail "$failed"
    [[ ! -e $DIR/ran ]] || fail 'a command was run'
}

# ---- real servers ----

@test "a server that runs a script for too long: an acquire gets 69, a holder keeps its lock" {
    redis_start redis --lua-time-limit 50
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    hold holder -k "$KEY:held" -t 20
    start script redis_cli eval 'while true do end' 0
    eventually 20 file_has "$DIR/holder.err" ': renewal-failed: .*BUSY'
    run -69 --separate-stderr rlock -n --connect-timeout 1 -k "$KEY" -- true
    assert_match "$stderr" "^rlock: $KEY: server not ready: .*BUSY"
    redis_cli script kill >/dev/null
    eventually 20 file_has "$DIR/holder.err" ': renewed'
    let_pass holder 7
}
