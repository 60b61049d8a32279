#!/usr/bin/python3
# inject: lets each system call of rlock fail, one call in each run, and checks what rlock promises.
#
#     tests/inject/inject.py [--sample N] [--seed S] [--jobs J]
#     tests/inject/inject.py --kills N [--seed S] [--jobs J]   # signals at random moments instead
#     tests/inject/inject.py --table                           # all results, as a table in Markdown
#     tests/inject/inject.py --one "wait guard recvfrom 3 ENOMEM" [--times N] [--show]
#
# strace(1) records the calls of each scenario once. In each trial one call returns an error that
# its manual page names (errnos.tsv) without being executed, or begins half a TTL late (DELAY), or
# its process gets KILL or STOP when it begins; a stopped one is continued after two TTLs.
#
# A call is named by its scenario, the role of its process, its name, and its number among the calls
# of that name and role, of which strace traces no other: `main` from its start; `guard` from when
# it is ready, while rlock waits; `renewer`, a thread, from when the command has begun; `child`, the
# guard's child before the exec, together with the guard, whose call of that number changes, too.
#
# With --kills, instead, rlock, its guard, the command or the server gets KILL, or STOP and later
# CONT, so many ms after rlock was started: "wait guard moment 437+900 STOP" stops the guard after
# 437 ms for 900 ms. A server that got KILL starts again at once, with its data.
#
# A trial has a PID namespace, /tmp and /run of its own, for which the script needs to be root. Only
# clocks of observed processes count, so a busy machine causes no false alarm: the command notes the
# time when it runs, and the server tells by MONITOR when it wrote the lock's key.
#
# build/inject/results.tsv has a line for each trial: verdict, trial. A trial that is there isn't
# made again, until rlock changes. Verdicts: `exit N` and `signal N`: rlock ended so, and broke no
# promise; `not reached`: rlock made fewer calls than when they were recorded, or the process to get
# the signal didn't run; `not observed`: the script reached the server of `local` only after the
# command's end; `violation: ...`: the broken promise. build/inject/violations has what it showed.
#
# SPDX-License-Identifier: MIT

import argparse
import collections
import concurrent.futures
import glob
import hashlib
import itertools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import redis

BUILD = "build/inject"
RESULTS = BUILD + "/results.tsv"
CALLS = BUILD + "/calls.tsv"
VIOLATIONS = BUILD + "/violations"
VERSION = BUILD + "/version"  # a digest of the rlock that the results are about
ERRNOS = "tests/inject/errnos.tsv"
RLOCK = os.path.abspath(os.environ.get("RLOCK", "build/plain/rlock"))
TRIAL_RLOCK = "/tmp/program/rlock"  # a copy of it, in the /tmp of a trial's own

TTL = 1.5           # seconds: the TTL of the leases of the rlock under test
WAIT = 8            # seconds: so long rlock waits for the lock
OTHER_WAIT = 30     # seconds: so long another rlock waits for it, also on a busy machine
HANG_SECONDS = 15   # an rlock that runs for longer counts as hanging
TRIAL_SECONDS = 120 # a trial that takes longer is broken off, without a verdict
ORPHAN_SECONDS = 3  # no process of rlock's may run for longer after the end of rlock
SLACK = 0.001       # seconds: the server's clock and the command's are read one after the other
AGAIN = 3           # so often a bad trial is made again, alone
COMMAND_STATUS = 5  # the command exits with this status, which rlock itself never uses

Scenario = collections.namedtuple("Scenario", "name roles words seconds statuses")
Trial = collections.namedtuple("Trial", "scenario role call number fault")
Span = collections.namedtuple("Span", "start end expiry value")

# A scenario's words are rlock's arguments, its seconds how long the command runs, and its statuses
# those with which rlock ends without a fault. In `pause` the other rlock may get the lock first.
SCENARIOS = {s.name: s for s in [
    Scenario("job", ["main"], [], 0.3, [5]),
    Scenario("wait", ["main", "guard", "child", "renewer"], [], 1.2, [5]),
    Scenario("loss", ["main", "guard", "renewer"], [], 6, [76]),
    Scenario("pause", ["main", "guard", "renewer"], ["--on-lost", "pause"], 3, [5, 76]),
    Scenario("acquire", ["main"], ["acquire"], None, [0]),
    Scenario("renew", ["main"], ["renew"], None, [0]),
    Scenario("release", ["main"], ["release"], None, [0]),
    Scenario("local", ["main"], [], 0.3, [5]),
]}

