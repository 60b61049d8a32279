/* SPDX-License-Identifier: MIT */
/* members: the members of a quorum, who they are, and which of them count. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "quorum/member.h"

#include <poll.h>

#define MEMBERS_HASH_BYTES 9 /* 8 hex digits and a NUL */

/* What the caller is told while members are waited for; each function may be NULL. */
struct quorum_hooks {
    /* So many members were sent the request that they can grant it. */
    void (*on_sent)(void *context);
    /* Called before each wait; returns when it wants to be called again, or RLOCK_NEVER. */
    int64_t (*on_wait)(void *context);
    /* Something is wrong with the lock though nothing has failed: `text` is for people. */
    void (*on_warning)(void *context, const char *text);
    void *context;
};

struct quorum {
    struct tls_context *tls;                /* NULL: no member is rediss:// */
    struct password_source password_source; /* of all members that have no password of their own */
    struct password_source sentinel_password_source; /* of all Sentinels */
    struct member *member;
    struct pollfd *watch; /* the stop descriptor, and what each member waits for */
    size_t n;
    size_t need; /* a majority; of one it is one */
    struct rlock_timing timing;
    int64_t connect_ms;
    size_t reply_bytes;      /* the longest reply */
    int64_t replicas;        /* of a member, that must have what it granted; 0: none */
    bool in_doubt;           /* an acquire may have been executed though no answer came */
    bool recently_restarted; /* enough members would grant it, but too few of them count yet */
    bool is_passed_on;       /* what was released last: a waiter has its turn */
    struct quorum_hooks hooks;
    int64_t longest_ms; /* the longest lease that is known of, ours or another's */
    char members_hash[MEMBERS_HASH_BYTES]; /* of the list of members; "": there is one */
};

enum rlock_status members_open(struct quorum *quorum, const struct rlock_config *config,
                               struct rlock_error *err);
void members_close(struct quorum *quorum);

/*
 * members_check: what the members told of themselves. RLOCK_OK, RLOCK_E_CONFIG
 * (two of them are the same server); one that tells nothing has a fault from
 * then on.
 */
enum rlock_status members_check(struct quorum *quorum, struct rlock_error *err);

/*
 * members_young_ms: for how long yet a member may have forgotten a lease that
 * has not ended, because it was started so lately; 0: it counts.
 */
int64_t members_young_ms(const struct quorum *quorum, const struct member *member);

/*
 * members_alone: one of the members as a quorum of its own, to be asked alone.
 * It borrows everything, `watch` as well.
 */
struct quorum members_alone(const struct quorum *quorum, size_t nth,
                            struct pollfd watch[1 + MEMBER_WATCH_MAX]);

/* members_fault: too few members answered as it is needed: which, why, and how many did. */
enum rlock_status members_fault(const struct quorum *quorum, struct rlock_error *err);

#endif
