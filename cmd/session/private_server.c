/* SPDX-License-Identifier: MIT */
/*
 * private_server: a private server on a Unix socket, for locks on one machine.
 *
 * Two servers of one user would both grant the same lock. So open_dir() chooses a directory without
 * regard to the login, to HOME, or to /tmp, of which a systemd unit may have its own. Several
 * machines may share a home, so a path in the home has the boot ID, which a container has in common
 * with its host.
 *
 * Each rlock that uses the server, and the guard of a command, holds a shared flock(2) on the file
 * PRIVATE_SERVER_USERS. The kernel drops the flock when the process ends, even by KILL. Only a
 * process with the exclusive flock starts or ends a server, so only while nobody uses one.
 *
 * If a server is killed, its locks are gone while the commands under them still run. Each rlock
 * notices the server's end, and ends its command; an rlock that only waits for a lock drops its
 * flock. When all commands have ended, an rlock gets the exclusive flock, and starts a server.
 */
#include "session/private_server.h"

#include "base/err.h"
#include "output/wall_time.h"
#include "process/fds.h"
#include "session/environment.h"
#include "session/private_dir.h"
#include "session/private_server_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define RETRY_MS 2
#define ENDING_MS 100 /* a process that is killed closes its connections, and then ends */
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 36
#define DIR_BYTES 200             /* for a path in messages; a longer one is cut */
#define UNUSED_S (30 * 24 * 3600) /* while a server runs, its keeper updates the mtime each hour */

/* ---- the directory ---- */

static bool read_boot_id(char id[BOOT_ID_BYTES + 1])
{
    int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, id, BOOT_ID_BYTES);

    fds_close(&fd);
    id[BOOT_ID_BYTES] = '\0';
    return n == BOOT_ID_BYTES && strspn(id, "0123456789abcdef-") == BOOT_ID_BYTES;
}

/*
 * Remove the directories beside that of this boot which no server has used for a month. They are of
 * earlier boots, or of other machines that share the home.
 */
