/* SPDX-License-Identifier: MIT */
/*
 * rlock: hold a lock in Redis for as long as it can be proven to be held.
 *
 * What a lock is here. A *lock* is a name. A *lease* is one owner's right to
 * it for a limited time, kept as one string key on the server:
 *
 *     SET KEY "TOKEN CARD" NX EX ttl
 *
 * TOKEN is 32 hex digits from the kernel's random source and proves ownership;
 * CARD says who holds it, for people. A *grant* is what a successful acquire
 * returns: the token, the fence (a number that grows with every grant of the
 * name) and the moment at which the lease must be taken as ended.
 *
 * What it promises. A grant's `expires_ms` lies before the moment at which the
 * server can let anybody else have the lock: it is counted from before the
 * last confirmed request was sent, on a clock that also runs while the machine
 * sleeps, less 1 % of the TTL and 2 ms. Whoever stops working by then never
 * overlaps with the next owner. Nothing here changes a key that holds another
 * owner's token, and no key is left without an expiry.
 *
 * What it can't promise. A request that was sent to a third party before
 * `expires_ms` may arrive after it; only that party can refuse it, by comparing
 * fences. A server that loses acknowledged writes, or whose clock is stepped
 * forward, may give the lock away early; the next renewal then says so.
 *
 * Calling sequence.
 *
 *     rlock_open      parse addresses, draw a token; no traffic yet
 *     rlock_acquire   take the lease, waiting as long as `until` allows
 *     rlock_keep      start the renewer: a thread that renews and reports
 *     ... work, never past the newest expires_ms the renewer reported ...
 *     rlock_unkeep    stop the renewer
 *     rlock_release   give the lease back
 *     rlock_close     forget everything
 *
 * Threads. One call at a time per handle; between rlock_keep and rlock_unkeep
 * the handle belongs to the renewer and only rlock_unkeep may be called.
 *
 * Errors. Every call that can fail returns an enum rlock_status. Outcomes
 * (busy, timed out, lost) are answers and carry no text; faults fill `err`,
 * which may be NULL. Nothing here prints, exits, reads the environment or
 * touches signal dispositions.
 */
#ifndef RLOCK_H
#define RLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RLOCK_VERSION "0.1.0"

#define RLOCK_KEY_MAX 65536  /* bytes in a key */
#define RLOCK_KEYS_MAX 32    /* keys that are locked together */
#define RLOCK_PARENTS_MAX 16 /* locks of one's own that one may already be under */
#define RLOCK_SLOTS_MAX 1000
#define RLOCK_REPLICAS_MAX 1000
#define RLOCK_MEMBERS_MAX 9      /* of a quorum */
#define RLOCK_PASSWORD_MAX 16384 /* bytes in a password: servers take no longer one */
#define RLOCK_TOKEN_BYTES 32
#define RLOCK_TTL_MIN_MS 1000
#define RLOCK_TTL_MAX_MS (30 * INT64_C(86400000))

enum rlock_status {
    RLOCK_OK,
    /* outcomes: expected, no text */
    RLOCK_PENDING,    /* not finished yet; only between the layers of the library */
    RLOCK_BUSY,       /* somebody else holds it */
    RLOCK_TIMEOUT,    /* not had in time */
    RLOCK_STOPPED,    /* the stop descriptor became readable */
    RLOCK_LOST,       /* the lease is gone, or another owner's */
    RLOCK_GONE,       /* of those: the lock isn't another owner's */
    RLOCK_RELEASED,   /* of those: it was given back by its token, from elsewhere */
    RLOCK_SUPERSEDED, /* a newer waiter came */
    RLOCK_DONE,       /* what the lock is for was done already */
    /* faults: err is filled */
    RLOCK_E_USAGE,       /* a value outside its range */
    RLOCK_E_CONFIG,      /* an address, a file or a certificate that can't be right */
    RLOCK_E_UNREACHABLE, /* no answer: refused, timed out, reset, not resolved */
    RLOCK_E_PROTOCOL,    /* an answer that isn't Redis, or is out of bounds */
    RLOCK_E_SERVER,      /* the server can't serve now: loading, read-only, out of memory */
    RLOCK_E_UNSUPPORTED, /* the server can't do what was asked, now or later */
    RLOCK_E_REFUSED,     /* password, permission, or a key of another type */
    RLOCK_E_NO_QUORUM,   /* too few members granted */
    RLOCK_E_REPLICAS,    /* granted, but not on enough replicas, so given back */
    RLOCK_E_MEMORY,
    RLOCK_E_SYSTEM /* a system call failed; `sys` says which way */
};

