#!/usr/bin/env python3
"""messages: prints every text that the program can say, as a table made from the source.

    tests/tools/messages.py FOLDER          the folder that contains cmd/ and lib/

A text is a string of cmd/ or lib/ with at least two words, adjacent strings joined. The columns are
separated by tabs: the kind of the text, its place, and the text with the conversions of printf(3).
The kind follows from the function or the struct member that takes the text:

    error    faults of the library, and the reasons of exit statuses
    message  the reason and the hint of an event
    doctor   what a check found, and what to change
    output   results on standard output, and texts that are put together from parts
    help     the tables of options, verbs and exit statuses
"""

import pathlib
import re
import sys

TOKEN = re.compile(r'''
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<directive>^[ \t]*\#[ \t]*(?:include|if|ifdef|ifndef|endif|else|elif|undef|error)[^\n]*)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<char>'(?:[^'\\]|\\.)*')
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<mark>[(){};,=?:])
''', re.S | re.X | re.M)

KINDS = [
    ('error', re.compile(r'^(err_set|report_fault|session_fault|refuse|complain\w*)$')),
    ('message', re.compile(r'^(why|hint|what|report_say|say_\w*|warn\w*)$')),
]
HELP_FILES = ('options.c', 'verb.h', 'help.c', 'exit_reason.c')
ESCAPES = {'\\n': ' ', '\\t': ' ', '\\"': '"', '\\\\': '\\'}


def kind_of(path, taker):
    if path.name in HELP_FILES:
        return 'help'
    if 'doctor' in path.parts:
        return 'doctor'
    for kind, pattern in KINDS:
        if pattern.search(taker):
            return kind
    return 'error' if path.parts[0] == 'lib' else 'output'


def strings_of(text):
    """Yields (line, taker, string) for each string, where adjacent strings are one."""
    takers = []    # for each open parenthesis the word before it, "" if that is no function
    word = ''      # the word before the current token
    member = ''    # the variable or struct member to which a value is being assigned
    joined = None  # the line, taker and text of the strings that were read last
    for token in TOKEN.finditer(text):
        kind, what = token.lastgroup, token.group()
        if kind in ('comment', 'directive'):
            continue
        if kind == 'string':
            if joined is None:
                taker = member or next((t for t in reversed(takers) if t), '')
                joined = [text.count('\n', 0, token.start()) + 1, taker, '']
            joined[2] += what[1:-1]
            continue
        if joined is not None and re.match('PRI[du]64', what):
            joined[2] += 'd'
            continue
        if joined is not None:
            yield tuple(joined)
            joined = None
        if what == '(':
            takers.append(word)
        elif what == ')' and takers:
            takers.pop()
        if what == '=':
            member = word
        elif kind == 'mark' and what not in '?:':
            member = ''
        word = what if kind == 'word' else ''


def is_text(string):
    words = re.findall(r'[A-Za-z]{2,}', re.sub(r'%[-0-9.*]*[a-z]+', '', string))
    return len(words) >= 2 and ' ' in string.strip()


def plain(string):
    for escape, byte in ESCAPES.items():
        string = string.replace(escape, byte)
    return ' '.join(string.split())


def main():
    top = pathlib.Path(sys.argv[1])
    rows = []
    for path in sorted([*top.glob('cmd/**/*.[ch]'), *top.glob('lib/**/*.[ch]')]):
        place = path.relative_to(top)
        for line, taker, string in strings_of(path.read_text()):
            if is_text(string):
                rows.append((kind_of(place, taker), f'{place}:{line}', plain(string)))
    for row in sorted(rows, key=lambda row: (row[0], row[2].lower())):
        print('\t'.join(row))


main()