# Who gets a signal at a random moment, in which scenarios.
VICTIMS = [(scenario, role, fault)
           for scenario in ("wait", "pause", "local")
           for role in ("main", "guard", "command", "server")
           for fault in ("KILL", "STOP")
           if (scenario, role) != ("local", "server")]

# The command writes the time every 20 ms, so its log shows when it ran, also if it was frozen.
COMMAND = r"""
exec {silent}<> <(:)
note() { echo "$1 $EPOCHREALTIME" >>/tmp/log; }
note begin
end=$((${EPOCHREALTIME/./} + $1))
while ((${EPOCHREALTIME/./} < end)); do
    note tick
    read -r -t 0.02 -u "$silent"
done
note end
exit 5
"""


# ---- one trial: this runs in a PID namespace of its own ------------------------------------------

class Observer(threading.Thread):
    """Notes each write to the lock's key, with the server's time.

    MONITOR shows every command, also those of scripts. When the observer connects, it also asks for
    the key's value and TTL, because it has missed what the server did before. `events` has
    tuples (time, command, arguments), and for an answer (time, "STATE", [value, ms left]).
    `blind` has the spans of time (from, to) before such answers."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.events, self.blind, self.seen_until = path, [], [], 0
        self.server = redis.Redis(unix_socket_path=path, decode_responses=True)
        self.marks, self.numbers = {}, itertools.count()

    def ask(self, *words):
        """The reply to a command, None if the server did not answer."""
        try:
            return self.server.execute_command(*words)
        except redis.RedisError:
            return None

    def ask_state(self):
        """Asks for the key's value and TTL; MONITOR tells when the server answered."""
        mark = "mark-%d" % next(self.numbers)
        self.marks[mark] = threading.Event()
        script = "return {redis.call('GET', 'k') or '', redis.call('PTTL', 'k'), ARGV[1]}"
        state = self.ask("EVAL", script, "0", mark)
        self.marks[mark].state = state
        return mark if isinstance(state, list) else None

    def sync(self):
        """Waits until all that the server has done so far is in `events`."""
        mark = self.ask_state()
        return mark is not None and self.marks[mark].wait(5)

    def run(self):
        while True:
            try:
                monitor = socket.socket(socket.AF_UNIX)
                monitor.connect(self.path)
                monitor.sendall(b"MONITOR\r\n")
                lines = monitor.makefile("rb")
                mark = lines.readline() == b"+OK\r\n" and self.ask_state()
                if mark:
                    self.read_commands(lines, mark)
            except OSError:
                pass
            time.sleep(0.002)

    def read_commands(self, lines, first_mark):
        blind_from = self.seen_until
        for line in lines:
            text = line.decode(errors="replace")
            read = re.match(r"\+(\d+\.\d+) \[[^]]*\] (.*)", text)
            if not read:
                continue
            at, words = float(read.group(1)), re.findall(r'"((?:[^"\\]|\\.)*)"', read.group(2))
            if words[0] in ("SET", "PEXPIRE", "DEL") and words[1] == "k":
                self.events.append((at, words[0], words[2:]))
            elif words[0] == "EVAL" and words[-1] in self.marks:
                mark = self.marks[words[-1]]
                if words[-1] == first_mark:
                    self.events.append((at, "STATE", mark.state))
                    self.blind.append((blind_from, at))
                mark.set()
            self.seen_until = at

    def spans(self):
        """From when to when the key had which value. A span's `end` is when the value was deleted
        or replaced, and `expiry` when it would have expired; a span that expired has both equal."""
        spans, held = [], None
        for at, command, words in [*self.events, (time.time(), "NOW", [])]:
            if command == "PEXPIRE" and held:
                held = held._replace(expiry=at + float(words[0]) / 1000)
            elif command == "STATE" and held and words[0] == held.value:
                held = held._replace(expiry=at + words[1] / 1000)
            elif command != "PEXPIRE":
                if held:
                    spans.append(held._replace(end=min(at, held.expiry)))
                held = None
                if command == "SET":
                    lasts = [float(words[i + 1]) * {"PX": 0.001, "EX": 1}[word]
                             for i, word in enumerate(words) if word in ("PX", "EX")]
                    held = Span(at, None, at + (lasts[0] if lasts else float("inf")), words[0])
                elif command == "STATE" and words[0]:
                    held = Span(at, None, at + words[1] / 1000, words[0])
        return spans

    def is_blind(self, at):
        return any(begin <= at <= end for begin, end in self.blind)


