/* bare_line: runs a command under a lock in Redis with a queue, with as little work as possible. */
/*
 *     bare_line PORT KEY COMMAND [ARG...]
 *
 * No lock with a queue can be handed over faster: bare_line makes the same round trips as rlock,
 * but its scripts check nothing, and the queue stops when a waiter dies. Don't use it as a lock.
 */
/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void die(const char *what)
{
    perror(what);
    exit(71);
}

static int server_connect(const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET};

    a.sin_port = htons((unsigned short)atoi(port));
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof a) < 0)
        die("connect");
    return fd;
}

/* Sends a request and reads the reply. True if the reply is a status, an array or the integer 1. */
static int server_ask(int fd, redisReader *reader, int argc, const char **argv)
{
    char in[256];
    char *out;
    void *reply = NULL;

    int bytes = redisFormatCommandArgv(&out, argc, argv, NULL);
    if (bytes < 0 || write(fd, out, (size_t)bytes) != bytes)
        die("write");
    redisFreeCommand(out);
    while (!reply) {
        ssize_t n = read(fd, in, sizeof in);
        if (n <= 0 || redisReaderFeed(reader, in, (size_t)n) != REDIS_OK ||
            redisReaderGetReply(reader, &reply) != REDIS_OK)
            die("read");
    }
    int type = ((redisReply *)reply)->type;
    long long integer = ((redisReply *)reply)->integer;
    freeReplyObject(reply);
    return type == REDIS_REPLY_STATUS || type == REDIS_REPLY_ARRAY ||
           (type == REDIS_REPLY_INTEGER && integer == 1);
}

static pid_t start(char **argv)
{
    pid_t pid;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
        die(argv[0]);
    return pid;
}

static void token_make(char token[33])
{
    unsigned char random[16];

    if (getrandom(random, sizeof random, 0) != sizeof random)
        die("getrandom");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(token + 2 * i, 3, "%02x", random[i]);
}

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

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

int main(int argc, char **argv)
{
    char token[33];
    char line[256];
    char wake[sizeof line + sizeof token];
    int status;

    if (argc < 4 || strlen(argv[2]) > sizeof line - 6) {
        fputs("usage: bare_line PORT KEY COMMAND [ARG...]\n", stderr);
        return 64;
    }
    token_make(token);
    snprintf(line, sizeof line, "%s:line", argv[2]);
    snprintf(wake, sizeof wake, "%s%s", line, token);
    int fd = server_connect(argv[1]);
    redisReader *reader = redisReaderCreate();
    if (!reader)
        die("memory");

    const char *ask[] = {"EVAL", acquire, "2", argv[2], line, token, "300"};
    const char *block[] = {"BLPOP", wake, "0"};
    while (!server_ask(fd, reader, 7, ask))
        server_ask(fd, reader, 3, block);
    pid_t pid = start(argv + 3);
    if (waitpid(pid, &status, 0) < 0)
        die("waitpid");
    ask[1] = release;
    if (!server_ask(fd, reader, 7, ask))
        return 76;

    redisReaderFree(reader);
    close(fd);
    return status_of(status);
}
