/* SPDX-License-Identifier: MIT */
/* quorum: one operation on all members, decided by majority. */
#ifndef QUORUM_H
#define QUORUM_H

#include "lock/requests.h"
#include "quorum/members.h"

/* quorum_set_hooks: whom to tell from now on; {NULL}: nobody. */
void quorum_set_hooks(struct quorum *quorum, struct quorum_hooks hooks);

/*
 * quorum_acquire: ask once. RLOCK_OK (grant), RLOCK_BUSY (obstacle, and
 * `*block_ms`, how long to wait for being woken), RLOCK_SUPERSEDED,
 * RLOCK_STOPPED, RLOCK_PENDING (ask again at once) or a fault.
 */
enum rlock_status quorum_acquire(struct quorum *quorum, struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_grant *grant,
                                 struct rlock_obstacle *obstacle, int64_t *block_ms,
                                 struct rlock_error *err);

/*
 * quorum_block: wait in line, until woken by one of the members or for `*block_ms`.
 * RLOCK_OK, RLOCK_STOPPED or a fault: a hint in any case to ask again. RLOCK_PENDING:
 * woken since our turn comes near; that is to be waited for, for `*block_ms`.
 */
enum rlock_status quorum_block(struct quorum *quorum, struct owner *owner, int64_t *block_ms,
                               struct rlock_deadline deadline, struct rlock_error *err);

/*
 * quorum_requeue: take back what was granted last and isn't to count. Who has a ticket is in line
 * again with it, before anybody else has the lock. What can't be taken back is in doubt.
 */
void quorum_requeue(struct quorum *quorum, const struct owner *owner);

/* quorum_leave: take back all of this token, and leave the line. As quorum_release. */
enum rlock_status quorum_leave(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_error *err);

/*
 * quorum_renew: ask once. RLOCK_OK (`*expires_ms`, `*restored`), RLOCK_LOST (err
 * says to whom), RLOCK_GONE, RLOCK_RELEASED, RLOCK_STOPPED, RLOCK_PENDING (ask again at once) or a
 * fault.
 */
enum rlock_status quorum_renew(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, int64_t *expires_ms, bool *restored,
                               struct rlock_error *err);

/*
 * quorum_learn: ask those members that were not asked before which nodes their Cluster has, as each
 * may be the only one of it that is known. What comes of it shows when that one fails.
 */
void quorum_learn(struct quorum *quorum, struct rlock_deadline deadline);

/* quorum_release: ask once. RLOCK_OK, RLOCK_LOST, RLOCK_GONE, RLOCK_STOPPED or a fault. */
enum rlock_status quorum_release(struct quorum *quorum, const struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_error *err);

/*
 * quorum_ask: any request, to each member. RLOCK_OK with the answer of one of
 * them (the quorum's, until its next request), RLOCK_STOPPED or a fault.
 */
enum rlock_status quorum_ask(struct quorum *quorum, const struct request *request,
                             struct rlock_deadline deadline, const struct resp_value **reply,
                             struct rlock_error *err);

/*
 * quorum_ask_slowly: the same of a request that the server may hold back for
 * `block_ms`; what else the members answered is in their `reply`.
 */
enum rlock_status quorum_ask_slowly(struct quorum *quorum, const struct request *request,
                                    int64_t block_ms, struct rlock_deadline deadline,
                                    const struct resp_value **reply, struct rlock_error *err);

#endif
