/* SPDX-License-Identifier: MIT */
/* test_random: tokens are random and differ from each other, and jitter stays in its bounds. */
#include "base/random.h"
#include "tap.h"

#include <stdlib.h>

#define TOKENS 10000

static char token[TOKENS][RLOCK_TOKEN_BYTES + 1];

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof token[0]);
}

/* Counts the tokens whose digits at these two places are equal. */
static int count_equal(size_t one, size_t other)
{
    int n = 0;

    for (size_t i = 0; i < TOKENS; i++)
        n += token[i][one] == token[i][other];
    return n;
}

static void test_tokens(void)
{
    static const char digits[] = "0123456789abcdef";
    unsigned seen[RLOCK_TOKEN_BYTES] = {0};
    bool is_hex = true;
    bool is_single = true;
    bool has_all = true;
    bool is_free = true;

    for (size_t i = 0; i < TOKENS; i++) {
        memset(token[i], 'x', sizeof token[i]);
        is_hex = is_hex && random_token(token[i], NULL) == RLOCK_OK &&
                 strlen(token[i]) == RLOCK_TOKEN_BYTES &&
                 strspn(token[i], digits) == RLOCK_TOKEN_BYTES;
        for (size_t j = 0; is_hex && j < RLOCK_TOKEN_BYTES; j++)
            seen[j] |= 1u << (strchr(digits, token[i][j]) - digits);
    }
    for (size_t j = 0; j < RLOCK_TOKEN_BYTES; j++) {
        has_all = has_all && seen[j] == 0xffff;
        for (size_t i = 0; i < j; i++) /* random digits are equal in one of 16 tokens */
            is_free = is_free && count_equal(i, j) > TOKENS / 32 && count_equal(i, j) < TOKENS / 8;
    }
    qsort(token, TOKENS, sizeof token[0], compare);
    for (size_t i = 1; i < TOKENS; i++)
        is_single = is_single && compare(token[i - 1], token[i]) != 0;
    ok(is_hex, "a token is 32 hex digits and a NUL");
    ok(is_single, "10000 tokens are all different");
    ok(is_free, "no digit of a token depends on another digit");
    ok(has_all, "every place of a token has had each of the 16 digits");
}

static void test_between(void)
{
    bool is_within = true;
    unsigned seen = 0;

    for (int i = 0; i < 10000; i++) {
        int64_t ms = random_between(-2, 2);

        is_within = is_within && ms >= -2 && ms <= 2;
        if (is_within)
            seen |= 1u << (ms + 2);
    }
    ok(is_within, "random_between() stays within its bounds");
    is_int(seen, 0x1f, "random_between() returns every value, its bounds included");
    is_int(random_between(7, 7), 7, "random_between() of two equal bounds returns the bound");
    is_int(random_between(7, 3), 7, "random_between() returns low_ms if high_ms is smaller");
    ok(random_between(0, RLOCK_TTL_MAX_MS) >= 0, "random_between() accepts the longest TTL");
}

TESTS(test_tokens, test_between)
