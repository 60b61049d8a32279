/* SPDX-License-Identifier: MIT */
/* chance: pseudo-random numbers; the same seed gives the same numbers in each run. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdbool.h>
#include <stdint.h>

void chance_start(uint64_t seed);

/* random_below: 0 .. n - 1. random_range: low .. high. random_one_in: true once in n times. */
uint64_t random_bits(void);
int64_t random_below(int64_t n);
int64_t random_range(int64_t low, int64_t high);
bool random_one_in(int64_t n);

/* random_log: low .. high, each order of magnitude as likely as any other; low > 0. */
int64_t random_log(int64_t low, int64_t high);

#endif
