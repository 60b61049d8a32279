/* SPDX-License-Identifier: MIT */
/*
 * private_server_dir: the directory of the private server, the same for all processes of a user.
 *
 * If two processes of one user chose two directories, they would start two servers, and both
 * servers would grant the same lock. So the choice depends on nothing that differs between two
 * processes of one user on one machine: not on a login (XDG_RUNTIME_DIR, /run/user/UID), not on
 * HOME, and not on /tmp, of which a systemd unit may have its own (PrivateTmp=). The first of these
 * that applies is used:
 *
 *   RLOCK_LOCAL_DIR is set       the directory that it names
 *   the user is root             /run/rlock
 *   the user has a home          ~/.local/state/rlock/BOOT_ID, in the home of the user database
 *   else                         /var/tmp/rlock-UID
 *
 * In a home no cleaner removes files, and no other user can create the directory first. If rlock
 * can't write to the home at present (ProtectHome=, not mounted), rlock fails: to use another
 * directory would be to start a second server. Several machines may share a home, but a Unix socket
 * works on one machine only. So the path contains the kernel's boot ID, which a container has in
 * common with its host.
 *
 * A user has no home if the user database has no entry for the user, if the entry names no home, or
 * if the user is a system account and the home belongs to another user.
 *
 * rlock opens each directory first, and checks the open descriptor. So nobody can replace the
 * directory between the check and its use.
 */
#include "session/private_server_dir.h"

#include "base/err.h"
#include "process/user.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SET_ANOTHER "set RLOCK_LOCAL_DIR to use another directory"
#define SYSTEM_UIDS 1000 /* system accounts have smaller user IDs: UID_MIN of login.defs(5) */
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 36
/*
 * A directory whose mtime is older than this is unused: a running server updates the mtime each
 * hour.
 */
#define UNUSED_S (30 * 24 * 3600)

/* ---- one directory ---- */

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

static bool is_ours_alone(const struct stat *is)
{
    return S_ISDIR(is->st_mode) && is->st_uid == geteuid() && (is->st_mode & 077) == 0;
}

/*
 * Open the directory `name`, if only this user can change it. Another user who can write to the
 * directory could start a server there, and rlock would trust that server. `path` is for messages
 * only.
 */
static enum rlock_status open_private(int above, const char *name, const char *path, int *fd,
                                      struct rlock_error *err)
{
    struct stat is;

    if (!is_safe_above(above))
        return err_set(err, RLOCK_E_CONFIG, 0,
                       "local: %.100s: others can change the directory above it; " SET_ANOTHER,
                       path);
    if (fstatat(above, name, &is, AT_SYMLINK_NOFOLLOW) != 0)
        return err_set(err, RLOCK_E_CONFIG, 0, "local: %.100s: %s; " SET_ANOTHER, path,
                       strerror(errno));
    if (!is_ours_alone(&is))
        return err_set(
            err, RLOCK_E_CONFIG, 0,
            "local: %.100s: must be a directory that only this user can access, but user "
            "%u owns it, with mode %o; " SET_ANOTHER,
            path, (unsigned)is.st_uid, (unsigned)is.st_mode & 07777);
    if ((is.st_mode & 0700) != 0700) /* its creator's umask took the owner's rights */
        (void)!fchmodat(above, name, 0700, 0);
    *fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0)
        return err_set(err, RLOCK_E_CONFIG, 0, "local: %.100s: %s; " SET_ANOTHER, path,
                       strerror(errno));
    if (fstat(*fd, &is) == 0 && is_ours_alone(&is))
        return RLOCK_OK;
    close(*fd);
    *fd = -1;
    return err_set(err, RLOCK_E_CONFIG, 0,
                   "local: %.100s: another process replaced the directory while rlock opened it",
                   path);
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

/* `creates`: make the directory if it isn't there. */
static enum rlock_status open_path(const char *path, bool creates, int *fd, struct rlock_error *err)
{
    char above[PATH_MAX];
    char name[NAME_MAX + 1];
    const char *last;
    enum rlock_status st;
    int dir;

    if (!split(path, above, &last))
        return err_set(err, RLOCK_E_CONFIG, 0,
                       "local: %.100s: not the absolute path of a directory", path);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(last, "/"), last);
    dir = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set(err, RLOCK_E_CONFIG, 0, "local: %.100s: %s; " SET_ANOTHER, above,
                       strerror(errno));
    if (creates && is_safe_above(dir) && mkdirat(dir, name, 0700) != 0 && errno != EEXIST)
        st = err_set(err, RLOCK_E_CONFIG, 0, "local: %.100s: %s; " SET_ANOTHER, path,
                     strerror(errno));
    else
        st = open_private(dir, name, path, fd, err);
    close(dir);
    return st;
}

/* ---- below a home ---- */

static bool read_boot_id(char id[BOOT_ID_BYTES + 1])
{
    int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, id, BOOT_ID_BYTES);

    if (fd >= 0)
        close(fd);
    id[BOOT_ID_BYTES] = '\0';
    return n == BOOT_ID_BYTES && strspn(id, "0123456789abcdef-") == BOOT_ID_BYTES;
}

/* Remove the directory of an earlier boot, or of another machine, if it is unused. */
static void remove_unused(int dir, const char *name)
{
    struct stat is;
    int fd;

    if (fstatat(dir, name, &is, AT_SYMLINK_NOFOLLOW) != 0 || !is_ours_alone(&is) ||
        is.st_mtime > time(NULL) - UNUSED_S)
        return;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    unlinkat(fd, PRIVATE_SERVER_SOCKET, 0);
    unlinkat(fd, PRIVATE_SERVER_USERS, 0);
    unlinkat(fd, PRIVATE_SERVER_START, 0);
    close(fd);
    unlinkat(dir, name, AT_REMOVEDIR);
}

