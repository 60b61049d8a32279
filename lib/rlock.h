/* SPDX-License-Identifier: MIT */
/*
 * rlock: acquire a lock in Redis, renew its lease, and know until when the lock is held.
 *
 * A *lock* is a name. A *lease* is one holder's right to the lock for a limited time: a key on the
 * server, with an expiry. rlock_acquire() returns a *grant*: the token that proves ownership, the
 * fence (a number that grows with each grant of the lock), and expires_ms, the moment at which the
 * holder must regard the lease as ended. The server ends the lease later than that: expires_ms is
 * counted from before the last confirmed request was sent, on a clock that also runs while the
 * machine is suspended, less 1 % of the TTL and 2 ms for clocks that drift. rlock-locks(7)
 * says which faults a lease can't survive, and how a fence helps then.
 *
 *     rlock_open      parses the addresses, draws a token; sends nothing
 *     rlock_acquire   acquires the lease, and waits for it until a deadline
 *     rlock_keep      starts the renewer, a thread that renews the lease and reports
 *     ... work, never past the newest expires_ms that the renewer reported ...
 *     rlock_unkeep    stops the renewer
 *     rlock_release   releases the lease
 *     rlock_close     frees the handle
 *
 * Threads: one call at a time per handle. Between rlock_keep() and rlock_unkeep() the renewer uses
 * the handle, and the caller may call nothing but rlock_unkeep(). Results: a call that can fail
 * returns an enum rlock_status; a fault (RLOCK_E_...) also fills `err`, which may be NULL. The
 * library doesn't print, exit, read the environment or change signal dispositions.
 * rlock_admin.h has the calls that inspect locks, break them, or examine a server.
 */
#ifndef RLOCK_H
#define RLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RLOCK_VERSION "0.1.0"
#define RLOCK_KEY_MAX 65536  /* longest key, in bytes */
#define RLOCK_KEYS_MAX 32    /* most keys that one handle locks together */
#define RLOCK_PARENTS_MAX 16 /* most parent tokens: of locks that ancestor processes hold */
#define RLOCK_SLOTS_MAX 1000
#define RLOCK_REPLICAS_MAX 1000
#define RLOCK_HISTORY_MAX 1000
#define RLOCK_MEMBERS_MAX 9 /* most servers of a quorum */
#define RLOCK_TOKEN_BYTES 32
#define RLOCK_TTL_MIN_MS 1000
#define RLOCK_TTL_MAX_MS (30 * INT64_C(86400000))
#define RLOCK_NEVER INT64_MAX /* a point in time that never comes: no limit */

enum rlock_status {
    RLOCK_OK,
    /* outcomes; no call returns the value 1, which only the library's own files use */
    RLOCK_BUSY = 2,   /* another owner holds the lock */
    RLOCK_TIMEOUT,    /* the lock was not granted before the deadline */
    RLOCK_STOPPED,    /* the stop descriptor became readable */
    RLOCK_LOST,       /* our lease has ended, and another owner has the lock */
    RLOCK_GONE,       /* the server has no lease of our token, and none of another owner */
    RLOCK_RELEASED,   /* another process has released the lease by its token */
    RLOCK_SUPERSEDED, /* a newer waiter came, and both use RLOCK_QUEUE_NEWEST */
    RLOCK_DONE,       /* config.unless_done is set, and the lock was released as RLOCK_ENDS_DONE */
    /* faults; they fill `err` */
    RLOCK_E_USAGE,       /* a value is outside its range */
    RLOCK_E_CONFIG,      /* an address, a file or a certificate is wrong */
    RLOCK_E_UNREACHABLE, /* no reply: connection refused, timed out or reset, or no such host */
    RLOCK_E_PROTOCOL,    /* the reply is not Redis' protocol, or too long */
    RLOCK_E_SERVER,      /* no request can be executed now: loading, read-only, out of memory */
    RLOCK_E_UNSUPPORTED, /* the server lacks a command that the request needs */
    RLOCK_E_REFUSED,     /* wrong password, no permission, or a key of another type */
    RLOCK_E_NO_QUORUM,   /* too few members granted the lock */
    RLOCK_E_REPLICAS,    /* too few replicas had the grant (now released) or the renewal */
    RLOCK_E_MEMORY,      /* out of memory */
    RLOCK_E_SYSTEM       /* a system call failed; err->sys is its errno */
};

