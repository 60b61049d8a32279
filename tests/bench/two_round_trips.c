/* two_round_trips: the least a program can do to run a command under a lock in Redis. */
/*
 *     two_round_trips fork|spawn PORT KEY COMMAND [ARG...]
 *
 * The floor that rlock is measured against: connect to 127.0.0.1, one script to
 * acquire, the command, one script to release. It has no deadline, no renewal,
 * no guard, no signals and no fence, and it is not a lock to use.
 *
 * fork copies the page tables of this process; spawn shares them until the
 * exec, as vfork does (glibc's posix_spawn).
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

#define TTL_S "30"

extern char **environ;

static const char acquire[] = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2])";
static const char release[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then\n"
                              "    return redis.call('DEL', KEYS[1])\n"
                              "end\n"
                              "return 0";

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

/* One round trip: whether the server did what the script is for. */
static int server_eval(int fd, redisReader *reader, const char *script, const char *key,
                       const char *token)
{
    const char *argv[] = {"EVAL", script, "1", key, token, TTL_S};
    char in[256];
    char *out;
    void *reply = NULL;

    int bytes = redisFormatCommandArgv(&out, 6, argv, NULL);
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
    return type == REDIS_REPLY_STATUS || (type == REDIS_REPLY_INTEGER && integer == 1);
}

static pid_t start(int by_fork, char **argv)
{
    pid_t pid;

    if (!by_fork) {
        if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
            die(argv[0]);
        return pid;
    }
    pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        execvp(argv[0], argv);
        _exit(127);
    }
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

int main(int argc, char **argv)
{
    char token[33];
    int status;

    if (argc < 5) {
        fputs("usage: two_round_trips fork|spawn PORT KEY COMMAND [ARG...]\n", stderr);
        return 64;
    }
    const char *key = argv[3];
    token_make(token);
    int fd = server_connect(argv[2]);
    redisReader *reader = redisReaderCreate();
    if (!reader)
        die("memory");

    if (!server_eval(fd, reader, acquire, key, token))
        return 75;
    pid_t pid = start(strcmp(argv[1], "fork") == 0, argv + 4);
    if (waitpid(pid, &status, 0) < 0)
        die("waitpid");
    if (!server_eval(fd, reader, release, key, token))
        return 76;

    redisReaderFree(reader);
    close(fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
