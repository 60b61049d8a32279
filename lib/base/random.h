/* SPDX-License-Identifier: MIT */
/* random: numbers from the kernel's random source. */
#ifndef RANDOM_H
#define RANDOM_H

#include "rlock.h"

/* random_token: 128 random bits as 32 hex digits and a NUL: no two owners draw the same. */
enum rlock_status random_token(char token[RLOCK_TOKEN_BYTES + 1], struct rlock_error *err);

/* random_between: for back-off with jitter: low_ms <= result <= high_ms; low_ms if none is had. */
int64_t random_between(int64_t low_ms, int64_t high_ms);

#endif
