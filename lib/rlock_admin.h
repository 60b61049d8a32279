/* SPDX-License-Identifier: MIT */
/*
 * rlock_admin: look at locks, break them, examine a server; and what only the program needs.
 *
 * Handles, deadlines, results and threads are those of rlock.h. The calls that look or break take
 * the key as a parameter: the handle may be opened without keys, which also allows for longer
 * replies (64 KiB with keys).
 */
#ifndef RLOCK_ADMIN_H
#define RLOCK_ADMIN_H

#include "rlock.h"

/* ---- looking ---- */

/* What is seen under a key. */
enum rlock_seen {
    RLOCK_SEEN_FREE,      /* nothing */
    RLOCK_SEEN_KEPT,      /* reserved for a moment for the next waiter */
    RLOCK_SEEN_EXCLUSIVE, /* held by one */
    RLOCK_SEEN_SHARED,    /* held by any number */
    RLOCK_SEEN_SLOTS,     /* held by up to a number */
    RLOCK_SEEN_REST,      /* released with RLOCK_ENDS_REST: taken for a while, by nobody */
    RLOCK_SEEN_DONE,      /* released with RLOCK_ENDS_DONE: the same, and says that it is done */
    RLOCK_SEEN_FOREIGN    /* another program's value, maybe not a lock at all */
};

/* A holder or a waiter. What they said of themselves may contain any bytes, but for `text`. */
struct rlock_party {
    char host[164]; /* "": not told, as for each of these */
    char user[164];
    char command[164];
    char label[164];
    char pid[24];     /* text: nobody checked that it is a number */
    char text[256];   /* all of it for people, printable ASCII */
    int64_t since_ms; /* when the lease or the wait began, server time, ms since 1970; 0: unknown */
    int64_t for_ms;   /* how long ago that was when the server was asked */
    int64_t left_ms;  /* of one of several holders: until its lease ends; else 0 */
    int64_t slot;     /* of RLOCK_SLOTS; -1: none */
    int64_t ttl_ms;   /* of its lease; 0: not told */
};

/* One lock at one moment. All pointers are borrowed for the call that shows it. */
struct rlock_view {
    const char *key;
    enum rlock_seen seen;
    int64_t left_ms;   /* until the key expires; -1: it never does; 0: free */
    uint64_t fence;    /* the last number given; release and break raise it, too; 0: not known */
    int64_t waiting;   /* length of the queue, with waiters that have died; -1: not known */
    const char *name;  /* of the key's present value, for rlock_break(); "": not told */
    const char *value; /* RLOCK_SEEN_FOREIGN: the beginning of it, any bytes; else NULL */
    const struct rlock_party *holders; /* at most 20 of them */
    size_t n_holders;
    size_t n_all;      /* how many hold it, with those that are not shown */
    size_t n_members;  /* servers of the quorum; 1: no quorum */
    size_t n_alike;    /* of these, how many said the same of the lock */
    const char *wrong; /* helper keys that hold foreign data, any bytes; "" or NULL: none */
};

/* Callbacks of the calls that look; the calling thread runs them. Either may be NULL. */
struct rlock_visitor {
    void (*on_lock)(void *context, const struct rlock_view *view);
    void (*on_waiter)(void *context, const struct rlock_party *waiter); /* in the queue's order */
    void *context;
};

/*
 * rlock_inspect: show one lock, also where it is free, and then each of its waiters.
 *
 *   key  1 .. RLOCK_KEY_MAX bytes
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, or a fault: what was shown before it was so.
 * Blocks   until `deadline`; no longer than connect_ms to connect and reply_ms for each reply.
 * Source   lib/lua/inspect.lua.
 */
