#!/bin/sh
# shell_lock: a lock in Redis as a shell script does it, made as cheap as a script can be.
#
#     shell_lock.sh PORT KEY COMMAND [ARG...]
#
# Two redis-cli, and nothing else that needs a process: the token is read from the kernel by the
# shell itself. It neither waits nor renews nor stops the command, and is not a lock to use.
#
# SPDX-License-Identifier: MIT
port=$1 key=$2
shift 2

read -r token </proc/sys/kernel/random/uuid
granted=$(redis-cli -p "$port" SET "$key" "$token" NX EX 30)
[ "$granted" = OK ] || exit 75

"$@"
status=$?

# shellcheck disable=SC2016 # nothing in the Lua is for the shell
redis-cli -p "$port" EVAL 'if redis.call("GET", KEYS[1]) == ARGV[1] then
    return redis.call("DEL", KEYS[1])
end
return 0' 1 "$key" "$token" >/dev/null || exit 76
exit $status
