/* SPDX-License-Identifier: MIT */
/*
 * fds: close groups of descriptors in a forked process.
 *
 * rlock opens each descriptor with FD_CLOEXEC. So a descriptor without that flag was inherited from
 * the process that started rlock, and is meant for the command.
 */
#include "process/fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FDS_TRIED 1024 /* without close_range(2) or /proc: how many numbers to try, one by one */

void fds_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_between(int first, int last)
{
    int fd;

    /* call close_range(2) by its system call number, as musl has no function for it */
    if (first > last || syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0U) == 0)
        return;
    for (fd = first; fd <= last && fd < FDS_TRIED; fd++)
        close(fd);
}

void fds_keep(const int keep[], int n)
{
    int next = STDERR_FILENO; /* the next descriptor that stays open */
    int first;
    int i;

    do {
        first = next + 1;
        next = INT_MAX;
        for (i = 0; i < n; i++)
            if (keep[i] >= first && keep[i] < next)
                next = keep[i];
        close_between(first, next - 1);
    } while (next != INT_MAX);
}

static bool is_among(int fd, const int fds[], int n)
{
    int i;

    for (i = 0; i < n && fds[i] != fd; i++)
        continue;
    return i < n;
}

static void close_if(int fd, bool is_ours, const int keep[], int n)
{
    int flags = fcntl(fd, F_GETFD);

    if (fd > STDERR_FILENO && flags >= 0 && ((flags & FD_CLOEXEC) != 0) == is_ours &&
        !is_among(fd, keep, n))
        close(fd);
}

/* Without /proc, finds only the descriptors below FDS_TRIED. */
void fds_drop(bool is_ours, const int keep[], int n)
{
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;
    int fd;

    for (fd = 0; all == NULL && fd < FDS_TRIED; fd++)
        close_if(fd, is_ours, keep, n);
    while (all != NULL && (entry = readdir(all)) != NULL)
        if ((fd = atoi(entry->d_name)) != dirfd(all))
            close_if(fd, is_ours, keep, n);
    if (all != NULL)
        closedir(all);
}
