/* SPDX-License-Identifier: MIT */
/* renew: renew a lock by its token. */
#include "cmd.h"

#include "output/wall_time.h"
#include "session/session.h"

#include <stdio.h>

static bool is_hold(const struct session *session)
{
    return session->holds.n > 0;
}

/* The TTL to renew for; 0: the longest that the lease has had so far. */
static int64_t wanted_ttl_ms(const struct session *session)
{
    enum source from = options_origin(session->options, "ttl")->from;

    /* RLOCK_TTL and a ttl in the file are meant for jobs, not for holds */
    if (is_hold(session) && from != FROM_COMMAND_LINE)
        return 0;
    return from == FROM_DEFAULT ? 0 : session->options->ttl_ms;
}

/* Store the new end of the user's hold. */
static enum exit_reason store_until(struct session *session, int64_t left_ms)
{
    struct hold hold = session->holds.hold[0];
    int64_t until_ms = wall_time_now_ms() + left_ms;
    int failed;

    if (until_ms <= hold.until_ms) /* rlock counts leases 1 % shorter than the server does */
        return REASON_GRANTED;
    hold.until_ms = until_ms;
    failed = holds_write(&session->holds, &hold);
    return failed == 0
               ? REASON_GRANTED
               : report_fault(
                     &session->report, REASON_SYSTEM,
                     "the hold was renewed, but its new end could not be stored (RLOCK_HOLD_DIR)",
                     failed);
}

static enum exit_reason renew(struct session *session)
{
    int64_t ttl_ms = wanted_ttl_ms(session);
    struct rlock_error err = {.status = RLOCK_OK};
    int64_t expires_ms = 0;
    int64_t left_ms;
    char why[64];
    enum rlock_status st;

    if (is_hold(session) && session->holds.hold[0].has_renewer)
        return report_fault(&session->report, REASON_USAGE,
                            "a process renews this hold until the hold's end, which can't be "
                            "moved: to hold the lock for longer, release it and hold it again",
                            0);
    st = rlock_renew(session->lock, ttl_ms, session_deadline(session), &expires_ms, &err);
    if (st == RLOCK_LOST || st == RLOCK_GONE || st == RLOCK_RELEASED)
        return session_not_held(session, err.text);
    if (st != RLOCK_OK)
        return session_fault(session, &err);
    left_ms = expires_ms - rlock_clock_ms();
    snprintf(why, sizeof why, "for %lld.%01d s", (long long)(left_ms / 1000),
             (int)(left_ms % 1000 / 100));
    report_event(&session->report, REPORT_STEP, EVENT_RENEWED, why, NULL);
    return is_hold(session) ? store_until(session, left_ms) : REASON_GRANTED;
}

int cmd_renew(const struct options *options)
{
    return session_with_token(options, renew);
}
