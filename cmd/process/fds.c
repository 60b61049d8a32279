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
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FDS_TRIED 1024 /* how many numbers to try, one by one */

static void close_between(int first, int last)
{
    int fd;

    /* call close_range(2) by its system call number, as musl has no function for it */
    if (first > last || syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0U) == 0)
        return;
    for (fd = first; fd <= last && fd < FDS_TRIED; fd++)
        close(fd);
}

/* Sort without qsort(3): it may allocate memory, which is not safe between fork and exec. */
static void sort(int fds[], int n)
{
    int i;
    int j;

    for (i = 0; i < n; i++)
        for (j = n - 1; j > i; j--)
            if (fds[j] < fds[j - 1]) {
                int other = fds[j];

                fds[j] = fds[j - 1];
                fds[j - 1] = other;
            }
}

void fds_keep(int keep[], int n)
{
    int next = STDERR_FILENO + 1;
    int i;

    sort(keep, n);
    for (i = 0; i < n; i++) {
        if (keep[i] < next)
            continue;
        close_between(next, keep[i] - 1);
        next = keep[i] + 1;
    }
    close_between(next, ~0U >> 1);
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

/*
 * Close the descriptors that rlock has opened, or those that it was started with, except those in
 * `keep`. Without /proc, this finds only the numbers below FDS_TRIED.
 */
static void drop(bool is_ours, const int keep[], int n)
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

void fds_drop_inherited(void)
{
    drop(false, NULL, 0);
}

void fds_drop_ours(const int keep[], int n)
{
    drop(true, keep, n);
}
