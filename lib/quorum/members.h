/* SPDX-License-Identifier: MIT */
/* members: the members of a quorum, which servers they are, and whose votes count. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "quorum/member.h"

#include <poll.h>

#define MEMBERS_HASH_BYTES 9 /* 8 hex digits and a NUL */

/*
 * What a broadcast calls before each poll(2), with its context. Returns when the broadcast must
 * call it again, or RLOCK_NEVER.
 */
typedef int64_t members_wait_hook(void *waiter);

/* The servers that the caller has listed, at least one. A majority of them decides. */
struct members {
    struct tls_context *tls;                         /* NULL: no member is rediss:// */
    struct password_source password_source;          /* for all members whose URL has no password */
    struct password_source sentinel_password_source; /* for all Sentinels */
    struct member *member;
    size_t n;
    size_t need;                    /* how many members are a majority */
    struct pollfd *pollfds;         /* room for the stop descriptor and all members' descriptors */
    int64_t connect_ms;             /* how long a connection may take to be made */
    size_t reply_bytes;             /* the longest reply that is accepted */
    int64_t longest_lease_ms;       /* the longest TTL seen so far, ours or another owner's */
    char client_name[100];          /* of connections: "rlock:KEY", made printable and short */
    char hash[MEMBERS_HASH_BYTES];  /* of all members' addresses; "": there is one member */
    struct rlock_observer observer; /* its on_sent and on_warning; empty: no acquire is going on */
    bool has_warned;                /* members_warn() was called since members_observe() */
    members_wait_hook *on_wait;     /* NULL: none */
    void *waiter;                   /* the context of on_wait */
};

/*
 * members_open: parse the addresses, without connecting. The caller calls members_close() also
 * after a failure.
 */
enum rlock_status members_open(struct members *members, const struct rlock_config *config,
                               struct rlock_error *err);
void members_close(struct members *members);

/*
 * members_check: compare the identities that the members have told by INFO. A member that answered,
 * but whose INFO doesn't tell an identity, gets a fault instead of its answer.
 *
 * Returns  RLOCK_OK, or RLOCK_E_CONFIG: two members are the same server.
 */
enum rlock_status members_check(struct members *members, struct rlock_error *err);

/* members_note_lease: note that an owner's lease has this TTL, for members_uncounted_ms(). */
void members_note_lease(struct members *members, int64_t ttl_ms);

/*
 * members_uncounted_ms: for how many ms the member's grants don't count yet, because the member was
 * restarted so recently that it may have forgotten a lease that has not ended. 0: the grants count.
 */
int64_t members_uncounted_ms(const struct members *members, const struct member *member);

/*
 * members_observe: set what broadcasts call while they wait: the observer's on_sent, when the
 * request to acquire was sent to a majority; and on_wait, with the context `waiter`.
 */
void members_observe(struct members *members, struct rlock_observer observer,
                     members_wait_hook *on_wait, void *waiter);

/* members_warn: call the observer's on_warning for the first warning, and drop all others. */
void members_warn(struct members *members, const char *text);

/* members_silence: fill `err` with "MEMBER: no answer yet" for a member that hasn't answered. */
void members_silence(const struct members *members, struct rlock_error *err);

/*
 * members_fault: sum up why there is no majority: how many members failed, and the text of the most
 * frequent fault. Returns the status of that fault; RLOCK_E_NO_QUORUM: the members without that
 * fault would be a majority.
 */
enum rlock_status members_fault(const struct members *members, struct rlock_error *err);

#endif
