#!/usr/bin/python3
"""two_terminals: draws docs/terminals.svg: two people deploy at the same time (`make pictures`).

    RLOCK=PROGRAM two_terminals.py FILE

Two shells run `rlock -k deploy -- ./deploy.sh`, each on a terminal of its own. The picture shows
both terminals, one above the other, at two moments in turn: while the first one deploys, and after
that. A viewer that draws no animation, or whose user wants none, shows the first moment. The
terminals show what the programs wrote, except for the user, the host and the process ID of the
holder: the picture has others in their place, so that it doesn't depend on the machine.
"""
import os
import re
import select
import subprocess
import sys
import tempfile
import termios
import time
from html import escape

import pyte

COLUMNS, ROWS = 90, 4
PATIENCE_S = 30
CHARACTER, LINE = 7.4, 17  # the size of a character cell in the picture, in pixels
PAD, GAP, TITLE = 14, 12, 26
WIDTH = COLUMNS * CHARACTER + 2 * PAD
HEIGHT = TITLE + ROWS * LINE + PAD

STYLE = '''
  text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre }
  .window { fill: #f6f8fa; stroke: #d0d7de } .text { fill: #1f2328 }
  .title { fill: #59636e } .own { fill: #9a6700 } .prompt { fill: #1a7f37 }
  @media (prefers-color-scheme: dark) {
    .window { fill: #161b22; stroke: #30363d } .text { fill: #e6edf3 }
    .title { fill: #9198a1 } .own { fill: #d29922 } .prompt { fill: #3fb950 }
  }
  @keyframes first { 0%, 49% { opacity: 1 } 50%, 100% { opacity: 0 } }
  @keyframes later { 0%, 49% { opacity: 0 } 50%, 100% { opacity: 1 } }
  .later { opacity: 0 }
  @media (prefers-reduced-motion: no-preference) {
    .first { animation: first 8s infinite step-end }
    .later { animation: later 8s infinite step-end }
  }'''

DEPLOY = '''#!/bin/sh
echo "copying version 42 to all servers"
read -r go <"$(dirname "$0")/go"
echo "version 42 runs"
'''


class Terminal:
    """A shell on a terminal of its own, whose screen pyte keeps."""

    def __init__(self, folder, environment):
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.fd, end = os.openpty()
        termios.tcsetwinsize(end, (ROWS, COLUMNS))
        self.shell = subprocess.Popen(
            ['setsid', '-c', 'bash', '--norc', '--noprofile', '--noediting', '-i'], cwd=folder,
            env=environment, stdin=end, stdout=end, stderr=end)
        os.close(end)

    def rows(self):
        return [row.rstrip() for row in self.screen.display]

    def type(self, line):
        os.write(self.fd, line.encode() + b'\n')

    def wait_for(self, regex):
        end = time.monotonic() + PATIENCE_S
        while not re.search(regex, '\n'.join(self.rows())):
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                sys.exit('two_terminals: nothing matches %r in %r' % (regex, self.rows()))
            self.stream.feed(os.read(self.fd, 65536))

    def end(self):
        self.type('exit')
        self.shell.wait()
        os.close(self.fd)


def named(row):
    """Returns the row with the user, host and process ID that the picture always shows."""
    return re.sub(r'pid \d+', 'pid 4711', re.sub(r'of \S+@[^\s,]+', 'of ann@web1', row))


def window(x, y, title, rows):
    yield '<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="6" class="window"/>' % (
        x, y, WIDTH, HEIGHT)
    yield '<text x="%.1f" y="%d" class="title">%s</text>' % (x + PAD, y + 18, escape(title))
    for i, row in enumerate(map(named, rows)):
        prompt = re.match(r'\$ ?', row)
        kind = 'own' if row.startswith('rlock: ') else 'text'
        place = x + PAD, y + TITLE + LINE * (i + 1) - 4
        start = prompt.end() if prompt else 0
        if prompt:
            yield '<text x="%.1f" y="%d" class="prompt">$</text>' % place
        if row[start:]:
            yield '<text x="%.1f" y="%d" textLength="%.1f" class="%s">%s</text>' % (
                place[0] + start * CHARACTER, place[1], len(row[start:]) * CHARACTER, kind,
                escape(row[start:]))


def draw(file, moments):
    width, height = WIDTH + 2, 2 * HEIGHT + GAP + 2
    with open(file, 'w', encoding='utf-8') as svg:
        print('<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%.0f" height="%d"' % (
            width, height), 'viewBox="0 0 %.0f %d">' % (width, height), file=svg)
        print('<title>Two terminals: the second rlock waits until the first has ended</title>',
              file=svg)
        print('<style>%s\n</style>' % STYLE, file=svg)
        for moment, screens in zip(('first', 'later'), moments):
            print('<g class="%s">' % moment, file=svg)
            for i, (title, rows) in enumerate(zip(('ann@web1', 'ben@web2'), screens)):
                print(*window(1, 1 + i * (HEIGHT + GAP), title, rows), sep='\n', file=svg)
            print('</g>', file=svg)
        print('</svg>', file=svg)


def record(folder):
    """Runs the scene, and returns the rows of both terminals at two moments."""
    with open(folder + '/deploy.sh', 'w', encoding='ascii') as script:
        script.write(DEPLOY)
    os.chmod(folder + '/deploy.sh', 0o755)
    os.mkfifo(folder + '/go')
    os.symlink(os.path.abspath(os.environ['RLOCK']), folder + '/rlock')
    environment = {'PATH': folder + ':' + os.environ['PATH'], 'PS1': '$ ', 'HOME': folder,
                   'TERM': 'xterm-256color', 'LC_ALL': 'C.UTF-8', 'RLOCK_URL': 'local:',
                   'RLOCK_LOCAL_DIR': folder + '/local'}
    ann, ben = (Terminal(folder, environment) for _ in range(2))
    for terminal in ann, ben:
        terminal.wait_for(r'^\$')
    ann.type('rlock -k deploy -- ./deploy.sh')
    ann.wait_for('copying')
    ben.type('rlock -k deploy -- ./deploy.sh')
    ben.wait_for('waiting 2s')
    moments = [(ann.rows(), ben.rows())]
    for terminal, after in (ann, r'runs\n\$'), (ben, r'runs\n\$'):
        with open(folder + '/go', 'w', encoding='ascii') as go:
            print('go', file=go)
        terminal.wait_for(after)
        if terminal is ann:
            ben.wait_for('copying')
            moments.append((ann.rows(), ben.rows()))
        terminal.end()
    return moments


with tempfile.TemporaryDirectory() as temporary:
    draw(sys.argv[1], record(temporary))
