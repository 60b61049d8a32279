/* SPDX-License-Identifier: MIT */
/* owner: keeps an owner's token, the names of its locks, its lease and its fences. */
#ifndef OWNER_H
#define OWNER_H

#include "lock/holder_info.h"
#include "lock/keys.h"
#include "lock/replies.h"

#define ENDED_BYTES 160

/* One of the locks of an owner. */
struct owner_lock {
    struct lock_keys keys;
    size_t parent;  /* which parent token holds the lock, counted from 1; 0: the owner's token */
    int64_t ttl_ms; /* before the grant: the TTL to ask for; after: the TTL of the granted lease */
    uint64_t fence; /* the fence of the grant; 0: not known */
};

/* Only owner.c writes these fields; requests.c builds requests from them. */
struct owner {
    struct owner_lock *lock;
    size_t n_locks;
    char token[RLOCK_TOKEN_BYTES + 1];
    bool is_adopted;        /* config gave the token: another process was granted the lease */
    bool has_renewer;       /* a renewer renews the locks; if another process releases them,
                               release.lua tells the renewer */
    bool is_in_quorum;      /* there are several members, and a majority of them decides */
    bool without_scripts;   /* by commands: commands.c builds the requests, not requests.c */
    bool needs_queue;       /* the owner acquires nothing where waiters can't stand in a queue */
    bool is_timestamp;      /* --protocol timestamp: the lock's value is the time of its expiry */
    bool only_parents;      /* acquire the locks only if parent tokens hold them already */
    bool unless_done;       /* if the lock was released as RLOCK_ENDS_DONE: true: don't wait for it;
                               false: wait until the lock's key expires */
    bool is_single_attempt; /* the caller doesn't wait, so the owner doesn't join the queue */
    char (*parent)[RLOCK_TOKEN_BYTES + 1]; /* tokens of the locks that ancestor processes hold */
    size_t n_parents;
    char holder_info[HOLDER_INFO_BYTES]; /* who the owner is, for people who look at the lock */
    /* MODE of acquire.lua: "x", "s" or a number; UNIT of timestamp_lock_acquire.lua: "s" or "ms" */
    char mode[8];
    int64_t ttl_ms;  /* the TTL to ask for */
    int64_t attempt; /* the number of the last attempt; all attempts have the same token */
    int64_t slot;    /* the slot of the grant, with RLOCK_SLOTS; else -1 */
    enum rlock_queue queue;
    int64_t ticket; /* decides the place in the queue; each attempt sends it; 0: none yet */
    enum rlock_ending ending;
    int64_t stay_ms;   /* how long the lock stays taken after the release; 0: it becomes free */
    int64_t history;   /* most entries of the history; 0: the owner keeps none */
    int64_t began_ms;  /* when the acquire began, on rlock_clock_ms() */
    int64_t waited_ms; /* from began_ms until the last attempt began */
    char ended[ENDED_BYTES]; /* ENDED of release.lua: how the hold ended; "": not known */
};

/*
 * owner_open: make an owner of the keys of `config`, with the token of `config` or a new one.
 * Borrows nothing from `config`. owner_close() clears the tokens; the caller calls owner_close()
 * also after a failure.
 *
 * Returns  RLOCK_OK, RLOCK_E_USAGE (RLOCK_REASON_TOKEN: no token has this form), RLOCK_E_MEMORY or
 *          RLOCK_E_SYSTEM (no random numbers).
 */
enum rlock_status owner_open(struct owner *owner, const struct rlock_config *config,
                             struct rlock_error *err);
/*
 * owner_needs_scripts: what keeps the owner from having its lock by commands, such as "a shared
 * lock"; NULL: nothing does, and owner_use_commands() may be called.
 * owner_use_commands: from now on commands.c builds the requests.
 */
const char *owner_needs_scripts(const struct owner *owner);
void owner_use_commands(struct owner *owner);

void owner_close(struct owner *owner);

/*
 * owner_join_quorum: add members=HASH to the holder info, by which other owners learn whether they
 * use the same members. "": there is one server, and nothing to add.
 */
void owner_join_quorum(struct owner *owner, const char *members_hash);

/* owner_start_acquire: begin an acquire without a ticket, of one attempt or of many. */
void owner_start_acquire(struct owner *owner, bool is_single_attempt);

/* owner_begin_attempt: count up the number of the attempt. */
void owner_begin_attempt(struct owner *owner);

/* owner_set_ticket: send this ticket with the next attempts; 0: none. */
void owner_set_ticket(struct owner *owner, int64_t ticket);

/* owner_take_grant: note what `answer` granted, with the fence that the members have agreed on. */
void owner_take_grant(struct owner *owner, const struct reply *answer, uint64_t fence);

/*
 * owner_for_repair: a copy of `owner` for an acquire that writes the token again on a member that
 * has lost the token. The copy ignores the queue, has no ticket, and borrows everything from
 * `owner`. The caller doesn't call owner_close() for the copy.
 */
struct owner owner_for_repair(const struct owner *owner);

/* owner_set_renewal_ttl: renew the leases for this TTL from now on; 0: for their noted TTL. */
void owner_set_renewal_ttl(struct owner *owner, int64_t ttl_ms);

/* owner_set_ending: set what a release does with the locks, and for how long that lasts. */
void owner_set_ending(struct owner *owner, enum rlock_ending ending, int64_t stay_ms);

/* owner_set_end: set how the hold ended, for the history; does nothing if the owner keeps none. */
void owner_set_end(struct owner *owner, const struct rlock_end *end);

/* owner_has_own_lock: does the owner's own token hold any of the locks? */
bool owner_has_own_lock(const struct owner *owner);

/* owner_has_parent_lock: does a parent's token hold any of the locks? */
bool owner_has_parent_lock(const struct owner *owner);

/* owner_parent_keys: bit i is set if a parent's token holds the i-th lock. */
uint32_t owner_parent_keys(const struct owner *owner);

/*
 * owner_held_token: the owner's token, or, if parents hold all locks, the token of the parent that
 * holds the first lock.
 */
const char *owner_held_token(const struct owner *owner);

/* owner_granted_ttl_ms: the shortest TTL of all leases that were granted. */
int64_t owner_granted_ttl_ms(const struct owner *owner);

/* owner_granted_fence: the greatest fence of the owner's own locks; 0: none is known. */
uint64_t owner_granted_fence(const struct owner *owner);

#endif
