#!/usr/bin/python3
"""bench: measures what a lock costs with rlock and with programs that people use instead.

    bench.py    (`make bench`)

It prints, beside the limits for rlock: the time of a run of `true` under a free lock; the processor
time that a run costs the server; the memory (PSS) of an rlock that holds a lock, and of one that
waits; the time from the end of a waiter's command to the start of the next one's. Programs take
turns in a random order; one that isn't installed is left out. Status 1: a limit is missed.

    BENCH_ROUNDS=300   how often each program runs         RLOCK=./rlock
    BENCH_WAITERS=100  how many waiters there are          RLOCK_STATIC=./rlock-static
    BENCH_LINES=3      how often they are served           RLOCK_OTHER=FILE (none): an older rlock

SPDX-License-Identifier: MIT
"""

import os
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS, WAITERS, LINES = (int(os.environ.get("BENCH_" + name, default)) for name, default in
                          (("ROUNDS", 300), ("WAITERS", 100), ("LINES", 3)))
RLOCKS = {"rlock": os.environ.get("RLOCK", "./rlock"),
          "rlock, static": os.environ.get("RLOCK_STATIC", "./rlock-static"),
          "rlock, other": os.environ.get("RLOCK_OTHER", "")}
TURN_MS = 5
# What is measured, beside whom (None: the number itself), and how much it may be at most.
LIMITS = {("run", "rlock", "flock"): 1.35, ("run", "rlock, static", "flock"): 1.2,
          ("server", "rlock", "redis-py"): 2, ("hand-over", "rlock", "bare C"): 2,
          ("hand-over", "rlock", "etcdctl"): 1, ("waiter", "rlock", None): 230}
missed = 0
folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
started = []


def serve(words, is_ready):
    """Starts a server, and waits until it answers."""
    started.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    for _ in range(200):
        if subprocess.run(is_ready, capture_output=True, check=False).returncode == 0:
            return started[-1].pid
        time.sleep(0.05)
    sys.exit("bench: does not answer: " + " ".join(words))


def start(words):
    for name in [name for name in os.environ if name.startswith("RLOCK")]:
        del os.environ[name]
    quiet = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1)]
    return os.posix_spawnp(words[0], words, os.environ, file_actions=quiet)


def ended(pid, words):
    if os.waitpid(pid, 0)[1] != 0:
        sys.exit("bench: failed: " + " ".join(words))


def table(what, unit, numbers):
    """Prints a row for each program: the median of its numbers, and what it is to the others."""
    global missed
    print("\n%-24s%12s %8s" % (what, "median", "90 %"))
    median = {name: statistics.median(all_of) for name, all_of in numbers.items()}
    for name, all_of in numbers.items():
        row = "%-24s%9.2f %-3s%8.2f" % (name, median[name], unit,
                                        sorted(all_of)[int(0.9 * len(all_of))])
        for (limited, of, to), most in LIMITS.items():
            if (limited, of) == (what, name) and (to is None or to in median):
                ratio = median[of] / (median[to] if to else 1)
                missed += ratio > most
                row += "   %.2f %s(at most %g)" % (ratio, "of %s " % to if to else "", most)
                row += " MISSED" if ratio > most else ""
        print(row)


# ---- a run ----

def run_times(programs):
    times = {name: [] for name in programs}
    for number in range(ROUNDS + 5):
        for name in random.sample(list(programs), len(programs)):
            words = programs[name] + ["/bin/true"]
            before = time.monotonic_ns()
            ended(start(words), words)
            if number >= 5:  # the first rounds fill the caches
                times[name].append((time.monotonic_ns() - before) / 1e6)
    return times


def server_ms(server):
    """The processor time of the server's main thread, once it is idle."""
    now, last = 0, None
    while now != last:
        time.sleep(0.005)
        with open("/proc/%d/schedstat" % server, encoding="ascii") as file:
            now, last = int(file.read().split()[0]) / 1e6, now
    return now


def server_times(server, port, rlocks):
    """redis-py runs in one process, as the start of its interpreter evicts the server's data."""
    import redis
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) > 1:  # as on a host of its own
        os.sched_setaffinity(server, processors[:1])
        os.sched_setaffinity(0, processors[1:])

    def redis_py():
        client = redis.Redis("127.0.0.1", port=port)
        with client.lock("bench", timeout=300):
            ended(start(["/bin/true"]), ["true"])
        client.connection_pool.disconnect()

    def run(words):
        return lambda: ended(start(words), words)

    runs = {name: run(words + ["/bin/true"]) for name, words in rlocks.items()}
    runs["redis-py"] = redis_py
    times = {name: [] for name in runs}
    for number in range(ROUNDS + 5):
        for name in random.sample(list(runs), len(runs)):
            before = server_ms(server)
            runs[name]()
            if number >= 5:
                times[name].append(1000 * (server_ms(server) - before))
    os.sched_setaffinity(server, processors)
    os.sched_setaffinity(0, processors)
    return times


# ---- memory ----

