/* SPDX-License-Identifier: MIT */
/* resolve: looks up the addresses of a host name, in a thread that the caller may abandon. */
#ifndef RESOLVE_H
#define RESOLVE_H

#include "base/err.h"
#include "wire/addresses.h"

/*
 * resolve_numeric: fill `out` if the host is an IPv4 or IPv6 address.
 *
 * Returns  RLOCK_OK, or RLOCK_PENDING if the host is a name, which resolve_start() looks up.
 */
enum rlock_status resolve_numeric(const char *host, const char *port, struct addresses *out);

struct addrinfo;

/*
 * resolve_interleave: copy the first ADDRESSES_MAX addresses of a list, alternating between IPv4
 * and IPv6. If this machine has no route for one of the two, the second attempt uses the other.
 */
void resolve_interleave(const struct addrinfo *list, struct addresses *out);

struct lookup;

/*
 * resolve_start: look a name up in a thread of its own, as getaddrinfo(3) takes no deadline.
 *
 *   lookup  out, on RLOCK_OK only; resolve_finish() or resolve_abandon() frees it
 *
 * Returns  RLOCK_OK, RLOCK_E_CONFIG (the name is too long), RLOCK_E_MEMORY or RLOCK_E_SYSTEM.
 */
enum rlock_status resolve_start(struct lookup **lookup, const char *host, const char *port,
                                struct rlock_error *err);

/* resolve_fd: a descriptor that becomes readable when the lookup has ended. */
int resolve_fd(const struct lookup *lookup);

/*
 * resolve_finish: return the result, and free the lookup. Blocks until resolve_fd() is readable.
 *
 *   out  out, on RLOCK_OK only: at least one address
 *
 * Returns  RLOCK_OK or RLOCK_E_UNREACHABLE.
 */
enum rlock_status resolve_finish(struct lookup *lookup, struct addresses *out,
                                 struct rlock_error *err);

/* resolve_abandon: give up the lookup, without waiting for its thread. NULL is allowed. */
void resolve_abandon(struct lookup *lookup);

#endif
