/* SPDX-License-Identifier: MIT */
/*
 * socket: connect to a server by TCP or a Unix socket, send and receive; nothing blocks.
 *
 * If a name has several addresses, the next is tried when the pending ones have not connected
 * within 250 ms, or when one fails. The first that connects is tried first the next time. The
 * addresses of a node's second name (the alias) come last. Source: RFC 8305, "Happy Eyeballs".
 */
#include "wire/socket.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#define NEXT_ATTEMPT_MS 250 /* "Connection Attempt Delay" of RFC 8305 */
#define LOOK_AGAIN_MS 25    /* how often several pending lookups and attempts are checked */

/* ---- sending and receiving ---- */

/* Did send(2) or recv(2) fail only because it would have to wait? */
static bool would_block(int sys)
{
    return sys == EAGAIN || sys == EWOULDBLOCK || sys == EINTR;
}

enum rlock_status socket_send(int fd, const char *bytes, size_t n, size_t *done,
                              struct rlock_error *err)
{
    ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

    if (sent >= 0) {
        *done = (size_t)sent;
        return RLOCK_OK;
    }
    if (would_block(errno))
        return RLOCK_PENDING;
    return err_set(err, RLOCK_E_UNREACHABLE, errno, "send");
}

enum rlock_status socket_receive(int fd, char *bytes, size_t n, size_t *done,
                                 struct rlock_error *err)
{
    ssize_t received = recv(fd, bytes, n, 0);

    if (received > 0) {
        *done = (size_t)received;
        return RLOCK_OK;
    }
    if (received == 0)
        return err_set(err, RLOCK_E_UNREACHABLE, 0, "the server closed the connection");
    if (would_block(errno))
        return RLOCK_PENDING;
    return err_set(err, RLOCK_E_UNREACHABLE, errno, "receive");
}

void socket_reset(int *fd)
{
    struct linger no_linger = {.l_onoff = 1, .l_linger = 0};

    if (*fd < 0)
        return;
    setsockopt(*fd, SOL_SOCKET, SO_LINGER, &no_linger, sizeof no_linger);
    close(*fd);
    *fd = -1;
}

/* ---- opening and closing a connector ---- */

void connector_init(struct connector *connector, const struct url *url)
{
    *connector = (struct connector){.url = url};
}

void connector_abandon(struct connector *connector)
{
    size_t i;

    for (i = 0; i < CONNECTOR_NAMES; i++) {
        resolve_abandon(connector->lookup[i]);
        connector->lookup[i] = NULL;
    }
    while (connector->n_attempts > 0)
        socket_reset(&connector->attempt[--connector->n_attempts].fd);
}

void connector_fini(struct connector *connector)
{
    connector_abandon(connector);
    addresses_clear(&connector->addresses);
}

/*
 * With TCP_USER_TIMEOUT and keep-alive the kernel ends a dead connection, even while rlock is
 * stopped (SIGSTOP). Without TCP_QUICKACK the kernel acknowledges the server's SYN together with
 * our first request, or after 200 ms, so the server wakes up once and not twice.
 */
static void set_options(int fd, sa_family_t family, int64_t left_ms)
{
    int on = 1;
    int off = 0;
    unsigned left = left_ms < 60000 ? (unsigned)left_ms : 60000;

    if (family == AF_UNIX)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof off);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &left, sizeof left);
}

/* ---- what the caller waits for: a descriptor and a time ---- */

/* How many lookups and attempts are pending. */
static size_t n_pending(const struct connector *connector)
{
    return connector->n_attempts + (connector->lookup[CONNECTOR_HOST] != NULL) +
           (connector->lookup[CONNECTOR_ALIAS] != NULL);
}

int connector_fd(const struct connector *connector)
{
    const struct lookup *lookup = connector->lookup[CONNECTOR_HOST];

    if (connector->n_attempts > 0)
        return connector->attempt[0].fd;
    if (lookup == NULL)
        lookup = connector->lookup[CONNECTOR_ALIAS];
    return lookup != NULL ? resolve_fd(lookup) : -1;
}

short connector_events(const struct connector *connector)
{
    return connector->n_attempts == 0 ? POLLIN : POLLOUT;
}

/* connector_fd() is the descriptor of one attempt or lookup; the others are polled each 25 ms. */
int64_t connector_wake_ms(const struct connector *connector)
{
    int64_t look_ms = n_pending(connector) > 1 ? rlock_clock_ms() + LOOK_AGAIN_MS : RLOCK_NEVER;

    return clock_earlier(
        look_ms, clock_earlier(connector->next_attempt_ms, connector->resolver_deadline_ms));
}