def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def family(pid):
    children = " ".join(read("/proc/%d/task/%s/children" % (pid, task))
                        for task in os.listdir("/proc/%d/task" % pid)).split()
    return [pid] + [member for child in children for member in family(int(child))]


def pss_kB(pid, but=""):
    """PSS of a process and its descendants, without those whose program is `but`."""
    return sum(int(line.split()[1]) * 1.024 for member in family(pid)
               if read("/proc/%d/comm" % member).strip() != but
               for line in read("/proc/%d/smaps_rollup" % member).splitlines()
               if line.startswith("Pss:"))


def holder_kB(words):
    """With a TTL of 3 s rlock has renewed its lease once after 1.3 s."""
    pid = start(words[:1] + ["-t", "3"] + words[1:] + ["sleep", "3"])
    time.sleep(1.3)
    kB = pss_kB(pid, "sleep")
    ended(pid, words)
    return kB


# ---- waiters ----

def wait_until_asleep(pid, looks):
    """Returns when the process slept at so many looks in a row, 5 ms apart, without any work."""
    still, last = 0, None
    for _ in range(4000):
        now = [read("/proc/%d/%s" % (member, name)) for member in family(pid)
               for name in ("schedstat", "stat")]
        still = still + 1 if now == last and ") S" in now[1] else 0
        if still == looks:
            return
        last = now
        time.sleep(0.005)
    sys.exit("bench: a process does not wait")


def line(words):
    """Returns the times of all hand-overs in ms, how many are out of order, a waiter's kB."""
    log, gate = folder + "/turns", folder + "/gate"
    open(log, "w", encoding="ascii").close()
    if not os.path.exists(gate):
        os.mkfifo(gate)
    pids = []
    for number in range(WAITERS + 1):
        last = gate if number == 0 else str(TURN_MS)
        pids.append(start(words + [folder + "/turn", log, str(number), last]))
        wait_until_asleep(pids[-1], 4 if number else 20)
    kB = statistics.mean(pss_kB(pid) for pid in pids[1:])
    os.close(os.open(gate, os.O_WRONLY))
    for pid in pids:
        ended(pid, words)
    with open(log, "rb") as file:  # its rows are struct turn of turn.c
        turns = sorted(struct.iter_unpack("3q", file.read()), key=lambda turn: turn[1])
    handovers = [(turn[1] - before[2]) / 1e6 for before, turn in zip(turns, turns[1:])]
    if len(turns) != WAITERS + 1 or min(handovers) < 0:
        sys.exit("bench: a turn is missing, or two held the lock: " + words[0])
    return handovers, sum(a[0] > b[0] for a, b in zip(turns, turns[1:])), kB


def main():
    port, etcd = (20000 + (os.getpid() + i) % 10000 for i in (0, 5000))
    server = serve(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                    "--dir", folder], ["redis-cli", "-p", str(port), "PING"])
    for name, flags in (("turn", ["-static", "-nostartfiles", "-fno-builtin",
                                  "-fno-stack-protector"]), ("bare_line", ["-lhiredis"])):
        subprocess.run(["cc", "-std=gnu11", "-O2", "-o", "%s/%s" % (folder, name),
                        "%s/%s.c" % (HERE, name)] + flags, check=True)
    rlocks = {name: [file, "-u", "redis://127.0.0.1:%d" % port, "-k", "bench", "--"]
              for name, file in RLOCKS.items() if file and os.access(file, os.X_OK)}
    programs = {"flock": ["flock", folder + "/flock"], **rlocks}
    waiting = {**rlocks, "bare C": [folder + "/bare_line", str(port), "bench"]}
    if shutil.which("etcd") and shutil.which("etcdctl"):
        url = "http://127.0.0.1:%d" % etcd
        serve(["etcd", "--data-dir", folder + "/etcd", "--listen-client-urls", url,
               "--advertise-client-urls", url, "--listen-peer-urls", "http://127.0.0.1:0"],
              ["etcdctl", "--endpoints", url, "endpoint", "health"])
        waiting["etcdctl"] = ["etcdctl", "--endpoints", url, "lock", "bench"]
    print("%d rounds; %d times %d waiters; %d processors, load %s" %
          (ROUNDS, LINES, WAITERS, os.cpu_count(), read("/proc/loadavg").split()[0]))
    table("run", "ms", run_times(programs))
    table("server", "us", server_times(server, port, rlocks))
    table("holder", "kB", {name: [holder_kB(words)] for name, words in rlocks.items()})
    handovers, waiter = ({name: [] for name in waiting} for _ in range(2))
    disorder = dict.fromkeys(waiting, 0)
    for _ in range(LINES):
        for name in random.sample(list(waiting), len(waiting)):
            times, n, kB = line(waiting[name])
            handovers[name] += times
            waiter[name].append(kB)
            disorder[name] += n
    table("waiter", "kB", waiter)
    table("hand-over", "ms", handovers)
    print("\nserved behind a later one:", disorder)
    sys.exit(missed > 0)


try:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
finally:
    for process in started:
        process.terminate()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)
