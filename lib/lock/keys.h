/* SPDX-License-Identifier: MIT */
/* keys: the names of the Redis keys that belong to one lock, all in the same Cluster hash slot. */
#ifndef KEYS_H
#define KEYS_H

#include "wire/resp.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The keys of one lock. A request sends their names, in this order, as KEYS of its script, and
 * after them the name of the owner's list, if there is an owner: see lib/lua/shared/keys.lua.
 */
enum lock_key {
    KEY_LOCK,    /* the lock: a string, as any client writes it that locks by SET NX */
    KEY_FENCE,   /* the last fence: a string */
    KEY_QUEUE,   /* the queue: a sorted set; member: token, score: ticket */
    KEY_WAITERS, /* a hash; field: token, value: heartbeat, mode and holder info of the waiter */
    KEY_HOLDERS, /* shared locks and slots: a sorted set; member: token, score: end of its lease */
    KEY_HOLDER_INFO, /* shared locks and slots: a hash; field: token, value: holder info */
    KEY_HISTORY      /* a list of what happened to the lock, with --history */
};

#define KEYS_PER_LOCK (KEY_HISTORY + 1)

struct lock_keys {
    char *name[KEYS_PER_LOCK];
    char *wake; /* the list on which the owner blocks (BLPOP) while it waits; NULL: no owner */
};

/* The limits of the last fence, as in lib/lua/shared/fence.lua. */
#define FENCE_MAX INT64_C(9007194959773696) /* 2^53 - 2^32: what last_fence() accepts at most */
#define FENCE_LIFE_MS INT64_C(604800000)    /* 7 days: what fence_life() returns at least */

/* keys_fence_life_ms: for how long the server keeps the last fence of a lock of this TTL. */
int64_t keys_fence_life_ms(int64_t ttl_ms);

/*
 * keys_init: make the names of all keys of the lock `key`, also of the list that wakes the owner of
 * `token` (NULL: no such list). The caller calls keys_fini() also after a failure.
 *
 * A helper key is in the hash slot of the lock, and no other lock has a helper key with this name.
 * The name begins with KEY or with "{KEY". So an ACL rule for a prefix of lock names, with and
 * without '{' in front, allows their helper keys, too. KIND is "fence", "queue", ...:
 *
 *     job        {job}:rlock:KIND
 *     a{b}c      a{b}c:rlock:KIND
 *     {job}      {job}:rlock:{}:KIND
 *     a}b        refused: no such name is in the hash slot of a}b
 *
 * Returns  RLOCK_OK, RLOCK_E_USAGE (a lock can't have this name) or RLOCK_E_MEMORY.
 */
enum rlock_status keys_init(struct lock_keys *keys, const char *key, const char *token,
                            struct rlock_error *err);
void keys_fini(struct lock_keys *keys);

/*
 * keys_foreign_fence: sets and returns RLOCK_E_REFUSED, because another program uses the key of the
 * fence. A script replies FOREIGN in this case.
 */
enum rlock_status keys_foreign_fence(const struct lock_keys *keys, struct rlock_error *err);

/*
 * keys_add: append KEYS_PER_LOCK keys to the KEYS of a script, and `wake` unless it is NULL. The
 * request borrows them until it is encoded.
 */
void keys_add(const struct lock_keys *keys, struct request *request);

/*
 * keys_is_helper_name: is `key` the name of a helper key (a lock's fence, queue, ...)? Such a key
 * can't be a lock.
 */
bool keys_is_helper_name(const char *key);

/*
 * keys_lock_of: the key of the lock whose helper key KIND has the name `helper`. On the heap, and
 * the caller frees it. NULL: `helper` is no name of such a helper key, or no memory.
 */
char *keys_lock_of(const char *kind, const char *helper);

#endif
