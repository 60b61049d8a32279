/* SPDX-License-Identifier: MIT */
/* socket: connect to a server by TCP or a Unix socket, send and receive; nothing blocks. */
#ifndef SOCKET_H
#define SOCKET_H

#include "wire/resolve.h"
#include "wire/url.h"

/* ---- bytes; `fd` is a connected, non-blocking socket ---- */

/*
 * socket_send, socket_receive: one send(2) or recv(2) of at most `n` bytes.
 *
 *   done  out, on RLOCK_OK only: how many bytes were sent or received, at least 1
 *
 * Returns  RLOCK_OK, RLOCK_PENDING (the kernel takes or has nothing now) or RLOCK_E_UNREACHABLE
 *          (the connection is broken; also when the server has closed it).
 */
enum rlock_status socket_send(int fd, const char *bytes, size_t n, size_t *done,
                              struct rlock_error *err);
enum rlock_status socket_receive(int fd, char *bytes, size_t n, size_t *done,
                                 struct rlock_error *err);

/*
 * socket_reset: close `*fd` with a TCP reset, and set it to -1; -1 is allowed. What the kernel
 * has not delivered yet is dropped. Otherwise it would be sent again for minutes, and the server
 * might execute a request long after the caller gave it up.
 */
void socket_reset(int *fd);

/* ---- connecting ---- */

enum connector_name { CONNECTOR_HOST, CONNECTOR_ALIAS, CONNECTOR_NAMES };

/*
 * How a server is connected, any number of times, one after the other. A host name is resolved
 * anew for each connection, since it may lead to another server by now: so does that of a hosted
 * server after a failover. The addresses of the connection before are tried again where the
 * resolver fails, or hasn't answered in half of the time.
 */
struct connector {
    const struct url *url;                  /* borrowed */
    struct lookup *lookup[CONNECTOR_NAMES]; /* that are running; NULL: none of that name is */
    struct addresses addresses;   /* of the server, in the order in which they are tried */
    struct address connected;     /* of the newest connection: is tried first, or... */
    bool avoids_connected;        /* ... last, as the server there is a replica by now */
    bool host_is_name;            /* the host is to be resolved: it isn't an address itself */
    bool alias_is_due;            /* the URL's other name for the server was not tried yet */
    size_t next;                  /* index of the address that is tried next */
    int64_t deadline_ms;          /* when the connection must stand at the latest */
    int64_t next_attempt_ms;      /* when the next address is tried beside the pending ones */
    int64_t resolver_deadline_ms; /* when the former addresses are tried instead of resolving */
    size_t n_attempts;
    struct {
        int fd; /* of a connect(2) that is pending */
        struct address to;
    } attempt[ADDRESSES_MAX];
    int epoll_fd; /* over lookups and attempts, where several are pending; -1: at most one is */
};

void connector_init(struct connector *connector, const struct url *url);
void connector_fini(struct connector *connector);

/*
 * connector_start: begin to connect; nothing may be pending. Returns RLOCK_PENDING, or a fault.
 *
 *   deadline_ms  on rlock_clock_ms(). The caller watches it; here the time is only divided by it
 */
enum rlock_status connector_start(struct connector *connector, int64_t deadline_ms,
                                  struct rlock_error *err);

/*
 * connector_step: go on, when connector_fd() is ready or connector_wake_ms() has come.
 *
 *   fd  out, on RLOCK_OK only: the connected socket, non-blocking and close-on-exec, now the
 *       caller's; give back with socket_reset()
 *
 * Returns  RLOCK_OK, RLOCK_PENDING, or a fault: all addresses have failed.
 */
enum rlock_status connector_step(struct connector *connector, int *fd, struct rlock_error *err);

/* What is waited for: a descriptor, its poll(2) events; and a time on rlock_clock_ms(). */
int connector_fd(const struct connector *connector);
short connector_events(const struct connector *connector);
int64_t connector_wake_ms(const struct connector *connector);

/* connector_is_resolving: is only the resolver waited for, as no address is known yet? */
bool connector_is_resolving(const struct connector *connector);

/* connector_avoid: the address that was connected last is tried last from now on. */
void connector_avoid(struct connector *connector);

/* connector_abandon: stop connecting, if it was started. */
void connector_abandon(struct connector *connector);

#endif
