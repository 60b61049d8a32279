/* SPDX-License-Identifier: MIT */
/*
 * rlock: hold a lock in Redis for as long as it can be proven to be held.
 *
 * A *lock* is a name. A *lease* is one holder's right to it for a limited time: a key on the
 * server, with an expiry. A *grant* is what rlock_acquire() returns: the token that proves
 * ownership, the fence (a number that grows with every grant of the name), and expires_ms, the
 * moment at which the holder must take the lease as ended. It lies before the moment at which the
 * server can let anybody else have the lock: it is counted from before the last confirmed request
 * was sent, on a clock that also runs while the machine is suspended, less 1 % of the TTL and 2 ms
 * for clocks that drift. rlock(1) says what can't be promised, and what the fence is for.
 *
 *     rlock_open      parse the addresses, draw a token; sends nothing
 *     rlock_acquire   take the lease, waiting for it until a deadline
 *     rlock_keep      start the renewer, a thread that renews the lease and reports
 *     ... work, never past the newest expires_ms that the renewer reported ...
 *     rlock_unkeep    stop the renewer
 *     rlock_release   give the lease back
 *     rlock_close     free the handle
 *
 * Threads: one call at a time per handle. Between rlock_keep and rlock_unkeep the handle belongs
 * to the renewer, and only rlock_unkeep may be called. Results: a call that can fail returns an
 * enum rlock_status; outcomes are answers, faults (RLOCK_E_...) fill `err`, which may be NULL.
 * Nothing here prints, exits, reads the environment or touches signal dispositions.
 * rlock_admin.h has the calls that look at locks, break them or examine a server.
 */
#ifndef RLOCK_H
#define RLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RLOCK_VERSION "0.1.0"
#define RLOCK_KEY_MAX 65536  /* bytes in a key */
#define RLOCK_KEYS_MAX 32    /* keys that are locked together */
#define RLOCK_PARENTS_MAX 16 /* tokens of locks that the caller already runs under */
#define RLOCK_SLOTS_MAX 1000
#define RLOCK_REPLICAS_MAX 1000
#define RLOCK_MEMBERS_MAX 9 /* servers of a quorum */
#define RLOCK_TOKEN_BYTES 32
#define RLOCK_TTL_MIN_MS 1000
#define RLOCK_TTL_MAX_MS (30 * INT64_C(86400000))
#define RLOCK_NEVER INT64_MAX /* as a time: no limit */

enum rlock_status {
    RLOCK_OK,
    /* outcomes: expected (the value 1 is for use inside the library, and never returned) */
    RLOCK_BUSY = 2, /* somebody else holds the lock */
    RLOCK_TIMEOUT,  /* the lock was not had before the deadline */
    RLOCK_STOPPED,  /* the stop descriptor became readable */
    RLOCK_LOST,     /* another owner has the lock that the lease was for */
    RLOCK_GONE,     /* the lease is not on the server (any more), as far as is known nobody's is */
    RLOCK_RELEASED, /* the lease was released by its token, by another process */
    RLOCK_SUPERSEDED, /* a newer waiter came, and both wait by RLOCK_QUEUE_NEWEST */
    RLOCK_DONE,       /* a mark says that the work was done, and `unless_done` was set */
    /* faults: err is filled */
    RLOCK_E_USAGE,       /* a value outside its range */
    RLOCK_E_CONFIG,      /* an address, a file or a certificate that can't be right */
    RLOCK_E_UNREACHABLE, /* no answer: refused, timed out, reset, not resolved */
    RLOCK_E_PROTOCOL,    /* an answer that isn't Redis, or is out of bounds */
    RLOCK_E_SERVER,      /* the server can't serve now: loading, read-only, out of memory */
    RLOCK_E_UNSUPPORTED, /* the server can't do what was asked, now or later */
    RLOCK_E_REFUSED,     /* password, permission, or a key of another type */
    RLOCK_E_NO_QUORUM,   /* too few members granted the lock */
    RLOCK_E_REPLICAS,    /* too few replicas had the grant in time, so it was taken back */
    RLOCK_E_MEMORY,      /* no memory */
    RLOCK_E_SYSTEM       /* a system call failed; `sys` says how */
};

