/* SPDX-License-Identifier: MIT */
/* keys: the names of the Redis keys that belong to one lock, all in the same Cluster hash slot. */
#ifndef KEYS_H
#define KEYS_H

#include "wire/resp.h"

#include <stdbool.h>

/* The keys of one lock, in the order of KEYS of each script. */
enum lock_key {
    KEY_LOCK,    /* the lock: a string, as any client writes it that locks by SET NX */
    KEY_FENCE,   /* the last fencing token: a string */
    KEY_QUEUE,   /* the queue: a sorted set; member: token, score: ticket */
    KEY_WAITERS, /* a hash; field: token, value: heartbeat, mode and holder info of the waiter */
    KEY_HOLDERS, /* shared locks and slots: a sorted set; member: token, score: end of its lease */
    KEY_HOLDER_INFO /* shared locks and slots: a hash; field: token, value: holder info */
};

#define KEYS_PER_LOCK (KEY_HOLDER_INFO + 1)

struct lock_keys {
    char *name[KEYS_PER_LOCK];
    char *wake; /* the list on which the owner blocks until its turn; NULL: there is no owner */
};

/*
 * keys_init: make the names of all keys of the lock `key`, with the list of the owner of `token`
 * (NULL: without it). The caller calls keys_fini() also after a failure.
 *
 * Returns  RLOCK_OK, RLOCK_E_USAGE (a lock can't have this name) or RLOCK_E_MEMORY.
 */
enum rlock_status keys_init(struct lock_keys *keys, const char *key, const char *token,
                            struct rlock_error *err);
void keys_fini(struct lock_keys *keys);

/*
 * keys_add: append the keys to the KEYS of a script. The request borrows them until it is encoded.
 */
void keys_add(const struct lock_keys *keys, struct request *request);

/*
 * keys_is_helper_name: is `key` the name of a helper key (a lock's fence, queue, ...)? Such a key
 * can't be a lock.
 */
bool keys_is_helper_name(const char *key);

/*
 * keys_helper_name: make the name of the helper key KIND of the lock `key`. The name is in the hash
 * slot of the lock, and no other lock has a helper key with this name. It begins with KEY or with
 * "{KEY". So an ACL rule for a prefix of lock names, with and without '{' in front, allows their
 * helper keys, too. KIND is "fence", "queue", ...:
 *
 *     job        {job}:rlock:KIND
 *     a{b}c      a{b}c:rlock:KIND
 *     {job}      {job}:rlock:{}:KIND
 *     a}b        a}b:rlock:{N}:KIND          N: a number that makes the slot the same
 *     a}b{c      a}b{c:rlock:N}:KIND
 *     a{}b       rlock:{N}:a{}b:rlock:KIND   Redis hashes a name that begins with a{} whole
 *
 * Returns  the name, which the caller frees; NULL: no memory.
 */
char *keys_helper_name(const char *kind, const char *key);

#endif