/* What a program may decide by where the status doesn't say enough; `text` is for people. */
enum rlock_reason {
    RLOCK_REASON_NONE,
    RLOCK_REASON_LOGIN,          /* a server refused the password, or none could be found */
    RLOCK_REASON_SENTINEL_LOGIN, /* the same of a Sentinel */
    RLOCK_REASON_NOT_PRIMARY,    /* the server is a replica, or has become one just now */
    RLOCK_REASON_WHOLE_SECONDS   /* the server blocks for whole seconds only */
};

struct rlock_error {
    enum rlock_status status;
    enum rlock_reason reason;
    int sys;        /* errno, 0: none */
    char text[256]; /* "127.0.0.1:6379: connect: Connection refused"; no newline */
};

/* When to give up: at a time, or as soon as a descriptor becomes readable. */
struct rlock_deadline {
    int64_t at_ms; /* on rlock_clock_ms(); RLOCK_NEVER: no limit */
    int stop_fd;   /* -1: none; borrowed, never read from */
};

#define RLOCK_NEVER INT64_MAX

/* How a TTL is divided; see rlock_timing_fit(). All in milliseconds. */
struct rlock_timing {
    int64_t ttl_ms;         /* RLOCK_TTL_MIN_MS .. RLOCK_TTL_MAX_MS */
    int64_t renew_ms;       /* from one renewal to the next */
    int64_t reply_ms;       /* longest wait for one reply */
    int64_t grace_ms;       /* from TERM to KILL */
    int64_t kill_margin_ms; /* from KILL to the lease's end */
};

/* How to wait for a lock that is held. */
enum rlock_queue {
    RLOCK_QUEUE_FIFO,  /* in line: first come, first served */
    RLOCK_QUEUE_NONE,  /* beside the line: whoever finds it free has it */
    RLOCK_QUEUE_NEWEST /* in line, until somebody comes who waits in this way too */
};

/* Who may hold a lock at the same time. */
enum rlock_mode {
    RLOCK_EXCLUSIVE, /* one */
    RLOCK_SHARED,    /* any number of those who want it so */
    RLOCK_SLOTS      /* up to a number, each with a slot of its own */
};

/* What stands in the key of a lock. */
enum rlock_protocol {
    RLOCK_PROTOCOL_TOKEN,  /* the owner's token and holder info */
    RLOCK_PROTOCOL_TIME_S, /* the time of expiry, in seconds since 1970, as of old */
    RLOCK_PROTOCOL_TIME_MS /* the same in milliseconds */
};

/*
 * Where a password is looked up that may change while a handle is open: asked
 * for each new connection, and once more when a server refuses what was found.
 * After that a call on a server that has accepted a password before (a renewer,
 * an rlock_acquire that waits, a release) goes on trying until its own end.
 *
 * All are called by the thread that uses the handle, the renewer's where there is
 * one, and don't block. One lookup at a time.
 *
 *   ask        begin a lookup that ends at `expires_ms`, on rlock_clock_ms(). Returns a
 *              descriptor that is readable once take() has its end, the source's
 *              own; -1: none, and a fault in `err`; NULL: there is no source
 *   take       RLOCK_OK: the password, with a NUL in `room` bytes, RLOCK_PASSWORD_MAX + 1;
 *              RLOCK_PENDING; or a fault in `err`, whose reason should be
 *              RLOCK_REASON_LOGIN where a later lookup may do better
 *   forgotten  the library has cleared all copies of what take() gave; NULL: not called
 */
