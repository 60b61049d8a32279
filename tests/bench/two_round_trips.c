/* two_round_trips: runs a command under a lock in Redis, with as little work as possible. */
/*
 *     two_round_trips fork|spawn PORT KEY COMMAND [ARG...]
 *
 * fork or spawn: how it starts the command, by fork() or by posix_spawn().
 *
 * No lock can be faster: the program connects to 127.0.0.1, acquires by one
 * script, runs the command and releases by another script. It has no deadline,
 * renewal, guard, fence or handling of signals. Don't use it as a lock.
 */
/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "bare.h"

#define TTL_S "30"

static const char acquire[] = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2])";
static const char release[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then\n"
                              "    return redis.call('DEL', KEYS[1])\n"
                              "end\n"
                              "return 0";

int main(int argc, char **argv)
{
    char token[33];
    int status;

    if (argc < 5) {
        fputs("usage: two_round_trips fork|spawn PORT KEY COMMAND [ARG...]\n", stderr);
        return 64;
    }
    token_make(token);
    int fd = server_connect(argv[2]);
    redisReader *reader = redisReaderCreate();
    if (!reader)
        die("memory");

    const char *ask[] = {"EVAL", acquire, "1", argv[3], token, TTL_S};
    if (!server_ask(fd, reader, 6, ask))
        return 75;
    pid_t pid = start(strcmp(argv[1], "fork") == 0, argv + 4);
    if (waitpid(pid, &status, 0) < 0)
        die("waitpid");
    ask[1] = release;
    if (!server_ask(fd, reader, 6, ask))
        return 76;

    redisReaderFree(reader);
    close(fd);
    return status_of(status);
}
