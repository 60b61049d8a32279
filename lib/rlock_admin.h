/* SPDX-License-Identifier: MIT */
/*
 * rlock_admin: inspect, list and break locks, examine a server, and what else the program needs.
 *
 * Handles, deadlines, results and threads are those of rlock.h. The calls take the key as a
 * parameter, so the handle may be opened without keys. Such a handle accepts longer replies; a
 * handle with keys accepts 64 KiB.
 */
#ifndef RLOCK_ADMIN_H
#define RLOCK_ADMIN_H

#include "rlock.h"

/* ---- inspecting and breaking locks ---- */

/* What the key of a lock contains. */
enum rlock_seen {
    RLOCK_SEEN_FREE,      /* the key doesn't exist */
    RLOCK_SEEN_KEPT,      /* reserved for the next waiter, for at most 0.5 s */
    RLOCK_SEEN_EXCLUSIVE, /* held by one owner */
    RLOCK_SEEN_SHARED,    /* held by owners that use RLOCK_SHARED */
    RLOCK_SEEN_SLOTS,     /* held by owners that use RLOCK_SLOTS */
    RLOCK_SEEN_REST,      /* released with RLOCK_ENDS_REST: nobody holds or can acquire it yet */
    RLOCK_SEEN_DONE,      /* as RLOCK_SEEN_REST, but released with RLOCK_ENDS_DONE */
    RLOCK_SEEN_FOREIGN    /* the value of another program, which may be no lock at all */
};

/* A holder or a waiter. The strings may contain any bytes, except for `text`. */
struct rlock_party {
    char host[164]; /* "": not told (also for user, command, label) */
    char user[164];
    char command[164];
    char label[164];
    char pid[24];     /* as the party wrote it, maybe no number */
    char text[256];   /* a summary of the strings above for people, printable ASCII */
    int64_t since_ms; /* start of the lease or the wait, server time, ms since 1970; 0: unknown */
    int64_t for_ms;   /* from since_ms until the server replied */
    int64_t left_ms;  /* until the lease ends, if the lock may have several holders; else 0 */
    int64_t slot;     /* the slot number, with RLOCK_SLOTS; else -1 */
    int64_t ttl_ms;   /* the TTL of the lease; 0: not told */
};

/* One lock at one moment. The pointers are valid until on_lock() returns. */
struct rlock_view {
    const char *key;
    enum rlock_seen seen;
    int64_t left_ms;   /* until the key expires; -1: it never expires; 0: free */
    uint64_t fence;    /* the newest fence; grants, releases and breaks raise it; 0: not known */
    int64_t waiting;   /* length of the queue, dead waiters included; -1: not known */
    const char *name;  /* identifies the key's present value, for rlock_break(); "": not told */
    const char *value; /* with RLOCK_SEEN_FOREIGN: how the key's value begins; else NULL */
    const struct rlock_party *holders; /* the first 20 holders at most */
    size_t n_holders;
    size_t n_all;      /* number of all holders, also beyond `holders` */
    size_t n_members;  /* number of members; 1: a single server */
    size_t n_alike;    /* number of members that report the same value of the key */
    const char *wrong; /* names of helper keys with another program's data; "" or NULL: none */
};

/* Callbacks of rlock_inspect() and rlock_list(), in the caller's thread. Each may be NULL. */
struct rlock_visitor {
    void (*on_lock)(void *context, const struct rlock_view *view);
    void (*on_waiter)(void *context, const struct rlock_party *waiter); /* in queue order */
    void *context;
};

/*
 * rlock_inspect: passes one lock to on_lock(), also if it is free, and then each of its waiters to
 * on_waiter().
 *
 *   key  1 .. RLOCK_KEY_MAX bytes
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, or a fault; what the callbacks got before a fault is valid.
 * Blocks   until `deadline`, and at most connect_ms to connect and reply_ms for each reply.
 * Source   lib/lua/inspect.lua.
 */