/* Why a call failed, where a program needs to know more than the status. */
enum rlock_reason {
    RLOCK_REASON_NONE,
    RLOCK_REASON_TOKEN,             /* config.token doesn't have the form of a token */
    RLOCK_REASON_PASSWORD_LOOKUP,   /* config.password_source found no password */
    RLOCK_REASON_NO_PASSWORD,       /* the server wants a password, and none was given */
    RLOCK_REASON_WRONG_PASSWORD,    /* the server refused the user or the password */
    RLOCK_REASON_NEEDLESS_PASSWORD, /* a password was given, and the server has none */
    RLOCK_REASON_SENTINEL_LOGIN,    /* a Sentinel refused its password, or none was found */
    RLOCK_REASON_NOT_REDIS,         /* the server speaks another protocol: HTTP, SSH, ... */
    RLOCK_REASON_PROTECTED,         /* the server serves only clients on its own machine */
    RLOCK_REASON_NO_RIGHT,          /* the user may not run a command, or not use a key */
    RLOCK_REASON_KEY_TYPE,          /* the key holds another type of value than a lock */
    RLOCK_REASON_NOT_PRIMARY,       /* the server is a replica, or has just become one */
    RLOCK_REASON_LOADING,           /* the server is reading its data */
    RLOCK_REASON_SCRIPT_RUNS,       /* a script runs for so long that the server serves nobody */
    RLOCK_REASON_MEMORY_FULL,       /* the server's data has reached its maxmemory */
    RLOCK_REASON_DISK,              /* the server can't save its data, so it refuses writes */
    RLOCK_REASON_FEW_REPLICAS,      /* the server has too few replicas, so it refuses writes */
    RLOCK_REASON_MANY_CLIENTS,      /* the server has as many clients as its maxclients */
    RLOCK_REASON_CLUSTER_DOWN,      /* no node of the Cluster serves the key */
    RLOCK_REASON_OTHER_SLOTS,       /* the keys aren't in the same hash slot of the Cluster */
    RLOCK_REASON_NO_SCRIPTS,        /* the server refuses scripts */
    RLOCK_REASON_SCRIPTS_DENIED,    /* the user may run no scripts */
    RLOCK_REASON_SCRIPTS_REJECTED   /* the server runs scripts, but refuses rlock's */
};

struct rlock_error {
    enum rlock_status status;
    enum rlock_reason reason;
    int sys;        /* errno of a system call that failed; 0: none failed */
    size_t said;    /* index in `text` where "the server says: ..." begins; 0: no such part */
    char text[512]; /* for people: "127.0.0.1:6379: connect: Connection refused" */
};

/* When a call that blocks gives up: at a time, or as soon as a descriptor is readable. */
struct rlock_deadline {
    int64_t at_ms; /* on rlock_clock_ms(); RLOCK_NEVER: no limit */
    int stop_fd;   /* -1: none; borrowed; the library polls it, but never reads from it */
};

/* How the TTL of a lease is divided; see rlock_timing_fit(). */
struct rlock_timing {
    int64_t ttl_ms;         /* RLOCK_TTL_MIN_MS .. RLOCK_TTL_MAX_MS */
    int64_t renew_ms;       /* from one renewal to the next */
    int64_t reply_ms;       /* longest wait for one reply */
    int64_t grace_ms;       /* from TERM to KILL */
    int64_t kill_margin_ms; /* from KILL to expires_ms */
};