struct rlock_password_source {
    int (*ask)(void *context, int64_t expires_ms, struct rlock_error *err);
    enum rlock_status (*take)(void *context, char *password, size_t room, struct rlock_error *err);
    void (*forgotten)(void *context);
    void *context;
};

/* Who asks, as others will see it; the strings are borrowed during rlock_open. */
struct rlock_holder {
    const char *host; /* NULL: left out, as for all of them */
    const char *user;
    const char *command; /* the program's name, never its arguments */
    const char *label;
    int64_t pid;      /* 0: left out */
    bool has_renewer; /* a renewer renews it, and is to hear if its token was released elsewhere */
};

/* Why a lock was not had: who held it when it was last looked at, or who has done it. */
struct rlock_obstacle {
    char holder[256];           /* for people, printable ASCII; "": nobody was seen */
    int64_t seen_ms;            /* when that was, on rlock_clock_ms() */
    int64_t left_ms;            /* from then until the lock expires; -1: it never does */
    int64_t since_ms;           /* since when, in server time, ms since 1970; 0: not known */
    int64_t place;              /* ours in the line, from 1; 0: not in line */
    bool is_next;               /* our turn may come at any moment */
    size_t key;                 /* which of the keys */
    struct rlock_error trouble; /* why it can't be asked for at present, or granted; its status is
                                   RLOCK_OK where it can. The rest is as it was before */
    int64_t trouble_ms;         /* since when, on rlock_clock_ms() */
};

/*
 * Who is told what is in the way: after each look at it, after each attempt that meets trouble,
 * with its end, again where no look came for a while, and with NULL when the wait is over. A
 * server that was never there is trouble once connect_ms have passed. And that the lock was
 * asked for and the answer is on its way: what a grant will need can be prepared
 * meanwhile. Called by the thread that waits; it must not block, but for
 * `unreached`, which may take the time that it needs to mend things.
 */
struct rlock_watch {
    void (*see)(void *context, const struct rlock_obstacle *obstacle); /* NULL: nobody */
    void (*asked)(void *context);                                      /* NULL: nobody */
    void (*warn)(void *context, const char *text); /* that locks are not safe; NULL: nobody */
    void (*unreached)(void *context); /* a server was not reached, and is tried again soon; NULL */
    void *context;
    int64_t every_ms; /* from one call to the next at the latest; 0: only after a look */
};

struct rlock_config {
    const char *const *urls; /* see rlock(1); borrowed during rlock_open */
    size_t n_urls;        /* an odd number up to RLOCK_MEMBERS_MAX: of several a majority decides */
    const char *password; /* for URLs that have none; NULL: none */
    struct rlock_password_source password_source; /* where there is no `password` either */
    const char *sentinel_user; /* for redis+sentinel://: as whom Sentinels are asked; NULL: none */
    const char *sentinel_password; /* NULL: none, or that of the source */
    struct rlock_password_source sentinel_password_source;
    const char *tls_ca;      /* for rediss://: a file or folder of CAs; NULL: the system's */
    const char *tls_name;    /* that servers must prove to have; NULL: the host of the URL */
    const char *tls_cert;    /* our certificate and its chain; NULL: none */
    const char *tls_key;     /* its key; NULL: it stands in the same file */
    const char *const *keys; /* each of 1 .. RLOCK_KEY_MAX bytes; borrowed during rlock_open */
    size_t n_keys;           /* .. RLOCK_KEYS_MAX, no key twice; all are had, or none; 0: to look */
    enum rlock_protocol protocol; /* RLOCK_PROTOCOL_TIME_: one key, alone, no line */
    enum rlock_mode mode;
    int64_t n_slots;           /* of RLOCK_SLOTS, 1 .. RLOCK_SLOTS_MAX; of one key */
    bool unless_done;          /* RLOCK_DONE where a mark says so, instead of waiting for its end */
    const char *const *parent; /* tokens of locks that we are under; borrowed during rlock_open */
    size_t n_parents;          /* 0 .. RLOCK_PARENTS_MAX */
    bool only_parents; /* nothing else is wanted: RLOCK_LOST where they don't hold all keys */
    const char *token; /* of a lease to go on with; NULL: it is to be acquired */
    struct rlock_timing timing;
    struct rlock_holder holder;
    int64_t connect_ms; /* longest time for a connection to stand; > 0 */
    enum rlock_queue queue;
    int64_t replicas; /* of a server, that must have a grant or renewal before it counts; 0: none */
    struct rlock_watch watch;
};