enum rlock_status rlock_inspect(struct rlock *lock, const char *key, struct rlock_deadline deadline,
                                const struct rlock_visitor *visitor, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_list: passes all locks of the server, or of all primaries of its Cluster, to on_lock(), in
 * no order and without waiters. A lock that exists during the whole call is passed at least once,
 * rarely twice.
 *
 *   pattern  a glob for keys, as for SCAN; NULL: all keys
 *
 * A key counts as a lock if it is a string that rlock wrote, or any string that has a fence or
 * waiters. Returns and blocks as rlock_inspect().
 * Source   lib/lua/list.lua.
 */
enum rlock_status rlock_list(struct rlock *lock, const char *pattern,
                             struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                             struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_break: takes a lock away from its holders, and passes it to the first waiter. The holders
 * learn of it at their next renewal, and can't put the lock back.
 *
 *   name  rlock_view.name, as rlock_inspect() has reported it: if the key has another value by now,
 *         rlock_break() leaves the lock as it is
 *
 * Returns  RLOCK_OK, RLOCK_BUSY (another owner holds the lock by now), RLOCK_GONE (nobody holds
 *          it), RLOCK_STOPPED, or a fault. Blocks as rlock_inspect().
 * Source   lib/lua/break.lua.
 */
enum rlock_status rlock_break(struct rlock *lock, const char *key, const char *name,
                              struct rlock_deadline deadline, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* ---- examining a server ---- */

enum rlock_grade {
    RLOCK_GRADE_GOOD,    /* nothing to do */
    RLOCK_GRADE_UNKNOWN, /* the server doesn't tell, mostly because the user lacks the right */
    RLOCK_GRADE_WEAK,    /* safe until a machine, a network or a clock fails */
    RLOCK_GRADE_UNSAFE   /* locks may end early, or can't be acquired */
};

/* What a check found. The strings are printable ASCII, and valid until on_finding() returns. */
struct rlock_finding {
    const char *server; /* "host:port", the path of a socket, or "together": all members */
    const char *check;  /* the name of the check, such as "eviction" */
    enum rlock_grade grade;
    const char *found;  /* what the check found */
    const char *change; /* what to do; NULL: nothing */
};

/* The callback of rlock_examine(), in the caller's thread. */
struct rlock_examiner {
    void (*on_finding)(void *context, const struct rlock_finding *finding);
    void *context;
};

/*
 * rlock_examine: checks what makes locks unsafe: the settings of the server, the network path, the
 * rights of the user, the clocks. Takes half a second to compare the clocks. Changes nothing.
 *
 *   key  the lock whose keys the user must have rights to; NULL: "rlock-doctor"
 *
 * The server must be fast enough for the timing of the handle, and have as many replicas as the
 * handle demands.
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, or a fault; what on_finding() got before a fault is valid.
 * Blocks   until `deadline`.
 * Source   lib/doctor/, lib/lua/rights.lua.
 */
enum rlock_status rlock_examine(struct rlock *lock, const char *key, struct rlock_deadline deadline,
                                const struct rlock_examiner *examiner, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* ---- passwords ---- */

#define RLOCK_PASSWORD_MAX 16384 /* longest password, in bytes */

/*
 * Looks up a password that may change while a handle is open. The library looks it up for each new
 * connection, and once more if the server refuses the password. If the server refuses the second
 * one, too, but has accepted a password before, the call goes on trying until its deadline.
 *
 * The thread that uses the handle, which may be the renewer, calls these functions; they must not
 * block. There is one lookup at a time. The caller owns the context, which outlives the handle.
 */
struct rlock_password_source {
    /* Begins a lookup that ends at `deadline_ms`, on rlock_clock_ms(). Returns a descriptor, which
     * the source owns, and which becomes readable when take() has a result; -1: fault in `err`. */
    int (*ask)(void *context, int64_t deadline_ms, struct rlock_error *err);
    /* Ends the lookup, once the descriptor is readable. Copies the password and a NUL into
     * `password`, whose `room` is RLOCK_PASSWORD_MAX + 1 bytes. Or returns a fault and fills `err`,
     * with RLOCK_REASON_LOGIN if a later lookup may find another password. */
    enum rlock_status (*take)(void *context, char *password, size_t room, struct rlock_error *err);
    /* The library calls this once for each password that it got from take(), but not before it has
     * overwritten all copies of all these passwords in memory. May be NULL. */
    void (*forgotten)(void *context);
    void *context;
};

/*
 * rlock_forget_passwords: clears the passwords of the handle from memory. It is for a forked child
 * that doesn't use the handle: the handle can open no connection afterwards.
 */
void rlock_forget_passwords(struct rlock *lock);

/* ---- hooks, and the version of libraries ---- */

/*
 * Further callbacks of rlock_acquire(), in the caller's thread. Each may be NULL.
 *
 *   on_sent         called after a request was sent, before its reply is read. rlock forks its
 *                   guard here, so that the fork costs no time after the grant. Must not block.
 *   on_unreachable  called after a server could not be reached, before the next attempt. May block:
 *                   rlock starts its private server here.
 */
struct rlock_hooks {
    void (*on_sent)(void *context);
    void (*on_unreachable)(void *context);
    void *context;
};

/* rlock_set_hooks: sets the hooks of the next rlock_acquire(). Copies them. */
void rlock_set_hooks(struct rlock *lock, const struct rlock_hooks *hooks);

/* rlock_built_with: names what the library was built with, "hiredis 1.2.0, TLS yes"; static. */
const char *rlock_built_with(void);

#endif
