#!/usr/bin/python3
# soak: many clients on a few locks for hours, while servers, clients, networks and clocks fail.
#
#     tests/soak/soak.py --hours H [--seed S] [--clients N] BUILD-DIRECTORY
#
# Locks s1 to s4 are on one server, q1 to q4 on a quorum of three. A client runs job.c under one of
# these locks or two, in a mode and with options that are drawn by the seed. A holder and a waiter
# of the lock `long` run for as long as the quorum keeps its majority. Meanwhile the script kills
# and stops clients and guards; stops, cuts off and restarts servers; sets the clients' wall clock;
# changes the password: only faults under which the promises of rlock-locks(7) still hold.
#
# The script prints these violations as soon as it finds them:
#
#   overlap   two jobs ran at the same time under locks that exclude each other (job.c)
#   fence     a fence isn't greater than those of all jobs that had begun before this client started
#   verdict   a client that the script didn't harm ended with a status that no fault explains, or
#             with status 0 although its job didn't end
#   orphan    a process of a client outlives its rlock by more than promise P1 allows
#   stuck     for 5 s no client was granted a free lock, though one waits for it, and neither the
#             single server nor the quorum's majority was disturbed
#   expiry    a key has no expiry, or a lock's key is left after all clients have ended
#   growth    rlock or the servers use more memory, descriptors, keys or processes in the last
#             quarter of the run than in the first
#   server    a server has ended by itself
#
# BUILD-DIRECTORY/soak has the events, the servers' logs, and the output of clients that violated
# something, with the last writes of their servers. Root gets network and PID namespaces of its own,
# and a link to the servers that the script can cut; otherwise it cuts no link.
#
# SPDX-License-Identifier: MIT

import argparse
import collections
import ctypes
import errno
import glob
import heapq
import os
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time

import redis

TTL = 6.0
RECOVERY = TTL + 3  # seconds after a fault in which no grant is expected: dead leases must end
STUCK = 5.0
STALL = 1.0  # seconds: if this script didn't run for this long, the machine is overloaded
NO_PROCESS = os.strerror(errno.EAGAIN)  # the error of fork(2) on a machine with too many processes
HELPERS = 15.0  # rlock-release tries for 10 s, rlock-renewd notices a release after TTL / 3
HERE = os.path.dirname(os.path.abspath(__file__))

