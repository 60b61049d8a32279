// SPDX-License-Identifier: MIT
// post: releases the lock when the job has ended, whether it succeeded, failed or was cancelled.
// If the lock was lost while the job ran, post fails the job: another holder of the lock may have
// worked at the same time.
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const { keys, environment, fail } = require('./run.js');

const LOST = 76; // rlock(1), EXIT STATUS

// state: returns a value that main.js has stored for post.js, or ''.
function state(name) {
    return process.env['STATE_' + name] || '';
}

if (state('token'))
    release();
else
    end_sleeper();

// end_sleeper: ends the `sleep` that main.js started in a job with a container. rlock-renewd
// releases the lock when `sleep` ends. So release() comes before end_sleeper(): otherwise the
// status of `rlock release` could not tell whether the lock was held until the end of the job.
function end_sleeper() {
    if (state('sleeper'))
        process.kill(Number(state('sleeper')));
}

function release() {
    const { status, error } = spawnSync(state('program'), ['release', ...keys()],
        { env: environment({ RLOCK_TOKEN: state('token') }), stdio: 'inherit' });
    end_sleeper();
    if (fs.existsSync(state('log')))
        process.stdout.write(fs.readFileSync(state('log')));
    if (status === LOST)
        fail('the lock was lost while the job ran: its steps may not have run alone');
    if (status !== 0)
        fail(`the lock was not released: rlock ended with ${error ? error.message : status}`);
}
