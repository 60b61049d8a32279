/* SPDX-License-Identifier: MIT */
/* socket: connect to a server by TCP or a Unix socket, send and receive; nothing blocks. */
#ifndef SOCKET_H
#define SOCKET_H

#include "wire/resolve.h"
#include "wire/url.h"

/* ---- send and receive; `fd` is a connected, non-blocking socket ---- */

/*
 * socket_send, socket_receive: one send(2) or recv(2) of at most `n` bytes.
 *
 *   done  out, on RLOCK_OK only: how many bytes were sent or received, at least 1
 *
 * Returns  RLOCK_OK, RLOCK_PENDING (the kernel's buffer is full, or empty), or RLOCK_E_UNREACHABLE
 *          (the connection is broken, or the server has closed it).
 */
enum rlock_status socket_send(int fd, const char *bytes, size_t n, size_t *done,
                              struct rlock_error *err);
enum rlock_status socket_receive(int fd, char *bytes, size_t n, size_t *done,
                                 struct rlock_error *err);

/*
 * socket_reset: close `*fd` with a TCP reset, and set it to -1; does nothing if it is -1. The reset
 * makes the kernel drop bytes that it has not delivered yet. Otherwise the kernel would send them
 * again for minutes, and the server might execute a request long after the caller gave it up.
 */
void socket_reset(int *fd);

/* ---- connecting ---- */

enum connector_name { CONNECTOR_HOST, CONNECTOR_ALIAS, CONNECTOR_NAMES };

/*
 * Makes connections to one server, one after the other. Each connection looks the host name up
 * again, since a hosted service changes the address of the name when it fails over to a replica. If
 * the resolver fails, or takes more than half of the time until the deadline, the connector tries
 * the addresses of earlier connections.
 */
struct connector {
    const struct url *url;                  /* the server; borrowed */
    struct lookup *lookup[CONNECTOR_NAMES]; /* running lookups; NULL: that name is not looked up */
    struct addresses addresses; /* addresses of the server, in the order in which to try them */
    struct address connected; /* address of the newest connection, which the next one tries first */
    bool avoids_connected;    /* try `connected` last: the server there has become a replica */
    bool host_is_name;        /* the URL's host is a name, not an IP address */
    bool alias_is_due;        /* this connection has not tried the URL's alias yet */
    size_t next;              /* index in `addresses` of the next one to try */
    int64_t deadline_ms;      /* when the caller gives up, if nothing is connected yet */
    int64_t next_attempt_ms;  /* when to try the next address beside the pending ones */
    int64_t resolver_deadline_ms; /* when to abandon the host's lookup, and try known addresses */
    size_t n_attempts;
    struct {
        int fd; /* socket whose connect(2) is pending */
        struct address to;
    } attempt[ADDRESSES_MAX];
};

void connector_init(struct connector *connector, const struct url *url);
void connector_fini(struct connector *connector);

/*
 * connector_start: abandon pending lookups and attempts, and begin to connect. Returns
 * RLOCK_PENDING, or a fault.
 *
 *   deadline_ms  on rlock_clock_ms(), when the caller will give up. The caller has to watch it: the
 *                connector only decides by it how long the lookup may take
 */
enum rlock_status connector_start(struct connector *connector, int64_t deadline_ms,
                                  struct rlock_error *err);

/*
 * connector_step: continue to connect, when connector_fd() is ready or connector_wake_ms() has
 * come.
 *
 *   fd  out, on RLOCK_OK only: the connected socket, non-blocking and close-on-exec; the caller
 *       closes it with socket_reset()
 *
 * Returns  RLOCK_OK, RLOCK_PENDING, or a fault: all addresses have failed.
 */
enum rlock_status connector_step(struct connector *connector, int *fd, struct rlock_error *err);

/* When to call connector_step(): at these poll(2) events, or at this time on rlock_clock_ms(). */
int connector_fd(const struct connector *connector);
short connector_events(const struct connector *connector);
int64_t connector_wake_ms(const struct connector *connector);

/* connector_is_resolving: is a lookup running, and no connect(2) pending? */
bool connector_is_resolving(const struct connector *connector);

/* connector_avoid: try the address of the newest connection last, from the next connection on. */
void connector_avoid(struct connector *connector);

/* connector_abandon: stop connecting. Does nothing if nothing is pending. */
void connector_abandon(struct connector *connector);

#endif
