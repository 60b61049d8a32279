#!/usr/bin/python3
"""fake: a server that follows a script instead of being Redis, or a proxy that disturbs one.

    fake.py SCRIPT      listens on a free port of 127.0.0.1, prints `READY PORT`, and follows the
                        lines of the file, one connection at a time:

    ACCEPT          close the connection that is open, if any, and accept the next one
    READ            read one command of any kind
    EXPECT WORD...  read one command that begins with these words, in any case
    SEND TEXT       send the text; \\r \\n \\\\ and \\xNN are understood
    BULK N          announce a bulk string of N bytes, and send none of them
    STREAM TEXT     send the text again and again until the peer closes, at most 256 MB
    STALL [MS]      send nothing until the peer closes, or until MS are over
    CLOCK           print CLOCK and the time on the clock that rlock uses, in ms
    CLOSE, RESET    close in an orderly way, or with a TCP reset
    LOOP            start the script again

If the peer closes while the script waits for a command, the script goes on at the next ACCEPT or
LOOP. CLIENT, CLUSTER, HELLO and TIME are answered as by a server without Cluster, and are no
commands of the script. A command that doesn't match EXPECT ends the server with status 1.

    fake.py --line PORT passes connections on to PORT of this host; prints `READY PORT CONTROL`. A
                        connection to CONTROL sends a line, and gets OK:

    delay MS                pass on what is read from now on MS later
    cut-after-request N     pass on the Nth request from now, and reset its connection instead of
                            passing on the reply. A request is all that a client sends between two
                            replies.

SPDX-License-Identifier: MIT
"""

import queue
import select
import signal
import socket
import struct
import sys
import threading
import time

OWN_REPLIES = {b"CLIENT": b"+OK\r\n", b"HELLO": b"*2\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n",
               b"CLUSTER": b"-ERR This instance has cluster support disabled\r\n",
               b"TIME": b"*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"}


def listen():
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    return listener, listener.getsockname()[1]


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def read_command(source):
    """Returns the words of a command; none: the peer has closed the connection."""
    words = []
    for _ in range(int(source.readline()[1:] or 0)):
        words.append(source.read(int(source.readline()[1:]) + 2)[:-2])
    return words


def next_command(peer, source):
    while True:
        words = read_command(source)
        if not words or words[0].upper() not in OWN_REPLIES:
            return words
        peer.sendall(OWN_REPLIES[words[0].upper()])


def close(peer):
    """Bytes that weren't read would make close(2) reset the connection."""
    peer.shutdown(socket.SHUT_WR)
    peer.settimeout(1)
    try:
        while peer.recv(65536):
            pass
    except OSError:
        pass
    peer.close()


def wait_for_end(peer, limit_ms):
    poll = select.poll()
    poll.register(peer, select.POLLRDHUP)
    poll.poll(limit_ms)


def stream(peer, text):
    for _ in range((256 << 20) // 65536):
        peer.sendall(text * (65536 // len(text)))


def serve(lines):
    listener, port = listen()
    print("READY", port, flush=True)
    peer = source = None
    at = 0
    while at < len(lines):
        step, _, rest = lines[at].partition(" ")
        text = rest.encode("latin-1").decode("unicode_escape").encode("latin-1")
        at += 1
        try:
            if step == "LOOP":
                at = 0
            elif step == "ACCEPT":
                if peer:
                    source.close()
                    peer.close()
                peer, _ = listener.accept()
                source = peer.makefile("rb")
            elif step in ("READ", "EXPECT"):
                words = next_command(peer, source)
                if not words:
                    raise ConnectionError
                wanted = text.lower().split()
                if step == "EXPECT" and [w.lower() for w in words][:len(wanted)] != wanted:
                    sys.exit("EXPECT %s: got %s" % (rest, words))
            elif step == "SEND":
                peer.sendall(text)
            elif step == "BULK":
                peer.sendall(b"$%d\r\n" % int(rest))
            elif step == "STREAM":
                stream(peer, text)
            elif step == "STALL":
                wait_for_end(peer, int(rest) if rest else None)
            elif step == "CLOCK":
                print("CLOCK", time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000, flush=True)
            elif step in ("CLOSE", "RESET"):
                source.close()
                (reset if step == "RESET" else close)(peer)
            elif step:
                sys.exit("no such step: " + step)
        except (ConnectionError, OSError):
            while at < len(lines) and lines[at] not in ("ACCEPT", "LOOP"):
                at += 1


# ---- the proxy ----

state = {"delay_s": 0.0, "cut_after": 0}


def send_when_due(due, sink):
    while item := due.get():
        time.sleep(max(0, item[0] - time.monotonic()))
        try:
            sink.sendall(item[1]) if item[1] else sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


def pass_on(source, sink, pair, is_up):
    """Passes on what one side sends; `pair` has what both directions of a connection know."""
    due = queue.SimpleQueue()
    threading.Thread(target=send_when_due, args=(due, sink), daemon=True).start()
    data = b"-"
    while data:
        try:
            data = source.recv(65536)
        except OSError:
            data = b""
        if data and is_up and not pair["asked"]:
            pair["asked"] = True
            state["cut_after"] -= 1
            pair["is_cut"] = state["cut_after"] == 0
        elif not is_up and pair["is_cut"]:
            reset(sink)
            return
        elif not is_up:
            pair["asked"] = False
        due.put((time.monotonic() + state["delay_s"], data))


def control(listener):
    while True:
        peer, _ = listener.accept()
        word, number = peer.makefile("r").readline().split()
        state[{"delay": "delay_s", "cut-after-request": "cut_after"}[word]] = \
            int(number) / (1000 if word == "delay" else 1)
        peer.sendall(b"OK\n")
        peer.close()


def proxy(upstream):
    listener, port = listen()
    commands, control_port = listen()
    threading.Thread(target=control, args=(commands,), daemon=True).start()
    print("READY", port, control_port, flush=True)
    while True:
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", upstream))
        pair = {"asked": False, "is_cut": False}
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for ends in ((client, server, pair, True), (server, client, pair, False)):
            threading.Thread(target=pass_on, args=ends, daemon=True).start()


signal.alarm(120)
if sys.argv[1] == "--line":
    proxy(int(sys.argv[2]))
with open(sys.argv[1], encoding="latin-1") as script:
    serve([line.rstrip("\n") for line in script])
