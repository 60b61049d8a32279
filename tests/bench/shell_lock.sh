#!/bin/sh
# shell_lock: a lock in Redis as a shell script does it, made as cheap as a script can be.
#
#     shell_lock.sh PORT KEY PAUSE COMMAND [ARG...]
#
# Two redis-cli, and nothing else that needs a process: the token is read from the kernel by the
# shell itself. It asks again after PAUSE seconds, or never if that is `-`. It neither renews nor
# stops the command, and is not a lock to use.
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

# shellcheck disable=SC2016 # nothing in the Lua is for the shell
redis-cli -p "$port" EVAL 'if redis.call("GET", KEYS[1]) == ARGV[1] then
    return redis.call("DEL", KEYS[1])
end
return 0' 1 "$key" "$token" >/dev/null || exit 76
exit $status
