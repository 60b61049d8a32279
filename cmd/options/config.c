/* SPDX-License-Identifier: MIT */
/* config: read the configuration file, and other small files such as a password file. */
#include "options/config.h"

#include "base/clock.h"
#include "options/options.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Remove blanks from both ends of a text, in place. Returns the new start. */
static char *trim(char *text)
{
    size_t n;

    text += strspn(text, OPTIONS_BLANKS);
    n = strlen(text);
    while (n > 0 && strchr(OPTIONS_BLANKS, text[n - 1]) != NULL)
        n--;
    text[n] = '\0';
    return text;
}

static bool read_line(char *text, int line, config_taker *take, void *context, char *why,
                      size_t room)
{
    char *name = trim(text);
    char *equals;

    if (*name == '\0' || *name == '#')
        return true;
    equals = strchr(name, '=');
    if (equals == NULL) {
        snprintf(why, room, "not of the form name = value");
        return false;
    }
    *equals = '\0';
    return take(context, line, trim(name), trim(equals + 1), why, room);
}

bool config_names_descriptor(const char *path)
{
    static const char *const places[] = {"/dev/fd/", "/proc/self/fd/", "/dev/stdin"};
    size_t i;

    for (i = 0; i < sizeof places / sizeof places[0]; i++)
        if (strncmp(path, places[i], strlen(places[i])) == 0)
            return true;
    return false;
}

/* Is the open file the device /dev/null, which rlock reads as an empty file? */
static bool is_null(const struct stat *is)
{
    return S_ISCHR(is->st_mode) && is->st_rdev == makedev(1, 3);
}

/*
 * Returns NULL if rlock may read from a file of this kind, else the reason why not: reading a
 * terminal, a device, or a FIFO that has no writer could last for ever. A FIFO is allowed if the
 * path names a descriptor, as /dev/fd/63 of a shell's <(...): whoever opened the FIFO for rlock has
 * a writer for it, too.
 */
static const char *check_kind(const char *path, const struct stat *is)
{
    if (S_ISDIR(is->st_mode))
        return strerror(EISDIR);
    if (S_ISREG(is->st_mode) || is_null(is) ||
        (S_ISFIFO(is->st_mode) && config_names_descriptor(path)))
        return NULL;
    return "not a regular file";
}

/*
 * Returns NULL if only the user and root can write the file, else the reason to refuse the file:
 * whoever can write it could name another server, which would then receive the password.
 */