/* What a program may decide by where the status doesn't say enough; the text is for people. */
enum rlock_reason {
    RLOCK_REASON_NONE,
    RLOCK_REASON_TOKEN,          /* what was given as a token doesn't have the form of one */
    RLOCK_REASON_LOGIN,          /* a server refused the password, or none could be found */
    RLOCK_REASON_SENTINEL_LOGIN, /* a Sentinel did */
    RLOCK_REASON_NOT_PRIMARY,    /* the server is a replica, or has just become one */
    RLOCK_REASON_WHOLE_SECONDS   /* the server blocks for whole seconds only */
};

struct rlock_error {
    enum rlock_status status;
    enum rlock_reason reason;
    int sys;        /* errno; 0: no system call failed */
    char text[256]; /* "127.0.0.1:6379: connect: Connection refused"; no newline */
};

/* When a call that blocks is to give up: at a time, or once a descriptor becomes readable. */
struct rlock_deadline {
    int64_t at_ms; /* on rlock_clock_ms(); RLOCK_NEVER: no limit */
    int stop_fd;   /* -1: none; borrowed, never read from */
};

/* How a TTL is divided, see rlock_timing_fit(). */
struct rlock_timing {
    int64_t ttl_ms;         /* RLOCK_TTL_MIN_MS .. RLOCK_TTL_MAX_MS */
    int64_t renew_ms;       /* from one renewal to the next */
    int64_t reply_ms;       /* longest wait for one reply */
    int64_t grace_ms;       /* from TERM to KILL */
    int64_t kill_margin_ms; /* from KILL to the lease's end */
};

/* How to wait for a lock that is held. */
enum rlock_queue {
    RLOCK_QUEUE_FIFO,  /* in the queue: first come, first served */
    RLOCK_QUEUE_NONE,  /* without a place in it: whoever finds the lock free has it */
    RLOCK_QUEUE_NEWEST /* in the queue, until another waiter of this kind comes */
};

/* How many may hold a lock at the same time. */
enum rlock_mode {
    RLOCK_EXCLUSIVE, /* one */
    RLOCK_SHARED,    /* all who want it shared */
    RLOCK_SLOTS      /* up to n_slots, each with a slot of its own */
};

/* What the key of a lock contains. */
enum rlock_protocol {
    RLOCK_PROTOCOL_TOKEN,  /* the holder's token, and who it is */
    RLOCK_PROTOCOL_TIME_S, /* its expiry in seconds since 1970: one key, exclusive, no queue */
    RLOCK_PROTOCOL_TIME_MS /* the same in milliseconds */
};

/* What others are told of the holder; the strings are borrowed during rlock_open(). */
struct rlock_holder {
    const char *host; /* NULL: left out, as for each of these */
    const char *user;
    const char *command; /* the program's name, never its arguments */
    const char *label;
    int64_t pid;      /* 0: left out */
    bool has_renewer; /* whoever releases by the token leaves word for it: RLOCK_RELEASED */
};

/* Why the lock was not had when the server was last asked. */
struct rlock_obstacle {
    char holder[256];           /* who has it, for people: printable ASCII; "": nobody was seen */
    int64_t seen_ms;            /* when the server said so, on rlock_clock_ms() */
    int64_t left_ms;            /* from seen_ms until the lock expires; -1: it never does */
    int64_t since_ms;           /* held since, in server time, ms since 1970; 0: not known */
    int64_t place;              /* ours in the queue, from 1; 0: not queued */
    bool is_next;               /* our turn may come at any moment */
    size_t key;                 /* which of the keys is held: an index into config.keys */
    struct rlock_error trouble; /* no server can be asked, or a grant doesn't count; or RLOCK_OK */
    int64_t trouble_ms;         /* since when, on rlock_clock_ms() */
};

/* Callbacks of a wait. The waiting thread calls them; they must not block. Each may be NULL. */
struct rlock_observer {
    /* after each reply that says "held", at trouble and its end; NULL: the wait is over */
    void (*on_blocked)(void *context, const struct rlock_obstacle *obstacle);
    void (*on_warning)(void *context, const char *text); /* what makes this lock unsafe */
    void *context;
    int64_t every_ms; /* call on_blocked at least so often; 0: only when there is news */
};

