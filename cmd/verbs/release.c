/* SPDX-License-Identifier: MIT */
/* release: release a lock by its token. */
#include "cmd.h"

#include "session/session.h"

static enum exit_reason release(struct session *session)
{
    struct rlock_error err = {.status = RLOCK_OK};
    enum rlock_status st =
        rlock_release(session->lock, session_deadline(session), RLOCK_ENDS_FREE, 0, &err);

    if (st != RLOCK_OK && st != RLOCK_GONE && st != RLOCK_LOST)
        return session_fault(session, &err);
    if (st == RLOCK_LOST)
        return session_not_held(session, "the lock is held by another owner");
    if (st == RLOCK_GONE && !session->options->quiet_if_gone)
        return session_not_held(session, "the lock is gone: it was released before, or its lease "
                                         "has ended");
    session_end_hold(session);
    if (st == RLOCK_OK)
        report_event(&session->report, REPORT_STEP, EVENT_RELEASED, NULL, NULL);
    return REASON_GRANTED;
}

int cmd_release(const struct options *options)
{
    return session_with_token(options, release);
}