def processes():
    """Returns a dict of all processes of the namespace, from the pid to name, state and parent."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as stat:
                text = stat.read()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        found[int(text.split(" ")[0])] = (name, rest[0], int(rest[1]))
    return found


def send(pid, sig):
    """Sends the signal; False if the process has ended."""
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        return False
    return True


def until(seconds, condition):
    end = time.time() + seconds
    while time.time() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    return None


def read_log():
    rows = [row.split() for row in read_text("/tmp/log").splitlines()]
    return [(row[0], float(row[1])) for row in rows if len(row) == 2]


def child_of(pid, *names):
    """The pid of this process' child, or, if there is a second name, of that child's child."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
            for child in children.read().split():
                with open("/proc/%s/comm" % child) as comm:
                    if comm.read().strip() == names[0]:
                        return child_of(int(child), *names[1:]) if names[1:] else int(child)
    except OSError:
        pass
    return None


def renewer_of(pid):
    try:
        return next((int(t) for t in os.listdir("/proc/%d/task" % pid) if int(t) != pid), None)
    except OSError:
        return None


def is_traced(pid):
    try:
        with open("/proc/%d/status" % pid) as status:
            return not re.search(r"^TracerPid:\t0$", status.read(), re.M)
    except OSError:
        return True


def strace_words(trial, is_shown):
    words = ["strace", "-o", "/tmp/strace"]
    if trial.role == "child":
        words += ["-f", "-b", "execve"]
    if trial.fault == "-":
        return words
    if is_shown:
        words += ["-ttt"]
    else:
        words += ["-e", "trace=%s%s" % (trial.call, ",execve" if trial.role == "child" else "")]
    if trial.fault in ("KILL", "STOP"):
        change = "signal=SIG" + trial.fault
    elif trial.fault == "DELAY":
        change = "delay_enter=%d" % (TTL / 2 * 1e6)
    else:
        change = "error=" + trial.fault
    return words + ["-e", "inject=%s:%s:when=%s" % (trial.call, change, trial.number)]


