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
 */
#include "session/private_server_dir.h"

#include "base/err.h"
#include "output/wall_time.h"
#include "session/private_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 36
/*
 * A directory whose mtime is older than this is unused: a running server updates the mtime each
 * hour.
 */
#define UNUSED_S (30 * 24 * 3600)

static const struct private_dir_words words = {"local",
                                               "set RLOCK_LOCAL_DIR to use another directory"};

/* ---- the directory below the user's home ---- */

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

    if (fstatat(dir, name, &is, AT_SYMLINK_NOFOLLOW) != 0 || !private_dir_is_ours_alone(&is) ||
        is.st_mtime > wall_time_now_ms() / 1000 - UNUSED_S)
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

/* Open the directory below the user's home. RLOCK_PENDING: the user has no home. */
static enum rlock_status open_in_home(int *fd, struct rlock_error *err)
{
    char id[BOOT_ID_BYTES + 1];
    char shown[64];
    int all = -1;
    enum rlock_status st = private_dir_open_state(true, &words, &all, err);

    if (st != RLOCK_OK)
        return st;
    if (!read_boot_id(id)) {
        st = err_set(err, RLOCK_E_CONFIG, 0, "%s: " BOOT_ID " can't be read; %s", words.what,
                     words.otherwise);
    } else {
        if (mkdirat(all, id, 0700) == 0)
            remove_all_unused(all);
        snprintf(shown, sizeof shown, "~/.local/state/rlock/%s", id);
        st = private_dir_open(all, id, shown, &words, fd, err);
    }
    close(all);
    return st;
}

/* ---- the choice of the directory ---- */

static enum rlock_status open_default(int *fd, struct rlock_error *err)
{
    char path[64];
    enum rlock_status st;

    if (geteuid() == 0)
        return private_dir_open_path("/run/rlock", true, &words, fd, err);
    st = open_in_home(fd, err);
    if (st != RLOCK_PENDING)
        return st;
    snprintf(path, sizeof path, "/var/tmp/rlock-%u", (unsigned)geteuid());
    return private_dir_open_path(path, true, &words, fd, err);
}

static const char *path_from_environment(void)
{
    const char *path = getenv("RLOCK_LOCAL_DIR");

    return path != NULL && path[0] != '\0' ? path : NULL;
}

enum rlock_status private_server_dir_open(int *fd, struct rlock_error *err)
{
    mode_t mask = umask(077);
    enum rlock_status st =
        path_from_environment() != NULL
            ? private_dir_open_path(path_from_environment(), true, &words, fd, err)
            : open_default(fd, err);

    umask(mask);
    return st;
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
