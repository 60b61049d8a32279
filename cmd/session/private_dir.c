/* SPDX-License-Identifier: MIT */
/*
 * private_dir: opens directories that no other user can change.
 *
 * Each directory is opened first, and then its open descriptor is checked. So nobody can replace
 * the directory between the check and its use.
 *
 * A user has no home if the user database has no entry for the user, if the entry names no home, or
 * if the user is a system account and the home belongs to another user.
 */
#include "session/private_dir.h"

#include "base/err.h"
#include "process/user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_UIDS 1000 /* system accounts have smaller user IDs: UID_MIN of login.defs(5) */

static enum rlock_status fail(const struct private_dir_words *words, const char *path,
                              const char *why, struct rlock_error *err)
{
    return err_set(err, RLOCK_E_CONFIG, 0, "%s: %.100s: %s; %s", words->what, path, why,
                   words->otherwise);
}

/* True if only this user, root and their own groups can rename files in this directory. */
static bool is_safe_above(int fd)
{
    struct stat is;

    if (fstat(fd, &is) != 0 || !S_ISDIR(is.st_mode))
        return false;
    if (is.st_uid != 0 && is.st_uid != geteuid())
        return false;
    if ((is.st_mode & S_ISVTX) != 0)
        return true;
    return (is.st_mode & S_IWOTH) == 0 &&
           ((is.st_mode & S_IWGRP) == 0 || is.st_gid == (is.st_uid == 0 ? 0 : getegid()));
}

bool private_dir_is_ours_alone(const struct stat *is)
{
    return S_ISDIR(is->st_mode) && is->st_uid == geteuid() && (is->st_mode & 077) == 0;
}

/*
 * Another user who can write to the directory could put files there, and rlock would trust these
 * files. So rlock refuses such a directory.
 */
enum rlock_status private_dir_open(int above, const char *name, const char *path,
                                   const struct private_dir_words *words, int *fd,
                                   struct rlock_error *err)
{
    char why[160];
    struct stat is;

    if (!is_safe_above(above))
        return fail(words, path, "others can change the directory above it", err);
    if (fstatat(above, name, &is, AT_SYMLINK_NOFOLLOW) != 0)
        return fail(words, path, strerror(errno), err);
    snprintf(why, sizeof why,
             "must be a directory that only this user can access, but user %u owns it, with mode "
             "%o",
             (unsigned)is.st_uid, (unsigned)is.st_mode & 07777);
    if (!private_dir_is_ours_alone(&is))
        return fail(words, path, why, err);
    if ((is.st_mode & 0700) != 0700) /* mkdir(2) left out rights that a umask forbade */
        (void)!fchmodat(above, name, 0700, 0);
    *fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0)
        return fail(words, path, strerror(errno), err);
    if (fstat(*fd, &is) == 0 && private_dir_is_ours_alone(&is))
        return RLOCK_OK;
    close(*fd);
    *fd = -1;
    return err_set(err, RLOCK_E_CONFIG, 0,
                   "%s: %.100s: another process replaced the directory while rlock opened it",
                   words->what, path);
}

/* Split a path into the directory above, and the last `name`, which points into `path`. */
static bool split(const char *path, char above[PATH_MAX], const char **name)
{
    size_t n = strlen(path);
    const char *slash;

    while (n > 1 && path[n - 1] == '/')
        n--;
    if (path[0] != '/' || n >= PATH_MAX || n < 2)
        return false;
    memcpy(above, path, n);
    above[n] = '\0';
    slash = strrchr(above, '/');
    *name = path + (slash - above) + 1;
    above[slash == above ? 1 : slash - above] = '\0';
    return true;
}

enum rlock_status private_dir_open_path(const char *path, bool creates,
                                        const struct private_dir_words *words, int *fd,
                                        struct rlock_error *err)
{
    char above[PATH_MAX];
    char name[NAME_MAX + 1];
    const char *last;
    enum rlock_status st;
    int dir;

    if (!split(path, above, &last))
        return err_set(err, RLOCK_E_CONFIG, 0, "%s: %.100s: not the absolute path of a directory",
                       words->what, path);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(last, "/"), last);
    dir = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return fail(words, above, strerror(errno), err);
    if (creates && is_safe_above(dir) && mkdirat(dir, name, 0700) != 0 && errno != EEXIST)
        st = fail(words, path, strerror(errno), err);
    else
        st = private_dir_open(dir, name, path, words, fd, err);
    close(dir);
    return st;
}

/* ---- directories below the user's home ---- */

/*
 * Open a directory; if it doesn't exist and `creates`, create it. A symbolic link is followed, as
 * only this user could create it.
 */
static int open_below(int above, const char *name, bool creates)
{
    int fd;

    if (!is_safe_above(above)) {
        errno = EPERM;
        return -1;
    }
    if (creates)
        (void)!mkdirat(above, name, 0700);
    fd = openat(above, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd;
}

static enum rlock_status open_in_home(int home, const char *path, bool creates,
                                      const struct private_dir_words *words, int *fd,
                                      struct rlock_error *err)
{
    int local = open_below(home, ".local", creates);
    int state = local < 0 ? -1 : open_below(local, "state", creates);
    char shown[PATH_MAX];
    enum rlock_status st;

    snprintf(shown, sizeof shown, "%.3000s/.local/state/rlock", path);
    if (state < 0) {
        st = fail(words, shown, strerror(errno), err);
    } else {
        if (creates)
            (void)!mkdirat(state, "rlock", 0700);
        st = private_dir_open(state, "rlock", shown, words, fd, err);
        close(state);
    }
    if (local >= 0)
        close(local);
    return st;
}

static bool names_no_home(const char *path)
{
    return path == NULL || path[0] != '/' || strcmp(path, "/") == 0 ||
           strcmp(path, "/nonexistent") == 0;
}

enum rlock_status private_dir_open_state(bool creates, const struct private_dir_words *words,
                                         int *fd, struct rlock_error *err)
{
    const struct passwd *user = user_entry();
    enum rlock_status st;
    struct stat is;
    int home;

    if (user == NULL || names_no_home(user->pw_dir))
        return RLOCK_PENDING;
    home = open(user->pw_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (home < 0 && user->pw_uid < SYSTEM_UIDS)
        return RLOCK_PENDING;
    if (home < 0)
        return fail(words, user->pw_dir, strerror(errno), err);
    if (fstat(home, &is) == 0 && is.st_uid == geteuid())
        st = open_in_home(home, user->pw_dir, creates, words, fd, err);
    else if (user->pw_uid < SYSTEM_UIDS)
        st = RLOCK_PENDING;
    else
        st = fail(words, user->pw_dir, "belongs to another user", err);
    close(home);
    return st;
}
