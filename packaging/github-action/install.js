// SPDX-License-Identifier: MIT
// install: finds the program for this runner: the one that the input `path` names, or the static
// program of the release that has the version of this action.
//
// Whoever can change the files of a release can't change the key in ../names, as the workflow names
// this action by a tag or a commit. So the signature of SHA256SUMS is checked by that key, and the
// program by its sum, also if they come from the runner's cache.
'use strict';

const crypto = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { input, fail } = require('./run.js');

// The names that the runner and node have for architectures, and those of the release's files.
const ARCHITECTURES = {
    x64: 'amd64', arm64: 'arm64', arm: 'armhf', x86: 'i386', ia32: 'i386', riscv64: 'riscv64',
    s390x: 's390x',
};
const SIGNED = 'rlock-release'; // as in packaging/release.mk
const TRIES = 3;
const PAUSE_MS = 1000;
const TIMEOUT_MS = 60 * 1000;
const HINT = 'install rlock yourself, and name it by the input `path`';

function found_in(file, pattern) {
    const match = fs.readFileSync(path.join(__dirname, file), 'utf8').match(pattern);
    return match ? match[1] : fail(`${file}: no ${pattern}`);
}

// fields: returns a function that takes one field after the other from a buffer, as SSH writes
// them: 4 bytes with the length, then the bytes.
function fields(buffer) {
    let at = 0;
    return () => {
        const end = at + 4 + buffer.readUInt32BE(at);
        const field = buffer.subarray(at + 4, end);
        at = end;
        return field;
    };
}

function as_field(bytes) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
}

// is_signed: tells whether the signature, a file of `ssh-keygen -Y sign` (PROTOCOL.sshsig of
// OpenSSH), is one of the text by the key, a line such as "ssh-ed25519 AAAA...".
function is_signed(text, signature, key) {
    try {
        const blob = Buffer.from(String(signature).replace(/-----[A-Z ]+-----/g, ''), 'base64');
        const next = fields(blob.subarray('SSHSIG'.length + 4)); // behind the version
        const [signer, purpose, reserved, hash, proof] = [next(), next(), next(), next(), next()];
        const digest = crypto.createHash(String(hash)).update(text).digest();
        const data = Buffer.concat([Buffer.from('SSHSIG'),
            ...[purpose, reserved, hash, digest].map(as_field)]);
        const in_key = fields(signer);
        const in_proof = fields(proof);
        return signer.equals(Buffer.from(key.split(' ')[1], 'base64')) &&
            String(purpose) === SIGNED && ['sha256', 'sha512'].includes(String(hash)) &&
            String(in_key()) === 'ssh-ed25519' && String(in_proof()) === 'ssh-ed25519' &&
            crypto.verify(null, data, crypto.createPublicKey({
                key: { kty: 'OKP', crv: 'Ed25519', x: in_key().toString('base64url') },
                format: 'jwk',
            }), in_proof());
    } catch {
        return false; // the file is cut, or no signature at all
    }
}

// fault: returns what is wrong with the files, or ''.
function fault(files, name, key) {
    const sum = crypto.createHash('sha256').update(files[name]).digest('hex');
    if (!is_signed(files.SHA256SUMS, files['SHA256SUMS.sig'], key))
        return 'SHA256SUMS is not signed by the key of rlock';
    if (!String(files.SHA256SUMS).split('\n').includes(`${sum}  ${name}`))
        return `${name} is not the file that SHA256SUMS names`;
    return '';
}

// download: returns the contents of an address; a server that is away is asked again.
async function download(address) {
    if (address.startsWith('file:'))
        return fs.readFileSync(fileURLToPath(address));
    for (let n = 1; ; n++) {
        try {
            const reply = await fetch(address, { signal: AbortSignal.timeout(TIMEOUT_MS) });
            if (!reply.ok)
                throw new Error(`${reply.status} ${reply.statusText}`);
            return Buffer.from(await reply.arrayBuffer());
        } catch (error) {
            if (n === TRIES)
                throw error;
            await new Promise((done) => setTimeout(done, n * PAUSE_MS));
        }
    }
}

// read_all: returns the contents of files, as an object by their names.
async function read_all(names, read) {
    const files = {};
    for (const name of names)
        files[name] = await read(name);
    return files;
}

async function from_cache(names, folder) {
    try {
        return await read_all(names, (name) => fs.readFileSync(path.join(folder, name)));
    } catch {
        return undefined; // it isn't there, or not all of it
    }
}

async function from_release(names, address) {
    try {
        return await read_all(names, (name) => download(`${address}/${name}`));
    } catch (error) {
        const { message } = error.cause || error;
        return fail(`rlock can't be downloaded: ${address}: ${message}; ${HINT}`);
    }
}

// keep: writes the files into the folder, each as a whole, so that a job that runs at the same time
// reads no half of one.
function keep(files, folder) {
    fs.mkdirSync(folder, { recursive: true });
    for (const [name, contents] of Object.entries(files)) {
        const whole = path.join(folder, name);
        fs.writeFileSync(`${whole}.${process.pid}`, contents, { mode: 0o755 });
        fs.renameSync(`${whole}.${process.pid}`, whole);
    }
    const link = path.join(folder, 'rlock');
    fs.symlinkSync(Object.keys(files).find((name) => name.startsWith('rlock-')),
        `${link}.${process.pid}`);
    fs.renameSync(`${link}.${process.pid}`, link);
}

// install: returns the path of the program, and lets the job's later steps find it.
async function install() {
    if (input('path'))
        return input('path');
    const { RUNNER_OS, RUNNER_ARCH, RUNNER_TOOL_CACHE, RUNNER_TEMP, GITHUB_PATH } = process.env;
    const runner = (RUNNER_ARCH || process.arch).toLowerCase();
    if ((RUNNER_OS || 'Linux') !== 'Linux')
        fail(`rlock runs on Linux only, not on ${RUNNER_OS}`);
    if (!ARCHITECTURES[runner])
        fail(`no release of rlock has a program for ${runner}: ${HINT}`);
    const version = found_in('../../lib/rlock.h', /^#define RLOCK_VERSION "(.*)"/m);
    const key = found_in('../names', /^KEY *= *(.*)/m);
    const address = input('mirror') ||
        `${found_in('../names', /^SOURCE *= *(.*)/m)}/releases/download/v${version}`;
    const name = `rlock-${version}-linux-${ARCHITECTURES[runner]}`;
    const names = ['SHA256SUMS', 'SHA256SUMS.sig', name];
    // Nobody else may write to the folder: otherwise the program could be replaced after its check.
    const folder = path.join(RUNNER_TOOL_CACHE || RUNNER_TEMP ||
        fs.mkdtempSync(path.join(os.tmpdir(), 'rlock-')), 'rlock', version, runner);
    const cached = await from_cache(names, folder);
    if (!cached || fault(cached, name, key)) {
        const files = await from_release(names, address);
        const reason = fault(files, name, key);
        if (reason)
            fail(`${address}: ${reason}: it may have been replaced, so it doesn't run`);
        keep(files, folder);
    }
    fs.appendFileSync(GITHUB_PATH, folder + '\n');
    return path.join(folder, 'rlock');
}

module.exports = { install };
