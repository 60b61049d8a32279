/* SPDX-License-Identifier: MIT */
/*
 * quorum: acquires, renews and releases locks by a majority of members.
 *
 * Each call asks each member once, and blocks until a majority has decided, until `deadline`, or
 * until replies have taken too long (connect_ms to connect, then timing.reply_ms). The result
 * RLOCK_PENDING means that there is no decision, and that the caller should call again at once.
 * Only one thread at a time may use a quorum.
 */
#ifndef QUORUM_H
#define QUORUM_H

#include "lock/commands.h"
#include "lock/requests.h"
#include "quorum/members.h"

/* The members, and the state of the last operation. A single server is a quorum of one. */
struct quorum {
    struct members members;
    struct rlock_timing timing;
    bool without_scripts;    /* locks are held, read and broken by commands, not by scripts */
    bool may_use_commands;   /* quorum_use_commands() may be called if the server refuses scripts */
    int64_t replicas;        /* how many replicas of each member must have a grant; 0: none */
    unsigned in_doubt;       /* bit i is set: member i may have granted the lock, though
                                quorum_acquire() failed */
    unsigned lost;           /* bit i is set: member i has said since the last acquire that it
                                lacks the lock, and has not confirmed the lock since */
    bool recently_restarted; /* a majority would grant the lock, but some of these members were
                                restarted, and may have forgotten who holds it */
    int n_splits;            /* how many of the last acquires in a row found the lock split: the
                                owner had it on some members, another owner on others */
    struct rlock_loss loss;  /* why the last renewal found the lock lost; RLOCK_LOSS_UNKNOWN else */
};

/*
 * quorum_open: parse the addresses, without connecting. The caller calls quorum_close() also after
 * a failure.
 */
enum rlock_status quorum_open(struct quorum *quorum, const struct rlock_config *config,
                              struct rlock_error *err);
void quorum_close(struct quorum *quorum);

/* quorum_use_commands: from now on hold, read and break locks by commands. */
void quorum_use_commands(struct quorum *quorum);

/*
 * quorum_alone: return a quorum whose only member is `member`, with the settings of `quorum`, so
 * that the caller can send a request to this member only. The result borrows all three arguments,
 * and the caller doesn't call quorum_close() for it.
 */
struct quorum quorum_alone(const struct quorum *quorum, struct member *member,
                           struct pollfd pollfds[1 + MEMBER_POLLFDS_MAX]);

/* quorum_set_patience: set how long a connection and a reply may take from now on. */
void quorum_set_patience(struct quorum *quorum, int64_t connect_ms, int64_t reply_ms);

/*
 * quorum_acquire: make one attempt to acquire all locks of `owner`.
 *
 *   grant     out, on RLOCK_OK
 *   obstacle  out, on RLOCK_BUSY, RLOCK_DONE, and if quorum->recently_restarted: who is in the way
 *   block_ms  out, on RLOCK_BUSY: how long to wait by quorum_block() before the next attempt
 *
 * Returns  RLOCK_OK, RLOCK_BUSY, RLOCK_DONE, RLOCK_SUPERSEDED, RLOCK_GONE (owner->only_parents: no
 *          parent holds a lock), RLOCK_STOPPED, RLOCK_PENDING or a fault. If the result isn't
 *          RLOCK_OK, quorum->in_doubt tells which members may have granted the locks all the same.
 */
enum rlock_status quorum_acquire(struct quorum *quorum, struct owner *owner,
                                 struct rlock_deadline deadline, struct rlock_grant *grant,
                                 struct rlock_obstacle *obstacle, int64_t *block_ms,
                                 struct rlock_error *err);

/*
 * quorum_doubt: note in quorum->in_doubt that each member may have granted the lock, and has not
 * released it since. For a caller that rejects the last grant.
 */
void quorum_doubt(struct quorum *quorum);

/* quorum_may_be_held: are so many members in doubt that nobody else may get a majority? */
bool quorum_may_be_held(const struct quorum *quorum);

/*
 * quorum_block: block until one of the members wakes the owner in the queue, or for `*block_ms`.
 *
 * Returns  RLOCK_OK or a fault: the caller makes the next attempt. RLOCK_STOPPED: no more attempts.
 *          RLOCK_PENDING: the owner is one of the next to get the lock: the caller should call
 *          again, with the new `*block_ms`.
 */
