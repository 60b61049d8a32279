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
#include <sys/stat.h>
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

struct drop {
    /* close the descriptors that rlock has opened; false: those that rlock was started with */
    bool is_ours;
    const int *keep; /* descriptors that stay open in any case */
    int n_keep;
};

/* Closes the descriptor if it is to be dropped. Returns false if there is no such descriptor. */
static bool close_if(int fd, const struct drop *drop)
{
    int flags = fcntl(fd, F_GETFD);

    if (fd > STDERR_FILENO && flags >= 0 && ((flags & FD_CLOEXEC) != 0) == drop->is_ours &&
        !is_among(fd, drop->keep, drop->n_keep))
        close(fd);
    return flags >= 0;
}

/*
 * Tries the numbers from 0 on until it has found all descriptors of this process. Since Linux 6.2
 * the size that stat(2) tells of /proc/self/fd is the number of open descriptors. To read the size
 * is much faster than to list the directory, for which the kernel makes a file of /proc for each
 * descriptor. Returns whether it has found all: an older kernel tells the size 0, and a descriptor
 * above FDS_TRIED isn't found.
 */
static bool drop_counted(const struct drop *drop)
{
    struct stat all;
    off_t left;
    int fd;

    if (stat("/proc/self/fd", &all) != 0 || all.st_size == 0)
        return false;
    left = all.st_size;
    for (fd = 0; left > 0 && fd < FDS_TRIED; fd++)
        if (close_if(fd, drop))
            left--;
    return left == 0;
}

static void drop_listed(const struct drop *drop)
{
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;
    int fd;

    for (fd = 0; all == NULL && fd < FDS_TRIED; fd++)
        close_if(fd, drop);
    while (all != NULL && (entry = readdir(all)) != NULL)
        if ((fd = atoi(entry->d_name)) != dirfd(all))
            close_if(fd, drop);
    if (all != NULL)
        closedir(all);
}

void fds_drop_inherited(void)
{
    struct drop inherited = {.is_ours = false};

    if (!drop_counted(&inherited))
        drop_listed(&inherited);
}

void fds_drop_ours(const int keep[], int n)
{
    struct drop ours = {.is_ours = true, .keep = keep, .n_keep = n};

    if (!drop_counted(&ours))
        drop_listed(&ours);
}
