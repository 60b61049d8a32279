/* SPDX-License-Identifier: MIT */
/* replies: what the replies of the scripts mean. */
#ifndef REPLIES_H
#define REPLIES_H

#include "wire/resp.h"

#include <stdbool.h>

/* What a server answered. */
enum answer_kind {
    ANSWER_GRANTED,  /* or renewed, or released */
    ANSWER_RESTORED, /* had vanished, put back */
    ANSWER_DONE,
    ANSWER_HELD, /* another's */
    ANSWER_GONE, /* nobody's */
    ANSWER_LATE, /* not executed: it came too late */
    ANSWER_SUPERSEDED,
    ANSWER_RELEASED,  /* by its token, from elsewhere */
    ANSWER_OTHER_MODE /* an parent lock is held in a way that doesn't cover this one */
};

/* How one of the locks of a grant is held. */
struct holding {
    size_t parent; /* which of the parent tokens holds it, from 1; 0: ours does */
    uint64_t fence;
    int64_t ttl_ms;
};

struct answer {
    enum answer_kind kind;
    int64_t server_ms; /* 0: not told */
    uint64_t fence;    /* of a grant */
    int64_t left_ms;   /* of a renewal: until the first of the leases ends; 0: not told */
    int64_t slot;
    bool is_passed_on; /* of a release: a waiter was told that it is its turn */
    size_t n_holdings; /* 0: all are ours, as asked for */
    struct holding holding[RLOCK_KEYS_MAX];
    struct rlock_obstacle obstacle;    /* of ANSWER_HELD and ANSWER_DONE */
    char owner[RLOCK_TOKEN_BYTES + 1]; /* of ANSWER_HELD: what it is known by; "": by nothing */
    bool is_written;                   /* of ANSWER_HELD and ANSWER_DONE: by an rlock */
    char list[12];                     /* by which its list of servers is known */
    int64_t holder_ttl_ms;             /* of ANSWER_HELD: of its lease; 0: not told */
    int64_t block_ms;                  /* of ANSWER_HELD: how long to wait for being woken */
    int64_t ticket;                    /* of ANSWER_HELD: our place in line; 0: we have none */
};

/* How a reply of a kind of request is read: RLOCK_OK or RLOCK_E_PROTOCOL. */
typedef enum rlock_status answer_read(const struct resp_value *reply, struct answer *answer,
                                      struct rlock_error *err);

/*
 * answer_soon_ms: of a wait for being woken: where it was only since our turn comes near, for how
 * many ms to wait for it before we ask; else -1.
 */
int64_t answer_soon_ms(const struct resp_value *reply);

answer_read answer_read_grant;
answer_read answer_read_confirmation;
answer_read answer_read_renewal;
answer_read answer_read_release;

#endif
