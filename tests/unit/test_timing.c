/* SPDX-License-Identifier: MIT */
/* test_timing: the times of a lease (renewal, two replies, grace, kill margin) fit into its TTL. */
#include "lock/timing.h"
#include "tap.h"

#include <stdlib.h>

#define DEFAULT (-1)

static bool fits(const struct rlock_timing *t)
{
    return timing_expires_ms(t->ttl_ms, 0) >=
           t->renew_ms + 2 * t->reply_ms + t->grace_ms + t->kill_margin_ms;
}

static bool is_sane(const struct rlock_timing *t)
{
    return t->renew_ms > 0 && t->renew_ms <= t->ttl_ms / 3 && t->reply_ms > 0 && t->grace_ms > 0 &&
           t->grace_ms <= 5000 && t->kill_margin_ms > 0;
}

/* Tries every TTL up to 100 s, and longer TTLs in steps of about 1 %. */
static void test_range(void)
{
    bool all_fit = true;
    bool all_sane = true;
    bool all_drift = true;
    struct rlock_timing t;
    int64_t ttl;
    int64_t tried = 0;

    for (ttl = RLOCK_TTL_MIN_MS; ttl <= RLOCK_TTL_MAX_MS; ttl += ttl < 100000 ? 1 : ttl / 97) {
        tried += rlock_timing_fit(ttl, DEFAULT, &t, NULL) == RLOCK_OK && t.ttl_ms == ttl;
        all_fit = all_fit && fits(&t);
        all_sane = all_sane && is_sane(&t);
        all_drift = all_drift && ttl - timing_expires_ms(t.ttl_ms, 0) >= ttl / 100 + 2;
    }
    ok(tried > 99000, "rlock_timing_fit() accepts each TTL from 1 s to 30 d");
    ok(all_fit, "the default times fit into each TTL");
    ok(all_sane);
    ok(all_drift, "each lease ends 1 % and 2 ms before its TTL, as clocks drift");
}

static void test_known(void)
{
    struct rlock_timing t;

    if (!is_int(rlock_timing_fit(30000, DEFAULT, &t, NULL), RLOCK_OK, "a TTL of 30 s is accepted"))
        return;
    is_int(t.renew_ms, 10000, "a lease of 30 s is renewed after 10 s");
    is_int(t.grace_ms, 5000, "a lease of 30 s leaves 5 s between TERM and KILL");
    is_int(timing_expires_ms(t.ttl_ms, 1000), 1000 + 30000 - 300 - 2);
    if (is_int(rlock_timing_fit(30000, 0, &t, NULL), RLOCK_OK, "a kill-after of 0 is accepted"))
        is_int(t.grace_ms, 0, "with a kill-after of 0 KILL follows TERM at once");
}

static void test_limits(void)
{
    static const int64_t out[] = {INT64_MIN, -1, 0, RLOCK_TTL_MIN_MS - 1, RLOCK_TTL_MAX_MS + 1,
                                  INT64_MAX};
    struct rlock_timing t = {.ttl_ms = 77};
    struct rlock_error err;

    is_int(rlock_timing_fit(RLOCK_TTL_MIN_MS, DEFAULT, &t, NULL), RLOCK_OK);
    is_int(rlock_timing_fit(RLOCK_TTL_MAX_MS, DEFAULT, &t, NULL), RLOCK_OK);
    for (size_t i = 0; i < sizeof out / sizeof out[0]; i++) {
        t.ttl_ms = 77;
        err.text[0] = '\0';
        okf(rlock_timing_fit(out[i], DEFAULT, &t, &err) == RLOCK_E_USAGE &&
                err.status == RLOCK_E_USAGE && strstr(err.text, "ttl") != NULL && t.ttl_ms == 77,
            "a TTL of %lld ms is refused, and the timing isn't changed", (long long)out[i]);
    }
}

/* The longest kill-after that the error names is accepted, and one millisecond more is refused. */
static void test_kill_after(void)
{
    static const int64_t ttls[] = {1000, 1001, 5000, 30000, 3600000, RLOCK_TTL_MAX_MS};
    struct rlock_error err;
    struct rlock_timing t;
    const char *most;

    for (size_t i = 0; i < sizeof ttls / sizeof ttls[0]; i++) {
        int64_t ttl = ttls[i];

        err.text[0] = '\0';
        okf(rlock_timing_fit(ttl, INT64_MAX, &t, &err) == RLOCK_E_USAGE,
            "TTL %lld: a kill-after of INT64_MAX ms is refused", (long long)ttl);
        okf(rlock_timing_fit(ttl, ttl, &t, &err) == RLOCK_E_USAGE,
            "TTL %lld: a kill-after as long as the TTL is refused", (long long)ttl);
        most = strstr(err.text, "at most ");
        if (!okf(most != NULL, "the error names the longest kill-after: %s", err.text))
            continue;
        most += strlen("at most ");
        okf(rlock_timing_fit(ttl, atoll(most), &t, NULL) == RLOCK_OK && fits(&t) &&
                t.grace_ms == atoll(most),
            "the kill-after that the error names is accepted: %s", most);
        okf(rlock_timing_fit(ttl, atoll(most) + 1, &t, NULL) == RLOCK_E_USAGE,
            "a kill-after one millisecond longer is refused");
    }
}

TESTS(test_range, test_known, test_limits, test_kill_after)
