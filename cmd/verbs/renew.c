/* SPDX-License-Identifier: MIT */
/* renew: renew a lock by its token. */
#include "cmd.h"

#include "session/session.h"

#include <stdio.h>

static enum exit_reason renew(const struct session *session)
{
    const struct options *options = session->options;
    /* 0: without -t, renew for the TTL that the lock was granted with */
    int64_t ttl_ms = options->ttl_from == FROM_DEFAULT ? 0 : options->ttl_ms;
    struct rlock_error err = {.status = RLOCK_OK};
    int64_t expires_ms = 0;
    int64_t left_ms;
    char why[64];
    enum rlock_status st =
        rlock_renew(session->lock, ttl_ms, session_deadline(session), &expires_ms, &err);

    if (st == RLOCK_LOST || st == RLOCK_GONE || st == RLOCK_RELEASED)
        return report_fault(&session->report, REASON_NOT_YOURS, err.text, 0);
    if (st != RLOCK_OK)
        return session_fault(session, &err);
    left_ms = expires_ms - rlock_clock_ms();
    snprintf(why, sizeof why, "for %lld.%01d s", (long long)(left_ms / 1000),
             (int)(left_ms % 1000 / 100));
    report_say(&session->report, REPORT_STEP, (struct message){.what = "renewed", .why = why});
    return REASON_GRANTED;
}

int cmd_renew(const struct options *options)
{
    return session_with_token(options, renew);
}
