"""redis_py_lock: does the work of turn.c under a Lock of redis-py, with its defaults.

    redis_py_lock.py PORT KEY LOG NUMBER GATE|MS

The last three arguments are those of turn.c. The script starts no process.

SPDX-License-Identifier: MIT
"""

import sys
import time

import redis

port, key, log, number, gate = sys.argv[1:]
with redis.Redis('127.0.0.1', port=int(port)).lock(key, timeout=300):
    start = time.monotonic_ns()
    if gate.startswith("/"):
        open(gate).close()
    else:
        time.sleep(int(gate) / 1000)
    line = "%s %d %d\n" % (number, start, time.monotonic_ns())
    with open(log, "a") as file:
        file.write(line)