/* A lease that was granted. */
struct rlock_grant {
    char token[RLOCK_TOKEN_BYTES + 1];
    int64_t sent_ms; /* when its request was sent, on rlock_clock_ms(); the TTL counts from here */
    int64_t expires_ms; /* the lease's end, on rlock_clock_ms() */
    uint64_t fence;     /* grows with every grant of these keys; never 0 */
    int64_t slot;       /* of RLOCK_SLOTS, 0 .. n_slots - 1 */
    bool is_parent;  /* all of it is the lease of a lock that we are under: nothing is given back */
    bool has_parent; /* some of it is */
    uint32_t parent_keys;       /* of which keys: bit i is that of keys[i] */
    struct rlock_timing timing; /* that asked for, or shorter: that of the lock we are under */
};

/* What becomes of a lock that is given back. */
enum rlock_ending {
    RLOCK_ENDS_FREE, /* the next one has it */
    RLOCK_ENDS_REST, /* it stays taken, by nobody */
    RLOCK_ENDS_DONE  /* it stays taken, and says that it is done */
};

/* What the renewer saw; arrives whole on the descriptor rlock_keep() gives. */
enum rlock_kept {
    RLOCK_KEPT_RENEWED,  /* expires_ms is new */
    RLOCK_KEPT_RESTORED, /* the same; the key had vanished and was put back */
    RLOCK_KEPT_TROUBLE,  /* a renewal failed (text says why) and is tried again */
    RLOCK_KEPT_RELEASED, /* it was given back by its token, from elsewhere; the renewer has ended */
    RLOCK_KEPT_LOST      /* the lock is gone or another's (text); the renewer has ended */
};

struct rlock_event {
    enum rlock_kept kind;
    int64_t expires_ms;
    char text[256];
};

struct rlock; /* one lock on its servers; opaque */

/* rlock_built_with: what the library was built with: "hiredis 1.2.0, TLS yes". */
const char *rlock_built_with(void);

/*
 * rlock_clock_ms: milliseconds on CLOCK_BOOTTIME, the clock of every time here.
 * It counts suspended time, as the server's expiry does. Any thread; safe
 * between fork and exec.
 */
int64_t rlock_clock_ms(void);

/*
 * rlock_timing_fit: divide a TTL so that all that must happen within it can.
 *
 *   ttl_ms       RLOCK_TTL_MIN_MS .. RLOCK_TTL_MAX_MS
 *   kill_after_ms  from TERM to KILL; -1: a sixth of the TTL, at most 5 s
 *   timing       out, on RLOCK_OK only
 *
 * Returns  RLOCK_OK, or RLOCK_E_USAGE when the parts don't fit into the TTL.
 * Source   the timing law: TTL less drift >= renewal + 2 replies + grace + margin.
 */
