/* SPDX-License-Identifier: MIT */
/*
 * private_server: a private server on a Unix socket, for locks on one machine.
 *
 * Each rlock that uses the server holds a shared flock(2) on the file PRIVATE_SERVER_USERS. The
 * guard of a command holds the flock as well, for as long as the command may run. The kernel drops
 * the flock of a process when the process ends, even by KILL. From the flock follow two rules:
 *
 * - The server ends when no process holds the flock any more.
 * - An rlock starts the next server only while it holds the exclusive flock, so when no process
 *   uses the previous server any more.
 *
 * The second rule keeps two commands from running under the same lock after a server was killed:
 *
 * 1. The server is killed. The locks are gone, but the commands under these locks still run.
 * 2. Each rlock has an idle connection to the server. The kernel closes the connection, and rlock
 *    ends its command.
 * 3. An rlock that only waits for a lock drops its shared flock: it has no command to end, and
 *    would delay step 4.
 * 4. When all commands have ended, another rlock gets the exclusive flock and starts the next
 *    server.
 *
 * A cleaner of temporary files may remove a file while processes hold a flock on it, and the next
 * process creates a new file. So a flock counts only while the locked file is the one in the
 * directory.
 */
#include "session/private_server.h"

#include "base/err.h"
#include "session/private_server_dir.h"
#include "session/private_server_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_MS 2

static enum rlock_status fail_busy(struct rlock_error *err)
{
    return err_set(err, RLOCK_BUSY, 0,
                   "local: the private server has ended, and processes that used it, or that start "
                   "the next one, still run: no lock is granted before they have finished");
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/*
 * A blocking flock(2) could not be ended at a deadline or by a stop descriptor. So the callers try
 * without blocking, and call this function between two tries.
 *
 * Returns  RLOCK_OK (try again), RLOCK_BUSY (the deadline is over) or RLOCK_STOPPED.
 */
static enum rlock_status pause_before_retry(struct rlock_deadline deadline)
{
    struct pollfd stop = {.fd = deadline.stop_fd, .events = POLLIN};

    if (deadline.at_ms != RLOCK_NEVER && rlock_clock_ms() >= deadline.at_ms)
        return RLOCK_BUSY;
    return poll(&stop, 1, RETRY_MS) > 0 ? RLOCK_STOPPED : RLOCK_OK;
}

/* ---- one attempt to use the server ---- */

/*
 * Try once to connect to the server as one of its users.
 *
 * Returns  RLOCK_OK: we are connected, and hold the shared flock.
 *          RLOCK_PENDING: no server answers, and no process uses one. We hold the exclusive flock,
 *          and may start a server.
 *          RLOCK_BUSY: another process holds the exclusive flock, or a server without users is
 *          about to end. Try again.
 */
static enum rlock_status try_join(struct private_server *server, int dir, struct rlock_error *err)
{
    if (server->users_fd >= 0 &&
        !private_server_dir_has(dir, PRIVATE_SERVER_USERS, server->users_fd))
        close_fd(&server->users_fd);
    if (server->users_fd < 0)
        server->users_fd = private_server_dir_open_file(dir, PRIVATE_SERVER_USERS);
    if (server->users_fd < 0)
        return err_set(err, RLOCK_E_SYSTEM, errno,
                       "local: can't open the lock file " PRIVATE_SERVER_USERS);
    if (flock(server->users_fd, LOCK_SH | LOCK_NB) == 0) {
        server->alive_fd = private_server_process_connect(dir);
        if (server->alive_fd >= 0 &&
            private_server_dir_has(dir, PRIVATE_SERVER_USERS, server->users_fd))
            return RLOCK_OK;
        if (server->alive_fd < 0 && errno == EPERM)
            return err_set(
                err, RLOCK_E_CONFIG, 0,
                "local: another user's process listens on the socket of the private server");
        close_fd(&server->alive_fd);
    }
    if (flock(server->users_fd, LOCK_EX | LOCK_NB) == 0 &&
        private_server_dir_has(dir, PRIVATE_SERVER_USERS, server->users_fd)) {
        server->alive_fd = private_server_process_connect(dir);
        if (server->alive_fd < 0 && errno != EAGAIN)
            return RLOCK_PENDING;
        /*
         * A server runs that has no users: either the server ends soon, or the next try makes this
         * process its user.
         */
        close_fd(&server->alive_fd);
    }
    flock(server->users_fd, LOCK_UN);
    return RLOCK_BUSY;
}

/* ---- starting the server ---- */

/*
 * Take the exclusive flock on PRIVATE_SERVER_START. Of several processes that find no server at the
 * same time, only the one with this flock starts a server.
 *
 *   start_fd  out: the file with the flock, on RLOCK_OK; else -1
 *
 * Returns  RLOCK_OK, RLOCK_BUSY (the deadline is over), RLOCK_STOPPED or RLOCK_E_SYSTEM.
 */
static enum rlock_status lock_start(int dir, struct rlock_deadline deadline, int *start_fd,
                                    struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    *start_fd = -1;
    while (st == RLOCK_OK) {
        if (*start_fd < 0)
            *start_fd = private_server_dir_open_file(dir, PRIVATE_SERVER_START);
        if (*start_fd < 0)
            return err_set(err, RLOCK_E_SYSTEM, errno,
                           "local: can't open the lock file " PRIVATE_SERVER_START);
        if (flock(*start_fd, LOCK_EX | LOCK_NB) == 0) {
            if (private_server_dir_has(dir, PRIVATE_SERVER_START, *start_fd))
                return RLOCK_OK;
            close_fd(start_fd);
            continue;
        }
        st = pause_before_retry(deadline);
    }
    close_fd(start_fd);
    return st;
}

/*
 * Start the server. The caller holds the exclusive flocks on PRIVATE_SERVER_USERS and on
 * PRIVATE_SERVER_START.
 *
 * Here the flock on PRIVATE_SERVER_USERS becomes a shared one, as that of a user. flock(2) does
 * that in two steps, unlock and lock, so another rlock may get the exclusive flock in between. That
 * rlock finds no server, drops the flock, and waits for PRIVATE_SERVER_START, which we hold.
 */
static enum rlock_status start(struct private_server *server, int dir,
                               struct rlock_deadline deadline, struct rlock_error *err)
{
    enum rlock_status st;

    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    while (flock(server->users_fd, LOCK_SH) != 0)
        if (errno != EINTR)
            return err_set(err, RLOCK_E_SYSTEM, errno,
                           "local: can't lock the file " PRIVATE_SERVER_USERS);
    st = private_server_process_start(dir, deadline, err);
    if (st != RLOCK_OK)
        return st;
    server->alive_fd = private_server_process_connect(dir);
    if (server->alive_fd < 0)
        return err_set(err, RLOCK_E_UNREACHABLE, 0,
                       "local: the private server was killed as it started");
    server->clients_max = private_server_process_clients_max(server->alive_fd);
    return RLOCK_OK;
}

static enum rlock_status join(struct private_server *server, int dir,
                              struct rlock_deadline deadline, int64_t start_ms,
                              struct rlock_error *err)
{
    enum rlock_status st = try_join(server, dir, err);
    int start_fd;

