#!/usr/bin/python3
# mutants: makes small changes to the program's code, and tells which of them no test notices.
#
#     tests/mutants/mutants.py [--sample N] [--seed S] [--jobs J] [--bats SECONDS] [--only PATH]...
#                              [--again]
#
# A mutant is the program with one change, such as a condition negated or a call left out, at a
# place that places.py finds. The script works in three steps:
#
#  1. It builds a copy of the tree, build/mutants/tree, in which nearly all mutants are compiled in;
#     a file tells the program which one to be. Others are built alone in step 3.
#  2. It runs each test once without a mutant, and records in build/mutants/reached how long it
#     takes and which mutants it reaches: executes with values for which the change matters.
#  3. It tries each mutant of the sample until a test fails: unit tests that reach the mutant, the
#     simulator, then bats tests for about --bats seconds (40), those that tests.tsv names first.
#
# --only PATH draws from the files whose paths begin so, the same mutants as in a larger sample of
# all files.
#
# A bats test kills a mutant only if it fails twice, and passes without the mutant; a unit test also
# by taking three times as long as in step 2, and 5 s more, or by the end of the shell that runs it.
# A mutant may send KILL to anything, so each trial has a PID namespace, /tmp and HOME of its own,
# for which the script needs to be root.
#
# build/mutants/results.tsv keeps verdict and mutant; a mutant that is there is not tried again, or,
# with --again, only if no test killed it. Verdicts: `killed by TEST`, `survived`, `not reached` by
# any test, `not built`, `the same` (the compiler makes the same code of it). equivalent.tsv lists
# mutants that no test can notice, with the reason; they are not counted.
#
# SPDX-License-Identifier: MIT

import argparse
import collections
import concurrent.futures
import glob
import hashlib
import os
import pickle
import random
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time

import places as finder

BUILD = os.path.abspath("build/mutants")
TREE = BUILD + "/tree"
REACHED = BUILD + "/reached"
RESULTS = BUILD + "/results.tsv"
HERE = "tests/mutants"
DECIDES = re.compile(r"lib/(lock|quorum|ops|server|lua)/|cmd/supervise/")
GOALS = "tests-built build/plain/sim/sim"
SIM = "build/plain/sim/sim --seconds 6 --jobs 1 --from 1 --first"
SETTINGS = {"LC_ALL": "C.UTF-8", "RLOCK_TEST_FLAVOUR": "plain", "CI": ""}

# These bats files test packages, documents or other programs, and not what rlock does. Left out too
# are tests and files with the tag `long`, which start hundreds of processes.
NOT_RUN = {"cli/" + name for name in
           "completions containers docs github_action hardening install library manual publish "
           "readme recipes static systemd".split()} | {"fault/tools", "fault/helpers"}


# ---- running tests -------------------------------------------------------------------------------

def in_sandbox(tree, script, seconds, mutant=0, results=None):
    """Runs a shell script where it can't reach processes or files of others.

    Returns the lines that it printed. If `results` is given, each line is passed to it, and the
    script is ended when it returns True.
    """
    inside = "mount -t tmpfs none /tmp && mkdir -p /tmp/home && export HOME=/tmp/home && " \
             "unset XDG_RUNTIME_DIR && echo %d >/tmp/mutant && cd %s && %s" % \
             (mutant, shlex.quote(tree), script)
    program = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "timeout", "-k", "2",
               str(seconds), "nice", "bash", "-c", inside]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, env=dict(os.environ, **SETTINGS))
    lines = []
    for line in process.stdout:
        lines.append(line.decode("utf-8", "replace").rstrip("\n"))
        if results and results(lines[-1]):
            process.kill()
            break
    process.stdout.close()
    process.wait()
    return lines


def unit_script(name, limit):
    """Runs a unit test; prints `failed NAME: ...` if it fails or takes too long."""
    return ("RLOCK_TEST_MARK=unit timeout -k 1 %.1f build/plain/unit/%s >/tmp/out 2>&1 </dev/null; "
            "s=$?; { [ $s = 0 ] && grep -q '^1[.][.][1-9]' /tmp/out; } || "
            "{ echo \"failed %s: $(grep -m 1 '^not ok' /tmp/out || echo status $s)\"; exit 1; }; " %
            (limit, name, name))


def bats_script(file, names, limit):
    chosen = "-f " + shlex.quote("^(%s)$" % "|".join(re.sub(r"[^\w ,:;-]", ".", n) for n in names))
    return ("env --default-signal RLOCK=$PWD/build/plain/rlock "
            "RLOCK_TEST_TOOLS=$PWD/build/plain/tools BATS_TEST_TIMEOUT=%d "
            "bats -T --filter-tags '!long' %s tests/%s.bats 2>&1; " %
            (limit, chosen if names else "", file))


