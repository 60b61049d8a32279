/* SPDX-License-Identifier: MIT */
/*
 * exchange: acquires, renews and releases one exclusive lock by commands, without scripts.
 *
 * rlock uses exchanges where the server or its ACL forbids EVAL and EVALSHA. A script does an
 * operation in one step; an exchange needs several requests, and decides by each reply what the
 * next request is:
 *
 *     exchange_begin(&exchange, EXCHANGE_ACQUIRE, owner, server_ms);
 *     do {
 *         exchange_build(&exchange, &server, &request);
 *         ... send the request, read the replies to its commands ...
 *         st = exchange_read(&exchange, replies, &server, connection, &answer, &refusal, &err);
 *     } while (st == RLOCK_PENDING);
 */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "lock/owner.h"

/* What an exchange does. */
enum exchange_task {
    EXCHANGE_NONE,
    EXCHANGE_ACQUIRE,
    EXCHANGE_RENEW,
    EXCHANGE_RELEASE, /* remove the value that has the owner's token */
    EXCHANGE_UNDO     /* remove the value if the owner's attempt, now given up, has written it */
};

/* What the next request of an exchange is. exchange.c has a row for each. */
enum exchange_step {
    STEP_TIME,    /* ask for the server's time */
    STEP_SET,     /* write the value if the key doesn't exist */
    STEP_FENCE,   /* draw a fence (INCR), then read whether the key still has our value */
    STEP_LOOK,    /* read the value; WATCH the key if the server may lack STEP_COMPARE */
    STEP_COMPARE, /* write or delete by one command that compares the value (IFEQ) */
    STEP_COMMIT   /* write or delete by MULTI and EXEC, which fail if the watched key has changed */
};

/* Does the server have a command? Older servers and other products lack it, or an ACL denies it. */
enum exchange_support { SUPPORT_UNKNOWN, SUPPORT_YES, SUPPORT_NO };

/* Which commands a server has that compare the value and write in one step. */
struct exchange_server {
    enum exchange_support set_ifeq; /* SET ... IFEQ: Redis 8.4, Valkey 8.1 */
    enum exchange_support delifeq;  /* DELIFEQ: Valkey 9 */
    enum exchange_support delex;    /* DELEX ... IFEQ: Redis 8.4 */
};

#define EXCHANGE_VALUE_BYTES (HOLDER_INFO_BYTES + 256) /* longer than any value of rlock */

/* One operation, from its first request to its last reply. Only exchange.c writes the fields. */
struct exchange {
    enum exchange_task task;
    enum exchange_step step;
    const struct owner *owner; /* borrowed until the exchange ends */
    int64_t server_ms;         /* the server's time, ms since 1970; 0: not known yet */
    int64_t left_ms;           /* when the key was read: ms until it expires; -1: it never does;
                                  -2: it didn't exist */
    int64_t ttl_ms;            /* the TTL that is written */
    size_t parent;             /* which parent's token the value has, from 1; 0: none */
    uint64_t fence;            /* what to write as the last fence if the server has none; if a
                                  parent holds the lock: the fence of the parent's grant */
    bool deletes;              /* true: STEP_COMPARE and STEP_COMMIT delete the key; false: they
                                  write `value` */
    bool tells_renewer;        /* the release leaves the note "released" for the renewing process */
    bool is_watched;           /* the key is watched, on the connection watched_on */
    bool may_not_watch;        /* the server denies this user MULTI, EXEC or WATCH */
    bool has_written;          /* the server has confirmed that it wrote the value */
    uint64_t watched_on;
    char seen[EXCHANGE_VALUE_BYTES];  /* the value that was read, and that STEP_COMPARE expects */
    char value[EXCHANGE_VALUE_BYTES]; /* the value to write; "": not known yet */
};

/*
 * exchange_begin: start an operation on the owner's lock.
 *
 *   server_ms  the server's time as far as is known, ms since 1970; 0: the exchange asks for it
 */
void exchange_begin(struct exchange *exchange, enum exchange_task task, const struct owner *owner,
                    int64_t server_ms);

/* exchange_end: overwrite the tokens in the exchange, and set its task to EXCHANGE_NONE. */
void exchange_end(struct exchange *exchange);

/* exchange_build: build the next request, which borrows from the exchange and its owner. */
void exchange_build(const struct exchange *exchange, const struct exchange_server *server,
                    struct request *request);

/*
 * exchange_read: read the replies to the commands of the last request.
 *
 *   replies     one reply, or, to several commands, an array of their replies
 *   connection  identifies the connection by which the replies came; no other has this number
 *   answer      out, on RLOCK_OK: the result, as a script would have replied
 *   refusal     out, on RLOCK_E_REFUSED: the error reply that ends the exchange, or NULL: `err`
 *               has the fault
 *
 * Returns  RLOCK_PENDING (build and send the next request), RLOCK_OK, RLOCK_E_REFUSED,
 *          RLOCK_E_PROTOCOL, or RLOCK_E_USAGE: the lock has several holders, and only scripts can
 *          change it.
 */
enum rlock_status exchange_read(struct exchange *exchange, const struct resp_value *replies,
                                struct exchange_server *server, uint64_t connection,
                                struct reply *answer, const char **refusal,
                                struct rlock_error *err);

/*
 * exchange_needs_connection: must the next request go by the connection `watched_on`? On another
 * connection no key is watched, so EXEC would write even if the value has changed.
 */
bool exchange_needs_connection(const struct exchange *exchange);

/* exchange_may_have_written: may the server have executed a write of the exchange? */
bool exchange_may_have_written(const struct exchange *exchange);

/*
 * exchange_build_undo: build the request that undoes an acquire without a reply. The caller sends
 * the undo on the same connection, after the acquire, and reads no reply. The undo consists of
 * DELIFEQ and DELEX: each server knows at most one of the two. Returns false if there is nothing to
 * undo.
 */
bool exchange_build_undo(const struct exchange *exchange, struct request *request);

#endif
