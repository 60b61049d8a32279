# shellcheck shell=bash
# server: one server for all tests of a file, by its Unix socket. A file whose tests need more
# defines setup() again, behind the line that loads this file.

setup_file() { redis_start; }
teardown_file() { redis_stop; }
setup() {
    common_setup
    export RLOCK_URL=unix://$REDIS_SOCKET
}