/* How a waiter waits while another owner holds the lock. */
enum rlock_queue {
    RLOCK_QUEUE_FIFO,  /* in the queue: first come, first served */
    RLOCK_QUEUE_NONE,  /* not in the queue: the waiter asks again until the lock is free */
    RLOCK_QUEUE_NEWEST /* in the queue, until a newer waiter with RLOCK_QUEUE_NEWEST comes */
};

/* How many owners may hold a lock at the same time. */
enum rlock_mode {
    RLOCK_EXCLUSIVE, /* one */
    RLOCK_SHARED,    /* all owners that use RLOCK_SHARED */
    RLOCK_SLOTS      /* up to n_slots owners, each with a slot number of its own */
};

/* What rlock writes into the key of a lock. */
enum rlock_protocol {
    RLOCK_PROTOCOL_TOKEN,  /* the holder's token, and who the holder is */
    RLOCK_PROTOCOL_TIME_S, /* the expiry, in seconds since 1970: one key, exclusive, no queue */
    RLOCK_PROTOCOL_TIME_MS /* as RLOCK_PROTOCOL_TIME_S, but in milliseconds */
};

/* What others who want the lock are told about its holder. rlock_open() copies the strings. */
struct rlock_holder {
    const char *host; /* NULL: not shown to others (also user, command, label) */
    const char *user;
    const char *command; /* the program's name, without its arguments */
    const char *label;
    int64_t pid;      /* 0: not shown to others */
    bool has_renewer; /* a renewer runs: if another process releases the lease, that release leaves
                         a note on the server for the renewer */
    int64_t hold_ms;  /* how long a person will hold the lock; 0: a process holds it, no person */
};

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

/* A holder or a waiter. The strings may have any bytes, but `text` has printable UTF-8 only. */
struct rlock_party {
    char host[164]; /* "": not known (also user, command, label) */
    char user[164];
    char command[164];
    char label[164];
    char pid[24];       /* as the party wrote it; may be no number */
    char text[256];     /* a summary of the strings above, for people */
    int64_t since_ms;   /* start of the lease or the wait, server time, ms since 1970; 0: unknown */
    int64_t for_ms;     /* from since_ms until the server replied */
    int64_t left_ms;    /* until the lease ends, if the lock may have several holders; else 0 */
    int64_t slot;       /* the slot number, with RLOCK_SLOTS; else -1 */
    int64_t ttl_ms;     /* the TTL of the lease; 0: not known */
    int64_t renewed_ms; /* from the last renewal, or the grant, until the server replied; -1: not
                           known */
    int64_t hold_ms;    /* rlock_holder.hold_ms if a person holds the lock; 0: a process holds it */
    int64_t hold_left_ms; /* with hold_ms: from the server's reply until the planned end of the
                             hold; 0 for a waiter */
    bool has_renewer;     /* the holder has set rlock_holder.has_renewer */
};

/* Why the server didn't grant the lock when it was last asked. */
struct rlock_obstacle {
    enum rlock_seen seen;       /* what the key contained; RLOCK_SEEN_FREE: no lock was seen, or
                                   restarted servers may have forgotten a lock */
    struct rlock_party holder;  /* the holder; of a lock without a holder: as rlock_view.other;
                                   after RLOCK_SUPERSEDED: the newer waiter. `text` "": not known */
    int64_t seen_ms;            /* when the server's reply was read, on rlock_clock_ms() */
    int64_t left_ms;            /* from seen_ms until the lock expires; -1: it never expires */
    int64_t place;              /* the caller's place in the queue, from 1; 0: not in the queue */
    bool is_next;               /* the server may grant the lock to the caller at any moment */
    size_t key;                 /* which key is held: an index into config.keys */
    struct rlock_error trouble; /* why no server can grant now; status RLOCK_OK: no trouble */
    int64_t trouble_ms;         /* when the trouble began, on rlock_clock_ms() */
    int64_t gives_up_ms;        /* while there is trouble, and no server has ever answered: when
                            rlock_acquire() will give up, on rlock_clock_ms(); else 0 */
    bool in_doubt; /* after a fault: a request without a reply may still acquire the lock, until the
                      TTL that it asked for ends */
};

