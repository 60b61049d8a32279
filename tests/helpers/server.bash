# shellcheck shell=bash
# server: one server for all tests of a file, which each test finds empty, by its Unix socket. A
# file whose tests need more defines setup() or teardown() again, behind the line that loads this
# file.

setup_file() { redis_start; }
teardown_file() { redis_stop; }
setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET
    redis_cli flushall >/dev/null
}
teardown() {
    redis_use redis
    redis_continue # a failed test may have left the server stopped
    common_teardown
}
