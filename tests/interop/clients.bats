#!/usr/bin/env bats
# clients: rlock and lock libraries of other languages use the same key, and exclude each other.

load ../helpers/common

setup() {
    common_setup
    redis_start
    export RLOCK_URL=redis://127.0.0.1:$REDIS_PORT REDIS_PORT KEY TOOLS RLOCK DIR TURNS=10
    export NODE_PATH=$ROOT/build/node/node_modules
    python=/usr/bin/python3
    "$python" -c 'import redis' 2>/dev/null || skip_or_fail 'redis-py (make test)'
    node -e 'require("redlock"); require("ioredis")' 2>/dev/null ||
        skip_or_fail 'node with redlock and ioredis (make test)'
}

# rlock_turns, redis_py_turns, node_redlock_turns: take the lock TURNS times, each time for a run of
# `turn`, which fails if another one runs. Between two turns they wait a few ms: the libraries have
# no queue, so a client that asked again at once would nearly always win.
rlock_turns() {
    local each
    for ((each = 0; each < TURNS; each++)); do
        "$RLOCK" -k "$KEY" -- "$TOOLS/turn" "$DIR/sum" rlock || return
        sleep "0.00$((RANDOM % 9))"
    done
}

redis_py_turns() {
    exec "$python" - <<'END'
import os, random, redis, subprocess, time
server = redis.Redis('127.0.0.1', port=int(os.environ['REDIS_PORT']))
for turn in range(int(os.environ['TURNS'])):
    with server.lock(os.environ['KEY'], timeout=10, sleep=0.004):
        subprocess.run([os.environ['TOOLS'] + '/turn', os.environ['DIR'] + '/sum', 'redis-py'],
                       check=True)
    time.sleep(random.uniform(0, 0.015))
END
}

node_redlock_turns() {
    exec node - <<'END'
const { REDIS_PORT, KEY, TOOLS, DIR, TURNS } = process.env;
const { execFileSync } = require('child_process');
const Redis = require('ioredis');
const Redlock = require('redlock');
const server = new Redis(Number(REDIS_PORT), '127.0.0.1');
const redlock = new Redlock([server], { retryCount: -1, retryDelay: 4, retryJitter: 2 });
const turns = async () => {
    for (let turn = 0; turn < Number(TURNS); turn++) {
        const lock = await redlock.lock(KEY, 10000);
        execFileSync(TOOLS + '/turn', [DIR + '/sum', 'node-redlock']);
        await lock.unlock();
        await new Promise((done) => setTimeout(done, Math.random() * 15));
    }
};
turns().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
END
}

# changes: prints how often the lock went from one kind of client to another.
changes() { uniq "$DIR/sum.names" | wc -l; }

# take_turns N: N clients of each kind take the lock TURNS times each, all at the same time.
take_turns() {
    local kind each
    for ((each = 1; each <= $1; each++)); do
        for kind in rlock redis_py node_redlock; do
            start "$kind$each" "${kind}_turns"
        done
    done
    for ((each = 1; each <= $1; each++)); do
        for kind in rlock redis_py node_redlock; do
            ended 0 "$kind$each" 90
        done
    done
    assert_eq "$(<"$DIR/sum")" $((3 * $1 * TURNS)) 'number of turns'
    assert_eq "$(redis_cli --scan | grep -v ':rlock:fence$' || :)" '' 'keys left'
}

@test "redis-py, node-redlock and rlock take one lock 10 times each: no overlap" {
    take_turns 1
}

# bats test_tags=long
@test "redis-py, node-redlock and rlock, 3 of each, take one lock 200 times each: no overlap" {
    TURNS=200
    take_turns 3
    echo "# $(sort "$DIR/sum.names" | uniq -c | xargs); $(changes) changes of kind" >&3
    assert_between "$(changes)" 100 1800 'changes from one kind of client to another'
}
