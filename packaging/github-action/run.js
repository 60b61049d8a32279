// SPDX-License-Identifier: MIT
// run: the functions that main.js and post.js share: they read the action's inputs, build rlock's
// arguments and environment, and write the runner's files.
'use strict';

const crypto = require('node:crypto');
const fs = require('node:fs');

// input: returns the value of an input of action.yml, or '' if the workflow doesn't set it.
function input(name) {
    return (process.env['INPUT_' + name.toUpperCase()] || '').trim();
}

// keys: returns rlock's argument --key=KEY for each line of the input `key`.
function keys() {
    const lines = input('key').split('\n').map((line) => line.trim()).filter(Boolean);
    if (lines.length === 0)
        fail('no key: set the input `key`');
    return lines.map((key) => '--key=' + key);
}

// environment: returns the variables for rlock. The URL and the password are variables and not
// arguments, because all users of the machine can read the arguments of a process.
function environment(more) {
    const variables = { ...process.env, ...more };
    if (input('url'))
        variables.RLOCK_URL = input('url');
    if (input('password'))
        variables.RLOCK_PASSWORD = input('password');
    return variables;
}

// store: appends a name and its value to the file that the variable FILE names; the runner reads
// that file after the step. The value may have several lines. A random line ends it, so that no
// value can contain its own end and set another name.
function store(file, name, value) {
    const end = crypto.randomUUID();
    fs.appendFileSync(process.env[file], `${name}<<${end}\n${value}\n${end}\n`);
}

// fail: writes the text to the job's log as an error, and ends this process with status 1.
function fail(text) {
    console.log('::error title=rlock::' + text.replace(/%/g, '%25')
        .replace(/\r/g, '%0D').replace(/\n/g, '%0A'));
    process.exit(1);
}

module.exports = { input, keys, environment, store, fail };
