/* SPDX-License-Identifier: MIT */
/* replies: what the replies of the scripts say. */
#ifndef REPLIES_H
#define REPLIES_H

#include "wire/resp.h"

#include "reply_codes.h" /* made from lib/lua/reply_codes.tsv, as are the codes in the scripts */

#include <stdbool.h>

/* By whom one of the locks of a grant is held. */
struct granted_lock {
    size_t parent; /* which of the parent tokens, from 1; 0: the owner's own */
    uint64_t fence;
    int64_t ttl_ms;
};

/* The reply of a script that acquires, confirms, renews or releases. */
struct reply {
    enum reply_code code; /* of a release: REPLY_OK, also where the lock was passed on */
    int64_t server_ms;    /* the server's clock, ms since 1970; 0: a release doesn't tell */

    /* REPLY_OK, RESTORED, LATE */
    uint64_t fence; /* of a grant; LATE: the greatest that was noted so far */
    int64_t slot;   /* of a grant with RLOCK_SLOTS */
    size_t n_locks; /* how many of `lock` are told; 0: all are the owner's own, as asked for */
    struct granted_lock lock[RLOCK_KEYS_MAX];
    int64_t left_ms;   /* of a renewal: until the first of the leases ends; 0: not told */
    bool is_passed_on; /* of a release: the next waiter was told that it is its turn */

    /* REPLY_HELD, DONE, OTHER_MODE */
    struct rlock_obstacle obstacle;
    char holder_id[RLOCK_TOKEN_BYTES + 1]; /* equal on two servers where the same owner holds it */
    bool is_rlock;                         /* the holder, or who wrote the done mark, is an rlock */
    char members_hash[12]; /* of the holder's list of servers; "": it has one server */
    int64_t holder_ttl_ms; /* of the holder's lease; 0: not told */

    /* REPLY_HELD in reply to an acquire */
    int64_t block_ms; /* ask again after this, unless woken before */
    int64_t ticket;   /* our place in line; 0: none */
};

/* Read the reply of one script into `reply`. Return RLOCK_OK or RLOCK_E_PROTOCOL. */
typedef enum rlock_status reply_parse(const struct resp_value *value, struct reply *reply,
                                      struct rlock_error *err);

reply_parse reply_parse_acquire;
reply_parse reply_parse_confirm;
reply_parse reply_parse_renew;
reply_parse reply_parse_release;

/*
 * reply_parse_break: read the reply of break.lua, a code alone: REPLY_OK, REPLY_HELD or REPLY_GONE.
 * Returns RLOCK_OK or RLOCK_E_PROTOCOL.
 */
enum rlock_status reply_parse_break(const struct resp_value *value, enum reply_code *code,
                                    struct rlock_error *err);

/*
 * reply_soon_ms: read the reply to a waiter's BLPOP. Returns MS for "soon MS": the waiter's turn is
 * near, and the waiter may block again for up to MS ms until the turn comes. Returns -1 for any
 * other reply, also for a timeout: then the waiter asks for the lock.
 */
int64_t reply_soon_ms(const struct resp_value *value);

#endif