struct rlock_password_source; /* rlock_admin.h: looks a password up for each connection */

struct rlock_config {
    const char *const *urls; /* see rlock(1), option --url */
    size_t n_urls;        /* an odd number up to RLOCK_MEMBERS_MAX; of several a majority decides */
    const char *password; /* for URLs that have none; NULL: see password_source */
    const struct rlock_password_source *password_source; /* NULL: none */
    const char *sentinel_user; /* for redis+sentinel://: the user at the Sentinels; NULL: none */
    const char *sentinel_password; /* NULL: see sentinel_password_source */
    const struct rlock_password_source *sentinel_password_source; /* NULL: none */
    const char *tls_ca;      /* for rediss://: file or folder of CAs; NULL: the system's */
    const char *tls_name;    /* the name that servers must prove; NULL: the host of the URL */
    const char *tls_cert;    /* our certificate and its chain, PEM; NULL: none */
    const char *tls_key;     /* its key; NULL: in the file tls_cert */
    const char *const *keys; /* each of 1 .. RLOCK_KEY_MAX bytes, no key twice */
    size_t n_keys; /* .. RLOCK_KEYS_MAX: all are had, or none; 0: for rlock_admin.h only */
    enum rlock_protocol protocol;
    enum rlock_mode mode;
    int64_t n_slots;  /* of RLOCK_SLOTS, with one key: 1 .. RLOCK_SLOTS_MAX */
    bool unless_done; /* return RLOCK_DONE where a lock was released as RLOCK_ENDS_DONE */
    const char *const
        *parent_tokens; /* what these hold already counts as had, and isn't released */
    size_t n_parents;   /* 0 .. RLOCK_PARENTS_MAX */
    bool only_parents; /* RLOCK_GONE where the parents don't hold all keys: nothing else is taken */
    const char *token; /* of a lease that stands, to renew or release; NULL: draw one */
    struct rlock_timing timing;
    struct rlock_holder holder;
    int64_t connect_ms; /* longest time to connect; > 0 */
    enum rlock_queue queue;
    int64_t replicas; /* that must have a grant within reply_ms, 0 .. RLOCK_REPLICAS_MAX */
    struct rlock_observer observer;
};

/* A lease that was granted. */
struct rlock_grant {
    char token[RLOCK_TOKEN_BYTES + 1];
    int64_t sent_ms;            /* when its request was sent: the TTL counts from then */
    int64_t expires_ms;         /* the lease's end, on rlock_clock_ms() */
    uint64_t fence;             /* greater than that of each earlier grant of these keys; never 0 */
    int64_t slot;               /* of RLOCK_SLOTS: 0 .. n_slots - 1 */
    bool is_parent;             /* the parents hold all keys: the lease is theirs */
    bool has_parent;            /* the parents hold some of the keys */
    uint32_t parent_keys;       /* which: bit i stands for keys[i] */
    struct rlock_timing timing; /* as asked for, or shorter where a parent's lease is */
};

/* What becomes of a lock that is released. */
enum rlock_ending {
    RLOCK_ENDS_FREE, /* the next waiter has it */
    RLOCK_ENDS_REST, /* it stays taken for stay_ms, by nobody */
    RLOCK_ENDS_DONE  /* the same, with a mark that ends the waits with `unless_done` */
};

/* What the renewer saw. */
enum rlock_kept {
    RLOCK_KEPT_RENEWED,  /* expires_ms is new */
    RLOCK_KEPT_RESTORED, /* the same; the key had vanished, and was put back */
    RLOCK_KEPT_TROUBLE,  /* a renewal failed, text says why; the renewer tries again */
    RLOCK_KEPT_RELEASED, /* the lease was released by its token elsewhere; the renewer has ended */
    RLOCK_KEPT_LOST      /* the lease is gone, text says how; the renewer has ended */
};

struct rlock_event {
    enum rlock_kept kind;
    int64_t sent_ms; /* RENEWED, RESTORED: just before the request for it was sent */
    int64_t expires_ms;
    char text[256];
};

struct rlock; /* a handle: some keys on their servers */

/* rlock_status_text: a status in words, "somebody else holds the lock"; static, never NULL. */
const char *rlock_status_text(enum rlock_status status);