/*
 * Callbacks of rlock_acquire(), in the caller's thread. Each may be NULL. Only on_unreachable may
 * block.
 */
struct rlock_observer {
    /* called while another owner holds the lock, when trouble (see rlock_obstacle) begins or ends,
     * and with NULL after the wait */
    void (*on_blocked)(void *context, const struct rlock_obstacle *obstacle);
    void (*on_warning)(void *context, const char *text); /* `text`: what makes this lock unsafe */
    /* called after a request was sent, before its reply is read: time to prepare for the grant */
    void (*on_sent)(void *context);
    /* called if no server could be reached, before the next attempt: time to start a server */
    void (*on_unreachable)(void *context);
    void *context;
    int64_t every_ms; /* call on_blocked again after this time without a change; 0: don't */
};

/*
 * Does the handle run scripts on the server (EVAL)? By commands it can only have one exclusive lock
 * on one URL: one key, RLOCK_EXCLUSIVE, RLOCK_PROTOCOL_TOKEN, no unless_done, no history. Waiters
 * wait as with RLOCK_QUEUE_NONE. Locks that were acquired by scripts and by commands exclude each
 * other.
 */
enum rlock_scripts {
    RLOCK_SCRIPTS_AUTO, /* yes; if the server refuses them: by plain commands, and on_warning() */
    RLOCK_SCRIPTS_YES,
    RLOCK_SCRIPTS_NO /* by plain commands: SET, GET, ... */
};

struct rlock_password_source; /* see rlock_admin.h: looks a password up for each connection */

/*
 * What rlock_open() needs. Zero every member that you don't set: a later library of the same soname
 * may have more members at the end, and `size` tells it how many the caller was compiled with.
 */
struct rlock_config {
    size_t size;             /* sizeof(struct rlock_config) */
    const char *const *urls; /* in the form of option --url of rlock(1) */
    size_t n_urls;           /* odd, 1 .. RLOCK_MEMBERS_MAX; a majority of them decides */
    const char *password;    /* for URLs without a password; NULL: use password_source */
    const struct rlock_password_source *password_source; /* NULL: none */
    const char *sentinel_user;     /* user at the Sentinels of redis+sentinel://; NULL: none */
    const char *sentinel_password; /* NULL: use sentinel_password_source */
    const struct rlock_password_source *sentinel_password_source; /* NULL: none */
    const char *tls_ca;      /* for rediss://: file or directory of CAs; NULL: the system's */
    const char *tls_name;    /* the name in the servers' certificates; NULL: the URL's host */
    const char *tls_cert;    /* file of the client certificate and its chain, PEM; NULL: none */
    const char *tls_key;     /* file of that certificate's key; NULL: the file tls_cert */
    const char *const *keys; /* each of 1 .. RLOCK_KEY_MAX bytes, no key twice */
    size_t n_keys; /* 1 .. RLOCK_KEYS_MAX: granted all or none; 0: only for rlock_admin.h */
    enum rlock_protocol protocol;
    enum rlock_mode mode;
    int64_t n_slots;  /* with RLOCK_SLOTS, and then one key: 1 .. RLOCK_SLOTS_MAX */
    bool unless_done; /* return RLOCK_DONE if a lock was released as RLOCK_ENDS_DONE */
    const char *const
        *parent_tokens; /* locks held by these tokens count as granted, and aren't released */
    size_t n_parents;   /* 0 .. RLOCK_PARENTS_MAX */
    bool only_parents;  /* acquire no lock: return RLOCK_GONE unless parent_tokens hold all keys */
    const char *token;  /* of an existing lease, to renew or release it; NULL: draw a new one */
    struct rlock_timing timing;
    struct rlock_holder holder;
    int64_t connect_ms; /* longest time to connect; > 0 */
    enum rlock_queue queue;
    int64_t replicas; /* how many replicas must have a grant within reply_ms: 0 ..
                         RLOCK_REPLICAS_MAX */
    struct rlock_observer observer;
    int64_t history; /* most entries that the lock's history keeps, 0 .. RLOCK_HISTORY_MAX; 0: the
                        library writes none */
    enum rlock_scripts scripts;
    bool needs_queue; /* acquire no lock by commands, as waiters have no queue then */
};

