"""redis_py_runs: runs a command under a Lock of redis-py, with its defaults, again and again.

    redis_py_runs.py PORT KEY COMMAND

For each line of standard input the script runs the command once, and then prints a line. Each run
opens a connection of its own, as a program does that is started for each run.

SPDX-License-Identifier: MIT
"""

import subprocess
import sys

import redis

port, key, command = sys.argv[1:]
for _ in sys.stdin:
    client = redis.Redis('127.0.0.1', port=int(port))
    with client.lock(key, timeout=300):
        subprocess.run([command], check=True)
    client.connection_pool.disconnect()
    print('done', flush=True)
