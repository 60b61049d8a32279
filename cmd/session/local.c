/* SPDX-License-Identifier: MIT */
/*
 * local: a private server on a Unix socket, for locks on one machine.
 *
 * Each process that uses the server holds a shared flock on LOCALDIR_USERS, which the kernel drops
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
 * An older version of rlock may have started a server in another place (see localdir.c). That one
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
#include "session/local.h"

#include "base/err.h"
#include "session/localdir.h"
#include "session/localserver.h"

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
    return localdir_fail(
        err, RLOCK_BUSY,
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
static enum rlock_status try_join(struct local *local, int dir, struct rlock_error *err)
{
    if (local->users_fd >= 0 && !localdir_has(dir, LOCALDIR_USERS, local->users_fd))
        close_fd(&local->users_fd);
    if (local->users_fd < 0)
        local->users_fd = localdir_file(dir, LOCALDIR_USERS);
    if (local->users_fd < 0)
        return localdir_fail(err, RLOCK_E_SYSTEM, "local: " LOCALDIR_USERS ": %s", strerror(errno));
    if (flock(local->users_fd, LOCK_SH | LOCK_NB) == 0) {
        local->alive_fd = localserver_connect(dir);
        if (local->alive_fd >= 0 && localdir_has(dir, LOCALDIR_USERS, local->users_fd))
            return RLOCK_OK;
        if (local->alive_fd < 0 && errno == EPERM)
            return localdir_fail(err, RLOCK_E_CONFIG,
                                 "local: another user's process is its server");
        close_fd(&local->alive_fd);
    }
    if (flock(local->users_fd, LOCK_EX | LOCK_NB) == 0 &&
        localdir_has(dir, LOCALDIR_USERS, local->users_fd)) {
        local->alive_fd = localserver_connect(dir);
        if (local->alive_fd < 0 && errno != EAGAIN)
            return RLOCK_PENDING;
        /* a server that has no user ends soon, or is used by us in the next attempt */
        close_fd(&local->alive_fd);
    }
    flock(local->users_fd, LOCK_UN);
    return RLOCK_BUSY;
}

/* ---- an older place ---- */