bool connector_is_resolving(const struct connector *connector)
{
    return connector->n_attempts == 0 && n_pending(connector) > 0;
}

/* ---- choosing the addresses to try ---- */

/* Puts the address of the newest connection first; after connector_avoid() it puts it last. */
static void order_addresses(struct connector *connector)
{
    addresses_move(&connector->addresses, &connector->connected,
                   connector->avoids_connected ? connector->addresses.n - 1 : 0);
}

/*
 * Replaces the addresses of earlier connections by those that the lookup of the host name has
 * found, if any. The addresses of the alias stay, at the end.
 */
static void set_host_addresses(struct connector *connector, const struct addresses *found)
{
    struct addresses former = connector->addresses;

    if (found->n > 0) {
        connector->addresses = *found;
        addresses_append(&connector->addresses, &former, connector->next);
    }
    connector->resolver_deadline_ms = RLOCK_NEVER;
    connector->next = 0;
    order_addresses(connector);
}

static enum rlock_status start_lookup(struct connector *connector, enum connector_name which,
                                      struct rlock_error *err)
{
    const char *name = which == CONNECTOR_HOST ? connector->url->host : connector->url->alias;
    struct lookup *lookup = NULL;
    enum rlock_status st = resolve_start(&lookup, name, connector->url->port, err);

    connector->lookup[which] = lookup;
    return st;
}

/* ---- starting attempts to connect ---- */

static enum rlock_status start_attempt(struct connector *connector, const struct address *to,
                                       struct rlock_error *err)
{
    const struct sockaddr *at = (const struct sockaddr *)&to->storage;
    int fd;

    if (connector->n_attempts == ADDRESSES_MAX)
        return RLOCK_OK;
    fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, RLOCK_E_SYSTEM, errno, "socket");
    set_options(fd, at->sa_family, connector->deadline_ms - rlock_clock_ms());
    if (connect(fd, at, to->bytes) != 0 && errno != EINPROGRESS) {
        enum rlock_status st = err_set(err, RLOCK_E_UNREACHABLE, errno, "connect");

        socket_reset(&fd);
        return st;
    }
    connector->attempt[connector->n_attempts].fd = fd;
    connector->attempt[connector->n_attempts].to = *to;
    connector->n_attempts++;
    return RLOCK_OK;
}

/* Starts to connect to the alias if it is an address, or to look it up if it is a host name. */
static enum rlock_status start_alias(struct connector *connector, struct rlock_error *err)
{
    struct addresses number;

    connector->alias_is_due = false;
    if (resolve_numeric(connector->url->alias, connector->url->port, &number) == RLOCK_OK)
        return start_attempt(connector, &number.address[0], err);
    return start_lookup(connector, CONNECTOR_ALIAS, err);
}

/*
 * Starts one more attempt or lookup, and skips addresses where connect(2) fails at once. Returns
 * RLOCK_PENDING if any attempt or lookup is pending. Else no address is left to try: returns the
 * fault of the newest attempt, or `st`, an earlier fault, if this call started no attempt.
 */
static enum rlock_status start_next(struct connector *connector, enum rlock_status st,
                                    struct rlock_error *err)
{
    size_t before = n_pending(connector);

    while (n_pending(connector) == before &&
           (connector->next < connector->addresses.n || connector->alias_is_due)) {
        if (connector->next < connector->addresses.n)
            st = start_attempt(connector, &connector->addresses.address[connector->next++], err);
        else
            st = start_alias(connector, err);
    }
    connector->next_attempt_ms = RLOCK_NEVER;
    if (connector->next < connector->addresses.n || connector->alias_is_due)
        connector->next_attempt_ms = rlock_clock_ms() + NEXT_ATTEMPT_MS;
    if (n_pending(connector) > 0)
        return RLOCK_PENDING;
    return st >= RLOCK_E_USAGE ? st : err_set(err, RLOCK_E_UNREACHABLE, 0, "connect: no address");
}

/*
 * Starts to look the host name up. The connector tries the addresses of earlier connections only if
 * the lookup fails or takes half of the time, and tries the alias after NEXT_ATTEMPT_MS.
 */
static enum rlock_status start_host_lookup(struct connector *connector, struct rlock_error *err)
{
    int64_t now = rlock_clock_ms();
    enum rlock_status st = start_lookup(connector, CONNECTOR_HOST, err);

    if (st != RLOCK_OK)
        return start_next(connector, st, err);
    connector->next = connector->addresses.n;
    if (connector->addresses.n > 0)
        connector->resolver_deadline_ms = now + (connector->deadline_ms - now) / 2;
    if (connector->alias_is_due)
        connector->next_attempt_ms = now + NEXT_ATTEMPT_MS;
    return RLOCK_PENDING;
}

