/* SPDX-License-Identifier: MIT */
/* descriptors: close all but a few. */
#include "descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define CLOSED_ONE_BY_ONE 1024 /* where the kernel has no close_range (before 5.9) */

static void close_between(int first, int last)
{
    int fd;

    if (first > last || close_range((unsigned)first, (unsigned)last, 0) == 0)
        return;
    for (fd = first; fd <= last && fd < CLOSED_ONE_BY_ONE; fd++)
        close(fd);
}

/* Few enough to sort by exchanging neighbours. */
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

void descriptors_keep(int keep[], int n)
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

/* Whatever rlock opens closes on exec: what doesn't was there when it was started. */
static void close_inherited(int fd)
{
    int flags = fcntl(fd, F_GETFD);

    if (fd > STDERR_FILENO && flags >= 0 && (flags & FD_CLOEXEC) == 0)
        close(fd);
}

void descriptors_drop_inherited(void)
{
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;
    int fd;

    for (fd = 0; all == NULL && fd < CLOSED_ONE_BY_ONE; fd++)
        close_inherited(fd);
    while (all != NULL && (entry = readdir(all)) != NULL)
        close_inherited(atoi(entry->d_name));
    if (all != NULL)
        closedir(all);
}