enum rlock_status rlock_timing_fit(int64_t ttl_ms, int64_t kill_after_ms,
                                   struct rlock_timing *timing, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_open: a handle for some keys on their servers. Sends nothing.
 *
 *   lock    out, on RLOCK_OK only; give back with rlock_close()
 *   config  borrowed for the call; everything is copied
 *
 * With a token in its configuration the handle stands for the leases that were
 * granted under it, by whomever: rlock_renew() and rlock_release() are for it.
 *
 * Returns  RLOCK_OK, RLOCK_LOST (no lock has a token of that form),
 *          RLOCK_E_USAGE, RLOCK_E_CONFIG, RLOCK_E_MEMORY or RLOCK_E_SYSTEM.
 */
enum rlock_status rlock_open(struct rlock **lock, const struct rlock_config *config,
                             struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_acquire: take the lease, waiting for it if `until` leaves time.
 *
 *   until     when, or on which descriptor's word, to stop. An at_ms that has
 *             passed asks once, within connect_ms
 *   grant     out, on RLOCK_OK only; stays valid until expires_ms
 *   obstacle  out, on RLOCK_BUSY and RLOCK_TIMEOUT; may be NULL
 *
 * A server that never answered is a fault after connect_ms, or at `until` if
 * that is a later moment; one that was there and went away is waited for. A
 * reply that was lost is asked for again with the same token; a request that
 * is given up is followed by its own undo, so that no lock is left behind.
 *
 * Whoever waits keeps its place in line through a restart of the server, and
 * leaves the line before this returns anything but RLOCK_OK. Whoever wants
 * several keys stands in the line of each with the same ticket.
 *
 * With `replicas` a grant counts when so many replicas have said that they
 * have it, within timing.reply_ms, and is taken back if they don't: then who
 * waits is in line again at the same place, and tries again. Renewals
 * are held to the same: see rlock_keep.
 *
 * A key that is held by one of the `parent` tokens counts as had: it stays the
 * parent lock's lease, which the renewer extends as well, and rlock_release()
 * leaves alone.
 *
 * With `only_parents` that is all that is had: where one of the keys isn't held by
 * one of these tokens, nothing is taken or waited for.
 *
 * Returns  RLOCK_OK, RLOCK_BUSY (asked once), RLOCK_TIMEOUT, RLOCK_SUPERSEDED,
 *          RLOCK_LOST (with `only_parents`: one of the keys isn't held so),
 *          RLOCK_DONE (`obstacle` says by whom), RLOCK_STOPPED, or a fault;
 *          RLOCK_E_USAGE where an parent lock is held in another mode,
 *          RLOCK_E_REPLICAS where too few replicas had it in time.
 * Blocks   until `until`, and up to timing.reply_ms more to take back a request.
 * Source   lib/lua/acquire.lua, lib/lua/shared/line.lua.
 */
enum rlock_status rlock_acquire(struct rlock *lock, struct rlock_deadline deadline,
                                struct rlock_grant *grant, struct rlock_obstacle *obstacle,
                                struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_keep: start the renewer, a thread that renews the lease of the last
 * rlock_acquire and writes a struct rlock_event for each thing it sees. A
 * renewal that too few replicas have is a trouble: the lease ends when it did,
 * as that is when it would end after a failover.
 *
 *   events  out, on RLOCK_OK only: the descriptor to read events from; close
 *           on exec, owned by the handle, closed by rlock_unkeep()
 *
 * Returns  RLOCK_OK or RLOCK_E_SYSTEM.
 */
enum rlock_status rlock_keep(struct rlock *lock, int *events, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_unkeep: stop the renewer. Does not block on the network: a renewal
 * under way is cut short. Without a renewer it does nothing.
 */
void rlock_unkeep(struct rlock *lock);

/*
 * rlock_renew: renew the leases of a token, once, where there is no renewer. It
 * puts nothing back that has vanished, and makes no lease shorter: another
 * process may count on its end.
 *
 *   ttl_ms   from now on; 0: as long as before
 *   expires_ms   out, on RLOCK_OK only: the earliest end of them, on rlock_clock_ms()
 *
 * Returns  RLOCK_OK, RLOCK_LOST (gone or another owner's, err says which;
 *          nothing was changed), RLOCK_STOPPED, or a fault.
 * Blocks   no longer than `until`.
 * Source   lib/lua/renew.lua.
 */
enum rlock_status rlock_renew(struct rlock *lock, int64_t ttl_ms, struct rlock_deadline deadline,
                              int64_t *expires_ms, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_release: give the lease back, if it is still ours, in one step inside
 * the server. After it no late renewal can bring the key back.
 *
 *   ending   what becomes of the lock
 *   stay_ms  for how long, if it isn't RLOCK_ENDS_FREE; up to RLOCK_TTL_MAX_MS
 *
 * Returns  RLOCK_OK, RLOCK_GONE, RLOCK_LOST (another owner's; nothing of it was
 *          changed), RLOCK_STOPPED, or a fault (the key then expires by itself).
 * Blocks   no longer than `until`; 1 ms if it was passed on, as its new owner is to start first.
 */
enum rlock_status rlock_release(struct rlock *lock, struct rlock_deadline deadline,
                                enum rlock_ending ending, int64_t stay_ms, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* What is seen under a key. */
enum rlock_seen {
    RLOCK_SEEN_FREE,      /* nothing */
    RLOCK_SEEN_KEPT,      /* nobody has it: it is kept for a moment for the next in line */
    RLOCK_SEEN_EXCLUSIVE, /* held by one */
    RLOCK_SEEN_SHARED,    /* held by many */
    RLOCK_SEEN_SLOTS,     /* held by up to a number */
    RLOCK_SEEN_REST,      /* held by nobody: it stays taken for a while */
    RLOCK_SEEN_DONE,      /* the same: a mark that the work was done */
    RLOCK_SEEN_FOREIGN    /* another program's, or not a lock at all */
};

/* One who holds a lock or waits for it. What they said of themselves may be any bytes. */
struct rlock_party {
    char host[164]; /* "": not told, as for all of them */
    char user[164];
    char command[164];
    char label[164];
    char pid[24];     /* text, as nobody says that it is a number */
    char text[256];   /* all of it for people, printable ASCII */
    int64_t since_ms; /* Unix time on the server's clock; 0: not known */
    int64_t for_ms;   /* how long since then */
    int64_t left_ms;  /* of one of several holders: until its lease ends; else 0 */
    int64_t slot;     /* of RLOCK_SLOTS; -1: none */
    int64_t ttl_ms;   /* of its lease; 0: not told */
};

/* One lock at one moment; borrowed from the call that shows it. */
struct rlock_view {
    const char *key;
    enum rlock_seen seen;
    int64_t left_ms;   /* until it expires; -1: it never does; 0: free */
    uint64_t fence;    /* the last one of this key; 0: none is known */
    int64_t waiting;   /* how many stand in line, dead ones among them; -1: not known */
    const char *name;  /* what its value is known by, for rlock_break(); "": not told */
    const char *value; /* FOREIGN: the beginning of it, any bytes; else NULL */
    const struct rlock_party *holders; /* at most 20 of them */
    size_t n_holders;
    size_t n_all;      /* who hold it, also those not shown */
    size_t n_members;  /* of the quorum; 1: one server */
    size_t n_alike;    /* members where it is so */
    const char *wrong; /* helper keys that hold something else, any bytes; "" or NULL: none */
};

/* Who is shown what; either may be NULL. Called by the thread that looks, during the call. */
struct rlock_visitor {
    void (*lock)(void *context, const struct rlock_view *view);
    void (*waiter)(void *context, const struct rlock_party *waiter); /* in order, after its lock */
    void *context;
};

/*
 * rlock_inspect: look at one lock, whichever the handle is for.
 *
 *   key      1 .. RLOCK_KEY_MAX bytes
 *   visitor  shown the lock once, also if it is free, and then each who waits
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, or a fault: what was shown till then was so.
 * Blocks   no longer than `until`, connect_ms, or timing.reply_ms for a reply.
 * Source   lib/lua/inspect.lua.
 */
enum rlock_status rlock_inspect(struct rlock *lock, const char *key, struct rlock_deadline deadline,
                                const struct rlock_visitor *visitor, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_list: look at all locks of the server, or of all primaries of its
 * Cluster, in no order. One that is there during the whole of the call is shown
 * at least once; a second time is rare.
 *
 *   pattern  glob for keys, as that of SCAN; NULL: all
 *   visitor  shown each lock; `waiter` isn't called
 *
 * A lock is a string that rlock wrote, or that of another program where rlock
 * remembers a last fence, or waits. Use a handle without keys: others allow no
 * replies that are long enough for the longest keys.
 *
 * Returns and blocks as rlock_inspect.
 * Source   lib/lua/list.lua.
 */
enum rlock_status rlock_list(struct rlock *lock, const char *pattern,
                             struct rlock_deadline deadline, const struct rlock_visitor *visitor,
                             struct rlock_error *err) __attribute__((warn_unused_result));

/*
 * rlock_break: take a lock away from whoever has it, and pass it on to the
 * first in line. Its holder can't put it back, and notices at its next renewal.
 *
 *   name   of the value that rlock_inspect() has shown: no other is taken away
 *
 * Returns  RLOCK_OK, RLOCK_BUSY (another value by now), RLOCK_LOST (gone
 *          by now), RLOCK_STOPPED, or a fault.
 * Source   lib/lua/break.lua.
 */
enum rlock_status rlock_break(struct rlock *lock, const char *key, const char *name,
                              struct rlock_deadline deadline, struct rlock_error *err)
    __attribute__((warn_unused_result));

/* How a finding of rlock_examine() is to be taken. */
enum rlock_grade {
    RLOCK_GRADE_GOOD,
    RLOCK_GRADE_UNKNOWN, /* the server doesn't tell */
    RLOCK_GRADE_WEAK,    /* good until something breaks: a machine, a network, a clock */
    RLOCK_GRADE_UNSAFE   /* locks may end early, or can't be had */
};

/* What was found; borrowed from the call that shows it, printable ASCII. */
struct rlock_finding {
    const char *server; /* "host:port", or the path of its socket */
    const char *check;  /* what was looked at: "eviction" */
    enum rlock_grade grade;
    const char *found;
    const char *change; /* what to do about it; NULL: nothing */
};

/* Who is shown each finding; called by the thread that examines, during the call. */
struct rlock_examiner {
    void (*see)(void *context, const struct rlock_finding *finding);
    void *context;
};

/*
 * rlock_examine: look for what makes locks unsafe: on the server, on the way
 * to it, in what the user may do there. Takes half a second, in which it
 * compares the clocks. Changes nothing.
 *
 *   key  a lock whose names are to be tried; NULL: one of the library's own
 *
 * What is asked for in the handle's config (timing, replicas) is what the
 * server is measured by. What can't be looked at for lack of rights is a
 * finding, RLOCK_GRADE_UNKNOWN.
 *
 * Returns  RLOCK_OK, RLOCK_STOPPED, or a fault: what was shown till then was so.
 * Blocks   no longer than `until`.
 * Source   lib/doctor.c, lib/lua/rights.lua.
 */
enum rlock_status rlock_examine(struct rlock *lock, const char *key, struct rlock_deadline deadline,
                                const struct rlock_examiner *examiner, struct rlock_error *err)
    __attribute__((warn_unused_result));

/*
 * rlock_forget_passwords: clear the passwords that the handle was given. For a
 * child that was forked with the handle and has no use for it: no connection
 * can be opened afterwards.
 */
void rlock_forget_passwords(struct rlock *lock);

/*
 * rlock_close: close connections, clear secrets, free. NULL is allowed. Gives
 * no lease back.
 */
void rlock_close(struct rlock *lock);

#endif
