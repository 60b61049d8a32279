/* bare: functions that bare_line.c and two_round_trips.c share. */
/* SPDX-License-Identifier: MIT */
#ifndef BARE_H
#define BARE_H

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

/*
 * Starts the command by fork, which copies the page tables of this process, or by posix_spawn,
 * which copies none: the child uses the parent's memory until its exec, as after vfork.
 */
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

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