class Run:
    """A server, rlock under strace in one scenario, and another rlock that waits for its lock."""

    def __init__(self, trial, is_shown):
        self.trial, self.scenario, self.is_shown = trial, SCENARIOS[trial.scenario], is_shown
        self.is_local = trial.scenario == "local"
        self.is_moment = trial.call == "moment"
        os.chdir("/tmp")
        os.makedirs("/tmp/home/run", mode=0o700)
        self.environ = dict(os.environ, HOME="/tmp/home", XDG_RUNTIME_DIR="/tmp/home/run",
                            LC_ALL="C.UTF-8",
                            RLOCK_URL="local:" if self.is_local else "unix:///tmp/socket")
        self.server = None
        self.strace = None
        self.other = None
        self.token = None
        self.was_hit = False
        if not self.is_local:
            self.start_server()
        self.observer = Observer("/run/rlock/server.sock" if self.is_local else "/tmp/socket")
        if not self.is_local:
            until(20, lambda: self.observer.ask("PING"))
        self.observer.start()
        if not self.is_local:
            until(20, lambda: self.observer.blind)

    def start_server(self):
        keeps = ["--appendonly", "yes", "--appendfsync", "always"] * (self.trial.role == "server")
        self.server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket",
                                        "/tmp/socket", "--save", "", *keeps],
                                       stdout=subprocess.DEVNULL)

    def rlock(self, *words, **settings):
        return subprocess.run([TRIAL_RLOCK, *words], env=self.environ, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=20,
                              **settings).stdout.strip()

    def start(self):
        trial, words = self.trial, list(self.scenario.words)
        if self.scenario.seconds:
            words += ["-w", str(WAIT)]
        if trial.scenario in ("wait", "loss", "pause"):
            self.token = self.rlock("acquire", "-k", "k", "-t", "20")
        elif trial.scenario in ("renew", "release"):
            self.token = self.rlock("acquire", "-k", "k", "-t", str(TTL))
            self.environ["RLOCK_TOKEN"] = self.token
        words += ["-v", "-k", "k"]
        if trial.scenario != "release":
            words += ["-t", str(2 * TTL if trial.scenario == "renew" else TTL)]
        if self.scenario.seconds:
            words += ["--", "bash", "-c", COMMAND, "command", str(int(self.scenario.seconds * 1e6))]
        # With -DDD strace is a grandchild in a session of its own: rlock stays this script's child.
        tracer = []
        if trial.role == "main" and not self.is_moment:
            tracer = strace_words(trial, self.is_shown) + ["-DDD"]
        self.main = subprocess.Popen([*tracer, TRIAL_RLOCK, *words], env=self.environ,
                                     stdin=subprocess.DEVNULL, stdout=open("/tmp/out", "w"),
                                     stderr=open("/tmp/err", "w"))
        if self.is_moment:
            threading.Thread(target=self.hit, args=[time.time()], daemon=True).start()

    def hit(self, started_at):
        """Sends the signal at its moment, and what undoes it later."""
        after, _, lasts = self.trial.number.partition("+")
        time.sleep(max(0, started_at + int(after) / 1000 - time.time()))
        pid = {"main": lambda: self.main.poll() is None and self.main.pid,
               "guard": lambda: child_of(self.main.pid, "rlock-guard"),
               "command": lambda: child_of(self.main.pid, "rlock-guard", "bash"),
               "server": lambda: self.server.pid}[self.trial.role]()
        if not pid:
            return
        self.was_hit = send(pid, signal.Signals["SIG" + self.trial.fault])
        if self.trial.role == "server" and self.trial.fault == "KILL":
            self.server.wait()
            self.start_server()
        elif self.trial.fault == "STOP":
            time.sleep(int(lasts) / 1000)
            send(pid, signal.SIGCONT)

    def attach(self, pid):
        """Lets strace trace this process or thread only. pid None: rlock has ended already."""
        if pid is None:
            return
        self.strace = subprocess.Popen([*strace_words(self.trial, self.is_shown), "-p", str(pid)],
                                       stderr=subprocess.DEVNULL)
        until(5, lambda: is_traced(pid))

    def has_begun_or_ended(self):
        return self.main.poll() is not None or bool(read_log())

    def let_it_happen(self):
        """Attaches strace, lets rlock get its lock, and brings about the loss or the pause."""
        role, name = self.trial.role, self.trial.scenario
        if name in ("wait", "loss", "pause"):
            until(5, lambda: child_of(self.main.pid, "rlock-guard") or self.main.poll() is not None)
            if role in ("guard", "child") and not self.is_moment:
                self.attach(child_of(self.main.pid, "rlock-guard"))
            self.environ["RLOCK_TOKEN"] = self.token
            self.rlock("release", "-k", "k")
        if self.scenario.seconds:
            until(4, self.has_begun_or_ended)
        if role == "renewer":
            self.attach(until(1, lambda: renewer_of(self.main.pid)))
        if self.main.poll() is None and read_log():
            time.sleep(0.3)
            if name == "loss":
                self.observer.ask("SET", "k", "another", "PX", "2500")
            elif name == "pause" and role != "server":
                self.server.send_signal(signal.SIGSTOP)
                time.sleep(TTL + 0.5)
                self.server.send_signal(signal.SIGCONT)

    def continue_stopped(self):
        for pid, (name, state, _) in processes().items():
            if state in "Tt" and ("rlock" in name or self.trial.role == "child"):
                send(pid, signal.SIGCONT)

    def wait_for_end(self):
        """Waits until rlock, all its descendants, and at last the other rlock have ended."""
        end = time.time() + HANG_SECONDS
        while self.main.poll() is None and time.time() < end:
            until(2 * TTL, lambda: self.main.poll() is not None)
            if self.trial.fault == "STOP" and not self.is_moment:
                self.continue_stopped()
        self.value_at_end = self.observer.ask("GET", "k") or ""
        # One look is no proof: a process may end while /proc is read.
        self.left = [] if until(ORPHAN_SECONDS, lambda: not self.orphans()) else self.orphans()
        if self.other is not None:
            until(2 * OTHER_WAIT, lambda: self.other.poll() is not None)
        self.observer.sync()

    def start_other(self):
        script = 'echo "other $EPOCHREALTIME" >>/tmp/log'
        environ = {k: v for k, v in self.environ.items() if k != "RLOCK_TOKEN"}
        self.other = subprocess.Popen(
            [TRIAL_RLOCK, "-k", "k", "-w", str(OTHER_WAIT), "-t", "5", "--", "bash", "-c", script],
            env=environ, stdout=subprocess.DEVNULL, stderr=open("/tmp/other", "w"))

    def orphans(self):
        """The processes that rlock has left behind: neither this script's nor the other rlock's."""
        every = processes()

        def is_of_other(pid):
            while pid in every and self.other is not None:
                if pid == self.other.pid:
                    return True
                pid = every[pid][2]
            return False

        known = {1, os.getpid(), self.main.pid if self.main.poll() is None else 1}
        return ["%s (pid %d)" % (name, pid) for pid, (name, state, _) in every.items()
                if pid not in known and state != "Z" and name not in ("strace", "redis-server")
                and not is_of_other(pid)
                and not (self.is_local and re.match("rlock-(?!guard)", name))]

    def is_reached(self):
        if self.trial.fault == "-" or self.was_hit:
            return True
        text = read_text("/tmp/strace")
        if self.trial.fault in ("KILL", "STOP"):
            return re.search(r"(killed|stopped) by SIG" + self.trial.fault, text) is not None
        # These calls return no value, so strace has no line INJECTED or DELAYED for them.
        if self.trial.call in ("exit", "exit_group"):
            return self.trial.call + "(" in text
        return "(INJECTED" in text or "(DELAYED" in text


