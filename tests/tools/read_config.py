#!/usr/bin/python3
"""read_config: prints what a system would run by one of its configuration files.

    read_config.py unit FILE KEY       the values of KEY in a systemd unit, split into words
    read_config.py yaml FILE PATH      the strings at PATH, such as jobs.deploy.steps.0.run or
                                       .rlock.before_script
    read_config.py image FILE          the words of ENTRYPOINT and CMD of a Containerfile
    read_config.py cron FILE           the user and the command of each entry of a system crontab

A zero byte follows each string. Words of a unit are split as systemd.service(5) and
systemd.syntax(7) say: quotes, `$$`, `${NAME}` and `%` specifiers; NAME is looked up in the
environment of read_config.
"""
import json
import os
import re
import shlex
import sys

SPECIFIERS = {'%': '%', 'd': os.environ.get('CREDENTIALS_DIRECTORY', ''), 'H': os.uname().nodename}


def unit(lines, key):
    for line in lines:
        name, _, value = line.rstrip('\n').partition('=')
        if name != key:
            continue
        for word in shlex.split(value):
            word = re.sub('%(.)', lambda found: SPECIFIERS[found[1]], word)
            yield re.sub(r'\$(?:(\$)|\{(\w+)\})',
                         lambda found: found[1] or os.environ.get(found[2], ''), word)


def yaml_strings(lines, path):
    import yaml
    value = yaml.safe_load(''.join(lines))
    for step in re.split(r'(?<!^)\.', path):
        value = value[int(step) if isinstance(value, list) else step]
    for each in value if isinstance(value, list) else [value]:
        yield str(each)


def image(lines):
    text = ''.join(lines)
    for instruction in ('ENTRYPOINT', 'CMD'):
        yield from json.loads(re.search('^%s (.*)' % instruction, text, re.M)[1])


def cron(lines):
    for line in lines:
        if not re.match(r'\w+\s*=|#|\s*$', line):
            yield from line.rstrip('\n').split(None, 6)[5:]


lines_of_file = open(sys.argv[2], encoding='utf-8').readlines()
readers = {'unit': unit, 'yaml': yaml_strings, 'image': image, 'cron': cron}
for string in readers[sys.argv[1]](lines_of_file, *sys.argv[3:]):
    sys.stdout.write(string + '\0')