BATS_RESULT = re.compile(r"^(not )?ok \d+ (.*?)(?: # skip.*)? in (\d+)ms"
                         r"(?: # (?:skip|timeout).*)?$")


# ---- step 1: the tree ----------------------------------------------------------------------------

def copy_tree(folder, without=()):
    """Brings a copy of the tree up to date. Files that have not changed keep their times."""
    os.makedirs(folder, exist_ok=True)
    for path in subprocess.run(["git", "ls-files"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines():
        if path not in without and os.path.exists(path):
            copy = os.path.join(folder, path)
            write_if_changed(copy, open(path, "rb").read())
            shutil.copymode(path, copy)


def write_if_changed(path, data):
    if not os.path.exists(path) or open(path, "rb").read() != data:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(data)


def make(folder, goals):
    done = subprocess.run("nice make -k -j2 ALSO_TESTED= HARDENING=no CFLAGS='-O1 -w' " + goals,
                          shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout.decode("utf-8", "replace")


def build_tree(places):
    """Builds the tree with the mutants in it. Mutants that don't compile are left to step 3."""
    sources = sorted({place.path for place in places if place.number})
    copy_tree(TREE, sources)
    for name in ("switch.h", "switch.c"):
        shutil.copy2(os.path.join(HERE, name), TREE + "/lib/base/mutant_" + name)
    for _ in range(8):
        for path in sources:
            here = [place for place in places if place.path == path and place.number]
            write_if_changed(os.path.join(TREE, path),
                             finder.with_mutants(path, here).encode("latin-1"))
        built, output = make(TREE, GOALS)
        if built:
            return
        wrong = {(path, int(line)) for path, line in
                 re.findall(r"^((?:lib|cmd)/\S+\.c):(\d+):\d+: error", output, re.M)}
        if not wrong:
            break
        for place in places:
            if any((place.path, line) in wrong
                   for line in range(place.line, place.last_line + 1)):
                place.number = 0
    sys.exit("mutants: the tree does not build:\n" + output[-3000:])


# ---- step 2: which test reaches which mutant -----------------------------------------------------

class Test:
    """A unit test program, the simulator, or one test of a bats file."""

    def __init__(self, kind, file, name, seconds, reached):
        self.kind, self.file, self.name = kind, file, name
        self.seconds, self.reached = seconds, reached
        self.n_reached = sum(reached)

    def __str__(self):
        return self.name if self.kind == "unit" else "%s: %s" % (self.file, self.name)


def reached_in(folder, pattern):
    """What all processes of a test reached: the union of the files that match the pattern."""
    union = 0
    for path in glob.glob(os.path.join(glob.escape(folder), pattern)):
        union |= int.from_bytes(open(path, "rb").read(), "little")
    return union.to_bytes(65536, "little")


def record(kind, file):
    """Runs one file of tests without a mutant; returns its tests that pass."""
    folder = "%s/%s" % (REACHED, file.replace("/", "_"))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if kind == "unit":
        script = unit_script(file, 60)
    elif kind == "sim":
        script = "RLOCK_TEST_MARK=sim %s || echo failed; " % SIM
    else:
        script = bats_script(file, [], 60)
    start = time.monotonic()
    keep = "cp /tmp/reached.* %s" % shlex.quote(folder)
    lines = in_sandbox(TREE, "trap '%s' EXIT; %s" % (keep, script), 900)
    seconds = time.monotonic() - start
    tests = []
    if kind != "bats" and not any(line.startswith("failed") for line in lines):
        tests.append(Test(kind, file, file, seconds, reached_in(folder, "reached.*")))
    number = 0
    for found in filter(None, map(BATS_RESULT.match, lines if kind == "bats" else [])):
        number += 1
        bitmap = reached_in(folder, "reached.test:%s.bats:%d:*" % (os.path.basename(file), number))
        if not found.group(1) and any(bitmap):
            tests.append(Test(kind, file, found.group(2), int(found.group(3)) / 1000, bitmap))
    shutil.rmtree(folder)
    print("# recorded %s: %d tests, %.1f s" % (file, len(tests), seconds), flush=True)
    return tests


def recorded(kind, file, source, program):
    """The tests of a file, from the last record if neither they nor the program have changed."""
    path = "%s/%s.pickle" % (REACHED, file.replace("/", "_"))
    of = program + hashlib.sha256(open(source, "rb").read()).hexdigest()
    if os.path.exists(path):
        was_of, tests = pickle.load(open(path, "rb"))
        if was_of == of:
            return tests
    tests = record(kind, file)
    pickle.dump((of, tests), open(path, "wb"))
    return tests


def record_all(places, jobs, with_bats):
    program = hashlib.sha256("\n".join("%d %s" % (place.number, place.key) for place in places
                                       if place.number).encode()).hexdigest()
    files = [("unit", os.path.basename(path)[:-2], path) for path in
             sorted(glob.glob("tests/unit/test_*.c") + glob.glob("tests/fuzz/fuzz_*.c"))]
    files.append(("sim", "sim", "tests/sim/sim.c"))
    for path in sorted(glob.glob("tests/cli/*.bats") + glob.glob("tests/fault/*.bats")):
        name = path[len("tests/"):-len(".bats")]
        if with_bats and name not in NOT_RUN and \
                "\n# bats file_tags=long" not in open(path).read():
            files.append(("bats", name, path))
    os.makedirs(REACHED, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return sum(pool.map(lambda row: recorded(*row, program), files), [])


# ---- step 3: trying a mutant ---------------------------------------------------------------------

def named_by_table(path):
    """The bats files that tests.tsv names for a file."""
    best, files = "", ""
    for row in open(HERE + "/tests.tsv"):
        if not row.startswith("#"):
            start, names = row.rstrip("\n").split("\t")
            if path.startswith(start) and len(start) > len(best):
                best, files = start, names
    return files.split()


class Trials:
    """What the trials of all mutants share."""

    def __init__(self, places, tests, bats_seconds):
        self.tests, self.bats_seconds = tests, bats_seconds
        self.kills = collections.Counter()  # (file, test): how many of its mutants the test killed
        self.numbers = collections.defaultdict(list)  # file: the numbers of its mutants
        for place in places:
            if place.number:
                self.numbers[place.path].append(place.number)

    def that_reach(self, place):
        """The tests to try, in the order to try them."""
        files = named_by_table(place.path)
        if place.path.endswith(".lua"):
            tests = [test for test in self.tests if test.file in files + ["test_lua", "sim"]]
        else:
            numbers = [place.number] if place.number else self.numbers[place.path]
            tests = [test for test in self.tests if any(test.reached[n] for n in numbers)]
        name = os.path.splitext(os.path.basename(place.path))[0]

        def order(test):
            is_own = test.name in ("test_" + name, "test_cmd_" + name)
            return (-is_own, -self.kills[place.path, str(test)], test.file not in files,
                    test.seconds if test.kind == "unit" else test.n_reached)

        return sorted(tests, key=order)

    def bats_calls(self, tests):
        """The tests that fit into bats_seconds, by file."""
        files, seconds = {}, 0
        for test in tests:
            if not files or seconds + test.seconds < self.bats_seconds:
                seconds += test.seconds + (0 if test.file in files else 0.5)
                files.setdefault(test.file, []).append(test)
        return files.items()

    def run_bats(self, tree, number, file, tests):
        """Runs tests of a bats file; returns the name of the first that fails, or None."""
        failed = []

        def see(line):
            found = BATS_RESULT.match(line)
            if found and found.group(1):
                failed.append(found.group(2))
            return failed

        limit = 10 + 3 * max(test.seconds for test in tests)
        in_sandbox(tree, bats_script(file, [test.name for test in tests], limit),
                   30 + limit * len(tests), number, see)
        return failed[0] if failed else None

    def verdict(self, tree, place):
        tests = self.that_reach(place)
        if not tests:
            return "not reached"
        units = [test for test in tests if test.kind == "unit"]
        script = "".join(unit_script(test.name, 3 * test.seconds + 5) for test in units)
        if any(test.kind == "sim" for test in tests):
            script += "timeout 60 %s >/tmp/out 2>&1 || echo \"failed sim: status $?\"; " % SIM
        lines = in_sandbox(tree, script + "echo ended", 600, place.number)
        for line in lines:
            if line.startswith("failed "):
                self.kills[place.path, line[len("failed "):].split(":")[0]] += 1
                return "killed by " + line[len("failed "):]
        if "ended" not in lines:
            return "killed by unit tests: it has killed their shell"
        for file, some in self.bats_calls([test for test in tests if test.kind == "bats"]):
            failed = self.run_bats(tree, place.number, file, some)
            again = [test for test in some if test.name == failed]
            if again and self.run_bats(tree, place.number, file, again) and \
                    not self.run_bats(TREE, 0, file, again):
                self.kills[place.path, str(again[0])] += 1
                return "killed by %s" % again[0]
        return "survived"


class Alone:
    """A copy of the tree in which one mutant after the other is built."""

    def __init__(self, number):
        self.folder = "%s/alone%d" % (BUILD, number)
        self.is_built = False
        self.code = {}  # the object files without a mutant

    def code_of(self, made):
        return open(os.path.join(self.folder, "build/plain", made), "rb").read()

    def verdict(self, trials, place):
        if not self.is_built:
            copy_tree(self.folder)
            make(self.folder, GOALS)
            self.is_built = True
        made = place.path[:-2] + ".o" if place.path.endswith(".c") else "lib/lock/scripts.o"
        if made not in self.code:
            self.code[made] = self.code_of(made)
        units = [test.name for test in trials.that_reach(place) if test.kind == "unit"]
        goals = "build/plain/rlock build/plain/sim/sim " + \
            " ".join("build/plain/unit/" + name for name in units)
        path = os.path.join(self.folder, place.path)
        original = open(path, "rb").read()
        end = place.offset + len(place.old.encode("latin-1"))
        with open(path, "wb") as out:
            out.write(original[:place.offset] + place.new.encode("latin-1") + original[end:])
        try:
            if not make(self.folder, goals)[0]:
                return "not built"
            if self.code_of(made) == self.code[made]:
                return "the same"
            return trials.verdict(self.folder, place)
        finally:
            with open(path, "wb") as out:  # the next call of make builds it again
                out.write(original)


# ---- the sample, the results and the command line ------------------------------------------------

def sample(places, n, seed):
    """Draws n places. Files that decide about locks (DECIDES) have three times the chance."""
    def drawn(place):
        chance = random.Random(seed + place.key).random()
        return chance ** (1 / (3 if DECIDES.match(place.path) else 1))
    return sorted(places, key=drawn, reverse=True)[:n]


def read_table(path):
    """The rows of a table, by the key of the mutant, which is the columns after the first."""
    if not os.path.exists(path):
        return {}
    rows = [row.rstrip("\n").split("\t", 1) for row in open(path) if not row.startswith("#")]
    return {key: first for first, key in rows}


def summary(chosen):
    known = read_table(RESULTS)
    equivalent = read_table(HERE + "/equivalent.tsv")
    verdicts = collections.Counter()
    for place in chosen:
        verdict = known.get(place.key, "not tried")
        verdicts["equivalent" if place.key in equivalent else verdict.split(" by ")[0]] += 1
    tried = verdicts["killed"] + verdicts["survived"] + verdicts["not reached"]
    print("# %s" % ", ".join("%d %s" % (n, v) for v, n in verdicts.most_common()))
    if tried:
        print("# killed: %.1f %% of %d" % (100 * verdicts["killed"] / tried, tried))


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--sample", type=int, default=1000)
    asked.add_argument("--seed", default="1")
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("--only", action="append", default=[], metavar="PATH")
    asked.add_argument("--again", action="store_true")
    asked.add_argument("--bats", type=float, default=40, metavar="SECONDS")
    asked = asked.parse_args()
    places = finder.all_places()
    only = tuple(asked.only) or ("",)
    chosen = sample([place for place in places if place.path.startswith(only)], asked.sample,
                    asked.seed)
    if os.geteuid() != 0:
        sys.exit("mutants: needs root, for namespaces in which the mutants can do no harm")
    for place in places:
        if not place.path.startswith(only):
            place.number = 0
    build_tree(places)
    trials = Trials(places, record_all(places, asked.jobs, asked.bats > 0), asked.bats)
    known = dict(read_table(RESULTS), **read_table(HERE + "/equivalent.tsv"))
    if asked.again:
        known = {key: verdict for key, verdict in known.items()
                 if verdict not in ("survived", "not reached")}
    todo = collections.deque(place for place in chosen if place.key not in known)
    print("# %d mutants, %d of them to be tried" % (len(chosen), len(todo)), flush=True)
    lock = threading.Lock()

    def work(number):
        alone = Alone(number)
        while True:
            with lock:
                if not todo:
                    return
                place = todo.popleft()
            start = time.monotonic()
            verdict = trials.verdict(TREE, place) if place.number else alone.verdict(trials, place)
            with lock, open(RESULTS, "a") as out:
                out.write("%s\t%s\n" % (verdict, place.key))
                print("%.1f s: %s: %s" % (time.monotonic() - start, verdict, place), flush=True)

    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        list(pool.map(work, range(asked.jobs)))
    summary(chosen)


main()