static const char *check_owner(const struct stat *is)
{
    if (is->st_uid != geteuid() && is->st_uid != 0)
        return "the file belongs to another user, who could make rlock use another server: chown "
               "the file, or name another one in RLOCK_CONFIG";
    if ((is->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return "others than its owner may write the file, and could make rlock use another server: "
               "chmod go-w";
    return NULL;
}

bool config_is_exposed(const char *path)
{
    struct stat is;

    if (stat(path, &is) != 0 || !S_ISREG(is.st_mode))
        return false;
    return (is.st_mode & (is.st_uid == geteuid() ? S_IRWXG | S_IRWXO : S_IROTH)) != 0;
}

const struct config_wait config_wait_forever = {.ms = RLOCK_NEVER, .stop_fd = -1};

/* A reason that config_first_line() recognizes by its address. */
static const char interrupted[] = "the wait was interrupted";

/*
 * Wait until the pipe has more, or its writer has closed the pipe. Returns NULL (read again) or the
 * reason to give up. After a signal that has stopped rlock, such as TSTP, the wait starts anew.
 */
static const char *wait_for_writer(int fd, const struct config_wait *wait,
                                   struct rlock_deadline *deadline)
{
    struct pollfd more[] = {{.fd = fd, .events = POLLIN}, {.fd = wait->stop_fd, .events = POLLIN}};

    if (deadline_has_passed(*deadline))
        return "its writer has not closed the pipe in time; "
               "a longer --connect-timeout gives it more time";
    if (poll(more, 2, deadline_poll_ms(*deadline)) <= 0 || more[1].revents == 0)
        return NULL;
    if (wait->is_interrupted(wait->context))
        return interrupted;
    *deadline = deadline_in(deadline_never, wait->ms);
    return NULL;
}

/*
 * Read the file to its end, but at most `room` bytes, into `text`. `*used` becomes the number of
 * bytes that were read. Returns NULL, or the reason why the file can't be used.
 */
static const char *read_all(int fd, const struct config_wait *wait, char *text, size_t room,
                            size_t *used)
{
    struct rlock_deadline deadline = deadline_in(deadline_never, wait->ms);
    const char *why = NULL;
    ssize_t n = 1;

    for (*used = 0; why == NULL && n != 0 && *used < room;) {
        n = read(fd, text + *used, room - *used);
        if (n > 0)
            *used += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            why = strerror(errno);
        else if (n < 0)
            why = wait_for_writer(fd, wait, &deadline);
    }
    if (why != NULL)
        return why;
    if (*used > CONFIG_BYTES_MAX)
        return "larger than 64 KiB";
    return memchr(text, '\0', *used) != NULL ? "not a text: there is a NUL byte in it" : NULL;
}

/*
 * Read a whole file. Returns `*used` bytes and a NUL on the heap; or NULL, and the reason is in
 * `*why`, or in errno if `*why` is NULL. With `is_trusted`, check_owner() may refuse the file.
 */
static char *load(const char *path, bool is_trusted, const struct config_wait *wait, size_t *used,
                  const char **why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    size_t room = CONFIG_BYTES_MAX + 1; /* one byte more than is allowed, to notice a larger file */
    char *text = NULL;
    struct stat is;

    *why = NULL;
    if (fd < 0) /* most runs find no configuration file: make no text from errno */
        return NULL;
    *why = fstat(fd, &is) != 0 ? strerror(errno) : check_kind(path, &is);
    if (*why == NULL && is_trusted && !is_null(&is))
        *why = check_owner(&is);
    if (*why == NULL && is.st_size > 0 && (size_t)is.st_size < room)
        room = (size_t)is.st_size + 1;
    *used = 0;
    if (*why == NULL && (text = malloc(room + 1)) == NULL)
        *why = strerror(ENOMEM);
    if (*why == NULL)
        *why = read_all(fd, wait, text, room, used);
    if (*why == NULL && *used == room && room <= CONFIG_BYTES_MAX)
        *why = "the file grew while rlock read it";
    if (text != NULL)
        text[*used] = '\0';
    if (*why != NULL && text != NULL) {
        explicit_bzero(text, *used);
        free(text);
    }
    close(fd);
    return *why == NULL ? text : NULL;
}

enum config_result config_read(const char *path, config_taker *take, void *context, char *why,
                               size_t room)
{
    const char *failed;
    char complaint[256];
    bool good = true;
    int number = 0;
    size_t n;
    char *text;
    char *rest;

    errno = 0;
    rest = text = load(path, true, &config_wait_forever, &n, &failed);
    if (text == NULL && (errno == ENOENT || errno == ENOTDIR))
        return CONFIG_ABSENT;
    if (text == NULL) {
        snprintf(why, room, "%s: %s", path, failed != NULL ? failed : strerror(errno));
        return CONFIG_BAD;
    }
    while (good && rest != NULL) {
        number++;
        good = read_line(strsep(&rest, "\n"), number, take, context, complaint, sizeof complaint);
    }
    if (!good)
        snprintf(why, room, "%s:%d: %s", path, number, complaint);
    explicit_bzero(text, n); /* the file may contain a URL with a password */
    free(text);
    return good ? CONFIG_READ : CONFIG_BAD;
}

char *config_first_line(const char *path, const struct config_wait *wait, const char **why)
{
    size_t n;
    char *text = load(path, false, wait, &n, why);
    size_t line = text == NULL ? 0 : strcspn(text, "\r\n");

    if (text != NULL)
        explicit_bzero(text + line, n - line);
    else if (*why == NULL)
        *why = strerror(errno);
    else if (*why == interrupted)
        *why = NULL;
    return text;
}
