/* SPDX-License-Identifier: MIT */
/*
 * private_server: a private server on a Unix socket, for locks on one machine.
 *
 * Each process that uses the server holds a shared flock on PRIVATE_SERVER_USERS, which the kernel drops
 * however the process ends. The guard of a command holds it too, for as long as the command may
 * run. That makes two promises:
 *
 *   the server ends when nobody uses it any more;
 *   the next server isn't started before nobody uses the previous one.
 *
 * The second promise is for a server that was killed:
 *
 *   1. The server is killed. Its locks are gone, while commands run under them.
 *   2. Each rlock has an idle connection to the server. The kernel closes it, and rlock ends its
 *      command.
 *   3. A newcomer starts the next server when it gets the exclusive flock: when all commands have
 *      ended.
 *   4. Whoever waits for a lock drops its shared flock, as it holds no lock and would hold up 3.
 *
 * An older version of rlock may have started a server in another place (see private_server_dir.c). That one
 * is used as long as anybody uses it. This must not lead to two servers:
 *
 *   1. Process A gets the exclusive flock in the older place: nobody uses the server there.
 *   2. Process B comes before that server has ended, and would use it.
 *   3. A starts a server in the new place.
 *
 * So A removes the socket in the older place while it has the flock, and B finds no server there.
 *
 * A cleaner of temporary files may remove the files that are locked. A flock therefore counts only
 * while the locked file is still the one in the directory.
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

#define TRY_AGAIN_MS 2

static enum rlock_status fail_busy(struct rlock_error *err)
{
    return err_set(err, RLOCK_BUSY, 0,
                   "local: its server has ended, and others who used it, or who start it anew, are "
                   "not through yet: nothing is granted before they are");
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* flock(2) has neither a deadline nor a stop descriptor, so it is tried again and again. */
static enum rlock_status pause_until(struct rlock_deadline deadline)
{
    struct pollfd stop = {.fd = deadline.stop_fd, .events = POLLIN};

    if (deadline.at_ms != RLOCK_NEVER && rlock_clock_ms() >= deadline.at_ms)
        return RLOCK_BUSY;
    return poll(&stop, 1, TRY_AGAIN_MS) > 0 ? RLOCK_STOPPED : RLOCK_OK;
}

/* ---- one attempt ---- */

/*
 * Tries once to join the server.
 *
 * RLOCK_OK       we have connected, and hold a shared flock on `users_fd` as a user of the server
 * RLOCK_PENDING  no server answers and nobody uses one: we hold the exclusive flock, and may start
 *                a server
 * RLOCK_BUSY     others hold the flock, or the server has no user and ends soon: try again
 */
static enum rlock_status try_join(struct private_server *server, int dir, struct rlock_error *err)
{
    if (server->users_fd >= 0 &&
        !private_server_dir_has(dir, PRIVATE_SERVER_USERS, server->users_fd))
        close_fd(&server->users_fd);
    if (server->users_fd < 0)
        server->users_fd = private_server_dir_open_file(dir, PRIVATE_SERVER_USERS);
    if (server->users_fd < 0)
        return err_set(err, RLOCK_E_SYSTEM, errno, "local: " PRIVATE_SERVER_USERS);
    if (flock(server->users_fd, LOCK_SH | LOCK_NB) == 0) {
        server->alive_fd = private_server_process_connect(dir);
        if (server->alive_fd >= 0 &&
            private_server_dir_has(dir, PRIVATE_SERVER_USERS, server->users_fd))
            return RLOCK_OK;
        if (server->alive_fd < 0 && errno == EPERM)
            return err_set(err, RLOCK_E_CONFIG, 0, "local: another user's process is its server");
        close_fd(&server->alive_fd);
    }
    if (flock(server->users_fd, LOCK_EX | LOCK_NB) == 0 &&
        private_server_dir_has(dir, PRIVATE_SERVER_USERS, server->users_fd)) {
        server->alive_fd = private_server_process_connect(dir);
        if (server->alive_fd < 0 && errno != EAGAIN)
            return RLOCK_PENDING;
        /* a server that has no user ends soon, or is used by us in the next attempt */
        close_fd(&server->alive_fd);
    }
    flock(server->users_fd, LOCK_UN);
    return RLOCK_BUSY;
}

/* ---- an older place ---- */