enum rlock_status quorum_block(struct quorum *quorum, const struct owner *owner, int64_t *block_ms,
                               struct rlock_deadline deadline, struct rlock_error *err);

/*
 * quorum_requeue: undo the last grant. If `owner` has a ticket, each member puts the owner back
 * into the queue in the same step, before another owner can get the lock. On a member that doesn't
 * answer the grant may stay.
 */
void quorum_requeue(struct quorum *quorum, const struct owner *owner);

/*
 * quorum_renew: make one attempt to extend the leases. Blocks for timing.reply_ms at the
 * longest; if members of a quorum have lost the lock, this call also writes it to them again,
 * which may block for a quarter of the TTL more.
 *
 *   expires_ms  out, on RLOCK_OK: the new end of the leases, on rlock_clock_ms()
 *   restored    out, on RLOCK_OK: a member had lost the lock, and has put it back
 *
 * Returns  RLOCK_OK, RLOCK_LOST (another owner holds the lock, or somebody has broken it),
 *          RLOCK_GONE (nobody holds it), RLOCK_RELEASED, RLOCK_STOPPED, RLOCK_PENDING or a fault.
 */
enum rlock_status quorum_renew(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, int64_t *expires_ms, bool *restored,
                               struct rlock_error *err);

/*
 * quorum_learn_topology: send CLUSTER NODES to each member whose primary wasn't sent it yet. If
 * that server dies later, the member knows other nodes to ask. Ignores failures.
 */
void quorum_learn_topology(struct quorum *quorum, struct rlock_deadline deadline);

/*
 * quorum_release: make one attempt to release the locks. Returns RLOCK_OK, RLOCK_LOST,
 * RLOCK_GONE, RLOCK_STOPPED or a fault.
 *
 *   released  in, out: bit i is set: member i may have executed an earlier attempt, so any answer
 *             counts as a release, unless it is in quorum->lost. 0 before the first attempt
 */
enum rlock_status quorum_release(struct quorum *quorum, const struct owner *owner,
                                 struct rlock_deadline deadline, unsigned *released,
                                 struct rlock_error *err);

/*
 * quorum_leave: remove all that the token ever wrote, and leave the queue. Returns what
 * quorum_release() returns.
 */
enum rlock_status quorum_leave(struct quorum *quorum, const struct owner *owner,
                               struct rlock_deadline deadline, struct rlock_error *err);

/*
 * quorum_has_lost: have so many members said since the last acquire that they lack the lock, and
 * not confirmed it since, that no majority has it?
 */
bool quorum_has_lost(const struct quorum *quorum);

/*
 * quorum_is_unanswered: did the last call send a request to a member that has not answered it? The
 * member may have executed the request.
 */
bool quorum_is_unanswered(const struct quorum *quorum);

/* quorum_has_heard: has any server of the members whose bit is set ever sent a byte? */
bool quorum_has_heard(const struct quorum *quorum, unsigned members);

/*
 * quorum_may_retry_password: the last call returned the fault `st`. Do all members with this fault
 * refuse only the password, so that a new lookup may help? See member_may_retry_password().
 */
bool quorum_may_retry_password(const struct quorum *quorum, enum rlock_status st);

/*
 * quorum_ask: send any request, borrowed, to each member. Returns RLOCK_OK when a majority has
 * replied; all replies are in `members.member[i].reply` until the next request, and `*reply` is the
 * one with the lowest i. Else RLOCK_STOPPED or a fault.
 */
enum rlock_status quorum_ask(struct quorum *quorum, const struct request *request,
                             struct rlock_deadline deadline, const struct resp_value **reply,
                             struct rlock_error *err);

/*
 * quorum_do: do an operation without scripts, on the only member, whose `answer` is the result.
 * Returns RLOCK_OK, RLOCK_STOPPED or a fault.
 */
enum rlock_status quorum_do(struct quorum *quorum, struct commands *commands,
                            struct rlock_deadline deadline, struct rlock_error *err);

/*
 * quorum_ask_slowly: as quorum_ask(), but for a command that may block on the server for
 * `block_ms`. Waits until all members have replied.
 */
enum rlock_status quorum_ask_slowly(struct quorum *quorum, const struct request *request,
                                    int64_t block_ms, struct rlock_deadline deadline,
                                    const struct resp_value **reply, struct rlock_error *err);

#endif
