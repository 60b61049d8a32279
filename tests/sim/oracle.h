/* SPDX-License-Identifier: MIT */
/*
 * oracle: watches what clients believe and what servers do, and says when a promise is broken.
 *
 * The promises are those of rlock.h and of PROMISES in rlock-locks(7):
 *
 *   overlap   two clients believe at the same time in leases that exclude each other. A client
 *             believes in its lease from the return of rlock_acquire() until expires_ms. The oracle
 *             accepts an overlap if, after the older lease was last confirmed, a server lost its
 *             keys or a server's clock was set forward
 *   fence     a client got a fence that was given before, or that isn't greater than the fence of
 *             a grant which another client had before this client sent its request
 *   order     a waiter was granted the lock ahead of one that came before it, and that no fault
 *             has hit for 25 s
 *   stuck     for 10 s no client was granted a lock that nobody holds, though a client waits that
 *             no fault has hit for 25 s
 *   orphan    a token holds a lock though its client has given the lock up, and no message was lost
 *   foreign   a key was changed that isn't the lock's, or that another program has planted
 *   expiry    a key was left without an expiry
 *   requests  a client has sent more requests for one grant than the time that it waited allows
 *   late      rlock_acquire() has returned later than it promises
 */
#ifndef ORACLE_H
#define ORACLE_H

#include "process.h"
#include "rlock.h"
#include "server.h"

#define ORACLE_KEYS_MAX 8

/* The properties of the world, which the checks depend on. */
struct oracle_world {
    bool is_quorum;
    bool is_reliable;  /* no message is lost, so a client that gives up must leave no lock behind */
    int64_t latest_us; /* the longest delay of a message in the network */
    int64_t ttl_ms;    /* the longest TTL that a client asks for */
    int n_keys;
    /* The servers refuse that scripts wake waiters, or some clients wait without a queue. */
    bool has_no_order;
    bool has_sets; /* a client may ask for several keys, and keep one until it has all */
};

void oracle_start(const struct oracle_world *world);
bool oracle_has_failed(void);
int64_t oracle_n_grants(void);

/*
 * oracle_fail: print which promise of rlock was broken, and stop the simulation by engine_stop().
 * Returns to the caller. Later calls do nothing.
 */
void oracle_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- calls by clients ---- */

struct claim;

/* A client was granted a lease: bit i of `keys` is key i. Times are true times, in us. */
struct claim *oracle_granted(struct process *process, unsigned keys, enum rlock_mode mode,
                             const struct rlock_grant *grant, int64_t sent_us, int64_t expires_us);
void oracle_renewed(struct claim *claim, int64_t sent_us, int64_t expires_us);

/* oracle_ended: the client's lease is over. `is_free`: the next waiter can be granted the lock. */
void oracle_ended(struct claim *claim, bool is_free);

/*
 * oracle_died: a client was killed, and released nothing: its locks on these keys may stay on the
 * servers until their TTL ends.
 */
void oracle_died(unsigned keys);

/* oracle_gave_up: the library says that this token holds no lock any more. */
void oracle_gave_up(const char *token);

/*
 * oracle_left: rlock_acquire() has returned `st`, so the client no longer waits. A client that was
 * not granted the lock must hold none; after an error it may hold one if a message was lost.
 */
void oracle_left(struct process *process, enum rlock_status st);

/* oracle_asked: rlock_acquire() has returned, after `n_requests` requests in `waited_us`. */
void oracle_asked(struct process *process, int64_t n_requests, int64_t waited_us);

/* ---- called when leases may be lost ---- */

/* oracle_void: leases of `keys` that were last confirmed before `until_us` may be lost. */
void oracle_void(unsigned keys, int64_t until_us);

/* oracle_break: one more client, or one less (-1), is about to break the locks on `keys`. */
void oracle_break(unsigned keys, int more);

#endif
