# shellcheck shell=bash
# kinds: what the tests of shared locks, slots, several keys and so on have in common.
#
#     kinds_setup                as common_setup, with an empty server
#     few NUMBER [SANITIZED]     how many of something
#     loop_file                  the text of a loop's body in bash, into $DIR/loop; its argument is
#                                how often
#     in_line N [KEY]            so many wait
#     assert_only_fences         no key is left but those, and they expire

kinds_setup() {
    common_setup
    SLACK=$(busy_ms 500) # ms that a busy machine may add
    ! is_sanitized || SLACK=5000
    export DIR KEY RLOCK TOOLS SLACK RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    redis_cli flushall >/dev/null
}

few() { if is_sanitized; then echo "${2:-$1}"; else echo "$1"; fi; }

loop_file() {
    # shellcheck disable=SC2016
    { echo 'for ((i = 0; i < $1; i++)); do' && cat && echo 'done'; } >"$DIR/loop"
}

in_line() { [[ $(redis_cli zcard "{${2:-$KEY}}:rlock:queue") == "$1" ]]; }

assert_only_fences() {
    local key
    for key in $(redis_cli --scan); do
        assert_match "$key" ':rlock:fence$' 'a key that is left'
        assert_between "$(ttl_ms "$key")" 1 604800000 'its PTTL'
    done
}
