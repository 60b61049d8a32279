/* SPDX-License-Identifier: MIT */
/*
 * private_dir: opens directories that no other user can change.
 *
 * Each directory is opened first, and its descriptor is then checked and used. So nobody can
 * replace the directory in between.
 *
 * A user has no home if the user database has no entry for the user, or the entry names no home.
 * Nor has a system account whose home belongs to another user, or doesn't exist.
 */
#include "session/private_dir.h"

#include "base/err.h"
#include "process/user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_UIDS 1000 /* system accounts have smaller user IDs: UID_MIN of login.defs(5) */

static enum rlock_status fail(const struct private_dir_words *words, const char *path,
                              const char *why, struct rlock_error *err)
{
    return err_set(err, RLOCK_E_CONFIG, 0, "%s: %.200s: %s; %s", words->what, path, why,
                   words->otherwise);
}

/* True if only this user, root and their own groups can rename files in this directory. */
static bool is_safe_above(int fd)
{
    struct stat is;

    if (fstat(fd, &is) != 0 || (is.st_uid != 0 && is.st_uid != geteuid()))
        return false;
    if ((is.st_mode & S_ISVTX) != 0)
        return true;
    return (is.st_mode & S_IWOTH) == 0 &&
           ((is.st_mode & S_IWGRP) == 0 || is.st_gid == (is.st_uid == 0 ? 0 : getegid()));
}

/*
 * Open a directory; if it doesn't exist and `creates`, create it. Symbolic links are followed, as
 * is_safe_above() has checked who may create them; but not if `name` is the last of the path.
 */
static int open_in(int above, const char *name, bool is_last, bool creates)
{
    bool is_made = creates && mkdirat(above, name, 0700) == 0;
    int failed = errno;
    int fd;

    if (is_made)
        (void)!fchmodat(above, name, 0700, 0); /* the umask may have forbidden rights */
    fd = openat(above, name, (is_last ? O_RDONLY | O_NOFOLLOW : O_PATH) | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && creates)
        errno = failed;
    return fd;
}

/* Fails unless only this user can access the directory: rlock trusts the files in it. */
static enum rlock_status check(int fd, const char *path, const struct private_dir_words *words,
                               struct rlock_error *err)
{
    struct stat is;
    char why[160];

    if (fstat(fd, &is) != 0)
        return fail(words, path, strerror(errno), err);
    if (is.st_uid == geteuid() && (is.st_mode & 077) == 0)
        return RLOCK_OK;
    snprintf(why, sizeof why,
             "must be a directory that only this user can access, but user %u owns it, with mode "
             "%o",
             (unsigned)is.st_uid, (unsigned)is.st_mode & 07777);
    return fail(words, path, why, err);
}

/* Open the directory `path`. Its first `n_above` bytes name a directory that must exist already. */
static enum rlock_status open_below(const char *path, size_t n_above, bool creates,
                                    const struct private_dir_words *words, int *fd,
                                    struct rlock_error *err)
{
    const char *at = path + n_above + strspn(path + n_above, "/");
    char name[PATH_MAX];
    char why[200];
    enum rlock_status st;
    int dir;

    snprintf(name, sizeof name, "%.*s", n_above == 0 ? 1 : (int)n_above, path);
    dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (dir >= 0 && *at != '\0') {
        size_t n = strcspn(at, "/");
        int above = dir;

        if (!is_safe_above(above)) {
            close(above);
            snprintf(why, sizeof why, "others can change %.*s, which is above it",
                     at - path < 160 ? (int)(at - path) : 160, path);
            return fail(words, path, why, err);
        }
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        at += n + strspn(at + n, "/");
        dir = open_in(above, name, *at == '\0', creates);
        close(above);
    }
    if (dir < 0)
        return errno == ENOENT && !creates ? RLOCK_GONE : fail(words, path, strerror(errno), err);
    st = check(dir, path, words, err);
    if (st == RLOCK_OK)
        *fd = dir;
    else
        close(dir);
    return st;
}

enum rlock_status private_dir_open(const char *path, bool creates,
                                   const struct private_dir_words *words, int *fd,
                                   struct rlock_error *err)
{
    size_t n = strlen(path);

    while (n > 0 && path[n - 1] == '/')
        n--;
    if (path[0] != '/' || n == 0 || n >= PATH_MAX)
        return fail(words, path, "not the absolute path of a directory", err);
    while (path[n - 1] != '/')
        n--;
    return open_below(path, n - 1, creates, words, fd, err);
}

static bool names_no_home(const char *path)
{
    return path == NULL || path[0] != '/' || strcmp(path, "/") == 0 ||
           strcmp(path, "/nonexistent") == 0;
}

enum rlock_status private_dir_open_home(const char *name, bool creates,
                                        const struct private_dir_words *words, int *fd,
                                        struct rlock_error *err)
{
    const struct passwd *user = user_entry();
    char path[PATH_MAX];
    struct stat is;
    bool exists;

    if (user == NULL || names_no_home(user->pw_dir))
        return RLOCK_PENDING;
    exists = stat(user->pw_dir, &is) == 0;
    if (user->pw_uid < SYSTEM_UIDS && (!exists || is.st_uid != geteuid()))
        return RLOCK_PENDING;
    if (exists && is.st_uid != geteuid())
        return fail(words, user->pw_dir, "belongs to another user", err);
    if (snprintf(path, sizeof path, "%s/.local/state/rlock/%s", user->pw_dir, name) >= PATH_MAX)
        return fail(words, user->pw_dir, strerror(ENAMETOOLONG), err);
    return open_below(path, strlen(user->pw_dir), creates, words, fd, err);
}

void private_dir_path(int dir, char *path, size_t room)
{
    char link[32];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    n = readlink(link, path, room - 1);
    path[n > 0 ? n : 0] = '\0';
}
