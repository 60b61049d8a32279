/* SPDX-License-Identifier: MIT */
/*
 * local: a private server on a Unix socket, for locks on one machine.
 *
 * Who uses the server holds a shared flock on LOCALDIR_USERS; the kernel drops
 * it however a user ends. So does the guard of a command, for as long as that
 * may run. Two promises come of it:
 *
 *   the server ends when nobody uses it any more;
 *   the next one isn't started before nobody uses the one before it.
 *
 * The second is for a server that was killed. Its locks are gone while commands
 * run under them. Their rlocks have a connection to it that does nothing but
 * end with it, and end their commands then at once. A newcomer gets the
 * exclusive flock only when all that is over, and starts no server without it.
 * One who waits for a lock has none, and gives up its part in the old server,
 * so that it keeps nobody waiting.
 *
 * An older place (see localdir.c) is used as long as a server there is in use:
 *
 *   1. One finds that nobody uses it: it has the exclusive flock there.
 *   2. Another comes, before that server has ended, and would use it.
 *   3. The first starts a server in the new place.
 *
 * So the first removes the socket in the older place while it has that flock,
 * and the second finds none.
 *
 * A cleaner may remove the files that are locked. A lock on a file counts only
 * while the file is the one in the directory.
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

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* flock knows neither a deadline nor a descriptor that cuts it short. */
static enum rlock_status pause_until(struct rlock_deadline deadline)
{
    struct pollfd stop = {.fd = deadline.stop_fd, .events = POLLIN};

    if (deadline.at_ms != RLOCK_NEVER && rlock_clock_ms() >= deadline.at_ms)
        return RLOCK_BUSY;
    return poll(&stop, 1, TRY_AGAIN_MS) > 0 ? RLOCK_STOPPED : RLOCK_OK;
}

/* ---- one look ---- */

/*
 * RLOCK_OK: part of its use, with `fd` locked shared and `alive`. RLOCK_PENDING:
 * nobody uses one, with `fd` locked exclusively. RLOCK_BUSY: neither yet.
 */
static enum rlock_status look(struct local *local, int dir, struct rlock_error *err)
{
    if (local->fd >= 0 && !localdir_has(dir, LOCALDIR_USERS, local->fd))
        shut(&local->fd);
    if (local->fd < 0)
        local->fd = localdir_file(dir, LOCALDIR_USERS);
    if (local->fd < 0)
        return localdir_fail(err, RLOCK_E_SYSTEM, "local: " LOCALDIR_USERS ": %s", strerror(errno));
    if (flock(local->fd, LOCK_SH | LOCK_NB) == 0) {
        local->alive = localserver_call(dir);
        if (local->alive >= 0 && localdir_has(dir, LOCALDIR_USERS, local->fd))
            return RLOCK_OK;
        if (local->alive < 0 && errno == EPERM)
            return localdir_fail(err, RLOCK_E_CONFIG,
                                 "local: another user's process is its server");
        shut(&local->alive);
    }
    if (flock(local->fd, LOCK_EX | LOCK_NB) == 0 && localdir_has(dir, LOCALDIR_USERS, local->fd)) {
        local->alive = localserver_call(dir);
        if (local->alive < 0 && errno != EAGAIN)
            return RLOCK_PENDING;
        shut(&local->alive); /* it is about to end, or we are about to use it */
    }
    flock(local->fd, LOCK_UN);
    return RLOCK_BUSY;
}

/* ---- an older place ---- */

/* RLOCK_PENDING: nobody uses it, and nobody will. */
static enum rlock_status join_older(struct local *local, int dir, struct rlock_deadline deadline,
                                    struct rlock_error *err)
{
    enum rlock_status st = RLOCK_OK;

    if (faccessat(dir, LOCALDIR_USERS, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return RLOCK_PENDING;
    while (st == RLOCK_OK) {
        st = look(local, dir, err);
        if (st != RLOCK_BUSY)
            break;
        if (flock(local->fd, LOCK_EX | LOCK_NB) == 0) /* a server that nobody uses */
            st = RLOCK_PENDING;
        else
            st = pause_until(deadline);
    }
    if (st == RLOCK_PENDING)
        unlinkat(dir, LOCALDIR_SOCKET, 0);
    if (st != RLOCK_OK)
        shut(&local->fd);
    return st;
}

/* ---- ours ---- */

/* Only one of those who come at the same moment starts it. -1 without err: its turn didn't come. */
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
            shut(turn);
            continue;
        }
        st = pause_until(deadline);
    }
    shut(turn);
    return st;
}

