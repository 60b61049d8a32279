/* SPDX-License-Identifier: MIT */
/*
 * outfile: write to descriptors and to files that the user names, without harm to other files.
 *
 * Why rlock resolves a path itself, folder by folder and link by link: it may run as root and be
 * told to write to /tmp, where another user can place a symbolic link to a file of root's. rlock
 * checks the owner of each link, and keeps the last folder open, so that the file is replaced in
 * the very folder that was checked. A link in /proc/self/fd stands for an open file, not for a
 * path; rlock compares that file with the descriptors that it was started with.
 */
#include "output/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <rlock.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define ROOM_WITHIN_MS 1000 /* how long to wait for a pipe or terminal that accepts no bytes */
#define RETRY_MS 1          /* the pause after another process has filled the pipe */
#define LINKS_MAX 40        /* how many symbolic links to follow; the kernel's limit */
#define NAMES_TRIED 16      /* how many random names to try for the temporary file */
#define AT_END_MAX 16       /* how many descriptors append_shared() moves to the end of the file */
#define FDS_LOOKED_AT 1024  /* how many descriptors to try if /proc is not mounted */
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8 /* Linux 4.14 */
#endif
#define APPENDING (O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

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
 * may have filled the pipe since. RWF_NOWAIT does for one write what O_NONBLOCK, a flag of the open
 * file, does for the writes of all processes that share it. Where the flag is refused (terminals,
 * FIFOs, pipes that were opened by /proc, pipes of older kernels, a filter of system calls), only
 * poll(2) keeps the write from blocking.
 */
static ssize_t write_at_once(int fd, const char *bytes, size_t n)
{
    struct iovec part = {.iov_base = (char *)(uintptr_t)bytes, .iov_len = n};
    ssize_t done = syscall(SYS_pwritev2, fd, &part, 1L, -1L, -1L, RWF_NOWAIT);

    if (done < 0 && errno != EAGAIN && errno != EINTR && errno != EPIPE)
        done = write(fd, bytes, n);
    return done;
}

/* Fails with EAGAIN if the descriptor does not accept all bytes within `within_ms`. */
static bool write_in_time(int fd, const char *bytes, size_t n, int within_ms)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    int64_t end_ms = rlock_clock_ms() + within_ms;
    ssize_t done;

    errno = EAGAIN;
    while (poll(&room, 1, within_ms) > 0) {
        done = write_at_once(fd, bytes, n);
        if (done == (ssize_t)n)
            return true;
        if (done < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        } else {
            poll(NULL, 0, RETRY_MS);
        }
        within_ms = (int)(end_ms - rlock_clock_ms());
        errno = EAGAIN;
        if (within_ms <= 0)
            return false;
    }
    return false;
}

/*
 * Block SIGXFSZ, and SIGPIPE if `without_pipe`, during the write. If the write raised one of them,
 * remove the pending signal, so that unblocking doesn't deliver it. within_ms < 0: may block.
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

bool outfile_write(int fd, const char *bytes, size_t n)
{
    return write_without_signals(fd, bytes, n, true, -1);
}

bool outfile_print(int fd, const char *bytes, size_t n)
{
    return write_without_signals(fd, bytes, n, false, -1);
}

bool outfile_offer(int fd, const char *bytes, size_t n, int within_ms)
{
    struct stat file;
    bool is_regular = fstat(fd, &file) == 0 && S_ISREG(file.st_mode);

    return write_without_signals(fd, bytes, n, true, is_regular ? -1 : within_ms);
}

/*
 * Write in parts of PIPE_BUF bytes: a pipe that poll(2) reports as writable accepts PIPE_BUF bytes
 * without blocking, but not more.
 */
static int write_patiently(int fd, const char *bytes, size_t n)
{
    size_t part;

    for (; n > 0; bytes += part, n -= part) {
        part = n < PIPE_BUF ? n : PIPE_BUF;
        if (!outfile_offer(fd, bytes, part, ROOM_WITHIN_MS))
            return errno;
    }
    return 0;
}

static int write_to(int fd, const char *bytes, size_t n)
{
    struct stat file;

    if (fstat(fd, &file) != 0)
        return errno;
    if (!S_ISREG(file.st_mode))
        return write_patiently(fd, bytes, n);
    return outfile_write(fd, bytes, n) ? 0 : errno;
}

static int write_and_close(int fd, const char *bytes, size_t n)
{
    int failed = write_to(fd, bytes, n);

    if (close(fd) != 0 && failed == 0)
        failed = errno;
    return failed;
}

