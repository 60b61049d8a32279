/* SPDX-License-Identifier: MIT */
/* slot: the Redis Cluster hash slot of a key. */
#ifndef SLOT_H
#define SLOT_H

#include <stddef.h>

#define SLOT_COUNT 16384

/* slot_of: the hash slot of a key of `bytes` bytes, 0 .. SLOT_COUNT - 1. */
unsigned slot_of(const char *key, size_t bytes);

/*
 * slot_hashed_part: where in the key the part begins that alone decides its slot: what its hash
 * tag encloses, or all of the key where it has none. `*bytes` is the key's length, then the part's.
 */
const char *slot_hashed_part(const char *key, size_t *bytes);

/*
 * slot_crc16: the CRC16 (XMODEM) of bytes whose beginning has the CRC16 `crc` (0: no beginning) and
 * whose end is these `n`. Modulo SLOT_COUNT it is the slot of a hashed part of those bytes.
 */
unsigned slot_crc16(unsigned crc, const char *bytes, size_t n);

#endif
