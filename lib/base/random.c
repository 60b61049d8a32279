/* SPDX-License-Identifier: MIT */
/* random: makes tokens and random back-off times from the kernel's random numbers. */
#include "base/random.h"

#include "base/err.h"

#include <errno.h>
#include <sys/random.h>

enum rlock_status random_token(char token[RLOCK_TOKEN_BYTES + 1], struct rlock_error *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[RLOCK_TOKEN_BYTES / 2];
    size_t i;

    /* getrandom(2) always returns all bytes that it was asked for, if these are at most 256 */
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_set(err, RLOCK_E_SYSTEM, errno, "no random number for the token (getrandom)");
    for (i = 0; i < sizeof bytes; i++) {
        token[2 * i] = digits[bytes[i] >> 4];
        token[2 * i + 1] = digits[bytes[i] & 15];
    }
    token[RLOCK_TOKEN_BYTES] = '\0';
    return RLOCK_OK;
}

int64_t random_between(int64_t low_ms, int64_t high_ms)
{
    uint64_t chance = 0;

    if (high_ms <= low_ms || getrandom(&chance, sizeof chance, GRND_NONBLOCK) < 0)
        return low_ms;
    return low_ms + (int64_t)(chance % (uint64_t)(high_ms - low_ms + 1));
}