/* RLOCK_PENDING: nobody uses a server there, and nobody can any more. */
static enum rlock_status join_older(struct local *local, int dir, struct rlock_deadline deadline,
                                    struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    if (faccessat(dir, LOCALDIR_USERS, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return RLOCK_PENDING;
    while (st == RLOCK_OK) {
        st = try_join(local, dir, err);
        if (st != RLOCK_BUSY)
            break;
        if (flock(local->users_fd, LOCK_EX | LOCK_NB) == 0) /* a server that has no users */
            st = RLOCK_PENDING;
        else
            st = pause_until(deadline);
    }
    if (st == RLOCK_PENDING)
        unlinkat(dir, LOCALDIR_SOCKET, 0);
    if (st != RLOCK_OK)
        close_fd(&local->users_fd);
    return st;
}

/* ---- the place of today ---- */

/*
 * Of the processes that come at the same time one starts the server: that with the exclusive flock
 * on LOCALDIR_START, in `turn`. RLOCK_OK, or why there was no turn, with -1 in `turn`.
 */
static enum rlock_status take_turn(int dir, struct rlock_deadline deadline, int *turn,
                                   struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    *turn = -1;
    while (st == RLOCK_OK) {
        if (*turn < 0)
            *turn = localdir_file(dir, LOCALDIR_START);
        if (*turn < 0)
            return localdir_fail(err, RLOCK_E_SYSTEM, "local: " LOCALDIR_START ": %s",
                                 strerror(errno));
        if (flock(*turn, LOCK_EX | LOCK_NB) == 0) {
            if (localdir_has(dir, LOCALDIR_START, *turn))
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
static enum rlock_status start(struct local *local, int dir, struct rlock_deadline deadline,
                               struct rlock_error *err)
{
    enum rlock_status st;

    unlinkat(dir, LOCALDIR_SOCKET, 0);
    while (flock(local->users_fd, LOCK_SH) != 0)
        if (errno != EINTR)
            return localdir_fail(err, RLOCK_E_SYSTEM, "local: flock: %s", strerror(errno));
    st = localserver_start(dir, deadline, err);
    if (st != RLOCK_OK)
        return st;
    local->alive_fd = localserver_connect(dir);
    if (local->alive_fd < 0)
        return localdir_fail(err, RLOCK_E_UNREACHABLE,
                             "local: its server was killed as it started");
    local->clients_max = localserver_clients_max(local->alive_fd);
    return RLOCK_OK;
}

static enum rlock_status join(struct local *local, int dir, struct rlock_deadline deadline,
                              int64_t start_ms, struct rlock_error *err)
{
    enum rlock_status st = try_join(local, dir, err);
    int turn;

    if (st == RLOCK_PENDING)
        flock(local->users_fd, LOCK_UN); /* the process with the turn needs this flock */
    if (st != RLOCK_PENDING && st != RLOCK_BUSY)
        return st;
    st = take_turn(dir, deadline, &turn, err);
    while (st == RLOCK_OK) {
        st = try_join(local, dir, err);
        if (st != RLOCK_BUSY)
            break;
        st = pause_until(deadline);
        if (st == RLOCK_OK)
            continue;
    }
    if (st == RLOCK_PENDING)
        st = start(local, dir,
                   (struct rlock_deadline){rlock_clock_ms() + start_ms, deadline.stop_fd}, err);
    close_fd(&turn);
    return st;
}

enum rlock_status local_open(struct local *local, struct rlock_deadline deadline, int64_t start_ms,
                             struct rlock_error *err)
{
    enum rlock_status st;
    bool is_joined = false;
    int older;
    size_t i;

    *local = (struct local)LOCAL_NONE;
    st = localdir_open(&local->dir_fd, err);
    for (i = 0; st == RLOCK_OK && !is_joined && localdir_open_older(i, &older); i++) {
        if (older < 0)
            continue;
        if (!localdir_is_same(older, local->dir_fd)) {
            st = join_older(local, older, deadline, err);
            is_joined = st == RLOCK_OK;
            if (is_joined)
                dup3(older, local->dir_fd, O_CLOEXEC);
            else if (st == RLOCK_PENDING)
                st = RLOCK_OK;
        }
        close(older);
    }
    if (st == RLOCK_OK && !is_joined)
        st = join(local, local->dir_fd, deadline, start_ms, err);
    if (st == RLOCK_OK)
        snprintf(local->url, sizeof local->url, "unix:///proc/self/fd/%d/" LOCALDIR_SOCKET,
                 local->dir_fd);
    else
        local_close(local);
    return st == RLOCK_BUSY ? fail_busy(err) : st;
}

bool local_has_ended(struct local *local)
{
    pid_t pid;
    ssize_t n;
    char byte;

    if (local->alive_fd < 0)
        return false;
    pid = localserver_pid(local->alive_fd);
    n = recv(local->alive_fd, &byte, sizeof byte, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    close_fd(&local->alive_fd);
    if (n > 0) /* an error reply, so the server runs: it has too many clients */
        return false;
    local->alive_fd = localserver_connect(local->dir_fd);
    if (local->alive_fd < 0 && errno == EAGAIN) /* its backlog is full, so it runs */
        return false;
    if (local->alive_fd >= 0 && localserver_pid(local->alive_fd) == pid)
        return false;
    close_fd(&local->alive_fd);
    return true;
}

/* The server can't be reached: has it ended, or is it only slow? */
static bool has_failed(struct local *local)
{
    if (local->alive_fd >= 0)
        return local_has_ended(local);
    local->alive_fd = localserver_connect(local->dir_fd);
    return local->alive_fd < 0 && errno != EAGAIN;
}

/*
 * Between the two uses the URL leads to nothing. Else a lock could be granted by a server that we
 * don't hold by our flock, and that therefore may end at any time.
 */
void local_reopen(struct local *local, int stop_fd, int64_t start_ms)
{
    struct rlock_deadline now = {rlock_clock_ms(), stop_fd};
    struct rlock_error err = {.status = RLOCK_OK};
    struct local next;
    int nothing;

    if (local->dir_fd < 0 || (local->users_fd >= 0 && !has_failed(local)))
        return;
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0 || dup3(nothing, local->dir_fd, O_CLOEXEC) < 0) {
        close_fd(&nothing);
        return;
    }
    close(nothing);
    close_fd(&local->users_fd);
    if (local_open(&next, now, start_ms, &err) != RLOCK_OK)
        return;
    local->users_fd = next.users_fd;
    local->alive_fd = next.alive_fd;
    dup3(next.dir_fd, local->dir_fd, O_CLOEXEC);
    close(next.dir_fd);
}

void local_close(struct local *local)
{
    close_fd(&local->users_fd);
    close_fd(&local->alive_fd);
    close_fd(&local->dir_fd);
}
