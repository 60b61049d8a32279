/* SPDX-License-Identifier: MIT */
/* members: the members of a quorum, who they are, and which of them count. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "quorum/member.h"

#include <poll.h>

#define MEMBERS_HASH_BYTES 9 /* 8 hex digits and a NUL */

/* What the caller is told while members are waited for; each function may be NULL. */
struct wait_hooks {
    /* So many members were sent the request that they can grant it. */
    void (*on_sent)(void *context);
    /* Called before each wait; returns when it wants to be called again, or RLOCK_NEVER. */
    int64_t (*on_wait)(void *context);
    /* Something is wrong with the lock though nothing has failed: `text` is for people. */
    void (*on_warning)(void *context, const char *text);
    void *context;
};

/* The members that decide together; of a single server there is one. */
struct members {
    struct tls_context *tls;                /* NULL: no member is rediss:// */
    struct password_source password_source; /* of all members that have no password of their own */
    struct password_source sentinel_password_source; /* of all Sentinels */
    struct member *member;
    size_t n;
    size_t need;                   /* a majority of them */
    struct pollfd *pollfds;        /* room for the stop descriptor and what each member waits for */
    int64_t connect_ms;            /* longest time for a connection to be made */
    size_t reply_bytes;            /* the longest reply that is accepted */
    int64_t longest_lease_ms;      /* that is known of, ours or another owner's */
    char hash[MEMBERS_HASH_BYTES]; /* of all addresses; "": there is one member */
    struct wait_hooks hooks;
};

/*
 * members_open: parse the addresses; no connection is made. After a failure, too, members_close()
 * is to be called.
 */
enum rlock_status members_open(struct members *members, const struct rlock_config *config,
                               struct rlock_error *err);
void members_close(struct members *members);

/*
 * members_check: compare what the members told of themselves. RLOCK_OK, or RLOCK_E_CONFIG: two of
 * them are the same server. A member that answered but doesn't tell who it is has a fault from then
 * on.
 */
enum rlock_status members_check(struct members *members, struct rlock_error *err);

/* members_note_lease: somebody holds a lease of this length. */
void members_note_lease(struct members *members, int64_t ttl_ms);

/*
 * members_uncounted_ms: for how many ms yet what this member grants doesn't count: it was restarted
 * so recently that it may have forgotten a lease that has not ended. 0: it counts.
 */
int64_t members_uncounted_ms(const struct members *members, const struct member *member);

/*
 * members_alone: one of the members as the only one of its own list, to be asked alone, and else
 * like `members`. Borrows all three; not to be closed.
 */
struct members members_alone(const struct members *members, struct member *member,
                             struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX]);

/* members_set_connect_ms: how long a connection may take to be made from now on. */
void members_set_connect_ms(struct members *members, int64_t connect_ms);

/* members_set_hooks: whom to tell while members are waited for; all NULL: nobody. */
void members_set_hooks(struct members *members, struct wait_hooks hooks);

/* members_fault: too few members answered as is needed: which, why, and how many did. */
enum rlock_status members_fault(const struct members *members, struct rlock_error *err);

#endif
