/* SPDX-License-Identifier: MIT */
/*
 * socket: connect to a server, by TCP or a Unix socket, never blocking.
 *
 * A name may stand for several addresses of which some are dead. So the next
 * address is tried beside those that have not answered after a quarter of a
 * second, or at once when one is refused; the first that connects is taken, and
 * is the first to be tried next time. Source: RFC 8305, "Happy Eyeballs Version
 * 2". A node of a Cluster may have a second name: its turn comes in the same
 * way, and also while a resolver hangs.
 */
#include "wire/socket.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

#define ATTEMPT_MS 250 /* "Connection Attempt Delay" */

void dial_init(struct dial *dial, const struct url *url)
{
    *dial = (struct dial){.url = url, .any_fd = -1};
}

void dial_stop(struct dial *dial)
{
    resolve_forget(dial->lookup);
    dial->lookup = NULL;
    while (dial->n_trying > 0)
        stream_reset(&dial->trying[--dial->n_trying].stream);
    if (dial->any_fd >= 0)
        close(dial->any_fd);
    dial->any_fd = -1;
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

/* ---- what is waited for ---- */

static void enlist(const struct dial *dial, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events};

    if (dial->any_fd >= 0)
        (void)!epoll_ctl(dial->any_fd, EPOLL_CTL_ADD, fd, &event);
}

/*
 * Before one more is waited for: several descriptors become one. Without a
 * descriptor for that the first is waited for, and the others are looked at
 * when a time has come.
 */
static void wait_also(struct dial *dial, int fd, uint32_t events)
{
    size_t i;

    if (dial->any_fd < 0 && dial->n_trying + (dial->lookup != NULL) > 0) {
        dial->any_fd = epoll_create1(EPOLL_CLOEXEC);
        if (dial->lookup != NULL)
            enlist(dial, resolve_fd(dial->lookup), EPOLLIN);
        for (i = 0; i < dial->n_trying; i++)
            enlist(dial, dial->trying[i].stream.fd, EPOLLOUT);
    }
    enlist(dial, fd, events);
}

int dial_fd(const struct dial *dial)
{
    if (dial->any_fd >= 0)
        return dial->any_fd;
    if (dial->n_trying > 0)
        return dial->trying[0].stream.fd;
    return dial->lookup != NULL ? resolve_fd(dial->lookup) : -1;
}

