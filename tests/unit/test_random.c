/* SPDX-License-Identifier: MIT */
/* test_random: tokens that nobody else draws, and jitter that stays in its bounds. */
#include "base/random.h"
#include "tap.h"

#include <stdlib.h>

#define TOKENS 10000

static char token[TOKENS][RLOCK_TOKEN_BYTES + 1];

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof token[0]);
}

/* In how many tokens are these two digits the same? */
static int alike(size_t one, size_t other)
{
    int n = 0;
    size_t i;

    for (i = 0; i < TOKENS; i++)
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
    size_t i;
    size_t j;

    for (i = 0; i < TOKENS; i++) {
        memset(token[i], 'x', sizeof token[i]);
        is_hex = is_hex && random_token(token[i], NULL) == RLOCK_OK &&
                 strlen(token[i]) == RLOCK_TOKEN_BYTES &&
                 strspn(token[i], digits) == RLOCK_TOKEN_BYTES;
        for (j = 0; is_hex && j < RLOCK_TOKEN_BYTES; j++)
            seen[j] |= 1u << (strchr(digits, token[i][j]) - digits);
    }
    for (j = 0; j < RLOCK_TOKEN_BYTES; j++) {
        has_all = has_all && seen[j] == 0xffff;
        for (i = 0; i < j; i++) /* one pair of sixteen is alike by chance */
            is_free = is_free && alike(i, j) > TOKENS / 32 && alike(i, j) < TOKENS / 8;
    }
    qsort(token, TOKENS, sizeof token[0], compare);
    for (i = 1; i < TOKENS; i++)
        is_single = is_single && compare(token[i - 1], token[i]) != 0;
    ok(is_hex, "a token is 32 hex digits and a NUL");
    ok(is_single, "no two are the same");
    ok(is_free, "no digit of them follows from another");
    ok(has_all, "every digit of them is random: each place has had each value");
}

static void test_between(void)
{
    bool is_within = true;
    unsigned seen = 0;
    int i;

    for (i = 0; i < 10000; i++) {
        int64_t ms = random_between(-2, 2);

        is_within = is_within && ms >= -2 && ms <= 2;
        if (is_within)
            seen |= 1u << (ms + 2);
    }
    ok(is_within, "jitter stays in its bounds");
    is_int(seen, 0x1f, "and takes every value in them, the bounds as well");
    is_int(random_between(7, 7), 7, "no room for chance");
    is_int(random_between(7, 3), 7, "bounds the wrong way round give the low one");
    ok(random_between(0, RLOCK_TTL_MAX_MS) >= 0, "the longest time there is");
}

int main(void)
{
    test_tokens();
    test_between();
    return done_testing();
}
