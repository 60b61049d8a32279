// node_redlock: does the work of turn.c under a lock of node-redlock.
//
//     node node_redlock.js MODULES PORT KEY LOG NUMBER GATE|MS
//
// MODULES is the folder of the node packages; the last three arguments are those of turn.c. The
// lock has node-redlock's defaults, but tries for ever. The script starts no process.
//
// SPDX-License-Identifier: MIT
'use strict';

const fs = require('fs');
const [modules, port, key, log, number, gate] = process.argv.slice(2);
const packages = require('module').createRequire(modules + '/');
const ioredis = packages('ioredis');
const Redis = ioredis.Redis || ioredis;
const Redlock = packages('redlock');

const pause = () => gate.startsWith('/')
    ? fs.promises.open(gate).then((file) => file.close())
    : new Promise((resolve) => setTimeout(resolve, Number(gate)));

async function turn() {
    const client = new Redis(Number(port), '127.0.0.1');
    const lock = await new Redlock([client], { retryCount: -1 }).lock(key, 300000);
    const start = process.hrtime.bigint();
    await pause();
    fs.appendFileSync(log, `${number} ${start} ${process.hrtime.bigint()}\n`);
    await lock.unlock();
    client.disconnect();
}

turn().catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
