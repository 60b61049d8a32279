#!/usr/bin/env python3
"""order: writes cmd/order.ld anew, by which ld places the functions of a run side by side.

    make order                          (needs gcc, redis-server and valgrind)

    tests/tools/order.py PROGRAM MAP    PROGRAM is the static rlock with its symbols, and MAP is the
                                        file that ld wrote by -Wl,-Map when it linked PROGRAM

It runs PROGRAM in callgrind: once with a lock that is free, and then as three waiters in a queue,
which wait long enough to say so. callgrind tells which instructions the main process and the guard
have executed, and MAP tells in which input section of the linker each instruction is.
"""

import bisect
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import time

OUT = pathlib.Path('cmd/order.ld')
SECTION = re.compile(r'^ (\.text\S*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+(\S+)', re.M)
POSITION = re.compile(r'(?:0x(?P<set>[0-9a-f]+)|\+(?P<up>\d+)|-(?P<down>\d+)|\*) \d')
MEMBER = re.compile(r'(\w+\.a)\((\S+)\.o\)$')

# Object files of glibc with code that each run executes although callgrind doesn't show it. HIDDEN:
# the set-up of the vDSO, which valgrind hides from the program, and functions for processors that
# valgrind doesn't emulate. FORK: the child's part of fork(2), which comes before guard_run(), and
# what the command's process executes before its exec, of which callgrind writes no profile.
HIDDEN = {('libc.a', name) for name in
          ('dl-lookup', 'dl-object', 'dl-setup_hash', 'memchr-evex-rtm', 'strstr-avx512')}
FORK = {('libc.a', name) for name in ('_Fork', 'alloca_cutoff', 'errno-loc', 'execve', 'execvpe',
                                      'fork', 'getenv', 'register-atfork', 'write')}
# for FORK, too: functions of which the C library has forms for several processors
FORK |= {('libc.a', f'{name}{form}') for name, forms in
         (('memmove', ('-avx-unaligned-erms', '-evex-unaligned-erms', '-avx512-unaligned-erms')),
          ('strchr', ('-avx2', '-evex')), ('strchrnul', ('-avx2', '-evex')),
          ('strlen', ('-avx2', '-evex')), ('strncmp', ('-avx2', '-evex')),
          ('strnlen', ('-avx2', '-evex')))
         for form in forms}


def sections(map_file):
    """The input sections of .text, sorted: address, size, name, object file."""
    found = SECTION.findall(map_file.read_text().replace('\n                ', ' '))
    return sorted((int(at, 16), int(size, 16), name, file.rsplit('/', 1)[-1])
                  for name, at, size, file in found if int(at, 16) > 0 and int(size, 16) > 0)


def executed(profile):
    """The addresses of the executed instructions in a file that callgrind wrote."""
    addresses = set()
    at = 0
    for line in profile.read_text().splitlines():
        position = POSITION.match(line)
        if position is None:
            continue
        if position['set'] is not None:
            at = int(position['set'], 16)
        else:
            at += int(position['up'] or 0) - int(position['down'] or 0)
        addresses.add(at)
    return addresses


def run(program, folder):
    """Runs the program in callgrind.

    Returns the files of the guards, of the main process with a free lock, and of those that waited.
    """
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(['redis-server', '--port', str(port), '--bind', '127.0.0.1',
                               '--save', '', '--dir', folder], stdout=subprocess.DEVNULL)
    rlock = [program, '-u', f'redis://127.0.0.1:{port}', '-k', 'order', '--']
    # The guard is a fork of the main process, and has a copy of its profile. --zero-before empties
    # the copy when guard_run() begins.
    profiler = ['valgrind', '-q', '--tool=callgrind', '--dump-instr=yes',
                '--zero-before=guard_run', f'--callgrind-out-file={folder}/%p']
    try:
        for _ in range(50):
            if not subprocess.run(rlock + ['true'], stderr=subprocess.DEVNULL,
                                  check=False).returncode:
                break
            time.sleep(0.1)
        else:
            sys.exit(f'order: {program} gets no lock')
        free = subprocess.Popen(profiler + rlock + ['true'])
        free.wait()
        holder = subprocess.Popen(rlock + ['sleep', '20'])
        # the first waiter forks a guard; the others end theirs, and save memory
        waiters = []
        for _ in range(3):
            time.sleep(2)
            waiters.append(subprocess.Popen(profiler + rlock + ['true']))
        if any(waiter.wait() != 0 for waiter in waiters) or holder.wait() != 0:
            sys.exit('order: a run has failed')
    finally:
        server.terminate()
        server.wait()
    profiles = {file.name: file for file in pathlib.Path(folder).iterdir() if file.name.isdigit()}
    of_free = [profiles.pop(str(free.pid))]
    of_waiters = [profiles.pop(str(waiter.pid)) for waiter in waiters]
    return profiles.values(), of_free, of_waiters


def inputs(profiles, table):
    """The input sections that the processes of these profiles have executed."""
    starts = [row[0] for row in table]
    used = set()
    for profile in profiles:
        for address in executed(profile):
            row = table[max(bisect.bisect(starts, address) - 1, 0)]
            if row[0] <= address < row[0] + row[1]:
                used.add(row[2:])
    return used


def patterns(used, hidden):
    """What ld matches: first the sections of our functions, then the members of archives."""
    names = set()
    members = set(hidden)
    for section, file in used:
        member = MEMBER.match(file)
        if member and member[1] != 'librlock.a':
            # valgrind emulates a processor with AVX2. On newer processors glibc uses another form
            # of the same function: list that one, too.
            for newer in ('', '-evex') + (('-avx512',) if 'unaligned' in member[2] else ()):
                members.add((member[1], re.sub('-avx2?', newer, member[2]) if newer else member[2]))
        elif section.count('.') > 1:
            clone = re.match(r'(\.text\.\w+)\.\w+\.\d+$', section)
            names.add(clone[1] + '.*' if clone else section)
    return sorted(names), [f'*{archive}:{name}.o' for archive, name in sorted(members)]


def statements(names, members):
    width = {'width': 96, 'initial_indent': '    ', 'subsequent_indent': '    ',
             'break_long_words': False, 'break_on_hyphens': False}
    listed = textwrap.fill(' '.join(names), **width)
    each = textwrap.fill(' '.join(f'{member}(.text*)' for member in members), **width)
    return f'    *(\n{listed}\n    )\n{each}\n'


def main():
    program, map_file = sys.argv[1:]
    table = sections(pathlib.Path(map_file))
    with tempfile.TemporaryDirectory() as folder:
        guards, free, waiters = run(program, folder)
        by_guard = inputs(guards, table)
        by_main = inputs(free, table) - by_guard
        by_waiters = inputs(waiters, table) - by_guard - by_main
    text = OUT.read_text()
    for name, used, hidden in (('the guard and the main process', by_guard, FORK),
                               ('the main process', by_main, HIDDEN),
                               ('a waiter', by_waiters, set())):
        body = statements(*patterns(used, hidden))
        text, n = re.subn(rf'(/\* executed by {name} \*/\n).*?(?=    /\*|  }})',
                          lambda head, body=body: head[1] + body, text, flags=re.S)
        if n != 1:
            sys.exit(f'order: {OUT} has no place for what {name} executes')
    OUT.write_text(text)


main()
