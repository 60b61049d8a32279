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

#ifdef __cplusplus
extern "C" {
#endif

/* ---- inspecting and breaking locks ---- */

/* One lock at one moment. The pointers are valid until on_lock() returns. */
struct rlock_view {
    const char *key;
    enum rlock_seen seen;
    int64_t left_ms;   /* until the key expires; -1: it never expires; 0: free */
    uint64_t fence;    /* the newest fence; grants, releases and breaks raise it; 0: not known */
    int64_t waiting;   /* length of the queue, dead waiters included; -1: not known */
    const char *name;  /* tells rlock_break() which value of the key to remove; "": not known */
    const char *value; /* with RLOCK_SEEN_FOREIGN: how the key's value begins; else NULL */
    const struct rlock_party *holders; /* at most 20, sorted by slot or since_ms */
    size_t n_holders;
    /* if the lock has no holder: with RLOCK_SEEN_KEPT the waiter for which it is reserved; with
     * REST the last holder; with DONE who did the work; else NULL */
    const struct rlock_party *other;
    size_t n_all;      /* number of all holders, also beyond `holders` */
    size_t n_members;  /* number of members; 1: a single server */
    size_t n_alike;    /* number of members that report the same value of the key */
    const char *wrong; /* which helper keys hold another program's data; "" or NULL: none does */
};

/* How the last hold of a lock ended, as the lock's history tells it. */
struct rlock_last_end {
    int64_t ended_ms; /* when it ended, in ms since 1970, on the server's clock */
    int status;       /* the holder's exit status, as in struct rlock_end; -1: not known */
    bool is_lost;     /* the holder no longer had the lock when it was done */
};

/* Callbacks of rlock_inspect() and rlock_list(), in the caller's thread. Each may be NULL. */
struct rlock_visitor {
    void (*on_lock)(void *context, const struct rlock_view *view);
    void (*on_waiter)(void *context, const struct rlock_party *waiter); /* in queue order */
    void *context;
    /* For rlock_list(): each lock whose history tells an end. NULL: it reads no histories. */
    void (*on_last_end)(void *context, const char *key, const struct rlock_last_end *end);
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
 *   pattern  a glob for keys, as for fnmatch(3); NULL: all keys
 *
 * A key counts as a lock if it is a string that rlock wrote, or any string that has a fence or
 * waiters. If on_last_end() isn't NULL, each lock whose history tells an end is passed to it, also
 * if the lock is free; for each member of a quorum once.
 * Returns and blocks as rlock_inspect().
 */
enum rlock_status rlock_list(struct rlock *lock, const char *pattern,
                             struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                             struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_break: takes a lock away from its holders, and passes it to the first waiter. The holders
 * learn of the break at their next renewal, and can't put the lock back.
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

/* ---- the history of a lock: config.history ---- */

/* What the holder tells the history about the end of its hold: see rlock_set_end(). */
struct rlock_end {
    int status;         /* an exit status, 0 .. 255 */
    const char *reason; /* one word of at most 40 letters, digits and hyphens, such as "exited" */
    int64_t held_ms;    /* for how long the lock was held */
    int64_t renewals;   /* how many renewals the server has confirmed */
};

/* How a hold ended, as the history tells it. */
enum rlock_hold_end {
    RLOCK_HOLD_NOW,      /* the hold has not ended */
    RLOCK_HOLD_ENDED,    /* the holder has released the lock */
    RLOCK_HOLD_RELEASED, /* another process has released the lock by its token */
    RLOCK_HOLD_BROKEN,   /* somebody has taken the lock away: rlock_break() */
    RLOCK_HOLD_LOST,     /* when the holder was done, it no longer had the lock */
    RLOCK_HOLD_VANISHED  /* nobody noted the end: the holder crashed, or has lost the lock */
};

/* One hold of a lock. The times are the server's, in ms since 1970. */
struct rlock_hold {
    const char *key;
    enum rlock_hold_end end;
    struct rlock_party holder; /* since_ms: when the lock was granted; 0: the history has forgotten
                                  the grant */
    struct rlock_party by;     /* with RELEASED, BROKEN: who released or broke the lock, if known */
    uint64_t fence;            /* 0: not known */
    int64_t waited_ms;         /* how long the holder had waited; -1: not known */
    int64_t alive_ms;          /* with VANISHED: when the holder last had the lock for sure */
    int64_t ended_ms; /* when the hold ended (with VANISHED: at the latest); 0: it has not */
    int64_t held_ms;  /* -1: not known */
    int64_t renewals; /* -1: not known */
    int status;       /* as in struct rlock_end; -1: not known */
    char reason[41];  /* as in struct rlock_end; "": not known */
    size_t n_members; /* number of members; 1: a single server */
    size_t n_alike;   /* number of members whose history has the hold */
};

/* Callbacks of rlock_history() and rlock_history_keys(), in the caller's thread. */
struct rlock_history_visitor {
    void (*on_hold)(void *context, const struct rlock_hold *hold);
    void (*on_key)(void *context, const char *key);
    void *context;
};

/*
 * rlock_history: passes to on_hold() each hold of a lock that the history tells, the oldest first.
 *
 *   window_ms  0: pass all; else only holds that ended in the last `window_ms`, or not yet
 *
 * In a quorum rlock_history() joins the histories of all members that answer. Returns and blocks as
 * rlock_inspect(); RLOCK_E_REFUSED also if the key of the history holds another type than a list.
 * Source   lib/lua/history.lua.
 */
enum rlock_status rlock_history(struct rlock *lock, const char *key, int64_t window_ms,
                                struct rlock_deadline deadline,
                                const struct rlock_history_visitor *visitor,
                                struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_history_keys: passes to on_key() the key of each lock that has a history, in no order, and
 * some keys twice.
 *
 *   pattern  a glob for keys, as for fnmatch(3); NULL: all keys
 *
 * Returns and blocks as rlock_list().
 */
enum rlock_status rlock_history_keys(struct rlock *lock, const char *pattern,
                                     struct rlock_deadline deadline,
                                     const struct rlock_history_visitor *visitor,
                                     struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_set_end: sets what the next rlock_release() writes into the history; copies `end`. Without
 * this call the history tells only when the lock was released.
 */
void rlock_set_end(struct rlock *lock, const struct rlock_end *end);

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
 * rights of the user, the clocks. Takes half a second to compare the clocks. Leaves no change.
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
     * with RLOCK_REASON_PASSWORD_LOOKUP if a later lookup may find another password. */
    enum rlock_status (*take)(void *context, char *password, size_t room, struct rlock_error *err);
    void *context;
};

/*
 * rlock_forget_passwords: clears the passwords of the handle from memory. A forked child that
 * doesn't use the handle calls this: the handle can open no connection afterwards.
 */
void rlock_forget_passwords(struct rlock *lock);

/* ---- advice, and the version of libraries ---- */

/*
 * rlock_reason_help: says what a user of rlock(1) can do about a fault with this reason, such as
 * "name the primary with -u"; static. NULL: no advice fits all faults with this reason.
 */
const char *rlock_reason_help(enum rlock_reason reason);

/* rlock_built_with: names what the library was built with, "hiredis 1.2.0, TLS yes"; static. */
const char *rlock_built_with(void);

#ifdef __cplusplus
}
#endif

#endif
