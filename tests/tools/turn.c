/* SPDX-License-Identifier: MIT */
/*
 * turn: a command that must run alone, and fails if another one runs at the same time.
 *
 * usage: turn FILE NAME
 *
 * Adds 1 to the number in FILE in two steps, and appends NAME to FILE.names. While it runs it holds
 * a flock(2) lock on FILE; if another process has that, it reports the overlap, and exits with 1.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { MOMENT_NS = 500000 };

static void note(const char *file, const char *name)
{
    char path[4096];
    int fd;

    snprintf(path, sizeof path, "%s.names", file);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || dprintf(fd, "%s\n", name) < 0)
        err(2, "%s", path);
    close(fd);
}

int main(int argc, char **argv)
{
    struct timespec moment = {.tv_nsec = MOMENT_NS};
    char text[24] = "";
    long n;
    int fd;

    if (argc != 3)
        errx(2, "usage: turn FILE NAME");
    fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        err(2, "%s", argv[1]);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        err(1, "not alone");
    if (pread(fd, text, sizeof text - 1, 0) < 0)
        err(2, "read");
    n = strtol(text, NULL, 10);
    nanosleep(&moment, NULL);
    snprintf(text, sizeof text, "%ld\n", n + 1);
    if (pwrite(fd, text, strlen(text), 0) < 0)
        err(2, "write");
    note(argv[1], argv[2]);
    return 0;
}
