/* SPDX-License-Identifier: MIT */
/* socket: connect to a server, by TCP or a Unix socket, never blocking. */
#ifndef SOCKET_H
#define SOCKET_H

#include "wire/resolve.h"
#include "wire/stream.h"
#include "wire/url.h"

/*
 * A call in progress. A name is looked up for each call, as it may lead elsewhere by now: so does
 * that of a hosted server after a failover. The addresses of the call before are called where the
 * resolver fails, or is silent for half of the time.
 */
struct dial {
    const struct url *url; /* borrowed */
    struct lookup *lookup; /* resolving; NULL: not */
    struct addresses known;
    struct address last; /* that was connected; its turn comes first */
    bool is_name;        /* what the URL has is no address */
    bool is_shunned;     /* or last: the server there takes no locks */
    bool has_alias;      /* the other name of the URL was not taken up yet */
    size_t next;         /* index of the address to try next */
    int64_t deadline_ms; /* of the whole call */
    int64_t turn_ms;     /* when the next address is tried beside the others */
    int64_t spare_ms;    /* when those found last time are tried if the resolver is silent */
    size_t n_trying;
    struct {
        struct stream stream;
        struct address to;
    } trying[ADDRESSES_MAX];
    int any_fd; /* an epoll descriptor over all that is waited for; -1: that is one thing at most */
};

void dial_init(struct dial *dial, const struct url *url);
void dial_fini(struct dial *dial);

/* dial_start: begin a call that must stand by `deadline_ms`. RLOCK_PENDING or a fault. */
enum rlock_status dial_start(struct dial *dial, int64_t deadline_ms, struct rlock_error *err);

/* What a call waits for: a descriptor, its poll events, and a time to look again. */
int dial_fd(const struct dial *dial);
short dial_events(const struct dial *dial);
int64_t dial_wake_ms(const struct dial *dial);

/* dial_step: go on. RLOCK_OK (`*stream` is the caller's), RLOCK_PENDING or a fault. */
enum rlock_status dial_step(struct dial *dial, struct stream *stream, struct rlock_error *err);

/* dial_stop: give up. */
void dial_stop(struct dial *dial);

/* dial_is_resolving: is no address known yet, so that the resolver is what is waited for? */
bool dial_is_resolving(const struct dial *dial);

#endif
