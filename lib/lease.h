/* SPDX-License-Identifier: MIT */
/* lease: what is asked of one server about one lock, and what its answers mean. */
#ifndef LEASE_H
#define LEASE_H

#include "card.h"
#include "script.h"

#include <stdbool.h>

/* The lock as its owner knows it. */
struct lease {
    char *key[SCRIPT_KEYS];
    char *wake_prefix; /* of the lists by which waiters are woken, each with a token behind it */
    char *wake_key;    /* ours */
    char token[RLOCK_TOKEN_BYTES + 1];
    char card[CARD_BYTES];
    int64_t ttl_ms;
    int64_t attempt; /* number of the last acquire sent; one token serves them all */
    uint64_t fence;  /* of the grant; 0: none */
    enum rlock_queue queue;
    bool is_once;       /* the lock is asked for once: no place in line is wanted */
    int64_t ticket;     /* our place in line, which we bring along; 0: none yet */
    bool whole_seconds; /* the server blocks for whole seconds only (Redis 5) */
};

/* What a server answered. */
enum lease_kind {
    LEASE_GRANTED,
    LEASE_RESTORED, /* had vanished, put back */
    LEASE_HELD,     /* another's */
    LEASE_GONE,     /* nobody's */
    LEASE_LATE,     /* not executed: it came too late */
    LEASE_SUPERSEDED
};

struct lease_answer {
    enum lease_kind kind;
    int64_t server_ms;              /* 0: not told */
    uint64_t fence;                 /* of LEASE_GRANTED by an acquire */
    struct rlock_obstacle obstacle; /* of LEASE_HELD */
    int64_t block_ms;               /* of LEASE_HELD: how long to wait for being woken */
    int64_t ticket;                 /* of LEASE_HELD: our place in line; 0: we have none */
};

enum rlock_status lease_open(struct lease *lease, const struct rlock_config *config,
                             struct rlock_error *err);
void lease_close(struct lease *lease);

/* What goes into a request besides the lease, and its numbers as text; it must outlive it. */
struct lease_words {
    int64_t not_after_ms; /* in server time; 0: not known */
    int64_t block_ms;     /* how long to wait for being woken */
    char attempt[24];
    char ttl[24];
    char fence[24];
    char not_after[24];
    char ticket[24];
    char seconds[24];
    char prefix[RLOCK_TOKEN_BYTES + 40];
};

/* Requests, all of one form. */
typedef void lease_ask(const struct lease *lease, struct request *request,
                       struct lease_words *words);

lease_ask lease_ask_acquire;
lease_ask lease_ask_renew;
lease_ask lease_ask_release;
lease_ask lease_ask_undo;  /* take back what the last acquire may have done, and only that */
lease_ask lease_ask_leave; /* take back everything, and leave the line: the token's last use */
lease_ask lease_ask_wake;  /* wait for being woken */

/* Answers. RLOCK_OK or RLOCK_E_PROTOCOL. */
enum rlock_status lease_read_grant(const struct reply *reply, struct lease_answer *answer,
                                   struct rlock_error *err);
enum rlock_status lease_read_renewal(const struct reply *reply, struct lease_answer *answer,
                                     struct rlock_error *err);
enum rlock_status lease_read_release(const struct reply *reply, struct lease_answer *answer,
                                     struct rlock_error *err);

#endif
