// SPDX-License-Identifier: MIT
// main: takes the lock. The job's later steps run under it; post.js releases it.
//
// The process rlock-renewd renews the lease in the background until the runner's process for this
// job has ended. So the lock is free soon after a runner was killed, and after the TTL if the
// runner's machine has crashed. rlock-renewd doesn't end the runner when the lock is lost
// (--on-lost ignore), because the runner could not report that: post.js fails the job.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const os = require('node:os');
const path = require('node:path');
const { install } = require('./install.js');
const { input, keys, environment, store, fail } = require('./run.js');

const LONGEST_JOB_S = 5 * 24 * 3600; // GitHub's limit for jobs of self-hosted runners

// parent: returns the pid of the process until whose end rlock-renewd renews the lease: the runner,
// which started this process. In a job with a container the runner is outside of the container's
// PID namespace, so this process has the parent 0 or 1. Then parent starts `sleep`, and returns its
// pid: the runner kills all processes of the container when the job has ended.
function parent() {
    if (process.ppid > 1)
        return process.ppid;
    const sleeper = spawn('sleep', [LONGEST_JOB_S], { detached: true, stdio: 'ignore' });
    sleeper.unref();
    store('GITHUB_STATE', 'sleeper', sleeper.pid);
    return sleeper.pid;
}

function label() {
    const { GITHUB_SERVER_URL, GITHUB_REPOSITORY, GITHUB_RUN_ID } = process.env;
    return input('label') ||
        `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}/actions/runs/${GITHUB_RUN_ID}`;
}

// fence_of: returns the fence of the lock that the token holds. A command that rlock runs under the
// lock prints it; acquire prints a fence only as JSON, and would then write JSON to the job's log.
function fence_of(program, token) {
    const { status, stdout } = spawnSync(program, ['--nested', ...keys(), '-c', 'echo $RLOCK_FENCE'],
        { env: environment({ RLOCK_TOKEN: token }), stdio: ['ignore', 'pipe', 'inherit'] });
    if (status !== 0)
        fail(`the lock was lost at once: rlock ended with ${status}`);
    return String(stdout).trim();
}

// acquire: takes the lock, and tells the runner its token and fence.
function acquire(program) {
    const log = path.join(process.env.RUNNER_TEMP || os.tmpdir(), `rlock-${process.pid}.log`);
    const rlock = spawn(program, [
        'acquire', ...keys(), '--ttl', input('ttl') || '30s', '--label=' + label(),
        ...(input('wait') ? ['--wait', input('wait')] : []),
        '--bind-pid', parent(), '--on-lost', 'ignore', '--log', log,
    ], { env: environment({ RLOCK_TOKEN: '' }), stdio: ['ignore', 'pipe', 'inherit'] });

    // When somebody cancels the run, the runner sends INT and then TERM to this process alone. So
    // this process passes both on to rlock, which leaves the queue. If rlock has the lock already,
    // it prints the token all the same, and post.js releases the lock.
    for (const signal of ['SIGINT', 'SIGTERM'])
        process.on(signal, () => rlock.kill(signal));

    let token = '';
    rlock.stdout.on('data', (data) => { token += data; });
    rlock.on('error', (error) =>
        fail(`${program}: ${error.message}: name the program by the input \`path\``));
    rlock.on('close', (status, signal) => {
        if (status !== 0)
            fail(`the lock was not taken: rlock ended with ${signal || status}`);
        token = token.trim();
        console.log('::add-mask::' + token);
        store('GITHUB_STATE', 'token', token);
        store('GITHUB_STATE', 'program', program);
        store('GITHUB_STATE', 'log', log);
        const fence = fence_of(program, token);
        store('GITHUB_OUTPUT', 'fence', fence);
        store('GITHUB_ENV', 'RLOCK_TOKEN', token);
        store('GITHUB_ENV', 'RLOCK_KEY', keys().map((key) => key.replace('--key=', '')).join('\n'));
        store('GITHUB_ENV', 'RLOCK_FENCE', fence);
        console.log(`rlock: holds the lock until the job has ended; fence ${fence}`);
    });
}

install().then(acquire).catch((error) => fail(error.message));