/* A lease that was granted. */
struct rlock_grant {
    char token[RLOCK_TOKEN_BYTES + 1];
    int64_t sent_ms;            /* just before the request was sent: the TTL counts from here */
    int64_t expires_ms;         /* the end of the lease, on rlock_clock_ms() */
    uint64_t fence;             /* grows with each grant; is_parent: that of a parent; never 0 */
    int64_t slot;               /* with RLOCK_SLOTS: 0 .. n_slots - 1; else -1 */
    bool is_parent;             /* config.parent_tokens hold all keys: `token` is one of them */
    uint32_t parent_keys;       /* bit i is set if one of config.parent_tokens holds keys[i] */
    struct rlock_timing timing; /* config.timing, or shorter times if a parent's lease is shorter */
};

/* What a release does with the lock. */
enum rlock_ending {
    RLOCK_ENDS_FREE, /* the lock is free, or passes to the next waiter */
    RLOCK_ENDS_REST, /* nobody can acquire the lock for stay_ms */
    RLOCK_ENDS_DONE  /* as RLOCK_ENDS_REST, but waiters with `unless_done` get RLOCK_DONE */
};

/* Why a renewal found the lock lost. */
enum rlock_loss_cause {
    RLOCK_LOSS_UNKNOWN, /* the server has no lock: it expired, or somebody deleted the key */
    RLOCK_LOSS_HELD,    /* another owner holds the lock now */
    RLOCK_LOSS_BROKEN   /* somebody has taken the lock away, by rlock_break() */
};

struct rlock_loss {
    enum rlock_loss_cause cause;
    struct rlock_party by; /* with HELD: the new holder; with BROKEN: who broke the lock */
};

/* What the renewer reports. */
enum rlock_kept {
    RLOCK_KEPT_RENEWED,  /* the lease was renewed: expires_ms is new */
    RLOCK_KEPT_RESTORED, /* the key had vanished: the renewer put it back; expires_ms is new */
    RLOCK_KEPT_TROUBLE,  /* a renewal failed, `text` says why; the renewer tries again */
    RLOCK_KEPT_RELEASED, /* another process released the lease; the renewer has ended */
    RLOCK_KEPT_LOST      /* the lease is lost, `text` says how; the renewer has ended */
};

struct rlock_event {
    enum rlock_kept kind;
    int64_t sent_ms; /* with RENEWED and RESTORED: the time just before the renewal was sent */
    int64_t expires_ms;
    char text[512];
    struct rlock_loss loss; /* set if `kind` is RLOCK_KEPT_LOST */
};

struct rlock; /* a handle: the keys and servers of one rlock_config */

/* rlock_status_text: the status in words, as "somebody else holds the lock"; never NULL. */
const char *rlock_status_text(enum rlock_status status);

/*
 * rlock_clock_ms: the time on CLOCK_BOOTTIME, which includes suspended time. Any thread may call
 * this function.
 */
int64_t rlock_clock_ms(void);

/*
 * rlock_timing_fit: divides `ttl_ms`, RLOCK_TTL_MIN_MS .. RLOCK_TTL_MAX_MS, so that its parts fit:
 * ttl_ms less drift >= renew_ms + 2 * reply_ms + grace_ms + kill_margin_ms. `kill_after_ms` becomes
 * grace_ms, the time from TERM to KILL; -1: a sixth of the TTL, at most 5 s.
 * Returns RLOCK_OK (`*timing` is filled), or RLOCK_E_USAGE if the parts don't fit.
 */