short dial_events(const struct dial *dial)
{
    return dial->any_fd >= 0 || dial->n_trying == 0 ? POLLIN : POLLOUT;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t dial_wake_ms(const struct dial *dial)
{
    return earlier(earlier(dial->turn_ms, dial->spare_ms), dial->deadline_ms);
}

bool dial_is_resolving(const struct dial *dial)
{
    return dial->lookup != NULL && dial->n_trying == 0;
}

/* ---- addresses ---- */

static bool is_same(const struct address *one, const struct address *other)
{
    return one->bytes == other->bytes && memcmp(&one->at, &other->at, one->bytes) == 0;
}

static bool is_known(const struct addresses *known, const struct address *address)
{
    size_t i;

    for (i = 0; i < known->n; i++)
        if (is_same(&known->item[i], address))
            return true;
    return false;
}

/* The address that was connected last is the first, if it is still one and no replica's by now. */
static void put_last_first(struct dial *dial)
{
    struct address *item = dial->known.item;
    size_t i;

    for (i = 0; i < dial->known.n && !is_same(&item[i], &dial->last);)
        i++;
    if (i == dial->known.n)
        return;
    if (dial->is_shunned) {
        memmove(&item[i], &item[i + 1], (dial->known.n - 1 - i) * sizeof item[0]);
        item[dial->known.n - 1] = dial->last;
        return;
    }
    memmove(&item[1], &item[0], i * sizeof item[0]);
    item[0] = dial->last;
}

/* What a lookup has found, of the host or, where that is a number, of the alias. */
static void know(struct dial *dial, const struct addresses *found)
{
    struct addresses *known = &dial->known;
    size_t i;

    if (dial->is_name) {
        dial->spare_ms = RLOCK_NEVER;
        dial->next = 0;
        if (found->n > 0)
            *known = *found;
        put_last_first(dial);
        return;
    }
    for (i = 0; i < found->n && known->n < ADDRESSES_MAX; i++)
        if (!is_known(known, &found->item[i]))
            known->item[known->n++] = found->item[i];
}

static enum rlock_status look_up(struct dial *dial, const char *name, struct rlock_error *err)
{
    struct lookup *lookup = NULL;
    enum rlock_status st = resolve_start(&lookup, name, dial->url->port, err);

    if (st == RLOCK_OK)
        wait_also(dial, resolve_fd(lookup), EPOLLIN);
    dial->lookup = lookup;
    return st;
}

/* ---- attempts ---- */

static enum rlock_status try_address(struct dial *dial, const struct address *to,
                                     struct rlock_error *err)
{
    const struct sockaddr *at = (const struct sockaddr *)&to->at;
    struct stream stream = STREAM_EMPTY;

    if (dial->n_trying == ADDRESSES_MAX)
        return RLOCK_OK;
    stream.fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (stream.fd < 0)
        return err_set(err, RLOCK_E_SYSTEM, errno, "socket");
    set_options(stream.fd, at->sa_family, dial->deadline_ms - rlock_clock_ms());
    if (connect(stream.fd, at, to->bytes) != 0 && errno != EINPROGRESS) {
        enum rlock_status st = err_set(err, RLOCK_E_UNREACHABLE, errno, "connect");

        stream_reset(&stream);
        return st;
    }
    wait_also(dial, stream.fd, EPOLLOUT);
    dial->trying[dial->n_trying].stream = stream;
    dial->trying[dial->n_trying].to = *to;
    dial->n_trying++;
    return RLOCK_OK;
}

/* An address is tried; a name is looked up, unless the lookup of the host's name still runs. */
static enum rlock_status try_alias(struct dial *dial, struct rlock_error *err)
{
    struct addresses number;

    dial->has_alias = false;
    if (resolve_number(dial->url->alias, dial->url->port, &number) == RLOCK_OK)
        return try_address(dial, &number.item[0], err);
    return dial->lookup == NULL ? look_up(dial, dial->url->alias, err) : RLOCK_OK;
}

/*
 * Begin with the next address that takes a connect at all. RLOCK_PENDING:
 * something is waited for; else there is nothing left, and `*err` says why.
 */
static enum rlock_status try_next(struct dial *dial, enum rlock_status st, struct rlock_error *err)
{
    size_t before = dial->n_trying + (dial->lookup != NULL);

    while (dial->n_trying + (dial->lookup != NULL) == before &&
           (dial->next < dial->known.n || dial->has_alias)) {
        if (dial->next < dial->known.n)
            st = try_address(dial, &dial->known.item[dial->next++], err);
        else
            st = try_alias(dial, err);
    }
    dial->turn_ms = RLOCK_NEVER;
    if (dial->next < dial->known.n || dial->has_alias)
        dial->turn_ms = rlock_clock_ms() + ATTEMPT_MS;
    if (dial->n_trying > 0 || dial->lookup != NULL)
        return RLOCK_PENDING;
    return st >= RLOCK_E_USAGE ? st : err_set(err, RLOCK_E_UNREACHABLE, 0, "connect: no address");
}

/* The name first; what it led to at the call before, and its alias, have their turn later. */
static enum rlock_status start_by_name(struct dial *dial, struct rlock_error *err)
{
    int64_t now = rlock_clock_ms();
    enum rlock_status st = look_up(dial, dial->url->host, err);

    if (st != RLOCK_OK)
        return try_next(dial, st, err);
    dial->next = dial->known.n;
    if (dial->known.n > 0)
        dial->spare_ms = now + (dial->deadline_ms - now) / 2;
    if (dial->has_alias)
        dial->turn_ms = now + ATTEMPT_MS;
    return RLOCK_PENDING;
}

enum rlock_status dial_start(struct dial *dial, int64_t deadline_ms, struct rlock_error *err)
{
    dial_stop(dial);
    dial->deadline_ms = deadline_ms;
    dial->turn_ms = dial->spare_ms = RLOCK_NEVER;
    dial->next = 0;
    dial->has_alias = dial->url->alias != NULL;
    if (dial->known.n == 0 && dial->url->kind == URL_UNIX)
        know_unix_path(dial);
    else if (dial->known.n == 0)
        dial->is_name = resolve_number(dial->url->host, dial->url->port, &dial->known) != RLOCK_OK;
    put_last_first(dial);
    return dial->is_name ? start_by_name(dial, err) : try_next(dial, RLOCK_OK, err);
}

/* ---- what has come of them ---- */

/* Is there something to see? Steps also come when only time has passed. */
static bool is_ready(int fd, short events)
{
    struct pollfd look = {.fd = fd, .events = events};

    return poll(&look, 1, 0) > 0;
}

/*
 * RLOCK_PENDING: nothing is new; RLOCK_OK: there are addresses, or why there are none. Those of
 * the call before are tried where the resolver fails, or is silent for half of the time.
 */
static enum rlock_status step_lookup(struct dial *dial, struct rlock_error *err)
{
    struct addresses found = {.n = 0};
    struct lookup *lookup = dial->lookup;
    enum rlock_status st = RLOCK_OK;

    if (lookup == NULL ||
        (!is_ready(resolve_fd(lookup), POLLIN) && rlock_clock_ms() < dial->spare_ms))
        return RLOCK_PENDING;
    dial->lookup = NULL;
    if (is_ready(resolve_fd(lookup), POLLIN))
        st = resolve_finish(lookup, &found, err);
    else
        resolve_forget(lookup);
    know(dial, &found);
    return st;
}

/* One that is being tried. RLOCK_OK: it stands; RLOCK_PENDING, or why it doesn't. */
static enum rlock_status look_at(int fd, struct rlock_error *err)
{
    int failed = 0;
    socklen_t size = sizeof failed;

    if (!is_ready(fd, POLLOUT))
        return RLOCK_PENDING;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0)
        failed = errno;
    return failed == 0 ? RLOCK_OK : err_set(err, RLOCK_E_UNREACHABLE, failed, "connect");
}

