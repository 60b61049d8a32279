/* SPDX-License-Identifier: MIT */
/*
 * hold_clock: a command that writes the time to a file again and again, to show until when it ran.
 *
 * usage: hold_clock [FILE MS]
 *
 * Prints the time on CLOCK_BOOTTIME, as rlock's, in ms. With FILE, appends it there every MS until
 * it is killed, or 120 s are over, by one write(2) for each line, so several processes may share
 * FILE.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_SECONDS = 120 };

static void print_clock(int fd)
{
    struct timespec t;

    clock_gettime(CLOCK_BOOTTIME, &t);
    if (dprintf(fd, "%lld\n", (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000) < 0)
        err(2, "write");
}

int main(int argc, char **argv)
{
    struct timespec pause;
    long ms;
    int fd;

    if (argc == 1) {
        print_clock(STDOUT_FILENO);
        return 0;
    }
    if (argc != 3)
        errx(2, "usage: hold_clock [FILE MS]");
    fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        err(2, "%s", argv[1]);
    ms = strtol(argv[2], NULL, 10);
    pause = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    alarm(LIMIT_SECONDS);
    for (;;) {
        print_clock(fd);
        nanosleep(&pause, NULL);
    }
}