    if (st == RLOCK_PENDING)
        flock(server->users_fd, LOCK_UN); /* another process may need the flock to start a server */
    if (st != RLOCK_PENDING && st != RLOCK_BUSY)
        return st;
    st = lock_start(dir, deadline, &start_fd, err);
    while (st == RLOCK_OK) {
        st = try_join(server, dir, err);
        if (st != RLOCK_BUSY)
            break;
        st = pause_before_retry(deadline);
        if (st == RLOCK_OK)
            continue;
    }
    if (st == RLOCK_PENDING)
        st = start(server, dir,
                   (struct rlock_deadline){rlock_clock_ms() + start_ms, deadline.stop_fd}, err);
    close_fd(&start_fd);
    return st;
}

enum rlock_status private_server_open(struct private_server *server, struct rlock_deadline deadline,
                                      int64_t start_ms, struct rlock_error *err)
{
    enum rlock_status st;

    *server = (struct private_server)PRIVATE_SERVER_NONE;
    st = private_server_dir_open(&server->dir_fd, err);
    if (st == RLOCK_OK)
        st = join(server, server->dir_fd, deadline, start_ms, err);
    if (st == RLOCK_OK)
        snprintf(server->url, sizeof server->url, "unix:///proc/self/fd/%d/" PRIVATE_SERVER_SOCKET,
                 server->dir_fd);
    else
        private_server_close(server);
    return st == RLOCK_BUSY ? fail_busy(err) : st;
}

bool private_server_has_ended(struct private_server *server)
{
    pid_t pid;
    ssize_t n;
    char byte;

    if (server->alive_fd < 0)
        return false;
    pid = private_server_process_pid(server->alive_fd);
    n = recv(server->alive_fd, &byte, sizeof byte, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    close_fd(&server->alive_fd);
    if (n > 0) /* the server sent "max number of clients reached" and closed: it runs */
        return false;
    server->alive_fd = private_server_process_connect(server->dir_fd);
    if (server->alive_fd < 0 && errno == EAGAIN) /* the socket's backlog is full: a server runs */
        return false;
    if (server->alive_fd >= 0 && private_server_process_pid(server->alive_fd) == pid)
        return false;
    close_fd(&server->alive_fd);
    return true;
}

/* True if the server has ended; false if it runs, but was too slow to answer in time. */
static bool has_failed(struct private_server *server)
{
    if (server->alive_fd >= 0)
        return private_server_has_ended(server);
    server->alive_fd = private_server_process_connect(server->dir_fd);
    return server->alive_fd < 0 && errno != EAGAIN;
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

    if (server->dir_fd < 0 || (server->users_fd >= 0 && !has_failed(server)))
        return;
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0 || dup3(nothing, server->dir_fd, O_CLOEXEC) < 0) {
        close_fd(&nothing);
        return;
    }
    close(nothing);
    close_fd(&server->users_fd);
    if (private_server_open(&next, now, start_ms, &err) != RLOCK_OK)
        return;
    server->users_fd = next.users_fd;
    server->alive_fd = next.alive_fd;
    dup3(next.dir_fd, server->dir_fd, O_CLOEXEC);
    close(next.dir_fd);
}

void private_server_close(struct private_server *server)
{
    close_fd(&server->users_fd);
    close_fd(&server->alive_fd);
    close_fd(&server->dir_fd);
}