enum rlock_status rlock_inspect(struct rlock *lock, const char *key, struct rlock_deadline deadline,
                                const struct rlock_visitor *visitor, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_list: show all locks of the server, or of all primaries of its Cluster, in no order and
 * without waiters. A lock that exists during the whole call is shown at least once, rarely twice.
 *
 *   pattern  a glob for keys, as that of SCAN; NULL: all
 *
 * A lock is a string that rlock wrote, or any string for which rlock remembers a fence or has
 * waiters. Returns and blocks as rlock_inspect().
 * Source   lib/lua/list.lua.
 */
enum rlock_status rlock_list(struct rlock *lock, const char *pattern,
                             struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                             struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_break: take a lock away from its holders, and pass it on to the first waiter. The holders
 * can't put it back, and notice at their next renewal.
 *
 *   name  of the value that rlock_inspect() has shown; no other value is taken away
 *
 * Returns  RLOCK_OK, RLOCK_BUSY (somebody else holds the lock by now), RLOCK_GONE (nobody does),
 *          RLOCK_STOPPED, or a fault. Blocks as rlock_inspect().
 * Source   lib/lua/break.lua.
 */
enum rlock_status rlock_break(struct rlock *lock, const char *key, const char *name,
                              struct rlock_deadline deadline, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* ---- examining ---- */

enum rlock_grade {
    RLOCK_GRADE_GOOD,    /* nothing to do */
    RLOCK_GRADE_UNKNOWN, /* the server doesn't tell, mostly for lack of rights */
    RLOCK_GRADE_WEAK,    /* good until a machine, a network or a clock breaks */
    RLOCK_GRADE_UNSAFE   /* locks may end early, or can't be had */
};

/* All pointers are borrowed for the call that shows the finding. Printable ASCII. */
struct rlock_finding {
    const char *server; /* "host:port", or the path of its socket */
    const char *check;  /* what was looked at: "eviction" */
    enum rlock_grade grade;
    const char *found;
    const char *change; /* what to do about it; NULL: nothing */
};

/* The callback of rlock_examine(); the calling thread runs it. */
struct rlock_examiner {
    void (*on_finding)(void *context, const struct rlock_finding *finding);
    void *context;
};

/*
 * rlock_examine: look for what makes locks unsafe: on the server, on the way to it, in what the
 * user may do there. Takes half a second, in which it compares the clocks. Changes nothing.
 *
 *   key  a lock whose keys are tried; NULL: "rlock-doctor"
 *
 * The server is measured by the handle's timing and replicas.
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, or a fault: what was shown before it was so.
 * Blocks   until `deadline`.
 * Source   lib/doctor/, lib/lua/rights.lua.
 */
enum rlock_status rlock_examine(struct rlock *lock, const char *key, struct rlock_deadline deadline,
                                const struct rlock_examiner *examiner, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* ---- passwords ---- */

#define RLOCK_PASSWORD_MAX 16384 /* bytes: servers take no longer one */

/*
 * Looks up a password that may change while a handle is open: for each new connection, and once
 * more when a server refuses what was found. After that a call on a server that has accepted a
 * password before goes on trying until its own end.
 *
 * The thread that uses the handle makes these calls, also the renewer; they must not block. One
 * lookup at a time. The context belongs to the caller, and outlives the handle.
 */
struct rlock_password_source {
    /* begin a lookup that ends at `deadline_ms`, on rlock_clock_ms(). Returns a descriptor, the
     * source's own, that becomes readable when take() has a result; -1: a fault, in `err` */
    int (*ask)(void *context, int64_t deadline_ms, struct rlock_error *err);
    /* called once the descriptor is readable. RLOCK_OK: the password and a NUL in `room` bytes,
     * RLOCK_PASSWORD_MAX + 1; or a fault in `err`: RLOCK_REASON_LOGIN where a later lookup may
     * find another password */
    enum rlock_status (*take)(void *context, char *password, size_t room, struct rlock_error *err);
    /* called once for each password that take() gave, when the library has cleared all copies of
     * all of them; NULL: not called */
    void (*forgotten)(void *context);
    void *context;
};

/*
 * rlock_forget_passwords: clear the passwords of the handle in memory, in a child that was forked
 * with it and doesn't use it. No connection can be opened afterwards.
 */
void rlock_forget_passwords(struct rlock *lock);

/* ---- the rest ---- */

/*
 * Callbacks of rlock_acquire(); the waiting thread runs them. Each may be NULL.
 *
 *   on_sent         an attempt was sent and its reply is on its way: time to prepare what a grant
 *                   will need, as the program forks its guard. Must not block.
 *   on_unreachable  a server was not reached, and will be tried again: may block to mend that
 */
struct rlock_hooks {
    void (*on_sent)(void *context);
    void (*on_unreachable)(void *context);
    void *context;
};

/* rlock_set_hooks: from now on call these; they are copied. */
void rlock_set_hooks(struct rlock *lock, const struct rlock_hooks *hooks);

/* rlock_built_with: what the library was built with, "hiredis 1.2.0, TLS yes"; static. */
const char *rlock_built_with(void);

#endif
