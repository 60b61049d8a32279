/* SPDX-License-Identifier: MIT */
/* slot: the Redis Cluster hash slot of a key, and helper keys that share it. */
#ifndef SLOT_H
#define SLOT_H

#include "rlock.h"

#include <stdbool.h>

#define SLOT_COUNT 16384

/* slot_of: the hash slot of a key, hash tags respected. */
unsigned slot_of(const char *key, size_t bytes);

/* slot_is_helper_name: is a key named as helper keys are? Such a key can't be a lock. */
bool slot_is_helper_name(const char *key);

/*
 * slot_helper_key: a key of ours in the slot of KEY that no other KEY maps to, as long as none of
 * them is named like a helper key. It begins with KEY, or with '{' and KEY, so that a rule for a
 * prefix of lock names, with and without '{' in front, covers their helper keys and no others:
 *
 *     job        {job}:rlock:KIND
 *     a{b}c      a{b}c:rlock:KIND
 *     {job}      {job}:rlock:{}:KIND
 *     a}b        a}b:rlock:{N}:KIND          N is a number that makes the slot the same
 *     a}b{c      a}b{c:rlock:N}:KIND
 *     a{}b       rlock:{N}:a{}b:rlock:KIND   all that begins with a{}b is hashed whole
 *
 * Heap; the caller frees. NULL: no memory.
 */
char *slot_helper_key(const char *kind, const char *key);

#endif
