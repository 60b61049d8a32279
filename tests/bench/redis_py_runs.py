"""redis_py_runs: runs a command under a Lock of redis-py, with its defaults, again and again.

    redis_py_runs.py PORT KEY RUNS COMMAND

Each run opens a connection of its own, as a program does that is started for each run.

SPDX-License-Identifier: MIT
"""

import subprocess
import sys

import redis

port, key, runs, command = sys.argv[1:]
for _ in range(int(runs)):
    client = redis.Redis('127.0.0.1', port=int(port))
    with client.lock(key, timeout=300):
        subprocess.run([command], check=True)
    client.connection_pool.disconnect()
