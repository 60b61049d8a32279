/* SPDX-License-Identifier: MIT */
/*
 * oracle: watches what clients believe and what servers do, and says when a promise is broken.
 *
 * The promises are those of rlock.h and of "WHAT A LOCK CAN AND CAN'T PROMISE" in rlock(1):
 *
 *   overlap   two leases that exclude each other are believed in at the same time, from
 *             rlock_acquire()'s return until expires_ms. Excused where an assumption was broken
 *             since the older lease was last confirmed: keys were lost, a clock was set forward
 *   fence     a fence that was given before, or isn't greater than that of a grant which was
 *             complete before this one was asked for
 *   order     a waiter was granted the lock ahead of one that came before it, and that no fault
 *             has hit for 25 s
 *   stuck     nobody was granted a lock that nobody holds, though a waiter without trouble waits
 *   orphan    a token holds a lock though its client has given it up, and no message was lost
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
    bool is_reliable;  /* no message is lost, nothing fails: a token given up must hold nothing */
    int64_t latest_us; /* in a reliable world: how late a message can arrive */
    int64_t ttl_ms;    /* the longest TTL */
    int n_keys;
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

/* ---- what the clients say ---- */

struct claim;

/* A client was granted a lease: bit i of `keys` is key i. Times are true times, in us. */
struct claim *oracle_granted(struct process *process, unsigned keys, enum rlock_mode mode,
                             const struct rlock_grant *grant, int64_t sent_us, int64_t expires_us);
void oracle_renewed(struct claim *claim, int64_t sent_us, int64_t expires_us);

/* oracle_ended: the client's lease is over. `is_free`: the next waiter can be granted the lock. */
void oracle_ended(struct claim *claim, bool is_free);

/* oracle_died: what the client asked for may stay on the servers until its TTL ends. */
void oracle_died(unsigned keys);

/* oracle_gave_up: the library says that this token holds no lock any more. */
void oracle_gave_up(const char *token);

/*
 * oracle_left: rlock_acquire() has returned, so the client waits no more. `is_sure`: it was not
 * granted the lock, and its token holds none.
 */
void oracle_left(struct process *process, bool is_sure);

/* oracle_asked: rlock_acquire() has returned, after `n_requests` requests in `waited_us`. */
void oracle_asked(struct process *process, int64_t n_requests, int64_t waited_us);

/* ---- what else happens ---- */

/* oracle_void: leases of `keys` that were last confirmed before `until_us` may be lost. */
void oracle_void(unsigned keys, int64_t until_us);

/* oracle_break: one more client, or one less (-1), is about to break the locks on `keys`. */
void oracle_break(unsigned keys, int more);

#endif
