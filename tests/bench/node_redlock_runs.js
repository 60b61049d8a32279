// node_redlock_runs: runs a command under a lock of node-redlock, with its defaults, again and
// again.
//
//     node node_redlock_runs.js MODULES PORT KEY COMMAND
//
// For each line of standard input the program runs the command once, and then prints a line.
// MODULES is the folder of the node packages. Each run opens a connection of its own, as a program
// does that is started for each run.
//
// SPDX-License-Identifier: MIT
'use strict';

const childProcess = require('child_process');
const readline = require('readline');
const [modules, port, key, command] = process.argv.slice(2);
const packages = require('module').createRequire(modules + '/');
const ioredis = packages('ioredis');
const Redis = ioredis.Redis || ioredis;
const Redlock = packages('redlock');

async function all() {
    for await (const _ of readline.createInterface({ input: process.stdin })) {
        const client = new Redis(Number(port), '127.0.0.1');
        const lock = await new Redlock([client]).lock(key, 300000);
        childProcess.execFileSync(command);
        await lock.unlock();
        client.disconnect();
        console.log('done');
    }
}

all().catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