/* RLOCK_PENDING: nobody uses a server there, and nobody can any more. */
static enum rlock_status join_older(struct private_server *server, int dir,
                                    struct rlock_deadline deadline, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    if (faccessat(dir, PRIVATE_SERVER_USERS, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return RLOCK_PENDING;
    while (st == RLOCK_OK) {
        st = try_join(server, dir, err);
        if (st != RLOCK_BUSY)
            break;
        if (flock(server->users_fd, LOCK_EX | LOCK_NB) == 0) /* a server that has no users */
            st = RLOCK_PENDING;
        else
            st = pause_until(deadline);
    }
    if (st == RLOCK_PENDING)
        unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    if (st != RLOCK_OK)
        close_fd(&server->users_fd);
    return st;
}

/* ---- the place of today ---- */

/*
 * Of the processes that come at the same time one starts the server: that with the exclusive flock
 * on PRIVATE_SERVER_START, in `turn`. RLOCK_OK, or why there was no turn, with -1 in `turn`.
 */
static enum rlock_status take_turn(int dir, struct rlock_deadline deadline, int *turn,
                                   struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    *turn = -1;
    while (st == RLOCK_OK) {
        if (*turn < 0)
            *turn = private_server_dir_open_file(dir, PRIVATE_SERVER_START);
        if (*turn < 0)
            return err_set(err, RLOCK_E_SYSTEM, errno, "local: " PRIVATE_SERVER_START);
        if (flock(*turn, LOCK_EX | LOCK_NB) == 0) {
            if (private_server_dir_has(dir, PRIVATE_SERVER_START, *turn))
                return RLOCK_OK;
            close_fd(turn);
            continue;
        }
        st = pause_until(deadline);
    }
    close_fd(turn);
    return st;
}

/*
 * We have the exclusive flock, and turn it into a shared one. That isn't atomic, but whoever comes
 * in between does no harm: a newcomer drops the flock again and waits for its turn to start a
 * server, and there is no server whose waiter could take our flock for the end of all users.
 */
static enum rlock_status start(struct private_server *server, int dir,
                               struct rlock_deadline deadline, struct rlock_error *err)
{
    enum rlock_status st;

    unlinkat(dir, PRIVATE_SERVER_SOCKET, 0);
    while (flock(server->users_fd, LOCK_SH) != 0)
        if (errno != EINTR)
            return err_set(err, RLOCK_E_SYSTEM, errno, "local: flock");
    st = private_server_process_start(dir, deadline, err);
    if (st != RLOCK_OK)
        return st;
    server->alive_fd = private_server_process_connect(dir);
    if (server->alive_fd < 0)
        return err_set(err, RLOCK_E_UNREACHABLE, 0, "local: its server was killed as it started");
    server->clients_max = private_server_process_clients_max(server->alive_fd);
    return RLOCK_OK;
}

static enum rlock_status join(struct private_server *server, int dir,
                              struct rlock_deadline deadline, int64_t start_ms,
                              struct rlock_error *err)
{
    enum rlock_status st = try_join(server, dir, err);
    int turn;

    if (st == RLOCK_PENDING)
        flock(server->users_fd, LOCK_UN); /* the process with the turn needs this flock */
    if (st != RLOCK_PENDING && st != RLOCK_BUSY)
        return st;
    st = take_turn(dir, deadline, &turn, err);
    while (st == RLOCK_OK) {
        st = try_join(server, dir, err);
        if (st != RLOCK_BUSY)
            break;
        st = pause_until(deadline);
        if (st == RLOCK_OK)
            continue;
    }
    if (st == RLOCK_PENDING)
        st = start(server, dir,
                   (struct rlock_deadline){rlock_clock_ms() + start_ms, deadline.stop_fd}, err);
    close_fd(&turn);
    return st;
}

enum rlock_status private_server_open(struct private_server *server, struct rlock_deadline deadline,
                                      int64_t start_ms, struct rlock_error *err)
{
    enum rlock_status st;
    bool is_joined = false;
    int older;
    size_t i;

    *server = (struct private_server)PRIVATE_SERVER_NONE;
    st = private_server_dir_open(&server->dir_fd, err);
    for (i = 0; st == RLOCK_OK && !is_joined && private_server_dir_open_older(i, &older); i++) {
        if (older < 0)
            continue;
        if (!private_server_dir_is_same(older, server->dir_fd)) {
            st = join_older(server, older, deadline, err);
            is_joined = st == RLOCK_OK;
            if (is_joined)
                dup3(older, server->dir_fd, O_CLOEXEC);
            else if (st == RLOCK_PENDING)
                st = RLOCK_OK;
        }
        close(older);
    }
    if (st == RLOCK_OK && !is_joined)
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
    if (n > 0) /* an error reply, so the server runs: it has too many clients */
        return false;
    server->alive_fd = private_server_process_connect(server->dir_fd);
    if (server->alive_fd < 0 && errno == EAGAIN) /* its backlog is full, so it runs */
        return false;
    if (server->alive_fd >= 0 && private_server_process_pid(server->alive_fd) == pid)
        return false;
    close_fd(&server->alive_fd);
    return true;
}

/* The server can't be reached: has it ended, or is it only slow? */
static bool has_failed(struct private_server *server)
{
    if (server->alive_fd >= 0)
        return private_server_has_ended(server);
    server->alive_fd = private_server_process_connect(server->dir_fd);
    return server->alive_fd < 0 && errno != EAGAIN;
}

/*
 * Between the two uses the URL leads to nothing. Else a lock could be granted by a server that we
 * don't hold by our flock, and that therefore may end at any time.
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