static void remove_all_unused(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *all = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (all != NULL && (entry = readdir(all)) != NULL)
        if (strlen(entry->d_name) == BOOT_ID_BYTES)
            remove_unused(dir, entry->d_name);
    if (all != NULL)
        closedir(all);
    else if (fd >= 0)
        close(fd);
}

/* Open or create a directory. A symbolic link is followed, as only this user could create it. */
static int open_below(int above, const char *name)
{
    int fd;

    if (!is_safe_above(above)) {
        errno = EPERM;
        return -1;
    }
    (void)!mkdirat(above, name, 0700);
    fd = openat(above, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd;
}

static enum rlock_status open_state(int home, const char *path, int *fd, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_E_CONFIG;
    char id[BOOT_ID_BYTES + 1];
    char shown[PATH_MAX];
    int local = open_below(home, ".local");
    int state = local < 0 ? -1 : open_below(local, "state");
    int all = -1;

    snprintf(shown, sizeof shown, "%.3000s/.local/state/rlock", path);
    if (!read_boot_id(id))
        err_set(err, RLOCK_E_CONFIG, 0, "local: " BOOT_ID " can't be read; " SET_ANOTHER);
    else if (state < 0)
        err_set(err, RLOCK_E_CONFIG, 0, "local: %.100s: %s; " SET_ANOTHER, shown, strerror(errno));
    else
        st = RLOCK_OK;
    if (st == RLOCK_OK) {
        (void)!mkdirat(state, "rlock", 0700);
        st = open_private(state, "rlock", shown, &all, err);
    }
    if (st == RLOCK_OK) {
        if (mkdirat(all, id, 0700) == 0)
            remove_all_unused(all);
        snprintf(shown, sizeof shown, "%.3000s/.local/state/rlock/%s", path, id);
        st = open_private(all, id, shown, fd, err);
        close(all);
    }
    if (state >= 0)
        close(state);
    if (local >= 0)
        close(local);
    return st;
}

static bool names_no_home(const char *path)
{
    return path == NULL || path[0] != '/' || strcmp(path, "/") == 0 ||
           strcmp(path, "/nonexistent") == 0;
}

/* Open the directory below the user's home. RLOCK_PENDING: the user has no home. */
static enum rlock_status open_in_home(int *fd, struct rlock_error *err)
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
        return err_set(err, RLOCK_E_CONFIG, 0, "local: home %.100s: %s; " SET_ANOTHER, user->pw_dir,
                       strerror(errno));
    if (fstat(home, &is) == 0 && is.st_uid == geteuid())
        st = open_state(home, user->pw_dir, fd, err);
    else if (user->pw_uid < SYSTEM_UIDS)
        st = RLOCK_PENDING;
    else
        st = err_set(err, RLOCK_E_CONFIG, 0, "local: home %.100s: another user's; " SET_ANOTHER,
                     user->pw_dir);
    close(home);
    return st;
}

/* ---- the choice of the directory ---- */

static enum rlock_status open_default(int *fd, struct rlock_error *err)
{
    char path[64];
    enum rlock_status st;

    if (geteuid() == 0)
        return open_path("/run/rlock", true, fd, err);
    st = open_in_home(fd, err);
    if (st != RLOCK_PENDING)
        return st;
    snprintf(path, sizeof path, "/var/tmp/rlock-%u", (unsigned)geteuid());
    return open_path(path, true, fd, err);
}

static const char *path_from_environment(void)
{
    const char *path = getenv("RLOCK_LOCAL_DIR");

    return path != NULL && path[0] != '\0' ? path : NULL;
}

enum rlock_status private_server_dir_open(int *fd, struct rlock_error *err)
{
    mode_t mask = umask(077);
    enum rlock_status st = path_from_environment() != NULL
                               ? open_path(path_from_environment(), true, fd, err)
                               : open_default(fd, err);

    umask(mask);
    return st;
}

bool private_server_dir_open_older(size_t nth, int *fd)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    unsigned uid = (unsigned)geteuid();
    struct rlock_error err;
    char path[PATH_MAX] = "";

    *fd = -1;
    if (path_from_environment() != NULL || nth > 3)
        return false;
    if (nth == 0 && runtime != NULL)
        snprintf(path, sizeof path, "%.3000s/rlock", runtime);
    else if (nth == 1)
        snprintf(path, sizeof path, "/run/user/%u/rlock", uid);
    else if (nth == 2)
        snprintf(path, sizeof path, "/tmp/rlock-%u", uid);
    else if (nth == 3)
        snprintf(path, sizeof path, "/var/tmp/rlock-%u", uid);
    if (path[0] != '\0' && open_path(path, false, fd, &err) != RLOCK_OK)
        *fd = -1;
    return true;
}

bool private_server_dir_is_same(int a, int b)
{
    struct stat one;
    struct stat other;

    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* ---- the files in the directory ---- */

int private_server_dir_open_file(int dir, const char *name)
{
    mode_t mask = umask(077);
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    umask(mask);
    return fd;
}

bool private_server_dir_has(int dir, const char *name, int file)
{
    struct stat there;
    struct stat ours;

    return fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(file, &ours) == 0 &&
           there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}