def read_text(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def violations(run):
    """Yields a sentence for each promise that rlock broke in this run."""
    log, spans, status = read_log(), run.observer.spans(), run.main.poll()
    said, name = read_text("/tmp/err"), run.trial.scenario
    # The lock's value has the pid of the holder: rlock itself, but for `rlock acquire` its parent.
    holder = " pid=%d " % (os.getpid() if name == "acquire" else run.main.pid)

    def is_ours(value):
        return holder in value and " v1 try=0 " not in value  # try=0: kept for a waiter

    # A lease lasts until its expiry, or until rlock has released it. The script itself takes the
    # lock away in the scenario `loss`: rlock can't know that before its next renewal.
    ours = [s for s in spans if is_ours(s.value)]
    taken = [s.start for s in spans if s.value == "another"]
    ours = [s._replace(end=s.expiry) if s.end in taken else s for s in ours]
    is_seen = not any(begin > 0 for begin, _ in run.observer.blind)
    ticks = [at for what, at in log if what != "other" and not run.observer.is_blind(at)]
    others = [at for what, at in log if what == "other"]
    has_end = any(what == "end" for what, _ in log)

    if status is None:
        yield "rlock did not end within %d s" % HANG_SECONDS
    if ticks and not ours:
        yield "the command ran, but the server never had the lock"
    elif ticks:
        stray = [t for t in ticks
                 if not any(s.start - SLACK <= t <= s.end + SLACK for s in ours)]
        if stray and stray[0] < ours[0].start:
            yield "the command began %.3f s before the grant" % (ours[0].start - stray[0])
        elif stray:
            ended = max(s.end for s in ours if s.end < stray[-1])
            yield "the command ran %.3f s after the lease's end" % (stray[-1] - ended)
    if ticks and others and ticks[0] < others[0] < ticks[-1]:
        yield "the command ran while another rlock held the lock"
    if run.scenario.seconds and status == 0:
        yield "exit 0, but the command did not exit with 0"
    if run.scenario.seconds and status == COMMAND_STATUS:
        if not has_end:
            yield "the command's exit status, but the command did not reach its end"
        elif name != "pause" and is_seen and ticks and any(
                ticks[0] < a.end < b.start < ticks[-1] for a, b in zip(ours, ours[1:])) or \
                any(ticks[0] < at < ticks[-1] for at in taken):
            yield "the command's exit status, but the lock was not held all the time"
    if status == 0 and name == "acquire":
        token = read_text("/tmp/out").strip()
        if not token or not any(s.value.startswith(token) for s in ours):
            yield "acquire: exit 0, but the server never had a lock with the printed token"
    longest = max((s.expiry - s.start for s in spans), default=0)
    if status == 0 and name == "renew" and longest < 2 * TTL:
        yield "renew: exit 0, but the lease was not extended"
    if status == 0 and name == "release" and run.value_at_end.startswith(run.token):
        yield "release: exit 0, but the lock is still held"
    if re.search(r": k: released", said) and is_ours(run.value_at_end):
        yield "rlock says released, but the lock is still held"
    if re.search(r"not started|never started|did not run", said) and ticks:
        yield "rlock says that the command was not started, but it ran"
    if run.left:
        yield "left behind: " + ", ".join(run.left)
    if run.other is not None and not others:
        yield "another rlock did not get the lock within %d s: " % OTHER_WAIT + \
            " ".join(read_text("/tmp/other").split())[:100]
    for key in run.observer.ask("KEYS", "*") or []:
        if run.observer.ask("PTTL", key) == -1:
            yield "the key %s has no expiry" % key


def run_trial(trial, is_shown):
    run = Run(trial, is_shown)
    run.start()
    run.let_it_happen()
    if trial.scenario not in ("acquire", "renew", "release"):
        run.start_other()
    run.wait_for_end()
    found = list(violations(run))
    status = run.main.poll()
    if found or is_shown:
        for path in ("/tmp/strace", "/tmp/log", "/tmp/out", "/tmp/err", "/tmp/other"):
            print("---- %s\n%s" % (path, read_text(path)))
        print("---- what the server did")
        for event in run.observer.events:
            print("%.6f %s %s" % (event[0], event[1], " ".join(map(str, event[2]))))
        print("not observed: %s" % run.observer.blind)
    elif trial.fault == "-":
        print(read_text("/tmp/strace"))
    ticks = [at for what, at in read_log() if what != "other"]
    if found:
        print("verdict\tviolation: " + "; ".join(found))
    elif ticks and all(map(run.observer.is_blind, ticks)):
        print("verdict\tnot observed")
    elif not run.is_reached():
        print("verdict\tnot reached")
    else:
        print("verdict\t%s" % ("exit %d" % status if status >= 0 else "signal %d" % -status))
    sys.stdout.flush()


# ---- all trials ----------------------------------------------------------------------------------

# Process 1 of a trial's namespaces mounts what hides files of others. rlock and this script may be
# in /tmp, so they are opened before.
MOUNT = """
exec {rlock}<"$RLOCK" {self}<"$0"
for folder in /tmp /run; do mount -t tmpfs none "$folder" || exit; done
mkdir /tmp/program && cat <&"$rlock" >/tmp/program/rlock && chmod 755 /tmp/program/rlock || exit
exec /usr/bin/python3 "/dev/fd/$self" "$@"
"""


def be_trial(trial, is_shown):
    """What process 1 of a trial does: starts the trial, and reaps all processes until its end."""
    pid = os.fork()
    if pid == 0:
        run_trial(trial, is_shown)
        os._exit(0)
    while os.wait()[0] != pid:
        pass


def run_one(trial, is_shown):
    """Makes a trial in namespaces; the kernel kills all processes in them when process 1 ends."""
    done = subprocess.run(
        ["timeout", "-k", "5", str(TRIAL_SECONDS), "unshare", "--mount", "--pid", "--fork",
         "--kill-child", "--mount-proc", "bash", "-c", MOUNT, os.path.abspath(__file__), "--trial",
         " ".join(trial)] + ["--show"] * is_shown, env=dict(os.environ, RLOCK=RLOCK),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode(errors="replace")
    verdict = re.search(r"^verdict\t(.*)$", text, re.M)
    return trial, text, verdict.group(1) if verdict else \
        "no verdict: " + text[-200:].replace("\n", " ")


def run_all(trials, jobs, is_shown=False):
    """Makes the trials, `jobs` at a time; yields each with its output and its verdict."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        made = [pool.submit(run_one, trial, is_shown) for trial in trials]
        yield from (each.result() for each in concurrent.futures.as_completed(made))


def calls_in(output, role):
    """Counts in strace's output how often the role has made each call."""
    counts, first_pid = collections.Counter(), None
    for line in output.splitlines():
        pid, rest = re.match(r"(?:(\d+) +)?(.*)", line).groups()
        if role == "child":
            if pid is None:
                continue
            first_pid = first_pid or pid
            if pid == first_pid:
                continue
        called = re.match(r"([a-z_0-9]+)\(", rest)
        if called:
            counts[called.group(1)] += 1
    return counts


def forget_other_rlock():
    """Removes what an earlier run of this script has kept, if it tested another rlock."""
    with open(RLOCK, "rb") as program:
        version = hashlib.sha1(program.read()).hexdigest() + "\n"
    if read_text(VERSION) != version:
        shutil.rmtree(BUILD, ignore_errors=True)
        os.makedirs(BUILD)
        with open(VERSION, "w") as out:
            out.write(version)


def record(jobs):
    """Counts the calls of each scenario and role by a run without a fault, and keeps the counts
    in the file CALLS. If an earlier run of this script has made CALLS, only reads it.
    Returns rows: scenario, role, call, count."""
    if not os.path.exists(CALLS):
        wanted = [Trial(s.name, role, "-", "0", "-") for s in SCENARIOS.values()
                  for role in s.roles]
        with open(CALLS + ".new", "w") as out:
            # Repeat, with fewer at a time, the runs that didn't end as their scenario says: the
            # load of the machine may be the reason.
            for jobs in (jobs, 2, 1):
                wanted = dict(record_some(wanted, jobs, out))
        if wanted:
            for trial, output in wanted.items():
                report_failure("%s without a fault" % " ".join(trial), output)
            sys.exit(1)
        os.rename(CALLS + ".new", CALLS)
    return [row.split("\t") for row in read_text(CALLS).splitlines()]


def record_some(wanted, jobs, out):
    """Writes the calls of these runs; yields those that didn't end as the scenario says, each with
    its output."""
    for trial, output, verdict in run_all(wanted, jobs):
        counts = calls_in(output, trial.role)
        print("# %s, %s: %d calls without a fault: %s" %
              (trial.scenario, trial.role, sum(counts.values()), verdict), flush=True)
        usual = ["exit %d" % status for status in SCENARIOS[trial.scenario].statuses]
        if verdict not in usual or not counts:
            yield trial, output
            continue
        for call, count in sorted(counts.items()):
            out.write("%s\t%s\t%s\t%d\n" % (trial.scenario, trial.role, call, count))


def all_trials(rows):
    with open(ERRNOS) as table:
        errnos = dict(row.rstrip("\n").split("\t") for row in table if not row.startswith("#"))
    missing = sorted({row[2] for row in rows} - set(errnos))
    if missing:
        print("# %s has no row for %s: no trial lets it return an error" %
              (ERRNOS, " ".join(missing)))
    for scenario, role, call, count in rows:
        faults = ["DELAY", "KILL", "STOP"] + errnos.get(call, "-").replace("-", "").split()
        for number in range(1, int(count) + 1):
            if (role, call, number) == ("main", "execve", 1):
                continue  # this call starts rlock itself, and strace never changes it
            for fault in faults:
                yield 1 / int(count), Trial(scenario, role, call, str(number), fault)


def sample(weighted, n, seed):
    """Draws n trials. The weights give each call of a role the same chance, however often rlock
    makes it."""
    chance = random.Random(seed)
    keyed = [(chance.random() ** (1 / weight), trial) for weight, trial in weighted]
    return [trial for _, trial in sorted(keyed, reverse=True)[:n]]


def kills(n, seed):
    """Draws n signals at random moments."""
    chance = random.Random(seed)
    for i in range(n):
        scenario, role, fault = VICTIMS[i % len(VICTIMS)]
        moment = str(chance.randrange(2500))
        if fault == "STOP":
            moment += "+%d" % chance.randrange(int(TTL * 2000))
        yield Trial(scenario, role, "moment", moment, fault)


def known_results():
    rows = (row.split("\t") for row in read_text(RESULTS).splitlines())
    return {Trial(*name.split()): verdict for verdict, name in rows if verdict != "not observed"}


def kind_of(verdict):
    """Under which heading of the table a verdict counts."""
    word, _, rest = verdict.partition(" ")
    if word == "exit":
        return {"0": "0 or 5", str(COMMAND_STATUS): "0 or 5", "76": "76"}.get(rest, "other status")
    return "violation" if word == "violation:" else verdict if word == "not" else \
        "signal" if word == "signal" else "no verdict"


HEADINGS = ["error", "DELAY", "KILL", "STOP", "0 or 5", "76", "other status", "signal",
            "not reached", "not observed", "violation", "no verdict"]


def table(results):
    """The rows of the table: for each scenario and role how many trials of which kind there were,
    and how they ended."""
    counts = collections.defaultdict(collections.Counter)
    for trial, verdict in results.items():
        fault = trial.fault if trial.fault in HEADINGS else "error"
        moment = ", moments" if trial.call == "moment" else ""
        for row in ("%s, %s%s" % (trial.scenario, trial.role, moment), "all"):
            counts[row][fault] += 1
            counts[row][kind_of(verdict)] += 1
    order = ["%s, %s%s" % (s, role, moment) for moment in ("", ", moments") for s in SCENARIOS
             for role in ("main", "guard", "child", "renewer", "command", "server")] + ["all"]
    shown = [h for h in HEADINGS if counts["all"][h] or h == "violation"]
    yield ["scenario, process", *shown]
    for row in order:
        if row in counts:
            yield [row, *(str(counts[row][h]) for h in shown)]


def print_table(results):
    """Prints the table in Markdown."""
    for i, row in enumerate(table(results)):
        print("| " + " | ".join(row) + " |")
        if i == 0:
            print("| --- |" + " ---: |" * (len(row) - 1))


def is_bad(verdict):
    return kind_of(verdict) in ("violation", "no verdict")


def report_failure(what, output):
    """Prints a failed test in TAP: CI shows these lines, and the end of what the trial printed."""
    print("not ok - inject: %s" % what)
    print("".join("# %s\n" % line for line in output.splitlines()[-60:]), end="", flush=True)


def run_and_keep(trials, jobs, results):
    """Makes the trials. Repeats each bad one alone, AGAIN times, because the checks compare times,
    and the machine may have stood still. Returns how many were bad again."""
    bad, n_failed = [], 0
    for trial, output, verdict in run_all(trials, jobs):
        name = " ".join(trial)
        results[trial] = verdict
        with open(RESULTS, "a") as out:
            out.write("%s\t%s\n" % (verdict, name))
        if is_bad(verdict):
            bad.append((trial, output, "%s: %s" % (name, verdict)))
            os.makedirs(VIOLATIONS, exist_ok=True)
            with open("%s/%s" % (VIOLATIONS, name.replace(" ", "-")), "w") as out:
                out.write(output)
    for trial, output, what in bad:
        if any([is_bad(verdict) for _, _, verdict in run_all([trial] * AGAIN, 1)]):
            report_failure(what, output)
            n_failed += 1
        else:
            print("# failed beside others, passed alone: inject: %s" % what, flush=True)
    return n_failed


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--sample", type=int, default=0)
    asked.add_argument("--kills", type=int, default=0)
    asked.add_argument("--seed", default="1")
    asked.add_argument("--jobs", type=int, default=4)
    asked.add_argument("--table", action="store_true")
    asked.add_argument("--one")
    asked.add_argument("--trial")
    asked.add_argument("--times", type=int, default=1)
    asked.add_argument("--show", action="store_true")
    asked = asked.parse_args()
    if asked.trial:
        be_trial(Trial(*asked.trial.split()), asked.show)
        return
    if asked.table:
        print_table(known_results())
        return
    if os.geteuid() != 0:
        sys.exit("inject: needs root, for namespaces in which a fault can do no harm")
    if asked.one:
        again = [Trial(*asked.one.split())] * asked.times
        verdicts = collections.Counter()
        for _, output, verdict in run_all(again, asked.jobs, asked.show):
            verdicts[verdict] += 1
            if asked.show or is_bad(verdict):
                print(output)
        for verdict, n in verdicts.most_common():
            print("%6d  %s" % (n, verdict))
        return
    forget_other_rlock()
    if asked.kills:
        chosen = list(kills(asked.kills, asked.seed))
    else:
        trials = list(all_trials(record(asked.jobs)))
        chosen = sample(trials, asked.sample or len(trials), asked.seed)
    results = known_results()
    todo = [trial for trial in chosen if trial not in results]
    print("# %d trials, drawn by seed %s; %d of them are not made yet" %
          (len(chosen), asked.seed, len(todo)), flush=True)
    n_failed = sum(is_bad(results[trial]) for trial in chosen if trial in results)
    n_failed += run_and_keep(todo, asked.jobs, results)
    print_table({trial: results[trial] for trial in chosen})
    sys.exit(1 if n_failed else 0)


main()
