# shellcheck shell=bash
# server: one server for all tests of a file, which each test finds empty, by its Unix socket. A
# file whose tests need more defines setup(), which calls server_setup, or teardown() again, behind
# the line that loads this file.

setup_file() { redis_start; }
server_setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET
    redis_cli flushall >/dev/null
}
setup() { server_setup; }
teardown() {
    redis_use redis
    redis_continue # a failed test may have left the server stopped
    common_teardown
}
