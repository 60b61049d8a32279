/* SPDX-License-Identifier: MIT */
/* chance: pseudo-random numbers for random walks, which a seed repeats. */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t chance_state;

/* Takes the seed from the first argument, or from the clock, and prints it. */
static inline void chance_seed(int argc, char **argv)
{
    chance_state = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
    printf("# seed %llu\n", (unsigned long long)chance_state);
}

/* A number from low to high, by the generator splitmix64 of Sebastiano Vigna. */
static inline int64_t chance_from(int64_t low, int64_t high)
{
    uint64_t z = (chance_state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return low + (int64_t)((z ^ (z >> 31)) % (uint64_t)(high - low + 1));
}

static inline bool chance_one_in(int64_t n)
{
    return chance_from(1, n) == 1;
}

#endif
