/* SPDX-License-Identifier: MIT */
/* file: a configuration file in memory, for targets that read one. */
#include "file.h"

#include "fuzz.h"
#include "options/config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_FD 100000
#define LARGE_BYTES (CONFIG_BYTES_MAX + 4096)

static struct {
    const uint8_t *bytes;
    size_t n;     /* how many bytes there are in `bytes` */
    size_t size;  /* of the file, which repeats `bytes` if it is larger */
    size_t at;    /* where the next read(2) begins */
    size_t turns; /* calls of read(2) */
    enum file_case what;
} file;

int __real_open64(const char *path, int flags, ...);
int __real_close(int fd);
ssize_t __real_read(int fd, void *bytes, size_t n);
int __real_fstat64(int fd, struct stat *is);
int __real_stat64(const char *path, struct stat *is);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

static bool ends_in(const char *path, const char *end)
{
    return strlen(path) >= strlen(end) && strcmp(path + strlen(path) - strlen(end), end) == 0;
}

static bool is_file(const char *path)
{
    return ends_in(path, "rlock.conf") || ends_in(path, "rlock/config") ||
           strcmp(path, FILE_FIFO_PATH) == 0;
}

int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;
    int mode;

    va_start(args, flags);
    mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (!is_file(path))
        return __real_open64(path, flags, mode);
    file.at = file.turns = 0;
    errno = file.what == FILE_ABSENT ? ENOENT : EACCES;
    return file.what == FILE_ABSENT || file.what == FILE_FORBIDDEN ? -1 : FILE_FD;
}

static void describe(struct stat *is)
{
    *is = (struct stat){.st_mode = S_IFREG | 0600, .st_uid = geteuid()};
    is->st_size = (off_t)file.size;
    if (file.what == FILE_FIFO || file.what == FILE_PATH_FIFO)
        is->st_mode = S_IFIFO | 0600;
    else if (file.what == FILE_FOLDER)
        is->st_mode = S_IFDIR | 0700;
    else if (file.what == FILE_DEVICE)
        is->st_mode = S_IFCHR | 0600;
    else if (file.what == FILE_WRITABLE)
        is->st_mode = S_IFREG | 0660;
    else if (file.what == FILE_FOREIGN)
        is->st_uid = geteuid() + 1;
    if (file.what == FILE_SIZELESS || file.what == FILE_FIFO)
        is->st_size = 0;
    else if (file.what == FILE_GROWING)
        is->st_size = (off_t)file.size / 2;
}

int __wrap_fstat64(int fd, struct stat *is);
int __wrap_fstat64(int fd, struct stat *is)
{
    if (fd != FILE_FD)
        return __real_fstat64(fd, is);
    describe(is);
    return 0;
}

int __wrap_stat64(const char *path, struct stat *is);
int __wrap_stat64(const char *path, struct stat *is)
{
    if (!is_file(path))
        return __real_stat64(path, is);
    describe(is);
    return file.what == FILE_ABSENT ? -1 : 0;
}

ssize_t __wrap_read(int fd, void *bytes, size_t n);
ssize_t __wrap_read(int fd, void *bytes, size_t n)
{
    uint8_t *to = bytes;

    if (fd != FILE_FD)
        return __real_read(fd, bytes, n);
    file.turns++;
    if (file.what == FILE_BROKEN || (file.what == FILE_SLOW && file.turns % 3 != 0)) {
        errno = file.what == FILE_BROKEN ? EIO : file.turns % 3 == 1 ? EINTR : EAGAIN;
        return -1;
    }
    n = n < file.size - file.at ? n : file.size - file.at;
    if (file.what == FILE_SLOW && n > file.turns)
        n = file.turns;
    for (size_t i = 0; i < n; i++)
        to[i] = file.bytes[(file.at + i) % file.n];
    file.at += n;
    return (ssize_t)n;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return n == 1 && fds->fd == FILE_FD ? 1 : __real_poll(fds, n, timeout_ms);
}

int __wrap_close(int fd);
int __wrap_close(int fd)
{
    return fd == FILE_FD ? 0 : __real_close(fd);
}

void file_set(enum file_case what, const uint8_t *bytes, size_t n)
{
    file.what = what;
    file.bytes = bytes;
    file.n = n;
    file.size = what == FILE_LARGE && n > 0 ? LARGE_BYTES : n;
}
