/* SPDX-License-Identifier: MIT */
/*
 * commands: reads, acquires, renews, releases and breaks one exclusive lock without scripts.
 *
 * rlock uses commands with --scripts no, or where the server or its ACL forbids EVAL and EVALSHA.
 * An operation needs several requests, and each reply decides what the next one is:
 *
 *     commands_begin(&commands, COMMANDS_ACQUIRE, owner);
 *     do {
 *         commands_build(&commands, &request);
 *         ... send the request, read the replies to its commands ...
 *         st = commands_read(&commands, replies, connection, &answer, &refusal, &err);
 *     } while (st == RLOCK_PENDING);
 *     commands_end(&commands);
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "lock/owner.h"

/* The operations. */
enum commands_task {
    COMMANDS_NONE,
    COMMANDS_READ, /* only read the lock */
    COMMANDS_ACQUIRE,
    COMMANDS_RENEW,
    COMMANDS_RELEASE, /* remove the value that has the owner's token */
    COMMANDS_UNDO,    /* remove the value if the owner's attempt, now given up, has written it */
    COMMANDS_BREAK    /* remove the value that has a given name */
};

/* The requests of which the operations consist. commands.c has a table of what each one sends. */
enum commands_step {
    STEP_LOOK,   /* read the lock, and WATCH its key unless the operation only reads */
    STEP_CLAIM,  /* write our value, as the lock is free */
    STEP_FENCE,  /* draw a fence, then read whether the lock still has our value */
    STEP_COMMIT, /* write or delete, unless the watched key has changed */
    STEP_TRY,    /* ask what the user may do: commands of the steps above, none executed */
    STEP_UNDO    /* remove our value: sent behind a request of an acquire that is given up */
};

#define COMMANDS_VALUE_BYTES (HOLDER_INFO_BYTES + 256) /* longer than any value of rlock */

/* One operation, from its first request to its last reply. Only commands.c writes the fields. */
struct commands {
    enum commands_task task;
    enum commands_step step;
    unsigned parts;               /* see commands.c: which commands are sent */
    const struct owner *owner;    /* borrowed; NULL with COMMANDS_READ and COMMANDS_BREAK */
    const struct lock_keys *keys; /* borrowed; the names of the lock's keys */
    /* what STEP_LOOK has read: */
    char seen[COMMANDS_VALUE_BYTES]; /* the lock's value, or its beginning, up to its first NUL */
    bool exists;
    int64_t left_ms;    /* ms until the key expires; -1: it never does; -2: it doesn't exist */
    int64_t now_us;     /* the server's time, us since 1970 */
    uint64_t fence;     /* the last fence; 0: none is known */
    bool has_bad_fence; /* the key of the fence holds no valid fence */
    int64_t waiting;    /* with COMMANDS_READ: length of the queue; -1: not known */
    char name[17];      /* a hash of `seen`, by which rlock_break() tells grants apart */
    /* what the later steps write: */
    char value[COMMANDS_VALUE_BYTES]; /* the lock's new value; "": not known yet */
    int64_t ttl_ms;                   /* its TTL */
    int64_t number;                   /* written as the last fence, if needed */
    struct lock_keys holder; /* with COMMANDS_BREAK: the keys of the holder, for its note */
    char note[HOLDER_INFO_BYTES + 16]; /* for the holder's next renewal; with COMMANDS_READ: what is
                                          wrong with the fence, or "" */
    const char *to_break;              /* borrowed; the name of the value to break */
    size_t parent;                     /* which parent's token the value has, from 1; 0: none */
    uint64_t watched_on;               /* the connection on which the key is watched */
    bool stays;                        /* with COMMANDS_READ: only this server is asked */
};

/* commands_begin: start an operation on the owner's lock, which borrows the owner. */
void commands_begin(struct commands *commands, enum commands_task task, const struct owner *owner);

/*
 * commands_begin_read, commands_begin_break: start to read or to break the lock of `keys`, which
 * the operation borrows.
 *
 *   stays  only this server is asked, see request_stay()
 *   name   `name` of the value to remove, as it was read; borrowed
 *   info   who breaks the lock (holder info)
 */
void commands_begin_read(struct commands *commands, const struct lock_keys *keys, bool stays);
void commands_begin_break(struct commands *commands, const struct lock_keys *keys, const char *name,
                          const char *info);

/*
 * commands_begin_try: let commands_build() build a request that asks for the user's rights: to the
 * commands that acquire a lock, on the keys in `keys`; or, if `on_wake` is set, to those and the
 * commands that change a lock, each on `wake` of `keys`. Borrows `keys`. The server checks the
 * rights to each command and its key, but executes none. The caller reads the replies.
 */
void commands_begin_try(struct commands *commands, const struct lock_keys *keys, bool on_wake);

/* commands_end: free what the operation has allocated, and overwrite its tokens. */
void commands_end(struct commands *commands);

/*
 * commands_build: build the next request, which borrows from the operation. Returns whether the
 * request writes the lock's key.
 */
bool commands_build(const struct commands *commands, struct request *request);

/*
 * commands_build_undo: build what to send behind an acquire that is given up without a reply, on
 * the same connection, so that the server removes the value that it may still write. Nobody reads
 * the replies: no server knows both DELIFEQ and DELEX, and old ones know neither. Returns false if
 * there is nothing to undo.
 */
bool commands_build_undo(const struct commands *commands, struct request *request);

/*
 * commands_read: read the replies to the commands of the last request.
 *
 *   replies     an array of the replies
 *   connection  identifies the connection by which the replies came; no other has this number
 *   answer      out, on RLOCK_OK: the result, as a script would have replied
 *   refusal     out, on RLOCK_E_REFUSED: the error reply that ends the operation, or NULL: `err`
 *               has the fault
 *
 * Returns  RLOCK_PENDING (build and send the next request), RLOCK_OK, RLOCK_E_REFUSED,
 *          RLOCK_E_PROTOCOL, RLOCK_E_MEMORY, or RLOCK_E_USAGE: the lock has several holders, and
 *          only scripts can change it.
 */
enum rlock_status commands_read(struct commands *commands, const struct resp_value *replies,
                                uint64_t connection, struct reply *answer, const char **refusal,
                                struct rlock_error *err);

#endif
