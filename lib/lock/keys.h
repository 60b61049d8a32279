/* SPDX-License-Identifier: MIT */
/* keys: the Redis keys that belong to one lock, all in the Cluster hash slot of the lock itself. */
#ifndef KEYS_H
#define KEYS_H

#include "wire/resp.h"

#include <stdbool.h>

/* The keys of one lock, in the order in which each script has them in its KEYS. */
enum lock_key {
    KEY_LOCK,       /* the lock: a string, as any client that locks by SET NX keeps it */
    KEY_FENCE,      /* the last fencing token */
    KEY_QUEUE,      /* the waiting line: a sorted set of tokens by ticket */
    KEY_WAITERS,    /* a hash: what each waiter has told of itself, by token */
    KEY_HOLDERS,    /* shared locks and slots: a sorted set of tokens by the end of their lease */
    KEY_HOLDER_INFO /* a hash: who each of these holders is, by token */
};

#define KEYS_PER_LOCK (KEY_HOLDER_INFO + 1)

struct lock_keys {
    char *name[KEYS_PER_LOCK];
    char *wake; /* the list on which one owner waits for its turn; NULL: it has no token */
};

/*
 * keys_init: the keys of the lock `key`, and of the owner of `token` (NULL: of none).
 *
 * Returns  RLOCK_OK, RLOCK_E_USAGE (a lock can't have this name) or RLOCK_E_MEMORY; whichever it
 *          is, keys_fini() frees all.
 */
enum rlock_status keys_init(struct lock_keys *keys, const char *key, const char *token,
                            struct rlock_error *err);
void keys_fini(struct lock_keys *keys);

/* keys_add: the keys as the KEYS of a script, borrowed until the request is encoded. */
void keys_add(const struct lock_keys *keys, struct request *request);

/* keys_is_helper_name: is a key named as helper keys are? Such a key can't be a lock. */
bool keys_is_helper_name(const char *key);

/*
 * keys_helper_name: the name of the helper key of this kind for the lock `key`. It has the hash
 * slot of the lock, and no other lock has a helper key of this name. It begins with KEY, or with
 * '{' and KEY, so that a rule for a prefix of lock names, with and without '{' in front, covers
 * their helper keys and no others:
 *
 *     job        {job}:rlock:KIND
 *     a{b}c      a{b}c:rlock:KIND
 *     {job}      {job}:rlock:{}:KIND
 *     a}b        a}b:rlock:{N}:KIND          N is a number that makes the slot the same
 *     a}b{c      a}b{c:rlock:N}:KIND
 *     a{}b       rlock:{N}:a{}b:rlock:KIND   what begins with a{}b is hashed whole
 *
 * Heap; the caller frees. NULL: no memory.
 */
char *keys_helper_name(const char *kind, const char *key);

#endif
