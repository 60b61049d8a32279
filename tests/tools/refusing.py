#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""refusing: a proxy in front of a real server that refuses what rented servers refuse.

usage: refusing.py UPSTREAM_PORT [RULE[=N]...]

Listens on a free port of 127.0.0.1, prints `READY PORT`, and passes each request on to
UPSTREAM_PORT, except those that a RULE refuses. The texts of the refusals are those of the services
that each rule names. docs/servers.md says where each text is documented.

  no-keyless      scripts without keys
  literal-keys    scripts in which a command's key isn't written as KEYS[n]
  declared-keys   scripts that touch a key that isn't in KEYS
  no-eval         scripts
  no-blocking     BLPOP
  no-info         INFO
  no-script-load  SCRIPT
  no-config       CONFIG
  no-client       CLIENT
  acl-denied      scripts and all commands that write
  idle-cut=N      connections on which nothing was sent for N seconds
  reset=N         each N-th reply: half of it is sent, then the connection is reset

Each refusal is printed as a line `REFUSED RULE COMMAND`. Ends by SIGALRM after 120 s.
"""

import asyncio
import hashlib
import re
import signal
import socket
import struct
import sys

WRITES = 'set del incr pexpire zadd zrem hset hdel rpush ltrim multi blpop'.split()
SCRIPTS = ('eval', 'evalsha')
KEYLESS = ('TIME', 'SCAN', 'ACL', 'PING')  # commands that a script calls without a key

# A server that runs scripts with declared keys only: `redis` of the script is this one, which looks
# at the keys before the server gets the command. DEL and EXISTS take several keys.
DECLARED = '''
local real, declared = redis, {}
for _, key in ipairs(KEYS) do declared[key] = true end
local function undeclared(command, ...)
  local upper, keys = string.upper(command), {...}
  if upper == 'TIME' or upper == 'SCAN' or upper == 'ACL' then return nil end
  local last = (upper == 'DEL' or upper == 'EXISTS') and #keys or 1
  for i = 1, last do
    if not declared[keys[i]] then
      return 'ERR script tried accessing undeclared key, key: ' .. tostring(keys[i])
    end
  end
end
local redis = setmetatable({
  call = function(...)
    local why = undeclared(...)
    if why then error(why, 0) end
    return real.call(...)
  end,
  pcall = function(...)
    local why = undeclared(...)
    return why and {err = why} or real.pcall(...)
  end}, {__index = real})
'''


def has_literal_keys(text):
    """Is the key of each command in this script written as KEYS[n]?"""
    calls = re.findall(r"redis\.p?call\(\s*'(\w+)'\s*,?\s*([^,)]*)", text)
    n_calls = len(re.findall(r'redis\.p?call\b', text))
    return len(calls) == n_calls and all(
        name in KEYLESS or re.match(r'KEYS\[', key) for name, key in calls)


class Rules:
    """What is refused, and the scripts that were sent so far."""

    def __init__(self, words):
        names = [word.split('=') for word in words]
        self.on = {name[0]: float(name[1]) if len(name) > 1 else 0 for name in names}
        self.scripts = {}
        self.replies = 0

    def look(self, words):
        """Returns the rule that refuses these words and its text; (None, None): no rule does."""
        name = words[0].decode().lower()
        is_script = name in SCRIPTS
        n_keys = words[2] if is_script and len(words) > 2 else b'1'
        if is_script and 'no-eval' in self.on:
            # ApsaraDB for Redis (Alibaba), "Usage of Lua scripts": instances of old minor versions
            return 'no-eval', 'ERR command %s not support for normal user' % name
        if is_script and 'no-keyless' in self.on and n_keys == b'0':
            # Amazon ElastiCache serverless, "Lua scripts"
            return 'no-keyless', 'ERR Lua scripts without any input keys are not supported'
        if is_script and 'literal-keys' in self.on and n_keys == b'0':
            # ApsaraDB for Redis and Tair, clusters behind a proxy: "Limits on Lua scripts"
            return 'literal-keys', ("ERR for redis cluster, eval/evalsha number of keys can't be "
                                    "negative or zero")
        if name == 'eval' and 'literal-keys' in self.on and not has_literal_keys(words[1].decode()):
            # the same page
            return 'literal-keys', ('ERR bad lua script for redis cluster, all the keys that the '
                                    'script uses should be passed using the KEYS array')
        if name == 'evalsha' and ('literal-keys' in self.on or 'declared-keys' in self.on) and \
                words[1] not in self.scripts:
            return 'not loaded', 'NOSCRIPT No matching script. Please use EVAL.'
        if name == 'blpop' and 'no-blocking' in self.on:
            # Envoy, redis_proxy, command_splitter_impl.cc: of all commands that it doesn't list
            return 'no-blocking', "unsupported command 'BLPOP'"
        if name == 'info' and 'no-info' in self.on:
            # Envoy, as above
            return 'no-info', "unsupported command 'INFO'"
        if name == 'script' and 'no-script-load' in self.on:
            # OCI Cache, sharded ("Unsupported Valkey and Redis Commands"), in the words of Redis
            return 'no-script-load', "ERR unknown command 'SCRIPT', with args beginning with: "
        if name == 'config' and 'no-config' in self.on:
            # ElastiCache, MemoryDB, Azure and Redis Cloud rename it: the words of Redis
            return 'no-config', "ERR unknown command 'CONFIG', with args beginning with: "
        if name == 'client' and 'no-client' in self.on:
            # twemproxy, notes/redis.md, in the words of Redis
            return 'no-client', "ERR unknown command 'CLIENT', with args beginning with: "
        if (is_script or name in WRITES) and 'acl-denied' in self.on:
            # Redis 7's NOPERM for a user who may only read, as Azure's "Data Reader"
            return 'acl-denied', ("NOPERM User reader has no permissions to run the '%s' command"
                                  % name)
        return None, None

    def rewrite(self, words):
        """Returns the request as the server gets it; notes scripts that were sent whole."""
        name = words[0].decode().lower()
        if name == 'eval':
            self.scripts[hashlib.sha1(words[1]).hexdigest().encode()] = words[1]
        if 'declared-keys' in self.on and name in SCRIPTS:
            # Dragonfly without allow-undeclared-keys (issue 3245); Kvrocks with
            # lua-strict-key-accessing (pull request 3139)
            text = words[1] if name == 'eval' else self.scripts[words[1]]
            words = [b'EVAL', DECLARED.encode() + text] + words[2:]
        return words


async def read_value(stream):
    """Reads one value of RESP; returns its bytes."""
    line = await stream.readuntil(b'\r\n')
    kind, rest = line[:1], line[1:-2]
    if kind in b'$=!' and int(rest) >= 0:
        return line + await stream.readexactly(int(rest) + 2)
    if kind in b'*~>%':
        count = max(0, int(rest)) * (2 if kind == b'%' else 1)
        return line + b''.join([await read_value(stream) for _ in range(count)])
    return line


def words_of(request):
    words, at = [], request.index(b'\r\n') + 2
    while at < len(request):
        end = request.index(b'\r\n', at)
        length = int(request[at + 1:end])
        words.append(request[end + 2:end + 2 + length])
        at = end + 4 + length
    return words


def encode(words):
    return b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words)


class Connection:
    def __init__(self, rules, client, to_client, server, to_server):
        self.rules = rules
        self.client, self.to_client = client, to_client
        self.server, self.to_server = server, to_server
        self.due = asyncio.Queue()  # for each request, in order: its refusal, or None
        self.spoke = asyncio.get_running_loop().time()

    def note(self):
        self.spoke = asyncio.get_running_loop().time()

    async def ask(self):
        while True:
            words = words_of(await read_value(self.client))
            self.note()
            rule, text = self.rules.look(words)
            if rule is not None:
                print('REFUSED', rule, words[0].decode().upper(), flush=True)
                self.due.put_nowait(b'-' + text.encode() + b'\r\n')
            else:
                self.due.put_nowait(None)
                self.to_server.write(encode(self.rules.rewrite(words)))

    async def answer(self):
        while True:
            reply = await self.due.get() or await read_value(self.server)
            self.note()
            self.rules.replies += 1
            every = self.rules.on.get('reset', 0)
            if every and self.rules.replies % every == 0:
                print('REFUSED reset', flush=True)
                self.to_client.write(reply[:len(reply) // 2])
                await self.to_client.drain()
                # a load balancer that is taken away: HAProxy, AWS and Azure document the RST
                self.to_client.get_extra_info('socket').setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                return
            self.to_client.write(reply)

    async def watch_idle(self):
        # Azure Cache (10 minutes), HAProxy's `timeout client`, the load balancers of AWS
        limit = self.rules.on.get('idle-cut')
        while limit is None or asyncio.get_running_loop().time() - self.spoke < limit:
            await asyncio.sleep(0.1)
        print('REFUSED idle-cut', flush=True)

    async def run(self):
        tasks = [asyncio.ensure_future(t) for t in (self.ask(), self.answer(), self.watch_idle())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.to_client.close()
        self.to_server.close()


async def main(args):
    signal.alarm(120)
    rules = Rules(args[1:])

    async def accept(client, to_client):
        try:
            server, to_server = await asyncio.open_connection('127.0.0.1', int(args[0]),
                                                              limit=1 << 24)
        except OSError:
            to_client.close()
            return
        await Connection(rules, client, to_client, server, to_server).run()

    proxy = await asyncio.start_server(accept, '127.0.0.1', 0, limit=1 << 24)
    print('READY', proxy.sockets[0].getsockname()[1], flush=True)
    await proxy.serve_forever()


asyncio.run(main(sys.argv[1:]))
