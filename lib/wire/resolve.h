/* SPDX-License-Identifier: MIT */
/* resolve: a host name to addresses, in a thread that the caller can leave behind. */
#ifndef RESOLVE_H
#define RESOLVE_H

#include "base/err.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 8

struct address {
    socklen_t bytes; /* 0: none */
    struct sockaddr_storage storage;
};

struct addresses {
    size_t n;
    struct address address[ADDRESSES_MAX];
};

/*
 * resolve_numeric: fill `out` if the host is an IPv4 or IPv6 address itself.
 *
 * Returns  RLOCK_OK, or RLOCK_PENDING: it is a name, which resolve_start() looks up.
 */
enum rlock_status resolve_numeric(const char *host, const char *port, struct addresses *out);

struct addrinfo;

/*
 * resolve_interleave: copy the first ADDRESSES_MAX addresses of a list, in its order, but with
 * IPv4 and IPv6 in turns: where one of the two leads nowhere, the other is tried second.
 */
void resolve_interleave(const struct addrinfo *list, struct addresses *out);

struct lookup;

/*
 * resolve_start: look a name up in a thread of its own, as getaddrinfo(3) takes no deadline.
 *
 *   lookup  out, on RLOCK_OK only; freed by resolve_finish() or resolve_abandon()
 *
 * Returns  RLOCK_OK, RLOCK_E_CONFIG (the name is too long), RLOCK_E_MEMORY or RLOCK_E_SYSTEM.
 */
enum rlock_status resolve_start(struct lookup **lookup, const char *host, const char *port,
                                struct rlock_error *err);

/* resolve_fd: a descriptor that is readable when the lookup has ended. */
int resolve_fd(const struct lookup *lookup);

/* resolve_finish: the result; call it when resolve_fd() is readable, as it blocks until then. */
enum rlock_status resolve_finish(struct lookup *lookup, struct addresses *out,
                                 struct rlock_error *err);

/* resolve_abandon: let the thread end by itself, when getaddrinfo(3) returns; NULL is allowed. */
void resolve_abandon(struct lookup *lookup);

#endif