/* ---- resolving a path ---- */

/* The file that a path leads to: a name in an open folder. */
struct place {
    int dir; /* the folder, opened with O_PATH; -1: none yet */
    char name[NAME_MAX + 1];
    /*
     * `name` is a symbolic link in /proc that stands for an open file, such as /proc/self/fd/1. If
     * false, `name` is no symbolic link: walk() has followed all links.
     */
    bool is_descriptor;
};

/*
 * True if fs.protected_symlinks (proc(5)) forbids to follow this link: the link is in a sticky
 * folder that others may write, and belongs to neither the user nor the folder's owner. The kernel
 * applies the rule only if the administrator has switched it on, so rlock applies it as well.
 */
static bool is_others_link(int dir, const struct stat *link)
{
    struct stat folder;

    return fstat(dir, &folder) != 0 ||
           ((folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
            link->st_uid != geteuid() && link->st_uid != folder.st_uid);
}

static bool is_in_proc(int dir)
{
    struct statfs system;

    return fstatfs(dir, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

static int go_to(struct place *place, int from, const char *folder)
{
    int dir = openat(from, folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int failed = dir < 0 ? errno : 0;

    if (place->dir >= 0)
        close(place->dir);
    place->dir = dir;
    return failed;
}

/*
 * Follow the symbolic link `place->name`: put the link's target in front of `rest`, the part of the
 * path that walk() has not resolved yet. If the target is absolute, go on from the root directory.
 */
static int read_link(struct place *place, char rest[PATH_MAX], bool is_last)
{
    char path[PATH_MAX];
    ssize_t n = readlinkat(place->dir, place->name, path, sizeof path);
    size_t left = strlen(rest) + 1;

    if (n < 0)
        return errno;
    if ((size_t)n + 1 + left > PATH_MAX)
        return ENAMETOOLONG;
    memmove(rest + n + !is_last, rest, left);
    memcpy(rest, path, (size_t)n);
    if (!is_last)
        rest[n] = '/';
    return *rest == '/' ? go_to(place, AT_FDCWD, "/") : 0;
}

/* Move the first name of `rest`, the path that is not resolved yet, to `place->name`. */
static int next_name(struct place *place, char rest[PATH_MAX], bool *is_last)
{
    const char *at = rest + strspn(rest, "/");
    size_t n = strcspn(at, "/");

    if (n > NAME_MAX)
        return ENAMETOOLONG;
    memcpy(place->name, at, n);
    place->name[n] = '\0';
    at += n;
    *is_last = *at == '\0';
    at += strspn(at, "/");
    if (n == 0 || (!*is_last && *at == '\0')) /* the path ends with a slash */
        return EISDIR;
    memmove(rest, at, strlen(at) + 1);
    return 0;
}

static int walk(struct place *place, char rest[PATH_MAX])
{
    int failed = go_to(place, AT_FDCWD, *rest == '/' ? "/" : ".");
    bool is_last = false;
    struct stat file;
    int links = 0;

    while (!failed) {
        failed = next_name(place, rest, &is_last);
        if (failed)
            break;
        if (fstatat(place->dir, place->name, &file, AT_SYMLINK_NOFOLLOW) != 0)
            return is_last && errno == ENOENT ? 0 : errno;
        if (!S_ISLNK(file.st_mode)) {
            if (is_last)
                return 0;
            failed = go_to(place, place->dir, place->name);
            continue;
        }
        place->is_descriptor = is_last && is_in_proc(place->dir);
        if (place->is_descriptor)
            return 0;
        if (is_others_link(place->dir, &file))
            return OUTFILE_OTHERS_LINK;
        failed = ++links > LINKS_MAX ? ELOOP : read_link(place, rest, is_last);
    }
    return failed;
}

static int place_find(struct place *place, const char *path)
{
    char rest[PATH_MAX];

    *place = (struct place){.dir = -1};
    if (strlen(path) >= sizeof rest)
        return ENAMETOOLONG;
    strcpy(rest, path);
    return walk(place, rest);
}

static void place_close(const struct place *place)
{
    if (place->dir >= 0)
        close(place->dir);
}

static int open_place(const struct place *place, int flags)
{
    return openat(place->dir, place->name, flags | (place->is_descriptor ? 0 : O_NOFOLLOW), 0666);
}

/* ---- files that are open as descriptors which rlock was started with ---- */

/*
 * Was rlock started with this descriptor? rlock sets close-on-exec on every descriptor that it
 * opens itself.
 */
static bool is_inherited(int fd)
{
    int flags = fcntl(fd, F_GETFD);

    return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

/* The inherited descriptors that refer to one file. */
struct shared {
    bool is_open;
    /* a descriptor that is open for writing, if possible with O_APPEND; -1: there is none */
    int writable;
    int at_end[AT_END_MAX]; /* descriptors without O_APPEND whose offset is the end of the file */
    int n_at_end;
};

static void compare(struct shared *shared, int fd, const struct stat *file)
{
    struct stat open_file;
    int flags = fcntl(fd, F_GETFL);

    if (!is_inherited(fd) || flags < 0 || (flags & O_PATH) != 0 || fstat(fd, &open_file) != 0 ||
        open_file.st_dev != file->st_dev || open_file.st_ino != file->st_ino)
        return;
    shared->is_open = true;
    if ((flags & O_ACCMODE) == O_RDONLY)
        return;
    if (shared->writable < 0 || (flags & O_APPEND) != 0)
        shared->writable = fd;
    if ((flags & O_APPEND) == 0 && S_ISREG(file->st_mode) && shared->n_at_end < AT_END_MAX &&
        lseek(fd, 0, SEEK_CUR) == file->st_size)
        shared->at_end[shared->n_at_end++] = fd;
}

static struct shared shared_of(const struct stat *file)
{
    struct shared shared = {.writable = -1};
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;
    int fd;

    for (fd = 0; all == NULL && fd < FDS_LOOKED_AT; fd++)
        compare(&shared, fd, file);
    while (all != NULL && (entry = readdir(all)) != NULL)
        if (entry->d_name[0] != '.')
            compare(&shared, atoi(entry->d_name), file);
    if (all != NULL)
        closedir(all);
    return shared;
}

/*
 * Append to a file that the command may have open as well.
 *
 * 1. A descriptor without O_APPEND may have any offset, so rlock opens the file once more with
 *    O_APPEND.
 * 2. rlock appends its bytes, and the file becomes longer.
 * 3. rlock moves each inherited descriptor whose offset was the old end to the new end. Otherwise
 *    the next write by that descriptor would overwrite the bytes of rlock.
 */
static int append_shared(const struct place *place, const struct shared *shared,
                         const struct stat *file, const char *bytes, size_t n)
{
    int failed;
    int fd;
    int i;

    if (!S_ISREG(file->st_mode))
        return write_to(shared->writable, bytes, n);
    fd = open_place(place, APPENDING);
    if (fd >= 0)
        failed = write_and_close(fd, bytes, n);
    else if (shared->writable >= 0 && (fcntl(shared->writable, F_GETFL) & O_APPEND) != 0)
        failed = write_to(shared->writable, bytes, n);
    else if (shared->n_at_end > 0)
        failed = write_to(shared->at_end[0], bytes, n);
    else
        failed = errno;
    for (i = 0; i < shared->n_at_end; i++)
        lseek(shared->at_end[i], 0, SEEK_END);
    return failed;
}

/* ---- replacing a file ---- */

static void draw_name(char name[40])
{
    uint64_t random = 0;

    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint64_t)rlock_clock_ms();
    snprintf(name, 40, ".rlock.%016llx", (unsigned long long)random);
}

/*
 * Create a temporary file beside the one to replace. The file gets a random name, so that no other
 * user can create a file of that name first.
 */
static int create_new(const struct place *place, char name[40], mode_t mode)
{
    int fd = -1;
    int i;

    for (i = 0; i < NAMES_TRIED && fd < 0; i++) {
        draw_name(name);
        fd = openat(place->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* Give the new file `fd` the owner, group and mode of the file `as`, which it will replace. */
static int copy_owner_and_mode(int fd, const struct stat *as)
{
    struct stat now;

    if (fstat(fd, &now) != 0)
        return errno;
    if ((now.st_uid != as->st_uid || now.st_gid != as->st_gid) &&
        fchown(fd, as->st_uid, as->st_gid) != 0)
        return errno;
    return fchmod(fd, as->st_mode & 0777) == 0 ? 0 : errno;
}

/*
 * Write over the file's content, and cut the file to the new length. replace() does so if the user
 * may write the file but not its folder, in which rename(2) would have to change an entry.
 */
static int overwrite(const struct place *place, const struct stat *file, const char *bytes,
                     size_t n)
{
    int fd = open_place(place, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat now;
    int failed = 0;

    if (fd < 0)
        return errno;
    if (fstat(fd, &now) != 0 || now.st_dev != file->st_dev || now.st_ino != file->st_ino)
        failed = ESTALE;
    else if (!outfile_write(fd, bytes, n) || ftruncate(fd, (off_t)n) != 0)
        failed = errno;
    if (close(fd) != 0 && failed == 0)
        failed = errno;
    return failed;
}

/* What becomes of a regular file. */
enum how {
    APPEND,
    REPLACE,
    REPLACE_SYNCED /* the new content is on the disk before it gets the file's name */
};

/*
 * Replace a file by rename(2), or create it. `file` is NULL if it doesn't exist yet.
 *
 * Why fsync(2) for REPLACE_SYNCED: without it the disk may get the new name before the new content.
 * If the machine loses power between these two, the file is empty afterwards.
 */
static int replace(const struct place *place, const struct stat *file, const char *bytes, size_t n,
                   enum how how)
{
    char name[40];
    int failed = 0;
    int fd;

    if (file != NULL && faccessat(place->dir, place->name, W_OK, AT_EACCESS) != 0)
        return errno;
    fd = create_new(place, name, file == NULL ? 0666 : 0600);
    if (fd < 0)
        return file != NULL && (errno == EACCES || errno == EPERM)
                   ? overwrite(place, file, bytes, n)
                   : errno;
    if (file != NULL && copy_owner_and_mode(fd, file) != 0)
        failed = EPERM;
    else if (!outfile_write(fd, bytes, n) || (how == REPLACE_SYNCED && fsync(fd) != 0))
        failed = errno;
    if (close(fd) != 0 && failed == 0)
        failed = errno;
    if (failed == 0 && renameat(place->dir, name, place->dir, place->name) != 0)
        failed = errno;
    if (failed != 0)
        unlinkat(place->dir, name, 0);
    if (file != NULL && (failed == EPERM || failed == EACCES || failed == EBUSY))
        failed = overwrite(place, file, bytes, n);
    return failed;
}

/* ---- replace or append, by the kind of the file ---- */

static int append_place(const struct place *place, const char *bytes, size_t n)
{
    int fd = open_place(place, APPENDING | (place->is_descriptor ? 0 : O_CREAT));

    return fd < 0 ? errno : write_and_close(fd, bytes, n);
}

static int write_place(const struct place *place, const char *bytes, size_t n, enum how how)
{
    struct shared shared;
    struct stat file;

    if (fstatat(place->dir, place->name, &file, place->is_descriptor ? 0 : AT_SYMLINK_NOFOLLOW) !=
        0) {
        if (errno != ENOENT || place->is_descriptor)
            return errno;
        return how == APPEND ? append_place(place, bytes, n) : replace(place, NULL, bytes, n, how);
    }
    shared = shared_of(&file);
    if (shared.is_open && (shared.writable >= 0 || S_ISREG(file.st_mode)))
        return append_shared(place, &shared, &file, bytes, n);
    if (how != APPEND && S_ISREG(file.st_mode) && !place->is_descriptor)
        return replace(place, &file, bytes, n, how);
    return append_place(place, bytes, n);
}

static int write_path(const char *path, const char *bytes, size_t n, enum how how)
{
    struct place place;
    int failed;

    if (strcmp(path, "-") == 0)
        return is_inherited(STDOUT_FILENO) ? write_to(STDOUT_FILENO, bytes, n) : EBADF;
    failed = place_find(&place, path);
    if (failed == 0)
        failed = write_place(&place, bytes, n, how);
    place_close(&place);
    return failed;
}

int outfile_replace(const char *path, const char *bytes, size_t n)
{
    return write_path(path, bytes, n, REPLACE);
}

int outfile_replace_synced(const char *path, const char *bytes, size_t n)
{
    return write_path(path, bytes, n, REPLACE_SYNCED);
}

int outfile_append(const char *path, const char *bytes, size_t n)
{
    return write_path(path, bytes, n, APPEND);
}

int outfile_open(const char *path, int *failed)
{
    struct place place;
    int fd = -1;

    *failed = place_find(&place, path);
    if (*failed == 0) {
        fd = open_place(&place, APPENDING | (place.is_descriptor ? 0 : O_CREAT));
        *failed = fd < 0 ? errno : 0;
    }
    place_close(&place);
    return fd;
}

const char *outfile_error(int failed)
{
    return failed == OUTFILE_OTHERS_LINK
               ? "another user's symbolic link, in a folder that others may write"
               : strerror(failed);
}
