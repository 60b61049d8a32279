/* SPDX-License-Identifier: MIT */
/* replies: parses the replies of the Lua scripts, and of commands sent instead of scripts. */
#ifndef REPLIES_H
#define REPLIES_H

#include "wire/resp.h"

#include "reply_codes.h" /* generated from lib/lua/reply_codes.tsv by embed.awk */

#include <stdbool.h>

/* One lock of a grant. */
struct granted_lock {
    size_t parent; /* which parent token holds the lock, counted from 1; 0: the owner's token */
    uint64_t fence;
    int64_t ttl_ms;
};

/* The reply of a script that acquires, confirms, renews or releases. */
struct reply {
    enum reply_code code;
    int64_t server_ms; /* server time, ms since 1970; 0 after a release, whose reply has none */

    /* set with the codes REPLY_OK, REPLY_RESTORED and REPLY_LATE: */
    uint64_t fence; /* of a grant; with REPLY_LATE: the greatest fence that the server has stored */
    int64_t slot;   /* of a grant with RLOCK_SLOTS */
    size_t n_locks; /* number of entries in `lock`; 0: the owner's own token holds all locks */
    struct granted_lock lock[RLOCK_KEYS_MAX];
    int64_t left_ms; /* of a renewal: ms until the first lease ends; 0: not in the reply */

    /* set with the codes REPLY_HELD, REPLY_DONE and REPLY_OTHER_MODE: */
    struct rlock_obstacle obstacle;
    char holder_id[RLOCK_TOKEN_BYTES + 1]; /* how the lock's value begins, alike on all members */
    bool is_rlock;                         /* rlock wrote the lock's value */
    char members_hash[12]; /* hash of the members that the holder uses; "": one server */
    int64_t holder_ttl_ms; /* the TTL of the holder's lease; 0: not known */

    /* set with REPLY_HELD in the reply to an acquire: */
    int64_t block_ms; /* the next attempt is due after this time, or when the owner is woken */
    int64_t ticket;   /* the owner's ticket in the queue; 0: none */
};

/* Parses the reply of one script into `reply`. Returns RLOCK_OK or RLOCK_E_PROTOCOL. */
typedef enum rlock_status reply_parse(const struct resp_value *value, struct reply *reply,
                                      struct rlock_error *err);

reply_parse reply_parse_acquire;
reply_parse reply_parse_confirm;
reply_parse reply_parse_renew;
reply_parse reply_parse_release;

/*
 * reply_set_obstacle: describe the holder in `reply`, by the value of the lock's key.
 *
 *   left_ms  ms until the key expires; below 0: it never does
 *   now_ms   the server's time, ms since 1970
 */
void reply_set_obstacle(struct reply *reply, const char *lock, int64_t left_ms, int64_t now_ms);

/*
 * reply_parse_break: read the reply of break.lua, a code alone: REPLY_OK, REPLY_HELD or REPLY_GONE.
 * Returns RLOCK_OK or RLOCK_E_PROTOCOL.
 */
enum rlock_status reply_parse_break(const struct resp_value *value, enum reply_code *code,
                                    struct rlock_error *err);

/*
 * reply_soon_ms: read the reply to a waiter's BLPOP. Returns MS for "soon MS": the waiter is one of
 * the next to get the lock, and should block again, for up to MS ms. Returns -1 for any other
 * reply, also for a timeout: then the waiter asks for the lock.
 */
int64_t reply_soon_ms(const struct resp_value *value);

/* reply_unexpected_script: sets and returns RLOCK_E_PROTOCOL, as no script of rlock replies so. */
enum rlock_status reply_unexpected_script(struct rlock_error *err);

/* ---- replies of commands, for `--scripts no` ---- */

/* reply_unexpected_command: sets and returns RLOCK_E_PROTOCOL, as no Redis command replies so. */
enum rlock_status reply_unexpected_command(struct rlock_error *err);

/* reply_first_error: the first error among the replies from `first` to before `end`, or NULL. */
const char *reply_first_error(const struct resp_value *replies, size_t first, size_t end);

/*
 * reply_time_us: the server's time in microseconds, from the reply to TIME: {seconds,
 * microseconds}. 0: the reply is malformed or NULL.
 */
int64_t reply_time_us(const struct resp_value *reply);

#endif
