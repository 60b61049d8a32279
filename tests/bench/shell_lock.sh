#!/bin/sh
# shell_lock: runs a command under a lock in Redis by redis-cli, as fast as a shell script can.
#
#     shell_lock.sh PORT KEY PAUSE COMMAND [ARG...]
#
# The script starts redis-cli twice and no other process: the shell itself reads a random token from
# /proc. If the lock is held, it asks again after PAUSE seconds, or ends if PAUSE is `-`. It
# doesn't renew the lease, and doesn't end the command when the lease ends, so don't use it for real
# work.
#
# SPDX-License-Identifier: MIT
port=$1 key=$2 pause=$3
shift 3

read -r token </proc/sys/kernel/random/uuid
until [ "$(redis-cli -p "$port" SET "$key" "$token" NX EX 300)" = OK ]; do
    [ "$pause" != - ] || exit 75
    sleep "$pause"
done

"$@"
status=$?

# shellcheck disable=SC2016 # KEYS and ARGV are Lua, not the shell's
redis-cli -p "$port" EVAL 'if redis.call("GET", KEYS[1]) == ARGV[1] then
    return redis.call("DEL", KEYS[1])
end
return 0' 1 "$key" "$token" >/dev/null || exit 76
exit $status
