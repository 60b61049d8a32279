/* SPDX-License-Identifier: MIT */
/* members: the members of a quorum, which servers they are, and whose votes count. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "quorum/member.h"

#include <poll.h>

#define MEMBERS_HASH_BYTES 9 /* 8 hex digits and a NUL */

/* Functions that a broadcast calls while it waits for members; each may be NULL. */
struct wait_hooks {
    /* Called once the request to acquire was sent to a majority, which may grant the lock now. */
    void (*on_sent)(void *context);
    /* Called before each poll(2). Returns when it must be called again, or RLOCK_NEVER. */
    int64_t (*on_wait)(void *context);
    /* Called with a warning for people, when the lock is unsafe but the operation goes on. */
    void (*on_warning)(void *context, const char *text);
    void *context;
};

/* The servers that the caller has listed, at least one. A majority of them decides. */
struct members {
    struct tls_context *tls;                         /* NULL: no member is rediss:// */
    struct password_source password_source;          /* for all members whose URL has no password */
    struct password_source sentinel_password_source; /* for all Sentinels */
    struct member *member;
    size_t n;
    size_t need;                   /* how many members are a majority */
    struct pollfd *pollfds;        /* room for the stop descriptor and all members' descriptors */
    int64_t connect_ms;            /* how long a connection may take to be made */
    size_t reply_bytes;            /* the longest reply that is accepted */
    int64_t longest_lease_ms;      /* the longest TTL seen so far, ours or another owner's */
    char client_name[100];         /* of connections: "rlock:KEY", made printable and short */
    char hash[MEMBERS_HASH_BYTES]; /* of all members' addresses; "": there is one member */
    struct wait_hooks hooks;
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

/* members_set_hooks: set the functions to call during waits; all NULL: none. */
void members_set_hooks(struct members *members, struct wait_hooks hooks);

/* members_silence: fill `err` with "MEMBER: no answer yet" for a member that hasn't answered. */
void members_silence(const struct members *members, struct rlock_error *err);

/*
 * members_fault: sum up why there is no majority: how many members failed, and the text of the most
 * frequent fault. Returns the status of that fault; RLOCK_E_NO_QUORUM: the members without that
 * fault would be a majority.
 */
enum rlock_status members_fault(const struct members *members, struct rlock_error *err);

#endif
