/* SPDX-License-Identifier: MIT */
/* resolve: a host name to addresses, where it can be abandoned. */
#ifndef RESOLVE_H
#define RESOLVE_H

#include "base/err.h"

#include <netinet/in.h>
#include <sys/socket.h>

#define ADDRESSES_MAX 8

struct address {
    socklen_t bytes; /* 0: none */
    struct sockaddr_storage at;
};

struct addresses {
    size_t n;
    struct address item[ADDRESSES_MAX];
};

/* resolve_number: a numeric address needs no resolver. RLOCK_OK or RLOCK_PENDING (a name). */
enum rlock_status resolve_number(const char *host, const char *port, struct addresses *out);

/* resolve_keep: as many as there is room for, in their order, but that the families take turns. */
struct addrinfo;

void resolve_keep(const struct addrinfo *list, struct addresses *out);

/*
 * resolve_start: look a name up in a thread of its own, since getaddrinfo
 * knows no deadline. When resolve_fd() is readable call resolve_finish(); to
 * give up earlier call resolve_forget(), and the thread ends by itself. Each
 * frees the lookup.
 */
struct lookup;

enum rlock_status resolve_start(struct lookup **lookup, const char *host, const char *port,
                                struct rlock_error *err);
int resolve_fd(const struct lookup *lookup);
enum rlock_status resolve_finish(struct lookup *lookup, struct addresses *out,
                                 struct rlock_error *err);
void resolve_forget(struct lookup *lookup);

#endif
