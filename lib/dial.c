/* SPDX-License-Identifier: MIT */
/*
 * dial: connect to a server, by TCP or a Unix socket, never blocking.
 *
 * A name may stand for several addresses of which some are dead: each gets its
 * share of the time that is left, so that the last is tried before it is over.
 */
#include "dial.h"

#include "clock.h"
#include "err.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

void dial_init(struct dial *dial, const struct url *url)
{
    *dial = (struct dial){.url = url, .trying = STREAM_EMPTY};
}

void dial_stop(struct dial *dial)
{
    resolve_forget(dial->lookup);
    dial->lookup = NULL;
    stream_reset(&dial->trying);
}

void dial_fini(struct dial *dial)
{
    dial_stop(dial);
    dial->known.n = 0;
}

static void know_unix_path(struct dial *dial)
{
    struct sockaddr_un *at = (struct sockaddr_un *)&dial->known.item[0].at;

    at->sun_family = AF_UNIX;
    snprintf(at->sun_path, sizeof at->sun_path, "%s", dial->url->path);
    dial->known.item[0].bytes = sizeof *at;
    dial->known.n = 1;
}

/* The kernel's own second line of defence, should nobody look at the connection. */
static void set_options(int fd, sa_family_t family, int64_t left_ms)
{
    int on = 1;
    unsigned left = left_ms < 60000 ? (unsigned)left_ms : 60000;

    if (family == AF_UNIX)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &left, sizeof left);
}

/* Begin with the next address that takes a connect at all. */
static enum rlock_status try_next(struct dial *dial, struct rlock_error *err)
{
    enum rlock_status st = RLOCK_E_UNREACHABLE;

    while (st != RLOCK_PENDING && dial->next < dial->known.n) {
        const struct sockaddr *at = (const struct sockaddr *)&dial->known.item[dial->next].at;
        int64_t left = dial->until_ms - rlock_clock_ms();

        dial->turn_ms = rlock_clock_ms() + left / (int64_t)(dial->known.n - dial->next);
        dial->trying.fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (dial->trying.fd < 0)
            return err_set(err, RLOCK_E_SYSTEM, errno, "socket");
        set_options(dial->trying.fd, at->sa_family, left);
        if (connect(dial->trying.fd, at, dial->known.item[dial->next].bytes) == 0 ||
            errno == EINPROGRESS)
            st = RLOCK_PENDING;
        else
            st = err_set(err, RLOCK_E_UNREACHABLE, errno, "connect");
        if (st != RLOCK_PENDING)
            stream_reset(&dial->trying);
        dial->next++;
    }
    return st;
}

enum rlock_status dial_start(struct dial *dial, int64_t until_ms, struct rlock_error *err)
{
    int64_t now = rlock_clock_ms();
    enum rlock_status st;

    dial_stop(dial);
    dial->until_ms = until_ms;
    dial->next = 0;
    if (dial->known.n == 0 && dial->url->kind == URL_UNIX)
        know_unix_path(dial);
    else if (dial->known.n == 0)
        dial->is_name = resolve_number(dial->url->host, dial->url->port, &dial->known) != RLOCK_OK;
    if (dial->is_name) {
        st = resolve_start(&dial->lookup, dial->url->host, dial->url->port, err);
        dial->turn_ms = now + (until_ms - now) / 2;
        if (st == RLOCK_OK || dial->known.n == 0)
            return st == RLOCK_OK ? RLOCK_PENDING : st;
    }
    return try_next(dial, err);
}

int dial_fd(const struct dial *dial)
{
    return dial->lookup != NULL ? resolve_fd(dial->lookup) : dial->trying.fd;
}

short dial_events(const struct dial *dial)
{
    return dial->lookup != NULL ? POLLIN : POLLOUT;
}

int64_t dial_wake_ms(const struct dial *dial)
{
    return dial->lookup != NULL && dial->known.n == 0 ? RLOCK_NEVER : dial->turn_ms;
}

/* Is there something to see? Steps also come when only time has passed. */
static bool is_ready(int fd, short events)
{
    struct pollfd look = {.fd = fd, .events = events};

    return poll(&look, 1, 0) > 0;
}

static enum rlock_status step_lookup(struct dial *dial, struct rlock_error *err)
{
    struct lookup *lookup = dial->lookup;
    struct addresses found = {.n = 0};
    enum rlock_status st = RLOCK_OK;
    bool is_found = is_ready(resolve_fd(lookup), POLLIN);

    if (!is_found && (dial->known.n == 0 || rlock_clock_ms() < dial->turn_ms))
        return RLOCK_PENDING;
    dial->lookup = NULL;
    if (is_found)
        st = resolve_finish(lookup, &found, err);
    else
        resolve_forget(lookup);
    if (found.n > 0)
        dial->known = found;
    return dial->known.n > 0 ? try_next(dial, err) : st;
}

enum rlock_status dial_step(struct dial *dial, struct stream *stream, struct rlock_error *err)
{
    int failed = 0;
    socklen_t size = sizeof failed;

    if (dial->lookup != NULL)
        return step_lookup(dial, err);
    if (!is_ready(dial->trying.fd, POLLOUT)) {
        if (rlock_clock_ms() < dial->turn_ms)
            return RLOCK_PENDING;
        failed = ETIMEDOUT;
    } else if (getsockopt(dial->trying.fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0) {
        failed = errno;
    }
    if (failed == 0) {
        *stream = dial->trying;
        dial->trying.fd = -1;
        return RLOCK_OK;
    }
    stream_reset(&dial->trying);
    err_set(err, RLOCK_E_UNREACHABLE, failed, "connect");
    return try_next(dial, err);
}
