/* SPDX-License-Identifier: MIT */
/*
 * outfile: write to descriptors and to files that the user names, without harm to other files.
 *
 * rlock may run as root and be told to write to /tmp, where another user can place a symbolic link
 * to a file of root's. So rlock opens no symbolic link, and replaces a file by rename(2), which
 * follows none either. A name such as /dev/stderr is a symbolic link, too; it stands for a
 * descriptor, and rlock writes to that descriptor.
 */
#include "output/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <rlock.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ROOM_WITHIN_MS 1000 /* how long to wait for a pipe or terminal that accepts no bytes */
#define RETRY_MS 1          /* the pause after another process has filled the pipe */
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8 /* Linux 4.14 */
#endif
#define WRITING (O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* ---- writing to a descriptor ---- */

static bool write_all(int fd, const char *bytes, size_t n)
{
    ssize_t done;

    while (n > 0) {
        done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

/*
 * Write once, and don't block. poll(2) has reported room, but another process, such as the command,
 * may have filled the pipe since. With RWF_NOWAIT this write doesn't block; O_NONBLOCK would change
 * the writes of all processes that share the open file. Where RWF_NOWAIT is refused (terminals,
 * FIFOs, pipes that were opened by /proc, pipes of older kernels, seccomp), a full pipe blocks.
 */
static ssize_t write_at_once(int fd, const char *bytes, size_t n)
{
    struct iovec part = {.iov_base = (char *)(uintptr_t)bytes, .iov_len = n};
    ssize_t done = syscall(SYS_pwritev2, fd, &part, 1L, -1L, -1L, RWF_NOWAIT);

    if (done < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE)
        done = write(fd, bytes, n);
    return done;
}

/*
 * Fails with EAGAIN if the descriptor does not accept all bytes within `within_ms`. Tries once more
 * after that time, as rlock may not have run meanwhile. Each write has at most PIPE_BUF bytes: a
 * pipe that poll(2) reports as writable may block on more.
 */
static bool write_in_time(int fd, const char *bytes, size_t n, int within_ms)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    int64_t end_ms = rlock_clock_ms() + within_ms;
    bool is_late = false;
    ssize_t done;

    while (n > 0) {
        if (is_late || poll(&room, 1, within_ms > 0 ? within_ms : 0) <= 0) {
            errno = EAGAIN;
            return false;
        }
        done = write_at_once(fd, bytes, n < PIPE_BUF ? n : PIPE_BUF);
        if (done < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        } else {
            poll(NULL, 0, RETRY_MS);
        }
        is_late = within_ms <= 0;
        within_ms = (int)(end_ms - rlock_clock_ms());
    }
    return true;
}

/*
 * Block SIGXFSZ, and SIGPIPE if `without_pipe`, during the write. If the write raised one of them,
 * remove the pending signal, so that unblocking doesn't deliver it. within_ms < 0: no limit.
 */
static bool write_without_signals(int fd, const char *bytes, size_t n, bool without_pipe,
                                  int within_ms)
{
    struct timespec now = {0, 0};
    sigset_t blocked;
    sigset_t before;
    bool good;
    int failed;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGXFSZ);
    if (without_pipe)
        sigaddset(&blocked, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    good = within_ms < 0 ? write_all(fd, bytes, n) : write_in_time(fd, bytes, n, within_ms);
    failed = errno;
    if (!good && (failed == EPIPE || failed == EFBIG))
        sigtimedwait(&blocked, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return good;
}

bool outfile_print(int fd, const char *bytes, size_t n)
{
    return write_without_signals(fd, bytes, n, false, -1);
}

bool outfile_write(int fd, const char *bytes, size_t n, int within_ms)
{
    struct stat file;
    bool is_regular = fstat(fd, &file) == 0 && S_ISREG(file.st_mode);

    return write_without_signals(fd, bytes, n, true, is_regular ? -1 : within_ms);
}

/* Write to `fd`, and close it. Returns 0 or an errno. */
static int write_and_close(int fd, const char *bytes, size_t n)
{
    int failed = outfile_write(fd, bytes, n, ROOM_WITHIN_MS) ? 0 : errno;

    if (close(fd) != 0 && failed == 0)
        failed = errno;
    return failed;
}

/* ---- names ---- */

/* The descriptor that a path stands for; -1: none. */
static int descriptor_of(const char *path)
{
    static const struct {
        const char *prefix;
        int fd; /* -1: the number of the descriptor follows the prefix */
    } names[] = {{"-", STDOUT_FILENO},
                 {"/dev/stdout", STDOUT_FILENO},
                 {"/dev/stderr", STDERR_FILENO},
                 {"/dev/fd/", -1},
                 {"/proc/self/fd/", -1}};
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t n = strlen(names[i].prefix);
        const char *rest = path + n;

        if (strncmp(path, names[i].prefix, n) != 0)
            continue;
        if (names[i].fd >= 0 && *rest == '\0')
            return names[i].fd;
        if (names[i].fd < 0 && *rest != '\0' && strlen(rest) < 8 &&
            strspn(rest, "0123456789") == strlen(rest))
            return atoi(rest);
    }
    return -1;
}

/*
 * Duplicate a descriptor, if rlock was started with it: rlock sets close-on-exec on every
 * descriptor that it opens itself.
 */
static int open_inherited(int fd)
{
    int flags = fcntl(fd, F_GETFD);

    if (flags >= 0 && (flags & FD_CLOEXEC) == 0)
        return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    errno = EBADF;
    return -1;
}

/* Open a path: the descriptor that it names, or a file by open(2) with these flags. */
static int open_path(const char *path, int flags)
{
    int inherited = descriptor_of(path);

    return inherited >= 0 ? open_inherited(inherited) : open(path, WRITING | flags, 0666);
}

int outfile_open(const char *path)
{
    return open_path(path, O_APPEND | O_CREAT);
}

/* ---- replacing a file ---- */

/*
 * Write the bytes to a new file in the same folder, and rename this file to `path`. `old` is a
 * descriptor of the file to replace, whose owner and mode the new file receives; -1: none.
 */
static int replace(const char *path, int old, const char *bytes, size_t n)
{
    const char *slash = strrchr(path, '/');
    int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    char name[PATH_MAX];
    struct stat is;
    int failed = 0;
    int fd;

    if (snprintf(name, sizeof name, "%.*s.rlock.%d.%" PRId64, folder, path, (int)getpid(),
                 rlock_clock_ms()) >= PATH_MAX)
        return ENAMETOOLONG;
    fd = open(name, WRITING | O_CREAT | O_EXCL, old < 0 ? 0666 : 0600);
    if (fd < 0)
        return errno;
    if (old >= 0 && (fstat(old, &is) != 0 || fchown(fd, is.st_uid, is.st_gid) != 0 ||
                     fchmod(fd, is.st_mode & 0777) != 0))
        failed = errno;
    if (failed != 0)
        close(fd);
    else
        failed = write_and_close(fd, bytes, n);
    if (failed == 0 && rename(name, path) != 0)
        failed = errno;
    if (failed != 0)
        unlink(name);
    return failed;
}

/*
 * Write over the content of `old`, a file that can't be replaced: the user may not write its folder
 * or make a file of the same owner, or the file is a mount point.
 */
static int overwrite(int old, const char *bytes, size_t n)
{
    return outfile_write(old, bytes, n, -1) && ftruncate(old, (off_t)n) == 0 ? 0 : errno;
}

int outfile_put(const char *path, enum outfile_how how, const char *bytes, size_t n)
{
    struct stat file;
    int failed;
    int fd;

    if (how == OUTFILE_APPENDS) {
        fd = outfile_open(path);
        return fd < 0 ? errno : write_and_close(fd, bytes, n);
    }
    fd = open_path(path, 0);
    if (fd < 0)
        return errno == ENOENT && descriptor_of(path) < 0 ? replace(path, -1, bytes, n) : errno;
    if (descriptor_of(path) >= 0 || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
        return write_and_close(fd, bytes, n);
    failed = replace(path, fd, bytes, n);
    if (how == OUTFILE_OVERWRITES && (failed == EACCES || failed == EPERM || failed == EBUSY))
        failed = overwrite(fd, bytes, n);
    close(fd);
    return failed;
}

const char *outfile_error(int failed)
{
    return failed == ELOOP ? "a symbolic link, which rlock doesn't follow; name the file itself"
                           : strerror(failed);
}