/* RLOCK_OK: one stands, and is the caller's; RLOCK_PENDING: nothing is new, or why one failed. */
static enum rlock_status step_trying(struct dial *dial, struct stream *stream,
                                     struct rlock_error *err)
{
    enum rlock_status news = RLOCK_PENDING;
    size_t i = 0;

    while (i < dial->n_trying) {
        enum rlock_status st = look_at(dial->trying[i].stream.fd, err);

        if (st == RLOCK_OK) {
            *stream = dial->trying[i].stream;
            dial->trying[i].stream.fd = -1;
            dial->last = dial->trying[i].to;
            dial->is_shunned = false;
            dial_stop(dial);
            return st;
        }
        if (st == RLOCK_PENDING) {
            i++;
            continue;
        }
        stream_reset(&dial->trying[i].stream);
        dial->trying[i] = dial->trying[--dial->n_trying];
        news = st;
    }
    return news;
}

enum rlock_status dial_step(struct dial *dial, struct stream *stream, struct rlock_error *err)
{
    enum rlock_status looked_up = step_lookup(dial, err);
    enum rlock_status st = step_trying(dial, stream, err);

    if (st == RLOCK_OK)
        return st;
    if (st == RLOCK_PENDING && looked_up == RLOCK_PENDING && rlock_clock_ms() < dial->turn_ms)
        return RLOCK_PENDING;
    return try_next(dial, st == RLOCK_PENDING ? looked_up : st, err);
}