Sample = collections.namedtuple("Sample", "memory keys descriptors processes long_memory long_fds")


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("latin-1")
    except OSError:
        return ""


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Server:
    """A redis-server with an append-only file, so that it keeps each grant when it is killed."""

    def __init__(self, soak, name, host, port):
        self.soak, self.name, self.host, self.port = soak, name, host, port
        self.dir = f"{soak.dir}/{name}"
        self.process = None
        os.mkdir(self.dir)
        with open(self.acl(), "w") as file:
            file.write(f"user default on nopass ~* &* +@all\n"
                       f"user soak on >{soak.password} ~* &* +@all\n")

    def acl(self):
        return f"{self.dir}/users.acl"

    def start(self):
        program = shutil.which("redis-server") or "valkey-server"
        with open(f"{self.dir}/log", "a") as log:
            self.process = subprocess.Popen(
                self.soak.network.inside([
                    program, "--bind", self.host, "--port", str(self.port), "--protected-mode",
                    "no", "--unixsocket", f"{self.dir}/socket", "--dir", self.dir, "--save", "",
                    "--appendonly", "yes", "--appendfsync", "always", "--aclfile", self.acl(),
                    "--auto-aof-rewrite-percentage", "0", "--aof-timestamp-enabled", "yes"]),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def forget(self):
        shutil.rmtree(f"{self.dir}/appendonlydir", ignore_errors=True)

    def save_writes(self, path):
        """Copies the last writes, with the times that the server notes among them."""
        for name in glob.glob(f"{self.dir}/appendonlydir/*.incr.aof"):
            with open(name, "rb") as log, open(path, "wb") as copy:
                log.seek(-min(os.path.getsize(name), 2 << 20), os.SEEK_END)
                shutil.copyfileobj(log, copy)

    def ask(self, *words):
        """The reply to a command; None if the server did not answer, or not without an error."""
        try:
            with redis.Redis(unix_socket_path=f"{self.dir}/socket", socket_timeout=5,
                             encoding="latin-1", decode_responses=True) as connection:
                connection.response_callbacks.clear()
                return connection.execute_command(*words)
        except redis.RedisError:
            return None

    def url(self):
        return f"redis://soak@{self.host}:{self.port}"


class Network:
    """The link to the servers. If root runs the script, they have a network namespace of their
    own, and the link can be cut."""

    def __init__(self):
        self.pid = None

    def set_up(self, count):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == own:
            time.sleep(0.01)
        self.pid = str(self.holder.pid)
        run = lambda text: subprocess.run(text.split(), check=True)
        run("ip link set lo up")
        run(f"ip link add soak0 type veth peer name soak1 netns {self.pid}")
        run("ip address add 10.77.0.1/24 dev soak0")
        run("ip link set soak0 up")
        for number in range(count):
            self.ip(f"address add {self.address(number)}/24 dev soak1")
        self.ip("link set soak1 up")
        self.ip("link set lo up")
        # Rule 0 delivers packets to local sockets. Move it to preference 9, so that the rule by
        # which cut() drops packets comes first.
        self.ip("rule add pref 9 lookup local")
        self.ip("rule del pref 0")

    def address(self, number):
        return f"10.77.0.{11 + number}" if self.pid else "127.0.0.1"

    def inside(self, words):
        return ["nsenter", "-t", self.pid, "--net", *words] if self.pid else words

    def ip(self, text):
        subprocess.run(self.inside(["ip", *text.split()]), check=True)

    def cut(self, address, ways):
        for way in ways:
            self.ip(f"rule add pref 1 {way} {address} blackhole")

    def heal(self, address, ways):
        for way in ways:
            self.ip(f"rule del pref 1 {way} {address} blackhole")
        subprocess.run("ip neighbour flush dev soak0".split(), check=True)


class Deployment:
    """One server, or the members of a quorum, and when the script disturbed them."""

    def __init__(self, servers, locks):
        self.servers, self.locks = servers, locks
        self.faults = []  # [begin, end] of each fault that a client may notice; end None: it lasts
        self.busy_until = 0.0  # until this time the script causes no other fault here

    def was_broken_since(self, begin):
        return any(end is None or end > begin - RECOVERY for _, end in self.faults)


class Lock:
    def __init__(self, name, deployment, directory):
        self.name, self.deployment, self.dir = name, deployment, directory
        self.served_at = now()  # when a client last began to hold the lock, or ended
        self.disturbed_at = now()  # when a client of the lock was last harmed, or lost the lock
        self.max_fence = 0
        self.fences = set()
        self.grants = 0
        os.mkdir(directory)


class Client:
    def __init__(self, number, locks):
        self.number, self.locks = number, locks
        self.waits = True
        self.may_be_busy = False  # has -n, -w or --queue newest, so it may end with status 75
        self.may_be_done = False  # has --once, so it may end with status 0 and without a job
        self.is_bound = False  # is a shell that runs acquire --bind-pid
        self.is_shell = False  # is a shell, with this pid, that runs acquire, renew and release
        self.is_harmed = False
        self.began_at = self.ended_at = self.gone_at = None
        self.started_at = now()
        self.fences_before = {lock: lock.max_fence for lock in locks}
        self.pid = None
        self.words = []


class Soak:
    def __init__(self, options):
        self.chance = random.Random(options.seed)
        self.hours, self.wanted = options.hours, options.clients
        build = os.path.abspath(options.build)
        self.rlock, self.job = f"{build}/rlock", f"{build}/soak/job"
        self.shim = f"{build}/tools/clockshim.so"
        self.dir = f"{build}/soak/run"
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(f"{self.dir}/said")
        self.password = "first"
        self.write_password()
        self.clocks = []
        for number in range(4):
            self.clocks.append(f"{self.dir}/clock{number}")
            self.set_clock(self.clocks[-1], 0)
        self.log_path = f"{self.dir}/jobs.log"
        open(self.log_path, "w").close()
        self.log = open(self.log_path)
        self.half_line = ""
        self.events = open(f"{self.dir}/events.log", "w")
        self.network = Network()
        self.clients = {}  # each client by its number, until all its processes have ended
        self.by_pid = {}
        self.long_clients = [None, None]
        self.count = collections.Counter()
        self.violations = collections.Counter()
        self.timers = []
        self.serial = 0
        self.samples = []
        self.is_stopping = False
        self.stalls = collections.deque()
        threading.Thread(target=self.watch_stalls, daemon=True).start()

    # ---- the log, timers, the password and clocks ------------------------------------------------

    def note(self, text):
        self.events.write(f"{now():.3f} {text}\n")
        self.events.flush()

    def violation(self, kind, text):
        self.violations[kind] += 1
        self.note(f"VIOLATION {kind}: {text}")
        print(f"not ok - {kind} at {now():.3f}: {text}", flush=True)

    def after(self, seconds, what, *words):
        self.serial += 1
        heapq.heappush(self.timers, (now() + seconds, self.serial, what, words))

    def write_password(self):
        path = f"{self.dir}/password"
        with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(self.password + "\n")
        os.rename(path + ".new", path)

    @staticmethod
    def set_clock(path, microseconds):
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("q", microseconds), 0)
        os.close(fd)

    # ---- starting and watching clients -----------------------------------------------------------

    def environment(self, client):
        variables = {
            "PATH": os.environ["PATH"], "HOME": self.dir, "SOAK_CLIENT": str(client.number),
            "RLOCK_URL": " ".join(s.url() for s in client.locks[0].deployment.servers),
            "RLOCK_PASSWORD_FILE": f"{self.dir}/password", "RLOCK_TTL": f"{TTL:g}s"}
        if self.chance.random() < 0.5:
            variables |= {"LD_PRELOAD": self.shim, "CLOCKSHIM": self.chance.choice(self.clocks)}
        return variables

    def draw_client(self):
        chance = self.chance
        deployment = chance.choice([self.single, self.quorum])
        locks = [chance.choice(deployment.locks)]
        if locks[0] in deployment.locks[:2] and chance.random() < 0.1:
            locks = chance.sample(deployment.locks[:2], 2)
        client = self.new_client(locks)
        kind = chance.random()
        if kind < 0.14:
            self.draw_shell(client, kind >= 0.08)
        else:
            self.draw_run(client)
        self.start(client)

    def new_client(self, locks):
        self.serial += 1
        return Client(self.serial, locks)

    def job_words(self, client, mode, milliseconds, children):
        return [self.job, self.log_path, str(client.number), mode, str(milliseconds),
                str(children), *(lock.dir for lock in client.locks)]

    @staticmethod
    def key_words(client):
        return [word for lock in client.locks for word in ("-k", lock.name)]

    def draw_wait(self, client):
        """Draws whether, and for how long, the client waits; returns rlock's options for that."""
        chance = self.chance.random()
        if chance < 0.10:
            client.waits, client.may_be_busy = False, True
            return ["-n"]
        if chance < 0.20:
            client.may_be_busy = True
            return [self.chance.choice(["-w", "--timeout"]), self.chance.choice(["2", "8"])]
        if chance < 0.30:
            return ["--queue", "none"]
        if chance < 0.35:
            client.may_be_busy = True
            return ["--queue", "newest"]
        return []

    def draw_run(self, client):
        chance = self.chance
        words, mode = self.draw_wait(client), "x"
        may_have_slots = client.locks[0].deployment is self.single and len(client.locks) == 1
        kind = chance.random()
        if kind < 0.2:
            words, mode = words + ["-s"], "s"
        elif kind < 0.3 and may_have_slots:
            words, mode = words + ["--slots", "3"], "n"
        elif kind < 0.4 and len(client.locks) == 1:
            client.may_be_done = True
            words += ["--once", "1s"]
        elif kind < 0.45:
            words += ["--min-hold", "300ms"]
        if chance.random() < 0.25:
            words += ["--on-lost", "pause"]
        if chance.random() < 0.1:
            words += ["--history", "10"]
        if chance.random() < 0.1:
            words += ["--wait-all"]
        milliseconds = chance.randint(3000, 12000) if chance.random() < 0.06 \
            else chance.randint(20, 500)
        client.words = [self.rlock, "-q", *self.key_words(client), *words, "--",
                        *self.job_words(client, mode, milliseconds, int(chance.random() < 0.3))]

    # Without --bind-pid nothing ends the job when the lease ends. So the job must be much shorter
    # than the lease, to end in time even if a loaded machine starts it late.
    def draw_shell(self, client, is_bound):
        client.is_shell, client.is_bound = True, is_bound
        milliseconds = self.chance.randint(20, 4000 if is_bound else 300)
        job = " ".join(self.job_words(client, "x", milliseconds, 0))
        keys = " ".join(self.key_words(client))
        then = "" if is_bound else f"{self.rlock} renew -q {keys} && {job} &&"
        client.words = ["sh", "-c", f"""
            got=$({self.rlock} acquire -q --json {keys} {"--bind-pid $$" * is_bound}) || exit
            RLOCK_TOKEN=${{got#*'"token":"'}}; export RLOCK_TOKEN=${{RLOCK_TOKEN%%'"'*}}
            RLOCK_FENCE=${{got#*'"fence":'}}; export RLOCK_FENCE=${{RLOCK_FENCE%%[!0-9]*}}
            {job} && {then} {self.rlock} release -q {keys}"""]

    def start(self, client):
        with open(f"{self.dir}/said/{client.number}", "w") as said:
            client.process = subprocess.Popen(
                client.words, env=self.environment(client), stdin=subprocess.DEVNULL, stdout=said,
                stderr=said, cwd=self.dir)
        client.pid = client.process.pid
        self.clients[client.number] = self.by_pid[client.pid] = client
        self.count["clients"] += 1
        names = " ".join(lock.name for lock in client.locks)
        self.note(f"start {client.number} on {names}: {' '.join(client.words[1:])!r}")

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            client = self.by_pid.pop(pid, None)
            if client is not None:
                client.process.returncode = os.waitstatus_to_exitcode(status)
                client.gone_at = now()
            elif any(pid == server.process.pid for server in self.servers):
                self.violation("server", f"pid {pid} has ended by itself: see {self.dir}/*/log")
            # Otherwise a descendant of a client has ended, which this subreaper had to reap.

    def judge(self, client):
        """Reports a client whose exit status no fault explains. Its job's log must be read."""
        status = client.process.returncode
        is_broken = client.locks[0].deployment.was_broken_since(client.started_at)
        self.count[f"status {status}"] += 1
        self.note(f"end {client.number}: status {status}")
        why = None
        if status == 0 and client.ended_at is None and not client.may_be_done:
            why = "status 0, although its job has not ended"
        elif client.is_harmed or status == 0:
            pass
        elif status == 75 and client.may_be_busy:
            pass
        elif status == 71 and NO_PROCESS in self.said(client):
            self.count["no process"] += 1
        elif status == 69 and client.may_be_busy and "servers were restarted" in self.said(client):
            # The grant of a member that restarted doesn't count for a TTL, and another client had,
            # or asked for, one of the other two members.
            self.count["restarted member"] += 1
        elif is_broken and (status in (69, 76) or (client.is_shell and status in (-15, -9, 143))):
            pass
        else:
            why = f"status {status}"
        for lock in client.locks:
            if client.is_harmed or status not in (0, 75):
                lock.disturbed_at = now()
            if client.began_at is not None:
                lock.served_at = now()
        if why is not None:
            for server in client.locks[0].deployment.servers:
                server.save_writes(f"{self.dir}/said/{client.number}.{server.name}")
            self.violation("verdict", f"client {client.number}: {why}, after "
                           f"{client.gone_at - client.started_at:.2f} s: "
                           f"{' '.join(client.words[1:])!r} said {self.said(client)!r}")
        else:
            os.unlink(f"{self.dir}/said/{client.number}")

    def said(self, client):
        return read(f"{self.dir}/said/{client.number}")

    def read_jobs(self):
        *lines, self.half_line = (self.half_line + self.log.read()).split("\n")
        for line in lines:
            words = line.split()
            client = self.clients.get(int(words[1]))
            if words[0] == "overlap":
                self.violation("overlap", f"{line}; {self.describe(words[1])}; "
                               f"{self.describe(words[2].split('.')[2])}")
            elif client is None:
                self.violation("orphan", f"a job of client {words[1]}, which has ended: {line}")
            elif words[0] == "begin":
                self.begin(client, int(words[2]), int(words[4]) / 1e6)
            elif words[0] == "end":
                client.ended_at = int(words[2]) / 1e6

    def describe(self, number):
        client = self.clients.get(int(number))
        if client is None:
            return f"client {number} has ended"
        return f"client {number}{' (harmed)' * client.is_harmed}: {' '.join(client.words[1:])!r}"

    def begin(self, client, fence, at):
        client.ended_at = None
        is_second = client.began_at is not None  # a shell runs two jobs under one lease
        client.began_at = at
        self.count["jobs"] += 1
        for lock in client.locks:
            lock.served_at = now()
            if is_second:
                continue
            lock.grants += 1
            if fence in lock.fences or fence <= client.fences_before[lock]:
                self.violation("fence", f"{fence} of client {client.number} on {lock.name}; before "
                               f"it started there was {client.fences_before[lock]}")
            lock.fences.add(fence)
            lock.max_fence = max(lock.max_fence, fence)

    # Finds the processes of each client: they have the client's number in their environment.
    def find_processes(self):
        found = collections.defaultdict(list)
        for name in os.listdir("/proc"):
            if name.isdigit():
                text = read(f"/proc/{name}/environ")
                number = re.search(r"(?:^|\0)SOAK_CLIENT=(\d+)\0", text)
                if number:
                    found[int(number[1])].append(int(name))
        return found

    def check_processes(self):
        found = self.find_processes()
        self.processes = sum(len(pids) for pids in found.values())
        for number, pids in found.items():
            client = self.clients.get(number)
            if client is None or client.gone_at is None:
                continue
            age = now() - client.gone_at
            for pid in pids:
                name = read(f"/proc/{pid}/comm").strip()
                state = read(f"/proc/{pid}/stat").rpartition(")")[2][1:2]
                if state not in ("", "Z", "X") and age > (
                        HELPERS if name.startswith("rlock") else TTL):
                    self.violation("orphan", f"{name}, pid {pid}, state {state}, {age:.1f} s after "
                                   f"the end of {self.describe(number)}")
                    send(pid, signal.SIGKILL)
        for number, client in list(self.clients.items()):
            if client.gone_at is not None and number not in found and now() - client.gone_at > 1:
                del self.clients[number]

    def keep_long_clients(self):
        for place, client in enumerate(self.long_clients):
            if client is None or client.gone_at is not None:
                client = self.new_client([self.long])
                client.words = [self.rlock, "-q", "-k", "long", "--on-lost", "pause", "--",
                                *self.job_words(client, "x", 10 ** 9, 1)]
                self.start(client)
                self.long_clients[place] = client
                self.count["long clients"] += 1
                return  # a later call starts the other client, which then waits for the lock

    # ---- causing faults --------------------------------------------------------------------------

    def harm_client(self):
        self.after(self.chance.uniform(1, 5), self.harm_client)
        candidates = [c for c in self.clients.values() if c.gone_at is None and not c.is_harmed and
                      c not in self.long_clients and (c.is_bound or not c.is_shell)]
        if not candidates:
            return
        client = self.chance.choice(candidates)
        pids = self.helpers_of(client)
        if not pids:
            return
        pid, name = self.chance.choice(pids)
        client.is_harmed = True
        for lock in client.locks:
            lock.disturbed_at = now()
        number = self.chance.choice([signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM]
                                    if name == "rlock" else [signal.SIGKILL, signal.SIGSTOP])
        seconds = self.chance.uniform(0.1, 1.5 * TTL)
        self.note(f"{number.name} to {name} {pid} of client {client.number}")
        self.count[f"{number.name} {name}"] += send(pid, number)
        if number == signal.SIGSTOP:
            self.after(seconds, self.go_on, client, pid)

    def go_on(self, client, pid):
        send(pid, signal.SIGCONT)
        for lock in client.locks:
            lock.disturbed_at = now()

    # Finds the processes of a client that the script may harm: rlock and its guard; for a bound
    # shell the two processes that renew its lease and end the shell.
    def helpers_of(self, client):
        found = [] if client.is_shell else [(client.pid, "rlock")]
        for pid in self.find_processes().get(client.number, []):
            name = read(f"/proc/{pid}/comm").strip()
            if name in ("rlock-guard", "rlock-renewd"):
                found.append((pid, name))
        return found

    def harm_servers(self, deployment):
        self.after(self.chance.uniform(15, 40), self.harm_servers, deployment)
        if now() < deployment.busy_until:
            return
        chance = self.chance
        count = 2 if deployment is self.quorum and chance.random() < 0.15 else 1
        servers = chance.sample(deployment.servers, count)
        kinds = ["stop", "cut"] if self.network.pid else ["stop"]
        if count == 1:
            kinds += ["restart", "restart empty"]
        kind = chance.choice(kinds)
        seconds = chance.choice([chance.uniform(0.2, 2), chance.uniform(2, 10)])
        if kind == "restart empty" and deployment is self.single:
            seconds = TTL + 1
        names = " ".join(server.name for server in servers)
        self.note(f"{kind} {names} for {seconds:.1f} s")
        self.count[kind] += 1
        fault = [now(), None]
        # If one member of the quorum fails, clients must not notice: it is no fault for them.
        if deployment is self.single or count == 2:
            deployment.faults.append(fault)
        deployment.busy_until = now() + seconds + RECOVERY
        ways = chance.choice([["to"], ["from"], ["to", "from"]])
        for server in servers:
            if kind == "stop":
                server.process.send_signal(signal.SIGSTOP)
            elif kind == "cut":
                self.network.cut(server.host, ways)
            else:
                server.kill()
            if kind == "restart empty":
                server.forget()
        self.after(seconds, self.mend_servers, servers, kind, ways, fault)

    def mend_servers(self, servers, kind, ways, fault):
        self.note(f"mended: {kind} {' '.join(server.name for server in servers)}")
        for server in servers:
            if kind == "stop":
                server.process.send_signal(signal.SIGCONT)
            elif kind == "cut":
                self.network.heal(server.host, ways)
            else:
                server.start()
        fault[1] = now()

    def step_clock(self):
        self.after(self.chance.uniform(3, 10), self.step_clock)
        step = self.chance.choice([0, 1, -1, 60, -3600, 86400, -86400])
        self.set_clock(self.chance.choice(self.clocks), int(step * 1e6))
        self.count["clock steps"] += 1

    # Changes the password as administrators do: for 1.5 s the servers accept both passwords, so
    # that clients can read the new one. Then, half of the times, they close all connections.
    def rotate_password(self):
        self.after(self.chance.uniform(15, 30), self.rotate_password)
        if any(now() < d.busy_until - RECOVERY + 3 for d in (self.single, self.quorum)):
            return
        old, self.password = self.password, f"password{self.serial}"
        for server in self.servers:
            server.ask("acl", "setuser", "soak", ">" + self.password)
        self.write_password()
        for deployment in (self.single, self.quorum):
            deployment.busy_until = max(deployment.busy_until, now() + 3)
        self.note("password changed")
        self.count["passwords"] += 1
        self.after(1.5, self.end_password, old, self.chance.random() < 0.5)

    def end_password(self, old, closes_all):
        for server in self.servers:
            server.ask("acl", "setuser", "soak", "<" + old)
            server.ask("acl", "save")
            if closes_all:
                server.ask("client", "kill", "user", "soak", "skipme", "yes")
        self.note(f"old password removed{', connections closed' * closes_all}")

    # Notes when the machine ran no process for a second: rlock can't renew a lease then, so it is
    # a fault that clients may notice. This thread watches itself, turn() watches the main loop.
    def watch_stalls(self):
        while True:
            before = now()
            time.sleep(0.1)
            if now() - before > STALL:
                self.stalls.append((before, now()))

    def note_stalls(self):
        while self.stalls:
            begin, end = self.stalls.popleft()
            self.note(f"the machine stood still for {end - begin:.1f} s, load {os.getloadavg()[0]}")
            self.count["stalls"] += 1
            for deployment in (self.single, self.quorum):
                deployment.faults.append([begin, end])

    # ---- checking the promises -------------------------------------------------------------------

    def check_stuck(self):
        self.after(1, self.check_stuck)
        if now() - self.turned_at > STALL / 2:
            return  # the last turn took long: jobs may have begun that aren't read from the log yet
        for lock in self.locks:
            alive = [c for c in self.clients.values() if c.gone_at is None and lock in c.locks]
            waiters = [c for c in alive if c.waits and c.began_at is None and not c.is_harmed]
            if not waiters or any(c.began_at is not None for c in alive) or any(
                    len(c.locks) > 1 for c in alive):
                continue
            if lock.deployment.was_broken_since(now()) or any(
                    len(c.locks) > 1 for c in self.clients.values() if lock in c.locks):
                continue
            since = max(lock.served_at, lock.disturbed_at + RECOVERY,
                        min(c.started_at for c in waiters))
            if now() - since > STUCK:
                keys = [(server.name, server.ask("get", lock.name), server.ask("pttl", lock.name))
                        for server in lock.deployment.servers if server in self.up()]
                self.violation("stuck", f"{lock.name}: no grant for {now() - since:.1f} s; clients "
                               f"{[c.number for c in waiters]} wait; the key, and its TTL: {keys}")
                lock.served_at = now()

    def up(self):
        """Returns the servers that can reply: no fault stops them, and they have loaded their
        data."""
        return [s for d in (self.single, self.quorum) if now() > d.busy_until - RECOVERY + 1
                for s in d.servers]

    def check_keys(self):
        self.after(10, self.check_keys)
        for server in self.up():
            endless = server.ask("eval", "local found = {} for _, key in ipairs(redis.call('keys',"
                                 " '*')) do if redis.call('pttl', key) == -1 then"
                                 " found[#found + 1] = key end end return found", "0")
            if isinstance(endless, list) and endless:
                self.violation("expiry", f"{server.name}: without an expiry: {endless}")

    def take_sample(self):
        self.after(5, self.take_sample)
        if len(self.up()) < len(self.servers):
            return
        memory = keys = descriptors = 0
        for server in self.servers:
            info = re.search(r"used_memory:(\d+)", server.ask("info", "memory") or "")
            size = server.ask("dbsize")
            if info is None or not isinstance(size, int):
                return
            memory += int(info[1])
            keys += size
            descriptors += len(os.listdir(f"/proc/{server.process.pid}/fd"))
        long_memory = long_fds = 0
        for client in self.long_clients:
            if client is not None and client.gone_at is None:
                text = read(f"/proc/{client.pid}/statm").split()
                long_memory += int(text[1]) * 4096 if text else 0
                long_fds += len(os.listdir(f"/proc/{client.pid}/fd"))
        self.samples.append(Sample(memory, keys, descriptors, self.processes, long_memory,
                                   long_fds))

    def check_growth(self):
        quarter = len(self.samples) // 4
        if quarter < 3:
            print("# growth: too few samples to compare")
            return
        slack = Sample(4 << 20, 60, 60, 60, 1 << 20, 10)
        for name, allowed, first, last in zip(
                Sample._fields, slack, zip(*self.samples[:quarter]), zip(*self.samples[-quarter:])):
            before, after = statistics.median(first), statistics.median(last)
            print(f"# {name}: {before:.0f} in the first quarter, {after:.0f} in the last")
            if after > before * 1.25 + allowed:
                self.violation("growth", f"{name}: from {before:.0f} to {after:.0f}")

    def report(self):
        self.after(60, self.report)
        self.print_counts(f"{(now() - self.begun_at) / 60:.0f} min:")

    def print_counts(self, head):
        counts = ", ".join(f"{n} {name}" for name, n in sorted(self.count.items()))
        alive = sum(c.gone_at is None for c in self.clients.values())
        print(f"# {head} {alive} clients alive; {counts}; "
              f"{sum(self.violations.values())} violations", flush=True)

    # ---- the run ---------------------------------------------------------------------------------

    def start_servers(self):
        if os.geteuid() == 0:
            self.network.set_up(4)
        else:
            print("# not root: no link is cut")
        base = self.chance.randint(20000, 29000)
        self.servers = [Server(self, name, self.network.address(i), base + i)
                        for i, name in enumerate(["single", "member1", "member2", "member3"])]
        for server in self.servers:
            server.start()
        self.single = Deployment(self.servers[:1], [])
        self.quorum = Deployment(self.servers[1:], [])
        for prefix, deployment in (("s", self.single), ("q", self.quorum)):
            deployment.locks += [Lock(f"{prefix}{n}", deployment, f"{self.dir}/lock-{prefix}{n}")
                                 for n in range(1, 5)]
        self.locks = self.single.locks + self.quorum.locks
        self.long = Lock("long", self.quorum, f"{self.dir}/lock-long")
        time.sleep(RECOVERY)  # rlock doesn't count the votes of members that have just started
        for lock in self.locks:
            lock.disturbed_at = now()

    def turn(self):
        alive = [c for c in self.clients.values() if c.gone_at is None]
        if now() - self.turned_at > STALL:
            self.stalls.append((self.turned_at, now()))
        self.turned_at = now()
        self.reap()
        self.read_jobs()
        self.note_stalls()
        for client in alive:
            if client.gone_at is not None:
                self.judge(client)
        while self.timers and self.timers[0][0] <= now():
            _, _, what, words = heapq.heappop(self.timers)
            what(*words)

    def run(self):
        self.start_servers()
        self.begun_at = now()
        self.turned_at = now()
        self.processes = 0
        for what in (self.harm_client, self.step_clock, self.rotate_password, self.check_stuck,
                     self.check_keys, self.take_sample):
            self.after(5, what)
        for deployment in (self.single, self.quorum):
            self.after(10, self.harm_servers, deployment)
        self.after(60, self.report)
        next_check = 0.0
        while now() < self.begun_at + self.hours * 3600 and not self.is_stopping:
            self.turn()
            alive = sum(c.gone_at is None for c in self.clients.values())
            try:
                for _ in range(min(3, self.wanted - alive)):
                    self.draw_client()
            except BlockingIOError:
                self.count["no process"] += 1
            if now() > next_check:
                next_check = now() + 2
                self.check_processes()
                self.keep_long_clients()
            time.sleep(0.03)
        self.finish()

    # Starts no clients and faults any more, mends all faults, and waits until the clients end by
    # themselves. Afterwards no lock may be left on the servers.
    def finish(self):
        endings = [t for t in self.timers if t[2] in (self.mend_servers, self.go_on,
                                                      self.end_password)]
        for _, _, what, words in sorted(endings, key=lambda t: t[:2]):
            what(*words)
        self.timers = []
        for client in self.long_clients:
            if client is not None and client.gone_at is None:
                client.is_harmed = True
                send(client.pid, signal.SIGTERM)
        limit = now() + 60
        while self.clients and now() < limit:
            self.turn()
            self.check_processes()
            time.sleep(0.2)
        for client in self.clients.values():
            self.violation("stuck", f"60 s after the last fault: {self.describe(client.number)}")
        time.sleep(TTL)
        for server in self.servers:
            # The queue's keys may stay: if waiters were killed, the queue expires only after 40 s.
            keys = [key for key in server.ask("keys", "*") or []
                    if not re.search(r":rlock:(fence$|history$|queue$|waiters$|wake:)", key)]
            if keys:
                self.violation("expiry", f"{server.name}: still there: {keys}")
        self.check_growth()
        self.print_counts("all:")
        print("# grants: " + ", ".join(f"{lock.name} {lock.grants}"
                                       for lock in self.locks + [self.long]))
        print("# violations: " + (", ".join(f"{n} {kind}" for kind, n in self.violations.items())
                                  or "none"), flush=True)
        for server in self.servers:
            server.process.kill()
        if self.network.pid:
            self.network.holder.kill()

    def stop(self, *_):
        self.is_stopping = True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=float, default=1)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("build")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int(time.time())
    if os.geteuid() == 0 and "SOAK_NAMESPACES" not in os.environ:
        os.environ["SOAK_NAMESPACES"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                              sys.executable, *sys.argv, "--seed", str(options.seed)])
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    print(f"# seed {options.seed}, {options.hours:g} hours, {options.clients} clients", flush=True)
    soak = Soak(options)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, soak.stop)
    soak.run()
    sys.exit(bool(soak.violations))


main()
