#!/usr/bin/python3
"""screen: runs a command on a terminal of given sizes, and prints what the user sees.

    screen.py [--reflow] [--bottom] [--until REGEX] WIDTH,WIDTH,... -- COMMAND [ARG...]

The terminal has 8 lines. As soon as the command has drawn something that matches REGEX, and again
after the window got each further WIDTH, screen.py prints the rows that aren't empty, also those
that were scrolled off, as "WIDTH<tab>ROW"; after it has ended the command by SIGTERM, as
"end<tab>ROW".

pyte emulates the terminal. When the window becomes narrower, pyte cuts the rows, as xterm does.
With --reflow a row that doesn't fit goes on in the row below, as in the terminals of GNOME and KDE,
kitty and tmux. With --bottom the command starts in the last row of the terminal.
"""
import argparse
import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pyte

LINES = 8
PATIENCE_S = 30

parser = argparse.ArgumentParser()
parser.add_argument('--reflow', action='store_true')
parser.add_argument('--bottom', action='store_true')
parser.add_argument('--until', default='')
parser.add_argument('widths', type=lambda text: [int(n) for n in text.split(',')])
parser.add_argument('command', nargs='+')
args = parser.parse_args()

screen = pyte.HistoryScreen(args.widths[0], LINES, history=1000)
stream = pyte.ByteStream(screen)
scrolled_off = []  # rows that a reflow has moved above the screen


def text_of(row):
    return ''.join(row[x].data for x in range(screen.columns)).rstrip()


def rows():
    shown = scrolled_off + [text_of(row) for row in screen.history.top]
    return [row for row in shown + [text_of(screen.buffer[y]) for y in range(LINES)] if row]


def reflow(width):
    """Cuts each row that is too long at the new width, and moves the rest to new rows below it. The
    cursor stays with the character that it was on."""
    moved = []
    cursor = 0
    for y in range(LINES):
        length = len(text_of(screen.buffer[y])) and screen.columns
        while length > 0 and screen.buffer[y][length - 1].data == ' ':
            length -= 1
        if y == screen.cursor.y:
            cursor = len(moved) + screen.cursor.x // width
        cells = [screen.buffer[y][x] for x in range(length)]
        moved += [cells[i:i + width] for i in range(0, max(length, 1), width)]
    while len(moved) > cursor + 1 and not moved[-1]:
        moved.pop()
    over = max(0, len(moved) - LINES)
    scrolled_off.extend(''.join(cell.data for cell in row) for row in moved[:over])
    screen.resize(LINES, width)
    screen.erase_in_display(2)
    for y, row in enumerate(moved[over:]):
        for x, cell in enumerate(row):
            screen.buffer[y][x] = cell
    screen.cursor.y, screen.cursor.x = max(0, cursor - over), screen.cursor.x % width


def resize(width):
    if args.reflow and width < screen.columns:
        reflow(width)
    else:
        screen.resize(LINES, width)
    set_size(width)


def set_size(width):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', LINES, width, 0, 0))


def read():
    """Passes what the command has written to the emulator. Returns False when the command ends."""
    try:
        data = os.read(terminal, 65536)
    except OSError:
        data = b''
    stream.feed(data)
    return len(data) > 0


def wait_for(regex):
    """Reads until the command has drawn something, and the screen matches."""
    end = time.monotonic() + PATIENCE_S
    while True:
        if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
            sys.exit('screen: nothing that matches %r was drawn: %r' % (regex, rows()))
        if not read():
            break
        while select.select([terminal], [], [], 0.05)[0] and read():  # the rest of this drawing
            pass
        if re.search(regex, '\n'.join(rows())):
            break


def show(name):
    for row in rows():
        print('%s\t%s' % (name, row))


def take_terminal():
    """Makes standard input the controlling terminal of the child; called in the child."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


terminal, its_end = os.openpty()
set_size(args.widths[0])
if args.bottom:
    stream.feed(b'\r\n' * (LINES - 1))
os.environ['TERM'] = os.environ.get('SCREEN_TERM', 'xterm-256color')
child = subprocess.Popen(args.command, stdin=its_end, stdout=its_end, stderr=its_end,
                         preexec_fn=take_terminal)
os.close(its_end)
try:
    wait_for(args.until)
    show(args.widths[0])
    for width in args.widths[1:]:
        resize(width)
        wait_for('.')
        show(width)
    child.terminate()
    while read():
        pass
    show('end')
finally:
    child.kill()
    child.wait()
