/* SPDX-License-Identifier: MIT */
/* random: makes tokens and random back-off times from the kernel's random numbers. */
#ifndef RANDOM_H
#define RANDOM_H

#include "rlock.h"

/*
 * random_token: write 128 random bits as 32 hex digits and a NUL: so many that no two owners get
 * the same. Blocks until the kernel's pool of random numbers is initialized.
 */
enum rlock_status random_token(char token[RLOCK_TOKEN_BYTES + 1], struct rlock_error *err);

/*
 * random_between: return a random number from low_ms to high_ms, for back-off with jitter. Returns
 * low_ms if the kernel has no random numbers yet; never blocks.
 */
int64_t random_between(int64_t low_ms, int64_t high_ms);

#endif
