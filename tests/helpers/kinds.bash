# shellcheck shell=bash
# kinds: helpers for the tests of shared locks, slots and several keys.
#
#     setup, kinds_setup         do what common_setup does, and empty the server
#     few NUMBER [SANITIZED]     print NUMBER, or SANITIZED for a build with sanitizers
#     assert_only_fences         check that no key is left but the fences, and that these expire

kinds_setup() {
    common_setup
    SLACK=10000 # ms by which a busy machine may exceed a limit
    export SLACK RLOCK_URL=redis://127.0.0.1:$REDIS_PORT
    redis_cli flushall >/dev/null
}
setup() { kinds_setup; }

few() { if is_sanitized; then echo "${2:-$1}"; else echo "$1"; fi; }

assert_only_fences() {
    local key
    for key in $(redis_cli --scan); do
        assert_match "$key" ':rlock:fence$' 'a key that is left'
        assert_between "$(ttl_ms "$key")" 1 604800000 'its PTTL'
    done
}
