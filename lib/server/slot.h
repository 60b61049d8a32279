/* SPDX-License-Identifier: MIT */
/* slot: computes the hash slot of a key, as Redis Cluster does. */
#ifndef SLOT_H
#define SLOT_H

#include <stddef.h>

#define SLOT_COUNT 16384

/* slot_of: return the hash slot of a key of `bytes` bytes, from 0 to SLOT_COUNT - 1. */
unsigned slot_of(const char *key, size_t bytes);

/*
 * slot_hashed_part: return the start of the part of a key that decides the slot: the text between
 * the braces of its hash tag, or the whole key if it has no hash tag.
 *
 *   bytes  in: length of the key; out: length of the part
 */
const char *slot_hashed_part(const char *key, size_t *bytes);

#endif