/* rlock_clock_ms: CLOCK_BOOTTIME, which counts suspended time. Any thread, also after a fork. */
int64_t rlock_clock_ms(void);

/*
 * rlock_timing_fit: divide a TTL, of RLOCK_TTL_MIN_MS .. RLOCK_TTL_MAX_MS, so that all that must
 * happen within it can: TTL less drift >= a renewal + two replies + grace + kill margin.
 * `kill_after_ms` is the time from TERM to KILL; -1: a sixth of the TTL, at most 5 s.
 * Returns RLOCK_OK (`*timing` is filled), or RLOCK_E_USAGE where the parts don't fit.
 */
enum rlock_status rlock_timing_fit(int64_t ttl_ms, int64_t kill_after_ms,
                                   struct rlock_timing *timing, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_open: make a handle, for rlock_close(). `config` is copied, and nothing is sent.
 * Returns RLOCK_OK (`*lock` is filled), RLOCK_E_USAGE (of a token: RLOCK_REASON_TOKEN),
 * RLOCK_E_CONFIG, RLOCK_E_MEMORY or RLOCK_E_SYSTEM.
 */
enum rlock_status rlock_open(struct rlock **lock, const struct rlock_config *config,
                             struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_acquire: take the lease, waiting for it until `deadline`. An at_ms that has passed asks
 * once, within connect_ms. A server that never answered is a fault after connect_ms, or at the
 * deadline if that is later; a server that went away is waited for. A lost reply is asked for again
 * with the same token, and a request that is given up is undone.
 * Returns RLOCK_OK (`*grant` is filled), or fills `*obstacle`, which may be NULL: RLOCK_BUSY (asked
 * once), RLOCK_TIMEOUT, RLOCK_STOPPED, RLOCK_SUPERSEDED, RLOCK_DONE (obstacle.holder did it),
 * RLOCK_GONE (with only_parents), or a fault: RLOCK_E_USAGE where a parent holds a key in another
 * mode. Blocks until `deadline`, and up to reply_ms longer to undo a request (0.5 s if stopped).
 * Source: lib/ops/acquire_loop.c, lib/lua/acquire.lua.
 */
enum rlock_status rlock_acquire(struct rlock *lock, struct rlock_deadline deadline,
                                struct rlock_grant *grant, struct rlock_obstacle *obstacle,
                                struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_keep: start the renewer for the lease of the last rlock_acquire(). For each thing that it
 * sees it writes a whole struct rlock_event to a pipe. Returns RLOCK_OK (`*events` is the pipe's
 * end to read from: close-on-exec, owned and closed by the handle) or RLOCK_E_SYSTEM.
 */
enum rlock_status rlock_keep(struct rlock *lock, int *events, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* rlock_unkeep: stop the renewer, if there is one; a renewal that is under way is cut short. */
void rlock_unkeep(struct rlock *lock);

/*
 * rlock_renew: renew the handle's lease once, where no renewer does: for `ttl_ms` from now, or 0:
 * as long as before. A lease that is gone is not put back, and none is made shorter.
 * Returns RLOCK_OK (`*expires_ms` is the earliest end of the leases), RLOCK_LOST, RLOCK_GONE,
 * RLOCK_RELEASED (err has the text for these), RLOCK_STOPPED, or a fault. Blocks until `deadline`.
 */
enum rlock_status rlock_renew(struct rlock *lock, int64_t ttl_ms, struct rlock_deadline deadline,
                              int64_t *expires_ms, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_release: give the lease back, in one step inside the server; no late renewal can bring it
 * back. `stay_ms`, 1 .. RLOCK_TTL_MAX_MS, is for the endings other than RLOCK_ENDS_FREE.
 * Returns RLOCK_OK, RLOCK_LOST, RLOCK_GONE, RLOCK_STOPPED, or a fault (the lease then ends by its
 * TTL). Blocks until `deadline`; 1 ms where a waiter got the lock, which is to start first.
 */
enum rlock_status rlock_release(struct rlock *lock, struct rlock_deadline deadline,
                                enum rlock_ending ending, int64_t stay_ms, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* rlock_close: close connections, clear secrets, free; releases no lease. NULL is allowed. */
void rlock_close(struct rlock *lock);

#endif
