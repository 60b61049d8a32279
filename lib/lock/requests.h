/* SPDX-License-Identifier: MIT */
/* requests: what is asked of one server about the locks of one owner. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include "lock/holder_info.h"
#include "lock/replies.h"
#include "lock/scripts.h"

#include <stdbool.h>

/* One lock among those of a lease. */
struct owner_lock {
    char *key[SCRIPT_KEYS];
    char *wake_key; /* of the list by which we are woken when it is our turn */
    size_t parent;  /* which of the parent tokens holds it, from 1; 0: ours does */
    int64_t ttl_ms; /* as it was granted */
    uint64_t fence; /* of the grant; 0: none */
};

/* The locks as their owner knows them. */
struct owner {
    struct owner_lock *lock;
    size_t n;
    char token[RLOCK_TOKEN_BYTES + 1];
    bool is_adopted;  /* it came from elsewhere, and so no fence with it */
    bool has_renewer; /* who releases it by its token leaves word of that */
    bool is_voted;    /* a majority of several servers decides on it */
    char (*parent)[RLOCK_TOKEN_BYTES + 1];
    size_t n_parents;
    bool only_parents; /* it is had under these alone */
    char card[HOLDER_INFO_BYTES];
    char wanted
        [8];      /* how, in the words of the scripts: x, s, a number of slots; or s, ms: of time */
    bool is_time; /* RLOCK_PROTOCOL_TIME_ */
    bool unless_done;
    int64_t ttl_ms;  /* as it is asked for */
    int64_t attempt; /* number of the last acquire sent; one token serves them all */
    int64_t slot;    /* of the grant */
    enum rlock_queue queue;
    bool is_single_attempt; /* the lock is asked for once: no place in line is wanted */
    int64_t ticket;         /* our place in line, which we bring along; 0: none yet */
    bool whole_seconds;     /* the server blocks for whole seconds only (Redis 5) */
    enum rlock_ending ending;
    int64_t stay_ms;
};

enum rlock_status owner_open(struct owner *owner, const struct rlock_config *config,
                             struct rlock_error *err);
void owner_close(struct owner *owner);

/* owner_join_quorum: this owner asks a quorum, known by this hash of members; "": one server. */
void owner_join_quorum(struct owner *owner, const char *list);

/* owner_take_grant: what was granted, from the answer and the fence that all members agreed on. */
void owner_take_grant(struct owner *owner, const struct answer *answer, uint64_t fence);

/* owner_has_own_lock: is any of it ours, and to be given back? */
bool owner_has_own_lock(const struct owner *owner);

/* owner_has_parent_lock: is any of it the lease of a lock that we are under? */
bool owner_has_parent_lock(const struct owner *owner);

/* owner_parent_keys: which of the keys are: bit i is that of the i-th. */
uint32_t owner_parent_keys(const struct owner *owner);

/* owner_held_token: that under which it is held: ours, or the parent one that holds all of it. */
const char *owner_held_token(const struct owner *owner);

/* owner_granted_ttl_ms: the shortest of those that were granted. */
int64_t owner_granted_ttl_ms(const struct owner *owner);

/* owner_block_ms: for how long to ask the server to block for `ms`: longer if it must be. */
int64_t owner_block_ms(const struct owner *owner, int64_t ms);

/* What goes into a request besides the lease. */
struct requests_params {
    int64_t not_after_ms; /* in server time; 0: not known */
    int64_t block_ms;     /* how long to wait for being woken: as owner_block_ms() says */
    uint64_t fence;       /* to be confirmed */
};

/* Requests, all of one form. */
typedef void requests_build(const struct owner *owner, struct request *request,
                            const struct requests_params *when);

requests_build requests_acquire;
requests_build requests_confirm; /* what was granted has this fence, which the server is to know */
requests_build requests_renew;
requests_build requests_release;
requests_build requests_undo;    /* take back what the last acquire may have done, and only that */
requests_build requests_requeue; /* the same, and be in line again with the ticket of the lease */
requests_build requests_leave; /* take back everything, and leave the line: the token's last use */
requests_build requests_wait;  /* wait for being woken */

#endif
