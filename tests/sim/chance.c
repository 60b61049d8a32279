/* SPDX-License-Identifier: MIT */
/* chance: pseudo-random numbers; the same seed gives the same numbers in each run. */
#include "chance.h"

#include <math.h>

static uint64_t state[2];

/* Source: xorshift128+, Vigna, "Further scramblings of Marsaglia's xorshift generators". */
uint64_t random_bits(void)
{
    uint64_t a = state[0];
    uint64_t b = state[1];

    state[0] = b;
    a ^= a << 23;
    state[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
    return state[1] + b;
}

int64_t random_below(int64_t n)
{
    return n <= 1 ? 0 : (int64_t)(random_bits() % (uint64_t)n);
}

int64_t random_range(int64_t low, int64_t high)
{
    return low + random_below(high - low + 1);
}

bool random_one_in(int64_t n)
{
    return random_below(n) == 0;
}

int64_t random_log(int64_t low, int64_t high)
{
    double part = (double)(random_bits() >> 11) / (double)(UINT64_C(1) << 53);

    return (int64_t)((double)low * pow((double)high / (double)low, part));
}

/* splitmix64: gives seeds such as 1 and 2 states that differ in about half of their bits. */
static uint64_t scramble(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void chance_start(uint64_t seed)
{
    state[0] = scramble(seed);
    state[1] = scramble(seed + 1) | 1;
}