enum rlock_status rlock_timing_fit(int64_t ttl_ms, int64_t kill_after_ms,
                                   struct rlock_timing *timing, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_open: makes a handle, which rlock_close() frees. Copies `config`, and sends nothing.
 * Returns RLOCK_OK (`*lock` is filled), RLOCK_E_USAGE (RLOCK_REASON_TOKEN: a bad token; or
 * config->size is too small, or `config` sets a member that this library doesn't have),
 * RLOCK_E_CONFIG, RLOCK_E_MEMORY or RLOCK_E_SYSTEM.
 */
enum rlock_status rlock_open(struct rlock **lock, const struct rlock_config *config,
                             struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_acquire: acquires the lease, waiting for it until `deadline`. If the deadline has passed
 * already, the call asks once, and takes connect_ms at most. If there is no deadline, the call
 * fails if no server answers within connect_ms; once a server has answered, outages don't end the
 * wait. After a lost reply the call asks again with the same token. If it gives up a request that
 * the server may have executed, it sends an undo. Blocks until `deadline`, and up to reply_ms
 * longer for the undo (0.5 s if stopped).
 * Returns RLOCK_OK (`*grant` is filled), RLOCK_BUSY (it has asked only once), RLOCK_TIMEOUT,
 * RLOCK_STOPPED, RLOCK_SUPERSEDED, RLOCK_DONE (the work was done already), RLOCK_GONE (with
 * only_parents), or a fault: RLOCK_E_USAGE if a parent token's lock is shared or has slots, unlike
 * `config`. Without a grant, fills `*obstacle`, unless `obstacle` is NULL. Source:
 * lib/ops/acquire_loop.c, lib/lua/acquire.lua.
 */
enum rlock_status rlock_acquire(struct rlock *lock, struct rlock_deadline deadline,
                                struct rlock_grant *grant, struct rlock_obstacle *obstacle,
                                struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_keep: starts the renewer for the lease of the last rlock_acquire(), or of a later
 * rlock_renew(). The renewer writes a whole struct rlock_event to a pipe for each renewal that
 * succeeds, for the first one that fails after a success, and for the one that ends the renewer.
 * Returns RLOCK_OK (`*events` is the read end: close-on-exec, and closed by rlock_unkeep()) or
 * RLOCK_E_SYSTEM.
 */
enum rlock_status rlock_keep(struct rlock *lock, int *events, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* rlock_unkeep: stops the renewer, if it runs, and cuts short a renewal that is under way. */
void rlock_unkeep(struct rlock *lock);

/*
 * rlock_renew: renews the handle's lease once, while no renewer runs: for `ttl_ms`, or, if `ttl_ms`
 * is 0, for the lease's last TTL. With config.token this call never puts back a lease that is gone;
 * with RLOCK_PROTOCOL_TOKEN it never shortens a lease. Returns RLOCK_OK (`*expires_ms` is the
 * earliest end of the leases), RLOCK_LOST, RLOCK_GONE or RLOCK_RELEASED (`err` has a text),
 * RLOCK_STOPPED, or a fault. Blocks until `deadline`.
 */
enum rlock_status rlock_renew(struct rlock *lock, int64_t ttl_ms, struct rlock_deadline deadline,
                              int64_t *expires_ms, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_release: releases the lease, in one step inside the server; no late renewal can put it
 * back. `stay_ms`, 1 .. RLOCK_TTL_MAX_MS, is for the endings other than RLOCK_ENDS_FREE.
 * Returns RLOCK_OK, RLOCK_LOST, RLOCK_GONE, RLOCK_STOPPED, or a fault (the lease then ends by its
 * TTL). Blocks until `deadline`.
 */
enum rlock_status rlock_release(struct rlock *lock, struct rlock_deadline deadline,
                                enum rlock_ending ending, int64_t stay_ms, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* rlock_close: closes connections, frees the handle; releases no lease. NULL is allowed. */
void rlock_close(struct rlock *lock);

#ifdef __cplusplus
}
#endif

#endif