static void remove_unused(int dir)
{
    static const char *const files[] = {"/" PRIVATE_SERVER_SOCKET, "/" PRIVATE_SERVER_USERS};
    int above = openat(dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *all = above < 0 ? NULL : fdopendir(above);
    const struct dirent *entry;
    char path[BOOT_ID_BYTES + 20];
    struct stat is;
    size_t i;

    while (all != NULL && (entry = readdir(all)) != NULL) {
        if (strlen(entry->d_name) != BOOT_ID_BYTES ||
            fstatat(above, entry->d_name, &is, AT_SYMLINK_NOFOLLOW) != 0 ||
            is.st_mtime > wall_time_now_ms() / 1000 - UNUSED_S)
            continue;
        for (i = 0; i < sizeof files / sizeof files[0]; i++) {
            snprintf(path, sizeof path, "%.*s%s", BOOT_ID_BYTES, entry->d_name, files[i]);
            unlinkat(above, path, 0);
        }
        unlinkat(above, entry->d_name, AT_REMOVEDIR);
    }
    if (all != NULL)
        closedir(all);
    else
        fds_close(&above);
}

static const struct private_dir_words words = {"local",
                                               "set RLOCK_LOCAL_DIR to use another directory"};

/* RLOCK_LOCAL_DIR; else /run/rlock for root; else in the home, or in /var/tmp without a home. */
static enum rlock_status open_dir(int *fd, struct rlock_error *err)
{
    const char *chosen = environment_value("RLOCK_LOCAL_DIR");
    char id[BOOT_ID_BYTES + 1];
    char path[64];
    enum rlock_status st;

    if (*chosen != '\0')
        return private_dir_open(chosen, true, &words, fd, err);
    if (geteuid() == 0)
        return private_dir_open("/run/rlock", true, &words, fd, err);
    if (!read_boot_id(id))
        return err_set(err, RLOCK_E_CONFIG, 0, "%s: " BOOT_ID " can't be read; %s", words.what,
                       words.otherwise);
    st = private_dir_open_home(id, true, &words, fd, err);
    if (st == RLOCK_OK && faccessat(*fd, PRIVATE_SERVER_USERS, F_OK, 0) != 0) /* the first use */
        remove_unused(*fd);
    if (st != RLOCK_PENDING)
        return st;
    snprintf(path, sizeof path, "/var/tmp/rlock-%u", (unsigned)geteuid());
    return private_dir_open(path, true, &words, fd, err);
}

/* Sets an error about a file in the directory, which says what the user can do. */
static enum rlock_status fail_at(const struct private_server *server, const char *what, int sys,
                                 struct rlock_error *err)
{
    enum rlock_status st = sys == EMFILE || sys == ENFILE ? RLOCK_E_SYSTEM : RLOCK_E_CONFIG;
    char dir[DIR_BYTES];

    private_dir_path(server->dir_fd, dir, sizeof dir);
    err_set(err, st, sys, "%s: %s/%s", words.what, dir, what);
    err_suffix(err, words.otherwise);
    return st;
}

/* ---- joining the server ---- */

/*
 * A blocking flock(2) could not be ended at a deadline or by a stop descriptor. So join() tries
 * without blocking, and calls this function between two tries.
 *
 * Returns  RLOCK_OK (try again), RLOCK_BUSY (the deadline is over) or RLOCK_STOPPED.
 */
static enum rlock_status pause_before_retry(const struct private_server *server,
                                            struct rlock_deadline deadline, struct rlock_error *err)
{
    struct pollfd stop = {.fd = deadline.stop_fd, .events = POLLIN};
    char dir[DIR_BYTES];

    if (deadline.at_ms == RLOCK_NEVER || rlock_clock_ms() < deadline.at_ms)
        return poll(&stop, 1, RETRY_MS) > 0 ? RLOCK_STOPPED : RLOCK_OK;
    private_dir_path(server->dir_fd, dir, sizeof dir);
    return err_set(
        err, RLOCK_BUSY, 0,
        "local: processes that used the last private server, or start the next, still "
        "run, and no lock is granted before they have ended: fuser %s/" PRIVATE_SERVER_USERS
        " lists them",
        dir);
}

/* False: errno says why the server isn't found, as after private_server_process_find(). */
static bool find(struct private_server *server)
{
    fds_close(&server->alive_fd);
    server->alive_fd = private_server_process_find(server->dir_fd);
    return server->alive_fd >= 0;
}

static bool has_ended(const struct private_server *server, int within_ms)
{
    struct pollfd end = {.fd = server->alive_fd, .events = POLLIN};

    return poll(&end, 1, within_ms) > 0;
}

/*
 * With the shared flock we are a user of the server that we have found, unless that server has
 * ended before: its keeper has the exclusive flock while it ends the server.
 *
 * With the exclusive flock we start a server, and the next turn of the loop makes our flock a
 * shared one. (On NFS the server may end meanwhile; a further turn then starts the next one.) If
 * find() finds a server that another rlock has started, we drop the flock and begin again.
 */
static enum rlock_status join(struct private_server *server, struct rlock_deadline deadline,
                              int64_t start_ms, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    while (st == RLOCK_OK) {
        if (find(server)) {
            if (flock(server->users_fd, LOCK_SH | LOCK_NB) == 0 && !has_ended(server, 0))
                return RLOCK_OK;
        } else if (errno == EPERM) {
            return fail_at(server, PRIVATE_SERVER_SOCKET ": another user's process listens on it",
                           0, err);
        } else if (errno != EAGAIN && flock(server->users_fd, LOCK_EX | LOCK_NB) == 0 &&
                   !find(server) && errno != EAGAIN) {
            struct rlock_deadline start = {rlock_clock_ms() + start_ms, deadline.stop_fd};

            st = private_server_process_start(server->dir_fd, start, err);
            continue;
        }
        flock(server->users_fd, LOCK_UN);
        st = pause_before_retry(server, deadline, err);
    }
    return st;
}

enum rlock_status private_server_open(struct private_server *server, struct rlock_deadline deadline,
                                      int64_t start_ms, struct rlock_error *err)
{
    enum rlock_status st;

    *server = (struct private_server)PRIVATE_SERVER_NONE;
    st = open_dir(&server->dir_fd, err);
    if (st == RLOCK_OK) {
        server->users_fd = private_server_process_open_users(server->dir_fd);
        st = server->users_fd >= 0
                 ? join(server, deadline, start_ms, err)
                 : fail_at(server, PRIVATE_SERVER_USERS " can't be opened", errno, err);
    }
    snprintf(server->url, sizeof server->url, "unix:///proc/self/fd/%d/" PRIVATE_SERVER_SOCKET,
             server->dir_fd);
    if (st != RLOCK_OK)
        private_server_close(server);
    return st;
}

bool private_server_has_ended(struct private_server *server)
{
    if (server->alive_fd < 0 || !has_ended(server, ENDING_MS))
        return false;
    fds_close(&server->alive_fd);
    return true;
}

/*
 * `url` leads to the server through dir_fd. We drop our flock first, so dir_fd must lead to no
 * server until we have the flock of the next one: a server on which we have no flock may end at any
 * time, and a lock that it granted would be gone. So dir_fd becomes /dev/null in the meantime.
 */
void private_server_reopen(struct private_server *server, int stop_fd, int64_t start_ms)
{
    struct rlock_deadline now = {rlock_clock_ms(), stop_fd};
    struct rlock_error err = {.status = RLOCK_OK};
    struct private_server next;
    int nothing;

    if (server->dir_fd < 0 || (server->users_fd >= 0 && !private_server_has_ended(server)))
        return;
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0 || dup3(nothing, server->dir_fd, O_CLOEXEC) < 0) {
        fds_close(&nothing);
        return;
    }
    close(nothing);
    fds_close(&server->users_fd);
    if (private_server_open(&next, now, start_ms, &err) != RLOCK_OK)
        return;
    server->users_fd = next.users_fd;
    server->alive_fd = next.alive_fd;
    dup3(next.dir_fd, server->dir_fd, O_CLOEXEC);
    close(next.dir_fd);
}

void private_server_close(struct private_server *server)
{
    fds_close(&server->users_fd);
    fds_close(&server->alive_fd);
    fds_close(&server->dir_fd);
}