enum rlock_status connector_start(struct connector *connector, int64_t deadline_ms,
                                  struct rlock_error *err)
{
    connector_abandon(connector);
    connector->deadline_ms = deadline_ms;
    connector->next_attempt_ms = connector->resolver_deadline_ms = RLOCK_NEVER;
    connector->next = 0;
    connector->alias_is_due = connector->url->alias != NULL;
    if (connector->addresses.n == 0 && connector->url->kind == URL_UNIX)
        addresses_add_unix(&connector->addresses, connector->url->path);
    else if (connector->addresses.n == 0)
        connector->host_is_name = resolve_numeric(connector->url->host, connector->url->port,
                                                  &connector->addresses) != RLOCK_OK;
    order_addresses(connector);
    return connector->host_is_name ? start_host_lookup(connector, err)
                                   : start_next(connector, RLOCK_OK, err);
}

/* ---- reading the results of lookups and attempts ---- */

/* Is `fd` ready? connector_step() is also called when only its wake time has come. */
static bool is_ready(int fd, short events)
{
    struct pollfd ready = {.fd = fd, .events = events};

    return poll(&ready, 1, 0) > 0;
}

/*
 * Reads the result of a lookup. Returns RLOCK_PENDING (the lookup is not running, or has not
 * ended), RLOCK_OK (it found addresses, or took too long and was abandoned), or the resolver's
 * fault. Without a result for the host name the addresses of earlier connections stay.
 */
static enum rlock_status step_lookup(struct connector *connector, enum connector_name which,
                                     struct rlock_error *err)
{
    bool is_late = which == CONNECTOR_HOST && rlock_clock_ms() >= connector->resolver_deadline_ms;
    struct addresses found = {.n = 0};
    struct lookup *lookup = connector->lookup[which];
    enum rlock_status st = RLOCK_OK;

    if (lookup == NULL || (!is_late && !is_ready(resolve_fd(lookup), POLLIN)))
        return RLOCK_PENDING;
    connector->lookup[which] = NULL;
    if (is_ready(resolve_fd(lookup), POLLIN))
        st = resolve_finish(lookup, &found, err);
    else
        resolve_abandon(lookup);
    if (which == CONNECTOR_HOST)
        set_host_addresses(connector, &found);
    else
        addresses_append(&connector->addresses, &found, 0);
    return st;
}

/* Returns RLOCK_OK (connected), RLOCK_PENDING, or why connect(2) failed. */
static enum rlock_status attempt_result(int fd, struct rlock_error *err)
{
    int failed = 0;
    socklen_t size = sizeof failed;

    if (!is_ready(fd, POLLOUT))
        return RLOCK_PENDING;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0)
        failed = errno;
    return failed == 0 ? RLOCK_OK : err_set(err, RLOCK_E_UNREACHABLE, failed, "connect");
}

/*
 * Removes the attempts that have failed. Returns RLOCK_OK (`*fd` is connected), RLOCK_PENDING (no
 * attempt has ended), or the fault of the last attempt that has failed.
 */
static enum rlock_status step_attempts(struct connector *connector, int *fd,
                                       struct rlock_error *err)
{
    enum rlock_status result = RLOCK_PENDING;
    size_t i = 0;

    while (i < connector->n_attempts) {
        enum rlock_status st = attempt_result(connector->attempt[i].fd, err);

        if (st == RLOCK_OK) {
            *fd = connector->attempt[i].fd;
            connector->attempt[i].fd = -1;
            connector->connected = connector->attempt[i].to;
            connector->avoids_connected = false;
            connector_abandon(connector);
            return st;
        }
        if (st == RLOCK_PENDING) {
            i++;
            continue;
        }
        socket_reset(&connector->attempt[i].fd);
        connector->attempt[i] = connector->attempt[--connector->n_attempts];
        result = st;
    }
    return result;
}

void connector_avoid(struct connector *connector)
{
    connector->avoids_connected = true;
}

enum rlock_status connector_step(struct connector *connector, int *fd, struct rlock_error *err)
{
    enum rlock_status host = step_lookup(connector, CONNECTOR_HOST, err);
    enum rlock_status alias = step_lookup(connector, CONNECTOR_ALIAS, err);
    enum rlock_status st = step_attempts(connector, fd, err);

    if (st == RLOCK_OK)
        return st;
    if (st == RLOCK_PENDING)
        st = alias != RLOCK_PENDING ? alias : host;
    if (st == RLOCK_PENDING && rlock_clock_ms() < connector->next_attempt_ms)
        return RLOCK_PENDING;
    return start_next(connector, st, err);
}
