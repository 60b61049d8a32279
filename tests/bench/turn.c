/* turn: the command of a waiter; writes down when it had its turn. */
/*
 *     turn LOG NUMBER GATE|MS
 *
 * LOG gets a line: NUMBER, and when this began and ended, in nanoseconds of
 * CLOCK_MONOTONIC. In between it sleeps for MS milliseconds, or waits for
 * somebody to open the pipe GATE for writing.
 */
/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
    long long start = now_ns();
    char line[128];

    if (argc != 4)
        return 64;
    int log = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log < 0)
        return 71;
    long ms = strtol(argv[3], NULL, 10);
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    if (argv[3][0] == '/')
        close(open(argv[3], O_RDONLY | O_CLOEXEC));
    else
        nanosleep(&pause, NULL);
    int n = snprintf(line, sizeof line, "%s %lld %lld\n", argv[2], start, now_ns());
    return write(log, line, (size_t)n) == n ? 0 : 71;
}
