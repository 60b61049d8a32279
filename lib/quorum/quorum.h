/* SPDX-License-Identifier: MIT */
/*
 * quorum: one operation on all members, decided by majority.
 *
 * Each call asks each member once and blocks until a majority has decided, until `deadline`, or
 * until replies have taken too long (timing.reply_ms after connect_ms). RLOCK_PENDING as a result
 * means: nothing is decided, ask again at once. One thread at a time.
 */
#ifndef QUORUM_H
#define QUORUM_H

#include "lock/requests.h"
#include "quorum/members.h"

/* The members and how they are asked; a single server is a quorum of one. */
struct quorum {
    struct members members;
    struct rlock_timing timing;
    int64_t replicas;        /* of each member, that must have a grant; 0: none */
    bool in_doubt;           /* an acquire may have been executed though no answer says so */
    bool recently_restarted; /* a majority would grant the lock, but too few of these count yet */
    bool is_passed_on;       /* of the last release: a waiter has its turn */
};

/*
 * quorum_open: parse the addresses; no connection is made. After a failure, too, quorum_close() is
 * to be called.
 */
enum rlock_status quorum_open(struct quorum *quorum, const struct rlock_config *config,
                              struct rlock_error *err);
void quorum_close(struct quorum *quorum);

/*
 * quorum_alone: a member as a quorum of its own, to be asked alone, and else like `quorum`.
 * Borrows all three; not to be closed.
 */
struct quorum quorum_alone(const struct quorum *quorum, struct member *member,
                           struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX]);

/* quorum_set_patience: how long a connection and a reply may take from now on. */
void quorum_set_patience(struct quorum *quorum, int64_t connect_ms, int64_t reply_ms);

/* quorum_set_hooks: whom to tell while members are waited for; all NULL: nobody. */
void quorum_set_hooks(struct quorum *quorum, struct wait_hooks hooks);

/*
 * quorum_acquire: try to have the locks, once.
 *
 *   grant     out, on RLOCK_OK
 *   obstacle  out, on RLOCK_BUSY, RLOCK_DONE, or while members were restarted too recently
 *   block_ms  out, on RLOCK_BUSY: how long to wait in line until asking again
 *
 * Returns  RLOCK_OK, RLOCK_BUSY, RLOCK_DONE, RLOCK_SUPERSEDED, RLOCK_GONE (only parents were asked
 *          for), RLOCK_STOPPED, RLOCK_PENDING or a fault. quorum->in_doubt tells whether the locks
 *          may be held by the owner though that isn't RLOCK_OK.
 */
enum rlock_status quorum_acquire(struct quorum *quorum, struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_grant *grant,
                                 struct rlock_obstacle *obstacle, int64_t *block_ms,
                                 struct rlock_error *err);

/* quorum_doubt: the last grant isn't to count, and is not released yet: quorum->in_doubt. */
void quorum_doubt(struct quorum *quorum);

/*
 * quorum_block: wait in line until one of the members wakes the owner, or for `*block_ms`.
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED or a fault: each only a hint to ask again. RLOCK_PENDING: the
 *          owner's turn is near; it should wait on for `*block_ms`, which was set to that.
 */
enum rlock_status quorum_block(struct quorum *quorum, struct owner *owner, int64_t *block_ms,
                               struct rlock_deadline deadline, struct rlock_error *err);

/*
 * quorum_requeue: undo the last grant, and stand in line again with the ticket of `owner`, if it
 * has one, before anybody else is granted the lock. A member that doesn't answer may still hold it.
 */
void quorum_requeue(struct quorum *quorum, const struct owner *owner);

/*
 * quorum_renew: extend the leases, once.
 *
 *   expires_ms, restored  out, on RLOCK_OK: the new end on rlock_clock_ms(), and whether the lock
 *                         had vanished from a member that put it back
 *
 * Returns  RLOCK_OK, RLOCK_LOST or RLOCK_GONE (err says which), RLOCK_RELEASED, RLOCK_STOPPED,
 *          RLOCK_PENDING or a fault.
 */
enum rlock_status quorum_renew(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, int64_t *expires_ms, bool *restored,
                               struct rlock_error *err);

/*
 * quorum_learn_topology: ask each member for the nodes of its Cluster, if that wasn't asked yet:
 * its server may be the only node that is known, and die. Nothing is told of what comes of it.
 */
void quorum_learn_topology(struct quorum *quorum, struct rlock_deadline deadline);

/*
 * quorum_release: give the locks back, once. RLOCK_OK (quorum->is_passed_on tells whether a waiter
 * has its turn now), RLOCK_LOST, RLOCK_GONE, RLOCK_STOPPED or a fault.
 */
enum rlock_status quorum_release(struct quorum *quorum, const struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_error *err);

/* quorum_leave: remove all that the token ever placed, and leave the line. As quorum_release. */
enum rlock_status quorum_leave(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_error *err);

/*
 * quorum_is_unanswered: was a request of the last call sent to a member that didn't answer? It may
 * have been executed.
 */
bool quorum_is_unanswered(const struct quorum *quorum);

/* quorum_has_heard: has any server of any member ever answered? */
bool quorum_has_heard(const struct quorum *quorum);

/*
 * quorum_may_retry_password: the last call ended in `st`. Did all members that say so refuse only
 * the password, where one was accepted before and the next lookup may find another?
 */
bool quorum_may_retry_password(const struct quorum *quorum, enum rlock_status st);

/*
 * quorum_ask: any request, to each member; borrowed. RLOCK_OK when a majority replied: `*reply` is
 * that of one of them, until its next request, and the others' are in `member[i].reply`.
 * RLOCK_STOPPED or a fault.
 */
enum rlock_status quorum_ask(struct quorum *quorum, const struct request *request,
                             struct rlock_deadline deadline, const struct resp_value **reply,
                             struct rlock_error *err);

/* quorum_ask_slowly: the same of a request whose reply a server may hold back for `block_ms`. */
enum rlock_status quorum_ask_slowly(struct quorum *quorum, const struct request *request,
                                    int64_t block_ms, struct rlock_deadline deadline,
                                    const struct resp_value **reply, struct rlock_error *err);

#endif
