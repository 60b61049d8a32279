/* SPDX-License-Identifier: MIT */
/* owner: one token, the locks that it asks for, and what was granted of them. */
#ifndef OWNER_H
#define OWNER_H

#include "lock/holder_info.h"
#include "lock/keys.h"
#include "lock/replies.h"

/* One of the locks of an owner. */
struct owner_lock {
    struct lock_keys keys;
    size_t parent;  /* which of the owner's parent tokens holds it, from 1; 0: the owner's own */
    int64_t ttl_ms; /* of its lease: as asked for until it is granted; a parent's may be shorter */
    uint64_t fence; /* of the grant; 0: none that the owner knows */
};

/* Only owner.c writes these fields; requests.c makes requests from them. */
struct owner {
    struct owner_lock *lock;
    size_t n_locks;
    char token[RLOCK_TOKEN_BYTES + 1];
    bool is_adopted;        /* another process was granted the lease, and gave us its token alone */
    bool has_renewer;       /* a renewer is to hear of it when the token is released elsewhere */
    bool is_in_quorum;      /* a majority of several servers decides */
    bool is_timestamp;      /* --protocol timestamp: the lock is the time of its expiry */
    bool only_parents;      /* acquire nothing: have the locks under a parent lock, or not at all */
    bool unless_done;       /* a done mark is the answer, instead of a reason to wait */
    bool is_single_attempt; /* asked for once, so no place in line is wanted */
    bool whole_seconds;     /* the server blocks for whole seconds only, as Redis 5 does */
    char (*parent)[RLOCK_TOKEN_BYTES + 1]; /* tokens of the locks that we run under */
    size_t n_parents;
    char holder_info[HOLDER_INFO_BYTES]; /* who we are, for others to read */
    char mode[8];                        /* in the words of the scripts, see requests.c */
    int64_t ttl_ms;                      /* of the leases that are asked for */
    int64_t attempt; /* number of the last acquire that was sent; the token is the same for all */
    int64_t slot;    /* of the grant */
    enum rlock_queue queue;
    int64_t ticket; /* our place in line, which each attempt brings along; 0: none yet */
    enum rlock_ending ending;
    int64_t stay_ms; /* how long the lock stays taken after a release; 0: it doesn't */
};

/*
 * owner_open: an owner of the keys of `config`, with the token of `config` or a new one. All is
 * copied. owner_close() clears the tokens and frees; after a failure, too.
 *
 * Returns  RLOCK_OK, RLOCK_E_USAGE (RLOCK_REASON_TOKEN: no token has this form), RLOCK_E_MEMORY or
 *          RLOCK_E_SYSTEM (no random numbers).
 */
enum rlock_status owner_open(struct owner *owner, const struct rlock_config *config,
                             struct rlock_error *err);
void owner_close(struct owner *owner);

/*
 * owner_join_quorum: all members are told this hash of their list, so that owners who name other
 * members for the same lock find each other out; "": there is one server.
 */
void owner_join_quorum(struct owner *owner, const char *members_hash);

/* owner_start_acquire: ask anew, once or until the lock is had, without a place in line. */
void owner_start_acquire(struct owner *owner, bool is_single_attempt);

/* owner_begin_attempt: the next acquire is another attempt than all before it. */
void owner_begin_attempt(struct owner *owner);

/* owner_set_ticket: take this place in line from the next acquire on; 0: none. */
void owner_set_ticket(struct owner *owner, int64_t ticket);

/* owner_need_whole_seconds: the server refused a fraction of a second in BLPOP. */
void owner_need_whole_seconds(struct owner *owner);

/* owner_take_grant: keep what a member granted, under the fence that all members agreed on. */
void owner_take_grant(struct owner *owner, const struct reply *answer, uint64_t fence);

/*
 * owner_for_repair: a copy for an acquire that puts the token back on a member that has lost it:
 * beside the line, and without regard to a done mark. Borrows all from `owner`; not to be closed.
 */
struct owner owner_for_repair(const struct owner *owner);

/* owner_set_renewal_ttl: renew the leases for this long from now on; 0: for as long as before. */
void owner_set_renewal_ttl(struct owner *owner, int64_t ttl_ms);

/* owner_set_ending: what a release makes of the locks, and for how long. */
void owner_set_ending(struct owner *owner, enum rlock_ending ending, int64_t stay_ms);

/* owner_has_own_lock: was any of the locks granted to the owner itself, who is to release it? */
bool owner_has_own_lock(const struct owner *owner);

/* owner_has_parent_lock: is any of the locks had under the lease of a parent lock? */
bool owner_has_parent_lock(const struct owner *owner);

/* owner_parent_keys: which of the locks are: bit i stands for the i-th. */
uint32_t owner_parent_keys(const struct owner *owner);

/* owner_held_token: the token that holds the locks: a parent's where that holds all of them. */
const char *owner_held_token(const struct owner *owner);

/* owner_granted_ttl_ms: the TTL of the shortest lease among those that were granted. */
int64_t owner_granted_ttl_ms(const struct owner *owner);

/* owner_granted_fence: the greatest fence of the owner's own locks; 0: it knows none. */
uint64_t owner_granted_fence(const struct owner *owner);

/* owner_block_ms: for how long to let the server block, to block for `ms` at least: never 0. */
int64_t owner_block_ms(const struct owner *owner, int64_t ms);

#endif
