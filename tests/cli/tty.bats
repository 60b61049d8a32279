#!/usr/bin/env bats
# tty: on a terminal rlock and its command are one job, as any other command is.

load ../helpers/common
load ../helpers/server
load ../helpers/pty

setup() {
    server_setup
    pty_start show_signals hold_clock
}

shown() { eventually 5 file_has "$DIR/shown" "$1"; }
times() { grep -Ec "$1" "$DIR/shown"; }
nothing_left() { [[ -z $(named rlock rlock-guard hold_clock show_signals sleep cat) ]]; }
is_stopped() { stopped "$(named rlock)"; }
press_stop() {
    pty_key C-z
    pty_expect 5 'Stopped'
    pty_prompt
}

# ---- keys of the terminal ----

@test "^C: the command gets INT exactly once, and its status is returned" {
    pty_type 'rlock -k "$KEY" -- show_signals 10 3 >"$DIR/shown"'
    shown '^ready'
    pty_key C-c
    shown '^2 INT 0'
    # a second INT, if rlock passed it on, would reach the command before USR1
    kill -USR1 "$(named rlock)"
    pty_prompt
    assert_eq "$(times INT)" 1 'number of INTs that the command got'
    pty_status 3
}

@test "^C and ^\\: the command ends by INT or QUIT, and the shell sees 130 or 131" {
    local key
    for key in C-c:130 C-\\:131; do
        pty_type 'rlock -k "$KEY" -- hold_clock "$DIR/shown" 5'
        shown .
        pty_key "${key%:*}"
        pty_prompt
        gone "$KEY"
        pty_status "${key#*:}"
        rm "$DIR/shown"
    done
    nothing_left
}

@test "^C ends a loop of the shell, while the command runs and while rlock waits" {
    for _ in {1..5}; do # rlock and the command both get INT, and either may end first
        pty_type 'while :; do rlock -k "$KEY" -- hold_clock "$DIR/shown" 5; done'
        shown .
        pty_key C-c
        pty_prompt
        rm "$DIR/shown"
    done
    redis_cli set "$KEY" other >/dev/null
    pty_type 'while :; do rlock -k "$KEY" -- true; done'
    eventually 5 waits
    pty_key C-c
    pty_prompt
    pty_status 130
    nothing_left
}

# strace delays the start of the command, and ^C is pressed during the delay.
@test "^C between the grant and the start of the command isn't lost" {
    need strace
    pty_type 'slow() { strace -fo /dev/null -e inject=vfork:delay_enter=500000 "$@"; }'
    pty_prompt
    pty_type 'slow rlock -k "$KEY" -- hold_clock "$DIR/shown" 5'
    eventually 5 exists "$KEY"
    pty_key C-c
    pty_prompt
    gone "$KEY"
    nothing_left
}

@test "^Z and fg: the shell says Stopped, the whole job stops, then the command goes on" {
    pty_type 'rlock -k "$KEY" -t 30 -- hold_clock "$DIR/shown" 5'
    shown .
    local last value
    value=$(redis_cli get "$KEY")
    for _ in 1 2; do # twice: rlock must also obey a ^Z that comes after an fg
        press_stop
        stopped "$(named rlock)"
        eventually 5 stopped "$(named hold_clock)"
        last=$(wc -l <"$DIR/shown")
        pty_type 'fg'
        eventually 5 has_grown "$last"
    done
    assert_eq "$(redis_cli get "$KEY")" "$value"
    pty_key C-c
    pty_prompt
    pty_status 130
    gone "$KEY"
}
has_grown() { (($(wc -l <"$DIR/shown") > $1)); }

@test "^Z for longer than the lease: the command is ended before the lease ends; fg shows 76" {
    pty_type 'rlock -k "$KEY" -t 1 -- hold_clock "$DIR/shown" 5'
    shown .
    press_stop
    eventually 5 gone "$KEY"
    assert_eq "$(named hold_clock)" '' 'processes of the command'
    pty_type 'fg'
    pty_expect 5 'lost: no renewal'
    pty_prompt
    pty_status 76
    nothing_left
}

@test "^Z and bg: the command goes on in the background" {
    pty_type 'rlock -k "$KEY" -t 30 -- hold_clock "$DIR/shown" 5'
    shown .
    press_stop
    pty_type 'bg'
    pty_prompt
    eventually 5 has_grown "$(wc -l <"$DIR/shown")"
    pty_key C-c # the shell gets it, the job in the background doesn't
    pty_prompt
    pty_type 'kill %1; wait %1'
    pty_prompt
    gone "$KEY"
    nothing_left
}

# ---- reading from the terminal ----

@test "a background job that reads the terminal is stopped, and reads it after fg" {
    pty_type 'rlock -k "$KEY" -t 30 -- sh -c '\''read -r line; echo "got:$line:"'\'' &'
    eventually 5 is_stopped
    pty_type 'jobs'
    pty_expect 5 'Stopped'
    pty_type 'fg'
    pty_type 'hello'
    pty_expect 5 'got:hello:'
    pty_prompt
    pty_status 0
}

@test "an interactive shell as the command has its own job control" {
    pty_type 'rlock -k "$KEY" -t 30 -- bash --norc --noprofile --noediting -i'
    pty_prompt
    pty_type 'hold_clock "$DIR/shown" 5'
    shown .
    press_stop
    pty_type 'fg'
    eventually 5 has_grown "$(wc -l <"$DIR/shown")"
    pty_key C-c
    pty_prompt
    pty_type 'exit 5'
    pty_prompt
    pty_status 5
    gone "$KEY"
}

@test "a pipeline with rlock in its middle works, and ^C ends all of it" {
    pty_type 'echo hello | rlock -k "$KEY" -- cat | tr a-z A-Z'
    pty_expect 5 'HELLO'
    pty_prompt
    pty_type 'sleep 60 | rlock -k "$KEY" -- hold_clock "$DIR/shown" 5 | cat'
    shown .
    pty_key C-c
    pty_prompt
    nothing_left
    gone "$KEY"
}

@test "when the terminal hangs up, the command ends, and the lock is free" {
    pty_type 'rlock -k "$KEY" -t 30 -- hold_clock "$DIR/shown" 5'
    shown .
    kill -KILL "$(<"$DIR/pids/pty")"
    eventually 5 gone "$KEY"
    eventually 5 nothing_left
}