/* With the exclusive flock. No renewer waits for it to be free, so none can come in between. */
static enum rlock_status start(struct local *local, int dir, struct rlock_deadline deadline,
                               struct rlock_error *err)
{
    enum rlock_status st;

    unlinkat(dir, LOCALDIR_SOCKET, 0);
    while (flock(local->fd, LOCK_SH) != 0)
        if (errno != EINTR)
            return localdir_fail(err, RLOCK_E_SYSTEM, "local: flock: %s", strerror(errno));
    st = localserver_start(dir, deadline, err);
    if (st != RLOCK_OK)
        return st;
    local->alive = localserver_call(dir);
    if (local->alive < 0)
        return localdir_fail(err, RLOCK_E_UNREACHABLE,
                             "local: its server was killed as it started");
    local->clients = localserver_clients(local->alive);
    return RLOCK_OK;
}

static enum rlock_status join(struct local *local, int dir, struct rlock_deadline deadline,
                              int64_t start_ms, struct rlock_error *err)
{
    enum rlock_status st = look(local, dir, err);
    int turn;

    if (st == RLOCK_PENDING)
        flock(local->fd, LOCK_UN); /* those who come now are to see who has the turn */
    if (st != RLOCK_PENDING && st != RLOCK_BUSY)
        return st;
    st = take_turn(dir, deadline, &turn, err);
    while (st == RLOCK_OK) {
        st = look(local, dir, err);
        if (st != RLOCK_BUSY)
            break;
        st = pause_until(deadline);
        if (st == RLOCK_OK)
            continue;
    }
    if (st == RLOCK_PENDING)
        st = start(local, dir,
                   (struct rlock_deadline){rlock_clock_ms() + start_ms, deadline.stop_fd}, err);
    shut(&turn);
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
    st = localdir_open(&local->door, err);
    for (i = 0; st == RLOCK_OK && !is_joined && localdir_open_older(i, &older); i++) {
        if (older < 0)
            continue;
        if (!localdir_is_same(older, local->door)) {
            st = join_older(local, older, deadline, err);
            is_joined = st == RLOCK_OK;
            if (is_joined)
                dup3(older, local->door, O_CLOEXEC);
            else if (st == RLOCK_PENDING)
                st = RLOCK_OK;
        }
        close(older);
    }
    if (st == RLOCK_OK && !is_joined)
        st = join(local, local->door, deadline, start_ms, err);
    if (st == RLOCK_OK)
        snprintf(local->url, sizeof local->url, "unix:///proc/self/fd/%d/" LOCALDIR_SOCKET,
                 local->door);
    else
        local_close(local);
    return st == RLOCK_BUSY ? fail_busy(err) : st;
}

bool local_has_ended(struct local *local)
{
    pid_t pid;
    ssize_t n;
    char said;

    if (local->alive < 0)
        return false;
    pid = localserver_pid(local->alive);
    n = recv(local->alive, &said, sizeof said, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    shut(&local->alive);
    if (n > 0) /* the server runs, and refuses one more connection: too many clients */
        return false;
    local->alive = localserver_call(local->door);
    if (local->alive < 0 && errno == EAGAIN) /* it runs, and too many call it at this moment */
        return false;
    if (local->alive >= 0 && localserver_pid(local->alive) == pid)
        return false;
    shut(&local->alive);
    return true;
}

/* Of a server that can't be reached: is it gone, or merely slow? */
static bool has_failed(struct local *local)
{
    if (local->alive >= 0)
        return local_has_ended(local);
    local->alive = localserver_call(local->door);
    return local->alive < 0 && errno != EAGAIN;
}

/*
 * Between the two uses the URL leads to nothing: a lock that was had without
 * part in the use of its server could end with that at any time.
 */
void local_reopen(struct local *local, int stop_fd, int64_t start_ms)
{
    struct rlock_deadline now = {rlock_clock_ms(), stop_fd};
    struct rlock_error err = {.status = RLOCK_OK};
    struct local next;
    int nothing;

    if (local->door < 0 || (local->fd >= 0 && !has_failed(local)))
        return;
    nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0 || dup3(nothing, local->door, O_CLOEXEC) < 0) {
        shut(&nothing);
        return;
    }
    close(nothing);
    shut(&local->fd);
    if (local_open(&next, now, start_ms, &err) != RLOCK_OK)
        return;
    local->fd = next.fd;
    local->alive = next.alive;
    dup3(next.door, local->door, O_CLOEXEC);
    close(next.door);
}

void local_close(struct local *local)
{
    shut(&local->fd);
    shut(&local->alive);
    shut(&local->door);
}
