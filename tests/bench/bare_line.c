/* SPDX-License-Identifier: MIT */
/*
 * bare_line: runs a command under a lock in Redis with a queue, with as little work as possible.
 *
 *     bare_line PORT KEY COMMAND [ARG...]
 *
 * No lock with a queue can be handed over faster: bare_line makes the same round trips as rlock,
 * but its scripts check nothing, and the queue stops when a waiter dies. Don't use it as a lock.
 */
#include <err.h>
#include <hiredis/hiredis.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* KEYS: the lock, the queue. ARGV: the token of this process, the TTL in seconds. */
static const char acquire[] = "local held = redis.call('GET', KEYS[1])\n"
                              "if not held or held == ARGV[1] then\n"
                              "    return redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])\n"
                              "end\n"
                              "redis.call('RPUSH', KEYS[2], ARGV[1])\n"
                              "return 0";
static const char release[] = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then\n"
                              "    return 0\n"
                              "end\n"
                              "local first = redis.call('LPOP', KEYS[2])\n"
                              "if not first then\n"
                              "    return redis.call('DEL', KEYS[1])\n"
                              "end\n"
                              "redis.call('SET', KEYS[1], first, 'EX', ARGV[2])\n"
                              "return redis.call('RPUSH', KEYS[2] .. first, '1')";

static redisContext *server;

/* Runs a script about the lock `key`. Returns whether its reply is a status or the integer 1. */
static int ask(const char *script, const char *key)
{
    redisReply *reply =
        redisCommand(server, "EVAL %s 2 %s %s:line %d 300", script, key, key, (int)getpid());
    int is_done;

    if (reply == NULL)
        errx(71, "%s", server->errstr);
    is_done = reply->type == REDIS_REPLY_STATUS || reply->integer == 1;
    freeReplyObject(reply);
    return is_done;
}

int main(int argc, char **argv)
{
    pid_t pid;
    int status;

    if (argc < 4)
        errx(64, "usage: bare_line PORT KEY COMMAND [ARG...]");
    server = redisConnect("127.0.0.1", atoi(argv[1]));
    if (server == NULL || server->err != 0)
        errx(71, "127.0.0.1:%s: can't connect", argv[1]);
    while (!ask(acquire, argv[2]))
        freeReplyObject(redisCommand(server, "BLPOP %s:line%d 0", argv[2], (int)getpid()));
    if (posix_spawnp(&pid, argv[3], NULL, NULL, argv + 3, environ) != 0 ||
        waitpid(pid, &status, 0) < 0)
        err(71, "%s", argv[3]);
    if (!ask(release, argv[2]))
        return 76;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
