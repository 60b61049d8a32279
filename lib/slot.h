/* SPDX-License-Identifier: MIT */
/* slot: the Redis Cluster hash slot of a key, and helper keys that share it. */
#ifndef SLOT_H
#define SLOT_H

#include "rlock.h"

#define SLOT_COUNT 16384

/* slot_of: the hash slot of a key, hash tags respected. */
unsigned slot_of(const char *key, size_t bytes);

/*
 * slot_helper_key: "rlock:KIND:{TAG}:KEY", a key of ours in the slot of KEY
 * that no other KEY maps to. Heap; the caller frees. NULL: no memory.
 */
char *slot_helper_key(const char *kind, const char *key);

#endif
